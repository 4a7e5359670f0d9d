//! The subcommands, flags, features and files that the program accepts.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::process::Command;

use super::{docker, root};

fn dupflow(arguments: &[&str], variables: &[(String, String)]) -> (bool, String) {
    let mut command = Command::new(env!("CARGO_BIN_EXE_dupflow"));
    command.args(arguments).env_remove("RUST_LOG").envs(variables.iter().cloned());
    let output = command.output().unwrap();
    let text = [output.stdout, output.stderr].concat();
    (output.status.success(), String::from_utf8(text).unwrap())
}

fn has_subcommand(name: &str) -> bool {
    dupflow(&["--help"], &[]).1.lines().any(|line| line.trim_start().split(' ').next() == Some(name))
}

fn has_flag(subcommand: &str, flag: &str) -> bool {
    let (_, help) = dupflow(&[subcommand, "--help"], &[]);
    let names = help.lines().filter(|line| line.trim_start().starts_with('-'));
    names.flat_map(|line| line.split([' ', ',', '='])).any(|word| word == flag)
}

/// The features in `Cargo.toml`, and the minimum compiler version.
fn manifest() -> (Vec<String>, String) {
    let text = fs::read_to_string(root().join("Cargo.toml")).unwrap();
    let manifest: toml::Table = text.parse().unwrap();
    let features = manifest["features"].as_table().unwrap().keys().cloned().collect();
    (features, manifest["workspace"]["package"]["rust-version"].as_str().unwrap().to_owned())
}

/// Checks that a feature exists.
pub(crate) fn check_feature(name: &str) {
    assert!(manifest().0.iter().any(|known| known == name), "feature {name}");
}

pub(crate) fn rust_version() -> String {
    manifest().1
}

/// Checks a command line: the subcommand, and its flags.
pub(crate) fn check_command(arguments: &[String]) {
    let (subcommand, rest) = arguments.split_first().unwrap();
    assert!(has_subcommand(subcommand), "dupflow {subcommand}");
    for flag in rest.iter().filter(|word| word.starts_with('-')) {
        let is_known = has_flag(subcommand, flag);
        assert!(is_known, "dupflow {subcommand} {flag}");
    }
}

/// The argument after a flag.
pub(crate) fn value<'a>(arguments: &'a [String], flag: &str) -> &'a str {
    let place = arguments.iter().position(|word| word == flag).unwrap_or_else(|| panic!("no {flag}"));
    &arguments[place + 1]
}

/// The settings of a deployment file.
pub(crate) fn settings(config: &str) -> toml::Table {
    config.parse().unwrap()
}

/// Checks a deployment file as `dupflow check` does, with the environment of a container, and that it uses
/// all variables of it; `files` maps the paths of the container to contents.
pub(crate) fn check_config(
    config: &str,
    pipeline: &str,
    variables: &[(String, String)],
    files: &[(&str, &str)],
) {
    settings(config);
    for (name, _) in variables {
        assert!(config.contains(&format!("${{{name}")), "nobody reads the variable {name}");
    }
    let folder = tempfile::tempdir().unwrap();
    let mut here = config.to_owned();
    for (number, (path, content)) in files.iter().enumerate() {
        let file = folder.path().join(number.to_string());
        fs::write(&file, content).unwrap();
        here = here.replace(path, file.to_str().unwrap());
    }
    let file = folder.path().join("dupflow.toml");
    fs::write(&file, here).unwrap();
    let (well, text) = dupflow(&["check", "-p", pipeline, "-c", file.to_str().unwrap()], variables);
    if text.contains("built without Kafka") {
        // Not by `eprintln!`, since the test harness hides its output when a test passes.
        let skipped = b"SKIPPED docker: deployment files with topics, in a build without Kafka\n";
        std::io::stderr().write_all(skipped).unwrap();
        return;
    }
    assert!(well, "{config}\n{text}");
}

/// Checks a pipeline file.
pub(crate) fn check_pipeline(content: &str) {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("pipeline.toml");
    fs::write(&file, content).unwrap();
    let (well, text) = dupflow(&["plan", "-p", file.to_str().unwrap()], &[]);
    assert!(well, "{content}\n{text}");
}

/// The texts below a name in a deployment file, by dotted key.
pub(crate) fn flat(config: &str) -> BTreeMap<String, String> {
    let mut found = BTreeMap::new();
    for (name, value) in settings(config) {
        match value {
            toml::Value::Table(table) => found.extend(
                table
                    .into_iter()
                    .map(|(key, inner)| (format!("{name}.{key}"), inner.to_string().replace('"', ""))),
            ),
            plain => drop(found.insert(name, plain.to_string())),
        }
    }
    found
}

#[test]
fn unknown_commands_and_flags_are_detected() {
    let check = |command: &str| {
        let words: Vec<String> = command.split(' ').map(str::to_owned).collect();
        std::panic::catch_unwind(|| check_command(&words)).is_ok()
    };
    assert!(check("run -p minhash -c x"));
    assert!(!check("run --pipelines minhash") && !check("runs -c x"));
    assert!(std::panic::catch_unwind(|| check_pipeline("treshold = 0.8")).is_err());
    let unread = [("DUPFLOW_X".to_owned(), String::new())];
    assert!(std::panic::catch_unwind(|| check_config("", "minhash", &unread, &[])).is_err());
}

#[test]
fn all_commands_in_the_files_are_checked() {
    let mut names: Vec<String> = fs::read_dir(docker(""))
        .unwrap()
        .map(|entry| entry.unwrap().file_name().into_string().unwrap())
        .collect();
    names.sort();
    let checked = "Dockerfile alerts.yml compose.yaml dupflow.service dupflow.toml grafana kubernetes.yaml \
                   probe prometheus.yml watch.yaml";
    assert_eq!(names.join(" "), checked);
}
