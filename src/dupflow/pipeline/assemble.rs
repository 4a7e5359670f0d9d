//! A plan and a deployment to a job: the stages of the dataflow, the source, the sink, what is kept.

use std::fs::File;
use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;

use thiserror::Error;

use super::{Continuity, Demands, Job, Together};
#[cfg(feature = "kafka")]
use crate::config::LetterPlace;
use crate::config::{
    Deployment, EmitKind, OutputFormat, Plan, SinkPlace, SourcePlace, StatePlace, TablePlace,
};
use dupflow_connectors::formats::BadRecord;
use dupflow_connectors::formats::IdRule;
#[cfg(feature = "kafka")]
use dupflow_connectors::formats::RecordShape;
use dupflow_connectors::inputs::{Files, Input};
use dupflow_connectors::intake::{BadRecords, DeadLetter, Share, Source, SourceError};
use dupflow_connectors::sinks::{
    ClusterDeltaLines, ClusterLines, CsvRows, DeferredWriter, DeltaLines, Destination, DocumentList,
    JsonLines, KeepList, LetterFile, MarkedFile, PairLines, Publication, RowKind, RowWriter, Sink,
    StandardError,
};
use dupflow_connectors::state::{self, StateError, StoredState};
use dupflow_connectors::tables::{DatabaseTable, TableOutput, TableSink};
use dupflow_core::cluster::Clusters;
use dupflow_core::run::query::QueryQueue;
use dupflow_core::run::status::Status;
use dupflow_core::time::Clock;
use dupflow_engine::dataflow::Stages;

/// Bytes of output that are gathered before they are written.
const BUFFER_BYTES: usize = 1 << 16;

/// What a job cannot be made of.
#[derive(Debug, Error)]
pub enum AssembleError {
    /// The dead letters.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// The file of dead letters.
    #[error("the dead-letter file {path:?}")]
    Letters {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// The output.
    #[error("the output file {path:?}")]
    Output {
        /// The file.
        path: PathBuf,
        /// What the system says.
        source: io::Error,
    },
    /// What was kept.
    #[error(transparent)]
    StoredState(#[from] StateError),
}

/// What a run is, beside what it computes and where.
#[derive(Debug)]
pub enum Mode {
    /// A recorded input, once: output and dead letters begin anew, nothing is kept.
    Replay,
    /// The next one of those before it.
    Run {
        /// Whether what the output holds of another pipeline is corrected.
        reconcile: bool,
    },
}

impl Job {
    /// The job of a plan at a place, alone or with other processes. Opens its files; where it is a replay,
    /// what they held is gone. `inputs` are those of the deployment, resolved.
    ///
    /// # Errors
    /// A file that cannot be opened for writing; a state that cannot be opened.
    pub fn assemble(
        plan: &Plan,
        deployment: &Deployment,
        mode: &Mode,
        inputs: Vec<Input>,
        together: Option<Together>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AssembleError> {
        let mut stages = stages(plan, deployment.evidence);
        if let Mode::Run { .. } = mode {
            stages.observers.queries = Arc::new(QueryQueue::before_live());
        }
        let (index, count) = together.as_ref().map_or((0, 1), |t| (t.index(), t.count()));
        // Another process of a run may have a monitor, which shows similarities; a replay by several has
        // none.
        let is_watched = deployment.monitor.is_some() || (count > 1 && matches!(mode, Mode::Run { .. }));
        if !deployment.emit.is_of_pairs() && !is_watched {
            stages.filter = plan.membership_filter();
        }
        let mut described = plan.description();
        if deployment.emit == EmitKind::ClusterDeltas {
            // An output holds changes of pairs or of clusters, not both.
            described = described.with("sink.emit", "cluster-deltas");
        }
        if deployment.output_format != OutputFormat::Jsonl {
            described = described.with("sink.format", deployment.output_format.name());
        }
        if deployment.output_format == OutputFormat::Csv && deployment.emit == EmitKind::Deltas {
            // One file has rows of one width.
            for (key, is_told) in [("sink.evidence", deployment.evidence), ("sink.causes", deployment.causes)]
            {
                described = if is_told { described.with(key, "true") } else { described };
            }
        }
        if matches!(deployment.sink, SinkPlace::Tables(_)) && deployment.emit == EmitKind::Deltas {
            // The table of changes holds all of them, or none.
            let (key, value) = TableOutput::WITH_DELTAS;
            described = described.with(key, value);
        }
        for (key, value) in deployment.source.description() {
            described = described.with(key, &*value);
        }
        let mut continuity = Continuity::new(&described);
        let writes = index == 0;
        let bad = match mode {
            Mode::Replay if count == 1 => {
                let dead_letter = deployment.letter_file().map(ToOwned::to_owned).map(DeadLetter::create);
                BadRecords::new(plan.on_error, dead_letter.transpose()?)
            }
            // With their epochs to the process that writes.
            _ if deployment.dead_letter.is_some() => BadRecords::with_epochs(plan.on_error),
            _ => BadRecords::new(plan.on_error, None),
        };
        if let Some(path) = deployment.letter_file().filter(|_| writes && bad.with_letters()) {
            let letters = match mode {
                Mode::Replay => LetterFile::create(path),
                Mode::Run { .. } => LetterFile::open(path),
            };
            let letters = letters.map_err(|source| AssembleError::Letters { path: path.to_owned(), source });
            continuity.letters = Some(letters?);
        }
        if let Mode::Run { reconcile } = mode {
            continuity.reconcile = *reconcile;
            if let Some(StatePlace { location, commit_every }) = deployment.state.as_ref().filter(|_| writes)
            {
                continuity.state = Some((StoredState::open(state::at(location)?)?, *commit_every));
            }
        }
        // Two clocks do not cut at the same record.
        let by_clock =
            matches!(&deployment.source, SourcePlace::Files { epoch, .. } if epoch.interval().is_some());
        let share = Share { index, count, reads_all: matches!(mode, Mode::Replay) && !by_clock };
        let cores = || thread::available_parallelism().ok();
        let workers = deployment.workers.or_else(cores).map_or(1, NonZeroUsize::get);
        let (sink, publication) =
            if writes { sink(plan, deployment, mode, &stages, &continuity.run)? } else { (nowhere(), None) };
        let status = Status::new(index, count, workers);
        status.name_bad_reasons(BadRecord::ALL.map(BadRecord::reason));
        Ok(Self {
            status: Arc::new(status),
            sink,
            demands: Demands {
                max_bad: deployment.max_bad,
                is_list: deployment.emit.is_list(),
                last_of_id: deployment.layout().ids != IdRule::Once,
            },
            publication,
            source: source(plan, deployment, inputs, share),
            stages,
            first_epoch: 1,
            continuity,
            bad: Arc::new(bad),
            workers,
            most_records: None,
            together,
            clock,
        })
    }
}

/// The stages of a plan, with all counters at zero; with or without evidence for each pair.
pub fn stages(plan: &Plan, evidence: bool) -> Stages {
    let stages = Stages::new(plan.scheme.clone(), plan.blocking(), plan.filter(), plan.expand_limit);
    Stages {
        evidence,
        retention: plan.retention,
        planned: plan.planned_sketches().unwrap_or(u64::MAX),
        ..stages
    }
}

/// What is read.
fn source(plan: &Plan, deployment: &Deployment, inputs: Vec<Input>, share: Share) -> Box<dyn Source> {
    let fields = plan.scheme.text.field_names();
    match &deployment.source {
        SourcePlace::Files { epoch, speed, follow, .. } => {
            let files = Files::new(inputs, *epoch, fields).shared(share);
            Box::new(Files { speed: *speed, follow: *follow, ..files })
        }
        #[cfg(feature = "kafka")]
        SourcePlace::Kafka { topic, start, shape, refresh } => {
            let part = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
            Box::new(dupflow_connectors::kafka::Kafka {
                connection: deployment.kafka.clone(),
                topic: topic.clone(),
                start: start.clone(),
                share: (part(share.index), part(share.count)),
                shape: Arc::new(RecordShape { needs_time: plan.retention.needs_time(), ..shape.clone() }),
                limits: deployment.commit,
                refresh: *refresh,
                as_of: Arc::default(),
                backlog: Arc::default(),
            })
        }
        #[cfg(not(feature = "kafka"))]
        SourcePlace::Kafka { .. } => unreachable!("a deployment without the feature names no topic"),
        SourcePlace::Table(table) => Box::new(DatabaseTable {
            limits: deployment.commit,
            is_here: share.index == 0,
            ..(**table).clone()
        }),
    }
}

/// The sink of a process that writes nothing, and of a run that is only asked.
pub fn nowhere() -> Box<dyn Sink + Send> {
    Box::new(DeltaLines::new(BufWriter::new(io::sink()), None))
}

/// Where the result goes, and in which form.
fn sink(
    plan: &Plan,
    deployment: &Deployment,
    mode: &Mode,
    stages: &Stages,
    run: &str,
) -> Result<(Box<dyn Sink + Send>, Option<Publication>), AssembleError> {
    let scheme = plan.scheme.clone();
    let standard_error: StandardError =
        Box::new(move |pair| scheme.standard_error(pair.similarity, pair.evidence));
    let evidence = deployment.evidence.then_some(standard_error);
    let path = match &deployment.sink {
        SinkPlace::Lines { path } => path.as_deref(),
        SinkPlace::Tables(TablePlace { address, schema, prefix, patience }) => {
            let output = TableOutput {
                address: address.clone(),
                schema: schema.clone(),
                prefix: prefix.clone(),
                deltas: deployment.emit == EmitKind::Deltas,
                causes: deployment.causes,
                patience: *patience,
                run: run.to_owned(),
            };
            let metrics = Arc::clone(&stages.observers.metrics);
            return Ok((Box::new(TableSink::new(&output, evidence, plan.clusters, metrics)), None));
        }
        #[cfg(feature = "kafka")]
        SinkPlace::Kafka { topic, progress_topic, transactional_id, transaction, envelope } => {
            let output = dupflow_connectors::kafka::KafkaOutput {
                connection: deployment.kafka.clone(),
                topic: topic.clone(),
                progress_topic: progress_topic.clone(),
                transactional_id: transactional_id.clone(),
                envelope: *envelope,
                dead_letter: match &deployment.dead_letter {
                    Some(LetterPlace::Topic(name)) => Some(name.clone()),
                    Some(LetterPlace::File(_)) | None => None,
                },
                timeout: *transaction,
                run: run.to_owned(),
            };
            let sink = match deployment.emit {
                EmitKind::ClusterDeltas => {
                    let clusters = Clusters::new(plan.clusters, plan.cluster_limit);
                    dupflow_connectors::kafka::KafkaSink::for_clusters(
                        output,
                        clusters,
                        Arc::clone(&stages.observers.metrics),
                    )
                }
                _ => {
                    dupflow_connectors::kafka::KafkaSink::new(output, evidence).with_causes(deployment.causes)
                }
            };
            return Ok((Box::new(sink), None));
        }
        #[cfg(not(feature = "kafka"))]
        SinkPlace::Kafka { .. } => unreachable!("a deployment without the feature names no topic"),
    };
    let mut publication = None;
    let mut file = || -> Result<Box<dyn Write + Send>, AssembleError> {
        let emit = deployment.emit;
        // What is written at the end is there as a whole, or not at all.
        if let Some(path) = path.filter(|path| !emit.is_of_changes() && is_file(path)) {
            let (held, published) =
                DeferredWriter::for_file(path, run).map_err(|source| output(path, source))?;
            publication = Some(published);
            return Ok(Box::new(held));
        }
        let out: Box<dyn Write + Send> = match path {
            None => Box::new(io::stdout()),
            Some(path) => Box::new(File::create(path).map_err(|source| output(path, source))?),
        };
        if !emit.is_list() {
            return Ok(out);
        }
        let (held, published) = DeferredWriter::for_stream(out);
        publication = Some(published);
        Ok(Box::new(held))
    };
    // What is written at the end, and what is written anew, keeps no marks.
    let mut stream = || Ok::<_, AssembleError>(BufWriter::with_capacity(BUFFER_BYTES, file()?));
    let mut destination = || -> Result<Box<dyn Destination + Send>, AssembleError> {
        match (mode, path.filter(|path| deployment.emit.is_of_changes() && is_file(path))) {
            (Mode::Run { .. }, Some(path)) => {
                Ok(Box::new(MarkedFile::open(path.to_owned()).map_err(|source| output(path, source))?))
            }
            _ => Ok(Box::new(stream()?)),
        }
    };
    let sink = match deployment.output_format {
        OutputFormat::Jsonl => of_rows(JsonLines(destination()?), plan, deployment, stages, evidence),
        OutputFormat::Csv => {
            of_rows(CsvRows::new(destination()?, kind(deployment)), plan, deployment, stages, evidence)
        }
        #[cfg(feature = "parquet")]
        OutputFormat::Parquet => {
            let rows = dupflow_connectors::sinks::ParquetRows::new(stream()?, kind(deployment));
            let rows = rows.map_err(|source| output(path.unwrap_or(Path::new("-")), source))?;
            of_rows(rows, plan, deployment, stages, evidence)
        }
        #[cfg(not(feature = "parquet"))]
        OutputFormat::Parquet => unreachable!("a deployment without the feature names no Parquet file"),
    };
    Ok((sink, publication))
}

/// A sink of what is emitted, in a form.
fn of_rows(
    rows: impl RowWriter + Send + 'static,
    plan: &Plan,
    deployment: &Deployment,
    stages: &Stages,
    evidence: Option<StandardError>,
) -> Box<dyn Sink + Send> {
    let clusters = Clusters::new(plan.clusters, plan.cluster_limit);
    let metrics = Arc::clone(&stages.observers.metrics);
    match deployment.emit {
        EmitKind::Deltas => Box::new(DeltaLines::with_rows(rows, evidence).with_causes(deployment.causes)),
        EmitKind::ClusterDeltas => Box::new(ClusterDeltaLines::with_rows(rows, clusters, metrics)),
        EmitKind::Pairs => Box::new(PairLines::with_rows(rows, evidence)),
        EmitKind::Keep => Box::new(KeepList::with_rows(rows, clusters, plan.keep, DocumentList::Kept)),
        EmitKind::Remove => Box::new(KeepList::with_rows(rows, clusters, plan.keep, DocumentList::Removed)),
        EmitKind::Clusters => Box::new(ClusterLines::with_rows(rows, clusters, metrics)),
    }
}

/// What its rows are.
fn kind(deployment: &Deployment) -> RowKind {
    let Deployment { evidence, causes, .. } = *deployment;
    match deployment.emit {
        EmitKind::Deltas => RowKind::Deltas { evidence, causes },
        EmitKind::ClusterDeltas => RowKind::ClusterDeltas,
        EmitKind::Pairs => RowKind::Pairs { evidence },
        EmitKind::Keep => RowKind::Kept,
        EmitKind::Remove => RowKind::Removed,
        EmitKind::Clusters => RowKind::Clusters,
    }
}

fn output(path: &Path, source: io::Error) -> AssembleError {
    AssembleError::Output { path: path.to_owned(), source }
}

/// Whether there is a plain file, or may be one: no pipe, no device.
fn is_file(path: &Path) -> bool {
    path.metadata().map_or(true, |found| found.is_file())
}
