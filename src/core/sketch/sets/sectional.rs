//! Sectional sketches: a similarity that depends on the positions of common features in the texts.
//!
//! A text's features, in text order, are cut into s sections of equal length. A feature belongs to the
//! section of its first occurrence. With q the share of the common features that are in sections of equal
//! number:
//!
//! | mode | a component is | P\[equal\] |
//! |---|---|---|
//! | [`Attach`](SectionMode::Attach) | the sampled feature, and its section | `q J` |
//! | [`Pair`](SectionMode::Pair) | a sampled pair (feature, section) | `q J / (1 + J - q J)` |
//!
//! The second is the Jaccard similarity of the sets of pairs.
//!
//! This is another similarity than J: never above J, and equal to it only if q = 1. Thresholds must be chosen
//! for it. Together with an estimate of J it gives q, the [`alignment`](SectionMode::alignment) of two texts.
//! (The paper treats it as an estimator of J with E = J / s, which holds for neither mode.)
//!
//! The components are those of a [base](SectionBase), `fss` or `minhash`. In mode `attach` each section is
//! sketched separately. The sketch of the text is the component-wise least value, and the section that has
//! this value is attached, the first one if several do.
//!
//! Reference: R. Hassanian-esfahani and M. Kargar, *Sectional MinHash for near-duplicate detection* (2018).

use std::ops::Range;

use hashbrown::HashMap;
use serde::{Deserialize, Serialize};

use super::fss::Fss;
use super::minhash::MinHash;
use crate::hash::{OfHashes, mix};
use crate::sketch::sampler::Sampler;
use crate::text::Features;

/// How the section of a feature enters a component.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SectionMode {
    /// A feature is sampled, and its section is attached.
    #[default]
    Attach,
    /// Pairs of feature and section are sampled.
    Pair,
}

impl SectionMode {
    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Attach => "attach",
            Self::Pair => "pair",
        }
    }

    /// The expected estimate for texts of Jaccard similarity J, if the share `q` of their common features is
    /// aligned.
    pub fn expectation(self, jaccard: f64, q: f64) -> f64 {
        match self {
            Self::Attach => q * jaccard,
            Self::Pair => q * jaccard / (1.0 + jaccard - q * jaccard),
        }
    }

    /// The estimate of q from a sectional estimate and J, clamped to 0 to 1; `None` if nothing is in common.
    pub fn alignment(self, sectional: f64, jaccard: f64) -> Option<f64> {
        let aligned = match self {
            Self::Attach => sectional,
            Self::Pair => sectional * (1.0 + jaccard) / (1.0 + sectional),
        };
        (jaccard > 0.0).then(|| (aligned / jaccard).clamp(0.0, 1.0))
    }
}

/// The sampler of features.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum SectionBase {
    /// Fast similarity sketching: a fraction of the time, and at most the variance.
    #[default]
    Fss,
    /// K independent minima, as in the paper.
    MinHash,
}

impl SectionBase {
    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fss => "fss",
            Self::MinHash => "minhash",
        }
    }
}

/// The number of common features of two texts, and of those the number whose first occurrences are in
/// sections of equal number. Features are in text order, repeats included.
pub fn common(a: &[u64], b: &[u64], sections: usize) -> (usize, usize) {
    let places = |ids: &[u64]| -> HashMap<u64, usize, OfHashes> {
        // In reverse: a later insertion overwrites, so the first occurrence remains.
        ids.iter().enumerate().rev().map(|(i, x)| (*x, section(i, ids.len(), sections))).collect()
    };
    let (a, b) = (places(a), places(b));
    let both = a.iter().filter_map(|(x, of_a)| b.get(x).map(|of_b| of_a == of_b));
    both.fold((0, 0), |(common, aligned), is_aligned| (common + 1, aligned + usize::from(is_aligned)))
}

/// q, the share of the common features that are [aligned](common); `None` if nothing is common.
pub fn alignment(a: &[u64], b: &[u64], sections: usize) -> Option<f64> {
    let (common, aligned) = common(a, b, sections);
    (common > 0).then(|| aligned as f64 / common as f64)
}

/// The section, from 1 to `sections`, of feature `i` (from 0) of `n`.
pub fn section(i: usize, n: usize, sections: usize) -> usize {
    i * sections / n + 1
}

/// The positions of the features of a section, counted from 1.
fn positions(section: usize, n: usize, sections: usize) -> Range<usize> {
    ((section - 1) * n).div_ceil(sections)..(section * n).div_ceil(sections)
}

/// The Cantor pairing `(a + b) (a + b + 1) / 2 + b`, a bijection of pairs and numbers; `None` from 2^128 on.
///
/// It exceeds 64 bits if a + b > 6,074,000,998, so a pair of a hash and a section does not fit. Components
/// are therefore hashed together with their section.
pub fn cantor(a: u64, b: u64) -> Option<u128> {
    let sum = u128::from(a) + u128::from(b);
    let (even, odd) = if sum.is_multiple_of(2) { (sum, sum + 1) } else { (sum + 1, sum) };
    (even / 2).checked_mul(odd)?.checked_add(u128::from(b))
}

/// The hash of a feature or component together with its section.
fn located(value: u64, section: usize) -> u64 {
    mix(value ^ mix(section as u64))
}

/// The sectional sketcher.
#[derive(Debug)]
pub struct Sectional {
    sampler: Box<dyn Sampler>,
    sections: usize,
    mode: SectionMode,
    /// The components of one section.
    part: Vec<u64>,
    /// Features with their sections, or the value and the section of each component.
    places: Vec<(u64, usize)>,
    ids: Vec<u64>,
}

impl Sectional {
    /// A sketcher of `size` components, at most 32768, for texts cut into `sections` sections, at least 1.
    pub fn new(size: usize, sections: usize, mode: SectionMode, base: SectionBase, seed: u64) -> Self {
        let sampler: Box<dyn Sampler> = match base {
            SectionBase::Fss => Box::new(Fss::new(size, seed)),
            SectionBase::MinHash => Box::new(MinHash::new(size, seed)),
        };
        Self { sampler, sections, mode, part: vec![0; size], places: Vec::new(), ids: Vec::new() }
    }

    fn attach(&mut self, ids: &[u64], out: &mut [u64]) {
        self.places.clear();
        self.places.resize(out.len(), (u64::MAX, 0));
        for section in 1..=self.sections {
            let part = &ids[positions(section, ids.len(), self.sections)];
            if part.is_empty() {
                continue;
            }
            self.sampler.components(Features::set(part), &mut self.part);
            for (least, value) in self.places.iter_mut().zip(&self.part) {
                if *value < least.0 {
                    *least = (*value, section);
                }
            }
        }
        for (component, (value, section)) in out.iter_mut().zip(&self.places) {
            *component = located(*value, *section);
        }
    }

    fn pair(&mut self, ids: &[u64], out: &mut [u64]) {
        self.places.clear();
        self.places.extend(ids.iter().enumerate().map(|(i, x)| (*x, section(i, ids.len(), self.sections))));
        // The first occurrence is in the least section.
        self.places.sort_unstable();
        self.places.dedup_by_key(|(x, _)| *x);
        self.ids.clear();
        self.ids.extend(self.places.iter().map(|(x, section)| located(*x, *section)));
        self.sampler.components(Features::set(&self.ids), out);
    }
}

impl Sampler for Sectional {
    /// Depends on the order of features, which decides their sections.
    fn components(&mut self, features: Features<'_>, out: &mut [u64]) {
        match self.mode {
            SectionMode::Attach => self.attach(features.ids, out),
            SectionMode::Pair => self.pair(features.ids, out),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Components of both bases, one after the other.
    fn components(ids: &[u64], sections: usize, mode: SectionMode) -> Vec<u64> {
        let mut out = vec![0; 256];
        for (base, half) in [SectionBase::Fss, SectionBase::MinHash].into_iter().zip(out.chunks_mut(128)) {
            Sectional::new(128, sections, mode, base, 8).components(Features::set(ids), half);
        }
        out
    }

    /// A component is one of the base's own sketch, with the section of its feature.
    #[test]
    fn section_is_attached_to_the_sampled_feature() {
        let ids: Vec<u64> = (0..90).map(mix).collect();
        let mut minima = vec![0; 64];
        MinHash::new(64, 8).components(Features::set(&ids), &mut minima);
        let mut out = vec![0; 64];
        Sectional::new(64, 3, SectionMode::Attach, SectionBase::MinHash, 8)
            .components(Features::set(&ids), &mut out);
        let mut seen = [0; 3];
        for (component, least) in out.iter().zip(&minima) {
            let of = (1..=3).find(|s| located(*least, *s) == *component).expect("one of three sections");
            seen[of - 1] += 1;
        }
        assert!(seen.iter().all(|n| *n > 8), "{seen:?}");
    }

    /// 1 2 3 4 in two sections: against itself, with its halves swapped, with two of four features moved,
    /// with a repeat, and against a text without common features.
    #[test]
    fn alignment_is_the_share_in_equal_sections() {
        let a = [1, 2, 3, 4];
        let shares = [&a[..], &[3, 4, 1, 2], &[1, 3, 2, 4, 5, 6, 7, 8], &[1, 2, 1, 3, 4], &[9]]
            .map(|b| alignment(&a, b, 2));
        assert_eq!(shares, [Some(1.0), Some(0.0), Some(0.5), Some(1.0), None]);
    }

    #[test]
    fn positions_are_those_of_the_sections() {
        for (n, sections) in [(9, 3), (10, 3), (3, 5), (1, 4), (7, 7), (100, 6)] {
            for s in 1..=sections {
                let expected: Vec<usize> = (0..n).filter(|i| section(*i, n, sections) == s).collect();
                assert!(positions(s, n, sections).eq(expected), "section {s} of {sections}, {n} features");
            }
        }
    }

    #[test]
    fn the_first_occurrence_counts() {
        for mode in [SectionMode::Attach, SectionMode::Pair] {
            // 1 2 3 | 4 1 5 and 1 2 3 | 4 5 5: the first occurrence of 1 is in the first section of both.
            assert_eq!(components(&[1, 2, 3, 4, 1, 5], 2, mode), components(&[1, 2, 3, 4, 5, 5], 2, mode));
            assert_ne!(components(&[1, 2, 3, 4, 1, 5], 2, mode), components(&[2, 3, 4, 1, 5, 5], 2, mode));
        }
    }

    #[test]
    fn swapped_halves_have_no_equal_component() {
        let ids: Vec<u64> = (0..100).map(mix).collect();
        let turned = [&ids[50..], &ids[..50]].concat();
        for mode in [SectionMode::Attach, SectionMode::Pair] {
            let (x, y) = (components(&ids, 2, mode), components(&turned, 2, mode));
            assert!(x.iter().zip(&y).all(|(x, y)| x != y), "{mode:?}");
            // In one section they are the same set.
            assert_eq!(components(&ids, 1, mode), components(&turned, 1, mode));
        }
    }

    #[test]
    fn alignment_inverts_expectation() {
        for mode in [SectionMode::Attach, SectionMode::Pair] {
            for (jaccard, q) in [(0.8, 1.0), (0.8, 0.95), (0.5, 0.25), (1.0, 0.5)] {
                let found = mode.alignment(mode.expectation(jaccard, q), jaccard).unwrap();
                assert!((found - q).abs() < 1e-12, "{mode:?} {jaccard} {q}: {found}");
            }
            assert_eq!(mode.alignment(0.0, 0.0), None);
            assert_eq!(mode.alignment(0.9, 0.8).map(|q| q <= 1.0), Some(true));
        }
    }
}
