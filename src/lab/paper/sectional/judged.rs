//! Precision, recall and F on labelled corpora: table 4, figures 6 and 7.

use std::collections::BTreeMap;

use super::super::{
    Basis, ItemLine, PrintedClaim, SectionAnswers, SectionContext, Tolerance, UnjudgedReason,
};
use super::corpora::{FRAMED, LabelledFeatures, corpora};
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

/// Pairs above each threshold, and those of them with one label.
#[derive(Clone, Copy, Debug, Default)]
struct ThresholdCounts([(usize, usize); THRESHOLDS.len()]);

impl ThresholdCounts {
    fn add(&mut self, similarity: f64, is_right: bool) {
        for (tau, (found, hits)) in THRESHOLDS.iter().zip(&mut self.0) {
            if similarity > *tau {
                *found += 1;
                *hits += usize::from(is_right);
            }
        }
    }

    fn and(mut self, other: &Self) -> Self {
        for (mine, theirs) in self.0.iter_mut().zip(&other.0) {
            *mine = (mine.0 + theirs.0, mine.1 + theirs.1);
        }
        self
    }
}

/// The results of one sketch on one corpus, in percent by tau.
#[derive(Clone, Debug)]
struct QualityCurve {
    name: String,
    precision: [f64; THRESHOLDS.len()],
    recall: [f64; THRESHOLDS.len()],
}

impl QualityCurve {
    fn new(name: String, found: &ThresholdCounts, right: usize) -> Self {
        let share = |part: usize, whole: usize| 100.0 * part as f64 / whole.max(1) as f64;
        Self {
            name,
            precision: found.0.map(|(found, hits)| share(hits, found)),
            recall: found.0.map(|(_, hits)| share(hits, right)),
        }
    }

    fn f(&self, tau: usize) -> f64 {
        let (p, r) = (self.precision[tau], self.recall[tau]);
        if p + r > 0.0 { 2.0 * p * r / (p + r) } else { 0.0 }
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
fn found(bench: &StudyContext<'_>, corpus: &LabelledFeatures, params: &SketchParams) -> ThresholdCounts {
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
        let mut found = ThresholdCounts::default();
        for b in 0..a {
            found.add(estimator.estimate(&words[a], &words[b]), corpus.labels[a] == corpus.labels[b]);
        }
        found
    });
    of_rows.iter().fold(ThresholdCounts::default(), ThresholdCounts::and)
}

/// All pairs of a corpus by exact similarities: J, and q J of s = 2.
fn exact(corpus: &LabelledFeatures) -> [ThresholdCounts; 2] {
    let id = |n: usize| DocId::new(&n.to_string()).expect("short, and not empty");
    let documents: BTreeMap<DocId, Vec<u64>> =
        corpus.features.iter().enumerate().map(|(n, features)| (id(n), features.clone())).collect();
    let label: BTreeMap<DocId, usize> =
        corpus.labels.iter().enumerate().map(|(n, label)| (id(n), *label)).collect();
    let by_set = oracle::pairs(documents.clone(), THRESHOLDS[0]);
    let by_sections = oracle::sectional_pairs(&documents, 2, SectionMode::Attach, THRESHOLDS[0]);
    [by_set, by_sections].map(|pairs| {
        let mut found = ThresholdCounts::default();
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

pub(super) fn precision_and_recall(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let mut made = SectionAnswers::default();
    for corpus in corpora(work)? {
        let curves = judge(work, &corpus);
        let mut table = ResultTable::new(
            &format!("004_t4_{}", corpus.name.replace(' ', "_")),
            &format!("Table 4: precision and recall (%), k = 500, {}", corpus.name),
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
                    curve.f(n),
                ]);
            }
        }
        made.tables.push(table);
        made.lines.extend(if corpus.name == FRAMED {
            precise(&curves)
        } else if made.lines.is_empty() {
            lines(&curves)
        } else {
            Vec::new()
        });
    }
    Ok(made)
}

/// How many of `ours` are below the corresponding number of `theirs`.
fn below(ours: impl IntoIterator<Item = f64>, theirs: impl IntoIterator<Item = f64>) -> usize {
    ours.into_iter().zip(theirs).filter(|(ours, theirs)| ours + 1e-9 < *theirs).count()
}

/// The lines of table 4 from the curves of the first corpus.
fn lines(curves: &[QualityCurve]) -> Vec<ItemLine> {
    let line = |of: &str, printed: String| ItemLine::new("004-T4", of, printed);
    let mut lines: Vec<ItemLine> = curves
        .iter()
        .zip(&JUDGED)
        .map(|(curve, printed)| {
            line(&format!("recall of {}, tau = 0.5 to 0.9", curve.name), listed(printed.recall))
                .measured(listed(curve.recall))
                .judged(UnjudgedReason::StandIn.checked(PrintedClaim::Falls(1.0, curve.recall.to_vec())))
                .because("other texts, other shares of each kind of edit")
        })
        .collect();
    for of in [2, 3] {
        let printed = below(JUDGED[0].recall, JUDGED[of].recall);
        let measured = below(curves[0].recall, curves[of].recall);
        let what = format!("recall of {} above MinHash's, of 5 tau", JUDGED[of].name);
        lines.push(
            line(&what, printed.to_string())
                .measured(measured.to_string())
                .judged(Basis::Exact(PrintedClaim::equal(printed as f64, measured as f64, Tolerance::Exact)))
                .because(
                    "on the same permutations (equation 23) the sectional estimate never exceeds MinHash's, \
                        and nor does its recall",
                ),
        );
    }
    let printed: Vec<&str> = JUDGED.iter().filter(|of| rises(&of.recall)).map(|of| of.name).collect();
    let rising = curves.iter().filter(|of| rises(&of.recall)).count();
    lines.push(
        line("sketches whose recall rises with tau", printed.join(", "))
            .measured(rising.to_string())
            .judged(Basis::Exact(PrintedClaim::equal(printed.len() as f64, rising as f64, Tolerance::Exact)))
            .because("a pair above the higher tau is above the lower one"),
    );
    lines
}

/// The lines on the precision of table 4 from the curves of the corpus in frames.
fn precise(curves: &[QualityCurve]) -> Vec<ItemLine> {
    let line = |of: &str, printed: String| ItemLine::new("004-T4", format!("in frames: {of}"), printed);
    let sketched = &curves[..JUDGED.len()];
    let least = |all: &mut dyn Iterator<Item = f64>| all.fold(100.0, f64::min);
    let printed_least = least(&mut JUDGED.iter().flat_map(|of| of.precision));
    let measured_least = least(&mut sketched.iter().flat_map(|curve| curve.precision));
    let exact = &curves[JUDGED.len()];
    let cells = |of: &dyn Fn(usize) -> [f64; THRESHOLDS.len()]| -> usize {
        (2..JUDGED.len()).map(|at| below(of(at), of(0))).sum()
    };
    let (printed, measured) = (cells(&|at| JUDGED[at].precision), cells(&|at| curves[at].precision));
    let recalled = below(curves[0].recall, curves[2].recall);
    let mut lines: Vec<ItemLine> = [0, 2]
        .map(|at| {
            line(&format!("precision of {}, tau = 0.5 to 0.9", JUDGED[at].name), listed(JUDGED[at].precision))
                .measured(listed(curves[at].precision))
                .judged(
                    UnjudgedReason::StandIn
                        .checked(PrintedClaim::AtMost(99.9, vec![curves[at].precision[0]])),
                )
                .because("checked: below 100 % at tau = 0.5, where short pages of one site are alike")
        })
        .into();
    lines.extend([
        line("least precision of all sketches", format!("{printed_least:.2}"))
            .measured(format!("{measured_least:.2}"))
            .judged(UnjudgedReason::StandIn.checked(PrintedClaim::AtMost(99.9, vec![measured_least])))
            .because("it depends on how much of a page is its site's"),
        line("precision of J itself, tau = 0.5 to 0.9", "-".to_owned())
            .measured(listed(exact.precision))
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::each(
                exact.precision.into_iter().zip(curves[0].precision),
                Tolerance::Within(5.0),
            )))
            .because(
                "so it is the similarity that errs and not the sketch: checked against MinHash's, in \
                    percentage points",
            ),
        line("sectional precision below MinHash's, of 20 cells", format!("{printed}, said to be none"))
            .measured(measured.to_string())
            .judged(Basis::Measured(PrintedClaim::none(measured)))
            .because(
                "what two pages of a site have in common stands at other places where the articles differ in \
                    length",
            ),
        line("recall of s = 2 above MinHash's, of 5 tau", "5".to_owned())
            .measured(recalled.to_string())
            .judged(Basis::Exact(PrintedClaim::equal(5.0, recalled as f64, Tolerance::Exact)))
            .because("on the same permutations it is never above"),
    ]);
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
        plot("f7", "Figure 7: F, k = 500", ["tau", "F (%)"], series(|curve, n| (THRESHOLDS[n], curve.f(n)))),
    ]
}

pub(super) fn curves(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let printed: Vec<QualityCurve> = JUDGED
        .iter()
        .map(|of| QualityCurve { name: of.name.to_owned(), precision: of.precision, recall: of.recall })
        .collect();
    let mut plots: Vec<Plot> = curve_plots("printed", &printed).into();
    let mut judged: Vec<(&str, Vec<QualityCurve>)> = Vec::new();
    for corpus in corpora(work)? {
        let curves = judge(work, &corpus);
        plots.extend(curve_plots(&corpus.name.replace(' ', "_"), &curves));
        judged.push((corpus.name, curves));
    }
    let best = |of: &[QualityCurve]| {
        let all = of
            .iter()
            .flat_map(|curve| (0..THRESHOLDS.len()).map(move |n| (curve.f(n), &curve.name, THRESHOLDS[n])));
        let best = all.max_by(|a, b| a.0.total_cmp(&b.0));
        best.map_or_else(String::new, |(f, name, tau)| format!("{f:.2} ({name}, tau = {tau})"))
    };
    let mut lines = Vec::new();
    // The user's own corpus is only in the tables and plots.
    for (name, curves) in &judged[..2] {
        let f = |curve: &QualityCurve| (0..THRESHOLDS.len()).map(|n| curve.f(n)).collect::<Vec<_>>();
        let ahead = below(f(&curves[0]), f(&curves[2]));
        lines.push(
            ItemLine::new(
                "004-F6",
                format!("tau at which the F of s = 2 is above MinHash's, of 5: {name}"),
                "5: ahead of all",
            )
            .measured(ahead.to_string())
            .judged(Basis::Measured(PrintedClaim::equal(5.0, ahead as f64, Tolerance::Exact)))
            .because(
                "at one tau q J finds less than J does, of right pairs and of wrong ones; it follows \
                    MinHash's curve, from a lower tau",
            ),
        );
    }
    lines.push(
        ItemLine::new("004-F7", "best F", "87.05 (s = 2, tau = 0.5)")
            .measured(format!("of the printed table {}", best(&printed)))
            .judged(UnjudgedReason::Construction)
            .because("print beside print: it is the harmonic mean of its precision and recall"),
    );
    for (name, curves) in &judged[..2] {
        lines.push(
            ItemLine::new("004-F7", format!("best F: {name}"), "87.05 (s = 2, tau = 0.5)")
                .measured(best(&curves[..JUDGED.len()]))
                .judged(UnjudgedReason::StandIn)
                .because("other texts"),
        );
    }
    let sketched = &judged[0].1[..JUDGED.len()];
    lines.extend(printed.iter().zip(sketched).map(|(of, curve)| {
        let row = |one: &QualityCurve| listed((0..THRESHOLDS.len()).map(|n| one.f(n)));
        ItemLine::new(
            "004-F7",
            format!("F of {}, tau = 0.5 to 0.9", of.name),
            format!("{} (of table 4)", row(of)),
        )
        .measured(row(curve))
        .judged(UnjudgedReason::StandIn)
        .because("the figure is lost; F is computed from table 4")
    }));
    let rising = |of: &[QualityCurve]| -> Vec<String> {
        let rising = of.iter().filter(|curve| rises(&std::array::from_fn(|n| curve.f(n))));
        rising.map(|curve| curve.name.clone()).collect()
    };
    lines.push(
        ItemLine::new("004-F7", "sketches whose F rises with tau, printed table", "said to be none")
            .measured(rising(&printed).join(", "))
            .judged(UnjudgedReason::Construction)
            .because("print beside print: the printed recalls of BitHash and s = 3 rise"),
    );
    let ours = rising(sketched);
    lines.push(
        ItemLine::new("004-F7", "sketches whose F rises with tau", "none")
            .measured(if ours.is_empty() { "none".to_owned() } else { ours.join(", ") })
            .judged(Basis::Measured(PrintedClaim::none(ours.len())))
            .because("precision is 100 % and recall falls"),
    );
    Ok(SectionAnswers { lines, tables: vec![], plots })
}
