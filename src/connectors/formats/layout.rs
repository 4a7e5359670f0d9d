//! How the records of inputs are to be read: names, formats, ids.

use std::path::Path;

use clap::ValueEnum as _;
use clap::builder::PossibleValue;

use crate::canonical_url::canonical_id;
use dupflow_core::doc::DocId;

/// Settings for what inputs do not say themselves.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct InputLayout {
    /// The format of all inputs; `None`: detected for each input.
    pub format: Option<FileFormat>,
    /// The path to the id in a record: names with points between them.
    pub id: String,
    /// The path to the text.
    pub text: String,
    /// The path to the time.
    pub ts: String,
    /// The path to the operation; empty: every record is an upsert.
    pub op: String,
    /// The separator of columns; `None`: a comma for CSV, a tab for TSV.
    pub csv_delimiter: Option<u8>,
    /// A byte that escapes a quote inside quotes, in addition to a doubled quote.
    pub csv_escape: Option<u8>,
    /// What encloses cells of tables.
    pub csv_quote: CsvQuote,
    /// What a lone surrogate in a string that is read means.
    pub surrogates: SurrogateRule,
    /// Which id an archived page gets.
    pub warc_id: WarcId,
    /// What an archived answer means that there is no page any more.
    pub warc_not_found: NotFoundRule,
    /// What it means if several files have the same id.
    pub ids: IdRule,
    /// Whether ids are addresses of web pages, of which the canonical form is the id of the document. A
    /// record whose id is none, or that has no id, is a bad record.
    pub canonical_url: bool,
    /// Whether a record without an id is a bad record, whatever the first one has.
    pub needs_ids: bool,
}

impl Default for InputLayout {
    fn default() -> Self {
        Self {
            format: None,
            id: "id".to_owned(),
            text: "text".to_owned(),
            ts: "ts".to_owned(),
            op: "op".to_owned(),
            csv_delimiter: None,
            csv_escape: None,
            csv_quote: CsvQuote::Usual,
            surrogates: SurrogateRule::Bad,
            warc_id: WarcId::Record,
            warc_not_found: NotFoundRule::Skip,
            ids: IdRule::Once,
            canonical_url: false,
            needs_ids: false,
        }
    }
}

impl InputLayout {
    /// Parses a column separator or an escape byte: one ASCII character, `tab` or `\t`.
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

    /// The field of the operation, if it is read: a field that is read as something else is none.
    pub(crate) fn operation(&self) -> &str {
        if [&self.id, &self.text, &self.ts].contains(&&self.op) { "" } else { &self.op }
    }

    /// What [`Self::separator`] accepts.
    pub const SEPARATOR: &str = "one character of ASCII that is no quote, or \"tab\"";

    /// The options of a command that read inputs like this, each with its value; `None`: a flag. Those that
    /// have no effect are left out.
    pub fn options(&self) -> Vec<(&'static str, Option<String>)> {
        let Self { format, id, text, ts, op, csv_delimiter, csv_escape, csv_quote, .. } = self;
        let Self { surrogates, warc_id, warc_not_found, ids, canonical_url, .. } = self;
        let default = Self::default();
        let named = |typed: &String, usual: &String| (typed != usual).then(|| typed.clone());
        let typed = |byte: u8| if byte == b'\t' { "tab".to_owned() } else { char::from(byte).to_string() };
        let rule = |value: Option<PossibleValue>| value.map(|value| value.get_name().to_owned());
        let surrogates = (*surrogates != default.surrogates).then(|| rule(surrogates.to_possible_value()));
        let not_found =
            (*warc_not_found != default.warc_not_found).then(|| rule(warc_not_found.to_possible_value()));
        let values = [
            ("format", format.map(|format| format.name().to_owned())),
            ("id-field", named(id, &default.id)),
            ("text-field", named(text, &default.text)),
            ("ts-field", named(ts, &default.ts)),
            ("op-field", named(op, &default.op)),
            ("csv-delimiter", csv_delimiter.map(typed)),
            ("csv-escape", csv_escape.map(typed)),
            ("csv-quote", csv_quote.name()),
            ("json-surrogates", surrogates.flatten()),
            ("ids", rule(ids.to_possible_value())),
            ("warc-id", rule(warc_id.to_possible_value())),
            ("warc-not-found", not_found.flatten()),
        ];
        let values = values.into_iter().filter(|(_, value)| value.is_some());
        values.chain(canonical_url.then_some(("canonical-url", None))).collect()
    }

    /// How pages of archives become documents.
    pub(crate) fn warc(&self) -> WarcRules {
        let deletes = self.warc_not_found == NotFoundRule::Delete;
        WarcRules { id: self.warc_id, deletes }
    }

    /// Why the rules of archives exclude each other, if they do.
    pub fn warc_conflict(&self) -> Option<&'static str> {
        (self.warc().deletes && self.warc_id == WarcId::Record).then_some(
            "the id of a record is a new one at each fetch, so that an answer of status 404 or 410 deletes \
             no page: take addresses as ids (\"uri\")",
        )
    }

    /// Whether a record without an id is a bad record: ids are asked for, the user named their field, or they
    /// are addresses.
    pub(crate) fn needs_id(&self) -> bool {
        self.needs_address() || self.needs_ids || self.id != Self::default().id && self.ids != IdRule::File
    }

    /// Whether ids of records are addresses.
    pub(crate) fn needs_address(&self) -> bool {
        self.canonical_url && self.ids != IdRule::File
    }

    /// The id of a document that a user names: an address in its canonical form, if ids are addresses.
    pub fn id_of(&self, typed: &str) -> Option<DocId> {
        let canonical = self.needs_address().then(|| canonical_id(typed.as_bytes())).flatten();
        canonical.or_else(|| DocId::new(typed))
    }
}

/// The format of an input, by its name in the register.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct FileFormat(pub(super) &'static str);

impl FileFormat {
    /// The name of the format in settings.
    pub fn name(self) -> &'static str {
        self.0
    }
}

/// The names of a path, at least one: between points. Where one would be empty, as in `text.` or `a..b`, the
/// path is one name with its points.
pub fn named_path(typed: &str) -> Vec<String> {
    let names: Vec<_> = typed.split('.').map(str::to_owned).collect();
    if names.iter().any(String::is_empty) { vec![typed.to_owned()] } else { names }
}

/// What encloses cells of tables that hold separators or line ends.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum CsvQuote {
    /// `"`, as usual. A quoted cell that is not as writers of CSV write it is no cell.
    #[default]
    Usual,
    /// This character, by the word of the user.
    Named(u8),
    /// Nothing: each line is a row.
    None,
}

impl CsvQuote {
    /// What [`Self::parse`] accepts.
    pub const EXPECTED: &str = "one character of ASCII, or \"none\" for a table without quotes";

    /// Parses a quote: one ASCII character, or `none`.
    ///
    /// # Errors
    /// What is expected instead.
    pub fn parse(typed: &str) -> Result<Self, String> {
        match typed.as_bytes() {
            b"none" => Ok(Self::None),
            [byte] if byte.is_ascii_graphic() && !byte.is_ascii_alphanumeric() => Ok(Self::Named(*byte)),
            _ => Err(format!("expected {}", Self::EXPECTED)),
        }
    }

    /// As typed; `None`: not set.
    pub fn name(self) -> Option<String> {
        match self {
            Self::Usual => None,
            Self::Named(byte) => Some(char::from(byte).to_string()),
            Self::None => Some("none".to_owned()),
        }
    }
}

/// What a lone surrogate means, an escape as `\ud83d` that is half a character, in a string that is read.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum SurrogateRule {
    /// A bad record.
    #[default]
    Bad,
    /// U+FFFD, the replacement character.
    Replace,
}

/// What it means if several files have the same id.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum IdRule {
    /// A mistake: it is counted and logged, and lists are refused.
    #[default]
    Once,
    /// Ids are ignored: each record is named by its file and its number there.
    File,
    /// The files are one feed: a later document replaces an earlier one.
    Last,
}

/// Which id an archived page gets.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum WarcId {
    /// The id of its WARC record, which differs at each fetch.
    #[default]
    Record,
    /// Its address: fetching a page again is an update.
    Uri,
}

/// What an archived answer of status 404 or 410 means.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, clap::ValueEnum)]
pub enum NotFoundRule {
    /// Nothing: it is skipped.
    #[default]
    Skip,
    /// The page of its address is deleted.
    Delete,
}

/// How pages of archives become documents.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct WarcRules {
    pub(crate) id: WarcId,
    /// Whether an answer of status 404 or 410 deletes the page of its address.
    pub(crate) deletes: bool,
}

impl From<WarcId> for WarcRules {
    fn from(id: WarcId) -> Self {
        Self { id, deletes: false }
    }
}

/// Endings of names that a decompressor removes.
pub(crate) const PACKED: [&str; 13] =
    [".xz", ".bz2", ".lz4", ".zip", ".7z", ".lz", ".z", ".sz", ".rar", ".br", ".gz", ".zst", ".zstd"];

/// What to write instead of a file whose name says a format that is not written.
pub fn instead_of(path: &Path) -> Option<&'static str> {
    let ending = path.extension()?.to_str()?.to_ascii_lowercase();
    Some(match &*ending {
        "xlsx" | "xls" | "ods" | "xlsm" => {
            "a spreadsheet opens a table of comma-separated values: name it .csv"
        }
        "db" | "sqlite" | "sqlite3" | "db3" => {
            "\"sqlite:FILE\" is the tables of a database, with sink.kind = \"sqlite\" for `dupflow run`; or \
             name it .csv, which sqlite3 imports: sqlite3 NEW.db '.import --csv ROWS.csv rows'"
        }
        "duckdb" | "ddb" => "DuckDB reads a file named .parquet",
        "arrows" => {
            "rows are an Arrow file and no stream: name it .arrow; records that are copied keep the format \
             of their input"
        }
        "orc" | "avro" | "h5" | "hdf5" | "pkl" | "pickle" | "npy" => "name it .parquet or .jsonl",
        "xml" | "pdf" | "docx" => "name it .jsonl or .csv",
        _ => return None,
    })
}

/// A name without the query of a web address.
pub(crate) fn without_query(name: &str) -> &str {
    let is_web = name.starts_with("http://") || name.starts_with("https://");
    name.split_once('?').filter(|_| is_web).map_or(name, |(path, _)| path)
}
