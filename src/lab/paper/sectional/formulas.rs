//! Figures 1 to 3, and the headlines: results of formulas.

use super::super::{
    Basis, ItemLine, PrintedClaim, SectionAnswers, SectionContext, Tolerance, UnjudgedReason,
};
use super::model::{FeatureOrder, spread};
use super::printed::{JUDGED, SECTIONS};
use crate::EvaluateError;
use crate::plot::{Axis, Plot, Series};
use dupflow_core::block::banding::Curve;
use dupflow_core::sketch::agreement::Agreement;
use dupflow_core::sketch::estimate::standard_error;
use dupflow_core::sketch::sectional::cantor;
use dupflow_core::text::Features;
use dupflow_core::text::measures::jaccard;

/// The attributes of a row of figure 1, from 1.
fn attributes(row: &str) -> Vec<u64> {
    (1..).zip(row.chars()).filter(|(_, bit)| *bit == '1').map(|(n, _)| n).collect()
}

/// The fraction of equal components of any type.
fn equal<T: PartialEq>(a: &[T], b: &[T]) -> f64 {
    a.iter().zip(b).filter(|(a, b)| a == b).count() as f64 / a.len() as f64
}

pub(super) fn example(_: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let [d1, d3] = ["110010111", "110010100"].map(attributes);
    let exact = jaccard(Features::set(&d1), Features::set(&d3));
    let minhash = equal(&[2, 1, 2], &[2, 1, 2]);
    let pairs = |of: [(u64, u64); 3]| of.map(|(value, section)| cantor(value, section));
    let (of_d1, of_d3) = (pairs([(2, 3), (1, 1), (2, 2)]), pairs([(2, 2), (1, 1), (2, 2)]));
    let sectional = equal(&of_d1, &of_d3);
    let shown: Vec<_> =
        of_d1.iter().map(|pair| pair.map_or_else(String::new, |pair| pair.to_string())).collect();
    let numbers = of_d1.map(|pair| pair.map_or(f64::NAN, |pair| pair as f64));
    let line = |of, printed: &str| ItemLine::new("004-F1", of, printed);
    let lines =
        vec![
            line("J(d1, d3)", "4/9 = 0.44")
                .measured(format!("{}/{} = {exact:.2}", (exact * 6.0).round(), 6))
                .judged(Basis::Exact(PrintedClaim::digits([("0.44", exact)])))
                .because(
                    "d1 and d3 have 4 attributes in common and 6 together; 9 is the number of all attributes",
                ),
            line("MinHash, [2, 1, 2] and [2, 1, 2]", "3/3 = 1")
                .measured(format!("{minhash}"))
                .judged(UnjudgedReason::Construction)
                .because("print beside print: three of three are equal"),
            line("sectional, (2,3)(1,1)(2,2) and (2,2)(1,1)(2,2)", "2/3 = 0.67")
                .measured(format!("{sectional:.2}"))
                .judged(UnjudgedReason::Construction)
                .because("print beside print: the first minima are equal, their sections are not"),
            line("Cantor pairs of d1", "lost")
                .measured(shown.join(", "))
                .judged(UnjudgedReason::StandIn.checked(PrintedClaim::each(
                    [18.0, 4.0, 12.0].into_iter().zip(numbers),
                    Tolerance::Exact,
                )))
                .because(
                    "the other rows of the figure are lost; sketch/sectional.rs hashes value and section \
                        together, since pairs outgrow 64 bits",
                ),
        ];
    Ok(SectionAnswers { lines, ..SectionAnswers::default() })
}

/// The figure's formula: E = J / s, of independent sections; without the factor 1 / k, which equation 17
/// lacks too.
fn printed_variance(s: f64, jaccard: f64) -> f64 {
    jaccard / s * (1.0 - jaccard / s)
}

/// Its ratio to the variance of MinHash, J (1 - J).
fn ratio(s: f64, jaccard: f64) -> f64 {
    (s - jaccard) / (s * s * (1.0 - jaccard))
}

/// The J below 1 at which the ratio is 1, by bisection.
fn crossing(s: f64) -> f64 {
    let (mut low, mut high) = (0.0, 1.0 - 1e-9);
    for _ in 0..60 {
        let middle = f64::midpoint(low, high);
        if ratio(s, middle) < 1.0 { low = middle } else { high = middle }
    }
    low
}

pub(super) fn variance(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let steps = |last: usize| (0..=last).map(|n| n as f64 / 100.0);
    let lines_of = |last, of: fn(f64, f64) -> f64, from: usize| -> Vec<Series> {
        let series = |s: &usize| Series::new(format!("s = {s}"), steps(last).map(|j| (j, of(*s as f64, j))));
        SECTIONS[from..].iter().map(series).collect()
    };
    let plot = |name: &str, title: &str, y: &str, series| {
        Plot::new(name, title, Axis::linear("J"), Axis::linear(y), series)
    };
    let plots = vec![
        plot(
            "004_f2",
            "Figure 2: (J / s)(1 - J / s)",
            "k times the variance",
            lines_of(100, printed_variance, 0),
        ),
        plot("004_f3", "Figure 3: that, as a multiple of MinHash's", "ratio", lines_of(90, ratio, 1)),
    ];
    let most = |s: f64| {
        steps(100).max_by(|a, b| printed_variance(s, *a).total_cmp(&printed_variance(s, *b))).unwrap_or(0.0)
    };
    let crossings: Vec<String> =
        SECTIONS[1..].iter().map(|s| format!("{:.3}", crossing(*s as f64))).collect();
    // The J at which each ratio is 1, and its difference to 1 / (s + 1).
    let ones = SECTIONS[1..].iter().map(|s| (*s as f64 / (*s as f64 + 1.0), crossing(*s as f64)));
    // Independent sections, J = 0.8: q is 1 / s up to random error.
    let (q, measured) = spread(work.bench.seed, 2, FeatureOrder::Independent);
    let (of_q, by_print) = (0.8 * q * (1.0 - 0.8 * q), printed_variance(2.0, 0.8));
    let at_nine = [1.0, 2.0].map(|s| ratio(s, 0.9));
    let lines = vec![
        ItemLine::new(
            "004-F2",
            "variance of s = 2 at J = 0.8, k = 64, independent sections (equation 17)",
            format!("(J / s)(1 - J / s) = {by_print:.3}"),
        )
        .measured(format!("{measured:.5}"))
        .judged(Basis::Exact(PrintedClaim::equal(by_print, measured, Tolerance::Share(0.25))))
        .because("the factor 1 / k is missing"),
        ItemLine::new("004-F2", "the same times k", format!("q J (1 - q J) = {of_q:.3}"))
            .measured(format!("{:.3}", 64.0 * measured))
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::equal(
                of_q,
                64.0 * measured,
                Tolerance::Share(0.25),
            )))
            .because("the law in general, for any q; of independent sections q is 1 / s"),
        ItemLine::new("004-F2", "J of the largest variance, s = 2", "-")
            .measured(format!("{}", most(2.0)))
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::equal(1.0, most(2.0), Tolerance::Exact)))
            .because("by its equation; figure 4 shows the least spread there: its texts are aligned"),
        ItemLine::new("004-F3", "where the ratio is 1, s = 2 to 5", "J = s / (s + 1)")
            .measured(crossings.join(", "))
            .judged(UnjudgedReason::Construction.checked(PrintedClaim::each(ones, Tolerance::Within(1e-6))))
            .because("the root of its own ratio, by bisection"),
        ItemLine::new(
            "004-F3",
            "the same as a multiple of 1 / (s + 1), s = 2",
            "far above (taken as 5 or more)",
        )
        .measured(format!("{:.2}", 3.0 * crossing(2.0)))
        .judged(Basis::Exact(PrintedClaim::AtLeast(5.0, vec![3.0 * crossing(2.0)])))
        .because("the multiple is s"),
        ItemLine::new("004-F3", "the ratio at J = 0.9 for s = 1 and s = 2", "falls with s")
            .measured(at_nine.map(|ratio| format!("{ratio:.2}")).join(" and "))
            .judged(Basis::Exact(PrintedClaim::Falls(1.0, at_nine.to_vec())))
            .because("above J = 2/3 it rises from s = 1 to s = 2"),
    ];
    Ok(SectionAnswers { lines, tables: vec![], plots })
}

pub(super) fn headlines(_: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let precision = JUDGED[0].precision;
    let mean = precision.iter().sum::<f64>() / precision.len() as f64;
    let bands = Curve { bands: 20, rows: 5, agreement: Agreement::Bits(64) };
    let line = |of, printed: &str| ItemLine::new("004-H2", of, printed);
    let (deviation, banded) = (standard_error(0.5, 400, 64), bands.probability(0.5));
    let lines = vec![
        line("mean precision of MinHash, table 4", "99.38 %")
            .measured(format!("{mean:.3} %"))
            .judged(UnjudgedReason::Construction.checked(PrintedClaim::digits([("99.38", mean)])))
            .because("print beside print: the mean of the printed row; 004-T4 has what is measured here"),
        line("standard error of 400 hashes, the largest, at J = 0.5", "an error of 0.05 by 1 / sqrt(k)")
            .measured(format!("{deviation:.3}"))
            .judged(Basis::Exact(PrintedClaim::AtMost(0.05, vec![deviation])))
            .because("1 / sqrt(k) bounds two standard errors, of which the largest is half of it"),
        line("banding (equation 9), J = 0.5, b = 20, r = 5", "1 - (1 - J)^b = 1.000")
            .measured(format!("{banded:.3}"))
            .judged(Basis::Exact(PrintedClaim::digits([("1.000", banded)])))
            .because("the rows are missing: 1 - (1 - J^r)^b"),
        line("over 80 % of web news are copied", "over 80 %")
            .measured("-".to_owned())
            .judged(UnjudgedReason::Quoted)
            .because("quoted from elsewhere; no corpus comes with it"),
    ];
    Ok(SectionAnswers { lines, ..SectionAnswers::default() })
}
