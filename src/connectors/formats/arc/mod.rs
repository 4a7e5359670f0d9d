//! ARC files, which archives of the web were before WARC, as records of WARC.
//!
//! ```text
//! filedesc://…  0.0.0.0  20010203040506  text/plain  76      the first line of an archive, and its block
//! http://…      1.2.3.4  20010203040506  text/html   2048    of a page: the answer of its server
//! ```
//!
//! In version 1 a line has these five fields; in version 2 ten, of which the last is the length too. An
//! address may have blanks, so that fields are counted from the right. The bytes of an archive, decompressed
//! -> the bytes of a web archive whose records have its addresses, dates and blocks; `warc` reads those. What
//! is no line of a record where one is expected is passed on as it is, up to the next such line, and is a bad
//! record there.
//!
//! Reference: Burner and Kahle, Arc File Format, 1996 (versions 1 and 2; 1.1 of Heritrix is version 1 with
//! fields about the crawl in its first block).

mod format;
mod reader;

pub(super) use format::ARC;
