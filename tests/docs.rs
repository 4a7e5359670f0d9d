//! The pages of `docs/`: every link resolves, the book has every page, and the tutorials print what they say.
//!
//! A tutorial is a page below `docs/tutorials`. Its `sh` blocks run in order in one empty folder, with
//! `dupflow` on the path; the `json` or `text` block after one is what it prints on standard output. A block
//! after `<!-- needs: NAME, … -->` runs only if each name is a feature of this build or a program on the
//! path; a block that needs `a broker` never runs here. Blocks that do not run are printed as SKIPPED.
//!
//! Bug class: a command or an output in the documentation that the program no longer has.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::collections::BTreeSet;
use std::fs;
use std::io::Write;
use std::path::{Component, Path, PathBuf};
use std::process::Command;

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The pages of the folder `docs`, with their paths from the root.
fn pages() -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join("docs")];
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|ending| ending == "md") {
                found.push(path.strip_prefix(root()).unwrap().to_owned());
            }
        }
    }
    found.sort();
    found
}

/// The lines of a page outside fenced blocks.
fn prose(page: &Path) -> Vec<String> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let mut is_code = false;
    let mut lines = Vec::new();
    for line in text.lines() {
        if line.trim_start().starts_with("```") {
            is_code = !is_code;
        } else if !is_code {
            lines.push(line.to_owned());
        }
    }
    lines
}

/// The anchors of a page's headings, as GitHub and mdBook make them.
fn anchors(page: &Path) -> BTreeSet<String> {
    let headings = prose(page).into_iter().filter(|line| line.starts_with('#'));
    headings
        .map(|line| {
            let kept = line.trim_start_matches('#').trim().to_lowercase();
            let is_kept = |c: &char| c.is_alphanumeric() || matches!(c, '-' | '_' | ' ');
            kept.chars().filter(is_kept).map(|c| if c == ' ' { '-' } else { c }).collect()
        })
        .collect()
}

/// The targets of the links of a line.
fn links(line: &str) -> impl Iterator<Item = &str> {
    line.split("](").skip(1).filter_map(|rest| rest.split([')', ' ']).next())
}

/// A path without `.` and `..`.
fn normal(path: &Path) -> PathBuf {
    let mut normal = PathBuf::new();
    for part in path.components() {
        match part {
            Component::ParentDir => {
                normal.pop();
            }
            Component::CurDir => {}
            part => normal.push(part),
        }
    }
    normal
}

#[test]
fn links_resolve() {
    let mut broken = Vec::new();
    let own = ["README.md", "ARCHITECTURE.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md"];
    for page in own.into_iter().map(PathBuf::from).chain(pages()) {
        for line in prose(&page) {
            for link in links(&line).filter(|link| !link.contains("://")) {
                let (file, anchor) = link.split_once('#').unwrap_or((link, ""));
                let target =
                    if file.is_empty() { page.clone() } else { normal(&page.parent().unwrap().join(file)) };
                let has_anchor = || {
                    target.extension().is_none_or(|ending| ending != "md")
                        || anchors(&target).contains(anchor)
                };
                if !root().join(&target).exists() || (!anchor.is_empty() && !has_anchor()) {
                    broken.push(format!("{}: {link}", page.display()));
                }
            }
        }
    }
    assert_eq!(broken, [""; 0], "links that lead nowhere");
}

#[test]
fn the_book_has_every_page() {
    let summary = Path::new("docs/SUMMARY.md");
    let listed: BTreeSet<PathBuf> = prose(summary)
        .iter()
        .flat_map(|line| links(line).map(|link| Path::new("docs").join(link)).collect::<Vec<_>>())
        .collect();
    let all: BTreeSet<PathBuf> = pages().into_iter().filter(|page| page != summary).collect();
    assert_eq!(listed, all);
}

/// `mdbook build docs`, where mdBook is installed.
#[test]
fn the_book_builds() {
    if !is_on_path("mdbook") {
        skipped("the book: mdbook is not on the path");
        return;
    }
    let folder = tempfile::tempdir().unwrap();
    let mut build = Command::new("mdbook");
    let out = build.arg("build").arg(root().join("docs")).arg("-d").arg(folder.path()).output().unwrap();
    assert!(out.status.success(), "{}", String::from_utf8_lossy(&out.stderr));
    assert!(folder.path().join("concepts.html").exists());
}

/// Reports what does not run, past the test harness, which hides the output of tests that pass.
fn skipped(what: &str) {
    std::io::stderr().write_all(format!("SKIPPED {what}\n").as_bytes()).unwrap();
}

fn is_on_path(program: &str) -> bool {
    let path = std::env::var_os("PATH").unwrap_or_default();
    std::env::split_paths(&path).any(|folder| folder.join(program).is_file())
}

/// The features of the program, as `--version` lists them.
fn features() -> BTreeSet<String> {
    let out = Command::new(env!("CARGO_BIN_EXE_dupflow")).arg("--version").output().unwrap();
    let text = String::from_utf8(out.stdout).unwrap();
    let line = text.lines().find_map(|line| line.strip_prefix("features:")).unwrap_or_default();
    line.split_whitespace().map(str::to_owned).collect()
}

/// A fenced block of a tutorial.
#[derive(Debug)]
struct Block {
    language: String,
    text: String,
    /// What it needs to run, beside a shell.
    needs: Vec<String>,
}

fn blocks(page: &Path) -> Vec<Block> {
    let text = fs::read_to_string(root().join(page)).unwrap();
    let mut blocks = Vec::new();
    let mut needs = Vec::new();
    let mut lines = text.lines();
    while let Some(line) = lines.next() {
        if let Some(names) = line.strip_prefix("<!-- needs: ").and_then(|rest| rest.strip_suffix(" -->")) {
            needs = names.split(", ").map(str::to_owned).collect();
        } else if let Some(language) = line.strip_prefix("```") {
            let body = lines.by_ref().take_while(|next| *next != "```").map(|next| format!("{next}\n"));
            blocks.push(Block {
                language: language.to_owned(),
                text: body.collect(),
                needs: std::mem::take(&mut needs),
            });
        }
    }
    blocks
}

/// Runs a tutorial; returns the number of its blocks that ran.
fn run_tutorial(name: &str) -> usize {
    let page = Path::new("docs/tutorials").join(name);
    let (folder, programs) = (tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap());
    let program = programs.path().join(format!("dupflow{}", std::env::consts::EXE_SUFFIX));
    fs::hard_link(env!("CARGO_BIN_EXE_dupflow"), &program)
        .or_else(|_| fs::copy(env!("CARGO_BIN_EXE_dupflow"), &program).map(drop))
        .unwrap();
    let old = std::env::var_os("PATH").unwrap_or_default();
    let path =
        std::env::join_paths(std::iter::once(programs.path().to_owned()).chain(std::env::split_paths(&old)));
    let (path, features) = (path.unwrap(), features());
    let (mut ran, mut printed) = (0, None);
    for block in blocks(&page) {
        match block.language.as_str() {
            "sh" => {
                let is_there = |need: &&String| features.contains(*need) || is_on_path(need);
                if let Some(missing) = block.needs.iter().find(|need| !is_there(need)) {
                    let first = block.text.lines().next().unwrap_or_default();
                    skipped(&format!("{}: {first:?} needs {missing}", page.display()));
                    printed = None;
                    continue;
                }
                let mut shell = Command::new("sh");
                shell.args(["-e", "-c", &block.text]).current_dir(folder.path()).env("PATH", &path);
                let out = shell.env_remove("RUST_LOG").output().unwrap();
                let message = String::from_utf8_lossy(&out.stderr).into_owned();
                assert!(out.status.success(), "{}:\n{}\n{message}", page.display(), block.text);
                printed = Some(String::from_utf8(out.stdout).unwrap());
                ran += 1;
            }
            "json" | "text" => {
                if let Some(printed) = printed.take() {
                    assert_eq!(printed, block.text, "{}", page.display());
                }
            }
            other => panic!("{}: a block of {other:?}", page.display()),
        }
    }
    ran
}

#[test]
#[cfg(unix)]
fn the_tutorial_of_a_crawler_runs() {
    assert!(run_tutorial("crawler.md") >= 1);
}

#[test]
#[cfg(unix)]
fn the_tutorial_of_an_archive_runs() {
    assert!(run_tutorial("archive.md") >= 7);
}

#[test]
#[cfg(unix)]
fn the_tutorial_of_a_training_set_runs() {
    assert!(run_tutorial("training.md") >= 7);
}

#[test]
#[cfg(unix)]
fn the_tutorial_of_an_audit_runs() {
    assert!(run_tutorial("audit.md") >= 8);
}

#[test]
#[cfg(unix)]
fn every_tutorial_is_run() {
    let all = pages().into_iter().filter(|page| page.starts_with("docs/tutorials"));
    let names: Vec<_> = all.map(|page| page.file_name().unwrap().to_owned()).collect();
    assert_eq!(names, ["archive.md", "audit.md", "crawler.md", "training.md"]);
}
