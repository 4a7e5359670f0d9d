//! A feed of one shape: texts of one template, copies of one text, or documents that are all rewritten
//! repeatedly.
//!
//! Input: [`Rounds`]. Output: records, the same for the same parameters. In each round every document is sent
//! once, in the order of the ids. Then a fraction of them is deleted, in random order. A text has its own
//! words by Zipf's law; in a *family* it has the words of one template, with a number of them replaced at
//! random places. With no replaced word all texts are copies.

use std::iter;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

#[cfg(doc)]
use super::Params;
use super::vocabulary::ScriptVocabulary;
use super::words::WordSequence;
use super::{Script, log_uniform, problems_of_words};
use dupflow_connectors::formats::feed::FeedRecord;
use dupflow_core::doc::fields::EventFields;
use dupflow_core::doc::{DocEvent, DocId};

/// Parameters of such a feed.
#[derive(Clone, Debug, PartialEq)]
pub struct Rounds {
    /// Number of documents.
    pub documents: u64,
    /// The seed of all random numbers.
    pub seed: u64,
    /// How often each document is sent, each time with another text unless all are copies; 1 or more.
    pub rounds: u64,
    /// Number of words of the template that are replaced in each text; `None`: each text has words of its
    /// own.
    pub family: Option<usize>,
    /// The fraction of documents that is deleted at the end.
    pub drop: f64,
    /// See [`Params::vocabulary`].
    pub vocabulary: usize,
    /// See [`Params::zipf`].
    pub zipf: f64,
    /// Minimum length of a text in words, inclusive.
    pub min_words: usize,
    /// Maximum length of a text in words, exclusive.
    pub max_words: usize,
    /// The script of all texts.
    pub script: Script,
}

impl Rounds {
    /// Parameters that are out of range: the field, and what is expected.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = problems_of_words(self.vocabulary, self.min_words, self.max_words, self.zipf);
        let mut require = |field, found: String, fine: bool, expected: &str| {
            if !fine {
                problems.push((field, format!("found {found}, expected {expected}")));
            }
        };
        require("rounds", self.rounds.to_string(), self.rounds > 0, "1 or more");
        let drop = self.drop.to_string();
        require("drop", drop, (0.0..=1.0).contains(&self.drop), "a number from 0 to 1");
        let edits = self.family.unwrap_or_default();
        let at_most = format!("at most {}, the words of the shortest text", self.min_words);
        require("family", edits.to_string(), edits <= self.min_words, &at_most);
        problems
    }

    /// The feed.
    ///
    /// # Panics
    /// May panic on parameters that have [problems](Self::problems).
    pub fn feed(&self) -> impl Iterator<Item = FeedRecord<'static>> + use<> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let vocabulary = ScriptVocabulary::new(self.script, self.vocabulary, self.zipf, &mut rng);
        let lengths = (self.min_words, self.max_words);
        let own = move |draws: &mut ChaCha8Rng, words: &ScriptVocabulary| {
            WordSequence::sample(words.law(), log_uniform(lengths.0, lengths.1, draws), draws)
        };
        let template = own(&mut rng, &vocabulary);
        let mut last: Vec<u64> = (0..self.documents).collect();
        last.shuffle(&mut ChaCha8Rng::seed_from_u64(!self.seed));
        #[expect(
            clippy::cast_possible_truncation,
            clippy::cast_sign_loss,
            clippy::cast_precision_loss,
            reason = "a share of a number of documents"
        )]
        last.truncate((self.documents as f64 * self.drop).round() as usize);
        let (documents, family) = (self.documents, self.family);
        let upserts = (0..self.rounds).flat_map(move |_| 0..documents).map(move |n| {
            let words = match family {
                Some(edits) => template.replaced(edits, vocabulary.law(), &mut rng),
                None => own(&mut rng, &vocabulary),
            };
            let mut text = String::new();
            words.write(&vocabulary, &mut text);
            (n, Some(text))
        });
        let events = upserts.chain(last.into_iter().map(|n| (n, None)));
        events.zip(times()).map(|((n, text), ts)| {
            let id = DocId::new(&format!("doc/{n:08}")).expect("short, and not empty");
            FeedRecord {
                event: DocEvent {
                    id,
                    ts: Some(ts),
                    written: None,
                    text: text.map(Into::into),
                    fields: EventFields::default(),
                },
                ts: Some(ts),
            }
        })
    }
}

/// Increases by one second with each event.
fn times() -> impl Iterator<Item = f64> {
    iter::successors(Some(1_700_000_000.0), |ts| Some(ts + 1.0))
}
