//! Counts the common features of two texts by a merge that stops as soon as there are too few.
//!
//! In: two strictly ascending lists of features. Out: the number of common features, if at least `needed`.
//!
//! Features are hashes, so a prefix of a sorted list is a random sample: a pair of J = 0.3 against T = 0.8
//! ends after about a fifth of its features. Galloping does not help, since the lists of compared texts have
//! similar sizes.
//!
//! Within a stride no branch depends on the data: a branch predictor could not predict which list advances.
//! Most pairs that the sketches do not reject are near copies, so each stride is first compared for equality
//! as a whole.

/// Steps of a merge between two tests whether `needed` can still be reached.
pub(super) const STRIDE: usize = 32;

/// Number of common features of two strictly ascending lists, if at least `needed`.
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

/// Merges `steps` steps, at most the length of the shorter list. Returns by how much each list advances, and
/// the number of equal features.
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
