//! Which records of a file are copied, and the columns that mark them.
//!
//! A mark named NAME is three columns after those of the record, or one column of the repeated parts of its
//! text:
//!
//! | column | JSON | CSV | Parquet |
//! |---|---|---|---|
//! | `NAME_cluster` | text, or null outside of clusters | text, or empty | optional string |
//! | `NAME_kept` | true or false | `true` or `false` | boolean |
//! | `NAME_of` | the document that is kept for it, or null | text, or empty | optional string |
//! | `NAME`, of parts | a list of `[from, to]`, bytes of the text | the list, as JSON | list of lists of int64 |

use std::collections::BTreeMap;
use std::io;
use std::ops::Range;

use serde::de::IgnoredAny;
use serde_json::Value as Json;

use super::super::dialect::Dialect;
use super::super::layout::SurrogateRule;
use super::super::nonstandard::StandardJson;

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

    /// The ascending ranges of bytes that are repeated in the text of a record.
    fn repeated(&self, record: u64) -> &[Range<u64>];
}

/// The columns of a mark.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum MarkColumns {
    /// Of the clusters of documents.
    Clusters([String; 3]),
    /// Of the repeated parts of documents.
    Parts(String),
}

impl MarkColumns {
    /// The columns of the mark with this name: of parts of documents, or of documents.
    pub(crate) fn new(name: &str, are_of_parts: bool) -> Self {
        if are_of_parts {
            return Self::Parts(name.to_owned());
        }
        Self::Clusters(["cluster", "kept", "of"].map(|column| format!("{name}_{column}")))
    }

    /// Their names, in order.
    pub(crate) fn names(&self) -> &[String] {
        match self {
            Self::Clusters(names) => names,
            Self::Parts(name) => std::slice::from_ref(name),
        }
    }

    /// The values of a record, in this order.
    fn values(&self, choice: &dyn RecordChoice, record: u64) -> Vec<Json> {
        match self {
            Self::Clusters(_) => {
                let RowMark { cluster, is_kept, of } = choice.mark(record);
                vec![cluster.into(), is_kept.into(), of.into()]
            }
            Self::Parts(_) => {
                let parts = choice.repeated(record).iter();
                vec![parts.map(|part| Json::from([part.start, part.end])).collect()]
            }
        }
    }
}

/// Appends the mark of a record to the line of its object, before its last brace.
///
/// # Errors
/// If the object has one of the columns, or the line is no object.
pub(crate) fn push_json_mark(
    line: &mut Vec<u8>,
    columns: &MarkColumns,
    (choice, record): (&dyn RecordChoice, u64),
) -> io::Result<()> {
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
    // Letters may be written as \u0061, and these three with a backslash alone.
    let are_plain = columns.names().iter().all(|column| !column.contains(['/', '"', '\\']));
    let is_escaped = |two: &[u8]| two[0] == b'\\' && (two[1] == b'u' || !are_plain);
    if columns.names().iter().any(has_name) || line.windows(2).any(is_escaped) {
        let written = str::from_utf8(line).map_err(io::Error::other)?;
        let form = StandardJson::new(written, SurrogateRule::Replace);
        let standard = form.as_ref().map_or(written, |form| &form.json);
        let object: BTreeMap<String, IgnoredAny> = serde_json::from_str(standard)?;
        if let Some(column) = columns.names().iter().find(|column| object.contains_key(*column)) {
            return Err(taken(column));
        }
    }
    let values = columns.values(choice, record);
    let members = columns
        .names()
        .iter()
        .zip(values)
        .map(|(column, value)| format!(",{}:{value}", Json::from(&**column)));
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
    columns: &MarkColumns,
) -> io::Result<Vec<u8>> {
    let names = dialect.cells(header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(header));
    let columns = columns.names();
    if let Some(column) =
        columns.iter().find(|column| names.iter().any(|(_, name)| name == column.as_bytes()))
    {
        return Err(taken(column));
    }
    let mut header = header.to_vec();
    push_cells(&mut header, dialect, columns)?;
    Ok(header)
}

/// Appends the mark of a record to its row of a table, before the line end.
///
/// # Errors
/// If a table without quotes cannot have a cell of it.
pub(crate) fn push_csv_mark(
    row: &mut Vec<u8>,
    dialect: Dialect,
    columns: &MarkColumns,
    (choice, record): (&dyn RecordChoice, u64),
) -> io::Result<()> {
    let cell = |value| match value {
        Json::Null => String::new(),
        Json::String(text) => text,
        other => other.to_string(),
    };
    let cells: Vec<_> = columns.values(choice, record).into_iter().map(cell).collect();
    push_cells(row, dialect, &cells)
}

fn push_cells(row: &mut Vec<u8>, dialect: Dialect, cells: &[String]) -> io::Result<()> {
    let mut more = Vec::new();
    for cell in cells {
        if !dialect.holds(cell.as_bytes()) {
            return Err(io::Error::other(format!("a table without quotes cannot hold the cell {cell:?}")));
        }
        more.push(dialect.delimiter);
        dialect.push_cell(cell.as_bytes(), &mut more);
    }
    let end = row.len() - row.iter().rev().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
    row.splice(end..end, more);
    Ok(())
}

/// The error of a record that already has a column of the mark.
pub(crate) fn taken(column: &str) -> io::Error {
    io::Error::other(format!("there is a column {column:?} already: give the mark another name"))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Record 0 is kept in no cluster and has no repeated part; record 1 is removed, and has two.
    struct Two;

    impl RecordChoice for Two {
        fn is_chosen(&self, _: u64) -> bool {
            true
        }

        fn mark(&self, record: u64) -> RowMark<'_> {
            match record {
                0 => RowMark { cluster: None, is_kept: true, of: None },
                _ => RowMark { cluster: Some("a,\"b"), is_kept: false, of: Some("c") },
            }
        }

        fn repeated(&self, record: u64) -> &[Range<u64>] {
            if record == 0 { &[] } else { &[0..7, 12..30] }
        }
    }

    fn json(line: &str, are_of_parts: bool, record: u64) -> io::Result<String> {
        let mut line = line.as_bytes().to_vec();
        push_json_mark(&mut line, &MarkColumns::new("dup", are_of_parts), (&Two, record))?;
        Ok(String::from_utf8(line).unwrap())
    }

    #[test]
    fn an_object_gets_the_members_of_a_mark() {
        let own = "{\"id\": \"日\", \"x\":\"dup_of\" ";
        let line = format!("{own}}}\r\n");
        let mark = r#","dup_cluster":"a,\"b","dup_kept":false,"dup_of":"c"}"#;
        assert_eq!(json(&line, false, 1).unwrap(), format!("{own}{mark}\r\n"));
        assert!(
            json("{\"id\":1}\n", false, 0).unwrap().ends_with("null,\"dup_kept\":true,\"dup_of\":null}\n")
        );
        assert!(json("{\"dup_of\":1}\n", false, 0).is_err() && json("[1]\n", false, 0).is_err());
        assert!(json("{\"d\\u0075p_of\":1}\n", false, 0).is_err(), "a name may be written with escapes");
        assert_eq!(json(&line, true, 1).unwrap(), format!("{own},\"dup\":[[0,7],[12,30]]}}\r\n"));
        assert_eq!(json("{\"id\":\"dup\"}", true, 0).unwrap(), "{\"id\":\"dup\",\"dup\":[]}");
        assert!(json("{\"dup\":[]}\n", true, 0).is_err());
    }

    #[test]
    fn a_row_gets_the_cells_of_a_mark() {
        let comma = Dialect::from(b',');
        let row = |row: &str, are_of_parts, record| {
            let mut row = row.as_bytes().to_vec();
            push_csv_mark(&mut row, comma, &MarkColumns::new("m", are_of_parts), (&Two, record)).unwrap();
            String::from_utf8(row).unwrap()
        };
        assert_eq!(row("x,\"y\nz\"\r\n", false, 1), "x,\"y\nz\",\"a,\"\"b\",false,c\r\n");
        assert_eq!(row("x,\n", false, 0), "x,,,true,\n");
        assert_eq!(row("x\r\n", true, 1), "x,\"[[0,7],[12,30]]\"\r\n");
        assert_eq!(row("x\n", true, 0), "x,[]\n");
        let header = |header: &str, are_of_parts| {
            marked_csv_header(header.as_bytes(), Dialect::from(b'\t'), &MarkColumns::new("m", are_of_parts))
        };
        assert_eq!(header("id\ttext\n", false).unwrap(), b"id\ttext\tm_cluster\tm_kept\tm_of\n");
        assert_eq!(header("id\tm_of\n", true).unwrap(), b"id\tm_of\tm\n");
        assert!(header("id\tm_kept\n", false).is_err() && header("id\tm\n", true).is_err());
        // What ends with the escape would otherwise escape the quote behind it.
        let escaped = Dialect { escape: Some(b'\\'), ..comma };
        let cells = ["a,\\", "\"b\\"].map(str::to_owned);
        let written = |dialect| {
            let mut out = b"x\n".to_vec();
            push_cells(&mut out, dialect, &cells).unwrap();
            String::from_utf8(out).unwrap()
        };
        assert_eq!(written(escaped), "x,\"a,\\\\\",\"\\\"b\\\\\"\n");
        assert_eq!(written(comma), "x,\"a,\\\",\"\"\"b\\\"\n");
    }
}
