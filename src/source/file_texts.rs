//! Texts of recorded inputs, read back.
//!
//! A plain file is read from the nearest point of the [index](super::places) on. A compressed one has no points: it is read from its
//! beginning, up to [`MOST_BYTES`] of what it holds, which takes some seconds; what lies beyond is not given. Of a folder a document's
//! file is read: its path is the id, and its text that of this moment, since only its name tells that it is the same. Standard input
//! and pipes cannot be read twice.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};
use std::sync::Arc;

use super::batch::is_blank;
use super::cutter::PARTITION;
use super::input::{FeedReader, READ_BYTES};
use super::places::{From, Places};
use super::texts::{FoundText, NoText, Texts, of_event};
use super::{Input, MAX_RECORD_BYTES};
use crate::doc::{DocId, Position, without_separators};
use crate::feed::Parser;

/// The most bytes of a compressed input that are read to find a record, once decompressed: 1 GiB.
const MOST_BYTES: u64 = 1 << 30;

/// Reads texts of these inputs.
pub(super) struct FileTexts {
    inputs: Vec<Input>,
    places: Arc<Places>,
    parser: Parser,
    line: Vec<u8>,
    /// [`MOST_BYTES`], but in tests.
    most: u64,
}

/// What looking for a record comes to.
enum Sought {
    Found,
    /// The input ends before it.
    Ended,
    /// It has more bytes than may be read.
    TooFar,
}

impl FileTexts {
    pub(super) fn new(inputs: Vec<Input>, places: Arc<Places>, fields: &[String]) -> Self {
        Self { inputs, places, parser: Parser::with_fields(fields), line: Vec::new(), most: MOST_BYTES }
    }

    /// A record of a feed.
    fn of_feed(&mut self, path: &Path, from: From, id: &DocId, record: u64) -> Result<FoundText, NoText> {
        let name = path.display();
        let gone = |error: io::Error| NoText::Gone(format!("\"{name}\" cannot be read: {error}"));
        if !path.metadata().map_err(gone)?.is_file() {
            return Err(NoText::Unsupported(format!("\"{name}\" is a pipe, which cannot be read twice")));
        }
        let (mut bytes, compressed) = opened(path, from.byte).map_err(gone)?;
        let most = if compressed { self.most } else { u64::MAX };
        match self.seek(&mut bytes, from, record, most).map_err(gone)? {
            Sought::Found => {}
            Sought::TooFar => {
                return Err(NoText::Unsupported(format!(
                    "\"{name}\" is compressed, and the text lies behind its first {} bytes",
                    self.most
                )));
            }
            Sought::Ended if from.is_open => {
                return Err(NoText::Failed(format!("\"{name}\" has not been read so far yet")));
            }
            Sought::Ended => {
                return Err(NoText::Gone(format!("\"{name}\" ends before record {record}: it has changed")));
            }
        }
        let place = format!("record {record} of \"{name}\"");
        // Some longer line stands there now.
        let whole = if self.line.len() > MAX_RECORD_BYTES + 1 { &[][..] } else { &self.line };
        of_event(id, &place, self.parser.parse(whole).map(|found| found.event))
    }

    /// Reads up to a record, which is in `line` then.
    fn seek(&mut self, bytes: &mut dyn BufRead, from: From, record: u64, most: u64) -> io::Result<Sought> {
        let mut next = from.record;
        let mut read = 0;
        loop {
            self.line.clear();
            // One byte more than the longest line with its end, to notice that it is longer.
            let length = bytes.take(MAX_RECORD_BYTES as u64 + 2).read_until(b'\n', &mut self.line)?;
            let is_longer = length > MAX_RECORD_BYTES && !self.line.ends_with(b"\n");
            let rest = if is_longer { bytes.skip_until(b'\n')? } else { 0 };
            if length == 0 {
                return Ok(Sought::Ended);
            }
            if from.byte + read == 0 && self.line.starts_with(b"\xef\xbb\xbf") {
                self.line.drain(..3);
            }
            read += (length + rest) as u64;
            if is_longer || !is_blank(&self.line) {
                if next == record {
                    return Ok(Sought::Found);
                }
                next += 1;
            }
            if read >= most {
                return Ok(Sought::TooFar);
            }
        }
    }

    /// A file of a folder.
    fn of_folder(&self, root: &Path, id: &DocId) -> Result<FoundText, NoText> {
        let Some(path) = below(root, id) else {
            return Err(NoText::Gone(format!("no file of \"{}\" has this name", root.display())));
        };
        let gone = |what: &str| NoText::Gone(format!("\"{}\" {what}", path.display()));
        let unread = |error: io::Error| gone(&format!("cannot be read: {error}"));
        // Links are not followed, as they are not when a folder is read.
        if !path.symlink_metadata().map_err(unread)?.is_file() {
            return Err(gone("is no file any more"));
        }
        let mut bytes = Vec::new();
        let file = File::open(&path).map_err(unread)?;
        file.take(MAX_RECORD_BYTES as u64 + 1).read_to_end(&mut bytes).map_err(unread)?;
        let text = match std::str::from_utf8(&bytes) {
            Ok(text) if bytes.len() <= MAX_RECORD_BYTES => text,
            _ => return Err(gone("holds no document any more")),
        };
        let text = if self.parser.has_fields() { without_separators(text) } else { text.into() };
        Ok(FoundText::of(&text))
    }
}

impl Texts for FileTexts {
    fn text(&mut self, id: &DocId, position: Position) -> Result<FoundText, NoText> {
        let record = position.offset;
        let from = if position.partition == PARTITION { self.places.find(record) } else { None };
        let Some(from) = from else {
            return Err(NoText::Failed("the inputs have not been read so far yet".to_owned()));
        };
        match self.inputs.get(from.input).cloned() {
            Some(Input::Feed(path)) => self.of_feed(&path, from, id, record),
            Some(Input::Folder(root)) => self.of_folder(&root, id),
            Some(Input::Stdin) | None => {
                Err(NoText::Unsupported("standard input cannot be read twice".to_owned()))
            }
        }
    }
}

/// A file's bytes from one of them on, decompressed; and whether they were compressed.
fn opened(path: &Path, byte: u64) -> io::Result<(Box<dyn BufRead>, bool)> {
    let mut file = File::open(path)?;
    if byte == 0 {
        return FeedReader::new(file).map(|feed| (feed.bytes, feed.compressed));
    }
    file.seek(SeekFrom::Start(byte))?;
    Ok((Box::new(BufReader::with_capacity(READ_BYTES, file)), false))
}

/// The path of a file below a folder; `None` if an id leads elsewhere.
fn below(root: &Path, id: &DocId) -> Option<PathBuf> {
    let path = Path::new(id.as_str());
    let mut parts = path.components();
    parts.all(|part| matches!(part, Component::Normal(_))).then(|| root.join(path))
}

#[cfg(test)]
#[path = "file_texts_tests.rs"]
mod tests;
