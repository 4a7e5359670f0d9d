//! Reads texts back from recorded inputs.
//!
//! Plain lines are read from the nearest point of the [index](super::index) on. A compressed file or a file
//! of rows has no points: it is read from its beginning, up to [`MOST_BYTES`] of its decompressed content,
//! which takes some seconds; texts beyond that are refused. For a folder the document's file is read, whose
//! path is the id. Its text is the present one, since only the name identifies it. Standard input and pipes
//! cannot be read twice.

use std::borrow::Cow;
use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::super::folder::line_rules;
use super::super::input::{Input, InputPlace};
use super::super::open::{Opened, Opening};
use super::index::{RecordIndex, SearchStart};
use crate::canonical_url::canonical_id;
use crate::formats::feed::{LineReader, LineRules, numbered};
use crate::formats::{
    BadRecord, FeedReader, FileRow, IdRule, MAX_RECORD_BYTES, NextRow, NoText as NoFileText, PageMemory,
    READ_BYTES, ReadFailure, RowReader, RowText, read_text,
};
use crate::intake::{FoundText, NoText, PARTITION, Texts, is_blank, of_event};
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::doc::{DocId, FIELD_SEPARATOR, Position, without_separators};
use dupflow_core::text::TextColumns;

/// The maximum of decompressed bytes that are read to find a record: 1 GiB.
const MOST_BYTES: u64 = 1 << 30;

/// Reads texts back from the inputs of an index.
pub(crate) struct FileTexts {
    places: Arc<RecordIndex>,
    columns: TextColumns,
    reader: LineReader,
    line: Vec<u8>,
    /// [`MOST_BYTES`], except in tests.
    most: u64,
}

/// The result of looking for a record.
enum SearchResult {
    /// On this line, from 1.
    Found(u64),
    /// The input ends before the record.
    Ended,
    /// The record is beyond the bytes that may be read.
    TooFar,
}

impl FileTexts {
    pub(crate) fn new(places: Arc<RecordIndex>, columns: &TextColumns) -> Self {
        let reader = LineReader::new(columns, &FieldRules::default());
        Self { places, columns: columns.clone(), reader, line: Vec::new(), most: MOST_BYTES }
    }

    /// The text of a record of a file.
    fn of_file(
        &mut self,
        path: &Path,
        from: &SearchStart,
        id: &DocId,
        record: u64,
    ) -> Result<FoundText, NoText> {
        let name = path.display();
        let gone = |error: io::Error| NoText::Gone(format!("\"{name}\" cannot be read: {error}"));
        if !path.metadata().map_err(gone)?.is_file() {
            return Err(NoText::Unsupported(format!("\"{name}\" is a pipe, which cannot be read twice")));
        }
        let (progress, waits, columns) = (Arc::default(), Arc::default(), self.columns.clone());
        let failure = ReadFailure::default();
        let opening = Opening {
            columns: &columns,
            progress: &progress,
            waits: &waits,
            failure: &failure,
            digest: None,
            durable: None,
        };
        match opening.open(&from.input).map_err(gone)? {
            Opened::Refused(why) => Err(NoText::Gone(format!("\"{name}\" cannot be read: {why}"))),
            Opened::Document(file) => self.of_document(&file.path),
            Opened::Rows(mut rows) => self.of_rows(path, &mut *rows, from, id, record),
            Opened::Lines(feed) => {
                let rules = self.rules(feed.bytes, from).map_err(gone)?;
                self.reader.set_rules(&Arc::new(rules));
                self.of_feed(path, from, id, record)
            }
        }
    }

    /// The rules for the lines of an input.
    fn rules(&mut self, mut bytes: impl BufRead, from: &SearchStart) -> io::Result<LineRules> {
        loop {
            self.line.clear();
            let length =
                bytes.by_ref().take(MAX_RECORD_BYTES as u64 + 2).read_until(b'\n', &mut self.line)?;
            if length == 0 {
                return Ok(LineRules::default());
            }
            let Input { layout, .. } = &from.input;
            if let Some(rules) = line_rules(layout, &self.columns, &from.input.name(), &self.line, from.first)
            {
                return Ok(rules);
            }
        }
    }

    /// The text of a row of a file.
    fn of_rows(
        &self,
        path: &Path,
        rows: &mut dyn RowReader,
        from: &SearchStart,
        id: &DocId,
        record: u64,
    ) -> Result<FoundText, NoText> {
        let name = path.display();
        let mut row = FileRow::default();
        let mut read = 0;
        let mut pages = PageMemory::default();
        for number in from.first..=record {
            let next = rows.next(&mut row);
            if let RowText::Is(text) = &row.text {
                read += text.len() as u64;
            }
            if next == Ok(NextRow::Row) {
                pages.hold(&row, None);
            }
            if read > self.most {
                return Err(self.too_far(path));
            }
            match next {
                Ok(NextRow::End) => break,
                Ok(NextRow::Row) if number == record => {
                    let is_numbered = from.input.layout.ids == IdRule::File;
                    let own = row.id.take().filter(|_| !is_numbered).map_or_else(
                        || numbered(&from.input.name(), record - from.first),
                        |found| match from.input.layout.canonical_url {
                            true if *found != *from.input.name().as_bytes() => canonical_id(&found),
                            _ => str::from_utf8(&found).ok().and_then(DocId::new),
                        },
                    );
                    if !pages.resolve(&mut row, &self.columns) {
                        let why =
                            format!("its record in {name:?} is a revisit of a page that is not near it");
                        return Err(NoText::Unsupported(why));
                    }
                    let RowText::Is(text) = &row.text else { break };
                    let Some(text) = str::from_utf8(text).ok().filter(|_| own.as_ref() == Some(id)) else {
                        break;
                    };
                    let mut text = self.alone(text.into()).into_owned();
                    if row.fields.iter().any(|field| !field.is_empty()) {
                        for field in &row.fields {
                            text.push(FIELD_SEPARATOR);
                            text.push_str(&without_separators(&String::from_utf8_lossy(field)));
                        }
                    }
                    return Ok(FoundText::new(&text).at(format!("{name}, row {}", record - from.first + 1)));
                }
                Err(damage) if damage.ends => break,
                Ok(_) | Err(_) => {}
            }
        }
        Err(NoText::Gone(format!(
            "record {} of \"{name}\" is not that document: the input has changed",
            record - from.first
        )))
    }

    fn too_far(&self, path: &Path) -> NoText {
        NoText::Unsupported(format!(
            "\"{}\" is read from its beginning, and the text lies behind its first {} bytes",
            path.display(),
            self.most
        ))
    }

    /// The text of a record of a feed.
    fn of_feed(
        &mut self,
        path: &Path,
        from: &SearchStart,
        id: &DocId,
        record: u64,
    ) -> Result<FoundText, NoText> {
        let name = path.display();
        let gone = |error: io::Error| NoText::Gone(format!("\"{name}\" cannot be read: {error}"));
        let (mut bytes, compressed) = opened(path, from.byte).map_err(gone)?;
        let most = if compressed { self.most } else { u64::MAX };
        let line = match self.seek(&mut bytes, from, record, most).map_err(gone)? {
            SearchResult::Found(line) => line,
            SearchResult::TooFar => return Err(self.too_far(path)),
            SearchResult::Ended if from.is_open => {
                return Err(NoText::Failed(format!("\"{name}\" has not been read so far yet")));
            }
            SearchResult::Ended => {
                return Err(NoText::Gone(format!("\"{name}\" ends before record {record}: it has changed")));
            }
        };
        let place = format!("record {record} of \"{name}\"");
        // The index points to a longer line now: the file has changed.
        let whole = if self.line.len() > MAX_RECORD_BYTES + 1 { &[][..] } else { &self.line };
        Ok(of_event(id, &place, self.reader.read(whole, record))?.at(format!("{name}:{line}")))
    }

    /// Reads up to a record, which is then in `self.line`.
    fn seek(
        &mut self,
        bytes: &mut dyn BufRead,
        from: &SearchStart,
        record: u64,
        most: u64,
    ) -> io::Result<SearchResult> {
        let mut next = from.record;
        let mut read = 0;
        for line in from.line.. {
            self.line.clear();
            // One byte more than the longest line and its end, to detect a longer one.
            let length = bytes.take(MAX_RECORD_BYTES as u64 + 2).read_until(b'\n', &mut self.line)?;
            let is_longer = length > MAX_RECORD_BYTES && !self.line.ends_with(b"\n");
            let rest = if is_longer { bytes.skip_until(b'\n')? } else { 0 };
            if length == 0 {
                return Ok(SearchResult::Ended);
            }
            if from.byte + read == 0 && self.line.starts_with(b"\xef\xbb\xbf") {
                self.line.drain(..3);
            }
            read += (length + rest) as u64;
            if is_longer || !is_blank(&self.line) {
                if next == record {
                    return Ok(SearchResult::Found(line));
                }
                next += 1;
            }
            if read >= most {
                return Ok(SearchResult::TooFar);
            }
        }
        Ok(SearchResult::Ended)
    }

    /// The text of a file of a folder.
    fn of_folder(&self, root: &Path, id: &DocId) -> Result<FoundText, NoText> {
        let Some(path) = below(root, id) else {
            return Err(NoText::Gone(format!("no file of \"{}\" has this name", root.display())));
        };
        let gone = |what: &str| NoText::Gone(format!("\"{}\" {what}", path.display()));
        let unread = |error: io::Error| gone(&format!("cannot be read: {error}"));
        if !path.metadata().map_err(unread)?.is_file() {
            return Err(gone("is no file any more"));
        }
        self.of_document(&path)
    }

    /// The text of a file that is one document.
    fn of_document(&self, path: &Path) -> Result<FoundText, NoText> {
        let gone = |what: &str| NoText::Gone(format!("\"{}\" {what}", path.display()));
        let mut bytes = Vec::new();
        let text = read_text(path, &mut bytes, |_| ()).map_err(|why| match why {
            NoFileText::Failed(cause) | NoFileText::Bad(BadRecord::Unreadable, Some(cause)) => {
                gone(&format!("cannot be read: {cause}"))
            }
            NoFileText::Bad(..) => gone("holds no document any more"),
        })?;
        Ok(FoundText::new(&self.alone(text)).at(path.display().to_string()))
    }

    /// The text of a record before its fields.
    fn alone<'t>(&self, text: Cow<'t, str>) -> Cow<'t, str> {
        if self.columns.is_empty() { text } else { without_separators(&text).into_owned().into() }
    }
}

impl Texts for FileTexts {
    fn text(&mut self, id: &DocId, position: Position) -> Result<FoundText, NoText> {
        let record = position.offset;
        let from = if position.partition == PARTITION { self.places.find(record) } else { None };
        let Some(from) = from else {
            return Err(NoText::Failed("the inputs have not been read so far yet".to_owned()));
        };
        match &from.input.place {
            InputPlace::File(path) => self.of_file(path, &from, id, record),
            InputPlace::Folder(root) => self.of_folder(root, id),
            #[cfg(feature = "object-store")]
            InputPlace::Object(_) => Err(NoText::Unsupported("a remote input is not read twice".to_owned())),
            InputPlace::Stdin | InputPlace::Memory(..) => {
                Err(NoText::Unsupported("standard input cannot be read twice".to_owned()))
            }
        }
    }
}

/// The bytes of a file from `byte` on, decompressed, and whether they were compressed.
fn opened(path: &Path, byte: u64) -> io::Result<(Box<dyn BufRead + Send>, bool)> {
    let mut file = File::open(path)?;
    if byte == 0 {
        return FeedReader::new(file).map(|feed| (feed.bytes, feed.compressed));
    }
    file.seek(SeekFrom::Start(byte))?;
    Ok((Box::new(BufReader::with_capacity(READ_BYTES, file)), false))
}

/// The path of a file below a folder; `None` if the id leads outside of it.
fn below(root: &Path, id: &DocId) -> Option<PathBuf> {
    let path = Path::new(id.as_str());
    let mut parts = path.components();
    parts.all(|part| matches!(part, Component::Normal(_))).then(|| root.join(path))
}

#[cfg(test)]
#[path = "reader_tests.rs"]
mod tests;
