//! The changes of stored documents that a process stores itself, and does not send to worker 0.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use dupflow_core::doc::changes::Changes;
use dupflow_core::time::Epoch;

/// Changes of the documents of one process, by epoch. An epoch that worker 0 has closed is complete: a worker
/// adds its changes before it gives up the right to report the epoch.
#[derive(Debug, Default)]
pub struct KeptEpochs(Mutex<BTreeMap<Epoch, Vec<Changes>>>);

impl KeptEpochs {
    pub(in crate::dataflow) fn add(&self, epoch: Epoch, changes: Changes) {
        self.0.lock().entry(epoch).or_default().push(changes);
    }

    /// Takes the changes of the epochs through this one, inclusive.
    pub fn take(&self, through: Epoch) -> Vec<Changes> {
        let mut all = self.0.lock();
        let later = through.checked_add(1).map_or_else(BTreeMap::new, |next| all.split_off(&next));
        std::mem::replace(&mut *all, later).into_values().flatten().collect()
    }
}
