//! `[[output]]`: whatever outputs a run has, each holds what it would hold alone, after restarts, and where
//! outputs are added, left out, lost or put in another order.

#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::collections::BTreeMap;
use std::io::Write as _;
use std::path::Path;

use serde_json::Value;

use super::claims::Started;
use super::dupflow::{Ended, Place};
use super::feeds::{accumulated, delete, lines, page, pairs, upsert};

/// The events of documents that are near-duplicates in groups, some updated and deleted.
fn feed(events: usize) -> String {
    let event = |n: usize| {
        let (n, id) = (u32::try_from(n).unwrap(), format!("{:02}", n % 23));
        if n % 7 == 6 { delete(&id) } else { upsert(&id, &page(n % 5..n % 5 + 3, n % 4)) }
    };
    (0..events).map(event).collect()
}

const SOURCE: &str = "workers = 1\n[source]\nkind = \"files\"\ninputs = [\"feed.jsonl\"]\n\
    epoch = \"events:3\"\nfollow = false\n";
const DELTAS: &str = "path = \"deltas.jsonl\"\n";
const CLUSTERS: &str = "answer = \"cluster-deltas\"\npath = \"clusters.jsonl\"\n";
const DECISIONS: &str = "answer = \"decisions\"\ndecisions = \"current\"\npath = \"decisions.jsonl\"\n";
const TABLES: &str = "kind = \"sqlite\"\npath = \"pairs.db\"\n";
const KEEP: &str = "answer = \"keep\"\npath = \"keep.csv\"\n";
const PAIRS: &str = "answer = \"pairs\"\npath = \"pairs.jsonl\"\n";

const WAIT: &str = "on_failure = \"wait\"\n";

/// Writes the deployment file of a run with these outputs.
fn deploy(place: &Place, outputs: &[&str], state: bool) {
    let tables = outputs.iter().map(|output| format!("[[output]]\n{output}"));
    let state = if state { "[state]\npath = \"state\"\ncommit_every = \"1ms\"\n" } else { "" };
    place.file("run.toml", SOURCE.to_owned() + &tables.collect::<String>() + state);
}

/// A run with these outputs.
fn run(place: &Place, outputs: &[&str], state: bool, options: &str) -> Ended {
    deploy(place, outputs, state);
    place.run(format!("run -c run.toml {options}").trim_end())
}

/// Each line, and its text without these names.
fn without(text: &str, names: &[&str]) -> Vec<(Value, String)> {
    let without = |line: Value| {
        let mut rest = line.clone();
        rest.as_object_mut().unwrap().retain(|name, _| !names.contains(&name.as_str()));
        (line, rest.to_string())
    };
    lines(text).into_iter().map(without).collect()
}

/// The pairs in the tables of a database.
fn rows(place: &Place, name: &str) -> BTreeMap<(String, String), f64> {
    let read = rusqlite::Connection::open(place.path(name)).unwrap();
    let mut all = read.prepare("SELECT a, b, similarity FROM pairs").unwrap();
    let rows = all.query_map([], |row| Ok(((row.get(0)?, row.get(1)?), row.get(2)?))).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Checks that an output holds what a replay of the present feed gives.
fn check(place: &Place, output: &str) {
    let fresh = |emit: &str| place.replay(&format!("--epoch events:3 --emit {emit} feed.jsonl")).0.out;
    let expected = pairs(&fresh("pairs"));
    match output {
        DELTAS => assert_eq!(accumulated(&place.read("deltas.jsonl")), expected),
        PAIRS => assert_eq!(place.read("pairs.jsonl"), fresh("pairs")),
        KEEP => assert_eq!(place.read("keep.csv"), fresh("keep --output-format csv")),
        TABLES => assert_eq!(rows(place, "pairs.db"), expected),
        CLUSTERS => {
            let sums = |text: &str| {
                let mut sums = BTreeMap::new();
                for line in without(text, &["diff", "epoch"]) {
                    *sums.entry(line.1).or_insert(0) += line.0["diff"].as_i64().unwrap();
                }
                sums.retain(|_, sum| *sum != 0);
                sums
            };
            assert_eq!(sums(&place.read("clusters.jsonl")), sums(&fresh("cluster-deltas")));
        }
        DECISIONS => {
            let last = |text: &str| {
                let read = without(text, &["at", "epoch"]).into_iter();
                let mut last: BTreeMap<_, _> = read.map(|line| (line.0["id"].to_string(), line)).collect();
                last.retain(|_, line| line.0["ended"] != true);
                last.into_values().map(|line| line.1).collect::<Vec<_>>()
            };
            let fresh = fresh("decisions --decisions current");
            assert_eq!(last(&place.read("decisions.jsonl")), last(&fresh));
        }
        other => unreachable!("{other}"),
    }
}

#[test]
fn every_output_holds_what_it_would_hold_alone() {
    for state in [false, true] {
        let place = Place::new();
        for (events, outputs) in [
            (20, &[DELTAS, CLUSTERS, TABLES, KEEP][..]),
            (20, &[DELTAS, CLUSTERS, TABLES, KEEP]),
            (40, &[DELTAS, CLUSTERS, DECISIONS, TABLES]),
            // Taken out, and the input grows.
            (60, &[DELTAS, PAIRS]),
            // Put back, in another order.
            (60, &[DELTAS, TABLES, DECISIONS, CLUSTERS, KEEP]),
            // Another one is the first.
            (70, &[TABLES, DECISIONS, DELTAS, CLUSTERS]),
            (80, &[CLUSTERS, TABLES]),
            (80, &[CLUSTERS, KEEP, DELTAS, TABLES, DECISIONS, PAIRS]),
        ] {
            place.file("feed.jsonl", feed(events));
            let run = run(&place, outputs, state, "");
            assert_eq!(run.code, 0, "{events} {outputs:?}: {run:?}");
            outputs.iter().for_each(|output| check(&place, output));
        }
    }
}

/// The outputs that were read back at the start, and those that were filled.
fn corrected(run: &Ended) -> [Vec<String>; 2] {
    ["read back and corrected", "it is filled"].map(|what| {
        let lines = run.err.lines().filter(|line| line.contains(what));
        lines
            .map(|line| line.split("output=\"").nth(1).unwrap().split('"').next().unwrap().to_owned())
            .collect()
    })
}

#[test]
fn an_output_that_is_continued_is_not_read_back() {
    let place = Place::new();
    let all = ["output.2".to_owned(), "output.3".to_owned()];
    for (events, filled) in [(20, &all[..]), (40, &[]), (40, &[]), (40, &[]), (60, &[])] {
        place.file("feed.jsonl", feed(events));
        let run = run(&place, &[DELTAS, CLUSTERS, TABLES], true, "");
        assert_eq!((run.code, corrected(&run)), (0, [vec![], filled.to_vec()]), "{events}: {run:?}");
    }
    // A new one is filled, and the others keep what they hold and have the same mark.
    let before = place.read("clusters.jsonl");
    for filled in [&["output.4".to_owned()][..], &[]] {
        let run = run(&place, &[DELTAS, CLUSTERS, TABLES, DECISIONS], true, "");
        assert_eq!((run.code, corrected(&run)), (0, [vec![], filled.to_vec()]), "{run:?}");
        assert_eq!(place.read("clusters.jsonl"), before);
    }
    // One that was left out is read back, once.
    place.file("feed.jsonl", feed(70));
    assert_eq!(run(&place, &[DELTAS, TABLES, CLUSTERS], true, "").code, 0);
    for back in [&["output.3".to_owned()][..], &[]] {
        let run = run(&place, &[DELTAS, TABLES, DECISIONS, CLUSTERS], true, "");
        assert_eq!((run.code, corrected(&run)), (0, [back.to_vec(), vec![]]), "{run:?}");
        [DELTAS, TABLES, DECISIONS, CLUSTERS].iter().for_each(|output| check(&place, output));
    }
}

/// A connection that keeps all others out of the database until it is dropped.
fn locked(place: &Place) -> rusqlite::Connection {
    let connection = rusqlite::Connection::open(place.path("pairs.db")).unwrap();
    connection.busy_timeout(std::time::Duration::from_secs(60)).unwrap();
    connection.execute_batch("BEGIN EXCLUSIVE").unwrap();
    connection
}

/// The run and the other outputs go on beside outputs that cannot be written; each is corrected once it can,
/// while the run is live.
#[test]
fn an_output_that_cannot_be_written_is_left_behind_and_corrected() {
    let place = Place::new();
    let all = [DELTAS, TABLES, CLUSTERS, DECISIONS];
    let waits = all[1..].iter().map(|output| format!("{output}{WAIT}"));
    let outputs: Vec<_> = [DELTAS.to_owned()].into_iter().chain(waits).collect();
    deploy(&place, &outputs.iter().map(String::as_str).collect::<Vec<_>>(), true);
    place.file("run.toml", place.read("run.toml").replace("follow = false", "follow = true"));
    let holds = |events: usize| {
        place.file("until.jsonl", feed(events));
        pairs(&place.replay("--epoch events:3 --emit pairs until.jsonl").0.out)
    };
    let advance = |run: &mut Started, events: usize| {
        let expected = holds(events);
        // A file that is followed only grows.
        let more = feed(events).split_off(place.read("feed.jsonl").len());
        let file = std::fs::File::options().append(true).open(place.path("feed.jsonl"));
        file.and_then(|mut file| file.write_all(more.as_bytes())).unwrap();
        run.until(&place, |place| accumulated(&place.read("deltas.jsonl")) == expected);
    };
    place.file("feed.jsonl", "");
    place.file("deltas.jsonl", "");
    let mut run = Started::new(&place, "run.toml", "");
    let log = run.log.clone();
    let says = |what: &'static str, times: usize| {
        let log = log.clone();
        move |place: &Place| place.read(&log).matches(what).count() == times
    };
    advance(&mut run, 21);
    for (round, events) in [(1, 42), (2, 84)] {
        let marks = ["clusters.jsonl.mark.new", "decisions.jsonl.mark.new"].map(|name| place.path(name));
        let lock = locked(&place);
        // A commit may be replacing a mark by a file of this name.
        marks.iter().for_each(|mark| run.until(&place, |_| std::fs::create_dir(mark).is_ok()));
        advance(&mut run, events);
        run.until(&place, says("an output is left behind, and the run goes on without it", 3 * round));
        let held = || ["clusters.jsonl.mark", "decisions.jsonl.mark"].map(|name| place.read(name));
        let before = held();
        advance(&mut run, events + 21);
        assert_eq!(held(), before, "they hold what they held");
        marks.iter().for_each(|mark| std::fs::remove_dir(mark).unwrap());
        drop(lock);
        // There is no event meanwhile.
        run.until(&place, says("the output is back, and holds what the first one holds", 3 * round));
        all.iter().for_each(|output| check(&place, output));
    }
    advance(&mut run, 126);
    run.signal("TERM");
    let (code, log) = run.end(&place);
    assert_eq!(code, Some(0), "{log}");
    all.iter().for_each(|output| check(&place, output));
    let same = self::run(&place, &all, true, "");
    assert_eq!((same.code, corrected(&same)), (0, [vec![], vec![]]), "they have the same mark: {same:?}");
    // Away at the start.
    let lock = locked(&place);
    deploy(&place, &outputs.iter().map(String::as_str).collect::<Vec<_>>(), true);
    place.file("run.toml", place.read("run.toml").replace("follow = false", "follow = true"));
    place.file("feed.jsonl", feed(147));
    let expected = holds(147);
    let mut run = Started::new(&place, "run.toml", "");
    run.until(&place, |place| accumulated(&place.read("deltas.jsonl")) == expected);
    drop(lock);
    let log = run.log.clone();
    run.until(&place, |place| place.read(&log).contains("the output is back"));
    all.iter().for_each(|output| check(&place, output));
    run.signal("TERM");
    let (code, log) = run.end(&place);
    assert_eq!(code, Some(0), "{log}");
}

/// An output that is away from the start to the end makes the exit code, and no other output wrong. The next
/// start corrects it.
#[test]
fn an_output_that_is_behind_at_the_end_is_said_and_corrected_at_the_next_start() {
    let place = Place::new();
    let tables = format!("{TABLES}{WAIT}");
    let outputs = [DELTAS, &tables, CLUSTERS, KEEP];
    for (events, code) in [(21, 0), (42, 1), (63, 1), (63, 0)] {
        place.file("feed.jsonl", feed(events));
        let lock = (code == 1).then(|| locked(&place));
        let run = run(&place, &outputs, true, "");
        drop(lock);
        assert_eq!(run.code, code, "{run:?}");
        [DELTAS, CLUSTERS, KEEP].iter().for_each(|output| check(&place, output));
        if code == 0 {
            check(&place, TABLES);
        } else {
            let said = "error: output.2 is behind: the output cannot be written: pairs.db: database is \
                locked; the next start corrects it";
            assert!(run.err.contains(said), "{run:?}");
        }
    }
}

/// What no time mends ends the run, also of an output that waits.
#[test]
fn what_another_program_has_changed_ends_the_run() {
    let place = Place::new();
    place.file("feed.jsonl", feed(21));
    let clusters = format!("{CLUSTERS}{WAIT}");
    assert_eq!(run(&place, &[DELTAS, &clusters], true, "").code, 0);
    place.file("clusters.jsonl", place.read("clusters.jsonl").replace("cluster", "klcster"));
    let refused = run(&place, &[DELTAS, &clusters], true, "");
    assert!(refused.code == 1 && refused.err.contains("it has been changed"), "{refused:?}");
}

/// Who closes one of several outputs ends the run, and nothing of the end is published.
#[test]
fn a_closed_output_is_a_failure_beside_others() {
    let place = Place::new();
    place.file("feed.jsonl", feed(60));
    place.file("keep.csv", "as it was");
    for outputs in [&[DELTAS, "answer = \"clusters\"\n", KEEP][..], &["answer = \"pairs\"\n", KEEP]] {
        let tables: String = outputs.iter().map(|output| format!("[[output]]\n{output}")).collect();
        place.file("run.toml", SOURCE.to_owned() + &tables);
        let mut command = super::dupflow::command(["run", "-c", "run.toml"]);
        let (reader, writer) = std::io::pipe().unwrap();
        drop(reader);
        let ended =
            super::dupflow::ended(command.current_dir(place.path("")).stdout(writer).output().unwrap());
        assert!(ended.code == 1 && ended.err.contains("output"), "{outputs:?}: {ended:?}");
        assert_eq!(place.read("keep.csv"), "as it was");
    }
}

/// Changes of clusters and decisions are counted in the first output that has them.
#[test]
fn clusters_and_decisions_are_counted_once() {
    let tables = "kind = \"sqlite\"\npath = \"pairs.db\"\nanswer = \"decisions\"\n\
        decisions = \"current\"\n";
    let counts = |outputs: &[&str]| {
        let place = Place::new();
        place.file("feed.jsonl", feed(60));
        let run = run(&place, outputs, false, "");
        assert_eq!(run.code, 0, "{run:?}");
        let line = |what: &str| run.err.lines().find(|line| line.starts_with(what)).map(str::to_owned);
        [line("clusters "), line("decisions ")]
    };
    let both = counts(&[tables]);
    assert!(both.iter().all(Option::is_some), "{both:?}");
    let several = counts(&[CLUSTERS, DELTAS, tables, &CLUSTERS.replace("clusters.", "second.")]);
    assert_eq!(several, both);
}

#[test]
fn what_does_not_fit_is_refused_with_what_to_do() {
    let place = Place::new();
    place.file("feed.jsonl", feed(20));
    assert_eq!(run(&place, &[DELTAS, CLUSTERS], true, "").code, 0);
    // The first is lost.
    std::fs::rename(place.path("deltas.jsonl"), place.path("kept.jsonl")).unwrap();
    std::fs::rename(place.path("deltas.jsonl.mark"), place.path("kept.jsonl.mark")).unwrap();
    let refused = run(&place, &[DELTAS, CLUSTERS], true, "");
    assert!(refused.code == 1 && refused.err.contains("output.2: "), "{refused:?}");
    assert!(refused.err.contains("put this one first, and the empty one is filled"), "{refused:?}");
    let run_on = run(&place, &[CLUSTERS, DELTAS], true, "");
    assert_eq!(run_on.code, 0, "{run_on:?}");
    [CLUSTERS, DELTAS].iter().for_each(|output| check(&place, output));
    // One of another run, and one of another pipeline.
    let alone = "answer = \"cluster-deltas\"\npath = \"alone.jsonl\"\n";
    assert_eq!(run(&place, &[alone], false, "").code, 0);
    let refused = run(&place, &[CLUSTERS, alone], true, "");
    assert!(refused.code == 1 && refused.err.contains("not written together with the first"), "{refused:?}");
    let refused = run(&place, &[CLUSTERS, "path = \"clusters.jsonl.mark\"\n"], true, "");
    assert_eq!(refused.code, 2, "{refused:?}");
    let corrected = run(&place, &[CLUSTERS, alone], true, "--reconcile");
    assert_eq!(corrected.code, 0, "{corrected:?}");
    assert_eq!(run(&place, &[CLUSTERS, alone], true, "").code, 0);
    let refused = run(&place, &[CLUSTERS, DELTAS], true, "--set threshold=0.95");
    assert!(refused.code == 1 && refused.err.contains("another pipeline"), "{refused:?}");
    let other = DELTAS.replace("path", "answer = \"cluster-deltas\"\npath");
    for (outputs, key) in [([CLUSTERS, &other], "output.2.answer"), ([&other, CLUSTERS], "output.1.answer")] {
        let refused = run(&place, &outputs, true, "");
        assert!(refused.code == 1 && refused.err.contains(key), "{refused:?}");
    }
}

/// A correction of all outputs begins after the last epoch of each.
#[test]
fn epochs_never_regress() {
    let place = Place::new();
    let outputs = [DELTAS, DECISIONS, CLUSTERS];
    place.file("feed.jsonl", feed(40));
    assert_eq!(run(&place, &outputs, false, "").code, 0);
    let before = place.read("clusters.jsonl");
    std::fs::remove_file(place.path("deltas.jsonl")).unwrap();
    std::fs::remove_file(place.path("deltas.jsonl.mark")).unwrap();
    let refused = run(&place, &outputs, false, "");
    assert!(refused.code == 1 && refused.err.contains("start with --reconcile"), "{refused:?}");
    for (events, options) in [(40, "--reconcile"), (40, "--reconcile"), (60, "")] {
        place.file("feed.jsonl", feed(events));
        let run = run(&place, &outputs, false, options);
        assert_eq!(run.code, 0, "{options}: {run:?}");
        outputs.iter().for_each(|output| check(&place, output));
        if !options.is_empty() {
            assert_eq!(place.read("clusters.jsonl"), before, "nothing is retracted to be written again");
        }
        for name in ["decisions.jsonl", "clusters.jsonl"] {
            let epochs: Vec<_> = lines(&place.read(name)).iter().map(|line| line["epoch"].as_u64()).collect();
            assert!(epochs.is_sorted(), "{name}: {epochs:?}");
        }
    }
}

/// A start that is refused cuts no file: neither the dead letters nor an output.
#[test]
fn a_refused_start_leaves_the_dead_letters() {
    let place = Place::new();
    let letters = "[dead_letter]\npath = \"bad\"\n";
    let last = |output: &str| format!("{output}{letters}");
    let bad = |events: usize| feed(events) + "no record\n";
    place.file("feed.jsonl", bad(20));
    assert_eq!(run(&place, &[DELTAS, &last(CLUSTERS)], true, "").code, 0);
    copy(&place.path("state"), &place.path("earlier"));
    place.file("feed.jsonl", bad(20) + &bad(40) + "no record\n");
    assert_eq!(run(&place, &[DELTAS, &last(CLUSTERS)], true, "").code, 0);
    let (kept, deltas) = (place.read("bad"), place.read("deltas.jsonl"));
    assert_eq!(kept.lines().count(), 3);
    // The state is that of an earlier commit, as after a kill.
    std::fs::remove_dir_all(place.path("state")).unwrap();
    copy(&place.path("earlier"), &place.path("state"));
    let refused = run(&place, &[&DELTAS.replace("deltas", "new"), DELTAS, &last(CLUSTERS)], true, "");
    assert!(refused.code == 1 && refused.err.contains("put this one first"), "{refused:?}");
    assert_eq!((place.read("bad"), place.read("deltas.jsonl")), (kept.clone(), deltas.clone()));
    let run = run(&place, &[DELTAS, &last(CLUSTERS)], true, "");
    assert_eq!((run.code, place.read("bad"), place.read("deltas.jsonl")), (0, kept, deltas), "{run:?}");
}

/// Copies the files of a folder.
fn copy(from: &Path, to: &Path) {
    std::fs::create_dir_all(to).unwrap();
    for entry in std::fs::read_dir(from).unwrap().map(Result::unwrap) {
        std::fs::copy(entry.path(), to.join(entry.file_name())).unwrap();
    }
}

/// Beside a reference too another output can be the first.
#[test]
fn outputs_beside_a_reference_change_places() {
    let place = Place::new();
    place.file("feed.jsonl", feed(40));
    place.file("old.jsonl", upsert("old", &page(0..2, 1)));
    let second = DELTAS.replace("deltas", "second");
    let reference = "\n[reference]\ninputs = [\"old.jsonl\"]\n";
    let last = |output: &str| format!("{output}{reference}");
    for outputs in [[DELTAS, &last(&second)], [&second, &last(DELTAS)], [DELTAS, &last(&second)]] {
        let run = run(&place, &outputs, false, "");
        assert_eq!((run.code, corrected(&run)[0].len()), (0, 0), "{run:?}");
    }
    assert_eq!(place.read("deltas.jsonl"), place.read("second.jsonl"));
}

#[test]
fn problems_name_the_keys_as_they_are_typed() {
    let place = Place::new();
    place.file("feed.jsonl", feed(3));
    for (outputs, said) in [
        (
            &[DELTAS, "answer = \"kep\"\n"][..],
            "run.toml:10: output.2.answer: found \"kep\", expected \"deltas\"",
        ),
        (&[DELTAS, "topic = \"t\"\n"], "output.2.topic: has no effect with output.2.kind = \"lines\""),
        (&[DELTAS, "emit = \"keep\"\n"], "run.toml:10: output.2.emit: unknown key; such a table has kind, "),
        (&[DELTAS, "path = \"sink.jsonl.gz\"\n"], "output.2.path: \"sink.jsonl.gz\" is compressed"),
        (
            &[DELTAS, "answer = \"decisions\"\npath = \"x\"\n"],
            "output.2.decisions: decisions of the kind \"first\" are of each upsert",
        ),
        (&[DELTAS, "path = \"second.csv\"\n"], "output.2.path: an output beside the first is read back"),
        (&[DELTAS; 17], "output.17.kind: a run has 16 outputs at most, and there are 17"),
        (&[DELTAS, "kind = \"sqlite\"\n"], "output.2.path: found nothing, expected"),
        (
            &[DELTAS, "kind = \"sqlite\"\npath = \"x.db\"\nanswer = \"keep\"\n"],
            "output.2.answer: a database has both lists as views",
        ),
        (&[DELTAS, "path = \"x\"\nevidence = true\n"], "output.2.evidence: all outputs of pairs have"),
        (&[DELTAS, DELTAS], "output.2.path"),
        (&[DELTAS, TABLES, TABLES], "output.3.path: this database is that of output.2 too"),
        (
            &["answer = \"pairs\"\n", "answer = \"keep\"\n"],
            "output.2.path: standard output is that of output.1 too",
        ),
        (
            &[KEEP, "kind = \"lines\"\npath = \"x\"\n"],
            "run.toml:11: output.2.kind: the first output decides where a run goes on",
        ),
        (&[&format!("{DELTAS}{WAIT}")], "output.1.on_failure: the first output decides where a run goes on"),
        (&[DELTAS, &format!("{KEEP}{WAIT}")], "output.2.on_failure: an output that waits is read back"),
        (&[DELTAS, &WAIT.replace("wait", "go")], "output.2.on_failure: found \"go\", expected \"stop\""),
        (&["answer = \"keep\"\ncauses = true\n"], "output.1.causes: only deltas have causes"),
        (&[DELTAS, "answer = \"keep\"\ntimes = true\n"], "output.2.times: only changes have times"),
    ] {
        let run = run(&place, outputs, false, "");
        assert!(run.code == 2 && run.err.contains(said), "{said}: {run:?}");
        assert!(!run.err.replace("sink.jsonl", "").contains("sink."), "{run:?}");
    }
    // A table without a key is standard output.
    for tables in [format!("[sink]\n[[output]]\n{KEEP}"), format!("[[output]]\n{DELTAS}[[output]]\n")] {
        let place = Place::new();
        place.file("feed.jsonl", feed(3));
        place.file("empty.toml", format!("{SOURCE}{tables}"));
        let printed = place.run("run -c empty.toml");
        assert!(printed.code == 0 && !printed.out.is_empty(), "{printed:?}");
    }
    place.file("both.toml", format!("{SOURCE}[sink]\npath = \"deltas.jsonl\"\n[[output]]\n{KEEP}"));
    let checked = place.run("check -c both.toml");
    let listed = "  sink: deltas to \"deltas.jsonl\"\n  output.1: keep to \"keep.csv\"\n";
    assert!(checked.code == 0 && checked.out.contains(listed), "{checked:?}");
    let run = place.run("run -c both.toml");
    assert_eq!(run.code, 0, "{run:?}");
    [DELTAS, KEEP].iter().for_each(|output| check(&place, output));
}

/// Each place of a replay holds what it would hold alone; of a result that is not published none does.
#[test]
fn a_replay_writes_its_result_to_each_place() {
    let place = Place::new();
    place.file("feed.jsonl", feed(60));
    place.file("bad.jsonl", feed(40) + "no record\n");
    let alone = |emit: &str, output: &str| {
        let run = place.run(&format!("replay --emit {emit} -o {output} feed.jsonl"));
        assert_eq!((run.code, run.out.as_str()), (0, ""), "{run:?}");
        place.read(output)
    };
    for (emit, names) in [
        ("pairs", ["a.jsonl", "a.csv"]),
        ("deltas", ["a.csv", "a.jsonl"]),
        ("cluster-deltas", ["a.jsonl", "a.csv"]),
        ("clusters", ["a.csv", "a.jsonl"]),
        ("keep", ["a.jsonl", "a.csv"]),
        ("remove", ["a.csv", "a.jsonl"]),
    ] {
        let expected = names.map(|name| alone(emit, name));
        let [first, second] = names;
        let run = place.run(&format!("replay --emit {emit} -o {first} -o - -o {second} feed.jsonl"));
        let printed = place.run(&format!("replay --emit {emit} feed.jsonl")).out;
        assert_eq!((run.code, &run.out), (0, &printed), "{emit}: {run:?}");
        assert_eq!(names.map(|name| place.read(name)), expected, "{emit}");
    }
    // Tables are corrected, and a file beside them is whole.
    for feed in ["feed.jsonl", "bad.jsonl", "feed.jsonl"] {
        let typed = format!("replay --emit pairs -o pairs.jsonl -o sqlite:pairs.db -o sqlite:more.db {feed}");
        let run = place.run(&typed);
        assert_eq!(run.code, 0, "{run:?}");
        let written = pairs(&place.read("pairs.jsonl"));
        assert_eq!(written, pairs(&place.replay(&format!("--emit pairs {feed}")).0.out));
        assert_eq!(rows(&place, "pairs.db"), written);
        assert_eq!(rows(&place, "more.db"), written);
    }
    let before = (rows(&place, "pairs.db"), rows(&place, "more.db"), place.read("pairs.jsonl"));
    let unmet = place
        .run("replay --emit pairs --max-bad 0 -o pairs.jsonl -o sqlite:pairs.db -o sqlite:more.db bad.jsonl");
    assert!(unmet.code == 1 && unmet.err.contains("records are bad"), "{unmet:?}");
    assert_eq!((rows(&place, "pairs.db"), rows(&place, "more.db"), place.read("pairs.jsonl")), before);
    for (outputs, whole) in [
        ("-o a.jsonl -o /dev/full", r#"whole=--output "a.jsonl" failed"#),
        ("-o /dev/full -o a.jsonl -o a.csv", r#"whole=--output "a.jsonl", --output "a.csv" failed"#),
    ] {
        let run = place.run(&format!("replay --emit keep {outputs} feed.jsonl"));
        assert!(run.code == 1 && run.err.contains("some outputs have the result"), "{run:?}");
        assert!(run.err.contains(whole) && run.err.contains(r#"failed=--output "/dev/full""#), "{run:?}");
    }
    for (options, said) in [
        ("-o b.jsonl -o b.jsonl", "--output: \"b.jsonl\" is written to by --output"),
        ("-o - -o -", "--output: standard output is named twice"),
        ("-o sqlite:b.db -o sqlite:b.db", "--output: this database is named twice"),
        ("-o b.jsonl -o sqlite:b.db", "--output: a file gets changes epoch by epoch"),
        ("-o b.jsonl -o kafka:b", "--output: a file gets changes epoch by epoch"),
        ("--emit keep -o b.jsonl -o sqlite:b.db", "--emit: a database has both lists as views"),
        ("--emit keep -o b.jsonl -o kafka:b", "--emit: a list says at the end which documents stay"),
        ("--emit documents -o b.jsonl -o c.jsonl", "--output: records of documents, items and"),
        ("--emit pairs -o b.jsonl.gz -o c.jsonl", "--output: \"b.jsonl.gz\" is compressed"),
        ("--emit decisions --decisions first -o kafka:b", "--decisions: a topic keeps the decisions"),
        ("--provenance -o b.jsonl -o c.jsonl", "--provenance: it is written into one output"),
        ("--resume r -o b.jsonl -o c.jsonl", "several --output"),
        ("-o kafka:", "--output: name a topic"),
        ("-o kafka:b/c", "--output: name a topic"),
    ] {
        let run = place.run(&format!("replay {options} feed.jsonl"));
        assert!(run.code == 2 && run.err.contains(said), "{options}: {run:?}");
        assert!(!place.path("b.jsonl").exists() && !place.path("b.db").exists(), "{options}");
    }
}
