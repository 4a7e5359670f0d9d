//! Tables in pages: finding, parsing and comparing them.

/// Begin and end of a table in a page.
const BEGINS: &str = "\n<!-- table: ";
const ENDS: &str = "<!-- end -->";

/// A table in a page.
pub(crate) struct Block {
    pub(crate) name: String,
    pub(crate) table: Table,
}

/// Cells as text.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Table {
    pub(crate) columns: Vec<String>,
    pub(crate) rows: Vec<Vec<String>>,
}

impl Table {
    pub(crate) fn new<const N: usize>(columns: [&str; N]) -> Self {
        Self { columns: columns.map(str::to_owned).into(), rows: Vec::new() }
    }

    /// Parses lines of Markdown; empty without lines.
    pub(crate) fn parsed(lines: &[&str]) -> Self {
        let cells = |line: &&str| -> Vec<String> {
            let inner = line.trim().trim_start_matches('|').trim_end_matches('|');
            inner.split('|').map(|cell| cell.trim().to_owned()).collect()
        };
        match lines {
            [] => Self::default(),
            [columns, rest @ ..] => {
                Self { columns: cells(columns), rows: rest.iter().skip(1).map(cells).collect() }
            }
        }
    }

    pub(crate) fn markdown(&self) -> String {
        let line = |cells: &[String]| format!("| {} |\n", cells.join(" | "));
        let is_number = |column: usize| {
            let is_none = |cell: &str| cell == "-";
            self.rows.iter().all(|row| is_none(&row[column]) || row[column].parse::<f64>().is_ok())
        };
        let rule = |column| if is_number(column) { "|---:" } else { "|---" };
        let rules: String = (0..self.columns.len()).map(rule).collect();
        let rows: String = self.rows.iter().map(|row| line(row)).collect();
        format!("{}{rules}|\n{rows}", line(&self.columns))
    }

    /// The index of a column.
    pub(crate) fn column(&self, name: &str) -> usize {
        let place = self.columns.iter().position(|column| column == name);
        place.unwrap_or_else(|| panic!("no column {name:?} in {:?}", self.columns))
    }

    /// A cell of the row of a pipeline at a threshold.
    pub(crate) fn cell(&self, pipeline: &str, threshold: &str, column: &str) -> Option<&str> {
        let (column, at) = (self.column(column), self.column("T"));
        let row = self.rows.iter().find(|row| row[0] == pipeline && row[at] == threshold)?;
        Some(&row[column])
    }

    /// How this table of a page differs from the computed one. Ignores rows for which `skipped` is true, and
    /// columns that depend on time and on the machine.
    pub(crate) fn differences(&self, now: &Self, skipped: impl Fn(&str, &str) -> bool) -> Vec<String> {
        if self.columns != now.columns {
            return vec![format!("the page has the columns {:?}, computed {:?}", self.columns, now.columns)];
        }
        let kept = |table: &Self| -> Vec<Vec<String>> {
            let at = table.columns.iter().position(|column| column == "T");
            let is_skipped =
                |row: &&Vec<String>| skipped(row[0].trim_matches('`'), at.map_or("", |at| row[at].as_str()));
            table.rows.iter().filter(|row| !is_skipped(row)).cloned().collect()
        };
        let (there, here) = (kept(self), kept(now));
        if there.len() != here.len() {
            return vec![format!("rows on the page are {}, computed {}", there.len(), here.len())];
        }
        let mut differences = Vec::new();
        for (said, row) in there.iter().zip(&here) {
            for (at, column) in self.columns.iter().enumerate() {
                if !depends_on_time(column) && said[at] != row[at] {
                    let of = row.iter().take(2).cloned().collect::<Vec<_>>().join(" ");
                    differences
                        .push(format!("{of}, {column}: the page says {}, computed {}", said[at], row[at]));
                }
            }
        }
        differences
    }
}

fn depends_on_time(column: &str) -> bool {
    ["time", "events (1/s)", "memory", "CPU"].iter().any(|what| column.starts_with(what))
}

/// The tables of a page, in order.
pub(crate) fn found(page: &str) -> Vec<Block> {
    let mut blocks = Vec::new();
    let mut rest = page;
    while let Some((_, begun)) = rest.split_once(BEGINS) {
        let (name, unended) = begun.split_once(" -->").expect("a name ends");
        let (inner, after) =
            unended.split_once(ENDS).unwrap_or_else(|| panic!("table {name:?} does not end"));
        let lines: Vec<&str> = inner.lines().filter(|line| line.starts_with('|')).collect();
        blocks.push(Block { name: name.to_owned(), table: Table::parsed(&lines) });
        rest = after;
    }
    blocks
}

/// The page with the table of this name replaced.
pub(crate) fn replaced(page: &str, name: &str, table: &Table) -> String {
    let begins = format!("{BEGINS}{name} -->");
    let (before, begun) = page.split_once(&begins).expect("a table that was found");
    let (_, after) = begun.split_once(ENDS).expect("a table that was found");
    format!("{before}{begins}\n\n{}\n{ENDS}{after}", table.markdown())
}
