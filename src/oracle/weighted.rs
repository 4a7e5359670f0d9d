//! The true weighted similarities: every pair of documents whose weighted features have a similarity of a floor or more.
//!
//! Documents with their features (ids ascending, one weight each) come in; pairs with `Σ min / Σ max >= floor` (inclusive) go out,
//! sorted. Documents without a feature are in no pair.
//!
//! By sorting, as Yuan et al. (2019, section 3) make pairs of documents from shared features, one document after the other:
//! what it has in common with each document before it is summed up along the lists of its features' holders. Quadratic in
//! the length of these lists, and exact. Lists are short but for features that nearly all texts have.

use hashbrown::HashMap;

use crate::doc::DocId;
use crate::hash::OfHashes;
use crate::pair::Pair;
use crate::text::Features;
use crate::text::measures::{total, weighted_jaccard_of};

/// A document's features and their weights.
pub type Weighted = (Vec<u64>, Vec<f64>);

/// Every pair of a weighted Jaccard similarity of `floor` or more, sorted by ids. Ids must be distinct.
///
/// # Panics
/// Unless `0 < floor <= 1`.
pub fn weighted_pairs(
    documents: impl IntoIterator<Item = (DocId, Weighted)>,
    floor: f64,
) -> Vec<(Pair<DocId>, f64)> {
    assert!(floor > 0.0 && floor <= 1.0, "the floor {floor} is not in (0, 1]");
    let mut holders: HashMap<u64, Vec<(usize, f64)>, OfHashes> = HashMap::default();
    let mut before: Vec<(DocId, f64)> = Vec::new();
    // What the document at hand has in common with each before it, and those with which it has anything.
    let mut overlaps: Vec<f64> = Vec::new();
    let mut met: Vec<usize> = Vec::new();
    let mut found = Vec::new();
    for (id, (ids, weights)) in documents {
        let mass = total(Features { ids: &ids, weights: &weights });
        for (feature, &weight) in ids.iter().zip(&weights) {
            let list = holders.entry(*feature).or_default();
            for &(other, of_other) in &*list {
                if overlaps[other] <= 0.0 {
                    met.push(other);
                }
                overlaps[other] += weight.min(of_other);
            }
            list.push((before.len(), weight));
        }
        for other in met.drain(..) {
            let overlap = std::mem::take(&mut overlaps[other]);
            let (of_other, other_mass) = &before[other];
            let similarity = weighted_jaccard_of(overlap, mass, *other_mass);
            if similarity >= floor {
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
    use crate::text::measures::weighted_jaccard;

    #[test]
    fn equals_every_pair_by_the_measure() {
        // Texts of up to 12 features, every third an edit of the one before.
        let mut texts: Vec<Weighted> = Vec::new();
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
        for floor in [0.2, 0.5, 0.8, 1.0] {
            let mut expected = Vec::new();
            for a in 0..texts.len() {
                for b in a + 1..texts.len() {
                    let similarity = weighted_jaccard(features(a), features(b));
                    if similarity >= floor {
                        expected.push((Pair::new(id(a), id(b)).unwrap(), similarity));
                    }
                }
            }
            let documents = texts.iter().enumerate().map(|(n, text)| (id(n), text.clone()));
            assert_eq!(weighted_pairs(documents, floor), expected, "floor {floor}");
            assert!(floor > 0.8 || expected.len() > 20, "{}", expected.len());
        }
    }
}
