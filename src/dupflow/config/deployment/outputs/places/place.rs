//! What a place of results is, and what it is opened with.

use std::any::Any;
use std::fmt;
use std::io;
use std::ops::Deref;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use crate::config::deployment::kind::Kind;
use crate::config::deployment::outputs::{OutputAnswer, OutputFormat};
use crate::config::settings::FileSettings;
use dupflow_connectors::kafka::broker::Connection;
use dupflow_connectors::sinks::answers::{AnswerSettings, BoxedRows, RowSink, Written};
use dupflow_connectors::sinks::{OutputProvenance, Publication, Sink};
use dupflow_core::cluster::ClusterKind;

/// A place of results. It knows answers by what they say of themselves.
pub trait Place: Any + fmt::Debug + Send + Sync {
    /// The name of its kind in settings.
    fn kind(&self) -> &'static str;

    /// The place in messages, without a secret.
    fn name(&self) -> String;

    /// Why an answer in this format cannot be written there, by a replay or by a run; `None` if it can.
    fn refusal(&self, answer: OutputAnswer, format: OutputFormat, is_replay: bool) -> Option<&'static str>;

    /// The answer that is written where none is set.
    fn default_answer(&self) -> OutputAnswer {
        OutputAnswer::default()
    }

    /// The file that is written; `None` if there is none.
    fn file(&self) -> Option<&Path> {
        None
    }

    /// Suffixes of the files beside that file.
    fn beside(&self, _: OutputAnswer) -> &'static [&'static str] {
        &[]
    }

    /// The file beside which a long list of inputs is kept; `None` if marks are not in files.
    fn mark_file(&self, _: OutputAnswer) -> Option<PathBuf> {
        None
    }

    /// Whether it has a mark from which a run can go on.
    fn keeps_marks(&self, _: OutputAnswer) -> bool {
        true
    }

    /// Whether a replay corrects what is there, in one step at its end; otherwise it writes anew.
    fn is_corrected(&self) -> bool {
        true
    }

    /// Whether it is standard output.
    fn is_printed(&self) -> bool {
        false
    }

    /// Whether it is standard output, by one of its names.
    fn is_stdout(&self) -> bool {
        false
    }

    /// What else a mark describes of what is there: fields of a description.
    fn described(&self, _: OutputAnswer) -> Vec<(&'static str, &'static str)> {
        Vec::new()
    }

    /// Opens it.
    ///
    /// # Errors
    /// If a file cannot be opened; if it is none, and the answer is written after the run.
    fn open(&self, of: &dyn OutputSettings) -> Result<OpenedOutput, OpenError>;
}

/// A place of results.
#[derive(Clone, Debug)]
pub struct OutputPlace(Arc<dyn Place>);

impl OutputPlace {
    /// A place of some kind.
    pub fn new(place: impl Place) -> Self {
        Self(Arc::new(place))
    }

    /// The place, if it is of this kind.
    pub fn as_a<P: Place>(&self) -> Option<&P> {
        let place: &dyn Any = &*self.0;
        place.downcast_ref()
    }
}

impl Deref for OutputPlace {
    type Target = dyn Place;

    fn deref(&self) -> &dyn Place {
        &*self.0
    }
}

impl fmt::Display for OutputPlace {
    /// The place, without a secret.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())
    }
}

/// A kind of place.
pub(super) type PlaceKind = Kind<ReadPlace>;

/// How a place is read.
pub(super) struct ReadPlace {
    /// By the table `[sink]`.
    pub(super) table: fn(&mut FileSettings) -> OutputPlace,
    /// As it is typed as `--output`; `None` if it is of another kind.
    pub(super) typed: fn(&Path) -> Option<Result<OutputPlace, String>>,
}

/// What an output is opened with.
pub trait OutputSettings: AnswerSettings {
    /// The answer.
    fn answer(&self) -> OutputAnswer;
    /// The file format.
    fn format(&self) -> OutputFormat;
    /// The provenance that is written into the output, if it is.
    fn provenance(&self) -> Option<Box<dyn OutputProvenance>>;
    /// The name of the run.
    fn run(&self) -> &str;
    /// The name under which a result that is held back is written: that of the run, or of the replay that is
    /// continued.
    fn deferred_name(&self) -> &str;
    /// Whether what is there is continued by its mark.
    fn continues(&self) -> bool;
    /// Whether what is there is corrected, whatever its mark says.
    fn begins_anew(&self) -> bool;
    /// The kind of clusters.
    fn cluster_kind(&self) -> ClusterKind;
    /// How brokers are reached.
    fn connection(&self) -> &Connection;
    /// The topic of bad records, if they are kept in one.
    fn letters_topic(&self) -> Option<&str>;
    /// How often topics are looked at.
    fn refresh(&self) -> Duration;
}

/// The sink that writes the answer to rows.
///
/// # Errors
/// If the answer is written after the run, which only a file is.
pub(super) fn sink_of(of: &dyn OutputSettings, rows: BoxedRows) -> io::Result<Box<dyn Sink + Send>> {
    match of.answer().written {
        Written::AtEnd(open) => Ok(open(of, rows)),
        Written::Changes(open) => Ok(Box::new(RowSink::with_rows(open(of), rows))),
        Written::Copied(_) | Written::Survey => Err(io::Error::other("it is written after the run")),
    }
}

/// A sink and, if its output appears only at the end, the step that publishes it.
pub type OpenedOutput = (Box<dyn Sink + Send>, Option<Publication>);

/// The file that cannot be opened, and why.
pub type OpenError = (PathBuf, io::Error);
