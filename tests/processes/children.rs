//! Several processes as users run them: children of the binary.
//!
//! Their output equals that of one process. Whatever happens to one of them, all end, and only complete
//! epochs are written.

#![cfg(unix)]

use std::io::Write;
use std::net::TcpStream;
use std::process::Stdio;

use dupflow::core::time::{Clock, SystemClock};
use flate2::Compression;
use flate2::write::GzEncoder;
use serde_json::Value;

use crate::group::PATIENCE;
use crate::place::{Place, Process, addresses, all_fail, ends, other_feed, start};

/// The stats of a replay, except what depends on the machine and on how the work is shared.
fn stats(place: &Place) -> Value {
    let mut stats: Value = serde_json::from_str(&place.read("stats.json")).unwrap();
    for of_this_run in ["seconds", "epoch_milliseconds", "peak_rss_bytes", "workers", "hot_blocks"] {
        stats.as_object_mut().unwrap().remove(of_this_run).unwrap();
    }
    stats
}

/// Deltas, dead letters and stats of a replay by this many processes and workers in each.
fn replayed(place: &Place, words: &str, processes: usize, workers: usize) -> (String, String, Value) {
    let words = format!(
        "replay {words} --workers {workers} -o out.jsonl --dead-letter dead --stats stats.json feed.jsonl \
        cut.gz"
    );
    place.all_done(&words, processes);
    // In one process the reader may find a bad record before a worker finds an earlier one.
    let dead = place.read("dead");
    let mut dead: Vec<&str> = dead.lines().collect();
    dead.sort_unstable();
    (without_times(&place.read("out.jsonl")), dead.join("\n"), stats(place))
}

/// Lines without the times at which decisions were written.
fn without_times(lines: &str) -> String {
    let without = |line: &str| match line.split_once("\"at\":\"") {
        Some((before, after)) => format!("{before}{}\n", after.split_once(',').unwrap().1),
        None => format!("{line}\n"),
    };
    lines.lines().map(without).collect()
}

#[test]
fn a_replay_is_the_same_by_any_number_of_processes_and_workers() {
    let place = Place::new(1000);
    // The reader itself finds that the input ends in the middle of a line.
    let mut half = GzEncoder::new(Vec::new(), Compression::default());
    half.write_all(b"{\"id\":\"1\",\"text\":\"a text\"}\n{\"id\":\"2\",\"te").unwrap();
    half.flush().unwrap();
    std::fs::write(place.path("cut.gz"), half.get_ref()).unwrap();
    for words in [
        "-p minhash --epoch events:50",
        "-p exact --epoch events:300",
        "-p weighted --epoch ts",
        "--emit cluster-deltas",
        "--emit decisions --decisions current --epoch events:50",
    ] {
        let expected = replayed(&place, words, 1, 1);
        assert!(
            expected.0.lines().count() > 100 && expected.1 == "oops\n{\"id\":\"2\",\"te",
            "{}",
            expected.1
        );
        for (processes, workers) in [(1, 2), (2, 1), (3, 2)] {
            let found = replayed(&place, words, processes, workers);
            let what = format!("{words}: {processes} x {workers}");
            assert!(found.0 == expected.0, "{what}: other deltas");
            assert_eq!((found.1, found.2), (expected.1.clone(), expected.2.clone()), "{what}");
        }
    }
}

#[test]
fn a_replay_that_is_cut_by_time_finds_the_same_pairs() {
    let place = Place::new(1000);
    let expected = place.expected();
    place.all_done("replay --workers 1 --epoch every:20ms -o out.jsonl feed.jsonl", 3);
    assert_eq!(place.pairs(), expected);
}

/// A run in progress: it has written something.
fn under_way(place: &Place, processes: usize) -> Vec<Process> {
    let all = place.start("run -c run.toml", processes);
    all[0].wait_for("committed");
    all
}

#[test]
fn a_run_is_killed_and_goes_on_by_fewer_processes() {
    let place = Place::new(6000);
    place.deployment("");
    for (processes, killed) in [(3, 1), (3, 0), (2, 1)] {
        let mut all = under_way(&place, processes);
        let one = all.remove(killed);
        one.signal("KILL");
        assert_eq!(one.end().0, None);
        all_fail(all, &format!("process {killed} (127."));
    }
    place.done("run -c run.toml");
    assert_eq!(place.pairs(), place.expected());
}

/// The number of documents that a process says it has restored.
pub(crate) fn restored(said: &str) -> u64 {
    let line = said.lines().find(|line| line.contains("documents restored from the state"));
    let line = line.unwrap_or_else(|| panic!("nothing is restored: {said}"));
    let number = line.split("documents=").nth(1).and_then(|rest| rest.split_whitespace().next());
    number.and_then(|number| number.parse().ok()).unwrap_or_else(|| panic!("{line}"))
}

/// Each process reads its share of the state, with any number of workers and under a memory budget too; the
/// share of one that does not reach the state is read by process 0.
#[test]
fn processes_that_come_back_restore_their_shares() {
    let place = Place::new(6000);
    place.deployment("");
    let first = under_way(&place, 3);
    first[0].signal("TERM");
    ends(first).into_iter().for_each(|(code, said)| assert_eq!(code, Some(0), "{said}"));
    let mut all = under_way(&place, 3);
    all.iter().for_each(|process| process.wait_for("documents restored from the state"));
    let killed = all.remove(1);
    killed.signal("KILL");
    assert_eq!(killed.end().0, None);
    all_fail(all, "process 1 (127.");
    let config = place.read("run.toml");
    place.write("far.toml", &config.replace("path = \"state\"", "path = \"elsewhere\""));
    let with_budget = config.replace("workers = 1", "workers = 2\nmemory = \"64MiB\"");
    place.write("budget.toml", &with_budget);
    let mut sums = Vec::new();
    for configs in [["run"; 3], ["run", "run", "far"], ["budget"; 3]] {
        place.write("hosts", &addresses(3).join("\n"));
        let start_one = |(i, name)| {
            start(
                &mut place.command(&format!("run -c {name}.toml --processes 3 --process {i} --hosts hosts")),
            )
        };
        let said = ends(configs.iter().enumerate().map(start_one).collect());
        said.iter().for_each(|(code, text)| assert_eq!(*code, Some(0), "{text}"));
        let reach = configs.iter().zip(&said).filter(|(name, _)| **name != "far");
        let documents: Vec<u64> = reach.map(|(_, (_, text))| restored(text)).collect();
        assert!(documents.iter().all(|restored| *restored > 0), "{documents:?}");
        assert_eq!(said[2].1.contains("process 0 restores it"), configs[2] == "far", "{}", said[2].1);
        sums.push(documents.iter().sum::<u64>());
        assert_eq!(place.pairs(), place.expected());
    }
    assert!(sums[0] <= sums[1] && sums[1] == sums[2], "{sums:?}");
}

#[test]
fn a_signal_to_any_process_ends_all_well() {
    let place = Place::new(6000);
    place.deployment("");
    for signalled in 0..3 {
        let all = under_way(&place, 3);
        all[signalled].signal("TERM");
        for (code, said) in ends(all) {
            assert_eq!(code, Some(0), "{said}");
        }
        place.pairs();
    }
    place.all_done("run -c run.toml", 2);
    assert_eq!(place.pairs(), place.expected());
}

#[test]
fn a_signal_ends_a_process_that_waits_for_the_others() {
    let place = Place::new(10);
    place.deployment("");
    for waiting in [0, 1] {
        let mut commands = place.commands("run -c run.toml", 2);
        let process = start(&mut commands[waiting]);
        process.wait_for("waiting for the other processes");
        process.signal("TERM");
        let (code, said) = process.end();
        assert!(code == Some(0) && said.contains("ended before all processes were there"), "{code:?} {said}");
    }
}

#[test]
fn a_bad_record_that_is_not_to_be_ends_all_and_no_epoch_is_written_in_part() {
    // Lines 128 to 383 are the second and the third batch of the first epoch, of processes 1 and 2; the next
    // epoch begins a batch with line 500.
    for (line, epoch) in [(200, 1), (300, 1), (510, 2), (1010, 3)] {
        let place = Place::new(1000);
        place.done("replay --epoch events:500 -o expected feed.jsonl");
        let feed = place.read("feed.jsonl").replace("oops\n", "");
        place.write("feed.jsonl", &feed);
        place.insert("oops", line);
        let words =
            "replay --workers 1 --epoch events:500 --set output.on_error=fail -o out.jsonl feed.jsonl";
        all_fail(place.start(words, 3), "feed.jsonl");
        place.done("replay --epoch events:500 -o expected feed.jsonl");
        let (found, expected) = (place.read("out.jsonl"), place.read("expected"));
        let rest = expected.strip_prefix(&*found).expect("what is written is the beginning");
        let epoch_of = |text: &str| serde_json::from_str::<Value>(text).unwrap()["epoch"].as_u64().unwrap();
        let last = found.lines().last().map_or(0, epoch_of);
        assert!(
            last < epoch && rest.lines().next().is_none_or(|next| epoch_of(next) > last),
            "{line}: {last}"
        );
    }
}

#[test]
fn what_differs_is_named_and_nothing_is_run() {
    let place = Place::new(10);
    place.deployment("[processes]\nconnect_seconds = 1\n");
    let other = |words: &str| {
        let mut commands = place.commands("run -c run.toml", 2);
        commands[1].args(words.split_whitespace());
        commands.iter_mut().map(start).collect::<Vec<_>>()
    };
    all_fail(other("--set threshold=0.7"), "threshold");
    all_fail(other("--set output.on_error=fail"), "output.on_error");
    for (key, value, field) in
        [("workers = 1", "workers = 2", "workers"), ("events:10", "events:20", "source.epoch")]
    {
        place.write("other.toml", &place.read("run.toml").replace(key, value));
        let mut commands = place.commands("run -c run.toml", 2);
        let mut second = place.command("run -c other.toml --processes 2 --process 1 --hosts hosts");
        all_fail(vec![start(&mut commands[0]), start(&mut second)], field);
    }
    assert!(!place.path("out.jsonl").exists(), "nothing is run");
}

#[test]
fn a_feed_of_the_same_name_that_is_another_one_ends_all() {
    let place = Place::new(1000);
    let words = "replay --workers 1 --epoch events:100 -o out.jsonl feed.jsonl";
    let mut commands = place.commands(words, 2);
    let folder = other_feed(&place, "other", r#"{"id":"x","text":"another text at the end of the feed"}"#);
    commands[1].current_dir(folder);
    all_fail(commands.iter_mut().map(start).collect(), "the processes have read different inputs");
    place.done("replay --epoch events:100 -o expected feed.jsonl");
    assert!(place.read("expected").starts_with(&place.read("out.jsonl")));
}

#[test]
fn a_process_that_hangs_ends_the_others() {
    let place = Place::new(6000);
    place.deployment("[processes]\nlost_seconds = 5\n");
    for hangs in [1, 0] {
        let mut all = under_way(&place, 3);
        let one = all.remove(hangs);
        one.signal("STOP");
        all_fail(all, &format!("process {hangs} (127."));
        one.signal("CONT");
        assert_eq!(one.end().0, Some(1));
    }
    place.done("run -c run.toml");
    assert_eq!(place.pairs(), place.expected());
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_of_the_first_process_ends_all() {
    let place = Place::new(1000);
    all_fail(place.start("replay --workers 1 -o /dev/full feed.jsonl", 3), "the output cannot be written");
}

/// Found before the processes connect.
#[test]
fn an_output_that_cannot_be_opened_is_wrong_usage() {
    let place = Place::new(10);
    let mut commands = place.commands("replay --workers 1 -o nowhere/out feed.jsonl", 2);
    let (code, said) = start(&mut commands[0]).end();
    assert!(
        code == Some(2) && said.contains("--output: \"nowhere/out\" cannot be written"),
        "{code:?}: {said}"
    );
}

#[test]
fn an_output_that_nobody_reads_ends_all_well() {
    let place = Place::new(3000);
    let mut commands = place.commands("replay --workers 1 --epoch events:50 feed.jsonl", 2);
    commands[0].stdout(Stdio::piped());
    let mut all: Vec<Process> = commands.iter_mut().map(start).collect();
    all[0].close_output();
    for (code, said) in ends(all) {
        assert_eq!(code, Some(0), "{said}");
    }
}

/// Connects as soon as the port is open.
fn knock(place: &Place) -> TcpStream {
    let hosts = place.read("hosts");
    let address = hosts.lines().next().unwrap();
    let clock = SystemClock::start();
    loop {
        match TcpStream::connect(address) {
            Ok(stream) => return stream,
            Err(error) => assert!(clock.now() < PATIENCE, "{error}"),
        }
        std::thread::yield_now();
    }
}

#[test]
fn strangers_on_the_port_change_nothing() {
    let place = Place::new(6000);
    place.deployment("");
    let mut commands = place.commands("run -c run.toml", 2);
    let mut all = vec![start(&mut commands[0])];
    knock(&place).write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    all[0].wait_for("it does not speak as dupflow does");
    all.push(start(&mut commands[1]));
    all[0].wait_for("committed");
    let hosts = place.read("hosts");
    for address in hosts.lines() {
        let refused = TcpStream::connect(address).unwrap_err();
        assert_eq!(refused.kind(), std::io::ErrorKind::ConnectionRefused, "nobody listens after the start");
    }
    for (code, said) in ends(all) {
        assert_eq!(code, Some(0), "{said}");
    }
    assert_eq!(place.pairs(), place.expected());
}

/// Where one process reads for all, the others know the input of each document: the count is that of one
/// process, and a list that would name one document for several does not exist.
#[test]
fn an_id_in_several_files_is_found_in_every_process() {
    let place = Place::new(10);
    let record =
        |id: &str, shard: u32| format!("{{\"id\":\"{id}\",\"text\":\"words of {shard} and {id}\"}}\n");
    for shard in 0..3 {
        let records: String = (0..300).map(|n| record(&n.to_string(), shard)).collect();
        place.write(&format!("{shard}.jsonl"), &records);
    }
    for processes in [1, 2, 3] {
        let words =
            "replay --workers 2 --epoch every:10s --stats stats.json -o out.jsonl 0.jsonl 1.jsonl 2.jsonl";
        place.all_done(words, processes);
        assert_eq!(stats(&place)["replaced_across_files"], 600, "{processes}");
    }
    place.write(
        "list.toml",
        "workers = 1\n[source]\nkind = \"files\"\ninputs = [\"a.jsonl\", \"b.jsonl\"]\n[sink]\npath \
        = \"list\"\nemit = \"keep\"\n",
    );
    // A document is on the worker of its id's hash, so some of these are in process 1.
    for id in ["one", "two", "three", "four"] {
        place.write("a.jsonl", &(record(id, 0) + &record("other", 0)));
        place.write("b.jsonl", &(record("another", 1) + &record(id, 1)));
        let ended = ends(place.start("run -c list.toml", 2));
        let (code, said) = &ended[0];
        assert!(*code == Some(1) && said.contains("1 document is replaced"), "{id}: {code:?} {said}");
        assert!(!place.path("list").exists(), "{id}");
    }
}
