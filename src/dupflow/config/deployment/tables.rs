//! Databases in a deployment file: the table that is read, and the tables that are written.

use std::time::Duration;

use super::values::{Database, path, secret, secret_in_file, time};
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

/// Keys of the tables that are written.
pub(super) const SINK_KEYS: [DeploymentKey; 4] = [
    DeploymentKey { name: "sink.url", expected: URL },
    DeploymentKey { name: "sink.url_file", expected: "a path, or \"\" for none" },
    DeploymentKey { name: "sink.schema", expected: "the name of a schema, 1 to 63 bytes" },
    DeploymentKey {
        name: "sink.prefix",
        expected: "what stands before the names of tables, at most 40 bytes",
    },
];

pub(super) const URL: &str = "an address, as in \"postgres://user@host:5432/database\"";
const COLUMN: &str = "the name of a column";

/// Default time limit for connecting to a server, unless its address sets another one.
const PATIENCE: Duration = Duration::from_secs(30);

/// Default schema of the tables that are written to a server.
const SCHEMA: &str = "dupflow";

/// The keys that hold the address of a database.
struct AddressKeys {
    kind: &'static str,
    path: &'static str,
    url: &'static str,
    url_file: &'static str,
}

const FROM: AddressKeys =
    AddressKeys { kind: "source.kind", path: "source.path", url: "source.url", url_file: "source.url_file" };
const INTO: AddressKeys =
    AddressKeys { kind: "sink.kind", path: "sink.path", url: "sink.url", url_file: "sink.url_file" };

const WATCHED: AddressKeys =
    AddressKeys { kind: "watch.table", path: "watch.database", url: "watch.url", url_file: "watch.url_file" };

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
fn address(settings: &mut FileSettings, keys: &AddressKeys, database: Database) -> Address {
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

/// Tables that a run writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablesConfig {
    /// The address of the database.
    pub address: Address,
    /// The schema of a server; without meaning for a file.
    pub schema: String,
    /// The prefix of the table names.
    pub prefix: String,
    /// Time limit for connecting to a server.
    pub patience: Duration,
}

impl TablesConfig {
    /// Why changes have no times there.
    pub const NO_TIMES: &str = "a database has no columns for times";

    /// Why pairs with a reference cannot be written there.
    pub const NO_SIDE: &str = "tables have no column for the side";

    /// The tables that "sqlite:FILE" or "postgres://…" names, in the default schema and without a prefix;
    /// `None` of what names no database.
    ///
    /// # Errors
    /// Why there are no such tables.
    pub fn from_typed(typed: &str) -> Option<Result<Self, String>> {
        let address = match typed.strip_prefix("sqlite:") {
            Some(path) => Address::Sqlite(path.into()),
            None if typed.starts_with("postgres://") || typed.starts_with("postgresql://") => {
                Address::Postgres(Credential::new(typed))
            }
            None => return elsewhere(typed).map(Err),
        };
        let problem = match &address {
            Address::Sqlite(path) if path.as_os_str().is_empty() => {
                Some("name a file, as in \"sqlite:pairs.db\"".to_owned())
            }
            Address::Sqlite(_) => Database::Sqlite.missing().or_else(|| in_memory(&address)),
            #[cfg(feature = "postgres")]
            Address::Postgres(url) => dupflow_connectors::tables::database::postgres::config(url).err(),
            #[cfg(not(feature = "postgres"))]
            Address::Postgres(_) => Database::Postgres.missing(),
        };
        let tables = Self { address, schema: SCHEMA.to_owned(), prefix: String::new(), patience: PATIENCE };
        Some(problem.map_or(Ok(tables), Err))
    }
}

/// What to do instead, if an address names neither a file nor a database.
fn elsewhere(typed: &str) -> Option<String> {
    let (scheme, _) = typed.split_once(':')?;
    let database = "the tables of a database are \"sqlite:FILE\" or \"postgres://…\"";
    match scheme {
        "sqlite3" | "mysql" | "mariadb" | "duckdb" | "jdbc" => Some(database.to_owned()),
        _ if typed.contains("://") => Some(format!("\"{scheme}:\" names no file; {database}")),
        _ => None,
    }
}

/// Why tables cannot be in memory, if that is where they are to be.
fn in_memory(address: &Address) -> Option<String> {
    let is_in_memory = *address == Address::Sqlite(":memory:".into());
    is_in_memory.then(|| "tables in memory are gone with the run: name a file".to_owned())
}

/// Reads `[sink]` for tables that are written.
pub(super) fn sink(settings: &mut FileSettings, database: Database) -> TablesConfig {
    let address = address(settings, &INTO, database);
    if database == Database::Sqlite {
        without_effect(settings, "sink.kind", "sqlite", &["sink.schema"]);
    }
    if let Some(what) = in_memory(&address) {
        settings.problem("sink.path", ProblemKind::Contradiction(what));
    }
    let name = |most: usize| {
        move |value: &ConfigValue| {
            value.text().filter(|name| name.len() <= most && !name.contains('\0')).map(str::to_owned)
        }
    };
    let schema = settings.read("sink.schema", |v| name(63)(v).filter(|schema| !schema.is_empty()));
    let prefix = settings.read("sink.prefix", name(40)).unwrap_or_default();
    if database == Database::Sqlite && prefix.to_ascii_lowercase().starts_with("sqlite_") {
        let what = "SQLite keeps names that begin with \"sqlite_\" to itself".to_owned();
        settings.problem("sink.prefix", ProblemKind::Contradiction(what));
    }
    TablesConfig { address, schema: schema.unwrap_or_else(|| SCHEMA.to_owned()), prefix, patience: PATIENCE }
}
