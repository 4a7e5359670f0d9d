//! Opens inputs a second time, for the bytes of their records.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{self, Read};
use std::path::PathBuf;
use std::sync::Arc;

use super::folder::{holds_records, in_order, is_hidden};
use super::input::{Input, InputPlace};
use super::open::{columns, detect_format, dialect, read_beginning};
use crate::formats::{
    Compression, Dialect, FileFormat, InputLayout, Metered, RawReader, SharedPages, raw_csv, raw_lines,
    raw_warc,
};
#[cfg(feature = "parquet")]
use crate::formats::{InMemory, OnDisk, ParquetCopy, RandomAccess};
use dupflow_core::text::TextColumns;

/// An input that has been opened again.
pub(crate) struct Reopened {
    pub(crate) format: FileFormat,
    pub(crate) compression: Compression,
    /// How it is written, if it is a table.
    pub(crate) dialect: Dialect,
    /// The path to the text of a record.
    pub(crate) text: String,
    pub(crate) records: RawRecords,
}

/// The records of an input.
pub(crate) enum RawRecords {
    /// One after another.
    Bytes(Box<dyn RawReader>),
    /// By row group and column.
    #[cfg(feature = "parquet")]
    Rows(ParquetCopy),
}

/// Opens an input for the bytes of its records. `pages` are those to which revisits refer.
///
/// # Errors
/// If it cannot be opened or cannot be read twice, or has no records but is one document.
pub(crate) fn reopen(input: &Input, pages: &SharedPages) -> io::Result<Reopened> {
    let refused = |why: &str| Err(io::Error::new(io::ErrorKind::Unsupported, why.to_owned()));
    match &input.place {
        InputPlace::Stdin => refused("standard input cannot be read twice: write it to a file first"),
        InputPlace::Folder(_) => refused("it is a folder"),
        InputPlace::File(path) if !path.metadata()?.is_file() => {
            refused("it is a pipe or a device, which cannot be read twice: write it to a file first")
        }
        InputPlace::File(path) => open(input, File::open(path)?, pages),
        InputPlace::Memory(_, bytes) => open(input, io::Cursor::new(Arc::clone(bytes)), pages),
        #[cfg(feature = "object-store")]
        InputPlace::Object(object) => open(input, object.read(), pages),
    }
}

fn open(input: &Input, stored: impl Read + Send + 'static, pages: &SharedPages) -> io::Result<Reopened> {
    let mut stored = Metered::new(stored, Default::default(), Default::default());
    let (compression, beginning) = read_beginning(&mut stored)?;
    let format = input.layout.format.unwrap_or_else(|| detect_format(&beginning, &input.name()));
    let dialect = dialect(&input.layout, format);
    let columns = columns(&input.layout, &TextColumns::default());
    let records = match format {
        FileFormat::Jsonl => RawRecords::Bytes(raw_lines(compression.decode(stored)?)),
        FileFormat::Csv | FileFormat::Tsv => {
            RawRecords::Bytes(raw_csv(compression.decode(stored)?, dialect, &columns)?)
        }
        FileFormat::Warc => {
            let id = input.layout.warc_id;
            RawRecords::Bytes(raw_warc(Box::new(stored), &columns, id, Arc::clone(pages)))
        }
        #[cfg(feature = "parquet")]
        FileFormat::Parquet if compression == Compression::None => {
            RawRecords::Rows(ParquetCopy::open(at_random(input)?)?)
        }
        FileFormat::Parquet => {
            let why = "a Parquet file that is compressed as a whole is not copied: decompress it first";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
        FileFormat::Text | FileFormat::Html => {
            let why = "it is one document and has no records: --emit keep names the documents to copy, and \
                with text.split --emit remove the parts to cut";
            return Err(io::Error::new(io::ErrorKind::Unsupported, why));
        }
    };
    Ok(Reopened { format, compression, dialect, text: columns.text, records })
}

/// Random access to an input.
#[cfg(feature = "parquet")]
fn at_random(input: &Input) -> io::Result<Arc<dyn RandomAccess>> {
    Ok(match &input.place {
        InputPlace::File(path) | InputPlace::Folder(path) => Arc::new(OnDisk::open(path, Arc::default())?),
        InputPlace::Memory(_, bytes) => Arc::new(InMemory::new(Arc::clone(bytes))),
        #[cfg(feature = "object-store")]
        InputPlace::Object(object) => {
            Arc::new(super::remote::ObjectAccess::new(Arc::clone(object), Arc::default()))
        }
        InputPlace::Stdin => return Err(io::ErrorKind::Unsupported.into()),
    })
}

/// The inputs, with each folder replaced by its files, in the order in which they are read.
pub fn files_of(inputs: &[Input]) -> Vec<Input> {
    let mut files = Vec::new();
    for input in inputs {
        let InputPlace::Folder(root) = &input.place else {
            files.push(input.clone());
            continue;
        };
        let found = in_order(root).into_iter().filter_entry(|entry| !is_hidden(entry)).flatten();
        for entry in found.filter(|entry| entry.file_type().is_file()) {
            let path = entry.into_path();
            let is_document = !holds_records(&path, &input.layout);
            let format = if is_document { Some(FileFormat::Text) } else { input.layout.format };
            let layout = Arc::new(InputLayout { format, ..(*input.layout).clone() });
            files.push(Input { place: InputPlace::File(path), layout });
        }
    }
    files
}

/// The folders below which files are read: those of the inputs, and those that links in them lead to. Each
/// without links and dots, with the path by which it is reached.
pub fn folders_of(inputs: &[Input]) -> BTreeMap<PathBuf, PathBuf> {
    let roots = inputs.iter().filter(|input| input.is_folder()).filter_map(Input::path);
    let linked = roots.flat_map(|root| {
        let all = in_order(root).into_iter().filter_entry(|entry| !is_hidden(entry)).flatten();
        all.filter(|entry| entry.depth() == 0 || entry.path_is_symlink() && entry.file_type().is_dir())
    });
    linked.filter_map(|entry| Some((entry.path().canonicalize().ok()?, entry.into_path()))).collect()
}
