//! Modules, and what they import of each other.

use std::collections::{BTreeMap, BTreeSet};

use crate::paths::{Named, named, paths};
use crate::rooms::against;
use crate::tables::{Allowed, tables};
use crate::tree::code;

/// All modules by their paths, the crate first, each with the paths that its source names.
pub(crate) struct Modules(pub(crate) BTreeMap<Named, Vec<(Named, bool)>>);

/// The imports of a room.
#[derive(Default)]
pub(crate) struct Room {
    /// Member to member.
    between: BTreeSet<(String, String)>,
    /// Members from which the room's `mod.rs` imports.
    roof: BTreeSet<String>,
    /// Members that import from the room's `mod.rs`.
    cellar: BTreeSet<String>,
}

impl Modules {
    pub(crate) fn read<'a>(sources: impl IntoIterator<Item = (&'a str, &'a str)>) -> Self {
        let module = |(path, source): (&str, &str)| {
            let path = path.trim_end_matches(".rs").trim_end_matches("/mod");
            let path = path.strip_suffix("/lib").unwrap_or(path);
            (named(path), paths(code(source)))
        };
        Self(sources.into_iter().map(module).collect())
    }

    /// The module that defines what `module` names by a path, if it is one of its crate's.
    pub(crate) fn defining(&self, module: &[String], path: &[String]) -> Option<Named> {
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

    pub(crate) fn below(&self, mut module: Named, path: &[String]) -> Named {
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

    pub(crate) fn rooms(&self) -> BTreeMap<Named, Room> {
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
    pub(crate) fn above(&self, tables: &BTreeMap<String, Allowed>) -> Vec<String> {
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
    pub(crate) fn circles(&self) -> Vec<String> {
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
    pub(crate) fn both(&self) -> BTreeMap<String, String> {
        let rooms = self.rooms().into_iter();
        let both = rooms.filter(|(_, room)| !room.roof.is_empty() && !room.cellar.is_empty());
        let line = |room: &Room| format!("imports {:?}, imported by {:?}", room.roof, room.cellar);
        both.map(|(name, room)| (name.join("/"), line(&room))).collect()
    }
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
