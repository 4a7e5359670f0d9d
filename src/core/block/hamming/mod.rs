//! Blocking by Hamming distance: finds all fingerprints within a radius, none missed.
//!
//! In: fingerprints of f bits, the lowest bit of the first word first (a SimHash, or the one-bit plane of a
//! set sketch), and a radius k, inclusive. Out: for the stream, block keys such that two fingerprints within
//! the radius share at least one ([`HammingTables`]). Static indexes of a whole corpus are in the laboratory,
//! `lab/search`.
//!
//! The rule is the pigeonhole principle. Two fingerprints within distance k, cut into m > k blocks, agree in
//! at least m - k blocks; cut into m <= k blocks, they differ in some block by at most ⌊k / m⌋. A [`Design`]
//! says which blocks are looked up, and how many at once; [`optimiser`] ranks the designs by their cost.
//!
//! Invariant: recall is exactly 1 in every design. Designs differ in memory, look-ups and candidates.
//!
//! References: G. S. Manku, A. Jain and A. Das Sarma, *Detecting near-duplicates for web crawling* (WWW
//! 2007), section 3, for permuted tables. M. Norouzi, A. Punjani and D. J. Fleet, *Fast search in Hamming
//! space with multi-index hashing* (CVPR 2012). Yuan et al. (2012), sections 3.1 and 4, for alg.G and alg.H
//! and for the threshold of one-bit minwise fingerprints, equation 10.

mod design;
mod estimate;
pub mod optimiser;
mod selection;
mod tables;

pub use design::{Design, DesignError, DesignKind, MOST_KEYS};
pub use estimate::{DesignUse, Estimate};
pub use selection::Selection;
pub use tables::HammingTables;

/// The greatest distance, inclusive, at which two one-bit fingerprints of `components` components estimate a
/// similarity of at least `similarity`: `⌊components (1 - similarity) / 2⌋`, since unequal components agree
/// by chance in half of the cases.
///
/// The product is computed as an exact decimal would be: a guard of 1e-9 keeps `100 (1 - 0.8) / 2` at 10,
/// where plain floating point gives 9.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "at most the number of components, and not negative"
)]
pub fn radius(components: usize, similarity: f64) -> usize {
    (components as f64 * (1.0 - similarity) / 2.0 + 1e-9).floor() as usize
}

/// The widths of `groups` groups of `bits` bits: they differ by at most one, wide groups first.
pub fn widths(bits: usize, groups: usize) -> Vec<usize> {
    (0..groups).map(|i| bits / groups + usize::from(i < bits % groups)).collect()
}

/// The number of ways to choose `k` of `n`; `u64::MAX` where it is more than that.
pub fn binomial(n: usize, k: usize) -> u64 {
    let mut ways = u64::from(k <= n);
    for i in 0..k.min(n.saturating_sub(k)) {
        // Exact: this is C(n, i + 1) times i + 1.
        let next = u128::from(ways) * (n - i) as u128 / (i + 1) as u128;
        let Ok(next) = u64::try_from(next) else { return u64::MAX };
        ways = next;
    }
    ways
}

/// All choices of `k` of the numbers `0..n`, each ascending, in lexicographic order.
fn choices(n: usize, k: usize) -> impl Iterator<Item = Vec<usize>> {
    let first = (k <= n).then(|| (0..k).collect());
    std::iter::successors(first, move |last: &Vec<usize>| {
        // The last position that can still be incremented; the positions after it follow consecutively.
        let place = (0..k).rev().find(|&i| last[i] < n - k + i)?;
        let mut next = last.clone();
        for (follower, number) in next[place..].iter_mut().zip(last[place] + 1..) {
            *follower = number;
        }
        Some(next)
    })
}

/// The number of different bits of two fingerprints of the same length.
#[inline(always)]
pub fn distance(a: &[u64], b: &[u64]) -> usize {
    a.iter().zip(b).map(|(a, b)| (a ^ b).count_ones() as usize).sum()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_threshold_is_exact_where_floating_point_is_not() {
        assert_eq!(radius(100, 0.8), 10);
        assert_eq!(radius(64, 0.9), 3);
        assert_eq!(radius(400, 0.7), 60);
        assert_eq!((radius(64, 1.0), radius(64, 0.0)), (0, 32));
    }

    #[test]
    fn wide_groups_come_first() {
        assert_eq!(widths(64, 5), [13, 13, 13, 13, 12]);
        assert_eq!(widths(6, 3), [2, 2, 2]);
        assert_eq!(widths(3, 4), [1, 1, 1, 0]);
    }

    #[test]
    fn binomials_and_the_choices_that_they_count() {
        assert_eq!(
            (binomial(63, 3), binomial(64, 3), binomial(5, 0), binomial(3, 4)),
            (39_711, 41_664, 1, 0)
        );
        assert_eq!(binomial(67, 33), 14_226_520_737_620_288_370);
        assert_eq!(binomial(400, 200), u64::MAX);
        assert_eq!(choices(4, 2).collect::<Vec<_>>(), [[0, 1], [0, 2], [0, 3], [1, 2], [1, 3], [2, 3]]);
        assert_eq!(choices(3, 0).collect::<Vec<_>>(), [Vec::<usize>::new()]);
        assert_eq!(choices(2, 3).count(), 0);
        assert_eq!(choices(9, 4).count() as u64, binomial(9, 4));
    }
}
