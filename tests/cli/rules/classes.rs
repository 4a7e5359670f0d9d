//! What each key decides.

/// What a key decides.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) enum Class {
    /// Which document a record becomes, its text and its fields included.
    Documents,
    /// Which inputs are read. They are compared by their names and contents.
    Inputs,
    /// The documents of the reference, which each start reads.
    Reference,
    /// The watches, which each start reads.
    Watches,
    /// Nothing of these: how fast, how often and from where something is read.
    Nothing,
}

use Class::{Documents, Inputs, Nothing, Reference, Watches};

/// Every key of these tables.
pub(super) const CLASSES: &[(&str, Class)] = &[
    ("source.kind", Documents),
    ("source.inputs", Inputs),
    ("source.files_from", Inputs),
    ("source.epoch", Nothing),
    ("source.speed", Nothing),
    ("source.topic", Inputs),
    ("source.start", Inputs),
    ("source.format", Documents),
    ("source.text_path", Documents),
    ("source.id_path", Documents),
    ("source.ts_path", Documents),
    ("source.op_path", Documents),
    ("source.headers", Documents),
    ("source.fields", Documents),
    ("source.refresh_seconds", Nothing),
    ("source.ids", Documents),
    ("source.canonical_url", Documents),
    ("source.max_bad", Nothing),
    ("source.max_unread", Nothing),
    ("source.path", Inputs),
    ("source.url", Inputs),
    ("source.url_file", Inputs),
    ("source.table", Documents),
    ("source.query", Documents),
    ("source.id", Documents),
    ("source.text", Documents),
    ("source.order", Documents),
    ("source.deleted", Documents),
    ("source.ts", Documents),
    ("source.page", Nothing),
    ("source.poll", Nothing),
    ("source.overlap", Nothing),
    ("source.follow", Nothing),
    ("source.regression", Nothing),
    ("source.row_security", Nothing),
    // What happens to documents of inputs that are gone: `arrivals`.
    ("source.gone", Nothing),
    ("source.journal", Inputs),
    ("source.waiting", Nothing),
    ("csv.delimiter", Documents),
    ("csv.escape", Documents),
    ("csv.quote", Documents),
    ("json.surrogates", Documents),
    ("warc.id", Documents),
    ("warc.not_found", Documents),
    ("reference.inputs", Reference),
    ("reference.format", Reference),
    ("reference.id_path", Reference),
    ("reference.text_path", Reference),
    ("reference.op_path", Reference),
    ("reference.ids", Reference),
    ("reference.canonical_url", Reference),
    ("reference.csv_delimiter", Reference),
    ("reference.csv_escape", Reference),
    ("reference.csv_quote", Reference),
    ("reference.json_surrogates", Reference),
    ("reference.warc_id", Reference),
    ("watch.path", Watches),
    ("watch.inputs", Watches),
    ("watch.topic", Watches),
    ("watch.database", Watches),
    ("watch.url", Watches),
    ("watch.url_file", Watches),
    ("watch.table", Watches),
    ("watch.id", Watches),
    ("watch.text", Watches),
    ("watch.order", Nothing),
    ("watch.refresh", Nothing),
    ("text.features", Documents),
    ("text.shingle", Documents),
    ("text.spaceless", Documents),
    ("text.marks", Documents),
    ("text.normalize", Documents),
    ("text.invisible", Documents),
    ("text.fold", Documents),
    ("text.secret", Documents),
    ("text.html", Documents),
    ("text.stop_words", Documents),
    ("text.stem", Documents),
    ("text.split", Documents),
    ("text.split_least", Documents),
    ("text.fields.*", Documents),
    ("text.weights", Documents),
    ("text.idf", Documents),
    ("text.idf_form", Documents),
    ("text.idf_growth", Documents),
];

/// Keys of other tables that decide documents too.
pub(super) const ALSO: &[&str] = &["retention.max_age", "retention.max_documents"];

/// Keys whose change needs a server (`tests/kafka/rules.rs`), and keys of pipelines that a run refuses, or
/// whose result depends on history (`tests/cli/units.rs`, `tests/model/live.rs`).
pub(super) const ELSEWHERE: &[&str] = &[
    "source.headers",
    // What these allow is refused otherwise: `json_forms`.
    "reference.op_path",
    "reference.json_surrogates",
    "watch.topic",
    "watch.url",
    "watch.url_file",
    "text.split",
    "text.split_least",
    "text.idf_growth",
    // No pair changes: `letters`.
    "text.secret",
];

/// Keys that decide where documents are found again, and not which there are.
pub(super) const SAME_RESULT: &[&str] = &["source.order"];
