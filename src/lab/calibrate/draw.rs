//! The pairs that are to be judged.

use dupflow_core::doc::DocId;
use dupflow_core::hash;
use dupflow_core::pair::Pair;

/// Bands of similarity end at multiples of this, in hundredths; those of similarity 1 are one more.
const WIDTH: u32 = 5;

/// A pair of a run.
#[derive(Clone, Debug, PartialEq)]
pub struct SimilarPair {
    /// The documents.
    pub pair: Pair<DocId>,
    /// Their similarity as the pipeline measures it.
    pub similarity: f64,
}

/// The pairs of a run by bands of similarity, and those that are drawn from each.
#[derive(Clone, Debug)]
pub struct Draw {
    /// The bands with at least one pair, ascending.
    pub bands: Vec<DrawnBand>,
}

/// A band of similarity.
#[derive(Clone, Debug, PartialEq)]
pub struct DrawnBand {
    /// The least similarity, inclusive; that of the next band, or above 1, is the end, exclusive.
    pub from: f64,
    /// The pairs of the run in it.
    pub pairs: usize,
    /// Those that are drawn, in order of their ranks.
    pub drawn: Vec<SimilarPair>,
}

impl Draw {
    /// Draws `most` of the pairs of a run at the threshold `from`, or all if there are fewer: the same number
    /// from each band, or all of a band that has fewer. A pair has the same rank in every draw of a seed, so
    /// that a larger draw has all pairs of a smaller one, and one of a corpus that has changed a little most
    /// of them.
    pub fn new(found: Vec<SimilarPair>, from: f64, most: usize, seed: u64) -> Self {
        let mut starts = vec![from];
        starts.extend((0..=100 / WIDTH).map(|n| f64::from(n * WIDTH) / 100.0).filter(|start| *start > from));
        let mut bands: Vec<DrawnBand> =
            starts.iter().map(|start| DrawnBand { from: *start, pairs: 0, drawn: Vec::new() }).collect();
        for pair in found {
            let band = starts.partition_point(|start| *start <= pair.similarity).saturating_sub(1);
            bands[band].drawn.push(pair);
        }
        bands.retain(|band| !band.drawn.is_empty());
        for band in &mut bands {
            band.pairs = band.drawn.len();
            band.drawn.sort_by_cached_key(|one| (rank(&one.pair, seed), one.pair.clone()));
        }
        // The smallest band first: what it does not have, the others share.
        let mut by_size: Vec<&mut DrawnBand> = bands.iter_mut().collect();
        by_size.sort_by_key(|band| band.pairs);
        let (mut left, mut rest) = (by_size.len(), most);
        for band in by_size {
            band.drawn.truncate(rest.div_ceil(left));
            rest -= band.drawn.len();
            left -= 1;
        }
        Self { bands }
    }

    /// The drawn pairs in the order in which they are judged, which says nothing of their similarities.
    pub fn in_order(&self, seed: u64) -> Vec<&SimilarPair> {
        let mut all: Vec<&SimilarPair> = self.bands.iter().flat_map(|band| &band.drawn).collect();
        all.sort_by_cached_key(|found| (rank(&found.pair, seed), &found.pair));
        all
    }
}

/// A hash of a pair, by which pairs are drawn.
fn rank(pair: &Pair<DocId>, seed: u64) -> u64 {
    hash::bytes(hash::bytes(seed, pair.lo().as_str().as_bytes()), pair.hi().as_str().as_bytes())
}

#[cfg(test)]
pub(super) mod tests {
    use super::*;

    /// Pairs with these similarities.
    pub(in super::super) fn found(similarities: impl IntoIterator<Item = f64>) -> Vec<SimilarPair> {
        let id = |side: &str, n: usize| DocId::new(&format!("{side}{n}")).unwrap();
        let pair = |n| Pair::new(id("a", n), id("b", n)).unwrap();
        similarities
            .into_iter()
            .enumerate()
            .map(|(n, similarity)| SimilarPair { pair: pair(n), similarity })
            .collect()
    }

    #[test]
    fn bands_are_half_open_and_copies_are_one_of_their_own() {
        let draw = Draw::new(found([0.33, 0.349, 0.35, 0.7, 0.95, 0.999, 1.0]), 0.33, 100, 1);
        let bands: Vec<_> = draw.bands.iter().map(|band| (band.from, band.pairs)).collect();
        assert_eq!(bands, [(0.33, 2), (0.35, 1), (0.7, 1), (0.95, 2), (1.0, 1)]);
        assert!(draw.bands.iter().all(|band| band.drawn.len() == band.pairs));
    }

    #[test]
    fn what_a_small_band_has_not_is_drawn_from_others() {
        let similarities = [0.5; 3].into_iter().chain([0.6; 100]).chain([0.7; 50]);
        let draw = Draw::new(found(similarities), 0.5, 43, 1);
        assert_eq!(draw.bands.iter().map(|band| band.drawn.len()).collect::<Vec<_>>(), [3, 20, 20]);
        assert_eq!(draw.in_order(1).len(), 43);
        assert!(Draw::new(Vec::new(), 0.5, 43, 1).bands.is_empty());
    }

    #[test]
    fn a_larger_draw_has_the_pairs_of_a_smaller_one() {
        let all = || found((0..200).map(|n| 0.5 + f64::from(n % 10) / 20.0));
        let (small, large) = (Draw::new(all(), 0.5, 40, 7), Draw::new(all(), 0.5, 80, 7));
        let large = large.in_order(7);
        assert!(small.in_order(7).iter().all(|pair| large.contains(pair)));
        assert_ne!(small.in_order(7), Draw::new(all(), 0.5, 40, 8).in_order(8));
    }
}
