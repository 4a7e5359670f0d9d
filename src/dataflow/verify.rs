//! Verify: the rest of the filter, for candidates that survived their first words. A candidate (x, y) travels to the owner
//! of x, which sends the sketch of x on to the owner of y, where the two are compared: no worker needs all sketches.
//!
//! The verdict is a pure function of the two sketches, and a sketch id names its content. So a retraction is judged anew,
//! with the same outcome, and nothing about past verdicts is kept.

use std::cell::RefCell;
use std::hint::black_box;
use std::rc::Rc;

use differential_dataflow::consolidation::consolidate;
use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::Exchange;
use timely::dataflow::operators::generic::operator::Operator;

use super::blocks::Candidate;
use super::epochs::by_epoch;
use super::pairs::Acceptance;
use super::sketches::Sketches;
use super::{Accepted, Stages};
use crate::block::Blocking;
use crate::hash::SketchId;
use crate::metrics::Counter;
use crate::pair::{Evidence, Pair};
use crate::sketch::{Sketch, SketchRef};
use crate::time::Epoch;

/// A sketch on its way to the partners that one worker owns.
#[derive(Clone, Debug, Serialize, Deserialize)]
struct Visit {
    /// The worker.
    to: u64,
    x: SketchId,
    sketch: Sketch,
    partners: Vec<(SketchId, isize)>,
}

/// Compares the candidates; `sketches` holds those that this worker owns.
pub(super) fn verify<'scope>(
    meetings: Stream<'scope, Epoch, Vec<Candidate>>,
    sketches: Rc<RefCell<Sketches>>,
    stages: &Stages,
) -> Stream<'scope, Epoch, Vec<Acceptance>> {
    let peers = meetings.scope().peers() as u64;
    let owner = move |id: SketchId| id.low() % peers;
    let visitors = Rc::clone(&sketches);

    let to_x = Exchange::new(|m: &Candidate| m.pair.lo().low());
    let visits = by_epoch(meetings, to_x, "Visit", move |_, meetings, emit| {
        // Workers report the blocks that they own; what is left after adding up is a candidate that came or went.
        let mut changes: Vec<_> = meetings
            .into_iter()
            .map(|m| ((*m.pair.lo(), owner(*m.pair.hi()), *m.pair.hi()), m.diff))
            .collect();
        consolidate(&mut changes);
        for group in changes.chunk_by(|((x, to, _), _), ((x2, to2, _), _)| (x, to) == (x2, to2)) {
            let (x, to, _) = group[0].0;
            let sketch = visitors.borrow().get(x).to_owned();
            let partners = group.iter().map(|((_, _, y), diff)| (*y, *diff)).collect();
            emit(Visit { to, x, sketch, partners });
        }
    });

    let stages = stages.clone();
    visits.unary_frontier(Exchange::new(|v: &Visit| v.to), "Compare", move |_, _| {
        let mut shared = Shared::default();
        move |(input, frontier), output| {
            input.for_each_time(|time, data| {
                let mut session = output.session(&time);
                for visit in data.flat_map(|d| d.drain(..)) {
                    let sketches = sketches.borrow();
                    let a = visit.sketch.view();
                    // All partners are fetched before any is decided on: they are cold, and their misses overlap.
                    let partners: Vec<_> = visit.partners.iter().map(|(y, _)| sketches.get(*y)).collect();
                    black_box(partners.iter().fold(0, |all, b| all ^ b.words[0]));
                    for ((y, diff), b) in visit.partners.into_iter().zip(partners) {
                        let verdict = stages.filter.decide(a, b);
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
                        session.give(Acceptance { pair, accepted: Accepted { similarity, evidence }, diff });
                    }
                }
            });
            match frontier.frontier().first() {
                Some(open) => sketches.borrow_mut().release(*open),
                // No worker has a change of its blocks left to tell.
                None => sketches.borrow().name_examples(&mut stages.hot_blocks()),
            }
        }
    })
}

/// Counts the block keys that two sketches have in common.
#[derive(Default)]
struct Shared {
    keys: Vec<crate::block::BlockKey>,
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
