//! Routes of the run's state: status, pipeline and history.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use axum::Json;
use axum::extract::State;
use serde::Serialize;
use utoipa::ToSchema;

use super::{ErrorAnswer, RouteState};
use crate::metrics::process;
use crate::metrics::samples::{EVERY_SECONDS, RunSample};
use crate::subject::MonitoredRun;
use crate::view::ViewUnavailable;
use crate::view::history::{HistoryGap, HistoryInfo};
use dupflow_core::doc::DocId;
use dupflow_core::time::unix_seconds;
use dupflow_run::backlog::UnreadRecords;
use dupflow_run::metrics::Counter;
use dupflow_run::status::{BeginningStatus, Phase, Status};

/// The state of a run.
#[derive(Serialize, ToSchema)]
#[schema(as = Standing)]
pub(super) struct StatusAnswer {
    /// The name of the run, which is unique.
    run: String,
    version: &'static str,
    #[schema(example = "live")]
    phase: String,
    /// Why the run has failed, if it has.
    failure: Option<String>,
    /// The index of this process, from 0, and the number of processes.
    process: [usize; 2],
    workers: usize,
    uptime_seconds: f64,
    /// Unix seconds.
    now: f64,
    epochs: EpochStatus,
    /// Unread records of a topic in this process; null for other inputs.
    input: Option<InputStatus>,
    /// What is read before the run is live; null from then on.
    beginning: Option<BeginningAnswer>,
    /// By how many seconds the clock of retention is ahead of the machine's, 0 if it is not; null unless it
    /// is the wall clock.
    retention_clock_ahead_seconds: Option<f64>,
    /// How far this process has read.
    reading: ReadingStatus,
    /// Live documents; before the run is live, those read so far. Those of the reference are not among them:
    /// `counts` has them.
    documents: u64,
    /// Distinct live sketches; before the run is live, those computed so far.
    sketches: u64,
    /// Distinct sketches for which the blocks of this process are planned. With more, hot blocks lose pairs.
    planned_sketches: Option<u64>,
    /// Live pairs; null until the run is live. If pairs are not kept: those that all workers have computed so
    /// far.
    pairs: Option<u64>,
    /// Live clusters, giants included; null if they are not kept, and until the run is live.
    clusters: Option<usize>,
    giant_clusters: Option<usize>,
    /// Every counter by name.
    counts: BTreeMap<&'static str, u64>,
    /// Deltas of both signs by cause.
    causes: BTreeMap<&'static str, u64>,
    /// Pairs of sketches that the filter compared, by the look that decided.
    compared_by_look: Vec<u64>,
    /// Invalid records by reason.
    bad_records: BTreeMap<String, u64>,
    resident_bytes: u64,
    peak_resident_bytes: u64,
    /// The memory budget of this process; null without one.
    memory_budget_bytes: Option<u64>,
    state: StateStatus,
    /// The past of pairs and clusters; null if pairs are not kept, and until the run is live.
    history: Option<HistoryStatus>,
    /// Live pairs by similarity: element i counts those in [i/100, (i+1)/100), the last one includes 1. Empty
    /// if pairs are not kept, and until the run is live.
    similarities: Vec<u64>,
    /// Number of hot blocks.
    hot_blocks_total: usize,
    /// The largest of them.
    hot_blocks: Vec<HotBlockStatus>,
    /// Number of views; null if this process keeps none.
    views: Option<usize>,
    /// Number of watches; null if this process has no watch list.
    watches: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Epochs)]
struct EpochStatus {
    /// The last epoch that is computed on all workers.
    closed: u64,
    /// The last epoch that is durable.
    durable: u64,
    /// Number of epochs that have begun and are not durable.
    in_flight: u64,
    /// Deltas of closed epochs that are not written yet.
    waiting_deltas: u64,
    /// The epoch of `pairs`, `clusters` and `similarities`; null if they are not kept, and until the run is
    /// live.
    shown: Option<u64>,
}

#[derive(Serialize, ToSchema)]
#[schema(as = Beginning)]
struct BeginningAnswer {
    /// Documents that this process has restored from the state.
    restored_documents: u64,
    /// Documents in the state, an upper bound: of some there may be several versions. Null if nothing is
    /// restored.
    stored_documents: Option<u64>,
    /// By partition, the offset up to which the input is read again before the run is live.
    up_to: BTreeMap<u32, u64>,
}

impl From<BeginningStatus> for BeginningAnswer {
    fn from(BeginningStatus { restored, stored, up_to }: BeginningStatus) -> Self {
        Self { restored_documents: restored, stored_documents: stored, up_to }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = Reading)]
struct ReadingStatus {
    /// The date of the corpus: the greatest time of an event that was read, in unix seconds; null if none has
    /// a time.
    event_time: Option<f64>,
    /// Stored bytes of the inputs that have been read; null where they are not counted.
    bytes: Option<u64>,
    /// Stored bytes of all inputs; null if that is not known.
    total_bytes: Option<u64>,
    /// When the end of the input was reached, in unix seconds; null before, and for inputs without an end.
    ended_at: Option<f64>,
}

impl ReadingStatus {
    fn new(subject: &MonitoredRun) -> Self {
        let reading = subject.status.reading();
        let read = subject.input_bytes.as_ref().map(|read| read());
        Self {
            event_time: reading.newest(),
            bytes: read.map(|(bytes, _)| bytes),
            total_bytes: read.and_then(|(_, total)| total),
            ended_at: reading.ended_at(),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = Input)]
struct InputStatus {
    /// Offsets that can be read and have not been, over all partitions.
    behind_records: u64,
    /// Offsets that wait for an open transaction of their producer.
    undecided_records: u64,
    /// Age of the oldest record of both kinds; 0 if there is none.
    oldest_unread_seconds: f64,
    /// The partition of that record.
    partition: Option<u32>,
}

impl InputStatus {
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
#[schema(as = Stored)]
struct StateStatus {
    /// The epoch of the stored state; 0 if there is none.
    epoch: u64,
    bytes: u64,
}

/// How far back since-when, causes and ends of pairs and clusters are known.
#[derive(Serialize, ToSchema)]
#[schema(as = HistoryShown)]
struct HistoryStatus {
    /// The epoch at which it begins: what was there then may be older.
    begins: u64,
    /// When it began, in unix seconds.
    begins_at: f64,
    /// How long what has ended is kept, in seconds; null if the history is in memory only, and ends with this
    /// run.
    kept_seconds: Option<f64>,
    /// The last epoch that is stored, and the bytes of all; zeros if the history is in memory only.
    epoch: u64,
    bytes: u64,
    /// Epochs that the output holds and the history does not, in ascending order: what happened in them is
    /// known as one change at their end.
    gaps: Vec<HistoryGap>,
    /// Why the history is not stored any more, or could not be read.
    failure: Option<String>,
}

impl HistoryStatus {
    fn new(info: HistoryInfo, status: &Status) -> Self {
        let (epoch, bytes) = status.history();
        Self {
            begins: info.meta.begins,
            begins_at: info.meta.begins_at,
            kept_seconds: info.age.map(|age| age.as_secs_f64()),
            epoch,
            bytes,
            gaps: info.meta.gaps,
            failure: info.failure,
        }
    }
}

#[derive(Serialize, ToSchema)]
#[schema(as = HotBlock)]
struct HotBlockStatus {
    /// Its band or table, from 0.
    table: u16,
    hash: u64,
    /// Distinct sketches in it.
    sketches: usize,
    /// A document of the block, if one is known.
    document: Option<String>,
    /// A second document, with a different sketch.
    beside: Option<String>,
    /// The beginning of the longest passage that both have in common. Null until it has been searched, if
    /// there is none, and if a text is not available.
    common: Option<String>,
}

/// Values over time.
#[derive(Serialize, ToSchema)]
#[schema(as = History)]
pub(super) struct HistoryAnswer {
    every_seconds: u64,
    /// The last ten minutes, by the second.
    samples: Vec<RunSample>,
    /// The last day, by the minute.
    coarse: Vec<RunSample>,
}

/// The state of the run.
#[utoipa::path(
    get, path = "/status", tag = "standing",
    responses((status = 200, description = "Its numbers.", body = StatusAnswer)),
)]
pub(super) async fn status(State(state): State<Arc<RouteState>>) -> Result<Json<StatusAnswer>, ErrorAnswer> {
    let held = Arc::clone(&state);
    // Hot blocks are behind a lock that the workers take.
    let (status_answer, two) = state.read(move || status_answer(&held)).await?;
    state.search_passages(&two);
    Ok(Json(status_answer))
}

/// The state of the run, and the document pairs of hot blocks for which a common passage is needed.
fn status_answer(state: &RouteState) -> (StatusAnswer, BTreeSet<(DocId, DocId)>) {
    let subject = &state.subject;
    let (counts, status) = (subject.metrics.counts(), &subject.status);
    let view = subject.view.as_ref();
    let keeps = view.is_some_and(|view| view.check_pairs() != Err(ViewUnavailable::NotKept));
    let seen = view.filter(|view| view.check_pairs().is_ok()).map(|view| view.sums());
    let computed = (!keeps).then(|| counts.pairs());
    let phase = status.phase();
    let (resident, peak) = process::resident_bytes().unwrap_or_default();
    let (epoch, bytes) = status.state();
    let (hot_blocks_total, hot) = (subject.hot_blocks)();
    let two = hot.iter().filter_map(|hot| hot.document.clone().zip(hot.beside.clone())).collect();
    let shown = |id: DocId| id.shown(subject.pipeline.has_reference).0.to_owned();
    let hot = hot.into_iter().map(|hot| HotBlockStatus {
        table: hot.table,
        hash: hot.hash,
        sketches: hot.sketches,
        common: hot.document.clone().zip(hot.beside.clone()).and_then(|both| state.passages.get(&both)),
        document: hot.document.map(shown),
        beside: hot.beside.map(shown),
    });
    let status_answer = StatusAnswer {
        run: view.map(|view| view.run().to_owned()).unwrap_or_default(),
        version: env!("CARGO_PKG_VERSION"),
        phase: phase.name().to_owned(),
        failure: if let Phase::Failed(why) = phase { Some(why) } else { None },
        process: status.process().into(),
        workers: status.workers(),
        uptime_seconds: subject.clock.now().as_secs_f64(),
        now: unix_seconds(),
        epochs: EpochStatus {
            closed: status.closed_epoch(),
            durable: status.durable_epoch(),
            in_flight: status.in_flight(),
            waiting_deltas: status.waiting_deltas(),
            shown: seen.as_ref().map(|sums| sums.epoch),
        },
        input: status.input().map(|all| InputStatus::of_all(&all)),
        beginning: status.beginning().map(Into::into),
        retention_clock_ahead_seconds: status.retention_ahead(unix_seconds()),
        reading: ReadingStatus::new(subject),
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
        memory_budget_bytes: subject.memory_budget,
        state: StateStatus { epoch, bytes },
        history: seen.as_ref().and(view).map(|view| HistoryStatus::new(view.history(), status)),
        similarities: seen.map(|sums| sums.by_similarity.to_vec()).unwrap_or_default(),
        hot_blocks_total,
        hot_blocks: hot.collect(),
        views: subject.views.as_ref().map(|tables| tables.plans().len()),
        watches: subject.watch.as_ref().map(|book| book.state().watches),
    };
    (status_answer, two)
}

/// The pipeline: its rules in words, its threshold, the curve of its blocking.
#[utoipa::path(
    get, path = "/pipeline", tag = "standing",
    responses(
        (
            status = 200, body = serde_json::Value,
            description = "`name`, `threshold`, `measure`, `text`, `sketch`, `blocking`, `filter`, `scheme`, \
                `of_blocks`, `of_components`, `curve` ([s, P(candidate)] for s from 0 to 1), `retention`.",
        ),
    ),
)]
pub(super) async fn pipeline(State(state): State<Arc<RouteState>>) -> Json<serde_json::Value> {
    let mut description = state.subject.pipeline.description.clone();
    if let Some(retention) = description.get_mut("retention") {
        retention["now"] = state.subject.status.retention_clock().into();
    }
    Json(description)
}

/// Values over time; counts are absolute.
#[utoipa::path(
    get, path = "/history", tag = "standing",
    responses((status = 200, description = "The samples.", body = HistoryAnswer)),
)]
pub(super) async fn history(State(state): State<Arc<RouteState>>) -> Json<HistoryAnswer> {
    let (samples, coarse) = state.samples.lock().all();
    Json(HistoryAnswer { every_seconds: EVERY_SECONDS, samples, coarse })
}

impl RouteState {
    /// Records a sample of the current values.
    pub(crate) fn sample(&self) {
        let (counts, status) = (self.subject.metrics.counts(), &self.subject.status);
        let sample = RunSample {
            at: unix_seconds(),
            events: counts.get(Counter::Events),
            bytes: counts.get(Counter::Bytes),
            added: counts.get(Counter::Added),
            removed: counts.get(Counter::Removed),
            documents: counts.documents(),
            pairs: counts.pairs(),
            resident_bytes: process::resident_bytes().map_or(0, |(now, _)| now),
            closed: status.closed_epoch(),
            durable: status.durable_epoch(),
            commit_ms: status.last_commit().as_secs_f64() * 1e3,
            event_time: status.reading().newest(),
        };
        self.samples.lock().add(sample);
    }
}
