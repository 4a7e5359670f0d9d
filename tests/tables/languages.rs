//! Words with diacritics: pages in languages that use many, compared with their English originals.

use std::collections::BTreeMap;
use std::path::Path;

use super::blocks::Table;
use super::data;
use super::runs::Computed;

const LANGUAGES: [(&str, &str); 4] =
    [("Tamil", "pages.ta/"), ("Malayalam", "pages.ml/"), ("Bengali", "pages.bn/"), ("Hindi", "pages.hi/")];

/// For each value of `text.marks`, how many pairs the last versions of a feed's pages form among themselves,
/// and how many their English originals form.
pub(crate) fn marks(computed: &Computed) -> Option<Table> {
    let alive = last_pages(&computed.feed()?);
    let mut table = Table::new([
        "language",
        "pages",
        "`\"split\"` at 0.5",
        "`\"keep\"` at 0.5",
        "English at 0.5",
        "`\"split\"` at 0.8",
        "`\"keep\"` at 0.8",
        "English at 0.8",
    ]);
    for (language, folder) in LANGUAGES {
        let (mut pages, mut originals) = (Vec::new(), Vec::new());
        for (id, text) in alive.range(folder.to_owned()..).take_while(|page| page.0.starts_with(folder)) {
            pages.push((id.as_str(), text.as_str()));
            let original = id.replacen(folder, "pages/", 1);
            originals.extend(alive.get_key_value(&original).map(|(of, typed)| (of.as_str(), typed.as_str())));
        }
        let mut row = vec![language.to_owned(), pages.len().to_string()];
        for threshold in ["0.5", "0.8"] {
            for (of, marks) in [(&pages, "split"), (&pages, "keep"), (&originals, "keep")] {
                let set = [format!("threshold={threshold}"), format!("text.marks={marks}")];
                row.push(computed.pairs(of, &set).to_string());
            }
        }
        table.rows.push(row);
    }
    Some(table)
}

/// The live documents at the end of a feed.
fn last_pages(feed: &Path) -> BTreeMap<String, String> {
    let mut alive = BTreeMap::new();
    for (id, text) in data::feed(feed) {
        match text {
            Some(text) => alive.insert(id.to_string(), text),
            None => alive.remove(&id.to_string()),
        };
    }
    alive
}
