//! Worker threads: each builds its share of the dataflow and steps it until the input has ended, or until it
//! is cancelled.
//!
//! The workers are in one process or in several, each with as many threads. A worker's index counts all
//! threads, process by process: worker 0 is the first one of process 0. Inside a process records move between
//! threads as they are, between processes as bytes over its [`link`](crate::dataflow::workers::link)s.

use std::any::Any;
use std::fmt;
use std::net::TcpStream;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use std::thread::{self, Thread};

use parking_lot::Mutex;
use timely::communication::allocator::zero_copy::initialize::initialize_networking_from_sockets;
use timely::communication::allocator::{AllocatorBuilder, ProcessBuilder};
use timely::communication::{Hooks, WorkerGuards};
use timely::{CommunicationConfig, WorkerConfig};

use crate::dataflow::build::build;
use crate::dataflow::intake::Intake;
use crate::dataflow::output::Emit;
use crate::dataflow::shared::process::ProcessSketches;
use crate::dataflow::stages::Stages;
use crate::dataflow::workers::link::{OnLost, PeerLinks};
use dupflow_core::memory::SpillError;
use dupflow_core::time::Epoch;

/// Running worker threads.
#[must_use = "workers are waited for when they are joined"]
pub struct Workers(WorkerGuards<Result<(), WorkerError>>);

/// Why a worker ended before its input did.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum WorkerError {
    /// It panicked, with this message.
    #[error("a worker failed: {0}")]
    Panicked(String),
    /// A file of spilled rows could not be created, read or written.
    #[error("{0}")]
    Spill(String),
}

/// What connects the workers of this process to those of others.
pub struct PeerSockets {
    /// This process, from 0.
    pub index: usize,
    /// By process, a connected socket over which nothing has been sent; `None` for this process.
    pub sockets: Vec<Option<TcpStream>>,
    /// Called when another process can no longer be reached, or sends what cannot be decoded. The workers
    /// continue, but close no epoch in which that process has a share. The callback should cancel them.
    pub lost: OnLost,
}

/// Stops the workers of a run before their input ends. They drop their dataflow as it is: no open epoch
/// closes, and `Emit::ended` is not called. Other processes see that this one is lost.
#[derive(Default)]
pub struct Cancellation {
    cancelled: AtomicBool,
    workers: Mutex<Vec<Thread>>,
    /// The links, while a thread reads or writes them.
    links: Mutex<Weak<PeerLinks>>,
    /// Receives the failure of a worker.
    failed: Mutex<Option<OnFailure>>,
}

/// Receives why a worker failed, on its thread.
type OnFailure = Box<dyn Fn(WorkerError) + Send>;

impl Cancellation {
    /// Sets what receives the failure of each worker, before the worker has ended: whoever waits for
    /// something else than the workers learns of it. It must not wait for them.
    pub fn on_failure(&self, failed: impl Fn(WorkerError) + Send + 'static) {
        *self.failed.lock() = Some(Box::new(failed));
    }

    /// Stops the workers since one of them has failed.
    fn fail(&self, error: &WorkerError) {
        self.cancel();
        if let Some(failed) = &*self.failed.lock() {
            failed(error.clone());
        }
    }

    /// Stops the workers after their current step.
    pub fn cancel(&self) {
        self.cancelled.store(true, Ordering::SeqCst);
        // Muted first: records that a worker sends from here on may follow from capabilities that were
        // dropped.
        let links = self.links.lock().upgrade();
        links.iter().for_each(|links| links.stop_sending());
        self.workers.lock().iter().for_each(Thread::unpark);
    }

    /// Sets the links of the workers.
    fn attach(&self, links: &Arc<PeerLinks>) {
        *self.links.lock() = Arc::downgrade(links);
        if self.is_cancelled() {
            links.stop_sending();
        }
    }

    /// Whether [`cancel`](Self::cancel) has been called.
    pub fn is_cancelled(&self) -> bool {
        self.cancelled.load(Ordering::SeqCst)
    }

    /// Adds the current thread, a worker. Called before it first checks [`is_cancelled`](Self::is_cancelled),
    /// so that a later cancellation unparks it.
    fn register(&self) {
        self.workers.lock().push(thread::current());
    }
}

impl Workers {
    /// Starts `count` threads, 1 or more, at epoch `first`. `parts` makes the ends of the dataflow for each
    /// worker, by its index from 0. A worker that panics cancels the others, which would otherwise wait for
    /// it forever.
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
        let (builders, _) = communication.try_build()?;
        Self::execute(builders, Box::new(()), None, stages, first, cancellation, parts)
    }

    /// As [`Self::start`], together with the workers of other processes, which have as many threads each and
    /// start at the same epoch.
    ///
    /// # Errors
    /// If threads cannot be started, or sockets cannot be used.
    pub fn start_with(
        data: PeerSockets,
        stages: &Stages,
        first: Epoch,
        count: usize,
        cancellation: &Arc<Cancellation>,
        parts: impl Fn(usize) -> (Box<dyn Intake>, Box<dyn Emit>) + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let PeerSockets { index, sockets, lost } = data;
        let links = PeerLinks::new(index, count, &sockets, lost).map_err(|error| error.to_string())?;
        let hooks = Hooks::default();
        let inside = ProcessBuilder::new_typed_vector(count, hooks.refill.clone(), None);
        let (builders, threads) =
            initialize_networking_from_sockets(inside, links.over(sockets), index, count, hooks)
                .map_err(|error| error.to_string())?;
        let builders = builders.into_iter().map(AllocatorBuilder::Tcp).collect();
        cancellation.attach(&links);
        Self::execute(builders, Box::new(threads), Some(links), stages, first, cancellation, parts)
    }

    fn execute(
        builders: Vec<AllocatorBuilder>,
        threads: Box<dyn Any + Send>,
        links: Option<Arc<PeerLinks>>,
        stages: &Stages,
        first: Epoch,
        cancellation: &Arc<Cancellation>,
        parts: impl Fn(usize) -> (Box<dyn Intake>, Box<dyn Emit>) + Send + Sync + 'static,
    ) -> Result<Self, String> {
        let (mut stages, cancellation) = (stages.clone(), Arc::clone(cancellation));
        stages.observers.sketches = Arc::new(ProcessSketches::new(builders.len()));
        let work = move |worker: &mut timely::worker::Worker| {
            cancellation.register();
            let worked = catch_unwind(AssertUnwindSafe(|| {
                let (intake, emit) = parts(worker.index());
                worker.dataflow(|scope| build(scope, &stages, first, intake, emit));
                // Every new piece of work unparks the worker: records of its peers, its intake, its output.
                while !cancellation.is_cancelled() && worker.step_or_park(None) {}
            }));
            let worked = worked.map_err(|panic| failure(&*panic));
            if let Err(error) = &worked {
                cancellation.fail(error);
            }
            // The rest of a dataflow is never stepped again: its capabilities are dropped without a progress
            // message to other workers.
            for dataflow in worker.installed_dataflows() {
                worker.drop_dataflow(dataflow);
            }
            links.iter().for_each(|links| links.leave());
            worked
        };
        timely::execute::execute_from(builders, threads, WorkerConfig::default(), work).map(Self)
    }

    /// Waits for all workers to end.
    ///
    /// # Errors
    /// The failure of the first worker that failed.
    pub fn join(self) -> Result<(), WorkerError> {
        self.0.join().into_iter().try_for_each(|worker| worker.map_err(WorkerError::Panicked)?)
    }
}

/// Why a worker unwound.
fn failure(panic: &(dyn Any + Send)) -> WorkerError {
    match panic.downcast_ref::<SpillError>() {
        Some(error) => WorkerError::Spill(error.to_string()),
        None => WorkerError::Panicked(message(panic)),
    }
}

/// The message of a panic.
fn message(panic: &(dyn Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("it panicked").to_owned()
}

impl fmt::Debug for Workers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Workers").finish_non_exhaustive()
    }
}

impl fmt::Debug for Cancellation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Cancellation").field("cancelled", &self.cancelled).finish_non_exhaustive()
    }
}

impl fmt::Debug for PeerSockets {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("PeerSockets")
            .field("index", &self.index)
            .field("sockets", &self.sockets)
            .finish_non_exhaustive()
    }
}
