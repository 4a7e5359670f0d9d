//! The decisions in an output, against the events of the input: each upsert has one, none has two, and
//! each is right as of its epoch where a mark says what the epoch had read.

use std::collections::{BTreeMap, BTreeSet};

use dupflow::config::Plan;
use dupflow::connectors::sinks::DecisionMode;
use dupflow::core::cluster::{ClusterKind, ClusterReport};
use dupflow::core::doc::{DocId, Position};
use dupflow::core::hash::SketchId;
use dupflow::core::oracle;
use dupflow::core::pair::{DocPair, Pair};
use dupflow::core::sketch::{Sketch, SketchMaker};
use dupflow::engine::dataflow::Stages;
use serde_json::{Value, json};

use crate::options::Options;

/// Most marks whose epochs are checked by brute force.
const MOMENTS: usize = 12;

/// An event of the input, in order within its partition.
pub(crate) struct Event {
    pub(crate) position: Position,
    pub(crate) id: DocId,
    /// `None` for a delete.
    pub(crate) text: Option<String>,
    pub(crate) ts: Option<f64>,
}

/// The epoch of a mark, and for each partition the offset after the last record read.
pub(crate) type Moment = (u64, BTreeMap<u32, u64>);

/// A record of the output: its key, and its value unless it is a tombstone.
pub(crate) type Record = (String, Option<Value>);

/// The live documents at a moment: the sketch, if there is a token, and the time stamp.
type Alive = BTreeMap<DocId, (Option<(SketchId, Sketch)>, Option<f64>, Position)>;

/// Reads a line of a feed.
pub(crate) fn event(offset: u64, line: &str) -> Option<Event> {
    let read: Value = serde_json::from_str(line).ok()?;
    let id = DocId::new(read["id"].as_str()?)?;
    let text = read["text"].as_str().filter(|_| read["op"] != json!("delete")).map(str::to_owned);
    Some(Event { position: Position { partition: 0, offset }, id, text, ts: read["ts"].as_f64() })
}

/// Reads a line of the output.
pub(crate) fn record(line: &str) -> Record {
    let read: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let has_ended = read["ended"] == json!(true) && read["offset"].is_null();
    (read["id"].as_str().unwrap().to_owned(), Some(read).filter(|_| !has_ended))
}

/// The problems of an output. `moments` ascend; the last one is that of the output.
pub(crate) fn problems(
    options: &Options,
    events: &[Event],
    moments: &[Moment],
    records: &[Record],
) -> Vec<String> {
    let Some((_, next)) = moments.last() else { return Vec::new() };
    let is_read =
        |event: &&Event| next.get(&event.position.partition).is_some_and(|n| event.position.offset < *n);
    let read: Vec<&Event> = events.iter().filter(is_read).collect();
    let mut problems = match options.decisions {
        Some(DecisionMode::First) => once_each(&read, records),
        _ => Vec::new(),
    };
    problems.extend(right_each(options, &read, moments, records));
    problems.truncate(5);
    problems
}

/// Each upsert has exactly one decision: the first one at or beyond its position; and no decision is without.
fn once_each(events: &[&Event], records: &[Record]) -> Vec<String> {
    let mut upserts: BTreeMap<(&str, u32), BTreeSet<u64>> = BTreeMap::new();
    let mut all: BTreeSet<(&str, Position)> = BTreeSet::new();
    for event in events {
        all.insert((event.id.as_str(), event.position));
        if event.text.is_some() {
            let key = (event.id.as_str(), event.position.partition);
            upserts.entry(key).or_default().insert(event.position.offset);
        }
    }
    let mut problems = Vec::new();
    for (id, value) in records {
        let Some(value) = value else {
            problems.push(format!("{id}: an end, where each upsert has one decision"));
            continue;
        };
        let (partition, offset) = place(value);
        let left = upserts.entry((id, partition)).or_default();
        let later = left.split_off(&(offset + 1));
        let decided = std::mem::replace(left, later);
        if decided.is_empty() || !all.contains(&(&**id, Position { partition, offset })) {
            problems.push(format!("decided twice, or not an event: {value}"));
        }
    }
    let lost: Vec<_> = upserts.iter().filter(|(_, left)| !left.is_empty()).collect();
    if let Some(((id, partition), left)) = lost.first() {
        problems
            .push(format!("{} documents without a decision: {id} in {partition} at {left:?}", lost.len()));
    }
    problems
}

fn place(value: &Value) -> (u32, u64) {
    let partition = value["partition"].as_u64().and_then(|partition| u32::try_from(partition).ok());
    (partition.unwrap_or(u32::MAX), value["offset"].as_u64().unwrap_or(u64::MAX))
}

/// Decisions of epochs with a mark are those of brute force; under `current` the last ones of all documents.
fn right_each(options: &Options, events: &[&Event], moments: &[Moment], records: &[Record]) -> Vec<String> {
    let plan = Plan::load(&options.pipeline, &[]).unwrap();
    let stages = dupflow::pipeline::stages(&plan, false);
    let mut maker = SketchMaker::new(&stages.scheme);
    let mut alive = Alive::new();
    let mut before: BTreeMap<u32, u64> = BTreeMap::new();
    let every = moments.len().div_ceil(MOMENTS).max(1);
    let mut problems = Vec::new();
    for (n, (epoch, next)) in moments.iter().enumerate() {
        let is_last = n + 1 == moments.len();
        for event in events {
            let Position { partition, offset } = event.position;
            let from = before.get(&partition).copied().unwrap_or(0);
            if (from..next.get(&partition).copied().unwrap_or(0)).contains(&offset) {
                match &event.text {
                    Some(text) => {
                        alive.insert(event.id.clone(), (maker.sketch(text), event.ts, event.position))
                    }
                    None => alive.remove(&event.id),
                };
            }
        }
        before.clone_from(next);
        if !is_last && n % every != 0 {
            continue;
        }
        let content = Definition::new(&alive, &stages);
        for (id, value) in records.iter().filter_map(|(id, value)| Some((id, value.as_ref()?))) {
            if value["epoch"].as_u64() == Some(*epoch) {
                problems.extend(content.differs(id, value, &alive));
            }
        }
        if is_last && options.decisions == Some(DecisionMode::Current) {
            problems.extend(content.differ_at_last(records, &alive));
        }
    }
    problems
}

/// The pairs and clusters at a moment, by brute force.
struct Definition {
    near: BTreeMap<DocId, Vec<(f64, DocId)>>,
    oldest: BTreeMap<DocId, (DocId, DocId)>,
}

impl Definition {
    fn new(alive: &Alive, stages: &Stages) -> Self {
        let sketches: BTreeMap<_, _> =
            (alive.iter()).filter_map(|(id, (sketch, ..))| Some((id.clone(), sketch.clone()?))).collect();
        let pairs: BTreeSet<DocPair> =
            oracle::exact(&sketches, &*stages.blocking, &*stages.filter, stages.expand_limit);
        let mut near: BTreeMap<DocId, Vec<(f64, DocId)>> = BTreeMap::new();
        for found in &pairs {
            let (lo, hi, similarity) = (found.pair.lo(), found.pair.hi(), found.similarity.get());
            near.entry(lo.clone()).or_default().push((similarity, hi.clone()));
            near.entry(hi.clone()).or_default().push((similarity, lo.clone()));
        }
        near.values_mut().for_each(|all| all.sort_by(|(s, a), (t, b)| t.total_cmp(s).then(a.cmp(b))));
        let edges: BTreeSet<Pair<DocId>> = pairs.into_iter().map(|found| found.pair).collect();
        let mut clusters: BTreeMap<DocId, Vec<DocId>> = BTreeMap::new();
        for report in oracle::clusters(&edges, ClusterKind::Components, usize::MAX) {
            if let ClusterReport::Member { cluster, document } = report {
                clusters.entry(cluster).or_default().push(document);
            }
        }
        let mut oldest = BTreeMap::new();
        for (cluster, members) in clusters {
            let ts = |id: &DocId| alive[id].1.unwrap_or(f64::INFINITY);
            let first = members.iter().min_by(|a, b| ts(a).total_cmp(&ts(b)).then(a.cmp(b))).unwrap();
            oldest.extend(members.iter().map(|id| (id.clone(), (cluster.clone(), first.clone()))));
        }
        Self { near, oldest }
    }

    /// A description of how a record differs from the definition.
    fn differs(&self, id: &str, value: &Value, alive: &Alive) -> Option<String> {
        let document = DocId::new(id)?;
        if !alive.contains_key(&document) {
            return (value["ended"] != json!(true)).then(|| format!("{id} is not alive: {value}"));
        }
        let near = self.near.get(&document).map(Vec::as_slice).unwrap_or_default();
        let repeats = near.iter().take(20).map(|(s, other)| json!({"id": other.as_str(), "similarity": s}));
        let of = self.oldest.get(&document);
        let expected = json!({
            "copy": of.is_some_and(|(_, of)| *of != document), "of": of.map(|(_, of)| of.as_str()),
            "repeats": repeats.collect::<Vec<_>>(), "pairs": near.len(),
            "cluster": of.map(|(cluster, _)| cluster.as_str()),
        });
        let keys = expected.as_object().unwrap();
        let is_same = keys.iter().all(|(key, one)| value[key] == *one);
        (!is_same).then(|| format!("expected {expected}, found {value}"))
    }

    /// How the last records differ from the live documents.
    fn differ_at_last(&self, records: &[Record], alive: &Alive) -> Vec<String> {
        let mut last: BTreeMap<&str, &Value> = BTreeMap::new();
        for (id, value) in records {
            match value.as_ref().filter(|value| value["ended"] != json!(true)) {
                Some(value) => drop(last.insert(id, value)),
                None => drop(last.remove(&**id)),
            }
        }
        let mut problems = Vec::new();
        if !last.keys().copied().eq(alive.keys().map(DocId::as_str)) {
            problems.push(format!("{} documents have a last record, {} are alive", last.len(), alive.len()));
        }
        for (id, value) in last {
            problems.extend(self.differs(id, value, alive));
            let position = DocId::new(id).and_then(|id| alive.get(&id)).map(|(.., position)| *position);
            if position.is_some_and(|at| place(value) != (at.partition, at.offset)) {
                problems.push(format!("not the position of the last event, {position:?}: {value}"));
            }
        }
        problems
    }
}
