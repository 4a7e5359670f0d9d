//! A topic as sink, exactly once.
//!
//! ```text
//!  epochs ─▶ Outgoing ─▶ one transaction ─┬─▶ topic         key: a NUL b, value: the delta, or the pair as it is now; of clusters
//!            encoded      per commit      │                 key: the document, value: its change, or its cluster as it is now
//!                                         ├─▶ dead letters  records that are no events
//!                                         └─▶ progress      key: the transactional id, value: the mark
//! ```
//!
//! All of a commit is in one transaction, the [mark](Mark) too: whoever reads committed records
//! (`isolation.level=read_committed`) finds both or neither. A reader of uncommitted records finds what was
//! aborted as well.
//!
//! **Why no epoch is lost or doubled.** Invariant: *every transaction of a run is built on the last mark in
//! the topic*, which the run has read, or written itself; its deltas are those that lead from there to its
//! own mark. It holds whatever the race, for these reasons:
//!
//! 1. A producer that has the transactional id ends all others that had it: at the moment of
//!    `init_transactions` their open transaction is aborted, or, if its commit has begun, completed before
//!    the call returns. So what is read *after* that call is the last mark, and it stays so until this
//!    producer commits or another one takes the id.
//! 2. A commit ends in one of three ways. It succeeded: the mark is the last one. It failed before the broker
//!    was asked to commit, and was aborted: nothing of it will ever be seen, and the same is written again,
//!    on the same mark. Or nobody knows (the answer is lost, the transaction timed out, the id was taken):
//!    then the producer is given up, a new one takes the id (1), and the last mark is read. It is the one
//!    that was being written: the commit had succeeded. It is the one before: nothing of it was written, and
//!    it is written again. It is any other: another run writes here, and this one ends.
//! 3. Marks of two runs differ, since each has the name of its run. A run that finds a mark writes it again
//!    under its own name before anything else. So of two runs that take the id from each other in turn, the
//!    first that commits has won: the other one finds a mark that is neither of its two, and ends.
//!
//! **Which of two runs stays.** The later one. A run [claims](claim) the id before it takes it. It reads
//! the claims before it takes the id again and after it has, and ends behind a later one. A run that takes
//! the id while its successor starts writes nothing: either it sees the claim before, or after; and its
//! successor, whose producer is then fenced, finds its own claim to be the last and takes the id back.
//!
//! What waits: a broker that is away is waited for without end; what is being written is kept until it is
//! durable. Memory is bounded by what the committer hands over for one commit.
//!
//! What it does not do: keep a transaction open between commits; clean the topics up.

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

use super::cluster_changes::{Change, ClusterChanges, Sum, read_now};
use super::deltas::read_delta;
use super::{Envelope, Sink, StandardError};
use crate::broker::{Admin, Connection, Failure, KEEPS_ALL, KEEPS_MARKS, TopicSettings, Wanted};
use crate::mark::{Mark, Standing, Topic};
use dupflow_core::cluster::{ClusterReport, Clusters};
use dupflow_core::doc::Letter;
use dupflow_core::pair::{Delta, DocPair, Evidence};
use dupflow_core::run::metrics::Metrics;
use dupflow_core::time::{Epoch, Progress};

/// How long a look waits for transactions that are open: those of a run that is well end sooner.
const DECIDED: Duration = Duration::from_secs(2);

/// Where results go.
#[derive(Clone, Debug)]
pub struct KafkaOutput {
    /// How brokers are reached.
    pub connection: Connection,
    /// The topic of the result.
    pub topic: String,
    /// The topic of marks: one partition, compacted. Several pipelines may share it.
    pub progress_topic: String,
    /// The name under which one run at a time writes.
    pub transactional_id: String,
    /// What values are.
    pub envelope: Envelope,
    /// The topic of records that are no events, if they are kept.
    pub dead_letter: Option<String>,
    /// How long a transaction may take before the broker aborts it, at most what the broker allows (15
    /// minutes by default).
    pub timeout: Duration,
    /// The name of the run, which no other one has.
    pub run: String,
}

/// Writes deltas, letters and the mark of an epoch to topics, in one transaction.
pub struct KafkaSink {
    output: KafkaOutput,
    evidence: Option<StandardError>,
    /// If it is their changes that are written, and not those of pairs.
    clusters: Option<ClusterChanges>,
    outgoing: Outgoing,
    transactions: Transactions,
    /// The last mark in the topic, on which the next commit builds.
    known: Option<Mark>,
    /// Which topic the output is, once it has been looked at.
    found: Option<Topic>,
}

impl KafkaSink {
    /// Whether each delta says its cause, each pair as it is now that of its last change.
    #[must_use]
    pub fn with_causes(mut self, causes: bool) -> Self {
        self.outgoing.causes = causes;
        self
    }

    /// A sink that has reached nothing yet; with evidence if there is a standard error to give.
    ///
    /// Causes are not told, if they are not [asked for](Self::with_causes).
    pub fn new(output: KafkaOutput, evidence: Option<StandardError>) -> Self {
        let transactions = Transactions::new(&output);
        let outgoing = Outgoing::default();
        Self { output, evidence, clusters: None, outgoing, transactions, known: None, found: None }
    }

    /// The same, for the changes of clusters, which begin empty.
    pub fn of_clusters(output: KafkaOutput, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        let changes = ClusterChanges::new(clusters, metrics);
        Self { clusters: Some(changes), ..Self::new(output, None) }
    }

    /// Gathers changes of clusters.
    fn gather(&mut self, epoch: Epoch, changes: &[Change]) -> io::Result<()> {
        match self.output.envelope {
            Envelope::Delta => self.outgoing.changes(epoch, changes),
            Envelope::Upsert => self.outgoing.memberships(epoch, changes),
        }
    }

    /// The reports of clusters in the topic.
    fn reports(&self) -> io::Result<BTreeSet<ClusterReport>> {
        let topic = &self.output.topic;
        let named = |error: io::Error| wrong(format!("topic \"{topic}\": {error}"));
        match self.output.envelope {
            Envelope::Delta => {
                let mut sum = Sum::default();
                read::topic(&self.output.connection, topic, |_, value| {
                    sum.add(value.unwrap_or_default()).map_err(named)
                })?;
                sum.reports().map_err(named)
            }
            Envelope::Upsert => {
                let mut now: BTreeMap<Vec<u8>, ClusterReport> = BTreeMap::new();
                read::topic(&self.output.connection, topic, |key, value| {
                    let key = key.unwrap_or_default();
                    match value.filter(|value| !value.is_empty()) {
                        Some(value) => drop(now.insert(key.to_vec(), read_now(key, value).map_err(named)?)),
                        None => drop(now.remove(key)),
                    }
                    Ok(())
                })?;
                Ok(now.into_values().collect())
            }
        }
    }

    /// The first offset that the output does not hold any more, with its partition, if records have expired.
    fn expired(&self) -> Result<Option<(u32, u64)>, Failure> {
        let admin = Admin::new(&self.output.connection)?;
        let found = admin.find(&self.output.topic)?;
        for partition in 0..found.map_or(0, |found| found.partitions) {
            let (first, _) = admin.held(&self.output.topic, partition)?;
            if first > 0 {
                return Ok(Some((partition, first)));
            }
        }
        Ok(None)
    }

    /// That the output holds all that has been written to it: what it adds up to is wrong otherwise.
    fn whole(&self) -> io::Result<()> {
        match self.expired().map_err(told)? {
            None => Ok(()),
            Some((partition, first)) => Err(wrong(format!(
                "topic \"{}\": records before offset {first} of partition {partition} have expired, so what it adds up to is not known and \
                 cannot be corrected; name another output topic and another transactional id, and the result is written there from the \
                 beginning",
                self.output.topic
            ))),
        }
    }

    /// Whether the output holds a committed record; open transactions are waited for no longer than this.
    fn holds_records(&self, bound: Option<Duration>) -> io::Result<bool> {
        let mut holds = false;
        let read = read::topic_within(&self.output.connection, &self.output.topic, bound, |_, _| {
            holds = true;
            Err(io::ErrorKind::Interrupted.into())
        });
        if holds { Ok(true) } else { read.map(|()| false) }
    }

    /// What stands in the output without a mark.
    fn unmarked(&self, bound: Option<Duration>) -> io::Result<Standing> {
        if !self.holds_records(bound)? {
            return Ok(Standing::New);
        }
        let KafkaOutput { topic, progress_topic, transactional_id, .. } = &self.output;
        Ok(Standing::Unmarked(format!(
            "topic \"{topic}\" holds records, and topic \"{progress_topic}\" no mark of the transactional id \"{transactional_id}\""
        )))
    }

    /// Makes the topics that are missing, so that the broker's own retention takes nothing from them.
    fn topics(&mut self) -> Result<(), Failure> {
        let admin = Admin::new(&self.output.connection)?;
        let progress = &self.output.progress_topic;
        let marks = Wanted { topic: progress, partitions: Some(1), compacted: true };
        let found = admin.ensure_with(marks, KEEPS_MARKS)?;
        if found.partitions != 1 {
            return Err(Failure::Fatal(format!(
                "topic \"{progress}\" has {} partitions: the topic of marks must have one",
                found.partitions
            )));
        }
        let (wanted, settings) = output_topic(&self.output.topic, self.output.envelope);
        admin.ensure_with(wanted, settings)?;
        self.found = admin.topic(&self.output.topic)?;
        if let Some(topic) = &self.output.dead_letter {
            admin.ensure_with(Wanted { topic, partitions: None, compacted: false }, KEEPS_ALL)?;
        }
        Ok(())
    }

    /// Writes what has been gathered, with a mark, in one transaction; whatever happens meanwhile, once.
    fn write(&mut self, mark: &Mark) -> Result<(), Failure> {
        self.transactions.write(&self.outgoing, self.known.as_ref(), mark)?;
        self.known = Some(mark.clone());
        self.outgoing.clear();
        Ok(())
    }
}

impl Sink for KafkaSink {
    /// Nothing is claimed, and no topic is made. A transaction that is still open (of a run that was killed,
    /// or of another program) may hold a later mark: then nothing is known.
    fn look(&mut self) -> io::Result<Option<Standing>> {
        let name = &self.output.topic;
        let found = Admin::new(&self.output.connection).and_then(|admin| admin.topic(name)).map_err(told)?;
        // One that is missing is no other one of the same name, and is that of no mark that has another name.
        self.found = Some(found.unwrap_or_else(|| Topic { name: name.clone(), id: None }));
        let stands = match self.transactions.look(DECIDED) {
            Ok(Some(mark)) => Ok(Standing::At(Box::new(mark))),
            Ok(None) => self.unmarked(Some(DECIDED)),
            Err(error) => Err(error),
        };
        match stands {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => Ok(None),
            stands => stands.map(Some),
        }
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        self.topics().map_err(told)?;
        self.known = self.transactions.take_over().map_err(told)?;
        let Some(found) = self.known.clone() else {
            return self.unmarked(None);
        };
        if let Some((partition, first)) = self.expired().map_err(told)? {
            tracing::warn!(
                topic = self.output.topic,
                partition,
                first,
                "records of the output have expired: a reader that begins now does not get the whole result, and it cannot be corrected"
            );
        }
        let mark = Mark { run: self.output.run.clone(), ..found.clone() };
        self.write(&mark).map_err(told)?;
        Ok(Standing::At(Box::new(found)))
    }

    fn topic(&self) -> Option<Topic> {
        self.found.clone()
    }

    /// Of clusters none: the topic holds reports of them, which are read, and corrected once all pairs are
    /// known.
    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        self.whole()?;
        if self.clusters.is_some() {
            let there = self.reports()?;
            if let Some(clusters) = &mut self.clusters {
                clusters.correct(there);
            }
            return Ok(BTreeSet::new());
        }
        let topic = &self.output.topic;
        match self.output.envelope {
            Envelope::Delta => {
                // A pair goes with whatever evidence it came.
                let mut counts: BTreeMap<_, (i64, Evidence)> = BTreeMap::new();
                read::topic(&self.output.connection, topic, |_, value| {
                    let (found, diff) = delta(topic, value.unwrap_or_default())?;
                    let (count, evidence) = counts.entry((found.pair, found.similarity)).or_default();
                    *count += i64::from(diff);
                    if diff > 0 {
                        *evidence = found.evidence;
                    }
                    Ok(())
                })?;
                counts.retain(|_, (count, _)| *count != 0);
                match counts.iter().find(|(_, (count, _))| *count != 1) {
                    Some(((pair, _), (count, _))) => Err(wrong(format!(
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
            Envelope::Upsert => {
                let mut now: BTreeMap<Vec<u8>, DocPair> = BTreeMap::new();
                read::topic(&self.output.connection, topic, |key, value| {
                    let key = key.unwrap_or_default();
                    match value.filter(|value| !value.is_empty()) {
                        Some(value) => drop(now.insert(key.to_vec(), delta(topic, value)?.0)),
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
                self.gather(progress.epoch, &changes)?;
            }
            (None, Envelope::Delta) => self.outgoing.deltas(progress.epoch, deltas, evidence)?,
            (None, Envelope::Upsert) => self.outgoing.upserts(progress.epoch, deltas, evidence)?,
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
            self.gather(mark.progress.epoch, &corrections)?;
        }
        self.write(mark).map_err(told)
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The topic of a result, as it is made if it is missing.
pub fn output_topic(topic: &str, envelope: Envelope) -> (Wanted<'_>, &'static TopicSettings) {
    let compacted = envelope == Envelope::Upsert;
    // A pair that ends is an empty payload, which compaction removes in its own time.
    let settings = if compacted { &[("cleanup.policy", "compact")][..] } else { KEEPS_ALL };
    (Wanted { topic, partitions: None, compacted }, settings)
}

/// The pair of a value.
fn delta(topic: &str, value: &[u8]) -> io::Result<(DocPair, i8)> {
    let line = std::str::from_utf8(value)
        .map_err(|_| wrong(format!("topic \"{topic}\" holds a value that is no delta")))?;
    read_delta(line)
}

fn wrong(what: String) -> io::Error {
    io::Error::new(io::ErrorKind::InvalidData, what)
}

fn told(failure: Failure) -> io::Error {
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
