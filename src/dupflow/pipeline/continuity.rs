//! What a run needs to continue after an earlier one.

use std::time::Duration;

use super::outputs::{OtherOutput, SideOutputs};
use super::publisher::PublisherStop;
use dupflow_connectors::intake::InputFile;
use dupflow_connectors::sinks::LetterFile;
use dupflow_connectors::state::{SharedState, StoredState};
#[cfg(feature = "webhook")]
use dupflow_connectors::watch::hook::HookSettings;
use dupflow_connectors::watch::{NoticeFile, WatchedRun};
use dupflow_core::description::Description;
use dupflow_engine::dataflow::Reference;

/// What a run needs to continue after an earlier one.
#[derive(Debug)]
pub struct Continuity {
    /// The unique name of this run.
    pub run: String,
    /// The encoded [description](dupflow_core::description::Description) of everything that decides the
    /// result.
    pub pipeline: String,
    /// The encoded settings of the source that decide its documents and that `pipeline` lacks.
    pub source: String,
    /// Whether to correct an output that another pipeline has written, or whose input or state is lost.
    /// Otherwise such a run is refused.
    pub reconcile: bool,
    /// Whether the output is written anew at the end of each run, so that nothing in it has to be corrected.
    pub rewrites: bool,
    /// Whether nothing counts that was read for this output before: all inputs are read, and it is corrected
    /// to what they give.
    pub anew: bool,
    /// The frozen reference, which the run takes in before all other documents. Process 0 has it.
    pub reference: Option<Reference>,
    /// The dead-letter file, if there is one.
    pub letters: Option<LetterFile>,
    /// What has a long list of inputs beside the mark, if the output has such a place.
    pub inputs: Option<InputFile>,
    /// Where documents are stored, and the shortest time between two commits there; `None` = nowhere.
    pub state: Option<(StoredState, Duration)>,
    /// In a process other than 0, the state of process 0 as this process reaches it, if it has one.
    pub shared_state: Option<SharedState>,
    /// Whether marks have [counts of records](dupflow_connectors::mark::RecordTally): a replay that may be
    /// resumed.
    pub tallies: bool,
    /// The table of the first output: "sink", or as in "output.1".
    pub table: String,
    /// Outputs beside the first, which are written after it.
    pub others: Vec<OtherOutput>,
    /// Outputs of rows beside the deltas.
    pub sides: SideOutputs,
    /// The watch list and its notices, if there is one.
    pub watch: Option<WatchParts>,
    /// What publishes the history, if one is stored: a failed run does not wait for it.
    pub history: Option<PublisherStop>,
}

/// The watch list of a run, and where its notices are written.
#[derive(Debug)]
pub struct WatchParts {
    /// The list, and what is read again.
    pub run: WatchedRun,
    /// The file of notices.
    pub notices: NoticeFile,
    /// The web hook, if there is one.
    #[cfg(feature = "webhook")]
    pub hook: Option<HookSettings>,
}

impl Continuity {
    /// For a run of this pipeline without a state.
    pub fn new(pipeline: &Description) -> Self {
        let continuity = Self {
            run: format!("{:016x}", rand::random::<u64>()),
            pipeline: String::new(),
            source: String::new(),
            reconcile: false,
            rewrites: false,
            anew: false,
            reference: None,
            letters: None,
            inputs: None,
            state: None,
            shared_state: None,
            tallies: false,
            table: "sink".to_owned(),
            others: Vec::new(),
            sides: SideOutputs::default(),
            watch: None,
            history: None,
        };
        continuity.described(pipeline)
    }

    /// The same for a run of this pipeline.
    #[must_use]
    pub fn described(self, pipeline: &Description) -> Self {
        Self { pipeline: encoded(pipeline), ..self }
    }
}

/// The canonical encoding as text.
pub(super) fn encoded(description: &Description) -> String {
    String::from_utf8_lossy(&description.encode()).into_owned()
}
