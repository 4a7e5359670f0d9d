//! Values that several tables of a deployment file have: kinds of systems, secrets, paths, names, durations.

use std::path::PathBuf;
use std::time::Duration;

use crate::config::settings::{ConfigValue, DeploymentKey, FileSettings, ProblemKind};
use dupflow_connectors::credential::Credential;
use dupflow_connectors::formats::named_path;
use dupflow_connectors::intake::interval;
use dupflow_run::missing_feature;

/// A secret; no message shows it.
pub(super) fn secret(settings: &mut FileSettings, key: &str) -> Option<Credential> {
    match settings.secret(key, ConfigValue::scalar)? {
        Ok(text) => Some(Credential::new(text)),
        Err(()) => {
            let what = "expected text, a number, true or false".to_owned();
            settings.problem(key, ProblemKind::Contradiction(what));
            None
        }
    }
}

/// A secret that a file holds; `None` for an empty path.
pub(super) fn secret_in_file(settings: &mut FileSettings, key: &str) -> Option<Credential> {
    let path = settings.read(key, path).filter(|path| !path.as_os_str().is_empty())?;
    Credential::from_file(&path).map_err(|what| settings.problem(key, ProblemKind::Contradiction(what))).ok()
}

pub(super) fn path(value: &ConfigValue) -> Option<PathBuf> {
    value.text().map(PathBuf::from)
}

/// A whole number of seconds from `least` to 3600, both inclusive.
pub(super) fn seconds(settings: &mut FileSettings, key: &str, least: u64, default: u64) -> Duration {
    Duration::from_secs(settings.read(key, |v| v.integer(least..=3600)).unwrap_or(default))
}

/// A duration with its unit, as in "100ms"; at most `most`, inclusive.
pub(super) fn time(settings: &mut FileSettings, key: &str, most: Duration) -> Option<Duration> {
    settings.read(key, |v| interval(v.text()?).filter(|time| *time <= most))
}

/// The names of a dotted path; `None` if it is empty.
pub(super) fn dotted_names(path: &str) -> Option<Vec<String>> {
    (!path.is_empty()).then(|| named_path(path))
}

/// The names of these keys.
pub(super) const fn key_names<const N: usize>(keys: &[DeploymentKey; N]) -> [&'static str; N] {
    let mut names = [""; N];
    let mut at = 0;
    while at < N {
        names[at] = keys[at].name;
        at += 1;
    }
    names
}

/// The kind of database.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Database {
    Sqlite,
    Postgres,
}

impl Database {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::Sqlite => "sqlite",
            Self::Postgres => "postgres",
        }
    }

    /// The problem if this build lacks the database.
    pub(super) fn missing(self) -> Option<String> {
        let (is_there, what) = match self {
            Self::Sqlite => (cfg!(feature = "sqlite"), "SQLite"),
            Self::Postgres => (cfg!(feature = "postgres"), "PostgreSQL"),
        };
        (!is_there).then(|| missing_feature(what, self.name()))
    }
}

/// The name of a topic; reports a problem if it is not set.
pub(super) fn required_topic(settings: &mut FileSettings, key: &'static str) -> Option<String> {
    let kind = if key.starts_with("source") { "source.kind" } else { "sink.kind" };
    let name = settings.read(key, topic_name);
    if name.is_none() && settings.sound(&[kind, key]) {
        settings.missing(key);
    }
    name
}

/// Reads a name; `None` if it is empty or not set.
pub(super) fn optional(
    settings: &mut FileSettings,
    key: &str,
    read: impl FnOnce(&ConfigValue) -> Option<String>,
) -> Option<String> {
    settings
        .read(key, |value| if value.text() == Some("") { Some(None) } else { read(value).map(Some) })
        .flatten()
}

/// The name of a table of rows beside the deltas: 1 to 32 of the characters a-z, 0-9 and `_`.
pub(super) fn side_table(value: &ConfigValue) -> Option<String> {
    let fits = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    let name = value.text().filter(|name| (1..=32).contains(&name.len()))?;
    name.bytes().all(fits).then(|| name.to_owned())
}

/// A valid topic name: 1 to 249 of the characters a-z, A-Z, 0-9, `.`, `_` and `-`, and neither `.` nor `..`.
pub(super) fn topic_name(value: &ConfigValue) -> Option<String> {
    value.text().filter(|name| is_topic_name(name)).map(str::to_owned)
}

/// Whether a broker takes a name of a topic.
pub(super) fn is_topic_name(name: &str) -> bool {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'.' | b'_' | b'-');
    (1..=249).contains(&name.len()) && name.bytes().all(fits) && !matches!(name, "." | "..")
}
