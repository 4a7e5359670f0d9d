//! Frames: batches of rows from any object that hands out Arrow data.

use std::ffi::CStr;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{ArrayStreamReader, FFI_ArrowArrayStream};
use arrow_array::{Array as _, ArrayRef, RecordBatch, StructArray, make_array};
use arrow_schema::ArrowError;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::{PyCapsule, PyDict, PyIterator, PyString};

/// The names of the three kinds of capsules.
pub(crate) const STREAM: &CStr = c"arrow_array_stream";
pub(crate) const SCHEMA: &CStr = c"arrow_schema";
const ARRAY: &CStr = c"arrow_array";

/// Batches of rows, read once.
pub(crate) struct Frame<'py> {
    /// What is left to be opened.
    parts: Option<Bound<'py, PyIterator>>,
    stream: Option<ArrayStreamReader>,
    batch: Option<RecordBatch>,
}

impl<'py> Frame<'py> {
    /// Opens a table, a batch, or an iterable of them.
    ///
    /// # Errors
    /// `TypeError` for anything else.
    pub(crate) fn open(object: &Bound<'py, PyAny>) -> PyResult<Self> {
        let mut frame = Self { parts: None, stream: None, batch: None };
        if frame.opens(object)? {
            return Ok(frame);
        }
        let is_no_frame = object.is_instance_of::<PyString>() || object.is_instance_of::<PyDict>();
        match object.try_iter() {
            Ok(parts) if !is_no_frame => Ok(Self { parts: Some(parts), ..frame }),
            _ => Err(no_frame(object)),
        }
    }

    /// Opens an object if it hands out Arrow data.
    fn opens(&mut self, object: &Bound<'py, PyAny>) -> PyResult<bool> {
        let py = object.py();
        if let Some(export) = object.getattr_opt(intern!(py, "__arrow_c_stream__"))? {
            let capsule = export.call0()?;
            let stream = take::<FFI_ArrowArrayStream>(&capsule, STREAM)?;
            let opened = py.detach(|| ArrayStreamReader::try_new(stream));
            self.stream = Some(opened.map_err(|error| not_read(&error))?);
            return Ok(true);
        }
        if let Some(export) = object.getattr_opt(intern!(py, "__arrow_c_array__"))? {
            let (schema, array): (Bound<'_, PyAny>, Bound<'_, PyAny>) = export.call0()?.extract()?;
            self.batch = Some(imported(&schema, &array)?);
            return Ok(true);
        }
        Ok(false)
    }

    /// The next batch; `None` at the end.
    ///
    /// # Errors
    /// What an iterator raises; `ValueError` for data that cannot be read.
    pub(crate) fn next(&mut self, py: Python<'py>) -> PyResult<Option<RecordBatch>> {
        loop {
            if let Some(batch) = self.batch.take() {
                return Ok(Some(batch));
            }
            if let Some(stream) = &mut self.stream {
                // A stream that runs Python takes the GIL by itself.
                match py.detach(|| stream.next()) {
                    Some(rows) => return batch(&rows.map_err(|error| not_read(&error))?).map(Some),
                    None => self.stream = None,
                }
            }
            let Some(part) = self.parts.as_mut().and_then(Iterator::next).transpose()? else {
                return Ok(None);
            };
            if !self.opens(&part)? {
                return Err(no_frame(&part));
            }
        }
    }
}

fn no_frame(object: &Bound<'_, PyAny>) -> PyErr {
    let found =
        object.get_type().name().map_or_else(|_| "another object".to_owned(), |name| name.to_string());
    PyTypeError::new_err(format!(
        "expected a table with __arrow_c_stream__, a batch with __arrow_c_array__, or an iterable of them, \
        found {found}"
    ))
}

fn not_read(error: &ArrowError) -> PyErr {
    PyValueError::new_err(format!("the frame cannot be read: {error}"))
}

/// A batch from a pair of capsules.
fn imported(schema: &Bound<'_, PyAny>, array: &Bound<'_, PyAny>) -> PyResult<RecordBatch> {
    let array = take::<FFI_ArrowArray>(array, ARRAY)?;
    if array.is_released() {
        return Err(PyValueError::new_err("the batch was read before, and can be read only once"));
    }
    let schema = take::<FFI_ArrowSchema>(schema, SCHEMA)?;
    // SAFETY: The protocol promises that the two belong together, as their names say.
    #[expect(unsafe_code, reason = "the C data interface")]
    let data = unsafe { from_ffi(array, &schema) }.map_err(|error| not_read(&error))?;
    batch(&make_array(data))
}

/// The batch of an array of rows.
fn batch(rows: &ArrayRef) -> PyResult<RecordBatch> {
    let Some(columns) = rows.as_any().downcast_ref::<StructArray>() else {
        let found = rows.data_type();
        return Err(PyTypeError::new_err(format!("expected a batch of columns, found {found}")));
    };
    match columns.null_count() {
        0 => Ok(columns.into()),
        nulls => Err(PyValueError::new_err(format!("{nulls} rows of the frame are null"))),
    }
}

/// A structure of the C data interface, which can be empty: then it owns nothing.
trait Exported {
    const EMPTY: fn() -> Self;
}

impl Exported for FFI_ArrowArrayStream {
    const EMPTY: fn() -> Self = Self::empty;
}

impl Exported for FFI_ArrowSchema {
    const EMPTY: fn() -> Self = Self::empty;
}

impl Exported for FFI_ArrowArray {
    const EMPTY: fn() -> Self = Self::empty;
}

/// Moves a structure out of its capsule, and leaves an empty one.
fn take<T: Exported>(capsule: &Bound<'_, PyAny>, name: &'static CStr) -> PyResult<T> {
    let capsule = capsule.cast::<PyCapsule>().map_err(|_| PyTypeError::new_err("expected a PyCapsule"))?;
    let pointer = capsule.pointer_checked(Some(name))?.cast::<T>();
    // SAFETY: A capsule of this name holds a structure of this type, which the capsule keeps alive, and which
    // only this thread uses, since it has the GIL. An empty structure may be dropped by the capsule.
    #[expect(unsafe_code, reason = "the C data interface")]
    Ok(unsafe { pointer.replace((T::EMPTY)()) })
}
