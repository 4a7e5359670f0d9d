//! Golden vectors of tokens and of exact similarities without parts of words; of words with marks; and of
//! shingles under the default rule for scripts without spaces.

use std::collections::{BTreeMap, BTreeSet};

use dupflow::core::text::{
    Featurizer, Invisible, Normalize, Shingle, Spaceless, TextRules, shingles, tokens,
};
use serde::Deserialize;

/// The vectors are of texts as they were typed.
fn typed() -> TextRules {
    TextRules { normalize: Normalize::None, invisible: Invisible::Keep, ..TextRules::default() }
}

fn rules(shingle: Shingle) -> TextRules {
    TextRules { shingle, spaceless: Spaceless::Run, ..typed() }
}

mod token_rule {
    use super::*;

    #[derive(Deserialize)]
    struct File {
        cases: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        text: String,
        tokens: Vec<String>,
    }

    #[test]
    fn tokens_are_as_expected() {
        let file: File = serde_json::from_str(include_str!("tokens.json")).unwrap();
        let mut featurizer = Featurizer::new(rules(Shingle::Words(1)));
        assert!(file.cases.len() >= 15);
        for case in &file.cases {
            assert_eq!(tokens(&case.text, &rules(Shingle::Words(3))), case.tokens, "{:?}", case.text);
            // The same tokens between single spaces must give the fast path the same features.
            let features = featurizer.features(&case.text).to_vec();
            assert_eq!(features.len(), case.tokens.len());
            if !case.text.contains('İ') {
                assert_eq!(featurizer.features(&case.tokens.join(" ")), features, "{:?}", case.text);
            }
        }
    }
}

/// Words keep their marks.
mod marks {
    use super::*;

    #[derive(Deserialize)]
    struct File {
        cases: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        text: String,
        tokens: Vec<String>,
    }

    #[test]
    fn marks_continue_words() {
        let file: File = serde_json::from_str(include_str!("marks.json")).unwrap();
        assert!(file.cases.len() >= 20);
        let mut featurizer = Featurizer::new(typed());
        for case in &file.cases {
            assert_eq!(tokens(&case.text, &typed()), case.tokens, "{:?}", case.text);
            assert_eq!(featurizer.tokens(&case.text), case.tokens.len(), "{:?}", case.text);
        }
    }
}

/// Characters of scripts without spaces as parts of words.
mod spaceless_part {
    use super::*;

    #[derive(Deserialize)]
    struct File {
        cases: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        text: String,
        /// Tokens with their weights.
        tokens: Vec<(String, String)>,
        /// By the size of a shingle: its shingles, each as its tokens.
        shingles: BTreeMap<String, Vec<Vec<String>>>,
    }

    #[test]
    fn shingles_have_the_given_weight() {
        let file: File = serde_json::from_str(include_str!("spaceless_part.json")).unwrap();
        assert!(file.cases.len() >= 10);
        for case in &file.cases {
            let default = TextRules::default();
            let parts: Vec<_> = case.tokens.iter().map(|(token, _)| token.as_str()).collect();
            assert_eq!(tokens(&case.text, &default), parts, "{:?}", case.text);
            for (size, lists) in &case.shingles {
                let rules = TextRules { shingle: Shingle::Words(size.parse().unwrap()), ..default.clone() };
                let expected: Vec<_> = lists.iter().map(|list| list.join(" ")).collect();
                assert_eq!(shingles(&case.text, &rules), expected, "{size} words of {:?}", case.text);
                let mut featurizer = Featurizer::new(rules);
                let features = featurizer.features(&case.text).to_vec();
                assert_eq!(features.len(), expected.len(), "{:?}", case.text);
                // A shingle's feature depends on its tokens only, not on its position.
                for (shingle, feature) in expected.iter().zip(&features) {
                    assert_eq!(featurizer.features(shingle)[0], *feature, "{shingle:?} of {:?}", case.text);
                }
            }
        }
    }
}

mod similarity {
    use super::*;

    #[derive(Deserialize)]
    struct File {
        cases: Vec<Case>,
    }

    /// The measures of sets; measures of weights are checked in `weights`.
    #[derive(Deserialize)]
    struct Case {
        a: String,
        b: String,
        jaccard_tokens: f64,
        jaccard_word_shingles_2: f64,
        jaccard_word_shingles_3: f64,
        jaccard_char_shingles_5: f64,
    }

    /// |A ∩ B| / |A ∪ B|; 1 for two empty sets.
    fn jaccard<T: Ord>(a: &BTreeSet<T>, b: &BTreeSet<T>) -> f64 {
        let all = a.union(b).count();
        if all == 0 { 1.0 } else { a.intersection(b).count() as f64 / all as f64 }
    }

    #[test]
    fn jaccard_of_strings_and_of_features() {
        let file: File = serde_json::from_str(include_str!("pair_similarities.json")).unwrap();
        assert!(!file.cases.is_empty());
        for case in &file.cases {
            for (shingle, expected) in [
                (Shingle::Words(1), case.jaccard_tokens),
                (Shingle::Words(2), case.jaccard_word_shingles_2),
                (Shingle::Words(3), case.jaccard_word_shingles_3),
                (Shingle::Chars(5), case.jaccard_char_shingles_5),
            ] {
                let rules = rules(shingle);
                let strings = |text: &str| BTreeSet::from_iter(shingles(text, &rules));
                let mut featurizer = Featurizer::new(rules.clone());
                let mut features =
                    |text: &str| BTreeSet::from_iter(featurizer.features(text).iter().copied());
                let by_strings = jaccard(&strings(&case.a), &strings(&case.b));
                let by_features = jaccard(&features(&case.a), &features(&case.b));
                for found in [by_strings, by_features] {
                    assert!(
                        (found - expected).abs() <= 1e-12,
                        "{shingle:?} {:?} {:?}: {found}",
                        case.a,
                        case.b
                    );
                }
            }
        }
    }
}

mod triplets {
    use super::*;

    #[derive(Deserialize)]
    struct File {
        cases: Vec<Case>,
    }

    #[derive(Deserialize)]
    struct Case {
        sets: Vec<Vec<u64>>,
        triplets: Vec<Triplet>,
    }

    #[derive(Deserialize)]
    struct Triplet {
        i: usize,
        j: usize,
        common: usize,
        resemblance: f64,
    }

    #[test]
    fn shared_shingles_are_counted() {
        let file: File = serde_json::from_str(include_str!("shared_shingle_triplets.json")).unwrap();
        assert!(file.cases.iter().any(|case| !case.triplets.is_empty()));
        for case in &file.cases {
            let found = dupflow::core::oracle::shared(&case.sets);
            assert_eq!(found.len(), case.triplets.len());
            for (triplet, expected) in found.iter().zip(&case.triplets) {
                assert_eq!((triplet.a, triplet.b, triplet.common), (expected.i, expected.j, expected.common));
                assert!((triplet.resemblance - expected.resemblance).abs() < 1e-12);
            }
        }
    }
}
