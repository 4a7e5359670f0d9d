//! The commands and messages in the runbook.

use std::fs;

use super::program;
use super::root;

fn page() -> String {
    fs::read_to_string(root().join("docs/runbook.md")).unwrap()
}

#[test]
fn its_commands_are_those_of_the_program() {
    let page = page();
    let blocks = page.split("```sh\n").skip(1).map(|rest| rest.split("```").next().unwrap());
    let commands: Vec<Vec<String>> = blocks
        .flat_map(str::lines)
        .filter_map(|line| line.strip_prefix("dupflow "))
        .map(|line| line.split(' ').map(str::to_owned).collect())
        .collect();
    assert!(commands.len() > 5, "{commands:?}");
    commands.iter().for_each(|command| program::check_command(command));
}

/// All sources with their strings as printed: strings over several lines are joined, quotes unescaped, and
/// arguments replaced by "…".
fn sources() -> String {
    let mut folders = vec![root().join("src")];
    let mut code = String::new();
    while let Some(folder) = folders.pop() {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() { folders.push(path) } else { code += &fs::read_to_string(path).unwrap() }
        }
    }
    let mut lines = code.split("\\\n");
    let begin = lines.next().unwrap().to_owned();
    let joined = lines.fold(begin, |joined, line| joined + line.trim_start());
    let mut parts = joined.split('{');
    let first = parts.next().unwrap().to_owned();
    let is_filled = |name: &str| name.chars().all(|c| c.is_alphanumeric() || "_:.?#".contains(c));
    let filled = parts.fold(first, |filled, part| match part.split_once('}') {
        Some((name, rest)) if is_filled(name) => filled + "…" + rest,
        _ => filled + "{" + part,
    });
    filled.replace("\\\"", "\"")
}

#[test]
fn the_messages_that_it_explains_are_those_of_the_program() {
    let (page, sources) = (page(), sources());
    let table = page.split("\n## What it says when it ends\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let rows = table.lines().filter_map(|line| line.strip_prefix("| `")?.split('`').next());
    let messages: Vec<&str> = rows.collect();
    assert!(messages.len() > 20, "{messages:?}");
    let is_said = |message: &&str| sources.contains(message.trim_matches('…').trim());
    let unsaid: Vec<&str> = messages.iter().filter(|message| !is_said(message)).copied().collect();
    assert_eq!(unsaid, [""; 0], "messages that nothing says");
}
