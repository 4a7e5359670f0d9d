//! The portable engine, and the loop that the vector engines compile again with more instructions.

use std::hint::black_box;

use super::WHOLE;

/// See [`super::Engine`].
pub(super) fn differing(a: &[u64], b: &[u64], bits: usize) -> u32 {
    body(a, b, bits)
}

/// One loop for each width that sketches have, so that the compiler knows how many words a group has. Always
/// inlined, so that the caller's target features hold for it.
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

/// Components of one bit: eight groups side by side (one 512-bit register, or two of 256 bits), then four,
/// then one by one.
#[inline(always)]
fn ones(a: &[u64], b: &[u64]) -> u32 {
    let (eights, rest) = some::<8>(a, b);
    let (fours, last) = some::<4>(&a[rest..], &b[rest..]);
    let left = a[rest + last..].iter().zip(&b[rest + last..]);
    eights + fours + left.map(|(x, y)| (x ^ y).count_ones()).sum::<u32>()
}

/// Differing components of as many groups of one bit as there are `N` at a time, and how many groups these
/// are.
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
        // Else the compiler takes several groups at a time and gathers their words, which takes up to ten
        // times as long.
        black_box(());
    }
    count
}

/// Differing components of one group, whose planes these are.
#[inline(always)]
fn group(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).fold(0, |differ, (x, y)| differ | (x ^ y)).count_ones()
}

/// Words that differ. Counted in words, so that a register of them is added to at a time.
#[inline(always)]
#[expect(clippy::cast_possible_truncation, reason = "a sketch has at most 32768 components")]
fn whole(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(x, y)| u64::from(x != y)).sum::<u64>() as u32
}
