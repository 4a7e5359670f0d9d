//! What commits made durable, on its way to the thread of the view.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use super::View;
use dupflow_core::pair::Delta;
use dupflow_core::time::Epoch;

/// What the view is told.
#[derive(Debug)]
pub(super) enum News {
    /// The output stands at this epoch before the run.
    Stands { epoch: Epoch },
    /// The output holds these already, with others that are told in the same way.
    Restored(Vec<Delta>),
    /// This epoch has become durable.
    Committed { epoch: Epoch, deltas: Vec<Delta> },
    /// The run is live: all that the output held has been handed over, and no epoch up to this one follows.
    Live { epoch: Epoch },
}

/// A queue that holds up whoever fills it too fast.
#[derive(Debug)]
pub(super) struct Feed {
    queue: Mutex<Queue>,
    changed: Condvar,
    most_deltas: usize,
}

#[derive(Debug, Default)]
struct Queue {
    waiting: VecDeque<News>,
    /// In those that wait, and in the one that is being taken in.
    deltas: usize,
    taking: usize,
    is_taking: bool,
    end: End,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum End {
    #[default]
    No,
    /// What waits is still taken in.
    Ended,
    /// It is not, nor is what comes.
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

    /// The next news; none after the end.
    pub(super) fn next(&self) -> Option<News> {
        let nothing = |queue: &mut Queue| queue.waiting.is_empty() && queue.end == End::No;
        let mut queue = self.queue.lock();
        self.changed.wait_while(&mut queue, nothing);
        let news = queue.waiting.pop_front()?;
        queue.taking = news.deltas();
        queue.is_taking = true;
        Some(news)
    }

    /// What came last has been taken in.
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

/// Tells a view of commits; for the committer. No call waits for a reader.
#[derive(Debug)]
pub struct Feeder(Arc<View>);

impl Feeder {
    pub(super) fn new(view: Arc<View>) -> Self {
        Self(view)
    }

    /// The output stands at this epoch.
    pub fn stands(&self, epoch: Epoch) {
        self.0.feed.tell(News::Stands { epoch });
    }

    /// The output holds these deltas already.
    pub fn restored(&self, deltas: &[Delta]) {
        if !deltas.is_empty() {
            self.0.feed.tell(News::Restored(deltas.to_vec()));
        }
    }

    /// The output holds what has been handed over and no more, up to this epoch; what follows is news.
    pub fn live(&self, epoch: Epoch) {
        self.0.feed.tell(News::Live { epoch });
    }

    /// An epoch with these deltas has become durable.
    pub fn committed(&self, epoch: Epoch, deltas: Vec<Delta>) {
        self.0.feed.tell(News::Committed { epoch, deltas });
    }
}

impl Drop for Feeder {
    fn drop(&mut self) {
        self.0.feed.end();
    }
}
