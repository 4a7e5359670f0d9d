//! The tables of the section Floors.

use std::collections::{BTreeMap, BTreeSet};

use crate::tree::words_in_backticks;

/// Each module of a table with the modules that it may import.
pub(crate) type Allowed = BTreeMap<String, BTreeSet<String>>;

/// The tables of the section Floors: that of the crates under `crates`, and those of the modules of a crate
/// or of a room, by its path.
///
/// A row is `| floor name | modules | may import |`; what may be imported are numbers of floors and modules.
pub(crate) fn tables(page: &str) -> BTreeMap<String, Allowed> {
    let section = page.split("\n## Floors\n").nth(1).unwrap().split("\n## ").next().unwrap();
    let mut tables = BTreeMap::new();
    for part in section.split("\n### ").skip(1) {
        let name = words_in_backticks(part.lines().next().unwrap()).next().unwrap_or("crates").to_owned();
        let rows: Vec<_> = part.lines().filter(|line| line.starts_with('|')).skip(2).map(row).collect();
        let mut allowed = Allowed::new();
        for (_, modules, may) in &rows {
            let floors: Vec<&str> = may.split(' ').filter(|word| !word.starts_with('`')).collect();
            let mut imports: BTreeSet<String> = words_in_backticks(may).map(str::to_owned).collect();
            for (_, below, _) in rows.iter().filter(|(floor, ..)| floors.contains(floor)) {
                imports.extend(below.iter().map(|module| (*module).to_owned()));
            }
            for module in modules {
                let first = allowed.insert((*module).to_owned(), imports.clone()).is_none();
                assert!(first, "{module} is in two rows of {name}");
            }
        }
        tables.insert(name, allowed);
    }
    tables
}

/// The floor, the modules, and what they may import.
pub(crate) fn row(line: &str) -> (&str, Vec<&str>, &str) {
    let cells: Vec<&str> = line.split('|').map(str::trim).collect();
    (cells[1].split(' ').next().unwrap(), words_in_backticks(cells[2]).collect(), cells[3])
}

#[test]
fn tables_are_read() {
    let page = "# A\n\n## Floors\n\n### Crates\n\n| floor | crates | may import |\n|---|---|---|\n| 0 core | \
        `core` | |\n\n\
        ### `core`\n\n| floor | modules | may import |\n|---|---|---|\n| 0 ground | `a` `b` | |\n| 1 next | \
        `c` | 0 `d` |\n\n\
        ## Code map\n\n| 9 | `e` | |\n";
    let tables = tables(page);
    assert_eq!(tables.keys().collect::<Vec<_>>(), ["core", "crates"]);
    assert_eq!(tables["core"]["c"].iter().collect::<Vec<_>>(), ["a", "b", "d"]);
    assert!(tables["core"]["a"].is_empty() && tables["core"].len() == 3);
}
