//! Reads the archives of a WACZ file, one after another.

use std::io::{self, BufRead, BufReader};
use std::sync::Arc;

use flate2::read::DeflateDecoder;
use zip::{CompressionMethod, ZipArchive};

use super::super::bad_record::RecordPlace;
use super::super::layout::WarcRules;
use super::super::rows::{Damage, FileRow, NextRow, RowReader, WantedColumns};
use super::super::storage::{FileRange, READ_BYTES, RandomAccess};
use super::super::warc::{WARC, Warc};

/// The archives that are left, the next one last; and the present one.
pub(super) struct WaczArchives {
    file: Arc<dyn RandomAccess>,
    columns: WantedColumns,
    rules: WarcRules,
    left: Vec<Archive>,
    present: Option<(Archive, Warc)>,
    /// Documents of which the archives before the present one have only the beginning.
    cut: u64,
}

/// Where an archive is in its file.
#[derive(Clone, Copy, Debug)]
struct Archive {
    from: u64,
    to: u64,
    is_deflated: bool,
}

impl WaczArchives {
    /// Reads the directory of a file.
    ///
    /// # Errors
    /// If it is no zip archive, or has no archives that can be read.
    pub(super) fn open(
        file: Arc<dyn RandomAccess>,
        columns: WantedColumns,
        rules: impl Into<WarcRules>,
    ) -> io::Result<Self> {
        let invalid = |what: String| io::Error::new(io::ErrorKind::InvalidData, what);
        let all = BufReader::new(FileRange::from_offset(&file, 0));
        let mut zip = ZipArchive::new(all).map_err(|error| invalid(error.to_string()))?;
        if stated_files(&*file, zip.comment().len()).is_some_and(|stated| stated != zip.len()) {
            return Err(invalid("files in it have the same name, of which one only can be read".to_owned()));
        }
        let mut left = Vec::new();
        for place in (0..zip.len()).rev() {
            let entry = zip.by_index_raw(place).map_err(|error| invalid(error.to_string()))?;
            let name = entry.name().map_err(|error| invalid(error.to_string()))?;
            if !name.starts_with("archive/") || !is_archive(&name) {
                continue;
            }
            let is_deflated = match entry.compression() {
                _ if entry.encrypted() => return Err(invalid(format!("its {name:?} is encrypted"))),
                CompressionMethod::Stored => false,
                CompressionMethod::Deflated => true,
                other => {
                    return Err(invalid(format!("its {name:?} is compressed by {other}, which is not read")));
                }
            };
            let from = entry.data_start().ok_or_else(|| invalid(format!("its {name:?} has no place")))?;
            let to = from.saturating_add(entry.compressed_size());
            if to > file.bytes() {
                return Err(invalid(format!("its {name:?} goes beyond its end")));
            }
            left.push(Archive { from, to, is_deflated });
        }
        if left.is_empty() {
            return Err(invalid("it has no archives in its folder archive/".to_owned()));
        }
        Ok(Self { file, columns, rules: rules.into(), left, present: None, cut: 0 })
    }

    fn warc(&self, archive: Archive) -> Warc {
        let Archive { from, to, is_deflated } = archive;
        let stored = FileRange::new(Arc::clone(&self.file), from..to);
        let bytes: Box<dyn BufRead + Send> = if is_deflated {
            Box::new(BufReader::with_capacity(READ_BYTES, DeflateDecoder::new(stored)))
        } else {
            Box::new(BufReader::with_capacity(READ_BYTES, stored))
        };
        Warc::new(bytes, &self.columns, self.rules)
    }
}

/// How many files a directory states at its end; of those of one name, the reader keeps the last.
fn stated_files(file: &dyn RandomAccess, comment: usize) -> Option<usize> {
    let mut end = [0; 22];
    file.read_at(file.bytes().checked_sub((end.len() + comment) as u64)?, &mut end).ok()?;
    let stated = u16::from_le_bytes([end[10], end[11]]);
    // Another record, before this one, has a larger number.
    (end.starts_with(b"PK\x05\x06") && stated != u16::MAX).then(|| stated.into())
}

/// Whether a name is that of a web archive; other files may lie beside them.
fn is_archive(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let bare = [".gz", ".zst"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    WARC.endings.iter().any(|end| bare.strip_suffix(end).is_some_and(|bare| bare.ends_with('.')))
}

impl RowReader for WaczArchives {
    fn next(&mut self, row: &mut FileRow) -> Result<NextRow, Damage> {
        loop {
            let Some((archive, warc)) = &mut self.present else {
                let Some(next) = self.left.pop() else { return Ok(NextRow::End) };
                self.present = Some((next, self.warc(next)));
                continue;
            };
            let mut read = warc.next(row);
            if let Err(Damage { place: RecordPlace::Byte(at), .. }) = &mut read
                && !archive.is_deflated
            {
                *at += archive.from;
            }
            let ends = matches!(&read, Ok(NextRow::End)) || read.as_ref().is_err_and(|damage| damage.ends);
            if !ends {
                return read;
            }
            self.cut += warc.cut();
            self.present = None;
            match read {
                // What is behind it in this archive is lost; the next archive is read.
                Err(damage) => {
                    let place = damage.place.and_behind();
                    return Err(Damage { ends: self.left.is_empty(), place, ..damage });
                }
                Ok(_) if self.left.is_empty() => return Ok(NextRow::End),
                Ok(_) => {}
            }
        }
    }

    fn cut(&self) -> u64 {
        self.cut + self.present.as_ref().map_or(0, |(_, warc)| warc.cut())
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;
    use zip::ZipWriter;
    use zip::write::SimpleFileOptions;

    use super::super::super::layout::WarcId;
    use super::super::super::samples::{ReadResult, columns};
    use super::super::super::storage::InMemory;
    use super::*;

    fn record(number: usize) -> Vec<u8> {
        let block = format!("text {number} 日本");
        let head = format!(
            "WARC/1.0\r\nWARC-Type: conversion\r\nWARC-Target-URI: http://a.example/{number}\r\n\
             Content-Length: {}\r\n\r\n",
            block.len()
        );
        [head.as_bytes(), block.as_bytes(), b"\r\n\r\n"].concat()
    }

    fn gzip(bytes: &[u8]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(bytes).unwrap();
        encoder.finish().unwrap()
    }

    fn wacz(files: &[(&str, &[u8])]) -> Vec<u8> {
        let mut zip = ZipWriter::new(io::Cursor::new(Vec::new()));
        let stored = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
        for (name, bytes) in files {
            zip.start_file(*name, stored).unwrap();
            zip.write_all(bytes).unwrap();
        }
        zip.finish().unwrap().into_inner()
    }

    fn read(bytes: Vec<u8>) -> io::Result<ReadResult> {
        let file = Arc::new(InMemory::new(bytes.into()));
        let archives = WaczArchives::open(file, columns(&[]), WarcId::Uri)?;
        Ok(ReadResult::read_all(archives, 1000))
    }

    /// Whether an archive is plain or compressed, and wherever it stands.
    #[test]
    fn archives_are_read_in_their_order() {
        let plain = [record(1), record(2)].concat();
        let packed = [gzip(&record(3)), gzip(&record(4))].concat();
        let files: [(&str, &[u8]); 6] = [
            ("indexes/index.cdx.gz", b"no archive"),
            ("archive/a.warc", &plain),
            ("archive/b.warc.gz", &packed),
            ("archive/c.warc", b""),
            ("archive/README.txt", b"no archive either"),
            ("pages/pages.jsonl", b"{}"),
        ];
        let found = read(wacz(&files)).unwrap();
        assert_eq!(found.ids(), [1, 2, 3, 4].map(|number| format!("http://a.example/{number}")));
        assert_eq!(found.damages, []);
    }

    /// Damage of one archive leaves the next one as it is, and is named by its byte in the file.
    #[test]
    fn the_next_archive_follows_a_damaged_one() {
        let packed = [gzip(&record(1)), gzip(&record(2))].concat();
        let cut = &packed[..packed.len() - 20];
        let found = read(wacz(&[("archive/a.warc.gz", cut), ("archive/b.warc", &record(3))])).unwrap();
        assert_eq!(found.ids(), ["http://a.example/1", "http://a.example/3"]);
        let RecordPlace::Byte(at) = found.damages[0].place else { panic!("{:?}", found.damages) };
        assert!(at > gzip(&record(1)).len() as u64 && found.damages.len() == 1);
    }

    /// A directory may name two files alike; which of them is meant, nothing says.
    #[test]
    fn files_of_one_name_are_refused() {
        let (first, second) = (b"archive/a.warc", b"archive/b.warc");
        let mut file = wacz(&[("archive/a.warc", &record(1)), ("archive/b.warc", &record(2))]);
        assert_eq!(read(file.clone()).unwrap().ids().len(), 2);
        for at in 0..file.len() - first.len() {
            if file[at..].starts_with(second) {
                file[at..at + first.len()].copy_from_slice(first);
            }
        }
        let refused = read(file).unwrap_err();
        assert!(refused.to_string().contains("the same name"), "{refused}");
    }

    #[test]
    fn a_file_without_archives_or_a_directory_is_refused() {
        let file = wacz(&[("archive/a.warc", &record(1))]);
        for bytes in [wacz(&[("pages/pages.jsonl", b"{}")]), file[..file.len() - 30].to_vec(), Vec::new()] {
            assert_eq!(read(bytes).unwrap_err().kind(), io::ErrorKind::InvalidData);
        }
    }
}
