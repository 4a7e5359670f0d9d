//! What a command reads, and how: arguments that several commands share.

use std::io::{self, BufRead};
use std::path::{Path, PathBuf};

use super::problems::Problems;
use dupflow_connectors::formats::{FileFormat, IdRule, InputLayout, WarcId};
use dupflow_connectors::inputs::{Input, listed, refused_beginning};

/// What is read.
#[derive(Debug, clap::Args)]
pub struct InputArgs {
    /// Files of documents (JSON Lines, CSV, TSV, WARC, WET, Parquet; also compressed with zstd or gzip), a
    /// text or a web page, folders whose files are documents, quoted patterns such as 'crawl/**/*.warc.gz',
    /// addresses (s3://, gs://, az://, https://), or "-" for standard input; several are read in order.
    #[arg(value_name = "INPUT", required_unless_present = "files_from")]
    pub inputs: Vec<PathBuf>,

    /// Read these inputs too, after the others: a file with one on each line, or "-" for a list on standard
    /// input.
    #[arg(long, value_name = "FILE")]
    pub files_from: Option<PathBuf>,

    /// How.
    #[command(flatten)]
    pub layout: LayoutArgs,
}

/// How records are to be understood.
#[derive(Debug, Default, clap::Args)]
pub struct LayoutArgs {
    /// The format of all inputs [default: each by its first bytes, then by its name].
    #[arg(long, value_enum, value_name = "FORMAT")]
    pub format: Option<FileFormat>,

    /// Where in its records.
    #[command(flatten)]
    pub columns: ColumnArgs,
}

/// Where a record has what is wanted of it.
#[derive(Debug, Default, clap::Args)]
pub struct ColumnArgs {
    /// The field or column of the id, "meta.id" for one inside another [default: id]. A record without one is
    /// named by its input and its number there, from 0, as in pages.csv#0.
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub id_field: Option<String>,

    /// The field or column of the text [default: text].
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub text_field: Option<String>,

    /// The field or column of the time: unix seconds, or a date of ISO 8601 [default: ts].
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub ts_field: Option<String>,

    /// What stands between the columns of CSV and TSV: one character, or "tab" [default: a comma; of TSV a
    /// tab].
    #[arg(long, value_name = "CHARACTER", value_parser = InputLayout::separator)]
    pub csv_delimiter: Option<u8>,

    /// What stands before a quote inside quotes, besides another quote, as in --csv-escape '\' for tables
    /// of pandas and Spark [default: none].
    #[arg(long, value_name = "CHARACTER", value_parser = InputLayout::separator)]
    pub csv_escape: Option<u8>,

    /// What it means that one id is in several files: "once", a mistake, which is counted and warned about,
    /// and fails lists to keep and to remove; "last", that the later document is meant, as in a feed of
    /// several files; "file", nothing, since records are named by their files and their numbers there, as
    /// in pages.csv#0, whatever ids they have [default: once].
    #[arg(long, value_enum, value_name = "RULE")]
    pub ids: Option<IdRule>,

    /// The id of an archived page: "record", that of its record, another one at each fetch, or "uri", its
    /// address [default: record].
    #[arg(long, value_enum, value_name = "WHICH")]
    pub warc_id: Option<WarcId>,
}

impl InputArgs {
    /// The inputs as they were named, those of the list too.
    ///
    /// Notes a list that cannot be read.
    pub(super) fn named(&self, problems: &mut Problems) -> Vec<PathBuf> {
        let mut named = self.inputs.clone();
        if let Some(path) = &self.files_from {
            let list = if path == Path::new("-") {
                std::io::read_to_string(std::io::stdin())
            } else {
                std::fs::read_to_string(path)
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

    /// The inputs.
    pub(super) fn resolve(&self, problems: &mut Problems) -> Option<Vec<Input>> {
        let named = self.named(problems);
        self.layout.columns.check(problems);
        problems.take(Input::resolve(&named, self.layout.layout()))
    }
}

/// Notes a standard input that is of a format that is not read: waits for its first bytes, and takes none
/// of them.
pub(super) fn look_at_standard_input(layout: &InputLayout, problems: &mut Problems) {
    let mut stdin = io::stdin().lock();
    // What cannot be read at all is found where it is read.
    if let Some(why) = stdin.fill_buf().ok().and_then(|head| refused_beginning(head, layout)) {
        problems.note(format_args!("cannot read standard input: {why}"));
    }
}

impl LayoutArgs {
    /// What was typed.
    pub(super) fn layout(&self) -> InputLayout {
        InputLayout { format: self.format, ..self.columns.layout() }
    }
}

impl ColumnArgs {
    /// Notes what has no effect.
    pub(super) fn check(&self, problems: &mut Problems) {
        if self.ids == Some(IdRule::File) && self.id_field.is_some() {
            problems.note("--id-field: has no effect with --ids file, which names records by their files");
        }
    }

    /// What was typed, of inputs that are asked for their formats.
    pub(super) fn layout(&self) -> InputLayout {
        let default = InputLayout::default();
        InputLayout {
            format: None,
            id: self.id_field.clone().unwrap_or(default.id),
            text: self.text_field.clone().unwrap_or(default.text),
            ts: self.ts_field.clone().unwrap_or(default.ts),
            csv_delimiter: self.csv_delimiter,
            csv_escape: self.csv_escape,
            warc_id: self.warc_id.unwrap_or_default(),
            ids: self.ids.unwrap_or_default(),
        }
    }
}

/// The name of a field: names with points between them, each with something in it.
fn name(typed: &str) -> Result<String, String> {
    let is_name = !typed.split('.').any(str::is_empty);
    is_name
        .then(|| typed.to_owned())
        .ok_or_else(|| "expected a name, or names with points between them".to_owned())
}
