//! A schedule: the looks of a comparison, and the numbers of matches that end it there.
//!
//! In: two sketches of K components. Out: a [`Stop`]: the look at which the comparison ended, and its
//! decision. A look at k components counts matches among the first k. It rejects with fewer than
//! `reject_below` matches and accepts with `accept_from` or more. A pair that no look rejects is accepted.
//!
//! Five ways to set the bounds, all relative to `M0 = ceil(p(T) * K)`, the least number of matches that a
//! full comparison accepts:
//!
//! | constructor | early looks | last look, at K | guarantee |
//! |---|---|---|---|
//! | [`full`](Schedule::full) | none | reject below M0 | the full comparison |
//! | [`within_radius`](Schedule::within_radius) | the first word, if it alone differs in more than K - M0 bits | reject below M0 | the full comparison |
//! | [`sequential`](Schedule::sequential) | exact sequential bounds, *sketch* | reject below M0 | the full comparison's answer, except with probability at most `error` for accepts and for rejects each |
//! | [`per_look`](Schedule::per_look) | binomial bounds at p(T), look by look | reject below M0 | each look errs with at most `error` relative to the true similarity |
//! | [`verify`](Schedule::verify) | exact sequential bounds, *true*, reject only | the same | a pair of true similarity at least T survives with at least `1 - error` |
//!
//! Invariants: looks ascend strictly; `reject_below <= accept_from`.
//!
//! References: the per-look bounds are those of the staged CWS filter (Yuan et al. 2019, sections 5.1 and
//! 5.2), with its table of tails corrected: its columns hold P[X < m] and P[X >= m], one off from their
//! headings. This is BayesLSH (Satuluri and Parthasarathy 2012) with k in place of k + 1 trials. See
//! [`sequential`](super::sequential) for the exact bounds.

use super::rejection::Agreeing;
use super::sequential::{Bounds, FirstWord, Model, Paths};
use super::target::{Target, WORD};
use crate::probability::Binomial;
use crate::sketch::kernel::Kernel;

/// A point where the comparison may end.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Look {
    /// k: the look reads the first k components.
    pub components: u32,
    /// Reject with fewer matches than this; 0 = never.
    pub reject_below: u32,
    /// Accept with as many matches or more, inclusive; k + 1 = never.
    pub accept_from: u32,
}

/// Looks and bounds for sketches of one shape and one threshold; a pair that no look rejects is accepted.
#[derive(Clone, Debug)]
pub struct Schedule {
    target: Target,
    first_word: Option<u32>,
    looks: Vec<Look>,
    spent: SpentError,
}

/// Worst-case probability that an early decision differs from the full comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SpentError {
    /// Of a wrong reject.
    pub reject: f64,
    /// Of a wrong accept.
    pub accept: f64,
}

/// Expected outcome of a schedule for pairs of one similarity.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Operation {
    /// Mean number of components read before the decision.
    pub components: f64,
    /// Share of pairs that are rejected.
    pub rejected: f64,
    /// Share of pairs that are accepted, or passed on to the exact check.
    pub accepted: f64,
    /// Share of pairs that are rejected before the last look.
    pub rejected_early: f64,
    /// Share of pairs that are accepted before the last look.
    pub accepted_early: f64,
}

/// The end of a comparison.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stop {
    /// The look, from 1; the first word's test is look 1 where there is one.
    pub look: u16,
    /// Components read.
    pub components: u32,
    /// Number of matching components among those read.
    pub matches: u32,
    /// Whether the pair is rejected.
    pub rejected: bool,
}

/// Converts a count of components or looks to a smaller type; they fit, since K is at most 32768.
fn narrow<T: TryFrom<usize, Error: std::fmt::Debug>>(count: usize) -> T {
    T::try_from(count).expect("a sketch has at most 32768 components")
}

/// The probability that one of the looks decides, at match probability `p`, with bounds that err with
/// probability `error`; `decide` returns that of one look.
fn total(p: f64, looks: &[usize], error: f64, decide: impl Fn(&mut Paths, usize) -> f64) -> f64 {
    let mut paths = Paths::with_error(p, error);
    let look = |(i, &k): (usize, &usize)| {
        paths.advance(k);
        decide(&mut paths, i)
    };
    looks.iter().enumerate().map(look).sum()
}

impl Schedule {
    /// One look, at all components.
    pub fn full(target: Target) -> Self {
        Self::new(target, &[target.size()], &[], &[], SpentError::default())
    }

    /// A look at all components, and before it the first word's test, which rejects if the word alone has too
    /// many differences. The answer is that of the full comparison, without error. If few differences are
    /// allowed, as within a Hamming radius, the first word rejects most pairs.
    pub fn within_radius(target: Target) -> Self {
        let differences = target.size() - target.least_matches();
        let below = target.has_first_word().then(|| narrow(WORD.saturating_sub(differences)));
        Self { first_word: below, ..Self::full(target) }
    }

    /// No looks: every pair is passed on to the exact check.
    pub fn none(target: Target) -> Self {
        Self::new(target, &[], &[], &[], SpentError::default())
    }

    /// Binomial bounds for each look: each early look errs with probability at most `error`, at any
    /// similarity on the other side of the threshold. [`spent`](Self::spent) has the error of all looks
    /// together.
    pub fn per_look(target: Target, looks: &[usize], error: f64) -> Self {
        let p = target.probability();
        let early: Vec<usize> = looks.iter().copied().filter(|&k| k < target.size()).collect();
        let tails: Vec<Binomial> = early.iter().map(|&k| Binomial::new(k, p)).collect();
        let below: Vec<usize> = tails.iter().map(|tail| tail.reject_below(error)).collect();
        let from: Vec<usize> = tails.iter().map(|tail| tail.accept_from(error)).collect();
        let reject = total(p, &early, error, |paths, i| paths.reject(below[i]));
        let accept = total(p, &early, error, |paths, i| paths.accept(from[i]));
        Self::new(target, looks, &below, &from, SpentError { reject, accept })
    }

    /// Exact sequential bounds relative to the full comparison: at any similarity of a pair, the early looks
    /// change the full comparison's answer with probability at most `error`, for accepts and for rejects
    /// each. With `first_word`, the first word's test is done before the looks and has its share of the
    /// error.
    pub fn sequential(target: Target, looks: &[usize], first_word: bool, error: f64) -> Self {
        let (size, least) = (target.size(), target.least_matches());
        let early: Vec<usize> = looks.iter().copied().filter(|&k| k < size).collect();
        let word = first_word.then(|| target.first_word());
        let reject = Bounds::new(Model::sketch(size, least), word, &early, error);
        // Mirrored: a pair with one match too few has this many differences; the error is a pair with few of
        // them in the early looks.
        let accept = Bounds::new(Model::sketch(size, size - (least - 1)), None, &early, error);
        let from: Vec<usize> = early.iter().zip(&accept.below).map(|(k, below)| k + 1 - below).collect();
        let spent = SpentError { reject: reject.spent, accept: accept.spent };
        Self::new(target, looks, &reject.below, &from, spent).with_first_word(word, reject.first_word)
    }

    /// Reject bounds relative to the true similarity, the look at K included; all other pairs are passed on
    /// to an exact check. The components must match independently, as they do for MinHash and for darts. A
    /// smaller variance (fast similarity sketching) is expected to be on the safe side. Not valid for
    /// densified one-permutation sketches of short texts.
    pub fn verify(target: Target, looks: &[usize], first_word: bool, error: f64) -> Self {
        let word = first_word.then(|| target.first_word());
        let bounds = Bounds::new(Model::truth(target.size(), target.probability()), word, looks, error);
        let never: Vec<usize> = looks.iter().map(|k| k + 1).collect();
        Self::new(target, looks, &bounds.below, &never, SpentError { reject: bounds.spent, accept: 0.0 })
            .with_first_word(word, bounds.first_word)
    }

    /// Combines looks and bounds; the look after the given bounds is the last one and decides by M0.
    fn new(target: Target, looks: &[usize], below: &[usize], from: &[usize], spent: SpentError) -> Self {
        let least = target.least_matches();
        let look = |(i, &k): (usize, &usize)| Look {
            components: narrow(k),
            reject_below: narrow(below.get(i).copied().unwrap_or(least)),
            accept_from: narrow(from.get(i).copied().unwrap_or(least)),
        };
        Self { target, first_word: None, looks: looks.iter().enumerate().map(look).collect(), spent }
    }

    fn with_first_word(self, word: Option<FirstWord>, below: usize) -> Self {
        Self { first_word: word.map(|_| narrow(below)), ..self }
    }

    /// The threshold and the shape of the sketches.
    pub fn target(&self) -> &Target {
        &self.target
    }

    /// Bound of the first word's test, if there is one: reject if fewer of the 64 bits agree; 0 = never.
    pub fn first_word(&self) -> Option<u32> {
        self.first_word
    }

    /// The looks after the first word's test, ascending.
    pub fn looks(&self) -> &[Look] {
        &self.looks
    }

    /// Number of looks, the first word's test included.
    pub fn count(&self) -> u16 {
        narrow(self.looks.len() + usize::from(self.first_word.is_some()))
    }

    /// The worst-case probability that an early decision differs from the full comparison: at most `error`
    /// for accepts and for rejects each. For [`per_look`](Self::per_look) it is the sum over the looks at a
    /// similarity of exactly T.
    pub fn spent(&self) -> SpentError {
        self.spent
    }

    /// Whether a pair survives the first word's test.
    #[inline]
    pub fn passes(&self, a: u64, b: u64) -> bool {
        64 - (a ^ b).count_ones() >= self.first_word.unwrap_or(0)
    }

    /// Compares two sketches look by look, without the first word's test.
    pub fn walk(&self, kernel: &Kernel, a: &[u64], b: &[u64]) -> Stop {
        let mut look = u16::from(self.first_word.is_some());
        let (mut components, mut matches) = (0, 0);
        for at in &self.looks {
            let differing = kernel.differing(a, b, components as usize, at.components as usize);
            matches += at.components - components - differing;
            components = at.components;
            look += 1;
            let rejected = matches < at.reject_below;
            if rejected || matches >= at.accept_from {
                return Stop { look, components, matches, rejected };
            }
        }
        Stop { look, components, matches, rejected: false }
    }

    /// The places that agree at a look of [`walk`](Self::walk), the first word's test included; `None` if
    /// there is no such look.
    pub fn agreeing(&self, kernel: &Kernel, a: &[u64], b: &[u64], look: u16) -> Option<Agreeing> {
        if let Some(needed) = self.first_word.filter(|_| look == 1) {
            return Some(Agreeing { found: 64 - (a[0] ^ b[0]).count_ones(), needed });
        }
        let at = look.checked_sub(1 + u16::from(self.first_word.is_some()))?;
        let Look { components, reject_below, .. } = *self.looks.get(usize::from(at))?;
        let found = components - kernel.differing(a, b, 0, components as usize);
        Some(Agreeing { found, needed: reject_below })
    }

    /// The expected outcome for pairs of this similarity, by the binomial model.
    pub fn operation(&self, similarity: f64) -> Operation {
        let mut paths = Paths::new(self.target.agreement().probability(similarity));
        let (mut components, mut rejected, mut accepted) = (0.0, 0.0, 0.0);
        let (mut rejected_early, mut accepted_early) = (0.0, 0.0);
        if let Some(below) = self.first_word {
            let word = self.target.first_word();
            paths.advance(word.components);
            rejected = word.reject(&mut paths, below as usize);
            components = rejected * word.components as f64;
        }
        for look in &self.looks {
            (rejected_early, accepted_early) = (rejected, accepted);
            paths.advance(look.components as usize);
            let (reject, accept) =
                (paths.reject(look.reject_below as usize), paths.accept(look.accept_from as usize));
            components += f64::from(look.components) * (reject + accept);
            (rejected, accepted) = (rejected + reject, accepted + accept);
        }
        let (left, all) = (paths.undecided(), self.looks.last().map_or(0, |look| look.components));
        Operation {
            components: components + left * f64::from(all),
            rejected,
            accepted: accepted + left,
            rejected_early,
            accepted_early,
        }
    }
}
