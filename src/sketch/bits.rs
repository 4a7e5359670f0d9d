//! Full-width components to b-bit fingerprints (P. Li and A. C. König, *b-bit minwise hashing*, WWW 2010).
//!
//! A component of value s is stored as the low b bits of a re-hash of s: a bijection of 64-bit words, so that unequal
//! components collide with probability 2^-b (truncating the value itself, a minimum, would not give that).

use crate::hash::PI;

/// The re-hash: the low bits of the result are the high bits of a product, which depend on all bits of the value.
#[inline(always)]
fn rehash(value: u64) -> u64 {
    value.wrapping_mul(PI[5]).swap_bytes()
}

/// Appends the `bits` planes of `components`, `ceil(K / 64)` words each; unused bits of the last words are 0.
pub(super) fn pack(components: &[u64], bits: usize, planes: &mut Vec<u64>) {
    let groups = components.len().div_ceil(64);
    let start = planes.len();
    planes.resize(start + bits * groups, 0);
    let planes = &mut planes[start..];
    // Eight bits of eight components at a time: row i of a bit matrix is component i, a column is a plane.
    for byte in 0..bits.div_ceil(8) {
        for (e, eight) in components.chunks(8).enumerate() {
            let rows = eight.iter().rev().fold(0, |m, s| m << 8 | (rehash(*s) >> (8 * byte) & 0xff));
            let columns = transpose(rows);
            for p in 8 * byte..bits.min(8 * byte + 8) {
                planes[p * groups + e / 8] |= (columns >> (8 * (p % 8)) & 0xff) << (8 * (e % 8));
            }
        }
    }
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn every_plane_holds_its_bit_of_every_component() {
        for size in [1usize, 7, 8, 63, 64, 65, 130, 448] {
            let components: Vec<u64> = (0..size as u64).map(|j| mix(j * 31 + 7)).collect();
            for bits in [1, 2, 4, 8, 16, 32, 64] {
                let mut planes = vec![99];
                pack(&components, bits, &mut planes);
                let groups = size.div_ceil(64);
                assert_eq!((planes.len(), planes[0]), (1 + bits * groups, 99));
                for p in 0..bits {
                    for j in 0..groups * 64 {
                        let stored = planes[1 + p * groups + j / 64] >> (j % 64) & 1;
                        let expected = components.get(j).map_or(0, |s| rehash(*s) >> p & 1);
                        assert_eq!(stored, expected, "size {size} bits {bits} plane {p} component {j}");
                    }
                }
            }
        }
    }
}
