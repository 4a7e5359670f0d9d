//! Kept: the value from which a later run restores a document, stored by id in [`Changes`].
//!
//! ```text
//! partition u32 | offset u64 | ts f64 (NaN: none) | kind u8 | key | length u32 | fields | content
//! ```
//!
//! All little-endian. Three parts are optional, and a number added to the kind says that they are there:
//!
//! | part | added | |
//! |---|---|---|
//! | key | 128 | `when u64`, `partition u32`, `offset u64`; where the document's [key](crate::dataflow::documents::key) is that of an earlier event, and in slots |
//! | length | 64 | of the text, in bytes; older versions did not store it, and it is then read as 0; slots have none |
//! | fields | 32 | length in bytes `u32`, then the [joined](FieldRow::joined) values, UTF-8; where one is not empty |
//!
//! The content by kind:
//!
//! | kind | document | content |
//! |---|---|---|
//! | 0 | a text without a token | nothing |
//! | 1 | a sketch | its words, then the features that are kept with it, 8 bytes each |
//! | 2 | terms (under live weights, which sketch a document again with every table) | for each term the feature, 8 bytes, and its count, 4 |
//! | 3 | a slot of a document that has ended | nothing |
//!
//! The id of a sketch is a hash of its words under the scheme, and is computed again.
//!
//! A value describes the last event of its document in an epoch, so it is a function of the corpus too.

use crate::dataflow::documents::arrival::{Arrival, ArrivalContent};
use crate::dataflow::documents::key::EventKey;
use dupflow_core::doc::changes::Changes;
use dupflow_core::doc::fields::FieldRow;
use dupflow_core::doc::{DocId, Position};
use dupflow_core::hash;
use dupflow_core::sketch::SketchMaker;
use dupflow_core::text::Terms;

/// Bytes after which changes are sent: enough to make the cost of each record negligible.
pub(in crate::dataflow) const PARCEL_BYTES: usize = 1 << 18;

/// Added to the kind if a key follows.
const WITH_KEY: u8 = 128;

/// Added to the kind if the length of the text follows.
const WITH_LENGTH: u8 = 64;

/// Added to the kind if fields follow.
const WITH_FIELDS: u8 = 32;

/// Bytes of partition, offset, time and kind.
const HEAD_BYTES: usize = 21;

/// The kind of a slot of a document that has ended.
const SLOT: u8 = 3;

/// The kind of terms of which one has a count above 32 bits.
const LONG_COUNTS: u8 = 4;

/// Adds the value of an arrival, the last one of its document in an epoch. `key` is the document's key if it
/// differs from the arrival's. Adds nothing for a restored arrival.
pub(in crate::dataflow) fn keep(arrival: &Arrival, key: Option<EventKey>, changes: &mut Changes) {
    if arrival.is_restored {
        return;
    }
    let id = arrival.id.as_str().as_bytes();
    if let ArrivalContent::Delete = arrival.content {
        changes.end(id);
        return;
    }
    let head = |bytes: &mut Vec<u8>, kind: u8| {
        bytes.extend_from_slice(&arrival.position.partition.to_le_bytes());
        bytes.extend_from_slice(&arrival.position.offset.to_le_bytes());
        bytes.extend_from_slice(&arrival.ts.unwrap_or(f64::NAN).to_le_bytes());
        let fields = arrival.fields.joined();
        let with = |is_there: bool, part: u8| if is_there { part } else { 0 };
        let parts = WITH_LENGTH | with(key.is_some(), WITH_KEY) | with(!fields.is_empty(), WITH_FIELDS);
        bytes.push(kind | parts);
        key.iter().for_each(|key| bytes.extend_from_slice(&key.to_bytes()));
        bytes.extend_from_slice(&arrival.bytes.to_le_bytes());
        if !fields.is_empty() {
            // A value of a field is short, and a record cannot be as long as 4 GiB.
            bytes.extend_from_slice(&u32::try_from(fields.len()).unwrap_or(u32::MAX).to_le_bytes());
            bytes.extend_from_slice(fields.as_bytes());
        }
    };
    changes.put_with(id, |bytes| match &arrival.content {
        ArrivalContent::Delete | ArrivalContent::Empty | ArrivalContent::Weightless => head(bytes, 0),
        ArrivalContent::Sketch(_, sketch) => {
            head(bytes, 1);
            let words = sketch.words.iter().chain(&sketch.features);
            words.for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        }
        ArrivalContent::Terms(terms) => {
            // Counts of up to 32 bits are as earlier versions kept them.
            let short: Option<Vec<u32>> =
                terms.counts.iter().map(|count| u32::try_from(*count).ok()).collect();
            head(bytes, if short.is_some() { 2 } else { LONG_COUNTS });
            for (place, (feature, count)) in terms.ids.iter().zip(&terms.counts).enumerate() {
                bytes.extend_from_slice(&feature.to_le_bytes());
                match &short {
                    Some(short) => bytes.extend_from_slice(&short[place].to_le_bytes()),
                    None => bytes.extend_from_slice(&count.to_le_bytes()),
                }
            }
        }
        ArrivalContent::Units(_) => unreachable!("no state has documents that are cut into units"),
    });
}

/// Adds the slot of a document that has ended.
pub(in crate::dataflow) fn keep_slot(id: &DocId, key: EventKey, changes: &mut Changes) {
    changes.put_with(id.as_bytes(), |bytes| {
        bytes.extend_from_slice(&[0; 12]);
        bytes.extend_from_slice(&f64::NAN.to_le_bytes());
        bytes.push(SLOT | WITH_KEY);
        bytes.extend_from_slice(&key.to_bytes());
    });
}

/// Whether a value is the slot of a document that has ended.
pub fn is_kept_slot(value: &[u8]) -> bool {
    value.get(HEAD_BYTES - 1).is_some_and(|kind| kind & !(WITH_KEY | WITH_LENGTH | WITH_FIELDS) == SLOT)
}

/// The position of the event for which a value was kept; of a slot, the position in its key. `None` if the
/// bytes are not what a run kept.
pub fn kept_position(value: &[u8]) -> Option<Position> {
    let (partition, rest) = value.split_first_chunk()?;
    let (offset, rest) = rest.split_first_chunk()?;
    let (_ts, rest) = rest.split_first_chunk::<8>()?;
    let (_kind, content) = rest.split_first()?;
    if is_kept_slot(value) {
        return EventKey::read(content).map(|(key, _)| key.position());
    }
    Some(Position { partition: u32::from_le_bytes(*partition), offset: u64::from_le_bytes(*offset) })
}

/// Decodes a document's arrival; `None` if the bytes are not what [`keep`] wrote under this scheme.
pub(in crate::dataflow) fn restore(id: &[u8], value: &[u8], maker: &SketchMaker) -> Option<Arrival> {
    let id = DocId::new(str::from_utf8(id).ok()?)?;
    let (partition, rest) = value.split_first_chunk()?;
    let (offset, rest) = rest.split_first_chunk()?;
    let (ts, rest) = rest.split_first_chunk()?;
    let (kind, mut content) = rest.split_first()?;
    let mut key = None;
    if kind & WITH_KEY != 0 {
        let (read, behind) = EventKey::read(content)?;
        (key, content) = (Some(Box::new(read)), behind);
    }
    let mut bytes = 0;
    if kind & WITH_LENGTH != 0 {
        let (read, behind) = content.split_first_chunk()?;
        (bytes, content) = (u32::from_le_bytes(*read), behind);
    }
    let mut fields = FieldRow::default();
    if kind & WITH_FIELDS != 0 {
        let (length, behind) = content.split_first_chunk()?;
        let (joined, behind) = behind.split_at_checked(u32::from_le_bytes(*length) as usize)?;
        (fields, content) = (FieldRow::from_joined(str::from_utf8(joined).ok()?), behind);
    }
    let content = match kind & !(WITH_KEY | WITH_LENGTH | WITH_FIELDS) {
        0 if content.is_empty() => ArrivalContent::Empty,
        1 => {
            let (words, []) = content.as_chunks() else { return None };
            let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
            let (named, sketch) = maker.restore(&words)?;
            ArrivalContent::Sketch(named, Box::new(sketch))
        }
        2 => {
            let (terms, []) = content.as_chunks::<12>() else { return None };
            let ids = terms.iter().filter_map(|term| term.first_chunk()).map(|n| u64::from_le_bytes(*n));
            let counts = terms.iter().filter_map(|term| term.last_chunk()).map(|n| u32::from_le_bytes(*n));
            let counts = counts.map(u64::from).collect();
            ArrivalContent::Terms(Box::new(Terms { ids: ids.collect(), counts }))
        }
        LONG_COUNTS => {
            let (terms, []) = content.as_chunks::<16>() else { return None };
            let (ids, counts): (Vec<u64>, Vec<u64>) = terms
                .iter()
                .filter_map(|term| Some((term.first_chunk()?, term.last_chunk()?)))
                .map(|(term, count)| (u64::from_le_bytes(*term), u64::from_le_bytes(*count)))
                .unzip();
            ArrivalContent::Terms(Box::new(Terms { ids: ids.into(), counts: counts.into() }))
        }
        SLOT if content.is_empty() && key.is_some() => ArrivalContent::Delete,
        _ => return None,
    };
    let position =
        Position { partition: u32::from_le_bytes(*partition), offset: u64::from_le_bytes(*offset) };
    let ts = Some(f64::from_le_bytes(*ts)).filter(|ts| !ts.is_nan());
    let hash = hash::bytes(0, id.as_str().as_bytes());
    Some(Arrival { hash, id, position, ts, content, bytes, is_restored: true, key, fields })
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::sketch::{Scheme, SketchKind, SketchParams, VERSION};
    use dupflow_core::text::TextRules;

    fn maker(exact: bool) -> SketchMaker {
        let sketch = SketchParams { kind: SketchKind::Fss, size: 128, bits: 4, wide: 0, seed: 0 };
        SketchMaker::new(&Scheme {
            version: VERSION,
            text: TextRules::default(),
            sketch,
            exact,
            ..Scheme::default()
        })
    }

    /// Keeps an arrival and restores it.
    fn again(content: ArrivalContent, ts: Option<f64>, maker: &SketchMaker) -> Arrival {
        let id = DocId::new("頁/1").unwrap();
        let position = Position { partition: 7, offset: u64::MAX - 1 };
        let mut changes = Changes::default();
        let bytes = u32::MAX - 1;
        let is_empty = matches!(content, ArrivalContent::Empty);
        let fields = if is_empty { FieldRow::default() } else { FieldRow::new(["a", "", "頁"]) };
        let (hash, is_restored, key) = (0, false, None);
        let arrival = Arrival { hash, id, position, ts, content, bytes, is_restored, key, fields };
        keep(&arrival, None, &mut changes);
        let mut with_key = Changes::default();
        let greater = EventKey::new(Some(9.0), position);
        keep(&arrival, Some(greater), &mut with_key);
        let (of_both, both) = with_key.iter().next().unwrap();
        let back_with_key = restore(of_both, both.unwrap(), maker).unwrap();
        assert_eq!((back_with_key.facts(), back_with_key.key()), (arrival.facts(), greater));
        assert_eq!(back_with_key.fields, arrival.fields);
        let (name, kept) = changes.iter().next().unwrap();
        let back = restore(name, kept.unwrap(), maker).unwrap();
        assert!(!is_kept_slot(kept.unwrap()));
        assert_eq!((back.id.as_str(), back.facts()), ("頁/1", arrival.facts()));
        assert_eq!([kept, both].map(|value| kept_position(value.unwrap())), [Some(position); 2]);
        let mut slot = Changes::default();
        keep_slot(&arrival.id, greater, &mut slot);
        assert_eq!(kept_position(slot.iter().next().unwrap().1.unwrap()), Some(position));
        assert_eq!(back.fields, arrival.fields);
        assert_eq!(back.key(), EventKey::new(ts, position));
        assert_eq!((back.hash, back.is_restored), (hash::bytes(0, "頁/1".as_bytes()), true));
        for cut in 0..kept.unwrap().len() {
            // A truncated value may decode as one with fewer features or terms; its file guarantees that
            // values are complete. No other truncation decodes.
            let left = restore(name, &kept.unwrap()[..cut], maker);
            assert!(left.is_none_or(|left| left.position == position), "{cut}");
        }
        keep(&back, None, &mut changes);
        assert_eq!(changes.iter().count(), 1, "what was restored is kept already");
        back
    }

    #[test]
    fn documents_come_back_as_they_were() {
        for exact in [false, true] {
            let mut maker = maker(exact);
            let (id, sketch) = maker.sketch("some words that are more than three, 日本語も ✨").unwrap();
            let back = again(ArrivalContent::Sketch(id, Box::new(sketch.clone())), Some(1.5), &maker);
            let ArrivalContent::Sketch(same, again) = back.content else { panic!("a sketch was kept") };
            assert_eq!((same, *again), (id, sketch));
        }
        assert!(matches!(again(ArrivalContent::Empty, None, &maker(false)).content, ArrivalContent::Empty));
        // Counts of up to 32 bits as earlier versions kept them, in twelve bytes a term, and longer ones.
        for (counts, bytes) in [([1, u32::MAX.into()], 12), ([1, 1 << 32], 16), ([u64::MAX, 7], 16)] {
            let terms = Terms { ids: [3, u64::MAX].into(), counts: counts.into() };
            let content = || ArrivalContent::Terms(Box::new(terms.clone()));
            let back = again(content(), None, &maker(false));
            let ArrivalContent::Terms(same) = &back.content else { panic!("terms were kept") };
            assert_eq!(**same, terms);
            let lengths = [content(), ArrivalContent::Empty].map(|content| {
                let mut changes = Changes::default();
                keep(&Arrival { content, is_restored: false, ..back.clone() }, None, &mut changes);
                changes.iter().filter_map(|(_, value)| value).map(<[u8]>::len).sum::<usize>()
            });
            assert_eq!(lengths[0] - lengths[1], 2 * bytes, "{counts:?}");
        }
    }

    #[test]
    fn the_slot_of_an_ended_document_comes_back_as_a_delete_of_its_key() {
        let (mut changes, id) = (Changes::default(), DocId::new(&"י".repeat(512)).unwrap());
        let key = EventKey::new(Some(1.25), Position { partition: 3, offset: 4 });
        keep_slot(&id, key, &mut changes);
        let (name, value) = changes.iter().next().unwrap();
        let back = restore(name, value.unwrap(), &maker(false)).unwrap();
        assert!(matches!(back.content, ArrivalContent::Delete) && back.is_restored);
        assert_eq!((back.id.clone(), back.key()), (id, key));
        assert_eq!(kept_position(value.unwrap()), Some(key.position()));
        assert!(is_kept_slot(value.unwrap()));
        for cut in 0..value.unwrap().len() {
            assert!(restore(name, &value.unwrap()[..cut], &maker(false)).is_none(), "{cut}");
        }
    }

    #[test]
    fn a_delete_is_kept_as_an_end_and_other_bytes_bring_nothing_back() {
        let mut changes = Changes::default();
        let id = DocId::new("a").unwrap();
        let position = Position::default();
        let (content, fields) = (ArrivalContent::Delete, FieldRow::default());
        let (ts, key, is_restored) = (None, None, false);
        let arrival = Arrival { hash: 0, id, position, ts, content, bytes: 0, is_restored, key, fields };
        keep(&arrival, None, &mut changes);
        assert_eq!(changes.iter().collect::<Vec<_>>(), [(&b"a"[..], None)]);
        let maker = maker(false);
        let head = [0; 20];
        for (kind, bytes) in [(0, &[1][..]), (1, &[0; 7]), (1, &[0; 8]), (2, &[0; 11]), (3, &[])] {
            assert!(restore(b"a", &[&head[..], &[kind], bytes].concat(), &maker).is_none(), "{kind}");
        }
    }
}
