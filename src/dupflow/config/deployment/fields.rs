//! The key `source.fields`: the fields of documents.

use crate::config::settings::{ConfigValue, FileSettings, ProblemKind};
use dupflow_core::doc::fields::{FieldRule, FieldRules};

const KEY: &str = "source.fields";

/// Reads the fields; reports each that is no field, and a name that two have.
pub(super) fn fields(settings: &mut FileSettings) -> FieldRules {
    let text = |value: &ConfigValue| value.text().map(str::to_owned);
    let typed = settings.read(KEY, |value| value.list(text)).unwrap_or_default();
    let mut rules = Vec::new();
    for one in typed {
        match FieldRule::parse(&one) {
            Ok(rule) => rules.push(rule),
            Err(error) => settings.problem(KEY, ProblemKind::Contradiction(error.to_string())),
        }
    }
    FieldRules::new(rules).unwrap_or_else(|name| {
        let what = format!("two fields are named {name:?}; name one of them, as in \"other = {name}\"");
        settings.problem(KEY, ProblemKind::Contradiction(what));
        FieldRules::default()
    })
}

/// Reports a field whose column is that of the text.
pub(super) fn reject_text(settings: &mut FileSettings, fields: &FieldRules, text: &str) {
    if fields.columns().iter().any(|column| column == text) {
        let what = format!("{text:?} is the text of the documents, which is no field");
        settings.problem(KEY, ProblemKind::Contradiction(what));
    }
}
