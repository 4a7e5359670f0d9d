//! Makes a job of a plan and a deployment: the stages of the dataflow, the source, the sink, the state.

mod error;
mod fields;
mod mode;
mod posted;
mod reference;
mod sink;
mod source;
mod spill;
mod watch;

use std::num::NonZeroUsize;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

pub use error::AssembleError;
pub use fields::{held_fields, missing_fields};
pub use mode::Mode;
pub use spill::{budget_bytes, check_spill, check_writable, spill_to};

use super::continuity::{Continuity, encoded};
use super::outcome::Demands;
use super::outputs::{OtherOutput, SideOutputs, Waits};
use super::provenance::{Provenance, ProvenanceRecorder};
use super::run::{ProcessGroup, RunJob, nowhere};
use crate::config::{
    Deployment, FilePlace, OutputConfig, OutputFormat, Plan, ProvenancePlace, StateConfig, TablesPlace,
};
use dupflow_connectors::formats::BadRecord;
use dupflow_connectors::formats::IdRule;
use dupflow_connectors::inputs::{Input, RecordIndex};
use dupflow_connectors::intake::{BadRecords, DeadLetter, InputFile, Share, Source};
use dupflow_connectors::owned::OwnedFile;
use dupflow_connectors::posted::PostReceiver;
use dupflow_connectors::sinks::answers::{Subject, Written};
use dupflow_connectors::sinks::{BookMetrics, ItemCountsSlot, LetterFile, ListCountsSlot, Sink};
use dupflow_connectors::state::{self, SharedState, StoredState};
use dupflow_core::description::Description;
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::time::{Clock, SystemClock};
use dupflow_engine::dataflow::{Stages, described_fields};
use dupflow_run::metrics::Metrics;
use dupflow_run::posted::DocumentReceiver;
use dupflow_run::query::QueryQueue;
use dupflow_run::status::Status;
use fields::held_views;
use sink::SinkParts;
use source::{SourceParts, source};

impl RunJob {
    /// The job of a plan without a past, in one process: its first epoch is 1, pairs carry no evidence, bad
    /// records are handled as the plan says, and the clock starts now. `workers`: threads, at least 1.
    pub fn new(plan: &Plan, workers: usize, source: Box<dyn Source>, sink: Box<dyn Sink + Send>) -> Self {
        Self {
            stages: stages(plan, false),
            source,
            receiver: None,
            first_epoch: 1,
            bad: Arc::new(BadRecords::new(plan.on_error, None)),
            sink,
            demands: Demands::default(),
            publication: None,
            continuity: Continuity::new(&plan.description()),
            workers,
            most_records: None,
            processes: None,
            status: Arc::new(Status::new(0, 1, workers)),
            clock: Arc::new(SystemClock::start()),
        }
    }

    /// The job of a plan and a deployment, alone or with other processes. Opens the files of the job; a
    /// replay truncates them. `inputs` are the resolved inputs of the deployment.
    ///
    /// # Errors
    /// If a file cannot be opened for writing, or the state cannot be opened.
    pub fn assemble(
        plan: &Plan,
        deployment: &Deployment,
        mode: &Mode,
        inputs: Vec<Input>,
        processes: Option<ProcessGroup>,
        clock: Arc<dyn Clock>,
    ) -> Result<Self, AssembleError> {
        let (index, count) = processes.as_ref().map_or((0, 1), |group| (group.index(), group.count()));
        let writes = index == 0;
        let cores = || thread::available_parallelism().ok();
        let workers = deployment.workers.or_else(cores).map_or(1, NonZeroUsize::get);
        let spill = spill::spill(deployment, workers)?;
        let bad = Arc::new(bad_records(plan, deployment, mode, count)?);
        let file = deployment.output.place.as_a::<FilePlace>().and_then(|file| file.path.as_ref());
        if let (true, Mode::Replay, Some(path)) = (writes, mode, file) {
            // A replay writes the file anew, which a run may have.
            let taken = |source| AssembleError::Output { path: path.clone(), source };
            OwnedFile::check_free(path).map_err(taken)?;
        }
        let (mut continuity, held) =
            continuity(plan, deployment, mode, bad.with_letters(), writes, count > 1)?;
        let stages = Stages { spill, ..job_stages(plan, deployment, held, mode, count) };
        let mut described_reference = None;
        if let Some(frozen) = deployment.reference.as_ref().filter(|_| writes) {
            let reference = reference::read(plan, frozen, &stages)?;
            described_reference = Some(reference.description());
            let described = described(plan, deployment, &stages.fields, described_reference.as_deref());
            continuity = Continuity { reference: Some(reference), ..continuity.described(&described) };
        }
        let provenance = (deployment.audit.provenance == ProvenancePlace::Output).then(|| {
            let begun = Provenance::begin(plan, deployment, &inputs);
            ProvenanceRecorder::new(begun, Arc::clone(&stages.observers.metrics), Arc::clone(&bad))
        });
        if let Some(watch) = deployment.watch.as_ref().filter(|_| writes) {
            continuity.watch = Some(watch::parts(plan, deployment, watch, mode, &clock)?);
        }
        // The clocks of two processes would cut epochs at different records.
        let by_clock = deployment.source.is_cut_by_clock();
        let share = Share { index, count, reads_all: matches!(mode, Mode::Replay) && !by_clock };
        // A run writes pairs of items as they are found, and has no list of them.
        let lists_items = plan.finds_items() && deployment.against > 0;
        // That items are found is checked by their counts.
        let of_reference = inputs.iter().take(deployment.against).filter(|_| !lists_items);
        let reference = of_reference.map(Input::name).collect();
        let places = Arc::<RecordIndex>::default();
        let items = lists_items.then(ItemCountsSlot::default);
        let parts = SinkParts {
            plan,
            deployment,
            mode,
            stages: &stages,
            run: &continuity.run,
            provenance: provenance.as_ref(),
            inputs: (&inputs, &places),
            items: items.as_ref(),
            listed: &ListCountsSlot::default(),
            counted: &BookMetrics::new(&stages.observers.metrics),
        };
        let (sink, publication) = if writes { parts.sink()? } else { (nowhere(), None) };
        let others = deployment.others.iter().filter(|_| writes);
        let others = others.map(|other| other_output(parts, other, described_reference.as_deref()));
        continuity.others = others.collect::<Result<_, _>>()?;
        continuity.table.clone_from(&deployment.output.table);
        let receiver = posted::receiver(parts, mode, writes)?;
        let durable = receiver.as_ref().map(PostReceiver::durable);
        if let Some(receiver) = &receiver {
            continuity.others.push(posted::output(receiver));
        }
        let status = Status::new(index, count, workers);
        status.name_bad_reasons(BadRecord::ALL.map(BadRecord::reason));
        Ok(Self {
            status: Arc::new(status),
            sink,
            demands: Demands {
                max_bad: deployment.max_bad,
                max_unread: deployment.max_unread,
                is_list: deployment.answers().any(|answer| answer.is_list()) || lists_items,
                lists_items,
                last_of_id: deployment.layout().ids != IdRule::Once,
                bad_items: 0,
                before: 0,
                reference,
            },
            publication,
            source: source(
                plan,
                deployment,
                mode,
                &stages.fields,
                SourceParts { inputs, places, share, durable },
            ),
            receiver: receiver.map(|receiver| Arc::new(receiver) as Arc<dyn DocumentReceiver>),
            stages,
            first_epoch: 1,
            continuity,
            bad,
            workers,
            most_records: None,
            processes,
            clock,
        })
    }
}

/// An output beside the first. Clusters and decisions are counted in the first output that has them.
fn other_output(
    parts: SinkParts<'_>,
    output: &OutputConfig,
    reference: Option<&str>,
) -> Result<OtherOutput, AssembleError> {
    let deployment = &parts.deployment.with_output(output);
    let earlier = || parts.deployment.all_outputs().take_while(|one| one.table != output.table);
    let uncounted = || Arc::new(Metrics::new(0));
    let mut counted = parts.counted.clone();
    if earlier().any(counts_clusters) {
        counted.clusters = uncounted();
    }
    if earlier().any(|one| one.answer.is_of_decisions()) {
        counted.decisions = uncounted();
    }
    let listed = &ListCountsSlot::default();
    let parts = SinkParts { deployment, counted: &counted, listed, ..parts };
    let (sink, end) = parts.sink()?;
    let described = encoded(&described(parts.plan, deployment, &parts.stages.fields, reference));
    let metrics = &parts.stages.observers.metrics;
    let waits = output.waits.then(|| Waits::new(parts.opener(), parts.run, metrics));
    Ok(OtherOutput::new(output.table.clone(), sink, described, end, waits))
}

/// Whether an output counts the changes of clusters.
fn counts_clusters(output: &OutputConfig) -> bool {
    output.answer.about == Subject::Clusters || output.place.as_a::<TablesPlace>().is_some()
}

/// The stages of a job with `count` processes, with the cheapest filter that gives what is written and shown.
fn job_stages(plan: &Plan, deployment: &Deployment, held: FieldRules, mode: &Mode, count: usize) -> Stages {
    let mut stages = stages(plan, deployment.evidence);
    stages.fields = held;
    stages.views = held_views(&stages.fields, deployment);
    stages.until = deployment.audit.until;
    // The monitor shows the times of pairs and clusters.
    stages.times = deployment.has_times() || deployment.monitor.is_some();
    if let Mode::Run { .. } = mode {
        stages.observers.queries = Arc::new(QueryQueue::before_live());
    }
    if let Written::Survey = deployment.output.answer.written {
        stages.observers.live_sketches = Some(Arc::default());
    }
    // Similarities are needed if any process has a monitor. In a run another process may have one; in a
    // replay by several processes none has.
    // So are those of notices.
    stages.watches = deployment.watch.is_some();
    let has_monitor = deployment.monitor.is_some() || (count > 1 && matches!(mode, Mode::Run { .. }));
    let has_similarities = deployment.answers().any(|answer| answer.has_similarities());
    if !has_similarities && plan.scheme.units.is_none() && !has_monitor && !stages.watches {
        stages.filter = plan.membership_filter();
    }
    stages
}

/// Everything that decides what the output holds: the description of the plan, with the settings of the
/// deployment that change it, and the fields that documents hold.
fn described(
    plan: &Plan,
    deployment: &Deployment,
    held: &FieldRules,
    reference: Option<&str>,
) -> Description {
    let mut described = plan.description();
    let OutputConfig { place, answer, decisions, format, causes, times, .. } = &deployment.output;
    if answer.is_of_changes() && !answer.is_of_pairs() {
        // One output holds changes of pairs or others, not both.
        described = described.with("sink.emit", answer.name);
    }
    if answer.is_of_decisions() {
        described = described.with("sink.decisions", decisions.name());
    }
    if *format != OutputFormat::default() {
        described = described.with("sink.format", format.name());
    }
    if format.has_columns && answer.is_of_changes() {
        // All rows of one file have the same columns. Other changes than deltas have times only.
        let columns =
            [("sink.evidence", deployment.evidence), ("sink.causes", *causes), ("sink.times", *times)];
        for (key, _) in columns.into_iter().filter(|(_, is_set)| *is_set) {
            described = described.with(key, "true");
        }
    }
    for (key, value) in place.described(*answer) {
        described = described.with(key, value);
    }
    described = described.and(described_fields(held));
    for (key, value) in deployment.source.description() {
        described = described.with(key, &*value);
    }
    if let Some(reference) = reference {
        described = described.with("reference.inputs", reference);
    }
    described
}

/// What happens to bad records. A replay by one process writes them itself; otherwise they travel with their
/// epochs to process 0, which writes them.
fn bad_records(
    plan: &Plan,
    deployment: &Deployment,
    mode: &Mode,
    count: usize,
) -> Result<BadRecords, AssembleError> {
    let bad = match mode {
        Mode::Replay if count == 1 && !mode.resumes(deployment) => {
            let dead_letter = deployment.letter_file().map(ToOwned::to_owned).map(DeadLetter::create);
            BadRecords::new(plan.on_error, dead_letter.transpose()?)
        }
        _ if deployment.dead_letter.is_some() || mode.resumes(deployment) => {
            BadRecords::with_epochs(plan.on_error)
        }
        _ => BadRecords::new(plan.on_error, None),
    };
    let is_digested = deployment.audit.provenance > ProvenancePlace::Nowhere;
    Ok(if is_digested { bad.with_digests() } else { bad })
}

/// What the job needs to continue after an earlier run, and the fields that its documents hold.
/// `with_letters`: bad records travel with their epochs.
fn continuity(
    plan: &Plan,
    deployment: &Deployment,
    mode: &Mode,
    with_letters: bool,
    writes: bool,
    are_several: bool,
) -> Result<(Continuity, FieldRules), AssembleError> {
    let mut letters = None;
    if let Some(path) = deployment.letter_file().filter(|_| writes && with_letters) {
        let opened = match mode {
            Mode::Replay if mode.resumes(deployment) => LetterFile::resume(path),
            Mode::Replay => LetterFile::create(path),
            Mode::Run { .. } => LetterFile::open(path),
        };
        let opened = opened.map_err(|source| AssembleError::Letters { path: path.to_owned(), source });
        letters = Some(opened?);
    }
    let mut sides = SideOutputs::default();
    if writes {
        let notices = deployment.watch.as_ref().map(|watch| &watch.notices);
        let opened = SideOutputs::open(&deployment.views, notices, matches!(mode, Mode::Replay));
        let output = |(path, source): (String, _)| AssembleError::Output { path: path.into(), source };
        sides = opened.map_err(output)?;
    }
    let (state, shared_state) =
        if writes { (stored_state(deployment)?, None) } else { (None, shared_state(deployment, mode)) };
    // All processes hold the same fields, and only process 0 owns the state.
    let alone = state.as_ref().filter(|_| !are_several).map(|(state, _)| state);
    let held = fields::held_with(alone, plan, deployment);
    let anew = mode.begins_anew(deployment);
    let reconcile = anew || matches!(mode, Mode::Run { reconcile: true });
    let continuity = Continuity::new(&described(plan, deployment, &held, None));
    let inputs = deployment.input_list().filter(|_| writes).map(|path| InputFile::new(&path));
    let (tallies, source) = (mode.resumes(deployment), encoded(&deployment.source.further_description()));
    let rewrites = !deployment.output.answer.is_of_changes();
    let continuity = Continuity {
        source,
        reconcile,
        rewrites,
        anew,
        letters,
        inputs,
        sides,
        state,
        shared_state,
        tallies,
        ..continuity
    };
    Ok((continuity, held))
}

/// The state of a run, which it claims later, and the shortest time between two commits there; `None` if it
/// has none.
fn stored_state(deployment: &Deployment) -> Result<Option<(StoredState, Duration)>, AssembleError> {
    let Some(StateConfig { location, commit_every, .. }) = &deployment.state else { return Ok(None) };
    Ok(Some((StoredState::inspect(state::at(location)?)?, *commit_every)))
}

/// The state that process 0 owns; `None` if this process has none, or cannot use its location.
fn shared_state(deployment: &Deployment, mode: &Mode) -> Option<SharedState> {
    let location = deployment.state.as_ref().map(|state| &state.location);
    let location = location.filter(|_| matches!(mode, Mode::Run { .. }))?;
    let unusable = |error: &_| tracing::warn!(%error, "process 0 restores and writes the state");
    state::at(location).inspect_err(unusable).ok().map(SharedState::new)
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
