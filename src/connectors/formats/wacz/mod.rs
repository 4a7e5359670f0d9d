//! WACZ: a zip archive with the web archives of a crawl in its folder `archive/`, as Browsertrix writes it.
//!
//! Its archives are read one after another, in the order of its directory, as `warc` reads them. Its other
//! files (indexes, lists of pages) are not read. Where one of the archives cannot be read to its end, the
//! next one follows.
//!
//! Reference: Web Archive Collection Zipped, version 1.1.1. It demands that archives are stored without
//! compression by zip; deflated ones are read too.

mod format;
mod reader;

pub(super) use format::WACZ;
