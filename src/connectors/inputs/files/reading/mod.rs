//! Reads the records of inputs into a [`Cutter`], one input after another.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::io::{self, Read};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use walkdir::DirEntry;

use super::super::folder::{holds_records, in_order, is_hidden, table_of};
use super::super::input::{Input, InputPlace};
use super::super::known::{
    KnownFile, KnownSpan, PastReading, PresentInput, found as found_input, is_unended, nanoseconds,
    size_and_time,
};
use super::super::open::{Opened, Opening, is_document, is_plain_table};
use super::super::texts::RecordIndex;
use super::followed::Followed;
use super::revisits::Revisits;
use crate::canonical_url::canonical_id;
use crate::digest::{InputDigests, StreamDigest};
use crate::durable::Durable;
use crate::formats::{
    ArchiveRole, BadRecord, Damage, FailedRead, FeedReader, FileRow, IdRule, InputLayout, InputProgress,
    NextRow, ReadFailure, RecordPlace, RecordShape, RowReader, RowText, found, is_refusal, panicked,
};
use crate::intake::{
    BadRecordAt, BadRecords, Closed, Cutter, FileDocument, InputLog, ReadEnd, SourceError, SpanEnd,
};
use crate::mark::InputSpan;
use dupflow_core::doc::{DocId, Letter};
use dupflow_core::text::TextColumns;
use dupflow_run::origins::Origins;

mod lines;

/// The state of reading the inputs.
pub(crate) struct InputReading<'r> {
    pub(crate) cutter: Cutter<'r>,
    pub(crate) bad: &'r BadRecords,
    pub(crate) longest: usize,
    pub(crate) places: &'r RecordIndex,
    pub(crate) origins: Arc<Origins>,
    pub(crate) columns: &'r TextColumns,
    /// How rows of files are read as documents.
    pub(crate) row: Arc<RecordShape>,
    pub(crate) progress: &'r Arc<InputProgress>,
    /// Set while the next read of the input may block.
    pub(crate) waits: Arc<AtomicBool>,
    /// The first read error, which ends the run.
    pub(crate) failure: ReadFailure,
    /// The present input, if it is followed.
    pub(crate) followed: Option<Followed>,
    /// The present input, or the folder of the present file.
    pub(crate) of: Arc<str>,
    /// Where digests of the inputs are collected, if they are wanted and this process computes them.
    pub(crate) digests: Option<&'r InputDigests>,
    /// Where is noted what was read, for a later run.
    pub(crate) list: Option<&'r InputLog>,
    /// What an earlier run has read, if the inputs are not read in their order.
    pub(crate) known: Option<PastReading>,
    /// Number of inputs of each name that were begun.
    pub(crate) begun: BTreeMap<Arc<str>, u64>,
    /// The position at which the present input is left, if not at its end.
    pub(crate) until: Option<u64>,
    /// How the present input ended.
    pub(crate) ends: SpanEnd,
    /// The pages to which revisits of web archives may refer.
    pub(super) revisits: Revisits,
}

impl InputReading<'_> {
    /// Reads a file to its end, and on as it grows; of a journal only what is `durable`.
    pub(crate) fn follow(&mut self, input: &Input, durable: Option<&Arc<Durable>>) -> Result<(), ReadEnd> {
        let failed = |what: String| SourceError::Failed { input: input.name(), what };
        let InputPlace::File(path) = &input.place else {
            return Err(failed("only a file can be followed (source.follow)".to_owned()).into());
        };
        let followed = Followed::at(path.clone(), input.name(), durable.cloned());
        self.followed = Some(followed.map_err(|error| failed(format!("it cannot be followed: {error}")))?);
        self.input(input)
    }

    /// Reads again what an earlier run has read, in its order.
    pub(crate) fn known(&mut self) -> Result<(), ReadEnd> {
        let spans = self.known.as_mut().map(|known| std::mem::take(&mut known.spans)).unwrap_or_default();
        for KnownSpan { span, input, is_completed } in spans {
            let before = self.cutter.position().offset;
            self.cutter.leave_out(span.first.saturating_sub(before))?;
            let left_out = u64::from(is_completed);
            if let Some(PresentInput { input, .. }) = &input
                && span.after() <= self.cutter.begins_at()
            {
                // The state has its documents; only texts may be read back from it.
                self.places.begin(span.first, span.skipped, input);
                self.origins.begin(span.first, &input.name());
                self.revisits.leave_out(input);
            } else if let Some(PresentInput { input, folder }) = input {
                self.of = folder.clone().unwrap_or_else(|| input.name());
                self.until = Some(span.after() - left_out);
                self.cutter.begin(input.name())?;
                self.opened(&input, span.skipped, folder.is_some())?;
                self.until = None;
            }
            let at = self.cutter.position().offset;
            self.cutter.leave_out(span.after().saturating_sub(at))?;
        }
        Ok(())
    }

    /// Reads an input to its end.
    pub(crate) fn input(&mut self, input: &Input) -> Result<(), ReadEnd> {
        self.of = input.name();
        self.part(input, false)
    }

    /// Reads an input, or a file of a folder, to its end.
    fn part(&mut self, input: &Input, is_in_folder: bool) -> Result<(), ReadEnd> {
        let name = input.name();
        self.cutter.begin(Arc::clone(&name))?;
        let first = self.cutter.position().offset;
        if let InputPlace::Folder(path) = &input.place {
            self.places.begin(first, 0, input);
            self.origins.begin(first, &name);
            self.digests.iter().for_each(|digests| digests.add_documents(&name, true));
            return self.folder(path, input);
        }
        #[cfg(feature = "object-store")]
        if let InputPlace::Object(object) = &input.place {
            (0..object.hidden()).for_each(|_| self.skip("hidden"));
        }
        let Some(list) = self.list else { return self.opened(input, 0, is_in_folder) };
        let nth = self.begun.entry(Arc::clone(&name)).or_default();
        let key = (name.to_string(), *nth);
        *nth += 1;
        let read = self.known.as_ref().and_then(|known| known.files.get(&key)).copied();
        let skipped = match read {
            Some(KnownFile { has_more: false, .. }) if self.followed.is_none() => {
                self.revisits.leave_out(input);
                return Ok(());
            }
            Some(KnownFile { records, .. }) => records,
            None => 0,
        };
        if !is_in_folder && is_document(input) {
            let (bytes, modified) = size_and_time(input);
            list.document(&name, bytes, modified);
            return self.opened(input, skipped, is_in_folder);
        }
        list.begin(InputSpan { skipped, ..found_input(input, key.1, first) });
        self.ends = SpanEnd::default();
        self.opened(input, skipped, is_in_folder)?;
        self.ends.is_unended |= is_plain_table(input) && is_unended(input);
        self.cutter.end_input()?;
        list.end(self.cutter.position().offset, self.ends);
        Ok(())
    }

    /// Opens an input of records or a document, and reads it from its record `skipped` on.
    fn opened(&mut self, input: &Input, skipped: u64, is_in_folder: bool) -> Result<(), ReadEnd> {
        let name = input.name();
        let due = self.places.begin(self.cutter.position().offset, skipped, input);
        self.origins.begin(self.cutter.position().offset, &name);
        self.cutter.skip_first(skipped);
        let durable = self.followed.as_ref().and_then(Followed::durable);
        durable.iter().for_each(|durable| durable.begins_at(self.cutter.number()));
        self.revisits.begin(input);
        let digest = self.digests.map(|_| StreamDigest::default());
        let opening = Opening {
            columns: self.columns,
            progress: self.progress,
            waits: &self.waits,
            failure: &self.failure,
            digest: digest.clone(),
            durable,
        };
        let opened = opening.open(input);
        if let (Some(digests), Ok(Opened::Document(_))) = (self.digests, &opened) {
            digests.add_documents(&name, false);
            return self.records(input, opened, due, is_in_folder);
        }
        self.records(input, opened, due, is_in_folder)?;
        self.intact()?;
        if let (Some(digests), Some(digest)) = (self.digests, digest) {
            let is_whole = is_whole(input, &digest);
            input.part_tag().into_iter().for_each(|tag| digest.add(tag.as_bytes()));
            digests.add_stream(&name, &digest, is_whole);
        }
        Ok(())
    }

    /// Reads the records of an input that has been opened.
    fn records(
        &mut self,
        input: &Input,
        opened: io::Result<Opened>,
        due: u64,
        is_in_folder: bool,
    ) -> Result<(), ReadEnd> {
        let name = input.name();
        match opened {
            Ok(
                Opened::Rows(_) | Opened::Document(_) | Opened::Lines(FeedReader { compressed: true, .. }),
            ) if self.followed.is_some() => {
                let what = "only lines that are not compressed can be followed (source.follow): no JSON \
                    array, no table, no archive";
                let what = what.to_owned();
                Err(SourceError::Failed { input: name, what }.into())
            }
            Ok(Opened::Lines(FeedReader { mut bytes, compressed })) => {
                self.feed(&name, &input.layout, &mut bytes, compressed, due)
            }
            Ok(Opened::Rows(mut rows)) => self.rows(&name, &input.layout, &mut *rows),
            Ok(Opened::Document(file)) => Ok(self.cutter.file(file)?),
            // A refused input that the user named ends the run; a refused file of a folder is counted.
            Ok(Opened::Refused(why)) if is_in_folder => self.unread(name, why),
            Ok(Opened::Refused(why)) => {
                let of = if input.is_stdin() { "standard input".to_owned() } else { format!("\"{name}\"") };
                Err(SourceError::Inputs(vec![format!("cannot read {of}: {why}")]).into())
            }
            // Of a folder, what its owner keeps from others is left out; an input that is named is not.
            Err(error) if !is_in_folder && is_refusal(&error) => {
                Err(SourceError::Failed { input: name, what: error.to_string() }.into())
            }
            Err(error) => self.unread(name, error.to_string()),
        }
    }

    /// Counts a file that was not opened as one bad record, in whose place its first one is once it is whole.
    fn unread(&mut self, name: Arc<str>, why: String) -> Result<(), ReadEnd> {
        self.ends.is_broken = true;
        self.bad_file(name, BadRecord::Unreadable, Some(why))
    }

    /// Checks that no read has failed so far. To be called before a bad record is counted.
    fn intact(&self) -> Result<(), SourceError> {
        self.failure.get().map_or(Ok(()), |FailedRead { input, what }| {
            Err(SourceError::Failed { input: Arc::clone(input), what: what.clone() })
        })
    }

    /// Gives a revisit the text of the page that it refers to; false if that is not found. Holds another
    /// page.
    fn resolve(&mut self, row: &mut FileRow) -> Result<bool, SourceError> {
        match row.role {
            ArchiveRole::Other => Ok(true),
            ArchiveRole::Page(_) => {
                self.revisits.hold(row);
                Ok(true)
            }
            ArchiveRole::Revisit { .. } => {
                let (columns, progress, waits) = (self.columns, &Arc::default(), &Arc::default());
                let failure = &self.failure;
                let opening = Opening { columns, progress, waits, failure, digest: None, durable: None };
                self.revisits.resolve(row, columns, &opening)
            }
        }
    }

    /// Reads the rows of a file to its end, or up to damage that ends it.
    fn rows(
        &mut self,
        name: &Arc<str>,
        layout: &InputLayout,
        rows: &mut dyn RowReader,
    ) -> Result<(), ReadEnd> {
        let first = self.cutter.first_of_input();
        self.cutter.rows_of(&self.row, first);
        let mut row = FileRow::default();
        loop {
            if self.is_read() {
                return Ok(());
            }
            if self.waits.load(Ordering::Relaxed) {
                self.cutter.wait()?;
            }
            let number = self.cutter.number() - first;
            let next = catch_unwind(AssertUnwindSafe(|| rows.next(&mut row)));
            let was_broken = std::mem::take(&mut self.ends.is_broken);
            let mut next = next.unwrap_or_else(|_| Err(panicked()));
            if next == Ok(NextRow::Row) && !self.resolve(&mut row)? {
                next = Ok(NextRow::Skipped("revisit"));
            }
            // What was read before is passed on; a revisit may refer to what could not be read.
            if !matches!(next, Ok(NextRow::Row)) || matches!(row.role, ArchiveRole::Revisit { .. }) {
                self.intact()?;
            }
            let damage = match next {
                Ok(NextRow::End) => {
                    self.ends.is_broken = was_broken;
                    let notes = if self.cutter.reports() { rows.notes() } else { Vec::new() };
                    for note in notes {
                        tracing::warn!(input = &**name, "{note}");
                    }
                    if rows.cut() > 0 && self.cutter.reports() {
                        tracing::warn!(
                            input = &**name,
                            records = rows.cut(),
                            "the archive holds only the beginning of some documents"
                        );
                    }
                    let unresolved = self.revisits.end();
                    if unresolved > 0 && self.cutter.reports() {
                        tracing::warn!(
                            input = &**name,
                            records = unresolved,
                            "revisits refer to pages that are not among those before them (64 MiB of text \
                             are held): their addresses keep what they had"
                        );
                    }
                    return Ok(());
                }
                Ok(NextRow::Skipped(why)) => {
                    if self.cutter.reports() {
                        self.bad.skip(why);
                    }
                    self.cutter.skip_record()?;
                    continue;
                }
                Ok(NextRow::Row) if row.text == RowText::Missing => missing(BadRecord::MissingText, number),
                // A file that is one document (`ids = "file"`) is named by its path; its rows are numbered
                // otherwise.
                Ok(NextRow::Row) => {
                    let is_path = row.id.as_ref().is_some_and(|id| **id == *name.as_bytes());
                    match row.id.as_ref().filter(|_| layout.ids != IdRule::File || is_path) {
                        Some(id) if layout.canonical_url && !is_path => match canonical_id(id) {
                            Some(canonical) => {
                                self.cutter.row(canonical.as_str().as_bytes(), &row)?;
                                continue;
                            }
                            None => Damage {
                                cause: Some(format!("found {}, which is no address of a page", found(id))),
                                head: id.clone(),
                                ..missing(BadRecord::BadAddress, number)
                            },
                        },
                        Some(id) => {
                            self.cutter.row(id, &row)?;
                            continue;
                        }
                        None if row.text == RowText::Deleted
                            || layout.needs_address()
                            || layout.needs_ids && layout.ids != IdRule::File =>
                        {
                            missing(BadRecord::MissingId, number)
                        }
                        None => {
                            self.list.iter().for_each(|list| list.is_numbered());
                            self.cutter.row(format!("{name}#{number}").as_bytes(), &row)?;
                            continue;
                        }
                    }
                }
                Err(damage) => damage,
            };
            let Damage { reason, cause, place, head, ends } = damage;
            let place = if ends { place.and_behind() } else { place };
            // The last record may be completed later.
            self.ends.is_broken = ends || reason == BadRecord::Truncated;
            if self.cutter.reports() {
                self.report(
                    BadRecordAt { reason, input: Arc::clone(name), place, cause },
                    &head,
                    &mut io::empty(),
                )?;
            }
            self.cutter.bad(0)?;
            if ends {
                return Ok(());
            }
        }
    }

    /// Lists a folder's files; the workers read them.
    fn folder(&mut self, root: &Path, input: &Input) -> Result<(), ReadEnd> {
        let (mut records, mut texts) = (0_u64, 0_u64);
        let reports = self.cutter.reports();
        let bad = self.bad;
        // One that appeared after the start.
        let table = RefCell::new(None);
        let is_wanted = |entry: &DirEntry| {
            if let Some(found) = table_of(entry) {
                table.borrow_mut().get_or_insert(found);
            }
            let is_hidden = is_hidden(entry);
            if is_hidden && reports {
                bad.skip("hidden");
            }
            !is_hidden
        };
        let no_table = || match table.borrow_mut().take() {
            Some(found) => Err(SourceError::Inputs(vec![found.refusal()])),
            None => Ok(()),
        };
        for entry in in_order(root).into_iter().filter_entry(is_wanted) {
            no_table()?;
            match entry.and_then(|entry| Ok((entry.metadata()?, entry))) {
                Ok((found, entry)) if entry.file_type().is_file() => {
                    let bytes = found.len();
                    let path = entry.into_path();
                    if holds_records(&path, &input.layout) {
                        records += 1;
                        let place = InputPlace::File(path);
                        let file = Input { place, layout: Arc::clone(&input.layout), part: None };
                        self.bad.belongs(&file.name(), &self.of);
                        self.part(&file, true)?;
                        self.cutter.begin(input.name())?;
                        self.places.begin(self.cutter.position().offset, 0, input);
                        self.origins.begin(self.cutter.position().offset, &self.of);
                        continue;
                    }
                    texts += 1;
                    if let Some(list) = self.list {
                        let place = InputPlace::File(path.clone());
                        let file = Input { place, layout: Arc::clone(&input.layout), part: None };
                        list.document(&file.name(), bytes, nanoseconds(found.modified().ok()));
                    }
                    match document_id(path.strip_prefix(root).unwrap_or(&path)) {
                        Some(id) => self.cutter.file(FileDocument { id, path, bytes })?,
                        None => self.bad_file(path.to_string_lossy().into(), BadRecord::BadId, None)?,
                    }
                }
                Ok((_, entry)) if entry.file_type().is_dir() => {}
                // A socket, a pipe or a device.
                Ok(_) => self.skip("special"),
                Err(error) if error.loop_ancestor().is_some() => self.skip("circular"),
                Err(error) => {
                    let path = error.path().unwrap_or(root).to_string_lossy().into();
                    let cause = error.io_error();
                    // The folder itself was there when the run began.
                    let is_failure = |what: &&io::Error| error.depth() == 0 || !is_refusal(what);
                    cause
                        .iter()
                        .filter(|cause| is_failure(cause))
                        .for_each(|cause| self.failure.note(&path, cause));
                    let cause = cause.map(ToString::to_string);
                    self.bad_file(path, BadRecord::Unreadable, cause)?;
                }
            }
        }
        no_table()?;
        if records > 0 && texts > 0 && reports {
            tracing::warn!(
                folder = &*self.of,
                records,
                texts,
                "the folder mixes files of records with files that are a text each: name those that are \
                 meant, as in 'folder/**/*.jsonl'"
            );
        }
        Ok(())
    }

    /// Whether the present input has been read as far as it is to be.
    fn is_read(&self) -> bool {
        self.until.is_some_and(|until| until <= self.cutter.position().offset)
    }

    /// Counts an entry of a folder that is no document.
    fn skip(&self, why: &'static str) {
        if self.cutter.reports() {
            self.bad.skip(why);
        }
    }

    fn bad_file(&mut self, input: Arc<str>, reason: BadRecord, cause: Option<String>) -> Result<(), ReadEnd> {
        self.intact()?;
        if self.cutter.reports() {
            let at = BadRecordAt { reason, input, place: RecordPlace::Whole, cause };
            self.keep(&at, None)?;
            self.bad.tally_bad(&self.of, &at);
            self.bad.report_file(at)?;
        }
        Ok(self.cutter.bad(0)?)
    }

    /// Reports the next record as bad. Its bytes are `head` and then `tail`; a [`Letter`] keeps only `head`.
    fn report(&mut self, at: BadRecordAt, head: &[u8], tail: &mut dyn Read) -> Result<(), ReadEnd> {
        self.keep(&at, Some(head))?;
        self.bad.tally_bad(&self.of, &at);
        Ok(self.bad.report(at, head, tail)?)
    }

    /// Keeps the next record, which is bad, with its epoch, if bad records are kept there.
    fn keep(&mut self, at: &BadRecordAt, raw: Option<&[u8]>) -> Result<(), Closed> {
        let letter = self.bad.letter(|| Letter {
            input: Arc::clone(&at.input),
            position: self.cutter.position(),
            reason: at.reason.reason().into(),
            key: None,
            raw: raw.map(<[u8]>::to_vec),
            hides_records: at.hides_records(),
        });
        letter.map_or(Ok(()), |letter| self.cutter.keep(letter))
    }
}

/// Whether a digest covers all bytes of an input that has been read; adds the bytes of a file that were not
/// read in order.
fn is_whole(input: &Input, digest: &StreamDigest) -> bool {
    match &input.place {
        // Of a stream, what was read is the input.
        InputPlace::Stdin => true,
        InputPlace::File(path) | InputPlace::Folder(path) => {
            let is_stream = path.metadata().is_ok_and(|found| !found.is_file());
            is_stream || digest.add_rest(path).is_ok()
        }
        InputPlace::Memory(_, bytes) => {
            let read = usize::try_from(digest.bytes()).unwrap_or(usize::MAX).min(bytes.len());
            digest.add(&bytes[read..]);
            true
        }
        #[cfg(feature = "object-store")]
        InputPlace::Object(object) => digest.bytes() == object.bytes(),
    }
}

/// The damage of a row without a required value.
fn missing(reason: BadRecord, number: u64) -> Damage {
    Damage { reason, cause: None, place: RecordPlace::Record(number), head: Vec::new(), ends: false }
}

/// The path below the folder, with `/`; `None` if it is not UTF-8 or too long.
fn document_id(path: &Path) -> Option<DocId> {
    let parts: Option<Vec<&str>> = path.iter().map(|part| part.to_str()).collect();
    DocId::new(&parts?.join("/"))
}
