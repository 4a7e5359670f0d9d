//! Generated texts with the similarity of every pair.

use std::sync::Arc;

use super::super::super::threads;
use crate::generate::{Generator, Params};
use dupflow_core::text::measures::{cosine, jaccard};
use dupflow_core::text::{
    Features, Featurizer, Idf, IdfForm, IdfTable, Shingle, TextRules, Weigher, Weights,
};

/// A text as words with TF-IDF weights, and as the set of its shingles of three words.
#[derive(Debug)]
pub(in super::super) struct MeasuredText {
    words: Vec<u64>,
    weights: Vec<f64>,
    shingles: Vec<u64>,
}

impl MeasuredText {
    /// Words with their weights.
    pub(in super::super) fn words(&self) -> Features<'_> {
        Features { ids: &self.words, weights: &self.weights }
    }

    /// The set of shingles of three words.
    pub(in super::super) fn shingles(&self) -> Features<'_> {
        Features::set(&self.shingles)
    }
}

/// Pages of the generator. Half of them are edits of an earlier one, where each word of the body is changed
/// with a probability that is drawn from 0 to `edits`.
pub(in super::super) fn generate(documents: usize, edits: f64, seed: u64) -> Vec<MeasuredText> {
    let params = Params {
        window: documents,
        max_edit_rate: edits,
        near: 0.5,
        copies: 0.0,
        ..Params::for_texts(documents as u64, seed)
    };
    let featurizer =
        |words| Featurizer::new(TextRules { shingle: Shingle::Words(words), ..TextRules::default() });
    let (mut of_words, mut of_shingles) = (featurizer(1), featurizer(3));
    let (terms, shingles): (Vec<_>, Vec<_>) = Generator::new(params)
        .filter_map(|record| record.event.text)
        .map(|text| (of_words.terms(&text).to_owned(), of_shingles.terms(&text).ids.to_owned()))
        .unzip();
    let table = Arc::new(IdfTable::count(terms.iter().map(|terms| terms.ids.clone())));
    let weights = Weights::TfIdf(Idf::Frozen(table), IdfForm::default());
    let mut weigher = Weigher::new();
    let weighed = terms.iter().zip(shingles).map(|(terms, shingles)| {
        let Features { ids, weights } = weigher.weigh(terms.view(), &weights);
        MeasuredText { words: ids.to_owned(), weights: weights.to_owned(), shingles }
    });
    weighed.collect()
}

/// The similarities of two texts.
#[derive(Clone, Copy, Debug)]
pub(in super::super) struct PairSimilarities {
    /// The cosine similarity of their word weights.
    pub(in super::super) cosine: f64,
    /// The Jaccard similarity of their shingles of three words.
    pub(in super::super) jaccard: f64,
}

/// Visits every pair of texts on several threads, and sums the counts.
pub(in super::super) fn each_pair<C: Send + Default>(
    texts: &[MeasuredText],
    threads: usize,
    visit: impl Fn(&mut C, (usize, usize), PairSimilarities) + Sync,
    add: impl Fn(&mut C, C),
) -> C {
    let rows = threads::map(threads, texts.len(), |b| {
        let mut counted = C::default();
        for a in 0..b {
            let (x, y) = (&texts[a], &texts[b]);
            let truth = PairSimilarities {
                cosine: cosine(x.words(), y.words()),
                jaccard: jaccard(x.shingles(), y.shingles()),
            };
            visit(&mut counted, (a, b), truth);
        }
        counted
    });
    rows.into_iter().fold(C::default(), |mut all, row| {
        add(&mut all, row);
        all
    })
}
