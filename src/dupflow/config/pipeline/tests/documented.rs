//! Documented keys, ranges and defaults are the accepted ones.

use std::collections::{BTreeMap, BTreeSet};

use super::{MINHASH, Plan, plan};
use crate::config::deployment;
use crate::config::pipeline::keys;
use crate::config::settings::ConfigKey;

const LOCAL: &str = include_str!("../../../../../config/local.toml");
const KAFKA: &str = include_str!("../../../../../config/kafka.toml");

/// The keys that a commented file names: those that it sets, and those in comments of the form `# key =
/// value`.
fn named_in(text: &str) -> BTreeSet<String> {
    let mut table = String::new();
    let mut keys = BTreeSet::new();
    for line in text.lines() {
        if let Some(name) = line.strip_prefix("# [[").and_then(|rest| rest.strip_suffix("]]")) {
            table = format!("{name}.#.");
        } else if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            table = format!("{name}.");
        }
        let setting = line.strip_prefix("# ").unwrap_or(line).split_once(" = ");
        if let Some((key, _)) = setting
            && !key.contains([' ', ','])
        {
            keys.insert(format!("{table}{key}"));
        }
    }
    keys
}

#[test]
fn documented_keys_are_the_accepted_keys() {
    fn accepted<K: ConfigKey>(keys: &[&[K]]) -> BTreeSet<String> {
        keys.iter().copied().flatten().map(|key| key.named().to_owned()).collect()
    }
    assert_eq!(named_in(MINHASH), accepted(&[keys::KEYS]));
    let all = accepted(deployment::KEYS);
    // The keys in `[kafka.settings]` are examples.
    let named = named_in(KAFKA).into_iter().filter(|key| !key.starts_with("kafka.settings."));
    assert_eq!(named.chain(["kafka.settings".to_owned()]).collect::<BTreeSet<_>>(), all);
    assert!(named_in(LOCAL).is_subset(&all));
}

/// For each key of a commented file, the comment above it; consecutive keys share one comment.
fn comments_in(text: &str) -> BTreeMap<String, String> {
    let (mut table, mut comment, mut after_key) = (String::new(), String::new(), false);
    let mut comments = BTreeMap::new();
    for line in text.lines() {
        let keys = named_in(line);
        if let Some(name) = line.strip_prefix('[').and_then(|rest| rest.strip_suffix(']')) {
            table = format!("{name}.");
            comment.clear();
        } else if let Some(key) = keys.first() {
            comments.insert(format!("{table}{key}"), comment.clone());
            after_key = true;
        } else {
            if std::mem::take(&mut after_key) {
                comment.clear();
            }
            comment = comment + line.trim_start_matches('#') + " ";
        }
    }
    comments
}

#[test]
fn documented_ranges_are_the_accepted_ranges() {
    let comments = comments_in(MINHASH);
    let mut named = 0;
    for key in keys::KEYS {
        let comment = &comments[key.named()];
        for bound in key.bounds() {
            let is_apart = |(at, _): (usize, &str)| {
                let around = [comment[..at].chars().next_back(), comment[at + bound.len()..].chars().next()];
                !around.into_iter().flatten().any(|c| c.is_ascii_digit())
            };
            assert!(
                comment.match_indices(&bound).any(is_apart),
                "{}: {bound} is not in: {comment}",
                key.name()
            );
            named += 1;
        }
    }
    assert!(named > 80, "{named}");
}

#[test]
fn defaults_are_those_of_the_commented_file() {
    let (written, default) = (plan(MINHASH, &[]).unwrap(), plan("", &[]).unwrap());
    // The file sets every key.
    assert!(written.settings.len() > 20 && default.settings.is_empty(), "{:?}", written.settings);
    let written = Plan { settings: default.settings.clone(), ..written };
    assert_eq!(format!("{written:?}"), format!("{default:?}"));
}
