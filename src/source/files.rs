//! Reads recorded inputs: feeds (plain, zstd, gzip; files, pipes, standard input) and folders of documents.
//!
//! Inputs are read in order. A feed is recognised as compressed by its first bytes. A folder's documents are all
//! regular files below it, hidden ones too, in the order of their paths' bytes; links are not followed; a document's id
//! is its path below the folder, with `/`.
//!
//! A feed may start with a UTF-8 byte order mark, its lines may end in CRLF, its last line may have no end. A line longer
//! than [`MAX_RECORD_BYTES`] is one bad record and never held whole. Where a compressed feed ends early or is damaged, and
//! where reading fails, what came before counts, the broken-off line is one bad record, and the next input follows.

use std::io::{self, BufRead, Read};
use std::path::Path;
use std::sync::Arc;

use walkdir::{DirEntry, WalkDir};

use super::batch::FileDocument;
use super::cutter::Cutter;
use super::input::{FeedReader, RestOfLine};
use super::queue::{Closed, Queue};
use super::{BadRecordAt, BadRecords, EpochRule, Input, MAX_RECORD_BYTES, SourceError, Speed};
use crate::doc::DocId;
use crate::feed::BadRecord;
use crate::time::Clock;

/// The reader of recorded inputs.
#[derive(Clone, Debug)]
pub struct Files {
    /// What to read, in this order.
    pub inputs: Vec<Input>,
    /// Where to cut.
    pub epochs: EpochRule,
    /// How fast.
    pub speed: Speed,
}

/// What was read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Totals {
    /// Records, bad ones included.
    pub records: u64,
    /// Bytes of input after decompression; of a folder's files, their sizes.
    pub bytes: u64,
    /// Epochs that hold a record.
    pub epochs: u64,
}

impl Files {
    /// Reads everything into the queue, on the calling thread, and finishes the queue, come what may. `None` if the queue
    /// was closed before the input ended.
    ///
    /// # Errors
    /// What [`BadRecords`] makes of a bad record.
    pub fn run(
        &self,
        queue: &Queue,
        bad: &BadRecords,
        clock: &dyn Clock,
    ) -> Result<Option<Totals>, SourceError> {
        /// Ends the queue however this thread ends, so that no worker waits for ever.
        struct Finish<'q>(&'q Queue);
        impl Drop for Finish<'_> {
            fn drop(&mut self) {
                self.0.finish();
            }
        }
        let _finish = Finish(queue);

        let cutter = Cutter::new(queue, clock, self.epochs, self.speed);
        let mut reading = Reading { cutter, bad, longest: MAX_RECORD_BYTES };
        match self.inputs.iter().try_for_each(|input| reading.input(input)) {
            Ok(()) => Ok(reading.cutter.finish().ok()),
            Err(Stop::Closed) => Ok(None),
            Err(Stop::Failed(error)) => Err(error),
        }
    }
}

/// Why reading stops before the end.
#[derive(Debug)]
enum Stop {
    Closed,
    Failed(SourceError),
}

impl From<Closed> for Stop {
    fn from(Closed: Closed) -> Self {
        Self::Closed
    }
}

impl From<SourceError> for Stop {
    fn from(error: SourceError) -> Self {
        Self::Failed(error)
    }
}

/// A reading under way.
struct Reading<'r> {
    cutter: Cutter<'r>,
    bad: &'r BadRecords,
    /// [`MAX_RECORD_BYTES`], but in tests.
    longest: usize,
}

impl Reading<'_> {
    fn input(&mut self, input: &Input) -> Result<(), Stop> {
        let name = input.name();
        self.cutter.begin(Arc::clone(&name))?;
        let feed = match input {
            Input::Folder(path) => return self.folder(path),
            Input::Stdin => FeedReader::new(io::stdin()),
            Input::Feed(path) => std::fs::File::open(path).and_then(FeedReader::new),
        };
        match feed {
            Ok(FeedReader { mut bytes, compressed }) => self.feed(&name, &mut bytes, compressed),
            Err(error) => self.bad_file(name, BadRecord::Unreadable, Some(error.to_string())),
        }
    }

    /// Reads one feed to its end or to where it breaks off.
    fn feed(&mut self, name: &Arc<str>, reader: &mut impl BufRead, compressed: bool) -> Result<(), Stop> {
        loop {
            let line = self.cutter.line_number();
            let buffer = self.cutter.buffer();
            let start = buffer.len();
            // One byte more, for the newline.
            let read = reader.take(self.longest as u64 + 1).read_until(b'\n', buffer);
            if line == 1 && buffer[start..].starts_with(b"\xef\xbb\xbf") {
                buffer.drain(start..start + 3);
            }
            let at = |reason| BadRecordAt { reason, input: Arc::clone(name), line: Some(line), cause: None };
            match read {
                Ok(0) => return Ok(()),
                Ok(n) if n > self.longest && !buffer.ends_with(b"\n") => {
                    let head = self.cutter.take_line(start);
                    let mut rest = RestOfLine::of(reader);
                    self.bad.report(at(BadRecord::TooLong), &head, &mut rest)?;
                    self.cutter.bad(1, n as u64 + rest.bytes)?;
                    if let Some(error) = rest.error {
                        return self.broken_off(name, &[], compressed, &error);
                    }
                }
                Ok(_) => self.cutter.line(start)?,
                Err(error) => {
                    let head = self.cutter.take_line(start);
                    return self.broken_off(name, &head, compressed, &error);
                }
            }
        }
    }

    /// The input ends with an error in the middle of the line that begins with `head`.
    fn broken_off(
        &mut self,
        name: &Arc<str>,
        head: &[u8],
        compressed: bool,
        error: &io::Error,
    ) -> Result<(), Stop> {
        let reason = if compressed { BadRecord::Truncated } else { BadRecord::Unreadable };
        let cause = Some(error.to_string());
        if head.is_empty() {
            return self.bad_file(Arc::clone(name), reason, cause);
        }
        let line = Some(self.cutter.line_number());
        let at = BadRecordAt { reason, input: Arc::clone(name), line, cause };
        self.bad.report(at, head, &mut io::empty())?;
        Ok(self.cutter.bad(1, head.len() as u64)?)
    }

    /// Reads the list of a folder's files; the workers read the files.
    fn folder(&mut self, root: &Path) -> Result<(), Stop> {
        // A folder sorts by its name with the separator that follows it in the paths of its files.
        let key = |entry: &DirEntry| {
            let mut name = entry.file_name().as_encoded_bytes().to_vec();
            name.extend(entry.file_type().is_dir().then_some(b'/'));
            name
        };
        for entry in WalkDir::new(root).sort_by(move |a, b| key(a).cmp(&key(b))) {
            match entry.and_then(|entry| Ok((entry.metadata()?.len(), entry))) {
                Ok((bytes, entry)) if entry.file_type().is_file() => {
                    let path = entry.into_path();
                    match document_id(path.strip_prefix(root).unwrap_or(&path)) {
                        Some(id) => self.cutter.file(FileDocument { id, path, bytes })?,
                        None => self.bad_file(path.to_string_lossy().into(), BadRecord::BadId, None)?,
                    }
                }
                Ok(_) => {}
                Err(error) => {
                    let path = error.path().unwrap_or(root).to_string_lossy().into();
                    let cause = error.io_error().map(ToString::to_string);
                    self.bad_file(path, BadRecord::Unreadable, cause)?;
                }
            }
        }
        Ok(())
    }

    fn bad_file(&mut self, input: Arc<str>, reason: BadRecord, cause: Option<String>) -> Result<(), Stop> {
        self.bad.report_file(BadRecordAt { reason, input, line: None, cause })?;
        Ok(self.cutter.bad(0, 0)?)
    }
}

/// The path below the folder, with `/`; `None` if it is not UTF-8 or too long.
fn document_id(path: &Path) -> Option<DocId> {
    let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
    DocId::new(&parts?.join("/"))
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
