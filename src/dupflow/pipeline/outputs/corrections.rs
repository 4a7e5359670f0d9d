//! Corrections of an output: the deltas from the pairs that it holds to those of the corpus.

use dupflow_core::pair::{Cause, Delta, DocPair};
use dupflow_core::reconcile::Reconcile;

/// Approximate limit of corrections in one commit: a broker limits the duration of a transaction.
pub(in crate::pipeline) const CORRECTIONS: usize = 20_000;

/// A delta that no event has caused.
pub(in crate::pipeline) fn correction(pair: DocPair, diff: isize) -> Delta {
    Delta { pair, diff, cause: Cause::Correction }
}

/// The deltas that correct an output, in order.
pub(in crate::pipeline) fn corrections(pairs: Reconcile<DocPair>) -> Vec<Delta> {
    let changes = pairs.changes(|a, b| a.pair.cmp(&b.pair)).into_iter();
    changes.map(|(pair, diff)| correction(pair, diff)).collect()
}

/// The deltas in pieces for a commit each, with whether it is the last one: at least one, perhaps empty. The
/// changes of one pair stay in one piece.
pub(in crate::pipeline) fn pieces(deltas: &[Delta]) -> impl Iterator<Item = (&[Delta], bool)> {
    let mut rest = Some(deltas);
    std::iter::from_fn(move || {
        let left = rest?;
        let last = left.get(left.len().min(CORRECTIONS).wrapping_sub(1)).map(|delta| &delta.pair.pair);
        let length = last.map_or(0, |last| left.partition_point(|next| next.pair.pair <= *last));
        let (piece, left) = left.split_at(length);
        rest = Some(left).filter(|left| !left.is_empty());
        Some((piece, rest.is_none()))
    })
}
