//! Items of 003. `stream` has what the source leaves out: alg.G and alg.H while the corpus changes.

mod diagrams;
mod estimator;
mod examples;
mod live;
mod steps;
mod stream;
mod times;

use super::{Effort, Section};

/// The data that replace the source's.
pub(super) const ABOUT: &str = "Its 300,000 proposals are private and the body of its table is lost: 300,000 \
    uniform fingerprints stand in where cost is measured, laws of R and generated texts where pairs have to \
    be right or wrong. Times compare as ratios only: theirs are of a database.";

/// The sections that answer its items, in their order.
pub(super) const SECTIONS: &[Section] = &[
    Section { items: &["003-T1"], effort: Effort::Once, make: times::table },
    Section { items: &["003-F1"], effort: Effort::Formula, make: estimator::variances },
    Section { items: &["003-F2", "003-F3", "003-F4"], effort: Effort::Formula, make: diagrams::make },
    Section { items: &["003-F5"], effort: Effort::Moments, make: diagrams::sizes },
    Section { items: &["003-F6"], effort: Effort::Long, make: estimator::quality },
    Section {
        items: &["003-E1", "003-E2", "003-E3", "003-E4"],
        effort: Effort::Moments,
        make: examples::make,
    },
    Section { items: &["003-T1", "003-H1"], effort: Effort::Timed, make: times::entries },
    Section { items: &["003-H2"], effort: Effort::Formula, make: steps::headline },
    Section { items: &["003-H3"], effort: Effort::Formula, make: estimator::at_seven_tenths },
    Section { items: &["003-H4"], effort: Effort::Long, make: estimator::at_nine_tenths },
    Section { items: &["003-H5"], effort: Effort::Timed, make: live::make },
    Section { items: &["003-X1", "003-X2"], effort: Effort::Timed, make: stream::make },
];

/// Number of proposals of the source.
const DOCUMENTS: usize = 300_000;

/// Groups that must agree beyond the radius.
const SURPLUS: usize = 3;
