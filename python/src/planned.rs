//! What a pipeline does, and how it compares two texts.

use std::sync::Arc;

use arrow_array::{ArrayRef, Float64Array, Int64Array};
use dupflow::cli::compare::TextComparison;
use dupflow::config;
use dupflow::core::pair::Similarity;
use dupflow::core::text::measures::Measure;
use dupflow::forecast::{CurvePoint, PlanReport, QuoteRecall, RetentionReport};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;
use crate::numbers::{at_least_one, whole, whole_or_none};
use crate::tables::{Stats, Table};

/// What a pipeline does, without running it.
#[pyclass(frozen, module = "dupflow._dupflow")]
pub(crate) struct Plan {
    plan: config::Plan,
    report: PlanReport,
    documents: u64,
}

impl Plan {
    fn at(&self, similarity: f64) -> PyResult<CurvePoint> {
        if !(0.0..=1.0).contains(&similarity) {
            return Err(PyValueError::new_err(format!("similarity: found {similarity}, expected 0 to 1")));
        }
        Ok(self.report.at(&self.plan, similarity))
    }
}

#[pymethods]
impl Plan {
    /// The name of the pipeline.
    #[getter]
    fn name(&self) -> &str {
        &self.plan.name
    }

    /// The least similarity of a pair, inclusive.
    #[getter]
    fn threshold(&self) -> f64 {
        self.plan.threshold
    }

    /// The number of documents that the figures are for.
    #[getter]
    fn documents(&self) -> u64 {
        self.documents
    }

    /// 16 hexadecimal digits: equal ones make equal sketches and blocks.
    #[getter]
    fn fingerprint(&self) -> String {
        format!("{:016x}", self.plan.scheme.fingerprint())
    }

    /// Bytes of a sketch.
    #[getter]
    fn sketch_bytes(&self) -> usize {
        self.report.sketch_bytes()
    }

    /// The standard error of a similarity at the threshold; 0 if it is exact.
    #[getter]
    fn standard_error(&self) -> f64 {
        self.report.standard_error()
    }

    /// Bytes of memory of a document.
    #[getter]
    fn bytes_per_document(&self) -> f64 {
        self.report.bytes_per_document()
    }

    /// Bytes of memory of all documents.
    #[getter]
    fn total_bytes(&self) -> f64 {
        self.report.total_bytes()
    }

    /// The least probability that a pair of this similarity is reported.
    #[pyo3(signature = (similarity, /))]
    fn recall(&self, similarity: f64) -> PyResult<f64> {
        self.at(similarity).map(|point| point.reported)
    }

    /// The probability that a pair of this similarity is a candidate.
    #[pyo3(signature = (similarity, /))]
    fn compared(&self, similarity: f64) -> PyResult<f64> {
        self.at(similarity).map(|point| point.compared)
    }

    /// `similarity`, `compared`, `reported` at evenly spaced similarities.
    fn curve(&self) -> Table {
        let points = self.report.curve();
        let column = |value: fn(&CurvePoint) -> f64| -> ArrayRef {
            Arc::new(points.iter().map(|point| Some(value(point))).collect::<Float64Array>())
        };
        let columns = vec![
            ("similarity", column(|point| point.similarity)),
            ("compared", column(|point| point.compared)),
            ("reported", column(|point| point.reported)),
        ];
        Table::new(points.len(), columns, Stats::new())
    }

    /// Of containment: `words`, `edits`, `ratio`, `found_at_most`, a row for each kind of quote.
    fn quotes(&self) -> Table {
        let rows = self.report.quotes();
        let whole = |value: fn(&QuoteRecall) -> usize| -> ArrayRef {
            Arc::new(rows.iter().map(|row| i64::try_from(value(row)).ok()).collect::<Int64Array>())
        };
        let found: Float64Array = rows.iter().map(|row| Some(row.found_at_most)).collect();
        let columns = vec![
            ("words", whole(|row| row.words)),
            ("edits", whole(|row| row.edits as usize)),
            ("ratio", whole(|row| row.ratio)),
            ("found_at_most", Arc::new(found) as ArrayRef),
        ];
        Table::new(rows.len(), columns, Stats::new())
    }

    fn __repr__(&self) -> String {
        let Self { plan, documents, .. } = self;
        let (name, threshold) = (&plan.name, plan.threshold);
        let bytes = self.report.bytes_per_document();
        format!("Plan({name}, threshold {threshold}, {documents} documents of {bytes:.0} bytes)")
    }

    /// What `dupflow plan` prints.
    fn text(&self) -> String {
        self.report.to_string()
    }

    /// What `dupflow plan --format json` prints.
    fn json(&self) -> PyResult<String> {
        let json = serde_json::to_string_pretty(&self.report);
        json.map(|json| json + "\n").map_err(|error| PyValueError::new_err(error.to_string()))
    }
}

/// The plan of a pipeline for this many documents.
#[pyfunction]
#[pyo3(signature = (pipeline = "minhash", *, settings = Vec::new(), documents = None, workers = 1))]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python")]
pub(crate) fn plan(
    py: Python<'_>,
    pipeline: &str,
    settings: Vec<String>,
    #[pyo3(from_py_with = whole_or_none)] documents: Option<i64>,
    #[pyo3(from_py_with = whole)] workers: i64,
) -> PyResult<Plan> {
    let plan = errors::load(py, pipeline, &settings)?;
    let workers = errors::workers(py, workers)?;
    let documents = documents.map(|documents| at_least_one(documents, "documents")).transpose();
    let documents = documents.map_err(|what| errors::config(py, vec![what]))?.unwrap_or(plan.documents);
    let report =
        py.detach(|| PlanReport::new(&plan, documents, workers, RetentionReport::for_plan(&plan, None)));
    Ok(Plan { plan, report, documents })
}

/// Two texts, compared by every measure.
#[pyclass(frozen, module = "dupflow._dupflow")]
pub(crate) struct Comparison(TextComparison);

/// The pieces of a text, each with whether the other text has it too.
type Pieces = Vec<(bool, String)>;

#[pymethods]
impl Comparison {
    /// The Jaccard similarity of the sets of shingles, 0 to 1.
    #[getter]
    fn jaccard(&self) -> f64 {
        self.0.figures.jaccard
    }

    /// The share of the shingles of each text that the other has, 0 to 1.
    #[getter]
    fn containment(&self) -> (f64, f64) {
        self.0.figures.containment.into()
    }

    /// The Jaccard similarity of the weighted shingles, 0 to 1.
    #[getter]
    fn weighted_jaccard(&self) -> f64 {
        self.0.figures.weighted_jaccard
    }

    /// The cosine of the counts of shingles, 0 to 1.
    #[getter]
    fn cosine(&self) -> f64 {
        self.0.figures.cosine
    }

    /// What the pipeline would report; None if its filter rejects the pair or a text has no token.
    #[getter]
    fn similarity(&self) -> Option<f64> {
        self.0.figures.accepted.map(Similarity::get)
    }

    /// Of a pipeline of containment, the shares that it would report: of a's shingles in b, and of b's in a.
    #[getter]
    fn shares(&self) -> Option<(f64, f64)> {
        let is_contained = self.0.measure() == Measure::Containment;
        self.0.figures.accepted.filter(|_| is_contained).map(|accepted| accepted.shares().into())
    }

    /// Whether both share a block, so that a run would compare them.
    #[getter]
    fn is_candidate(&self) -> bool {
        self.0.figures.is_candidate
    }

    /// Whether a run would report them.
    #[getter]
    fn is_pair(&self) -> bool {
        self.0.figures.is_candidate && self.0.figures.accepted.is_some()
    }

    /// The pieces of both texts, each with whether the other text has it too.
    #[getter]
    fn passages(&self) -> (Pieces, Pieces) {
        self.0.passages().into()
    }

    fn __repr__(&self) -> String {
        let words = if self.is_pair() { "a pair" } else { "no pair" };
        format!("Comparison(jaccard {:.4}, {words})", self.jaccard())
    }

    /// What `dupflow compare --all` prints.
    fn text(&self) -> String {
        self.0.text()
    }

    /// The page that `dupflow compare --html` writes.
    fn html(&self) -> String {
        self.0.page()
    }
}

/// Compares two texts.
#[pyfunction]
#[pyo3(signature = (a, b, *, pipeline = "minhash", settings = Vec::new()))]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python")]
pub(crate) fn compare(
    py: Python<'_>,
    a: String,
    b: String,
    pipeline: &str,
    settings: Vec<String>,
) -> PyResult<Comparison> {
    let plan = errors::load(py, pipeline, &settings)?;
    Ok(Comparison(py.detach(|| TextComparison::new(plan, [a, b]))))
}
