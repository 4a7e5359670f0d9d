//! Several processes as one run: the options that say so, and how they meet.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::problems::Problems;
use crate::config::{Deployment, Plan, ProcessSettings, SourcePlace};
use crate::pipeline::Together;
use dupflow_core::description::{Description, FieldValue};
use dupflow_engine::processes::{self, ConnectLimits, ConnectSettings, Processes, Secret};

/// Which of how many processes this is.
#[derive(Clone, Debug, clap::Args)]
pub struct TogetherArgs {
    /// Processes that do the run together, started alike but for --process. What they send each other is not
    /// encrypted: their network must be private.
    #[arg(long, value_name = "N")]
    pub processes: Option<usize>,

    /// Which of them this is, from 0. Process 0 has the output and the state.
    #[arg(long, value_name = "I")]
    pub process: Option<usize>,

    /// A file with the address of each process, host:port, one a line, process 0 first.
    #[arg(long, value_name = "FILE")]
    pub hosts: Option<PathBuf>,
}

impl TogetherArgs {
    /// Whether there are others.
    pub(super) fn are_several(&self) -> bool {
        self.processes.is_some_and(|count| count > 1)
    }

    /// The processes; none if there is one only.
    pub(super) fn read(&self, problems: &mut Problems) -> Option<Option<Processes>> {
        problems.take(Processes::from_options(self.processes, self.process, self.hosts.as_deref()))
    }
}

/// What this process says to the others when they meet.
pub(super) fn settings(
    processes: Processes,
    plan: &Plan,
    deployment: &Deployment,
    command: &str,
) -> ConnectSettings {
    let ProcessSettings { secret, connect, lost } = &deployment.processes;
    let limits = ConnectLimits { connect: *connect, lost: *lost, ..ConnectLimits::default() };
    let secret =
        secret.as_ref().map_or_else(Secret::default, |secret| Secret::new(secret.reveal().as_bytes()));
    let description = description(plan, deployment, command);
    ConnectSettings { processes, description, secret, limits }
}

/// Meets the others, once they do the same.
///
/// # Errors
/// Why they do not come together.
pub(super) fn meet(settings: &ConnectSettings) -> anyhow::Result<Together> {
    let processes = &settings.processes;
    tracing::info!(
        process = processes.index(),
        processes = processes.count(),
        "waiting for the other processes"
    );
    Ok(Together::new(processes::connect(settings)?)?)
}

/// Does what is done together with the others, if there are any. They are told if it fails.
///
/// # Errors
/// Those of the work.
pub(super) fn tell_failure<T>(
    together: Option<Together>,
    work: impl FnOnce(Option<Together>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let teller = together.as_ref().map(Together::teller);
    work(together).inspect_err(|error| teller.iter().for_each(|teller| teller.fail(&format!("{error:#}"))))
}

/// What must be the same on all of them.
fn description(plan: &Plan, deployment: &Deployment, command: &str) -> Description {
    let workers = deployment.workers.map_or(0, NonZeroUsize::get);
    let source = match &deployment.source {
        SourcePlace::Files { inputs, files_from: _, layout, epoch, speed: _, follow: _ } => {
            let names = inputs.iter().map(|input| input.to_string_lossy().into_owned());
            Description::new()
                .with("source.inputs", names.collect::<Vec<_>>().join("\n").as_str())
                .with("source.layout", format!("{layout:?}").as_str())
                .with("source.epoch", epoch.to_string().as_str())
        }
        SourcePlace::Kafka { topic, shape, .. } => Description::new()
            .with("source.topic", topic.as_str())
            .with("source.shape", format!("{shape:?}").as_str()),
        SourcePlace::Table(table) => Description::new().with("source.table", format!("{table:?}").as_str()),
    };
    plan.description()
        .and(source)
        .with("program.command", command)
        .with("program.version", env!("CARGO_PKG_VERSION"))
        .with("workers", FieldValue::from(workers as u64))
        .with("output.on_error", format!("{:?}", plan.on_error).to_lowercase().as_str())
        .with("dead_letter", if deployment.dead_letter.is_some() { "kept" } else { "counted" })
        .with("source.max_bad", format!("{:?}", deployment.max_bad).as_str())
        .with("sink.evidence", if deployment.evidence { "true" } else { "false" })
        .with("sink.causes", if deployment.causes { "true" } else { "false" })
}
