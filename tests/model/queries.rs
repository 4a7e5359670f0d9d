//! Queries: the answer to a text holds the pairs that a new document with this text would be in, if its id
//! sorted after all others, at the end of the epoch that the answer names. The answer to an id holds the
//! document's last event and the pairs that it is in.
//!
//! Bug classes: an answer that mixes two epochs; a query that changes the deltas; a query that a hot block, a
//! star of copies or a new table of document frequencies treats differently from a document; a query with no
//! reply, or with two.

use std::collections::{BTreeMap, VecDeque};
use std::io;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::thread;

use dupflow::config::Plan;
use dupflow::connectors::intake::SourceError;
use dupflow::core::doc::{DocId, Position};
use dupflow::core::hash::{SketchId, mix};
use dupflow::core::oracle;
use dupflow::core::pair::{DocPair, Evidence};
use dupflow::core::run::query::{Answer, LastEvent, Query, QueryQueue, Refusal, SimilarDocument};
use dupflow::core::sketch::{Scheme, Sketch, SketchMaker};
use dupflow::core::time::Epoch;
use dupflow::engine::dataflow::{BatchEnd, BatchRecord, Intake, Pull, Stages};
use proptest::collection::vec;
use proptest::prelude::*;

use crate::data::Event;
use crate::flow;
use crate::history::{check, cut, events, ids, runs, sizes, tested, text};
use crate::live::{self, LIVE};
use crate::pipelines::{CROWDED, each_admitted, plan, shipped, small};
use crate::retention;
use crate::script::{Run, Stamped, deltas, deltas_through};

/// A query, and the least epoch of its answer: a share of all epochs, of 8.
type Asked = (Query, Epoch);

fn questions() -> impl Strategy<Value = Vec<Asked>> {
    let top = || prop_oneof![3 => Just(usize::MAX), 1 => 0usize..4];
    let question = prop_oneof![
        (text(), top()).prop_map(|(text, top)| Query::Text { text, top }),
        (ids(), top()).prop_map(|(id, top)| Query::Document { id, top }),
    ];
    let after = prop_oneof![6 => Just(0), 1 => 0..8_u64, 1 => Just(8)];
    vec((question, after), 1..32)
}

/// The replies so far, by query.
#[derive(Default)]
struct Told {
    answers: Mutex<BTreeMap<usize, Vec<Result<Answer, Refusal>>>>,
    wakers: Mutex<Vec<Box<dyn Fn() + Send>>>,
}

/// An intake that sends queries between its batches, and the remaining ones at its end. It ends when all have
/// a reply.
struct Asking {
    events: Box<dyn Intake>,
    queries: Arc<QueryQueue>,
    questions: VecDeque<(usize, Asked)>,
    last: Epoch,
    told: Arc<Told>,
    random: u64,
}

impl Asking {
    fn ask(&mut self, count: usize) {
        for (number, (question, share)) in self.questions.drain(..count) {
            let told = Arc::clone(&self.told);
            let after = self.last * share / 8;
            self.queries.ask_after(after, question, move |answer| {
                told.answers.lock().unwrap().entry(number).or_default().push(answer);
                told.wakers.lock().unwrap().iter().for_each(|wake| wake());
            });
        }
    }
}

impl Intake for Asking {
    fn pull(&mut self, limit: Epoch) -> Pull {
        let pulled = self.events.pull(limit);
        self.random = mix(self.random);
        let some = usize::try_from(self.random % 3).unwrap();
        match pulled {
            Pull::Done => {
                self.ask(self.questions.len());
                if self.queries.present() == 0 { Pull::Done } else { Pull::Idle(self.last + 1) }
            }
            Pull::Batch(_) | Pull::Idle(_) => {
                self.ask(some.min(self.questions.len()));
                pulled
            }
        }
    }

    fn read(&mut self, each: &mut dyn FnMut(BatchRecord<'_>)) -> BatchEnd {
        self.events.read(each)
    }

    fn wake_with(&mut self, wake: Box<dyn Fn() + Send>) {
        self.told.wakers.lock().unwrap().push(wake);
    }
}

/// The live documents after an epoch, and the scheme in force.
struct After {
    scheme: Scheme,
    alive: BTreeMap<DocId, (SketchId, Sketch)>,
    /// The last events of documents, also of those without a token.
    found: BTreeMap<DocId, LastEvent>,
}

/// After each epoch, from 0 on.
fn states(stages: &Stages, epochs: &[Vec<Event>]) -> Vec<After> {
    let mut live = stages.scheme.live().map(|_| live::Corpus::new(stages));
    let mut maker = live.is_none().then(|| SketchMaker::new(&stages.scheme));
    let (mut so_far, mut last) = (Vec::new(), BTreeMap::new());
    let mut after = |epoch: Epoch, events: &[Event]| {
        for (id, text) in events {
            let position = Position { partition: 0, offset: so_far.len() as u64 };
            last.insert(id.clone(), LastEvent { position, ts: None, changed: Some(epoch) });
            so_far.push((position, Stamped::new(id.clone(), text.clone(), None)));
        }
        let texts = retention::alive(&so_far, None, &stages.retention);
        let found = texts.keys().map(|id| (id.clone(), last[id])).collect();
        if let Some(live) = &mut live {
            live.become_of(texts);
            return After { scheme: live.scheme(), alive: live.sketches(), found };
        }
        let mut sketched = |text: &str| maker.as_mut().and_then(|maker| maker.sketch(text));
        let alive = texts.into_iter().filter_map(|(id, text)| Some((id, sketched(&text)?))).collect();
        After { scheme: stages.scheme.clone(), alive, found }
    };
    (0..)
        .zip(std::iter::once(&Vec::new()).chain(epochs))
        .map(|(epoch, events)| after(epoch, events))
        .collect()
}

/// An id that sorts after all others of the histories.
fn new_one() -> DocId {
    DocId::new("\u{10ffff}").unwrap()
}

/// The expected answer, by brute force.
fn expected(stages: &Stages, after: &After, question: &Query, epoch: Epoch) -> Answer {
    let mut corpus = after.alive.clone();
    let (id, top, document) = match question {
        Query::Text { text, top } => {
            let new = SketchMaker::new(&after.scheme).sketch(text);
            corpus.extend(new.map(|new| (new_one(), new)));
            (new_one(), *top, None)
        }
        Query::Document { id, top } => (id.clone(), *top, after.found.get(id).copied()),
    };
    let Some(its) = corpus.get(&id) else {
        return Answer { epoch, sketched: false, document, similar: Vec::new(), more: 0 };
    };
    let pairs = oracle::exact(&corpus, &*stages.blocking, &*stages.filter, stages.expand_limit);
    let other = |pair: DocPair| {
        // A similarity with two shares is that of the document in question and another one, in this order.
        let (lo, hi) = (pair.pair.lo(), pair.pair.hi());
        if *lo == id {
            Some((hi.clone(), pair.similarity))
        } else {
            (*hi == id).then(|| (lo.clone(), pair.similarity.flipped()))
        }
    };
    let mut similar: Vec<_> = (pairs.into_iter().filter_map(other))
        .map(|(other, similarity)| {
            let evidence = evidence(stages, its, &corpus[&other]);
            SimilarDocument { id: other, similarity, evidence }
        })
        .collect();
    similar.sort_by(|a, b| b.similarity.cmp(&a.similarity).then_with(|| a.id.cmp(&b.id)));
    let more = similar.len().saturating_sub(top);
    similar.truncate(top);
    Answer { epoch, sketched: true, document, similar, more }
}

fn evidence(stages: &Stages, (id, a): &(SketchId, Sketch), (other, b): &(SketchId, Sketch)) -> Evidence {
    if id == other {
        return Evidence::default();
    }
    let (mut of_a, mut of_b) = (Vec::new(), Vec::new());
    stages.blocking.keys(a.view(), &mut of_a);
    stages.blocking.keys(b.view(), &mut of_b);
    let blocks = of_a.iter().filter(|key| of_b.contains(key)).count();
    let verdict = stages.filter.decide(a.view(), b.view());
    Evidence { blocks: u16::try_from(blocks).unwrap(), look: verdict.look, components: verdict.components }
}

/// Counts of the kinds of answers.
#[derive(Default, Debug)]
struct Seen {
    paired: AtomicUsize,
    before_the_end: AtomicUsize,
    copies: AtomicUsize,
    left_out: AtomicUsize,
    empty: AtomicUsize,
    documents: AtomicUsize,
    not_alive: AtomicUsize,
}

/// Runs a history with queries. Compares answers with brute force, and deltas with those of a run without
/// queries.
fn answers_are_right(
    plan: &Plan,
    epochs: &[Vec<Event>],
    questions: &[Asked],
    run: Run,
    quiet: bool,
    seen: &Seen,
) {
    let stages = dupflow::pipeline::stages(plan, false);
    let told = Arc::<Told>::default();
    let mut shares: Vec<VecDeque<(usize, Asked)>> = vec![VecDeque::new(); run.workers];
    for (number, asked) in questions.iter().enumerate() {
        let worker = mix(run.seed ^ number as u64) % run.workers as u64;
        shares[usize::try_from(worker).unwrap()].push_back((number, asked.clone()));
    }
    let shares = Mutex::new(shares);
    let (queries, hears, last) =
        (Arc::clone(&stages.observers.queries), Arc::clone(&told), epochs.len() as Epoch);
    let found = deltas_through(&stages, epochs, run, move |worker, events| {
        Box::new(Asking {
            events,
            queries: Arc::clone(&queries),
            questions: std::mem::take(&mut shares.lock().unwrap()[worker]),
            last,
            told: Arc::clone(&hears),
            random: run.seed ^ worker as u64,
        })
    });
    if quiet {
        assert_eq!(
            found,
            deltas(&dupflow::pipeline::stages(plan, false), epochs, run),
            "queries leave no trace"
        );
    }
    let states = states(&stages, epochs);
    let answers = told.answers.lock().unwrap();
    assert_eq!(answers.len(), questions.len(), "each is told");
    for (number, replies) in &*answers {
        let [Ok(answer)] = &replies[..] else { panic!("{:?} is told {replies:?}", questions[*number]) };
        let (question, share) = &questions[*number];
        assert!(answer.epoch >= last * share / 8, "{answer:?} is of an epoch before the one asked for");
        let after = &states[usize::try_from(answer.epoch).unwrap()];
        let right = expected(&stages, after, question, answer.epoch);
        assert_eq!(*answer, right, "{question:?} of {run:?}");
        let count =
            |counter: &AtomicUsize, happened| counter.fetch_add(usize::from(happened), Ordering::Relaxed);
        count(&seen.paired, !answer.similar.is_empty());
        count(&seen.before_the_end, answer.epoch < last && !answer.similar.is_empty());
        count(&seen.copies, answer.similar.iter().any(|similar| similar.evidence.look == 0));
        count(&seen.left_out, answer.more > 0);
        count(&seen.empty, !answer.sketched);
        count(&seen.documents, answer.document.is_some() && !answer.similar.is_empty());
        count(&seen.not_alive, matches!(question, Query::Document { .. }) && answer.document.is_none());
    }
}

/// On random histories.
fn right(histories: u32, plan: &Plan) -> Seen {
    let seen = Seen::default();
    check(
        histories,
        (events(0..120), sizes(), questions(), runs(), any::<bool>()),
        |(events, sizes, asked, run, quiet)| {
            answers_are_right(plan, &cut(&events, &sizes), &asked, run, quiet, &seen);
        },
    );
    seen
}

macro_rules! right {
    ($($name:ident $settings:expr;)*) => { $(#[test] fn $name() { right(60, &plan($settings)); })* };
}

right! {
    one_leader "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, cap = 2, leaders = 1 }";
    two_leaders "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, cap = 3, leaders = 2 }";
    more_leaders_than_a_block_may_have "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, \
        cap = 2, leaders = 4 }";
    nobody_meets_in_hot_blocks "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, cap = 4, \
        hot = \"skip\" }";
    leaders_with_exact_verification "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, cap \
        = 3, leaders = 1 }\nfilter = { verify = \"exact\" }";
    two_blockings "sketch = { size = 64, bits = 1 }\nblocking = { bands = 4, rows = 2, cap = 3, also = { \
        kind = \"permuted\", distance = 3, tables = 4 } }";
    tables_beside_hot_bands "sketch = { kind = \"simhash\" }\ntext = { shingle = \"words:1\", weights \
        = \"count\" }\nblocking = { bands = 8, rows = 4, cap = 3, also = { kind = \"permuted\", distance = \
        6, tables = 7 } }";
    live_weights LIVE;
    slots_are_limited "sketch = { size = 64, bits = 1 }\nblocking = { bands = 8, rows = 2, cap = 4 \
        }\nretention = { max_documents = 6 }";
}

#[test]
fn live_weights_where_slots_are_limited() {
    right(60, &plan(&format!("{LIVE}\nretention = {{ max_documents = 6 }}")));
}

#[test]
fn live_weights_with_exact_verification() {
    right(60, &plan(&format!("{LIVE}\nfilter = {{ verify = \"exact\" }}")));
}

/// Histories and queries contain the interesting cases.
#[test]
fn crowded_blocks() {
    let seen = right(150, &plan(CROWDED));
    let Seen { paired, before_the_end, copies, left_out, empty, documents, not_alive } = &seen;
    let least = [paired, before_the_end, copies, left_out, empty, documents, not_alive]
        .map(|n| n.load(Ordering::Relaxed));
    assert!(least.into_iter().all(|n| n > tested(150) as usize / 3), "{seen:?}");
}

#[test]
fn every_sketch_with_every_blocking() {
    each_admitted(|plan| {
        right(4, plan);
    });
}

/// The shipped pipelines, with small caps.
#[test]
fn every_shipped_pipeline() {
    for name in shipped() {
        let mut small = small(name);
        if name == "paper" {
            small.extend(["sketch.size=64", "filter.looks=[16, 32, 64]"].map(str::to_owned));
        }
        right(10, &Plan::load(name, &small).unwrap_or_else(|error| panic!("{error}")));
    }
}

/// How a run ends, in the tests of pending queries.
#[derive(Clone, Copy, Debug)]
enum End {
    Input,
    Reader,
    Panic,
    Sink,
}

/// Several threads send queries continuously, more than fit into the queue, each again after a reply; then
/// the run ends. Each query gets one reply, and a query that is not answered by then is refused.
#[test]
fn each_who_asks_is_told_once_however_the_run_ends() {
    for end in [End::Input, End::Reader, End::Panic, End::Sink] {
        let mut stages = flow::stages();
        stages.observers.queries = Arc::new(QueryQueue::new(3));
        let queries = Arc::clone(&stages.observers.queries);
        let (answered, answers) = channel();
        let askers: Vec<_> = (0..6_u64)
            .map(|asker| {
                let (queries, answered) = (Arc::clone(&queries), answered.clone());
                thread::spawn(move || ask_until_the_end(asker, &queries, &answered))
            })
            .collect();
        drop(answered);
        // One document for each answer, so that queries and documents alternate.
        let reader: flow::Script = Box::new(move |queue| {
            for offset in 0..200 {
                answers.recv().unwrap();
                if queue.push(flow::batch(offset)).is_err() {
                    return Ok(());
                }
                queue.cut();
            }
            match end {
                End::Reader => Err(SourceError::Inputs(vec!["broken on purpose".to_owned()])),
                End::Panic => panic!("broken on purpose"),
                End::Input | End::Sink => Ok(()),
            }
        });
        let (ended, _) = flow::run(&stages, vec![reader], move |epoch| {
            let fails = matches!(end, End::Sink) && epoch == 100;
            if fails { Err(io::Error::other("broken on purpose")) } else { Ok(()) }
        });
        assert_eq!(ended.is_ok(), matches!(end, End::Input), "{end:?}");
        let told: Vec<_> = askers.into_iter().map(|asker| asker.join().unwrap()).collect();
        assert_eq!(queries.present(), 0);
        let all: usize = told.iter().map(|(times, _)| times).sum();
        let full: usize = told.iter().map(|(_, full)| full).sum();
        assert!(all >= 100 && full > 0, "{end:?}: {all} answers, {full} times no room");
    }
}

/// Sends queries until the queue is closed; returns the number of answers, and how often the queue was full.
fn ask_until_the_end(asker: u64, queries: &QueryQueue, answered: &Sender<()>) -> (usize, usize) {
    let (mut answers, mut full) = (0, 0);
    loop {
        let (reply, replied) = channel();
        let question = if asker.is_multiple_of(2) {
            Query::Text { text: "the same text for all of them".to_owned(), top: 5 }
        } else {
            Query::Document { id: DocId::new("0").unwrap(), top: 5 }
        };
        queries.ask(question, move |answer| reply.send(answer).unwrap());
        let told: Vec<_> = replied.into_iter().collect();
        match &told[..] {
            [Ok(answer)] => {
                assert!(answer.similar.len() <= 5 && answer.similar.is_sorted_by_key(|similar| &similar.id));
                answers += 1;
                answered.send(()).unwrap_or(());
            }
            [Err(Refusal::Full)] => full += 1,
            [Err(Refusal::Ended)] => return (answers, full),
            other => panic!("told {other:?}"),
        }
    }
}
