//! The queue of changes from the committer to the view's thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::View;
use dupflow_core::pair::Delta;
use dupflow_core::time::{Epoch, EpochTimes};

/// A change of the output, for the view.
#[derive(Debug)]
pub(super) enum ViewChange {
    /// Before the run, the output ends with this epoch.
    Begins { epoch: Epoch },
    /// Deltas that the output already holds; several of these may follow each other.
    Restored(Vec<Delta>),
    /// An epoch that is now durable.
    Committed { epoch: Epoch, times: EpochTimes, deltas: Vec<Delta> },
    /// The run is live: all deltas that the output held have been sent. Later epochs are greater than this
    /// one.
    Live { epoch: Epoch },
}

/// A queue bounded by the number of deltas in it; a sender waits while it is full.
#[derive(Debug)]
pub(super) struct ChangeQueue {
    queue: Mutex<QueueState>,
    changed: Condvar,
    most_deltas: usize,
}

#[derive(Debug, Default)]
struct QueueState {
    waiting: VecDeque<ViewChange>,
    /// Deltas in the queue and in the change that is being processed.
    deltas: usize,
    taking: usize,
    is_taking: bool,
    end: QueueEnd,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum QueueEnd {
    #[default]
    No,
    /// No change is added; those in the queue are still processed.
    Ended,
    /// The view has ended or failed: all changes are discarded.
    GivenUp,
}

impl ChangeQueue {
    pub(super) fn new(most_deltas: usize) -> Self {
        Self { queue: Mutex::default(), changed: Condvar::new(), most_deltas }
    }

    fn send(&self, change: ViewChange) {
        let full = |queue: &mut QueueState| queue.deltas >= self.most_deltas && queue.end == QueueEnd::No;
        let mut queue = self.queue.lock();
        self.changed.wait_while(&mut queue, full);
        if queue.end == QueueEnd::No {
            queue.deltas += change.deltas();
            queue.waiting.push_back(change);
            drop(queue);
            self.changed.notify_all();
        }
    }

    /// Waits for the next change; `None` after the end.
    pub(super) fn next(&self) -> Option<ViewChange> {
        let nothing = |queue: &mut QueueState| queue.waiting.is_empty() && queue.end == QueueEnd::No;
        let mut queue = self.queue.lock();
        self.changed.wait_while(&mut queue, nothing);
        let change = queue.waiting.pop_front()?;
        queue.taking = change.deltas();
        queue.is_taking = true;
        Some(change)
    }

    /// The last change returned by [`ChangeQueue::next`] has been processed.
    pub(super) fn done(&self) {
        let mut queue = self.queue.lock();
        queue.deltas -= std::mem::take(&mut queue.taking);
        queue.is_taking = false;
        drop(queue);
        self.changed.notify_all();
    }

    pub(super) fn wait_until_done(&self, most: Duration) {
        // After the end, until the view has stored what is left of its history and gives up.
        let busy = |queue: &mut QueueState| {
            !queue.waiting.is_empty() || queue.is_taking || queue.end == QueueEnd::Ended
        };
        self.changed.wait_while_for(&mut self.queue.lock(), busy, most);
    }

    pub(super) fn give_up(&self) {
        let mut queue = self.queue.lock();
        *queue = QueueState { end: QueueEnd::GivenUp, ..QueueState::default() };
        drop(queue);
        self.changed.notify_all();
    }

    fn end(&self) {
        let mut queue = self.queue.lock();
        if queue.end == QueueEnd::No {
            queue.end = QueueEnd::Ended;
        }
        drop(queue);
        self.changed.notify_all();
    }
}

impl ViewChange {
    fn deltas(&self) -> usize {
        match self {
            Self::Begins { .. } | Self::Live { .. } => 0,
            Self::Restored(deltas) | Self::Committed { deltas, .. } => deltas.len(),
        }
    }
}

/// Sends the committer's changes to a view. No call waits for a reader.
#[derive(Debug)]
pub struct Feeder(Arc<View>);

impl Feeder {
    pub(super) fn new(view: Arc<View>) -> Self {
        Self(view)
    }

    /// Before the run, the output ends with this epoch.
    pub fn begin_at(&self, epoch: Epoch) {
        self.0.feed.send(ViewChange::Begins { epoch });
    }

    /// The output already holds these deltas.
    pub fn restored(&self, deltas: &[Delta]) {
        if !deltas.is_empty() {
            self.0.feed.send(ViewChange::Restored(deltas.to_vec()));
        }
    }

    /// The run is live: the output holds the deltas sent so far and no more, up to this epoch.
    pub fn live(&self, epoch: Epoch) {
        self.0.feed.send(ViewChange::Live { epoch });
    }

    /// An epoch with these deltas is durable. Without a time of the commit it is that of its arrival.
    pub fn committed(&self, epoch: Epoch, times: EpochTimes, deltas: Vec<Delta>) {
        self.0.feed.send(ViewChange::Committed { epoch, times, deltas });
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.0.feed.end();
    }
}
