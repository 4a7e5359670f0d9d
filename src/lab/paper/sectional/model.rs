//! Pairs of texts with given J and a given fraction of aligned common features, and their estimates by
//! sketches.

use rand::seq::SliceRandom;
use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::printed::{SECTIONS, SIZES};
use crate::{StudyContext, threads};
use dupflow_core::hash::mix;
use dupflow_core::sketch::sectional::alignment;
use dupflow_core::sketch::{Sampler, SectionBase, SectionMode, Sectional};
use dupflow_core::text::Features;

/// Number of features of both texts of a pair, approximately.
pub(super) const UNION: usize = 400;

/// K and |A ∪ B| for what the source leaves out.
pub(super) const SHAPE: (usize, usize) = (256, 300);

/// The positions of the common features of a pair.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum FeatureOrder {
    /// The same in both: one text is the other with words replaced.
    Aligned,
    /// This percentage of those in the first half is swapped with features of the second half.
    Moved(usize),
    /// Random.
    Independent,
}

/// The samplers, in the order of [`Trial::estimate`].
pub(super) const BASES: [SectionBase; 2] = [SectionBase::MinHash, SectionBase::Fss];

/// A pair with its estimates.
#[derive(Clone, Debug)]
pub(super) struct Trial {
    pub(super) jaccard: f64,
    /// By number of sections.
    pub(super) q: [f64; SECTIONS.len()],
    estimates: Vec<f64>,
}

impl Trial {
    /// The estimate with a sampler, a number of sections and a number of components, by their indices.
    pub(super) fn estimate(&self, base: usize, sections: usize, size: usize) -> f64 {
        self.estimates[(base * SECTIONS.len() + sections) * SIZES.len() + size]
    }
}

/// Two texts, in text order: common features, and as many features of each text's own.
pub(super) fn pair(rng: &mut ChaCha8Rng, common: usize, own: usize, order: FeatureOrder) -> [Vec<u64>; 2] {
    let n = common + own;
    let mut a: Vec<u64> = (0..n).map(|_| rng.random()).collect();
    let mut places: Vec<usize> = (0..n).collect();
    places.shuffle(rng);
    let mut b = a.clone();
    for place in &places[..own] {
        b[*place] = rng.random();
    }
    match order {
        FeatureOrder::Aligned => {}
        FeatureOrder::Moved(percent) => {
            let (mut first, second): (Vec<usize>, Vec<usize>) =
                places[own..].iter().copied().partition(|place| 2 * place < n);
            first.truncate(first.len() * percent / 100);
            first.into_iter().zip(second).for_each(|(x, y)| b.swap(x, y));
        }
        FeatureOrder::Independent => {
            a.shuffle(rng);
            b.shuffle(rng);
        }
    }
    [a, b]
}

/// Draws pairs; the number of common features, of about [`UNION`], and their order are drawn for each.
pub(super) fn trials(
    bench: &StudyContext<'_>,
    count: usize,
    draw: impl Fn(&mut ChaCha8Rng) -> (usize, FeatureOrder) + Sync,
) -> Vec<Trial> {
    threads::map(bench.threads, count, |n| {
        let seed = mix(bench.seed ^ mix(n as u64));
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let (common, order) = draw(&mut rng);
        let own = (UNION - common) / 2;
        let texts = pair(&mut rng, common, own, order);
        Trial {
            jaccard: common as f64 / (common + 2 * own) as f64,
            q: SECTIONS.map(|sections| alignment(&texts[0], &texts[1], sections).unwrap_or(0.0)),
            estimates: estimates(&texts, seed),
        }
    })
}

/// The variance of the estimate about q J with MinHash, of short pairs with J = 0.8 and 64 components.
pub(super) fn spread(seed: u64, sections: usize, order: FeatureOrder) -> f64 {
    const PAIRS: usize = 2_000;
    const SIZE: usize = 64;
    let one = |n: usize| {
        let seed = mix(seed ^ mix(n as u64));
        let texts = pair(&mut ChaCha8Rng::seed_from_u64(seed), 48, 6, order);
        let mut sampler = Sectional::new(SIZE, sections, SectionMode::Attach, SectionBase::MinHash, seed);
        let [a, b] = texts.each_ref().map(|text| components(&mut sampler, text, SIZE));
        let equal = a.iter().zip(&b).filter(|(a, b)| a == b).count() as f64 / SIZE as f64;
        let q = alignment(&texts[0], &texts[1], sections).unwrap_or(0.0);
        // q varies between pairs, which is not an error of the estimate.
        (equal - 0.8 * q).powi(2)
    };
    (0..PAIRS).map(one).sum::<f64>() / PAIRS as f64
}

/// The first `size` components of a set.
pub(super) fn components(sampler: &mut dyn Sampler, ids: &[u64], size: usize) -> Vec<u64> {
    let mut out = vec![0; size];
    sampler.components(Features::set(ids), &mut out);
    out
}

/// Fractions of equal components. The sketches of MinHash are prefixes of one sketch.
fn estimates(texts: &[Vec<u64>; 2], seed: u64) -> Vec<f64> {
    let mut estimates = Vec::with_capacity(BASES.len() * SECTIONS.len() * SIZES.len());
    let equal = |base, sections, size: usize| -> Vec<bool> {
        let mut sampler = Sectional::new(size, sections, SectionMode::Attach, base, seed);
        let [a, b] = texts.each_ref().map(|text| components(&mut sampler, text, size));
        a.iter().zip(&b).map(|(a, b)| a == b).collect()
    };
    let share = |places: &[bool]| places.iter().filter(|is| **is).count() as f64 / places.len() as f64;
    for (base, sections) in BASES.into_iter().flat_map(|base| SECTIONS.map(|sections| (base, sections))) {
        match base {
            SectionBase::MinHash => {
                let all = equal(base, sections, SIZES[SIZES.len() - 1]);
                estimates.extend(SIZES.map(|size| share(&all[..size])));
            }
            SectionBase::Fss => estimates.extend(SIZES.map(|size| share(&equal(base, sections, size)))),
        }
    }
    estimates
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn pairs_are_as_asked_for() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for (order, expected) in [
            (FeatureOrder::Aligned, 1.0..1.1),
            (FeatureOrder::Moved(20), 0.75..0.85),
            (FeatureOrder::Independent, 0.35..0.65),
        ] {
            let [a, b] = pair(&mut rng, 320, 40, order);
            let [x, y] = [&a, &b].map(|text| text.iter().collect::<BTreeSet<_>>());
            assert_eq!(
                (a.len(), b.len(), x.union(&y).count(), x.intersection(&y).count()),
                (360, 360, 400, 320)
            );
            let q = alignment(&a, &b, 2).unwrap();
            assert!(expected.contains(&q), "{order:?}: {q}");
        }
    }
}
