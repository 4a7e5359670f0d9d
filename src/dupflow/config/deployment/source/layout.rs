//! How records of files are mapped to documents, by the keys of a table.

use crate::config::deployment::values::dotted_names;
use crate::config::settings::{ConfigValue, FileSettings, ProblemKind, without_effect};
use dupflow_connectors::formats::{
    CsvQuote, FileFormat, IdRule, InputLayout, NotFoundRule, SurrogateRule, WarcId,
};

/// The values of `csv.quote`.
pub(in crate::config::deployment) const QUOTE_EXPECTED: &str =
    "one character of ASCII that is no letter, or \"none\" for a table without quotes; \"\": a double quote";

/// The keys of a layout.
pub(super) struct LayoutKeys {
    pub(super) format: &'static str,
    pub(super) id: &'static str,
    pub(super) text: &'static str,
    pub(super) ts: Option<&'static str>,
    pub(super) op: &'static str,
    pub(super) csv_delimiter: &'static str,
    pub(super) csv_escape: &'static str,
    pub(super) csv_quote: &'static str,
    pub(super) surrogates: &'static str,
    pub(super) warc_id: &'static str,
    pub(super) warc_not_found: Option<&'static str>,
    pub(super) ids: &'static str,
    /// Values of `ids`.
    pub(super) id_rules: &'static [(&'static str, IdRule)],
    pub(super) canonical_url: &'static str,
}

/// How records of files are mapped to documents.
pub(super) fn layout(settings: &mut FileSettings, keys: &LayoutKeys) -> InputLayout {
    let default = InputLayout::default();
    let named = FileFormat::all().iter().map(|format| (format.name(), Some(*format)));
    let of_files: Vec<_> = std::iter::once(("auto", None)).chain(named).collect();
    let name = |value: &ConfigValue| match value.text()? {
        "" => Some(None),
        path => dotted_names(path).map(|names| Some(names.join("."))),
    };
    let layout = InputLayout {
        format: settings.choose(keys.format, &of_files, &[]).flatten(),
        id: settings.read(keys.id, name).flatten().unwrap_or(default.id),
        text: settings.read(keys.text, name).flatten().unwrap_or(default.text),
        ts: keys.ts.and_then(|ts| settings.read(ts, name).flatten()).unwrap_or(default.ts),
        op: settings.read(keys.op, operation).unwrap_or(default.op),
        csv_delimiter: settings.read(keys.csv_delimiter, separator).flatten(),
        csv_escape: settings.read(keys.csv_escape, separator).flatten(),
        csv_quote: settings.read(keys.csv_quote, quote).unwrap_or_default(),
        surrogates: surrogates(settings, keys.surrogates),
        warc_id: settings
            .choose(keys.warc_id, &[("record", WarcId::Record), ("uri", WarcId::Uri)], &[])
            .unwrap_or_default(),
        ids: ids(settings, keys),
        canonical_url: settings.read(keys.canonical_url, ConfigValue::boolean).unwrap_or_default(),
        needs_ids: false,
        warc_not_found: keys
            .warc_not_found
            .and_then(|key| settings.choose(key, &NOT_FOUND, &[]))
            .unwrap_or_default(),
    };
    if let (Some(key), Some(what)) = (keys.warc_not_found, layout.warc_conflict())
        && settings.sound(&[keys.warc_id])
    {
        settings.problem(key, ProblemKind::Contradiction(what.to_owned()));
    }
    layout
}

/// The values of `warc.not_found`.
const NOT_FOUND: [(&str, NotFoundRule); 2] = [("skip", NotFoundRule::Skip), ("delete", NotFoundRule::Delete)];

/// The field of the operation; empty for none.
pub(super) fn operation(value: &ConfigValue) -> Option<String> {
    match value.text()? {
        "" => Some(String::new()),
        path => dotted_names(path).map(|names| names.join(".")),
    }
}

/// What encloses cells; an empty text is what is usual.
fn quote(value: &ConfigValue) -> Option<CsvQuote> {
    match value.text()? {
        "" => Some(CsvQuote::Usual),
        typed => CsvQuote::parse(typed).ok(),
    }
}

/// What lone surrogates mean.
pub(super) fn surrogates(settings: &mut FileSettings, key: &'static str) -> SurrogateRule {
    let rules = [("bad", SurrogateRule::Bad), ("replace", SurrogateRule::Replace)];
    settings.choose(key, &rules, &[]).unwrap_or_default()
}

/// A column separator or an escape character: one byte, or `None` for an empty text.
fn separator(value: &ConfigValue) -> Option<Option<u8>> {
    match value.text()? {
        "" => Some(None),
        typed => InputLayout::separator(typed).ok().map(Some),
    }
}

/// What an id that occurs in several files means.
fn ids(settings: &mut FileSettings, keys: &LayoutKeys) -> IdRule {
    let ids = settings.choose(keys.ids, keys.id_rules, &[]).unwrap_or_default();
    if ids == IdRule::File {
        without_effect(settings, keys.ids, "file", &[keys.id, keys.canonical_url]);
    }
    ids
}
