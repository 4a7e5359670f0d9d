//! The documents of one worker by id: the position and time of each document's last event, and the value in
//! force.
//!
//! One operator writes them when an epoch closes: `upsert`, or `live` where weights follow the corpus. Other
//! operators of the worker may read; a document is stored on the worker that owns the hash of its id. Between
//! two epochs the store holds the live documents and, where their number is limited, slots of documents that
//! have ended.
//!
//! Position and time take 24 bytes of a document. [Retention](dupflow_core::doc::retention) adds two orders:
//! by time, 8 bytes a document, and by key, 8 and 24 bytes a slot. Without retention there is no order.
//!
//! Where [ids move](super::homes) an ended document is stored as its id and the greatest key of its events,
//! until retention forgets it. A live document stores that key's time separately if it differs from the `ts`
//! of its last event; other documents take no extra memory.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::rc::Rc;

use crate::dataflow::documents::arrival::Arrival;
use crate::dataflow::documents::key::EventKey;
use crate::dataflow::documents::order::AgeOrder;
use crate::dataflow::documents::stored::StoredDocuments;
pub(in crate::dataflow) use crate::dataflow::documents::stored::{InForce, StoredDocument};
use crate::dataflow::stages::Stages;
use dupflow_core::doc::fields::FieldRow;
use dupflow_core::doc::retention::Retention;
use dupflow_core::doc::{DocId, Position};
use dupflow_core::memory::Rows;
use dupflow_core::time::Epoch;

/// See the [module](self).
#[derive(Debug)]
pub(in crate::dataflow) struct DocumentStore<V: InForce> {
    by_id: StoredDocuments<V>,
    /// The last epoch that was applied, and whether it is settled.
    applied: (Epoch, bool),
    /// Live documents with a time, where documents expire by age.
    by_ts: Option<AgeOrder>,
    /// The slots, where their number is limited.
    slots: Option<SlotOrder>,
    /// Whether ids move between partitions.
    ids_move: bool,
    /// Whether the corpus is compared with a reference, whose documents take no slots.
    has_reference: bool,
    /// By place, the time (NaN: none) of a live document's greatest key, if it is not the `ts` of its last
    /// event. Used where ids move and have no slots.
    newest: BTreeMap<u32, f64>,
    /// By place, the fields of a live document, where fields are held.
    fields: Option<Rows<FieldRow>>,
}

/// The order of slots, and by place the key of each.
#[derive(Debug)]
struct SlotOrder {
    order: AgeOrder,
    keys: Rows<EventKey>,
}

/// Documents that one operator writes and others read.
pub(in crate::dataflow) type SharedDocuments<V> = Rc<RefCell<DocumentStore<V>>>;

impl<V: InForce> DocumentStore<V> {
    /// An empty store, with the orders that a retention needs.
    pub(in crate::dataflow) fn new(retention: &Retention, ids_move: bool) -> Self {
        let slots = || SlotOrder { order: AgeOrder::default(), keys: Rows::new(1) };
        Self {
            by_id: StoredDocuments::default(),
            applied: (0, true),
            by_ts: retention.max_age.map(|_| AgeOrder::default()),
            slots: retention.max_documents.map(|_| slots()),
            ids_move,
            has_reference: false,
            newest: BTreeMap::new(),
            fields: None,
        }
    }

    /// The store of a run: with its fields, and in memory or spilled.
    pub(in crate::dataflow) fn for_run(stages: &Stages) -> Self {
        let store = Self::new(&stages.retention, stages.ids_move).with_fields(!stages.fields.is_empty());
        let has_reference = stages.scheme.pairs.has_reference();
        Self { by_id: StoredDocuments::new(stages), has_reference, ..store }
    }

    /// The store with fields.
    pub(in crate::dataflow) fn with_fields(self, are_held: bool) -> Self {
        Self { fields: are_held.then(|| Rows::new(1)), ..self }
    }

    /// The fields of a live document; empty where none are held.
    pub(in crate::dataflow) fn fields(&self, place: u32) -> FieldRow {
        let rows = self.fields.as_ref().filter(|rows| (place as usize) < rows.len());
        rows.map_or_else(FieldRow::default, |rows| rows.row(place as usize)[0].clone())
    }

    fn set_fields(&mut self, place: u32, row: FieldRow) {
        let Some(rows) = &mut self.fields else { return };
        while rows.len() <= place as usize {
            rows.push(std::iter::once(FieldRow::default()));
        }
        rows.row_mut(place as usize)[0] = row;
    }

    /// Starts to apply an epoch, until [`settle`](Self::settle).
    pub(in crate::dataflow) fn begin(&mut self, epoch: Epoch) {
        self.applied = (epoch, false);
    }

    /// Ends the changes of the epoch.
    pub(in crate::dataflow) fn settle(&mut self) {
        self.applied.1 = true;
    }

    /// The epoch that the documents are of; `None` while one is being applied.
    pub(in crate::dataflow) fn epoch(&self) -> Option<Epoch> {
        let (epoch, is_settled) = self.applied;
        is_settled.then_some(epoch)
    }

    /// The place of a document that is alive or has a slot; `hash` is that of its id.
    #[inline]
    pub(in crate::dataflow) fn find(&self, hash: u64, id: &DocId) -> Option<u32> {
        self.by_id.find(hash, id)
    }

    /// Prepares look-ups of documents with these hashes, until the next call. Every document that is found,
    /// read or changed was named in the last call.
    pub(in crate::dataflow) fn fetch(&mut self, hashes: impl Iterator<Item = u64>) {
        self.by_id.fetch(hashes);
    }

    /// Prefetch for documents of these hashes that are found or stored next.
    pub(in crate::dataflow) fn prefetch(&self, hashes: impl Iterator<Item = u64>) {
        self.by_id.prefetch(hashes);
    }

    /// The document at a place, if there is one.
    #[inline]
    pub(in crate::dataflow) fn get(&self, place: u32) -> Option<&StoredDocument<V>> {
        self.by_id.get(place)
    }

    /// A live document and its place, by the hash of its id and the id.
    pub(in crate::dataflow) fn alive(&self, hash: u64, id: &DocId) -> Option<(u32, &StoredDocument<V>)> {
        let place = self.find(hash, id)?;
        self.get(place).filter(|document| document.is_alive()).map(|document| (place, document))
    }

    /// Stores the last event of a document in an epoch. `key` is the greatest key of its events there,
    /// `value` the value in force after it, `place` the document's place if it has one. Returns its place.
    pub(in crate::dataflow) fn put(
        &mut self,
        place: Option<u32>,
        last: &Arrival,
        key: EventKey,
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
                let document = StoredDocument { id: last.id.clone(), partition, changed, offset, ts, value };
                let new = self.by_id.insert(last.hash, document);
                if let Some(SlotOrder { keys, .. }) = &mut self.slots {
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
        let is_alive = value != V::ENDED;
        self.set_fields(here, if is_alive { last.fields.clone() } else { FieldRow::default() });
        let has_ts = self.get(here).is_some_and(|document| !document.ts.is_nan());
        self.order_by_ts(here, has_ts && (is_alive || self.remembers_homes()));
        if let Some(SlotOrder { order, keys }) = &mut self.slots {
            let greatest = &mut keys.row_mut(here as usize)[0];
            *greatest = key.max(*greatest);
            if !(self.has_reference && last.id.is_of_reference()) {
                order.put(here, |a, b| keys.row(a as usize) < keys.row(b as usize));
            }
        }
        here
    }

    /// Whether ended documents leave something behind: a slot, or a home.
    pub(in crate::dataflow) fn remembers_ended(&self) -> bool {
        self.slots.is_some() || self.remembers_homes()
    }

    /// Whether homes are stored apart from slots: where ids move and there are no slots.
    fn remembers_homes(&self) -> bool {
        self.ids_move && self.slots.is_none()
    }

    /// Stores the greatest key of a document's events: in `newest` while it is alive, else in the document.
    fn set_newest(&mut self, place: u32, greatest: EventKey) {
        let Some(document) = self.by_id.get_mut(place) else { return };
        let newest = greatest.ts().unwrap_or(f64::NAN);
        self.newest.remove(&place);
        if document.value == V::ENDED {
            (document.partition, document.ts) = (greatest.partition(), newest);
        } else if greatest != EventKey::new(document.ts(), greatest.position()) {
            self.newest.insert(place, newest);
        }
    }

    /// The greatest key of a document's events. Without slots: of the events in its home partition, at any
    /// offset. `None` if there is no document at this place.
    pub(in crate::dataflow) fn key(&self, place: u32) -> Option<EventKey> {
        let document = self.get(place)?;
        if let Some(SlotOrder { keys, .. }) = &self.slots {
            return Some(keys.row(place as usize)[0]);
        }
        let newest = self.newest.get(&place).copied().or(document.ts());
        Some(EventKey::new(newest, document.position()))
    }

    /// Inserts a document into the order by time, or updates it, if it `belongs` there; else removes it. An
    /// entry with an older time is found by its place.
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

    /// Ends the document with the least time, if that is less than `oldest`. Returns its place and the value
    /// that was in force. A document that had ended already is no longer remembered.
    pub(in crate::dataflow) fn expire(&mut self, oldest: f64) -> Option<(u32, V)> {
        let place = self.by_ts.as_ref()?.first()?;
        self.get(place).filter(|document| document.ts < oldest)?;
        Some((place, self.end(place)))
    }

    /// Ends a document, which keeps its slot. Returns the value that was in force.
    fn end(&mut self, place: u32) -> V {
        let newest = self.key(place);
        self.set_fields(place, FieldRow::default());
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

    /// The number of slots.
    pub(in crate::dataflow) fn slots(&self) -> usize {
        self.slots.as_ref().map_or(0, |slots| slots.order.len())
    }

    /// The keys of the `count` oldest slots, or of all if there are fewer, in ascending order.
    pub(in crate::dataflow) fn oldest(&mut self, count: usize) -> Vec<EventKey> {
        let Some(SlotOrder { order, keys }) = &mut self.slots else { return Vec::new() };
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

    /// Removes the slot with the oldest key, if that is at most `last`, and ends its document. Returns the
    /// place and the value that was in force.
    pub(in crate::dataflow) fn take_slot(&mut self, last: EventKey) -> Option<(u32, V)> {
        let SlotOrder { order, keys } = self.slots.as_mut()?;
        let place = order.first().filter(|place| keys.row(*place as usize)[0] <= last)?;
        order.remove(place, |a, b| keys.row(a as usize) < keys.row(b as usize));
        Some((place, self.end(place)))
    }

    /// The key of a slot; `None` if there is no slot at this place.
    pub(in crate::dataflow) fn slot(&self, place: u32) -> Option<EventKey> {
        let SlotOrder { order, keys } = self.slots.as_ref()?;
        order.holds(place).then(|| keys.row(place as usize)[0])
    }

    /// What must be remembered of an ended document: the key of its slot or, where ids move, the greatest key
    /// of its events until that is too old. `None` if nothing must be.
    pub(in crate::dataflow) fn remembered(&self, place: u32) -> Option<EventKey> {
        if self.slots.is_some() {
            return self.slot(place);
        }
        let document = self.get(place).filter(|_| self.remembers_homes())?;
        let is_in_time = document.ts.is_nan() || self.by_ts.as_ref().is_none_or(|order| order.holds(place));
        self.key(place).filter(|_| is_in_time)
    }

    /// The number of documents, alive or ended, of which something is stored.
    pub(in crate::dataflow) fn len(&self) -> usize {
        self.by_id.len()
    }

    /// Frees the place of a document that has ended and is not remembered. `hash` is that of its id.
    ///
    /// # Panics
    /// If the place holds no document with this hash.
    pub(in crate::dataflow) fn remove(&mut self, hash: u64, place: u32) -> StoredDocument<V> {
        self.newest.remove(&place);
        self.by_id.remove(hash, place)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::documents::arrival::ArrivalContent;
    use dupflow_core::hash;

    impl InForce for u8 {
        const ENDED: Self = 0;

        fn to_word(self) -> u64 {
            self.into()
        }

        fn from_word(word: u64) -> Self {
            Self::try_from(word).unwrap()
        }
    }

    fn arrival(id: &str, offset: u64, ts: Option<f64>, is_restored: bool) -> Arrival {
        let position = Position { partition: 7, offset };
        let hash = hash::bytes(0, id.as_bytes());
        let id = DocId::new(id).unwrap();
        let (content, fields) = (ArrivalContent::Empty, FieldRow::new([id.as_str()]));
        Arrival { hash, id, position, ts, content, bytes: 0, is_restored, key: None, fields }
    }

    #[test]
    fn a_document_is_where_and_when_its_last_event_says() {
        assert_eq!(size_of::<Option<StoredDocument<crate::dataflow::upsert::SketchHalf>>>(), 56);
        let mut documents = DocumentStore::<u8>::new(&Retention::default(), false).with_fields(true);
        let long = "頁".repeat(341);
        for id in ["a", "\u{202e}א", &long] {
            let first = arrival(id, 1, None, true);
            assert!(documents.find(first.hash, &first.id).is_none());
            let place = documents.put(None, &first, EventKey::default(), 3, 9);
            let (_, document) = documents.alive(first.hash, &first.id).unwrap();
            assert_eq!((document.changed(), document.ts(), document.position().offset), (None, None, 1));
            let later = arrival(id, u64::MAX, Some(-0.5), false);
            assert_eq!(documents.put(Some(place), &later, EventKey::default(), 4, u64::MAX), place);
            let (_, changed) = documents.alive(first.hash, &first.id).unwrap();
            assert_eq!((changed.position(), changed.ts()), (later.position, Some(-0.5)));
            assert_eq!(changed.changed(), Some(u64::from(u32::MAX)));
            assert_eq!(documents.fields(place).get(0), id);
            documents.put(Some(place), &later, EventKey::default(), 0, 10);
            assert!(documents.fields(place).is_empty());
            assert!(documents.alive(first.hash, &first.id).is_none(), "it has ended");
            assert_eq!(documents.find(first.hash, &first.id), Some(place), "and has a slot");
            assert_eq!(documents.get(place).and_then(StoredDocument::changed), Some(10));
            assert_eq!(documents.remove(first.hash, place).id, first.id);
            assert!(documents.find(first.hash, &first.id).is_none());
        }
    }
}
