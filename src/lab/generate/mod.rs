//! A synthetic feed with planted near-duplicates, for tests, benches and first steps.
//!
//! [`Params`] come in, [`FeedRecord`]s go out, the same ones for the same params. The feed is made as it is read:
//! what is kept is a window of [`Params::window`] documents, from which copies, near-duplicates, updates and
//! deletes are drawn, so that memory does not grow with the feed.
//!
//! - A text is a header, a body and a footer. Header and footer belong to one of [`Params::sites`] and are
//!   the same on all its pages: boilerplate. The words of the body follow Zipf's law in the vocabulary of the
//!   site's script (Latin, Cyrillic, Greek, Devanagari, Arabic, or Han and Hiragana without spaces). Lengths
//!   are log-uniform.
//! - A near-duplicate is a text of the window, each word of its body substituted, dropped, or followed by a
//!   new one, each with a third of an *edit rate* e that is drawn uniformly from `0..max_edit_rate`; at least
//!   one word changes. Of the 3-word shingles of the body a share of about `k = (1 - e)^2 (1 - 2 e / 3)`
//!   survives, so that the similarity of the two bodies is about `k / (2 - k)`: 1 at e = 0, 0.5 at e = 0.142.
//! - An update edits a document in the same way and keeps its id; a repeat sends its text again, unchanged.
//!
//! What it does not do: say which pairs are similar. That follows from the texts, by exact comparison.
//! [`labelled`] makes corpora that do say which texts come from which.

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
use self::vocabulary::Vocabulary;
use self::words::Words;
use dupflow_connectors::formats::feed::FeedRecord;
use dupflow_core::doc::{DocEvent, DocId};

/// What a synthetic feed is made of. Shares are probabilities in `0.0..=1.0`.
#[derive(Clone, Debug, PartialEq)]
pub struct Params {
    /// Documents that the feed brings; each has an id of its own.
    pub documents: u64,
    /// Everything random depends on it.
    pub seed: u64,
    /// Words of each script, 1 to 10 million.
    pub vocabulary: usize,
    /// The exponent of Zipf's law: the k-th word is met in proportion to `1 / k^zipf`.
    pub zipf: f64,
    /// The shortest body in words, inclusive; 1 or more.
    pub min_words: usize,
    /// The longest body in words, exclusive; more than `min_words`, at most a million.
    pub max_words: usize,
    /// Sites, each with its own boilerplate and script; 1 or more.
    pub sites: usize,
    /// The scripts, which sites take in turn; 1 or more.
    pub scripts: Vec<Script>,
    /// Documents that may still be copied, edited or deleted; 1 or more.
    pub window: usize,
    /// The greatest edit rate, exclusive, in edits per word.
    pub max_edit_rate: f64,
    /// Of new documents: exact copies of another one.
    pub copies: f64,
    /// Of new documents: edits of another one.
    pub near: f64,
    /// Of new documents: texts without a token.
    pub empty: f64,
    /// Of new documents: texts of one to four words and no boilerplate.
    pub short: f64,
    /// Of events: edits of a document in place.
    pub updates: f64,
    /// Of events: the text in force once more.
    pub repeats: f64,
    /// Of events: deletes; one in 16 of them names an id that never was.
    pub deletes: f64,
}

impl Params {
    /// What is out of its range: the field, and what it has to be. A feed can be made if there is nothing.
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

/// The feed, event by event. See the [module](self).
#[derive(Debug)]
pub struct Generator {
    params: Params,
    rng: ChaCha8Rng,
    vocabularies: Vec<Vocabulary>,
    sites: Vec<Site>,
    window: Vec<Page>,
    /// Documents made so far.
    made: u64,
    /// Unix seconds.
    ts: u64,
}

#[derive(Debug)]
struct Site {
    script: usize,
    header: Words,
    footer: Words,
}

/// A document that is still in the window, and alive.
#[derive(Clone, Debug)]
struct Page {
    id: DocId,
    site: usize,
    body: Body,
}

#[derive(Clone, Debug)]
enum Body {
    /// A page of the site, with its header and footer.
    Whole(Words),
    Short(Words),
    Empty,
}

impl Generator {
    /// Prepares vocabularies and boilerplate. Here and later it may panic on params that have
    /// [problems](Params::problems).
    pub fn new(params: Params) -> Self {
        let mut rng = ChaCha8Rng::seed_from_u64(params.seed);
        let vocabularies: Vec<_> = params
            .scripts
            .iter()
            .map(|&script| Vocabulary::new(script, params.vocabulary, params.zipf, &mut rng))
            .collect();
        let sites = (0..params.sites)
            .map(|site| {
                let script = site % vocabularies.len();
                let mut boilerplate = |least| {
                    let length = rng.random_range(least..least + 8);
                    Words::sample(vocabularies[script].law(), length, &mut rng)
                };
                Site { script, header: boilerplate(4), footer: boilerplate(8) }
            })
            .collect();
        Self { params, rng, vocabularies, sites, window: Vec::new(), made: 0, ts: 1_700_000_000 }
    }

    /// A document that was not there before.
    fn new_page(&mut self) -> Page {
        let Params { copies, near, empty, short, .. } = self.params;
        let draw: f64 = self.rng.random();
        let related = draw < copies + near && !self.window.is_empty();
        let (site, body) = if related {
            let like = self.rng.random_range(0..self.window.len());
            let Page { site, body, .. } = &self.window[like];
            let (site, body) = (*site, body.clone());
            (site, if draw < copies { body } else { self.edited(site, &body) })
        } else {
            let site = self.rng.random_range(0..self.sites.len());
            let vocabulary = &self.vocabularies[self.sites[site].script];
            let kind: f64 = self.rng.random();
            let body = if kind < empty {
                Body::Empty
            } else if kind < empty + short {
                let length = self.rng.random_range(1..5);
                Body::Short(Words::sample_evenly(vocabulary.law(), length, &mut self.rng))
            } else {
                let length = log_uniform(self.params.min_words, self.params.max_words, &mut self.rng);
                Body::Whole(Words::sample(vocabulary.law(), length, &mut self.rng))
            };
            (site, body)
        };
        let script = self.params.scripts[self.sites[site].script].name();
        let id = DocId::new(&format!("{script}/{site}/{}", self.made)).expect("short, and not empty");
        self.made += 1;
        Page { id, site, body }
    }

    /// The body with a random share of its words changed.
    fn edited(&mut self, site: usize, body: &Body) -> Body {
        let rate = self.rng.random::<f64>() * self.params.max_edit_rate;
        let law = self.vocabularies[self.sites[site].script].law();
        match body {
            Body::Whole(words) => Body::Whole(words.edited(rate, law, &mut self.rng)),
            Body::Short(words) => Body::Short(words.edited(rate, law, &mut self.rng)),
            Body::Empty => Body::Empty,
        }
    }

    /// Puts a page into the window, in the place of a random one if it is full.
    fn remember(&mut self, page: Page) {
        if self.window.len() < self.params.window {
            self.window.push(page);
        } else {
            let place = self.rng.random_range(0..self.window.len());
            self.window[place] = page;
        }
    }

    fn text(&self, page: &Page) -> String {
        let Site { script, header, footer } = &self.sites[page.site];
        let vocabulary = &self.vocabularies[*script];
        let mut text = String::new();
        match &page.body {
            Body::Whole(body) => {
                for (part, end) in [(header, "\n\n"), (body, "\n\n"), (footer, "\n")] {
                    part.write(vocabulary, &mut text);
                    text.push_str(end);
                }
            }
            Body::Short(words) => words.write(vocabulary, &mut text),
            Body::Empty => text.push_str(if page.site.is_multiple_of(2) { "" } else { "---\n***\n" }),
        }
        text
    }

    fn record(&mut self, id: DocId, text: Option<String>) -> FeedRecord<'static> {
        // Most events share their second with the one before.
        self.ts += u64::from(self.rng.random_ratio(1, 8));
        #[expect(clippy::cast_precision_loss, reason = "seconds stay far below 2^53")]
        let ts = Some(self.ts as f64);
        FeedRecord { event: DocEvent { id, ts, written: None, text: text.map(Cow::Owned) }, ts }
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

/// What is out of its range of the words of texts: the field, and what it has to be.
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

/// A length in `least..most`, as likely to be between n and 2 n for every n.
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
