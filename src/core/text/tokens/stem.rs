//! Stemming: a token is cut to the common part of its inflected forms, by the Snowball algorithm of a
//! language.
//!
//! Lowercased token -> its stem: `connections`, `connected` -> `connect`. A stem need not be a word (`happy`
//! -> `happi`); it only has to be equal for forms of one word. Tokens with a character outside the language's
//! alphabet (digits, other scripts) are unchanged.
//!
//! Stemming uses the crate rust-stemmers at one exact version, so that features are stable; another version
//! of an algorithm would be another rule with another name. Tamil is left out: under [`super::Marks::Split`]
//! its words are cut at the virama.
//!
//! Reference: M. F. Porter, *Snowball: a language for stemming algorithms* (2001).

use std::borrow::Cow;
use std::fmt;
use std::ops::RangeInclusive;

use rust_stemmers::Algorithm;
use serde::Serialize;

use crate::hash::TokenHash;

/// Which stemming, if any.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Stem {
    /// Tokens are not stemmed.
    #[default]
    None,
    /// The algorithm of a language.
    #[serde(untagged)]
    Language(Language),
}

/// Defines the languages: their names, algorithms and alphabets.
macro_rules! languages {
    ($($language:ident $name:literal $alphabet:ident,)*) => {
        /// A language with a stemming algorithm.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
        #[serde(rename_all = "lowercase")]
        pub enum Language {
            $(#[doc = concat!("`\"", $name, "\"`")] $language,)*
        }

        impl Stem {
            /// All choices.
            pub const ALL: &[Self] = &[Self::None, $(Self::Language(Language::$language)),*];

            /// The name in a pipeline file.
            pub fn name(self) -> &'static str {
                match self {
                    Self::None => "none",
                    $(Self::Language(Language::$language) => $name,)*
                }
            }
        }

        impl Language {
            fn algorithm(self) -> (Algorithm, Alphabet) {
                match self {
                    $(Self::$language => (Algorithm::$language, $alphabet),)*
                }
            }
        }
    };
}

languages! {
    Arabic "arabic" ARABIC,
    Danish "danish" LATIN,
    Dutch "dutch" LATIN,
    English "english" LATIN,
    Finnish "finnish" LATIN,
    French "french" LATIN,
    German "german" LATIN,
    Greek "greek" GREEK,
    Hungarian "hungarian" LATIN,
    Italian "italian" LATIN,
    Norwegian "norwegian" LATIN,
    Portuguese "portuguese" LATIN,
    Romanian "romanian" LATIN,
    Russian "russian" CYRILLIC,
    Spanish "spanish" LATIN,
    Swedish "swedish" LATIN,
    Turkish "turkish" LATIN,
}

/// Ranges of characters, inclusive.
type Alphabet = &'static [RangeInclusive<char>];

const LATIN: Alphabet = &['a'..='z', 'ß'..='ö', 'ø'..='\u{24f}'];
const GREEK: Alphabet = &['\u{370}'..='\u{3ff}', '\u{1f00}'..='\u{1fff}'];
const CYRILLIC: Alphabet = &['\u{400}'..='\u{4ff}'];
const ARABIC: Alphabet = &['\u{620}'..='\u{65f}', '\u{66e}'..='\u{6d3}'];

/// The stemmer of one language.
pub(in crate::text) struct Stemmer {
    language: Language,
    alphabet: Alphabet,
    snowball: rust_stemmers::Stemmer,
    hash: TokenHash,
    /// Direct-mapped cache: the hash of a token and of its stem, at the index given by the token's low bits;
    /// a new token replaces the old one. Stemming takes about half a microsecond, and most tokens of a text
    /// are repeated.
    known: Box<[(u64, u64)]>,
}

/// Entries of the cache, a power of two: 256 KiB.
const KNOWN: usize = 1 << 14;

impl fmt::Debug for Stemmer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Stemmer").field(&self.language).finish()
    }
}

impl Stemmer {
    /// `None` for [`Stem::None`].
    pub(in crate::text) fn new(stem: Stem, hash: TokenHash) -> Option<Self> {
        let Stem::Language(language) = stem else { return None };
        let (algorithm, alphabet) = language.algorithm();
        let mut known = vec![(0, 0); KNOWN].into_boxed_slice();
        // Marks slot 0 as empty: 0 would match a token of hash 0, and a token of hash 1 has slot 1.
        known[0].0 = 1;
        Some(Self { language, alphabet, snowball: rust_stemmers::Stemmer::create(algorithm), hash, known })
    }

    /// The hash of the stem of a lowercased token; `hash` is the token's own.
    #[expect(clippy::cast_possible_truncation, reason = "the low bits are meant")]
    pub(in crate::text) fn hash(&mut self, hash: u64, token: &[u8]) -> u64 {
        let place = hash as usize & (KNOWN - 1);
        if self.known[place].0 != hash {
            let token = std::str::from_utf8(token).expect("tokens are cut between characters");
            self.known[place] = (hash, self.hash.token(self.stem(token).as_bytes()));
        }
        self.known[place].1
    }

    /// The stem of a lowercased token; never empty.
    pub(in crate::text) fn stem<'t>(&self, token: &'t str) -> Cow<'t, str> {
        let is_known = |c: char| self.alphabet.iter().any(|range| range.contains(&c));
        if !token.chars().all(is_known) {
            return Cow::Borrowed(token);
        }
        let stem = self.snowball.stem(token);
        if stem.is_empty() { Cow::Borrowed(token) } else { stem }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    fn stem(language: Language, token: &str) -> String {
        Stemmer::new(Stem::Language(language), TokenHash::default()).unwrap().stem(token).into_owned()
    }

    /// A changed stem is a new rule; never change these expectations.
    #[test]
    fn known_stems() {
        for (language, tokens, expected) in [
            (
                Language::English,
                "connect connected connection connections",
                "connect connect connect connect",
            ),
            (Language::English, "happy running national don", "happi run nation don"),
            (Language::German, "häuser hauses aufeinander", "haus haus aufeinand"),
            (Language::French, "continuellement continuité", "continuel continu"),
            (Language::Spanish, "biblioteca bibliotecas", "bibliotec bibliotec"),
            (Language::Russian, "важная важнее", "важн важн"),
        ] {
            let stems: Vec<_> = tokens.split(' ').map(|token| stem(language, token)).collect();
            assert_eq!(stems.join(" "), expected);
        }
    }

    #[test]
    fn other_scripts_and_digits_pass_through() {
        for token in ["connections2", "2026s", "важная", "漢", "日本語s", "ไทย", "𝒳s"] {
            assert_eq!(stem(Language::English, token), token);
        }
        assert_eq!(stem(Language::Russian, "connections"), "connections");
    }

    /// Every token has a stem that is not empty and valid UTF-8: the algorithms cut between bytes.
    #[test]
    fn every_token_has_a_stem() {
        for (language, choice) in Stem::ALL.iter().enumerate() {
            let Some(stemmer) = Stemmer::new(*choice, TokenHash::default()) else { continue };
            let letters: Vec<char> =
                stemmer.alphabet.iter().cloned().flatten().filter(|c| c.is_alphanumeric()).collect();
            for i in 0..5000 {
                let word = |j: u64| mix((language as u64) << 40 | i << 8 | j);
                // Mostly from the first letters, of which endings consist.
                let few = if i % 3 == 0 { letters.len() } else { letters.len().min(40) };
                let letter = |j| letters[usize::try_from(word(j)).unwrap() % few];
                let token: String = (1..=1 + word(0) % 14).map(letter).collect();
                assert!(!stemmer.stem(&token).is_empty(), "{choice:?} {token:?}");
            }
        }
    }

    #[test]
    fn names_are_distinct() {
        let mut names: Vec<_> = Stem::ALL.iter().map(|stem| stem.name()).collect();
        names.sort_unstable();
        names.dedup();
        assert_eq!(names.len(), Stem::ALL.len());
    }
}
