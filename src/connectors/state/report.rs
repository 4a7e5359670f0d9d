//! Inspection and verification of stored state: read-only, while its owner may publish.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde::Serialize;

use super::error::StateError;
use super::files::StateFiles;
use super::ids::{SHARDS, id_hash, shard_of};
use super::manifest::{Manifest, StatePosition};
use super::segment::{SegmentFile, SegmentReader};
use super::snapshot::Snapshot;
use super::store::Store;
use super::tables;
use dupflow_core::description::Description;
use dupflow_core::time::Progress;

/// Attempts of a reader that found a file missing that a newer manifest does not list.
const TRIES: usize = 100;

/// Contents of stored state.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Inspection {
    /// The folder or prefix.
    pub place: String,
    /// The manifests present, newest first.
    pub manifests: Vec<ManifestReport>,
    /// Progress of the newest undamaged manifest.
    pub progress: Progress,
    /// Fields of the scheme by name, in readable form.
    pub scheme: BTreeMap<String, String>,
    /// Fingerprint of the table in force, 16 hexadecimal digits.
    pub table: Option<String>,
    /// Live documents.
    pub documents: u64,
    /// Bytes of their ids and values.
    pub document_bytes: u64,
    /// Number of base files.
    pub bases: usize,
    /// Their bytes.
    pub base_bytes: u64,
    /// Number of delta files.
    pub deltas: usize,
    /// Their bytes.
    pub delta_bytes: u64,
    /// Records in deltas and bases, including replaced ones.
    pub records: u64,
    /// Records of deleted documents.
    pub ended: u64,
    /// Bytes of bases and deltas for each live document.
    pub bytes_per_document: Option<f64>,
}

/// One manifest.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ManifestReport {
    /// Its number.
    pub number: u64,
    /// The owner that wrote it, 16 hexadecimal digits; `None` if the manifest is damaged.
    pub owner: Option<String>,
    /// The epoch that it stands for; `None` if it is damaged, or written before the first publish.
    pub epoch: Option<u64>,
    /// Description of the damage, if any.
    pub damage: Option<String>,
}

/// Result of a verification.
#[derive(Debug, Default)]
pub struct Verification {
    /// Number of files read.
    pub files: u64,
    /// Their bytes.
    pub bytes: u64,
    /// Records in segments.
    pub records: u64,
    /// Live documents in the newest undamaged manifest; `None` if they cannot be read.
    pub documents: Option<u64>,
    /// Damage found, each with its file.
    pub damages: Vec<StateError>,
    /// Files that no manifest lists: of a publish or a compaction in progress, or left over from an
    /// interrupted one.
    pub unnamed: Vec<String>,
}

/// Numbers of the manifests present, highest first.
///
/// # Errors
/// [`StateError::Missing`] if there is none.
pub(super) fn manifests(files: &StateFiles) -> Result<Vec<u64>, StateError> {
    let missing = || StateError::Missing { place: files.place().to_owned() };
    let numbers = match files.list() {
        Err(error) if error.is_gone() => return Err(missing()),
        names => Manifest::numbers(&names?),
    };
    if numbers.is_empty() { Err(missing()) } else { Ok(numbers) }
}

/// Calls `read` with the numbers of the manifests; again while a file that it needs is missing and there is a
/// newer manifest.
fn read_consistent<T>(
    files: &StateFiles,
    read: impl Fn(&[u64]) -> Result<T, StateError>,
) -> Result<T, StateError> {
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

/// Describes stored state.
///
/// # Errors
/// If there is none, or it cannot be read.
pub fn inspect(store: Box<dyn Store>) -> Result<Inspection, StateError> {
    let files = StateFiles::new(store);
    read_consistent(&files, |numbers| inspect_once(&files, numbers))
}

fn inspect_once(files: &StateFiles, numbers: &[u64]) -> Result<Inspection, StateError> {
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
    let (documents, document_bytes) = match Snapshot::from_manifest(files, &Arc::new(manifest.clone())) {
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

/// Number of live documents, and bytes of their ids and values.
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

/// Fields of a scheme by name; the escaped bytes if it is not a description.
fn scheme(saved: &StatePosition) -> BTreeMap<String, String> {
    // The differences from an empty description are all fields.
    match Description::new().differences(&saved.scheme) {
        Ok(fields) => fields.into_iter().map(|field| (field.name, field.there.unwrap_or_default())).collect(),
        Err(malformed) => {
            let bytes = saved.scheme.escape_ascii().to_string();
            [("bytes".to_owned(), bytes), ("problem".to_owned(), malformed.to_string())].into()
        }
    }
}

/// Reads everything: the two newest manifests, which an owner keeps, and every file that they list. Checks
/// every checksum and every count.
///
/// # Errors
/// If there is no state, or the store fails. Damage is not an error but part of the result.
pub fn verify(store: Box<dyn Store>) -> Result<Verification, StateError> {
    let files = StateFiles::new(store);
    read_consistent(&files, |numbers| verify_once(&files, numbers))
}

fn verify_once(files: &StateFiles, numbers: &[u64]) -> Result<Verification, StateError> {
    let mut found = Verification::default();
    let mut named = BTreeSet::new();
    let mut newest = None;
    for (place, &number) in numbers.iter().enumerate() {
        if place >= 2 {
            // Such a manifest will be removed, or was written by an owner that had lost the state: its files
            // may be missing.
            if let Ok(manifest) = Manifest::read(files, number) {
                named.extend(manifest.all_segments().map(|segment| segment.name.clone()));
                named.extend(manifest.table);
            }
            continue;
        }
        let manifest = found.note(files, numbers, Manifest::read(files, number))?;
        let Some(manifest) = manifest else { continue };
        found.files += 1;
        found.bytes += manifest.encode().len() as u64;
        for segment in manifest.all_segments() {
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
    let snapshot =
        newest.as_ref().and_then(|manifest| Snapshot::from_manifest(files, &Arc::new(manifest.clone())));
    // Damage has been reported already.
    let whole = snapshot.filter(|_| found.damages.is_empty());
    found.documents = whole.map(|whole| documents(&whole)).transpose()?.map(|(documents, _)| documents);
    let is_unnamed = |name: &String| !named.contains(name) && Manifest::number_of(name).is_none();
    found.unnamed = files.list()?.into_iter().filter(is_unnamed).collect();
    found.unnamed.sort_unstable();
    Ok(found)
}

impl Verification {
    /// Returns the value, or records the damage and returns `None`. A missing file is damage if its manifest
    /// still exists.
    fn note<T>(
        &mut self,
        files: &StateFiles,
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

/// Checks that a segment is undamaged, each id is in its shard, and the counts are those of the manifest.
/// Returns the number of records.
fn check_segment(files: &StateFiles, file: &SegmentFile) -> Result<u64, StateError> {
    let bytes = files.size(&file.name)?;
    if bytes != file.bytes {
        return Err(files.damaged(&file.name, format!("expected {} bytes, found {bytes}", file.bytes)));
    }
    let segment = SegmentReader::open(files, file)?;
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
