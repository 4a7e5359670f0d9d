//! The systemd unit.

use std::process::Command;

use super::{docker, program, read};

/// The value of a setting that the unit has once.
fn setting(name: &str) -> String {
    let unit = read("dupflow.service");
    let mut values = unit.lines().filter_map(|line| line.strip_prefix(name)?.strip_prefix('='));
    let value = values.next().unwrap_or_else(|| panic!("no {name}")).to_owned();
    assert_eq!(values.next(), None, "{name}");
    value
}

#[test]
fn its_command_is_one_of_the_program() {
    let words: Vec<String> = setting("ExecStart").split(' ').map(str::to_owned).collect();
    assert_eq!(words[0], "/usr/local/bin/dupflow");
    program::check_command(&words[1..]);
    // What a run keeps lies in the one folder that is writable for it.
    assert_eq!(setting("WorkingDirectory"), format!("/var/lib/{}", setting("StateDirectory")));
}

/// A wrong configuration is not tried again, and a run has the time that it gives itself to end.
#[test]
fn restarts_and_stops_are_those_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let config = folder.path().join("run.toml");
    std::fs::write(&config, "shutdown_secs = 3").unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_dupflow"));
    let run = command.args(["run", "-p", "minhash", "-c"]).arg(config).output().unwrap();
    assert_eq!(run.status.code().unwrap().to_string(), setting("RestartPreventExitStatus"), "{run:?}");
    let keys = program::flat(&read("dupflow.toml"));
    let stop: u32 = setting("TimeoutStopSec").parse().unwrap();
    assert!(keys["shutdown_seconds"].parse::<u32>().unwrap() < stop);
}

#[test]
fn systemd_reads_it_without_a_complaint() {
    let folder = tempfile::tempdir().unwrap();
    let unit = folder.path().join("dupflow.service");
    let here = env!("CARGO_BIN_EXE_dupflow");
    std::fs::write(&unit, read("dupflow.service").replace("/usr/local/bin/dupflow", here)).unwrap();
    match Command::new("systemd-analyze").arg("verify").arg(&unit).output() {
        Ok(said) => {
            let complaints = String::from_utf8(said.stderr).unwrap();
            let is_ours = |line: &&str| line.contains("dupflow.service");
            let ours: Vec<&str> = complaints.lines().filter(is_ours).collect();
            assert!(ours.is_empty(), "{}: {ours:?}", docker("dupflow.service").display());
        }
        Err(error) => {
            let skipped = format!("SKIPPED docker: no systemd-analyze: {error}\n");
            std::io::Write::write_all(&mut std::io::stderr(), skipped.as_bytes()).unwrap();
        }
    }
}
