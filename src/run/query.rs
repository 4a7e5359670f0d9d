//! Queries to a run about its corpus, and the queue in which they wait for a worker. Queries change nothing.
//!
//! In: a [`Query`], from any thread, with a function to [reply](Reply) to. Out: an [`Answer`] of one
//! epoch, from the worker that took the query, or a [`Refusal`]. [`QueryQueue`] is the queue between the
//! two; neither the callers nor the workers block.
//!
//! Invariants: at most a fixed number of queries wait or are in progress, further ones are refused at once.
//! Each query gets exactly one reply: a query that is dropped, because the run ends or fails, is refused. No
//! query waits after [`QueryQueue::close`], or after all workers have dropped their [`QueryReceiver`].

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use dupflow_core::doc::{DocId, Position};
use dupflow_core::pair::{Evidence, Similarity};
use dupflow_core::time::Epoch;

/// A query about the corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Query {
    /// Which documents would a text be paired with, if it were that of a new document whose id sorts after
    /// all others?
    Text {
        /// The text.
        text: String,
        /// Most documents in the answer, the most similar ones.
        top: usize,
    },
    /// What is known of a document, and which documents is it paired with?
    Document {
        /// The document.
        id: DocId,
        /// Most documents in the answer, the most similar ones.
        top: usize,
    },
}

/// The answer to a query.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The answer is of the corpus at the end of this epoch; 0 before the first one.
    pub epoch: Epoch,
    /// Whether there is a sketch to compare by: a text without a token, or without a feature of any weight,
    /// has none.
    pub sketched: bool,
    /// The document that was asked about, if it is alive; `None` for a text.
    pub document: Option<LastEvent>,
    /// The paired documents: in descending order of similarity, then in ascending order of ids.
    pub similar: Vec<SimilarDocument>,
    /// The number of further paired documents.
    pub more: usize,
}

/// The last event of a live document.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct LastEvent {
    /// The position of the event, which brought the text in force.
    pub position: Position,
    /// The time of the event, in unix seconds, if its source gives one.
    pub ts: Option<f64>,
    /// The epoch of the event; `None` if it was before this run.
    pub changed: Option<Epoch>,
}

/// A document that is paired with the subject of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SimilarDocument {
    /// The document.
    pub id: DocId,
    /// The similarity that the pipeline computes, of the subject of the query and this document.
    pub similarity: Similarity,
    /// Why they are a pair.
    pub evidence: Evidence,
}

/// Why a query gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Too many queries wait or are in progress.
    #[error("too many questions are under way")]
    Full,
    /// The run ends, or has ended.
    #[error("the run has ended")]
    Ended,
    /// The run still restores the corpus of an earlier run.
    #[error("the run is not live yet")]
    NotLive,
}

/// Receives the reply. Called on a worker's thread, or on the thread that asks or that ends the run: it must
/// neither block nor panic.
type ReplyFn = Box<dyn FnOnce(Result<Answer, Refusal>) + Send>;

/// The queries of one process: the waiting ones, and the number of those in progress.
pub struct QueryQueue {
    waiting: Mutex<WaitingQueries>,
    /// The number of waiting queries: can be read without a lock.
    count: AtomicUsize,
    /// The number of queries that wait or are in progress.
    present: Arc<AtomicUsize>,
    most: usize,
    /// Whether the corpus is complete: until then, all queries are refused.
    is_live: AtomicBool,
    wakers: Mutex<Wakers>,
}

#[derive(Default)]
struct WaitingQueries {
    /// In order of arrival, each with the least epoch that its answer may be of.
    queue: VecDeque<(Epoch, QueuedQuery)>,
    is_closed: bool,
}

/// What wakes the workers, which are woken in turn.
#[derive(Default)]
struct Wakers {
    wakers: Vec<Box<dyn Fn() + Send>>,
    next: usize,
    /// The number of receivers that have not been dropped.
    receivers: usize,
}

/// A worker's end of the queue. When all workers have dropped theirs, because they have ended for any reason,
/// the queue is closed.
#[derive(Debug)]
#[must_use = "a receiver that is dropped is closed"]
pub struct QueryReceiver(Arc<QueryQueue>);

/// A query taken from the queue.
#[derive(Debug)]
pub struct QueuedQuery {
    /// The query.
    pub query: Query,
    /// Where the answer goes.
    pub reply: Reply,
}

/// Sends the reply. Dropped without an answer, it sends a [refusal](Refusal::Ended).
pub struct Reply {
    to: Option<ReplyFn>,
    present: Arc<AtomicUsize>,
}

impl Default for QueryQueue {
    /// Up to 1,024 queries: some megabytes of texts, and a second's work of a worker.
    fn default() -> Self {
        Self::new(1024)
    }
}

impl QueryQueue {
    /// A queue for up to `most` queries that wait or are in progress.
    pub fn new(most: usize) -> Self {
        Self {
            waiting: Mutex::default(),
            count: AtomicUsize::new(0),
            present: Arc::default(),
            most,
            is_live: AtomicBool::new(true),
            wakers: Mutex::default(),
        }
    }

    /// The queue of a run that restores an earlier one: all queries are refused until a worker calls
    /// [`QueryReceiver::live`].
    pub fn before_live() -> Self {
        let queries = Self::default();
        queries.is_live.store(false, Ordering::Release);
        queries
    }

    /// Whether a worker has called [`QueryReceiver::live`].
    pub fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Acquire)
    }

    /// Asks a query. `reply` is called exactly once, with the answer or with the reason why there is none.
    /// It may be called before this function returns, and must neither block nor panic.
    pub fn ask(&self, query: Query, reply: impl FnOnce(Result<Answer, Refusal>) + Send + 'static) {
        self.ask_after(0, query, reply);
    }

    /// As [`Self::ask`], but the answer is of this epoch or a later one: the query waits for that.
    pub fn ask_after(
        &self,
        epoch: Epoch,
        query: Query,
        reply: impl FnOnce(Result<Answer, Refusal>) + Send + 'static,
    ) {
        if !self.is_live() {
            return reply(Err(Refusal::NotLive));
        }
        let one_more = |present| (present < self.most).then_some(present + 1);
        if self.present.fetch_update(Ordering::AcqRel, Ordering::Acquire, one_more).is_err() {
            return reply(Err(Refusal::Full));
        }
        let reply = Reply { to: Some(Box::new(reply)), present: Arc::clone(&self.present) };
        let mut waiting = self.waiting.lock();
        if waiting.is_closed {
            // Dropped, and so refused, after the lock is released: the reply function may ask again.
            drop(waiting);
            return drop(reply);
        }
        waiting.queue.push_back((epoch, QueuedQuery { query, reply }));
        self.count.store(waiting.queue.len(), Ordering::Release);
        drop(waiting);
        self.wake();
    }

    /// Refuses all waiting queries and all later ones. The workers reply to those in progress.
    pub fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.is_closed = true;
        let refused = std::mem::take(&mut waiting.queue);
        self.count.store(0, Ordering::Release);
        drop(waiting);
        drop(refused);
    }

    /// The number of queries that wait or are in progress.
    pub fn present(&self) -> usize {
        self.present.load(Ordering::Acquire)
    }

    /// For workers: takes the next query whose answer may be of the epoch before `open`. Never blocks.
    pub fn take(&self, open: Epoch) -> Option<QueuedQuery> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut waiting = self.waiting.lock();
        let at = waiting.queue.iter().position(|(epoch, _)| *epoch < open)?;
        let taken = waiting.queue.remove(at);
        self.count.store(waiting.queue.len(), Ordering::Release);
        taken.map(|(_, query)| query)
    }

    /// Adds a worker. `waker` wakes it after a query has arrived, and must not use the queue.
    pub fn register(self: &Arc<Self>, waker: Box<dyn Fn() + Send>) -> QueryReceiver {
        let mut wakers = self.wakers.lock();
        wakers.wakers.push(waker);
        wakers.receivers += 1;
        QueryReceiver(Arc::clone(self))
    }

    /// A receiver was dropped. After the last one, all waiting and later queries are refused.
    fn leave(&self) {
        let mut wakers = self.wakers.lock();
        wakers.receivers -= 1;
        let is_last = wakers.receivers == 0;
        drop(wakers);
        if is_last {
            self.close();
        }
    }

    /// Wakes the next worker. Each worker polls the queue whenever it runs.
    fn wake(&self) {
        let mut wakers = self.wakers.lock();
        let Wakers { wakers, next, .. } = &mut *wakers;
        if let Some(waker) = wakers.get(*next) {
            waker();
            *next = (*next + 1) % wakers.len();
        }
    }
}

impl QueryReceiver {
    /// The run is live on this worker: queries are accepted from now on.
    pub fn live(&self) {
        self.0.is_live.store(true, Ordering::Release);
    }

    /// As [`QueryQueue::take`].
    pub fn take(&self, open: Epoch) -> Option<QueuedQuery> {
        self.0.take(open)
    }
}

impl Drop for QueryReceiver {
    fn drop(&mut self) {
        self.0.leave();
    }
}

impl Reply {
    /// Sends the answer.
    pub fn answer(mut self, answer: Answer) {
        self.reply(Ok(answer));
    }

    fn reply(&mut self, answer: Result<Answer, Refusal>) {
        if let Some(to) = self.to.take() {
            // First, so that the reply function can ask again.
            self.present.fetch_sub(1, Ordering::AcqRel);
            to(answer);
        }
    }
}

impl Drop for Reply {
    fn drop(&mut self) {
        self.reply(Err(Refusal::Ended));
    }
}

impl fmt::Debug for QueryQueue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("QueryQueue")
            .field("waiting", &self.count)
            .field("present", &self.present)
            .field("most", &self.most)
            .finish_non_exhaustive()
    }
}

impl fmt::Debug for Reply {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Reply").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::{Receiver, Sender, channel};
    use std::thread;

    use super::*;

    fn query(text: &str) -> Query {
        Query::Text { text: text.to_owned(), top: 1 }
    }

    fn answer(epoch: Epoch) -> Answer {
        Answer { epoch, sketched: true, document: None, similar: Vec::new(), more: 0 }
    }

    type Replies = Receiver<Result<Answer, Refusal>>;

    /// Asks. The reply arrives in the channel, which then ends.
    fn ask(queries: &QueryQueue, after: Epoch, text: &str) -> Replies {
        let (sender, replies): (Sender<_>, _) = channel();
        // Some tests end before the reply.
        queries.ask_after(after, query(text), move |reply| sender.send(reply).unwrap_or(()));
        replies
    }

    fn all(replies: &Replies) -> Vec<Result<Answer, Refusal>> {
        replies.try_iter().collect()
    }

    #[test]
    fn queries_are_taken_in_order_and_replied_to_once() {
        let queries = QueryQueue::new(3);
        let replies: Vec<_> = ["α", "二", "👋"].iter().map(|text| ask(&queries, 0, text)).collect();
        assert_eq!(queries.present(), 3);
        for (text, its) in ["α", "二", "👋"].iter().zip(&replies) {
            let taken = queries.take(1).unwrap();
            assert_eq!(taken.query, query(text));
            assert_eq!(all(its), []);
            taken.reply.answer(answer(7));
            assert_eq!(all(its), [Ok(answer(7))]);
        }
        assert!(queries.take(1).is_none());
        assert_eq!(queries.present(), 0);
    }

    #[test]
    fn waiting_and_running_queries_are_limited() {
        let queries = QueryQueue::new(2);
        let (one, two) = (ask(&queries, 0, "1"), ask(&queries, 0, "2"));
        let under_way = queries.take(1).unwrap();
        assert_eq!(all(&ask(&queries, 0, "3")), [Err(Refusal::Full)]);
        // Dropped while in progress.
        drop(under_way);
        assert_eq!((all(&one), all(&two)), (vec![Err(Refusal::Ended)], vec![]));
        assert_eq!(all(&ask(&queries, 0, "4")), []);
        assert_eq!(all(&ask(&queries, 0, "5")), [Err(Refusal::Full)]);
    }

    #[test]
    fn queries_are_refused_before_the_run_is_live() {
        let queries = Arc::new(QueryQueue::before_live());
        assert_eq!(all(&ask(&queries, 0, "early")), [Err(Refusal::NotLive)]);
        let receiver = queries.register(Box::new(|| ()));
        assert_eq!((all(&ask(&queries, 0, "early")), queries.present()), (vec![Err(Refusal::NotLive)], 0));
        receiver.live();
        let replies = ask(&queries, 0, "now");
        receiver.take(1).unwrap().reply.answer(answer(0));
        assert_eq!(all(&replies), [Ok(answer(0))]);
    }

    /// A query for a later epoch waits for it, and does not delay others.
    #[test]
    fn a_query_waits_for_its_epoch() {
        let queries = QueryQueue::default();
        let _told = [ask(&queries, 5, "late"), ask(&queries, 0, "any"), ask(&queries, 4, "early")];
        let next = |open| queries.take(open).map(|query| query.query);
        assert_eq!(next(1), Some(query("any")));
        assert_eq!(next(4), None);
        assert_eq!(next(5), Some(query("early")));
        assert_eq!(next(5), None);
        assert_eq!(next(6), Some(query("late")));
    }

    #[test]
    fn close_refuses_waiting_and_later_queries_only() {
        let queries = Arc::new(QueryQueue::default());
        let (one, two) = (ask(&queries, 0, "1"), ask(&queries, 9, "2"));
        let under_way = queries.take(1).unwrap();
        queries.close();
        assert_eq!((all(&one), all(&two)), (vec![], vec![Err(Refusal::Ended)]));
        assert_eq!(all(&ask(&queries, 0, "3")), [Err(Refusal::Ended)]);
        under_way.reply.answer(answer(0));
        assert_eq!(all(&one), [Ok(answer(0))]);
        // The reply function of a refused query may ask again at once.
        let again = Arc::clone(&queries);
        let (sender, replies) = channel();
        queries.ask(query("4"), move |_| again.ask(query("5"), move |reply| sender.send(reply).unwrap()));
        assert_eq!(all(&replies), [Err(Refusal::Ended)]);
        assert_eq!(queries.present(), 0);
    }

    #[test]
    fn workers_are_woken_in_turn() {
        let queries = Arc::new(QueryQueue::default());
        let _early = ask(&queries, 0, "before there is a worker");
        let woken = Arc::new(Mutex::new(Vec::new()));
        let receiver = |worker| {
            let woken = Arc::clone(&woken);
            queries.register(Box::new(move || woken.lock().push(worker)))
        };
        let mut receivers = vec![receiver(0), receiver(1), receiver(2)];
        let replies: Vec<_> = (0..7).map(|_| ask(&queries, 0, "")).collect();
        assert_eq!(*woken.lock(), [0, 1, 2, 0, 1, 2, 0]);
        // The workers end.
        drop(receivers.drain(1..));
        assert!(replies.iter().all(|replies| all(replies).is_empty()), "one is left");
        drop(receivers);
        assert!(replies.iter().all(|replies| all(replies) == [Err(Refusal::Ended)]));
        assert_eq!(all(&ask(&queries, 0, "")), [Err(Refusal::Ended)]);
    }

    /// Several threads ask, some workers take, answer or drop queries, and the run ends in between: each
    /// query gets one reply.
    #[test]
    fn each_query_gets_one_reply() {
        let queries = Arc::new(QueryQueue::new(40));
        let (sender, replies) = channel();
        thread::scope(|threads| {
            for asker in 0..4 {
                let (queries, sender) = (Arc::clone(&queries), sender.clone());
                threads.spawn(move || {
                    for number in 0..500 {
                        let sender = sender.clone();
                        queries.ask_after(number % 3, query(""), move |reply| {
                            sender.send((asker, number, reply.is_ok())).unwrap();
                        });
                    }
                });
            }
            for worker in 0..2 {
                let queries = Arc::clone(&queries);
                threads.spawn(move || {
                    for turn in 0..800_u64 {
                        if let Some(query) = queries.take(turn % 4)
                            && (turn + worker) % 3 > 0
                        {
                            query.reply.answer(answer(turn));
                        }
                    }
                    queries.close();
                });
            }
        });
        drop(sender);
        assert_eq!(queries.present(), 0);
        let mut replies: Vec<_> = replies.into_iter().map(|(asker, number, _)| (asker, number)).collect();
        replies.sort_unstable();
        let asked: Vec<_> = (0..4).flat_map(|asker| (0..500).map(move |number| (asker, number))).collect();
        assert_eq!(replies, asked);
    }
}
