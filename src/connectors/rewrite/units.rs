//! Repeated units: the records of all live documents, and what is cut out of their texts.

use std::convert::Infallible;
use std::fmt;
use std::io;

use super::selection::{Selection, SelectionSlot};
use crate::sinks::{EndList, ListCountsSlot, RepeatedUnits};
use dupflow_core::cluster::{Clusters, KeepRule};
use dupflow_core::doc::DocChange;
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::pair::Delta;

/// Holds the units and the pairs that the changes accumulate to, and leaves the cuts at the end.
pub struct UnitCutSink {
    units: RepeatedUnits,
    slot: SelectionSlot,
}

impl UnitCutSink {
    /// `clusters` must be empty, its limit has no effect; documents hold the fields `held`, one of which the
    /// rule may read.
    pub fn new(clusters: Clusters, keep: KeepRule, held: &FieldRules, slot: SelectionSlot) -> Self {
        Self { units: RepeatedUnits::new(clusters, keep, held), slot }
    }

    /// The same, which leaves its counts there.
    #[must_use]
    pub fn with_counts(self, counts: ListCountsSlot) -> Self {
        Self { units: self.units.with_counts(counts), ..self }
    }
}

impl EndList for UnitCutSink {
    const OF_DOCUMENTS: bool = true;

    fn change(&mut self, changes: &[DocChange]) {
        self.units.change(changes);
    }

    fn follow(&mut self, deltas: &[Delta]) {
        self.units.follow(deltas);
    }

    fn write(&mut self) -> io::Result<()> {
        let records = self.units.records().clone();
        let mut selection = Selection::of_all(records.values().copied());
        let Ok(()) = self.units.removed::<Infallible>(|unit| {
            if let Some(record) = records.get(unit.document) {
                selection.repeated.entry(*record).or_default().push(unit.from..unit.to);
            }
            Ok(())
        });
        *self.slot.lock() = Some(selection);
        Ok(())
    }
}

impl fmt::Debug for UnitCutSink {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("UnitCutSink").finish_non_exhaustive()
    }
}
