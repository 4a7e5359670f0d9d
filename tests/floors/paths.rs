//! The paths that a source names.

use std::collections::BTreeSet;

/// A path in a source, `["crate", "a", "B"]`.
pub(crate) type Named = Vec<String>;

pub(crate) fn named(path: &str) -> Named {
    path.split('/').map(str::to_owned).collect()
}

/// The paths of at least two names in a source, with lists in braces expanded, each with whether it is
/// re-exported.
pub(crate) fn paths(source: &str) -> Vec<(Named, bool)> {
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

pub(crate) fn name_at(text: &str) -> &str {
    let end = text.find(|c: char| !c.is_alphanumeric() && c != '_').unwrap_or(text.len());
    &text[..end]
}

/// Reads `a::b::{c, d::e}` below `start`; returns its length.
pub(crate) fn tree(text: &str, start: &[String], found: &mut Vec<Named>) -> usize {
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
pub(crate) fn crates(source: &str) -> BTreeSet<String> {
    let paths = paths(source).into_iter();
    paths.filter_map(|(path, _)| path[0].strip_prefix("dupflow_").map(str::to_owned)).collect()
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
