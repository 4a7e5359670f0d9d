//! Web archives as a format of inputs.

use std::io;
use std::sync::Arc;

use super::super::format::{
    FileKind, FormatEntry, OpenedRecords, RawReader, RawRecords, RecordParts, StoredFile, no_doubt,
    no_refusal,
};
use super::super::pages::SharedPages;
use super::super::parallel::cores;
use super::super::rows::{ArchiveRole, FileRow, NextRow, RowReader};
use super::parts::{ParallelArchive, WarcArchive};
use super::records::Warc;
use super::revisits::revisited;

/// WARC, and the texts of one (WET).
pub(in crate::formats) const WARC: FormatEntry = FormatEntry {
    name: "warc",
    aliases: &["wet"],
    help: "A web archive, or the texts of one (WET)",
    file: "a web archive",
    kind: FileKind::Container,
    endings: &["warc", "wet"],
    begins: |beginning| beginning.starts_with(b"WARC/"),
    doubt: no_doubt,
    lacks: None,
    open: |file| Ok(OpenedRecords::Rows(open(file)?)),
    refuse: no_refusal,
    copy: |file, pages| {
        let records = Warc::new(file.stored, file.columns, file.layout.warc()).keep_raw();
        let (record, read) = (Vec::new(), FileRow::default());
        let pages = Arc::clone(pages);
        Ok(RawRecords::Bytes(Box::new(RawArchive { records, pages, record, read, is_over: false })))
    },
};

/// The records, which are compressed one by one.
///
/// A compressed archive that is near is read in parts, by as many threads as the machine has cores, if it is
/// large enough. A network read has latency, and fetches much at once.
fn open(file: StoredFile<'_>) -> io::Result<Box<dyn RowReader>> {
    let (columns, rules) = (file.columns, file.layout.warc());
    if let Some(open) = file.anywhere
        && file.is_compressed()
        && file.is_near
    {
        // The parts overlap where they meet. The reader of the parts counts each byte once, so this counter
        // is discarded.
        let archive = WarcArchive::new(open(Arc::default())?, columns, rules);
        if archive.count() > 1 {
            return Ok(Box::new(ParallelArchive::new(archive, cores(), file.progress)?));
        }
    }
    Ok(Box::new(Warc::new(file.stored, columns, rules)))
}

/// The records, each with two line ends. The page of a revisit is in another record: the revisit is returned
/// as that record, with its own id, address and date.
struct RawArchive {
    records: Warc,
    pages: SharedPages,
    record: Vec<u8>,
    read: FileRow,
    is_over: bool,
}

impl RawReader for RawArchive {
    fn parts(&self) -> RecordParts<'_> {
        RecordParts::Sealed
    }

    fn next(&mut self) -> io::Result<Option<&[u8]>> {
        if self.is_over {
            return Ok(None);
        }
        match self.records.next(&mut self.read) {
            Ok(NextRow::End) => return Ok(None),
            Ok(_) => {}
            Err(damage) => self.is_over = damage.ends,
        }
        let mut pages = self.pages.lock();
        self.record.clear();
        match self.read.role {
            ArchiveRole::Revisit { of, .. } => match pages.find(of) {
                Some(page) => self.record.extend(revisited(&page.content, self.records.raw())),
                None => {
                    pages.hold(&self.read, None);
                    return Ok(Some(&[]));
                }
            },
            _ => self.record.extend_from_slice(self.records.raw()),
        }
        pages.hold(&self.read, Some(self.records.raw()));
        self.record.extend_from_slice(b"\r\n\r\n");
        Ok(Some(&self.record))
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::layout::WarcId;
    use super::super::super::samples::{columns, raw_records};
    use super::*;

    #[test]
    fn records_of_an_archive_are_whole() {
        let record = |kind: &str, block: &str| {
            let length = block.len();
            format!("WARC/1.0\r\nWARC-Type: {kind}\r\nContent-Length: {length}\r\n\r\n{block}\r\n\r\n")
        };
        let records =
            [record("warcinfo", "a: b\r\n"), record("conversion", "日本 text"), record("resource", "")];
        let archive = records.concat();
        let mut raw = RawArchive {
            records: Warc::new(Box::new(io::Cursor::new(archive)), &columns(&[]), WarcId::Record).keep_raw(),
            pages: Arc::default(),
            record: Vec::new(),
            read: FileRow::default(),
            is_over: false,
        };
        assert_eq!(raw_records(&mut raw), records);
    }
}
