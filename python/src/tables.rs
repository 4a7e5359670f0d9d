//! Tables for Python: columns of equal length.

use std::collections::BTreeMap;
use std::sync::Arc;

use arrow_array::ffi::FFI_ArrowSchema;
use arrow_array::ffi_stream::FFI_ArrowArrayStream;
use arrow_array::{
    Array, ArrayRef, BooleanArray, Float64Array, Int64Array, LargeStringArray, RecordBatch,
    RecordBatchIterator, RecordBatchOptions, StringArray,
};
use arrow_data::ArrayData;
use arrow_data::transform::MutableArrayData;
use arrow_schema::{Field, Schema};
use dupflow::config::Plan;
use dupflow::core::cluster::{ClusterReport, Clusters};
use dupflow::core::doc::DocId;
use dupflow::core::pair::{Cause, Delta, DocPair};
use dupflow::core::sketch::Scheme;
use dupflow::core::text::measures::Measure;
use dupflow::core::time::Epoch;
use pyo3::exceptions::{PyKeyError, PyOverflowError, PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyCapsule, PyDict, PyFloat, PyList, PyString};

use crate::cells::{SMALL, cell};
use crate::frames::{SCHEMA, STREAM};
use crate::ids::{self, IdKind};
use crate::numbers::is_whole;

/// Counts of the call that made a table, by name.
pub(crate) type Stats = BTreeMap<&'static str, u64>;

/// Columns of equal length; immutable.
#[pyclass(frozen, module = "dupflow._dupflow")]
pub(crate) struct Table {
    batch: RecordBatch,
    pub(crate) stats: Stats,
}

impl Table {
    /// A table of columns with their names; all have this number of rows.
    ///
    /// # Panics
    /// If they do not.
    pub(crate) fn new(rows: usize, columns: Vec<(&str, ArrayRef)>, stats: Stats) -> Self {
        let field = |(name, values): &(&str, ArrayRef)| {
            // The types of a column are the same in every table, whether a value is missing or not.
            Field::new(*name, values.data_type().clone(), true)
        };
        let schema = Schema::new(columns.iter().map(field).collect::<Vec<_>>());
        let values = columns.into_iter().map(|(_, values)| values).collect();
        let options = RecordBatchOptions::new().with_row_count(Some(rows));
        let batch = RecordBatch::try_new_with_options(Arc::new(schema), values, &options);
        Self { batch: batch.expect("the columns have this length"), stats }
    }
}

#[pymethods]
impl Table {
    /// A table of lists of equal length: strings become large_string, integers int64, floats float64, bools
    /// bool.
    #[staticmethod]
    #[pyo3(signature = (columns, /))]
    fn from_columns(columns: &Bound<'_, PyDict>) -> PyResult<Self> {
        let mut found = Vec::new();
        let mut rows = None;
        for (name, values) in columns.iter() {
            let name: String = name.extract()?;
            let values = values
                .cast::<PyList>()
                .map_err(|_| PyTypeError::new_err(format!("column {name:?}: expected a list")))?;
            let length = *rows.get_or_insert(values.len());
            if length != values.len() {
                let what = format!("column {name:?} has {} values, the others {length}", values.len());
                return Err(PyValueError::new_err(what));
            }
            let array = from_list(values).map_err(|error| prefixed(values.py(), &name, &error))?;
            found.push((name, array));
        }
        let columns = found.iter().map(|(name, array)| (name.as_str(), Arc::clone(array))).collect();
        Ok(Self::new(rows.unwrap_or(0), columns, Stats::new()))
    }

    /// The number of rows.
    #[getter]
    fn num_rows(&self) -> usize {
        self.batch.num_rows()
    }

    /// The names of the columns, in order.
    #[getter]
    fn column_names(&self) -> Vec<String> {
        self.batch.schema_ref().fields().iter().map(|field| field.name().clone()).collect()
    }

    /// Counts of the call that made the table.
    #[getter]
    fn stats(&self) -> Stats {
        self.stats.clone()
    }

    /// The values of a column as str, int, float, bool or None.
    #[pyo3(signature = (name, /))]
    fn column<'py>(&self, py: Python<'py>, name: &str) -> PyResult<Bound<'py, PyList>> {
        let Some(array) = self.batch.column_by_name(name) else {
            return Err(PyKeyError::new_err(name.to_owned()));
        };
        let list = PyList::empty(py);
        for row in 0..array.len() {
            let Some(value) = cell(array.as_ref(), row).object(py)? else {
                let of_type = array.data_type();
                return Err(PyTypeError::new_err(format!(
                    "column {name:?} has values of type {of_type}, which only a library of data frames reads"
                )));
            };
            list.append(value)?;
        }
        Ok(list)
    }

    fn __len__(&self) -> usize {
        self.batch.num_rows()
    }

    fn __repr__(&self) -> String {
        format!("Table({} rows: {})", self.batch.num_rows(), self.column_names().join(", "))
    }

    #[pyo3(signature = (requested_schema = None))]
    fn __arrow_c_stream__<'py>(
        &self,
        py: Python<'py>,
        requested_schema: Option<Bound<'py, PyAny>>,
    ) -> PyResult<Bound<'py, PyCapsule>> {
        // A producer may ignore the request.
        drop(requested_schema);
        let batches = RecordBatchIterator::new([Ok(self.batch.clone())], self.batch.schema());
        PyCapsule::new_with_value(py, FFI_ArrowArrayStream::new(Box::new(batches)), STREAM)
    }

    fn __arrow_c_schema__<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyCapsule>> {
        let schema = FFI_ArrowSchema::try_from(self.batch.schema_ref().as_ref());
        let schema = schema.map_err(|error| PyValueError::new_err(error.to_string()))?;
        PyCapsule::new_with_value(py, schema, SCHEMA)
    }
}

/// An error of a column's values, of the same class: a number beyond 64 bits and a text that is no UTF-8 are
/// values, the rest are types.
fn prefixed(py: Python<'_>, name: &str, error: &PyErr) -> PyErr {
    let what = format!("column {name:?}: {}", error.value(py));
    let is_value = error.is_instance_of::<PyValueError>(py) || error.is_instance_of::<PyOverflowError>(py);
    if is_value { PyValueError::new_err(what) } else { PyTypeError::new_err(what) }
}

/// The values of a list, which are all of one type or None.
fn from_list(values: &Bound<'_, PyList>) -> PyResult<ArrayRef> {
    let first = values.iter().find(|value| !value.is_none());
    let Some(first) = first else {
        let nulls: LargeStringArray = values.iter().map(|_| None::<&str>).collect();
        return Ok(Arc::new(nulls));
    };
    if first.is_instance_of::<PyString>() {
        let mut texts = arrow_array::builder::LargeStringBuilder::with_capacity(values.len(), 0);
        for value in values.iter() {
            let text = (!value.is_none()).then(|| value.cast_into::<PyString>()).transpose()?;
            texts.append_option(text.as_ref().map(|text| text.to_str()).transpose()?);
        }
        return Ok(Arc::new(texts.finish()));
    }
    let is_flag = |value: &Bound<'_, PyAny>| value.is_instance_of::<PyBool>();
    let flags = values.iter().filter(is_flag).count();
    if flags > 0 && values.iter().all(|value| value.is_none() || is_flag(&value)) {
        return Ok(Arc::new(BooleanArray::from(values.extract::<Vec<Option<bool>>>()?)));
    }
    if flags > 0 {
        return Err(PyTypeError::new_err("found values of bool among others"));
    }
    if values.iter().all(|value| value.is_none() || is_whole(&value)) {
        return Ok(Arc::new(Int64Array::from(values.extract::<Vec<Option<i64>>>()?)));
    }
    let is_number = |value: &Bound<'_, PyAny>| value.is_instance_of::<PyFloat>() || is_whole(value);
    if let Some(other) = values.iter().find(|value| !value.is_none() && !is_number(value)) {
        let found = other.get_type().name()?;
        return Err(PyTypeError::new_err(format!("a list may have str, int, float and bool, found {found}")));
    }
    Ok(Arc::new(Float64Array::from(values.extract::<Vec<Option<f64>>>()?)))
}

/// Whether a batch has no id. Its type says nothing then: libraries guess one.
fn is_null(ids: &ArrayRef) -> bool {
    ids.logical_null_count() == ids.len()
}

/// The ids of the rows of a frame: those of its column, or the numbers of the rows.
pub(crate) struct RowIds {
    /// One part a batch, each with the number of its first row; `None` without a column.
    parts: Option<Vec<(usize, ArrayRef)>>,
    pub(crate) rows: usize,
}

impl RowIds {
    pub(crate) fn new(has_column: bool) -> Self {
        Self { parts: has_column.then(Vec::new), rows: 0 }
    }

    /// Adds the rows of a batch. `ids` is `None` without a column.
    ///
    /// # Errors
    /// If its type is not that of the batches before.
    pub(crate) fn add(&mut self, rows: usize, ids: Option<ArrayRef>) -> Result<(), String> {
        if let Some((parts, ids)) = self.parts.as_mut().zip(ids) {
            if let Some((_, first)) = parts.iter().find(|(_, first)| !is_null(first))
                && !is_null(&ids)
                && first.data_type() != ids.data_type()
            {
                return Err(format!("found {} after {}", ids.data_type(), first.data_type()));
            }
            if !ids.is_empty() || parts.is_empty() {
                parts.push((self.rows, ids));
            }
        }
        self.rows += rows;
        Ok(())
    }

    /// The ids of these rows; `None` is null.
    pub(crate) fn gather(&self, rows: impl ExactSizeIterator<Item = Option<usize>>) -> ArrayRef {
        let Some(parts) = self.parts.as_ref().filter(|parts| !parts.is_empty()) else {
            let number = |row| i64::try_from(row).expect("a row is below 2^63");
            return Arc::new(rows.map(|row| row.map(number)).collect::<Int64Array>());
        };
        let (_, typed) = parts.iter().find(|(_, ids)| !is_null(ids)).unwrap_or(&parts[0]);
        let of_type = |ids: &ArrayRef| match ids.data_type() == typed.data_type() {
            true => ids.to_data(),
            false => ArrayData::new_null(typed.data_type(), ids.len()),
        };
        let data: Vec<_> = parts.iter().map(|(_, ids)| of_type(ids)).collect();
        let mut gathered = MutableArrayData::new(data.iter().collect(), true, rows.len());
        for row in rows {
            match row {
                None => gathered.try_extend_nulls(1).expect(SMALL),
                Some(row) => {
                    let part = parts.partition_point(|(first, _)| *first <= row) - 1;
                    let place = row - parts[part].0;
                    gathered.try_extend(part, place, place + 1).expect(SMALL);
                }
            }
        }
        arrow_array::make_array(gathered.freeze())
    }
}

/// What ids of the library become in a table.
pub(crate) enum IdColumns<'i> {
    /// Ids of rows: their ids in a frame.
    Rows(&'i RowIds),
    /// Ids of a corpus.
    Own(IdKind),
}

impl IdColumns<'_> {
    pub(crate) fn column<'d>(&self, found: impl ExactSizeIterator<Item = Option<&'d DocId>>) -> ArrayRef {
        match self {
            Self::Rows(rows) => rows.gather(found.map(|id| id.map(ids::row))),
            Self::Own(IdKind::Text) => {
                Arc::new(found.map(|id| id.map(DocId::as_str)).collect::<LargeStringArray>())
            }
            Self::Own(IdKind::Number) => {
                Arc::new(found.map(|id| id.and_then(ids::number)).collect::<Int64Array>())
            }
        }
    }
}

fn similarities<'p>(pairs: impl Iterator<Item = &'p DocPair>) -> ArrayRef {
    Arc::new(pairs.map(|pair| pair.similarity.get()).collect::<Float64Array>())
}

/// The columns of both shares, under a scheme of containment.
fn shares<'p>(
    scheme: &Scheme,
    pairs: &(impl Iterator<Item = &'p DocPair> + Clone),
) -> Vec<(&'static str, ArrayRef)> {
    if scheme.measure() != Measure::Containment {
        return Vec::new();
    }
    let column = |place: usize| -> ArrayRef {
        Arc::new(pairs.clone().map(|pair| Some(pair.similarity.shares()[place])).collect::<Float64Array>())
    };
    vec![("in_a", column(1)), ("in_b", column(0))]
}

/// A table of pairs under a scheme, with or without their evidence.
pub(crate) fn pairs(
    found: &[&DocPair],
    ids: &IdColumns<'_>,
    scheme: &Scheme,
    has_evidence: bool,
    stats: Stats,
) -> Table {
    let mut columns = vec![
        ("a", ids.column(found.iter().map(|pair| Some(pair.pair.lo())))),
        ("b", ids.column(found.iter().map(|pair| Some(pair.pair.hi())))),
        ("similarity", similarities(found.iter().copied())),
    ];
    columns.extend(shares(scheme, &found.iter().copied()));
    if has_evidence {
        let whole = |number: fn(&DocPair) -> i64| -> ArrayRef {
            Arc::new(found.iter().map(|pair| Some(number(pair))).collect::<Int64Array>())
        };
        let errors = found.iter().map(|pair| Some(scheme.standard_error(pair.similarity, pair.evidence)));
        columns.extend([
            ("blocks", whole(|pair| pair.evidence.blocks.into())),
            ("look", whole(|pair| pair.evidence.look.into())),
            ("components", whole(|pair| pair.evidence.components.into())),
            ("standard_error", Arc::new(errors.collect::<Float64Array>())),
        ]);
    }
    Table::new(found.len(), columns, stats)
}

/// A table of the changes up to an epoch, under a scheme.
pub(crate) fn deltas(epoch: Epoch, deltas: &[Delta], ids: &IdColumns<'_>, scheme: &Scheme) -> Table {
    let epoch = i64::try_from(epoch).unwrap_or(i64::MAX);
    let diffs = deltas.iter().map(|delta| if delta.diff > 0 { 1 } else { -1 });
    let causes = deltas.iter().map(|delta| Some(Cause::name(delta.cause)));
    let mut columns: Vec<(&str, ArrayRef)> = vec![
        ("epoch", Arc::new(Int64Array::from(vec![epoch; deltas.len()]))),
        ("diff", Arc::new(diffs.collect::<Int64Array>())),
        ("a", ids.column(deltas.iter().map(|delta| Some(delta.pair.pair.lo())))),
        ("b", ids.column(deltas.iter().map(|delta| Some(delta.pair.pair.hi())))),
        ("similarity", similarities(deltas.iter().map(|delta| &delta.pair))),
    ];
    columns.extend(shares(scheme, &deltas.iter().map(|delta| &delta.pair)));
    columns.push(("cause", Arc::new(causes.collect::<StringArray>())));
    Table::new(deltas.len(), columns, Stats::new())
}

/// The clusters of pairs that are all there.
pub(crate) fn graph(plan: &Plan, pairs: &[Delta]) -> Clusters {
    let mut clusters = Clusters::new(plan.clusters, plan.cluster_limit);
    clusters.follow(pairs);
    clusters
}

/// A table of the clusters of pairs, which are sorted and all there.
pub(crate) fn clusters(plan: &Plan, pairs: &[Delta], ids: &IdColumns<'_>, mut stats: Stats) -> Table {
    let mut clusters = Clusters::new(plan.clusters, plan.cluster_limit);
    let mut rows: Vec<(Option<DocId>, DocId, Option<i64>)> = Vec::new();
    for (report, _) in clusters.advance(pairs) {
        rows.push(match report {
            ClusterReport::Member { cluster, document } => (Some(document), cluster, None),
            ClusterReport::Giant { cluster, size } => {
                (None, cluster, Some(i64::try_from(size).unwrap_or(i64::MAX)))
            }
        });
    }
    rows.sort_by(|a, b| (a.2.is_some(), &a.1, &a.0).cmp(&(b.2.is_some(), &b.1, &b.0)));
    let giants = rows.iter().filter(|row| row.2.is_some()).count();
    let members = &rows[..rows.len() - giants];
    let small = members.chunk_by(|a, b| a.1 == b.1).count();
    stats.extend([("clusters", (small + giants) as u64), ("giants", giants as u64)]);
    let columns: Vec<(&str, ArrayRef)> = vec![
        ("document", ids.column(rows.iter().map(|row| row.0.as_ref()))),
        ("cluster", ids.column(rows.iter().map(|row| Some(&row.1)))),
        ("size", Arc::new(rows.iter().map(|row| row.2).collect::<Int64Array>())),
    ];
    Table::new(rows.len(), columns, stats)
}
