//! A corpus that changes.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{self, ThreadId};

use dupflow::config::Plan as Pipeline;
use dupflow::connectors::intake::Batch;
use dupflow::core::doc::DocId;
use dupflow::core::doc::fields::EventFields;
use dupflow::core::pair::{Cause, Delta, DocPair};
use dupflow::core::run::query::{Answer, Query, Refusal, SimilarDocument};
use dupflow::core::text::measures::Measure;
use dupflow::core::time::Epoch;
use dupflow::pipeline::Stopper;
use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;

use crate::columns::{BatchColumns, Columns, Nulls, ONCE};
use crate::errors;
use crate::frames::Frame;
use crate::ids::{self, IdKind, checked_ids};
use crate::numbers::{at_least_one, whole};
use crate::results::{apply, consolidate};
use crate::session::{Session, SessionSettings};
use crate::stored;
use crate::tables::{self, IdColumns, Stats, Table};
use crate::wait::{Call, Turn, Turns};

/// A corpus that changes.
#[pyclass(frozen, module = "dupflow._dupflow")]
pub(crate) struct Corpus {
    turns: Turns<CorpusState>,
    /// Ends the run without a turn.
    stopper: Stopper,
    /// Tables that were returned.
    flushes: AtomicU64,
}

/// A document that a text would be paired with: its id, the similarity, and of containment the share of the
/// text's shingles that it has, and of its shingles that the text has.
type SimilarRow<'py> = (Bound<'py, PyAny>, f64, Option<f64>, Option<f64>);

struct CorpusState {
    plan: Pipeline,
    /// `None` once the corpus is closed.
    session: Option<Session>,
    /// The kind of its ids, once there is one.
    kind: Option<IdKind>,
    /// As of the last flush.
    pairs: BTreeSet<DocPair>,
    /// The changes of the last table that was made, and the thread that has it.
    flushed: Vec<Delta>,
    received_by: Option<ThreadId>,
    epoch: Epoch,
    upserts: u64,
    deletes: u64,
    /// Upserts and deletes since the last flush.
    queued: u64,
}

impl CorpusState {
    fn session(&mut self, py: Python<'_>) -> PyResult<&mut Session> {
        let session = self.session.as_mut().ok_or_else(|| PyValueError::new_err("the corpus is closed"))?;
        session.check(py)?;
        Ok(session)
    }

    fn ids(&self) -> IdColumns<'static> {
        IdColumns::Own(self.kind.unwrap_or(IdKind::Text))
    }

    /// Notes an event, and pushes a batch that is complete.
    fn count(&mut self, call: &Call<'_, '_>, is_upsert: bool, complete: Option<Batch>) -> PyResult<()> {
        *(if is_upsert { &mut self.upserts } else { &mut self.deletes }) += 1;
        self.queued += 1;
        complete.map_or(Ok(()), |batch| self.session(call.py)?.push(call, batch))
    }

    /// Follows the changes up to an epoch that is durable.
    fn advance(&mut self, epoch: Epoch, deltas: &[Delta]) {
        apply(deltas, &mut self.pairs);
        self.epoch = epoch;
        self.queued = 0;
    }
}

impl Corpus {
    fn turn(&self, call: &Call<'_, '_>) -> PyResult<Turn<'_, CorpusState>> {
        self.turns.take(call)
    }

    /// Ends the run. Returns whether there was one.
    fn end(&self, py: Python<'_>, finishes: bool) -> PyResult<()> {
        let call = Call::begin(py, None)?;
        let mut turn = self.turn(&call)?;
        let Some(mut session) = turn.value.session.take() else { return Ok(()) };
        let ended = if finishes { session.check(py).and_then(|()| session.finish(&call)) } else { Ok(()) };
        if !finishes || ended.is_err() {
            session.abandon(py);
        }
        drop(turn);
        let delivered = call.deliver();
        ended.and(delivered)
    }
}

#[pymethods]
impl Corpus {
    #[new]
    #[pyo3(signature = (pipeline = "minhash", *, settings = Vec::new(), workers = 1, state = None,
        progress = None))]
    #[expect(clippy::needless_pass_by_value, reason = "arguments of Python")]
    fn new(
        py: Python<'_>,
        pipeline: &str,
        settings: Vec<String>,
        #[pyo3(from_py_with = whole)] workers: i64,
        state: Option<&str>,
        progress: Option<Bound<'_, PyAny>>,
    ) -> PyResult<Self> {
        let call = Call::begin(py, progress.as_ref())?;
        let plan = errors::load(py, pipeline, &settings)?;
        let workers = errors::workers(py, workers)?;
        let opened = state.map(|place| stored::open(&call, place, &plan)).transpose()?;
        let (state, kind) = opened.map_or((None, None), |(state, kind)| (Some(state), kind));
        let fields = Columns::new(&plan, "", None)?.fields;
        let settings = SessionSettings { workers, evidence: true, similarities: true, fields, state };
        let session = Session::start(&call, &plan, settings)?;
        let (stopper, collected) = (session.stopper(), Arc::clone(&session.collected));
        let mut state = CorpusState {
            plan,
            session: Some(session),
            kind,
            pairs: BTreeSet::new(),
            flushed: Vec::new(),
            received_by: None,
            epoch: 0,
            upserts: 0,
            deletes: 0,
            queued: 0,
        };
        py.detach(|| state.advance(collected.epoch(), &collected.take()));
        call.deliver()?;
        Ok(Self { turns: Turns::new(state), stopper, flushes: AtomicU64::new(0) })
    }

    /// Inserts a document or replaces its text.
    #[pyo3(signature = (id, text, *, time = None))]
    fn upsert(&self, py: Python<'_>, id: &Bound<'_, PyAny>, text: &str, time: Option<f64>) -> PyResult<()> {
        let call = Call::begin(py, None)?;
        let mut turn = self.turn(&call)?;
        let own = &mut *turn.value;
        own.session(py)?;
        let id = ids::of_object(id)?;
        let scheme = &own.plan.scheme;
        if !scheme.text.fields.is_empty() || !scheme.pairs.is_empty() {
            return Err(PyValueError::new_err("this pipeline reads further fields: use upsert_many"));
        }
        if text.len() > dupflow::connectors::formats::MAX_RECORD_BYTES {
            return Err(PyValueError::new_err(
                "the text is longer than 64 MiB, which is the most that a \
                document may have",
            ));
        }
        ids::check(&mut own.kind, &id)?;
        let complete = own.session(py)?.feed.upsert(id, time, EventFields::default(), [text]);
        own.count(&call, true, complete)
    }

    /// As `upsert` for each row in order; returns the number of documents upserted.
    #[pyo3(signature = (frame, *, text = "text", id = "id", time = None, nulls = "error",
        progress = None))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    #[expect(clippy::needless_pass_by_value, reason = "arguments of Python")]
    fn upsert_many<'py>(
        &self,
        py: Python<'py>,
        frame: &Bound<'py, PyAny>,
        text: &str,
        id: &str,
        time: Option<&str>,
        nulls: &str,
        progress: Option<Bound<'py, PyAny>>,
    ) -> PyResult<u64> {
        let call = Call::begin(py, progress.as_ref())?;
        let nulls = Nulls::named(nulls, &[ONCE, &[("delete", Nulls::Delete)]].concat())?;
        let mut turn = self.turn(&call)?;
        let own = &mut *turn.value;
        own.session(py)?;
        let columns = Columns::new(&own.plan, text, time)?;
        let mut frame = Frame::open(frame)?;
        let (before, mut rows) = (own.upserts, 0);
        while let Some(batch) = frame.next(py)? {
            let found = columns.of_batch(py, &batch)?;
            py.detach(|| found.check(batch.num_rows(), nulls, rows))?;
            let checked = checked_ids(py, &batch, id, rows, own.kind)?;
            own.feed(&call, &found, checked, nulls)?;
            rows += batch.num_rows();
        }
        call.deliver()?;
        Ok(own.upserts - before)
    }

    /// Deletes a document; nothing happens if there is none.
    #[pyo3(signature = (id, /))]
    fn delete(&self, py: Python<'_>, id: &Bound<'_, PyAny>) -> PyResult<()> {
        let call = Call::begin(py, None)?;
        let mut turn = self.turn(&call)?;
        let own = &mut *turn.value;
        own.session(py)?;
        let id = ids::of_object(id)?;
        // An id that nothing has does not decide for the corpus.
        let mut kind = own.kind;
        ids::check(&mut kind, &id)?;
        let complete = own.session(py)?.feed.delete(id);
        own.count(&call, false, complete)
    }

    /// Ends the epoch, waits until it is durable, and returns how the pairs have changed.
    fn flush(&self, py: Python<'_>) -> PyResult<Table> {
        let call = Call::begin(py, None)?;
        let mut turn = self.turn(&call)?;
        let own = &mut *turn.value;
        let epoch = own.session(py)?.flush(&call)?;
        let collected = Arc::clone(&own.session(py)?.collected);
        let table = py.detach(|| {
            let deltas = collected.take();
            own.advance(epoch, &deltas);
            if own.received_by.take().is_some() {
                own.flushed.clear();
            }
            own.flushed.extend(deltas);
            consolidate(&mut own.flushed);
            tables::deltas(epoch, &own.flushed, &own.ids(), &own.plan.scheme)
        });
        call.deliver()?;
        py.check_signals()?;
        own.received_by = Some(thread::current().id());
        self.flushes.fetch_add(1, Ordering::AcqRel);
        Ok(table)
    }

    /// How many tables `flush` has returned.
    #[getter]
    fn flushes(&self) -> u64 {
        self.flushes.load(Ordering::Acquire)
    }

    /// This thread was interrupted before it had the last table of `flush`, if there were `flushes` before
    /// it: the next one has its changes too.
    #[pyo3(signature = (flushes, /))]
    fn unreceived(&self, py: Python<'_>, flushes: u64) -> PyResult<()> {
        if self.flushes() > flushes {
            let mut turn = self.turn(&Call::begin(py, None)?)?;
            turn.value.received_by.take_if(|thread| *thread == thread::current().id());
        }
        Ok(())
    }

    /// The documents that a text would be paired with, best first, each with its similarity and, of
    /// containment, both shares.
    #[pyo3(signature = (text, *, top = 10))]
    fn similar<'py>(
        &self,
        py: Python<'py>,
        text: String,
        #[pyo3(from_py_with = whole)] top: i64,
    ) -> PyResult<Vec<SimilarRow<'py>>> {
        let top = at_least_one(top, "top").map_err(PyValueError::new_err)?;
        let call = Call::begin(py, None)?;
        let mut turn = self.turn(&call)?;
        let epoch = turn.value.epoch;
        let session = turn.value.session(py)?;
        let (reply, replied) = channel::<Result<Answer, Refusal>>();
        let query = Query::Text { text, top };
        // There is no receiver if the call was interrupted.
        session.queries.ask_after(epoch, query, move |answer| reply.send(answer).unwrap_or(()));
        let answer = call.until(move |time| match replied.recv_timeout(time) {
            Ok(answer) => Some(answer),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(Err(Refusal::Ended)),
        })?;
        let answer = match answer {
            Ok(answer) => answer,
            Err(refusal) => {
                session.check(py)?;
                return Err(PyRuntimeError::new_err(refusal.to_string()));
            }
        };
        let has_shares = turn.value.plan.scheme.measure() == Measure::Containment;
        let row = |found: &SimilarDocument| {
            let [in_id, of_id] = found.similarity.shares().map(|share| has_shares.then_some(share));
            Ok((ids::to_object(py, &found.id)?, found.similarity.get(), in_id, of_id))
        };
        answer.similar.iter().map(row).collect()
    }

    /// The pairs as of the last `flush`.
    #[pyo3(signature = (*, evidence = false))]
    fn pairs(&self, py: Python<'_>, evidence: bool) -> PyResult<Table> {
        let call = Call::begin(py, None)?;
        let mut turn = self.turn(&call)?;
        turn.value.session(py)?;
        let ids = turn.value.ids();
        let CorpusState { plan, pairs, .. } = &*turn.value;
        Ok(py.detach(|| {
            let found: Vec<_> = pairs.iter().collect();
            let stats = Stats::from([("pairs", found.len() as u64)]);
            tables::pairs(&found, &ids, &plan.scheme, evidence, stats)
        }))
    }

    /// The clusters as of the last `flush`.
    fn clusters(&self, py: Python<'_>) -> PyResult<Table> {
        let call = Call::begin(py, None)?;
        let mut turn = self.turn(&call)?;
        turn.value.session(py)?;
        let ids = turn.value.ids();
        let CorpusState { plan, pairs, .. } = &*turn.value;
        // As if all pairs had appeared at once.
        let appears = |pair: &DocPair| Delta { pair: pair.clone(), diff: 1, cause: Cause::Insert };
        Ok(py.detach(|| {
            let appeared: Vec<_> = pairs.iter().map(appears).collect();
            tables::clusters(plan, &appeared, &ids, Stats::new())
        }))
    }

    /// Counts of documents, pairs and events.
    fn stats(&self, py: Python<'_>) -> PyResult<Stats> {
        let call = Call::begin(py, None)?;
        let mut turn = self.turn(&call)?;
        let documents = turn.value.session(py)?.metrics.counts().documents();
        let own = &*turn.value;
        Ok(Stats::from([
            ("documents", documents),
            ("pairs", own.pairs.len() as u64),
            ("epoch", own.epoch),
            ("upserts", own.upserts),
            ("deletes", own.deletes),
            ("queued", own.queued),
        ]))
    }

    /// Finishes what is queued, ends the threads and waits for them.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        self.end(py, true)
    }

    /// Ends the threads without finishing what is queued, and waits for them.
    fn abandon(&self, py: Python<'_>) -> PyResult<()> {
        self.stop();
        self.end(py, false)
    }

    /// Ends the run at once, also for a call in progress on another thread, which raises RuntimeError.
    /// `abandon` then waits for the threads.
    fn stop(&self) {
        if !self.turns.is_forked() {
            self.stopper.abandon();
        }
    }

    /// Whether it was closed or abandoned.
    #[getter]
    fn closed(&self, py: Python<'_>) -> PyResult<bool> {
        Ok(self.turn(&Call::begin(py, None)?)?.value.session.is_none())
    }

    fn __enter__(own: Py<Self>) -> Py<Self> {
        own
    }

    #[pyo3(signature = (kind, error, traceback, /))]
    fn __exit__(
        &self,
        py: Python<'_>,
        kind: &Bound<'_, PyAny>,
        error: &Bound<'_, PyAny>,
        traceback: &Bound<'_, PyAny>,
    ) -> PyResult<()> {
        let (_, _) = (error, traceback);
        if kind.is_none() { self.close(py) } else { self.abandon(py) }
    }
}

impl CorpusState {
    /// Feeds the rows of a batch, whose ids were checked.
    fn feed(
        &mut self,
        call: &Call<'_, '_>,
        found: &BatchColumns<'_>,
        checked: Vec<DocId>,
        nulls: Nulls,
    ) -> PyResult<()> {
        let kind = checked.first().map(|id| IdKind::new(id.as_bytes()));
        let mut rows = checked.into_iter().enumerate();
        loop {
            let (mut upserts, mut deletes) = (0, 0);
            let session = self.session(call.py)?;
            let complete = call.py.detach(|| {
                rows.by_ref().find_map(|(row, id)| match found.texts.get(row) {
                    Some(text) => {
                        upserts += 1;
                        found.feed(session, id, row, text)
                    }
                    None if nulls == Nulls::Delete => {
                        deletes += 1;
                        session.feed.delete(id)
                    }
                    None => None,
                })
            });
            self.upserts += upserts;
            self.deletes += deletes;
            if upserts > 0 {
                self.kind = self.kind.or(kind);
            }
            self.queued += upserts + deletes;
            call.count(upserts + deletes);
            match complete {
                Some(complete) => self.session(call.py)?.push(call, complete)?,
                None => return call.look(),
            }
        }
    }
}

impl Drop for Corpus {
    fn drop(&mut self) {
        let is_forked = self.turns.is_forked();
        let session = self.turns.get_mut().session.take();
        if is_forked {
            // Its threads are in the parent process, and may have held any of its locks.
            std::mem::forget(session);
        }
    }
}
