//! The units of a file: gzip members or zstd frames; a plain file is one unit. Their contents are one stream.
//! Each is decompressed independently, so that damage is limited to one unit. After damage the next unit is
//! found by the magic bytes of the codec followed by `WARC/`.
//!
//! How far a damaged unit is decompressed, and therefore where the search begins after it, depends only on
//! its bytes and not on the pieces in which they are read: the size of each step follows from the steps
//! before it.

use std::collections::VecDeque;
use std::io::BufRead;
use std::ops::Range;
use zstd::stream::raw::Operation as _;

use super::super::super::bad_record::BadRecord;
use super::super::broken::ArchiveError;
use super::super::fields::RECORD;
use super::codec::{
    FIRST_PIECE, GZIP, PIECE, UnitCodec, ZSTD, frame_length, gunzip, is_skippable, step, unzstd,
};
use super::gzip;
use super::window::{Window, find};

/// Bytes of a file that are kept for a second search.
const MAX_KEPT: usize = 64 << 20;

/// Number of bytes of a damaged unit, read and written, per byte that is searched again. Without this limit,
/// units that begin inside one another and end in the same damage would each be decompressed up to it. A
/// valid unit is never within so small a part of a damaged one.
const AGAIN: u64 = 256;

/// A place in the stream: a decompressed byte of a unit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct StreamPlace {
    /// The offset of the unit in the file.
    pub(crate) unit: u64,
    /// The number of the byte in the unit.
    pub(crate) inner: u64,
}

/// A unit of which bytes are in memory.
struct BegunUnit {
    /// Its offset in the file.
    offset: u64,
    /// The number of its first byte in the stream.
    first: u64,
}

/// The units of one file, in order.
pub(crate) struct UnitReader {
    raw: Window,
    codec: UnitCodec,
    /// The output of a step. A fixed buffer, since flate2 fills the whole spare capacity of a vector with
    /// zeros before each step, which takes half of the time for short members.
    piece: Box<[u8]>,
    /// The decompressed bytes; those before `at` have been consumed.
    out: Vec<u8>,
    at: usize,
    /// The number of the first byte of `out` in the stream, which begins where units were begun anew.
    before: u64,
    /// The units that have bytes in `out`; the last one is being decompressed.
    begun: VecDeque<BegunUnit>,
    /// Number of decompressed bytes of the last unit, and of those before the mark of the file.
    decompressed: u64,
    given: u64,
    /// The offset of the last unit in the file.
    begin: u64,
    /// Whether the last unit has been decompressed completely.
    ended: bool,
    /// Units that begin at or after this offset are only read for a record that began before it.
    stop: u64,
}

impl UnitReader {
    pub(crate) fn new(file: Box<dyn BufRead + Send>) -> Self {
        Self {
            raw: Window::new(file),
            codec: UnitCodec::Unknown,
            piece: vec![0; PIECE].into_boxed_slice(),
            out: Vec::new(),
            at: 0,
            before: 0,
            begun: VecDeque::new(),
            decompressed: 0,
            given: 0,
            begin: 0,
            ended: true,
            stop: u64::MAX,
        }
    }

    /// The units that begin in a range of the file. `file` reads from its beginning, `from` from the
    /// beginning of the range.
    pub(crate) fn between(
        file: Box<dyn BufRead + Send>,
        from: Box<dyn BufRead + Send>,
        range: Range<u64>,
    ) -> Result<Self, ArchiveError> {
        let codec = UnitCodec::of_file(&mut Window::new(file))?;
        let mut units = Self::new(from);
        (units.raw.base, units.codec) = (range.start, codec);
        (units.begin, units.stop) = (range.start, range.end);
        Ok(units)
    }

    /// The offset of the next unit in the file.
    pub(crate) fn end(&self) -> u64 {
        self.raw.offset()
    }

    /// Decompressed bytes that have not been consumed.
    pub(crate) fn rest(&self) -> &[u8] {
        &self.out[self.at..]
    }

    /// Consumes bytes of [`Self::rest`].
    pub(crate) fn take(&mut self, count: usize) {
        self.at = (self.at + count).min(self.out.len());
        while self.begun.get(1).is_some_and(|next| next.first <= self.position()) {
            self.begun.pop_front();
        }
    }

    /// The number of the next byte in the stream.
    pub(crate) fn position(&self) -> u64 {
        self.before + self.at as u64
    }

    /// The offset of the next byte in a plain file, otherwise the offset of its unit.
    pub(crate) fn offset(&self) -> u64 {
        if matches!(self.codec, UnitCodec::Plain) { self.position() } else { self.place().unit }
    }

    /// The place of the next byte.
    pub(crate) fn place(&self) -> StreamPlace {
        match self.begun.front() {
            Some(unit) => StreamPlace { unit: unit.offset, inner: self.position() - unit.first },
            None => StreamPlace { unit: self.begin, inner: 0 },
        }
    }

    /// Which of these bytes of [`Self::rest`] begin a unit.
    pub(crate) fn begun_within(&self, bytes: Range<usize>) -> Vec<usize> {
        let begins = self.begun.iter().filter_map(|unit| unit.first.checked_sub(self.position()));
        let begins = begins.filter_map(|at| usize::try_from(at).ok());
        begins.filter(|at| *at > 0 && bytes.contains(at)).collect()
    }

    /// Whether the next byte is in a unit that begins beyond the range.
    pub(crate) fn is_beyond(&self) -> bool {
        !self.rest().is_empty() && self.place().unit >= self.stop
    }

    /// Marks the beginning of a record: the bytes before it in the file are not needed to find the next unit.
    /// Units before the last one have been decompressed without an error.
    pub(crate) fn mark(&mut self) {
        if self.begun.len() == 1 && self.place().inner > 0 {
            self.mark_file();
        }
    }

    fn mark_file(&mut self) {
        self.raw.mark();
        self.given = self.decompressed;
    }

    /// Decompresses a further piece; false if the unit has ended.
    pub(crate) fn more(&mut self) -> Result<bool, ArchiveError> {
        if self.ended {
            return Ok(false);
        }
        // Consumed bytes are removed once they are more than half of the buffer, so each byte is moved at
        // most once.
        if self.at > self.out.len() / 2 {
            self.out.drain(..self.at);
            self.before += self.at as u64;
            self.at = 0;
        }
        let length = self.out.len();
        while self.out.len() == length && !self.ended {
            let taken = self.raw.offset() - self.begin;
            let [input, output] = [taken, self.decompressed].map(step);
            match &mut self.codec {
                UnitCodec::Unknown => self.ended = true,
                UnitCodec::Plain => {
                    if self.raw.rest().is_empty() && !self.raw.more()? {
                        self.ended = true;
                    }
                    self.out.extend_from_slice(self.raw.rest());
                    self.raw.take(self.raw.rest().len());
                    self.raw.mark();
                }
                UnitCodec::Gzip { inflate, crc } => {
                    let piece = &mut self.piece[..output];
                    let (count, ended) = gunzip(inflate, crc, &mut self.raw, input, piece)?;
                    self.out.extend_from_slice(&piece[..count]);
                    self.ended = ended;
                }
                UnitCodec::Zstd(decoder) => {
                    let piece = &mut self.piece[..output];
                    let (count, ended) = unzstd(decoder, &mut self.raw, input, piece)?;
                    self.out.extend_from_slice(&piece[..count]);
                    self.ended = ended;
                }
            }
            self.decompressed += (self.out.len() - length) as u64;
            if self.raw.kept() > MAX_KEPT {
                self.mark_file();
            }
        }
        Ok(self.out.len() > length)
    }

    /// Moves to the next unit; false at the end of the file or of the range.
    pub(crate) fn next_unit(&mut self) -> Result<bool, ArchiveError> {
        self.clear();
        Ok(self.move_to_unit(self.stop)? && self.begin_here(gzip::MAX_NAME).map(|()| true)?)
    }

    /// Continues with the next unit, whose bytes follow those in memory; false at the end of the file.
    pub(crate) fn continue_unit(&mut self) -> Result<bool, ArchiveError> {
        Ok(self.move_to_unit(u64::MAX)? && self.begin_here(gzip::MAX_NAME).map(|()| true)?)
    }

    fn clear(&mut self) {
        self.out.clear();
        self.begun.clear();
        (self.at, self.before) = (0, 0);
    }

    /// Moves to where the next unit begins; false if it would begin at `stop` or later, or if there is none.
    fn move_to_unit(&mut self, stop: u64) -> Result<bool, ArchiveError> {
        if matches!(self.codec, UnitCodec::Plain) {
            return Ok(false);
        }
        self.mark_file();
        if matches!(self.codec, UnitCodec::Unknown) {
            self.codec = UnitCodec::of_file(&mut self.raw)?;
        }
        match self.codec {
            UnitCodec::Zstd(_) => self.skip_frames()?,
            UnitCodec::Gzip { .. } if self.raw.offset() > 0 && self.raw.offset() < stop => {
                self.skip_padding()?;
            }
            _ => {}
        }
        self.mark_file();
        Ok(self.raw.offset() < stop && self.raw.have(1)?)
    }

    /// Skips the zeros that fill a block after the last gzip member. Zeros before other bytes are damage.
    fn skip_padding(&mut self) -> Result<(), ArchiveError> {
        let begin = self.raw.offset();
        while self.raw.have(1)? {
            let zeros = self.raw.rest().iter().take_while(|byte| **byte == 0).count();
            if zeros > 0 {
                // A search after damage begins one byte after the mark.
                self.raw.take(zeros - 1);
                self.mark_file();
                self.raw.take(1);
            }
            if !self.raw.rest().is_empty() {
                if self.raw.offset() == begin {
                    return Ok(());
                }
                self.begin = begin;
                return Err(ArchiveError::new(
                    BadRecord::Truncated,
                    "bytes after zeros, between gzip members",
                ));
            }
        }
        Ok(())
    }

    /// Moves to the next unit with a record first, after a damaged unit; false at the end of the file.
    pub(crate) fn search(&mut self) -> Result<bool, ArchiveError> {
        let taken = self.raw.kept();
        let cost = taken as u64 + self.decompressed.saturating_sub(self.given);
        self.raw.back();
        self.raw.take(usize::try_from(cost / AGAIN).unwrap_or(taken).min(taken).max(1));
        self.find(Self::begins_with_record)
    }

    /// Moves to the first unit from here on that begins with a record; false at the end of the file.
    pub(crate) fn find_record(&mut self) -> Result<bool, ArchiveError> {
        self.find(Self::begins_with_record)
    }

    /// Moves to the first unit from here on whose beginning can be decompressed; false at the end of the
    /// file.
    pub(crate) fn find_unit(&mut self) -> Result<bool, ArchiveError> {
        self.find(|units| units.more().map(|_| true))
    }

    fn find(
        &mut self,
        is_wanted: impl Fn(&mut Self) -> Result<bool, ArchiveError>,
    ) -> Result<bool, ArchiveError> {
        let magic = match self.codec {
            UnitCodec::Gzip { .. } => GZIP,
            UnitCodec::Zstd(_) => ZSTD,
            UnitCodec::Unknown | UnitCodec::Plain => return Ok(false),
        };
        loop {
            while let Err(left) = find(self.raw.rest(), magic) {
                self.raw.take(self.raw.rest().len() - left);
                self.raw.mark();
                if self.raw.offset() >= self.stop || !self.raw.more()? {
                    return Ok(false);
                }
            }
            let found = find(self.raw.rest(), magic).unwrap_or(0);
            self.raw.take(found);
            self.raw.mark();
            if self.raw.offset() >= self.stop {
                return Ok(false);
            }
            self.clear();
            match self.begin_here(gzip::MAX_FOUND_NAME).and_then(|()| is_wanted(self)) {
                Ok(true) => return Ok(true),
                Err(broken) if broken.ends => return Err(broken),
                Ok(false) | Err(_) => {
                    self.raw.back();
                    self.raw.take(1);
                }
            }
        }
    }

    fn begins_with_record(&mut self) -> Result<bool, ArchiveError> {
        loop {
            let line_ends = self.rest().iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
            let first = &self.rest()[line_ends..];
            if first.len() >= RECORD.len() || !RECORD.starts_with(first) {
                return Ok(first.starts_with(RECORD));
            }
            if line_ends > FIRST_PIECE || !self.more()? {
                return Ok(false);
            }
        }
    }

    /// Moves within the unit that begins at a place, to that place.
    pub(crate) fn move_to(&mut self, inner: u64) -> Result<bool, ArchiveError> {
        if !self.next_unit()? {
            return Ok(false);
        }
        while self.place().inner < inner {
            if self.rest().is_empty() && !self.more()? {
                return Ok(true);
            }
            let left = usize::try_from(inner - self.place().inner).unwrap_or(usize::MAX);
            self.take(left.min(self.rest().len()));
        }
        Ok(true)
    }

    fn skip_frames(&mut self) -> Result<(), ArchiveError> {
        while self.raw.have(4)? && is_skippable(self.raw.rest()) {
            let truncated = || ArchiveError::new(BadRecord::Truncated, "the file ends in a skippable frame");
            let mut left = 8 + frame_length(&mut self.raw)?.ok_or_else(truncated)?;
            while left > 0 {
                if self.raw.rest().is_empty() && !self.raw.more()? {
                    return Err(truncated());
                }
                let taken = left.min(self.raw.rest().len());
                self.raw.take(taken);
                self.raw.mark();
                left -= taken;
            }
        }
        Ok(())
    }

    /// Begins a unit at the present offset; names in its header have at most `longest_name` bytes.
    fn begin_here(&mut self, longest_name: usize) -> Result<(), ArchiveError> {
        self.begin = self.raw.offset();
        let first = self.before + self.out.len() as u64;
        while self.begun.back().is_some_and(|unit| unit.first == first) {
            self.begun.pop_back();
        }
        self.begun.push_back(BegunUnit { offset: self.begin, first });
        self.take(0);
        (self.decompressed, self.given, self.ended) = (0, 0, false);
        match &mut self.codec {
            UnitCodec::Unknown | UnitCodec::Plain => {}
            UnitCodec::Gzip { inflate, crc, .. } => {
                gzip::skip_header(&mut self.raw, longest_name)?;
                inflate.reset(false);
                crc.reset();
            }
            UnitCodec::Zstd(decoder) => {
                if !(self.raw.have(4)? && self.raw.rest().starts_with(ZSTD)) {
                    return Err(ArchiveError::new(BadRecord::Truncated, "no zstd frame begins here"));
                }
                decoder.reinit()?;
            }
        }
        Ok(())
    }
}
