//! The laboratory: studies that measure what the program promises, with tables and plots. Nothing of it is
//! used by a run.
//!
//! A [`Study`] measures one thing and yields [`Findings`]: [`Table`]s and [`Plot`]s. How they are written
//! (text, Markdown, CSV, SVG, one HTML page) is decided once for all of them, in [`table`], [`plot`] and
//! [`folder`].
//!
//! | study | measures |
//! |---|---|
//! | [`filter`] | the staged filter on simulated pairs: components read, wrong decisions |
//! | [`estimators`] | mean square error of every sketch's estimate against theory |
//! | [`speed`] | sketching time per feature |
//! | [`search`] | searches by Hamming distance, with static indexes of a whole corpus: what is read, what it takes, nothing missed |
//! | [`paper`] | every table, figure and example of the five sources, printed beside measured |
//! | [`scripts`] | scripts without spaces, beside a twin with spaces |
//! | [`pipelines`] | precision, recall and cost of whole pipelines on a corpus with truth |
//!
//! A new study is a file here and an arm in `cli/evaluate.rs`.
//!
//! Invariants: whatever is random comes from [`Bench::seed`], and no count depends on the number of threads;
//! only times differ from run to run. Ratios of times are between forms measured in turn, in one process.

pub mod distribution;
pub mod estimators;
pub mod filter;
pub mod folder;
pub mod generate;
pub mod paper;
pub mod pipelines;
pub mod plot;
pub mod scripts;
pub mod search;
pub mod speed;
pub mod table;
mod threads;
pub mod truth;

use std::io;

use dupflow_core::sketch::Scheme;
use thiserror::Error;

use dupflow_connectors::intake::SourceError;
use dupflow_core::block::hamming::DesignError;
use dupflow_core::filter::FilterError;
use dupflow_core::time::Clock;
pub use plot::Plot;
pub use table::Table;

/// One measurement of something.
pub trait Study {
    /// Takes the measurement.
    ///
    /// # Errors
    /// What it cannot read, or what the program under measurement fails with.
    fn run(&self, bench: &Bench<'_>) -> Result<Findings, EvaluateError>;
}

/// What every study is given.
#[derive(Clone, Copy)]
pub struct Bench<'c> {
    /// Takes the times.
    pub clock: &'c dyn Clock,
    /// Threads to simulate with, 1 or more. Times are taken on one thread, but for those of whole pipelines.
    pub threads: usize,
    /// Where everything random comes from.
    pub seed: u64,
    /// Reads pipelines.
    pub planner: &'c dyn Planner,
    /// Is told what is measured next.
    pub told: &'c (dyn Fn(&str) + Sync),
}

impl Bench<'_> {
    /// How long each form of some work takes, in seconds, the parts of the work together.
    ///
    /// In every round each form has its turn at all parts; of each part the least time over the rounds
    /// counts, so that what else a machine does shows little, if a part takes less than a millisecond or so.
    fn times(&self, forms: usize, parts: usize, mut work: impl FnMut(usize, usize)) -> Vec<f64> {
        let mut least = vec![vec![f64::MAX; parts]; forms];
        for _ in 0..ROUNDS {
            for (form, by_part) in least.iter_mut().enumerate() {
                for (part, seconds) in by_part.iter_mut().enumerate() {
                    let start = self.clock.now();
                    work(form, part);
                    *seconds = seconds.min(self.clock.now().saturating_sub(start).as_secs_f64());
                }
            }
        }
        least.iter().map(|by_part| by_part.iter().sum()).collect()
    }
}

/// Rounds of [`Bench::times`].
const ROUNDS: usize = 11;

impl std::fmt::Debug for Bench<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Bench")
            .field("threads", &self.threads)
            .field("seed", &self.seed)
            .finish_non_exhaustive()
    }
}

/// A pipeline, as far as studies need it.
#[derive(Clone, Debug)]
pub struct StudiedPlan {
    /// How texts become sketches.
    pub scheme: Scheme,
    /// The similarity from which on a pair is accepted, inclusive.
    pub threshold: f64,
    /// Whether pairs are decided by Hamming distance, so that `threshold` cannot be set.
    pub by_distance: bool,
}

/// Reads pipelines for studies.
pub trait Planner: Sync {
    /// Reads a pipeline by its name or path, with overrides `key=value`.
    ///
    /// # Errors
    /// All problems of the pipeline, and of the table that it names.
    fn plan(&self, pipeline: &str, overrides: &[String]) -> Result<StudiedPlan, PlanError>;
}

/// Why a pipeline cannot be planned.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct PlanError(Box<dyn std::error::Error + Send + Sync>);

impl PlanError {
    /// Wraps the error of the reader of pipelines.
    pub fn new(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }

    /// Returns the error of the reader of pipelines.
    pub fn into_inner(self) -> Box<dyn std::error::Error + Send + Sync> {
        self.0
    }
}

/// What a study found.
#[derive(Clone, Debug)]
pub struct Findings {
    /// Its file name, without the ending.
    pub name: String,
    /// The study, as a heading.
    pub title: String,
    /// What was measured and how, in sentences.
    pub about: String,
    /// The numbers.
    pub tables: Vec<Table>,
    /// The numbers, to look at.
    pub plots: Vec<Plot>,
}

/// Why a study, or writing what it found, failed.
#[derive(Debug, Error)]
pub enum EvaluateError {
    /// A design of a search that cannot be made.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// A filter that cannot be made.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// A pipeline that cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlanError),
    /// A corpus that cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A file that cannot be read or written.
    #[error("the file {path:?}")]
    File {
        /// The file.
        path: std::path::PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// A line of a truth file that does not say what it should.
    #[error("{path:?}, line {line}: {expected}")]
    Truth {
        /// The file.
        path: std::path::PathBuf,
        /// From 1.
        line: usize,
        /// What should stand there.
        expected: &'static str,
    },
    /// A corpus too large to compare all of it.
    #[error(
        "{documents} documents have no truth beside them and are more than --brute-force-limit {limit}; name their pairs with \
         --truth or --labels, or raise the limit"
    )]
    TooLarge {
        /// Documents alive at the end.
        documents: usize,
        /// The limit.
        limit: usize,
    },
    /// A pipeline that was run as a process of its own and failed.
    #[error("pipeline {pipeline:?} failed: {message}")]
    Pipeline {
        /// The name or path of the pipeline.
        pipeline: String,
        /// What it said.
        message: String,
    },
    /// A plot that cannot be drawn.
    #[error("the plot {name:?} cannot be drawn: {message}")]
    Plot {
        /// The name of the plot.
        name: String,
        /// What the plotting library says.
        message: String,
    },
}

impl EvaluateError {
    /// For `map_err`: what happened to which file.
    fn file(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}
