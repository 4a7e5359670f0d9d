//! The files of a folder: in which order they are read, which are records and which documents, and their
//! kinds.

use std::fs::File;
use std::io::{self, Read};
use std::path::Path;
use std::sync::Arc;

use walkdir::{DirEntry, WalkDir};

use super::super::input::{Input, InputPlace};
use super::super::table_folder::{TableFolder, is_marker};
use crate::formats::{FileFormat, InputLayout, decompressed, refused_window};

/// The files of a folder that have the same format.
#[derive(Clone, Debug)]
pub struct FolderKind {
    /// Their format.
    pub format: FileFormat,
    /// Number of files.
    pub files: u64,
    /// The first of them, as an input.
    pub first: Input,
}

impl FolderKind {
    /// Whether each file is a document, with its path below the folder as its id.
    pub fn is_document(&self) -> bool {
        self.format.is_document()
    }
}

/// The kinds of files of a folder, in the order in which the first file of each is read. Entries that cannot
/// be read are left out.
pub fn folder_kinds(folder: &Input) -> Vec<FolderKind> {
    let InputPlace::Folder(root) = &folder.place else { return Vec::new() };
    let mut kinds: Vec<FolderKind> = Vec::new();
    let files = in_order(root).into_iter().filter_entry(|entry| !is_hidden(entry));
    for entry in files.flatten().filter(|entry| entry.file_type().is_file()) {
        let path = entry.into_path();
        let named = FileFormat::of_name(&path.to_string_lossy());
        let format = match folder.layout.format.or(named) {
            Some(format) if holds_records(&path, &folder.layout) => format,
            Some(format) if format == FileFormat::page() => format,
            _ => FileFormat::text(),
        };
        match kinds.iter_mut().find(|kind| kind.format == format) {
            Some(kind) => kind.files += 1,
            None => {
                // Of records the first bytes of each file decide, as when they are read.
                let of_file = if format.is_document() { Some(format) } else { folder.layout.format };
                let layout = Arc::new(InputLayout { format: of_file, ..(*folder.layout).clone() });
                kinds.push(FolderKind {
                    format,
                    files: 1,
                    first: Input { place: InputPlace::File(path), layout, part: None },
                });
            }
        }
    }
    kinds
}

/// The entries below a folder, in the order of the bytes of their paths. Links are followed; one that leads
/// to a folder above it is an error ([`walkdir::Error::loop_ancestor`]).
pub(crate) fn in_order(root: &Path) -> WalkDir {
    // A folder sorts by its name and the separator, as in the paths of its files.
    let key = |entry: &DirEntry| {
        let mut name = entry.file_name().as_encoded_bytes().to_vec();
        name.extend(entry.file_type().is_dir().then_some(b'/'));
        name
    };
    WalkDir::new(root).follow_links(true).sort_by(move |a, b| key(a).cmp(&key(b)))
}

/// Whether an entry of a folder is skipped with everything below it: names that tools use for their own files
/// beside data.
pub(crate) fn is_hidden(entry: &DirEntry) -> bool {
    entry.depth() > 0 && matches!(entry.file_name().as_encoded_bytes(), [b'.' | b'_', ..])
}

/// The table that has this entry of a folder as its log.
pub(crate) fn table_of(entry: &DirEntry) -> Option<TableFolder> {
    let is_log = entry.depth() > 0 && is_marker(entry.file_name().as_encoded_bytes());
    entry.path().parent().filter(|_| is_log).and_then(TableFolder::at)
}

/// Why files below a folder are not read, one message for each: those of tables, and those that are
/// compressed in too large a window.
pub(crate) fn refused_below(input: &Input) -> Vec<String> {
    let InputPlace::Folder(root) = &input.place else { return Vec::new() };
    let mut problems = Vec::new();
    let mut windows = Vec::new();
    let is_wanted = |entry: &DirEntry| {
        let table = table_of(entry);
        let is_table = table.is_some();
        problems.extend(table.map(|table| table.refusal()));
        !is_table && !is_hidden(entry)
    };
    for entry in WalkDir::new(root).follow_links(true).into_iter().filter_entry(is_wanted).flatten() {
        let bytes = entry.file_name().as_encoded_bytes();
        let ends = |ending: &[u8]| {
            bytes.len() > ending.len() && bytes[bytes.len() - ending.len()..].eq_ignore_ascii_case(ending)
        };
        if (ends(b".zst") || ends(b".zstd")) && entry.file_type().is_file() {
            let name = entry.path().to_string_lossy();
            let why = refused_window_of(entry.path(), &name, input.layout.format);
            windows.extend(why.map(|why| format!("cannot read \"{name}\": {why}")));
        }
    }
    problems.extend(windows);
    problems
}

fn refused_window_of(path: &Path, name: &str, format: Option<FileFormat>) -> Option<String> {
    // Skippable frames before the first one are short.
    let mut head = Vec::with_capacity(4096);
    File::open(path).and_then(|file| file.take(4096).read_to_end(&mut head)).ok()?;
    refused_window(&head, name, format.or_else(|| FileFormat::of_name(name)).unwrap_or_else(FileFormat::text))
}

/// Whether a file of a folder has records and is not one document.
pub(crate) fn holds_records(path: &Path, layout: &InputLayout) -> bool {
    match layout.format {
        None => path.file_name().is_some_and(|name| {
            let name = name.to_string_lossy();
            match FileFormat::of_name(&name) {
                Some(format) => !format.is_document(),
                None => begins_with_records(path, &name),
            }
        }),
        Some(format) => !format.is_document(),
    }
}

/// Bytes that are looked at of a file whose name says nothing: the first names in a zip archive are among
/// them.
const HEAD_BYTES: usize = 4096;

/// Whether a file whose name says nothing begins as a container of records does. Items of Scrapy (`.jl`)
/// begin with `{`, compressed or not, which programs in Julia do not; so do parts that Spark and Hadoop
/// write.
fn begins_with_records(path: &Path, name: &str) -> bool {
    let is_list = is_item_list(name);
    let head = || -> io::Result<Vec<u8>> {
        let stored = File::open(path)?;
        let mut head = Vec::with_capacity(HEAD_BYTES);
        if is_list {
            decompressed(stored)?.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        } else {
            stored.take(HEAD_BYTES as u64).read_to_end(&mut head)?;
        }
        Ok(head)
    };
    head().is_ok_and(|head| FileFormat::of_container(&head).is_some() || is_list && head.starts_with(b"{"))
}

/// Whether a name is that of Scrapy's items, or of a program in Julia; or of a part, as in `part-00007` and
/// `part-00000-4f2a-c000`.
fn is_item_list(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    let name = [".gz", ".zst", ".zstd"].iter().find_map(|end| name.strip_suffix(end)).unwrap_or(&name);
    let part = name.strip_prefix("part-").and_then(|rest| rest.get(..5));
    name.ends_with(".jl") || part.is_some_and(|digits| digits.bytes().all(|byte| byte.is_ascii_digit()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_in_the_order_in_which_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        // By path "a.csv" is before "a/b.tsv"; by name the folder "a" would be before the file.
        for name in ["a/b.tsv", "a.csv", "a.html", ".a.txt"] {
            std::fs::write(folder.path().join(name), "id\n").unwrap();
        }
        let place = InputPlace::Folder(folder.path().to_owned());
        let kinds = folder_kinds(&Input { place, layout: Arc::default(), part: None });
        let formats: Vec<_> = kinds.iter().map(|kind| kind.format.name()).collect();
        assert_eq!(formats, ["csv", "html", "tsv"]);
    }

    #[test]
    fn files_of_records_are_distinguished_from_documents() {
        for (name, holds) in [
            ("a.jsonl", true),
            ("a.json", true),
            ("a.json.gz", true),
            ("a.csv", true),
            ("a.TSV", true),
            ("a.csv.zst", true),
            ("a.warc", true),
            ("a.md", false),
            ("a", false),
        ] {
            assert_eq!(holds_records(Path::new(name), &InputLayout::default()), holds, "{name}");
        }
    }
}
