//! Takes from a state what its input can give again, where the input holds other records than were read.
//!
//! What has expired is in the state only, so that is kept: the documents whose last event is before the first
//! offset of its partition. All other documents are read again. If a later event of a kept document was lost,
//! it stays as it was before.

use super::error::RunError;
use dupflow_connectors::intake::SourceInfo;
use dupflow_connectors::state::{Snapshot, StoredState};
use dupflow_core::doc::changes::Changes;
use dupflow_core::time::Offsets;
use dupflow_engine::dataflow::kept_position;

/// Approximate bytes of documents that are looked at together.
const SLICE_BYTES: usize = 256 << 10;

/// Leaves in the state only what has expired. The state then says that the output has to be corrected.
pub(super) fn keep_expired(
    state: &mut StoredState,
    snapshot: &Snapshot,
    input: &SourceInfo,
) -> Result<Option<Snapshot>, RunError> {
    let mut saved = snapshot.saved().clone();
    let begin = begin(&saved.mark.start, input);
    let (mut dropped, mut kept, mut read_again) = (Changes::default(), 0_u64, 0_u64);
    snapshot.read::<RunError>(SLICE_BYTES, |slice| {
        for (id, value) in slice.iter() {
            let position = value.and_then(kept_position).unwrap_or_default();
            if begin.get(&position.partition).is_some_and(|begin| position.offset >= *begin) {
                dropped.end(id);
                read_again += 1;
            } else {
                kept += 1;
            }
        }
        Ok(())
    })?;
    tracing::warn!(
        kept,
        read_again,
        "the state stands for records that the input has lost: documents whose records have expired are kept \
         as they are in the state; all that the input holds is read again, and the output is corrected"
    );
    saved.mark.progress.next = begin;
    saved.mark.progress.last.clear();
    saved.mark.in_correction = true;
    state.publish(&saved, &[dropped])?;
    Ok(state.latest(u64::MAX)?)
}

/// Where each partition is read again: at its first record, or at the first one that counts.
fn begin(start: &Offsets, input: &SourceInfo) -> Offsets {
    let held = input.held.iter().flatten();
    held.map(|(partition, (first, _))| (*partition, start.get(partition).map_or(*first, |at| *at.max(first))))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_partition_is_read_from_the_first_record_that_counts() {
        let input = SourceInfo {
            held: Some([(0, (3, 9)), (1, (0, 5)), (2, (4, 4))].into()),
            ..SourceInfo::default()
        };
        let start = [(0, 1), (1, 2)].into();
        assert_eq!(begin(&start, &input), Offsets::from([(0, 3), (1, 2), (2, 4)]));
    }
}
