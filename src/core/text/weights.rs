//! Terms to weighted features.
//!
//! The distinct features of a text with their counts ([`Terms`](super::Terms)) -> [`Features`] with one
//! weight each, above 0:
//!
//! | | weight of a feature that the text has c times among t |
//! |---|---|
//! | [`Unit`](Weights::Unit) | 1 |
//! | [`Count`](Weights::Count) | c |
//! | [`Tf`](Weights::Tf) | c / t |
//! | [`TfIdf`](Weights::TfIdf) | c / t * idf, by a table of document frequencies ([`IdfTable`]) |
//!
//! The last one with a *frozen* table is a function of the text, as the others are. With a *live* table it is
//! a function of the corpus too: document frequencies are counted from the documents alive, and a new table
//! is made at the end of an epoch that leaves their number apart from the table's by a factor ([`Growth`]).
//! Between two tables nothing changes, and a new one changes everything.
//!
//! Invariants: the same bits on every machine; a text that is not empty has a feature, but in the paper's
//! form, which drops those of weight 0.
//!
//! Reference: Yuan et al. (2019), section 2, for TF-IDF, and there the form that [`IdfForm::Paper`] clips at
//! 0.

use std::sync::Arc;

use serde::Serialize;

use super::idf::{IdfForm, IdfTable};
use super::{Features, TermsRef};
use crate::description::{Description, FieldValue};

/// What a feature weighs.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// All the same: a text is a set.
    #[default]
    Unit,
    /// How often the text has it.
    Count,
    /// Its share of the text.
    Tf,
    /// Its share of the text, times its inverse document frequency.
    TfIdf(Idf, IdfForm),
}

/// Where document frequencies come from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Idf {
    /// A table that stays.
    Frozen(Arc<IdfTable>),
    /// The documents alive, counted anew when their number has changed by so much.
    Live(Growth),
}

impl Weights {
    /// All fields by name: see [`Description`]. A frozen table is told by its fingerprint.
    pub(super) fn description(&self) -> Description {
        let name = |name| Description::new().with("text.weights", name);
        match self {
            Self::Unit => name("unit"),
            Self::Count => name("count"),
            Self::Tf => name("tf"),
            Self::TfIdf(idf, form) => {
                let described = name("tf-idf").with("text.idf_form", form.name());
                match idf {
                    Idf::Frozen(table) => described.with("text.idf", FieldValue::hash(table.fingerprint())),
                    Idf::Live(growth) => {
                        described.with("text.idf", "live").with("text.idf_growth", growth.factor())
                    }
                }
            }
        }
    }
}

/// When a live table is replaced.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Growth {
    /// Hundred times the factor by which a corpus has grown or shrunk when it is time for a new table
    /// (inclusive); above 100.
    percent: u32,
}

impl Default for Growth {
    /// By a factor of 2: each event pays for re-sketching about two documents.
    fn default() -> Self {
        Self { percent: 200 }
    }
}

impl Growth {
    /// The largest factor.
    pub const MAX: f64 = 1000.0;

    /// A factor above 1, at most [`Self::MAX`], of two decimals at most; `None` for any other.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "within the range just checked"
    )]
    pub fn new(factor: f64) -> Option<Self> {
        let percent = (factor * 100.0).round();
        let exact = (factor * 100.0 - percent).abs() < 1e-6;
        (exact && percent > 100.0 && factor <= Self::MAX).then_some(Self { percent: percent as u32 })
    }

    /// The factor.
    pub fn factor(self) -> f64 {
        f64::from(self.percent) / 100.0
    }

    /// Whether a table of `counted` documents is to be replaced when there are `documents`: when these are at
    /// least the factor times as many, or the others are.
    pub fn is_due(self, counted: u64, documents: u64) -> bool {
        let reaches =
            |more: u64, fewer: u64| u128::from(more) * 100 >= u128::from(fewer) * u128::from(self.percent);
        documents != counted && (reaches(documents, counted) || reaches(counted, documents))
    }
}

/// Weighs terms; keeps its buffers between texts.
#[derive(Debug, Default)]
pub struct Weigher {
    ids: Vec<u64>,
    weights: Vec<f64>,
}

impl Weigher {
    /// A weigher with empty buffers.
    pub fn new() -> Self {
        Self::default()
    }

    /// The features of a text, ids ascending.
    ///
    /// # Panics
    /// If weights are by a live table: see [`Self::tf_idf`].
    pub fn weigh(&mut self, terms: TermsRef<'_>, weights: &Weights) -> Features<'_> {
        let total = terms.total() as f64;
        match weights {
            Weights::Unit => self.each(terms, |_, _| 1.0),
            Weights::Count => self.each(terms, |_, count| count),
            Weights::Tf => self.each(terms, |_, count| count / total),
            Weights::TfIdf(Idf::Frozen(table), form) => self.tf_idf(terms, table, *form),
            Weights::TfIdf(Idf::Live(_), _) => panic!("a live table is not known before the corpus is"),
        }
    }

    /// The features of a text with TF-IDF weights by this table, ids ascending; none if all are of weight 0.
    pub fn tf_idf(&mut self, terms: TermsRef<'_>, table: &IdfTable, form: IdfForm) -> Features<'_> {
        let total = terms.total() as f64;
        self.each(terms, |id, count| count / total * table.idf(id, form))
    }

    fn each(&mut self, terms: TermsRef<'_>, weight: impl Fn(u64, f64) -> f64) -> Features<'_> {
        self.ids.clear();
        self.weights.clear();
        for (&id, &count) in terms.ids.iter().zip(terms.counts) {
            let weight = weight(id, f64::from(count));
            if weight > 0.0 {
                self.ids.push(id);
                self.weights.push(weight);
            }
        }
        Features { ids: &self.ids, weights: &self.weights }
    }
}
