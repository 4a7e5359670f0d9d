//! The recorded corpora used by some tests. A missing corpus is reported on standard error.
//!
//! The corpora are large and not part of the project. `DUPFLOW_DATA` names their folder; the default is
//! `shared/data` next to the project's folder.

use std::fs::File;
use std::io::{BufRead, BufReader, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use dupflow::connectors::formats::feed::Parser;
use dupflow::core::doc::DocId;

/// An id and its new text, or `None` for a delete.
pub(crate) type Event = (DocId, Option<String>);

/// The folder of the corpora. If there is none, reports on standard error that `what` is skipped.
pub(crate) fn folder(what: &str) -> Option<PathBuf> {
    static SKIPPED: AtomicUsize = AtomicUsize::new(0);
    let beside = || Path::new(env!("CARGO_MANIFEST_DIR")).join("../shared/data");
    let folder = std::env::var_os("DUPFLOW_DATA").map_or_else(beside, PathBuf::from);
    if folder.is_dir() {
        return Some(folder);
    }
    let skipped = SKIPPED.fetch_add(1, Ordering::Relaxed) + 1;
    // Not by `eprintln!`: the test harness hides its output when a test passes.
    let message = format!("SKIPPED {what}: set DUPFLOW_DATA ({skipped} skipped in this run)\n");
    std::io::stderr().write_all(message.as_bytes()).unwrap();
    None
}

/// The lines of a file compressed with zstd.
pub(crate) fn lines(path: &Path) -> impl Iterator<Item = String> + use<> {
    let file = File::open(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    BufReader::new(zstd::Decoder::new(file).unwrap()).lines().map(Result::unwrap)
}

/// The events of a recorded feed, compressed with zstd.
pub(crate) fn feed(path: &Path) -> impl Iterator<Item = Event> + use<> {
    let mut parser = Parser::new();
    lines(path).map(move |line| {
        let event = parser.parse(line.as_bytes()).unwrap().event;
        (event.id, event.text.map(Into::into))
    })
}
