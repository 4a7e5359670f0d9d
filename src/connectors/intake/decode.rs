//! Decodes batches into events, on the workers.

use std::io;
use std::sync::Arc;

use super::bad_records::{BadRecords, InputTally};
use super::batch;
use super::batch::{Batch, FileDocument, Payload, RecordLine};
use super::error::{BadRecordAt, SourceError};
use crate::digest::StreamDigest;
use crate::formats::feed::LineReader;
use crate::formats::{
    BadRecord, KeyedRecords, MAX_RECORD_BYTES, NoText, RecordPlace, ShapeReader, read_text,
};
use dupflow_core::doc::fields::{FieldRules, RawValue};
use dupflow_core::doc::{DocEvent, Letter, Position, without_separators};
use dupflow_core::text::TextColumns;

/// Decodes batches into events. Its buffers are reused.
#[derive(Debug)]
pub struct Decoder {
    lines: LineReader,
    file: Vec<u8>,
    columns: TextColumns,
    own: FieldRules,
    /// The shape of the last keyed records; a source has only one.
    shape: Option<ShapeReader>,
}

impl Decoder {
    /// A decoder with empty buffers. It reads these columns as the text of a line or of a keyed record; a
    /// file has no further fields.
    pub fn new(columns: &TextColumns) -> Self {
        Self::with_own(columns, &FieldRules::default())
    }

    /// As [`Self::new`]; it also reads the fields of documents by these rules. A file has no columns.
    pub fn with_own(columns: &TextColumns, own: &FieldRules) -> Self {
        let lines = LineReader::new(columns, own);
        Self { lines, file: Vec::new(), columns: columns.clone(), own: own.clone(), shape: None }
    }

    /// Calls `each` with every event of the batch, in order of position. Every other record is reported to
    /// `bad`, and added to `letters` if bad records are kept with their epoch. A batch of restored documents
    /// or of watches has nothing to decode.
    ///
    /// # Errors
    /// A bad record under [`OnError::Fail`](super::OnError::Fail), a document whose file fails to be
    /// read, or a dead-letter file that cannot be written. The events before that record have been passed on.
    pub fn decode(
        &mut self,
        batch: &Batch,
        bad: &BadRecords,
        letters: &mut Vec<Letter>,
        mut each: impl FnMut(Position, DocEvent<'_>),
    ) -> Result<(), SourceError> {
        letters.extend_from_slice(&batch.letters);
        let mut documents = 0;
        let mut each = |of: Position, event: DocEvent<'_>| {
            documents += u64::from(event.text.is_some());
            each(of, event);
        };
        let mut out = Decoded { batch, bad, letters, each: &mut each };
        match &batch.payload {
            Payload::Kept(_) | Payload::Watched(_) => {}
            Payload::Lines { bytes, first_line, first, rules } => {
                self.lines.set_rules(rules);
                for line in batch::records(bytes, *first_line, *first) {
                    self.decode_line(&line, &mut out)?;
                }
            }
            Payload::Files { files, first } => {
                for (offset, file) in (*first..).zip(files) {
                    self.decode_file(file, offset, &mut out)?;
                }
            }
            Payload::Records(records) => self.decode_records(records, &mut out)?,
            Payload::Events { events, first } => {
                for (offset, event) in (*first..).zip(events.iter()) {
                    match (self.columns.given, &event.text) {
                        (Some(given), Some(text)) if !given.reads(text) => {
                            let (reason, raw) = (BadRecord::BadFeatures, text.as_bytes());
                            let letter = out.bad.letter(|| out.letter(offset, reason, None, Some(raw)));
                            out.letters.extend(letter);
                            out.report(reason, RecordPlace::Record(offset), None, raw)?;
                        }
                        _ => out.event(offset, event),
                    }
                }
            }
        }
        if documents > 0 {
            bad.tally(&batch.input, &InputTally { documents, ..InputTally::default() });
        }
        Ok(())
    }

    fn decode_line(&mut self, line: &RecordLine<'_>, out: &mut Decoded<'_>) -> Result<(), SourceError> {
        let reason = match self.lines.read(line.bytes, line.offset) {
            Ok(event) => {
                out.event(line.offset, event);
                return Ok(());
            }
            Err(reason) => reason,
        };
        let raw = line.bytes.strip_suffix(b"\n").unwrap_or(line.bytes);
        let letter = out.bad.letter(|| out.letter(line.offset, reason, None, Some(raw)));
        out.letters.extend(letter);
        let is_first = out.bad.is_first(&out.batch.input, reason);
        let cause = is_first.then(|| self.lines.cause(reason, line.bytes)).flatten();
        out.report(reason, RecordPlace::Line(line.number), cause, raw)
    }

    fn decode_file(
        &mut self,
        file: &FileDocument,
        offset: u64,
        out: &mut Decoded<'_>,
    ) -> Result<(), SourceError> {
        let digest = |stored: &[u8]| {
            if let Some(digests) = out.bad.digests() {
                let digest = StreamDigest::default();
                digest.add(stored);
                // Only a file beyond the limit for documents has more bytes; it is a bad record.
                if stored.len() <= MAX_RECORD_BYTES || digest.add_rest(&file.path).is_ok() {
                    digests.add_document(&out.batch.input, file.id.as_str(), &digest);
                }
            }
        };
        let given = self.columns.given;
        let (reason, cause) = match read_text(&file.path, &mut self.file, digest) {
            Ok(text) if given.is_some_and(|given| !given.reads(&text)) => (BadRecord::BadFeatures, None),
            Ok(text) => {
                let has_fields = !self.columns.is_empty();
                let text = if has_fields { without_separators(&text).into_owned().into() } else { text };
                let id = file.id.clone();
                let fields = self.own.read(&id, None, |_| RawValue::Absent);
                out.event(offset, DocEvent { id, ts: None, written: None, text: Some(text), fields });
                return Ok(());
            }
            Err(NoText::Bad(reason, cause)) => (reason, cause),
            Err(NoText::Failed(what)) => {
                return Err(SourceError::Failed { input: file.path.to_string_lossy().into(), what });
            }
        };
        let input: Arc<str> = file.path.to_string_lossy().into();
        let whole = BadRecordAt { reason, input, place: RecordPlace::Whole, cause };
        let letter = out.bad.letter(|| Letter {
            input: Arc::clone(&whole.input),
            hides_records: whole.hides_records(),
            ..out.letter(offset, reason, None, None)
        });
        out.letters.extend(letter);
        out.bad.tally_bad(&out.batch.input, &whole);
        out.bad.report_file(whole)
    }

    fn decode_records(&mut self, records: &KeyedRecords, out: &mut Decoded<'_>) -> Result<(), SourceError> {
        let shape = self.shape.take().filter(|shape| shape.reads(records.shape()));
        let new = || ShapeReader::new(records.shape(), &self.columns, &self.own);
        let shape = self.shape.insert(shape.unwrap_or_else(new));
        for (place, record) in records.iter().enumerate() {
            match shape.read(&record, &records.headers(place)) {
                Ok(event) => out.event(record.offset, event),
                Err(BadRecord::UnknownOp)
                    if let Some(why) = record.value.and_then(|value| shape.skipped(value)) =>
                {
                    out.bad.skip(why);
                }
                Err(reason) => {
                    let letter = || out.letter(record.offset, reason, record.key, record.value);
                    let letter = out.bad.letter(letter);
                    out.letters.extend(letter);
                    let raw = record.value.unwrap_or_default();
                    let is_first = out.bad.is_first(&out.batch.input, reason);
                    let cause = is_first.then(|| shape.cause(reason, raw)).flatten();
                    out.report(reason, records.place(record.offset), cause, raw)?;
                }
            }
        }
        Ok(())
    }
}

/// Where the events and the bad records of a batch are passed on.
struct Decoded<'d> {
    batch: &'d Batch,
    bad: &'d BadRecords,
    letters: &'d mut Vec<Letter>,
    each: &'d mut dyn FnMut(Position, DocEvent<'_>),
}

impl Decoded<'_> {
    fn position(&self, offset: u64) -> Position {
        Position { partition: self.batch.partition, offset }
    }

    fn event(&mut self, offset: u64, event: DocEvent<'_>) {
        let position = self.position(offset);
        (self.each)(position, event);
    }

    fn letter(&self, offset: u64, reason: BadRecord, key: Option<&[u8]>, raw: Option<&[u8]>) -> Letter {
        Letter {
            input: Arc::clone(&self.batch.input),
            position: self.position(offset),
            reason: reason.reason().into(),
            key: key.map(<[u8]>::to_vec),
            raw: raw.map(<[u8]>::to_vec),
            hides_records: false,
        }
    }

    /// Counts and reports a bad record of the batch's input.
    fn report(
        &self,
        reason: BadRecord,
        place: RecordPlace,
        cause: Option<String>,
        raw: &[u8],
    ) -> Result<(), SourceError> {
        let at = BadRecordAt { reason, input: Arc::clone(&self.batch.input), place, cause };
        self.bad.tally_bad(&self.batch.input, &at);
        self.bad.report(at, raw, &mut io::empty())
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::formats::{KeyedRecord, KeyedRecords};

    #[test]
    fn records_with_keys_are_events() {
        let mut records = KeyedRecords::default();
        let mut push = |offset, ts, key: Option<&'static [u8]>, value: Option<&'static [u8]>| {
            records.push(KeyedRecord { offset, ts, key, value });
        };
        push(5, Some(7.5), Some(b"a"), Some("text é\u{1e}".as_bytes()));
        push(6, None, Some(b"a"), None);
        push(7, None, Some(b"b"), Some(b""));
        push(10, None, None, Some(b"no key"));
        push(11, None, Some(b""), Some(b"empty key"));
        push(12, None, Some(b"\xff"), Some(b"not a text's key"));
        push(13, None, Some(b"c"), Some(b"\xff"));
        push(19, None, Some(b"c"), Some(b"last"));
        let payload = Payload::Records(records);
        let batch = Batch {
            input: "topic".into(),
            partition: 3,
            records: 8,
            next: 20,
            payload,
            letters: Vec::new(),
            seen: None,
        };
        let bad = BadRecords::default();
        let mut events = Vec::new();
        let mut decode = |fields: &[String]| {
            events.clear();
            let each = |at: Position, event: DocEvent<'_>| {
                assert_eq!(at.partition, 3);
                events.push((at.offset, event.id.to_string(), event.ts, event.text.map(Into::into)));
            };
            Decoder::new(&TextColumns { further: fields.to_vec(), given: None })
                .decode(&batch, &bad, &mut Vec::new(), each)
                .unwrap();
            std::mem::take(&mut events)
        };
        let event = |at, id: &str, ts, text: Option<&str>| (at, id.to_owned(), ts, text.map(str::to_owned));
        let expected = [
            event(5, "a", Some(7.5), Some("text é\u{1e}")),
            event(6, "a", None, None),
            event(7, "b", None, None),
            event(19, "c", None, Some("last")),
        ];
        assert_eq!(decode(&[]), expected);
        assert_eq!(bad.counts(), BTreeMap::from([("bad_id", 2), ("missing_id", 1), ("not_utf8", 1)]));
        let with_fields = decode(&["title".to_owned()]);
        assert_eq!(with_fields[0].3.as_deref(), Some("text é "), "a separator in a text parts no fields");
    }

    #[test]
    fn a_batch_without_records_has_no_events() {
        let payload = Payload::Records(KeyedRecords::default());
        let batch = Batch {
            input: "topic".into(),
            partition: 3,
            records: 0,
            next: 20,
            payload,
            letters: Vec::new(),
            seen: None,
        };
        let none = |_: Position, event: DocEvent<'_>| panic!("{event:?}");
        Decoder::new(&TextColumns::default())
            .decode(&batch, &BadRecords::default(), &mut Vec::new(), none)
            .unwrap();
    }
}
