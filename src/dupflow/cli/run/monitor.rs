//! Starts the monitor of a run with the plan, the deployment and the job that it shows.

use std::sync::Arc;

use anyhow::Context;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::history::StoredHistory;
use crate::cli::examine::Examiner;
use crate::config::{Deployment, MonitorConfig, Plan};
use crate::forecast::PlanText;
use crate::pipeline::{Follower, RunJob};
use dupflow_connectors::credential::Credential;
use dupflow_connectors::intake;
use dupflow_core::block::HotBlocks;
use dupflow_core::cluster::Clusters;
use dupflow_core::doc::{DocId, Position};
use dupflow_core::pair::{Delta, Evidence, Similarity};
use dupflow_core::text::measures::Measure;
use dupflow_core::text::{Html, TextPiece, TextRules, common_passages, readable};
use dupflow_core::time::{Epoch, EpochTimes};
use dupflow_engine::dataflow::Stages;
use dupflow_monitor::{
    AddressRange, Compare, ComparedTexts, Endpoint, Feeder, HotBlockInfo, InputBytes, KeptHistory, Monitor,
    MonitorLimits, MonitoredRun, Pipeline, ReadText, TextReader, TextUnavailable, View, ViewContents,
};
use dupflow_run::watch::WatchBook;

impl Follower for Feeder {
    fn stands(&self, epoch: Epoch) {
        self.begin_at(epoch);
    }

    fn restored(&self, deltas: &[Delta]) {
        self.restored(deltas);
    }

    fn live(&self, past: Epoch) {
        self.live(past);
    }

    fn committed(&self, epoch: Epoch, times: EpochTimes, deltas: Vec<Delta>) {
        self.committed(epoch, times, deltas);
    }
}

/// Points of the curve, minus one.
const STEPS: u32 = 100;

/// Starts the monitor of a job if the deployment has one, and feeds it with all commits.
///
/// # Errors
/// If it cannot listen at its address.
pub(in crate::cli) fn start(
    plan: &Plan,
    deployment: &Deployment,
    job: &mut RunJob,
) -> anyhow::Result<Option<Monitor>> {
    let Some(place) = &deployment.monitor else { return Ok(None) };
    let clock = Arc::clone(&job.clock);
    let mut subject =
        MonitoredRun::new(Arc::clone(&job.stages.observers.metrics), Arc::clone(&job.status), clock);
    job.status.set_ready_lag(place.ready_lag);
    job.status.set_ready_behind(place.ready_behind);
    // Process 0 has the output.
    if job.processes.as_ref().is_none_or(|together| together.index() == 0) {
        let clusters = Clusters::new(plan.clusters, plan.cluster_limit);
        let (run, history) = (job.continuity.run.clone(), history(plan, deployment, job)?);
        // Ids of both sides would be names of clusters.
        let contents = match (deployment.has_reference(), place.pairs) {
            (true, _) => ViewContents::DeltasWithReference,
            (false, true) => ViewContents::Pairs,
            (false, false) => ViewContents::Deltas,
        };
        let view = View::start(run, contents, clusters, history).context("the monitor")?;
        job.follow(view.feeder());
        subject.view = Some(view);
        subject.queries = Some(Arc::clone(&job.stages.observers.queries));
        subject.views = job.continuity.sides.keep_tables();
    }
    let watches = job.continuity.watch.as_ref();
    subject.watch = watches.map(|watch| -> Arc<dyn WatchBook> { Arc::clone(&watch.run.list) as _ });
    subject.receiver.clone_from(&job.receiver);
    subject.pipeline = pipeline(plan, deployment, job);
    subject.compare = Some(compare(plan));
    subject.texts = job.source.texts(&plan.scheme.text.columns()).map(|texts| -> Arc<dyn TextReader> {
        Arc::new(ReadableTexts { texts: Mutex::new(texts), rules: plan.scheme.text.clone() })
    });
    let described: serde_json::Map<String, Value> =
        plan.description().fields().map(|(name, value)| (name.to_owned(), value.into())).collect();
    subject.config = json!({"deployment": deployment.shown, "pipeline": described});
    let stages = job.stages.clone();
    subject.hot_blocks = Box::new(move || hot_blocks(&stages));
    subject.planned = plan.planned_sketches();
    subject.memory_budget = job.stages.spill.as_ref().map(|spill| spill.memory_bytes);
    subject.input_bytes = job
        .source
        .progress()
        .map(|progress| -> InputBytes { Box::new(move || (progress.read(), progress.total())) });
    Ok(Some(Monitor::start(&endpoint(place)?, subject, limits(place))?))
}

/// Where the monitor listens, and what a request needs.
fn endpoint(place: &MonitorConfig) -> anyhow::Result<Endpoint> {
    let token = |token: &Option<Credential>| token.as_ref().map(|token| token.reveal().to_owned());
    let range = |(address, bits): &(_, _)| AddressRange { address: *address, bits: *bits };
    let user_header = place.user_header.as_ref().map(|name| name.parse()).transpose();
    Ok(Endpoint {
        address: place.listen,
        token: token(&place.token),
        read_token: token(&place.read_token),
        hosts: place.hosts.clone(),
        base_path: place.base_path.clone(),
        trusted_proxies: place.trusted_proxies.iter().map(range).collect(),
        user_header: user_header.context("monitor.user_header")?,
    })
}

/// The number of hot blocks, and the largest of them.
fn hot_blocks(stages: &Stages) -> (usize, Vec<HotBlockInfo>) {
    let blocks = stages.observers.hot_blocks.lock();
    let hot = blocks.largest().take(HotBlocks::SHOWN).map(|((key, _), block)| HotBlockInfo {
        table: key.table,
        hash: key.hash(),
        sketches: block.sketches,
        document: block.document.clone(),
        beside: block.beside.clone(),
    });
    (blocks.len(), hot.collect())
}

/// The history of the run, if the state keeps one.
fn history(plan: &Plan, deployment: &Deployment, job: &mut RunJob) -> anyhow::Result<Option<KeptHistory>> {
    let kept = deployment.state.as_ref().and_then(|state| Some((state, state.history?)));
    let Some((state, age)) = kept else { return Ok(None) };
    let (metrics, status) = (Arc::clone(&job.stages.observers.metrics), Arc::clone(&job.status));
    let scheme = plan.scheme.description().encode();
    let store = StoredHistory::open(state, job.continuity.run.clone(), scheme, metrics, status)
        .context("the history (state.history)")?;
    job.continuity.history = Some(store.stop());
    Ok(Some(KeptHistory { store: Box::new(store), age }))
}

/// The texts of a source, one at a time. For pages it returns the text that the text rules extract.
struct ReadableTexts {
    texts: Mutex<Box<dyn intake::Texts>>,
    rules: TextRules,
}

impl TextReader for ReadableTexts {
    fn text(&self, id: &DocId, position: Position) -> Result<ReadText, TextUnavailable> {
        let found = self.record_text(id, position)?;
        Ok(ReadText { text: readable(&found.text, &self.rules).into_owned(), ..found })
    }

    fn record_text(&self, id: &DocId, position: Position) -> Result<ReadText, TextUnavailable> {
        let found = self.texts.lock().text(id, position).map(|found| {
            let intake::FoundText { text, truncated, place } = found;
            ReadText { text, truncated, place }
        });
        found.map_err(|why| match why {
            intake::NoText::Gone(why) => TextUnavailable::Gone(why),
            intake::NoText::Unsupported(why) => TextUnavailable::Unsupported(why),
            intake::NoText::Failed(why) => TextUnavailable::Failed(why),
        })
    }
}

/// The function that finds the passages two texts have in common, by the pipeline's rules. The texts are
/// [readable] already, so HTML is not extracted again.
fn compare(plan: &Plan) -> Compare {
    let (mut plan, is_live) = (plan.clone(), plan.scheme.live().is_some());
    plan.scheme.text.html = Html::None;
    Arc::new(move |a, b| {
        let passages = common_passages(a, b, &plan.scheme.text);
        let pieces = |pieces: &[TextPiece<'_>]| {
            pieces.iter().map(|piece| (piece.text.to_owned(), piece.passage)).collect()
        };
        // Under live weights the exact similarity depends on the corpus, not on the two texts alone.
        let exact = (!is_live).then(|| {
            let mut examiner = Examiner::new(&plan);
            let (a, b) = (examiner.examine(a), examiner.examine(b));
            examiner.exact(&a, &b)
        });
        ComparedTexts {
            a: pieces(&passages.a),
            b: pieces(&passages.b),
            shared: (passages.shared_a, passages.shared_b),
            exact,
        }
    })
}

fn limits(place: &MonitorConfig) -> MonitorLimits {
    MonitorLimits {
        connections: place.connections,
        streams: place.streams,
        body_bytes: place.body_bytes,
        questions_per_second: place.questions_per_second,
        ..MonitorLimits::default()
    }
}

/// The description of the pipeline for the monitor.
fn pipeline(plan: &Plan, deployment: &Deployment, job: &RunJob) -> Pipeline {
    let size = plan.scheme.sketch.size;
    let blocks = job.stages.blocking.tables();
    let words = PlanText::new(plan, STEPS);
    let description = json!({
        "name": plan.name,
        "threshold": plan.threshold,
        "measure": words.measure,
        "text": words.text,
        "sketch": words.sketch,
        "blocking": words.blocking,
        "filter": words.filter,
        "scheme": format!("{:016x}", plan.scheme.fingerprint()),
        "of_blocks": blocks,
        "of_components": size,
        "curve": words.curve,
        "retention": {
            "max_age_seconds": plan.retention.max_age.map(|age| age.as_secs_f64()),
            "max_documents": plan.retention.max_documents,
            "clock": plan.retention.clock.name(),
            "now": null,
        },
    });
    let scheme = plan.scheme.clone();
    let standard_error = Box::new(move |similarity: f64, evidence: &Evidence| {
        scheme.standard_error(Similarity::clamped(similarity), *evidence)
    });
    Pipeline {
        description,
        blocks,
        components: size,
        threshold: plan.threshold,
        shares: plan.scheme.measure() == Measure::Containment,
        has_reference: deployment.has_reference(),
        standard_error,
    }
}
