//! The repeated units as a list: those to remove.
//!
//! ```text
//! {"document":"…","unit":2,"from":310,"to":498,"of":{"document":"…","unit":0},"similarity":1.0}
//! ```

use std::fmt;
use std::io;

use super::repeated::RepeatedUnits;
use crate::sinks::contract::EndList;
use crate::sinks::keep_list::ListCountsSlot;
use crate::sinks::rows::RowWriter;
use dupflow_core::cluster::{Clusters, KeepRule};
use dupflow_core::doc::DocChange;
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::pair::Delta;

/// Holds the units and the pairs that the changes accumulate to, and writes the list at the end.
pub struct UnitList<R> {
    out: R,
    units: RepeatedUnits,
}

impl<R: RowWriter> UnitList<R> {
    /// `clusters` must be empty, its limit has no effect; documents hold the fields `held`, one of which the
    /// rule may read.
    pub fn with_rows(out: R, clusters: Clusters, keep: KeepRule, held: &FieldRules) -> Self {
        Self { out, units: RepeatedUnits::new(clusters, keep, held) }
    }

    /// The same, which leaves its counts there.
    #[must_use]
    pub fn with_counts(self, counts: ListCountsSlot) -> Self {
        Self { units: self.units.with_counts(counts), ..self }
    }
}

impl<R: RowWriter> EndList for UnitList<R> {
    const OF_DOCUMENTS: bool = true;

    fn change(&mut self, changes: &[DocChange]) {
        self.units.change(changes);
    }

    fn follow(&mut self, deltas: &[Delta]) {
        self.units.follow(deltas);
    }

    fn write(&mut self) -> io::Result<()> {
        let Self { out, units } = self;
        units.removed(|removed| out.row(removed))?;
        out.finish()
    }
}

impl<R> fmt::Debug for UnitList<R> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnitList").finish_non_exhaustive()
    }
}
