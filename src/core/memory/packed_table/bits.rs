//! Bit strings in words: bit `n` is bit `n % 64` of word `n / 64`.

use std::ops::Range;

/// Bits of a word.
pub(super) const WORD: usize = u64::BITS as usize;

/// The `bits` bits from `at` on, at most 64.
#[inline]
pub(super) fn load(words: &[u64], at: usize, bits: usize) -> u64 {
    let shift = at % WORD;
    let above = words.get(at / WORD + 1).copied().unwrap_or_default();
    (words[at / WORD] >> shift | above << 1 << (WORD - 1 - shift)) & low_bits(bits)
}

/// Sets the `bits` bits from `at` on, at most 64, to those of `value`, which has no others.
#[inline]
pub(super) fn store(words: &mut [u64], at: usize, bits: usize, value: u64) {
    let (word, shift) = (at / WORD, at % WORD);
    words[word] = words[word] & !(low_bits(bits) << shift) | value << shift;
    let in_first = WORD - shift;
    if bits > in_first {
        words[word + 1] = words[word + 1] & !low_bits(bits - in_first) | value >> in_first;
    }
}

/// Copies the last `bits` bits below the end of some words to below the end of others.
pub(super) fn copy_last(source: &[u64], words: &mut [u64], bits: usize) {
    let (from, to) = (source.len() * WORD - bits, words.len() * WORD - bits);
    let first = bits % WORD;
    store(words, to, first, load(source, from, first));
    let whole = words.len() - bits / WORD;
    words[whole..].copy_from_slice(&source[source.len() - bits / WORD..]);
}

/// Copies bits `by` places down.
#[inline]
pub(super) fn move_down(words: &mut [u64], Range { start, end }: Range<usize>, by: usize) {
    if start == end {
        return;
    }
    let (target, end) = (start - by, end - by);
    let first = (WORD - target % WORD).min(end - target);
    store(words, target, first, load(words, start, first));
    let (from, whole) = ((target + first) / WORD, end / WORD);
    let (skip, shift) = (by / WORD, by % WORD);
    if from < whole {
        let mut low = words[from + skip];
        for word in from..whole {
            let high = words.get(word + skip + 1).copied().unwrap_or_default();
            words[word] = low >> shift | high << 1 << (WORD - 1 - shift);
            low = high;
        }
    }
    let at = whole * WORD;
    if at >= target + first && at < end {
        store(words, at, end - at, load(words, at + by, end - at));
    }
}

/// Copies bits `by` places up.
#[inline]
pub(super) fn move_up(words: &mut [u64], Range { start, end }: Range<usize>, by: usize) {
    if start == end {
        return;
    }
    let (start, end) = (start + by, end + by);
    let last = ((end - 1) % WORD + 1).min(end - start);
    store(words, end - last, last, load(words, end - last - by, last));
    let (from, whole) = (start.div_ceil(WORD), (end - last) / WORD);
    let (skip, shift) = (by / WORD, by % WORD);
    if from < whole {
        let mut high = words[whole - 1 - skip];
        for word in (from..whole).rev() {
            let low = words.get((word - skip).wrapping_sub(1)).copied().unwrap_or_default();
            words[word] = high << shift | low >> 1 >> (WORD - 1 - shift);
            high = low;
        }
    }
    let at = from * WORD;
    if at > start && at <= end - last {
        store(words, start, at - start, load(words, start - by, at - start));
    }
}

/// The place of a one by its number, from 0 (S. Vigna, *Broadword implementation of rank/select queries*,
/// 2008).
///
/// # Panics
/// If there are fewer ones.
#[inline]
pub(super) fn select(words: &[u64], number: usize) -> usize {
    let (mut at, mut left) = (0, number as u64);
    let (word, sums) = loop {
        let word = words[at];
        let pairs = word - (word >> 1 & 0x5555_5555_5555_5555);
        let fours = (pairs & 0x3333_3333_3333_3333) + (pairs >> 2 & 0x3333_3333_3333_3333);
        // Of each byte: the ones up to its end.
        let sums = ((fours + (fours >> 4)) & 0x0f0f_0f0f_0f0f_0f0f).wrapping_mul(EACH);
        if left < sums >> 56 {
            break (word, sums);
        }
        left -= sums >> 56;
        at += 1;
    };
    let byte = at_most(sums, left) * 8;
    let rank = left - (sums << 8 >> byte & 0xff);
    // A byte for each bit.
    let bits = ((word >> byte & 0xff) * EACH) & 0x8040_2010_0804_0201;
    let ones = (bits + EACH * 0x7f) >> 7 & EACH;
    at * WORD + index(byte + at_most(ones.wrapping_mul(EACH), rank))
}

/// Number of bytes of `sums` that are at most `most`; all are below 128.
#[inline]
fn at_most(sums: u64, most: u64) -> u64 {
    ((((most * EACH) | EACH << 7) - sums) >> 7 & EACH).wrapping_mul(EACH) >> 56
}

/// One in each byte.
const EACH: u64 = 0x0101_0101_0101_0101;

/// Number of zeros from `at` on up to a one.
#[inline]
pub(super) fn zeros(words: &[u64], at: usize) -> usize {
    run(words, at, 0)
}

/// Number of ones from `at` on up to a zero.
#[inline]
pub(super) fn ones(words: &[u64], at: usize) -> usize {
    run(words, at, u64::MAX)
}

#[inline]
fn run(words: &[u64], at: usize, of: u64) -> usize {
    let mut length = 0;
    loop {
        let equal = (load(words, at + length, WORD) ^ of).trailing_zeros() as usize;
        length += equal;
        if equal < WORD {
            return length;
        }
    }
}

/// A number of which the `bits` low bits are set, at most 64.
#[inline]
pub(super) fn low_bits(bits: usize) -> u64 {
    if bits < WORD { !(u64::MAX << bits) } else { u64::MAX }
}

/// A number below the number of bits or of sections of a bucket.
#[inline]
#[expect(clippy::cast_possible_truncation, reason = "what it counts is in memory")]
pub(super) fn index(number: u64) -> usize {
    number as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    fn bits(words: &[u64]) -> Vec<bool> {
        words.iter().flat_map(|word| (0..WORD).map(move |at| word >> at & 1 == 1)).collect()
    }

    fn below(random: u64, end: usize) -> usize {
        usize::try_from(random % end as u64).unwrap()
    }

    /// Compared with vectors of bits: all moves and copies within four words, at random.
    #[test]
    fn bits_move_as_in_a_vector() {
        for random in (0..20_000).map(mix) {
            let mut words = [1, 2, 3, 4].map(|n| mix(random ^ n));
            let mut vector = bits(&words);
            let start = below(random, 256);
            let end = start + below(random >> 8, 257 - start);
            let by = below(random >> 16, 257);
            match (random >> 32) % 4 {
                0 if by <= start => {
                    move_down(&mut words, start..end, by);
                    vector.copy_within(start..end, start - by);
                }
                1 if end + by <= 256 => {
                    move_up(&mut words, start..end, by);
                    vector.copy_within(start..end, start + by);
                }
                2 if start > 0 => {
                    let source = [random, 5, 6, 7].map(mix);
                    copy_last(&source, &mut words, start);
                    vector[256 - start..].copy_from_slice(&bits(&source)[256 - start..]);
                }
                _ => {
                    let len = (end - start).min(WORD);
                    store(&mut words, start, len, random & low_bits(len));
                    (0..len).for_each(|at| vector[start + at] = random >> at & 1 == 1);
                    assert_eq!(load(&words, start, len), random & low_bits(len));
                }
            }
            assert_eq!(bits(&words), vector, "{start}..{end} by {by}");
        }
    }

    #[test]
    fn ones_are_found_by_their_number() {
        for random in (0..500).map(mix) {
            let sparse = |n| if random % 3 == 0 { 0 } else { mix(random ^ n) & mix(n) << (random % 60) };
            let words = [sparse(1), u64::MAX, sparse(2), 0, sparse(3), 1 << 63];
            let all = bits(&words);
            let ones_of_all: Vec<usize> = (0..all.len()).filter(|at| all[*at]).collect();
            for (number, at) in ones_of_all.into_iter().enumerate() {
                assert_eq!(select(&words, number), at);
            }
            for at in 0..256 {
                assert_eq!(zeros(&words, at), all[at..].iter().take_while(|bit| !**bit).count());
                assert_eq!(ones(&words, at), all[at..].iter().take_while(|bit| **bit).count());
            }
        }
    }
}
