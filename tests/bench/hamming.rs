//! Search by Hamming distance: the scan beside permuted tables and multi-index hashing, one query at a time
//! and in batches; alg.G and alg.H beside the scan. Read the figures as ratios within one run.
//!
//! `STUDY=n:f:r cargo bench --bench hamming` prints, instead of timing small cases, a table of designs for n
//! random fingerprints of f bits within the radius of similarity r, or within r bits where r is whole: build,
//! candidates beside their estimate, time, recall. For example `10000000:64:3`, `300000:400:0.7`.
//! `QUERIES=200` sets the number of queries.

#![expect(missing_docs, reason = "criterion's macros make undocumented items")]
#![expect(clippy::print_stdout, reason = "a study is a table to read")]

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group};
use dupflow::core::block::hamming::{Design, Form, Kind, radius};
use dupflow::core::time::{Clock, SystemClock};
use dupflow::lab::search::indexes::{SearchWork, batch, index};
use dupflow::lab::search::measured::{SearchSetting, random};

const DOCUMENTS: usize = 1_000_000;
const QUERIES: usize = 1000;

/// f = 64, k = 3.
fn simhash() -> Vec<Design> {
    let permuted = |tables| Design::permuted(64, 3, tables).expect("tables of the paper");
    let new = |kind| Design::new(64, 3, kind).expect("a design for 64 bits");
    let multi_index = |blocks| new(Kind::MultiIndex { blocks });
    vec![
        permuted(4),
        permuted(10),
        permuted(16),
        permuted(20),
        multi_index(2),
        multi_index(3),
        new(Kind::Scan),
    ]
}

/// Time a query.
fn one_by_one(c: &mut Criterion) {
    let (corpus, queries) = (random(64, DOCUMENTS, 1), random(64, QUERIES, 2));
    let mut group = c.benchmark_group("hamming/one by one, a million");
    for design in simhash() {
        let mut search = index(&design, &corpus).expect("few tables");
        let asked = if design.kind() == Kind::Scan { 10 } else { QUERIES };
        group.throughput(Throughput::Elements(asked as u64));
        group.bench_function(BenchmarkId::from_parameter(design), |bench| {
            let mut found = Vec::new();
            bench.iter(|| {
                queries.iter().take(asked).map(|(_, q)| search.within(q, &mut found).verified).sum::<u64>()
            });
        });
    }
    group.finish();
}

/// All pairs of a corpus, by queries one by one (index included) and by merging sorted tables.
fn pairs(c: &mut Criterion) {
    let corpus = random(64, DOCUMENTS / 4, 1);
    let mut group = c.benchmark_group("hamming/all pairs of 250,000");
    group.sample_size(10);
    for tables in [4, 10, 20] {
        let design = Design::permuted(64, 3, tables).expect("tables of the paper");
        group.bench_function(BenchmarkId::new("batch", tables), |bench| {
            bench.iter(|| batch::pairs(&design, &corpus, |_| {}).expect("few tables"));
        });
        group.bench_function(BenchmarkId::new("one by one", tables), |bench| {
            bench.iter(|| {
                let (mut search, mut found) = (index(&design, &corpus).expect("few tables"), Vec::new());
                corpus.iter().map(|(_, words)| search.within(words, &mut found).verified).sum::<u64>()
            });
        });
    }
    group.finish();
}

/// alg.G and alg.H where they are good and where they are not.
fn groups(c: &mut Criterion) {
    for similarity in [0.7, 0.9] {
        let mut group = c.benchmark_group(format!("hamming/30,000 of 400 bits at {similarity}"));
        group.sample_size(10);
        let (corpus, queries) = (random(400, 30_000, 1), random(400, 5, 2));
        for design in one_bit(400, radius(400, similarity)) {
            let mut search = index(&design, &corpus).expect("few tables");
            let mut found = Vec::new();
            group.bench_function(BenchmarkId::from_parameter(design), |bench| {
                bench
                    .iter(|| queries.iter().map(|(_, q)| search.within(q, &mut found).verified).sum::<u64>());
            });
        }
        group.finish();
    }
}

fn one_bit(bits: usize, radius: usize) -> Vec<Design> {
    [Kind::Scan, Kind::Groups { surplus: 3 }, Kind::Conjunctions { surplus: 3 }]
        .map(|kind| Design::new(bits, radius, kind).expect("three groups more than the radius"))
        .into()
}

/// What a look-up costs and what an entry, on tables of a million random fingerprints, which are beyond the
/// caches of a core.
fn costs(clock: &dyn Clock) -> String {
    let (corpus, queries) = (random(64, 1 << 20, 1), random(64, 20_000, 2));
    // With 32 bits a block nearly every look-up comes back with nothing; with 10 or 11 a query reads about
    // 4000 entries.
    let time = |blocks, radius, asked| {
        let design = Design::new(64, radius, Kind::OneLevel { blocks }).expect("blocks for 64 bits");
        let mut index = index(&design, &corpus).expect("few tables");
        let (mut found, mut work, start) = (Vec::new(), SearchWork::default(), clock.now());
        for (_, query) in queries.iter().take(asked) {
            work += index.within(query, &mut found);
        }
        ((clock.now() - start).as_nanos() as f64, work)
    };
    let (short, probes) = time(2, 1, 20_000);
    let (long, entries) = time(6, 5, 1_000);
    let probe = short / probes.probes as f64;
    let entry = (long - probe * entries.probes as f64) / entries.entries as f64;
    format!("{probe:.0} ns a look-up, {entry:.1} ns an entry: as much as {:.0}", probe / entry)
}

/// Prints what one query costs in each design.
fn study(what: &str) {
    let [documents, bits, near]: [&str; 3] =
        what.split(':').collect::<Vec<_>>().try_into().expect("STUDY=documents:bits:radius");
    let number = |text: &str| text.parse::<usize>().expect("a number");
    let bits = number(bits);
    let radius =
        near.parse().unwrap_or_else(|_| radius(bits, near.parse().expect("a radius or a similarity")));
    let designs = if (bits, radius) == (64, 3) { simhash() } else { one_bit(bits, radius) };
    let queries = std::env::var("QUERIES").map_or(200, |text| number(&text));
    // A scan of everything for each of many queries would take minutes.
    let scanned = number(documents) * queries <= 4_000_000_000;
    let clock = SystemClock::start();
    println!("{}", costs(&clock));
    println!(
        "{:<42} {:>8} {:>10} {:>12} {:>12} {:>12} {:>12} {:>10} {:>7} {:>16}",
        "design",
        "build s",
        "MB",
        "probes",
        "entries",
        "expected",
        "verified",
        "us/query",
        "missed",
        "results"
    );
    for design in designs.into_iter().filter(|design| scanned || design.kind() != Kind::Scan) {
        let rows =
            SearchSetting { bits, documents: number(documents), queries, seed: 1 }.run(&[design], &clock);
        let row = &rows.expect("few tables")[0];
        let each = |n: u64| n as f64 / queries as f64;
        println!(
            "{:<42} {:>8.2} {:>10.0} {:>12.1} {:>12.4} {:>12.4} {:>12.4} {:>10.2} {:>7} {:016x}",
            row.design.to_string(),
            row.build.as_secs_f64(),
            row.estimate.bytes / 1e6,
            each(row.work.probes),
            each(row.work.entries),
            design.estimate(number(documents) as u64, Form::Index).entries,
            each(row.work.verified),
            row.time.as_secs_f64() * 1e6 / queries as f64,
            row.missed,
            row.results,
        );
    }
}

criterion_group!(benches, one_by_one, pairs, groups);

fn main() {
    match std::env::var("STUDY") {
        Ok(what) => study(&what),
        Err(_) => {
            benches();
            Criterion::default().configure_from_args().final_summary();
        }
    }
}
