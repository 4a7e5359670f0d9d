//! ICWS, improved consistent weighted sampling: the reference for weighted sketches.
//!
//! For a feature of weight S and a component, a hash gives r and c of Gamma(2, 1) and β uniform in (0, 1).
//! The level is `t = floor(ln S / r + β)`; with it `y = exp(r (t - β)) <= S < z = y e^r`, and the rank is
//! `c / z`. Logarithms are the same on every machine ([`super::draws`]).
//!
//! A lower bound of the rank, without a logarithm (`may_be_below`): p and q are each the product of two
//! uniform numbers, with `c = -ln p` and `r = -ln q`. Then `c >= 1 - p` and `z <= S e^r = S / q`, so the rank
//! is at least `(1 - p) q / S`.
//!
//! Reference: S. Ioffe, *Improved consistent sampling, weighted minhash and L1 sketching* (ICDM 2010),
//! section 3.

use super::consistent::Consistent;
use super::draws::{Draws, exp, ln, product};
use crate::sketch::kernel::samples::SamplingLaw;
use crate::sketch::sampler::Sampler;
use crate::text::Features;

/// The ICWS sketcher.
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

/// The sampling law of ICWS for one weight, with the logarithm of the weight.
#[derive(Clone, Copy, Debug)]
pub(super) struct Logarithms {
    weight: f64,
    log: f64,
}

impl SamplingLaw for Logarithms {
    fn new(weight: f64) -> Self {
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
