//! What is in stored state, and whether it is whole: read beside its owner, which may publish meanwhile.
//! Nothing is written or removed.

use std::collections::{BTreeMap, BTreeSet};

use serde::Serialize;

use super::error::StateError;
use super::files::Files;
use super::ids::{SHARDS, id_hash, shard_of};
use super::manifest::{Manifest, Saved};
use super::segment::{Segment, SegmentFile};
use super::snapshot::Snapshot;
use super::store::Store;
use super::tables;
use dupflow_core::description::Description;
use dupflow_core::time::Progress;

/// Times that a reader begins again because files went that a newer manifest does not name.
const TRIES: usize = 100;

/// What is in stored state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// The folder or prefix.
    pub place: String,
    /// The manifests that are there, newest first.
    pub manifests: Vec<ManifestReport>,
    /// What the newest whole one stands for.
    pub progress: Progress,
    /// The fields of the scheme, by name, as people write them.
    pub scheme: BTreeMap<String, String>,
    /// Fingerprint of the table in force, 16 hexadecimal digits.
    pub table: Option<String>,
    /// Documents alive.
    pub documents: u64,
    /// Their ids and values.
    pub document_bytes: u64,
    /// Files of bases, and their bytes.
    pub bases: usize,
    /// See there.
    pub base_bytes: u64,
    /// Files of deltas, and their bytes.
    pub deltas: usize,
    /// See there.
    pub delta_bytes: u64,
    /// Records in deltas and bases, those that newer ones replace included.
    pub records: u64,
    /// Records of ended documents.
    pub ended: u64,
    /// Bytes of bases and deltas for each document alive.
    pub bytes_per_document: Option<f64>,
}

/// A manifest that is there.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ManifestReport {
    /// Its number.
    pub number: u64,
    /// Who wrote it, 16 hexadecimal digits; `None` if it is damaged.
    pub owner: Option<String>,
    /// The epoch that it stands for; `None` if it is damaged, or of a state that nothing is in.
    pub epoch: Option<u64>,
    /// What is wrong with it.
    pub damage: Option<String>,
}

/// Whether stored state is whole.
#[derive(Debug, Default)]
pub struct Verification {
    /// Files that were read, and their bytes.
    pub files: u64,
    /// See there.
    pub bytes: u64,
    /// Records in segments.
    pub records: u64,
    /// Documents alive, by the newest whole manifest; `None` if they cannot be read.
    pub documents: Option<u64>,
    /// What is wrong, each with its file.
    pub damages: Vec<StateError>,
    /// Files that no manifest names: of a publish or a compaction under way, or left by one that was cut off.
    pub unnamed: Vec<String>,
}

/// The numbers of the manifests that are there, highest first.
///
/// # Errors
/// [`StateError::Missing`] if there is none.
pub(super) fn manifests(files: &Files) -> Result<Vec<u64>, StateError> {
    let missing = || StateError::Missing { place: files.place().to_owned() };
    let numbers = match files.list() {
        Err(error) if error.is_gone() => return Err(missing()),
        names => Manifest::numbers(&names?),
    };
    if numbers.is_empty() { Err(missing()) } else { Ok(numbers) }
}

/// Reads, and begins again as long as a file that was to be read is gone and there is a newer manifest.
fn settled<T>(files: &Files, read: impl Fn(&[u64]) -> Result<T, StateError>) -> Result<T, StateError> {
    let mut numbers = manifests(files)?;
    for _ in 0..TRIES {
        let found = read(&numbers);
        let is_gone = matches!(&found, Err(error) if error.is_gone());
        let now = manifests(files)?;
        if !is_gone || now == numbers {
            return found;
        }
        numbers = now;
    }
    read(&numbers)
}

/// Tells what is in stored state.
///
/// # Errors
/// If there is none, or it cannot be read.
pub fn inspect(store: Box<dyn Store>) -> Result<Inspection, StateError> {
    let files = Files::new(store);
    settled(&files, |numbers| inspect_once(&files, numbers))
}

fn inspect_once(files: &Files, numbers: &[u64]) -> Result<Inspection, StateError> {
    let mut newest = None;
    let mut damaged = None;
    let mut reports = Vec::new();
    for &number in numbers {
        reports.push(match Manifest::read(files, number) {
            Ok(manifest) => {
                let epoch = manifest.saved.as_ref().map(|saved| saved.epoch());
                let owner = Some(format!("{:016x}", manifest.owner));
                newest = newest.or(Some(manifest));
                ManifestReport { number, owner, epoch, damage: None }
            }
            Err(error @ StateError::Damaged { .. }) => {
                let damage = Some(error.to_string());
                damaged = damaged.or(Some(error));
                ManifestReport { number, owner: None, epoch: None, damage }
            }
            Err(error) => return Err(error),
        });
    }
    let Some(manifest) = newest else {
        return Err(damaged.unwrap_or_else(|| StateError::Missing { place: files.place().to_owned() }));
    };
    let (documents, document_bytes) = match Snapshot::of(files, &manifest) {
        Some(snapshot) => documents(&snapshot)?,
        None => (0, 0),
    };
    let saved = manifest.saved.clone().unwrap_or_default();
    let (base_bytes, delta_bytes) = (manifest.base_bytes(), manifest.delta_bytes());
    #[expect(clippy::cast_precision_loss, reason = "a mean of byte counts")]
    let mean = |bytes: u64, of: u64| (of > 0).then(|| bytes as f64 / of as f64);
    Ok(Inspection {
        place: files.place().to_owned(),
        manifests: reports,
        scheme: scheme(&saved),
        table: saved.table().map(|fingerprint| format!("{fingerprint:016x}")),
        progress: saved.mark.progress,
        documents,
        document_bytes,
        bases: manifest.groups.iter().filter(|group| group.base.is_some()).count(),
        base_bytes,
        deltas: manifest.deltas.len(),
        delta_bytes,
        records: manifest.segments().map(|segment| segment.records).sum(),
        ended: manifest.segments().map(|segment| segment.ended).sum(),
        bytes_per_document: mean(base_bytes + delta_bytes, documents),
    })
}

/// Documents alive, and the bytes of their ids and values.
fn documents(snapshot: &Snapshot) -> Result<(u64, u64), StateError> {
    let (mut documents, mut bytes) = (0, 0);
    snapshot.read(1 << 20, |slice| {
        for (id, value) in slice.iter() {
            documents += 1;
            bytes += (id.len() + value.map_or(0, <[u8]>::len)) as u64;
        }
        Ok::<_, StateError>(())
    })?;
    Ok((documents, bytes))
}

/// A scheme by its named fields; as it stands if it is no description.
fn scheme(saved: &Saved) -> BTreeMap<String, String> {
    // What differs from a description of nothing is all of it.
    match Description::new().differences(&saved.scheme) {
        Ok(fields) => fields.into_iter().map(|field| (field.name, field.there.unwrap_or_default())).collect(),
        Err(malformed) => {
            let bytes = saved.scheme.escape_ascii().to_string();
            [("bytes".to_owned(), bytes), ("problem".to_owned(), malformed.to_string())].into()
        }
    }
}

/// Reads everything: the two newest manifests, which an owner keeps, and every file that they name; every
/// checksum, every count.
///
/// # Errors
/// If there is none, or the store refuses. Damage is no error but what is found.
pub fn verify(store: Box<dyn Store>) -> Result<Verification, StateError> {
    let files = Files::new(store);
    settled(&files, |numbers| verify_once(&files, numbers))
}

fn verify_once(files: &Files, numbers: &[u64]) -> Result<Verification, StateError> {
    let mut found = Verification::default();
    let mut named = BTreeSet::new();
    let mut newest = None;
    for (place, &number) in numbers.iter().enumerate() {
        if place >= 2 {
            // About to be removed, or of an owner that wrote it too late: its files may be gone.
            if let Ok(manifest) = Manifest::read(files, number) {
                named.extend(manifest.segments().map(|segment| segment.name.clone()));
                named.extend(manifest.table);
            }
            continue;
        }
        let manifest = found.note(files, numbers, Manifest::read(files, number))?;
        let Some(manifest) = manifest else { continue };
        found.files += 1;
        found.bytes += manifest.encode().len() as u64;
        for segment in manifest.segments() {
            if named.insert(segment.name.clone())
                && let Some(records) = found.note(files, numbers, check_segment(files, segment))?
            {
                found.files += 1;
                found.bytes += segment.bytes;
                found.records += records;
            }
        }
        if let Some(table) = &manifest.table
            && named.insert(table.clone())
            && let Some(contents) = found.note(files, numbers, tables::read(files, table))?
        {
            found.files += 1;
            found.bytes += tables::file_bytes(&contents);
        }
        newest = newest.or(Some(manifest));
    }
    let snapshot = newest.as_ref().and_then(|manifest| Snapshot::of(files, manifest));
    // What is damaged has been told.
    let whole = snapshot.filter(|_| found.damages.is_empty());
    found.documents = whole.map(|whole| documents(&whole)).transpose()?.map(|(documents, _)| documents);
    let is_unnamed = |name: &String| !named.contains(name) && Manifest::number_of(name).is_none();
    found.unnamed = files.list()?.into_iter().filter(is_unnamed).collect();
    found.unnamed.sort_unstable();
    Ok(found)
}

impl Verification {
    /// The value, or `None` and the damage noted. That a file is gone is damage where its manifest is there
    /// still.
    fn note<T>(
        &mut self,
        files: &Files,
        numbers: &[u64],
        result: Result<T, StateError>,
    ) -> Result<Option<T>, StateError> {
        match result {
            Ok(value) => Ok(Some(value)),
            Err(error)
                if matches!(error, StateError::Damaged { .. } | StateError::Version { .. })
                    || (error.is_gone() && manifests(files)? == numbers) =>
            {
                self.damages.push(error);
                Ok(None)
            }
            Err(error) => Err(error),
        }
    }
}

/// Whether a segment is whole, its ids in their shards, and as many as the manifest says; how many.
fn check_segment(files: &Files, file: &SegmentFile) -> Result<u64, StateError> {
    let segment = Segment::open(files, file)?;
    let (mut records, mut ended) = (0, 0);
    for shard in 0..SHARDS {
        segment.each(shard, |record| {
            let belongs = shard_of(id_hash(record.id));
            if belongs != shard {
                let id = record.id.escape_ascii();
                return Err(files.damaged(
                    &file.name,
                    format!("expected \"{id}\" in shard {belongs}, found it in {shard}"),
                ));
            }
            records += 1;
            ended += u64::from(record.value.is_none());
            Ok(())
        })?;
    }
    if (records, ended) == (file.records, file.ended) {
        return Ok(records);
    }
    let expected = format!("expected {} records, {} of them ended", file.records, file.ended);
    Err(files.damaged(&file.name, format!("{expected}, found {records} and {ended}")))
}
