//! Words with combining marks: every path against a tokenizer written from the rule alone, adversarial texts,
//! and how the other rules treat marks.

use proptest::prelude::*;
use proptest::test_runner::RngSeed;

use crate::hash;
use crate::text::passages::Units;
use crate::text::{
    Featurizer, Invisible, Language, Marks, Normalize, Shingle, Spaceless, Stem, TextPiece, TextRules,
    common_passages, shingles, tokens,
};

/// The class of a character by the rule. Test characters are drawn with their class, so that the reference
/// needs no table.
#[derive(Clone, Copy, Debug, PartialEq)]
enum CharKind {
    /// Alphanumeric, outside the scripts without spaces.
    Word,
    /// Mn or Mc, not alphanumeric, no variation selector.
    Mark,
    Joiner,
    /// Of a script without spaces.
    Spaceless,
    Other,
}

const KINDS: [(CharKind, &str); 5] = [
    (CharKind::Word, "abZ7éÉΣσİßक\u{93f}ம가ب𐐀𝒳"),
    (CharKind::Mark, "\u{301}\u{323}\u{94d}\u{bcd}\u{d4d}\u{591}\u{1b44}\u{1d167}"),
    (CharKind::Joiner, "\u{200c}\u{200d}"),
    (CharKind::Spaceless, "漢かクกໜ\u{20000}"),
    (CharKind::Other, " .-_\u{fe0f}\u{20e3}\u{200b}\u{e0100}😀"),
];

type Drawn = Vec<(CharKind, char)>;

fn drawn() -> impl Strategy<Value = Drawn> {
    let one = |(kind, chars): (CharKind, &str)| {
        let chars: Vec<char> = chars.chars().collect();
        prop::sample::select(chars).prop_map(move |c| (kind, c)).boxed()
    };
    let [word, mark, joiner, spaceless, other] = KINDS.map(one);
    let any = prop_oneof![5 => word.clone(), 4 => mark, 3 => joiner, 1 => spaceless, 1 => other];
    // Stretches of ASCII, which are read in blocks.
    let ascii = prop_oneof![Just(7), Just(8), Just(9), Just(64), Just(65)]
        .prop_map(|count| vec![(CharKind::Word, 'q'); count]);
    let piece = prop_oneof![6 => prop::collection::vec(any, 1..6), 1 => ascii];
    prop::collection::vec(piece, 0..20).prop_map(|pieces| pieces.concat())
}

/// The rule as in `docs/text.md`, one character at a time.
fn expected(text: &Drawn, spaceless: Spaceless, marks: Marks) -> Vec<String> {
    let runs = spaceless == Spaceless::Run;
    let kind = |at: usize| match text.get(at).map(|(kind, _)| *kind) {
        Some(CharKind::Mark | CharKind::Joiner) if marks == Marks::Split => Some(CharKind::Other),
        kind => kind,
    };
    let mut tokens = Vec::new();
    let mut first = 0;
    while let Some(begins) = kind(first) {
        let mut end = first + 1;
        match begins {
            CharKind::Spaceless if !runs => {}
            CharKind::Word | CharKind::Spaceless => loop {
                let is_behind_word = kind(end - 1) != Some(CharKind::Spaceless);
                let goes_on = match kind(end) {
                    Some(CharKind::Word) => true,
                    Some(CharKind::Spaceless) => runs,
                    Some(CharKind::Mark) => is_behind_word,
                    Some(CharKind::Joiner) => {
                        is_behind_word && matches!(kind(end + 1), Some(CharKind::Word | CharKind::Mark))
                    }
                    Some(CharKind::Other) | None => false,
                };
                if !goes_on {
                    break;
                }
                end += 1;
            },
            CharKind::Mark | CharKind::Joiner | CharKind::Other => {
                first += 1;
                continue;
            }
        }
        tokens.push(text[first..end].iter().map(|(_, c)| c).collect::<String>().to_lowercase());
        first = end;
    }
    tokens
}

fn hashes(tokens: &[String]) -> Vec<u64> {
    tokens.iter().map(|token| hash::mix(hash::token(token.as_bytes()))).collect()
}

proptest! {
    #![proptest_config(ProptestConfig {
        cases: 4000,
        rng_seed: RngSeed::Fixed(1),
        ..ProptestConfig::default()
    })]

    #[test]
    fn every_path_cuts_by_the_rule(text in drawn()) {
        let typed: String = text.iter().map(|(_, c)| c).collect();
        for spaceless in [Spaceless::Part, Spaceless::Char, Spaceless::Run] {
            for marks in [Marks::Keep, Marks::Split] {
                let rules = TextRules { spaceless, marks, ..words(1) };
                let expected = expected(&text, spaceless, marks);
                prop_assert_eq!(&tokens(&typed, &rules), &expected, "{:?} {:?}", typed, rules);
                let units = Units::new(&typed, &rules).units;
                let at = units.iter().map(|unit| typed[unit.bytes.clone()].to_lowercase());
                prop_assert!(at.eq(expected.iter().cloned()), "{:?} {:?}", typed, rules);
                let mut fast = Featurizer::new(rules.clone());
                prop_assert_eq!(fast.tokens(&typed), expected.len());
                if spaceless != Spaceless::Part {
                    prop_assert_eq!(fast.features(&typed), hashes(&expected), "{:?} {:?}", typed, rules);
                }
            }
        }
    }
}

/// Words of the text as it was typed.
fn words(size: usize) -> TextRules {
    let (normalize, invisible) = (Normalize::None, Invisible::Keep);
    TextRules { shingle: Shingle::Words(size), normalize, invisible, ..TextRules::default() }
}

/// The test has to end in reasonable time: quadratic work on a million characters would not.
#[test]
fn adversarial_texts_take_linear_time() {
    const LONG: usize = 1_000_000;
    let marks = "\u{301}".repeat(LONG);
    for (text, count) in [
        (marks.clone(), 0),
        (format!("{marks}a"), 1),
        (format!("a{marks}"), 1),
        (format!("a{marks}b \u{200d}c\u{200d}"), 2),
        ("\u{200d}".repeat(LONG), 0),
        (format!("a{}b", "\u{200d}".repeat(LONG)), 2),
        (format!("a{}b", "\u{200d}\u{301}".repeat(LONG)), 1),
        ("Σ\u{200c}\u{200c}".repeat(LONG), LONG),
        ("Σ\u{200c}".repeat(LONG), 1),
        (format!("{marks}Σ").repeat(3), 1),
        ("กΣ\u{301}".repeat(LONG), 2 * LONG),
    ] {
        let start: String = text.chars().take(4).collect();
        let mut fast = Featurizer::new(words(1));
        assert_eq!(fast.tokens(&text), count, "{start:?}");
        assert_eq!(tokens(&text, &words(1)).len(), count, "{start:?}");
    }
    let run = TextRules { spaceless: Spaceless::Run, ..words(1) };
    assert_eq!(Featurizer::new(run).tokens(&"กΣ\u{301}ก\u{301}".repeat(LONG)), LONG);
    for normalize in [Normalize::Nfc, Normalize::Nfkc] {
        let rules = TextRules { normalize, ..words(1) };
        assert_eq!(Featurizer::new(rules).tokens(&format!("a{}", "\u{301}\u{323}".repeat(LONG))), 1);
    }
}

/// Whether a sigma is final depends on its whole word, marks and joiners included, and on nothing before the
/// word.
#[test]
fn sigma_in_a_word_with_marks() {
    for (text, expected) in [
        ("Ο\u{301}Σ", &["ο\u{301}ς"][..]),
        ("ΟΣ\u{301}", &["ος\u{301}"]),
        ("ΟΣ\u{301}Ο", &["οσ\u{301}ο"]),
        ("ΟΣ\u{200d}Ο", &["οσ\u{200d}ο"]),
        ("ΟΣ\u{200d} Ο", &["ος", "ο"]),
        ("Ο\u{200d}\u{200d}Σ", &["ο", "σ"]),
        ("Ο \u{301}Σ", &["ο", "σ"]),
    ] {
        assert_eq!(tokens(text, &words(1)), expected, "{text:?}");
        assert_eq!(Featurizer::new(words(1)).features(text), hashes(&tokens(text, &words(1))), "{text:?}");
    }
}

#[test]
fn marks_with_the_other_rules() {
    // Composed or not, a letter with its accent is one text under NFC, and both are whole words without
    // normalization.
    let nfc = TextRules { normalize: Normalize::Nfc, ..words(1) };
    assert_eq!(tokens("Cafe\u{301}s nai\u{308}ve", &nfc), tokens("Cafés naïve", &nfc));
    assert_eq!(tokens("Cafe\u{301}s", &words(1)), ["cafe\u{301}s"]);
    // A stop word with marks is one word.
    let stop_words = vec!["में".to_owned()];
    assert_eq!(tokens("हिन्दी में लिखें", &TextRules { stop_words, ..words(1) }), ["हिन्दी", "लिखें"]);
    // Stems are of whole words. A word with a character outside the alphabet is not stemmed.
    let stem = Stem::Language(Language::English);
    assert_eq!(tokens("cafe\u{301}s running", &TextRules { stem, ..words(1) }), ["cafe\u{301}s", "run"]);
    // A mark is one character of a shingle of characters.
    let chars = TextRules { shingle: Shingle::Chars(3), ..words(1) };
    assert_eq!(shingles("e\u{301}t, u", &chars), ["e\u{301}t", "\u{301}t ", "t u"]);
    // Marks in a page's text are kept.
    let page = "<!doctype html><p>Cafe&#x301;s and <b>cafe</b>&#x301;s</p>";
    assert_eq!(tokens(page, &words(1)), ["cafe\u{301}s", "and", "cafe\u{301}s"]);
}

#[test]
fn passages_hold_whole_words() {
    let found = common_passages("एक हिन्दी पाठ, x", "y हिन्दी पाठ एक", &words(2));
    let shown = |pieces: &[TextPiece<'_>]| -> Vec<String> {
        let in_common = pieces.iter().filter(|piece| piece.passage.is_some());
        in_common.map(|piece| piece.text.to_owned()).collect()
    };
    assert_eq!([shown(&found.a), shown(&found.b)], [["हिन्दी पाठ"], ["हिन्दी पाठ"]]);
    let joined = common_passages("می\u{200c}خواهم بروم a", "b می\u{200c}خواهم بروم", &words(2));
    assert_eq!([shown(&joined.a), shown(&joined.b)], [["می\u{200c}خواهم بروم"], ["می\u{200c}خواهم بروم"]]);
}

/// Both rules give the same features to letters without marks.
#[test]
fn texts_without_marks_are_the_same_under_both_rules() {
    for shingle in [Shingle::Words(1), Shingle::Words(3), Shingle::Chars(5)] {
        let [mut keep, mut split] = [Marks::Keep, Marks::Split]
            .map(|marks| Featurizer::new(TextRules { shingle, marks, ..TextRules::default() }));
        for text in [
            "",
            "one",
            "Ünïcode ΑΣ Straße ﬁn مرحبا 한국어 İstanbul 🎉\u{fe0f} 1\u{fe0f}\u{20e3}",
            "漢字かな ภาษาไทย ไม่มี",
        ] {
            assert_eq!(keep.features(text), split.features(text), "{text:?}");
        }
        assert_ne!(keep.features("नमस्ते a b c"), split.features("नमस्ते a b c"));
    }
}
