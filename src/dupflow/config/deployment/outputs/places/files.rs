//! Results in a file, or on standard output.

use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use super::place::{
    OpenError, OpenedOutput, OutputPlace, OutputSettings, Place, PlaceKind, ReadPlace, sink_of,
};
use crate::config::deployment::outputs::{OutputAnswer, OutputFormat};
use crate::config::deployment::values::path;
use crate::config::settings::FileSettings;
use dupflow_connectors::owned::OwnedFile;
use dupflow_connectors::sinks::answers::BoxedRows;
use dupflow_connectors::sinks::{DeferredWriter, Destination, MarkedFile, Publication, WithProvenance};

pub(super) const LINES: PlaceKind = PlaceKind {
    name: "lines",
    keys: &[&["sink.path", "sink.format"]],
    missing: || None,
    read: ReadPlace {
        table: |settings| OutputPlace::new(FilePlace::read(settings)),
        // What is typed is a file if it is of no other kind.
        typed: |_| None,
    },
};

/// Size of the output buffer, in bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// A file, or standard output.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct FilePlace {
    /// The file; `None` = standard output.
    pub path: Option<PathBuf>,
    /// The file of its mark; `None` = beside it.
    pub mark: Option<PathBuf>,
}

impl FilePlace {
    fn read(settings: &mut FileSettings) -> Self {
        let typed = settings.read("sink.path", path).filter(|path| !path.as_os_str().is_empty());
        typed.map_or_else(Self::default, |typed| Self::typed(&typed))
    }

    pub(super) fn typed(typed: &Path) -> Self {
        Self { path: Some(typed.to_owned()).filter(|path| path != Path::new("-")), mark: None }
    }

    /// Rows in the format, with their provenance if it is wanted. A file of the end is opened as such: it
    /// appears complete or not at all.
    ///
    /// # Errors
    /// If it cannot be opened.
    pub fn rows(&self, of: &dyn OutputSettings) -> Result<(BoxedRows, Option<Publication>), OpenError> {
        let failed = |source| (self.path.clone().unwrap_or_else(|| "-".into()), source);
        let answer = of.answer();
        let marked = self.path.as_deref().filter(|path| answer.is_of_changes() && is_file(path));
        let (to, published): (Box<dyn Destination + Send>, _) = match marked.filter(|_| of.continues()) {
            Some(path) => {
                let file = match &self.mark {
                    Some(mark) => MarkedFile::open_with(path, mark),
                    None => MarkedFile::open(path),
                };
                (Box::new(file.map_err(failed)?), None)
            }
            None => {
                let (out, published) = self.stream(of).map_err(failed)?;
                (Box::new(BufWriter::with_capacity(BUFFER_BYTES, out)), published)
            }
        };
        let lacks = || failed(io::Error::other("this build lacks its format"));
        let rows = of.format().open.ok_or_else(lacks)?(to, (answer.columns)(of)).map_err(failed)?;
        let rows: BoxedRows = match of.provenance() {
            None => rows,
            Some(provenance) => Box::new(WithProvenance::new(rows, provenance)),
        };
        Ok((rows, published))
    }

    /// The bytes to write. What is written at the end is held back until it is published.
    fn stream(&self, of: &dyn OutputSettings) -> io::Result<(Box<dyn Write + Send>, Option<Publication>)> {
        let is_of_end = !of.answer().is_of_changes();
        if let Some(path) = self.path.as_deref().filter(|path| is_of_end && is_file(path)) {
            // Processes of one replay use one name, so that what a killed one left is replaced.
            let (held, published) = DeferredWriter::for_file(path, of.deferred_name())?;
            return Ok((Box::new(held), Some(published)));
        }
        let out: Box<dyn Write + Send> = match &self.path {
            None => Box::new(io::stdout()),
            Some(path) => Box::new(OwnedFile::create(path)?),
        };
        if !of.answer().is_deferred() {
            return Ok((out, None));
        }
        let (held, published) = DeferredWriter::for_stream(out);
        Ok((Box::new(held), Some(published)))
    }
}

impl Place for FilePlace {
    fn kind(&self) -> &'static str {
        LINES.name
    }

    fn name(&self) -> String {
        self.path.as_ref().map_or_else(|| "standard output".to_owned(), |path| format!("{path:?}"))
    }

    fn refusal(&self, answer: OutputAnswer, format: OutputFormat, is_replay: bool) -> Option<&'static str> {
        (format.is_of_end && answer.is_of_changes() && !is_replay).then_some(
            "an Arrow or a Parquet file is whole at its end only, and changes are written as they come: \
             take \"jsonl\" or \"csv\", or another sink.emit",
        )
    }

    fn file(&self) -> Option<&Path> {
        self.path.as_deref()
    }

    fn beside(&self, answer: OutputAnswer) -> &'static [&'static str] {
        if self.mark.is_none() && answer.is_of_changes() { &MarkedFile::COMPANION_SUFFIXES } else { &[] }
    }

    fn mark_file(&self, answer: OutputAnswer) -> Option<PathBuf> {
        let beside = |path: &PathBuf| {
            let mut name = path.clone().into_os_string();
            name.push(MarkedFile::COMPANION_SUFFIXES[0]);
            name.into()
        };
        self.mark.clone().or_else(|| self.path.as_ref().filter(|_| answer.is_of_changes()).map(beside))
    }

    fn keeps_marks(&self, answer: OutputAnswer) -> bool {
        self.path.is_some() && answer.is_of_changes()
    }

    fn is_corrected(&self) -> bool {
        false
    }

    fn is_printed(&self) -> bool {
        self.path.is_none()
    }

    fn is_stdout(&self) -> bool {
        const NAMES: [&str; 3] = ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1"];
        self.path.as_deref().is_none_or(|path| NAMES.map(Path::new).contains(&path))
    }

    /// An output that is written at the end, or by a replay, has no mark.
    fn open(&self, of: &dyn OutputSettings) -> Result<OpenedOutput, OpenError> {
        let (rows, published) = self.rows(of)?;
        Ok((sink_of(of, rows).map_err(|error| (self.name().into(), error))?, published))
    }
}

/// Whether `path` is a regular file or does not exist yet; false for a pipe or a device.
fn is_file(path: &Path) -> bool {
    path.metadata().map_or(true, |found| found.is_file())
}
