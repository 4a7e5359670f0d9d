//! Where the run stands, and what it runs.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{Asked, Failure};
use crate::memory;
use crate::samples::{EVERY_SECONDS, Sample};
use crate::view::Unseen;
use dupflow_core::doc::DocId;
use dupflow_core::run::backlog::UnreadRecords;
use dupflow_core::run::metrics::Counter;
use dupflow_core::run::status::Phase;
use dupflow_core::time::unix_seconds;

/// Hot blocks that are told, the largest.
const HOT_BLOCKS: usize = 20;

/// Where a run stands.
#[derive(Serialize, ToSchema)]
pub(super) struct Standing {
    /// The name of the run, which no other one has.
    run: String,
    version: &'static str,
    #[schema(example = "live")]
    phase: String,
    /// Why it has failed, if it has.
    failure: Option<String>,
    /// This process, from 0, and how many there are.
    process: [usize; 2],
    workers: usize,
    uptime_seconds: f64,
    /// Unix seconds.
    now: f64,
    epochs: Epochs,
    /// What of a topic waits to be read by this process; null of other inputs.
    input: Option<Input>,
    /// Documents alive; so many of them so far, before the run is live.
    documents: u64,
    /// Distinct sketches alive; so many of them so far, before the run is live.
    sketches: u64,
    /// Distinct sketches that the blocks are planned for, in this process: with more, blocks that get hot
    /// lose pairs.
    planned_sketches: Option<u64>,
    /// Pairs alive; null until the run is live. Where pairs are not kept, those that all workers have
    /// computed so far.
    pairs: Option<u64>,
    /// Clusters alive, giants included; null where they are not kept, and until the run is live.
    clusters: Option<usize>,
    giant_clusters: Option<usize>,
    /// Every counter by its name.
    counts: BTreeMap<&'static str, u64>,
    /// Deltas by what caused them, both signs together.
    causes: BTreeMap<&'static str, u64>,
    /// Pairs of sketches that the filter compared, by the look that decided.
    compared_by_look: Vec<u64>,
    /// Records that are no events, by reason.
    bad_records: BTreeMap<String, u64>,
    resident_bytes: u64,
    peak_resident_bytes: u64,
    state: Stored,
    /// Pairs alive by their similarity: in [i/100, (i+1)/100), the last one includes 1. None where they are
    /// not kept, and until the run is live.
    similarities: Vec<u64>,
    /// How many blocks are hot.
    hot_blocks_total: usize,
    /// The largest of them.
    hot_blocks: Vec<HotBlock>,
}

#[derive(Serialize, ToSchema)]
struct Epochs {
    /// The last one that all workers have computed.
    closed: u64,
    /// The last one that the output holds.
    durable: u64,
    /// Those that have been begun and are not durable.
    in_flight: u64,
    /// Deltas of closed epochs that wait for the output.
    waiting_deltas: u64,
    /// What `pairs`, `clusters` and `similarities` are of; null where they are not kept, and until the run is
    /// live.
    shown: Option<u64>,
}

#[derive(Serialize, ToSchema)]
struct Input {
    /// Offsets that may be read and have not been, of all partitions.
    behind_records: u64,
    /// Offsets that wait for a transaction of their producer.
    undecided_records: u64,
    /// How long the oldest of both has waited; 0 if there is none.
    oldest_unread_seconds: f64,
    /// The partition of the oldest one.
    partition: Option<u32>,
}

impl Input {
    fn of_all(all: &BTreeMap<u32, UnreadRecords>) -> Self {
        let oldest = all.iter().filter(|(_, one)| one.behind + one.undecided > 0);
        let oldest = oldest.max_by_key(|(_, one)| one.oldest);
        Self {
            behind_records: all.values().map(|one| one.behind).sum(),
            undecided_records: all.values().map(|one| one.undecided).sum(),
            oldest_unread_seconds: oldest.map_or(0.0, |(_, one)| one.oldest.as_secs_f64()),
            partition: oldest.map(|(partition, _)| *partition),
        }
    }
}

#[derive(Serialize, ToSchema)]
struct Stored {
    /// What the stored state stands for; 0 if there is none.
    epoch: u64,
    bytes: u64,
}

#[derive(Serialize, ToSchema)]
struct HotBlock {
    /// Its band or table, from 0.
    table: u16,
    hash: u32,
    /// Distinct sketches in it.
    sketches: usize,
    /// A document in it, if one is known.
    document: Option<String>,
    /// Another one, whose sketch is another.
    beside: Option<String>,
    /// The beginning of the longest passage that these two have in common; null until it has been looked for,
    /// and where there is none or a text cannot be had.
    common: Option<String>,
}

/// How the numbers went.
#[derive(Serialize, ToSchema)]
pub(super) struct History {
    every_seconds: u64,
    /// The last ten minutes by the second.
    samples: Vec<Sample>,
    /// The last day by the minute.
    coarse: Vec<Sample>,
}

/// Where the run stands.
#[utoipa::path(get, path = "/status", responses((status = 200, description = "Its numbers.", body = Standing)))]
pub(super) async fn status(State(asked): State<Arc<Asked>>) -> Result<Json<Standing>, Failure> {
    let held = Arc::clone(&asked);
    // Hot blocks are behind a lock of the workers.
    let (standing, two) = asked.read(move || standing(&held)).await?;
    asked.look_for_commons(&two);
    Ok(Json(standing))
}

/// Where it stands, and of which two documents it is to be found what they have in common.
fn standing(asked: &Asked) -> (Standing, BTreeSet<(DocId, DocId)>) {
    let subject = &asked.subject;
    let (counts, status) = (subject.metrics.counts(), &subject.status);
    let view = subject.view.as_ref();
    let keeps = view.is_some_and(|view| view.sees() != Err(Unseen::NotKept));
    let seen = view.filter(|view| view.sees().is_ok()).map(|view| view.sums());
    let computed = (!keeps).then(|| counts.balance(Counter::Added, Counter::Removed));
    let phase = status.phase();
    let (resident, peak) = memory::resident_bytes().unwrap_or_default();
    let (epoch, bytes) = status.state();
    let (hot_blocks_total, hot) = (subject.hot_blocks)(HOT_BLOCKS);
    let two = hot.iter().filter_map(|hot| hot.document.clone().zip(hot.beside.clone())).collect();
    let hot = hot.into_iter().map(|hot| HotBlock {
        table: hot.table,
        hash: hot.hash,
        sketches: hot.sketches,
        common: hot.document.clone().zip(hot.beside.clone()).and_then(|both| asked.commons.of(&both)),
        document: hot.document.map(|id| id.to_string()),
        beside: hot.beside.map(|id| id.to_string()),
    });
    let standing = Standing {
        run: view.map(|view| view.run().to_owned()).unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION"),
        phase: phase.name().to_owned(),
        failure: if let Phase::Failed(why) = phase { Some(why) } else { None },
        process: status.process().into(),
        workers: status.workers(),
        uptime_seconds: subject.clock.now().as_secs_f64(),
        now: unix_seconds(),
        epochs: Epochs {
            closed: status.closed_epoch(),
            durable: status.durable_epoch(),
            in_flight: status.in_flight(),
            waiting_deltas: status.waiting_deltas(),
            shown: seen.as_ref().map(|sums| sums.epoch),
        },
        input: status.input().map(|all| Input::of_all(&all)),
        documents: counts.documents(),
        sketches: counts.balance(Counter::SketchesBorn, Counter::SketchesDied),
        planned_sketches: subject.planned_here(),
        pairs: seen.as_ref().map(|sums| sums.pairs as u64).or(computed),
        clusters: seen.as_ref().map(|sums| sums.clusters),
        giant_clusters: seen.as_ref().map(|sums| sums.giants),
        counts: Counter::TABLE.iter().map(|(counter, name, _)| (*name, counts.get(*counter))).collect(),
        causes: counts.causes().map(|(cause, n)| (cause.name(), n)).collect(),
        compared_by_look: counts.looks().to_vec(),
        bad_records: status.bad_records(),
        resident_bytes: resident,
        peak_resident_bytes: peak,
        state: Stored { epoch, bytes },
        similarities: seen.map(|sums| sums.by_similarity.to_vec()).unwrap_or_default(),
        hot_blocks_total,
        hot_blocks: hot.collect(),
    };
    (standing, two)
}

/// What the pipeline is: its rules in words, its threshold, the curve of its blocking.
#[utoipa::path(get, path = "/pipeline", responses((status = 200, body = serde_json::Value,
    description = "`name`, `threshold`, `measure`, `text`, `sketch`, `blocking`, `filter`, `scheme`, `of_blocks`, `of_components`, `curve` ([s, P(candidate)] \
    for s from 0 to 1), `retention`.")))]
pub(super) async fn pipeline(State(asked): State<Arc<Asked>>) -> Json<serde_json::Value> {
    let mut told = asked.subject.pipeline.told.clone();
    if let Some(retention) = told.get_mut("retention") {
        retention["now"] = asked.subject.status.retention_clock().into();
    }
    Json(told)
}

/// How the numbers went over time; counts are absolute.
#[utoipa::path(get, path = "/history", responses((status = 200, description = "The samples.", body = History)))]
pub(super) async fn history(State(asked): State<Arc<Asked>>) -> Json<History> {
    let (samples, coarse) = asked.samples.lock().all();
    Json(History { every_seconds: EVERY_SECONDS, samples, coarse })
}

impl Asked {
    /// Takes a sample of the numbers as they are.
    pub(crate) fn sample(&self) {
        let (counts, status) = (self.subject.metrics.counts(), &self.subject.status);
        let sample = Sample {
            at: unix_seconds(),
            events: counts.get(Counter::Events),
            bytes: counts.get(Counter::Bytes),
            added: counts.get(Counter::Added),
            removed: counts.get(Counter::Removed),
            documents: counts.documents(),
            pairs: counts.balance(Counter::Added, Counter::Removed),
            resident_bytes: memory::resident_bytes().map_or(0, |(now, _)| now),
            closed: status.closed_epoch(),
            durable: status.durable_epoch(),
            commit_ms: status.last_commit().as_secs_f64() * 1e3,
        };
        self.samples.lock().add(sample);
    }
}
