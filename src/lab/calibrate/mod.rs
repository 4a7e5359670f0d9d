//! A threshold from judged pairs: which pairs of a corpus to judge, and what the answers say of each
//! threshold.
//!
//! The pairs of a run at a low threshold are divided into [`bands`](Draw::bands) of similarity, and the same
//! number is drawn from each without replacement (stratified sampling; Cochran, *Sampling Techniques*, 3rd
//! edition 1977, chapter 5). Of a band with `N` pairs, of which `n` are judged and `k` are duplicates, `N k /
//! n` are estimated to be duplicates. From a threshold on, *precision* is the share of duplicates among the
//! pairs, and *recall* the share of all duplicates of all bands that these pairs have: duplicates below the
//! first band are not known.
//!
//! Intervals hold 95 %: each band's share of duplicates among the pairs that are not judged is drawn from
//! Beta(k + 1/2, n - k + 1/2), by Jeffreys' prior (Brown, Cai and DasGupta, *Interval estimation for a
//! binomial proportion*, Statistical Science 2001, section 4), and precision and recall are computed from it.
//! We differ where there are many bands: on each side of a threshold those with k = 0 share one half, and so
//! do those with k = n. As in that article an interval ends at its estimate where it would lie outside.

mod draw;
mod estimate;

pub use draw::{Draw, DrawnBand, SimilarPair};
pub use estimate::{CalibratedThreshold, Calibration, Goal, Interval, JudgedBand};
