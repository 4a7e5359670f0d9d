//! 002-H1: the best distance for 64 bits, on pairs of known similarity.

use super::super::super::plot::{Axis, Series};
use super::super::super::table::{ResultTable, row};
use super::super::super::{EvaluateError, Plot};
use super::super::{ItemLine, SectionAnswers, SectionContext, UnjudgedReason};
use super::texts::{PairSimilarities, each_pair, generate};
use dupflow_core::block::hamming::distance;
use dupflow_core::sketch::{SimHash, Sketcher, Ties};

const ITEM: &str = "002-H1";

/// Number of texts at full scale.
const TEXTS: usize = 4000;

/// Maximum fraction of words that are changed; a half gives pairs of every similarity.
const EDITS: f64 = 0.5;

/// Decides whether a pair is right.
type IsRight = fn(PairSimilarities) -> bool;

/// The definitions of right, with names.
const TRUTHS: [(&str, IsRight); 2] =
    [("cosine >= 0.95", |truth| truth.cosine >= 0.95), ("J of 3 words >= 0.8", |truth| truth.jaccard >= 0.8)];

/// Number of distances that are shown, from 0.
const DISTANCES: usize = 11;

/// Pairs by their distance: all, and those that are right by each definition.
type DistanceCounts = [[u64; 3]; 65];

#[derive(Clone, Copy)]
struct PairCounts(DistanceCounts);

impl Default for PairCounts {
    fn default() -> Self {
        Self([[0; 3]; 65])
    }
}

pub(super) fn make(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let texts = generate(work.size(TEXTS, 400), EDITS, work.bench.seed);
    let mut sketcher = SimHash::new(64, Ties::default(), work.bench.seed);
    let prints: Vec<Vec<u64>> = texts
        .iter()
        .map(|text| {
            let mut words = Vec::new();
            sketcher.sketch(text.words(), &mut words);
            words
        })
        .collect();
    let visit = |PairCounts(counts): &mut PairCounts, (a, b): (usize, usize), truth: PairSimilarities| {
        let [all, right @ ..] = &mut counts[distance(&prints[a], &prints[b])];
        *all += 1;
        for (count, (_, is_right)) in right.iter_mut().zip(TRUTHS) {
            *count += u64::from(is_right(truth));
        }
    };
    let add = |PairCounts(all): &mut PairCounts, PairCounts(more): PairCounts| {
        all.iter_mut().flatten().zip(more.iter().flatten()).for_each(|(sum, count)| *sum += count);
    };
    let PairCounts(counts) = each_pair(&texts, work.bench.threads, visit, add);
    Ok(shown(&counts, texts.len()))
}

fn shown(counts: &DistanceCounts, texts: usize) -> SectionAnswers {
    let within = |k: usize, column: usize| counts[..=k].iter().map(|count| count[column]).sum::<u64>();
    let share = |part: u64, whole: u64| part as f64 / whole.max(1) as f64;
    let quality = |k: usize, truth: usize| {
        (share(within(k, truth), within(k, 0)), share(within(k, truth), within(64, truth)))
    };
    let mut table = ResultTable::new(
        "002_h1_distances",
        "Precision and recall by distance, 64 bits",
        &format!(
            "All pairs of {texts} generated pages of 40 to 400 words, half of them edits of another one with \
                up to half of their words changed. SimHash of words, weighed by TF-IDF; the cosine is of the \
                same weights."
        ),
        "k | pairs within k | precision, cosine | recall, cosine | precision, J | recall, J",
    );
    let mut series: Vec<Series> = Vec::new();
    for (truth, (name, _)) in (1..).zip(TRUTHS) {
        for (what, of) in [("precision", 0), ("recall", 1)] {
            let point = |k| {
                let (precision, recall) = quality(k, truth);
                (k as f64, if of == 0 { precision } else { recall })
            };
            series.push(Series::new(format!("{what}, {name}"), (0..DISTANCES).map(point)));
        }
    }
    for k in 0..DISTANCES {
        let [(p, r), (q, s)] = [1, 2].map(|truth| quality(k, truth));
        table.push(row![k, within(k, 0), p, r, q, s]);
    }
    let lines = (1..)
        .zip(TRUTHS)
        .map(|(truth, (name, _))| {
            let (precision, recall) = quality(3, truth);
            let f = |k| {
                let (p, r) = quality(k, truth);
                2.0 * p * r / (p + r).max(f64::MIN_POSITIVE)
            };
            let best = (0..64).max_by(|a, b| f(*a).total_cmp(&f(*b))).unwrap_or(0);
            ItemLine::new(
                ITEM,
                format!("64 bits within 3, {name}"),
                "just right for 8E9 pages, no numbers",
            )
            .measured(format!(
                "precision {precision:.3}, recall {recall:.3} ({} pairs are right); F is best at k = {best}",
                within(64, truth)
            ))
            .judged(UnjudgedReason::StandIn)
            .because(
                "Generated pages, judged by their true similarity: a cosine of 0.95 is 6.5 bits apart on \
                    average, so within 3 much is missed.",
            )
        })
        .chain([
            ItemLine::new(ITEM, "bits that tell 8E9 pages apart: log2 of 8E9", "34")
                .measured(format!("{:.1}", 8e9_f64.log2()))
                .judged(UnjudgedReason::Reading)
                .because(
                    "33 bits are enough, and 34 are of 1.7E10 pages; the number of pages is garbled too.",
                ),
            ItemLine::new(ITEM, "what is within the radius", "less than 3")
                .measured("3 is within the radius")
                .judged(UnjudgedReason::Reading)
                .because("The last step of its own algorithm has \"at most k\"."),
        ])
        .collect();
    SectionAnswers {
        lines,
        tables: vec![table],
        plots: vec![Plot::new(
            "002_h1_quality",
            "Precision and recall by distance, 64 bits",
            Axis::linear("k, bits"),
            Axis::linear("share"),
            series,
        )],
    }
}
