//! The golden vectors, made by programs of others. Each file says what it holds and its tolerance.
#![cfg(test)]

mod filter;
mod hamming;
mod read;
mod simhash;
mod sketch;
mod text;
mod weights;
