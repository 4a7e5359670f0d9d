//! dupflow finds near-duplicate documents while the corpus changes.
//!
//! The input is a stream of upserts and deletes of documents. The output is a stream of *deltas*: `+1` when
//! two documents become near-duplicates, `-1` when an update or a delete ends it. After each epoch the
//! accumulated deltas equal what a fresh run on the surviving documents finds.
//!
//! This package holds the program and puts its crates together:
//!
//! | crate | holds |
//! |---|---|
//! | [`core`] | texts, sketches, blocks, filters, clusters, and a brute-force oracle; plain Rust without threads |
//! | [`engine`] | the dataflow that does the same incrementally, on many workers and processes |
//! | [`connectors`] | inputs, outputs and state: files, topics, tables, stores |
//! | `monitor` | a run over HTTP: metrics, pairs, queries, a page (feature `monitor`) |
//! | `lab` | generated feeds and studies (feature `lab`) |
//! | [`config`], [`forecast`] | a pipeline file to a plan; what the plan will do |
//! | [`pipeline`], [`cli`] | one run; the command line |
//!
//! Two texts, compared by hand:
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
//! # Ok::<(), dupflow::config::ConfigError>(())
//! ```

pub use dupflow_connectors as connectors;
pub use dupflow_engine as engine;
#[cfg(feature = "lab")]
pub use dupflow_lab as lab;
#[cfg(feature = "monitor")]
pub use dupflow_monitor as monitor;

/// The computation without its engine; and `run`, what the parts of a run share.
pub mod core {
    pub use dupflow_core::*;
    #[doc(hidden)]
    pub use dupflow_run as run;
}

pub mod cli;
pub mod config;
pub mod forecast;
pub mod pipeline;
mod plural;
pub mod program;
