//! Exact sequential bounds: the number of matches below which a look rejects, so that all looks together err
//! with probability at most delta.
//!
//! In: the numbers of components k_1 < ... < k_n of the looks, of K in all; delta. Out: `below[i]`; a pair is
//! rejected at look i if fewer than `below[i]` of its first k_i components match. Two definitions of an
//! error:
//!
//! - **sketch**: the pair has M matches among all K components, enough to be accepted, but a look rejects it.
//!   The components of a pair are exchangeable under the random seed, so at any similarity all arrangements
//!   of M matches among K places are equally likely. The probability of a rejection decreases with M, so the
//!   worst case is the least sufficient M.
//! - **true**: every component matches independently with probability at least p, but a look rejects the
//!   pair; the worst case is exactly p.
//!
//! Both use the paths of the binomial walk: `u(x)` is the probability that x of the first k components match
//! and no look has rejected; from look to look it is convolved with Bin(step, p). In mode *true* this is the
//! mass of x. In mode *sketch* it is conditioned on the end, `u(x) * P[Bin(K - k, p) = M - x] / P[Bin(K, p) =
//! M]`; the result does not depend on p, and p = M / K keeps the numbers in range. After look i of n at most
//! `delta * i / n` is spent (linear spending); `below[i]` is the greatest bound within the remaining error.
//! States that can no longer reach M have mass 0 and spend no error, so stopping as soon as the outcome is
//! certain (curtailment) is included.
//!
//! The **first word** test is a look at only one bit of each of the first w components: a component that
//! differs agrees in its low bit with probability `q = (2^(b-1) - 1) / (2^b - 1)`, so `Y = X_w + Bin(w - X_w,
//! q)` bits agree. It is the first look and spends error like the others; the paths continue with the pairs
//! that pass.
//!
//! Bounds for accepting are the bounds of the mirrored pair, in which matches and differences are exchanged.
//! Each side ignores the decisions of the other, which only lowers its error. The guarantee holds for every
//! pair, before it is known whether blocking finds it.
//!
//! Reference: K. K. G. Lan and D. L. DeMets, *Discrete sequential boundaries for clinical trials* (Biometrika
//! 1983), for spending an error over looks. Cost O(K²) at worst: 1 ms at K = 4096, once per pipeline.

use crate::probability::{Binomial, GUARD};

/// Probabilities below this are dropped, and with an error below 1e-40 those below [`SHARE`] of it: far below
/// the error, but above subnormal numbers, which are slow.
const NEGLIGIBLE: f64 = 1e-60;

/// The share of an error that is negligible, for each of at most 2^15 components at each look.
const SHARE: f64 = 1e-20;

/// The definition of an error: mode *sketch* or mode *true*.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    /// K, components.
    size: usize,
    /// Probability of a match along the paths.
    p: f64,
    /// M, the total number of matches, in mode *sketch*; `None` in mode *true*.
    total: Option<usize>,
}

impl Model {
    /// Mode *sketch*: `total` of `size` components match, in any order.
    pub(super) fn sketch(size: usize, total: usize) -> Self {
        Self { size, p: total as f64 / size as f64, total: Some(total) }
    }

    /// Mode *true*: each of `size` components matches with probability `p`.
    pub(super) fn truth(size: usize, p: f64) -> Self {
        Self { size, p, total: None }
    }

    /// For a look at `k` components: the factors from path probability to mass for x = 0, 1, ... k.
    fn weights(&self, k: usize) -> Vec<f64> {
        let Some(total) = self.total else { return vec![1.0; k + 1] };
        let (rest, all) = (Binomial::new(self.size - k, self.p), Binomial::new(self.size, self.p));
        (0..=k).map(|x| total.checked_sub(x).map_or(0.0, |m| rest.mass(m)) / all.mass(total)).collect()
    }
}

/// The one-bit look before all others.
#[derive(Clone, Copy, Debug)]
pub(super) struct FirstWord {
    /// w, components that it reads.
    pub components: usize,
    /// q, the probability that a component which differs agrees in its low bit.
    pub agree: f64,
}

/// Bounds, with the error that they spend.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// Bound of the first word's test, if there is one: reject if fewer bits agree; 0 = never.
    pub first_word: usize,
    /// One bound for each look: reject if fewer components match; 0 = never.
    pub below: Vec<usize>,
    /// The probability of an error, at most delta.
    pub spent: f64,
}

impl Bounds {
    /// The greatest bounds for these looks (components, ascending; the first word's components at most the
    /// first of them) that err with probability at most `delta`.
    pub(super) fn new(model: Model, first_word: Option<FirstWord>, looks: &[usize], delta: f64) -> Self {
        let stages = looks.len() + usize::from(first_word.is_some());
        let mut stage = 0_usize;
        let mut spent = 0.0;
        let mut paths = Paths::with_error(model.p, delta);
        let cap = model.total.unwrap_or(model.size);
        // The greatest bound whose rejections are within the error that may be spent up to this stage.
        let mut bound = |masses: &[f64]| {
            stage += 1;
            let budget = delta * stage as f64 / stages as f64 * (1.0 - GUARD);
            let mut below = 0;
            while below < masses.len().min(cap) && spent + masses[below] <= budget {
                spent += masses[below];
                below += 1;
            }
            below
        };
        let first = first_word.map_or(0, |word| {
            paths.advance(word.components);
            let below = bound(&word.agreeing(&paths.masses(&model)));
            word.reject(&mut paths, below);
            below
        });
        let below = looks
            .iter()
            .map(|&k| {
                paths.advance(k);
                let below = bound(&paths.masses(&model));
                paths.reject(below);
                below
            })
            .collect();
        Self { first_word: first, below, spent }
    }
}

impl FirstWord {
    /// The distribution of the agreeing bits, from that of the matching components.
    fn agreeing(&self, masses: &[f64]) -> Vec<f64> {
        let mut bits = vec![0.0; self.components + 1];
        for (x, mass) in masses.iter().enumerate() {
            let accidents = Binomial::new(self.components - x, self.agree);
            bits[x..].iter_mut().zip(accidents.masses()).for_each(|(bit, accident)| *bit += mass * accident);
        }
        bits
    }

    /// Removes the paths with fewer than `below` agreeing bits; returns their probability.
    pub(super) fn reject(&self, paths: &mut Paths, below: usize) -> f64 {
        let mut rejected = 0.0;
        for (x, alive) in paths.alive.iter_mut().enumerate() {
            let passes = Binomial::new(self.components - x, self.agree).at_least(below.saturating_sub(x));
            rejected += *alive * (1.0 - passes);
            *alive *= passes;
        }
        rejected
    }
}

/// Distribution of the number of matches among the pairs that are not decided yet.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    p: f64,
    /// Components read.
    at: usize,
    /// Probabilities of 0, 1, ... `at` matches and no decision.
    alive: Vec<f64>,
    /// Probabilities below this are dropped.
    negligible: f64,
}

impl Paths {
    /// The state before the first component; each component matches with probability `p`.
    pub(super) fn new(p: f64) -> Self {
        Self::with_error(p, 1.0)
    }

    /// The same, for bounds that err with probability at most `delta`.
    pub(super) fn with_error(p: f64, delta: f64) -> Self {
        Self { p, at: 0, alive: vec![1.0], negligible: NEGLIGIBLE.min(SHARE * delta) }
    }

    /// Advances to `k` components.
    pub(super) fn advance(&mut self, k: usize) {
        let step = Binomial::new(k - self.at, self.p);
        let mut next = vec![0.0; k + 1];
        for (x, &path) in self.alive.iter().enumerate().filter(|(_, path)| **path > self.negligible) {
            next[x..].iter_mut().zip(step.masses()).for_each(|(to, mass)| *to += path * mass);
        }
        (self.at, self.alive) = (k, next);
    }

    /// The mass of every state under the model.
    fn masses(&self, model: &Model) -> Vec<f64> {
        self.alive.iter().zip(model.weights(self.at)).map(|(path, weight)| path * weight).collect()
    }

    /// Removes the paths with fewer than `below` matches; returns their probability.
    pub(super) fn reject(&mut self, below: usize) -> f64 {
        self.alive.iter_mut().take(below).map(std::mem::take).sum()
    }

    /// Removes the paths with at least `from` matches; returns their probability.
    pub(super) fn accept(&mut self, from: usize) -> f64 {
        self.alive.iter_mut().skip(from).map(std::mem::take).sum()
    }

    /// The probability that nothing is decided yet.
    pub(super) fn undecided(&self) -> f64 {
        self.alive.iter().sum()
    }
}
