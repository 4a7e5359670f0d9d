//! Handles bad records: counted by reason, logged once per reason, and kept on request.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, BufWriter, Read, Write};
use std::ops::AddAssign;
use std::path::PathBuf;
use std::sync::Arc;

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::error::{BadRecordAt, SourceError};
use crate::digest::{DigestTable, InputDigests};
use crate::formats::BadRecord;
use crate::owned::OwnedFile;
use dupflow_core::doc::Letter;

/// What a bad record does to the run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum OnError {
    /// It is counted.
    #[default]
    Count,
    /// It is counted, and the run ends with it as the error.
    Fail,
}

/// Counts of the records of one input.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct InputTally {
    /// Records that are documents; a delete is not counted.
    pub documents: u64,
    /// Bad records.
    pub bad: u64,
    /// The reason of the first bad record.
    pub first: Option<String>,
}

impl InputTally {
    /// An error message for an input of this name, if it has records and none of them is a document.
    pub fn no_document(&self, name: &str) -> Option<String> {
        self.holds_no("document", name)
    }

    /// As [`Self::no_document`]; `what` is what the records should be.
    pub(crate) fn holds_no(&self, what: &str, name: &str) -> Option<String> {
        let Self { documents: 0, bad: bad @ 1.., first } = self else { return None };
        let records = if *bad == 1 { "record" } else { "records" };
        let first = first.as_deref().unwrap_or("all are bad");
        let is_text = name == "-" && first.contains(BadRecord::NotJson.reason());
        let hint = if is_text {
            "; standard input is read as JSON Lines: of a table name --format csv or tsv"
        } else {
            ""
        };
        Some(format!("\"{name}\" holds {bad} {records} and no {what}: {first}{hint}"))
    }
}

impl AddAssign<&Self> for InputTally {
    fn add_assign(&mut self, other: &Self) {
        self.documents += other.documents;
        self.bad += other.bad;
        if self.first.is_none() {
            self.first.clone_from(&other.first);
        }
    }
}

/// Files that were not read, or only in part: how many records they hold is not known.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnreadFiles {
    /// Number of files, or of places in files behind which records were not read.
    pub count: u64,
    /// The first of them, with the reason.
    pub first: Option<String>,
}

impl AddAssign<&Self> for UnreadFiles {
    fn add_assign(&mut self, other: &Self) {
        self.count += other.count;
        if self.first.is_none() {
            self.first.clone_from(&other.first);
        }
    }
}

/// Counts by input. Files of a folder count for the folder.
#[derive(Debug, Default)]
struct Tallies {
    by_input: BTreeMap<Arc<str>, InputTally>,
    folder_of: BTreeMap<Arc<str>, Arc<str>>,
}

/// Collects the bad records of a run; shared by the readers and the workers.
#[derive(Debug, Default)]
pub struct BadRecords {
    on_error: OnError,
    dead_letter: Option<DeadLetter>,
    /// Whether bad records are kept with their epoch.
    with_epoch: bool,
    /// Whether no record is logged.
    is_quiet: bool,
    counts: Mutex<BTreeMap<BadRecord, u64>>,
    /// Files that were not read, or only in part, and the first of them.
    unread: Mutex<UnreadFiles>,
    /// Valid records without a document, by reason.
    skipped: Mutex<BTreeMap<&'static str, u64>>,
    /// Counts by input, if all inputs are read from their beginnings; `None` if a run continues in the
    /// middle.
    tallies: Mutex<Option<Tallies>>,
    /// Digests of the inputs, if they are wanted.
    digests: Option<InputDigests>,
}

impl BadRecords {
    /// No records so far.
    pub fn new(on_error: OnError, dead_letter: Option<DeadLetter>) -> Self {
        Self { on_error, dead_letter, ..Self::default() }
    }

    /// No records so far; the reader or worker that reports a record keeps it with its epoch, as a
    /// [`Letter`].
    pub fn with_epochs(on_error: OnError) -> Self {
        Self { on_error, with_epoch: true, ..Self::default() }
    }

    /// As [`Self::with_epochs`], of records that are reported once more: none is logged.
    pub(crate) fn looked_at() -> Self {
        Self { is_quiet: true, ..Self::with_epochs(OnError::Count) }
    }

    /// No records so far. None is logged, and the records of each input are counted.
    pub(crate) fn tallied() -> Self {
        Self { is_quiet: true, tallies: Mutex::new(Some(Tallies::default())), ..Self::default() }
    }

    /// Computes digests of the inputs too, while they are read.
    #[must_use]
    pub fn with_digests(self) -> Self {
        Self { digests: Some(InputDigests::default()), ..self }
    }

    /// Where digests of the inputs are collected, if they are wanted.
    pub(crate) fn digests(&self) -> Option<&InputDigests> {
        self.digests.as_ref()
    }

    /// The digests of the inputs that have been read; empty if they are not computed.
    pub fn digest_table(&self) -> DigestTable {
        self.digests.as_ref().map(InputDigests::table).unwrap_or_default()
    }

    /// The files that were not read so far, or only in part.
    pub fn unread(&self) -> UnreadFiles {
        self.unread.lock().clone()
    }

    /// Counts a valid record without a document; `why` is one word.
    pub(crate) fn skip(&self, why: &'static str) {
        *self.skipped.lock().entry(why).or_default() += 1;
    }

    /// The numbers of valid records without a document, by reason.
    pub fn skipped(&self) -> BTreeMap<&'static str, u64> {
        self.skipped.lock().clone()
    }

    /// Counts the records of each input from now on: all inputs are read from their beginnings.
    pub(crate) fn count_inputs(&self) {
        self.tallies.lock().get_or_insert_default();
    }

    /// Counts the records of this file for the folder that has it.
    pub(crate) fn belongs(&self, file: &Arc<str>, folder: &Arc<str>) {
        if let Some(tallies) = &mut *self.tallies.lock() {
            tallies.folder_of.insert(Arc::clone(file), Arc::clone(folder));
        }
    }

    /// Adds to the counts of an input, if they are kept.
    pub(crate) fn tally(&self, input: &Arc<str>, of: &InputTally) {
        if let Some(Tallies { by_input, folder_of }) = &mut *self.tallies.lock() {
            let input = folder_of.get(input).unwrap_or(input);
            if let Some(known) = by_input.get_mut(input) {
                *known += of;
            } else {
                by_input.insert(Arc::clone(input), of.clone());
            }
        }
    }

    /// Counts a bad record of an input, if counts by input are kept.
    pub(crate) fn tally_bad(&self, input: &Arc<str>, at: &BadRecordAt) {
        self.tally(input, &InputTally { documents: 0, bad: 1, first: Some(at.to_string()) });
    }

    /// Whether this is the first bad record of its input or its reason, so that the exact cause is worth
    /// computing.
    pub(crate) fn is_first(&self, input: &Arc<str>, reason: BadRecord) -> bool {
        let counts = self.counts.lock();
        if !counts.contains_key(&reason) {
            return true;
        }
        drop(counts);
        let tallies = self.tallies.lock();
        tallies.as_ref().is_some_and(|tallies| {
            let input = tallies.folder_of.get(input).unwrap_or(input);
            tallies.by_input.get(input).is_none_or(|tally| tally.bad == 0)
        })
    }

    /// The counts of each input, by name; empty where a run continues in the middle.
    pub fn tallies(&self) -> BTreeMap<Arc<str>, InputTally> {
        let tallies = self.tallies.lock();
        tallies.as_ref().map(|tallies| tallies.by_input.clone()).unwrap_or_default()
    }

    /// The inputs that have records and no document, one message for each. Call it after everything has been
    /// read.
    pub fn without_document(&self) -> Vec<String> {
        self.tallies().iter().filter_map(|(name, tally)| tally.no_document(name)).collect()
    }

    /// Adds the counts of an earlier run, by reason, and the number of its unread files.
    pub fn resume(&self, before: &BTreeMap<String, u64>, unread: u64) {
        self.unread.lock().count += unread;
        let mut counts = self.counts.lock();
        for bad in BadRecord::ALL {
            if let Some(n) = before.get(bad.reason()) {
                *counts.entry(bad).or_default() += n;
            }
        }
    }

    /// Takes back a record that an earlier run had counted, and this one has counted again.
    pub fn repeated(&self, reason: &str) {
        if let Some((_, count)) = self.counts.lock().iter_mut().find(|(bad, _)| bad.reason() == reason) {
            *count = count.saturating_sub(1);
        }
    }

    /// Whether bad records are kept with their epoch.
    pub fn with_letters(&self) -> bool {
        self.with_epoch
    }

    /// The letter of a reported record, if bad records are kept with their epoch. Of a very long record it
    /// has the beginning.
    pub fn letter(&self, letter: impl FnOnce() -> Letter) -> Option<Letter> {
        self.with_epoch.then(letter)
    }

    /// Counts a record, logs the first one of its reason, and writes it to the dead-letter file. Its bytes
    /// are `head` and then all of `tail`, without the line end. `tail` is always read to its end, and must
    /// not fail.
    ///
    /// # Errors
    /// The record itself under [`OnError::Fail`], or a dead-letter file that cannot be written.
    pub fn report(&self, at: BadRecordAt, head: &[u8], tail: &mut dyn Read) -> Result<(), SourceError> {
        let first = {
            let mut counts = self.counts.lock();
            let count = counts.entry(at.reason).or_default();
            *count += 1;
            *count == 1
        };
        if at.hides_records() {
            *self.unread.lock() += &UnreadFiles { count: 1, first: Some(at.to_string()) };
        }
        if first && !self.is_quiet {
            let starts = beginning(head);
            tracing::warn!(
                reason = at.reason.reason(),
                starts,
                "{at}; further ones of this reason are only counted"
            );
        }
        match &self.dead_letter {
            Some(letter) => letter.keep(head, tail)?,
            // Neither side can fail: `tail` is memory or an input that holds back its errors.
            None => drop(io::copy(tail, &mut io::sink())),
        }
        match self.on_error {
            OnError::Count => Ok(()),
            OnError::Fail => {
                // The run ends here, so no later epoch would flush the file.
                self.flush()?;
                Err(at.into())
            }
        }
    }

    /// Like [`Self::report`], for a record that is a file or an input; it is written as
    /// `{"file":…,"reason":…}`.
    ///
    /// # Errors
    /// As [`Self::report`].
    pub fn report_file(&self, at: BadRecordAt) -> Result<(), SourceError> {
        let line = serde_json::json!({ "file": &*at.input, "reason": at.reason.reason() });
        self.report(at, line.to_string().as_bytes(), &mut io::empty())
    }

    /// Numbers of bad records so far, by reason.
    pub fn counts(&self) -> BTreeMap<&'static str, u64> {
        let counts = self.counts.lock();
        counts.iter().map(|(bad, &count)| (bad.reason(), count)).collect()
    }

    /// Flushes the dead-letter file. Called before the deltas of an epoch are written, so that its bad
    /// records are kept first.
    ///
    /// # Errors
    /// If the file cannot be written.
    pub fn flush(&self) -> Result<(), SourceError> {
        self.dead_letter.as_ref().map_or(Ok(()), |letter| letter.writing(|out| out.flush()))
    }
}

/// A file of complete bad records, one per line.
#[derive(Debug)]
pub struct DeadLetter {
    path: PathBuf,
    out: Mutex<BufWriter<File>>,
}

impl DeadLetter {
    /// Creates the file, or truncates it.
    ///
    /// # Errors
    /// If that is not possible; if a run has the file.
    pub fn create(path: PathBuf) -> Result<Self, SourceError> {
        match OwnedFile::check_free(&path).and_then(|()| File::create(&path)) {
            Ok(file) => Ok(Self { path, out: Mutex::new(BufWriter::new(file)) }),
            Err(source) => Err(SourceError::DeadLetter { path, source }),
        }
    }

    fn keep(&self, head: &[u8], tail: &mut dyn Read) -> Result<(), SourceError> {
        self.writing(|out| {
            out.write_all(head)?;
            io::copy(tail, out)?;
            out.write_all(b"\n")
        })
    }

    fn writing(&self, write: impl FnOnce(&mut BufWriter<File>) -> io::Result<()>) -> Result<(), SourceError> {
        write(&mut self.out.lock())
            .map_err(|source| SourceError::DeadLetter { path: self.path.clone(), source })
    }
}

/// The first bytes for a log line, at most 80 characters; the log escapes them.
fn beginning(record: &[u8]) -> String {
    // 80 characters have at most 320 bytes, so a character that is cut there is not shown.
    let start = &record[..record.len().min(4 * 80)];
    String::from_utf8_lossy(start).chars().take(80).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::formats::RecordPlace;

    fn at(reason: BadRecord, line: u64) -> BadRecordAt {
        BadRecordAt { reason, input: "feed.jsonl".into(), place: RecordPlace::Line(line), cause: None }
    }

    #[test]
    fn records_are_counted_by_reason_and_kept_whole() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dead");
        let bad = BadRecords::new(OnError::Count, Some(DeadLetter::create(path.clone()).unwrap()));
        bad.report(at(BadRecord::NotJson, 3), b"{oops\r", &mut io::empty()).unwrap();
        bad.report(at(BadRecord::NotJson, 4), b"", &mut io::empty()).unwrap();
        bad.report(at(BadRecord::TooLong, 5), b"\xff\xfe", &mut &b" and the rest"[..]).unwrap();
        let file =
            BadRecordAt { place: RecordPlace::Whole, input: "a \"b\"".into(), ..at(BadRecord::NotUtf8, 0) };
        bad.report_file(file).unwrap();
        bad.flush().unwrap();
        assert_eq!(bad.counts(), BTreeMap::from([("not_json", 2), ("not_utf8", 1), ("too_long", 1)]));
        let kept = b"{oops\r\n\n\xff\xfe and the rest\n{\"file\":\"a \\\"b\\\"\",\"reason\":\"not_utf8\"}\n";
        assert_eq!(std::fs::read(path).unwrap(), kept);
    }

    #[test]
    fn a_bad_record_is_the_error_under_fail() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("dead");
        let bad = BadRecords::new(OnError::Fail, Some(DeadLetter::create(path.clone()).unwrap()));
        let error = bad.report(at(BadRecord::MissingId, 7), b"{}", &mut io::empty()).unwrap_err();
        assert_eq!(std::fs::read(path).unwrap(), b"{}\n", "kept whole before the run ends with it");
        assert_eq!(error.to_string(), "bad record in \"feed.jsonl\", line 7: no id (missing_id)");
        assert_eq!(bad.counts(), BTreeMap::from([("missing_id", 1)]));
        let place = RecordPlace::Offset(9);
        assert!(BadRecordAt { place, ..at(BadRecord::BadId, 0) }.to_string().contains("\", offset 9: "));
    }

    #[test]
    fn the_tail_is_read_without_a_dead_letter_file() {
        let mut tail = &b"rest"[..];
        BadRecords::default().report(at(BadRecord::TooLong, 1), b"", &mut tail).unwrap();
        assert!(tail.is_empty());
    }

    #[test]
    fn a_dead_letter_file_that_cannot_be_created_is_an_error() {
        let error = DeadLetter::create("/nowhere/at/all".into()).unwrap_err();
        assert!(error.to_string().contains("\"/nowhere/at/all\""));
    }

    #[test]
    fn beginnings_are_short_and_not_yet_escaped() {
        assert_eq!(beginning(b"{\"a\n\xff"), "{\"a\n\u{fffd}");
        assert_eq!(beginning("é".repeat(1000).as_bytes()), "é".repeat(80));
    }
}
