//! Topics: looked at, and made.

use std::fmt;
use std::future::Future;
use std::pin::pin;
use std::sync::Arc;
use std::task::{Context, Poll, Wake, Waker};
use std::thread::{self, Thread};
use std::time::Duration;

use backon::{BlockingRetryable as _, ExponentialBuilder};
use rdkafka::TopicPartitionList;
use rdkafka::admin::{
    AdminClient, AdminOptions, NewPartitions, NewTopic, ResourceSpecifier, TopicReplication, TopicResult,
};
use rdkafka::consumer::Consumer as _;
use rdkafka::error::{KafkaError, RDKafkaErrorCode};
use rdkafka::topic_partition_list::Offset;

use super::topic_id::topic_id;
use super::{Connection, Consumer, Failure, Watch};
use crate::mark::Topic;
use dupflow_core::time::{Clock, SystemClock};

/// How long one request may take before it counts as failed; it is repeated within the connection's patience.
const REQUEST: Duration = Duration::from_secs(5);

/// How long a partition may be unknown until it counts as absent.
const SETTLES: Duration = Duration::from_secs(5);

/// The pause after a request that has failed, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_millis(100);
const LONGEST_PAUSE: Duration = Duration::from_secs(1);

/// A topic that is to be made where it is missing.
#[derive(Clone, Copy, Debug)]
pub struct Wanted<'a> {
    /// Its name.
    pub topic: &'a str,
    /// How many partitions; `None` = as many as the broker gives by default.
    pub partitions: Option<u32>,
    /// Whether only the last record of a key is kept.
    pub compacted: bool,
}

/// Settings of a topic, by their names at the broker.
pub type TopicSettings = [(&'static str, &'static str)];

/// Settings of a topic that keeps every record that it is given.
pub const KEEPS_ALL: &TopicSettings =
    &[("cleanup.policy", "delete"), ("retention.ms", "-1"), ("retention.bytes", "-1")];

/// Settings of a topic of marks. Each key is written ten times a second: small segments are compacted soon,
/// so a reader from the beginning finds a few MiB, however old the topic is.
pub const KEEPS_MARKS: &TopicSettings = &[
    ("cleanup.policy", "compact"),
    ("segment.bytes", "4194304"),
    ("segment.ms", "600000"),
    ("min.cleanable.dirty.ratio", "0.1"),
    ("delete.retention.ms", "60000"),
];

/// A topic as it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TopicFound {
    /// How many partitions it has.
    pub partitions: u32,
}

/// Asks a broker about topics, and makes some.
pub struct Admin {
    client: AdminClient<Watch>,
    /// Asks for what a consumer may ask. Without a group: it looks for no coordinator.
    consumer: Consumer,
    patience: Duration,
}

impl fmt::Debug for Admin {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Admin").field("patience", &self.patience).finish_non_exhaustive()
    }
}

impl Admin {
    /// A client; nothing is reached yet.
    ///
    /// # Errors
    /// If the library refuses a setting.
    pub fn new(connection: &Connection) -> Result<Self, Failure> {
        let what = format!("broker {}", connection.brokers);
        let client = connection.config(&[]).create_with_context(Watch::new(&what));
        let consumer = connection.consumer(&what, &[("isolation.level", "read_committed")])?;
        Ok(Self {
            client: client.map_err(|error| Failure::of(&error, &what))?,
            consumer,
            patience: connection.patience,
        })
    }

    /// Waits for a broker that answers, no longer than the connection's patience.
    ///
    /// # Errors
    /// If none does, or none accepts the user.
    pub fn reach(&self, brokers: &str) -> Result<(), Failure> {
        let what = format!("broker {brokers}");
        retry(&what, self.patience, &self.consumer, |most| {
            let silent = || Failure::Retriable(format!("{what}: no answer"));
            self.consumer.client().fetch_cluster_id(most).map(drop).ok_or_else(silent)
        })
    }

    /// How a topic is; `None` if there is none.
    ///
    /// # Errors
    /// If no broker answers within the connection's patience, or does not tell.
    pub fn find(&self, topic: &str) -> Result<Option<TopicFound>, Failure> {
        find(&self.consumer, topic, self.patience)
    }

    /// Which topic it is that has a name now; `None` if there is none.
    ///
    /// # Errors
    /// If no broker answers within the connection's patience, or does not tell.
    pub fn topic(&self, name: &str) -> Result<Option<Topic>, Failure> {
        let what = format!("topic \"{name}\"");
        retry(&what, self.patience, &self.consumer, |most| named(&self.consumer, name, most))
    }

    /// The values of settings of a topic, as the broker has them.
    ///
    /// # Errors
    /// If no broker answers within the connection's patience; that it is not allowed to know them.
    pub fn settings<const N: usize>(
        &self,
        topic: &str,
        names: [&str; N],
    ) -> Result<[Option<String>; N], Failure> {
        let what = format!("topic \"{topic}\"");
        retry(&what, self.patience, &self.consumer, |_| {
            let resource = ResourceSpecifier::Topic(topic);
            let described = block_on(self.client.describe_configs([&resource], &options()));
            let described = described.map_err(|error| Failure::of(&error, &what))?;
            let found = described.into_iter().next().transpose();
            let found = found.map_err(|code| Failure::of_code(code, &what))?;
            let value = |name| found.as_ref().and_then(|found| found.get(name)?.value.clone());
            Ok(names.map(value))
        })
    }

    /// The first offset that a partition holds and the offset after the last, as a reader of committed
    /// records sees them.
    ///
    /// # Errors
    /// If no broker answers within the connection's patience, or does not tell.
    pub fn held(&self, topic: &str, partition: u32) -> Result<(u64, u64), Failure> {
        held(&self.consumer, topic, partition, self.patience)
    }

    /// Makes a topic if it is missing; how it is.
    ///
    /// # Errors
    /// If that is not possible or not allowed.
    pub fn ensure(&self, wanted: Wanted<'_>) -> Result<TopicFound, Failure> {
        let settings: &TopicSettings = if wanted.compacted { &[("cleanup.policy", "compact")] } else { &[] };
        self.ensure_with(wanted, settings)
    }

    /// The same, with these settings where it is made.
    ///
    /// # Errors
    /// If that is not possible or not allowed.
    pub fn ensure_with(&self, wanted: Wanted<'_>, settings: &TopicSettings) -> Result<TopicFound, Failure> {
        let what = format!("topic \"{}\"", wanted.topic);
        if let Some(found) = self.find(wanted.topic)? {
            return Ok(found);
        }
        retry(&what, self.patience, &self.consumer, |_| self.create(wanted, settings, &options()))?;
        // It is made before every broker knows of it.
        retry(&what, self.patience, &self.consumer, |_| {
            let unknown = || Failure::Retriable(format!("{what}: made, and not known yet"));
            find(&self.consumer, wanted.topic, self.patience)?.ok_or_else(unknown)
        })
    }

    /// Whether a topic could be made as it is wanted: the broker examines the request, and makes nothing.
    ///
    /// # Errors
    /// Why it could not.
    pub fn could_make(&self, wanted: Wanted<'_>, settings: &TopicSettings) -> Result<(), Failure> {
        let what = format!("topic \"{}\"", wanted.topic);
        let examined = options().validate_only(true);
        retry(&what, self.patience, &self.consumer, |_| self.create(wanted, settings, &examined))
    }

    fn create(
        &self,
        wanted: Wanted<'_>,
        settings: &TopicSettings,
        options: &AdminOptions,
    ) -> Result<(), Failure> {
        let what = format!("topic \"{}\"", wanted.topic);
        // -1: as many as the broker gives by default.
        let partitions = wanted.partitions.map_or(-1, |n| i32::try_from(n).unwrap_or(i32::MAX));
        let new = NewTopic::new(wanted.topic, partitions, TopicReplication::Fixed(-1));
        let new = settings.iter().fold(new, |new, (name, value)| new.set(name, value));
        let made = block_on(self.client.create_topics([&new], options));
        match made.map_err(|error| Failure::of(&error, &what))?.into_iter().next() {
            Some(Err((_, RDKafkaErrorCode::TopicAlreadyExists)) | Ok(_)) | None => Ok(()),
            Some(Err((_, code))) => Err(Failure::of_code(code, &format!("{what} cannot be made"))),
        }
    }

    /// Gives a topic so many partitions, more than it has.
    ///
    /// # Errors
    /// If that is not possible or not allowed.
    pub fn grow(&self, topic: &str, partitions: usize) -> Result<(), Failure> {
        let wanted = NewPartitions::new(topic, partitions);
        self.done(topic, block_on(self.client.create_partitions([&wanted], &options())))
    }

    /// Takes a topic away, with all that it holds.
    ///
    /// # Errors
    /// If that is not possible or not allowed.
    pub fn remove(&self, topic: &str) -> Result<(), Failure> {
        self.done(topic, block_on(self.client.delete_topics(&[topic], &options())))
    }

    /// Takes the records of a partition before an offset away, as retention does.
    ///
    /// # Errors
    /// If that is not possible or not allowed.
    pub fn truncate(&self, topic: &str, partition: u32, before: u64) -> Result<(), Failure> {
        let what = format!("topic \"{topic}\"");
        let mut list = TopicPartitionList::new();
        let set = list.add_partition_offset(topic, index(partition), Offset::Offset(before.cast_signed()));
        set.map_err(|error| Failure::of(&error, &what))?;
        let done = block_on(self.client.delete_records(&list, &options()));
        let done = done.map_err(|error| Failure::of(&error, &what))?;
        done.elements().iter().try_for_each(|e| e.error()).map_err(|error| Failure::of(&error, &what))
    }

    /// The value of a setting of a topic, as the broker has it.
    ///
    /// # Errors
    /// If the broker does not tell.
    pub fn setting(&self, topic: &str, name: &str) -> Result<Option<String>, Failure> {
        self.settings(topic, [name]).map(|[value]| value)
    }

    fn done(&self, topic: &str, done: Result<Vec<TopicResult>, KafkaError>) -> Result<(), Failure> {
        let what = format!("topic \"{topic}\"");
        let each = done.map_err(|error| Failure::of(&error, &what))?;
        each.into_iter().try_for_each(|one| one.map(drop).map_err(|(_, code)| Failure::of_code(code, &what)))
    }
}

fn options() -> AdminOptions {
    AdminOptions::new().request_timeout(Some(REQUEST)).operation_timeout(Some(REQUEST))
}

/// How a topic is; `None` if there is none. Waits for a broker no longer than `patience`; the client must
/// read nothing.
///
/// # Errors
/// If no broker answers within that, or does not tell.
pub fn find(consumer: &Consumer, topic: &str, patience: Duration) -> Result<Option<TopicFound>, Failure> {
    let what = format!("topic \"{topic}\"");
    retry(&what, patience, consumer, |most| {
        let metadata = consumer.fetch_metadata(Some(topic), most);
        let metadata = metadata.map_err(|error| Failure::of(&error, &what))?;
        let Some(found) = metadata.topics().iter().find(|found| found.name() == topic) else {
            return Ok(None);
        };
        match found.error().map(|code| Failure::of_code(code.into(), &what)) {
            Some(Failure::Absent(_)) => Ok(None),
            Some(failure) => Err(failure),
            None if found.partitions().is_empty() => Ok(None),
            None => Ok(Some(TopicFound {
                partitions: u32::try_from(found.partitions().len()).unwrap_or(u32::MAX),
            })),
        }
    })
}

/// The first offset that a partition holds and the offset after the last; of a consumer of committed records,
/// before any open transaction. Waits for a broker no longer than `patience`; the client must read nothing.
///
/// # Errors
/// If no broker answers within that, or does not tell.
pub fn held(
    consumer: &Consumer,
    topic: &str,
    partition: u32,
    patience: Duration,
) -> Result<(u64, u64), Failure> {
    let what = format!("topic \"{topic}\", partition {partition}");
    let clock = SystemClock::start();
    retry(&what, patience, consumer, |most| {
        let found = consumer.fetch_watermarks(topic, index(partition), most);
        let (first, end) = found.map_err(|error| match Failure::of(&error, &what) {
            // Of a topic that has just been made, its leader may not know yet.
            Failure::Absent(line) if clock.now() < SETTLES => Failure::Retriable(line),
            other => other,
        })?;
        Ok((u64::try_from(first).unwrap_or(0), u64::try_from(end).unwrap_or(0)))
    })
}

/// Which topic has a name now, asked of a client that may read: once, and for no longer than `time`. `None`
/// if there is none.
///
/// # Errors
/// If no broker answers, or does not tell.
pub fn named(consumer: &Consumer, name: &str, time: Duration) -> Result<Option<Topic>, Failure> {
    let id = topic_id(consumer.client(), name, time);
    match id.map_err(|code| Failure::of_code(code, &format!("topic \"{name}\""))) {
        Ok(id) => Ok(Some(Topic { name: name.to_owned(), id })),
        Err(Failure::Absent(_)) => Ok(None),
        Err(failure) => Err(failure),
    }
}

/// The number of a partition as the library has it.
pub(super) fn index(partition: u32) -> i32 {
    i32::try_from(partition).unwrap_or(i32::MAX)
}

/// Tries until it is done, a failure that no other try can mend, or the end of patience; then with what the
/// client said last. Each attempt gets the time that it may take. The client is polled meanwhile and what
/// it gives is dropped: it must be one that reads nothing.
fn retry<T>(
    what: &str,
    patience: Duration,
    consumer: &Consumer,
    mut attempt: impl FnMut(Duration) -> Result<T, Failure>,
) -> Result<T, Failure> {
    let clock = SystemClock::start();
    let said_fatal = || consumer.context().last().filter(|said| matches!(said, Failure::Fatal(_)));
    // Serves the client, which reports its errors here, one at a time; and lets a moment pass.
    let serve = |pause| drop(consumer.poll(pause));
    let mut is_first = true;
    let once = || {
        // What the client said before has no part in this.
        let is_again = !std::mem::take(&mut is_first);
        match said_fatal().filter(|_| is_again) {
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
        // The pause is spent below.
        .sleep(|_| {})
        .when(|failure| failure.is_retriable() && clock.now() < patience)
        .notify(|failure, pause| {
            consumer.context().retries(failure);
            serve(pause);
        })
        .call();
    ended.map_err(|failure| match failure {
        Failure::Retriable(last) => {
            serve(FIRST_PAUSE);
            let last = match consumer.context().last() {
                Some(fatal @ Failure::Fatal(_)) => return fatal,
                said => said.map_or(last, |said| said.to_string()),
            };
            Failure::Fatal(format!("{what}: no answer within {} s: {last}", patience.as_secs()))
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
