//! Benches of the filter: cutting a sketch into bands; deciding a pair by stages and by the full comparison;
//! merging features with an early end and with a plain merge.
//!
//! The mix of similarities is that of a scan of web-like documents: nearly all pairs have almost nothing in
//! common.
//!
//! The group `one query` compares one query with 20,000 documents in memory, more than the nearer caches
//! hold, at T = 0.8 and with the similarities of each distribution of `dupflow evaluate filter`. The first
//! form compares all components of 64 bits. The other forms store 4 bits or 1 bit of the same 1000
//! components, or of the first 448 (pipeline `minhash`), in planes, or 64 bits, one word each. The program's
//! own filter decides:
//!
//! - by all components, document by document;
//! - by the paper's looks, or staged, in the same way;
//! - as the program does: first words from a column, then the words of the remaining documents, prefetched
//!   together.
//!
//! The group `candidates` measures pairs as banding selects them, whose sketches are at random addresses: the
//! cost and the savings of looks in the program. It prints a table and measures nothing by criterion.
//!
//! Criterion measures one form after the other, so other load of the machine distorts the ratios. The numbers
//! in the docs are therefore printed first, in one table: each round measures all forms in turn, and the
//! least time of each form counts.

#![expect(missing_docs, reason = "criterion's macros make undocumented items")]
#![expect(clippy::print_stdout, reason = "the table is what the bench is for")]

use std::hint::black_box;

use criterion::{BatchSize, Criterion, Throughput, criterion_group, criterion_main};
use dupflow::core::block::{Banding, Blocking, HotRule};
use dupflow::core::filter::{
    FilterKind, FilterParams, PairFilter, Schedule, StagedFilter, Target, shared_features,
};
use dupflow::core::hash::mix;
use dupflow::core::sketch::agreement::Shape;
use dupflow::core::sketch::kernel::Kernel;
use dupflow::core::sketch::{Sketch, SketchRef};
use dupflow::core::time::{Clock, SystemClock};
use dupflow::lab::distribution::Distribution;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

const SIZE: usize = 1024;
const PAIRS: usize = 1000;

/// Pairs of one-bit sketches at similarities drawn from `similarity`.
fn pairs(mut similarity: impl FnMut(&mut StdRng) -> f64) -> Vec<(Sketch, Sketch)> {
    let mut rng = StdRng::seed_from_u64(1);
    let pair = |_| {
        let s = similarity(&mut rng);
        let a: Vec<u64> = (0..SIZE / 64).map(|_| rng.random()).collect();
        let change = |word: &u64| {
            (0..64).fold(*word, |word, bit| word ^ u64::from(rng.random_bool((1.0 - s) / 2.0)) << bit)
        };
        let b = a.iter().map(change).collect();
        let sketch = |words| Sketch { words, features: [].into() };
        (sketch(a.into()), sketch(b))
    };
    (0..PAIRS).map(pair).collect()
}

/// Shares of similarities like those of pairs of fund reports: 97 % near nothing, 3 % near-duplicates.
fn mixed(rng: &mut StdRng) -> f64 {
    if rng.random_bool(0.97) { rng.random_range(0.0..0.1) } else { rng.random_range(0.8..1.0) }
}

fn decide(c: &mut Criterion) {
    let filter = |kind| {
        let params = FilterParams { kind, ..FilterParams::default() };
        StagedFilter::new(Target::new(0.8, SIZE, 1).expect("a threshold"), &params)
            .expect("default parameters")
    };
    let filters = [("staged", FilterKind::Staged), ("paper", FilterKind::Paper), ("full", FilterKind::Full)]
        .map(|(n, k)| (n, filter(k)));
    let portable = Kernel::scalar(SIZE, 1);
    let corpora =
        [("0.02", pairs(|_| 0.02)), ("0.3", pairs(|_| 0.3)), ("0.8", pairs(|_| 0.8)), ("mix", pairs(mixed))];
    for (name, corpus) in &corpora {
        let mut group = c.benchmark_group(format!("filter/1000 pairs at {name}"));
        for (kind, staged) in &filters {
            group.bench_function(*kind, |bench| {
                bench.iter(|| {
                    corpus
                        .iter()
                        .filter(|(a, b)| staged.decide(a.view(), b.view()).accepted.is_some())
                        .count()
                });
            });
        }
        // A program without looks and without kernels.
        group.bench_function("naive", |bench| {
            let accept = |(a, b): &&(Sketch, Sketch)| portable.differing(&a.words, &b.words, 0, SIZE) <= 102;
            bench.iter(|| corpus.iter().filter(accept).count());
        });
        // The block operator: only the first words, through the trait.
        group.bench_function("first word", |bench| {
            let staged: &dyn PairFilter = &filters[0].1;
            let passes = |(a, b): &&(Sketch, Sketch)| staged.first_word(a.words[0], b.words[0]);
            bench.iter(|| corpus.iter().filter(passes).count());
        });
        group.finish();
    }
}

/// Components of a document in `one query`, and documents.
const WIDE: usize = 1000;
const DOCUMENTS: usize = 20_000;

/// Documents whose first words are tested before the words of the remaining ones are fetched.
const TOGETHER: usize = 250;

/// Rounds of the table; each round measures every form once.
const ROUNDS: usize = 60;

/// One query and many documents at random similarities, full-width components in rows.
struct Rows {
    query: Vec<u64>,
    documents: Vec<Vec<u64>>,
}

impl Rows {
    fn draw(distribution: Distribution) -> Self {
        let mut rng = StdRng::seed_from_u64(3);
        let query: Vec<u64> = (0..WIDE).map(|_| rng.random()).collect();
        let documents = (0..DOCUMENTS).map(|_| {
            let similarity = distribution.sample(&mut rng);
            query.iter().map(|x| if rng.random_bool(similarity) { *x } else { rng.random() }).collect()
        });
        Self { documents: documents.collect(), query }
    }

    /// Number of documents that the full comparison accepts.
    fn full(&self, least: usize) -> usize {
        let equal =
            |row: &Vec<u64>| row.iter().zip(&self.query).map(|(x, y)| usize::from(x == y)).sum::<usize>();
        self.documents.iter().filter(|row| equal(row) >= least).count()
    }

    /// The low bits of the first `size` components, hashed again, as the program stores them.
    fn sketches(&self, size: usize, bits: usize) -> (Sketch, Vec<Sketch>) {
        let pack = |row: &Vec<u64>| packed(&row[..size].iter().map(|x| mix(*x)).collect::<Vec<_>>(), bits);
        (pack(&self.query), self.documents.iter().map(pack).collect())
    }
}

/// A sketch of the low bits of these components.
fn packed(components: &[u64], bits: usize) -> Sketch {
    Sketch { words: Shape::components(components.len(), bits).pack(components).into(), features: [].into() }
}

/// Sketches in one arena, as the program stores them, and their first words.
struct Planes {
    length: usize,
    query: Sketch,
    words: Vec<u64>,
    first: Vec<u64>,
}

impl Planes {
    fn new(rows: &Rows, size: usize, bits: usize) -> Self {
        let (query, documents) = rows.sketches(size, bits);
        let first = documents.iter().map(|sketch| sketch.words[0]).collect();
        Self {
            length: query.words.len(),
            query,
            words: documents.iter().flat_map(|s| s.words.to_vec()).collect(),
            first,
        }
    }

    fn document(&self, document: usize) -> SketchRef<'_> {
        SketchRef { words: &self.words[document * self.length..][..self.length], features: &[] }
    }

    fn one_by_one(&self, filter: &StagedFilter) -> usize {
        let accepts = |d: &usize| filter.decide(self.query.view(), self.document(*d)).accepted.is_some();
        (0..DOCUMENTS).filter(accepts).count()
    }

    /// Tests first words from their column, without a branch; then prefetches the remaining sketches; then
    /// decides.
    fn as_the_program(&self, filter: &StagedFilter) -> usize {
        let word = self.query.words[0];
        let accepts =
            |d: &&usize| filter.decide_passed(self.query.view(), self.document(**d)).accepted.is_some();
        let (mut accepted, mut left) = (0, [0; TOGETHER]);
        for (first, start) in self.first.chunks_exact(TOGETHER).zip((0..).step_by(TOGETHER)) {
            let mut passes = [0; TOGETHER];
            for (pass, other) in passes.iter_mut().zip(first) {
                *pass = usize::from(filter.first_word(word, *other));
            }
            let mut count = 0;
            for (document, pass) in (start..).zip(passes) {
                left[count] = document;
                count += pass;
            }
            black_box(left[..count].iter().fold(0, |sum, document| sum ^ self.words[document * self.length]));
            accepted += left[..count].iter().filter(accepts).count();
        }
        accepted
    }

    fn first_words(&self, filter: &StagedFilter) -> usize {
        self.first.iter().filter(|first| filter.first_word(self.query.words[0], **first)).count()
    }
}

/// The least time of each form over many rounds, in nanoseconds for each document.
fn least(forms: &[(String, &dyn Fn() -> usize)]) -> Vec<f64> {
    let clock = SystemClock::start();
    let mut times = vec![f64::MAX; forms.len()];
    for _ in 0..ROUNDS {
        for (time, (_, form)) in times.iter_mut().zip(forms) {
            let start = clock.now();
            black_box(form());
            *time = time.min((clock.now() - start).as_secs_f64() * 1e9 / DOCUMENTS as f64);
        }
    }
    times
}

/// One query against many documents; the docs give ratios to the full comparison of the same bits.
fn one_query(c: &mut Criterion) {
    let target = |size, bits| Target::new(0.8, size, bits).expect("a threshold");
    let full_width = target(WIDE, 64).least_matches();
    println!(
        "| K | bits | pairs | form | time (ns/pair) | times as fast as the full comparison of the same bits \
        | of 64 bits |"
    );
    println!("|---:|---:|---|---|---:|---:|---:|");
    for distribution in Distribution::ALL {
        let rows = Rows::draw(distribution);
        let mut group = c.benchmark_group(format!("one query/{}", distribution.name()));
        group.throughput(Throughput::Elements(DOCUMENTS as u64)).sample_size(20);
        group.bench_function("full comparison", |bench| bench.iter(|| rows.full(full_width)));
        // Measured separately: its 160 MB would leave the caches cold for the next form.
        let wide = least(&[("full comparison".to_owned(), &|| rows.full(full_width))])[0];
        for (size, bits) in [(448, 4), (WIDE, 4), (448, 1), (WIDE, 1), (WIDE, 64)] {
            let staged = |kind| {
                let params = FilterParams { kind, ..FilterParams::default() };
                StagedFilter::new(target(size, bits), &params).expect("default parameters")
            };
            let [full, paper, staged] = [FilterKind::Full, FilterKind::Paper, FilterKind::Staged].map(staged);
            let planes = Planes::new(&rows, size, bits);
            assert_eq!(
                planes.as_the_program(&staged),
                planes.one_by_one(&staged),
                "both forms accept the same"
            );
            let name = |form: &str| format!("{size} components of {bits} bits, {form}");
            let (plain, papers) = (|| planes.one_by_one(&full), || planes.one_by_one(&paper));
            let (in_rows, program) = (|| planes.one_by_one(&staged), || planes.as_the_program(&staged));
            let first_words = || planes.first_words(&staged);
            let forms: [(String, &dyn Fn() -> usize); 5] = [
                (name("full comparison"), &plain),
                (name("the paper's filter"), &papers),
                (name("in rows"), &in_rows),
                (name("as the program"), &program),
                (name("first words alone"), &first_words),
            ];
            let times = least(&forms);
            for ((of_form, _), time) in forms.iter().zip(&times) {
                let form = of_form.rsplit(", ").next().expect("a name");
                let (same, of_wide) = (times[0] / time, wide / time);
                let pairs = distribution.name();
                println!("| {size} | {bits} | {pairs} | {form} | {time:.2} | {same:.2} | {of_wide:.1} |");
            }
            for (of_form, form) in &forms {
                group.bench_function(of_form, |bench| bench.iter(form));
            }
        }
        group.finish();
    }
}

/// Number of sketches, at random addresses; more than the caches hold.
const APART: usize = 400_000;

/// Partners that a sketch is compared with at a time, as in the dataflow.
const PARTNERS: usize = 8;

/// Candidates as banding selects them, with sketches that are not in a cache: the mixture that the default
/// looks are chosen by.
struct Candidates {
    length: usize,
    words: Vec<u64>,
    /// A sketch, and its partners.
    groups: Vec<(usize, [usize; PARTNERS])>,
}

impl Candidates {
    fn draw(target: &Target) -> Self {
        let mut rng = StdRng::seed_from_u64(5);
        let density: Vec<(f64, f64)> = target.candidates().collect();
        let similarity = |at: f64| {
            let mut left = at;
            density.iter().find(|(_, share)| (left, left -= share).0 < *share).map_or(1.0, |(s, _)| *s)
        };
        let (size, bits) = (target.size(), target.bits());
        let mut words = Vec::new();
        let mut groups: Vec<(usize, [usize; PARTNERS])> = Vec::new();
        let mut places: Vec<usize> = (0..APART).collect();
        for i in (1..APART).rev() {
            places.swap(i, rng.random_range(0..=i));
        }
        let mut sketches: Vec<Sketch> = Vec::with_capacity(APART);
        for group in places.chunks_exact(1 + PARTNERS) {
            let query: Vec<u64> = (0..size).map(|_| rng.random()).collect();
            sketches.push(packed(&query, bits));
            for _ in 0..PARTNERS {
                let s = similarity(rng.random_range(0.0..1.0));
                let near: Vec<u64> =
                    query.iter().map(|x| if rng.random_bool(s) { *x } else { rng.random() }).collect();
                sketches.push(packed(&near, bits));
            }
            let partners = std::array::from_fn(|i| group[1 + i]);
            groups.push((group[0], partners));
        }
        let length = sketches[0].words.len();
        words.resize(APART * length, 0);
        for (place, sketch) in places.iter().zip(&sketches) {
            words[place * length..][..length].copy_from_slice(&sketch.words);
        }
        Self { length, words, groups }
    }

    fn get(&self, at: usize) -> SketchRef<'_> {
        SketchRef { words: &self.words[at * self.length..][..self.length], features: &[] }
    }

    /// Compares as the program does: first words; then prefetches the beginnings of the remaining sketches
    /// together; then decides.
    fn accepted(&self, filter: &StagedFilter) -> usize {
        let mut accepted = 0;
        for (query, partners) in &self.groups {
            let a = self.get(*query);
            let passed = partners.map(|at| self.get(at));
            black_box(passed.iter().fold(0, |all, b| all ^ b.words[0]));
            for b in passed {
                accepted += usize::from(filter.decide(a, b).accepted.is_some());
            }
        }
        accepted
    }
}

/// Measures the cost and the savings of looks on candidates.
fn candidates(_: &mut Criterion) {
    println!("| K | bits | T | looks | time (ns/candidate) |");
    println!("|---:|---:|---:|---|---:|");
    let clock = SystemClock::start();
    for (size, bits, threshold) in [(448, 4, 0.8), (448, 4, 0.5), (256, 8, 0.8), (1024, 1, 0.8)] {
        let target = Target::new(threshold, size, bits).expect("a threshold");
        let candidates = Candidates::draw(&target);
        let every = |step: usize| (2 * step.min(64)..size).step_by(step).collect::<Vec<_>>();
        let mut forms =
            [vec![], every(64), every(128), vec![256], vec![128, 256], target.default_looks(1e-5)];
        forms.iter_mut().for_each(|looks| looks.retain(|k| *k < size));
        let filters: Vec<StagedFilter> = forms
            .iter()
            .map(|looks| {
                let looks = [&looks[..], &[size]].concat();
                StagedFilter::from_schedule(Schedule::sequential(target, &looks, true, 1e-5))
            })
            .collect();
        let mut times = vec![f64::MAX; filters.len()];
        for _ in 0..7 {
            for (time, filter) in times.iter_mut().zip(&filters) {
                let start = clock.now();
                black_box(candidates.accepted(filter));
                let pairs = (candidates.groups.len() * PARTNERS) as f64;
                *time = time.min((clock.now() - start).as_secs_f64() * 1e9 / pairs);
            }
        }
        for (looks, time) in forms.iter().zip(times) {
            println!("| {size} | {bits} | {threshold} | {looks:?} | {time:.1} |");
        }
    }
}

/// Two ascending lists with this similarity, of 1150 features together.
fn features(similarity: f64) -> (Vec<u64>, Vec<u64>) {
    let mut rng = StdRng::seed_from_u64(2);
    let (mut a, mut b) = (Vec::new(), Vec::new());
    for x in (0..1150).map(mix) {
        let both = rng.random_bool(similarity);
        let first = rng.random_bool(0.5);
        if both || first {
            a.push(x);
        }
        if both || !first {
            b.push(x);
        }
    }
    a.sort_unstable();
    b.sort_unstable();
    (a, b)
}

fn naive_merge(a: &[u64], b: &[u64]) -> usize {
    let (mut i, mut j, mut common) = (0, 0, 0);
    while i < a.len() && j < b.len() {
        match a[i].cmp(&b[j]) {
            std::cmp::Ordering::Less => i += 1,
            std::cmp::Ordering::Greater => j += 1,
            std::cmp::Ordering::Equal => (i, j, common) = (i + 1, j + 1, common + 1),
        }
    }
    common
}

fn merge(c: &mut Criterion) {
    for similarity in [0.3, 0.6, 0.85, 1.0] {
        let mut group = c.benchmark_group(format!("features/1150 at {similarity}"));
        let lists = features(similarity);
        // J >= 0.8, of 1150 in the union.
        let needed = (lists.0.len() + lists.1.len()) * 4 / 9;
        // A new copy each time; otherwise the branch predictor learns the one pair.
        let fresh = |shift: &mut u64| {
            *shift += 1;
            let turn = |list: &[u64]| {
                let mut turned: Vec<u64> = list.iter().map(|x| mix(x ^ *shift)).collect();
                turned.sort_unstable();
                turned
            };
            (turn(&lists.0), turn(&lists.1))
        };
        let mut shift = 0;
        group.bench_function("merge", |bench| {
            bench.iter_batched(
                || fresh(&mut shift),
                |(a, b)| shared_features(black_box(&a), black_box(&b), needed),
                BatchSize::SmallInput,
            );
        });
        group.bench_function("naive", |bench| {
            bench.iter_batched(
                || fresh(&mut shift),
                |(a, b)| naive_merge(black_box(&a), black_box(&b)) >= needed,
                BatchSize::SmallInput,
            );
        });
        group.finish();
    }
}

/// The cost of every distinct sketch: one key for each band.
fn keys(c: &mut Criterion) {
    for (size, bits, bands, rows) in [(1024, 1, 44, 22), (256, 8, 26, 8), (256, 64, 26, 8)] {
        let shape = Shape::components(size, bits);
        let banding = Banding::new(size, bands, rows, HotRule::NEVER).by_word(shape.by_word());
        let words: Vec<u64> = (0..shape.words() as u64).map(mix).collect();
        let mut out = Vec::new();
        c.bench_function(&format!("keys/{bands} bands of {rows} rows of {bits} bits"), |bench| {
            bench.iter(|| {
                out.clear();
                banding.keys(black_box(SketchRef { words: &words, features: &[] }), &mut out);
                out.len()
            });
        });
    }
}

/// The cost of a schedule, once for each pipeline.
fn plan(c: &mut Criterion) {
    for size in [256, 1024, 4096] {
        let target = Target::new(0.8, size, 1).expect("a threshold");
        c.bench_function(&format!("schedule/{size}"), |bench| {
            bench.iter(|| StagedFilter::new(target, &FilterParams::default()));
        });
    }
}

criterion_group!(benches, keys, decide, candidates, one_query, merge, plan);
criterion_main!(benches);
