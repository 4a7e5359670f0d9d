//! A corpus with labels: texts that derive from one another in known ways, and unrelated texts.
//!
//! Input: [`Labelled`]. Output: [`LabelledDocument`]s, the same for the same parameters. Documents of one
//! label derive from one original:
//!
//! | [`Level`] | change of the original |
//! |---|---|
//! | `copy` | none |
//! | `edit-1`, `-2`, `-5`, `-10`, `-20` | so many of 100 words replaced, dropped, or followed by a new one |
//! | `moved` | its paragraphs are reordered |
//! | `light` | a light revision: 5 % of words are edited, and two paragraphs are swapped |
//! | `heavy` | a heavy revision: 25 % of words are edited, and the paragraphs are reordered |
//! | `mixed` | half of its paragraphs with a light revision, the others new |
//! | `unrelated` | a new text with a label of its own |
//!
//! Each text has one of [`Labelled::topics`]. A third of its words are the topic's, and it contains some of
//! the topic's stock phrases. So unrelated texts of one topic share words and a few shingles, as those of a
//! newspaper do.
//!
//! Words are numbers until they are written. The same parameters with another script give the same documents
//! with the same edits, word by word, in other letters.
//!
//! Reference: P. Clough and M. Stevenson, *Developing a corpus of plagiarised short answers* (2011), for the
//! levels.

use std::fmt;

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::log_uniform;
use super::vocabulary::{Script, ScriptVocabulary, Zipf};
use super::words::WordSequence;
use dupflow_core::doc::DocId;

/// Words of a paragraph.
const PARAGRAPH: usize = 60;
/// Words of a topic.
const TOPIC: usize = 300;
/// Stock phrases of a topic.
const PHRASES: usize = 12;

/// What a labelled corpus is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Labelled {
    /// The seed of all random numbers.
    pub seed: u64,
    /// Number of documents, at least two for each group.
    pub documents: usize,
    /// Number of originals with derived documents; 1 or more. Groups have very different sizes.
    pub groups: usize,
    /// Number of topics; 1 or more.
    pub topics: usize,
    /// The fraction of documents that are unrelated to any other; 0 to 1.
    pub unrelated: f64,
    /// Words of each script, 1 to 10 million.
    pub vocabulary: usize,
    /// The exponent of Zipf's law.
    pub zipf: f64,
    /// Minimum length of a text in words, inclusive.
    pub min_words: usize,
    /// Maximum length of a text in words, exclusive; more than `min_words`.
    pub max_words: usize,
    /// The scripts, assigned to groups and unrelated texts in turn; 1 or more.
    pub scripts: Vec<Script>,
}

impl Default for Labelled {
    fn default() -> Self {
        Self {
            seed: 1,
            documents: 2_000,
            groups: 200,
            topics: 20,
            unrelated: 0.25,
            vocabulary: 20_000,
            zipf: 1.0,
            min_words: 100,
            max_words: 1_000,
            scripts: vec![Script::Latin],
        }
    }
}

/// How a document derives from the original of its group.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Level {
    /// The original.
    Original,
    /// See the [module](self), as for the following ones.
    Copy,
    /// This percentage of words is edited.
    Edit(u8),
    /// Reordered paragraphs.
    Moved,
    /// A light revision.
    Light,
    /// A heavy revision.
    Heavy,
    /// Half of it is new.
    Mixed,
    /// No original.
    Unrelated,
}

impl Level {
    /// All levels of derived documents.
    pub const DERIVED: [Self; 10] = [
        Self::Copy,
        Self::Edit(1),
        Self::Edit(2),
        Self::Edit(5),
        Self::Edit(10),
        Self::Edit(20),
        Self::Moved,
        Self::Light,
        Self::Heavy,
        Self::Mixed,
    ];
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Original => "original",
            Self::Copy => "copy",
            Self::Edit(percent) => return write!(f, "edit-{percent}"),
            Self::Moved => "moved",
            Self::Light => "light",
            Self::Heavy => "heavy",
            Self::Mixed => "mixed",
            Self::Unrelated => "unrelated",
        })
    }
}

/// A document with its label.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelledDocument {
    /// Composed of its label, a number within it, and its level.
    pub id: DocId,
    /// Documents of one label are duplicates.
    pub label: String,
    /// How it derives from its original.
    pub level: Level,
    /// The text.
    pub text: String,
}

impl Labelled {
    /// Parameters that are out of range: the field, and what is expected. If there are none, a corpus can be
    /// generated.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let Self { documents, groups, topics, unrelated, vocabulary, zipf, min_words, max_words, .. } = *self;
        let whole = 1..=10_000_000;
        let related = documents.saturating_sub(self.unrelated());
        [
            ("vocabulary", whole.contains(&vocabulary), "a whole number from 1 to 10000000"),
            ("zipf", (0.0..=10.0).contains(&zipf), "a number from 0 to 10"),
            ("min_words", (1..=1_000_000).contains(&min_words), "a whole number from 1 to 1000000"),
            ("max_words", max_words > min_words, "more than the fewest words"),
            ("topics", whole.contains(&topics), "a whole number from 1 to 10000000"),
            ("unrelated", (0.0..=1.0).contains(&unrelated), "a number from 0 to 1"),
            (
                "groups",
                groups >= 1 && related / 2 >= groups,
                "1 or more, with two related documents for each",
            ),
            ("scripts", !self.scripts.is_empty(), "one or more"),
        ]
        .into_iter()
        .filter(|(_, is_fine, _)| !is_fine)
        .map(|(field, _, expected)| (field, format!("expected {expected}")))
        .collect()
    }

    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a number of documents"
    )]
    #[expect(clippy::cast_precision_loss, reason = "a share of a number of documents")]
    fn unrelated(&self) -> usize {
        (self.documents as f64 * self.unrelated.clamp(0.0, 1.0)) as usize
    }

    /// The corpus, group by group, then the unrelated documents; each text is made when the iterator reaches
    /// it. May panic on parameters that have [problems](Self::problems).
    pub fn corpus(&self) -> impl Iterator<Item = LabelledDocument> {
        let mut writer = TextWriter::new(self);
        let sizes = self.sizes(&mut writer.rng);
        let groups = sizes.into_iter().enumerate().flat_map(|(group, size)| {
            (0..size).map(move |n| match n.checked_sub(1) {
                None => (group, n, Level::Original),
                // Groups start with different levels, so that small groups together have all of them.
                Some(n) => (group, n + 1, Level::DERIVED[(group + n) % Level::DERIVED.len()]),
            })
        });
        let unrelated = (0..self.unrelated()).map(|n| (n, 0, Level::Unrelated));
        groups.chain(unrelated).map(move |(group, n, level)| writer.document(group, n, level))
    }

    /// The size of each group, 2 or more. The remaining documents are distributed with random weights.
    fn sizes(&self, rng: &mut ChaCha8Rng) -> Vec<usize> {
        let shares: Vec<f64> = (0..self.groups).map(|_| -(1.0 - rng.random::<f64>()).ln()).collect();
        let whole: f64 = shares.iter().sum();
        let mut sizes = vec![2; self.groups];
        for _ in 2 * self.groups..self.documents - self.unrelated() {
            let mut draw = rng.random::<f64>() * whole;
            let place = shares.iter().position(|share| {
                draw -= share;
                draw < 0.0
            });
            sizes[place.unwrap_or(0)] += 1;
        }
        sizes
    }
}

/// The words and phrases of a topic.
#[derive(Debug)]
struct TextTopic {
    words: Vec<u32>,
    phrases: Vec<Vec<u32>>,
}

#[derive(Debug)]
struct TextWriter {
    rng: ChaCha8Rng,
    scripts: Vec<(Script, ScriptVocabulary)>,
    law: Zipf,
    of_topic: Zipf,
    topics: Vec<TextTopic>,
    lengths: (usize, usize),
    /// The topic and the paragraphs of the present original.
    original: (usize, Vec<WordSequence>),
}

impl TextWriter {
    fn new(of: &Labelled) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(of.seed);
        // Each script's letters have a generator of their own: no text depends on the other scripts.
        let letters = |script: &Script| {
            let mut apart = ChaCha8Rng::seed_from_u64(of.seed);
            apart.set_stream(1 + *script as u64);
            (*script, ScriptVocabulary::distinct(*script, of.vocabulary, of.zipf, &mut apart))
        };
        let scripts = of.scripts.iter().map(letters).collect();
        let law = Zipf::new(of.vocabulary, of.zipf);
        let topic = |_| TextTopic {
            words: (0..TOPIC).map(|_| rng.random_range(0..law.size())).collect(),
            phrases: (0..PHRASES).map(|n| (0..5 + n % 4).map(|_| law.sample(&mut rng)).collect()).collect(),
        };
        let topics = (0..of.topics).map(topic).collect();
        let of_topic = Zipf::new(TOPIC, of.zipf);
        let lengths = (of.min_words, of.max_words);
        Self { rng, scripts, law, of_topic, topics, lengths, original: (0, Vec::new()) }
    }

    fn document(&mut self, group: usize, n: usize, level: Level) -> LabelledDocument {
        let paragraphs = self.paragraphs(level);
        let label = format!("{}{group}", if level == Level::Unrelated { "u" } else { "g" });
        let (_, vocabulary) = &self.scripts[group % self.scripts.len()];
        let mut text = String::new();
        for paragraph in &paragraphs {
            paragraph.write(vocabulary, &mut text);
            text.push_str("\n\n");
        }
        let id = DocId::new(&format!("{label}/{n}-{level}")).expect("short, and not empty");
        LabelledDocument { id, label, level, text }
    }

    fn paragraphs(&mut self, level: Level) -> Vec<WordSequence> {
        let edited = |writer: &mut Self, rate| -> Vec<WordSequence> {
            let Self { original: (_, original), law, rng, .. } = writer;
            original.iter().map(|words| words.altered(rate, law, rng)).collect()
        };
        match level {
            Level::Original | Level::Unrelated => {
                let topic = self.rng.random_range(0..self.topics.len());
                let length = log_uniform(self.lengths.0, self.lengths.1, &mut self.rng).max(1);
                let starts = (0..length).step_by(PARAGRAPH);
                let text: Vec<WordSequence> =
                    starts.map(|start| self.paragraph(topic, PARAGRAPH.min(length - start))).collect();
                if level == Level::Original {
                    self.original = (topic, text.clone());
                }
                text
            }
            Level::Copy => self.original.1.clone(),
            Level::Edit(percent) => edited(self, f64::from(percent) / 100.0),
            Level::Moved => {
                let mut text = self.original.1.clone();
                text.shuffle(&mut self.rng);
                text
            }
            Level::Light => {
                let mut text = edited(self, 0.05);
                let [a, b] = [(); 2].map(|()| self.rng.random_range(0..text.len()));
                text.swap(a, b);
                text
            }
            Level::Heavy => {
                let mut text = edited(self, 0.25);
                text.shuffle(&mut self.rng);
                text
            }
            Level::Mixed => {
                let mut text = edited(self, 0.05);
                let mut places: Vec<usize> = (0..text.len()).collect();
                places.shuffle(&mut self.rng);
                let topic = self.original.0;
                for &place in &places[..text.len() / 2] {
                    text[place] = self.paragraph(topic, text[place].len().max(1));
                }
                text
            }
        }
    }

    /// New words about a topic.
    fn paragraph(&mut self, topic: usize, length: usize) -> WordSequence {
        let Self { rng, law, of_topic, topics, .. } = self;
        let topic = &topics[topic];
        let mut words: Vec<u32> = Vec::with_capacity(length + 8);
        while words.len() < length {
            match rng.random_range(0..100) {
                0 => words.extend(&topic.phrases[rng.random_range(0..PHRASES)]),
                1..34 => words.push(topic.words[of_topic.sample(rng) as usize]),
                _ => words.push(law.sample(rng)),
            }
        }
        words.into_iter().collect()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::{BTreeMap, BTreeSet};

    use super::*;

    fn words(text: &str) -> Vec<String> {
        let split = text.split(|c: char| !c.is_alphanumeric()).filter(|word| !word.is_empty());
        split.map(str::to_lowercase).collect()
    }

    fn jaccard(a: &str, b: &str) -> f64 {
        let [a, b] =
            [a, b].map(|text| words(text).windows(3).map(<[String]>::to_vec).collect::<BTreeSet<_>>());
        let common = a.intersection(&b).count();
        common as f64 / (a.len() + b.len() - common) as f64
    }

    fn corpus(of: &Labelled) -> Vec<LabelledDocument> {
        of.corpus().collect()
    }

    #[test]
    fn the_seed_decides_everything() {
        let of = Labelled { documents: 100, groups: 10, ..Labelled::default() };
        assert_eq!(of.problems(), []);
        let documents = corpus(&of);
        assert_eq!(documents, corpus(&of));
        assert_ne!(documents, corpus(&Labelled { seed: 2, ..of.clone() }));
        assert_eq!(documents.len(), 100);
        assert_eq!(documents.iter().filter(|d| d.level == Level::Unrelated).count(), 25);
        let ids: BTreeSet<_> = documents.iter().map(|document| &document.id).collect();
        assert_eq!(ids.len(), 100);
        let mut groups = BTreeMap::<_, usize>::new();
        documents.iter().for_each(|document| *groups.entry(&document.label).or_default() += 1);
        assert_eq!(groups.len(), 35);
        assert!(documents.iter().all(|d| (groups[&d.label] > 1) == (d.level != Level::Unrelated)));
    }

    /// The similarity to the original follows from the edit rate: of the shingles the fraction k = (1 - e)^2
    /// (1 - 2 e / 3) survives e edits per word, and J = k / (2 - k).
    #[test]
    fn levels_are_as_strong_as_they_say() {
        let of =
            Labelled { documents: 660, groups: 60, unrelated: 0.0, min_words: 400, ..Labelled::default() };
        let mut original = String::new();
        let mut found = BTreeMap::<Level, Vec<f64>>::new();
        for document in corpus(&of) {
            if document.level == Level::Original {
                original = document.text;
            } else {
                found.entry(document.level).or_default().push(jaccard(&original, &document.text));
            }
        }
        let mean = |level: Level| found[&level].iter().sum::<f64>() / found[&level].len() as f64;
        assert!(found[&Level::Copy].iter().all(|j| (*j - 1.0).abs() < 1e-12));
        for percent in [1, 2, 5, 10, 20] {
            let e = f64::from(percent) / 100.0;
            let k = (1.0 - e).powi(2) * (1.0 - 2.0 * e / 3.0);
            let (expected, level) = (k / (2.0 - k), Level::Edit(percent));
            assert!((mean(level) - expected).abs() < 0.03, "{level}: {} for {expected}", mean(level));
        }
        for (level, expected) in [
            (Level::Moved, 0.88..1.0),
            (Level::Light, 0.68..0.8),
            (Level::Heavy, 0.2..0.36),
            (Level::Mixed, 0.2..0.45),
        ] {
            assert!(expected.contains(&mean(level)), "{level}: {}", mean(level));
        }
    }

    /// Texts of one topic have few shingles in common.
    #[test]
    fn unrelated_texts_are() {
        let of = Labelled { documents: 60, groups: 1, topics: 1, unrelated: 0.95, ..Labelled::default() };
        let texts: Vec<_> = corpus(&of).into_iter().filter(|d| d.level == Level::Unrelated).collect();
        let mut all = Vec::new();
        for (n, a) in texts.iter().enumerate() {
            all.extend(texts[..n].iter().map(|b| jaccard(&a.text, &b.text)));
        }
        assert!(all.iter().all(|j| *j < 0.1));
        assert!(all.iter().filter(|j| **j > 0.0).count() > all.len() / 2);
    }

    /// The same words in other letters: each word of one text always corresponds to the same word of the
    /// other.
    #[test]
    fn twins_have_the_same_words() {
        let of = Labelled { documents: 40, groups: 4, ..Labelled::default() };
        let cyrillic = Labelled { scripts: vec![Script::Cyrillic], ..of.clone() };
        let mut known = BTreeMap::<String, String>::new();
        for (a, b) in corpus(&of).into_iter().zip(corpus(&cyrillic)) {
            assert_eq!((&a.id, &a.label), (&b.id, &b.label));
            let (of_a, of_b) = (words(&a.text), words(&b.text));
            assert_eq!(of_a.len(), of_b.len());
            for (word, other) in of_a.into_iter().zip(of_b) {
                assert_eq!(*known.entry(word).or_insert_with(|| other.clone()), other);
            }
        }
        assert!(known.len() > 1000);
        for script in [Script::Chinese, Script::Japanese, Script::Thai] {
            let spaceless = Labelled { scripts: vec![script], ..of.clone() };
            assert!(corpus(&spaceless).iter().all(|document| !document.text.contains(". ")));
        }
    }
}
