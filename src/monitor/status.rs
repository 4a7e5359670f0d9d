//! Where a run stands, told by its threads as it goes on, read by whoever asks.
//!
//! No time is read here: whoever tells of a moment hands it in, as time since the run's clock was started.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use super::histogram::{Buckets, Histogram};
use crate::time::Epoch;

/// How many epochs may be closed and not durable, inclusive, while a run counts as ready. Half of what workers may be ahead, from which on
/// they wait for the output.
pub const EPOCHS_BEHIND: u64 = 32;

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
    in_flight: AtomicU64,
    waiting_deltas: AtomicU64,
    commits: Histogram,
    /// When the last commit ended, by [`encoded`].
    committed_at: AtomicU64,
    state_epoch: AtomicU64,
    state_bytes: AtomicU64,
    workers: usize,
    bad_records: Mutex<BTreeMap<String, u64>>,
}

impl Default for Status {
    /// Of one process, whose workers nobody has counted.
    fn default() -> Self {
        Self::new(0, 1, 0)
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
            in_flight: AtomicU64::new(0),
            waiting_deltas: AtomicU64::new(0),
            commits: Histogram::default(),
            committed_at: AtomicU64::new(0),
            state_epoch: AtomicU64::new(0),
            state_bytes: AtomicU64::new(0),
            workers,
            bad_records: Mutex::default(),
        }
    }

    /// The run has come to a phase. One that is behind the present phase changes nothing; of two failures the first counts.
    pub fn enter(&self, phase: Phase) {
        let mut present = lock(&self.phase);
        if phase > *present && !matches!(*present, Phase::Failed(_)) {
            *present = phase;
        }
    }

    /// How far it has come.
    pub fn phase(&self) -> Phase {
        lock(&self.phase).clone()
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
        self.commits.record(took);
        self.committed_at.store(encoded(now), Ordering::Relaxed);
    }

    /// How many epochs have been begun and are not durable.
    pub fn set_in_flight(&self, epochs: u64) {
        self.in_flight.store(epochs, Ordering::Relaxed);
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
        *lock(&self.bad_records) = by_reason;
    }

    /// Whether the process works.
    ///
    /// # Errors
    /// What is wrong, in a line.
    pub fn health(&self) -> Result<(), String> {
        match self.phase() {
            Phase::Failed(why) => Err(format!("failed: {}", why.replace('\n', "; "))),
            _ => Ok(()),
        }
    }

    /// Whether the run is live and its output keeps up.
    ///
    /// # Errors
    /// What it waits for, in a line.
    pub fn readiness(&self) -> Result<(), String> {
        let waits = match self.phase() {
            Phase::Starting => "starting: the output is taken over",
            Phase::Restoring => "restoring: documents are taken from the state",
            Phase::CatchingUp => "catching up: what the output holds already is read again",
            Phase::Stopping => "stopping: what has been read is finished and written",
            Phase::Failed(_) => "failed: /health says why",
            Phase::Live => {
                let behind = self.behind();
                return if behind <= EPOCHS_BEHIND {
                    Ok(())
                } else {
                    Err(format!(
                        "{behind} epochs behind: they are closed and not durable, at most {EPOCHS_BEHIND} may be"
                    ))
                };
            }
        };
        Err(waits.to_owned())
    }

    /// Epochs that are closed and not durable.
    fn behind(&self) -> u64 {
        self.closed_epoch().saturating_sub(self.durable_epoch())
    }

    pub(super) fn closed_epoch(&self) -> Epoch {
        self.closed.load(Ordering::Relaxed)
    }

    pub(super) fn durable_epoch(&self) -> Epoch {
        self.durable.load(Ordering::Relaxed)
    }

    pub(super) fn in_flight(&self) -> u64 {
        self.in_flight.load(Ordering::Relaxed)
    }

    pub(super) fn waiting_deltas(&self) -> u64 {
        self.waiting_deltas.load(Ordering::Relaxed)
    }

    pub(super) fn commit_seconds(&self) -> Buckets {
        self.commits.read()
    }

    pub(super) fn commit_age(&self, now: Duration) -> Option<Duration> {
        age(&self.committed_at, now)
    }

    /// Epoch and bytes.
    pub(super) fn state(&self) -> (Epoch, u64) {
        (self.state_epoch.load(Ordering::Relaxed), self.state_bytes.load(Ordering::Relaxed))
    }

    pub(super) fn bad_records(&self) -> BTreeMap<String, u64> {
        lock(&self.bad_records).clone()
    }

    /// This process and how many there are.
    pub(super) fn process(&self) -> (usize, usize) {
        self.process
    }

    pub(super) fn workers(&self) -> usize {
        self.workers
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

/// A lock on what stays whole if its holder panics.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seconds(n: u64) -> Duration {
        Duration::from_secs(n)
    }

    #[test]
    fn phases_go_forward_only_and_the_first_failure_stays() {
        let status = Status::new(0, 1, 1);
        assert_eq!(status.phase(), Phase::Starting);
        status.enter(Phase::Live);
        status.enter(Phase::Restoring);
        assert_eq!(status.phase(), Phase::Live);
        status.enter(Phase::Failed("disk".to_owned()));
        status.enter(Phase::Failed("z: a worker that followed".to_owned()));
        status.enter(Phase::Stopping);
        assert_eq!(status.phase(), Phase::Failed("disk".to_owned()));
        assert_eq!(status.phase().name(), "failed");
    }

    #[test]
    fn a_process_is_healthy_until_it_fails() {
        let status = Status::new(0, 1, 2);
        assert_eq!(status.health(), Ok(()));
        status.enter(Phase::Failed("the output\ncannot be written".to_owned()));
        assert_eq!(status.health(), Err("failed: the output; cannot be written".to_owned()));
    }

    #[test]
    fn a_run_is_ready_while_it_is_live_and_its_output_keeps_up() {
        let status = Status::new(0, 1, 1);
        let mut waits = Vec::new();
        for phase in [Phase::Starting, Phase::Restoring, Phase::CatchingUp, Phase::Live, Phase::Stopping] {
            status.enter(phase);
            waits.push(
                status.readiness().map_err(|line| line.split(':').next().unwrap_or_default().to_owned()),
            );
        }
        let waiting = |what: &str| Err(what.to_owned());
        let expected =
            [waiting("starting"), waiting("restoring"), waiting("catching up"), Ok(()), waiting("stopping")];
        assert_eq!(waits, expected);

        let behind = Status::new(0, 1, 1);
        behind.durable(100);
        behind.enter(Phase::Live);
        behind.closed(100 + EPOCHS_BEHIND);
        assert_eq!(behind.readiness(), Ok(()), "exactly the limit");
        behind.closed(101 + EPOCHS_BEHIND);
        assert!(behind.readiness().is_err_and(|line| line.starts_with("33 epochs behind")));
        behind.committed(101, seconds(1), seconds(9));
        assert_eq!(behind.readiness(), Ok(()));
        assert_eq!(
            (behind.commit_age(seconds(11)), status.commit_age(seconds(11))),
            (Some(seconds(2)), None)
        );
    }

    #[test]
    fn what_is_told_late_does_not_go_back() {
        let status = Status::new(0, 1, 1);
        status.durable(7);
        status.closed(6);
        status.committed(5, seconds(0), seconds(0));
        assert_eq!((status.closed_epoch(), status.durable_epoch()), (7, 7));
    }
}
