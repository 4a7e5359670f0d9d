//! Exact sequential bounds: how few matches at a look may end a comparison, so that all looks together err
//! with probability at most delta.
//!
//! Looks at the first k_1 < ... < k_n of K components; a pair is rejected at look i if fewer than `below[i]`
//! match. Two meanings of an error:
//!
//! - **sketch**: the pair has M matches in all, enough, and yet is rejected. The components of one pair are
//!   exchangeable under the random seed, so all arrangements of M matches among K places are equally likely,
//!   whatever the similarity is; and the probability of a rejection falls with M, so M = least number that
//!   suffices is the worst case.
//! - **true**: every component matches independently with probability at least p, and yet the pair is
//!   rejected; worst at p.
//!
//! Both follow the paths of the binomial walk: `u(x)` is the probability that x of the first k components
//! match and no look has rejected; from look to look it is convolved with Bin(step, p). In mode *true* that
//! is the mass of x. In mode *sketch* it is conditioned on the end, `u(x) * P[Bin(K - k, p) = M - x] /
//! P[Bin(K, p) = M]`, where any p gives the same and p = M / K keeps the numbers in range. After look i of n
//! at most `delta * i / n` is spent (linear spending), and `below[i]` is the greatest bound that the rest
//! allows. States that cannot reach M any more have mass 0 and cost nothing, so stopping when the outcome is
//! certain (curtailment) is included.
//!
//! The **first word** test is a look at one bit only, of the first w components: a component that differs
//! agrees in its low bit with probability `q = (2^(b-1) - 1) / (2^b - 1)`, so `Y = X_w + Bin(w - X_w, q)`
//! bits agree. It comes first, spends like any look, and the paths go on with what it lets through.
//!
//! Bounds for accepting are the same bounds for the mirrored pair, in which matches and differences change
//! places; each side ignores the other, which only lowers its error. The guarantee is for every pair before
//! it is chosen: an error of a pair that blocking would not have found counts too.
//!
//! Reference: K. K. G. Lan and D. L. DeMets, *Discrete sequential boundaries for clinical trials* (Biometrika
//! 1983), for spending an error over looks. Cost O(K²) at worst: 1 ms at K = 4096, once per pipeline.

use super::binomial::{Binomial, GUARD};

/// Probabilities below it are dropped: far below any error, and above the subnormal numbers, which are slow.
const NEGLIGIBLE: f64 = 1e-60;

/// What an error is measured against.
#[derive(Clone, Copy, Debug)]
pub(super) struct Model {
    /// K, components.
    size: usize,
    /// Probability of a match along the paths.
    p: f64,
    /// The total number of matches that is given (mode *sketch*), if one is.
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

    /// What turns the path probability of x = 0, 1, ... k into its mass, at a look at `k` components.
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

/// Bounds with the error that they spend.
#[derive(Clone, Debug)]
pub(super) struct Bounds {
    /// The first word's bound, if it is tested: reject if fewer bits agree; 0 = never.
    pub first_word: usize,
    /// One bound a look: reject if fewer components match; 0 = never.
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
        let mut paths = Paths::new(model.p);
        let cap = model.total.unwrap_or(model.size);
        // The greatest bound whose rejections fit into what may be spent by now.
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

    /// Takes out the paths with fewer than `below` agreeing bits; returns their probability.
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

/// The walk of the number of matches, of the pairs that are not decided yet.
#[derive(Clone, Debug)]
pub(super) struct Paths {
    p: f64,
    /// Components read.
    at: usize,
    /// Probability of 0, 1, ... `at` matches and no decision.
    alive: Vec<f64>,
}

impl Paths {
    /// Before the first component, which will match with probability `p` like all others.
    pub(super) fn new(p: f64) -> Self {
        Self { p, at: 0, alive: vec![1.0] }
    }

    /// Reads on up to `k` components.
    pub(super) fn advance(&mut self, k: usize) {
        let step = Binomial::new(k - self.at, self.p);
        let mut next = vec![0.0; k + 1];
        for (x, &path) in self.alive.iter().enumerate().filter(|(_, path)| **path > NEGLIGIBLE) {
            next[x..].iter_mut().zip(step.masses()).for_each(|(to, mass)| *to += path * mass);
        }
        (self.at, self.alive) = (k, next);
    }

    /// The mass of every state under the model.
    fn masses(&self, model: &Model) -> Vec<f64> {
        self.alive.iter().zip(model.weights(self.at)).map(|(path, weight)| path * weight).collect()
    }

    /// Takes out the paths with fewer than `below` matches; returns their probability.
    pub(super) fn reject(&mut self, below: usize) -> f64 {
        self.alive.iter_mut().take(below).map(std::mem::take).sum()
    }

    /// Takes out the paths with at least `from` matches; returns their probability.
    pub(super) fn accept(&mut self, from: usize) -> f64 {
        self.alive.iter_mut().skip(from).map(std::mem::take).sum()
    }

    /// The probability that nothing is decided yet.
    pub(super) fn undecided(&self) -> f64 {
        self.alive.iter().sum()
    }
}
