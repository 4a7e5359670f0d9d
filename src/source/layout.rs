//! How the records of inputs are to be understood.

use std::path::Path;

/// How records are to be understood, where the inputs do not say it themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The format of all inputs; `None`: each is asked for its own.
    pub format: Option<FileFormat>,
    /// Where a record has its id: names with points between them.
    pub id: String,
    /// Where it has its text.
    pub text: String,
    /// What the id of an archived page is.
    pub warc_id: WarcId,
}

impl Default for Layout {
    fn default() -> Self {
        Self { format: None, id: "id".to_owned(), text: "text".to_owned(), warc_id: WarcId::Record }
    }
}

/// The format of an input.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum FileFormat {
    /// JSON Lines: an object a line.
    Jsonl,
    /// Comma-separated values, with a header.
    Csv,
    /// The same with tabs.
    Tsv,
    /// A web archive, or the texts of one (WET).
    #[value(alias = "wet")]
    Warc,
    /// Apache Parquet.
    Parquet,
    /// A text, which is one document.
    Text,
    /// A web page, which is one document.
    Html,
}

/// What the id of an archived page is.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum WarcId {
    /// That of its record, another one at each fetch.
    #[default]
    Record,
    /// Its address: a page that is fetched again is an update.
    Uri,
}

impl FileFormat {
    /// What a setting takes.
    pub const EXPECTED: &str = "\"jsonl\", \"csv\", \"tsv\", \"warc\", \"parquet\", \"text\" or \"html\"";

    /// The name in a setting.
    pub fn name(self) -> &'static str {
        match self {
            Self::Jsonl => "jsonl",
            Self::Csv => "csv",
            Self::Tsv => "tsv",
            Self::Warc => "warc",
            Self::Parquet => "parquet",
            Self::Text => "text",
            Self::Html => "html",
        }
    }
}

/// The format that a name tells.
pub(super) fn by_name(name: &str) -> Option<FileFormat> {
    let name = name.to_ascii_lowercase();
    let name = [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    Some(match Path::new(name).extension()?.to_str()? {
        "jsonl" | "ndjson" | "json" => FileFormat::Jsonl,
        "csv" => FileFormat::Csv,
        "tsv" | "tab" => FileFormat::Tsv,
        "warc" | "wet" => FileFormat::Warc,
        "parquet" => FileFormat::Parquet,
        "html" | "htm" | "xhtml" => FileFormat::Html,
        "txt" | "text" | "md" | "markdown" | "rst" => FileFormat::Text,
        _ => return None,
    })
}
