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

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

/// Most files of a room, inclusive; folders do not count.
const MOST_FILES: usize = 12;

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

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Files below a folder, with their paths from the root, in order.
fn files(folder: &str) -> Vec<PathBuf> {
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
fn sources() -> Vec<(String, String)> {
    sources_below("src")
}

fn sources_below(folder: &str) -> Vec<(String, String)> {
    let above = root().join(folder);
    let relative = |path: &PathBuf| path.strip_prefix(&above).unwrap().to_str().unwrap().to_owned();
    let rust = files(folder).into_iter().filter(|path| path.extension().is_some_and(|e| e == "rs"));
    rust.map(|path| (relative(&path), fs::read_to_string(&path).unwrap())).collect()
}

/// Whether a source has only unit tests.
fn is_test(path: &str) -> bool {
    path.ends_with("tests.rs") || path.contains("/tests/")
}

/// The part of a source before its unit tests.
fn code(source: &str) -> &str {
    source.split("#[cfg(test)]\nmod tests {").next().unwrap()
}

fn words_in_backticks(cell: &str) -> impl Iterator<Item = &str> {
    cell.split('`').skip(1).step_by(2)
}

/// Each module of a table with the modules that it may import.
type Allowed = BTreeMap<String, BTreeSet<String>>;

/// The tables of the section Floors: that of the crates under `crates`, and those of the modules of a crate
/// or of a room, by its path.
///
/// A row is `| floor name | modules | may import |`; what may be imported are numbers of floors and modules.
fn tables(page: &str) -> BTreeMap<String, Allowed> {
    let section = page.split("\n## Floors\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut tables = BTreeMap::new();
    for part in section.split("\n### ").skip(1) {
        let name = words_in_backticks(part.lines().next().unwrap()).next().unwrap_or("crates").to_owned();
        let rows: Vec<_> = part.lines().filter(|line| line.starts_with('|')).skip(2).map(row).collect();
        let mut allowed = Allowed::new();
        for (_, modules, may) in &rows {
            let floors: Vec<&str> = may.split(' ').filter(|word| !word.starts_with('`')).collect();
            let mut imports: BTreeSet<String> = words_in_backticks(may).map(str::to_owned).collect();
            for (_, below, _) in rows.iter().filter(|(floor, ..)| floors.contains(floor)) {
                imports.extend(below.iter().map(|module| (*module).to_owned()));
            }
            for module in modules {
                let first = allowed.insert((*module).to_owned(), imports.clone()).is_none();
                assert!(first, "{module} is in two rows of {name}");
            }
        }
        tables.insert(name, allowed);
    }
    tables
}

/// The floor, the modules, and what they may import.
fn row(line: &str) -> (&str, Vec<&str>, &str) {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    (cells[1].split(' ').next().unwrap(), words_in_backticks(cells[2]).collect(), cells[3])
}

/// A path in a source, `["crate", "a", "B"]`.
type Named = Vec<String>;

fn named(path: &str) -> Named {
    path.split('/').map(str::to_owned).collect()
}

/// The paths of at least two names in a source, with lists in braces expanded, each with whether it is
/// re-exported.
fn paths(source: &str) -> Vec<(Named, bool)> {
    let code = |line: &&str| !matches!(line.trim_start().get(..2), Some("//" | "#[" | "#!"));
    let lines: Vec<&str> = source.lines().filter(code).collect();
    let text = lines.join("\n").replace("pub(in ", "pub(in_");
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

/// Reads `a::b::{c, d::e}` below `start`; returns its length.
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
                // To the next path; ` as other` is skipped.
                at += text[at..].find([',', '}']).unwrap();
                at += text[at..].find(|c: char| c != ',' && !c.is_whitespace()).unwrap();
            }
            return at + 1;
        }
    }
    found.push(path);
    at
}

/// The crates of this workspace that a source names.
fn crates(source: &str) -> BTreeSet<String> {
    let paths = paths(source).into_iter();
    paths.filter_map(|(path, _)| path[0].strip_prefix("dupflow_").map(str::to_owned)).collect()
}

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
fn imports_from_above_are_found() {
    let page = "\n## Floors\n\n### `c`\n\n| floor | modules | may import |\n|---|---|---|\n| 0 a | `a` | \
        |\n| 1 b | `b` | 0 |\n";
    let found = |path, source| {
        let all = [("c/lib.rs", "pub use b::B;"), ("c/a.rs", ""), ("c/b/mod.rs", ""), (path, source)];
        Modules::read(all).above(&tables(page))
    };
    assert_eq!(found("c/b/x.rs", "use crate::a::A;\nuse super::super::a;"), [""; 0]);
    assert_eq!(found("c/a.rs", "use crate::b::B;"), ["src/c/a imports b"]);
    assert_eq!(found("c/a.rs", "use super::b;\nuse crate::B;"), ["src/c/a imports b"]);
    assert_eq!(found("c/d.rs", "pub struct D;"), ["src/c/d: no floor for d in c"]);
    // In a room with a table of its own; what it imports from outside the room is in no row of it.
    let page = format!(
        "{page}\n### `c/b`\n\n| floor | modules | may import |\n|---|---|---|\n| 0 | `x` | |\n| 1 \
        | `y` | 0 |\n"
    );
    let of_room = |x, y| {
        let all = [("c/a.rs", ""), ("c/b/mod.rs", "mod x;\nmod y;"), ("c/b/x.rs", x), ("c/b/y.rs", y)];
        Modules::read(all).above(&tables(&page))
    };
    assert_eq!(of_room("use crate::a::A;\npub(in crate::b) struct X;", "use super::x::X;"), [""; 0]);
    assert_eq!(of_room("use crate::b::y::Y;", ""), ["src/c/b/x imports y"]);
    // A crate without a table.
    let two = [("e/a.rs", "pub struct A;"), ("e/b.rs", "use crate::a::A;")];
    assert_eq!(Modules::read(two).above(&BTreeMap::new()), ["src/e/b imports a"]);
}

#[test]
fn tables_are_read() {
    let page = "# A\n\n## Floors\n\n### Crates\n\n| floor | crates | may import |\n|---|---|---|\n| 0 core | \
        `core` | |\n\n\
        ### `core`\n\n| floor | modules | may import |\n|---|---|---|\n| 0 ground | `a` `b` | |\n| 1 next | \
        `c` | 0 `d` |\n\n\
        ## Code map\n\n| 9 | `e` | |\n";
    let tables = tables(page);
    assert_eq!(tables.keys().collect::<Vec<_>>(), ["core", "crates"]);
    assert_eq!(tables["core"]["c"].iter().collect::<Vec<_>>(), ["a", "b", "d"]);
    assert!(tables["core"]["a"].is_empty() && tables["core"].len() == 3);
}

#[test]
fn paths_are_found() {
    let source = "use crate::a::B;\nuse crate::{\n    c as other, d::{E, self}\n};\n/// [`x`](crate::x)\nlet \
        y = crate::f::g();\n\
        pub(crate) h: crate::I,\npub use crate::j::K;\nuse dupflow_core::text::T;\nlet u = \
        dupflow_engine::v();";
    let found = paths(source);
    let second: Vec<&str> =
        found.iter().filter(|(path, _)| path[0] == "crate").map(|(path, _)| &*path[1]).collect();
    assert_eq!(second, ["a", "c", "d", "d", "f", "I", "j"]);
    let exported: Vec<_> = found.iter().filter(|(_, is_export)| *is_export).collect();
    assert_eq!(exported, [&(["crate", "j", "K"].map(str::to_owned).to_vec(), true)]);
    assert_eq!(crates(source).into_iter().collect::<Vec<_>>(), ["core", "engine"]);
}

/// All modules by their paths, the crate first, each with the paths that its source names.
struct Modules(BTreeMap<Named, Vec<(Named, bool)>>);

/// The imports of a room.
#[derive(Default)]
struct Room {
    /// Member to member.
    between: BTreeSet<(String, String)>,
    /// Members from which the room's `mod.rs` imports.
    roof: BTreeSet<String>,
    /// Members that import from the room's `mod.rs`.
    cellar: BTreeSet<String>,
}

impl Modules {
    fn read<'a>(sources: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let module = |(path, source): (&str, &str)| {
            let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
            let path = path.strip_suffix("/lib").unwrap_or(path);
            (named(path), paths(code(source)))
        };
        Self(sources.into_iter().map(module).collect())
    }

    /// The module that defines what `module` names by a path, if it is one of its crate's.
    fn defining(&self, module: &[String], path: &[String]) -> Option<Named> {
        let mut at = match path[0].as_str() {
            "crate" => module[..1].to_vec(),
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

    fn rooms(&self) -> BTreeMap<Named, Room> {
        let mut rooms: BTreeMap<Named, Room> = BTreeMap::new();
        for (module, names) in &self.0 {
            for (path, _) in names.iter().filter(|(_, is_export)| !is_export) {
                let Some(target) = self.defining(module, path) else { continue };
                let shared = module.iter().zip(&target).take_while(|(a, b)| a == b).count();
                let room = rooms.entry(module[..shared].to_vec()).or_default();
                match (module.get(shared).cloned(), target.get(shared).cloned()) {
                    (Some(from), Some(to)) => drop(room.between.insert((from, to))),
                    (None, Some(to)) => drop(room.roof.insert(to)),
                    (Some(from), None) => drop(room.cellar.insert(from)),
                    (None, None) => {}
                }
            }
        }
        rooms
    }

    /// Imports that the tables do not allow, and modules without a row.
    fn above(&self, tables: &BTreeMap<String, Allowed>) -> Vec<String> {
        let mut findings = BTreeSet::new();
        for (module, names) in self.0.iter().filter(|(module, _)| module.get(1).is_none_or(|of| of != "main"))
        {
            for depth in 1..module.len() {
                let (room, of) = (&module[..depth], &module[depth]);
                let may = match tables.get(&room.join("/")).map(|rows| rows.get(of)) {
                    Some(Some(may)) => Some(may),
                    Some(None) => {
                        findings.insert(format!(
                            "src/{}: no floor for {of} in {}",
                            module.join("/"),
                            room.join("/")
                        ));
                        continue;
                    }
                    None if depth == 1 => None,
                    None => continue,
                };
                for target in names.iter().filter_map(|(path, _)| self.defining(module, path)) {
                    let import = target.get(depth).filter(|import| target.starts_with(room) && *import != of);
                    if let Some(import) =
                        import.filter(|import| !may.is_some_and(|may| may.contains(*import)))
                    {
                        findings.insert(format!("src/{} imports {import}", module.join("/")));
                    }
                }
            }
        }
        findings.into_iter().collect()
    }

    /// For each room with a circle: the members that are in a circle or between two.
    fn circles(&self) -> Vec<String> {
        let mut circles = Vec::new();
        for (name, Room { between: mut imports, .. }) in self.rooms() {
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
            let members: BTreeSet<_> = imports.into_iter().map(|(from, _)| from).collect();
            if !members.is_empty() {
                circles.push(format!("{}: {members:?}", name.join("/")));
            }
        }
        circles
    }

    /// The rooms whose `mod.rs` is both roof and cellar, with the members that it imports, and that import
    /// it.
    fn both(&self) -> BTreeMap<String, String> {
        let rooms = self.rooms().into_iter();
        let both = rooms.filter(|(_, room)| !room.roof.is_empty() && !room.cellar.is_empty());
        let line = |room: &Room| format!("imports {:?}, imported by {:?}", room.roof, room.cellar);
        both.map(|(name, room)| (name.join("/"), line(&room))).collect()
    }
}

/// Findings that are not listed as exceptions, and exceptions without a finding.
fn against(findings: &BTreeMap<String, String>, exceptions: &[(&str, &str)]) -> Vec<String> {
    let is_listed = |name: &String| exceptions.iter().any(|(listed, _)| listed == name);
    let found = findings.iter().filter(|(name, _)| !is_listed(name));
    let stale = exceptions.iter().filter(|(listed, _)| !findings.contains_key(*listed));
    let found = found.map(|(name, what)| format!("src/{name}: {what}"));
    found
        .chain(stale.map(|(listed, _)| format!("src/{listed}: the exception is not needed any more")))
        .collect()
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
fn circles_are_found() {
    // A `mod.rs` that only re-exports is in no circle.
    let room = "mod x;\nmod y;\npub use x::X;\npub use y::y;";
    assert!(
        Modules::read([("c/r/mod.rs", room), ("c/r/x.rs", ""), ("c/r/y.rs", "use super::X;")])
            .circles()
            .is_empty()
    );
    // Through a re-export; in a unit test it does not count.
    let y = "use super::X;\npub fn y() {}";
    let found =
        Modules::read([("c/r/mod.rs", room), ("c/r/x.rs", "let y = super::y::y();"), ("c/r/y.rs", y)]);
    assert_eq!(found.circles(), [r#"c/r: {"x", "y"}"#]);
    let tests = "#[cfg(test)]\nmod tests {\nuse crate::r::y;";
    assert!(Modules::read([("c/r/mod.rs", room), ("c/r/x.rs", tests), ("c/r/y.rs", y)]).circles().is_empty());
    // Between a file and any file of a folder; the path that leads there is in no circle.
    let deep = [
        ("c/r/mod.rs", "mod a;\nmod c;\nmod d;"),
        ("c/r/a/mod.rs", "mod b;"),
        ("c/r/a/b.rs", "use super::super::c::C;"),
        ("c/r/c.rs", "use crate::r::a;"),
        ("c/r/d.rs", "use super::c;"),
    ];
    assert_eq!(Modules::read(deep).circles(), [r#"c/r: {"a", "c"}"#]);
    // Modules of two crates with one name are not mixed up.
    let two =
        [("a/r.rs", "use crate::s::S;"), ("a/s.rs", ""), ("b/s.rs", "use crate::r::R;"), ("b/r.rs", "")];
    assert!(Modules::read(two).circles().is_empty());
}

#[test]
fn roofs_that_are_cellars_are_found() {
    let roof = "mod x;\nuse x::X;\npub struct Roof(X);";
    let cellar = "mod x;\npub use x::X;\npub struct Ground;";
    let up = "use super::Ground;";
    assert!(Modules::read([("c/r/mod.rs", roof), ("c/r/x.rs", "pub struct X;")]).both().is_empty());
    assert!(Modules::read([("c/r/mod.rs", cellar), ("c/r/x.rs", up)]).both().is_empty());
    let both = Modules::read([("c/r/mod.rs", roof), ("c/r/x.rs", "use super::Roof;")]).both();
    assert_eq!(both["c/r"], r#"imports {"x"}, imported by {"x"}"#);
    let library =
        Modules::read([("c/lib.rs", roof), ("c/x/mod.rs", "mod y;"), ("c/x/y.rs", "use crate::Roof;")])
            .both();
    assert_eq!(library.keys().collect::<Vec<_>>(), ["c"]);
    assert_eq!(
        against(&both, &[("c/r", "because"), ("c/s", "once")]),
        ["src/c/s: the exception is not needed any more"]
    );
    assert_eq!(against(&both, &[]).len(), 1);
}

/// For each room: its files, and its files and folders by their names.
fn members<'a>(paths: impl Iterator<Item = &'a str>) -> BTreeMap<&'a str, (usize, BTreeSet<&'a str>)> {
    let mut rooms: BTreeMap<&str, (usize, BTreeSet<&str>)> = BTreeMap::new();
    for path in paths {
        let (mut room, file) = path.rsplit_once('/').unwrap();
        let members = rooms.entry(room).or_default();
        members.0 += 1;
        members.1.insert(file.trim_end_matches(".rs"));
        while let Some((above, folder)) = room.rsplit_once('/') {
            rooms.entry(above).or_default().1.insert(folder);
            room = above;
        }
    }
    rooms
}

fn too_large<'a>(paths: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let large = members(paths).into_iter().filter(|(_, (files, _))| *files > MOST_FILES);
    large
        .map(|(room, (files, _))| (room.to_owned(), format!("{files} files, more than {MOST_FILES}")))
        .collect()
}

/// Members of a room whose names differ by an `s` at the end.
fn twins<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
    let rooms = members(paths).into_iter();
    let twins = rooms.flat_map(|(room, (_, names))| {
        let has_twin = |name: &&&str| names.contains(&*format!("{name}s"));
        names
            .iter()
            .filter(has_twin)
            .map(|name| format!("src/{room}: {name} and {name}s"))
            .collect::<Vec<_>>()
    });
    twins.collect()
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
fn large_rooms_and_twins_are_found() {
    let paths: Vec<String> = (0..13).map(|n| format!("c/r/f{n}.rs")).collect();
    let of = |n: usize| paths[..n].iter().map(String::as_str);
    assert!(too_large(of(12)).is_empty());
    assert_eq!(too_large(of(13))["c/r"], "13 files, more than 12");
    let names = ["c/r/shape.rs", "c/r/shapes/mod.rs", "c/shape.rs", "c/r/mass.rs", "c/r/mas.rs"];
    assert_eq!(twins(names.into_iter()), ["src/c/r: mas and mass", "src/c/r: shape and shapes"]);
    assert!(twins(["c/shape.rs", "c/r/shapes.rs"].into_iter()).is_empty());
}

/// Sources outside a folder that name a crate reserved for it.
fn outside<'a>(sources: &'a [(String, String)], folder: &str, reserved: &[&str]) -> Vec<&'a str> {
    let names = |source: &str| {
        let code = source.lines().filter(|line| !line.trim_start().starts_with("//"));
        code.into_iter().any(|line| {
            let is_word =
                |at: usize| at == 0 || !line[..at].ends_with(|c: char| c.is_alphanumeric() || c == '_');
            reserved.iter().any(|name| line.match_indices(&format!("{name}::")).any(|(at, _)| is_word(at)))
        })
    };
    let found = sources.iter().filter(|(path, source)| !path.starts_with(folder) && names(source));
    found.map(|(path, _)| path.as_str()).collect()
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
