//! A plan and a deployment to a job: the stages of the dataflow, the source, the sink.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use thiserror::Error;

use super::Job;
use crate::cluster::Clusters;
use crate::config::{Deployment, EmitKind, Plan};
use crate::dataflow::Stages;
use crate::metrics::Metrics;
use crate::sink::{ClusterDeltaLines, ClusterLines, DeltaLines, PairLines, Sink, StandardError};
use crate::sketch::estimate::standard_error;
use crate::source::{BadRecords, DeadLetter, Files, Input, SourceError};
use crate::time::Clock;

/// Bytes of output that are gathered before they are written.
const BUFFER_BYTES: usize = 1 << 16;

/// What a job cannot be made of.
#[derive(Debug, Error)]
pub enum AssembleError {
    /// The dead letters.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The output.
    #[error("the output file {path:?}")]
    Output {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
}

impl Job {
    /// The job of a plan at a place. Opens its files: what they held is gone. `inputs` are those of the deployment, resolved.
    ///
    /// # Errors
    /// A file that cannot be opened for writing.
    pub fn assemble(
        plan: &Plan,
        deployment: &Deployment,
        inputs: Vec<Input>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AssembleError> {
        let dead_letter = deployment.dead_letter.clone().map(DeadLetter::create).transpose()?;
        let stages = Stages::of(plan, deployment.evidence);
        let files = Files { inputs, epochs: deployment.epoch, speed: deployment.speed };
        let cores = || thread::available_parallelism().ok();
        Ok(Self {
            sink: sink(plan, deployment, &stages)?,
            stages,
            source: Box::new(files),
            first_epoch: 1,
            bad: Arc::new(BadRecords::new(plan.on_error, dead_letter)),
            workers: deployment.workers.or_else(cores).map_or(1, NonZeroUsize::get),
            clock,
        })
    }
}

impl Stages {
    /// The stages of a plan, counted from zero; with or without evidence for each pair.
    pub fn of(plan: &Plan, evidence: bool) -> Self {
        let filter = plan.filter();
        Self {
            scheme: plan.scheme.clone(),
            blocking: plan.blocking(),
            metrics: Arc::new(Metrics::new(filter.looks())),
            filter,
            expand_limit: plan.expand_limit,
            evidence,
            hot_blocks: Arc::default(),
        }
    }
}

/// Where the result goes, and in which form.
fn sink(
    plan: &Plan,
    deployment: &Deployment,
    stages: &Stages,
) -> Result<Box<dyn Sink + Send>, AssembleError> {
    let out: Box<dyn Write + Send> = match &deployment.output {
        None => Box::new(io::stdout()),
        Some(path) => {
            let file = File::create(path);
            Box::new(file.map_err(|source| AssembleError::Output { path: path.clone(), source })?)
        }
    };
    let out = BufWriter::with_capacity(BUFFER_BYTES, out);
    let (size, bits, exact) = (plan.scheme.sketch.size, plan.scheme.sketch.bits, plan.scheme.exact);
    let standard_error: StandardError = Box::new(move |pair| {
        // Copies and exact similarities are no estimates.
        let similarity = pair.similarity.get();
        if exact || pair.evidence.look == 0 { 0.0 } else { standard_error(similarity, size, bits) }
    });
    let evidence = deployment.evidence.then_some(standard_error);
    let clusters = || Clusters::new(plan.clusters, plan.cluster_limit);
    let metrics = || Arc::clone(&stages.metrics);
    Ok(match deployment.emit {
        EmitKind::Deltas => Box::new(DeltaLines::new(out, evidence)),
        EmitKind::Pairs => Box::new(PairLines::new(out, evidence)),
        EmitKind::Clusters => Box::new(ClusterLines::new(out, clusters(), metrics())),
        EmitKind::ClusterDeltas => Box::new(ClusterDeltaLines::new(out, clusters(), metrics())),
    })
}
