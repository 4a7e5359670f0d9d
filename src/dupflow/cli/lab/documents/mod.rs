//! Writes generated documents in the formats that dupflow reads.
//!
//! JSON Lines, CSV, TSV and Parquet hold the feed, event by event. WARC, WET and HTML have no deletes: they
//! hold the documents that are alive at the end, sorted by id. The id of a document is the id of its record;
//! a page read from a folder gets `.html` appended to its id.

#[cfg(feature = "parquet")]
mod columns;

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use anyhow::Context;
use flate2::Compression;
use flate2::write::GzEncoder;

use dupflow_connectors::formats::feed;
use dupflow_connectors::formats::feed::FeedRecord;
use dupflow_connectors::instant;
use dupflow_core::doc::{DocEvent, DocId};

/// A format that documents are written in.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum DocumentFormat {
    /// The feed, one JSON object per line.
    #[default]
    Jsonl,
    /// Web pages in WARC records, as a crawler stores them; compressed record by record if the name ends in
    /// .gz.
    Warc,
    /// The texts of web pages in WARC records; compressed record by record if the name ends in .gz.
    Wet,
    /// A table with the columns id, op, ts and text.
    Csv,
    /// The same table with tabs.
    Tsv,
    /// The same table, in row groups of 1,000.
    Parquet,
    /// A folder of web pages.
    Html,
}

impl DocumentFormat {
    /// The format by the extension of a file name, without that of a compression; JSON Lines if it is
    /// unknown.
    pub(super) fn of_name(path: &Path) -> Self {
        let is_packed = |name: &Path| ending(name).is_some_and(|ending| PACKED.contains(&&*ending));
        let bare = if is_packed(path) { path.with_extension("") } else { path.to_owned() };
        match ending(&bare).as_deref() {
            Some("csv") => Self::Csv,
            Some("tsv" | "tab") => Self::Tsv,
            Some("parquet") => Self::Parquet,
            Some("warc") => Self::Warc,
            Some("wet") => Self::Wet,
            Some("html" | "htm") => Self::Html,
            _ => Self::Jsonl,
        }
    }
}

/// Extensions of compressed files.
const PACKED: [&str; 3] = ["gz", "zst", "zstd"];

/// The extension of a file name in lower case.
fn ending(path: &Path) -> Option<String> {
    path.extension().map(|ending| ending.to_string_lossy().to_ascii_lowercase())
}

/// Writes documents in one format.
pub(super) struct DocumentWriter(WriterKind);

enum WriterKind {
    Jsonl(Box<dyn Write + Send>),
    Table(Box<csv::Writer<Box<dyn Write + Send>>>),
    #[cfg(feature = "parquet")]
    Parquet(Box<columns::FeedColumns>),
    /// The live documents, and the archive that they are written to at the end.
    Alive(BTreeMap<DocId, (f64, String)>, ArchiveWriter),
}

enum ArchiveWriter {
    Records { out: Box<dyn Write + Send>, is_gzip: bool, is_text: bool },
    Pages(PathBuf),
}

impl DocumentWriter {
    /// Creates this file; `-` is standard output.
    pub(super) fn create(path: &Path, format: DocumentFormat) -> anyhow::Result<Self> {
        let open = || open(path);
        let is_gzip = ending(path).is_some_and(|ending| ending == "gz");
        let table = |delimiter| -> anyhow::Result<WriterKind> {
            let mut table = csv::WriterBuilder::new().delimiter(delimiter).from_writer(open()?);
            table.write_record(["id", "op", "ts", "text"])?;
            Ok(WriterKind::Table(Box::new(table)))
        };
        let records = |is_text| -> anyhow::Result<WriterKind> {
            let mut out = open()?;
            let about = "software: dupflow\r\nformat: WARC File Format 1.1\r\n";
            put(&mut out, is_gzip, "warcinfo", "Content-Type: application/warc-fields\r\n", about)?;
            Ok(WriterKind::Alive(BTreeMap::new(), ArchiveWriter::Records { out, is_gzip, is_text }))
        };
        Ok(Self(match format {
            DocumentFormat::Jsonl => WriterKind::Jsonl(open()?),
            DocumentFormat::Csv => table(b',')?,
            DocumentFormat::Tsv => table(b'\t')?,
            DocumentFormat::Warc => records(false)?,
            DocumentFormat::Wet => records(true)?,
            DocumentFormat::Html => {
                fs::create_dir_all(path).with_context(|| format!("the folder {path:?}"))?;
                WriterKind::Alive(BTreeMap::new(), ArchiveWriter::Pages(path.to_owned()))
            }
            #[cfg(feature = "parquet")]
            DocumentFormat::Parquet => WriterKind::Parquet(Box::new(columns::FeedColumns::new(open()?)?)),
            #[cfg(not(feature = "parquet"))]
            DocumentFormat::Parquet => {
                anyhow::bail!(dupflow_run::missing_feature("Parquet", "parquet"))
            }
        }))
    }

    /// Writes an event.
    pub(super) fn write(&mut self, record: &FeedRecord<'_>) -> anyhow::Result<()> {
        let FeedRecord { event: DocEvent { id, text, .. }, ts } = record;
        match &mut self.0 {
            WriterKind::Jsonl(out) => feed::write(out, record)?,
            WriterKind::Table(table) => {
                let (op, ts) = (operation(text.as_deref()), ts.map(|ts| ts.to_string()).unwrap_or_default());
                table.write_record([id.as_str(), op, &ts, text.as_deref().unwrap_or_default()])?;
            }
            #[cfg(feature = "parquet")]
            WriterKind::Parquet(columns) => {
                let text = text.as_deref();
                columns.push(id.as_str(), operation(text), *ts, text)?;
            }
            WriterKind::Alive(alive, _) => match text {
                Some(text) => {
                    alive.insert(id.clone(), (ts.unwrap_or(0.0), text.clone().into_owned()));
                }
                None => {
                    alive.remove(id);
                }
            },
        }
        Ok(())
    }

    /// Writes the remaining documents.
    pub(super) fn finish(self) -> anyhow::Result<()> {
        match self.0 {
            WriterKind::Jsonl(mut out) => out.flush()?,
            WriterKind::Table(mut table) => table.flush()?,
            #[cfg(feature = "parquet")]
            WriterKind::Parquet(columns) => columns.finish()?,
            WriterKind::Alive(alive, ArchiveWriter::Pages(folder)) => {
                for (id, (_, text)) in alive {
                    let path = folder.join(format!("{id}.html"));
                    fs::create_dir_all(path.parent().unwrap_or(&folder))?;
                    fs::write(&path, page(&text)).with_context(|| format!("the page {path:?}"))?;
                }
            }
            WriterKind::Alive(alive, ArchiveWriter::Records { mut out, is_gzip, is_text }) => {
                for (id, (ts, text)) in alive {
                    let about = format!(
                        "WARC-Record-ID: <urn:uuid:{id}>\r\nWARC-Target-URI: \
                        https://example.org/{id}\r\nWARC-Date: {}\r\n",
                        instant::date(ts).unwrap_or_default()
                    );
                    if is_text {
                        put(
                            &mut out,
                            is_gzip,
                            "conversion",
                            &format!("{about}Content-Type: text/plain\r\n"),
                            &text,
                        )?;
                    } else {
                        let page = page(&text);
                        let http = format!(
                            "HTTP/1.1 200 OK\r\nContent-Type: text/html; charset=utf-8\r\nContent-Length: \
                            {}\r\n\r\n{page}",
                            page.len()
                        );
                        let about = format!("{about}Content-Type: application/http; msgtype=response\r\n");
                        put(&mut out, is_gzip, "response", &about, &http)?;
                    }
                }
                out.flush()?;
            }
        }
        Ok(())
    }
}

fn operation(text: Option<&str>) -> &'static str {
    if text.is_some() { "upsert" } else { "delete" }
}

/// Writes one WARC record.
fn put(out: &mut dyn Write, is_gzip: bool, kind: &str, about: &str, block: &str) -> io::Result<()> {
    let length = block.len();
    let record =
        format!("WARC/1.1\r\nWARC-Type: {kind}\r\n{about}Content-Length: {length}\r\n\r\n{block}\r\n\r\n");
    if !is_gzip {
        return out.write_all(record.as_bytes());
    }
    let mut member = GzEncoder::new(out, Compression::default());
    member.write_all(record.as_bytes())?;
    member.finish().map(drop)
}

/// An HTML page with one paragraph per line.
fn page(text: &str) -> String {
    let escaped = text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;");
    let paragraphs: String = escaped.lines().map(|line| format!("<p>{line}</p>\n")).collect();
    format!(
        "<!doctype html>\n<html><head><meta charset=\"utf-8\"></head><body>\n{paragraphs}</body></html>\n"
    )
}

/// Why documents cannot be written there, if that is known in advance.
pub(super) fn problem(path: &Path, format: DocumentFormat) -> Option<String> {
    let packed = ending(path).filter(|ending| PACKED.contains(&&**ending));
    if let Some(packed) = packed
        .filter(|packed| packed != "gz" || !matches!(format, DocumentFormat::Warc | DocumentFormat::Wet))
    {
        return Some(format!(
            "--output: {path:?} would not be compressed: only warc and wet are, with names that end in .gz; \
            expected a name without .{packed}"
        ));
    }
    match format {
        DocumentFormat::Html if path == Path::new("-") => {
            Some("--format html: expected a folder, --output FOLDER; found standard output".to_owned())
        }
        // The folder would mix pages of two corpora.
        DocumentFormat::Html if fs::read_dir(path).is_ok_and(|mut files| files.next().is_some()) => {
            Some(format!("--output: expected a new or an empty folder; {path:?} holds something already"))
        }
        #[cfg(not(feature = "parquet"))]
        DocumentFormat::Parquet => {
            Some(format!("--format parquet: {}", dupflow_run::missing_feature("Parquet", "parquet")))
        }
        _ => None,
    }
}

/// Opens a file for writing; `-` is standard output.
pub(super) fn open(path: &Path) -> anyhow::Result<Box<dyn Write + Send>> {
    if path == Path::new("-") {
        return Ok(Box::new(BufWriter::new(io::stdout())));
    }
    let file = File::create(path).with_context(|| format!("the file {path:?}"))?;
    Ok(Box::new(BufWriter::new(file)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dates_are_those_of_the_calendar() {
        for (ts, expected) in [
            (0.0, "1970-01-01T00:00:00Z"),
            (951_825_600.5, "2000-02-29T12:00:00Z"),
            (1_714_979_289.0, "2024-05-06T07:08:09Z"),
            (1_735_689_599.0, "2024-12-31T23:59:59Z"),
        ] {
            assert_eq!(instant::date(ts).unwrap(), expected);
        }
    }

    #[test]
    fn the_extension_decides_the_format() {
        for (name, expected) in [
            ("a.csv", DocumentFormat::Csv),
            ("A.TSV", DocumentFormat::Tsv),
            ("a.parquet", DocumentFormat::Parquet),
            ("a.warc.gz", DocumentFormat::Warc),
            ("a.warc.wet.gz", DocumentFormat::Wet),
            ("pages.html", DocumentFormat::Html),
            ("a.csv.zst", DocumentFormat::Csv),
            ("a.jsonl", DocumentFormat::Jsonl),
            ("csv", DocumentFormat::Jsonl),
            ("a.gz", DocumentFormat::Jsonl),
            ("-", DocumentFormat::Jsonl),
        ] {
            assert_eq!(DocumentFormat::of_name(Path::new(name)), expected, "{name}");
        }
    }

    #[test]
    fn pages_have_a_paragraph_a_line() {
        let expected = "<body>\n<p>a &lt;b&gt; &amp;amp;</p>\n<p>文</p>\n</body>";
        assert!(page("a <b> &amp;\n文").contains(expected), "{}", page("a <b> &amp;\n文"));
    }
}
