//! What an ARC file is known by, and how it is opened.

use std::io;

use super::super::format::{
    FileKind, FormatEntry, OpenedRecords, RawRecords, StoredFile, no_doubt, no_refusal,
};
use super::super::pages::SharedPages;
use super::super::warc::Warc;
use super::reader::ArcAsWarc;

/// ARC.
pub(in crate::formats) const ARC: FormatEntry = FormatEntry {
    name: "arc",
    aliases: &[],
    help: "An ARC archive, as old crawls are",
    file: "an ARC archive",
    kind: FileKind::Container,
    endings: &["arc"],
    begins: |beginning| beginning.starts_with(b"filedesc://"),
    doubt: no_doubt,
    lacks: None,
    open: |file| {
        let (columns, rules) = (file.columns, file.layout.warc());
        let records = Box::new(ArcAsWarc::new(file.decoded()?));
        Ok(OpenedRecords::Rows(Box::new(Warc::new(records, columns, rules))))
    },
    refuse: no_refusal,
    copy,
};

fn copy(_: StoredFile<'_>, _: &SharedPages) -> io::Result<RawRecords> {
    let why = "records of an ARC archive are not copied: --emit keep names those to keep, or write it as \
               WARC first: warcio recompress FILE out.warc.gz";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}
