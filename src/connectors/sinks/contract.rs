//! The contract between the committer and a destination of pair deltas.

use std::collections::BTreeSet;
use std::io;
use std::time::Duration;

use super::side::SideDelta;
use crate::mark::{Mark, Standing, Topic};
use dupflow_core::doc::{DocChange, Letter, UpsertedDoc};
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::time::{Epoch, EpochTimes, Progress};

/// Looks whether what a run writes is still what it began with. Returns the time after which to look again;
/// an error ends the run.
pub type OutputGuard = Box<dyn FnMut() -> io::Result<Duration> + Send>;

/// A destination of pair deltas.
///
/// Contract. Only the committer calls a sink, from its one thread; workers never do.
///
/// ```text
///  inspect ─▶ take_over ─▶ [pairs] ─▶ restored* ─▶ ( epoch+ ─▶ commit )* ─▶ finish
///                                  ╰ documents   ╰ documents, upserts     each before its epoch, if wanted
///  live: once, before the first epoch, or after the corrections
/// ```
///
/// - [`Self::inspect`] is called first and changes nothing. So a run that is refused does not end the run
///   that holds the destination.
/// - [`Self::take_over`] is called once, before any input is read. From then on the run that held the
///   destination before cannot write to it: its next commit fails, and its uncommitted epochs are lost. A
///   destination that keeps no marks starts anew.
/// - [`Self::restored`] is called with the deltas of epochs up to the mark, which the output already holds. A
///   sink that derives its output from all deltas needs them.
/// - [`Self::documents`] is called, if they are [wanted](Self::wants_documents), before [`Self::restored`] or
///   [`Self::epoch`] of the same epoch, if the epoch changes a document. All changes together accumulate to
///   the live documents, in a new run and after a restart. While an output is corrected, the changes are
///   passed as the epochs are repeated, after the pairs of the output as [restored](Self::restored), and
///   before the corrections.
/// - [`Self::epoch`] is called once for every later epoch, in ascending order, once the epoch is closed. Its
///   deltas are final. An epoch may have no delta. After a restart there may be a gap in the numbers.
/// - [`Self::commit`] makes the epochs since the last commit *durable*, with a mark: all of them and the
///   mark, or nothing. When it returns, a reader of the destination finds them, also after the process ends
///   and, as far as the destination can ensure it, after the machine fails.
/// - The deltas of an epoch are consolidated: each diff is 1 or -1, and no two deltas are equal except for
///   their diffs. They are sorted by (a, b, diff): a pair whose similarity changes is a -1 followed by a +1.
/// - Over all epochs each pair accumulates to 0 or 1.
/// - [`Self::finish`] is called once, last, unless the run fails. Then the epochs up to the last commit are
///   durable.
/// - After an error no further call is made. An error of kind [`io::ErrorKind::BrokenPipe`] means that the
///   reader of the output has closed it.
///
/// A call may wait for its destination (a full pipe, an unreachable broker). Closed epochs queue meanwhile.
/// Once enough of them wait, the readers are held back; workers are not.
pub trait Sink {
    /// What the destination holds now. Creates, claims and changes nothing. `None` if only
    /// [`Self::take_over`] can say: so it is where one run at a time can open the destination, such as a
    /// file, and there is no other run to end.
    ///
    /// # Errors
    /// Any error of the destination.
    fn inspect(&mut self) -> io::Result<Option<Standing>> {
        Ok(None)
    }

    /// Takes the destination over. Returns what it holds.
    ///
    /// # Errors
    /// Any error of the destination; that another run holds it.
    fn take_over(&mut self) -> io::Result<Standing> {
        Ok(Standing::Forgets)
    }

    /// Checks that no later run has taken the destination over since. A run asks this before it takes over
    /// what it has beside the destination, so that of two runs the same one gets both.
    ///
    /// # Errors
    /// Any error of the destination; that another run has taken it over.
    fn check_held(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// Checks, where the output is continued without a correction, that it holds what the last commit left.
    ///
    /// # Errors
    /// Any error of the destination; that another program has changed it.
    fn check_unchanged(&mut self) -> io::Result<()> {
        Ok(())
    }

    /// The pairs that the durable deltas accumulate to, read from the destination itself.
    ///
    /// # Errors
    /// Any error of the destination; that it keeps no marks; that its contents are not deltas.
    fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the output keeps no marks"))
    }

    /// The topic that holds the deltas, if there is one; known after [`Self::inspect`] or
    /// [`Self::take_over`].
    fn topic(&self) -> Option<Topic> {
        None
    }

    /// What looks at the destination on a thread of its own, from [`Self::take_over`] to the end of the run;
    /// `None` if nothing does.
    fn guard(&self) -> Option<OutputGuard> {
        None
    }

    /// Whether [`Self::documents`] is to be called; read once, before the run begins. The changes cost about
    /// 100 bytes for each event of an open epoch, and are sent to the process that writes the output.
    fn wants_documents(&self) -> bool {
        false
    }

    /// Receives an epoch's changes of documents: at most one of each document, sorted by id. `restored` is
    /// true for epochs before the run is live. Then a destination that continues already holds the changes; a
    /// new one, or one that is corrected, does not.
    ///
    /// # Errors
    /// Any error of the destination.
    fn documents(&mut self, _changes: &[DocChange], _restored: bool) -> io::Result<()> {
        Ok(())
    }

    /// Whether [`Self::upserts`] is to be called; read once, before the run begins. They cost about 50 bytes
    /// for each upsert of an open epoch.
    fn wants_upserts(&self) -> bool {
        false
    }

    /// Receives the documents with an upsert in an epoch, each once, sorted by id: after
    /// [`Self::documents`] and before [`Self::epoch`] of the same epoch. Not called for epochs before the
    /// run is live.
    ///
    /// # Errors
    /// Any error of the destination.
    fn upserts(&mut self, _upserts: &[UpsertedDoc]) -> io::Result<()> {
        Ok(())
    }

    /// Receives deltas that the output already holds.
    fn restored(&mut self, _deltas: &[Delta]) {}

    /// Called when the run becomes live: everything the output holds, up to epoch `past`, has been passed
    /// and, where necessary, corrected.
    fn live(&mut self, _past: Epoch) {}

    /// Called before [`Self::epoch`], with the times of the same epoch.
    fn times(&mut self, _times: EpochTimes) {}

    /// Writes one epoch: its progress, its deltas, and its records that are not valid events (if dead letters
    /// are written here).
    ///
    /// # Errors
    /// Any error of the destination.
    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], letters: &[Letter]) -> io::Result<()>;

    /// Makes the epochs since the last commit durable, with the mark.
    ///
    /// # Errors
    /// Any error of the destination; that another run has taken it over.
    fn commit(&mut self, mark: &Mark) -> io::Result<()>;

    /// Passes each change of rows that the destination holds under this name, a topic or a table, from side
    /// outputs ([`crate::sinks::side`]). Called after [`Self::take_over`]; creates what is missing.
    ///
    /// # Errors
    /// Any error of the destination; [`io::ErrorKind::Unsupported`] if it takes no rows.
    fn side_rows(&mut self, _name: &str, _each: &mut dyn FnMut(SideDelta)) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the output takes no rows of views"))
    }

    /// Writes changes of rows under this name, to be durable with the next commit.
    ///
    /// # Errors
    /// As [`Self::side_rows`].
    fn side(&mut self, _name: &str, _epoch: Epoch, _deltas: &[SideDelta]) -> io::Result<()> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "the output takes no rows of views"))
    }

    /// Writes out everything that is still buffered.
    ///
    /// # Errors
    /// Any error of the destination.
    fn finish(&mut self) -> io::Result<()>;
}

/// A list that is written at the end: what the changes of documents and of pairs accumulate to. As a [`Sink`]
/// it keeps no marks, and nothing of it is durable before.
pub trait EndList {
    /// Whether [`Self::change`] is to be called.
    const OF_DOCUMENTS: bool = false;

    /// Takes the changes of documents of an epoch.
    fn change(&mut self, _changes: &[DocChange]) {}

    /// Takes the changes of pairs of an epoch.
    fn follow(&mut self, deltas: &[Delta]);

    /// Writes the list.
    ///
    /// # Errors
    /// Any error of the destination.
    fn write(&mut self) -> io::Result<()>;
}

impl<L: EndList> Sink for L {
    fn wants_documents(&self) -> bool {
        L::OF_DOCUMENTS
    }

    fn documents(&mut self, changes: &[DocChange], _: bool) -> io::Result<()> {
        self.change(changes);
        Ok(())
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.follow(deltas);
    }

    fn epoch(&mut self, _: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        self.follow(deltas);
        Ok(())
    }

    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write()
    }
}
