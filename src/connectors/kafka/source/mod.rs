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
//!   resumes at its position, and records before `Partition::next` are dropped.
//! - Nothing is retained while the reader waits: a batch is pushed as soon as the client has no more records.
//! - Nothing is read while a batch waits for room. A partition that waits for a line is paused, and the
//!   others go on. So at most one batch for each partition waits here.
//! - A gap between the wanted and the available offsets ends the run ([`SourceError::Lost`]). So does a
//!   deleted topic: a new topic of the same name has other records at the same offsets. [`SourceInfo::topic`]
//!   identifies the topic by its unique id.
//! - A topic that was restored from a copy and written on has other records at the offsets of lost ones. So
//!   the last record read of each partition is remembered, and compared at the next start ([`changed`]).
//!
//! **Compaction.** A compacted topic does not give the same records again ([`SourceInfo::repeats`]), so a run
//! that has to repeat records corrects its output. At least the last record of each document is read, if no
//! tombstone is missed. The broker keeps a tombstone for `delete.retention.ms` after its document has been
//! compacted away. So documents that were read as of some time ([`AsOf`]) are valid for that long. After
//! that, a tombstone may have expired unread, and all documents are read again: a run whose reading is late
//! ends for that. The reader notes the ends of the partitions from time to time, and closes an epoch even if
//! no records arrive, so that the stored time does not become outdated.
//!
//! **Waiting.** An unreachable broker is waited for as long as the connection's patience, which is unlimited
//! in a run, with a line in the log. The backlog is measured on a separate thread ([`watch`]).

mod announce;
mod begin;
mod changed;
mod policy;
mod reader;
mod texts;
mod topic;
mod watch;

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use announce::Announcer;
use begin::PartitionStarts;
use reader::KafkaReader;
use texts::KafkaTexts;

use crate::intake::{
    Announce, AsOf, ChangedRecord, EpochLimits, OffsetGap, Source, SourceError, SourceInfo, SourceReader,
    Texts,
};
use crate::kafka::broker::Admin;
use dupflow_core::text::TextColumns;
use dupflow_core::time::{LastRecord, Offsets, unix_milliseconds};
use dupflow_run::backlog::Backlog;

pub use policy::watches_expire;
pub use topic::Kafka;

/// How long reading a text back waits for a broker.
const TEXT_PATIENCE: Duration = Duration::from_secs(30);

impl Source for Kafka {
    fn epochs(&self) -> EpochLimits {
        self.limits
    }

    fn inspect(&mut self) -> Result<SourceInfo, SourceError> {
        // Taken before the requests: records that are written from here on may be missing in the answers.
        let at = unix_milliseconds();
        let client = self.client()?;
        let held = PartitionStarts { kafka: self, client: client.get() }.all_held()?;
        let admin = Admin::new(&self.connection).map_err(|failure| self.failed(&failure))?;
        let topic = admin.topic(&self.topic).map_err(|failure| self.failed(&failure))?;
        if topic.as_ref().is_some_and(|topic| topic.id.is_none()) {
            tracing::warn!(
                topic = self.topic,
                "the broker has no ids of topics (they come with Kafka 2.8): a topic that is recreated under \
                 the same name and has grown \
                 beyond what had been read is not told from the old one"
            );
        }
        let tombstones = policy::tombstones(&admin, &self.topic).map_err(|failure| self.failed(&failure))?;
        Ok(SourceInfo { topic, repeats: tombstones.is_none(), tombstones, held: Some(held), at })
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
        PartitionStarts { kafka: self, client: client.get() }.offsets(from)
    }

    fn begin_left(&mut self, from: &Offsets) -> Result<(Offsets, Vec<OffsetGap>), SourceError> {
        let client = self.client()?;
        PartitionStarts { kafka: self, client: client.get() }.left(from)
    }

    fn changed(
        &mut self,
        last: &BTreeMap<u32, LastRecord>,
        may_lack: bool,
    ) -> Result<Option<ChangedRecord>, SourceError> {
        changed::changed(self, last, may_lack)
    }

    fn as_of(&self) -> Option<Arc<AsOf>> {
        Some(Arc::clone(&self.as_of))
    }

    fn texts(&self, columns: &TextColumns) -> Option<Box<dyn Texts>> {
        // A run waits for its broker without limit; reading a text does not.
        let mut kafka = self.clone();
        kafka.connection.patience = kafka.connection.patience.min(TEXT_PATIENCE);
        Some(Box::new(KafkaTexts::new(kafka, columns)))
    }

    fn readers(self: Box<Self>, begin: &Offsets) -> Vec<Box<dyn SourceReader>> {
        let begin = begin.iter().map(|(partition, offset)| (*partition, *offset));
        let begin = begin.filter(|(partition, _)| self.is_mine(*partition)).collect();
        vec![Box::new(KafkaReader::new(*self, begin))]
    }
}
