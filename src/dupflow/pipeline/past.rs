//! What a run finds when it begins: where the output stands, what has been kept, where reading goes on.
//!
//! The corpus is what was kept, or else nothing, and the input from there on. The run reads up to where the
//! output stands without writing anything; then it is live. So the deltas that follow are those of D(C) from
//! there on, whatever the earlier run did after its last commit.
//!
//! | the output | what was kept | the run |
//! |---|---|---|
//! | has a mark, of this pipeline | at or behind the mark | goes on |
//! | has a mark, of this pipeline | nothing | reads the input again from where it began, if all of that is still there |
//! | has a mark, of another pipeline | | is refused, or corrects the output if it is told to reconcile |
//! | has a mark, of another input | | is refused, or reads the input that there is, without what was kept of the other one, and corrects the output |
//! | has a mark, of another output | | is refused, or corrects the output that there is |
//! | has none, and holds records | | is refused, or corrects the output |
//! | is new | something | builds the result of what was kept, and writes it as corrections of nothing |
//! | is new | nothing | begins |
//! | has a mark, of this pipeline | behind the mark or nothing, and the source cannot repeat what it gave | corrects the output |
//! | forgets | | begins, or goes on from what was kept; what was written since then is written again |
//!
//! All this is looked at before the output is taken over, as far as the output shows itself then
//! ([`Sink::look`]): a run that is refused does not end the one that has it. What is found behind the taking
//! over is judged again.
//!
//! What was kept is not used where ends of its documents may have gone from the input unread: they would live
//! on for ever. A source that is compacted keeps such an end for some time; documents are as of a time too
//! ([`Mark::as_of`]), and are good for as long. After that all is read again, if the source holds all; if it
//! does not, the run is refused, or keeps them all the same if it is told to reconcile.
//!
//! Where records that are wanted have expired the run is refused. Told to reconcile, it keeps the documents
//! that were kept, reads what is left, and corrects the output: the corpus is what was kept and what is left.
//! What is missing is logged and counted.

use std::collections::BTreeSet;
use std::sync::Arc;

use super::continuity::Continuity;
use super::error::RunError;
use super::fit::{Fit, check, fit, keeps_documents, missing, usable};
use super::past_error::PastError;
use dupflow_connectors::intake::{AsOf, CatchUpLine, Source, SourceError, SourceInfo};
use dupflow_connectors::mark::{Mark, Standing, Topic};
use dupflow_connectors::sinks::Sink;
use dupflow_connectors::state::{Snapshot, StoredState};
use dupflow_core::description::Description;
use dupflow_core::doc::retention::RetentionClock;
use dupflow_core::pair::DocPair;
use dupflow_core::text::IdfTable;
use dupflow_core::time::{Epoch, LiveFrom, Offsets, Progress, RetentionTime, TableInForce};
use dupflow_engine::dataflow::Stages;

/// Where a run begins.
pub(super) struct Past {
    /// Where the output stands; with what the marks of this run have in common.
    pub(super) mark: Mark,
    /// Where reading begins in each partition.
    pub(super) begin: Offsets,
    /// What has to be read before the run is live.
    pub(super) lines: Vec<CatchUpLine>,
    /// From which epoch on it is.
    pub(super) live: Arc<LiveFrom>,
    /// Whether documents are kept for a later run.
    pub(super) keeps: bool,
    /// Whether the output is to be told of documents.
    pub(super) emits_documents: bool,
    /// What was kept.
    pub(super) snapshot: Option<Snapshot>,
    /// The table of document frequencies in force.
    pub(super) table: Option<Arc<IdfTable>>,
    /// The pairs in the output, if it is to be corrected.
    pub(super) there: Option<BTreeSet<DocPair>>,
    /// As of when the input is read, if that is noted.
    pub(super) as_of: Option<Arc<AsOf>>,
}

/// What a standing of the output comes to, where nothing is refused.
struct Judged {
    /// The last mark.
    found: Option<Mark>,
    /// Whether that is of the input that there is.
    of_this_input: bool,
    /// What was kept.
    snapshot: Option<Snapshot>,
}

impl Judged {
    /// That the source can begin where it has to.
    fn begin(&self, source: &mut dyn Source) -> Result<(), SourceError> {
        let kept = self.snapshot.as_ref().map(|snapshot| &snapshot.saved().mark.progress.next);
        let begun = self.found.as_ref().filter(|_| self.of_this_input).map(|mark| &mark.start);
        let Some(from) = kept.or(begun) else { return Ok(()) };
        source
            .begin(Some(from))
            .map(drop)
            .map_err(|error| if kept.is_some() { keeps_documents(error) } else { error })
    }
}

/// Whether a run may go on there, and from what.
fn judged(
    standing: &Standing,
    output: Option<&Topic>,
    pipeline: &str,
    look: &SourceInfo,
    reconcile: bool,
    state: Option<&mut StoredState>,
    scheme: &Description,
) -> Result<Judged, RunError> {
    if reconcile && *standing == Standing::Forgets {
        return Err(PastError::Forgets.into());
    }
    let found = match standing {
        Standing::At(mark) => {
            if !reconcile {
                check(mark, pipeline, look, output)?;
            }
            Some((**mark).clone())
        }
        Standing::Unmarked(what) if !reconcile => return Err(PastError::Unmarked(what.clone()).into()),
        Standing::New | Standing::Unmarked(_) | Standing::Forgets => None,
    };
    let of_this_input = found.as_ref().is_none_or(|mark| is_same(mark, look));
    let snapshot = match state {
        None => None,
        Some(state) => {
            let at_most = found.as_ref().filter(|_| of_this_input);
            let kept = kept(state, at_most, scheme, reconcile)?;
            usable(kept, state, look, reconcile, |mark| is_same(mark, look))?
        }
    };
    Ok(Judged { found, of_this_input, snapshot })
}

/// Looks at the input again if a mark is beyond the end that was found: an earlier run may have read on
/// since.
fn look_again(
    standing: &Standing,
    source: &mut dyn Source,
    look: &mut SourceInfo,
) -> Result<(), SourceError> {
    if let Standing::At(mark) = standing
        && matches!(fit(mark, look), Fit::Beyond(_))
    {
        *look = source.inspect()?;
    }
    Ok(())
}

/// Whether a mark is of the input that there is. Of another one neither what was read counts, nor how far.
fn is_same(mark: &Mark, look: &SourceInfo) -> bool {
    match fit(mark, look) {
        Fit::Same => true,
        Fit::Other => false,
        Fit::Beyond(_) => look.topic.as_ref().is_some_and(|topic| topic.id.is_some() && mark.input.is_some()),
    }
}

impl Past {
    /// Takes the output over, and finds out where to go on. `first` is the first epoch of a run that begins.
    pub(super) fn find(
        stages: &Stages,
        source: &mut dyn Source,
        sink: &mut dyn Sink,
        continuity: &mut Continuity,
        first: Epoch,
    ) -> Result<Self, RunError> {
        let Continuity { run, pipeline, reconcile, letters, state, .. } = continuity;
        let mut state = state.as_mut().map(|(state, _)| state);
        let reconcile = *reconcile;
        let scheme = stages.scheme.description();
        // First: nothing is made, and no one is replaced, for an input that is not there.
        let mut look = source.inspect()?;
        // Then: no run is ended by one that is refused.
        let mut judge = |standing: &Standing, output: Option<&Topic>, input: &SourceInfo| {
            judged(standing, output, pipeline, input, reconcile, state.as_deref_mut(), &scheme)
        };
        let looked = sink.inspect().map_err(RunError::Sink)?;
        let before = match looked {
            None => None,
            Some(standing) => {
                look_again(&standing, source, &mut look)?;
                let judged = judge(&standing, sink.topic().as_ref(), &look)?;
                if !reconcile && look.held.is_some() {
                    judged.begin(source)?;
                }
                Some((standing, sink.topic(), judged))
            }
        };
        let standing = sink.take_over().map_err(RunError::Sink)?;
        let output = sink.topic();
        // Meanwhile the earlier run may have gone on.
        let judged = match before {
            Some((same, topic, judged)) if same == standing && topic == output => judged,
            _ => {
                look_again(&standing, source, &mut look)?;
                judge(&standing, output.as_ref(), &look)?
            }
        };
        let restart = Restart::new(&standing, &look, judged);
        let there = restart.pairs_to_correct(sink, reconcile)?;
        let (begin, is_whole) = restart.begin(source, reconcile, stages)?;
        let start = restart.start(&begin, is_whole);
        let lines = restart.lines(&begin, is_whole, there.is_some());
        let table = restart.table(state.as_deref(), stages, reconcile)?;
        let Restart { kept_at, at, .. } = &restart;
        let progress = Progress {
            epoch: at.as_ref().map_or(first - 1, |mark| mark.progress.epoch),
            next: begin.clone(),
            table: table.as_ref().map(|(table, _)| *table),
            clock: restart.clock(stages.retention.clock),
        };
        if let Some(file) = letters {
            match (&standing, at) {
                (Standing::Forgets, Some(_)) => Ok(()),
                (_, at) => file.resume_at(at.as_ref().and_then(|mark| mark.letters).unwrap_or(0)),
            }
            .map_err(RunError::Letters)?;
        }
        let mark = Mark {
            run: run.clone(),
            progress,
            start,
            pipeline: pipeline.clone(),
            in_correction: false,
            letters: at.as_ref().and_then(|mark| mark.letters),
            // Without documents all is read again, from here on.
            as_of: kept_at.as_ref().map_or(Some(look.at), |kept| kept.as_of).filter(|_| look.topic.is_some()),
            input: look.topic.clone(),
            output,
        };
        let keeps = state.is_some();
        Ok(Self {
            mark,
            begin,
            lines,
            live: Arc::new(LiveFrom::default()),
            keeps,
            emits_documents: sink.wants_documents(),
            snapshot: restart.snapshot,
            table: table.map(|(_, table)| table),
            there,
            as_of: source.as_of(),
        })
    }
}

/// The output after it was taken over, the input, and what was kept: what decides where a run begins.
struct Restart<'a> {
    standing: &'a Standing,
    look: &'a SourceInfo,
    /// Whether the last mark of the output is of this input.
    of_this_input: bool,
    snapshot: Option<Snapshot>,
    /// The mark of what was kept.
    kept_at: Option<Mark>,
    /// The last mark of the output, or else that of what was kept.
    at: Option<Mark>,
    /// The clock in the last mark of the output, if that is of this input.
    marked_clock: Option<RetentionTime>,
}

impl<'a> Restart<'a> {
    fn new(standing: &'a Standing, look: &'a SourceInfo, judged: Judged) -> Self {
        let Judged { found, of_this_input, snapshot } = judged;
        let kept_at = snapshot.as_ref().map(|snapshot| snapshot.saved().mark.clone());
        let marked_clock = found.as_ref().filter(|_| of_this_input).and_then(|mark| mark.progress.clock);
        let at = found.or_else(|| kept_at.clone());
        Self { standing, look, of_this_input, snapshot, kept_at, at, marked_clock }
    }

    /// Whether what was kept is exactly at a mark. The input between the two has to be repeated, and may be
    /// another one.
    fn is_exact(&self, mark: &Mark) -> bool {
        !mark.in_correction
            && self.kept_at.as_ref().is_some_and(|kept| {
                (kept.progress.epoch, &kept.progress.next) == (mark.progress.epoch, &mark.progress.next)
            })
    }

    /// Whether what was kept is at or behind a mark in all partitions. A state that several outputs share may
    /// be of offsets that this output has not reached.
    fn is_behind(&self, mark: &Mark) -> bool {
        let reached = |(partition, next)| mark.progress.next.get(partition).is_some_and(|at| next <= at);
        self.kept_at.as_ref().is_none_or(|kept| kept.progress.next.iter().all(reached))
    }

    /// The pairs in the output, if it has to be corrected.
    fn pairs_to_correct(
        &self,
        sink: &mut dyn Sink,
        reconcile: bool,
    ) -> Result<Option<BTreeSet<DocPair>>, RunError> {
        // The run before was about to correct the output.
        let was_corrected = self.kept_at.as_ref().is_some_and(|kept| kept.in_correction);
        let continues = |mark: &Mark| (self.look.repeats && self.is_behind(mark)) || self.is_exact(mark);
        match self.standing {
            Standing::At(mark) if reconcile || was_corrected || !continues(mark) => sink.pairs().map(Some),
            Standing::Unmarked(_) => sink.pairs().map(Some),
            Standing::New if self.kept_at.is_some() => Ok(Some(BTreeSet::new())),
            _ => Ok(None),
        }
        .map_err(RunError::Sink)
    }

    /// Where reading begins in each partition, and whether everything wanted is still in this input. If some
    /// of it is not, a run that reconciles reads the rest.
    fn begin(
        &self,
        source: &mut dyn Source,
        reconcile: bool,
        stages: &Stages,
    ) -> Result<(Offsets, bool), RunError> {
        let kept_at = self.kept_at.as_ref();
        let begun = self.at.as_ref().filter(|_| self.of_this_input).map(|mark| &mark.start);
        let from = kept_at.map(|mark| &mark.progress.next).or(begun);
        match (source.begin(from), from) {
            (Err(SourceError::Lost { .. }), Some(from))
                if reconcile && (kept_at.is_none() || self.look.held.is_some()) =>
            {
                tracing::warn!(
                    "the input is not held any more from where it is wanted: what is left of it is read"
                );
                let (begin, gaps) = source.begin_left(from)?;
                missing(&gaps, kept_at.and_then(|kept| kept.as_of), &stages.observers.metrics);
                Ok((begin, false))
            }
            (Ok(begin), _) => Ok((begin, self.of_this_input)),
            (Err(error), _) if kept_at.is_some() => Err(keeps_documents(error).into()),
            (Err(error), _) => Err(error.into()),
        }
    }

    /// Where the corpus begins in each partition.
    fn start(&self, begin: &Offsets, is_whole: bool) -> Offsets {
        let mut start = match (&self.kept_at, &self.at) {
            (Some(kept), _) => kept.start.clone(),
            (None, Some(mark)) if is_whole => mark.start.clone(),
            _ => begin.clone(),
        };
        for (partition, offset) in begin {
            start.entry(*partition).or_insert(*offset);
        }
        start
    }

    /// What has to be read before the run is live: up to where the output stands. If that is unknown: up to
    /// the end of the input, so that fewer pairs are retracted.
    fn lines(&self, begin: &Offsets, is_whole: bool, corrects: bool) -> Vec<CatchUpLine> {
        let mut lines = Vec::new();
        if self.snapshot.is_some() {
            lines.push(CatchUpLine::Restored);
        }
        if self.at.is_none() && !corrects {
            return lines;
        }
        let held = self.look.held.as_ref();
        let ends: Option<Offsets> =
            held.map(|held| held.iter().map(|(partition, (_, end))| (*partition, *end)).collect());
        let next = match &ends {
            Some(ends) if !self.of_this_input || self.at.is_none() => ends.clone(),
            None if !is_whole => Offsets::new(),
            _ => self.at.as_ref().map(|mark| mark.progress.next.clone()).unwrap_or_default(),
        };
        let end =
            |partition| ends.as_ref().map_or(u64::MAX, |ends| ends.get(partition).copied().unwrap_or(0));
        let up_to = next.iter().map(|(partition, next)| (*partition, (*next).min(end(partition))));
        let is_ahead =
            |(partition, line): &(u32, u64)| begin.get(partition).is_some_and(|begin| begin < line);
        lines.push(CatchUpLine::Offsets(up_to.filter(is_ahead).collect()));
        lines
    }

    /// The table of document frequencies in force, under live weights.
    fn table(
        &self,
        state: Option<&StoredState>,
        stages: &Stages,
        reconcile: bool,
    ) -> Result<Option<(TableInForce, Arc<IdfTable>)>, RunError> {
        let table = self.at.as_ref().and_then(|mark| mark.progress.table);
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

    /// The clock of retention: the later one of the output's and of what was kept. What is restored or
    /// repeated before the run is live is as old as the output stands.
    fn clock(&self, clock: RetentionClock) -> Option<RetentionTime> {
        let kept = self.kept_at.as_ref().and_then(|mark| mark.progress.clock);
        let of_clock = |time: Option<RetentionTime>| time.and_then(|time| clock.read(time));
        of_clock(self.marked_clock).max(of_clock(kept)).map(|time| clock.at(time))
    }
}

/// What was kept at or before the mark, or at all if there is none. Nothing if it is not to be used: then it
/// is emptied.
fn kept(
    state: &mut StoredState,
    mark: Option<&Mark>,
    scheme: &Description,
    reconcile: bool,
) -> Result<Option<Snapshot>, RunError> {
    let at_most = mark.filter(|_| !reconcile).map_or(Epoch::MAX, |mark| mark.progress.epoch);
    let Some(snapshot) = state.latest(at_most)? else {
        // Nothing, or nothing that is old enough: this is no output of the runs that kept it.
        return match state.latest(Epoch::MAX)? {
            Some(newer) => Err(PastError::Ahead { kept: newer.saved().epoch(), output: at_most }.into()),
            None => Ok(None),
        };
    };
    if snapshot.saved().scheme == scheme.encode() {
        return Ok(Some(snapshot));
    }
    if !reconcile {
        let differences = scheme.differences(&snapshot.saved().scheme).unwrap_or_default();
        return Err(PastError::OtherScheme(differences).into());
    }
    // What is published next begins with nothing.
    state.latest(0)?;
    Ok(None)
}
