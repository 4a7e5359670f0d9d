//! Text to features: tokens, shingles, and their 64-bit hashes.
//!
//! (stub: the tokenizer replaces the body of `Featurizer`)

use serde::{Deserialize, Serialize};

/// What is sketched of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shingle {
    /// Runs of this many tokens (1 or more); a text with fewer tokens has one shingle, all its tokens.
    Words(usize),
    /// Runs of this many characters (1 or more) of the tokens joined by one space; a shorter text is one shingle.
    Chars(usize),
}

/// How characters of scripts written without spaces become tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spaceless {
    /// Each such character is a token of its own.
    Char,
    /// As any other alphanumeric character: they run together.
    Run,
}

/// Unicode normalization before tokenizing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Normalize {
    /// The text as it is.
    None,
    /// Canonical composition.
    Nfc,
    /// Compatibility composition.
    Nfkc,
}

/// How a text becomes features. Part of the scheme: texts under different rules are never compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct TextRules {
    /// What is sketched.
    pub shingle: Shingle,
    /// Scripts without spaces.
    pub spaceless: Spaceless,
    /// Normalization.
    pub normalize: Normalize,
    /// Lowercased tokens that are removed before shingling; sorted, without repeats.
    pub stop_words: Vec<String>,
}

impl Default for TextRules {
    fn default() -> Self {
        Self {
            shingle: Shingle::Words(3),
            spaceless: Spaceless::Char,
            normalize: Normalize::None,
            stop_words: Vec::new(),
        }
    }
}

/// Turns texts into features by fixed rules; keeps its buffers between texts.
#[derive(Debug)]
pub struct Featurizer {
    rules: TextRules,
    features: Vec<u64>,
}

impl Featurizer {
    /// Prepares the rules.
    pub fn new(rules: TextRules) -> Self {
        Self { rules, features: Vec::new() }
    }

    /// The hashed shingles of a text in text order, repeats included; empty if it has no token.
    pub fn features(&mut self, text: &str) -> &[u64] {
        self.features.clear();
        let tokens: Vec<u64> = text
            .split(|c: char| !c.is_alphanumeric())
            .filter(|t| !t.is_empty())
            .map(|t| crate::hash::token(t.to_lowercase().as_bytes()))
            .collect();
        let w = match self.rules.shingle {
            Shingle::Words(w) | Shingle::Chars(w) => w,
        };
        if !tokens.is_empty() && tokens.len() < w {
            self.features.push(tokens.iter().fold(0, |h, t| crate::hash::fold(h ^ t, crate::hash::PI[2])));
        }
        for window in tokens.windows(w) {
            self.features.push(window.iter().fold(0, |h, t| crate::hash::fold(h ^ t, crate::hash::PI[2])));
        }
        &self.features
    }
}
