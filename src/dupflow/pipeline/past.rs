//! Where a run begins: the mark in the output, the documents in the state, and the offsets to read from.
//!
//! The corpus at the start is the documents of the state, if there is one, and the input from their offsets
//! on. The run reads up to the mark in the output without writing deltas; then it is live. So the deltas of
//! the live epochs continue those in the output, whatever an earlier run read after its last commit.
//!
//! | output | state | the run |
//! |---|---|---|
//! | mark of this pipeline | at or behind the mark | continues |
//! | mark of this pipeline | none | reads the input again from its start, if it still holds all records |
//! | mark of this pipeline | behind the mark or none, and the source cannot repeat its records | corrects the output |
//! | mark of another pipeline | any | is refused; with `--reconcile`, corrects the output |
//! | mark of another input | any | is refused; with `--reconcile`, reads the present input without the state, and corrects the output |
//! | mark of another output | any | is refused; with `--reconcile`, corrects the present output |
//! | records without a mark | any | is refused; with `--reconcile`, corrects the output |
//! | empty | some | computes the pairs of the state, and writes them as corrections |
//! | empty | none | begins |
//! | keeps no marks | any | begins, or continues from the state; deltas after the state are written again |
//!
//! Of files the marks also list which inputs were read ([`Source::resume`]). Where they are not as they were
//! read, a run may have to go on from the state alone, or to read everything again; both correct the output.
//!
//! Before the output is taken over, all of this is checked as far as the output can be read then
//! ([`Sink::inspect`]): a run that is refused does not end the run that holds the output. What the output
//! contains after it was taken over is checked again.
//!
//! The state is not used if the input may have dropped deletes that this run has not read: their documents
//! would never end. A compacted topic keeps deletes for a limited time, counted from the time of the state
//! ([`Mark::as_of`]). If the state is older, the whole input is read again if it still holds all records;
//! otherwise the run is refused, or uses the state with `--reconcile`.
//!
//! If records that the run needs have expired, it is refused. With `--reconcile` the corpus is the documents
//! of the state and the records that are left; the output is corrected, and the missing records are logged
//! and counted.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::continuity::Continuity;
use super::error::RunError;
use super::fit::{Fit, check, fit, usable};
use super::past_error::PastError;
use super::restart::{Restart, Resumable};
use dupflow_connectors::intake::{
    AsOf, CatchUpLine, InputLog, PastInputs, Resumption, Source, SourceError, SourceInfo,
};
use dupflow_connectors::mark::{Mark, Standing, Topic};
use dupflow_connectors::sinks::{LetterFile, Sink};
use dupflow_connectors::state::{Snapshot, StateWriter, StoredState};
use dupflow_core::description::Description;
use dupflow_core::pair::DocPair;
use dupflow_core::pair_rule::PairRule;
use dupflow_core::text::IdfTable;
use dupflow_core::time::{Epoch, LiveFrom, Offsets, Progress};
use dupflow_engine::dataflow::Stages;

/// Where a run begins.
pub(super) struct Past {
    /// The mark of the output, with the fields that all marks of this run share.
    pub(super) mark: Mark,
    /// Where reading begins in each partition.
    pub(super) begin: Offsets,
    /// What has to be read before the run is live.
    pub(super) lines: Vec<CatchUpLine>,
    /// The first live epoch, set when it is reached.
    pub(super) live: Arc<LiveFrom>,
    /// Whether documents are stored for a later run.
    pub(super) keeps: bool,
    /// Whether the output needs the changes of documents.
    pub(super) emits_documents: bool,
    /// Whether the output needs to know which documents an epoch upserts.
    pub(super) emits_upserts: bool,
    /// The documents of the state.
    pub(super) snapshot: Option<Snapshot>,
    /// In a process other than 0, what writes its share of the state, if it reaches that.
    pub(super) writer: Option<StateWriter>,
    /// The table of document frequencies in force.
    pub(super) table: Option<Arc<IdfTable>>,
    /// The pairs in the output, if it is to be corrected.
    pub(super) output_pairs: Option<BTreeSet<DocPair>>,
    /// Times at which positions of the input were read, if the source records them.
    pub(super) as_of: Option<Arc<AsOf>>,
    /// Which inputs are read, if the source lists them.
    pub(super) reading: Option<Arc<InputLog>>,
}

impl Past {
    /// Takes the output over, and computes where to continue. `first` is the first epoch of a new run.
    pub(super) fn find(
        stages: &Stages,
        source: &mut dyn Source,
        sink: &mut dyn Sink,
        continuity: &mut Continuity,
        first: Epoch,
    ) -> Result<Self, RunError> {
        let Continuity { run, pipeline, reconcile, letters, state, tallies, reference, .. } = continuity;
        let mut state = state.as_mut().map(|(state, _)| state);
        let reconcile = *reconcile;
        // Before anything is created or taken over: the input exists.
        let mut input = source.inspect()?;
        let mut rules =
            Rules { pipeline, pairs: &stages.scheme.pairs, reconcile, scheme: stages.stored_description() };
        let (standing, resumable) = rules.take_over(source, sink, &mut input, state.as_deref_mut())?;
        let restart = Restart::new(&standing, &input, resumable);
        let output_pairs = restart.pairs_to_correct(sink, reconcile)?;
        let (begin, is_whole) = restart.begin(source, reconcile, stages)?;
        let mut lines = restart.lines(&begin, is_whole, output_pairs.is_some());
        if reference.is_some() && lines.first() != Some(&CatchUpLine::Restored) {
            // The reference is taken in before the state and the first record.
            lines.insert(0, CatchUpLine::Restored);
        }
        let table = restart.table(state.as_deref(), stages, reconcile)?;
        if let Some(file) = letters {
            resume_letters(file, &standing, restart.mark.as_ref())?;
        }
        let progress = Progress {
            epoch: restart.mark.as_ref().map_or(first - 1, |mark| mark.progress.epoch),
            next: begin.clone(),
            table: table.as_ref().map(|(table, _)| *table),
            clock: restart.clock(stages.retention.clock),
        };
        let mark = Mark {
            run: run.clone(),
            progress,
            start: restart.start(&begin, is_whole),
            pipeline: pipeline.clone(),
            in_correction: false,
            letters: restart.mark.as_ref().and_then(|mark| mark.letters),
            as_of: restart.as_of(),
            input: input.topic.clone(),
            output: sink.topic(),
            tally: tallies.then(|| restart.mark.and_then(|mark| mark.tally).unwrap_or_default()),
            inputs: None,
        };
        Ok(Self {
            mark,
            begin,
            lines,
            live: Arc::new(LiveFrom::default()),
            keeps: state.is_some(),
            emits_documents: sink.wants_documents(),
            emits_upserts: sink.wants_upserts(),
            snapshot: restart.snapshot,
            writer: None,
            table: table.map(|(_, table)| table),
            output_pairs,
            as_of: source.as_of(),
            reading: source.input_log(),
        })
    }
}

/// What decides whether a run may continue on an output.
struct Rules<'a> {
    /// The encoded description of the pipeline.
    pipeline: &'a str,
    /// Its rule on the fields of pairs.
    pairs: &'a PairRule,
    reconcile: bool,
    scheme: Description,
}

impl Rules<'_> {
    /// Takes the output over. Returns what it holds, and what the run can resume from. `input` is read again
    /// if an earlier run may have read on since.
    fn take_over(
        &mut self,
        source: &mut dyn Source,
        sink: &mut dyn Sink,
        input: &mut SourceInfo,
        mut state: Option<&mut StoredState>,
    ) -> Result<(Standing, Resumable), RunError> {
        let before = match sink.inspect().map_err(RunError::Sink)? {
            None => None,
            Some(standing) => {
                inspect_again(&standing, source, input)?;
                let topic = sink.topic();
                let resumable =
                    self.resumable(&standing, topic.as_ref(), source, input, state.as_deref_mut())?;
                if !self.reconcile && input.held.is_some() {
                    resumable.check_begin(source)?;
                }
                Some((standing, topic, resumable))
            }
        };
        let standing = sink.take_over().map_err(RunError::Sink)?;
        let topic = sink.topic();
        match before {
            Some((same, same_topic, resumable)) if same == standing && same_topic == topic => {
                Ok((standing, resumable))
            }
            // The earlier run has committed meanwhile.
            _ => {
                inspect_again(&standing, source, input)?;
                let resumable = self.resumable(&standing, topic.as_ref(), source, input, state)?;
                Ok((standing, resumable))
            }
        }
    }

    /// What a run can resume from, or why it is refused.
    fn resumable(
        &self,
        standing: &Standing,
        output: Option<&Topic>,
        source: &mut dyn Source,
        input: &SourceInfo,
        mut state: Option<&mut StoredState>,
    ) -> Result<Resumable, RunError> {
        let mark = match standing {
            Standing::Forgets if self.reconcile => return Err(PastError::Forgets.into()),
            Standing::Unmarked(what) if !self.reconcile => {
                return Err(PastError::Unmarked(what.clone()).into());
            }
            Standing::At(mark) => {
                if !self.reconcile {
                    check(mark, self.pipeline, self.pairs, input, output)?;
                }
                Some((**mark).clone())
            }
            Standing::New | Standing::Unmarked(_) | Standing::Forgets => None,
        };
        let of_this_input = mark.as_ref().is_none_or(|mark| is_same(mark, input));
        let mut snapshot = match &mut state {
            None => None,
            Some(state) => {
                let at_most = mark.as_ref().filter(|_| of_this_input);
                let snapshot = self.snapshot(state, at_most)?;
                usable(snapshot, state, input, self.reconcile, |stored| is_same(stored, input))?
            }
        };
        let resumption = self.resumption(mark.as_ref(), snapshot.as_ref(), source)?;
        if resumption != Resumption::AsRead && *standing == Standing::Forgets {
            return Err(PastError::ForgetsInputs.into());
        }
        if resumption == Resumption::Anew {
            // Each document may be of a record that is not there any more, or hide one that is.
            snapshot = None;
            state.map_or(Ok(None), |state| state.latest(0))?;
        }
        Ok(Resumable { mark, of_this_input, snapshot, resumption })
    }

    /// How the run goes on after the inputs that an earlier one has read.
    fn resumption(
        &self,
        mark: Option<&Mark>,
        snapshot: Option<&Snapshot>,
        source: &mut dyn Source,
    ) -> Result<Resumption, RunError> {
        let saved = snapshot.map(|snapshot| &snapshot.saved().mark.progress.next);
        let past = PastInputs {
            of_output: mark.and_then(|mark| mark.inputs.clone()),
            of_state: snapshot.map(Snapshot::inputs).transpose()?.flatten(),
            begin: saved.and_then(|next| next.values().copied().max()).unwrap_or(0),
            is_marked: mark.is_some(),
            reconcile: self.reconcile,
        };
        Ok(source.resume(&past)?)
    }

    /// The latest snapshot at or before the mark, or the latest of all without a mark. `None` if it is of
    /// another scheme and the run reconciles: then the state is emptied.
    fn snapshot(&self, state: &mut StoredState, mark: Option<&Mark>) -> Result<Option<Snapshot>, RunError> {
        let at_most = mark.filter(|_| !self.reconcile).map_or(Epoch::MAX, |mark| mark.progress.epoch);
        let Some(snapshot) = state.latest(at_most)? else {
            // The state is empty, or ahead of the output: then runs of another output stored it.
            return match state.latest(Epoch::MAX)? {
                Some(newer) => Err(PastError::Ahead { kept: newer.saved().epoch(), output: at_most }.into()),
                None => Ok(None),
            };
        };
        if snapshot.saved().scheme == self.scheme.encode() {
            return Ok(Some(snapshot));
        }
        if !self.reconcile {
            let differences = self.scheme.differences(&snapshot.saved().scheme).unwrap_or_default();
            return Err(PastError::OtherScheme(differences).into());
        }
        state.latest(0)?;
        Ok(None)
    }
}

/// Cuts the dead-letter file to the length in the mark. An output without marks leaves it as it is if the
/// state of a run continues.
fn resume_letters(file: &mut LetterFile, standing: &Standing, mark: Option<&Mark>) -> Result<(), RunError> {
    match (standing, mark) {
        (Standing::Forgets, Some(Mark { tally: None, .. })) => Ok(()),
        (_, mark) => file.resume_at(mark.and_then(|mark| mark.letters).unwrap_or(0)),
    }
    .map_err(RunError::Letters)
}

/// Inspects the input again if a mark is beyond its end: an earlier run may have read on since.
fn inspect_again(
    standing: &Standing,
    source: &mut dyn Source,
    input: &mut SourceInfo,
) -> Result<(), SourceError> {
    if let Standing::At(mark) = standing
        && matches!(fit(mark, input), Fit::Beyond(_))
    {
        *input = source.inspect()?;
    }
    Ok(())
}

/// Whether a mark is of this input. The offsets and documents of another input do not count.
fn is_same(mark: &Mark, input: &SourceInfo) -> bool {
    match fit(mark, input) {
        Fit::Same => true,
        Fit::Other => false,
        Fit::Beyond(_) => {
            input.topic.as_ref().is_some_and(|topic| topic.id.is_some() && mark.input.is_some())
        }
    }
}
