//! A file that is followed: read on as it grows, until the run is stopped.
//!
//! It is looked at again and again, by the waits of the queue: a look costs one call of the system. A
//! position in a followed file is a record's number, as in every file; so its records have to stay where they
//! are. One that is cut shorter or written anew, or that another file takes the place of, ends the run once
//! all has been read that can be: a restart could not find its place in the other file, and would leave out
//! records in silence.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use super::SourceError;
use super::cutter::Ended;
use super::queue::{Closed, Queue};

/// How long it is not looked at.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Bytes before the position that have to be those that were read.
const KEPT_BYTES: usize = 4096;

/// See the [module](self).
pub(super) struct Followed {
    path: PathBuf,
    name: Arc<str>,
    /// Which file it is, where the system says so.
    file: Option<(u64, u64)>,
    /// Another file has its name, and what was written before has been read once more.
    is_replaced: bool,
    /// The last bytes that were read, at least [`KEPT_BYTES`] if there were so many.
    tail: Vec<u8>,
    /// How long it was, and when it was written to, when the bytes before the position were compared last.
    compared: Option<(u64, Option<SystemTime>)>,
}

impl Followed {
    /// The file at this path, which has just been opened.
    ///
    /// # Errors
    /// If nothing is known of it.
    pub(super) fn at(path: PathBuf, name: Arc<str>) -> io::Result<Self> {
        let found = fs::metadata(&path)?;
        Ok(Self { path, name, file: which(&found), is_replaced: false, tail: Vec::new(), compared: None })
    }

    /// These bytes have been read, behind those before.
    pub(super) fn took(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(KEPT_BYTES)..]);
        // Not for each line.
        if self.tail.len() > 4 * KEPT_BYTES {
            self.tail.drain(..self.tail.len() - KEPT_BYTES);
        }
    }

    /// Bytes have been read that it was not shown.
    pub(super) fn missed(&mut self) {
        self.tail.clear();
    }

    /// Waits until there may be more than the `read` bytes that have been read, up to its end.
    pub(super) fn more(&mut self, read: u64, queue: &Queue) -> Result<(), Ended> {
        loop {
            match fs::metadata(&self.path) {
                Ok(found) if which(&found) == self.file => {
                    if found.len() < read {
                        let what = format!("has been cut to {} bytes, and {read} had been read", found.len());
                        return Err(self.lost(&what));
                    }
                    let state = (found.len(), found.modified().ok());
                    if self.compared != Some(state) && !self.holds_what_was_read(read)? {
                        let what = format!(
                            "has been written anew: before byte {read} it holds other bytes than were read"
                        );
                        return Err(self.lost(&what));
                    }
                    self.compared = Some(state);
                    if found.len() > read {
                        return Ok(());
                    }
                }
                Ok(_) if self.is_replaced => {
                    return Err(self.lost("is another file now, and the one before has been read to its end"));
                }
                // What has been written to the one before is still read.
                Ok(_) => {
                    self.is_replaced = true;
                    return Ok(());
                }
                // It has no name any more, and may still be written to.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    queue.pause(LOOK_EVERY)?;
                    return Ok(());
                }
                Err(error) => return Err(self.lost(&format!("cannot be looked at: {error}"))),
            }
            queue.pause(LOOK_EVERY).map_err(|Closed| Ended::Closed)?;
        }
    }

    /// Whether the last of the `read` bytes stand in the file as they were read.
    fn holds_what_was_read(&self, read: u64) -> Result<bool, Ended> {
        let tail = &self.tail[self.tail.len().saturating_sub(KEPT_BYTES)..];
        let compare = || -> io::Result<bool> {
            let mut file = File::open(&self.path)?;
            if which(&file.metadata()?) != self.file {
                // Another one has its name since; the next look finds that.
                return Ok(true);
            }
            file.seek(SeekFrom::Start(read.saturating_sub(tail.len() as u64)))?;
            let mut found = Vec::with_capacity(tail.len());
            file.take(tail.len() as u64).read_to_end(&mut found)?;
            Ok(found == tail)
        };
        match compare() {
            // The next look finds that too.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            told => told.map_err(|error| self.lost(&format!("cannot be looked at: {error}"))),
        }
    }

    fn lost(&self, what: &str) -> Ended {
        let advice = "positions are numbers of records, so a file that is followed has to keep what it holds; name the older files before it in \
                      source.inputs, in their order, and start again";
        SourceError::Failed {
            input: Arc::clone(&self.name),
            what: format!("the file that is followed {what}: {advice}"),
        }
        .into()
    }
}

/// What distinguishes a file from another one of its name.
#[cfg(unix)]
fn which(found: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;

    Some((found.dev(), found.ino()))
}

/// Here only its length does.
#[cfg(not(unix))]
fn which(_: &Metadata) -> Option<(u64, u64)> {
    None
}
