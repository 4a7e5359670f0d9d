//! The fraction that a double stands for, and products without overflow, so that ties are decided by whole
//! numbers.
//!
//! A double stands for the first convergent of its continued fraction that is rounded to it: 0.8 for 4/5,
//! 0.6666666666666666 for 2/3. By Legendre's theorem that is p/q for every q of at most 2^26 (of small values
//! more), so what is typed as a decimal or computed as a quotient is had back.
//!
//! Reference: G. H. Hardy and E. M. Wright, *An introduction to the theory of numbers*, section 10.15.

/// A fraction in lowest terms.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fraction {
    /// Numerator.
    pub part: u64,
    /// Denominator, at least 1.
    pub whole: u64,
}

/// The least double with a fraction of its own: the dyadic fractions from here on fit into 128 bits.
const LEAST: f64 = f64::from_bits((1023 - 60) << 52);

impl Fraction {
    /// The fraction that a double from 2^-60 (inclusive) to 2^53 (exclusive) stands for; `None` for others.
    pub fn new(value: f64) -> Option<Self> {
        if !(LEAST..(1_u64 << 53) as f64).contains(&value) {
            return None;
        }
        // The value is `mantissa * 2^-scale`, exactly.
        let (exponent, mantissa) = (value.to_bits() >> 52, value.to_bits() & ((1 << 52) - 1) | 1 << 52);
        let mut rest = (u128::from(mantissa), 1_u128 << (1075 - exponent));
        let (mut before, mut now) = ((0, 1), (1, 0));
        loop {
            let term = rest.0 / rest.1;
            (before, now) = (now, (term * now.0 + before.0, term * now.1 + before.1));
            rest = (rest.1, rest.0 % rest.1);
            // The remainder is `|part * 2^scale - mantissa * whole|`: less than half a unit of the mantissa.
            if 2 * rest.1 < now.1 {
                return Some(Self { part: u64::try_from(now.0).ok()?, whole: u64::try_from(now.1).ok()? });
            }
        }
    }
}

/// `a * b`, the upper and the lower 128 bits.
pub fn product(a: u128, b: u128) -> (u128, u128) {
    const HALF: u32 = 64;
    let split = |n: u128| (n >> HALF, n & u128::from(u64::MAX));
    let ((a1, a0), (b1, b0)) = (split(a), split(b));
    let (middle, carry) = (a1 * b0).overflowing_add(a0 * b1);
    let (low, carried) = (a0 * b0).overflowing_add(middle << HALF);
    (a1 * b1 + (middle >> HALF) + (u128::from(carry) << HALF) + u128::from(carried), low)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn quotients_and_decimals_are_had_back() {
        let gcd = |mut a: u64, mut b: u64| {
            while b > 0 {
                (a, b) = (b, a % b);
            }
            a
        };
        let check = |part: u64, whole: u64| {
            let common = gcd(part, whole);
            let expected = Fraction { part: part / common, whole: whole / common };
            assert_eq!(Fraction::new(part as f64 / whole as f64), Some(expected), "{part}/{whole}");
        };
        (1..200).for_each(|whole| (1..=3 * whole).for_each(|part| check(part, whole)));
        for seed in 0..20_000 {
            let whole = 1 + mix(seed) % (1 << 26);
            check(1 + mix(seed ^ 1 << 40) % whole, whole);
        }
        for typed in ["0.8", "0.35", "0.6667", "0.12345678", "1", "0.00001", "9007199254740991"] {
            let decimals = typed.split_once('.').map_or(0, |(_, decimals)| decimals.len());
            let whole = 10_u64.pow(u32::try_from(decimals).unwrap());
            let part = typed.replace('.', "").parse().unwrap();
            let common = gcd(part, whole);
            let expected = Fraction { part: part / common, whole: whole / common };
            assert_eq!(Fraction::new(typed.parse().unwrap()), Some(expected), "{typed}");
        }
    }

    /// Every fraction is nearer to its double than half the distance of the next one.
    #[test]
    fn every_double_in_range_has_a_fraction() {
        for seed in 0..20_000 {
            let exponent = 1023 - 60 + mix(seed) % 113;
            let mantissa = mix(seed ^ 1 << 40) >> 12;
            let found = Fraction::new(f64::from_bits(exponent << 52 | mantissa)).unwrap();
            let scaled = u128::from(found.part) << (1075 - exponent);
            let off = scaled.abs_diff(u128::from(mantissa | 1 << 52) * u128::from(found.whole));
            assert!(2 * off < u128::from(found.whole), "{found:?}");
        }
        for value in [0.0, -0.5, LEAST.next_down(), 9_007_199_254_740_992.0, f64::NAN, f64::INFINITY] {
            assert_eq!(Fraction::new(value), None);
        }
        assert_eq!(Fraction::new(LEAST), Some(Fraction { part: 1, whole: 1 << 60 }));
    }

    /// By schoolbook multiplication of digits of 32 bits.
    #[test]
    fn products_have_256_bits() {
        let digits = |n: u128| [0, 32, 64, 96].map(|shift| n >> shift & u128::from(u32::MAX));
        for seed in 0..2000 {
            let number = |salt: u64| {
                let bits = u128::from(mix(seed ^ salt)) << 64 | u128::from(mix(seed ^ salt << 1));
                (bits >> (mix(seed ^ salt << 2) % 128)) | (u128::from(seed % 7 == 0) * (u128::MAX >> 1))
            };
            let (a, b) = (number(1 << 50), number(1 << 40));
            let mut sums = [0_u128; 9];
            for (i, x) in digits(a).into_iter().enumerate() {
                for (j, y) in digits(b).into_iter().enumerate() {
                    sums[i + j] += (x * y) & u128::from(u32::MAX);
                    sums[i + j + 1] += (x * y) >> 32;
                }
            }
            for i in 0..8 {
                sums[i + 1] += sums[i] >> 32;
                sums[i] &= u128::from(u32::MAX);
            }
            let join = |at: usize| (0..4).map(|i| sums[at + i] << (32 * i)).sum::<u128>();
            assert_eq!(product(a, b), (join(4), join(0)), "{a} {b}");
        }
        assert_eq!(product(u128::MAX, u128::MAX), (u128::MAX - 1, 1));
    }
}
