//! The databases under test.

#[cfg(feature = "postgres")]
use crate::server::Server;
use crate::tables::{Database, Event};

/// A SQLite file.
#[cfg(feature = "sqlite")]
pub(crate) struct Sqlite {
    pub(crate) folder: tempfile::TempDir,
}

#[cfg(feature = "sqlite")]
impl Sqlite {
    fn path(&self) -> std::path::PathBuf {
        self.folder.path().join("all.db")
    }

    fn open(&self) -> rusqlite::Connection {
        let connection = rusqlite::Connection::open(self.path()).unwrap();
        connection.busy_timeout(crate::place::BOUND).unwrap();
        connection
    }
}

#[cfg(feature = "sqlite")]
impl Database for Sqlite {
    fn place(&self) -> String {
        format!("kind = \"sqlite\"\npath = {:?}", self.path())
    }

    fn rows(&self, sql: &str) -> Option<Vec<Vec<String>>> {
        let connection = self.open();
        let mut statement = match connection.prepare(sql) {
            Ok(statement) => statement,
            Err(error) if error.to_string().contains("no such table") => return None,
            Err(error) => panic!("{error}"),
        };
        let columns = statement.column_count();
        let text = |value: rusqlite::types::Value| match value {
            rusqlite::types::Value::Text(text) => text,
            rusqlite::types::Value::Integer(number) => number.to_string(),
            rusqlite::types::Value::Real(number) => number.to_string(),
            _ => String::new(),
        };
        let rows =
            statement.query_map([], |row| (0..columns).map(|at| row.get(at).map(text)).collect()).unwrap();
        Some(rows.map(Result::unwrap).collect())
    }

    /// A SQLite file has one writer at a time: late events get a time stamp two seconds in the past. Time
    /// stamps are in whole seconds.
    fn apply(&self, events: &[Event], late: &[Event]) {
        let mut connection = self.open();
        for (written, before) in [(events, "0 seconds"), (late, "-2 seconds")] {
            let transaction = connection.transaction().unwrap();
            for Event { id, text } in written {
                let sql = "INSERT INTO pages VALUES (?1, ?2, datetime('now', ?3), ?2 IS NULL) ON CONFLICT \
                (page) DO UPDATE
                    SET body = coalesce(?2, body), changed = excluded.changed, gone = excluded.gone";
                transaction.execute(sql, (id, text, before)).unwrap();
            }
            transaction.commit().unwrap();
        }
    }

    fn make(&self, watches: &[(String, String)]) {
        let open = self.open();
        open.execute_batch(
            "CREATE TABLE pages (page TEXT PRIMARY KEY, body TEXT, changed TEXT NOT NULL, gone INTEGER \
             NOT NULL);
             CREATE INDEX pages_changed ON pages (changed, page);
             CREATE TABLE watches (id TEXT, text TEXT, changed INTEGER);",
        )
        .unwrap();
        for watch in watches {
            open.execute("INSERT INTO watches VALUES (?1, ?2, 1)", (&watch.0, &watch.1)).unwrap();
        }
    }

    fn kill(&self) -> bool {
        false
    }
}

#[cfg(feature = "postgres")]
impl Database for Server {
    fn place(&self) -> String {
        format!("kind = \"postgres\"\nurl = {:?}", self.url())
    }

    fn rows(&self, sql: &str) -> Option<Vec<Vec<String>>> {
        let mut client = self.client();
        client.batch_execute("SET search_path = dupflow, public").unwrap();
        let messages = match client.simple_query(sql) {
            Ok(messages) => messages,
            Err(error) if error.code() == Some(&postgres::error::SqlState::UNDEFINED_TABLE) => return None,
            Err(error) => panic!("{error:?}"),
        };
        let row = |message| match message {
            postgres::SimpleQueryMessage::Row(row) => {
                Some((0..row.len()).map(|at| row.get(at).unwrap_or_default().to_owned()).collect())
            }
            _ => None,
        };
        Some(messages.into_iter().filter_map(row).collect())
    }

    /// The transaction of late events begins first and commits last. If the server is killed meanwhile, both
    /// are repeated.
    fn apply(&self, events: &[Event], late: &[Event]) {
        let put = |transaction: &mut postgres::Transaction<'_>, written: &[Event]| {
            for Event { id, text } in written {
                let sql =
                    "INSERT INTO pages AS p VALUES ($1, $2::text, now(), $2::text IS NULL) ON CONFLICT \
                     (page) DO UPDATE
                    SET body = coalesce($2::text, p.body), changed = excluded.changed, gone = excluded.gone";
                transaction.execute(sql, &[id, text])?;
            }
            Ok::<_, postgres::Error>(())
        };
        let both = || {
            let (mut first, mut second) = (self.try_client()?, self.try_client()?);
            let mut slow = first.transaction()?;
            put(&mut slow, late)?;
            let mut quick = second.transaction()?;
            put(&mut quick, events)?;
            quick.commit()?;
            std::thread::sleep(std::time::Duration::from_millis(100));
            slow.commit()
        };
        let Err(first) = both() else { return };
        println!("the writer tries again: {first:?}");
        let until = std::time::Instant::now() + crate::place::BOUND;
        while let Err(error) = both() {
            assert!(std::time::Instant::now() < until, "the writer fails for good: {error:?}");
            std::thread::sleep(std::time::Duration::from_millis(200));
        }
    }

    fn make(&self, watches: &[(String, String)]) {
        let mut client = self.client();
        client
            .batch_execute(
                "CREATE TABLE pages (page text PRIMARY KEY, body text, changed timestamptz NOT NULL, gone \
                 boolean NOT NULL);
                 CREATE INDEX ON pages (changed, page);
                 CREATE TABLE watches (id text, text text, changed bigint);",
            )
            .unwrap();
        for (id, text) in watches {
            client.execute("INSERT INTO watches VALUES ($1, $2, 1)", &[id, text]).unwrap();
        }
    }

    fn kill(&self) -> bool {
        Server::kill(self);
        self.restart();
        true
    }
}
