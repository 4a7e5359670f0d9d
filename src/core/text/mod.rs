//! Text to features: tokens, shingles, and their 64-bit hashes.
//!
//! A UTF-8 text and [`TextRules`] -> a feature for each shingle, in text order, repeats included.
//!
//! The rules, in this order: of a text that is a web page, what is [read](Html) of it; Unicode normalization,
//! if asked for; **tokens** are maximal runs of [`char::is_alphanumeric`] with the [marks](Marks) of their
//! letters, a character of a script written without spaces being a token of its own unless they
//! [run](Spaceless::Run) together; each token is lowercased by itself; stop words are removed; if asked for,
//! what is left of tokens is their [stems](Stem); **shingles** are windows of so many words, or of characters
//! of the tokens joined by one space; a **feature** is a shingle's hash.
//!
//! A token is a word, but for the characters of scripts without spaces: under [`Spaceless::Part`], the
//! default, a Han character is half a word, a kana a quarter, and a Thai, Lao, Khmer or Myanmar character a
//! sixth; under [`Spaceless::Bag`] a half, a sixth and an eighth. From each token on, the shortest window
//! that holds W words is a shingle; where the text ends before, there is none. A text that so has no shingle
//! has one, of all its tokens.
//!
//! Invariants: features are the same on every machine and in every release (golden values in the tests), but
//! for characters that a later Unicode version adds; they do not depend on texts seen before. [`Featurizer`]
//! is the fast path, [`tokens`] and [`shingles`] say the same with strings.
//!
//! ```
//! use dupflow_core::text::{Featurizer, TextRules, shingles};
//!
//! let rules = TextRules::default();
//! assert_eq!(shingles("Near-duplicates, in a stream!", &rules), ["near duplicates in", "duplicates in a", "in a stream"]);
//! assert_eq!(Featurizer::new(rules).features("Near-duplicates, in a stream!").len(), 3);
//! ```
//!
//! Features of a set may repeat, which its sketches do not notice. Weighted features are distinct:
//! [`Featurizer::terms`] counts, a [`Weigher`] weighs by the rules of [`Weights`]. Further [fields](Field) of
//! a document are shingled by themselves.

mod fields;
mod html;
mod idf;
mod idf_file;
mod lower;
#[cfg(test)]
mod marks_tests;
pub mod measures;
mod normalize;
mod passages;
mod plain;
mod shingle;
mod stem;
mod stop;
mod terms;
#[cfg(test)]
mod tests;
mod tokenize;
mod unicode;
mod units;
mod weights;

pub use fields::Field;
pub use html::{Html, readable};
pub use idf::{IdfForm, IdfTable};
pub use idf_file::IdfError;
pub use passages::{Passages, Piece, common_passages};
pub use plain::{shingles, tokens};
pub use stem::{Language, Stem};
pub use terms::{Terms, TermsRef};
pub use weights::{Growth, Idf, Weigher, Weights};

use normalize::normalized;
use shingle::{Long, Parts, Roll, Short};
use stem::Stemmer;
use stop::StopWords;
use terms::TermCounter;
use tokenize::{Lowered, SLACK, hash_at};

use serde::{Deserialize, Serialize};

use crate::description::{Description, FieldValue};

/// What is sketched of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Shingle {
    /// Runs of tokens that hold this many words (1 or more); a text with fewer has one shingle, all its
    /// tokens.
    Words(usize),
    /// Runs of this many characters (1 or more) of the tokens joined by one space; a shorter text is one
    /// shingle.
    Chars(usize),
}

/// How characters of scripts written without spaces become tokens.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Spaceless {
    /// Each such character is a token of its own, and a part of a word: half of one, a quarter or a sixth, by
    /// its script.
    Part,
    /// As [`Self::Part`], with half of a word, a sixth or an eighth: for bags of single words, in which a
    /// part says less.
    Bag,
    /// Each such character is a token of its own, and a word.
    Char,
    /// As any other alphanumeric character: they run together.
    Run,
}

/// What a combining mark that is not alphanumeric does in a word, as the virama of Indic scripts and the
/// accent of a letter that is typed as two characters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Marks {
    /// It continues the word that it stands in, and so do U+200C and U+200D where a letter or a mark follows.
    /// Variation selectors and marks that enclose are none of these; behind a character of a script without
    /// spaces, and behind no word, marks separate.
    #[default]
    Keep,
    /// It separates, as all else that is not alphanumeric.
    Split,
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
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct TextRules {
    /// What is sketched.
    pub shingle: Shingle,
    /// Scripts without spaces.
    pub spaceless: Spaceless,
    /// Combining marks.
    pub marks: Marks,
    /// Normalization.
    pub normalize: Normalize,
    /// Lowercased tokens that are removed before shingling; sorted, without repeats.
    pub stop_words: Vec<String>,
    /// What becomes of the other tokens; nothing but [`Stem::None`] with shingles of characters.
    #[serde(skip_serializing_if = "is_none")]
    pub stem: Stem,
    /// What is read of pages, before all else.
    #[serde(skip_serializing_if = "is_as_it_stands")]
    pub html: Html,
    /// Further fields of a record, by name, without repeats.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub fields: Vec<Field>,
    /// What a feature weighs.
    #[serde(skip_serializing_if = "is_unit")]
    pub weights: Weights,
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_none(stem: &Stem) -> bool {
    *stem == Stem::None
}

#[expect(clippy::trivially_copy_pass_by_ref, reason = "serde calls it so")]
fn is_as_it_stands(html: &Html) -> bool {
    *html == Html::None
}

fn is_unit(weights: &Weights) -> bool {
    *weights == Weights::Unit
}

impl Default for TextRules {
    fn default() -> Self {
        Self {
            html: Html::default(),
            shingle: Shingle::Words(3),
            spaceless: Spaceless::Part,
            marks: Marks::Keep,
            normalize: Normalize::None,
            stop_words: Vec::new(),
            stem: Stem::None,
            fields: Vec::new(),
            weights: Weights::Unit,
        }
    }
}

impl TextRules {
    /// All fields by name: see [`Description`].
    pub fn description(&self) -> Description {
        let shingle = match self.shingle {
            Shingle::Words(size) => format!("words:{size}"),
            Shingle::Chars(size) => format!("chars:{size}"),
        };
        let described = Description::new()
            .with("text.shingle", &*shingle)
            .with("text.spaceless", self.spaceless.name())
            .with("text.marks", self.marks.name())
            .with("text.normalize", self.normalize.name())
            .with("text.stop_words", FieldValue::list(&self.stop_words))
            .with("text.fields", FieldValue::list(self.fields.iter().map(|field| &field.name)))
            .and(self.weights.description());
        // What came later is left out while it says what was done before: of pages that is to take markup for
        // text, and no default.
        let described = match self.stem {
            Stem::None => described,
            stem => described.with("text.stem", stem.name()),
        };
        let described = match self.html {
            Html::None => described,
            Html::Text => described.with("text.html", self.html.name()),
            // Another rule for articles is another scheme.
            Html::Article => described
                .with("text.html", self.html.name())
                .with("text.html.article", crate::html::ARTICLE_VERSION),
        };
        let weight =
            |all: Description, field: &Field| all.with(format!("text.fields.{}", field.name), field.weight);
        self.fields.iter().fold(described, weight)
    }
}

impl Spaceless {
    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Part => "part",
            Self::Bag => "bag",
            Self::Char => "char",
            Self::Run => "run",
        }
    }
}

impl Marks {
    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Keep => "keep",
            Self::Split => "split",
        }
    }
}

impl Normalize {
    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        match self {
            Self::None => "none",
            Self::Nfc => "nfc",
            Self::Nfkc => "nfkc",
        }
    }
}

/// The features of one text.
#[derive(Clone, Copy, Debug)]
pub struct Features<'a> {
    /// Of a set: the hashed shingles in text order, repeats included. With weights: distinct, ascending.
    pub ids: &'a [u64],
    /// One for each id, above 0 and finite; empty for a set, where every feature weighs the same.
    pub weights: &'a [f64],
}

impl<'a> Features<'a> {
    /// A set: hashed shingles in text order, repeats included.
    pub fn set(ids: &'a [u64]) -> Self {
        Self { ids, weights: &[] }
    }
}

/// Turns texts into features by fixed rules; keeps its buffers between texts.
#[derive(Debug)]
pub struct Featurizer {
    rules: TextRules,
    reader: html::Reader,
    stop_words: StopWords,
    stemmer: Option<Stemmer>,
    normalized: String,
    lowered: Lowered,
    joined: Vec<u8>,
    /// For texts that have parts of words.
    parts: Parts,
    /// Of the last text, or of its last part.
    features: Vec<u64>,
    /// Of all parts of the last text that may have fields.
    together: Vec<u64>,
    counter: TermCounter,
}

impl Featurizer {
    /// Prepares the rules.
    ///
    /// # Panics
    /// If the shingle size is 0; if there are stems with shingles of characters, where the end of a word is a
    /// shingle too; and if articles are asked for without the feature `article`.
    pub fn new(rules: TextRules) -> Self {
        let (Shingle::Words(size) | Shingle::Chars(size)) = rules.shingle;
        assert!(size > 0, "a shingle has one token or character at least");
        let has_words = matches!(rules.shingle, Shingle::Words(_));
        assert!(has_words || rules.stem == Stem::None, "shingles of characters are of whole words");
        Self {
            reader: html::Reader::new(rules.html),
            stop_words: StopWords::new(&rules.stop_words),
            stemmer: Stemmer::new(rules.stem),
            normalized: String::new(),
            lowered: Lowered::new(rules.spaceless, rules.marks),
            joined: Vec::new(),
            parts: Parts::new(size),
            features: Vec::new(),
            together: Vec::new(),
            counter: TermCounter::default(),
            rules,
        }
    }

    /// The hashed shingles of a text in text order, then those of its fields, repeats included; empty if it
    /// has no token.
    pub fn features(&mut self, text: &str) -> &[u64] {
        if self.rules.fields.is_empty() {
            let first = self.fill(text);
            return &self.features[first..];
        }
        self.together.clear();
        for part in self.rules.parts(text) {
            let first = self.fill(part);
            self.together.extend_from_slice(&self.features[first..]);
        }
        &self.together
    }

    /// The number of tokens of a text and its fields, stop words removed.
    pub fn tokens(&mut self, text: &str) -> usize {
        let mut count = 0;
        for part in self.rules.parts(text) {
            let read = self.reader.read(part);
            self.lowered.fill(normalized(read, self.rules.normalize, &mut self.normalized));
            each_token(&self.lowered, &self.stop_words, None, |_, _, _| count += 1);
        }
        count
    }

    /// The distinct features of a text with their counts, those of a field multiplied by its weight; none if
    /// it has no token.
    pub fn terms(&mut self, text: &str) -> TermsRef<'_> {
        self.counter.clear();
        for (place, part) in self.rules.parts(text).enumerate() {
            let first = self.fill(part);
            self.counter.add(&self.features[first..], self.rules.times(place));
        }
        self.counter.terms()
    }

    /// Puts the features of a part where they begin at the returned place and end with the list.
    fn fill(&mut self, text: &str) -> usize {
        let text = self.reader.read(text);
        self.lowered.fill(normalized(text, self.rules.normalize, &mut self.normalized));
        self.features.clear();
        match self.rules.shingle {
            Shingle::Words(_) if self.lowered.has_parts() => self.words_of_parts(),
            Shingle::Words(1) => self.words(1, Short::<1>::new()),
            Shingle::Words(2) => self.words(2, Short::<2>::new()),
            Shingle::Words(3) => self.words(3, Short::<3>::new()),
            Shingle::Words(size) => self.words(size, Long::new(size)),
            Shingle::Chars(size) => self.chars(size),
        }
    }

    fn words(&mut self, size: usize, mut roll: impl Roll) -> usize {
        let Self { lowered, stop_words, stemmer, features, .. } = self;
        each_token(lowered, stop_words, stemmer.as_mut(), |token, _, _| features.push(roll.next(token)));
        // Before the first full window stand the windows that were not full: see `shingle`.
        size.min(features.len()).saturating_sub(1)
    }

    fn words_of_parts(&mut self) -> usize {
        let Self { lowered, stop_words, stemmer, parts, features, .. } = self;
        parts.clear();
        each_token(lowered, stop_words, stemmer.as_mut(), |token, first, _| {
            parts.next(token, lowered.weight(first), |feature| features.push(feature));
        });
        features.extend(parts.whole());
        0
    }

    fn chars(&mut self, size: usize) -> usize {
        self.joined.clear();
        each_token(&self.lowered, &self.stop_words, None, |_, first, end| {
            self.joined.extend_from_slice(&self.lowered.bytes()[first..end]);
            self.joined.push(b' ');
        });
        if self.joined.pop().is_some() {
            let len = self.joined.len();
            self.joined.resize(len + SLACK, 0);
            shingle::chars(&self.joined, len, size, &mut self.features);
        }
        0
    }
}

/// Calls `then` with the hash, the first and the end byte of each token that is no stop word; the hash is
/// that of its stem if there is a stemmer.
#[inline(always)]
fn each_token(
    lowered: &Lowered,
    stop_words: &StopWords,
    stemmer: Option<&mut Stemmer>,
    mut then: impl FnMut(u64, usize, usize),
) {
    let token = |first, end| hash_at(lowered.bytes(), first, end);
    if let Some(stemmer) = stemmer {
        return lowered.runs(|first, end| {
            let token = token(first, end);
            if !stop_words.contains(token) {
                then(stemmer.hash(token, &lowered.bytes()[first..end]), first, end);
            }
        });
    }
    if stop_words.is_empty() {
        return lowered.runs(|first, end| then(token(first, end), first, end));
    }
    lowered.runs(|first, end| match token(first, end) {
        stop if stop_words.contains(stop) => {}
        token => then(token, first, end),
    });
}
