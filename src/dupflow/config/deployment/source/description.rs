//! The settings of a source that decide which document a record becomes, as named values.
//!
//! Every key of the tables `[source]`, `[csv]`, `[json]` and `[warc]` has a class in `tests/cli/rules.rs`.

use super::SourceConfig;
use dupflow_connectors::formats::{IdRule, SurrogateRule, ValueFormat, WarcId};
use dupflow_connectors::tables::Relation;
use dupflow_connectors::tables::database::Address;
use dupflow_core::description::{Description, FieldValue};
use dupflow_core::hash;

/// Where a topic is read from. It decides nothing where there is a mark, until the input is read again.
pub const SOURCE_START: &str = "source.start";

/// The database of a table. It may have another address and be the same.
pub const SOURCE_PLACE: &str = "the database";

impl SourceConfig {
    /// The settings of the source that decide which documents a record makes, where they differ from the
    /// default. For files it always has `source.kind`; a topic is named in the mark.
    pub fn description(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let mut put = |key, value: String, usual: &str| {
            if value != usual {
                found.push((key, value));
            }
        };
        match self {
            Self::Files { layout, .. } => {
                put("source.kind", "files".to_owned(), "");
                put(
                    "source.format",
                    layout.format.map_or_else(String::new, |format| format.name().to_owned()),
                    "",
                );
                put("source.id_path", layout.id.clone(), "id");
                put("source.text_path", layout.text.clone(), "text");
                put("source.ts_path", layout.ts.clone(), "ts");
                put("source.op_path", operation(&layout.op), "op");
                let byte =
                    |byte: Option<u8>| byte.map_or_else(String::new, |byte| char::from(byte).to_string());
                put("csv.delimiter", byte(layout.csv_delimiter), "");
                put("csv.escape", byte(layout.csv_escape), "");
                put("csv.quote", layout.csv_quote.name().unwrap_or_default(), "");
                put("json.surrogates", surrogates(layout.surrogates), "");
                let ids = match layout.ids {
                    // Both rules give a document the same id.
                    IdRule::Once | IdRule::Last => "",
                    IdRule::File => "file",
                };
                put("source.ids", ids.to_owned(), "");
                put("source.canonical_url", if layout.canonical_url { "true" } else { "" }.to_owned(), "");
                put("warc.id", if layout.warc_id == WarcId::Uri { "uri" } else { "" }.to_owned(), "");
            }
            Self::Kafka { shape, .. } => {
                let format = match shape.format {
                    ValueFormat::Auto | ValueFormat::Row => "",
                    ValueFormat::Text => "text",
                    ValueFormat::Json => "json",
                    ValueFormat::Debezium => "debezium",
                };
                put("source.format", format.to_owned(), "");
                put("source.text_path", shape.text.join("."), "text");
                put("source.ts_path", shape.ts.join("."), "ts");
                put("source.op_path", operation(&shape.op.join(".")), "op");
                put("json.surrogates", surrogates(shape.surrogates), "");
                put("source.id_path", shape.id.as_ref().map_or_else(String::new, |id| id.join(".")), "");
            }
            // The settings of a table are column names, and each start compares its rows with the output.
            Self::Table(_) => {}
        }
        found
    }

    /// The settings of the source that decide its documents and that [`Self::description`] lacks, since marks
    /// of earlier versions do not have them. Empty for files.
    pub fn further_description(&self) -> Description {
        let described = Description::new();
        match self {
            Self::Files { .. } => described,
            Self::Kafka { start, shape, .. } => described
                .with("source.kind", "kafka")
                .with("source.headers", FieldValue::list(&shape.headers))
                .with(SOURCE_START, &*start.to_string()),
            Self::Table(table) => {
                let relation = match &table.relation {
                    Relation::Table(name) => ("source.table", name),
                    Relation::Query(query) => ("source.query", query),
                };
                let columns = [
                    relation,
                    ("source.id", &table.id),
                    ("source.text", &table.text),
                    ("source.order", &table.order),
                ];
                let optional = [("source.deleted", &table.deleted), ("source.ts", &table.ts)];
                let optional = optional.into_iter().filter_map(|(key, column)| Some((key, column.as_ref()?)));
                let (kind, place) = match &table.address {
                    Address::Sqlite(path) => ("sqlite", FieldValue::from(&*path.to_string_lossy())),
                    Address::Postgres(url) => ("postgres", FieldValue::hash(server(url.reveal()))),
                };
                let described = described.with("source.kind", kind).with(SOURCE_PLACE, place);
                columns
                    .into_iter()
                    .chain(optional)
                    .fold(described, |all, (key, value)| all.with(key, &**value))
            }
        }
    }
}

/// The field of the operation; one that is not read is an empty name in quotes.
fn operation(path: &str) -> String {
    if path.is_empty() { "\"\"".to_owned() } else { path.to_owned() }
}

/// What lone surrogates mean; empty for the default.
fn surrogates(rule: SurrogateRule) -> String {
    if rule == SurrogateRule::Replace { "replace".to_owned() } else { String::new() }
}

/// A hash of the server and the name of the database, without user, password and options.
fn server(url: &str) -> u64 {
    let behind_user = url.rsplit('@').next().unwrap_or_default();
    let place = if url.contains("://") { behind_user.split('?').next().unwrap_or_default() } else { "" };
    hash::bytes(0, place.as_bytes())
}
