//! What a run writes beside its outputs: bad records, rows of views, notices of a watch list. Each in a file,
//! or in the transaction of the first output.

use std::path::Path;
use std::sync::Arc;

use crate::cells::Cell;
use crate::feed;
use crate::model::{Model, Question, views};
use crate::places::{Database, topic_rows, topic_values};
use crate::rows::{self, Keeping, Rows, Written};
use crate::scene::Servers;

/// The key of a side and its value, where it is the same place as the first output's.
#[derive(Clone, Debug)]
enum Side {
    File,
    Topic(String),
    /// With its prefix; `None` for the file of SQLite.
    Table(String),
}

pub(crate) struct Sides {
    letters: Side,
    rows: Side,
    notices: Side,
    /// The name of the first output.
    first: String,
    is_server: bool,
}

impl Sides {
    /// Those beside this output, whose names begin with `name`. Bits of `random` choose their places.
    pub(crate) fn new(first: &Cell, name: &str, random: u64) -> Self {
        let side = |bit: u64, what: &str, has_table: bool| match &*first.kind {
            _ if random >> bit & 1 == 0 => Side::File,
            "kafka" => Side::Topic(format!("{name}-{what}")),
            "sqlite" | "postgres" if has_table => Side::Table(format!("side_{what}")),
            _ => Side::File,
        };
        Self {
            letters: side(8, "letters", false),
            rows: side(9, "rows", true),
            notices: side(10, "notices", true),
            first: format!("{name}o0"),
            is_server: first.kind == "postgres",
        }
    }

    /// Their tables in a deployment file.
    pub(crate) fn tables(&self) -> String {
        let keys = |side: &Side, file: &str, name: &str| match side {
            Side::File => format!("{file} = \"mnt/disk/{name}.jsonl\""),
            Side::Topic(topic) => format!("topic = \"{topic}\""),
            Side::Table(table) => format!("table = \"{table}\""),
        };
        format!(
            "[dead_letter]\n{}\n[watch]\ninputs = [\"watches.jsonl\"]\n[notices]\n{}\n{}",
            keys(&self.letters, "path", "letters"),
            keys(&self.notices, "path", "notices"),
            views(&keys(&self.rows, "output", "rows"))
        )
    }

    /// Compares all with the model.
    pub(crate) fn check(
        &self,
        folder: &Path,
        servers: &Servers,
        model: &Model,
        lines: &[String],
        threshold: &str,
    ) -> Result<(), String> {
        for (side, question, file) in
            [(&self.rows, Question::Views, "rows"), (&self.notices, Question::Notices, "notices")]
        {
            let found =
                self.rows(side, file, folder, servers).map_err(|problem| format!("{file}: {problem}"))?;
            let expected = model.rows(&question, lines.len(), threshold);
            if let Some(other) = rows::difference(&found, &expected) {
                return Err(format!("{file} in {side:?} of {} lines: {other}", lines.len()));
            }
        }
        let letters = self.letters(folder, servers);
        let bad = feed::bad(lines).into_iter();
        let (letters, expected): (_, Vec<_>) = match self.letters {
            // The records as they were read, in the order of their keys.
            Side::Topic(_) => (sorted(letters), sorted(bad.map(|offset| lines[offset].clone()).collect())),
            _ => (letters, bad.map(|offset| rows::cell(&offset.to_string())).collect()),
        };
        if letters != expected {
            return Err(format!("letters in {:?}: {letters:?}, not {expected:?}", self.letters));
        }
        Ok(())
    }

    /// The bad records in a topic, or their offsets in a file.
    fn letters(&self, folder: &Path, servers: &Servers) -> Vec<String> {
        if let (Side::Topic(topic), Some(broker)) = (&self.letters, &servers.broker) {
            return topic_values(broker, topic);
        }
        let letters = written(&self.letters, "letters", folder, servers).into_iter();
        letters.map(|letter| letter.cells.unwrap()["offset"].clone()).collect()
    }

    fn rows(&self, side: &Side, file: &str, folder: &Path, servers: &Servers) -> Result<Rows, String> {
        let Side::Table(table) = side else {
            return rows::in_force(written(side, file, folder, servers), Keeping::Sum);
        };
        let (database, table) = match &servers.postgres {
            Some(server) if self.is_server => {
                (Database::Postgres(Arc::clone(server)), format!("{}_{table}", self.first))
            }
            _ => (Database::Sqlite(folder.join(format!("mnt/disk/{}.db", self.first))), table.clone()),
        };
        database.objects(&table).ok_or_else(|| format!("there is no {table}"))
    }
}

/// What was written to a file or a topic.
fn written(side: &Side, file: &str, folder: &Path, servers: &Servers) -> Vec<Written> {
    if let (Side::Topic(topic), Some(broker)) = (side, &servers.broker) {
        return topic_rows(broker, topic);
    }
    let text = std::fs::read_to_string(folder.join(format!("mnt/disk/{file}.jsonl"))).unwrap_or_default();
    let cells = text.lines().flat_map(rows::line);
    cells.map(|cells| Written { key: None, cells: Some(cells) }).collect()
}

fn sorted(mut all: Vec<String>) -> Vec<String> {
    all.sort_unstable();
    all
}
