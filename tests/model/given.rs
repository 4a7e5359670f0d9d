//! The law for features and fingerprints that records bring, and fingerprints against brute force.
//!
//! Bug classes: a list that is tokenized as a text; weights that are lost, or count twice; bits of a
//! fingerprint in another order in one of its words; a pair at the distance that is missed.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use dupflow::config::Plan;
use dupflow::core::doc::DocId;
use dupflow::core::pair::{DocPair, Evidence, Similarity};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::data::Event;
use crate::history::{check, cut, ids, runs, sizes};
use crate::law::{Corpus, assert_law};
use crate::pipelines::plan;

/// A list of features of few names and numbers, with and without weights; or no document.
fn list(weighted: bool) -> impl Strategy<Value = Option<String>> {
    let feature =
        prop_oneof![(0_u64..12).prop_map(|n| n.to_string()), (0_u64..12).prop_map(|n| format!("\"ไท {n}\""))];
    let weighed = (feature, 0_u32..4).prop_map(move |(name, weight)| match weight {
        1.. if weighted => format!("[{name}, {weight}]"),
        _ => name,
    });
    let all = vec(weighed, 0..12).prop_map(|all| Some(format!("[{}]", all.join(","))));
    prop_oneof![7 => all, 1 => Just(None)]
}

/// One of two fingerprints with a few bits flipped; or no document.
fn fingerprint(bits: usize) -> impl Strategy<Value = Option<String>> {
    let near = (0_u64..2, vec(0..bits, 0..6)).prop_map(move |(which, flipped)| {
        let mut words: Vec<u64> =
            (1..=bits as u64 / 64).map(|n| (which + n).wrapping_mul(0x9e37_79b9_7f4a_7c15)).collect();
        flipped.into_iter().for_each(|bit| words[bit / 64] ^= 1 << (bit % 64));
        words.iter().map(|word| format!("{word:016X}")).collect::<String>()
    });
    prop_oneof![7 => near.prop_map(Some), 1 => Just(None)]
}

fn events(text: impl Strategy<Value = Option<String>>) -> impl Strategy<Value = Vec<Event>> {
    vec((ids(), text), 0..80)
}

fn of_fingerprints(bits: usize, blocking: &str) -> Plan {
    let text = format!(
        "output = {{ expand_limit = 3 }}\ntext = {{ features = \"given\" }}\n\
        sketch = {{ kind = \"fingerprint\", size = {bits} }}\n\
        filter = {{ kind = \"hamming\" }}\nblocking = {{ {blocking} }}"
    );
    Plan::parse("test", &text, Path::new(""), &[]).unwrap_or_else(|error| panic!("{error}"))
}

#[test]
fn lists_of_features_hold() {
    for (weighted, settings) in [
        (false, "text = { features = \"given\" }"),
        (false, "text = { features = \"given\", shingle = \"words:2\" }"),
        (true, "text = { features = \"given\", weights = \"count\" }\nsketch = { kind = \"dart\" }"),
        (
            true,
            "text = { features = \"given\", weights = \"count\" }\nsketch = { kind = \"icws\" }\n\
            filter = { kind = \"full\", verify = \"exact\" }\nblocking = { kind = \"scan\" }",
        ),
        (
            true,
            "text = { features = \"given\", weights = \"count\" }\nsketch = { kind = \"simhash\" }\n\
            filter = { kind = \"full\" }\nblocking = { kind = \"scan\" }",
        ),
    ] {
        let plan = plan(settings);
        check(30, (events(list(weighted)), sizes(), runs()), |(events, sizes, run)| {
            assert_law(&dupflow::pipeline::stages(&plan, false), &cut(&events, &sizes), run);
        });
    }
}

/// The pairs are all within the distance, whatever the blocking and the size.
#[test]
fn fingerprints_hold_and_equal_brute_force() {
    const DISTANCE: u32 = 4;
    for (bits, blocking) in [
        (64, "kind = \"multi-index\""),
        (64, "kind = \"permuted\""),
        (128, "kind = \"permuted\", tables = 15"),
        (192, "kind = \"groups\""),
        (256, "kind = \"multi-index\""),
        (256, "kind = \"scan\""),
    ] {
        let plan = of_fingerprints(bits, &format!("{blocking}, distance = {DISTANCE}"));
        let stages = dupflow::pipeline::stages(&plan, false);
        check(30, (events(fingerprint(bits)), sizes(), runs()), |(events, sizes, run)| {
            assert_law(&stages, &cut(&events, &sizes), run);
            let mut corpus = Corpus::new(&stages);
            corpus.apply(&events);
            let alive: BTreeMap<DocId, Option<String>> = events.into_iter().collect();
            let alive: Vec<(&DocId, Vec<u64>)> =
                alive.iter().filter_map(|(id, text)| Some((id, words(text.as_ref()?)))).collect();
            // More than three copies are a star, and its centre stands for them all.
            if alive.iter().any(|(_, of)| alive.iter().filter(|(_, other)| other == of).count() > 3) {
                return;
            }
            let mut expected = BTreeSet::new();
            for (i, (b, of_b)) in alive.iter().enumerate() {
                for (a, of_a) in &alive[..i] {
                    let differ: u32 = of_a.iter().zip(of_b).map(|(x, y)| (x ^ y).count_ones()).sum();
                    if differ <= DISTANCE {
                        let similarity = Similarity::clamped(1.0 - f64::from(differ) / bits as f64);
                        expected.extend(DocPair::new(
                            (*a).clone(),
                            (*b).clone(),
                            similarity,
                            Evidence::default(),
                        ));
                    }
                }
            }
            assert_eq!(corpus.pairs(&stages), expected);
        });
    }
}

fn words(digits: &str) -> Vec<u64> {
    let word = |part: &[u8]| u64::from_str_radix(std::str::from_utf8(part).unwrap(), 16).unwrap();
    digits.as_bytes().chunks(16).map(word).collect()
}
