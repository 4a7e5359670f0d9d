//! The state of several processes: each writes its documents, and any number of processes goes on from it.

#![cfg(unix)]

use std::collections::BTreeMap;
use std::io::{Read, Write};
use std::net::TcpStream;

use dupflow::core::time::{Clock, SystemClock};

use crate::group::PATIENCE;
use crate::place::{Place, Process, addresses, ends, start};

/// Processes with a deployment file each, stopped once they have stored something, or run to the end.
fn run(place: &Place, configs: &[&str], is_stopped: bool) -> Vec<String> {
    place.write("hosts", &addresses(configs.len()).join("\n"));
    let count = configs.len();
    let command = |(i, name)| {
        let several = if count == 1 {
            String::new()
        } else {
            format!("--processes {count} --process {i} --hosts hosts")
        };
        start(&mut place.command(&format!("run -c {name}.toml {several}")))
    };
    let all: Vec<Process> = configs.iter().enumerate().map(command).collect();
    if is_stopped {
        all[0].wait_for("the state is stored");
        all[0].signal("TERM");
    }
    let ended = ends(all).into_iter().map(|(code, said)| {
        assert_eq!(code, Some(0), "{said}");
        said
    });
    ended.collect()
}

/// By process, the number of its segments in the state.
fn segments(place: &Place) -> BTreeMap<String, usize> {
    let mut by = BTreeMap::new();
    for entry in std::fs::read_dir(place.path("state")).unwrap() {
        let name = entry.unwrap().file_name().into_string().unwrap();
        match name.split('-').collect::<Vec<_>>()[..] {
            ["delta" | "base", _, _] => *by.entry("0".to_owned()).or_default() += 1,
            ["delta" | "base", _, process, _] => *by.entry(process.to_owned()).or_default() += 1,
            _ => {}
        }
    }
    by
}

#[test]
fn each_process_writes_its_documents_if_it_reaches_the_state() {
    let place = Place::new(4000);
    place.deployment("");
    let config = place.read("run.toml");
    place.write("far.toml", &config.replace("path = \"state\"", "path = \"elsewhere\""));
    place.write("none.toml", &config.replace("[state]\npath = \"state\"\ncommit_every = \"50ms\"\n", ""));
    let said = run(&place, &["run", "run", "far", "none"], true);
    for (i, text) in said.iter().enumerate() {
        assert_eq!(text.contains("process 0 writes it"), i == 2, "{i}: {text}");
    }
    assert_eq!(segments(&place).keys().collect::<Vec<_>>(), ["0", "1"]);
    place.done("state verify state");
    // Other numbers of processes restore what several have written, and write their own.
    run(&place, &["run"; 3], true);
    assert_eq!(segments(&place).keys().filter(|process| *process != "0").count(), 2);
    run(&place, &["run"; 2], true);
    place.done("state verify state");
    run(&place, &["run"], false);
    place.done("state compact state");
    assert_eq!(segments(&place).keys().collect::<Vec<_>>(), ["0"]);
    assert_eq!(place.pairs(), place.expected());
}

/// What an address answers.
fn get(address: &str, path: &str) -> std::io::Result<String> {
    let mut stream = TcpStream::connect(address)?;
    write!(stream, "GET {path} HTTP/1.0\r\nHost: {address}\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

/// A process that only holds documents is ready as process 0 is, and passes on that its output is elsewhere.
#[cfg(feature = "monitor")]
#[test]
fn all_processes_are_ready_after_each_start() {
    let place = Place::new(2000);
    place.deployment("");
    let config = place.read("run.toml").replace("inputs =", "follow = true\ninputs =");
    let monitors = addresses(2);
    for (name, monitor) in ["first", "second"].iter().zip(&monitors) {
        place.write(&format!("{name}.toml"), &format!("{config}[monitor]\nlisten = \"{monitor}\"\n"));
    }
    for _ in 0..2 {
        place.write("hosts", &addresses(2).join("\n"));
        let command = |(i, name)| {
            start(
                &mut place.command(&format!("run -c {name}.toml --processes 2 --process {i} --hosts hosts")),
            )
        };
        let all: Vec<Process> = ["first", "second"].into_iter().enumerate().map(command).collect();
        let clock = SystemClock::start();
        for monitor in &monitors {
            while !get(monitor, "/ready").is_ok_and(|answer| answer.starts_with("HTTP/1.0 200")) {
                assert!(clock.now() < PATIENCE, "{:?}", get(monitor, "/ready"));
                std::thread::yield_now();
            }
        }
        let answer = get(&monitors[1], "/pairs").unwrap();
        assert!(answer.starts_with("HTTP/1.0 501"), "{answer}");
        all[1].signal("TERM");
        let said = ends(all);
        said.iter().for_each(|(code, text)| assert_eq!(*code, Some(0), "{text}"));
        assert!(said[0].1.contains("another process is stopped: all end"), "{}", said[0].1);
    }
}

/// The run that has the output keeps its state too.
#[test]
fn a_second_run_of_the_same_output_takes_nothing() {
    let place = Place::new(2000);
    place.deployment("");
    let config = place.read("run.toml").replace("inputs =", "follow = true\ninputs =");
    place.write("run.toml", &config);
    let first = start(&mut place.command("run -c run.toml"));
    first.wait_for("the state is stored");
    let (code, said) = start(&mut place.command("run -c run.toml")).end();
    assert!(code == Some(1) && said.contains("another run writes to it"), "{code:?}: {said}");
    // The file is followed: it keeps what it holds at all times.
    let mut feed = std::fs::File::options().append(true).open(place.path("feed.jsonl")).unwrap();
    feed.write_all(b"{\"id\":\"new\",\"text\":\"a text at the end of the feed\"}\n").unwrap();
    first.signal("TERM");
    let (ended, text) = first.end();
    assert_eq!(ended, Some(0), "{text}");
}
