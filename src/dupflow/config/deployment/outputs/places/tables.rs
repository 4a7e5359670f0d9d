//! Results in the tables of a database.

use std::path::{Path, PathBuf};
use std::time::Duration;

use super::place::{OpenError, OpenedOutput, OutputPlace, OutputSettings, Place, PlaceKind, ReadPlace};
use crate::config::deployment::outputs::{OutputAnswer, OutputFormat};
use crate::config::deployment::tables::{INTO, PATIENCE, address};
use crate::config::deployment::values::Database;
use crate::config::settings::{ConfigValue, FileSettings, ProblemKind, without_effect};
use dupflow_connectors::credential::Credential;
use dupflow_connectors::tables::database::Address;
use dupflow_connectors::tables::{TableOutput, TableSink};

pub(super) const SQLITE: PlaceKind = PlaceKind {
    name: "sqlite",
    keys: &[KEYS],
    missing: || Database::Sqlite.missing(),
    read: ReadPlace {
        table: |settings| OutputPlace::new(TablesPlace::read(settings, Database::Sqlite)),
        typed: |typed| Some(TablesPlace::typed(typed.to_str()?)?.map(OutputPlace::new)),
    },
};

pub(super) const POSTGRES: PlaceKind = PlaceKind {
    name: "postgres",
    keys: &[KEYS],
    missing: || Database::Postgres.missing(),
    read: ReadPlace {
        table: |settings| OutputPlace::new(TablesPlace::read(settings, Database::Postgres)),
        // Both databases are typed as addresses, and read together.
        typed: |_| None,
    },
};

/// The keys of both databases; those of one of them are known to [`address`].
const KEYS: &[&str] = &["sink.path", "sink.url", "sink.url_file", "sink.schema", "sink.prefix"];

/// Default schema of the tables that are written to a server.
const SCHEMA: &str = "dupflow";

/// Tables that a run writes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablesPlace {
    /// The address of the database.
    pub address: Address,
    /// The schema of a server; without meaning for a file.
    pub schema: String,
    /// The prefix of the table names.
    pub prefix: String,
    /// Time limit for connecting to a server.
    pub patience: Duration,
}

impl TablesPlace {
    /// Why changes have no times there.
    pub const NO_TIMES: &str = "a database has no columns for times";

    /// Why pairs with a reference cannot be written there.
    pub const NO_SIDE: &str = "tables have no column for the side";

    fn read(settings: &mut FileSettings, database: Database) -> Self {
        let address = address(settings, &INTO, database);
        if database == Database::Sqlite {
            without_effect(settings, INTO.kind, "sqlite", &["sink.schema"]);
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
        Self { address, schema: schema.unwrap_or_else(|| SCHEMA.to_owned()), prefix, patience: PATIENCE }
    }

    /// The tables that "sqlite:FILE" or "postgres://…" names, in the default schema and without a prefix;
    /// `None` of what names no database.
    ///
    /// # Errors
    /// Why there are no such tables.
    fn typed(typed: &str) -> Option<Result<Self, String>> {
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

impl Place for TablesPlace {
    fn kind(&self) -> &'static str {
        match self.address {
            Address::Sqlite(_) => SQLITE.name,
            Address::Postgres(_) => POSTGRES.name,
        }
    }

    fn name(&self) -> String {
        format!("tables of {}", self.address.name())
    }

    fn refusal(&self, answer: OutputAnswer, _: OutputFormat, _: bool) -> Option<&'static str> {
        if answer.is_list() && answer.copied().is_none() {
            return Some(
                "a database has both lists as views, kept and removed, of the pairs and documents in its \
                 tables: set it to \"pairs\"",
            );
        }
        (!answer.has_similarities()).then_some(
            "a database keeps pairs, clusters and documents: set it to \"pairs\", to \"deltas\" for \
             every change of a pair besides, or to \"decisions\" for the decision of each document \
             besides",
        )
    }

    /// A database keeps current pairs by default; the history of changes only on request.
    fn default_answer(&self) -> OutputAnswer {
        OutputAnswer::named("pairs")
    }

    fn file(&self) -> Option<&Path> {
        self.address.file()
    }

    fn beside(&self, _: OutputAnswer) -> &'static [&'static str] {
        &Address::COMPANION_SUFFIXES
    }

    fn mark_file(&self, _: OutputAnswer) -> Option<PathBuf> {
        self.file().map(ToOwned::to_owned)
    }

    /// The table of changes holds all changes or none.
    fn described(&self, answer: OutputAnswer) -> Vec<(&'static str, &'static str)> {
        if is_of_deltas(answer) { vec![TableOutput::WITH_DELTAS] } else { Vec::new() }
    }

    fn open(&self, of: &dyn OutputSettings) -> Result<OpenedOutput, OpenError> {
        let answer = of.answer();
        let output = TableOutput {
            address: self.address.clone(),
            schema: self.schema.clone(),
            prefix: self.prefix.clone(),
            deltas: is_of_deltas(answer),
            decisions: Some(of.decisions()).filter(|_| answer.is_of_decisions()),
            causes: of.has_causes(),
            shares: of.style().shares,
            patience: self.patience,
            run: of.run().to_owned(),
            anew: of.begins_anew(),
        };
        let sink = TableSink::new(&output, of.evidence(), of.cluster_kind(), of.counted());
        Ok((Box::new(sink), None))
    }
}

fn is_of_deltas(answer: OutputAnswer) -> bool {
    answer.is_of_changes() && answer.is_of_pairs()
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
