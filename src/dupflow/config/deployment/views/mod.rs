//! The tables `[[view]]` of a deployment file, or of a file of its own for a replay: aggregates of the corpus
//! that a run keeps current.

use std::collections::BTreeSet;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::outputs::{OutputPlace, check_side};
use super::values::{optional, path, side_table, topic_name};
use crate::config::settings::{
    ConfigError, ConfigValue, DeploymentKey, FileSettings, ProblemKind, read_file,
};
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::views::{GroupPart, SIZE, ViewKind, ViewMeasure, ViewPlan};
use dupflow_run::missing_feature;

/// The keys of `[[view]]`.
pub(in crate::config) const KEYS: [DeploymentKey; 7] = [
    DeploymentKey {
        name: "view.#.name",
        expected: "a name of a-z, A-Z, 0-9, \"_\" and \"-\", 1 to 64 characters",
    },
    DeploymentKey { name: "view.#.of", expected: "\"pairs\", \"documents\" or \"clusters\"" },
    DeploymentKey {
        name: "view.#.group",
        expected: "a list of names of source.fields; of clusters also \"cluster.size\"",
    },
    DeploymentKey { name: "view.#.measure", expected: "\"count\", or \"top:K\" with K from 1 to 1000" },
    DeploymentKey { name: "view.#.output", expected: "a path, or \"\" for none" },
    DeploymentKey { name: "view.#.topic", expected: "the name of a topic, or \"\" for none" },
    DeploymentKey { name: "view.#.table", expected: "a name of a-z, 0-9 and \"_\", or \"\" for none" },
];

/// Most views of a run, inclusive.
const MOST_VIEWS: usize = 64;

/// A view, and where the changes of its rows are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewConfig {
    /// What is kept.
    pub plan: ViewPlan,
    /// The file of the changes; in a replay a name that ends in `.csv` is that of a table of the final rows.
    pub output: Option<PathBuf>,
    /// The topic of the changes, where the sink is a topic.
    pub topic: Option<String>,
    /// The table of the rows, where the sink is tables.
    pub table: Option<String>,
}

impl ViewConfig {
    /// Loads a file that has views and nothing else. `fields` are those of the source.
    ///
    /// # Errors
    /// If the file cannot be read; otherwise all problems of the file at once.
    pub fn load(path: &Path, fields: &FieldRules) -> Result<Vec<Self>, ConfigError> {
        let mut settings = FileSettings::new(&[&KEYS], &[]);
        settings.add_file(&path.to_string_lossy(), &read_file(path)?, Path::new(""));
        settings.reject_unknown();
        let views = views(&mut settings, fields, &OutputPlace::stdout());
        let problems = settings.finish();
        if problems.is_empty() { Ok(views) } else { Err(ConfigError::Problems(problems)) }
    }

    /// Whether the final rows are written as comma-separated values, instead of every change.
    pub fn is_final(&self) -> bool {
        let ending = self.output.as_deref().and_then(Path::extension).unwrap_or_default();
        ending.eq_ignore_ascii_case("csv")
    }

    /// The key of this view, from 1, for messages.
    pub fn key(at: usize, key: &str) -> String {
        format!("view.{}.{key}", at + 1)
    }
}

/// Reads all views. `fields` are the names of the fields of documents.
pub(super) fn views(settings: &mut FileSettings, fields: &FieldRules, sink: &OutputPlace) -> Vec<ViewConfig> {
    let numbers = settings.numbers("view");
    if numbers.len() > MOST_VIEWS {
        let what = format!("at most {MOST_VIEWS} views are kept by one run, and there are {}", numbers.len());
        settings.problem(&format!("view.{}.name", MOST_VIEWS + 1), ProblemKind::Contradiction(what));
    }
    if let Some(first) = numbers.first().filter(|_| !cfg!(feature = "views")) {
        let what = missing_feature("views", "views");
        settings.problem(&format!("view.{first}.name"), ProblemKind::Contradiction(what));
    }
    let mut names = BTreeSet::new();
    let mut views = Vec::new();
    for number in numbers {
        let key = |name: &str| format!("view.{number}.{name}");
        let name = required(settings, &key("name"), |value| {
            value.text().filter(|name| is_name(name)).map(Arc::<str>::from)
        });
        if let Some(name) = &name
            && !names.insert(Arc::clone(name))
        {
            let what = "another view has this name".to_owned();
            settings.problem(&key("name"), ProblemKind::Contradiction(what));
        }
        let kind = required(settings, &key("of"), kind);
        let measure = settings.read(&key("measure"), measure).unwrap_or(ViewMeasure::Count);
        if kind == Some(ViewKind::Pairs) && measure != ViewMeasure::Count {
            let what = "pairs are counted; the documents with the most pairs are a top of of = \"documents\"";
            settings.problem(&key("measure"), ProblemKind::Contradiction(what.to_owned()));
        }
        let group = group(settings, &key("group"), kind, fields);
        let view = ViewConfig {
            plan: ViewPlan {
                name: name.unwrap_or_else(|| "".into()),
                kind: kind.unwrap_or(ViewKind::Documents),
                group,
                measure,
            },
            output: settings.read(&key("output"), path).filter(|path| !path.as_os_str().is_empty()),
            topic: optional(settings, &key("topic"), topic_name),
            table: optional(settings, &key("table"), side_table),
        };
        check_side(
            settings,
            sink,
            (&key("topic"), view.topic.is_some()),
            (&key("table"), view.table.is_some()),
        );
        views.push(view);
    }
    views
}

/// Reads a key that each view has.
fn required<T>(
    settings: &mut FileSettings,
    key: &str,
    read: impl FnOnce(&ConfigValue) -> Option<T>,
) -> Option<T> {
    if !settings.is_set(key) {
        settings.missing(key);
        return None;
    }
    settings.read(key, read)
}

fn kind(value: &ConfigValue) -> Option<ViewKind> {
    match value.text()? {
        "pairs" => Some(ViewKind::Pairs),
        "documents" => Some(ViewKind::Documents),
        "clusters" => Some(ViewKind::Clusters),
        _ => None,
    }
}

fn measure(value: &ConfigValue) -> Option<ViewMeasure> {
    match value.text()? {
        "count" => Some(ViewMeasure::Count),
        other => {
            let most = other.strip_prefix("top:")?.parse().ok()?;
            (1..=ViewPlan::MOST_TOP).contains(&most).then_some(ViewMeasure::Top(most))
        }
    }
}

/// Reads the fields of a group.
fn group(
    settings: &mut FileSettings,
    key: &str,
    kind: Option<ViewKind>,
    fields: &FieldRules,
) -> Vec<GroupPart> {
    let names = settings.read(key, |value| value.list(|name| name.text().map(str::to_owned)));
    let mut group = Vec::new();
    for name in names.unwrap_or_default() {
        let part = match fields.place(&name) {
            Some(at) => GroupPart::Field { name: name.as_str().into(), at },
            None if name == SIZE && kind == Some(ViewKind::Clusters) => GroupPart::Size,
            None => {
                let there: Vec<_> = fields.rules().iter().map(|rule| format!("{:?}", rule.name())).collect();
                let known = if there.is_empty() { "there are none".to_owned() } else { there.join(", ") };
                let what = format!("no field {name:?} in source.fields (or --field): {known}");
                settings.problem(key, ProblemKind::Contradiction(what));
                continue;
            }
        };
        if group.contains(&part) {
            settings.problem(key, ProblemKind::Contradiction(format!("\"{name}\" is named twice")));
        } else {
            group.push(part);
        }
    }
    group
}

/// Whether this is the name of a view, which is part of a path: 1 to 64 letters, digits, `_` and `-`.
fn is_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-');
    (1..=64).contains(&name.len()) && name.bytes().all(fits)
}
