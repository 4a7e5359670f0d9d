//! Parses JSON strings, 64 bytes at a time.
//!
//! A line and the offset of a string -> its content, borrowed if it has no escapes and otherwise resolved
//! into a buffer, and the offset after it. `None` if JSON does not allow the string.
//!
//! *Special bytes* end a run of plain content: the quote, the backslash, and bytes below the space. A block
//! is tested once, and gives a bit for each special byte; the runs between its escapes are copied whole, by
//! the length of a block, whatever their own is. So the loops branch by block, not by run: pages have an
//! escape every 35 bytes, after a run of any length.
//!
//! UTF-8 is checked only for the content, after its escapes are resolved. The result is the same as for the
//! raw bytes: an escape begins and ends with ASCII and stands for complete characters, so it neither repairs
//! nor breaks a sequence beside it.
//!
//! Reference: G. Langdale and D. Lemire, *Parsing gigabytes of JSON per second* (VLDB Journal 2019), section
//! 3.2.

/// Bytes that are examined together.
const BLOCK: usize = 64;

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
        let found = line[at..].first_chunk().map_or_else(|| specials(&pad(&line[at..])), specials);
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
        // Two blocks, so that a whole one can be copied from any place of the first.
        let padded;
        let two: &[u8; 2 * BLOCK] = match line[at..].first_chunk() {
            Some(two) => two,
            None => {
                padded = pad(&line[at..]);
                &padded
            }
        };
        let mut left = specials(two.first_chunk().expect("one of two blocks"));
        // The first byte of the block that is not yet written.
        let mut from = 0;
        while left != 0 {
            let place = left.trailing_zeros() as usize;
            copy(&two[from..], &mut buffer[out..]);
            out += place - from;
            match two[place] {
                b'"' => return Some((&buffer[..out], at + place)),
                b'\\' => {}
                _ => return None,
            }
            let (read, written) = match SIMPLE[usize::from(two[place + 1])] {
                0 => code_point(line[at + place + 1..].strip_prefix(b"u")?, &mut buffer[out..])?,
                meaning => {
                    buffer[out] = meaning;
                    (1, 1)
                }
            };
            out += written;
            from = place + 1 + read;
            // A quote or a backslash that the escape consists of is not special.
            left = if from < BLOCK { left & (!0 << from) } else { 0 };
        }
        if from < BLOCK {
            copy(&two[from..], &mut buffer[out..]);
            out += BLOCK - from;
            from = BLOCK;
        }
        at += from;
    }
}

/// The last bytes of a line, followed by zeros, which are special bytes.
#[cold]
fn pad<const N: usize>(rest: &[u8]) -> [u8; N] {
    let mut padded = [0; N];
    padded[..rest.len()].copy_from_slice(rest);
    padded
}

/// Copies a block, although only its first bytes may be wanted: a copy of a fixed length needs no branches.
#[inline]
fn copy(from: &[u8], to: &mut [u8]) {
    to[..BLOCK].copy_from_slice(&from[..BLOCK]);
}

/// What an escape of one character stands for; 0 for every other character.
const SIMPLE: [u8; 256] = {
    let mut simple = [0; 256];
    simple[b'n' as usize] = b'\n';
    simple[b't' as usize] = b'\t';
    simple[b'r' as usize] = b'\r';
    simple[b'b' as usize] = 8;
    simple[b'f' as usize] = 12;
    simple[b'"' as usize] = b'"';
    simple[b'\\' as usize] = b'\\';
    simple[b'/' as usize] = b'/';
    simple
};

/// Writes the character of an escape whose four hexadecimal digits of a UTF-16 unit are at the beginning of
/// `rest`; after a high surrogate, `\u` and the digits of the low one follow. Returns the number of bytes
/// read from the `u` on, and written.
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

/// A bit mask of the special bytes; the lowest bit is the first byte.
#[cfg(target_arch = "x86_64")]
#[inline]
#[expect(unsafe_code, reason = "a call of a function compiled for a feature that the architecture has")]
fn specials(block: &[u8; BLOCK]) -> u64 {
    use std::arch::x86_64::{
        __m128i, _mm_cmpeq_epi8, _mm_min_epu8, _mm_movemask_epi8, _mm_or_si128, _mm_set1_epi8,
    };
    // One function for the whole block: a function for a part of it is called, not inlined, from a closure
    // (`map` on an array took as long as all else of this module together).
    #[target_feature(enable = "sse2")]
    #[inline]
    fn of_all(block: &[u8; BLOCK]) -> u64 {
        let parts: [__m128i; 4] = bytemuck::cast(*block);
        let mut mask = 0;
        for bytes in parts.into_iter().rev() {
            let quote = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'"'.cast_signed()));
            let backslash = _mm_cmpeq_epi8(bytes, _mm_set1_epi8(b'\\'.cast_signed()));
            let control = _mm_cmpeq_epi8(bytes, _mm_min_epu8(bytes, _mm_set1_epi8(0x1f)));
            let special = _mm_or_si128(_mm_or_si128(quote, backslash), control);
            mask = mask << 16 | u64::from(_mm_movemask_epi8(special).cast_unsigned());
        }
        mask
    }
    // SAFETY: every processor of this architecture has SSE2.
    unsafe { of_all(block) }
}

#[cfg(not(target_arch = "x86_64"))]
fn specials(block: &[u8; BLOCK]) -> u64 {
    let special = |byte: &u8| *byte < b' ' || *byte == b'"' || *byte == b'\\';
    block.iter().rev().fold(0, |bits, byte| bits << 1 | u64::from(special(byte)))
}

#[cfg(test)]
mod tests {
    use rand::prelude::*;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn every_byte_at_every_place_of_a_block() {
        for byte in 0..=u8::MAX {
            for place in 0..BLOCK {
                let mut block = [b'x'; BLOCK];
                block[place] = byte;
                let special = byte < 0x20 || byte == b'"' || byte == b'\\';
                assert_eq!(specials(&block), u64::from(special) << place, "{byte} at {place}");
            }
        }
    }

    #[test]
    fn escapes_at_every_distance_from_the_start_and_from_the_end() {
        for (escape, meaning) in [(r"\n", "\n"), (r"\u00e9", "é"), (r"\ud83d\ude00", "😀"), (r"\/", "/")] {
            for before in 0..140 {
                for after in [0, 1, 2, 30, 61, 62, 63, 64, 65, 66, 126, 127, 128, 129] {
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

    /// The content of the string and the offset after it, by serde_json.
    fn by_library(line: &[u8], start: usize) -> Option<(String, usize)> {
        let mut values = serde_json::Deserializer::from_slice(&line[start - 1..]).into_iter::<String>();
        let content = values.next()?.ok()?;
        Some((content, start - 1 + values.byte_offset()))
    }

    /// Strings of all scripts, valid and not, of 0 to 400 bytes, at any place of a line.
    #[test]
    fn strings_are_those_of_the_library() {
        const PIECES: [&[u8]; 24] = [
            b"a",
            b"plain ASCII of forty-three bytes, or so it is",
            "é".as_bytes(),
            "漢字".as_bytes(),
            "สวัสดี".as_bytes(),
            "😀".as_bytes(),
            br"\n",
            br"\n\n\r\n",
            br"\\",
            br"\\\\\\",
            br#"\""#,
            br"\/\b\f\t",
            br"\u0041\u00e9",
            br"\uD83D\uDE00",
            br"\u0000",
            // Not allowed: lone surrogates, no hexadecimal digits, unknown escapes, control characters, bytes
            // that are not UTF-8, an early end.
            br"\ud83d",
            br"\ude00",
            br"\u00g0",
            br"\x",
            b"\n",
            b"\0",
            b"\xc3",
            b"\xf0\x9f",
            b"\"",
        ];
        let mut rng = ChaCha8Rng::seed_from_u64(22);
        let mut buffer = Vec::new();
        let mut read_by_hand = 0;
        for _ in 0..40_000 {
            // One string in four has a piece that is not allowed, or may have.
            let kinds = if rng.random_ratio(1, 4) { PIECES.len() } else { 15 };
            let mut line = vec![b' '; rng.random_range(0..80)];
            line.push(b'"');
            let start = line.len();
            for _ in 0..rng.random_range(0..20) {
                line.extend_from_slice(PIECES[rng.random_range(0..kinds)]);
            }
            line.extend_from_slice(
                [&b"\""[..], b"\"}\n", b"\",\"text\":\"\\n\"}", b""][rng.random_range(0..4)],
            );
            let found = read(&line, start, &mut buffer).map(|(content, end)| (content.to_owned(), end));
            read_by_hand += usize::from(found.is_some());
            assert_eq!(found, by_library(&line, start), "{:?}", String::from_utf8_lossy(&line));
        }
        assert!((20_000..36_000).contains(&read_by_hand), "{read_by_hand}");
    }
}
