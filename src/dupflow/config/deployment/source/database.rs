//! A table of a database as the source.

use super::place::{SourceConfig, SourceKind, SourcePlace, SourceSettings, fields_of};
use super::topic::COMMIT_KEYS;
use crate::config::deployment::tables;
use crate::config::deployment::values::Database;
use crate::config::settings::FileSettings;
use dupflow_connectors::intake::Source;
use dupflow_connectors::tables::database::Address;
use dupflow_connectors::tables::{DatabaseTable, Relation, TableSource};
use dupflow_core::description::{Description, FieldValue};
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::hash;

pub(super) const SQLITE: SourceKind = SourceKind {
    name: "sqlite",
    keys: KEYS,
    missing: || Database::Sqlite.missing(),
    read: |settings, fields| read(settings, Database::Sqlite, fields),
};

pub(super) const POSTGRES: SourceKind = SourceKind {
    name: "postgres",
    keys: KEYS,
    missing: || Database::Postgres.missing(),
    read: |settings, fields| read(settings, Database::Postgres, fields),
};

const KEYS: &[&[&str]] = &[&tables::SOURCE_KEY_NAMES, &COMMIT_KEYS];

/// A table.
#[derive(Clone, Debug, PartialEq)]
pub struct DatabaseSource(pub DatabaseTable);

/// The database of a table. It may have another address and be the same.
pub const SOURCE_DATABASE: &str = "the database";

/// The settings are column names, and each start compares its rows with the output.
impl SourcePlace for DatabaseSource {
    fn name(&self) -> String {
        self.0.name()
    }

    fn text(&self) -> String {
        self.0.text.clone()
    }

    fn further_description(&self) -> Description {
        let Self(table) = self;
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
        let described = Description::new().with("source.kind", kind).with(SOURCE_DATABASE, place);
        columns.into_iter().chain(optional).fold(described, |all, (key, value)| all.with(key, &**value))
    }

    fn shared(&self) -> Description {
        Description::new().with("source.table", fields_of(&self.0).as_str())
    }

    fn open(&self, of: SourceSettings<'_>) -> Box<dyn Source> {
        let table = self.0.clone();
        Box::new(TableSource::new(DatabaseTable { limits: of.limits, is_here: of.share.index == 0, ..table }))
    }
}

fn read(settings: &mut FileSettings, database: Database, fields: &FieldRules) -> SourceConfig {
    SourceConfig::new(DatabaseSource(tables::source(settings, database, fields)))
}

/// A hash of the server and the name of the database, without user, password and options.
fn server(url: &str) -> u64 {
    let behind_user = url.rsplit('@').next().unwrap_or_default();
    let place = if url.contains("://") { behind_user.split('?').next().unwrap_or_default() } else { "" };
    hash::bytes(0, place.as_bytes())
}
