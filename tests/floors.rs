//! The architecture, kept: floors as in the table of `ARCHITECTURE.md`, no circle inside a room, timely in
//! one folder, paths in prose that exist.
//!
//! A *room* is a folder of `src/`. Its files and its folders are its members. A member imports another one
//! where it names anything that the other one defines, by `super::…`, `self::…`, `crate::…` or a child's
//! name; a re-export counts as the file that it re-exports. There must be no circle of members. `mod.rs` is
//! no member: it is the ground of its room (types and traits that all members share) and its roof (it puts
//! them together), so what it imports, and what is imported from it, makes no circle. Unit tests do not
//! count.
//!
//! Bug class: an import that is convenient today and a circle of modules tomorrow.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Rooms that still have a circle, with the members of each. A room without a circle must not be listed.
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

/// A path in a source, `["crate", "a", "B"]`.
type Named = Vec<String>;

/// The paths of two names or more in a source, lists in braces spelled out, each with whether it is
/// re-exported.
fn paths(source: &str) -> Vec<(Named, bool)> {
    let code = |line: &&str| !matches!(line.trim_start().get(..2), Some("//" | "#[" | "#!"));
    let lines: Vec<&str> = source.lines().filter(code).collect();
    let text = lines.join("\n");
    let mut found = Vec::new();
    let (mut at, mut before) = (0, ' ');
    while let Some(first) = text[at..].chars().next() {
        let name = name_at(&text[at..]);
        if !name.is_empty() && before != ':' {
            let mut all = Vec::new();
            let length = tree(&text[at..], &[], &mut all);
            let statement = text[..at].rsplit([';', '}', '\n']).next().unwrap().trim();
            let is_export = statement.starts_with("pub") && statement.ends_with("use");
            found.extend(all.into_iter().filter(|path| path.len() > 1).map(|path| (path, is_export)));
            at += length.max(name.len());
            before = 'a';
        } else {
            at += name.len().max(first.len_utf8());
            before = first;
        }
    }
    found
}

fn name_at(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// Reads `a::b::{c, d::e}` behind `start`; how long it is.
fn tree(text: &str, start: &[String], found: &mut Vec<Named>) -> usize {
    let mut path = start.to_vec();
    let mut at = 0;
    loop {
        let name = name_at(&text[at..]);
        if name.is_empty() {
            break;
        }
        path.push(name.to_owned());
        at += name.len();
        if !text[at..].starts_with("::") {
            break;
        }
        at += 2;
        if text[at..].starts_with('{') {
            at += 1 + text[at + 1..].find(|c: char| !c.is_whitespace()).unwrap();
            while !text[at..].starts_with('}') {
                at += tree(&text[at..], &path, found);
                // To the next one, over ` as other`.
                at += text[at..].find([',', '}']).unwrap();
                at += text[at..].find(|c: char| c != ',' && !c.is_whitespace()).unwrap();
            }
            return at + 1;
        }
    }
    found.push(path);
    at
}

/// The top-level modules that a source imports.
fn imports(source: &str) -> BTreeSet<String> {
    let of_crate =
        paths(source).into_iter().filter(|(path, _)| path[0] == "crate").map(|(mut path, _)| path.remove(1));
    of_crate.filter(|name| name.starts_with(char::is_lowercase)).collect()
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
    let source = "use crate::a::B;\nuse crate::{\n    c as other, d::{E, self}\n};\n/// [`x`](crate::x)\nlet y = crate::f::g();\n\
        pub(crate) h: crate::I,\npub use crate::j::K;";
    assert_eq!(imports(source).into_iter().collect::<Vec<_>>(), ["a", "c", "d", "f", "j"]);
    let exported: Vec<_> = paths(source).into_iter().filter(|(_, is_export)| *is_export).collect();
    assert_eq!(exported, [(["crate", "j", "K"].map(str::to_owned).to_vec(), true)]);
}

/// The modules of the crate by their paths, each with what its source names.
struct Modules(BTreeMap<Named, Vec<(Named, bool)>>);

impl Modules {
    fn read<'a>(sources: impl IntoIterator<Item = (&'a str, String)>) -> Self {
        let module = |(path, source): (&str, String)| {
            let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
            let names = path.split('/').map(str::to_owned).collect();
            let code = source.split("#[cfg(test)]\nmod tests {").next().unwrap();
            (names, paths(code))
        };
        Self(sources.into_iter().map(module).collect())
    }

    /// The module in which something is defined that `module` names so, if it is one of the crate's.
    fn defining(&self, module: &[String], path: &[String]) -> Option<Named> {
        let mut at = match path[0].as_str() {
            "crate" => Vec::new(),
            "self" | "super" => module.to_vec(),
            child => {
                let child = [module, &[child.to_owned()]].concat();
                return self.0.contains_key(&child).then(|| self.below(child, &path[1..]));
            }
        };
        let ups = path.iter().take_while(|name| *name == "super").count();
        at.truncate(at.len().checked_sub(ups)?);
        let rest = &path[ups.max(1)..];
        Some(self.below(at, rest))
    }

    fn below(&self, mut module: Named, path: &[String]) -> Named {
        let Some((name, rest)) = path.split_first() else { return module };
        module.push(name.clone());
        if self.0.contains_key(&module) {
            return self.below(module, rest);
        }
        module.pop();
        let export = self
            .0
            .get(&module)
            .into_iter()
            .flatten()
            .find(|(named, is_export)| *is_export && named.last() == Some(name));
        let target = export.and_then(|(named, _)| self.defining(&module, named));
        target.filter(|target| *target != module).unwrap_or(module)
    }

    /// Of each room, the members that are in a circle or between two.
    fn circles(&self) -> BTreeMap<String, BTreeSet<String>> {
        let mut rooms: BTreeMap<Named, BTreeSet<(String, String)>> = BTreeMap::new();
        for (module, names) in &self.0 {
            for (path, _) in names.iter().filter(|(_, is_export)| !is_export) {
                let Some(target) = self.defining(module, path) else { continue };
                let shared = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                if let (Some(from), Some(to)) = (module.get(shared), target.get(shared)) {
                    rooms.entry(module[..shared].to_vec()).or_default().insert((from.clone(), to.clone()));
                }
            }
        }
        let mut circles = BTreeMap::new();
        for (room, mut imports) in rooms {
            // A member that imports none, or that none imports, is in no circle.
            loop {
                let left: BTreeSet<_> = imports
                    .iter()
                    .filter(|(from, to)| {
                        imports.iter().any(|(a, _)| a == to) && imports.iter().any(|(_, b)| b == from)
                    })
                    .cloned()
                    .collect();
                if left.len() == imports.len() {
                    break;
                }
                imports = left;
            }
            if !imports.is_empty() {
                circles.insert(room.join("/"), imports.into_iter().map(|(from, _)| from).collect());
            }
        }
        circles
    }
}

#[test]
fn no_room_has_a_circle() {
    let src = root().join("src");
    let relative = |path: &PathBuf| path.strip_prefix(&src).unwrap().to_str().unwrap().to_owned();
    let sources: Vec<_> =
        files("src").iter().map(|path| (relative(path), fs::read_to_string(path).unwrap())).collect();
    let code = sources.iter().filter(|(path, _)| !path.ends_with("tests.rs") && path.contains('/'));
    let found = Modules::read(code.map(|(path, source)| (path.as_str(), source.clone()))).circles();
    assert_eq!(found, BTreeMap::new(), "circles inside rooms");
}

#[test]
fn circles_are_found() {
    let circles = |sources: &[(&'static str, &str)]| {
        let sources = sources.iter().map(|(path, source)| (*path, (*source).to_owned()));
        Modules::read(sources)
            .circles()
            .into_iter()
            .map(|(room, members)| format!("{room}: {members:?}"))
            .collect::<Vec<_>>()
    };
    // The ground of a room may be its roof.
    let room = "mod x;\nmod y;\npub use x::X;\npub struct Ground;\nfn roof() { y::y() }";
    assert!(
        circles(&[
            ("r/mod.rs", room),
            ("r/x.rs", "use super::Ground;"),
            ("r/y.rs", "use super::{Ground, X};")
        ])
        .is_empty()
    );
    // Through a re-export; in a test it does not count.
    let y = "use super::X;\npub fn y() {}";
    assert_eq!(
        circles(&[("r/mod.rs", room), ("r/x.rs", "let y = super::y::y();"), ("r/y.rs", y)]),
        [r#"r: {"x", "y"}"#]
    );
    assert!(
        circles(&[
            ("r/mod.rs", room),
            ("r/x.rs", "#[cfg(test)]\nmod tests {\nuse crate::r::y;"),
            ("r/y.rs", y)
        ])
        .is_empty()
    );
    // Between a file and a folder, wherever in it; what leads there is in no circle.
    let deep = [
        ("r/mod.rs", "mod a;\nmod c;\nmod d;"),
        ("r/a/mod.rs", "mod b;"),
        ("r/a/b.rs", "use super::super::c::C;"),
        ("r/c.rs", "use crate::r::a;"),
        ("r/d.rs", "use super::c;"),
    ];
    assert_eq!(circles(&deep), [r#"r: {"a", "c"}"#]);
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
