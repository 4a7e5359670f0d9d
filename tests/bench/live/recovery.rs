//! The time until a restarted run with state is live, and the size of the state on disk.

use std::fs::{self, OpenOptions};
use std::io::{BufWriter, Write};
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

use dupflow::connectors::formats::feed;
use dupflow::connectors::formats::feed::FeedRecord;
use dupflow::core::doc::fields::EventFields;
use dupflow::core::doc::{DocEvent, DocId};
use serde_json::Value;

use crate::documents::{Documents, id};
use crate::place::{Options, Run, cpu_of_ended, written};

/// Number of words of a document: 330 bytes, so that a million documents are generated in a minute. The size
/// of its state does not depend on its length.
const WORDS: u64 = 60;

/// Number of rounds of updates.
const ROUNDS: u64 = 10;

const DEPLOYMENT: &str = "[source]\nkind = \"files\"\ninputs = [\"feed.jsonl\"]\nepoch = \"events:5000\"\n\
    [sink]\nkind = \"lines\"\npath = \"out.jsonl\"\n[state]\npath = \"state\"\n";

/// Times and bytes of a run.
#[derive(Debug)]
struct Took {
    seconds: f64,
    /// Time until the run was live.
    live: f64,
    cpu: f64,
    /// Bytes written, all files together.
    written: u64,
    log: String,
}

/// Appends documents to the feed.
fn append(folder: &Path, numbers: impl Iterator<Item = u64>, version: u64) {
    let texts = Documents::new(WORDS);
    let file = OpenOptions::new().create(true).append(true).open(folder.join("feed.jsonl")).unwrap();
    let (mut out, mut text) = (BufWriter::new(file), String::new());
    for number in numbers {
        texts.text(number, version, &mut text);
        let event = DocEvent {
            id: DocId::new(&id(number)).unwrap(),
            text: Some((&*text).into()),
            ts: None,
            written: None,
            fields: EventFields::default(),
        };
        feed::write(&mut out, &FeedRecord { event, ts: None }).unwrap();
    }
    out.flush().unwrap();
}

/// Runs until the feed has been read.
fn run_through(folder: &Path) -> Took {
    let (begun, cpu, before) = (Instant::now(), cpu_of_ended(), written());
    let mut run = Run::start(folder, DEPLOYMENT);
    let mut live = None;
    while !run.has_ended() {
        std::thread::sleep(Duration::from_millis(5));
        if live.is_none() && run.ask("/ready").is_some() {
            live = Some(begun.elapsed().as_secs_f64());
        }
    }
    let seconds = begun.elapsed().as_secs_f64();
    Took {
        seconds,
        live: live.unwrap_or(seconds),
        cpu: cpu_of_ended() - cpu,
        written: written() - before,
        log: run.log(),
    }
}

fn inspect(folder: &Path) -> Value {
    let command = ["state", "inspect", "--json", "state"];
    let found =
        Command::new(env!("CARGO_BIN_EXE_dupflow")).args(command).current_dir(folder).output().unwrap();
    serde_json::from_slice(&found.stdout).unwrap()
}

fn length(path: &Path) -> u64 {
    fs::metadata(path).map_or(0, |found| found.len())
}

#[expect(clippy::cast_precision_loss, reason = "sizes for people")]
pub(crate) fn run(options: &Options) {
    let documents = options.count("documents", 1_000_000);
    let folder = tempfile::tempdir().unwrap();
    append(folder.path(), 0..documents, 0);
    let made = run_through(folder.path());
    println!("{documents} documents made in {:.1} s, CPU {:.1} s", made.seconds, made.cpu);
    let state = inspect(folder.path());
    println!(
        "on disk {:.1} bytes a document; ids and values {:.1}",
        state["bytes_per_document"].as_f64().unwrap(),
        state["document_bytes"].as_f64().unwrap() / documents as f64
    );
    for time in 0..3 {
        // A copy of the first document: its delta shows that the documents were restored.
        let file = OpenOptions::new().append(true).open(folder.path().join("feed.jsonl")).unwrap();
        let mut text = String::new();
        Documents::new(WORDS).text(0, 0, &mut text);
        let new = DocId::new(&format!("copy-{time}")).unwrap();
        let (text, fields) = (Some((&*text).into()), EventFields::default());
        let event = DocEvent { id: new, text, ts: None, written: None, fields };
        feed::write(&mut BufWriter::new(file), &FeedRecord { event, ts: None }).unwrap();
        let again = run_through(folder.path());
        let output = fs::read_to_string(folder.path().join("out.jsonl")).unwrap();
        assert!(output.lines().rev().take(9).any(|line| line.contains(&format!("copy-{time}"))));
        println!(
            "restart {time}: live after {:.2} s, a new document's delta written and all ended after {:.2} s, \
            CPU {:.2} s",
            again.live, again.seconds, again.cpu
        );
        again.log.lines().filter(|line| line.contains("restored")).for_each(|line| println!("  {line}"));
    }
    amplification(documents / 10);
}

/// Bytes written for each changed byte, over rounds in which every document is updated.
#[expect(clippy::cast_precision_loss, reason = "sizes for people")]
fn amplification(documents: u64) {
    let folder = tempfile::tempdir().unwrap();
    let mut total = 0;
    let mut changed = 0.0;
    for round in 0..=ROUNDS {
        append(folder.path(), 0..documents, round);
        let output = length(&folder.path().join("out.jsonl"));
        let took = run_through(folder.path());
        let output = length(&folder.path().join("out.jsonl")) - output;
        let state = inspect(folder.path());
        let size = |name: &str| state[name].as_f64().unwrap();
        if round > 0 {
            total += took.written - output;
            changed += size("document_bytes");
        }
        println!(
            "round {round}: {:.2} s, {:.1} MB written beside {:.1} MB of output, {:.1} bytes on disk a \
            document",
            took.seconds,
            (took.written - output) as f64 / 1e6,
            output as f64 / 1e6,
            size("bytes_per_document")
        );
    }
    println!(
        "{ROUNDS} rounds of updates of {documents} documents: {:.2} bytes written for each byte changed",
        total as f64 / changed
    );
}
