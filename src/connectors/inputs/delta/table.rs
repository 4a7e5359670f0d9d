//! The files of a table's rows, and what the log says of each.

use std::path::Path;
use std::sync::Arc;

use super::super::input::{Input, InputPlace};
use super::super::named_table::{LOG, TableAt};
use super::actions::DeletionVector;
use super::log::TableVersion;
use super::paths::path_of;
use super::{deleted, log, schema};
use crate::formats::{FileFormat, IdRule, InputLayout, TablePart};
use dupflow_core::hash;

/// The newest version of the protocol that is read.
const READER: u32 = 3;

/// What a table may need of its readers.
const FEATURES: [&str; 5] =
    ["columnMapping", "deletionVectors", "timestampNtz", "v2Checkpoint", "vacuumProtocolCheck"];

/// The files of a version of a table, in the order of their paths.
///
/// # Errors
/// Why it is not read, in one line.
pub(in crate::inputs) fn files(
    folder: &Path,
    at: TableAt,
    layout: &InputLayout,
) -> Result<Vec<Input>, String> {
    let table = log::read(&folder.join(LOG), at)?;
    check_protocol(&table)?;
    let columns = Arc::new(schema::columns(&table.about)?);
    check_columns(&table, &columns, layout)?;
    let format = FileFormat::of_name("x.parquet");
    if layout.format.is_some() && layout.format != format {
        return Err("its files are Parquet: leave the format out".to_owned());
    }
    // Files are written anew when a table is compacted: their names and the numbers of rows are no ids.
    let layout = Arc::new(InputLayout { format, needs_ids: true, ..layout.clone() });
    let mut inputs = Vec::new();
    for file in table.files.values() {
        let path = path_of(folder, &file.path)?;
        if !path.is_file() {
            return Err(format!(
                "version {} has the file \"{}\", which is missing: VACUUM removes what older versions have, \
                 and a copy may lack it: name a newer version, or copy the table again",
                table.version,
                path.display()
            ));
        }
        let given = table.about.partition_columns.iter().map(|name| {
            let value = file.partition_values.get(columns.get(name).unwrap_or(name)).cloned();
            (name.clone(), value.flatten())
        });
        let deleted = file.deletion_vector.as_ref();
        let part = TablePart {
            folder: folder.to_owned(),
            version: table.version,
            columns: Arc::clone(&columns),
            given: given.collect(),
            deleted: deleted.map(|rows| deleted::read(folder, rows)).transpose()?.unwrap_or_default(),
            tag: String::new(),
        };
        let said = (&part.columns, &part.given, deleted.map(DeletionVector::id));
        let said = serde_json::to_vec(&said).expect("texts are always JSON");
        let part = TablePart { tag: format!("{:016x}", hash::bytes(0, &said)), ..part };
        let layout = Arc::clone(&layout);
        inputs.push(Input { place: InputPlace::File(path), layout, part: Some(Arc::new(part)) });
    }
    inputs.sort_by(|a, b| a.path().cmp(&b.path()));
    Ok(inputs)
}

/// Checks that the table needs nothing that is not known.
fn check_protocol(table: &TableVersion) -> Result<(), String> {
    let protocol = table.protocol.as_ref().ok_or("its log does not say what its readers have to know")?;
    if protocol.min_reader_version > READER {
        return Err(format!(
            "its protocol needs readers of version {}, and this is one of version {READER}",
            protocol.min_reader_version
        ));
    }
    let unknown = |feature: &&String| !FEATURES.contains(&feature.as_str());
    let unknown: Vec<_> = protocol.reader_features.iter().flatten().filter(unknown).cloned().collect();
    if !unknown.is_empty() {
        return Err(format!("it has features of tables that are not read: {}", unknown.join(", ")));
    }
    Ok(())
}

/// Checks that the table has the columns that are read, in its files.
fn check_columns(
    table: &TableVersion,
    columns: &schema::TableColumns,
    layout: &InputLayout,
) -> Result<(), String> {
    let usual = InputLayout::default();
    let op = layout.operation();
    // Each with its option, and whether it may be absent.
    let read = [
        ("text", &*layout.text, false),
        ("id", &layout.id, layout.ids == IdRule::File),
        ("ts", &layout.ts, layout.ts == usual.ts),
        ("op", op, op.is_empty() || op == usual.op),
    ];
    for (option, name, may_be_absent) in read {
        if !columns.contains_key(name) && !may_be_absent {
            let among = columns.keys().map(|known| format!("{known:?}")).collect::<Vec<_>>().join(", ");
            let or = if option == "id" { ", or number rows by their files (--ids file)" } else { "" };
            return Err(format!(
                "no column {name:?} among {among}: name the right one (--{option}-field){or}"
            ));
        }
        let is_given = table.about.partition_columns.iter().any(|column| column == name);
        if is_given && (option != "id" || layout.ids != IdRule::File) {
            return Err(format!(
                "{name:?} is a partition column, which is read as a field of documents only (--field): name \
                 another one (--{option}-field)"
            ));
        }
    }
    Ok(())
}
