//! `dupflow run`: it ends with its input or at a signal, after writing whole epochs of what has been read.

use std::io::{BufRead, BufReader, Read, Write};
use std::process::{Child, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};

use super::dupflow::{Place, command};
use super::feeds::{lines, page, upsert};

/// Writes a deployment file for standard input, with `top` before its tables.
fn deployment(place: &Place, epoch: &str, top: &str) {
    place.file("here.toml", format!("{top}\n[source]\ninputs = [\"-\"]\nepoch = \"{epoch}\"\n"));
}

/// `count` copies of one page, numbered from `from`: each is paired with all before it.
fn copies(from: usize, count: usize) -> String {
    (from..from + count).map(|n| upsert(&format!("{n:06}"), &page(0..0, 0))).collect()
}

/// A running binary with its pipes.
struct Running {
    child: Child,
    input: ChildStdin,
    output: BufReader<ChildStdout>,
    messages: BufReader<ChildStderr>,
}

impl Running {
    fn start(place: &Place) -> Self {
        let mut child = command(["run", "-c", "here.toml"])
            .current_dir(place.path(""))
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the binary runs");
        let input = child.stdin.take().expect("it is piped");
        let output = BufReader::new(child.stdout.take().expect("it is piped"));
        let messages = BufReader::new(child.stderr.take().expect("it is piped"));
        Self { child, input, output, messages }
    }

    fn send(&mut self, feed: &str) {
        self.input.write_all(feed.as_bytes()).expect("the pipe is open");
        self.input.flush().expect("the pipe is open");
    }

    /// Reads `count` lines of output.
    fn read(&mut self, count: usize) -> String {
        let mut read = String::new();
        for _ in 0..count {
            assert!(
                self.output.read_line(&mut read).expect("the pipe is open") > 0,
                "the output ended after {read}"
            );
        }
        read
    }

    /// Reads messages up to one that contains `message`.
    fn wait_for(&mut self, message: &str) {
        let mut text = String::new();
        while !text.contains(message) {
            assert!(
                self.messages.read_line(&mut text).expect("the pipe is open") > 0,
                "{message:?} is not in {text}"
            );
        }
    }

    fn signal(&self, name: &str) {
        let sent = Command::new("kill")
            .args(["-s", name, &self.child.id().to_string()])
            .status()
            .expect("kill runs");
        assert!(sent.success());
    }

    /// Waits for the end with standard input still open. Returns the exit code, the rest of the output and
    /// the rest of the messages.
    fn end(mut self) -> (Option<i32>, String, String) {
        let (mut out, mut err) = (String::new(), String::new());
        self.output.read_to_string(&mut out).expect("the pipe is open");
        self.messages.read_to_string(&mut err).expect("the pipe is open");
        (self.child.wait().expect("it ends").code(), out, err)
    }
}

#[test]
fn a_run_to_the_end_of_its_input_is_a_replay() {
    let place = Place::new();
    place.run("generate --documents 300 --seed 3 --near 0.5 --max-words 80 -o feed.jsonl");
    let expected = place.replay("--epoch events:50 --set threshold=0.7 -p exact feed.jsonl").0.out;
    assert!(expected.lines().count() > 20);
    place.file(
        "here.toml",
        "workers = 2\n[source]\ninputs = [\"feed.jsonl\"]\nepoch = \"events:50\"\n[sink]\npath = \"out\"\n",
    );
    let run = place.run("run -p exact --set threshold=0.7 -c here.toml");
    assert_eq!((run.code, run.out.as_str(), place.read("out")), (0, "", expected));
    assert!(run.err.contains(" run pipeline=\"exact\"") && run.err.contains("\nmemory "), "{run:?}");
}

#[test]
fn a_deployment_sets_emit_state_and_logging() {
    let place = Place::new();
    place.file("feed", copies(0, 2) + "oops\n");
    place.file(
        "here.toml",
        "[source]\ninputs = [\"feed\"]\n[dead_letter]\npath = \"dead\"\n[sink]\nemit = \"pairs\"\nevidence = \
        true\n\
         [logging]\nlevel = \"warn\"\nformat = \"json\"\n",
    );
    let run = place.run("run -c here.toml");
    let letters = lines(&place.read("dead"));
    assert_eq!((run.code, letters.len()), (0, 1), "{run:?}");
    assert_eq!((&letters[0]["raw"], &letters[0]["offset"]), (&"oops".into(), &2.into()), "{letters:?}");
    let pairs = lines(&run.out);
    assert!(pairs.len() == 1 && pairs[0]["blocks"] == 0, "{run:?}");
    let logged = lines(&run.err);
    assert_eq!((&logged[0]["level"], logged.len()), (&"WARN".into(), 1), "{run:?}");
    assert!(
        place.run("run --log-format text -c here.toml").err.contains(" WARN "),
        "typed wins over written"
    );
}

#[cfg(unix)]
#[test]
fn a_signal_leaves_whole_epochs_of_what_was_read() {
    for signal in ["TERM", "INT"] {
        let place = Place::new();
        deployment(&place, "events:10", "");
        let feed = copies(0, 25);
        let mut run = Running::start(&place);
        run.send(&feed);
        // The pairs of 20 documents: the first two epochs.
        let mut written = run.read(20 * 19 / 2);
        run.signal(signal);
        let (code, rest, text) = run.end();
        assert_eq!(code, Some(0), "{text}");
        written += &rest;
        let is_of = |events: usize| {
            let part = feed.lines().take(events).map(|line| format!("{line}\n")).collect::<String>();
            place.file("part", part);
            place.replay("--epoch events:10 part").0.out == written
        };
        // The third epoch is finished with the records read so far.
        assert!((20..=25).any(is_of), "{written}");
        assert!(text.contains("stopping: what has been read is finished, within 10 s"), "{text}");
        assert!(text.contains("\nread "), "a summary: {text}");
    }
}

#[cfg(unix)]
#[test]
fn an_epoch_by_the_clock_waits_for_no_more_events() {
    let place = Place::new();
    deployment(&place, "every:1ms", "");
    let mut run = Running::start(&place);
    run.send(&copies(0, 2));
    let first = lines(&run.read(1))[0]["epoch"].as_u64();
    run.send(&copies(2, 1));
    let later: Vec<_> = lines(&run.read(2)).iter().map(|delta| delta["epoch"].as_u64()).collect();
    assert!(first.is_some() && later.iter().all(|epoch| *epoch > first), "{first:?}, then {later:?}");
    run.signal("TERM");
    assert_eq!(run.end().0, Some(0));
}

/// As `tail -f FEED | dupflow run -c config/local.toml` does: an epoch with fewer events than its limit is
/// closed by time.
#[cfg(unix)]
#[test]
fn deltas_are_written_while_the_pipe_is_open() {
    let local = concat!(env!("CARGO_MANIFEST_DIR"), "/config/local.toml");
    let local = std::fs::read_to_string(local).expect("can be read");
    for deployment in [local.as_str(), "[source]\ninputs = [\"-\"]\n"] {
        let place = Place::new();
        place.file("here.toml", deployment);
        let mut run = Running::start(&place);
        run.send(&copies(0, 2));
        assert_eq!(lines(&run.read(1))[0]["b"], "000001");
        run.send(&copies(2, 1));
        run.read(2);
        run.signal("TERM");
        assert_eq!(run.end().0, Some(0));
    }
}

/// More lines than a pipe holds, without a reader.
#[cfg(unix)]
fn stuck(shutdown_seconds: u32) -> (Place, Running) {
    let place = Place::new();
    deployment(&place, "events:500", &format!("shutdown_seconds = {shutdown_seconds}"));
    let mut run = Running::start(&place);
    run.send(&copies(0, 700));
    // The first line proves that it has begun to write.
    run.read(1);
    (place, run)
}

#[cfg(unix)]
#[test]
fn a_run_gives_up_after_its_shutdown_time() {
    let (_place, mut run) = stuck(1);
    run.signal("TERM");
    run.wait_for("stopping: what has been read is finished, within 1 s");
    let code = run.child.wait().unwrap().code();
    let (_, _, text) = run.end();
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("error: what had been read could not be finished within 1 s of the signal"),
        "{text}"
    );
}

#[cfg(unix)]
#[test]
fn a_second_signal_ends_it_at_once() {
    let (_place, mut run) = stuck(3600);
    run.signal("INT");
    run.wait_for("stopping");
    run.signal("TERM");
    assert_eq!(run.child.wait().unwrap().code(), Some(1));
}

#[test]
fn a_closed_pipe_ends_a_run_with_code_0() {
    let place = Place::new();
    deployment(&place, "events:10", "");
    let Running { mut child, mut input, output, mut messages } = Running::start(&place);
    drop(output);
    // Until the run has noticed the closed output; its input stays open.
    let copies = copies(0, 1000);
    while input.write_all(copies.as_bytes()).is_ok() && child.try_wait().unwrap().is_none() {}
    let mut text = String::new();
    messages.read_to_string(&mut text).unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0), "{text}");
    assert!(!text.contains("error") && !text.contains("panic"), "{text}");
}

#[test]
fn a_run_that_cannot_begin_names_all_problems() {
    let place = Place::new();
    place.file("docs/a", "text");
    place.file(
        "here.toml",
        "shutdown_seconds = -1\n[source]\ninputs = [\"-\"]\nepoch = \"hourly\"\n[sink]\nkind = \"kafka\"\n",
    );
    let run = place.run("run -p minhsah -c here.toml");
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
    for problem in [
        "no pipeline \"minhsah\", did you mean \"minhash\"?",
        "here.toml:1: shutdown_seconds: found -1, expected a whole number from 0 to 3600",
        "here.toml:4: source.epoch: found \"hourly\"",
        "here.toml: sink.topic: found nothing, expected the name of a topic",
    ] {
        assert!(run.err.contains(problem), "{problem:?} is not in {run:?}");
    }

    place.file(
        "here.toml",
        "[source]\ninputs = [\"docs\", \"none\"]\n[dead_letter]\npath = \"./docs/dead\"\n\
         [sink]\npath = \"docs/out\"\nemit = \"clusters\"\nevidence = true\n",
    );
    let conflicting = place.run("run -c here.toml");
    assert!(conflicting.code == 2 && conflicting.err.contains("cannot read \"none\": "), "{conflicting:?}");
    let checked = place.run("check -c here.toml");
    assert_eq!(checked.code, 2, "{checked:?}");
    for problem in [
        "sink.evidence: only pairs have evidence",
        "sink.path: \"docs/out\" is in the folder \"docs\"",
        "dead_letter.path: \"./docs/dead\" is in the folder \"docs\"",
    ] {
        assert!(conflicting.err.contains(problem), "{problem:?} is not in {conflicting:?}");
        assert!(checked.err.contains(problem), "{problem:?} is not in {checked:?}");
    }
    assert!(!place.path("docs/out").exists());

    let nothing = place.run("run");
    assert!(nothing.code == 2 && nothing.err.contains("--config <CONFIG>"), "{nothing:?}");
}

#[test]
fn a_restarted_run_continues_without_repeating_output() {
    let place = Place::new();
    place.run("generate --documents 3000 --seed 3 --near 0.5 --max-words 80 -o feed.jsonl");
    let expected = place.replay("--epoch events:50 feed.jsonl").0.out;
    place.file(
        "here.toml",
        "workers = 2\n[source]\ninputs = [\"feed.jsonl\"]\nepoch = \"events:50\"\n[sink]\npath = \"out\"\n\
         [state]\npath = \"state\"\n",
    );
    let first = place.run("run -c here.toml");
    assert_eq!((first.code, &place.read("out")), (0, &expected), "{first:?}");
    let again = place.run("run -c here.toml");
    assert_eq!((again.code, &place.read("out")), (0, &expected), "{again:?}");
    // All stored documents have been restored, even if there is nothing more to read.
    let line_with = |run: &str, what: &str| {
        let line = run.lines().find(|line| line.starts_with(what)).expect("the line is printed").to_owned();
        line.split(',').next().expect("a line has a beginning").to_owned()
    };
    for what in ["documents", "pairs"] {
        assert_eq!(line_with(&again.err, what), line_with(&first.err, what));
    }
    let other = place.run("run -c here.toml --set threshold=0.6");
    assert_eq!(other.code, 1);
    assert!(
        other.err.contains(
            "another pipeline: threshold is 0.8 there and 0.6 here (and what is planned from \
             that: blocking.bands, blocking.rows, filter.first_word, filter.looks); start with --reconcile"
        ),
        "{other:?}"
    );
    // A run whose records are mapped in another way is refused.
    let renamed = place.read("here.toml").replacen("epoch", "text_path = \"body\"\nepoch", 1);
    place.file("renamed.toml", renamed);
    let misread = place.run("run -c renamed.toml");
    assert!(misread.code == 1 && misread.err.contains("source.text_path"), "{misread:?}");
    let reconciled = place.run("run -c here.toml --set threshold=0.6 --reconcile");
    assert_eq!(reconciled.code, 0, "{reconciled:?}");
    let mut pairs = std::collections::BTreeSet::new();
    for line in lines(&place.read("out")) {
        let pair = (line["a"].to_string(), line["b"].to_string(), line["similarity"].to_string());
        assert!(if line["diff"] == 1 { pairs.insert(pair) } else { pairs.remove(&pair) }, "{line}");
    }
    let fresh = place.run("replay --emit pairs --set threshold=0.6 feed.jsonl");
    let fresh: std::collections::BTreeSet<_> = lines(&fresh.out)
        .iter()
        .map(|line| (line["a"].to_string(), line["b"].to_string(), line["similarity"].to_string()))
        .collect();
    assert_eq!(pairs, fresh);
}

/// With two outputs and one state, either output may be behind the epoch that the other's run has stored.
#[test]
fn outputs_that_share_a_state_are_each_right() {
    let place = Place::new();
    let text = |family: usize| (0..20).map(|n| format!("word{family}x{n} ")).collect::<String>();
    let mut feed: String = (0..6).map(|n| upsert(&n.to_string(), &text(n % 2))).collect();
    let mut run = |output: &str, more: &str| {
        feed += more;
        place.file("a.jsonl", &feed);
        place.file(
            "c.toml",
            format!(
                "workers = 1\nstate.path = \"state\"\n[source]\ninputs = [\"a.jsonl\"]\n[sink]\npath \
                = \"{output}\"\n"
            ),
        );
        let ended = place.run("run -p exact -c c.toml");
        assert_eq!(ended.code, 0, "{ended:?}");
    };
    run("one", "");
    run("two", &upsert("p", &text(0)));
    run("one", &(upsert("q", &text(9)) + "{\"id\":\"0\",\"op\":\"delete\"}\n"));
    run("two", &upsert("r", &text(9)));
    run("one", "");
    let fresh = place.run("replay -p exact --emit pairs a.jsonl").out;
    let ids = |line: &serde_json::Value| (line["a"].to_string(), line["b"].to_string());
    let fresh: std::collections::BTreeMap<_, i64> = lines(&fresh).iter().map(|line| (ids(line), 1)).collect();
    assert!(fresh.len() > 4, "{fresh:?}");
    for output in ["one", "two"] {
        let mut sums = std::collections::BTreeMap::new();
        for line in lines(&place.read(output)) {
            *sums.entry(ids(&line)).or_default() += line["diff"].as_i64().expect("a number");
        }
        sums.retain(|_, sum| *sum != 0);
        assert_eq!(sums, fresh, "{output}");
    }
}

#[test]
fn a_dry_run_prints_and_leaves_nothing() {
    let place = Place::new();
    place.file("feed", copies(0, 300));
    place.file(
        "here.toml",
        "[source]\ninputs = [\"feed\"]\n[sink]\npath = \"out\"\n[state]\npath = \"state\"\n",
    );
    let run = place.run("run -c here.toml --dry-run 10");
    assert_eq!(run.code, 0, "{run:?}");
    assert!(run.out.lines().count() >= 45 && run.out.lines().count() < 300 * 299 / 2, "{run:?}");
    assert!(!place.path("out").exists() && !place.path("state").exists());
}
