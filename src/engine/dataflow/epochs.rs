//! Epochs inside an operator: the records of an open epoch are kept, and handled together when it closes.

use std::collections::BTreeMap;

use timely::dataflow::Stream;
use timely::dataflow::channels::pact::ParallelizationContract;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::{Capability, InputCapability};
use timely::progress::frontier::MutableAntichain;

use dupflow_core::time::Epoch;

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

    /// The first epoch of which there are records.
    pub(super) fn first(&self) -> Option<Epoch> {
        self.open.first_key_value().map(|(epoch, _)| *epoch)
    }

    /// The next epoch, in order, of which no input can bring more records.
    pub(super) fn next_closed(
        &mut self,
        frontiers: &[MutableAntichain<Epoch>],
    ) -> Option<(Vec<Capability<Epoch>>, Vec<D>)> {
        let first = self.open.first_entry()?;
        frontiers.iter().all(|frontier| !frontier.less_equal(first.key())).then(|| first.remove())
    }

    /// The next epoch, in order, that may begin: no input with these frontiers brings records of one before
    /// it, and `before` keeps none. For records that are to find what an operator holds as the epochs before
    /// theirs leave it.
    pub(super) fn next_begun<D2>(
        &mut self,
        frontiers: &[MutableAntichain<Epoch>],
        before: &Stash<D2>,
    ) -> Option<(Vec<Capability<Epoch>>, Vec<D>)> {
        let first = self.open.first_entry()?;
        let is_first = before.open.first_key_value().is_none_or(|(epoch, _)| epoch >= first.key());
        let is_begun = frontiers.iter().all(|frontier| !frontier.less_than(first.key()));
        (is_first && is_begun).then(|| first.remove())
    }
}

/// Handles the records of each epoch together, in order of epochs, once no more can come: the shape of the
/// operators written by hand. `logic` gets the epoch, its records and where to put its output.
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

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use timely::container::CapacityContainerBuilder;
    use timely::dataflow::channels::pact::Pipeline;
    use timely::dataflow::operators::vec::Input;
    use timely::dataflow::operators::{Inspect, Probe};

    use super::*;

    /// What an operator by epochs was given, and what left it: each with its epoch.
    type Seen = Rc<RefCell<Vec<(Epoch, Vec<u32>)>>>;

    /// Runs `script` on the input of an operator that sorts each epoch's records, and tells what it has
    /// handled so far.
    fn handled(script: impl Fn(&mut dyn FnMut(Step) -> Vec<(Epoch, Vec<u32>)>) + Send + Sync + 'static) {
        timely::execute_directly(move |worker| {
            let (given, left) = (Seen::default(), Seen::default());
            let (seen, out) = (Rc::clone(&given), Rc::clone(&left));
            let (mut input, probe) = worker.dataflow(|scope| {
                let (input, stream) = scope.new_input::<u32>();
                let sorted = by_epoch(stream, Pipeline, "Sort", move |epoch, mut records, emit| {
                    records.sort_unstable();
                    seen.borrow_mut().push((epoch, records.clone()));
                    records.into_iter().for_each(emit);
                });
                let (probe, _) = sorted
                    .inspect_batch(move |epoch: &Epoch, records: &Vec<u32>| {
                        out.borrow_mut().push((*epoch, records.clone()));
                    })
                    .probe();
                (input, probe)
            });
            script(&mut |step| {
                match step {
                    Step::Send(records) => input.send_batch(&mut records.to_vec()),
                    Step::Advance(epoch) => input.advance_to(epoch),
                }
                input.flush();
                // Enough for everything to come through: one operator, one worker.
                (0..10).for_each(|_| {
                    worker.step();
                });
                assert_eq!(*given.borrow(), *left.borrow(), "what leaves an epoch leaves at its time");
                assert!(left.borrow().iter().all(|(epoch, _)| !probe.less_equal(epoch)));
                given.borrow().clone()
            });
        });
    }

    enum Step {
        Send(&'static [u32]),
        Advance(Epoch),
    }

    #[test]
    fn an_epoch_is_handled_once_and_whole_when_no_more_of_it_can_come() {
        handled(|step| {
            assert_eq!(step(Step::Advance(1)), []);
            assert_eq!(step(Step::Send(&[3, 1])), [], "epoch 1 is open");
            assert_eq!(step(Step::Send(&[2])), []);
            assert_eq!(step(Step::Advance(2)), [(1, vec![1, 2, 3])]);
            assert_eq!(step(Step::Send(&[9])), [(1, vec![1, 2, 3])]);
            assert_eq!(step(Step::Advance(1_000_000)), [(1, vec![1, 2, 3]), (2, vec![9])]);
        });
    }

    #[test]
    fn an_epoch_without_records_is_passed_over() {
        handled(|step| {
            step(Step::Send(&[7]));
            let both = [(0, vec![7]), (5, vec![8])];
            assert_eq!(step(Step::Advance(5)), both[..1]);
            assert_eq!(step(Step::Send(&[8])), both[..1]);
            assert_eq!(step(Step::Advance(6)), both);
        });
    }

    #[test]
    fn epochs_that_close_together_are_taken_in_order_and_those_that_are_open_stay() {
        timely::execute_directly(|worker| {
            let taken = Rc::new(RefCell::new(Vec::new()));
            let seen = Rc::clone(&taken);
            let (mut one, mut two) = worker.dataflow::<Epoch, _, _>(|scope| {
                let (one, first) = scope.new_input::<u32>();
                let (two, second) = scope.new_input::<u32>();
                type None = CapacityContainerBuilder<Vec<()>>;
                first.binary_frontier::<_, None, _, _, _, _>(second, Pipeline, Pipeline, "Both", |_, _| {
                    let mut stash = Stash::<u32>::new();
                    move |(input, frontier), (other, other_frontier), _| {
                        input.for_each_time(|time, data| stash.keep(&time, 1, data));
                        other.for_each_time(|time, data| stash.keep(&time, 1, data));
                        let frontiers = [frontier.clone(), other_frontier.clone()];
                        while let Some((capabilities, mut records)) = stash.next_closed(&frontiers) {
                            records.sort_unstable();
                            seen.borrow_mut().push((*capabilities[0].time(), records));
                        }
                    }
                });
                (one, two)
            });
            for epoch in [1, 2, 3] {
                one.advance_to(epoch);
                one.send(10 * u32::try_from(epoch).unwrap());
                two.advance_to(epoch);
                two.send(10 * u32::try_from(epoch).unwrap() + 1);
            }
            let settle = |runs: &mut timely::worker::Worker| {
                (0..10).for_each(|_| {
                    runs.step();
                });
                taken.borrow_mut().drain(..).collect::<Vec<_>>()
            };
            one.advance_to(9);
            two.flush();
            assert_eq!(
                settle(worker),
                [(1, vec![10, 11]), (2, vec![20, 21])],
                "of 3 the second may have more"
            );
            two.advance_to(4);
            assert_eq!(settle(worker), [(3, vec![30, 31])]);
        });
    }
}
