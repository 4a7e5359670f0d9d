//! Lines that wait for their epoch, and the sink that answers them.

use std::collections::{BTreeSet, HashMap};
use std::io;
use std::mem;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use serde_json::json;

use super::journal::{KeptLine, PostedLine};
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
    /// What the open epoch did to documents, and all epochs since the last durable one.
    of_epoch: Effects,
    effects: Effects,
    /// Whether there may be an epoch in the book that is not whole, or not durable.
    is_between: bool,
    /// Whether nothing is answered any more.
    has_ended: bool,
}

/// What was done to documents, and whether these are too short.
type Effects = HashMap<DocId, (UpsertEffect, bool)>;

/// How far the journal has been read, as a position of the source, in which epoch.
#[derive(Clone, Copy, Default)]
struct Reached {
    next: u64,
    epoch: Epoch,
}

/// A body whose lines are stored.
pub(super) struct WaitingBody {
    number: u64,
    lines: std::iter::Peekable<std::vec::IntoIter<KeptLine>>,
    /// Whether some were stored before.
    is_again: bool,
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
        // What was stored before may have been reached, and no epoch may come.
        let mut book = body.is_again.then(|| self.book.lock());
        let mut waiting = self.bodies.lock();
        waiting.cancelled.remove(&body.number);
        if waiting.has_ended {
            return (body.reply)(Err(PostRefusal::Ended));
        }
        waiting.bodies.push(body);
        let whole = book.as_mut().filter(|_| !waiting.is_between);
        let first = self.journal.first();
        let done = whole.map(|whole| waiting.answer(first, whole, &Effects::new())).unwrap_or_default();
        drop((waiting, book));
        done.into_iter().for_each(WaitingBody::reply);
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

    /// The book gets an epoch: until that is durable, nothing is answered from it but by the calls below.
    fn is_between(&self) {
        self.bodies.lock().is_between = true;
    }

    /// The open epoch did this to documents.
    fn upserts(&self, upserts: &[UpsertedDoc]) {
        let effect = |of: &UpsertedDoc| (of.id.clone(), (of.effect, of.is_too_short));
        self.bodies.lock().of_epoch = upserts.iter().map(effect).collect();
    }

    /// The lines before the position of this progress are computed, with what is in the book.
    fn computed(&self, progress: &Progress) {
        let mut book = self.book.lock();
        let mut waiting = self.bodies.lock();
        waiting.closed = Reached::new(progress);
        let effects = mem::take(&mut waiting.of_epoch);
        let done = waiting.answer(self.journal.first(), &mut book, &effects);
        for (id, (effect, is_too_short)) in effects {
            let before = waiting.effects.get(&id).map_or(effect, |(before, _)| *before);
            // What is new or ends is so whatever was before.
            let effect = if effect >= UpsertEffect::New { effect } else { effect.max(before) };
            waiting.effects.insert(id, (effect, is_too_short));
        }
        drop((waiting, book));
        done.into_iter().for_each(WaitingBody::reply);
    }

    /// They are durable too.
    fn durable(&self, progress: &Progress) {
        let mut book = self.book.lock();
        let mut waiting = self.bodies.lock();
        waiting.durable = Reached::new(progress);
        waiting.is_between = false;
        let effects = mem::take(&mut waiting.effects);
        let done = waiting.answer(self.journal.first(), &mut book, &effects);
        drop((waiting, book));
        done.into_iter().for_each(WaitingBody::reply);
    }
}

impl Reached {
    fn new(progress: &Progress) -> Self {
        Self { next: progress.next.get(&PARTITION).copied().unwrap_or(0), epoch: progress.epoch }
    }
}

impl WaitingBodies {
    /// Answers what is reached; `first` is the position of the journal's first line. Returns the bodies of
    /// which all lines have answers.
    fn answer(&mut self, first: Option<u64>, book: &mut Book, effects: &Effects) -> Vec<WaitingBody> {
        let at = instant::millisecond_of(unix_milliseconds());
        for body in &mut self.bodies {
            let reached = if body.wait == PostWait::Closed { self.closed } else { self.durable };
            // Before the journal is read, only others have been.
            let lines = first.map_or(0, |first| reached.next.saturating_sub(first));
            body.answer(lines, |id, line| {
                let alive = book.decision(id);
                // Of a document that has ended nothing more is said.
                let effect = alive.as_ref().and(effects.get(id));
                let ended = Decision { id: id.clone(), position: None, repetition: None };
                let mut answer = Vec::new();
                let written = alive.unwrap_or(ended).write(&mut answer, reached.epoch, &at);
                written.expect("memory takes every byte");
                let mut answer = String::from_utf8_lossy(&answer).into_owned();
                if let Some((effect, is_too_short)) = effect {
                    answer.pop();
                    answer += if line.is_again { "" } else { said(*effect) };
                    answer += if *is_too_short { TOO_SHORT } else { "}" };
                }
                answer
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
        UpsertEffect::Sent | UpsertEffect::Ended => "",
    }
}

impl WaitingBody {
    pub(super) fn new(
        number: u64,
        lines: Vec<KeptLine>,
        held: Held,
        wait: PostWait,
        reply: PostReply,
    ) -> Self {
        let (is_again, answered) = (lines.iter().any(|line| line.is_again), PostedLines::default());
        let lines = lines.into_iter().peekable();
        Self { number, lines, is_again, answered, wait, reply, _held: held }
    }

    /// All lines have their answers.
    fn reply(self) {
        (self.reply)(Ok(PostedLines { are_decided: true, ..self.answered }));
    }

    /// Answers all lines that have no answer by their positions; `first` is that of the journal's first line.
    fn answer_as_stored(mut self, first: Option<u64>) {
        self.answer(u64::MAX, |id, KeptLine { number, is_again, .. }| {
            // Of what was stored before, the position is not known any more.
            let offset = first.filter(|_| !is_again).map(|first| first + number);
            json!({ "id": id, "offset": offset }).to_string()
        });
        (self.reply)(Ok(self.answered));
    }

    /// Answers the lines before the number `end`.
    fn answer(&mut self, end: u64, mut of_event: impl FnMut(&DocId, &KeptLine) -> String) {
        while let Some(kept) = self.lines.next_if(|kept| kept.number < end) {
            let PostedLines { answers, bad, .. } = &mut self.answered;
            answers.push(match &kept.line {
                PostedLine::Event(id) => of_event(id, &kept),
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
        let mut book = self.waiting.book.lock();
        self.waiting.is_between();
        book.documents(changes);
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
        let mut book = self.waiting.book.lock();
        self.waiting.is_between();
        book.advance(deltas);
        drop(book);
        self.waiting.computed(progress);
        Ok(())
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.waiting.durable(&mark.progress);
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
            PostedLine::Event(id("a")),
            PostedLine::Bad("not_json".to_owned()),
            PostedLine::Event(id("b")),
        ];
        let lines =
            (6..).zip(lines).map(|(number, line)| KeptLine { line, number, is_again: false }).collect();
        let held = Held::new(&all, 5, 3).expect("it is alone");
        assert!(Held::new(&all, 1, 5).is_none());
        let reply = Box::new(move |reply| tell.send(reply).unwrap());
        waiting.begin(WaitingBody::new(7, lines, held, PostWait::Durable, reply));
        let progress = Progress { next: [(PARTITION, 11)].into(), epoch: 3, ..Progress::default() };
        waiting.computed(&progress);
        assert!(waiting.bodies.lock().bodies[0].answered.answers.is_empty(), "it is not durable");
        waiting.durable(&progress);
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
