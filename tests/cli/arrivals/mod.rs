//! Files that arrive, grow, change and are removed between two runs: the deltas accumulate to what a fresh
//! run finds.
//!
//! Bug classes: a new file that sorts before those that were read is never read, and another one twice; a
//! file that was replaced keeps the documents of the earlier one; a text that was edited keeps its pair; a
//! restart that finds fewer records than were read.

mod gone;

use std::collections::BTreeSet;
use std::io::Write;

use serde_json::{Value, json};

use crate::dupflow::{Ended, Place};

/// The settings that decide what a restart reads.
#[derive(Clone, Copy, Debug)]
struct Setup {
    /// The inputs, as TOML.
    inputs: &'static str,
    has_state: bool,
    gone: &'static str,
    /// Further lines of `[source]`.
    source: &'static str,
}

impl Setup {
    const LINES: Self = Self { inputs: "\"in/*.jsonl\"", has_state: true, gone: "", source: "" };

    /// Each value with a state and without one.
    fn both(self) -> [Self; 2] {
        [true, false].map(|has_state| Self { has_state, ..self })
    }

    fn write(self, place: &Place) {
        let Self { inputs, has_state, gone, source } = self;
        let state = if has_state { "[state]\npath = \"state\"\n" } else { "" };
        let gone = if gone.is_empty() { String::new() } else { format!("gone = \"{gone}\"\n") };
        place.file(
            "here.toml",
            format!(
                "[source]\nkind = \"files\"\ninputs = [{inputs}]\n{gone}{source}{state}\
                 [sink]\nkind = \"lines\"\npath = \"out\"\n[logging]\nlevel = \"info\"\n"
            ),
        );
    }

    fn run(self, place: &Place) -> Ended {
        self.write(place);
        place.run("run -p exact -c here.toml")
    }

    /// A run that succeeds, and gives the pairs of a fresh one.
    fn follows(self, place: &Place, what: &str) {
        let run = self.run(place);
        assert_eq!(run.code, 0, "{what}, {self:?}: {run:?}");
        assert_eq!(accumulated(place, "out"), self.fresh(place), "{what}, {self:?}: {run:?}");
        let marked = place.read("out");
        let again = self.run(place);
        assert_eq!((again.code, place.read("out")), (0, marked), "{what}, {self:?}, again: {again:?}");
    }

    /// The pairs of a run on the present inputs.
    fn fresh(self, place: &Place) -> BTreeSet<(String, String)> {
        for name in ["fresh", "fresh.mark"] {
            drop(std::fs::remove_file(place.path(name)));
        }
        Self { has_state: false, gone: "", ..self }.write(place);
        let settings = place.read("here.toml").replace("path = \"out\"", "path = \"fresh\"");
        place.file("fresh.toml", settings);
        let run = place.run("run -p exact -c fresh.toml");
        assert_eq!(run.code, 0, "{run:?}");
        accumulated(place, "fresh")
    }
}

/// The pairs that deltas accumulate to: each is there once or not at all, at all times.
fn accumulated(place: &Place, name: &str) -> BTreeSet<(String, String)> {
    let mut pairs = BTreeSet::new();
    for line in place.read(name).lines() {
        let delta: Value = serde_json::from_str(line).unwrap();
        let pair = ["a", "b"].map(|key| delta[key].as_str().unwrap().to_owned()).into();
        let is_new = match delta["diff"].as_i64() {
            Some(1) => pairs.insert(pair),
            _ => pairs.remove(&pair),
        };
        assert!(is_new, "{line}");
    }
    pairs
}

/// Documents, each a text of some words about a topic; those of a topic are near copies.
fn lines(documents: &[(&str, &str)]) -> String {
    documents.iter().map(|(id, topic)| json!({ "id": id, "text": text(topic) }).to_string() + "\n").collect()
}

fn text(topic: &str) -> String {
    format!("the {topic} of this town is in its middle and all of its people know where that {topic} is")
}

#[test]
fn a_new_file_is_read_wherever_it_sorts() {
    for setup in Setup::LINES.both() {
        for new in ["in/a.jsonl", "in/day10.jsonl", "in/day5.jsonl", "in/z.jsonl"] {
            let place = Place::new();
            place.file("in/day1.jsonl", lines(&[("one", "bridge"), ("two", "market")]));
            place.file("in/day9.jsonl", lines(&[("nine", "harbour")]));
            setup.follows(&place, "first");
            place.file(new, lines(&[("copy", "bridge"), ("other", "harbour")]));
            setup.follows(&place, new);
            place.file("in/b.jsonl", lines(&[("late", "market")]));
            place.file("in/y.jsonl", lines(&[("later", "harbour")]));
            setup.follows(&place, "two more");
            assert_eq!(accumulated(&place, "out").len(), 5);
        }
    }
}

#[test]
fn a_file_that_grew_is_read_on() {
    for setup in Setup::LINES.both() {
        for grown in ["in/1.jsonl", "in/2.jsonl", "in/3.jsonl"] {
            let place = Place::new();
            place.file("in/1.jsonl", lines(&[("a", "bridge"), ("b", "market")]));
            // Without a line end, and with a bad record.
            place.file("in/2.jsonl", lines(&[("c", "harbour")]) + "oops");
            place.file("in/3.jsonl", "");
            setup.follows(&place, "first");
            let begun = place.read(grown);
            let end = if begun.ends_with('\n') || begun.is_empty() { "" } else { "\n" };
            place.file(grown, begun + end + &lines(&[("d", "bridge"), ("e", "harbour")]));
            place.file("in/0.jsonl", lines(&[("f", "market")]));
            setup.follows(&place, grown);
            assert_eq!(accumulated(&place, "out").len(), 3);
        }
    }
}

/// A writer that was in the middle of a line.
#[test]
fn a_line_that_was_completed_is_read() {
    for setup in Setup::LINES.both() {
        let place = Place::new();
        place.file("in/1.jsonl", lines(&[("a", "bridge")]));
        let (begun, last) = (lines(&[("z", "market")]), lines(&[("b", "bridge")]));
        place.file("in/2.jsonl", begun.clone() + &last[..20]);
        setup.follows(&place, "half a line");
        place.file("in/2.jsonl", begun + &last + &lines(&[("c", "bridge")]));
        setup.follows(&place, "the rest of it");
        assert_eq!(accumulated(&place, "out").len(), 3);
    }
}

/// What happens to a file that was read.
const ENDS: [&str; 3] = ["missing", "replaced", "shorter"];

fn end(place: &Place, name: &str, how: &str) {
    let path = place.path(name);
    match how {
        "missing" => std::fs::remove_file(path).unwrap(),
        "replaced" => {
            place.file(name, lines(&[("new", "market"), ("newer", "bridge"), ("newest", "bridge")]));
        }
        _ => {
            let read = place.read(name);
            let first = read.lines().next().unwrap().to_owned() + "\n";
            place.file(name, first);
        }
    }
}

fn with_three(setup: Setup) -> Place {
    let place = Place::new();
    place.file("in/1.jsonl", lines(&[("a", "bridge"), ("b", "market")]));
    place.file("in/2.jsonl", lines(&[("c", "bridge"), ("d", "market")]));
    place.file("in/3.jsonl", lines(&[("e", "market")]));
    setup.follows(&place, "first");
    place
}

/// A file under another name is not another file, except where records are named by their files.
#[test]
fn a_renamed_file_is_found_again() {
    for setup in Setup::LINES.both() {
        let place = with_three(setup);
        let length = place.read("out").len();
        std::fs::rename(place.path("in/3.jsonl"), place.path("in/0.jsonl")).unwrap();
        std::fs::copy(place.path("in/2.jsonl"), place.path("in/9.jsonl")).unwrap();
        std::fs::remove_file(place.path("in/2.jsonl")).unwrap();
        setup.follows(&place, "renamed and copied");
        assert_eq!(place.read("out").len(), length, "nothing has changed");
        place.file("in/0.jsonl", place.read("in/0.jsonl") + &lines(&[("f", "bridge")]));
        place.file("in/3.jsonl", lines(&[("g", "market")]));
        setup.follows(&place, "rotated");
        place.file("in/3.jsonl", place.read("in/3.jsonl") + &lines(&[("h", "market")]));
        place.file("in/0.jsonl", place.read("in/0.jsonl") + &lines(&[("i", "market")]));
        setup.follows(&place, "both have grown");
        let named = Setup { source: "ids = \"file\"\n", ..setup };
        let place = with_three(named);
        std::fs::rename(place.path("in/3.jsonl"), place.path("in/0.jsonl")).unwrap();
        let refused = named.run(&place);
        assert!(refused.code == 1 && refused.err.contains("is missing"), "{refused:?}");
        Setup { gone: "delete", ..named }.follows(&place, "other ids");
    }
}

/// The texts of a folder, or single ones: a changed file is an upsert, and a missing one a delete.
#[test]
fn files_that_are_documents_are_upserts_and_deletes() {
    for inputs in ["\"in\"", "\"in/*.txt\"", "\"in\", \"more/*.jsonl\""] {
        for setup in (Setup { inputs, ..Setup::LINES }).both() {
            let place = Place::new();
            place.file("more/1.jsonl", lines(&[("one", "market")]));
            for (name, topic) in [("b", "bridge"), ("c", "bridge"), ("d", "market")] {
                place.file(format!("in/{name}.txt"), text(topic));
            }
            setup.follows(&place, "first");
            place.file("in/c.txt", text("market"));
            setup.follows(&place, "edited");
            place.file("in/a.txt", text("bridge"));
            place.file("in/e.txt", text("bridge"));
            setup.follows(&place, "new ones");
            std::fs::remove_file(place.path("in/b.txt")).unwrap();
            setup.follows(&place, "a missing one");
            std::fs::remove_file(place.path("in/e.txt")).unwrap();
            setup.follows(&place, "the last one is missing");
            place.file("more/0.jsonl", lines(&[("zero", "market")]));
            setup.follows(&place, "records beside texts");
        }
    }
}

fn gzip(text: &str) -> Vec<u8> {
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::default());
    gzip.write_all(text.as_bytes()).unwrap();
    gzip.finish().unwrap()
}

/// A file with these documents, in a format.
fn encoded(format: &str, documents: &[(&str, &str)]) -> Vec<u8> {
    let record = |(id, topic): &(&str, &str)| {
        let text = text(topic);
        format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Record-ID: <urn:{id}>\r\nContent-Type: text/plain\r\n\
             Content-Length: {}\r\n\r\n{text}\r\n\r\n",
            text.len()
        )
    };
    match format {
        "csv" => {
            let rows = documents.iter().map(|(id, topic)| format!("{id},{}\n", text(topic)));
            ["id,text\n".to_owned()].into_iter().chain(rows).collect::<String>().into_bytes()
        }
        "warc" => documents.iter().map(record).collect::<String>().into_bytes(),
        "warc.gz" => documents.iter().flat_map(|one| gzip(&record(one))).collect(),
        "jsonl.gz" => documents.iter().flat_map(|one| gzip(&lines(&[*one]))).collect(),
        "jsonl.zst" => zstd::encode_all(lines(documents).as_bytes(), 1).unwrap(),
        _ => lines(documents).into_bytes(),
    }
}

/// Each format: a new file before and after, one that grew by records or by whole members, and one that is
/// replaced.
#[test]
fn all_formats_arrive_grow_and_go() {
    for format in ["jsonl", "csv", "warc", "warc.gz", "jsonl.gz", "jsonl.zst"] {
        for inputs in ["\"in/*\"", "\"in\""] {
            for setup in (Setup { inputs, ..Setup::LINES }).both() {
                let place = Place::new();
                let name = |stem: &str| format!("in/{stem}.{format}");
                let first = [("a", "bridge"), ("b", "market")];
                place.file(name("5"), encoded(format, &first));
                setup.follows(&place, format);
                place.file(name("10"), encoded(format, &[("c", "bridge")]));
                place.file(name("7"), encoded(format, &[("d", "market")]));
                setup.follows(&place, format);
                let more = [("a", "bridge"), ("b", "market"), ("e", "bridge")];
                place.file(name("5"), encoded(format, &more));
                let grown = setup.run(&place);
                if format == "jsonl.zst" {
                    // One frame, whose end is another one now.
                    assert!(grown.code == 1 && grown.err.contains("has been replaced"), "{grown:?}");
                    Setup { gone: "delete", ..setup }.follows(&place, format);
                } else {
                    setup.follows(&place, format);
                }
                place.file(name("7"), encoded(format, &[("f", "bridge"), ("g", "market")]));
                assert_eq!(setup.run(&place).code, 1, "{format}");
                Setup { gone: "delete", ..setup }.follows(&place, format);
            }
        }
    }
}

/// `--reconcile` ends with the pairs of a fresh run, whatever was read in which order.
#[test]
fn reconcile_reads_the_present_inputs() {
    for setup in Setup::LINES.both() {
        let setup = Setup { source: "ids = \"last\"\n", ..setup };
        let place = with_three(setup);
        // Read last, and first in the order of the names.
        place.file("in/0.jsonl", lines(&[("a", "harbour"), ("e", "harbour")]));
        assert_eq!(setup.run(&place).code, 0);
        assert_ne!(accumulated(&place, "out"), setup.fresh(&place), "the one that is read last counts");
        setup.write(&place);
        let reconciled = place.run("run -p exact -c here.toml --reconcile");
        assert_eq!(reconciled.code, 0, "{reconciled:?}");
        assert_eq!(accumulated(&place, "out"), setup.fresh(&place));
        end(&place, "in/2.jsonl", "missing");
        setup.write(&place);
        let before = accumulated(&place, "out");
        let refused = place.run("run -p exact -c here.toml --reconcile");
        assert!(
            refused.code == 1 && refused.err.contains("in/2.jsonl\" was read, and is missing"),
            "{refused:?}"
        );
        assert_eq!(accumulated(&place, "out"), before, "what may have expired is not dropped by the way");
        let setup = Setup { source: "ids = \"last\"\ngone = \"delete\"\n", ..setup };
        setup.write(&place);
        let reconciled = place.run("run -p exact -c here.toml --reconcile");
        assert!(reconciled.code == 0 && reconciled.err.contains("is missing"), "{reconciled:?}");
        assert_eq!(accumulated(&place, "out"), setup.fresh(&place));
        setup.follows(&place, "afterwards");
    }
}

/// Standard input has no name: as many records as were read are skipped.
#[test]
fn standard_input_skips_what_was_read() {
    let place = Place::new();
    let setup = Setup { inputs: "\"-\"", has_state: false, ..Setup::LINES };
    setup.write(&place);
    let run = |feed: &str| {
        place.run_with("run -p exact -c here.toml", |input| input.write_all(feed.as_bytes()).unwrap())
    };
    let first = lines(&[("a", "bridge"), ("b", "market")]);
    assert_eq!(run(&first).code, 0);
    let more = run(&(first + &lines(&[("c", "bridge")])));
    assert_eq!((more.code, accumulated(&place, "out").len()), (0, 1), "{more:?}");
}

/// More files than a mark lists, without a state: the rest of the list is beside the mark.
#[test]
fn many_files_without_a_state_are_listed_beside_the_mark() {
    let setup = Setup { has_state: false, ..Setup::LINES };
    let place = Place::new();
    for number in 0..600 {
        let id = number.to_string();
        let topic = format!("thing{}", number % 300);
        place.file(format!("in/{number:04}.jsonl"), lines(&[(&id, &topic)]));
    }
    setup.follows(&place, "many");
    place.file("in/0500b.jsonl", lines(&[("new", "thing7")]));
    setup.follows(&place, "one more");
    place.file("in/0010.jsonl", place.read("in/0010.jsonl") + &lines(&[("more", "thing9")]));
    setup.follows(&place, "one has grown");
    std::fs::rename(place.path("in/0020.jsonl"), place.path("in/moved.jsonl")).unwrap();
    setup.follows(&place, "one has another name");
    assert!(place.read("out.mark").len() < 10_000);
    for how in ["missing", "replaced"] {
        let whole = place.read("in/0002.jsonl");
        end(&place, "in/0002.jsonl", how);
        let refused = setup.run(&place);
        assert!(refused.code == 1 && refused.err.contains("\"in/0002.jsonl\""), "{how}: {refused:?}");
        place.file("in/0002.jsonl", whole);
        setup.follows(&place, "it is put back");
    }
    end(&place, "in/0002.jsonl", "missing");
    Setup { gone: "delete", ..setup }.follows(&place, "one is missing");
    std::fs::remove_file(place.path("out.mark.inputs")).unwrap();
    let refused = setup.run(&place);
    assert!(refused.code == 1 && refused.err.contains("out.mark.inputs"), "{refused:?}");
    for old in ["out", "out.mark"] {
        std::fs::remove_file(place.path(old)).unwrap();
    }
    setup.follows(&place, "begun anew, as the message says");
}

/// An archive that is still being written, plain or compressed.
#[test]
fn a_record_of_an_archive_that_was_completed_is_read() {
    let all = [("a1", "bridge"), ("b1", "market"), ("a2", "bridge"), ("b2", "market")];
    let [plain, packed] = ["warc", "warc.gz"].map(|format| {
        let end = |count| encoded(format, &all[..count]).len();
        (format, encoded(format, &all), (end(2) + end(3)) / 2)
    });
    for setup in (Setup { inputs: "\"in\"", ..Setup::LINES }).both() {
        for (format, whole, half) in [&plain, &packed] {
            let (place, name) = (Place::new(), format!("in/1.{format}"));
            place.file(&name, &whole[..*half]);
            let run = setup.run(&place);
            assert_eq!(run.code, 0, "{run:?}");
            place.file(&name, whole);
            setup.follows(&place, format);
            assert_eq!(accumulated(&place, "out").len(), 2, "{format}");
        }
    }
}

/// A pipe has no bytes that a later run could compare.
#[cfg(unix)]
#[test]
fn a_named_pipe_is_skipped_by_count() {
    let place = Place::new();
    assert!(std::process::Command::new("mkfifo").arg(place.path("pipe")).status().unwrap().success());
    let setup = Setup { inputs: "\"pipe\"", has_state: false, ..Setup::LINES };
    let mut feed = lines(&[("a", "bridge"), ("b", "market")]);
    for (more, pairs) in [("", 0), ("bridge", 1)] {
        feed += &lines(&[("c", more)][..usize::from(!more.is_empty())]);
        let (path, bytes) = (place.path("pipe"), feed.clone());
        let writer = std::thread::spawn(move || std::fs::write(path, bytes));
        let run = setup.run(&place);
        writer.join().unwrap().unwrap();
        assert_eq!((run.code, accumulated(&place, "out").len()), (0, pairs), "{run:?}");
    }
}

/// Takes the list of inputs out of the mark, as an earlier version wrote it.
fn without_list(place: &Place) {
    let mark = place.read("out.mark");
    let (_, json) = mark.split_once(' ').unwrap();
    let mut contents: Value = serde_json::from_str(json).unwrap();
    let list = contents["mark"].as_object_mut().unwrap().remove("inputs").unwrap();
    assert_eq!(list["spans"][0]["name"], "in/1.jsonl", "{list}");
    let json = contents.to_string();
    place.file("out.mark", format!("{:016x} {json}", dupflow::core::hash::bytes(0, json.as_bytes())));
}

#[test]
fn a_mark_without_a_list_goes_on_as_before() {
    let setup = Setup { has_state: false, ..Setup::LINES };
    let place = with_three(setup);
    without_list(&place);
    place.file("in/4.jsonl", lines(&[("f", "bridge")]));
    let run = setup.run(&place);
    assert!(run.code == 0 && run.err.contains("are not known: as many records as it read"), "{run:?}");
    assert_eq!(accumulated(&place, "out"), setup.fresh(&place));
    // A start that has nothing to write lists them too.
    let place = with_three(setup);
    without_list(&place);
    setup.follows(&place, "nothing new");
    place.file("in/0.jsonl", lines(&[("g", "market")]));
    setup.follows(&place, "a new one after a start without news");
    let place = with_three(setup);
    without_list(&place);
    place.file("in/4.jsonl", lines(&[("f", "bridge")]));
    assert_eq!(setup.run(&place).code, 0);
    // From then on it is known.
    place.file("in/0.jsonl", lines(&[("g", "market")]));
    setup.follows(&place, "a new one");
}

#[cfg(feature = "object-store")]
#[test]
fn objects_of_a_store_are_known_by_their_tags() {
    let place = Place::new();
    let inputs = format!("\"file://{}/\"", place.path("in").display());
    for setup in (Setup { inputs: inputs.leak(), ..Setup::LINES }).both() {
        for old in ["out", "out.mark", "in/10.jsonl", "in/7.jsonl"] {
            drop(std::fs::remove_file(place.path(old)));
        }
        place.file("in/5.jsonl", lines(&[("a", "bridge"), ("b", "market")]));
        setup.follows(&place, "first");
        place.file("in/10.jsonl", lines(&[("c", "bridge")]));
        place.file("in/7.jsonl", lines(&[("d", "market")]));
        setup.follows(&place, "new ones");
        place.file("in/5.jsonl", lines(&[("a", "bridge"), ("e", "market"), ("f", "bridge")]));
        let refused = setup.run(&place);
        assert!(refused.code == 1 && refused.err.contains("has been replaced"), "{refused:?}");
        Setup { gone: "delete", ..setup }.follows(&place, "replaced");
        std::fs::remove_file(place.path("in/7.jsonl")).unwrap();
        let refused = setup.run(&place);
        assert!(refused.code == 1 && refused.err.contains("was read, and is missing"), "{refused:?}");
        Setup { gone: "delete", ..setup }.follows(&place, "missing");
        let _ = std::fs::remove_dir_all(place.path("state"));
    }
}
