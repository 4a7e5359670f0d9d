//! Retaining: the documents of a worker, and how the events and the retention change them in an epoch.
//!
//! Events of an epoch and its clock -> for each touched document, once the epoch is settled, a report with
//! the values before and after, its cause, and what a later run needs to continue. [`retain`](super::retain)
//! describes how workers agree on slots.

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::{Arc, Once};

use crate::dataflow::documents::arrival::{Arrival, ArrivalContent};
use crate::dataflow::documents::homes::{Example, Moves, overrule};
use crate::dataflow::documents::kept;
use crate::dataflow::documents::key::EventKey;
use crate::dataflow::documents::store::{DocumentStore, InForce, SharedDocuments};
use crate::dataflow::output::EpochReport;
use crate::dataflow::shared::kept_epochs::KeptEpochs;
use crate::dataflow::stages::Stages;
use dupflow_core::doc::changes::Changes;
use dupflow_core::doc::fields::FieldRow;
use dupflow_core::doc::retention::Retention;
use dupflow_core::doc::{DocChange, DocId, UpsertEffect, UpsertedDoc};
use dupflow_core::filter::PairFilter;
use dupflow_core::hash;
use dupflow_core::pair::Cause;
use dupflow_core::time::{Epoch, UnixTime};
use dupflow_run::metrics::{Counter, Metrics};
use dupflow_run::origins::Origins;

/// Most changes of documents in one record: enough to make the cost of each record negligible.
const PARCEL: usize = 4096;

/// Documents that are prefetched together.
const PREFETCHED: usize = 32;

/// What an operator derives from documents that are added, changed and removed.
pub(in crate::dataflow) trait Follow: 'static {
    /// The value stored of a live document.
    type LiveValue: InForce;
    /// What a report needs of an event.
    type EventText: 'static;
    /// The record that is emitted.
    type Emitted: 'static;

    /// Whether each event of a document is reported, or only the last one of an epoch.
    const REPORTS_EACH: bool;

    /// Whether equal values mean equal texts.
    const HOLDS_TEXTS: bool = true;

    /// The value in force after an event that is not too late.
    fn value(content: &ArrivalContent) -> Self::LiveValue;

    /// What a report needs of the event.
    fn text(content: ArrivalContent, fields: FieldRow) -> Option<Self::EventText>;

    /// Whether a document of this value has terms, and so counts for the table. Without a table none does.
    fn counts(_: Self::LiveValue) -> bool {
        false
    }

    /// Whether an event between these values changes nothing.
    fn repeats(before: Self::LiveValue, after: Self::LiveValue) -> bool {
        before == after
    }

    /// Reports a document that an epoch has touched. `texts` are those of its events, `None` for an event
    /// that ends it.
    fn report(
        touched: TouchedDocument<'_, Self::LiveValue>,
        texts: impl Iterator<Item = Option<Self::EventText>>,
        emit: &mut dyn FnMut(Self::Emitted),
    );
}

/// A document that an epoch has touched.
pub(in crate::dataflow) struct TouchedDocument<'a, V> {
    pub(in crate::dataflow) place: u32,
    pub(in crate::dataflow) id: &'a DocId,
    pub(in crate::dataflow) before: V,
    pub(in crate::dataflow) after: V,
}

/// An event, or the retention, has touched a document.
struct Touch<F: Follow> {
    hash: u64,
    place: u32,
    before: F::LiveValue,
    text: Option<F::EventText>,
    /// The cause, if the document is not alive afterwards.
    ended: Cause,
}

/// The documents of a worker, and the changes of the open epoch.
pub(in crate::dataflow) struct Retaining<F: Follow> {
    pub(in crate::dataflow) documents: SharedDocuments<F::LiveValue>,
    retention: Retention,
    ids_move: bool,
    /// Whether the corpus is compared with a reference.
    has_reference: bool,
    /// Whether its documents are restored, and not counted.
    has_frozen_reference: bool,
    /// The number of documents, alive or ended, when the last epoch was settled.
    places: i64,
    clock: Option<UnixTime>,
    /// Unsorted until [`settle`](Self::settle) sorts by place; touches of one place stay in their order.
    touched: Vec<Touch<F>>,
    /// The documents that were added, changed or removed, by id, if changes of documents are emitted.
    doc_changes: Option<BTreeMap<DocId, DocChange>>,
    /// Documents with an upsert, if they are emitted.
    upserts: Option<Vec<UpsertedDoc>>,
    filter: Arc<dyn PairFilter>,
    keeps: bool,
    /// Where the changes go if this process stores them itself.
    kept_here: Option<Arc<KeptEpochs>>,
    changes: Changes,
    /// Full parcels of changes, older than `changes`.
    full: Vec<Changes>,
    pub(in crate::dataflow) origins: Option<Arc<Origins>>,
    metrics: Arc<Metrics>,
    /// Limits the log message about moving ids to one in a run.
    moves_logged: Arc<Once>,
    follow: PhantomData<F>,
}

/// Functions that emit the records of an epoch.
pub(in crate::dataflow) struct Outputs<'a, F: Follow> {
    pub(in crate::dataflow) record: &'a mut dyn FnMut(F::Emitted),
    pub(in crate::dataflow) more: &'a mut dyn FnMut(i64),
    pub(in crate::dataflow) reports: &'a mut dyn FnMut(EpochReport),
}

impl<F: Follow> Retaining<F> {
    /// Without documents; the clock continues from that of an earlier run.
    pub(in crate::dataflow) fn new(documents: SharedDocuments<F::LiveValue>, stages: &Stages) -> Self {
        let clock = stages.start.past.clock.and_then(|time| stages.retention.clock.read(time));
        Self {
            documents,
            retention: stages.retention,
            ids_move: stages.ids_move,
            has_reference: stages.scheme.pairs.has_reference(),
            has_frozen_reference: stages.has_frozen_reference(),
            places: 0,
            clock,
            touched: Vec::new(),
            doc_changes: stages.collects_documents().then(BTreeMap::new),
            upserts: stages.emits_upserts.then(Vec::new),
            filter: Arc::clone(&stages.filter),
            keeps: stages.keeps,
            kept_here: stages.observers.kept_here.clone(),
            changes: Changes::default(),
            full: Vec::new(),
            origins: stages.observers.origins.clone(),
            metrics: Arc::clone(&stages.observers.metrics),
            moves_logged: Arc::clone(&stages.observers.moves_logged),
            follow: PhantomData,
        }
    }

    /// Applies the events of an epoch and expires what is too old after it. `clock` is the greatest time of
    /// the epoch's batches. Returns how many slots were gained.
    pub(in crate::dataflow) fn apply(
        &mut self,
        epoch: Epoch,
        mut arrivals: Vec<Arrival>,
        clock: Option<UnixTime>,
    ) -> i64 {
        // `None` is less than any time.
        self.clock = self.clock.max(clock);
        let oldest = self.retention.oldest(self.clock);
        let counts_undated = self.retention.max_age.is_some();
        let shared = Rc::clone(&self.documents);
        let mut documents = shared.borrow_mut();
        documents.begin(epoch);
        let (slots, remembers_ended) = (documents.slots(), documents.remembers_ended());
        let (mut inserted, mut deleted, mut unchanged, mut unknown) = (0, 0, 0, 0);
        let (mut expired, mut late, mut undated) = (0, 0, 0);
        let (mut replaced, mut replaced_in_reference, mut replaced_across_files) = (0, 0, 0);

        arrivals.sort_unstable_by(|a, b| (a.hash, &a.id, a.position).cmp(&(b.hash, &b.id, b.position)));
        documents.fetch(arrivals.iter().map(|arrival| arrival.hash));
        if self.ids_move {
            let moves = overrule(&mut arrivals, &documents);
            self.log_moves(moves);
        }
        let hashes: Vec<u64> = arrivals.iter().map(|arrival| arrival.hash).collect();
        let mut prefetched = 0;
        let mut arrivals = arrivals.into_iter().peekable();
        while let Some(mut last) = arrivals.next() {
            let begun = hashes.len() - arrivals.len();
            if begun > prefetched {
                let more = &hashes[begun - 1..];
                let more = &more[..more.len().min(PREFETCHED)];
                documents.prefetch(more.iter().copied());
                prefetched = begun - 1 + more.len();
            }
            let mut place = documents.find(last.hash, &last.id);
            let known = place.and_then(|place| documents.get(place)).filter(|known| known.is_alive());
            let before = known.map_or(F::LiveValue::ENDED, |known| known.value);
            // The position of the event in force; its offset identifies its input.
            let mut position_in_force = known.map(|known| known.position());
            let mut fields_in_force = place.map_or_else(FieldRow::default, |place| documents.fields(place));
            let fields_before = fields_in_force.clone();
            let mut in_force = before;
            let mut key = last.key();
            let mut is_late;
            let mut has_upsert = false;
            loop {
                // Each event is counted as if the epoch held nothing else: except for the clock, counts do
                // not depend on the cut into epochs.
                let is_upsert = !matches!(last.content, ArrivalContent::Delete);
                is_late = is_upsert && last.ts.zip(oldest).is_some_and(|(ts, oldest)| ts < oldest);
                let next = if is_late { F::LiveValue::ENDED } else { F::value(&last.content) };
                let (was, is) = (in_force != F::LiveValue::ENDED, next != F::LiveValue::ENDED);
                let repeats = was && is && fields_in_force == last.fields && F::repeats(in_force, next);
                // A source that reads a record again, as a table does after a restart, gives no new event.
                let is_read_again = repeats && position_in_force == Some(last.position);
                has_upsert |= is_upsert && !last.is_restored && !is_read_again;
                late += u64::from(is_late && !last.is_restored);
                undated += u64::from(counts_undated && is_upsert && last.ts.is_none() && !last.is_restored);
                match (was, is) {
                    (false, false) => unknown += u64::from(!is_upsert && !last.is_restored),
                    (false, true) => {
                        let is_frozen =
                            self.has_frozen_reference && last.is_restored && last.id.is_of_reference();
                        inserted += u64::from(!is_frozen);
                    }
                    (true, false) if is_late => expired += 1,
                    (true, false) => deleted += 1,
                    (true, true) if repeats => unchanged += 1,
                    (true, true) => {
                        replaced += 1;
                        replaced_in_reference += u64::from(self.has_reference && last.id.is_of_reference());
                    }
                }
                if let (true, true, Some(origins), Some(earlier)) =
                    (was, is, &self.origins, position_in_force)
                {
                    replaced_across_files +=
                        u64::from(origins.replaced(&last.id, earlier.offset, last.position.offset));
                }
                position_in_force = Some(last.position);
                in_force = next;
                fields_in_force.clone_from(&last.fields);
                let Some(later) = arrivals.next_if(|a| a.id == last.id) else { break };
                if F::REPORTS_EACH {
                    // A report needs a place, so a new document gets one even if a later event ends it.
                    let here = documents.put(place, &last, key, in_force, epoch);
                    place = Some(here);
                    let (hash, text) =
                        (last.hash, F::text(last.content, last.fields.clone()).filter(|_| !is_late));
                    let ended = ended(is_late);
                    self.touched.push(Touch { hash, place: here, before, text, ended });
                }
                key = key.max(later.key());
                last = later;
            }
            let is_alive = in_force != F::LiveValue::ENDED;
            if let Some(upserts) = self.upserts.as_mut().filter(|_| has_upsert) {
                let effect = match (before != F::LiveValue::ENDED, is_alive) {
                    (_, false) => UpsertEffect::Ended,
                    (false, true) => UpsertEffect::New,
                    (true, true) if fields_before == last.fields && F::repeats(before, in_force) => {
                        UpsertEffect::Unchanged
                    }
                    (true, true) if !F::HOLDS_TEXTS => UpsertEffect::Sent,
                    (true, true) => UpsertEffect::Changed,
                };
                let is_too_short = last.content.is_empty() || last.content.is_too_short(&*self.filter);
                let (id, position) = (last.id.clone(), last.position);
                upserts.push(UpsertedDoc { id, position, effect, is_too_short });
            }
            if place.is_none() && !is_alive && !remembers_ended {
                if last.is_restored && self.keeps {
                    // Too old since it was kept.
                    self.changes.end(last.id.as_bytes());
                }
                continue;
            }
            let place = documents.put(place, &last, key, in_force, epoch);
            if let Some(changes) = self.doc_changes.as_mut().filter(|_| is_alive) {
                changes.insert(last.id.clone(), last.change());
            }
            if self.keeps && is_alive {
                if self.changes.len_bytes() >= kept::PARCEL_BYTES {
                    self.full.push(std::mem::take(&mut self.changes));
                }
                let own = EventKey::new(last.ts, last.position);
                let is_greater =
                    |found: &EventKey| *found != own && (self.ids_move || documents.slot(place).is_some());
                let greater = documents.key(place).filter(is_greater);
                kept::keep(&last, greater, &mut self.changes);
            }
            if last.is_restored && matches!(last.content, ArrivalContent::Delete) {
                // The slot is in the documents and in the state already.
                continue;
            }
            if F::REPORTS_EACH || before != in_force || !is_alive {
                let (hash, text) = (last.hash, F::text(last.content, last.fields).filter(|_| is_alive));
                self.touched.push(Touch { hash, place, before, text, ended: ended(is_late) });
            }
        }

        while let Some((place, before)) = oldest.and_then(|oldest| documents.expire(oldest)) {
            expired += u64::from(before != F::LiveValue::ENDED);
            self.touched.push(touch(&documents, place, before));
        }
        for (counter, n) in [
            (Counter::Inserted, inserted),
            (Counter::Deleted, deleted),
            (Counter::Unchanged, unchanged),
            (Counter::UnknownDeletes, unknown),
            (Counter::Expired, expired),
            (Counter::Late, late),
            (Counter::Undated, undated),
            (Counter::Replaced, replaced),
            (Counter::ReplacedInReference, replaced_in_reference),
            (Counter::ReplacedAcrossFiles, replaced_across_files),
        ] {
            self.metrics.add(counter, n);
        }
        let more = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        more(documents.slots()) - more(slots)
    }

    /// Counts moving ids, and logs one once in a run.
    fn log_moves(&self, Moves { moved, overruled, example }: Moves) {
        self.metrics.add(Counter::MovedIds, moved);
        self.metrics.add(Counter::Overruled, overruled);
        let Some(Example { id, partitions: [one, other] }) = example else { return };
        self.moves_logged.call_once(|| {
            tracing::warn!(
                %id, partition = one, other_partition = other,
                "an id has events in two partitions: partitions were added, or a producer does not choose \
                them by the id; of such ids the \
                 partition with the newest time is followed, and moved_ids counts them"
            );
        });
    }

    /// Gives up the slots with keys up to this one, inclusive.
    pub(in crate::dataflow) fn retire(&mut self, last: EventKey) {
        let mut documents = self.documents.borrow_mut();
        while let Some((place, before)) = documents.take_slot(last) {
            self.metrics.add(Counter::Expired, u64::from(before != F::LiveValue::ENDED));
            self.touched.push(touch(&documents, place, before));
        }
    }

    /// Reports each document that an epoch has touched, and forgets those that have ended and have no slot.
    pub(in crate::dataflow) fn settle(&mut self, epoch: Epoch, outputs: Outputs<'_, F>) {
        let Outputs { record, more, reports } = outputs;
        let mut documents = self.documents.borrow_mut();
        let mut touched = std::mem::take(&mut self.touched);
        // A stable sort: touches of a document stay in order.
        touched.sort_by_key(|touch| touch.place);
        let mut causes = Vec::new();
        let (mut counting, mut more_alive) = (0, 0);
        for group in touched.chunk_by_mut(|a, b| a.place == b.place) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let (hash, place, before, ended) = (first.hash, first.place, first.before, last.ended);
            let Some(document) = documents.get(place) else { continue };
            let after = document.value;
            let (was, is) = (before != F::LiveValue::ENDED, after != F::LiveValue::ENDED);
            more_alive += i64::from(is) - i64::from(was);
            let cause = match (was, is) {
                (false, true) => Some(Cause::Insert),
                (true, true) => Some(Cause::Update),
                (true, false) => Some(ended),
                (false, false) => None,
            };
            // A restored document that nothing has happened to since has none.
            let is_restored = is && document.changed().is_none();
            causes.extend(cause.filter(|_| !is_restored).map(|cause| (hash, cause)));
            counting += i64::from(F::counts(after)) - i64::from(F::counts(before));
            let touched_document = TouchedDocument { place, id: &document.id, before, after };
            F::report(touched_document, group.iter_mut().map(|touch| touch.text.take()), record);
            if is {
                continue;
            }
            if let Some(changed) = &mut self.doc_changes {
                // A document that was added and removed in the epoch leaves no trace.
                if was {
                    changed.insert(document.id.clone(), DocChange::end(document.id.clone()));
                } else {
                    changed.remove(&document.id);
                }
            }
            let remembered = documents.remembered(place);
            if self.keeps {
                match remembered {
                    Some(key) => kept::keep_slot(&document.id, key, &mut self.changes),
                    None => self.changes.end(document.id.as_bytes()),
                }
            }
            if remembered.is_none() {
                documents.remove(hash, place);
            }
        }
        touched.clear();
        let places = i64::try_from(documents.len()).unwrap_or(i64::MAX);
        let ended = places - std::mem::replace(&mut self.places, places) - more_alive;
        let counter = if ended > 0 { Counter::Remembered } else { Counter::Forgotten };
        self.metrics.add(counter, ended.unsigned_abs());
        documents.settle();
        drop(documents);
        self.touched = touched;
        if let Some(changed) = &mut self.doc_changes {
            let changes = std::mem::take(changed).into_values();
            in_parcels(changes, |parcel| reports(EpochReport::Documents(parcel)));
        }
        if let Some(upserts) = &mut self.upserts {
            in_parcels(upserts.drain(..), |parcel| reports(EpochReport::Upserts(parcel)));
        }
        if counting != 0 {
            more(counting);
        }
        if !causes.is_empty() {
            reports(EpochReport::Causes(causes));
        }
        if !self.changes.is_empty() {
            self.full.push(std::mem::take(&mut self.changes));
        }
        for changes in self.full.drain(..) {
            match &self.kept_here {
                None => reports(EpochReport::Kept(changes)),
                Some(here) => {
                    reports(EpochReport::KeptByProcess(changes.len_bytes() as u64));
                    here.add(epoch, changes);
                }
            }
        }
    }
}

/// Calls `each` with the records, at most [`PARCEL`] at a time.
fn in_parcels<T>(mut records: impl Iterator<Item = T>, mut each: impl FnMut(Vec<T>)) {
    loop {
        let parcel: Vec<_> = records.by_ref().take(PARCEL).collect();
        if parcel.is_empty() {
            return;
        }
        each(parcel);
    }
}

/// The retention ends a document; `before` is the value that was in force.
fn touch<F: Follow>(documents: &DocumentStore<F::LiveValue>, place: u32, before: F::LiveValue) -> Touch<F> {
    let hash = documents.get(place).map_or(0, |document| hash::bytes(0, document.id.as_bytes()));
    Touch { hash, place, before, text: None, ended: Cause::Expire }
}

/// The cause of an end by an event.
fn ended(is_late: bool) -> Cause {
    if is_late { Cause::Expire } else { Cause::Delete }
}
