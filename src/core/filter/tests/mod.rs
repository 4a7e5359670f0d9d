//! Compares the exact bounds with enumeration, and every kind of filter with a reading component by

mod bounds;
mod looks;
mod pairs;
mod ties;
mod verdicts;
