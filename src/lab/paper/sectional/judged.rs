//! Precision, recall and F on labelled corpora: tables 2 and 4, figures 6 and 7.

use std::collections::BTreeMap;

use super::super::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use super::corpora::{FRAMED, LabelledFeatures, corpora, data_set};
use super::error::name;
use super::printed::{JUDGED, PrintedQuality, THRESHOLDS};
use crate::plot::{Axis, Plot, Series};
use crate::table::{ResultTable, row};
use crate::{EvaluateError, StudyContext, threads};
use dupflow_core::doc::DocId;
use dupflow_core::oracle;
use dupflow_core::sketch::{SectionBase, SectionMode, SketchKind, SketchParams};
use dupflow_core::text::Features;

/// k.
const SIZE: usize = 500;

/// Steps of an estimate from 0 to 1 for curves of precision over recall; two for each component.
const STEPS: usize = 2 * SIZE;

/// Recalls at which precision is compared, in percent.
const RECALLS: [f64; 5] = [30.0, 40.0, 50.0, 60.0, 70.0];

/// Pairs, and those of them with one label: above each threshold, and at each step of the estimate.
#[derive(Clone, Debug)]
struct PairCounts {
    above: [(usize, usize); THRESHOLDS.len()],
    at: Vec<(usize, usize)>,
}

impl PairCounts {
    fn new() -> Self {
        Self { above: Default::default(), at: vec![(0, 0); STEPS + 1] }
    }

    fn add(&mut self, similarity: f64, is_right: bool) {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "from 0 to STEPS")]
        let step = (similarity.clamp(0.0, 1.0) * STEPS as f64).round() as usize;
        let above = THRESHOLDS.iter().zip(&mut self.above).filter(|(tau, _)| similarity > **tau);
        for (found, hits) in above.map(|(_, counts)| counts).chain([&mut self.at[step]]) {
            *found += 1;
            *hits += usize::from(is_right);
        }
    }

    fn and(mut self, other: &Self) -> Self {
        let added = other.above.iter().chain(&other.at);
        for (mine, more) in self.above.iter_mut().chain(&mut self.at).zip(added) {
            *mine = (mine.0 + more.0, mine.1 + more.1);
        }
        self
    }
}

/// The results of one sketch on one corpus, in percent.
#[derive(Clone, Debug)]
struct QualityCurve {
    name: String,
    /// By tau.
    precision: [f64; THRESHOLDS.len()],
    /// By tau.
    recall: [f64; THRESHOLDS.len()],
    /// Precision at each of [`RECALLS`], by the highest threshold that has it.
    at_recall: [f64; RECALLS.len()],
}

impl QualityCurve {
    fn new(name: String, counts: &PairCounts, right: usize) -> Self {
        let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        let (mut all, mut same) = (0, 0);
        let mut points = Vec::new();
        for (more, right_ones) in counts.at.iter().rev() {
            (all, same) = (all + more, same + right_ones);
            points.push((share(same, right), share(same, all)));
        }
        let at = |recall: f64| points.iter().find(|point| point.0 >= recall).map_or(0.0, |point| point.1);
        Self {
            name,
            precision: counts.above.map(|(found, hits)| share(hits, found)),
            recall: counts.above.map(|(_, hits)| share(hits, right)),
            at_recall: RECALLS.map(at),
        }
    }

    fn f(&self) -> [f64; THRESHOLDS.len()] {
        std::array::from_fn(|tau| {
            let (p, r) = (self.precision[tau], self.recall[tau]);
            if p + r > 0.0 { 2.0 * p * r / (p + r) } else { 0.0 }
        })
    }
}

/// The sketches of table 4, in its order.
fn sketches(seed: u64) -> Vec<SketchParams> {
    let params = |kind, bits| SketchParams { kind, size: SIZE, bits, wide: 0, seed };
    let sectional = |sections| {
        params(SketchKind::Sectional { sections, mode: SectionMode::Attach, base: SectionBase::MinHash }, 32)
    };
    let mut all = vec![params(SketchKind::MinHash, 32), params(SketchKind::MinHash, 1)];
    all.extend((2..=5).map(sectional));
    all
}

/// All pairs of a corpus by a sketch.
fn found(bench: &StudyContext<'_>, corpus: &LabelledFeatures, params: &SketchParams) -> PairCounts {
    let n = corpus.features.len();
    let words = threads::map(bench.threads, n.div_ceil(16), |chunk| {
        let mut sketcher = params.sketcher();
        let texts = corpus.features[16 * chunk..].iter().take(16);
        let sketch = |text: &Vec<u64>| {
            let mut words = Vec::new();
            sketcher.sketch(Features::set(text), &mut words);
            words
        };
        texts.map(sketch).collect::<Vec<_>>()
    })
    .concat();
    let estimator = params.estimator();
    let of_rows = threads::map(bench.threads, n, |a| {
        let mut found = PairCounts::new();
        for b in 0..a {
            found.add(estimator.estimate(&words[a], &words[b]), corpus.labels[a] == corpus.labels[b]);
        }
        found
    });
    of_rows.iter().fold(PairCounts::new(), PairCounts::and)
}

/// All pairs of a corpus by exact similarities: J, and q J of s = 2.
fn exact(corpus: &LabelledFeatures) -> [PairCounts; 2] {
    let id = |n: usize| DocId::new(&n.to_string()).expect("short, and not empty");
    let documents: BTreeMap<DocId, Vec<u64>> =
        corpus.features.iter().enumerate().map(|(n, features)| (id(n), features.clone())).collect();
    let label: BTreeMap<DocId, usize> =
        corpus.labels.iter().enumerate().map(|(n, label)| (id(n), *label)).collect();
    let by_set = oracle::pairs(documents.clone(), THRESHOLDS[0]);
    let by_sections = oracle::sectional_pairs(&documents, 2, SectionMode::Attach, THRESHOLDS[0]);
    [by_set, by_sections].map(|pairs| {
        let mut found = PairCounts::new();
        pairs.iter().for_each(|(pair, s)| found.add(*s, label[pair.lo()] == label[pair.hi()]));
        found
    })
}

/// Every sketch of table 4 on a corpus, in its order, then J and q J.
fn judge(work: &SectionContext<'_>, corpus: &LabelledFeatures) -> Vec<QualityCurve> {
    let right = corpus.right();
    let all = sketches(work.bench.seed);
    let mut curves: Vec<QualityCurve> = JUDGED
        .iter()
        .zip(&all)
        .map(|(printed, params)| {
            QualityCurve::new(printed.name.to_owned(), &found(work.bench, corpus, params), right)
        })
        .collect();
    let [by_set, by_sections] = exact(corpus);
    curves.push(QualityCurve::new("J, exact".to_owned(), &by_set, right));
    curves.push(QualityCurve::new(format!("q J of {}, exact", name(2)), &by_sections, right));
    curves
}

/// Numbers by tau.
fn listed(values: impl IntoIterator<Item = f64>) -> String {
    values.into_iter().map(|value| format!("{value:.2}")).collect::<Vec<_>>().join(" ")
}

/// Where a row increases with tau.
fn rises(row: &[f64; THRESHOLDS.len()]) -> bool {
    row.windows(2).any(|two| two[1] > two[0])
}

/// What a row has more than another, by tau.
fn more<const N: usize>(ours: [f64; N], theirs: [f64; N]) -> [f64; N] {
    std::array::from_fn(|at| ours[at] - theirs[at])
}

/// Tables 2 and 4, figures 6 and 7.
pub(super) fn labelled(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let corpora = corpora(work)?;
    let mut made = data_set(&corpora);
    let printed: Vec<QualityCurve> = JUDGED
        .iter()
        .map(|of| QualityCurve {
            name: of.name.to_owned(),
            precision: of.precision,
            recall: of.recall,
            at_recall: [f64::NAN; RECALLS.len()],
        })
        .collect();
    made.plots.extend(curve_plots("printed", &printed));
    made.lines.extend(contradictions(&printed));
    for corpus in &corpora {
        let curves = judge(work, corpus);
        made.tables.push(table(corpus.name, &curves));
        made.plots.extend(curve_plots(&corpus.name.replace(' ', "_"), &curves));
        // The user's own corpus is only in the tables and plots.
        match corpus.name {
            "generated" => made.lines.extend(recalls(&curves)),
            FRAMED => made.lines.extend(precise(&curves)),
            _ => continue,
        }
        made.lines.extend(figures(corpus.name, &printed, &curves[..JUDGED.len()]));
    }
    Ok(made)
}

fn table(corpus: &str, curves: &[QualityCurve]) -> ResultTable {
    let mut table = ResultTable::new(
        &format!("004_t4_{}", corpus.replace(' ', "_")),
        &format!("Table 4: precision and recall (%), k = 500, {corpus}"),
        "Right are pairs of one label. Estimates above tau count, as in the paper.",
        "sketch | tau | printed precision | precision | printed recall | recall | F of the print | F",
    );
    for (at, curve) in curves.iter().enumerate() {
        let printed: Option<&PrintedQuality> = JUDGED.get(at);
        for (n, tau) in THRESHOLDS.iter().enumerate() {
            table.push(row![
                curve.name.as_str(),
                *tau,
                printed.map(|of| of.precision[n]),
                curve.precision[n],
                printed.map(|of| of.recall[n]),
                curve.recall[n],
                printed.map(|of| of.f(n)),
                curve.f()[n],
            ]);
        }
    }
    table
}

/// What the printed table says beside itself, and beside the text.
fn contradictions(printed: &[QualityCurve]) -> Vec<ItemLine> {
    let rising = |of: &dyn Fn(&QualityCurve) -> [f64; THRESHOLDS.len()]| -> Vec<&str> {
        printed.iter().filter(|curve| rises(&of(curve))).map(|curve| curve.name.as_str()).collect()
    };
    let (of_recall, of_f) = (rising(&|of| of.recall), rising(&QualityCurve::f));
    let minhash = &printed[0];
    let less = printed[2..].iter().flat_map(|of| more(of.precision, minhash.precision));
    let less = less.filter(|more| *more < 0.0).count();
    let of_three = more(printed[3].f(), minhash.f()).into_iter().filter(|more| *more > 0.0).count();
    let line = |item, of: &str, said: &str| ItemLine::new(item, of, said);
    vec![
        line("004-T4", "sketches whose printed recall rises with tau", "none can")
            .measured(of_recall.join(", "))
            .judged(Basis::Computed(PrintedClaim::none(of_recall.len())))
            .because("a pair above the higher tau is above the lower one"),
        line("004-T4", "sectional precision below MinHash's, of 20 cells of the printed table", "none")
            .measured(less.to_string())
            .judged(Basis::Computed(PrintedClaim::none(less)))
            .because("print beside print: text and table contradict each other"),
        line("004-F7", "best F of the printed table", "87.05 (s = 2, tau = 0.5)")
            .measured(best(printed))
            .judged(UnjudgedReason::Arithmetic)
            .because("print beside print: it is the harmonic mean of its precision and recall"),
        line("004-F7", "sketches whose F rises with tau, printed table", "none")
            .measured(of_f.join(", "))
            .judged(UnjudgedReason::Arithmetic)
            .because("print beside print: it follows from the recalls that rise"),
        line("004-F7", "tau of 5 at which s = 3 has more F than MinHash, printed table", "most")
            .measured(of_three.to_string())
            .judged(UnjudgedReason::Arithmetic)
            .because("print beside print; at tau = 0.7 by 0.1"),
    ]
}

fn best(of: &[QualityCurve]) -> String {
    let all = of
        .iter()
        .flat_map(|curve| THRESHOLDS.into_iter().zip(curve.f()).map(move |(tau, f)| (f, &curve.name, tau)));
    let best = all.max_by(|a, b| a.0.total_cmp(&b.0));
    best.map_or_else(String::new, |(f, name, tau)| format!("{f:.2} ({name}, tau = {tau})"))
}

/// Recall of table 4.
fn recalls(curves: &[QualityCurve]) -> Vec<ItemLine> {
    let line = |of: String, printed: String| ItemLine::new("004-T4", of, printed);
    let stand_in = |(curve, printed): (&QualityCurve, &PrintedQuality)| {
        line(format!("recall of {}, tau = 0.5 to 0.9", curve.name), listed(printed.recall))
            .measured(listed(curve.recall))
            .judged(UnjudgedReason::StandIn)
            .because("other texts, other shares of each kind of edit")
    };
    let mut lines: Vec<ItemLine> = curves.iter().zip(&JUDGED).map(stand_in).collect();
    for of in [2, 3] {
        let above = |more: &[f64]| more.iter().filter(|more| **more > 0.0).count();
        let printed = more(JUDGED[of].recall, JUDGED[0].recall);
        let measured = more(curves[of].recall, curves[0].recall);
        // Where the print has more, the same has to come out.
        let claimed = printed.iter().zip(measured).filter(|(print, _)| **print > 0.0);
        let claimed: Vec<f64> = claimed.map(|(_, own)| own).collect();
        lines.push(
            line(
                format!("recall of {} less MinHash's, percentage points", JUDGED[of].name),
                format!("{}: above 0 at {} of 5 tau", listed(printed), above(&printed)),
            )
            .measured(listed(measured))
            .judged(Basis::Defined(PrintedClaim::at_least(0.0, &claimed)))
            .because(
                "on the same permutations (equation 23) the sectional estimate never exceeds MinHash's, and \
                    nor does its recall; other permutations move it by tenths, not by up to 24 points",
            ),
        );
    }
    lines
}

/// Precision of table 4, on the corpus in frames.
fn precise(curves: &[QualityCurve]) -> Vec<ItemLine> {
    let line = |of: &str, printed: String| ItemLine::new("004-T4", format!("in frames: {of}"), printed);
    let sketched = &curves[..JUDGED.len()];
    let least = |all: &mut dyn Iterator<Item = f64>| all.fold(100.0, f64::min);
    let printed_least = least(&mut JUDGED.iter().flat_map(|of| of.precision));
    let measured_least = least(&mut sketched.iter().flat_map(|curve| curve.precision));
    let exact = &curves[JUDGED.len()];
    let apart = more(exact.precision, curves[0].precision);
    let mut lines: Vec<ItemLine> = [0, 2]
        .map(|at| {
            line(&format!("precision of {}, tau = 0.5 to 0.9", JUDGED[at].name), listed(JUDGED[at].precision))
                .measured(listed(curves[at].precision))
                .judged(UnjudgedReason::StandIn)
                .because("other texts; short pages of one site are alike")
        })
        .into();
    let of_sections: Vec<f64> =
        sketched[2..].iter().flat_map(|curve| more(curve.precision, curves[0].precision)).collect();
    let furthest = of_sections.iter().copied().fold(0.0, f64::min);
    lines.extend([
        line("least precision of all sketches", format!("{printed_least:.2}"))
            .measured(format!("{measured_least:.2}"))
            .judged(UnjudgedReason::StandIn)
            .because("it depends on how much of a page is its site's"),
        line("precision of J itself, tau = 0.5 to 0.9", "-".to_owned())
            .measured(listed(exact.precision))
            .judged(
                UnjudgedReason::Shown
                    .checked(PrintedClaim::each(apart.map(|apart| (0.0, apart)), Matters::From(5.0))),
            )
            .because(
                "so it is the similarity that errs and not the sketch: checked against MinHash's, in \
                    percentage points",
            ),
        line("sectional precision less MinHash's, percentage points, 20 cells", "never below".to_owned())
            .measured(format!("{furthest:.2} or more"))
            .judged(Basis::Measured(PrintedClaim::at_least(-0.1, &of_sections)))
            .because(
                "a tenth of a point would matter: the printed precisions differ by as much. What two pages \
                    of a site have in common stands at other places where the articles differ in length",
            ),
    ]);
    lines
}

/// Figures 6 and 7 on a corpus.
fn figures(corpus: &str, printed: &[QualityCurve], sketched: &[QualityCurve]) -> Vec<ItemLine> {
    let line = |item, of: String, said: String| ItemLine::new(item, of, said);
    let of_two = sketched[2].at_recall;
    let others = [0, 1, 3, 4, 5].map(|at| more(of_two, sketched[at].at_recall));
    let others: Vec<f64> = RECALLS
        .iter()
        .enumerate()
        .map(|(at, _)| others.iter().map(|other| other[at]).fold(f64::MAX, f64::min))
        .collect();
    let ahead = more(sketched[3].f(), sketched[0].f());
    let ahead_at = ahead.iter().filter(|more| **more > 0.0).count();
    let steps = sketched.iter().map(|curve| PrintedClaim::falls(1.0, &curve.f()));
    let falls = steps.reduce(PrintedClaim::and);
    let rising: Vec<&str> =
        sketched.iter().filter(|curve| rises(&curve.f())).map(|curve| curve.name.as_str()).collect();
    let mut lines = vec![
        line(
            "004-F6",
            format!(
                "precision of s = 2 less the best of the others' at recalls of 30, 40, 50, 60, 70 %, \
                    percentage points: {corpus}"
            ),
            "s = 2 ahead of all, so above 0".to_owned(),
        )
        .measured(listed(others.iter().copied()))
        .judged(Basis::Measured(PrintedClaim::at_least(0.1, &others)))
        .because(
            "ahead: by a tenth of a point; at equal recall q J follows the curve of J, from a lower tau",
        ),
        line("004-F7", format!("best F: {corpus}"), "87.05 (s = 2, tau = 0.5)".to_owned())
            .measured(best(sketched))
            .judged(UnjudgedReason::StandIn)
            .because("other texts"),
        line(
            "004-F7",
            format!("tau of 5 at which s = 3 has more F than MinHash: {corpus}"),
            "in most cases".to_owned(),
        )
        .measured(ahead_at.to_string())
        .judged(Basis::Measured(PrintedClaim::at_least(3.0, &[ahead_at as f64])))
        .because("at one tau q J finds less than J does"),
    ];
    lines.extend(falls.map(|falls| {
        line("004-F7", format!("sketches whose F rises with tau: {corpus}"), "none".to_owned())
            .measured(if rising.is_empty() { "none".to_owned() } else { rising.join(", ") })
            .judged(Basis::Measured(falls))
            .because("precision is near 100 % at each tau, and recall falls")
    }));
    if corpus != FRAMED {
        lines.extend(printed.iter().zip(sketched).map(|(of, curve)| {
            line(
                "004-F7",
                format!("F of {}, tau = 0.5 to 0.9", of.name),
                format!("{} (of table 4)", listed(of.f())),
            )
            .measured(listed(curve.f()))
            .judged(UnjudgedReason::StandIn)
            .because("the figure is lost; F is computed from table 4")
        }));
    }
    lines
}

/// The points of table 4 as lines.
fn curve_plots(name: &str, curves: &[QualityCurve]) -> [Plot; 2] {
    let plot = |figure: &str, title: &str, [x, y]: [&str; 2], series: Vec<Series>| {
        Plot::new(
            format!("004_{figure}_{name}"),
            format!("{title}, {name}"),
            Axis::linear(x),
            Axis::linear(y),
            series,
        )
    };
    let series = |of: fn(&QualityCurve, usize) -> (f64, f64)| -> Vec<Series> {
        let points = |curve| (0..THRESHOLDS.len()).map(move |n| of(curve, n));
        curves.iter().map(|curve| Series::new(curve.name.clone(), points(curve))).collect()
    };
    [
        plot(
            "f6",
            "Figure 6: precision over recall, k = 500",
            ["recall (%)", "precision (%)"],
            series(|curve, n| (curve.recall[n], curve.precision[n])),
        ),
        plot(
            "f7",
            "Figure 7: F, k = 500",
            ["tau", "F (%)"],
            series(|curve, n| (THRESHOLDS[n], curve.f()[n])),
        ),
    ]
}
