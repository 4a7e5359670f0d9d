//! The register of input formats.
//!
//! A format is a file of its own, which ends in its [`FormatEntry`], and a line of [`FORMATS`].
//! Configuration, command line, detection, refusals and copies read the register.

use std::io;
use std::path::Path;

use clap::builder::PossibleValue;

use super::arc::ARC;
use super::arrow::ARROW;
use super::csv::{CSV, TSV};
use super::document::{HTML, TEXT};
use super::feed::{JSON_ARRAY, JSON_LINES};
use super::format::{FileKind, FormatEntry, OpenedRecords, RawRecords, StoredFile};
use super::layout::{FileFormat, PACKED, without_query};
use super::pages::SharedPages;
use super::parquet::PARQUET;
use super::wacz::WACZ;
use super::warc::WARC;
use dupflow_run::missing_feature;

/// All formats, in the order in which they are listed to users. The first is that of an input of which
/// nothing is known.
static FORMATS: &[&FormatEntry] =
    &[&JSON_LINES, &JSON_ARRAY, &CSV, &TSV, &WARC, &ARC, &WACZ, &PARQUET, &ARROW, &TEXT, &HTML];

/// The same as values of settings.
static NAMES: &[FileFormat] = &{
    let mut names = [FileFormat(""); FORMATS.len()];
    let mut at = 0;
    while at < names.len() {
        names[at] = FileFormat(FORMATS[at].name);
        at += 1;
    }
    names
};

impl FileFormat {
    /// All formats, in the order in which they are listed to users.
    pub fn all() -> &'static [Self] {
        NAMES
    }

    /// That of an input of which nothing is known: JSON Lines.
    pub fn usual() -> Self {
        NAMES[0]
    }

    /// A text that is one document.
    pub(crate) fn text() -> Self {
        Self(TEXT.name)
    }

    /// A web page that is one document.
    pub(crate) fn page() -> Self {
        Self(HTML.name)
    }

    /// The format of this name.
    pub fn named(name: &str) -> Option<Self> {
        let mut formats = FORMATS.iter();
        formats
            .find(|format| format.name == name || format.aliases.contains(&name))
            .map(|format| Self(format.name))
    }

    fn entry(self) -> &'static FormatEntry {
        FORMATS.iter().find(|format| format.name == self.0).unwrap_or(&FORMATS[0])
    }

    /// What a file of it is called in a message.
    pub(crate) fn file(self) -> &'static str {
        self.entry().file
    }

    /// What such a file is made of.
    pub(crate) fn kind(self) -> FileKind {
        self.entry().kind
    }

    /// Whether a file of it is one document.
    pub fn is_document(self) -> bool {
        self.kind() == FileKind::Document
    }

    /// Whether its records are in a form that its first bytes tell.
    pub(crate) fn is_container(self) -> bool {
        self.kind() == FileKind::Container
    }

    /// Why this build does not read it.
    pub fn missing(self) -> Option<String> {
        self.entry().lacks.map(|(what, feature)| missing_feature(what, feature))
    }

    /// Why a file that begins like this, decompressed, is none of this format.
    pub(crate) fn doubt(self, beginning: &[u8]) -> Option<String> {
        (self.entry().doubt)(beginning)
    }

    /// Opens the records of a file.
    ///
    /// # Errors
    /// If it cannot be opened, or does not begin as its format does.
    pub(crate) fn open(self, file: StoredFile<'_>) -> io::Result<OpenedRecords> {
        (self.entry().open)(file)
    }

    /// Why a local file cannot be read, by more than its first bytes.
    pub(crate) fn refuse(self, file: StoredFile<'_>) -> Option<String> {
        (self.entry().refuse)(file)
    }

    /// Opens the bytes of the records of a file.
    ///
    /// # Errors
    /// If it cannot be opened, or has no records that can be copied.
    pub(crate) fn copy(self, file: StoredFile<'_>, pages: &SharedPages) -> io::Result<RawRecords> {
        (self.entry().copy)(file, pages)
    }

    /// The format that a file name implies.
    pub(crate) fn of_name(name: &str) -> Option<Self> {
        let name = without_query(name).to_ascii_lowercase();
        let name = [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
        let ending = Path::new(name).extension()?.to_str()?;
        FORMATS.iter().find(|format| format.endings.contains(&ending)).map(|format| Self(format.name))
    }

    /// The container that begins like this.
    pub(crate) fn of_container(beginning: &[u8]) -> Option<Self> {
        let mut containers = FORMATS.iter().filter(|format| format.kind == FileKind::Container);
        containers.find(|format| (format.begins)(beginning)).map(|format| Self(format.name))
    }

    /// The format of an input with this beginning and this name: by its content if it is a container, else by
    /// its name. A text whose name names no markup, and which begins as records do, has records.
    pub(crate) fn detect(beginning: &[u8], name: &str) -> Self {
        if let Some(container) = Self::of_container(beginning) {
            return container;
        }
        let beginning = beginning.strip_prefix(b"\xef\xbb\xbf").unwrap_or(beginning).trim_ascii_start();
        let begins_as_records = || (Self::usual().entry().begins)(beginning);
        let is_plain = || name.to_ascii_lowercase().ends_with(".txt");
        match Self::of_name(name) {
            Some(format) if format == Self::text() && is_plain() && begins_as_records() => Self::usual(),
            Some(format) if format != Self::usual() => format,
            _ => {
                let mut texts = FORMATS.iter().filter(|format| format.kind == FileKind::Text);
                texts
                    .find(|format| (format.begins)(beginning))
                    .map_or(Self::usual(), |format| Self(format.name))
            }
        }
    }
}

impl clap::ValueEnum for FileFormat {
    fn value_variants<'a>() -> &'a [Self] {
        NAMES
    }

    fn to_possible_value(&self) -> Option<PossibleValue> {
        let FormatEntry { name, aliases, help, .. } = self.entry();
        Some(PossibleValue::new(name).aliases(aliases.iter().copied()).help(help))
    }
}

/// What the name of a file that is written says of its content: the format of its records, and the ending of
/// a compression. A name of a text says nothing.
pub fn promised(path: &Path) -> (Option<FileFormat>, Option<&'static str>) {
    let name = path.file_name().unwrap_or_default().to_string_lossy().to_ascii_lowercase();
    let packed = PACKED.into_iter().find(|end| name.ends_with(end));
    let bare = packed.and_then(|end| name.strip_suffix(end)).unwrap_or(&name);
    (FileFormat::of_name(bare).filter(|format| *format != FileFormat::text()), packed)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn formats_are_detected_by_first_bytes_then_by_name() {
        for (beginning, name, format) in [
            (&b"PAR1\x15\x04"[..], "a.csv", "parquet"),
            (b"PAR1,text\n", "a.csv", "csv"),
            (b"WARC/1.0\r\n", "-", "warc"),
            (b"{\"id\":1}", "feed", "jsonl"),
            (b"id,text", "feed", "jsonl"),
            (b"id,text", "a.CSV.gz", "csv"),
            (b"id\ttext", "a.tsv", "tsv"),
            (b"", "x.warc.zst", "warc"),
            (b"text", "a.txt", "text"),
            (b"\xef\xbb\xbf {\"id\"", "a.txt", "jsonl"),
            (b"{% raw %}", "a.md", "text"),
            (b"<p>", "日本.htm", "html"),
            (b"[", "a.json", "jsonl"),
            (b"[ {\"id\":1}", "a.json", "json"),
            (b"\xef\xbb\xbf[\n", "-", "json"),
            (b"[{", "a.csv", "csv"),
            (b"filedesc://x 0.0.0.0", "old", "arc"),
            (b"ARROW1\0\0", "a.csv", "arrow"),
            (b"PK\x03\x04", "a.wacz", "wacz"),
            (b"\xff\xff\xff\xff\x70\x01\0\0", "-", "arrow"),
            (b"ARROW1,text", "a.csv", "csv"),
        ] {
            assert_eq!(FileFormat::detect(beginning, name).name(), format, "{name}");
        }
    }

    /// Names, and endings, mean one format each.
    #[test]
    fn entries_of_the_register_differ() {
        let names = FORMATS.iter().flat_map(|format| [&[format.name], format.aliases].concat());
        let endings = FORMATS.iter().flat_map(|format| format.endings.iter().copied());
        for mut said in [names.collect::<Vec<_>>(), endings.collect()] {
            let all = said.len();
            said.sort_unstable();
            said.dedup();
            assert_eq!(said.len(), all);
        }
    }
}
