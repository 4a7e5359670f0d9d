//! A feed of one shape: texts of one template, copies of one text, documents that are all rewritten again and
//! again.
//!
//! [`Rounds`] in, records out, the same ones for the same values. In each round every document is sent once,
//! in the order of the ids; then a share of them is deleted, in random order. A text is made of words by
//! Zipf's law: of its own, or, in a *family*, the words of one template with so many of them, at random
//! places, replaced by others. With no edit they are copies.

use std::iter;

use rand::SeedableRng;
use rand::seq::SliceRandom;
use rand_chacha::ChaCha8Rng;

#[cfg(doc)]
use super::Params;
use super::vocabulary::Vocabulary;
use super::words::Words;
use super::{Script, log_uniform, problems_of_words};
use dupflow_connectors::formats::feed::FeedRecord;
use dupflow_core::doc::{DocEvent, DocId};

/// What such a feed is made of.
#[derive(Clone, Debug, PartialEq)]
pub struct Rounds {
    /// Documents.
    pub documents: u64,
    /// Everything random depends on it.
    pub seed: u64,
    /// How often each document is sent, with another text each time but for copies; 1 or more.
    pub rounds: u64,
    /// How many words of the template are replaced in each text; `None`: each text has words of its own.
    pub family: Option<usize>,
    /// The share of the documents that is deleted at the end.
    pub drop: f64,
    /// See [`Params::vocabulary`].
    pub vocabulary: usize,
    /// See [`Params::zipf`].
    pub zipf: f64,
    /// The shortest text in words, inclusive.
    pub min_words: usize,
    /// The longest text in words, exclusive.
    pub max_words: usize,
    /// The script of all texts.
    pub script: Script,
}

impl Rounds {
    /// What is out of its range: the field, and what it has to be.
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
    /// Perhaps, on values that have [problems](Self::problems).
    pub fn feed(&self) -> impl Iterator<Item = FeedRecord<'static>> + use<> {
        let mut rng = ChaCha8Rng::seed_from_u64(self.seed);
        let vocabulary = Vocabulary::new(self.script, self.vocabulary, self.zipf, &mut rng);
        let lengths = (self.min_words, self.max_words);
        let own = move |draws: &mut ChaCha8Rng, words: &Vocabulary| {
            Words::sample(words.law(), log_uniform(lengths.0, lengths.1, draws), draws)
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
                event: DocEvent { id, ts: Some(ts), written: None, text: text.map(Into::into) },
                ts: Some(ts),
            }
        })
    }
}

/// A second later for each event.
fn times() -> impl Iterator<Item = f64> {
    iter::successors(Some(1_700_000_000.0), |ts| Some(ts + 1.0))
}
