//! Queries to a run about its corpus, and the queue in which they wait for a worker. Queries change nothing.
//!
//! In: a [`Question`], from any thread, with a function to [reply](Reply) to. Out: an [`Answer`] of one
//! epoch, from the worker that took the question, or a [`Refusal`]. [`Visitors`] is the queue between the
//! two; neither the callers nor the workers block.
//!
//! Invariants: at most a fixed number of queries wait or are in progress, further ones are refused at once.
//! Each query gets exactly one reply: a query that is dropped, because the run ends or fails, is refused. No
//! query waits after [`Visitors::close`], or after all workers have dropped their [`Door`].

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::doc::{DocId, Position};
use crate::pair::{Evidence, Similarity};
use crate::time::Epoch;

/// A question about the corpus.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
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
    pub document: Option<Found>,
    /// The paired documents: in descending order of similarity, then in ascending order of ids.
    pub similar: Vec<Similar>,
    /// The number of further paired documents.
    pub more: usize,
}

/// The last event of a live document.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// The position of the event, which brought the text in force.
    pub position: Position,
    /// The time of the event, in unix seconds, if its source gives one.
    pub ts: Option<f64>,
    /// The epoch of the event; `None` if it was before this run.
    pub changed: Option<Epoch>,
}

/// A document that is paired with the subject of a query.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Similar {
    /// The document.
    pub id: DocId,
    /// The similarity that the pipeline computes.
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
type ReplyTo = Box<dyn FnOnce(Result<Answer, Refusal>) + Send>;

/// The queries of one process: the waiting ones, and the number of those in progress.
pub struct Visitors {
    waiting: Mutex<Waiting>,
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
struct Waiting {
    /// In order of arrival, each with the least epoch that its answer may be of.
    line: VecDeque<(Epoch, Visitor)>,
    is_closed: bool,
}

/// What wakes the workers, which are woken in turn.
#[derive(Default)]
struct Wakers {
    wakers: Vec<Box<dyn Fn() + Send>>,
    next: usize,
    /// The number of receivers that have not been dropped.
    doors: usize,
}

/// A worker's end of the queue. When all workers have dropped theirs, because they have ended for any reason,
/// the queue is closed.
#[derive(Debug)]
#[must_use = "a door that is dropped is closed"]
pub struct Door(Arc<Visitors>);

/// A query taken from the queue.
#[derive(Debug)]
pub struct Visitor {
    /// The question.
    pub question: Question,
    /// Where the answer goes.
    pub reply: Reply,
}

/// Sends the reply. Dropped without an answer, it sends a [refusal](Refusal::Ended).
pub struct Reply {
    to: Option<ReplyTo>,
    present: Arc<AtomicUsize>,
}

impl Default for Visitors {
    /// Up to 1,024 queries: some megabytes of texts, and a second's work of a worker.
    fn default() -> Self {
        Self::new(1024)
    }
}

impl Visitors {
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
    /// [`Door::live`].
    pub fn before_live() -> Self {
        let visitors = Self::default();
        visitors.is_live.store(false, Ordering::Release);
        visitors
    }

    /// Whether a worker has called [`Door::live`].
    pub fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Acquire)
    }

    /// Asks a question. `reply` is called exactly once, with the answer or with the reason why there is none.
    /// It may be called before this function returns, and must neither block nor panic.
    pub fn ask(&self, question: Question, reply: impl FnOnce(Result<Answer, Refusal>) + Send + 'static) {
        self.ask_after(0, question, reply);
    }

    /// As [`Self::ask`], but the answer is of this epoch or a later one: the query waits for that.
    pub fn ask_after(
        &self,
        epoch: Epoch,
        question: Question,
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
        waiting.line.push_back((epoch, Visitor { question, reply }));
        self.count.store(waiting.line.len(), Ordering::Release);
        drop(waiting);
        self.wake();
    }

    /// Refuses all waiting queries and all later ones. The workers reply to those in progress.
    pub fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.is_closed = true;
        let refused = std::mem::take(&mut waiting.line);
        self.count.store(0, Ordering::Release);
        drop(waiting);
        drop(refused);
    }

    /// The number of queries that wait or are in progress.
    pub fn present(&self) -> usize {
        self.present.load(Ordering::Acquire)
    }

    /// For workers: takes the next query whose answer may be of the epoch before `open`. Never blocks.
    pub fn take(&self, open: Epoch) -> Option<Visitor> {
        if self.count.load(Ordering::Acquire) == 0 {
            return None;
        }
        let mut waiting = self.waiting.lock();
        let at = waiting.line.iter().position(|(epoch, _)| *epoch < open)?;
        let taken = waiting.line.remove(at);
        self.count.store(waiting.line.len(), Ordering::Release);
        taken.map(|(_, visitor)| visitor)
    }

    /// Adds a worker. `waker` wakes it after a query has arrived, and must not use the queue.
    pub fn register(self: &Arc<Self>, waker: Box<dyn Fn() + Send>) -> Door {
        let mut wakers = self.wakers.lock();
        wakers.wakers.push(waker);
        wakers.doors += 1;
        Door(Arc::clone(self))
    }

    /// A receiver was dropped. After the last one, all waiting and later queries are refused.
    fn leave(&self) {
        let mut wakers = self.wakers.lock();
        wakers.doors -= 1;
        let is_last = wakers.doors == 0;
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

impl Door {
    /// The run is live on this worker: queries are accepted from now on.
    pub fn live(&self) {
        self.0.is_live.store(true, Ordering::Release);
    }

    /// As [`Visitors::take`].
    pub fn take(&self, open: Epoch) -> Option<Visitor> {
        self.0.take(open)
    }
}

impl Drop for Door {
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

impl fmt::Debug for Visitors {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Visitors")
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

    fn question(text: &str) -> Question {
        Question::Text { text: text.to_owned(), top: 1 }
    }

    fn answer(epoch: Epoch) -> Answer {
        Answer { epoch, sketched: true, document: None, similar: Vec::new(), more: 0 }
    }

    type Told = Receiver<Result<Answer, Refusal>>;

    /// Asks. The reply arrives in the channel, which then ends.
    fn ask(visitors: &Visitors, after: Epoch, text: &str) -> Told {
        let (sender, told): (Sender<_>, _) = channel();
        // Some tests end before the reply.
        visitors.ask_after(after, question(text), move |reply| sender.send(reply).unwrap_or(()));
        told
    }

    fn all(told: &Told) -> Vec<Result<Answer, Refusal>> {
        told.try_iter().collect()
    }

    #[test]
    fn visitors_are_let_in_in_turn_and_replied_to_once() {
        let visitors = Visitors::new(3);
        let told: Vec<_> = ["α", "二", "👋"].iter().map(|text| ask(&visitors, 0, text)).collect();
        assert_eq!(visitors.present(), 3);
        for (text, its) in ["α", "二", "👋"].iter().zip(&told) {
            let visitor = visitors.take(1).unwrap();
            assert_eq!(visitor.question, question(text));
            assert_eq!(all(its), []);
            visitor.reply.answer(answer(7));
            assert_eq!(all(its), [Ok(answer(7))]);
        }
        assert!(visitors.take(1).is_none());
        assert_eq!(visitors.present(), 0);
    }

    #[test]
    fn no_more_than_there_is_room_for_waiting_or_under_way() {
        let visitors = Visitors::new(2);
        let (one, two) = (ask(&visitors, 0, "1"), ask(&visitors, 0, "2"));
        let under_way = visitors.take(1).unwrap();
        assert_eq!(all(&ask(&visitors, 0, "3")), [Err(Refusal::Full)]);
        // Dropped while in progress.
        drop(under_way);
        assert_eq!((all(&one), all(&two)), (vec![Err(Refusal::Ended)], vec![]));
        assert_eq!(all(&ask(&visitors, 0, "4")), []);
        assert_eq!(all(&ask(&visitors, 0, "5")), [Err(Refusal::Full)]);
    }

    #[test]
    fn before_the_run_is_live_all_are_refused() {
        let visitors = Arc::new(Visitors::before_live());
        assert_eq!(all(&ask(&visitors, 0, "early")), [Err(Refusal::NotLive)]);
        let door = visitors.register(Box::new(|| ()));
        assert_eq!((all(&ask(&visitors, 0, "early")), visitors.present()), (vec![Err(Refusal::NotLive)], 0));
        door.live();
        let told = ask(&visitors, 0, "now");
        door.take(1).unwrap().reply.answer(answer(0));
        assert_eq!(all(&told), [Ok(answer(0))]);
    }

    /// A query for a later epoch waits for it, and does not delay others.
    #[test]
    fn an_answer_is_of_the_epoch_asked_for_or_later() {
        let visitors = Visitors::default();
        let _told = [ask(&visitors, 5, "late"), ask(&visitors, 0, "any"), ask(&visitors, 4, "early")];
        let next = |open| visitors.take(open).map(|visitor| visitor.question);
        assert_eq!(next(1), Some(question("any")));
        assert_eq!(next(4), None);
        assert_eq!(next(5), Some(question("early")));
        assert_eq!(next(5), None);
        assert_eq!(next(6), Some(question("late")));
    }

    #[test]
    fn who_waits_at_the_end_or_comes_later_is_refused_and_who_is_under_way_is_answered() {
        let visitors = Arc::new(Visitors::default());
        let (one, two) = (ask(&visitors, 0, "1"), ask(&visitors, 9, "2"));
        let under_way = visitors.take(1).unwrap();
        visitors.close();
        assert_eq!((all(&one), all(&two)), (vec![], vec![Err(Refusal::Ended)]));
        assert_eq!(all(&ask(&visitors, 0, "3")), [Err(Refusal::Ended)]);
        under_way.reply.answer(answer(0));
        assert_eq!(all(&one), [Ok(answer(0))]);
        // The reply function of a refused query may ask again at once.
        let again = Arc::clone(&visitors);
        let (sender, told) = channel();
        visitors
            .ask(question("4"), move |_| again.ask(question("5"), move |reply| sender.send(reply).unwrap()));
        assert_eq!(all(&told), [Err(Refusal::Ended)]);
        assert_eq!(visitors.present(), 0);
    }

    #[test]
    fn workers_are_woken_in_turn() {
        let visitors = Arc::new(Visitors::default());
        let _early = ask(&visitors, 0, "before there is a worker");
        let woken = Arc::new(Mutex::new(Vec::new()));
        let door = |worker| {
            let woken = Arc::clone(&woken);
            visitors.register(Box::new(move || woken.lock().push(worker)))
        };
        let mut doors = vec![door(0), door(1), door(2)];
        let told: Vec<_> = (0..7).map(|_| ask(&visitors, 0, "")).collect();
        assert_eq!(*woken.lock(), [0, 1, 2, 0, 1, 2, 0]);
        // The workers end.
        drop(doors.drain(1..));
        assert!(told.iter().all(|told| all(told).is_empty()), "one is left");
        drop(doors);
        assert!(told.iter().all(|told| all(told) == [Err(Refusal::Ended)]));
        assert_eq!(all(&ask(&visitors, 0, "")), [Err(Refusal::Ended)]);
    }

    /// Several threads ask, some workers take, answer or drop queries, and the run ends in between: each
    /// query gets one reply.
    #[test]
    fn each_is_replied_to_once_whatever_happens() {
        let visitors = Arc::new(Visitors::new(40));
        let (sender, told) = channel();
        thread::scope(|threads| {
            for asker in 0..4 {
                let (visitors, sender) = (Arc::clone(&visitors), sender.clone());
                threads.spawn(move || {
                    for number in 0..500 {
                        let sender = sender.clone();
                        visitors.ask_after(number % 3, question(""), move |reply| {
                            sender.send((asker, number, reply.is_ok())).unwrap();
                        });
                    }
                });
            }
            for worker in 0..2 {
                let visitors = Arc::clone(&visitors);
                threads.spawn(move || {
                    for turn in 0..800_u64 {
                        if let Some(visitor) = visitors.take(turn % 4)
                            && (turn + worker) % 3 > 0
                        {
                            visitor.reply.answer(answer(turn));
                        }
                    }
                    visitors.close();
                });
            }
        });
        drop(sender);
        assert_eq!(visitors.present(), 0);
        let mut told: Vec<_> = told.into_iter().map(|(asker, number, _)| (asker, number)).collect();
        told.sort_unstable();
        let asked: Vec<_> = (0..4).flat_map(|asker| (0..500).map(move |number| (asker, number))).collect();
        assert_eq!(told, asked);
    }
}
