//! A file that one run appends to.

use std::fs::{File, OpenOptions};
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom, Write};
use std::path::{Path, PathBuf};

use super::place::{found_at, is_checked, is_same, locked, named, replaced, sync_folder_of};
use crate::digest::GrowingDigest;

/// Bytes of one read.
const READ_BYTES: usize = 256 << 10;

/// So many bytes without a value are no part of a line, but of a hole.
const HOLE_BYTES: usize = 64;

/// A file that one run appends to.
#[derive(Debug)]
pub struct OwnedFile {
    path: PathBuf,
    file: File,
    /// False for a pipe or a device, and for a name below `/dev`, which others may write to as well.
    is_file: bool,
    /// Bytes of the file that the run has taken over or written.
    length: u64,
    digest: GrowingDigest,
}

impl OwnedFile {
    /// Opens and locks a file; creates it if it is missing. Its contents do not change. Nothing of it is
    /// taken over yet.
    ///
    /// # Errors
    /// If it cannot be opened for reading and writing; if another run has locked it.
    pub fn open(path: &Path) -> io::Result<Self> {
        let mut options = OpenOptions::new();
        let file = locked(path, options.read(true).write(true).create(true).truncate(false))?;
        let metadata = file.metadata()?;
        if metadata.is_file() && metadata.len() == 0 {
            // An earlier process may have created it without its name being durable.
            sync_folder_of(path)?;
        }
        Ok(Self {
            path: path.to_owned(),
            file,
            is_file: is_checked(path, &metadata),
            length: 0,
            digest: GrowingDigest::default(),
        })
    }

    /// Opens, locks and empties a file; creates it if it is missing. A pipe or a device is opened for
    /// writing only, so that the end of its reader is noticed.
    ///
    /// # Errors
    /// As of [`Self::open`].
    pub fn create(path: &Path) -> io::Result<Self> {
        if path.metadata().is_ok_and(|found| !is_checked(path, &found)) {
            let (path, file) = (path.to_owned(), File::create(path)?);
            return Ok(Self { path, file, is_file: false, length: 0, digest: GrowingDigest::default() });
        }
        let mut file = Self::open(path)?;
        file.cut()?;
        Ok(file)
    }

    /// Checks that no run has locked the file at a path, if there is one. Nothing is created.
    ///
    /// # Errors
    /// If another run has; if the file cannot be opened.
    pub fn check_free(path: &Path) -> io::Result<()> {
        if !path.is_file() {
            return Ok(());
        }
        locked(path, OpenOptions::new().read(true).write(true)).map(drop)
    }

    /// Its path.
    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Whether it is a file, and no pipe or device.
    pub fn is_file(&self) -> bool {
        self.is_file
    }

    /// Bytes of the file that the run has taken over or written.
    pub fn length(&self) -> u64 {
        self.length
    }

    /// Bytes of the file, also those that are not taken over.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn size(&self) -> io::Result<u64> {
        Ok(self.file.metadata()?.len())
    }

    /// The digest of the bytes up to [`Self::length`].
    pub fn digest(&self) -> String {
        self.digest.digits()
    }

    /// Takes over the first `length` bytes, and reads them for the digest. The file is not changed.
    ///
    /// # Errors
    /// Any error of the file; if it is shorter.
    pub fn take(&mut self, length: u64) -> io::Result<()> {
        (self.length, self.digest) = (0, GrowingDigest::default());
        self.file.seek(SeekFrom::Start(0))?;
        let mut bytes = vec![0; READ_BYTES];
        while self.length < length {
            let most = usize::try_from(length - self.length).unwrap_or(READ_BYTES).min(READ_BYTES);
            let read = self.file.read(&mut bytes[..most])?;
            if read == 0 {
                return Err(self.changed(&format!("holds {} bytes, and {length} were written", self.length)));
            }
            self.digest.add(&bytes[..read]);
            self.length += read as u64;
        }
        Ok(())
    }

    /// Reads the whole file line by line, each with its end. A last line without an end, as a crash leaves
    /// it, is left out: it has to begin as all lines do, or to have no value.
    ///
    /// # Errors
    /// If the file cannot be read; if what follows the last line is no part of one.
    pub fn whole_lines(&self, beginning: &'static [u8]) -> io::Result<WholeLines> {
        Ok(WholeLines { file: self.path.clone(), reader: BufReader::new(File::open(&self.path)?), beginning })
    }

    /// Whether what was taken over has a hole: bytes without a value, as they are left where a file is cut
    /// while a program keeps writing at its place.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn has_hole(&self) -> io::Result<bool> {
        let mut lines = self.lines()?;
        loop {
            let bytes = lines.fill_buf()?;
            if bytes.is_empty() {
                return Ok(false);
            }
            if bytes.chunks_exact(HOLE_BYTES).any(|piece| piece.iter().all(|byte| *byte == 0)) {
                return Ok(true);
            }
            let length = bytes.len();
            lines.consume(length);
        }
    }

    /// Whether what follows the bytes that are taken over can be lines of this run: each begins in one of
    /// these ways, or has no value, as a crash leaves it.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn has_own_tail(&self, beginnings: &[&[u8]]) -> io::Result<bool> {
        let mut tail = BufReader::new(File::open(&self.path)?);
        tail.seek(SeekFrom::Start(self.length))?;
        let mut line = Vec::new();
        while tail.read_until(b'\n', &mut line)? > 0 {
            let begins =
                |with: &&[u8]| line.starts_with(with) || !line.ends_with(b"\n") && with.starts_with(&line);
            if !beginnings.iter().any(begins) && line.iter().any(|byte| *byte != 0) {
                return Ok(false);
            }
            line.clear();
        }
        Ok(true)
    }

    /// Cuts the file off after the bytes that are taken over, durably, and continues there.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn cut(&mut self) -> io::Result<()> {
        if self.is_file {
            if self.size()? != self.length {
                self.file.set_len(self.length)?;
                self.file.sync_all()?;
            }
            self.file.seek(SeekFrom::Start(self.length))?;
        }
        Ok(())
    }

    /// The bytes that the run has taken over or written.
    ///
    /// # Errors
    /// If the file cannot be opened.
    pub fn lines(&self) -> io::Result<impl BufRead + use<>> {
        Ok(BufReader::new(File::open(&self.path)?.take(self.length)))
    }

    /// Checks that the file at the path is the open one, and has the length that was written.
    ///
    /// # Errors
    /// If it is not; the message names the file, and what has happened to it.
    pub fn check(&self) -> io::Result<()> {
        if !self.is_file {
            return Ok(());
        }
        let (there, own) = (found_at(&self.path)?, self.length);
        match there {
            None => Err(self.changed("was removed or renamed while this run wrote to it")),
            Some(there) if !is_same(&there, &self.file.metadata()?) => {
                Err(self.changed("was replaced by another file while this run wrote to it"))
            }
            Some(there) if there.len() < own => Err(self.changed(&format!(
                "holds {} bytes, and this run has written {own}: it was cut while the run wrote to it",
                there.len()
            ))),
            Some(there) if there.len() > own => Err(self.changed(&format!(
                "holds {} bytes, and this run has written {own}: another program has written to it",
                there.len()
            ))),
            Some(_) => Ok(()),
        }
    }

    /// Appends bytes, after a [check](Self::check). After an error the file is as before.
    ///
    /// # Errors
    /// Any error of the file, with its path.
    pub fn append(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.check()?;
        if let Err(error) = self.file.write_all(bytes) {
            return Err(self.taken_back(named(&self.path, &error)));
        }
        self.length += bytes.len() as u64;
        self.digest.add(bytes);
        Ok(())
    }

    /// Appends bytes, durably. After an error the file is as before.
    ///
    /// # Errors
    /// As of [`Self::append`].
    pub fn append_durably(&mut self, bytes: &[u8]) -> io::Result<()> {
        let before = (self.length, self.digest.clone());
        self.append(bytes)?;
        self.sync().map_err(|error| {
            (self.length, self.digest) = before;
            self.taken_back(error)
        })
    }

    /// Replaces the whole file, durably, as [`replace`](super::replace).
    ///
    /// # Errors
    /// Any error of the file.
    pub fn replace(&mut self, bytes: &[u8]) -> io::Result<()> {
        self.file = replaced(&self.path, bytes)?;
        sync_folder_of(&self.path)?;
        (self.length, self.digest) = (0, GrowingDigest::default());
        self.take(bytes.len() as u64)
    }

    /// Makes what was appended durable.
    ///
    /// # Errors
    /// Any error of the file, with its path.
    pub fn sync(&self) -> io::Result<()> {
        match self.file.sync_data() {
            // A pipe cannot be synced.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => Ok(()),
            synced => synced.map_err(|error| named(&self.path, &error)),
        }
    }

    /// The error of a write, of which no part is left in the file: a later line must not follow a part of
    /// this one.
    fn taken_back(&mut self, error: io::Error) -> io::Error {
        match self.cut() {
            Ok(()) => error,
            Err(cut) => io::Error::new(error.kind(), format!("{error}; {cut}")),
        }
    }

    /// The error of a file that is not as this run, or an earlier one, has left it.
    pub(crate) fn changed(&self, what: &str) -> io::Error {
        io::Error::new(io::ErrorKind::InvalidData, format!("{} {what}", self.path.display()))
    }
}

/// The lines of a file; see [`OwnedFile::whole_lines`].
#[derive(Debug)]
pub struct WholeLines {
    file: PathBuf,
    reader: BufReader<File>,
    beginning: &'static [u8],
}

impl Iterator for WholeLines {
    type Item = io::Result<Vec<u8>>;

    fn next(&mut self) -> Option<Self::Item> {
        let mut line = Vec::new();
        match self.reader.read_until(b'\n', &mut line) {
            Err(error) => return Some(Err(error)),
            Ok(_) if line.ends_with(b"\n") => return Some(Ok(line)),
            Ok(_) => {}
        }
        let both = line.len().min(self.beginning.len());
        if line[..both] == self.beginning[..both] || line.iter().all(|byte| *byte == 0) {
            return None;
        }
        let what = format!("{} ends with what is no line of this run: move it away", self.file.display());
        Some(Err(io::Error::new(io::ErrorKind::InvalidData, what)))
    }
}

/// Each write is appended and checked; `flush` checks once more.
impl Write for OwnedFile {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.append(bytes)?;
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        self.check()
    }
}
