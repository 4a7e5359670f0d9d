//! Files of this tree, and the code in them.

use std::fs;
use std::path::{Path, PathBuf};

pub(crate) fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below a folder, with their paths from the root, in order.
pub(crate) fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found.sort();
    found
}

/// The sources below `src`: path from there, and text.
pub(crate) fn sources() -> Vec<(String, String)> {
    sources_below("src")
}

pub(crate) fn sources_below(folder: &str) -> Vec<(String, String)> {
    let above = root().join(folder);
    let relative = |path: &PathBuf| path.strip_prefix(&above).unwrap().to_str().unwrap().to_owned();
    let rust = files(folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
    rust.map(|path| (relative(&path), fs::read_to_string(&path).unwrap())).collect()
}

/// Whether a source has only unit tests.
pub(crate) fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("/tests/")
}

/// The part of a source before its unit tests.
pub(crate) fn code(source: &str) -> &str {
    source.split("#[cfg(test)]\nmod tests {").next().unwrap()
}

pub(crate) fn words_in_backticks(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}
