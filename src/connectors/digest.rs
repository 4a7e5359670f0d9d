//! Digests of inputs: SHA-256 of their bytes as stored, computed while they are read.
//!
//! A reader passes each input's bytes through a `DigestedReader`. What it does not read in order (columns
//! of a Parquet file, parts of an archive, the end of a damaged file) is read once more for the digest when
//! the input ends; of a stream, what was read counts. Files of a folder that are documents are digested by
//! the workers that read them. The digest of a folder is that of a listing, sorted by the bytes of the names,
//! with one line for each document:
//!
//! ```text
//! <64 hexadecimal digits>  <path below the folder, with "/">\n
//! ```
//!
//! This is what `sha256sum` prints for these files. Files that are skipped or cannot be read are not in it.
//! Behind the bytes of a file of a table is a hash of what the table says of it.
//!
//! `end_digest` is a cheap check of a file that is continued: of its last bytes only. A `GrowingDigest` is
//! one of all bytes of a file to which others are appended.

use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read, Seek, SeekFrom};
use std::ops::AddAssign;
use std::path::Path;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};
use sha2::{Digest as _, Sha256};

use dupflow_core::hash;

/// Bytes of one read of what was not read in order.
const READ_BYTES: usize = 128 << 10;

/// Bytes at the end of an output that [`end_digest`] covers.
const END_BYTES: u64 = 4 << 10;

/// A hash of the last 4 KiB of the first `length` bytes of a file, in hexadecimal digits.
///
/// # Errors
/// Any error of the file; if it is shorter.
pub(crate) fn end_digest(path: &Path, length: u64) -> io::Result<String> {
    let bytes = length.min(END_BYTES);
    let mut file = File::open(path)?;
    file.seek(SeekFrom::Start(length - bytes))?;
    let mut end = Vec::new();
    if file.take(bytes).read_to_end(&mut end)? as u64 != bytes {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    Ok(format!("{:016x}", hash::bytes(length, &end)))
}

/// Bytes of a block of a [`GrowingDigest`].
const BLOCK_BYTES: usize = 64 << 10;

/// A hash of all bytes of a file that grows: of whole blocks the hash of each, begun with that of the block
/// before, then of the rest.
#[derive(Clone, Debug, Default)]
pub(crate) struct GrowingDigest {
    blocks: u64,
    /// The bytes after the last whole block.
    rest: Vec<u8>,
}

impl GrowingDigest {
    /// Adds the next bytes.
    pub(crate) fn add(&mut self, mut bytes: &[u8]) {
        while self.rest.len() + bytes.len() >= BLOCK_BYTES {
            let (first, others) = bytes.split_at(BLOCK_BYTES - self.rest.len());
            self.rest.extend_from_slice(first);
            self.blocks = hash::bytes(self.blocks, &self.rest);
            self.rest.clear();
            bytes = others;
        }
        self.rest.extend_from_slice(bytes);
    }

    /// The hash in hexadecimal digits.
    pub(crate) fn digits(&self) -> String {
        format!("{:016x}", hash::bytes(self.blocks, &self.rest))
    }
}

/// What was read of one input.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputDigest {
    /// The input as the user named it, or the path of a file of records in a folder.
    pub name: String,
    /// Number of documents, if it is a folder whose files are documents.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub files: Option<u64>,
    /// Stored bytes; of a folder, those of its documents; `None` if they are not known.
    pub bytes: Option<u64>,
    /// 64 hexadecimal digits; `None` if not all bytes were read.
    pub sha256: Option<String>,
}

/// The digests of the inputs of one process, in reading order.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct DigestTable {
    inputs: Vec<(Arc<str>, DigestEntry)>,
    /// For each input whose files are documents: bytes and digest of each file, by its name.
    documents: BTreeMap<Arc<str>, BTreeMap<String, (u64, String)>>,
}

/// How the digest of an input is found.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
enum DigestEntry {
    /// It was read as one stream of bytes.
    Stream { bytes: u64, sha256: Option<String> },
    /// Its documents are in [`DigestTable::documents`]; true for a folder, false for a single file.
    Documents(bool),
}

/// Collects the digests of a run; shared by the readers and the workers.
#[derive(Debug, Default)]
pub(crate) struct InputDigests(Mutex<DigestTable>);

impl DigestTable {
    /// All inputs that were read to their ends, in reading order.
    pub fn inputs(&self) -> Vec<InputDigest> {
        let input = |(name, entry): &(Arc<str>, DigestEntry)| match entry {
            DigestEntry::Stream { bytes, sha256 } => InputDigest {
                name: name.to_string(),
                files: None,
                bytes: Some(*bytes),
                sha256: sha256.clone(),
            },
            DigestEntry::Documents(is_folder) => self.of_documents(name, *is_folder),
        };
        self.inputs.iter().map(input).collect()
    }

    fn of_documents(&self, name: &Arc<str>, is_folder: bool) -> InputDigest {
        let none = BTreeMap::new();
        let files = self.documents.get(name).unwrap_or(&none);
        let bytes = files.values().map(|(bytes, _)| bytes).sum();
        if let (false, Some((_, sha256))) = (is_folder, files.values().next()) {
            let (name, sha256) = (name.to_string(), Some(sha256.clone()));
            return InputDigest { name, files: None, bytes: Some(bytes), sha256 };
        }
        let listing = StreamDigest::default();
        for (file, (_, sha256)) in files {
            listing.add(format!("{sha256}  {file}\n").as_bytes());
        }
        let (files, sha256) = (Some(files.len() as u64), Some(listing.digits()));
        InputDigest { name: name.to_string(), files, bytes: Some(bytes), sha256 }
    }
}

impl AddAssign<&Self> for DigestTable {
    /// Adds the table of another process of the same run.
    fn add_assign(&mut self, other: &Self) {
        self.inputs.extend_from_slice(&other.inputs);
        for (input, files) in &other.documents {
            self.documents.entry(Arc::clone(input)).or_default().extend(files.clone());
        }
    }
}

impl InputDigests {
    /// Adds an input that was read as one stream; `is_whole`: all of its bytes are in the digest.
    pub(crate) fn add_stream(&self, name: &Arc<str>, digest: &StreamDigest, is_whole: bool) {
        let sha256 = is_whole.then(|| digest.digits());
        let entry = DigestEntry::Stream { bytes: digest.bytes(), sha256 };
        self.0.lock().inputs.push((Arc::clone(name), entry));
    }

    /// Adds an input whose files are documents, which workers read.
    pub(crate) fn add_documents(&self, name: &Arc<str>, is_folder: bool) {
        self.0.lock().inputs.push((Arc::clone(name), DigestEntry::Documents(is_folder)));
    }

    /// Adds a document of the input `of`, from its stored bytes.
    pub(crate) fn add_document(&self, of: &Arc<str>, name: &str, digest: &StreamDigest) {
        let found = (digest.bytes(), digest.digits());
        self.0.lock().documents.entry(Arc::clone(of)).or_default().insert(name.to_owned(), found);
    }

    /// The digests so far.
    pub(crate) fn table(&self) -> DigestTable {
        self.0.lock().clone()
    }
}

/// The digest of a sequence of bytes so far; clones share it.
#[derive(Clone, Debug, Default)]
pub(crate) struct StreamDigest(Arc<Mutex<(Sha256, u64)>>);

impl StreamDigest {
    /// Adds bytes.
    pub(crate) fn add(&self, bytes: &[u8]) {
        let (sha256, count) = &mut *self.0.lock();
        sha256.update(bytes);
        *count += bytes.len() as u64;
    }

    /// Adds the rest of a file, from the bytes added so far to its end.
    ///
    /// # Errors
    /// If the file cannot be read.
    pub(crate) fn add_rest(&self, path: &Path) -> io::Result<()> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::Start(self.bytes()))?;
        let mut buffer = vec![0; READ_BYTES];
        loop {
            match file.read(&mut buffer) {
                Ok(0) => return Ok(()),
                Ok(length) => self.add(&buffer[..length]),
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(error),
            }
        }
    }

    /// Number of bytes added.
    pub(crate) fn bytes(&self) -> u64 {
        self.0.lock().1
    }

    /// The digest of the bytes so far, as 64 hexadecimal digits.
    pub(crate) fn digits(&self) -> String {
        let digest = self.0.lock().0.clone().finalize();
        digest.iter().fold(String::new(), |mut digits, byte| {
            let _ = write!(digits, "{byte:02x}");
            digits
        })
    }
}

/// The SHA-256 of these bytes, as 64 hexadecimal digits.
pub fn sha256(bytes: &[u8]) -> String {
    let digest = StreamDigest::default();
    digest.add(bytes);
    digest.digits()
}

/// A reader whose bytes are added to a digest, if there is one.
pub(crate) struct DigestedReader<R> {
    inner: R,
    digest: Option<StreamDigest>,
}

impl<R: Read> DigestedReader<R> {
    pub(crate) fn new(inner: R, digest: Option<StreamDigest>) -> Self {
        Self { inner, digest }
    }
}

impl<R: Read> Read for DigestedReader<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        let length = self.inner.read(out)?;
        if let Some(digest) = &self.digest {
            digest.add(&out[..length]);
        }
        Ok(length)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The digest of "abc" in FIPS 180-2, appendix B.1.
    const ABC: &str = "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad";

    #[test]
    fn a_growing_digest_is_that_of_the_bytes_in_whatever_pieces() {
        let bytes: Vec<u8> = (0..251_u8).cycle().take(3 * BLOCK_BYTES + 17).collect();
        let of = |all: &[u8], piece: usize| {
            let mut digest = GrowingDigest::default();
            all.chunks(piece).for_each(|piece| digest.add(piece));
            digest.digits()
        };
        let whole = of(&bytes, bytes.len());
        for piece in [1, 7, 1000, BLOCK_BYTES - 1, BLOCK_BYTES, BLOCK_BYTES + 1] {
            assert_eq!(of(&bytes, piece), whole, "pieces of {piece} bytes");
        }
        for at in [0, BLOCK_BYTES - 1, BLOCK_BYTES, bytes.len() - 1] {
            let mut changed = bytes.clone();
            changed[at] ^= 1;
            assert_ne!(of(&changed, 1000), whole, "byte {at}");
        }
        assert_ne!(of(&bytes[..bytes.len() - 1], 1000), whole);
        assert_eq!(of(b"", 1), "2d06800538d394c2", "it is part of marks");
        assert_eq!(of(&bytes, 1000), of(&bytes, 999));
    }

    #[test]
    fn bytes_in_order_and_the_rest_of_a_file_are_one_digest() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("abc");
        std::fs::write(&path, "abc").unwrap();
        for first in 0..=3 {
            let digest = StreamDigest::default();
            let mut reader = DigestedReader::new(File::open(&path).unwrap(), Some(digest.clone()));
            reader.read_exact(&mut vec![0; first]).unwrap();
            digest.add_rest(&path).unwrap();
            assert_eq!((digest.bytes(), digest.digits().as_str()), (3, ABC), "after {first} bytes");
        }
    }

    #[test]
    fn a_folder_is_its_listing_whichever_process_reads_a_file() {
        let file = |bytes: &[u8]| {
            let digest = StreamDigest::default();
            digest.add(bytes);
            digest
        };
        let folder: Arc<str> = "folder".into();
        let (here, there) = (InputDigests::default(), InputDigests::default());
        here.add_stream(&"feed".into(), &file(b"abc"), true);
        here.add_documents(&folder, true);
        here.add_document(&folder, "b", &file(b"abc"));
        there.add_document(&folder, "a", &file(b""));
        let mut table = here.table();
        table += &there.table();
        let empty = file(b"").digits();
        let listing = file(format!("{empty}  a\n{ABC}  b\n").as_bytes()).digits();
        let input = |name: &str, files, sha256: &str| InputDigest {
            name: name.to_owned(),
            files,
            bytes: Some(3),
            sha256: Some(sha256.to_owned()),
        };
        assert_eq!(table.inputs(), [input("feed", None, ABC), input("folder", Some(2), &listing)]);
    }
}
