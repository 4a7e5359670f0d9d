//! Items of 004, by theme:
//!
//! | files | hold |
//! |---|---|
//! | [`printed`] | the printed numbers |
//! | [`review`], [`odd`], [`few_bits`] | the sketches of its review |
//! | [`model`], [`error`] | pairs of given J and q |
//! | [`corpora`], [`judged`] | labelled corpora |
//! | [`formulas`], [`algorithm`] | formulas and examples |
//! | [`times`] | times |

mod algorithm;
mod corpora;
mod error;
mod few_bits;
mod formulas;
mod judged;
mod model;
mod odd;
mod printed;
mod review;
mod times;

use super::Effort::{Formula, Long, Moments, Timed};
use super::Section;

/// The data that replace the source's.
pub(super) const ABOUT: &str = "Its 2,168 news articles, labelled by hand, do not come with the project. In \
    their place: pairs of a given J of which a given share q of the common shingles is aligned, for errors; \
    and a generated corpus of the same shape (68 groups, 2,168 documents of 2,568 words on average) whose \
    labels say which texts come from which, for precision and recall. With --corpus and --labels, a labelled \
    corpus of your own is judged beside it.";

/// The sections that answer its items, in their order.
pub(super) const SECTIONS: &[Section] = &[
    Section { items: &["004-T1"], effort: Long, make: review::sketches },
    Section { items: &["004-T2", "004-T4", "004-F6", "004-F7"], effort: Long, make: judged::labelled },
    Section { items: &["004-T3"], effort: Long, make: error::mean_square },
    Section { items: &["004-F1"], effort: Formula, make: formulas::example },
    Section { items: &["004-F2"], effort: Moments, make: formulas::variance },
    Section { items: &["004-F3"], effort: Formula, make: formulas::ratios },
    Section { items: &["004-F4"], effort: Long, make: error::by_similarity },
    Section { items: &["004-F5"], effort: Timed, make: times::hashing },
    Section { items: &["004-A1"], effort: Moments, make: algorithm::check },
    Section { items: &["004-H1"], effort: Long, make: error::an_eighth },
    Section { items: &["004-H2"], effort: Formula, make: formulas::headlines },
    Section { items: &["004-X1"], effort: Long, make: few_bits::permutations },
];
