//! Frames: batches of rows from any object that hands out Arrow data.

use std::ffi::CStr;

use arrow_array::ffi::{FFI_ArrowArray, FFI_ArrowSchema, from_ffi};
use arrow_array::ffi_stream::{FFI_ArrowArrayStream, RecordBatchStreamReader};
use arrow_array::{RecordBatch, StructArray};
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
    stream: Option<RecordBatchStreamReader>,
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
            let opened = py.detach(|| RecordBatchStreamReader::try_new(stream));
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
                    Some(batch) => return batch.map(Some).map_err(|error| not_read(&error)),
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
    let (schema, array) = (take::<FFI_ArrowSchema>(schema, SCHEMA)?, take::<FFI_ArrowArray>(array, ARRAY)?);
    // SAFETY: The protocol promises that the two belong together, as their names say.
    #[expect(unsafe_code, reason = "the C data interface")]
    let data = unsafe { from_ffi(array, &schema) }.map_err(|error| not_read(&error))?;
    if !matches!(data.data_type(), arrow_schema::DataType::Struct(_)) {
        return Err(PyTypeError::new_err(format!("expected a batch of columns, found {}", data.data_type())));
    }
    let rows = StructArray::from(data);
    if arrow_array::Array::null_count(&rows) > 0 {
        return Err(PyValueError::new_err("a row of the frame is null"));
    }
    Ok(rows.into())
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
