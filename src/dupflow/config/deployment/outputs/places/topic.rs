//! Results in a topic.

use std::time::Duration;

use super::place::{OpenError, OpenedOutput, OutputPlace, OutputSettings, Place, PlaceKind, ReadPlace};
use crate::config::deployment::outputs::{OutputAnswer, OutputFormat};
use crate::config::deployment::values::{is_topic_name, required_topic, topic_name};
use crate::config::settings::FileSettings;
use dupflow_connectors::kafka::OutputEnvelope;
use dupflow_run::missing_feature;

pub(super) const KAFKA: PlaceKind = PlaceKind {
    name: "kafka",
    keys: &[&[
        "sink.topic",
        "sink.progress_topic",
        "sink.transactional_id",
        "sink.transaction_seconds",
        "sink.envelope",
    ]],
    missing: || cfg!(not(feature = "kafka")).then(|| missing_feature("Kafka", "kafka")),
    read: ReadPlace {
        table: |settings| OutputPlace::new(TopicPlace::read(settings)),
        typed: |typed| Some(TopicPlace::typed(typed.to_str()?.strip_prefix("kafka:")?).map(OutputPlace::new)),
    },
};

/// Seconds after which a broker aborts an open transaction.
const TRANSACTION_SECONDS: u64 = 60;

/// A topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicPlace {
    /// Its name.
    pub topic: String,
    /// The topic of marks.
    pub progress_topic: String,
    /// The transactional id: one run at a time writes under it.
    pub transactional_id: String,
    /// The transaction timeout.
    pub transaction: Duration,
    /// The format of the values.
    pub envelope: OutputEnvelope,
}

impl TopicPlace {
    /// A topic, with the names that it gives by default to what is beside it.
    fn named(topic: String) -> Self {
        Self {
            progress_topic: format!("{topic}-progress"),
            transactional_id: format!("dupflow-{topic}"),
            transaction: Duration::from_secs(TRANSACTION_SECONDS),
            envelope: OutputEnvelope::Delta,
            topic,
        }
    }

    fn read(settings: &mut FileSettings) -> Self {
        let named = Self::named(required_topic(settings, "sink.topic").unwrap_or_default());
        let progress_topic = settings.read("sink.progress_topic", topic_name);
        let transactional_id = settings
            .read("sink.transactional_id", |v| v.text().filter(|name| !name.is_empty()).map(str::to_owned));
        let seconds = settings.read("sink.transaction_seconds", |v| v.integer(1..=900));
        let envelopes = OutputEnvelope::ALL.map(|envelope| (envelope.name(), envelope));
        Self {
            progress_topic: progress_topic.unwrap_or(named.progress_topic),
            transactional_id: transactional_id.unwrap_or(named.transactional_id),
            transaction: seconds.map_or(named.transaction, Duration::from_secs),
            envelope: settings.choose("sink.envelope", &envelopes, &[]).unwrap_or_default(),
            topic: named.topic,
        }
    }

    fn typed(topic: &str) -> Result<Self, String> {
        if let Some(what) = (KAFKA.missing)() {
            return Err(what);
        }
        if !is_topic_name(topic) {
            return Err("name a topic, as in \"kafka:pairs\"; its brokers are those of --brokers".to_owned());
        }
        Ok(Self::named(topic.to_owned()))
    }

    /// Whether it has a topic of this name: that of its values, or that of its marks.
    pub fn has(&self, topic: &str) -> bool {
        topic == self.topic || topic == self.progress_topic
    }
}

impl Place for TopicPlace {
    fn kind(&self) -> &'static str {
        KAFKA.name
    }

    fn name(&self) -> String {
        format!("topic \"{}\"", self.topic)
    }

    fn refusal(&self, answer: OutputAnswer, _: OutputFormat, _: bool) -> Option<&'static str> {
        if answer.is_list() {
            return Some(
                "a list says at the end which documents stay, and a topic is told what each epoch changes: \
                 take \"decisions\", which say of each document which older one it repeats, also when that \
                 changes (\"current\"), or write the list to a file",
            );
        }
        (!answer.is_of_changes()).then_some(
            "a topic takes changes: set it to \"deltas\", \"cluster-deltas\" or \"decisions\", and \
             sink.envelope to \"upsert\" for the pairs or the clusters as they are",
        )
    }

    /// One topic holds changes or present values, not both.
    fn described(&self, _: OutputAnswer) -> Vec<(&'static str, &'static str)> {
        vec![("sink.envelope", self.envelope.name())]
    }

    #[cfg(feature = "kafka")]
    fn open(&self, of: &dyn OutputSettings) -> Result<OpenedOutput, OpenError> {
        use dupflow_connectors::kafka::{KafkaOutput, KafkaSink};
        use dupflow_connectors::sinks::answers::Written;

        let Written::Changes(changes) = of.answer().written else { return Err(no_changes(self)) };
        let output = KafkaOutput {
            connection: of.connection().clone(),
            topic: self.topic.clone(),
            progress_topic: self.progress_topic.clone(),
            transactional_id: self.transactional_id.clone(),
            envelope: self.envelope,
            dead_letter: of.letters_topic().map(str::to_owned),
            timeout: self.transaction,
            refresh: of.refresh(),
            run: of.run().to_owned(),
        };
        Ok((Box::new(KafkaSink::for_changes(output, changes(of))), None))
    }

    #[cfg(not(feature = "kafka"))]
    fn open(&self, _: &dyn OutputSettings) -> Result<OpenedOutput, OpenError> {
        Err(no_changes(self))
    }
}

/// What is refused before it is opened.
fn no_changes(place: &TopicPlace) -> OpenError {
    (place.name().into(), std::io::Error::other("it takes changes, in a build with the feature \"kafka\""))
}
