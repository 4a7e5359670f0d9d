//! dupflow finds near-duplicate documents while the corpus changes.
//!
//! Documents arrive, are edited and are deleted. The output is *deltas*: pairs that become near-duplicates
//! (+1) or cease to be (-1). After every epoch the deltas so far add up to the pairs that a fresh run on the
//! live documents finds.
//!
//! A document passes through [`text`] (tokens, shingles, features), [`sketch`] (a fixed-size summary),
//! [`block`] (which pairs are compared) and [`filter`] (which of them are near-duplicates). [`dataflow`] does
//! this incrementally on many workers; [`oracle`] does it by brute force, as the reference for tests.
//! [`pipeline`] connects inputs ([`source`], [`feed`]), a plan ([`config`]) and outputs ([`sink`]).
//! [`evaluate`] measures the promises, and [`cli`] is the command line. The modules below are listed in this
//! order, and a module imports only from those above it: see `ARCHITECTURE.md`.
//!
//! The similarity of two texts:
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
