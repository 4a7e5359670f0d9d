//! The input arguments that several commands share: what is read, and how.

use std::fs::File;
use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use super::problems::Problems;
use dupflow_connectors::formats::{
    CsvQuote, FileFormat, IdRule, InputLayout, NotFoundRule, SurrogateRule, WarcId, decompressed,
};
use dupflow_connectors::inputs::{Input, listed, refused_beginning};
use dupflow_core::doc::fields::{FieldRule, FieldRules};

/// The inputs, and how they are read.
#[derive(Debug, clap::Args)]
pub struct InputArgs {
    /// Files, folders, patterns, tables, addresses, or "-".
    ///
    /// Files of documents (JSON Lines, JSON arrays, CSV, TSV, WARC, WET, ARC, WACZ, Parquet, Arrow; also
    /// compressed with zstd or gzip), a text or a web page, folders whose files are documents, tables of
    /// Delta Lake (the folder, or delta:FOLDER?version=7, ?timestamp=TIME), quoted patterns such as
    /// 'crawl/**/*.warc.gz', addresses (s3://, gs://, az://, https://), or "-" for standard input; several
    /// are read in order.
    #[arg(value_name = "INPUT", required_unless_present = "files_from")]
    pub inputs: Vec<PathBuf>,

    /// Read the inputs that this file lists too, one per line.
    ///
    /// They are read after the others; "-" is a list on standard input.
    #[arg(long, value_name = "FILE")]
    pub files_from: Option<PathBuf>,

    /// Format and fields of the records.
    #[command(flatten)]
    pub layout: LayoutArgs,
}

/// Format and fields of the records.
#[derive(Debug, Default, clap::Args)]
pub struct LayoutArgs {
    /// The format of all inputs [default: found for each].
    ///
    /// By default it is that of each input's first bytes, then of its name.
    #[arg(long, value_enum, value_name = "FORMAT", help_heading = "Input")]
    pub format: Option<FileFormat>,

    /// The fields of the records.
    #[command(flatten)]
    pub columns: ColumnArgs,
}

/// Where a record has its id, text and time.
#[derive(Debug, Default, clap::Args)]
pub struct ColumnArgs {
    /// The field or column of the id [default: id].
    ///
    /// "meta.id" is a field inside another. A record without one gets its input and its number there, from 0,
    /// as in pages.csv#0.
    #[arg(long, value_name = "NAME", value_parser = field_name)]
    pub id_field: Option<String>,

    /// The field or column of the text [default: text].
    #[arg(long, value_name = "NAME", value_parser = field_name)]
    pub text_field: Option<String>,

    /// The field or column of the time [default: ts].
    ///
    /// It is in unix seconds, or a date of ISO 8601.
    #[arg(long, value_name = "NAME", value_parser = field_name)]
    pub ts_field: Option<String>,

    /// The field or column of the operation: "upsert" or "delete"; "" where none says so, and all records are
    /// upserts [default: op].
    #[arg(long, value_name = "NAME", value_parser = operation_name)]
    pub op_field: Option<String>,

    /// The separator of CSV and TSV columns: one character, or "tab" [default: a comma; for TSV a tab].
    #[arg(long, value_name = "CHARACTER", value_parser = InputLayout::separator)]
    pub csv_delimiter: Option<u8>,

    /// The character that escapes a quote inside quotes, besides a doubled quote, as in --csv-escape '\' for
    /// tables of pandas and Spark [default: none].
    #[arg(long, value_name = "CHARACTER", value_parser = InputLayout::separator)]
    pub csv_escape: Option<u8>,

    /// What encloses CSV and TSV cells: one character, or "none" for a table without quotes, in which each
    /// line is a row; with --csv-escape '\' its cells have escapes, as in TSV of ClickHouse and PostgreSQL
    /// (\t, \n, \\, and \N for NULL). A quote that is named is not examined [default: '"'].
    #[arg(long, value_name = "CHARACTER", value_parser = CsvQuote::parse)]
    pub csv_quote: Option<CsvQuote>,

    /// What a lone surrogate in JSON means, half a character as "\ud83d" that has no other half: "bad", that
    /// the record is bad if the string is read; "replace", U+FFFD [default: bad].
    #[arg(long, value_enum, value_name = "RULE")]
    pub json_surrogates: Option<SurrogateRule>,

    /// What an id in several files means: once, last or file.
    ///
    /// "once", a mistake, which is counted and warned about, and
    /// which fails lists to keep and to remove; "last", that the later document replaces the earlier one, as
    /// in a feed of several files; "file", nothing, since every record is named by its file and its number
    /// there, as in pages.csv#0 [default: once].
    #[arg(long, value_enum, value_name = "RULE")]
    pub ids: Option<IdRule>,

    /// Ids are addresses of web pages, and those of one page are one id: its canonical form, which begins
    /// with https:// and has no "www.", fragment and tracking parameters. A record without an address is bad:
    /// name its field with --id-field url; of web archives with --warc-id uri.
    #[arg(long)]
    pub canonical_url: bool,

    /// A field of the documents, for rules as pairs.where.
    ///
    /// A column, or host(COLUMN), prefix(COLUMN, "/", N) or day(ts), with a name
    /// before it if it is to have another, as in 'site = host(url)'; several times for several fields. The
    /// pipeline says what they are for (pairs.where).
    #[arg(long = "field", value_name = "FIELD", value_parser = FieldRule::parse)]
    pub fields: Vec<FieldRule>,

    /// The id of an archived page: "record", the id of its record, which differs for each fetch, or "uri",
    /// its address [default: record].
    #[arg(long, value_enum, value_name = "WHICH")]
    pub warc_id: Option<WarcId>,

    /// What an answer of status 404 or 410 in an archive means: "skip", nothing, or "delete", that the page
    /// of its address is deleted; that needs --warc-id uri [default: skip].
    #[arg(long, value_enum, value_name = "WHAT")]
    pub warc_not_found: Option<NotFoundRule>,
}

impl InputArgs {
    /// The inputs as typed, followed by those of the list. Reports a list that cannot be read.
    pub(in crate::cli) fn named(&self, problems: &mut Problems) -> Vec<PathBuf> {
        let mut named = self.inputs.clone();
        if let Some(path) = &self.files_from {
            let list = if path == Path::new("-") {
                list_of(io::stdin())
            } else {
                File::open(path).and_then(list_of)
            };
            match list {
                Ok(list) => {
                    named.extend(listed(&list));
                    if named.is_empty() {
                        problems.note(format_args!("--files-from: {path:?} names no input"));
                    }
                }
                Err(error) => problems.note(format_args!("--files-from: cannot read {path:?}: {error}")),
            }
        }
        named
    }

    /// Whether standard input is a list of inputs.
    pub(in crate::cli) fn lists_stdin(&self) -> bool {
        self.files_from.as_deref() == Some(Path::new("-"))
    }

    /// The resolved inputs: patterns expanded, files found.
    pub(in crate::cli) fn resolve(&self, problems: &mut Problems) -> Option<Vec<Input>> {
        let named = self.named(problems);
        self.layout.columns.check(problems);
        if self.lists_stdin() && named.iter().any(|path| path == Path::new("-")) {
            problems.note(STDIN_TWICE);
        }
        problems.take(Input::resolve(&named, self.layout.layout()))
    }
}

/// The text of a list, which may be compressed, as lists of Common Crawl are, and may begin with a byte order
/// mark.
fn list_of(stored: impl io::Read + Send + 'static) -> io::Result<String> {
    let list = io::read_to_string(decompressed(stored)?)?;
    Ok(list.strip_prefix('\u{feff}').map_or(list.clone(), str::to_owned))
}

/// The problem of a standard input that two options read.
pub(in crate::cli) const STDIN_TWICE: &str = "standard input \"-\" is named more than once";

/// Reports a standard input in an unsupported format. Waits for its first bytes without consuming them.
pub(in crate::cli) fn look_at_standard_input(layout: &InputLayout, problems: &mut Problems) {
    let mut stdin = io::stdin().lock();
    // A read error is reported later, when the input is read.
    if let Some(why) = stdin.fill_buf().ok().and_then(|head| refused_beginning(head, layout)) {
        problems.note(format_args!("cannot read standard input: {why}"));
    }
}

impl LayoutArgs {
    /// The layout as typed.
    pub(in crate::cli) fn layout(&self) -> InputLayout {
        InputLayout { format: self.format, ..self.columns.layout() }
    }
}

impl ColumnArgs {
    /// Reports options without effect.
    pub(in crate::cli) fn check(&self, problems: &mut Problems) {
        if self.ids == Some(IdRule::File) && self.id_field.is_some() {
            problems.note("--id-field: has no effect with --ids file, which names records by their files");
        }
        let InputLayout { id, text, ts, .. } = self.layout();
        let is_id = text == id && self.ids != Some(IdRule::File);
        if is_id || text == ts {
            let what = if is_id { "the id (--id-field)" } else { "the time (--ts-field)" };
            problems
                .note(format_args!("--text-field: the field {text:?} is {what} of the documents already"));
        }
        if self.ids == Some(IdRule::File) && self.canonical_url {
            problems
                .note("--canonical-url: has no effect with --ids file, which names records by their files");
        }
    }

    /// The fields of documents as typed. Reports a name that two have, and the text.
    pub(in crate::cli) fn fields(&self, problems: &mut Problems) -> FieldRules {
        let fields = FieldRules::new(self.fields.clone()).unwrap_or_else(|name| {
            problems.note(format_args!("--field: two fields are named {name:?}"));
            FieldRules::default()
        });
        let layout = self.layout();
        if let Some(what) = layout.warc_conflict() {
            problems.note(format_args!("--warc-not-found: {what}"));
        }
        let text = layout.text;
        if fields.columns().contains(&text) {
            problems.note(format_args!("--field: {text:?} is the text of the documents, which is no field"));
        }
        fields
    }

    /// The layout as typed, for inputs whose format is detected.
    pub(in crate::cli) fn layout(&self) -> InputLayout {
        let default = InputLayout::default();
        InputLayout {
            format: None,
            id: self.id_field.clone().unwrap_or(default.id),
            text: self.text_field.clone().unwrap_or(default.text),
            ts: self.ts_field.clone().unwrap_or(default.ts),
            op: self.op_field.clone().unwrap_or(default.op),
            csv_delimiter: self.csv_delimiter,
            csv_escape: self.csv_escape,
            csv_quote: self.csv_quote.unwrap_or_default(),
            surrogates: self.json_surrogates.unwrap_or_default(),
            warc_id: self.warc_id.unwrap_or_default(),
            warc_not_found: self.warc_not_found.unwrap_or_default(),
            ids: self.ids.unwrap_or_default(),
            canonical_url: self.canonical_url,
            needs_ids: false,
        }
    }
}

/// A field name: one name, or names with points between them.
pub(super) fn field_name(typed: &str) -> Result<String, String> {
    let name = Some(typed.to_owned()).filter(|name| !name.is_empty());
    name.ok_or_else(|| "expected a name, or names with points between them".to_owned())
}

/// A field name, or nothing.
fn operation_name(typed: &str) -> Result<String, String> {
    if typed.is_empty() { Ok(String::new()) } else { field_name(typed) }
}
