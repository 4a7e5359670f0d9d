//! The rows of a table without quotes: each line is one.

use std::io::{BufRead as _, Read as _};

use super::super::super::bad_record::{BadRecord, MAX_RECORD_BYTES};
use super::super::super::rows::Damage;
use super::{CsvReader, KEPT, MAX_COLUMNS};

impl CsvReader {
    /// Reads the next line that is not blank into `fields` and `ends`; false at the end of the file. A line
    /// end behind an escape does not end the row.
    pub(super) fn read_line(&mut self) -> Result<bool, Damage> {
        self.ends.clear();
        loop {
            self.line = self.reader.line();
            self.raw.clear();
            loop {
                let room = (MAX_RECORD_BYTES + 3).saturating_sub(self.raw.len()) as u64;
                let read = match (&mut self.file).take(room).read_until(b'\n', &mut self.raw) {
                    Ok(read) => read,
                    Err(error) => {
                        return Err(Damage {
                            ends: true,
                            ..self.line_damage(BadRecord::Truncated, error.to_string())
                        });
                    }
                };
                if read == 0 {
                    break;
                }
                let is_ended = self.raw.ends_with(b"\n");
                self.reader.set_line(self.reader.line() + u64::from(is_ended));
                if !is_ended || !self.is_escaped_end() {
                    break;
                }
            }
            if self.line == 1 && self.raw.starts_with(b"\xef\xbb\xbf") && !self.keeps_raw {
                self.raw.drain(..3);
            }
            if self.raw.is_empty() {
                self.is_at_end = true;
                return Ok(false);
            }
            if self.raw.iter().any(|byte| !matches!(byte, b'\r' | b'\n')) {
                break;
            }
        }
        let row = self.raw.strip_suffix(b"\n").unwrap_or(&self.raw);
        self.ends_half = row.ends_with(b"\r");
        let row = row.strip_suffix(b"\r").unwrap_or(row);
        let row = if self.line == 1 { row.strip_prefix(b"\xef\xbb\xbf").unwrap_or(row) } else { row };
        if row.len() > MAX_RECORD_BYTES {
            if !self.raw.ends_with(b"\n") {
                // An error is met again by the next call.
                self.file.skip_until(b'\n').unwrap_or(0);
                self.reader.set_line(self.reader.line() + 1);
            }
            return Err(self.line_damage(BadRecord::TooLong, "a row".to_owned()));
        }
        self.fields.clear();
        let (dialect, fields, ends, quoted) =
            (self.dialect, &mut self.fields, &mut self.ends, &mut self.quoted);
        dialect.each_unquoted(row, |place| {
            quoted.push(dialect.push_unescaped(&row[place], fields));
            ends.push(fields.len());
        });
        if self.ends.len() > MAX_COLUMNS {
            return Err(self.line_damage(BadRecord::TooLong, "a row".to_owned()));
        }
        Ok(true)
    }

    /// Whether the line end of the bytes read so far is escaped.
    fn is_escaped_end(&self) -> bool {
        let Some(escape) = self.dialect.escape else { return false };
        let line = self.raw.strip_suffix(b"\n").unwrap_or(&self.raw);
        line.iter().rev().take_while(|byte| **byte == escape).count() % 2 == 1
    }

    /// The damage of the line that was read last, with its beginning.
    fn line_damage(&mut self, reason: BadRecord, cause: String) -> Damage {
        self.ends.clear();
        let head = self.raw[..self.raw.len().min(KEPT)].to_vec();
        Damage { head, ..self.damage(reason, cause) }
    }
}
