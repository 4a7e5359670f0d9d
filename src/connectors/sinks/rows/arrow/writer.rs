//! Rows as record batches of a file: columns of strings, of 64-bit integers, of doubles and of flags, not
//! compressed, so that a reader can map them.
//!
//! Rows are buffered until they take [`BATCH_BYTES`], and are then written as a batch. The footer, which
//! lists the batches, is written by [`RowWriter::finish`].

use std::io::{self, Write};
use std::sync::Arc;

use arrow_array::builder::{BooleanBuilder, Float64Builder, Int64Builder, StringBuilder};
use arrow_array::{ArrayRef, RecordBatch};
use arrow_ipc::writer::FileWriter;
use arrow_schema::{ArrowError, DataType, Field, Schema};

use crate::sinks::rows::column::{ColumnType, OutputCell};
use crate::sinks::rows::row::{OutputRow, RowWriter};

/// Bytes of buffered cells, inclusive, at which a batch is written. The text of a column has 32-bit offsets.
const BATCH_BYTES: usize = 64 << 20;

/// Approximate bytes of a cell besides its text.
const CELL_BYTES: usize = 9;

/// Writes rows as an Arrow file, which is readable once it is finished.
pub(super) struct ArrowRows<W: Write> {
    writer: FileWriter<W>,
    columns: Vec<ColumnBuilder>,
    bytes: usize,
}

/// The buffered cells of a column.
enum ColumnBuilder {
    Text(StringBuilder),
    Integers(Int64Builder),
    Floats(Float64Builder),
    Flags(BooleanBuilder),
}

impl<W: Write> ArrowRows<W> {
    /// Rows with these columns.
    ///
    /// # Errors
    /// Any error of the destination.
    pub(super) fn new(out: W, columns: &[(&str, ColumnType)]) -> io::Result<Self> {
        let fields: Vec<_> = columns.iter().map(|(name, holds)| field(name, *holds)).collect();
        let writer = FileWriter::try_new(out, &Schema::new(fields)).map_err(io_error)?;
        Ok(Self {
            writer,
            columns: columns.iter().map(|(_, holds)| ColumnBuilder::new(*holds)).collect(),
            bytes: 0,
        })
    }

    /// Writes the buffered rows as a batch; nothing if there are none.
    fn write_batch(&mut self) -> io::Result<()> {
        if std::mem::take(&mut self.bytes) == 0 {
            return Ok(());
        }
        let columns = self.columns.iter_mut().map(ColumnBuilder::finish).collect();
        let batch = RecordBatch::try_new(Arc::clone(self.writer.schema()), columns).map_err(io_error)?;
        self.writer.write(&batch).map_err(io_error)
    }
}

impl ColumnBuilder {
    fn new(holds: ColumnType) -> Self {
        match holds {
            ColumnType::Text | ColumnType::OptionalText => Self::Text(StringBuilder::new()),
            ColumnType::Integer | ColumnType::OptionalInteger => Self::Integers(Int64Builder::new()),
            ColumnType::Float | ColumnType::OptionalFloat => Self::Floats(Float64Builder::new()),
            ColumnType::Flag => Self::Flags(BooleanBuilder::new()),
        }
    }

    /// Buffers a cell. Returns its approximate size in bytes.
    fn push(&mut self, cell: OutputCell<'_>) -> io::Result<usize> {
        match (self, cell) {
            (Self::Text(values), OutputCell::Text(text)) => {
                values.append_value(text);
                return Ok(CELL_BYTES + text.len());
            }
            (Self::Integers(values), OutputCell::Integer(number)) => values.append_value(number),
            (Self::Floats(values), OutputCell::Float(number)) => values.append_value(number),
            (Self::Flags(values), OutputCell::Flag(is)) => values.append_value(is),
            // A column that is never missing refuses it with the batch.
            (Self::Text(values), OutputCell::Missing) => values.append_null(),
            (Self::Integers(values), OutputCell::Missing) => values.append_null(),
            (Self::Floats(values), OutputCell::Missing) => values.append_null(),
            _ => return Err(io::Error::other("a row has a cell that is not of its column")),
        }
        Ok(CELL_BYTES)
    }

    fn finish(&mut self) -> ArrayRef {
        match self {
            Self::Text(values) => Arc::new(values.finish()),
            Self::Integers(values) => Arc::new(values.finish()),
            Self::Floats(values) => Arc::new(values.finish()),
            Self::Flags(values) => Arc::new(values.finish()),
        }
    }
}

fn field(name: &str, holds: ColumnType) -> Field {
    let (data, is_optional) = match holds {
        ColumnType::Text => (DataType::Utf8, false),
        ColumnType::OptionalText => (DataType::Utf8, true),
        ColumnType::Integer => (DataType::Int64, false),
        ColumnType::OptionalInteger => (DataType::Int64, true),
        ColumnType::Float => (DataType::Float64, false),
        ColumnType::OptionalFloat => (DataType::Float64, true),
        ColumnType::Flag => (DataType::Boolean, false),
    };
    Field::new(name, data, is_optional)
}

/// Keeps the kind of an I/O error: the caller must recognize a closed pipe.
fn io_error(error: ArrowError) -> io::Error {
    match error {
        ArrowError::IoError(_, error) => error,
        other => io::Error::other(other),
    }
}

impl<W: Write> RowWriter for ArrowRows<W> {
    fn row(&mut self, row: &dyn OutputRow) -> io::Result<()> {
        // A cluster is as many rows as it has members.
        row.cells(&mut |cells| {
            for (column, cell) in self.columns.iter_mut().zip(cells) {
                self.bytes += column.push(*cell)?;
            }
            if self.bytes >= BATCH_BYTES { self.write_batch() } else { Ok(()) }
        })
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_batch()?;
        self.writer.finish().map_err(io_error)?;
        self.writer.flush().map_err(io_error)
    }
}
