//! Terms: the terms of the live documents, and their sketches by the table in force.
//!
//! In an epoch without a new table, the documents that it touched are sketched at once. At the end of an
//! epoch with a new table, each worker sends the frequencies in its documents to all workers ([`apply`]).
//! From those of all workers, each makes the table and sketches all its documents ([`weigh`]). Until then
//! later epochs wait.

use std::cell::RefCell;
use std::rc::Rc;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use timely::dataflow::Stream;
use timely::dataflow::channels::pact::{Exchange, Pipeline};
use timely::scheduling::Activator;

use super::tables::TableDue;
use super::terms::{CodedTerms, FeatureNumbers};
use super::update::{TextUpdate, Update};
use super::watched::WatchedTerms;
use crate::dataflow::operator::Operator;
use crate::dataflow::operator::epochs::Stash;
use crate::dataflow::output::EpochReport;
use crate::dataflow::queries::{QuerySubject, ResolvedQuery};
use crate::dataflow::sketches::membership::Membership;
use crate::dataflow::stages::Stages;
use crate::dataflow::watches::WatchUpdate;
use dupflow_core::doc::DocId;
use dupflow_core::doc::fields::FieldRow;
use dupflow_core::hash::{self, SketchId};
use dupflow_core::pair::Cause;
use dupflow_core::sketch::SketchMaker;
use dupflow_core::text::IdfTable;
use dupflow_core::time::{Epoch, TableInForce};
use dupflow_run::metrics::Counter;

/// One worker's part of a table, on its way to another.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) struct LocalFrequencies {
    table: TableDue,
    /// Features, and how many documents of this worker hold each.
    holders: Vec<(u64, u32)>,
}

/// The live documents of one worker, with the table in force.
pub(super) struct WeighedDocuments {
    vocabulary: FeatureNumbers,
    /// By place.
    documents: Vec<Option<WeighedDocument>>,
    /// By place, the fields; empty where no fields are held.
    fields: Vec<FieldRow>,
    /// Places that the epoch changed.
    touched: Vec<u32>,
    watched: WatchedTerms,
    table: Arc<IdfTable>,
    maker: SketchMaker,
    stages: Stages,
    /// Whether a table is being made: later epochs wait.
    waits: bool,
    /// The operator to activate when the table has been made.
    waiting: Activator,
}

/// A record of an epoch.
enum TermsRecord {
    Update(Update),
    Due(TableDue),
    Watched(WatchUpdate),
}

impl From<WatchUpdate> for TermsRecord {
    fn from(update: WatchUpdate) -> Self {
        Self::Watched(update)
    }
}

impl From<Update> for TermsRecord {
    fn from(update: Update) -> Self {
        Self::Update(update)
    }
}

impl From<TableDue> for TermsRecord {
    fn from(due: TableDue) -> Self {
        Self::Due(due)
    }
}

struct WeighedDocument {
    id: DocId,
    /// `None` if the text has no token.
    terms: Option<CodedTerms>,
    /// The sketch of the membership that was last emitted.
    sketch: Option<SketchId>,
    alive: bool,
    /// Whether it is counted as one whose features all weigh 0.
    weightless: bool,
}

/// The outputs of [`apply`].
pub(super) struct TermsOutputs<'scope> {
    /// Memberships of the touched documents, in an epoch without a new table.
    pub(super) memberships: Stream<'scope, Epoch, Vec<Membership>>,
    /// Changes of the watch list, in an epoch without a new table.
    pub(super) watches: Option<Stream<'scope, Epoch, Vec<WatchUpdate>>>,
    /// Parts of the table, in an epoch with a new table.
    pub(super) frequencies: Stream<'scope, Epoch, Vec<LocalFrequencies>>,
    /// Queries with their sketches.
    pub(super) resolved: Stream<'scope, Epoch, Vec<ResolvedQuery>>,
    pub(super) documents: Rc<RefCell<WeighedDocuments>>,
}

/// Applies the updates of each epoch. Then it sketches the touched documents or, in an epoch with a new
/// table, counts the holders of features. A query at the time of an epoch is sketched by the table in force
/// after the epoch before.
pub(super) fn apply<'scope>(
    updates: Stream<'scope, Epoch, Vec<Update>>,
    due: Stream<'scope, Epoch, Vec<TableDue>>,
    watches: Option<Stream<'scope, Epoch, Vec<WatchUpdate>>>,
    resolved: Stream<'scope, Epoch, Vec<ResolvedQuery>>,
    stages: &Stages,
) -> TermsOutputs<'scope> {
    let scope = updates.scope();
    let peers = scope.peers() as u64;
    let mut operator = Operator::new("Terms", scope);
    let mut updates = operator.input(updates, Pipeline);
    let mut due = operator.input(due, Exchange::new(|d: &TableDue| d.to));
    let mut resolved = operator.input(resolved, Pipeline);
    let (mut memberships, memberships_stream) = operator.output();
    let (mut frequencies, frequencies_stream) = operator.output();
    let (mut sketched, sketched_stream) = operator.output();
    // The last input and the last output: queries are begun by the frontiers of the first two.
    let to_this = || Exchange::new(|update: &WatchUpdate| update.to);
    let mut watches = watches.map(|changes| operator.input(changes, to_this()));
    let (mut watched, watched_stream) = watches.as_ref().map(|_| operator.output()).unzip();
    let ports = if watched.is_some() { 4 } else { 2 };
    let documents = Rc::new(RefCell::new(WeighedDocuments::new(stages, operator.activator())));
    let shared = Rc::clone(&documents);

    let mut stash = Stash::<TermsRecord>::new();
    let mut querying = Stash::<ResolvedQuery>::new();
    operator.build(move |frontiers| {
        updates.for_each_time(|time, data| stash.keep(&time, ports, data));
        due.for_each_time(|time, data| stash.keep(&time, ports, data));
        if let Some(watches) = &mut watches {
            watches.for_each_time(|time, data| stash.keep(&time, ports, data));
        }
        resolved.for_each_time(|time, data| querying.keep(&time, 3, data));
        let mut documents = documents.borrow_mut();
        while !documents.waits {
            // Only the first two inputs bring changes of the corpus; queries only hold back the epochs after
            // their own.
            while let Some((capabilities, queries)) = querying.next_begun(&frontiers[..2], &stash) {
                sketched
                    .at(&capabilities)
                    .give_all(queries.into_iter().map(|query| documents.subject(query)));
            }
            // An epoch is closed when no input can receive more of it.
            let Some((capabilities, records)) = stash.next_closed(frontiers) else { break };
            if let Some(table) = documents.apply_all(records) {
                let holders: Vec<_> = documents.vocabulary.holders().collect();
                let to_each = (0..peers)
                    .map(|to| LocalFrequencies { table: TableDue { to, ..table }, holders: holders.clone() });
                frequencies.at(&capabilities).give_all(to_each);
                documents.waits = true;
            } else {
                let mut memberships = memberships.at(&capabilities);
                documents.sketch_touched(|membership| memberships.give(membership));
                if let Some(watched) = &mut watched {
                    let mut watched = watched.at(&capabilities);
                    documents.sketch_watches(false, |update| watched.give(update));
                }
            }
        }
    });
    TermsOutputs {
        memberships: memberships_stream,
        watches: watched_stream,
        frequencies: frequencies_stream,
        resolved: sketched_stream,
        documents: shared,
    }
}

/// The outputs of [`weigh`].
type WeighStreams<'scope> = (
    Stream<'scope, Epoch, Vec<Membership>>,
    Option<Stream<'scope, Epoch, Vec<WatchUpdate>>>,
    Stream<'scope, Epoch, Vec<EpochReport>>,
);

/// Makes the tables, and sketches all documents by each. Worker 0 reports the table, each worker reports
/// which of its documents the table changes. The second output is the watch list, sketched by the table, if
/// there is one.
pub(super) fn weigh<'scope>(
    frequencies: Stream<'scope, Epoch, Vec<LocalFrequencies>>,
    documents: Rc<RefCell<WeighedDocuments>>,
    stages: &Stages,
) -> WeighStreams<'scope> {
    let scope = frequencies.scope();
    let mut operator = Operator::new("Weigh", scope);
    let mut input = operator.input(frequencies, Exchange::new(|f: &LocalFrequencies| f.table.to));
    let (mut memberships, memberships_stream) = operator.output();
    let (mut reports, reports_stream) = operator.output();
    let (mut watched, watched_stream) = stages.watches.then(|| operator.output()).unzip();
    let ports = if watched.is_some() { 3 } else { 2 };
    let is_first = scope.index() == 0;
    let tables = stages.keeps.then(|| Arc::clone(&stages.observers.tables));

    let mut stash = Stash::<LocalFrequencies>::new();
    operator.build(move |frontiers| {
        input.for_each_time(|time, data| stash.keep(&time, ports, data));
        while let Some((capabilities, parts)) = stash.next_closed(frontiers) {
            let Some(TableDue { number, documents: count, .. }) = parts.first().map(|part| part.table) else {
                continue;
            };
            let table = Arc::new(IdfTable::new(count, parts.into_iter().flat_map(|part| part.holders)));
            let mut reports = reports.at(&capabilities);
            if is_first {
                let fingerprint = table.fingerprint();
                if let Some(tables) = &tables {
                    tables.lock().insert(fingerprint, Arc::clone(&table));
                }
                let in_force = TableInForce { number, documents: count, fingerprint };
                reports.give(EpochReport::Table(in_force));
            }
            let mut memberships = memberships.at(&capabilities);
            let causes =
                documents.borrow_mut().sketch_all_by(table, |membership| memberships.give(membership));
            if let Some(watched) = &mut watched {
                let mut watched = watched.at(&capabilities);
                documents.borrow_mut().sketch_watches(true, |update| watched.give(update));
            }
            if !causes.is_empty() {
                reports.give(EpochReport::Causes(causes));
            }
        }
    });
    (memberships_stream, watched_stream, reports_stream)
}

impl WeighedDocuments {
    fn new(stages: &Stages, waiting: Activator) -> Self {
        Self {
            vocabulary: FeatureNumbers::default(),
            documents: Vec::new(),
            fields: Vec::new(),
            touched: Vec::new(),
            watched: WatchedTerms::default(),
            table: stages.start.table.clone().unwrap_or_else(|| Arc::new(IdfTable::new(0, []))),
            maker: SketchMaker::new(&stages.scheme),
            stages: stages.clone(),
            waits: false,
            waiting,
        }
    }

    /// Applies the records of an epoch; returns the table that the epoch makes, if any. Updates are in the
    /// order of their events, since they come over one channel from one operator.
    fn apply_all(&mut self, records: Vec<TermsRecord>) -> Option<TableDue> {
        let mut due = None;
        for record in records {
            match record {
                TermsRecord::Update(update) => self.apply(update),
                TermsRecord::Due(table) => due = Some(table),
                TermsRecord::Watched(update) => self.watched.apply(update),
            }
        }
        due
    }

    /// Applies an event to the terms; its document is sketched later.
    fn apply(&mut self, update: Update) {
        let place = update.place as usize;
        if self.documents.len() <= place {
            self.documents.resize_with(place + 1, || None);
        }
        let document = &mut self.documents[place];
        let (terms, row, alive) = match update.text {
            TextUpdate::Ended => (None, FieldRow::default(), false),
            TextUpdate::InForce(id, terms, row) => {
                document.get_or_insert(WeighedDocument {
                    id,
                    terms: None,
                    sketch: None,
                    alive: false,
                    weightless: false,
                });
                (terms.map(|terms| self.vocabulary.insert(&terms)), row, true)
            }
        };
        let Some(document) = document else { return };
        let mut same_fields = true;
        if !self.stages.fields.is_empty() {
            if self.fields.len() <= place {
                self.fields.resize_with(place + 1, FieldRow::default);
            }
            same_fields = self.fields[place] == row;
            self.fields[place] = row;
        }
        if document.alive && alive && same_fields && document.terms == terms {
            self.stages.observers.metrics.add(Counter::Unchanged, 1);
        } else {
            self.touched.push(update.place);
        }
        document.alive = alive;
        if let Some(before) = std::mem::replace(&mut document.terms, terms) {
            self.vocabulary.remove(&before);
        }
    }

    /// Sketches a query by the table in force.
    fn subject(&mut self, query: ResolvedQuery) -> ResolvedQuery {
        let subject = match query.subject {
            QuerySubject::Terms(terms) => match self.maker.sketch_terms(&terms, &self.table, &[]) {
                Some((id, sketch)) => QuerySubject::Sketch(id, Box::new(sketch)),
                None => QuerySubject::Nothing,
            },
            QuerySubject::Weighed(place) => {
                let document = self.documents.get(place as usize).and_then(Option::as_ref);
                document
                    .and_then(|document| document.sketch)
                    .map_or(QuerySubject::Nothing, |sketch| QuerySubject::Stored(sketch.low()))
            }
            subject => subject,
        };
        ResolvedQuery { subject, ..query }
    }

    /// Sketches the documents that the epoch changed, and emits the changes of memberships.
    fn sketch_touched(&mut self, mut emit: impl FnMut(Membership)) {
        let mut touched = std::mem::take(&mut self.touched);
        touched.sort_unstable();
        touched.dedup();
        for place in touched.drain(..) {
            self.sketch(place as usize, &mut emit);
        }
        self.touched = touched;
    }

    /// Sketches the watches that the epoch changed, or all, by the table in force.
    fn sketch_watches(&mut self, all: bool, emit: impl FnMut(WatchUpdate)) {
        self.watched.sketch(all, &mut self.maker, &self.table, emit);
    }

    /// Sketches all documents by a new table, emits the changes of memberships, and unblocks later epochs.
    /// Returns a cause for each document whose sketch changed although no event of the epoch touched it.
    fn sketch_all_by(&mut self, table: Arc<IdfTable>, mut emit: impl FnMut(Membership)) -> Vec<(u64, Cause)> {
        self.table = table;
        let all = 0..self.documents.len();
        // Documents that had a sketch are counted as sketched again.
        let anew = self.documents.iter().flatten().filter(|document| document.sketch.is_some()).count();
        self.stages.observers.metrics.add(Counter::Resketched, anew as u64);
        let mut by_events = vec![false; self.documents.len()];
        self.touched.drain(..).for_each(|place| by_events[place as usize] = true);
        let mut reweighed = Vec::new();
        for place in all {
            self.sketch(place, |membership| {
                if !by_events[place] && membership.joins.is_some() {
                    reweighed.push((hash::bytes(0, membership.document.as_bytes()), Cause::Reweighed));
                }
                emit(membership);
            });
        }
        self.waits = false;
        self.waiting.activate();
        reweighed
    }

    fn sketch(&mut self, place: usize, mut emit: impl FnMut(Membership)) {
        let Some(document) = &mut self.documents[place] else { return };
        let hashes = self.fields.get(place).map_or_else(Box::default, |row| self.stages.hashes(row, false));
        let sketched = document
            .terms
            .as_ref()
            .and_then(|coded| self.maker.sketch_terms(&self.vocabulary.terms(coded), &self.table, &hashes));
        let id = sketched.as_ref().map(|(id, _)| *id);
        let weightless = document.alive && document.terms.is_some() && id.is_none();
        if std::mem::replace(&mut document.weightless, weightless) != weightless {
            let counter = if weightless { Counter::Weightless } else { Counter::WeightlessEnded };
            self.stages.observers.metrics.add(counter, 1);
        }
        if id != document.sketch {
            if let Some(sketch) = std::mem::replace(&mut document.sketch, id) {
                emit(Membership { low: sketch.low(), document: document.id.clone(), joins: None });
            }
            if let Some((sketch, body)) = sketched {
                let joins = Some((sketch, Box::new(body)));
                emit(Membership { low: sketch.low(), document: document.id.clone(), joins });
            }
        }
        if !document.alive {
            self.documents[place] = None;
        }
    }
}
