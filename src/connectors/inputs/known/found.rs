//! How an input is found now, and whether it still has what was read of it.
//!
//! A file is the one that was read if it still has the last 64 MiB before the position, or the last 4 KiB if
//! it was not read to its end. Size, time and inode alone only spare reading them: where all three are equal,
//! so are the bytes. An object of a store is the same if its entity tag is.

use std::fs::{self, File};
use std::io::{self, Read, Seek, SeekFrom};
use std::path::Path;
use std::time::SystemTime;

use super::super::input::{Input, InputPlace};
use super::super::stamp::number;
use crate::mark::InputSpan;
use dupflow_core::hash;

/// Bytes at the end of an input that are hashed, at most: nearly every file is hashed as a whole.
const END_BYTES: u64 = 64 << 20;

/// Bytes that are hashed at once.
const PIECE: usize = 256 << 10;

/// An input compared with what was read of it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Likeness {
    /// It is as it was read.
    Same,
    /// It has more bytes behind those that were read. `ends_line`: the first of them is a line end.
    Grown { ends_line: bool },
    /// It has fewer bytes than were read.
    Shorter,
    /// It has other bytes.
    Other,
}

impl Likeness {
    /// Whether the input begins with what was read.
    pub(crate) fn has_what_was_read(self) -> bool {
        matches!(self, Self::Same | Self::Grown { .. })
    }
}

/// The input as it is found, with no records. One without a name (standard input, a pipe) has only what it is
/// called.
pub(crate) fn found(input: &Input, nth: u64, first: u64) -> InputSpan {
    let (name, tag) = (input.name().to_string(), input.part_tag().cloned());
    let span = InputSpan { name, nth, first, tag, ..InputSpan::default() };
    match &input.place {
        InputPlace::File(path) => with_file(path, &span).unwrap_or(span),
        InputPlace::Stdin | InputPlace::Folder(_) => span,
        InputPlace::Memory(_, bytes) => {
            let end = Some((bytes.len() as u64, hash::bytes(0, bytes)));
            InputSpan { bytes: bytes.len() as u64, end, ..span }
        }
        #[cfg(feature = "object-store")]
        InputPlace::Object(object) => InputSpan {
            bytes: object.bytes(),
            modified: object.modified(),
            tag: Some(object.tag().unwrap_or_default().to_owned()),
            ..span
        },
    }
}

/// Whether an input has a name by which a later run finds it again.
pub(crate) fn is_named(span: &InputSpan) -> bool {
    span.end.is_some() || span.tag.is_some()
}

fn with_file(path: &Path, span: &InputSpan) -> Option<InputSpan> {
    let found = path.metadata().ok().filter(fs::Metadata::is_file)?;
    let bytes = found.len();
    let hashed = bytes.min(END_BYTES);
    let end = end_hash(&mut File::open(path).ok()?, bytes, hashed).ok()?;
    Some(InputSpan {
        bytes,
        end: Some((hashed, end)),
        modified: nanoseconds(found.modified().ok()),
        file: number(&found),
        ..span.clone()
    })
}

/// Compares an input with what was read of it.
pub(crate) fn compare(input: &Input, read: &InputSpan) -> Likeness {
    match &input.place {
        // The table gives it other rows.
        InputPlace::File(_) if input.part_tag() != read.tag.as_ref() => Likeness::Other,
        InputPlace::File(path) => compare_file(path, read).unwrap_or(Likeness::Other),
        InputPlace::Memory(..) => {
            let now = found(input, read.nth, read.first);
            if (now.bytes, now.end) == (read.bytes, read.end) { Likeness::Same } else { Likeness::Other }
        }
        InputPlace::Stdin | InputPlace::Folder(_) => Likeness::Same,
        #[cfg(feature = "object-store")]
        InputPlace::Object(_) => {
            let now = found(input, read.nth, read.first);
            let has_tag = now.tag.as_ref().is_some_and(|tag| !tag.is_empty());
            let is_same = if has_tag { now.tag == read.tag } else { now.modified == read.modified };
            match now.bytes {
                bytes if bytes == read.bytes && is_same => Likeness::Same,
                bytes if bytes < read.bytes => Likeness::Shorter,
                _ => Likeness::Other,
            }
        }
    }
}

fn compare_file(path: &Path, read: &InputSpan) -> io::Result<Likeness> {
    let now = path.metadata()?;
    let modified = nanoseconds(now.modified().ok());
    let is_untouched = modified.is_some() && (modified, number(&now)) == (read.modified, read.file);
    if now.len() == read.bytes && is_untouched {
        return Ok(Likeness::Same);
    }
    if now.len() < read.bytes {
        return Ok(Likeness::Shorter);
    }
    let Some((hashed, end)) = read.end else { return Ok(Likeness::Other) };
    let mut file = File::open(path)?;
    if end_hash(&mut file, read.bytes, hashed)? != end {
        return Ok(Likeness::Other);
    }
    if now.len() == read.bytes {
        return Ok(Likeness::Same);
    }
    let mut next = [0];
    file.read_exact(&mut next)?;
    Ok(Likeness::Grown { ends_line: matches!(next[0], b'\n' | b'\r') })
}

/// The hash of the last `hashed` of the first `bytes` bytes of a file, which is then at their end.
fn end_hash(file: &mut File, bytes: u64, hashed: u64) -> io::Result<u64> {
    file.seek(SeekFrom::Start(bytes.saturating_sub(hashed)))?;
    let mut left = usize::try_from(hashed).unwrap_or(usize::MAX);
    let (mut piece, mut end) = (vec![0; left.min(PIECE)], 0);
    loop {
        let length = left.min(PIECE);
        file.read_exact(&mut piece[..length])?;
        end = hash::bytes(end, &piece[..length]);
        left -= length;
        if left == 0 {
            return Ok(end);
        }
    }
}

/// The hash of the last `hashed` bytes of an input that has this size; `None` if it cannot be read.
pub(super) fn end_of(input: &Input, bytes: u64, hashed: u64) -> Option<u64> {
    match &input.place {
        InputPlace::File(path) => end_hash(&mut File::open(path).ok()?, bytes, hashed).ok(),
        InputPlace::Memory(..) => found(input, 0, 0).end.map(|(_, end)| end),
        _ => None,
    }
}

/// Device and number of a file.
pub(super) fn file_number(input: &Input) -> Option<(u64, u64)> {
    match &input.place {
        InputPlace::File(path) => number(&path.metadata().ok()?),
        _ => None,
    }
}

/// Whether a file ends in the middle of a line.
pub(crate) fn is_unended(input: &Input) -> bool {
    let last = |path: &Path| -> io::Result<u8> {
        let mut file = File::open(path)?;
        file.seek(SeekFrom::End(-1))?;
        let mut last = [0];
        file.read_exact(&mut last)?;
        Ok(last[0])
    };
    matches!(&input.place, InputPlace::File(path) if last(path).is_ok_and(|last| last != b'\n'))
}

/// The size of an input and when it was modified, as far as they are known.
pub(crate) fn size_and_time(input: &Input) -> (u64, Option<u64>) {
    match &input.place {
        InputPlace::File(path) => {
            let found = path.metadata().ok();
            let modified = found.as_ref().and_then(|found| found.modified().ok());
            (found.map_or(0, |found| found.len()), nanoseconds(modified))
        }
        #[cfg(feature = "object-store")]
        InputPlace::Object(object) => (object.bytes(), object.modified()),
        _ => (input.bytes().unwrap_or(0), None),
    }
}

/// A time in nanoseconds since 1970.
pub(crate) fn nanoseconds(time: Option<SystemTime>) -> Option<u64> {
    let since = time?.duration_since(SystemTime::UNIX_EPOCH).ok()?;
    u64::try_from(since.as_nanos()).ok()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    #[test]
    fn a_file_is_compared_by_the_bytes_before_the_position() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.jsonl");
        let input = Input::at(&path);
        fs::write(&path, "one\ntwo\n").unwrap();
        let read = found(&input, 0, 0);
        assert!(is_named(&read) && (read.bytes, read.end.unwrap().0) == (8, 8));
        let now = |text: &str| {
            fs::write(&path, text).unwrap();
            compare(&input, &read)
        };
        assert_eq!(now("one\ntwo\n"), Likeness::Same, "written again");
        assert_eq!(now("one\ntwo\nthree\n"), Likeness::Grown { ends_line: false });
        assert_eq!(now("one\ntwo\n\n"), Likeness::Grown { ends_line: true });
        assert_eq!(now("one\n"), Likeness::Shorter);
        assert_eq!(now("one\ntwO\n"), Likeness::Other);
        assert_eq!(now("one\ntwO\nthree\n"), Likeness::Other);
        // Equal size, time and number spare the reading.
        let file = File::options().append(true).open(&path).unwrap();
        file.set_len(8).unwrap();
        file.set_modified(SystemTime::UNIX_EPOCH + Duration::from_nanos(read.modified.unwrap())).unwrap();
        assert_eq!(compare(&input, &read), Likeness::Same);
        let copy = folder.path().join("copy.jsonl");
        fs::write(&copy, "one\ntwo\n").unwrap();
        assert_eq!(compare(&Input::at(&copy), &read), Likeness::Same, "another inode and time");
        fs::remove_file(&path).unwrap();
        assert_eq!(compare(&input, &read), Likeness::Other);
    }
}
