//! The header and the trailer of a gzip member (RFC 1952).

use flate2::Crc;

use super::super::super::bad_record::BadRecord;
use super::super::broken::ArchiveError;
use super::window::Window;

/// Maximum length of the name and of the comment of a member, in bytes, inclusive.
pub(super) const MAX_NAME: usize = 1 << 20;

/// The same in a search for members. Something that looks like a member may be at every fourth byte, each
/// with a name without an end.
pub(super) const MAX_FOUND_NAME: usize = 512;

/// Skips a member's header, in which names have at most `longest` bytes.
pub(super) fn skip_header(raw: &mut Window, longest: usize) -> Result<(), ArchiveError> {
    loop {
        let header = raw.rest();
        let sound = [0x1f, 0x8b, 0x08].iter().zip(header).all(|(expected, found)| expected == found)
            && header.get(3).is_none_or(|flags| flags & 0xe0 == 0);
        if !sound {
            return Err(ArchiveError::new(BadRecord::Truncated, "no gzip member begins here"));
        }
        if let Some(length) = header_length(header, longest)? {
            raw.take(length);
            return Ok(());
        }
        if !raw.more()? {
            return Err(ArchiveError::new(BadRecord::Truncated, "the file ends in a gzip header"));
        }
    }
}

/// The length of a header; `None` if these bytes do not have its end.
fn header_length(header: &[u8], longest: usize) -> Result<Option<usize>, ArchiveError> {
    let Some(flags) = header.get(3) else { return Ok(None) };
    let mut at = 10;
    if flags & 4 != 0 {
        let Some([low, high]) = header.get(at..at + 2) else { return Ok(None) };
        at += 2 + usize::from(u16::from_le_bytes([*low, *high]));
    }
    // Name and comment: each ends with a zero.
    for flag in [8, 16] {
        if flags & flag != 0 {
            let rest = header.get(at..).unwrap_or_default();
            match rest.iter().take(longest + 1).position(|byte| *byte == 0) {
                Some(length) => at += 1 + length,
                None if rest.len() > longest => {
                    let cause = format!("gzip: a name longer than {longest} bytes");
                    return Err(ArchiveError::new(BadRecord::Truncated, cause));
                }
                None => return Ok(None),
            }
        }
    }
    if flags & 2 != 0 {
        at += 2;
    }
    Ok((header.len() >= at).then_some(at))
}

/// Skips a member's trailer, and checks the decompressed bytes against it.
pub(super) fn check_trailer(raw: &mut Window, crc: &Crc) -> Result<(), ArchiveError> {
    if !raw.have(8)? {
        return Err(ArchiveError::new(BadRecord::Truncated, "the file ends in a gzip member"));
    }
    let number = |at: usize| raw.rest()[at..at + 4].try_into().map_or(0, u32::from_le_bytes);
    if (number(0), number(4)) != (crc.sum(), crc.amount()) {
        return Err(ArchiveError::new(BadRecord::Truncated, "gzip: the checksum differs"));
    }
    raw.take(8);
    Ok(())
}
