//! Topics: looked up, created, changed.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use backon::{BlockingRetryable as _, ExponentialBuilder};
use rdkafka::admin::{
    AdminClient, AdminOptions, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication, TopicResult,
};
use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};

use super::client::{Consumer, index, partitions_at};
use super::connection::Connection;
use super::failure::KafkaFailure;
use super::topic_id::topic_id;
use super::watch::Watch;
use crate::mark::Topic;
use dupflow_core::time::{Clock, SystemClock};

/// Longest duration of one request. It is repeated within the connection's patience.
const REQUEST: Duration = Duration::from_secs(5);

/// How long a partition may be unknown before it counts as absent.
const SETTLES: Duration = Duration::from_secs(5);

/// The first and the longest pause after a failed request.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A topic to create if it is missing.
#[derive(Clone, Copy, Debug)]
pub struct TopicRequest<'a> {
    /// Its name.
    pub topic: &'a str,
    /// Number of partitions; `None` = the broker's default.
    pub partitions: Option<u32>,
    /// Whether the topic keeps only the last record of a key.
    pub compacted: bool,
}

/// Settings of a topic, by their names in Kafka.
pub type TopicSettings = [(&'static str, &'static str)];

/// Settings of a topic that never deletes a record.
pub const KEEPS_ALL: &TopicSettings =
    &[("cleanup.policy", "delete"), ("retention.ms", "-1"), ("retention.bytes", "-1")];

/// Settings of a topic of marks. Each key is written ten times a second. Small segments are compacted soon,
/// so that a consumer from the beginning reads a few MiB whatever the age of the topic.
pub const KEEPS_MARKS: &TopicSettings = &[
    ("cleanup.policy", "compact"),
    ("segment.bytes", "4194304"),
    ("segment.ms", "600000"),
    ("min.cleanable.dirty.ratio", "0.1"),
    ("delete.retention.ms", "60000"),
];

/// An existing topic.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicInfo {
    /// Number of partitions.
    pub partitions: u32,
}

/// Looks up and creates topics.
pub struct Admin {
    client: AdminClient<Watch>,
    /// For requests that a consumer can make. It has no group, so it looks for no coordinator.
    consumer: Consumer,
    patience: Duration,
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl Admin {
    /// Creates the clients; connects to nothing yet.
    ///
    /// # Errors
    /// If the library rejects a setting.
    pub fn new(connection: &Connection) -> Result<Self, KafkaFailure> {
        let what = format!("broker {}", connection.brokers);
        let client = connection.config(&[]).create_with_context(Watch::new(&what));
        let consumer = connection.consumer(&what, &[("isolation.level", "read_committed")])?;
        Ok(Self {
            client: client.map_err(|error| KafkaFailure::from_error(&error, &what))?,
            consumer,
            patience: connection.patience,
        })
    }

    /// Waits until a broker answers, for up to the connection's patience.
    ///
    /// # Errors
    /// If none answers, or none accepts the credentials.
    pub fn reach(&self, brokers: &str) -> Result<(), KafkaFailure> {
        let what = format!("broker {brokers}");
        retry(&what, self.patience, &self.consumer, |most| {
            let silent = || KafkaFailure::Retriable(format!("{what}: no answer"));
            self.consumer.client().fetch_cluster_id(most).map(drop).ok_or_else(silent)
        })
    }

    /// Looks up a topic; `None` if there is none.
    ///
    /// # Errors
    /// If no broker answers within the connection's patience, or it refuses.
    pub fn find(&self, topic: &str) -> Result<Option<TopicInfo>, KafkaFailure> {
        find_topic(&self.consumer, topic, self.patience)
    }

    /// Name and id of the topic that has a name now; `None` if there is none.
    ///
    /// # Errors
    /// If no broker answers within the connection's patience, or it refuses.
    pub fn topic(&self, name: &str) -> Result<Option<Topic>, KafkaFailure> {
        let what = format!("topic \"{name}\"");
        retry(&what, self.patience, &self.consumer, |most| topic_by_name(&self.consumer, name, most))
    }

    /// Values of settings of a topic.
    ///
    /// # Errors
    /// If no broker answers within the connection's patience, or it refuses.
    pub fn settings<const N: usize>(
        &self,
        topic: &str,
        names: [&str; N],
    ) -> Result<[Option<String>; N], KafkaFailure> {
        let what = format!("topic \"{topic}\"");
        retry(&what, self.patience, &self.consumer, |_| {
            let resource = ResourceSpecifier::Topic(topic);
            let described = block_on(self.client.describe_configs([&resource], &options()));
            let described = described.map_err(|error| KafkaFailure::from_error(&error, &what))?;
            let found = described.into_iter().next().transpose();
            let found = found.map_err(|code| KafkaFailure::from_code(code, &what))?;
            let value = |name| found.as_ref().and_then(|found| found.get(name)?.value.clone());
            Ok(names.map(value))
        })
    }

    /// The settings by which records of a topic expire, as `name=value`; `None` if none does, or the settings
    /// may not be read.
    ///
    /// # Errors
    /// If no broker answers within the connection's patience.
    pub fn expiry(&self, topic: &str) -> Result<Option<String>, KafkaFailure> {
        let names = ["retention.ms", "retention.bytes"];
        let [policy, ms, bytes] = match self.settings(topic, ["cleanup.policy", names[0], names[1]]) {
            Err(KafkaFailure::Fatal(_)) => return Ok(None),
            found => found?,
        };
        if policy.is_none_or(|policy| !policy.contains("delete")) {
            return Ok(None);
        }
        let limits = names.iter().zip([ms, bytes]).filter_map(|(name, value)| Some((name, value?)));
        let limits: Vec<_> = limits
            .filter(|(_, value)| value != "-1")
            .map(|(name, value)| format!("{name}={value}"))
            .collect();
        Ok(Some(limits.join(", ")).filter(|limits| !limits.is_empty()))
    }

    /// The first offset in a partition and the offset after the last one, as a consumer of committed records
    /// sees them.
    ///
    /// # Errors
    /// If no broker answers within the connection's patience, or it refuses.
    pub fn offset_range(&self, topic: &str, partition: u32) -> Result<(u64, u64), KafkaFailure> {
        offset_range(&self.consumer, topic, partition, self.patience)
    }

    /// Creates a topic with these settings if it is missing. Returns the topic.
    ///
    /// # Errors
    /// If the topic cannot be created.
    pub fn ensure(
        &self,
        wanted: TopicRequest<'_>,
        settings: &TopicSettings,
    ) -> Result<TopicInfo, KafkaFailure> {
        let what = format!("topic \"{}\"", wanted.topic);
        if let Some(found) = self.find(wanted.topic)? {
            return Ok(found);
        }
        retry(&what, self.patience, &self.consumer, |_| self.create(wanted, settings, &options()))?;
        // A new topic exists before every broker knows it.
        retry(&what, self.patience, &self.consumer, |_| {
            let unknown = || KafkaFailure::Retriable(format!("{what}: made, and not known yet"));
            find_topic(&self.consumer, wanted.topic, self.patience)?.ok_or_else(unknown)
        })
    }

    /// Checks whether a topic could be created: the broker validates the request and creates nothing.
    ///
    /// # Errors
    /// Why it could not.
    pub fn can_create(&self, wanted: TopicRequest<'_>, settings: &TopicSettings) -> Result<(), KafkaFailure> {
        let what = format!("topic \"{}\"", wanted.topic);
        let examined = options().validate_only(true);
        retry(&what, self.patience, &self.consumer, |_| self.create(wanted, settings, &examined))
    }

    fn create(
        &self,
        wanted: TopicRequest<'_>,
        settings: &TopicSettings,
        options: &AdminOptions,
    ) -> Result<(), KafkaFailure> {
        let what = format!("topic \"{}\"", wanted.topic);
        // -1 is the broker's default.
        let partitions = wanted.partitions.map_or(-1, |n| i32::try_from(n).unwrap_or(i32::MAX));
        let new = NewTopic::new(wanted.topic, partitions, TopicReplication::Fixed(-1));
        let new = settings.iter().fold(new, |new, (name, value)| new.set(name, value));
        let made = block_on(self.client.create_topics([&new], options));
        match made.map_err(|error| KafkaFailure::from_error(&error, &what))?.into_iter().next() {
            Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists)) | Ok(_)) | None => Ok(()),
            Some(Err((_, code))) => Err(KafkaFailure::from_code(code, &format!("{what} cannot be made"))),
        }
    }

    /// Increases the number of partitions of a topic to `partitions`.
    ///
    /// # Errors
    /// If that is not possible or not allowed.
    pub fn grow(&self, topic: &str, partitions: usize) -> Result<(), KafkaFailure> {
        let wanted = NewPartitions::new(topic, partitions);
        self.done(topic, block_on(self.client.create_partitions([&wanted], &options())))
    }

    /// Deletes a topic with all its records.
    ///
    /// # Errors
    /// If that is not possible or not allowed.
    pub fn remove(&self, topic: &str) -> Result<(), KafkaFailure> {
        self.done(topic, block_on(self.client.delete_topics(&[topic], &options())))
    }

    /// Deletes the records of a partition before an offset, as retention does.
    ///
    /// # Errors
    /// If that is not possible or not allowed.
    pub fn truncate(&self, topic: &str, partition: u32, before: u64) -> Result<(), KafkaFailure> {
        let what = format!("topic \"{topic}\"");
        let list = partitions_at(topic, [(partition, before)]);
        let done = list.and_then(|list| block_on(self.client.delete_records(&list, &options())));
        done.and_then(|done| done.elements().iter().try_for_each(|e| e.error()))
            .map_err(|error| KafkaFailure::from_error(&error, &what))
    }

    /// Value of a setting of a topic.
    ///
    /// # Errors
    /// If no broker answers within the connection's patience, or it refuses.
    pub fn setting(&self, topic: &str, name: &str) -> Result<Option<String>, KafkaFailure> {
        self.settings(topic, [name]).map(|[value]| value)
    }

    fn done(&self, topic: &str, done: Result<Vec<TopicResult>, KafkaError>) -> Result<(), KafkaFailure> {
        let what = format!("topic \"{topic}\"");
        let each = done.map_err(|error| KafkaFailure::from_error(&error, &what))?;
        each.into_iter()
            .try_for_each(|one| one.map(drop).map_err(|(_, code)| KafkaFailure::from_code(code, &what)))
    }
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(REQUEST)).operation_timeout(Some(REQUEST))
}

/// Looks up a topic; `None` if there is none. Waits for a broker no longer than `patience`. The consumer must
/// have no partitions assigned.
///
/// # Errors
/// If no broker answers within `patience`, or it refuses.
pub fn find_topic(
    consumer: &Consumer,
    topic: &str,
    patience: Duration,
) -> Result<Option<TopicInfo>, KafkaFailure> {
    let what = format!("topic \"{topic}\"");
    retry(&what, patience, consumer, |most| {
        let metadata = consumer.fetch_metadata(Some(topic), most);
        let metadata = metadata.map_err(|error| KafkaFailure::from_error(&error, &what))?;
        let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else {
            return Ok(None);
        };
        match found.error().map(|code| KafkaFailure::from_code(code.into(), &what)) {
            Some(KafkaFailure::Absent(_)) => Ok(None),
            Some(failure) => Err(failure),
            None if found.partitions().is_empty() => Ok(None),
            None => Ok(Some(TopicInfo {
                partitions: u32::try_from(found.partitions().len()).unwrap_or(u32::MAX),
            })),
        }
    })
}

/// The first offset in a partition and the offset after the last one; for a consumer of committed records,
/// before any open transaction. Waits for a broker no longer than `patience`. The consumer must have no
/// partitions assigned.
///
/// # Errors
/// If no broker answers within `patience`, or it refuses.
pub fn offset_range(
    consumer: &Consumer,
    topic: &str,
    partition: u32,
    patience: Duration,
) -> Result<(u64, u64), KafkaFailure> {
    let what = format!("topic \"{topic}\", partition {partition}");
    let clock = SystemClock::start();
    retry(&what, patience, consumer, |most| {
        let found = consumer.fetch_watermarks(topic, index(partition), most);
        let (first, end) = found.map_err(|error| match KafkaFailure::from_error(&error, &what) {
            // The leader of a new topic may not know it yet.
            KafkaFailure::Absent(line) if clock.now() < SETTLES => KafkaFailure::Retriable(line),
            other => other,
        })?;
        Ok((u64::try_from(first).unwrap_or(0), u64::try_from(end).unwrap_or(0)))
    })
}

/// Name and id of the topic that has a name now; `None` if there is none. Makes one request of up to `time`.
/// The consumer may have partitions assigned.
///
/// # Errors
/// If no broker answers, or it refuses.
pub fn topic_by_name(consumer: &Consumer, name: &str, time: Duration) -> Result<Option<Topic>, KafkaFailure> {
    let id = topic_id(consumer.client(), name, time);
    match id.map_err(|code| KafkaFailure::from_code(code, &format!("topic \"{name}\""))) {
        Ok(id) => Ok(Some(Topic { name: name.to_owned(), id })),
        Err(KafkaFailure::Absent(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// Calls `attempt` until it succeeds, fails in a way that is not retriable, or `patience` is over; then the
/// error holds the last error of the client. `attempt` receives the longest duration that it may take. The
/// consumer is polled between attempts, and what it returns is dropped: it must have no partitions assigned.
fn retry<T>(
    what: &str,
    patience: Duration,
    consumer: &Consumer,
    mut attempt: impl FnMut(Duration) -> Result<T, KafkaFailure>,
) -> Result<T, KafkaFailure> {
    let clock = SystemClock::start();
    let fatal_error =
        || consumer.context().last().filter(|failure| matches!(failure, KafkaFailure::Fatal(_)));
    // Polls the client for the length of a pause, so that it reports its errors, one at a time.
    let serve = |pause| drop(consumer.poll(pause));
    let mut is_first = true;
    let once = || {
        // Ignore errors of the client from before the first attempt.
        let is_again = !std::mem::take(&mut is_first);
        match fatal_error().filter(|_| is_again) {
            Some(fatal) => Err(fatal),
            None => attempt(REQUEST.min(patience.saturating_sub(clock.now()).max(FIRST_PAUSE))),
        }
    };
    let paces = ExponentialBuilder::default()
        .with_min_delay(FIRST_PAUSE)
        .with_max_delay(LONGEST_PAUSE)
        .without_max_times();
    let ended = once
        .retry(paces)
        // `notify` below pauses.
        .sleep(|_| {})
        .when(|failure| failure.is_retriable() && clock.now() < patience)
        .notify(|failure, pause| {
            consumer.context().retries(failure);
            serve(pause);
        })
        .call();
    ended.map_err(|failure| match failure {
        KafkaFailure::Retriable(last) => {
            serve(FIRST_PAUSE);
            let last = match consumer.context().last() {
                Some(fatal @ KafkaFailure::Fatal(_)) => return fatal,
                other => other.map_or(last, |other| other.to_string()),
            };
            KafkaFailure::Fatal(format!("{what}: no answer within {} s: {last}", patience.as_secs()))
        }
        other => other,
    })
}

/// Waits for a future on this thread.
fn block_on<F: Future>(future: F) -> F::Output {
    struct Unpark(Thread);
    impl Wake for Unpark {
        fn wake(self: Arc<Self>) {
            self.0.unpark();
        }
    }
    let waker = Waker::from(Arc::new(Unpark(thread::current())));
    let mut context = Context::from_waker(&waker);
    let mut future = pin!(future);
    loop {
        match future.as_mut().poll(&mut context) {
            Poll::Ready(output) => return output,
            Poll::Pending => thread::park(),
        }
    }
}
