//! Lines that wait for their epoch, and the sink that answers them.

use std::collections::{BTreeSet, HashMap};
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
use dupflow_core::doc::{DocChange, DocId, Letter, UpsertEffect, UpsertedDoc};
use dupflow_core::pair::Delta;
use dupflow_core::time::{Epoch, Progress, unix_milliseconds};
use dupflow_run::posted::{PostRefusal, PostReply, PostWait, PostedLines};

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

/// The bodies whose lines have no answers yet. Of its locks that of the book is taken first.
pub(super) struct Waiting {
    bodies: Mutex<WaitingBodies>,
    book: Arc<Mutex<Book>>,
    journal: Arc<Durable>,
}

#[derive(Default)]
struct WaitingBodies {
    bodies: Vec<WaitingBody>,
    /// Numbers of bodies that were cancelled before they were stored.
    cancelled: BTreeSet<u64>,
    /// What is computed, and what of it is durable in the output.
    closed: Reached,
    durable: Reached,
    /// What the epochs after the last durable one did to documents, and whether these are too short.
    effects: HashMap<DocId, (UpsertEffect, bool)>,
    /// Whether nothing is answered any more.
    has_ended: bool,
}

/// How far the journal has been read, as a position of the source, in which epoch.
#[derive(Clone, Copy, Default)]
struct Reached {
    next: u64,
    epoch: Epoch,
}

/// A body whose lines are stored.
pub(super) struct WaitingBody {
    number: u64,
    /// With their numbers in the journal, up to which it must be read.
    lines: std::iter::Peekable<std::vec::IntoIter<(PostedLine, u64)>>,
    answered: PostedLines,
    wait: PostWait,
    reply: PostReply,
    _held: Held,
}

impl Waiting {
    pub(super) fn new(journal: Arc<Durable>, book: Arc<Mutex<Book>>) -> Self {
        Self { bodies: Mutex::default(), book, journal }
    }

    /// Answers the lines of a body when what it waits for is reached.
    pub(super) fn begin(&self, body: WaitingBody) {
        if body.wait == PostWait::Stored {
            return body.answer_as_stored(self.journal.first());
        }
        let mut book = self.book.lock();
        let mut waiting = self.bodies.lock();
        if waiting.has_ended {
            (body.reply)(Err(PostRefusal::Ended));
        } else {
            waiting.bodies.push(body);
            // It may be one that was stored before.
            let done = waiting.answer(self.journal.first(), &mut book, &HashMap::new());
            drop((waiting, book));
            done.into_iter().for_each(WaitingBody::reply);
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

    /// An epoch did this to documents.
    fn upserts(&self, upserts: &[UpsertedDoc]) {
        let mut waiting = self.bodies.lock();
        for UpsertedDoc { id, effect, is_too_short, .. } in upserts {
            let (known, short) = waiting.effects.entry(id.clone()).or_insert((*effect, *is_too_short));
            (*known, *short) = ((*known).max(*effect), *is_too_short);
        }
    }

    /// The lines before the position of this progress are computed, or durable too, with what is in the book.
    fn reached(&self, wait: PostWait, progress: &Progress) {
        let next = progress.next.get(&PARTITION).copied().unwrap_or(0);
        let now = Reached { next, epoch: progress.epoch };
        let mut book = self.book.lock();
        let mut waiting = self.bodies.lock();
        waiting.closed = now;
        if wait == PostWait::Durable {
            waiting.durable = now;
        }
        let effects = mem::take(&mut waiting.effects);
        let done = waiting.answer(self.journal.first(), &mut book, &effects);
        if wait == PostWait::Closed {
            waiting.effects = effects;
        }
        drop((waiting, book));
        done.into_iter().for_each(WaitingBody::reply);
    }
}

impl WaitingBodies {
    /// Answers what is reached; `first` is the position of the journal's first line. Returns the bodies of
    /// which all lines have answers.
    fn answer(
        &mut self,
        first: Option<u64>,
        book: &mut Book,
        effects: &HashMap<DocId, (UpsertEffect, bool)>,
    ) -> Vec<WaitingBody> {
        let at = instant::millisecond_of(unix_milliseconds());
        for body in &mut self.bodies {
            let reached = if body.wait == PostWait::Closed { self.closed } else { self.durable };
            // Before the journal is read, only others have been.
            let lines = first.map_or(0, |first| reached.next.saturating_sub(first));
            body.answer(lines, |id, _| {
                let ended = Decision { id: id.clone(), position: None, repetition: None };
                let mut line = Vec::new();
                let written = book.decision(id).unwrap_or(ended).write(&mut line, reached.epoch, &at);
                written.expect("memory takes every byte");
                let mut line = String::from_utf8_lossy(&line).into_owned();
                line.pop();
                line + effects.get(id).map_or("", |(effect, _)| said(*effect))
                    + effects.get(id).filter(|(_, is_too_short)| *is_too_short).map_or("}", |_| TOO_SHORT)
            });
        }
        self.bodies.extract_if(.., |body| body.lines.peek().is_none()).collect()
    }
}

/// The end of an answer of a document whose text has too few words.
const TOO_SHORT: &str = ",\"too_short\":true}";

/// What a line did to its document, as a member of the answer.
fn said(effect: UpsertEffect) -> &'static str {
    match effect {
        UpsertEffect::New => ",\"document\":\"new\"",
        UpsertEffect::Changed => ",\"document\":\"changed\"",
        UpsertEffect::Unchanged => ",\"document\":\"unchanged\"",
        UpsertEffect::Ended => "",
    }
}

impl WaitingBody {
    pub(super) fn new(
        number: u64,
        lines: Vec<(PostedLine, u64)>,
        held: Held,
        wait: PostWait,
        reply: PostReply,
    ) -> Self {
        let (lines, answered) = (lines.into_iter().peekable(), PostedLines::default());
        Self { number, lines, answered, wait, reply, _held: held }
    }

    /// All lines have their answers.
    fn reply(self) {
        (self.reply)(Ok(PostedLines { are_decided: true, ..self.answered }));
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
        while let Some((line, number)) = self.lines.next_if(|(_, number)| *number < end) {
            let PostedLines { answers, bad, .. } = &mut self.answered;
            answers.push(match line {
                PostedLine::Event(id) => of_event(&id, number),
                PostedLine::Bad(reason) => {
                    *bad += 1;
                    json!({ "line": answers.len() + 1, "bad": reason }).to_string()
                }
            });
        }
    }
}

/// Answers what waits, once its epoch is computed, or the first output has made it durable.
pub struct PostedSink {
    waiting: Arc<Waiting>,
}

impl PostedSink {
    pub(super) fn new(waiting: Arc<Waiting>) -> Self {
        Self { waiting }
    }
}

impl Sink for PostedSink {
    fn wants_documents(&self) -> bool {
        true
    }

    fn documents(&mut self, changes: &[DocChange], _: bool) -> io::Result<()> {
        self.waiting.book.lock().documents(changes);
        Ok(())
    }

    fn wants_upserts(&self) -> bool {
        true
    }

    fn upserts(&mut self, upserts: &[UpsertedDoc]) -> io::Result<()> {
        self.waiting.book.lock().upserts(upserts);
        self.waiting.upserts(upserts);
        Ok(())
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.waiting.book.lock().restored(deltas);
    }

    fn live(&mut self, _: Epoch) {
        self.waiting.book.lock().live();
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        self.waiting.book.lock().advance(deltas);
        self.waiting.reached(PostWait::Closed, progress);
        Ok(())
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.waiting.reached(PostWait::Durable, &mark.progress);
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
        let book = Book::new(Clusters::new(ClusterKind::Components, 9));
        let (waiting, all) = (Waiting::new(journal, Arc::new(Mutex::new(book))), Arc::default());
        let (tell, told) = channel();
        let id = |name: &str| DocId::new(name).unwrap();
        let lines = vec![
            (PostedLine::Event(id("a")), 6),
            (PostedLine::Bad("not_json".to_owned()), 7),
            (PostedLine::Event(id("b")), 8),
        ];
        let held = Held::new(&all, 5, 3).expect("it is alone");
        assert!(Held::new(&all, 1, 5).is_none());
        let reply = Box::new(move |reply| tell.send(reply).unwrap());
        waiting.begin(WaitingBody::new(7, lines, held, PostWait::Durable, reply));
        let progress = Progress { next: [(PARTITION, 11)].into(), epoch: 3, ..Progress::default() };
        waiting.reached(PostWait::Closed, &progress);
        assert!(waiting.bodies.lock().bodies[0].answered.answers.is_empty(), "it is not durable");
        waiting.reached(PostWait::Durable, &progress);
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
