//! A pipeline file to a [`Plan`].

use std::path::Path;
use std::sync::Arc;

use super::blocking::{self, BlockingPlan};
use super::filter::{self, FilterPlan};
use super::frozen::{FrozenTables, TableSource};
use super::problem::PlanError;
use super::raw::Settings;
use super::{BUILT_IN, hamming, keys, read, sketch, text, weights};
use dupflow_connectors::intake::OnError;
use dupflow_core::block::{Blocking, BlockingKind, BlockingParams, CombinedBlocking};
use dupflow_core::cluster::{ClusterKind, Clusters, KeepRule};
use dupflow_core::doc::retention::Retention;
use dupflow_core::filter::{FilterKind, PairFilter, Schedule, Verify};
use dupflow_core::sketch::{Scheme, VERSION};
use dupflow_core::text::{Idf, TextRules, Weights};

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
    /// Sketch to further blocks: a pair that shares a block of either is a candidate.
    pub also: Option<BlockingPlan>,
    /// Documents that blocks are planned for. No [description](Self::description) knows of it: bands, rows
    /// and tables that follow from it stand there.
    pub documents: u64,
    /// Candidate to verdict.
    pub filter: FilterPlan,
    /// Most copies of one sketch that are expanded to pairs, inclusive; at least 1.
    pub expand_limit: usize,
    /// What a cluster is.
    pub clusters: ClusterKind,
    /// Most members of a cluster that is told member by member, inclusive; at least 2.
    pub cluster_limit: usize,
    /// Which document of a cluster is kept where the others are to go. Lists are made anew by each run, so
    /// that no output and no [description](Self::description) knows of it.
    pub keep: KeepRule,
    /// Which documents stay alive.
    pub retention: Retention,
    /// What a bad record does to the run.
    pub on_error: OnError,
}

/// A pipeline that has been checked as a whole, before the table of document frequencies that it may name has
/// been read.
#[derive(Clone, Debug)]
pub struct Draft {
    /// With an empty table in place of the one that is to be read.
    plan: Plan,
    table: Option<TableSource>,
}

impl Draft {
    /// Loads a pipeline, by the bare name of a built-in one or from a path, with `key=value` overrides.
    ///
    /// # Errors
    /// If there is no such pipeline, and everything that is wrong with it.
    pub fn load(pipeline: &str, overrides: &[String]) -> Result<Self, PlanError> {
        if let Some(path) = Plan::file(pipeline) {
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

    /// Reads a pipeline's text; relative paths in it start from `folder`. Of other files, none but a list of
    /// stop words is read.
    ///
    /// # Errors
    /// Everything that is wrong with it.
    pub fn parse(name: &str, text: &str, folder: &Path, overrides: &[String]) -> Result<Self, PlanError> {
        let mut settings = Settings::new(&[keys::KEYS], keys::LATER);
        settings.add_file(name, text, folder);
        overrides.iter().for_each(|typed| settings.add_override(typed));
        settings.reject_unknown();

        let verify = filter::verify(&mut settings);
        let sketch = sketch::sketch(&mut settings);
        let params = filter::params(&mut settings, &sketch, verify);
        let kinds = blocking::kinds(&mut settings, &sketch, params.kind);
        let (rules, table) = text::rules(&mut settings);
        let scheme = Scheme {
            version: VERSION,
            text: rules,
            sketch,
            blocks: sketch::companion(&mut settings, sketch.seed),
            exact: verify == Verify::Exact || kinds.any(BlockingKind::Shingles),
        };
        weights::agree(&mut settings, &scheme);
        let threshold = match params.kind {
            FilterKind::Hamming => hamming::threshold(&mut settings, &sketch),
            _ => settings.get(&keys::THRESHOLD),
        };
        let threshold = threshold.unwrap_or(0.8);
        let documents = settings.get(&keys::DOCUMENTS).unwrap_or(BlockingParams::DOCUMENTS);
        let (blocking, also) = blocking::plan(&mut settings, kinds, &scheme, threshold, documents);
        let filter = filter::plan(&mut settings, &scheme, threshold, &params);
        let expand_limit = settings.get(&keys::EXPAND_LIMIT).unwrap_or(1000);
        let clusters = settings.get(&keys::CLUSTERS).unwrap_or_default();
        let cluster_limit = settings.get(&keys::CLUSTER_LIMIT).unwrap_or(Clusters::LIMIT);
        let keep = settings.get(&keys::KEEP).unwrap_or_default();
        let retention = Retention {
            max_age: settings.get(&keys::MAX_AGE),
            max_documents: settings.get(&keys::MAX_DOCUMENTS),
            clock: settings.get(&keys::RETENTION_CLOCK).unwrap_or_default(),
        };
        let on_error = settings.get(&keys::ON_ERROR).unwrap_or_default();
        match (settings.finish(), blocking, filter) {
            (problems, Some(blocking), Some(filter)) if problems.is_empty() => {
                let name = name.to_owned();
                let plan = Plan {
                    name,
                    threshold,
                    scheme,
                    blocking,
                    also,
                    documents,
                    filter,
                    expand_limit,
                    clusters,
                    cluster_limit,
                    keep,
                    retention,
                    on_error,
                };
                Ok(Self { plan, table })
            }
            (problems, ..) => Err(PlanError::Problems(problems)),
        }
    }

    /// The plan, with the table that it names: read, or counted, unless `tables` has it.
    ///
    /// # Errors
    /// If there is no such table, or one of other text rules.
    pub fn read(self, tables: &mut FrozenTables) -> Result<Plan, PlanError> {
        let Self { mut plan, table } = self;
        if let Some(source) = table {
            let read = tables.read(&source, &plan.scheme.text)?;
            if let Weights::TfIdf(idf, _) = &mut plan.scheme.text.weights {
                *idf = Idf::Frozen(read);
            }
        }
        Ok(plan)
    }

    /// How texts become features, whatever table they are weighed by.
    pub fn text(&self) -> &TextRules {
        &self.plan.scheme.text
    }

    /// What decides about candidates: no table has a part in it.
    pub fn filter(&self) -> &FilterPlan {
        &self.plan.filter
    }
}

impl Plan {
    /// The file that is meant, unless it is the name of a built-in pipeline.
    pub fn file(pipeline: &str) -> Option<&Path> {
        let is_path = pipeline.contains(['/', std::path::MAIN_SEPARATOR]) || pipeline.ends_with(".toml");
        is_path.then_some(Path::new(pipeline))
    }

    /// [`Draft::load`], and reads the table that the pipeline names, if it names one.
    ///
    /// # Errors
    /// If there is no such pipeline, everything that is wrong with it, or what is wrong with its table.
    pub fn load(pipeline: &str, overrides: &[String]) -> Result<Self, PlanError> {
        Draft::load(pipeline, overrides)?.read(&mut FrozenTables::default())
    }

    /// [`Draft::parse`], and reads the table that the pipeline names, if it names one.
    ///
    /// # Errors
    /// Everything that is wrong with it, or with its table.
    pub fn parse(name: &str, text: &str, folder: &Path, overrides: &[String]) -> Result<Self, PlanError> {
        Draft::parse(name, text, folder, overrides)?.read(&mut FrozenTables::default())
    }

    /// Makes the blocking.
    ///
    /// # Panics
    /// If bands were designed for a sketch that has no planes, which [`parse`](Self::parse) does not do.
    pub fn blocking(&self) -> Arc<dyn Blocking> {
        let first = self.blocking.make(&self.scheme);
        match &self.also {
            None => first,
            Some(also) => Arc::new(CombinedBlocking::new([first, also.make(&self.scheme)])),
        }
    }

    /// Distinct sketches that blocks are planned for, where some may get hot: with more, they lose pairs.
    pub fn planned_sketches(&self) -> Option<u64> {
        self.blocking().hot_rule().map(|_| self.documents)
    }

    /// The blockings, each with the number of its first table.
    pub fn blockings(&self) -> impl DoubleEndedIterator<Item = (&BlockingPlan, usize)> {
        let behind = self.also.as_ref().map(|also| (also, self.blocking.make(&self.scheme).tables()));
        std::iter::once((&self.blocking, 0)).chain(behind)
    }

    /// Makes the filter.
    pub fn filter(&self) -> Arc<dyn PairFilter> {
        self.filter.make()
    }

    /// The filter of a run that writes no similarity: the same pairs, without their estimates where these
    /// cost something.
    pub fn membership_filter(&self) -> Arc<dyn PairFilter> {
        let filter = self.filter();
        filter.for_membership().unwrap_or(filter)
    }

    /// Where the filter looks, and its bounds; `None` for one that compares sketches as a whole.
    pub fn schedule(&self) -> Option<&Schedule> {
        self.filter.schedule()
    }
}
