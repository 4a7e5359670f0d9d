//! Takes the documents that are read again out of the state.
//!
//! Documents whose record the input no longer holds stay as they were read, since a run never drops what it
//! cannot read again. The state then stands for the first records that the input holds. While documents are
//! taken out of it, its mark has no pipeline, so that no run continues from it.

use super::document_rules::{DocumentRules, ReadAgain};
use super::error::RunError;
use dupflow_connectors::intake::SourceInfo;
use dupflow_connectors::mark::Mark;
use dupflow_connectors::state::{Snapshot, StatePosition, StoredState};
use dupflow_core::time::Offsets;
use dupflow_engine::dataflow::{is_kept_slot, kept_position};
use dupflow_run::metrics::{Counter, Metrics};

/// Most documents that a message names.
const NAMED: usize = 5;

/// Takes the documents that are read again out of the state, which is claimed. Returns what is left of it.
pub(super) fn read_again(
    again: &ReadAgain,
    state: &mut StoredState,
    input: &SourceInfo,
    rules: &DocumentRules<'_>,
    scheme: &[u8],
    metrics: &Metrics,
) -> Result<Option<Snapshot>, RunError> {
    let (old, mut found) = (&again.snapshot, NotReadAgain::default());
    let expired = Expired::find(&old.saved().mark, input).filter(|_| again.keeps_expired);
    let snapshot = match expired {
        None => {
            state.latest(0)?;
            None
        }
        Some(expired) if old.saved().scheme != scheme => {
            old.read(1 << 20, |slice| {
                for (id, value) in slice.iter() {
                    found.add(id, value, &expired);
                }
                Ok::<_, RunError>(())
            })?;
            state.latest(0)?;
            None
        }
        Some(expired) => {
            let (partial, mut saved) = positions(old.saved(), &expired, rules);
            if again.is_from_first {
                saved.mark.progress.next.clone_from(&expired.first);
                saved.mark.start.clone_from(&expired.first);
            }
            state.retain(old, &partial, &saved, |record| found.add(record.id, record.value, &expired))?;
            state.latest(u64::MAX)?
        }
    };
    found.report(snapshot.is_some(), metrics);
    Ok(snapshot)
}

/// The first offset that each partition of an input still holds.
struct Expired {
    first: Offsets,
}

impl Expired {
    /// `None` if the input holds everything that the state was read from.
    fn find(mark: &Mark, input: &SourceInfo) -> Option<Self> {
        let first: Offsets =
            input.held.as_ref()?.iter().map(|(partition, (first, _))| (*partition, *first)).collect();
        let is_lost = |(partition, start): (&u32, &u64)| first.get(partition).is_none_or(|at| at > start);
        mark.start.iter().any(is_lost).then_some(Self { first })
    }
}

/// Documents whose record the input no longer holds.
#[derive(Default)]
struct NotReadAgain {
    count: u64,
    examples: Vec<String>,
}

impl NotReadAgain {
    /// Whether the record of a stored document has expired; then it is counted. So may have been that of a
    /// delete, whose slot is no document.
    fn add(&mut self, id: &[u8], value: Option<&[u8]>, Expired { first }: &Expired) -> bool {
        let Some(at) = value.and_then(kept_position) else { return false };
        let has_expired = first.get(&at.partition).is_none_or(|first| at.offset < *first);
        if has_expired && !value.is_some_and(is_kept_slot) {
            self.count += 1;
            if self.examples.len() < NAMED {
                self.examples.push(String::from_utf8_lossy(id).into_owned());
            }
        }
        has_expired
    }

    fn report(&self, are_kept: bool, metrics: &Metrics) {
        if self.count == 0 {
            return;
        }
        metrics.add(Counter::NotReadAgain, self.count);
        let (documents, examples) = (self.count, &self.examples);
        if are_kept {
            tracing::warn!(
                documents,
                ?examples,
                "the input no longer holds the records of some documents: they stay as they were read before"
            );
        } else {
            tracing::warn!(
                documents,
                ?examples,
                "the input no longer holds the records of some documents, which were stored under another \
                 scheme: they are no longer in the corpus"
            );
        }
    }
}

/// What the state stands for while documents are taken out of it, and afterwards.
fn positions(
    old: &StatePosition,
    Expired { first }: &Expired,
    rules: &DocumentRules<'_>,
) -> (StatePosition, StatePosition) {
    let with = |pipeline: &str, source: &str, next: Offsets| {
        let mut mark = old.mark.clone();
        (mark.pipeline, mark.source, mark.progress.next) = (pipeline.to_owned(), source.to_owned(), next);
        mark.progress.last.clear();
        StatePosition { mark: Mark { in_correction: true, ..mark }, ..old.clone() }
    };
    let begin = first.iter().map(|(partition, first)| {
        (*partition, old.mark.start.get(partition).map_or(*first, |start| *first.max(start)))
    });
    (with("", "", old.mark.progress.next.clone()), with(rules.pipeline, rules.source, begin.collect()))
}
