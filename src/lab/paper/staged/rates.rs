//! F8, F9: each bound by itself: accuracy and recall, and the fraction of pairs that it decides.

use super::models::{EARLY, FIRST, PairStatistics};
use super::{SETS, THRESHOLDS, filter, percent};
use crate::EvaluateError;
use crate::paper::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, UnjudgedReason};
use crate::plot::{Axis, Plot, Series};
use crate::table::{ResultTable, row};
use dupflow_core::probability::Binomial;

/// A percentage with enough digits to show the difference to 100 %.
fn fine(share: f64) -> String {
    format!("{:.3} %", 100.0 * share)
}

/// 000-F8.
pub(super) fn accuracy(sets: &[Vec<PairStatistics>]) -> Result<SectionAnswers, EvaluateError> {
    let mut table = ResultTable::new(
        "000_f8_bounds",
        "000-F8: accuracy and recall of each bound, k = 100",
        "T_U: pairs with more than m of 100 samples equal; T_L: pairs with fewer. Accuracy: the share of \
            them on the same side of T by all 1000 samples; recall: the share of those on that side that are \
            found. m: the corrected bounds, and T.",
        "T | pairs | m | accuracy of T_U, % | recall of T_U, % | accuracy of T_L, % | recall of T_L, %",
    );
    let mut plots = Vec::new();
    for (at, percent) in [80, 50, 30].into_iter().enumerate() {
        let threshold = THRESHOLDS[at];
        let first = filter(threshold)?.looks()[0];
        for (set, seen) in SETS.iter().zip(sets).map(|(set, seen)| (set, &seen[at])) {
            for m in [first.reject_below, percent, first.accept_from - 1] {
                let percents = [true, false].into_iter().flat_map(|above| seen.quality(m as usize, above));
                let mut row = row![threshold, set.name(), u64::from(m)];
                row.extend(percents.map(|share| share.map(|share| 100.0 * share).into()));
                table.push(row);
            }
            let series = |name: &str, above: bool, which: usize| {
                Series::new(
                    name,
                    (0..=FIRST).filter_map(|m| seen.quality(m, above)[which].map(|share| (m as f64, share))),
                )
            };
            plots.push(Plot::new(
                format!("000_f8_{}_{threshold}", set.name().to_lowercase()),
                format!("000-F8: bounds at k = 100, {}, T = {threshold}", set.name()),
                Axis::linear("m, of 100 samples"),
                Axis::linear("share"),
                vec![
                    series("accuracy of T_U", true, 0),
                    series("recall of T_U", true, 1),
                    series("accuracy of T_L", false, 0),
                    series("recall of T_L", false, 1),
                ],
            ));
        }
    }
    Ok(SectionAnswers { lines: accuracy_lines(sets), tables: vec![table], plots })
}

/// Below this a fraction is "low" or "not high", and from the second number on it is "high"; the source has
/// no numbers for these words.
const LOW: f64 = 0.7;
const HIGH: f64 = 0.9;

/// The lines of 000-F8, at T = 0.8.
fn accuracy_lines(sets: &[Vec<PairStatistics>]) -> Vec<ItemLine> {
    let high = |m: usize, above: bool, which: usize| -> Vec<f64> {
        sets.iter().map(|seen| seen[0].quality(m, above)[which].unwrap_or(f64::NAN)).collect()
    };
    let shown = |shares: &[f64]| shares.iter().map(|share| fine(*share)).collect::<Vec<_>>().join(" / ");
    let (at_90, at_85, at_50) = (high(90, true, 0), high(85, true, 0), high(50, true, 0));
    let (found, dropped) = (high(90, true, 1), high(61, false, 1));
    let of = |what: &str| format!("{what}, T = 0.8, UNIFORM / GAUSSIAN / FUNDS-like");
    let line = |what: &str, printed: &str| ItemLine::new("000-F8", of(what), printed);
    // The least bound with an accuracy of 100 %, to the printed digits.
    let dividing = |seen: &Vec<PairStatistics>| {
        let is_low = |m: &usize| seen[0].quality(*m, true)[0].is_some_and(|share| share < 0.995);
        (0..FIRST).rev().find(is_low).map_or(0, |m| m + 1)
    };
    let dividing: Vec<usize> = sets.iter().map(dividing).collect();
    // With R_k on both sides, as printed.
    let of_itself = sets.iter().map(|seen| {
        let above: u64 = seen[0].first[91..].iter().flatten().sum();
        let both: u64 = (91..=FIRST).filter(|x| *x > 80).map(|x| seen[0].first[x].iter().sum::<u64>()).sum();
        both as f64 / above as f64
    });
    let of_itself: Vec<f64> = of_itself.collect();
    vec![
        line("accuracy of T_U at m = 90", "100 % from 90 on")
            .measured(shown(&at_90))
            .judged(Basis::Measured(PrintedClaim::each(
                at_90.iter().map(|share| (1.0, *share)),
                Matters::From(0.005),
            )))
            .because(
                "As a share of what is accepted, to the printed digits; as a tail of pairs at T itself 90 is \
                    not enough, and 000-T1 has 95.",
            ),
        line("accuracy of T_U at m = 50", "low below 90")
            .measured(shown(&at_50))
            .judged(Basis::Measured(PrintedClaim::at_most(LOW, &at_50)))
            .because("So it is far below T."),
        line("accuracy of T_U at m = 85", "low below 90")
            .measured(shown(&at_85))
            .judged(Basis::Measured(PrintedClaim::at_most(LOW, &at_85)))
            .because("It rises between 70 and 90, and is high long before 90."),
        line("recall of T_U at m = 90", "not high for UNIFORM and GAUSSIAN")
            .measured(shown(&found))
            .judged(Basis::Measured(PrintedClaim::at_most(LOW, &found[..2])))
            .because("Pairs between 0.8 and 0.9 have to wait for later looks."),
        line("recall of T_L at the corrected bound, 61", "high for FUNDS")
            .measured(shown(&dropped))
            .judged(UnjudgedReason::StandIn.checked(PrintedClaim::at_least(HIGH, &[dropped[2]])))
            .because(
                "The model is fitted to the rate of this bound (000-F9), and nearly all of its pairs are \
                    below T.",
            ),
        line("least m from which accuracy of T_U is 100 % (99.5 % or more)", "90, the same in all sets")
            .measured(dividing.iter().map(ToString::to_string).collect::<Vec<_>>().join(" / "))
            .judged(Basis::Measured(PrintedClaim::each(
                dividing.iter().map(|m| (90.0, *m as f64)),
                Matters::From(1.0),
            )))
            .because("It depends on how many pairs lie just below T, and so on the set."),
        line("accuracy of T_U at m = 90 with the second set as it is printed, of R_k", "a measure of error")
            .measured(shown(&of_itself))
            .judged(
                UnjudgedReason::Reading
                    .checked(PrintedClaim::each(of_itself.iter().map(|share| (1.0, *share)), Matters::Any)),
            )
            .because("With R_k on both sides it is 1 by definition for T_U >= T: the second set is of R_K."),
    ]
}

/// 000-F9.
pub(super) fn rates(sets: &[Vec<PairStatistics>]) -> Result<SectionAnswers, EvaluateError> {
    let mut table = ResultTable::new(
        "000_f9_rates",
        "000-F9: pairs that each bound alone decides",
        "In percent of all pairs, each look over all of them. \"expected\": binomial tails integrated over \
            the model.",
        "T | pairs | bound | k = 100, % | k = 200, % | k = 400, % | k = 600, % | k = 800, %",
    );
    let mut plots = Vec::new();
    let mut apart: Vec<f64> = Vec::new();
    for (set, of_set) in SETS.iter().zip(sets) {
        let mut series = Vec::new();
        for (threshold, seen) in THRESHOLDS.into_iter().zip(of_set) {
            let schedule = filter(threshold)?;
            let looks = &schedule.looks()[..EARLY];
            for (side, bound) in ["T_L", "T_U"].into_iter().enumerate() {
                let shares: Vec<f64> = seen.apart.iter().map(|counts| seen.share(counts[side])).collect();
                let expected = looks.iter().map(|look| {
                    set.expectation(|s| {
                        let tails = Binomial::new(look.components as usize, s);
                        let (below, from) = (look.reject_below as usize, look.accept_from as usize);
                        if side == 0 { tails.below(below) } else { tails.at_least(from) }
                    })
                });
                let expected: Vec<f64> = expected.collect();
                apart.extend(shares.iter().zip(&expected).map(|(share, mean)| share - mean));
                for (name, values) in [(bound.to_owned(), &shares), (format!("{bound} expected"), &expected)]
                {
                    let mut row = row![threshold, set.name(), name];
                    row.extend(values.iter().map(|share| (100.0 * share).into()));
                    table.push(row);
                }
                let points = looks.iter().map(|look| f64::from(look.components)).zip(shares);
                series.push(Series::new(format!("{bound}, T = {threshold}"), points));
            }
        }
        plots.push(Plot::new(
            format!("000_f9_{}", set.name().to_lowercase()),
            format!("000-F9: share decided by each bound, {}", set.name()),
            Axis::linear("k, samples"),
            Axis::linear("share of pairs"),
            series,
        ));
    }
    let mut lines = rates_lines(sets);
    let furthest = apart.iter().fold(0.0, |most: f64, apart| most.max(apart.abs()));
    lines.push(
        ItemLine::new("000-F9", "all other values", "lost")
            .measured(format!("table 000_f9_rates; simulated and expected at most {furthest:.4} apart"))
            .judged(UnjudgedReason::StandIn.checked(PrintedClaim::each(
                apart.into_iter().map(|apart| (0.0, apart)),
                Matters::From(0.005),
            )))
            .because("On the models, by the corrected bounds; ninety rates."),
    );
    // Ordered by threshold, widest first.
    table.rows.sort_by_key(|row| THRESHOLDS.iter().position(|t| row[0] == (*t).into()));
    Ok(SectionAnswers { lines, tables: vec![table], plots })
}

/// The lines of 000-F9.
fn rates_lines(sets: &[Vec<PairStatistics>]) -> Vec<ItemLine> {
    let rate = |set: usize, threshold: usize, look: usize, side: usize| {
        let seen = &sets[set][threshold];
        seen.share(seen.apart[look][side])
    };
    let [high, low] = [0, 2].map(|threshold| rate(2, threshold, 0, 0));
    // What one bound decides more than the other, at all looks and in both sets.
    let leads = |threshold: usize, side: usize| {
        let more = |(set, look)| rate(set, threshold, look, side) - rate(set, threshold, look, 1 - side);
        let all = (0..2).flat_map(|set| (0..EARLY).map(move |look| (set, look))).map(more);
        Basis::Measured(PrintedClaim::at_least(0.0, &all.collect::<Vec<_>>()))
    };
    let at_first = |threshold: usize| {
        let both = |set: usize| [0, 1].map(|side| percent(rate(set, threshold, 0, side))).join(" and ");
        [0, 1].map(both).join(" / ")
    };
    let line = |of: &str, printed: &str| ItemLine::new("000-F9", of, printed);
    vec![
        line("FUNDS, T_L at k = 100, T = 0.8", "over 90 %")
            .measured(percent(high))
            .judged(UnjudgedReason::StandIn.checked(PrintedClaim::at_least(0.9, &[high])))
            .because("The FUNDS-like model is fitted to this."),
        line("FUNDS, T_L at k = 100, T = 0.3", "about 50 %")
            .measured(percent(low))
            .judged(UnjudgedReason::StandIn.checked(PrintedClaim::equal(0.5, low, Matters::From(0.05))))
            .because("The FUNDS-like model is fitted to this."),
        line("UNIFORM / GAUSSIAN, T = 0.8, T_L and T_U at k = 100", "T_L does most")
            .measured(at_first(0))
            .judged(leads(0, 0))
            .because("The one rate less the other, at every look of both sets."),
        line("UNIFORM / GAUSSIAN, T = 0.3, T_L and T_U at k = 100", "T_U does most")
            .measured(at_first(2))
            .judged(leads(2, 1))
            .because("The one rate less the other, at every look of both sets."),
    ]
}
