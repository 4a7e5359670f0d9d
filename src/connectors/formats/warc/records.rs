//! The records of an archive, one after another, and the search for the next one after damage.

use std::fmt;
use std::io::BufRead;

use super::super::bad_record::{BadRecord, MAX_RECORD_BYTES};
use super::super::layout::WarcId;
use super::super::rows::{Damage, FileRow, NextRow, RowReader, WantedColumns};
use super::broken::ArchiveError;
use super::document::WarcRecord;
use super::fields::{Fields, MAX_HEAD, empty_line, lines};
use super::units::{self, RECORD, UnitReader};

/// Maximum number of bytes examined after a record.
const BEHIND: usize = 256;

/// Maximum number of bytes that are kept of a record without an end.
const KEPT: usize = 256;

/// A reader of a web archive.
pub(crate) struct Warc {
    units: UnitReader,
    columns: WantedColumns,
    id: WarcId,
    lost: PendingSearch,
    /// A record that cannot be read, complete, if its length is known.
    kept: Vec<u8>,
    /// Whether the present record was found by a search within its unit.
    was_lost: bool,
    /// Where the present record begins.
    at: u64,
    cut: u64,
    /// The bytes of the present record, decompressed and without the line ends after it, if they are kept.
    raw: Option<Vec<u8>>,
}

/// What has to be searched before the next record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum PendingSearch {
    Nothing,
    /// The next record in the unit.
    Record,
    /// The next unit.
    Unit,
}

/// Where reading continues after a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seam {
    /// A unit begins at this offset, or should.
    At(u64),
    /// At the first unit that a search from this offset finds.
    Lost(u64),
}

impl fmt::Debug for Warc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Warc").field("at", &self.at).finish_non_exhaustive()
    }
}

impl RowReader for Warc {
    fn next(&mut self, row: &mut FileRow) -> Result<NextRow, Damage> {
        *row = FileRow::default();
        self.find().and_then(|found| if found { self.record(row) } else { Ok(NextRow::End) }).map_err(
            |broken| {
                if self.kept.is_empty() {
                    let rest = self.units.rest();
                    self.kept = rest[..rest.len().min(KEPT)].to_vec();
                }
                Damage { head: std::mem::take(&mut self.kept), ..broken.damage(self.at) }
            },
        )
    }

    fn cut(&self) -> u64 {
        self.cut
    }
}

impl Warc {
    /// The documents of a file, read as a stream of its stored bytes.
    pub(crate) fn new(file: Box<dyn BufRead + Send>, columns: &WantedColumns, id: WarcId) -> Self {
        Self::from_units(UnitReader::new(file), columns, id)
    }

    /// The documents in these units.
    pub(super) fn from_units(units: UnitReader, columns: &WantedColumns, id: WarcId) -> Self {
        Self {
            units,
            columns: columns.clone(),
            id,
            lost: PendingSearch::Nothing,
            kept: Vec::new(),
            was_lost: false,
            at: 0,
            cut: 0,
            raw: None,
        }
    }

    /// Keeps the bytes of records.
    pub(crate) fn keep_raw(mut self) -> Self {
        self.raw = Some(Vec::new());
        self
    }

    /// The bytes of the record that was read last, without the line ends after it.
    pub(crate) fn raw(&self) -> &[u8] {
        self.raw.as_deref().unwrap_or_default()
    }

    /// Where the file continues after these units.
    pub(super) fn seam(&self) -> Seam {
        let end = self.units.end();
        if self.lost == PendingSearch::Unit { Seam::Lost(end) } else { Seam::At(end) }
    }

    /// Moves to the next record; false at the end of the file.
    fn find(&mut self) -> Result<bool, ArchiveError> {
        self.was_lost = false;
        loop {
            match std::mem::replace(&mut self.lost, PendingSearch::Nothing) {
                PendingSearch::Nothing => {
                    let line_ends = line_ends(self.units.rest());
                    self.units.take(line_ends);
                    if !self.units.rest().is_empty() {
                        break;
                    }
                    if !self.more()? && !self.next_unit()? {
                        return Ok(false);
                    }
                }
                // Damage during the search belongs to the same record.
                PendingSearch::Record => match self.find_in_unit() {
                    Ok(true) => {
                        self.was_lost = true;
                        break;
                    }
                    Ok(false) => {}
                    Err(broken) if broken.ends => return Err(broken),
                    Err(_) => self.lost = PendingSearch::Unit,
                },
                PendingSearch::Unit => {
                    if !self.units.search()? {
                        self.lost = PendingSearch::Unit;
                        return Ok(false);
                    }
                }
            }
        }
        self.at = self.units.offset();
        self.units.mark();
        Ok(true)
    }

    /// Moves to the next record of the unit after the present one; false if there is none.
    fn find_in_unit(&mut self) -> Result<bool, ArchiveError> {
        self.units.take(1);
        loop {
            match units::find(self.units.rest(), RECORD) {
                Ok(at) => self.units.take(at),
                Err(left) => {
                    self.units.take(self.units.rest().len() - left);
                    if !self.more()? {
                        return Ok(false);
                    }
                    continue;
                }
            }
            while self.units.rest().len() < FIRST && self.more()? {}
            if is_head(self.units.rest()) {
                return Ok(true);
            }
            self.units.take(1);
        }
    }

    fn more(&mut self) -> Result<bool, ArchiveError> {
        self.units.more().inspect_err(|_| {
            self.lost = PendingSearch::Unit;
            self.at = self.units.offset();
        })
    }

    fn next_unit(&mut self) -> Result<bool, ArchiveError> {
        self.units.next_unit().inspect_err(|_| {
            self.lost = PendingSearch::Unit;
            self.at = self.units.offset();
        })
    }

    /// Reads the present record, and moves after it.
    fn record(&mut self, row: &mut FileRow) -> Result<NextRow, ArchiveError> {
        let (head, length) = self.measured().inspect_err(|_| {
            if self.lost == PendingSearch::Nothing {
                self.lost = PendingSearch::Record;
            }
        })?;
        let (head, rest) = self.units.rest().split_at(head);
        if let Some(raw) = &mut self.raw {
            raw.clear();
            raw.extend_from_slice(head);
            raw.extend_from_slice(&rest[..length]);
        }
        let record = WarcRecord { fields: Fields::parse(head), block: &rest[..length] };
        let read = record.read(&self.columns, self.id, row);
        if read.is_err() {
            self.kept = [head, record.block].concat();
        }
        self.units.take(head.len() + length);
        let (next, is_cut) = read?;
        self.cut += u64::from(is_cut && next == NextRow::Row);
        Ok(next)
    }

    /// The lengths of the head and of the block of the present record. Returns when all of the record and a
    /// few bytes after it have been read.
    fn measured(&mut self) -> Result<(usize, usize), ArchiveError> {
        let unreadable = |cause: &str| ArchiveError::new(BadRecord::Unreadable, cause);
        let mut seen = 0;
        let head = loop {
            let rest = self.units.rest();
            let rest = &rest[..rest.len().min(MAX_HEAD)];
            if rest.len() >= RECORD.len() && !rest.starts_with(RECORD) {
                return Err(unreadable("no record begins here"));
            }
            // Without this check, each of many heads without an end would be read up to the end of the last
            // one.
            let stop = lines(rest, seen).find_map(|at| match empty_line(&rest[at..]) {
                Some(length) => Some(Ok(at + length)),
                None => (rest[at..].starts_with(RECORD) || self.was_lost && is_second_line(rest, at))
                    .then(|| Err(unreadable("another record begins in its head"))),
            });
            if let Some(stop) = stop {
                break stop?;
            }
            if rest.len() == MAX_HEAD {
                return Err(unreadable("a head longer than 1 MiB"));
            }
            // The pattern that ends a head may begin in these bytes, after a line end.
            seen = rest.len().saturating_sub(FIRST);
            if !self.more()? {
                return Err(ArchiveError::new(BadRecord::Truncated, "it ends in the head of a record"));
            }
        };
        let rest = self.units.rest();
        if version(rest).is_none() {
            return Err(unreadable("a version that is none of WARC/0.17, 0.18, 1.0 and 1.1"));
        }
        let fields = Fields::parse(&rest[..head]);
        let length = fields.text("content-length").and_then(|length| length.parse::<u64>().ok());
        let length = length.ok_or_else(|| unreadable("no Content-Length that is a number"))?;
        let length = usize::try_from(length).ok().filter(|length| *length <= MAX_RECORD_BYTES);
        let length = length.ok_or_else(|| ArchiveError::new(BadRecord::TooLong, "by its Content-Length"))?;
        let end = head + length;
        while self.units.rest().len() < end {
            if !self.more()? {
                return Err(ArchiveError::new(BadRecord::Truncated, "it ends in the block of a record"));
            }
        }
        // A record is followed by two line ends, and then by the next record or the end of the unit. One of
        // the two signs is enough.
        loop {
            let behind = &self.units.rest()[end..];
            let behind = &behind[..behind.len().min(BEHIND)];
            let line_ends = line_ends(behind);
            let lines = behind[..line_ends].iter().filter(|byte| **byte == b'\n').count();
            let next = &behind[line_ends..];
            let is_sound = lines >= 2 || next.is_empty() || next.starts_with(RECORD);
            let is_known = next.len() >= RECORD.len() || behind.len() == BEHIND;
            if is_known || !self.more()? {
                let wrong = || unreadable("its Content-Length is wrong");
                return is_sound.then_some((head, length)).ok_or_else(wrong);
            }
        }
    }
}

/// Number of bytes that show whether a record begins: `WARC/0.17`, a line end, `Content-`.
const FIRST: usize = RECORD.len() + 4 + 2 + 8;

/// Whether a record begins here: its version, and the first header.
fn is_head(bytes: &[u8]) -> bool {
    version(bytes).is_some_and(|rest| {
        let named = |name: &[u8]| rest.get(..name.len()).is_some_and(|here| here.eq_ignore_ascii_case(name));
        named(b"WARC-") || named(b"Content-")
    })
}

/// Whether the line at `at` is the second line of a record that the search would find, other than the one at
/// the beginning of these bytes.
fn is_second_line(bytes: &[u8], at: usize) -> bool {
    // The first line has between 9 (`WARC/1.0`, LF) and 11 bytes (`WARC/0.17`, CRLF).
    (RECORD.len() + 4..=RECORD.len() + 6).any(|line| at > line && is_head(&bytes[at - line..]))
}

/// The bytes after the line of a known version.
fn version(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(RECORD)?;
    let rest =
        [b"0.17".as_slice(), b"0.18", b"1.0", b"1.1"].iter().find_map(|known| rest.strip_prefix(*known))?;
    rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n"))
}

fn line_ends(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
}
