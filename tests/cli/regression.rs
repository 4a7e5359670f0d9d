//! A table whose order has regressed between two runs: a start is refused, or reads it again.

use rusqlite::Connection;

use super::dupflow::{Ended, Place};

const TEXT: &str = "the quick brown fox jumps over the lazy dog and runs away from the bear";

/// A table of pages, of which a later state is read; then an older one is put back.
struct Restored {
    place: Place,
    database: Connection,
}

impl Restored {
    fn new() -> Self {
        let place = Place::new();
        let database = Connection::open(place.path("web.db")).unwrap();
        database.execute_batch("CREATE TABLE pages (id TEXT PRIMARY KEY, body TEXT, v INTEGER)").unwrap();
        Self { place, database }
    }

    fn put(&self, id: &str, text: &str, order: u32) {
        let sql = "INSERT OR REPLACE INTO pages VALUES (?1, ?2, ?3)";
        self.database.execute(sql, rusqlite::params![id, text, order]).unwrap();
    }

    /// A run to the end of the table.
    fn run(&self, sink: &str, more: &str, flag: &str) -> Ended {
        self.place.file(
            "run.toml",
            format!(
                "sink.kind = \"sqlite\"\nsink.path = {sink:?}\nsource.kind = \"sqlite\"\nsource.path = \
                 \"web.db\"\nsource.table = \"pages\"\nsource.text = \"body\"\nsource.order = \
                 \"v\"\nsource.overlap = 5\nsource.follow = false\n{more}"
            ),
        );
        self.place.run(format!("run -p exact -c run.toml {flag}").trim_end())
    }

    fn pairs(&self, sink: &str) -> Vec<String> {
        let database = Connection::open(self.place.path(sink)).unwrap();
        let mut rows = database.prepare("SELECT a || '+' || b FROM pairs ORDER BY 1").unwrap();
        rows.query_map([], |row| row.get(0)).unwrap().map(Result::unwrap).collect()
    }

    /// Reads `a`, `b` and `d`, and puts `a` and an older `b` back. `others`: rows with greater
    /// orders besides.
    fn go_back(&self, more: &str, others: &[(&str, u32)]) {
        self.put("a", TEXT, 100);
        self.put("b", "something else that has nothing to do with the text of the other page", 200);
        self.put("d", TEXT, 201);
        let first = self.run("out.db", more, "");
        assert_eq!((first.code, self.pairs("out.db")), (0, vec!["a+d".to_owned()]), "{}", first.err);
        self.database.execute_batch("DELETE FROM pages WHERE id <> 'a'").unwrap();
        self.put("b", TEXT, 101);
        others.iter().for_each(|(id, order)| self.put(id, TEXT, *order));
    }

    /// The output equals that of a fresh run.
    fn is_exact(&self) {
        let fresh = self.run("fresh.db", "", "");
        assert_eq!((fresh.code, self.pairs("fresh.db")), (0, self.pairs("out.db")), "{}", fresh.err);
    }
}

const STATE: &str = "state.path = \"state\"\n";

/// A start with a state is refused, however often; with what its message advises it is exact.
#[test]
fn a_start_is_refused_until_the_table_is_read_again() {
    for (others, what) in [
        (&[][..], "its greatest number is 101, and 201 had been read"),
        (&[("e", 300)][..], "1 row has come where all rows had been read"),
    ] {
        let restored = Restored::new();
        restored.go_back(STATE, others);
        for _ in 0..2 {
            let refused = restored.run("out.db", STATE, "");
            assert!(refused.code == 1 && refused.err.contains(what), "{} {}", refused.code, refused.err);
            assert!(refused.err.contains("--reconcile") && refused.err.contains("source.regression"));
            assert_eq!(restored.pairs("out.db"), ["a+d"], "nothing is written");
        }
        let reconciled = restored.run("out.db", STATE, "--reconcile");
        assert_eq!(reconciled.code, 0, "{}", reconciled.err);
        restored.is_exact();
        let next = restored.run("out.db", STATE, "");
        assert_eq!(next.code, 0, "{}", next.err);
        restored.is_exact();
    }
}

#[test]
fn a_start_reads_the_table_again_where_it_is_asked_to() {
    let restored = Restored::new();
    let more = format!("{STATE}source.regression = \"read_again\"\n");
    restored.go_back(&more, &[("e", 300)]);
    let again = restored.run("out.db", &more, "");
    assert!(again.code == 0 && again.err.contains("it is read from its beginning"), "{}", again.err);
    restored.is_exact();
}

/// Without a state each start reads the table from its beginning, and ends what it does not give.
#[test]
fn without_a_state_nothing_is_refused() {
    let restored = Restored::new();
    restored.go_back("", &[("e", 300)]);
    let next = restored.run("out.db", "", "");
    assert_eq!(next.code, 0, "{}", next.err);
    restored.is_exact();
}

/// With a state, documents whose rows were removed stay until the table is read again.
#[test]
fn a_run_that_reconciles_ends_what_the_table_does_not_give() {
    let restored = Restored::new();
    restored.put("a", TEXT, 100);
    restored.put("b", TEXT, 101);
    restored.put("z", "the last one, which has nothing to do with any other text at all", 500);
    assert_eq!(restored.run("out.db", STATE, "").code, 0);
    restored.database.execute_batch("DELETE FROM pages WHERE id = 'a'").unwrap();
    assert_eq!(restored.run("out.db", STATE, "").code, 0);
    assert_eq!(restored.pairs("out.db"), ["a+b"], "the removal of a row is not noticed");
    assert_eq!(restored.run("out.db", STATE, "--reconcile").code, 0);
    restored.is_exact();
}
