//! Copies chosen rows of a file into another file of the same schema.
//!
//! Each row group gives one row group with its chosen rows, or none if it has no such row. Columns are copied
//! one after another, some rows at a time, with their levels: nesting, nulls and types are those of the file.
//! Each is compressed as in the first row group, has a dictionary if it had one there, and gets statistics.
//! The metadata of the file is copied. Page sizes, encodings and bloom filters are the writer's. Repeated
//! parts of texts are cut out where this is asked for.
//!
//! With a mark the schema has its columns too, and the metadata loses `ARROW:schema`, which would not list
//! them.

use std::io::{self, Write};
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::Ordering;

use parquet::basic::{LogicalType, Repetition, Type as Physical};
use parquet::column::reader::{ColumnReader, ColumnReaderImpl, get_column_reader};
use parquet::column::writer::{ColumnWriter, ColumnWriterImpl};
use parquet::data_type::{BoolType, ByteArray, ByteArrayType, DataType, Int64Type};
use parquet::errors::{ParquetError, Result};
use parquet::file::metadata::{ColumnChunkMetaData, ParquetMetaData};
use parquet::file::properties::WriterProperties;
use parquet::file::writer::{SerializedFileWriter, SerializedRowGroupWriter};
use parquet::schema::types::{Type, TypePtr};

use super::super::super::raw::{MarkColumns, RecordChoice, cut_text};
use super::super::super::storage::RandomAccess;
use super::bytes::{Chunks, STEP};
use super::column;
use super::footer;
use super::group::caught;
use super::pages::{HeldBytes, Pages, StepSignal};
use super::thrift::wrong;

/// The key of the metadata that has the schema in the terms of Arrow.
const ARROW_SCHEMA: &str = "ARROW:schema";

/// A file whose rows are copied.
pub(crate) struct ParquetCopy {
    file: Arc<Chunks>,
    about: ParquetMetaData,
    /// The leaf of the texts whose repeated parts are cut out.
    cut: Option<usize>,
}

/// A file that rows are copied into.
pub(crate) struct ParquetTarget {
    writer: SerializedFileWriter<Box<dyn Write + Send>>,
    marks: Option<MarkColumns>,
}

impl ParquetCopy {
    /// Reads the footer of a file.
    ///
    /// # Errors
    /// If it cannot be read.
    pub(crate) fn open(file: Arc<dyn RandomAccess>) -> io::Result<Self> {
        let file = Arc::new(Chunks(file));
        let (about, encrypted) = caught(|| footer::read(&file)).map_err(io::Error::other)?;
        if !encrypted.is_empty() {
            let why = "it is a Parquet file with encrypted columns, which are not copied: write it without \
                       encryption";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        Ok(Self { file, about, cut: None })
    }

    /// The same, and the repeated parts of the texts at this path are cut out.
    ///
    /// # Errors
    /// If there is no such column, or it has no texts that can be cut.
    pub(crate) fn with_cuts(self, path: &str) -> io::Result<Self> {
        let schema = self.about.file_metadata().schema_descr();
        let leaf = column::find(schema, path);
        let refused = match leaf.map(|leaf| schema.column(leaf)) {
            None => "is missing",
            Some(about) if about.max_rep_level() > 0 => "holds lists of texts",
            Some(about) if about.physical_type() != Physical::BYTE_ARRAY => "holds no texts of any length",
            Some(_) => return Ok(Self { cut: leaf, ..self }),
        };
        Err(io::Error::other(format!("the column {path:?} {refused}, of which no parts are cut")))
    }

    /// Number of rows, according to the footer.
    pub(crate) fn rows(&self) -> u64 {
        let rows = self.about.row_groups().iter().map(|group| u64::try_from(group.num_rows()).unwrap_or(0));
        rows.sum()
    }

    /// Number of row groups.
    pub(crate) fn groups(&self) -> usize {
        self.about.num_row_groups()
    }

    /// Number of rows of a row group.
    pub(crate) fn group_rows(&self, group: usize) -> u64 {
        u64::try_from(self.about.row_group(group).num_rows()).unwrap_or(0)
    }

    /// Whether another file has the same columns.
    pub(crate) fn has_schema_of(&self, other: &Self) -> bool {
        self.schema() == other.schema()
    }

    /// The columns as a text, equal for files of one schema.
    pub(crate) fn schema_text(&self) -> String {
        format!("{:?}", self.schema())
    }

    /// Whether the file has a column of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.schema().get_fields().iter().any(|field| field.name() == name)
    }

    fn schema(&self) -> TypePtr {
        self.about.file_metadata().schema_descr().root_schema_ptr()
    }

    /// A new file of this schema, with these columns of a mark.
    ///
    /// # Errors
    /// Any error of the destination.
    pub(crate) fn target(
        &self,
        out: Box<dyn Write + Send>,
        marks: Option<&MarkColumns>,
    ) -> io::Result<ParquetTarget> {
        let schema = match marks {
            None => self.schema(),
            Some(columns) => with_marks(&self.schema(), columns).map_err(io::Error::other)?,
        };
        let writer = SerializedFileWriter::new(out, schema, Arc::new(self.properties(marks.is_some())));
        Ok(ParquetTarget { writer: writer.map_err(io::Error::other)?, marks: marks.cloned() })
    }

    fn properties(&self, is_marked: bool) -> WriterProperties {
        let known = self.about.file_metadata().key_value_metadata();
        let keeps = |key: &str| !(is_marked && key == ARROW_SCHEMA);
        let known = known.map(|all| all.iter().filter(|entry| keeps(&entry.key)).cloned().collect());
        let mut properties = WriterProperties::builder()
            .set_key_value_metadata(known)
            .set_created_by(format!("dupflow {}", env!("CARGO_PKG_VERSION")));
        for column in self.about.row_groups().first().map_or(&[][..], |group| group.columns()) {
            let path = column.column_path().clone();
            properties = properties
                .set_column_compression(path.clone(), column.compression_codec().into())
                .set_column_dictionary_enabled(path, column.dictionary_page_offset().is_some());
        }
        properties.build()
    }

    /// Copies the chosen rows of a row group, whose first row has the number `first`. Returns their number.
    ///
    /// # Errors
    /// If the group cannot be read, or not all of its rows; any error of the destination.
    pub(crate) fn copy(
        &self,
        group: usize,
        first: u64,
        choice: &dyn RecordChoice,
        to: &mut ParquetTarget,
    ) -> io::Result<u64> {
        let copied = caught(|| self.copy_group(group, first, choice, to));
        copied.map_err(|cause| io::Error::other(format!("row group {group}: {cause}")))
    }

    fn copy_group(
        &self,
        place: usize,
        first: u64,
        choice: &dyn RecordChoice,
        to: &mut ParquetTarget,
    ) -> Result<u64> {
        let group = self.about.row_group(place);
        let rows = u64::try_from(group.num_rows())?;
        let wanted: Vec<bool> = (first..first + rows).map(|row| choice.is_chosen(row)).collect();
        let count = wanted.iter().filter(|is| **is).count();
        if count == 0 {
            return Ok(0);
        }
        let mut out = to.writer.next_row_group()?;
        for (leaf, column) in group.columns().iter().enumerate() {
            let cuts = |row: usize| choice.repeated(first + row as u64);
            let cuts: Option<Cuts<'_>> = if self.cut == Some(leaf) { Some(&cuts) } else { None };
            self.copy_column(column, &wanted, cuts, &mut out)?;
        }
        if let Some(columns) = &to.marks {
            let chosen = (first..).zip(&wanted).filter(|(_, is)| **is).map(|(row, _)| row);
            write_marks(columns, choice, &chosen.collect::<Vec<_>>(), &mut out)?;
        }
        out.close()?;
        Ok(count as u64)
    }

    fn copy_column<W: Write + Send>(
        &self,
        column: &ColumnChunkMetaData,
        wanted: &[bool],
        cuts: Option<Cuts<'_>>,
        out: &mut SerializedRowGroupWriter<'_, W>,
    ) -> Result<()> {
        let step = Arc::new(StepSignal::default());
        let pages = Pages::open(&self.file, column, wanted.len() as u64, &HeldBytes::among(1), &step)?;
        let reader = get_column_reader(column.column_descr_ptr(), Box::new(pages));
        let levels = ColumnLevels {
            most: column.column_descr().max_def_level(),
            is_list: column.column_descr().max_rep_level() > 0,
        };
        let mut to = out.next_column()?.ok_or_else(|| wrong("a column is missing"))?;
        macro_rules! copy {
            ($($kind:ident => $to:ident),*) => {
                match (reader, to.untyped()) {
                    (ColumnReader::ByteArrayColumnReader(from), ColumnWriter::ByteArrayColumnWriter(to)) => {
                        copy_values(from, to, levels, wanted, &step, |row, text| cut(cuts, row, text))?;
                    }
                    $((ColumnReader::$kind(reader), ColumnWriter::$to(to)) => {
                        copy_values(reader, to, levels, wanted, &step, |_, value| Ok(value))?;
                    })*
                    _ => return Err(wrong("a column has another type than its schema")),
                }
            };
        }
        copy!(
            BoolColumnReader => BoolColumnWriter,
            Int32ColumnReader => Int32ColumnWriter,
            Int64ColumnReader => Int64ColumnWriter,
            Int96ColumnReader => Int96ColumnWriter,
            FloatColumnReader => FloatColumnWriter,
            DoubleColumnReader => DoubleColumnWriter,
            FixedLenByteArrayColumnReader => FixedLenByteArrayColumnWriter
        );
        to.close()
    }
}

impl ParquetTarget {
    /// Bytes that have been written.
    pub(crate) fn bytes(&self) -> u64 {
        self.writer.bytes_written() as u64
    }

    /// Completes the file.
    ///
    /// # Errors
    /// Any error of the destination.
    pub(crate) fn finish(self) -> io::Result<()> {
        self.writer.into_inner().map_err(io::Error::other)?.flush()
    }
}

/// The levels of a column: the definition level of a value, and whether a row may have several.
#[derive(Clone, Copy)]
struct ColumnLevels {
    most: i16,
    is_list: bool,
}

/// The ranges that are cut out of the text of a row, by its number in the row group.
type Cuts<'c> = &'c dyn Fn(usize) -> &'c [Range<u64>];

/// A text without what is cut out of its row.
fn cut(cuts: Option<Cuts<'_>>, row: usize, text: ByteArray) -> Result<ByteArray> {
    match cuts.map(|cuts| cuts(row)) {
        None | Some([]) => Ok(text),
        Some(ranges) => Ok(cut_text(text.data(), ranges)?.into()),
    }
}

/// Copies the wanted rows of a column; `change` gets each value and its row.
fn copy_values<T: DataType>(
    mut from: ColumnReaderImpl<T>,
    to: &mut ColumnWriterImpl<'_, T>,
    levels: ColumnLevels,
    wanted: &[bool],
    step: &StepSignal,
    change: impl Fn(usize, T::T) -> Result<T::T>,
) -> Result<()> {
    let (mut defs, mut reps, mut values) = (Vec::new(), Vec::new(), Vec::new());
    let (mut kept_defs, mut kept_reps, mut kept) = (Vec::new(), Vec::new(), Vec::new());
    let (mut row, mut was_empty) = (0, false);
    while row < wanted.len() {
        step.is_new.store(true, Ordering::Relaxed);
        defs.clear();
        reps.clear();
        values.clear();
        let most = STEP.min(wanted.len() - row);
        let (records, _, count) = from.read_records(most, Some(&mut defs), Some(&mut reps), &mut values)?;
        // A step may end before its first row, so that the pages of the previous step are released.
        if records == 0 && std::mem::replace(&mut was_empty, true) {
            return Err(ParquetError::EOF(format!("a column ends {} rows early", wanted.len() - row)));
        }
        was_empty &= records == 0;
        kept_defs.clear();
        kept_reps.clear();
        kept.clear();
        let mut values = values.drain(..);
        let mut at = row;
        for level in 0..count {
            at += usize::from(level > 0 && (!levels.is_list || reps[level] == 0));
            let is_there = levels.most == 0 || defs[level] == levels.most;
            let value = if is_there { values.next() } else { None };
            if wanted.get(at) == Some(&true) {
                kept.extend(value.map(|value| change(at, value)).transpose()?);
                kept_defs.extend(defs.get(level));
                kept_reps.extend(reps.get(level));
            }
        }
        let some = |all| Some(all).filter(|_: &&[i16]| levels.most > 0);
        to.write_batch(&kept, some(&kept_defs[..]), Some(&kept_reps[..]).filter(|_| levels.is_list))?;
        row += records;
    }
    Ok(())
}

/// A schema with the columns of a mark after its own.
fn with_marks(schema: &Type, columns: &MarkColumns) -> Result<TypePtr> {
    let marks = match columns {
        MarkColumns::Clusters([cluster, kept, of]) => {
            let text = |name: &str| {
                let text = Type::primitive_type_builder(name, Physical::BYTE_ARRAY);
                text.with_logical_type(Some(LogicalType::String))
                    .with_repetition(Repetition::OPTIONAL)
                    .build()
            };
            let flag = Type::primitive_type_builder(kept, Physical::BOOLEAN);
            vec![text(cluster)?, flag.with_repetition(Repetition::REQUIRED).build()?, text(of)?]
        }
        MarkColumns::Parts(name) => {
            let byte = Type::primitive_type_builder("element", Physical::INT64);
            let part = list("element", byte.with_repetition(Repetition::REQUIRED).build()?)?;
            vec![list(name, part)?]
        }
    };
    let fields = schema.get_fields().iter().cloned().chain(marks.into_iter().map(Arc::new)).collect();
    Ok(Arc::new(Type::group_type_builder(schema.name()).with_fields(fields).build()?))
}

/// The type of lists of these elements, neither of which is ever missing.
fn list(name: &str, element: Type) -> Result<Type> {
    let elements = Type::group_type_builder("list").with_repetition(Repetition::REPEATED);
    let elements = elements.with_fields(vec![Arc::new(element)]).build()?;
    let list = Type::group_type_builder(name).with_repetition(Repetition::REQUIRED);
    list.with_logical_type(Some(LogicalType::List)).with_fields(vec![Arc::new(elements)]).build()
}

/// Writes the columns of the marks of rows.
fn write_marks<W: Write + Send>(
    columns: &MarkColumns,
    choice: &dyn RecordChoice,
    rows: &[u64],
    out: &mut SerializedRowGroupWriter<'_, W>,
) -> Result<()> {
    for place in 0..columns.names().len() {
        let mut to = out.next_column()?.ok_or_else(|| wrong("a column is missing"))?;
        match (columns, place) {
            (MarkColumns::Parts(_), _) => {
                let (mut bytes, mut defs, mut reps) = (Vec::new(), Vec::new(), Vec::new());
                for row in rows {
                    let before = defs.len();
                    for part in choice.repeated(*row) {
                        bytes.extend([part.start, part.end].map(u64::cast_signed));
                        defs.extend([2, 2]);
                        reps.extend([1, 2]);
                    }
                    if defs.len() == before {
                        defs.push(0);
                        reps.push(0);
                    }
                    reps[before] = 0;
                }
                to.typed::<Int64Type>().write_batch(&bytes, Some(&defs), Some(&reps))?;
            }
            (MarkColumns::Clusters(_), 1) => {
                let kept: Vec<bool> = rows.iter().map(|row| choice.mark(*row).is_kept).collect();
                to.typed::<BoolType>().write_batch(&kept, None, None)?;
            }
            (MarkColumns::Clusters(_), _) => {
                let marks = rows.iter().map(|row| choice.mark(*row));
                let texts = marks.map(|mark| if place == 0 { mark.cluster } else { mark.of });
                let present: Vec<i16> = texts.clone().map(|text| i16::from(text.is_some())).collect();
                let values: Vec<ByteArray> =
                    texts.flatten().map(|text| text.as_bytes().to_vec().into()).collect();
                to.typed::<ByteArrayType>().write_batch(&values, Some(&present), None)?;
            }
        }
        to.close()?;
    }
    Ok(())
}

#[cfg(test)]
#[path = "copy_tests.rs"]
mod tests;
