//! The committer: closed epochs to the sink, on a thread of its own.
//!
//! What was closed since the last commit goes into the next one together. A commit is, in this order: the bad
//! records of its epochs, kept where they are kept; tables of document frequencies that they made, stored;
//! their deltas and the mark, in one step of the sink. After it, and only then, what they change of the
//! documents goes to the [keeper](super::keeper). So whatever ends the process between two of these steps,
//! the mark in the output tells what the output stands for, and all else is at or behind it.
//!
//! Epochs before the run is live repeat what the output holds already: they are taken for written. If the
//! output is to be corrected (by another pipeline, or because what was kept is lost), their deltas are added
//! up instead, and what the sum differs by from the pairs in the output is written as corrections before the
//! first live epoch: in pieces, each of them a commit. Its mark says that there are more. What is kept
//! meanwhile says so too: a run that finds it corrects the output, although the mark there is that of the run
//! before.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use super::RunError;
use super::commits::{Commits, Next};
use super::keeper::Keeper;
use super::past::Past;
use dupflow_connectors::failpoint;
use dupflow_connectors::intake::{Announce, AsOf, BadRecords};
use dupflow_connectors::mark::Mark;
use dupflow_connectors::sinks::{LetterFile, Sink};
use dupflow_core::doc::DocChange;
use dupflow_core::pair::{Cause, Delta, DocPair};
use dupflow_core::time::{Clock, Epoch, LiveFrom, Progress};
use dupflow_engine::dataflow::ClosedEpoch;

/// Corrections in one commit, at most and about: a transaction of a broker must not take long.
const CORRECTIONS: usize = 20_000;

/// Writes what is closed.
pub(super) struct Committer {
    pub(super) sink: Box<dyn Sink + Send>,
    pub(super) letters: Option<LetterFile>,
    pub(super) keeper: Option<Keeper>,
    pub(super) bad: Arc<BadRecords>,
    pub(super) live: Arc<LiveFrom>,
    /// What the marks of this run have in common.
    pub(super) mark: Mark,
    /// As of when the input has been read, if that is noted.
    pub(super) as_of: Option<Arc<AsOf>>,
    /// The pairs that the output holds, and those that epochs before the first live one add up to, if it is
    /// to be corrected.
    pub(super) corrected: Option<Corrected>,
    /// Where the output stands, for what is kept before the run is live.
    pub(super) past: Epoch,
    /// Shows others how far the output stands.
    pub(super) announce: Option<Announce>,
    /// The last epoch that was repeated, or the one before the first.
    pub(super) repeated: Progress,
    /// The sink knows that the run is live.
    pub(super) told_live: bool,
}

/// Two results to be told apart.
#[derive(Debug, Default)]
pub(super) struct Corrected {
    pub(super) there: BTreeSet<DocPair>,
    pub(super) here: BTreeMap<DocPair, isize>,
}

impl Committer {
    /// Takes over what an earlier run has left.
    pub(super) fn new(
        sink: Box<dyn Sink + Send>,
        letters: Option<LetterFile>,
        keeper: Option<Keeper>,
        bad: Arc<BadRecords>,
        past: &mut Past,
    ) -> Self {
        Self {
            sink,
            letters,
            keeper,
            bad,
            live: Arc::clone(&past.live),
            mark: past.mark.clone(),
            as_of: past.as_of.take(),
            corrected: past.there.take().map(|there| Corrected { there, here: BTreeMap::new() }),
            past: past.mark.progress.epoch,
            announce: None,
            repeated: past.mark.progress.clone(),
            told_live: false,
        }
    }

    /// Writes every epoch that is closed, and finishes the sink after the last one; ends early, without
    /// finishing, if the run is cancelled. `durable` is told each group of epochs by its first and last, how
    /// long its commit took, and whether workers wait for it.
    ///
    /// # Errors
    /// Those of the sink, of the dead letters, and of the keeper.
    pub(super) fn run(
        mut self,
        commits: &Commits,
        clock: &dyn Clock,
        mut durable: impl FnMut(Epoch, Epoch, Duration, bool),
    ) -> Result<(), RunError> {
        if self.live.holds(self.repeated.epoch + 1) {
            // Nothing has to be read before.
            self.live()?;
        }
        loop {
            match commits.next() {
                Next::Leave => return Ok(()),
                Next::Write(group) => {
                    let deltas = group.iter().map(|epoch| epoch.deltas.len()).sum();
                    let ends = group.front().zip(group.back());
                    let ends = ends.map(|(first, last)| (first.progress.epoch, last.progress.epoch));
                    let begun = clock.now();
                    self.commit(group.into())?;
                    let took = clock.now().saturating_sub(begun);
                    if let Some((first, last)) = ends {
                        durable(first, last, took, commits.written(last, deltas));
                    }
                }
                Next::Finish => {
                    self.bad.flush()?;
                    if self.live.get().is_some() {
                        // The past may have ended with an epoch in which nothing was read.
                        self.live()?;
                    }
                    self.sink.finish().map_err(RunError::Sink)?;
                    return self.keeper.map_or(Ok(()), Keeper::finish);
                }
            }
        }
    }

    /// Makes epochs durable.
    fn commit(&mut self, mut group: Vec<ClosedEpoch>) -> Result<(), RunError> {
        self.bad.flush()?;
        let live = group.partition_point(|epoch| !self.live.holds(epoch.progress.epoch));
        let of_live = group.split_off(live);
        for epoch in group {
            self.repeated(epoch)?;
        }
        let Some(last) = of_live.last().map(|epoch| epoch.progress.clone()) else { return Ok(()) };
        self.live()?;
        for ClosedEpoch { progress, deltas, documents, letters, .. } in &of_live {
            // A partition that is new is first named by the epoch in which its reading began.
            for (partition, next) in &progress.next {
                self.mark.start.entry(*partition).or_insert(*next);
            }
            if let Some(file) = &mut self.letters {
                file.append(letters).map_err(RunError::Letters)?;
            }
            self.tell(documents, false)?;
            self.sink.epoch(progress, deltas, letters).map_err(RunError::Sink)?;
        }
        self.write(last)?;
        if let Some(keeper) = &self.keeper {
            keeper.keep(&self.mark, of_live.into_iter().flat_map(|epoch| epoch.kept));
        }
        Ok(())
    }

    /// Tells of an epoch's documents.
    fn tell(&mut self, documents: &[DocChange], restored: bool) -> Result<(), RunError> {
        if documents.is_empty() {
            return Ok(());
        }
        self.sink.documents(documents, restored).map_err(RunError::Sink)
    }

    /// One commit of the sink, up to `progress`.
    fn write(&mut self, progress: Progress) -> Result<(), RunError> {
        if let Some(file) = &mut self.letters {
            self.mark.letters = Some(file.sync().map_err(RunError::Letters)?);
            failpoint::reach("letters");
        }
        if let Some((keeper, table)) = self.keeper.as_ref().zip(progress.table)
            && self.mark.progress.table != Some(table)
        {
            keeper.put_table(table.fingerprint)?;
            failpoint::reach("table");
        }
        if let Some(at) = self.as_of.as_ref().and_then(|as_of| as_of.reached(&progress.next)) {
            self.mark.as_of = Some(at);
        }
        self.mark.progress = progress;
        self.sink.commit(&self.mark).map_err(RunError::Sink)?;
        failpoint::reach("commit");
        if let Some(announce) = &mut self.announce {
            announce(&self.mark.progress.next);
        }
        Ok(())
    }

    /// An epoch before the first live one.
    fn repeated(&mut self, epoch: ClosedEpoch) -> Result<(), RunError> {
        let ClosedEpoch { progress, deltas, documents, kept, .. } = epoch;
        if let Some(keeper) = &self.keeper {
            // At its own offsets, and not beyond the output.
            let at_most = Progress { epoch: self.past, ..progress.clone() };
            let in_correction = self.corrected.is_some();
            keeper.keep(&Mark { progress: at_most, in_correction, ..self.mark.clone() }, kept);
        }
        self.tell(&documents, true)?;
        match &mut self.corrected {
            None => self.sink.restored(&deltas),
            Some(Corrected { here, .. }) => {
                for Delta { pair, diff, .. } in deltas {
                    *here.entry(pair).or_default() += diff;
                }
            }
        }
        let is_last = self.live.get() == Some(progress.epoch + 1);
        self.repeated = progress;
        if is_last { self.live() } else { Ok(()) }
    }

    /// The run is live: what is written from here on is news, once the output is as it should be.
    fn live(&mut self) -> Result<(), RunError> {
        self.correct()?;
        if !std::mem::replace(&mut self.told_live, true) {
            self.sink.live(self.repeated.epoch);
        }
        Ok(())
    }

    /// Writes what differs, if anything is to be corrected that has not been.
    fn correct(&mut self) -> Result<(), RunError> {
        let Some(Corrected { there, here }) = self.corrected.take() else { return Ok(()) };
        let progress = self.repeated.clone();
        let here: BTreeSet<DocPair> =
            here.into_iter().filter(|(_, n)| *n > 0).map(|(pair, _)| pair).collect();
        let delta = |pair: &DocPair, diff| Delta { pair: pair.clone(), diff, cause: Cause::Correction };
        self.sink.restored(&there.iter().map(|pair| delta(pair, 1)).collect::<Vec<_>>());
        let went = there.difference(&here).map(|pair| delta(pair, -1));
        let mut deltas: Vec<_> = went.chain(here.difference(&there).map(|pair| delta(pair, 1))).collect();
        deltas.sort_unstable_by(|a, b| (&a.pair.pair, a.diff).cmp(&(&b.pair.pair, b.diff)));
        tracing::info!(corrections = deltas.len(), pairs = here.len(), "the output is corrected");
        let mut rest = &*deltas;
        while !rest.is_empty() {
            // The changes of a pair stay together.
            let last = &rest[rest.len().min(CORRECTIONS) - 1].pair.pair;
            let (piece, left) = rest.split_at(rest.partition_point(|next| next.pair.pair <= *last));
            rest = left;
            self.mark.in_correction = !rest.is_empty();
            self.sink.epoch(&progress, piece, &[]).map_err(RunError::Sink)?;
            self.write(progress.clone())?;
        }
        if deltas.is_empty() {
            self.sink.epoch(&progress, &[], &[]).map_err(RunError::Sink)?;
            self.write(progress)?;
        }
        if let Some(keeper) = &self.keeper {
            keeper.keep(&self.mark, None);
        }
        Ok(())
    }
}

#[cfg(test)]
#[path = "committer_tests.rs"]
mod tests;
