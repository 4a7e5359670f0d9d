//! Items of 001: problems, the fingerprint, its example, and the word hash.

mod fingerprints;
mod hashes;
mod search;

use super::{Effort, Section};

/// The data that replace the source's.
pub(super) const ABOUT: &str = "The page states three problems and a fingerprint, and prints no measurement: \
    problems are answered by measuring, on uniform fingerprints with planted neighbours, and agreement on \
    pairs of feature sets of a known angle.";

/// The sections that answer its items, in their order.
pub(super) const SECTIONS: &[Section] = &[
    Section { items: &["001-P1"], effort: Effort::Long, make: fingerprints::two_documents },
    Section { items: &["001-P2"], effort: Effort::Once, make: search::one_against_all },
    Section { items: &["001-P3"], effort: Effort::Once, make: search::all_pairs },
    Section { items: &["001-H1"], effort: Effort::Long, make: fingerprints::within_three },
    Section { items: &["001-E1"], effort: Effort::Formula, make: fingerprints::example },
    Section { items: &["001-X1"], effort: Effort::Long, make: hashes::choice },
];
