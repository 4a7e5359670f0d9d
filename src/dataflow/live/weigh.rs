//! Terms: what the documents alive hold, and their sketches by the table in force.
//!
//! An epoch without a new table sketches the documents that it touched, at once. In one with a new table, each worker counts
//! its documents as of the table's event and sends the counts to all ([`apply`]); with the counts of all, each makes the
//! table and sketches all its documents ([`weigh`]). Until then later epochs wait.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use timely::container::CapacityContainerBuilder;
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::{Exchange, Pipeline};
use timely::dataflow::operators::generic::OutputBuilder;
use timely::dataflow::operators::generic::builder_rc::OperatorBuilder;
use timely::scheduling::Activator;

use super::tables::Decree;
use super::terms::{Coded, Vocabulary};
use super::{Change, Effect};
use crate::dataflow::Stages;
use crate::dataflow::epochs::{Stash, by_epoch};
use crate::dataflow::upsert::Membership;
use crate::doc::{DocId, Position};
use crate::hash::SketchId;
use crate::metrics::{Counter, Metrics};
use crate::sketch::SketchMaker;
use crate::text::IdfTable;
use crate::time::Epoch;

/// One worker's part of a table, on its way to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct Share {
    to: u64,
    /// Documents with terms, of all workers.
    documents: u64,
    /// Features, and how many documents of this worker hold them.
    holders: Vec<(u64, u32)>,
}

/// The documents alive on one worker, with the table in force.
pub(super) struct Corpus {
    vocabulary: Vocabulary,
    /// By place.
    documents: Vec<Option<Document>>,
    /// Places that the epoch changed.
    touched: Vec<u32>,
    table: Arc<IdfTable>,
    maker: SketchMaker,
    metrics: Arc<Metrics>,
    /// A table is being made: later epochs wait.
    waits: bool,
    /// Who is to be woken when it has been made.
    waiting: Activator,
}

/// What an epoch brings.
enum Record {
    Effect(Effect),
    Decree(Decree),
}

impl From<Effect> for Record {
    fn from(effect: Effect) -> Self {
        Self::Effect(effect)
    }
}

impl From<Decree> for Record {
    fn from(decree: Decree) -> Self {
        Self::Decree(decree)
    }
}

impl Record {
    /// By position; a decree comes after the event that it names.
    fn rank(&self) -> (Position, bool) {
        match self {
            Self::Effect(effect) => (effect.position, false),
            Self::Decree(decree) => (decree.position, true),
        }
    }
}

struct Document {
    id: DocId,
    /// None if the text has no token.
    terms: Option<Coded>,
    /// What has been told.
    sketch: Option<SketchId>,
    alive: bool,
}

/// What the effects of an epoch come to.
pub(super) struct Applied<'scope> {
    /// Of what they touched, in an epoch without a new table.
    pub(super) memberships: Stream<'scope, Epoch, Vec<Membership>>,
    /// In an epoch with a new table.
    pub(super) shares: Stream<'scope, Epoch, Vec<Share>>,
    pub(super) corpus: Rc<RefCell<Corpus>>,
}

/// Applies the effects of each epoch, and sketches what they touched or, in an epoch with a new table, counts.
pub(super) fn apply<'scope>(
    effects: Stream<'scope, Epoch, Vec<Effect>>,
    decrees: Stream<'scope, Epoch, Vec<Decree>>,
    stages: &Stages,
) -> Applied<'scope> {
    let scope = effects.scope();
    let peers = scope.peers() as u64;
    let mut builder = OperatorBuilder::new("Terms".to_owned(), scope);
    let mut effects = builder.new_input(effects, Pipeline);
    let mut decrees = builder.new_input(decrees, Exchange::new(Decree::to));
    let (memberships, memberships_stream) = builder.new_output();
    let (shares, shares_stream) = builder.new_output();
    let mut memberships = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(memberships);
    let mut shares = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(shares);
    let waiting = scope.activator_for(builder.operator_info().address);
    let corpus = Rc::new(RefCell::new(Corpus::new(stages, waiting)));
    let shared = Rc::clone(&corpus);

    builder.build(move |_| {
        let mut stash = Stash::<Record>::new();
        move |frontiers| {
            effects.for_each_time(|time, data| stash.keep(&time, 2, data));
            decrees.for_each_time(|time, data| stash.keep(&time, 2, data));
            let mut corpus = corpus.borrow_mut();
            while !corpus.waits {
                // An epoch is closed when neither input can bring more of it.
                let Some((capabilities, mut records)) = stash.next_closed(frontiers) else { break };
                // A table is of the corpus right after the event that makes it due.
                records.sort_unstable_by_key(Record::rank);
                for record in records {
                    match record {
                        Record::Effect(effect) => corpus.apply(effect),
                        Record::Decree(Decree { documents, .. }) => {
                            let holders: Vec<_> = corpus.vocabulary.holders().collect();
                            let mut shares = shares.activate();
                            let mut session = shares.session(&capabilities[1]);
                            let share = |to| Share { to, documents, holders: holders.clone() };
                            session.give_iterator((0..peers).map(share));
                            corpus.waits = true;
                        }
                    }
                }
                if !corpus.waits {
                    let mut memberships = memberships.activate();
                    let mut session = memberships.session(&capabilities[0]);
                    corpus.sketch_touched(|membership| session.give(membership));
                }
            }
        }
    });
    Applied { memberships: memberships_stream, shares: shares_stream, corpus: shared }
}

/// Makes the tables, and sketches all documents by each.
pub(super) fn weigh<'scope>(
    shares: Stream<'scope, Epoch, Vec<Share>>,
    corpus: Rc<RefCell<Corpus>>,
) -> Stream<'scope, Epoch, Vec<Membership>> {
    by_epoch(shares, Exchange::new(|s: &Share| s.to), "Weigh", move |_, shares, emit| {
        let mut corpus = corpus.borrow_mut();
        let documents = shares.first().map_or(0, |share| share.documents);
        let holders = shares.into_iter().flat_map(|share| share.holders);
        corpus.table = Arc::new(IdfTable::new(documents, holders));
        corpus.sketch_all(emit);
        corpus.waits = false;
        corpus.waiting.activate();
    })
}

impl Corpus {
    fn new(stages: &Stages, waiting: Activator) -> Self {
        Self {
            vocabulary: Vocabulary::default(),
            documents: Vec::new(),
            touched: Vec::new(),
            table: Arc::new(IdfTable::new(0, [])),
            maker: SketchMaker::new(&stages.scheme),
            metrics: Arc::clone(&stages.metrics),
            waits: false,
            waiting,
        }
    }

    /// Applies an event to the terms; its document is sketched later.
    fn apply(&mut self, effect: Effect) {
        let place = effect.place as usize;
        if self.documents.len() <= place {
            self.documents.resize_with(place + 1, || None);
        }
        let document = &mut self.documents[place];
        let (terms, alive) = match effect.change {
            Change::End => (None, false),
            Change::Text(id, terms) => {
                document.get_or_insert(Document { id, terms: None, sketch: None, alive: false });
                (terms.map(|terms| self.vocabulary.insert(&terms)), true)
            }
        };
        let Some(document) = document else { return };
        if document.alive && alive && document.terms == terms {
            self.metrics.add(Counter::Unchanged, 1);
        } else {
            self.touched.push(effect.place);
        }
        document.alive = alive;
        if let Some(before) = std::mem::replace(&mut document.terms, terms) {
            self.vocabulary.remove(&before);
        }
    }

    /// Sketches the documents that the epoch changed, and tells what changed of them.
    fn sketch_touched(&mut self, mut tell: impl FnMut(Membership)) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for place in touched.drain(..) {
            self.sketch(place as usize, &mut tell);
        }
        self.touched = touched;
    }

    /// Sketches all documents, and tells what changed of them.
    fn sketch_all(&mut self, mut tell: impl FnMut(Membership)) {
        let all = 0..self.documents.len();
        // Sketched before, so again.
        let anew = self.documents.iter().flatten().filter(|document| document.sketch.is_some()).count();
        self.metrics.add(Counter::Resketched, anew as u64);
        self.touched.clear();
        all.for_each(|place| self.sketch(place, &mut tell));
    }

    fn sketch(&mut self, place: usize, mut tell: impl FnMut(Membership)) {
        let Some(document) = &mut self.documents[place] else { return };
        let sketched = document
            .terms
            .as_ref()
            .and_then(|coded| self.maker.sketch_terms(&self.vocabulary.terms(coded), &self.table));
        let id = sketched.as_ref().map(|(id, _)| *id);
        if id != document.sketch {
            if let Some(sketch) = std::mem::replace(&mut document.sketch, id) {
                tell(Membership { sketch, document: document.id.clone(), joins: None });
            }
            if let Some((sketch, body)) = sketched {
                tell(Membership { sketch, document: document.id.clone(), joins: Some(Box::new(body)) });
            }
        }
        if !document.alive {
            self.documents[place] = None;
        }
    }
}
