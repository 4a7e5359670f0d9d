//! The sink of a deployment, and the step that publishes its output.

use std::io::{self, BufWriter, Write};
use std::num::NonZeroUsize;
use std::path::Path;
use std::sync::Arc;

use super::error::AssembleError;
use super::mode::Mode;
#[cfg(feature = "kafka")]
use crate::config::DeadLetterConfig;
use crate::config::{
    AuditConfig, Deployment, DocumentsConfig, EmitKind, FilterPlan, Plan, SinkConfig, TablesConfig,
};
use crate::pipeline::error::RunError;
use crate::pipeline::outcome::{EndOutput, RejectedOutput};
use crate::pipeline::outputs::OpenSink;
use crate::pipeline::provenance::ProvenanceRecorder;
use crate::pipeline::run::nowhere;
use dupflow_connectors::inputs::{Input, RecordIndex};
use dupflow_connectors::owned::OwnedFile;
use dupflow_connectors::rewrite::{
    CopySettings, CopyTarget, DocumentsCopy, SelectionSink, SelectionSlot, UnitCutSink,
};
use dupflow_connectors::sinks::{
    BookMetrics, ClusterDeltaLines, ClusterLines, Decision, DecisionRows, DeferredWriter, DeltaLines,
    Destination, DocumentList, ItemCountsSlot, ItemOutput, ItemRules, ItemSink, KeepList, ListCountsSlot,
    MarkedFile, PairLines, PairStyle, Publication, RemovalRule, RowKind, RowWriter, Sink, StandardError,
    UnitList, WithProvenance,
};
use dupflow_connectors::tables::{TableOutput, TableSink};
use dupflow_core::cluster::Clusters;
use dupflow_core::text::measures::Measure;
use dupflow_engine::dataflow::Stages;

/// Size of the output buffer, in bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// A sink and, if its output appears only at the end, the step that publishes it.
type Assembled = (Box<dyn Sink + Send>, Option<EndOutput>);

/// What a sink is made of.
#[derive(Clone, Copy)]
pub(super) struct SinkParts<'a> {
    pub(super) plan: &'a Plan,
    pub(super) deployment: &'a Deployment,
    pub(super) mode: &'a Mode,
    pub(super) stages: &'a Stages,
    /// The name of the run.
    pub(super) run: &'a str,
    /// The provenance that is written into the output.
    pub(super) provenance: Option<&'a ProvenanceRecorder>,
    /// The inputs, and the index that is filled while they are read.
    pub(super) inputs: (&'a [Input], &'a Arc<RecordIndex>),
    /// Where the counts of items are left, if items of a reference are what is found.
    pub(super) items: Option<&'a ItemCountsSlot>,
    /// Where the counts of lists are left.
    pub(super) listed: &'a ListCountsSlot,
    /// Where clusters and decisions are counted.
    pub(super) counted: &'a BookMetrics,
}

impl SinkParts<'_> {
    /// The sink of the deployment.
    pub(super) fn sink(self) -> Result<Assembled, AssembleError> {
        let (sink, output) = self.plain_sink()?;
        let is_list = self.deployment.emit.is_list();
        let output = output.map(|output| match is_list {
            true => EndOutput::Listed(Box::new(output), Arc::clone(self.listed)),
            false => output,
        });
        let Some(slot) = self.items else { return Ok((sink, output)) };
        let sink = match self.deployment.emit {
            EmitKind::Items => sink,
            EmitKind::Pairs => self.item_sink(ItemOutput::Pairs(sink), slot),
            _ => self.item_sink(ItemOutput::Pages(sink), slot),
        };
        Ok((sink, Some(EndOutput::WithItems(output.map(Box::new), Arc::clone(slot)))))
    }

    /// What opens the sink of the deployment again, which writes changes.
    pub(super) fn opener(self) -> OpenSink {
        let (plan, deployment, mode) = (self.plan.clone(), self.deployment.clone(), *self.mode);
        let (stages, run, counted) = (self.stages.clone(), self.run.to_owned(), self.counted.clone());
        let (provenance, places) = (self.provenance.cloned(), Arc::clone(self.inputs.1));
        Arc::new(move || {
            let parts = SinkParts {
                plan: &plan,
                deployment: &deployment,
                mode: &mode,
                stages: &stages,
                run: &run,
                provenance: provenance.as_ref(),
                inputs: (&[], &places),
                items: None,
                listed: &ListCountsSlot::default(),
                counted: &counted,
            };
            match parts.plain_sink() {
                Ok((sink, _)) => Ok(sink),
                Err(AssembleError::Output { source, .. }) => Err(RunError::Sink(source)),
                Err(error) => Err(RunError::Sink(io::Error::other(error))),
            }
        })
    }

    /// A sink that finds items, before another or before rows.
    fn item_sink(self, output: ItemOutput, slot: &ItemCountsSlot) -> Box<dyn Sink + Send> {
        let FilterPlan::Containment(_, filter) = &self.plan.filter else {
            unreachable!("items are found by containment")
        };
        let places = Arc::clone(self.inputs.1);
        let input = move |record| places.input_name(record).map_or_else(String::new, |name| name.to_string());
        let benchmark = self.deployment.benchmark.as_deref();
        let rules = ItemRules {
            least_words: filter.least_words(),
            shingle: self.plan.scheme.text.shingle,
            limit: self.plan.item_limit,
            field: benchmark.and_then(|name| self.stages.fields.place(name)),
            input: Box::new(input),
        };
        Box::new(ItemSink::new(rules, output, Arc::clone(slot)))
    }

    /// The sink of the deployment, of all pairs.
    fn plain_sink(self) -> Result<Assembled, AssembleError> {
        match &self.deployment.sink {
            SinkConfig::Lines { path, mark } => self.file_sink(path.as_deref(), mark.as_deref()),
            SinkConfig::Tables(tables) => Ok((self.table_sink(tables), None)),
            #[cfg(feature = "kafka")]
            SinkConfig::Kafka { .. } => Ok((self.topic_sink(), None)),
            #[cfg(not(feature = "kafka"))]
            SinkConfig::Kafka { .. } => unreachable!("a deployment without the feature names no topic"),
        }
    }

    /// How the standard error of a pair is computed; `None` if pairs are written without evidence.
    fn evidence(self) -> Option<StandardError> {
        let scheme = self.plan.scheme.clone();
        let standard_error: StandardError =
            Box::new(move |pair| scheme.standard_error(pair.similarity, pair.evidence));
        self.deployment.evidence.then_some(standard_error)
    }

    /// What is written of a pair.
    fn style(self) -> PairStyle {
        let shares = self.plan.scheme.measure() == Measure::Containment;
        PairStyle { shares, sides: self.deployment.has_reference() }
    }

    fn clusters(self) -> Clusters {
        Clusters::new(self.plan.clusters, self.plan.cluster_limit)
    }

    /// What lists of documents remove.
    fn removal(self) -> RemovalRule {
        match self.plan.remove_if {
            Some(least) => RemovalRule::Contained(least),
            None => RemovalRule::Clusters(Box::new(self.clusters()), self.plan.keep.clone()),
        }
    }

    fn table_sink(self, tables: &TablesConfig) -> Box<dyn Sink + Send> {
        let TablesConfig { address, schema, prefix, patience } = tables;
        let output = TableOutput {
            address: address.clone(),
            schema: schema.clone(),
            prefix: prefix.clone(),
            deltas: self.deployment.emit == EmitKind::Deltas,
            decisions: Some(self.deployment.decisions)
                .filter(|_| self.deployment.emit == EmitKind::Decisions),
            causes: self.deployment.causes,
            shares: self.style().shares,
            patience: *patience,
            run: self.run.to_owned(),
            anew: self.mode.begins_anew(self.deployment),
        };
        Box::new(TableSink::new(&output, self.evidence(), self.plan.clusters, self.counted.clone()))
    }

    #[cfg(feature = "kafka")]
    fn topic_sink(self) -> Box<dyn Sink + Send> {
        use dupflow_connectors::kafka::{KafkaOutput, KafkaSink};

        let SinkConfig::Kafka { topic, progress_topic, transactional_id, transaction, envelope } =
            &self.deployment.sink
        else {
            unreachable!("the caller has matched a topic")
        };
        let output = KafkaOutput {
            connection: self.deployment.kafka.clone(),
            topic: topic.clone(),
            progress_topic: progress_topic.clone(),
            transactional_id: transactional_id.clone(),
            envelope: *envelope,
            dead_letter: match &self.deployment.dead_letter {
                Some(DeadLetterConfig::Topic(name)) => Some(name.clone()),
                Some(DeadLetterConfig::File(_)) | None => None,
            },
            timeout: *transaction,
            refresh: self.deployment.source.topic_refresh(),
            run: self.run.to_owned(),
        };
        let sink = match self.deployment.emit {
            EmitKind::ClusterDeltas => {
                KafkaSink::for_clusters(output, self.clusters(), Arc::clone(&self.counted.clusters))
            }
            EmitKind::Decisions => {
                let metrics = Arc::clone(&self.counted.decisions);
                KafkaSink::for_decisions(output, self.deployment.decisions, self.clusters(), metrics)
            }
            _ => KafkaSink::new(output, self.evidence())
                .with_style(self.style())
                .with_causes(self.deployment.causes),
        };
        Box::new(sink.with_times(self.deployment.audit.times))
    }

    /// A file, or standard output. An output that is written at the end, or by a replay, has no mark.
    fn file_sink(self, path: Option<&Path>, mark: Option<&Path>) -> Result<Assembled, AssembleError> {
        if let EmitKind::Rejected(most) = self.deployment.emit {
            return self.rejected(path, most);
        }
        if let Some(listed) = self.deployment.emit.copied() {
            return self.documents(path, listed);
        }
        let mut publication = None;
        let mut stream = || {
            let (file, published) = self.file(path)?;
            publication = published;
            Ok::<_, AssembleError>(BufWriter::with_capacity(BUFFER_BYTES, file))
        };
        let emit = self.deployment.emit;
        let mut destination = || -> Result<Box<dyn Destination + Send>, AssembleError> {
            match path.filter(|path| emit.is_of_changes() && is_file(path)) {
                Some(path) if self.mode.continues(self.deployment) => {
                    let file = match mark {
                        Some(mark) => MarkedFile::open_with(path, mark),
                        None => MarkedFile::open(path),
                    };
                    Ok(Box::new(file.map_err(|source| output(path, source))?))
                }
                _ => Ok(Box::new(stream()?)),
            }
        };
        let rows = self.rows(destination()?, path)?;
        Ok((self.row_sink(rows), publication.map(EndOutput::Held)))
    }

    /// The output of a sample of rejected candidates. The deltas of the run are written nowhere.
    fn rejected(self, path: Option<&Path>, most: NonZeroUsize) -> Result<Assembled, AssembleError> {
        let (file, publication) = self.file(path)?;
        let publication = publication.expect("what is written at the end is held back");
        let rows = self.rows(Box::new(BufWriter::with_capacity(BUFFER_BYTES, file)), path)?;
        let rejected = RejectedOutput { most, threshold: self.plan.threshold, rows, publication };
        Ok((nowhere(), Some(EndOutput::Rejected(rejected))))
    }

    /// The output of records of documents, which are read once more after the run.
    fn documents(self, path: Option<&Path>, listed: DocumentList) -> Result<Assembled, AssembleError> {
        let DocumentsConfig { mark, shard_bytes, resume } = self.deployment.documents.clone();
        let failed = |source| output(path.unwrap_or(Path::new("-")), source);
        let target = CopyTarget::new(path, shard_bytes).map_err(|what| failed(io::Error::other(what)))?;
        let slot = SelectionSlot::default();
        let is_marked = mark.is_some();
        let keep = self.plan.keep.clone();
        let sink: Box<dyn Sink + Send> = if self.plan.scheme.units.is_some() {
            let sink = UnitCutSink::new(self.clusters(), keep, &self.stages.fields, Arc::clone(&slot));
            Box::new(sink.with_counts(Arc::clone(self.listed)))
        } else {
            let sink = SelectionSink::new(self.removal(), listed, is_marked, Arc::clone(&slot))
                .with_counts(Arc::clone(self.listed));
            Box::new(sink.with_fields(&self.stages.fields).with_reference(self.deployment.has_reference()))
        };
        let inputs = self.inputs.0.get(self.deployment.against..).unwrap_or_default().to_vec();
        let places = Arc::clone(self.inputs.1);
        let settings = CopySettings { resume, mark, of_units: self.plan.scheme.units.is_some(), target };
        let copy = DocumentsCopy::new(settings, inputs, places, slot, self.run).map_err(failed)?;
        Ok((sink, Some(EndOutput::Documents(Box::new(copy)))))
    }

    /// Rows in the format of the deployment, with their provenance if it is wanted.
    fn rows(
        self,
        to: Box<dyn Destination + Send>,
        path: Option<&Path>,
    ) -> Result<Box<dyn RowWriter + Send>, AssembleError> {
        let open =
            self.deployment.output_format.open.expect("a format that this build lacks is refused before");
        let rows =
            open(to, self.row_kind()).map_err(|source| output(path.unwrap_or(Path::new("-")), source))?;
        Ok(match self.provenance {
            None => rows,
            Some(provenance) => Box::new(WithProvenance::new(rows, Box::new(provenance.clone()))),
        })
    }

    /// The file to write. An output that is written at the end appears complete or not at all.
    fn file(
        self,
        path: Option<&Path>,
    ) -> Result<(Box<dyn Write + Send>, Option<Publication>), AssembleError> {
        let emit = self.deployment.emit;
        if let Some(path) = path.filter(|path| !emit.is_of_changes() && is_file(path)) {
            // Processes of one replay use one name, so that what a killed one left is replaced.
            let run = self.deployment.documents.resume.as_ref().map_or(self.run, |resume| &*resume.name);
            let (held, published) =
                DeferredWriter::for_file(path, run).map_err(|source| output(path, source))?;
            return Ok((Box::new(held), Some(published)));
        }
        let out: Box<dyn Write + Send> = match path {
            None => Box::new(io::stdout()),
            Some(path) => Box::new(OwnedFile::create(path).map_err(|source| output(path, source))?),
        };
        if !emit.is_list() && !matches!(emit, EmitKind::Rejected(_) | EmitKind::Items) {
            return Ok((out, None));
        }
        let (held, published) = DeferredWriter::for_stream(out);
        Ok((Box::new(held), Some(published)))
    }

    /// The sink for the kind of result that the deployment emits, over rows in one format.
    fn row_sink(self, rows: Box<dyn RowWriter + Send>) -> Box<dyn Sink + Send> {
        let (clusters, times) = (self.clusters(), self.deployment.audit.times);
        let metrics = Arc::clone(&self.counted.clusters);
        match self.deployment.emit {
            EmitKind::Remove if self.plan.scheme.units.is_some() => {
                let units = UnitList::with_rows(rows, clusters, self.plan.keep.clone(), &self.stages.fields);
                Box::new(units.with_counts(Arc::clone(self.listed)))
            }
            EmitKind::Deltas => {
                let sink = DeltaLines::with_rows(rows, self.evidence()).with_style(self.style());
                Box::new(sink.with_causes(self.deployment.causes).with_times(times))
            }
            EmitKind::ClusterDeltas => {
                Box::new(ClusterDeltaLines::with_rows(rows, clusters, metrics).with_times(times))
            }
            EmitKind::Pairs => Box::new(PairLines::with_rows(rows, self.evidence()).with_style(self.style())),
            EmitKind::Keep | EmitKind::Remove => {
                let is_kept = self.deployment.emit == EmitKind::Keep;
                let listed = if is_kept { DocumentList::Kept } else { DocumentList::Removed };
                let list = KeepList::with_rows(rows, self.removal(), listed)
                    .with_counts(Arc::clone(self.listed))
                    .with_fields(&self.stages.fields);
                Box::new(list.with_reference(self.deployment.has_reference()))
            }
            EmitKind::Items => {
                let slot = self.items.expect("this is checked before a job is assembled");
                self.item_sink(ItemOutput::Items(rows), slot)
            }
            EmitKind::Clusters => Box::new(ClusterLines::with_rows(rows, clusters, metrics)),
            EmitKind::Decisions => {
                let counted = Arc::clone(&self.counted.decisions);
                Box::new(DecisionRows::with_rows(rows, self.deployment.decisions, clusters, counted))
            }
            EmitKind::Rejected(_) | EmitKind::Documents | EmitKind::RemovedDocuments => {
                unreachable!("they are written after the sink has ended")
            }
        }
    }

    /// The kind of the rows, which decides their columns.
    fn row_kind(self) -> RowKind {
        let Deployment { evidence, causes, audit: AuditConfig { times, .. }, .. } = *self.deployment;
        let style = self.style();
        match self.deployment.emit {
            EmitKind::Deltas => RowKind::Deltas { style, evidence, causes, times },
            EmitKind::ClusterDeltas => RowKind::ClusterDeltas { times },
            EmitKind::Pairs => RowKind::Pairs { style, evidence },
            EmitKind::Keep => RowKind::Kept,
            EmitKind::Remove if self.plan.scheme.units.is_some() => RowKind::RemovedUnits,
            EmitKind::Remove => RowKind::Removed { old: style.sides },
            EmitKind::Clusters => RowKind::Clusters,
            EmitKind::Decisions => RowKind::Records(&Decision::COLUMNS),
            EmitKind::Rejected(_) => RowKind::Rejected,
            EmitKind::Items => RowKind::Items,
            EmitKind::Documents | EmitKind::RemovedDocuments => {
                unreachable!("records have their own columns")
            }
        }
    }
}

fn output(path: &Path, source: io::Error) -> AssembleError {
    AssembleError::Output { path: path.to_owned(), source }
}

/// Whether `path` is a regular file or does not exist yet; false for a pipe or a device.
fn is_file(path: &Path) -> bool {
    path.metadata().map_or(true, |found| found.is_file())
}
