//! dupflow finds near-duplicate documents while the corpus changes.
//!
//! Documents arrive, are edited and are deleted; out come *deltas*: pairs that become near-duplicate (+1) or
//! cease to be (-1). After every epoch the deltas so far add up to what a fresh run on the documents alive
//! finds.
//!
//! A document goes through [`text`] (tokens, shingles, features), [`sketch`] (a fixed-size summary),
//! [`block`] (which pairs are looked at) and [`filter`] (which of them are pairs); [`dataflow`] does that
//! incrementally and on many workers, and [`oracle`] by brute force, to hold it against. [`pipeline`] puts
//! inputs ([`source`], [`feed`]), a plan ([`config`]) and outputs ([`sink`]) around it, [`evaluate`] measures
//! what it promises, [`cli`] is a command line around that. The modules below stand in this order, and import
//! only from those above them: see `ARCHITECTURE.md`.
//!
//! Two texts, by hand:
//!
//! ```
//! use dupflow::config::Plan;
//! use dupflow::core::sketch::SketchMaker;
//!
//! let plan = Plan::load("exact", &["threshold=0.5".to_owned()])?;
//! let mut maker = SketchMaker::new(&plan.scheme);
//! let (_, a) = maker.sketch("the quick brown fox jumps over the lazy dog").expect("it has tokens");
//! let (_, b) = maker.sketch("the quick brown fox jumps over the lazy cat").expect("it has tokens");
//!
//! // Six of eight different word 3-shingles are in both.
//! let verdict = plan.filter().decide(a.view(), b.view());
//! assert_eq!(verdict.accepted.map(|similarity| similarity.get()), Some(0.75));
//! # Ok::<(), dupflow::config::PlanError>(())
//! ```

pub use dupflow_connectors as connectors;
pub use dupflow_core as core;
pub use dupflow_engine as engine;
#[cfg(feature = "lab")]
pub use dupflow_lab as lab;
#[cfg(feature = "monitor")]
pub use dupflow_monitor as monitor;

pub mod cli;
pub mod config;
pub mod pipeline;
