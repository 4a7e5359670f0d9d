//! Output: the deltas of each closed epoch, consolidated and sorted, in order of epochs, from one worker.

use std::cell::Cell;
use std::rc::Rc;

use differential_dataflow::consolidation::consolidate;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Concat;
use timely::dataflow::operators::generic::operator::Operator;
use timely::scheduling::Activator;

use super::{Deltas, Stages};
use crate::metrics::Counter;
use crate::pair::DocPair;
use crate::time::Epoch;

/// Takes the deltas that leave.
///
/// Contract: called on worker 0, with ascending epochs, at most once for each; the deltas are sorted by (a, b, diff), distinct, and
/// of diff 1 or -1.
pub trait Emit {
    /// The deltas of a closed epoch; not called for an epoch without any.
    fn deltas(&mut self, epoch: Epoch, deltas: &[(DocPair, isize)]);

    /// Every epoch before `open` is closed, on all workers, and its deltas have been given. May be called often.
    fn closed(&mut self, open: Option<Epoch>);
}

/// Gathers all deltas at worker 0. On each worker, `closed` follows the first epoch that is not closed, and `wake` gives the
/// ingest a new look at it.
pub(super) fn output(
    expanded: Deltas<'_, DocPair>,
    copies: Deltas<'_, DocPair>,
    stages: &Stages,
    mut emit: Box<dyn Emit>,
    closed: Rc<Cell<Epoch>>,
    wake: Activator,
) {
    let metrics = std::sync::Arc::clone(&stages.metrics);
    let to_one = Exchange::new(|_: &(DocPair, Epoch, isize)| 0);
    let mut open = std::collections::BTreeMap::<Epoch, Vec<(DocPair, isize)>>::new();
    expanded.concat(copies).sink(to_one, "Output", move |(input, frontier)| {
        input.for_each_time(|_, data| {
            for (pair, epoch, diff) in data.flat_map(|d| d.drain(..)) {
                open.entry(epoch).or_default().push((pair, diff));
            }
        });
        while let Some(first) = open.first_entry().filter(|e| !frontier.less_equal(e.key())) {
            let (epoch, mut deltas) = first.remove_entry();
            consolidate(&mut deltas);
            if !deltas.is_empty() {
                let added = deltas.iter().filter(|(_, diff)| *diff > 0).count();
                metrics.add(Counter::Added, added as u64);
                metrics.add(Counter::Removed, (deltas.len() - added) as u64);
                deltas.sort_unstable_by(|(a, i), (b, j)| (&a.pair, i, a).cmp(&(&b.pair, j, b)));
                emit.deltas(epoch, &deltas);
            }
        }
        let first_open = frontier.frontier().first().copied();
        if closed.replace(first_open.unwrap_or(Epoch::MAX - 64)) != closed.get() {
            wake.activate();
            emit.closed(first_open);
        }
    });
}
