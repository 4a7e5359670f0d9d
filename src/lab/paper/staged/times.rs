//! F10, H3: times of comparisons with and without the filter, on pairs of the models and on a generated
//! corpus.
//!
//! All forms are the program's own filter on its own sketches: of the full 64 bits of each sample, a word
//! each, as in the source; and of 4 bits, in bit planes. Each comparison is of a query with many documents in
//! memory.

use std::borrow::Cow;
use std::hint::black_box;
use std::sync::Arc;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::{SETS, SIZE, THRESHOLDS, filter};
use crate::distribution::Distribution;
use crate::filter::pair::PairMatches;
use crate::generate::{Generator, Params};
use crate::paper::{Basis, ItemLine, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use crate::plot::{Axis, Plot, Series};
use crate::table::{ResultTable, row};
use crate::{EvaluateError, StudyContext, threads};
use dupflow_core::filter::{
    FilterError, FilterKind, FilterParams, PairFilter, Schedule, StagedFilter, Target,
};
use dupflow_core::hash::mix;
use dupflow_core::probability::Binomial;
use dupflow_core::sketch::agreement::Shape;
use dupflow_core::sketch::{SketchMaker, SketchRef};
use dupflow_core::text::{IdfTable, Terms};

/// Stored bits of a narrow sample.
const NARROW: usize = 4;

/// Stored bits of a full sample.
const WIDE: usize = 64;

/// Documents of a part, which takes less than a millisecond.
const PART: usize = 500;

/// Documents compared with the query, of each set.
const BESIDE: usize = 2000;

/// Documents of the corpus; the source has 1.2 million.
const CORPUS: usize = 40_000;

/// Number of queries of the corpus: documents at equal distances.
const QUERIES: usize = 12;

/// Sketches in one array.
struct SketchArena {
    size: usize,
    bits: usize,
    words: Vec<u64>,
}

impl SketchArena {
    fn new(size: usize, bits: usize) -> Self {
        Self { size, bits, words: Vec::new() }
    }

    fn length(&self) -> usize {
        Shape::components(self.size, self.bits).words()
    }

    fn len(&self) -> usize {
        self.words.len() / self.length()
    }

    fn get(&self, at: usize) -> SketchRef<'_> {
        SketchRef { words: &self.words[at * self.length()..][..self.length()], features: &[] }
    }

    /// The first `size` samples of these full-width sketches, each reduced to `bits` bits.
    fn cut(&self, size: usize, bits: usize) -> Self {
        let shape = Shape::components(size, bits);
        let sketches = self.words.chunks(self.length());
        Self { size, bits, words: sketches.flat_map(|words| shape.pack(&words[1..])).collect() }
    }

    /// The number of sketches that a filter accepts with a query.
    fn accepted(&self, filter: &StagedFilter, query: usize, documents: std::ops::Range<usize>) -> usize {
        let a = self.get(query);
        documents.filter(|at| filter.decide(a, self.get(*at)).accepted.is_some()).count()
    }
}

/// A filter for sketches of this shape; the looks of kind `paper` are the source's fractions of K.
fn staged(kind: FilterKind, threshold: f64, size: usize, bits: usize) -> Result<StagedFilter, FilterError> {
    let params = FilterParams { kind, error: Some(super::ERROR), ..FilterParams::default() };
    StagedFilter::new(Target::new(threshold, size, bits)?, &params)
}

/// Nanoseconds per pair of the five forms at one threshold.
#[derive(Clone, Copy, Debug)]
struct FormTimes {
    full: f64,
    paper: f64,
    staged: f64,
    narrow_full: f64,
    narrow_staged: f64,
}

impl FormTimes {
    /// Times of queries against all sketches.
    fn measure(
        bench: &StudyContext<'_>,
        wide: &SketchArena,
        queries: &[usize],
        threshold: f64,
    ) -> Result<Self, EvaluateError> {
        let narrow = wide.cut(wide.size, NARROW);
        let filter = |kind, arena: &SketchArena| staged(kind, threshold, arena.size, arena.bits);
        let forms = [
            (wide, filter(FilterKind::Full, wide)?),
            (wide, filter(FilterKind::Paper, wide)?),
            (wide, filter(FilterKind::Staged, wide)?),
            (&narrow, filter(FilterKind::Full, &narrow)?),
            (&narrow, filter(FilterKind::Staged, &narrow)?),
        ];
        let parts = wide.len().div_ceil(PART);
        let seconds = bench.times(forms.len(), queries.len() * parts, |form, at| {
            let (arena, decider) = &forms[form];
            let start = at % parts * PART;
            let documents = start..arena.len().min(start + PART);
            black_box(arena.accepted(decider, queries[at / parts], documents));
        });
        let pairs = (queries.len() * wide.len()) as f64;
        let [full, paper, staged, narrow_full, narrow_staged] =
            std::array::from_fn(|form| seconds[form] * 1e9 / pairs);
        Ok(Self { full, paper, staged, narrow_full, narrow_staged })
    }

    /// As a row, after the cells that identify it.
    fn row(self) -> Vec<crate::table::TableValue> {
        row![
            self.full,
            self.paper,
            self.full / self.paper,
            self.staged,
            self.full / self.staged,
            self.narrow_full,
            self.narrow_staged,
            self.narrow_full / self.narrow_staged,
        ]
    }
}

const COLUMNS: &str = "full, ns | source's filter, ns | times as fast | ours, ns | times as fast | 4 bits \
    full, ns | 4 bits ours, ns | times as fast";

const ABOUT: &str = "Nanoseconds a pair, one thread. \"source's filter\": its looks with corrected bounds; \
    \"ours\": the default filter. The first five columns are of 64 bits a sample, the last three of 4 bits \
    of the same samples; each ratio is to the full comparison of the same bits.";

/// A query, and documents whose similarities to it follow a distribution.
fn sketches(seed: u64, set: Distribution) -> SketchArena {
    let mut rng = ChaCha8Rng::seed_from_u64(mix(seed ^ mix(set as u64 + 77)));
    let mut arena = SketchArena::new(SIZE, WIDE);
    let shape = Shape::components(SIZE, WIDE);
    let query: Vec<u64> = (0..SIZE).map(|_| rng.random()).collect();
    arena.words.extend(shape.pack(&query));
    for _ in 0..BESIDE {
        let similarity = set.sample(&mut rng);
        let pair = PairMatches::draw(&mut rng, similarity, 0.0);
        let (_, differing) = pair.one_bit_sketches();
        let sample = |(j, sample): (usize, &u64)| {
            if differing[j / 64] >> (j % 64) & 1 == 1 { rng.random() } else { *sample }
        };
        let samples: Vec<u64> = query.iter().enumerate().map(sample).collect();
        arena.words.extend(shape.pack(&samples));
    }
    arena
}

/// 000-F10.
pub(super) fn by_set(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let mut table =
        ResultTable::new("000_f10_times", "000-F10: time by set and threshold", ABOUT, "T | pairs");
    add_columns(&mut table);
    let mut series: Vec<Series> = SETS.iter().map(|set| Series::new(set.name(), Vec::new())).collect();
    let arenas = SETS.map(|set| sketches(work.bench.seed, set));
    // For each set and threshold: the fraction that the first look decides, and the samples read per pair.
    // Neither is a time.
    let mut decided_and_read: Vec<(f64, f64)> = Vec::new();
    let mut nanoseconds = Vec::new();
    for threshold in THRESHOLDS {
        let schedule = filter(threshold)?;
        let mut by_set = Vec::new();
        for ((set, arena), line) in SETS.iter().zip(&arenas).zip(&mut series) {
            let times = FormTimes::measure(work.bench, arena, &[0], threshold)?;
            let mut row = row![threshold, set.name()];
            row.extend(times.row());
            table.push(row);
            line.points.push((threshold, times.full / times.paper));
            by_set.push(times.paper);
            decided_and_read.push((
                set.expectation(|s| first_look(&schedule, s)),
                set.expectation(|s| schedule.operation(s).components),
            ));
        }
        nanoseconds.push(by_set.iter().map(|time| format!("{time:.0}")).collect::<Vec<_>>().join(" / "));
    }
    series.iter_mut().for_each(|series| series.points.reverse());
    let plot = Plot::new(
        "000_f10_ratios",
        "000-F10: how much faster the source's filter is than the full comparison",
        Axis::linear("T"),
        Axis::linear("times as fast"),
        series,
    );
    let read = |of: usize| decided_and_read[of].1;
    let [high, middle, low] =
        [0, 3, 6].map(|at| PrintedClaim::least(1.0, &[read(at + 2), read(at), read(at + 1)]));
    let cheapest = high.and(middle).and(low);
    let shown = |of: &dyn Fn(usize) -> f64| -> String {
        let of_threshold =
            |at| (3 * at..3 * at + 3).map(|n| format!("{:.0}", of(n))).collect::<Vec<_>>().join(" / ");
        (0..THRESHOLDS.len()).map(of_threshold).collect::<Vec<_>>().join("; ")
    };
    let all_read = shown(&read);
    let rates = shown(&|of| 100.0 * decided_and_read[of].0);
    decided_and_read.sort_by(|a, b| b.0.total_cmp(&a.0));
    let by_rate: Vec<f64> = decided_and_read.iter().map(|(_, samples)| *samples).collect();
    let lines = vec![
        ItemLine::new(
            "000-F10",
            "the source's filter at T = 0.8; 0.5; 0.3, UNIFORM / GAUSSIAN / FUNDS, a pair",
            "seconds, lost",
        )
        .measured(format!("{} ns", nanoseconds.join("; ")))
        .judged(UnjudgedReason::Timed)
        .because("On the models; the ratios to the full comparison are in table 000_f10_times."),
        ItemLine::new(
            "000-F10",
            "the cheapest set, by the samples that are read of a pair: the same sets and thresholds",
            "FUNDS",
        )
        .measured(all_read)
        .judged(Basis::Measured(cheapest))
        .because(
            "By counts, since times change with the load. At T = 0.3 UNIFORM pairs end sooner: many \
                FUNDS-like ones lie near the threshold.",
        ),
        ItemLine::new(
            "000-F10",
            "what the time follows, in samples read, from the set and threshold with the highest rate at k = \
                100 on",
            "the filtering rate",
        )
        .measured(format!("rates {rates} %; samples, the highest rate first: {}", listed(&by_rate)))
        .judged(Basis::Measured(PrintedClaim::rises(0.9, &by_rate)))
        .because(
            "By counts. A set that is decided at the first look more often is read less, but for a tenth.",
        ),
    ];
    Ok(SectionAnswers { lines, tables: vec![table], plots: vec![plot] })
}

/// Numbers, rounded.
fn listed(numbers: &[f64]) -> String {
    numbers.iter().map(|number| format!("{number:.0}")).collect::<Vec<_>>().join(", ")
}

/// The probability that the first look decides a pair of a similarity.
fn first_look(schedule: &Schedule, similarity: f64) -> f64 {
    let look = schedule.looks()[0];
    let tails = Binomial::new(look.components as usize, similarity);
    tails.below(look.reject_below as usize) + tails.at_least(look.accept_from as usize)
}

fn add_columns(table: &mut ResultTable) {
    let columns = ResultTable::new("", "", "", COLUMNS).columns;
    table.columns.extend(columns);
}

/// The corpus as consistent weighted samples of its TF-IDF weights, and the seconds to compute them.
fn proposals(work: &SectionContext<'_>) -> Result<(SketchArena, f64), EvaluateError> {
    let params = Params::for_texts(work.size(CORPUS, 400) as u64, work.bench.seed);
    let params = Params { min_words: 60, max_words: 240, ..params };
    let texts: Vec<String> =
        Generator::new(params).filter_map(|record| record.event.text).map(Cow::into_owned).collect();
    let scheme = work.bench.planner.plan("paper", &[])?.scheme;
    let start = work.bench.clock.now();
    let mut maker = SketchMaker::new(&scheme);
    let terms: Vec<Terms> = texts.iter().filter_map(|text| maker.terms(text)).collect();
    let table = Arc::new(IdfTable::count(terms.iter().map(|text| &text.ids)));
    let task = |chunk: usize| {
        let mut own = SketchMaker::new(&scheme);
        let some = terms.chunks(PART).nth(chunk).unwrap_or_default();
        let sketch =
            |text: &Terms| own.sketch_terms(text, &table, &[]).map(|(_, sketch)| sketch.words.to_vec());
        some.iter().filter_map(sketch).flatten().collect::<Vec<u64>>()
    };
    let mut arena = SketchArena::new(scheme.sketch.size, scheme.sketch.bits);
    for words in threads::map(work.bench.threads, terms.len().div_ceil(PART), task) {
        arena.words.extend(words);
    }
    let seconds = work.bench.clock.now().saturating_sub(start).as_secs_f64();
    Ok((arena, seconds))
}

/// 000-H3.
pub(super) fn corpus(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let (arena, sketching) = proposals(work)?;
    let documents = arena.len();
    let pairs = (documents * (documents - 1) / 2) as f64;
    let queries: Vec<usize> = (0..QUERIES).map(|query| query * documents / QUERIES).collect();
    let mut table = ResultTable::new(
        "000_h3_corpus",
        "000-H3: a generated corpus",
        &format!(
            "{documents} generated proposals of 60 to 240 words, a third of them near-duplicates or copies; \
                {QUERIES} of them compared with all. {ABOUT}"
        ),
        "K | T",
    );
    add_columns(&mut table);
    let mut whole = ResultTable::new(
        "000_h3_all_pairs",
        "000-H3: all pairs of the corpus",
        "Seconds: making the sketches (K = 1000, text included), and comparing all pairs on one thread, from \
            the times above.",
        "T | pairs | sketches, s | full, s | source's filter, s | ours, s | 4 bits full, s | 4 bits ours, s",
    );
    let mut headline = None;
    let mut series = Vec::new();
    for size in [200, 500, SIZE] {
        let cut = arena.cut(size, WIDE);
        for threshold in THRESHOLDS {
            let times = FormTimes::measure(work.bench, &cut, &queries, threshold)?;
            let mut row = row![size, threshold];
            row.extend(times.row());
            table.push(row);
            if size == SIZE {
                let all = |nanoseconds: f64| nanoseconds * pairs / 1e9;
                whole.push(row![
                    threshold,
                    pairs,
                    sketching,
                    all(times.full),
                    all(times.paper),
                    all(times.staged),
                    all(times.narrow_full),
                    all(times.narrow_staged),
                ]);
                headline = headline.or(Some(times));
            }
            if threshold.total_cmp(&THRESHOLDS[0]).is_eq() {
                series.push((size as f64, times));
            }
        }
    }
    let line = |name: &str, of: &dyn Fn(&FormTimes) -> f64| {
        Series::new(name, series.iter().map(|(size, times)| (*size, of(times))))
    };
    let plot = Plot::new(
        "000_h3_lengths",
        "000-F10, 000-H3: time a pair by length of the signature, T = 0.8",
        Axis::linear("K, samples"),
        Axis::log("ns a pair"),
        vec![
            line("full, 64 bits", &|times| times.full),
            line("source's filter, 64 bits", &|times| times.paper),
            line("ours, 64 bits", &|times| times.staged),
            line("full, 4 bits", &|times| times.narrow_full),
            line("ours, 4 bits", &|times| times.narrow_staged),
        ],
    );
    let times = headline.expect("the longest signature is among them");
    let lines = vec![
        ItemLine::new(
            "000-H3",
            "comparing with and without the source's filter",
            "about 5000 s and 280 s, 17.9 times",
        )
        .measured(format!(
            "{:.0} and {:.0} ns a pair, {:.1} times",
            times.full,
            times.paper,
            times.full / times.paper
        ))
        .judged(UnjudgedReason::Timed)
        .because(
            "A generated corpus at K = 1000, T = 0.8, the program's sketches of 64 bits; the source's 1.2 \
                million proposals are private.",
        ),
        ItemLine::new("000-H3", "the same with our filter", "-")
            .measured(format!(
                "{:.1} times on 64 bits; 4 bits {:.1} times on the same bits, {:.0} times beside 64 bits in \
                    full",
                times.full / times.staged,
                times.narrow_full / times.narrow_staged,
                times.full / times.narrow_staged
            ))
            .judged(UnjudgedReason::Timed)
            .because("What is above the ratio on the same bits comes of the narrower samples."),
        ItemLine::new(
            "000-H3",
            "comparisons of samples a second, without the filter",
            "2E10: 10^11 pairs of 1000 in 5000 s",
        )
        .measured(format!("{:.1e}", SIZE as f64 / times.full * 1e9))
        .judged(UnjudgedReason::Timed)
        .because("Here on one thread; section 6.4 of the source has 10^8 pairs, not 10^11."),
    ];
    Ok(SectionAnswers { lines, tables: vec![table, whole], plots: vec![plot] })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A cut sketch equals a sketch of that shape.
    #[test]
    fn a_cut_keeps_the_first_samples_and_planes() {
        let mut arena = SketchArena::new(200, WIDE);
        let samples: Vec<u64> = (0..400).map(mix).collect();
        let (wide, narrow) = (Shape::components(200, WIDE), Shape::components(70, 2));
        arena.words = samples.chunks(200).flat_map(|samples| wide.pack(samples)).collect();
        let cut = arena.cut(70, 2);
        let expected: Vec<u64> = samples.chunks(200).flat_map(|samples| narrow.pack(samples)).collect();
        assert_eq!((cut.words.clone(), cut.len(), cut.get(1).words), (expected, 2, &cut.words[4..]));
    }
}
