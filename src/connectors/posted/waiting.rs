//! Lines that wait for their epoch, and the sink that answers them.

use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::json;

use super::journal::PostedLine;
use crate::instant;
use crate::intake::PARTITION;
use crate::mark::Mark;
use crate::sinks::book::Book;
use crate::sinks::{Decision, DecisionMode, Sink};
use dupflow_core::cluster::Clusters;
use dupflow_core::doc::{DocChange, DocId, Letter};
use dupflow_core::pair::Delta;
use dupflow_core::time::{Epoch, Progress, unix_milliseconds};
use dupflow_run::door::{PostRefusal, PostReply, PostedLines};
use dupflow_run::metrics::Metrics;

/// Bytes that are held until it is dropped.
pub(super) struct Held {
    all: Arc<AtomicUsize>,
    bytes: usize,
}

impl Held {
    /// `None` if there would be more than `most` of all. What is alone may have any size.
    pub(super) fn new(all: &Arc<AtomicUsize>, bytes: usize, most: usize) -> Option<Self> {
        let add = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= most || held == 0);
        all.fetch_update(Ordering::Relaxed, Ordering::Relaxed, add).ok()?;
        Some(Self { all: Arc::clone(all), bytes })
    }
}

impl Drop for Held {
    fn drop(&mut self) {
        self.all.fetch_sub(self.bytes, Ordering::Relaxed);
    }
}

/// The bodies whose lines have no answers yet, by the position of their first line.
#[derive(Default)]
pub(super) struct Waiting(Mutex<WaitingBodies>);

#[derive(Default)]
struct WaitingBodies {
    bodies: Vec<WaitingBody>,
    /// Whether nothing is answered any more.
    has_ended: bool,
}

/// A body whose lines are stored.
pub(super) struct WaitingBody {
    number: u64,
    /// The position of the first line that has no answer.
    next: u64,
    lines: std::vec::IntoIter<PostedLine>,
    answered: PostedLines,
    reply: PostReply,
    _held: Held,
}

impl Waiting {
    /// Answers the lines of a body when they are durable in the output, or at once if it does not wait.
    pub(super) fn begin(&self, body: WaitingBody, waits: bool) {
        if !waits {
            return body.answer_as_stored();
        }
        let mut waiting = self.0.lock();
        if waiting.has_ended {
            (body.reply)(Err(PostRefusal::Ended));
        } else {
            waiting.bodies.push(body);
        }
    }

    /// Answers a body that waits, if there is one of this number, as far as it is decided.
    pub(super) fn leave(&self, number: u64) {
        let mut waiting = self.0.lock();
        let at = waiting.bodies.iter().position(|body| body.number == number);
        let body = at.map(|at| waiting.bodies.swap_remove(at));
        drop(waiting);
        body.into_iter().for_each(WaitingBody::answer_as_stored);
    }

    /// The run has ended: what waits is stored, and not decided by it.
    fn end(&self) {
        let ended = WaitingBodies { bodies: Vec::new(), has_ended: true };
        let waiting = mem::replace(&mut *self.0.lock(), ended);
        waiting.bodies.into_iter().for_each(|body| (body.reply)(Err(PostRefusal::Ended)));
    }

    /// The lines before the position of this progress are durable, with what is in the book.
    fn answer(&self, progress: &Progress, book: &mut Book) {
        let next = progress.next.get(&PARTITION).copied().unwrap_or(0);
        let at = instant::millisecond_of(unix_milliseconds());
        let mut decide = |id: &DocId, _| {
            let ended = Decision { id: id.clone(), position: None, repetition: None };
            let mut line = Vec::new();
            let written = book.decision(id).unwrap_or(ended).write(&mut line, progress.epoch, &at);
            written.expect("memory takes every byte");
            String::from_utf8_lossy(&line).into_owned()
        };
        let mut waiting = self.0.lock();
        waiting.bodies.iter_mut().for_each(|body| body.answer(next, &mut decide));
        let done: Vec<_> = waiting.bodies.extract_if(.., |body| body.lines.len() == 0).collect();
        drop(waiting);
        for WaitingBody { answered, reply, .. } in done {
            reply(Ok(PostedLines { are_decided: true, ..answered }));
        }
    }
}

impl WaitingBody {
    /// The first of the lines is at this position.
    pub(super) fn new(number: u64, first: u64, lines: Vec<PostedLine>, held: Held, reply: PostReply) -> Self {
        let (lines, answered) = (lines.into_iter(), PostedLines::default());
        Self { number, next: first, lines, answered, reply, _held: held }
    }

    /// Answers all lines that have no answer by where they are stored.
    fn answer_as_stored(mut self) {
        self.answer(u64::MAX, |id, offset| json!({ "id": id, "offset": offset }).to_string());
        (self.reply)(Ok(self.answered));
    }

    /// Answers the lines before the position `end`.
    fn answer(&mut self, end: u64, mut of_event: impl FnMut(&DocId, u64) -> String) {
        while self.next < end
            && let Some(line) = self.lines.next()
        {
            let PostedLines { answers, bad, .. } = &mut self.answered;
            answers.push(match line {
                PostedLine::Event(id) => of_event(&id, self.next),
                PostedLine::Bad(reason) => {
                    *bad += 1;
                    json!({ "line": answers.len() + 1, "bad": reason }).to_string()
                }
            });
            self.next += 1;
        }
    }
}

/// Answers what waits, once the first output has made it durable.
pub struct PostedSink {
    book: Book,
    waiting: Arc<Waiting>,
}

impl PostedSink {
    pub(super) fn new(clusters: Clusters, waiting: Arc<Waiting>) -> Self {
        let uncounted = Arc::new(Metrics::new(0));
        Self { book: Book::new(clusters).with_decisions(DecisionMode::First, uncounted), waiting }
    }
}

impl Sink for PostedSink {
    fn wants_documents(&self) -> bool {
        true
    }

    fn documents(&mut self, changes: &[DocChange], _: bool) -> io::Result<()> {
        self.book.documents(changes);
        Ok(())
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.book.restored(deltas);
    }

    fn live(&mut self, _: Epoch) {
        self.book.live();
    }

    fn epoch(&mut self, _: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        self.book.advance(deltas);
        Ok(())
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.waiting.answer(&mark.progress, &mut self.book);
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for PostedSink {
    fn drop(&mut self) {
        self.waiting.end();
    }
}

impl std::fmt::Debug for PostedSink {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("PostedSink").finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::mpsc::channel;

    use super::*;
    use dupflow_core::cluster::ClusterKind;

    #[test]
    fn a_body_that_is_left_says_what_is_decided_and_where_the_rest_is_stored() {
        let (waiting, all) = (Waiting::default(), Arc::default());
        let (tell, told) = channel();
        let id = |name: &str| DocId::new(name).unwrap();
        let lines = vec![
            PostedLine::Event(id("a")),
            PostedLine::Bad("not_json".to_owned()),
            PostedLine::Event(id("b")),
        ];
        let held = Held::new(&all, 5, 3).expect("it is alone");
        assert!(Held::new(&all, 1, 5).is_none());
        let body = WaitingBody::new(7, 10, lines, held, Box::new(move |reply| tell.send(reply).unwrap()));
        waiting.begin(body, true);
        let mut book = Book::new(Clusters::new(ClusterKind::Components, 9));
        let progress = Progress { next: [(PARTITION, 11)].into(), epoch: 3, ..Progress::default() };
        waiting.answer(&progress, &mut book);
        waiting.leave(6);
        assert!(told.try_recv().is_err(), "it waits");
        waiting.leave(7);
        let PostedLines { answers, bad, are_decided } = told.recv().unwrap().unwrap();
        assert!(answers[0].starts_with("{\"id\":\"a\",\"epoch\":3,\"at\":") && answers[0].ends_with("true}"));
        assert_eq!(answers[1..], [r#"{"bad":"not_json","line":2}"#, r#"{"id":"b","offset":12}"#]);
        assert_eq!((bad, are_decided, all.load(Ordering::Relaxed)), (1, false, 0));
    }
}
