//! Tables of a database.

use std::path::PathBuf;
use std::sync::Arc;

use super::{Mark, Place, mark};
use crate::cells::Answer;
use crate::model::Question;
use crate::rows::{self, Keeping, Rows, Written};
use crate::server::Server;

/// The database.
#[derive(Clone)]
pub(crate) enum Database {
    Sqlite(PathBuf),
    Postgres(Arc<Server>),
}

/// Those of an output.
pub(crate) struct Tables {
    pub(crate) database: Database,
    pub(crate) prefix: String,
    pub(crate) answer: Answer,
}

impl Database {
    /// The rows of a statement, as texts; `None` if a table is not there.
    pub(crate) fn rows(&self, sql: &str) -> Option<Vec<Vec<String>>> {
        match self {
            Self::Sqlite(path) => {
                let flags = rusqlite::OpenFlags::SQLITE_OPEN_READ_WRITE;
                let connection = rusqlite::Connection::open_with_flags(path, flags).ok()?;
                connection.busy_timeout(crate::scene::BOUND).unwrap();
                let mut statement = match connection.prepare(sql) {
                    Ok(statement) => statement,
                    Err(error) if error.to_string().contains("no such table") => return None,
                    Err(error) => panic!("{sql}: {error}"),
                };
                let columns = statement.column_count();
                let text = |value: rusqlite::types::Value| match value {
                    rusqlite::types::Value::Text(text) => text,
                    rusqlite::types::Value::Integer(number) => number.to_string(),
                    rusqlite::types::Value::Real(number) => number.to_string(),
                    _ => String::new(),
                };
                let of = |row: &rusqlite::Row<'_>| (0..columns).map(|at| row.get(at).map(text)).collect();
                let rows = statement.query_map([], of).unwrap();
                Some(rows.map(Result::unwrap).collect())
            }
            Self::Postgres(server) => {
                let mut client = server.client();
                client.batch_execute("SET search_path = dupflow, public").unwrap();
                let messages = match client.simple_query(sql) {
                    Ok(messages) => messages,
                    Err(error) if error.code() == Some(&postgres::error::SqlState::UNDEFINED_TABLE) => {
                        return None;
                    }
                    Err(error) => panic!("{sql}: {error:?}"),
                };
                let row = |message| match message {
                    postgres::SimpleQueryMessage::Row(row) => {
                        Some((0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned()).collect())
                    }
                    _ => None,
                };
                Some(messages.into_iter().filter_map(row).collect())
            }
        }
    }

    /// The objects of JSON in a table of rows.
    pub(crate) fn objects(&self, table: &str) -> Option<Rows> {
        let rows = self.rows(&format!("SELECT row FROM {table}"))?;
        let cells = rows.into_iter().flat_map(|row| rows::line(&row[0]));
        let written = cells.map(|cells| Written { key: None, cells: Some(cells) }).collect();
        rows::in_force(written, Keeping::All).ok()
    }
}

impl Tables {
    /// The rows of columns that a statement selects.
    fn select(&self, columns: &[&str], sql: &str, keeping: Keeping) -> Result<Option<Rows>, String> {
        let Some(rows) = self.database.rows(sql) else { return Ok(None) };
        let cells = |row: Vec<String>| {
            let cells = columns.iter().zip(&row).map(|(name, text)| ((*name).to_owned(), rows::cell(text)));
            Written { key: None, cells: Some(cells.collect()) }
        };
        rows::in_force(rows.into_iter().map(cells).collect(), keeping).map(Some)
    }

    fn answer(name: &str) -> Question {
        Question::Answer(Answer { name: name.to_owned(), mode: None })
    }
}

impl Place for Tables {
    fn mark(&self) -> Option<Mark> {
        let rows = self.database.rows(&format!("SELECT mark FROM {}progress", self.prefix))?;
        let text = rows.first()?.first()?.clone();
        serde_json::from_str(&text).ok().map(|json| mark(&json))
    }

    fn rows(&self) -> Result<Vec<(Question, Rows)>, String> {
        let prefix = &self.prefix;
        if self.mark().is_none() {
            return Ok(Vec::new());
        }
        let pairs = ["a", "b", "similarity"];
        let mut tables = vec![
            (
                Self::answer("pairs"),
                &pairs[..],
                format!("SELECT a, b, similarity FROM {prefix}pairs"),
                Keeping::All,
            ),
            (
                Self::answer("clusters"),
                &["document", "cluster"],
                format!("SELECT document, cluster FROM {prefix}clusters"),
                Keeping::All,
            ),
            (Self::answer("keep"), &["id"], format!("SELECT id FROM {prefix}kept"), Keeping::All),
            (
                Self::answer("remove"),
                &["id", "kept"],
                format!("SELECT id, kept FROM {prefix}removed"),
                Keeping::All,
            ),
            (
                Question::Documents,
                &["id", "bytes"],
                format!("SELECT id, bytes FROM {prefix}documents"),
                Keeping::All,
            ),
        ];
        match &*self.answer.name {
            "deltas" => tables.push((
                Question::Answer(self.answer.clone()),
                &["diff", "a", "b", "similarity"],
                format!("SELECT diff, a, b, similarity FROM {prefix}deltas ORDER BY n"),
                Keeping::Sum,
            )),
            "decisions" => tables.push((
                Question::Answer(self.answer.clone()),
                &["id", "partition", "offset", "copy", "of", "repeats", "pairs", "cluster", "ended"],
                format!(
                    "SELECT id, source_partition, source_offset, CASE WHEN copy THEN 'true' ELSE 'false' END,
                    of, repeats, pairs, cluster, CASE WHEN ended THEN 'true' ELSE 'false' END
                    FROM {prefix}decisions"
                ),
                Keeping::All,
            )),
            "pairs" => {}
            other => panic!("the suite has no tables of {other:?}: write how they are read back"),
        }
        let mut all = Vec::new();
        for (question, columns, sql, keeping) in tables {
            if let Some(rows) = self.select(columns, &sql, keeping)? {
                all.push((question, rows));
            }
        }
        Ok(all)
    }

    fn look(&self) -> String {
        match &self.database {
            Database::Sqlite(path) => {
                let wal = path.with_extension("db-wal");
                let length = |path: &PathBuf| std::fs::metadata(path).map_or(0, |found| found.len());
                format!("{} {}", length(path), length(&wal))
            }
            Database::Postgres(_) => {
                let sql = format!("SELECT commits FROM {}progress", self.prefix);
                format!("{:?}", self.database.rows(&sql))
            }
        }
    }

    fn lose(&self) -> bool {
        match &self.database {
            Database::Sqlite(path) => {
                for ending in ["db", "db-wal", "db-shm"] {
                    drop(std::fs::remove_file(path.with_extension(ending)));
                }
                true
            }
            Database::Postgres(server) => {
                let prefix = &self.prefix;
                let views = ["kept", "removed"].map(|name| format!("DROP VIEW IF EXISTS {prefix}{name};"));
                let names = ["pairs", "clusters", "documents", "deltas", "decisions", "progress"];
                let tables = names.map(|name| format!("DROP TABLE IF EXISTS {prefix}{name};"));
                let sql = views.concat() + &tables.concat();
                server.client().batch_execute(&format!("SET search_path = dupflow, public; {sql}")).is_ok()
            }
        }
    }
}
