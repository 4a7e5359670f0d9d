//! Checks whether a mark and the stored state fit the present input and output.
//!
//! Each refusal is one message that names the remedy. It mentions `--reconcile` wherever a run with that
//! option ends with an exact output.

use std::collections::BTreeMap;
use std::time::Duration;

use super::document_rules::{DocumentRules, differences};
use super::error::RunError;
use super::past_error::PastError;
use dupflow_connectors::intake::{ChangedRecord, OffsetGap, SourceError, SourceInfo, Tombstones};
use dupflow_connectors::mark::{Mark, Topic};
use dupflow_connectors::state::{Snapshot, StoredState};
use dupflow_core::description::{Description, Difference};
use dupflow_core::doc::fields::FieldRule;
use dupflow_core::pair_rule::PairRule;
use dupflow_engine::dataflow::HELD_FIELDS;
use dupflow_run::metrics::{Counter, Metrics};

/// The setting that earlier versions did not describe.
pub(super) const ENVELOPE: &str = "sink.envelope";

/// Whether a mark names another topic than the present one.
pub(super) fn is_other(was: Option<&Topic>, is: Option<&Topic>) -> bool {
    was.is_some_and(|was| is.is_none_or(|is| !was.is(is)))
}

/// How a mark fits the input.
pub(super) enum Fit {
    /// The mark is of this input.
    Same,
    /// The mark is of another input.
    Other,
    /// The mark seems to be of this input, but it names offsets beyond its end.
    Beyond(SourceError),
}

/// How a mark fits the input that `input` describes.
pub(super) fn fit(mark: &Mark, input: &SourceInfo) -> Fit {
    if is_other(mark.input.as_ref(), input.topic.as_ref()) {
        return Fit::Other;
    }
    let Some(held) = &input.held else { return Fit::Same };
    let beyond = mark.progress.next.iter().find_map(|(partition, next)| {
        let (first, end) = held.get(partition).copied().unwrap_or_default();
        (end < *next).then_some((*partition, *next, first, end))
    });
    let Some((partition, wanted, first, end)) = beyond else { return Fit::Same };
    let name = input.topic.as_ref().map_or("", |topic| &topic.name);
    let hint = "it ends before the last offset that was read: it has lost records, was created again, or is \
        another one; start with --reconcile, which reads the input again and corrects the output";
    Fit::Beyond(SourceError::Lost { input: name.into(), partition, wanted, first, end, hint })
}

/// Whether the input still holds the deletes of all documents in the state, given that it keeps a delete for
/// `stay`.
pub(super) fn is_fresh(kept: &Mark, input: &SourceInfo, stay: Duration) -> bool {
    // Nothing has been read of a partition that was added later.
    let read = |partition: &u32| kept.progress.next.get(partition).copied().unwrap_or(0);
    let is_read = |held: &BTreeMap<u32, (u64, u64)>| {
        kept.progress.next.keys().all(|partition| held.contains_key(partition))
            && held.iter().all(|(partition, (_, end))| read(partition) == *end)
    };
    if input.held.as_ref().is_some_and(is_read) {
        // No records were written since.
        return true;
    }
    // 10 % are left for the time that reading takes. A clock that was set back gives no age.
    let age = kept.as_of.and_then(|as_of| input.at.checked_sub(as_of)).map(Duration::from_millis);
    age.is_some_and(|age| age < stay.mul_f64(0.9))
}

/// What a run does with a state that is older than the input keeps deletes.
#[derive(Debug, PartialEq, Eq)]
enum OldState {
    /// The input is read again as a whole.
    ReadAgain,
    /// The state is used, although deletes may have been missed.
    Use,
    /// The state is used: a topic that is not compacted loses no deletes, but whether it is compacted is not
    /// known.
    Assume,
    /// The run is refused.
    Refuse,
}

/// What to do with a state that is older than the input keeps deletes.
///
/// If the cleanup policy of the topic is not known, the input is read again if nothing has expired since the
/// first record that counts. That is right under every policy, since only `delete` removes first offsets. If
/// something has expired, `delete` is in force. Then deletes are missing only if `compact` is in force too,
/// which offsets do not show.
fn old_state(kept: &Mark, input: &SourceInfo, tombstones: &Tombstones, reconcile: bool) -> OldState {
    match tombstones {
        Tombstones { is_known: true, all_held: true, .. } => OldState::ReadAgain,
        Tombstones { is_known: false, .. } if input.holds_all(&kept.start) => OldState::ReadAgain,
        Tombstones { is_known: false, .. } => OldState::Assume,
        _ if reconcile => OldState::Use,
        _ => OldState::Refuse,
    }
}

/// Logs and counts records that expired before they were read. Records written before `since` are in the
/// state.
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

/// Adds the hint on `--reconcile` to an error about lost records, for a run that has a state.
pub(super) fn keeps_documents(error: SourceError) -> SourceError {
    match error {
        SourceError::Lost { input, partition, wanted, first, end, .. } if wanted < first => {
            let hint = "records have expired before they were read; start with --reconcile, which keeps the \
                documents of the state, reads the records that are left, corrects the output, and logs what \
                is missing";
            SourceError::Lost { input, partition, wanted, first, end, hint }
        }
        other => other,
    }
}

/// Whether a run without `--reconcile` may continue after a mark. `pairs` is the rule of both pipelines on
/// the fields of pairs, if they are not refused.
pub(super) fn check(
    mark: &Mark,
    rules: &DocumentRules<'_>,
    pairs: &PairRule,
    input: &SourceInfo,
    output: Option<&Topic>,
) -> Result<(), RunError> {
    check_rules(mark, rules, pairs)?;
    match fit(mark, input) {
        Fit::Same => {}
        Fit::Beyond(error) => return Err(error.into()),
        Fit::Other => {
            let (what, was, is) = ("the output", mark.input.clone(), input.topic.clone());
            return Err(PastError::OtherInput { what, was, is }.into());
        }
    }
    check_topic(mark, output)?;
    // A run over files finishes the correction that an earlier one has begun, whatever caused it.
    let is_finished_here = !input.repeats || mark.inputs.is_some();
    if mark.in_correction && !is_finished_here { Err(PastError::InCorrection.into()) } else { Ok(()) }
}

/// Checks that a mark is of this topic, if the output is one.
pub(super) fn check_topic(mark: &Mark, output: Option<&Topic>) -> Result<(), PastError> {
    match is_other(mark.output.as_ref(), output) {
        true => Err(PastError::OtherOutput { was: mark.output.clone(), is: output.cloned() }),
        false => Ok(()),
    }
}

/// Checks that an output was written by this pipeline, and by these rules of how records become documents.
pub(super) fn check_rules(mark: &Mark, rules: &DocumentRules<'_>, pairs: &PairRule) -> Result<(), PastError> {
    let mut others = differences(rules.pipeline, &mark.pipeline);
    let is_same = mark.pipeline == rules.pipeline
        || is_of_earlier_version(&others)
        || has_same_pairs(&others, rules.pipeline, &mark.pipeline, pairs);
    let of_source = rules.of_source(mark);
    if is_same && of_source.is_empty() {
        return Ok(());
    }
    others.extend(of_source);
    Err(PastError::OtherPipeline(others))
}

/// Checks that an output is written on in its own envelope. Corrections cannot make up for a change of it.
pub(super) fn check_envelope(mark: &Mark, pipeline: &str, output: Option<&Topic>) -> Result<(), PastError> {
    let differs = |one: &Difference| one.name == ENVELOPE;
    let other = differences(pipeline, &mark.pipeline).into_iter().find(differs);
    match other {
        Some(Difference { there: Some(was), here: Some(is), .. })
            if !is_other(mark.output.as_ref(), output) =>
        {
            Err(PastError::OtherEnvelope { was, is })
        }
        _ => Ok(()),
    }
}

/// Whether a mark differs only by what earlier versions did not describe. Its output is taken as written in
/// the present envelope, which the next mark then describes.
fn is_of_earlier_version(differences: &[Difference]) -> bool {
    matches!(differences, [only] if only.name == ENVELOPE && only.there.is_none())
}

/// The state if it can be used, and whether what its input still holds has to be read again. If it cannot be
/// used, the state is emptied and the result is `None`.
pub(super) fn usable(
    snapshot: Option<Snapshot>,
    state: &mut StoredState,
    input: &SourceInfo,
    reconcile: bool,
    changed: Option<ChangedRecord>,
    is_same: impl Fn(&Mark) -> bool,
) -> Result<(Option<Snapshot>, bool), RunError> {
    let Some(snapshot) = snapshot else { return Ok((None, false)) };
    let mark = &snapshot.saved().mark;
    let input = &input.as_read(mark);
    let named = || input.topic.as_ref().map_or_else(String::new, ToString::to_string);
    if let Some(at) = changed.filter(|_| !reconcile) {
        return Err(PastError::Rewritten { what: "the state", input: named(), at }.into());
    }
    let has_lost = changed.is_some() || matches!(fit(mark, input), Fit::Beyond(_)) && is_same(mark);
    if has_lost && reconcile {
        tracing::warn!(
            "the state stands for records that the input has lost: all that the input holds is read again, \
             and the output is corrected"
        );
        return Ok((Some(snapshot), true));
    }
    let fits = match fit(mark, input) {
        Fit::Same => true,
        Fit::Beyond(error) if !reconcile => return Err(error.into()),
        Fit::Other if !reconcile => {
            let (what, was, is) = ("the state", mark.input.clone(), input.topic.clone());
            return Err(PastError::OtherInput { what, was, is }.into());
        }
        Fit::Beyond(_) | Fit::Other => is_same(mark),
    };
    if !fits {
        tracing::warn!("the state belongs to another input, and is not used");
        state.latest(0)?;
        return Ok((None, false));
    }
    let Some(tombstones) = input.tombstones else { return Ok((Some(snapshot), false)) };
    let stay = tombstones.stay;
    if is_fresh(mark, input, stay) {
        return Ok((Some(snapshot), false));
    }
    let age = mark.as_of.and_then(|as_of| input.at.checked_sub(as_of));
    let hours = age.map_or_else(|| "unknown".to_owned(), |ms| (ms / 3_600_000).to_string());
    let as_of_hours_ago = &hours;
    match old_state(mark, input, &tombstones, reconcile) {
        OldState::ReadAgain => {
            let policy = if tombstones.is_known { "compact" } else { "not known" };
            tracing::warn!(
                as_of_hours_ago,
                stay_ms = stay.as_millis(),
                policy,
                "the state is older than delete.retention.ms: if the input is compacted, deletes may have \
                been removed before they were read; the whole input is read again, and the output is \
                corrected"
            );
            state.latest(0)?;
            return Ok((None, false));
        }
        OldState::Refuse => {
            return Err(PastError::TooOld { input: named(), hours, stay_ms: stay.as_millis() }.into());
        }
        OldState::Use => tracing::warn!(
            as_of_hours_ago,
            "the state is older than delete.retention.ms, and is used: it may contain documents whose \
            deletes were removed from the input before they were read"
        ),
        OldState::Assume => tracing::warn!(
            as_of_hours_ago,
            "whether the input is compacted is not known, and it no longer holds all records: the state is \
            used, which is right if the topic is not compacted; allow DescribeConfigs"
        ),
    }
    Ok((Some(snapshot), false))
}

/// Whether two encoded pipelines differ only in held fields that decide no pair. Without a state all
/// documents are read anew; whether stored ones have the fields is checked with the state.
fn has_same_pairs(differences: &[Difference], here: &str, there: &str, pairs: &PairRule) -> bool {
    let held = |pipeline: &str| {
        Description::decode(pipeline.as_bytes()).map(|all| all.texts(HELD_FIELDS)).unwrap_or_default()
    };
    let (here, there) = (held(here), held(there));
    let is_same = |field: &str| {
        let is_of = |rule: &&String| FieldRule::parse(rule).is_ok_and(|rule| rule.name() == field);
        here.iter().find(is_of).is_some_and(|rule| there.contains(rule))
    };
    matches!(differences, [only] if only.name == HELD_FIELDS) && pairs.fields().all(is_same)
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

    fn source(topic: Option<Topic>, at: u64) -> SourceInfo {
        SourceInfo { topic, held: Some([(0, (3, 9))].into()), at, ..SourceInfo::default() }
    }

    #[test]
    fn a_mark_is_of_the_input_that_it_names() {
        let present = source(topic("t", Some("1")), 0);
        for (input, next, fits) in [
            (topic("t", Some("1")), 9, "same"),
            (topic("t", None), 2, "same"),
            (None, 9, "same"),
            (topic("t", Some("2")), 9, "other"),
            (topic("u", None), 9, "other"),
            (topic("t", Some("1")), 10, "beyond"),
            (None, 10, "beyond"),
        ] {
            let found = match fit(&mark(next, input.clone(), None), &present) {
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

    /// Marks of earlier versions do not say the envelope; the present one is taken.
    #[test]
    fn an_envelope_stays_with_its_output() {
        let described = |envelope: Option<&str>, size: u64| {
            let all = Description::new().with("sketch.size", size);
            let all = envelope.into_iter().fold(all, |all, envelope| all.with(ENVELOPE, envelope));
            String::from_utf8(all.encode()).unwrap()
        };
        let output = topic("out", Some("1"));
        let marked = |envelope, size| Mark {
            pipeline: described(envelope, size),
            output: output.clone(),
            ..Mark::default()
        };
        let here = described(Some("upsert"), 4);
        let rules = DocumentRules { pipeline: &here, source: "" };
        let rule = PairRule::default();
        let info = SourceInfo::default();
        let refused = |mark: &Mark, to: &Option<Topic>, reconcile: bool| {
            check_envelope(mark, &here, to.as_ref()).is_err()
                || !reconcile && check(mark, &rules, &rule, &info, to.as_ref()).is_err()
        };
        for (envelope, size, fits, corrects) in [
            (Some("upsert"), 4, true, true),
            (None, 4, true, true),
            (None, 5, false, true),
            (Some("delta"), 4, false, false),
        ] {
            let mark = marked(envelope, size);
            let found = [false, true].map(|reconcile| !refused(&mark, &output, reconcile));
            assert_eq!(found, [fits, corrects], "{envelope:?} {size}");
        }
        let elsewhere = topic("other", Some("2"));
        let found = [false, true].map(|flag| !refused(&marked(Some("delta"), 4), &elsewhere, flag));
        assert_eq!(found, [false, true], "a new topic is corrected from nothing");
        let error = check_envelope(&marked(Some("delta"), 4), &here, output.as_ref()).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("sink.envelope is \"delta\" there and \"upsert\" here"), "{text}");
    }

    #[test]
    fn an_unknown_cleanup_policy_refuses_no_run() {
        let age = |first, is_known, all_held, reconcile| {
            let tombstones = Tombstones { stay: Duration::from_secs(1), all_held, is_known };
            let input =
                SourceInfo { held: Some([(0, (first, 9)), (1, (0, 5))].into()), ..SourceInfo::default() };
            let kept = Mark { start: Offsets::from([(0, 3)]), ..mark(8, None, None) };
            old_state(&kept, &input, &tombstones, reconcile)
        };
        for reconcile in [false, true] {
            assert_eq!(age(3, false, false, reconcile), OldState::ReadAgain, "all that counts is held");
            assert_eq!(age(4, false, false, reconcile), OldState::Assume, "some has expired");
            assert_eq!(age(4, true, true, reconcile), OldState::ReadAgain);
        }
        assert_eq!(
            (age(3, true, false, false), age(3, true, false, true)),
            (OldState::Refuse, OldState::Use)
        );
    }

    #[test]
    fn documents_are_fresh_while_deletes_are_kept() {
        let stay = Duration::from_millis(1000);
        let fresh = |next, as_of, at| is_fresh(&mark(next, None, as_of), &source(None, at), stay);
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
