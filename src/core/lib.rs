//! Finds near-duplicate texts.
//!
//! This crate is the computation of dupflow without its engine: plain functions and data structures. It has
//! no threads and reads no files, and its results are the same on every machine. Use it to compare texts, or
//! to build your own index; use the crate `dupflow` to run many workers over files, topics or tables.
//!
//! # From texts to pairs
//!
//! ```text
//! text ──▶ features ──▶ sketch ──▶ block keys ──▶ candidates ──▶ verdict
//!      text         sketch     block          block          filter
//! ```
//!
//! | step | module | what it does |
//! |---|---|---|
//! | features | [`text`] | cuts a text into tokens and shingles, and hashes the shingles |
//! | sketch | [`sketch`] | a summary of fixed size; similar texts have similar sketches |
//! | block keys | [`block`] | similar sketches probably share a key, others hardly ever |
//! | verdict | [`filter`] | decides a candidate pair, reading as little of the two sketches as it can |
//!
//! Two texts are a pair if their similarity is at least a threshold: the Jaccard similarity of their sets of
//! word 3-shingles, unless the [`Scheme`] says otherwise.
//!
//! Start with a [`Detector`]: it has a scheme, a blocking and a filter for a threshold.
//!
//! # Two texts
//!
//! ```
//! use dupflow_core::Detector;
//!
//! let detector = Detector::exact(0.5)?;
//! let mut maker = detector.maker();
//! let (_, a) = maker.sketch("the quick brown fox jumps over the lazy dog").expect("it has tokens");
//! let (_, b) = maker.sketch("the quick brown fox jumps over the lazy cat").expect("it has tokens");
//!
//! // Six of eight different shingles are in both.
//! let verdict = detector.filter().decide(a.view(), b.view());
//! assert_eq!(verdict.accepted.map(|similarity| similarity.get()), Some(0.75));
//! # Ok::<(), dupflow_core::DetectorError>(())
//! ```
//!
//! [`Detector::new`] estimates the similarity from sketches of 224 bytes instead of keeping the shingles.
//!
//! # An index of my own
//!
//! Store the sketches, and under each block key the documents that have it. The candidates of a document are
//! those that share a key with it.
//!
//! ```
//! use std::collections::{BTreeSet, HashMap};
//!
//! use dupflow_core::{BlockKey, Detector};
//!
//! let texts = ["one two three four five six", "One, two, three, four, five, six!", "a text of its own"];
//! let detector = Detector::new(0.8)?;
//! let mut maker = detector.maker();
//! let (mut sketches, mut index) = (Vec::new(), HashMap::<BlockKey, Vec<usize>>::new());
//! let mut pairs = Vec::new();
//! for (n, text) in texts.into_iter().enumerate() {
//!     let (_, sketch) = maker.sketch(text).expect("it has tokens");
//!     let keys = detector.keys(sketch.view());
//!     let candidates: BTreeSet<_> = keys.iter().flat_map(|key| index.get(key)).flatten().copied().collect();
//!     sketches.push(sketch);
//!     let decide = |m: &usize| detector.filter().decide(sketches[*m].view(), sketches[n].view()).accepted;
//!     pairs.extend(candidates.into_iter().filter(|m| decide(m).is_some()).map(|m| (m, n)));
//!     keys.into_iter().for_each(|key| index.entry(key).or_default().push(n));
//! }
//! assert_eq!(pairs, [(0, 1)]);
//! # Ok::<(), dupflow_core::DetectorError>(())
//! ```
//!
//! # A live stream
//!
//! A [`LiveCorpus`] takes inserts, updates and deletes, and reports the pairs that appear and end. The sum of
//! its deltas equals, after every commit, what brute force finds among the live documents.
//!
//! ```
//! use dupflow_core::{Detector, DocId, LiveCorpus};
//!
//! let id = |name: &str| DocId::new(name).expect("an id has 1 to 1024 bytes");
//! let mut corpus = LiveCorpus::new(&Detector::exact(0.5)?);
//! corpus.upsert(id("news/7"), "the old bridge over the river will be closed in May");
//! corpus.upsert(id("blog/1"), "The old bridge over the river will be closed in June!");
//! let appeared = corpus.commit();
//! assert_eq!((appeared.len(), appeared[0].diff), (1, 1));
//! corpus.upsert(id("blog/1"), "We went to the sea.");
//! let ended = corpus.commit();
//! assert_eq!((ended.len(), ended[0].diff), (1, -1));
//! # Ok::<(), dupflow_core::DetectorError>(())
//! ```
//!
//! # More
//!
//! - [`cluster`] groups pairs, and follows the groups while pairs appear and end.
//! - [`html`] extracts the text of web pages; a [`Detector`] does so for texts that are pages.
//! - [`text::common_passages`] shows what two texts have in common.
//! - [`oracle`] computes pairs by brute force, as the reference for tests.
//! - [`doc`], [`pair`], [`hash`], [`time`] and [`probability`] are the types and functions that the steps
//!   share. Modules that only other crates of dupflow use are hidden here, and may change at any time.
//!
//! The feature `article` adds the extraction of the article of a page.

pub mod block;
pub mod cluster;
#[doc(hidden)]
pub mod description;
pub mod detect;
pub mod doc;
pub mod filter;
#[doc(hidden)]
pub mod fraction;
pub mod hash;
pub mod html;
#[doc(hidden)]
pub mod memory;
pub mod oracle;
pub mod pair;
pub mod pair_rule;
pub mod probability;
#[doc(hidden)]
pub mod reconcile;
pub mod sketch;
pub mod text;
pub mod time;
pub mod views;

pub use block::{BlockKey, Blocking};
pub use detect::{Detector, DetectorError, LiveCorpus};
pub use doc::DocId;
pub use filter::{PairFilter, Verdict};
pub use pair::{Delta, DocPair, Pair, Similarity};
pub use sketch::{Scheme, Sketch, SketchMaker};
pub use text::TextRules;

#[cfg(doctest)]
#[doc = include_str!("README.md")]
struct ReadmeExamples;
