//! Values that several tables of a deployment have: secrets, paths, times.

use std::path::PathBuf;
use std::time::Duration;

use super::problem::What;
use super::raw::Settings;
use super::value::Value;
use dupflow_connectors::credential::Credential;
use dupflow_connectors::intake::interval;

/// A value that no message shows.
pub(super) fn hidden(settings: &mut Settings, key: &str) -> Option<Credential> {
    match settings.hidden(key, Value::scalar)? {
        Ok(text) => Some(Credential::new(text)),
        Err(()) => {
            let what = "expected text, a number, true or false".to_owned();
            settings.problem(key, What::Contradiction(what));
            None
        }
    }
}

/// A value that stands in a file of its own; an empty path is none.
pub(super) fn hidden_file(settings: &mut Settings, key: &str) -> Option<Credential> {
    let path = settings.read(key, path).filter(|path| !path.as_os_str().is_empty())?;
    Credential::from_file(&path).map_err(|what| settings.problem(key, What::Contradiction(what))).ok()
}

pub(super) fn path(value: &Value) -> Option<PathBuf> {
    value.text().map(PathBuf::from)
}

/// A whole number of seconds up to an hour, from `least` on.
pub(super) fn seconds(settings: &mut Settings, key: &str, least: u64, default: u64) -> Duration {
    Duration::from_secs(settings.read(key, |v| v.integer(least..=3600)).unwrap_or(default))
}

/// A time as it is written, up to `most`, inclusive.
pub(super) fn time(settings: &mut Settings, key: &str, most: Duration) -> Option<Duration> {
    settings.read(key, |v| interval(v.text()?).filter(|time| *time <= most))
}
