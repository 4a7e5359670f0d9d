//! Keeps the architecture: floors as in the tables of `ARCHITECTURE.md`, no circle inside a room, rooms of at
//! most twelve files, timely in one folder, paths in prose that exist.
//!
//! In: the section Floors of `ARCHITECTURE.md`, and the sources. Out: all findings of a rule at once, with
//! their files.
//!
//! Terms: a *room* is a folder of `src/`; its files and folders are its *members*. A member *imports* another
//! one if it names anything that the other defines, by `super::…`, `self::…`, `crate::…` or the name of a
//! child. A re-export counts as the file that defines the name; a visibility, `pub(in …)`, is no import. Unit
//! tests do not count.
//!
//! Rules:
//! - Crates, the modules of a crate, and those of a room with a table import only what their row allows.
//!   Modules of a crate without a table import none of each other.
//! - The members of a room have no circle of imports.
//! - `mod.rs` (and `lib.rs`) is a *roof*, which imports members, or a *cellar*, from which members import. It
//!   is not both. Re-exports are neither.
//! - A room has at most twelve files, and no two members whose names differ by an `s`.
//!
//! Exceptions are listed with a reason, and a listed exception that is not needed any more fails.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

mod modules;
mod paths;
mod rooms;
mod tables;
mod tree;

use std::collections::BTreeSet;
use std::fs;

use modules::Modules;
use paths::{crates, named};
use rooms::{against, outside, too_large, twins};
use tables::tables;
use tree::{files, is_test, root, sources, sources_below, words_in_backticks};

/// The types that its members share are defined beside the function that puts the members together.
const SHARED: &str = "shared types and the assembly of the members are not in files of their own yet";

/// Rooms of more files, each with the reason.
const LARGE_ROOMS: &[(&str, &str)] = &[];

/// Rooms whose `mod.rs` or `lib.rs` is both roof and cellar, each with the reason.
const BOTH: &[(&str, &str)] = &[
    ("connectors/state", SHARED),
    ("core/html", SHARED),
    ("core/sketch/kernel", SHARED),
    ("dupflow/cli", SHARED),
    ("lab/estimators", SHARED),
    ("lab/generate", SHARED),
    ("lab/paper", SHARED),
    ("lab/paper/groups", SHARED),
    ("lab/paper/staged", SHARED),
    ("lab/pipelines", SHARED),
    ("lab/search/indexes", SHARED),
    ("monitor", SHARED),
    ("monitor/metrics", SHARED),
    ("monitor/routes", SHARED),
    ("monitor/view", SHARED),
];

#[test]
fn crates_import_from_lower_crates_only() {
    let allowed = &tables(&fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap())["crates"];
    let mut findings = Vec::new();
    let mut seen = BTreeSet::new();
    for (path, source) in sources() {
        let (own, _) = path.split_once('/').unwrap();
        seen.insert(own.to_owned());
        let may = allowed.get(own).unwrap_or_else(|| panic!("no floor for the crate {own}"));
        for import in
            crates(&source).into_iter().filter(|import| import != own && allowed.contains_key(import))
        {
            if !may.contains(&import) {
                findings.push(format!("src/{path} imports the crate {import}"));
            }
        }
    }
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
    assert_eq!(seen, allowed.keys().cloned().collect(), "crates of the sources, and of the table");
}

#[test]
fn modules_import_from_lower_floors_only() {
    let tables = tables(&fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap());
    let sources = sources();
    let code = sources.iter().filter(|(path, _)| !is_test(path));
    let modules = Modules::read(code.map(|(path, source)| (path.as_str(), source.as_str())));
    let mut findings = modules.above(&tables);
    for (room, rows) in tables.iter().filter(|(name, _)| *name != "crates") {
        let is_there = |module: &String| modules.0.contains_key(&named(&format!("{room}/{module}")));
        let missing = rows.keys().filter(|module| !is_there(module));
        findings.extend(missing.map(|module| format!("ARCHITECTURE.md: {room} has no module {module}")));
    }
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}

#[test]
fn no_room_has_a_circle() {
    let wheel = sources_below("python/src").into_iter();
    let wheel = wheel.map(|(path, source)| (format!("python/{path}"), source));
    let sources: Vec<_> = sources().into_iter().chain(wheel).collect();
    let code = sources.iter().filter(|(path, _)| !is_test(path));
    let found = Modules::read(code.map(|(path, source)| (path.as_str(), source.as_str()))).circles();
    assert!(found.is_empty(), "circles inside rooms:\n{}", found.join("\n"));
}

#[test]
fn a_mod_file_is_a_roof_or_a_cellar() {
    let sources = sources();
    let code = sources.iter().filter(|(path, _)| !is_test(path));
    let both = Modules::read(code.map(|(path, source)| (path.as_str(), source.as_str()))).both();
    let findings = against(&both, BOTH);
    assert!(findings.is_empty(), "roof and cellar in one file:\n{}", findings.join("\n"));
}

#[test]
fn rooms_have_at_most_twelve_files_and_no_twins() {
    let sources = sources();
    let paths = || sources.iter().map(|(path, _)| path.as_str());
    let mut findings = against(&too_large(paths()), LARGE_ROOMS);
    findings.extend(twins(paths()));
    assert!(findings.is_empty(), "\n{}", findings.join("\n"));
}

#[test]
fn only_the_dataflow_names_timely_and_only_the_monitor_names_axum() {
    let sources = sources();
    assert_eq!(outside(&sources, "engine/dataflow/", &["timely", "differential_dataflow"]), [""; 0]);
    assert_eq!(outside(&sources, "monitor/", &["axum", "hyper"]), [""; 0]);
    let source = |path: &str, source: &str| (path.to_owned(), source.to_owned());
    let small = [
        source("a/x.rs", "use timely::X;"),
        source("b/y.rs", "// timely::X\nun_timely::y()"),
        source("e/z.rs", "timely::z()"),
    ];
    assert_eq!(outside(&small, "e/", &["timely"]), ["a/x.rs"]);
}

#[test]
fn paths_in_prose_exist() {
    let pages = ["README.md", "ARCHITECTURE.md"].map(|page| root().join(page));
    let docs = files("docs").into_iter().filter(|path| path.extension().is_some_and(|e| e == "md"));
    for page in pages.into_iter().chain(docs) {
        let text = fs::read_to_string(&page).unwrap();
        for word in words_in_backticks(&text).filter(|word| {
            ["src/", "tests/", "pipelines/", "config/", "docs/"].iter().any(|folder| word.starts_with(folder))
        }) {
            let path = word.split(['*', ':', ' ']).next().unwrap();
            assert!(root().join(path).exists(), "{} names `{word}`", page.display());
        }
        for link in text.split("](").skip(1).filter_map(|rest| rest.split([')', '#']).next()) {
            let target = page.parent().unwrap().join(link);
            assert!(
                link.is_empty() || link.contains("://") || target.exists(),
                "{} links {link}",
                page.display()
            );
        }
    }
}
