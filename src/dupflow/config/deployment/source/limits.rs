//! What bounds a source: bad records, epochs; and the fields of its documents.

use std::time::Duration;

use super::place::SourceConfig;
use crate::config::deployment::values::time;
use crate::config::settings::{ConfigValue, FileSettings, ProblemKind};
use dupflow_connectors::intake::EpochLimits;
use dupflow_core::doc::fields::{FieldRule, FieldRules};

/// The greatest share of bad records, from 0 to 1, inclusive; `None` for any.
pub(in crate::config::deployment) fn max_bad(settings: &mut FileSettings) -> Option<f64> {
    let share = |value: &ConfigValue| match value.text() {
        Some("") => Some(None),
        _ => value.number().filter(|share| (0.0..=1.0).contains(share)).map(Some),
    };
    settings.read("source.max_bad", share).flatten()
}

/// The greatest number of unread files; `None` for the default.
pub(in crate::config::deployment) fn max_unread(settings: &mut FileSettings) -> Option<u64> {
    let files = |value: &ConfigValue| match value.text() {
        Some("") => Some(None),
        _ => value.integer(0..=1 << 53).map(Some),
    };
    settings.read("source.max_unread", files).flatten()
}

/// Reads the table `[commit]`: when the epochs of a topic or table end.
pub(in crate::config::deployment) fn commit(
    settings: &mut FileSettings,
    source: &SourceConfig,
) -> EpochLimits {
    if !source.is_cut_by_limits() {
        return EpochLimits::default();
    }
    let most = 1_u64 << 53;
    let bound = Duration::from_secs(60);
    EpochLimits {
        interval: Some(time(settings, "commit.interval", bound).unwrap_or(Duration::from_millis(100))),
        records: Some(settings.read("commit.records", |v| v.integer(1..=most)).unwrap_or(10_000)),
        bytes: Some(settings.read("commit.bytes", |v| v.bytes(1..=most)).unwrap_or(16 << 20)),
    }
}

const FIELDS_KEY: &str = "source.fields";

/// Reads the fields; reports each that is no field, and a name that two have.
pub(in crate::config::deployment) fn fields(settings: &mut FileSettings) -> FieldRules {
    let text = |value: &ConfigValue| value.text().map(str::to_owned);
    let typed = settings.read(FIELDS_KEY, |value| value.list(text)).unwrap_or_default();
    let mut rules = Vec::new();
    for one in typed {
        match FieldRule::parse(&one) {
            Ok(rule) => rules.push(rule),
            Err(error) => settings.problem(FIELDS_KEY, ProblemKind::Contradiction(error.to_string())),
        }
    }
    FieldRules::new(rules).unwrap_or_else(|name| {
        let what = format!("two fields are named {name:?}; name one of them, as in \"other = {name}\"");
        settings.problem(FIELDS_KEY, ProblemKind::Contradiction(what));
        FieldRules::default()
    })
}

/// Reports a field whose column is that of the text.
pub(super) fn reject_text(settings: &mut FileSettings, fields: &FieldRules, text: &str) {
    if fields.columns().iter().any(|column| column == text) {
        let what = format!("{text:?} is the text of the documents, which is no field");
        settings.problem(FIELDS_KEY, ProblemKind::Contradiction(what));
    }
}
