//! The documents of one worker by id: where the event in force of each stands, when it happened, and what is
//! in force.
//!
//! One operator writes them (`upsert`, or `live` where weights follow the corpus), when an epoch closes;
//! others of the worker may read, by the hash of an id, of which a document's worker knows its share. Between
//! two epochs the store holds the documents alive and, where their number is limited, slots of documents that
//! have ended.
//!
//! 24 bytes of a document are where and when. By [retention](dupflow_core::doc::retention) there are two orders beside:
//! by time, 8 bytes a document, and by key, 8 and 24 a slot. Without it there is none.
//!
//! Where [ids move](super::homes) an ended document stays, as its id and the greatest key of its events,
//! until retention forgets it; a document alive whose greatest key is of another time than its last event's
//! `ts` has that time beside it, others take nothing more.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::arrival::Arrival;
use super::key::Key;
use super::order::Order;
use dupflow_core::doc::retention::Retention;
use dupflow_core::doc::{DocId, Position};
use dupflow_core::memory::{Rows, Slab};
use dupflow_core::time::Epoch;

/// What a document stands for while it is alive: a copy of few bytes, one value of which says that it is not.
pub(super) trait InForce: Copy + PartialEq + 'static {
    /// Not alive.
    const ENDED: Self;
}

/// A document, alive or ended.
#[derive(Debug)]
pub(super) struct Document<V> {
    pub(super) id: DocId,
    // The fields of a position, and a time with NaN for none: side by side they take 24 bytes, as types of
    // their own 36. Of an ended document where ids move, partition and time are those of its greatest key.
    partition: u32,
    /// 0 if it is not known, else the epoch or, from 2^32 - 1 on, that.
    changed: u32,
    offset: u64,
    ts: f64,
    /// What is in force.
    pub(super) value: V,
}

/// See the [module](self).
#[derive(Debug)]
pub(super) struct Documents<V> {
    by_id: Slab<Document<V>>,
    /// The last epoch that was applied, and whether its documents are settled.
    applied: (Epoch, bool),
    /// Those alive that have a time, where they expire by it.
    by_ts: Option<Order>,
    /// All that have slots, where their number is limited.
    slots: Option<Slots>,
    /// Whether ids move between partitions.
    ids_move: bool,
    /// By place, the time of the greatest key (NaN: none) of documents alive, if it is not the `ts` of their
    /// last event; where ids move and have no slots.
    newest: BTreeMap<u32, f64>,
}

/// The order of slots, and by place the key of each.
#[derive(Debug)]
struct Slots {
    order: Order,
    keys: Rows<Key>,
}

/// Documents that one operator writes and others read.
pub(super) type SharedDocuments<V> = Rc<RefCell<Documents<V>>>;

impl<V: InForce> Document<V> {
    /// Where its last event stands.
    pub(super) fn position(&self) -> Position {
        Position { partition: self.partition, offset: self.offset }
    }

    /// When that happened, in unix seconds, if its source says so.
    pub(super) fn ts(&self) -> Option<f64> {
        Some(self.ts).filter(|ts| !ts.is_nan())
    }

    /// The epoch of its last event, of this run; `None` if it was restored and has had none since. Of the
    /// 2^32nd epoch and later ones, 2^32 - 1.
    pub(super) fn changed(&self) -> Option<Epoch> {
        Some(Epoch::from(self.changed)).filter(|epoch| *epoch > 0)
    }

    /// Whether it is alive.
    pub(super) fn is_alive(&self) -> bool {
        self.value != V::ENDED
    }
}

impl<V: InForce> Documents<V> {
    /// None yet, in the orders that a retention asks for.
    pub(super) fn new(retention: &Retention, ids_move: bool) -> Self {
        let slots = || Slots { order: Order::default(), keys: Rows::new(1) };
        Self {
            by_id: Slab::default(),
            applied: (0, true),
            by_ts: retention.max_age.map(|_| Order::default()),
            slots: retention.max_documents.map(|_| slots()),
            ids_move,
            newest: BTreeMap::new(),
        }
    }

    /// What follows is of this epoch, until it is [settled](Self::settle).
    pub(super) fn begin(&mut self, epoch: Epoch) {
        self.applied = (epoch, false);
    }

    /// The documents are those that the epoch leaves.
    pub(super) fn settle(&mut self) {
        self.applied.1 = true;
    }

    /// The epoch that the documents are of; `None` while one is being applied.
    pub(super) fn epoch(&self) -> Option<Epoch> {
        let (epoch, is_settled) = self.applied;
        is_settled.then_some(epoch)
    }

    /// The place of a document that is alive or has a slot; `hash` is that of its id.
    #[inline]
    pub(super) fn find(&self, hash: u64, id: &DocId) -> Option<u32> {
        self.by_id.find(hash, |document| document.id == *id)
    }

    /// The document at a place, if there is one.
    #[inline]
    pub(super) fn get(&self, place: u32) -> Option<&Document<V>> {
        self.by_id.get(place)
    }

    /// A document alive, with its place, by the hash of its id and the id.
    pub(super) fn alive(&self, hash: u64, id: &DocId) -> Option<(u32, &Document<V>)> {
        let place = self.find(hash, id)?;
        self.get(place).filter(|document| document.is_alive()).map(|document| (place, document))
    }

    /// Takes the last event of a document in an epoch, after which `value` is in force, and the greatest key
    /// of its events there; `place` is where it is kept, if it is. Tells where it is now.
    pub(super) fn put(
        &mut self,
        place: Option<u32>,
        last: &Arrival,
        key: Key,
        value: V,
        epoch: Epoch,
    ) -> u32 {
        let Position { partition, offset } = last.position;
        let ts = last.ts.unwrap_or(f64::NAN);
        let changed = if last.is_restored { 0 } else { u32::try_from(epoch).unwrap_or(u32::MAX) };
        let known_key = place.filter(|_| self.remembers_homes()).and_then(|at| self.key(at));
        let newest = known_key.map_or(key, |known| known.max(key));
        let known = place.and_then(|at| Some((at, self.by_id.get_mut(at)?)));
        let here = match known {
            Some((at, document)) => {
                (document.partition, document.offset) = (partition, offset);
                (document.changed, document.ts, document.value) = (changed, ts, value);
                at
            }
            None => {
                let document = Document { id: last.id.clone(), partition, changed, offset, ts, value };
                let new = self.by_id.insert(last.hash, document);
                if let Some(Slots { keys, .. }) = &mut self.slots {
                    if new as usize == keys.len() {
                        keys.push(std::iter::once(key));
                    } else {
                        keys.row_mut(new as usize)[0] = key;
                    }
                }
                new
            }
        };
        if self.remembers_homes() {
            self.set_newest(here, newest);
        }
        let has_ts = self.get(here).is_some_and(|document| !document.ts.is_nan());
        self.order_by_ts(here, has_ts && (value != V::ENDED || self.remembers_homes()));
        if let Some(Slots { order, keys }) = &mut self.slots {
            let greatest = &mut keys.row_mut(here as usize)[0];
            *greatest = key.max(*greatest);
            order.put(here, |a, b| keys.row(a as usize) < keys.row(b as usize));
        }
        here
    }

    /// Whether anything stays of documents that have ended: a slot, or a home.
    pub(super) fn remembers_ended(&self) -> bool {
        self.slots.is_some() || self.remembers_homes()
    }

    /// Whether homes are remembered beside the documents: where ids move and no slot has them.
    fn remembers_homes(&self) -> bool {
        self.ids_move && self.slots.is_none()
    }

    /// Remembers the greatest key of a document's events: beside it while it is alive, else in it.
    fn set_newest(&mut self, place: u32, greatest: Key) {
        let Some(document) = self.by_id.get_mut(place) else { return };
        let newest = greatest.ts().unwrap_or(f64::NAN);
        self.newest.remove(&place);
        if document.value == V::ENDED {
            (document.partition, document.ts) = (greatest.partition(), newest);
        } else if greatest != Key::of(document.ts(), greatest.position()) {
            self.newest.insert(place, newest);
        }
    }

    /// The greatest key of a document's events; without slots, of the partition in which it lives, at any
    /// offset. `None` if there is no document at this place.
    pub(super) fn key(&self, place: u32) -> Option<Key> {
        let document = self.get(place)?;
        if let Some(Slots { keys, .. }) = &self.slots {
            return Some(keys.row(place as usize)[0]);
        }
        let newest = self.newest.get(&place).copied().or(document.ts());
        Some(Key::of(newest, document.position()))
    }

    /// Puts a document into the order by time, where it belongs, or takes it out. What stands there by a time
    /// of before is found by its place.
    fn order_by_ts(&mut self, place: u32, belongs: bool) {
        let Some(order) = &mut self.by_ts else { return };
        let ts = |of: u32| self.by_id.get(of).map_or(f64::NAN, |document| document.ts);
        let older = |a: u32, b: u32| (ts(a), a) < (ts(b), b);
        if belongs {
            order.put(place, older);
        } else {
            order.remove(place, older);
        }
    }

    /// Ends the document that has the least time, if that is less than `oldest`: its place, and what was in
    /// force; one that has ended already is not remembered any more.
    pub(super) fn expire(&mut self, oldest: f64) -> Option<(u32, V)> {
        let place = self.by_ts.as_ref()?.first()?;
        self.get(place).filter(|document| document.ts < oldest)?;
        Some((place, self.end(place)))
    }

    /// A document ends; it keeps its slot. What was in force.
    fn end(&mut self, place: u32) -> V {
        let newest = self.key(place);
        let was = self
            .by_id
            .get_mut(place)
            .map_or(V::ENDED, |document| std::mem::replace(&mut document.value, V::ENDED));
        let stays = newest.filter(|key| self.remembers_homes() && was != V::ENDED && key.ts().is_some());
        if let Some(key) = stays {
            self.set_newest(place, key);
        }
        self.order_by_ts(place, stays.is_some());
        was
    }

    /// How many slots there are.
    pub(super) fn slots(&self) -> usize {
        self.slots.as_ref().map_or(0, |slots| slots.order.len())
    }

    /// The keys of the `count` oldest slots, or of all, in ascending order.
    pub(super) fn oldest(&mut self, count: usize) -> Vec<Key> {
        let Some(Slots { order, keys }) = &mut self.slots else { return Vec::new() };
        let older = |a: u32, b: u32| keys.row(a as usize) < keys.row(b as usize);
        let mut places = Vec::new();
        while places.len() < count
            && let Some(place) = order.first()
        {
            order.remove(place, older);
            places.push(place);
        }
        places.iter().for_each(|place| order.put(*place, older));
        places.into_iter().map(|place| keys.row(place as usize)[0]).collect()
    }

    /// Takes the slot of the oldest key, if that is at most `last`: its place, and what was in force.
    pub(super) fn take_slot(&mut self, last: Key) -> Option<(u32, V)> {
        let Slots { order, keys } = self.slots.as_mut()?;
        let place = order.first().filter(|place| keys.row(*place as usize)[0] <= last)?;
        order.remove(place, |a, b| keys.row(a as usize) < keys.row(b as usize));
        Some((place, self.end(place)))
    }

    /// The key of a slot; `None` if there is none at this place.
    pub(super) fn slot(&self, place: u32) -> Option<Key> {
        let Slots { order, keys } = self.slots.as_ref()?;
        order.holds(place).then(|| keys.row(place as usize)[0])
    }

    /// What is to be remembered of a document that has ended: the key of its slot or, where ids move, the
    /// greatest of its events until that is too old. `None` if nothing is.
    pub(super) fn remembered(&self, place: u32) -> Option<Key> {
        if self.slots.is_some() {
            return self.slot(place);
        }
        let document = self.get(place).filter(|_| self.remembers_homes())?;
        let is_in_time = document.ts.is_nan() || self.by_ts.as_ref().is_none_or(|order| order.holds(place));
        self.key(place).filter(|_| is_in_time)
    }

    /// Documents alive or ended of which something is kept.
    pub(super) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Gives up what is kept at a place, for another document: one that has ended, and is not remembered.
    /// `hash` is that of the id.
    ///
    /// # Panics
    /// If no document with an id of this hash is there.
    pub(super) fn remove(&mut self, hash: u64, place: u32) -> Document<V> {
        self.newest.remove(&place);
        self.by_id.remove(hash, place)
    }
}

#[cfg(test)]
mod tests {
    use super::super::arrival::Content;
    use super::*;
    use dupflow_core::hash;

    impl InForce for u8 {
        const ENDED: Self = 0;
    }

    fn arrival(id: &str, offset: u64, ts: Option<f64>, is_restored: bool) -> Arrival {
        let position = Position { partition: 7, offset };
        let hash = hash::bytes(0, id.as_bytes());
        let id = DocId::new(id).unwrap();
        Arrival { hash, id, position, ts, content: Content::Empty, bytes: 0, is_restored, key: None }
    }

    #[test]
    fn a_document_is_where_and_when_its_last_event_says() {
        assert_eq!(size_of::<Option<Document<dupflow_core::hash::SketchId>>>(), 64);
        let mut documents = Documents::<u8>::new(&Retention::default(), false);
        let long = "頁".repeat(341);
        for id in ["a", "\u{202e}א", &long] {
            let first = arrival(id, 1, None, true);
            assert!(documents.find(first.hash, &first.id).is_none());
            let place = documents.put(None, &first, Key::default(), 3, 9);
            let (_, document) = documents.alive(first.hash, &first.id).unwrap();
            assert_eq!((document.changed(), document.ts(), document.position().offset), (None, None, 1));
            let later = arrival(id, u64::MAX, Some(-0.5), false);
            assert_eq!(documents.put(Some(place), &later, Key::default(), 4, u64::MAX), place);
            let (_, changed) = documents.alive(first.hash, &first.id).unwrap();
            assert_eq!((changed.position(), changed.ts()), (later.position, Some(-0.5)));
            assert_eq!(changed.changed(), Some(u64::from(u32::MAX)));
            documents.put(Some(place), &later, Key::default(), 0, 10);
            assert!(documents.alive(first.hash, &first.id).is_none(), "it has ended");
            assert_eq!(documents.find(first.hash, &first.id), Some(place), "and has a slot");
            assert_eq!(documents.get(place).and_then(Document::changed), Some(10));
            assert_eq!(documents.remove(first.hash, place).id, first.id);
            assert!(documents.find(first.hash, &first.id).is_none());
        }
    }
}
