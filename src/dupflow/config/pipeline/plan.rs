//! A [`Plan`]: everything that a pipeline decides, and what is made of it.

use std::collections::BTreeMap;
use std::io;
use std::path::{Component, Path};
use std::sync::Arc;

use serde_json::Value as Json;

use super::blocking::BlockingPlan;
use super::filter::FilterPlan;
use super::keys::{FIELDS, IDF, STOP_WORDS};
use crate::config::settings::{ConfigError, ConfigKey};
use dupflow_connectors::intake::OnError;
use dupflow_core::block::{Blocking, CombinedBlocking, RuledBlocking};
use dupflow_core::cluster::{ClusterKind, KeepRule};
use dupflow_core::doc::retention::Retention;
use dupflow_core::filter::{PairFilter, RuledFilter, Schedule};
use dupflow_core::pair::Threshold;
use dupflow_core::sketch::Scheme;

/// A validated pipeline: everything that decides what is computed.
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
    /// Sketch to the blocks of a second blocking: a pair that shares a block of either one is a candidate.
    pub also: Option<BlockingPlan>,
    /// The number of documents that the blocks are planned for. It is not part of the
    /// [description](Self::description), which holds the derived bands, rows and tables.
    pub documents: u64,
    /// Candidate to verdict.
    pub filter: FilterPlan,
    /// Most copies of one sketch that are expanded to pairs, inclusive; at least 1.
    pub expand_limit: usize,
    /// Whether clusters are connected components or stars.
    pub clusters: ClusterKind,
    /// Most members of a cluster that is listed member by member, inclusive; at least 2.
    pub cluster_limit: usize,
    /// Which document of a cluster is kept when the others are removed. Each run writes its lists anew, so
    /// this is part of no output and of no [description](Self::description).
    pub keep: KeepRule,
    /// For containment with exact shares: a document is removed if its share in one that stays is at least
    /// this (inclusive), in place of `keep`. As `keep`, part of no description.
    pub remove_if: Option<f64>,
    /// Where items of a reference are looked for: most documents, inclusive, in which one lies that are
    /// reported and removed for it. As `keep`, part of no description.
    pub item_limit: u64,
    /// Which documents stay alive.
    pub retention: Retention,
    /// What a bad record does to the run.
    pub on_error: OnError,
    /// The keys that the file and the overrides set, without those that an override replaced or unset; paths
    /// are relative to the working folder. As overrides of an empty file they give the same plan.
    pub settings: BTreeMap<String, Json>,
}

impl Plan {
    /// Makes the blocking, with the realms of the pipeline's rule.
    ///
    /// # Panics
    /// If bands were designed for a sketch without planes; [`parse`](Self::parse) never does that.
    pub fn blocking(&self) -> Arc<dyn Blocking> {
        let first = self.blocking.make(&self.scheme);
        let all = match &self.also {
            None => first,
            Some(also) => Arc::new(CombinedBlocking::new([first, also.make(&self.scheme)])),
        };
        RuledBlocking::around(all, &self.scheme)
    }

    /// The number of distinct sketches that the blocks are planned for; `None` if no block can be hot. With
    /// more sketches, hot blocks lose pairs.
    pub fn planned_sketches(&self) -> Option<u64> {
        self.blocking().hot_rule().map(|_| self.documents)
    }

    /// Each blocking, with the number of its first table.
    pub fn blockings(&self) -> impl DoubleEndedIterator<Item = (&BlockingPlan, usize)> {
        let behind = self.also.as_ref().map(|also| (also, self.blocking.make(&self.scheme).tables()));
        std::iter::once((&self.blocking, 0)).chain(behind)
    }

    /// The plan whose [settings](Self::settings) these are.
    ///
    /// # Errors
    /// All problems of the settings at once, or the problem of a file that they name.
    pub fn from_settings(name: &str, settings: &BTreeMap<String, Json>) -> Result<Self, ConfigError> {
        let typed = |(key, value): (&String, &Json)| format!("{key}={}", toml_value(value));
        Self::parse(name, "", Path::new(""), &settings.iter().map(typed).collect::<Vec<_>>())
    }

    /// A pipeline file at this place with the [settings](Self::settings), a line each. Relative paths start
    /// from its folder.
    ///
    /// # Errors
    /// If a folder cannot be read, or a path is no UTF-8.
    pub fn toml(&self, file: &Path) -> io::Result<String> {
        let line = |(key, value): (&String, &Json)| {
            let path = value.as_str().filter(|text| names_file(key, text)).map(Path::new);
            let value = match path.filter(|path| path.is_relative()) {
                Some(path) => path_from(file, path)?.into(),
                None => value.clone(),
            };
            // The name of a field may have any characters.
            let key = match key.strip_prefix(FIELDS.name().trim_end_matches('*')) {
                Some(field) => format!("text.fields.{}", toml_value(&field.into())),
                None => key.clone(),
            };
            Ok(format!("{key} = {}\n", toml_value(&value)))
        };
        self.settings.iter().map(line).collect()
    }

    /// Makes the filter, with the rule of the pipeline before it.
    pub fn filter(&self) -> Arc<dyn PairFilter> {
        let inside = self.filter.make();
        let finds_items = self.finds_items() && self.scheme.pairs.has_reference();
        match Threshold::new(self.threshold).filter(|_| finds_items) {
            Some(threshold) => RuledFilter::of_reference(inside, &self.scheme, threshold),
            None => RuledFilter::around(inside, &self.scheme),
        }
    }

    /// Whether documents are searched for those of a reference, and are compared with nothing else.
    pub fn finds_items(&self) -> bool {
        matches!(self.blocking, BlockingPlan::Reference)
    }

    /// The filter for a run that writes no similarity: it accepts the same pairs, but skips estimates that
    /// cost time.
    pub fn membership_filter(&self) -> Arc<dyn PairFilter> {
        let filter = self.filter();
        filter.for_membership().unwrap_or(filter)
    }

    /// The looks of the filter with their bounds; `None` for a filter that compares sketches as a whole.
    pub fn schedule(&self) -> Option<&Schedule> {
        self.filter.schedule()
    }
}

/// Whether a text is the path of a file, as the value of this key.
pub(super) fn names_file(key: &str, text: &str) -> bool {
    key == STOP_WORDS.name() || key == IDF.name() && text != "live"
}

/// The path that leads from the folder of `file` to what the working folder has at `path`.
fn path_from(file: &Path, path: &Path) -> io::Result<String> {
    let canonical = |of: &Path| if of == Path::new("") { Path::new(".") } else { of }.canonicalize();
    // A link at the end of a path is kept, since it may lead elsewhere later.
    let to = match path.file_name() {
        Some(name) => canonical(path.parent().unwrap_or(Path::new("")))?.join(name),
        None => canonical(path)?,
    };
    let folder = canonical(file.parent().unwrap_or(Path::new("")))?;
    let shared = folder.components().zip(to.components()).take_while(|(a, b)| a == b).count();
    // What is written into a pipe or to a terminal may become a file anywhere.
    let is_stream = file.metadata().is_ok_and(|there| !there.is_file());
    let found = if is_stream || shared <= 1 {
        to
    } else {
        let above = folder.components().count() - shared;
        let here = (above == 0).then_some(Component::CurDir);
        let up = std::iter::repeat_n(Component::ParentDir, above);
        here.into_iter().chain(up).chain(to.components().skip(shared)).collect()
    };
    let text = found.to_str().map(str::to_owned);
    text.ok_or_else(|| io::Error::other(format!("the path {found:?} is no UTF-8")))
}

/// A text, a number, a truth value or a list as TOML.
fn toml_value(value: &Json) -> String {
    match value {
        Json::String(text) => toml::Value::String(text.clone()).to_string(),
        Json::Array(values) => format!("[{}]", values.iter().map(toml_value).collect::<Vec<_>>().join(", ")),
        plain => plain.to_string(),
    }
}
