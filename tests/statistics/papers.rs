//! The pages of the papers (`docs/measured/papers`) against computed results: every item has an answer, and results
//! that take moments are computed again.
//!
//! `cargo test --release --test statistics papers -- --ignored` computes everything that is the same on every
//! machine, which takes minutes.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dupflow::core::time::SystemClock;
use dupflow::lab::paper::{ClaimVerdict, Effort, PaperSource, SectionContext};
use dupflow::lab::{ResultTable, StudyContext};

fn page(source: PaperSource) -> String {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("docs/measured/papers");
    let path = folder.join(format!("{}.md", source.name()));
    std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"))
}

#[test]
fn every_item_has_its_answers() {
    for source in PaperSource::ALL {
        let page = page(source);
        for item in source.items() {
            assert!(page.contains(&format!("\n| {} |", item.id)), "{} is not answered", item.id);
        }
    }
}

/// The counts of verdicts on a page equal those in the page's own table.
#[test]
fn every_page_counts_its_verdicts() {
    for source in PaperSource::ALL {
        let page = page(source);
        let mut counts: BTreeMap<String, usize> = BTreeMap::new();
        let prefix = format!("| {}-", source.name());
        for row in page.lines().filter(|line| line.starts_with(&prefix)) {
            let cells: Vec<&str> = row.split(" | ").collect();
            *counts.entry(cells[cells.len() - 2].to_owned()).or_default() += 1;
        }
        for verdict in ClaimVerdict::ALL.map(|verdict| verdict.to_string()) {
            let count = counts.remove(&verdict).unwrap_or(0);
            assert!(
                page.contains(&format!("\n| {verdict} | {count} |")),
                "{}: {count} {verdict}",
                source.name()
            );
        }
        assert!(counts.is_empty(), "{}: verdicts that are none: {counts:?}", source.name());
    }
}

/// A table as it is written on a page, one heading level below the source's.
fn below(table: &ResultTable) -> String {
    table.markdown().replacen("### ", "## ", 1)
}

/// Compares the pages with the results of the sections of an effort.
fn compare(effort: Effort) {
    let clock = SystemClock::start();
    let bench = StudyContext {
        clock: &clock,
        threads: 2,
        seed: 1,
        planner: &dupflow::cli::evaluate::Planned::default(),
        progress: &|_| {},
    };
    let program = PathBuf::from(env!("CARGO_BIN_EXE_dupflow"));
    let work = SectionContext { bench: &bench, program: &program, scale: 1.0, labelled: None };
    let mut compared = 0;
    for source in PaperSource::ALL {
        let page = page(source);
        for section in source.sections().iter().filter(|section| section.effort == effort) {
            let made = (section.make)(&work).unwrap();
            let answers = made.answers(source).markdown();
            let rows = answers.lines().filter(|line| line.starts_with(&format!("| {}-", source.name())));
            for row in rows.map(str::to_owned).chain(made.tables.iter().map(below)) {
                assert!(page.contains(&row), "papers/{}.md does not say:\n{row}", source.name());
                compared += 1;
            }
        }
    }
    assert!(compared > 0, "nothing was compared");
}

#[test]
fn quick_results_are_recomputed() {
    compare(Effort::Moments);
}

#[test]
#[ignore = "takes minutes"]
fn what_takes_minutes_is_made_again() {
    compare(Effort::Long);
}
