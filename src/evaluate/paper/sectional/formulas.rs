//! Figures 1 to 3, and the headlines: what follows from formulas.

use super::super::{Line, Made, Verdict, Work};
use super::printed::{JUDGED, SECTIONS};
use crate::block::design::Curve;
use crate::evaluate::EvaluateError;
use crate::evaluate::plot::{Axis, Plot, Series};
use crate::sketch::agreement::Agreement;
use crate::sketch::estimate::standard_error;
use crate::sketch::sectional::cantor;
use crate::text::Features;
use crate::text::measures::jaccard;

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
    let line = |of, printed: &str, measured: String, verdict, reason| {
        Line::new("004-F1", of, printed, measured, verdict, reason)
    };
    let lines = vec![
        line(
            "J(d1, d3)",
            "4/9 = 0.44",
            format!("{}/{} = {exact:.2}", (exact * 6.0).round(), 6),
            Verdict::Misprint,
            "d1 and d3 have 4 attributes in common and 6 together; 9 is the number of all attributes",
        ),
        line(
            "MinHash, [2, 1, 2] and [2, 1, 2]",
            "3/3 = 1",
            format!("{minhash}"),
            Verdict::Agrees,
            "three of three are equal",
        ),
        line(
            "sectional, (2,3)(1,1)(2,2) and (2,2)(1,1)(2,2)",
            "2/3 = 0.67",
            format!("{sectional:.2}"),
            Verdict::Agrees,
            "the first minima are equal, their sections are not",
        ),
        line(
            "Cantor pairs of d1",
            "lost",
            told.join(", "),
            Verdict::StandIn,
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

pub(super) fn variance(_: &Work<'_>) -> Result<Made, EvaluateError> {
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
    let lines = vec![
        Line::new(
            "004-F2",
            "variance over J (equation 17)",
            "(J / s)(1 - J / s)",
            "the same, divided by k",
            Verdict::Misprint,
            "the factor 1 / k is missing; and the law is that of independent sections, q = 1 / s: in general it is q J (1 - q J) / k",
        ),
        Line::new(
            "004-F2",
            "J of the largest variance, s = 2",
            "-",
            format!("{}", most(2.0)),
            Verdict::Shown,
            "figure 4 shows the least spread there: its texts are aligned",
        ),
        Line::new(
            "004-F3",
            "where the ratio is 1, s = 2 to 5",
            "J = s / (s + 1), \"far above 1 / (s + 1)\"",
            crossings.join(", "),
            Verdict::Agrees,
            "s / (s + 1), as printed; for s = 1 it is 1 / (s + 1), and for s = 2 twice that, so not far above",
        ),
        Line::new(
            "004-F3",
            "the ratio at J = 0.9 for s = 1 and s = 2",
            "falls with s",
            format!("{:.2} and {:.2}", ratio(1.0, 0.9), ratio(2.0, 0.9)),
            Verdict::Misprint,
            "above J = 2/3 it rises from s = 1 to s = 2",
        ),
    ];
    Ok(Made { lines, tables: vec![], plots })
}

pub(super) fn headlines(_: &Work<'_>) -> Result<Made, EvaluateError> {
    let precision = JUDGED[0].precision;
    let mean = precision.iter().sum::<f64>() / precision.len() as f64;
    let bands = Curve { bands: 20, rows: 5, agreement: Agreement::Bits(64) };
    let line = |of, printed: &str, measured: String, verdict, reason| {
        Line::new("004-H2", of, printed, measured, verdict, reason)
    };
    let lines = vec![
        line(
            "mean precision of MinHash, table 4",
            "99.38 %",
            format!("{mean:.3} %"),
            Verdict::Agrees,
            "the mean of the printed row; 004-T4 has what is measured here",
        ),
        line(
            "400 hashes for an error of 0.05",
            "1 / sqrt(k)",
            format!("{:.2}; {:.3} at J = 0.5", 1.0 / 400.0_f64.sqrt(), standard_error(0.5, 400, 64)),
            Verdict::Agrees,
            "1 / sqrt(k) bounds two standard errors, of which the largest, at J = 0.5, is half of it",
        ),
        line(
            "banding (equation 9), J = 0.5, b = 20, r = 5",
            "1 - (1 - J)^b = 1.000",
            format!("{:.3}", bands.probability(0.5)),
            Verdict::Misprint,
            "the rows are missing: 1 - (1 - J^r)^b",
        ),
        line(
            "over 80 % of web news are copied",
            "over 80 %",
            "-".to_owned(),
            Verdict::NotMade,
            "quoted from elsewhere; no corpus comes with it",
        ),
    ];
    Ok(Made { lines, ..Made::default() })
}
