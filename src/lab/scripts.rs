//! Scripts without spaces: every rule of `text.spaceless` on texts whose near-duplicates are known from a
//! twin with spaces.
//!
//! A corpus is generated with words separated by spaces, and again in Chinese, Japanese and Thai: the same
//! documents with the same edits, word by word ([`labelled`](crate::generate::labelled)). The pairs of the
//! twin, by shingles of three words, are the truth: a rule is good if it finds these pairs and no others at
//! the same threshold. Letters and lengths of words follow those of the languages; grammar is not modelled.

use std::collections::BTreeSet;
use std::fs::File;
use std::io::BufWriter;
use std::path::PathBuf;

use super::pipelines::{Pipelines, Temporary, TruthFrom};
use super::table::{ResultTable, row};
use super::{EvaluateError, Findings, Study, StudyContext};
use crate::generate::Script;
use crate::generate::labelled::{Labelled, LabelledDocument};
use dupflow_connectors::formats::InputLayout;
use dupflow_connectors::formats::feed::{self, FeedRecord};
use dupflow_core::doc::fields::EventFields;
use dupflow_core::doc::{DocEvent, DocId};
use dupflow_core::oracle;
use dupflow_core::pair::Pair;
use dupflow_core::text::{Featurizer, Spaceless, TextRules};

/// The threshold.
const T: f64 = 0.8;
/// Minimum similarity of the pairs that are evaluated.
const FLOOR: f64 = 0.5;
/// Documents at full scale.
const DOCUMENTS: f64 = 2_000.0;
/// The pipeline that runs.
const PIPELINE: &str = "minhash";

/// The study of scripts.
#[derive(Clone, Debug)]
pub struct Scripts {
    /// Fraction of the full size, which is 2,000 documents in each script; above 0.
    pub scale: f64,
    /// The path of the program.
    pub program: PathBuf,
}

type PairSet = BTreeSet<Pair<DocId>>;

/// The common pairs as a fraction of the pairs found, and of the pairs of the twin.
fn shares(found: &PairSet, twin: &PairSet) -> [Option<f64>; 2] {
    let both = found.intersection(twin).count() as f64;
    [found, twin].map(|all| (!all.is_empty()).then(|| both / all.len() as f64))
}

impl Study for Scripts {
    fn run(&self, bench: &StudyContext<'_>) -> Result<Findings, EvaluateError> {
        let mut table = ResultTable::new(
            "scripts",
            "Pairs of J ≥ 0.8 by script and rule",
            "Exact: all documents compared, by shingles of three words under the rule. Precision and recall \
                are against the exact pairs of the twin, which is written with spaces. \"T for as many\" is \
                the threshold at which the rule has as many pairs as the twin has at 0.8, if it is 0.5 or \
                more. The last three columns are of the pipeline minhash.",
            "script | text.spaceless | shingles per document | pairs, exact | precision, exact | recall, \
                exact | T for as many | pairs found | precision | recall",
        );
        let mut twin: Option<PairSet> = None;
        let mut documents = 0;
        for script in [Script::Latin, Script::Chinese, Script::Japanese, Script::Thai] {
            (bench.progress)(script.name());
            let texts: Vec<LabelledDocument> = self.corpus(bench.seed, script).corpus().collect();
            documents = texts.len();
            let feed = Temporary::new(&format!("{}.jsonl", script.name()));
            write(&feed, texts.iter())?;
            let rules = [Spaceless::Part, Spaceless::Char, Spaceless::Run];
            let rules = if script == Script::Latin { &rules[..1] } else { &rules[..] };
            for rule in rules {
                let text = TextRules { spaceless: *rule, ..TextRules::default() };
                let mut featurizer = Featurizer::new(text);
                let features: Vec<(DocId, Vec<u64>)> =
                    texts.iter().map(|d| (d.id.clone(), featurizer.features(&d.text).to_vec())).collect();
                let shingles = features.iter().map(|(_, all)| all.len()).sum::<usize>() as f64;
                let mut graded = oracle::pairs(features, FLOOR);
                graded.sort_by(|(_, a), (_, b)| b.total_cmp(a));
                let from_t = graded.partition_point(|(_, similarity)| *similarity >= T);
                let exact: PairSet = graded[..from_t].iter().map(|(pair, _)| pair.clone()).collect();
                let found: PairSet = self.found(bench, &feed, *rule)?.into_iter().collect();
                let twin = twin.get_or_insert_with(|| exact.clone());
                let as_many = graded.get(twin.len().wrapping_sub(1)).map(|(_, similarity)| *similarity);
                let ([p, r], [of_found, found_of]) = (shares(&exact, twin), shares(&found, twin));
                let name = if script == Script::Latin { "any" } else { rule.name() };
                let per_document = shingles / documents as f64;
                let (exact, found) = (exact.len(), found.len());
                table.push(row![
                    script.name(),
                    name,
                    per_document,
                    exact,
                    p,
                    r,
                    as_many,
                    found,
                    of_found,
                    found_of
                ]);
            }
        }
        Ok(Findings {
            name: "scripts".to_owned(),
            title: "Scripts without spaces".to_owned(),
            about: format!(
                "{documents} generated documents of 40 to 400 words, once in words with spaces between them \
                    (latin), and the same documents with the same edits, word by word, in the other scripts."
            ),
            tables: vec![table],
            plots: vec![],
        })
    }
}

impl Scripts {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a share of 2,000, above 0")]
    fn corpus(&self, seed: u64, script: Script) -> Labelled {
        let documents = ((DOCUMENTS * self.scale) as usize).max(60);
        let (min_words, max_words) = (40, 400);
        Labelled {
            seed,
            documents,
            groups: documents / 10,
            min_words,
            max_words,
            scripts: vec![script],
            ..Labelled::default()
        }
    }

    fn found(
        &self,
        bench: &StudyContext<'_>,
        feed: &Temporary,
        rule: Spaceless,
    ) -> Result<Vec<Pair<DocId>>, EvaluateError> {
        let study = Pipelines {
            pipelines: vec![PIPELINE.to_owned()],
            overrides: vec![format!("text.spaceless={}", rule.name())],
            thresholds: vec![T],
            corpus: vec![feed.0.clone()],
            layout: InputLayout::default(),
            truth: TruthFrom::BruteForce,
            limit: 0,
            program: self.program.clone(),
        };
        study.found(bench, PIPELINE, T)
    }
}

/// Writes a feed.
fn write<'d>(
    file: &Temporary,
    documents: impl Iterator<Item = &'d LabelledDocument>,
) -> Result<(), EvaluateError> {
    let failed = |source| EvaluateError::File { path: file.0.clone(), source };
    let mut out = BufWriter::new(File::create(&file.0).map_err(failed)?);
    for LabelledDocument { id, text, .. } in documents {
        let (text, fields) = (Some(text.into()), EventFields::default());
        let event = DocEvent { id: id.clone(), ts: None, written: None, text, fields };
        feed::write(&mut out, &FeedRecord { event, ts: None }).map_err(failed)?;
    }
    std::io::Write::flush(&mut out).map_err(failed)
}
