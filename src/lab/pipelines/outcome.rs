//! Found pairs compared with the truth.

use super::super::truth::{Truth, reaches};
use dupflow_core::doc::DocId;
use dupflow_core::pair::Pair;

/// Bands of true similarity, each from its start (inclusive) to the next start (exclusive); the last one is
/// exactly 1.
pub(super) const BANDS: [f64; 12] = [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.85, 0.9, 0.95, 1.0];

/// Counts of found pairs compared with the truth.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct PairOutcome {
    /// Pairs found.
    pub(super) found: usize,
    /// Right pairs.
    pub(super) right: usize,
    /// Right pairs that were found.
    pub(super) hits: usize,
    /// For each band of true similarity: found pairs, and all pairs.
    pub(super) bands: [(usize, usize); BANDS.len()],
}

impl PairOutcome {
    pub(super) fn new(truth: &Truth, threshold: f64, found: &[Pair<DocId>]) -> Self {
        let band = |similarity: f64| BANDS.partition_point(|from| *from <= similarity).checked_sub(1);
        let mut outcome = Self { found: found.len(), right: 0, hits: 0, bands: [(0, 0); BANDS.len()] };
        for (_, similarity) in truth.at(0.0) {
            outcome.right += usize::from(reaches(similarity, threshold));
            if let Some(band) = band(similarity) {
                outcome.bands[band].1 += 1;
            }
        }
        for similarity in found.iter().filter_map(|pair| truth.pairs.get(pair).copied()) {
            outcome.hits += usize::from(reaches(similarity, threshold));
            if let Some(band) = band(similarity) {
                outcome.bands[band].0 += 1;
            }
        }
        outcome
    }

    pub(super) fn precision(&self) -> Option<f64> {
        share(self.hits, self.found)
    }

    pub(super) fn recall(&self) -> Option<f64> {
        share(self.hits, self.right)
    }

    pub(super) fn f1(&self) -> Option<f64> {
        share(2 * self.hits, self.found + self.right)
    }
}

/// "[0.8, 0.85)", or "1".
pub(super) fn band_name(band: usize) -> String {
    BANDS.get(band + 1).map_or_else(|| "1".to_owned(), |end| format!("[{}, {end})", BANDS[band]))
}

/// A fraction; `None` if the whole is 0.
pub(super) fn share(part: usize, whole: usize) -> Option<f64> {
    (whole > 0).then(|| part as f64 / whole as f64)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pair(a: &str, b: &str) -> Pair<DocId> {
        Pair::new(DocId::new(a).unwrap(), DocId::new(b).unwrap()).unwrap()
    }

    /// Three of four pairs are right. Found are two of these, the fourth, and an unknown one.
    #[test]
    pub(super) fn precision_and_recall_by_hand() {
        let pairs = [("a", "b", 0.8), ("a", "c", 0.9), ("b", "c", 1.0), ("c", "d", 0.75)];
        let pairs = pairs.into_iter().map(|(a, b, s)| (pair(a, b), s)).collect();
        let truth = Truth { pairs, graded: true };
        let found = [pair("a", "b"), pair("b", "c"), pair("c", "d"), pair("x", "y")];
        let outcome = PairOutcome::new(&truth, 0.8, &found);
        assert_eq!((outcome.found, outcome.right, outcome.hits), (4, 3, 2));
        assert_eq!((outcome.precision(), outcome.f1()), (Some(0.5), Some(4.0 / 7.0)));
        assert_eq!(outcome.recall(), Some(2.0 / 3.0));
        let held: Vec<_> = (0..BANDS.len()).filter(|b| outcome.bands[*b].1 > 0).collect();
        assert_eq!(
            held.iter().map(|b| band_name(*b)).collect::<Vec<_>>(),
            ["[0.7, 0.8)", "[0.8, 0.85)", "[0.9, 0.95)", "1"]
        );
        assert_eq!(
            held.iter().map(|b| outcome.bands[*b]).collect::<Vec<_>>(),
            [(1, 1), (1, 1), (0, 1), (1, 1)]
        );
    }

    #[test]
    fn nothing_found_has_no_precision() {
        let outcome = PairOutcome::new(&Truth::default(), 0.8, &[]);
        assert_eq!((outcome.precision(), outcome.recall(), outcome.f1()), (None, None, None));
    }
}
