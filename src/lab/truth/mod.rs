//! The near-duplicates of a corpus: read from a file, or computed by brute force.
//!
//! | form | a line, separated by tabs | recognized by |
//! |---|---|---|
//! | pairs | `id_a id_b J` | three fields |
//! | deltas of a feed | `seq op id_a id_b J`, `op` is `+` or `-`; the truth is their sum | five fields |
//! | labels | `id label`; documents of one label are duplicates of each other | chosen by the user |
//! | [judged pairs](JudgedPairs) | JSON: which pairs are duplicates, and which are not | chosen by the user |
//!
//! Files may be compressed. Labels give no J: their pairs count as similar at every threshold.

mod judged;

use std::borrow::Cow;
use std::collections::BTreeMap;
use std::fmt;
use std::io::BufRead;
use std::path::Path;
use std::sync::Arc;

use super::EvaluateError;
use dupflow_connectors::formats::open;
use dupflow_connectors::inputs::{Input, for_each_event};
use dupflow_connectors::intake::{BadRecords, OnError};
use dupflow_core::doc::DocId;
use dupflow_core::oracle;
use dupflow_core::pair::{Pair, Threshold};
use dupflow_core::sketch::{Scheme, SectionMode, SketchKind};
use dupflow_core::text::measures::Measure;
use dupflow_core::text::{Featurizer, Idf, IdfTable, TextRules, Weigher, Weights};
pub use judged::JudgedPairs;

/// The near-duplicates of a corpus.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Truth {
    /// Every pair with its similarity; 1 if only labels are known.
    pub pairs: BTreeMap<Pair<DocId>, f64>,
    /// Whether similarities are known.
    pub graded: bool,
}

/// The similarity of two texts that a pipeline estimates or computes, without sketches.
#[derive(Clone, Debug, PartialEq)]
pub struct OwnMeasure {
    /// How texts become features.
    pub rules: TextRules,
    /// How features become a similarity.
    pub by: SimilarityKind,
}

/// The similarity of two texts, from their features.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SimilarityKind {
    /// Jaccard similarity of sets.
    Sets,
    /// q J or its variant, with a number of sections.
    Sections(usize, SectionMode),
    /// A measure of weights; live weights are those of all documents alive at the end.
    Weights(Measure),
}

impl OwnMeasure {
    /// The measure of a pipeline.
    pub fn for_scheme(scheme: &Scheme) -> Self {
        let by = match (scheme.sketch.kind, scheme.measure()) {
            // Pipelines that compare features do not use sections.
            (SketchKind::Sectional { sections, mode, .. }, _) if !scheme.exact => {
                SimilarityKind::Sections(sections, mode)
            }
            (_, Measure::Jaccard) => SimilarityKind::Sets,
            (_, measure) => SimilarityKind::Weights(measure),
        };
        Self { rules: scheme.text.clone(), by }
    }
}

impl fmt::Display for OwnMeasure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.by {
            SimilarityKind::Sets => f.write_str("J"),
            SimilarityKind::Sections(sections, SectionMode::Attach) => write!(f, "q J, {sections} sections"),
            SimilarityKind::Sections(sections, SectionMode::Pair) => {
                write!(f, "q J / (1 + J - q J), {sections} sections")
            }
            SimilarityKind::Weights(measure) => f.write_str(measure.name()),
        }
    }
}

/// The documents alive at the end of the inputs.
///
/// # Errors
/// If an input cannot be read.
pub fn texts(inputs: Vec<Input>, rules: &TextRules) -> Result<BTreeMap<DocId, String>, EvaluateError> {
    Ok(alive(inputs, rules, |text| text.into_owned())?
        .into_iter()
        .map(|(id, (_, text))| (id, text))
        .collect())
}

/// The same in the order of reading.
///
/// # Errors
/// If an input cannot be read.
pub fn read(inputs: Vec<Input>, rules: &TextRules) -> Result<Vec<(DocId, String)>, EvaluateError> {
    let alive = alive(inputs, rules, |text| text.into_owned())?;
    let mut read: Vec<_> = alive.into_iter().map(|(id, (at, text))| (at, id, text)).collect();
    read.sort_unstable_by_key(|(at, ..)| *at);
    Ok(read.into_iter().map(|(_, id, text)| (id, text)).collect())
}

/// The ids of the documents alive at the end of the inputs.
///
/// # Errors
/// If an input cannot be read.
pub fn ids(inputs: Vec<Input>, rules: &TextRules) -> Result<BTreeMap<DocId, ()>, EvaluateError> {
    Ok(alive(inputs, rules, |_| ())?.into_keys().map(|id| (id, ())).collect())
}

/// The documents alive at the end, each with the number of its last event. Bad records are counted, and their
/// numbers logged.
fn alive<T>(
    inputs: Vec<Input>,
    rules: &TextRules,
    keep: impl Fn(Cow<'_, str>) -> T,
) -> Result<BTreeMap<DocId, (usize, T)>, EvaluateError> {
    let (mut alive, mut events) = (BTreeMap::new(), 0);
    let bad = BadRecords::new(OnError::Count, None);
    for_each_event(inputs, &rules.columns(), &bad, |_, event| {
        events += 1;
        match event.text {
            Some(text) => drop(alive.insert(event.id, (events, keep(text)))),
            None => drop(alive.remove(&event.id)),
        }
    })?;
    for (reason, records) in bad.counts() {
        tracing::warn!(records, reason, "bad records are no documents here");
    }
    Ok(alive)
}

/// A pair from the fields of a line.
fn pair(a: &str, b: &str) -> Option<Pair<DocId>> {
    Pair::new(DocId::new(a)?, DocId::new(b)?)
}

impl Truth {
    /// Reads pairs or deltas.
    ///
    /// # Errors
    /// If the file cannot be read, or at the first invalid line.
    pub fn pairs(path: &Path) -> Result<Self, EvaluateError> {
        const EXPECTED: &str =
            "expected \"id_a id_b similarity\" or \"seq op id_a id_b similarity\", separated by tabs";
        let mut truth = Self { graded: true, ..Self::default() };
        each_line(path, EXPECTED, |fields| {
            let (gone, a, b, similarity) = match *fields {
                [a, b, similarity] => (false, a, b, similarity),
                [_, op @ ("+" | "-"), a, b, similarity] => (op == "-", a, b, similarity),
                _ => return None,
            };
            let (pair, similarity) = (pair(a, b)?, similarity.parse().ok()?);
            if gone {
                truth.pairs.remove(&pair)
            } else {
                truth.pairs.insert(pair, similarity)
            };
            Some(())
        })?;
        Ok(truth)
    }

    /// Reads labels.
    ///
    /// # Errors
    /// If the file cannot be read, or at the first invalid line.
    pub fn labels(path: &Path) -> Result<Self, EvaluateError> {
        let mut groups = BTreeMap::<String, Vec<DocId>>::new();
        for (id, label) in labels(path)? {
            groups.entry(label).or_default().push(id);
        }
        let mut truth = Self::default();
        for group in groups.values() {
            for (n, a) in group.iter().enumerate() {
                let pairs = group[..n].iter().filter_map(|b| Pair::new(a.clone(), b.clone()));
                truth.pairs.extend(pairs.map(|pair| (pair, 1.0)));
            }
        }
        Ok(truth)
    }

    /// The pairs that are judged to be duplicates.
    pub fn judged(judged: &JudgedPairs) -> Self {
        let duplicates = judged.iter().filter(|(_, is_duplicate)| *is_duplicate);
        Self { pairs: duplicates.map(|(pair, _)| (pair.clone(), 1.0)).collect(), graded: false }
    }

    /// Compares all documents; returns every pair with a similarity of at least `floor`.
    pub fn brute_force(texts: &BTreeMap<DocId, String>, measure: &OwnMeasure, floor: f64) -> Self {
        let OwnMeasure { rules, by } = measure;
        let mut featurizer = Featurizer::new(rules.clone());
        let features = |(id, text): (&DocId, &String)| (id.clone(), featurizer.features(text).to_vec());
        let pairs = match *by {
            SimilarityKind::Sets => oracle::pairs(texts.iter().map(features), floor),
            SimilarityKind::Sections(sections, mode) => {
                let documents = texts.iter().map(features).collect();
                oracle::sectional_pairs(&documents, sections, mode, floor)
            }
            SimilarityKind::Weights(by) => {
                let weights = match &rules.weights {
                    Weights::TfIdf(Idf::Live(_), form) => {
                        let counted = texts.values().map(|text| featurizer.terms(text).to_owned().ids);
                        Weights::TfIdf(Idf::Frozen(Arc::new(IdfTable::count(counted))), *form)
                    }
                    weights => weights.clone(),
                };
                let mut weigher = Weigher::new();
                let weighted = texts.iter().map(|(id, text)| {
                    let weighed = weigher.weigh(featurizer.terms(text), &weights);
                    (id.clone(), (weighed.ids.to_vec(), weighed.weights.to_vec()))
                });
                oracle::weighted_pairs(weighted, by, floor)
            }
        };
        Self { pairs: pairs.into_iter().collect(), graded: true }
    }

    /// The pairs whose similarity is at least the threshold.
    pub fn at(&self, threshold: f64) -> impl Iterator<Item = (&Pair<DocId>, f64)> {
        let all = self.pairs.iter().map(|(pair, similarity)| (pair, *similarity));
        all.filter(move |(_, similarity)| reaches(*similarity, threshold))
    }
}

/// Whether a true similarity is at least a threshold, up to its rounding; every one is at least 0.
pub fn reaches(similarity: f64, threshold: f64) -> bool {
    let threshold = Threshold::new(threshold);
    threshold.is_none_or(|least| least.admits(similarity, oracle::TRUTH_ROUNDING, || None))
}

/// The label of each document.
///
/// # Errors
/// If the file cannot be read, or at the first invalid line.
pub fn labels(path: &Path) -> Result<BTreeMap<DocId, String>, EvaluateError> {
    let mut labels = BTreeMap::new();
    each_line(path, "expected \"id label\", separated by a tab", |fields| {
        let [id, label] = fields else { return None };
        labels.insert(DocId::new(id)?, (*label).to_owned());
        Some(())
    })?;
    Ok(labels)
}

/// Passes the fields of every line to `each`, which returns whether they are valid.
fn each_line(
    path: &Path,
    expected: &'static str,
    mut each: impl FnMut(&[&str]) -> Option<()>,
) -> Result<(), EvaluateError> {
    let file = open(path).map_err(EvaluateError::file(path))?;
    for (n, line) in file.lines().enumerate() {
        let line = line.map_err(EvaluateError::file(path))?;
        let fields: Vec<&str> = line.split('\t').collect();
        if each(&fields).is_none() {
            return Err(EvaluateError::Truth { path: path.to_owned(), line: n + 1, expected });
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn file(content: &str) -> tempfile::NamedTempFile {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), content).unwrap();
        file
    }

    fn pairs_of(truth: &Truth) -> Vec<(&str, &str, f64)> {
        truth.pairs.iter().map(|(pair, s)| (pair.lo().as_str(), pair.hi().as_str(), *s)).collect()
    }

    #[test]
    fn pairs_and_deltas() {
        let pairs = file("a\tb\t0.5\nd\tc\t1.0\n");
        let pairs = Truth::pairs(pairs.path()).unwrap();
        assert_eq!(pairs_of(&pairs), [("a", "b", 0.5), ("c", "d", 1.0)]);
        assert_eq!(pairs.at(0.5).count() + pairs.at(0.6).count(), 3);
        let deltas =
            file("0\t+\ta\tb\t0.5\n3\t+\ta\tc\t0.7\n3\t-\ta\tb\t0.5\n4\t-\ta\tc\t0.7\n4\t+\ta\tc\t0.9\n");
        assert_eq!(pairs_of(&Truth::pairs(deltas.path()).unwrap()), [("a", "c", 0.9)]);
    }

    #[test]
    fn labels_make_pairs_within_a_group() {
        let truth = Truth::labels(file("a\t1\nb\t2\nc\t1\nd\t1\n").path()).unwrap();
        assert_eq!(pairs_of(&truth), [("a", "c", 1.0), ("a", "d", 1.0), ("c", "d", 1.0)]);
        assert!(!truth.graded);
    }

    #[test]
    fn a_line_that_is_none_is_named() {
        for (content, line) in
            [("a\tb\n", 1), ("a\tb\t1\na\tb\tx\n", 2), ("0\t*\ta\tb\t1\n", 1), ("a\ta\t1\n", 1)]
        {
            let error = Truth::pairs(file(content).path()).unwrap_err().to_string();
            assert!(error.contains(&format!("line {line}: expected \"id_a id_b similarity\"")), "{error}");
        }
        assert!(Truth::labels(file("a\tb\tc\n").path()).is_err());
    }
}
