//! Every shipped pipeline and deployment file loads, every pipeline runs on the tour's feed, and the tour
//! prints the output shown in the README.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::collections::BTreeSet;
use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use dupflow::config::{BUILT_IN, Deployment, Plan};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

fn toml_files(folder: &str) -> BTreeSet<String> {
    let entries = fs::read_dir(root().join(folder)).unwrap().map(|entry| entry.unwrap().path());
    entries
        .filter(|path| path.extension().is_some_and(|e| e == "toml"))
        .map(|path| path.to_str().unwrap().to_owned())
        .collect()
}

fn dupflow(args: &[&str]) -> Output {
    let output = Command::new(env!("CARGO_BIN_EXE_dupflow")).current_dir(root()).args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    output
}

fn stdout(args: &[&str]) -> String {
    String::from_utf8(dupflow(args).stdout).unwrap()
}

#[test]
fn every_pipeline_is_built_in_and_runs() {
    let files = toml_files("pipelines");
    assert_eq!(files.len(), BUILT_IN.len());
    for path in files {
        let by_path = Plan::load(&path, &[]).unwrap();
        let name = Path::new(&path).file_stem().unwrap().to_str().unwrap();
        let by_name = Plan::load(name, &[]).unwrap();
        assert_eq!(by_path.scheme.fingerprint(), by_name.scheme.fingerprint(), "{name}");
        if name == "decontaminate" {
            // The third text is a copy of the first, and all of it is in the feed.
            let feed = "pipelines/tour.jsonl";
            let folder = tempfile::tempdir().unwrap();
            let copy = folder.path().join("items.jsonl");
            fs::copy(root().join(feed), &copy).unwrap();
            let against = copy.to_str().unwrap();
            let items = stdout(&[
                "replay",
                "-p",
                &path,
                "--emit",
                "items",
                "--ids",
                "last",
                "--against",
                against,
                feed,
            ]);
            let (found, short): (Vec<_>, Vec<_>) =
                items.lines().partition(|row| !row.contains("\"pages\":0"));
            assert!(found.len() > 3 && short.iter().all(|row| row.contains("\"too_short\":true")), "{items}");
            continue;
        }
        // A text is no fingerprint: tests/cli/features.
        if name == "fingerprint" {
            continue;
        }
        // Copies are found by every pipeline.
        let pairs = stdout(&[
            "replay",
            "-p",
            &path,
            "--emit",
            "pairs",
            "--epoch",
            "events:3",
            "pipelines/tour.jsonl",
        ]);
        assert!(!pairs.contains("mirror/bridge"), "{name}: a deleted document is in no pair");
        let first = stdout(&["replay", "-p", &path, "--epoch", "events:4", "pipelines/tour.jsonl"]);
        let copies = r#"{"epoch":1,"diff":1,"a":"mirror/bridge","b":"news/bridge","similarity":1.0"#;
        let shares = if name == "contained" { r#","in_a":1.0,"in_b":1.0}"# } else { "}" };
        assert!(first.lines().any(|line| line.strip_prefix(copies) == Some(shares)), "{name}: {first}");
    }
}

#[test]
fn every_deployment_file_is_valid() {
    for path in toml_files("config") {
        Deployment::load(Path::new(&path), &|_| None).unwrap();
    }
}

#[test]
fn the_tour_prints_what_the_readme_says() {
    let readme = fs::read_to_string(root().join("README.md")).unwrap();
    let said: Vec<&str> = readme.lines().filter(|line| line.starts_with("{\"epoch\"")).collect();
    let printed = stdout(&["replay", "-p", "tour", "--epoch", "ts", "pipelines/tour.jsonl"]);
    assert_eq!(printed.lines().collect::<Vec<_>>(), said);
}

#[test]
fn the_trace_of_the_tour_is_golden() {
    let printed = stdout(&["trace", "-p", "tour", "--doc", "paper/bridge", "pipelines/tour.jsonl"]);
    assert_eq!(printed, fs::read_to_string(root().join("tests/golden/tour_trace.txt")).unwrap());
}
