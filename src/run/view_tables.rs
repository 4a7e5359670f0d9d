//! The rows of the views in memory, for readers beside the run.
//!
//! The committer applies the changes of an epoch after they are durable. A reader gets a page of rows of the
//! end of one epoch, in either of two orders, and holds the lock while the page is copied.
//!
//! Memory: each row twice, about 200 bytes. Nothing is held unless there is a reader ([`ViewTables::new`] is
//! called for a monitor only).

use std::cmp::Reverse;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use parking_lot::Mutex;

use dupflow_core::doc::DocId;
use dupflow_core::time::Epoch;
use dupflow_core::views::{Group, ViewDelta, ViewPlan, ViewRow};

/// The order of rows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RowOrder {
    /// By value, the greatest first; then by group and id.
    #[default]
    Value,
    /// By group and id.
    Group,
}

/// A group and, in a view of first ones, a document or cluster.
type RowKey = (Group, Option<DocId>);

/// A row with its value.
pub type TableRow = (RowKey, u64);

/// A page of rows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TablePage {
    /// The epoch at whose end these are the rows.
    pub epoch: Epoch,
    /// The number of rows of the view.
    pub total: usize,
    /// The rows of the page, in order.
    pub rows: Vec<TableRow>,
}

/// The rows of all views of a run.
#[derive(Debug)]
pub struct ViewTables {
    plans: Arc<[ViewPlan]>,
    state: Mutex<TablesState>,
}

#[derive(Debug)]
struct TablesState {
    epoch: Epoch,
    tables: Vec<ViewTable>,
}

/// The rows of one view, in both orders.
#[derive(Clone, Debug, Default)]
struct ViewTable {
    by_group: BTreeMap<RowKey, u64>,
    by_value: BTreeSet<(Reverse<u64>, RowKey)>,
}

impl ViewTables {
    /// Without rows.
    pub fn new(plans: Arc<[ViewPlan]>) -> Self {
        let tables = vec![ViewTable::default(); plans.len()];
        Self { plans, state: Mutex::new(TablesState { epoch: 0, tables }) }
    }

    /// The views, in order.
    pub fn plans(&self) -> &[ViewPlan] {
        &self.plans
    }

    /// Applies the changes of an epoch.
    pub fn apply(&self, epoch: Epoch, deltas: &[ViewDelta]) {
        let mut state = self.state.lock();
        state.epoch = epoch;
        // Removals first: the value of a row changes by a removal and an addition, in the order of values.
        for adds in [false, true] {
            for ViewDelta { row, diff } in deltas.iter().filter(|delta| (delta.diff > 0) == adds) {
                let ViewRow { view, group, id, value } = row.clone();
                let Some(table) = state.tables.get_mut(usize::from(view)) else { continue };
                let key = (group, id);
                if *diff > 0 {
                    table.by_value.insert((Reverse(value), key.clone()));
                    table.by_group.insert(key, value);
                } else {
                    table.by_group.remove(&key);
                    table.by_value.remove(&(Reverse(value), key));
                }
            }
        }
    }

    /// The number of rows of each view, at the end of an epoch.
    pub fn lengths(&self) -> (Epoch, Vec<usize>) {
        let state = self.state.lock();
        (state.epoch, state.tables.iter().map(|table| table.by_group.len()).collect())
    }

    /// At most `limit` rows of a view, after the first `offset` ones; `None` if there is no such view.
    pub fn page(&self, view: usize, order: RowOrder, offset: usize, limit: usize) -> Option<TablePage> {
        let state = self.state.lock();
        let table = state.tables.get(view)?;
        let rows = match order {
            RowOrder::Group => {
                let rows = table.by_group.iter().skip(offset).take(limit);
                rows.map(|(key, value)| (key.clone(), *value)).collect()
            }
            RowOrder::Value => {
                let rows = table.by_value.iter().skip(offset).take(limit);
                rows.map(|(value, key)| (key.clone(), value.0)).collect()
            }
        };
        Some(TablePage { epoch: state.epoch, total: table.by_group.len(), rows })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::views::{ViewKind, ViewMeasure};

    #[test]
    fn rows_are_paged_in_both_orders() {
        let plan = ViewPlan {
            name: "v".into(),
            kind: ViewKind::Documents,
            group: Vec::new(),
            measure: ViewMeasure::Count,
        };
        let tables = ViewTables::new([plan].into());
        let delta = |group: &str, value, diff| {
            let group = Group::new([group]);
            ViewDelta { row: ViewRow { view: 0, group, id: None, value }, diff }
        };
        tables.apply(1, &[delta("a", 4, 1), delta("b", 7, 1), delta("c", 4, 1)]);
        // A value that falls is added before it is removed.
        tables.apply(2, &[delta("b", 5, 1), delta("b", 7, -1), delta("c", 4, -1)]);
        let rows = |order, offset, limit| {
            let page = tables.page(0, order, offset, limit).unwrap();
            assert_eq!((page.epoch, page.total), (2, 2));
            page.rows
                .into_iter()
                .map(|((group, _), value)| (group.get(0).to_owned(), value))
                .collect::<Vec<_>>()
        };
        let (a, b) = (("a".to_owned(), 4), ("b".to_owned(), 5));
        assert_eq!(rows(RowOrder::Group, 0, 10), [a.clone(), b.clone()]);
        assert_eq!(rows(RowOrder::Value, 0, 10), [b, a.clone()]);
        assert_eq!(rows(RowOrder::Value, 1, 1), [a]);
        assert_eq!((tables.lengths(), tables.page(1, RowOrder::Group, 0, 1)), ((2, vec![2]), None));
    }
}
