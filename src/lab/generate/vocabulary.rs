//! The words of a script with their frequencies.

use std::collections::HashSet;

use rand::Rng;

use super::spaceless;

/// A way of writing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Script {
    /// With accents.
    Latin,
    /// Russian letters.
    Cyrillic,
    /// With accents.
    Greek,
    /// With vowels that are combining signs.
    Devanagari,
    /// From right to left.
    Arabic,
    /// Han and Hiragana, without spaces.
    Han,
    /// Words of one to three Han characters, without spaces.
    Chinese,
    /// Words of Han, Hiragana and Katakana, without spaces.
    Japanese,
    /// Words of one to three syllables, with marks above and below, and spaces between sentences only.
    Thai,
}

#[derive(Debug)]
enum Letters {
    /// Words are syllables, each one of the first and one of the second list, separated by spaces.
    Syllables(&'static str, &'static str),
    /// Words are one or two Han characters, or some Hiragana, without separators.
    Ideographs,
    /// Words are made by a function, as long as those of the language, without separators.
    Spaceless {
        /// Makes a word of a number of syllables or parts.
        word: fn(usize, &mut dyn rand::RngCore) -> String,
        /// Between parts of a sentence.
        comma: &'static str,
        /// Between sentences.
        stop: &'static str,
    },
}

/// Numbered words, most frequent first.
#[derive(Debug)]
pub(super) struct ScriptVocabulary {
    plain: StringArena,
    capitals: StringArena,
    space: &'static str,
    comma: Option<&'static str>,
    stop: &'static str,
    law: Zipf,
}

impl ScriptVocabulary {
    /// Makes `size` words, 1 or more; the k-th occurs in proportion to `1 / k^exponent`.
    pub(super) fn new(script: Script, size: usize, exponent: f64, rng: &mut impl Rng) -> Self {
        let one = |k, draws: &mut _| script.word_of_rank(k, 0, draws);
        Self::generate(script, size, exponent, rng, one)
    }

    /// The same with pairwise different words.
    pub(super) fn distinct(script: Script, size: usize, exponent: f64, rng: &mut impl Rng) -> Self {
        let mut known = HashSet::new();
        let one = |k, draws: &mut _| {
            let word =
                (0..).map(|tries| script.word_of_rank(k, tries, draws)).find(|word| !known.contains(word));
            let word = word.expect("longer words are tried without end");
            known.insert(word.clone());
            word
        };
        Self::generate(script, size, exponent, rng, one)
    }

    fn generate<R: Rng>(
        script: Script,
        size: usize,
        exponent: f64,
        rng: &mut R,
        mut one: impl FnMut(usize, &mut R) -> String,
    ) -> Self {
        let (mut plain, mut capitals) = (StringArena::default(), StringArena::default());
        for k in 0..size {
            let word = one(k, rng);
            let mut letters = word.chars();
            capitals.push(letters.next().into_iter().flat_map(char::to_uppercase).chain(letters));
            plain.push(word.chars());
        }
        let (space, comma, stop) = match script.letters() {
            Letters::Syllables(..) => (" ", None, ". "),
            Letters::Ideographs => ("", None, "。"),
            Letters::Spaceless { comma, stop, .. } => ("", Some(comma), stop),
        };
        Self { plain, capitals, space, comma, stop, law: Zipf::new(size, exponent) }
    }

    /// The distribution of words.
    pub(super) fn law(&self) -> &Zipf {
        &self.law
    }

    pub(super) fn word(&self, word: u32) -> &str {
        self.plain.get(word)
    }

    /// The word at the beginning of a sentence.
    pub(super) fn capital(&self, word: u32) -> &str {
        self.capitals.get(word)
    }

    /// The separator of words.
    pub(super) fn space(&self) -> &'static str {
        self.space
    }

    /// The separator within sentences, if there is one.
    pub(super) fn comma(&self) -> Option<&'static str> {
        self.comma
    }

    /// The separator of sentences.
    pub(super) fn stop(&self) -> &'static str {
        self.stop
    }
}

impl Script {
    /// The default scripts of a feed.
    pub const USUAL: [Self; 6] =
        [Self::Latin, Self::Cyrillic, Self::Greek, Self::Devanagari, Self::Arabic, Self::Han];

    /// The name in lower case.
    pub fn name(self) -> &'static str {
        match self {
            Self::Latin => "latin",
            Self::Cyrillic => "cyrillic",
            Self::Greek => "greek",
            Self::Devanagari => "devanagari",
            Self::Arabic => "arabic",
            Self::Han => "han",
            Self::Chinese => "chinese",
            Self::Japanese => "japanese",
            Self::Thai => "thai",
        }
    }

    fn letters(self) -> Letters {
        match self {
            Self::Latin => Letters::Syllables("bcdfghjklmnprstvwz", "aeiouéöü"),
            Self::Cyrillic => Letters::Syllables("бвгджзклмнпрстфхцчшщ", "аеёиоуыэюя"),
            Self::Greek => Letters::Syllables("βγδζθκλμνξπρστφχψ", "αεηιουωάέήίό"),
            Self::Devanagari => Letters::Syllables("कखगघचछजझटठडढतथदधनपफबभमयरलवशसह", "ािीुूेो"),
            Self::Arabic => Letters::Syllables("بتثجحخدذرزسشصضطظعغفقكلمنه", "اوي"),
            Self::Han => Letters::Ideographs,
            Self::Chinese => Letters::Spaceless { word: spaceless::chinese, comma: "，", stop: "。" },
            Self::Japanese => Letters::Spaceless { word: spaceless::japanese, comma: "、", stop: "。" },
            Self::Thai => Letters::Spaceless { word: spaceless::thai, comma: " ", stop: " " },
        }
    }

    /// The k-th word: frequent words are short; one more syllable after every 64 tries.
    fn word_of_rank(self, k: usize, tries: usize, rng: &mut impl Rng) -> String {
        let syllables = if k < 32 { 1 } else { rng.random_range(2..5) };
        self.word(syllables + tries / 64, rng)
    }

    fn word(self, syllables: usize, rng: &mut impl Rng) -> String {
        let mut pick = |letters: &str| {
            let place = rng.random_range(0..letters.chars().count());
            letters.chars().nth(place)
        };
        match self.letters() {
            Letters::Syllables(first, second) => {
                (0..syllables).flat_map(|_| [pick(first), pick(second)]).flatten().collect()
            }
            Letters::Ideographs if rng.random_ratio(1, 3) => {
                (0..syllables.min(3)).map(|_| rng.random_range('あ'..='ん')).collect()
            }
            Letters::Ideographs => (0..syllables.min(2)).map(|_| rng.random_range('一'..='忿')).collect(),
            Letters::Spaceless { word, .. } => word(syllables, rng),
        }
    }
}

/// Strings in one piece of memory.
#[derive(Debug, Default)]
struct StringArena {
    text: String,
    ends: Vec<usize>,
}

impl StringArena {
    fn push(&mut self, letters: impl Iterator<Item = char>) {
        self.text.extend(letters);
        self.ends.push(self.text.len());
    }

    fn get(&self, n: u32) -> &str {
        let n = n as usize;
        let start = n.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.text[start..self.ends[n]]
    }
}

/// Zipf's law in constant time, by the alias method: every column of a table holds two numbers and the point
/// that divides it between them.
///
/// Reference: A. J. Walker, *An efficient method for generating discrete random variables with general
/// distributions* (ACM TOMS 3, 1977).
#[derive(Debug)]
pub(super) struct Zipf {
    /// Below this fraction of 2^32 the column is its own number, else its alias.
    columns: Vec<(u32, u32)>,
}

impl Zipf {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        clippy::cast_precision_loss,
        reason = "shares of 2^32"
    )]
    pub(super) fn new(size: usize, exponent: f64) -> Self {
        let weights: Vec<f64> = (1..=size).map(|k| (k as f64).powf(-exponent)).collect();
        let mean = weights.iter().sum::<f64>() / size as f64;
        let mut shares: Vec<f64> = weights.iter().map(|weight| weight / mean).collect();
        let mut columns: Vec<(u32, u32)> = (0..size as u32).map(|k| (u32::MAX, k)).collect();
        // Weights descend, so the small ones are at the end; a large one that becomes small is appended
        // there.
        let (mut large, mut small): (Vec<usize>, Vec<usize>) = (0..size).partition(|&k| shares[k] >= 1.0);
        while let (Some(&l), Some(s)) = (large.last(), small.pop()) {
            columns[s] = ((shares[s] * 4_294_967_296.0) as u32, l as u32);
            shares[l] -= 1.0 - shares[s];
            if shares[l] < 1.0 {
                large.pop();
                small.push(l);
            }
        }
        Self { columns }
    }

    /// Upper bound of the numbers, exclusive.
    pub(super) fn size(&self) -> u32 {
        u32::try_from(self.columns.len()).unwrap_or(u32::MAX)
    }

    #[expect(clippy::cast_possible_truncation, reason = "the two halves of a word")]
    /// Draws a number.
    pub(super) fn sample(&self, rng: &mut impl Rng) -> u32 {
        let word: u64 = rng.random();
        let column = ((word >> 32) * self.columns.len() as u64) >> 32;
        let (share, alias) = self.columns[column as usize];
        if (word as u32) < share { column as u32 } else { alias }
    }
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn words_are_met_by_zipfs_law() {
        let zipf = Zipf::new(100, 1.0);
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let mut counts = [0_u32; 100];
        for _ in 0..1_000_000 {
            counts[zipf.sample(&mut rng) as usize] += 1;
        }
        // The harmonic number of 100 is 5.187; five standard deviations around the expected counts.
        for k in [1_usize, 2, 3, 10, 50, 100] {
            let expected = 1e6 / k as f64 / 5.187_377_518;
            let error = f64::from(counts[k - 1]) - expected;
            assert!(error.abs() < 5.0 * expected.sqrt(), "{k}: {error}");
        }
    }

    #[test]
    fn every_script_has_its_letters() {
        let mut rng = ChaCha8Rng::seed_from_u64(7);
        let samples = Script::USUAL.map(|script| {
            let vocabulary = ScriptVocabulary::new(script, 1000, 1.0, &mut rng);
            assert_eq!(vocabulary.law().size(), 1000);
            assert!(
                (0..1000).all(|k| vocabulary.word(k).chars().all(char::is_alphanumeric)),
                "{}",
                script.name()
            );
            assert!((0..1000).all(|k| vocabulary.capital(k).to_lowercase() == vocabulary.word(k)));
            vocabulary.word(999).chars().next().unwrap()
        });
        let blocks = samples.map(|c| u32::from(c) >> 8);
        assert_eq!(blocks[..5], [0x00, 0x04, 0x03, 0x09, 0x06]);
        assert!(matches!(blocks[5], 0x30 | 0x4e..=0x5f));
    }
}
