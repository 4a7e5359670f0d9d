//! Checks the lengths in a page that are encoded as differences (`DELTA_BINARY_PACKED`): their number, and
//! the memory that the values after them take.
//!
//! Apache Parquet, *Encodings*, "Delta Encoding": block size, miniblocks per block, count, first value. Then
//! follow blocks, each with the minimum difference, a bit width for each miniblock, and the packed
//! differences above the minimum.

use parquet::errors::Result;

use super::thrift::wrong;

/// Rows whose values are in memory together.
const WINDOW: usize = super::bytes::STEP;

/// The header of an encoded list of lengths.
struct Head {
    block: usize,
    miniblocks: usize,
    count: usize,
    first: i64,
    /// Where the blocks begin.
    end: usize,
}

/// The stated number of lengths; an error if it exceeds the number of values.
pub(super) fn count(data: &[u8], values: usize) -> Result<usize> {
    head(data, values).map(|head| head.count)
}

/// Bytes of the decoded values of a page with shared prefixes (`DELTA_BYTE_ARRAY`): of the whole page if
/// `all`, otherwise the maximum over any [`WINDOW`] consecutive rows.
pub(super) fn written_out(data: &[u8], values: usize, all: bool) -> Result<u64> {
    let mut shared = Vec::new();
    let end = each(data, values, |length| shared.push(length))?;
    let rest = data.get(end..).unwrap_or_default();
    let (mut place, mut sum, mut most) = (0, 0_u64, 0);
    let mut window = std::collections::VecDeque::new();
    each(rest, values, |own| {
        let length = u64::from(own) + u64::from(shared.get(place).copied().unwrap_or(0));
        place += 1;
        sum += length;
        if !all {
            window.push_back(length);
            if window.len() > WINDOW {
                sum -= window.pop_front().unwrap_or(0);
            }
        }
        most = sum.max(most);
    })?;
    if place != shared.len() {
        return Err(wrong(format!("a page has {} beginnings and {place} ends of values", shared.len())));
    }
    Ok(most)
}

fn head(data: &[u8], values: usize) -> Result<Head> {
    let mut at = 0;
    let block = number(data, &mut at)?;
    let miniblocks = number(data, &mut at)?;
    let count = number(data, &mut at)?;
    let first = number(data, &mut at)?;
    if count > values as u64 {
        return Err(wrong(format!("a page of {values} values says {count} lengths")));
    }
    let sound = block.is_multiple_of(128)
        && miniblocks > 0
        && miniblocks <= data.len() as u64
        && block.is_multiple_of(miniblocks)
        && (block / miniblocks).is_multiple_of(32)
        && block <= 1 << 24;
    if !sound {
        return Err(wrong(format!("a page says blocks of {block} lengths in {miniblocks} parts")));
    }
    let fits = |number: u64| usize::try_from(number).map_err(|_| wrong("a page says too many lengths"));
    let first = unfold(first);
    Ok(Head { block: fits(block)?, miniblocks: fits(miniblocks)?, count: fits(count)?, first, end: at })
}

/// Calls `give` with each length; returns the offset of the bytes after the lengths.
fn each(data: &[u8], values: usize, mut give: impl FnMut(u32)) -> Result<usize> {
    let Head { block, miniblocks, count, first, end: mut at } = head(data, values)?;
    let mut length = narrow(first)?;
    let mut give = |found: i32| {
        let found = u32::try_from(found).ok();
        found.map(&mut give).ok_or_else(|| wrong("a page says a length that is none"))
    };
    if count > 0 {
        give(length)?;
    }
    let early = || wrong("the lengths of a page end early");
    let in_miniblock = block / miniblocks;
    let mut left = count.saturating_sub(1);
    while left > 0 {
        let least = narrow(unfold(number(data, &mut at)?))?;
        let widths = data.get(at..at + miniblocks).ok_or_else(early)?;
        at += miniblocks;
        for width in widths {
            if left == 0 {
                break;
            }
            let width = usize::from(*width);
            if width > 32 {
                return Err(wrong(format!("a page says lengths of {width} bits")));
            }
            let packed = data.get(at..at + width * in_miniblock / 8).ok_or_else(early)?;
            at += packed.len();
            for place in 0..left.min(in_miniblock) {
                // Wrapping 32-bit arithmetic, on which both writers and readers rely.
                let difference = bits(packed, place * width, width).cast_signed();
                length = length.wrapping_add(least).wrapping_add(difference);
                give(length)?;
            }
            left -= left.min(in_miniblock);
        }
    }
    Ok(at)
}

/// `width` bits from bit `from` on, the lowest first.
fn bits(packed: &[u8], from: usize, width: usize) -> u32 {
    if width == 0 {
        return 0;
    }
    let mut word = [0; 8];
    let bytes = &packed[from / 8..packed.len().min(from / 8 + 8)];
    word[..bytes.len()].copy_from_slice(bytes);
    let mask = (1_u64 << width) - 1;
    // A width is at most 32 bits.
    u32::try_from((u64::from_le_bytes(word) >> (from % 8)) & mask).unwrap_or(u32::MAX)
}

/// Lengths are 32-bit numbers.
fn narrow(number: i64) -> Result<i32> {
    i32::try_from(number).map_err(|_| wrong(format!("a page says the length {number}")))
}

fn unfold(number: u64) -> i64 {
    (number >> 1).cast_signed() ^ -(number & 1).cast_signed()
}

fn number(data: &[u8], at: &mut usize) -> Result<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *data.get(*at).ok_or_else(|| wrong("the lengths of a page end early"))?;
        *at += 1;
        number |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            return Ok(number);
        }
    }
    Err(wrong("a number of a page takes more than 10 bytes"))
}
