//! An output beside the first one, which may be away.
//!
//! With `on_failure = "stop"` its first failure ends the run. With `"wait"` it is *left behind*:
//!
//! ```text
//!  open ── a call fails, or takes longer than PATIENCE ──▶ behind ── opened again, read back ──▶ corrected
//!    ▲                                                      ▲ └─ another attempt after a pause        │
//!    │                                                      └────────────── it fails ─────────────────┤
//!    └────────────────────────────────────────────────────────────────────────────────────────────────┘
//! ```
//!
//! Each call of such an output has a thread of its own once the run is live, since a sink may wait for its
//! destination without limit; meanwhile the committer goes on. Nothing is queued: an output that is back is
//! corrected from what is [in force](InForce). What was found there and is not this run's is no failure that
//! passes, and ends the run.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, TryRecvError, channel};
use std::sync::{Arc, OnceLock};
use std::thread::{self, Thread};
use std::time::Duration;

use backon::{BackoffBuilder, ExponentialBuilder};
use parking_lot::Mutex;

use super::in_force::InForce;
use super::open_output::{OpenOutput, OutputRules};
use crate::pipeline::error::{RunError, chain};
use crate::pipeline::outcome::EndOutput;
use dupflow_connectors::mark::{Mark, Standing};
use dupflow_connectors::sinks::{OutputGuard, Sink};
use dupflow_core::doc::DocChange;
use dupflow_core::pair::Delta;
use dupflow_core::time::{Clock, Epoch};
use dupflow_engine::dataflow::ClosedEpoch;
use dupflow_run::metrics::{Counter, Metrics};

/// How long a call of an output may take before the run goes on without it. A correction may take this long
/// for each commit. It doubles, up to the second, each time that a call succeeds after it: an output that is
/// slow holds the run back, and only one that does not answer is left behind again and again.
const PATIENCE: Duration = Duration::from_secs(5);
const MOST_PATIENCE: Duration = Duration::from_secs(60);

/// Pauses before the first attempt to open an output again, and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(500);
const LONGEST_PAUSE: Duration = Duration::from_secs(15);

/// Opens the sink of an output anew.
pub(in crate::pipeline) type OpenSink = Arc<dyn Fn() -> Result<Box<dyn Sink + Send>, RunError> + Send + Sync>;

/// An output beside the first one, which is written after it with a mark of its own.
pub struct OtherOutput {
    /// Its table in the deployment, as in "output.2".
    pub(in crate::pipeline) name: String,
    /// What is written once the run has ended, if it is written at the end.
    pub(in crate::pipeline) end: Option<EndOutput>,
    /// Whether it wants the changes of documents, and upserts.
    pub(in crate::pipeline) wants: [bool; 2],
    /// Whether it receives epochs before they are durable in the first output.
    is_early: bool,
    pipeline: String,
    state: OutputState,
    /// What it needs to be left behind; `None` if a failure ends the run.
    waits: Option<Waits>,
    /// What looks at it now.
    looks: Arc<Mutex<Looks>>,
}

/// What looks at an output that may be left behind: nothing while it is.
#[derive(Default)]
struct Looks {
    /// How often it was left behind or opened again.
    turn: u64,
    /// `None` also while it looks.
    guard: Option<OutputGuard>,
}

/// Where an output is.
enum OutputState {
    Open(Box<OpenOutput>),
    /// With a thread, in a call that has not ended or which opens it again.
    Behind(Receiver<CallStep>, Thread),
    /// Between two of them.
    Moved,
}

/// What a thread that calls an output sends.
enum CallStep {
    /// A commit has ended, and more follow.
    Beat,
    /// The last: the output, and how the call ended.
    Ended(Box<OpenOutput>, Result<(), RunError>),
    /// The last: the output is open again, and has been read back; or why it cannot be.
    Opened(Result<Box<OpenOutput>, RunError>),
}

/// What an output needs that may be left behind.
pub(in crate::pipeline) struct Waits {
    open: OpenSink,
    /// The name of this run.
    run: String,
    metrics: Arc<Metrics>,
    /// Wakes the committer, once there is one.
    wake: Arc<OnceLock<Box<dyn Fn() + Send + Sync>>>,
    rules: Option<Arc<OutputRules>>,
    /// What the outputs of its runs share, once the run is live; before it is not opened again.
    lineage: Arc<OnceLock<Option<String>>>,
    /// The runs whose marks it may hold; any before it was taken over.
    runs: BTreeSet<String>,
    patience: Duration,
    /// The epoch that it was seen to hold, before it was taken over.
    seen: Epoch,
    /// Failed attempts in a row.
    failures: usize,
    /// Why it is behind.
    why: Option<String>,
    /// Dropped with the output, which ends what opens it.
    life: Arc<()>,
}

impl Waits {
    /// `run` is the name of the run.
    pub(in crate::pipeline) fn new(open: OpenSink, run: &str, metrics: &Arc<Metrics>) -> Self {
        Self {
            open,
            run: run.to_owned(),
            metrics: Arc::clone(metrics),
            wake: Arc::default(),
            rules: None,
            lineage: Arc::default(),
            runs: BTreeSet::new(),
            patience: PATIENCE,
            seen: 0,
            failures: 0,
            why: None,
            life: Arc::default(),
        }
    }

    /// This run has the output, which held this before.
    fn taken_over(&mut self, standing: &Standing) {
        self.runs.insert(self.run.clone());
        if let Standing::At(mark) = standing {
            self.runs.insert(mark.run.clone());
        }
    }
}

impl OtherOutput {
    /// With `waits`, a failure leaves it behind.
    pub(in crate::pipeline) fn new(
        name: String,
        sink: Box<dyn Sink + Send>,
        pipeline: String,
        end: Option<EndOutput>,
        waits: Option<Waits>,
    ) -> Self {
        let wants = [sink.wants_documents(), sink.wants_upserts()];
        let open = Box::new(OpenOutput::new(name.clone(), sink, pipeline.clone()));
        let (state, looks) = (OutputState::Open(open), Arc::default());
        Self { name, end, wants, is_early: false, pipeline, state, waits, looks }
    }

    /// One that is no place, and receives epochs when they are computed.
    pub(in crate::pipeline) fn early(self) -> Self {
        Self { is_early: true, ..self }
    }

    /// Whether a failure leaves it behind.
    pub(in crate::pipeline) fn may_wait(&self) -> bool {
        self.waits.is_some()
    }

    /// Whether it is left behind.
    pub(in crate::pipeline) fn is_left(&self) -> bool {
        !matches!(self.state, OutputState::Open(_))
    }

    /// What looks at it on a thread of its own, while it is open.
    pub(in crate::pipeline) fn guard(&self) -> Option<OutputGuard> {
        let guard = self.open_guard();
        // A file has none.
        if !self.may_wait() || guard.is_none() && !self.is_left() {
            return guard;
        }
        self.look_by(guard);
        let looks = Arc::clone(&self.looks);
        Some(Box::new(move || {
            let (turn, taken) = {
                let mut now = looks.lock();
                (now.turn, now.guard.take())
            };
            let Some(mut look) = taken else { return Ok(PATIENCE) };
            let looked = look();
            let mut now = looks.lock();
            if now.turn != turn {
                // It was left behind meanwhile: what was seen is of an output that is corrected.
                return Ok(PATIENCE);
            }
            now.guard = Some(look);
            looked
        }))
    }

    fn open_guard(&self) -> Option<OutputGuard> {
        if let OutputState::Open(open) = &self.state { open.sink.guard() } else { None }
    }

    /// From now on this looks at it.
    fn look_by(&self, guard: Option<OutputGuard>) {
        let mut looks = self.looks.lock();
        looks.turn += 1;
        looks.guard = guard;
    }

    /// Sets what wakes the committer when the output is back.
    pub(in crate::pipeline) fn wakes(&self, wake: impl Fn() + Send + Sync + 'static) {
        if let Some(waits) = &self.waits {
            drop(waits.wake.set(Box::new(wake)));
        }
    }

    /// Checks the output, as far as it can be read before any is taken over. `first`: what the first output
    /// holds, if that can be read.
    pub(in crate::pipeline) fn inspect(
        &mut self,
        first: Option<&Standing>,
        rules: &Arc<OutputRules>,
    ) -> Result<(), RunError> {
        if let Some(waits) = &mut self.waits {
            waits.rules = Some(Arc::clone(rules));
        }
        let (first, rules) = (first.cloned(), Arc::clone(rules));
        self.call(move |open, _| open.inspect(first.as_ref(), &rules))?;
        if let (OutputState::Open(open), Some(waits)) = (&self.state, &mut self.waits) {
            waits.seen = open.epoch_before();
        }
        Ok(())
    }

    /// Takes the output over, or says why the run is refused. `first` is what the first output held, and
    /// `lineage` what the outputs of its runs share. Returns the epoch of the mark, as far as it is known.
    pub(in crate::pipeline) fn take_over(
        &mut self,
        first: &Standing,
        lineage: Option<&str>,
        rules: &Arc<OutputRules>,
    ) -> Result<Epoch, RunError> {
        let (first, lineage, rules) = (first.clone(), lineage.map(str::to_owned), Arc::clone(rules));
        self.call(move |open, _| open.take_over(&first, lineage.as_deref(), &rules))?;
        let OutputState::Open(open) = &self.state else {
            return Ok(self.waits.as_ref().map_or(0, |waits| waits.seen));
        };
        if let Some(waits) = &mut self.waits {
            waits.taken_over(&open.standing);
        }
        Ok(open.epoch_before())
    }

    /// Finds whether the output is continued or corrected; then it is read back. `first` is what the first
    /// output held, and `is_corrected` whether that is corrected.
    pub(in crate::pipeline) fn begin(
        &mut self,
        first: &Standing,
        is_corrected: bool,
        rules: &OutputRules,
    ) -> Result<(), RunError> {
        self.here(|open| open.begin(first, is_corrected, rules))
    }

    /// Whether it is to be corrected once the run is live.
    pub(in crate::pipeline) fn is_corrected(&self) -> bool {
        matches!(&self.state, OutputState::Open(open) if open.is_corrected())
    }

    /// Passes an epoch before the run is live.
    pub(in crate::pipeline) fn restored(
        &mut self,
        documents: &[DocChange],
        deltas: &[Delta],
    ) -> Result<(), RunError> {
        self.here(|open| {
            open.documents(documents, true)?;
            open.restored(deltas);
            Ok(())
        })
    }

    /// The run is live: corrects the output up to the mark of the first, if it is to be corrected. Otherwise
    /// it gets that mark too, if the first has a new one. One that is no place gets that of what is repeated.
    pub(in crate::pipeline) fn live(
        &mut self,
        first: &Mark,
        is_marked: bool,
        repeated: &Mark,
    ) -> Result<(), RunError> {
        if let Some(waits) = &self.waits {
            waits.lineage.get_or_init(|| first.lineage.clone());
        }
        self.hurry();
        let first = if self.is_early { repeated.clone() } else { first.clone() };
        let is_marked = is_marked || self.is_early;
        self.call(move |open, beat| open.live(&first, is_marked, beat))
    }

    /// Writes the mark of the first output for an epoch without deltas.
    pub(in crate::pipeline) fn mark(&mut self, first: &Mark) -> Result<(), RunError> {
        let first = first.clone();
        self.call(move |open, _| open.mark(&first))
    }

    /// Epochs that are computed, and durable nowhere.
    pub(in crate::pipeline) fn computed(
        &mut self,
        epochs: &[ClosedEpoch],
        committed: f64,
    ) -> Result<(), RunError> {
        if !self.is_early {
            return Ok(());
        }
        self.here(|open| epochs.iter().try_for_each(|epoch| open.epoch(epoch, committed)))
    }

    /// One commit: epochs that the first output has made durable, with its mark.
    pub(in crate::pipeline) fn write(
        &mut self,
        epochs: &Arc<Vec<ClosedEpoch>>,
        committed: f64,
        first: &Mark,
    ) -> Result<(), RunError> {
        let (epochs, first, is_new) = (Arc::clone(epochs), first.clone(), !self.is_early);
        self.call(move |open, _| {
            epochs.iter().filter(|_| is_new).try_for_each(|epoch| open.epoch(epoch, committed))?;
            open.commit(&first)
        })
    }

    /// Looks whether the output is back, and corrects it then to what is in force; `first` is the mark of the
    /// first output for that.
    pub(in crate::pipeline) fn look(&mut self, in_force: &InForce, first: &Mark) -> Result<(), RunError> {
        loop {
            let OutputState::Behind(steps, _) = &self.state else { return Ok(()) };
            match steps.try_recv() {
                Ok(step) => self.step(step, in_force, first)?,
                Err(TryRecvError::Empty) => return Ok(()),
                Err(TryRecvError::Disconnected) => return Err(self.panicked()),
            }
        }
    }

    /// Ends the pause between two attempts to open an output that is behind.
    pub(in crate::pipeline) fn hurry(&self) {
        if let OutputState::Behind(_, thread) = &self.state {
            thread.unpark();
        }
    }

    /// Waits for a last attempt of an output that is behind, until `PATIENCE` on this clock.
    pub(in crate::pipeline) fn catch_up(
        &mut self,
        in_force: &InForce,
        first: &Mark,
        clock: &dyn Clock,
    ) -> Result<(), RunError> {
        loop {
            let OutputState::Behind(steps, _) = &self.state else { return Ok(()) };
            match steps.recv_timeout(PATIENCE.saturating_sub(clock.now())) {
                Ok(step) => self.step(step, in_force, first)?,
                Err(RecvTimeoutError::Timeout) => return Ok(()),
                Err(RecvTimeoutError::Disconnected) => return Err(self.panicked()),
            }
        }
    }

    /// Writes out everything that is still buffered. Returns why the output is behind, if it is.
    pub(in crate::pipeline) fn finish(&mut self) -> Result<Option<String>, RunError> {
        self.call(|open, _| open.finish())?;
        let left = self.waits.as_mut().and_then(|waits| waits.why.take());
        let behind = |why| format!("{} is behind: {why}; the next start corrects it", self.name);
        Ok(left.map(behind))
    }

    /// What a thread has sent about the output.
    fn step(&mut self, step: CallStep, in_force: &InForce, first: &Mark) -> Result<(), RunError> {
        match step {
            CallStep::Beat => Ok(()),
            CallStep::Ended(open, Ok(())) if open.committed.is_some() && open.committed == first.commit => {
                self.state = OutputState::Open(open);
                self.is_back();
                Ok(())
            }
            CallStep::Ended(open, Ok(())) => {
                // It holds what it held before the run went on.
                drop(open);
                if let Some(waits) = &mut self.waits {
                    waits.patience = (2 * waits.patience).min(MOST_PATIENCE);
                }
                self.open_again()
            }
            CallStep::Ended(open, Err(error)) => {
                drop(open);
                self.leave(error)
            }
            CallStep::Opened(Ok(mut back)) => {
                if let Some(waits) = &mut self.waits {
                    waits.taken_over(&back.standing);
                }
                back.given(in_force)?;
                self.state = OutputState::Open(back);
                let mark = first.clone();
                self.call(move |open, beat| open.live(&mark, false, beat))?;
                if matches!(self.state, OutputState::Open(_)) {
                    self.is_back();
                }
                Ok(())
            }
            CallStep::Opened(Err(error)) => Err(error),
        }
    }

    /// A call without a thread of its own: of an output that may not wait, and while the run is rebuilt.
    fn here(&mut self, work: impl FnOnce(&mut OpenOutput) -> Result<(), RunError>) -> Result<(), RunError> {
        let OutputState::Open(open) = &mut self.state else { return Ok(()) };
        let done = work(open);
        done.or_else(|error| self.leave(error))
    }

    /// A call of an open output. If it may wait and the call fails or takes too long, it is left behind.
    fn call(
        &mut self,
        work: impl FnOnce(&mut OpenOutput, &mut dyn FnMut()) -> Result<(), RunError> + Send + 'static,
    ) -> Result<(), RunError> {
        let Some(waits) = &self.waits else { return self.here(|open| work(open, &mut || ())) };
        let mut moved = match std::mem::replace(&mut self.state, OutputState::Moved) {
            OutputState::Open(open) => open,
            other => {
                self.state = other;
                return Ok(());
            }
        };
        let (send, steps) = channel();
        let (wake, patience) = (Arc::clone(&waits.wake), waits.patience);
        let thread = start(move || {
            let beats = send.clone();
            let done = work(&mut moved, &mut || drop(beats.send(CallStep::Beat)));
            tell(&send, CallStep::Ended(moved, done), &wake);
        })?;
        loop {
            match steps.recv_timeout(patience) {
                Ok(CallStep::Beat | CallStep::Opened(_)) => {}
                Ok(CallStep::Ended(open, Ok(()))) => {
                    self.state = OutputState::Open(open);
                    return Ok(());
                }
                Ok(CallStep::Ended(open, Err(error))) => {
                    drop(open);
                    return self.leave(error);
                }
                Err(RecvTimeoutError::Timeout) => {
                    self.state = OutputState::Behind(steps, thread);
                    self.is_behind(&format!("it has not answered within {} s", patience.as_secs()));
                    return Ok(());
                }
                Err(RecvTimeoutError::Disconnected) => return Err(self.panicked()),
            }
        }
    }

    /// A call has failed: leaves the output behind, if it may wait and the failure may pass.
    fn leave(&mut self, error: RunError) -> Result<(), RunError> {
        if self.waits.is_none() || is_final(&error) {
            return Err(error);
        }
        // Its name is said beside.
        let why = if let RunError::Output { error: said, .. } = &error { chain(said) } else { chain(&error) };
        self.is_behind(&why);
        self.open_again()
    }

    /// Notes that the output is behind; says so once.
    fn is_behind(&mut self, why: &str) {
        self.look_by(None);
        let Some(waits) = &mut self.waits else { return };
        if waits.why.replace(why.to_owned()).is_none() {
            tracing::warn!(
                output = self.name,
                why,
                "an output is left behind, and the run goes on without it"
            );
            waits.metrics.add(Counter::OutputsLeft, 1);
        } else {
            tracing::debug!(output = self.name, why, "the output is still behind");
        }
    }

    /// Notes that the output holds what the first holds.
    fn is_back(&mut self) {
        self.look_by(self.open_guard());
        let Some(waits) = &mut self.waits else { return };
        waits.failures = 0;
        if waits.why.take().is_some() {
            tracing::info!(output = self.name, "the output is back, and holds what the first one holds");
            waits.metrics.add(Counter::OutputsBack, 1);
        }
    }

    /// Opens the output again on a thread, until that succeeds.
    fn open_again(&mut self) -> Result<(), RunError> {
        self.state = OutputState::Moved;
        let Some(waits) = &mut self.waits else { return Ok(()) };
        let (opens, wake, life) =
            (Arc::clone(&waits.open), Arc::clone(&waits.wake), Arc::downgrade(&waits.life));
        let (name, pipeline) = (self.name.clone(), self.pipeline.clone());
        let (rules, runs, lineage) = (waits.rules.clone(), waits.runs.clone(), Arc::clone(&waits.lineage));
        let pauses = ExponentialBuilder::new()
            .with_min_delay(FIRST_PAUSE)
            .with_max_delay(LONGEST_PAUSE)
            .without_max_times()
            .build();
        let pauses = pauses.skip(waits.failures);
        waits.failures += 1;
        let (send, steps) = channel();
        let thread = start(move || {
            for pause in pauses {
                // No event says that the destination is back. The end of the run wakes this thread.
                thread::park_timeout(pause);
                if life.upgrade().is_none() {
                    return;
                }
                let (Some(rules), Some(lineage)) = (&rules, lineage.get()) else { continue };
                let attempt = opens().and_then(|sink| {
                    let mut open = Box::new(OpenOutput::new(name.clone(), sink, pipeline.clone()));
                    open.again(&runs, lineage.as_deref(), rules).map(|()| open)
                });
                match attempt {
                    Err(error) if !is_final(&error) => {
                        tracing::debug!(output = name, why = chain(&error), "the output is still behind");
                    }
                    ended => return tell(&send, CallStep::Opened(ended), &wake),
                }
            }
        })?;
        self.state = OutputState::Behind(steps, thread);
        Ok(())
    }

    fn panicked(&self) -> RunError {
        RunError::Worker(format!("what writes {} panicked", self.name))
    }
}

/// Starts a thread of an output.
fn start(work: impl FnOnce() + Send + 'static) -> Result<Thread, RunError> {
    let spawned = thread::Builder::new().name("output".to_owned()).spawn(work);
    let spawned = spawned.map_err(|error| RunError::Worker(format!("what writes an output: {error}")))?;
    Ok(spawned.thread().clone())
}

/// Sends to the committer, and wakes it.
fn tell(send: &Sender<CallStep>, what: CallStep, wake: &OnceLock<Box<dyn Fn() + Send + Sync>>) {
    // The run has ended if nobody receives.
    if send.send(what).is_ok()
        && let Some(wake) = wake.get()
    {
        wake();
    }
}

/// Whether a failure is one of what was found, which no time mends.
fn is_final(error: &RunError) -> bool {
    match error {
        RunError::Output { error: of_output, .. } => is_final(of_output),
        RunError::Sink(of_place) => of_place.kind() == io::ErrorKind::InvalidData,
        _ => true,
    }
}

impl fmt::Debug for OtherOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OtherOutput").field("name", &self.name).finish_non_exhaustive()
    }
}
