//! Merging the features of two texts, as far as it takes to know that they have too few in common.
//!
//! Features are hashes, so a prefix of a sorted list is a sample: a pair of J = 0.3 against T = 0.8 ends
//! after about a fifth of its features. Galloping does not help: the sizes are alike when two texts get this
//! far.
//!
//! No branch within a stride depends on the data, since which list moves on is a coin toss to a branch
//! predictor. What the sketches leave is mostly near copies, so each stride of plain features is first tried
//! for equality as a whole.

/// Steps of a merge between two tests whether it can still reach what is needed.
pub(super) const STRIDE: usize = 32;

/// How many features two strictly ascending lists have in common, if at least `needed`.
pub fn shared_features(mut a: &[u64], mut b: &[u64], needed: usize) -> Option<usize> {
    let mut shared = 0;
    while let (Some(x), Some(y)) = (a.first_chunk::<STRIDE>(), b.first_chunk::<STRIDE>()) {
        if shared + a.len().min(b.len()) < needed {
            return None;
        }
        let (i, j, equal) = if x == y { (STRIDE, STRIDE, STRIDE) } else { merge(x, y, STRIDE) };
        (a, b, shared) = (&a[i..], &b[j..], shared + equal);
    }
    while !a.is_empty() && !b.is_empty() {
        let (i, j, equal) = merge(a, b, 1);
        (a, b, shared) = (&a[i..], &b[j..], shared + equal);
    }
    (shared >= needed).then_some(shared)
}

/// Merges `steps` steps, at most the length of the shorter list: how far each list moves, and how many are
/// equal.
#[inline(always)]
fn merge(a: &[u64], b: &[u64], steps: usize) -> (usize, usize, usize) {
    let (mut i, mut j, mut equal) = (0, 0, 0);
    for _ in 0..steps {
        let (x, y) = (a[i], b[j]);
        equal += usize::from(x == y);
        i += usize::from(x <= y);
        j += usize::from(y <= x);
    }
    (i, j, equal)
}
