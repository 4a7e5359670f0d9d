//! Kept: what a document needs to come back, as the value of its id among [`Changes`].
//!
//! ```text
//! partition u32 | offset u64 | ts f64 (NaN: none) | kind u8 | length u32 | content
//! ```
//!
//! All little-endian. The length is that of the text, and stands there if 64 is added to the kind: by older
//! versions it was not kept, and is taken for 0. A slot has none. Where slots are limited, 128 is added to
//! the kind of a document whose [key](super::key) is that of an earlier event, and the key stands before the
//! length: `when u64 | partition u32 | offset u64`. The content: of kind 0, a text without a token, nothing;
//! of kind 1, a sketch, its words and then the features that are kept with it, 8 bytes each; of kind 2, terms
//! (under live weights a document is sketched again with every table), for each the feature, 8 bytes, and its
//! count, 4; of kind 3, a slot of a document that has ended, nothing. A sketch's id is a hash of its words
//! under the scheme, and is made again.
//!
//! What a document was when its value was made is the last event of its epoch, so that a value is a function
//! of the corpus too.

use super::arrival::{Arrival, Content};
use super::key::Key;
use dupflow_core::doc::changes::Changes;
use dupflow_core::doc::{DocId, Position};
use dupflow_core::hash;
use dupflow_core::sketch::SketchMaker;
use dupflow_core::text::Terms;

/// Bytes after which changes are sent on: enough that what is sent with them does not count.
pub(super) const PARCEL_BYTES: usize = 1 << 18;

/// Added to the kind if a key follows.
const WITH_KEY: u8 = 128;

/// Added to the kind if the length of the text follows.
const WITH_LENGTH: u8 = 64;

/// The kind of a slot of a document that has ended.
const SLOT: u8 = 3;

/// Adds what an arrival, the last of its document in an epoch, leaves to come back from, with the key of a
/// document that has another one than the arrival. Nothing if it comes from there.
pub(super) fn keep(arrival: &Arrival, key: Option<Key>, changes: &mut Changes) {
    if arrival.is_restored {
        return;
    }
    let id = arrival.id.as_str().as_bytes();
    if let Content::Delete = arrival.content {
        changes.end(id);
        return;
    }
    let head = |bytes: &mut Vec<u8>, kind: u8| {
        bytes.extend_from_slice(&arrival.position.partition.to_le_bytes());
        bytes.extend_from_slice(&arrival.position.offset.to_le_bytes());
        bytes.extend_from_slice(&arrival.ts.unwrap_or(f64::NAN).to_le_bytes());
        bytes.push(kind | WITH_LENGTH | if key.is_some() { WITH_KEY } else { 0 });
        key.iter().for_each(|key| bytes.extend_from_slice(&key.to_bytes()));
        bytes.extend_from_slice(&arrival.bytes.to_le_bytes());
    };
    changes.put_with(id, |bytes| match &arrival.content {
        Content::Delete | Content::Empty => head(bytes, 0),
        Content::Sketch(_, sketch) => {
            head(bytes, 1);
            let words = sketch.words.iter().chain(&sketch.features);
            words.for_each(|word| bytes.extend_from_slice(&word.to_le_bytes()));
        }
        Content::Terms(terms) => {
            head(bytes, 2);
            for (feature, count) in terms.ids.iter().zip(&terms.counts) {
                bytes.extend_from_slice(&feature.to_le_bytes());
                bytes.extend_from_slice(&count.to_le_bytes());
            }
        }
    });
}

/// Adds the slot of a document that has ended.
pub(super) fn keep_slot(id: &DocId, key: Key, changes: &mut Changes) {
    changes.put_with(id.as_bytes(), |bytes| {
        bytes.extend_from_slice(&[0; 12]);
        bytes.extend_from_slice(&f64::NAN.to_le_bytes());
        bytes.push(SLOT | WITH_KEY);
        bytes.extend_from_slice(&key.to_bytes());
    });
}

/// The arrival that brings a document back; `None` if the bytes are not what [`keep`] wrote under this
/// scheme.
pub(super) fn restore(id: &[u8], value: &[u8], maker: &SketchMaker) -> Option<Arrival> {
    let id = DocId::new(str::from_utf8(id).ok()?)?;
    let (partition, rest) = value.split_first_chunk()?;
    let (offset, rest) = rest.split_first_chunk()?;
    let (ts, rest) = rest.split_first_chunk()?;
    let (kind, mut content) = rest.split_first()?;
    let mut key = None;
    if kind & WITH_KEY != 0 {
        let (read, behind) = Key::read(content)?;
        (key, content) = (Some(Box::new(read)), behind);
    }
    let mut bytes = 0;
    if kind & WITH_LENGTH != 0 {
        let (read, behind) = content.split_first_chunk()?;
        (bytes, content) = (u32::from_le_bytes(*read), behind);
    }
    let content = match kind & !(WITH_KEY | WITH_LENGTH) {
        0 if content.is_empty() => Content::Empty,
        1 => {
            let (words, []) = content.as_chunks() else { return None };
            let words: Vec<u64> = words.iter().map(|word| u64::from_le_bytes(*word)).collect();
            let (named, sketch) = maker.restore(&words)?;
            Content::Sketch(named, Box::new(sketch))
        }
        2 => {
            let (terms, []) = content.as_chunks::<12>() else { return None };
            let ids = terms.iter().filter_map(|term| term.first_chunk()).map(|n| u64::from_le_bytes(*n));
            let counts = terms.iter().filter_map(|term| term.last_chunk()).map(|n| u32::from_le_bytes(*n));
            Content::Terms(Box::new(Terms { ids: ids.collect(), counts: counts.collect() }))
        }
        SLOT if content.is_empty() && key.is_some() => Content::Delete,
        _ => return None,
    };
    let position =
        Position { partition: u32::from_le_bytes(*partition), offset: u64::from_le_bytes(*offset) };
    let ts = Some(f64::from_le_bytes(*ts)).filter(|ts| !ts.is_nan());
    let hash = hash::bytes(0, id.as_str().as_bytes());
    Some(Arrival { hash, id, position, ts, content, bytes, is_restored: true, key })
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
            blocks: None,
            exact,
        })
    }

    /// Keeps an arrival and brings it back.
    fn again(content: Content, ts: Option<f64>, maker: &SketchMaker) -> Arrival {
        let id = DocId::new("頁/1").unwrap();
        let position = Position { partition: 7, offset: u64::MAX - 1 };
        let mut changes = Changes::default();
        let bytes = u32::MAX - 1;
        let arrival = Arrival { hash: 0, id, position, ts, content, bytes, is_restored: false, key: None };
        keep(&arrival, None, &mut changes);
        let mut with_key = Changes::default();
        let greater = Key::of(Some(9.0), position);
        keep(&arrival, Some(greater), &mut with_key);
        let (of_both, both) = with_key.iter().next().unwrap();
        let back_with_key = restore(of_both, both.unwrap(), maker).unwrap();
        assert_eq!((back_with_key.facts(), back_with_key.key()), (arrival.facts(), greater));
        let (key, value) = changes.iter().next().unwrap();
        let back = restore(key, value.unwrap(), maker).unwrap();
        assert_eq!((back.id.as_str(), back.facts()), ("頁/1", arrival.facts()));
        assert_eq!(back.key(), Key::of(ts, position));
        assert_eq!((back.hash, back.is_restored), (hash::bytes(0, "頁/1".as_bytes()), true));
        for cut in 0..value.unwrap().len() {
            // Fewer features or terms may be those of another text; a value is whole, its file says so.
            // Nothing else comes of a part.
            let left = restore(key, &value.unwrap()[..cut], maker);
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
            let back = again(Content::Sketch(id, Box::new(sketch.clone())), Some(1.5), &maker);
            let Content::Sketch(same, again) = back.content else { panic!("a sketch was kept") };
            assert_eq!((same, *again), (id, sketch));
        }
        assert!(matches!(again(Content::Empty, None, &maker(false)).content, Content::Empty));
        let terms = Terms { ids: [3, u64::MAX].into(), counts: [1, u32::MAX].into() };
        let back = again(Content::Terms(Box::new(terms.clone())), None, &maker(false));
        let Content::Terms(same) = back.content else { panic!("terms were kept") };
        assert_eq!(*same, terms);
    }

    #[test]
    fn the_slot_of_an_ended_document_comes_back_as_a_delete_of_its_key() {
        let (mut changes, id) = (Changes::default(), DocId::new(&"י".repeat(512)).unwrap());
        let key = Key::of(Some(1.25), Position { partition: 3, offset: 4 });
        keep_slot(&id, key, &mut changes);
        let (name, value) = changes.iter().next().unwrap();
        let back = restore(name, value.unwrap(), &maker(false)).unwrap();
        assert!(matches!(back.content, Content::Delete) && back.is_restored);
        assert_eq!((back.id.clone(), back.key()), (id, key));
        for cut in 0..value.unwrap().len() {
            assert!(restore(name, &value.unwrap()[..cut], &maker(false)).is_none(), "{cut}");
        }
    }

    #[test]
    fn a_delete_is_kept_as_an_end_and_other_bytes_bring_nothing_back() {
        let mut changes = Changes::default();
        let id = DocId::new("a").unwrap();
        let position = Position::default();
        let content = Content::Delete;
        let arrival =
            Arrival { hash: 0, id, position, ts: None, content, bytes: 0, is_restored: false, key: None };
        keep(&arrival, None, &mut changes);
        assert_eq!(changes.iter().collect::<Vec<_>>(), [(&b"a"[..], None)]);
        let maker = maker(false);
        let head = [0; 20];
        for (kind, bytes) in [(0, &[1][..]), (1, &[0; 7]), (1, &[0; 8]), (2, &[0; 11]), (3, &[])] {
            assert!(restore(b"a", &[&head[..], &[kind], bytes].concat(), &maker).is_none(), "{kind}");
        }
    }
}
