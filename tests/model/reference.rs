//! The plain formulation: one arrangement of (block key, sketch) joined with itself, then thresholded,
//! filtered and joined with the members. The hand-written operators must equal these few lines of
//! differential dataflow delta by delta; the oracle checks only what deltas accumulate to.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::sync::mpsc::channel;

use differential_dataflow::input::Input;
use differential_dataflow::operators::ThresholdTotal;
use dupflow::core::block::BlockKey;
use dupflow::core::doc::DocId;
use dupflow::core::hash::SketchId;
use dupflow::core::pair::{DocPair, Evidence, Pair, Similarity};
use dupflow::core::sketch::Sketch;
use dupflow::core::time::Epoch;
use dupflow::engine::dataflow::Stages;

use crate::data::Event;
use crate::history::{check, cut, events, runs, sizes};
use crate::law::Corpus;
use crate::pipelines::{CROWDED, plan};
use crate::script::{self, Delta};

/// Changes of the collection of (sketch, document) in each epoch, and every sketch that ever exists.
struct Memberships {
    changes: Vec<Vec<((SketchId, DocId), isize)>>,
    sketches: Arc<BTreeMap<SketchId, Sketch>>,
}

impl Memberships {
    fn new(stages: &Stages, epochs: &[Vec<Event>]) -> Self {
        let mut corpus = Corpus::new(stages);
        let (mut before, mut sketches) = (BTreeSet::new(), BTreeMap::new());
        let changes = epochs.iter().map(|events| {
            corpus.apply(events);
            sketches.extend(corpus.alive.values().cloned());
            let after: BTreeSet<_> =
                corpus.alive.iter().map(|(id, (sketch, _))| (*sketch, id.clone())).collect();
            let change: Vec<_> = (after.difference(&before).map(|m| (m.clone(), 1)))
                .chain(before.difference(&after).map(|m| (m.clone(), -1)))
                .collect();
            before = after;
            change
        });
        let changes = changes.collect();
        Self { changes, sketches: Arc::new(sketches) }
    }
}

/// The members that represent a sketch: all of them if there are at most `limit`, else the smallest.
fn visible<'a>(members: &'a [(&DocId, isize)], limit: usize) -> impl Iterator<Item = &'a DocId> {
    members.iter().map(|(document, _)| *document).take(if members.len() <= limit { usize::MAX } else { 1 })
}

fn doc_pair(a: &DocId, b: &DocId, similarity: Similarity) -> Option<DocPair> {
    DocPair::new(a.clone(), b.clone(), similarity, Evidence::default())
}

/// The deltas, sorted as the program sorts them.
fn deltas(stages: &Stages, Memberships { changes: epochs, sketches }: Memberships) -> Vec<Delta> {
    let (blocking, filter) = (Arc::clone(&stages.blocking), Arc::clone(&stages.filter));
    let (rules, limit) = (Arc::clone(&blocking), stages.expand_limit);
    let near = Arc::clone(&blocking);
    let words = Arc::clone(&sketches);
    let ranked = Arc::clone(&sketches);
    let (sender, receiver) = channel();
    timely::execute_directly(move |worker| {
        let mut input = worker.dataflow::<Epoch, _, _>(|scope| {
            let (input, members) = scope.new_collection::<(SketchId, DocId), isize>();

            let bodies = Arc::clone(&sketches);
            let live = members
                .clone()
                .map(|(sketch, _)| sketch)
                .arrange_by_self_named("Sketches")
                .threshold_total(|_, members| isize::from(*members > 0))
                .flat_map(move |sketch| {
                    let mut keys: Vec<BlockKey> = Vec::new();
                    blocking.keys(bodies[&sketch].view(), &mut keys);
                    keys.into_iter().map(move |key| (key, sketch))
                })
                // With each sketch, whether it is paired with the whole block.
                .reduce_named("Meeting", move |key, block, out| {
                    let rule = rules.rule(key.table);
                    let meeting = if block.len() > rule.cap { rule.leaders } else { block.len() };
                    let rank = |sketch: &SketchId| rule.rank(*sketch, ranked[sketch].words[0]);
                    let is_led = |sketch: &SketchId| {
                        let before = block.iter().filter(|(other, _)| rank(other) < rank(sketch)).count();
                        before < meeting
                    };
                    out.extend(block.iter().map(|(sketch, _)| ((**sketch, is_led(sketch)), 1_isize)));
                })
                .arrange_by_key_named("Blocks");
            let accepted = live
                .clone()
                .join_core(
                    live,
                    move |key, (x, x_meets_all): &(SketchId, bool), (y, y_meets_all): &(SketchId, bool)| {
                        let (a, b) = (words[x].words[0], words[y].words[0]);
                        let is_near = near.near(key.table).is_none_or(|near| near.meet(a, b));
                        Pair::new(*x, *y).filter(|_| is_near && (*x_meets_all || *y_meets_all))
                    },
                )
                .arrange_by_self_named("Candidates")
                .threshold_total(|_, blocks| isize::from(*blocks > 0))
                .flat_map(move |pair| {
                    let (x, y) = (*pair.lo(), *pair.hi());
                    let verdict = filter.decide(sketches[&x].view(), sketches[&y].view());
                    verdict.accepted.map(|similarity| (x, (y, similarity)))
                });

            let faces = members
                .clone()
                .reduce_named("Visible", move |_, members, out| {
                    out.extend(visible(members, limit).map(|document| (document.clone(), 1_isize)));
                })
                .arrange_by_key_named("Faces");
            let copies = members.reduce_named("Copies", move |_, members, out| {
                for (i, a) in visible(members, limit).enumerate() {
                    let pairs = members[i + 1..].iter().filter_map(|(b, _)| doc_pair(a, b, Similarity::ONE));
                    out.extend(pairs.map(|pair| (pair, 1_isize)));
                }
            });
            accepted
                .arrange_by_key_named("By x")
                .join_core(faces.clone(), |_, (y, similarity), a| Some((*y, (a.clone(), *similarity))))
                .arrange_by_key_named("By y")
                .join_core(faces, |_, (a, similarity): &(DocId, Similarity), b| doc_pair(a, b, *similarity))
                .concat(copies.map(|(_, pair)| pair))
                .consolidate()
                .inspect(move |(pair, epoch, diff)| sender.send((*epoch, pair.clone(), *diff)).unwrap());
            input
        });
        for (epoch, changes) in (1..).zip(epochs) {
            input.advance_to(epoch);
            changes.into_iter().for_each(|(membership, diff)| input.update(membership, diff));
        }
    });
    let mut deltas: Vec<Delta> = receiver.into_iter().collect();
    deltas.sort_unstable_by(|(e, a, i), (f, b, j)| (e, &a.pair, i, a).cmp(&(f, &b.pair, j, b)));
    deltas
}

#[test]
fn the_plain_formulation_gives_the_same_deltas() {
    let settings = [
        CROWDED,
        "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, cap = 3, leaders = 2 }",
        "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, cap = 8, leaders = 1 }",
        "sketch = { size = 64 }\nblocking = { bands = 16, rows = 4, cap = 2, hot = \"skip\" }\nfilter = { \
        verify = \"exact\" }",
        "sketch = { size = 64, bits = 1 }\nblocking = { kind = \"permuted\", distance = 6, tables = 7, cap = \
        3, also = { kind = \"banding\", bands = 8, rows = 2 } }",
    ];
    for plan in settings.map(plan) {
        check(100, (events(0..120), sizes(), runs()), |(events, sizes, run)| {
            let stages = dupflow::pipeline::stages(&plan, false);
            let epochs = cut(&events, &sizes);
            let expected = deltas(&stages, Memberships::new(&stages, &epochs));
            assert_eq!(script::deltas(&stages, &epochs, run), expected);
        });
    }
}
