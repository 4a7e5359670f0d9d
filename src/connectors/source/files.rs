//! Reads recorded inputs: feeds (plain, zstd, gzip; files, pipes, standard input) and folders of documents.
//!
//! Inputs are read in order. A feed is recognised as compressed by its first bytes. A folder's documents are
//! all regular files below it, in the order of their paths' bytes, but those that are hidden, or below what
//! is: their names begin with a point or `_`; links are not followed; a document's id is its path below the
//! folder, with `/`. Files whose names say that they hold records ([`opened`](super::opened)) are read as
//! such, as if they were named.
//!
//! A feed may start with a UTF-8 byte order mark, its lines may end in CRLF, its last line may have no end. A
//! line longer than [`MAX_RECORD_BYTES`] is one bad record and never held whole. Where a compressed feed ends
//! early or is damaged, and where reading fails, what came before counts, the broken-off line is one bad
//! record, and the next input follows.

use std::sync::Arc;

use super::cutter::Ended;
use super::cutter::{Cutter, PARTITION};
use super::file_texts::FileTexts;
use super::places::Places;
use super::queue::{EpochLimits, Queue};
use super::reading::Reading;
use super::{
    BadRecords, EpochRule, Format, IdRule, Input, InputProgress, MAX_RECORD_BYTES, Reader, Shape, Share,
    Source, SourceError, Speed, Texts,
};
use dupflow_core::run::origins::Origins;
use dupflow_core::time::{Clock, Offsets};

/// The reader of recorded inputs.
#[derive(Clone, Debug)]
pub struct Files {
    /// What to read, in this order.
    pub inputs: Vec<Input>,
    /// Where to cut.
    pub epochs: EpochRule,
    /// How fast.
    pub speed: Speed,
    /// What of it is read here.
    pub share: Share,
    /// Whether the last of them is read on as it grows.
    pub follow: bool,
    /// Further fields that are read with texts.
    pub fields: Vec<String>,
    /// Where records stand, once they have been read.
    pub places: Arc<Places>,
    /// Which of them each record is of.
    pub origins: Arc<Origins>,
    /// How far they have been read.
    pub progress: Arc<InputProgress>,
}

impl Files {
    /// Inputs read as fast as possible, all of them here, their texts with these further fields.
    pub fn of(inputs: Vec<Input>, epochs: EpochRule, fields: Vec<String>) -> Self {
        let sizes = inputs.iter().map(Input::bytes);
        let total = sizes.sum::<Option<u64>>().unwrap_or(0);
        let warns = inputs.iter().all(|input| input.layout.ids == IdRule::Once);
        Self {
            inputs,
            epochs,
            speed: Speed::Max,
            share: Share::ALL,
            follow: false,
            fields,
            places: Arc::default(),
            origins: Arc::new(Origins::new(warns, false)),
            progress: Arc::new(InputProgress::of(total)),
        }
    }

    /// The same, of which this share is read here.
    pub fn shared(self, share: Share) -> Self {
        let warns = self.inputs.iter().all(|input| input.layout.ids == IdRule::Once);
        // Where one process reads for all, the others find the documents.
        let are_sent = share.count > 1 && !share.reads_all;
        Self { share, origins: Arc::new(Origins::new(warns, are_sent)), ..self }
    }
}

impl Source for Files {
    fn epochs(&self) -> EpochLimits {
        // By their number they are cut exactly, by the reader.
        EpochLimits { interval: self.epochs.interval(), ..EpochLimits::default() }
    }

    fn cuts_alike(&self) -> bool {
        self.share.count > 1 && self.share.reads_all
    }

    fn begin(&mut self, from: Option<&Offsets>) -> Result<Offsets, SourceError> {
        let begin = from.and_then(|from| from.get(&PARTITION)).copied().unwrap_or(0);
        Ok(Offsets::from([(PARTITION, begin)]))
    }

    fn progress(&self) -> Option<Arc<InputProgress>> {
        Some(Arc::clone(&self.progress))
    }

    fn origins(&self) -> Option<Arc<Origins>> {
        Some(Arc::clone(&self.origins))
    }

    fn texts(&self, fields: &[String]) -> Option<Box<dyn Texts>> {
        Some(Box::new(FileTexts::new(Arc::clone(&self.places), fields)))
    }

    fn readers(self: Box<Self>, begin: &Offsets) -> Vec<Box<dyn Reader>> {
        if !self.share.reads_all && self.share.index > 0 {
            return Vec::new();
        }
        let begin = begin.get(&PARTITION).copied().unwrap_or(0);
        vec![Box::new(FilesReader { files: *self, begin, longest: MAX_RECORD_BYTES })]
    }
}

/// Reads them from an offset on.
struct FilesReader {
    files: Files,
    begin: u64,
    /// [`MAX_RECORD_BYTES`], but in tests.
    longest: usize,
}

impl Reader for FilesReader {
    fn read(&mut self, queue: &Queue, bad: &BadRecords, clock: &dyn Clock) -> Result<(), SourceError> {
        let Files { inputs, epochs, speed, share, follow, fields, places, origins, progress } = &self.files;
        let cutter = Cutter::new(queue, clock, *epochs, *speed, *share, self.begin);
        let row = Shape { format: Format::Row, headers: fields.clone(), ..Shape::default() };
        let mut reading = Reading {
            cutter,
            bad,
            longest: self.longest,
            places,
            origins: Arc::clone(origins),
            fields,
            row: Arc::new(row),
            progress,
            waits: Arc::default(),
            followed: None,
            of: "".into(),
        };
        if self.begin == 0 {
            bad.count_inputs();
        }
        let (before, last) = inputs.split_at(inputs.len() - usize::from(*follow && !inputs.is_empty()));
        let read = before.iter().try_for_each(|input| reading.input(input));
        let read = read.and_then(|()| last.iter().try_for_each(|input| reading.follow(input)));
        places.end();
        match read.and_then(|()| Ok(reading.cutter.finish()?)) {
            Ok(end) => self.ended(end, queue),
            Err(Ended::Closed) => Ok(()),
            Err(Ended::Failed(error)) => Err(error),
        }
    }
}

impl FilesReader {
    /// The input has ended here; it must not end before what was read of it earlier.
    fn ended(&self, end: u64, queue: &Queue) -> Result<(), SourceError> {
        let wanted = queue.line(PARTITION).unwrap_or(0).max(self.begin);
        if wanted <= end {
            return Ok(());
        }
        let inputs: Vec<_> = self.files.inputs.iter().map(Input::name).collect();
        Err(SourceError::Lost {
            input: inputs.join(", ").into(),
            partition: PARTITION,
            wanted,
            first: 0,
            end,
            hint: "the inputs are not those that the output was made of; name them all, in the same order",
        })
    }
}

#[cfg(test)]
#[path = "files_tests.rs"]
mod tests;
