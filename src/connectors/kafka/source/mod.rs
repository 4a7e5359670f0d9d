//! The Kafka source: the partitions of a topic, assigned by hand and read by one client on the reader's
//! thread.
//!
//! ```text
//!  broker ─▶ client's own queue ─▶ poll ─▶ a batch for each partition ─▶ Queue
//!            bounded in bytes              128 KiB or 128 records, or what there is
//! ```
//!
//! Partition numbers and offsets are those of the broker. Offsets have gaps: records of aborted transactions,
//! records removed by compaction, and transaction markers are not seen. The position of a run is stored with
//! its output. Offsets are also committed to the client's group ([`announce`]), only for monitoring tools;
//! the group takes part in no rebalance.
//!
//! Invariants:
//! - The records of a partition are pushed in order, each once, through any failure of the broker: the client
//!   resumes at its position, and records before [`Partition::next`] are dropped.
//! - Nothing is retained while the reader waits: a batch is pushed as soon as the client has no more records.
//! - Nothing is read while a batch waits for room. A partition that waits for a line is paused, and the
//!   others go on. So at most one batch for each partition waits here.
//! - A gap between the wanted and the available offsets ends the run ([`SourceError::Lost`]). So does a
//!   deleted topic: a new topic of the same name has other records at the same offsets. [`Look::topic`]
//!   identifies the topic by its unique id.
//!
//! **Compaction.** A compacted topic does not give the same records again ([`Look::repeats`]), so a run that
//! has to repeat records corrects its output. At least the last record of each document is read, if no
//! tombstone is missed. The broker keeps a tombstone for `delete.retention.ms` after its document has been
//! compacted away. So documents that were read as of some time ([`AsOf`]) are valid for that long. After
//! that, a tombstone may have expired unread, and all documents are read again. The reader notes the ends of
//! the partitions from time to time, and closes an epoch even if no records arrive, so that the stored time
//! does not become outdated.
//!
//! **Waiting.** An unreachable broker is waited for as long as the connection's patience, which is unlimited
//! in a run, with a line in the log. The backlog is measured on a separate thread ([`watch`]).

mod announce;
mod begin;
mod policy;
mod reader;
mod texts;
mod watch;

use std::sync::Arc;
use std::time::Duration;

use announce::Announcer;
use begin::Beginning;
use reader::KafkaReader;
use texts::KafkaTexts;

use crate::formats::Shape;
use crate::intake::{Announce, AsOf, EpochLimits, Gap, Look, Reader, Source, SourceError, Texts, Tombstones};
use crate::kafka::Start;
use crate::kafka::broker::{Admin, Connection, Consumer, KafkaFailure, close_in_background};
use dupflow_core::run::backlog::Backlog;
use dupflow_core::time::{Offsets, unix_milliseconds};

/// A topic as source.
#[derive(Clone, Debug)]
pub struct Kafka {
    /// How its brokers are reached.
    pub connection: Connection,
    /// Its name.
    pub topic: String,
    /// Where reading begins if no position is stored.
    pub start: Start,
    /// Which partitions this process reads: `(index, count)` stands for those whose number modulo `count` is
    /// `index`.
    pub share: (u32, u32),
    /// The shape of its record values.
    pub shape: Arc<Shape>,
    /// Where epochs are cut.
    pub limits: EpochLimits,
    /// Interval at which new partitions are looked for.
    pub refresh: Duration,
    /// Tracks the time as of which the topic has been read; only in the process of partition 0.
    pub as_of: Arc<AsOf>,
    /// The backlog of the partitions that this process reads.
    pub backlog: Arc<Backlog>,
}

/// How long reading a text back waits for a broker.
const TEXT_PATIENCE: Duration = Duration::from_secs(30);

/// Maximum of fetched records in the client, beyond one fetch, in KiB: 32 MiB.
const FETCHED_KIB: &str = "32768";

impl Kafka {
    /// A client without partitions.
    fn client(&self) -> Result<Held, SourceError> {
        self.client_with(&[])
    }

    /// The same, with further settings.
    fn client_with(&self, more: &[(&str, &str)]) -> Result<Held, SourceError> {
        let group = format!("dupflow-{}", self.topic);
        let mut own = vec![
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            ("isolation.level", "read_committed"),
            ("auto.offset.reset", "error"),
            ("enable.partition.eof", "true"),
        ];
        // Defaults that the user may override.
        let defaults = [
            ("group.id", &*group),
            ("queued.max.messages.kbytes", FETCHED_KIB),
            // How long an empty fetch waits at the broker. New records end it at once, but a resumed
            // partition waits for it.
            ("fetch.wait.max.ms", "100"),
            // How long the client stops fetching after its queue was full; the library's default is a second.
            ("fetch.queue.backoff.ms", "20"),
        ];
        own.extend(defaults.iter().filter(|(name, _)| !self.connection.settings.contains_key(*name)));
        own.extend(more);
        let client = self.connection.consumer(&self.what(), &own);
        client.map(|client| Held(Some(client))).map_err(|failure| self.failed(&failure))
    }

    fn what(&self) -> String {
        format!("topic \"{}\"", self.topic)
    }

    fn failed(&self, failure: &KafkaFailure) -> SourceError {
        SourceError::Failed { input: self.topic.as_str().into(), what: failure.to_string() }
    }

    /// Whether this process reads a partition.
    fn is_mine(&self, partition: u32) -> bool {
        partition % self.share.1.max(1) == self.share.0
    }
}

impl Source for Kafka {
    fn epochs(&self) -> EpochLimits {
        self.limits
    }

    fn look(&mut self) -> Result<Look, SourceError> {
        // Taken before the requests: records that are written from here on may be missing in the answers.
        let at = unix_milliseconds();
        let client = self.client()?;
        let held = Beginning { kafka: self, client: client.get() }.all_held()?;
        let admin = Admin::new(&self.connection).map_err(|failure| self.failed(&failure))?;
        let topic = admin.topic(&self.topic).map_err(|failure| self.failed(&failure))?;
        if topic.as_ref().is_some_and(|topic| topic.id.is_none()) {
            tracing::warn!(
                topic = self.topic,
                "the broker has no ids of topics (they come with Kafka 2.8): a topic that is made anew under the same name and has grown \
                 beyond what had been read is not told from the old one"
            );
        }
        let tombstones = policy::tombstones(&admin, &self.topic).map_err(|failure| self.failed(&failure))?;
        if let Some(Tombstones { stay, .. }) = tombstones {
            self.as_of.set_stay(stay);
        }
        Ok(Look { topic, repeats: tombstones.is_none(), tombstones, held: Some(held), at })
    }

    fn backlog(&self) -> Option<Arc<Backlog>> {
        Some(Arc::clone(&self.backlog))
    }

    fn announcer(&self) -> Option<Announce> {
        let announcer = Announcer::start(self);
        Some(Box::new(move |next| announcer.announce(next)))
    }

    fn ids_move(&self) -> bool {
        true
    }

    fn begin(&mut self, from: Option<&Offsets>) -> Result<Offsets, SourceError> {
        let client = self.client()?;
        Beginning { kafka: self, client: client.get() }.offsets(from)
    }

    fn begin_left(&mut self, from: &Offsets) -> Result<(Offsets, Vec<Gap>), SourceError> {
        let client = self.client()?;
        Beginning { kafka: self, client: client.get() }.left(from)
    }

    fn as_of(&self) -> Option<Arc<AsOf>> {
        Some(Arc::clone(&self.as_of))
    }

    fn texts(&self, fields: &[String]) -> Option<Box<dyn Texts>> {
        // A run waits for its broker without limit; reading a text does not.
        let mut kafka = self.clone();
        kafka.connection.patience = kafka.connection.patience.min(TEXT_PATIENCE);
        Some(Box::new(KafkaTexts::new(kafka, fields)))
    }

    fn readers(self: Box<Self>, begin: &Offsets) -> Vec<Box<dyn Reader>> {
        let begin = begin.iter().map(|(partition, offset)| (*partition, *offset));
        let begin = begin.filter(|(partition, _)| self.is_mine(*partition)).collect();
        vec![Box::new(KafkaReader::new(*self, begin))]
    }
}

/// A client that is dropped on another thread, since closing it can take long.
struct Held(Option<Consumer>);

impl Held {
    fn get(&self) -> &Consumer {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            close_in_background(client);
        }
    }
}
