//! True similarities: all pairs of documents whose feature sets have a Jaccard similarity of at least
//! `floor`.
//!
//! In: documents with their features (in any order, repeats allowed). Out: the pairs with Jaccard similarity
//! `|x ∩ y| / |x ∪ y| >= floor` (inclusive), sorted. Documents without a feature are in no pair. Sketches,
//! blocks and filters are not used: recall and precision are measured against this result.
//!
//! The *prefix filter* makes it exact and far from quadratic. All features are in one order, rarest first.
//! Then two sets with at least o common features have one among the first `|x| - o + 1` of x and the first
//! `|y| - o + 1` of y. For `J >= t` and `|y| <= |x|`, o is at least `t |x|`, and at least `2 t / (1 + t)
//! |y|`; sets with fewer than `t |x|` features cannot reach t. Sets are processed by ascending size, looked
//! up by their first features among the sets before them, and compared in full.
//!
//! Reference: R. J. Bayardo, Y. Ma and R. Srikant, *Scaling up all pairs similarity search* (WWW 2007),
//! section 4; C. Xiao, W. Wang, X. Lin and J. X. Yu, *Efficient similarity joins for near duplicate
//! detection* (WWW 2008), section 3.

use std::collections::BTreeMap;

use hashbrown::HashMap;

use crate::doc::DocId;
use crate::hash::BuildIdentityHasher;
use crate::pair::{Pair, Threshold};
use crate::sketch::SectionMode;
use crate::sketch::sectional::alignment;

/// Every pair with a similarity of `floor` or more, sorted by ids. Ids must be distinct.
///
/// # Panics
/// Unless `0 < floor <= 1`, and beyond 2^32 documents or distinct shared features.
pub fn pairs(documents: impl IntoIterator<Item = (DocId, Vec<u64>)>, floor: f64) -> Vec<(Pair<DocId>, f64)> {
    let least = Threshold::new(floor).unwrap_or_else(|| panic!("the floor {floor} is not in (0, 1]"));
    let (ids, sets, ranks) = rank(documents);
    let mut by_size: Vec<usize> = (0..sets.len()).collect();
    by_size.sort_by_key(|&x| sets[x].size);

    let mut index: Vec<Vec<usize>> = vec![Vec::new(); ranks];
    // For each set, the last set that it was compared with, so that each pair is compared once.
    let mut met = vec![usize::MAX; sets.len()];
    let mut found = Vec::new();
    for x in by_size {
        let set = &sets[x];
        let smallest = at_least(floor * float(set.size));
        for &feature in set.prefix(smallest) {
            let list = &mut index[feature];
            // Sizes in a list ascend, and so do those of the queries: a set that is too small now stays so.
            let passed = list.partition_point(|&y| sets[y].size < smallest);
            list.drain(..passed);
            for &y in &*list {
                if met[y] == x {
                    continue;
                }
                met[y] = x;
                let (common, either) = set.overlap(&sets[y]);
                if least.admits_ratio(common as u128, either as u128) {
                    let similarity = float(common) / float(either);
                    found.extend(Pair::new(ids[x].clone(), ids[y].clone()).map(|pair| (pair, similarity)));
                }
            }
        }
        for &feature in set.prefix(at_least(2.0 * floor / (1.0 + floor) * float(set.size))) {
            index[feature].push(x);
        }
    }
    found.sort_unstable_by(|(a, _), (b, _)| a.cmp(b));
    found
}

/// All pairs with a sectional similarity of at least `floor`, sorted by ids: the similarity that a sketch
/// with `sections` sections estimates. Features are in text order. Ids must be distinct. It is never above
/// the Jaccard similarity, so only pairs that reach the floor by that are compared.
///
/// # Panics
/// As [`pairs`].
pub fn sectional_pairs(
    documents: &BTreeMap<DocId, Vec<u64>>,
    sections: usize,
    mode: SectionMode,
    floor: f64,
) -> Vec<(Pair<DocId>, f64)> {
    let by_set = pairs(documents.iter().map(|(id, features)| (id.clone(), features.clone())), floor);
    let own = by_set.into_iter().map(|(pair, jaccard)| {
        let q = alignment(&documents[pair.lo()], &documents[pair.hi()], sections).unwrap_or(0.0);
        (pair, mode.expectation(jaccard, q))
    });
    own.filter(|(_, similarity)| *similarity >= floor).collect()
}

/// A document's feature set.
struct Set {
    /// Number of distinct features.
    size: usize,
    /// Ranks of the features that other documents have too, ascending. In the order of features the unshared
    /// ones are before all of these.
    shared: Vec<usize>,
}

impl Set {
    /// The shared features of the prefix that contains at least one of any `overlap` common features.
    fn prefix(&self, overlap: usize) -> &[usize] {
        let first = self.size + 1 - overlap.max(1);
        let unshared = self.size - self.shared.len();
        &self.shared[..first.saturating_sub(unshared)]
    }

    /// `|x ∩ y|` and `|x ∪ y|`.
    fn overlap(&self, other: &Self) -> (usize, usize) {
        let (mut i, mut j, mut common) = (0, 0, 0);
        while let (Some(x), Some(y)) = (self.shared.get(i), other.shared.get(j)) {
            common += usize::from(x == y);
            (i, j) = (i + usize::from(x <= y), j + usize::from(x >= y));
        }
        (common, self.size + other.size - common)
    }
}

/// Replaces features by ranks, rarest first; returns ids, sets and the number of ranks. Documents without a
/// feature are left out.
fn rank(documents: impl IntoIterator<Item = (DocId, Vec<u64>)>) -> (Vec<DocId>, Vec<Set>, usize) {
    let mut holders = HolderCounts::default();
    let mut ids = Vec::new();
    let mut sets = Vec::new();
    for (id, mut set) in documents {
        set.sort_unstable();
        set.dedup();
        if set.is_empty() {
            continue;
        }
        for &feature in &set {
            *holders.entry(feature).or_default() += 1;
        }
        ids.push(id);
        sets.push(set);
    }
    holders.retain(|_, holders| *holders > 1);
    let mut order: Vec<(usize, u64)> =
        holders.iter().map(|(&feature, &holders)| (holders, feature)).collect();
    order.sort_unstable();
    for (rank, (_, feature)) in order.iter().enumerate() {
        holders.insert(*feature, rank);
    }
    let ranks = holders;
    let ranked = |features: Vec<u64>| {
        let mut shared: Vec<usize> =
            features.iter().filter_map(|feature| ranks.get(feature).copied()).collect();
        shared.sort_unstable();
        Set { size: features.len(), shared }
    };
    (ids, sets.into_iter().map(ranked).collect(), order.len())
}

/// The least whole number that is not below `x`, or one less where rounding makes it uncertain: a lower
/// overlap costs a comparison, a higher one would lose a pair.
#[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "0 to a set's size")]
fn at_least(x: f64) -> usize {
    (x - 1e-6).ceil().max(0.0) as usize
}

#[expect(clippy::cast_precision_loss, reason = "no set has 2^53 features")]
fn float(n: usize) -> f64 {
    n as f64
}

type HolderCounts = HashMap<u64, usize, BuildIdentityHasher>;
