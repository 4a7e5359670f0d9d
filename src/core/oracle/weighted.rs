//! True weighted similarities: all pairs of documents whose weighted features have a similarity of at least
//! `floor`.
//!
//! In: documents with their features (ids ascending, one weight each). Out: the pairs with `Σ min / Σ max >=
//! floor`, or with a cosine of at least `floor` (both inclusive, up to [`TRUTH_ROUNDING`]), sorted. Documents
//! without a feature are in no pair.
//!
//! Rule (after Yuan et al. 2019, section 3): one document after the other; its overlap with each earlier
//! document is summed along the lists of documents that have its features. Exact, and quadratic in the length
//! of these lists; only features that nearly all texts have make long lists.

use hashbrown::HashMap;

use crate::doc::DocId;
use crate::hash::BuildIdentityHasher;
use crate::pair::{Pair, Threshold};
use crate::text::Features;
use crate::text::measures::{Measure, cosine_of, squares, total, weighted_jaccard_of};

/// A similarity that is nearer to the floor counts as the floor: sums are in another order than a filter's.
/// Absolute.
pub const TRUTH_ROUNDING: f64 = 1e-9;

/// A document's features and their weights.
pub type WeightedFeatures = (Vec<u64>, Vec<f64>);

/// All pairs with a similarity of at least `floor` by the measure, sorted by ids. Ids must be distinct. For
/// plain Jaccard similarity and containment all weights count as 1.
///
/// # Panics
/// Unless `0 < floor <= 1`.
pub fn weighted_pairs(
    documents: impl IntoIterator<Item = (DocId, WeightedFeatures)>,
    measure: Measure,
    floor: f64,
) -> Vec<(Pair<DocId>, f64)> {
    // The overlap of a common feature, the mass of a text, and the similarity from these.
    type Law = (fn(f64, f64) -> f64, fn(Features<'_>) -> f64, fn(f64, f64, f64) -> f64);
    let (common, mass_of, similarity_of): Law = match measure {
        Measure::Jaccard => (|_, _| 1.0, |of| of.ids.len() as f64, weighted_jaccard_of),
        Measure::WeightedJaccard => (f64::min, total, weighted_jaccard_of),
        Measure::Cosine => (|x, y| x * y, squares, cosine_of),
        Measure::Containment => (|_, _| 1.0, |of| of.ids.len() as f64, |common, x, y| common / x.min(y)),
        Measure::Hamming => (|_, _| 1.0, |of| of.ids.len() as f64, |common, x, y| common / x.max(y)),
    };
    let least = Threshold::new(floor).unwrap_or_else(|| panic!("the floor {floor} is not in (0, 1]"));
    let mut holders: HashMap<u64, Vec<(usize, f64)>, BuildIdentityHasher> = HashMap::default();
    let mut before: Vec<(DocId, f64)> = Vec::new();
    // The current document's overlap with each earlier one, and the earlier ones with an overlap above 0.
    let mut overlaps: Vec<f64> = Vec::new();
    let mut met: Vec<usize> = Vec::new();
    let mut found = Vec::new();
    for (id, (ids, weights)) in documents {
        let mass = mass_of(Features { ids: &ids, weights: &weights });
        for (feature, &weight) in ids.iter().zip(&weights) {
            let list = holders.entry(*feature).or_default();
            for &(other, of_other) in &*list {
                if overlaps[other] <= 0.0 {
                    met.push(other);
                }
                overlaps[other] += common(weight, of_other);
            }
            list.push((before.len(), weight));
        }
        for other in met.drain(..) {
            let overlap = std::mem::take(&mut overlaps[other]);
            let (of_other, other_mass) = &before[other];
            let similarity = similarity_of(overlap, mass, *other_mass);
            if least.admits(similarity, TRUTH_ROUNDING, || None) {
                found.extend(Pair::new(id.clone(), of_other.clone()).map(|pair| (pair, similarity)));
            }
        }
        before.push((id, mass));
        overlaps.push(0.0);
    }
    found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::hash::mix;

    #[test]
    fn equals_every_pair_by_the_measure() {
        // Texts of up to 12 features; two of three are edits of the text before.
        let mut texts: Vec<WeightedFeatures> = Vec::new();
        for n in 0..120_u64 {
            let text = match texts.last() {
                Some((ids, weights)) if n % 3 > 0 => (
                    ids.clone(),
                    weights.iter().zip(ids).map(|(w, id)| w + (mix(id ^ n) % 3) as f64 / 3.0).collect(),
                ),
                _ => {
                    let ids: Vec<u64> = (0..30).filter(|id| mix(n << 32 ^ id) % 10 < 4).collect();
                    let weights = ids.iter().map(|id| 1.0 + (mix(id ^ n << 20) % 5) as f64).collect();
                    (ids, weights)
                }
            };
            texts.push(text);
        }
        texts.push((vec![], vec![]));
        let id = |n: usize| DocId::new(&format!("{n:03}")).unwrap();
        let features = |n: usize| Features { ids: &texts[n].0, weights: &texts[n].1 };
        let measures = [Measure::Jaccard, Measure::WeightedJaccard, Measure::Cosine, Measure::Containment];
        for (measure, floor) in
            measures.into_iter().flat_map(|of| [0.2, 0.5, 0.8, 1.0].map(|floor| (of, floor)))
        {
            let mut expected = Vec::new();
            for a in 0..texts.len() {
                for b in a + 1..texts.len() {
                    let similarity = measure.similarity(features(a), features(b));
                    if similarity >= floor - 1e-12 {
                        expected.push((Pair::new(id(a), id(b)).unwrap(), similarity));
                    }
                }
            }
            let documents = texts.iter().enumerate().map(|(n, text)| (id(n), text.clone()));
            let found = weighted_pairs(documents, measure, floor);
            assert_eq!(found.len(), expected.len(), "{measure:?}, floor {floor}");
            for ((by_sums, s), (pair, similarity)) in found.iter().zip(&expected) {
                // The order of summation differs.
                assert!(by_sums == pair && (s - similarity).abs() < 1e-12, "{measure:?} {s} {similarity}");
            }
            assert!(floor > 0.8 || expected.len() > 20, "{}", expected.len());
        }
    }
}
