//! A Kafka topic as sink, exactly once.
//!
//! ```text
//!  epochs ─▶ Outgoing ─▶ one transaction ─┬─▶ topic         key and value: see below
//!            encoded      per commit      ├─▶ dead letters  records that are not valid events
//!                                         └─▶ progress      key: the transactional id, value: the mark
//! ```
//!
//! | result | key | value (delta envelope) | value (upsert envelope) |
//! |---|---|---|---|
//! | pairs | a NUL b | the delta | the pair as it is now |
//! | clusters | the document | the change of its membership | its cluster now |
//!
//! The deltas, the dead letters and the [mark](Mark) of a commit are one transaction. A consumer of committed
//! records (`isolation.level=read_committed`) sees all of them or none. A consumer of uncommitted records
//! also sees aborted ones.
//!
//! **Why no epoch is lost or doubled.** Invariant: *every transaction of a run builds on the last mark in the
//! topic*, which the run has read or written itself; its deltas lead from that mark to its own. This holds in
//! every race:
//!
//! 1. A producer that takes the transactional id fences all earlier producers with it: during
//!    `init_transactions` the broker aborts their open transaction or, if its commit has begun, completes it
//!    before the call returns. So the mark read *after* that call is the last one. It stays the last one
//!    until this producer commits or another one takes the id.
//! 2. A commit has one of three outcomes. It succeeds: its mark is the last one. It fails before the broker
//!    is asked to commit, and is aborted: no consumer of committed records will see it, and the same records
//!    are written again, on the same mark. Or the outcome is unknown (the answer was lost, the transaction
//!    timed out, another producer took the id): then this run drops the producer, takes the id with a new one
//!    (1), and reads the last mark. If that is the mark being written, the commit had succeeded. If it is the
//!    mark before, nothing was written, and the records are written again. If it is any other mark, another
//!    run writes here, and this one ends.
//! 3. Marks of two runs differ, since each has the name of its run. A run that finds a mark writes it again
//!    under its own name before anything else. So if two runs take the id from each other in turn, the first
//!    one to commit wins: the other one then reads a mark that is neither of its two, and ends.
//!
//! **Which of two runs continues.** The later one. A run writes a [claim](claim) before it takes the id.
//! Before and after it takes the id again, it reads the claims, and ends if there is a later one. A run that
//! takes the id while its successor starts writes nothing, because it reads the later claim before or after
//! that. The successor, whose producer is then fenced, finds that its own claim is the last, and takes the id
//! back.
//!
//! Waiting: an unreachable broker is waited for without limit. Records are kept in memory until they are
//! durable; the committer bounds them by what it passes for one commit.
//!
//! What it does not do: keep a transaction open between commits; clean up the topics.

mod claim;
mod outgoing;
mod read;
mod transaction;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use outgoing::Outgoing;
use transaction::Transactions;

use super::cluster_changes::{ClusterChanges, ReportChange, ReportSums, read_present};
use super::deltas::read_delta;
use super::{OutputEnvelope, Sink, StandardError};
use crate::kafka::broker::{
    Admin, Connection, KEEPS_ALL, KEEPS_MARKS, KafkaFailure, TopicRequest, TopicSettings,
};
use crate::mark::{Mark, Standing, Topic};
use dupflow_core::cluster::{ClusterReport, Clusters};
use dupflow_core::doc::Letter;
use dupflow_core::pair::{Delta, DocPair, Evidence};
use dupflow_core::run::metrics::Metrics;
use dupflow_core::time::{Epoch, Progress};

/// How long [`Sink::inspect`] waits for open transactions. Those of a healthy run end sooner.
const INSPECT_WAIT: Duration = Duration::from_secs(2);

/// Settings of the output.
#[derive(Clone, Debug)]
pub struct KafkaOutput {
    /// Addresses and settings of the brokers.
    pub connection: Connection,
    /// Topic of the deltas.
    pub topic: String,
    /// Topic of the marks: one partition, compacted. Several pipelines may share it.
    pub progress_topic: String,
    /// At most one run writes under this id at a time.
    pub transactional_id: String,
    /// Form of the values.
    pub envelope: OutputEnvelope,
    /// Topic of records that are not valid events, if they are kept.
    pub dead_letter: Option<String>,
    /// Time after which the broker aborts an open transaction. At most what the broker allows, 15 minutes by
    /// default.
    pub timeout: Duration,
    /// Name of the run; unique.
    pub run: String,
}

/// Writes deltas, letters and the mark of an epoch to topics, in one transaction.
pub struct KafkaSink {
    output: KafkaOutput,
    evidence: Option<StandardError>,
    /// Present if changes of clusters are written instead of pairs.
    clusters: Option<ClusterChanges>,
    outgoing: Outgoing,
    transactions: Transactions,
    /// The last mark in the topic, on which the next commit builds.
    known: Option<Mark>,
    /// The output topic, once it has been looked up.
    found: Option<Topic>,
}

impl KafkaSink {
    /// Sets whether values have causes: of each delta its own, of a pair as it is now that of its last
    /// change.
    #[must_use]
    pub fn with_causes(mut self, causes: bool) -> Self {
        self.outgoing.causes = causes;
        self
    }

    /// Connects to nothing yet. Evidence is written if there is a standard error.
    ///
    /// Causes are not written unless [requested](Self::with_causes).
    pub fn new(output: KafkaOutput, evidence: Option<StandardError>) -> Self {
        let transactions = Transactions::new(&output);
        let outgoing = Outgoing::default();
        Self { output, evidence, clusters: None, outgoing, transactions, known: None, found: None }
    }

    /// As [`Self::new`], but writes changes of clusters. `clusters` must be empty.
    pub fn for_clusters(output: KafkaOutput, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        let changes = ClusterChanges::new(clusters, metrics);
        Self { clusters: Some(changes), ..Self::new(output, None) }
    }

    /// Encodes changes of clusters for the next commit.
    fn encode_changes(&mut self, epoch: Epoch, changes: &[ReportChange]) -> io::Result<()> {
        match self.output.envelope {
            OutputEnvelope::Delta => self.outgoing.changes(epoch, changes),
            OutputEnvelope::Upsert => self.outgoing.memberships(epoch, changes),
        }
    }

    /// The reports of clusters that the topic holds.
    fn reports(&self) -> io::Result<BTreeSet<ClusterReport>> {
        let topic = &self.output.topic;
        let named = |error: io::Error| invalid_data(format!("topic \"{topic}\": {error}"));
        match self.output.envelope {
            OutputEnvelope::Delta => {
                let mut sum = ReportSums::default();
                read::topic(&self.output.connection, topic, |_, value| {
                    sum.add(value.unwrap_or_default()).map_err(named)
                })?;
                sum.reports().map_err(named)
            }
            OutputEnvelope::Upsert => {
                let mut now: BTreeMap<Vec<u8>, ClusterReport> = BTreeMap::new();
                read::topic(&self.output.connection, topic, |key, value| {
                    let key = key.unwrap_or_default();
                    match value.filter(|value| !value.is_empty()) {
                        Some(value) => {
                            drop(now.insert(key.to_vec(), read_present(key, value).map_err(named)?))
                        }
                        None => drop(now.remove(key)),
                    }
                    Ok(())
                })?;
                Ok(now.into_values().collect())
            }
        }
    }

    /// The first partition whose records have partly expired, with the first offset it still holds.
    fn expired(&self) -> Result<Option<(u32, u64)>, KafkaFailure> {
        let admin = Admin::new(&self.output.connection)?;
        let found = admin.find(&self.output.topic)?;
        for partition in 0..found.map_or(0, |found| found.partitions) {
            let (first, _) = admin.offset_range(&self.output.topic, partition)?;
            if first > 0 {
                return Ok(Some((partition, first)));
            }
        }
        Ok(None)
    }

    /// Checks that no record of the output has expired. Without all of them the accumulated deltas are wrong.
    fn check_complete(&self) -> io::Result<()> {
        match self.expired().map_err(io_error)? {
            None => Ok(()),
            Some((partition, first)) => Err(invalid_data(format!(
                "topic \"{}\": records before offset {first} of partition {partition} have expired, so what it adds up to is not known and \
                 cannot be corrected; name another output topic and another transactional id, and the result is written there from the \
                 beginning",
                self.output.topic
            ))),
        }
    }

    /// Whether the output holds a committed record. Waits for open transactions no longer than `bound`.
    fn holds_records(&self, bound: Option<Duration>) -> io::Result<bool> {
        let mut holds = false;
        let read = read::topic_within(&self.output.connection, &self.output.topic, bound, |_, _| {
            holds = true;
            Err(io::ErrorKind::Interrupted.into())
        });
        if holds { Ok(true) } else { read.map(|()| false) }
    }

    /// What an output without a mark holds.
    fn unmarked(&self, bound: Option<Duration>) -> io::Result<Standing> {
        if !self.holds_records(bound)? {
            return Ok(Standing::New);
        }
        let KafkaOutput { topic, progress_topic, transactional_id, .. } = &self.output;
        Ok(Standing::Unmarked(format!(
            "topic \"{topic}\" holds records, and topic \"{progress_topic}\" no mark of the transactional id \"{transactional_id}\""
        )))
    }

    /// Creates missing topics, with retention settings under which the broker deletes nothing.
    fn ensure_topics(&mut self) -> Result<(), KafkaFailure> {
        let admin = Admin::new(&self.output.connection)?;
        let progress = &self.output.progress_topic;
        let marks = TopicRequest { topic: progress, partitions: Some(1), compacted: true };
        let found = admin.ensure_with(marks, KEEPS_MARKS)?;
        if found.partitions != 1 {
            return Err(KafkaFailure::Fatal(format!(
                "topic \"{progress}\" has {} partitions: the topic of marks must have one",
                found.partitions
            )));
        }
        let (wanted, settings) = output_topic(&self.output.topic, self.output.envelope);
        admin.ensure_with(wanted, settings)?;
        self.found = admin.topic(&self.output.topic)?;
        if let Some(topic) = &self.output.dead_letter {
            admin.ensure_with(TopicRequest { topic, partitions: None, compacted: false }, KEEPS_ALL)?;
        }
        Ok(())
    }

    /// Writes the encoded records and a mark in one transaction, exactly once.
    fn write(&mut self, mark: &Mark) -> Result<(), KafkaFailure> {
        self.transactions.write(&self.outgoing, self.known.as_ref(), mark)?;
        self.known = Some(mark.clone());
        self.outgoing.clear();
        Ok(())
    }
}

impl Sink for KafkaSink {
    /// Writes no claim and creates no topic. A transaction that is still open (of a killed run, or of another
    /// program) may hold a later mark: then the answer is `None`.
    fn inspect(&mut self) -> io::Result<Option<Standing>> {
        let name = &self.output.topic;
        let found =
            Admin::new(&self.output.connection).and_then(|admin| admin.topic(name)).map_err(io_error)?;
        // A missing topic has no id. It is not another topic of the same name, and not the topic of a mark
        // with another name.
        self.found = Some(found.unwrap_or_else(|| Topic { name: name.clone(), id: None }));
        let stands = match self.transactions.inspect(INSPECT_WAIT) {
            Ok(Some(mark)) => Ok(Standing::At(Box::new(mark))),
            Ok(None) => self.unmarked(Some(INSPECT_WAIT)),
            Err(error) => Err(error),
        };
        match stands {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            stands => stands.map(Some),
        }
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        self.ensure_topics().map_err(io_error)?;
        self.known = self.transactions.take_over().map_err(io_error)?;
        let Some(found) = self.known.clone() else {
            return self.unmarked(None);
        };
        if let Some((partition, first)) = self.expired().map_err(io_error)? {
            tracing::warn!(
                topic = self.output.topic,
                partition,
                first,
                "records of the output have expired: a reader that begins now does not get the whole result, and it cannot be corrected"
            );
        }
        let mark = Mark { run: self.output.run.clone(), ..found.clone() };
        self.write(&mark).map_err(io_error)?;
        Ok(Standing::At(Box::new(found)))
    }

    fn topic(&self) -> Option<Topic> {
        self.found.clone()
    }

    /// Empty for clusters: the topic holds reports of clusters. They are read here and corrected once all
    /// pairs are known.
    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        self.check_complete()?;
        if self.clusters.is_some() {
            let there = self.reports()?;
            if let Some(clusters) = &mut self.clusters {
                clusters.correct(there);
            }
            return Ok(BTreeSet::new());
        }
        let topic = &self.output.topic;
        match self.output.envelope {
            OutputEnvelope::Delta => {
                // A pair is removed whatever evidence it was added with.
                let mut counts: BTreeMap<_, (i64, Evidence)> = BTreeMap::new();
                read::topic(&self.output.connection, topic, |_, value| {
                    let (found, diff) = parse_delta(topic, value.unwrap_or_default())?;
                    let (count, evidence) = counts.entry((found.pair, found.similarity)).or_default();
                    *count += i64::from(diff);
                    if diff > 0 {
                        *evidence = found.evidence;
                    }
                    Ok(())
                })?;
                counts.retain(|_, (count, _)| *count != 0);
                match counts.iter().find(|(_, (count, _))| *count != 1) {
                    Some(((pair, _), (count, _))) => Err(invalid_data(format!(
                        "topic \"{topic}\": the deltas of {} and {} add up to {count}: some have expired, or were not written here",
                        pair.lo(),
                        pair.hi()
                    ))),
                    None => Ok(counts
                        .into_iter()
                        .map(|((pair, similarity), (_, evidence))| DocPair { pair, similarity, evidence })
                        .collect()),
                }
            }
            OutputEnvelope::Upsert => {
                let mut now: BTreeMap<Vec<u8>, DocPair> = BTreeMap::new();
                read::topic(&self.output.connection, topic, |key, value| {
                    let key = key.unwrap_or_default();
                    match value.filter(|value| !value.is_empty()) {
                        Some(value) => drop(now.insert(key.to_vec(), parse_delta(topic, value)?.0)),
                        None => drop(now.remove(key)),
                    }
                    Ok(())
                })?;
                Ok(now.into_values().collect())
            }
        }
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], letters: &[Letter]) -> io::Result<()> {
        let evidence = self.evidence.as_ref();
        match (&mut self.clusters, self.output.envelope) {
            (Some(clusters), _) => {
                let changes = clusters.advance(deltas);
                self.encode_changes(progress.epoch, &changes)?;
            }
            (None, OutputEnvelope::Delta) => self.outgoing.deltas(progress.epoch, deltas, evidence)?,
            (None, OutputEnvelope::Upsert) => self.outgoing.upserts(progress.epoch, deltas, evidence)?,
        }
        if self.output.dead_letter.is_some() {
            self.outgoing.letters(letters);
        }
        Ok(())
    }

    fn restored(&mut self, deltas: &[Delta]) {
        if let Some(clusters) = &mut self.clusters {
            clusters.advance(deltas);
        }
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        if let Some(clusters) = &mut self.clusters {
            let corrections = clusters.corrections(mark);
            self.encode_changes(mark.progress.epoch, &corrections)?;
        }
        self.write(mark).map_err(io_error)
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Name and settings with which an output topic is created.
pub fn output_topic(topic: &str, envelope: OutputEnvelope) -> (TopicRequest<'_>, &'static TopicSettings) {
    let compacted = envelope == OutputEnvelope::Upsert;
    // A pair that ends is a tombstone, which compaction removes.
    let settings = if compacted { &[("cleanup.policy", "compact")][..] } else { KEEPS_ALL };
    (TopicRequest { topic, partitions: None, compacted }, settings)
}

/// Parses a value: a pair and its diff.
fn parse_delta(topic: &str, value: &[u8]) -> io::Result<(DocPair, i8)> {
    let line = std::str::from_utf8(value)
        .map_err(|_| invalid_data(format!("topic \"{topic}\" holds a value that is no delta")))?;
    read_delta(line)
}

fn invalid_data(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn io_error(failure: KafkaFailure) -> io::Error {
    io::Error::other(failure)
}

impl fmt::Debug for KafkaSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSink")
            .field("output", &self.output)
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}
