//! CWS, consistent weighted sampling by exponential intervals.
//!
//! For a feature and a component the *active points* are a random sequence over the weights above 0, fixed by
//! hash: a Poisson process of rate dv / v. In each interval `(2^(e-1), 2^e]`, e any integer, they come from
//! the top: `2^e u1`, `2^e u1 u2`, ... while they are in it. Of a weight S, y is the largest active point up
//! to S (inclusive) and z the smallest above; the sample is (x, y), here called by z, which is the next one.
//! The rank is `t / z` with t of Gamma(2, 1): -z ln h of the paper, whose h has the distribution `h^z (1 + z
//! ln(1 / h))`; so no equation is solved.
//!
//! That an interval has a point is one bit, since `P[u1 > 1/2] = 1/2`; a word holds the bits of 64 intervals.
//! The bound: z is at most the upper end of the first interval above S that has a point, and `t = -ln p >= 1
//! - p`.
//!
//! Reference: M. Manasse, F. McSherry and K. Talwar, *Consistent weighted sampling* (2010). Two differences:
//! intervals below 1, which weights below 1 need; and one t for all intervals of a feature and a component.
//! With a t of its own in each interval, as the paper draws h, the rank may rise with the weight, and samples
//! are equal less often than J_w says: of {a: 1, b: 1} and {a: 1, b: 3} with 0.4857 instead of 1/2 (17/35, by
//! integration; and measured).

use super::Sampler;
use super::consistent::Consistent;
use super::draws::{Draws, ln, power_of_two, product};
use super::kernel::samples::Law;
use crate::hash::{PI, mix};
use crate::text::Features;

/// The sketcher.
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

/// Where a weight is among the intervals.
#[derive(Clone, Copy, Debug)]
pub(super) struct Intervals {
    weight: f64,
    /// e, with the weight in `(2^(e-1), 2^e]`.
    own: i32,
    /// 2^(e+1), the upper end of the next interval.
    next: f64,
    /// The word and the place in it of the next interval's bit.
    salt: u64,
    shift: u32,
}

/// The word that an interval's bit is in, as a salt, and its place there. Words change at 2^32, 2^-32, ...,
/// far from most weights.
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

/// The least active point above `weight` of an interval that has a point, if it has one there.
fn least_point(word: u64, interval: i32, weight: f64) -> Option<f64> {
    let mut draws = Draws(word ^ mix(PI[7] ^ i64::from(interval).cast_unsigned()));
    let top = power_of_two(interval);
    let above = weight.max(top / 2.0);
    // The first uniform number, given that it is above one half.
    let mut point = top * (0.5 + draws.uniform() / 2.0);
    let mut least = None;
    while point > above {
        least = Some(point);
        point *= draws.uniform();
    }
    least
}

impl Law for Intervals {
    fn of(weight: f64) -> Self {
        let bits = weight.to_bits();
        let floor = (bits >> 52) as i32 - 1023;
        let own = floor + i32::from(bits << 12 != 0);
        let (salt, shift) = place(own + 1);
        Self { weight, own, next: power_of_two(own + 1), salt, shift }
    }

    #[inline(always)]
    fn may_be_below(&self, word: u64, least: f64) -> bool {
        let bits = mix(word ^ self.salt) >> self.shift;
        // The lowest bit that is set, as a power of two; 0 if the word's rest has none and z may be anywhere.
        let first = (bits & bits.wrapping_neg()) as f64;
        let unknown = first < 1.0;
        (1.0 - product(word) < least * self.next * first) | unknown
    }

    fn sample(&self, word: u64) -> (f64, u64) {
        let z = self.point_above(word);
        (-ln(product(word)) / z, z.to_bits())
    }
}
