//! Tables: what they hold, and how they are written.
//!
//! A number is held in full and shown with four significant digits ([`Value`]'s `Display`); CSV has it in
//! full. CSV is that of RFC 4180, but for lines, which end in a newline alone.

use std::fmt::{self, Write};

/// Rows under columns.
#[derive(Clone, Debug)]
pub struct Table {
    /// Its file name, without the ending.
    pub name: String,
    /// Its heading.
    pub title: String,
    /// What the columns mean, in sentences.
    pub about: String,
    /// The columns' headings.
    pub columns: Vec<Column>,
    /// The rows, as long as there are columns.
    pub rows: Vec<Vec<Value>>,
}

/// A column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Column {
    /// What it holds.
    pub name: String,
    /// In which unit; empty for none.
    pub unit: &'static str,
}

/// A cell.
#[derive(Clone, Debug, PartialEq)]
pub enum Value {
    /// A name.
    Text(String),
    /// A count.
    Count(u64),
    /// A measured number.
    Number(f64),
    /// Nothing to tell.
    None,
}

impl From<&str> for Value {
    fn from(text: &str) -> Self {
        Self::Text(text.to_owned())
    }
}

impl From<String> for Value {
    fn from(text: String) -> Self {
        Self::Text(text)
    }
}

impl From<u64> for Value {
    fn from(count: u64) -> Self {
        Self::Count(count)
    }
}

impl From<usize> for Value {
    fn from(count: usize) -> Self {
        Self::Count(count as u64)
    }
}

impl From<f64> for Value {
    fn from(number: f64) -> Self {
        Self::Number(number)
    }
}

impl<T: Into<Value>> From<Option<T>> for Value {
    fn from(value: Option<T>) -> Self {
        value.map_or(Self::None, Into::into)
    }
}

impl fmt::Display for Value {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Text(text) => f.write_str(text),
            Self::Count(count) => write!(f, "{count}"),
            Self::Number(number) => significant(*number, f),
            Self::None => f.write_str("-"),
        }
    }
}

/// Four significant digits, or all of them if there are fewer; as a power of ten below 0.001.
fn significant(number: f64, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    let size = number.abs();
    let decimals = [0.01, 0.1, 1.0, 10.0, 100.0, 1000.0].iter().filter(|power| size < **power).count();
    let rounded = if size < 1e-3 { format!("{number:.2e}") } else { format!("{number:.decimals$}") };
    let full = number.to_string();
    f.write_str(if full.len() < rounded.len() { &full } else { &rounded })
}

/// A row of a [`Table`], of anything that is a [`Value`].
macro_rules! row {
    ($($value:expr),* $(,)?) => { vec![$($crate::table::Value::from($value)),*] };
}
pub(crate) use row;

impl Table {
    /// A table without rows; a column is a name, with its unit after a comma if it has one.
    pub fn new(name: &str, title: &str, about: &str, columns: &[&'static str]) -> Self {
        let column = |text: &&'static str| {
            let (heading, unit) = text.split_once(", ").unwrap_or((text, ""));
            Column { name: heading.to_owned(), unit }
        };
        Self {
            name: name.to_owned(),
            title: title.to_owned(),
            about: about.to_owned(),
            columns: columns.iter().map(column).collect(),
            rows: Vec::new(),
        }
    }

    /// Adds a row.
    pub fn push(&mut self, row: Vec<Value>) {
        debug_assert_eq!(row.len(), self.columns.len(), "a row of {} has a value for each column", self.name);
        self.rows.push(row);
    }

    fn headings(&self) -> impl Iterator<Item = String> {
        self.columns.iter().map(|column| match column.unit {
            "" => column.name.clone(),
            unit => format!("{} ({unit})", column.name),
        })
    }

    /// Whether a column holds numbers, which stand to the right.
    fn is_numeric(&self, column: usize) -> bool {
        self.rows.iter().all(|row| !matches!(row[column], Value::Text(_)))
    }

    /// For a terminal: aligned columns.
    pub fn text(&self) -> String {
        let mut lines: Vec<Vec<String>> = vec![self.headings().collect()];
        lines.extend(self.rows.iter().map(|row| row.iter().map(Value::to_string).collect()));
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

    /// For a page in Markdown.
    pub fn markdown(&self) -> String {
        let row = |cells: &mut dyn Iterator<Item = String>| {
            cells.fold("|".to_owned(), |line, cell| format!("{line} {} |", cell.replace('|', "\\|"))) + "\n"
        };
        let mut out = format!("### {}\n\n{}\n\n", self.title, self.about);
        out += &row(&mut self.headings());
        let rule = |column| if self.is_numeric(column) { "|---:" } else { "|---" };
        out.extend((0..self.columns.len()).map(rule));
        out.push_str("|\n");
        out.extend(self.rows.iter().map(|line| row(&mut line.iter().map(Value::to_string))));
        out
    }

    /// For a program: numbers in full, nothing for nothing.
    pub fn csv(&self) -> String {
        let cell = |value: &Value| match value {
            Value::Text(text) => quoted(text),
            Value::Count(count) => count.to_string(),
            Value::Number(number) => number.to_string(),
            Value::None => String::new(),
        };
        let mut out = self.headings().map(|heading| quoted(&heading)).collect::<Vec<_>>().join(",") + "\n";
        for row in &self.rows {
            out += &(row.iter().map(cell).collect::<Vec<_>>().join(",") + "\n");
        }
        out
    }

    /// For the HTML page.
    pub fn html(&self) -> String {
        let mut out =
            format!("<h3>{}</h3>\n<p>{}</p>\n<table>\n<tr>", escaped(&self.title), escaped(&self.about));
        out.extend(self.headings().map(|heading| format!("<th>{}</th>", escaped(&heading))));
        out.push_str("</tr>\n");
        for row in &self.rows {
            out.push_str("<tr>");
            for value in row {
                let class = if matches!(value, Value::Text(_)) { "" } else { " class=\"n\"" };
                write!(out, "<td{class}>{}</td>", escaped(&value.to_string()))
                    .expect("a string takes what is written to it");
            }
            out.push_str("</tr>\n");
        }
        out + "</table>\n"
    }
}

/// A CSV field; in quotes where it has to be.
fn quoted(text: &str) -> String {
    if text.contains(['"', ',', '\n', '\r']) {
        format!("\"{}\"", text.replace('"', "\"\""))
    } else {
        text.to_owned()
    }
}

/// Text as HTML.
pub(super) fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn table() -> Table {
        let mut table = Table::new("t", "Title <1>", "About.", &["name", "time, ns", "count"]);
        table.push(row!["a, \"b\" | c", 0.123_456, 7_u64]);
        table.push(row!["long & <last>", None::<f64>, 1234_u64]);
        table
    }

    #[test]
    fn numbers_have_four_significant_digits() {
        let shown = |number: f64| Value::Number(number).to_string();
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
