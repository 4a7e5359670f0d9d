//! Epochs inside an operator: the records of an open epoch are stored, and handled together when it closes.

use std::collections::BTreeMap;

use timely::dataflow::Stream;
use timely::dataflow::channels::pact::ParallelizationContract;
use timely::dataflow::operators::{Capability, InputCapability};

use super::builder::{Frontiers, Operator};
use dupflow_core::time::Epoch;

/// The records of open epochs, with the capabilities to send at their times.
pub(in crate::dataflow) struct Stash<D> {
    open: BTreeMap<Epoch, (Vec<Capability<Epoch>>, Vec<D>)>,
}

impl<D> Stash<D> {
    pub(in crate::dataflow) fn new() -> Self {
        Self { open: BTreeMap::new() }
    }

    /// Stores records, with the capability for each of `outputs` outputs.
    pub(in crate::dataflow) fn keep<'a, R: Into<D> + 'a>(
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

    /// The first epoch with records.
    pub(in crate::dataflow) fn first(&self) -> Option<Epoch> {
        self.open.first_key_value().map(|(epoch, _)| *epoch)
    }

    /// Takes the first epoch out, if no input can receive more records of it.
    pub(in crate::dataflow) fn next_closed(
        &mut self,
        frontiers: &Frontiers,
    ) -> Option<(Vec<Capability<Epoch>>, Vec<D>)> {
        let first = self.open.first_entry()?;
        frontiers.iter().all(|frontier| !frontier.less_equal(first.key())).then(|| first.remove())
    }

    /// Takes the first epoch out, if it may begin: no input with these frontiers can receive records of an
    /// earlier epoch, and `before` has none. For records that must read the state of an operator as the
    /// earlier epochs leave it.
    pub(in crate::dataflow) fn next_begun<D2>(
        &mut self,
        frontiers: &Frontiers,
        before: &Stash<D2>,
    ) -> Option<(Vec<Capability<Epoch>>, Vec<D>)> {
        let first = self.open.first_entry()?;
        let is_first = before.open.first_key_value().is_none_or(|(epoch, _)| epoch >= first.key());
        let is_begun = frontiers.iter().all(|frontier| !frontier.less_than(first.key()));
        (is_first && is_begun).then(|| first.remove())
    }
}

/// Handles the records of each epoch together, in order of epochs, once the epoch is closed. `logic` receives
/// the epoch, its records and a function that emits.
pub(in crate::dataflow) fn by_epoch<'scope, D: 'static, D2: 'static, P, L>(
    stream: Stream<'scope, Epoch, Vec<D>>,
    pact: P,
    name: &str,
    mut logic: L,
) -> Stream<'scope, Epoch, Vec<D2>>
where
    P: ParallelizationContract<Epoch, Vec<D>>,
    L: FnMut(Epoch, Vec<D>, &mut dyn FnMut(D2)) + 'static,
{
    let mut operator = Operator::new(name, stream.scope());
    let mut input = operator.input(stream, pact);
    let (mut output, results) = operator.output();
    let mut stash = Stash::<D>::new();
    operator.build(move |frontiers| {
        input.for_each_time(|time, data| stash.keep(&time, 1, data));
        while let Some((capabilities, records)) = stash.next_closed(frontiers) {
            let mut output = output.at(&capabilities);
            logic(*capabilities[0].time(), records, &mut |record| output.give(record));
        }
    });
    results
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::rc::Rc;

    use timely::dataflow::channels::pact::Pipeline;
    use timely::dataflow::operators::vec::Input;
    use timely::dataflow::operators::{Inspect, Probe};

    use super::*;

    /// The input or the output of an operator, by epoch.
    type SeenEpochs = Rc<RefCell<Vec<(Epoch, Vec<u32>)>>>;

    /// Runs `script` on the input of an operator that sorts each epoch's records. Each step returns what has
    /// been handled so far.
    fn handled(
        script: impl Fn(&mut dyn FnMut(ScriptStep) -> Vec<(Epoch, Vec<u32>)>) + Send + Sync + 'static,
    ) {
        timely::execute_directly(move |worker| {
            let (records_in, records_out) = (SeenEpochs::default(), SeenEpochs::default());
            let (seen, out) = (Rc::clone(&records_in), Rc::clone(&records_out));
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
                    ScriptStep::Send(records) => input.send_batch(&mut records.to_vec()),
                    ScriptStep::Advance(epoch) => input.advance_to(epoch),
                }
                input.flush();
                // Enough steps for one operator on one worker to process everything.
                (0..10).for_each(|_| {
                    worker.step();
                });
                assert_eq!(
                    *records_in.borrow(),
                    *records_out.borrow(),
                    "the output of an epoch is at its time"
                );
                assert!(records_out.borrow().iter().all(|(epoch, _)| !probe.less_equal(epoch)));
                records_in.borrow().clone()
            });
        });
    }

    enum ScriptStep {
        Send(&'static [u32]),
        Advance(Epoch),
    }

    #[test]
    fn an_epoch_is_handled_once_and_whole_when_no_more_of_it_can_come() {
        handled(|step| {
            assert_eq!(step(ScriptStep::Advance(1)), []);
            assert_eq!(step(ScriptStep::Send(&[3, 1])), [], "epoch 1 is open");
            assert_eq!(step(ScriptStep::Send(&[2])), []);
            assert_eq!(step(ScriptStep::Advance(2)), [(1, vec![1, 2, 3])]);
            assert_eq!(step(ScriptStep::Send(&[9])), [(1, vec![1, 2, 3])]);
            assert_eq!(step(ScriptStep::Advance(1_000_000)), [(1, vec![1, 2, 3]), (2, vec![9])]);
        });
    }

    #[test]
    fn an_epoch_without_records_is_passed_over() {
        handled(|step| {
            step(ScriptStep::Send(&[7]));
            let both = [(0, vec![7]), (5, vec![8])];
            assert_eq!(step(ScriptStep::Advance(5)), both[..1]);
            assert_eq!(step(ScriptStep::Send(&[8])), both[..1]);
            assert_eq!(step(ScriptStep::Advance(6)), both);
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
                let mut operator = Operator::new("Both", scope);
                let mut first = operator.input(first, Pipeline);
                let mut second = operator.input(second, Pipeline);
                let (_, _) = operator.output::<()>();
                let mut stash = Stash::<u32>::new();
                operator.build(move |frontiers| {
                    first.for_each_time(|time, data| stash.keep(&time, 1, data));
                    second.for_each_time(|time, data| stash.keep(&time, 1, data));
                    while let Some((capabilities, mut records)) = stash.next_closed(frontiers) {
                        records.sort_unstable();
                        seen.borrow_mut().push((*capabilities[0].time(), records));
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
