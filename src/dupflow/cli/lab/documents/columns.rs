//! Writes generated documents as a Parquet file with the columns id, op, ts and text, in row groups of
//! [`GROUP`].

use std::io::Write;
use std::sync::Arc;

use parquet::basic::Compression;
use parquet::data_type::{ByteArray, ByteArrayType, DataType, DoubleType};
use parquet::errors::Result;
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::parser::parse_message_type;

/// Rows of a row group.
const GROUP: usize = 1000;

const SCHEMA: &str = "message documents {
    required binary id (UTF8); required binary op (UTF8); optional double ts; optional binary text (UTF8);
}";

type Out = Box<dyn Write + Send>;

/// A Parquet file that is being written.
pub(super) struct FeedColumns {
    writer: SerializedFileWriter<Out>,
    /// Rows of the next row group.
    rows: ColumnRows,
}

#[derive(Default)]
struct ColumnRows {
    ids: Vec<ByteArray>,
    ops: Vec<ByteArray>,
    times: Vec<f64>,
    /// Definition levels of `ts`: 1 if the row has a time, else 0.
    has_time: Vec<i16>,
    texts: Vec<ByteArray>,
    /// Definition levels of `text`: 1 if the row has a text, else 0.
    has_text: Vec<i16>,
}

impl FeedColumns {
    pub(super) fn new(out: Out) -> Result<Self> {
        let schema = Arc::new(parse_message_type(SCHEMA)?);
        let properties = WriterProperties::builder().set_compression(Compression::SNAPPY).build();
        let writer = SerializedFileWriter::new(out, schema, Arc::new(properties))?;
        Ok(Self { writer, rows: ColumnRows::default() })
    }

    /// Adds a row.
    pub(super) fn push(&mut self, id: &str, op: &str, ts: Option<f64>, text: Option<&str>) -> Result<()> {
        let rows = &mut self.rows;
        rows.ids.push(id.into());
        rows.ops.push(op.into());
        rows.times.extend(ts);
        rows.has_time.push(i16::from(ts.is_some()));
        rows.texts.extend(text.map(ByteArray::from));
        rows.has_text.push(i16::from(text.is_some()));
        if rows.ids.len() == GROUP { self.write_group() } else { Ok(()) }
    }

    pub(super) fn finish(mut self) -> Result<()> {
        if !self.rows.ids.is_empty() {
            self.write_group()?;
        }
        self.writer.into_inner()?.flush()?;
        Ok(())
    }

    fn write_group(&mut self) -> Result<()> {
        let ColumnRows { ids, ops, times, has_time, texts, has_text } = std::mem::take(&mut self.rows);
        let mut group = self.writer.next_row_group()?;
        put::<ByteArrayType>(&mut group, &ids, None)?;
        put::<ByteArrayType>(&mut group, &ops, None)?;
        put::<DoubleType>(&mut group, &times, Some(&has_time))?;
        put::<ByteArrayType>(&mut group, &texts, Some(&has_text))?;
        group.close().map(drop)
    }
}

/// Writes the next column.
fn put<T: DataType>(
    group: &mut SerializedRowGroupWriter<'_, Out>,
    values: &[T::T],
    are_there: Option<&[i16]>,
) -> Result<()> {
    if let Some(mut column) = group.next_column()? {
        column.typed::<T>().write_batch(values, are_there, None)?;
        column.close()?;
    }
    Ok(())
}
