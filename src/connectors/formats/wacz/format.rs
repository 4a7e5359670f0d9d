//! What a WACZ file is known by, and how it is opened.

use std::io;

use super::super::containers::holds_of_zip;
use super::super::format::{
    FileKind, FormatEntry, OpenedRecords, RawRecords, StoredFile, no_doubt, no_refusal,
};
use super::super::pages::SharedPages;
use super::reader::WaczArchives;

/// WACZ.
pub(in crate::formats) const WACZ: FormatEntry = FormatEntry {
    name: "wacz",
    aliases: &[],
    help: "A collection of web archives",
    file: "a collection of web archives (WACZ)",
    kind: FileKind::Container,
    endings: &["wacz"],
    begins: |beginning| holds_of_zip(beginning, &[b"archive/", b"pages/pages.jsonl"]),
    doubt: no_doubt,
    lacks: None,
    open: |file| {
        let (columns, rules) = (file.columns.clone(), file.layout.warc());
        Ok(OpenedRecords::Rows(Box::new(WaczArchives::open(file.at_random()?, columns, rules)?)))
    },
    refuse: no_refusal,
    copy,
};

fn copy(_: StoredFile<'_>, _: &SharedPages) -> io::Result<RawRecords> {
    let why = "records of a WACZ are not copied: --emit keep names those to keep, or unpack its archives \
               first: unzip FILE 'archive/*'";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}
