//! The list of inputs beside a mark, where it has too many spans for every commit.
//!
//! ```text
//! out.jsonl.mark.inputs   one span a line; the mark has which bytes count, and the digest of the spans
//! ```
//!
//! Lines are only appended, before the mark that counts them is written. A list that does not go on from the
//! one in the file, as after a correction that reads everything again, follows it.

use std::io::{self, BufRead as _, Read as _};
use std::path::{Path, PathBuf};

use crate::mark::{InputList, InputSpan, ListedInputs, MOST_SPANS};
use crate::owned::OwnedFile;

/// The file, which is created with the first spans.
#[derive(Debug)]
pub struct InputFile {
    path: PathBuf,
    file: Option<OwnedFile>,
    listed: ListedInputs,
    /// The number of spans up to the end of the file, with those before it, and their digest.
    end: (u64, u64),
}

impl InputFile {
    /// The suffix of the file, after the name of the mark.
    pub const SUFFIX: &str = ".inputs";

    /// The file at this path, which may be missing.
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), file: None, listed: ListedInputs::default(), end: (0, 0) }
    }

    /// Takes over the part that counts by a mark, and cuts off what follows it. Returns the whole list of the
    /// mark.
    ///
    /// # Errors
    /// If the file is not as the mark says; any error of the file.
    pub fn take(&mut self, list: &InputList) -> io::Result<InputList> {
        self.file = None;
        let Some(listed) = list.beside else { return Ok(list.clone()) };
        if !self.path.is_file() {
            return Err(self.changed("is missing"));
        }
        let mut file = OwnedFile::open(&self.path)?;
        file.take(listed.to)?;
        file.cut()?;
        let mut bytes = file.lines()?;
        io::copy(&mut bytes.by_ref().take(listed.from), &mut io::sink())?;
        let read = bytes.lines().map(|line| Ok(serde_json::from_str(&line?).ok()));
        let read: io::Result<Option<Vec<InputSpan>>> = read.collect();
        let of_file = |spans: &Vec<InputSpan>| {
            spans.iter().fold(listed.digest, |before, span| span.digest(before)) == list.digest
        };
        let Some(mut spans) = read?.filter(of_file) else {
            return Err(self.changed("has other inputs than its mark holds"));
        };
        (self.file, self.listed, self.end) = (Some(file), listed, (list.stored, list.digest));
        spans.extend_from_slice(&list.spans);
        let ListedInputs { stored, digest, .. } = listed;
        Ok(InputList { stored, digest, spans, beside: None, ..list.clone() })
    }

    /// Writes the spans of a list that has too many for a mark, durably. Returns what the mark has instead.
    ///
    /// # Errors
    /// Any error of the file.
    pub fn put(&mut self, list: &InputList) -> io::Result<InputList> {
        let mut known = self.known(list);
        if list.spans.len() > MOST_SPANS {
            let new = &list.spans[known.unwrap_or(0)..];
            let file = match &mut self.file {
                Some(file) => file,
                none => none.insert(OwnedFile::create(&self.path)?),
            };
            if known.is_none() {
                let (stored, digest, from) = (list.stored, list.digest, file.length());
                self.listed = ListedInputs { stored, digest, from, to: from };
                self.end = (stored, digest);
            }
            let mut lines = Vec::new();
            for span in new {
                serde_json::to_writer(&mut lines, span)?;
                lines.push(b'\n');
            }
            file.append_durably(&lines)?;
            self.listed.to = file.length();
            self.end.0 += new.len() as u64;
            self.end.1 = new.iter().fold(self.end.1, |before, span| span.digest(before));
            known = Some(list.spans.len());
        }
        let Some(known) = known.filter(|_| self.listed.to > self.listed.from) else {
            return Ok(list.clone());
        };
        let ((stored, digest), beside) = (self.end, Some(self.listed));
        Ok(InputList { stored, digest, beside, spans: list.spans[known..].to_vec(), ..list.clone() })
    }

    /// How many of the spans of a list are in the file; `None` if the list does not go on from the file.
    fn known(&self, list: &InputList) -> Option<usize> {
        let (end, of_end) = self.end;
        let known = usize::try_from(end.checked_sub(list.stored)?).ok()?;
        let of_list = list.spans.get(..known)?.iter().fold(list.digest, |before, span| span.digest(before));
        (list.stored >= self.listed.stored && of_list == of_end).then_some(known)
    }

    fn changed(&self, what: &str) -> io::Error {
        let what = format!(
            "{}, the list of the inputs that were read, {what}: put it back, or move the output and the \
             files beside it away to begin anew",
            self.path.display()
        );
        io::Error::new(io::ErrorKind::InvalidData, what)
    }
}

#[cfg(test)]
#[expect(clippy::shadow_unrelated, reason = "a test is a sequence of small cases")]
mod tests {
    use super::*;
    use crate::mark::digest;

    const MOST: u64 = MOST_SPANS as u64;

    fn span(number: u64) -> InputSpan {
        InputSpan { name: format!("{number}.jsonl"), first: number, records: 1, ..InputSpan::default() }
    }

    /// A list of the inputs `from..to`, without the first ones.
    fn list(from: u64, to: u64, stored: u64) -> InputList {
        let before = digest(&(from..from + stored).map(span).collect::<Vec<_>>());
        let spans = (from + stored..to).map(span).collect();
        InputList { stored, digest: before, spans, files: to, ..InputList::default() }
    }

    fn without(list: &InputList) -> InputList {
        InputList { beside: None, ..list.clone() }
    }

    #[test]
    fn a_long_list_is_written_once_and_read_back() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("inputs");
        let mut file = InputFile::new(&path);
        assert_eq!(file.put(&list(0, MOST, 0)).unwrap(), list(0, MOST, 0));
        assert!(!path.exists(), "a short list is in the mark");
        let first = file.put(&list(0, MOST + 1, 0)).unwrap();
        assert_eq!(without(&first), list(0, MOST + 1, MOST + 1));
        let length = path.metadata().unwrap().len();
        let second = file.put(&list(0, MOST + 4, MOST + 1)).unwrap();
        assert_eq!((&without(&second), second.beside), (&list(0, MOST + 4, MOST + 1), first.beside));
        assert_eq!(path.metadata().unwrap().len(), length);
        let third = file.put(&list(0, 3 * MOST, MOST + 1)).unwrap();
        drop(file);
        // A later run has the whole list, and writes no part of it again.
        let length = path.metadata().unwrap().len();
        let mut file = InputFile::new(&path);
        assert_eq!(file.take(&third).unwrap(), list(0, 3 * MOST, 0));
        assert_eq!(file.put(&list(0, 3 * MOST, 0)).unwrap(), third);
        assert_eq!(path.metadata().unwrap().len(), length);
    }

    #[test]
    fn another_list_follows_and_leaves_the_first_to_its_mark() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("inputs");
        let mut file = InputFile::new(&path);
        let first = file.put(&list(0, 600, 0)).unwrap();
        let other = file.put(&list(7, 700, 0)).unwrap();
        let later = file.put(&list(7, 1400, 650)).unwrap();
        drop(file);
        for (mark, whole) in
            [(&later, list(7, 1400, 0)), (&other, list(7, 700, 0)), (&first, list(0, 600, 0))]
        {
            assert_eq!(InputFile::new(&path).take(mark).unwrap(), whole);
        }
        let error = |mark| InputFile::new(&path).take(mark).unwrap_err().to_string();
        assert!(error(&later).contains("were written"), "cut off by the mark of the first");
        std::fs::write(&path, vec![b'x'; 1 << 20]).unwrap();
        assert!(error(&first).contains("has other inputs"));
        std::fs::remove_file(&path).unwrap();
        assert!(error(&first).contains("is missing"));
    }

    #[test]
    fn a_list_whose_first_spans_a_state_has_begins_behind_them() {
        let folder = tempfile::tempdir().unwrap();
        let mut file = InputFile::new(&folder.path().join("inputs"));
        let mark = file.put(&list(0, 900, 100)).unwrap();
        assert_eq!(without(&mark), list(0, 900, 900));
        assert_eq!(file.take(&mark).unwrap(), list(0, 900, 100));
        assert_eq!(file.put(&list(0, 901, 900)).unwrap().spans.len(), 1);
        assert_eq!(file.put(&list(0, 905, 904)).unwrap(), list(0, 905, 904), "the state is further");
    }
}
