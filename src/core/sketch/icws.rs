//! ICWS, improved consistent weighted sampling: the oracle of weighted sketches.
//!
//! For a feature of weight S and a component, with r, c of Gamma(2, 1) and β uniform in (0, 1), all by hash:
//! the level is `t = floor(ln S / r + β)`, with which `y = exp(r (t - β)) <= S < z = y e^r`; the rank is `c /
//! z`. Computed with logarithms that are the same on every machine ([`super::draws`]).
//!
//! The bound: `c = -ln p >= 1 - p` with p the product of two uniform numbers, and `z <= S e^r = S / q`,
//! likewise. So the rank is at least `(1 - p) q / S`.
//!
//! Reference: S. Ioffe, *Improved consistent sampling, weighted minhash and L1 sketching* (ICDM 2010),
//! section 3.

use super::Sampler;
use super::consistent::Consistent;
use super::draws::{Draws, exp, ln, product};
use super::kernel::samples::Law;
use crate::text::Features;

/// The sketcher.
#[derive(Clone, Debug)]
pub struct Icws(Consistent);

impl Icws {
    /// `size` components under hash functions derived from `seed`.
    pub fn new(size: usize, seed: u64) -> Self {
        Self(Consistent::new::<Logarithms>(size, seed))
    }
}

impl Sampler for Icws {
    fn components(&mut self, features: Features<'_>, out: &mut [u64]) {
        self.0.components(features, out);
    }
}

/// A weight and its logarithm.
#[derive(Clone, Copy, Debug)]
pub(super) struct Logarithms {
    weight: f64,
    log: f64,
}

impl Law for Logarithms {
    fn of(weight: f64) -> Self {
        Self { weight, log: ln(weight) }
    }

    #[inline(always)]
    fn may_be_below(&self, word: u64, least: f64) -> bool {
        let q = product(Draws(word).word());
        (1.0 - product(word)) * q < least * self.weight
    }

    fn sample(&self, word: u64) -> (f64, u64) {
        let mut draws = Draws(word);
        let (c, r) = (-ln(product(word)), -ln(product(draws.word())));
        let beta = draws.uniform();
        let t = (self.log / r + beta).floor();
        (c * exp(-r * (t - beta + 1.0)), t.to_bits())
    }
}
