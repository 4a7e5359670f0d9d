//! Which columns of a frame are read, and what their rows become.

use arrow_array::RecordBatch;
use dupflow::config::Plan;
use dupflow::connectors::formats::MAX_RECORD_BYTES;
use dupflow::core::cluster::KeepRule;
use dupflow::core::doc::fields::{FieldRule, FieldRules};
use dupflow::core::doc::{DocId, FIELD_SEPARATOR, without_separators};
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

use crate::cells::{self, Texts, cell, column};
use crate::errors;
use crate::session::Session;

/// What is done with a null text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Nulls {
    Error,
    Skip,
    Delete,
}

impl Nulls {
    /// The rule of this name, of those that are allowed.
    pub(crate) fn named(name: &str, allowed: &[(&str, Self)]) -> PyResult<Self> {
        let found = allowed.iter().find(|(other, _)| *other == name).map(|(_, rule)| *rule);
        found.ok_or_else(|| {
            let names: Vec<_> = allowed.iter().map(|(name, _)| format!("{name:?}")).collect();
            PyValueError::new_err(format!("nulls: expected {}, found {name:?}", names.join(" or ")))
        })
    }
}

/// The rules of frames that are read once.
pub(crate) const ONCE: &[(&str, Nulls)] = &[("error", Nulls::Error), ("skip", Nulls::Skip)];

/// Which columns of a frame are read.
#[derive(Clone)]
pub(crate) struct Columns {
    pub(crate) text: String,
    pub(crate) time: Option<String>,
    /// Further texts, in their order.
    further: Vec<String>,
    pub(crate) fields: FieldRules,
    /// The field that a rule for keeping reads: one or none.
    kept_by: FieldRules,
}

impl Columns {
    /// The columns that a pipeline reads.
    pub(crate) fn new(plan: &Plan, text: &str, time: Option<&str>) -> PyResult<Self> {
        let rules = plan.scheme.pairs.fields().map(FieldRule::parse).collect::<Result<Vec<_>, _>>();
        let rules = rules.map_err(|error| PyValueError::new_err(error.to_string()))?;
        let fields = FieldRules::new(rules).map_err(PyValueError::new_err)?;
        let (text, time) = (text.to_owned(), time.map(str::to_owned));
        let (further, kept_by) = (plan.scheme.text.field_names(), FieldRules::default());
        Ok(Self { text, time, further, fields, kept_by })
    }

    /// The same, and the field that a rule for keeping reads.
    pub(crate) fn with_keep(self, keep: &KeepRule) -> PyResult<Self> {
        let wrong = |what: String| PyValueError::new_err(format!("keep: {what}"));
        let rules =
            keep.field().map(FieldRule::parse).transpose().map_err(|error| wrong(error.to_string()))?;
        let kept_by = FieldRules::new(rules.into_iter().collect()).map_err(wrong)?;
        Ok(Self { kept_by, ..self })
    }

    /// The columns of a batch.
    pub(crate) fn of_batch<'b>(
        &'b self,
        py: Python<'_>,
        batch: &'b RecordBatch,
    ) -> PyResult<BatchColumns<'b>> {
        let further = self.further.iter().map(|name| Texts::find(py, batch, name));
        let fields = self.fields.columns().iter().map(|name| column(py, batch, name));
        let kept_by = self.kept_by.columns().iter().map(|name| column(py, batch, name));
        Ok(BatchColumns {
            rules: self,
            texts: Texts::find(py, batch, &self.text)?,
            time: self.time.as_deref().map(|name| column(py, batch, name)).transpose()?,
            further: further.collect::<PyResult<_>>()?,
            fields: fields.collect::<PyResult<_>>()?,
            kept_by: kept_by.collect::<PyResult<_>>()?,
        })
    }
}

/// The columns of a frame that a pipeline reads besides those that a call names: those of `text.fields` and
/// of fields in `pairs.where`.
#[pyfunction]
#[pyo3(signature = (pipeline, settings, /))]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python")]
pub(crate) fn field_columns(py: Python<'_>, pipeline: &str, settings: Vec<String>) -> PyResult<Vec<String>> {
    let plan = errors::load(py, pipeline, &settings)?;
    let Columns { mut further, fields, .. } = Columns::new(&plan, "", None)?;
    further.extend(fields.columns().iter().map(|name| name.to_string()));
    further.sort_unstable();
    further.dedup();
    Ok(further)
}

/// The columns of a frame that a rule for keeping reads: that of `keep` or, if it is `None`, of the pipeline.
#[pyfunction]
#[pyo3(signature = (pipeline, settings, keep, /))]
#[expect(clippy::needless_pass_by_value, reason = "arguments of Python")]
pub(crate) fn keep_columns(
    py: Python<'_>,
    pipeline: &str,
    settings: Vec<String>,
    keep: Option<&str>,
) -> PyResult<Vec<String>> {
    let plan = errors::load(py, pipeline, &settings)?;
    let rule = keep.map_or(Ok(plan.keep.clone()), |name| keep_rule(py, name))?;
    let columns = Columns::new(&plan, "", None)?.with_keep(&rule)?;
    Ok(columns.kept_by.columns().iter().map(|name| name.to_string()).collect())
}

/// The rule for keeping that is written like this.
pub(crate) fn keep_rule(py: Python<'_>, name: &str) -> PyResult<KeepRule> {
    name.parse().map_err(|expected| errors::config(py, vec![format!("keep: found {name:?}, {expected}")]))
}

/// The columns of one batch.
pub(crate) struct BatchColumns<'b> {
    rules: &'b Columns,
    pub(crate) texts: Texts,
    time: Option<&'b arrow_array::ArrayRef>,
    further: Vec<Texts>,
    fields: Vec<&'b arrow_array::ArrayRef>,
    kept_by: Vec<&'b arrow_array::ArrayRef>,
}

impl BatchColumns<'_> {
    /// Checks all rows before any is used. `before` is the number of rows in earlier batches.
    pub(crate) fn check(&self, rows: usize, nulls: Nulls, before: usize) -> PyResult<()> {
        for row in 0..rows {
            match self.texts.get(row) {
                None if nulls == Nulls::Error => {
                    let (name, row) = (&self.rules.text, before + row);
                    return Err(PyValueError::new_err(format!(
                        "column {name:?}: the text of row {row} is null"
                    )));
                }
                Some(text) if text.len() > MAX_RECORD_BYTES => {
                    let (name, row) = (&self.rules.text, before + row);
                    let what = "is longer than 64 MiB, which is the most that a document may have";
                    return Err(PyValueError::new_err(format!(
                        "column {name:?}: the text of row {row} {what}"
                    )));
                }
                _ => {}
            }
        }
        if let Some((array, name)) = self.time.zip(self.rules.time.as_deref()) {
            for row in 0..rows {
                cells::seconds(array.as_ref(), row).map_err(|found| {
                    PyTypeError::new_err(format!(
                        "column {name:?}: expected times, found values of type {found}"
                    ))
                })?;
            }
        }
        Ok(())
    }

    pub(crate) fn time(&self, row: usize) -> Option<f64> {
        self.time.and_then(|array| cells::seconds(array.as_ref(), row).ok().flatten())
    }

    /// The rank of a row by the field of a rule for keeping.
    pub(crate) fn rank(&self, keep: &KeepRule, id: &DocId, row: usize) -> u64 {
        let cells: Vec<_> = self.kept_by.iter().map(|array| cell(array.as_ref(), row)).collect();
        let values = self.rules.kept_by.read(id, self.time(row), |place| cells[place].raw());
        keep.rank(values.row.get(0))
    }

    /// Adds a row with a text to what a session is fed. Returns a batch if that completes one.
    pub(crate) fn feed(
        &self,
        session: &mut Session,
        id: DocId,
        row: usize,
        text: &str,
    ) -> Option<dupflow::connectors::intake::Batch> {
        let ts = self.time(row);
        let value = |place: usize| -> cells::Cell<'_> { cell(self.fields[place].as_ref(), row) };
        let values: Vec<_> = (0..self.fields.len()).map(value).collect();
        let fields = self.rules.fields.read(&id, ts, |place| values[place].raw());
        if self.further.is_empty() {
            return session.feed.upsert(id, ts, fields, [text]);
        }
        let separator = FIELD_SEPARATOR.to_string();
        let mut whole = without_separators(text).into_owned();
        for texts in &self.further {
            whole.push_str(&separator);
            whole.push_str(&without_separators(texts.get(row).unwrap_or_default()));
        }
        session.feed.upsert(id, ts, fields, [whole.as_str()])
    }
}
