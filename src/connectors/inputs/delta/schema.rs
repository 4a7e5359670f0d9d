//! The columns of a table, and what they are called in its files.

use std::collections::BTreeMap;

use serde::Deserialize;

use super::actions::AboutTable;

/// Dotted paths of columns, and of the fields of structs, to their paths in files. The elements of a list
/// have the path of the list.
pub(super) type TableColumns = BTreeMap<String, String>;

#[derive(Deserialize)]
struct StructType {
    fields: Vec<StructField>,
}

#[derive(Deserialize)]
struct StructField {
    name: String,
    #[serde(rename = "type")]
    kind: FieldType,
    #[serde(default)]
    metadata: FieldMetadata,
}

#[derive(Default, Deserialize)]
struct FieldMetadata {
    #[serde(rename = "delta.columnMapping.physicalName")]
    physical_name: Option<String>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum FieldType {
    Struct(StructType),
    Array {
        #[serde(rename = "elementType")]
        element: Box<FieldType>,
    },
    /// A type without fields, or a map, in which no path leads.
    Other(serde::de::IgnoredAny),
}

/// The columns of a table.
pub(super) fn columns(about: &AboutTable) -> Result<TableColumns, String> {
    let schema: StructType = serde_json::from_str(&about.schema_string)
        .map_err(|error| format!("its schema cannot be read: {error}"))?;
    let mode = about.configuration.get("delta.columnMapping.mode").cloned().flatten();
    let is_mapped = match mode.as_deref() {
        None | Some("none") => false,
        Some("name") => true,
        Some(other) => {
            return Err(format!(
                "its columns are mapped by {other:?} (delta.columnMapping.mode), which is not read"
            ));
        }
    };
    let mut columns = TableColumns::new();
    add(&schema, None, is_mapped, &mut columns);
    Ok(columns)
}

fn add(of: &StructType, above: Option<(&str, &str)>, is_mapped: bool, columns: &mut TableColumns) {
    for StructField { name, kind, metadata } in &of.fields {
        let physical = metadata.physical_name.as_ref().filter(|_| is_mapped).unwrap_or(name);
        let (path, in_file) = match above {
            None => (name.clone(), physical.clone()),
            Some((above, above_in_file)) => {
                (format!("{above}.{name}"), format!("{above_in_file}.{physical}"))
            }
        };
        let mut kind = kind;
        while let FieldType::Array { element } = kind {
            kind = element;
        }
        if let FieldType::Struct(fields) = kind {
            add(fields, Some((&path, &in_file)), is_mapped, columns);
        }
        columns.insert(path, in_file);
    }
}
