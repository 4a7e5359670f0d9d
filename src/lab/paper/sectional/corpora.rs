//! The labelled corpora for precision and recall, and table 2.

use std::collections::BTreeMap;

use super::super::{ItemLine, LabelledFiles, SectionAnswers, SectionContext, UnjudgedReason};
use crate::generate::labelled::{Labelled, LabelledDocument};
use crate::table::{ResultTable, row};
use crate::{EvaluateError, truth};
use dupflow_connectors::inputs::Input;
use dupflow_core::doc::DocId;
use dupflow_core::hash::mix;
use dupflow_core::text::{Featurizer, TextRules};

/// A labelled corpus, as features.
#[derive(Debug)]
pub(super) struct LabelledFeatures {
    pub(super) name: &'static str,
    bytes: usize,
    words: usize,
    /// In text order.
    pub(super) features: Vec<Vec<u64>>,
    /// A label number for each document.
    pub(super) labels: Vec<usize>,
}

/// A corpus with the dimensions of the source's: 68 groups, 2,168 documents, 2,568 words in each on average.
fn shape(work: &SectionContext<'_>) -> Labelled {
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

/// Number of sites of [`FRAMED`].
const SITES: u64 = 16;

/// A text as a page of a site, between the site's boilerplate. A site has 40 to 265 words of boilerplate, two
/// thirds of them above the text.
fn page(text: &str, site: u64) -> String {
    let words = 40 + 15 * site;
    let frame = |range: std::ops::Range<u64>| -> String {
        range.map(|n| format!("site{site}word{n}")).collect::<Vec<_>>().join(" ")
    };
    format!("{}\n\n{text}\n\n{}", frame(0..2 * words / 3), frame(2 * words / 3..words))
}

/// Articles of 100 to 2,000 words as pages of sites, a quarter of them unrelated to any other. A story is on
/// several sites, and a site has many stories. Boilerplate makes short pages of one site similar, and the
/// same story on two sites less similar.
fn framed(work: &SectionContext<'_>) -> LabelledFeatures {
    let seed = work.bench.seed;
    let articles = Labelled { unrelated: 0.25, min_words: 100, max_words: 2_000, ..shape(work) };
    let pages = articles.corpus().zip(0_u64..).map(|(LabelledDocument { label, text, .. }, n)| {
        let page = page(&text, mix(seed ^ mix(n)) % SITES);
        (label, page)
    });
    LabelledFeatures::new(FRAMED, pages)
}

/// The generated corpora, and the user's own if there is one.
pub(super) fn corpora(work: &SectionContext<'_>) -> Result<Vec<LabelledFeatures>, EvaluateError> {
    let shape = shape(work);
    let generated = shape.corpus().map(|LabelledDocument { label, text, .. }| (label, text));
    let mut all = vec![LabelledFeatures::new("generated", generated), framed(work)];
    if let Some(LabelledFiles { corpus, layout, labels }) = work.labelled {
        let mut labels: BTreeMap<DocId, String> = truth::labels(labels)?;
        let texts = truth::texts(Input::resolve(corpus, layout.clone())?, &TextRules::default())?;
        // A document without a label gets one of its own.
        let mut label = |id: &DocId| labels.remove(id).unwrap_or_else(|| format!("\t{id}"));
        all.push(LabelledFeatures::new("your own", texts.into_iter().map(|(id, text)| (label(&id), text))));
    }
    Ok(all)
}

impl LabelledFeatures {
    fn new(name: &'static str, documents: impl Iterator<Item = (String, String)>) -> Self {
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

    /// Number of pairs with one label.
    pub(super) fn right(&self) -> usize {
        let mut sizes = BTreeMap::<usize, usize>::new();
        self.labels.iter().for_each(|label| *sizes.entry(*label).or_default() += 1);
        sizes.values().map(|n| n * (n - 1) / 2).sum()
    }
}

/// Table 2.
pub(super) fn data_set(corpora: &[LabelledFeatures]) -> SectionAnswers {
    let mut table = ResultTable::new(
        "004_t2",
        "Table 2: the data set",
        "Printed are 99.2 MB of XML files; what of them is text is not said. Generated: originals with \
            copies, edits of 1 to 20 % of the words, moved paragraphs, light and heavy revisions and \
            mixtures with new text; `dupflow generate --labels` makes such corpora. In frames: articles of \
            100 to 2,000 words, a quarter unrelated to any other, each as a page of one of 16 sites, which \
            has 40 to 265 words around every text of its own.",
        "corpus | text, MB | labels | documents | pairs of one label | words per document",
    );
    table.push(row!["printed", None::<f64>, 68_usize, 2_168_usize, 82_934_usize, 2_568_usize]);
    let mut lines = vec![
        ItemLine::new("004-T2", "documents", "2,168 in the table, 2,160 in the text")
            .measured("-")
            .judged(UnjudgedReason::Reading)
            .because("the two contradict each other; the articles are not at hand"),
    ];
    for corpus in corpora {
        let documents = corpus.features.len();
        let labels = corpus.labels.iter().max().map_or(0, |last| last + 1);
        let words = corpus.words / documents.max(1);
        table.push(row![corpus.name, corpus.bytes as f64 / 1e6, labels, documents, corpus.right(), words]);
        lines.push(
            ItemLine::new(
                "004-T2",
                format!("documents, groups, pairs, words per document: {}", corpus.name),
                "2,168, 68, 82,934, 2,568",
            )
            .measured(format!("{documents}, {labels}, {}, {words}", corpus.right()))
            .judged(UnjudgedReason::StandIn)
            .because("documents and groups are asked for; labels say which texts come from one original"),
        );
    }
    SectionAnswers { lines, tables: vec![table], plots: vec![] }
}
