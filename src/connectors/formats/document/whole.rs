//! Reads a whole text or web page as one record.

use std::io::{self, BufRead, Read};

use super::super::bad_record::{BadRecord, MAX_RECORD_BYTES, RecordPlace};
use super::super::format::{
    FileKind, FormatEntry, OpenedRecords, RawRecords, StoredFile, any_beginning, no_doubt, no_refusal,
};
use super::super::pages::SharedPages;
use super::super::rows::{Damage, FileRow, NextRow, RowReader, RowText};

/// A text.
pub(in crate::formats) const TEXT: FormatEntry = FormatEntry {
    name: "text",
    aliases: &[],
    help: "A text that is one document",
    file: "a text",
    kind: FileKind::Document,
    endings: &["txt", "text", "md", "markdown", "rst"],
    begins: any_beginning,
    doubt: no_doubt,
    lacks: None,
    open: |file| whole(file, false),
    refuse: no_refusal,
    copy: no_records,
};

/// A web page.
pub(in crate::formats) const HTML: FormatEntry = FormatEntry {
    name: "html",
    help: "A web page that is one document",
    file: "a web page",
    endings: &["html", "htm", "xhtml"],
    open: |file| whole(file, true),
    ..TEXT
};

fn whole(file: StoredFile<'_>, is_html: bool) -> io::Result<OpenedRecords> {
    let id = file.name.to_owned();
    Ok(OpenedRecords::Rows(Box::new(WholeDocument { bytes: Some(file.decoded()?), id, is_html })))
}

fn no_records(_: StoredFile<'_>, _: &SharedPages) -> io::Result<RawRecords> {
    let why = "it is one document and has no records: --emit keep names the documents to copy, and with \
        text.split --emit remove the parts to cut";
    Err(io::Error::new(io::ErrorKind::Unsupported, why))
}

/// The reader of one document.
struct WholeDocument {
    bytes: Option<Box<dyn BufRead + Send>>,
    id: String,
    is_html: bool,
}

impl RowReader for WholeDocument {
    fn next(&mut self, row: &mut FileRow) -> Result<NextRow, Damage> {
        let Some(bytes) = self.bytes.take() else { return Ok(NextRow::End) };
        let mut text = Vec::new();
        // One byte more than the limit, to detect a longer document.
        let read = bytes.take(MAX_RECORD_BYTES as u64 + 1).read_to_end(&mut text);
        let damage =
            |reason, cause| Damage { reason, cause, place: RecordPlace::Whole, head: Vec::new(), ends: true };
        read.map_err(|error| damage(BadRecord::Truncated, Some(error.to_string())))?;
        if text.len() > MAX_RECORD_BYTES {
            return Err(damage(BadRecord::TooLong, None));
        }
        if self.is_html {
            text = dupflow_core::html::with_doctype(&text, None).into_owned().into_bytes();
        }
        *row =
            FileRow { id: Some(self.id.clone().into_bytes()), text: RowText::Is(text), ..FileRow::default() };
        Ok(NextRow::Row)
    }
}
