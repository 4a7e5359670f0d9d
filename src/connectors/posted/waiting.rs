//! Lines that wait for their epoch, and the sink that answers them.

use std::collections::BTreeSet;
use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::json;

use super::journal::PostedLine;
use crate::durable::Durable;
use crate::instant;
use crate::intake::PARTITION;
use crate::mark::Mark;
use crate::sinks::book::Book;
use crate::sinks::{Decision, Sink};
use dupflow_core::doc::{DocChange, DocId, Letter};
use dupflow_core::pair::Delta;
use dupflow_core::time::{Epoch, Progress, unix_milliseconds};
use dupflow_run::posted::{PostRefusal, PostReply, PostedLines};

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

/// The bodies whose lines have no answers yet.
pub(super) struct Waiting {
    bodies: Mutex<WaitingBodies>,
    journal: Arc<Durable>,
}

#[derive(Default)]
struct WaitingBodies {
    bodies: Vec<WaitingBody>,
    /// Numbers of bodies that were cancelled before they were stored.
    cancelled: BTreeSet<u64>,
    /// Whether nothing is answered any more.
    has_ended: bool,
}

/// A body whose lines are stored.
pub(super) struct WaitingBody {
    number: u64,
    /// The number in the journal of the first line that has no answer.
    next: u64,
    lines: std::vec::IntoIter<PostedLine>,
    answered: PostedLines,
    reply: PostReply,
    _held: Held,
}

impl Waiting {
    pub(super) fn new(journal: Arc<Durable>) -> Self {
        Self { bodies: Mutex::default(), journal }
    }

    /// Answers the lines of a body when they are durable in the output, or at once if it does not wait.
    pub(super) fn begin(&self, body: WaitingBody, waits: bool) {
        if !waits {
            return body.answer_as_stored(self.journal.first());
        }
        let mut waiting = self.bodies.lock();
        if waiting.has_ended {
            (body.reply)(Err(PostRefusal::Ended));
        } else {
            waiting.bodies.push(body);
        }
    }

    /// Answers a body that waits as far as it is decided; one that is not stored yet will not be.
    pub(super) fn cancel(&self, number: u64) {
        let mut waiting = self.bodies.lock();
        let Some(at) = waiting.bodies.iter().position(|body| body.number == number) else {
            waiting.cancelled.insert(number);
            return;
        };
        let body = waiting.bodies.swap_remove(at);
        drop(waiting);
        body.answer_as_stored(self.journal.first());
    }

    /// Whether a body was cancelled before it is stored.
    pub(super) fn is_cancelled(&self, number: u64) -> bool {
        self.bodies.lock().cancelled.remove(&number)
    }

    /// The run has ended: what waits is stored, and not decided by it.
    fn end(&self) {
        let ended = WaitingBodies { has_ended: true, ..WaitingBodies::default() };
        let waiting = mem::replace(&mut *self.bodies.lock(), ended);
        waiting.bodies.into_iter().for_each(|body| (body.reply)(Err(PostRefusal::Ended)));
    }

    /// The lines before the position of this progress are durable, with what is in the book.
    fn answer(&self, progress: &Progress, book: &mut Book) {
        let next = progress.next.get(&PARTITION).copied().unwrap_or(0);
        // Before the journal is read, only others have been.
        let next = self.journal.first().map_or(0, |first| next.saturating_sub(first));
        let at = instant::millisecond_of(unix_milliseconds());
        let mut decide = |id: &DocId, _| {
            let ended = Decision { id: id.clone(), position: None, repetition: None };
            let mut line = Vec::new();
            let written = book.decision(id).unwrap_or(ended).write(&mut line, progress.epoch, &at);
            written.expect("memory takes every byte");
            String::from_utf8_lossy(&line).into_owned()
        };
        let mut waiting = self.bodies.lock();
        waiting.bodies.iter_mut().for_each(|body| body.answer(next, &mut decide));
        let done: Vec<_> = waiting.bodies.extract_if(.., |body| body.lines.len() == 0).collect();
        drop(waiting);
        for WaitingBody { answered, reply, .. } in done {
            reply(Ok(PostedLines { are_decided: true, ..answered }));
        }
    }
}

impl WaitingBody {
    /// The first of the lines has this number in the journal.
    pub(super) fn new(number: u64, first: u64, lines: Vec<PostedLine>, held: Held, reply: PostReply) -> Self {
        let (lines, answered) = (lines.into_iter(), PostedLines::default());
        Self { number, next: first, lines, answered, reply, _held: held }
    }

    /// Answers all lines that have no answer by their positions; `first` is that of the journal's first line.
    fn answer_as_stored(mut self, first: Option<u64>) {
        let stored =
            |id: &DocId, number| json!({ "id": id, "offset": first.map(|first| first + number) }).to_string();
        self.answer(u64::MAX, stored);
        (self.reply)(Ok(self.answered));
    }

    /// Answers the lines before the number `end`.
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
    book: Arc<Mutex<Book>>,
    waiting: Arc<Waiting>,
}

impl PostedSink {
    pub(super) fn new(book: Arc<Mutex<Book>>, waiting: Arc<Waiting>) -> Self {
        Self { book, waiting }
    }
}

impl Sink for PostedSink {
    fn wants_documents(&self) -> bool {
        true
    }

    fn documents(&mut self, changes: &[DocChange], _: bool) -> io::Result<()> {
        self.book.lock().documents(changes);
        Ok(())
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.book.lock().restored(deltas);
    }

    fn live(&mut self, _: Epoch) {
        self.book.lock().live();
    }

    fn epoch(&mut self, _: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        self.book.lock().advance(deltas);
        Ok(())
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.waiting.answer(&mark.progress, &mut self.book.lock());
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
    use dupflow_core::cluster::{ClusterKind, Clusters};

    #[test]
    fn a_body_that_is_cancelled_says_what_is_decided_and_where_the_rest_is_stored() {
        let journal = Arc::<Durable>::default();
        journal.begins_at(4);
        let (waiting, all) = (Waiting::new(journal), Arc::default());
        let (tell, told) = channel();
        let id = |name: &str| DocId::new(name).unwrap();
        let lines = vec![
            PostedLine::Event(id("a")),
            PostedLine::Bad("not_json".to_owned()),
            PostedLine::Event(id("b")),
        ];
        let held = Held::new(&all, 5, 3).expect("it is alone");
        assert!(Held::new(&all, 1, 5).is_none());
        let body = WaitingBody::new(7, 6, lines, held, Box::new(move |reply| tell.send(reply).unwrap()));
        waiting.begin(body, true);
        let mut book = Book::new(Clusters::new(ClusterKind::Components, 9));
        let progress = Progress { next: [(PARTITION, 11)].into(), epoch: 3, ..Progress::default() };
        waiting.answer(&progress, &mut book);
        waiting.cancel(6);
        assert!(told.try_recv().is_err(), "it waits");
        assert_eq!([7, 6, 6].map(|number| waiting.is_cancelled(number)), [false, true, false]);
        waiting.cancel(7);
        let PostedLines { answers, bad, are_decided } = told.recv().unwrap().unwrap();
        assert!(answers[0].starts_with("{\"id\":\"a\",\"epoch\":3,\"at\":") && answers[0].ends_with("true}"));
        assert_eq!(answers[1..], [r#"{"bad":"not_json","line":2}"#, r#"{"id":"b","offset":12}"#]);
        assert_eq!((bad, are_decided, all.load(Ordering::Relaxed)), (1, false, 0));
    }
}
