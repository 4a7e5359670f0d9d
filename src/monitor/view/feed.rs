//! The queue of changes from the committer to the view's thread.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::View;
use dupflow_core::pair::Delta;
use dupflow_core::time::Epoch;

/// A change of the output, for the view.
#[derive(Debug)]
pub(super) enum News {
    /// Before the run, the output ends with this epoch.
    Stands { epoch: Epoch },
    /// Deltas that the output already holds; several of these may follow each other.
    Restored(Vec<Delta>),
    /// An epoch that is now durable.
    Committed { epoch: Epoch, deltas: Vec<Delta> },
    /// The run is live: all deltas that the output held have been sent. Later epochs are greater than this
    /// one.
    Live { epoch: Epoch },
}

/// A queue bounded by the number of deltas in it; a sender waits while it is full.
#[derive(Debug)]
pub(super) struct Feed {
    queue: Mutex<Queue>,
    changed: Condvar,
    most_deltas: usize,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<News>,
    /// Deltas in the queue and in the change that is being processed.
    deltas: usize,
    taking: usize,
    is_taking: bool,
    end: End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    No,
    /// No change is added; those in the queue are still processed.
    Ended,
    /// The view has failed: all changes are discarded.
    GivenUp,
}

impl Feed {
    pub(super) fn new(most_deltas: usize) -> Self {
        Self { queue: Mutex::default(), changed: Condvar::new(), most_deltas }
    }

    fn tell(&self, news: News) {
        let full = |queue: &mut Queue| queue.deltas >= self.most_deltas && queue.end == End::No;
        let mut queue = self.queue.lock();
        self.changed.wait_while(&mut queue, full);
        if queue.end == End::No {
            queue.deltas += news.deltas();
            queue.waiting.push_back(news);
            drop(queue);
            self.changed.notify_all();
        }
    }

    /// Waits for the next change; `None` after the end.
    pub(super) fn next(&self) -> Option<News> {
        let nothing = |queue: &mut Queue| queue.waiting.is_empty() && queue.end == End::No;
        let mut queue = self.queue.lock();
        self.changed.wait_while(&mut queue, nothing);
        let news = queue.waiting.pop_front()?;
        queue.taking = news.deltas();
        queue.is_taking = true;
        Some(news)
    }

    /// The last change returned by [`Feed::next`] has been processed.
    pub(super) fn done(&self) {
        let mut queue = self.queue.lock();
        queue.deltas -= std::mem::take(&mut queue.taking);
        queue.is_taking = false;
        drop(queue);
        self.changed.notify_all();
    }

    pub(super) fn wait_until_done(&self, most: Duration) {
        let busy = |queue: &mut Queue| !queue.waiting.is_empty() || queue.is_taking;
        self.changed.wait_while_for(&mut self.queue.lock(), busy, most);
    }

    pub(super) fn give_up(&self) {
        let mut queue = self.queue.lock();
        *queue = Queue { end: End::GivenUp, ..Queue::default() };
        drop(queue);
        self.changed.notify_all();
    }

    fn end(&self) {
        let mut queue = self.queue.lock();
        if queue.end == End::No {
            queue.end = End::Ended;
        }
        drop(queue);
        self.changed.notify_all();
    }
}

impl News {
    fn deltas(&self) -> usize {
        match self {
            Self::Stands { .. } | Self::Live { .. } => 0,
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
    pub fn stands(&self, epoch: Epoch) {
        self.0.feed.tell(News::Stands { epoch });
    }

    /// The output already holds these deltas.
    pub fn restored(&self, deltas: &[Delta]) {
        if !deltas.is_empty() {
            self.0.feed.tell(News::Restored(deltas.to_vec()));
        }
    }

    /// The run is live: the output holds the deltas sent so far and no more, up to this epoch.
    pub fn live(&self, epoch: Epoch) {
        self.0.feed.tell(News::Live { epoch });
    }

    /// An epoch with these deltas is durable.
    pub fn committed(&self, epoch: Epoch, deltas: Vec<Delta>) {
        self.0.feed.tell(News::Committed { epoch, deltas });
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.0.feed.end();
    }
}
