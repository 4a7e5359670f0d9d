//! The portable engine, and the loop that the vector engines compile again with more instructions.

use super::Shape;

/// See [`super::Engine`].
pub(super) fn differing(a: &[u64], b: &[u64], shape: Shape, from: usize, to: usize) -> u32 {
    body(a, b, shape, from, to)
}

/// Eight groups side by side (one 512-bit register, or two of 256 bits), then four, two
/// and one. Always inlined, so that the caller's target features hold for it.
#[inline(always)]
pub(super) fn body(a: &[u64], b: &[u64], shape: Shape, from: usize, to: usize) -> u32 {
    let (mut g, mut count) = (from, 0);
    while g + 8 <= to {
        count += lanes::<8>(a, b, shape, g);
        g += 8;
    }
    let rest = to - g;
    if rest & 4 != 0 {
        count += lanes::<4>(a, b, shape, g);
    }
    if rest & 2 != 0 {
        count += lanes::<2>(a, b, shape, g + (rest & 4));
    }
    if rest & 1 != 0 {
        count += lanes::<1>(a, b, shape, to - 1);
    }
    count
}

/// Differing components of the groups `g..g + N`.
#[inline(always)]
fn lanes<const N: usize>(a: &[u64], b: &[u64], shape: Shape, g: usize) -> u32 {
    let mut differ = [0; N];
    for plane in 0..shape.planes {
        let at = plane * shape.groups + g;
        let (a, b) = (&a[at..at + N], &b[at..at + N]);
        for lane in 0..N {
            differ[lane] |= a[lane] ^ b[lane];
        }
    }
    differ.iter().map(|word| word.count_ones()).sum()
}
