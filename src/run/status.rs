//! The state of a run: its threads write it, the monitor reads it.
//!
//! Reads no clock: callers pass each moment as the time since the run's clock was started.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

use super::histogram::{Buckets, Histogram};
use crate::backlog::{Backlog, UnreadRecords};
use crate::reading::Reading;
use dupflow_core::time::{Epoch, Offsets};

/// Maximum number of epochs that are closed and not durable, inclusive, in a run that is ready. It is half of
/// how far workers may be ahead of the output.
pub const EPOCHS_BEHIND: u64 = 32;

/// Minimum time after which the ends of a topic count as unknown, however small the configured bound is, and
/// after which an input counts as one that cannot be read. A request for them may take several seconds.
const LOOKS_APART: Duration = Duration::from_secs(10);

/// Maximum duration of one step of a worker, inclusive, in a process that is healthy. Long, since a step may
/// compute a large epoch.
pub const STEP: Duration = Duration::from_secs(300);

/// The phases of a run, in order; a run may skip some.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// Takes over the output and finds the position from which to read.
    #[default]
    Starting,
    /// Loads documents from the stored state.
    Restoring,
    /// Reads again, without writing, what the output already holds.
    CatchingUp,
    /// Writes the deltas of what it reads.
    Live,
    /// Reads no more; finishes and writes what was read.
    Stopping,
    /// Has failed, with this message.
    Failed(String),
}

impl Phase {
    /// The names of all phases, in order.
    pub const NAMES: [&str; 6] = ["starting", "restoring", "catching_up", "live", "stopping", "failed"];

    /// Its name in answers and metrics.
    pub fn name(&self) -> &'static str {
        let place = match self {
            Self::Starting => 0,
            Self::Restoring => 1,
            Self::CatchingUp => 2,
            Self::Live => 3,
            Self::Stopping => 4,
            Self::Failed(_) => 5,
        };
        Self::NAMES[place]
    }
}

/// What is read before a run is live.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct BeginningStatus {
    /// Documents restored from the state by this process so far.
    pub restored: u64,
    /// Documents in the state, for all processes; an upper bound, since a document may be stored in several
    /// versions. `None` if nothing is restored.
    pub stored: Option<u64>,
    /// The offsets up to which the input is read before the run is live, by partition.
    pub up_to: Offsets,
}

/// The state of one process of a run. Any thread may write it at any time.
#[derive(Debug)]
pub struct Status {
    /// The index of this process and the number of processes.
    process: (usize, usize),
    phase: Mutex<Phase>,
    closed: AtomicU64,
    durable: AtomicU64,
    waiting_deltas: AtomicU64,
    commits: Histogram,
    /// When the last commit ended, by [`encoded`], and its duration in microseconds.
    committed_at: AtomicU64,
    last_commit_micros: AtomicU64,
    state_epoch: AtomicU64,
    state_bytes: AtomicU64,
    history_epoch: AtomicU64,
    history_bytes: AtomicU64,
    /// When each worker began its last step, by [`encoded`]; 0 before its first step and after its end.
    steps: Vec<AtomicU64>,
    bad_records: Mutex<BTreeMap<String, u64>>,
    /// Every reason for which a record can be invalid.
    bad_reasons: OnceLock<Vec<&'static str>>,
    asked: AtomicU64,
    answers: Histogram,
    /// When the first events of each epoch were read; removed once the epoch is durable.
    begun: Mutex<BTreeMap<Epoch, Duration>>,
    ready_lag: AtomicU64,
    /// Unread records by partition, for inputs that report them.
    input: OnceLock<Arc<Backlog>>,
    ready_behind: AtomicU64,
    /// The retention clock in unix seconds, with retention only.
    retention: Mutex<Option<f64>>,
    /// Whether it is the wall clock.
    retention_is_wall: AtomicBool,
    /// What is read before the run is live.
    beginning: Mutex<BeginningStatus>,
    reading: Reading,
}

impl Default for Status {
    /// One process, with an unknown number of workers.
    fn default() -> Self {
        Self::new(0, 1, 0)
    }
}

/// Whether the ends of the topic are known. `unseen` is the partition whose end was last reported longest
/// ago.
fn seen(unseen: Option<(u32, Duration)>, most: Duration) -> Result<(), String> {
    let most = most.max(LOOKS_APART);
    match unseen {
        Some((partition, unseen)) if unseen > most => Err(format!(
            "how much of the input waits is not known: no broker has said for {:.1} s where partition \
            {partition} ends, at most {} s may pass (monitor.ready_behind)",
            unseen.as_secs_f64(),
            most.as_secs_f64()
        )),
        _ => Ok(()),
    }
}

/// Whether the input can be read. `away`: for how long it cannot, and why.
fn readable(away: Option<(Duration, String)>) -> Result<(), String> {
    match away.filter(|(away, _)| *away >= LOOKS_APART) {
        Some((away, why)) => Err(format!("the input cannot be read, for {:.1} s: {why}", away.as_secs_f64())),
        None => Ok(()),
    }
}

impl Status {
    /// Process `index` of `count`, with so many worker threads.
    pub fn new(index: usize, count: usize, workers: usize) -> Self {
        Self {
            process: (index, count),
            phase: Mutex::default(),
            closed: AtomicU64::new(0),
            durable: AtomicU64::new(0),
            waiting_deltas: AtomicU64::new(0),
            commits: Histogram::default(),
            committed_at: AtomicU64::new(0),
            last_commit_micros: AtomicU64::new(0),
            state_epoch: AtomicU64::new(0),
            state_bytes: AtomicU64::new(0),
            history_epoch: AtomicU64::new(0),
            history_bytes: AtomicU64::new(0),
            steps: (0..workers).map(|_| AtomicU64::new(0)).collect(),
            bad_records: Mutex::default(),
            bad_reasons: OnceLock::new(),
            asked: AtomicU64::new(0),
            answers: Histogram::default(),
            begun: Mutex::default(),
            ready_lag: AtomicU64::new(u64::MAX),
            input: OnceLock::new(),
            ready_behind: AtomicU64::new(u64::MAX),
            retention: Mutex::default(),
            retention_is_wall: AtomicBool::new(false),
            beginning: Mutex::default(),
            reading: Reading::default(),
        }
    }

    /// Enters a phase. An earlier phase than the present one is ignored; of several failures the first is
    /// kept.
    pub fn enter(&self, phase: Phase) {
        let mut present = self.phase.lock();
        if phase > *present && !matches!(*present, Phase::Failed(_)) {
            *present = phase;
        }
    }

    /// The present phase.
    pub fn phase(&self) -> Phase {
        self.phase.lock().clone()
    }

    /// All epochs up to this one, inclusive, are closed: computed on all workers.
    pub fn closed(&self, epoch: Epoch) {
        self.closed.fetch_max(epoch, Ordering::Relaxed);
    }

    /// All epochs up to this one, inclusive, are durable since an earlier run.
    pub fn durable(&self, epoch: Epoch) {
        self.durable.fetch_max(epoch, Ordering::Relaxed);
        self.closed(epoch);
    }

    /// A commit, which ended at `now`, made all epochs up to `last`, inclusive, durable.
    pub fn committed(&self, last: Epoch, took: Duration, now: Duration) {
        self.durable(last);
        let mut begun = self.begun.lock();
        *begun = begun.split_off(&(last + 1));
        drop(begun);
        self.commits.record(took);
        self.last_commit_micros.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.committed_at.store(encoded(now), Ordering::Relaxed);
    }

    /// Sets the number of deltas of closed epochs that are not written yet.
    pub fn set_waiting_deltas(&self, deltas: u64) {
        self.waiting_deltas.store(deltas, Ordering::Relaxed);
    }

    /// Sets the epoch and the size of the stored state.
    pub fn set_state(&self, epoch: Epoch, bytes: u64) {
        self.state_epoch.store(epoch, Ordering::Relaxed);
        self.state_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Sets the epoch and the size of the stored history.
    pub fn set_history(&self, epoch: Epoch, bytes: u64) {
        self.history_epoch.store(epoch, Ordering::Relaxed);
        self.history_bytes.store(bytes, Ordering::Relaxed);
    }

    /// Sets the number of invalid records by reason.
    pub fn set_bad_records(&self, by_reason: BTreeMap<String, u64>) {
        *self.bad_records.lock() = by_reason;
    }

    /// Sets all reasons for which a record can be invalid, so that each is exported from 0. Only the first
    /// call counts.
    pub fn name_bad_reasons(&self, reasons: impl IntoIterator<Item = &'static str>) {
        self.bad_reasons.get_or_init(|| reasons.into_iter().collect());
    }

    /// Worker `worker` of this process, from 0, begins a step at `now`. Idle workers step from time to time
    /// too.
    pub fn stepped(&self, worker: usize, now: Duration) {
        if let Some(step) = self.steps.get(worker) {
            step.store(encoded(now), Ordering::Relaxed);
        }
    }

    /// A worker has ended.
    pub fn ended(&self, worker: usize) {
        if let Some(step) = self.steps.get(worker) {
            step.store(0, Ordering::Relaxed);
        }
    }

    /// The time since each worker began its last step; without workers that have not begun or have ended.
    pub fn step_ages(&self, now: Duration) -> impl Iterator<Item = (usize, Duration)> {
        self.steps.iter().enumerate().filter_map(move |(worker, step)| Some((worker, age(step, now)?)))
    }

    /// Whether the process is healthy at `now`.
    ///
    /// # Errors
    /// One line that says what is wrong.
    pub fn health(&self, now: Duration) -> Result<(), String> {
        if let Phase::Failed(why) = self.phase() {
            return Err(format!("failed: {}", why.replace('\n', "; ")));
        }
        match self.step_ages(now).max_by_key(|(_, age)| *age).filter(|(_, age)| *age > STEP) {
            Some((worker, age)) => {
                let (age, most) = (age.as_secs(), STEP.as_secs());
                Err(format!(
                    "worker {worker} has been in one step for {age} s, at most {most} s are expected: it \
                    hangs"
                ))
            }
            None => Ok(()),
        }
    }

    /// Whether the run is live and its output is up to date at `now`.
    ///
    /// # Errors
    /// One line that says what the run waits for.
    pub fn readiness(&self, now: Duration) -> Result<(), String> {
        let waits = match self.phase() {
            Phase::Starting => "starting: the output is taken over",
            Phase::Restoring => "restoring: documents are taken from the state",
            Phase::CatchingUp => "catching up: what the output holds already is read again",
            Phase::Stopping => "stopping: what has been read is finished and written",
            Phase::Failed(_) => "failed: /health says why",
            Phase::Live => {
                let behind = self.behind();
                if behind > EPOCHS_BEHIND {
                    return Err(format!(
                        "{behind} epochs behind: they are closed and not durable, at most {EPOCHS_BEHIND} \
                        may be"
                    ));
                }
                let (_, lag) = self.lags(now);
                let most = Duration::from_millis(self.ready_lag.load(Ordering::Relaxed));
                if lag > most {
                    let (lag, most) = (lag.as_secs_f64(), most.as_secs_f64());
                    return Err(format!(
                        "{lag:.1} s behind: so long ago events were read that are not durable, at most \
                        {most} s may be (monitor.ready_lag)"
                    ));
                }
                return self.reads();
            }
        };
        Err(waits.to_owned())
    }

    /// Whether the input is read about as fast as it is written.
    fn reads(&self) -> Result<(), String> {
        readable(self.input.get().and_then(|input| input.is_away()))?;
        let most = Duration::from_millis(self.ready_behind.load(Ordering::Relaxed));
        seen(self.input.get().and_then(|input| input.unseen()), most)?;
        let oldest = self.input.get().and_then(|input| input.oldest());
        let Some((partition, UnreadRecords { behind, undecided, oldest, position, .. })) =
            oldest.filter(|(_, waiting)| waiting.oldest > most)
        else {
            return Ok(());
        };
        let waits = if behind == 0 {
            format!("{undecided} records wait for a transaction of their producer, open at offset {position}")
        } else {
            format!("{behind} records are not read")
        };
        Err(format!(
            "the input is behind: of partition {partition} {waits}; the oldest has waited for {:.1} s, at \
            most {} s are expected \
             (monitor.ready_behind)",
            oldest.as_secs_f64(),
            most.as_secs_f64()
        ))
    }

    /// Sets where unread records are counted.
    pub fn watch_input(&self, input: Arc<Backlog>) {
        // Called once, before anything is read.
        drop(self.input.set(input));
    }

    /// Unread records by partition; `None` for inputs that do not report them.
    pub fn input(&self) -> Option<BTreeMap<u32, UnreadRecords>> {
        self.input.get().map(|input| input.waiting())
    }

    /// The number of unread records, those of open transactions included.
    pub fn unread(&self) -> u64 {
        let all = self.input().unwrap_or_default();
        all.values().map(|waiting| waiting.behind + waiting.undecided).sum()
    }

    /// Sets how long the oldest unread record may wait while the run is ready, inclusive; unlimited by
    /// default.
    pub fn set_ready_behind(&self, wait: Duration) {
        self.ready_behind.store(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The number of epochs that are closed and not durable.
    fn behind(&self) -> u64 {
        self.closed_epoch().saturating_sub(self.durable_epoch())
    }

    /// Events of an epoch were read at `now`; only the first call for an epoch counts.
    pub fn begun(&self, epoch: Epoch, now: Duration) {
        self.begun.lock().entry(epoch).or_insert(now);
    }

    /// Ages of the oldest epoch that is not closed and of the oldest that is not durable; 0 if there is none.
    pub fn lags(&self, now: Duration) -> (Duration, Duration) {
        let (closed, begun) = (self.closed_epoch(), self.begun.lock());
        let since = |oldest: Option<(&Epoch, &Duration)>| {
            oldest.map_or(Duration::ZERO, |(_, then)| now.saturating_sub(*then))
        };
        (since(begun.range(closed + 1..).next()), since(begun.first_key_value()))
    }

    /// Sets how old an epoch that is not durable may be while the run is ready, inclusive; unlimited by
    /// default.
    pub fn set_ready_lag(&self, lag: Duration) {
        self.ready_lag.store(u64::try_from(lag.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Sets the clock by which documents expire, in unix seconds.
    pub fn set_retention_clock(&self, seconds: f64) {
        *self.retention.lock() = Some(seconds);
    }

    /// The clock by which documents expire; `None` before its first value and without retention.
    pub fn retention_clock(&self) -> Option<f64> {
        *self.retention.lock()
    }

    /// Documents expire by the wall clock.
    pub fn follow_wall_clock(&self) {
        self.retention_is_wall.store(true, Ordering::Relaxed);
    }

    /// By how many seconds the clock of retention is ahead of the machine's, which says `unix`; 0 if it is
    /// not. `None` unless it is the wall clock.
    pub fn retention_ahead(&self, unix: f64) -> Option<f64> {
        let clock = self.retention_clock().filter(|_| self.retention_is_wall.load(Ordering::Relaxed))?;
        Some((clock - unix).max(0.0))
    }

    /// Sets what is to be read before the run is live: so many records of the state at most, if there is one,
    /// and the input up to these offsets.
    pub fn set_beginning(&self, stored: Option<u64>, up_to: Offsets) {
        *self.beginning.lock() = BeginningStatus { restored: 0, stored, up_to };
    }

    /// Counts documents restored from the state.
    pub fn count_restored(&self, documents: u64) {
        self.beginning.lock().restored += documents;
    }

    /// What is read before the run is live; `None` from then on.
    pub fn beginning(&self) -> Option<BeginningStatus> {
        let is_before = self.phase() <= Phase::CatchingUp;
        is_before.then(|| self.beginning.lock().clone())
    }

    /// How far the input is read, in event time.
    pub fn reading(&self) -> &Reading {
        &self.reading
    }

    /// Counts a query sent to the workers.
    pub fn count_query(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// Records the duration of an answer.
    pub fn record_answer(&self, took: Duration) {
        self.answers.record(took);
    }

    /// The number of queries sent to the workers.
    pub fn questions(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// How long answers took.
    pub fn answer_seconds(&self) -> Buckets {
        self.answers.read()
    }

    /// Duration of the last commit; 0 before the first one.
    pub fn last_commit(&self) -> Duration {
        Duration::from_micros(self.last_commit_micros.load(Ordering::Relaxed))
    }

    /// The last epoch that is closed on all workers; 0 before the first one.
    pub fn closed_epoch(&self) -> Epoch {
        self.closed.load(Ordering::Relaxed)
    }

    /// The last epoch that is committed; 0 before the first one.
    pub fn durable_epoch(&self) -> Epoch {
        self.durable.load(Ordering::Relaxed)
    }

    /// Epochs that have begun and are not durable.
    pub fn in_flight(&self) -> u64 {
        self.begun.lock().len() as u64
    }

    /// Deltas of closed epochs that are not committed.
    pub fn waiting_deltas(&self) -> u64 {
        self.waiting_deltas.load(Ordering::Relaxed)
    }

    /// How long commits took.
    pub fn commit_seconds(&self) -> Buckets {
        self.commits.read()
    }

    /// Time since the last commit ended; `None` before the first one.
    pub fn commit_age(&self, now: Duration) -> Option<Duration> {
        age(&self.committed_at, now)
    }

    /// Epoch and bytes of the stored state.
    pub fn state(&self) -> (Epoch, u64) {
        (self.state_epoch.load(Ordering::Relaxed), self.state_bytes.load(Ordering::Relaxed))
    }

    /// Epoch and bytes of the stored history; zeros if there is none.
    pub fn history(&self) -> (Epoch, u64) {
        (self.history_epoch.load(Ordering::Relaxed), self.history_bytes.load(Ordering::Relaxed))
    }

    /// Bad records by reason, reasons without one left out.
    pub fn bad_records(&self) -> BTreeMap<String, u64> {
        self.bad_records.lock().clone()
    }

    /// Invalid records by reason, including reasons with none.
    pub fn bad_by_reason(&self) -> BTreeMap<String, u64> {
        let none = self.bad_reasons.get().into_iter().flatten().map(|reason| ((*reason).to_owned(), 0));
        none.chain(self.bad_records()).collect()
    }

    /// The index of this process and the number of processes.
    pub fn process(&self) -> (usize, usize) {
        self.process
    }

    /// Workers of this process.
    pub fn workers(&self) -> usize {
        self.steps.len()
    }
}

/// Milliseconds plus one, so that 0 means never.
fn encoded(now: Duration) -> u64 {
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_add(1)
}

/// The time since a moment; 0 if the moment is later than `now`.
fn age(at: &AtomicU64, now: Duration) -> Option<Duration> {
    let millis = at.load(Ordering::Relaxed).checked_sub(1)?;
    Some(now.saturating_sub(Duration::from_millis(millis)))
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
