//! Whole numbers of a caller: any int of Python, so that one that is too small or too large is reported in
//! the words of its parameter.

use pyo3::exceptions::PyOverflowError;
use pyo3::intern;
use pyo3::prelude::*;
use pyo3::types::PyInt;

/// Whether an object is an int of Python or of another library.
pub(crate) fn is_whole(value: &Bound<'_, PyAny>) -> bool {
    value.is_instance_of::<PyInt>()
        || value.hasattr(intern!(value.py(), "__index__")).unwrap_or(false)
            && !value.hasattr(intern!(value.py(), "__len__")).unwrap_or(true)
}

/// An int of Python; one of more than 64 bits is the nearest of 64 bits.
pub(crate) fn whole(object: &Bound<'_, PyAny>) -> PyResult<i64> {
    match object.extract::<i64>() {
        Err(error) if error.is_instance_of::<PyOverflowError>(object.py()) => {
            Ok(if object.lt(0)? { i64::MIN } else { i64::MAX })
        }
        extracted => extracted,
    }
}

/// As [`whole`], or None.
pub(crate) fn whole_or_none(object: &Bound<'_, PyAny>) -> PyResult<Option<i64>> {
    if object.is_none() { Ok(None) } else { whole(object).map(Some) }
}

/// A number of 1 or more.
///
/// # Errors
/// What is wrong with the parameter of this name.
pub(crate) fn at_least_one<T: TryFrom<i64>>(number: i64, name: &str) -> Result<T, String> {
    let possible = T::try_from(number).ok().filter(|_| number >= 1);
    possible.ok_or_else(|| format!("{name}: found {number}, expected 1 or more"))
}
