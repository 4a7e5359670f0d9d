//! Where a run stands, told by its threads as it goes on, read by whoever asks.
//!
//! No time is read here: whoever tells of a moment hands it in, as time since the run's clock was started.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::Duration;

use parking_lot::Mutex;

use super::histogram::{Buckets, Histogram};
use crate::run::backlog::{Backlog, UnreadRecords};
use crate::time::Epoch;

/// How many epochs may be closed and not durable, inclusive, while a run counts as ready. Half of what
/// workers may be ahead, from which on they wait for the output.
pub const EPOCHS_BEHIND: u64 = 32;

/// How long a look at the ends of a topic may take, whatever is allowed: requests have some seconds.
const LOOKS_APART: Duration = Duration::from_secs(10);

/// How long a worker may take for a step, inclusive, while the process counts as working. A step may be a big
/// epoch's: so it is long.
pub const STEP: Duration = Duration::from_secs(300);

/// How far a run has come. It goes through these in order, and may leave some out.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub enum Phase {
    /// It takes the output over and finds out where to go on.
    #[default]
    Starting,
    /// It takes documents from the state.
    Restoring,
    /// It reads again, without writing, what the output holds already.
    CatchingUp,
    /// What it reads is written.
    Live,
    /// It reads no more; what has been read is finished and written.
    Stopping,
    /// It has failed, with this.
    Failed(String),
}

impl Phase {
    /// The names of all phases, in order.
    pub const NAMES: [&str; 6] = ["starting", "restoring", "catching_up", "live", "stopping", "failed"];

    /// As it is written.
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

/// Where one process of a run stands. Any thread may tell, at any time.
#[derive(Debug)]
pub struct Status {
    /// This process and how many there are.
    process: (usize, usize),
    phase: Mutex<Phase>,
    closed: AtomicU64,
    durable: AtomicU64,
    waiting_deltas: AtomicU64,
    commits: Histogram,
    /// When the last commit ended, by [`encoded`], and how many microseconds it took.
    committed_at: AtomicU64,
    last_commit_micros: AtomicU64,
    state_epoch: AtomicU64,
    state_bytes: AtomicU64,
    /// Of each worker, when it last began a step, by [`encoded`]; 0 for one that has not begun, or has ended.
    steps: Vec<AtomicU64>,
    bad_records: Mutex<BTreeMap<String, u64>>,
    /// Why records may be no events, all that there is.
    bad_reasons: OnceLock<Vec<&'static str>>,
    asked: AtomicU64,
    answers: Histogram,
    /// When the first events of each epoch were taken, until it is durable.
    begun: Mutex<BTreeMap<Epoch, Duration>>,
    ready_lag: AtomicU64,
    /// What waits to be read, where that is known.
    input: OnceLock<Arc<Backlog>>,
    ready_behind: AtomicU64,
    /// The clock of retention, if there is one.
    retention: Mutex<Option<f64>>,
}

impl Default for Status {
    /// Of one process, whose workers nobody has counted.
    fn default() -> Self {
        Self::new(0, 1, 0)
    }
}

/// Whether it is known how far a topic reaches: `unseen` is the partition that was last seen longest ago.
fn seen(unseen: Option<(u32, Duration)>, most: Duration) -> Result<(), String> {
    let most = most.max(LOOKS_APART);
    match unseen {
        Some((partition, unseen)) if unseen > most => Err(format!(
            "how much of the input waits is not known: no broker has said for {:.1} s where partition {partition} ends, at most {} s may pass              (monitor.ready_behind)",
            unseen.as_secs_f64(),
            most.as_secs_f64()
        )),
        _ => Ok(()),
    }
}

impl Status {
    /// Of process `index` of `count`, with so many workers of its own; nothing has happened yet.
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
        }
    }

    /// The run has come to a phase. One that is behind the present phase changes nothing; of two failures the
    /// first counts.
    pub fn enter(&self, phase: Phase) {
        let mut present = self.phase.lock();
        if phase > *present && !matches!(*present, Phase::Failed(_)) {
            *present = phase;
        }
    }

    /// How far it has come.
    pub fn phase(&self) -> Phase {
        self.phase.lock().clone()
    }

    /// All epochs up to this one are closed: computed on all workers.
    pub fn closed(&self, epoch: Epoch) {
        self.closed.fetch_max(epoch, Ordering::Relaxed);
    }

    /// All epochs up to this one are durable, by an earlier run.
    pub fn durable(&self, epoch: Epoch) {
        self.durable.fetch_max(epoch, Ordering::Relaxed);
        self.closed(epoch);
    }

    /// A commit that took so long made all epochs up to this one durable; it ended at `now`.
    pub fn committed(&self, last: Epoch, took: Duration, now: Duration) {
        self.durable(last);
        let mut begun = self.begun.lock();
        *begun = begun.split_off(&(last + 1));
        drop(begun);
        self.commits.record(took);
        self.last_commit_micros.store(u64::try_from(took.as_micros()).unwrap_or(u64::MAX), Ordering::Relaxed);
        self.committed_at.store(encoded(now), Ordering::Relaxed);
    }

    /// How many deltas of closed epochs wait for the output.
    pub fn set_waiting_deltas(&self, deltas: u64) {
        self.waiting_deltas.store(deltas, Ordering::Relaxed);
    }

    /// What the state on disk or in a bucket stands for, and how large it is.
    pub fn set_state(&self, epoch: Epoch, bytes: u64) {
        self.state_epoch.store(epoch, Ordering::Relaxed);
        self.state_bytes.store(bytes, Ordering::Relaxed);
    }

    /// How many records were no events so far, by reason.
    pub fn set_bad_records(&self, by_reason: BTreeMap<String, u64>) {
        *self.bad_records.lock() = by_reason;
    }

    /// All reasons for which records may be no events, so that each is counted from 0. The first call counts.
    pub fn name_bad_reasons(&self, reasons: impl IntoIterator<Item = &'static str>) {
        self.bad_reasons.get_or_init(|| reasons.into_iter().collect());
    }

    /// A worker of this process, from 0, begins a step at `now`; each does now and then, also where there is
    /// nothing to do.
    pub fn stepped(&self, worker: usize, now: Duration) {
        if let Some(step) = self.steps.get(worker) {
            step.store(encoded(now), Ordering::Relaxed);
        }
    }

    /// A worker has no more to do.
    pub fn ended(&self, worker: usize) {
        if let Some(step) = self.steps.get(worker) {
            step.store(0, Ordering::Relaxed);
        }
    }

    /// How long ago each worker began its last step; none of those that have not begun, or have ended.
    pub fn step_ages(&self, now: Duration) -> impl Iterator<Item = (usize, Duration)> {
        self.steps.iter().enumerate().filter_map(move |(worker, step)| Some((worker, age(step, now)?)))
    }

    /// Whether the process works, at `now`.
    ///
    /// # Errors
    /// What is wrong, in a line.
    pub fn health(&self, now: Duration) -> Result<(), String> {
        if let Phase::Failed(why) = self.phase() {
            return Err(format!("failed: {}", why.replace('\n', "; ")));
        }
        match self.step_ages(now).max_by_key(|(_, age)| *age).filter(|(_, age)| *age > STEP) {
            Some((worker, age)) => {
                let (age, most) = (age.as_secs(), STEP.as_secs());
                Err(format!(
                    "worker {worker} has been in one step for {age} s, at most {most} s are expected: it hangs"
                ))
            }
            None => Ok(()),
        }
    }

    /// Whether the run is live and its output keeps up, at `now`.
    ///
    /// # Errors
    /// What it waits for, in a line.
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
                        "{behind} epochs behind: they are closed and not durable, at most {EPOCHS_BEHIND} may be"
                    ));
                }
                let (_, lag) = self.lags(now);
                let most = Duration::from_millis(self.ready_lag.load(Ordering::Relaxed));
                if lag > most {
                    let (lag, most) = (lag.as_secs_f64(), most.as_secs_f64());
                    return Err(format!(
                        "{lag:.1} s behind: so long ago events were read that are not durable, at most {most} s may be (monitor.ready_lag)"
                    ));
                }
                return self.reads();
            }
        };
        Err(waits.to_owned())
    }

    /// Whether the input is read about as fast as it is written.
    fn reads(&self) -> Result<(), String> {
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
            "the input is behind: of partition {partition} {waits}; the oldest has waited for {:.1} s, at most {} s are expected \
             (monitor.ready_behind)",
            oldest.as_secs_f64(),
            most.as_secs_f64()
        ))
    }

    /// What waits to be read is known there.
    pub fn watch_input(&self, input: Arc<Backlog>) {
        // Set once, before anything is read.
        drop(self.input.set(input));
    }

    /// What waits to be read, by partition; none where that is not known.
    pub fn input(&self) -> Option<BTreeMap<u32, UnreadRecords>> {
        self.input.get().map(|input| input.waiting())
    }

    /// Records that wait to be read, those of open transactions too.
    pub fn unread(&self) -> u64 {
        let all = self.input().unwrap_or_default();
        all.values().map(|waiting| waiting.behind + waiting.undecided).sum()
    }

    /// How long the oldest record that is not read may have waited while the run counts as ready,
    /// inclusive; without bound unless it is set.
    pub fn set_ready_behind(&self, wait: Duration) {
        self.ready_behind.store(u64::try_from(wait.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// Epochs that are closed and not durable.
    fn behind(&self) -> u64 {
        self.closed_epoch().saturating_sub(self.durable_epoch())
    }

    /// The first events of an epoch, if these are, have been taken at `now`.
    pub fn begun(&self, epoch: Epoch, now: Duration) {
        self.begun.lock().entry(epoch).or_insert(now);
    }

    /// For how long the oldest epoch that is not closed, and the oldest that is not durable, have been under
    /// way; 0 if none is.
    pub fn lags(&self, now: Duration) -> (Duration, Duration) {
        let (closed, begun) = (self.closed_epoch(), self.begun.lock());
        let since = |oldest: Option<(&Epoch, &Duration)>| {
            oldest.map_or(Duration::ZERO, |(_, then)| now.saturating_sub(*then))
        };
        (since(begun.range(closed + 1..).next()), since(begun.first_key_value()))
    }

    /// How long the oldest epoch that is not durable may have been under way while the run counts as ready,
    /// inclusive; without bound unless it is set.
    pub fn set_ready_lag(&self, lag: Duration) {
        self.ready_lag.store(u64::try_from(lag.as_millis()).unwrap_or(u64::MAX), Ordering::Relaxed);
    }

    /// The clock by which documents expire stands there, in unix seconds.
    pub fn set_retention_clock(&self, seconds: f64) {
        *self.retention.lock() = Some(seconds);
    }

    /// Where it stands; none before the first time, or without retention.
    pub fn retention_clock(&self) -> Option<f64> {
        *self.retention.lock()
    }

    /// A question has been put to the workers.
    pub fn asked(&self) {
        self.asked.fetch_add(1, Ordering::Relaxed);
    }

    /// It has been answered, in so long.
    pub fn answered(&self, took: Duration) {
        self.answers.record(took);
    }

    /// Questions put to the workers.
    pub fn questions(&self) -> u64 {
        self.asked.load(Ordering::Relaxed)
    }

    /// How long answers took.
    pub fn answer_seconds(&self) -> Buckets {
        self.answers.read()
    }

    /// How long the last commit took; 0 before the first one.
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

    /// Epoch and bytes.
    pub fn state(&self) -> (Epoch, u64) {
        (self.state_epoch.load(Ordering::Relaxed), self.state_bytes.load(Ordering::Relaxed))
    }

    /// Bad records by reason, reasons without one left out.
    pub fn bad_records(&self) -> BTreeMap<String, u64> {
        self.bad_records.lock().clone()
    }

    /// The same, with those reasons of which there were none.
    pub fn bad_by_reason(&self) -> BTreeMap<String, u64> {
        let none = self.bad_reasons.get().into_iter().flatten().map(|reason| ((*reason).to_owned(), 0));
        none.chain(self.bad_records()).collect()
    }

    /// This process and how many there are.
    pub fn process(&self) -> (usize, usize) {
        self.process
    }

    /// Workers of this process.
    pub fn workers(&self) -> usize {
        self.steps.len()
    }
}

/// A moment in milliseconds and one more: 0 stands for never.
fn encoded(now: Duration) -> u64 {
    u64::try_from(now.as_millis()).unwrap_or(u64::MAX).saturating_add(1)
}

/// How long ago a moment was; 0 for one that is told while it is asked.
fn age(at: &AtomicU64, now: Duration) -> Option<Duration> {
    let millis = at.load(Ordering::Relaxed).checked_sub(1)?;
    Some(now.saturating_sub(Duration::from_millis(millis)))
}

#[cfg(test)]
#[path = "status_tests.rs"]
mod tests;
