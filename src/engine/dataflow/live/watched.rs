//! Watched: the terms of the watches, and their sketches by the table in force.
//!
//! Every worker holds all of them. They are sketched when they change, and again by every table; they count
//! for no table.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use crate::dataflow::watches::{WatchContent, WatchUpdate};
use dupflow_core::doc::DocId;
use dupflow_core::sketch::SketchMaker;
use dupflow_core::text::IdfTable;

/// The watches of one worker, by id.
#[derive(Default)]
pub(super) struct WatchedTerms {
    /// Without the watches that have ended or have no term.
    in_force: BTreeMap<DocId, WatchUpdate>,
    /// Watches that the epoch changed.
    touched: BTreeMap<DocId, WatchUpdate>,
}

impl WatchedTerms {
    /// Applies a change; of several changes of a watch in an epoch that of the greatest number counts.
    pub(super) fn apply(&mut self, update: WatchUpdate) {
        let known = self.touched.get(&update.watch).map_or(0, |known| known.number);
        if known <= update.number {
            self.touched.insert(update.watch.clone(), update);
        }
    }

    /// Sketches the watches that the epoch changed, or all of them.
    pub(super) fn sketch(
        &mut self,
        all: bool,
        maker: &mut SketchMaker,
        table: &Arc<IdfTable>,
        mut emit: impl FnMut(WatchUpdate),
    ) {
        let touched = std::mem::take(&mut self.touched);
        let mut again: BTreeSet<DocId> = touched.keys().cloned().collect();
        for (watch, update) in touched {
            if let WatchContent::Terms(_) = update.content {
                self.in_force.insert(watch, update);
            } else {
                self.in_force.remove(&watch);
                again.remove(&watch);
                emit(update);
            }
        }
        for (watch, update) in &self.in_force {
            let WatchContent::Terms(terms) = &update.content else { continue };
            if all || again.contains(watch) {
                let content = maker
                    .sketch_terms(terms, table, &[])
                    .map_or(WatchContent::Nothing, |(id, sketch)| WatchContent::Sketch(id, Box::new(sketch)));
                emit(WatchUpdate { content, watch: watch.clone(), ..*update });
            }
        }
    }
}
