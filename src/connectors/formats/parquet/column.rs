//! Reads one leaf column of a row group, some rows at a time.

use std::fmt::Write;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parquet::basic::{ConvertedType, LogicalType, Repetition, TimeUnit};
use parquet::column::reader::{ColumnReader, get_column_reader};
use parquet::data_type::{AsBytes, ByteArray, FixedLenByteArray, Int96};
use parquet::errors::Result;
use parquet::file::metadata::ColumnChunkMetaData;
use parquet::schema::types::{ColumnDescriptor, SchemaDescriptor};

use super::super::bad_record::{BadRecord, MAX_RECORD_BYTES};
use super::super::rows::{INEXACT, found, no_time};
use super::bytes::{Chunks, STEP};
use super::pages::{HeldBytes, Pages, StepSignal};
use crate::instant;
use dupflow_core::text::Given;

/// Names of the schema levels between a list and its elements, which a path may omit.
const BETWEEN: &[&str] = &["list", "element", "item", "bag", "array", "array_element"];

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
        wanted.next_if(|name| name == part).is_some() || place > 0 && BETWEEN.contains(&part.as_str())
    });
    all && wanted.peek().is_none()
}

/// A column of [given](Given) features.
#[derive(Clone, Debug)]
pub(super) struct GivenColumn {
    /// What it has.
    pub(super) given: Given,
    /// Which column it is, of which type, and which types are read.
    pub(super) expected: Arc<str>,
}

impl GivenColumn {
    pub(super) fn new(given: Given, about: &ColumnDescriptor) -> Self {
        let list = if about.max_rep_level() > 0 { "a list of " } else { "" };
        let sign = if NumberKind::from_descriptor(about) == NumberKind::Unsigned { "unsigned " } else { "" };
        let length =
            if about.type_length() > 0 { format!("({})", about.type_length()) } else { String::new() };
        let kind = format!("{list}{sign}{}{length}", about.physical_type());
        let wanted = match given {
            Given::Features { .. } => "a list of strings or of unsigned whole numbers, or text".to_owned(),
            Given::Fingerprint(bits) => {
                let words = match bits / 64 {
                    1 => "unsigned INT64".to_owned(),
                    words => format!("a list of {words} unsigned INT64"),
                };
                format!(
                    "of {bits} bits (sketch.size) FIXED_LEN_BYTE_ARRAY({}), {words}, or text of {} \
                     hexadecimal digits",
                    bits / 8,
                    bits / 4
                )
            }
        };
        let path = about.path().string();
        let expected = format!("the column {path:?} is {kind}; cast it to what is expected: {wanted}").into();
        Self { given, expected }
    }
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

    /// The value of the present row.
    pub(super) fn value(&self) -> LeafValue<'_> {
        let (Some(&from), Some(&to)) = (self.rows.get(self.at), self.rows.get(self.at + 1)) else {
            return LeafValue::Null;
        };
        if !self.is_list {
            return self
                .places
                .get(from)
                .copied()
                .flatten()
                .map_or(LeafValue::Null, |place| self.cell(place));
        }
        let def = |level: usize| self.defs.get(level).copied().unwrap_or(0);
        let counts = |level: &usize| {
            self.places[*level].is_some() || self.element_def.is_some_and(|least| def(*level) >= least)
        };
        let cell = |level: usize| self.places[level].map_or(LeafValue::Null, |place| self.cell(place));
        let cells: Vec<_> = (from..to).filter(counts).map(cell).collect();
        let is_empty = self.element_def.is_some_and(|least| def(from) + 1 == least);
        if cells.is_empty() && !is_empty { LeafValue::Null } else { LeafValue::List(cells) }
    }

    /// The value of the present row as an id; `None` for null.
    ///
    /// # Errors
    /// If it is a number that stands for several whole numbers.
    pub(super) fn id(&self) -> std::result::Result<Option<Vec<u8>>, (BadRecord, String)> {
        let value = self.value();
        let (name, inexact) = match &self.values {
            LeafValues::Floats(_) => ("FLOAT", 16_777_216.0),
            _ => ("DOUBLE", INEXACT),
        };
        match value {
            LeafValue::Float(id) if id.is_nan() || id.abs() >= inexact => {
                let cause = format!(
                    "the ids are {name}, and {id} stands for several whole numbers: write them as integers, \
                     decimals or strings"
                );
                Err((BadRecord::BadId, cause))
            }
            // Without the sign of a zero.
            LeafValue::Float(id) => LeafValue::Float(id + 0.0).id(),
            value => value.id(),
        }
    }

    fn cell(&self, place: usize) -> LeafValue<'_> {
        let cell = match &self.values {
            LeafValues::Bools(values) => values.get(place).map(|value| LeafValue::Bool(*value)),
            LeafValues::Ints(values) => values.get(place).map(|value| match self.kind {
                NumberKind::Unsigned => LeafValue::Unsigned(u64::from(value.cast_unsigned())),
                NumberKind::Days => LeafValue::Seconds(f64::from(*value) * 86_400.0),
                NumberKind::Decimal(scale) => LeafValue::Decimal(i128::from(*value), scale),
                _ => LeafValue::Signed(i64::from(*value)),
            }),
            LeafValues::Longs(values) => values.get(place).map(|value| match self.kind {
                NumberKind::Unsigned => LeafValue::Unsigned(value.cast_unsigned()),
                NumberKind::Instant(parts) => LeafValue::Seconds(seconds(*value, parts)),
                NumberKind::Decimal(scale) => LeafValue::Decimal(i128::from(*value), scale),
                _ => LeafValue::Signed(*value),
            }),
            LeafValues::Instants(values) => {
                values.get(place).map(|value| LeafValue::Seconds(seconds(value.to_micros(), 1_000_000)))
            }
            LeafValues::Floats(values) => values.get(place).map(|value| LeafValue::Float(f64::from(*value))),
            LeafValues::Doubles(values) => values.get(place).map(|value| LeafValue::Float(*value)),
            LeafValues::Bytes(values) => {
                values.get(place).map(|value| match (self.kind, big_endian(value.data())) {
                    (NumberKind::Decimal(scale), Some(number)) => LeafValue::Decimal(number, scale),
                    _ => LeafValue::Bytes(value.data()),
                })
            }
            LeafValues::Fixed(values) => values.get(place).map(|value| match (self.kind, value.as_bytes()) {
                (NumberKind::Uuid, bytes) => bytes
                    .try_into()
                    .map_or(LeafValue::Bytes(bytes), |id: [u8; 16]| LeafValue::Uuid(u128::from_be_bytes(id))),
                (NumberKind::Decimal(scale), bytes) => big_endian(bytes)
                    .map_or(LeafValue::Fixed(bytes), |number| LeafValue::Decimal(number, scale)),
                (_, bytes) => LeafValue::Fixed(bytes),
            }),
        };
        cell.unwrap_or(LeafValue::Null)
    }
}

#[expect(clippy::cast_precision_loss, reason = "a double has microseconds until the year 2255")]
fn seconds(value: i64, parts: u32) -> f64 {
    let parts = i64::from(parts);
    value.div_euclid(parts) as f64 + value.rem_euclid(parts) as f64 / parts as f64
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

/// A decimal number as text, without zeros at the end of its fraction: 7.00 is 7.
fn decimal(number: i128, scale: u32) -> String {
    let scale = scale as usize;
    let digits = format!("{:0>1$}", number.unsigned_abs(), scale + 1);
    let (whole, part) = digits.split_at(digits.len() - scale);
    let sign = if number < 0 { "-" } else { "" };
    let part = part.trim_end_matches('0');
    let point = if part.is_empty() { "" } else { "." };
    format!("{sign}{whole}{point}{part}")
}

/// Bytes as hexadecimal digits, the highest bit first.
fn hex(bytes: &[u8]) -> Vec<u8> {
    let digit = |half: u8| b"0123456789abcdef"[usize::from(half)];
    bytes.iter().flat_map(|byte| [digit(byte >> 4), digit(byte & 15)]).collect()
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

/// The value of a row in a column.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum LeafValue<'a> {
    Null,
    Bool(bool),
    Signed(i64),
    Unsigned(u64),
    Float(f64),
    Seconds(f64),
    /// A number, and how many of its digits are after the point.
    Decimal(i128, u32),
    Uuid(u128),
    Bytes(&'a [u8]),
    /// Bytes of a column in which all values have the same length.
    Fixed(&'a [u8]),
    List(Vec<Self>),
}

impl LeafValue<'_> {
    /// The value as text: numbers in decimal, one line for each element of a list; `None` for null.
    pub(super) fn bytes(&self) -> std::result::Result<Option<Vec<u8>>, (BadRecord, String)> {
        let mut text = String::new();
        match self {
            Self::Null => return Ok(None),
            Self::Bytes(bytes) | Self::Fixed(bytes) => return Ok(Some(bytes.to_vec())),
            Self::List(values) => {
                let mut joined = Vec::new();
                for (place, value) in values.iter().enumerate() {
                    if place > 0 {
                        joined.push(b'\n');
                    }
                    joined.extend_from_slice(&value.bytes()?.unwrap_or_default());
                    // Many elements may refer to the same value of a dictionary.
                    if joined.len() > MAX_RECORD_BYTES {
                        return Err((BadRecord::TooLong, "a list".to_owned()));
                    }
                }
                return Ok(Some(joined));
            }
            Self::Bool(value) => text.push_str(if *value { "true" } else { "false" }),
            Self::Signed(value) => text = value.to_string(),
            Self::Unsigned(value) => text = value.to_string(),
            Self::Decimal(number, scale) => text = decimal(*number, *scale),
            Self::Float(value) | Self::Seconds(value) => text = value.to_string(),
            Self::Uuid(id) => {
                for (shift, digits) in [(96, 8), (80, 4), (64, 4), (48, 4), (0, 12)] {
                    let part = (id >> shift) & ((1 << (4 * digits)) - 1);
                    let dash = if shift == 96 { "" } else { "-" };
                    // Writing to a string cannot fail.
                    let _ = write!(text, "{dash}{part:0digits$x}");
                }
            }
        }
        Ok(Some(text.into_bytes()))
    }

    /// The value as an id: like [`Self::bytes`], but fixed-length bytes that are not UTF-8 in hexadecimal.
    pub(super) fn id(&self) -> std::result::Result<Option<Vec<u8>>, (BadRecord, String)> {
        match self {
            Self::Fixed(bytes) if std::str::from_utf8(bytes).is_err() => Ok(Some(hex(bytes))),
            other => other.bytes(),
        }
    }

    /// The value as [given](Given) features, in the form of a text: a list, and a number, as a JSON list;
    /// fixed-length bytes with the bits of a fingerprint as hexadecimal digits; other values as
    /// [`Self::bytes`] has them. `None` for null.
    pub(super) fn given(&self, given: Given) -> std::result::Result<Option<Vec<u8>>, (BadRecord, String)> {
        let alone = std::slice::from_ref(self);
        let elements = match self {
            Self::Fixed(bytes) if given == Given::Fingerprint(8 * bytes.len()) => {
                return Ok(Some(hex(bytes)));
            }
            Self::Null | Self::Bytes(_) | Self::Fixed(_) => return self.bytes(),
            Self::List(elements) => elements,
            _ => alone,
        };
        let mut list = vec![b'['];
        for (place, element) in elements.iter().enumerate() {
            if place > 0 {
                list.push(b',');
            }
            list.extend(element.feature()?.to_string().into_bytes());
            // As in a text.
            if list.len() > MAX_RECORD_BYTES {
                return Err((BadRecord::TooLong, "a list".to_owned()));
            }
        }
        list.push(b']');
        Ok(Some(list))
    }

    /// Whether the value may be [given](Given) features, of which `text` is the [form](Self::given): a
    /// fingerprint is one; each element of a list is a feature. Features in a text are read later.
    pub(super) fn is_given(&self, given: Given, text: &[u8]) -> bool {
        let Ok(text) = str::from_utf8(text) else { return false };
        match self {
            _ if matches!(given, Given::Fingerprint(_)) => given.reads(text),
            Self::List(elements) => elements.iter().all(Self::is_feature),
            Self::Bytes(_) | Self::Fixed(_) => true,
            alone => alone.is_feature(),
        }
    }

    /// Whether it is a whole number of 64 bits, or bytes.
    fn is_feature(&self) -> bool {
        match self {
            Self::Signed(value) => *value >= 0,
            Self::Decimal(number, scale) => *scale == 0 && u64::try_from(*number).is_ok(),
            Self::Unsigned(_) | Self::Uuid(_) | Self::Bytes(_) | Self::Fixed(_) => true,
            Self::Null | Self::Bool(_) | Self::Float(_) | Self::Seconds(_) | Self::List(_) => false,
        }
    }

    /// A feature as JSON; what is neither a whole number nor a text is a value that no feature has.
    fn feature(&self) -> std::result::Result<serde_json::Value, (BadRecord, String)> {
        Ok(match self {
            Self::Null | Self::List(_) => serde_json::Value::Null,
            Self::Bool(value) => (*value).into(),
            Self::Signed(value) => (*value).into(),
            Self::Unsigned(value) => (*value).into(),
            Self::Float(value) | Self::Seconds(value) => (*value).into(),
            Self::Decimal(number, 0) if let Ok(number) = u64::try_from(*number) => number.into(),
            Self::Decimal(number, scale) => decimal(*number, *scale).parse::<f64>().ok().into(),
            Self::Uuid(_) | Self::Bytes(_) | Self::Fixed(_) => {
                let text = String::from_utf8(self.id()?.unwrap_or_default());
                let not_text = |_| (BadRecord::BadFeatures, "a feature is no text".to_owned());
                text.map_err(not_text)?.into()
            }
        })
    }

    /// The value as JSON, a number or a string; `None` for null.
    pub(super) fn json(&self) -> Option<serde_json::Value> {
        Some(match self {
            Self::Signed(value) => (*value).into(),
            Self::Unsigned(value) => (*value).into(),
            Self::Float(value) | Self::Seconds(value) if value.is_finite() => (*value).into(),
            other => String::from_utf8_lossy(&other.bytes().ok()??).into(),
        })
    }

    /// The value as unix seconds: a time, a number of seconds, or a text with an ISO 8601 date or a number.
    pub(super) fn seconds(&self) -> std::result::Result<Option<f64>, (BadRecord, String)> {
        #[expect(clippy::cast_precision_loss, reason = "a double has seconds for ever")]
        let seconds = match self {
            Self::Null => return Ok(None),
            Self::Seconds(seconds) | Self::Float(seconds) => Some(*seconds),
            Self::Signed(seconds) => Some(*seconds as f64),
            Self::Unsigned(seconds) => Some(*seconds as f64),
            Self::Decimal(number, scale) => decimal(*number, *scale).parse().ok(),
            Self::Bytes(text) | Self::Fixed(text) => {
                if text.trim_ascii().is_empty() {
                    return Ok(None);
                }
                let seconds = std::str::from_utf8(text).ok().and_then(instant::of_text);
                return seconds.map(Some).ok_or_else(|| (BadRecord::BadTs, no_time(text)));
            }
            Self::Bool(_) | Self::Uuid(_) | Self::List(_) => None,
        };
        let seconds = seconds.filter(|seconds| seconds.is_finite());
        seconds.map(Some).ok_or_else(|| {
            let value = self.bytes().ok().flatten().unwrap_or_default();
            (BadRecord::BadTs, format!("found {}", found(&value)))
        })
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
            assert_eq!(decimal(big_endian(bytes).unwrap(), scale), text, "{bytes:?}");
        }
        assert_eq!(decimal(10_i128.pow(38) - 1, 0), "9".repeat(38));
        assert_eq!((big_endian(&[]), big_endian(&[1; 17])), (None, None));
        let mut large = [0; 17];
        large[1] = 0x80;
        assert_eq!(big_endian(&large), None, "its sign is in the byte before");
    }
}
