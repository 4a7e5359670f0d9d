//! Where copied records are written.

use std::ffi::OsString;
use std::io;
use std::num::NonZeroU64;
use std::path::{Component, Path, PathBuf};

use super::progress::CopyResume;
use crate::formats::Compression;
use crate::inputs::Input;

/// How the records of documents are copied.
#[derive(Clone, Debug)]
pub struct CopySettings {
    /// Where a copy that is not complete is gone on with; `None`: it begins anew.
    pub resume: Option<CopyResume>,
    /// The name of a mark: the records of all documents are copied, with its columns.
    pub mark: Option<String>,
    /// Whether repeated units are what is found: they are cut out of the texts, or marked.
    pub of_units: bool,
    /// Where they are written.
    pub target: CopyTarget,
}

impl CopySettings {
    /// Whether repeated units are cut out of the texts of records.
    pub(super) fn cuts(&self) -> bool {
        self.of_units && self.mark.is_none()
    }
}

/// Where copied records are written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CopyTarget {
    /// To standard output, or to a pipe or a device at this path, as they are read.
    Stream(Option<PathBuf>),
    /// To one file, which appears when it is complete.
    File(PathBuf),
    /// To a file for each input, in a folder, which appears when it is complete.
    Folder(PathBuf),
    /// To files `NAME-00000.EXTENSION`, … in the folder of this path. A file ends after the record with which
    /// its records have this number of bytes, before compression; a Parquet file after the row group with
    /// which the file has them, as it is stored.
    Shards(PathBuf, NonZeroU64),
}

impl CopyTarget {
    /// The target that `--output` and `--shard-size` name; no path is standard output.
    ///
    /// # Errors
    /// Why they exclude each other.
    pub fn new(path: Option<&Path>, shard_bytes: Option<NonZeroU64>) -> Result<Self, &'static str> {
        let Some(path) = path else {
            return if shard_bytes.is_some() {
                Err("standard output is not several files")
            } else {
                Ok(Self::Stream(None))
            };
        };
        let is_folder = path.is_dir() || path.as_os_str().as_encoded_bytes().ends_with(b"/");
        let is_stream = path.metadata().is_ok_and(|found| !found.is_file() && !found.is_dir());
        match shard_bytes {
            Some(_) if is_folder => Err("name the files in the folder, as in out/part.jsonl.zst"),
            Some(_) if is_stream => Err("a pipe or a device is not several files"),
            Some(_) if parent(path) == Path::new(".") => {
                Err("name the files in a folder, as in out/part.jsonl.zst")
            }
            Some(bytes) => Ok(Self::Shards(path.to_owned(), bytes)),
            None if is_folder => Ok(Self::Folder(path.to_owned())),
            None if is_stream => Ok(Self::Stream(Some(path.to_owned()))),
            None => Ok(Self::File(path.to_owned())),
        }
    }

    /// The folder that appears as a whole, if there is one.
    pub fn folder(&self) -> Option<&Path> {
        match self {
            Self::Folder(path) => Some(path),
            Self::Shards(path, _) => {
                Some(path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")))
            }
            Self::Stream(_) | Self::File(_) => None,
        }
    }
}

/// The name of a shard: its number before the extensions.
pub(super) fn shard_name(path: &Path, number: usize) -> OsString {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let (stem, extensions) =
        name.split_once('.').map_or((&*name, String::new()), |(stem, rest)| (stem, format!(".{rest}")));
    format!("{stem}-{number:05}{extensions}").into()
}

/// The compression that a file's name says.
pub(super) fn compression(path: &Path) -> Compression {
    match path.extension().map(|ending| ending.to_ascii_lowercase()) {
        Some(ending) if ending == "gz" => Compression::Gzip,
        Some(ending) if ending == "zst" || ending == "zstd" => Compression::Zstd,
        _ => Compression::None,
    }
}

/// The files of inputs, below the folder that they have in common.
#[derive(Clone, Debug)]
pub(super) struct CommonFolder {
    folder: PathBuf,
    /// The inputs that are folders, as they are named and without links.
    roots: Vec<(PathBuf, PathBuf)>,
}

impl CommonFolder {
    /// The lowest folder that has all inputs: of folders, they themselves.
    pub(super) fn among(inputs: &[Input]) -> io::Result<Self> {
        let mut common: Option<Vec<OsString>> = None;
        let mut roots = Vec::new();
        for path in inputs.iter().filter_map(Input::path) {
            let folder = if path.is_dir() { path.to_owned() } else { parent(path) };
            let place = folder.canonicalize()?;
            if path.is_dir() {
                roots.push((folder, place.clone()));
            }
            let parts = place.components().map(|part| part.as_os_str().to_owned());
            common = Some(match common {
                None => parts.collect(),
                Some(before) => {
                    before.into_iter().zip(parts).take_while(|(a, b)| a == b).map(|(a, _)| a).collect()
                }
            });
        }
        Ok(Self { folder: common.unwrap_or_default().into_iter().collect(), roots })
    }

    /// The path of a file below the folder. Links below an input are not resolved.
    pub(super) fn below(&self, file: &Path) -> io::Result<PathBuf> {
        let mut of_roots =
            self.roots.iter().filter_map(|(root, place)| Some(place.join(file.strip_prefix(root).ok()?)));
        let path = match of_roots.next() {
            Some(path) => path,
            None => parent(file).canonicalize()?.join(file.file_name().unwrap_or_default()),
        };
        let below = path.strip_prefix(&self.folder).map_err(|_| io::ErrorKind::NotFound)?;
        let is_below = below.components().all(|part| matches!(part, Component::Normal(_)));
        if is_below { Ok(below.to_owned()) } else { Err(io::ErrorKind::InvalidFilename.into()) }
    }
}

pub(super) fn parent(path: &Path) -> PathBuf {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new(".")).to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn targets_are_known_by_their_paths() {
        let folder = tempfile::tempdir().unwrap();
        let here = folder.path().join("here");
        std::fs::create_dir(&here).unwrap();
        let of = |path: &Path, bytes| CopyTarget::new(Some(path), NonZeroU64::new(bytes));
        let new = folder.path().join("new/");
        assert_eq!(of(&here, 0), Ok(CopyTarget::Folder(here.clone())));
        assert_eq!(of(&new, 0), Ok(CopyTarget::Folder(new.clone())));
        let file = folder.path().join("a.jsonl");
        assert_eq!(of(&file, 0), Ok(CopyTarget::File(file.clone())));
        assert_eq!(of(&file, 7), Ok(CopyTarget::Shards(file.clone(), NonZeroU64::new(7).unwrap())));
        assert_eq!(of(Path::new("/dev/null"), 0), Ok(CopyTarget::Stream(Some("/dev/null".into()))));
        assert!(of(&new, 7).is_err() && CopyTarget::new(None, NonZeroU64::new(7)).is_err());
        assert_eq!(of(&file, 7).unwrap().folder(), Some(folder.path()));
    }

    #[test]
    fn names_have_numbers_and_compressions() {
        for (path, name, compressed) in [
            ("x/part.jsonl.zst", "part-00012.jsonl.zst", Compression::Zstd),
            ("a.GZ", "a-00012.GZ", Compression::Gzip),
            ("a", "a-00012", Compression::None),
        ] {
            assert_eq!(
                (shard_name(Path::new(path), 12), compression(Path::new(path))),
                (name.into(), compressed)
            );
        }
    }

    #[test]
    fn files_are_below_the_folder_that_inputs_have_in_common() {
        let folder = tempfile::tempdir().unwrap();
        let root = folder.path();
        for name in ["en/a.jsonl", "de/x/a.jsonl"] {
            std::fs::create_dir_all(root.join(name).parent().unwrap()).unwrap();
            std::fs::write(root.join(name), "").unwrap();
        }
        let below = |inputs: &[&str], file: &str| {
            let inputs: Vec<_> = inputs.iter().map(|name| Input::at(&root.join(name))).collect();
            CommonFolder::among(&inputs).unwrap().below(&root.join(file)).unwrap()
        };
        assert_eq!(below(&["en"], "en/a.jsonl"), Path::new("a.jsonl"));
        assert_eq!(below(&["en/a.jsonl"], "en/a.jsonl"), Path::new("a.jsonl"));
        assert_eq!(below(&["en", "de/x/a.jsonl"], "de/x/a.jsonl"), Path::new("de/x/a.jsonl"));
        assert_eq!(below(&["de/../de"], "de/x/a.jsonl"), Path::new("x/a.jsonl"));
        #[cfg(unix)]
        {
            std::os::unix::fs::symlink("../en", root.join("de/more")).unwrap();
            assert_eq!(below(&["de"], "de/more/a.jsonl"), Path::new("more/a.jsonl"));
            assert_eq!(below(&["de/more"], "de/more/a.jsonl"), Path::new("a.jsonl"));
            assert_eq!(below(&["de/more", "de/x/a.jsonl"], "de/more/a.jsonl"), Path::new("en/a.jsonl"));
        }
    }
}
