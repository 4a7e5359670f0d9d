//! What a command reads, and how: arguments that several commands share.

use std::path::{Path, PathBuf};

use super::problems::Problems;
use crate::source::{FileFormat, Input, Layout, WarcId, listed};

/// What is read.
#[derive(Debug, clap::Args)]
pub struct InputArgs {
    /// Files of documents (JSON Lines, CSV, TSV, WARC, WET, Parquet; also compressed with zstd or gzip), a text or a web page, folders whose files
    /// are documents, quoted patterns such as 'crawl/**/*.warc.gz', addresses (s3://, gs://, az://, https://), or "-" for standard input;
    /// several are read in order.
    #[arg(value_name = "INPUT", required_unless_present = "files_from")]
    pub inputs: Vec<PathBuf>,

    /// Read these inputs too, after the others: a file with one on each line, or "-" for a list on standard input.
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
    /// The field or column of the id, "meta.id" for one inside another [default: id]. A record without one is named by its input and its number
    /// there, from 0, as in pages.csv#0.
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub id_field: Option<String>,

    /// The field or column of the text [default: text].
    #[arg(long, value_name = "NAME", value_parser = name)]
    pub text_field: Option<String>,

    /// The id of an archived page: "record", that of its record, another one at each fetch, or "uri", its address [default: record].
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
        problems.take(Input::resolve(&named, self.layout.layout()))
    }
}

impl LayoutArgs {
    /// What was typed.
    pub(super) fn layout(&self) -> Layout {
        Layout { format: self.format, ..self.columns.layout() }
    }
}

impl ColumnArgs {
    /// What was typed, of inputs that are asked for their formats.
    pub(super) fn layout(&self) -> Layout {
        let default = Layout::default();
        Layout {
            format: None,
            id: self.id_field.clone().unwrap_or(default.id),
            text: self.text_field.clone().unwrap_or(default.text),
            warc_id: self.warc_id.unwrap_or_default(),
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
