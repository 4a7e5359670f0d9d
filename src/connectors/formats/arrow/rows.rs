//! The rows of an Arrow file or stream.

use std::io::BufRead;
use std::sync::Arc;

use arrow_array::RecordBatch;
use arrow_schema::{DataType, SchemaRef};

use super::super::bad_record::{BadRecord, RecordPlace};
use super::super::columns::{GivenColumn, KeptRow, ReadColumns, caught};
use super::super::rows::{Damage, FileRow, NextRow, RowReader, WantedColumns};
use super::super::storage::RandomAccess;
use super::cells::{ArrowColumn, ColumnPlace, paths};
use super::file::FileBatches;
use super::message::BatchError;
use super::stream::StreamBatches;

/// The batches of an input.
pub(super) enum Batches {
    File(FileBatches),
    Stream(StreamBatches),
}

impl Batches {
    pub(super) fn of_file(file: Arc<dyn RandomAccess>) -> Self {
        Self::File(FileBatches::new(file))
    }

    pub(super) fn of_stream(bytes: Box<dyn BufRead + Send>) -> Self {
        Self::Stream(StreamBatches::new(bytes))
    }

    fn schema(&mut self) -> Result<SchemaRef, BatchError> {
        match self {
            Self::File(file) => file.schema(),
            Self::Stream(stream) => stream.schema(),
        }
    }

    fn next(&mut self) -> Result<Option<RecordBatch>, BatchError> {
        match self {
            Self::File(file) => file.next(),
            Self::Stream(stream) => stream.next(),
        }
    }
}

/// Reads one batch after another; a batch is in memory as a whole.
pub(super) struct ArrowRows {
    batches: Batches,
    wanted: WantedColumns,
    places: Option<Places>,
    batch: Option<ReadColumns<ArrowColumn>>,
    /// Unread rows of the batch.
    left: usize,
    /// The number of the next row, from 0.
    row: u64,
}

/// Where the wanted columns are.
struct Places {
    id: Option<ColumnPlace>,
    text: ColumnPlace,
    given: Option<GivenColumn>,
    ts: Option<ColumnPlace>,
    op: Option<ColumnPlace>,
    fields: Vec<Option<ColumnPlace>>,
}

impl ArrowRows {
    pub(super) fn new(batches: Batches, wanted: WantedColumns) -> Self {
        Self { batches, wanted, places: None, batch: None, left: 0, row: 0 }
    }

    /// The wanted columns by the schema.
    fn places(&mut self) -> Result<Places, BatchError> {
        let schema = self.batches.schema()?;
        let find = |path: &str| ColumnPlace::find(schema.fields(), path);
        let mut names = Vec::new();
        paths(schema.fields(), "", &mut names);
        let wanted = &self.wanted;
        if let Some(missing) = wanted.missing(|name| find(name).is_some(), &names) {
            return Err(missing);
        }
        let Some(text) = find(&wanted.text) else {
            return Err((BadRecord::MissingText, "it has no columns".to_owned()));
        };
        if wanted.given.is_some() && text.lists > 1 {
            let what = format!("the column {:?} holds lists of lists, which are no features", wanted.text);
            return Err((BadRecord::BadFeatures, what));
        }
        let given = wanted.given.map(|given| {
            let list = if text.lists > 0 { "a list of " } else { "" };
            let words = ["UInt64", "FixedSizeBinary"];
            GivenColumn::new(given, &wanted.text, &format!("{list}{}", text.kind), words)
        });
        let places = Places {
            id: wanted.id.as_deref().and_then(find),
            given,
            ts: find(&wanted.ts),
            op: Some(&wanted.op).filter(|op| !op.is_empty()).and_then(|op| find(op)),
            fields: wanted.fields.iter().map(|field| find(field)).collect(),
            text,
        };
        let Places { id, ts, op, fields, .. } = &places;
        let named = [(id, wanted.id.as_ref()), (ts, Some(&wanted.ts)), (op, Some(&wanted.op))];
        let named = named.into_iter().chain(fields.iter().zip(wanted.fields.iter().map(Some)));
        let named = named.filter_map(|(place, name)| Some((place.as_ref()?, name?)));
        let what = |kind: &DataType, name: &String| {
            format!("the column {name:?} is {kind}, which is not read: cast it")
        };
        let unread = named.chain([(&places.text, &wanted.text)]).find(|(place, _)| !place.is_read());
        match unread.map(|(place, name)| (BadRecord::Unreadable, what(&place.kind, name))) {
            Some(error) => Err(error),
            None => Ok(places),
        }
    }

    /// Why it cannot be read, by its schema.
    pub(super) fn refusal(mut self) -> Option<String> {
        caught("Arrow", || self.places().err().map(|(_, why)| why)).unwrap_or_else(Some)
    }

    /// Makes the next batch that has rows the present one; false at the end.
    fn advance(&mut self) -> Result<bool, BatchError> {
        if self.places.is_none() {
            self.places = Some(self.places()?);
        }
        loop {
            let Some(batch) = self.batches.next()? else { return Ok(false) };
            let Some(Places { id, text, given, ts, op, fields }) = &self.places else { return Ok(false) };
            let column = |place: &Option<ColumnPlace>| place.as_ref().map(|at| at.in_batch(&batch, false));
            self.left = batch.num_rows();
            self.batch = Some(ReadColumns {
                id: column(id),
                text: text.in_batch(&batch, given.is_some()),
                has_text: true,
                given: given.clone(),
                ts: column(ts),
                op: column(op),
                fields: fields.iter().map(column).collect(),
            });
            if self.left > 0 {
                return Ok(true);
            }
        }
    }
}

impl RowReader for ArrowRows {
    fn next(&mut self, row: &mut FileRow) -> Result<NextRow, Damage> {
        *row = FileRow::default();
        if self.left == 0 {
            let advanced = caught("Arrow", || self.advance());
            let advanced = advanced.unwrap_or_else(|panic| Err((BadRecord::Unreadable, panic)));
            let damage = |(reason, cause): BatchError| Damage {
                reason,
                head: KeptRow::new(Some(self.row), reason, Some(&cause)).line(),
                place: if self.row == 0 { RecordPlace::Whole } else { RecordPlace::From(self.row) },
                cause: Some(cause),
                ends: true,
            };
            if !advanced.map_err(damage)? {
                return Ok(NextRow::End);
            }
        }
        let Some(batch) = &mut self.batch else { return Ok(NextRow::End) };
        let read = batch.read(row, self.row);
        batch.text.row += 1;
        batch.others().for_each(|column| column.row += 1);
        self.left -= 1;
        self.row += 1;
        read.map(|()| NextRow::Row)
    }

    fn notes(&self) -> Vec<String> {
        let is_cut = matches!(&self.batches, Batches::Stream(stream) if stream.may_be_cut());
        let note = "the stream has no mark of its end: if its writer did not finish, rows are missing";
        is_cut.then(|| note.to_owned()).into_iter().collect()
    }
}
