//! Reads the lines of a feed.

use std::io::{self, BufRead};
use std::sync::Arc;

use super::super::super::folder::line_rules;
use super::InputReading;
use crate::formats::{BadRecord, InputLayout, READ_BYTES, RecordPlace, RestOfLine, line_length};
use crate::intake::{BadRecordAt, PARTITION, ReadEnd, SourceError};

impl InputReading<'_> {
    /// Reads one feed to its end, or up to a read error. The next line at or after the byte `due` is added to
    /// the index.
    pub(crate) fn feed(
        &mut self,
        name: &Arc<str>,
        layout: &InputLayout,
        reader: &mut impl BufRead,
        compressed: bool,
        due: u64,
    ) -> Result<(), ReadEnd> {
        // Lines before the first object are bad under any rules.
        let mut has_rules = false;
        let first = self.cutter.first_of_input();
        // A compressed feed cannot be read from the middle.
        let mut due = if compressed { u64::MAX } else { due };
        // Bytes of complete lines so far.
        let mut passed = 0;
        // Where the current line begins in the buffer.
        let mut start = 0;
        // `drained`: the next `fill_buf` reads the input. `waits`: that read may block, since the last one
        // returned less than a full buffer.
        let (mut drained, mut waits) = (true, false);
        loop {
            if start == self.cutter.buffer().len() && self.is_read() {
                return Ok(());
            }
            if drained && waits {
                start = self.cutter.hand_over(start)?;
            }
            let available = match reader.fill_buf() {
                Ok(available) => available,
                Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
                Err(error) => {
                    let head = self.cutter.take_line(start);
                    return self.broken_off(name, &head, compressed, &error);
                }
            };
            if drained {
                waits = available.len() < READ_BYTES;
            }
            let (line, next) = (self.cutter.line_number(), self.cutter.position().offset);
            let is_skipped = self.cutter.skips();
            let mut buffer = self.cutter.buffer();
            // The longest line, and one byte for the newline.
            let held = buffer.len() - start;
            let window = &available[..available.len().min(self.longest + 1 - held)];
            let length = line_length(window);
            buffer.extend_from_slice(&window[..length]);
            if let Some(followed) = &mut self.followed {
                followed.took(&window[..length]);
            }
            drained = length == available.len();
            reader.consume(length);

            let read = buffer.len() - start;
            if length == 0
                && let Some(followed) = &mut self.followed
                && self.until.is_none()
                && (self.cutter.is_past_line() || self.cutter.reads_to_end())
            {
                start = self.cutter.hand_over(start)?;
                if self.cutter.reads_to_end() {
                    self.cutter.queue().at_end(PARTITION);
                }
                followed.more(passed + read as u64, self.cutter.queue())?;
                continue;
            }
            let is_last = length == 0;
            if is_last && read == 0 {
                return Ok(());
            }
            buffer = self.cutter.buffer();
            let is_whole = buffer.ends_with(b"\n") || is_last;
            if is_whole {
                if line == 1 && buffer[start..].starts_with(b"\xef\xbb\xbf") {
                    buffer.drain(start..start + 3);
                }
                if passed >= due && !is_skipped {
                    due = self.places.note(passed, next, line);
                }
                passed += read as u64;
                if !has_rules
                    && let Some(rules) = line_rules(layout, self.columns, name, &buffer[start..], first)
                {
                    if rules.are_numbered() {
                        self.list.iter().for_each(|list| list.is_numbered());
                    }
                    self.cutter.set_rules(rules);
                    has_rules = true;
                }
                self.cutter.line(start, (!compressed).then_some(passed))?;
                start = self.cutter.buffer().len();
                if is_last {
                    self.ends.is_unended = true;
                    return Ok(());
                }
            } else if read > self.longest {
                let (taken, error) = self.skip_long_line(name, line, start, reader)?;
                passed += read as u64 + taken;
                start = self.cutter.buffer().len();
                drained = true;
                if let Some(error) = error {
                    return self.broken_off(name, &[], compressed, &error);
                }
            }
        }
    }

    /// Reports the line that begins at `start` in the buffer as too long, and skips the rest of it. Returns
    /// the number of bytes skipped, and the read error that ended the line, if any.
    fn skip_long_line(
        &mut self,
        name: &Arc<str>,
        line: u64,
        start: usize,
        reader: &mut impl BufRead,
    ) -> Result<(u64, Option<io::Error>), ReadEnd> {
        let head = self.cutter.take_line(start);
        let mut rest = RestOfLine::new(reader);
        if let Some(followed) = &mut self.followed {
            followed.missed();
        }
        let at = BadRecordAt {
            reason: BadRecord::TooLong,
            input: Arc::clone(name),
            place: RecordPlace::Line(line),
            cause: None,
        };
        if self.cutter.reports() {
            self.report(at, &head, &mut rest)?;
        } else {
            drop(io::copy(&mut rest, &mut io::sink()));
        }
        let (taken, error) = (rest.taken, rest.error);
        self.cutter.bad(1)?;
        Ok((taken, error))
    }

    /// Reports damage in the middle of the line that begins with `head`.
    ///
    /// # Errors
    /// If it is a read that failed: lines that are not compressed have no damage.
    fn broken_off(
        &mut self,
        name: &Arc<str>,
        head: &[u8],
        compressed: bool,
        error: &io::Error,
    ) -> Result<(), ReadEnd> {
        self.intact()?;
        if !compressed {
            return Err(SourceError::Failed { input: Arc::clone(name), what: error.to_string() }.into());
        }
        self.ends.is_broken = true;
        let (reason, cause) = (BadRecord::Truncated, Some(error.to_string()));
        if head.is_empty() {
            return self.bad_file(Arc::clone(name), reason, cause);
        }
        let place = RecordPlace::Line(self.cutter.line_number());
        let at = BadRecordAt { reason, input: Arc::clone(name), place, cause };
        if self.cutter.reports() {
            self.report(at, head, &mut io::empty())?;
        }
        Ok(self.cutter.bad(1)?)
    }
}
