//! The architecture, kept: floors as in the table of `ARCHITECTURE.md`, timely in one folder, paths in prose that exist.
//!
//! Bug class: an import that is convenient today and a circle of modules tomorrow.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below a folder, with their paths from the root.
fn files(folder: &str) -> Vec<PathBuf> {
    let mut found = Vec::new();
    let mut folders = vec![root().join(folder)];
    while let Some(next) = folders.pop() {
        for entry in fs::read_dir(next).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { found.push(path) }
        }
    }
    found
}

fn words_in_backticks(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Module to the modules that it may import, by the table.
fn allowed() -> BTreeMap<String, BTreeSet<String>> {
    let text = fs::read_to_string(root().join("ARCHITECTURE.md")).unwrap();
    let rows: Vec<(&str, Vec<&str>, &str)> = text
        .lines()
        .skip_while(|line| !line.starts_with("| floor "))
        .skip(2)
        .take_while(|line| line.starts_with('|'))
        .map(|line| {
            let cells: Vec<&str> = line.split('|').map(str::trim).collect();
            (cells[1].split(' ').next().unwrap(), words_in_backticks(cells[2]).collect(), cells[3])
        })
        .collect();
    let mut allowed = BTreeMap::new();
    for (_, modules, may) in &rows {
        let floors: Vec<&str> = may.split(' ').filter(|word| !word.starts_with('`')).collect();
        let mut imports: BTreeSet<String> = words_in_backticks(may).map(str::to_owned).collect();
        for (_, below, _) in rows.iter().filter(|(floor, ..)| floors.contains(floor)) {
            imports.extend(below.iter().map(|m| (*m).to_owned()));
        }
        for module in modules {
            assert!(
                allowed.insert((*module).to_owned(), imports.clone()).is_none(),
                "{module} stands on two floors"
            );
        }
    }
    allowed
}

/// The top-level modules that a source imports, with `use crate::{a, b}` spelled out.
fn imports(source: &str) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    for (at, _) in source.match_indices("crate::") {
        let line = source[..at].rfind('\n').map_or(&source[..at], |start| &source[start + 1..at]);
        if line.trim_start().starts_with("//") || line.trim_start().starts_with('#') {
            continue;
        }
        let rest = &source[at + "crate::".len()..];
        let names = match rest.strip_prefix('{') {
            Some(group) => group.split('}').next().unwrap(),
            None => rest.split(|c: char| !c.is_alphanumeric() && c != '_').next().unwrap(),
        };
        let is_module = |name: &&str| name.starts_with(char::is_lowercase);
        found.extend(
            names
                .split(',')
                .map(|n| n.trim().split("::").next().unwrap())
                .filter(is_module)
                .map(str::to_owned),
        );
    }
    found
}

#[test]
fn modules_import_from_lower_floors_only() {
    let allowed = allowed();
    let mut seen = BTreeSet::new();
    for path in files("src") {
        let relative = path.strip_prefix(root().join("src")).unwrap();
        let module = relative.iter().next().unwrap().to_str().unwrap().trim_end_matches(".rs");
        if module == "lib" || module == "main" {
            continue;
        }
        let may =
            allowed.get(module).unwrap_or_else(|| panic!("{module} stands on no floor of ARCHITECTURE.md"));
        for import in imports(&fs::read_to_string(&path).unwrap()) {
            assert!(import == module || may.contains(&import), "{} imports {import}", relative.display());
        }
        seen.insert(module.to_owned());
    }
    assert_eq!(seen, allowed.into_keys().collect(), "the table and the sources name the same modules");
}

#[test]
fn imports_are_found() {
    let source = "use crate::a::B;\nuse crate::{c, d::E};\n/// [`x`](crate::x)\nlet y = crate::f::g();\npub(crate) h: crate::I,";
    assert_eq!(imports(source).into_iter().collect::<Vec<_>>(), ["a", "c", "d", "f"]);
}

#[test]
fn only_the_dataflow_knows_timely() {
    for path in files("src") {
        let inside = path.starts_with(root().join("src/dataflow"));
        let source = fs::read_to_string(&path).unwrap();
        let knows = source.lines().any(|line| {
            let line = line.trim_start();
            !line.starts_with("//") && (line.contains("timely::") || line.contains("differential_dataflow::"))
        });
        assert!(inside || !knows, "{} knows timely", path.display());
    }
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
