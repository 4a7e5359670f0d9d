//! A store as the other files of this folder use it: files known by name, errors that hold the full name.

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use super::error::StateError;
use super::store::{Ownership, Store, Upload, is_part};

/// Whether a file is a segment, or an incomplete file left by an owner that ended while writing it.
pub(super) fn is_segment_or_part(name: &str) -> bool {
    let is_ours = |kinds: &[&str]| kinds.iter().any(|kind| name.starts_with(kind));
    is_ours(&["delta-", "base-", "inputs-"]) || (is_ours(&["manifest-", "table-"]) && is_part(name))
}

/// Names of new segments, unique among all owners and their writers.
#[derive(Clone, Debug)]
pub(super) struct SegmentNames {
    /// The owner, and the writer.
    of: String,
    serial: Arc<AtomicU64>,
}

impl SegmentNames {
    pub(super) fn new(owner: u64, writer: Option<usize>) -> Self {
        let writer = writer.map(|index| format!("-{index}")).unwrap_or_default();
        Self { of: format!("{owner:016x}{writer}"), serial: Arc::default() }
    }

    pub(super) fn next(&self, kind: &str) -> String {
        format!("{kind}-{}-{:08}", self.of, self.serial.fetch_add(1, Ordering::Relaxed))
    }
}

/// A shared store.
#[derive(Clone, Debug)]
pub(super) struct StateFiles(Arc<dyn Store>);

impl StateFiles {
    pub(super) fn new(store: Box<dyn Store>) -> Self {
        Self(store.into())
    }

    /// The folder or prefix.
    pub(super) fn place(&self) -> &str {
        self.0.place()
    }

    /// Full name of a file, for messages.
    pub(super) fn full_name(&self, name: &str) -> String {
        format!("{}/{name}", self.place().trim_end_matches('/'))
    }

    /// Converts an I/O error; adds the full name of the file.
    pub(super) fn failed(&self, name: &str) -> impl FnOnce(io::Error) -> StateError {
        let file = self.full_name(name);
        |source| StateError::Io { file, source }
    }

    /// The error for a file that is not as it was written.
    pub(super) fn damaged(&self, name: &str, what: String) -> StateError {
        StateError::Damaged { file: self.full_name(name), what }
    }

    /// Converts the I/O error of a read. A read past the end means that the file was truncated.
    fn cut(&self, name: &str) -> impl FnOnce(io::Error) -> StateError {
        let file = self.full_name(name);
        |source| match source.kind() {
            io::ErrorKind::UnexpectedEof => StateError::Damaged { file, what: source.to_string() },
            _ => StateError::Io { file, source },
        }
    }

    pub(super) fn create(&self, name: &str) -> Result<Box<dyn Upload + '_>, StateError> {
        self.0.create(name).map_err(self.failed(name))
    }

    pub(super) fn put(&self, name: &str, bytes: &[u8]) -> Result<(), StateError> {
        self.0.put(name, bytes).map_err(self.failed(name))
    }

    pub(super) fn put_if_absent(&self, name: &str, bytes: &[u8]) -> Result<bool, StateError> {
        self.0.put_if_absent(name, bytes).map_err(self.failed(name))
    }

    pub(super) fn get_range(&self, name: &str, range: Range<u64>) -> Result<Vec<u8>, StateError> {
        self.0.get_range(name, range).map_err(self.cut(name))
    }

    pub(super) fn size(&self, name: &str) -> Result<u64, StateError> {
        self.0.size(name).map_err(self.failed(name))
    }

    pub(super) fn get(&self, name: &str) -> Result<Vec<u8>, StateError> {
        self.0.get(name).map_err(self.cut(name))
    }

    pub(super) fn list(&self) -> Result<Vec<String>, StateError> {
        self.0.list().map_err(|source| StateError::Io { file: self.place().to_owned(), source })
    }

    pub(super) fn sizes(&self) -> Result<BTreeMap<String, u64>, StateError> {
        self.0.sizes().map_err(|source| StateError::Io { file: self.place().to_owned(), source })
    }

    /// The same; empty if there is no such folder.
    pub(super) fn list_if_any(&self) -> Result<Vec<String>, StateError> {
        self.list().or_else(|error| if error.is_gone() { Ok(Vec::new()) } else { Err(error) })
    }

    /// Checks that files can be written.
    pub(super) fn probe(&self) -> Result<(), StateError> {
        self.0.probe().map_err(|source| StateError::Io { file: self.place().to_owned(), source })
    }

    pub(super) fn delete(&self, name: &str) -> Result<(), StateError> {
        self.0.delete(name).map_err(self.failed(name))
    }

    pub(super) fn own(&self) -> Result<Ownership, StateError> {
        self.0.own().map_err(|source| StateError::Io { file: self.place().to_owned(), source })
    }
}
