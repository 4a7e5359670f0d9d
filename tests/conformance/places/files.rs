//! Files of rows.

use std::collections::BTreeMap;
use std::path::PathBuf;

use arrow_array::cast::AsArray;
use arrow_array::types::{Float64Type, Int64Type};
use arrow_array::{Array, RecordBatch};

use super::{Mark, Place, is_of_changes, mark};
use crate::cells::Answer;
use crate::model::Question;
use crate::rows::{self, Keeping, Rows, Written};

pub(crate) struct File {
    pub(crate) path: PathBuf,
    pub(crate) format: String,
    pub(crate) answer: Answer,
}

/// Cells by the name of their column.
type Cells = BTreeMap<String, String>;

impl File {
    fn mark_path(&self) -> PathBuf {
        let mut name = self.path.clone().into_os_string();
        name.push(".mark");
        name.into()
    }

    /// The length that the mark names, and the mark.
    fn marked(&self) -> Option<(usize, Mark)> {
        let text = std::fs::read_to_string(self.mark_path()).ok()?;
        let json: serde_json::Value = serde_json::from_str(&text[17..]).unwrap();
        Some((usize::try_from(json["length"].as_u64().unwrap()).unwrap(), mark(&json["mark"])))
    }
}

impl Place for File {
    fn mark(&self) -> Option<Mark> {
        self.marked().map(|(_, mark)| mark)
    }

    fn rows(&self) -> Result<Vec<(Question, Rows)>, String> {
        let of_changes = is_of_changes(&self.answer);
        let length = self.marked().map(|(length, _)| length);
        if of_changes && length.is_none() {
            return Ok(Vec::new());
        }
        let Ok(mut bytes) = std::fs::read(&self.path) else { return Ok(Vec::new()) };
        if let Some(length) = length {
            if bytes.len() < length {
                return Err(format!("the mark names {length} bytes, and there are {}", bytes.len()));
            }
            bytes.truncate(length);
        }
        let keeping = match &*self.answer.name {
            "deltas" | "cluster-deltas" => Keeping::Sum,
            "decisions" if self.answer.mode.as_deref() == Some("current") => Keeping::Last,
            _ => Keeping::All,
        };
        let cells = read(&self.format, bytes)?;
        let written = cells.into_iter().map(|cells| Written { key: None, cells: Some(cells) }).collect();
        Ok(vec![(Question::Answer(self.answer.clone()), rows::in_force(written, keeping)?)])
    }

    fn look(&self) -> String {
        let length = std::fs::metadata(&self.path).map_or(0, |found| found.len());
        format!("{length} {:?}", std::fs::read(self.mark_path()).ok())
    }

    fn lose(&self) -> bool {
        [self.path.clone(), self.mark_path()].iter().for_each(|path| drop(std::fs::remove_file(path)));
        true
    }
}

/// The rows of a file.
pub(crate) fn read(format: &str, bytes: Vec<u8>) -> Result<Vec<Cells>, String> {
    match format {
        "jsonl" => {
            let text = String::from_utf8(bytes).map_err(|error| error.to_string())?;
            Ok(text.lines().flat_map(rows::line).collect())
        }
        "csv" => {
            let mut reader = csv::Reader::from_reader(&*bytes);
            let names = reader.headers().unwrap().clone();
            let row = |row: csv::Result<csv::StringRecord>| {
                let row = row.map_err(|error| error.to_string())?;
                let of = names.iter().zip(&row);
                Ok(of.map(|(name, text)| (name.to_owned(), rows::cell(text))).collect())
            };
            reader.records().map(row).collect()
        }
        "parquet" => {
            use parquet::file::reader::{FileReader, SerializedFileReader};
            let reader = SerializedFileReader::new(bytes::Bytes::from(bytes)).map_err(|e| e.to_string())?;
            let rows = reader.get_row_iter(None).unwrap();
            let cell = |(name, field): (&String, &parquet::record::Field)| {
                let text = match field {
                    parquet::record::Field::Null => String::new(),
                    parquet::record::Field::Str(text) => text.clone(),
                    other => other.to_string(),
                };
                (name.clone(), rows::cell(&text))
            };
            Ok(rows.map(|row| row.unwrap().get_column_iter().map(cell).collect()).collect())
        }
        "arrow" => {
            let reader = arrow_ipc::reader::FileReader::try_new(std::io::Cursor::new(bytes), None);
            let reader = reader.map_err(|error| error.to_string())?;
            let names: Vec<_> = reader.schema().fields().iter().map(|field| field.name().clone()).collect();
            let mut all = Vec::new();
            for batch in reader {
                let batch: RecordBatch = batch.unwrap();
                let row = |row| {
                    let cells = names.iter().zip(batch.columns());
                    cells.map(|(name, column)| (name.clone(), rows::cell(&arrow(column, row)))).collect()
                };
                all.extend((0..batch.num_rows()).map(row));
            }
            Ok(all)
        }
        other => panic!("the suite has no format {other:?}: write how it is read back"),
    }
}

fn arrow(column: &dyn Array, row: usize) -> String {
    match column {
        _ if column.is_null(row) => String::new(),
        text if text.as_string_opt::<i32>().is_some() => text.as_string::<i32>().value(row).to_owned(),
        flag if flag.as_boolean_opt().is_some() => flag.as_boolean().value(row).to_string(),
        whole if whole.as_primitive_opt::<Int64Type>().is_some() => {
            whole.as_primitive::<Int64Type>().value(row).to_string()
        }
        float => float.as_primitive::<Float64Type>().value(row).to_string(),
    }
}
