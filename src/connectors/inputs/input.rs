//! One input of a replay: where it is, how its records are read, and decompression.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::named_table::NamedTable;
#[cfg(feature = "object-store")]
use super::remote::StoredObject;
use crate::formats::{FileFormat, InputLayout, TablePart};
use dupflow_run::missing_feature;

/// One input, and how its records are to be read.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Input {
    pub(crate) place: InputPlace,
    pub(crate) layout: Arc<InputLayout>,
    /// What a table says of the file, if it is one of a table.
    pub(crate) part: Option<Arc<TablePart>>,
}

/// Why this build cannot read an input of this name: the feature that it lacks.
pub fn unreadable(name: &Path) -> Option<String> {
    let name = name.to_string_lossy();
    let is_remote = name.contains("://");
    if is_remote && cfg!(not(feature = "object-store")) {
        return Some(format!("{name}: {}", missing_feature("object stores", "object-store")));
    }
    FileFormat::of_name(&name).and_then(FileFormat::missing).map(|missing| format!("{name}: {missing}"))
}

/// Where an input is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum InputPlace {
    /// Standard input.
    Stdin,
    /// A file, or a pipe.
    File(PathBuf),
    /// A folder.
    Folder(PathBuf),
    /// The bytes of a file, and its name.
    Memory(Arc<str>, Arc<[u8]>),
    /// An object in an object store, or a file behind an address.
    #[cfg(feature = "object-store")]
    Object(Arc<StoredObject>),
}

impl Input {
    /// A file of records or a folder; a file whose name suggests a document is read as JSON Lines.
    pub fn of_records(path: &Path) -> Self {
        let is_document = FileFormat::of_name(&path.to_string_lossy()).is_some_and(FileFormat::is_document);
        let format = Some(FileFormat::usual()).filter(|_| is_document && !path.is_dir());
        Self { layout: Arc::new(InputLayout { format, ..InputLayout::default() }), ..Self::at(path) }
    }

    /// The bytes of a file with this name.
    pub fn of_bytes(name: &str, bytes: impl Into<Arc<[u8]>>, layout: InputLayout) -> Self {
        let place = InputPlace::Memory(name.into(), bytes.into());
        Self { place, layout: Arc::new(layout), part: None }
    }

    /// A file or a folder, in the format that its name and first bytes suggest.
    pub fn at(path: &Path) -> Self {
        let place = if let Some(Ok(table)) = NamedTable::from_argument(path) {
            InputPlace::Folder(table.folder)
        } else if path.is_dir() {
            InputPlace::Folder(path.to_owned())
        } else {
            InputPlace::File(path.to_owned())
        };
        Self { place, layout: Arc::default(), part: None }
    }

    /// A file that is read in this way, whether it is there or not.
    pub fn file(path: &Path, layout: InputLayout) -> Self {
        Self { place: InputPlace::File(path.to_owned()), layout: Arc::new(layout), part: None }
    }

    /// How its records are read.
    pub fn layout(&self) -> &InputLayout {
        &self.layout
    }

    /// Whether it is standard input.
    pub fn is_stdin(&self) -> bool {
        self.place == InputPlace::Stdin
    }

    /// Whether it is a folder.
    pub fn is_folder(&self) -> bool {
        matches!(self.place, InputPlace::Folder(_))
    }

    /// The path, if the input is a local file or folder.
    pub fn path(&self) -> Option<&Path> {
        match &self.place {
            InputPlace::File(path) | InputPlace::Folder(path) => Some(path),
            InputPlace::Stdin | InputPlace::Memory(..) => None,
            #[cfg(feature = "object-store")]
            InputPlace::Object(_) => None,
        }
    }

    /// Its name in messages, which is also the prefix of the ids of records that have none.
    pub fn name(&self) -> Arc<str> {
        match &self.place {
            InputPlace::Stdin => "-".into(),
            InputPlace::Memory(name, _) => Arc::clone(name),
            InputPlace::File(path) | InputPlace::Folder(path) => name_of(path).into(),
            #[cfg(feature = "object-store")]
            InputPlace::Object(object) => object.name(),
        }
    }

    /// A hash of what a table says of the file, if it is one of a table.
    pub(crate) fn part_tag(&self) -> Option<&String> {
        self.part.as_ref().map(|part| &part.tag)
    }

    /// Its stored size in bytes, where it is known.
    pub fn bytes(&self) -> Option<u64> {
        match &self.place {
            InputPlace::File(path) => {
                path.metadata().ok().filter(|found| found.is_file()).map(|found| found.len())
            }
            InputPlace::Stdin | InputPlace::Folder(_) => None,
            InputPlace::Memory(_, bytes) => Some(bytes.len() as u64),
            #[cfg(feature = "object-store")]
            InputPlace::Object(object) => Some(object.bytes()),
        }
    }
}

/// A path as text: bytes that are not UTF-8 become `%FF`, so that different paths have different names.
fn name_of(path: &Path) -> String {
    let mut name = String::new();
    for chunk in path.as_os_str().as_encoded_bytes().utf8_chunks() {
        name.push_str(chunk.valid());
        name.extend(chunk.invalid().iter().map(|byte| format!("%{byte:02X}")));
    }
    name
}
