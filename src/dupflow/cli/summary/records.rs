//! What was listed, and the records that were copied, as text.

use std::fmt::Write;

use indicatif::{BinaryBytes, HumanCount};

use crate::plural::count;
use dupflow_connectors::rewrite::CopiedDocuments;
use dupflow_connectors::sinks::ListCounts;

/// A line for the list, if there is one.
pub(super) fn listed(out: &mut String, counts: Option<&ListCounts>) -> std::fmt::Result {
    let Some(ListCounts { of, kept, removed, removed_bytes, rule }) = counts else { return Ok(()) };
    let bytes = removed_bytes.map_or_else(String::new, |bytes| format!(" with {}", BinaryBytes(bytes)));
    let of = if *kept == 1 { of.trim_end_matches('s') } else { of };
    let (kept, removed) = (HumanCount(*kept), HumanCount(*removed));
    writeln!(out, "list        {kept} {of} kept, {removed} removed{bytes} (rule: {rule})")
}

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
