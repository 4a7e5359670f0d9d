//! A topic as source: its partitions, assigned by hand, read by one client on the reader's thread.
//!
//! ```text
//!  broker ─▶ client's own queue ─▶ poll ─▶ a batch for each partition ─▶ Queue
//!            bounded in bytes              128 KiB or 128 records, or what there is
//! ```
//!
//! A partition's number and its records' offsets are those of the broker. Offsets have gaps: records of
//! aborted transactions, those that compaction removed, and the marks of transactions are not seen. What has
//! been read is remembered with the output: offsets that are committed to the client's group ([`announce`])
//! are for the eyes of others, and the group is in no rebalance.
//!
//! Invariants:
//! - The records of a partition are pushed in order, each once, whatever the broker does meanwhile: the
//!   client goes on where it was, and what lies before [`Partition::next`] is not taken again.
//! - Nothing is kept back while the reader waits: a batch is handed over as soon as the client has nothing
//!   more.
//! - Nothing is read while a batch waits for room; a partition that waits for a line is paused, and the
//!   others go on. So what waits here is one batch for each partition.
//! - A gap between what is wanted and what is held ends the run ([`SourceError::Lost`]), and so does a topic
//!   that is gone: another topic of its name has other records at the same offsets. Which topic it is
//!   [`Look::topic`] says, by an id that no other one has.
//!
//! **Compaction.** A topic that is compacted does not repeat what it gave ([`Look::repeats`]): a run that has
//! to repeat anything corrects its output. What is read of it is the last record of each document at least,
//! if no tombstone is missed: the broker keeps one for `delete.retention.ms` after what it ends has been
//! compacted away. So documents that have been read as of some time ([`AsOf`]) can be gone on with for as
//! long; after that a tombstone may have gone that was never read, and they are read anew. The reader looks
//! now and then where the partitions end, and has an epoch go out even where nothing is written, so that what
//! is kept does not grow old in a run that reads along.
//!
//! What waits: a broker that is away is waited for as long as the connection's patience says, which in a
//! run has no end; with a line in the log. What waits to be read is watched beside the reading ([`watch`]).

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

use super::{
    Announce, AsOf, EpochLimits, Gap, Look, Reader, Shape, Source, SourceError, Start, Texts, Tombstones,
};
use crate::broker::{Admin, Connection, Consumer, Failure, let_go};
use dupflow_core::run::backlog::Backlog;
use dupflow_core::time::{Offsets, unix_milliseconds};

/// A topic.
#[derive(Clone, Debug)]
pub struct Kafka {
    /// How its brokers are reached.
    pub connection: Connection,
    /// Its name.
    pub topic: String,
    /// Where reading begins if nothing is remembered.
    pub start: Start,
    /// Which partitions are read here: `(index, count)` stands for those whose number leaves `index` when
    /// divided by `count`.
    pub share: (u32, u32),
    /// In which shape its values hold documents.
    pub shape: Arc<Shape>,
    /// Where epochs are cut.
    pub limits: EpochLimits,
    /// How often new partitions are looked for.
    pub refresh: Duration,
    /// As of when it has been read, where this is noted: by the process of the first partition.
    pub as_of: Arc<AsOf>,
    /// What waits to be read, as it is noted here.
    pub backlog: Arc<Backlog>,
}

/// How long a broker may take until a text is given up.
const TEXT_PATIENCE: Duration = Duration::from_secs(30);

/// What the client may hold of what has been fetched, in KiB, beside one fetch: 32 MiB.
const FETCHED_KIB: &str = "32768";

impl Kafka {
    /// A client that has no partition yet.
    fn client(&self) -> Result<Held, SourceError> {
        self.client_with(&[])
    }

    /// The same, with more settings of its own.
    fn client_with(&self, more: &[(&str, &str)]) -> Result<Held, SourceError> {
        let group = format!("dupflow-{}", self.topic);
        let mut own = vec![
            ("enable.auto.commit", "false"),
            ("enable.auto.offset.store", "false"),
            ("isolation.level", "read_committed"),
            ("auto.offset.reset", "error"),
            ("enable.partition.eof", "true"),
        ];
        // Those that the user may set.
        let defaults = [
            ("group.id", &*group),
            ("queued.max.messages.kbytes", FETCHED_KIB),
            // How long a fetch waits at the broker where nothing is: records that come meanwhile end it at
            // once, but a partition that is resumed waits for it.
            ("fetch.wait.max.ms", "100"),
            // How long the client fetches no more after its queue was full; a second is the library's
            // default.
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

    fn failed(&self, failure: &Failure) -> SourceError {
        SourceError::Failed { input: self.topic.as_str().into(), what: failure.to_string() }
    }

    /// Whether a partition is read here.
    fn is_mine(&self, partition: u32) -> bool {
        partition % self.share.1.max(1) == self.share.0
    }
}

impl Source for Kafka {
    fn epochs(&self) -> EpochLimits {
        self.limits
    }

    fn look(&mut self) -> Result<Look, SourceError> {
        // Before anything is asked: what is written from here on may be missing in the answers.
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
        // A run waits for its broker without end; a question does not.
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

/// A client, which is let go on another thread: closing it can take long.
struct Held(Option<Consumer>);

impl Held {
    fn get(&self) -> &Consumer {
        self.0.as_ref().expect("it is there until it is dropped")
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        if let Some(client) = self.0.take() {
            let_go(client);
        }
    }
}
