//! The pages of the papers (`docs/measured/papers`) against computed results: every item has an answer, and a
//! sample of the results that take moments is computed again.
//!
//! `.ci/long papers` writes all pages anew, at full size and five seeds, and compares them with those in the
//! docs.

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use dupflow::core::time::SystemClock;
use dupflow::lab::paper::{ClaimVerdict, Effort, PaperSource, SEEDS, SectionContext};
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

/// `DUPFLOW_SEED` chooses the sample, of which it is else the first part.
pub(crate) fn sample_seed() -> u64 {
    let typed = std::env::var("DUPFLOW_SEED").ok();
    typed.map_or(1, |typed| typed.parse().expect("DUPFLOW_SEED is a whole number from 0 to 2^64 - 1"))
}

/// How many of the sections that take moments and have seeds are computed again.
const SAMPLED: usize = 3;

/// What depends on no seed is computed again, and a sample of what takes moments, at five seeds.
#[test]
fn quick_results_are_recomputed() {
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
    let of = |effort: Effort| {
        let sections = PaperSource::ALL
            .into_iter()
            .flat_map(|source| source.sections().iter().map(move |section| (source, section)));
        sections.filter(|(_, section)| section.effort == effort).collect::<Vec<_>>()
    };
    let mut seeded = of(Effort::Moments);
    let first = usize::try_from(sample_seed()).unwrap_or(0) % seeded.len();
    seeded.rotate_left(first);
    let mut compared = 0;
    for (source, section) in of(Effort::Formula).into_iter().chain(seeded.into_iter().take(SAMPLED)) {
        let page = page(source);
        let made = section.pooled(&work, SEEDS).unwrap();
        let answers = made.answers(source).markdown();
        let rows = answers.lines().filter(|line| line.starts_with(&format!("| {}-", source.name())));
        for row in rows.map(str::to_owned).chain(made.tables.iter().map(below)) {
            assert!(page.contains(&row), "papers/{}.md does not say:\n{row}", source.name());
            compared += 1;
        }
    }
    assert!(compared > 60, "only {compared} rows and tables are compared");
}

/// The page of a source without what differs between machines and runs: cells with times, in rows and tables
/// of sections that have some. Of such rows the verdicts remain.
fn timeless(source: PaperSource, page: &str) -> Vec<String> {
    let timed: Vec<&str> = source
        .sections()
        .iter()
        .filter(|section| matches!(section.effort, Effort::Timed | Effort::Once))
        .flat_map(|section| section.items)
        .copied()
        .collect();
    let units = [" s |", " ms |", " µs |", " ns |", "µs/text |", "MiB |"];
    let block = |block: &str| -> Vec<String> {
        // A unit stands behind the name of its column.
        let columns = block.lines().find(|line| line.starts_with("| ")).unwrap_or_default();
        if units.iter().any(|unit| columns.contains(&format!(",{unit}"))) {
            return block.lines().take(1).map(str::to_owned).collect();
        }
        let line = |line: &str| {
            let cells: Vec<&str> = line.split(" | ").collect();
            let item = cells[0].trim_start_matches("| ");
            if timed.contains(&item) && cells.len() > 3 {
                format!("{item} | {} | {}", cells[1], cells[cells.len() - 2])
            } else {
                line.to_owned()
            }
        };
        block.lines().map(line).collect()
    };
    // The first block has the command.
    page.split("\n## ").skip(1).flat_map(block).collect()
}

/// The pages in the docs are those that the program has just written into the folder `DUPFLOW_PAPERS`.
#[test]
#[ignore = "the pages are written in an hour: .ci/long papers"]
fn pages_are_what_the_program_writes() {
    let folder = PathBuf::from(std::env::var("DUPFLOW_PAPERS").expect("a folder with pages"));
    for source in PaperSource::ALL {
        let path = folder.join(format!("{}.md", source.name()));
        let written = std::fs::read_to_string(&path).unwrap_or_else(|error| panic!("{path:?}: {error}"));
        let (ours, theirs) = (timeless(source, &page(source)), timeless(source, &written));
        assert!(ours.len() > 40, "{path:?}: a page of {} lines", ours.len());
        for (line, other) in ours.iter().zip(&theirs) {
            assert_eq!(line, other, "{path:?}");
        }
        assert_eq!(ours.len(), theirs.len(), "{path:?}");
    }
}
