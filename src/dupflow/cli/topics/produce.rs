//! `dupflow produce`: writes a recorded feed into the topic that a deployment reads.
//!
//! The key of a record is the document's id, so that all records of a document are in one partition. The
//! value has the shape that the deployment reads; a delete has no value. The timestamp is the event's `ts`.
//! Only the text is written, no additional fields.

use std::path::PathBuf;
use std::process::ExitCode;
use std::str::FromStr;
use std::time::Duration;

use anyhow::{Context, bail};
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::producer::{BaseRecord, Producer as _};
use serde_json::{Value, json};

use super::times::{self, TopicTimes};
use crate::cli::arguments::inputs::InputArgs;
use crate::cli::arguments::problems::{self, Problems};
use crate::cli::arguments::verbosity::Verbosity;
use crate::config::{Deployment, TopicSource};
use dupflow_connectors::formats::{RecordShape, ValueFormat};
use dupflow_connectors::inputs::for_each_event;
use dupflow_connectors::intake::BadRecords;
use dupflow_connectors::kafka::broker::{Admin, KafkaFailure, Producer, TopicRequest};
use dupflow_core::doc::DocEvent;
use dupflow_core::text::TextColumns;
use dupflow_core::time::{Clock, SystemClock};

/// Arguments of `produce`.
#[derive(Debug, clap::Args)]
pub struct Args {
    /// The deployment file, such as config/kafka.toml; the topic that it reads is written.
    #[arg(short, long, value_name = "CONFIG")]
    pub config: PathBuf,

    /// The rate: "N/s" records or "NMB/s" [default: as fast as the broker accepts them].
    #[arg(long, value_name = "RATE")]
    pub rate: Option<Rate>,

    /// Make the topic with this number of partitions if it is missing.
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=100_000))]
    pub partitions: Option<u32>,

    /// The feed.
    #[command(flatten)]
    pub inputs: InputArgs,
}

/// A limit on the rate of writing.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Rate {
    /// Records per second, above 0.
    Records(f64),
    /// Bytes per second, above 0.
    Bytes(f64),
}

impl FromStr for Rate {
    type Err = String;

    fn from_str(rate: &str) -> Result<Self, String> {
        let number = |text: &str| text.parse().ok().filter(|n: &f64| *n > 0.0 && n.is_finite());
        let found = match rate.strip_suffix("MB/s") {
            Some(mb) => number(mb).map(|mb| Self::Bytes(mb * 1e6)),
            None => rate.strip_suffix("/s").and_then(number).map(Self::Records),
        };
        found.ok_or_else(|| {
            "expected a number above 0 and \"/s\" or \"MB/s\", as in \"500/s\" or \"2MB/s\"".to_owned()
        })
    }
}

/// Writes the feed, and prints the counts on standard error.
///
/// # Errors
/// All problems of the deployment and the inputs; then errors of the broker; then inputs that hold records
/// but no document.
pub(in crate::cli) fn run(
    args: &Args,
    mut problems: Problems,
    verbosity: Verbosity,
) -> anyhow::Result<ExitCode> {
    let environment = |name: &str| std::env::var(name).ok();
    let deployment = problems.take(Deployment::load(&args.config, &environment));
    let inputs = args.inputs.resolve(&mut problems);
    if deployment.as_ref().is_some_and(|place| place.source.as_a::<TopicSource>().is_none()) {
        problems.note("source.kind: the deployment reads no topic, and a topic is to be written");
    }
    let (deployment, inputs) = problems.settle(deployment.zip(inputs))?;
    let Some(TopicSource { topic, shape, .. }) = deployment.source.as_a() else { bail!("no topic") };

    let admin = Admin::new(&deployment.kafka)?;
    let wanted = TopicRequest { topic, partitions: args.partitions, compacted: false };
    if let Some(settings) = times::make(&admin, wanted)? {
        let settings: Vec<_> = settings.iter().map(|(name, value)| format!("{name}={value}")).collect();
        verbosity.print(&format!("topic \"{topic}\" is made, with {}\n", settings.join(", ")))?;
    }
    // Java clients choose the same partition for a key.
    let own = [("enable.idempotence", "true"), ("partitioner", "murmur2_random"), ("linger.ms", "20")];
    let producer = deployment.kafka.producer(&format!("topic \"{topic}\""), &own)?;
    let mut written = ProducedRecords {
        producer: &producer,
        topic,
        shape,
        times: TopicTimes::from_settings(&admin, topic)?,
        rate: args.rate,
        clock: SystemClock::start(),
        records: 0,
        bytes: 0,
        failure: None,
    };
    let bad = BadRecords::default();
    for_each_event(inputs, &TextColumns::default(), &bad, |_, event| written.event(&event))?;
    let ProducedRecords { times, records, bytes, failure, .. } = written;
    times.warn(topic);
    if let Some(refused) = failure {
        return Err(refused).context("nothing more was written");
    }
    while producer.flush(Duration::from_secs(5)).is_err() {
        tracing::warn!(records = producer.in_flight_count(), "waiting for the broker");
    }
    if let Some(undelivered) = producer.context().undelivered() {
        return Err(undelivered).context("not all records were written");
    }
    let empty = bad.without_document();
    let bad: u64 = bad.counts().values().sum();
    verbosity.print(&format!(
        "{records} records ({bytes} bytes) to topic \"{topic}\", {bad} bad records left out\n"
    ))?;
    problems::check_demands(&empty)?;
    Ok(ExitCode::SUCCESS)
}

/// The records written so far.
struct ProducedRecords<'a> {
    producer: &'a Producer,
    topic: &'a str,
    shape: &'a RecordShape,
    times: TopicTimes,
    rate: Option<Rate>,
    clock: SystemClock,
    records: u64,
    bytes: u64,
    /// The first error of the client; nothing is written after it.
    failure: Option<KafkaFailure>,
}

impl ProducedRecords<'_> {
    fn event(&mut self, event: &DocEvent<'_>) {
        if self.failure.is_some() {
            return;
        }
        let time = match self.times.time(event) {
            Ok(time) => time,
            Err(refused) => return self.failure = Some(refused),
        };
        let value = event.text.as_deref().map(|text| value(self.shape, text));
        self.records += 1;
        self.bytes += (event.id.as_bytes().len() + value.as_ref().map_or(0, Vec::len)) as u64;
        let mut record: BaseRecord<'_, [u8], [u8]> = BaseRecord::to(self.topic).key(event.id.as_bytes());
        record.payload = value.as_deref();
        record.timestamp = time;
        self.failure = loop {
            match self.producer.send(record) {
                Ok(()) => break None,
                Err((KafkaError::MessageProduction(RDKafkaErrorCode::QueueFull), refused)) => {
                    record = refused;
                    self.producer.poll(Duration::from_millis(1));
                }
                Err((error, _)) => {
                    break Some(KafkaFailure::from_error(&error, &format!("topic \"{}\"", self.topic)));
                }
            }
        };
        self.producer.poll(Duration::ZERO);
        while let Some(wait) = self.ahead() {
            self.producer.poll(wait.min(Duration::from_millis(100)));
        }
    }

    /// How long to wait until the rate allows the next record.
    #[expect(clippy::cast_precision_loss, reason = "a rate needs no more than a float's 53 bits")]
    fn ahead(&self) -> Option<Duration> {
        let seconds = match self.rate? {
            Rate::Records(rate) => self.records as f64 / rate,
            Rate::Bytes(rate) => self.bytes as f64 / rate,
        };
        Duration::try_from_secs_f64(seconds)
            .ok()?
            .checked_sub(self.clock.now())
            .filter(|wait| !wait.is_zero())
    }
}

/// The value of a record in the shape that the deployment reads.
fn value(shape: &RecordShape, text: &str) -> Vec<u8> {
    let row = || shape.text.iter().rev().fold(Value::from(text), |inner, name| json!({ name: inner }));
    let is_misread = || {
        let starts = text.trim_start_matches('\u{feff}').trim_start();
        starts.is_empty() || starts.starts_with(['{', '\0']) || starts.trim_ascii() == "null"
    };
    match shape.format {
        ValueFormat::Text | ValueFormat::Row => text.as_bytes().to_vec(),
        ValueFormat::Auto if !is_misread() => text.as_bytes().to_vec(),
        ValueFormat::Auto | ValueFormat::Json => row().to_string().into_bytes(),
        ValueFormat::Debezium => json!({ "op": "u", "after": row() }).to_string().into_bytes(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_are_of_records_or_of_bytes() {
        assert_eq!("500/s".parse(), Ok(Rate::Records(500.0)));
        assert_eq!("2.5MB/s".parse(), Ok(Rate::Bytes(2.5e6)));
        for wrong in ["", "500", "0/s", "-1/s", "x/s", "MB/s", "inf/s"] {
            assert!(wrong.parse::<Rate>().unwrap_err().contains("\"500/s\""), "{wrong}");
        }
    }

    #[test]
    fn a_text_is_read_back_as_it_was() {
        let of = |format, text: &str| {
            let shape =
                RecordShape { format, text: vec!["page".into(), "body".into()], ..RecordShape::default() };
            String::from_utf8(value(&shape, text)).unwrap()
        };
        assert_eq!(of(ValueFormat::Auto, "plain"), "plain");
        for text in ["", " ", "null", "{}", "\u{feff}{", "\0a"] {
            assert_eq!(of(ValueFormat::Auto, text), json!({"page": {"body": text}}).to_string());
        }
        assert_eq!(of(ValueFormat::Text, "{}"), "{}");
        assert_eq!(of(ValueFormat::Json, "t"), r#"{"page":{"body":"t"}}"#);
        assert_eq!(of(ValueFormat::Debezium, "t"), r#"{"after":{"page":{"body":"t"}},"op":"u"}"#);
    }
}
