//! Folders that are tables of Delta Lake, Iceberg, Hudi or Lance.
//!
//! Such a folder holds files of rows that were deleted or replaced beside those of the present rows, and only
//! the table's log says which. So it is never read as loose files: not when it is named, and not when it is
//! above or below what is named. A table of Delta Lake on a disk that is named is read by its log (`delta`).
//!
//! | table | its folder holds |
//! |---|---|
//! | Delta Lake | `_delta_log/` |
//! | Hudi | `.hoodie/` |
//! | Lance | `_versions/*.manifest` |
//! | Iceberg | `metadata/v3.metadata.json`, or `00003-….metadata.json` |

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

/// A table that a folder is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct TableFolder {
    kind: TableKind,
    /// The folder as commands name it.
    folder: String,
    /// The newest file of metadata, below the folder, if it is a table of Iceberg.
    metadata: String,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum TableKind {
    Delta,
    Hudi,
    Lance,
    Iceberg,
}

/// The folders in a table by which it is known.
const MARKERS: [(&str, TableKind); 4] = [
    ("_delta_log", TableKind::Delta),
    (".hoodie", TableKind::Hudi),
    ("_versions", TableKind::Lance),
    ("metadata", TableKind::Iceberg),
];

impl TableKind {
    fn name(self) -> &'static str {
        match self {
            Self::Delta => "Delta Lake",
            Self::Hudi => "Hudi",
            Self::Lance => "Lance",
            Self::Iceberg => "Iceberg",
        }
    }

    /// Whether a file of this name, in the marker's folder, is one that the table has.
    fn has(self, name: &str) -> bool {
        match self {
            Self::Delta | Self::Hudi => true,
            Self::Lance => name.ends_with(".manifest"),
            Self::Iceberg => version(name).is_some(),
        }
    }
}

/// The number of a version of a table of Iceberg, by the name of its metadata.
fn version(name: &str) -> Option<u64> {
    let stem = [".gz.metadata.json", ".metadata.json", ".metadata.json.gz"];
    let stem = stem.iter().find_map(|end| name.strip_suffix(end))?;
    match stem.strip_prefix('v') {
        Some(digits) => digits.parse().ok(),
        // Five digits and a random name: a date is none.
        None => stem.split_once('-').filter(|(digits, _)| digits.len() >= 5)?.0.parse().ok(),
    }
}

/// Whether a folder of this name may make the folder above it a table.
pub(crate) fn is_marker(name: &[u8]) -> bool {
    MARKERS.iter().any(|(marker, _)| marker.as_bytes() == name)
}

impl TableFolder {
    /// The table that a folder on a disk is.
    pub(crate) fn at(folder: &Path) -> Option<Self> {
        MARKERS.into_iter().find_map(|(marker, kind)| {
            let place = folder.join(marker);
            let is_whole = matches!(kind, TableKind::Delta | TableKind::Hudi);
            if is_whole {
                return place.is_dir().then(|| Self::new(kind, folder.display().to_string(), Vec::new()));
            }
            let names =
                place.read_dir().ok()?.flatten().filter_map(|entry| entry.file_name().into_string().ok());
            let names: Vec<_> = names.filter(|name| kind.has(name)).collect();
            (!names.is_empty()).then(|| Self::new(kind, folder.display().to_string(), names))
        })
    }

    /// The table among the keys of a store that makes `key` one of its files: the key up to the table, and
    /// which table it is.
    #[cfg(feature = "object-store")]
    pub(crate) fn in_keys<'k>(keys: impl Iterator<Item = &'k str> + Clone) -> Option<(&'k str, Self)> {
        let found = |key: &'k str| {
            let mut at = 0;
            for part in key.split('/') {
                let marker = MARKERS.iter().find(|(marker, _)| *marker == part);
                let file = key.get(at + part.len() + 1..);
                if let (Some((_, kind)), Some(file)) = (marker, file)
                    && kind.has(file)
                {
                    return Some((&key[..at.saturating_sub(1)], *kind));
                }
                at += part.len() + 1;
            }
            None
        };
        let (above, kind) = keys.clone().find_map(found)?;
        let names = keys.filter(|key| found(key) == Some((above, kind)));
        let names = names.filter_map(|key| Some(key.rsplit_once('/')?.1.to_owned())).collect();
        Some((above, Self::new(kind, above.to_owned(), names)))
    }

    /// A table of Delta Lake.
    pub(super) fn of_delta(folder: &str) -> Self {
        Self::new(TableKind::Delta, folder.to_owned(), Vec::new())
    }

    fn new(kind: TableKind, folder: String, mut names: Vec<String>) -> Self {
        names.sort_by_key(|name| version(name));
        Self { kind, folder, metadata: names.pop().unwrap_or_default() }
    }

    /// The names of folders that may be a table's log.
    #[cfg(feature = "object-store")]
    pub(crate) fn markers() -> impl Iterator<Item = &'static str> {
        MARKERS.into_iter().map(|(marker, _)| marker)
    }

    /// The folder of the table.
    #[cfg(feature = "object-store")]
    pub(crate) fn folder(&self) -> &str {
        &self.folder
    }

    /// The same table where its folder has this address.
    #[cfg(feature = "object-store")]
    pub(crate) fn named(self, folder: String) -> Self {
        Self { folder, ..self }
    }

    /// Why it is not read, and what to name, or the command that writes its rows as Parquet.
    pub(crate) fn refusal(&self) -> String {
        let Self { kind, folder, .. } = self;
        if *kind == TableKind::Delta && cfg!(feature = "parquet") && !folder.contains("://") {
            return format!(
                "cannot read \"{folder}\": it is a table of Delta Lake, whose files also \
                 hold rows that were deleted or replaced: name the table itself: {}",
                crate::formats::quoted(folder)
            );
        }
        format!(
            "cannot read \"{folder}\": it is a table of {}, whose files also hold rows that were deleted or \
             replaced: write its present rows as Parquet, and name that: {}",
            kind.name(),
            self.command("")
        )
    }

    /// The command that writes its rows as Parquet; `more` are further arguments of the call that opens a
    /// table of Delta Lake.
    pub(super) fn command(&self, more: &str) -> String {
        let Self { kind, folder, metadata } = self;
        let (modules, rows) = match kind {
            // Its `to_pyarrow_table` has no values of mapped columns.
            TableKind::Delta => (
                "deltalake as t,pyarrow as a",
                concat!(
                    "a.table(t.QueryBuilder().register(\"t\",t.DeltaTable(sys.argv[1]MORE))",
                    ".execute(\"select * from t\").read_all())"
                ),
            ),
            TableKind::Hudi => {
                ("pyarrow as a,hudi as t", "a.Table.from_batches(t.HudiTable(sys.argv[1]).read_snapshot())")
            }
            TableKind::Lance => ("lance as t", "t.dataset(sys.argv[1]).to_table()"),
            TableKind::Iceberg => {
                ("pyiceberg.table as t", "t.StaticTable.from_metadata(sys.argv[1]).scan().to_arrow()")
            }
        };
        let argument = if *kind == TableKind::Iceberg {
            format!("{folder}/metadata/{metadata}")
        } else {
            folder.clone()
        };
        format!(
            "python3 -c 'import sys,{modules},pyarrow.parquet as p;p.write_table({},sys.argv[2])' {} \
             table.parquet",
            rows.replace("MORE", more),
            crate::formats::quoted(&argument)
        )
    }
}

/// Finds the tables that paths are in. Each folder is looked at once.
#[derive(Debug, Default)]
pub(crate) struct TablesAbove(BTreeMap<PathBuf, Option<TableFolder>>);

impl TablesAbove {
    /// The table that has this file or folder, or the one that it is a link to.
    pub(crate) fn containing(&mut self, path: &Path) -> Option<TableFolder> {
        self.above(path).or_else(|| self.above(&path.canonicalize().ok()?))
    }

    fn above(&mut self, path: &Path) -> Option<TableFolder> {
        let absolute = std::path::absolute(path).ok()?;
        let mut folder = if path.is_dir() { Some(&*absolute) } else { absolute.parent() };
        // The name as it was typed, as far as it reaches.
        let mut typed = if path.is_dir() { Some(path) } else { path.parent() };
        while let Some(here) = folder {
            let table = match self.0.get(here) {
                Some(known) => known.clone(),
                None => {
                    let named = typed.filter(|typed| !typed.as_os_str().is_empty()).unwrap_or(here);
                    let found = TableFolder::at(here)
                        .map(|table| TableFolder { folder: named.display().to_string(), ..table });
                    self.0.insert(here.to_owned(), found.clone());
                    found
                }
            };
            if table.is_some() {
                return table;
            }
            folder = here.parent();
            typed = typed.and_then(Path::parent);
        }
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_known_by_their_logs() {
        let folder = tempfile::tempdir().unwrap();
        let file = |name: &str| {
            let path = folder.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(path, "").unwrap();
        };
        for (marker, kind) in [
            ("delta/_delta_log/0.json", Some(TableKind::Delta)),
            ("hudi/.hoodie/hoodie.properties", Some(TableKind::Hudi)),
            ("lance/_versions/1.manifest", Some(TableKind::Lance)),
            ("berg/metadata/v2.metadata.json", Some(TableKind::Iceberg)),
            ("gz/metadata/00001-ab.gz.metadata.json", Some(TableKind::Iceberg)),
            ("hadoop/metadata/v3.gz.metadata.json", Some(TableKind::Iceberg)),
            ("pages/metadata/notes.json", None),
            ("web/metadata/2024-01-01.metadata.json", None),
            ("texts/_versions/a.txt", None),
        ] {
            file(marker);
            let name = marker.split('/').next().unwrap();
            let found = TableFolder::at(&folder.path().join(name));
            assert_eq!(found.map(|table| table.kind), kind, "{marker}");
            let inside = folder.path().join(name).join("lang=en/deep/part.parquet");
            let above = TablesAbove::default().containing(&inside);
            assert_eq!(above.map(|table| table.kind), kind, "{marker}");
        }
        #[cfg(unix)]
        {
            let (table, link) = (folder.path().join("delta/lang=en"), folder.path().join("link"));
            std::fs::create_dir_all(&table).unwrap();
            std::os::unix::fs::symlink(table, &link).unwrap();
            let found = TablesAbove::default().containing(&link).unwrap();
            assert_eq!(found.kind, TableKind::Delta, "a link into a table");
        }
        file("berg/metadata/v10.metadata.json");
        let refusal = TableFolder::at(&folder.path().join("berg")).unwrap().refusal();
        assert!(refusal.contains("metadata/v10.metadata.json table.parquet"), "{refusal}");
    }

    #[cfg(feature = "object-store")]
    #[test]
    fn tables_are_found_among_keys() {
        let of = |keys: &[&'static str]| {
            TableFolder::in_keys(keys.iter().copied()).map(|(above, table)| (above, table.kind))
        };
        assert_eq!(of(&["t/a.parquet", "t/_delta_log/0.json"]), Some(("t", TableKind::Delta)));
        assert_eq!(of(&["_delta_log/0.json"]), Some(("", TableKind::Delta)));
        assert_eq!(of(&["x/t/metadata/v1.metadata.json"]), Some(("x/t", TableKind::Iceberg)));
        assert_eq!(of(&["x/metadata/a.json", "_delta_log", "x/_versions/2"]), None);
    }
}
