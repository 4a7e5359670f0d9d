//! What earlier programs have written, and this program started on it: it runs on exactly, or is refused with
//! what to do, and no document is lost where its input has expired.
//!
//! `tests/fixtures/upgrade` has a folder for each earlier program, and in it one for each deployment, which
//! `make.sh` there wrote. A later version adds a folder, and changes none.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};

use serde_json::Value;

use super::dupflow::{Ended, Place};
use super::feeds::lines;

/// A deployment of an earlier program.
struct Fixture {
    name: String,
    folder: PathBuf,
}

/// Runs the program as the earlier one was run, with one more argument.
fn run(place: &Place, more: &str) -> Ended {
    let arguments = place.read("arguments");
    place.run(format!("{} {more}", arguments.trim()).trim())
}

/// Rows that an output holds at its end, by what identifies them.
type Rows = BTreeMap<String, String>;

fn fixtures() -> Vec<Fixture> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/upgrade");
    let folders = |path: &Path| -> Vec<PathBuf> {
        let each = fs::read_dir(path).expect("a folder of fixtures");
        let mut each: Vec<_> = each.map(|entry| entry.expect("it can be listed").path()).collect();
        each.retain(|path| path.is_dir());
        each.sort();
        each
    };
    let deployments = folders(&root).into_iter().flat_map(|version| folders(&version));
    let name = |path: &Path| path.strip_prefix(&root).expect("it is below").display().to_string();
    deployments.map(|folder| Fixture { name: name(&folder), folder }).collect()
}

fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).expect("a folder");
    for entry in fs::read_dir(from).expect("it is there") {
        let entry = entry.expect("it can be listed");
        let to = to.join(entry.file_name());
        if entry.path().is_dir() {
            copy(&entry.path(), &to);
        } else {
            fs::copy(entry.path(), &to).expect("it can be copied");
        }
    }
}

impl Fixture {
    fn has(&self, name: &str) -> bool {
        self.folder.join(name).exists()
    }

    /// A copy of everything, in which the earlier program has run.
    fn as_left(&self) -> Place {
        let place = Place::new();
        copy(&self.folder, &place.path(""));
        place
    }

    /// The inputs and the deployment alone.
    fn fresh(&self) -> Place {
        let place = Place::new();
        for name in ["arguments", "run.toml", "watch.jsonl", "reference.jsonl", "in.db"] {
            if self.has(name) {
                fs::copy(self.folder.join(name), place.path(name)).expect("it can be copied");
            }
        }
        if self.has("feed") {
            copy(&self.folder.join("feed"), &place.path("feed"));
        }
        place
    }

    /// Adds what arrives after the earlier program has ended.
    fn add_later(&self, place: &Place) {
        if self.has("later/feed") {
            copy(&self.folder.join("later/feed"), &place.path("feed"));
        } else {
            let sql = fs::read_to_string(self.folder.join("later/in.sql")).expect("rows");
            execute(place, &sql);
        }
    }

    /// Removes the inputs that the earlier program has read.
    fn expire(&self, place: &Place) {
        if self.has("feed") {
            fs::remove_dir_all(place.path("feed")).expect("it is removed");
            fs::create_dir(place.path("feed")).expect("a folder");
        } else {
            execute(place, "DELETE FROM pages;");
        }
    }

    /// What the outputs hold.
    fn result(&self, place: &Place) -> Rows {
        let mut rows = Rows::new();
        if place.path("out.db").exists() {
            rows = pairs_of_tables(place);
        } else if place.read("run.toml").contains("\"decisions\"") {
            for mut line in lines(&place.read("out.jsonl")) {
                // When and where it was read is another in another run.
                for key in ["at", "epoch", "partition", "offset"] {
                    line.as_object_mut().expect("an object").remove(key);
                }
                let id = line["id"].to_string();
                if line["ended"].is_null() {
                    rows.insert(id, line.to_string());
                } else {
                    rows.remove(&id);
                }
            }
        } else {
            for name in ["out.jsonl", "views.jsonl", "notices.jsonl"] {
                if place.path(name).exists() {
                    accumulate(name, &place.read(name), &mut rows);
                }
            }
        }
        rows
    }
}

/// Adds up the changes of a file.
fn accumulate(name: &str, changes: &str, rows: &mut Rows) {
    for mut line in lines(changes) {
        let object = line.as_object_mut().expect("an object");
        let diff = object.remove("diff");
        object.remove("epoch");
        object.remove("cause");
        let row = format!("{name} {line}");
        match diff.and_then(|diff| diff.as_i64()) {
            Some(1) => assert_eq!(rows.insert(row, String::new()), None, "{line} is there twice"),
            Some(-1) => assert!(rows.remove(&row).is_some(), "{line} was not there"),
            _ => panic!("{line} has no diff"),
        }
    }
}

#[cfg(feature = "sqlite")]
fn execute(place: &Place, sql: &str) {
    let connection = rusqlite::Connection::open(place.path("in.db")).expect("the database opens");
    connection.execute_batch(sql).expect("the statements are valid");
}

#[cfg(not(feature = "sqlite"))]
fn execute(_: &Place, _: &str) {}

#[cfg(feature = "sqlite")]
fn pairs_of_tables(place: &Place) -> Rows {
    let connection = rusqlite::Connection::open(place.path("out.db")).expect("the database opens");
    let mut pairs = connection.prepare("SELECT a, b, similarity FROM pairs").expect("a table of pairs");
    let pairs = pairs.query_map([], |row| {
        let (a, b): (String, String) = (row.get(0)?, row.get(1)?);
        Ok((format!("{a} {b}"), row.get::<_, f64>(2)?.to_string()))
    });
    pairs.expect("rows").map(|row| row.expect("a pair")).collect()
}

#[cfg(not(feature = "sqlite"))]
fn pairs_of_tables(_: &Place) -> Rows {
    Rows::new()
}

/// Documents of the state.
fn documents(place: &Place) -> u64 {
    let report = place.run("state inspect --json state");
    assert_eq!(report.code, 0, "{report:?}");
    let report: Value = serde_json::from_str(&report.out).expect("it is JSON");
    report["documents"].as_u64().expect("a number")
}

/// A start that is refused changes nothing, and its message has the advice that is followed next.
fn follow_advice(fixture: &Fixture, place: &Place, refused: &Ended, before: &Rows) -> Ended {
    let name = &fixture.name;
    assert!(refused.code == 1 || refused.code == 2, "{name}: {refused:?}");
    assert_eq!(&fixture.result(place), before, "{name}: a refused start has written");
    if let Some((_, advice)) = refused.err.split_once("defaults have changed: ") {
        let (_, typed) = advice.split_once('(').expect("settings to type");
        let (typed, _) = typed.split_once(')').expect("their end");
        let arguments = place.read("arguments");
        assert!(!arguments.contains("text.invisible"), "{name}: it does not help: {refused:?}");
        place.file("arguments", format!("{} {typed}", arguments.trim()));
        let again = run(place, "");
        return if again.code == 0 { again } else { follow_advice(fixture, place, &again, before) };
    }
    if refused.err.contains("put them back and name them all") {
        put_back(fixture, place, "")
    } else if refused.err.contains("source.gone = \"keep\"") {
        let deployment = place.read("run.toml").replacen("[source]", "[source]\ngone = \"keep\"", 1);
        place.file("run.toml", deployment);
        run(place, "")
    } else {
        assert!(refused.err.contains("--reconcile"), "{name}: it does not say what to do: {refused:?}");
        let ended = run(place, "--reconcile");
        if ended.code == 0 { ended } else { put_back(fixture, place, "--reconcile") }
    }
}

/// What an earlier program has not listed is listed by one start with all inputs; then they may go.
fn put_back(fixture: &Fixture, place: &Place, more: &str) -> Ended {
    copy(&fixture.folder.join("feed"), &place.path("feed"));
    let listed = run(place, more);
    assert_eq!(listed.code, 0, "{}: {listed:?}", fixture.name);
    fixture.expire(place);
    fixture.add_later(place);
    let again = run(place, "");
    if again.code == 0 { again } else { follow_advice(fixture, place, &again, &fixture.result(place)) }
}

/// Fixtures that this build can read.
fn readable() -> impl Iterator<Item = Fixture> {
    fixtures().into_iter().filter(|fixture| {
        let needs = fs::read_to_string(fixture.folder.join("run.toml")).expect("a deployment");
        let is_readable = cfg!(feature = "sqlite") || !needs.contains("sqlite");
        if !is_readable {
            println!("SKIPPED: {} needs the feature `sqlite`", fixture.name);
        }
        is_readable
    })
}

#[test]
fn a_later_program_runs_on_where_inputs_are_still_there() {
    let mut tried = 0;
    for fixture in readable() {
        let (place, fresh) = (fixture.as_left(), fixture.fresh());
        let before = fixture.result(&place);
        fixture.add_later(&place);
        fixture.add_later(&fresh);
        let from_nothing = run(&fresh, "");
        assert_eq!(from_nothing.code, 0, "{}: {from_nothing:?}", fixture.name);
        let mut ended = run(&place, "");
        if ended.code != 0 {
            ended = follow_advice(&fixture, &place, &ended, &before);
        }
        assert_eq!(ended.code, 0, "{}: {ended:?}", fixture.name);
        let expected = fixture.result(&fresh);
        assert!(!expected.is_empty() && expected != before, "{}: nothing changes", fixture.name);
        assert_eq!(fixture.result(&place), expected, "{}: {ended:?}", fixture.name);
        let again = run(&place, "");
        assert_eq!((again.code, fixture.result(&place)), (0, expected), "{}: {again:?}", fixture.name);
        tried += 1;
    }
    assert!(tried > 5, "{tried}");
}

#[test]
fn a_later_program_keeps_documents_of_inputs_that_have_expired() {
    for fixture in readable().filter(|fixture| fixture.has("state")) {
        let (place, fresh) = (fixture.as_left(), fixture.fresh());
        let (before, kept) = (fixture.result(&place), documents(&place));
        fixture.expire(&place);
        fixture.add_later(&place);
        let mut ended = run(&place, "");
        if ended.code != 0 {
            assert_eq!(documents(&place), kept, "{}: a refused start takes documents", fixture.name);
            ended = follow_advice(&fixture, &place, &ended, &before);
        }
        assert_eq!(ended.code, 0, "{}: {ended:?}", fixture.name);
        if fixture.name.ends_with("/documents") {
            // Files that are documents: a missing one is a delete.
            fixture.expire(&fresh);
        }
        // Else the corpus is still the whole history.
        fixture.add_later(&fresh);
        let from_nothing = run(&fresh, "");
        assert_eq!(from_nothing.code, 0, "{}: {from_nothing:?}", fixture.name);
        assert_eq!(fixture.result(&place), fixture.result(&fresh), "{}: {ended:?}", fixture.name);
        assert_eq!(documents(&place), documents(&fresh), "{}", fixture.name);
    }
}
