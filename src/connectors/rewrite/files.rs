//! The files that copied records are written to: complete, or not at all.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;

use super::target::{CopyTarget, compression, shard_name};
use crate::formats::Compression;
#[cfg(feature = "parquet")]
use crate::formats::ParquetTarget;

/// Size of the buffer of a file, in bytes.
const BUFFER_BYTES: usize = 1 << 18;

/// The level of zstd: its default.
const ZSTD_LEVEL: i32 = 3;

/// The open file.
pub(super) enum OpenFile {
    Bytes(ByteFile),
    #[cfg(feature = "parquet")]
    Rows(ParquetTarget),
}

/// A file of records one after another.
pub(super) enum ByteFile {
    Plain(BufWriter<Box<dyn Write + Send>>),
    Gzip(GzEncoder<BufWriter<Box<dyn Write + Send>>>),
    Zstd(zstd::Encoder<'static, BufWriter<Box<dyn Write + Send>>>),
    /// Each record is compressed by itself, as in a web archive.
    Each(Compression, BufWriter<Box<dyn Write + Send>>),
}

impl ByteFile {
    /// A file that is compressed like this; `each`: record by record.
    pub(super) fn new(out: Box<dyn Write + Send>, compression: Compression, each: bool) -> io::Result<Self> {
        let out = BufWriter::with_capacity(BUFFER_BYTES, out);
        Ok(match compression {
            Compression::None => Self::Plain(out),
            _ if each => Self::Each(compression, out),
            Compression::Gzip => Self::Gzip(GzEncoder::new(out, flate2::Compression::default())),
            Compression::Zstd => Self::Zstd(zstd::Encoder::new(out, ZSTD_LEVEL)?),
        })
    }

    pub(super) fn write(&mut self, record: &[u8]) -> io::Result<()> {
        match self {
            Self::Plain(out) => out.write_all(record),
            Self::Gzip(out) => out.write_all(record),
            Self::Zstd(out) => out.write_all(record),
            Self::Each(Compression::Zstd, out) => out.write_all(&zstd::bulk::compress(record, ZSTD_LEVEL)?),
            Self::Each(_, out) => {
                let mut member = GzEncoder::new(out, flate2::Compression::default());
                member.write_all(record)?;
                member.finish().map(drop)
            }
        }
    }

    fn finish(self) -> io::Result<()> {
        match self {
            Self::Plain(mut out) | Self::Each(_, mut out) => out.flush(),
            Self::Gzip(out) => out.finish()?.flush(),
            Self::Zstd(out) => out.finish()?.flush(),
        }
    }
}

impl OpenFile {
    pub(super) fn finish(self) -> io::Result<()> {
        match self {
            Self::Bytes(file) => file.finish(),
            #[cfg(feature = "parquet")]
            Self::Rows(file) => file.finish(),
        }
    }
}

/// All files of a target. What is written is beside the target until it is published; dropped before that, it
/// is removed.
pub(super) struct TargetFiles {
    target: CopyTarget,
    /// The file or folder beside the target, and the target; `None` for a stream, and once it is published.
    beside: Option<(PathBuf, PathBuf)>,
    /// Number of files that have been opened.
    pub(super) count: usize,
    /// The file that was opened last.
    last: Option<PathBuf>,
    /// Whether complete files stay if the copy ends early.
    stay: bool,
}

impl TargetFiles {
    /// `run` must be unique to the run, or to those that go on with a copy; then complete files `stay` if the
    /// copy ends early.
    pub(super) fn new(target: CopyTarget, run: &str, stay: bool) -> io::Result<Self> {
        let beside = beside(&target, run)?;
        match (&beside, target.folder()) {
            (Some((beside, _)), Some(_)) => fs::create_dir_all(beside)?,
            // Fail here, before the run, and not after it.
            (Some((beside, _)), None) => File::create(beside).and_then(|_| fs::remove_file(beside))?,
            (None, _) => {}
        }
        Ok(Self { target, beside, count: 0, last: None, stay })
    }

    /// The folder of the target, if what was beside it has been moved there.
    pub(super) fn published(target: &CopyTarget, run: &str) -> io::Result<Option<PathBuf>> {
        let places = beside(target, run)?.filter(|_| target.folder().is_some());
        Ok(places.and_then(|(beside, place)| (!beside.exists() && place.exists()).then_some(place)))
    }

    /// Creates the next file. `below` is its path if the target is a folder; `stored` is the compression of
    /// its input.
    pub(super) fn create(
        &mut self,
        below: &Path,
        stored: Compression,
    ) -> io::Result<(Box<dyn Write + Send>, Compression)> {
        let number = self.count;
        self.count += 1;
        let mut file = |path: &Path| {
            self.last = Some(path.to_owned());
            File::create(path).map(|file| Box::new(file) as Box<dyn Write + Send>)
        };
        match (&self.target, &self.beside) {
            (CopyTarget::Stream(Some(path)), _) => Ok((file(path)?, Compression::None)),
            (CopyTarget::File(path), Some((beside, _))) => Ok((file(beside)?, compression(path))),
            (CopyTarget::Folder(_), Some((beside, _))) => {
                let path = beside.join(below);
                fs::create_dir_all(path.parent().unwrap_or(beside))?;
                Ok((file(&path)?, stored))
            }
            (CopyTarget::Shards(path, _), Some((beside, _))) => {
                Ok((file(&beside.join(shard_name(path, number)))?, compression(path)))
            }
            _ => Ok((Box::new(io::stdout()), Compression::None)),
        }
    }

    /// The folder beside the target; `None` if no folder is written.
    pub(super) fn folder(&self) -> Option<&Path> {
        self.beside.as_ref().filter(|_| self.target.folder().is_some()).map(|(beside, _)| &**beside)
    }

    /// The path, below that folder, of the file that was opened last.
    pub(super) fn last(&self) -> Option<&Path> {
        self.last.as_ref()?.strip_prefix(self.folder()?).ok()
    }

    /// Moves what was written to its place.
    pub(super) fn publish(mut self) -> io::Result<()> {
        let Some((beside, place)) = &self.beside else { return Ok(()) };
        if self.target.folder().is_none() {
            let file = if self.count == 0 { File::create(beside)? } else { File::open(beside)? };
            if let Ok(before) = place.metadata() {
                file.set_permissions(before.permissions())?;
            }
            file.sync_all()?;
        } else {
            walkdir::WalkDir::new(beside).into_iter().try_for_each(|entry| {
                let entry = entry?;
                if entry.file_type().is_file() { File::open(entry.path())?.sync_all() } else { Ok(()) }
            })?;
        }
        // A folder replaces an empty folder.
        fs::rename(beside, place)?;
        self.beside = None;
        Ok(())
    }
}

/// The file or folder that a run writes beside a target, and the target; `None` for a stream.
fn beside(target: &CopyTarget, run: &str) -> io::Result<Option<(PathBuf, PathBuf)>> {
    let place = match target {
        CopyTarget::Stream(_) => return Ok(None),
        CopyTarget::File(path) => path.canonicalize().unwrap_or_else(|_| path.clone()),
        CopyTarget::Folder(path) => path.clone(),
        CopyTarget::Shards(path, _) => super::target::parent(path),
    };
    // The folder "." has a name only as a whole path.
    let place = if place.is_dir() { place.canonicalize()? } else { place };
    let name = place.file_name().ok_or(io::ErrorKind::InvalidFilename)?.to_string_lossy().into_owned();
    Ok(Some((place.with_file_name(format!(".{name}.{run}.part")), place)))
}

impl Drop for TargetFiles {
    fn drop(&mut self) {
        if let Some((beside, _)) = self.beside.as_ref().filter(|_| !self.stay) {
            // What does not exist yet needs no removal.
            fs::remove_file(beside).or_else(|_| fs::remove_dir_all(beside)).unwrap_or(());
        }
    }
}
