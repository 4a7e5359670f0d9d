//! What a run owns, and what happens to it beside the run: thing × change × moment, a cell a row.
//!
//! Each cell runs a deployment with every thing that a run writes, changes one of them while the run lives or
//! between two runs, and does what the message says. Afterwards everything accumulates to the result of the
//! documents, exactly.
//!
//! Bug classes: deltas, letters, rows or notices written into a file that no reader sees, with exit code 0; a
//! file with a hole that is continued; a file of others that is cut; two runs that write to one file.

#![expect(clippy::unwrap_used, clippy::print_stderr, reason = "a test panics where it fails, and says why")]

mod deployment;
#[path = "../../data/disk.rs"]
mod disk;

use std::fs::{self, OpenOptions};
use std::io::Read as _;
use std::path::Path;
use std::process::Command;

use deployment::{Deployment, batch, until};
use disk::Disk;

/// What happens to a thing.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum What {
    Removed,
    /// Renamed, and an empty one takes its place.
    Replaced,
    /// Cut to nothing, at its place.
    Truncated,
    /// An older copy is put back.
    Restored,
    /// A second deployment names it.
    SecondOwner,
    /// Its disk is full for a while.
    Full,
    /// Its disk cannot be written for a while.
    ReadOnly,
    /// Another program deletes all rows of this table.
    #[cfg(feature = "sqlite")]
    Emptied(&'static str),
}
#[cfg(feature = "sqlite")]
use What::Emptied;
use What::{Full, ReadOnly, Removed, Replaced, Restored, SecondOwner, Truncated};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum When {
    Live,
    Between,
}
use When::{Between, Live};

/// What the run does, and what its operator does then.
#[derive(Clone, Copy, Debug)]
enum Then {
    /// It goes on, and nothing is lost.
    GoesOn,
    /// It ends, or does not start, with exit code 1, and says this; then the remedy.
    Says(&'static str, Remedy),
}
use Then::{GoesOn, Says};

/// What the message, or the runbook, says to do before the next start.
#[derive(Clone, Copy, Debug)]
enum Remedy {
    Start,
    /// The file that was taken away is put back.
    PutBack,
    /// It is moved away, with the file of this suffix beside it.
    MoveAway(&'static str),
    /// These files are removed.
    Remove([&'static str; 2]),
    /// The folder of the state is moved away.
    MoveState,
    Reconcile,
}
use Remedy::{MoveAway, MoveState, PutBack, Reconcile, Remove, Start};

/// The cells of the table: a name of a file, what happens to it, when, and the outcome.
const CELLS: &[(&str, What, When, Then)] = &[
    ("out.jsonl", Removed, Live, Says("was removed or renamed", MoveAway(".mark"))),
    ("out.jsonl", Replaced, Live, Says("was replaced by another file", PutBack)),
    ("out.jsonl", Truncated, Live, Says("it was cut while", MoveAway(".mark"))),
    ("out.jsonl", SecondOwner, Live, Says("another run writes to it", Start)),
    ("out.jsonl", Full, Live, Says("out.jsonl", Start)),
    ("out.jsonl", ReadOnly, Live, Says("out.jsonl", Start)),
    ("out.jsonl", Removed, Between, Says("it has been removed or emptied; put back", MoveAway(".mark"))),
    ("out.jsonl", Replaced, Between, Says("it has been removed or emptied; put back", PutBack)),
    ("out.jsonl", Truncated, Between, Says("it has been removed or emptied; put back", MoveAway(".mark"))),
    ("out.jsonl", Restored, Between, Says("start with --reconcile", Reconcile)),
    ("out.jsonl", SecondOwner, Between, Says("the output was written by another pipeline", Start)),
    ("out.jsonl.mark", Removed, Live, GoesOn),
    ("out.jsonl.mark", Replaced, Live, Says("was replaced while this run had it", PutBack)),
    ("out.jsonl.mark", Removed, Between, Says("no mark beside it says of what: move it away", MoveAway(""))),
    ("out.jsonl.mark", Truncated, Between, Says("is damaged", PutBack)),
    ("dead.jsonl", Removed, Live, Says("was removed or renamed", Start)),
    ("dead.jsonl", Replaced, Live, Says("was replaced by another file", Start)),
    ("dead.jsonl", Truncated, Live, Says("it was cut while", Start)),
    ("dead.jsonl", SecondOwner, Live, Says("another run writes to it", Start)),
    ("dead.jsonl", Full, Live, Says("dead.jsonl", Start)),
    ("dead.jsonl", Removed, Between, GoesOn),
    ("dead.jsonl", Truncated, Between, GoesOn),
    ("dead.jsonl", SecondOwner, Between, Says("that this run has not written; move it away", Start)),
    ("v.jsonl", Removed, Live, Says("was removed or renamed", MoveAway(".mark"))),
    ("v.jsonl", Replaced, Live, Says("was replaced by another file", PutBack)),
    ("v.jsonl", Truncated, Live, Says("it was cut while", MoveAway(".mark"))),
    ("v.jsonl", SecondOwner, Live, Says("another run writes to it", Start)),
    ("v.jsonl", Full, Live, Says("v.jsonl", Start)),
    ("v.jsonl", Removed, Between, Says("it has been removed or emptied; put back", MoveAway(".mark"))),
    ("v.jsonl", Restored, Between, GoesOn),
    ("notices.jsonl", Removed, Live, Says("was removed or renamed", Start)),
    ("notices.jsonl", Replaced, Live, Says("was replaced by another file", Start)),
    ("notices.jsonl", Truncated, Live, Says("it was cut while", Start)),
    ("notices.jsonl", SecondOwner, Live, Says("another run writes to it", Start)),
    ("notices.jsonl", Full, Live, Says("notices.jsonl", Start)),
    ("notices.jsonl", Removed, Between, GoesOn),
    ("notices.jsonl", Truncated, Between, GoesOn),
    ("notices.jsonl", Restored, Between, GoesOn),
    ("posted", Removed, Live, Says("put it back", PutBack)),
    ("posted", Replaced, Live, Says("put it back", PutBack)),
    ("posted", Truncated, Live, Says("put it back", PutBack)),
    ("posted", SecondOwner, Live, Says("another run writes to it", Start)),
    ("state", Removed, Live, Says("was removed while this run had the state", Start)),
    ("state", Replaced, Live, Says("was removed while this run had the state", MoveState)),
    ("state", SecondOwner, Live, Says("another run has taken over the state", Reconcile)),
    ("state", Full, Live, GoesOn),
    ("state", ReadOnly, Live, GoesOn),
    ("state", Removed, Between, GoesOn),
    ("state", Restored, Between, GoesOn),
];

/// The same of tables in a file of SQLite.
#[cfg(feature = "sqlite")]
const TABLES: &[(&str, What, When, Then)] = &[
    ("dup.db", Removed, Live, Says("was removed or renamed", Remove(["dup.db-wal", "dup.db-shm"]))),
    ("dup.db", Replaced, Live, Says("was replaced by another file", PutBack)),
    ("dup.db", SecondOwner, Live, Says("another run writes to it", Start)),
    ("dup.db", Full, Live, Says("dup.db", Start)),
    ("dup.db", Emptied("pairs"), Live, Says("deleted or added some", Reconcile)),
    ("dup.db", Emptied("clusters"), Live, Says("deleted or added some", Reconcile)),
    ("dup.db", Emptied("pairs"), Between, Says("deleted or added some", Reconcile)),
    ("dup.db", Emptied("documents"), Between, Says("deleted or added some", Reconcile)),
    ("dup.db", Emptied("progress"), Live, Says("row of the table of progress was deleted", Reconcile)),
    ("dup.db", Emptied("progress"), Between, Says("no mark that says of which input", Reconcile)),
    ("dup.db", Removed, Between, GoesOn),
    ("dup.db", Restored, Between, Says("start with --reconcile", Reconcile)),
];

/// Makes a disk read-only for all that opens files from now on.
fn lock(at: &Path) {
    for how in [&["--bind"][..], &["-o", "remount,bind,ro"]] {
        let source = (how.len() == 1).then_some(at);
        assert!(Command::new("mount").args(how).args(source).arg(at).status().unwrap().success());
    }
}

fn unlock(at: &Path) {
    // Lazily: the run may have a file open there.
    assert!(Command::new("umount").arg("-l").arg(at).status().unwrap().success());
}

fn copy(from: &Path, to: &Path) {
    assert!(Command::new("cp").arg("-r").arg(from).arg(to).status().unwrap().success());
}

fn remove(path: &Path) {
    drop(fs::remove_dir_all(path));
    drop(fs::remove_file(path));
}

/// The path with a suffix at its name.
fn beside(path: &Path, suffix: &str) -> std::path::PathBuf {
    let mut name = path.as_os_str().to_owned();
    name.push(suffix);
    name.into()
}

/// What is taken away is at `.taken`; of what is cut, a copy, as logrotate makes one.
fn change(own: &Path, what: What) {
    let taken = beside(own, ".taken");
    match what {
        Removed => fs::rename(own, &taken).unwrap(),
        Replaced if own.is_dir() => {
            fs::rename(own, &taken).unwrap();
            fs::create_dir(own).unwrap();
        }
        Replaced => {
            fs::rename(own, &taken).unwrap();
            fs::write(own, "").unwrap();
        }
        Truncated => {
            copy(own, &taken);
            OpenOptions::new().write(true).open(own).unwrap().set_len(0).unwrap();
        }
        Restored => {
            for suffix in ["", ".mark"] {
                let (old, now) = (beside(own, &format!(".old{suffix}")), beside(own, suffix));
                if old.exists() {
                    remove(&now);
                    copy(&old, &now);
                }
            }
        }
        SecondOwner | Full | ReadOnly => {}
        #[cfg(feature = "sqlite")]
        Emptied(table) => {
            let other = rusqlite::Connection::open(own).unwrap();
            other.execute(&format!("DELETE FROM {table}"), []).unwrap();
        }
    }
}

fn remedied(deployment: &Deployment, remedy: Remedy) -> &'static [&'static str] {
    let own = deployment.own();
    let taken = beside(&own, ".taken");
    match remedy {
        Start => {}
        PutBack => {
            remove(&own);
            fs::rename(&taken, &own).unwrap();
        }
        MoveAway("") => remove(&deployment.place.path("own/out.jsonl")),
        MoveAway(suffix) => {
            remove(&own);
            remove(&beside(&own, suffix));
        }
        Remove(names) => names.iter().for_each(|name| remove(&deployment.place.path("own").join(name))),
        MoveState => remove(&deployment.place.path(deployment.path_of("state"))),
        Reconcile => return &["--reconcile"],
    }
    &[]
}

fn cell(thing: &str, what: What, when: When, then: Then, sink: &'static str) {
    let named = format!("{thing}, {what:?}, {when:?}");
    let mut deployment = Deployment::new(thing, sink);
    let own = deployment.place.path("own");
    let disk = matches!(what, Full | ReadOnly).then(|| Disk::mount(&own, "4m"));
    if matches!(disk, Some(None)) {
        eprintln!("SKIPPED: not tried, since nothing may be mounted here: {named}");
        return;
    }
    let disk = disk.flatten();
    deployment.append();
    let mut run = deployment.start("run.toml", &[]);
    deployment.wait(&named, &mut run);
    if what == Restored {
        run.signal();
        assert_eq!(run.end().0, Some(0), "{named}");
        for suffix in ["", ".mark"] {
            let now = beside(&deployment.own(), suffix);
            if now.exists() {
                copy(&now, &beside(&deployment.own(), &format!(".old{suffix}")));
            }
        }
        run = deployment.start("run.toml", &[]);
        // More than one publish, so that no older state is left.
        for _ in 0..2 {
            deployment.append();
            deployment.wait(&named, &mut run);
        }
    }
    if when == Between {
        run.signal();
        assert_eq!(run.end().0, Some(0), "{named}");
        change(&deployment.own(), what);
        deployment.append();
        if what == SecondOwner {
            second(&deployment, &named, then);
        }
        run = deployment.start("run.toml", &[]);
    } else {
        change(&deployment.own(), what);
        match (&disk, what) {
            (Some(disk), Full) => disk.fill(),
            (Some(_), _) => lock(&own),
            (None, SecondOwner) => second(&deployment, &named, then),
            (None, _) => {}
        }
        deployment.append();
    }
    match then {
        Says(said, remedy) if what != SecondOwner || thing == "state" => {
            let (code, log) = run.end();
            assert!(code == Some(1) && log.contains(said), "{named}: {code:?}: {log}");
            let name = thing.trim_end_matches(".mark");
            assert!(log.contains(name) || matches!(remedy, Reconcile), "{named} is not named: {log}");
            recover(disk.as_ref(), &own, what);
            let more = remedied(&deployment, remedy);
            run = deployment.start("run.toml", more);
        }
        Says(..) => {}
        GoesOn if disk.is_some() => {
            // It is tried again, and says so. What the run removed may have made room for the batch.
            until(|| {
                if what == Full && deployment.is_stored() {
                    disk.iter().for_each(Disk::fill);
                    deployment.append();
                }
                run.said().contains("tried again")
            })
            .unwrap_or_else(|()| panic!("{named}: {}", run.said()));
            recover(disk.as_ref(), &own, what);
        }
        GoesOn => {}
    }
    deployment.wait(&named, &mut run);
    deployment.append();
    deployment.wait(&named, &mut run);
    run.signal();
    let (code, log) = run.end();
    assert_eq!(code, Some(0), "{named}: {log}");
    assert!(deployment.is_exact(), "{named}");
}

fn recover(disk: Option<&Disk>, own: &Path, what: What) {
    match disk {
        Some(disk) if what == Full => disk.empty(),
        Some(_) => unlock(own),
        None => {}
    }
}

/// Starts a second deployment that has the thing under test, and nothing else, in common with the first.
fn second(deployment: &Deployment, named: &str, then: Then) {
    let Says(said, _) = then else { panic!("{named}: two runs cannot have one file") };
    let other = &deployment.place;
    other.file("other-feed.jsonl", batch(7));
    if deployment.thing != "posted" {
        other.file("other-posted", "");
    }
    deployment.configure("other.toml", "other-");
    if deployment.thing == "state" {
        // The later one takes it over, and the earlier one ends at its next publish.
        let later = deployment.start("other.toml", &["--reconcile"]);
        until(|| later.log.exists() && deployment.lines("other-out.jsonl").len() > 10).unwrap();
        later.signal();
        drop(later);
        return;
    }
    let text = other.read("other.toml");
    other.file("other.toml", text.replace("workers = 1\n", "workers = 1\nshutdown_seconds = 9\n"));
    let more: &[&str] = if said.contains("pipeline") { &["--set", "threshold=0.9"] } else { &[] };
    let before = fs::read(deployment.own()).unwrap();
    let (code, log) = deployment.start("other.toml", more).end();
    // A database says of which inputs it is, which is compared before its lock is tried.
    let is_named = log.contains(said) || log.contains("\"feed.jsonl\" was read, and is missing");
    assert!(code == Some(1) && is_named, "{named}: {code:?}: {log}");
    let mut after = Vec::new();
    fs::File::open(deployment.own()).unwrap().read_to_end(&mut after).unwrap();
    assert!(before == after, "{named}: it was changed");
}

fn run_all(cells: &[(&str, What, When, Then)], of: impl Fn(&str) -> bool, sink: &'static str) {
    for (thing, what, when, then) in cells.iter().filter(|(thing, ..)| of(thing)) {
        cell(thing, *what, *when, *then, sink);
    }
}

#[test]
fn an_output_and_its_mark() {
    run_all(CELLS, |thing| thing.starts_with("out"), "out.jsonl");
}

#[test]
fn dead_letters() {
    run_all(CELLS, |thing| thing.starts_with("dead"), "out.jsonl");
}

#[test]
fn rows_of_a_view() {
    run_all(CELLS, |thing| thing.starts_with('v'), "out.jsonl");
}

#[test]
fn notices_and_posted_watches() {
    run_all(CELLS, |thing| thing.starts_with("notices") || thing == "posted", "out.jsonl");
}

#[test]
fn a_state() {
    run_all(CELLS, |thing| thing == "state", "out.jsonl");
}

#[test]
#[cfg(feature = "sqlite")]
fn tables_in_a_file() {
    run_all(TABLES, |_| true, "dup.db");
}
