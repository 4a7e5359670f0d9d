//! Values that several tables of a deployment have: secrets, paths, durations.

use std::path::PathBuf;
use std::time::Duration;

use super::problem::ProblemKind;
use super::raw::FileSettings;
use super::value::ConfigValue;
use dupflow_connectors::broker::{Secret, from_file};
use dupflow_connectors::source::interval;

/// A secret; no message shows it.
pub(super) fn hidden(settings: &mut FileSettings, key: &str) -> Option<Secret> {
    match settings.hidden(key, ConfigValue::scalar)? {
        Ok(text) => Some(Secret::new(text)),
        Err(()) => {
            let what = "expected text, a number, true or false".to_owned();
            settings.problem(key, ProblemKind::Contradiction(what));
            None
        }
    }
}

/// A secret that a file holds; `None` for an empty path.
pub(super) fn secret_file_value(settings: &mut FileSettings, key: &str) -> Option<Secret> {
    let path = settings.read(key, path).filter(|path| !path.as_os_str().is_empty())?;
    from_file(&path).map_err(|what| settings.problem(key, ProblemKind::Contradiction(what))).ok()
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
