//! Checks the files in `docker/` and the runbook against the program: every subcommand, flag, path, variable,
//! key, port and message in them.
//!
//! Bug classes: a flag or key that was renamed; a file that is mounted in one place and named in another; a
//! port without a listener; a termination period shorter than the program's own.
//!
//! No container runs here. Builders are checked only for their sources and features.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod compose;
mod dockerfile;
mod kubernetes;
mod probe;
mod program;
mod runbook;
mod service;
mod watch;

use std::fs;
use std::path::{Path, PathBuf};

use yaml_rust2::{Yaml, YamlLoader};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn docker(name: &str) -> PathBuf {
    root().join("docker").join(name)
}

fn read(name: &str) -> String {
    fs::read_to_string(docker(name)).unwrap()
}

/// The documents of a YAML file.
fn yaml(name: &str) -> Vec<Yaml> {
    YamlLoader::load_from_str(&read(name)).unwrap()
}

/// The value at a path of keys, which must exist; a number is an index.
fn at<'y>(yaml: &'y Yaml, path: &str) -> &'y Yaml {
    let found = path.split('.').try_fold(yaml, |yaml, key| {
        let next = key.parse::<usize>().map_or_else(|_| &yaml[key], |index| &yaml[index]);
        (!next.is_badvalue()).then_some(next)
    });
    found.unwrap_or_else(|| panic!("there is no {path}"))
}

/// The text at a path.
fn text<'y>(yaml: &'y Yaml, path: &str) -> &'y str {
    at(yaml, path).as_str().unwrap_or_else(|| panic!("{path} is no text"))
}

/// The whole number at a path.
fn number(yaml: &Yaml, path: &str) -> i64 {
    at(yaml, path).as_i64().unwrap_or_else(|| panic!("{path} is no number"))
}

/// The list under a key; empty if it is missing.
fn list<'y>(yaml: &'y Yaml, key: &str) -> &'y [Yaml] {
    yaml[key].as_vec().map_or(&[], Vec::as_slice)
}

/// The elements as texts.
fn texts(yaml: &[Yaml]) -> Vec<String> {
    yaml.iter()
        .map(|text| text.as_str().unwrap_or_else(|| panic!("{text:?} is no text")).to_owned())
        .collect()
}

/// A table of names with texts or numbers; empty if it is missing.
fn table(yaml: &Yaml) -> Vec<(String, String)> {
    let text = |plain: &Yaml| {
        let number = plain.as_i64().map(|n| n.to_string());
        plain.as_str().map(str::to_owned).or(number).unwrap_or_else(|| panic!("{plain:?} is no text"))
    };
    yaml.as_hash().into_iter().flatten().map(|(key, value)| (text(key), text(value))).collect()
}
