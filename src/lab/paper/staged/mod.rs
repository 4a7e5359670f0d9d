//! Items of 000: Yuan, Wang, Peng & Zhang (2019), the staged filter over consistent weighted samples.
//!
//! | file | items |
//! |---|---|
//! | `bounds` | tails, bounds over k, the loop: T1, F4 to F6, A2 |
//! | `sampling` | sort-merge, consistent sampling, equations, arithmetic: F1 to F3, A1, Q, H2, H5 |
//! | `models` | simulated pairs, and their similarities: F7 |
//! | `rates` | accuracy and recall of each bound, filtering rates: F8, F9 |
//! | `saved` | savings, errors: H1, H4 |
//! | `times` | on pairs of the models and on a generated corpus: F10, H3 |

mod bounds;
mod models;
mod rates;
mod sampling;
mod saved;
mod times;

use super::{Effort, Section, SectionAnswers, SectionContext};
use crate::EvaluateError;
use crate::distribution::Distribution;
use crate::filter::rules::{ERROR, PAPER_LOOKS, SIZE};
use dupflow_core::filter::{FilterError, Schedule, Target};

/// The data that replace the source's.
pub(super) const ABOUT: &str = "Its FUNDS data, grant proposals of a science foundation, are private, and \
    GAUSSIAN was drawn from them. Models stand in: UNIFORM, J from U(0, 1); GAUSSIAN, N(0.5, 0.15²) within \
    [0, 1]; FUNDS-like, 93 % Beta(1, 6), 5 % U(0, 1), 2 % Beta(20, 1.5); and a generated corpus. K = 1000 \
    samples, first look at 100, an error of 1e-5 at each look. What the filters read of candidates of real \
    corpora, as bands make them, is in `docs/filters.md`.";

/// The sections that answer its items, in their order.
pub(super) const SECTIONS: &[Section] = &[
    Section { items: &["000-T1"], effort: Effort::Formula, make: bounds::tails },
    Section { items: &["000-F1"], effort: Effort::Formula, make: sampling::sort_merge },
    Section { items: &["000-F2", "000-F3"], effort: Effort::Moments, make: sampling::draw },
    Section { items: &["000-F4", "000-F5", "000-F6"], effort: Effort::Formula, make: bounds::curves },
    Section { items: &["000-F7"], effort: Effort::Formula, make: models::densities },
    Section { items: &["000-F8", "000-F9", "000-H1", "000-H4"], effort: Effort::Long, make: simulated },
    Section { items: &["000-F10"], effort: Effort::Timed, make: times::by_set },
    Section { items: &["000-A1"], effort: Effort::Moments, make: sampling::consistent },
    Section { items: &["000-A2"], effort: Effort::Formula, make: bounds::filter_loop },
    Section { items: &["000-Q"], effort: Effort::Formula, make: sampling::equations },
    Section { items: &["000-H2", "000-H3"], effort: Effort::Formula, make: sampling::arithmetic },
    Section { items: &["000-H3"], effort: Effort::Once, make: times::corpus },
    Section { items: &["000-H5"], effort: Effort::Formula, make: sampling::background },
];

/// All that is counted on simulated pairs.
fn simulated(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let sets = models::simulate_sets(work)?;
    let mut made = rates::accuracy(&sets)?;
    made += rates::rates(&sets)?;
    made += saved::saved(&sets)?;
    made += saved::errors(work, &sets)?;
    Ok(made)
}

/// The source's thresholds.
const THRESHOLDS: [f64; 3] = [0.8, 0.5, 0.3];

/// The models of its sets of pairs.
const SETS: [Distribution; 3] = [Distribution::Uniform, Distribution::Gaussian, Distribution::Funds];

/// The source's filter, corrected, at a threshold; components of full width.
fn filter(threshold: f64) -> Result<Schedule, FilterError> {
    Ok(Schedule::per_look(Target::new(threshold, SIZE, 64)?, &PAPER_LOOKS, ERROR))
}

/// A fraction in percent with one decimal.
fn percent(share: f64) -> String {
    format!("{:.1} %", 100.0 * share)
}

/// A text for each set, joined in their order.
fn by_set(of: impl FnMut(Distribution) -> String) -> String {
    SETS.map(of).join(" / ")
}
