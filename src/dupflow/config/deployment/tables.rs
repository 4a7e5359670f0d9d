//! Databases in a deployment file: their addresses, and the table that is read.

use std::time::Duration;

use super::values::{Database, key_names, path, secret, secret_in_file, time};
use crate::config::settings::{ConfigValue, DeploymentKey, FileSettings, ProblemKind, without_effect};
use dupflow_connectors::credential::Credential;
use dupflow_connectors::intake::EpochLimits;
use dupflow_connectors::tables::database::Address;
use dupflow_connectors::tables::{DatabaseTable, Regression, Relation, RoundOverlap};
use dupflow_core::doc::fields::FieldRules;

/// Keys of the table that is read.
pub(super) const SOURCE_KEYS: [DeploymentKey; 16] = [
    DeploymentKey { name: "source.path", expected: "the path of a database" },
    DeploymentKey { name: "source.url", expected: URL },
    DeploymentKey { name: "source.url_file", expected: "a path, or \"\" for none" },
    DeploymentKey {
        name: "source.table",
        expected: "the name of a table or a view, as in \"pages\" or \"web.pages\"",
    },
    DeploymentKey { name: "source.query", expected: "a query" },
    DeploymentKey { name: "source.id", expected: COLUMN },
    DeploymentKey { name: "source.text", expected: COLUMN },
    DeploymentKey {
        name: "source.order",
        expected: "the name of a column that grows: updated_at, or a serial number",
    },
    DeploymentKey { name: "source.deleted", expected: "the name of a column, or \"\" for none" },
    DeploymentKey { name: "source.ts", expected: "the name of a column, or \"\" for none" },
    DeploymentKey { name: "source.page", expected: "a whole number from 1 to 100000" },
    DeploymentKey { name: "source.poll", expected: "a time from \"1ms\" to \"3600s\"" },
    DeploymentKey {
        name: "source.overlap",
        expected: "a time from \"1ms\" to \"86400s\", or a whole number from 0 to 2^53",
    },
    DeploymentKey { name: "source.follow", expected: "true or false" },
    DeploymentKey { name: "source.regression", expected: "\"refuse\" or \"read_again\"" },
    DeploymentKey { name: "source.row_security", expected: "true or false" },
];

pub(super) const URL: &str = "an address, as in \"postgres://user@host:5432/database\"";
const COLUMN: &str = "the name of a column";

/// Default time limit for connecting to a server, unless its address sets another one.
pub(super) const PATIENCE: Duration = Duration::from_secs(30);

/// The keys that hold the address of a database.
pub(super) struct AddressKeys {
    pub(super) kind: &'static str,
    path: &'static str,
    url: &'static str,
    url_file: &'static str,
}

const FROM: AddressKeys =
    AddressKeys { kind: "source.kind", path: "source.path", url: "source.url", url_file: "source.url_file" };
pub(super) const INTO: AddressKeys =
    AddressKeys { kind: "sink.kind", path: "sink.path", url: "sink.url", url_file: "sink.url_file" };

const WATCHED: AddressKeys =
    AddressKeys { kind: "watch.table", path: "watch.database", url: "watch.url", url_file: "watch.url_file" };

/// The names of these keys.
pub(super) const SOURCE_KEY_NAMES: [&str; SOURCE_KEYS.len()] = key_names(&SOURCE_KEYS);

/// The address of the table of watches.
pub(super) fn watched(settings: &mut FileSettings, database: Database) -> Address {
    address(settings, &WATCHED, database)
}

/// A table that is read whole and not followed.
pub(super) fn whole_table(
    address: Address,
    table: String,
    id: String,
    text: String,
    order: String,
) -> DatabaseTable {
    DatabaseTable {
        address,
        relation: Relation::Table(table),
        id,
        text,
        order,
        deleted: None,
        ts: None,
        fields: Vec::new(),
        page: 1000,
        poll: Duration::from_secs(1),
        overlap: RoundOverlap { time: Duration::ZERO, number: 0 },
        follow: false,
        patience: PATIENCE,
        limits: EpochLimits::default(),
        is_here: true,
        regression: Regression::Refuse,
        row_security: false,
    }
}

/// The address of a database.
pub(super) fn address(settings: &mut FileSettings, keys: &AddressKeys, database: Database) -> Address {
    match database {
        Database::Sqlite => {
            without_effect(settings, keys.kind, "sqlite", &[keys.url, keys.url_file]);
            let path = settings.read(keys.path, |v| path(v).filter(|path| !path.as_os_str().is_empty()));
            if path.is_none() && settings.sound(&[keys.kind, keys.path]) {
                settings.missing(keys.path);
            }
            Address::Sqlite(path.unwrap_or_default())
        }
        Database::Postgres => {
            without_effect(settings, keys.kind, "postgres", &[keys.path]);
            let typed = secret(settings, keys.url).filter(|url| !url.reveal().is_empty());
            let in_file = secret_in_file(settings, keys.url_file);
            if typed.is_some() && in_file.is_some() {
                let what = format!("{} and {} are both set", keys.url, keys.url_file);
                settings.problem(keys.url_file, ProblemKind::Contradiction(what));
            }
            let url = typed.or(in_file);
            if url.is_none() && settings.sound(&[keys.kind, keys.url, keys.url_file]) {
                settings.missing(keys.url);
            }
            #[cfg(feature = "postgres")]
            if let Some(Err(what)) = url.as_ref().map(dupflow_connectors::tables::database::postgres::config)
            {
                settings.problem(keys.url, ProblemKind::Contradiction(what));
            }
            Address::Postgres(url.unwrap_or_else(|| Credential::new("")))
        }
    }
}

/// Reads `[source]` for a table that is read.
pub(super) fn source(settings: &mut FileSettings, database: Database, fields: &FieldRules) -> DatabaseTable {
    let address = address(settings, &FROM, database);
    let text = |value: &ConfigValue| value.text().filter(|text| !text.trim().is_empty()).map(str::to_owned);
    let maybe = |value: &ConfigValue| {
        value.text().map(|typed| Some(typed.to_owned()).filter(|typed| !typed.is_empty()))
    };
    let (table, query) = (settings.read("source.table", text), settings.read("source.query", text));
    let relation = match (table, query) {
        (Some(_), Some(_)) => {
            let what = "source.table and source.query are both set".to_owned();
            settings.problem("source.query", ProblemKind::Contradiction(what));
            None
        }
        (Some(table), None) => Some(Relation::Table(table)),
        (None, query) => query.map(Relation::Query),
    };
    if relation.is_none() && settings.sound(&["source.kind", "source.table", "source.query"]) {
        settings.missing("source.table");
    }
    let order = settings.read("source.order", text);
    if order.is_none() && settings.sound(&["source.kind", "source.order"]) {
        settings.missing("source.order");
    }
    let default = RoundOverlap { time: Duration::from_secs(60), number: 1000 };
    let overlap = settings.read("source.overlap", |value| match value.integer(0..=1_u64 << 53) {
        Some(number) => Some(RoundOverlap { number, time: Duration::ZERO }),
        None => {
            let time = dupflow_connectors::intake::interval(value.text()?)?;
            (time <= Duration::from_secs(86_400)).then_some(RoundOverlap { time, ..default })
        }
    });
    if database == Database::Sqlite {
        without_effect(settings, "source.kind", "sqlite", &["source.row_security"]);
    }
    let row_security = settings.read("source.row_security", ConfigValue::boolean);
    let every = time(settings, "source.poll", Duration::from_secs(3600));
    DatabaseTable {
        address,
        relation: relation.unwrap_or_else(|| Relation::Table(String::new())),
        id: settings.read("source.id", text).unwrap_or_else(|| "id".to_owned()),
        text: settings.read("source.text", text).unwrap_or_else(|| "text".to_owned()),
        order: order.unwrap_or_default(),
        deleted: settings.read("source.deleted", maybe).flatten(),
        ts: settings.read("source.ts", maybe).flatten(),
        fields: fields.columns().to_vec(),
        page: settings.read("source.page", |v| v.integer(1..=100_000)).unwrap_or(1000),
        poll: every.unwrap_or(Duration::from_secs(1)),
        overlap: overlap.unwrap_or(default),
        follow: settings.read("source.follow", ConfigValue::boolean).unwrap_or(true),
        patience: PATIENCE,
        limits: EpochLimits::default(),
        is_here: true,
        regression: settings
            .read("source.regression", |value| match value.text()? {
                "refuse" => Some(Regression::Refuse),
                "read_again" => Some(Regression::ReadAgain),
                _ => None,
            })
            .unwrap_or_default(),
        row_security: row_security.unwrap_or(false),
    }
}
