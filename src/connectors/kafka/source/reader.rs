//! The reader of a topic: polls records, gathers batches, pushes them.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;

use rdkafka::TopicPartitionList;
use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::message::{BorrowedMessage, Headers as _, Message as _};

use super::begin::PartitionStarts;
use super::topic::{DetachedClient, Kafka};
use super::watch;
use crate::formats::{KeyedRecord, KeyedRecords};
use crate::intake::{
    BadRecords, Batch, Closed, LateReading, Payload, Queue, Refused, SourceError, SourceReader,
};
use crate::kafka::broker::{KafkaFailure, code_of, index, is_of_group, partitions_at, topic_by_name};
use crate::mark::Topic;
use dupflow_core::time::{Clock, Offsets, SystemClock, unix_milliseconds};

/// A batch is pushed once it has this many bytes or records; a record is never split.
const BATCH_BYTES: usize = 128 << 10;
const BATCH_RECORDS: usize = 128;

/// How long a poll waits without records, and how long a reader waits that may not poll. Nothing else wakes
/// the reader when the run ends or a line is crossed.
const WAIT: Duration = Duration::from_millis(50);

/// Interval at which an epoch is closed even if no records arrive.
const SIGN_OF_LIFE: Duration = Duration::from_mins(10);

/// Timeout of the requests for the topic's id and for the ends of partitions.
const END: Duration = Duration::from_secs(2);

/// How long all brokers may not know the topic until it counts as deleted.
const ABSENT: Duration = Duration::from_secs(5);

/// Reads the partitions of one process.
pub(super) struct KafkaReader {
    kafka: Kafka,
    begin: Offsets,
    input: Arc<str>,
}

/// A partition that is being read.
#[derive(Debug)]
pub(super) struct PartitionState {
    /// The offset after the last record from the client, or after a range that is known to have no record.
    pub(super) next: u64,
    /// The offset after the last batch that the queue has accepted.
    pushed: u64,
    /// Records of the next batch.
    open: KeyedRecords,
    /// Batches that have not been pushed, in order.
    waiting: VecDeque<Batch>,
    /// Whether the client's fetching of this partition is paused.
    paused: bool,
    /// The partition was added during the run, and none of its batches has been pushed.
    is_new: bool,
    /// The offset from which on records are live, as far as is known.
    live_from: u64,
}

/// Whether the queue accepts more.
enum PushRoom {
    Yes,
    Full,
}

/// How many of a partition's batches have been pushed.
enum PushedUpTo {
    All,
    UpToLine,
    UpToRoom,
}

impl KafkaReader {
    pub(super) fn new(kafka: Kafka, begin: Offsets) -> Self {
        let input = kafka.topic.as_str().into();
        Self { kafka, begin, input }
    }
}

impl SourceReader for KafkaReader {
    fn read(&mut self, queue: &Queue, _: &BadRecords, clock: &dyn Clock) -> Result<(), SourceError> {
        let client = self.kafka.client()?;
        let mut reading = TopicReading {
            kafka: &self.kafka,
            input: &self.input,
            client: &client,
            queue,
            partitions: BTreeMap::new(),
            is_live: false,
            topic: None,
            has_said_live: false,
        };
        reading.add(&self.begin, false)?;
        let _watching = watch::start(&self.kafka);
        let every = self.kafka.as_of.interval(self.kafka.refresh);
        let mut refresh_at = clock.now() + every;
        // Process 0 does this for all processes.
        let looks = self.kafka.share.0 == 0;
        let mut sign_at = clock.now() + SIGN_OF_LIFE;
        if looks {
            reading.look()?;
        }
        loop {
            match reading.hand_over() {
                Err(ReaderEnd::Closed) => return Ok(()),
                Err(ReaderEnd::Failed(error)) => return Err(error),
                Ok(PushRoom::Full) => {
                    if queue.wait_for_room(WAIT).is_err() {
                        return Ok(());
                    }
                    continue;
                }
                // With nothing to push, only this call shows that the run has ended.
                Ok(PushRoom::Yes) if queue.wait_for_room(Duration::ZERO).is_err() => return Ok(()),
                Ok(PushRoom::Yes) => {}
            }
            reading.report();
            if clock.now() >= refresh_at {
                reading.refresh()?;
                if looks {
                    reading.look()?;
                }
                if looks && clock.now() >= sign_at {
                    reading.say_nothing();
                    sign_at = clock.now() + SIGN_OF_LIFE;
                }
                refresh_at = clock.now() + every;
            }
            reading.gather()?;
        }
    }
}

/// Why reading ends.
enum ReaderEnd {
    Closed,
    Failed(SourceError),
}

impl From<Closed> for ReaderEnd {
    fn from(_: Closed) -> Self {
        Self::Closed
    }
}

impl From<SourceError> for ReaderEnd {
    fn from(error: SourceError) -> Self {
        Self::Failed(error)
    }
}

/// The state of reading some partitions.
struct TopicReading<'r> {
    kafka: &'r Kafka,
    input: &'r Arc<str>,
    client: &'r DetachedClient,
    queue: &'r Queue,
    partitions: BTreeMap<u32, PartitionState>,
    /// Whether all lines have been crossed, which is final.
    is_live: bool,
    /// The topic's identity, once it is known.
    topic: Option<Topic>,
    /// Whether the beginning of live reading has been logged.
    has_said_live: bool,
}

impl TopicReading<'_> {
    /// Begins to read partitions at these offsets, and pushes an empty batch for each. The batch of a
    /// partition that was added during the run ends its epoch, so that the progress of that epoch has the
    /// partition's beginning.
    fn add(&mut self, begin: &Offsets, is_new: bool) -> Result<(), SourceError> {
        if begin.is_empty() {
            return Ok(());
        }
        let list = partitions_at(&self.kafka.topic, begin.iter().map(|(number, at)| (*number, *at)));
        let list = list.map_err(|error| self.failed(&error))?;
        for (partition, offset) in begin {
            let open = KeyedRecords::with_shape(Arc::clone(&self.kafka.shape));
            let waiting = VecDeque::new();
            self.kafka.backlog.read(*partition, *offset);
            let mut begun = PartitionState {
                next: *offset,
                pushed: *offset,
                open,
                waiting,
                paused: false,
                is_new,
                live_from: *offset,
            };
            begun.waiting.push_back(batch(self.input, *partition, begun.open.clone(), *offset));
            self.partitions.insert(*partition, begun);
        }
        self.client.get().incremental_assign(&list).map_err(|error| self.failed(&error))
    }

    /// Reports how far each partition has been read to the backlog. Logs once from which offsets on the run
    /// is live.
    fn report(&mut self) {
        for (number, partition) in &self.partitions {
            self.kafka.backlog.read(*number, partition.pushed);
        }
        if self.has_said_live || !self.queue.is_live() {
            return;
        }
        self.has_said_live = true;
        let from =
            self.partitions.iter().map(|(n, partition)| format!("{} of partition {n}", partition.live_from));
        let from: Vec<_> = from.collect();
        tracing::info!(topic = self.kafka.topic, "live from offset {}", from.join(", "));
    }

    /// Looks for new partitions. If the broker does not answer, they are found the next time.
    fn refresh(&mut self) -> Result<(), SourceError> {
        let metadata = self.client.get().fetch_metadata(Some(&self.kafka.topic), Duration::from_secs(2));
        let Ok(metadata) = metadata else { return Ok(()) };
        let found = metadata.topics().iter().flat_map(|topic| topic.partitions());
        let found = found.filter_map(|partition| u32::try_from(partition.id()).ok());
        let new: Vec<_> =
            found.filter(|p| self.kafka.is_mine(*p) && !self.partitions.contains_key(p)).collect();
        if new.is_empty() {
            return Ok(());
        }
        // A separate client: a request polls its client too, which would lose records that the reader's
        // client has fetched.
        let client = self.kafka.client()?;
        let beginning = PartitionStarts { kafka: self.kafka, client: client.get() };
        let mut begin = Offsets::new();
        for partition in new {
            let (first, _) = beginning.held(partition)?;
            tracing::info!(topic = self.kafka.topic, partition, "a new partition");
            begin.insert(partition, first);
        }
        self.add(&begin, true)
    }

    /// Checks that the topic has not been replaced, and notes the ends of all partitions, including those of
    /// other processes. If the broker does not answer, this is done the next time.
    fn look(&mut self) -> Result<(), SourceError> {
        let (at, client) = (unix_milliseconds(), self.client.get());
        if let Ok(Some(now)) = topic_by_name(client, &self.kafka.topic, END) {
            let first = self.topic.get_or_insert_with(|| now.clone());
            if !first.is(&now) {
                let what = format!(
                    "{} has been recreated while it was read: it is {now} now; --reconcile reads what it \
                     holds and writes what differs",
                    self.kafka.what()
                );
                return Err(SourceError::Failed { input: Arc::clone(self.input), what });
            }
        }
        let Ok(metadata) = client.fetch_metadata(Some(&self.kafka.topic), END) else { return Ok(()) };
        let found = metadata.topics().iter().flat_map(|topic| topic.partitions());
        let end = |number: i32| {
            let (_, end) = client.fetch_watermarks(&self.kafka.topic, number, END).ok()?;
            Some((u32::try_from(number).ok()?, u64::try_from(end).ok()?))
        };
        if let Some(ends) = found.map(|partition| end(partition.id())).collect() {
            let input = || Arc::clone(self.input);
            let late = |late: LateReading| SourceError::Failed { input: input(), what: late.to_string() };
            self.kafka.as_of.note(at, ends).map_err(late)?;
        }
        Ok(())
    }

    /// Closes an epoch without a record, by an empty batch.
    fn say_nothing(&mut self) {
        if let Some((number, partition)) = self.partitions.iter_mut().next() {
            let next = partition.waiting.back().map_or(partition.pushed, |last| last.next);
            partition.waiting.push_back(batch(self.input, *number, KeyedRecords::default(), next));
        }
    }

    /// Takes records from the client until it has no more or a batch is full.
    fn gather(&mut self) -> Result<(), SourceError> {
        // The first poll waits at most this long, since a partition that waits for a line has to be tried
        // again.
        let mut wait = WAIT;
        loop {
            match self.client.get().poll(wait) {
                None => break,
                Some(Ok(message)) => {
                    if self.take(&message) {
                        break;
                    }
                }
                Some(Err(KafkaError::PartitionEOF(partition))) => self.reach_end(partition),
                Some(Err(error)) => self.examine(&error)?,
            }
            wait = Duration::ZERO;
        }
        for (number, partition) in &mut self.partitions {
            partition.close(self.input, *number, &self.kafka.shape);
        }
        Ok(())
    }

    /// Adds a record to its partition; returns whether that fills a batch.
    fn take(&mut self, message: &BorrowedMessage<'_>) -> bool {
        let offset = u64::try_from(message.offset()).unwrap_or_default();
        let number = u32::try_from(message.partition()).unwrap_or_default();
        // A record that was fetched before its partition was paused may be returned twice.
        let Some(partition) = self.partitions.get_mut(&number).filter(|partition| partition.next <= offset)
        else {
            return false;
        };
        put(message, &mut partition.open);
        partition.next = offset + 1;
        partition.open.bytes() >= BATCH_BYTES || partition.open.len() >= BATCH_RECORDS
    }

    /// Handles the end of a partition. The position may be after offsets that are never visible, beyond the
    /// last record.
    fn reach_end(&mut self, partition: i32) {
        let position = self.client.get().position().ok();
        let position = position
            .as_ref()
            .and_then(|all| all.find_partition(&self.kafka.topic, partition))
            .and_then(|at| at.offset().to_raw())
            .and_then(|offset| u64::try_from(offset).ok());
        let partition = u32::try_from(partition).ok().and_then(|number| self.partitions.get_mut(&number));
        if let (Some(partition), Some(position)) = (partition, position) {
            partition.next = partition.next.max(position);
        }
    }

    /// Handles an error of the client: ends the run unless the error is transient.
    fn examine(&self, error: &KafkaError) -> Result<(), SourceError> {
        let code = code_of(error);
        if matches!(code, Some(RDKafkaErrorCode::AutoOffsetReset | RDKafkaErrorCode::OffsetOutOfRange)) {
            return self.find_lost();
        }
        match KafkaFailure::from_error(error, &self.kafka.what()) {
            // The client has logged it, or recovers by itself.
            KafkaFailure::Retriable(_) | KafkaFailure::Fenced(_) => Ok(()),
            KafkaFailure::Fatal(_) if is_of_group(error) => Ok(()),
            KafkaFailure::Absent(_) => self.find_topic(),
            fatal @ KafkaFailure::Fatal(_) => {
                let told = self.client.get().context().last().filter(|last| !last.is_retriable());
                Err(self.kafka.failed(&told.unwrap_or(fatal)))
            }
        }
    }

    /// Handles a topic or partition that a broker does not know. That may be transient while partitions move.
    /// If no broker knows the topic for [`ABSENT`], it has been deleted.
    fn find_topic(&self) -> Result<(), SourceError> {
        let clock = SystemClock::start();
        let client = self.kafka.client()?;
        let mut since = Duration::ZERO;
        loop {
            let asked = clock.now();
            let found = (PartitionStarts { kafka: self.kafka, client: client.get() }).partitions();
            if clock.now() - asked >= ABSENT {
                // No broker answered in this time. A broker that has just started may not know any topic yet.
                since = clock.now();
            }
            match found {
                Ok(_) => return self.find_lost(),
                Err(SourceError::Failed { input, what }) if clock.now() - since >= ABSENT => {
                    return Err(SourceError::Failed {
                        input,
                        what: format!(
                            "{what}; it was there before: make it again, or name another one, and start with \
                             --reconcile"
                        ),
                    });
                }
                Err(SourceError::Failed { .. }) => {}
                Err(other) => return Err(other),
            }
            if self.queue.pause(WAIT).is_err() {
                return Ok(());
            }
        }
    }

    /// An error if a partition does not have the next wanted offset.
    fn find_lost(&self) -> Result<(), SourceError> {
        let client = self.kafka.client()?;
        let beginning = PartitionStarts { kafka: self.kafka, client: client.get() };
        for (number, partition) in &self.partitions {
            let (first, end) = beginning.held(*number)?;
            if !(first..=end).contains(&partition.next) {
                return Err(beginning.lost(*number, partition.next, first, end));
            }
        }
        Ok(())
    }

    fn failed(&self, error: &KafkaError) -> SourceError {
        self.kafka.failed(&KafkaFailure::from_error(error, &self.kafka.what()))
    }

    /// Pushes the waiting batches. Pauses partitions that wait for a line, and resumes those that have
    /// crossed it.
    fn hand_over(&mut self) -> Result<PushRoom, ReaderEnd> {
        let mut room = PushRoom::Yes;
        let (mut pause, mut resume) = (TopicPartitionList::new(), TopicPartitionList::new());
        for (number, partition) in &mut self.partitions {
            let held = match partition.hand_over(*number, self.queue, &mut self.is_live)? {
                PushedUpTo::All => false,
                PushedUpTo::UpToLine => true,
                PushedUpTo::UpToRoom => {
                    room = PushRoom::Full;
                    break;
                }
            };
            if held != partition.paused {
                let list = if held { &mut pause } else { &mut resume };
                list.add_partition(&self.kafka.topic, index(*number));
                partition.paused = held;
            }
        }
        let client = self.client.get();
        if pause.count() > 0 {
            client.pause(&pause).map_err(|error| self.failed(&error))?;
        }
        if resume.count() > 0 {
            client.resume(&resume).map_err(|error| self.failed(&error))?;
        }
        Ok(room)
    }
}

impl PartitionState {
    /// Ends the open batch, if it has records or a new position.
    fn close(&mut self, input: &Arc<str>, number: u32, shape: &Arc<crate::formats::RecordShape>) {
        let said = self.waiting.back().map_or(self.pushed, |batch| batch.next);
        if !self.open.is_empty() || self.next > said {
            let records = std::mem::replace(&mut self.open, KeyedRecords::with_shape(Arc::clone(shape)));
            self.waiting.push_back(batch(input, number, records, self.next));
        }
    }

    /// Pushes the waiting batches in order, up to the line if there is one. A refused batch waits again.
    fn hand_over(&mut self, number: u32, queue: &Queue, is_live: &mut bool) -> Result<PushedUpTo, Closed> {
        if let Some(line) = queue.line(number).filter(|_| !*is_live) {
            self.live_from = self.live_from.max(line);
        }
        // A further line at the same offset: that it has been reached must be reported again, by an empty
        // batch.
        if !*is_live && self.pushed > 0 && queue.line(number) == Some(self.pushed) {
            let input = self.waiting.front().map_or_else(|| "".into(), |first| Arc::clone(&first.input));
            self.waiting.push_front(batch(&input, number, KeyedRecords::default(), self.pushed));
        }
        while let Some(mut first) = self.waiting.pop_front() {
            if !*is_live {
                match queue.line(number) {
                    None => *is_live = true,
                    // A batch up to the line, even if it has no records; then the rest.
                    Some(line) if self.pushed < line && line < first.next => {
                        self.waiting.push_front(part(&mut first, line));
                    }
                    Some(_) => {}
                }
            }
            let next = first.next;
            match queue.try_push(first) {
                Ok(()) => {
                    self.pushed = next;
                    if std::mem::take(&mut self.is_new) {
                        queue.cut();
                    }
                }
                Err(Refused::Held(refused)) => {
                    self.waiting.push_front(*refused);
                    return Ok(PushedUpTo::UpToLine);
                }
                Err(Refused::Full(refused)) => {
                    self.waiting.push_front(*refused);
                    return Ok(PushedUpTo::UpToRoom);
                }
                Err(Refused::Closed) => return Err(Closed),
            }
        }
        Ok(PushedUpTo::All)
    }
}

/// Adds a record to a batch of its partition, with the headers that the shape names.
pub(super) fn put(message: &BorrowedMessage<'_>, records: &mut KeyedRecords) {
    let offset = u64::try_from(message.offset()).unwrap_or_default();
    let ts = message.timestamp().to_millis().map(seconds);
    records.push(KeyedRecord { offset, ts, key: message.key(), value: message.payload() });
    let shape = Arc::clone(records.shape());
    if !shape.headers.is_empty()
        && let Some(headers) = message.headers()
    {
        for header in headers.iter() {
            let which = shape.headers.iter().position(|name| name == header.key);
            if let (Some(which), Some(value)) = (which, header.value) {
                records.push_header(which, value);
            }
        }
    }
}

/// A batch of a partition's records.
fn batch(input: &Arc<str>, partition: u32, records: KeyedRecords, next: u64) -> Batch {
    let count = records.len() as u64;
    let payload = Payload::Records(records);
    Batch {
        input: Arc::clone(input),
        partition,
        records: count,
        next,
        payload,
        letters: Vec::new(),
        seen: None,
    }
}

/// Splits a batch at an offset: `first` keeps the records before it, and the rest is returned.
fn part(first: &mut Batch, line: u64) -> Batch {
    let (before, after) = match &first.payload {
        Payload::Records(records) => records.part(line),
        _ => (KeyedRecords::default(), KeyedRecords::default()),
    };
    let rest = batch(&first.input, first.partition, after, first.next);
    *first = batch(&first.input, first.partition, before, line);
    rest
}

#[expect(clippy::cast_precision_loss, reason = "milliseconds since 1970 fit a float's 53 bits")]
pub(super) fn seconds(ms: i64) -> f64 {
    ms as f64 / 1000.0
}
