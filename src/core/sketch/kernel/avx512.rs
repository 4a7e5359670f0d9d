//! Packing for AVX-512, where the compiler does not vectorize: a column of 64 x 8 bits is one test of 64
//! bytes.
//!
//! Obligations: the caller's processor has the features, which the compiler enforces by the function's
//! attribute; the load stays within the given array.

#![expect(unsafe_code, reason = "a load of a whole register")]

use std::arch::x86_64::{__m512i, _mm512_loadu_si512, _mm512_set1_epi8, _mm512_test_epi8_mask};
use std::ops::Range;

use super::planes;

/// Words of a register.
const LANES: usize = 8;

#[target_feature(enable = "avx512f")]
fn load(words: &[u64; LANES]) -> __m512i {
    // SAFETY: the array is as long as the register.
    unsafe { _mm512_loadu_si512(words.as_ptr().cast()) }
}

/// See [`planes::PackFn`].
#[target_feature(enable = "avx512f,avx512dq,avx512vl,avx512bw,avx2")]
pub(super) fn pack(components: &[u64], bits: Range<usize>, stride: usize, planes: &mut [u64]) {
    planes::body(components, bits, stride, planes, |rows| {
        let rows = load(&bytemuck::cast(*rows));
        // A loop: `map` would call the closure, which is compiled for more features than `map` is.
        let mut columns = [0; 8];
        for (column, bit) in columns.iter_mut().zip([1i8, 2, 4, 8, 16, 32, 64, i8::MIN]) {
            *column = _mm512_test_epi8_mask(rows, _mm512_set1_epi8(bit));
        }
        columns
    });
}
