//! The encoded records of one commit, kept until it is durable: it may have to be written more than once.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;

use crate::instant;
use crate::sinks::rows::cluster_json::{ReportChange, write_change, write_present};
use crate::sinks::rows::pair_json::{PairStyle, write_delta, write_pair};
use crate::sinks::side::SideDelta;
use crate::sinks::{Decision, StandardError};
use dupflow_core::cluster::ClusterReport;
use dupflow_core::doc::{DocId, Letter};
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::time::{Epoch, EpochTimes, unix_milliseconds};

/// Separates the two ids of a key.
const NUL: u8 = 0;

/// Limits of the payload and of the key of a dead letter in bytes, inclusive: 512 KiB and 128 KiB. Longer
/// ones are truncated, since brokers accept records of 1 MB by default.
pub(super) const LETTER_BYTES: usize = 512 << 10;
pub(super) const LETTER_KEY_BYTES: usize = 128 << 10;

/// Encoded records and dead letters of one commit.
#[derive(Debug, Default)]
pub(super) struct Outgoing {
    /// What values have of pairs.
    pub(super) style: PairStyle,
    /// Whether values have causes.
    pub(super) causes: bool,
    /// The times of the next epoch, if values have them.
    pub(super) times: Option<EpochTimes>,
    bytes: Vec<u8>,
    /// Keys and values in order, as ranges of `bytes`; no value is a tombstone.
    records: Vec<(Range<usize>, Option<Range<usize>>)>,
    letters: Vec<Letter>,
    /// Records of side outputs: topic, key and value.
    side: Vec<(Arc<str>, String, String)>,
}

impl Outgoing {
    /// Encodes the deltas of an epoch.
    pub(super) fn deltas(
        &mut self,
        epoch: Epoch,
        deltas: &[Delta],
        evidence: Option<&StandardError>,
    ) -> io::Result<()> {
        for delta in deltas {
            let key = self.key(&delta.pair);
            let start = self.bytes.len();
            write_delta(&mut self.bytes, epoch, delta, self.style, evidence, self.causes, self.times)?;
            self.records.push((key, Some(start..self.bytes.len())));
        }
        Ok(())
    }

    /// Encodes the pairs that an epoch changes, as they are after it. The deltas must be sorted, so that
    /// those of a pair are adjacent.
    pub(super) fn upserts(
        &mut self,
        epoch: Epoch,
        deltas: &[Delta],
        evidence: Option<&StandardError>,
    ) -> io::Result<()> {
        for changes in deltas.chunk_by(|one, next| one.pair.pair == next.pair.pair) {
            let Some(Delta { pair: first, .. }) = changes.first() else { continue };
            let key = self.key(first);
            let start = self.bytes.len();
            let value = match changes.iter().find(|delta| delta.diff > 0) {
                Some(Delta { pair, cause, .. }) => {
                    self.bytes.extend_from_slice(format!("{{\"epoch\":{epoch},").as_bytes());
                    let cause = self.causes.then_some(*cause);
                    write_pair(&mut self.bytes, pair, self.style, evidence, cause, self.times)?;
                    Some(start..self.bytes.len())
                }
                None => None,
            };
            self.records.push((key, value));
        }
        Ok(())
    }

    /// Encodes changes of clusters. The key is the document; of a giant, the cluster.
    pub(super) fn changes(&mut self, epoch: Epoch, changes: &[ReportChange]) -> io::Result<()> {
        for change in changes {
            let key = self.id(change.0.subject().1);
            let start = self.bytes.len();
            write_change(&mut self.bytes, epoch, change, self.times)?;
            self.records.push((key, Some(start..self.bytes.len())));
        }
        Ok(())
    }

    /// Encodes the state after the epoch of each document and giant that it changes. Each key gets one value:
    /// for a document that names a giant, only the giant is written.
    pub(super) fn memberships(&mut self, epoch: Epoch, changes: &[ReportChange]) -> io::Result<()> {
        let mut now: BTreeMap<&DocId, Option<&ClusterReport>> = BTreeMap::new();
        for (report, diff) in changes {
            let (_, subject) = report.subject();
            let value = now.entry(subject).or_default();
            if *diff > 0 {
                *value = Some(report);
            }
        }
        for (subject, report) in now {
            let key = self.id(subject);
            let start = self.bytes.len();
            if let Some(report) = report {
                write_present(&mut self.bytes, epoch, report, self.times)?;
            }
            self.records.push((key, report.map(|_| start..self.bytes.len())));
        }
        Ok(())
    }

    /// Encodes decisions. The key is the document; its end has no value. `marks_ends`: an upsert of a
    /// document that is not alive has its decision, and then the end.
    pub(super) fn decisions(
        &mut self,
        epoch: Epoch,
        decisions: &[Decision],
        marks_ends: bool,
    ) -> io::Result<()> {
        let at = instant::millisecond_of(unix_milliseconds());
        for decision in decisions {
            if decision.position.is_some() {
                let key = self.id(&decision.id);
                let start = self.bytes.len();
                decision.write(&mut self.bytes, epoch, &at)?;
                self.records.push((key, Some(start..self.bytes.len())));
            }
            if marks_ends && decision.repetition.is_none() {
                let key = self.id(&decision.id);
                self.records.push((key, None));
            }
        }
        Ok(())
    }

    fn id(&mut self, id: &DocId) -> Range<usize> {
        let start = self.bytes.len();
        self.bytes.extend_from_slice(id.as_bytes());
        start..self.bytes.len()
    }

    /// Appends the key of a pair: the two ids with a NUL between them. If an id contains NUL, the key is a
    /// JSON array of both, which contains none; if the first document is of a reference, of both and "old".
    /// So no two pairs have the same key.
    fn key(&mut self, pair: &DocPair) -> Range<usize> {
        let start = self.bytes.len();
        let (ids, old) = self.style.ids(&pair.pair);
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
        start..self.bytes.len()
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
    use crate::sinks::Repetition;
    use dupflow_core::doc::Position;
    use dupflow_core::pair::{Evidence, Pair, Similarity};

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
        let mut outgoing = Outgoing::default();
        let deltas = [Delta::by_block(pair("a", "b", 0.5), -1), Delta::by_block(pair("a", "b", 0.75), 1)];
        outgoing.deltas(7, &deltas, None).unwrap();
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
        let mut outgoing = Outgoing { style, ..Outgoing::default() };
        outgoing.upserts(7, &deltas, None).unwrap();
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
        let mut outgoing = Outgoing::default();
        let deltas = [
            Delta::by_block(pair("a", "b", 0.5), -1),
            Delta::by_block(pair("a", "b", 0.75), 1),
            Delta::by_block(pair("a", "c", 0.5), -1),
            Delta::by_block(pair("b", "c", 1.0), 1),
        ];
        outgoing.upserts(7, &deltas, None).unwrap();
        let expected = [
            ("a\0b".to_owned(), Some(r#"{"epoch":7,"a":"a","b":"b","similarity":0.75}"#.to_owned())),
            ("a\0c".to_owned(), None),
            ("b\0c".to_owned(), Some(r#"{"epoch":7,"a":"b","b":"c","similarity":1.0}"#.to_owned())),
        ];
        assert_eq!(written(&outgoing), expected);
    }

    #[test]
    fn clusters_are_keyed_by_document_and_giant() {
        let id = |name: &str| DocId::new(name).unwrap();
        let member =
            |document, cluster| ClusterReport::Member { cluster: id(cluster), document: id(document) };
        let giant = |size| ClusterReport::Giant { cluster: id("a"), size };
        // x leaves, y joins, z changes its cluster, and a giant shrinks below the limit.
        let changes = [
            (member("a", "a"), 1),
            (member("x\0", "x"), -1),
            (member("y", "c"), 1),
            (member("z", "c"), 1),
            (member("z", "x"), -1),
            (giant(4), -1),
        ];
        let mut outgoing = Outgoing::default();
        outgoing.changes(7, &changes[4..]).unwrap();
        let line = |key: &str, value: &str| (key.to_owned(), Some(value.to_owned()));
        let as_changes = [
            line("z", r#"{"epoch":7,"diff":-1,"document":"z","cluster":"x"}"#),
            line("a", r#"{"epoch":7,"diff":-1,"cluster":"a","size":4,"giant":true}"#),
        ];
        assert_eq!(written(&outgoing), as_changes);
        outgoing.clear();
        outgoing.memberships(7, &changes).unwrap();
        let as_memberships = [
            line("a", r#"{"epoch":7,"document":"a","cluster":"a"}"#),
            ("x\0".to_owned(), None),
            line("y", r#"{"epoch":7,"document":"y","cluster":"c"}"#),
            line("z", r#"{"epoch":7,"document":"z","cluster":"c"}"#),
        ];
        assert_eq!(written(&outgoing), as_memberships);
        outgoing.clear();
        outgoing.memberships(8, &[(member("a", "a"), -1), (giant(4), -1), (giant(5), 1)]).unwrap();
        assert_eq!(written(&outgoing), [line("a", r#"{"epoch":8,"cluster":"a","size":5,"giant":true}"#)]);
    }

    #[test]
    fn a_decision_has_a_value_and_an_end_has_none() {
        let id = |name: &str| DocId::new(name).unwrap();
        let position = Some(Position { partition: 1, offset: 2 });
        let decisions = [
            Decision { id: id("a"), position, repetition: Some(Repetition::default()) },
            Decision { id: id("b"), position, repetition: None },
            Decision { id: id("c"), position: None, repetition: None },
        ];
        for (marks_ends, expected) in [
            (true, &[("a", true), ("b", true), ("b", false), ("c", false)][..]),
            (false, &[("a", true), ("b", true)]),
        ] {
            let mut outgoing = Outgoing::default();
            outgoing.decisions(7, &decisions, marks_ends).unwrap();
            let found: Vec<_> =
                written(&outgoing).into_iter().map(|(key, value)| (key, value.is_some())).collect();
            let expected: Vec<_> =
                expected.iter().map(|(key, has_value)| ((*key).to_owned(), *has_value)).collect();
            assert_eq!(found, expected);
        }
    }

    #[test]
    fn keys_of_pairs_are_unique() {
        let mut outgoing = Outgoing::default();
        let pairs = [("a", "b\0c"), ("a\0b", "c"), ("a", "b"), ("[\"a", "b\"]")];
        let deltas: Vec<_> = pairs.iter().map(|(a, b)| Delta::by_block(pair(a, b, 1.0), 1)).collect();
        outgoing.deltas(1, &deltas, None).unwrap();
        let mut keys: Vec<_> = written(&outgoing).into_iter().map(|(key, _)| key).collect();
        assert_eq!(keys[0], "[\"a\",\"b\\u0000c\"]");
        keys.sort();
        keys.dedup();
        assert_eq!(keys.len(), pairs.len());
    }
}
