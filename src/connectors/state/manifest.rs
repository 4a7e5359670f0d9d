//! Manifests: the list of the files of the state, and the position that they stand for. Each manifest is a
//! commit; the one with the highest number is the state.
//!
//! ```text
//! magic, 16 bytes | version u32 | length of the JSON u64 LE | JSON | scheme | checksum
//! ```
//!
//! Changes up to a *sequence number* (the number of the manifest that published them) are in the base of a
//! group; later ones are in the deltas. A group is eight shards, whose base is rewritten at once.

use serde::{Deserialize, Serialize};

use super::error::StateError;
use super::files::StateFiles;
use super::frame::{self, Magic};
use super::ids::SHARDS;
use super::segment::SegmentFile;
use crate::mark::Mark;
use dupflow_core::time::Epoch;

const MAGIC: Magic = *b"dupflow manifest";

/// Number of groups of shards.
pub(super) const GROUPS: u8 = 8;
/// Shards in a group.
const GROUP_SHARDS: u8 = SHARDS / GROUPS;

/// The shards of a group.
pub(super) fn shards_of(group: u8) -> std::ops::Range<u8> {
    group * GROUP_SHARDS..(group + 1) * GROUP_SHARDS
}

/// The group of a shard.
pub(super) fn group_of(shard: u8) -> u8 {
    shard / GROUP_SHARDS
}

/// The position that stored documents stand for.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct StatePosition {
    /// Epoch, progress of each partition, and everything else from which a run continues.
    pub mark: Mark,
    /// Whether the facts remembered of deleted documents are stored too, where ids move between partitions.
    /// Older versions did not store them.
    #[serde(default)]
    pub ended: bool,
    /// The encoded [`Description`](dupflow_core::description::Description) of the settings that determine a
    /// stored value.
    #[serde(skip)]
    pub scheme: Vec<u8>,
}

impl StatePosition {
    /// The epoch.
    pub fn epoch(&self) -> Epoch {
        self.mark.progress.epoch
    }

    /// Fingerprint of the table of document frequencies in force, if any.
    pub fn table(&self) -> Option<u64> {
        self.mark.progress.table.map(|table| table.fingerprint)
    }
}

/// One commit.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Manifest {
    /// From 1; one higher than that of the commit before.
    pub(super) number: u64,
    /// A random number of the run that wrote it.
    pub(super) owner: u64,
    /// `None` before the first publish.
    pub(super) saved: Option<StatePosition>,
    /// File of the table in force.
    pub(super) table: Option<String>,
    pub(super) groups: [ShardGroup; GROUPS as usize],
    /// In ascending order of sequence numbers.
    pub(super) deltas: Vec<DeltaFile>,
    /// The files of the list of inputs, in its order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub(super) inputs: Vec<SegmentFile>,
}

/// The base of eight shards: their documents after the changes up to a sequence number.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct ShardGroup {
    /// The sequence number, inclusive.
    pub(super) through: u64,
    /// `None` if there was no live document.
    pub(super) base: Option<SegmentFile>,
}

/// The changes of one or more commits. The deltas of one commit, one of each process that writes, have the
/// same number; a merge takes all of a number.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct DeltaFile {
    /// First and last sequence number, both inclusive.
    pub(super) first: u64,
    pub(super) last: u64,
    pub(super) segment: SegmentFile,
}

impl Manifest {
    /// The manifest of a state without documents.
    pub(super) fn empty() -> Self {
        Self {
            number: 0,
            owner: 0,
            saved: None,
            table: None,
            groups: Default::default(),
            deltas: Vec::new(),
            inputs: Vec::new(),
        }
    }

    /// File name of a manifest.
    pub(super) fn name(number: u64) -> String {
        format!("manifest-{number:016}")
    }

    /// The number in the file name of a manifest; `None` for other files.
    pub(super) fn number_of(name: &str) -> Option<u64> {
        name.strip_prefix("manifest-")?.parse().ok().filter(|number| Self::name(*number) == name)
    }

    /// The numbers of the manifests among these files, highest first.
    pub(super) fn numbers(names: &[String]) -> Vec<u64> {
        let mut numbers: Vec<u64> = names.iter().filter_map(|name| Self::number_of(name)).collect();
        numbers.sort_unstable_by(|a, b| b.cmp(a));
        numbers
    }

    /// Reads and checks a manifest.
    pub(super) fn read(files: &StateFiles, number: u64) -> Result<Self, StateError> {
        let name = Self::name(number);
        let manifest = Self::decode(files, &name, &files.get(&name)?)?;
        if manifest.number != number {
            let what = format!("expected manifest {number}, found {}", manifest.number);
            return Err(files.damaged(&name, what));
        }
        Ok(manifest)
    }

    /// Decodes and checks the bytes of a manifest; `name` is that of its file, for messages.
    pub(super) fn decode(files: &StateFiles, name: &str, bytes: &[u8]) -> Result<Self, StateError> {
        let contents = frame::open(&MAGIC, &files.full_name(name), bytes)?;
        let damaged = |what: String| files.damaged(name, what);
        let (length, rest) =
            contents.split_first_chunk().ok_or_else(|| damaged("expected a length".to_owned()))?;
        let length = usize::try_from(u64::from_le_bytes(*length)).unwrap_or(usize::MAX);
        let (json, scheme) = rest
            .split_at_checked(length)
            .ok_or_else(|| damaged(format!("expected {length} bytes, found {}", rest.len())))?;
        let mut manifest: Self =
            serde_json::from_slice(json).map_err(|error| damaged(format!("expected a manifest: {error}")))?;
        if let Some(saved) = &mut manifest.saved {
            saved.scheme = scheme.to_vec();
        }
        Ok(manifest)
    }

    /// The bytes of its file.
    pub(super) fn encode(&self) -> Vec<u8> {
        let json = serde_json::to_vec(self).expect("numbers and texts are always JSON");
        let mut bytes = frame::head(&MAGIC).to_vec();
        bytes.extend_from_slice(&(json.len() as u64).to_le_bytes());
        bytes.extend_from_slice(&json);
        bytes.extend_from_slice(self.saved.as_ref().map_or(&[], |saved| &saved.scheme));
        frame::seal(bytes)
    }

    /// All segments, those of the list of inputs too.
    pub(super) fn all_segments(&self) -> impl Iterator<Item = &SegmentFile> {
        self.segments().chain(&self.inputs)
    }

    /// All segments of documents.
    pub(super) fn segments(&self) -> impl Iterator<Item = &SegmentFile> {
        let bases = self.groups.iter().filter_map(|group| group.base.as_ref());
        bases.chain(self.deltas.iter().map(|delta| &delta.segment))
    }

    /// Whether the state includes this file.
    pub(super) fn names(&self, file: &str) -> bool {
        self.table.as_deref() == Some(file) || self.all_segments().any(|segment| segment.name == file)
    }

    /// The deltas that are not folded into the base of a group, oldest first.
    pub(super) fn deltas_of(&self, group: u8) -> impl DoubleEndedIterator<Item = &DeltaFile> {
        let through = self.groups[usize::from(group)].through;
        self.deltas.iter().filter(move |delta| delta.last > through)
    }

    /// Bytes of all bases.
    pub(super) fn base_bytes(&self) -> u64 {
        self.groups.iter().filter_map(|group| group.base.as_ref()).map(|base| base.bytes).sum()
    }

    /// Bytes of all deltas.
    pub(super) fn delta_bytes(&self) -> u64 {
        self.deltas.iter().map(|delta| delta.segment.bytes).sum()
    }

    /// Replaces the base of a group. Removes the deltas that are folded into the bases of all groups.
    pub(super) fn rebase(&mut self, group: u8, base: ShardGroup) {
        self.groups[usize::from(group)] = base;
        let through = self.groups.iter().map(|each| each.through).min().unwrap_or(0);
        self.deltas.retain(|delta| delta.last > through);
    }

    /// Replaces the deltas within these sequence numbers by the merged one; removes them if no record is
    /// left.
    pub(super) fn merge(&mut self, first: u64, last: u64, merged: Option<SegmentFile>) {
        let is_whole = |delta: &DeltaFile| {
            delta.last < first || delta.first > last || delta.first >= first && delta.last <= last
        };
        debug_assert!(self.deltas.iter().all(is_whole), "a merge takes all deltas of a number");
        let at = self.deltas.partition_point(|delta| delta.last < first);
        self.deltas.retain(|delta| delta.last < first || delta.last > last);
        if let Some(segment) = merged {
            self.deltas.insert(at, DeltaFile { first, last, segment });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::store::MemoryStore;
    use super::*;
    use dupflow_core::time::{Progress, TableInForce};

    fn segment(name: &str) -> SegmentFile {
        SegmentFile { name: name.to_owned(), bytes: 10, footer: 5, checksum: u64::MAX, records: 3, ended: 1 }
    }

    fn example() -> Manifest {
        let next = [(0, 17), (3, u64::MAX)].into();
        let table = Some(TableInForce { number: 1, documents: 2, fingerprint: 9 });
        let mark =
            Mark { progress: Progress { epoch: 12, next, table, ..Progress::default() }, ..Mark::default() };
        let saved = StatePosition { mark, ended: true, scheme: b"1:a,2:n1,".to_vec() };
        let mut manifest = Manifest { number: 5, owner: 3, saved: Some(saved), ..Manifest::empty() };
        manifest.table = Some("table".to_owned());
        for last in 3..=5 {
            manifest.deltas.push(DeltaFile { first: last, last, segment: segment(&format!("delta-{last}")) });
        }
        manifest
    }

    #[test]
    fn a_manifest_is_read_back() {
        let files = StateFiles::new(Box::new(MemoryStore::default()));
        let bytes = example().encode();
        files.put("manifest-0000000000000005", &bytes).unwrap();
        assert_eq!(Manifest::read(&files, 5).unwrap(), example());
        files.put("manifest-0000000000000006", &bytes).unwrap();
        let error = Manifest::read(&files, 6).unwrap_err().to_string();
        assert!(error.ends_with("is damaged: expected manifest 6, found 5"), "{error}");
    }

    /// State written by an earlier version stays readable when fields are added.
    #[test]
    fn golden_bytes() {
        let group = r#"{"through":0,"base":null}"#;
        let groups = [group; 8].join(",");
        let segment = concat!(
            r#"{"name":"delta-3","bytes":10,"footer":5,"checksum":18446744073709551615,"#,
            r#""records":3,"ended":1}"#,
        );
        let json = [
            r#"{"number":5,"owner":3,"saved":{"mark":{"run":"","#,
            r#""progress":{"epoch":12,"next":{"0":17,"3":18446744073709551615},"#,
            r#""table":{"number":1,"documents":2,"fingerprint":9}},"start":{},"pipeline":""}},"#,
            r#""table":"table","groups":["#,
            &groups,
            r#"],"deltas":[{"first":3,"last":3,"segment":"#,
            segment,
            "}]}",
        ]
        .concat();
        let length = (json.len() as u64).to_le_bytes();
        let head = b"dupflow manifest\x01\0\0\0";
        let bytes = frame::seal([&head[..], &length, json.as_bytes(), b"1:a,2:n1,"].concat());
        let files = StateFiles::new(Box::new(MemoryStore::default()));
        files.put(&Manifest::name(5), &bytes).unwrap();
        let mut expected = example();
        expected.deltas.truncate(1);
        // Written before deleted ids were remembered.
        expected.saved.as_mut().unwrap().ended = false;
        assert_eq!(Manifest::read(&files, 5).unwrap(), expected);
    }

    #[test]
    fn names_and_numbers() {
        let names = ["manifest-0000000000000002", "manifest-3", "manifest-0000000000000011", "delta-1", "x"];
        assert_eq!(Manifest::numbers(&names.map(str::to_owned)), [11, 2]);
        assert_eq!((shards_of(0), shards_of(7)), (0..8, 56..64));
    }

    #[test]
    fn a_delta_folded_into_all_groups_is_removed() {
        let mut manifest = example();
        for group in 0..GROUPS {
            assert_eq!(manifest.deltas.len(), 3, "before group {group}");
            manifest.rebase(group, ShardGroup { through: 4, base: Some(segment("base")) });
            assert_eq!(manifest.deltas_of(group).count(), 1);
        }
        assert_eq!(manifest.deltas.iter().map(|delta| delta.first).collect::<Vec<_>>(), [5]);
        assert!(manifest.names("base") && manifest.names("table") && !manifest.names("delta-4"));
        assert_eq!((manifest.base_bytes(), manifest.delta_bytes()), (80, 10));
    }

    #[test]
    fn merged_deltas_keep_their_order() {
        let mut manifest = example();
        manifest.merge(4, 5, Some(segment("merged")));
        let spans = |of: &Manifest| of.deltas.iter().map(|d| (d.first, d.last)).collect::<Vec<_>>();
        assert_eq!(spans(&manifest), [(3, 3), (4, 5)]);
        manifest.merge(3, 3, None);
        assert_eq!(spans(&manifest), [(4, 5)]);
    }
}
