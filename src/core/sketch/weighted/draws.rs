//! Pseudo-random numbers that are the same on every machine, for the sketches of weighted features.
//!
//! A 64-bit word -> uniform numbers, and their logarithms. IEEE 754 defines the result of `+`, `-`, `*` and
//! `/` to the last bit. It does not define `ln` and `exp`, which differ between platform libraries. Sketches
//! are compared across machines, so these two functions are implemented here with the four operations, which
//! the compiler never contracts or reorders.
//!
//! References: G. Steele, D. Lea and C. Flood, *Fast splittable pseudorandom number generators* (OOPSLA
//! 2014).

use std::f64::consts::{LN_2, LOG2_E, SQRT_2};

use crate::hash::mix;

/// Splitmix64: independent words, determined by the first state.
#[derive(Clone, Copy, Debug)]
pub(super) struct Draws(pub(super) u64);

impl Draws {
    /// The next word.
    #[inline(always)]
    pub(super) fn word(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        mix(self.0)
    }

    /// The next word as a [`uniform`] number.
    #[inline(always)]
    pub(super) fn uniform(&mut self) -> f64 {
        uniform(self.word())
    }
}

/// The bits of 1.0. With the fraction bits set, a number from 1 to 2.
const ONE: u64 = 0x3ff0_0000_0000_0000;

/// 2^-53.
const HALF_STEP: f64 = f64::EPSILON / 2.0;

/// An odd multiple u of 2^-53 between 0 and 1. `1 - u` is another one, without rounding.
#[inline(always)]
pub(super) fn uniform(word: u64) -> f64 {
    f64::from_bits(ONE | word >> 12) - (1.0 - HALF_STEP)
}

/// The product u v of two uniform numbers, which are odd multiples of 2^-33 between 0 and 1. `-ln(u v)` has
/// the distribution Gamma(2, 1).
#[inline(always)]
pub(super) fn product(word: u64) -> f64 {
    const HALF: f64 = 1.0 / 8_589_934_592.0;
    let uniform = |half: u64| f64::from_bits(ONE | half << 20) - (1.0 - HALF);
    uniform(word >> 32) * uniform(word & 0xffff_ffff)
}

/// 2^exponent, for exponents from -1022 to 1023 inclusive.
#[inline(always)]
pub(super) fn power_of_two(exponent: i32) -> f64 {
    debug_assert!((-1022..=1023).contains(&exponent));
    f64::from_bits((i64::from(exponent + 1023) << 52).cast_unsigned())
}

/// The natural logarithm of a normal number above 0, with a relative error below 2^-50.
///
/// With `x = 2^e m` and m from sqrt(1/2) to sqrt(2), `ln m = 2 (s + s^3 / 3 + s^5 / 5 + ...)` where `s = (m -
/// 1) / (m + 1)`.
pub(super) fn ln(x: f64) -> f64 {
    let above = x.to_bits().wrapping_sub((SQRT_2 / 2.0).to_bits());
    let exponent = above.cast_signed() >> 52;
    let m = f64::from_bits(x.to_bits().wrapping_sub((exponent << 52).cast_unsigned()));
    let s = (m - 1.0) / (m + 1.0);
    let z = s * s;
    // Each power is at most 0.1716^2: the first omitted term is below 1e-16.
    let series = (0..9).rev().fold(0.0, |sum, k| sum * z + 1.0 / f64::from(2 * k + 1));
    exponent as f64 * LN_2 + 2.0 * s * series
}

/// e^x for |x| at most 700, with a relative error below 2^-48.
///
/// With `x = k ln 2 + r` and |r| at most ln(2) / 2, `e^x = 2^k (1 + r + r^2 / 2 + ...)`.
#[expect(clippy::cast_possible_truncation, reason = "a whole number of at most 1010")]
pub(super) fn exp(x: f64) -> f64 {
    debug_assert!(x.abs() <= 700.0);
    let k = (x * LOG2_E + 0.5).floor();
    // ln 2 in two parts; products of the first part with k are exact.
    let r = (x - k * 0.693_147_180_369_123_8) - k * 1.908_214_929_270_587_7e-10;
    let series = (1..14).rev().fold(1.0, |sum, n| 1.0 + sum * r / f64::from(n));
    series * power_of_two(k as i32)
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "binary fractions, computed without rounding")]
mod tests {
    use super::*;

    #[test]
    fn by_hand() {
        assert_eq!([uniform(0), uniform(u64::MAX)], [HALF_STEP, 1.0 - HALF_STEP]);
        assert_eq!(uniform(1 << 63), 0.5 + HALF_STEP);
        assert_eq!(1.0 - (1.0 - uniform(1 << 12)), 3.0 * HALF_STEP);
        assert_eq!(product(0), power_of_two(-66));
        assert_eq!(product(1 << 63 | 1 << 31), (0.5 + power_of_two(-33)) * (0.5 + power_of_two(-33)));
        assert_eq!([ln(1.0), exp(0.0)], [0.0, 1.0]);
        assert_eq!([power_of_two(-1022), power_of_two(3)], [f64::MIN_POSITIVE, 8.0]);
    }

    #[test]
    fn ln_and_exp_equal_the_library_up_to_rounding() {
        let mut draws = Draws(1);
        for _ in 0..10_000 {
            let x = draws.uniform() * 1400.0 - 700.0;
            assert!((exp(x) / x.exp() - 1.0).abs() < power_of_two(-48), "{x}");
            for y in [x.exp(), 1.0 + x * 1e-4, 1.0 - draws.uniform() * 1e-9] {
                assert!((ln(y) - y.ln()).abs() <= power_of_two(-50) * y.ln().abs(), "{y}");
            }
        }
        // The smallest possible exponential draw is not rounded to 0.
        assert!((ln(1.0 - HALF_STEP) / -HALF_STEP - 1.0).abs() < 1e-12);
    }

    #[test]
    fn known_answers() {
        // Every value to its last bit: other bits on another machine would be another sketch.
        let found = [ln(0.1), ln(12345.678), exp(-1.0), exp(10.5), product(0x0123_4567_89ab_cdef)];
        let bits: Vec<_> = found.iter().map(|x| format!("{:016x}", x.to_bits())).collect();
        assert_eq!(
            bits,
            [
                "c0026bb1bbb55515",
                "4022d79559791e31",
                "3fd78b56362cef38",
                "40e1bb7015e84d3b",
                "3f639473c1d6b9fb"
            ]
        );
    }
}
