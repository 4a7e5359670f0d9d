//! Golden vectors of SimHash: votes under given hashes; ties give 1.

use dupflow::core::sketch::simhash::fingerprint;
use serde::Deserialize;

#[derive(Deserialize)]
struct File {
    cases: Vec<Case>,
}

#[derive(Deserialize)]
struct Case {
    features: Vec<Feature>,
    fingerprint: Option<String>,
}

#[derive(Deserialize)]
struct Feature {
    h64: String,
    weight: f64,
}

/// Hexadecimal, since JSON has no integers of 64 bits.
fn parse(hex: &str) -> u64 {
    u64::from_str_radix(hex.strip_prefix("0x").unwrap(), 16).unwrap()
}

#[test]
fn fingerprints_are_as_expected_at_any_scale_and_in_any_order() {
    let file: File = serde_json::from_str(include_str!("simhash.json")).unwrap();
    let mut checked = 0;
    for case in &file.cases {
        // A text without features has no sketch; no sketcher is called for it.
        let Some(expected) = &case.fingerprint else {
            assert!(case.features.is_empty());
            continue;
        };
        for scale in [1.0, 0.001, 3e7] {
            let mut votes: Vec<_> = case.features.iter().map(|f| (parse(&f.h64), f.weight * scale)).collect();
            for _ in 0..2 {
                let (hashes, weights): (Vec<_>, Vec<_>) = votes.iter().copied().unzip();
                assert_eq!(fingerprint(&hashes, &weights), parse(expected), "{votes:?}");
                votes.reverse();
                checked += 1;
            }
        }
    }
    assert_eq!(checked, 6 * (file.cases.len() - 1));
}
