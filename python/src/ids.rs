//! Ids of documents: texts and numbers of the caller, in the ids of the library.
//!
//! A number, and so a row, is written as U+0001 and 16 hexadecimal digits whose order by bytes is that of the
//! numbers. It needs no allocation. No text begins with U+0001.

use arrow_array::{Array as _, RecordBatch};
use dupflow::core::doc::DocId;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBool, PyString};

use crate::cells::{Cell, Texts, cell, column};
use crate::numbers::is_whole;

/// The first character of a number.
const MARK: u8 = 1;
const SIGN: u64 = 1 << 63;

/// The kind of all ids of a corpus.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum IdKind {
    Text,
    Number,
}

impl IdKind {
    /// The kind of an id.
    pub(crate) fn new(id: &[u8]) -> Self {
        if id.first() == Some(&MARK) { Self::Number } else { Self::Text }
    }

    /// The name of its type.
    fn name(self) -> &'static str {
        match self {
            Self::Text => "str",
            Self::Number => "int",
        }
    }
}

/// The id of a number.
pub(crate) fn of_number(number: i64) -> DocId {
    let mut text = [MARK; 17];
    let digits = format!("{:016x}", number.cast_unsigned() ^ SIGN);
    text[1..].copy_from_slice(digits.as_bytes());
    let text = str::from_utf8(&text).expect("it has ASCII characters alone");
    DocId::new(text).expect("it is short and not empty")
}

/// The number of an id that has one.
pub(crate) fn number(id: &DocId) -> Option<i64> {
    parse(id.as_str())
}

fn parse(id: &str) -> Option<i64> {
    let digits = id.strip_prefix(char::from(MARK))?;
    u64::from_str_radix(digits, 16).ok().map(|bits| (bits ^ SIGN).cast_signed())
}

/// The id of a row, counted from 0.
pub(crate) fn of_row(row: u64) -> DocId {
    of_number(row.cast_signed())
}

/// The row of an id that has one, in the frame or in a reference.
///
/// # Panics
/// If it has none.
pub(crate) fn row(id: &DocId) -> usize {
    let row = parse(id.without_side()).and_then(|row| usize::try_from(row).ok());
    row.expect("all documents of this run are rows")
}

/// The id of a text.
///
/// # Errors
/// What is wrong with the text.
pub(crate) fn of_text(text: &str) -> Result<DocId, String> {
    let id = DocId::new(text).filter(|id| IdKind::new(id.as_bytes()) == IdKind::Text);
    id.ok_or_else(|| {
        let most = DocId::MAX_BYTES;
        format!("an id has 1 to {most} bytes and does not begin with U+0001, found {} bytes", text.len())
    })
}

/// The id of an object of Python.
///
/// # Errors
/// `TypeError`, `ValueError`.
pub(crate) fn of_object(object: &Bound<'_, PyAny>) -> PyResult<DocId> {
    if let Ok(text) = object.cast::<PyString>() {
        return of_text(text.to_str()?).map_err(PyValueError::new_err);
    }
    if is_whole(object) && !object.is_instance_of::<PyBool>() {
        let of_64_bits = |_| PyValueError::new_err(format!("an id has 64 bits, found {object}"));
        return object.extract().map(of_number).map_err(of_64_bits);
    }
    Err(PyTypeError::new_err(format!("an id is a str or an int, found {}", object.get_type().name()?)))
}

/// The object of Python that an id stands for.
pub(crate) fn to_object<'py>(py: Python<'py>, id: &DocId) -> PyResult<Bound<'py, PyAny>> {
    match number(id) {
        Some(number) => Ok(number.into_pyobject(py)?.into_any()),
        None => Ok(id.as_str().into_pyobject(py)?.into_any()),
    }
}

/// Checks an id against the kind of its corpus, which the first id decides.
///
/// # Errors
/// `TypeError` for the other kind.
pub(crate) fn check(kind: &mut Option<IdKind>, id: &DocId) -> PyResult<()> {
    let found = IdKind::new(id.as_bytes());
    match *kind.get_or_insert(found) {
        kind if kind == found => Ok(()),
        kind => {
            let (kind, found) = (kind.name(), found.name());
            Err(PyTypeError::new_err(format!("the ids of this corpus are {kind}, found {found}")))
        }
    }
}

/// The ids of a column of a batch, all of one kind. `before` is the number of rows in earlier batches.
///
/// # Errors
/// `TypeError`, `ValueError`.
pub(crate) fn checked_ids(
    py: Python<'_>,
    batch: &RecordBatch,
    name: &str,
    before: usize,
    mut kind: Option<IdKind>,
) -> PyResult<Vec<DocId>> {
    let array = column(py, batch, name)?;
    let wrong = |row: usize, what: String| format!("column {name:?}: row {}: {what}", before + row);
    let texts = Texts::of_array(array.as_ref());
    let mut found = Vec::with_capacity(batch.num_rows());
    for row in 0..batch.num_rows() {
        let value = match &texts {
            Some(texts) => texts.get(row).map_or(Cell::Null, Cell::Text),
            None => cell(array.as_ref(), row),
        };
        let id = match value {
            Cell::Null => Err("the id is null".to_owned()),
            Cell::Text(text) => of_text(text),
            Cell::Whole(number) => {
                let of_64_bits = |_| format!("an id has 64 bits, found {number}");
                i64::try_from(number).map(of_number).map_err(of_64_bits)
            }
            _ => {
                let found = array.data_type();
                let what = format!("column {name:?}: expected ids, found values of type {found}");
                return Err(PyTypeError::new_err(what));
            }
        };
        let id = id.map_err(|what| PyValueError::new_err(wrong(row, what)))?;
        check(&mut kind, &id)?;
        found.push(id);
    }
    Ok(found)
}
