//! Many queries at once: queries and corpus in the order of the same bits, merged.
//!
//! In: one or two sets of [`Fingerprints`]. Out: every pair within the radius, once, with its distance. Only one table
//! exists at a time, so that a design of many tables costs the time for its sorting but not its memory.
//!
//! A pair agrees in several tables as a rule. It is reported from the first one: a pair found within the radius
//! is looked for in the earlier tables, and nothing has to be remembered.
//!
//! Reference: Manku, Jain and Das Sarma (2007), section 4, who stream the sorted tables through a file of queries.

use super::sorted::by_key;
use super::{Fingerprints, Work};
use crate::block::hamming::{Design, DesignError, Selection, distance};

/// A pair within the radius.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Near {
    /// Id of the query, or the smaller id.
    pub a: u32,
    /// Id in the corpus, or the greater id.
    pub b: u32,
    /// Bits that differ, at most the radius.
    pub distance: usize,
}

/// All pairs of a corpus within the radius of a design, `a < b`.
///
/// # Errors
/// If the design has more keys than [`MOST_KEYS`](crate::block::hamming::MOST_KEYS).
pub fn pairs(
    design: &Design,
    corpus: &Fingerprints,
    mut emit: impl FnMut(Near),
) -> Result<Work, DesignError> {
    let selections = design.selections()?;
    let mut work = Work::default();
    for table in 0..selections.len() {
        let order = by_key(&selections[table], corpus);
        for range in order.chunk_by(|x, y| x.0 == y.0) {
            work.probes += 1;
            work.entries += range.len() as u64;
            for (i, (_, a)) in range.iter().enumerate() {
                let words = corpus.get(*a);
                for (_, b) in &range[i + 1..] {
                    work.verified += 1;
                    if let Some(distance) = first_meeting(design, &selections[..table], words, corpus.get(*b))
                    {
                        emit(Near { a: *a, b: *b, distance });
                    }
                }
            }
        }
    }
    Ok(work)
}

/// All fingerprints of a corpus within the radius of each query.
///
/// # Errors
/// If the design has more keys than [`MOST_KEYS`](crate::block::hamming::MOST_KEYS).
pub fn matches(
    design: &Design,
    queries: &Fingerprints,
    corpus: &Fingerprints,
    mut emit: impl FnMut(Near),
) -> Result<Work, DesignError> {
    let selections = design.selections()?;
    let mut work = Work::default();
    for table in 0..selections.len() {
        let (asked, order) = (by_key(&selections[table], queries), by_key(&selections[table], corpus));
        let mut rest = order.as_slice();
        for same in asked.chunk_by(|x, y| x.0 == y.0) {
            rest = &rest[rest.iter().take_while(|(key, _)| *key < same[0].0).count()..];
            let range = &rest[..rest.iter().take_while(|(key, _)| *key == same[0].0).count()];
            work.probes += 1;
            work.entries += range.len() as u64;
            for (_, a) in same {
                let words = queries.get(*a);
                for (_, b) in range {
                    work.verified += 1;
                    if let Some(distance) = first_meeting(design, &selections[..table], words, corpus.get(*b))
                    {
                        emit(Near { a: *a, b: *b, distance });
                    }
                }
            }
        }
    }
    Ok(work)
}

/// The distance of two fingerprints within the radius that agree in no earlier table.
#[inline]
fn first_meeting(design: &Design, earlier: &[Selection], a: &[u64], b: &[u64]) -> Option<usize> {
    let distance = distance(a, b);
    let met = || earlier.iter().any(|selection| selection.key(a) == selection.key(b));
    (distance <= design.radius() && !met()).then_some(distance)
}
