//! A topic as the source.

use std::time::Duration;

use super::files::{RECORD_KEYS, SURROGATES_KEY, described_operation, described_surrogates};
use super::layout::{operation, surrogates};
use super::place::{SourceConfig, SourceKind, SourcePlace, SourceSettings, TOPIC_REFRESH, fields_of};
use crate::config::deployment::values::{dotted_names, required_topic, seconds};
use crate::config::settings::{ConfigValue, FileSettings, without_effect};
use dupflow_connectors::formats::{RecordShape, ValueFormat, named_path};
use dupflow_connectors::intake::Source;
use dupflow_connectors::kafka::Start;
use dupflow_core::description::{Description, FieldValue};
use dupflow_run::missing_feature;

pub(super) const KAFKA: SourceKind = SourceKind {
    name: "kafka",
    keys: &[KEYS, &RECORD_KEYS, &COMMIT_KEYS],
    missing: || cfg!(not(feature = "kafka")).then(|| missing_feature("Kafka", "kafka")),
    read: |settings, _| SourceConfig::new(read(settings)),
};

const KEYS: &[&str] = &["source.topic", SOURCE_START, "source.headers", "source.refresh_seconds"];
/// Also of tables.
pub(super) const COMMIT_KEYS: [&str; 3] = ["commit.interval", "commit.records", "commit.bytes"];

/// Where a topic is read from. It decides nothing where there is a mark, until the input is read again.
pub const SOURCE_START: &str = "source.start";

/// A topic.
#[derive(Clone, Debug, PartialEq)]
pub struct TopicSource {
    /// Its name.
    pub topic: String,
    /// Where reading begins if there is no mark.
    pub start: Start,
    /// How a record's value is mapped to a document.
    pub shape: RecordShape,
    /// How often the reader looks for new partitions.
    pub refresh: Duration,
}

impl SourcePlace for TopicSource {
    fn name(&self) -> String {
        format!("topic \"{}\"", self.topic)
    }

    fn text(&self) -> String {
        self.shape.text.join(".")
    }

    /// A topic is named in the mark.
    fn description(&self) -> Vec<(&'static str, String)> {
        let mut found = Vec::new();
        let mut put = |key, value: String, usual: &str| {
            if value != usual {
                found.push((key, value));
            }
        };
        let format = match self.shape.format {
            ValueFormat::Auto | ValueFormat::Row => "",
            ValueFormat::Text => "text",
            ValueFormat::Json => "json",
            ValueFormat::Debezium => "debezium",
        };
        put("source.format", format.to_owned(), "");
        put("source.text_path", self.shape.text.join("."), "text");
        put("source.ts_path", self.shape.ts.join("."), "ts");
        put("source.op_path", described_operation(&self.shape.op.join(".")), "op");
        put("json.surrogates", described_surrogates(self.shape.surrogates), "");
        put("source.id_path", self.shape.id.as_ref().map_or_else(String::new, |id| id.join(".")), "");
        found
    }

    fn further_description(&self) -> Description {
        Description::new()
            .with("source.kind", "kafka")
            .with("source.headers", FieldValue::list(&self.shape.headers))
            .with(SOURCE_START, &*self.start.to_string())
    }

    fn shared(&self) -> Description {
        Description::new()
            .with("source.topic", self.topic.as_str())
            .with("source.shape", fields_of(&self.shape).as_str())
    }

    fn topic_refresh(&self) -> Duration {
        self.refresh
    }

    #[cfg(feature = "kafka")]
    fn open(&self, of: SourceSettings<'_>) -> Box<dyn Source> {
        use std::sync::Arc;

        let part = |n: usize| u32::try_from(n).unwrap_or(u32::MAX);
        Box::new(dupflow_connectors::kafka::Kafka {
            connection: of.connection.clone(),
            topic: self.topic.clone(),
            start: self.start.clone(),
            share: (part(of.share.index), part(of.share.count)),
            shape: Arc::new(RecordShape { needs_time: of.needs_time, ..self.shape.clone() }),
            limits: of.limits,
            refresh: self.refresh,
            as_of: Arc::default(),
            backlog: Arc::default(),
        })
    }

    #[cfg(not(feature = "kafka"))]
    fn open(&self, _: SourceSettings<'_>) -> Box<dyn Source> {
        unreachable!("a deployment without the feature names no topic")
    }
}

/// Reads the keys of `[source]`.
fn read(settings: &mut FileSettings) -> TopicSource {
    let formats = [
        ("auto", ValueFormat::Auto),
        ("text", ValueFormat::Text),
        ("json", ValueFormat::Json),
        ("debezium", ValueFormat::Debezium),
    ];
    let format = settings.choose("source.format", &formats, &[]).unwrap_or(ValueFormat::Auto);
    if format == ValueFormat::Text && settings.sound(&["source.format"]) {
        without_effect(
            settings,
            "source.format",
            "text",
            &["source.text_path", "source.id_path", "source.ts_path", "source.op_path", SURROGATES_KEY],
        );
    }
    let text = settings.read("source.text_path", |v| dotted_names(v.text()?));
    let id = settings.read("source.id_path", |v| match v.text()? {
        "" => Some(None),
        path => dotted_names(path).map(Some),
    });
    let name = |value: &ConfigValue| value.text().filter(|name| !name.is_empty()).map(str::to_owned);
    let default = RecordShape::default();
    let shape = RecordShape {
        format,
        text: text.unwrap_or_else(|| vec!["text".to_owned()]),
        ts: settings
            .read("source.ts_path", |v| dotted_names(v.text()?))
            .unwrap_or_else(|| vec!["ts".to_owned()]),
        op: settings.read("source.op_path", operation).map(|op| named_path(&op)).unwrap_or(default.op),
        id: id.flatten(),
        surrogates: surrogates(settings, SURROGATES_KEY),
        headers: settings.read("source.headers", |v| v.list(name)).unwrap_or_default(),
        // Set later, from the retention of the pipeline.
        needs_time: false,
        canonical_url: false,
        has_changes: true,
    };
    TopicSource {
        topic: required_topic(settings, "source.topic").unwrap_or_default(),
        start: settings.read("source.start", |v| v.text()?.parse().ok()).unwrap_or_default(),
        shape,
        refresh: seconds(settings, "source.refresh_seconds", 1, TOPIC_REFRESH),
    }
}
