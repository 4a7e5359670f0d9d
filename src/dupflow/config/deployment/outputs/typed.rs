//! Outputs as `--output` of a replay names them.

use std::path::Path;
use std::time::Duration;

use super::others::{MOST_OUTPUTS, OutputConfig, shared};
use super::results::{EmitKind, OutputFormat, ResultPlace};
use super::sink::SinkConfig;
use crate::config::deployment::tables::TablesConfig;
use crate::config::deployment::values::is_topic_name;
use dupflow_connectors::kafka::OutputEnvelope;
use dupflow_connectors::sinks::DecisionMode;

/// Seconds after which a broker aborts an open transaction.
const TRANSACTION: Duration = Duration::from_secs(60);

impl OutputConfig {
    /// The output at a typed place: a file, "-", "sqlite:FILE", "postgres://…" or "kafka:TOPIC". A topic
    /// holds pairs and clusters as they are, by their changes.
    ///
    /// # Errors
    /// Why there is no such place.
    pub fn from_typed(
        typed: &Path,
        emit: EmitKind,
        decisions: Option<DecisionMode>,
        format: Option<OutputFormat>,
    ) -> Result<Self, String> {
        let sink = place(typed)?;
        let (sink, emit) = match (sink, emit) {
            (sink @ SinkConfig::Kafka { .. }, EmitKind::Pairs) => (as_they_are(sink), EmitKind::Deltas),
            (sink @ SinkConfig::Kafka { .. }, EmitKind::Clusters) => {
                (as_they_are(sink), EmitKind::ClusterDeltas)
            }
            other => other,
        };
        let is_topic = matches!(sink, SinkConfig::Kafka { .. });
        Ok(Self {
            table: format!("--output {sink}"),
            decisions: decisions.unwrap_or(if is_topic {
                DecisionMode::Current
            } else {
                DecisionMode::First
            }),
            format: match &sink {
                SinkConfig::Lines { path, .. } if emit.copied().is_none() => {
                    format.unwrap_or_else(|| OutputFormat::of_name(path.as_deref()))
                }
                _ => format.unwrap_or_default(),
            },
            sink,
            emit,
            causes: false,
            times: false,
            waits: false,
        })
    }

    /// The place, as far as it decides which results it can take.
    pub fn place(&self) -> ResultPlace {
        match &self.sink {
            SinkConfig::Lines { .. } => ResultPlace::File(self.format),
            SinkConfig::Kafka { .. } => ResultPlace::Topic,
            SinkConfig::Tables(_) => ResultPlace::Tables,
        }
    }

    /// Whether a replay corrects what is there, in one step at its end; otherwise it writes anew.
    pub fn is_corrected(&self) -> bool {
        !matches!(self.sink, SinkConfig::Lines { .. })
    }

    /// Why these cannot be the outputs of one replay.
    pub fn conflict(outputs: &[Self], emit: EmitKind) -> Option<String> {
        if outputs.len() > MOST_OUTPUTS {
            return Some(format!(
                "a replay has {MOST_OUTPUTS} outputs at most, and there are {}",
                outputs.len()
            ));
        }
        let is_of_one = emit.copied().is_some() || matches!(emit, EmitKind::Items | EmitKind::Rejected(_));
        if outputs.len() > 1 && is_of_one {
            return Some(
                "records of documents, items and rejected candidates go to one place: copy the file".into(),
            );
        }
        let corrected = outputs.iter().filter(|output| output.is_corrected()).count();
        if emit.is_of_changes() && corrected > 0 && corrected < outputs.len() {
            let what = "a file gets changes epoch by epoch, and a topic and tables in one step at the end: \
                take --emit pairs or clusters, or one replay for each";
            return Some(what.to_owned());
        }
        outputs.iter().enumerate().find_map(|(at, output)| {
            let (_, what) = outputs[..at].iter().find_map(|other| shared(&other.sink, &output.sink))?;
            Some(format!("{what} is named twice"))
        })
    }
}

/// The place that is typed.
fn place(typed: &Path) -> Result<SinkConfig, String> {
    if let Some(topic) = typed.to_str().and_then(|text| text.strip_prefix("kafka:")) {
        return topic_of(topic);
    }
    match typed.to_str().and_then(TablesConfig::from_typed) {
        Some(tables) => tables.map(SinkConfig::Tables),
        None => {
            let path = Some(typed.to_owned()).filter(|path| path != Path::new("-"));
            Ok(SinkConfig::Lines { path, mark: None })
        }
    }
}

/// A topic, with the names that a deployment file gives by default to what is beside it.
fn topic_of(topic: &str) -> Result<SinkConfig, String> {
    if cfg!(not(feature = "kafka")) {
        return Err(dupflow_run::missing_feature("Kafka", "kafka"));
    }
    if !is_topic_name(topic) {
        return Err("name a topic, as in \"kafka:pairs\"; its brokers are those of --brokers".to_owned());
    }
    Ok(SinkConfig::Kafka {
        topic: topic.to_owned(),
        progress_topic: format!("{topic}-progress"),
        transactional_id: format!("dupflow-{topic}"),
        transaction: TRANSACTION,
        envelope: OutputEnvelope::Delta,
    })
}

/// A topic whose records say what is in force.
fn as_they_are(sink: SinkConfig) -> SinkConfig {
    match sink {
        SinkConfig::Kafka { topic, progress_topic, transactional_id, transaction, .. } => SinkConfig::Kafka {
            topic,
            progress_topic,
            transactional_id,
            transaction,
            envelope: OutputEnvelope::Upsert,
        },
        other => other,
    }
}
