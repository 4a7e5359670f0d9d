//! What a run derives from the output, the state and the input: offsets, lines, corrections, table and clock.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::document_rules::ReadAgain;
use super::error::RunError;
use super::fit::{keeps_documents, missing};
use super::past_error::PastError;
use dupflow_connectors::intake::{CatchUpLine, OffsetGap, Resumption, Source, SourceError, SourceInfo};
use dupflow_connectors::mark::{Mark, RecordTally, Standing};
use dupflow_connectors::sinks::{LetterFile, Sink};
use dupflow_connectors::state::{Snapshot, StoredState};
use dupflow_core::doc::retention::RetentionClock;
use dupflow_core::pair::DocPair;
use dupflow_core::text::IdfTable;
use dupflow_core::time::{LastRecord, Offsets, RetentionTime, TableInForce, UnixTime};
use dupflow_engine::dataflow::Stages;
use dupflow_run::metrics::Metrics;

/// Seconds by which the clock of retention may be ahead of the machine's, inclusive, without a warning and
/// without being set back: corrections of a clock are smaller.
pub(super) const AHEAD: f64 = 300.0;

/// What a run can resume from, where nothing is refused.
pub(super) struct Resumable {
    /// The mark of the output.
    pub(super) mark: Option<Mark>,
    /// Whether the mark is of this input; true without a mark.
    pub(super) of_this_input: bool,
    /// The documents of the state.
    pub(super) snapshot: Option<Snapshot>,
    /// Whether the clock of retention is set back to this time, so that the input is read again: documents
    /// that had expired too early are alive.
    pub(super) set_back: Option<UnixTime>,
    /// The documents of a state that are read again.
    pub(super) read_again: Option<ReadAgain>,
    /// Whether the mark, or the state, was written under other rules of how records become documents.
    pub(super) has_other_rules: bool,
    /// How the run continues after the inputs that an earlier one has read.
    pub(super) resumption: Resumption,
}

impl Resumable {
    /// The input as it was read up to the mark and the state.
    pub(super) fn as_read(&self, input: &SourceInfo) -> SourceInfo {
        let state = self.snapshot.as_ref().map(|snapshot| &snapshot.saved().mark);
        self.mark.iter().chain(state).fold(input.clone(), |input, kept| input.as_read(kept))
    }

    /// The mark of the output, or else that of the state.
    pub(super) fn mark(&self) -> Option<&Mark> {
        self.mark.as_ref().or(self.snapshot.as_ref().map(|snapshot| &snapshot.saved().mark))
    }

    /// Whether the run can go on without the table of document frequencies of the mark.
    pub(super) fn may_lack_table(&self, reconcile: bool) -> bool {
        reconcile || self.resumption == Resumption::Anew
    }

    /// Checks that the source can begin at the required offsets.
    pub(super) fn check_begin(&self, source: &mut dyn Source) -> Result<(), SourceError> {
        let stored = self.snapshot.as_ref().map(|snapshot| &snapshot.saved().mark.progress.next);
        let start = self.mark.as_ref().filter(|_| self.of_this_input).map(|mark| &mark.start);
        let Some(from) = stored.or(start) else { return Ok(()) };
        source
            .begin(Some(from))
            .map(drop)
            .map_err(|error| if stored.is_some() { keeps_documents(error) } else { error })
    }
}

/// The output, the state and the input of a run that may continue.
pub(super) struct Restart<'a> {
    standing: &'a Standing,
    input: &'a SourceInfo,
    /// Whether the mark of the output is of this input.
    pub(super) of_this_input: bool,
    /// Whether its numbers of records are those of other rules.
    has_other_rules: bool,
    /// The documents of the state.
    pub(super) snapshot: Option<Snapshot>,
    /// The mark of the state.
    state_mark: Option<Mark>,
    /// The mark of the output, or else that of the state.
    pub(super) mark: Option<Mark>,
    /// How the run continues after the inputs that an earlier one has read.
    resumption: Resumption,
    /// The clock in the mark of the output, if that is of this input.
    marked_clock: Option<RetentionTime>,
    /// See [`Resumable::set_back`].
    pub(super) set_back: Option<UnixTime>,
}

impl<'a> Restart<'a> {
    pub(super) fn new(standing: &'a Standing, input: &'a SourceInfo, resumable: Resumable) -> Self {
        let Resumable { mark, of_this_input, snapshot, set_back, has_other_rules, resumption, .. } =
            resumable;
        let state_mark = snapshot.as_ref().map(|snapshot| snapshot.saved().mark.clone());
        let marked_clock = mark.as_ref().filter(|_| of_this_input).and_then(|mark| mark.progress.clock);
        let mark = mark.or_else(|| state_mark.clone());
        Self {
            standing,
            input,
            of_this_input,
            has_other_rules,
            snapshot,
            state_mark,
            mark,
            resumption,
            marked_clock,
            set_back,
        }
    }

    /// The same with the documents of a state from which those are taken that are read again.
    pub(super) fn with_snapshot(self, snapshot: Option<Snapshot>) -> Resumable {
        let Self { mark, of_this_input, set_back, has_other_rules, resumption, .. } = self;
        Resumable { mark, of_this_input, snapshot, read_again: None, has_other_rules, set_back, resumption }
    }

    /// Whether the state is exactly at a mark, so that no input between the two has to be repeated.
    fn is_exact(&self, mark: &Mark) -> bool {
        !mark.in_correction
            && self.state_mark.as_ref().is_some_and(|kept| {
                (kept.progress.epoch, &kept.progress.next) == (mark.progress.epoch, &mark.progress.next)
            })
    }

    /// Whether the state is at or behind a mark in all partitions. A state that several outputs share may be
    /// at offsets that this output has not reached.
    fn is_behind(&self, mark: &Mark) -> bool {
        let reached = |(partition, next)| mark.progress.next.get(partition).is_some_and(|at| next <= at);
        self.state_mark.as_ref().is_none_or(|kept| kept.progress.next.iter().all(reached))
    }

    /// The pairs in the output, if it has to be corrected.
    pub(super) fn pairs_to_correct(
        &self,
        sink: &mut dyn Sink,
        reconcile: bool,
    ) -> Result<Option<BTreeSet<DocPair>>, RunError> {
        // The earlier run had begun to correct the output.
        let was_corrected = self.state_mark.as_ref().is_some_and(|kept| kept.in_correction);
        let continues = |mark: &Mark| {
            self.resumption == Resumption::AsRead
                && !mark.in_correction
                && ((self.input.repeats && self.is_behind(mark)) || self.is_exact(mark))
        };
        match self.standing {
            Standing::At(mark) if reconcile || was_corrected || !continues(mark) => sink.pairs().map(Some),
            Standing::Unmarked(_) => sink.pairs().map(Some),
            Standing::New if self.state_mark.is_some() => Ok(Some(BTreeSet::new())),
            _ => sink.check_unchanged().map(|()| None),
        }
        .map_err(RunError::Sink)
    }

    /// Where reading begins in each partition. If the input no longer holds all records from there on, a run
    /// that reconciles reads the rest; then the records that are missing are returned too.
    pub(super) fn begin(
        &self,
        source: &mut dyn Source,
        reconcile: bool,
    ) -> Result<(Offsets, Option<Vec<OffsetGap>>), RunError> {
        let state_mark = self.state_mark.as_ref();
        let begun = self.mark.as_ref().filter(|_| self.of_this_input).map(|mark| &mark.start);
        let reads_all = self.set_back.is_some() && self.input.repeats;
        let stored = state_mark.map(|mark| &mark.progress.next).filter(|_| !reads_all);
        let from = stored.or(begun).or(state_mark.map(|mark| &mark.start));
        match (source.begin(from), from) {
            (Err(SourceError::Lost { .. }), Some(from))
                if reconcile && (state_mark.is_none() || self.input.held.is_some()) =>
            {
                let (begin, gaps) = source.begin_left(from)?;
                Ok((begin, Some(gaps)))
            }
            (Ok(begin), _) => Ok((begin, None)),
            (Err(error), _) if state_mark.is_some() => Err(keeps_documents(error).into()),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Continues the file of dead letters. Those of the input before the place where reading begins are not
    /// written again, so they stay: where the state is ahead of the output, its mark has their length.
    pub(super) fn resume_letters(&self, file: &mut LetterFile) -> Result<(), RunError> {
        let ahead = self.state_mark.as_ref().zip(self.mark.as_ref());
        let ahead = ahead.filter(|(_, mark)| !self.is_behind(mark));
        let from_state =
            self.state_mark.as_ref().filter(|kept| !self.is_numbered_alike() && kept.letters.is_some());
        match (self.standing, &self.mark) {
            (Standing::Forgets, Some(Mark { tally: None, .. })) => file.resume_at_end(),
            (Standing::Forgets, None) => file.begin_anew(),
            (Standing::At(_), _) if self.reads_files_again() => file.begin_anew(),
            (_, mark) => file.resume_at(from_state.or(ahead.map(|(kept, _)| kept)).or(mark.as_ref())),
        }
        .map_err(RunError::Letters)?;
        let (Some((kept, mark)), here) = (ahead, file.length()) else { return Ok(()) };
        match kept.letters.filter(|kept| here < *kept) {
            // A file that was taken away as a whole is begun anew.
            Some(kept) if here > 0 && mark.letters == Some(here) => {
                Err(PastError::LettersBehind { path: file.path().display().to_string(), here, kept }.into())
            }
            _ => Ok(()),
        }
    }

    /// Whether the records up to the mark of the output have the numbers that they had when it was written.
    fn is_numbered_alike(&self) -> bool {
        self.of_this_input && !self.has_other_rules && self.resumption == Resumption::AsRead
    }

    /// Whether all present files are read from their beginning, so that all letters are written again.
    /// Records of a topic may have expired: their letters stay.
    fn reads_files_again(&self) -> bool {
        self.of_this_input
            && self.state_mark.is_none()
            && self.input.held.is_none()
            && !self.is_numbered_alike()
    }

    /// Before which offsets the output has the dead letters of all records; those of later ones are written,
    /// also where they are read before the run is live.
    pub(super) fn letters_up_to(&self, begin: &Offsets) -> Offsets {
        let marked = self.mark.as_ref().filter(|_| self.is_numbered_alike());
        let marked = marked.map(|mark| &mark.progress.next);
        let stored = self.state_mark.as_ref().and_then(|kept| kept.letters_up_to.as_ref());
        marked.or(stored).unwrap_or(begin).clone()
    }

    /// Logs that the state has lost what it held when the output was last written.
    pub(super) fn warn_lost(&self, state: &StoredState) {
        let Standing::At(mark) = self.standing else { return };
        let (place, there) = (state.place(), state.epoch());
        match mark.state {
            Some(was) if there.is_none() => tracing::warn!(
                place,
                was_at_epoch = was,
                "the state is lost: it held documents when the output was last written, and is empty now; \
                the input is read again"
            ),
            Some(was) if there < Some(was) => tracing::warn!(
                place,
                was_at_epoch = was,
                is_at_epoch = there,
                "the state is older than when the output was last written; the input is read again from there"
            ),
            None if there.is_none() => {
                tracing::info!(place, "the state is empty: the input is read again");
            }
            _ => {}
        }
    }

    /// Logs and counts records that have expired.
    pub(super) fn missing(&self, gaps: &[OffsetGap], metrics: &Metrics) {
        tracing::warn!(
            "the input no longer holds all records from the required offsets on: the rest is read"
        );
        missing(gaps, self.state_mark.as_ref().and_then(|kept| kept.as_of), metrics);
    }

    /// Where the corpus begins in each partition.
    pub(super) fn start(&self, begin: &Offsets, is_whole: bool) -> Offsets {
        let mut start = match (&self.state_mark, &self.mark) {
            (Some(kept), _) => kept.start.clone(),
            (None, Some(mark)) if is_whole => mark.start.clone(),
            _ => begin.clone(),
        };
        for (partition, offset) in begin {
            start.entry(*partition).or_insert(*offset);
        }
        start
    }

    /// As of when the documents at the start are. Without a state all is read from now on.
    pub(super) fn as_of(&self) -> Option<u64> {
        self.state_mark
            .as_ref()
            .map_or(Some(self.input.at), |mark| mark.as_of)
            .filter(|_| self.input.topic.is_some())
    }

    /// The counts of records up to the mark.
    pub(super) fn tally(&self) -> RecordTally {
        self.mark.as_ref().and_then(|mark| mark.tally.clone()).unwrap_or_default()
    }

    /// What the outputs of the run share, if there ever were several.
    pub(super) fn lineage(&self) -> Option<String> {
        self.mark.as_ref().and_then(|mark| mark.lineage.clone())
    }

    /// The last record read of each partition where reading continues after it.
    pub(super) fn last(&self, begin: &Offsets) -> BTreeMap<u32, LastRecord> {
        let kept = self.state_mark.iter().flat_map(|kept| &kept.progress.last);
        let is_read = |(partition, last): &(&u32, &LastRecord)| begin.get(*partition) > Some(&last.offset);
        kept.filter(is_read).map(|(partition, last)| (*partition, *last)).collect()
    }

    /// What has to be read before the run is live: up to the mark of the output. If there is none that
    /// counts, up to the end of the input, so that fewer pairs are retracted.
    pub(super) fn lines(&self, begin: &Offsets, is_whole: bool, corrects: bool) -> Vec<CatchUpLine> {
        let mut lines = Vec::new();
        if self.snapshot.is_some() {
            lines.push(CatchUpLine::Restored);
        }
        if self.mark.is_none() && !corrects {
            return lines;
        }
        let held = self.input.held.as_ref();
        let ends: Option<Offsets> =
            held.map(|held| held.iter().map(|(partition, (_, end))| (*partition, *end)).collect());
        let next = match &ends {
            Some(ends) if !self.of_this_input || self.mark.is_none() => ends.clone(),
            // Without a mark, and of other rules or files, whose records have other numbers: to the end of
            // what is there.
            None if self.mark.is_none() || self.has_other_rules || self.resumption != Resumption::AsRead => {
                begin.keys().map(|partition| (*partition, u64::MAX)).collect()
            }
            None if !is_whole => Offsets::new(),
            _ => self.mark.as_ref().map(|mark| mark.progress.next.clone()).unwrap_or_default(),
        };
        let end =
            |partition| ends.as_ref().map_or(u64::MAX, |ends| ends.get(partition).copied().unwrap_or(0));
        let up_to = next.iter().map(|(partition, next)| (*partition, (*next).min(end(partition))));
        let is_ahead =
            |(partition, line): &(u32, u64)| begin.get(partition).is_some_and(|begin| begin < line);
        lines.push(CatchUpLine::Offsets(up_to.filter(is_ahead).collect()));
        lines
    }

    /// The clock of retention: the later one of the output's and the state's. What is restored or repeated
    /// before the run is live expires as of the mark.
    pub(super) fn clock(&self, clock: RetentionClock) -> Option<RetentionTime> {
        if let Some(now) = self.set_back {
            return Some(clock.at(now));
        }
        let kept = self.state_mark.as_ref().and_then(|mark| mark.progress.clock);
        let of_clock = |time: Option<RetentionTime>| time.and_then(|time| clock.read(time));
        of_clock(self.marked_clock).max(of_clock(kept)).map(|time| clock.at(time))
    }
}

/// The table of document frequencies in force, under live weights.
pub(super) fn table(
    mark: Option<&Mark>,
    state: Option<&StoredState>,
    stages: &Stages,
    reconcile: bool,
) -> Result<Option<(TableInForce, Arc<IdfTable>)>, RunError> {
    let table = mark.and_then(|mark| mark.progress.table);
    let Some(table) = table.filter(|_| stages.scheme.live().is_some()) else { return Ok(None) };
    let stored = state.map(|state| state.table(table.fingerprint)).transpose()?.flatten();
    match stored {
        Some(bytes) => {
            let read = IdfTable::read(&stages.scheme.text, &*bytes).ok();
            let same = read.filter(|read| read.fingerprint() == table.fingerprint);
            let same = same.ok_or(PastError::TableLost(table.fingerprint))?;
            Ok(Some((table, Arc::new(same))))
        }
        None if reconcile => Ok(None),
        None => Err(PastError::TableLost(table.fingerprint).into()),
    }
}
