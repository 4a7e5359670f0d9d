//! Homes: the partition that decides an id's last event, where ids move between the partitions of a topic.
//!
//! Partitions have no common order in time. A producer that takes the partition from a hash of the key writes
//! the later events of many ids to other partitions once partitions are added. The rule: the home of an id is
//! the partition of its event with the greatest [key](super::key) (time, then partition). The last event in
//! the home, by offset, is the last event of the id. Events of the id in every other partition are
//! **overruled**: they change nothing. The time is that of the record, which its producer's clock or the
//! broker's gives to upserts and deletes alike. A row's `ts` is not used: an update may leave it unchanged,
//! and a tombstone has none.
//!
//! **The result is a function of the events, in whatever order partitions are read.** A key is a maximum.
//! When the greatest event of an id has been read, its partition is the home. No later event is greater, so
//! the home stays, and its further events are applied in the order of their offsets. Events applied or
//! overruled before do not matter any more. Within one partition the time does not matter either: a clock
//! that jumps back overrules nothing there.
//!
//! **What must be remembered** is the home and the greatest time of each id, of deleted ids too. Otherwise an
//! older event in another partition, read later, would restore a deleted document. They are remembered until
//! an event that is not overruled restores the id, or until retention forgets them:
//!
//! - by age: with t the greatest time of an id and t < clock - max_age, every event that it could overrule is
//!   of an older record, and so too late to be alive, unless its row's `ts` is after its record's time;
//! - by number: the [slots](dupflow_core::doc::retention) remember homes, and are ordered by the same keys.
//!   With another order, an event that a forgotten home overruled could take a slot again;
//! - without retention: forever.
//!
//! What it does not do: correct clocks. An id whose newest time was written to its old partition keeps that
//! home until an event elsewhere is newer. Where no event has a time, the greatest partition is the home.

use crate::dataflow::documents::arrival::Arrival;
use crate::dataflow::documents::key::EventKey;
use crate::dataflow::documents::store::{DocumentStore, InForce};
use dupflow_core::doc::DocId;

/// Counts of moving ids.
#[derive(Debug, Default, PartialEq)]
pub(in crate::dataflow) struct Moves {
    /// Events that moved an id to another partition.
    pub(in crate::dataflow) moved: u64,
    /// Events that changed nothing, since their id has a newer event in another partition.
    pub(in crate::dataflow) overruled: u64,
    /// An id that was moved or overruled.
    pub(in crate::dataflow) example: Option<Example>,
}

/// An id in two partitions.
#[derive(Debug, PartialEq)]
pub(in crate::dataflow) struct Example {
    pub(in crate::dataflow) id: DocId,
    pub(in crate::dataflow) partitions: [u32; 2],
}

/// Removes the overruled events of an epoch. `arrivals` are sorted by id and then by position; `documents`
/// are those before the epoch.
pub(in crate::dataflow) fn overrule<V: InForce>(
    arrivals: &mut Vec<Arrival>,
    documents: &DocumentStore<V>,
) -> Moves {
    let mut moves = Moves::default();
    let mut out = Vec::new();
    let mut at: usize = 0;
    for events in arrivals.chunk_by(|a, b| a.id == b.id) {
        let before = documents.find(events[0].hash, &events[0].id).and_then(|place| documents.key(place));
        let mut home: Option<EventKey> = before;
        for event in events {
            let key = event.key();
            if let Some(current) = home.filter(|home| home.partition() != key.partition()) {
                let partitions = [current.partition(), key.partition()];
                moves.example.get_or_insert_with(|| Example { id: event.id.clone(), partitions });
                if key < current {
                    moves.overruled += 1;
                    out.push(at);
                } else {
                    moves.moved += 1;
                }
            }
            home = home.max(Some(key));
            at += 1;
        }
    }
    if !out.is_empty() {
        let (mut places, mut left_out) = (0.., out.into_iter().peekable());
        arrivals.retain(|_| places.next().is_none_or(|place| left_out.next_if_eq(&place).is_none()));
    }
    moves
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::dataflow::documents::arrival::ArrivalContent;
    use crate::dataflow::documents::store::DocumentStore;
    use dupflow_core::doc::Position;
    use dupflow_core::doc::fields::FieldRow;
    use dupflow_core::doc::retention::Retention;
    use dupflow_core::hash;

    fn event(id: &str, partition: u32, offset: u64, ts: Option<f64>) -> Arrival {
        let hash = hash::bytes(0, id.as_bytes());
        let (id, position) = (DocId::new(id).unwrap(), Position { partition, offset });
        let (content, is_restored) = (ArrivalContent::Empty, false);
        let fields = FieldRow::default();
        Arrival { hash, id, position, ts, content, bytes: 0, is_restored, key: None, fields }
    }

    /// The remaining events, as partition and offset, and the counts.
    fn left(mut events: Vec<Arrival>, documents: &DocumentStore<u8>) -> (Vec<(u32, u64)>, Moves) {
        let moves = overrule(&mut events, documents);
        (events.iter().map(|event| (event.position.partition, event.position.offset)).collect(), moves)
    }

    #[test]
    fn the_partition_of_the_newest_event_decides_and_within_one_the_offset() {
        let none = DocumentStore::<u8>::new(&Retention::default(), true);
        let a = |partition, offset, ts| event("a", partition, offset, Some(ts));
        // A clock that jumps back within a partition overrules nothing.
        let back = vec![a(0, 1, 9.0), a(0, 2, 3.0), a(0, 3, 5.0)];
        assert_eq!(left(back, &none), (vec![(0, 1), (0, 2), (0, 3)], Moves::default()));
        let (kept, moves) = left(vec![a(0, 1, 9.0), a(0, 2, 3.0), a(1, 7, 5.0), a(2, 0, 9.0)], &none);
        assert_eq!(kept, [(0, 1), (0, 2), (2, 0)], "of equal times the later partition's");
        assert_eq!((moves.moved, moves.overruled), (1, 1));
        let example = moves.example.unwrap();
        assert_eq!((example.id.as_str(), example.partitions), ("a", [0, 1]));
        let undated = vec![a(5, 1, 2.0), a(6, 1, 1.0), event("a", 7, 1, None)];
        let (stays, none_moved) = left(undated, &none);
        assert_eq!(
            (stays, none_moved.moved, none_moved.overruled),
            (vec![(5, 1)], 0, 2),
            "no time is before any"
        );
        let ids = vec![event("a", 0, 1, None), event("b", 1, 1, None)];
        assert_eq!(left(ids, &none).1, Moves::default(), "each has its own home");
    }

    #[test]
    fn what_has_ended_and_what_was_newest_are_remembered() {
        let mut documents = DocumentStore::<u8>::new(&Retention::default(), true);
        let a = |partition, offset, ts| event("a", partition, offset, Some(ts));
        let mut put = |last: &Arrival, value| {
            let place = documents.find(last.hash, &last.id);
            documents.put(place, last, last.key(), value, 1);
            let ruled = |event| left(vec![event], &documents).1.overruled;
            [ruled(a(1, 0, 8.5)), ruled(a(0, 9, 1.0)), ruled(a(1, 0, 9.5))]
        };
        assert_eq!(put(&a(0, 1, 9.0), 3), [1, 0, 0]);
        assert_eq!(put(&a(0, 2, 4.0), 3), [1, 0, 0], "the last event is not the newest");
        assert_eq!(put(&a(0, 3, 5.0), 0), [1, 0, 0], "it has ended");
        assert_eq!(put(&a(0, 4, 5.0), 3), [1, 0, 0], "and is alive again");
        assert_eq!(put(&a(1, 1, 10.0), 0), [0, 1, 0], "it has moved");
    }
}
