//! Features that a record brings itself.
//!
//! The text of a document is then one of these:
//!
//! - a JSON list of features, each a string or a whole number from 0 to 2^64 - 1, or a list of a feature and
//!   its weight, a whole number from 1 to 2^32 - 1: `["if", 7, ["for", 3]]`;
//! - features between white space, where the text does not begin with `[`: `if for for`;
//! - for a [fingerprint](Given::Fingerprint), its hexadecimal digits, the highest bit first, or a JSON list
//!   of whole numbers of 64 bits each, the first 64 bits first.
//!
//! A feature is compared byte by byte: nothing is lowercased, normalized or cut. A number is the same feature
//! as the string of its decimal digits. Features are the tokens of [shingles](super::Shingle), of one token
//! unless the rules say otherwise; a weight is how often the feature occurs, and only single tokens have one.

use std::borrow::Cow;
use std::ops::Range;

use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// What a record brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Given {
    /// Features; with weights, if each is a shingle of its own.
    Features {
        /// Whether a feature may have a weight.
        weighted: bool,
    },
    /// A fingerprint of this many bits, a multiple of 64 up to 256.
    Fingerprint(usize),
}

/// A feature of a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct GivenFeature<'t> {
    /// The feature.
    pub(super) name: Cow<'t, str>,
    /// How often it occurs, at least 1.
    pub(super) weight: u32,
    /// Its bytes in the text.
    pub(super) bytes: Range<usize>,
}

impl Given {
    /// Whether a text has this form. An empty one does, and has no features.
    pub fn reads(self, text: &str) -> bool {
        match self {
            Self::Features { weighted } => each(text, weighted, |_| ()).is_some(),
            Self::Fingerprint(bits) => is_blank(text) || fingerprint(text, bits).is_some(),
        }
    }

    /// The features of a text, in text order; those before the first that is wrong. The features of a
    /// fingerprint are its bits: place i has the feature `iv`, i in decimal digits and v, `+` or `-`.
    pub(super) fn features(self, text: &str) -> Vec<GivenFeature<'_>> {
        let mut all = Vec::new();
        match self {
            Self::Features { weighted } => {
                each(text, weighted, |feature| all.push(feature));
            }
            Self::Fingerprint(bits) => {
                let words = fingerprint(text, bits).unwrap_or_default();
                let whole = 0..text.len();
                all.extend(places(&words, bits).map(|(place, is_set)| GivenFeature {
                    name: format!("{place}{}", if is_set { '+' } else { '-' }).into(),
                    weight: 1,
                    bytes: whole.clone(),
                }));
            }
        }
        all
    }
}

fn is_blank(text: &str) -> bool {
    text.trim_ascii().is_empty()
}

/// The bits of a fingerprint, the lowest of the first word first.
pub(super) fn places(words: &[u64], bits: usize) -> impl Iterator<Item = (usize, bool)> {
    let bits = bits.min(64 * words.len());
    (0..bits).map(|place| (place, words[place / 64] >> (place % 64) & 1 == 1))
}

/// The words of a fingerprint; `None` if the text is none.
pub(super) fn fingerprint(text: &str, bits: usize) -> Option<Vec<u64>> {
    let text = text.trim_ascii();
    if text.starts_with('[') {
        let words: Vec<u64> = serde_json::from_str(text).ok()?;
        return (64 * words.len() == bits).then_some(words);
    }
    let digits = text.strip_prefix("0x").or_else(|| text.strip_prefix("0X")).unwrap_or(text);
    let are_digits = digits.len() == bits / 4 && digits.bytes().all(|digit| digit.is_ascii_hexdigit());
    if !are_digits {
        return None;
    }
    digits
        .as_bytes()
        .chunks(16)
        .map(|word| u64::from_str_radix(str::from_utf8(word).ok()?, 16).ok())
        .collect()
}

/// Calls `then` with each feature of a text, up to the first that is wrong; `None` if there is one.
fn each<'t>(text: &'t str, weighted: bool, mut then: impl FnMut(GivenFeature<'t>)) -> Option<()> {
    let range = |part: &str| {
        let first = part.as_ptr().addr() - text.as_ptr().addr();
        first..first + part.len()
    };
    if !text.trim_ascii_start().starts_with('[') {
        text.split_whitespace().for_each(|name| {
            then(GivenFeature { name: name.into(), weight: 1, bytes: range(name) });
        });
        return Some(());
    }
    let items: Vec<&'t RawValue> = serde_json::from_str(text).ok()?;
    for item in items {
        let raw = item.get();
        let (name, weight) = match weighted.then(|| serde_json::from_str::<(&RawValue, u32)>(raw)) {
            Some(Ok((name, weight))) => (name.get(), weight),
            _ => (raw, 1),
        };
        let bytes = range(raw);
        let name = feature(name).filter(|_| weight > 0)?;
        then(GivenFeature { name, weight, bytes });
    }
    Some(())
}

/// A string, or a whole number as its decimal digits.
fn feature(raw: &str) -> Option<Cow<'_, str>> {
    if raw.starts_with('"') {
        // Without escapes, the string is what stands between the quotes.
        let plain = raw.strip_prefix('"')?.strip_suffix('"')?;
        return if plain.contains('\\') { serde_json::from_str(raw).ok() } else { Some(plain.into()) };
    }
    serde_json::from_str::<u64>(raw).ok().map(|number| number.to_string().into())
}

#[cfg(test)]
mod tests {
    use super::*;

    const WEIGHTED: Given = Given::Features { weighted: true };

    fn found(text: &str) -> Vec<(String, u32, &str)> {
        assert!(WEIGHTED.reads(text), "{text}");
        let features = WEIGHTED.features(text).into_iter();
        features.map(|one| (one.name.into_owned(), one.weight, &text[one.bytes])).collect()
    }

    #[test]
    fn features_of_lists_and_of_words() {
        let one = |name: &str, weight, part| (name.to_owned(), weight, part);
        assert_eq!(
            found(r#" ["if", 7 ,["for",3], "a\n\"ไ", [18446744073709551615, 1]] "#),
            [
                one("if", 1, r#""if""#),
                one("7", 1, "7"),
                one("for", 3, r#"["for",3]"#),
                one("a\n\"ไ", 1, r#""a\n\"ไ""#),
                one("18446744073709551615", 1, "[18446744073709551615, 1]"),
            ]
        );
        assert_eq!(
            found("If  \u{a0}ไทย\n[x"),
            [one("If", 1, "If"), one("ไทย", 1, "ไทย"), one("[x", 1, "[x")]
        );
        for empty in ["", " \n", "[]", " [ ] "] {
            assert_eq!(found(empty), []);
        }
    }

    #[test]
    fn what_is_no_feature_is_told() {
        let wrong = [
            "[",
            "[1,]",
            "[-1]",
            "[1.5]",
            "[null]",
            "[true]",
            "[{}]",
            "[[]]",
            "[[1]]",
            "[[1,0]]",
            "[[1,2,3]]",
            "[[1,1.5]]",
            "[[1,-1]]",
            "[[[1,1],1]]",
            "[18446744073709551616]",
            "[1] 2",
            r#"["\ud800"]"#,
        ];
        for text in wrong {
            assert!(!WEIGHTED.reads(text), "{text}");
        }
        let plain = Given::Features { weighted: false };
        assert!(plain.reads(r#"["a", 1]"#) && !plain.reads(r#"[["a", 1]]"#), "shingles have no weight");
    }

    #[test]
    fn fingerprints_are_digits_or_words() {
        let words = fingerprint;
        assert_eq!(words("00000000000000Ff", 64), Some(vec![255]));
        assert_eq!(words(" 0x00000000000000ff\n", 64), Some(vec![255]));
        let digits = format!("{:064x}", 5);
        assert_eq!(words(&digits, 256), Some(vec![0, 0, 0, 5]));
        assert_eq!(words("[18446744073709551615, 1]", 128), Some(vec![u64::MAX, 1]));
        for (wrong, bits) in [("ff", 64), ("00000000000000fg", 64), ("+0000000000000ff", 64), ("[1]", 128)] {
            assert!(!Given::Fingerprint(bits).reads(wrong), "{wrong}");
        }
        assert!(Given::Fingerprint(64).reads(" ") && Given::Fingerprint(64).features("").is_empty());
        let features = Given::Fingerprint(64).features("8000000000000001");
        let names: Vec<_> = features.iter().map(|feature| &*feature.name).collect();
        assert_eq!((names.len(), names[0], names[1], names[63]), (64, "0+", "1-", "63+"));
    }
}
