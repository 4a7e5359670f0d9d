//! 002-D1, D2 and A1: permuted tables of ten and a hundred million uniform fingerprints, and every radius up
//! to 10.

use super::super::super::plot::{Axis, Series};
use super::super::super::search::measured::{SearchRow, SearchSetting};
use super::super::super::table::{ResultTable, row};
use super::super::super::{EvaluateError, Plot};
use super::super::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use super::examples::grouped;
use dupflow_core::block::hamming::optimiser::{Costs, Workload};
use dupflow_core::block::hamming::{Design, DesignUse};

/// Numbers of fingerprints at full scale: of what is judged and of all radii, and of what is shown.
const SIZES: [usize; 2] = [10_000_000, 100_000_000];

/// Numbers of tables at k = 3; those of the source are 4 and 16.
const TABLES: [u64; 4] = [4, 10, 16, 20];

/// Maximum number of random queries, and of planted ones.
const QUERIES: usize = 100_000;

/// Maximum number of entries that the random queries of a radius read in total.
const COST: f64 = 5e8;

/// Bytes of a fingerprint and its id.
const ROW_BYTES: f64 = 12.0;

/// Number of pages of the source: 2^34.
const PAGES: u64 = 1 << 34;

/// Maximum size of the tables of a radius, in copies of the corpus.
const MOST_COPIES: f64 = 20.0;

const COLUMNS: &str = "fingerprints | k | design | leading bits | all tables, GB | a query: probes | \
    candidates expected | candidates | missed | build, s | queries/s";

/// The designs at the smaller size.
pub(super) fn judged(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let (table, rows) = designs(work, SIZES[0])?;
    let mut lines: Vec<ItemLine> = [("002-D1", 4), ("002-D2", 16), ("002-A1", 10), ("002-A1", 20)]
        .into_iter()
        .filter_map(|(item, tables)| designed(item, tables, &rows, true))
        .collect();
    let missed: usize = rows.iter().map(|(_, row)| row.missed).sum();
    let planted: usize = rows.iter().map(|(setting, _)| setting.queries).sum();
    lines.push(
        ItemLine::new("002-A1", "planted neighbours at distance 0 to 3 missed", "none, by the pigeonhole")
            .measured(format!("{missed} of {}", grouped(planted as u64)))
            .judged(Basis::Measured(PrintedClaim::none(missed)))
            .because(
                "A design names the leading bits of each table (block::hamming::Design::selections); \
                    evaluate::search::indexes::batch sorts, probes, checks and merges.",
            ),
    );
    lines.push(
        ItemLine::new("002-A1", "which distance is within", "\"less than k\", then \"at most k\"")
            .measured("at most k: planted neighbours at distance k are among those found")
            .judged(UnjudgedReason::Reading.checked(PrintedClaim::none(missed)))
            .because("The tables find distance k too, and the last step of the source keeps it."),
    );
    Ok(SectionAnswers { lines, tables: vec![table], plots: Vec::new() })
}

/// The designs at the larger size, and all radii at the smaller one.
pub(super) fn large(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let (mut table, rows) = designs(work, SIZES[1])?;
    table.name += "_large";
    let (radii, of_radii) = radii(work)?;
    let mut lines: Vec<ItemLine> = [("002-D1", 4), ("002-D2", 16)]
        .into_iter()
        .filter_map(|(item, tables)| designed(item, tables, &rows, false))
        .collect();
    let missed: usize = rows.iter().chain(&of_radii).map(|(_, row)| row.missed).sum();
    let planted: usize = rows.iter().chain(&of_radii).map(|(setting, _)| setting.queries).sum();
    lines.push(
        ItemLine::new("002-A1", "planted neighbours missed, k = 0 to 10", "none, by the pigeonhole")
            .measured(format!("{missed} of {}", grouped(planted as u64)))
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::none(missed)))
            .because("At one seed; k = 3 at the larger size, all others at the smaller one."),
    );
    if let Some((setting, row)) = rows.last() {
        let (tables, n) = (row.design.tables() as f64, setting.documents as f64);
        lines.push(
            ItemLine::new("002-A1", "space, in copies of the corpus", "t copies")
                .measured(format!(
                    "{:.1} for {tables} tables of {} fingerprints, {:.1} GB at {ROW_BYTES} bytes a row",
                    row.estimate.bytes / (n * ROW_BYTES),
                    grouped(setting.documents as u64),
                    row.estimate.bytes / 1e9
                ))
                .judged(UnjudgedReason::Arithmetic)
                .because(
                    "A product. Copies are built and dropped one after the other for a batch of queries, so \
                        that only up to two are in memory.",
                ),
        );
    }
    let plots = vec![candidates(&rows), speed(&of_radii)];
    Ok(SectionAnswers { lines, tables: vec![table, radii], plots })
}

/// Searches with their settings.
type Searches = Vec<(SearchSetting, SearchRow)>;

/// All numbers of tables at one size.
fn designs(work: &SectionContext<'_>, full: usize) -> Result<(ResultTable, Searches), EvaluateError> {
    let documents = work.size(full, 10_000);
    let mut table = ResultTable::new(
        "002_tables",
        &format!("Permuted tables on {} uniform fingerprints of 64 bits, k = 3", grouped(documents as u64)),
        "Each table is sorted, asked by all queries together and dropped; up to two at a time, each on a \
            thread of its own, and times are their sums. All tables together would take what the table says. \
            Of the queries half are random (counted and timed), half are planted at distance 0 to k \
            (missed).",
        COLUMNS,
    );
    let mut rows = Vec::new();
    let setting =
        SearchSetting { bits: 64, documents, queries: QUERIES.min(documents), seed: work.bench.seed };
    for tables in TABLES {
        (work.bench.progress)(&format!("002: {documents} fingerprints, {tables} tables"));
        let design = Design::permuted(64, 3, tables)?;
        for row in setting.batch(&[design], work.bench.clock, work.bench.threads)? {
            push(&mut table, &setting, &row);
            rows.push((setting, row));
        }
    }
    Ok((table, rows))
}

/// The cheapest design of each radius.
fn radii(work: &SectionContext<'_>) -> Result<(ResultTable, Searches), EvaluateError> {
    let documents = work.size(SIZES[0], 10_000);
    let mut table = ResultTable::new(
        "002_radii",
        "Every radius up to 10 on uniform fingerprints of 64 bits",
        "For each radius the design that is expected to be the cheapest within 20 copies of the corpus; \
            measured as above, with fewer queries where they read much.",
        COLUMNS,
    );
    let mut rows = Vec::new();
    for radius in 0..=10 {
        (work.bench.progress)(&format!("002: {documents} fingerprints, k = {radius}"));
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "some GB")]
        let budget_bytes = (documents as f64 * MOST_COPIES * ROW_BYTES) as u64;
        let workload = Workload {
            bits: 64,
            radius,
            documents: documents as u64,
            budget_bytes,
            form: DesignUse::Index,
            costs: Costs::default(),
        };
        let Some(best) = workload.best() else { continue };
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of queries")]
        let affordable = (COST / best.cost) as usize;
        let queries = QUERIES.min(affordable).min(documents).max(100);
        let setting = SearchSetting { bits: 64, documents, queries, seed: work.bench.seed };
        for row in setting.batch(&[best.design], work.bench.clock, work.bench.threads)? {
            push(&mut table, &setting, &row);
            rows.push((setting, row));
        }
    }
    Ok((table, rows))
}

fn push(table: &mut ResultTable, setting: &SearchSetting, row: &SearchRow) {
    let each = |count: u64| count as f64 / setting.queries as f64;
    let leading: Vec<String> = row.design.prefixes().keys().map(usize::to_string).collect();
    let leading = match &leading[..] {
        [only] => only.clone(),
        [first, .., last] => format!("{first} to {last}"),
        [] => String::new(),
    };
    table.push(row![
        setting.documents,
        row.design.radius(),
        row.design.to_string(),
        leading,
        row.estimate.bytes / 1e9,
        each(row.work.probes),
        row.estimate.candidates,
        each(row.work.entries),
        row.missed,
        row.build.as_secs_f64(),
        setting.queries as f64 / row.time.as_secs_f64().max(1e-9),
    ]);
}

/// Candidates of one design, and the expected number at 2^34.
fn designed(
    item: &'static str,
    tables: u64,
    rows: &[(SearchSetting, SearchRow)],
    is_judged: bool,
) -> Option<ItemLine> {
    // The leading bits of every table, as printed.
    let (printed, bits) = match tables {
        4 => ("2^(d-16) a probe", Some(16)),
        16 => ("2^(d-28) a probe", Some(28)),
        _ => ("not printed", None),
    };
    let (setting, row) = rows.iter().find(|(_, row)| row.design.tables() == tables)?;
    let (queries, n) = (setting.queries as f64, setting.documents as f64);
    let candidates = row.work.entries as f64 / queries;
    let formula = row.design.estimate(PAGES, DesignUse::Index).candidates;
    let near = |expected: f64| PrintedClaim::equal(1.0, candidates / expected, Matters::From(0.05));
    let basis = match bits {
        Some(bits) if is_judged => Basis::Measured(near(tables as f64 * n / f64::from(1_u32 << bits))),
        _ => UnjudgedReason::Shown.checked(near(row.estimate.candidates)),
    };
    let line = ItemLine::new(
        item,
        format!("{}, n = {}: candidates of a query", row.design, grouped(setting.documents as u64)),
        printed,
    )
    .measured(format!(
        "{candidates:.4}, expected {:.4}; at d = 34 {} in all ({} by the formula)",
        row.estimate.candidates,
        whole(candidates / n * PAGES as f64),
        whole(formula)
    ))
    .judged(basis)
    .because(
        "By the expected number: at this n the power of two times the tables. d = 34 is carried over by the \
            share of the corpus that a query reads.",
    );
    Some(line)
}

/// A number of candidates, rounded.
fn whole(number: f64) -> String {
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "some millions, not negative"
    )]
    let rounded = number.round() as u64;
    grouped(rounded)
}

fn candidates(rows: &[(SearchSetting, SearchRow)]) -> Plot {
    let mut series: Vec<Series> = Vec::new();
    for (setting, row) in rows {
        let each = row.work.entries as f64 / setting.queries as f64;
        for (what, value) in [("read", each), ("formula", row.estimate.candidates)] {
            let name = format!("{what}, {} fingerprints", grouped(setting.documents as u64));
            let point = (row.design.tables() as f64, value);
            match series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push(point),
                None => series.push(Series::new(name, vec![point])),
            }
        }
    }
    Plot::new(
        "002_d1_candidates",
        "Candidates of a query by the number of tables, k = 3",
        Axis::linear("tables"),
        Axis::log("candidates of a query"),
        series,
    )
}

fn speed(rows: &[(SearchSetting, SearchRow)]) -> Plot {
    let series = |name: &str, of: fn(&SearchSetting, &SearchRow) -> f64| {
        Series::new(name, rows.iter().map(|(setting, row)| (row.design.radius() as f64, of(setting, row))))
    };
    Plot::new(
        "002_a1_radii",
        "Every radius, its cheapest design",
        Axis::linear("k, bits"),
        Axis::log("of a query"),
        vec![
            series("candidates read", |setting, row| row.work.entries as f64 / setting.queries as f64),
            series("probes", |setting, row| row.work.probes as f64 / setting.queries as f64),
            series("microseconds", |setting, row| row.time.as_secs_f64() * 1e6 / setting.queries as f64),
        ],
    )
}
