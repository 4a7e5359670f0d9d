//! Verify: the rest of the filter, for candidates that survived their first words. A candidate (x, y) travels
//! to the owner of x, which sends the sketch of x on to the owner of y, where the two are compared: no worker
//! needs all sketches.
//!
//! The verdict is a pure function of the two sketches, and a sketch id names its content. So a retraction is
//! judged anew, with the same outcome, and nothing about past verdicts is kept.

use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;

use differential_dataflow::consolidation::consolidate;
use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;

use super::blocks::Candidate;
use super::epochs::by_epoch;
use super::pairs::Acceptance;
use super::sketches::Sketches;
use super::visitors::{Call, Met, Note, Presence, Said};
use super::{Accepted, Stages};
use dupflow_core::block::Blocking;
use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::pair::{Evidence, Pair, Similarity};
use dupflow_core::run::metrics::Counter;
use dupflow_core::sketch::{Sketch, SketchRef};
use dupflow_core::time::Epoch;

/// Epochs after which all hot blocks are named anew, since members change. Those without a name are named
/// when an epoch ends.
const NAMED_EVERY: Epoch = 32;

/// A sketch on its way to the partners that one worker owns.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Visit {
    /// The worker.
    to: u64,
    x: SketchId,
    sketch: Sketch,
    partners: Vec<(SketchId, isize)>,
}

/// What has been compared.
pub(super) struct Verified<'scope> {
    pub(super) acceptances: Stream<'scope, Epoch, Vec<Acceptance>>,
    /// What visitors have found.
    pub(super) notes: Stream<'scope, Epoch, Vec<Note>>,
}

/// Compares the candidates, and visitors with whom they are called on; `sketches` holds those that this
/// worker owns.
pub(super) fn verify<'scope>(
    meetings: Stream<'scope, Epoch, Vec<Candidate>>,
    calls: Stream<'scope, Epoch, Vec<Call>>,
    sketches: Rc<RefCell<Sketches>>,
    stages: &Stages,
) -> Verified<'scope> {
    let peers = meetings.scope().peers() as u64;
    let owner = move |id: SketchId| id.low() % peers;
    let of_x = Rc::clone(&sketches);

    let least = stages.blocking.least();
    let to_x = Exchange::new(|m: &Candidate| m.pair.lo().low());
    let visits = by_epoch(meetings, to_x, "Visit", move |_, meetings, emit| {
        // Workers report the blocks that they own; what is left after adding up is a candidate that came or
        // went.
        let mut changes: Vec<_> = meetings
            .into_iter()
            .map(|m| ((*m.pair.lo(), owner(*m.pair.hi()), *m.pair.hi()), m.diff))
            .collect();
        consolidate(&mut changes);
        // A sketch comes or goes once in an epoch, so where no block is ever hot this is what the two share.
        changes.retain(|(_, diff)| diff.unsigned_abs() >= least);
        for group in changes.chunk_by(|((x, to, _), _), ((x2, to2, _), _)| (x, to) == (x2, to2)) {
            let (x, to, _) = group[0].0;
            let sketch = of_x.borrow().get(x).to_owned();
            let partners = group.iter().map(|((_, _, y), diff)| (*y, *diff)).collect();
            emit(Visit { to, x, sketch, partners });
        }
    });

    let stages = stages.clone();
    let mut builder = OperatorBuilder::new("Compare".to_owned(), visits.scope());
    let mut visits = builder.new_input(visits, Exchange::new(|v: &Visit| v.to));
    let mut calls = builder.new_input(calls, Exchange::new(|c: &Call| c.to));
    let (acceptances, acceptances_stream) = builder.new_output();
    let (notes, notes_stream) = builder.new_output();
    let mut acceptances = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(acceptances);
    let mut notes = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(notes);
    builder.build(move |_| {
        let mut shared = Shared::default();
        let (mut named, mut names_at) = (0, 0);
        move |frontiers| {
            visits.for_each_time(|time, data| {
                let capability = time.retain(0);
                let mut acceptances = acceptances.activate();
                let mut session = acceptances.session(&capability);
                let sketches = sketches.borrow();
                for visit in data.flat_map(|d| d.drain(..)) {
                    compare(visit, &sketches, &stages, &mut shared, |acceptance| session.give(acceptance));
                }
            });
            calls.for_each_time(|time, data| {
                let capability = time.retain(1);
                // It came at the time of the epoch that follows the one that it is of.
                let epoch = time.time() - 1;
                let mut notes = notes.activate();
                let mut session = notes.session(&capability);
                let sketches = sketches.borrow();
                for call in data.flat_map(|d| d.drain(..)) {
                    let name = call.presence.name;
                    let said = receive(&call, epoch, &sketches, &stages, &mut shared);
                    session.give(Note { name, said });
                }
            });
            match frontiers.iter().filter_map(|frontier| frontier.frontier().first().copied()).min() {
                Some(open) => {
                    sketches.borrow_mut().release(open);
                    if open > named {
                        named = open;
                        let all = open >= names_at;
                        names_at = if all { open + NAMED_EVERY } else { names_at };
                        sketches.borrow().name_examples(&mut stages.hot_blocks.lock(), all);
                    }
                }
                // No worker has a change of its blocks left to tell.
                None => sketches.borrow().name_examples(&mut stages.hot_blocks.lock(), true),
            }
        }
    });
    Verified { acceptances: acceptances_stream, notes: notes_stream }
}

/// Compares a sketch with its partners here.
fn compare(
    visit: Visit,
    sketches: &Sketches,
    stages: &Stages,
    shared: &mut Shared,
    mut emit: impl FnMut(Acceptance),
) {
    let a = visit.sketch.view();
    // All partners are fetched before any is decided on: they are cold, and their misses overlap.
    let partners: Vec<_> = visit.partners.iter().map(|(y, _)| sketches.get(*y)).collect();
    black_box(partners.iter().fold(0, |all, b| all ^ b.words[0]));
    for ((y, diff), b) in visit.partners.into_iter().zip(partners) {
        // Where they met, their first words have passed.
        let verdict = stages.filter.decide_passed(a, b);
        if diff > 0 {
            stages.metrics.add(Counter::Compared, 1);
            stages.metrics.add(Counter::Components, u64::from(verdict.components));
            stages.metrics.add_look(verdict.look);
        }
        let Some(similarity) = verdict.accepted else { continue };
        if diff > 0 {
            stages.metrics.add(Counter::Accepted, 1);
        }
        let evidence = if stages.evidence {
            let blocks = shared.blocks(&*stages.blocking, a, b);
            Evidence { blocks, look: verdict.look, components: verdict.components }
        } else {
            Evidence::default()
        };
        let pair = Pair::new(visit.x, y).expect("x < y since they met");
        emit(Acceptance { pair, accepted: Accepted { similarity, evidence }, diff });
    }
}

/// Receives a visitor, as of an epoch: what it is paired with here, or would be.
fn receive(call: &Call, epoch: Epoch, sketches: &Sketches, stages: &Stages, shared: &mut Shared) -> Said {
    let Presence { id, sketch, top, .. } = &call.presence;
    let mut found = Vec::new();
    let mut documents = Vec::new();
    let least = stages.blocking.least();
    for y in &call.partners {
        let accepted = if y == id {
            if is_hidden(&call.presence, epoch, sketches, stages.expand_limit, &mut documents) {
                return Said::Hidden(Met::new(*y, COPIES, &mut documents, *top));
            }
            COPIES
        } else {
            let b = sketches.get(*y);
            let (lo, hi) = if id < y { (sketch.view(), b) } else { (b, sketch.view()) };
            if least > 1 && usize::from(shared.blocks(&*stages.blocking, lo, hi)) < least {
                continue;
            }
            let verdict = stages.filter.decide_passed(lo, hi);
            let Some(similarity) = verdict.accepted else { continue };
            let blocks = shared.blocks(&*stages.blocking, lo, hi);
            let evidence = Evidence { blocks, look: verdict.look, components: verdict.components };
            sketches.visible_at(*y, epoch, &mut documents);
            Accepted { similarity, evidence }
        };
        if !documents.is_empty() {
            found.push(Met::new(*y, accepted, &mut documents, *top));
        }
    }
    Said::Found(found)
}

/// The copies that a visitor is paired with, as of an epoch; whether they are so many that it does not stand
/// for its sketch itself.
fn is_hidden<'a>(
    visitor: &Presence,
    epoch: Epoch,
    sketches: &'a Sketches,
    expand_limit: usize,
    copies: &mut Vec<&'a DocId>,
) -> bool {
    sketches.visible_at(visitor.id, epoch, copies);
    let is_star = sketches.is_star_at(visitor.id, epoch);
    match &visitor.document {
        // It would be one more, and behind all others.
        None => {
            let is_hidden = is_star || (!copies.is_empty() && copies.len() >= expand_limit);
            if is_hidden {
                copies.sort_unstable();
                copies.truncate(1);
            }
            is_hidden
        }
        Some(document) if is_star => {
            let is_hidden = !copies.contains(&document);
            if !is_hidden {
                *copies = sketches.members_at(visitor.id, epoch).into_iter().collect();
                copies.retain(|copy| copy != &document);
            }
            is_hidden
        }
        Some(document) => {
            copies.retain(|copy| copy != &document);
            false
        }
    }
}

/// Documents of one sketch, which nobody compares.
const COPIES: Accepted =
    Accepted { similarity: Similarity::ONE, evidence: Evidence { blocks: 0, look: 0, components: 0 } };

/// Counts the block keys that two sketches have in common.
#[derive(Default)]
struct Shared {
    keys: Vec<dupflow_core::block::BlockKey>,
}

impl Shared {
    fn blocks(&mut self, blocking: &dyn Blocking, a: SketchRef<'_>, b: SketchRef<'_>) -> u16 {
        self.keys.clear();
        blocking.keys(a, &mut self.keys);
        blocking.keys(b, &mut self.keys);
        self.keys.sort_unstable();
        let shared = self.keys.windows(2).filter(|w| w[0] == w[1]).count();
        u16::try_from(shared).unwrap_or(u16::MAX)
    }
}
