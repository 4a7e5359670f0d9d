//! The dataflow: events in, pair deltas out. This is the one folder that sees timely and differential.
//!
//! ```text
//! events ─ ingest ─ upsert ─ collapse ─┬─ postings ─ blocks ─ verify ─ accepted pairs of sketches ─┐
//!          (sketch)  (by id)  (by       ├─ members ────────────────────────────────────── expand ──┴─┬─ output
//!                             sketch)   └─ pairs of copies ───────────────────────────────────────────┘
//! ```
//!
//! Time is the epoch. Operators up to `verify` are written by hand over totally ordered time: each keeps the records of an
//! open epoch and handles them together when the epoch closes (`by_epoch`), so that its output is a function of the
//! corpus before and after the epoch. What is indexed is the distinct sketch, named by its content; documents are its
//! members. From the accepted pairs on, differential collections carry the changes.

mod blocks;
mod collapse;
mod ingest;
mod live;
mod output;
mod pairs;
mod sketches;
mod upsert;
mod verify;
mod workers;

use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use serde::{Deserialize, Serialize};
use timely::dataflow::channels::pact::ParallelizationContract;
use timely::dataflow::operators::generic::operator::Operator;
use timely::dataflow::operators::{Capability, InputCapability};
use timely::dataflow::{Scope, Stream};
use timely::progress::frontier::MutableAntichain;

pub use ingest::{Intake, Pull};
pub use output::Emit;
pub use workers::Workers;

use crate::block::index::DeadBlock;
use crate::block::{BlockKey, Blocking};
use crate::filter::PairFilter;
use crate::metrics::Metrics;
use crate::pair::{Evidence, Similarity};
use crate::sketch::Scheme;
use crate::time::Epoch;

/// What the dataflow computes: everything that decides the result, and where it is counted.
#[derive(Clone, Debug)]
pub struct Stages {
    /// Text to sketch.
    pub scheme: Scheme,
    /// Sketch to blocks.
    pub blocking: Arc<dyn Blocking>,
    /// Candidate pair to verdict.
    pub filter: Arc<dyn PairFilter>,
    /// Most copies of one sketch that are expanded to pairs, inclusive; larger groups become stars.
    pub expand_limit: usize,
    /// Whether pairs carry their evidence; if not, it is zero, and no part of a pair's identity.
    pub evidence: bool,
    /// Where it is counted.
    pub metrics: Arc<Metrics>,
    /// The dead blocks of all workers, kept current; their documents are named when the input has ended.
    pub dead_blocks: Arc<Mutex<BTreeMap<BlockKey, DeadBlock>>>,
}

impl Stages {
    /// The dead blocks of all workers.
    pub fn dead_blocks(&self) -> MutexGuard<'_, BTreeMap<BlockKey, DeadBlock>> {
        // A worker that panicked while it held the lock has left a map that is still a map.
        self.dead_blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An accepted pair of sketches: the similarity and its evidence, pure functions of the two.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
struct Accepted {
    similarity: Similarity,
    evidence: Evidence,
}

/// A collection's changes: what, when, how often.
type Deltas<'scope, D> = Stream<'scope, Epoch, Vec<(D, Epoch, isize)>>;

/// Builds one worker's share of the dataflow. `intake` gives this worker events; `emit` takes the deltas of each closed
/// epoch, on worker 0 only.
pub fn build(scope: Scope<'_, Epoch>, stages: &Stages, intake: Box<dyn Intake>, emit: Box<dyn Emit>) {
    let closed = Rc::default();

    let (arrivals, wake) = ingest::ingest(scope, stages, intake, Rc::clone(&closed));
    let memberships = match stages.scheme.live() {
        None => upsert::upsert(arrivals, stages),
        Some(growth) => live::live(arrivals, growth, stages),
    };
    let (bodies, collapsed) = collapse::collapse(memberships, stages);
    let meetings = blocks::blocks(collapsed.postings, stages);
    let accepted = verify::verify(meetings, bodies, stages);
    let expanded = pairs::expand(accepted, collapsed.members);
    output::output(expanded, collapsed.copies, stages, emit, closed, wake);
}

/// The records of epochs that are still open, with the right to answer at their times.
struct Stash<D> {
    open: BTreeMap<Epoch, (Vec<Capability<Epoch>>, Vec<D>)>,
}

impl<D> Stash<D> {
    fn new() -> Self {
        Self { open: BTreeMap::new() }
    }

    /// Keeps records, with the capability for each of `outputs` outputs.
    fn keep<'a, R: Into<D> + 'a>(
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
    fn next_closed(
        &mut self,
        frontiers: &[MutableAntichain<Epoch>],
    ) -> Option<(Vec<Capability<Epoch>>, Vec<D>)> {
        let first = self.open.first_entry()?;
        frontiers.iter().all(|frontier| !frontier.less_equal(first.key())).then(|| first.remove())
    }
}

/// Handles the records of each epoch together, in order of epochs, once no more can come: the shape of the operators
/// written by hand. `logic` gets the epoch, its records and where to put its output.
fn by_epoch<'scope, D: 'static, D2: 'static, P, L>(
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
