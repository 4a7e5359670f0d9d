//! `dupflow replay -o sqlite:FILE`: after every replay the tables hold what its inputs give, whatever they
//! held.

#![cfg(feature = "sqlite")]
#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use super::dupflow::{Ended, Place};
use super::feeds::{delete, lines, page, pairs, upsert};

/// Three near-duplicates, a pair, and a text of its own; of the pair one is deleted after `until` events.
fn feed(until: usize) -> String {
    let mut events = vec![
        upsert("a", &page(0..0, 0)),
        upsert("b", &page(10..12, 1)),
        upsert("c", &page(20..22, 2)),
        upsert("x", &page(0..100, 3)),
        upsert("y", &page(0..100, 3)),
        upsert("own", &page(0..100, 4)),
        delete("y"),
        upsert("b", &page(0..100, 5)),
    ];
    events.truncate(until);
    events.concat()
}

fn column(place: &Place, sql: &str) -> Vec<String> {
    let read = rusqlite::Connection::open(place.path("out.db")).unwrap();
    let mut statement = read.prepare(sql).unwrap();
    let rows = statement.query_map([], |row| row.get(0)).unwrap();
    rows.map(Result::unwrap).collect()
}

/// Replays into the tables, and compares all that they hold with the files of another replay.
fn check(place: &Place, options: &str, inputs: &str) -> Ended {
    let run = place.run(format!("replay {options} -o sqlite:out.db {inputs}").replace("  ", " ").as_str());
    assert_eq!((run.code, run.out.as_str()), (0, ""), "{run:?}");
    let scheme = options.split("--emit").next().unwrap().trim();
    let listed = |emit: &str| {
        place.replay(format!("--emit {emit} {scheme} {inputs}").replace("  ", " ").as_str()).0.out
    };
    let there = "SELECT json_object('a', a, 'b', b, 'similarity', similarity) FROM pairs ORDER BY a, b";
    assert_eq!(pairs(&column(place, there).join("\n")), pairs(&listed("pairs")), "{options} {inputs}");
    let ids = |emit: &str| -> Vec<String> {
        lines(&listed(emit)).iter().map(|line| line["id"].as_str().unwrap().to_owned()).collect()
    };
    let (kept, removed) = (ids("keep"), ids("remove"));
    assert_eq!(column(place, "SELECT id FROM kept ORDER BY id"), kept);
    assert_eq!(column(place, "SELECT id FROM removed ORDER BY id"), removed);
    let mut alive = [kept, removed].concat();
    alive.sort_unstable();
    assert_eq!(column(place, "SELECT id FROM documents ORDER BY id"), alive);
    run
}

#[test]
fn tables_hold_what_the_last_replay_gives() {
    let place = Place::new();
    let sums = "SELECT a || ' ' || b FROM deltas GROUP BY a, b, similarity HAVING sum(diff) <> 0 ORDER BY 1";
    let there = "SELECT a || ' ' || b FROM pairs ORDER BY 1";
    for (until, options, name) in [
        (6, "--epoch events:2", "feed.jsonl"),
        (6, "--epoch events:2", "feed.jsonl"),
        (8, "--epoch events:2", "feed.jsonl"),
        (7, "--epoch all --workers 2", "feed.jsonl"),
        (2, "", "feed.jsonl"),
        (6, "--set threshold=0.95", "other.jsonl"),
        (6, "-p exact --set threshold=0.5", "other.jsonl"),
        (6, "", "other.jsonl"),
    ] {
        place.file(name, feed(until));
        check(&place, options, name);
        assert_eq!(column(&place, sums), column(&place, there), "{options}");
    }
    // Tables of frequencies are made by these epochs, whatever an earlier replay had.
    let many = |n: u32| (0..n).map(|n| upsert(&format!("{n:03}"), &page(n / 2..n / 2 + 2, 7)));
    for (documents, pipeline) in
        [(40, "paper"), (40, "paper"), (60, "weighted"), (60, "weighted"), (30, "paper")]
    {
        place.file("many.jsonl", many(documents).collect::<String>());
        check(&place, &format!("-p {pipeline} --epoch events:10"), "many.jsonl");
        assert!(!column(&place, there).is_empty(), "{pipeline}");
    }
    place.file("feed.jsonl", feed(2));
    // What else tables may keep begins and ends with the option.
    check(&place, "--emit decisions", "other.jsonl");
    let of = "SELECT id || ' ' || ifnull(of, '-') FROM decisions WHERE ended = 0 ORDER BY id";
    assert_eq!(column(&place, of), ["a a", "b a", "c a", "own -", "x x", "y x"]);
    // Other texts at the same positions.
    place.file("turned.jsonl", [upsert("a", &page(0..100, 9)), feed(2).replace("\"a\"", "\"z\"")].concat());
    check(&place, "--emit decisions", "turned.jsonl");
    assert_eq!(column(&place, of), ["a -", "b b", "z b"]);
    check(&place, "--emit decisions --decisions current", "feed.jsonl");
    assert_eq!(column(&place, of), ["a a", "b a"]);
    check(&place, "--emit pairs", "feed.jsonl other.jsonl --ids last");
    assert_eq!(column(&place, of), [""; 0]);
    // A clock that is behind that of the replay before.
    let aged = |ts: u64| format!("{{\"id\":\"of {ts}\",\"ts\":{ts},\"text\":\"one two three four\"}}\n");
    for ts in [2_000_000, 1_000] {
        place.file("aged.jsonl", aged(ts) + &aged(ts + 1));
        check(&place, "--set retention.max_age=60s --set retention.clock=event", "aged.jsonl");
    }
    // A run continues where the replay ended.
    let source = "source.inputs = [\"feed.jsonl\"]\nsink.kind = \"sqlite\"\nsink.path = \"out.db\"\n";
    check(&place, "--emit pairs", "feed.jsonl");
    place.file("here.toml", source);
    place.file("feed.jsonl", feed(6));
    let run = place.run("run -c here.toml");
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(column(&place, there), ["a b", "a c", "b c", "x y"]);
}

#[test]
fn standard_input_and_bad_records_are_replayed_into_tables() {
    let place = Place::new();
    for until in [6, 8, 3] {
        let run = place.run_with("replay -o sqlite:out.db -", |input| {
            input.write_all(feed(until).as_bytes()).unwrap();
        });
        assert_eq!((run.code, run.out.as_str()), (0, ""), "{run:?}");
        place.file("feed.jsonl", feed(until));
        let expected = pairs(&place.replay("--emit pairs feed.jsonl").0.out);
        assert_eq!(column(&place, "SELECT a || b FROM pairs").len(), expected.len());
    }
    place.file("feed.jsonl", feed(6) + "no record\n");
    place.file("garbage.jsonl", "no record\n");
    let before = column(&place, "SELECT id FROM documents ORDER BY id");
    for typed in
        ["--max-bad 0 --dead-letter bad -o sqlite:out.db feed.jsonl", "-o sqlite:out.db garbage.jsonl"]
    {
        let run = place.run(&format!("replay {typed}"));
        assert!(run.code == 1 && run.err.contains("the output stays as it was"), "{run:?}");
        assert_eq!(column(&place, "SELECT id FROM documents ORDER BY id"), before);
    }
    assert_eq!(column(&place, "SELECT a || b FROM pairs").len(), 3);
    assert_eq!(place.read("bad").lines().count(), 1);
    let run = place.run("replay --dead-letter bad -o sqlite:out.db feed.jsonl");
    assert_eq!(run.code, 0, "{run:?}");
    assert_eq!(column(&place, "SELECT id FROM documents ORDER BY id"), ["a", "b", "c", "own", "x", "y"]);
    assert_eq!(place.read("bad").lines().count(), 1, "letters are not written twice");
}

#[test]
fn what_tables_cannot_have_is_refused() {
    let place = Place::new();
    place.file("feed.jsonl", feed(6));
    place.file("views.toml", "[[view]]\nname = \"all\"\nof = \"pairs\"\noutput = \"rows\"\n");
    for (options, said) in [
        ("--emit keep", "--emit: a database has both lists as views"),
        ("--emit clusters", "--emit: a database keeps pairs"),
        ("--emit rejected:3", "--emit: a database keeps pairs"),
        ("--mark dup", "--mark: not with tables"),
        ("--shard-size 1MiB", "--shard-size: not with tables"),
        ("--output-format csv", "--output-format: not with tables"),
        ("--provenance", "--provenance: not with tables"),
        ("--times", "--times: not with tables"),
        ("--against feed.jsonl", "--against: not with tables"),
        ("--resume folder", "--resume: not with tables"),
        ("--speed 10x", "--speed: not with tables"),
        ("--views views.toml", "--views: not with tables"),
        ("--watch feed.jsonl --notices found", "--watch: not with tables"),
        ("--processes 2 --process 0 --hosts feed.jsonl --workers 1", "--processes: not with tables"),
        ("--set output.keep=longest", "output.keep: the views kept and removed"),
    ] {
        let run = place.run(&format!("replay {options} -o sqlite:out.db feed.jsonl"));
        assert!(run.code == 2 && run.err.contains(said), "{options}: {run:?}");
        assert!(!place.path("out.db").exists(), "{options}");
    }
    for (output, said) in [
        ("sqlite:", "--output: name a file"),
        ("sqlite::memory:", "--output: tables in memory are gone with the run"),
        ("sqlite:feed.jsonl", "--output: \"feed.jsonl\" is an input and would be lost"),
        ("postgres://me:secret@host:port/db", "--output: "),
        ("sqlite3:out.db", "--output: the tables of a database are \"sqlite:FILE\""),
        ("s3://bucket/out", "--output: \"s3:\" names no file"),
        ("out.db", "\"sqlite:FILE\" is the tables of a database"),
    ] {
        let run = place.run(&format!("replay -o {output} feed.jsonl"));
        assert!(run.code == 2 && run.err.contains(said), "{output}: {run:?}");
        assert!(!run.err.contains("secret") && run.err.matches("--output").count() == 1, "{output}: {run:?}");
    }
    place.file("other.db", "no database, but the work of years");
    let run = place.run("replay -o sqlite:other.db feed.jsonl");
    assert!(run.code == 1 && run.err.contains("other.db"), "{run:?}");
    assert_eq!(place.read("other.db"), "no database, but the work of years");
}
