//! Operators: the helper by which all operators of the dataflow are built.
//!
//! A name, inputs and outputs -> an operator that timely schedules. An [`Output`] knows its port, so it finds
//! its capability among those of an epoch, and a [`Sender`] sends what is left when it is dropped.
//!
//! ```text
//! let mut operator = Operator::new("Double", numbers.scope());
//! let mut numbers = operator.input(numbers, Pipeline);
//! let (mut doubled, stream) = operator.output();
//! let mut stash = Stash::<u64>::new();
//! operator.build(move |frontiers| {
//!     numbers.for_each_time(|time, data| stash.keep(&time, 1, data));
//!     while let Some((capabilities, records)) = stash.next_closed(frontiers) {
//!         doubled.at(&capabilities).give_all(records.into_iter().map(|n| 2 * n));
//!     }
//! });
//! ```

use timely::container::{CapacityContainerBuilder, ContainerBuilder, PushInto};
use timely::dataflow::channels::pact::ParallelizationContract;
use timely::dataflow::channels::pushers;
use timely::dataflow::operators::generic::InputHandleCore;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::dataflow::operators::{Capability, InputCapability};
use timely::dataflow::{Scope, Stream};
use timely::progress::frontier::MutableAntichain;
use timely::scheduling::Activator;

use dupflow_core::time::Epoch;

/// The frontiers of an operator's inputs, in the order in which the inputs were added.
pub(in crate::dataflow) type Frontiers = [MutableAntichain<Epoch>];

/// An operator that is being built.
pub(in crate::dataflow) struct Operator<'scope> {
    builder: OperatorBuilder<'scope, Epoch>,
    scope: Scope<'scope, Epoch>,
    outputs: usize,
}

/// An output of an operator.
pub(in crate::dataflow) struct Output<D: 'static> {
    port: usize,
    pusher: pushers::Output<Epoch, Vec<D>>,
    builder: CapacityContainerBuilder<Vec<D>>,
}

/// Sends records of one time over an output.
pub(in crate::dataflow) struct Sender<'a, D: 'static> {
    session: pushers::OutputSession<'a, Epoch, Vec<D>>,
    builder: &'a mut CapacityContainerBuilder<Vec<D>>,
    capability: Capability<Epoch>,
}

impl<'scope> Operator<'scope> {
    /// An operator without inputs and outputs.
    pub(in crate::dataflow) fn new(name: &str, scope: Scope<'scope, Epoch>) -> Self {
        Self { builder: OperatorBuilder::new(name.to_owned(), scope), scope, outputs: 0 }
    }

    /// Adds an input; `pact` says which worker receives a record.
    pub(in crate::dataflow) fn input<D: 'static, P: ParallelizationContract<Epoch, Vec<D>>>(
        &mut self,
        stream: Stream<'scope, Epoch, Vec<D>>,
        pact: P,
    ) -> InputHandleCore<Epoch, Vec<D>, P::Puller> {
        self.builder.new_input(stream, pact)
    }

    /// Adds an output. Its port is the number of outputs before it.
    pub(in crate::dataflow) fn output<D: 'static>(&mut self) -> (Output<D>, Stream<'scope, Epoch, Vec<D>>) {
        let (pusher, stream) = self.builder.new_output();
        let output = Output { port: self.outputs, pusher, builder: CapacityContainerBuilder::default() };
        self.outputs += 1;
        (output, stream)
    }

    /// Schedules the operator again when it is called on this worker.
    pub(in crate::dataflow) fn activator(&self) -> Activator {
        self.scope.activator_for(self.builder.operator_info().address)
    }

    /// A function for other threads that schedules the operator again.
    pub(in crate::dataflow) fn waker(&self) -> Box<dyn Fn() + Send> {
        let address = self.builder.operator_info().address;
        let activator = self.scope.worker().sync_activator_for(address.to_vec());
        // A worker that has ended need not be woken.
        Box::new(move || activator.activate().unwrap_or(()))
    }

    /// Ends the building. `logic` runs whenever an input has records or a frontier has changed.
    pub(in crate::dataflow) fn build(self, mut logic: impl FnMut(&Frontiers) + 'static) {
        self.builder.build(|_| move |frontiers| logic(frontiers));
    }

    /// Ends the building of an operator without inputs. `logic` receives the capabilities of its outputs, by
    /// port, and keeps those that it needs.
    pub(in crate::dataflow) fn build_source(
        self,
        mut logic: impl FnMut(&mut Vec<Capability<Epoch>>) + 'static,
    ) {
        self.builder.build(|mut capabilities| move |_| logic(&mut capabilities));
    }
}

impl<D> Output<D> {
    /// Sends at the time of `capabilities`, which are by port.
    pub(in crate::dataflow) fn at(&mut self, capabilities: &[Capability<Epoch>]) -> Sender<'_, D> {
        let capability = capabilities[self.port].clone();
        self.with(capability)
    }

    /// Sends at the time of records that an input is receiving.
    pub(in crate::dataflow) fn at_time(&mut self, time: &InputCapability<Epoch>) -> Sender<'_, D> {
        self.with(time.retain(self.port))
    }

    /// Sends at the time of a capability for this output.
    pub(in crate::dataflow) fn with(&mut self, capability: Capability<Epoch>) -> Sender<'_, D> {
        Sender { session: self.pusher.activate(), builder: &mut self.builder, capability }
    }
}

impl<D> Sender<'_, D> {
    /// Sends a record, together with others.
    pub(in crate::dataflow) fn give(&mut self, record: D) {
        self.builder.push_into(record);
        self.send_full();
    }

    /// Sends all records of an iterator.
    pub(in crate::dataflow) fn give_all(&mut self, records: impl IntoIterator<Item = D>) {
        records.into_iter().for_each(|record| self.builder.push_into(record));
        self.send_full();
    }

    fn send_full(&mut self) {
        while let Some(container) = self.builder.extract() {
            self.session.give(&self.capability, container);
        }
    }
}

impl<D> Drop for Sender<'_, D> {
    fn drop(&mut self) {
        while let Some(container) = self.builder.finish() {
            self.session.give(&self.capability, container);
        }
    }
}
