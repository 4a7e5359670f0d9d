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
//! | any | read by other rules | is refused; with `--reconcile`, reads again what the input holds |
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
//! A run that is refused does not end the run that holds the output or the state. So everything is checked
//! before the output is taken over, as far as it can be read then ([`Sink::inspect`],
//! [`StoredState::inspect`]), and what the output contains after that is checked again. The state is taken
//! last.
//!
//! Of two runs that begin at the same time one continues, the one that has taken the output: the later one.
//! A run claims the state only as it has seen it before the output was last known to be its own
//! (`Rules::claim`). Let L be the last run to take the output, and E an earlier one. E sees the state, then
//! that it holds the output, and then claims what it has seen; L begins after that check. If E claims before
//! L does, L finds another state than it has seen, sees that the output is its own, and claims what is there.
//! If L claims first, the claim of E fails, since the state is not what E has seen, and E ends at its check.
//!
//! The state is not used if the input may have dropped deletes that this run has not read: their documents
//! would never end. A compacted topic keeps deletes for a limited time, counted from the time of the state
//! ([`Mark::as_of`]). If the state is older, the whole input is read again if it still holds all records;
//! otherwise the run is refused, or uses the state with `--reconcile`.
//!
//! A replay into an output that is there ([`Continuity::anew`]) takes it over as one without a mark, and
//! reads everything before it corrects it.
//!
//! If records that the run needs have expired, it is refused. With `--reconcile` the corpus is the documents
//! of the state and the records that are left; the output is corrected, and the missing records are logged
//! and counted.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use super::continuity::Continuity;
use super::document_rules::{DocumentRules, ReadAgain, RuleChange};
use super::error::RunError;
use super::fit::{Fit, check, check_envelope, fit, usable};
use super::outputs::OutputRules;
use super::past_error::PastError;
use super::read_again::read_again;
use super::restart::{AHEAD, Restart, Resumable, table};
use dupflow_connectors::failpoint;
use dupflow_connectors::intake::{
    AsOf, CatchUpLine, ChangedRecord, InputFile, InputLog, OffsetGap, PastInputs, Resumption, Source,
    SourceError, SourceInfo, TableLog,
};
use dupflow_connectors::mark::{InputList, Mark, Standing, Topic};
use dupflow_connectors::sinks::Sink;
use dupflow_connectors::state::{Snapshot, StateError, StateWriter, StoredState};
use dupflow_core::description::Description;
use dupflow_core::doc::retention::RetentionClock;
use dupflow_core::pair::DocPair;
use dupflow_core::text::IdfTable;
use dupflow_core::time::{Epoch, LiveFrom, Offsets, Progress, TableInForce, UnixTime};
use dupflow_engine::dataflow::Stages;

/// Attempts to claim a state that other runs write meanwhile.
const CLAIMS: usize = 100;

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
    /// Before which offsets the output has all dead letters.
    pub(super) letters_up_to: Offsets,
    /// Times at which positions of the input were read, if the source records them.
    pub(super) as_of: Option<Arc<AsOf>>,
    /// Which inputs are read, if the source lists them.
    pub(super) reading: Option<Arc<InputLog>>,
    /// The looks at the table that is read, if the source is one.
    pub(super) looks: Option<Arc<TableLog>>,
    /// Whether the output has a mark of an earlier version, which lists no inputs.
    pub(super) is_unlisted: bool,
    /// The epoch of its mark, or of that of the state. The first epoch of the run may be later.
    pub(super) epoch: Epoch,
}

impl Past {
    /// Takes the output over, and computes where to continue. `first` is the first epoch of a new run, `now`
    /// the machine's time of day in unix seconds.
    pub(super) fn find(
        stages: &Stages,
        source: &mut dyn Source,
        sink: &mut dyn Sink,
        continuity: &mut Continuity,
        first: Epoch,
        now: f64,
    ) -> Result<Self, RunError> {
        let Continuity {
            run,
            pipeline,
            source: of_source,
            reconcile,
            rewrites,
            anew,
            letters,
            inputs,
            others,
            sides,
            state,
            tallies,
            reference,
            ..
        } = continuity;
        let mut state = state.as_mut().map(|(state, _)| state);
        let (reconcile, rewrites, anew) = (*reconcile, *rewrites, *anew);
        // Before anything is created or taken over: the input exists.
        let mut input = source.inspect()?;
        let inputs = inputs.as_mut();
        let documents = DocumentRules { pipeline, source: of_source };
        let rules =
            Rules { documents, stages, reconcile, rewrites, anew, scheme: stages.stored_description(), now };
        let beside = OutputRules { source: of_source.clone(), pairs: stages.scheme.pairs.clone(), reconcile };
        let beside = Arc::new(beside);
        if !others.is_empty() {
            // A run that is refused takes nothing over, as far as that can be read before.
            let standing = sink.inspect().map_err(RunError::Sink)?;
            others.iter_mut().try_for_each(|other| other.inspect(standing.as_ref(), &beside))?;
        }
        // Files have one owner, and this run has opened them.
        sides.take_over_files().map_err(RunError::Sink)?;
        let (standing, resumable, stood) =
            rules.take_over(source, sink, &mut input, state.as_deref_mut(), inputs)?;
        let lineage = resumable.mark().and_then(|mark| mark.lineage.as_deref());
        let mut latest = 0;
        for other in &mut *others {
            latest = latest.max(other.take_over(&standing, lineage, &beside)?);
        }
        let deletes_kept_ms = input.tombstones.filter(|tombstones| tombstones.is_known);
        let deletes_kept_ms = deletes_kept_ms.and_then(|kept| u64::try_from(kept.stay.as_millis()).ok());
        let input = resumable.as_read(&input);
        sides.take_over_rows(sink).map_err(RunError::Sink)?;
        let mut beginning = Beginning::new(&rules, &standing, &input, resumable, source, state.as_deref())?;
        let mut output_pairs = beginning.restart.pairs_to_correct(sink, reconcile)?;
        if let Some(state) = &mut state {
            if let Some(changed) = rules.claim(source, &standing, sink, &input, state)? {
                beginning = Beginning::new(&rules, &standing, &input, changed, source, Some(&**state))?;
                output_pairs = match output_pairs {
                    None => beginning.restart.pairs_to_correct(sink, reconcile)?,
                    corrected => corrected,
                };
            }
            if let Some(old) = beginning.read_again.take() {
                let (scheme, metrics) = (rules.scheme.encode(), &stages.observers.metrics);
                let snapshot = read_again(&old, state, &input, &rules.documents, &scheme, metrics)?;
                let left = beginning.restart.with_snapshot(snapshot);
                beginning = Beginning::new(&rules, &standing, &input, left, source, Some(&**state))?;
            }
        }
        let Beginning { restart, begin, gaps, table, .. } = beginning;
        if let Some(state) = &state {
            restart.warn_lost(state);
        }
        if let Some(back) = restart.set_back {
            tracing::warn!(
                to_unix_seconds = back.seconds(),
                "the clock of retention is set back to the clock of this machine; the input is read again"
            );
        }
        let is_whole = gaps.is_none() && restart.of_this_input;
        gaps.iter().for_each(|gaps| restart.missing(gaps, &stages.observers.metrics));
        if reconcile && !others.is_empty() && standing == Standing::New {
            // The others may hold what was read before: all is read first, and written to this one too.
            output_pairs.get_or_insert_default();
        }
        for other in &mut *others {
            other.begin(&standing, output_pairs.is_some(), &beside)?;
        }
        let mut lines = restart.lines(&begin, is_whole, output_pairs.is_some());
        if reference.is_some() && lines.first() != Some(&CatchUpLine::Restored) {
            // The reference is taken in before the state and the first record.
            lines.insert(0, CatchUpLine::Restored);
        }
        if let Some(file) = &mut *letters {
            restart.resume_letters(file)?;
        }
        let (letters, letters_digest) = match (letters, &restart.mark) {
            (Some(file), _) => (Some(file.length()), Some(file.digest())),
            (None, Some(mark)) => (mark.letters, mark.letters_digest.clone()),
            (None, None) => (None, None),
        };
        let epoch = restart.mark.as_ref().map_or(stood.max(first - 1), |mark| mark.progress.epoch);
        let progress = Progress {
            // Epochs never regress, in any output.
            epoch: epoch.max(latest),
            next: begin.clone(),
            table: table.as_ref().map(|(table, _)| *table),
            clock: restart.clock(stages.retention.clock),
            last: restart.last(&begin),
        };
        if let Some(as_of) = source.as_of() {
            // Without a state, nothing has been read before the first note. A state that is used in spite of
            // its age, such as where nothing was written since, counts as read now.
            let stay = input.tombstones.map(|tombstones| tombstones.stay);
            let age = |at: &u64| Duration::from_millis(input.at.saturating_sub(*at));
            let is_recent = |at: &u64| stay.is_none_or(|stay| age(at) < stay);
            let at = restart.as_of().filter(|_| restart.snapshot.is_some()).filter(is_recent);
            as_of.begin(at, &begin, stay);
        }
        let letters_up_to = restart.letters_up_to(&begin);
        let reading = source.input_log();
        let is_unlisted =
            reading.is_some() && matches!(&standing, Standing::At(mark) if mark.inputs.is_none());
        let mark = Mark {
            run: run.clone(),
            progress,
            start: restart.start(&begin, is_whole),
            pipeline: pipeline.clone(),
            source: of_source.clone(),
            in_correction: false,
            letters,
            letters_digest,
            letters_up_to: None,
            letters_topic: None,
            as_of: restart.as_of(),
            deletes_kept_ms,
            input: input.topic.clone(),
            output: sink.topic(),
            state: None,
            tally: tallies.then(|| restart.tally()),
            inputs: None,
            table: restart.snapshot.as_ref().and_then(|snapshot| snapshot.saved().mark.table.clone()),
            lineage: restart.lineage().or_else(|| (!others.is_empty()).then(|| run.clone())),
            commit: None,
        };
        Ok(Self {
            epoch,
            mark,
            letters_up_to,
            begin,
            lines,
            live: Arc::new(LiveFrom::default()),
            keeps: state.is_some(),
            emits_documents: sink.wants_documents() || others.iter().any(|one| one.wants[0]),
            emits_upserts: sink.wants_upserts() || others.iter().any(|one| one.wants[1]),
            snapshot: restart.snapshot,
            writer: None,
            table: table.map(|(_, table)| table),
            output_pairs,
            as_of: source.as_of(),
            reading,
            looks: source.table_log(),
            is_unlisted,
        })
    }
}

/// What a run begins with, where nothing is refused.
struct Beginning<'a> {
    restart: Restart<'a>,
    begin: Offsets,
    /// The documents of a state that are read again, once it is claimed.
    read_again: Option<ReadAgain>,
    /// Records that have expired, if a run continues without them.
    gaps: Option<Vec<OffsetGap>>,
    table: Option<(TableInForce, Arc<IdfTable>)>,
}

impl<'a> Beginning<'a> {
    fn new(
        rules: &Rules<'_>,
        standing: &'a Standing,
        input: &'a SourceInfo,
        mut resumable: Resumable,
        source: &mut dyn Source,
        state: Option<&StoredState>,
    ) -> Result<Self, RunError> {
        let read_again = resumable.read_again.take();
        let may_lack_table = resumable.may_lack_table(rules.reconcile);
        let restart = Restart::new(standing, input, resumable);
        let (begin, gaps) = restart.begin(source, rules.reconcile)?;
        let table = table(restart.mark.as_ref(), state, rules.stages, may_lack_table)?;
        Ok(Self { restart, read_again, begin, gaps, table })
    }
}

/// What decides whether a run may continue on an output.
struct Rules<'a> {
    /// How records become documents.
    documents: DocumentRules<'a>,
    stages: &'a Stages,
    reconcile: bool,
    /// Whether the output is written anew at the end.
    rewrites: bool,
    /// Whether no mark of the output counts.
    anew: bool,
    scheme: Description,
    /// The machine's clock, in unix seconds.
    now: f64,
}

impl Rules<'_> {
    /// Takes the output over. Returns what it holds, what the run can resume from, and the epoch of a mark
    /// that does not count: epochs never regress. `input` is read again if an earlier run may have read on
    /// since.
    fn take_over(
        &self,
        source: &mut dyn Source,
        sink: &mut dyn Sink,
        input: &mut SourceInfo,
        mut state: Option<&mut StoredState>,
        mut inputs: Option<&mut InputFile>,
    ) -> Result<(Standing, Resumable, Epoch), RunError> {
        let mut stood = 0;
        let mut counted = |standing, list: Option<&mut InputFile>| {
            let marked = if let Standing::At(mark) = &standing { Some(mark.progress.epoch) } else { None };
            let whole = with_whole_list(standing, list);
            let Some(epoch) = marked.filter(|_| self.anew) else { return whole };
            stood = epoch;
            Ok(Standing::Unmarked("it is corrected to what the inputs give".to_owned()))
        };
        let before = match sink.inspect().map_err(RunError::Sink)? {
            None => None,
            Some(standing) => {
                let standing = counted(standing, inputs.as_deref_mut())?;
                inspect_again(&standing, source, input)?;
                let topic = sink.topic();
                let resumable =
                    self.resumable(source, &standing, topic.as_ref(), input, state.as_deref_mut())?;
                if !self.reconcile && input.held.is_some() {
                    resumable.check_begin(source)?;
                }
                table(
                    resumable.mark(),
                    state.as_deref(),
                    self.stages,
                    resumable.may_lack_table(self.reconcile),
                )?;
                Some((standing, topic, resumable))
            }
        };
        let standing = counted(sink.take_over().map_err(RunError::Sink)?, inputs)?;
        let topic = sink.topic();
        match before {
            Some((same, same_topic, resumable)) if same == standing && same_topic == topic => {
                Ok((standing, resumable, stood))
            }
            // The earlier run has committed meanwhile.
            _ => {
                inspect_again(&standing, source, input)?;
                let resumable = self.resumable(source, &standing, topic.as_ref(), input, state)?;
                Ok((standing, resumable, stood))
            }
        }
    }

    /// Takes the state over, last of all. Returns what the run can resume from, if that has changed since the
    /// state was read. See the [module](self).
    fn claim(
        &self,
        source: &mut dyn Source,
        standing: &Standing,
        sink: &mut dyn Sink,
        input: &SourceInfo,
        state: &mut StoredState,
    ) -> Result<Option<Resumable>, RunError> {
        let mut changed = None;
        for _ in 0..CLAIMS {
            // After the last look at the state, and before the claim.
            sink.check_held().map_err(RunError::Sink)?;
            failpoint::reach("state-claim");
            if state.claim()? {
                return Ok(changed);
            }
            state.look_again()?;
            changed = Some(self.resumable(source, standing, sink.topic().as_ref(), input, Some(state))?);
        }
        Err(StateError::TakenOver { file: state.place().to_owned() }.into())
    }

    /// What a run can resume from, or why it is refused.
    fn resumable(
        &self,
        source: &mut dyn Source,
        standing: &Standing,
        output: Option<&Topic>,
        input: &SourceInfo,
        mut state: Option<&mut StoredState>,
    ) -> Result<Resumable, RunError> {
        let mark = match standing {
            Standing::Forgets if self.reconcile && !self.rewrites => return Err(PastError::Forgets.into()),
            Standing::Unmarked(what) if !self.reconcile => {
                return Err(PastError::Unmarked(what.clone()).into());
            }
            Standing::At(mark) => {
                check_envelope(mark, self.documents.pipeline, output)?;
                if !self.reconcile {
                    check(mark, &self.documents, &self.stages.scheme.pairs, input, output)?;
                    if let Some(at) = changed(source, mark, input)? {
                        let input = input.topic.as_ref().map_or_else(String::new, ToString::to_string);
                        return Err(PastError::Rewritten { what: "the output", input, at }.into());
                    }
                }
                Some((**mark).clone())
            }
            Standing::New | Standing::Unmarked(_) | Standing::Forgets => None,
        };
        let of_mark = mark.as_ref().map(|mark| self.documents.change_from(mark)).unwrap_or_default();
        let is_elsewhere = |change: &RuleChange| self.reconcile && change.is_elsewhere();
        let is_here = |of| is_same(of, input) && !is_elsewhere(&of_mark);
        let of_this_input = mark.as_ref().is_none_or(is_here);
        let of_input = mark.as_ref().filter(|_| of_this_input);
        let (mut snapshot, has_lost) = match &mut state {
            None => (None, false),
            Some(state) => {
                let snapshot = self.snapshot(state, of_input)?;
                let changed = snapshot.as_ref().map(|stored| changed(source, &stored.saved().mark, input));
                let changed = changed.transpose()?.flatten();
                usable(snapshot, state, input, self.reconcile, changed, |stored| is_same(stored, input))?
            }
        };
        let stored = snapshot.as_ref().map(|snapshot| &snapshot.saved().mark);
        let set_back = self.set_back(of_input, stored);
        let start = of_input.or(stored).map(|of| of.start.clone());
        let start = start.filter(|_| set_back.is_some() && input.repeats);
        if start.is_some_and(|start| source.begin(Some(&start)).is_ok()) {
            // All documents are read again.
            snapshot = None;
        }
        let kept = snapshot.as_ref().map(Snapshot::saved);
        let of_state = kept.map(|kept| self.documents.change_from(&kept.mark)).unwrap_or_default();
        let of_state_inputs = snapshot.as_ref().map(Snapshot::inputs).transpose()?.flatten();
        let has_other_scheme = kept.is_some_and(|kept| kept.scheme != self.scheme.encode());
        of_state.check(self.reconcile)?;
        let reads_again = self.reconcile && (has_lost || of_state.needs_reading() || has_other_scheme);
        let read_again = if reads_again { snapshot.take().map(|old| of_state.read_again(old)) } else { None };
        let has_other_rules = self.reconcile && (of_mark.needs_reading() || of_state.needs_reading());
        let of_this_input = of_this_input && !is_elsewhere(&of_state);
        let resumption = self.resumption(mark.as_ref(), of_state_inputs, snapshot.as_ref(), source)?;
        if resumption != Resumption::AsRead && *standing == Standing::Forgets && !self.rewrites {
            return Err(PastError::ForgetsInputs.into());
        }
        if resumption == Resumption::Anew {
            // Each document may be of a record that is not there any more, or hide one that is.
            snapshot = None;
        }
        if snapshot.is_none()
            && read_again.is_none()
            && let Some(state) = state
        {
            state.latest(0)?;
        }
        Ok(Resumable { mark, of_this_input, snapshot, read_again, has_other_rules, set_back, resumption })
    }

    /// How the run continues after the inputs that an earlier one has read.
    fn resumption(
        &self,
        mark: Option<&Mark>,
        of_state: Option<InputList>,
        snapshot: Option<&Snapshot>,
        source: &mut dyn Source,
    ) -> Result<Resumption, RunError> {
        let saved = snapshot.map(|snapshot| &snapshot.saved().mark.progress.next);
        let begin = saved.and_then(|next| next.values().copied().max()).unwrap_or(0);
        let past = PastInputs {
            of_output: mark.and_then(|mark| mark.inputs.clone()),
            of_state,
            has_documents: snapshot.is_some(),
            table: snapshot.and_then(|snapshot| snapshot.saved().mark.table.clone()),
            begin,
            read: mark.and_then(|mark| mark.progress.next.values().copied().max()).unwrap_or(0).max(begin),
            reconcile: self.reconcile,
        };
        let resumption = source.resume(&past)?;
        Ok(if self.anew { Resumption::Anew } else { resumption })
    }

    /// The time to which the clock of retention is set back: a run that reconciles does so where the clock is
    /// ahead of the machine's, which was ahead once. Otherwise it never decreases.
    fn set_back(&self, marked: Option<&Mark>, stored: Option<&Mark>) -> Option<UnixTime> {
        let retention = &self.stages.retention;
        let clock = |mark: &Mark| RetentionClock::Wall.read(mark.progress.clock?);
        let clock = marked.and_then(clock).max(stored.and_then(clock))?;
        let is_ahead = clock.seconds() > self.now + AHEAD;
        if !(retention.follows(RetentionClock::Wall) && self.reconcile && is_ahead) {
            return None;
        }
        UnixTime::new(self.now)
    }

    /// The latest snapshot at or before the mark, or the latest of all without a mark. A run that reconciles
    /// may find one of another scheme.
    fn snapshot(&self, state: &mut StoredState, mark: Option<&Mark>) -> Result<Option<Snapshot>, RunError> {
        let at_most = mark.filter(|_| !self.reconcile).map_or(Epoch::MAX, |mark| mark.progress.epoch);
        let Some(snapshot) = state.latest(at_most)? else {
            // The state is empty, or ahead of the output: then runs of another output stored it.
            return match state.latest(Epoch::MAX)? {
                Some(newer) => Err(PastError::Ahead { kept: newer.saved().epoch(), output: at_most }.into()),
                None => Ok(None),
            };
        };
        if !self.reconcile && snapshot.saved().scheme != self.scheme.encode() {
            let differences = self.scheme.differences(&snapshot.saved().scheme).unwrap_or_default();
            return Err(PastError::OtherScheme(differences).into());
        }
        Ok(Some(snapshot))
    }
}

/// The standing of an output whose mark has the whole list of the inputs.
fn with_whole_list(mut standing: Standing, inputs: Option<&mut InputFile>) -> Result<Standing, RunError> {
    if let Standing::At(mark) = &mut standing
        && let Some((list, file)) = mark.inputs.as_mut().zip(inputs)
    {
        *list = file.take(list).map_err(RunError::Sink)?;
    }
    Ok(standing)
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

/// The first record read up to a mark in whose place its input holds another one now.
fn changed(
    source: &mut dyn Source,
    mark: &Mark,
    input: &SourceInfo,
) -> Result<Option<ChangedRecord>, SourceError> {
    match fit(mark, input) {
        Fit::Same if !mark.progress.last.is_empty() => {
            source.changed(&mark.progress.last, input.as_read(mark).tombstones.is_some())
        }
        _ => Ok(None),
    }
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
