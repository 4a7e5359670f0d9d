//! The encoded records of one commit, kept until it is durable: it may have to be written more than once.

use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::sinks::answers::RecordKey;
use crate::sinks::side::SideDelta;
use crate::sinks::{OutputRow, PairStyle};
use dupflow_core::doc::Letter;
use dupflow_core::pair::DocPair;
use dupflow_core::time::Epoch;

/// Separates the two ids of a key.
const NUL: u8 = 0;

/// Limits of the payload and of the key of a dead letter in bytes, inclusive: 512 KiB and 128 KiB. Longer
/// ones are truncated, since brokers accept records of 1 MB by default.
pub(super) const LETTER_BYTES: usize = 512 << 10;
pub(super) const LETTER_KEY_BYTES: usize = 128 << 10;

/// Encoded records and dead letters of one commit.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    bytes: Vec<u8>,
    /// Keys and values in order, as ranges of `bytes`; no value is a tombstone.
    records: Vec<(Range<usize>, Option<Range<usize>>)>,
    letters: Vec<Letter>,
    /// Records of side outputs: topic, key and value.
    side: Vec<(Arc<str>, String, String)>,
}

impl Outgoing {
    /// Encodes a record; no row is a tombstone.
    pub(super) fn record(&mut self, key: RecordKey<'_>, row: Option<&dyn OutputRow>) -> io::Result<()> {
        let start = self.bytes.len();
        match key {
            RecordKey::Pair(pair, style) => self.pair_key(pair, style),
            RecordKey::Document(id) => self.bytes.extend_from_slice(id.as_bytes()),
        }
        let middle = self.bytes.len();
        if let Some(row) = row {
            row.write(&mut self.bytes)?;
        }
        self.records.push((start..middle, row.map(|_| middle..self.bytes.len())));
        Ok(())
    }

    /// Appends the key of a pair: the two ids with a NUL between them. If an id contains NUL, the key is a
    /// JSON array of both, which contains none; if the first document is of a reference, of both and "old".
    /// So no two pairs have the same key.
    fn pair_key(&mut self, pair: &DocPair, style: PairStyle) {
        let (ids, old) = style.ids(&pair.pair);
        let is_old = old == Some(true);
        if is_old || ids.iter().any(|id| id.as_bytes().contains(&NUL)) {
            let [a, b] = ids.map(|id| serde_json::Value::from(id).to_string());
            let side = if is_old { ",\"old\"" } else { "" };
            self.bytes.extend_from_slice(format!("[{a},{b}{side}]").as_bytes());
        } else {
            self.bytes.extend_from_slice(ids[0].as_bytes());
            self.bytes.push(NUL);
            self.bytes.extend_from_slice(ids[1].as_bytes());
        }
    }

    /// Encodes changes of rows for a topic of their own.
    pub(super) fn side(&mut self, topic: &Arc<str>, epoch: Epoch, deltas: &[SideDelta]) {
        let record = |delta: &SideDelta| (Arc::clone(topic), delta.row.key.clone(), delta.record(epoch));
        self.side.extend(deltas.iter().map(record));
    }

    /// The records of side outputs, in order.
    pub(super) fn side_records(&self) -> &[(Arc<str>, String, String)] {
        &self.side
    }

    /// Adds dead letters.
    pub(super) fn letters(&mut self, letters: &[Letter]) {
        self.letters.extend_from_slice(letters);
    }

    /// Keys and values in order; no value is a tombstone.
    pub(super) fn records(&self) -> impl Iterator<Item = (&[u8], Option<&[u8]>)> {
        let part = |range: &Range<usize>| &self.bytes[range.clone()];
        self.records.iter().map(move |(key, value)| (part(key), value.as_ref().map(part)))
    }

    /// Dead letters in order.
    pub(super) fn kept_letters(&self) -> &[Letter] {
        &self.letters
    }

    /// Drops everything, once the commit is durable.
    pub(super) fn clear(&mut self) {
        self.bytes.clear();
        self.bytes.shrink_to(1 << 20);
        self.records.clear();
        self.records.shrink_to(1 << 15);
        self.letters.clear();
        self.side.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sinks::answers::{Changes as _, PairDeltas, RecordForm};
    use dupflow_core::doc::DocId;
    use dupflow_core::pair::{Delta, Evidence, Pair, Similarity};

    /// The records of an epoch.
    fn encoded(form: RecordForm, style: PairStyle, deltas: &[Delta]) -> Outgoing {
        let (mut changes, mut outgoing) = (PairDeltas::new(None).with_style(style), Outgoing::default());
        changes.epoch(form, 7, deltas, &mut |key, row| outgoing.record(key, row)).unwrap();
        outgoing
    }

    fn pair(a: &str, b: &str, similarity: f64) -> DocPair {
        let pair = Pair::new(DocId::new(a).unwrap(), DocId::new(b).unwrap()).unwrap();
        DocPair { pair, similarity: Similarity::clamped(similarity), evidence: Evidence::default() }
    }

    fn written(outgoing: &Outgoing) -> Vec<(String, Option<String>)> {
        let text = |bytes: &[u8]| String::from_utf8(bytes.to_vec()).unwrap();
        outgoing.records().map(|(key, value)| (text(key), value.map(text))).collect()
    }

    #[test]
    fn deltas_are_lines_without_line_breaks() {
        let deltas = [Delta::by_block(pair("a", "b", 0.5), -1), Delta::by_block(pair("a", "b", 0.75), 1)];
        let mut outgoing = encoded(RecordForm::Deltas, PairStyle::default(), &deltas);
        let expected = [
            ("a\0b".to_owned(), Some(r#"{"epoch":7,"diff":-1,"a":"a","b":"b","similarity":0.5}"#.to_owned())),
            ("a\0b".to_owned(), Some(r#"{"epoch":7,"diff":1,"a":"a","b":"b","similarity":0.75}"#.to_owned())),
        ];
        assert_eq!(written(&outgoing), expected);
        outgoing.clear();
        assert_eq!(written(&outgoing), []);
    }

    /// Equal ids of both sides have different keys; pairs of live documents have the keys that they have
    /// without a reference.
    #[test]
    fn a_key_says_the_side() {
        let id = |name: &str| DocId::new(name).unwrap();
        let of = |a: DocId, b: DocId| DocPair { pair: Pair::new(a, b).unwrap(), ..pair("a", "b", 0.5) };
        let deltas = [
            of(id("a").in_reference(), id("a")),
            of(id("a").in_reference(), id("b")),
            of(id("a"), id("b")),
            of(id("\0a").beside_reference(), id("b")),
        ]
        .map(|pair| Delta::by_block(pair, 1));
        let style = PairStyle { shares: false, sides: true };
        let outgoing = encoded(RecordForm::Present, style, &deltas);
        let value = |ids: &str, old| format!("{{\"epoch\":7,{ids},\"similarity\":0.5,\"old\":{old}}}");
        let expected = [
            ("[\"a\",\"a\",\"old\"]", value(r#""a":"a","b":"a""#, true)),
            ("[\"a\",\"b\",\"old\"]", value(r#""a":"a","b":"b""#, true)),
            ("a\0b", value(r#""a":"a","b":"b""#, false)),
            ("[\"\\u0000a\",\"b\"]", value(r#""a":"\u0000a","b":"b""#, false)),
        ];
        assert_eq!(written(&outgoing), expected.map(|(key, line)| (key.to_owned(), Some(line))));
    }

    #[test]
    fn an_upsert_is_the_pair_after_the_epoch() {
        let deltas = [
            Delta::by_block(pair("a", "b", 0.5), -1),
            Delta::by_block(pair("a", "b", 0.75), 1),
            Delta::by_block(pair("a", "c", 0.5), -1),
            Delta::by_block(pair("b", "c", 1.0), 1),
        ];
        let outgoing = encoded(RecordForm::Present, PairStyle::default(), &deltas);
        let expected = [
            ("a\0b".to_owned(), Some(r#"{"epoch":7,"a":"a","b":"b","similarity":0.75}"#.to_owned())),
            ("a\0c".to_owned(), None),
            ("b\0c".to_owned(), Some(r#"{"epoch":7,"a":"b","b":"c","similarity":1.0}"#.to_owned())),
        ];
        assert_eq!(written(&outgoing), expected);
    }

    #[test]
    fn keys_of_pairs_are_unique() {
        let pairs = [("a", "b\0c"), ("a\0b", "c"), ("a", "b"), ("[\"a", "b\"]")];
        let deltas: Vec<_> = pairs.iter().map(|(a, b)| Delta::by_block(pair(a, b, 1.0), 1)).collect();
        let outgoing = encoded(RecordForm::Deltas, PairStyle::default(), &deltas);
        let mut keys: Vec<_> = written(&outgoing).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys[0], "[\"a\",\"b\\u0000c\"]");
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), pairs.len());
    }
}
