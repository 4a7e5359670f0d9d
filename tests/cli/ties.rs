//! Pairs exactly at the threshold are pairs for every command, and just above it for none.
//!
//! Bug classes: a sum of shares that rounding puts below the threshold; a command that decides by another
//! comparison than the run; a threshold near a similarity that counts as it.

use super::dupflow::Place;
use super::feeds::{lines, upsert, words};

/// Texts of `n` words of which `replaced` differ, and `more` words that only the second has. By counts, as by
/// sets: (n - replaced) of (n + replaced + more). By shares, those of the second are smaller.
fn texts(n: u32, replaced: u32, more: u32) -> [String; 2] {
    [words(0..n), words((0..n - replaced).chain(1000..1000 + replaced + more))]
}

const FEATURES: &str =
    "--set text.shingle=words:1 --set filter.verify=exact --set filter.kind=full --set blocking.kind=scan";

/// The settings of a pipeline, the texts, and their similarity as a fraction.
fn cases() -> Vec<(String, [String; 2], (u32, u32))> {
    let weighted =
        |weights: &str| format!("-p weighted --set text.idf= --set text.weights={weights} {FEATURES}");
    let mut cases = Vec::new();
    for (n, replaced) in [(9, 1), (5, 1), (3, 1), (27, 3), (13, 7), (39, 1)] {
        let at = (n - replaced, n + replaced);
        let all = [format!("-p exact {FEATURES}"), weighted("count"), weighted("tf")];
        cases.extend(all.map(|pipeline| (pipeline, texts(n, replaced, 0), at)));
        // Shares of n among n + more: n / (n + 2 more).
        let more = replaced;
        cases.push((weighted("tf"), texts(n, 0, more), (n, n + 2 * more)));
        let contained =
            "-p contained --set text.shingle=words:1 --set filter.least_words=1 --set blocking.kind=scan";
        cases.push((contained.to_owned(), texts(n, replaced, 0), (n - replaced, n)));
    }
    cases
}

#[test]
fn ties_are_pairs_for_every_command() {
    let place = Place::new();
    for (pipeline, [a, b], (part, whole)) in cases() {
        place.file("feed", upsert("a", &a) + &upsert("b", &b));
        place.file("a", &a);
        place.file("b", &b);
        place.file("here.toml", "[source]\ninputs = [\"feed\"]\n[sink]\nemit = \"pairs\"\n");
        let value = f64::from(part) / f64::from(whole);
        for (threshold, is_pair) in [(value, true), (value + 1e-9, false)] {
            let case = format!("{pipeline} --set threshold={threshold}");
            let of = |arguments: &str| {
                let run = place.run(arguments);
                assert_eq!(run.code, 0, "{run:?}");
                run.out
            };
            let replayed = of(&format!("replay {case} --emit pairs feed"));
            assert_eq!(lines(&replayed).len(), usize::from(is_pair), "{case} {replayed}");
            for pair in lines(&replayed) {
                let found = pair["similarity"].as_f64().unwrap();
                // The shares of containment have nine decimals.
                assert!(found >= threshold - 1e-9 && found < value + 1e-9, "{case} {pair}");
            }
            assert_eq!(of(&format!("run {case} -c here.toml")), replayed, "{case}");
            let compared = of(&format!("compare {case} a b"));
            assert_eq!(!compared.contains("no pair"), is_pair, "{case} {compared}");
            let answer = of(&format!("query {case} --corpus feed --format json a"));
            let ids: Vec<_> = lines(&answer).iter().map(|line| line["id"].clone()).collect();
            assert_eq!(ids.contains(&"b".into()), is_pair, "{case} {answer}");
            let traced = of(&format!("trace {case} --doc a feed"));
            assert_eq!(traced.contains("accepted with similarity"), is_pair, "{case} {traced}");
        }
    }
}
