//! A feed with its truth: the exact similarities of the documents that are live after the first N events.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dupflow::connectors::formats::feed;
use dupflow::core::doc::DocId;
use dupflow::core::oracle;
use dupflow::core::pair::Pair;
use dupflow::core::text::{Featurizer, Invisible, Marks, Normalize, Spaceless, TextRules};
use dupflow::lab::generate::{Generator, Params};

use crate::data::{self, Event};

/// The least similarity of the pairs in the truth, inclusive.
pub(crate) const FLOOR: f64 = 0.8;

/// Pairs and their exact similarities.
pub(crate) type Pairs = BTreeMap<Pair<DocId>, f64>;

/// A feed, and the cuts at which it is checked.
pub(crate) struct Corpus {
    pub(crate) name: &'static str,
    pub(crate) path: PathBuf,
    events: Vec<Event>,
    /// Numbers of events, ascending; the last one is all events.
    pub(crate) cuts: Vec<usize>,
    /// At each cut, every pair with a similarity of at least [`FLOOR`].
    pub(crate) truth: Vec<Pairs>,
}

/// A featurizer by the text rules under which the truth was recorded.
pub(crate) fn featurizer() -> Featurizer {
    Featurizer::new(TextRules {
        spaceless: Spaceless::Run,
        marks: Marks::Split,
        normalize: Normalize::None,
        invisible: Invisible::Keep,
        ..TextRules::default()
    })
}

fn pair(a: &str, b: &str) -> Pair<DocId> {
    Pair::new(DocId::new(a).unwrap(), DocId::new(b).unwrap()).unwrap()
}

impl Corpus {
    /// A corpus of documents that are only inserted, with the recorded list of their pairs.
    pub(crate) fn documents(folder: &Path, name: &'static str) -> Self {
        let path = folder.join(format!("{name}.jsonl.zst"));
        let events: Vec<_> = data::feed(&path).collect();
        let pairs = data::lines(&folder.join(format!("{name}.set_pairs_0.5.tsv.zst"))).filter_map(|line| {
            let fields: Vec<&str> = line.split('\t').collect();
            let similarity: f64 = fields[2].parse().unwrap();
            (similarity >= FLOOR).then(|| (pair(fields[0], fields[1]), similarity))
        });
        Self { name, path, cuts: vec![events.len()], truth: vec![pairs.collect()], events }
    }

    /// A feed with the recorded changes of the exact pairs after each event.
    pub(crate) fn feed(folder: &Path, name: &'static str, mut cuts: Vec<usize>) -> Self {
        let path = folder.join(format!("{name}.jsonl.zst"));
        let events: Vec<_> = data::feed(&path).collect();
        cuts.push(events.len());
        let mut changes = data::lines(&folder.join(format!("{name}.deltas_0.8.tsv.zst"))).peekable();
        let mut pairs = Pairs::new();
        let truth = cuts.iter().map(|cut| {
            let seq = |line: &String| line.split('\t').next().unwrap().parse::<usize>().unwrap();
            while let Some(line) = changes.next_if(|line| seq(line) < *cut) {
                let fields: Vec<&str> = line.split('\t').collect();
                let pair = pair(fields[2], fields[3]);
                match fields[1] {
                    "+" => pairs.insert(pair, fields[4].parse().unwrap()),
                    _ => pairs.remove(&pair),
                };
            }
            pairs.clone()
        });
        let truth = truth.collect();
        assert_eq!(changes.next(), None, "changes after the last event");
        Self { name, path, events, cuts, truth }
    }

    /// A synthetic feed, written into `folder`.
    pub(crate) fn generated(folder: &Path) -> Self {
        let params = Params { documents: 10_000, ..Params::default() };
        let path = folder.join("generated.jsonl");
        let mut lines = Vec::new();
        let mut events = Vec::new();
        for record in Generator::new(params) {
            feed::write(&mut lines, &record).unwrap();
            events.push((record.event.id, record.event.text.map(Into::into)));
        }
        std::fs::write(&path, lines).unwrap();
        let mut corpus =
            Self { name: "generated", path, cuts: vec![4_000, 8_000, events.len()], truth: vec![], events };
        corpus.truth = corpus.cuts.iter().map(|cut| corpus.pairs(*cut)).collect();
        corpus
    }

    /// The live texts after the first events.
    fn texts(&self, cut: usize) -> BTreeMap<&DocId, &str> {
        let mut texts = BTreeMap::new();
        for (id, text) in &self.events[..cut] {
            match text {
                Some(text) => texts.insert(id, text.as_str()),
                None => texts.remove(id),
            };
        }
        texts
    }

    /// The truth, computed by the oracle.
    fn pairs(&self, cut: usize) -> Pairs {
        let mut featurizer = featurizer();
        let texts = self.texts(cut).into_iter();
        oracle::pairs(texts.map(|(id, text)| (id.clone(), featurizer.features(text).to_vec())), FLOOR)
            .into_iter()
            .collect()
    }

    /// The exact similarity of any two documents that are live at a cut.
    pub(crate) fn similarities(&self, cut: usize) -> impl FnMut(&Pair<DocId>) -> f64 {
        let texts = self.texts(cut);
        let mut featurizer = featurizer();
        move |pair| {
            let mut features =
                |id| std::collections::BTreeSet::from_iter(featurizer.features(texts[id]).iter().copied());
            let (a, b) = (features(pair.lo()), features(pair.hi()));
            a.intersection(&b).count() as f64 / a.union(&b).count() as f64
        }
    }
}
