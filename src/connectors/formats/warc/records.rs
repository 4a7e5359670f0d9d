//! The records of an archive, one after another, and the search for the next one after damage.

use std::fmt;
use std::io::BufRead;
use std::ops::Range;

use super::super::bad_record::{BadRecord, MAX_RECORD_BYTES};
use super::super::layout::WarcRules;
use super::super::rows::{Damage, FileRow, NextRow, RowReader, WantedColumns};
use super::broken::ArchiveError;
use super::document::WarcRecord;
use super::fields::{
    FIRST, Fields, MAX_HEAD, RECORD, empty_line, is_head, is_second_line, line_ends, lines, version,
};
use super::units::{self, StreamPlace, UnitReader};

/// Maximum number of bytes examined after a record.
const BEHIND: usize = 256;

/// Maximum number of bytes that are kept of a record without an end.
const KEPT: usize = 256;

/// A reader of a web archive.
pub(crate) struct Warc {
    units: UnitReader,
    columns: WantedColumns,
    rules: WarcRules,
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
    /// The next unit, up to this byte of it; and from there on the next record in the stream.
    Seam {
        inner: u64,
        is_search: bool,
    },
    /// A record begins at this number in the stream, where a unit begins.
    Begun(u64),
    /// The next record in the stream, after the present one.
    Record,
    /// The same, from the present position on.
    Stream,
    /// The next unit.
    Unit,
}

/// Where reading continues after a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seam {
    /// A record begins here, or should; in a unit that no record of the part continues in, after line ends.
    At(StreamPlace),
    /// At the next record that a search in the stream from here on finds.
    Search(StreamPlace),
    /// At the first unit that a search from this offset finds.
    Lost(u64),
}

impl Seam {
    /// The offset of the unit.
    pub(super) fn unit(self) -> u64 {
        match self {
            Self::At(place) | Self::Search(place) => place.unit,
            Self::Lost(from) => from,
        }
    }
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
    pub(crate) fn new(
        file: Box<dyn BufRead + Send>,
        columns: &WantedColumns,
        rules: impl Into<WarcRules>,
    ) -> Self {
        Self::from_units(UnitReader::new(file), columns, rules.into())
    }

    /// The documents in these units.
    pub(super) fn from_units(units: UnitReader, columns: &WantedColumns, rules: WarcRules) -> Self {
        Self {
            units,
            columns: columns.clone(),
            rules,
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
        let next = StreamPlace { unit: self.units.end(), inner: 0 };
        let place = if self.units.rest().is_empty() { next } else { self.units.place() };
        match self.lost {
            PendingSearch::Unit => Seam::Lost(self.units.end()),
            PendingSearch::Record | PendingSearch::Stream => Seam::Search(place),
            _ => Seam::At(place),
        }
    }

    /// Begins at the end of another part of the file, in whose last unit these units begin.
    pub(super) fn at_seam(self, seam: Seam) -> Self {
        let lost = match seam {
            Seam::At(StreamPlace { inner, .. }) => PendingSearch::Seam { inner, is_search: false },
            Seam::Search(StreamPlace { inner, .. }) => PendingSearch::Seam { inner, is_search: true },
            Seam::Lost(_) => PendingSearch::Nothing,
        };
        Self { lost, ..self }
    }

    /// The first record in the stream of these units, if there is one before they end.
    pub(super) fn first_in_stream(&mut self) -> Result<Option<StreamPlace>, ArchiveError> {
        Ok(self.find_in_stream()?.then(|| self.units.place()))
    }

    /// Moves to the next record; false at the end of the file.
    fn find(&mut self) -> Result<bool, ArchiveError> {
        self.was_lost = false;
        loop {
            match std::mem::replace(&mut self.lost, PendingSearch::Nothing) {
                PendingSearch::Nothing => {
                    let line_ends = line_ends(self.units.rest());
                    self.units.take(line_ends);
                    if self.units.is_beyond() {
                        return Ok(false);
                    }
                    // As many bytes as the record before has read, if there is one.
                    if self.units.rest().len() >= RECORD.len() {
                        break;
                    }
                    if !self.more()? {
                        if !self.units.rest().is_empty() {
                            break;
                        }
                        if !self.next_unit()? {
                            return Ok(false);
                        }
                    }
                }
                PendingSearch::Seam { inner, is_search } => {
                    let moved = self.units.move_to(inner);
                    if is_search {
                        self.lost = PendingSearch::Stream;
                    }
                    if !self.noting(moved)? {
                        return Ok(false);
                    }
                }
                PendingSearch::Begun(at) => {
                    let left = at.saturating_sub(self.units.position());
                    self.units.take(usize::try_from(left).unwrap_or(usize::MAX));
                }
                PendingSearch::Record => {
                    self.units.take(1);
                    self.lost = PendingSearch::Stream;
                }
                // Damage during the search belongs to the same record.
                PendingSearch::Stream => match self.find_in_stream() {
                    Ok(true) => {
                        self.was_lost = true;
                        break;
                    }
                    Ok(false) => {
                        self.lost = PendingSearch::Stream;
                        return Ok(false);
                    }
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

    /// Moves to the next record of the stream from here on; false if there is none in the units to be read.
    fn find_in_stream(&mut self) -> Result<bool, ArchiveError> {
        loop {
            let found = units::find(self.units.rest(), RECORD);
            let passed = found.unwrap_or_else(|left| self.units.rest().len() - left);
            self.units.take(passed);
            if self.units.is_beyond() {
                return Ok(false);
            }
            if found.is_ok() && self.units.rest().len() >= FIRST {
                if is_head(self.units.rest()) {
                    return Ok(true);
                }
                self.units.take(1);
            } else if !self.more()? {
                // A record that begins at the end of a unit continues in the next one.
                let continues = !self.units.rest().is_empty();
                let is_there = if continues { self.continue_unit()? } else { self.next_unit()? };
                if !is_there && !continues {
                    return Ok(false);
                }
                if !is_there {
                    self.units.take(1);
                }
            }
        }
    }

    fn more(&mut self) -> Result<bool, ArchiveError> {
        let more = self.units.more();
        self.noting(more)
    }

    fn next_unit(&mut self) -> Result<bool, ArchiveError> {
        let next = self.units.next_unit();
        self.noting(next)
    }

    fn continue_unit(&mut self) -> Result<bool, ArchiveError> {
        let next = self.units.continue_unit();
        self.noting(next)
    }

    /// After damage of a unit the next one is searched.
    fn noting(&mut self, read: Result<bool, ArchiveError>) -> Result<bool, ArchiveError> {
        read.inspect_err(|_| {
            self.lost = PendingSearch::Unit;
            self.at = self.units.offset();
        })
    }

    /// Reads more of the present record, from the next unit if the present one has ended; false at the end of
    /// the file.
    fn more_of_record(&mut self) -> Result<bool, ArchiveError> {
        Ok(self.more()? || self.continue_unit()?)
    }

    /// Which of these bytes of the present record begins a unit, with another record.
    fn begins_within(&self, bytes: Range<usize>) -> Option<usize> {
        let begun = self.units.begun_within(bytes);
        begun.into_iter().find(|at| is_head(&self.units.rest()[*at..]))
    }

    /// Ends the present record where a unit begins with another one: its unit has only its beginning, or its
    /// length is wrong.
    fn end_at(&mut self, begins: Option<usize>, part: &str) -> Result<(), ArchiveError> {
        let Some(at) = begins else { return Ok(()) };
        self.lost = PendingSearch::Begun(self.units.position() + at as u64);
        Err(ArchiveError::new(BadRecord::Unreadable, format!("it ends in the {part} of a record")))
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
        let read = record.read(&self.columns, self.rules, row);
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
            if !self.more_of_record()? {
                self.end_at(self.begins_within(0..self.units.rest().len()), "head")?;
                return Err(ArchiveError::new(BadRecord::Truncated, "it ends in the head of a record"));
            }
        };
        self.end_at(self.begins_within(0..head), "head")?;
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
            if !self.more_of_record()? {
                self.end_at(self.begins_within(head..self.units.rest().len()), "block")?;
                return Err(ArchiveError::new(BadRecord::Truncated, "it ends in the block of a record"));
            }
        }
        // A record is followed by two line ends, and then by the next record or the end of the unit. One of
        // the two signs is enough, unless another record may begin within this one.
        let within = self.begins_within(head..end);
        loop {
            let behind = &self.units.rest()[end..];
            let behind = &behind[..behind.len().min(BEHIND)];
            let line_ends = line_ends(behind);
            let has_lines = behind[..line_ends].iter().filter(|byte| **byte == b'\n').count() >= 2;
            let next = &behind[line_ends..];
            let (is_end, is_next) = (next.is_empty(), next.starts_with(RECORD));
            let is_known = next.len() >= RECORD.len() || behind.len() == BEHIND;
            // What follows may be divided between this unit and the next one.
            let continues = !is_end && RECORD.starts_with(next) || within.is_some() && !has_lines;
            if !is_known && if continues { self.more_of_record()? } else { self.more()? } {
                continue;
            }
            if within.is_some() && !is_end && !(has_lines && is_next) {
                self.end_at(within, "block")?;
            }
            let wrong = || unreadable("its Content-Length is wrong");
            return (has_lines || is_end || is_next).then_some((head, length)).ok_or_else(wrong);
        }
    }
}
