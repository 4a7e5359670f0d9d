//! The compare stage as the program runs it: bit planes of components of b bits, and the first word of each apart from them.
//!
//! Candidates of one document meet it by their first words, which the block index holds; [`PairFilter::first_word`] turns most of
//! them down. The planes of those that are left are fetched, and [`PairFilter::decide`] is the verdict.

use std::hint::black_box;
use std::ops::Range;

use super::rules::SIZE;
use crate::filter::{FilterError, FilterKind, FilterParams, PairFilter, Staged, Target, Verdict};
use crate::hash::mix;
use crate::sketch::SketchRef;

/// Words of a plane.
const GROUPS: usize = SIZE.div_ceil(64);

/// One query and many documents, as sketches of [`SIZE`] components.
pub(super) struct Planes {
    bits: usize,
    query: Vec<u64>,
    documents: Vec<u64>,
    /// The first word of each document.
    first: Vec<u64>,
    /// Decides early.
    staged: Staged,
    /// Reads all.
    full: Staged,
}

impl Planes {
    /// Of full-width components in rows of `length`, at a threshold; default settings of the filter.
    ///
    /// # Errors
    /// If the threshold is outside its range.
    pub(super) fn new(
        query: &[u64],
        rows: &[u64],
        length: usize,
        bits: usize,
        threshold: f64,
    ) -> Result<Self, FilterError> {
        let target = Target::new(threshold, SIZE, bits)?;
        let documents: Vec<u64> = rows.chunks(length).flat_map(|row| pack(&row[..SIZE], bits)).collect();
        Ok(Self {
            bits,
            query: pack(&query[..SIZE], bits),
            first: documents.chunks(bits * GROUPS).map(|words| words[0]).collect(),
            documents,
            staged: Staged::new(target, &FilterParams::default())?,
            full: Staged::new(target, &FilterParams { kind: FilterKind::Full, ..FilterParams::default() })?,
        })
    }

    /// The verdict on one document.
    #[inline]
    fn decide(&self, filter: &Staged, document: usize) -> Verdict {
        let length = self.bits * GROUPS;
        let sketch = |words| SketchRef { words, features: &[] };
        filter.decide(sketch(&self.query), sketch(&self.documents[document * length..][..length]))
    }

    /// How many of some documents the full comparison accepts.
    pub(super) fn full(&self, documents: Range<usize>) -> usize {
        documents.filter(|document| self.decide(&self.full, *document).accepted.is_some()).count()
    }

    /// How many the filter accepts, first words in the planes.
    pub(super) fn in_rows(&self, documents: Range<usize>) -> usize {
        documents.filter(|document| self.decide(&self.staged, *document).accepted.is_some()).count()
    }

    /// How many the filter accepts, first words apart.
    pub(super) fn by_first_words(&self, documents: Range<usize>) -> usize {
        let meets = |document: &usize| self.staged.first_word(self.query[0], self.first[*document]);
        let candidates: Vec<usize> = documents.filter(meets).collect();
        candidates
            .into_iter()
            .filter(|document| self.decide(&self.staged, *document).accepted.is_some())
            .count()
    }

    /// The same, but the memory of all candidates is asked for at once, and no branch is guessed at on the way to them.
    pub(super) fn fetched_together(&self, documents: Range<usize>) -> usize {
        let (mut candidates, mut count) = (vec![0; documents.len()], 0);
        for document in documents {
            candidates[count] = document;
            count += usize::from(self.staged.first_word(self.query[0], self.first[document]));
        }
        candidates.truncate(count);
        // What the first look reads of each plane is on its way when the first verdict is reached.
        let planes = candidates.iter().flat_map(|document| document * self.bits..(document + 1) * self.bits);
        black_box(planes.fold(0, |sum, plane| sum ^ self.documents[plane * GROUPS]));
        candidates
            .into_iter()
            .filter(|document| self.decide(&self.staged, *document).accepted.is_some())
            .count()
    }

    /// How many documents the first words alone leave.
    pub(super) fn left(&self, documents: Range<usize>) -> usize {
        documents.filter(|document| self.staged.first_word(self.query[0], self.first[*document])).count()
    }

    /// Bytes that the full comparison reads of a document.
    pub(super) fn bytes(&self) -> usize {
        8 * self.bits * GROUPS
    }

    /// Bytes that the filter reads of one document, its first word counted once more if the planes are read.
    pub(super) fn bytes_read(&self, document: usize) -> usize {
        if !self.staged.first_word(self.query[0], self.first[document]) {
            return 8;
        }
        let verdict = self.decide(&self.staged, document);
        // What is accepted is read to its end, for the estimate.
        let components = if verdict.accepted.is_some() { SIZE } else { verdict.components as usize };
        8 + 8 * self.bits * components.div_ceil(64)
    }
}

/// The low bits of components, hashed again, as planes.
fn pack(components: &[u64], bits: usize) -> Vec<u64> {
    let word = |plane: usize, group: &[u64]| {
        group.iter().rev().fold(0, |word, component| word << 1 | mix(*component) >> plane & 1)
    };
    (0..bits).flat_map(|plane| components.chunks(64).map(move |group| word(plane, group))).collect()
}
