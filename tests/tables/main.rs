//! The tables that a command writes into documentation pages: parts that do not depend on time are compared
//! with what the program computes now.
//!
//! A table in a page is between `<!-- table: NAME -->` and `<!-- end -->`. With `DUPFLOW_TABLES=write` the
//! test `pages_say_what_is_computed` writes all of them instead of comparing; `docs/measured/evaluation.md`
//! has the command. [`runs`] computes the values by name, [`views`] makes tables of them, [`languages`] makes
//! those of texts, and [`blocks`] finds them in pages. `DUPFLOW_PROGRAM` names another program to run, such
//! as a release build.
#![cfg(test)]

mod blocks;
#[path = "../data/mod.rs"]
mod data;
mod languages;
mod runs;
mod views;

use std::path::{Path, PathBuf};

use blocks::{Block, Table};
use runs::{Computed, Wanted};

/// Whether tables are compared or written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Mode {
    /// Only what takes little time: `minhash` and `exact` at 0.5 and 0.8, the others at their own and with a
    /// truth by other programs, without `weighted`, `paper` and the large generated corpus.
    Compare,
    All,
    Write,
}

impl Mode {
    /// The mode, and a prefix of table names: all tables unless one follows "write".
    fn asked() -> (Self, String) {
        let asked = std::env::var("DUPFLOW_TABLES").unwrap_or_default();
        match asked.as_str().split_once(' ').unwrap_or((&asked, "")) {
            ("", "") => (Self::Compare, String::new()),
            ("all", "") => (Self::All, String::new()),
            ("write", names) => (Self::Write, names.to_owned()),
            _ => panic!("DUPFLOW_TABLES is {asked:?}, expected \"all\", \"write\" or \"write NAMES\""),
        }
    }
}

fn program() -> PathBuf {
    std::env::var_os("DUPFLOW_PROGRAM").map_or_else(|| env!("CARGO_BIN_EXE_dupflow").into(), PathBuf::from)
}

/// The pages that may contain tables.
fn pages() -> Vec<PathBuf> {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let of = |folder: PathBuf| std::fs::read_dir(folder).unwrap().map(|entry| entry.unwrap().path());
    let mut all: Vec<PathBuf> = of(root.join("docs")).chain(of(root.join("docs/measured"))).collect();
    all.push(root.join("README.md"));
    all.retain(|path| path.extension().is_some_and(|ending| ending == "md"));
    all.sort();
    all
}

#[test]
fn pages_say_what_is_computed() {
    let (mode, names) = Mode::asked();
    let folder = data::folder("the tables of recorded corpora in docs");
    assert!(mode != Mode::Write || folder.is_some(), "no corpora to write from: set DUPFLOW_DATA");
    let mut computed = Computed::new(program(), folder);
    let (mut seen, mut wrong) = (0, Vec::new());
    for path in pages() {
        let read = || std::fs::read_to_string(&path).unwrap();
        for Block { name, table } in
            blocks::found(&read()).into_iter().filter(|block| block.name.starts_with(&names))
        {
            let wanted =
                Wanted::named(&name).unwrap_or_else(|| panic!("{}: no table {name:?}", path.display()));
            let Some(now) = views::table(&mut computed, &wanted, mode) else { continue };
            seen += 1;
            if mode == Mode::Write {
                // One table at a time, so that a page may be edited while this runs.
                std::fs::write(&path, blocks::replaced(&read(), &name, &now)).unwrap();
            } else {
                let skipped = |pipeline: &str, threshold: &str| {
                    mode == Mode::Compare && wanted.corpus.leaves_out(pipeline, threshold)
                };
                let page = path.file_name().unwrap().to_string_lossy();
                wrong.extend(
                    table.differences(&now, skipped).iter().map(|said| format!("{page}, {name}: {said}")),
                );
            }
        }
    }
    assert!(seen > 0, "no table has been looked at");
    assert!(
        wrong.is_empty(),
        "pages do not say what the program computes; docs/measured/evaluation.md has the command that writes \
            them:\n{}",
        wrong.join("\n")
    );
}

/// A changed number is reported; a changed time is not.
#[test]
fn what_differs_is_named() {
    let now = Table::parsed(&[
        "| pipeline | T | compared | time (s) |",
        "|---|---:|---:|---:|",
        "| exact | 0.5 | 17 | 0.1 |",
        "| paper | 0.5 | 9 | 1 |",
    ]);
    let none = |_: &str, _: &str| false;
    let said = |lines: &[&str], skipped: &dyn Fn(&str, &str) -> bool| {
        Table::parsed(lines).differences(&now, skipped)
    };
    let same = [
        "| pipeline | T | compared | time (s) |",
        "|---|---|---|---|",
        "| exact | 0.5 | 17 | 7.7 |",
        "| paper | 0.5 | 9 | 1 |",
    ];
    assert_eq!(said(&same, &none), [""; 0]);
    let other = [
        "| pipeline | T | compared | time (s) |",
        "|---|---|---|---|",
        "| exact | 0.5 | 18 | 0.1 |",
        "| paper | 0.5 | 8 | 1 |",
    ];
    assert_eq!(
        said(&other, &none),
        [
            "exact 0.5, compared: the page says 18, computed 17",
            "paper 0.5, compared: the page says 8, computed 9"
        ]
    );
    assert_eq!(
        said(&other, &|pipeline, _| pipeline == "paper"),
        ["exact 0.5, compared: the page says 18, computed 17"]
    );
    assert_eq!(said(&other[..3], &none), ["rows on the page are 1, computed 2"]);
    assert_eq!(said(&["| a |", "|---|"], &none).len(), 1, "other columns");
    let page = "# x\n<!-- table: a b -->\n\n| p |\n|---|\n| 1 |\n\n<!-- end -->\nrest\n";
    let blocks = blocks::found(page);
    assert_eq!((blocks.len(), blocks[0].name.as_str()), (1, "a b"));
    let replaced = blocks::replaced(page, "a b", &Table::parsed(&["| p |", "|---:|", "| 2 |"]));
    assert_eq!(replaced, "# x\n<!-- table: a b -->\n\n| p |\n|---:|\n| 2 |\n\n<!-- end -->\nrest\n");
}
