//! Reads one leaf column of a row group, some rows at a time.

use std::sync::Arc;
use std::sync::atomic::Ordering;

use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::{AsBytes, ByteArray, FixedLenByteArray, Int96};
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use super::super::super::columns::{CellValue, ColumnCursor, GivenColumn, LIST_LEVELS};
use super::super::super::rows::INEXACT;
use super::bytes::{Chunks, STEP};
use super::pages::{HeldBytes, Pages, StepSignal};
use dupflow_core::text::Given;

/// The index of the leaf with this dotted path.
pub(super) fn find(schema: &SchemaDescriptor, path: &str) -> Option<usize> {
    let whole = schema.columns().iter().position(|leaf| leaf.path().string() == path);
    whole.or_else(|| {
        schema
            .columns()
            .iter()
            .position(|leaf| leaf.max_rep_level() > 0 && leads_to(path, leaf.path().parts()))
    })
}

/// Whether a path names these parts; the levels between lists and their elements may be omitted.
fn leads_to(path: &str, parts: &[String]) -> bool {
    let mut wanted = path.split('.').peekable();
    let all = parts.iter().enumerate().all(|(place, part)| {
        wanted.next_if(|name| name == part).is_some() || place > 0 && LIST_LEVELS.contains(&part.as_str())
    });
    all && wanted.peek().is_none()
}

/// A column of [given](Given) features, as it is said what it is and what is read.
pub(super) fn given_column(given: Given, about: &ColumnDescriptor) -> GivenColumn {
    let list = if about.max_rep_level() > 0 { "a list of " } else { "" };
    let sign = if NumberKind::from_descriptor(about) == NumberKind::Unsigned { "unsigned " } else { "" };
    let length = if about.type_length() > 0 { format!("({})", about.type_length()) } else { String::new() };
    let kind = format!("{list}{sign}{}{length}", about.physical_type());
    let words = ["unsigned INT64", "FIXED_LEN_BYTE_ARRAY"];
    GivenColumn::new(given, &about.path().string(), &kind, words)
}

/// A leaf column, and the values of the last rows that were read.
pub(super) struct LeafColumn {
    reader: ColumnReader,
    kind: NumberKind,
    max_def: i16,
    is_list: bool,
    /// If missing elements count: the definition level of an element, missing or not.
    element_def: Option<i16>,
    values: LeafValues,
    /// The first level of each row, and the number of levels at the end: row `n` has the levels
    /// `rows[n]..rows[n + 1]`.
    rows: Vec<usize>,
    /// For each level, the index of its value, if it has one.
    places: Vec<Option<usize>>,
    defs: Vec<i16>,
    reps: Vec<i16>,
    /// The index of the present row among those that were read last.
    at: usize,
    step: Arc<StepSignal>,
}

/// The meaning of a column's numbers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum NumberKind {
    Plain,
    Unsigned,
    Days,
    /// A time in this fraction of a second: the number of units in one second.
    Instant(u32),
    Uuid,
    /// A decimal with this number of digits after the point.
    Decimal(u32),
}

enum LeafValues {
    Bools(Vec<bool>),
    Ints(Vec<i32>),
    Longs(Vec<i64>),
    Instants(Vec<Int96>),
    Floats(Vec<f32>),
    Doubles(Vec<f64>),
    Bytes(Vec<ByteArray>),
    Fixed(Vec<FixedLenByteArray>),
}

impl LeafColumn {
    pub(super) fn open(
        file: &Arc<Chunks>,
        column: &ColumnChunkMetaData,
        rows: u64,
        held: &HeldBytes,
    ) -> Result<Self> {
        let about = column.column_descr_ptr();
        let step = Arc::new(StepSignal::default());
        let pages = Pages::open(file, column, rows, held, &step)?;
        let reader = get_column_reader(Arc::clone(&about), Box::new(pages));
        let values = match &reader {
            ColumnReader::BoolColumnReader(_) => LeafValues::Bools(Vec::new()),
            ColumnReader::Int32ColumnReader(_) => LeafValues::Ints(Vec::new()),
            ColumnReader::Int64ColumnReader(_) => LeafValues::Longs(Vec::new()),
            ColumnReader::Int96ColumnReader(_) => LeafValues::Instants(Vec::new()),
            ColumnReader::FloatColumnReader(_) => LeafValues::Floats(Vec::new()),
            ColumnReader::DoubleColumnReader(_) => LeafValues::Doubles(Vec::new()),
            ColumnReader::ByteArrayColumnReader(_) => LeafValues::Bytes(Vec::new()),
            ColumnReader::FixedLenByteArrayColumnReader(_) => LeafValues::Fixed(Vec::new()),
        };
        Ok(Self {
            reader,
            kind: NumberKind::from_descriptor(&about),
            max_def: about.max_def_level(),
            is_list: about.max_rep_level() > 0,
            element_def: None,
            values,
            rows: Vec::new(),
            places: Vec::new(),
            defs: Vec::new(),
            reps: Vec::new(),
            at: 0,
            step,
        })
    }

    /// The same for a list in which missing elements count; it may be empty.
    pub(super) fn with_elements(self, schema: &SchemaDescriptor, leaf: usize) -> Self {
        let (mut node, mut level, mut element_def) = (schema.root_schema(), 0, None);
        for part in schema.column(leaf).path().parts() {
            let Some(below) = node.get_fields().iter().find(|field| field.name() == part) else { break };
            node = below;
            let repetition = node.get_basic_info().repetition();
            level += i16::from(repetition != Repetition::REQUIRED);
            element_def = if repetition == Repetition::REPEATED { Some(level) } else { element_def };
        }
        Self { element_def, ..self }
    }

    /// Moves to the next row, where `left` rows are left; false if there is none.
    pub(super) fn advance(&mut self, left: u64) -> Result<bool> {
        self.at += 1;
        if self.at + 1 < self.rows.len() {
            return Ok(true);
        }
        self.at = 0;
        let rows = usize::try_from(left).map_or(STEP, |left| left.min(STEP));
        // A step may end before its first row, so that the pages of the previous step are released.
        Ok(self.read(rows)? > 0 || self.read(rows)? > 0)
    }

    /// Reads up to `rows` further rows, as many as are left and fit in memory; returns their number.
    fn read(&mut self, rows: usize) -> Result<usize> {
        self.step.is_new.store(true, Ordering::Relaxed);
        self.defs.clear();
        self.reps.clear();
        let (defs, reps) = (Some(&mut self.defs), Some(&mut self.reps));
        macro_rules! read {
            ($reader:expr, $values:expr) => {{
                $values.clear();
                $reader.read_records(rows, defs, reps, $values)?
            }};
        }
        let (records, _, levels) = match (&mut self.reader, &mut self.values) {
            (ColumnReader::BoolColumnReader(reader), LeafValues::Bools(values)) => read!(reader, values),
            (ColumnReader::Int32ColumnReader(reader), LeafValues::Ints(values)) => read!(reader, values),
            (ColumnReader::Int64ColumnReader(reader), LeafValues::Longs(values)) => read!(reader, values),
            (ColumnReader::Int96ColumnReader(reader), LeafValues::Instants(values)) => read!(reader, values),
            (ColumnReader::FloatColumnReader(reader), LeafValues::Floats(values)) => read!(reader, values),
            (ColumnReader::DoubleColumnReader(reader), LeafValues::Doubles(values)) => read!(reader, values),
            (ColumnReader::ByteArrayColumnReader(reader), LeafValues::Bytes(values)) => read!(reader, values),
            (ColumnReader::FixedLenByteArrayColumnReader(reader), LeafValues::Fixed(values)) => {
                read!(reader, values)
            }
            _ => (0, 0, 0),
        };
        self.places.clear();
        let mut next = 0;
        for level in 0..levels {
            let is_there = self.max_def == 0 || self.defs.get(level) == Some(&self.max_def);
            self.places.push(is_there.then_some(next));
            next += usize::from(is_there);
        }
        self.rows.clear();
        let begins = |level: &usize| !self.is_list || self.reps.get(*level) == Some(&0);
        self.rows.extend((0..levels).filter(begins));
        self.rows.truncate(records);
        self.rows.push(levels);
        Ok(self.rows.len() - 1)
    }

    fn present(&self) -> CellValue<'_> {
        let (Some(&from), Some(&to)) = (self.rows.get(self.at), self.rows.get(self.at + 1)) else {
            return CellValue::Null;
        };
        if !self.is_list {
            return self
                .places
                .get(from)
                .copied()
                .flatten()
                .map_or(CellValue::Null, |place| self.cell(place));
        }
        let def = |level: usize| self.defs.get(level).copied().unwrap_or(0);
        let counts = |level: &usize| {
            self.places[*level].is_some() || self.element_def.is_some_and(|least| def(*level) >= least)
        };
        let cell = |level: usize| self.places[level].map_or(CellValue::Null, |place| self.cell(place));
        let cells: Vec<_> = (from..to).filter(counts).map(cell).collect();
        let is_empty = self.element_def.is_some_and(|least| def(from) + 1 == least);
        if cells.is_empty() && !is_empty { CellValue::Null } else { CellValue::List(cells) }
    }

    fn cell(&self, place: usize) -> CellValue<'_> {
        let cell = match &self.values {
            LeafValues::Bools(values) => values.get(place).map(|value| CellValue::Bool(*value)),
            LeafValues::Ints(values) => values.get(place).map(|value| match self.kind {
                NumberKind::Unsigned => CellValue::Unsigned(u64::from(value.cast_unsigned())),
                NumberKind::Days => CellValue::of_time(i64::from(*value) * 86_400, 1),
                NumberKind::Decimal(scale) => CellValue::Decimal(i128::from(*value), scale),
                _ => CellValue::Signed(i64::from(*value)),
            }),
            LeafValues::Longs(values) => values.get(place).map(|value| match self.kind {
                NumberKind::Unsigned => CellValue::Unsigned(value.cast_unsigned()),
                NumberKind::Instant(parts) => CellValue::of_time(*value, parts),
                NumberKind::Decimal(scale) => CellValue::Decimal(i128::from(*value), scale),
                _ => CellValue::Signed(*value),
            }),
            LeafValues::Instants(values) => {
                values.get(place).map(|value| CellValue::of_time(value.to_micros(), 1_000_000))
            }
            LeafValues::Floats(values) => values.get(place).map(|value| CellValue::Float(f64::from(*value))),
            LeafValues::Doubles(values) => values.get(place).map(|value| CellValue::Float(*value)),
            LeafValues::Bytes(values) => {
                values.get(place).map(|value| match (self.kind, big_endian(value.data())) {
                    (NumberKind::Decimal(scale), Some(number)) => CellValue::Decimal(number, scale),
                    _ => CellValue::Bytes(value.data()),
                })
            }
            LeafValues::Fixed(values) => values.get(place).map(|value| match (self.kind, value.as_bytes()) {
                (NumberKind::Uuid, bytes) => bytes
                    .try_into()
                    .map_or(CellValue::Bytes(bytes), |id: [u8; 16]| CellValue::Uuid(u128::from_be_bytes(id))),
                (NumberKind::Decimal(scale), bytes) => big_endian(bytes)
                    .map_or(CellValue::Fixed(bytes), |number| CellValue::Decimal(number, scale)),
                (_, bytes) => CellValue::Fixed(bytes),
            }),
        };
        cell.unwrap_or(CellValue::Null)
    }
}

impl ColumnCursor for LeafColumn {
    fn value(&self) -> CellValue<'_> {
        self.present()
    }

    fn inexact(&self) -> (&'static str, f64) {
        if matches!(self.values, LeafValues::Floats(_)) {
            ("FLOAT", 16_777_216.0)
        } else {
            ("DOUBLE", INEXACT)
        }
    }
}

/// A signed big-endian number; `None` if it needs more than 128 bits.
fn big_endian(bytes: &[u8]) -> Option<i128> {
    let first = bytes.first()?;
    let sign = if *first >= 0x80 { u8::MAX } else { 0 };
    let (more, bytes) = bytes.split_at(bytes.len().saturating_sub(16));
    let mut whole = [sign; 16];
    whole[16 - bytes.len()..].copy_from_slice(bytes);
    let number = i128::from_be_bytes(whole);
    (more.iter().all(|byte| *byte == sign) && (number < 0) == (sign != 0)).then_some(number)
}

impl NumberKind {
    fn from_descriptor(about: &ColumnDescriptor) -> Self {
        use ConvertedType as Old;
        match (about.logical_type_ref(), about.converted_type()) {
            (Some(LogicalType::Timestamp(time)), _) => Self::Instant(match time.unit {
                TimeUnit::MILLIS => 1_000,
                TimeUnit::MICROS => 1_000_000,
                TimeUnit::NANOS => 1_000_000_000,
            }),
            (_, Old::TIMESTAMP_MILLIS) => Self::Instant(1_000),
            (_, Old::TIMESTAMP_MICROS) => Self::Instant(1_000_000),
            (Some(LogicalType::Date), _) | (_, Old::DATE) => Self::Days,
            (Some(LogicalType::Uuid), _) => Self::Uuid,
            (Some(LogicalType::Decimal(_)), _) | (_, Old::DECIMAL) => u32::try_from(about.type_scale())
                .ok()
                .filter(|scale| *scale <= 76)
                .map_or(Self::Plain, Self::Decimal),
            (_, Old::UINT_8 | Old::UINT_16 | Old::UINT_32 | Old::UINT_64) => Self::Unsigned,
            (Some(LogicalType::Integer(int)), _) if !int.is_signed => Self::Unsigned,
            _ => Self::Plain,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn decimals_are_numbers() {
        for (bytes, scale, text) in [
            (&[7][..], 0, "7"),
            (&[0xff], 0, "-1"),
            (&[0x02, 0xbc], 2, "7"),
            (&[0x04, 0xe2], 2, "12.5"),
            (&[0xff, 0xfb], 2, "-0.05"),
            (&[0; 16], 10, "0"),
            (&[0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 9], 0, "9"),
        ] {
            let value = CellValue::Decimal(big_endian(bytes).unwrap(), scale);
            assert_eq!(value.bytes().unwrap().unwrap(), text.as_bytes(), "{bytes:?}");
        }
        assert_eq!((big_endian(&[]), big_endian(&[1; 17])), (None, None));
        let mut large = [0; 17];
        large[1] = 0x80;
        assert_eq!(big_endian(&large), None, "its sign is in the byte before");
    }
}
