//! Visitors: questions to a run about its corpus, which meet what is there and leave no trace.
//!
//! In: a [`Question`], from any thread, with whom to [reply](Reply) to. Out: an [`Answer`] of one epoch, from
//! the worker that took the question, or a [`Refusal`]. [`Visitors`] is the queue between the two: those who
//! ask never wait, nor do the workers.
//!
//! Invariants: at most so many visitors wait or are under way at a time, others are refused at once. Each is
//! replied to exactly once: one that is dropped on its way, because the run ends or fails, is refused. After
//! [`Visitors::close`], or once no worker has a [`Door`] any more, nobody waits.

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

/// What a visitor asks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Question {
    /// Which documents a text would be paired with, were it that of a new document whose id sorts after all
    /// others.
    Text {
        /// The text.
        text: String,
        /// Most documents to be told, the best ones.
        top: usize,
    },
    /// What is known of a document, and which documents it is paired with.
    Document {
        /// The document.
        id: DocId,
        /// Most documents to be told, the best ones.
        top: usize,
    },
}

/// What a visitor is told.
#[derive(Clone, Debug, PartialEq)]
pub struct Answer {
    /// The answer is of the corpus at the end of this epoch; 0 before the first one.
    pub epoch: Epoch,
    /// Whether there is a sketch to compare by: a text without a token, or without a feature of any weight,
    /// has none.
    pub sketched: bool,
    /// What was asked about, if it is a document alive; `None` for a text too.
    pub document: Option<Found>,
    /// What it is paired with: the most similar ones first, those of equal similarity by their ids.
    pub similar: Vec<Similar>,
    /// Further ones that are left out.
    pub more: usize,
}

/// A document alive.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct Found {
    /// Where its last event stands, which brought the text in force.
    pub position: Position,
    /// When it is from, in unix seconds, if its source says so.
    pub ts: Option<f64>,
    /// The epoch of that event; `None` if it was before this run.
    pub changed: Option<Epoch>,
}

/// A document that is paired with what was asked about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Similar {
    /// The document.
    pub id: DocId,
    /// By the pipeline.
    pub similarity: Similarity,
    /// Why they are a pair.
    pub evidence: Evidence,
}

/// Why a visitor gets no answer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Error)]
pub enum Refusal {
    /// Too many are there already.
    #[error("too many questions are under way")]
    Full,
    /// The run ends, or has ended.
    #[error("the run has ended")]
    Ended,
    /// The corpus is not whole yet: the run takes up what was there before it.
    #[error("the run is not live yet")]
    NotLive,
}

/// Takes the answer. It is called on a worker's thread, or on that of whoever asks or ends the run: it must
/// neither wait nor panic.
type ReplyTo = Box<dyn FnOnce(Result<Answer, Refusal>) + Send>;

/// The visitors of one process: those that wait to be let in, and how many are under way.
pub struct Visitors {
    /// Whole between any two statements, so that it is good even if a holder panicked.
    waiting: Mutex<Waiting>,
    /// Those that wait: a look that takes no lock.
    count: AtomicUsize,
    /// Those that wait or are under way.
    present: Arc<AtomicUsize>,
    most: usize,
    /// Whether the corpus is whole: before, all are refused.
    is_live: AtomicBool,
    wakers: Mutex<Wakers>,
}

#[derive(Default)]
struct Waiting {
    /// In the order of their coming, with the epoch that their answer is to be of at least.
    line: VecDeque<(Epoch, Visitor)>,
    is_closed: bool,
}

/// What wakes the workers, who are woken in turn.
#[derive(Default)]
struct Wakers {
    wakers: Vec<Box<dyn Fn() + Send>>,
    next: usize,
    /// Doors that are open.
    doors: usize,
}

/// Where a worker lets visitors in, for as long as it has it. When all workers have dropped theirs, because
/// they have ended in whatever way, nobody is left to answer.
#[derive(Debug)]
#[must_use = "a door that is dropped is closed"]
pub struct Door(Arc<Visitors>);

/// Somebody who asks.
#[derive(Debug)]
pub struct Visitor {
    /// What it asks.
    pub question: Question,
    /// To whom.
    pub reply: Reply,
}

/// Whom to reply to. Dropped without an answer, it is a [refusal](Refusal::Ended).
pub struct Reply {
    to: Option<ReplyTo>,
    present: Arc<AtomicUsize>,
}

impl Default for Visitors {
    /// Up to 1,024: some megabytes of texts, and a second's work of a worker.
    fn default() -> Self {
        Self::new(1024)
    }
}

impl Visitors {
    /// Up to `most` that wait or are under way.
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

    /// Those of a run that has a past to take up: all are refused until a worker [says](Door::live) that it
    /// is live.
    pub fn before_live() -> Self {
        let visitors = Self::default();
        visitors.is_live.store(false, Ordering::Release);
        visitors
    }

    /// Whether a worker has said that the run is live.
    pub fn is_live(&self) -> bool {
        self.is_live.load(Ordering::Acquire)
    }

    /// Asks, and has `reply` called, exactly once: with the answer or why there is none. It may be called
    /// before this returns, and must neither wait nor panic.
    pub fn ask(&self, question: Question, reply: impl FnOnce(Result<Answer, Refusal>) + Send + 'static) {
        self.ask_after(0, question, reply);
    }

    /// As [`Self::ask`], but the answer is of this epoch or a later one: the visitor waits for that.
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
            // It is dropped, and so refused, without the lock: whoever is told may ask again.
            drop(waiting);
            return drop(reply);
        }
        waiting.line.push_back((epoch, Visitor { question, reply }));
        self.count.store(waiting.line.len(), Ordering::Release);
        drop(waiting);
        self.wake();
    }

    /// Refuses all who wait, and all who come later. Those under way are replied to by the workers.
    pub fn close(&self) {
        let mut waiting = self.waiting.lock();
        waiting.is_closed = true;
        let refused = std::mem::take(&mut waiting.line);
        self.count.store(0, Ordering::Release);
        drop(waiting);
        drop(refused);
    }

    /// Those that wait or are under way.
    pub fn present(&self) -> usize {
        self.present.load(Ordering::Acquire)
    }

    /// Worker: lets in the next one whose answer may be of the epoch before `open`. Never waits.
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

    /// Opens a worker's door; `waker` wakes it after somebody has come, and must not use the queue.
    pub fn register(self: &Arc<Self>, waker: Box<dyn Fn() + Send>) -> Door {
        let mut wakers = self.wakers.lock();
        wakers.wakers.push(waker);
        wakers.doors += 1;
        Door(Arc::clone(self))
    }

    /// A door is closed; with the last one, all are refused who wait or come later.
    fn leave(&self) {
        let mut wakers = self.wakers.lock();
        wakers.doors -= 1;
        let is_last = wakers.doors == 0;
        drop(wakers);
        if is_last {
            self.close();
        }
    }

    /// Wakes the next worker; each of them looks for visitors whenever it is awake.
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
    /// The run is live here: visitors are let in.
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
    /// Replies.
    pub fn answer(mut self, answer: Answer) {
        self.reply(Ok(answer));
    }

    fn reply(&mut self, answer: Result<Answer, Refusal>) {
        if let Some(to) = self.to.take() {
            // First, so that whoever is told has room to ask again.
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

    /// Asks; what is replied comes out of the channel, which then ends.
    fn ask(visitors: &Visitors, after: Epoch, text: &str) -> Told {
        let (sender, told): (Sender<_>, _) = channel();
        // Some tests end before they have heard.
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
        // Dropped on its way.
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

    /// Who asks for a later epoch waits for it, and lets others go first.
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
        // Whoever is refused may ask again at once.
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

    /// Many ask, some workers take, answer or drop, the run ends in between: each is replied to once.
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
