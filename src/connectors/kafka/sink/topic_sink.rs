//! The sink that writes to a topic.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use super::holder::TopicHolder;
use super::outgoing::Outgoing;
use super::output::{KafkaOutput, output_topic, side_topic};
use super::owned::{OwnedTopics, TopicRole};
use super::read_back::io_error;
use super::transaction::Transactions;
use crate::kafka::broker::{Admin, KEEPS_ALL, KEEPS_MARKS, KafkaFailure, TopicRequest};
use crate::kafka::envelope::OutputEnvelope;
use crate::mark::{Mark, Standing, Topic};
use crate::sinks::book::{Answers, Book, LastDecisions};
use crate::sinks::side::SideDelta;
use crate::sinks::{DecisionMode, OutputGuard, PairStyle, Sink, StandardError};
use dupflow_core::cluster::Clusters;
use dupflow_core::doc::{DocChange, Letter, UpsertedDoc};
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::time::{Epoch, EpochTimes, Progress};
use dupflow_run::metrics::Metrics;

/// How long [`Sink::inspect`] waits for open transactions. Those of a healthy run end sooner.
const INSPECT_WAIT: Duration = Duration::from_secs(2);

/// Writes deltas, letters and the mark of an epoch to topics, in one transaction.
pub struct KafkaSink {
    output: KafkaOutput,
    evidence: Option<StandardError>,
    /// Present if changes of clusters or decisions are written instead of pairs.
    book: Option<Book>,
    outgoing: Outgoing,
    transactions: Transactions,
    /// The last mark in the topic, on which the next commit builds.
    known: Option<Mark>,
    /// The output topic, once it has been looked up.
    found: Option<Topic>,
    /// The topic of dead letters, once the run writes there.
    letters: Option<Topic>,
    owned: OwnedTopics,
}

impl KafkaSink {
    /// Sets what values have of pairs.
    #[must_use]
    pub fn with_style(mut self, style: PairStyle) -> Self {
        self.outgoing.style = style;
        self
    }

    /// Sets whether values have causes: of each delta its own, of a pair as it is now that of its last
    /// change.
    #[must_use]
    pub fn with_causes(mut self, causes: bool) -> Self {
        self.outgoing.causes = causes;
        self
    }

    /// Sets whether values have the times of their epoch.
    #[must_use]
    pub fn with_times(mut self, times: bool) -> Self {
        self.outgoing.times = times.then(EpochTimes::default);
        self
    }

    /// Connects to nothing yet. Evidence is written if there is a standard error.
    ///
    /// Causes and times are not written unless requested ([`Self::with_causes`], [`Self::with_times`]).
    pub fn new(output: KafkaOutput, evidence: Option<StandardError>) -> Self {
        let owned = OwnedTopics::default();
        Self {
            transactions: Transactions::new(&output, &owned),
            output,
            evidence,
            book: None,
            outgoing: Outgoing::default(),
            known: None,
            found: None,
            letters: None,
            owned,
        }
    }

    /// As [`Self::new`], but writes decisions. `clusters` must be empty.
    pub fn for_decisions(
        output: KafkaOutput,
        mode: DecisionMode,
        clusters: Clusters,
        metrics: Arc<Metrics>,
    ) -> Self {
        Self { book: Some(Book::new(clusters).with_decisions(mode, metrics)), ..Self::new(output, None) }
    }

    /// As [`Self::new`], but writes changes of clusters. `clusters` must be empty.
    pub fn for_clusters(output: KafkaOutput, clusters: Clusters, metrics: Arc<Metrics>) -> Self {
        Self { book: Some(Book::new(clusters).with_clusters(metrics)), ..Self::new(output, None) }
    }

    /// When decisions are written; `None` if they are not.
    fn decides(&self) -> Option<DecisionMode> {
        self.book.as_ref().and_then(Book::decides)
    }

    /// Encodes answers for the next commit.
    fn encode(&mut self, epoch: Epoch, Answers { clusters, decisions }: &Answers) -> io::Result<()> {
        match self.output.envelope {
            OutputEnvelope::Delta => self.outgoing.changes(epoch, clusters)?,
            OutputEnvelope::Upsert => self.outgoing.memberships(epoch, clusters)?,
        }
        let is_current = self.decides() == Some(DecisionMode::Current);
        self.outgoing.decisions(epoch, decisions, is_current)
    }

    /// Creates missing topics, with retention settings under which the broker deletes nothing.
    fn ensure_topics(&mut self) -> Result<(), KafkaFailure> {
        let admin = Admin::new(&self.output.connection)?;
        let progress = &self.output.progress_topic;
        let marks = TopicRequest { topic: progress, partitions: Some(1), compacted: true };
        let found = admin.ensure(marks, KEEPS_MARKS)?;
        if found.partitions != 1 {
            return Err(KafkaFailure::Fatal(format!(
                "topic \"{progress}\" has {} partitions: the topic of marks must have one",
                found.partitions
            )));
        }
        self.owned.add(&admin, progress, TopicRole::Marks)?;
        let (wanted, settings) = output_topic(&self.output.topic, self.output.envelope);
        admin.ensure(wanted, settings)?;
        self.found = self.owned.add(&admin, &self.output.topic, TopicRole::Output)?;
        if let Some(topic) = &self.output.dead_letter {
            admin.ensure(TopicRequest { topic, partitions: None, compacted: false }, KEEPS_ALL)?;
            self.letters = self.owned.add(&admin, topic, TopicRole::Letters)?;
        }
        Ok(())
    }

    /// Writes the encoded records and a mark in one transaction, exactly once.
    fn write(&mut self, mark: &Mark) -> Result<(), KafkaFailure> {
        self.owned.check()?;
        let mark = Mark { letters_topic: self.letters.clone(), ..mark.clone() };
        self.transactions.write(&self.outgoing, self.known.as_ref(), &mark)?;
        self.known = Some(mark);
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
            Ok(None) => self.output.unmarked(Some(INSPECT_WAIT)),
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
            if let Some(book) = &mut self.book {
                // Documents from a state that is there are missing in this new output.
                book.correct_decisions(LastDecisions::default());
            }
            return self.output.unmarked(None);
        };
        if let Some((partition, first)) = self.output.expired().map_err(io_error)? {
            tracing::warn!(
                topic = self.output.topic,
                partition,
                first,
                "records of the output have expired: a reader that begins now does not get the whole result, \
                 and it cannot be corrected"
            );
        }
        if let Some((was, is)) = found.letters_topic.as_ref().zip(self.letters.as_ref())
            && was.name == is.name
            && !was.is(is)
        {
            tracing::warn!("{was} was created again, it is {is} now: the dead letters that it held are lost");
        }
        let mark = Mark { run: self.output.run.clone(), ..found.clone() };
        self.write(&mark).map_err(io_error)?;
        Ok(Standing::At(Box::new(found)))
    }

    fn check_held(&mut self) -> io::Result<()> {
        self.transactions.check_claims().map_err(io_error)
    }

    fn topic(&self) -> Option<Topic> {
        self.found.clone()
    }

    fn guard(&self) -> Option<OutputGuard> {
        Some(self.owned.guard(&self.output.connection, self.output.refresh))
    }

    /// Empty for clusters and decisions: the topic holds no pairs. What it holds is read here and corrected
    /// once all pairs are known.
    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        self.output.check_complete()?;
        let Some(book) = &mut self.book else {
            let (pairs, have_sides) = self.output.pairs()?;
            // Its corrections are written as its records are.
            self.outgoing.style.sides |= have_sides;
            return Ok(pairs);
        };
        match book.decides() {
            Some(_) => book.correct_decisions(self.output.decisions()?),
            None => book.correct_clusters(self.output.reports()?),
        }
        Ok(BTreeSet::new())
    }

    fn times(&mut self, times: EpochTimes) {
        self.outgoing.times = self.outgoing.times.map(|_| times);
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], letters: &[Letter]) -> io::Result<()> {
        let evidence = self.evidence.as_ref();
        match (&mut self.book, self.output.envelope) {
            (Some(book), _) => {
                let answers = book.advance(deltas);
                self.encode(progress.epoch, &answers)?;
            }
            (None, OutputEnvelope::Delta) => self.outgoing.deltas(progress.epoch, deltas, evidence)?,
            (None, OutputEnvelope::Upsert) => self.outgoing.upserts(progress.epoch, deltas, evidence)?,
        }
        if self.output.dead_letter.is_some() {
            self.outgoing.letters(letters);
        }
        Ok(())
    }

    fn wants_documents(&self) -> bool {
        self.decides().is_some()
    }

    fn documents(&mut self, changes: &[DocChange], _: bool) -> io::Result<()> {
        if let Some(book) = &mut self.book {
            book.documents(changes);
        }
        Ok(())
    }

    fn wants_upserts(&self) -> bool {
        self.decides().is_some()
    }

    fn upserts(&mut self, upserts: &[UpsertedDoc]) -> io::Result<()> {
        if let Some(book) = &mut self.book {
            book.upserts(upserts);
        }
        Ok(())
    }

    fn live(&mut self, _: Epoch) {
        if let Some(book) = &mut self.book {
            book.live();
        }
    }

    fn restored(&mut self, deltas: &[Delta]) {
        if let Some(book) = &mut self.book {
            book.restored(deltas);
        }
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        if let Some(book) = &mut self.book {
            let answers = book.corrections(mark);
            self.encode(mark.progress.epoch, &answers)?;
        }
        self.write(mark).map_err(io_error)
    }

    fn side_rows(&mut self, name: &str, each: &mut dyn FnMut(SideDelta)) -> io::Result<()> {
        let admin = Admin::new(&self.output.connection).map_err(io_error)?;
        // No client joins the group of a topic that does not exist.
        admin.ensure(side_topic(name), KEEPS_ALL).map_err(io_error)?;
        // Before it is read: if it is created again meanwhile, the rows that were read are not in it.
        self.owned.add(&admin, name, TopicRole::Rows).map_err(io_error)?;
        self.owned.hold(TopicHolder::join(&self.output, name).map_err(io_error)?);
        self.output.side_rows(name, each)
    }

    fn side(&mut self, name: &str, epoch: Epoch, deltas: &[SideDelta]) -> io::Result<()> {
        self.outgoing.side(&name.into(), epoch, deltas);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl fmt::Debug for KafkaSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("KafkaSink")
            .field("output", &self.output)
            .field("known", &self.known)
            .finish_non_exhaustive()
    }
}
