//! Records of the stored history: a key, which begins with the kind of the record, and a value.
//!
//! ```text
//! "p" a-length u16 | a | b    similarity f64 | since | cause u8                          a live pair
//! "g" a-length u16 | a | b    the same | ended since | cause u8                          an ended pair
//! "c" name                    JSON: a live cluster
//! "x" name                    JSON: an ended cluster
//! "d" epoch u64 BE | index u32 BE   committed f64 | event f64 or NaN | deltas of the epoch that follow u32 |
//!                             deltas                                                     a piece of an epoch
//! "m"                         JSON: where the history begins, and its gaps
//!
//! since     epoch u64 | committed u32 | event u32 | 1 if it is exact u8;   u32::MAX is an unknown time
//! delta     diff i8 | cause u8 | similarity f64 | a-length u16 | b-length u16 | a | b
//! ```
//!
//! Numbers are little-endian unless noted. A cause is its place in [`Cause::ALL`].

use serde::Serialize;
use serde::de::DeserializeOwned;

use super::{EndedPair, HistoryMeta};
use crate::cluster_history::{ClusterRecord, EndedCluster, History};
use crate::view::pairs::{PairDetails, Since};
use crate::view::render::FrameRules;
use crate::view::ring::DeltaPiece;
use dupflow_core::cluster::ClusterReport;
use dupflow_core::doc::DocId;
use dupflow_core::doc::changes::Changes;
use dupflow_core::pair::{Cause, Delta, DocPair, Evidence, Pair, Similarity};
use dupflow_core::time::{Epoch, EpochSeconds, EpochTimes, UnixTime};

const PAIR: u8 = b'p';
const ENDED_PAIR: u8 = b'g';
const CLUSTER: u8 = b'c';
const ENDED_CLUSTER: u8 = b'x';
const PIECE: u8 = b'd';
const META: u8 = b'm';

/// One record of the stored history.
#[derive(Debug)]
pub(super) enum HistoryRecord {
    Pair(Pair<DocId>, PairDetails),
    EndedPair(Pair<DocId>, EndedPair),
    Cluster(DocId, ClusterRecord),
    EndedCluster(DocId, EndedCluster),
    Piece(DeltaPiece),
    Meta(HistoryMeta),
}

/// The changes of the stored history in an epoch; nothing is collected where no history is stored.
#[derive(Debug, Default)]
pub(crate) struct HistoryChanges(Option<Changes>);

impl HistoryChanges {
    pub(super) fn new(is_stored: bool) -> Self {
        Self(is_stored.then(Changes::default))
    }

    pub(super) fn into_changes(self) -> Option<Changes> {
        self.0.filter(|changes| !changes.is_empty())
    }

    fn put(&mut self, key: impl FnOnce() -> Vec<u8>, write: impl FnOnce(&mut Vec<u8>)) {
        if let Some(changes) = &mut self.0 {
            changes.put_with(&key(), write);
        }
    }

    fn end(&mut self, key: impl FnOnce() -> Vec<u8>) {
        if let Some(changes) = &mut self.0 {
            changes.end(&key());
        }
    }

    fn put_json(&mut self, key: impl FnOnce() -> Vec<u8>, value: &impl Serialize) {
        self.put(key, |out| serde_json::to_writer(out, value).expect("texts and numbers are JSON"));
    }

    /// A pair is live since then; `was_ended`: it has an end on record.
    pub(crate) fn pair(
        &mut self,
        pair: &Pair<DocId>,
        similarity: Similarity,
        since: Since,
        cause: Cause,
        was_ended: bool,
    ) {
        let details = PairDetails::new(similarity, since, cause);
        self.put(|| pair_key(PAIR, pair), |out| write_details(out, &details));
        if was_ended {
            self.forget_pair(pair);
        }
    }

    /// A pair has ended.
    pub(crate) fn end_pair(&mut self, pair: &Pair<DocId>, ended: &EndedPair) {
        self.end(|| pair_key(PAIR, pair));
        let write = |out: &mut Vec<u8>| {
            write_details(out, &ended.was);
            write_since(out, ended.ended);
            out.push(cause_code(ended.cause));
        };
        self.put(|| pair_key(ENDED_PAIR, pair), write);
    }

    /// The end of a pair is no longer held.
    pub(crate) fn forget_pair(&mut self, pair: &Pair<DocId>) {
        self.end(|| pair_key(ENDED_PAIR, pair));
    }

    /// Records the clusters that these changes of reports touch.
    pub(crate) fn clusters(&mut self, reports: &[(ClusterReport, isize)], history: &History) {
        if self.0.is_none() {
            return;
        }
        let cluster_of = |(report, _): &(ClusterReport, isize)| match report {
            ClusterReport::Member { cluster, .. } | ClusterReport::Giant { cluster, .. } => cluster.clone(),
        };
        let names: std::collections::BTreeSet<DocId> = reports.iter().map(cluster_of).collect();
        names.iter().for_each(|name| self.cluster(name, history));
    }

    /// Records a cluster, live or ended.
    pub(super) fn cluster(&mut self, name: &DocId, history: &History) {
        match history.record(name) {
            Some(record) => self.put_json(|| name_key(CLUSTER, name), &record),
            None => self.end(|| name_key(CLUSTER, name)),
        }
        if let Some(ended) = history.ended(name) {
            self.put_json(|| name_key(ENDED_CLUSTER, name), ended);
        }
    }

    /// The end of a cluster is no longer held.
    pub(super) fn forget_cluster(&mut self, name: &DocId) {
        self.end(|| name_key(ENDED_CLUSTER, name));
    }

    /// A piece of an epoch is held.
    pub(crate) fn piece(&mut self, piece: &DeltaPiece) {
        self.put(|| piece_key(piece), |out| write_piece(out, piece));
    }

    /// A piece is no longer held.
    pub(crate) fn end_piece(&mut self, piece: &DeltaPiece) {
        self.end(|| piece_key(piece));
    }

    /// Where the history begins, and its gaps.
    pub(crate) fn meta(&mut self, meta: &HistoryMeta) {
        self.put_json(|| vec![META], meta);
    }
}

fn pair_key(kind: u8, pair: &Pair<DocId>) -> Vec<u8> {
    let (a, b) = (pair.lo().as_str(), pair.hi().as_str());
    [&[kind][..], &id_length(pair.lo()), a.as_bytes(), b.as_bytes()].concat()
}

fn name_key(kind: u8, name: &DocId) -> Vec<u8> {
    [&[kind][..], name.as_str().as_bytes()].concat()
}

fn piece_key(piece: &DeltaPiece) -> Vec<u8> {
    [&[PIECE][..], &piece.epoch.to_be_bytes(), &piece.index.to_be_bytes()].concat()
}

fn id_length(id: &DocId) -> [u8; 2] {
    u16::try_from(id.as_str().len()).expect("an id has at most 1024 bytes").to_le_bytes()
}

fn cause_code(cause: Cause) -> u8 {
    let place = Cause::ALL.iter().position(|one| *one == cause).expect("all causes are in the list");
    u8::try_from(place).expect("there are few causes")
}

fn write_since(out: &mut Vec<u8>, since: Since) {
    out.extend_from_slice(&since.epoch.to_le_bytes());
    out.extend_from_slice(&since.times.to_bytes());
    out.push(u8::from(since.is_exact));
}

fn write_details(out: &mut Vec<u8>, details: &PairDetails) {
    out.extend_from_slice(&details.similarity.to_bits().to_le_bytes());
    write_since(out, details.age());
    out.push(cause_code(details.cause));
}

fn write_piece(out: &mut Vec<u8>, piece: &DeltaPiece) {
    out.extend_from_slice(&piece.times.committed.to_le_bytes());
    out.extend_from_slice(&piece.times.event.map_or(f64::NAN, UnixTime::seconds).to_le_bytes());
    out.extend_from_slice(&u32::try_from(piece.left).unwrap_or(u32::MAX).to_le_bytes());
    for delta in &piece.deltas {
        let (a, b) = (delta.pair.pair.lo(), delta.pair.pair.hi());
        out.push(if delta.diff > 0 { 1 } else { u8::MAX });
        out.push(cause_code(delta.cause));
        out.extend_from_slice(&delta.pair.similarity.to_bits().to_le_bytes());
        out.extend_from_slice(&id_length(a));
        out.extend_from_slice(&id_length(b));
        out.extend_from_slice(a.as_str().as_bytes());
        out.extend_from_slice(b.as_str().as_bytes());
    }
}

/// Decodes a record for a run; `None` if it is not one.
pub(super) fn decode(run: &str, key: &[u8], value: &[u8]) -> Option<HistoryRecord> {
    let (kind, key) = key.split_first()?;
    let (mut key, mut value) = (RecordBytes(key), RecordBytes(value));
    let record = match *kind {
        PAIR => HistoryRecord::Pair(key.pair()?, value.details()?),
        ENDED_PAIR => {
            let (was, ended, cause) = (value.details()?, value.since()?, value.cause()?);
            HistoryRecord::EndedPair(key.pair()?, EndedPair { was, ended, cause })
        }
        CLUSTER => HistoryRecord::Cluster(key.id(usize::MAX)?, value.json()?),
        ENDED_CLUSTER => HistoryRecord::EndedCluster(key.id(usize::MAX)?, value.json()?),
        PIECE => {
            let epoch = Epoch::from_be_bytes(key.take()?);
            let index = u32::from_be_bytes(key.take()?);
            HistoryRecord::Piece(value.piece(run, epoch, index)?)
        }
        META => HistoryRecord::Meta(value.json()?),
        _ => return None,
    };
    (key.0.is_empty() && value.0.is_empty()).then_some(record)
}

/// The bytes that are left of a key or a value.
struct RecordBytes<'b>(&'b [u8]);

impl RecordBytes<'_> {
    fn take<const N: usize>(&mut self) -> Option<[u8; N]> {
        let (taken, rest) = self.0.split_first_chunk()?;
        self.0 = rest;
        Some(*taken)
    }

    fn length(&mut self) -> Option<usize> {
        Some(usize::from(u16::from_le_bytes(self.take()?)))
    }

    fn text(&mut self, length: usize) -> Option<&str> {
        let (text, rest) = self.0.split_at_checked(length.min(self.0.len()))?;
        self.0 = rest;
        std::str::from_utf8(text).ok()
    }

    fn id(&mut self, length: usize) -> Option<DocId> {
        DocId::new(self.text(length)?)
    }

    fn pair(&mut self) -> Option<Pair<DocId>> {
        let length = self.length()?;
        Pair::new(self.id(length)?, self.id(usize::MAX)?)
    }

    fn cause(&mut self) -> Option<Cause> {
        let [code] = self.take()?;
        Cause::ALL.get(usize::from(code)).copied()
    }

    fn similarity(&mut self) -> Option<Similarity> {
        Some(Similarity::from_bits(u64::from_le_bytes(self.take()?)))
    }

    fn since(&mut self) -> Option<Since> {
        let (epoch, times) = (Epoch::from_le_bytes(self.take()?), EpochSeconds::from_bytes(self.take()?));
        let [exact] = self.take()?;
        Some(Since { epoch, times, is_exact: exact == 1 })
    }

    fn details(&mut self) -> Option<PairDetails> {
        Some(PairDetails::new(self.similarity()?, self.since()?, self.cause()?))
    }

    fn json<T: DeserializeOwned>(&mut self) -> Option<T> {
        serde_json::from_slice(std::mem::take(&mut self.0)).ok()
    }

    fn piece(&mut self, run: &str, epoch: Epoch, index: u32) -> Option<DeltaPiece> {
        let committed = f64::from_le_bytes(self.take()?);
        let event = UnixTime::new(f64::from_le_bytes(self.take()?));
        let left = usize::try_from(u32::from_le_bytes(self.take()?)).ok()?;
        let mut deltas = Vec::new();
        while !self.0.is_empty() {
            let [diff] = self.take()?;
            let (cause, similarity) = (self.cause()?, self.similarity()?);
            let (a, b) = (self.length()?, self.length()?);
            let pair = Pair::new(self.id(a)?, self.id(b)?)?;
            let pair = DocPair { pair, similarity, evidence: Evidence::default() };
            deltas.push(Delta { pair, diff: if diff == 1 { 1 } else { -1 }, cause });
        }
        // Beside a reference there is no history.
        let rules = FrameRules { run, has_reference: false };
        Some(DeltaPiece::rendered(rules, epoch, index, EpochTimes { event, committed }, deltas, left))
    }
}
