//! A pipeline file to a [`Plan`].

use std::path::Path;
use std::sync::Arc;

use super::blocking::{self, BlockingPlan};
use super::filter::{self, FilterPlan};
use super::problem::PlanError;
use super::raw::{Key, Settings};
use super::{BUILT_IN, hamming, read, sketch, text, weights};
use crate::block::{Blocking, BlockingKind};
use crate::cluster::{ClusterKind, Clusters};
use crate::filter::{FilterKind, PairFilter, Schedule, Verify};
use crate::sketch::{Scheme, VERSION};
use crate::source::OnError;

/// Every key of a pipeline file.
pub(super) const KEYS: &[Key] = &[
    Key { name: "threshold", expected: "a number above 0 and at most 1" },
    Key { name: "measure", expected: "\"jaccard\", \"weighted-jaccard\" or \"cosine\"" },
    Key { name: "text.shingle", expected: "\"words:N\" or \"chars:N\" with N from 1 to 100" },
    Key { name: "text.spaceless", expected: "\"char\" or \"run\"" },
    Key { name: "text.normalize", expected: "\"none\", \"nfc\" or \"nfkc\"" },
    Key { name: "text.stop_words", expected: "a list of words, or the path of a file with one word a line" },
    Key { name: "text.fields.*", expected: "a whole number from 1 to 100" },
    Key { name: "text.weights", expected: "\"unit\", \"count\", \"tf\" or \"tf-idf\"" },
    Key { name: "text.idf", expected: "\"live\", or the path of a table, of a feed or of a folder" },
    Key { name: "text.idf_form", expected: "\"smooth\" or \"paper\"" },
    Key { name: "text.idf_growth", expected: "a number above 1 and at most 1000, of two decimals at most" },
    Key {
        name: "sketch.kind",
        expected: "\"fss\", \"minhash\", \"oph\", \"oph-original\", \"superminhash\", \"bottom-k\", \"min-max\", \"odd\", \
                   \"connected\", \"sectional\", \"dart\", \"icws\", \"cws\" or \"simhash\"",
    },
    Key { name: "sketch.size", expected: "a whole number from 16 to 32768" },
    Key { name: "sketch.bits", expected: "a number from 1 to 64" },
    Key { name: "sketch.seed", expected: "a whole number from 0 to 2^63 - 1" },
    Key { name: "sketch.run", expected: "a whole number from 2 to 64" },
    Key { name: "sketch.sections", expected: "a whole number from 1 to 1000" },
    Key { name: "sketch.mode", expected: "\"attach\" or \"pair\"" },
    Key {
        name: "blocking.kind",
        expected: "\"banding\", \"permuted\", \"multi-index\", \"groups\", \"conjunctions\", \"shingles\" or \"scan\"",
    },
    Key { name: "blocking.bands", expected: "a whole number from 1 to 32768" },
    Key { name: "blocking.rows", expected: "a whole number from 1 to 64" },
    Key { name: "blocking.recall", expected: "a number above 0 and below 1" },
    Key { name: "blocking.sketch", expected: "\"fss\", \"minhash\", \"oph\" or \"superminhash\"" },
    Key { name: "blocking.size", expected: "a whole number from 16 to 32768" },
    Key { name: "blocking.bits", expected: "1, 2, 4, 8, 16, 32 or 64" },
    Key { name: "blocking.distance", expected: "a whole number from 0 to 32767" },
    Key { name: "blocking.tables", expected: "a whole number from 1 to 4096" },
    Key { name: "blocking.common", expected: "a whole number from 1 to 255" },
    Key { name: "blocking.cap", expected: "a whole number from 2 to 1000000" },
    Key { name: "blocking.hot", expected: "\"leaders\" or \"skip\"" },
    Key { name: "blocking.leaders", expected: "a whole number from 1 to 64" },
    Key { name: "filter.kind", expected: "\"staged\", \"paper\", \"full\" or \"hamming\"" },
    Key { name: "filter.error", expected: "a number above 0 and at most 0.1" },
    Key { name: "filter.looks", expected: "a list of whole numbers from 1 to 32768" },
    Key { name: "filter.verify", expected: "\"sketch\" or \"exact\"" },
    Key { name: "output.expand_limit", expected: "a whole number from 1 to 1000000" },
    Key { name: "output.clusters", expected: "\"components\" or \"star\"" },
    Key { name: "output.cluster_limit", expected: "a whole number from 2 to 10000000" },
    Key { name: "output.on_error", expected: "\"count\" or \"fail\"" },
];

/// Keys and tables that other versions have.
const LATER_KEYS: &[&str] = &["retention"];

/// What a pipeline does, validated.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The built-in pipeline's name, or the path as the user typed it.
    pub name: String,
    /// T: a pair counts if its similarity is at least this (inclusive); above 0, at most 1.
    pub threshold: f64,
    /// Text to sketch.
    pub scheme: Scheme,
    /// Sketch to blocks.
    pub blocking: BlockingPlan,
    /// Candidate to verdict.
    pub filter: FilterPlan,
    /// Most copies of one sketch that are expanded to pairs, inclusive; at least 1.
    pub expand_limit: usize,
    /// What a cluster is.
    pub clusters: ClusterKind,
    /// Most members of a cluster that is told member by member, inclusive; at least 2.
    pub cluster_limit: usize,
    /// What a bad record does to the run.
    pub on_error: OnError,
}

impl Plan {
    /// Loads a pipeline, by the bare name of a built-in one or from a path, with `key=value` overrides.
    ///
    /// # Errors
    /// If there is no such pipeline, and everything that is wrong with it.
    pub fn load(pipeline: &str, overrides: &[String]) -> Result<Self, PlanError> {
        let is_path = pipeline.contains(['/', std::path::MAIN_SEPARATOR]) || pipeline.ends_with(".toml");
        if is_path {
            let path = Path::new(pipeline);
            return Self::parse(pipeline, &read(path)?, path.parent().unwrap_or(Path::new("")), overrides);
        }
        let (name, text) = BUILT_IN.iter().find(|(name, _)| *name == pipeline).ok_or_else(|| {
            let available: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            let distance = |name: &&str| strsim::damerau_levenshtein(name, pipeline);
            let nearest = available.iter().copied().min_by_key(distance).filter(|name| distance(name) <= 3);
            PlanError::UnknownPipeline { name: pipeline.to_owned(), nearest, available }
        })?;
        Self::parse(name, text, Path::new(""), overrides)
    }

    /// Reads a pipeline's text; relative paths in it start from `folder`.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(name: &str, text: &str, folder: &Path, overrides: &[String]) -> Result<Self, PlanError> {
        let mut settings = Settings::new(KEYS, LATER_KEYS);
        settings.add_file(name, text, folder);
        overrides.iter().for_each(|typed| settings.add_override(typed));
        settings.reject_unknown();

        let verify = filter::verify(&mut settings);
        let sketch = sketch::sketch(&mut settings);
        let params = filter::params(&mut settings, &sketch, verify);
        let kind = blocking::kind(&mut settings, params.kind);
        let scheme = Scheme {
            version: VERSION,
            text: text::rules(&mut settings),
            sketch,
            blocks: sketch::companion(&mut settings, sketch.seed),
            exact: verify == Verify::Exact || kind == BlockingKind::Shingles,
        };
        weights::agree(&mut settings, &scheme);
        let threshold = match params.kind {
            FilterKind::Hamming => hamming::threshold(&mut settings, &sketch),
            _ => settings.read("threshold", |v| v.number().filter(|t| *t > 0.0 && *t <= 1.0)),
        };
        let threshold = threshold.unwrap_or(0.8);
        let blocking = blocking::plan(&mut settings, kind, &scheme, threshold);
        let filter = filter::plan(&mut settings, &scheme, threshold, &params);
        let expand_limit = settings.read("output.expand_limit", |v| v.integer(1..=1_000_000)).unwrap_or(1000);
        let clusters = [("components", ClusterKind::Components), ("star", ClusterKind::Star)];
        let clusters = settings.choose("output.clusters", &clusters, &[]).unwrap_or_default();
        let cluster_limit =
            settings.read("output.cluster_limit", |v| v.integer(2..=10_000_000)).unwrap_or(Clusters::LIMIT);
        let on_error = [("count", OnError::Count), ("fail", OnError::Fail)];
        let on_error = settings.choose("output.on_error", &on_error, &[]).unwrap_or_default();
        match (settings.finish(), blocking, filter) {
            (problems, Some(blocking), Some(filter)) if problems.is_empty() => Ok(Self {
                name: name.to_owned(),
                threshold,
                scheme,
                blocking,
                filter,
                expand_limit,
                clusters,
                cluster_limit,
                on_error,
            }),
            (problems, ..) => Err(PlanError::Problems(problems)),
        }
    }

    /// Makes the blocking.
    ///
    /// # Panics
    /// If bands were designed for a sketch that has no planes, which [`parse`](Self::parse) does not do.
    pub fn blocking(&self) -> Arc<dyn Blocking> {
        self.blocking.make(&self.scheme)
    }

    /// Makes the filter.
    pub fn filter(&self) -> Arc<dyn PairFilter> {
        self.filter.make()
    }

    /// Where the filter looks, and its bounds; `None` for one that compares sketches as a whole.
    pub fn schedule(&self) -> Option<&Schedule> {
        self.filter.schedule()
    }
}
