//! Figures 1 to 3, and the headlines: results of formulas.

use super::super::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
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
    let lines = vec![
        line("J(d1, d3)", "4/9 = 0.44")
            .measured(format!("{}/{} = {exact:.2}", (exact * 6.0).round(), 6))
            .judged(Basis::Computed(PrintedClaim::digits([("0.44", exact)])))
            .because(
                "d1 and d3 have 4 attributes in common and 6 together; 9 is the number of all attributes",
            ),
        line("MinHash, [2, 1, 2] and [2, 1, 2]", "3/3 = 1")
            .measured(format!("{minhash}"))
            .judged(UnjudgedReason::Arithmetic)
            .because("print beside print: three of three are equal"),
        line("sectional, (2,3)(1,1)(2,2) and (2,2)(1,1)(2,2)", "2/3 = 0.67")
            .measured(format!("{sectional:.2}"))
            .judged(UnjudgedReason::Arithmetic)
            .because("print beside print: the first minima are equal, their sections are not"),
        line("Cantor pairs of d1", "lost")
            .measured(shown.join(", "))
            .judged(
                UnjudgedReason::StandIn
                    .checked(PrintedClaim::each([18.0, 4.0, 12.0].into_iter().zip(numbers), Matters::Any)),
            )
            .because(
                "the other rows of the figure are lost; sketch/sectional.rs hashes value and section \
                        together, since pairs outgrow 64 bits",
            ),
    ];
    Ok(SectionAnswers { lines, ..SectionAnswers::default() })
}

/// The figure's formula, of independent sections: the variance of one component, which is equal with the
/// probability J / s.
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

/// 004-F3.
pub(super) fn ratios(_: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let crossings: Vec<String> =
        SECTIONS[1..].iter().map(|s| format!("{:.3}", crossing(*s as f64))).collect();
    // The J at which each ratio is 1, and its difference to 1 / (s + 1).
    let ones = SECTIONS[1..].iter().map(|s| (*s as f64 / (*s as f64 + 1.0), crossing(*s as f64)));
    let at_nine = SECTIONS.map(|s| ratio(s as f64, 0.9));
    let shown = |all: &[f64]| all.iter().map(|ratio| format!("{ratio:.2}")).collect::<Vec<_>>().join(", ");
    let line = |of: &str, printed: &str| ItemLine::new("004-F3", of, printed);
    let lines = vec![
        line("where the ratio is 1, s = 2 to 5", "J = s / (s + 1)")
            .measured(crossings.join(", "))
            .judged(Basis::Computed(PrintedClaim::each(ones, Matters::From(1e-6))))
            .because("the root of its own ratio, by bisection"),
        line("the same as a multiple of 1 / (s + 1), s = 2", "far above, no number")
            .measured(format!("{:.2}", 3.0 * crossing(2.0)))
            .judged(UnjudgedReason::Reading)
            .because("the multiple is s, and how much is far is not said"),
        line("the ratio at J = 0.9 for s = 2 to 5", "falls with s")
            .measured(shown(&at_nine[1..]))
            .judged(Basis::Computed(PrintedClaim::falls(1.0, &at_nine[1..])))
            .because("of the sectional sketches the curves fall at every J; s = 1 is MinHash itself"),
        line("the same from s = 1 to s = 2", "falls with s")
            .measured(shown(&at_nine[..2]))
            .judged(UnjudgedReason::Reading.checked(PrintedClaim::rises(1.0, &at_nine[..2])))
            .because("above J = 2/3 it rises there: said of s = 1 too the statement would not hold"),
    ];
    let series = SECTIONS[1..].iter().map(|s| curve(*s, 90, ratio)).collect();
    let plot = Plot::new(
        "004_f3",
        "Figure 3: that, as a multiple of MinHash's",
        Axis::linear("J"),
        Axis::linear("ratio"),
        series,
    );
    Ok(SectionAnswers { lines, tables: vec![], plots: vec![plot] })
}

/// A formula of s and J as a curve over J in percent.
fn curve(s: usize, last: u32, of: fn(f64, f64) -> f64) -> Series {
    let points = (0..=last).map(|n| f64::from(n) / 100.0).map(|j| (j, of(s as f64, j)));
    Series::new(format!("s = {s}"), points)
}

/// 004-F2.
pub(super) fn variance(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let steps = || (0..=100).map(|n| f64::from(n) / 100.0);
    let most = |s: f64| {
        steps().max_by(|a, b| printed_variance(s, *a).total_cmp(&printed_variance(s, *b))).unwrap_or(0.0)
    };
    // Independent sections, J = 0.8: q is 1 / s up to random error.
    let measured = 64.0 * spread(work.bench.seed, 2, FeatureOrder::Independent);
    let by_print = printed_variance(2.0, 0.8);
    let lines = vec![
        ItemLine::new(
            "004-F2",
            "k times the variance of s = 2 at J = 0.8, k = 64, independent sections (equation 17)",
            format!("(J / s)(1 - J / s) = {by_print:.3}"),
        )
        .measured(format!("{measured:.3}"))
        .judged(Basis::Defined(PrintedClaim::equal(by_print, measured, Matters::Share(0.15))))
        .because(
            "equation 17 read as the variance of one component, equal or not: its equation 16 is the \
                probability of that; of the mean of k components the variance is a k-th",
        ),
        ItemLine::new("004-F2", "J of the largest variance, s = 2", "-")
            .measured(format!("{}", most(2.0)))
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::equal(1.0, most(2.0), Matters::Any)))
            .because("by its equation; figure 4 shows the least spread there: its texts are aligned"),
    ];
    let plot = Plot::new(
        "004_f2",
        "Figure 2: (J / s)(1 - J / s)",
        Axis::linear("J"),
        Axis::linear("k times the variance"),
        SECTIONS.iter().map(|s| curve(*s, 100, printed_variance)).collect(),
    );
    Ok(SectionAnswers { lines, tables: vec![], plots: vec![plot] })
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
            .judged(UnjudgedReason::Arithmetic.checked(PrintedClaim::digits([("99.38", mean)])))
            .because("print beside print: the mean of the printed row; 004-T4 has what is measured here"),
        line("standard error of 400 hashes, the largest, at J = 0.5", "an error of 0.05 by 1 / sqrt(k)")
            .measured(format!("{deviation:.3}"))
            .judged(Basis::Computed(PrintedClaim::at_most(0.05, &[deviation])))
            .because("1 / sqrt(k) bounds two standard errors, of which the largest is half of it"),
        line("banding (equation 9), J = 0.5, b = 20, r = 5", "1 - (1 - J)^b = 1.000")
            .measured(format!("{banded:.3}"))
            .judged(UnjudgedReason::Reading)
            .because("1 - (1 - J^r)^b in general; as printed it is of bands of one row, where r is 1"),
        line("over 80 % of web news are copied", "over 80 %")
            .measured("-".to_owned())
            .judged(UnjudgedReason::Quoted)
            .because("quoted from elsewhere; no corpus comes with it"),
    ];
    Ok(SectionAnswers { lines, ..SectionAnswers::default() })
}
