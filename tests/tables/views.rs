//! The views of the results that pages show as tables.
//!
//! `quality`, `bands`, `cost` and `own` are tables of `dupflow evaluate pipelines`. `summary` and `sweep`
//! combine several. `marks` is of the feed's pages in some languages.

use super::Mode;
use super::blocks::Table;
use super::languages;
use super::runs::{CORPORA, Computed, Corpus, Tables, Wanted};

const QUALITY: &str = "Precision and recall";
const BANDS: &str = "Share of pairs found, by true similarity";
const COST: &str = "What it took";
const OWN: &str = "By its own measure";

/// The table of a name; `None` if its corpus is missing or not requested.
pub(crate) fn table(computed: &mut Computed, wanted: &Wanted, mode: Mode) -> Option<Table> {
    let title = match wanted.view.as_str() {
        "quality" => QUALITY,
        "bands" => BANDS,
        "cost" => COST,
        "own" => OWN,
        "summary" => return summary(computed, wanted.corpus, mode),
        "sweep" => return sweep(computed, wanted.corpus, mode),
        "marks" => return languages::marks(computed),
        other => panic!("no view {other:?}"),
    };
    let mut table = computed.tables(wanted.corpus, mode)?[title].clone();
    let at = table.column("T");
    // A pipeline that decides by a distance has the similarity of that distance as its threshold.
    let is_other = |row: &[String]| title == OWN && !wanted.corpus.has(&row[at]);
    table.rows.retain(|row| {
        wanted.at.is_empty() || wanted.at.contains(&row[at]) || row[at] == "-" || is_other(row)
    });
    Some(table)
}

/// What the pipelines find at 0.8 on this corpus and on the feed, and their cost.
fn summary(computed: &mut Computed, corpus: &'static Corpus, mode: Mode) -> Option<Table> {
    const T: &str = "0.8";
    let feed = CORPORA.iter().find(|known| known.name == "feed").expect("a feed");
    let feed = computed.tables(feed, mode)?.clone();
    let here = computed.tables(corpus, mode)?;
    let mut table = Table::new([
        "pipeline",
        "pages: precision",
        "recall",
        "recall of J in [0.85, 0.9)",
        "compared",
        "components per comparison",
        "time (s)",
        "feed: precision",
        "recall",
        "compared",
        "time (s)",
    ]);
    for pipeline in pipelines(here) {
        let cell = |of: &Tables, title: &str, column: &str| {
            let cell = of[title].cell(&pipeline, T, column);
            cell.unwrap_or_else(|| panic!("{pipeline} at {T} in {title:?}")).to_owned()
        };
        table.rows.push(vec![
            format!("`{pipeline}`"),
            cell(here, QUALITY, "precision"),
            cell(here, QUALITY, "recall"),
            cell(here, BANDS, "[0.85, 0.9)"),
            cell(here, COST, "compared"),
            cell(here, COST, "components per comparison"),
            cell(here, COST, "time (s)"),
            cell(&feed, QUALITY, "precision"),
            cell(&feed, QUALITY, "recall"),
            cell(&feed, COST, "compared"),
            cell(&feed, COST, "time (s)"),
        ]);
    }
    Some(table)
}

/// For each pipeline with a threshold, what it finds at each threshold by its own measure, beside the planned
/// recall of pairs at the threshold.
fn sweep(computed: &mut Computed, corpus: &'static Corpus, mode: Mode) -> Option<Table> {
    let all = computed.tables(corpus, mode)?.clone();
    let mut table = Table::new([
        "pipeline",
        "T",
        "precision",
        "recall",
        "plan: compared at T",
        "plan: reported at T",
        "pairs found",
        "candidates",
        "compared",
        "time (s)",
    ]);
    for row in &all[OWN].rows {
        let (pipeline, threshold) = (row[0].as_str(), row[all[OWN].column("T")].as_str());
        // A pipeline that decides by a distance has the same result at each threshold.
        if !corpus.has(threshold) {
            continue;
        }
        let plan = computed.plan(pipeline, threshold, corpus.documents());
        let own = |column| row[all[OWN].column(column)].clone();
        let cost = |column| all[COST].cell(pipeline, threshold, column).expect("a run has a cost").to_owned();
        table.rows.push(vec![
            format!("`{pipeline}`"),
            threshold.to_owned(),
            own("precision"),
            own("recall"),
            planned(&plan, threshold, "compared"),
            planned(&plan, threshold, "reported"),
            own("pairs found"),
            cost("candidates"),
            cost("compared"),
            cost("time (s)"),
        ]);
    }
    Some(table)
}

/// The planned fraction of pairs at the threshold that are compared, or reported.
fn planned(plan: &serde_json::Value, threshold: &str, share: &str) -> String {
    let threshold: f64 = threshold.parse().expect("a threshold is a number");
    let points = plan["points"].as_array().expect("a plan has points");
    let at = points.iter().find(|point| point["similarity"] == threshold).expect("a point at the threshold");
    format!("{:.4}", at[share].as_f64().expect("a share"))
}

fn pipelines(of: &Tables) -> Vec<String> {
    let mut names: Vec<String> = of[QUALITY].rows.iter().map(|row| row[0].clone()).collect();
    names.dedup();
    names
}
