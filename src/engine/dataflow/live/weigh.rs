//! Terms: what the documents alive hold, and their sketches by the table in force.
//!
//! An epoch without a new table sketches the documents that it touched, at once. At the end of one with a new
//! table, each worker sends the frequencies in its documents to all ([`apply`]); with those of all, each
//! makes the table and sketches all its documents ([`weigh`]). Until then later epochs wait.

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

use super::tables::TableDue;
use super::terms::{Coded, Vocabulary};
use super::{NewText, Update};
use crate::dataflow::Stages;
use crate::dataflow::epochs::Stash;
use crate::dataflow::output::Reached;
use crate::dataflow::upsert::Membership;
use crate::dataflow::visitors::{Caller, Look};
use dupflow_core::doc::DocId;
use dupflow_core::hash::{self, SketchId};
use dupflow_core::pair::Cause;
use dupflow_core::run::metrics::{Counter, Metrics};
use dupflow_core::sketch::SketchMaker;
use dupflow_core::text::IdfTable;
use dupflow_core::time::{Epoch, TableInForce};

/// One worker's part of a table, on its way to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LocalFrequencies {
    table: TableDue,
    /// Features, and how many documents of this worker hold them.
    holders: Vec<(u64, u32)>,
}

/// The documents alive on one worker, with the table in force.
pub(super) struct WeighedDocuments {
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
    Update(Update),
    Due(TableDue),
}

impl From<Update> for Record {
    fn from(update: Update) -> Self {
        Self::Update(update)
    }
}

impl From<TableDue> for Record {
    fn from(due: TableDue) -> Self {
        Self::Due(due)
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

/// What the updates of an epoch come to.
pub(super) struct Applied<'scope> {
    /// Of what they touched, in an epoch without a new table.
    pub(super) memberships: Stream<'scope, Epoch, Vec<Membership>>,
    /// In an epoch with a new table.
    pub(super) frequencies: Stream<'scope, Epoch, Vec<LocalFrequencies>>,
    /// Visitors, with their sketches.
    pub(super) callers: Stream<'scope, Epoch, Vec<Caller>>,
    pub(super) documents: Rc<RefCell<WeighedDocuments>>,
}

/// Applies the updates of each epoch, and sketches what they touched or, in an epoch with a new table,
/// counts. A visitor is sketched by the table in force after the epoch before the one at whose time it comes.
pub(super) fn apply<'scope>(
    updates: Stream<'scope, Epoch, Vec<Update>>,
    due: Stream<'scope, Epoch, Vec<TableDue>>,
    callers: Stream<'scope, Epoch, Vec<Caller>>,
    stages: &Stages,
) -> Applied<'scope> {
    let scope = updates.scope();
    let peers = scope.peers() as u64;
    let mut builder = OperatorBuilder::new("Terms".to_owned(), scope);
    let mut updates = builder.new_input(updates, Pipeline);
    let mut due = builder.new_input(due, Exchange::new(|d: &TableDue| d.to));
    let mut callers = builder.new_input(callers, Pipeline);
    let (memberships, memberships_stream) = builder.new_output();
    let (frequencies, frequencies_stream) = builder.new_output();
    let (sketched, sketched_stream) = builder.new_output();
    let mut sketched = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(sketched);
    let mut memberships = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(memberships);
    let mut frequencies = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(frequencies);
    let waiting = scope.activator_for(builder.operator_info().address);
    let documents = Rc::new(RefCell::new(WeighedDocuments::new(stages, waiting)));
    let shared = Rc::clone(&documents);

    builder.build(move |_| {
        let mut stash = Stash::<Record>::new();
        let mut visiting = Stash::<Caller>::new();
        move |frontiers| {
            updates.for_each_time(|time, data| stash.keep(&time, 2, data));
            due.for_each_time(|time, data| stash.keep(&time, 2, data));
            callers.for_each_time(|time, data| visiting.keep(&time, 3, data));
            let mut documents = documents.borrow_mut();
            while !documents.waits {
                // What is about the corpus is of the two first; visitors only hold back what comes after
                // them.
                while let Some((capabilities, present)) = visiting.next_begun(&frontiers[..2], &stash) {
                    let mut sketched = sketched.activate();
                    let mut session = sketched.session(&capabilities[2]);
                    present.into_iter().for_each(|caller| session.give(documents.look(caller)));
                }
                // An epoch is closed when neither input can bring more of it.
                let Some((capabilities, records)) = stash.next_closed(frontiers) else { break };
                let mut next = None;
                for record in records {
                    match record {
                        // One channel from one operator: they come in the order of their events.
                        Record::Update(update) => documents.apply(update),
                        Record::Due(table) => next = Some(table),
                    }
                }
                if let Some(table) = next {
                    let holders: Vec<_> = documents.vocabulary.holders().collect();
                    let to_each = (0..peers).map(|to| LocalFrequencies {
                        table: TableDue { to, ..table },
                        holders: holders.clone(),
                    });
                    frequencies.activate().session(&capabilities[1]).give_iterator(to_each);
                    documents.waits = true;
                } else {
                    let mut memberships = memberships.activate();
                    let mut session = memberships.session(&capabilities[0]);
                    documents.sketch_touched(|membership| session.give(membership));
                }
            }
        }
    });
    Applied {
        memberships: memberships_stream,
        frequencies: frequencies_stream,
        callers: sketched_stream,
        documents: shared,
    }
}

/// Makes the tables, and sketches all documents by each; worker 0 tells which table it is, each worker which
/// of its documents that changes.
pub(super) fn weigh<'scope>(
    frequencies: Stream<'scope, Epoch, Vec<LocalFrequencies>>,
    documents: Rc<RefCell<WeighedDocuments>>,
    stages: &Stages,
) -> (Stream<'scope, Epoch, Vec<Membership>>, Stream<'scope, Epoch, Vec<Reached>>) {
    let scope = frequencies.scope();
    let mut builder = OperatorBuilder::new("Weigh".to_owned(), scope);
    let mut input = builder.new_input(frequencies, Exchange::new(|f: &LocalFrequencies| f.table.to));
    let (memberships, memberships_stream) = builder.new_output();
    let (reached, reached_stream) = builder.new_output();
    let mut memberships = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(memberships);
    let mut reached = OutputBuilder::<_, CapacityContainerBuilder<_>>::from(reached);
    let tells = scope.index() == 0;
    let made = stages.keeps.then(|| Arc::clone(&stages.tables));

    builder.build(move |_| {
        let mut stash = Stash::<LocalFrequencies>::new();
        move |frontiers| {
            input.for_each_time(|time, data| stash.keep(&time, 2, data));
            while let Some((capabilities, parts)) = stash.next_closed(frontiers) {
                let Some(TableDue { number, documents: count, .. }) = parts.first().map(|part| part.table)
                else {
                    continue;
                };
                let table = Arc::new(IdfTable::new(count, parts.into_iter().flat_map(|part| part.holders)));
                if tells {
                    let fingerprint = table.fingerprint();
                    if let Some(made) = &made {
                        let mut made = made.lock();
                        made.insert(fingerprint, Arc::clone(&table));
                    }
                    let in_force = TableInForce { number, documents: count, fingerprint };
                    reached.activate().session(&capabilities[1]).give(Reached::Table(in_force));
                }
                let mut memberships = memberships.activate();
                let mut session = memberships.session(&capabilities[0]);
                let causes =
                    documents.borrow_mut().sketch_all_by(table, |membership| session.give(membership));
                if !causes.is_empty() {
                    reached.activate().session(&capabilities[1]).give(Reached::Causes(causes));
                }
            }
        }
    });
    (memberships_stream, reached_stream)
}

impl WeighedDocuments {
    fn new(stages: &Stages, waiting: Activator) -> Self {
        Self {
            vocabulary: Vocabulary::default(),
            documents: Vec::new(),
            touched: Vec::new(),
            table: stages.table.clone().unwrap_or_else(|| Arc::new(IdfTable::new(0, []))),
            maker: SketchMaker::new(&stages.scheme),
            metrics: Arc::clone(&stages.metrics),
            waits: false,
            waiting,
        }
    }

    /// Applies an event to the terms; its document is sketched later.
    fn apply(&mut self, update: Update) {
        let place = update.place as usize;
        if self.documents.len() <= place {
            self.documents.resize_with(place + 1, || None);
        }
        let document = &mut self.documents[place];
        let (terms, alive) = match update.text {
            NewText::Ended => (None, false),
            NewText::InForce(id, terms) => {
                document.get_or_insert(Document { id, terms: None, sketch: None, alive: false });
                (terms.map(|terms| self.vocabulary.insert(&terms)), true)
            }
        };
        let Some(document) = document else { return };
        if document.alive && alive && document.terms == terms {
            self.metrics.add(Counter::Unchanged, 1);
        } else {
            self.touched.push(update.place);
        }
        document.alive = alive;
        if let Some(before) = std::mem::replace(&mut document.terms, terms) {
            self.vocabulary.remove(&before);
        }
    }

    /// Sketches a visitor by the table in force.
    fn look(&mut self, caller: Caller) -> Caller {
        let look = match caller.look {
            Look::Terms(terms) => match self.maker.sketch_terms(&terms, &self.table) {
                Some((id, sketch)) => Look::Sketch(id, Box::new(sketch)),
                None => Look::Nothing,
            },
            Look::Weighed(place) => {
                let document = self.documents.get(place as usize).and_then(Option::as_ref);
                document.and_then(|document| document.sketch).map_or(Look::Nothing, Look::Held)
            }
            look => look,
        };
        Caller { look, ..caller }
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

    /// Sketches all documents by a new table, tells what changed of them, and lets later epochs go on. What
    /// comes back: those that no event of the epoch has touched, and that have another sketch; by the hash of
    /// their ids.
    fn sketch_all_by(&mut self, table: Arc<IdfTable>, mut tell: impl FnMut(Membership)) -> Vec<(u64, Cause)> {
        self.table = table;
        let all = 0..self.documents.len();
        // Sketched before, so again.
        let anew = self.documents.iter().flatten().filter(|document| document.sketch.is_some()).count();
        self.metrics.add(Counter::Resketched, anew as u64);
        let mut by_events = vec![false; self.documents.len()];
        self.touched.drain(..).for_each(|place| by_events[place as usize] = true);
        let mut reweighed = Vec::new();
        for place in all {
            self.sketch(place, |membership| {
                if !by_events[place] && membership.joins.is_some() {
                    reweighed.push((hash::bytes(0, membership.document.as_bytes()), Cause::Reweighed));
                }
                tell(membership);
            });
        }
        self.waits = false;
        self.waiting.activate();
        reweighed
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
