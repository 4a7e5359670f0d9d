//! Parses JSON strings, 32 bytes at a time.
//!
//! A line and the offset of a string -> its content, borrowed if it has no escapes and otherwise resolved
//! into a buffer, and the offset after it. `None` if JSON does not allow the string.
//!
//! *Special bytes* end a run of plain content: the quote, the backslash, and bytes below the space.
//!
//! UTF-8 is checked only for the content, after its escapes are resolved. The result is the same as for the
//! raw bytes: an escape begins and ends with ASCII and stands for complete characters, so it neither repairs
//! nor breaks a sequence beside it.
//!
//! Reference: G. Langdale and D. Lemire, *Parsing gigabytes of JSON per second* (VLDB Journal 2019), section
//! 3.2.

/// Bytes that are examined together.
const BLOCK: usize = 32;

/// The content of the string whose first byte after the quote is `line[start]`, and the offset after its
/// closing quote. Overwrites the buffer.
pub(super) fn read<'s>(line: &'s [u8], start: usize, buffer: &'s mut Vec<u8>) -> Option<(&'s str, usize)> {
    let end = special(line, start);
    let (content, end) = match *line.get(end)? {
        b'"' => (&line[start..end], end),
        b'\\' => resolve(line, start, end, buffer)?,
        _ => return None,
    };
    Some((simdutf8::basic::from_utf8(content).ok()?, end + 1))
}

/// The offset of the first special byte at or after `at`, or the line's end.
fn special(line: &[u8], mut at: usize) -> usize {
    loop {
        let Some(block) = line[at..].first_chunk() else {
            return at + specials(&padded(&line[at..])).trailing_zeros() as usize;
        };
        let found = specials(block);
        if found != 0 {
            return at + found.trailing_zeros() as usize;
        }
        at += BLOCK;
    }
}

/// The content of a string with escapes, the first of which is at `at`, and the offset of its closing quote.
fn resolve<'b>(
    line: &[u8],
    start: usize,
    mut at: usize,
    buffer: &'b mut Vec<u8>,
) -> Option<(&'b [u8], usize)> {
    // Resolving never makes a string longer. The extra block allows writing whole blocks at the end.
    let most = line.len() - start + BLOCK;
    if buffer.len() < most {
        buffer.resize(most, 0);
    }
    let mut out = at - start;
    buffer[..out].copy_from_slice(&line[start..at]);
    loop {
        match *line.get(at)? {
            b'"' => return Some((&buffer[..out], at)),
            b'\\' => {
                let (read, written) = escape(&line[at + 1..], &mut buffer[out..])?;
                at += 1 + read;
                out += written;
            }
            byte if byte < b' ' => return None,
            _ => loop {
                let rest = &line[at..];
                let block = rest.first_chunk().copied().unwrap_or_else(|| padded(rest));
                buffer[out..out + BLOCK].copy_from_slice(&block);
                let plain = specials(&block).trailing_zeros() as usize;
                at += plain;
                out += plain;
                if plain < BLOCK {
                    break;
                }
            },
        }
    }
}

/// Writes the character of an escape, whose text after the backslash is at the beginning of `rest`. Returns
/// the number of bytes read and written.
#[inline]
fn escape(rest: &[u8], out: &mut [u8]) -> Option<(usize, usize)> {
    out[0] = match *rest.first()? {
        b'n' => b'\n',
        byte @ (b'"' | b'\\' | b'/') => byte,
        b't' => b'\t',
        b'r' => b'\r',
        b'b' => 8,
        b'f' => 12,
        b'u' => return code_point(&rest[1..], out),
        _ => return None,
    };
    Some((1, 1))
}

/// [`escape`] for `\u`: `rest` begins with the four hexadecimal digits of a UTF-16 unit; after a high
/// surrogate, `\u` and those of the low one.
fn code_point(rest: &[u8], out: &mut [u8]) -> Option<(usize, usize)> {
    let unit = unit(rest)?;
    let (read, code) = match unit {
        0xd800..=0xdbff => {
            let low = self::unit(rest[4..].strip_prefix(br"\u")?)?;
            if !(0xdc00..=0xdfff).contains(&low) {
                return None;
            }
            (11, 0x10000 + ((unit & 0x3ff) << 10 | low & 0x3ff))
        }
        _ => (5, unit),
    };
    // A low surrogate alone is no character.
    let written = char::from_u32(code)?.encode_utf8(out).len();
    Some((read, written))
}

/// The UTF-16 unit of four hexadecimal digits.
fn unit(rest: &[u8]) -> Option<u32> {
    const NONE: u8 = 0xff;
    const DIGITS: [u8; 256] = {
        let mut digits = [NONE; 256];
        let mut value = 0;
        while value < 16 {
            digits[b"0123456789abcdef"[value as usize] as usize] = value;
            digits[b"0123456789ABCDEF"[value as usize] as usize] = value;
            value += 1;
        }
        digits
    };
    let digits = rest.first_chunk::<4>()?.map(|digit| DIGITS[usize::from(digit)]);
    // The value of a digit has no high bit.
    (digits.iter().fold(0, |or, digit| or | digit) != NONE)
        .then(|| digits.iter().fold(0, |value, digit| value << 4 | u32::from(*digit)))
}

/// The last bytes of a line, padded with zeros, which are special bytes.
fn padded(rest: &[u8]) -> [u8; BLOCK] {
    let mut block = [0; BLOCK];
    block[..rest.len()].copy_from_slice(rest);
    block
}

/// A bit mask of the special bytes; the lowest bit is the first byte.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "a call of a function compiled for a feature that the architecture has")]
fn specials(block: &[u8; BLOCK]) -> u32 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };
    #[target_feature(enable = "sse2")]
    fn half(bytes: __m128i) -> u32 {
        let quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"'.cast_signed()));
        let backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\'.cast_signed()));
        let control = _mm_cmpeq_epi8(bytes, _mm_min_epu8(bytes, _mm_set1_epi8(0x1f)));
        _mm_movemask_epi8(_mm_or_si128(_mm_or_si128(quote, backslash), control)).cast_unsigned()
    }
    // SAFETY: every processor of this architecture has SSE2.
    let [low, high] = bytemuck::cast::<_, [__m128i; 2]>(*block).map(|bytes| unsafe { half(bytes) });
    low | high << 16
}

#[cfg(not(target_arch = "x86_64"))]
fn specials(block: &[u8; BLOCK]) -> u32 {
    let special = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
    block.iter().rev().fold(0, |bits, byte| bits << 1 | u32::from(special(byte)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_byte_at_every_place_of_a_block() {
        for byte in 0..=u8::MAX {
            for place in 0..BLOCK {
                let mut block = [b'x'; BLOCK];
                block[place] = byte;
                let special = byte < 0x20 || byte == b'"' || byte == b'\\';
                assert_eq!(specials(&block), u32::from(special) << place, "{byte} at {place}");
            }
        }
    }

    #[test]
    fn escapes_at_every_distance_from_the_start_and_from_the_end() {
        for (escape, meaning) in [(r"\n", "\n"), (r"\u00e9", "é"), (r"\ud83d\ude00", "😀"), (r"\/", "/")] {
            for before in 0..70 {
                for after in 0..70 {
                    let (head, tail) = ("h".repeat(before), "t".repeat(after));
                    let line = format!("{head}{escape}{tail}\"");
                    let mut buffer = Vec::new();
                    let found = read(line.as_bytes(), 0, &mut buffer);
                    assert_eq!(found, Some((format!("{head}{meaning}{tail}").as_str(), line.len())));
                    // Without its closing quote a string is rejected.
                    assert_eq!(read(&line.as_bytes()[..line.len() - 1], 0, &mut Vec::new()), None);
                }
            }
        }
    }
}
