//! Tables of results, and their output formats.
//!
//! A number is stored in full precision and shown with four significant digits ([`TableValue`]'s `Display`);
//! CSV has full precision. CSV is that of RFC 4180, except that lines end with a newline alone.

use std::fmt::{self, Write};

/// Rows and columns of values.
#[derive(Clone, Debug)]
pub struct ResultTable {
    /// The file name, without extension.
    pub name: String,
    /// The title.
    pub title: String,
    /// What the columns mean, in sentences.
    pub about: String,
    /// The columns.
    pub columns: Vec<TableColumn>,
    /// The rows, each with a value for every column.
    pub rows: Vec<Vec<TableValue>>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TableColumn {
    /// The heading.
    pub name: String,
    /// The unit; empty for none.
    pub unit: &'static str,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum TableValue {
    /// Text.
    Text(String),
    /// A count.
    Count(u64),
    /// A measured number.
    Number(f64),
    /// No value.
    None,
}

impl From<&str> for TableValue {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for TableValue {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for TableValue {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<usize> for TableValue {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<f64> for TableValue {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl<T: Into<TableValue>> From<Option<T>> for TableValue {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

impl fmt::Display for TableValue {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(count) => write!(f, "{count}"),
            Self::Number(number) => significant(*number, f),
            Self::None => f.write_str("-"),
        }
    }
}

/// Four significant digits, or all if there are fewer; in scientific notation below 0.001.
fn significant(number: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let size = number.abs();
    let decimals = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0].iter().filter(|power| size < **power).count();
    let rounded = if size < 1e-3 { format!("{number:.2e}") } else { format!("{number:.decimals$}") };
    let full = number.to_string();
    f.write_str(if full.len() < rounded.len() { &full } else { &rounded })
}

/// A row of a [`ResultTable`], from anything that converts to a [`TableValue`].
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$($crate::table::TableValue::from($value)),*] };
}
pub(crate) use row;

impl ResultTable {
    /// A table without rows. `columns` are separated by ` | `; each is a name, optionally followed by a comma
    /// and the unit.
    pub fn new(name: &str, title: &str, about: &str, columns: &'static str) -> Self {
        let column = |text: &'static str| {
            let (heading, unit) = text.split_once(", ").unwrap_or((text, ""));
            TableColumn { name: heading.to_owned(), unit }
        };
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            about: about.to_owned(),
            columns: columns.split(" | ").map(column).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<TableValue>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a row of {} has a value for each column", self.name);
        self.rows.push(row);
    }

    fn headings(&self) -> impl Iterator<Item = String> {
        self.columns.iter().map(|column| match column.unit {
            "" => column.name.clone(),
            unit => format!("{} ({unit})", column.name),
        })
    }

    /// Whether a column holds numbers, which are aligned to the right.
    fn is_numeric(&self, column: usize) -> bool {
        self.rows.iter().all(|row| !matches!(row[column], TableValue::Text(_)))
    }

    /// Plain text with aligned columns.
    pub fn text(&self) -> String {
        let mut lines: Vec<Vec<String>> = vec![self.headings().collect()];
        lines.extend(self.rows.iter().map(|row| row.iter().map(TableValue::to_string).collect()));
        let width = |column: usize| lines.iter().map(|line| line[column].chars().count()).max().unwrap_or(0);
        let widths: Vec<usize> = (0..self.columns.len()).map(width).collect();
        let mut out = format!("{}\n{}\n\n", self.title, self.about);
        for line in &lines {
            let cells = line.iter().zip(&widths).enumerate().map(|(column, (cell, wide))| {
                if self.is_numeric(column) { format!("{cell:>wide$}") } else { format!("{cell:<wide$}") }
            });
            let joined = cells.collect::<Vec<_>>().join("  ");
            out.push_str(joined.trim_end());
            out.push('\n');
        }
        out
    }

    /// Markdown.
    pub fn markdown(&self) -> String {
        let row = |cells: &mut dyn Iterator<Item = String>| {
            cells.fold("|".to_owned(), |line, cell| format!("{line} {} |", cell.replace('|', "\\|"))) + "\n"
        };
        let mut out = format!("### {}\n\n{}\n\n", self.title, self.about);
        out += &row(&mut self.headings());
        let rule = |column| if self.is_numeric(column) { "|---:" } else { "|---" };
        out.extend((0..self.columns.len()).map(rule));
        out.push_str("|\n");
        out.extend(self.rows.iter().map(|line| row(&mut line.iter().map(TableValue::to_string))));
        out
    }

    /// CSV with full precision; missing values are empty.
    pub fn csv(&self) -> String {
        let cell = |value: &TableValue| match value {
            TableValue::Text(text) => quoted(text),
            TableValue::Count(count) => count.to_string(),
            TableValue::Number(number) => number.to_string(),
            TableValue::None => String::new(),
        };
        let mut out = self.headings().map(|heading| quoted(&heading)).collect::<Vec<_>>().join(",") + "\n";
        for row in &self.rows {
            out += &(row.iter().map(cell).collect::<Vec<_>>().join(",") + "\n");
        }
        out
    }

    /// HTML.
    pub fn html(&self) -> String {
        let mut out =
            format!("<h3>{}</h3>\n<p>{}</p>\n<table>\n<tr>", escaped(&self.title), escaped(&self.about));
        out.extend(self.headings().map(|heading| format!("<th>{}</th>", escaped(&heading))));
        out.push_str("</tr>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for value in row {
                let class = if matches!(value, TableValue::Text(_)) { "" } else { " class=\"n\"" };
                write!(out, "<td{class}>{}</td>", escaped(&value.to_string()))
                    .expect("a string takes what is written to it");
            }
            out.push_str("</tr>\n");
        }
        out + "</table>\n"
    }
}

/// A CSV field, quoted if necessary.
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Escapes text for HTML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> ResultTable {
        let mut table = ResultTable::new("t", "Title <1>", "About.", "name | time, ns | count");
        table.push(row!["a, \"b\" | c", 0.123_456, 7_u64]);
        table.push(row!["long & <last>", None::<f64>, 1234_u64]);
        table
    }

    #[test]
    fn numbers_have_four_significant_digits() {
        let shown = |number: f64| TableValue::Number(number).to_string();
        let numbers = [
            0.0,
            1.0,
            0.123_456,
            12.345_6,
            999.96,
            1234.5,
            0.000_123_4,
            -0.5,
            0.999_96,
            1e-5,
            0.012_345,
            0.001_234_5,
        ];
        let expected = [
            "0", "1", "0.1235", "12.35", "1000.0", "1234", "1.23e-4", "-0.5", "1.0000", "1.00e-5", "0.01235",
            "0.001234",
        ];
        assert_eq!(numbers.map(shown), expected);
    }

    #[test]
    fn csv_is_quoted_and_full() {
        assert_eq!(
            table().csv(),
            "name,time (ns),count\n\"a, \"\"b\"\" | c\",0.123456,7\nlong & <last>,,1234\n"
        );
    }

    #[test]
    fn text_is_aligned() {
        let expected = "\
Title <1>
About.

name           time (ns)  count
a, \"b\" | c        0.1235      7
long & <last>          -   1234
";
        assert_eq!(table().text(), expected);
    }

    #[test]
    fn markup_is_escaped() {
        let html = table().html();
        assert!(html.contains("<h3>Title &lt;1&gt;</h3>"), "{html}");
        assert!(html.contains("<td>long &amp; &lt;last&gt;</td><td class=\"n\">-</td>"), "{html}");
        assert!(table().markdown().contains("| a, \"b\" \\| c | 0.1235 | 7 |\n"), "{}", table().markdown());
    }
}
