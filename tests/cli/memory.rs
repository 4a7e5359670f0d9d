//! A memory budget: the output is that without one; a disk that is full ends the run, with whole epochs in
//! the output.

use std::io::Write;
use std::process::{Command, Stdio};

use super::dupflow::{Place, dupflow};
use super::feeds::{accumulated, delete, upsert, words};

/// Rows of 4 KiB: as few documents as possible fill the caches of the least budget.
const LARGE_ROWS: &str =
    "--set threshold=0.5 --set sketch.size=4096 --set sketch.bits=8 --epoch events:500 --workers 1";

/// The number of documents of [`feed`].
const COUNT: u32 = 6000;

/// A text of 30 words; one that is near it if `edit` is another number below 30.
fn text(n: u32, edit: u32) -> String {
    words((0..30).map(|i| if i == edit { n * 100 + 99 } else { n * 100 + i }))
}

/// Documents, then updates of old ones to near copies of others, and deletes.
fn feed() -> String {
    let born = (0..COUNT).map(|n| upsert(&format!("d{n}"), &text(n, 30)));
    let old = |n: u32| n * 2_654_435 % COUNT;
    let changed = (1..600).map(|n| match n % 5 {
        0 => delete(&format!("d{}", old(n))),
        edit => upsert(&format!("d{}", old(n)), &text(old(n + 600), edit)),
    });
    born.chain(changed).collect()
}

#[test]
fn a_budget_changes_no_byte() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    let (whole, without) = place.replay(&format!("{LARGE_ROWS} feed.jsonl"));
    assert!(without.get("spill").is_none(), "{without}");
    assert!(accumulated(&whole.out).len() > 50, "{whole:?}");
    let folder = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).unwrap();
    let folder = folder.path().to_str().unwrap();
    let (spilled, stats) = place.replay(&format!("{LARGE_ROWS} --memory 64MiB --spill {folder} feed.jsonl"));
    assert!(spilled.out == whole.out);
    let count = |name: &str| stats["spill"][name].as_u64().unwrap();
    assert!(count("file_bytes") > 24 << 20 && count("writes") > 1000, "{stats}");
    assert!((300..4000).contains(&count("reads")), "{stats}");
    assert!(spilled.err.contains("\nspilled     "), "{spilled:?}");
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
}

/// A run that is killed once it has written, with more input to come: its files never had a name.
#[test]
fn a_killed_run_leaves_no_file() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    let folder = place.path("spilled");
    std::fs::create_dir(&folder).unwrap();
    let run = format!("replay {LARGE_ROWS} --memory 64MiB --spill spilled -o out.jsonl -");
    let mut process = Command::new(env!("CARGO_BIN_EXE_dupflow"))
        .args(run.split(' '))
        .current_dir(place.path(""))
        .stdin(Stdio::piped())
        .spawn()
        .unwrap();
    // The output is written behind the rows of its epoch.
    let mut input = process.stdin.take().unwrap();
    input.write_all(feed().as_bytes()).unwrap();
    while std::fs::metadata(place.path("out.jsonl")).map_or(0, |file| file.len()) == 0 {
        input.write_all(b"\n").unwrap();
        assert!(process.try_wait().unwrap().is_none());
    }
    process.kill().unwrap();
    process.wait().unwrap();
    assert_eq!(std::fs::read_dir(folder).unwrap().count(), 0);
}

/// The size of files is limited, so that writing to the spill fails as on a full disk.
#[test]
fn a_full_disk_ends_the_run_with_whole_epochs() {
    let place = Place::new();
    place.file("feed.jsonl", feed());
    let (whole, _) = place.replay(&format!("{LARGE_ROWS} -o whole.jsonl feed.jsonl"));
    assert_eq!(whole.code, 0);
    let folder = env!("CARGO_TARGET_TMPDIR");
    let run = format!(
        "trap '' XFSZ; ulimit -f 4096; exec {} replay {LARGE_ROWS} --memory 64MiB --spill {folder} \
        -o out.jsonl feed.jsonl",
        env!("CARGO_BIN_EXE_dupflow")
    );
    let ended = Command::new("bash").args(["-c", &run]).current_dir(place.path("")).output().unwrap();
    let message = String::from_utf8(ended.stderr).unwrap();
    assert_eq!(ended.status.code(), Some(1), "{message}");
    let expected = format!("spill: a temporary file in \"{folder}\" cannot be written: ");
    assert!(message.contains(&expected) && !message.contains("panicked"), "{message}");
    let (written, all) = (place.read("out.jsonl"), place.read("whole.jsonl"));
    assert!(all.starts_with(&written) && written.len() < all.len());
    assert!(written.is_empty() || written.ends_with('\n'));
}

#[test]
fn what_cannot_be_a_budget_is_refused() {
    let place = Place::new();
    place.file("feed.jsonl", upsert("a", &text(0, 30)));
    place.file("wrong.toml", "memory = \"8G\"\n[source]\ninputs = [\"-\"]\n[spill]\npath = 5\n");
    place.file("alone.toml", "[source]\ninputs = [\"-\"]\n[spill]\npath = \"/tmp\"\n");
    place.file("result", "kept");
    for (arguments, code, problem) in [
        (
            "check -c wrong.toml",
            2,
            "wrong.toml:1: memory: found \"8G\", expected a size from \"64MiB\" on, as in",
        ),
        ("check -c wrong.toml", 2, "wrong.toml:5: spill.path: found 5, expected a path, or \"\""),
        ("check -c alone.toml", 2, "spill.path: nothing is spilled without a budget"),
        ("replay --memory 1MiB --spill here feed.jsonl", 2, "'--memory <SIZE>': expected a size from"),
        ("replay --spill here feed.jsonl", 2, "--spill: has an effect with --memory only"),
        ("replay --memory 1GiB --spill absent -o result feed.jsonl", 2, "spill.path: found \"absent\""),
        ("plan --iops 8", 2, "--memory <SIZE>"),
        ("plan --memory 8", 2, "'--memory <SIZE>': expected a size from"),
    ] {
        let run = place.run(arguments);
        assert!(run.code == code && run.err.contains(problem), "{problem} is not in {run:?}");
    }
    assert_eq!(place.read("result"), "kept", "refused before the output is opened");
}

#[test]
fn plan_says_what_is_in_files() {
    let run = dupflow(["plan", "--documents", "100000000", "--memory", "8GiB", "--iops", "10000"]);
    assert_eq!(run.code, 0, "{run:?}");
    for line in [
        "Under a budget of 8.00 GiB for each process",
        "264 bytes a document: sketch by id",
        "such changes a second at 10000 reads a second (--iops)",
        "the budget is too small: what must be in memory fits for",
    ] {
        assert!(run.out.contains(line), "{line} is not in {}", run.out);
    }
}
