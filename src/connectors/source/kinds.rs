//! Which kinds of files a folder holds: for a look at it before it is read.

use std::sync::Arc;

use super::input::InputPlace;
use super::layout::by_name;
use super::reading::{holds_records, in_order, is_hidden};
use super::{FileFormat, Input, Layout};

/// Files of a folder that are read alike.
#[derive(Clone, Debug)]
pub struct FolderKind {
    /// In which format.
    pub format: FileFormat,
    /// How many there are.
    pub files: u64,
    /// The first of them, as an input of its own.
    pub first: Input,
}

impl FolderKind {
    /// Whether each of them is a document, whose id is its path below the folder.
    pub fn is_document(&self) -> bool {
        matches!(self.format, FileFormat::Text | FileFormat::Html)
    }
}

/// The kinds of files of a folder, in the order in which the first of each is read. What cannot be looked
/// at is left out.
pub fn folder_kinds(folder: &Input) -> Vec<FolderKind> {
    let InputPlace::Folder(root) = &folder.place else { return Vec::new() };
    let mut kinds: Vec<FolderKind> = Vec::new();
    let files = in_order(root).into_iter().filter_entry(|entry| !is_hidden(entry));
    for entry in files.flatten().filter(|entry| entry.file_type().is_file()) {
        let path = entry.into_path();
        let named = by_name(&path.to_string_lossy());
        let format = match folder.layout.format.or(named) {
            Some(format) if holds_records(&path, &folder.layout) => format,
            Some(FileFormat::Html) => FileFormat::Html,
            _ => FileFormat::Text,
        };
        match kinds.iter_mut().find(|kind| kind.format == format) {
            Some(kind) => kind.files += 1,
            None => {
                let layout = Arc::new(Layout { format: Some(format), ..(*folder.layout).clone() });
                kinds.push(FolderKind {
                    format,
                    files: 1,
                    first: Input { place: InputPlace::File(path), layout },
                });
            }
        }
    }
    kinds
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_are_in_the_order_in_which_files_are_read() {
        let folder = tempfile::tempdir().unwrap();
        std::fs::create_dir(folder.path().join("a")).unwrap();
        // By its path "a.csv" stands before "a/b.tsv", by its name the folder before the file.
        for name in ["a/b.tsv", "a.csv", "a.html", ".a.txt"] {
            std::fs::write(folder.path().join(name), "id\n").unwrap();
        }
        let place = InputPlace::Folder(folder.path().to_owned());
        let kinds = folder_kinds(&Input { place, layout: Arc::default() });
        let formats: Vec<_> = kinds.iter().map(|kind| kind.format).collect();
        assert_eq!(formats, [FileFormat::Csv, FileFormat::Html, FileFormat::Tsv]);
    }
}
