//! Follows a file: reads on as it grows, until the run is stopped.
//!
//! The file is polled with one system call each time, between waits on the queue. Of a file that this process
//! writes itself, a journal, only what is durable is read, as soon as it is. A position in a followed file is
//! the number of a record, as in every file. So the file must only grow. If it is truncated, rewritten, or
//! replaced by another file, the run ends with an error after everything readable has been read. Otherwise a
//! restart could not find its position in the other file, and would silently skip records.

use std::fs::{self, File, Metadata};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::{Duration, SystemTime};

use crate::durable::Durable;
use crate::intake::{Closed, PARTITION, Queue, ReadEnd, SourceError};

/// Time between two polls of the file.
const LOOK_EVERY: Duration = Duration::from_millis(100);

/// Bytes before the position that must equal those that were read.
const KEPT_BYTES: usize = 4096;

/// A followed file; see the [module](self).
pub(crate) struct Followed {
    path: PathBuf,
    name: Arc<str>,
    /// Device and inode, where the system has them.
    file: Option<(u64, u64)>,
    /// Whether another file has taken the name, and the previous one has been read to its end again.
    is_replaced: bool,
    /// The last bytes that were read: at least [`KEPT_BYTES`], if so many have been read.
    tail: Vec<u8>,
    /// Length and modification time of the file when [`Self::tail`] was last compared with it.
    compared: Option<(u64, Option<SystemTime>)>,
    /// What is durable, of a journal.
    durable: Option<Arc<Durable>>,
}

impl Followed {
    /// Follows the file at this path, which has just been opened; `durable` is of a journal.
    ///
    /// # Errors
    /// If its metadata cannot be read.
    pub(crate) fn at(path: PathBuf, name: Arc<str>, durable: Option<Arc<Durable>>) -> io::Result<Self> {
        let found = fs::metadata(&path)?;
        let (file, tail) = (which(&found), Vec::new());
        Ok(Self { path, name, file, is_replaced: false, tail, compared: None, durable })
    }

    /// What is durable, of a journal.
    pub(crate) fn durable(&self) -> Option<Arc<Durable>> {
        self.durable.clone()
    }

    /// Records that these bytes have been read, after all earlier ones.
    pub(crate) fn took(&mut self, bytes: &[u8]) {
        self.tail.extend_from_slice(&bytes[bytes.len().saturating_sub(KEPT_BYTES)..]);
        // Not at each line, since draining moves bytes.
        if self.tail.len() > 4 * KEPT_BYTES {
            self.tail.drain(..self.tail.len() - KEPT_BYTES);
        }
    }

    /// Records that bytes have been read without a call of [`Self::took`].
    pub(crate) fn missed(&mut self) {
        self.tail.clear();
    }

    /// Waits until there may be more than the first `read` bytes, all of which have been read.
    pub(crate) fn more(&mut self, read: u64, queue: &Queue) -> Result<(), ReadEnd> {
        queue.at_end(PARTITION);
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
                    if self.durable.as_ref().map_or(found.len(), |durable| durable.bytes()) > read {
                        return Ok(());
                    }
                }
                Ok(_) if self.is_replaced => {
                    return Err(self.lost("is another file now, and the one before has been read to its end"));
                }
                // The rest of the previous file is read first.
                Ok(_) => {
                    self.is_replaced = true;
                    return Ok(());
                }
                // The file has been unlinked; it may still be open in its writer.
                Err(error) if error.kind() == io::ErrorKind::NotFound => {
                    queue.pause(LOOK_EVERY)?;
                    return Ok(());
                }
                Err(error) => return Err(self.lost(&format!("cannot be looked at: {error}"))),
            }
            let pause = match &self.durable {
                // Its writer says when there is more.
                Some(durable) => {
                    durable.wait_beyond(read, LOOK_EVERY);
                    Duration::ZERO
                }
                None => LOOK_EVERY,
            };
            queue.pause(pause).map_err(|Closed| ReadEnd::Closed)?;
        }
    }

    /// Whether the file still has the last of its first `read` bytes as they were read.
    fn holds_what_was_read(&self, read: u64) -> Result<bool, ReadEnd> {
        let tail = &self.tail[self.tail.len().saturating_sub(KEPT_BYTES)..];
        let compare = || -> io::Result<bool> {
            let mut file = File::open(&self.path)?;
            if which(&file.metadata()?) != self.file {
                // Replaced in the meantime; the next poll finds that.
                return Ok(true);
            }
            file.seek(SeekFrom::Start(read.saturating_sub(tail.len() as u64)))?;
            let mut found = Vec::with_capacity(tail.len());
            file.take(tail.len() as u64).read_to_end(&mut found)?;
            Ok(found == tail)
        };
        match compare() {
            // Unlinked in the meantime; the next poll finds that.
            Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(true),
            told => told.map_err(|error| self.lost(&format!("cannot be looked at: {error}"))),
        }
    }

    fn lost(&self, what: &str) -> ReadEnd {
        let advice = "positions are numbers of records, so a file that is followed has to keep what it \
         holds; name the older files before it in \
                      source.inputs, in their order, and start again";
        SourceError::Failed {
            input: Arc::clone(&self.name),
            what: format!("the file that is followed {what}: {advice}"),
        }
        .into()
    }
}

/// Identifies a file independently of its name.
#[cfg(unix)]
fn which(found: &Metadata) -> Option<(u64, u64)> {
    use std::os::unix::fs::MetadataExt;

    Some((found.dev(), found.ino()))
}

/// Without inodes, only the length of a file shows that it was replaced.
#[cfg(not(unix))]
fn which(_: &Metadata) -> Option<(u64, u64)> {
    None
}
