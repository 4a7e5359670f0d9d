//! The sink that writes to a topic.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::time::Duration;

use super::holder::TopicHolder;
use super::outgoing::Outgoing;
use super::output::{KafkaOutput, output_topic, side_topic};
use super::owned::{OwnedTopics, TopicRole};
use super::read;
use super::read_back::io_error;
use super::transaction::Transactions;
use crate::kafka::broker::{Admin, KEEPS_ALL, KEEPS_MARKS, KafkaFailure, TopicRequest};
use crate::kafka::envelope::OutputEnvelope;
use crate::mark::{Mark, Standing, Topic};
use crate::sinks::answers::{Changes, PairDeltas, RecordForm};
use crate::sinks::side::SideDelta;
use crate::sinks::{OutputGuard, Sink, StandardError};
use dupflow_core::doc::{DocChange, Letter, UpsertedDoc};
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::time::{Epoch, EpochTimes, Progress};

/// How long [`Sink::inspect`] waits for open transactions. Those of a healthy run end sooner.
const INSPECT_WAIT: Duration = Duration::from_secs(2);

/// Writes the changes of an answer, letters and the mark of an epoch to topics, in one transaction.
pub struct KafkaSink {
    output: KafkaOutput,
    changes: Box<dyn Changes + Send>,
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
    /// Writes pairs, with evidence if there is a standard error. Connects to nothing yet.
    pub fn new(output: KafkaOutput, evidence: Option<StandardError>) -> Self {
        Self::for_changes(output, Box::new(PairDeltas::new(evidence)))
    }

    /// Writes the changes of an answer. Connects to nothing yet.
    pub fn for_changes(output: KafkaOutput, changes: Box<dyn Changes + Send>) -> Self {
        let owned = OwnedTopics::default();
        Self {
            transactions: Transactions::new(&output, &owned),
            output,
            changes,
            outgoing: Outgoing::default(),
            known: None,
            found: None,
            letters: None,
            owned,
        }
    }

    /// What the records of the topic are.
    fn form(&self) -> RecordForm {
        match self.output.envelope {
            OutputEnvelope::Delta => RecordForm::Deltas,
            OutputEnvelope::Upsert => RecordForm::Present,
        }
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
            self.changes.begin();
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

    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        self.output.check_complete()?;
        let (form, output) = (self.form(), &self.output);
        let named = |error: io::Error| match error.kind() {
            io::ErrorKind::InvalidData => {
                io::Error::new(error.kind(), format!("topic \"{}\": {error}", output.topic))
            }
            _ => error,
        };
        let read = self.changes.read_back(form, &mut |each| {
            // Some programs write an empty value where a record has none.
            let is_value = |value: &&[u8]| !value.is_empty();
            read::topic(&output.connection, &output.topic, |key, value| each(key, value.filter(is_value)))
        });
        read.map_err(named)
    }

    fn times(&mut self, times: EpochTimes) {
        self.changes.times(times);
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], letters: &[Letter]) -> io::Result<()> {
        let (form, outgoing) = (self.form(), &mut self.outgoing);
        self.changes.epoch(form, progress.epoch, deltas, &mut |key, row| outgoing.record(key, row))?;
        if self.output.dead_letter.is_some() {
            outgoing.letters(letters);
        }
        Ok(())
    }

    fn wants_documents(&self) -> bool {
        self.changes.wants_documents()
    }

    fn documents(&mut self, changes: &[DocChange], _: bool) -> io::Result<()> {
        self.changes.documents(changes);
        Ok(())
    }

    fn wants_upserts(&self) -> bool {
        self.changes.wants_documents()
    }

    fn upserts(&mut self, upserts: &[UpsertedDoc]) -> io::Result<()> {
        self.changes.upserts(upserts);
        Ok(())
    }

    fn live(&mut self, _: Epoch) {
        self.changes.live();
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.changes.restored(deltas);
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        let (form, outgoing) = (self.form(), &mut self.outgoing);
        self.changes.corrections(form, mark, &mut |key, row| outgoing.record(key, row))?;
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
