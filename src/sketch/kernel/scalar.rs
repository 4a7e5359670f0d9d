//! The portable engine, and the loop that the vector engines compile again with more instructions.

use super::WHOLE;

/// See [`super::Engine`].
pub(super) fn differing(a: &[u64], b: &[u64], bits: usize) -> u32 {
    body(a, b, bits)
}

/// One loop for each width that sketches have, so that the compiler knows how many words a group has. Always inlined, so that the caller's
/// target features hold for it.
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
        _ => a.chunks_exact(bits).zip(b.chunks_exact(bits)).map(|(a, b)| group(a, b)).sum(),
    }
}

/// Components of one bit: eight groups side by side (one 512-bit register, or two of 256 bits), then four, two and one.
#[inline(always)]
fn ones(a: &[u64], b: &[u64]) -> u32 {
    let ((a, rest_of_a), (b, rest_of_b)) = (a.as_chunks(), b.as_chunks());
    let eights: u32 = a.iter().zip(b).map(|(a, b)| lanes::<8>(a, b)).sum();
    let ((a, rest_of_a), (b, rest_of_b)) = (rest_of_a.as_chunks(), rest_of_b.as_chunks());
    let fours: u32 = a.iter().zip(b).map(|(a, b)| lanes::<4>(a, b)).sum();
    eights + fours + rest_of_a.iter().zip(rest_of_b).map(|(a, b)| (a ^ b).count_ones()).sum::<u32>()
}

/// Differing components of `N` groups of one bit.
#[inline(always)]
fn lanes<const N: usize>(a: &[u64; N], b: &[u64; N]) -> u32 {
    let mut differ = [0; N];
    for lane in 0..N {
        differ[lane] = a[lane] ^ b[lane];
    }
    differ.iter().map(|word| word.count_ones()).sum()
}

/// Components of `N` bits.
#[inline(always)]
fn groups<const N: usize>(a: &[u64], b: &[u64]) -> u32 {
    let (a, b) = (a.as_chunks::<N>().0, b.as_chunks::<N>().0);
    a.iter().zip(b).map(|(a, b)| group(a, b)).sum()
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
