//! The laboratory: studies that measure the program's promises, with tables and plots. No run of the program
//! uses it.
//!
//! A [`Study`] measures one thing and returns [`Findings`]: [`ResultTable`]s and [`Plot`]s. [`table`],
//! [`plot`] and [`folder`] write them as text, Markdown, CSV, SVG and one HTML page.
//! | study | measures |
//! |---|---|
//! | [`filter`] | the staged filter on simulated pairs: components read, wrong decisions |
//! | [`estimators`] | mean square error of every sketch's estimate against theory |
//! | [`speed`] | sketching time per feature |
//! | [`search`] | searches by Hamming distance in indexes of a whole corpus: work, time, completeness |
//! | [`paper`] | every table, figure and example of the five sources, printed and measured |
//! | [`scripts`] | scripts without spaces, compared with a twin with spaces |
//! | [`calibrate`] | precision and recall of each threshold, from judged pairs |
//! | [`pipelines`] | precision, recall and cost of whole pipelines on a corpus with truth |
//!
//! A new study is a file here and an arm in `src/dupflow/cli/lab/evaluate.rs`.
//!
//! Invariants: all random numbers depend on [`StudyContext::seed`] only, and no count depends on the number
//! of threads; only times differ between runs. Ratios of times compare forms that are measured alternately in
//! one process.

pub mod calibrate;
pub mod distribution;
pub mod estimators;
pub mod filter;
pub mod folder;
pub mod generate;
pub mod interval;
pub mod paper;
pub mod pipelines;
pub mod plot;
pub mod scripts;
pub mod search;
pub mod speed;
pub mod table;
pub mod threads;
pub mod truth;

use std::io;

use dupflow_core::sketch::Scheme;
use thiserror::Error;

use dupflow_connectors::intake::SourceError;
use dupflow_core::block::hamming::DesignError;
use dupflow_core::filter::FilterError;
use dupflow_core::time::Clock;
pub use plot::Plot;
pub use table::ResultTable;

/// A measurement.
pub trait Study {
    /// Measures.
    ///
    /// # Errors
    /// If an input cannot be read, or the measured program fails.
    fn run(&self, bench: &StudyContext<'_>) -> Result<Findings, EvaluateError>;
}

/// The environment of a study.
#[derive(Clone, Copy)]
pub struct StudyContext<'c> {
    /// The clock that measures times.
    pub clock: &'c dyn Clock,
    /// Threads for simulations, 1 or more. Times are measured on one thread, except those of whole pipelines.
    pub threads: usize,
    /// The seed of all random numbers.
    pub seed: u64,
    /// Reads pipelines.
    pub planner: &'c dyn Planner,
    /// Progress callback; receives the name of the next measurement.
    pub progress: &'c (dyn Fn(&str) + Sync),
}

impl StudyContext<'_> {
    /// The time of each form of some work, in seconds, summed over the parts of the work.
    ///
    /// In every round each form does all parts. For each part the minimum over the rounds counts: this hides
    /// other load of the machine, if a part takes less than about a millisecond.
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

/// Rounds of [`StudyContext::times`].
const ROUNDS: usize = 11;

impl std::fmt::Debug for StudyContext<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("StudyContext")
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
    fn plan(&self, pipeline: &str, overrides: &[String]) -> Result<StudiedPlan, PlannerError>;
}

/// Why a pipeline cannot be planned.
#[derive(Debug, Error)]
#[error(transparent)]
pub struct PlannerError(Box<dyn std::error::Error + Send + Sync>);

impl PlannerError {
    /// Wraps the error of the reader of pipelines.
    pub fn new(error: impl std::error::Error + Send + Sync + 'static) -> Self {
        Self(Box::new(error))
    }

    /// Returns the error of the reader of pipelines.
    pub fn into_inner(self) -> Box<dyn std::error::Error + Send + Sync> {
        self.0
    }
}

/// The results of a study.
#[derive(Clone, Debug)]
pub struct Findings {
    /// The file name, without extension.
    pub name: String,
    /// The title of the study.
    pub title: String,
    /// What was measured and how, in sentences.
    pub about: String,
    /// Tables of numbers.
    pub tables: Vec<ResultTable>,
    /// Plots of these numbers.
    pub plots: Vec<Plot>,
}

/// Why a study failed, or why its findings cannot be written.
#[derive(Debug, Error)]
pub enum EvaluateError {
    /// A design of a search that cannot be built.
    #[error(transparent)]
    Design(#[from] DesignError),
    /// A filter that cannot be built.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// A pipeline that cannot be planned.
    #[error(transparent)]
    Plan(#[from] PlannerError),
    /// A corpus that cannot be read.
    #[error(transparent)]
    PaperSource(#[from] SourceError),
    /// A file that cannot be read or written.
    #[error("the file {path:?}")]
    File {
        /// The path.
        path: std::path::PathBuf,
        /// The system's error.
        source: io::Error,
    },
    /// An invalid line of a truth file.
    #[error("{path:?}, line {line}: {expected}")]
    Truth {
        /// The path.
        path: std::path::PathBuf,
        /// The line number, from 1.
        line: usize,
        /// The expected format.
        expected: &'static str,
    },
    /// A truth has no pair, or no judged one.
    #[error("{path:?} has no pair, or none that is judged")]
    NoPair {
        /// The file.
        path: std::path::PathBuf,
    },
    /// A truth about other documents.
    #[error(
        "{path:?}: none of its {pairs} pairs has both documents in the corpus, such as {:?} and {:?}; is the \
            id in another column (--id-field)?", .example.lo().as_str(), .example.hi().as_str()
    )]
    OtherDocuments {
        /// The path.
        path: std::path::PathBuf,
        /// Its pairs.
        pairs: usize,
        /// One of them.
        example: dupflow_core::pair::Pair<dupflow_core::doc::DocId>,
    },
    /// A corpus too large to compare all of its pairs.
    #[error(
        "{documents} documents have no truth beside them and are more than --brute-force-limit {limit}; name \
            their pairs with --truth or --labels, or raise the limit"
    )]
    TooLarge {
        /// Number of live documents at the end.
        documents: usize,
        /// The limit.
        limit: usize,
    },
    /// A pipeline that ran as a separate process and failed.
    #[error("pipeline {pipeline:?} failed: {message}")]
    Pipeline {
        /// The name or path of the pipeline.
        pipeline: String,
        /// Its error message.
        message: String,
    },
    /// A plot that cannot be drawn.
    #[error("the plot {name:?} cannot be drawn: {message}")]
    Plot {
        /// The name of the plot.
        name: String,
        /// The plotting library's message.
        message: String,
    },
}

impl EvaluateError {
    /// Adds the path to an I/O error, for `map_err`.
    fn file(path: &std::path::Path) -> impl FnOnce(io::Error) -> Self {
        let path = path.to_owned();
        move |source| Self::File { path, source }
    }
}
