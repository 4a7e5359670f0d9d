//! Figures 1 to 3, and the headlines: what follows from formulas.

use super::super::{Basis, Claim, Line, Made, Tolerance, Why, Work};
use super::model::{Order, spread};
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

/// The share of equal components, of any kind.
fn equal<T: PartialEq>(a: &[T], b: &[T]) -> f64 {
    a.iter().zip(b).filter(|(a, b)| a == b).count() as f64 / a.len() as f64
}

pub(super) fn example(_: &Work<'_>) -> Result<Made, EvaluateError> {
    let [d1, d3] = ["110010111", "110010100"].map(attributes);
    let exact = jaccard(Features::set(&d1), Features::set(&d3));
    let minhash = equal(&[2, 1, 2], &[2, 1, 2]);
    let pairs = |of: [(u64, u64); 3]| of.map(|(value, section)| cantor(value, section));
    let (of_d1, of_d3) = (pairs([(2, 3), (1, 1), (2, 2)]), pairs([(2, 2), (1, 1), (2, 2)]));
    let sectional = equal(&of_d1, &of_d3);
    let told: Vec<_> =
        of_d1.iter().map(|pair| pair.map_or_else(String::new, |pair| pair.to_string())).collect();
    let numbers = of_d1.map(|pair| pair.map_or(f64::NAN, |pair| pair as f64));
    let line = |of, printed: &str, measured: String, basis: Basis, reason| {
        Line::new("004-F1", of, printed, measured, basis, reason)
    };
    let lines = vec![
        line(
            "J(d1, d3)",
            "4/9 = 0.44",
            format!("{}/{} = {exact:.2}", (exact * 6.0).round(), 6),
            Basis::Exact(Claim::digits([("0.44", exact)])),
            "d1 and d3 have 4 attributes in common and 6 together; 9 is the number of all attributes",
        ),
        line(
            "MinHash, [2, 1, 2] and [2, 1, 2]",
            "3/3 = 1",
            format!("{minhash}"),
            Why::Construction.into(),
            "print beside print: three of three are equal",
        ),
        line(
            "sectional, (2,3)(1,1)(2,2) and (2,2)(1,1)(2,2)",
            "2/3 = 0.67",
            format!("{sectional:.2}"),
            Why::Construction.into(),
            "print beside print: the first minima are equal, their sections are not",
        ),
        line(
            "Cantor pairs of d1",
            "lost",
            told.join(", "),
            Why::StandIn.checked(Claim::each([18.0, 4.0, 12.0].into_iter().zip(numbers), Tolerance::Exact)),
            "the other rows of the figure are lost; sketch/sectional.rs hashes value and section together, since pairs outgrow 64 bits",
        ),
    ];
    Ok(Made { lines, ..Made::default() })
}

/// The figure's law: E = J / s, of independent sections; without the factor 1 / k that equation 17 lacks.
fn printed_variance(s: f64, jaccard: f64) -> f64 {
    jaccard / s * (1.0 - jaccard / s)
}

/// Its ratio to MinHash's, J (1 - J).
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

pub(super) fn variance(work: &Work<'_>) -> Result<Made, EvaluateError> {
    let steps = |last: usize| (0..=last).map(|n| n as f64 / 100.0);
    let lines_of = |last, of: fn(f64, f64) -> f64, from: usize| -> Vec<Series> {
        let series = |s: &usize| Series {
            name: format!("s = {s}"),
            points: steps(last).map(|j| (j, of(*s as f64, j))).collect(),
        };
        SECTIONS[from..].iter().map(series).collect()
    };
    let plot = |name: &str, title: &str, y: &str, series| Plot {
        name: name.to_owned(),
        title: title.to_owned(),
        x: Axis::linear("J"),
        y: Axis::linear(y),
        series,
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
    // Where each is 1, and how far above 1 / (s + 1) that is.
    let ones = SECTIONS[1..].iter().map(|s| (*s as f64 / (*s as f64 + 1.0), crossing(*s as f64)));
    // Of independent sections, J = 0.8: q is 1 / s but for chance.
    let (q, measured) = spread(work.bench.seed, 2, Order::Independent);
    let (of_q, by_print) = (0.8 * q * (1.0 - 0.8 * q), printed_variance(2.0, 0.8));
    let at_nine = [1.0, 2.0].map(|s| ratio(s, 0.9));
    let lines = vec![
        Line::new(
            "004-F2",
            "variance of s = 2 at J = 0.8, k = 64, independent sections (equation 17)",
            format!("(J / s)(1 - J / s) = {by_print:.3}"),
            format!("{measured:.5}"),
            Basis::Exact(Claim::equal(by_print, measured, Tolerance::Share(0.25))),
            "the factor 1 / k is missing",
        ),
        Line::new(
            "004-F2",
            "the same times k",
            format!("q J (1 - q J) = {of_q:.3}"),
            format!("{:.3}", 64.0 * measured),
            Why::Shown.checked(Claim::equal(of_q, 64.0 * measured, Tolerance::Share(0.25))),
            "the law in general, for any q; of independent sections q is 1 / s",
        ),
        Line::new(
            "004-F2",
            "J of the largest variance, s = 2",
            "-",
            format!("{}", most(2.0)),
            Why::Shown.checked(Claim::equal(1.0, most(2.0), Tolerance::Exact)),
            "by its equation; figure 4 shows the least spread there: its texts are aligned",
        ),
        Line::new(
            "004-F3",
            "where the ratio is 1, s = 2 to 5",
            "J = s / (s + 1)",
            crossings.join(", "),
            Why::Construction.checked(Claim::each(ones, Tolerance::Within(1e-6))),
            "the root of its own ratio, by bisection",
        ),
        Line::new(
            "004-F3",
            "the same as a multiple of 1 / (s + 1), s = 2",
            "far above (taken as 5 or more)",
            format!("{:.2}", 3.0 * crossing(2.0)),
            Basis::Exact(Claim::AtLeast(5.0, vec![3.0 * crossing(2.0)])),
            "the multiple is s",
        ),
        Line::new(
            "004-F3",
            "the ratio at J = 0.9 for s = 1 and s = 2",
            "falls with s",
            at_nine.map(|ratio| format!("{ratio:.2}")).join(" and "),
            Basis::Exact(Claim::Falls(1.0, at_nine.to_vec())),
            "above J = 2/3 it rises from s = 1 to s = 2",
        ),
    ];
    Ok(Made { lines, tables: vec![], plots })
}

pub(super) fn headlines(_: &Work<'_>) -> Result<Made, EvaluateError> {
    let precision = JUDGED[0].precision;
    let mean = precision.iter().sum::<f64>() / precision.len() as f64;
    let bands = Curve { bands: 20, rows: 5, agreement: Agreement::Bits(64) };
    let line = |of, printed: &str, measured: String, basis: Basis, reason| {
        Line::new("004-H2", of, printed, measured, basis, reason)
    };
    let (deviation, banded) = (standard_error(0.5, 400, 64), bands.probability(0.5));
    let lines = vec![
        line(
            "mean precision of MinHash, table 4",
            "99.38 %",
            format!("{mean:.3} %"),
            Why::Construction.checked(Claim::digits([("99.38", mean)])),
            "print beside print: the mean of the printed row; 004-T4 has what is measured here",
        ),
        line(
            "standard error of 400 hashes, the largest, at J = 0.5",
            "an error of 0.05 by 1 / sqrt(k)",
            format!("{deviation:.3}"),
            Basis::Exact(Claim::AtMost(0.05, vec![deviation])),
            "1 / sqrt(k) bounds two standard errors, of which the largest is half of it",
        ),
        line(
            "banding (equation 9), J = 0.5, b = 20, r = 5",
            "1 - (1 - J)^b = 1.000",
            format!("{banded:.3}"),
            Basis::Exact(Claim::digits([("1.000", banded)])),
            "the rows are missing: 1 - (1 - J^r)^b",
        ),
        line(
            "over 80 % of web news are copied",
            "over 80 %",
            "-".to_owned(),
            Why::Quoted.into(),
            "quoted from elsewhere; no corpus comes with it",
        ),
    ];
    Ok(Made { lines, ..Made::default() })
}
