//! `replay --resume`: a replay that is killed, and gone on with, against an undisturbed one.
//!
//! Bug classes: a result that shows where it was killed; bad records that are counted twice or not at all; a
//! folder that is gone on with though the command or its inputs are others; files that are left over.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::collections::BTreeMap;
use std::path::Path;
use std::process::Stdio;

use super::dupflow::{Place, command};
use super::feeds::{delete, upsert, words};

/// Documents of families of near copies, with updates, deletes and bad lines, in several files.
fn inputs(place: &Place) {
    for part in 0..4_u32 {
        let mut feed = String::new();
        for n in part * 1000..part * 1000 + 1000 {
            let id = if n % 11 == 10 { n - 7 } else { n };
            let text =
                words((0..40).map(|word| 1000 * (id % 97) + if word == id % 40 { 50 + n % 9 } else { word }));
            feed += &format!("{{\"id\":\"d{id:04}\",\"n\":{n},\"text\":\"{text}\"}}\n");
            if n % 37 == 36 {
                feed += &delete(&format!("d{:04}", n - 20));
            }
            if n % 400 == 399 {
                feed += "{\"id\": 5, oops\n";
            }
        }
        place.file(format!("in/part-{part}.jsonl"), feed);
    }
}

/// All files below a folder, by their paths; hidden ones too.
fn files(folder: &Path) -> BTreeMap<String, Vec<u8>> {
    let files = walkdir::WalkDir::new(folder).into_iter().map(Result::unwrap);
    let files = files.filter(|entry| entry.file_type().is_file());
    let named =
        |entry: &walkdir::DirEntry| entry.path().strip_prefix(folder).unwrap().to_str().unwrap().to_owned();
    files.map(|entry| (named(&entry), std::fs::read(entry.path()).unwrap())).collect()
}

/// The greatest number of a manifest of the state, and the number of files that are copied.
fn noted(place: &Place) -> (u64, u64) {
    let state = place.path("work/state");
    let manifests = state.read_dir().into_iter().flatten().flatten();
    let numbers =
        manifests.filter_map(|entry| entry.file_name().to_str()?.strip_prefix("manifest-")?.parse().ok());
    let copied = std::fs::read_to_string(place.path("work/copied.jsonl")).unwrap_or_default();
    (numbers.max().unwrap_or(0), copied.lines().filter(|line| line.starts_with("{\"file\":")).count() as u64)
}

/// Runs a replay until it has published its state so many times more, or has copied one file more, and kills
/// it. False if it ended before.
fn run_and_kill(place: &Place, arguments: &str, publishes: u64) -> bool {
    let (state, copied) = noted(place);
    let mut command = command(arguments.split(' '));
    let command = command.current_dir(place.path("")).stdout(Stdio::null()).stderr(Stdio::null());
    let mut child = command.spawn().unwrap();
    loop {
        if let Some(status) = child.try_wait().unwrap() {
            assert!(status.success(), "{arguments}");
            return false;
        }
        let now = noted(place);
        if now.0 >= state + publishes || now.1 > copied {
            child.kill().unwrap();
            // It may have ended meanwhile.
            return !child.wait().unwrap().success();
        }
        std::thread::yield_now();
    }
}

#[test]
fn a_replay_that_is_killed_ten_times_gives_the_same_bytes() {
    for (emit, output, set) in [
        ("deltas", "out/deltas.jsonl", "--causes --workers 1"),
        ("deltas", "out/deltas.csv", "--workers 2"),
        ("pairs", "out/pairs.jsonl", "--workers 2 --memory 64MiB"),
        ("remove", "out/remove.csv", "--workers 1"),
        ("documents", "out/kept.jsonl.gz", "--mark dup"),
        ("documents", "out/clean/", "--workers 1"),
        ("removed-documents", "out/removed/part.jsonl", "--shard-size 20kB"),
        ("documents", "out/new.jsonl", "--against old.jsonl --workers 2"),
        ("pairs", "out/contained.jsonl", "-p contained --set filter.least_words=5"),
        ("clusters", "out/clusters.jsonl", "--set retention.max_documents=1500"),
    ] {
        let place = Place::new();
        inputs(&place);
        let old = (0..50).map(|n| upsert(&format!("old{n}"), &words(1000 * n..1000 * n + 40)));
        place.file("old.jsonl", old.collect::<String>());
        std::fs::create_dir(place.path("out")).unwrap();
        let arguments = format!(
            "replay --epoch events:20 --max-bad 0.5 --dead-letter bad.jsonl --ids last --emit {emit} {set} \
            -o {output} in"
        );
        let whole = place.run(&arguments);
        assert_eq!(whole.code, 0, "{whole:?}");
        let (expected, bad) = (files(&place.path("out")), place.read("bad.jsonl"));
        assert!(expected.values().map(Vec::len).sum::<usize>() > 1000 && bad.lines().count() == 10);
        std::fs::remove_dir_all(place.path("out")).unwrap();
        std::fs::create_dir(place.path("out")).unwrap();
        std::fs::remove_file(place.path("bad.jsonl")).unwrap();

        let resumed = format!("{arguments} --resume work --resume-every 1ms");
        let mut kills = 0;
        while kills < 10 && run_and_kill(&place, &resumed, 1 + kills % 4) {
            kills += 1;
        }
        assert!(kills >= 5, "{emit}: it was killed {kills} times");
        if place.path("work").exists() {
            let end = place.run(&resumed);
            assert_eq!(end.code, 0, "{end:?}");
            assert!(
                end.err.contains("\nresumed     after epoch ") && end.err.contains("10 not_json"),
                "{end:?}"
            );
        }
        let found = files(&place.path("out"));
        assert!(found.keys().eq(expected.keys()), "{:?}", found.keys());
        for (name, bytes) in &found {
            let [here, undisturbed] = [bytes, &expected[name]].map(|bytes| String::from_utf8_lossy(bytes));
            let differs = here.lines().zip(undisturbed.lines()).find(|(a, b)| a != b);
            assert!(here == undisturbed, "{name} after {kills} kills: {differs:?}");
        }
        assert_eq!(place.read("bad.jsonl"), bad);
        let names = files(&place.path(""));
        let others: Vec<_> = names.keys().filter(|name| !name.starts_with("in/")).collect();
        assert_eq!(others.len(), expected.len() + 2, "{others:?}");
    }
}

/// A replay that noted something and was killed.
fn killed(arguments: &str) -> Place {
    let place = Place::new();
    inputs(&place);
    assert!(run_and_kill(&place, arguments, 1), "it notes something before its end");
    place
}

#[test]
fn another_command_or_another_input_is_refused() {
    let arguments =
        "replay --emit pairs --epoch events:20 --resume work --resume-every 1ms -o pairs.jsonl in";
    let place = killed(arguments);
    for (other, said) in [
        (arguments.replace("--emit pairs", "--emit keep"), "--emit was \"pairs\"; it is \"keep\" now"),
        (format!("{arguments} --set threshold=0.7"), "threshold was 0.8; it is 0.7 now"),
        (arguments.replace("events:20", "events:30"), "--epoch was \"events:20\"; it is \"events:30\" now"),
        (format!("{arguments} in/part-0.jsonl"), "input 2 was not set; it is "),
    ] {
        let refused = place.run(&other);
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains(said) && refused.err.contains("--resume: \"work\""), "{refused:?}");
    }
    let pipeline = place.run(&format!("{arguments} -p exact"));
    let said = "error: 2 problems\n  --resume: \"work\" is of another replay, whose pipeline was minhash; it \
        is exact now\n  --resume: name another folder, or remove \"work\" to begin anew\n";
    assert_eq!((pipeline.code, &*pipeline.err), (2, said));
    let workers = place.run(&format!("{arguments} --workers 3 --memory 64MiB --max-bad 0.2"));
    assert_eq!(workers.code, 0, "what does not decide the result may change: {workers:?}");

    let changed = killed(arguments);
    changed.file("in/part-2.jsonl", "{\"id\":\"a\",\"text\":\"another text\"}\n");
    let refused = changed.run(arguments);
    assert_eq!(refused.code, 2, "{refused:?}");
    assert!(refused.err.contains("whose input 1 was \"in\" of 4 files"), "{refused:?}");
    assert!(refused.err.contains("whose input file \"in/part-2.jsonl\" was "), "{refused:?}");
    assert!(!refused.err.contains("part-1.jsonl"), "{refused:?}");
}

#[test]
fn what_cannot_be_gone_on_with_is_refused_before_the_start() {
    let place = Place::new();
    inputs(&place);
    place.file("mine/notes.txt", "mine");
    let refused = |arguments: &str, said: &str| {
        let refused = place.run(&format!("replay {arguments}"));
        assert_eq!(refused.code, 2, "{refused:?}");
        assert!(refused.err.contains(said), "{refused:?}");
        assert!(!place.path("work").exists() && !place.path("in/work").exists());
    };
    refused("--emit pairs --resume work in", "standard output cannot be continued");
    refused("--emit pairs --resume work -o out.jsonl -", "\"-\" is no file or folder");
    refused("--emit pairs --resume work --epoch all -o out.jsonl in", "this is all");
    refused("--emit pairs --resume work --provenance -o out.jsonl in", "does not go with --provenance");
    refused("--emit pairs --resume in/work -o out.jsonl in", "is in the folder \"in\"");
    refused("--emit pairs --resume mine -o out.jsonl in", "has files and no replay");
    refused("--emit pairs --resume-every 1s -o out.jsonl in", "--resume <FOLDER>");
    place.file("work.toml", "");
    for (arguments, said) in [
        ("--emit keep -o work/keep.jsonl in", "--output: \"work/keep.jsonl\" is in the folder"),
        (
            "--emit keep -o k --stats work/s --dead-letter work/d in",
            "--dead-letter: \"work/d\" is in the folder",
        ),
        ("--emit documents -o work in/", "--output: \"work\" is in the folder"),
        ("--emit documents -o work/ in", "--output: \"work/\" is in the folder"),
        ("--emit documents --shard-size 1kB -o work/a.jsonl in", "--output: \"work\" is in the folder"),
    ] {
        refused(&format!("--resume ./work {arguments}"), said);
    }
    refused("--resume out/work --emit documents -o out/ in", "which appears at the end as a whole");
    #[cfg(unix)]
    for (target, said) in [("nowhere", "is a link to what does not exist"), ("work.toml", "is a file and no")]
    {
        std::os::unix::fs::symlink(target, place.path("link")).unwrap();
        refused("--resume work --emit documents -o link/ in", said);
        std::fs::remove_file(place.path("link")).unwrap();
    }
    #[cfg(feature = "parquet")]
    refused("--resume work -o out.parquet in", "a Parquet file of changes is complete only at the end");
    assert_eq!(place.read("mine/notes.txt"), "mine");
}

#[test]
fn a_new_replay_empties_its_output_and_an_unmet_demand_keeps_the_folder() {
    let place = Place::new();
    inputs(&place);
    place.file("deltas.jsonl", "of an earlier replay\n");
    let arguments = "replay --resume work -o deltas.jsonl in";
    assert_eq!(place.run(arguments).code, 0);
    let deltas = place.read("deltas.jsonl");
    assert_eq!(place.run("replay -o plain.jsonl in").code, 0);
    assert_eq!(deltas, place.read("plain.jsonl"));
    assert!(!place.path("work").exists());

    let keep = "replay --emit keep --ids last --resume work -o keep.jsonl in";
    let unmet = place.run(keep);
    assert_eq!(unmet.code, 1, "{unmet:?}");
    assert!(unmet.err.contains("10 of 4118 records are bad"), "{unmet:?}");
    assert!(place.path("work/replay.json").exists() && !place.path("keep.jsonl").exists());
    let met = place.run(&format!("{keep} --max-bad 0.1"));
    assert_eq!(met.code, 0, "{met:?}");
    assert!(met.err.contains("read        0 events"), "{met:?}");
    assert_eq!(place.run("replay --emit keep --ids last --max-bad 1 -o plain.jsonl in").code, 0);
    assert_eq!(place.read("keep.jsonl"), place.read("plain.jsonl"));
}

/// Two inputs, and a shell that runs the binary with a limit of 51,200 bytes a file, which the copy of `b`
/// reaches.
#[cfg(unix)]
fn limited() -> (Place, impl Fn(&Place, &str) -> super::dupflow::Ended) {
    let place = Place::new();
    for (name, bytes) in [("a", 1), ("b", 200_000)] {
        let row = |n| {
            format!("{{\"id\":\"{name}{n}\",\"text\":\"{name}{n} one\",\"x\":\"{}\"}}\n", "y".repeat(bytes))
        };
        place.file(format!("in/{name}.jsonl"), (0..3).map(row).collect::<String>());
    }
    let run = |at: &Place, arguments: &str| {
        let mut shell = std::process::Command::new("sh");
        shell.args(["-c", "ulimit -f 100; exec \"$0\" \"$@\"", env!("CARGO_BIN_EXE_dupflow")]);
        super::dupflow::ended(shell.args(arguments.split(' ')).current_dir(at.path("")).output().unwrap())
    };
    (place, run)
}

/// The folder beside the output, in which complete files are.
#[cfg(unix)]
fn beside(place: &Place) -> std::path::PathBuf {
    let entries = std::fs::read_dir(place.path("")).unwrap().map(|entry| entry.unwrap().path());
    entries.into_iter().find(|path| path.to_str().unwrap().ends_with(".part")).unwrap()
}

/// Regression: complete files were counted, and not looked at.
#[cfg(unix)]
#[test]
fn a_copied_file_that_is_not_as_it_was_is_copied_again() {
    for (output, changed) in
        [("-o out/", "a.jsonl"), ("--shard-size 0.02kB -o out/part.jsonl", "part-00001.jsonl")]
    {
        let (place, run_limited) = limited();
        let arguments = format!("replay -q --emit documents --workers 1 {output} in");
        assert_eq!(place.run(&arguments).code, 0);
        let expected = files(&place.path("out"));
        std::fs::remove_dir_all(place.path("out")).unwrap();
        let resumed = format!("{arguments} --resume work");
        let fails = || {
            let ended = run_limited(&place, &resumed);
            assert!(ended.code == 1 && ended.err.contains("File too large"), "{ended:?}");
        };
        fails();
        let path = beside(&place).join(changed);
        let other = expected[changed].iter().map(|byte| byte ^ 1).collect();
        for change in [Some(Vec::new()), None, Some(other)] {
            match change {
                Some(bytes) => std::fs::write(&path, bytes).unwrap(),
                None => std::fs::remove_file(&path).unwrap(),
            }
            fails();
            assert!(std::fs::read(&path).unwrap() == expected[changed], "{changed} is whole again");
        }
        std::fs::write(&path, "").unwrap();
        let end = place.run(&resumed);
        assert_eq!(end.code, 0, "{end:?}");
        assert!(files(&place.path("out")) == expected, "{output}");
        let all = files(&place.path(""));
        assert!(
            all.keys().all(|name| name.starts_with("in/") || name.starts_with("out/")),
            "{:?}",
            all.keys()
        );
    }
}

/// Regression: files beside the folder and the output were overwritten and removed, inputs too.
#[test]
fn what_a_replay_notes_is_in_its_folder() {
    let place = Place::new();
    place.file("corpus.new", upsert("a", "one two three"));
    place.file("deltas.jsonl.mark", upsert("b", "four five six"));
    place.file("work.new/own", "own");
    let before = files(&place.path(""));
    for (arguments, output) in [
        ("--emit keep corpus.new --resume corpus", "keep.jsonl"),
        ("--format jsonl deltas.jsonl.mark --resume work", "deltas.jsonl"),
        ("--emit documents corpus.new --resume work", "out.jsonl"),
    ] {
        let ended = place.run(&format!("replay -q {arguments} -o {output}"));
        assert_eq!(ended.code, 0, "{ended:?}");
        std::fs::remove_file(place.path(output)).unwrap();
        assert!(files(&place.path("")) == before, "{arguments}");
    }
    // What is in the folder and not of the replay stays.
    let unmet = "replay -q --emit keep corpus.new bad.jsonl -o keep.jsonl --resume work";
    place.file("bad.jsonl", "bad\n{\"id\":\"c\",\"text\":\"seven\"}\n");
    assert_eq!(place.run(unmet).code, 1);
    place.file("work/own", "own");
    let ended = place.run(&format!("{unmet} --max-bad 1"));
    assert!(ended.code == 0 && place.read("work/own") == "own", "{ended:?}");
    assert_eq!(std::fs::read_dir(place.path("work")).unwrap().count(), 1);
}

/// A replay that has written everything but does not meet its demand: its folder stays.
fn unmet(place: &Place, arguments: &str) {
    let ended = place.run(arguments);
    assert!(ended.code == 1 && ended.err.contains("10 of 4118 records are bad"), "{ended:?}");
}

#[test]
fn an_output_or_dead_letters_that_were_changed_are_refused() {
    let place = Place::new();
    inputs(&place);
    let arguments =
        "replay -q --ids last --max-bad 0 --dead-letter bad.jsonl -o deltas.jsonl in --resume work";
    unmet(&place, arguments);
    let whole = ["deltas.jsonl", "bad.jsonl"].map(|name| place.read(name));
    let allowed = arguments.replace("--max-bad 0", "--max-bad 1");
    let refused = |said: &str| {
        let ended = place.run(&allowed);
        assert!(ended.code == 1 && ended.err.contains(said), "{ended:?}");
    };
    place.file("bad.jsonl", "");
    refused("it has been cut");
    std::fs::remove_file(place.path("bad.jsonl")).unwrap();
    refused("it has been cut");
    place.file("bad.jsonl", &whole[1]);
    place.file("deltas.jsonl", whole[0].trim_end().to_owned() + " ");
    refused("it has been changed");
    place.file("deltas.jsonl", &whole[0][..whole[0].len() - 1]);
    refused("it has been cut");
    place.file("deltas.jsonl", &whole[0]);
    let ended = place.run(&allowed);
    assert_eq!(ended.code, 0, "{ended:?}");
    assert_eq!(["deltas.jsonl", "bad.jsonl"].map(|name| place.read(name)), whole);
}

#[test]
fn one_process_at_a_time_goes_on_with_a_replay() {
    let place = Place::new();
    inputs(&place);
    let arguments = "replay -q --emit keep --ids last -o keep.jsonl in --resume work";
    unmet(&place, arguments);
    let first = std::fs::File::options().write(true).open(place.path("work/lock")).unwrap();
    first.lock().unwrap();
    let before = files(&place.path("work"));
    let second = place.run(&format!("{arguments} --max-bad 1"));
    assert!(second.code == 2 && second.err.contains("another process is at this replay"), "{second:?}");
    assert!(files(&place.path("work")) == before && !place.path("keep.jsonl").exists());
    drop(first);
    assert_eq!(place.run(&format!("{arguments} --max-bad 1")).code, 0);
}

/// A kill between the end of a replay and the removal of its folder, and one right after the publication.
#[test]
fn an_ended_replay_is_not_repeated() {
    let place = Place::new();
    inputs(&place);
    let arguments = "replay -q --emit keep --ids last -o keep.jsonl in --resume work";
    unmet(&place, arguments);
    let note = place.read("work/replay.json");
    let allowed = format!("{arguments} --max-bad 1");
    assert_eq!(place.run(&allowed).code, 0);
    let keep = place.read("keep.jsonl");
    let ended = note.replace("\"has_ended\": false", "\"has_ended\": true");
    assert_ne!(note, ended);
    place.file("work/replay.json", &ended);
    place.file("work/state/manifest-1", "torn");
    assert_eq!(place.run(&allowed).code, 0);
    assert!(place.read("keep.jsonl") == keep && !place.path("work").exists());
    place.file("work/replay.json", ended);
    std::fs::remove_file(place.path("keep.jsonl")).unwrap();
    let gone = place.run(&allowed);
    assert!(gone.code == 2 && gone.err.contains("\"keep.jsonl\" is not there any more"), "{gone:?}");

    place.file("a.jsonl", upsert("a", "one two three"));
    for _ in 0..10 {
        let mut first = command("replay -q --emit documents a.jsonl -o out/ --resume w".split(' '));
        let mut first = first.current_dir(place.path("")).stderr(Stdio::null()).spawn().unwrap();
        while first.try_wait().unwrap().is_none() && !place.path("out").exists() {
            std::thread::yield_now();
        }
        first.kill().unwrap();
        first.wait().unwrap();
        let has_ended = !place.path("w/replay.json").exists();
        let again = place.run("replay -q --emit documents a.jsonl -o out/ --resume w");
        assert_eq!(again.code, if has_ended { 2 } else { 0 }, "{again:?}");
        assert_eq!(place.read("out/a.jsonl"), place.read("a.jsonl"));
        std::fs::remove_dir_all(place.path("out")).unwrap();
        assert!(has_ended || !place.path("w").exists());
        std::fs::remove_dir_all(place.path("w")).unwrap_or(());
    }
}

/// A list that is killed while it is written leaves a file, whose name the next process uses.
#[test]
fn what_a_killed_list_left_is_replaced() {
    let place =
        killed("replay --emit pairs --epoch events:20 --resume work --resume-every 1ms -o pairs.jsonl in");
    let note: serde_json::Value = serde_json::from_str(&place.read("work/replay.json")).unwrap();
    place.file(format!(".pairs.jsonl.{}.part", note["name"].as_str().unwrap()), "half a li");
    let arguments =
        "replay --emit pairs --epoch events:20 --resume work --resume-every 1ms -o pairs.jsonl in";
    assert_eq!(place.run(arguments).code, 0);
    assert_eq!(place.run("replay --emit pairs --epoch events:20 -o whole.jsonl in").code, 0);
    assert_eq!(place.read("pairs.jsonl"), place.read("whole.jsonl"));
    assert!(files(&place.path("")).keys().all(|name| !name.ends_with(".part")));
}

#[cfg(unix)]
#[test]
fn a_folder_may_be_named_by_a_link() {
    let place = Place::new();
    inputs(&place);
    let arguments = "replay -q --emit keep --ids last -o keep.jsonl in --resume work";
    for _ in 0..2 {
        std::fs::create_dir(place.path("real")).unwrap();
        std::os::unix::fs::symlink("real", place.path("work")).unwrap();
        unmet(&place, arguments);
        assert!(place.path("real/replay.json").exists());
        assert_eq!(place.run(&format!("{arguments} --max-bad 1")).code, 0);
        assert!(!place.path("real").exists() && place.path("work").is_symlink());
        // It is where the next replay begins.
        assert_eq!(place.run(&format!("{arguments} --max-bad 1")).code, 0);
        std::fs::remove_file(place.path("work")).unwrap();
    }
}
