//! The values of a column of Arrow.

use std::sync::Arc;

use arrow_array::cast::AsArray as _;
use arrow_array::types::{
    Date32Type, Date64Type, Decimal32Type, Decimal64Type, Decimal128Type, Decimal256Type, Float16Type,
    Float32Type, Float64Type, Int8Type, Int16Type, Int32Type, Int64Type, TimestampMicrosecondType,
    TimestampMillisecondType, TimestampNanosecondType, TimestampSecondType, UInt8Type, UInt16Type,
    UInt32Type, UInt64Type,
};
use arrow_array::{Array, ArrayRef, RecordBatch};
use arrow_schema::{DataType, Field, Fields, TimeUnit};

use super::super::columns::{CellValue, ColumnCursor, LIST_LEVELS};
use super::super::rows::INEXACT;

/// Elements of a list that is read, inclusive.
const MAX_ELEMENTS: usize = 4 << 20;

/// Where a column is in the batches of an input: the index of each field on the path to it.
#[derive(Clone, Debug)]
pub(super) struct ColumnPlace {
    steps: Arc<[usize]>,
    /// The type of its values, or of the elements of its lists.
    pub(super) kind: DataType,
    /// Number of lists around a value.
    pub(super) lists: usize,
    is_uuid: bool,
}

impl ColumnPlace {
    /// The column with this dotted path. The levels between a list and its elements may be omitted.
    pub(super) fn find(fields: &Fields, path: &str) -> Option<Self> {
        let (mut steps, mut lists) = (Vec::new(), 0);
        let field = find(fields, path, &mut steps, &mut lists)?;
        let kind = value_kind(field.data_type(), &mut lists).clone();
        let is_uuid = field.metadata().get("ARROW:extension:name").is_some_and(|name| name == "arrow.uuid");
        Some(Self { steps: steps.into(), kind, lists, is_uuid })
    }

    /// Whether its values are read.
    pub(super) fn is_read(&self) -> bool {
        use DataType::{Duration, Interval, Map, Struct, Time32, Time64, Union};
        !matches!(
            self.kind,
            Duration(_) | Interval(_) | Map(..) | Struct(_) | Time32(_) | Time64(_) | Union(..)
        )
    }

    /// The column in a batch, before its first row. `counts`: missing elements of its lists count.
    pub(super) fn in_batch(&self, batch: &RecordBatch, counts: bool) -> ArrowColumn {
        let first = self.steps.first().copied().unwrap_or(0);
        ArrowColumn { array: Arc::clone(batch.column(first)), place: self.clone(), row: 0, counts }
    }
}

/// The paths of all columns, for a message.
pub(super) fn paths(fields: &Fields, before: &str, found: &mut Vec<String>) {
    for field in fields {
        let path = format!("{before}{}", field.name());
        match value_kind(field.data_type(), &mut 0) {
            DataType::Struct(inner) => paths(inner, &format!("{path}."), found),
            _ => found.push(format!("{path:?}")),
        }
    }
}

fn find<'f>(fields: &'f Fields, path: &str, steps: &mut Vec<usize>, lists: &mut usize) -> Option<&'f Field> {
    for (place, field) in fields.iter().enumerate() {
        let Some(rest) = path.strip_prefix(field.name().as_str()) else { continue };
        let (depth, around) = (steps.len(), *lists);
        steps.push(place);
        let kind = value_kind(field.data_type(), lists);
        let mut parts: Vec<_> = rest.split('.').skip(1).collect();
        if *lists > around {
            let between = parts.iter().take_while(|part| LIST_LEVELS.contains(part)).count();
            parts.drain(..between);
        }
        let found = match kind {
            _ if !rest.is_empty() && !rest.starts_with('.') => None,
            DataType::Struct(inner) if !parts.is_empty() => find(inner, &parts.join("."), steps, lists),
            _ if parts.is_empty() => {
                *lists = around;
                Some(&**field)
            }
            _ => None,
        };
        if found.is_some() {
            return found;
        }
        steps.truncate(depth);
        *lists = around;
    }
    None
}

/// The type of values inside lists, dictionaries and runs; counts the lists.
fn value_kind<'k>(kind: &'k DataType, lists: &mut usize) -> &'k DataType {
    use DataType::{Dictionary, FixedSizeList, LargeList, LargeListView, List, ListView, RunEndEncoded};
    match kind {
        List(field) | LargeList(field) | ListView(field) | LargeListView(field) | FixedSizeList(field, _) => {
            *lists += 1;
            value_kind(field.data_type(), lists)
        }
        Dictionary(_, values) => value_kind(values, lists),
        RunEndEncoded(_, values) => value_kind(values.data_type(), lists),
        other => other,
    }
}

/// A column of the present batch, at its present row.
pub(super) struct ArrowColumn {
    /// The outermost array on the path.
    array: ArrayRef,
    place: ColumnPlace,
    pub(super) row: usize,
    counts: bool,
}

impl ColumnCursor for ArrowColumn {
    fn value(&self) -> CellValue<'_> {
        self.at(&*self.array, self.row, self.place.steps.get(1..).unwrap_or_default())
    }

    fn inexact(&self) -> (&'static str, f64) {
        match self.place.kind {
            DataType::Float16 => ("Float16", 2_048.0),
            DataType::Float32 => ("Float32", 16_777_216.0),
            _ => ("Float64", INEXACT),
        }
    }
}

impl ArrowColumn {
    /// The value of a row of an array, or in the structure there.
    fn at<'a>(&self, array: &'a dyn Array, row: usize, steps: &[usize]) -> CellValue<'a> {
        if array.is_null(row) {
            return CellValue::Null;
        }
        macro_rules! list {
            ($values:expr, $from:expr, $to:expr) => {
                self.elements(&**$values, usize::try_from($from).ok().zip(usize::try_from($to).ok()), steps)
            };
        }
        match array.data_type() {
            DataType::Struct(_) => match steps.split_first() {
                Some((step, steps)) => self.at(&**array.as_struct().column(*step), row, steps),
                None => CellValue::Null,
            },
            DataType::List(_) => {
                let list = array.as_list::<i32>();
                list!(list.values(), list.value_offsets()[row], list.value_offsets()[row + 1])
            }
            DataType::LargeList(_) => {
                let list = array.as_list::<i64>();
                list!(list.values(), list.value_offsets()[row], list.value_offsets()[row + 1])
            }
            DataType::ListView(_) => {
                let list = array.as_list_view::<i32>();
                let from = list.value_offsets()[row];
                list!(list.values(), from, from + list.value_sizes()[row])
            }
            DataType::LargeListView(_) => {
                let list = array.as_list_view::<i64>();
                let from = list.value_offsets()[row];
                list!(list.values(), from, from + list.value_sizes()[row])
            }
            DataType::FixedSizeList(..) => {
                let list = array.as_fixed_size_list();
                let from = list.value_offset_at(row);
                list!(list.values(), from, list.value_offset_at(row + 1))
            }
            DataType::Dictionary(..) => {
                let dictionary = array.as_any_dictionary();
                let key = match scalar(dictionary.keys(), row) {
                    CellValue::Signed(key) => usize::try_from(key).ok(),
                    CellValue::Unsigned(key) => usize::try_from(key).ok(),
                    _ => None,
                };
                key.map_or(CellValue::Null, |key| self.at(&**dictionary.values(), key, steps))
            }
            DataType::RunEndEncoded(ends, _) => {
                let (values, place) = match ends.data_type() {
                    DataType::Int16 => run(array.as_run::<Int16Type>(), row),
                    DataType::Int32 => run(array.as_run::<Int32Type>(), row),
                    _ => run(array.as_run::<Int64Type>(), row),
                };
                self.at(values, place, steps)
            }
            DataType::FixedSizeBinary(16) if self.place.is_uuid => {
                let bytes = array.as_fixed_size_binary().value(row);
                bytes.first_chunk().map_or(CellValue::Null, |id| CellValue::Uuid(u128::from_be_bytes(*id)))
            }
            _ => scalar(array, row),
        }
    }

    /// The elements of a list.
    fn elements<'a>(
        &self,
        values: &'a dyn Array,
        range: Option<(usize, usize)>,
        steps: &[usize],
    ) -> CellValue<'a> {
        let Some((from, to)) = range else { return CellValue::Null };
        // Few bytes may state many elements: of runs, of no bytes each, or those of other lists too.
        if to.saturating_sub(from) > MAX_ELEMENTS {
            return CellValue::TooLong;
        }
        let cells = (from..to).map(|place| self.at(values, place, steps));
        let cells: Vec<_> = cells.filter(|cell| self.counts || *cell != CellValue::Null).collect();
        if cells.is_empty() && !self.counts { CellValue::Null } else { CellValue::List(cells) }
    }
}

fn run<R: arrow_array::types::RunEndIndexType>(
    array: &arrow_array::RunArray<R>,
    row: usize,
) -> (&dyn Array, usize) {
    (&**array.values(), array.get_physical_index(row))
}

/// A value that is in its array itself, and is not missing; one of a type that is not read is.
fn scalar(array: &dyn Array, row: usize) -> CellValue<'_> {
    macro_rules! number {
        ($kind:ty) => {
            array.as_primitive::<$kind>().value(row)
        };
    }
    match array.data_type() {
        DataType::Boolean => CellValue::Bool(array.as_boolean().value(row)),
        DataType::Int8 => CellValue::Signed(number!(Int8Type).into()),
        DataType::Int16 => CellValue::Signed(number!(Int16Type).into()),
        DataType::Int32 => CellValue::Signed(number!(Int32Type).into()),
        DataType::Int64 => CellValue::Signed(number!(Int64Type)),
        DataType::UInt8 => CellValue::Unsigned(number!(UInt8Type).into()),
        DataType::UInt16 => CellValue::Unsigned(number!(UInt16Type).into()),
        DataType::UInt32 => CellValue::Unsigned(number!(UInt32Type).into()),
        DataType::UInt64 => CellValue::Unsigned(number!(UInt64Type)),
        DataType::Float16 => CellValue::Float(number!(Float16Type).to_f64()),
        DataType::Float32 => CellValue::Float(number!(Float32Type).into()),
        DataType::Float64 => CellValue::Float(number!(Float64Type)),
        DataType::Decimal32(_, scale) => CellValue::of_decimal(number!(Decimal32Type).into(), *scale),
        DataType::Decimal64(_, scale) => CellValue::of_decimal(number!(Decimal64Type).into(), *scale),
        DataType::Decimal128(_, scale) => CellValue::of_decimal(number!(Decimal128Type), *scale),
        DataType::Decimal256(_, scale) => {
            let number = number!(Decimal256Type).to_i128();
            number.map_or(CellValue::Float(f64::NAN), |number| CellValue::of_decimal(number, *scale))
        }
        DataType::Date32 => CellValue::of_time(i64::from(number!(Date32Type)) * 86_400, 1),
        DataType::Date64 => CellValue::of_time(number!(Date64Type), 1_000),
        DataType::Timestamp(unit, _) => match unit {
            TimeUnit::Second => CellValue::of_time(number!(TimestampSecondType), 1),
            TimeUnit::Millisecond => CellValue::of_time(number!(TimestampMillisecondType), 1_000),
            TimeUnit::Microsecond => CellValue::of_time(number!(TimestampMicrosecondType), 1_000_000),
            TimeUnit::Nanosecond => CellValue::of_time(number!(TimestampNanosecondType), 1_000_000_000),
        },
        DataType::Utf8 => CellValue::Bytes(array.as_string::<i32>().value(row).as_bytes()),
        DataType::LargeUtf8 => CellValue::Bytes(array.as_string::<i64>().value(row).as_bytes()),
        DataType::Utf8View => CellValue::Bytes(array.as_string_view().value(row).as_bytes()),
        DataType::Binary => CellValue::Bytes(array.as_binary::<i32>().value(row)),
        DataType::LargeBinary => CellValue::Bytes(array.as_binary::<i64>().value(row)),
        DataType::BinaryView => CellValue::Bytes(array.as_binary_view().value(row)),
        DataType::FixedSizeBinary(_) => CellValue::Fixed(array.as_fixed_size_binary().value(row)),
        _ => CellValue::Null,
    }
}
