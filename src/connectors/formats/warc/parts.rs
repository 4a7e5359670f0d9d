//! Reads a large archive with several threads.
//!
//! The file is cut every [`PART_BYTES`]. One thread reads the records that begin in the units of a part. The
//! first of these units is found as after damage: by the magic bytes of the codec followed by `WARC/`. If
//! units do not begin at records, the first record is found in the stream of the units from the first one on.
//! Both may be wrong, since a document of an archive may be an archive itself. So each part reports where it
//! began and where the next part has to begin. A part that began elsewhere is read again, by the consumer of
//! the records. The records are those that a single thread reads.

use std::fmt;
use std::io::{self, BufRead, BufReader};
use std::ops::Range;
use std::sync::Arc;

use super::super::RandomAccess;
use super::super::layout::WarcRules;
use super::super::parallel::{ParallelReader, PartPiece, ReadableParts, RowResult, each_record};
use super::super::rows::{Damage, FileRow, NextRow, RowReader, WantedColumns, panicked};
use super::super::storage::{FileRange, InputProgress, READ_BYTES};
use super::broken::ArchiveError;
use super::records::{Seam, Warc};
use super::units::{StreamPlace, UnitReader};

/// Stored bytes of a part.
const PART_BYTES: u64 = 1 << 20;

/// Bytes of records that are read ahead for each thread: usually one decompressed part.
const AHEAD_BYTES: usize = 8 << 20;

/// Bytes read at once from the beginning of the file, which shows how it is compressed.
const HEAD_BYTES: usize = 4 << 10;

/// A file that is read in parts.
#[derive(Debug)]
pub(crate) struct WarcArchive {
    file: Arc<dyn RandomAccess>,
    columns: WantedColumns,
    rules: WarcRules,
    part_bytes: u64,
}

impl WarcArchive {
    /// An archive that is compressed, record by record or as a whole.
    pub(crate) fn new(file: Arc<dyn RandomAccess>, columns: &WantedColumns, rules: WarcRules) -> Self {
        Self::cut_every(PART_BYTES, file, columns, rules)
    }

    pub(super) fn cut_every(
        part_bytes: u64,
        file: Arc<dyn RandomAccess>,
        columns: &WantedColumns,
        rules: impl Into<WarcRules>,
    ) -> Self {
        Self { file, columns: columns.clone(), rules: rules.into(), part_bytes }
    }

    /// Number of parts.
    pub(crate) fn count(&self) -> usize {
        usize::try_from(self.file.bytes().div_ceil(self.part_bytes)).unwrap_or(usize::MAX)
    }

    /// The byte range of a part in the file.
    fn range(&self, part: usize) -> Range<u64> {
        let begin = self.part_bytes * part as u64;
        begin..self.file.bytes().min(begin + self.part_bytes)
    }

    /// The units from an offset on that begin before `end`.
    fn units(&self, from: u64, end: u64) -> Result<UnitReader, ArchiveError> {
        let at = |next, buffer| -> Box<dyn BufRead + Send> {
            Box::new(BufReader::with_capacity(buffer, FileRange::from_offset(&self.file, next)))
        };
        UnitReader::between(at(0, HEAD_BYTES), at(from, READ_BYTES), from..end)
    }

    fn warc(&self, units: UnitReader) -> Warc {
        Warc::from_units(units, &self.columns, self.rules)
    }
}

/// A piece of a part.
pub(crate) enum ArchivePiece {
    /// The beginning: the place of the first record, if one begins in the part.
    Begins(Option<StreamPlace>),
    /// A record of one of its units.
    Record(RowResult),
    /// The end: where the next part has to begin, and how many documents of this one are truncated.
    Ends(Seam, u64),
    /// The reader of the part panicked.
    Panicked,
}

impl PartPiece for ArchivePiece {
    fn bytes(&self) -> usize {
        if let Self::Record(record) = self { record.bytes() } else { size_of::<Self>() }
    }

    fn panicked() -> Self {
        Self::Panicked
    }
}

impl ReadableParts for WarcArchive {
    type PartItem = ArchivePiece;

    fn count(&self) -> usize {
        self.count()
    }

    fn read(&self, part: usize, each: &mut dyn FnMut(ArchivePiece) -> bool) {
        let Range { start, end } = self.range(part);
        let (begins, warc) = match self.begin(start..end) {
            Ok(Some(opened)) => opened,
            Ok(None) => {
                each(ArchivePiece::Begins(None));
                return;
            }
            Err(broken) => {
                each(ArchivePiece::Begins(None));
                each(ArchivePiece::Record(Err(broken.damage(start))));
                return;
            }
        };
        each(ArchivePiece::Begins(Some(begins)));
        let mut warc = warc;
        each_record(&mut warc, &mut |record| each(ArchivePiece::Record(record)));
        each(ArchivePiece::Ends(warc.seam(), warc.cut()));
    }
}

impl WarcArchive {
    /// Finds the first record of a part.
    fn begin(&self, part: Range<u64>) -> Result<Option<(StreamPlace, Warc)>, ArchiveError> {
        let mut units = self.units(part.start, part.end)?;
        if part.start == 0 || units.find_record()? {
            let place = StreamPlace { unit: units.offset(), inner: 0 };
            return Ok(Some((place, self.warc(units))));
        }
        let mut any = self.units(part.start, part.end)?;
        if !any.find_unit()? {
            return Ok(None);
        }
        let place = match self.warc(any).first_in_stream() {
            Ok(Some(place)) => place,
            Err(broken) if broken.ends => return Err(broken),
            // What was found may be no unit.
            Ok(None) | Err(_) => return Ok(None),
        };
        // Read from there on as the single thread does.
        let warc = self.warc(self.units(place.unit, part.end)?).at_seam(Seam::At(place));
        Ok(Some((place, warc)))
    }
}

/// The records of a file that is read in parts.
pub(crate) struct ParallelArchive {
    archive: Arc<WarcArchive>,
    ahead: ParallelReader<WarcArchive>,
    /// Counts the stored bytes read.
    progress: Arc<InputProgress>,
    /// The number of the next part.
    next: usize,
    /// Where the next part has to begin.
    seam: Seam,
    /// Whether the present part began there.
    follows: bool,
    /// Reads a part again that began elsewhere.
    again: Option<Warc>,
    cut: u64,
}

impl ParallelArchive {
    /// Reads with at most this number of threads.
    ///
    /// # Errors
    /// If the threads cannot be started.
    pub(crate) fn new(
        archive: WarcArchive,
        threads: usize,
        progress: Arc<InputProgress>,
    ) -> io::Result<Self> {
        let archive = Arc::new(archive);
        let ahead = ParallelReader::new(Arc::clone(&archive), threads, threads * AHEAD_BYTES)?;
        Ok(Self {
            archive,
            ahead,
            progress,
            next: 0,
            seam: Seam::At(StreamPlace { unit: 0, inner: 0 }),
            follows: true,
            again: None,
            cut: 0,
        })
    }

    /// Begins the next part, whose first record is at `begins`. If that is wrong, prepares to read the part
    /// again.
    fn begin(&mut self, begins: Option<StreamPlace>) -> Result<(), Damage> {
        let range = self.archive.range(self.next);
        self.next += 1;
        self.progress.add(range.end - range.start);
        let from = self.seam.unit();
        self.follows = match (begins, self.seam) {
            (Some(begins), Seam::Lost(_)) => begins.inner == 0 && begins.unit >= from,
            (Some(begins), Seam::At(place)) => begins == place,
            (None, Seam::Lost(_)) => true,
            (Some(_), Seam::Search(_)) => false,
            (None, _) => from >= range.end,
        };
        if self.follows || from >= range.end {
            return Ok(());
        }
        let again = self.archive.units(from, range.end).and_then(|mut units| {
            let is_there = !matches!(self.seam, Seam::Lost(_)) || units.find_record()?;
            Ok(is_there.then_some(units))
        });
        let units = again.map_err(|broken| broken.damage(from))?;
        self.again = units.map(|units| self.archive.warc(units).at_seam(self.seam));
        Ok(())
    }

    fn end(&mut self, seam: Seam, cut: u64) {
        self.seam = seam;
        self.cut += cut;
    }
}

impl RowReader for ParallelArchive {
    fn next(&mut self, row: &mut FileRow) -> Result<NextRow, Damage> {
        loop {
            if let Some(warc) = &mut self.again {
                match warc.next(row) {
                    Ok(NextRow::End) => {
                        let (seam, cut) = (warc.seam(), warc.cut());
                        self.end(seam, cut);
                        self.again = None;
                    }
                    other => return other,
                }
            }
            match self.ahead.next() {
                None => return Ok(NextRow::End),
                Some(ArchivePiece::Begins(begins)) => self.begin(begins)?,
                Some(ArchivePiece::Record(record)) if self.follows => {
                    let (next, found) = record?;
                    *row = found;
                    return Ok(next);
                }
                Some(ArchivePiece::Ends(seam, cut)) if self.follows => self.end(seam, cut),
                Some(ArchivePiece::Record(_) | ArchivePiece::Ends(..)) => {}
                Some(ArchivePiece::Panicked) => return Err(panicked()),
            }
        }
    }

    fn cut(&self) -> u64 {
        self.cut
    }
}

impl fmt::Debug for ParallelArchive {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ParallelArchive").field("next", &self.next).finish_non_exhaustive()
    }
}

#[cfg(test)]
#[path = "parts_tests.rs"]
mod tests;
