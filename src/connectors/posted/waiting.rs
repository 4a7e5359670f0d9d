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
    /// `None` if there would be more than `most` of all.
    pub(super) fn new(all: &Arc<AtomicUsize>, bytes: usize, most: usize) -> Option<Self> {
        let add = |held: usize| held.checked_add(bytes).filter(|sum| *sum <= most);
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

struct WaitingBody {
    /// The position of the first line that has no answer.
    next: u64,
    lines: std::vec::IntoIter<PostedLine>,
    answered: PostedLines,
    reply: PostReply,
    _held: Held,
}

impl Waiting {
    /// Answers the lines of a body when their epochs are durable, or at once if it does not wait.
    pub(super) fn begin(
        &self,
        first: u64,
        lines: Vec<PostedLine>,
        held: Held,
        waits: bool,
        reply: PostReply,
    ) {
        let lines = lines.into_iter();
        let mut body =
            WaitingBody { next: first, lines, answered: PostedLines::default(), reply, _held: held };
        if !waits {
            body.answer(u64::MAX, |id, offset| json!({ "id": id, "offset": offset }).to_string());
            (body.reply)(Ok(body.answered));
            return;
        }
        let mut waiting = self.0.lock();
        if waiting.has_ended {
            (body.reply)(Err(PostRefusal::Ended));
        } else {
            waiting.bodies.push(body);
        }
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
        done.into_iter().for_each(|body| (body.reply)(Ok(body.answered)));
    }
}

impl WaitingBody {
    /// Answers the lines before the position `end`.
    fn answer(&mut self, end: u64, mut of_event: impl FnMut(&DocId, u64) -> String) {
        while self.next < end
            && let Some(line) = self.lines.next()
        {
            let PostedLines { answers, bad } = &mut self.answered;
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
