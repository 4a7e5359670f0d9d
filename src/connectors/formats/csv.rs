//! CSV and TSV tables.
//!
//! A file, decompressed -> its rows. The first row names the columns; a name is compared as a whole, with its
//! dots. Fields are quoted with `"`, which is doubled inside; a quoted field may contain line ends. Blank
//! lines are not rows. An empty cell in the column of the id, the time or the operation means that there is
//! none. The time is in unix seconds or an ISO 8601 date.
//!
//! A row with a number of fields different from the first row is bad, and so is a row whose quoted field is
//! still open at the end of the file. A file that is truncated at the end of a row cannot be distinguished
//! from a complete one.
//!
//! A bad row is kept completely, as a row; of one that is too long, the beginning is kept.

use std::fmt;
use std::io::{self, BufRead};

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};

use super::bad_record::{BadRecord, MAX_RECORD_BYTES, RecordPlace};
use super::rows::{Damage, FileRow, NextRow, RowReader, RowText, WantedColumns, found, no_time};
use crate::instant;

/// Maximum number of columns, inclusive.
const MAX_COLUMNS: usize = 1 << 16;

/// Bytes that are kept of a row that is too long.
const KEPT: usize = 256;

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// The separator of cells.
    pub(crate) delimiter: u8,
    /// A byte that escapes a quote inside quotes, in addition to a doubled quote. Of a table that has one, a
    /// doubled quote is read and not written: other programs may not read it there.
    pub(crate) escape: Option<u8>,
}

impl Dialect {
    /// Appends a cell, in quotes if its content needs them.
    pub(crate) fn push_cell(self, content: &[u8], out: &mut Vec<u8>) {
        let is_special = |byte: &u8| {
            matches!(byte, b'"' | b'\r' | b'\n') || *byte == self.delimiter || self.escape == Some(*byte)
        };
        if content.iter().any(is_special) {
            self.push_quoted(content, out);
        } else {
            out.extend_from_slice(content);
        }
    }

    /// Appends a cell in quotes.
    pub(crate) fn push_quoted(self, content: &[u8], out: &mut Vec<u8>) {
        out.push(b'"');
        for byte in content {
            if *byte == b'"' || self.escape == Some(*byte) {
                out.push(self.escape.unwrap_or(b'"'));
            }
            out.push(*byte);
        }
        out.push(b'"');
    }

    /// Appends cells with a delimiter between any two. A single empty one is in quotes, as it would be no row
    /// otherwise.
    pub(crate) fn push_row<'c>(self, cells: impl Iterator<Item = &'c [u8]>, out: &mut Vec<u8>) {
        let begin = out.len();
        for (place, cell) in cells.enumerate() {
            if place > 0 {
                out.push(self.delimiter);
            }
            self.push_cell(cell, out);
        }
        if out.len() == begin {
            self.push_quoted(&[], out);
        }
    }
}

/// A doubled quote is the only escape.
impl From<u8> for Dialect {
    fn from(delimiter: u8) -> Self {
        Self { delimiter, escape: None }
    }
}

/// A reader of a table.
pub(crate) struct CsvReader {
    file: Box<dyn BufRead + Send>,
    reader: Reader,
    dialect: Dialect,
    names: WantedColumns,
    /// The indices of the wanted columns, once the first row has been read.
    columns: Option<ColumnIndices>,
    /// The fields of the present row, concatenated, and the end of each.
    fields: Vec<u8>,
    ends: Vec<usize>,
    /// The line number of the present row.
    line: u64,
    is_at_end: bool,
    /// Whether the last byte was a carriage return, which a line feed may follow.
    ends_half: bool,
    /// The bytes of the present row in the file, with blank lines before it, if they are kept.
    raw: Option<Vec<u8>>,
}

/// Indices of columns, from 0.
struct ColumnIndices {
    count: usize,
    id: Option<usize>,
    text: usize,
    ts: Option<usize>,
    op: Option<usize>,
    fields: Vec<Option<usize>>,
}

impl fmt::Debug for CsvReader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("CsvReader").field("line", &self.line).finish_non_exhaustive()
    }
}

impl RowReader for CsvReader {
    fn next(&mut self, row: &mut FileRow) -> Result<NextRow, Damage> {
        *row = FileRow::default();
        if self.columns.is_none() {
            match self.first_row()? {
                Some(columns) => self.columns = Some(columns),
                None => return Ok(NextRow::End),
            }
        }
        let Some(columns) = self.read_row()?.then_some(()).and(self.columns.as_ref()) else {
            return Ok(NextRow::End);
        };
        if self.ends.len() != columns.count {
            let cause = format!("{} fields in a table of {} columns", self.ends.len(), columns.count);
            return Err(self.damage(BadRecord::Unreadable, cause));
        }
        let cell = |at: Option<usize>| at.map_or(&[][..], |at| self.cell(at));
        let text = |at| std::str::from_utf8(cell(at)).map(str::trim).unwrap_or("?");
        row.text = match text(columns.op) {
            "" | "upsert" => RowText::Is(cell(Some(columns.text)).to_vec()),
            "delete" => RowText::Deleted,
            other => {
                let cause = format!("found {}", found(other.as_bytes()));
                return Err(self.damage(BadRecord::UnknownOp, cause));
            }
        };
        row.ts = match text(columns.ts) {
            "" => None,
            ts => match instant::of_text(ts) {
                Some(ts) => Some(ts),
                None => return Err(self.damage(BadRecord::BadTs, no_time(ts.as_bytes()))),
            },
        };
        let id = cell(columns.id);
        row.id = (!id.is_empty()).then(|| id.to_vec());
        row.fields = columns.fields.iter().map(|at| cell(*at).to_vec()).collect();
        match row.flaw() {
            Some((reason, cause)) => Err(Damage { cause, ..self.damage(reason, "") }),
            None => Ok(NextRow::Row),
        }
    }
}

impl CsvReader {
    /// A reader of this file.
    pub(crate) fn new(
        file: Box<dyn BufRead + Send>,
        columns: &WantedColumns,
        dialect: impl Into<Dialect>,
    ) -> Self {
        let dialect = dialect.into();
        let Dialect { delimiter, escape } = dialect;
        Self {
            file,
            reader: ReaderBuilder::new().delimiter(delimiter).escape(escape).build(),
            dialect,
            names: columns.clone(),
            columns: None,
            fields: vec![0; 64 << 10],
            ends: Vec::new(),
            line: 1,
            is_at_end: false,
            ends_half: false,
            raw: None,
        }
    }

    /// Keeps the bytes of rows, and reads the first row.
    ///
    /// # Errors
    /// As for the first call of [`RowReader::next`], which then returns the same.
    pub(super) fn keep_raw(&mut self) -> Result<(), Damage> {
        self.raw = Some(Vec::new());
        self.columns = self.first_row()?;
        Ok(())
    }

    /// The bytes of the row that was read last, without its line end and blank lines before it.
    pub(super) fn raw(&self) -> &[u8] {
        let raw = self.raw.as_deref().unwrap_or_default();
        let is_line_end = |byte: &u8| matches!(byte, b'\r' | b'\n');
        let from = raw.iter().take_while(|byte| is_line_end(byte)).count();
        let end = raw.iter().rposition(|byte| !is_line_end(byte)).map_or(from, |last| last + 1);
        &raw[from..end]
    }

    /// The line end after the row that was read last.
    pub(super) fn line_end(&self) -> &'static [u8] {
        if self.ends_half { b"\r\n" } else { b"\n" }
    }

    /// The columns that the first row names; `None` if the file has no row.
    fn first_row(&mut self) -> Result<Option<ColumnIndices>, Damage> {
        let ends = |damage| Damage { place: RecordPlace::Whole, ends: true, ..damage };
        if !self.read_row().map_err(ends)? {
            return Ok(None);
        }
        let names: Vec<_> = (0..self.ends.len()).map(|at| self.cell(at)).collect();
        let find = |name: &str| names.iter().position(|found| *found == name.as_bytes());
        let WantedColumns { id, text, ts, op, fields, given: _ } = &self.names;
        let quoted: Vec<_> =
            names.iter().map(|name| format!("{:?}", String::from_utf8_lossy(name))).collect();
        if let Some((reason, cause)) = self.names.missing(|name| find(name).is_some(), &quoted) {
            let other = [b';', b'\t', b'|', b','].into_iter().find(|other| {
                *other != self.dialect.delimiter && names.len() == 1 && names[0].contains(other)
            });
            let hint = other.map_or_else(String::new, |other| {
                format!(
                    "; with {:?} between its columns: --csv-delimiter '{}', or csv.delimiter in a deployment",
                    char::from(other),
                    shown(other)
                )
            });
            return Err(ends(self.damage(reason, cause + &hint)));
        }
        let at = find(text).unwrap_or(0);
        let fields = fields.iter().map(|field| find(field)).collect();
        let columns = ColumnIndices {
            count: names.len(),
            id: id.as_deref().and_then(find),
            text: at,
            ts: find(ts),
            op: find(op),
            fields,
        };
        Ok(Some(columns))
    }

    /// Which wanted column the table lacks.
    pub(crate) fn lacks(mut self) -> Option<String> {
        self.first_row().err()?.lack()
    }

    fn cell(&self, at: usize) -> &[u8] {
        let from = at.checked_sub(1).map_or(0, |before| self.ends[before]);
        &self.fields[from..self.ends[at]]
    }

    /// The damage of the row that was read last.
    fn damage(&self, reason: BadRecord, cause: impl Into<String>) -> Damage {
        let head = self.written(usize::MAX);
        Damage { reason, cause: Some(cause.into()), place: RecordPlace::Line(self.line), head, ends: false }
    }

    /// The row that was read last, written as in a file, without its line end; at most `most` of its fields
    /// and of their bytes.
    fn written(&self, most: usize) -> Vec<u8> {
        let mut row = Vec::new();
        if !self.ends.is_empty() {
            let ends = self.ends.iter().take(most).map(|end| (*end).min(most));
            let cells = ends.scan(0, |from, end| Some(&self.fields[std::mem::replace(from, end)..end]));
            self.dialect.push_row(cells, &mut row);
        }
        row
    }

    /// Sets the number of complete fields, and adds the incomplete next one, which ends at `length`.
    fn end_at(&mut self, count: usize, length: usize) {
        self.ends.truncate(count);
        if length > self.ends.last().copied().unwrap_or(0) {
            self.ends.push(length);
        }
    }

    /// Reads the next row into `fields` and `ends`; false at the end of the file.
    fn read_row(&mut self) -> Result<bool, Damage> {
        if self.is_at_end {
            return Ok(false);
        }
        // The line feed after a carriage return belongs to the previous line.
        if std::mem::take(&mut self.ends_half)
            && self.file.fill_buf().is_ok_and(|rest| rest.starts_with(b"\n"))
        {
            self.file.consume(1);
            self.reader.set_line(self.reader.line() + 1);
        }
        self.line = self.reader.line();
        self.raw.iter_mut().for_each(Vec::clear);
        let (mut length, mut count) = (0, 0);
        // If true, the bytes of the row are dropped.
        let mut is_too_long = false;
        let mut beginning = Vec::new();
        self.ends.resize(self.ends.capacity().max(64), 0);
        loop {
            let input = match self.file.fill_buf() {
                Ok(input) => input,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    self.end_at(count, length);
                    return Err(Damage {
                        ends: true,
                        ..self.damage(BadRecord::Truncated, error.to_string())
                    });
                }
            };
            self.is_at_end = input.is_empty();
            // A line end after the last byte completes the last row, but not a quoted field.
            let input = if self.is_at_end { b"\n" } else { input };
            let (result, read, written, ended) =
                self.reader.read_record(input, &mut self.fields[length..], &mut self.ends[count..]);
            self.ends_half = input[..read].ends_with(b"\r");
            if !self.is_at_end {
                self.raw.iter_mut().for_each(|raw| raw.extend_from_slice(&input[..read]));
                self.file.consume(read);
            }
            (length, count) = (length + written, count + ended);
            match result {
                // Blank lines after a row are read with the next one.
                ReadRecordResult::InputEmpty if length + count == 0 && !is_too_long && !self.is_at_end => {}
                ReadRecordResult::InputEmpty if self.is_at_end => {
                    let is_open = length + count > 0 || is_too_long;
                    // Without the line end that was added.
                    self.end_at(count, length.saturating_sub(written));
                    let cause = "a quoted field is open at the end of the file";
                    let damage = || self.damage(BadRecord::Truncated, cause);
                    return match (is_open, is_too_long) {
                        (false, _) => Ok(false),
                        (true, false) => Err(damage()),
                        (true, true) => Err(Damage { head: beginning, ..damage() }),
                    };
                }
                ReadRecordResult::InputEmpty => {}
                ReadRecordResult::OutputFull if length < MAX_RECORD_BYTES => {
                    self.fields.resize((self.fields.len() * 2).min(MAX_RECORD_BYTES + 1), 0);
                }
                ReadRecordResult::OutputEndsFull if count < MAX_COLUMNS => {
                    self.ends.resize(self.ends.len() * 2, 0);
                }
                ReadRecordResult::OutputFull | ReadRecordResult::OutputEndsFull => {
                    if !is_too_long {
                        is_too_long = true;
                        let ends = self.ends.clone();
                        self.end_at(count, length);
                        beginning = self.written(KEPT);
                        self.ends = ends;
                    }
                    (length, count) = (0, 0);
                }
                ReadRecordResult::Record | ReadRecordResult::End => {
                    self.ends.truncate(count);
                    if !is_too_long && length > MAX_RECORD_BYTES {
                        is_too_long = true;
                        beginning = self.written(KEPT);
                    }
                    if is_too_long {
                        self.ends.clear();
                        return Err(Damage { head: beginning, ..self.damage(BadRecord::TooLong, "a row") });
                    }
                    return Ok(matches!(result, ReadRecordResult::Record));
                }
            }
        }
    }
}

/// A delimiter as the user types it.
fn shown(delimiter: u8) -> String {
    if delimiter == b'\t' { "tab".to_owned() } else { char::from(delimiter).to_string() }
}

#[cfg(test)]
#[path = "csv_tests.rs"]
mod tests;
