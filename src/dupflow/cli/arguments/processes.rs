//! The options for several processes of one run, and their connection.

use std::num::NonZeroUsize;
use std::path::PathBuf;

use super::problems::Problems;
use crate::config::{Deployment, Plan, ProcessConfig, fields_of};
use crate::pipeline::{ProcessGroup, held_fields};
use dupflow_core::description::{Description, FieldValue};
use dupflow_engine::dataflow::described_fields;
use dupflow_engine::processes::{self, ConnectLimits, ConnectSettings, Processes, Secret};

/// The number of processes, and which one this is.
#[derive(Clone, Debug, clap::Args)]
pub struct ProcessArgs {
    /// Number of processes of the run; start all with the same options except --process. Their connections
    /// are not encrypted, so their network must be private.
    #[arg(long, value_name = "N")]
    pub processes: Option<usize>,

    /// The number of this process, from 0. Process 0 has the output and the state.
    #[arg(long, value_name = "I")]
    pub process: Option<usize>,

    /// A file with the address host:port of each process, one per line, process 0 first.
    #[arg(long, value_name = "FILE")]
    pub hosts: Option<PathBuf>,
}

impl ProcessArgs {
    /// Whether the run has several processes.
    pub(in crate::cli) fn are_several(&self) -> bool {
        self.processes.is_some_and(|count| count > 1)
    }

    /// The processes; `Some(None)` for a run of one process.
    pub(in crate::cli) fn read(&self, problems: &mut Problems) -> Option<Option<Processes>> {
        problems.take(Processes::from_options(self.processes, self.process, self.hosts.as_deref()))
    }
}

/// What this process sends to the others when they connect.
pub(in crate::cli) fn settings(
    processes: Processes,
    plan: &Plan,
    deployment: &Deployment,
    command: &str,
) -> ConnectSettings {
    let ProcessConfig { secret, connect, lost } = &deployment.processes;
    let limits = ConnectLimits { connect: *connect, lost: *lost, ..ConnectLimits::default() };
    let secret =
        secret.as_ref().map_or_else(Secret::default, |secret| Secret::new(secret.reveal().as_bytes()));
    let description = description(plan, deployment, command);
    ConnectSettings { processes, description, secret, limits }
}

/// Connects to the other processes, which do the same.
///
/// # Errors
/// Why they cannot connect.
pub(in crate::cli) fn connect(settings: &ConnectSettings) -> anyhow::Result<ProcessGroup> {
    let processes = &settings.processes;
    tracing::info!(
        process = processes.index(),
        processes = processes.count(),
        "waiting for the other processes"
    );
    Ok(ProcessGroup::new(processes::connect(settings)?)?)
}

/// Runs `work`; if it fails, the other processes receive the error.
///
/// # Errors
/// The error of `work`.
pub(in crate::cli) fn report_failure<T>(
    together: Option<ProcessGroup>,
    work: impl FnOnce(Option<ProcessGroup>) -> anyhow::Result<T>,
) -> anyhow::Result<T> {
    let failure_sender = together.as_ref().map(ProcessGroup::failure_sender);
    work(together).inspect_err(|error| {
        failure_sender.iter().for_each(|sender| sender.fail(&format!("{error:#}")));
    })
}

/// The settings that must be equal in all processes.
fn description(plan: &Plan, deployment: &Deployment, command: &str) -> Description {
    let workers = deployment.workers.map_or(0, NonZeroUsize::get);
    let source = deployment.source.shared();
    // Each process builds its share of their operators.
    let views = deployment.views.iter().map(|view| fields_of(&view.plan)).collect::<Vec<_>>();
    plan.description()
        .and(source)
        .with("view", views.join("\n").as_str())
        .and(described_fields(&held_fields(plan, deployment)))
        .with("program.command", command)
        .with("program.version", env!("CARGO_PKG_VERSION"))
        .with("workers", FieldValue::from(workers as u64))
        .with("output.on_error", format!("{:?}", plan.on_error).to_lowercase().as_str())
        .with("dead_letter", if deployment.dead_letter.is_some() { "kept" } else { "counted" })
        .with("source.max_bad", format!("{:?}", deployment.max_bad).as_str())
        .with("source.max_unread", format!("{:?}", deployment.max_unread).as_str())
        .with("sink.evidence", if deployment.evidence { "true" } else { "false" })
        .with("sink.causes", if deployment.output.causes { "true" } else { "false" })
        .with("watch", if deployment.watch.is_some() { "a list" } else { "none" })
        .with("sink.times", if deployment.output.times { "true" } else { "false" })
        .with("source.until", format!("{:?}", deployment.audit.until).as_str())
}
