//! Rows as texts by the name of their column, so that those of any place can be compared.

use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The columns that say when and where a row was written: another run has others.
const OF_THE_RUN: [&str; 3] = ["epoch", "at", "diff"];

/// A row, without empty cells and without what differs between two runs.
pub(crate) type Row = BTreeMap<String, String>;

/// Rows, each with how often it is there.
pub(crate) type Rows = BTreeMap<Row, i64>;

/// What was written once: a row, or the end of what a key stood for.
#[derive(Debug)]
pub(crate) struct Written {
    /// The key of a record in a topic.
    pub(crate) key: Option<String>,
    /// All cells; `None` for the end of a key.
    pub(crate) cells: Option<BTreeMap<String, String>>,
}

/// How rows in force follow from those that were written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Keeping {
    /// Each is one.
    All,
    /// They appear (`diff` 1) and disappear (-1).
    Sum,
    /// The last one of each key.
    Last,
}

/// The text of a cell: numbers alike in all formats, and lists as JSON.
pub(crate) fn cell(text: &str) -> String {
    if text.starts_with('[')
        && let Ok(list) = serde_json::from_str::<Value>(text)
    {
        return list.to_string();
    }
    text.parse::<f64>().map_or_else(|_| text.to_owned(), |number| Value::from(number).to_string())
}

/// The cells of an object of JSON.
pub(crate) fn cells(object: &Map<String, Value>) -> BTreeMap<String, String> {
    let text = |value: &Value| match value {
        Value::Null => String::new(),
        Value::String(text) => text.clone(),
        other => other.to_string(),
    };
    let mut all = BTreeMap::new();
    for (name, value) in object {
        match value.as_object() {
            // Formats with columns have a column for each key.
            Some(inner) => {
                all.extend(cells(inner).into_iter().map(|(key, text)| (format!("{name}_{key}"), text)));
            }
            None => drop(all.insert(name.clone(), cell(&text(value)))),
        }
    }
    all
}

/// The rows of a line of JSON: a cluster has one for each member, as in formats with columns.
pub(crate) fn line(line: &str) -> Vec<BTreeMap<String, String>> {
    let value: Value = serde_json::from_str(line).unwrap_or_else(|error| panic!("{error}: {line}"));
    let object = value.as_object().unwrap();
    let Some(members) = object.get("members").and_then(Value::as_array) else { return vec![cells(object)] };
    let member = |member: &Value| {
        [("cluster", &object["cluster"]), ("document", member)]
            .map(|(name, value)| (name.to_owned(), cell(value.as_str().unwrap())))
            .into()
    };
    members.iter().map(member).collect()
}

/// A row as it is compared.
pub(crate) fn row(cells: &BTreeMap<String, String>) -> Row {
    let is_compared = |(name, text): &(&String, &String)| {
        let is_absent = text.is_empty() || ["ended", "giant"].contains(&name.as_str()) && *text == "false";
        !is_absent && !OF_THE_RUN.contains(&name.as_str())
    };
    cells.iter().filter(is_compared).map(|(name, text)| (name.clone(), text.clone())).collect()
}

/// These columns of a row.
pub(crate) fn columns(row: &Row, names: &[&str]) -> Row {
    let is_named = |(name, _): &(&String, &String)| names.contains(&name.as_str());
    row.iter().filter(is_named).map(|(name, text)| (name.clone(), text.clone())).collect()
}

/// The rows in force, in order of what was written; an error if a row appears where it is, or disappears
/// where it is not.
pub(crate) fn in_force(written: Vec<Written>, keeping: Keeping) -> Result<Rows, String> {
    let mut rows = Rows::new();
    let mut last: BTreeMap<String, Option<Row>> = BTreeMap::new();
    for Written { key, cells } in written {
        let of_row = cells.as_ref().map(row);
        match keeping {
            Keeping::All => *rows.entry(of_row.unwrap_or_default()).or_default() += 1,
            Keeping::Sum => {
                let cells = cells.ok_or("a change is a record without a value")?;
                let diff = cells.get("diff").map_or(0, |diff| if diff.starts_with('-') { -1 } else { 1 });
                let there = rows.entry(of_row.unwrap_or_default()).or_default();
                *there += diff;
                if diff == 0 || !(0..=1).contains(there) {
                    return Err(format!("does not follow from what is before it: {cells:?}"));
                }
            }
            Keeping::Last => {
                let id = || Some(cells.as_ref()?.get("id")?.clone());
                let key = key.clone().or_else(id).ok_or("a record without a key")?;
                last.insert(key, of_row.filter(|row| !row.contains_key("ended")));
            }
        }
    }
    last.into_values().flatten().for_each(|row| *rows.entry(row).or_default() += 1);
    rows.retain(|_, count| *count != 0);
    Ok(rows)
}

/// How rows differ from those expected.
pub(crate) fn difference(found: &Rows, expected: &Rows) -> Option<String> {
    let is_other = |of: &Rows, (row, count): (&Row, &i64)| of.get(row) != Some(count);
    let lost = expected.iter().filter(|row| is_other(found, *row));
    let more = found.iter().filter(|row| is_other(expected, *row));
    let (lost, more): (Vec<_>, Vec<_>) = (lost.collect(), more.collect());
    let shown = |rows: &[(&Row, &i64)]| {
        rows.first().map_or_else(String::new, |(row, count)| format!(", as {count} times {row:?}"))
    };
    (!lost.is_empty() || !more.is_empty()).then(|| {
        format!(
            "{} rows of {} are missing{}; {} are too many{}",
            lost.len(),
            expected.len(),
            shown(&lost),
            more.len(),
            shown(&more)
        )
    })
}
