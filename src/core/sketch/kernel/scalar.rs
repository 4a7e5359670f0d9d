//! The portable engine, and the loop that the vector engines compile with more instructions.

use std::hint::black_box;

use super::WHOLE;

/// See [`super::Engine`].
pub(super) fn differing(a: &[u64], b: &[u64], bits: usize) -> u32 {
    body(a, b, bits)
}

/// One loop for each width in use, so that the compiler knows the number of words in a group. Always inlined,
/// so that it is compiled with the caller's target features.
#[inline(always)]
pub(super) fn body(a: &[u64], b: &[u64], bits: usize) -> u32 {
    match bits {
        1 => ones(a, b),
        2 => groups::<2>(a, b),
        4 => groups::<4>(a, b),
        8 => groups::<8>(a, b),
        16 => groups::<16>(a, b),
        32 => groups::<32>(a, b),
        WHOLE => whole(a, b),
        _ => a.chunks_exact(bits).zip(b.chunks_exact(bits)).map(|(x, y)| group(x, y)).sum(),
    }
}

/// Components of one bit: eight groups at a time (one 512-bit register, or two of 256 bits), then four, then
/// one.
#[inline(always)]
fn ones(a: &[u64], b: &[u64]) -> u32 {
    let (eights, rest) = some::<8>(a, b);
    let (fours, last) = some::<4>(&a[rest..], &b[rest..]);
    let left = a[rest + last..].iter().zip(&b[rest + last..]);
    eights + fours + left.map(|(x, y)| (x ^ y).count_ones()).sum::<u32>()
}

/// Differing components of one bit, `N` groups at a time; and the number of groups processed.
#[inline(always)]
fn some<const N: usize>(a: &[u64], b: &[u64]) -> (u32, usize) {
    let (chunks, others) = (a.as_chunks::<N>().0, b.as_chunks::<N>().0);
    let mut count = 0;
    for (x, y) in chunks.iter().zip(others) {
        let mut differ = [0; N];
        for lane in 0..N {
            differ[lane] = x[lane] ^ y[lane];
        }
        count += differ.iter().map(|word| word.count_ones()).sum::<u32>();
    }
    (count, N * chunks.len())
}

/// Components of `N` bits.
#[inline(always)]
fn groups<const N: usize>(a: &[u64], b: &[u64]) -> u32 {
    let (groups, others) = (a.as_chunks::<N>().0, b.as_chunks::<N>().0);
    let mut count = 0;
    for (x, y) in groups.iter().zip(others) {
        count += group(x, y);
        // Prevents the compiler from gathering the words of several groups, which takes up to ten times as
        // long.
        black_box(());
    }
    count
}

/// Differing components of one group, given its planes.
#[inline(always)]
fn group(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).fold(0, |differ, (x, y)| differ | (x ^ y)).count_ones()
}

/// Differing words. Counted in 64-bit numbers, so that whole registers are added.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a sketch has at most 32768 components")]
fn whole(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(x, y)| u64::from(x != y)).sum::<u64>() as u32
}
