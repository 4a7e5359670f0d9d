//! Reads the texts of a topic's records back, with a separate client.
//!
//! A call asks for the offsets of the partition, and reads from the record's offset on until it gets a record
//! or the end. That is the record itself, or a later one if it was compacted away. The broker sends little
//! more than one record. The call waits at most for the connection's patience.

use std::sync::Arc;
use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Message as _};

use super::begin::PartitionStarts;
use super::reader::put;
use super::topic::{DetachedClient, Kafka};
use crate::formats::{KeyedRecords, ShapeReader};
use crate::intake::{FoundText, NoText, SourceError, Texts, of_event};
use crate::kafka::broker::{KafkaFailure, code_of, index, is_of_group, partitions_at};
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::doc::{DocId, Position};
use dupflow_core::text::TextColumns;
use dupflow_core::time::{Clock, SystemClock};

/// How long each poll waits.
const STEP: Duration = Duration::from_millis(50);

/// How long to wait for a record after the end of the partition was reported.
const AT_THE_END: Duration = Duration::from_millis(500);

/// Settings in addition to those of the reader's client: fetching ahead is of no use here.
const SETTINGS: [(&str, &str); 4] = [
    ("queued.min.messages", "1"),
    ("queued.max.messages.kbytes", "1024"),
    ("max.partition.fetch.bytes", "65536"),
    ("fetch.wait.max.ms", "10"),
];

/// Reads the texts of a topic back.
pub(super) struct KafkaTexts {
    kafka: Kafka,
    shape: ShapeReader,
    /// The client: created by the first call, and dropped after a failed one.
    client: Option<DetachedClient>,
}

impl KafkaTexts {
    pub(super) fn new(kafka: Kafka, columns: &TextColumns) -> Self {
        let shape = ShapeReader::new(&kafka.shape, columns, &FieldRules::default());
        Self { kafka, shape, client: None }
    }

    /// Reads the record and its text; `None` if another record or the end is found in its place.
    fn read(
        &self,
        client: &DetachedClient,
        id: &DocId,
        position: Position,
    ) -> Result<Option<FoundText>, NoText> {
        let Position { partition, offset } = position;
        let place = self.place(position);
        let (first, end) = PartitionStarts { kafka: &self.kafka, client: client.get() }
            .held(partition)
            .map_err(|e| failed(&e))?;
        if offset < first {
            return Err(NoText::Gone(format!(
                "{place} has expired: the partition holds what comes from offset {first} on"
            )));
        }
        if offset >= end {
            return Err(NoText::Gone(format!(
                "{place} is not there: the partition ends before offset {end}, it has been recreated"
            )));
        }
        let unread = |error: &KafkaError| {
            NoText::Failed(KafkaFailure::from_error(error, &self.kafka.what()).to_string())
        };
        let (list, number) = (partitions_at(&self.kafka.topic, [(partition, offset)]), index(partition));
        list.and_then(|list| client.get().assign(&list)).map_err(|error| unread(&error))?;
        let clock = SystemClock::start();
        let mut is_at_end = false;
        let mut last_poll = self.kafka.connection.patience;
        while clock.now() < last_poll {
            match client.get().poll(STEP) {
                Some(Ok(message)) if message.partition() == number => {
                    let is_it = u64::try_from(message.offset()) == Ok(offset);
                    return is_it.then(|| self.of_message(&message, id, &place)).transpose();
                }
                // The reported end may be older than the broker's: an existing record follows at once.
                Some(Err(KafkaError::PartitionEOF(ended))) if ended == number => {
                    last_poll = last_poll.min(clock.now() + AT_THE_END);
                    is_at_end = true;
                }
                Some(Err(error)) => {
                    let code = code_of(&error);
                    // The record expired between the two requests.
                    let is_lost = matches!(
                        code,
                        Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange)
                    );
                    if is_lost {
                        return Err(NoText::Gone(format!("{place} has expired")));
                    }
                    let failure = KafkaFailure::from_error(&error, &self.kafka.what());
                    if !failure.is_retriable() && !is_of_group(&error) {
                        return Err(unread(&error));
                    }
                }
                Some(Ok(_)) | None => {}
            }
        }
        if is_at_end {
            return Ok(None);
        }
        Err(NoText::Failed(format!("{place} cannot be read: no broker answers")))
    }

    /// The same; the client is kept if it succeeded.
    fn read_with(
        &mut self,
        client: DetachedClient,
        id: &DocId,
        position: Position,
    ) -> Result<Option<FoundText>, NoText> {
        let found = self.read(&client, id, position);
        // Stops fetching: the next call must not get these records.
        let is_idle = client.get().assign(&TopicPartitionList::new()).is_ok();
        if is_idle && !matches!(found, Ok(None) | Err(NoText::Failed(_))) {
            self.client = Some(client);
        }
        found
    }

    fn place(&self, Position { partition, offset }: Position) -> String {
        format!("offset {offset} of partition {partition} of topic \"{}\"", self.kafka.topic)
    }

    fn of_message(
        &self,
        message: &BorrowedMessage<'_>,
        id: &DocId,
        place: &str,
    ) -> Result<FoundText, NoText> {
        let mut records = KeyedRecords::with_shape(Arc::clone(&self.kafka.shape));
        put(message, &mut records);
        match records.iter().next() {
            Some(record) => {
                let found = of_event(id, place, self.shape.read(&record, &records.headers(0)))?;
                Ok(found.at(place.to_owned()))
            }
            None => Err(NoText::Gone(format!("{place} holds nothing"))),
        }
    }
}

impl Texts for KafkaTexts {
    fn text(&mut self, id: &DocId, position: Position) -> Result<FoundText, NoText> {
        // A reused client may still report the end that it reached before. If it does not find the record, a
        // new client looks for it.
        if let Some(client) = self.client.take()
            && let Some(found) = self.read_with(client, id, position)?
        {
            return Ok(found);
        }
        let client = self.kafka.client_with(&SETTINGS).map_err(|error| failed(&error))?;
        let found = self.read_with(client, id, position)?;
        found.ok_or_else(|| {
            let place = self.place(position);
            NoText::Gone(format!("{place} is held no more: the topic has been compacted, or it was aborted"))
        })
    }
}

fn failed(error: &SourceError) -> NoText {
    NoText::Failed(error.to_string())
}
