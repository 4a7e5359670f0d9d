//! Rows of an exported list, as CSV and as JSON Lines.

use super::format::ListFormat;

/// A value of a row.
#[derive(Clone, Debug, PartialEq)]
pub(crate) enum ListCell {
    Text(String),
    Whole(u64),
    Number(f64),
    /// 1 or -1.
    Diff(isize),
    Truth(bool),
    Nothing,
}

/// The values of a row, one for each column.
pub(crate) type ListRow = Vec<ListCell>;

impl ListCell {
    /// A number, if there is one.
    pub(crate) fn optional(number: Option<u64>) -> Self {
        number.map_or(Self::Nothing, Self::Whole)
    }

    /// As JSON. A number has the digits that read back to it.
    fn json(&self) -> String {
        let json = match self {
            Self::Text(text) => serde_json::to_string(text),
            Self::Whole(number) => serde_json::to_string(number),
            Self::Number(number) => serde_json::to_string(number),
            Self::Diff(diff) => serde_json::to_string(diff),
            Self::Truth(truth) => serde_json::to_string(truth),
            Self::Nothing => Ok("null".to_owned()),
        };
        json.expect("texts and numbers are JSON")
    }

    fn csv(&self) -> String {
        match self {
            Self::Text(text) => quoted(text),
            Self::Nothing => String::new(),
            other => other.json(),
        }
    }
}

/// A text as a cell of CSV that no spreadsheet takes for a formula.
fn quoted(text: &str) -> String {
    let is_formula = text.starts_with(['=', '+', '-', '@', '\t', '\r', '\n']);
    let text = if is_formula { format!("'{text}") } else { text.to_owned() };
    if text.contains([',', '"', '\r', '\n']) { format!("\"{}\"", text.replace('"', "\"\"")) } else { text }
}

/// The names of the columns.
pub(super) fn csv_header(columns: &[&str]) -> Vec<u8> {
    (columns.join(",") + "\r\n").into_bytes()
}

/// Appends a row.
pub(super) fn write(row: &ListRow, columns: &[&str], format: ListFormat, out: &mut Vec<u8>) {
    debug_assert_eq!(row.len(), columns.len());
    let line = if format == ListFormat::Csv {
        row.iter().map(ListCell::csv).collect::<Vec<_>>().join(",") + "\r\n"
    } else {
        let cells = columns.iter().zip(row).map(|(name, cell)| format!("\"{name}\":{}", cell.json()));
        format!("{{{}}}\n", cells.collect::<Vec<_>>().join(","))
    };
    out.extend_from_slice(line.as_bytes());
}

#[cfg(test)]
mod tests {
    use super::*;

    fn written(cells: &ListRow, format: ListFormat) -> String {
        let columns = ["a", "b", "c"];
        let mut out = Vec::new();
        write(cells, &columns[..cells.len()], format, &mut out);
        String::from_utf8(out).unwrap()
    }

    #[test]
    fn no_text_is_a_formula() {
        let text = |text: &str| written(&vec![ListCell::Text(text.to_owned())], ListFormat::Csv);
        for formula in ["=1+1", "+1", "-1", "@SUM(A1)", "\t=1"] {
            assert_eq!(text(formula), format!("'{formula}\r\n"));
        }
        assert_eq!(text("=HYPERLINK(\"http://x\",\"y\")"), "\"'=HYPERLINK(\"\"http://x\"\",\"\"y\"\")\"\r\n");
        assert_eq!(text("\r=1"), "\"'\r=1\"\r\n");
        assert_eq!(text("a=1"), "a=1\r\n");
        assert_eq!(written(&vec![ListCell::Diff(-1)], ListFormat::Csv), "-1\r\n", "a number is no formula");
    }

    #[test]
    fn a_row_in_both_formats() {
        let row = vec![ListCell::Text("x, \"y\"\n文".to_owned()), ListCell::Number(0.1), ListCell::Nothing];
        assert_eq!(written(&row, ListFormat::Csv), "\"x, \"\"y\"\"\n文\",0.1,\r\n");
        assert_eq!(written(&row, ListFormat::Jsonl), "{\"a\":\"x, \\\"y\\\"\\n文\",\"b\":0.1,\"c\":null}\n");
        let formula = vec![ListCell::Text("=1".to_owned()), ListCell::Whole(7), ListCell::Truth(true)];
        assert_eq!(written(&formula, ListFormat::Jsonl), "{\"a\":\"=1\",\"b\":7,\"c\":true}\n", "unchanged");
    }
}
