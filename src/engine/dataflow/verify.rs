//! Verify: the rest of the filter, for candidates that passed the test of their first words. A candidate (x,
//! y) is sent to the owner of x, which sends the sketch of x on to the owner of y, where the two are
//! compared. No worker needs all sketches.
//!
//! The verdict is a pure function of the two sketches, and a sketch id names its content. So a retraction is
//! judged again, with the same outcome, and no verdict is stored.

use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;

use differential_dataflow::consolidation::consolidate;
use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;

use super::acceptance::{Acceptance, Accepted};
use super::blocks::Candidate;
use super::operator::Operator;
use super::operator::epochs::by_epoch;
use super::queries::{AnswerPart, PartialAnswer, QueryComparison, QueryMatch, SketchedQuery};
use super::stages::Stages;
use crate::dataflow::sketches::store::Sketches;
use dupflow_core::block::{Blocking, HotBlocks};
use dupflow_core::doc::DocId;
use dupflow_core::filter::Verdict;
use dupflow_core::hash::SketchId;
use dupflow_core::pair::{Evidence, Pair, Similarity};
use dupflow_core::sketch::{Sketch, SketchRef};
use dupflow_core::time::Epoch;
use dupflow_run::metrics::Counter;

/// A sketch on its way to the partners that one worker owns.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Visit {
    /// The index of that worker.
    to: u64,
    x: SketchId,
    sketch: Sketch,
    partners: Vec<(SketchId, isize)>,
}

/// The outputs of [`verify`].
pub(super) struct VerifyOutputs<'scope> {
    pub(super) acceptances: Stream<'scope, Epoch, Vec<Acceptance>>,
    /// Partial answers to queries.
    pub(super) partial_answers: Stream<'scope, Epoch, Vec<PartialAnswer>>,
}

/// Compares the candidates, and queries with their candidates. `sketches` holds the sketches that this worker
/// owns.
pub(super) fn verify<'scope>(
    meetings: Stream<'scope, Epoch, Vec<Candidate>>,
    comparisons: Stream<'scope, Epoch, Vec<QueryComparison>>,
    sketches: Rc<RefCell<Sketches>>,
    stages: &Stages,
) -> VerifyOutputs<'scope> {
    let peers = meetings.scope().peers() as u64;
    let owner = move |id: SketchId| id.low() % peers;
    let of_x = Rc::clone(&sketches);

    let least = stages.blocking.least();
    let to_x = Exchange::new(|m: &Candidate| m.pair.lo().low());
    let visits = by_epoch(meetings, to_x, "Visit", move |_, meetings, emit| {
        // Each worker reports changes of the blocks that it owns; only their sum says whether the pair gained
        // or lost blocks.
        let mut changes: Vec<_> = meetings
            .into_iter()
            .map(|m| ((*m.pair.lo(), owner(*m.pair.hi()), *m.pair.hi()), m.diff))
            .collect();
        consolidate(&mut changes);
        // A sketch is added or removed at most once in an epoch. So where no block is ever hot, the sum is
        // the number of blocks that the two share.
        changes.retain(|(_, diff)| diff.unsigned_abs() >= least);
        let mut of_x = of_x.borrow_mut();
        of_x.fetch(changes.iter().map(|((x, ..), _)| *x));
        for group in changes.chunk_by(|((x, to, _), _), ((x2, to2, _), _)| (x, to) == (x2, to2)) {
            let (x, to, _) = group[0].0;
            let sketch = of_x.copied(x);
            let partners = group.iter().map(|((_, _, y), diff)| (*y, *diff)).collect();
            emit(Visit { to, x, sketch, partners });
        }
    });

    let stages = stages.clone();
    let mut operator = Operator::new("Compare", visits.scope());
    let mut visits = operator.input(visits, Exchange::new(|v: &Visit| v.to));
    let mut comparisons = operator.input(comparisons, Exchange::new(|c: &QueryComparison| c.to));
    let (mut acceptances, acceptances_stream) = operator.output();
    let (mut partial_answers, partial_answers_stream) = operator.output();
    let mut shared = SharedBlocks::default();
    let mut examples = Examples::default();
    let mut live_sketches = stages.observers.live_sketches.clone();
    operator.build(move |frontiers| {
        visits.for_each_time(|time, data| {
            let mut acceptances = acceptances.at_time(&time);
            let mut sketches = sketches.borrow_mut();
            for visit in data.flat_map(|d| d.drain(..)) {
                compare(visit, &mut sketches, &stages, &mut shared, |acceptance| {
                    acceptances.give(acceptance);
                });
            }
        });
        comparisons.for_each_time(|time, data| {
            // A query arrives at the time of the epoch after the one that its answer describes.
            let epoch = time.time() - 1;
            let mut partial_answers = partial_answers.at_time(&time);
            let mut sketches = sketches.borrow_mut();
            for comparison in data.flat_map(|d| d.drain(..)) {
                let query_id = comparison.query.query_id;
                let part = compare_query(&comparison, epoch, &mut sketches, &stages, &mut shared);
                partial_answers.give(PartialAnswer { query_id, part });
            }
        });
        let open = frontiers.iter().filter_map(|frontier| frontier.frontier().first().copied()).min();
        if let Some(open) = open {
            sketches.borrow_mut().release(open);
        }
        examples.renew(open, &mut sketches.borrow_mut(), &stages);
        if let Some(live) = live_sketches.take_if(|_| open.is_none()) {
            // All changes of this worker's members are made before the last epoch gets here.
            sketches.borrow_mut().add_live(&mut live.lock());
        }
    });
    VerifyOutputs { acceptances: acceptances_stream, partial_answers: partial_answers_stream }
}

/// When the example documents of hot blocks are renewed.
#[derive(Default)]
struct Examples {
    /// The first open epoch at the last renewal; [`Epoch::MAX`] when there is no more.
    renewed: Epoch,
}

impl Examples {
    /// Renews the examples of the blocks that are shown if an epoch has closed since the last renewal:
    /// members change, and a bulk load makes many blocks hot of which few are ever shown. `open` is the first
    /// open epoch; `None` at the end of the input, when all workers have reported all changes of their
    /// blocks: all are renewed, once.
    fn renew(&mut self, open: Option<Epoch>, sketches: &mut Sketches, stages: &Stages) {
        let open = open.unwrap_or(Epoch::MAX);
        if open > self.renewed {
            self.renewed = open;
            let most = if open == Epoch::MAX { usize::MAX } else { HotBlocks::SHOWN };
            sketches.name_examples(&mut stages.observers.hot_blocks.lock(), most);
        }
    }
}

/// Compares a sketch with its partners on this worker.
fn compare(
    visit: Visit,
    sketches: &mut Sketches,
    stages: &Stages,
    shared: &mut SharedBlocks,
    mut emit: impl FnMut(Acceptance),
) {
    let a = visit.sketch.view();
    sketches.fetch(visit.partners.iter().map(|(y, _)| *y));
    // Reads all partners before the first decision: they are not in the cache, and their cache misses
    // overlap.
    let places: Vec<_> = visit.partners.iter().map(|(y, _)| sketches.place(*y)).collect();
    black_box(places.iter().fold(0, |all, place| all ^ sketches.first_word(*place)));
    let mut copy = Vec::new();
    for ((y, diff), place) in visit.partners.into_iter().zip(places) {
        let b = sketches.at(place, &mut copy);
        // The first words have passed in the blocks already.
        let verdict = stages.filter.decide_passed(a, b);
        if verdict == Verdict::RULED_OUT {
            stages.observers.metrics.add(Counter::RejectedByWhere, u64::from(diff > 0));
            continue;
        }
        if diff > 0 {
            stages.observers.metrics.add(Counter::Compared, 1);
            stages.observers.metrics.add(Counter::Components, u64::from(verdict.components));
            stages.observers.metrics.add_look(verdict.look);
        }
        let Some(similarity) = verdict.accepted else { continue };
        if diff > 0 {
            stages.observers.metrics.add(Counter::Accepted, 1);
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

/// Compares a query as of an epoch: the documents on this worker that it is, or would be, paired with.
fn compare_query(
    comparison: &QueryComparison,
    epoch: Epoch,
    sketches: &mut Sketches,
    stages: &Stages,
    shared: &mut SharedBlocks,
) -> AnswerPart {
    sketches.fetch(comparison.candidates.iter().copied());
    let sketches = &*sketches;
    let SketchedQuery { id, sketch, top, .. } = &comparison.query;
    let mut matches = Vec::new();
    let mut documents = Vec::new();
    let mut copy = Vec::new();
    let least = stages.blocking.least();
    for y in &comparison.candidates {
        let accepted = if y == id {
            if is_hidden(&comparison.query, epoch, sketches, stages.expand_limit, &mut documents) {
                if !stages.filter.pairs_copies() {
                    documents.clear();
                }
                return AnswerPart::Hidden(QueryMatch::new(*y, COPIES, &mut documents, *top));
            }
            if !stages.filter.pairs_copies() {
                continue;
            }
            COPIES
        } else {
            let b = sketches.at(sketches.place(*y), &mut copy);
            let (lo, hi) = if id < y { (sketch.view(), b) } else { (b, sketch.view()) };
            if least > 1 && usize::from(shared.blocks(&*stages.blocking, lo, hi)) < least {
                continue;
            }
            let verdict = stages.filter.decide_passed(lo, hi);
            let Some(similarity) = verdict.accepted else { continue };
            let similarity = if id < y { similarity } else { similarity.flipped() };
            let blocks = shared.blocks(&*stages.blocking, lo, hi);
            let evidence = Evidence { blocks, look: verdict.look, components: verdict.components };
            sketches.visible_at(*y, epoch, &mut documents);
            Accepted { similarity, evidence }
        };
        if !documents.is_empty() {
            matches.push(QueryMatch::new(*y, accepted, &mut documents, *top));
        }
    }
    AnswerPart::Matches(matches)
}

/// Collects the copies that a query is paired with, as of an epoch. Returns true if they are so many that the
/// query does not represent its sketch itself.
fn is_hidden<'a>(
    query: &SketchedQuery,
    epoch: Epoch,
    sketches: &'a Sketches,
    expand_limit: usize,
    copies: &mut Vec<&'a DocId>,
) -> bool {
    sketches.visible_at(query.id, epoch, copies);
    let is_star = sketches.is_star_at(query.id, epoch);
    match &query.document {
        // A text would be one more document, and sorted after all others.
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
                *copies = sketches.members_at(query.id, epoch).into_iter().collect();
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

/// The value of a pair of copies, which are not compared.
const COPIES: Accepted =
    Accepted { similarity: Similarity::ONE, evidence: Evidence { blocks: 0, look: 0, components: 0 } };

/// Counts the block keys that two sketches share.
#[derive(Default)]
struct SharedBlocks {
    keys: Vec<dupflow_core::block::BlockKey>,
}

impl SharedBlocks {
    fn blocks(&mut self, blocking: &dyn Blocking, a: SketchRef<'_>, b: SketchRef<'_>) -> u16 {
        self.keys.clear();
        blocking.keys(a, &mut self.keys);
        blocking.keys(b, &mut self.keys);
        self.keys.sort_unstable();
        let shared = self.keys.windows(2).filter(|w| w[0] == w[1]).count();
        u16::try_from(shared).unwrap_or(u16::MAX)
    }
}
