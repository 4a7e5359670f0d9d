//! Reads a pipeline file into a [`Plan`].

use std::path::Path;

use super::blocking;
use super::built_in::BUILT_IN;
use super::filter::{self, FilterPlan};
use super::plan::{Plan, names_file};
use super::text::frozen::{FrozenTables, TableSource};
use super::text::weights;
use super::{hamming, keys, sketch, text};
use crate::config::settings::{ConfigError, ConfigKey, FileSettings, ProblemKind, read_file, without_effect};
use dupflow_core::block::{BlockingKind, BlockingParams};
use dupflow_core::cluster::Clusters;
use dupflow_core::doc::retention::Retention;
use dupflow_core::filter::{FilterKind, Verify};
use dupflow_core::pair_rule::PairRule;
use dupflow_core::sketch::{Scheme, VERSION};
use dupflow_core::text::{Idf, TextRules, Weights};

/// A checked pipeline. The table of document frequencies that it may name has not been read yet.
#[derive(Clone, Debug)]
pub struct Draft {
    /// Holds an empty table in place of the one that `table` names.
    plan: Plan,
    table: Option<TableSource>,
}

impl Draft {
    /// Loads a built-in pipeline by its bare name, or a file by its path, with `key=value` overrides.
    ///
    /// # Errors
    /// If there is no such pipeline; otherwise all of its problems at once.
    pub fn load(pipeline: &str, overrides: &[String]) -> Result<Self, ConfigError> {
        if let Some(path) = Plan::file(pipeline) {
            return Self::parse(
                pipeline,
                &read_file(path)?,
                path.parent().unwrap_or(Path::new("")),
                overrides,
            );
        }
        let (name, text) = BUILT_IN.iter().find(|(name, _)| *name == pipeline).ok_or_else(|| {
            let available: Vec<_> = BUILT_IN.iter().map(|(name, _)| *name).collect();
            let distance = |name: &&str| strsim::damerau_levenshtein(name, pipeline);
            let nearest = available.iter().copied().min_by_key(distance).filter(|name| distance(name) <= 3);
            ConfigError::UnknownPipeline { name: pipeline.to_owned(), nearest, available }
        })?;
        Self::parse(name, text, Path::new(""), overrides)
    }

    /// Parses the text of a pipeline; relative paths in it start from `folder`. The only other file that it
    /// reads is a list of stop words.
    ///
    /// # Errors
    /// All problems of the pipeline at once.
    pub fn parse(name: &str, text: &str, folder: &Path, overrides: &[String]) -> Result<Self, ConfigError> {
        let mut settings = FileSettings::new(&[keys::KEYS], keys::LATER);
        settings.add_file(name, text, folder);
        overrides.iter().for_each(|typed| settings.add_override(typed));
        for key in ["memory", "spill.path"] {
            if settings.is_set(key) {
                let what = "is no key of a pipeline: name it in the deployment file of a run (-c), or take \
                    --memory and --spill of a replay";
                settings.problem(key, ProblemKind::Contradiction(what.to_owned()));
                settings.forget(key);
            }
        }
        settings.reject_unknown();

        let verify = filter::verify(&mut settings);
        let sketch = sketch::sketch(&mut settings);
        let params = filter::params(&mut settings, &sketch, verify);
        let kinds = blocking::kinds(&mut settings, &sketch, params.kind);
        let (rules, table) = text::rules(&mut settings, &sketch);
        let scheme = Scheme {
            version: VERSION,
            text: rules,
            sketch,
            blocks: sketch::companion(&mut settings, sketch.seed),
            // Of a scaled sketch the kept values are in the blocks.
            exact: verify == Verify::Exact || sketch.scaled().is_none() && kinds.any(BlockingKind::Shingles),
            pairs: pair_rule(&mut settings),
            units: text::units::rules(&mut settings),
        };
        text::units::agree(&mut settings, &scheme, kinds.any(BlockingKind::Reference));
        weights::agree(&mut settings, &scheme);
        let threshold = match params.kind {
            FilterKind::Hamming => hamming::threshold(&mut settings, &sketch),
            _ => settings.get(&keys::THRESHOLD),
        };
        let threshold = threshold.unwrap_or(0.8);
        let documents = settings.get(&keys::DOCUMENTS).unwrap_or(BlockingParams::DOCUMENTS);
        let (blocking, also) = blocking::plan(&mut settings, kinds, &scheme, threshold, documents);
        let filter = filter::plan(&mut settings, &scheme, threshold, &params);
        let finds_items = kinds.any(BlockingKind::Reference);
        let expand_limit = match (finds_items, &scheme.units) {
            // Copies are no pairs, and each has its own.
            (true, _) => usize::MAX,
            // A cluster is the same, and a unit may have a million copies.
            (false, Some(_)) => 1,
            (false, None) => settings.get(&keys::EXPAND_LIMIT).unwrap_or(1000),
        };
        let clusters = settings.get(&keys::CLUSTERS).unwrap_or_default();
        let cluster_limit = settings.get(&keys::CLUSTER_LIMIT).unwrap_or(Clusters::LIMIT);
        let keep = settings.get(&keys::KEEP).unwrap_or_default();
        let remove_if = remove_if(&mut settings, &scheme, threshold).filter(|_| !finds_items);
        let item_limit = settings.get(&keys::ITEM_LIMIT).unwrap_or(96);
        let retention = Retention {
            max_age: settings.get(&keys::MAX_AGE),
            max_documents: settings.get(&keys::MAX_DOCUMENTS),
            clock: settings.get(&keys::RETENTION_CLOCK).unwrap_or_default(),
        };
        let on_error = settings.get(&keys::ON_ERROR).unwrap_or_default();
        let set = settings.resolved(names_file);
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
                    remove_if,
                    item_limit,
                    retention,
                    on_error,
                    settings: set,
                };
                Ok(Self { plan, table })
            }
            (problems, ..) => Err(ConfigError::Problems(problems)),
        }
    }

    /// The plan with the table of document frequencies that it names. The table is taken from `tables`, or
    /// read or counted.
    ///
    /// # Errors
    /// If there is no such table, or it was counted under other text rules.
    pub fn read(self, tables: &mut FrozenTables) -> Result<Plan, ConfigError> {
        let Self { mut plan, table } = self;
        if let Some(source) = table {
            let read = tables.read(&source, &plan.scheme.text)?;
            if let Weights::TfIdf(idf, _) = &mut plan.scheme.text.weights {
                *idf = Idf::Frozen(read);
            }
        }
        Ok(plan)
    }

    /// How texts become features, before they are weighted.
    pub fn text(&self) -> &TextRules {
        &self.plan.scheme.text
    }

    /// What decides about candidates; it does not depend on the table.
    pub fn filter(&self) -> &FilterPlan {
        &self.plan.filter
    }
}

/// From which share on a document goes if another contains it: by default the threshold, where shares are
/// exact.
fn remove_if(settings: &mut FileSettings, scheme: &Scheme, threshold: f64) -> Option<f64> {
    let (kind, is_exact) = (scheme.sketch.kind.name(), scheme.exact);
    if scheme.sketch.scaled().is_none() {
        without_effect(settings, "sketch.kind", kind, &[keys::REMOVE_IF.name]);
        return None;
    }
    without_effect(settings, "sketch.kind", kind, &[keys::KEEP.name()]);
    if !is_exact {
        without_effect(settings, "filter.verify", "sketch", &[keys::REMOVE_IF.name]);
        return None;
    }
    let least = settings.get(&keys::REMOVE_IF).unwrap_or(threshold);
    // A share that the file sets does not apply if an override sets a greater threshold.
    if least < threshold && settings.applies_with(keys::REMOVE_IF.name, "threshold") {
        let what = format!("asks for pairs below threshold = {threshold}, which are not found");
        settings.problem(keys::REMOVE_IF.name, ProblemKind::Contradiction(what));
    }
    Some(least.max(threshold))
}

/// Reads the rule on fields; reports one that cannot be parsed.
fn pair_rule(settings: &mut FileSettings) -> PairRule {
    let typed = settings.get(&keys::WHERE).unwrap_or_default();
    PairRule::parse(&typed).unwrap_or_else(|error| {
        settings.problem(keys::WHERE.name, ProblemKind::Contradiction(error.to_string()));
        PairRule::default()
    })
}

impl Plan {
    /// The file that `pipeline` names; `None` for the name of a built-in pipeline.
    pub fn file(pipeline: &str) -> Option<&Path> {
        let is_path = pipeline.contains(['/', std::path::MAIN_SEPARATOR]) || pipeline.ends_with(".toml");
        is_path.then_some(Path::new(pipeline))
    }

    /// [`Draft::load`], then [`Draft::read`].
    ///
    /// # Errors
    /// If there is no such pipeline; otherwise all of its problems at once, or the problem of its table.
    pub fn load(pipeline: &str, overrides: &[String]) -> Result<Self, ConfigError> {
        Draft::load(pipeline, overrides)?.read(&mut FrozenTables::default())
    }

    /// [`Draft::parse`], then [`Draft::read`].
    ///
    /// # Errors
    /// All problems of the pipeline at once, or the problem of its table.
    pub fn parse(name: &str, text: &str, folder: &Path, overrides: &[String]) -> Result<Self, ConfigError> {
        Draft::parse(name, text, folder, overrides)?.read(&mut FrozenTables::default())
    }
}
