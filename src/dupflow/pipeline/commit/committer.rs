//! The committer: writes closed epochs to the sink, on its own thread.
//!
//! All epochs closed since the last commit are written by the next one. A commit has these steps, in this
//! order:
//!
//! 1. The dead letters of its epochs are written.
//! 2. New tables of document frequencies are stored in the state.
//! 3. The deltas and the mark are committed by the sink, in one step; then by each [other](OtherOutput) one.
//! 4. Lines of [side outputs](crate::pipeline::outputs::SideOutputs) are committed, and the notices of the
//!    watch list written.
//! 5. The document changes are handed to the [keeper](super::keeper).
//!
//! So after a crash between two steps, the mark in the output says what the output contains, and everything
//! else is at or behind it.
//!
//! Epochs before the run is live repeat what the output already holds, so their deltas are not written. If
//! the output is to be corrected (another pipeline wrote it, or the state is lost), the committer
//! [reconciles](Reconcile) them with the pairs in the output. Before the first live epoch it writes the
//! difference as corrections. They are written in pieces, each with a commit; the marks of all but the last
//! say that more follow. The state that is stored meanwhile has the same flag: a later run that finds it
//! corrects the output, even if the output still has the mark of an older run.

use std::sync::Arc;
use std::time::Duration;

use super::keeper::Keeper;
use super::queue::{Commits, CommitterTask};
use crate::pipeline::error::RunError;
use crate::pipeline::outputs::{InForce, OtherOutput, SideOutputs, correction, corrections, pieces};
use crate::pipeline::past::Past;
use dupflow_connectors::failpoint;
use dupflow_connectors::intake::{Announce, AsOf, BadRecords, InputFile, InputLog, SourceError, TableLog};
use dupflow_connectors::mark::{InputList, MOST_SPANS, Mark, TableLook};
use dupflow_connectors::sinks::{LetterFile, Sink};
use dupflow_connectors::watch::{NoticeFile, WatchList};
use dupflow_core::doc::{DocChange, Letter, Position};
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::reconcile::Reconcile;
use dupflow_core::time::{
    Clock, Epoch, EpochTimes, LiveFrom, Offsets, Progress, SystemClock, unix_milliseconds, unix_seconds,
};
use dupflow_engine::dataflow::ClosedEpoch;
use dupflow_run::metrics::{Counter, Metrics};

/// Whether an output may be corrected, asked once, before.
pub(in crate::pipeline) type MayCorrect = Box<dyn Fn() -> bool + Send>;

/// See the [module](self).
pub(in crate::pipeline) struct Committer {
    pub(in crate::pipeline) sink: Box<dyn Sink + Send>,
    pub(in crate::pipeline) letters: Option<LetterFile>,
    pub(in crate::pipeline) keeper: Option<Keeper>,
    /// The file of notices, if there is a watch list. Written after the sink; a topic or a table of notices
    /// is one of `sides`.
    pub(in crate::pipeline) notices: Option<NoticeFile>,
    /// The watch list, whose posted watches are in a file.
    pub(in crate::pipeline) watches: Option<Arc<WatchList>>,
    pub(in crate::pipeline) bad: Arc<BadRecords>,
    pub(in crate::pipeline) metrics: Arc<Metrics>,
    pub(in crate::pipeline) live: Arc<LiveFrom>,
    /// The fields that all marks of this run share.
    pub(in crate::pipeline) mark: Mark,
    /// Times at which positions of the input were read, if the source records them.
    pub(in crate::pipeline) as_of: Option<Arc<AsOf>>,
    /// Which inputs are read, if the source lists them.
    pub(in crate::pipeline) reading: Option<Arc<InputLog>>,
    /// The looks at the table that is read, if the source is one.
    pub(in crate::pipeline) looks: Option<Arc<TableLog>>,
    /// What has the list of inputs beside the mark, if the output has such a place.
    pub(in crate::pipeline) inputs: Option<InputFile>,
    /// If the output is to be corrected: the pairs before the first live epoch, less those of the output.
    pub(in crate::pipeline) corrected: Option<Reconcile<DocPair>>,
    /// Whether the output may be corrected to what has been read; `None`: it may.
    pub(in crate::pipeline) may_correct: Option<MayCorrect>,
    /// Whether it was not: then nothing is written to it any more.
    is_refused: bool,
    /// The epoch of the output when the run began, for the state that is stored before the run is live.
    pub(in crate::pipeline) past: Epoch,
    /// Publishes the committed positions of the input.
    pub(in crate::pipeline) announce: Option<Announce>,
    /// Before which offsets the output has all dead letters.
    pub(in crate::pipeline) letters_up_to: Offsets,
    /// Letters of later records that were read before the run is live, and no correction.
    pub(in crate::pipeline) new_letters: Vec<Letter>,
    /// The last repeated epoch, or the epoch before the first.
    pub(in crate::pipeline) repeated: Progress,
    /// Whether the mark of the output lists no inputs, as one of an earlier version.
    pub(in crate::pipeline) is_unlisted: bool,
    /// Whether the sink has been notified that the run is live.
    pub(in crate::pipeline) notified_live: bool,
    /// The table of the sink, which names it beside others.
    pub(in crate::pipeline) table: String,
    /// Outputs of the same deltas beside the sink.
    pub(in crate::pipeline) others: Vec<OtherOutput>,
    /// What is in force, if an output may be left behind.
    pub(in crate::pipeline) in_force: Option<InForce>,
    /// Outputs of other rows.
    pub(in crate::pipeline) sides: SideOutputs,
}

impl Committer {
    /// A committer that continues from `past`. If the output is to be corrected, the sink gets its
    /// pairs as restored.
    pub(in crate::pipeline) fn new(
        mut sink: Box<dyn Sink + Send>,
        letters: Option<LetterFile>,
        keeper: Option<Keeper>,
        bad: Arc<BadRecords>,
        metrics: Arc<Metrics>,
        past: &mut Past,
    ) -> Self {
        let corrected = past.output_pairs.take().map(|there| {
            sink.restored(&there.iter().map(|pair| correction(pair.clone(), 1)).collect::<Vec<_>>());
            let mut pairs = Reconcile::default();
            there.into_iter().for_each(|pair| pairs.held(pair, 1));
            pairs
        });
        Self {
            sink,
            letters,
            keeper,
            notices: None,
            watches: None,
            bad,
            metrics,
            live: Arc::clone(&past.live),
            mark: past.mark.clone(),
            as_of: past.as_of.take(),
            reading: past.reading.take(),
            looks: past.looks.take(),
            inputs: None,
            corrected,
            may_correct: None,
            is_refused: false,
            past: past.epoch,
            announce: None,
            letters_up_to: std::mem::take(&mut past.letters_up_to),
            new_letters: Vec::new(),
            repeated: past.mark.progress.clone(),
            is_unlisted: past.is_unlisted,
            notified_live: false,
            table: String::new(),
            others: Vec::new(),
            in_force: None,
            sides: SideOutputs::default(),
        }
    }

    /// Writes every closed epoch, and finishes the sink after the last one. If the run is cancelled it
    /// returns without finishing the sink. After each commit it calls `durable` with the first and the last
    /// epoch, the duration of the commit, and whether workers wait for it. Returns which outputs are still
    /// behind at the end, and why.
    ///
    /// # Errors
    /// Errors of the sink, the dead letters or the keeper.
    pub(in crate::pipeline) fn run(
        self,
        commits: &Commits,
        clock: &dyn Clock,
        durable: impl FnMut(Epoch, Epoch, Duration, bool),
    ) -> Result<Vec<String>, RunError> {
        let (table, is_alone) = (self.table.clone(), self.others.is_empty());
        self.write_all(commits, clock, durable).map_err(|error| match error {
            // Who closes one of several outputs does not end the others.
            RunError::Sink(_) if !is_alone => RunError::Output { name: table, error: Box::new(error) },
            error => error,
        })
    }

    fn write_all(
        mut self,
        commits: &Commits,
        clock: &dyn Clock,
        mut durable: impl FnMut(Epoch, Epoch, Duration, bool),
    ) -> Result<Vec<String>, RunError> {
        if self.live.holds(self.repeated.epoch + 1) {
            // The run is live from its first epoch on.
            self.live()?;
        }
        loop {
            match commits.next() {
                CommitterTask::Leave => return Ok(Vec::new()),
                CommitterTask::Look => self.look()?,
                CommitterTask::Write(group) => {
                    let deltas = group.iter().map(|epoch| epoch.deltas.len()).sum();
                    let ends = group.front().zip(group.back());
                    let ends = ends.map(|(first, last)| (first.progress.epoch, last.progress.epoch));
                    let begun = clock.now();
                    self.commit(group.into(), clock.unix())?;
                    let took = clock.now().saturating_sub(begun);
                    if let Some((first, last)) = ends {
                        durable(first, last, took, commits.written(last, deltas));
                    }
                }
                CommitterTask::Finish => {
                    self.bad.flush()?;
                    if self.live.get().is_some() {
                        // The last epoch before the run is live may have had no records.
                        self.live()?;
                    } else if self.may_correct.is_some() && self.corrected.is_some() {
                        tracing::warn!("the output stays as it was: the inputs were not read to their end");
                    }
                    self.check()?;
                    self.list_inputs()?;
                    self.sink.finish().map_err(RunError::Sink)?;
                    let behind = self.finish_others()?;
                    self.sides.finish().map_err(RunError::Sink)?;
                    self.keeper.into_iter().for_each(Keeper::finish);
                    return Ok(behind);
                }
            }
        }
    }

    /// Writes a mark with the list of the inputs at the end of a run, if the output has none yet: so that the
    /// next run knows them, also where this one had nothing to write.
    fn list_inputs(&mut self) -> Result<(), RunError> {
        if !self.is_unlisted || self.mark.inputs.is_some() || !self.notified_live {
            return Ok(());
        }
        let progress =
            if self.mark.progress.epoch < self.repeated.epoch { &self.repeated } else { &self.mark.progress };
        self.write_mark(progress.clone())
    }

    /// Writes a mark for an epoch without deltas, in all outputs.
    fn write_mark(&mut self, progress: Progress) -> Result<(), RunError> {
        self.sink.epoch(&progress, &[], &[]).map_err(RunError::Sink)?;
        self.write(progress)?;
        self.others.iter_mut().try_for_each(|other| other.mark(&self.mark))
    }

    /// Looks at the outputs that were left behind, and corrects those that are back.
    fn look(&mut self) -> Result<(), RunError> {
        if self.is_refused || !self.notified_live {
            return Ok(());
        }
        self.mark_all()?;
        let Some(in_force) = &self.in_force else { return Ok(()) };
        self.others.iter_mut().try_for_each(|other| other.look(in_force, &self.mark))
    }

    /// Finishes the outputs beside the first. Returns which of them are behind, and why.
    fn finish_others(&mut self) -> Result<Vec<String>, RunError> {
        self.look()?;
        let in_force = self.in_force.as_ref().filter(|_| self.notified_live && !self.is_refused);
        let mut behind = Vec::new();
        // Those that are behind make their last attempt at the same time.
        let clock = SystemClock::start();
        self.others.iter().for_each(OtherOutput::hurry);
        for other in &mut self.others {
            in_force.map_or(Ok(()), |in_force| other.catch_up(in_force, &self.mark, &clock))?;
            behind.extend(other.finish()?);
        }
        Ok(behind)
    }

    /// Writes a mark to the first output, if one that was left behind would be corrected to none.
    fn mark_all(&mut self) -> Result<(), RunError> {
        if self.mark.commit.is_some() || !self.others.iter().any(OtherOutput::is_left) {
            return Ok(());
        }
        self.write_mark(self.repeated.clone())
    }

    /// Checks that the files beside the main output are still this run's. The sink checks its own before each
    /// commit, and when it is finished.
    fn check(&mut self) -> Result<(), RunError> {
        self.sides.check().map_err(RunError::Sink)?;
        if let Some(file) = &self.letters {
            file.check().map_err(RunError::Letters)?;
        }
        if let Some(file) = &self.notices {
            file.check().map_err(RunError::Notices)?;
        }
        match &self.watches {
            Some(list) => list.check().map_err(RunError::Watches),
            None => Ok(()),
        }
    }

    /// Makes a group of epochs durable, at the time `now` in unix seconds.
    fn commit(&mut self, mut group: Vec<ClosedEpoch>, now: f64) -> Result<(), RunError> {
        self.bad.flush()?;
        let live = group.partition_point(|epoch| !self.live.holds(epoch.progress.epoch));
        let mut of_live = group.split_off(live);
        for epoch in group {
            self.repeated(epoch)?;
        }
        let Some(last) = of_live.last().map(|epoch| epoch.progress.clone()) else { return Ok(()) };
        let (through, elsewhere) = (last.epoch, of_live.iter().map(|epoch| epoch.kept_by_others).sum());
        self.live()?;
        if self.is_refused {
            return Ok(());
        }
        self.check()?;
        let last = if self.mark.tally.is_some() { self.number(&mut of_live) } else { last };
        self.others.iter_mut().try_for_each(|other| other.computed(&of_live, now))?;
        let kept: Vec<_> = of_live.iter_mut().flat_map(|epoch| std::mem::take(&mut epoch.kept)).collect();
        for epoch in &of_live {
            let ClosedEpoch { progress, deltas, documents, upserts, letters, newest, .. } = epoch;
            // The first epoch that reads from a new partition sets its start.
            for (partition, next) in &progress.next {
                self.mark.start.entry(*partition).or_insert(*next);
            }
            self.write_letters(letters)?;
            self.pass_documents(documents, false)?;
            if !upserts.is_empty() {
                self.sink.upserts(upserts).map_err(RunError::Sink)?;
            }
            self.sink.times(EpochTimes { event: *newest, committed: now });
            self.sink.epoch(progress, deltas, letters).map_err(RunError::Sink)?;
            self.sides.epoch(epoch, &mut *self.sink).map_err(RunError::Sink)?;
        }
        self.write(last)?;
        if let Some(in_force) = &mut self.in_force {
            of_live.iter().for_each(|epoch| in_force.apply(epoch));
        }
        let of_live = Arc::new(of_live);
        self.others.iter_mut().try_for_each(|other| other.write(&of_live, now, &self.mark))?;
        self.look()?;
        of_live.iter().for_each(|epoch| self.metrics.add_written(&epoch.deltas));
        self.sides.commit(&self.side_mark()).map_err(RunError::Sink)?;
        of_live.iter().for_each(|epoch| self.sides.durable(epoch.progress.epoch, &epoch.views));
        let notices: usize = of_live.iter().map(|epoch| epoch.notices.len()).sum();
        self.metrics.add(Counter::Notices, notices as u64);
        if let Some(file) = &mut self.notices {
            for epoch in of_live.iter() {
                file.epoch(epoch.progress.epoch, &epoch.notices).map_err(RunError::Notices)?;
            }
            file.commit().map_err(RunError::Notices)?;
        }
        if let Some(keeper) = &self.keeper {
            keeper.keep(&self.mark, through, elsewhere, kept);
        }
        Ok(())
    }

    /// Numbers the epochs of a replay by what they read, so that the output does not show where it was gone
    /// on with: those that repeat what an earlier process has read do not count. Returns the last progress.
    fn number(&self, epochs: &mut [ClosedEpoch]) -> Progress {
        let mut last = self.mark.progress.clone();
        if last.epoch == self.past {
            // The mark was read where the state is, which may be behind the output.
            last.next.clone_from(&self.repeated.next);
        }
        for ClosedEpoch { progress, .. } in epochs {
            progress.epoch = last.epoch + u64::from(progress.next != last.next);
            last = progress.clone();
        }
        last
    }

    /// Writes letters to their file, and counts them.
    fn write_letters(&mut self, letters: &[Letter]) -> Result<(), RunError> {
        if let Some(file) = &mut self.letters {
            file.append(letters).map_err(RunError::Letters)?;
        }
        if let Some(tally) = &mut self.mark.tally {
            letters.iter().for_each(|bad| *tally.bad.entry(bad.reason.to_string()).or_default() += 1);
            tally.unread += letters.iter().filter(|bad| bad.hides_records).count() as u64;
        }
        Ok(())
    }

    /// Passes the changed documents of an epoch to the sink.
    fn pass_documents(&mut self, documents: &[DocChange], restored: bool) -> Result<(), RunError> {
        if documents.is_empty() {
            return Ok(());
        }
        self.sink.documents(documents, restored).map_err(RunError::Sink)
    }

    /// One commit of the sink, up to `progress`.
    fn write(&mut self, progress: Progress) -> Result<(), RunError> {
        self.reached(&progress)?;
        if let Some(file) = &mut self.letters {
            file.sync().map_err(RunError::Letters)?;
            self.mark.letters = Some(file.length());
            self.mark.letters_digest = Some(file.digest());
            failpoint::reach("letters");
        }
        self.put_table(&progress, &self.mark.progress)?;
        if let Some(tally) = &mut self.mark.tally {
            tally.replaced = self.metrics.get(Counter::ReplacedAcrossFiles);
        }
        self.mark.inputs = self.inputs_up_to(&progress);
        self.mark.table = self.look_up_to(progress.epoch);
        self.mark.progress = progress;
        self.mark.state = self.keeper.as_ref().and_then(Keeper::stored);
        self.mark.commit = (!self.others.is_empty()).then(rand::random);
        let inputs = self.marked_inputs()?;
        self.sink.commit(&Mark { inputs, ..self.mark.clone() }).map_err(RunError::Sink)?;
        failpoint::reach("commit");
        if let Some(file) = &mut self.letters {
            file.committed().map_err(RunError::Letters)?;
        }
        if let Some(announce) = &mut self.announce {
            announce(&self.mark.progress.next);
        }
        Ok(())
    }

    /// Stores the table of an epoch, if there is a state and an earlier epoch had another one.
    fn put_table(&self, progress: &Progress, before: &Progress) -> Result<(), RunError> {
        if let Some((keeper, table)) = self.keeper.as_ref().zip(progress.table)
            && before.table != Some(table)
        {
            keeper.put_table(table.fingerprint)?;
            failpoint::reach("table");
        }
        Ok(())
    }

    /// Notes as of when everything has been read. Fails before a commit of what was read too late.
    fn reached(&mut self, progress: &Progress) -> Result<(), RunError> {
        let Some(as_of) = &self.as_of else { return Ok(()) };
        let reached = as_of.reached(&progress.next, unix_milliseconds()).map_err(|late| {
            let input = self.mark.input.as_ref().map_or("", |topic| &topic.name).into();
            SourceError::Failed { input, what: late.to_string() }
        })?;
        self.mark.as_of = reached.or(self.mark.as_of);
        Ok(())
    }

    /// The inputs that were read up to a progress.
    fn inputs_up_to(&self, progress: &Progress) -> Option<InputList> {
        // A state takes them over soon, or a file.
        let most = if self.keeper.is_some() || self.inputs.is_some() { usize::MAX } else { MOST_SPANS };
        self.reading.as_ref()?.up_to(progress.next.values().copied().max()?, most)
    }

    /// The look at the table that holds at the end of an epoch.
    fn look_up_to(&self, epoch: Epoch) -> Option<TableLook> {
        self.looks.as_ref()?.up_to(epoch).or_else(|| self.mark.table.clone())
    }

    /// The list of inputs as the mark of the output has it.
    fn marked_inputs(&mut self) -> Result<Option<InputList>, RunError> {
        let Some(list) = &self.mark.inputs else { return Ok(None) };
        let Some(file) = &mut self.inputs else { return Ok(Some(list.bounded())) };
        let listed = file.put(list).map_err(RunError::Sink)?;
        if self.keeper.is_none() {
            self.reading.iter().for_each(|reading| reading.stored(listed.stored));
        }
        Ok(Some(listed))
    }

    /// The mark for outputs beside the main one, which has the list.
    fn side_mark(&self) -> Mark {
        Mark { inputs: None, ..self.mark.clone() }
    }

    /// Handles an epoch before the first live one.
    fn repeated(&mut self, epoch: ClosedEpoch) -> Result<(), RunError> {
        self.reached(&epoch.progress)?;
        self.sides.restored(&epoch);
        if let Some(in_force) = &mut self.in_force {
            in_force.apply(&epoch);
        }
        let ClosedEpoch { progress, deltas, documents, kept, kept_by_others, notices, mut letters, .. } =
            epoch;
        letters.retain(|letter| {
            let Position { partition, offset } = letter.position;
            let is_there = self.letters_up_to.get(&partition).is_some_and(|up_to| offset < *up_to);
            if is_there {
                self.bad.repeated(&letter.reason);
            }
            !is_there
        });
        self.keep_letters(letters)?;
        if let Some(file) = &mut self.notices {
            file.restored(notices);
        }
        self.put_table(&progress, &self.repeated)?;
        if let Some(keeper) = &self.keeper {
            // The mark has this epoch's offsets, and an epoch not beyond the output's.
            let at_most = Progress { epoch: self.past, ..progress.clone() };
            let in_correction = self.corrected.is_some();
            let (inputs, table) = (self.inputs_up_to(&progress), self.look_up_to(progress.epoch));
            let is_beyond = |(partition, next)| self.letters_up_to.get(partition).is_some_and(|at| at > next);
            let letters_up_to = progress.next.iter().any(is_beyond).then(|| self.letters_up_to.clone());
            let own = self.mark.clone();
            let mark = Mark { progress: at_most, in_correction, inputs, table, letters_up_to, ..own };
            keeper.keep(&mark, progress.epoch, kept_by_others, kept);
        }
        self.pass_documents(&documents, true)?;
        self.others.iter_mut().try_for_each(|other| other.restored(&documents, &deltas))?;
        match &mut self.corrected {
            None => self.sink.restored(&deltas),
            Some(pairs) => deltas.into_iter().for_each(|Delta { pair, diff, .. }| pairs.given(pair, diff)),
        }
        let is_last = self.live.get() == Some(progress.epoch + 1);
        self.repeated = progress;
        if is_last { self.live() } else { Ok(()) }
    }

    /// Makes letters durable that are read before the run is live, before a state stands for their records.
    fn keep_letters(&mut self, letters: Vec<Letter>) -> Result<(), RunError> {
        if letters.is_empty() {
            return Ok(());
        }
        if self.corrected.is_none() {
            // They are read again up to the mark, which is not beyond them.
            self.new_letters.extend(letters);
            return Ok(());
        }
        self.write_letters(&letters)?;
        if let Some(file) = &mut self.letters {
            file.sync().map_err(RunError::Letters)?;
            (self.mark.letters, self.mark.letters_digest) = (Some(file.length()), Some(file.digest()));
            return Ok(());
        }
        self.mark.in_correction = true;
        let progress = self.mark.progress.clone();
        self.sink.epoch(&progress, &[], &letters).map_err(RunError::Sink)?;
        self.write(progress)
    }

    /// Corrects the output if necessary, and notifies the sink that the run is live.
    fn live(&mut self) -> Result<(), RunError> {
        let is_corrected = self.correct()?;
        if !self.is_refused && !std::mem::replace(&mut self.notified_live, true) {
            let progress = self.repeated.clone();
            let is_marked = is_corrected || self.others.iter().any(OtherOutput::is_corrected);
            if is_marked && !is_corrected {
                self.sink.epoch(&progress, &[], &[]).map_err(RunError::Sink)?;
                self.write(progress.clone())?;
            }
            // Then all outputs have this mark.
            let repeated = Mark { progress: progress.clone(), ..self.mark.clone() };
            self.others.iter_mut().try_for_each(|other| other.live(&self.mark, is_marked, &repeated))?;
            let waits = self
                .sides
                .live(progress.epoch, &self.side_mark(), &mut *self.sink)
                .map_err(RunError::Sink)?;
            self.sink.live(progress.epoch);
            if let Some(file) = &mut self.notices {
                let written = file.live(progress.epoch).map_err(RunError::Notices)?;
                self.metrics.add(Counter::Notices, written);
            }
            if waits {
                // Rows of the main output, which the end of the last run or of the definitions left wrong.
                self.write_mark(progress)?;
            }
            self.look()?;
        }
        Ok(())
    }

    /// Writes the corrections, if the output is to be corrected and has not been yet. Returns whether it did.
    fn correct(&mut self) -> Result<bool, RunError> {
        let Some(pairs) = self.corrected.take() else { return Ok(false) };
        if self.may_correct.as_ref().is_some_and(|may| !may()) {
            tracing::warn!("the output stays as it was: what has been read is not what was demanded");
            self.is_refused = true;
            return Ok(false);
        }
        let progress = self.repeated.clone();
        let deltas = corrections(pairs);
        tracing::info!(corrections = deltas.len(), "the output is corrected");
        let letters = std::mem::take(&mut self.new_letters);
        self.write_letters(&letters)?;
        let mut letters = &*letters;
        // Corrections are of no event.
        self.sink.times(EpochTimes { event: None, committed: unix_seconds() });
        for (piece, is_last) in pieces(&deltas) {
            self.mark.in_correction = !is_last;
            self.sink.epoch(&progress, piece, std::mem::take(&mut letters)).map_err(RunError::Sink)?;
            self.write(progress.clone())?;
            self.metrics.add_written(piece);
        }
        if let Some(keeper) = &self.keeper {
            keeper.keep(&self.mark, self.repeated.epoch, 0, None);
        }
        Ok(true)
    }
}

#[cfg(test)]
#[path = "committer_tests.rs"]
mod tests;
