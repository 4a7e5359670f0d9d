//! The records that were copied, as text.

use std::fmt::Write;

use indicatif::{BinaryBytes, HumanCount};

use crate::plural::count;
use dupflow_connectors::rewrite::CopiedDocuments;

/// A line for the records, if any were copied.
pub(super) fn copied(out: &mut String, counts: Option<&CopiedDocuments>) -> std::fmt::Result {
    let Some(CopiedDocuments { records, left_out, without_document, files, bytes }) = counts else {
        return Ok(());
    };
    writeln!(
        out,
        "records     {} written into {}, {}; {} of documents left out, {} without a live document",
        HumanCount(*records),
        count(*files, "file"),
        BinaryBytes(*bytes),
        HumanCount(*left_out),
        HumanCount(*without_document)
    )
}
