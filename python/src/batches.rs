//! Pairs, clusters and duplicates of the rows of a frame, computed once.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use arrow_array::{BooleanArray, RecordBatch};
use dupflow::config::Plan as Pipeline;
use dupflow::connectors::sinks::contained_in_kept;
use dupflow::core::cluster::{ClusterKind, KeepFacts, KeepRule};
use dupflow::core::doc::{DocId, Facts, Position};
use dupflow::core::pair::{Delta, DocPair};
use dupflow::core::text::measures::Measure;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::PyBytes;

use crate::cells::{column, copied};
use crate::columns::{BatchColumns, Columns, Nulls, ONCE, keep_rule};
use crate::errors;
use crate::frames::Frame;
use crate::ids;
use crate::numbers::whole;
use crate::session::{Session, SessionSettings};
use crate::tables::{self, IdColumns, RowIds, Stats, Table};
use crate::wait::Call;

/// What is known of the rows besides the run.
struct RowsRead {
    ids: RowIds,
    nulls: u64,
    /// What the rule reads of each row, if one is kept of each cluster.
    facts: Option<(KeepRule, Vec<KeepFacts>)>,
}

impl RowsRead {
    fn documents(&self) -> u64 {
        self.ids.rows as u64 - self.nulls
    }
}

/// Feeds the rows of a frame into a run, numbered on from those that were read.
fn read<'py>(
    call: &Call<'_, 'py>,
    frame: &Bound<'py, PyAny>,
    id: Option<&str>,
    columns: &Columns,
    nulls: Nulls,
    session: &mut Session,
    rows: &mut RowsRead,
) -> PyResult<()> {
    let mut frame = Frame::open(frame)?;
    while let Some(batch) = frame.next(call.py)? {
        let own = columns.of_batch(call.py, &batch)?;
        let first = rows.ids.rows;
        call.py.detach(|| own.check(batch.num_rows(), nulls, first))?;
        let ids = id.map(|name| {
            let array = column(call.py, &batch, name)?;
            let no_ids = || format!("column {name:?}: no ids of type {} are read", array.data_type());
            call.py.detach(|| copied(array)).ok_or_else(|| PyTypeError::new_err(no_ids()))
        });
        let added = rows.ids.add(batch.num_rows(), ids.transpose()?);
        added.map_err(|what| PyTypeError::new_err(format!("the ids have different types: {what}")))?;
        let mut row = 0;
        while row < batch.num_rows() {
            let begun = row;
            let complete = call.py.detach(|| feed_rows(&own, &batch, first, &mut row, session, rows));
            call.count((row - begun) as u64);
            match complete {
                Some(complete) => session.push(call, complete)?,
                None => call.look()?,
            }
        }
    }
    Ok(())
}

/// Feeds rows from `row` on, until a batch for the run is complete.
fn feed_rows(
    own: &BatchColumns<'_>,
    batch: &RecordBatch,
    first: usize,
    row: &mut usize,
    session: &mut Session,
    rows: &mut RowsRead,
) -> Option<dupflow::connectors::intake::Batch> {
    while *row < batch.num_rows() {
        let here = *row;
        *row += 1;
        let text = own.texts.get(here);
        let number = (first + here) as u64;
        if let Some((keep, facts)) = &mut rows.facts {
            let bytes = text.map_or(0, |text| u32::try_from(text.len()).unwrap_or(u32::MAX));
            let position = Position { partition: 0, offset: number };
            let rank = own.rank(keep, &ids::of_row(number), here);
            facts.push(KeepFacts { facts: Facts { ts: own.time(here), bytes, position }, rank });
        }
        let Some(text) = text else {
            rows.nulls += 1;
            continue;
        };
        let complete = own.feed(session, ids::of_row(number), here, text);
        if complete.is_some() {
            return complete;
        }
    }
    None
}

/// What a call wants of its run.
#[derive(Clone, Copy, Default)]
struct Wants {
    evidence: bool,
    similarities: bool,
    /// Whether a reference is read first.
    has_reference: bool,
}

/// What all three functions are given.
struct Given<'a> {
    pipeline: &'a str,
    settings: &'a [String],
    workers: i64,
    text: &'a str,
    id: Option<&'a str>,
    time: Option<&'a str>,
    nulls: &'a str,
}

/// A call of one of them.
struct Request<'a, 'py> {
    call: Call<'a, 'py>,
    plan: Pipeline,
    columns: Columns,
    id: Option<String>,
    nulls: Nulls,
    session: Session,
}

impl<'a, 'py> Request<'a, 'py> {
    fn begin(
        py: Python<'py>,
        progress: Option<&'a Bound<'py, PyAny>>,
        Given { pipeline, settings, workers, text, id, time, nulls }: Given<'_>,
        Wants { evidence, similarities, has_reference }: Wants,
    ) -> PyResult<Self> {
        let call = Call::begin(py, progress)?;
        let mut plan = errors::load(py, pipeline, settings)?;
        if has_reference && plan.clusters == ClusterKind::Star {
            let what = "against: a star may leave out documents that have a match: set output.clusters to \
                \"components\"";
            return Err(errors::config(py, vec![what.to_owned()]));
        }
        if has_reference && plan.scheme.measure() == Measure::Containment {
            let what = "against: containment is not compared with a reference; use another measure";
            return Err(errors::config(py, vec![what.to_owned()]));
        }
        // Weights that follow the corpus follow both sides, and all documents are compared.
        if has_reference && plan.scheme.live().is_none() {
            plan.scheme.pairs = plan.scheme.pairs.with_reference();
        }
        let workers = errors::workers(py, workers)?;
        let nulls = Nulls::named(nulls, ONCE)?;
        let columns = Columns::new(&plan, text, time)?;
        let fields = columns.fields.clone();
        let settings = SessionSettings { workers, evidence, similarities, fields, state: None };
        let session = Session::start(&call, &plan, settings)?;
        Ok(Self { call, plan, columns, id: id.map(str::to_owned), nulls, session })
    }

    fn read(&mut self, frame: &Bound<'py, PyAny>, rows: &mut RowsRead) -> PyResult<()> {
        let Self { call, columns, id, nulls, session, .. } = self;
        let read = read(call, frame, id.as_deref(), columns, *nulls, session, rows);
        read.inspect_err(|_| session.abandon(call.py))
    }

    /// The rows so far are the reference.
    fn end_reference(&mut self) -> PyResult<()> {
        let Self { call, session, .. } = self;
        session.end_reference(call).inspect_err(|_| session.abandon(call.py))
    }

    /// Ends the run. Returns all pairs.
    fn finish(&mut self) -> PyResult<Vec<Delta>> {
        let Self { call, session, .. } = self;
        session.finish(call).inspect_err(|_| session.abandon(call.py))?;
        call.deliver()?;
        let collected = Arc::clone(&session.collected);
        Ok(call.py.detach(|| collected.take()))
    }

    fn rows(&self, keep: Option<KeepRule>) -> RowsRead {
        let facts = keep.map(|keep| (keep, Vec::new()));
        RowsRead { ids: RowIds::new(self.id.is_some()), nulls: 0, facts }
    }
}

/// All near-duplicate pairs of the rows of a frame.
#[pyfunction]
#[pyo3(signature = (frame, *, text = "text", id = None, time = None, pipeline = "minhash",
    settings = Vec::new(), workers = 1, evidence = false, nulls = "error", progress = None))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python")]
pub(crate) fn pairs<'py>(
    py: Python<'py>,
    frame: &Bound<'py, PyAny>,
    text: &str,
    id: Option<&str>,
    time: Option<&str>,
    pipeline: &str,
    settings: Vec<String>,
    #[pyo3(from_py_with = whole)] workers: i64,
    evidence: bool,
    nulls: &str,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Table> {
    let given = Given { pipeline, settings: &settings, workers, text, id, time, nulls };
    let wants = Wants { evidence, similarities: true, ..Wants::default() };
    let mut request = Request::begin(py, progress.as_ref(), given, wants)?;
    let mut rows = request.rows(None);
    request.read(frame, &mut rows)?;
    let found = request.finish()?;
    let scheme = &request.plan.scheme;
    py.detach(|| {
        let found: Vec<_> = found.iter().map(|delta| &delta.pair).collect();
        let counts = [("documents", rows.documents()), ("nulls", rows.nulls), ("pairs", found.len() as u64)];
        Ok(tables::pairs(&found, &IdColumns::Rows(&rows.ids), scheme, evidence, Stats::from(counts)))
    })
}

/// The clusters of at least two rows.
#[pyfunction]
#[pyo3(signature = (frame, *, text = "text", id = None, time = None, pipeline = "minhash",
    settings = Vec::new(), workers = 1, nulls = "error", progress = None))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python")]
pub(crate) fn clusters<'py>(
    py: Python<'py>,
    frame: &Bound<'py, PyAny>,
    text: &str,
    id: Option<&str>,
    time: Option<&str>,
    pipeline: &str,
    settings: Vec<String>,
    #[pyo3(from_py_with = whole)] workers: i64,
    nulls: &str,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Table> {
    let given = Given { pipeline, settings: &settings, workers, text, id, time, nulls };
    let mut request = Request::begin(py, progress.as_ref(), given, Wants::default())?;
    let mut rows = request.rows(None);
    request.read(frame, &mut rows)?;
    let found = request.finish()?;
    py.detach(|| {
        let stats = Stats::from([("documents", rows.documents()), ("nulls", rows.nulls)]);
        Ok(tables::clusters(&request.plan, &found, &IdColumns::Rows(&rows.ids), stats))
    })
}

/// What `dedup` found.
#[pyclass(frozen, module = "dupflow._dupflow")]
pub(crate) struct Deduplicated {
    /// For each row of the frame whether it is kept.
    keeps: Vec<bool>,
    removed: Py<Table>,
    stats: Stats,
}

#[pymethods]
impl Deduplicated {
    /// One column `keep` (bool), a row for each row of the frame, in its order.
    #[getter]
    fn mask(&self) -> Table {
        let keep = Arc::new(BooleanArray::from(self.keeps.clone()));
        Table::new(self.keeps.len(), vec![("keep", keep)], Stats::new())
    }

    /// As `mask`, a byte for each row: 1 keep, 0 remove.
    #[getter]
    fn mask_bytes<'py>(&self, py: Python<'py>) -> Bound<'py, PyBytes> {
        PyBytes::new(py, &self.keeps.iter().map(|keep| u8::from(*keep)).collect::<Vec<_>>())
    }

    /// A row for each removed row: `id`, `kept`, `cluster`; with `against` also `old`.
    #[getter]
    fn removed(&self, py: Python<'_>) -> Py<Table> {
        self.removed.clone_ref(py)
    }

    /// documents, nulls, kept, removed; with `against` also old.
    #[getter]
    fn stats(&self) -> Stats {
        self.stats.clone()
    }
}

/// Which documents go, each with the one that is kept in its place and the name of their cluster.
type Removals = BTreeMap<DocId, (DocId, DocId)>;

/// The documents that a kept one contains; the kept one is named twice.
fn contained(found: Vec<Delta>, least: f64) -> Removals {
    let pairs: BTreeSet<DocPair> = found.into_iter().map(|delta| delta.pair).collect();
    let removed = contained_in_kept(&pairs, least, |_| false).into_iter();
    removed.map(|(id, kept)| (id.clone(), (kept.clone(), kept.clone()))).collect()
}

/// What cannot be asked of a pipeline of containment, which removes what lies in something that stays.
fn refused_of_containment(plan: &Pipeline, keep: Option<&str>) -> Vec<String> {
    let refused = [
        (
            plan.remove_if.is_none(),
            "filter.verify: what to remove is decided by exact shares; set filter.verify = \"exact\"",
        ),
        (keep.is_some(), "keep: of containment output.remove_if decides which documents are kept"),
    ];
    refused.into_iter().filter(|(is_refused, _)| *is_refused).map(|(_, what)| what.to_owned()).collect()
}

/// Which rows to keep: one of each cluster, and every row in none; of containment, those that lie in no other
/// one that is kept.
#[pyfunction]
#[pyo3(signature = (frame, *, text = "text", id = None, time = None, pipeline = "minhash",
    settings = Vec::new(), workers = 1, keep = None, against = None, nulls = "error", progress = None))]
#[expect(clippy::too_many_arguments, reason = "keywords of Python")]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python")]
pub(crate) fn dedup<'py>(
    py: Python<'py>,
    frame: &Bound<'py, PyAny>,
    text: &str,
    id: Option<&str>,
    time: Option<&str>,
    pipeline: &str,
    settings: Vec<String>,
    #[pyo3(from_py_with = whole)] workers: i64,
    keep: Option<&str>,
    against: Option<Bound<'py, PyAny>>,
    nulls: &str,
    progress: Option<Bound<'py, PyAny>>,
) -> PyResult<Deduplicated> {
    let named = keep.map(|name| keep_rule(py, name)).transpose()?;
    let has_time = time.is_some();
    let given = Given { pipeline, settings: &settings, workers, text, id, time, nulls };
    let wants = Wants { has_reference: against.is_some(), ..Wants::default() };
    let mut request = Request::begin(py, progress.as_ref(), given, wants)?;
    let is_contained = request.plan.scheme.measure() == Measure::Containment;
    let refused = if is_contained { refused_of_containment(&request.plan, keep) } else { Vec::new() };
    if !refused.is_empty() {
        request.session.abandon(py);
        return Err(errors::config(py, refused));
    }
    let rule = named.unwrap_or_else(|| request.plan.keep.clone());
    if rule == KeepRule::Oldest && !has_time {
        request.session.abandon(py);
        return Err(PyValueError::new_err("keep = \"oldest\" needs time, the name of a column"));
    }
    let columns = request.columns.clone().with_keep(&rule);
    request.columns = columns.inspect_err(|_| request.session.abandon(py))?;
    let mut rows = request.rows(Some(rule.clone()));
    if let Some(old) = &against {
        request.read(old, &mut rows)?;
        request.end_reference()?;
    }
    let (old, old_nulls) = (rows.ids.rows, rows.nulls);
    request.read(frame, &mut rows)?;
    let found = request.finish()?;
    let has_old = against.is_some();
    let (keeps, removed, stats) = py.detach(|| {
        let facts = rows.facts.as_ref().map_or(&[][..], |(_, facts)| facts);
        let of = |id: &DocId| facts.get(ids::row(id)).copied();
        let removed = match request.plan.remove_if {
            Some(least) => contained(found, least),
            None => {
                let mut clusters = tables::graph(&request.plan, &found);
                rule.removed(&mut clusters, of, |id| ids::row(id) < old)
            }
        };
        let mut keeps = vec![true; rows.ids.rows - old];
        removed.keys().for_each(|id| keeps[ids::row(id) - old] = false);
        let ids = IdColumns::Rows(&rows.ids);
        let mut columns = vec![
            ("id", ids.column(removed.keys().map(Some))),
            ("kept", ids.column(removed.values().map(|(kept, _)| Some(kept)))),
            ("cluster", ids.column(removed.values().map(|(_, cluster)| Some(cluster)))),
        ];
        if has_old {
            let is_old = removed.values().map(|(kept, _)| Some(ids::row(kept) < old));
            columns.push(("old", Arc::new(is_old.collect::<BooleanArray>())));
        }
        let count = removed.len() as u64;
        let new_nulls = rows.nulls - old_nulls;
        let mut stats = Stats::from([
            ("documents", keeps.len() as u64 - new_nulls),
            ("nulls", new_nulls),
            ("kept", keeps.len() as u64 - count),
            ("removed", count),
        ]);
        if has_old {
            stats.insert("old", old as u64 - old_nulls);
        }
        (keeps, Table::new(removed.len(), columns, Stats::new()), stats)
    });
    Ok(Deduplicated { keeps, removed: Py::new(py, removed)?, stats })
}
