//! Rows as a Parquet file: columns of strings, of 64-bit integers, of doubles and of flags, compressed with
//! zstd, with statistics.
//!
//! Rows are buffered until they take [`GROUP_BYTES`], and are then written as a row group. A Parquet file
//! cannot be read without its footer, which [`RowWriter::finish`] writes: the file is complete after that,
//! and unreadable before.

use std::fmt;
use std::io::{self, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::metadata::KeyValue;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use crate::sinks::rows::column::{ColumnType, OutputCell};
use crate::sinks::rows::row::{OutputRow, RowWriter};

/// Bytes of buffered cells, inclusive, at which a row group is written.
const GROUP_BYTES: usize = 64 << 20;

/// Approximate bytes of a cell besides its text.
const CELL_BYTES: usize = 40;

/// The key of the metadata that holds the provenance of the file.
const PROVENANCE: &str = "dupflow.provenance";

/// Writes rows as a Parquet file, which is readable once it is finished.
pub(super) struct ParquetRows<W: Write + Send> {
    /// `None` once the file is finished.
    writer: Option<SerializedFileWriter<W>>,
    columns: Vec<ColumnBuffer>,
    bytes: usize,
}

/// The buffered cells of a column.
struct ColumnBuffer {
    holds: ColumnType,
    values: BufferedValues,
    /// For each row, 1 if it has a value, else 0; used only in optional columns.
    present: Vec<i16>,
}

enum BufferedValues {
    Text(Vec<ByteArray>),
    Integers(Vec<i64>),
    Floats(Vec<f64>),
    Flags(Vec<bool>),
}

impl<W: Write + Send> ParquetRows<W> {
    /// Rows with these columns.
    ///
    /// # Errors
    /// Any error of the destination.
    pub(super) fn new(out: W, columns: &[(&str, ColumnType)]) -> io::Result<Self> {
        let fields = columns.iter().map(|(name, holds)| field(name, *holds)).collect::<Result<_, _>>();
        let schema = Type::group_type_builder("dupflow").with_fields(fields.map_err(io_error)?).build();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(format!("dupflow {}", env!("CARGO_PKG_VERSION")))
            .build();
        let schema = Arc::new(schema.map_err(io_error)?);
        let writer = SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(io_error)?;
        let columns = columns.iter().map(|(_, holds)| ColumnBuffer::new(*holds)).collect();
        Ok(Self { writer: Some(writer), columns, bytes: 0 })
    }

    /// Writes the buffered rows as a row group; nothing if there are none.
    fn write_group(&mut self) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        if std::mem::take(&mut self.bytes) == 0 {
            return Ok(());
        }
        let mut group = writer.next_row_group().map_err(io_error)?;
        for column in &mut self.columns {
            let mut next = group.next_column().map_err(io_error)?;
            let Some(to) = &mut next else { return Err(io::Error::other("a column is missing")) };
            let present = column.is_optional().then_some(&*column.present);
            match &column.values {
                BufferedValues::Text(values) => {
                    to.typed::<ByteArrayType>().write_batch(values, present, None)
                }
                BufferedValues::Integers(values) => {
                    to.typed::<Int64Type>().write_batch(values, present, None)
                }
                BufferedValues::Floats(values) => to.typed::<DoubleType>().write_batch(values, present, None),
                BufferedValues::Flags(values) => to.typed::<BoolType>().write_batch(values, present, None),
            }
            .map_err(io_error)?;
            if let Some(written) = next {
                written.close().map_err(io_error)?;
            }
            *column = ColumnBuffer::new(column.holds);
        }
        group.close().map_err(io_error)?;
        Ok(())
    }
}

impl ColumnBuffer {
    fn new(holds: ColumnType) -> Self {
        let values = match holds {
            ColumnType::Text | ColumnType::OptionalText => BufferedValues::Text(Vec::new()),
            ColumnType::Integer | ColumnType::OptionalInteger => BufferedValues::Integers(Vec::new()),
            ColumnType::Float | ColumnType::OptionalFloat => BufferedValues::Floats(Vec::new()),
            ColumnType::Flag => BufferedValues::Flags(Vec::new()),
        };
        Self { holds, values, present: Vec::new() }
    }

    fn is_optional(&self) -> bool {
        matches!(
            self.holds,
            ColumnType::OptionalText | ColumnType::OptionalInteger | ColumnType::OptionalFloat
        )
    }

    /// Buffers a cell. Returns its approximate size in bytes.
    fn push(&mut self, cell: OutputCell<'_>) -> io::Result<usize> {
        let is_optional = self.is_optional();
        if is_optional {
            self.present.push(i16::from(cell != OutputCell::Missing));
        }
        match (&mut self.values, cell) {
            (BufferedValues::Text(values), OutputCell::Text(text)) => {
                values.push(ByteArray::from(text.as_bytes().to_vec()));
                return Ok(CELL_BYTES + text.len());
            }
            (BufferedValues::Integers(values), OutputCell::Integer(number)) => values.push(number),
            (BufferedValues::Floats(values), OutputCell::Float(number)) => values.push(number),
            (BufferedValues::Flags(values), OutputCell::Flag(is)) => values.push(is),
            (_, OutputCell::Missing) if is_optional => {}
            _ => return Err(io::Error::other("a row has a cell that is not of its column")),
        }
        Ok(CELL_BYTES)
    }
}

fn field(name: &str, holds: ColumnType) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match holds {
        ColumnType::Text | ColumnType::OptionalText => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        ColumnType::Integer | ColumnType::OptionalInteger => (Physical::INT64, None),
        ColumnType::Float | ColumnType::OptionalFloat => (Physical::DOUBLE, None),
        ColumnType::Flag => (Physical::BOOLEAN, None),
    };
    let repetition = match holds {
        ColumnType::OptionalText | ColumnType::OptionalInteger | ColumnType::OptionalFloat => {
            Repetition::OPTIONAL
        }
        _ => Repetition::REQUIRED,
    };
    let builder = Type::primitive_type_builder(name, physical).with_logical_type(logical);
    builder.with_repetition(repetition).build().map(Arc::new)
}

fn io_error(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(cause) => *cause,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    }
}

impl<W: Write + Send> RowWriter for ParquetRows<W> {
    fn provenance(&mut self, _: &str, whole: Option<&str>) -> io::Result<()> {
        if let (Some(whole), Some(writer)) = (whole, &mut self.writer) {
            writer.append_key_value_metadata(KeyValue::new(PROVENANCE.to_owned(), whole.to_owned()));
        }
        Ok(())
    }

    fn row(&mut self, row: &dyn OutputRow) -> io::Result<()> {
        // A cluster is as many rows as it has members.
        row.cells(&mut |cells| {
            for (column, cell) in self.columns.iter_mut().zip(cells) {
                self.bytes += column.push(*cell)?;
            }
            if self.bytes >= GROUP_BYTES { self.write_group() } else { Ok(()) }
        })
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_group()?;
        let Some(writer) = self.writer.take() else { return Ok(()) };
        writer.into_inner().map_err(io_error)?.flush()
    }
}

impl<W: Write + Send> fmt::Debug for ParquetRows<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParquetRows").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
