//! Resolves command-line arguments to inputs, in their order, or reports everything that is wrong with them.

use std::fs::File;
use std::io;
use std::path::Path;
use std::sync::Arc;

use super::folder::refused_below;
use super::globs;
use super::input::{Input, InputPlace};
use super::named_table::NamedTable;
use super::open::refused;
use super::table_folder::{TableFolder, TablesAbove};
use crate::formats::InputLayout;
use crate::intake::SourceError;
#[cfg(not(all(feature = "object-store", feature = "parquet")))]
use dupflow_run::missing_feature;

impl Input {
    /// The inputs that the arguments name. `-` is standard input; a pattern (`crawl/**/*.warc.gz`) stands for
    /// the files that it matches, in the order of the bytes of their paths.
    ///
    /// # Errors
    /// Every argument that cannot be read, all of them in one error.
    pub fn resolve<P: AsRef<Path>>(
        arguments: impl IntoIterator<Item = P>,
        layout: InputLayout,
    ) -> Result<Vec<Self>, SourceError> {
        let layout = Arc::new(layout);
        let mut inputs: Vec<Self> = Vec::new();
        let mut problems = Vec::new();
        let input = |place| Self { place, layout: Arc::clone(&layout), part: None };
        for argument in arguments {
            let path = argument.as_ref();
            if let Some(table) = NamedTable::from_argument(path) {
                match table.and_then(|table| files_of_table(&table, &layout)) {
                    Ok(files) => inputs.extend(files),
                    Err(problem) => problems.push(problem),
                }
                continue;
            }
            if let Some(address) = path.to_str().filter(|typed| typed.contains("://")) {
                match remote(address) {
                    Ok(places) => inputs.extend(places.into_iter().map(&input)),
                    Err(problem) => problems.push(problem),
                }
                continue;
            }
            match globs::expand(path) {
                Ok(Some(paths)) => inputs.extend(paths.into_iter().map(InputPlace::File).map(&input)),
                Ok(None) => match InputPlace::from_path(path) {
                    Ok(InputPlace::Stdin) if inputs.iter().any(Self::is_stdin) => {
                        problems.push("standard input \"-\" is named more than once".to_owned());
                    }
                    Ok(place) => inputs.push(input(place)),
                    Err(error) => problems.push(format!("cannot read \"{}\": {error}", path.display())),
                },
                Err(problem) => problems.push(problem),
            }
        }
        let mut above = TablesAbove::default();
        let mut tables: Vec<TableFolder> = Vec::new();
        inputs
            .iter()
            .filter(|one| one.part.is_none())
            .filter_map(|one| above.containing(one.path()?))
            .for_each(|table| {
                // Of many files of a table, one message.
                if !tables.contains(&table) {
                    tables.push(table);
                }
            });
        problems.extend(tables.iter().map(|table| table.refusal()));
        if !tables.is_empty() {
            return Err(SourceError::Inputs(problems));
        }
        let refused = |one: &Self| Some(format!("cannot read \"{}\": {}", one.name(), refused(one)?));
        problems.extend(inputs.iter().filter_map(refused));
        problems.extend(inputs.iter().flat_map(refused_below));
        if problems.is_empty() { Ok(inputs) } else { Err(SourceError::Inputs(problems)) }
    }
}

impl InputPlace {
    fn from_path(path: &Path) -> io::Result<Self> {
        if path == Path::new("-") {
            return Ok(Self::Stdin);
        }
        let kind = path.metadata()?.file_type();
        if kind.is_dir() {
            path.read_dir()?;
            return Ok(Self::Folder(path.to_owned()));
        }
        // A pipe is opened only once, when it is read: opening and closing it here would end its writer.
        if kind.is_file() {
            File::open(path)?;
        }
        Ok(Self::File(path.to_owned()))
    }
}

/// The inputs that an address names.
#[cfg(feature = "object-store")]
fn remote(address: &str) -> Result<Vec<InputPlace>, String> {
    Ok(super::remote::resolve(address)?.into_iter().map(InputPlace::Object).collect())
}

/// The inputs that an address names: none in this build.
#[cfg(not(feature = "object-store"))]
fn remote(address: &str) -> Result<Vec<InputPlace>, String> {
    Err(format!("cannot read \"{address}\": {}", missing_feature("object stores", "object-store")))
}

/// The files of a table's rows.
#[cfg(feature = "parquet")]
fn files_of_table(table: &NamedTable, layout: &InputLayout) -> Result<Vec<Input>, String> {
    super::delta::files(&table.folder, table.at, layout)
        .map_err(|why| format!("cannot read the table \"{}\": {why}", table.folder.display()))
}

/// The files of a table's rows: none in this build.
#[cfg(not(feature = "parquet"))]
fn files_of_table(table: &NamedTable, _: &InputLayout) -> Result<Vec<Input>, String> {
    let missing = missing_feature("tables of Delta Lake", "parquet");
    Err(format!("cannot read the table \"{}\": {missing}", table.folder.display()))
}
