//! The sink of an output, and the step that publishes it.

use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::error::AssembleError;
use super::mode::Mode;
use crate::config::{
    DeadLetterConfig, Deployment, DocumentsConfig, FilePlace, FilterPlan, OutputAnswer, OutputFormat,
    OutputSettings, Plan,
};
use crate::pipeline::error::RunError;
use crate::pipeline::outcome::{EndOutput, RejectedOutput};
use crate::pipeline::outputs::OpenSink;
use crate::pipeline::provenance::ProvenanceRecorder;
use crate::pipeline::run::nowhere;
use dupflow_connectors::inputs::{Input, RecordIndex};
use dupflow_connectors::kafka::broker::Connection;
use dupflow_connectors::rewrite::{
    CopySettings, CopyTarget, DocumentsCopy, SelectionSink, SelectionSlot, UnitCutSink,
};
use dupflow_connectors::sinks::answers::{AnswerSettings, Written};
use dupflow_connectors::sinks::{
    BookMetrics, DecisionMode, DocumentList, ItemCountsSlot, ItemOutput, ItemRules, ItemSink, ListCountsSlot,
    OutputProvenance, PairStyle, RemovalRule, Sink, StandardError,
};
use dupflow_core::cluster::{ClusterKind, Clusters, KeepRule};
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::text::measures::Measure;
use dupflow_engine::dataflow::Stages;

/// A sink and, if its output appears only at the end, the step that publishes it.
type Assembled = (Box<dyn Sink + Send>, Option<EndOutput>);

/// What a sink is made of.
#[derive(Clone, Copy)]
pub(super) struct SinkParts<'a> {
    pub(super) plan: &'a Plan,
    /// Its output is the one of the sink.
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
        let answer = self.answer();
        let output = output.map(|output| match answer.is_list() {
            true => EndOutput::Listed(Box::new(output), Arc::clone(self.listed)),
            false => output,
        });
        let Some(slot) = self.items else { return Ok((sink, output)) };
        let sink = if answer.is_of_items() {
            sink
        } else if answer.is_of_pairs() {
            self.items(ItemOutput::Pairs(sink))
        } else {
            self.items(ItemOutput::Pages(sink))
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

    /// The sink of the deployment, of all pairs.
    fn plain_sink(self) -> Result<Assembled, AssembleError> {
        let place = &self.deployment.output.place;
        match self.answer().written {
            Written::Copied(listed) => self.documents(listed),
            Written::Survey => self.survey(),
            Written::Changes(_) | Written::AtEnd(_) => {
                let (sink, published) = place.open(&self)?;
                Ok((sink, published.map(EndOutput::Held)))
            }
        }
    }

    /// The file of what is written after the run.
    fn file(self) -> FilePlace {
        // Other places are refused.
        self.deployment.output.place.as_a::<FilePlace>().cloned().unwrap_or_default()
    }

    /// The output of a sample of rejected candidates. The deltas of the run are written nowhere.
    fn survey(self) -> Result<Assembled, AssembleError> {
        let (rows, publication) = self.file().rows(&self)?;
        let publication = publication.expect("what is written at the end is held back");
        let most = self.answer().size().expect("a sample has a size");
        let rejected = RejectedOutput { most, threshold: self.plan.threshold, rows, publication };
        Ok((nowhere(), Some(EndOutput::Rejected(rejected))))
    }

    /// The output of records of documents, which are read once more after the run.
    fn documents(self, listed: DocumentList) -> Result<Assembled, AssembleError> {
        let DocumentsConfig { mark, shard_bytes, resume } = self.deployment.documents.clone();
        let FilePlace { path, .. } = self.file();
        let failed = |source| AssembleError::from((path.clone().unwrap_or_else(|| "-".into()), source));
        let target =
            CopyTarget::new(path.as_deref(), shard_bytes).map_err(|what| failed(io::Error::other(what)))?;
        let slot = SelectionSlot::default();
        let sink: Box<dyn Sink + Send> = if self.has_units() {
            let sink = UnitCutSink::new(self.clusters(), self.keep(), self.fields(), Arc::clone(&slot));
            Box::new(sink.with_counts(self.listed()))
        } else {
            let sink = SelectionSink::new(self.removal(), listed, mark.is_some(), Arc::clone(&slot))
                .with_counts(self.listed());
            Box::new(sink.with_fields(self.fields()).with_reference(self.deployment.has_reference()))
        };
        let inputs = self.inputs.0.get(self.deployment.against..).unwrap_or_default().to_vec();
        let places = Arc::clone(self.inputs.1);
        let settings = CopySettings { resume, mark, of_units: self.has_units(), target };
        let copy = DocumentsCopy::new(settings, inputs, places, slot, self.run).map_err(failed)?;
        Ok((sink, Some(EndOutput::Documents(Box::new(copy)))))
    }
}

impl AnswerSettings for SinkParts<'_> {
    fn evidence(&self) -> Option<StandardError> {
        let scheme = self.plan.scheme.clone();
        let standard_error: StandardError =
            Box::new(move |pair| scheme.standard_error(pair.similarity, pair.evidence));
        self.deployment.evidence.then_some(standard_error)
    }

    fn style(&self) -> PairStyle {
        let shares = self.plan.scheme.measure() == Measure::Containment;
        PairStyle { shares, sides: self.deployment.has_reference() }
    }

    fn has_causes(&self) -> bool {
        self.deployment.output.causes
    }

    fn has_times(&self) -> bool {
        self.deployment.output.times
    }

    fn decisions(&self) -> DecisionMode {
        self.deployment.output.decisions
    }

    fn clusters(&self) -> Clusters {
        Clusters::new(self.plan.clusters, self.plan.cluster_limit)
    }

    fn removal(&self) -> RemovalRule {
        match self.plan.remove_if {
            Some(least) => RemovalRule::Contained(least),
            None => RemovalRule::Clusters(Box::new(self.clusters()), self.keep()),
        }
    }

    fn keep(&self) -> KeepRule {
        self.plan.keep.clone()
    }

    fn fields(&self) -> &FieldRules {
        &self.stages.fields
    }

    fn has_units(&self) -> bool {
        self.plan.scheme.units.is_some()
    }

    fn counted(&self) -> BookMetrics {
        self.counted.clone()
    }

    fn listed(&self) -> ListCountsSlot {
        Arc::clone(self.listed)
    }

    fn items(&self, output: ItemOutput) -> Box<dyn Sink + Send> {
        let FilterPlan::Containment(_, filter) = &self.plan.filter else {
            unreachable!("items are found by containment")
        };
        let slot = self.items.expect("this is checked before a job is assembled");
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
}

impl OutputSettings for SinkParts<'_> {
    fn answer(&self) -> OutputAnswer {
        self.deployment.output.answer
    }

    fn format(&self) -> OutputFormat {
        self.deployment.output.format
    }

    fn provenance(&self) -> Option<Box<dyn OutputProvenance>> {
        self.provenance.map(|provenance| Box::new(provenance.clone()) as Box<dyn OutputProvenance>)
    }

    fn run(&self) -> &str {
        self.run
    }

    fn deferred_name(&self) -> &str {
        self.deployment.documents.resume.as_ref().map_or(self.run, |resume| &*resume.name)
    }

    fn continues(&self) -> bool {
        self.mode.continues(self.deployment)
    }

    fn begins_anew(&self) -> bool {
        self.mode.begins_anew(self.deployment)
    }

    fn cluster_kind(&self) -> ClusterKind {
        self.plan.clusters
    }

    fn connection(&self) -> &Connection {
        &self.deployment.kafka
    }

    fn letters_topic(&self) -> Option<&str> {
        match &self.deployment.dead_letter {
            Some(DeadLetterConfig::Topic(name)) => Some(name),
            Some(DeadLetterConfig::File(_)) | None => None,
        }
    }

    fn refresh(&self) -> Duration {
        self.deployment.source.topic_refresh()
    }
}
