//! Worker threads: each builds its share of the dataflow and steps it until the input has ended.

use timely::communication::WorkerGuards;
use timely::{CommunicationConfig, Config, WorkerConfig};

use super::{Emit, Intake, Stages, build};

/// Workers at work.
#[must_use = "workers are waited for when they are joined"]
pub struct Workers(WorkerGuards<()>);

impl Workers {
    /// Starts `count` threads, 1 or more. `parts` makes the ends of the dataflow for each worker, by its index from 0.
    ///
    /// # Errors
    /// If threads cannot be started.
    pub fn start(
        stages: &Stages,
        count: usize,
        parts: impl Fn(usize) -> (Box<dyn Intake>, Box<dyn Emit>) + Send + Sync + 'static,
    ) -> Result<Self, String> {
        // Records move between threads as they are; only between processes would they be serialized.
        let communication =
            if count == 1 { CommunicationConfig::Thread } else { CommunicationConfig::Process(count) };
        let stages = stages.clone();
        let work = move |worker: &mut timely::worker::Worker| {
            let _end = EndWithWorker;
            let (intake, emit) = parts(worker.index());
            worker.dataflow(|scope| build(scope, &stages, intake, emit));
            // Whatever there is to do wakes the worker: records of its peers, its intake, its output.
            while worker.step_or_park(None) {}
        };
        timely::execute(Config { communication, worker: WorkerConfig::default() }, work).map(Self)
    }

    /// Waits for all workers to end.
    ///
    /// # Errors
    /// If one failed.
    pub fn join(self) -> Result<(), String> {
        self.0.join().into_iter().collect()
    }
}

/// A worker that panics ends the process: its peers would wait for it for ever, and a broken promise must not go on.
struct EndWithWorker;

impl Drop for EndWithWorker {
    fn drop(&mut self) {
        if std::thread::panicking() {
            std::process::exit(1);
        }
    }
}

impl std::fmt::Debug for Workers {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Workers").finish_non_exhaustive()
    }
}
