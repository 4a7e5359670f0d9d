//! Worker threads: each builds its share of the dataflow and steps it until the input has ended, or until it is cancelled.

use std::any::Any;
use std::fmt;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread::{self, Thread};

use timely::communication::WorkerGuards;
use timely::{CommunicationConfig, Config, WorkerConfig};

use super::{Emit, Intake, Stages, build};
use crate::time::Epoch;

/// Workers at work.
#[must_use = "workers are waited for when they are joined"]
pub struct Workers(WorkerGuards<Result<(), String>>);

/// Ends the workers of a run before their input does. They drop their dataflow as it is: no epoch closes that was open, and
/// nobody is told that the input has ended.
#[derive(Debug, Default)]
pub struct Cancellation {
    cancelled: AtomicBool,
    workers: Mutex<Vec<Thread>>,
}

impl Cancellation {
    /// Ends them, after the step that they are in.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).iter().for_each(Thread::unpark);
    }

    /// Whether they have been told to end.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// The current thread is a worker. Called before it first asks whether it is cancelled, so that it is told.
    fn register(&self) {
        self.workers.lock().unwrap_or_else(PoisonError::into_inner).push(thread::current());
    }
}

impl Workers {
    /// Starts `count` threads, 1 or more, at epoch `first`. `parts` makes the ends of the dataflow for each worker, by its index
    /// from 0. A worker that panics cancels the others, who would wait for it for ever.
    ///
    /// # Errors
    /// If threads cannot be started.
    pub fn start(
        stages: &Stages,
        first: Epoch,
        count: usize,
        cancellation: &Arc<Cancellation>,
        parts: impl Fn(usize) -> (Box<dyn Intake>, Box<dyn Emit>) + Send + Sync + 'static,
    ) -> Result<Self, String> {
        // Records move between threads as they are; only between processes would they be serialized.
        let communication =
            if count == 1 { CommunicationConfig::Thread } else { CommunicationConfig::Process(count) };
        let (stages, cancellation) = (stages.clone(), Arc::clone(cancellation));
        let work = move |worker: &mut timely::worker::Worker| {
            cancellation.register();
            let worked = catch_unwind(AssertUnwindSafe(|| {
                let (intake, emit) = parts(worker.index());
                worker.dataflow(|scope| build(scope, &stages, first, intake, emit));
                // Whatever there is to do wakes the worker: records of its peers, its intake, its output.
                while !cancellation.is_cancelled() && worker.step_or_park(None) {}
            }));
            if worked.is_err() {
                cancellation.cancel();
            }
            // What is left of a dataflow is never stepped again: its capabilities go without anybody hearing of it.
            for dataflow in worker.installed_dataflows() {
                worker.drop_dataflow(dataflow);
            }
            worked.map_err(|panic| message(&*panic))
        };
        timely::execute(Config { communication, worker: WorkerConfig::default() }, work).map(Self)
    }

    /// Waits for all workers to end.
    ///
    /// # Errors
    /// What the first one that failed panicked with.
    pub fn join(self) -> Result<(), String> {
        self.0.join().into_iter().try_for_each(|worker| worker?)
    }
}

/// What a panic says.
fn message(panic: &(dyn Any + Send)) -> String {
    let said = panic.downcast_ref::<String>().map(String::as_str);
    said.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").finish_non_exhaustive()
    }
}
