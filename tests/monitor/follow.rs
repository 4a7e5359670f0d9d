//! A followed file: its deltas are written while it grows, its texts are available, and a restart continues
//! after the last position.
//!
//! Bug classes: a record that is read twice, partly, or not at all, where the file ends for a moment or the
//! run is killed; a file that is truncated or replaced and read on as if it were the same.

use std::fmt::Write as _;
use std::fs::OpenOptions;
use std::io::Write as _;
use std::time::{Duration, Instant};

use serde_json::Value;

use super::client::{BOUND, get};
use super::run::{Place, Process};

fn line(n: usize) -> String {
    let words: Vec<String> = (0..60).map(|word| format!("слово{}", n % 5 * 100 + word)).collect();
    format!("{{\"id\":\"d{n}\",\"text\":\"{} {}\"}}\n", words.join(" "), n % 3)
}

fn lines(of: std::ops::Range<usize>) -> String {
    of.fold(String::new(), |mut all, n| {
        all.write_str(&line(n)).unwrap();
        all
    })
}

fn append(place: &Place, text: &str) {
    let mut file = OpenOptions::new().append(true).open(place.path("feed.jsonl")).unwrap();
    file.write_all(text.as_bytes()).unwrap();
}

fn configure(place: &Place) {
    place.write(
        "run.toml",
        "workers = 2\n[source]\nkind = \"files\"\ninputs = [\"feed.jsonl\"]\nepoch = \"every:20ms\"\nfollow \
            = true\n\
         [sink]\npath = \"out.jsonl\"\n[monitor]\nlisten = \"127.0.0.1:0\"\n",
    );
}

/// Polls until the condition holds; only a defect reaches the bound.
#[expect(clippy::disallowed_methods, reason = "the bound of a wait, which no time is compared with")]
fn until(what: &str, is_so: impl Fn() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < BOUND, "{what}");
        std::thread::park_timeout(Duration::from_millis(5));
    }
}

/// The number of pairs in the answer; `None` while the run is not live.
fn pairs(process: &Process) -> Option<usize> {
    let answer = get(process.address, "/pairs?limit=1000");
    let told: Value = serde_json::from_str(&answer.body).unwrap();
    (answer.code == 200).then(|| told["pairs"].as_array().unwrap().len())
}

fn text(process: &Process, id: &str) -> Option<String> {
    let answer = get(process.address, &format!("/documents/{id}/text"));
    let told: Value = serde_json::from_str(&answer.body).unwrap();
    (answer.code == 200).then(|| told["text"].as_str().unwrap().to_owned())
}

#[test]
fn a_growing_file_is_read_on_and_resumed_by_its_mark() {
    let place = Place::new();
    configure(&place);
    place.write("feed.jsonl", &lines(0..10));
    let process = place.start("run -c run.toml");
    until("two of each five are a pair", || pairs(&process) == Some(5));
    append(&place, &lines(10..14));
    // An incomplete line is not a record yet.
    let whole = line(14);
    let half = whole.len() / 2;
    let half = (half..).find(|at| whole.is_char_boundary(*at)).unwrap();
    append(&place, &whole[..half]);
    until("of three, three pairs", || pairs(&process) == Some(4 * 3 + 1));
    append(&place, &whole[half..]);
    until("the half line is one with the other half", || pairs(&process) == Some(15));
    let expected = serde_json::from_str::<Value>(&line(14)).unwrap()["text"].as_str().unwrap().to_owned();
    assert_eq!(text(&process, "d14"), Some(expected));
    process.kill();

    append(&place, &lines(15..20));
    let again = place.start("run -c run.toml");
    until("what was written meanwhile is read", || pairs(&again) == Some(30));
    append(&place, "{\"id\":\"d0\",\"op\":\"delete\"}\n");
    until("a delete takes its pairs back", || pairs(&again) == Some(27));
    assert!(text(&again, "d1").is_some());
    assert_eq!(again.interrupt().code(), Some(0));

    let (code, log) = place.done("replay --emit pairs -o expected.jsonl feed.jsonl");
    assert_eq!(code, Some(0), "{log}");
    let ids = |line: &str| {
        let told: Value = serde_json::from_str(line).unwrap();
        (told["a"].to_string(), told["b"].to_string(), told["diff"] != -1)
    };
    let mut left = std::collections::BTreeSet::new();
    for (a, b, comes) in place.read("out.jsonl").lines().map(ids) {
        assert!(if comes { left.insert((a, b)) } else { left.remove(&(a, b)) });
    }
    let wanted: std::collections::BTreeSet<_> =
        place.read("expected.jsonl").lines().map(ids).map(|(a, b, _)| (a, b)).collect();
    assert_eq!(left, wanted);
}

#[test]
fn a_file_that_is_cut_or_replaced_ends_the_run_and_is_named() {
    for replaced in [false, true] {
        let place = Place::new();
        configure(&place);
        place.write("feed.jsonl", &lines(0..10));
        let process = place.start("run -c run.toml");
        until("it is read", || pairs(&process) == Some(5));
        if replaced {
            // Lines written later through the old file handle are still read.
            let mut old = OpenOptions::new().append(true).open(place.path("feed.jsonl")).unwrap();
            std::fs::rename(place.path("feed.jsonl"), place.path("feed.1.jsonl")).unwrap();
            old.write_all(lines(10..15).as_bytes()).unwrap();
            until("the rest of the old file is read", || pairs(&process) == Some(15));
            place.write("feed.jsonl", &lines(15..20));
            process.wait_for("is another file now");
        } else {
            place.write("feed.jsonl", &lines(0..3));
            process.wait_for("has been cut");
        }
        assert_eq!(process.ended().code(), Some(1));
        // Does what the message suggests.
        let config = place.read("run.toml");
        if replaced {
            place
                .write("run.toml", &config.replace("[\"feed.jsonl\"]", "[\"feed.1.jsonl\", \"feed.jsonl\"]"));
            let again = place.start("run -c run.toml");
            until("the new file is read behind the old one", || pairs(&again) == Some(30));
            assert_eq!(again.interrupt().code(), Some(0));
        } else {
            // Does not wait for records that the file does not have.
            let again = place.start("run -c run.toml");
            assert_eq!(again.ended().code(), Some(1));
        }
    }
}

/// The file is at all times at least as long as what was read of it.
#[test]
fn a_file_that_is_written_anew_ends_the_run_and_is_named() {
    for anew in [lines(10..70), lines(5..10) + &lines(0..5)] {
        let place = Place::new();
        configure(&place);
        place.write("feed.jsonl", &lines(0..10));
        let process = place.start("run -c run.toml");
        until("it is read", || pairs(&process) == Some(5));
        let mut file = OpenOptions::new().write(true).open(place.path("feed.jsonl")).unwrap();
        file.write_all(anew.as_bytes()).unwrap();
        process.wait_for("has been written anew");
        assert_eq!(process.ended().code(), Some(1));
    }
}

#[test]
fn what_cannot_be_followed_is_a_wrong_configuration() {
    let place = Place::new();
    configure(&place);
    place.write("feed.jsonl", &lines(0..2));
    let config = place.read("run.toml");
    let refused = |from: &str, to: &str, why: &str| {
        place.write("run.toml", &config.replace(from, to));
        let (code, log) = place.done("run -c run.toml");
        assert!(code == Some(2) && log.contains("source.follow") && log.contains(why), "{log}");
    };
    refused("[\"feed.jsonl\"]", "[\"-\"]", "only a file can be followed");
    refused("[\"feed.jsonl\"]", "[\"feed.jsonl\", \"none.jsonl\"]", "only a file can be followed");
    refused("every:20ms", "all", "waits for its end");
    refused("follow = true", "follow = 1", "true or false");
}
