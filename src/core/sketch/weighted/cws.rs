//! CWS, consistent weighted sampling by exponential intervals.
//!
//! For each feature and component the *active points* are a random sequence of weights above 0, given by a
//! hash: a Poisson process of rate dv / v. In each interval `(2^(e-1), 2^e]`, e any integer, the points are
//! generated from the top, `2^e u1`, `2^e u1 u2`, ..., until one is below the interval. For a weight S, y is
//! the largest active point up to S (inclusive) and z the smallest above S. The sample is (x, y); here z, the
//! point after y, identifies it.
//!
//! The rank is `t / z` with t distributed as Gamma(2, 1). So t is `-z ln h` for the h of the paper, which has
//! the distribution `h^z (1 + z ln(1 / h))`, and no equation has to be solved.
//!
//! One bit says whether an interval has a point, since `P[u1 > 1/2] = 1/2`; a word holds the bits of 64
//! intervals. The bound: z is at most the upper end of the first interval above S that has a point, and `t =
//! -ln p >= 1 - p`.
//!
//! Reference: M. Manasse, F. McSherry and K. Talwar, *Consistent weighted sampling* (2010). Two differences:
//! intervals below 1, for weights below 1; and one t for all intervals of a feature and a component. If each
//! interval had its own t, as the paper draws h, the rank could rise with the weight, and samples would be
//! equal less often than J_w: for {a: 1, b: 1} and {a: 1, b: 3} with 0.4857 instead of 1/2 (17/35 by
//! integration; confirmed by measurement).

use super::consistent::Consistent;
use super::draws::{Draws, ln, power_of_two, product};
use crate::hash::{PI, mix};
use crate::sketch::kernel::samples::SamplingLaw;
use crate::sketch::sampler::Sampler;
use crate::text::Features;

/// The CWS sketcher.
#[derive(Clone, Debug)]
pub struct Cws(Consistent);

impl Cws {
    /// `size` components under hash functions derived from `seed`.
    pub fn new(size: usize, seed: u64) -> Self {
        Self(Consistent::new::<Intervals>(size, seed))
    }
}

impl Sampler for Cws {
    fn components(&mut self, features: Features<'_>, out: &mut [u64]) {
        self.0.components(features, out);
    }
}

/// The position of a weight among the intervals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intervals {
    weight: f64,
    /// e, such that the weight is in `(2^(e-1), 2^e]`.
    own: i32,
    /// 2^(e+1), the upper end of the next interval.
    next: f64,
    /// The word that contains the bit of the next interval, as a salt, and the position of the bit.
    salt: u64,
    shift: u32,
}

/// The word that contains an interval's bit, as a salt, and the position of the bit. A new word begins at
/// 2^32, 2^-32, ..., far from most weights.
fn place(interval: i32) -> (u64, u32) {
    let place = (i64::from(interval) + 32).cast_unsigned();
    (mix(PI[6] ^ place >> 6), (place & 63) as u32)
}

impl Intervals {
    /// The smallest active point above the weight.
    fn point_above(&self, word: u64) -> f64 {
        let in_interval = |interval| {
            let (salt, shift) = place(interval);
            let has_point = mix(word ^ salt) >> shift & 1 == 1;
            has_point.then(|| least_point(word, interval, self.weight)).flatten()
        };
        (self.own..).find_map(in_interval).expect("one interval in two has a point")
    }
}

/// The least active point above `weight` in an interval that has a point; `None` if its points are not above.
fn least_point(word: u64, interval: i32, weight: f64) -> Option<f64> {
    let mut draws = Draws(word ^ mix(PI[7] ^ i64::from(interval).cast_unsigned()));
    let top = power_of_two(interval);
    let above = weight.max(top / 2.0);
    // The first uniform number, conditional on being above one half.
    let mut point = top * (0.5 + draws.uniform() / 2.0);
    let mut least = None;
    while point > above {
        least = Some(point);
        point *= draws.uniform();
    }
    least
}

impl SamplingLaw for Intervals {
    fn new(weight: f64) -> Self {
        let bits = weight.to_bits();
        let floor = (bits >> 52) as i32 - 1023;
        let own = floor + i32::from(bits << 12 != 0);
        let (salt, shift) = place(own + 1);
        Self { weight, own, next: power_of_two(own + 1), salt, shift }
    }

    #[inline(always)]
    fn may_be_below(&self, word: u64, least: f64) -> bool {
        let bits = mix(word ^ self.salt) >> self.shift;
        // The lowest set bit, as a power of two. 0 if the rest of the word has none; then z may be anywhere.
        let first = (bits & bits.wrapping_neg()) as f64;
        let unknown = first < 1.0;
        (1.0 - product(word) < least * self.next * first) | unknown
    }

    fn sample(&self, word: u64) -> (f64, u64) {
        let z = self.point_above(word);
        (-ln(product(word)) / z, z.to_bits())
    }
}
