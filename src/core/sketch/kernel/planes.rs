//! Packs the re-hashes of components into bit planes: the planes of 64 components, then those of the next 64.
//!
//! One byte of the re-hashes of 64 components is a matrix of 64 x 8 bits, whose columns are words of eight
//! planes. Vector units read a column in one or two instructions; the portable version transposes 8 x 8 bits
//! at a time.

use std::ops::Range;

use crate::hash::PI;

/// Number of components in a word of a plane.
pub(super) const GROUP: usize = 64;

/// Writes the planes of the given bits of components, one word for each plane and group of 64 components. The
/// words of the next group are `stride` words further. Unused bits of the last words are 0.
pub(in crate::sketch) type PackFn =
    fn(components: &[u64], bits: Range<usize>, stride: usize, planes: &mut [u64]);

/// The portable [`PackFn`].
pub(in crate::sketch) fn pack(components: &[u64], bits: Range<usize>, stride: usize, planes: &mut [u64]) {
    body(components, bits, stride, planes, columns);
}

/// The re-hash: its low bits are the high bits of a product, which depend on all bits of the value.
#[inline(always)]
pub(in crate::sketch) fn rehash(value: u64) -> u64 {
    value.wrapping_mul(PI[5]).swap_bytes()
}

/// The body of every [`PackFn`]; `columns` reads the columns of a matrix with row i in byte i. Always
/// inlined, so that it is compiled with the caller's target features.
#[inline(always)]
pub(super) fn body(
    components: &[u64],
    bits: Range<usize>,
    stride: usize,
    planes: &mut [u64],
    columns: impl Fn(&[u8; GROUP]) -> [u64; 8],
) {
    for (g, group) in components.chunks(GROUP).enumerate() {
        for byte in bits.start / 8..bits.end.div_ceil(8) {
            let mut rows = [0; GROUP];
            for (row, value) in rows.iter_mut().zip(group) {
                *row = (rehash(*value) >> (8 * byte) & 0xff) as u8;
            }
            let columns = columns(&rows);
            for p in bits.start.max(8 * byte)..bits.end.min(8 * byte + 8) {
                planes[g * stride + p - bits.start] = columns[p % 8];
            }
        }
    }
}

/// The portable way to read columns, 8 rows at a time.
fn columns(rows: &[u8; GROUP]) -> [u64; 8] {
    let mut columns = [0; 8];
    for (i, eight) in rows.as_chunks().0.iter().enumerate() {
        let eighth = transpose(u64::from_le_bytes(*eight));
        for (p, column) in columns.iter_mut().enumerate() {
            *column |= (eighth >> (8 * p) & 0xff) << (8 * i);
        }
    }
    columns
}

/// Transposes a matrix of 8 x 8 bits, row i in byte i (H. S. Warren, *Hacker's Delight*, 7-3).
fn transpose(mut x: u64) -> u64 {
    for (shift, mask) in
        [(7, 0x00aa_00aa_00aa_00aa), (14, 0x0000_cccc_0000_cccc), (28, 0x0000_0000_f0f0_f0f0)]
    {
        let swap = (x ^ (x >> shift)) & mask;
        x ^= swap ^ (swap << shift);
    }
    x
}
