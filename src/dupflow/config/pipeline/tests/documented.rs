//! Documented keys, ranges and defaults are the accepted ones.

use std::collections::BTreeSet;

use super::{MINHASH, Plan, plan};
use crate::config::deployment;
use crate::config::pipeline::keys;
use crate::config::schema::{DEPLOYMENT as KAFKA, comments_in, named_in};
use crate::config::settings::ConfigKey;

const LOCAL: &str = include_str!("../../../../../config/local.toml");

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
