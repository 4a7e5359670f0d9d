//! The codecs of units: how a file is compressed, and one step of decompression.

use std::io;

use flate2::{Crc, Decompress, FlushDecompress, Status};
use zstd::stream::raw::{DParameter, Decoder, InBuffer, Operation, OutBuffer};

use super::super::super::bad_record::{BadRecord, MAX_RECORD_BYTES};
use super::super::super::storage::WINDOW_LOG_MAX;
use super::super::broken::ArchiveError;
use super::gzip;
use super::window::Window;

/// Maximum number of bytes that one step reads, and that it writes.
pub(super) const PIECE: usize = 64 << 10;

/// The same for the first step. Later steps are as long as all steps before together, so that bytes that are
/// no unit cost little.
pub(super) const FIRST_PIECE: usize = 4 << 10;

pub(super) const GZIP: &[u8] = &[0x1f, 0x8b, 0x08];
pub(super) const ZSTD: &[u8] = &[0x28, 0xb5, 0x2f, 0xfd];
/// The first bytes of a skippable frame after its first byte (0x50 to 0x5f), and the first byte of the frame
/// of a dictionary.
const SKIPPABLE: &[u8] = &[0x2a, 0x4d, 0x18];
const DICTIONARY: u8 = 0x5d;

pub(super) enum UnitCodec {
    /// Before the first bytes have been read.
    Unknown,
    Plain,
    Gzip {
        inflate: Decompress,
        crc: Crc,
    },
    Zstd(Decoder<'static>),
}

impl UnitCodec {
    /// The codec of a file, by its first bytes. Skips the dictionary at its beginning.
    pub(super) fn of_file(raw: &mut Window) -> Result<Self, ArchiveError> {
        raw.have(4)?;
        let first = raw.rest();
        if first.starts_with(&GZIP[..2]) {
            return Ok(Self::Gzip { inflate: Decompress::new(false), crc: Crc::new() });
        }
        if !first.starts_with(ZSTD) && !is_skippable(first) {
            return Ok(Self::Plain);
        }
        let dictionary = if first.first() == Some(&DICTIONARY) { dictionary(raw)? } else { Vec::new() };
        let decoder = Decoder::with_dictionary(&dictionary).and_then(|mut decoder| {
            decoder.set_parameter(DParameter::WindowLogMax(WINDOW_LOG_MAX))?;
            Ok(decoder)
        });
        decoder
            .map(Self::Zstd)
            .map_err(|e| ArchiveError::ends(BadRecord::Unreadable, format!("its dictionary: {e}")))
    }
}

pub(super) fn is_skippable(first: &[u8]) -> bool {
    matches!(first, [0x50..=0x5f, rest @ ..] if rest.starts_with(SKIPPABLE))
}

/// The length of the skippable frame that begins here, without its header of 8 bytes.
pub(super) fn frame_length(raw: &mut Window) -> Result<Option<usize>, ArchiveError> {
    if !raw.have(8)? {
        return Ok(None);
    }
    let length = raw.rest()[4..8].try_into().map_or(0, u32::from_le_bytes);
    Ok(Some(length as usize))
}

/// The dictionary at the beginning of a file, which may be compressed itself.
fn dictionary(raw: &mut Window) -> Result<Vec<u8>, ArchiveError> {
    let broken = |cause: &str| ArchiveError::ends(BadRecord::Unreadable, format!("its dictionary {cause}"));
    let length = frame_length(raw)?.ok_or_else(|| broken("ends early"))?;
    if length > MAX_RECORD_BYTES {
        return Err(broken("is longer than 64 MiB"));
    }
    raw.take(8);
    if !raw.have(length)? {
        return Err(broken("ends early"));
    }
    let stored = &raw.rest()[..length];
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
    raw.take(length);
    Ok(dictionary)
}

/// Maximum number of bytes that the next step reads or writes, after `before` bytes.
pub(super) fn step(before: u64) -> usize {
    usize::try_from(before).unwrap_or(PIECE).clamp(FIRST_PIECE, PIECE)
}

/// One step with up to `input` bytes of input: the number of bytes written, and whether the member has ended
/// with a valid checksum.
pub(super) fn gunzip(
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
pub(super) fn unzstd(
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
