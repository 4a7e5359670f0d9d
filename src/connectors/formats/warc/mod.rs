//! Reads web archives: WARC, and the WET files derived from them.
//!
//! A file, plain or compressed record by record (gzip members; zstd frames, with or without a dictionary at
//! the beginning) -> its documents: the pages of `response` records with status 200, `resource` records, and
//! the texts of `conversion` records.
//!
//! A *unit* is a gzip member, a zstd frame, or a whole plain file. Units are one stream: a record may begin
//! in one and end in another. A record is accepted only after the unit in which it ends has been decompressed
//! to the end without an error, unless more records follow in the unit. After a record that cannot be read,
//! the search looks for the next `WARC/` with a version and a header. After a unit that cannot be
//! decompressed, it looks for the next unit that begins with `WARC/`. So the records inside a record of more
//! than 64 MiB that is a WARC file itself are found.
//!
//! References: ISO 28500:2017 (WARC 1.1); IIPC, Zstandard compression for WARC files, version 1.0.

mod body;
mod broken;
mod document;
mod fields;
mod format;
mod http;
mod parts;
mod records;
mod revisits;
mod units;

pub(super) use format::WARC;
pub(super) use records::Warc;

#[cfg(test)]
#[path = "hostile_tests.rs"]
mod hostile_tests;
#[cfg(test)]
mod tests;
