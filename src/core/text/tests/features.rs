//! The fast path against the plain one, and the golden values of the scheme.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::doc::FIELD_SEPARATOR;
use crate::hash::{self, TokenHash, mix};
use crate::text::{
    Featurizer, Field, Fold, Folds, Html, Invisible, Language, Marks, Normalize, Shingle, Spaceless, Stem,
    TextRules, Weights, plain, shingles, tokens,
};

/// Features from strings: the formulas of `shingle` applied to the tokens and shingles of `plain`.
fn reference(text: &str, rules: &TextRules) -> Vec<u64> {
    let (Shingle::Words(size) | Shingle::Chars(size)) = rules.shingle;
    if !rules.fields.is_empty() {
        let of_text = TextRules { fields: Vec::new(), ..rules.clone() };
        return text
            .splitn(1 + rules.fields.len(), FIELD_SEPARATOR)
            .flat_map(|part| reference(part, &of_text))
            .collect();
    }
    match rules.shingle {
        Shingle::Chars(_) => {
            shingles(text, rules).iter().map(|s| mix(rules.hash.token(s.as_bytes()))).collect()
        }
        Shingle::Words(_) => {
            let tokens = tokens(text, rules);
            let powers = |window: &[String]| {
                let next = |sum: u64, token: u64| sum.wrapping_mul(hash::PI[5]).wrapping_add(token);
                window.iter().map(|token| rules.hash.token(token.as_bytes())).fold(0, next)
            };
            let windows = plain::windows(&tokens, size, rules.spaceless);
            windows.map(|window| mix(powers(window))).collect()
        }
    }
}

fn rules() -> impl Strategy<Value = TextRules> {
    let shingle = prop_oneof![(1_usize..8).prop_map(Shingle::Words), (1_usize..40).prop_map(Shingle::Chars)];
    let spaceless = prop_oneof![
        3 => Just(Spaceless::Part),
        2 => Just(Spaceless::Bag),
        1 => Just(Spaceless::Char),
        1 => Just(Spaceless::Run),
    ];
    let normalize = prop_oneof![Just(Normalize::None), Just(Normalize::Nfc), Just(Normalize::Nfkc)];
    let stop_words = prop_oneof![Just(""), Just("a the ος 中 é")];
    let fields = prop_oneof![3 => Just(""), 1 => Just("a b c")];
    let stem = prop_oneof![2 => Just(Stem::None), 1 => prop::sample::select(Stem::ALL)];
    let marks = prop_oneof![3 => Just(Marks::Keep), 1 => Just(Marks::Split)];
    let invisible = prop_oneof![3 => Just(Invisible::Ignore), 1 => Just(Invisible::Keep)];
    let folds = prop_oneof![
        2 => Just(Folds::default()),
        1 => prop::sample::subsequence(Fold::ALL.to_vec(), 1..=5).prop_map(Folds::new),
    ];
    let hash = prop_oneof![2 => Just(TokenHash::default()), 1 => Just(TokenHash::keyed([5, 8], 3))];
    (shingle, (spaceless, marks), (normalize, invisible, folds, hash), stop_words, fields, stem).prop_map(
        |(shingle, (spaceless, marks), (normalize, invisible, folds, hash), stop_words, fields, stem)| {
            TextRules {
                given: None,
                html: Html::Text,
                shingle,
                spaceless,
                marks,
                normalize,
                invisible,
                folds,
                hash,
                stop_words: stop_words.split_whitespace().map(str::to_owned).collect(),
                stem: if matches!(shingle, Shingle::Words(_)) { stem } else { Stem::None },
                fields: fields
                    .split_whitespace()
                    .map(|name| Field { name: name.to_owned(), weight: 2 })
                    .collect(),
                weights: Weights::Unit,
            }
        },
    )
}

/// Texts with edge cases: lengths around 8, 16 and 64 bytes, all scripts, case mappings that depend on
/// context or change the length.
fn text() -> impl Strategy<Value = String> {
    let separators = prop_oneof![
        "[ -/]{0,3}",
        "\u{1e}",
        " {40,70}",
        "[\u{300}-\u{308}\u{ad}\u{200b}-\u{200f}—]",
        "\\PC{1,2}"
    ];
    let piece = prop_oneof![
        4 => "[a-zA-Z0-9]{1,9}",
        2 => prop_oneof![
            "[aZ]{7}", "[aZ]{8}", "[aZ]{9}", "[aZ]{15,17}", "[aZ]{31,33}", "[aZ]{60,70}", "[aZ]{120,200}",
        ],
        1 => "(the|The|a|É|é|e\u{301}|ος|中|ke\u{ad}pt|یک|כּ|\u{fb2a}|ё)",
        1 => "[ΟΣσςaAʰ'\u{301}\u{200d}ก]{1,9}",
        1 => "[İıßẞŒǅﬁΐȺȾ]{1,4}",
        1 => "[А-яЁё]{1,12}",
        1 => "[ऀ-ॿ\u{200c}\u{200d}]{1,6}",
        1 => "[一-龥ぁ-んァ-ヶーก-๛ກ-ໆក-៩က-႟ｦ-ﾟー]{1,20}",
        1 => "[一-丂กー]{1,9}",
        1 => "[\u{10400}-\u{1044f}\u{20000}-\u{20010}\u{1f600}-\u{1f610}𝒳]{1,3}",
        1 => "\\PC{0,8}",
    ];
    let biased = prop::collection::vec((piece, separators), 0..24)
        .prop_map(|pieces| pieces.into_iter().flat_map(|(first, after)| [first, after]).collect());
    prop_oneof![4 => biased, 1 => any::<String>()]
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 2000,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn fast_equals_plain(rules in rules(), texts in prop::collection::vec(text(), 1..4)) {
        let mut featurizer = Featurizer::new(rules.clone());
        for text in &texts {
            prop_assert_eq!(featurizer.features(text), reference(text, &rules), "{:?}", text);
            prop_assert_eq!(featurizer.features(text).len(), shingles(text, &rules).len());
            prop_assert_eq!(featurizer.tokens(text), tokens(text, &rules).len());
        }
    }
}

#[test]
fn every_length_of_text_and_token() {
    let mut featurizer = Featurizer::new(TextRules::default());
    for letter in ["a", "É", "ж", "中", "𐐀"] {
        for len in 0..150 {
            for text in [
                letter.repeat(len),
                format!("{}{letter}", "x ".repeat(len)),
                format!("{letter} ").repeat(len),
            ] {
                assert_eq!(featurizer.features(&text), reference(&text, &TextRules::default()), "{text:?}");
            }
        }
    }
}

#[test]
fn every_character() {
    let rules = TextRules { shingle: Shingle::Words(1), ..TextRules::default() };
    let mut featurizer = Featurizer::new(rules.clone());
    for c in '\0'..=char::MAX {
        let text = format!("a{c}b{c}");
        assert_eq!(featurizer.features(&text), reference(&text, &rules), "{c:?}");
    }
}

#[test]
fn text_of_sigmas_alone() {
    let text = "Σ".repeat(100_000);
    let rules = TextRules::default();
    assert_eq!(Featurizer::new(rules.clone()).features(&text), reference(&text, &rules));
}

/// A changed value is a new scheme; never change these expectations.
#[test]
fn golden_features() {
    let text = "Naïve ΟΔΟΣ, 漢字: İ; incomprehensibilities";
    let features = |shingle| {
        Featurizer::new(TextRules { shingle, spaceless: Spaceless::Char, ..TextRules::default() })
            .features(text)
            .to_vec()
    };
    assert_eq!(
        features(Shingle::Words(1)),
        [
            0x1fb3_4f3e_2bfa_0e95,
            0x2a01_e64d_8de8_84c7,
            0x934d_8e1d_924a_6837,
            0x2bb7_a518_a520_6eff,
            0x5a1c_c692_a1db_e0a5,
            0x0bc5_1034_57e0_974e
        ]
    );
    assert_eq!(
        features(Shingle::Words(3)),
        [0xfef9_6d75_7afe_1acf, 0xe9c7_617b_c63d_c451, 0x308f_bade_1042_645a, 0xfdad_3b17_325d_5125]
    );
    assert_eq!(features(Shingle::Words(5)), [0xdbd4_b532_3917_7fca, 0x8d09_61c5_fdea_20a7]);
    assert_eq!(features(Shingle::Words(7)), [0x7728_a3e2_d79c_feab]);
    assert_eq!(features(Shingle::Chars(40)), [0x8019_9f94_7ca1_3030]);
}

/// As the golden features above, for texts with parts of words.
#[test]
fn golden_features_of_parts() {
    let text = "漢字かな交じり文 and ภาษาไทย, İ";
    let features =
        |shingle| Featurizer::new(TextRules { shingle, ..TextRules::default() }).features(text).to_vec();
    assert_eq!(
        features(Shingle::Words(3)),
        [
            15_722_273_989_555_425_388,
            2_748_330_755_782_766_858,
            9_677_015_076_713_890_558,
            15_362_142_525_974_085_230,
            6_241_937_275_802_788_563,
            1_377_253_870_390_935_783,
            4_033_786_626_708_613_645,
            6_952_374_308_082_275_542,
            16_279_197_935_115_944_465
        ]
    );
    assert_eq!(features(Shingle::Words(9)), features(Shingle::Words(100)), "all tokens");
    assert_eq!(features(Shingle::Words(100)).len(), 1);
}

/// Texts without characters of scripts without spaces have the same features under every `spaceless` rule.
#[test]
fn texts_without_spaceless_scripts_ignore_the_rule() {
    for shingle in
        [Shingle::Words(1), Shingle::Words(2), Shingle::Words(3), Shingle::Words(5), Shingle::Chars(5)]
    {
        let [mut part, mut bag, mut char, mut run] =
            [Spaceless::Part, Spaceless::Bag, Spaceless::Char, Spaceless::Run]
                .map(|spaceless| Featurizer::new(TextRules { shingle, spaceless, ..TextRules::default() }));
        for text in ["", "one", "Ünïcode ΑΣ Straße ﬁn مرحبا नमस्ते 한국어 İstanbul 🎉 а б", "a b c d e f g h"]
        {
            assert_eq!(part.features(text), char.features(text));
            assert_eq!(part.features(text), run.features(text));
            assert_eq!(part.features(text), bag.features(text));
        }
        // A text with parts does not change the features of the next text.
        assert!(!part.features("漢字 and 漢字かな").is_empty());
        assert_eq!(part.features("a b c d"), char.features("a b c d"));
    }
}

/// Stop words that are parts of words are removed before windows are measured.
#[test]
fn stop_words_that_are_parts() {
    let rules = TextRules { stop_words: vec!["の".to_owned(), "的".to_owned()], ..TextRules::default() };
    let mut featurizer = Featurizer::new(rules);
    let plain = featurizer.features("a b c d").to_vec();
    assert_eq!(featurizer.features("a の b 的 c d の"), plain);
    assert_eq!(featurizer.features("の 的"), [0; 0]);
}

/// Stop words are compared before stemming; only the other tokens are stemmed.
#[test]
fn stems_after_stop_words() {
    let stem = Stem::Language(Language::English);
    let rules = TextRules { stem, stop_words: vec!["connect".to_owned()], ..TextRules::default() };
    assert_eq!(tokens("Connections connect 漢 it's 2nds", &rules), ["connect", "漢", "it", "s", "2nds"]);
    let mut featurizer = Featurizer::new(rules);
    let features = featurizer.features("connections of networks").to_vec();
    assert_eq!(features, featurizer.features("connected connect OF network"));
    assert_eq!(features, Featurizer::new(TextRules::default()).features("connect of network"));
}

fn with_fields(shingle: Shingle, weights: &[u32]) -> TextRules {
    let field = |(n, &weight)| Field { name: format!("f{n}"), weight };
    TextRules { shingle, fields: weights.iter().enumerate().map(field).collect(), ..TextRules::default() }
}

#[test]
fn shingles_do_not_cross_fields() {
    let rules = with_fields(Shingle::Words(2), &[3, 1]);
    let expected = ["one two", "two three", "four", "five six"];
    assert_eq!(shingles("one two three\u{1e}four\u{1e}five six", &rules), expected);
    let mut plain = Featurizer::new(TextRules { shingle: Shingle::Words(2), ..TextRules::default() });
    let parts = ["one two three", "four", "five six"].map(|part| plain.features(part).to_vec()).concat();
    let mut featurizer = Featurizer::new(rules.clone());
    assert_eq!(featurizer.features("one two three\u{1e}four\u{1e}five six"), parts);
    // An empty or missing part has no features, and no features of the previous text remain.
    assert_eq!(featurizer.features("\u{1e}four\u{1e}"), plain.features("four"));
    assert_eq!(featurizer.features("one two"), plain.features("one two"));
    assert_eq!(featurizer.features("\u{1e}?\u{1e}"), [0; 0]);
    // If the rules have no fields, the separator separates tokens like any other non-alphanumeric character.
    let together = plain.features("one two").to_vec();
    assert_eq!(plain.features("one\u{1e}two"), together);
    // More separators than fields: the last field has the rest.
    assert_eq!(shingles("a\u{1e}b\u{1e}c\u{1e}d", &rules), ["a", "b", "c d"]);
}

#[test]
fn field_weights_multiply_counts() {
    let rules = with_fields(Shingle::Words(1), &[3, 100]);
    let mut featurizer = Featurizer::new(rules);
    let mut count_of = |text: &str, word: &str| {
        let feature = featurizer.features(word)[0];
        let terms = featurizer.terms(text);
        let at = terms.ids.iter().position(|id| *id == feature).unwrap();
        (terms.counts[at], terms.total())
    };
    let text = "a b a\u{1e}b c\u{1e}d a";
    assert_eq!(count_of(text, "a"), (102, 209));
    assert_eq!(count_of(text, "b"), (4, 209));
    assert_eq!(count_of(text, "c"), (3, 209));
    assert_eq!(count_of(text, "d"), (100, 209));
}

#[test]
fn words_are_counted_by_their_weight() {
    for shingle in [Shingle::Words(1), Shingle::Words(5), Shingle::Words(20), Shingle::Chars(4)] {
        let stop_words = vec!["the".to_owned()];
        let mut featurizer = Featurizer::new(TextRules { stop_words, ..with_fields(shingle, &[1]) });
        let mut words = |text: &str| featurizer.measured(text).words;
        // Han characters are half a word each, Thai letters a sixth; the sum is rounded down.
        let texts =
            ["", "the", "one, two; the three", "one two\u{1e}three", "漢字漢字漢", "漢 one", "กขคงจฉชซ"];
        assert_eq!(texts.map(&mut words), [0, 0, 3, 3, 2, 1, 1], "{shingle:?}");
    }
}

#[test]
fn order_matters_and_repeats_stay() {
    let mut featurizer = Featurizer::new(TextRules { shingle: Shingle::Words(2), ..TextRules::default() });
    let features = featurizer.features("a b a b").to_vec();
    assert_eq!(features.len(), 3);
    assert_eq!(features[0], features[2]);
    assert_ne!(features[0], features[1]);
}

#[test]
#[should_panic(expected = "at least")]
fn shingles_of_nothing() {
    let _ = Featurizer::new(TextRules { shingle: Shingle::Words(0), ..TextRules::default() });
}
