//! Whether a mark, and what was kept, go together with the input and the output that there are.
//!
//! Each refusal is one message, and names what to do; `--reconcile` is the way out wherever a run can end
//! exact with it.

use std::collections::BTreeMap;
use std::time::Duration;

use thiserror::Error;

use super::RunError;
use dupflow_connectors::intake::{OffsetGap, SourceError, SourceInfo, Tombstones};
use dupflow_connectors::mark::{Mark, Topic};
use dupflow_connectors::state::{Snapshot, StoredState};
use dupflow_core::description::{Description, Difference};
use dupflow_core::run::metrics::{Counter, Metrics};
use dupflow_core::time::Epoch;

/// Why a run cannot go on where another one ended.
#[derive(Debug, Error)]
pub enum PastError {
    /// The output is of another pipeline.
    #[error("the output was written by another pipeline: {}; with --reconcile, what differs is written as corrections", list(.0))]
    OtherPipeline(Vec<Difference>),
    /// The input is another one.
    #[error(
        "{what} of {}, and the input is {}: {}; name the right one in source.topic, or start with --reconcile: what the input holds is then \
         read from source.start on, without stored documents of the other one, and what differs is written as corrections",
        named(.was), named(.is), anew(.was, .is, "source.topic is another one")
    )]
    OtherInput {
        /// What is of the other one.
        what: &'static str,
        /// The other one.
        was: Option<Topic>,
        /// That of this run.
        is: Option<Topic>,
    },
    /// The output is another one.
    #[error(
        "the mark is that of {}, and the output is {}: {}; name the right one in sink.topic, or start with --reconcile, which writes what the \
         output lacks as corrections",
        named(.was), named(.is), anew(.was, .is, "sink.topic is another one")
    )]
    OtherOutput {
        /// The other one.
        was: Option<Topic>,
        /// That of this run.
        is: Option<Topic>,
    },
    /// The mark is lost.
    #[error(
        "{0}: the mark is lost, or was written under another id; name the right progress topic and transactional id, take an output topic that \
         is empty, or start with --reconcile, which compares the result with what the output holds and writes what differs as corrections"
    )]
    Unmarked(String),
    /// Ends of documents may have been missed.
    #[error(
        "{input}: the stored documents are as of {hours} hours ago, and the topic is compacted, with delete.retention.ms = {stay_ms}: the ends \
         of some may have gone from it unread, and it does not hold all documents; raise delete.retention.ms for the next time, and start with \
         --reconcile, which keeps all stored documents, those that have ended unseen too (or move state.path away before, and only \
         documents count that the topic still holds)"
    )]
    TooOld {
        /// The input.
        input: String,
        /// As of when the documents are, in hours before now.
        hours: String,
        /// For how long the input keeps the end of a document.
        stay_ms: u128,
    },
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

/// Words for a topic, or for an input that is none.
fn named(topic: &Option<Topic>) -> String {
    topic.as_ref().map_or_else(|| "no topic".to_owned(), ToString::to_string)
}

/// Why two topics are not one.
fn anew(was: &Option<Topic>, is: &Option<Topic>, renamed: &'static str) -> &'static str {
    let same_name = was.as_ref().zip(is.as_ref()).is_some_and(|(was, is)| was.name == is.name);
    if same_name { "it has been made anew" } else { renamed }
}

/// Whether a mark names another topic than the one that there is.
pub(super) fn is_other(was: Option<&Topic>, is: Option<&Topic>) -> bool {
    was.is_some_and(|was| is.is_none_or(|is| !was.is(is)))
}

/// How a mark and the input go together.
pub(super) enum Fit {
    /// It is of this input.
    Same,
    /// It is of another one.
    Other,
    /// It is of this one, or seems to be, and tells of records behind its end.
    Beyond(SourceError),
}

/// How what a mark says goes together with what the input is.
pub(super) fn fit(mark: &Mark, look: &SourceInfo) -> Fit {
    if is_other(mark.input.as_ref(), look.topic.as_ref()) {
        return Fit::Other;
    }
    let Some(held) = &look.held else { return Fit::Same };
    let beyond = mark.progress.next.iter().find_map(|(partition, next)| {
        let (first, end) = held.get(partition).copied().unwrap_or_default();
        (end < *next).then_some((*partition, *next, first, end))
    });
    let Some((partition, wanted, first, end)) = beyond else { return Fit::Same };
    let name = look.topic.as_ref().map_or("", |topic| &topic.name);
    let hint = "it ends before what had been read: it has lost records, has been made anew, or is another one; with --reconcile, what it holds \
                is read and the output is corrected";
    Fit::Beyond(SourceError::Lost { input: name.into(), partition, wanted, first, end, hint })
}

/// Whether the ends of all documents that were kept are still to be read, where the input keeps them for so
/// long.
pub(super) fn is_fresh(kept: &Mark, look: &SourceInfo, stay: Duration) -> bool {
    // Of a partition that has been added nothing has been read.
    let read = |partition: &u32| kept.progress.next.get(partition).copied().unwrap_or(0);
    let is_read = |held: &BTreeMap<u32, (u64, u64)>| {
        kept.progress.next.keys().all(|partition| held.contains_key(partition))
            && held.iter().all(|(partition, (_, end))| read(partition) == *end)
    };
    if look.held.as_ref().is_some_and(is_read) {
        // Nothing has been written since.
        return true;
    }
    // Reading takes its time too; and a clock that has been set back says nothing.
    let age = kept.as_of.and_then(|as_of| look.at.checked_sub(as_of)).map(Duration::from_millis);
    age.is_some_and(|age| age < stay.mul_f64(0.9))
}

/// What a run does with documents that are older than ends of documents stay.
#[derive(Debug, PartialEq, Eq)]
enum Old {
    /// All is read again.
    Anew,
    /// They are kept, though ends may have gone unread.
    Kept,
    /// They are kept, since no end goes from a topic that is not compacted; whether it is, is not known.
    Believed,
    /// The run is refused.
    Refused,
}

/// The same, of a state. Where the policy is not known all is read again if nothing has expired since the
/// first record that counts: that is right under every policy, since only `delete` takes away first offsets.
/// Where something has, `delete` is in force, and ends are missing only if `compact` is too, which no offset
/// shows.
fn old(kept: &Mark, look: &SourceInfo, tombstones: &Tombstones, reconcile: bool) -> Old {
    let start = |partition: &u32| kept.start.get(partition).copied().unwrap_or(0);
    let holds_all = |held: &BTreeMap<u32, (u64, u64)>| {
        held.iter().all(|(partition, (first, _))| *first <= start(partition))
    };
    match tombstones {
        Tombstones { is_known: true, all_held: true, .. } => Old::Anew,
        Tombstones { is_known: false, .. } if look.held.as_ref().is_some_and(holds_all) => Old::Anew,
        Tombstones { is_known: false, .. } => Old::Believed,
        _ if reconcile => Old::Kept,
        _ => Old::Refused,
    }
}

/// Logs and counts what has expired before it was read. `since`: everything that was written before is in
/// what was kept.
pub(super) fn missing(gaps: &[OffsetGap], since: Option<u64>, metrics: &Metrics) {
    for OffsetGap { partition, from, to, until } in gaps {
        metrics.add(Counter::LostRecords, to - from);
        let seconds =
            |ms: &Option<u64>| ms.map_or_else(|| "unknown".to_owned(), |ms| (ms / 1000).to_string());
        tracing::warn!(
            partition,
            from,
            to,
            offsets = to - from,
            after_unix_seconds = seconds(&since),
            before_unix_seconds = seconds(until),
            "records have expired before they were read, and are left out"
        );
    }
}

/// What is wrong where a run that has documents is not told to reconcile.
pub(super) fn keeps_documents(error: SourceError) -> SourceError {
    match error {
        SourceError::Lost { input, partition, wanted, first, end, .. } if wanted < first => {
            let hint = "records have expired before they were read; --reconcile keeps the documents of the state, reads what is left, \
                        corrects the output, and names what is missing";
            SourceError::Lost { input, partition, wanted, first, end, hint }
        }
        other => other,
    }
}

/// Whether a run may go on behind a mark without being told to reconcile.
pub(super) fn check(
    mark: &Mark,
    pipeline: &str,
    look: &SourceInfo,
    output: Option<&Topic>,
) -> Result<(), RunError> {
    if mark.pipeline != pipeline {
        return Err(PastError::OtherPipeline(differences(pipeline, &mark.pipeline)).into());
    }
    match fit(mark, look) {
        Fit::Same => {}
        Fit::Beyond(error) => return Err(error.into()),
        Fit::Other => {
            let (what, was, is) = ("the output was made", mark.input.clone(), look.topic.clone());
            return Err(PastError::OtherInput { what, was, is }.into());
        }
    }
    if is_other(mark.output.as_ref(), output) {
        return Err(PastError::OtherOutput { was: mark.output.clone(), is: output.cloned() }.into());
    }
    if mark.in_correction && look.repeats { Err(PastError::InCorrection.into()) } else { Ok(()) }
}

/// What was kept, if it can be gone on with; nothing if it is not to be used: then it is emptied.
pub(super) fn usable(
    snapshot: Option<Snapshot>,
    state: &mut StoredState,
    look: &SourceInfo,
    reconcile: bool,
    is_same: impl Fn(&Mark) -> bool,
) -> Result<Option<Snapshot>, RunError> {
    let Some(snapshot) = snapshot else { return Ok(None) };
    let mark = &snapshot.saved().mark;
    let fits = match fit(mark, look) {
        Fit::Same => true,
        Fit::Beyond(error) if !reconcile => return Err(error.into()),
        Fit::Other if !reconcile => {
            let (what, was, is) = ("the state was kept", mark.input.clone(), look.topic.clone());
            return Err(PastError::OtherInput { what, was, is }.into());
        }
        Fit::Beyond(_) | Fit::Other => is_same(mark),
    };
    if !fits {
        tracing::warn!("the state is of another input, and is not used");
        state.latest(0)?;
        return Ok(None);
    }
    let Some(tombstones) = look.tombstones else { return Ok(Some(snapshot)) };
    let stay = tombstones.stay;
    if is_fresh(mark, look, stay) {
        return Ok(Some(snapshot));
    }
    let age = mark.as_of.and_then(|as_of| look.at.checked_sub(as_of));
    let hours = age.map_or_else(|| "unknown".to_owned(), |ms| (ms / 3_600_000).to_string());
    let as_of_hours_ago = &hours;
    match old(mark, look, &tombstones, reconcile) {
        Old::Anew => {
            let policy = if tombstones.is_known { "compact" } else { "not known" };
            tracing::warn!(
                as_of_hours_ago,
                stay_ms = stay.as_millis(),
                policy,
                "the state is older than delete.retention.ms: ends of documents may have gone from the input unread if it is compacted; all of \
                 it is read again, and the output is corrected"
            );
            state.latest(0)?;
            return Ok(None);
        }
        Old::Refused => {
            let input = look.topic.as_ref().map_or_else(String::new, ToString::to_string);
            return Err(PastError::TooOld { input, hours, stay_ms: stay.as_millis() }.into());
        }
        Old::Kept => tracing::warn!(
            as_of_hours_ago,
            "the state is older than delete.retention.ms, and is kept: documents may be in it whose end has gone from the input unread"
        ),
        Old::Believed => tracing::warn!(
            as_of_hours_ago,
            "whether the input is compacted is not known, and it does not hold all records any more: the state is taken as right, which it is if \
             the topic is not compacted; allow DescribeConfigs"
        ),
    }
    Ok(Some(snapshot))
}

/// In what a pipeline differs from another one, both encoded.
fn differences(here: &str, there: &str) -> Vec<Difference> {
    let here = Description::decode(here.as_bytes());
    here.and_then(|here| here.differences(there.as_bytes())).unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::time::{Offsets, Progress};

    fn topic(name: &str, id: Option<&str>) -> Option<Topic> {
        Some(Topic { name: name.to_owned(), id: id.map(str::to_owned) })
    }

    fn mark(next: u64, input: Option<Topic>, as_of: Option<u64>) -> Mark {
        let progress = Progress { next: Offsets::from([(0, next)]), ..Progress::default() };
        Mark { progress, input, as_of, ..Mark::default() }
    }

    fn look(topic: Option<Topic>, at: u64) -> SourceInfo {
        SourceInfo { topic, held: Some([(0, (3, 9))].into()), at, ..SourceInfo::default() }
    }

    #[test]
    fn a_mark_is_of_the_input_that_it_names() {
        let look = look(topic("t", Some("1")), 0);
        for (input, next, fits) in [
            (topic("t", Some("1")), 9, "same"),
            (topic("t", None), 2, "same"),
            (None, 9, "same"),
            (topic("t", Some("2")), 9, "other"),
            (topic("u", None), 9, "other"),
            (topic("t", Some("1")), 10, "beyond"),
            (None, 10, "beyond"),
        ] {
            let found = match fit(&mark(next, input.clone(), None), &look) {
                Fit::Same => "same",
                Fit::Other => "other",
                Fit::Beyond(_) => "beyond",
            };
            assert_eq!(found, fits, "{input:?} {next}");
        }
        let files = SourceInfo::default();
        assert!(matches!(fit(&mark(9, None, None), &files), Fit::Same));
        assert!(matches!(fit(&mark(9, topic("t", None), None), &files), Fit::Other));
    }

    #[test]
    fn a_policy_that_is_not_known_refuses_no_run() {
        let age = |first, is_known, all_held, reconcile| {
            let tombstones = Tombstones { stay: Duration::from_secs(1), all_held, is_known };
            let look =
                SourceInfo { held: Some([(0, (first, 9)), (1, (0, 5))].into()), ..SourceInfo::default() };
            let kept = Mark { start: Offsets::from([(0, 3)]), ..mark(8, None, None) };
            old(&kept, &look, &tombstones, reconcile)
        };
        for reconcile in [false, true] {
            assert_eq!(age(3, false, false, reconcile), Old::Anew, "all that counts is held");
            assert_eq!(age(4, false, false, reconcile), Old::Believed, "some has expired");
            assert_eq!(age(4, true, true, reconcile), Old::Anew);
        }
        assert_eq!((age(3, true, false, false), age(3, true, false, true)), (Old::Refused, Old::Kept));
    }

    #[test]
    fn documents_are_fresh_for_as_long_as_ends_stay() {
        let stay = Duration::from_millis(1000);
        let fresh = |next, as_of, at| is_fresh(&mark(next, None, as_of), &look(None, at), stay);
        assert!(fresh(9, None, 1_000_000), "nothing was written since");
        let added = |end| SourceInfo {
            held: Some([(0, (3, 9)), (1, (0, end))].into()),
            at: 6000,
            ..SourceInfo::default()
        };
        assert!(
            is_fresh(&mark(9, None, None), &added(0), stay),
            "nothing was written to a partition that was added"
        );
        assert!(!is_fresh(&mark(9, None, None), &added(2), stay), "something was");
        let (gone, unknown) =
            (SourceInfo { held: Some([].into()), ..added(0) }, SourceInfo { held: None, ..added(0) });
        assert!(
            !is_fresh(&mark(9, None, None), &gone, stay) && !is_fresh(&mark(9, None, None), &unknown, stay)
        );
        assert!(fresh(8, Some(5000), 5899) && !fresh(8, Some(5000), 5900));
        assert!(!fresh(8, None, 0), "nothing is known");
        assert!(!fresh(8, Some(5000), 4999), "the clock has gone back");
    }
}
