//! What a newcomer meets first: the demo, completions, manual pages, and `replay` without an input.

use std::io::{BufRead, BufReader};
use std::process::Stdio;

use super::dupflow::{Place, command, dupflow};

#[test]
fn completions_are_made_for_every_shell() {
    for (shell, part) in [
        ("bash", "complete -F _dupflow"),
        ("zsh", "#compdef dupflow"),
        ("fish", "complete -c dupflow"),
        ("elvish", "edit:completion"),
        ("powershell", "Register-ArgumentCompleter"),
    ] {
        let made = dupflow(["completions", shell]);
        assert_eq!((made.code, made.err.as_str()), (0, ""), "{shell}");
        assert!(made.out.contains(part) && made.out.contains("dead-letter"), "{shell}: {}", made.out);
    }
    assert_eq!(dupflow(["completions", "no-shell"]).code, 2);
}

#[test]
fn manual_pages_are_made_for_every_command() {
    let first = dupflow(["man"]);
    assert_eq!((first.code, first.err.as_str()), (0, ""));
    assert!(first.out.contains(".TH dupflow 1"), "{}", first.out);
    let place = Place::new();
    assert_eq!(place.run("man --dir new/man1").code, 0);
    for page in ["dupflow", "dupflow-replay", "dupflow-state-inspect", "dupflow-demo"] {
        assert!(place.read(&format!("new/man1/{page}.1")).contains(".TH"), "{page}");
    }
    place.file("taken", "");
    assert_eq!(place.run("man --dir taken/man1").code, 1);
}

#[test]
fn replay_without_an_input_says_what_an_input_is() {
    let run = dupflow(["replay", "-p", "exact"]);
    assert_eq!((run.code, run.out.as_str()), (2, ""), "{run:?}");
    for part in ["an input is missing", "dupflow replay feed.jsonl", r#"{"id":"a","text":"#, "dupflow demo"] {
        assert!(run.err.contains(part), "{part:?} is not in {}", run.err);
    }
}

/// The example of the message is an input.
#[test]
fn the_example_of_an_input_is_read() {
    let run = dupflow(["replay"]);
    let example = run.err.split(r#"{"id""#).nth(1).and_then(|rest| rest.split('}').next()).unwrap();
    let place = Place::new();
    place.file("feed.jsonl", format!("{{\"id\"{example}}}\n"));
    let (_, stats) = place.replay("feed.jsonl");
    assert_eq!(stats["documents"], 1, "{stats}");
}

/// Plays until the first pair; its page answers meanwhile, and a signal ends it with exit code 0.
#[cfg(all(unix, feature = "monitor"))]
#[test]
fn the_demo_explains_shows_a_page_and_ends_by_a_signal() {
    let place = Place::new();
    let mut command = command(["demo"]);
    command.env("TMPDIR", place.path("")).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut demo = command.spawn().unwrap();
    let mut lines = BufReader::new(demo.stdout.take().unwrap()).lines().map(Result::unwrap);
    let page = lines.find_map(|line| line.strip_prefix("Page: ").map(str::to_owned)).unwrap();
    let answer = ureq::get(&page).call().unwrap().body_mut().read_to_string().unwrap();
    assert!(answer.contains("<!doctype html>") || answer.contains("<!DOCTYPE html>"), "{answer}");
    let pair = lines.find(|line| line.starts_with("+ ")).unwrap();
    assert!(pair.contains(" repeats ") && pair.contains(": similarity "), "{pair}");
    let lesson = lines.next().unwrap();
    assert!(lesson.starts_with("    "), "the first pair is explained: {lesson:?}");
    let pid = rustix::process::Pid::from_child(&demo);
    rustix::process::kill_process(pid, rustix::process::Signal::INT).unwrap();
    let rest: Vec<_> = lines.collect();
    let ended = demo.wait_with_output().unwrap();
    assert_eq!((ended.status.code(), String::from_utf8_lossy(&ended.stderr).as_ref()), (Some(0), ""));
    assert!(rest.iter().any(|line| line.contains("Try next")), "{rest:?}");
    let left = std::fs::read_dir(place.path("")).unwrap().count();
    assert_eq!(left, 0, "the temporary feed is removed");
}

#[cfg(feature = "monitor")]
#[test]
fn the_demo_refuses_a_port_that_is_taken() {
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let port = taken.local_addr().unwrap().port();
    let run = dupflow(["demo", "--port", &port.to_string()]);
    assert_eq!(run.code, 1, "{run:?}");
    assert!(run.err.contains(&port.to_string()), "{run:?}");
}

#[cfg(not(feature = "monitor"))]
#[test]
fn the_demo_without_a_monitor_names_the_feature() {
    let run = dupflow(["demo", "--port", "9600"]);
    assert_eq!(run.code, 2, "{run:?}");
    assert!(run.err.contains("monitor"), "{run:?}");
}

#[test]
fn a_command_that_is_not_built_names_its_feature() {
    for (command, feature, is_in) in
        [("generate", "lab", cfg!(feature = "lab")), ("produce", "kafka", cfg!(feature = "kafka"))]
    {
        let run = dupflow([command, "--help"]);
        assert_eq!(run.code, if is_in { 0 } else { 2 }, "{run:?}");
        assert_eq!(run.err.contains(&format!("the feature `{feature}`")), !is_in, "{run:?}");
    }
}
