//! The provenance of a result: the program, the pipeline, the options, the inputs with their digests, and the
//! counts of the run that made it.
//!
//! Everything here is a function of the program, the pipeline and the inputs: no time of day, no number of
//! workers, no path of an output. So a replay of the same inputs has the same provenance, byte for byte.
//!
//! ```text
//! {"provenance":{…}}        what is known at the beginning: all but digests and counts
//! {"provenance_end":{…}}    what is known at the end: inputs with digests, and counts
//! ```

use std::collections::BTreeMap;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use serde_json::{Value as Json, json};

use super::outcome::Summary;
use crate::config::{Deployment, FilesSource, Plan};
use crate::program;
use dupflow_connectors::digest::InputDigest;
use dupflow_connectors::inputs::Input;
use dupflow_connectors::intake::BadRecords;
use dupflow_connectors::sinks::OutputProvenance;
use dupflow_core::doc::fields::FieldRule;
use dupflow_run::metrics::{Counter, Counts, Metrics};

/// The version of the format; another one is not read.
const FORMAT: u32 = 1;

/// By what and of what a result was made.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Provenance {
    /// The version of this format, 1.
    pub format: u32,
    /// The program.
    pub program: ProgramRecord,
    /// The pipeline.
    pub pipeline: PipelineRecord,
    /// The fingerprint of the scheme, 16 hexadecimal digits.
    pub scheme: String,
    /// The options of `replay` that decide the result, by their names; those without a value are true or
    /// false, those that may be repeated a list.
    pub options: BTreeMap<String, Json>,
    /// The inputs in reading order, as named; with digests once they have been read.
    pub inputs: Vec<InputDigest>,
    /// The counts at the end of the run; `None` before.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub counts: Option<CountsRecord>,
}

/// A build of the program.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ProgramRecord {
    /// Its version.
    pub version: String,
    /// The commit that it was built from, if it is a release.
    pub commit: Option<String>,
    /// The features that are in it.
    pub features: Vec<String>,
}

/// A pipeline.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct PipelineRecord {
    /// The name of a built-in pipeline, or the path as typed.
    pub name: String,
    /// The keys that its file and `--set` set.
    pub settings: BTreeMap<String, Json>,
    /// Everything that decides the pairs, as resolved, by name.
    pub keys: BTreeMap<String, String>,
    /// The fingerprint of `keys`, 16 hexadecimal digits.
    pub fingerprint: String,
}

/// The counts of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct CountsRecord {
    /// Events applied.
    pub events: u64,
    /// Live documents at the end.
    pub documents: u64,
    /// Changes of pairs in all epochs.
    pub deltas: u64,
    /// Live pairs at the end.
    pub pairs: u64,
    /// Bad records by reason.
    pub bad: BTreeMap<String, u64>,
    /// Valid records without a document, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// Events after `--until`, which were not applied.
    pub after_until: u64,
    /// Events without a time under `--until`, which were applied.
    pub undated_until: u64,
}

impl Provenance {
    /// The names in [`Self::options`]. None of them is of a path.
    pub const OPTIONS: [&str; 24] = [
        "canonical-url",
        "causes",
        "csv-delimiter",
        "csv-escape",
        "csv-quote",
        "decisions",
        "emit",
        "epoch",
        "evidence",
        "field",
        "format",
        "id-field",
        "ids",
        "json-surrogates",
        "max-bad",
        "max-unread",
        "op-field",
        "output-format",
        "text-field",
        "times",
        "ts-field",
        "until",
        "warc-id",
        "warc-not-found",
    ];

    /// What is known before a replay of these inputs begins.
    pub fn begin(plan: &Plan, deployment: &Deployment, inputs: &[Input]) -> Self {
        let input = |input: &Input| InputDigest {
            name: input.name().to_string(),
            files: None,
            bytes: input.bytes(),
            sha256: None,
        };
        Self {
            format: FORMAT,
            program: ProgramRecord::this(),
            pipeline: PipelineRecord::new(plan),
            scheme: format!("{:016x}", plan.scheme.fingerprint()),
            options: options(deployment, inputs),
            inputs: inputs.iter().map(input).collect(),
            counts: None,
        }
    }

    /// With what is known at the end.
    #[must_use]
    pub fn ended(self, read: Vec<InputDigest>, counts: CountsRecord) -> Self {
        // An input without a digest was not read to its end.
        let is_read = |input: &InputDigest| read.iter().any(|digest| digest.name == input.name);
        let unread: Vec<_> = self.inputs.iter().filter(|input| !is_read(input)).cloned().collect();
        Self { inputs: read.into_iter().chain(unread).collect(), counts: Some(counts), ..self }
    }

    /// As one JSON object with the key `provenance`.
    pub fn to_json(&self) -> String {
        json!({ "provenance": self }).to_string()
    }

    /// Whether this program can read it.
    pub fn is_known(&self) -> bool {
        self.format == FORMAT
    }
}

impl ProgramRecord {
    /// This build.
    pub fn this() -> Self {
        Self {
            version: program::VERSION.to_owned(),
            commit: program::COMMIT.map(str::to_owned),
            features: program::features().map(str::to_owned).collect(),
        }
    }
}

impl PipelineRecord {
    /// The record of a plan.
    pub fn new(plan: &Plan) -> Self {
        let described = plan.description();
        let mut keys: BTreeMap<String, String> =
            described.fields().map(|(name, value)| (name.to_owned(), value)).collect();
        keys.insert("output.keep".to_owned(), plan.keep.to_string());
        if let Some(least) = plan.remove_if {
            keys.insert("output.remove_if".to_owned(), format!("contained:{least}"));
        }
        if plan.finds_items() {
            keys.insert("output.item_limit".to_owned(), plan.item_limit.to_string());
        }
        keys.insert("output.on_error".to_owned(), format!("{:?}", plan.on_error).to_lowercase());
        let fingerprint = format!("{:016x}", described.fingerprint());
        let mut settings = plan.settings.clone();
        // Who repeats the run has to know it.
        settings.remove("text.secret");
        Self { name: plan.name.clone(), settings, keys, fingerprint }
    }
}

impl CountsRecord {
    fn new(counts: &Counts, bad: &BadRecords) -> Self {
        let by_name = |counted: BTreeMap<&'static str, u64>| {
            counted.into_iter().map(|(name, n)| (name.to_owned(), n)).collect()
        };
        Self {
            events: counts.get(Counter::Events),
            documents: counts.documents(),
            deltas: counts.deltas(),
            pairs: counts.pairs(),
            bad: by_name(bad.counts()),
            skipped: by_name(bad.skipped()),
            after_until: counts.get(Counter::AfterUntil),
            undated_until: counts.get(Counter::UndatedUntil),
        }
    }
}

impl From<&Summary> for CountsRecord {
    fn from(summary: &Summary) -> Self {
        Self {
            events: summary.events,
            documents: summary.documents,
            deltas: summary.deltas,
            pairs: summary.pairs,
            bad: summary.bad_records.clone(),
            skipped: summary.skipped.clone(),
            after_until: summary.after_until,
            undated_until: summary.undated_until,
        }
    }
}

/// The options of a replay that decide its result.
fn options(deployment: &Deployment, inputs: &[Input]) -> BTreeMap<String, Json> {
    let mut options = BTreeMap::new();
    if deployment.against > 0 {
        // A report does not say what is read, so it cannot be repeated.
        options.insert("against".to_owned(), deployment.against.into());
        options
            .extend(deployment.benchmark.iter().map(|field| ("benchmark".to_owned(), field.as_str().into())));
        let (own, of_inputs) = (inputs.first().map(Input::layout), deployment.layout());
        if let Some(layout) = own.filter(|own| (&own.id, &own.text) != (&of_inputs.id, &of_inputs.text)) {
            options.insert("against-id-field".to_owned(), layout.id.as_str().into());
            options.insert("against-text-field".to_owned(), layout.text.as_str().into());
        }
    }
    let mut set = |name: &str, value: Json| {
        debug_assert!(Provenance::OPTIONS.contains(&name), "{name}");
        options.insert(name.to_owned(), value);
    };
    let output = &deployment.output;
    set("emit", output.answer.to_string().into());
    if output.answer.is_of_decisions() {
        set("decisions", output.decisions.name().into());
    }
    let fields: Vec<&str> = deployment.fields.rules().iter().map(FieldRule::written).collect();
    if !fields.is_empty() {
        set("field", fields.into());
    }
    set("output-format", output.format.name().into());
    set("evidence", deployment.evidence.into());
    set("causes", output.causes.into());
    set("times", output.times.into());
    if let Some(until) = deployment.audit.until {
        set("until", until.seconds().into());
    }
    if let Some(share) = deployment.max_bad {
        set("max-bad", share.into());
    }
    if let Some(files) = deployment.max_unread {
        set("max-unread", files.into());
    }
    let Some(FilesSource { layout, epoch, .. }) = deployment.files() else { return options };
    set("epoch", epoch.to_string().into());
    for (name, value) in layout.options() {
        set(name, value.map_or(true.into(), Json::from));
    }
    options
}

/// Writes the provenance of an output into it.
#[derive(Clone, Debug)]
pub(super) struct ProvenanceRecorder {
    begun: Provenance,
    metrics: Arc<Metrics>,
    bad: Arc<BadRecords>,
}

impl ProvenanceRecorder {
    /// For a job of one process that has begun as `begun` says.
    pub(super) fn new(begun: Provenance, metrics: Arc<Metrics>, bad: Arc<BadRecords>) -> Self {
        Self { begun, metrics, bad }
    }

    fn ended(&self) -> Provenance {
        let counts = CountsRecord::new(&self.metrics.counts(), &self.bad);
        self.begun.clone().ended(self.bad.digest_table().inputs(), counts)
    }
}

impl OutputProvenance for ProvenanceRecorder {
    fn first(&self) -> String {
        self.begun.to_json()
    }

    fn last(&self) -> String {
        let Provenance { inputs, counts, .. } = self.ended();
        json!({ "provenance_end": { "inputs": inputs, "counts": counts } }).to_string()
    }

    fn whole(&self) -> String {
        self.ended().to_json()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_settings_of_a_plan_give_the_plan() {
        for (pipeline, typed) in [
            ("minhash", &["threshold=0.75", "sketch.size=512", "blocking.also.kind=banding"][..]),
            ("simhash", &["blocking.distance=3"]),
            ("weighted", &["retention.max_age=30d", "text.fields.title=3", "text.stop_words=[\"a\", \"ü\"]"]),
            ("paper", &[]),
            ("tour", &["filter.looks="]),
        ] {
            let typed: Vec<_> = typed.iter().map(|&typed| typed.to_owned()).collect();
            let plan = Plan::load(pipeline, &typed).unwrap();
            let again = Plan::from_settings(&plan.name, &plan.settings).unwrap();
            assert_eq!(PipelineRecord::new(&again), PipelineRecord::new(&plan), "{pipeline}");
        }
    }
}
