//! Server-sent events as bytes.
//!
//! | event | data |
//! |---|---|
//! | `epoch` | deltas of an epoch, and how many more follow; only its last event has an id |
//! | `snapshot` | some of all pairs; the first event voids what was received before, the last one has an id |
//! | `dropped` | the epochs and the number of deltas that are left out |
//! | `bye` | the run ends |
//!
//! An id cannot contain a line feed: JSON escapes control characters.

use serde::Serialize;

use super::KnownPair;
use dupflow_core::doc::DocId;
use dupflow_core::pair::{Delta, SharesBeside, Similarity};
use dupflow_core::time::{Epoch, EpochTimes};

/// A comment sent regularly, so that both sides notice a broken connection.
pub(crate) const HEARTBEAT: &[u8] = b": here\n\n";

/// What the frames of a run depend on.
#[derive(Clone, Copy, Debug)]
pub(crate) struct FrameRules<'r> {
    /// The name of the run.
    pub(crate) run: &'r str,
    /// Whether there is a reference: ids then have sides.
    pub(crate) has_reference: bool,
}

#[derive(Serialize)]
struct EpochData<'d> {
    epoch: Epoch,
    /// When its commit began, in unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    at: Option<f64>,
    /// The greatest time of its events, in unix seconds.
    #[serde(skip_serializing_if = "Option::is_none")]
    event_time: Option<f64>,
    deltas: Vec<DeltaData<'d>>,
    more: usize,
}

#[derive(Serialize)]
struct DeltaData<'d> {
    diff: isize,
    a: &'d str,
    b: &'d str,
    /// Whether the first document is of the reference.
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<bool>,
    similarity: f64,
    #[serde(flatten)]
    shares: PairShares,
    cause: &'static str,
}

#[derive(Serialize)]
struct SnapshotData<'d> {
    epoch: Epoch,
    pairs: Vec<PairData<'d>>,
    first: bool,
    last: bool,
}

#[derive(Serialize)]
struct PairData<'d> {
    a: &'d DocId,
    b: &'d DocId,
    similarity: f64,
    #[serde(flatten)]
    shares: PairShares,
    since: Epoch,
    cause: &'static str,
}

/// The shares of a pair of containment, if they differ: of b's features that a has, and of a's that b has.
#[derive(Serialize)]
struct PairShares {
    #[serde(skip_serializing_if = "Option::is_none")]
    in_a: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    in_b: Option<f64>,
}

impl PairShares {
    fn new(similarity: Similarity) -> Self {
        let SharesBeside { in_id: in_b, of_id: in_a } = SharesBeside::new(similarity);
        Self { in_a, in_b }
    }
}

/// What is left out: the epochs after `after` up to `through`, both null if the reader's id is of no run that
/// is known; their number; and the number of their deltas, null if it is not known.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
pub(crate) struct Dropped {
    pub(crate) epochs: Option<u64>,
    pub(crate) deltas: Option<u64>,
    pub(crate) after: Option<Epoch>,
    pub(crate) through: Option<Epoch>,
}

/// Some deltas of an epoch, with an id if `more`, the number that still follow, is 0.
pub(crate) fn epoch(
    FrameRules { run, has_reference }: FrameRules<'_>,
    epoch: Epoch,
    times: EpochTimes,
    deltas: &[Delta],
    more: usize,
) -> Vec<u8> {
    let deltas = deltas.iter().map(|delta| DeltaData::from_delta(delta, has_reference)).collect();
    let event_time = times.event.map(dupflow_core::time::UnixTime::seconds);
    let data = EpochData { epoch, at: Some(times.committed), event_time, deltas, more };
    event((more == 0).then_some((run, epoch)), "epoch", &data)
}

/// Deltas of pairs that an unfinished snapshot already contains. Has no id, since a reader cannot resume
/// there. Beside a reference there are no snapshots.
pub(crate) fn within<'d>(epoch: Epoch, deltas: impl Iterator<Item = &'d Delta>) -> Vec<u8> {
    let deltas = deltas.map(|delta| DeltaData::from_delta(delta, false)).collect();
    let data = EpochData { epoch, at: None, event_time: None, deltas, more: 0 };
    event(None, "epoch", &data)
}

/// Some of all pairs. `ends_at` is given with the last ones, if the snapshot is of the end of an epoch: the
/// epoch after which the deltas follow.
pub(crate) fn snapshot(
    run: &str,
    epoch: Epoch,
    pairs: &[KnownPair],
    first: bool,
    last: bool,
    ends_at: Option<Epoch>,
) -> Vec<u8> {
    let pairs = pairs.iter().map(|pair| PairData {
        a: &pair.a,
        b: &pair.b,
        similarity: pair.held.similarity.get(),
        shares: PairShares::new(pair.held.similarity),
        since: pair.held.since,
        cause: pair.held.cause.name(),
    });
    let data = SnapshotData { epoch, pairs: pairs.collect(), first, last };
    event(ends_at.map(|end| (run, end)), "snapshot", &data)
}

/// What is left out.
pub(crate) fn dropped(what: Dropped) -> Vec<u8> {
    event(None, "dropped", &what)
}

/// The run ends.
pub(crate) fn bye() -> Vec<u8> {
    event(None, "bye", &serde_json::Map::new())
}

impl<'d> DeltaData<'d> {
    fn from_delta(delta: &'d Delta, has_reference: bool) -> Self {
        let pair = &delta.pair;
        let [(a, old), (b, _)] = [pair.pair.lo(), pair.pair.hi()].map(|id| id.shown(has_reference));
        Self {
            diff: delta.diff,
            a,
            b,
            old,
            similarity: pair.similarity.get(),
            shares: PairShares::new(pair.similarity),
            cause: delta.cause.name(),
        }
    }
}

fn event(id: Option<(&str, Epoch)>, kind: &str, data: &impl Serialize) -> Vec<u8> {
    let mut out = Vec::new();
    if let Some((run, epoch)) = id {
        out.extend_from_slice(format!("id: {run}-{epoch}\n").as_bytes());
    }
    out.extend_from_slice(format!("event: {kind}\ndata: ").as_bytes());
    serde_json::to_writer(&mut out, data).expect("texts and numbers are written to memory");
    out.extend_from_slice(b"\n\n");
    out
}

/// Splits an event id into run and epoch.
pub(crate) fn place(id: &str) -> Option<(&str, Epoch)> {
    let (run, epoch) = id.rsplit_once('-')?;
    Some((run, epoch.parse().ok()?))
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::pair::{Cause, DocPair, Evidence, Pair};

    #[test]
    fn a_frame_is_one_event_for_any_id() {
        let id = |text: &str| DocId::new(text).unwrap();
        let pair = Pair::new(id("a\r\n\ndata: x\u{2028}"), id("文\u{202e}\0")).unwrap();
        let pair = DocPair { pair, similarity: Similarity::clamped(0.875), evidence: Evidence::default() };
        let delta = Delta { pair, diff: -1, cause: Cause::Reweighed };
        let at = EpochTimes { event: None, committed: 1.5 };
        let rules = FrameRules { run: "00ff", has_reference: false };
        let text = String::from_utf8(epoch(rules, 7, at, std::slice::from_ref(&delta), 0)).unwrap();
        let expected = "id: 00ff-7\nevent: epoch\ndata: {\"epoch\":7,\"at\":1.5,\"deltas\":[{\"diff\":-1,\
            \"a\":\"a\\r\\n\\ndata: x\u{2028}\",\"b\":\"文\u{202e}\\u0000\",\"similarity\":0.875,\
            \"cause\":\"re-weighed\"}],\"more\":0}\n\n";
        assert_eq!(text, expected);
        let contained = DocPair { similarity: Similarity::of_shares([0.25, 0.875]), ..delta.pair.clone() };
        let frame = epoch(rules, 7, at, &[Delta { pair: contained, ..delta }], 0);
        let shares = "\"similarity\":0.875,\"in_a\":0.875,\"in_b\":0.25,";
        assert!(String::from_utf8(frame).unwrap().contains(shares), "what a has of b is in_a");
        assert_eq!(place("00ff-7"), Some(("00ff", 7)));
        assert_eq!((place("00ff"), place("-x"), place("a-99999999999999999999")), (None, None, None));
    }

    /// Ids carry `old` only in runs with a reference.
    #[test]
    fn ids_have_sides_beside_a_reference_only() {
        let [a, b] = ["a", "b"].map(|text| DocId::new(text).unwrap());
        let pair = Pair::new(a.in_reference(), b).unwrap();
        let pair = DocPair { pair, similarity: Similarity::ONE, evidence: Evidence::default() };
        let delta = Delta { pair, diff: 1, cause: Cause::Insert };
        for (has_reference, expected) in
            [(false, r#""a":"\u0000oa","b":"b","sim"#), (true, r#""a":"a","b":"b","old":true,"sim"#)]
        {
            let rules = FrameRules { run: "r", has_reference };
            let frame = epoch(rules, 1, EpochTimes::default(), std::slice::from_ref(&delta), 0);
            let frame = String::from_utf8(frame).unwrap();
            assert!(frame.contains(expected), "{frame}");
        }
    }

    #[test]
    fn only_resumable_events_have_an_id() {
        let has_id = |frame: Vec<u8>| frame.starts_with(b"id: ");
        let rules = FrameRules { run: "r", has_reference: false };
        assert!(has_id(epoch(rules, 1, EpochTimes::default(), &[], 0)));
        assert!(!has_id(epoch(rules, 1, EpochTimes::default(), &[], 5)));
        assert!(has_id(snapshot("r", 1, &[], true, true, Some(1))));
        assert!(!has_id(snapshot("r", 1, &[], true, true, None)) && !has_id(within(1, [].iter())));
        let left_out = Dropped { epochs: Some(2), deltas: Some(600), after: Some(3), through: Some(5) };
        let expected = "event: dropped\ndata: {\"epochs\":2,\"deltas\":600,\"after\":3,\"through\":5}\n\n";
        assert_eq!(String::from_utf8(dropped(left_out)).unwrap(), expected);
        assert_eq!(bye(), b"event: bye\ndata: {}\n\n");
    }
}
