//! The files of rooms, and findings against a list of exceptions.

use std::collections::{BTreeMap, BTreeSet};

/// Most files of a room, inclusive; folders do not count.
const MOST_FILES: usize = 12;

/// Findings that are not listed as exceptions, and exceptions without a finding.
pub(crate) fn against(findings: &BTreeMap<String, String>, exceptions: &[(&str, &str)]) -> Vec<String> {
    let is_listed = |name: &String| exceptions.iter().any(|(listed, _)| listed == name);
    let found = findings.iter().filter(|(name, _)| !is_listed(name));
    let stale = exceptions.iter().filter(|(listed, _)| !findings.contains_key(*listed));
    let found = found.map(|(name, what)| format!("src/{name}: {what}"));
    found
        .chain(stale.map(|(listed, _)| format!("src/{listed}: the exception is not needed any more")))
        .collect()
}

/// For each room: its files, and its files and folders by their names.
pub(crate) fn members<'a>(
    paths: impl Iterator<Item = &'a str>,
) -> BTreeMap<&'a str, (usize, BTreeSet<&'a str>)> {
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

pub(crate) fn too_large<'a>(paths: impl Iterator<Item = &'a str>) -> BTreeMap<String, String> {
    let large = members(paths).into_iter().filter(|(_, (files, _))| *files > MOST_FILES);
    large
        .map(|(room, (files, _))| (room.to_owned(), format!("{files} files, more than {MOST_FILES}")))
        .collect()
}

/// Members of a room whose names differ by an `s` at the end.
pub(crate) fn twins<'a>(paths: impl Iterator<Item = &'a str>) -> Vec<String> {
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

/// Sources outside a folder that name a crate reserved for it.
pub(crate) fn outside<'a>(sources: &'a [(String, String)], folder: &str, reserved: &[&str]) -> Vec<&'a str> {
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
fn large_rooms_and_twins_are_found() {
    let paths: Vec<String> = (0..13).map(|n| format!("c/r/f{n}.rs")).collect();
    let of = |n: usize| paths[..n].iter().map(String::as_str);
    assert!(too_large(of(12)).is_empty());
    assert_eq!(too_large(of(13))["c/r"], "13 files, more than 12");
    let names = ["c/r/shape.rs", "c/r/shapes/mod.rs", "c/shape.rs", "c/r/mass.rs", "c/r/mas.rs"];
    assert_eq!(twins(names.into_iter()), ["src/c/r: mas and mass", "src/c/r: shape and shapes"]);
    assert!(twins(["c/shape.rs", "c/r/shapes.rs"].into_iter()).is_empty());
}
