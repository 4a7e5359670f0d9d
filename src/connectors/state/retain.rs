//! Ends the stored documents that a run reads again.

use super::{Snapshot, StateError, StatePosition, StoredState};
use dupflow_core::doc::changes::{ChangeRecord, Changes};

/// Bytes of a slice that is read, and of the ends that one publish writes.
const SLICE_BYTES: usize = 1 << 20;
const ENDS_BYTES: usize = 64 << 20;

impl StoredState {
    /// Ends all documents of a snapshot except those that `keeps` accepts. Afterwards the state stands for
    /// `saved`. Until then it has more documents than those, and stands for `partial`.
    ///
    /// # Errors
    /// Those of [`Self::publish`] and [`Snapshot::read`].
    pub fn retain(
        &mut self,
        snapshot: &Snapshot,
        partial: &StatePosition,
        saved: &StatePosition,
        mut keeps: impl FnMut(ChangeRecord<'_>) -> bool,
    ) -> Result<(), StateError> {
        self.publish(partial, &[])?;
        let mut ends = Changes::default();
        snapshot.read(SLICE_BYTES, |slice| {
            slice.records().filter(|record| !keeps(*record)).for_each(|record| ends.end(record.id));
            if ends.len_bytes() < ENDS_BYTES {
                return Ok(());
            }
            self.publish(partial, &[std::mem::take(&mut ends)])
        })?;
        self.publish(saved, &[ends])
    }
}
