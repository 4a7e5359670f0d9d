//! The approximation against the truth: estimators against their theory, blocking against its curve, whole
//! pipelines against the exact similarities of real texts.
//!
//! Never mixed with the law, which knows no probability. Seeds are pinned, so a test passes or fails for
//! good; a bound is what chance exceeds with the small probability that [`bounds`] states, and nothing tuned
//! to what was seen.
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
mod synthetic;
mod verdicts;
mod weighted;
mod weighted_truth;
