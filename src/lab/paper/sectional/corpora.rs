//! The labelled corpora that precision and recall are measured on, and table 2.

use std::collections::BTreeMap;

use super::super::{Claim, Labelled as Given, Line, Made, Tolerance, Why, Work};
use crate::generate::labelled::{Document, Labelled};
use crate::table::{Table, row};
use crate::{EvaluateError, truth};
use dupflow_connectors::formats::InputLayout;
use dupflow_connectors::inputs::Input;
use dupflow_core::doc::DocId;
use dupflow_core::hash::mix;
use dupflow_core::text::{Featurizer, TextRules};

/// A labelled corpus, as features.
#[derive(Debug)]
pub(super) struct Corpus {
    pub(super) name: &'static str,
    bytes: usize,
    words: usize,
    /// In text order.
    pub(super) features: Vec<Vec<u64>>,
    /// A number for each document.
    pub(super) labels: Vec<usize>,
}

/// A corpus of the source's shape: 68 groups, 2,168 documents, 2,568 words in each on average.
fn shape(work: &Work<'_>) -> Labelled {
    Labelled {
        seed: work.bench.seed,
        documents: work.size(2_168, 80),
        groups: work.size(68, 8),
        topics: work.size(17, 2),
        unrelated: 0.0,
        min_words: 800,
        max_words: 6_000,
        ..Labelled::default()
    }
}

/// The name of the second generated corpus.
pub(super) const FRAMED: &str = "in frames";

/// Sites of [`FRAMED`].
const SITES: u64 = 16;

/// A text as a page of a site: between what stands on all of its pages. Sites have 40 to 265 such words, two
/// thirds of them above the text.
fn page(text: &str, site: u64) -> String {
    let words = 40 + 15 * site;
    let frame = |range: std::ops::Range<u64>| -> String {
        range.map(|n| format!("site{site}word{n}")).collect::<Vec<_>>().join(" ")
    };
    format!("{}\n\n{text}\n\n{}", frame(0..2 * words / 3), frame(2 * words / 3..words))
}

/// Articles of 100 to 2,000 words as pages of sites, a quarter of them unrelated to any other. One story is
/// on several sites, and one site has many stories: what stands around them makes short pages of one site
/// alike, and the same story on two sites less so.
fn framed(work: &Work<'_>) -> Corpus {
    let seed = work.bench.seed;
    let articles = Labelled { unrelated: 0.25, min_words: 100, max_words: 2_000, ..shape(work) };
    let pages = articles.corpus().zip(0_u64..).map(|(Document { label, text, .. }, n)| {
        let page = page(&text, mix(seed ^ mix(n)) % SITES);
        (label, page)
    });
    Corpus::of(FRAMED, pages)
}

/// The generated corpora, and the user's own if there is one.
pub(super) fn corpora(work: &Work<'_>) -> Result<Vec<Corpus>, EvaluateError> {
    let shape = shape(work);
    let generated = shape.corpus().map(|Document { label, text, .. }| (label, text));
    let mut all = vec![Corpus::of("generated", generated), framed(work)];
    if let Some(Given { corpus, labels }) = work.labelled {
        let mut labels: BTreeMap<DocId, String> = truth::labels(labels)?;
        let texts = truth::texts(Input::resolve(corpus, InputLayout::default())?, &TextRules::default())?;
        // A document without a label is a duplicate of none.
        let mut label = |id: &DocId| labels.remove(id).unwrap_or_else(|| format!("\t{id}"));
        all.push(Corpus::of("your own", texts.into_iter().map(|(id, text)| (label(&id), text))));
    }
    Ok(all)
}

impl Corpus {
    fn of(name: &'static str, documents: impl Iterator<Item = (String, String)>) -> Self {
        let mut corpus = Self { name, bytes: 0, words: 0, features: Vec::new(), labels: Vec::new() };
        let mut featurizer = Featurizer::new(TextRules::default());
        let mut known = BTreeMap::new();
        for (label, text) in documents {
            let features = featurizer.features(&text);
            if features.is_empty() {
                continue;
            }
            corpus.bytes += text.len();
            corpus.words += text.split_whitespace().count();
            corpus.features.push(features.to_vec());
            let next = known.len();
            corpus.labels.push(*known.entry(label).or_insert(next));
        }
        corpus
    }

    /// Pairs of one label.
    pub(super) fn right(&self) -> usize {
        let mut sizes = BTreeMap::<usize, usize>::new();
        self.labels.iter().for_each(|label| *sizes.entry(*label).or_default() += 1);
        sizes.values().map(|n| n * (n - 1) / 2).sum()
    }
}

pub(super) fn data_set(work: &Work<'_>) -> Result<Made, EvaluateError> {
    let mut table = Table::new(
        "004_t2",
        "Table 2: the data set",
        "Generated: originals with copies, edits of 1 to 20 % of the words, moved paragraphs, light and heavy revisions and mixtures with new \
         text; `dupflow generate --labels` makes such corpora. In frames: articles of 100 to 2,000 words, a quarter unrelated to any other, each as a \
         page of one of 16 sites, which has 40 to 265 words around every text of its own.",
        &["corpus", "text, MB", "labels", "documents", "pairs of one label", "words per document"],
    );
    table.push(row!["printed", 99.2, 68_usize, 2_168_usize, 82_934_usize, 2_568_usize]);
    let mut lines = vec![Line::new(
        "004-T2",
        "documents",
        "2,168 in the table, 2,160 in the text",
        "-",
        Why::Reading,
        "the two contradict each other; the articles are not at hand",
    )];
    for corpus in corpora(work)? {
        let documents = corpus.features.len();
        let labels = corpus.labels.iter().max().map_or(0, |last| last + 1);
        let words = corpus.words / documents.max(1);
        table.push(row![corpus.name, corpus.bytes as f64 / 1e6, labels, documents, corpus.right(), words]);
        lines.push(Line::new(
            "004-T2",
            format!("documents, groups, pairs, words per document: {}", corpus.name),
            "2,168, 68, 82,934, 2,568",
            format!("{documents}, {labels}, {}, {words}", corpus.right()),
            Why::StandIn.checked(Claim::equal(
                shape(work).documents as f64,
                documents as f64,
                Tolerance::Exact,
            )),
            "labels say which texts come from one original",
        ));
    }
    Ok(Made { lines, tables: vec![table], plots: vec![] })
}
