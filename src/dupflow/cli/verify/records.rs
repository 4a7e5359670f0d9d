//! The records of an output in any format, as objects.
//!
//! JSON Lines: each line but those of the provenance. CSV: each row, its cells as texts under the names of
//! the header. Parquet and Arrow: each row under the names of its columns; a missing value is left out.

use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

use serde_json::{Map, Value as Json};

/// A record: its values by name; or what stands in its place.
pub(super) type Record = Result<Map<String, Json>, String>;

/// The records of the output at `path`, in order.
///
/// # Errors
/// If it cannot be opened. What is no record is one that says so.
pub(super) fn read(path: &Path) -> anyhow::Result<Box<dyn Iterator<Item = Record>>> {
    let mut head = [0; 6];
    let length = File::open(path)?.take(6).read(&mut head)?;
    if head.starts_with(b"PAR1") {
        return rows(path);
    }
    if head == *b"ARROW1" {
        return batches(path);
    }
    let is_json = length == 0 || head[0] == b'{';
    let reader = BufReader::with_capacity(1 << 17, File::open(path)?);
    if is_json { Ok(Box::new(lines(reader))) } else { Ok(Box::new(table(reader))) }
}

fn lines(reader: impl BufRead) -> impl Iterator<Item = Record> {
    let lines = (1..).zip(reader.split(b'\n'));
    lines.filter_map(|(number, line): (u64, _)| {
        let line = match line {
            Ok(line) => line,
            Err(error) => return Some(Err(format!("line {number} cannot be read: {error}"))),
        };
        if line.starts_with(b"{\"provenance\":") || line.starts_with(b"{\"provenance_end\":") {
            return None;
        }
        Some(serde_json::from_slice(&line).map_err(|_| {
            let line = String::from_utf8_lossy(&line);
            format!("line {number} is no record: {:?}", line.chars().take(200).collect::<String>())
        }))
    })
}

fn table(reader: impl Read + 'static) -> impl Iterator<Item = Record> {
    let mut rows = csv::Reader::from_reader(reader);
    let names: Vec<String> = rows.headers().into_iter().flatten().map(str::to_owned).collect();
    rows.into_records().map(move |row| {
        let row = row.map_err(|error| format!("a row cannot be read: {error}"))?;
        let cells = names.iter().cloned().zip(row.iter().map(Json::from));
        Ok(cells.filter(|(_, cell)| *cell != "").collect())
    })
}

#[cfg(feature = "parquet")]
fn rows(path: &Path) -> anyhow::Result<Box<dyn Iterator<Item = Record>>> {
    use parquet::file::reader::SerializedFileReader;
    use parquet::record::Field;

    let reader = SerializedFileReader::new(File::open(path)?)?;
    let cell = |(name, field): (&String, &Field)| {
        let value = match field {
            Field::Null => return None,
            Field::Str(text) => Json::from(&**text),
            Field::Long(number) => Json::from(*number),
            Field::Double(number) => Json::from(*number),
            other => Json::from(other.to_string()),
        };
        Some((name.clone(), value))
    };
    Ok(Box::new(reader.into_iter().map(move |row| match row {
        Ok(row) => Ok(row.get_column_iter().filter_map(cell).collect()),
        Err(error) => Err(format!("a row cannot be read: {error}")),
    })))
}

/// A Parquet file, which this build cannot read.
#[cfg(not(feature = "parquet"))]
fn rows(path: &Path) -> anyhow::Result<Box<dyn Iterator<Item = Record>>> {
    let missing = dupflow_run::missing_feature("Parquet", "parquet");
    anyhow::bail!("{path:?} is a Parquet file, and {missing}")
}

#[cfg(feature = "arrow")]
fn batches(path: &Path) -> anyhow::Result<Box<dyn Iterator<Item = Record>>> {
    use arrow_array::cast::AsArray;
    use arrow_array::types::{Float64Type, Int64Type};
    use arrow_array::{Array, RecordBatch};
    use arrow_ipc::reader::FileReader;

    fn cell(column: &dyn Array, row: usize) -> Option<Json> {
        if column.is_null(row) {
            return None;
        }
        let text = column.as_string_opt::<i32>().map(|texts| texts.value(row).into());
        let number = || column.as_primitive_opt::<Int64Type>().map(|numbers| numbers.value(row).into());
        let float = || column.as_primitive_opt::<Float64Type>().map(|numbers| numbers.value(row).into());
        let flag = || column.as_boolean_opt().map(|flags| flags.value(row).to_string().into());
        text.or_else(number).or_else(float).or_else(flag)
    }
    fn records(batch: &RecordBatch) -> Vec<Record> {
        let schema = batch.schema();
        let names = || schema.fields().iter().map(|field| field.name());
        let record = |row| {
            let cells = names().zip(batch.columns());
            Ok(cells.filter_map(|(name, column)| Some((name.clone(), cell(column, row)?))).collect())
        };
        (0..batch.num_rows()).map(record).collect()
    }
    let reader = FileReader::try_new(File::open(path)?, None)?;
    Ok(Box::new(reader.flat_map(|batch| match batch {
        Ok(batch) => records(&batch),
        Err(error) => vec![Err(format!("a batch cannot be read: {error}"))],
    })))
}

/// An Arrow file, which this build cannot read.
#[cfg(not(feature = "arrow"))]
fn batches(path: &Path) -> anyhow::Result<Box<dyn Iterator<Item = Record>>> {
    let missing = dupflow_run::missing_feature("Arrow", "arrow");
    anyhow::bail!("{path:?} is an Arrow file, and {missing}")
}
