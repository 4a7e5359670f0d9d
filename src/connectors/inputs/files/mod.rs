//! Reads recorded inputs: feeds (plain, zstd, gzip; files, pipes, standard input) and folders of documents.
//!
//! Inputs are read in order. Compression is detected by the first bytes. The documents of a folder are all
//! regular files below it, in the order of the bytes of their paths. Hidden files and everything below hidden
//! folders (names that begin with a point or `_`) are skipped, and symbolic links are not followed. A
//! document's id is its path below the folder, with `/`. A file whose name says that it has records
//! ([`open`](super::open)) is read as if it had been named itself.
//!
//! A feed may start with a UTF-8 byte order mark, its lines may end in CRLF, and its last line may have no
//! line end. A line longer than [`MAX_RECORD_BYTES`] is one bad record and never in memory as a whole. If a
//! compressed feed ends early or is damaged, or if reading fails, the records before count, the broken line
//! is one bad record, and the next input follows.

mod followed;
mod reading;
mod revisits;

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use super::followed_tables::FollowedTables;
use super::input::Input;
use super::known::{self, GoneInputs, PastReading};
use super::texts::{FileTexts, RecordIndex};
use crate::durable::Durable;
use crate::formats::{IdRule, InputProgress, MAX_RECORD_BYTES, ReadFailure, RecordShape, ValueFormat};
use crate::intake::{
    BadRecords, Cutter, EpochLimits, EpochRule, FileOrder, InputLog, PARTITION, PastInputs, Queue, ReadEnd,
    Resumption, Share, Source, SourceError, SourceReader, SpanEnd, Speed, Texts,
};
use dupflow_core::text::TextColumns;
use dupflow_core::time::{Clock, Offsets};
use dupflow_run::origins::Origins;
use reading::InputReading;
use revisits::Revisits;

/// Time between two looks at the log of a table that is followed.
const LOOK_AT_TABLES: Duration = Duration::from_secs(1);

/// A source of recorded inputs.
#[derive(Clone, Debug)]
pub struct Files {
    /// The inputs, in reading order.
    pub inputs: Vec<Input>,
    /// Where epochs are cut.
    pub epochs: EpochRule,
    /// How fast records are handed to the queue.
    pub speed: Speed,
    /// Which part of the input this process reads.
    pub share: Share,
    /// Whether the last input is read on as it grows.
    pub follow: bool,
    /// The tables that are followed: then no file is, and the inputs end when one has another version.
    pub tables: FollowedTables,
    /// What is durable of the last input, if that is a journal which this process writes.
    pub durable: Option<Arc<Durable>>,
    /// How many of the first inputs are a reference.
    pub reference: usize,
    /// The columns of the text, and further ones that are read with it.
    pub columns: TextColumns,
    /// The index of records, filled while they are read.
    pub places: Arc<RecordIndex>,
    /// Which input each record belongs to.
    pub origins: Arc<Origins>,
    /// How many bytes have been read.
    pub progress: Arc<InputProgress>,
    /// Which inputs were read, if a later run is to continue after them.
    pub list: Option<Arc<InputLog>>,
    /// What is done if inputs are gone that were read.
    pub gone: GoneInputs,
    /// What an earlier run has read, if this one does not read its inputs in their order.
    known: Option<PastReading>,
}

impl Files {
    /// Inputs that this process reads alone, at maximum speed, with these columns.
    pub fn new(inputs: Vec<Input>, epochs: EpochRule, columns: impl Into<TextColumns>) -> Self {
        let sizes = inputs.iter().map(Input::bytes);
        let total = sizes.sum::<Option<u64>>().unwrap_or(0);
        let warn = warn_rule(&inputs);
        Self {
            inputs,
            epochs,
            speed: Speed::Max,
            share: Share::ALL,
            follow: false,
            tables: FollowedTables::default(),
            durable: None,
            reference: 0,
            columns: columns.into(),
            places: Arc::default(),
            origins: Arc::new(Origins::new(warn, false)),
            progress: Arc::new(InputProgress::with_total(total)),
            list: None,
            gone: GoneInputs::default(),
            known: None,
        }
    }

    /// The same inputs, the first of which are a reference. To be called last.
    #[must_use]
    pub fn with_reference(self, inputs: usize) -> Self {
        let origins = Origins::new(warn_rule(&self.inputs), false).with_reference();
        if inputs == 0 { self } else { Self { reference: inputs, origins: Arc::new(origins), ..self } }
    }

    /// The same inputs for a run that a later one continues: with a list of what was read.
    #[must_use]
    pub fn continued(self, gone: GoneInputs) -> Self {
        Self { list: Some(Arc::default()), gone, ..self }
    }

    /// The same inputs, of which this process reads `share`.
    pub fn shared(self, share: Share) -> Self {
        let warn = warn_rule(&self.inputs);
        // If one process reads for all, the workers of the other processes report documents to it.
        let are_sent = share.count > 1 && !share.reads_all;
        Self { share, origins: Arc::new(Origins::new(warn, are_sent)), ..self }
    }
}

/// The function that logs the first document replaced by one of another file; `None` if ids may repeat.
fn warn_rule(inputs: &[Input]) -> Option<fn(&str)> {
    let warn: fn(&str) = |example| {
        tracing::warn!(
            "one id in several files: {example}; the later document replaces the earlier one, and further \
            ones \
             are only counted (--ids file names documents by their files, --ids last says that this is meant)"
        );
    };
    inputs.iter().all(|input| input.layout.ids == IdRule::Once).then_some(warn)
}

impl Source for Files {
    fn epochs(&self) -> EpochLimits {
        // [`EpochRule::events`] is exact, so the reader cuts by it; the queue only cuts by time.
        EpochLimits { interval: self.epochs.interval(), ..EpochLimits::default() }
    }

    fn cuts_alike(&self) -> bool {
        self.share.count > 1 && self.share.reads_all
    }

    fn begin(&mut self, from: Option<&Offsets>) -> Result<Offsets, SourceError> {
        let begin = from.and_then(|from| from.get(&PARTITION)).copied().unwrap_or(0);
        Ok(Offsets::from([(PARTITION, begin)]))
    }

    fn resume(&mut self, past: &PastInputs) -> Result<Resumption, SourceError> {
        let Some(list) = &self.list else { return Ok(Resumption::AsRead) };
        let inputs = &self.inputs[self.reference.min(self.inputs.len())..];
        let Some(continued) = known::resume(inputs, past, self.gone)? else {
            if past.read > 0 {
                tracing::warn!(
                    "the names of the inputs that an earlier version has read are not known: as many records \
                     as it read are skipped. Files that were added before the last one, or changed, since \
                     that version has ended are not noticed: if there are any, move the output and its mark \
                     away, and the folder of the state, and all is read again"
                );
            }
            self.known = None;
            list.continue_from((&[], 0), 0, (0, FileOrder::default()));
            return Ok(Resumption::AsRead);
        };
        let known_to = continued.spans.last().map_or(0, |span| span.after());
        let begin = (if continued.resumption == Resumption::Anew { 0 } else { past.begin }, continued.files);
        list.continue_from((&continued.spans, continued.stored), known_to, begin);
        if continued.known.is_some() {
            list.has_begun(continued.files);
        }
        self.known = continued.known;
        Ok(continued.resumption)
    }

    fn input_log(&self) -> Option<Arc<InputLog>> {
        self.list.clone()
    }

    fn progress(&self) -> Option<Arc<InputProgress>> {
        Some(Arc::clone(&self.progress))
    }

    fn origins(&self) -> Option<Arc<Origins>> {
        Some(Arc::clone(&self.origins))
    }

    fn texts(&self, columns: &TextColumns) -> Option<Box<dyn Texts>> {
        Some(Box::new(FileTexts::new(Arc::clone(&self.places), columns)))
    }

    fn readers(self: Box<Self>, begin: &Offsets) -> Vec<Box<dyn SourceReader>> {
        if !self.share.reads_all && self.share.index > 0 {
            return Vec::new();
        }
        let begin = begin.get(&PARTITION).copied().unwrap_or(0);
        vec![Box::new(FilesReader { files: *self, begin, longest: MAX_RECORD_BYTES })]
    }
}

/// Reads the inputs from an offset on.
struct FilesReader {
    files: Files,
    begin: u64,
    /// [`MAX_RECORD_BYTES`], except in tests.
    longest: usize,
}

impl SourceReader for FilesReader {
    fn read(&mut self, queue: &Queue, bad: &BadRecords, clock: &dyn Clock) -> Result<(), SourceError> {
        let known = self.files.known.take();
        // What an earlier run has read has been checked.
        self.files.durable.iter().for_each(|durable| durable.read(true));
        let Files {
            inputs, epochs, speed, share, follow, reference, columns, places, origins, progress, ..
        } = &self.files;
        let list = self.files.list.clone();
        let cutter = Cutter::new(queue, clock, *epochs, *speed, *share, self.begin).noting(list.clone());
        let row =
            RecordShape { format: ValueFormat::Row, headers: columns.to_vec(), ..RecordShape::default() };
        let mut reading = InputReading {
            cutter,
            bad,
            longest: self.longest,
            places,
            origins: Arc::clone(origins),
            columns,
            row: Arc::new(row),
            progress,
            waits: Arc::default(),
            failure: ReadFailure::default(),
            followed: None,
            of: "".into(),
            digests: bad.digests().filter(|_| share.reports()),
            list: None,
            known,
            begun: BTreeMap::new(),
            until: None,
            ends: SpanEnd::default(),
            revisits: Revisits::default(),
        };
        if self.begin == 0 {
            bad.count_inputs();
        }
        let tables = inputs.iter().filter_map(|input| input.part.as_ref());
        let tables: BTreeSet<_> = tables.map(|part| (&part.folder, part.version)).collect();
        for (folder, version) in tables {
            tracing::info!(table = %folder.display(), version, "a table is read as of this version");
        }
        let (reference, inputs) = inputs.split_at((*reference).min(inputs.len()));
        let follows_file = *follow && self.files.tables.is_empty() && !inputs.is_empty();
        let (before, last) = inputs.split_at(inputs.len() - usize::from(follows_file));
        let read = reference.iter().try_for_each(|input| reading.input(input));
        if !reference.is_empty() {
            origins.end_reference(reading.cutter.position().offset);
            places.end_reference();
        }
        reading.list = list.as_deref();
        let read = read.and_then(|()| reading.known());
        let read = read.and_then(|()| before.iter().try_for_each(|input| reading.input(input)));
        let read = read.and_then(|()| {
            last.iter().try_for_each(|input| reading.follow(input, self.files.durable.as_ref()))
        });
        places.end(reading.cutter.position().offset);
        let read = read.and_then(|()| self.wait_for_version(queue));
        if read.is_ok() && queue.line(PARTITION) == Some(u64::MAX) {
            // The run may have ended meanwhile.
            if reading.cutter.finish().is_ok() {
                queue.at_end(PARTITION);
            }
            return Ok(());
        }
        match read.and_then(|()| Ok(reading.cutter.finish()?)) {
            Ok(end) => self.ended(end, queue),
            Err(ReadEnd::Closed) => Ok(()),
            Err(ReadEnd::Failed(error)) => Err(error),
        }
    }
}

impl FilesReader {
    /// Waits until a table that is followed has another version than was read.
    fn wait_for_version(&self, queue: &Queue) -> Result<(), ReadEnd> {
        let tables = &self.files.tables;
        if tables.is_empty() {
            return Ok(());
        }
        queue.at_end(PARTITION);
        let lost = |(folder, what): (PathBuf, String)| SourceError::Failed {
            input: folder.to_string_lossy().into(),
            what,
        };
        while !tables.have_changed().map_err(lost)? {
            queue.pause(LOOK_AT_TABLES)?;
        }
        Ok(())
    }

    /// Called at the end of the input, which must not be before the offsets that an earlier run has read.
    fn ended(&self, end: u64, queue: &Queue) -> Result<(), SourceError> {
        let wanted = queue.line(PARTITION).unwrap_or(0).max(self.begin);
        if wanted <= end {
            return Ok(());
        }
        if self.files.inputs.iter().any(known::is_unnamed) {
            return Err(SourceError::Changed(known::UNNAMED.to_owned()));
        }
        let inputs: Vec<_> = self.files.inputs.iter().map(Input::name).collect();
        Err(SourceError::Lost {
            input: inputs.join(", ").into(),
            partition: PARTITION,
            wanted,
            first: 0,
            end,
            hint: "the inputs are not those that the output was made of; put them back and name them all, in \
                   the same order: one start lists what was read of each, and then source.gone decides about \
                   those that go",
        })
    }
}

#[cfg(test)]
mod tests;
