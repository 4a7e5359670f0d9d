//! The looks at a table: taken by its reader, written with the commits from their epoch on.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::mark::TableLook;
use dupflow_core::time::Epoch;

/// The looks at a table, shared by its reader and the committer.
#[derive(Debug, Default)]
pub struct TableLog(Mutex<VecDeque<(Epoch, TableLook)>>);

impl TableLog {
    /// A look that holds once everything before the end of an epoch is durable.
    pub(crate) fn add(&self, epoch: Epoch, look: TableLook) {
        let mut looks = self.0.lock();
        if looks.back().is_some_and(|(last, _)| *last == epoch) {
            looks.pop_back();
        }
        looks.push_back((epoch, look));
    }

    /// The last look that holds at the end of an epoch. Epochs are asked for in their order.
    pub fn up_to(&self, epoch: Epoch) -> Option<TableLook> {
        let mut looks = self.0.lock();
        while looks.get(1).is_some_and(|(next, _)| *next <= epoch) {
            looks.pop_front();
        }
        looks.front().filter(|(first, _)| *first <= epoch).map(|(_, look)| look.clone())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_look_holds_from_its_epoch_on() {
        let log = TableLog::default();
        let look = |below| TableLook { below, ..TableLook::default() };
        let below = |epoch| log.up_to(epoch).map(|found| found.below);
        assert_eq!(below(9), None);
        log.add(3, look(10));
        log.add(3, look(11));
        log.add(5, look(20));
        assert_eq!((below(2), below(3), below(4)), (None, Some(11), Some(11)));
        assert_eq!((below(6), below(7)), (Some(20), Some(20)));
    }
}
