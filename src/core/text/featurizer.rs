//! The fast path from texts to features.

use super::given::{Given, fingerprint, places};
use super::pages::PageReader;
use super::rules::{Shingle, TextRules};
use super::shingle::{self, LongRoll, Roll, ShortRoll, WeightedRoll};
use super::tokens::Stem;
use super::tokens::stem::Stemmer;
use super::tokens::stop::StopWords;
use super::tokens::tokenize::{Lowered, SLACK, hash_at};
use super::tokens::unicode::WORD;
use super::weights::TermsRef;
use super::weights::terms::TermCounter;
use crate::hash::TokenHash;

/// The features of a text, and how much of it they are.
#[derive(Clone, Copy, Debug)]
pub struct MeasuredFeatures<'f> {
    /// In text order, repeats included.
    pub features: &'f [u64],
    /// For each feature, how many tokens like the first one of its shingle make a word: 1 for whole words.
    /// Empty if all are. At each token begins a shingle, so a word has as many.
    pub parts: &'f [u8],
    /// The number of words: tokens that are parts of words count by their weight, and the sum is rounded
    /// down.
    pub words: usize,
}

/// Turns texts into features by fixed rules; reuses its buffers.
#[derive(Debug)]
pub struct Featurizer {
    rules: TextRules,
    reader: PageReader,
    stop_words: StopWords,
    stemmer: Option<Stemmer>,
    /// The last text, if its [letters](super::tokens::letters) had to be changed.
    letters: String,
    lowered: Lowered,
    joined: Vec<u8>,
    /// Roller for texts with parts of words.
    roll: WeightedRoll,
    /// Features of the last text, or of the last part of a text with fields.
    features: Vec<u64>,
    /// Their [parts](MeasuredFeatures::parts).
    parts: Vec<u8>,
    /// Their weights, if the record brings them.
    weights: Vec<u32>,
    /// Features of all parts of the last text with their [parts](MeasuredFeatures::parts), if the rules have
    /// fields.
    together: (Vec<u64>, Vec<u8>),
    counter: TermCounter,
    /// Weight of the tokens of the last text and of its fields, in 24ths of a word.
    weight: usize,
}

impl Featurizer {
    /// A featurizer for these rules.
    ///
    /// # Panics
    /// If the shingle size is 0; if stems are combined with shingles of characters, where the ends of words
    /// are shingles too; or if the rules ask for articles and the crate is built without the feature
    /// `article`.
    pub fn new(rules: TextRules) -> Self {
        let (Shingle::Words(size) | Shingle::Chars(size)) = rules.shingle;
        assert!(size > 0, "a shingle has one token or character at least");
        let has_words = matches!(rules.shingle, Shingle::Words(_));
        assert!(has_words || rules.stem == Stem::None, "shingles of characters are of whole words");
        Self {
            reader: PageReader::new(rules.html),
            stop_words: StopWords::new(&rules.stop_words, rules.hash),
            stemmer: Stemmer::new(rules.stem, rules.hash),
            letters: String::new(),
            lowered: Lowered::new(rules.spaceless, rules.marks),
            joined: Vec::new(),
            roll: WeightedRoll::new(size),
            features: Vec::new(),
            parts: Vec::new(),
            weights: Vec::new(),
            together: (Vec::new(), Vec::new()),
            counter: TermCounter::default(),
            weight: 0,
            rules,
        }
    }

    /// The hashed shingles of a text in text order, then those of its fields, repeats included. Empty if
    /// there is no token.
    pub fn features(&mut self, text: &str) -> &[u64] {
        self.measured(text).features
    }

    /// The [features](Self::features) of a text, and how much of it they are.
    pub fn measured(&mut self, text: &str) -> MeasuredFeatures<'_> {
        self.weight = 0;
        if self.rules.fields.is_empty() {
            let first = self.fill(text);
            let (features, parts) = (&self.features[first..], &self.parts[..]);
            return MeasuredFeatures { features, parts, words: self.weight / WORD };
        }
        self.together.0.clear();
        self.together.1.clear();
        for part in self.rules.parts(text) {
            let first = self.fill(part);
            self.together.0.extend_from_slice(&self.features[first..]);
            self.together.1.extend_from_slice(&self.parts);
            self.together.1.resize(self.together.0.len(), 1);
        }
        let (features, parts) = (&self.together.0[..], &self.together.1[..]);
        MeasuredFeatures { features, parts, words: self.weight / WORD }
    }

    /// The number of tokens of a text and its fields, stop words removed.
    pub fn tokens(&mut self, text: &str) -> usize {
        let mut count = 0;
        if let Some(given) = self.rules.given {
            return given.features(text).len();
        }
        for part in self.rules.parts(text) {
            let read = self.reader.read(part);
            self.lowered.fill(self.rules.letters().apply(read, &mut self.letters));
            each_token(self.rules.hash, &self.lowered, &self.stop_words, None, |_, _, _| count += 1);
        }
        count
    }

    /// The distinct features of a text with their counts; counts in a field are multiplied by its weight.
    /// Empty if there is no token.
    pub fn terms(&mut self, text: &str) -> TermsRef<'_> {
        self.counter.clear();
        for (place, part) in self.rules.parts(text).enumerate() {
            let first = self.fill(part);
            match self.rules.given {
                Some(Given::Features { weighted: true }) => {
                    self.counter.add_weighted(&self.features, &self.weights);
                }
                _ => self.counter.add(&self.features[first..], self.rules.times(place)),
            }
        }
        self.counter.terms()
    }

    /// Writes the features of a part to `self.features`; returns the index of the first one.
    fn fill(&mut self, text: &str) -> usize {
        self.parts.clear();
        if let Some(given) = self.rules.given {
            return self.given(given, text);
        }
        let text = self.reader.read(text);
        self.lowered.fill(self.rules.letters().apply(text, &mut self.letters));
        self.features.clear();
        match self.rules.shingle {
            Shingle::Words(_) if self.lowered.has_parts() => self.words_of_parts(),
            Shingle::Words(1) => self.words(1, ShortRoll::<1>::new()),
            Shingle::Words(2) => self.words(2, ShortRoll::<2>::new()),
            Shingle::Words(3) => self.words(3, ShortRoll::<3>::new()),
            Shingle::Words(size) => self.words(size, LongRoll::new(size)),
            Shingle::Chars(size) => self.chars(size),
        }
    }

    /// A fingerprint has the features 2i and 2i + 1 for the bit i, unset and set.
    fn given(&mut self, given: Given, text: &str) -> usize {
        self.features.clear();
        if let Given::Fingerprint(bits) = given {
            let words = fingerprint(text, bits).unwrap_or_default();
            self.features
                .extend(places(&words, bits).map(|(place, is_set)| 2 * place as u64 + u64::from(is_set)));
            return 0;
        }
        let found = given.features(text);
        let (Shingle::Words(size) | Shingle::Chars(size)) = self.rules.shingle;
        let (mut roll, hash) = (LongRoll::new(size), self.rules.hash);
        self.features.extend(found.iter().map(|feature| roll.next(hash.token(feature.name.as_bytes()))));
        self.weights.clear();
        self.weights.extend(found.iter().map(|feature| feature.weight));
        self.weight += found.len() * WORD;
        size.min(found.len()).saturating_sub(1)
    }

    fn words(&mut self, size: usize, mut roll: impl Roll) -> usize {
        let Self { rules, lowered, stop_words, stemmer, features, weight, .. } = self;
        each_token(rules.hash, lowered, stop_words, stemmer.as_mut(), |token, _, _| {
            features.push(roll.next(token));
        });
        *weight += features.len() * WORD;
        // The first values are windows that were not full: see `shingle`.
        size.min(features.len()).saturating_sub(1)
    }

    fn words_of_parts(&mut self) -> usize {
        let Self { rules, lowered, stop_words, stemmer, roll, features, parts, weight: total, .. } = self;
        roll.clear();
        each_token(rules.hash, lowered, stop_words, stemmer.as_mut(), |token, first, _| {
            let weight = lowered.weight(first);
            *total += weight;
            roll.next(token, weight, |feature, of_first| {
                features.push(feature);
                parts.push(u8::try_from(WORD / of_first).unwrap_or(1));
            });
        });
        features.extend(roll.whole());
        parts.resize(features.len(), 1);
        0
    }

    fn chars(&mut self, size: usize) -> usize {
        self.joined.clear();
        let Self { rules, lowered, stop_words, joined, weight, .. } = self;
        each_token(rules.hash, lowered, stop_words, None, |_, first, end| {
            joined.extend_from_slice(&lowered.bytes()[first..end]);
            joined.push(b' ');
            *weight += lowered.weight(first);
        });
        if self.joined.pop().is_some() {
            let len = self.joined.len();
            self.joined.resize(len + SLACK, 0);
            shingle::chars(self.rules.hash, &self.joined, len, size, &mut self.features);
        }
        0
    }
}

/// Calls `then` with the hash, the first byte and the end byte of each token that is not a stop word. With a
/// stemmer, the hash is that of the token's stem.
#[inline(always)]
fn each_token(
    hash: TokenHash,
    lowered: &Lowered,
    stop_words: &StopWords,
    stemmer: Option<&mut Stemmer>,
    mut then: impl FnMut(u64, usize, usize),
) {
    let token = |first, end| hash_at(hash, lowered.bytes(), first, end);
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
