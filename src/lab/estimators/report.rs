//! Tables and plots of the estimates.

use super::subjects::{MeasuredSketch, PlotGroup, SIMILARITIES, SIZES, SUBJECTS, UNIONS};
use super::{CaseResult, EstimatorCase};
use crate::plot::{Axis, Plot, Series};
use crate::table::{ResultTable, TableValue, row};

/// The measured cases of each sketch.
fn by_sketch(measured: &[CaseResult]) -> impl Iterator<Item = (&'static MeasuredSketch, Vec<&CaseResult>)> {
    SUBJECTS
        .iter()
        .map(|subject| (subject, measured.iter().filter(|m| m.case.subject.name == subject.name).collect()))
}

pub(super) fn summary(measured: &[CaseResult]) -> ResultTable {
    let mut table = ResultTable::new(
        "estimators",
        "Mean square error against theory",
        "Over all K, |A ∪ B| and J. Of sound estimators, one case in a thousand is outside of its interval. \
            Exact are those cases whose theory is no error at all. Nothing is known where the ratio is left \
            out.",
        "sketch | cases | exact | least MSE / theory | mean | greatest | MSE outside its interval | bias \
            outside",
    );
    for (subject, cases) in by_sketch(measured) {
        let ratios: Vec<f64> = cases.iter().filter_map(|m| m.ratio()).collect();
        let over = |fold: fn(f64, f64) -> f64| ratios.iter().copied().reduce(fold);
        let outside = |is: fn(&CaseResult) -> bool| cases.iter().filter(|m| !is(m)).count();
        let exact = cases.iter().filter(|m| m.theory.is_some() && m.ratio().is_none()).count();
        table.push(row![
            subject.name,
            cases.len(),
            exact,
            over(f64::min),
            over(|sum, ratio| sum + ratio).map(|sum| sum / ratios.len() as f64),
            over(f64::max),
            outside(CaseResult::is_error_within),
            outside(CaseResult::is_bias_within),
        ]);
    }
    table
}

pub(super) fn against_minhash(measured: &[CaseResult]) -> ResultTable {
    let mut table = ResultTable::new(
        "estimators_minhash",
        "Mean square error against MinHash's variance",
        "Divided by s (1 - s) / K, s what is estimated; the mean over all J, full-width components.",
        "sketch | |A ∪ B| | K = 64 | K = 256 | K = 1024",
    );
    let independent = |m: &CaseResult| m.similarity * (1.0 - m.similarity) / m.case.size as f64;
    for (subject, cases) in by_sketch(measured).filter(|(subject, _)| subject.is_full_width()) {
        for &union in subject.unions {
            let mut row = row![subject.name, union];
            row.extend(SIZES.map(|size| {
                let of_cell = |m: &&&CaseResult| (m.case.union, m.case.size) == (union, size);
                let ratios: Vec<f64> =
                    cases.iter().filter(of_cell).map(|m| m.error / independent(m)).collect();
                let mean = ratios.iter().sum::<f64>() / ratios.len() as f64;
                TableValue::from((!ratios.is_empty()).then_some(mean))
            }));
            table.push(row);
        }
    }
    table
}

pub(super) fn every_case(measured: &[CaseResult]) -> ResultTable {
    let mut table = ResultTable::new(
        "estimators_cases",
        "Every case",
        "± is the interval around the bias that theory has, and around a ratio of 1.",
        "sketch | K | |A ∪ B| | J | estimated | trials | bias | bias of theory | bias ± | MSE | MSE of \
            theory | MSE / theory | ratio ±",
    );
    for m in measured {
        let EstimatorCase { subject, size, union, jaccard } = m.case;
        let slack = m.theory.filter(|_| m.ratio().is_some()).map(|theory| theory.ratio_slack(m.trials));
        table.push(row![
            subject.name,
            size,
            union,
            jaccard,
            m.similarity,
            m.trials,
            m.bias,
            m.theory.map(|theory| theory.bias),
            m.theory.map(|theory| theory.bias_slack(m.trials)),
            m.error,
            m.theory.map(|theory| theory.error),
            m.ratio(),
            slack,
        ]);
    }
    table
}

/// Mean square error by K, measured and theoretical.
pub(super) fn by_size(measured: &[CaseResult]) -> Vec<Plot> {
    let jaccard = SIMILARITIES[2];
    let plot = |(group, name, what): (PlotGroup, &str, &str)| {
        let mut series = Vec::new();
        for (subject, cases) in by_sketch(measured).filter(|(subject, _)| subject.group == group) {
            let union = if subject.unions.contains(&UNIONS[1]) { UNIONS[1] } else { subject.unions[0] };
            let of_plot =
                |m: &&&CaseResult| m.case.union == union && m.case.jaccard.total_cmp(&jaccard).is_eq();
            let line = |of: fn(&CaseResult) -> Option<f64>| {
                let point = |m: &&CaseResult| of(m).map(|value| (m.case.size as f64, value));
                cases.iter().filter(of_plot).filter_map(point).collect::<Vec<_>>()
            };
            series.push(Series::new(subject.name.to_owned(), line(|m| Some(m.error))));
            let theory = line(|m| m.theory.map(|theory| theory.error));
            if !theory.is_empty() {
                series.push(Series::new(format!("{}, theory", subject.name), theory));
            }
        }
        Plot::new(
            name,
            format!("Mean square error, {what}, J = {jaccard}, |A ∪ B| = {} if it was tried", UNIONS[1]),
            Axis::log("K, components"),
            Axis::log("mean square error"),
            series,
        )
    };
    PlotGroup::ALL.map(plot).to_vec()
}
