//! A synthetic feed with planted near-duplicates, for tests, benches and first steps.
//!
//! Input: [`Params`]. Output: [`FeedRecord`]s, the same for the same parameters. Records are generated while
//! they are read. Copies, near-duplicates, updates and deletes are drawn from a window of [`Params::window`]
//! documents, so memory does not grow with the feed.
//!
//! - A text is a header, a body and a footer. Header and footer are boilerplate: the same on all pages of one
//!   of [`Params::sites`]. The words of the body follow Zipf's law in the vocabulary of the site's script
//!   (Latin, Cyrillic, Greek, Devanagari, Arabic, or Han and Hiragana without spaces). Lengths are
//!   log-uniform.
//! - A near-duplicate is a text of the window with each word of its body substituted, dropped, or followed by
//!   a new one, each with a third of an *edit rate* e that is drawn uniformly from `0..max_edit_rate`. At
//!   least one word changes. Of the 3-word shingles of the body the fraction `k = (1 - e)^2 (1 - 2 e / 3)`
//!   survives, so that the similarity of the two bodies is about `k / (2 - k)`: 1 at e = 0, 0.5 at e = 0.142.
//! - An update edits a document in the same way and keeps its id; a repeat sends its text again, unchanged.
//!
//! It does not determine which pairs are similar: that requires exact comparison of the texts. [`labelled`]
//! generates corpora with known derivations.

pub mod labelled;
mod rounds;
mod spaceless;
mod vocabulary;
mod words;

use std::borrow::Cow;
use std::fmt::Write;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

pub use self::rounds::Rounds;
pub use self::vocabulary::Script;
use self::vocabulary::ScriptVocabulary;
use self::words::WordSequence;
use dupflow_connectors::formats::feed::FeedRecord;
use dupflow_core::doc::fields::EventFields;
use dupflow_core::doc::{DocEvent, DocId};

/// Parameters of a synthetic feed. Fractions are probabilities in `0.0..=1.0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Number of documents, each with its own id.
    pub documents: u64,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Words of each script, 1 to 10 million.
    pub vocabulary: usize,
    /// The exponent of Zipf's law: the k-th word occurs in proportion to `1 / k^zipf`.
    pub zipf: f64,
    /// Minimum length of a body in words, inclusive; 1 or more.
    pub min_words: usize,
    /// Maximum length of a body in words, exclusive; more than `min_words`, at most a million.
    pub max_words: usize,
    /// Number of sites, each with its own boilerplate and script; 1 or more.
    pub sites: usize,
    /// The scripts, assigned to sites in turn; 1 or more.
    pub scripts: Vec<Script>,
    /// Number of documents that can still be copied, edited or deleted; 1 or more.
    pub window: usize,
    /// Maximum edit rate, exclusive, in edits per word.
    pub max_edit_rate: f64,
    /// Fraction of new documents that are exact copies of another one.
    pub copies: f64,
    /// Fraction of new documents that are edits of another one.
    pub near: f64,
    /// Fraction of new documents whose text has no token.
    pub empty: f64,
    /// Fraction of new documents with one to four words and no boilerplate.
    pub short: f64,
    /// Fraction of events that edit a document.
    pub updates: f64,
    /// Fraction of events that send the present text again.
    pub repeats: f64,
    /// Fraction of events that are deletes; one in 16 of them has an id that never existed.
    pub deletes: f64,
}

impl Params {
    /// A feed of new texts in Latin letters, each with tokens: no event changes one.
    pub(crate) fn for_texts(documents: u64, seed: u64) -> Self {
        Self {
            documents,
            seed,
            scripts: vec![Script::Latin],
            empty: 0.0,
            short: 0.0,
            updates: 0.0,
            repeats: 0.0,
            deletes: 0.0,
            ..Self::default()
        }
    }

    /// Parameters that are out of range: the field, and what is expected. If there are none, a feed can be
    /// generated.
    pub fn problems(&self) -> Vec<(&'static str, String)> {
        let mut problems = problems_of_words(self.vocabulary, self.min_words, self.max_words, self.zipf);
        let mut require = |field, found: String, fine: bool, expected: &str| {
            if !fine {
                problems.push((field, format!("found {found}, expected {expected}")));
            }
        };
        for (field, found, most) in [("sites", self.sites, 1_000_000), ("window", self.window, 10_000_000)] {
            let expected = format!("a whole number from 1 to {most}");
            require(field, found.to_string(), (1..=most).contains(&found), &expected);
        }
        require("scripts", "none".to_owned(), !self.scripts.is_empty(), "one or more");
        let shares = [
            ("max_edit_rate", self.max_edit_rate),
            ("copies", self.copies),
            ("near", self.near),
            ("empty", self.empty),
            ("short", self.short),
            ("updates", self.updates),
            ("repeats", self.repeats),
            ("deletes", self.deletes),
        ];
        let is_share = |share: f64| (0.0..=1.0).contains(&share);
        for (field, share) in shares {
            require(field, share.to_string(), is_share(share), "a number from 0 to 1");
        }
        if shares.iter().all(|(_, share)| is_share(*share)) {
            let (near, related) = (self.near.to_string(), self.copies + self.near);
            require("near", near, related <= 1.0, "at most 1 together with the copies");
            let (short, odd) = (self.short.to_string(), self.empty + self.short);
            require("short", short, odd <= 1.0, "at most 1 together with the empty texts");
            let (deletes, old) = (self.deletes.to_string(), self.updates + self.repeats + self.deletes);
            let room = "less than 1 together with updates and repeats, for documents to be new";
            require("deletes", deletes, old < 1.0, room);
        }
        problems
    }
}

impl Default for Params {
    fn default() -> Self {
        Self {
            documents: 10_000,
            seed: 1,
            vocabulary: 20_000,
            zipf: 1.0,
            min_words: 40,
            max_words: 400,
            sites: 60,
            scripts: Script::USUAL.to_vec(),
            window: 1_000,
            max_edit_rate: 0.16,
            copies: 0.05,
            near: 0.25,
            empty: 0.002,
            short: 0.01,
            updates: 0.15,
            repeats: 0.02,
            deletes: 0.05,
        }
    }
}

/// Generates the feed event by event. See the [module](self).
#[derive(Debug)]
pub struct Generator {
    params: Params,
    rng: ChaCha8Rng,
    vocabularies: Vec<ScriptVocabulary>,
    sites: Vec<Site>,
    window: Vec<WindowPage>,
    /// Number of documents generated so far.
    made: u64,
    /// Unix seconds.
    ts: u64,
}

#[derive(Debug)]
struct Site {
    script: usize,
    header: WordSequence,
    footer: WordSequence,
}

/// A document that is in the window and alive.
#[derive(Clone, Debug)]
struct WindowPage {
    id: DocId,
    site: usize,
    body: PageBody,
}

#[derive(Clone, Debug)]
enum PageBody {
    /// A page of the site, with its header and footer.
    Whole(WordSequence),
    Short(WordSequence),
    Empty,
}

impl Generator {
    /// Prepares vocabularies and boilerplate. This and the iterator may panic on parameters that have
    /// [problems](Params::problems).
    pub fn new(params: Params) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
        let vocabularies: Vec<_> = params
            .scripts
            .iter()
            .map(|&script| ScriptVocabulary::new(script, params.vocabulary, params.zipf, &mut rng))
            .collect();
        let sites = (0..params.sites)
            .map(|site| {
                let script = site % vocabularies.len();
                let mut boilerplate = |least| {
                    let length = rng.random_range(least..least + 8);
                    WordSequence::sample(vocabularies[script].law(), length, &mut rng)
                };
                Site { script, header: boilerplate(4), footer: boilerplate(8) }
            })
            .collect();
        Self { params, rng, vocabularies, sites, window: Vec::new(), made: 0, ts: 1_700_000_000 }
    }

    /// A new document.
    fn new_page(&mut self) -> WindowPage {
        let Params { copies, near, empty, short, .. } = self.params;
        let draw: f64 = self.rng.random();
        let related = draw < copies + near && !self.window.is_empty();
        let (site, body) = if related {
            let like = self.rng.random_range(0..self.window.len());
            let WindowPage { site, body, .. } = &self.window[like];
            let (site, body) = (*site, body.clone());
            (site, if draw < copies { body } else { self.edited(site, &body) })
        } else {
            let site = self.rng.random_range(0..self.sites.len());
            let vocabulary = &self.vocabularies[self.sites[site].script];
            let kind: f64 = self.rng.random();
            let body = if kind < empty {
                PageBody::Empty
            } else if kind < empty + short {
                let length = self.rng.random_range(1..5);
                PageBody::Short(WordSequence::sample_evenly(vocabulary.law(), length, &mut self.rng))
            } else {
                let length = log_uniform(self.params.min_words, self.params.max_words, &mut self.rng);
                PageBody::Whole(WordSequence::sample(vocabulary.law(), length, &mut self.rng))
            };
            (site, body)
        };
        let script = self.params.scripts[self.sites[site].script].name();
        let id = DocId::new(&format!("{script}/{site}/{}", self.made)).expect("short, and not empty");
        self.made += 1;
        WindowPage { id, site, body }
    }

    /// The body with a random fraction of its words changed.
    fn edited(&mut self, site: usize, body: &PageBody) -> PageBody {
        let rate = self.rng.random::<f64>() * self.params.max_edit_rate;
        let law = self.vocabularies[self.sites[site].script].law();
        match body {
            PageBody::Whole(words) => PageBody::Whole(words.edited(rate, law, &mut self.rng)),
            PageBody::Short(words) => PageBody::Short(words.edited(rate, law, &mut self.rng)),
            PageBody::Empty => PageBody::Empty,
        }
    }

    /// Adds a page to the window; replaces a random one if it is full.
    fn remember(&mut self, page: WindowPage) {
        if self.window.len() < self.params.window {
            self.window.push(page);
        } else {
            let place = self.rng.random_range(0..self.window.len());
            self.window[place] = page;
        }
    }

    fn text(&self, page: &WindowPage) -> String {
        let Site { script, header, footer } = &self.sites[page.site];
        let vocabulary = &self.vocabularies[*script];
        let mut text = String::new();
        match &page.body {
            PageBody::Whole(body) => {
                for (part, end) in [(header, "\n\n"), (body, "\n\n"), (footer, "\n")] {
                    part.write(vocabulary, &mut text);
                    text.push_str(end);
                }
            }
            PageBody::Short(words) => words.write(vocabulary, &mut text),
            PageBody::Empty => text.push_str(if page.site.is_multiple_of(2) { "" } else { "---\n***\n" }),
        }
        text
    }

    fn record(&mut self, id: DocId, text: Option<String>) -> FeedRecord<'static> {
        // Most events have the same second as the previous one.
        self.ts += u64::from(self.rng.random_ratio(1, 8));
        #[expect(clippy::cast_precision_loss, reason = "seconds stay far below 2^53")]
        let ts = Some(self.ts as f64);
        let (text, fields) = (text.map(Cow::Owned), EventFields::default());
        FeedRecord { event: DocEvent { id, ts, written: None, text, fields }, ts }
    }
}

impl Iterator for Generator {
    type Item = FeedRecord<'static>;

    fn next(&mut self) -> Option<FeedRecord<'static>> {
        if self.made >= self.params.documents {
            return None;
        }
        let Params { updates, repeats, deletes, .. } = self.params;
        let draw: f64 = self.rng.random();
        if self.window.is_empty() || draw >= updates + repeats + deletes {
            let page = self.new_page();
            let text = self.text(&page);
            let id = page.id.clone();
            self.remember(page);
            return Some(self.record(id, Some(text)));
        }
        let place = self.rng.random_range(0..self.window.len());
        if draw < updates {
            let body = self.window[place].body.clone();
            self.window[place].body = self.edited(self.window[place].site, &body);
        } else if draw >= updates + repeats {
            let mut id = self.window[place].id.clone();
            if self.rng.random_ratio(1, 16) {
                let mut never = id.to_string();
                write!(never, "/never").expect("strings can be written to");
                id = DocId::new(&never).expect("short, and not empty");
            } else {
                self.window.swap_remove(place);
            }
            return Some(self.record(id, None));
        }
        let page = &self.window[place];
        let (id, text) = (page.id.clone(), self.text(page));
        Some(self.record(id, Some(text)))
    }
}

/// Parameters of the words of texts that are out of range: the field, and what is expected.
fn problems_of_words(
    vocabulary: usize,
    min_words: usize,
    max_words: usize,
    zipf: f64,
) -> Vec<(&'static str, String)> {
    let within = |field, found: usize, most: usize| {
        let is_fine = (1..=most).contains(&found);
        (field, is_fine, format!("found {found}, expected a whole number from 1 to {most}"))
    };
    let above = format!("found {max_words}, expected more than the shortest, {min_words}");
    let checked = [
        within("vocabulary", vocabulary, 10_000_000),
        within("min_words", min_words, 1_000_000),
        within("max_words", max_words, 1_000_000),
        ("max_words", max_words > min_words, above),
        ("zipf", (0.0..=10.0).contains(&zipf), format!("found {zipf}, expected a number from 0 to 10")),
    ];
    checked.into_iter().filter(|(_, is_fine, _)| !is_fine).map(|(field, _, said)| (field, said)).collect()
}

/// A length in `least..most`, log-uniform.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    clippy::cast_precision_loss,
    reason = "lengths of texts"
)]
fn log_uniform(least: usize, most: usize, rng: &mut impl Rng) -> usize {
    let (least, most) = ((least.max(1) as f64).ln(), (most.max(2) as f64).ln());
    (least + rng.random::<f64>() * (most - least)).exp() as usize
}

#[cfg(test)]
mod tests;
