//! Columns that are in the names of folders, as Hive and Spark write partitions: `lang=en/part-0.parquet`.
//!
//! A row that has no value of such a column has that of its path, and so has a line that lacks the field.
//! Values are decoded (`%2F` is `/`); `__HIVE_DEFAULT_PARTITION__` stands for null.

use std::sync::Arc;

use crate::formats::feed::LineRules;
use crate::formats::{Damage, FileRow, InputLayout, NextRow, RowReader, without_query};

/// Rows with the columns of their path.
pub(crate) struct PartitionRows {
    rows: Box<dyn RowReader>,
    /// The index of each further field that the path has, and its value.
    given: Vec<(usize, Vec<u8>)>,
    /// Whether they replace what the rows have.
    replaces: bool,
}

impl PartitionRows {
    /// The rows, with the values that the path gives to these fields, or those of a table's log.
    pub(crate) fn with(
        rows: Box<dyn RowReader>,
        path: &str,
        fields: &[String],
        given: Option<Vec<(usize, Vec<u8>)>>,
    ) -> Box<dyn RowReader> {
        let replaces = given.is_some();
        let given = given.unwrap_or_else(|| path_columns(path, fields));
        if given.is_empty() { rows } else { Box::new(Self { rows, given, replaces }) }
    }
}

impl RowReader for PartitionRows {
    fn next(&mut self, row: &mut FileRow) -> Result<NextRow, Damage> {
        let next = self.rows.next(row)?;
        if next == NextRow::Row {
            for (place, value) in &self.given {
                if let Some(field) =
                    row.fields.get_mut(*place).filter(|field| self.replaces || field.is_empty())
                {
                    field.clone_from(value);
                }
            }
        }
        Ok(next)
    }

    fn cut(&self) -> u64 {
        self.rows.cut()
    }

    fn notes(&self) -> Vec<String> {
        self.rows.notes()
    }
}

/// The rules for the lines of an input, by one of them, as of [`LineRules::from_line`].
pub(crate) fn line_rules(
    layout: &InputLayout,
    fields: &[String],
    input: &Arc<str>,
    line: &[u8],
    first: u64,
) -> Option<LineRules> {
    let rules = LineRules::from_line(layout, fields, input, line, first)?;
    let given = path_columns(input, fields).into_iter().filter(|(_, value)| !value.is_empty());
    Some(rules.with_path(given.map(|(place, value)| (fields[place].clone(), value)).collect()))
}

/// The fields of these that are columns of a path, each with its index and its value; empty for null.
fn path_columns(path: &str, fields: &[String]) -> Vec<(usize, Vec<u8>)> {
    const NULL: &[u8] = b"__HIVE_DEFAULT_PARTITION__";
    let Some((folders, _)) = without_query(path).rsplit_once('/') else { return Vec::new() };
    let columns = folders.split('/').filter_map(|part| part.split_once('='));
    let columns: Vec<_> = columns.map(|(name, value)| (decoded(name), decoded(value))).collect();
    let place = |(place, field): (usize, &String)| {
        let (_, value) = columns.iter().rev().find(|(name, _)| name == field.as_bytes())?;
        Some((place, if value == NULL { Vec::new() } else { value.clone() }))
    };
    fields.iter().enumerate().filter_map(place).collect()
}

/// The bytes of a name, in which `%` and two hexadecimal digits are a byte.
pub(in crate::inputs) fn decoded(name: &str) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(name.len());
    let mut rest = name.as_bytes();
    while let Some((first, after)) = rest.split_first() {
        let digits = after.get(..2).filter(|two| *first == b'%' && two.iter().all(u8::is_ascii_hexdigit));
        let byte = digits.and_then(|two| u8::from_str_radix(std::str::from_utf8(two).ok()?, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { &after[2..] } else { after };
    }
    bytes
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_are_names_of_folders() {
        let fields = ["lang", "day", "none"].map(str::to_owned);
        let of = |path: &str| {
            let found = path_columns(path, &fields);
            found.into_iter().map(|(n, value)| (n, String::from_utf8(value).unwrap())).collect::<Vec<_>>()
        };
        let some = |n: usize, value: &str| (n, value.to_owned());
        assert_eq!(of("t/lang=en/day=2024-05-06/a.parquet"), [some(0, "en"), some(1, "2024-05-06")]);
        assert_eq!(of("s3://b/lang=a%2Fb%3D%25/x"), [some(0, "a/b=%")]);
        assert_eq!(of("lang=__HIVE_DEFAULT_PARTITION__/x"), [some(0, "")]);
        assert_eq!(of("lang=a/lang=b=c/%zz"), [some(0, "b=c")]);
        assert_eq!(of("lang=en.parquet"), []);
    }
}
