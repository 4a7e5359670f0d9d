//! The units of a file: gzip members or zstd frames; a plain file is one unit. Each is decompressed
//! independently, so that damage is limited to one unit. After damage the next unit is found by the magic
//! bytes of the codec followed by `WARC/`.
//!
//! How far a damaged unit is decompressed, and therefore where the search begins after it, depends only on
//! its bytes and not on the pieces in which they are read: the size of each step follows from the steps
//! before it.

use std::io::{self, BufRead};
use std::ops::Range;

use flate2::{Crc, Decompress, FlushDecompress, Status};
use zstd::stream::raw::{Decoder, InBuffer, Operation, OutBuffer};

use super::super::bad_record::{BadRecord, MAX_RECORD_BYTES};
use super::broken::ArchiveError;
use super::gzip;
use super::window::Window;

/// Maximum number of bytes that one step reads, and that it writes.
const PIECE: usize = 64 << 10;

/// The same for the first step. Later steps are as long as all steps before together, so that bytes that are
/// no unit cost little.
const FIRST_PIECE: usize = 4 << 10;

/// Bytes of a file that are kept for a second search.
const MAX_KEPT: usize = 64 << 20;

/// Number of bytes of a damaged unit, read and written, per byte that is searched again. Without this limit,
/// units that begin inside one another and end in the same damage would each be decompressed up to it. A
/// valid unit is never within so small a part of a damaged one.
const AGAIN: u64 = 256;

/// The first bytes of every record.
pub(super) const RECORD: &[u8] = b"WARC/";

const GZIP: &[u8] = &[0x1f, 0x8b, 0x08];
const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// The first bytes of a skippable frame after its first byte (0x50 to 0x5f), and the first byte of the frame
/// of a dictionary.
const SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];
const DICTIONARY: u8 = 0x5d;

enum UnitCodec {
    /// Before the first bytes have been read.
    Unknown,
    Plain,
    Gzip {
        inflate: Decompress,
        crc: Crc,
    },
    Zstd(Decoder<'static>),
}

/// The units of one file, in order.
pub(super) struct UnitReader {
    raw: Window,
    codec: UnitCodec,
    /// The output of a step. A fixed buffer, since flate2 fills the whole spare capacity of a vector with
    /// zeros before each step, which takes half of the time for short members.
    piece: Box<[u8]>,
    /// The decompressed bytes; those before `at` have been consumed.
    out: Vec<u8>,
    at: usize,
    /// Decompressed bytes of this unit before `out`.
    before: u64,
    /// Decompressed bytes of this unit before the mark of the file.
    given: u64,
    /// The offset of the unit in the file.
    begin: u64,
    /// Whether the unit has been decompressed completely.
    ended: bool,
    /// Units that begin at or after this offset are not read.
    stop: u64,
}

impl UnitReader {
    pub(super) fn new(file: Box<dyn BufRead + Send>) -> Self {
        Self {
            raw: Window::new(file),
            codec: UnitCodec::Unknown,
            piece: vec![0; PIECE].into_boxed_slice(),
            out: Vec::new(),
            at: 0,
            before: 0,
            given: 0,
            begin: 0,
            ended: true,
            stop: u64::MAX,
        }
    }

    /// The units that begin in a range of the file. `file` reads from its beginning, `from` from the
    /// beginning of the range.
    pub(super) fn between(
        file: Box<dyn BufRead + Send>,
        from: Box<dyn BufRead + Send>,
        range: Range<u64>,
    ) -> Result<Self, ArchiveError> {
        let mut units = Self::new(file);
        units.recognise()?;
        (units.raw, units.stop) = (Window::at(from, range.start), range.end);
        units.begin = range.start;
        Ok(units)
    }

    /// The offset of the next unit in the file.
    pub(super) fn end(&self) -> u64 {
        self.raw.offset()
    }

    /// Decompressed bytes of this unit that have not been consumed.
    pub(super) fn rest(&self) -> &[u8] {
        &self.out[self.at..]
    }

    /// Consumes bytes of [`Self::rest`].
    pub(super) fn take(&mut self, count: usize) {
        self.at = (self.at + count).min(self.out.len());
    }

    /// The offset of the next byte in a plain file, otherwise the offset of its unit.
    pub(super) fn offset(&self) -> u64 {
        match self.codec {
            UnitCodec::Plain => self.before + self.at as u64,
            _ => self.begin,
        }
    }

    /// Marks the beginning of a record: the bytes before it in the file are not needed to find the next unit.
    pub(super) fn mark(&mut self) {
        if self.before + self.at as u64 > 0 {
            self.mark_file();
        }
    }

    fn mark_file(&mut self) {
        self.raw.mark();
        self.given = self.decompressed();
    }

    /// Number of decompressed bytes of this unit.
    fn decompressed(&self) -> u64 {
        self.before + self.out.len() as u64
    }

    /// Decompresses a further piece; false if the unit has ended.
    pub(super) fn more(&mut self) -> Result<bool, ArchiveError> {
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
            let [input, output] = [taken, self.decompressed()].map(step);
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
            if self.raw.kept() > MAX_KEPT {
                self.mark_file();
            }
        }
        Ok(self.out.len() > length)
    }

    /// Moves to the next unit; false at the end of the file.
    pub(super) fn next_unit(&mut self) -> Result<bool, ArchiveError> {
        if matches!(self.codec, UnitCodec::Plain) {
            return Ok(false);
        }
        self.mark_file();
        if matches!(self.codec, UnitCodec::Unknown) {
            self.recognise()?;
        }
        if matches!(self.codec, UnitCodec::Zstd(_)) {
            self.skip_frames()?;
        }
        self.mark_file();
        if self.raw.offset() >= self.stop || !self.raw.have(1)? {
            return Ok(false);
        }
        self.begin_here(gzip::MAX_NAME)?;
        Ok(true)
    }

    /// Moves to the next unit that begins with a record, after a damaged unit; false at the end of the file.
    pub(super) fn search(&mut self) -> Result<bool, ArchiveError> {
        let taken = self.raw.kept();
        let cost = taken as u64 + self.decompressed().saturating_sub(self.given);
        self.raw.back();
        self.raw.take(usize::try_from(cost / AGAIN).unwrap_or(taken).min(taken).max(1));
        self.find()
    }

    /// Moves to the first unit from here on that begins with a record; false at the end of the file.
    pub(super) fn find(&mut self) -> Result<bool, ArchiveError> {
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
            match self.begin_here(gzip::MAX_FOUND_NAME).and_then(|()| self.begins_with_record()) {
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

    fn recognise(&mut self) -> Result<(), ArchiveError> {
        self.raw.have(4)?;
        let first = self.raw.rest();
        self.codec = if first.starts_with(&GZIP[..2]) {
            UnitCodec::Gzip { inflate: Decompress::new(false), crc: Crc::new() }
        } else if first.starts_with(ZSTD) || is_skippable(first) {
            let dictionary = if first.first() == Some(&DICTIONARY) { self.dictionary()? } else { Vec::new() };
            let decoder = Decoder::with_dictionary(&dictionary);
            UnitCodec::Zstd(
                decoder
                    .map_err(|e| ArchiveError::ends(BadRecord::Unreadable, format!("its dictionary: {e}")))?,
            )
        } else {
            UnitCodec::Plain
        };
        Ok(())
    }

    /// The dictionary at the beginning of a file, which may be compressed itself.
    fn dictionary(&mut self) -> Result<Vec<u8>, ArchiveError> {
        let broken =
            |cause: &str| ArchiveError::ends(BadRecord::Unreadable, format!("its dictionary {cause}"));
        let length = self.frame_length()?.ok_or_else(|| broken("ends early"))?;
        if length > MAX_RECORD_BYTES {
            return Err(broken("is longer than 64 MiB"));
        }
        self.raw.take(8);
        if !self.raw.have(length)? {
            return Err(broken("ends early"));
        }
        let stored = &self.raw.rest()[..length];
        let dictionary = if stored.starts_with(ZSTD) {
            let mut bytes = Vec::new();
            let decoder = Decoder::new().map(|mut decoder| {
                let mut input = InBuffer::around(stored);
                loop {
                    bytes.reserve(PIECE);
                    let before = bytes.len();
                    let hint = decoder.run(&mut input, &mut OutBuffer::around_pos(&mut bytes, before))?;
                    if hint == 0 || bytes.len() > MAX_RECORD_BYTES {
                        return Ok(());
                    }
                    if bytes.len() == before && input.pos() == stored.len() {
                        return Err(io::ErrorKind::UnexpectedEof.into());
                    }
                }
            });
            decoder
                .and_then(|run| run)
                .map_err(|error: io::Error| broken(&format!("cannot be read: {error}")))?;
            if bytes.len() > MAX_RECORD_BYTES {
                return Err(broken("is longer than 64 MiB"));
            }
            bytes
        } else {
            stored.to_vec()
        };
        self.raw.take(length);
        Ok(dictionary)
    }

    /// The length of the skippable frame that begins here, without its header of 8 bytes.
    fn frame_length(&mut self) -> Result<Option<usize>, ArchiveError> {
        if !self.raw.have(8)? {
            return Ok(None);
        }
        let length = self.raw.rest()[4..8].try_into().map_or(0, u32::from_le_bytes);
        Ok(Some(length as usize))
    }

    fn skip_frames(&mut self) -> Result<(), ArchiveError> {
        while self.raw.have(4)? && is_skippable(self.raw.rest()) {
            let truncated = || ArchiveError::new(BadRecord::Truncated, "the file ends in a skippable frame");
            let mut left = 8 + self.frame_length()?.ok_or_else(truncated)?;
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
        self.out.clear();
        (self.at, self.before, self.given, self.ended) = (0, 0, 0, false);
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

fn is_skippable(first: &[u8]) -> bool {
    matches!(first, [0x50..=0x5f, rest @ ..] if rest.starts_with(SKIPPABLE))
}

/// The offset of `wanted`, or the number of bytes at the end that may be its beginning.
pub(super) fn find(bytes: &[u8], wanted: &[u8]) -> Result<usize, usize> {
    let first = wanted[0];
    let mut from = 0;
    while let Some(at) = bytes[from..].iter().position(|byte| *byte == first) {
        let here = &bytes[from + at..];
        if here.starts_with(wanted) {
            return Ok(from + at);
        }
        if here.len() < wanted.len() && wanted.starts_with(here) {
            return Err(here.len());
        }
        from += at + 1;
    }
    Err(0)
}

/// Maximum number of bytes that the next step reads or writes, after `before` bytes.
fn step(before: u64) -> usize {
    usize::try_from(before).unwrap_or(PIECE).clamp(FIRST_PIECE, PIECE)
}

/// One step with up to `input` bytes of input: the number of bytes written, and whether the member has ended
/// with a valid checksum.
fn gunzip(
    inflate: &mut Decompress,
    crc: &mut Crc,
    raw: &mut Window,
    input: usize,
    piece: &mut [u8],
) -> Result<(usize, bool), ArchiveError> {
    raw.have(input)?;
    let input = &raw.rest()[..input.min(raw.rest().len())];
    let before = [inflate.total_out(), inflate.total_in()];
    let status = inflate.decompress(input, piece, FlushDecompress::None);
    let status = status.map_err(|error| ArchiveError::new(BadRecord::Truncated, format!("gzip: {error}")))?;
    let steps = [inflate.total_out() - before[0], inflate.total_in() - before[1]];
    // Both counts are lengths within slices.
    let [given, taken] = steps.map(|count| usize::try_from(count).unwrap_or(usize::MAX));
    raw.take(taken);
    crc.update(&piece[..given]);
    if matches!(status, Status::StreamEnd) {
        gzip::check_trailer(raw, crc)?;
        return Ok((given, true));
    }
    if given == 0 && taken == 0 {
        let is_end = raw.rest().is_empty();
        let cause = if is_end { "the file ends in a gzip member" } else { "gzip: no progress" };
        return Err(ArchiveError::new(BadRecord::Truncated, cause));
    }
    Ok((given, false))
}

/// One step with up to `input` bytes of input: the number of bytes written, and whether the frame has ended.
fn unzstd(
    decoder: &mut Decoder<'static>,
    raw: &mut Window,
    input: usize,
    piece: &mut [u8],
) -> Result<(usize, bool), ArchiveError> {
    raw.have(input)?;
    let mut input = InBuffer::around(&raw.rest()[..input.min(raw.rest().len())]);
    let mut output = OutBuffer::around(piece);
    let hint = decoder.run(&mut input, &mut output);
    let [given, taken] = [output.pos(), input.pos()];
    let hint = hint.map_err(|error| ArchiveError::new(BadRecord::Truncated, format!("zstd: {error}")))?;
    raw.take(taken);
    if hint != 0 && given == 0 && taken == 0 {
        let is_end = raw.rest().is_empty();
        let cause = if is_end { "the file ends in a zstd frame" } else { "zstd: no progress" };
        return Err(ArchiveError::new(BadRecord::Truncated, cause));
    }
    Ok((given, hint == 0))
}
