//! What a run has computed: the sink puts it here, callers wait for it and take it.

use std::collections::BTreeSet;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use dupflow::connectors::mark::Mark;
use dupflow::connectors::sinks::Sink;
use dupflow::core::doc::Letter;
use dupflow::core::pair::{Delta, DocPair};
use dupflow::core::time::{Epoch, Progress};
use parking_lot::{Condvar, Mutex};

/// Fewest deltas that are consolidated before somebody takes them.
const MANY: usize = 1 << 16;

/// The deltas of a run since they were last taken.
#[derive(Debug, Default)]
pub(crate) struct Collected {
    state: Mutex<CollectedState>,
    changed: Condvar,
}

#[derive(Debug, Default)]
struct CollectedState {
    deltas: Vec<Delta>,
    /// How many deltas were left by the last consolidation.
    consolidated: usize,
    durable: Epoch,
    is_live: bool,
    /// No more will be collected: the run has ended.
    is_over: bool,
}

/// The run has ended.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Over;

impl Collected {
    /// Waits at most `time` until the run is live. Returns whether it is.
    ///
    /// # Errors
    /// If the run has ended before.
    pub(crate) fn live(&self, time: Duration) -> Result<bool, Over> {
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| !state.is_live && !state.is_over, time);
        if state.is_live || !state.is_over { Ok(state.is_live) } else { Err(Over) }
    }

    /// Waits at most `time` until an epoch is durable in the output. Returns whether it is.
    ///
    /// # Errors
    /// If the run has ended before.
    pub(crate) fn durable(&self, epoch: Epoch, time: Duration) -> Result<bool, Over> {
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| state.durable < epoch && !state.is_over, time);
        if state.durable >= epoch || !state.is_over { Ok(state.durable >= epoch) } else { Err(Over) }
    }

    /// The last epoch that is durable.
    pub(crate) fn epoch(&self) -> Epoch {
        self.state.lock().durable
    }

    /// Waits at most `time` until the run has ended. Returns whether it has.
    pub(crate) fn over(&self, time: Duration) -> bool {
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| !state.is_over, time);
        state.is_over
    }

    /// Takes the deltas, consolidated: sorted by pair and diff, each pair with its similarity at most once in
    /// each direction.
    pub(crate) fn take(&self) -> Vec<Delta> {
        let mut state = self.state.lock();
        let mut deltas = std::mem::take(&mut state.deltas);
        state.consolidated = 0;
        drop(state);
        consolidate(&mut deltas);
        deltas
    }

    fn add(&self, deltas: impl IntoIterator<Item = Delta>) {
        let mut state = self.state.lock();
        state.deltas.extend(deltas);
        if state.deltas.len() > MANY.max(2 * state.consolidated) {
            add_up(&mut state.deltas);
            state.consolidated = state.deltas.len();
        }
    }
}

/// Adds up the deltas of equal pairs, which are in the order of time; sorts what is left by pair and diff.
pub(crate) fn consolidate(deltas: &mut Vec<Delta>) {
    add_up(deltas);
    deltas.sort_by(|a, b| (&a.pair.pair, a.diff).cmp(&(&b.pair.pair, b.diff)));
}

/// Adds up the deltas of equal pairs, which are in the order of time. What is left has the last cause.
fn add_up(deltas: &mut Vec<Delta>) {
    deltas.sort_by(|a, b| a.pair.cmp(&b.pair));
    // `dedup_by` passes the later one first, and removes it.
    deltas.dedup_by(|later, sum| {
        let is_same = later.pair == sum.pair;
        if is_same {
            sum.diff += later.diff;
            sum.cause = later.cause;
        }
        is_same
    });
    deltas.retain(|delta| delta.diff != 0);
}

/// Applies consolidated deltas to a set of pairs.
pub(crate) fn apply(deltas: &[Delta], pairs: &mut BTreeSet<DocPair>) {
    for Delta { pair, diff, .. } in deltas {
        let follows = if *diff > 0 { pairs.insert(pair.clone()) } else { pairs.remove(pair) };
        debug_assert!(follows, "every pair accumulates to 0 or 1");
    }
}

/// The sink that collects.
pub(crate) struct CollectingSink {
    to: Arc<Collected>,
    /// Deltas of epochs that are not committed.
    open: Vec<Delta>,
}

impl CollectingSink {
    pub(crate) fn new(to: &Arc<Collected>) -> Self {
        Self { to: Arc::clone(to), open: Vec::new() }
    }
}

impl Sink for CollectingSink {
    fn restored(&mut self, deltas: &[Delta]) {
        self.to.add(deltas.iter().cloned());
    }

    fn live(&mut self, past: Epoch) {
        let mut state = self.to.state.lock();
        (state.is_live, state.durable) = (true, past);
        drop(state);
        self.to.changed.notify_all();
    }

    fn epoch(&mut self, _: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        self.open.extend_from_slice(deltas);
        Ok(())
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.to.add(self.open.drain(..));
        self.to.state.lock().durable = mark.progress.epoch;
        self.to.changed.notify_all();
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for CollectingSink {
    /// The committer drops it at the end of the run, however that ends.
    fn drop(&mut self) {
        self.to.state.lock().is_over = true;
        self.to.changed.notify_all();
    }
}
