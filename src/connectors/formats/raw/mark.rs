//! Which records of a file are copied, and the columns that mark them.
//!
//! A mark named NAME is three columns after those of the record:
//!
//! | column | JSON | CSV | Parquet |
//! |---|---|---|---|
//! | `NAME_cluster` | text, or null outside of clusters | text, or empty | optional string |
//! | `NAME_kept` | true or false | `true` or `false` | boolean |
//! | `NAME_of` | the document that is kept for it, or null | text, or empty | optional string |

use std::collections::BTreeMap;
use std::io;

use serde::de::IgnoredAny;
use serde_json::Value as Json;

use super::super::csv::Dialect;

/// The mark of a record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct RowMark<'a> {
    /// The name of the document's cluster; `None` if it is in no cluster.
    pub(crate) cluster: Option<&'a str>,
    /// Whether the document is kept.
    pub(crate) is_kept: bool,
    /// If it is removed, the document that is kept for it.
    pub(crate) of: Option<&'a str>,
}

/// Which records are copied. Records are numbered over all inputs.
pub(crate) trait RecordChoice {
    /// Whether a record is copied.
    fn is_chosen(&self, record: u64) -> bool;

    /// The mark of a record that is copied.
    fn mark(&self, record: u64) -> RowMark<'_>;
}

/// The columns of a mark.
pub(crate) fn mark_columns(name: &str) -> [String; 3] {
    ["cluster", "kept", "of"].map(|column| format!("{name}_{column}"))
}

/// Appends a mark to the line of an object, before its last brace.
///
/// # Errors
/// If the object has one of the columns, or the line is no object.
pub(crate) fn push_json_mark(line: &mut Vec<u8>, columns: &[String; 3], mark: RowMark<'_>) -> io::Result<()> {
    let end = line.trim_ascii_end().len().saturating_sub(1);
    if line.get(end) != Some(&b'}') {
        return Err(io::Error::other("a line is no JSON object any more"));
    }
    // Only a line that may have such a name is parsed: with the name somewhere, or with an escape that may be
    // a part of it.
    let has_name = |column: &String| {
        let name = Json::from(&**column).to_string();
        line.windows(name.len()).any(|found| found == name.as_bytes())
    };
    if columns.iter().any(has_name) || line.windows(2).any(|found| found == b"\\u") {
        let object: BTreeMap<String, IgnoredAny> = serde_json::from_slice(line)?;
        if let Some(column) = columns.iter().find(|column| object.contains_key(*column)) {
            return Err(taken(column));
        }
    }
    let text = |value: Option<&str>| value.map_or(Json::Null, Json::from);
    let values = [text(mark.cluster), Json::from(mark.is_kept), text(mark.of)];
    let members =
        columns.iter().zip(values).map(|(column, value)| format!(",{}:{value}", Json::from(&**column)));
    line.splice(end..end, members.collect::<String>().into_bytes());
    Ok(())
}

/// The header of a table with the columns of a mark.
///
/// # Errors
/// If the table has one of the columns.
pub(crate) fn marked_csv_header(
    header: &[u8],
    dialect: Dialect,
    columns: &[String; 3],
) -> io::Result<Vec<u8>> {
    let mut names = csv::ReaderBuilder::new();
    let mut names = names.delimiter(dialect.delimiter).escape(dialect.escape).from_reader(header);
    let names = names.byte_headers().map_err(io::Error::other)?;
    if let Some(column) = columns.iter().find(|column| names.iter().any(|name| name == column.as_bytes())) {
        return Err(taken(column));
    }
    let mut header = header.to_vec();
    push_cells(&mut header, dialect, columns.each_ref().map(|column| column.as_bytes()));
    Ok(header)
}

/// Appends a mark to the row of a table, before its line end.
pub(crate) fn push_csv_mark(row: &mut Vec<u8>, dialect: Dialect, mark: RowMark<'_>) {
    let kept: &[u8] = if mark.is_kept { b"true" } else { b"false" };
    let [cluster, of] = [mark.cluster, mark.of].map(|value| value.unwrap_or_default().as_bytes());
    push_cells(row, dialect, [cluster, kept, of]);
}

fn push_cells(row: &mut Vec<u8>, dialect: Dialect, cells: [&[u8]; 3]) {
    let mut more = Vec::new();
    for cell in cells {
        more.push(dialect.delimiter);
        dialect.push_cell(cell, &mut more);
    }
    let end = row.len() - row.iter().rev().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    row.splice(end..end, more);
}

/// The error of a record that already has a column of the mark.
pub(crate) fn taken(column: &str) -> io::Error {
    io::Error::other(format!("there is a column {column:?} already: give the mark another name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const REMOVED: RowMark<'_> = RowMark { cluster: Some("a,\"b"), is_kept: false, of: Some("c") };
    const KEPT: RowMark<'_> = RowMark { cluster: None, is_kept: true, of: None };

    fn json(line: &str, mark: RowMark<'_>) -> io::Result<String> {
        let mut line = line.as_bytes().to_vec();
        push_json_mark(&mut line, &mark_columns("dup"), mark)?;
        Ok(String::from_utf8(line).unwrap())
    }

    #[test]
    fn an_object_gets_three_members() {
        let marked = json("{\"id\": \"日\", \"x\":\"dup_of\" }\r\n", REMOVED).unwrap();
        let own = "{\"id\": \"日\", \"x\":\"dup_of\" ";
        let mark = r#","dup_cluster":"a,\"b","dup_kept":false,"dup_of":"c"}"#;
        assert_eq!(marked, format!("{own}{mark}\r\n"));
        assert!(json("{\"id\":1}\n", KEPT).unwrap().ends_with("null,\"dup_kept\":true,\"dup_of\":null}\n"));
        assert!(json("{\"d\\u0075p_of\":1}\n", KEPT).is_err(), "a name may be written with escapes");
        assert!(json("{\"dup_of\":1}\n", KEPT).is_err() && json("[1]\n", KEPT).is_err());
    }

    #[test]
    fn a_row_gets_three_cells() {
        let comma = Dialect::from(b',');
        let written = |row: &str, dialect, mark| {
            let mut row = row.as_bytes().to_vec();
            push_csv_mark(&mut row, dialect, mark);
            String::from_utf8(row).unwrap()
        };
        let row = |row: &str, mark| written(row, comma, mark);
        assert_eq!(row("x,\"y\nz\"\r\n", REMOVED), "x,\"y\nz\",\"a,\"\"b\",false,c\r\n");
        assert_eq!(row("x,\n", KEPT), "x,,,true,\n");
        // What ends with the escape would otherwise escape the quote behind it.
        let ending = RowMark { cluster: Some("a,\\"), is_kept: false, of: Some("\"b\\") };
        let escaped = Dialect { escape: Some(b'\\'), ..comma };
        assert_eq!(written("x\n", escaped, ending), "x,\"a,\\\\\",false,\"\"\"b\\\\\"\n");
        assert_eq!(written("x\n", comma, ending), "x,\"a,\\\",false,\"\"\"b\\\"\n");
        let tab = Dialect::from(b'\t');
        let header = |header: &str| marked_csv_header(header.as_bytes(), tab, &mark_columns("m"));
        assert_eq!(header("id\ttext\n").unwrap(), b"id\ttext\tm_cluster\tm_kept\tm_of\n");
        assert!(header("id\tm_kept\n").is_err());
    }
}
