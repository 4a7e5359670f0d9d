//! Epochs inside an operator: the records of an open epoch are kept, and handled together when it closes.

use std::collections::BTreeMap;

use timely::dataflow::Stream;
use timely::dataflow::channels::pact::ParallelizationContract;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::{Capability, InputCapability};
use timely::progress::frontier::MutableAntichain;

use crate::time::Epoch;

/// The records of epochs that are still open, with the right to answer at their times.
pub(super) struct Stash<D> {
    open: BTreeMap<Epoch, (Vec<Capability<Epoch>>, Vec<D>)>,
}

impl<D> Stash<D> {
    pub(super) fn new() -> Self {
        Self { open: BTreeMap::new() }
    }

    /// Keeps records, with the capability for each of `outputs` outputs.
    pub(super) fn keep<'a, R: Into<D> + 'a>(
        &mut self,
        time: &InputCapability<Epoch>,
        outputs: usize,
        data: impl Iterator<Item = &'a mut Vec<R>>,
    ) {
        let capabilities = || (0..outputs).map(|o| time.retain(o)).collect();
        let (_, records) = self.open.entry(*time.time()).or_insert_with(|| (capabilities(), Vec::new()));
        for container in data {
            records.extend(container.drain(..).map(Into::into));
        }
    }

    /// The next epoch, in order, of which no input can bring more records.
    pub(super) fn next_closed(
        &mut self,
        frontiers: &[MutableAntichain<Epoch>],
    ) -> Option<(Vec<Capability<Epoch>>, Vec<D>)> {
        let first = self.open.first_entry()?;
        frontiers.iter().all(|frontier| !frontier.less_equal(first.key())).then(|| first.remove())
    }
}

/// Handles the records of each epoch together, in order of epochs, once no more can come: the shape of the operators
/// written by hand. `logic` gets the epoch, its records and where to put its output.
pub(super) fn by_epoch<'scope, D: 'static, D2: 'static, P, L>(
    stream: Stream<'scope, Epoch, Vec<D>>,
    pact: P,
    name: &str,
    mut logic: L,
) -> Stream<'scope, Epoch, Vec<D2>>
where
    P: ParallelizationContract<Epoch, Vec<D>>,
    L: FnMut(Epoch, Vec<D>, &mut dyn FnMut(D2)) + 'static,
    Vec<D>: timely::Container,
    Vec<D2>: timely::Container,
{
    stream.unary_frontier(pact, name, move |_, _| {
        let mut stash = Stash::<D>::new();
        move |(input, frontier), output| {
            input.for_each_time(|time, data| stash.keep(&time, 1, data));
            while let Some((capabilities, records)) = stash.next_closed(std::slice::from_ref(frontier)) {
                let mut session = output.session(&capabilities[0]);
                logic(*capabilities[0].time(), records, &mut |record| session.give(record));
            }
        }
    })
}
