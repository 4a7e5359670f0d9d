//! The state of several processes: each writes its documents, and any number of processes goes on from it.

#![cfg(unix)]

use std::collections::BTreeMap;

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
