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
    /// Where it has its time.
    pub ts: String,
    /// What stands between the columns of CSV and of TSV; `None`: a comma, and a tab.
    pub csv_delimiter: Option<u8>,
    /// What may stand before a quote inside quotes, besides another quote.
    pub csv_escape: Option<u8>,
    /// What the id of an archived page is.
    pub warc_id: WarcId,
    /// What an id is that several files hold.
    pub ids: IdRule,
}

impl Default for Layout {
    fn default() -> Self {
        Self {
            format: None,
            id: "id".to_owned(),
            text: "text".to_owned(),
            ts: "ts".to_owned(),
            csv_delimiter: None,
            csv_escape: None,
            warc_id: WarcId::Record,
            ids: IdRule::Once,
        }
    }
}

impl Layout {
    /// A byte that may stand between columns, or escape a quote, as it is typed: one character of ASCII,
    /// `tab` or `\t`.
    ///
    /// # Errors
    /// What is expected instead.
    pub fn separator(typed: &str) -> Result<u8, String> {
        let byte = match typed.as_bytes() {
            b"tab" | b"\\t" => Some(b'\t'),
            [byte] if byte.is_ascii() && !matches!(byte, b'"' | b'\n' | b'\r') => Some(*byte),
            _ => None,
        };
        byte.ok_or_else(|| format!("expected {}", Self::SEPARATOR))
    }

    /// What [`Self::separator`] takes.
    pub const SEPARATOR: &str = "one character of ASCII that is no quote, or \"tab\"";

    /// Whether the id was asked for by another name than the usual one.
    pub(super) fn names_id(&self) -> bool {
        self.id != Self::default().id && self.ids != IdRule::File
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

/// What it means that an id is in several files.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum IdRule {
    /// A mistake: it is counted and warned about, and lists are refused.
    #[default]
    Once,
    /// Nothing: each record is named by its file and its number there, whatever id it has.
    File,
    /// The later document is the one that is meant: the files are one feed.
    Last,
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
