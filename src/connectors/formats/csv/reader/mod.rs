//! CSV and TSV tables.
//!
//! A file, decompressed -> its rows. The first row names the columns; a name is compared as a whole, with its
//! dots. Fields are quoted with `"`, which is doubled inside; a quoted field may contain line ends. Blank
//! lines are not rows. An empty cell in the column of the id, the time or the operation means that there is
//! none, and so does `\N` or `NULL` without quotes in any column. The time is in unix seconds or an ISO 8601
//! date.
//!
//! A row with a number of fields different from the first row is bad, and so is a row whose quoted field is
//! still open at the end of the file. So is one with a quote that seems to be none, since it encloses what
//! looks like further rows, unless the user has named the quote. A file that is truncated at the end of a row
//! cannot be distinguished from a complete one.
//!
//! A bad row is kept completely, as a row; of one that is too long, the beginning is kept.

mod lines;
#[cfg(test)]
mod tests;

use std::fmt;
use std::io::{self, BufRead};

use csv_core::{ReadRecordResult, Reader, ReaderBuilder};
use memchr::memchr;

use super::super::bad_record::{BadRecord, MAX_RECORD_BYTES, RecordPlace};
use super::super::dialect::{Dialect, QuoteFlaws, is_null};
use super::super::rows::{Damage, FileRow, NextRow, RowReader, RowText, WantedColumns, found, no_time};
use super::findings::{Findings, QUOTE_ADVICE};
use crate::instant;

/// Maximum number of columns, inclusive.
const MAX_COLUMNS: usize = 1 << 16;

/// Bytes that are kept of a row that is too long.
const KEPT: usize = 256;

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
    /// The bytes of the present row in the file, with blank lines before it, where they are kept or the row
    /// does not end in the bytes that were read with its beginning.
    raw: Vec<u8>,
    keeps_raw: bool,
    /// Whether each cell of the present row is in quotes, or has escapes; empty if none is.
    quoted: Vec<bool>,
    flaws: QuoteFlaws,
    /// Whether the rows so far show that the table is written with quotes.
    is_written: bool,
    /// Whether the row before ended with a carriage return alone, in a table whose first row did not.
    is_behind_return: bool,
    findings: Findings,
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
            let why = if self.flaws.swallowed > 0 {
                format!("; a cell in quotes has line ends: {QUOTE_ADVICE}")
            } else if self.findings.has_feeds && (self.is_behind_return || self.ends_half) {
                "; a carriage return alone ends a row, and cells that have one have to be in quotes"
                    .to_owned()
            } else {
                String::new()
            };
            let cause = format!("{} fields in a table of {} columns{why}", self.ends.len(), columns.count);
            return Err(self.damage(BadRecord::Unreadable, cause));
        }
        if self.flaws.swallowed > 0 {
            let cause = format!(
                "a cell in quotes has {} line ends and what looks like rows; {QUOTE_ADVICE}; if it has \
                 quotes, name them: --csv-quote '\"'",
                self.flaws.swallowed
            );
            return Err(self.damage(BadRecord::OpenQuote, cause));
        }
        let wanted = [columns.id, Some(columns.text), columns.ts, columns.op].into_iter().flatten();
        let nulls =
            wanted.chain(columns.fields.iter().flatten().copied()).filter(|at| self.is_null(*at)).count();
        let is_text_null = self.is_null(columns.text);
        let cell = |at: Option<usize>| {
            let at = at.filter(|at| nulls == 0 || !self.is_null(*at));
            at.map_or(&[][..], |at| self.cell(at))
        };
        let text = |at| std::str::from_utf8(cell(at)).map(str::trim).unwrap_or("?");
        row.text = match text(columns.op) {
            "" | "upsert" if is_text_null => RowText::Missing,
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
        let line = self.line;
        if nulls > 0 {
            self.findings.null.add(nulls, line);
        }
        match row.flaw() {
            Some((BadRecord::MissingText, _)) => Err(self.damage(BadRecord::MissingText, "it is NULL")),
            Some((reason, cause)) => Err(Damage { cause, ..self.damage(reason, "") }),
            None => Ok(NextRow::Row),
        }
    }

    fn notes(&self) -> Vec<String> {
        self.findings.notes()
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
        let Dialect { delimiter, escape, quote, .. } = dialect;
        let mut builder = ReaderBuilder::new();
        builder.delimiter(delimiter).escape(escape).quoting(quote.is_some()).quote(quote.unwrap_or(b'"'));
        Self {
            file,
            reader: builder.build(),
            dialect,
            names: columns.clone(),
            columns: None,
            fields: vec![0; 64 << 10],
            ends: Vec::new(),
            line: 1,
            is_at_end: false,
            ends_half: false,
            raw: Vec::new(),
            keeps_raw: false,
            quoted: Vec::new(),
            flaws: QuoteFlaws::default(),
            is_written: false,
            is_behind_return: false,
            findings: Findings::default(),
        }
    }

    /// Keeps the bytes of rows, and reads the first row.
    ///
    /// # Errors
    /// As for the first call of [`RowReader::next`], which then returns the same.
    pub(crate) fn keep_raw(&mut self) -> Result<(), Damage> {
        self.keeps_raw = true;
        self.columns = self.first_row()?;
        Ok(())
    }

    /// The bytes of the row that was read last, without its line end and blank lines before it.
    pub(crate) fn raw(&self) -> &[u8] {
        let raw = without_blank_lines(&self.raw);
        let end = raw.iter().rposition(|byte| !is_line_end(byte)).map_or(0, |last| last + 1);
        &raw[..end]
    }

    /// The line end after the row that was read last.
    pub(crate) fn line_end(&self) -> &'static [u8] {
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
        let WantedColumns { id, text, ts, op, fields, .. } = &self.names;
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
            op: Some(op).filter(|op| !op.is_empty()).and_then(|op| find(op)),
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

    /// Whether a cell is NULL: it is written so, and not in quotes.
    fn is_null(&self, at: usize) -> bool {
        is_null(self.cell(at)) && !self.is_quoted(at)
    }

    fn is_quoted(&self, at: usize) -> bool {
        self.quoted.get(at).is_some_and(|is_quoted| *is_quoted)
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
            let with_nulls = cells.enumerate().map(|(at, cell)| (cell, is_null(cell) && !self.is_quoted(at)));
            self.dialect.push_row(with_nulls, &mut row);
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
        self.quoted.clear();
        if self.dialect.quote.is_none() {
            return self.read_line();
        }
        self.is_behind_return = self.ends_half;
        // The line feed after a carriage return belongs to the previous line.
        if std::mem::take(&mut self.ends_half)
            && self.file.fill_buf().is_ok_and(|rest| rest.starts_with(b"\n"))
        {
            self.file.consume(1);
            self.reader.set_line(self.reader.line() + 1);
            self.is_behind_return = false;
            self.findings.has_feeds = true;
        }
        if self.is_behind_return && self.file.fill_buf().is_ok_and(|rest| !rest.is_empty()) {
            self.findings.returns.add(1, self.line);
        }
        self.line = self.reader.line();
        self.raw.clear();
        self.flaws = QuoteFlaws::default();
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
            (length, count) = (length + written, count + ended);
            let is_whole = matches!(result, ReadRecordResult::Record);
            if self.keeps_raw || !is_whole && !is_too_long || !self.raw.is_empty() {
                self.raw.extend_from_slice(if self.is_at_end { &[] } else { &input[..read] });
            }
            self.findings.has_feeds |= is_whole && !self.is_at_end && !self.ends_half;
            if is_whole && let Some(quote) = self.dialect.quote {
                let row = without_blank_lines(if self.raw.is_empty() { &input[..read] } else { &self.raw });
                if memchr(quote, row).is_some() {
                    let columns = self.columns.as_ref().map_or(0, |columns| columns.count);
                    let known = if self.is_written { 0 } else { columns };
                    self.flaws = self.dialect.examine(row, known, &mut self.quoted);
                    // Tables without quotes have none around the names of columns.
                    self.is_written |= match columns {
                        0 => self.quoted.contains(&true),
                        columns => self.flaws.is_written && count == columns,
                    };
                }
            }
            if !self.is_at_end {
                self.file.consume(read);
            }
            match result {
                // Blank lines after a row are read with the next one.
                ReadRecordResult::InputEmpty if length + count == 0 && !is_too_long && !self.is_at_end => {}
                ReadRecordResult::InputEmpty if self.is_at_end => {
                    let is_open = length + count > 0 || is_too_long;
                    // Without the line end that was added.
                    self.end_at(count, length.saturating_sub(written));
                    let cause = format!("a quoted field is open at the end of the file; {QUOTE_ADVICE}");
                    let damage = || self.damage(BadRecord::Truncated, cause.clone());
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
                        if !self.keeps_raw {
                            self.raw = Vec::new();
                        }
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
                    let line = self.line;
                    if !self.dialect.is_examined {
                        self.flaws = QuoteFlaws::default();
                    } else if self.flaws.swallowed > 0 {
                        self.findings.swallowed.add(self.flaws.swallowed, line);
                    } else if self.flaws.is_stray {
                        self.findings.stray.add(1, line);
                    }
                    return Ok(matches!(result, ReadRecordResult::Record));
                }
            }
        }
    }
}

fn is_line_end(byte: &u8) -> bool {
    matches!(byte, b'\r' | b'\n')
}

fn without_blank_lines(row: &[u8]) -> &[u8] {
    &row[row.iter().take_while(|byte| is_line_end(byte)).count()..]
}

/// A delimiter as the user types it.
fn shown(delimiter: u8) -> String {
    if delimiter == b'\t' { "tab".to_owned() } else { char::from(delimiter).to_string() }
}
