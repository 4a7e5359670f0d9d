//! The portable engine.

/// See [`super::Engine`].
pub(super) fn differing(a: &[u64], b: &[u64], groups: usize, from: usize, to: usize) -> u32 {
    (from..to)
        .map(|g| {
            let differ = a[g..].iter().step_by(groups).zip(b[g..].iter().step_by(groups));
            differ.fold(0, |acc, (x, y)| acc | (x ^ y)).count_ones()
        })
        .sum()
}
