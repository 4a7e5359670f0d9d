//! Term counts to weighted features.
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
//! TF-IDF with a *frozen* table is a function of the text, as the other weights are. With a *live* table it
//! is a function of the corpus too: document frequencies are counted from the live documents. A new table is
//! made at the end of an epoch in which the number of documents differs from the table's by a factor
//! ([`Growth`]). Between two tables no weight changes; a new table changes all weights.
//!
//! Invariants: weights have the same bits on every machine. A text that is not empty has at least one
//! feature, except in the paper's form, which drops features of weight 0.
//!
//! Reference: Yuan et al. (2019), section 2, for TF-IDF, including the form that [`IdfForm::Paper`] clips at
//! 0.

use std::sync::Arc;

use serde::Serialize;

use super::features::Features;
use super::idf::{IdfForm, IdfTable};
use super::terms::TermsRef;
use crate::description::{Description, FieldValue};

/// How features are weighted.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Weights {
    /// All weights are 1: a text is a set.
    #[default]
    Unit,
    /// The count of the feature in the text.
    Count,
    /// The count, divided by the number of shingles of the text.
    Tf,
    /// The same, times the inverse document frequency.
    TfIdf(Idf, IdfForm),
}

/// Where document frequencies are from.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum Idf {
    /// A table that never changes.
    Frozen(Arc<IdfTable>),
    /// The live documents, counted again when their number has changed by this factor.
    Live(Growth),
}

impl Weights {
    /// All fields by name: see [`Description`]. A frozen table is described by its fingerprint.
    pub(in crate::text) fn description(&self) -> Description {
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
    /// Hundred times the factor (inclusive) by which a corpus must grow or shrink for a new table; above 100.
    percent: u32,
}

impl Default for Growth {
    /// A factor of 2: each event pays for re-sketching about two documents.
    fn default() -> Self {
        Self { percent: 200 }
    }
}

impl Growth {
    /// The largest factor, inclusive.
    pub const MAX: f64 = 1000.0;

    /// A factor above 1, at most [`Self::MAX`], with at most two decimals; `None` for any other.
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

    /// Whether a table counted from `counted` documents is due for replacement when there are `documents`:
    /// one number is at least the factor times the other.
    pub fn is_due(self, counted: u64, documents: u64) -> bool {
        let reaches =
            |more: u64, fewer: u64| u128::from(more) * 100 >= u128::from(fewer) * u128::from(self.percent);
        documents != counted && (reaches(documents, counted) || reaches(counted, documents))
    }
}

/// Computes the weights of terms; reuses its buffers.
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

    /// The weighted features of a text, ids ascending.
    ///
    /// # Panics
    /// If the weights use a live table: see [`Self::tf_idf`].
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

    /// The features of a text with TF-IDF weights by this table, ids ascending. Empty if all weights are 0.
    pub fn tf_idf(&mut self, terms: TermsRef<'_>, table: &IdfTable, form: IdfForm) -> Features<'_> {
        let total = terms.total() as f64;
        self.each(terms, |id, count| count / total * table.idf(id, form))
    }

    fn each(&mut self, terms: TermsRef<'_>, weight: impl Fn(u64, f64) -> f64) -> Features<'_> {
        self.ids.clear();
        self.weights.clear();
        for (&id, &count) in terms.ids.iter().zip(terms.counts) {
            let weight = weight(id, count as f64);
            if weight > 0.0 {
                self.ids.push(id);
                self.weights.push(weight);
            }
        }
        Features { ids: &self.ids, weights: &self.weights }
    }
}
