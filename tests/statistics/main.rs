//! The approximation against the truth: estimators against their theory, blocking against its curve, whole
//! pipelines against the exact similarities of real texts.
//!
//! These tests are separate from the tests of the exact law, which has no randomness. Seeds are pinned, so a
//! test always passes or always fails. A bound is exceeded by chance with the small probability stated in
//! [`bounds`]; it is not tuned to observed values.
#![cfg(test)]

mod blocking;
mod bounds;
mod corpus;
#[path = "../data/mod.rs"]
mod data;
mod estimators;
mod keep;
mod kinds;
mod low;
mod papers;
mod pipelines;
mod quotes;
mod samples;
mod synthetic;
mod verdicts;
mod weighted;
mod weighted_truth;
