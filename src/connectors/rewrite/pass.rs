//! The second pass over the inputs, which copies the selected records.

use std::fmt;
use std::io::{self, Write};
use std::path::PathBuf;
use std::sync::Arc;

use serde::Serialize;

use super::files::{ByteFile, OpenFile, TargetFiles};
use super::progress::{CopyNotes, CopyProgress};
use super::selection::{Selection, SelectionSlot};
use super::target::{CommonFolder, CopySettings, CopyTarget};
use crate::failpoint;
#[cfg(feature = "parquet")]
use crate::formats::ParquetCopy;
use crate::formats::{
    Compression, Dialect, FileFormat, MarkColumns, RawReader, RawRecords, RecordChoice, RecordParts,
    SharedPages, TextPlace, marked_csv_header, push_csv_mark, push_json_mark,
};
use crate::inputs::{FileStamp, Input, ReadInput, RecordIndex, Reopened, reopen};

/// The copy of the selected records of the inputs of a run, which is made after the run has ended.
pub struct DocumentsCopy {
    settings: CopySettings,
    inputs: Vec<Input>,
    places: Arc<RecordIndex>,
    slot: SelectionSlot,
    files: TargetFiles,
}

/// What has been copied.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct CopiedDocuments {
    /// Records written.
    pub records: u64,
    /// Records of live documents that were not selected.
    pub left_out: u64,
    /// Records that are no live document: bad ones, deletes, replaced and expired documents, and those that
    /// hold none.
    pub without_document: u64,
    /// Files written.
    pub files: u64,
    /// Bytes of the records written, before compression; of Parquet, of the files.
    pub bytes: u64,
}

impl DocumentsCopy {
    /// The copy of what will be in `slot`. `inputs` are those of the run; `places` is filled while they are
    /// read for the first time; `run` must be unique to the run.
    ///
    /// # Errors
    /// If no file can be created at the target.
    pub fn new(
        settings: CopySettings,
        inputs: Vec<Input>,
        places: Arc<RecordIndex>,
        slot: SelectionSlot,
        run: &str,
    ) -> io::Result<Self> {
        let resumed = settings.resume.as_ref();
        let run = resumed.map_or(run, |resume| &*resume.name);
        let files = TargetFiles::new(settings.target.clone(), run, resumed.is_some())?;
        Ok(Self { settings, inputs, places, slot, files })
    }

    /// Whether an earlier process has copied everything, and moved it to its place.
    ///
    /// # Errors
    /// If what it has noted cannot be read.
    pub fn is_published(settings: &CopySettings) -> io::Result<bool> {
        let Some(resume) = &settings.resume else { return Ok(false) };
        let folder = TargetFiles::published(&settings.target, &resume.name)?;
        folder.map_or(Ok(false), |folder| resume.are_in(&folder))
    }

    /// Reads the inputs again and writes the files, which appear at the end.
    ///
    /// # Errors
    /// If an input has changed or cannot be read again; any error of the files.
    pub fn write(self) -> io::Result<CopiedDocuments> {
        let Self { settings, inputs, places, slot, mut files } = self;
        let not_ended = || io::Error::other("the inputs have not been read to their ends");
        let all_read = places.inputs().ok_or_else(not_ended)?;
        let selection = slot.lock().take().ok_or_else(not_ended)?;
        let folder = matches!(settings.target, CopyTarget::Folder(_)).then(|| CommonFolder::among(&inputs));
        let cuts = settings.cuts();
        // One file is written anew.
        let resume = settings.resume.as_ref().zip(files.folder());
        let (notes, progress) = match resume {
            Some((resume, beside)) => {
                let (notes, progress) = resume.open(&selection, beside)?;
                (Some(notes), progress)
            }
            None => (None, CopyProgress::default()),
        };
        files.count = progress.files;
        let mut pass = CopyPass {
            columns: settings.mark.as_deref().map(|name| MarkColumns::new(name, settings.of_units)),
            cuts,
            selection: &selection,
            folder: folder.transpose()?,
            shard_bytes: match settings.target {
                CopyTarget::Shards(_, bytes) => bytes.get(),
                _ => u64::MAX,
            },
            open: None,
            written: progress.written,
            bytes: progress.bytes,
            in_file: 0,
            files,
            notes,
            progress,
            pages: SharedPages::default(),
        };
        for (before, read) in all_read.iter().enumerate().skip(pass.progress.inputs) {
            let named = |error: io::Error| {
                io::Error::new(
                    error.kind(),
                    format!("the second pass over \"{}\": {error}", read.input.name()),
                )
            };
            pass.input(read).map_err(named)?;
            pass.progress.inputs = before + 1;
            if pass.folder.is_some() {
                pass.close(read.records.end)?;
            }
        }
        pass.close(0)?;
        if pass.written != selection.count {
            let (written, count) = (pass.written, selection.count);
            return Err(io::Error::other(format!("{written} of {count} selected records were found again")));
        }
        let begin = all_read.first().map_or(0, |read| read.records.start);
        let all = all_read.last().map_or(0, |read| read.records.end) - begin;
        let copied = CopiedDocuments {
            records: pass.written,
            left_out: selection.alive - selection.count,
            without_document: all - selection.alive,
            files: pass.files.count as u64,
            bytes: pass.bytes,
        };
        pass.notes.as_mut().map_or(Ok(()), CopyNotes::complete)?;
        pass.files.publish()?;
        Ok(copied)
    }
}

/// The present state of the pass.
struct CopyPass<'s> {
    selection: &'s Selection,
    /// The columns of the mark.
    columns: Option<MarkColumns>,
    /// Whether repeated parts are cut out of texts.
    cuts: bool,
    /// If the target is a folder: that of the inputs.
    folder: Option<CommonFolder>,
    /// Bytes of records after which a file ends.
    shard_bytes: u64,
    files: TargetFiles,
    open: Option<CopyFile>,
    written: u64,
    bytes: u64,
    /// Bytes of records in the open file.
    in_file: u64,
    /// Where complete files are noted, if the copy can be gone on with.
    notes: Option<CopyNotes>,
    progress: CopyProgress,
    /// The pages to which revisits of web archives refer.
    pages: SharedPages,
}

/// The open file, and the input that decided its form.
struct CopyFile {
    file: OpenFile,
    format: FileFormat,
    /// The first bytes of every file of this form.
    header: Vec<u8>,
    #[cfg(feature = "parquet")]
    schema: Option<Arc<ParquetCopy>>,
    of: Arc<str>,
}

impl CopyPass<'_> {
    /// Copies the selected records of an input.
    fn input(&mut self, read: &ReadInput) -> io::Result<()> {
        if read.input.is_folder() {
            let is_empty = !read.records.clone().any(|record| self.selection.is_chosen(record));
            let why = "its files are documents, which are not copied";
            return if is_empty { Ok(()) } else { Err(io::Error::new(io::ErrorKind::Unsupported, why)) };
        }
        check(read)?;
        let Reopened { format, compression, text, records } = match reopen(&read.input, &self.pages) {
            // An input that could not be read in the first pass either.
            Err(_) if !read.records.clone().any(|record| self.selection.is_chosen(record)) => return Ok(()),
            opened => opened?,
        };
        match records {
            RawRecords::Bytes(mut raw) => {
                let parts = raw.parts();
                let (mut header, mut cells, mut place) = (parts.header().to_vec(), None, None);
                match parts {
                    RecordParts::Members => place = Some(TextPlace::member(&text)),
                    RecordParts::Cells(of_table, dialect) if !header.is_empty() => {
                        cells = Some(dialect);
                        if self.cuts {
                            place = Some(TextPlace::cell(of_table, dialect, &text)?);
                        }
                        if let Some(columns) = &self.columns {
                            header = marked_csv_header(of_table, dialect, columns)?;
                        }
                    }
                    RecordParts::Cells(..) | RecordParts::Sealed => {}
                }
                let are_sealed = matches!(parts, RecordParts::Sealed);
                let form = FileForm {
                    format,
                    compression,
                    header,
                    cells,
                    are_sealed,
                    text: place.filter(|_| self.cuts),
                    of: read.input.name(),
                };
                self.begin(read, &form)?;
                self.records(read, &form, &mut *raw)?;
            }
            #[cfg(feature = "parquet")]
            RawRecords::RowGroups(file) => {
                let rows = ParquetCopy::open(file)?;
                let rows = if self.cuts { rows.with_cuts(&text)? } else { rows };
                self.rows(read, format, rows)?;
            }
        }
        check(read)
    }

    /// Copies records that follow one another.
    fn records(&mut self, read: &ReadInput, form: &FileForm, raw: &mut dyn RawReader) -> io::Result<()> {
        let mut marked = Vec::new();
        let mut number = read.records.start;
        while let Some(record) = raw.next()? {
            if number == read.records.end {
                return Err(changed());
            }
            if number >= self.progress.next && self.selection.is_chosen(number) {
                if record.is_empty() {
                    return Err(io::Error::other(
                        "a record is a revisit, and the page that it refers to is in an input that is not \
                         read again: remove what has been copied, and copy from the beginning",
                    ));
                }
                let repeated = self.selection.repeated(number);
                let bytes = match &self.columns {
                    None if let Some(text) = form.text.as_ref().filter(|_| !repeated.is_empty()) => {
                        marked.clear();
                        marked.extend_from_slice(record);
                        text.cut(&mut marked, repeated)?;
                        &marked
                    }
                    None => record,
                    Some(columns) => {
                        marked.clear();
                        marked.extend_from_slice(record);
                        let of = (self.selection as &dyn RecordChoice, number);
                        match form.cells {
                            None => push_json_mark(&mut marked, columns, of)?,
                            Some(dialect) => push_csv_mark(&mut marked, dialect, columns, of)?,
                        }
                        &marked
                    }
                };
                self.record(read, form, number, bytes)?;
            }
            number += 1;
        }
        if number == read.records.end { Ok(()) } else { Err(changed()) }
    }

    fn record(&mut self, read: &ReadInput, form: &FileForm, number: u64, record: &[u8]) -> io::Result<()> {
        if self.in_file >= self.shard_bytes {
            self.close(number)?;
            self.begin(read, form)?;
        }
        let Some(CopyFile { file: OpenFile::Bytes(file), .. }) = &mut self.open else {
            return Err(io::Error::other("no file is open"));
        };
        file.write(record)?;
        self.written += 1;
        self.bytes += record.len() as u64;
        self.in_file += record.len() as u64;
        Ok(())
    }

    /// Makes sure that a file of this form is open.
    fn begin(&mut self, read: &ReadInput, form: &FileForm) -> io::Result<()> {
        if let Some(open) = &self.open {
            return if open.format != form.format {
                let (a, b) = (open.format.name(), form.format.name());
                Err(unlike(&open.of, format_args!("{a}, and this one is {b}")))
            } else if unmarked(&open.header) == unmarked(&form.header) {
                Ok(())
            } else {
                Err(unlike(&open.of, format_args!("another table")))
            };
        }
        let (out, compression) = self.create(read, form.compression)?;
        let mut file = ByteFile::new(out, compression, form.are_sealed)?;
        if !form.header.is_empty() {
            file.write(&form.header)?;
        }
        self.open = Some(CopyFile {
            file: OpenFile::Bytes(file),
            format: form.format,
            header: form.header.clone(),
            #[cfg(feature = "parquet")]
            schema: None,
            of: Arc::clone(&form.of),
        });
        Ok(())
    }

    /// Creates the next file.
    fn create(
        &mut self,
        read: &ReadInput,
        compression: Compression,
    ) -> io::Result<(Box<dyn Write + Send>, Compression)> {
        let below = match (&self.folder, read.input.path()) {
            (Some(folder), Some(path)) => folder.below(path)?,
            _ => PathBuf::new(),
        };
        self.in_file = 0;
        self.files.create(&below, compression)
    }

    /// Completes the open file; `next` is the record with which the next one begins.
    fn close(&mut self, next: u64) -> io::Result<()> {
        let Some(open) = self.open.take() else { return Ok(()) };
        open.file.finish()?;
        let Some((notes, path)) = self.notes.as_mut().zip(self.files.last()) else { return Ok(()) };
        let (written, bytes, files) = (self.written, self.bytes, self.files.count);
        self.progress = CopyProgress { next, written, bytes, files, ..self.progress };
        notes.complete_file(path, self.progress)?;
        failpoint::reach("copied");
        Ok(())
    }

    /// Copies the rows of a Parquet file.
    #[cfg(feature = "parquet")]
    fn rows(&mut self, read: &ReadInput, format: FileFormat, rows: ParquetCopy) -> io::Result<()> {
        if rows.rows() != read.records.end - read.records.start {
            return Err(changed());
        }
        let rows = Arc::new(rows);
        self.begin_rows(read, format, &rows)?;
        let mut first = read.records.start;
        for group in 0..rows.groups() {
            if first < self.progress.next {
                first += rows.group_rows(group);
                continue;
            }
            if self.in_file >= self.shard_bytes {
                self.close(first)?;
                self.begin_rows(read, format, &rows)?;
            }
            let Some(CopyFile { file: OpenFile::Rows(file), .. }) = &mut self.open else {
                return Err(io::Error::other("no file is open"));
            };
            let before = file.bytes();
            self.written += rows.copy(group, first, self.selection, file)?;
            self.bytes += file.bytes() - before;
            self.in_file = file.bytes();
            first += rows.group_rows(group);
        }
        Ok(())
    }

    /// Makes sure that a Parquet file of this schema is open.
    #[cfg(feature = "parquet")]
    fn begin_rows(
        &mut self,
        read: &ReadInput,
        format: FileFormat,
        rows: &Arc<ParquetCopy>,
    ) -> io::Result<()> {
        if let Some(open) = &self.open {
            return match &open.schema {
                Some(other) if other.has_schema_of(rows) => Ok(()),
                Some(_) => Err(unlike(&open.of, format_args!("a Parquet file with other columns"))),
                None => Err(unlike(
                    &open.of,
                    format_args!("{}, and this one is {}", open.format.name(), format.name()),
                )),
            };
        }
        let mut names = self.columns.iter().flat_map(MarkColumns::names);
        if let Some(column) = names.find(|column| rows.has(column)) {
            return Err(crate::formats::taken(column));
        }
        let (out, _) = self.create(read, Compression::None)?;
        let file = OpenFile::Rows(rows.target(out, self.columns.as_ref())?);
        let of = read.input.name();
        self.open = Some(CopyFile { file, format, header: Vec::new(), schema: Some(Arc::clone(rows)), of });
        Ok(())
    }
}

/// The form of a file of records one after another, by its input.
struct FileForm {
    format: FileFormat,
    compression: Compression,
    header: Vec<u8>,
    /// How cells are written; `None` for records that have none.
    cells: Option<Dialect>,
    /// Whether each record is compressed by itself.
    are_sealed: bool,
    /// Where texts are, if parts of them are cut out.
    text: Option<TextPlace>,
    of: Arc<str>,
}

/// A header without byte order mark and line end.
fn unmarked(header: &[u8]) -> &[u8] {
    header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(header).trim_ascii_end()
}

/// Checks that a file is as it was when it was read.
fn check(read: &ReadInput) -> io::Result<()> {
    let Some((path, stamp)) = read.input.path().zip(read.stamp) else { return Ok(()) };
    if FileStamp::read(path)? == stamp { Ok(()) } else { Err(changed()) }
}

fn changed() -> io::Error {
    io::Error::other(
        "it has changed since it was read, or has parts that cannot be read: the documents that were \
         selected are not in it as they were",
    )
}

fn unlike(first: &str, what: fmt::Arguments<'_>) -> io::Error {
    io::Error::other(format!(
        "\"{first}\" is {what}: one file takes one form; name a folder with --output, as in clean/"
    ))
}

impl fmt::Debug for DocumentsCopy {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("DocumentsCopy").field("settings", &self.settings).finish_non_exhaustive()
    }
}
