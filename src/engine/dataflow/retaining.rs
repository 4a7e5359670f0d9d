//! Retaining: the documents of a worker, and what the events and the retention do to them in an epoch.
//!
//! Events of an epoch and its clock -> what is told of each document that is touched, once the epoch is
//! settled: with what is in force before and after it, why, and what a later run needs to go on from. How
//! workers agree on slots is told in [`retain`](super::retain).

use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::rc::Rc;
use std::sync::{Arc, Once};

use super::arrival::{Arrival, Content};
use super::documents::{Documents, InForce, SharedDocuments};
use super::homes::{Example, Moves, overrule};
use super::key::Key;
use super::output::Reached;
use super::{Stages, kept};
use dupflow_core::doc::changes::Changes;
use dupflow_core::doc::retention::Retention;
use dupflow_core::doc::{DocChange, DocId, Facts};
use dupflow_core::hash;
use dupflow_core::pair::Cause;
use dupflow_core::run::metrics::{Counter, Metrics};
use dupflow_core::run::origins::Origins;
use dupflow_core::time::{Epoch, UnixTime};

/// Changes of documents that are sent on together, at most: enough that what is sent with them does not
/// count.
const PARCEL: usize = 4096;

/// What is made of documents that come, change and go.
pub(super) trait Follow: 'static {
    /// What a document stands for.
    type Value: InForce;
    /// What is needed of an event to tell of its document.
    type Text: 'static;
    /// What is told.
    type Record: 'static;

    /// Whether each event of a document is told, or the last one of an epoch.
    const TELLS_EACH: bool;

    /// What is in force after an event that is not too late.
    fn value(content: &Content) -> Self::Value;

    /// What is needed of it.
    fn text(content: Content) -> Option<Self::Text>;

    /// Whether a document of this value counts among those that are weighed.
    fn counts(value: Self::Value) -> bool;

    /// Whether an event between these values repeats what is in force.
    fn repeats(before: Self::Value, after: Self::Value) -> bool;

    /// Tells of a document that is at a `place` within the epoch. `texts` are those of its events, `None` for
    /// what ends it.
    fn tell(
        told: Told<'_, Self::Value>,
        texts: impl Iterator<Item = Option<Self::Text>>,
        emit: &mut dyn FnMut(Self::Record),
    );
}

/// A document that an epoch has touched.
pub(super) struct Told<'a, V> {
    pub(super) place: u32,
    pub(super) id: &'a DocId,
    pub(super) before: V,
    pub(super) after: V,
}

/// An event, or the retention, has touched a document.
struct Touch<F: Follow> {
    hash: u64,
    place: u32,
    before: F::Value,
    text: Option<F::Text>,
    /// Why the document is not alive, if it is not.
    ended: Cause,
}

/// The documents of a worker, and what an epoch has done to them so far.
pub(super) struct Retaining<F: Follow> {
    pub(super) documents: SharedDocuments<F::Value>,
    retention: Retention,
    ids_move: bool,
    /// How many documents there were, alive or ended, when the last epoch was settled.
    places: i64,
    clock: Option<UnixTime>,
    /// In order of place after [`settle`](Self::settle) has sorted them; those of one place in the order of
    /// what happened.
    touched: Vec<Touch<F>>,
    /// What holds of the documents that have come or changed, by id, if that is told.
    told: Option<BTreeMap<DocId, Option<Facts>>>,
    keeps: bool,
    changes: Changes,
    /// Those before them.
    full: Vec<Changes>,
    pub(super) origins: Option<Arc<Origins>>,
    metrics: Arc<Metrics>,
    /// That ids do move is logged once in a run.
    moves_logged: Arc<Once>,
    follow: PhantomData<F>,
}

/// Where what leaves an epoch goes.
pub(super) struct Outputs<'a, F: Follow> {
    pub(super) record: &'a mut dyn FnMut(F::Record),
    pub(super) more: &'a mut dyn FnMut(i64),
    pub(super) reached: &'a mut dyn FnMut(Reached),
}

impl<F: Follow> Retaining<F> {
    /// None yet; the clock stands where an earlier run has left it.
    pub(super) fn new(documents: SharedDocuments<F::Value>, stages: &Stages) -> Self {
        let clock = stages.past.clock.and_then(|time| stages.retention.clock.read(time));
        Self {
            documents,
            retention: stages.retention,
            ids_move: stages.ids_move,
            places: 0,
            clock,
            touched: Vec::new(),
            told: stages.tells_documents.then(BTreeMap::new),
            keeps: stages.keeps,
            changes: Changes::default(),
            full: Vec::new(),
            origins: stages.origins.clone(),
            metrics: Arc::clone(&stages.metrics),
            moves_logged: Arc::clone(&stages.moves_logged),
            follow: PhantomData,
        }
    }

    /// Applies the events of an epoch, whose batches have times up to `clock`, and expires what is too old
    /// after it. How many more slots there are.
    pub(super) fn apply(&mut self, epoch: Epoch, mut arrivals: Vec<Arrival>, clock: Option<UnixTime>) -> i64 {
        // None is before any.
        self.clock = self.clock.max(clock);
        let oldest = self.retention.oldest(self.clock);
        let counts_undated = self.retention.max_age.is_some();
        let shared = Rc::clone(&self.documents);
        let mut documents = shared.borrow_mut();
        documents.begin(epoch);
        let (slots, remembers_ended) = (documents.slots(), documents.remembers_ended());
        let (mut inserted, mut deleted, mut unchanged, mut unknown) = (0, 0, 0, 0);
        let (mut expired, mut late, mut undated, mut replaced) = (0, 0, 0, 0);

        arrivals.sort_unstable_by(|a, b| (a.hash, &a.id, a.position).cmp(&(b.hash, &b.id, b.position)));
        if self.ids_move {
            let moves = overrule(&mut arrivals, &documents);
            self.log_moves(moves);
        }
        let mut arrivals = arrivals.into_iter().peekable();
        while let Some(mut last) = arrivals.next() {
            let mut place = documents.find(last.hash, &last.id);
            let known = place.and_then(|place| documents.get(place)).filter(|known| known.is_alive());
            let before = known.map_or(F::Value::ENDED, |known| known.value);
            // Where what is in force stands, of which the input follows.
            let mut stood = known.map(|known| known.position().offset);
            let mut in_force = before;
            let mut key = last.key();
            let mut is_late;
            loop {
                // What each event of the epoch does is counted as if it stood alone: but for the clock,
                // counts do not depend on the cut.
                let is_upsert = !matches!(last.content, Content::Delete);
                is_late = is_upsert && last.ts.zip(oldest).is_some_and(|(ts, oldest)| ts < oldest);
                let next = if is_late { F::Value::ENDED } else { F::value(&last.content) };
                let (was, is) = (in_force != F::Value::ENDED, next != F::Value::ENDED);
                late += u64::from(is_late && !last.is_restored);
                undated += u64::from(counts_undated && is_upsert && last.ts.is_none() && !last.is_restored);
                match (was, is) {
                    (false, false) => unknown += u64::from(!is_upsert && !last.is_restored),
                    (false, true) => inserted += 1,
                    (true, false) if is_late => expired += 1,
                    (true, false) => deleted += 1,
                    (true, true) => unchanged += u64::from(F::repeats(in_force, next)),
                }
                if let (true, true, Some(origins), Some(earlier)) = (was, is, &self.origins, stood) {
                    replaced += u64::from(origins.replaced(&last.id, earlier, last.position.offset));
                }
                stood = Some(last.position.offset);
                in_force = next;
                let Some(later) = arrivals.next_if(|a| a.id == last.id) else { break };
                if F::TELLS_EACH {
                    // Where nothing was kept so far, there has to be a place to tell of.
                    let here = documents.put(place, &last, key, in_force, epoch);
                    place = Some(here);
                    let (hash, text) = (last.hash, F::text(last.content).filter(|_| !is_late));
                    let ended = ended(is_late);
                    self.touched.push(Touch { hash, place: here, before, text, ended });
                }
                key = key.max(later.key());
                last = later;
            }
            let is_alive = in_force != F::Value::ENDED;
            if place.is_none() && !is_alive && !remembers_ended {
                if last.is_restored && self.keeps {
                    // Too old since it was kept.
                    self.changes.end(last.id.as_bytes());
                }
                continue;
            }
            let place = documents.put(place, &last, key, in_force, epoch);
            if let Some(told) = self.told.as_mut().filter(|_| is_alive) {
                told.insert(last.id.clone(), Some(last.facts()));
            }
            if self.keeps && is_alive {
                if self.changes.len_bytes() >= kept::PARCEL_BYTES {
                    self.full.push(std::mem::take(&mut self.changes));
                }
                let own = Key::of(last.ts, last.position);
                let is_greater =
                    |found: &Key| *found != own && (self.ids_move || documents.slot(place).is_some());
                let greater = documents.key(place).filter(is_greater);
                kept::keep(&last, greater, &mut self.changes);
            }
            if last.is_restored && matches!(last.content, Content::Delete) {
                // It is remembered, and kept already.
                continue;
            }
            if F::TELLS_EACH || before != in_force || !is_alive {
                let (hash, text) = (last.hash, F::text(last.content).filter(|_| is_alive));
                self.touched.push(Touch { hash, place, before, text, ended: ended(is_late) });
            }
        }

        while let Some((place, before)) = oldest.and_then(|oldest| documents.expire(oldest)) {
            expired += u64::from(before != F::Value::ENDED);
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
            (Counter::ReplacedAcrossFiles, replaced),
        ] {
            self.metrics.add(counter, n);
        }
        let more = |n: usize| i64::try_from(n).unwrap_or(i64::MAX);
        more(documents.slots()) - more(slots)
    }

    /// Counts ids that move, and logs one once in a run.
    fn log_moves(&self, Moves { moved, overruled, example }: Moves) {
        self.metrics.add(Counter::MovedIds, moved);
        self.metrics.add(Counter::Overruled, overruled);
        let Some(Example { id, partitions: [one, other] }) = example else { return };
        self.moves_logged.call_once(|| {
            tracing::warn!(
                %id, partition = one, other_partition = other,
                "an id has events in two partitions: partitions were added, or a producer does not choose them by the id; of such ids the \
                 partition with the newest time is followed, and moved_ids counts them"
            );
        });
    }

    /// Gives up the slots with keys up to this one, inclusive.
    pub(super) fn retire(&mut self, last: Key) {
        let mut documents = self.documents.borrow_mut();
        while let Some((place, before)) = documents.take_slot(last) {
            self.metrics.add(Counter::Expired, u64::from(before != F::Value::ENDED));
            self.touched.push(touch(&documents, place, before));
        }
    }

    /// Tells what the epoch has done to each document that it touched, and forgets those that have ended and
    /// have no slot.
    pub(super) fn settle(&mut self, outputs: Outputs<'_, F>) {
        let Outputs { record, more, reached } = outputs;
        let mut documents = self.documents.borrow_mut();
        let mut touched = std::mem::take(&mut self.touched);
        // Stable: what happened to a document stays in order.
        touched.sort_by_key(|touch| touch.place);
        let mut causes = Vec::new();
        let (mut counting, mut more_alive) = (0, 0);
        for group in touched.chunk_by_mut(|a, b| a.place == b.place) {
            let (Some(first), Some(last)) = (group.first(), group.last()) else { continue };
            let (hash, place, before, ended) = (first.hash, first.place, first.before, last.ended);
            let Some(document) = documents.get(place) else { continue };
            let after = document.value;
            let (was, is) = (before != F::Value::ENDED, after != F::Value::ENDED);
            more_alive += i64::from(is) - i64::from(was);
            let cause = match (was, is) {
                (false, true) => Some(Cause::Insert),
                (true, true) => Some(Cause::Update),
                (true, false) => Some(ended),
                (false, false) => None,
            };
            causes.extend(cause.map(|cause| (hash, cause)));
            counting += i64::from(F::counts(after)) - i64::from(F::counts(before));
            let told = Told { place, id: &document.id, before, after };
            F::tell(told, group.iter_mut().map(|touch| touch.text.take()), record);
            if is {
                continue;
            }
            if let Some(changed) = &mut self.told {
                // Who has come and gone within the epoch leaves no trace.
                if was {
                    changed.insert(document.id.clone(), None);
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
        if let Some(changed) = &mut self.told {
            let mut changes = std::mem::take(changed).into_iter().map(|(id, now)| DocChange { id, now });
            loop {
                let parcel: Vec<_> = changes.by_ref().take(PARCEL).collect();
                if parcel.is_empty() {
                    break;
                }
                reached(Reached::Documents(parcel));
            }
        }
        if counting != 0 {
            more(counting);
        }
        if !causes.is_empty() {
            reached(Reached::Causes(causes));
        }
        self.full.drain(..).for_each(|changes| reached(Reached::Kept(changes)));
        if !self.changes.is_empty() {
            reached(Reached::Kept(std::mem::take(&mut self.changes)));
        }
    }
}

/// The retention ends a document, in which `before` was in force.
fn touch<F: Follow>(documents: &Documents<F::Value>, place: u32, before: F::Value) -> Touch<F> {
    let hash = documents.get(place).map_or(0, |document| hash::bytes(0, document.id.as_bytes()));
    Touch { hash, place, before, text: None, ended: Cause::Expire }
}

/// Why a document is not alive after an event, if it is not.
fn ended(is_late: bool) -> Cause {
    if is_late { Cause::Expire } else { Cause::Delete }
}
