//! What a run finds when it begins: where the output stands, what has been kept, where reading goes on.
//!
//! The corpus is what was kept, or else nothing, and the input from there on. The run reads up to where the output stands without
//! writing anything; then it is live. So the deltas that follow are those of D(C) from there on, whatever the earlier run did after its last
//! commit.
//!
//! | the output | what was kept | the run |
//! |---|---|---|
//! | has a mark, of this pipeline | at or behind the mark | goes on |
//! | has a mark, of this pipeline | nothing | reads the input again from where it began, if all of that is still there |
//! | has a mark, of another pipeline | | is refused, or corrects the output if it is told to reconcile |
//! | is new | something | builds the result of what was kept, and writes it as corrections of nothing |
//! | is new | nothing | begins |
//! | has a mark, of this pipeline | behind the mark or nothing, and the source cannot repeat what it gave | corrects the output |
//! | forgets | | begins, or goes on from what was kept; what was written since then is written again |

use std::collections::BTreeSet;
use std::sync::Arc;

use thiserror::Error;

use super::{Continuity, RunError};
use crate::dataflow::Stages;
use crate::description::{Description, Difference};
use crate::mark::{Mark, Standing};
use crate::pair::DocPair;
use crate::sink::Sink;
use crate::source::{Line, Source, SourceError};
use crate::state::{Snapshot, State};
use crate::text::IdfTable;
use crate::time::{Epoch, LiveFrom, Offsets, Progress, RetentionTime};

/// Where a run begins.
pub(super) struct Past {
    /// Where the output stands; with what the marks of this run have in common.
    pub(super) mark: Mark,
    /// Where reading begins in each partition.
    pub(super) begin: Offsets,
    /// What has to be read before the run is live.
    pub(super) lines: Vec<Line>,
    /// From which epoch on it is.
    pub(super) live: Arc<LiveFrom>,
    /// Whether documents are kept for a later run.
    pub(super) keeps: bool,
    /// Whether the output is to be told of documents.
    pub(super) tells_documents: bool,
    /// What was kept.
    pub(super) snapshot: Option<Snapshot>,
    /// The table of document frequencies in force.
    pub(super) table: Option<Arc<IdfTable>>,
    /// The pairs in the output, if it is to be corrected.
    pub(super) there: Option<BTreeSet<DocPair>>,
}

/// Why a run cannot go on where another one ended.
#[derive(Debug, Error)]
pub enum PastError {
    /// The output is of another pipeline.
    #[error("the output was written by another pipeline: {}; with --reconcile, what differs is written as corrections", list(.0))]
    OtherPipeline(Vec<Difference>),
    /// What was kept is of another scheme.
    #[error(
        "the state was kept under another scheme: {}; take another place for it, or let it be made anew from the input with --reconcile",
        list(.0)
    )]
    OtherScheme(Vec<Difference>),
    /// What was kept is newer than the output.
    #[error(
        "the state is of epoch {kept}, and the output stands at {output}: the output has lost epochs, or is another one; --reconcile writes \
         what differs as corrections"
    )]
    Ahead {
        /// The epoch of what was kept.
        kept: Epoch,
        /// That of the output.
        output: Epoch,
    },
    /// An earlier run ended while it corrected the output.
    #[error(
        "an earlier run ended while it corrected the output; --reconcile does that again, and ends exact"
    )]
    InCorrection,
    /// The table in force is lost.
    #[error(
        "the table of document frequencies in force ({0:016x}) is not in the state: the output cannot be gone on with as it was; \
         --reconcile makes a new one, and writes what differs as corrections"
    )]
    TableLost(u64),
    /// The output cannot be corrected.
    #[error("the output keeps no marks: there is nothing to reconcile with")]
    Forgets,
}

fn list(differences: &[Difference]) -> String {
    let all: Vec<_> = differences.iter().map(ToString::to_string).collect();
    if all.is_empty() { "its description cannot be read".to_owned() } else { all.join("; ") }
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
        let Continuity { run, pipeline, reconcile, letters, state } = continuity;
        let mut state = state.as_mut().map(|(state, _)| state);
        let reconcile = *reconcile;
        let scheme = stages.scheme.description();
        let standing = sink.take_over().map_err(RunError::Sink)?;
        if reconcile && standing == Standing::Forgets {
            return Err(PastError::Forgets.into());
        }
        let found = match &standing {
            Standing::At(mark) => {
                if !reconcile && mark.pipeline != *pipeline {
                    return Err(PastError::OtherPipeline(differences(pipeline, &mark.pipeline)).into());
                }
                if !reconcile && mark.in_correction && source.repeats() {
                    return Err(PastError::InCorrection.into());
                }
                Some((**mark).clone())
            }
            Standing::New | Standing::Forgets => None,
        };
        let snapshot = match &mut state {
            None => None,
            Some(state) => kept(state, found.as_ref(), &scheme, reconcile)?,
        };
        let kept_at = snapshot.as_ref().map(|snapshot| snapshot.saved().mark.clone());
        let is_new = standing == Standing::New && kept_at.is_some();
        // What is between what was kept and the mark has to be repeated, and there it may be another.
        let is_exact = |mark: &Mark| {
            !mark.in_correction
                && kept_at.as_ref().is_some_and(|kept| kept.progress.epoch == mark.progress.epoch)
        };
        let there = match &standing {
            Standing::At(mark) if reconcile || !(source.repeats() || is_exact(mark)) => {
                Some(sink.pairs().map_err(RunError::Sink)?)
            }
            _ => is_new.then(BTreeSet::new),
        };
        let found_clock = found.as_ref().and_then(|mark| mark.progress.clock);
        let at = found.or_else(|| kept_at.clone());
        let from = kept_at.as_ref().map(|mark| &mark.progress.next).or(at.as_ref().map(|mark| &mark.start));
        let mut is_whole = true;
        let begin = match source.begin(from) {
            Err(SourceError::Lost { .. }) if reconcile && kept_at.is_none() => {
                tracing::warn!(
                    "the input is not held from where it began any more: what is left of it is read"
                );
                is_whole = false;
                source.begin(Some(&Offsets::new()))?
            }
            begin => begin?,
        };
        let start = match &at {
            Some(mark) if is_whole => kept_at.as_ref().unwrap_or(mark).start.clone(),
            _ => begin.clone(),
        };
        let mut lines = Vec::new();
        if let Some(mark) = &at {
            let behind =
                |(partition, next): &(&u32, &u64)| begin.get(partition).is_some_and(|begin| begin < next);
            let ahead = mark.progress.next.iter().filter(|_| is_whole).filter(behind);
            lines.push(Line::Offsets(ahead.map(|(partition, next)| (*partition, *next)).collect()));
        }
        if snapshot.is_some() {
            lines.insert(0, Line::Restored);
        }
        let table =
            at.as_ref().and_then(|mark| mark.progress.table).filter(|_| stages.scheme.live().is_some());
        let table = match (table, state.as_ref()) {
            (Some(table), Some(state)) => match state.table(table.fingerprint)? {
                Some(bytes) => {
                    let read = IdfTable::read(&stages.scheme.text, &*bytes).ok();
                    let same = read.filter(|read| read.fingerprint() == table.fingerprint);
                    let same = same.ok_or(PastError::TableLost(table.fingerprint))?;
                    Some((table, Arc::new(same)))
                }
                None if reconcile => None,
                None => return Err(PastError::TableLost(table.fingerprint).into()),
            },
            (Some(_), None) if reconcile => None,
            (Some(table), None) => return Err(PastError::TableLost(table.fingerprint).into()),
            (None, _) => None,
        };
        let clock = stages.retention.clock;
        let of_clock = |time: Option<RetentionTime>| time.and_then(|time| clock.of(time));
        let progress = Progress {
            epoch: at.as_ref().map_or(first - 1, |mark| mark.progress.epoch),
            next: begin.clone(),
            table: table.as_ref().map(|(table, _)| *table),
            // The later one: what is restored or repeated before the run is live is as old as the output stands.
            clock: of_clock(found_clock)
                .max(of_clock(kept_at.as_ref().and_then(|mark| mark.progress.clock)))
                .map(|time| clock.at(time)),
        };
        if let Some(file) = letters {
            match (&standing, &at) {
                (Standing::Forgets, Some(_)) => Ok(()),
                (_, at) => file.go_on_from(at.as_ref().and_then(|mark| mark.letters).unwrap_or(0)),
            }
            .map_err(RunError::Letters)?;
        }
        let kept_letters = at.and_then(|mark| mark.letters);
        let mark = Mark {
            run: run.clone(),
            progress,
            start,
            pipeline: pipeline.clone(),
            in_correction: false,
            letters: kept_letters,
        };
        let live = Arc::new(LiveFrom::default());
        Ok(Self {
            mark,
            begin,
            lines,
            live,
            keeps: state.is_some(),
            tells_documents: sink.wants_documents(),
            snapshot,
            table: table.map(|(_, table)| table),
            there,
        })
    }
}

/// What was kept at or before the mark, or at all if there is none. Nothing if it is not to be used: then it is emptied.
fn kept(
    state: &mut State,
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

/// In what a pipeline differs from another one, both encoded.
fn differences(here: &str, there: &str) -> Vec<Difference> {
    let here = Description::decode(here.as_bytes());
    here.and_then(|here| here.differences(there.as_bytes())).unwrap_or_default()
}
