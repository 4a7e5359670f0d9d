//! Columns of a batch: texts, ids, times and fields, whatever their Arrow types.

use std::sync::Arc;

use arrow_array::cast::AsArray;
use arrow_array::types::{
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{
    Array, ArrayRef, LargeBinaryArray, LargeStringArray, RecordBatch, StringArray, StringViewArray,
};
use arrow_data::transform::MutableArrayData;
use arrow_schema::{DataType, TimeUnit};
use dupflow::core::doc::fields::RawValue;
use pyo3::exceptions::{PyTypeError, PyValueError};
use pyo3::prelude::*;

/// A column by its name, whose values are valid: libraries promise it, and some pass on text that is not.
///
/// # Errors
/// `ValueError` if the batch has no such column, or several; if a value is not valid.
pub(crate) fn column<'b>(py: Python<'_>, batch: &'b RecordBatch, name: &str) -> PyResult<&'b ArrayRef> {
    let names = || batch.schema_ref().fields().iter().map(|field| field.name().as_str());
    match names().filter(|other| *other == name).count() {
        1 => {
            let column = batch.column_by_name(name).expect("it is there");
            let valid = py.detach(|| column.to_data().validate_full());
            valid.map_err(|wrong| PyValueError::new_err(format!("column {name:?}: {wrong}")))?;
            Ok(column)
        }
        0 => {
            let all = names().map(|name| format!("{name:?}")).collect::<Vec<_>>().join(", ");
            Err(PyValueError::new_err(format!("no column {name:?} in the frame, it has {all}")))
        }
        n => Err(PyValueError::new_err(format!("{n} columns of the frame are called {name:?}"))),
    }
}

/// A column of texts.
pub(crate) enum Texts {
    Small(StringArray),
    Large(LargeStringArray),
    View(StringViewArray),
    /// For each row its place among the values.
    Dictionary(Vec<Option<usize>>, Box<Texts>),
    /// No row has a text.
    Nulls,
}

impl Texts {
    /// A column of texts, if it is one.
    pub(crate) fn of_array(array: &dyn Array) -> Option<Self> {
        Some(match array.data_type() {
            DataType::Utf8 => Self::Small(array.as_string().clone()),
            DataType::LargeUtf8 => Self::Large(array.as_string().clone()),
            DataType::Utf8View => Self::View(array.as_string_view().clone()),
            DataType::Null => Self::Nulls,
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary_opt()?;
                let values = Self::of_array(dictionary.values().as_ref())?;
                let keys = if dictionary.values().is_empty() {
                    vec![0; array.len()]
                } else {
                    dictionary.normalized_keys()
                };
                let keys = keys.into_iter().enumerate().map(|(row, key)| array.is_valid(row).then_some(key));
                Self::Dictionary(keys.collect(), Box::new(values))
            }
            _ => return None,
        })
    }

    /// The column of texts of this name.
    ///
    /// # Errors
    /// As [`column`]; `TypeError` for a column of another type.
    pub(crate) fn find(py: Python<'_>, batch: &RecordBatch, name: &str) -> PyResult<Self> {
        let array = column(py, batch, name)?;
        Self::of_array(array.as_ref()).ok_or_else(|| {
            let found = array.data_type();
            PyTypeError::new_err(format!("column {name:?}: expected texts, found values of type {found}"))
        })
    }

    /// The text of a row; `None` if it is null.
    pub(crate) fn get(&self, row: usize) -> Option<&str> {
        match self {
            Self::Small(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Self::Large(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Self::View(texts) => texts.is_valid(row).then(|| texts.value(row)),
            Self::Dictionary(keys, texts) => keys[row].and_then(|key| texts.get(key)),
            Self::Nulls => None,
        }
    }
}

/// The value of a row.
pub(crate) enum Cell<'a> {
    Null,
    Text(&'a str),
    Whole(i128),
    Number(f64),
    Flag(bool),
    /// Of a type that is not read.
    Other,
}

impl Cell<'_> {
    /// The value as that of a field.
    pub(crate) fn raw(&self) -> RawValue<'_> {
        match *self {
            Cell::Null => RawValue::Absent,
            Cell::Text(text) => RawValue::Text(text),
            Cell::Whole(number) => RawValue::Whole(number),
            Cell::Number(number) => RawValue::Number(number),
            Cell::Flag(flag) => RawValue::Flag(flag),
            Cell::Other => RawValue::Unusable,
        }
    }

    /// The value as an object of Python; `None` for a type that is not read.
    pub(crate) fn object<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        Ok(Some(match *self {
            Cell::Null => py.None().into_bound(py),
            Cell::Text(text) => text.into_pyobject(py)?.into_any(),
            Cell::Whole(number) => number.into_pyobject(py)?.into_any(),
            Cell::Number(number) => number.into_pyobject(py)?.into_any(),
            Cell::Flag(flag) => flag.into_pyobject(py)?.to_owned().into_any(),
            Cell::Other => return Ok(None),
        }))
    }
}

/// The value of a row of a column.
pub(crate) fn cell(array: &dyn Array, row: usize) -> Cell<'_> {
    if array.is_null(row) {
        return Cell::Null;
    }
    macro_rules! whole {
        ($of:ty) => {
            Cell::Whole(array.as_primitive::<$of>().value(row).into())
        };
    }
    match array.data_type() {
        DataType::Null => Cell::Null,
        DataType::Utf8 => Cell::Text(array.as_string::<i32>().value(row)),
        DataType::LargeUtf8 => Cell::Text(array.as_string::<i64>().value(row)),
        DataType::Utf8View => Cell::Text(array.as_string_view().value(row)),
        DataType::Boolean => Cell::Flag(array.as_boolean().value(row)),
        DataType::Int8 => whole!(Int8Type),
        DataType::Int16 => whole!(Int16Type),
        DataType::Int32 => whole!(Int32Type),
        DataType::Int64 => whole!(Int64Type),
        DataType::UInt8 => whole!(UInt8Type),
        DataType::UInt16 => whole!(UInt16Type),
        DataType::UInt32 => whole!(UInt32Type),
        DataType::UInt64 => whole!(UInt64Type),
        DataType::Float32 => Cell::Number(array.as_primitive::<Float32Type>().value(row).into()),
        DataType::Float64 => Cell::Number(array.as_primitive::<Float64Type>().value(row)),
        DataType::Dictionary(..) => {
            let dictionary = array.as_any_dictionary();
            let key = match cell(dictionary.keys(), row) {
                Cell::Whole(key) => usize::try_from(key).ok(),
                _ => None,
            };
            key.map_or(Cell::Other, |key| cell(dictionary.values().as_ref(), key))
        }
        _ => Cell::Other,
    }
}

/// The time of a row in seconds since 1970; `None` if it has none.
///
/// # Errors
/// The type of the column, if it is none of a time.
#[expect(clippy::cast_precision_loss, reason = "fractions of a second are rounded")]
pub(crate) fn seconds(array: &dyn Array, row: usize) -> Result<Option<f64>, String> {
    let ticks = |value: i64, per_second: f64| Ok(Some(value as f64 / per_second));
    if array.is_null(row) {
        return Ok(None);
    }
    match array.data_type() {
        DataType::Timestamp(TimeUnit::Second, _) => {
            ticks(array.as_primitive::<TimestampSecondType>().value(row), 1.0)
        }
        DataType::Timestamp(TimeUnit::Millisecond, _) => {
            ticks(array.as_primitive::<TimestampMillisecondType>().value(row), 1e3)
        }
        DataType::Timestamp(TimeUnit::Microsecond, _) => {
            ticks(array.as_primitive::<TimestampMicrosecondType>().value(row), 1e6)
        }
        DataType::Timestamp(TimeUnit::Nanosecond, _) => {
            ticks(array.as_primitive::<TimestampNanosecondType>().value(row), 1e9)
        }
        _ => match cell(array, row) {
            Cell::Whole(number) => Ok(Some(number as f64)),
            Cell::Number(number) => Ok(Some(number)),
            Cell::Null => Ok(None),
            _ => Err(array.data_type().to_string()),
        },
    }
}

/// The ids of a frame are far smaller than the 2 GiB that offsets of 32 bits reach.
pub(crate) const SMALL: &str = "ids have less than 2 GiB";

/// A copy of a column that shares no buffer with its batch: texts as `large_string`, views of bytes as
/// `large_binary`, other types as they are.
/// `None` for a type that has no such copy.
pub(crate) fn copied(array: &ArrayRef) -> Option<ArrayRef> {
    if let Some(texts) = Texts::of_array(array.as_ref()).filter(|_| *array.data_type() != DataType::Null) {
        let copy: LargeStringArray = (0..array.len()).map(|row| texts.get(row)).collect();
        return Some(Arc::new(copy));
    }
    if *array.data_type() == DataType::BinaryView {
        let copy: LargeBinaryArray = array.as_binary_view().iter().collect();
        return Some(Arc::new(copy));
    }
    let of_type = array.data_type();
    let is_plain = of_type.is_primitive()
        || matches!(
            of_type,
            DataType::Boolean
                | DataType::Binary
                | DataType::LargeBinary
                | DataType::FixedSizeBinary(_)
                | DataType::Null
        );
    is_plain.then(|| {
        let data = array.to_data();
        let mut copy = MutableArrayData::new(vec![&data], true, array.len());
        copy.try_extend(0, 0, array.len()).expect(SMALL);
        arrow_array::make_array(copy.freeze())
    })
}
