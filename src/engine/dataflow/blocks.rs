//! Blocks: sketches that share a block become candidates. Blocks are partitioned by key; each worker keeps
//! its own in a [`BlockIndex`].
//!
//! Before the run is live nothing depends on the epoch in which a pair begins, and an index changes faster by
//! a large batch. So postings of sketches that begin are [gathered](Gathered), over epochs.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::rc::Rc;

use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::Capability;
use timely::scheduling::Activator;

use super::operator::epochs::Stash;
use super::operator::{Frontiers, Operator};
use super::queries::{AnswerPart, PartialAnswer, Probe, QueryComparison};
use super::stages::Stages;
use crate::dataflow::sketches::by_place::{SketchesByPlace, source_of_blocks};
use crate::dataflow::sketches::parcels::{Parcel, common_bits};
use crate::dataflow::sketches::store::Sketches;
use dupflow_core::block::HotChange;
use dupflow_core::block::index::{BlockIndex, SketchHead};
use dupflow_core::hash::SketchId;
use dupflow_core::pair::Pair;
use dupflow_core::time::Epoch;
use dupflow_run::metrics::Counter;

/// The blocks of a worker.
type WorkerBlocks = BlockIndex<SketchesByPlace>;

/// A candidate pair: two sketches, and by how much the number of their shared blocks changes.
#[derive(Clone, Copy, Debug, Serialize, Deserialize)]
pub(super) struct Candidate {
    pub(super) pair: Pair<SketchId>,
    pub(super) diff: isize,
}

/// The outputs of [`blocks`].
pub(super) struct BlocksOutputs<'scope> {
    /// Changes of candidates, at their epochs.
    pub(super) candidates: Stream<'scope, Epoch, Vec<Candidate>>,
    /// Comparisons that queries ask for, on the way to the owners of the candidates' sketches.
    pub(super) comparisons: Stream<'scope, Epoch, Vec<QueryComparison>>,
    pub(super) partial_answers: Stream<'scope, Epoch, Vec<PartialAnswer>>,
}

/// Keys that are gathered before they are applied, at least: 30,000 sketches of 18 keys, 4 MB.
const GATHERED_KEYS: usize = if cfg!(debug_assertions) { 1 << 8 } else { 1 << 19 };

/// Beyond the plan, or without one, at most one of so many blocks is gathered: blocks are larger then, and
/// the candidates of each key are emitted in pieces.
const GATHERED_PART: usize = 4;

/// Most sketches of a worker up to which all are gathered: as many as the index sorts together. Few in tests,
/// so that postings are applied at several epochs.
const MOST_PLANNED: u64 = if cfg!(debug_assertions) { 1 << 4 } else { 1 << 24 };

/// The postings of epochs before the run is live, of sketches that begin. The index keeps them, and applies
/// them together: when they are many, before a sketch ends, and when the run is live.
struct Gathered {
    keys: usize,
    /// The capability to emit their candidates, held at the newest closed epoch so that open epochs are not
    /// delayed.
    held: Option<Capability<Epoch>>,
    /// Keys up to which all are gathered: as many as a worker has where the plan is met. They take hardly
    /// more memory than the blocks will. `None` under a memory budget: no more is gathered than at least.
    planned: Option<usize>,
}

impl Gathered {
    /// Nothing, on one of `peers` workers.
    fn new(stages: &Stages, peers: usize) -> Self {
        // Where no block is ever hot there is no plan.
        let sketches = if stages.planned == u64::MAX { 0 } else { stages.planned / peers as u64 };
        let keys = sketches.min(MOST_PLANNED) * stages.blocking.tables() as u64;
        let planned = stages.spill.is_none().then(|| usize::try_from(keys).unwrap_or(usize::MAX));
        Self { keys: 0, held: None, planned }
    }

    /// Adds the postings of a closed epoch, if all their sketches begin; else returns them.
    fn add(
        &mut self,
        capability: &Capability<Epoch>,
        parcels: Vec<Parcel>,
        index: &mut WorkerBlocks,
    ) -> Option<Vec<Parcel>> {
        if !parcels.iter().all(|parcel| parcel.postings.only_begin()) {
            return Some(parcels);
        }
        for Parcel { postings, .. } in parcels {
            self.keys += postings.len();
            index.gather(postings);
        }
        self.held = Some(capability.clone());
        None
    }

    fn is_full(&self, index: &WorkerBlocks) -> bool {
        let blocks = index.blocks();
        let most =
            self.planned.map_or(0, |planned| planned.saturating_sub(blocks).max(blocks / GATHERED_PART));
        self.keys >= most.max(GATHERED_KEYS)
    }

    /// The right to apply all, if they are due and there are any.
    fn take_if(&mut self, are_due: bool) -> Option<Capability<Epoch>> {
        if !are_due {
            return None;
        }
        self.keys = 0;
        self.held.take()
    }

    /// Lets epochs close that precede the first open one by two or more. The open one may be the first that
    /// is live, although this process does not know yet.
    fn follow(&mut self, frontiers: &Frontiers) {
        let open = frontiers[0].frontier().first().copied();
        if let Some((held, open)) = self.held.as_mut().zip(open)
            && *held.time() + 1 < open
        {
            held.downgrade(&(open - 1));
        }
    }
}

/// Keeps the blocks, emits changes of candidates, and answers the probes of queries. `sketches` are those
/// that this worker owns. `at_live` receives what schedules the operator once the run is live.
pub(super) fn blocks<'scope>(
    postings: Stream<'scope, Epoch, Vec<Parcel>>,
    probes: Stream<'scope, Epoch, Vec<Probe>>,
    sketches: Rc<RefCell<Sketches>>,
    stages: &Stages,
    at_live: &Cell<Option<Activator>>,
) -> BlocksOutputs<'scope> {
    let scope = postings.scope();
    let (worker, peers) = (scope.index() as u64, scope.peers() as u64);
    let source = source_of_blocks(sketches, stages, scope.index(), scope.peers());
    let mut index = BlockIndex::beside(&*stages.blocking, source, common_bits(scope.peers()));
    let stages = stages.clone();

    let mut operator = Operator::new("Blocks", scope);
    let mut postings = operator.input(postings, Exchange::new(|p: &Parcel| p.to));
    let mut probes = operator.input(probes, Exchange::new(|g: &Probe| g.to));
    let (mut candidates, candidates_stream) = operator.output();
    let (mut comparisons, comparisons_stream) = operator.output();
    let (mut partial_answers, partial_answers_stream) = operator.output();
    let mut stash = Stash::<Parcel>::new();
    let mut probing = Stash::<Probe>::new();
    // Of pairs that have to share several blocks all workers report these in one epoch.
    let gathers = stages.blocking.least() <= 1;
    let mut gathered = Gathered::new(&stages, scope.peers());
    at_live.set(Some(operator.activator()));
    operator.build(move |frontiers| {
        postings.for_each_time(|time, data| stash.keep(&time, 1, data));
        probes.for_each_time(|time, data| probing.keep(&time, 3, data));
        let mut apply = |blocks: &mut WorkerBlocks, capability, parcels| {
            let mut candidates = candidates.with(capability);
            apply(blocks, parcels, &stages, |candidate| candidates.give(candidate));
        };
        // Before a probe reads the blocks.
        let is_live = stages.start.live.get().is_some() || frontiers[0].is_empty();
        if let Some(held) = gathered.take_if(is_live) {
            apply(&mut index, held, Vec::new());
        }
        loop {
            // Before an epoch is applied, the probes of its time are answered: they read the blocks as the
            // epoch before has left them.
            while let Some((capabilities, present)) = probing.next_begun(&frontiers[..1], &stash) {
                let mut comparisons = comparisons.at(&capabilities);
                let mut partial_answers = partial_answers.at(&capabilities);
                for probe in present {
                    let query_id = probe.query.query_id;
                    let sent = answer_probe(&index, &stages, probe, worker, peers);
                    let part = AnswerPart::Compared(sent.len());
                    partial_answers.give(PartialAnswer { query_id, part });
                    comparisons.give_all(sent);
                }
            }
            let Some((mut capabilities, parcels)) = stash.next_closed(frontiers) else { break };
            let capability = capabilities.swap_remove(0);
            let parcels = if is_live || !gathers {
                Some(parcels)
            } else {
                gathered.add(&capability, parcels, &mut index)
            };
            if let Some(held) = gathered.take_if(parcels.is_some() || gathered.is_full(&index)) {
                apply(&mut index, held, Vec::new());
            }
            if let Some(parcels) = parcels {
                apply(&mut index, capability, parcels);
            }
        }
        gathered.follow(frontiers);
    });
    BlocksOutputs {
        candidates: candidates_stream,
        comparisons: comparisons_stream,
        partial_answers: partial_answers_stream,
    }
}

/// Applies the postings of an epoch to the blocks.
fn apply(index: &mut WorkerBlocks, parcels: Vec<Parcel>, stages: &Stages, mut emit: impl FnMut(Candidate)) {
    let (mut candidates, mut rejected) = (0, 0);
    let worth = |x, y, diff| {
        let worth = stages.filter.first_word(x, y);
        if diff > 0 {
            candidates += 1;
            rejected += u64::from(!worth);
        }
        worth
    };
    let sent = parcels.into_iter().map(|parcel| parcel.postings);
    index.apply(sent, worth, |pair, diff| emit(Candidate { pair, diff }));

    let ended_by_words = index.take_ended_by_words();
    let mut changed = index.hot_blocks().peekable();
    if changed.peek().is_some() {
        let (mut heated, mut cooled) = (0, 0);
        let mut hot_blocks = stages.observers.hot_blocks.lock();
        changed.for_each(|(place, hot)| match hot {
            HotChange::Hot(block) => heated += u64::from(hot_blocks.put(place, block)),
            HotChange::Size(sketches) => hot_blocks.resize(&place, sketches),
            HotChange::Cooled => cooled += u64::from(hot_blocks.remove(&place)),
        });
        drop(hot_blocks);
        stages.observers.metrics.add(Counter::Heated, heated);
        stages.observers.metrics.add(Counter::Cooled, cooled);
    }
    stages.observers.metrics.add(Counter::Candidates, candidates);
    stages.observers.metrics.add(Counter::RejectedAtFirstWord, rejected);
    stages.observers.metrics.add(Counter::RejectedInBlocks, ended_by_words);
}

/// Answers a probe from the blocks of this worker: the comparisons to be made, by owner of the candidates.
fn answer_probe(
    index: &WorkerBlocks,
    stages: &Stages,
    probe: Probe,
    worker: u64,
    peers: u64,
) -> Vec<QueryComparison> {
    let Probe { query, keys, .. } = probe;
    let owner = |id: SketchId| id.low() % peers;
    let mut by_owner: BTreeMap<u64, Vec<SketchId>> = BTreeMap::new();
    let mut add = |id: SketchId| by_owner.entry(owner(id)).or_default().push(id);
    if owner(query.id) == worker {
        add(query.id);
    }
    let worth = |a, b| stages.filter.first_word(a, b);
    let realm = stages.blocking.realm(query.sketch.view());
    index.visit(&keys, SketchHead { id: query.id, word: query.sketch.words[0], realm }, worth, add);
    let comparison = |(to, candidates)| QueryComparison { to, query: query.clone(), candidates };
    by_owner.into_iter().map(comparison).collect()
}
