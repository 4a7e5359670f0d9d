//! Rows as a Parquet file: columns of strings, of 64-bit integers and of doubles, compressed with zstd, with
//! statistics.
//!
//! Rows are gathered until they take [`GROUP_BYTES`], and are a row group then. The footer, without which
//! nobody can read the file, is written when the output is finished: a Parquet file is whole at the end, or
//! none.

use std::fmt;
use std::io::{self, BufRead, Write};
use std::sync::Arc;

use parquet::basic::{Compression, LogicalType, Repetition, Type as Physical, ZstdLevel};
use parquet::data_type::{ByteArray, ByteArrayType, DoubleType, Int64Type};
use parquet::errors::ParquetError;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::SerializedFileWriter;
use parquet::schema::types::Type;

use super::rows::{Cell, Holds, Row, RowKind, Rows};
use crate::mark::{Mark, Standing};

/// Bytes of cells from which on, inclusive, rows are written as a group.
const GROUP_BYTES: usize = 64 << 20;

/// What a cell takes beside its text, in bytes, about.
const CELL_BYTES: usize = 40;

/// Rows as a Parquet file, which is whole once it is finished.
pub struct Parquet<W: Write + Send> {
    /// None once it is finished.
    writer: Option<SerializedFileWriter<W>>,
    columns: Vec<Column>,
    bytes: usize,
}

/// The cells of a column that are not written yet.
struct Column {
    holds: Holds,
    values: Values,
    /// Of each row, whether it has a value; only where some have none.
    present: Vec<i16>,
}

enum Values {
    Text(Vec<ByteArray>),
    Whole(Vec<i64>),
    Real(Vec<f64>),
}

impl<W: Write + Send> Parquet<W> {
    /// Writes rows of a kind.
    ///
    /// # Errors
    /// Those of the destination.
    pub fn new(out: W, kind: RowKind) -> io::Result<Self> {
        let columns = kind.columns();
        let fields = columns.iter().map(|(name, holds)| field(name, *holds)).collect::<Result<_, _>>();
        let schema = Type::group_type_builder("dupflow").with_fields(fields.map_err(told)?).build();
        let properties = WriterProperties::builder()
            .set_compression(Compression::ZSTD(ZstdLevel::default()))
            .set_created_by(format!("dupflow {}", env!("CARGO_PKG_VERSION")))
            .build();
        let schema = Arc::new(schema.map_err(told)?);
        let writer = SerializedFileWriter::new(out, schema, Arc::new(properties)).map_err(told)?;
        let columns = columns.into_iter().map(|(_, holds)| Column::new(holds)).collect();
        Ok(Self { writer: Some(writer), columns, bytes: 0 })
    }

    /// Writes the rows that are gathered.
    fn write_group(&mut self) -> io::Result<()> {
        let Some(writer) = &mut self.writer else { return Ok(()) };
        if std::mem::take(&mut self.bytes) == 0 {
            return Ok(());
        }
        let mut group = writer.next_row_group().map_err(told)?;
        for column in &mut self.columns {
            let mut next = group.next_column().map_err(told)?;
            let Some(to) = &mut next else { return Err(io::Error::other("a column is missing")) };
            let present = column.is_optional().then_some(&*column.present);
            match &column.values {
                Values::Text(values) => to.typed::<ByteArrayType>().write_batch(values, present, None),
                Values::Whole(values) => to.typed::<Int64Type>().write_batch(values, present, None),
                Values::Real(values) => to.typed::<DoubleType>().write_batch(values, present, None),
            }
            .map_err(told)?;
            if let Some(written) = next {
                written.close().map_err(told)?;
            }
            *column = Column::new(column.holds);
        }
        group.close().map_err(told)?;
        Ok(())
    }
}

impl Column {
    fn new(holds: Holds) -> Self {
        let values = match holds {
            Holds::Text | Holds::MaybeText => Values::Text(Vec::new()),
            Holds::Whole | Holds::MaybeWhole => Values::Whole(Vec::new()),
            Holds::Real => Values::Real(Vec::new()),
        };
        Self { holds, values, present: Vec::new() }
    }

    fn is_optional(&self) -> bool {
        matches!(self.holds, Holds::MaybeText | Holds::MaybeWhole)
    }

    /// Takes a cell; the bytes that it takes, about.
    fn push(&mut self, cell: Cell<'_>) -> io::Result<usize> {
        let is_optional = self.is_optional();
        if is_optional {
            self.present.push(i16::from(cell != Cell::Nothing));
        }
        match (&mut self.values, cell) {
            (Values::Text(values), Cell::Text(text)) => {
                values.push(ByteArray::from(text.as_bytes().to_vec()));
                return Ok(CELL_BYTES + text.len());
            }
            (Values::Whole(values), Cell::Whole(number)) => values.push(number),
            (Values::Real(values), Cell::Real(number)) => values.push(number),
            (_, Cell::Nothing) if is_optional => {}
            _ => return Err(io::Error::other("a row has a cell that is not of its column")),
        }
        Ok(CELL_BYTES)
    }
}

fn field(name: &str, holds: Holds) -> Result<Arc<Type>, ParquetError> {
    let (physical, logical) = match holds {
        Holds::Text | Holds::MaybeText => (Physical::BYTE_ARRAY, Some(LogicalType::String)),
        Holds::Whole | Holds::MaybeWhole => (Physical::INT64, None),
        Holds::Real => (Physical::DOUBLE, None),
    };
    let repetition = match holds {
        Holds::MaybeText | Holds::MaybeWhole => Repetition::OPTIONAL,
        _ => Repetition::REQUIRED,
    };
    let builder = Type::primitive_type_builder(name, physical).with_logical_type(logical);
    builder.with_repetition(repetition).build().map(Arc::new)
}

fn told(error: ParquetError) -> io::Error {
    match error {
        ParquetError::External(cause) => match cause.downcast::<io::Error>() {
            Ok(cause) => *cause,
            Err(cause) => io::Error::other(cause),
        },
        other => io::Error::other(other),
    }
}

impl<W: Write + Send> Rows for Parquet<W> {
    fn row(&mut self, row: &Row<'_>) -> io::Result<()> {
        let Self { columns, bytes, .. } = self;
        row.cells(&mut |cells| {
            for (column, cell) in columns.iter_mut().zip(cells) {
                *bytes += column.push(*cell)?;
            }
            Ok(())
        })?;
        if self.bytes >= GROUP_BYTES { self.write_group() } else { Ok(()) }
    }

    fn take_over(&mut self) -> io::Result<Standing> {
        Ok(Standing::Forgets)
    }

    fn lines(&mut self) -> io::Result<Box<dyn BufRead>> {
        Err(io::Error::new(io::ErrorKind::Unsupported, "a Parquet file is not read back"))
    }

    /// Nothing of the file can be read before its end.
    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.write_group()?;
        let Some(writer) = self.writer.take() else { return Ok(()) };
        writer.into_inner().map_err(told)?.flush()
    }
}

impl<W: Write + Send> fmt::Debug for Parquet<W> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Parquet").field("bytes", &self.bytes).finish_non_exhaustive()
    }
}
