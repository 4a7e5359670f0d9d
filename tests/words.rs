//! Keeps the goals for words and names of the sources.
//!
//! In: all Rust files of `src`, `python/src` and `tests`, and `build.rs`. Out: all findings of a rule, each
//! with file and line.
//!
//! | rule | where | goal |
//! |---|---|---|
//! | words that hide the actor of a sentence | comments | the shares of [`GROUPS`] |
//! | one type name for several types | `src` | [`MOST_REPEATED`] of the names, without [`EXCEPTIONS`] |
//! | constructors without a name | everywhere | none is called `of` |
//! | width of a line, in characters | everywhere | [`COLUMNS`], inclusive; rows of tables in comments may be wider |
//!
//! A comment line is a line that begins with `//` after its indentation.

#![expect(clippy::unwrap_used, reason = "a test panics where it fails")]

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

/// A group of words, and the most comment lines of a thousand that may have one of them, inclusive.
struct Group {
    words: &'static [&'static str],
    per_thousand: usize,
}

/// Words by which a sentence hides the part of the program that acts.
const GROUPS: [Group; 3] = [
    Group { words: &["who", "whom", "whoever", "nobody", "somebody"], per_thousand: 3 },
    Group { words: &["tell", "told"], per_thousand: 1 },
    Group { words: &["come", "came", "gone", "goes"], per_thousand: 5 },
];

/// The most type names that are defined more than once, of a hundred, inclusive.
const MOST_REPEATED: usize = 5;

/// Type names that may be defined more than once, each with the reason. They do not count.
const EXCEPTIONS: &[(&str, &str)] = &[("Args", "the arguments of a command, in the file of the command")];

/// The greatest width of a line in characters, inclusive.
const COLUMNS: usize = 110;

/// A source: its path from the root, and its text.
type Source = (String, String);

/// A place in a source, as `file:line: text`.
type Finding = String;

fn sources() -> Vec<Source> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut found = vec![("build.rs".to_owned(), fs::read_to_string(root.join("build.rs")).unwrap())];
    let mut folders = ["src", "python/src", "tests"].map(|name| root.join(name)).to_vec();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read_to_string(&path).unwrap()));
            }
        }
    }
    found.sort();
    found
}

/// All lines of all sources: path, number from 1, text.
fn lines(sources: &[Source]) -> impl Iterator<Item = (&str, usize, &str)> {
    sources.iter().flat_map(|(path, text)| (1..).zip(text.lines()).map(move |(n, line)| (&**path, n, line)))
}

fn comments(sources: &[Source]) -> impl Iterator<Item = (&str, usize, &str)> {
    lines(sources).map(|(path, n, line)| (path, n, line.trim())).filter(|(.., line)| line.starts_with("//"))
}

fn words(line: &str) -> impl Iterator<Item = &str> {
    line.split(|c: char| !c.is_alphanumeric() && c != '_').filter(|word| !word.is_empty())
}

/// The comment lines that have a word of a group, in any case.
fn with_words(sources: &[Source], group: &Group) -> Vec<Finding> {
    let is_in = |word: &str| group.words.contains(&&*word.to_lowercase());
    let found = comments(sources).filter(|(.., line)| words(line).any(is_in));
    found.map(|(path, n, line)| format!("{path}:{n}: {line}")).collect()
}

/// The type that a line defines, if it does: a struct, enum, union, trait or alias, but no associated type of
/// an implementation.
fn defined(line: &str) -> Option<&str> {
    let is_indented = line.starts_with(' ');
    let mut rest = line.trim_start();
    if let Some(public) = rest.strip_prefix("pub") {
        let in_parentheses = public.strip_prefix('(').and_then(|scope| scope.split_once(')'));
        rest = in_parentheses.map_or(public, |(_, behind)| behind).trim_start();
    }
    let (kind, rest) = rest.split_once(' ')?;
    let name = words(rest).next().filter(|name| rest.starts_with(name))?;
    let is_associated = kind == "type" && is_indented && rest.contains('=');
    let is_kind = ["struct", "enum", "union", "trait", "type"].contains(&kind);
    (is_kind && !is_associated && name.starts_with(char::is_uppercase)).then_some(name)
}

/// The definitions of types below `src`, by name.
fn types(sources: &[Source]) -> BTreeMap<&str, Vec<Finding>> {
    let mut types: BTreeMap<&str, Vec<Finding>> = BTreeMap::new();
    for (path, n, line) in lines(sources).filter(|(path, ..)| path.starts_with("src/")) {
        if let Some(name) = defined(line) {
            types.entry(name).or_default().push(format!("{path}:{n}"));
        }
    }
    types
}

/// The number of type names, and those that are defined more than once and are no exceptions.
fn repeated(sources: &[Source], exceptions: &[(&str, &str)]) -> (usize, Vec<Finding>) {
    let types = types(sources);
    let is_exception = |name: &str| exceptions.iter().any(|(exception, _)| *exception == name);
    let repeated = types.iter().filter(|(name, places)| places.len() > 1 && !is_exception(name));
    (types.len(), repeated.map(|(name, places)| format!("{name}: {}", places.join(" "))).collect())
}

/// Exceptions that are not defined more than once.
fn not_needed(sources: &[Source], exceptions: &[(&str, &str)]) -> Vec<Finding> {
    let types = types(sources);
    let is_needed = |name: &str| types.get(name).is_some_and(|places| places.len() > 1);
    exceptions.iter().filter(|(name, _)| !is_needed(name)).map(|(name, _)| (*name).to_owned()).collect()
}

/// Definitions of functions that are called `of`.
fn unnamed(sources: &[Source]) -> Vec<Finding> {
    let is_unnamed = |line: &str| {
        let code = line.split("//").next().unwrap_or_default();
        words(code).collect::<Vec<_>>().windows(2).any(|pair| pair == ["fn", "of"])
    };
    let found = lines(sources).filter(|(.., line)| is_unnamed(line) && !line.contains('"'));
    found.map(|(path, n, line)| format!("{path}:{n}: {}", line.trim())).collect()
}

/// Whether a line is a row of a table in a comment, which cannot be broken.
fn is_row(line: &str) -> bool {
    let comment = line.trim_start().strip_prefix("//").map(|comment| comment.trim_start_matches(['/', '!']));
    comment.is_some_and(|comment| comment.trim_start().starts_with('|'))
}

fn too_wide(sources: &[Source]) -> Vec<Finding> {
    let is_wide = |line: &str| line.chars().count() > COLUMNS && !is_row(line);
    let found = lines(sources).filter(|(.., line)| is_wide(line));
    found.map(|(path, n, line)| format!("{path}:{n}: {} characters", line.chars().count())).collect()
}

#[test]
fn comments_name_the_part_that_acts() {
    let sources = sources();
    let all = comments(&sources).count();
    let mut failures = Vec::new();
    for group in &GROUPS {
        let found = with_words(&sources, group);
        if found.len() * 1000 > group.per_thousand * all {
            let (words, most) = (group.words.join(", "), group.per_thousand);
            let share = found.len() as f64 * 1000.0 / all as f64;
            failures.push(format!(
                "{words}: {share:.1} of 1,000 comment lines, at most {most}:\n{}",
                found.join("\n")
            ));
        }
    }
    assert!(failures.is_empty(), "\n{}", failures.join("\n\n"));
}

#[test]
fn a_type_name_is_one_type() {
    let sources = sources();
    let (all, repeated) = repeated(&sources, EXCEPTIONS);
    assert!(
        repeated.len() * 100 <= MOST_REPEATED * all,
        "{} of {all} type names are defined more than once, at most {MOST_REPEATED} %:\n{}",
        repeated.len(),
        repeated.join("\n")
    );
    assert_eq!(not_needed(&sources, EXCEPTIONS), [""; 0], "exceptions that are not needed any more");
}

#[test]
fn constructors_have_names() {
    let found = unnamed(&sources());
    assert!(found.is_empty(), "new, from_… or for_… instead of a function called of:\n{}", found.join("\n"));
}

#[test]
fn lines_are_within_the_columns() {
    let found = too_wide(&sources());
    assert!(found.is_empty(), "lines above {COLUMNS} characters:\n{}", found.join("\n"));
}

fn source(path: &str, text: &str) -> Vec<Source> {
    vec![(path.to_owned(), text.to_owned())]
}

#[test]
fn words_are_found_in_comments_only() {
    let text =
        "/// Whoever: counts.\nlet who = \"who\";\n    // nobody\n//! whole, whose, someone\n/// (who)\n";
    let found = with_words(&source("src/a.rs", text), &GROUPS[0]);
    assert_eq!(found, ["src/a.rs:1: /// Whoever: counts.", "src/a.rs:3: // nobody", "src/a.rs:5: /// (who)"]);
    assert_eq!(comments(&source("src/a.rs", text)).count(), 4);
    let second = with_words(&source("src/a.rs", "// It is told.\n// telling\n// tell_all\n"), &GROUPS[1]);
    assert_eq!(second, ["src/a.rs:1: // It is told."]);
    let third = with_words(&source("src/a.rs", "// It goes.\n// become\n// Came and went\n"), &GROUPS[2]);
    assert_eq!(third.len(), 2);
}

#[test]
fn types_are_found_by_their_definitions() {
    for (line, name) in [
        ("struct A;", Some("A")),
        ("    pub(super) enum B<T> {", Some("B")),
        ("pub trait C: Send {", Some("C")),
        ("pub(in crate::x) union D {", Some("D")),
        ("type E<'a> = Vec<&'a str>;", Some("E")),
        ("    type F;", Some("F")),
        ("    type G = u8;", None),
        ("struct_h!(H);", None),
        ("// struct I;", None),
        ("let struct_ = J;", None),
        ("pub use k::K;", None),
    ] {
        assert_eq!(defined(line), name, "{line}");
    }
}

#[test]
fn repeated_names_are_found_with_their_places() {
    let mut sources = source("src/a.rs", "struct A;\nenum B {}\nstruct Args;\n");
    sources.extend(source("src/b.rs", "\npub(crate) trait A {}\nstruct Args;\nstruct C;\n"));
    sources.extend(source("tests/c.rs", "struct B;\n"));
    let exceptions = [("Args", "of commands"), ("C", "once")];
    assert_eq!(repeated(&sources, &exceptions), (4, vec!["A: src/a.rs:1 src/b.rs:2".to_owned()]));
    assert_eq!(repeated(&sources, &[]).1.len(), 2);
    assert_eq!(not_needed(&sources, &exceptions), ["C"]);
}

#[test]
fn constructors_without_a_name_are_found() {
    let text =
        "    pub fn of(a: u8) -> Self {\nfn of<T>() {}\nfn of_text() {}\n// fn of(\nlet of = fn_of();\n";
    let found = unnamed(&source("src/a.rs", text));
    assert_eq!(found, ["src/a.rs:1: pub fn of(a: u8) -> Self {", "src/a.rs:2: fn of<T>() {}"]);
}

#[test]
fn wide_lines_are_found() {
    let (fits, wide) = ("é".repeat(COLUMNS), "é".repeat(COLUMNS + 1));
    let text = format!("{fits}\n{wide}\n//! | {wide} |\n    /// |{wide}\n// {wide}\n");
    let found = too_wide(&source("src/a.rs", &text));
    assert_eq!(found, ["src/a.rs:2: 111 characters", "src/a.rs:5: 114 characters"]);
}
