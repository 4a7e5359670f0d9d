//! Items of 002.

mod examples;
mod quality;
mod tables;
pub(super) mod texts;

pub(super) use examples::grouped;

use super::{Effort, Section};

/// The data that replace the source's.
pub(super) const ABOUT: &str = "It prints no measurement, and its crawled pages are private: uniform \
    fingerprints of 64 bits stand in for them where cost is measured, and generated texts where pairs have \
    to be right or wrong. Candidates and recall are judged at ten million fingerprints. What takes too long \
    for several seeds is shown at one: a hundred million fingerprints, every radius, all pairs of texts.";

/// The sections that answer its items, in their order.
pub(super) const SECTIONS: &[Section] = &[
    Section { items: &["002-H1"], effort: Effort::Once, make: quality::make },
    Section { items: &["002-E1", "002-E2", "002-E3"], effort: Effort::Moments, make: examples::make },
    Section { items: &["002-D1", "002-D2", "002-A1"], effort: Effort::Timed, make: tables::judged },
    Section { items: &["002-D1", "002-D2", "002-A1"], effort: Effort::Once, make: tables::large },
];
