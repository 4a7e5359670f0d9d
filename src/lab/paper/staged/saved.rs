//! H1, H4: the savings of the filter, and its cost in wrong decisions.

use super::models::{EARLY, PairStatistics, SimilarityLaw, simulate};
use super::{ERROR, SETS, SIZE, THRESHOLDS, by_set, filter, percent};
use crate::EvaluateError;
use crate::paper::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use crate::table::{ResultTable, row};
use dupflow_core::probability::Binomial;

/// Number of simulated pairs for the errors.
const MANY: usize = 4_000_000;

/// What the source's bounds allow: an error at each look before the last.
const ALLOWED: f64 = ERROR * EARLY as f64;

/// A percentage with enough digits to show the difference to 100 %.
fn fine(share: f64) -> String {
    format!("{:.4} %", 100.0 * share)
}

/// 000-H1.
pub(super) fn saved(sets: &[Vec<PairStatistics>]) -> Result<SectionAnswers, EvaluateError> {
    let mut table = ResultTable::new(
        "000_h1_saved",
        "000-H1: samples read",
        "Mean over all pairs, of 1000, by the source's looks with corrected bounds.",
        "T | UNIFORM | saved, % | GAUSSIAN | saved, % | FUNDS-like | saved, %",
    );
    let mean = |set: usize, threshold: usize| {
        let seen = &sets[set][threshold];
        seen.share(seen.read)
    };
    for (at, threshold) in THRESHOLDS.into_iter().enumerate() {
        let means = (0..SETS.len()).map(|set| mean(set, at));
        let mut row = row![threshold];
        row.extend(means.flat_map(|read| [read.into(), (100.0 * (1.0 - read / SIZE as f64)).into()]));
        table.push(row);
    }
    let funds = mean(2, 0);
    let all: Vec<f64> = [(2, 0)]
        .into_iter()
        .chain((0..3).flat_map(|set| (0..3).map(move |at| (set, at))))
        .map(|(set, at)| mean(set, at))
        .collect();
    // By exact computation, independent of the program: UNIFORM, GAUSSIAN and FUNDS-like pairs at T = 0.8.
    let apart = [268.0, 188.0, 113.0].into_iter().zip((0..3).map(|set| mean(set, 0)));
    let uniform = [0, 1, 2].map(|at| mean(0, at));
    // The samples read for pairs of one similarity, by the binomial model of the looks.
    let schedules = THRESHOLDS.map(filter).into_iter().collect::<Result<Vec<_>, _>>()?;
    let of_similarity = [0.1, 0.3, 0.5, 0.7].map(|s| schedules[0].operation(s).components);
    let lines = vec![
        ItemLine::new("000-H1", "comparisons of samples saved", "85 %, 6.7 times fewer")
            .measured(format!(
                "{}, {:.1} times fewer",
                percent(1.0 - funds / SIZE as f64),
                SIZE as f64 / funds
            ))
            .judged(UnjudgedReason::StandIn.checked(PrintedClaim::each(apart, Matters::Share(0.01))))
            .because(
                "FUNDS-like pairs at T = 0.8; the source's pairs are private. Beside an exact computation \
                    for the three models.",
            ),
        ItemLine::new(
            "000-H1",
            "where most is saved, of nine sets and thresholds",
            "low similarities and high T",
        )
        .measured(format!("FUNDS-like, T = 0.8: {funds:.0} of 1000 read"))
        .judged(UnjudgedReason::StandIn.checked(PrintedClaim::least(1.0, &all)))
        .because("The FUNDS-like model is fitted to a rate of over 90 % at the first look of T = 0.8."),
        ItemLine::new(
            "000-H1",
            "UNIFORM pairs at T = 0.8, beside 0.5 and 0.3: samples read",
            "high T saves most",
        )
        .measured(uniform.map(|read| format!("{read:.0}")).join(" / "))
        .judged(Basis::Measured(PrintedClaim::least(0.95, &uniform)))
        .because("UNIFORM is U(0, 1) and fitted to nothing."),
        ItemLine::new(
            "000-H1",
            "pairs of similarity 0.1 / 0.3 / 0.5 / 0.7 at T = 0.8: samples read",
            "low similarities save most",
        )
        .measured(of_similarity.map(|read| format!("{read:.0}")).join(" / "))
        .judged(Basis::Computed(PrintedClaim::rises(1.0, &of_similarity)))
        .because("By the binomial model of the looks (`Schedule::operation`)."),
    ];
    Ok(SectionAnswers { lines, tables: vec![table], plots: Vec::new() })
}

/// 000-H4.
pub(super) fn errors(
    work: &SectionContext<'_>,
    sets: &[Vec<PairStatistics>],
) -> Result<SectionAnswers, EvaluateError> {
    let pairs = work.size(MANY, 1000);
    let mut table = ResultTable::new(
        "000_h4_errors",
        "000-H4: decisions of early looks",
        "Rejected and accepted before the last look, and how many of these the full comparison of 1000 \
            samples decides otherwise. At R = T every early decision is one that table 1 would call an \
            error.",
        "T | pairs of | pairs | rejected early | against R_K | accepted early | against R_K",
    );
    let mut push = |threshold: f64, name: &str, seen: &PairStatistics| {
        let [early, wrong] = [seen.early, seen.wrong];
        table.push(row![threshold, name, seen.pairs, early[0], wrong[0], early[1], wrong[1]]);
    };
    for (at, threshold) in THRESHOLDS.into_iter().enumerate() {
        SETS.iter().zip(sets).for_each(|(set, seen)| push(threshold, set.name(), &seen[at]));
    }
    let mut at_threshold = Vec::new();
    for (at, threshold) in THRESHOLDS.into_iter().enumerate() {
        let seen = simulate(work, SimilarityLaw::At(threshold), pairs)?.swap_remove(at);
        push(threshold, "R = T", &seen);
        at_threshold.push(seen);
    }
    let worst = &at_threshold[0];
    let spent = filter(THRESHOLDS[0])?.spent();
    let per_million = |count: u64, of: u64| format!("{:.1}", 1e6 * count as f64 / of as f64);
    let wrong: [u64; 2] = [0, 1].map(|side| sets.iter().flatten().map(|seen| seen.wrong[side]).sum());
    let all: u64 = sets.iter().flatten().map(|seen| seen.pairs).sum();
    let half = by_set(|set| percent(set.share_below(THRESHOLDS[0])));
    let share = |count: u64, of: u64| count as f64 / of as f64;
    let none = |shares: &[f64]| {
        Basis::Measured(PrintedClaim::each(shares.iter().map(|of| (0.0, *of)), Matters::From(ALLOWED)))
    };
    let early = worst.early.map(|count| share(count, worst.pairs));
    let expected = [spent.reject, spent.accept];
    let by_expected = PrintedClaim::each(
        early.iter().zip(expected).map(|(early, expected)| (1.0, early / expected)),
        Matters::From(0.25),
    );
    let qualities: Vec<f64> = sets.iter().flatten().flat_map(PairStatistics::filtered).collect();
    let least = qualities.iter().copied().fold(1.0, f64::min);
    let accepted = Binomial::new(SIZE, THRESHOLDS[0]).at_least(800);
    // The share of wrong pairs of which a thousand have none with a probability of 1 %.
    let unseen = 1.0 - 0.01_f64.powf(1e-3);
    let lines = vec![
        ItemLine::new(
            "000-H4",
            "accuracy and recall beside the full comparison, the three models at three thresholds",
            "100 %",
        )
        .measured(format!(
            "{} or more; of a million pairs {} wrongly rejected, {} wrongly accepted",
            fine(least),
            per_million(wrong[0], all),
            per_million(wrong[1], all)
        ))
        .judged(Basis::Measured(PrintedClaim::each(
            qualities.iter().map(|of| (1.0, *of)),
            Matters::From(ALLOWED),
        )))
        .because(
            "Of accepted pairs and of right ones, as in the source. What its bounds allow would matter: \
                1e-5 at each of five looks.",
        ),
        ItemLine::new(
            "000-H4",
            "pairs of true similarity T = 0.8, rejected / accepted early, of a million",
            "none (100 % accuracy)",
        )
        .measured(format!(
            "{} / {}",
            per_million(worst.early[0], worst.pairs),
            per_million(worst.early[1], worst.pairs)
        ))
        .judged(none(&early))
        .because("Not none, and within what its bounds allow, 50."),
        ItemLine::new("000-H4", "the same beside exact computation", "1e-5 a look")
            .measured(format!(
                "{:.2e} / {:.2e}; by computation {:.2e} / {:.2e}",
                early[0], early[1], expected[0], expected[1]
            ))
            .judged(UnjudgedReason::Shown.checked(by_expected))
            .because("Each look may err with 1e-5, and there are five."),
        ItemLine::new(
            "000-H4",
            "of these, those that the full comparison would decide otherwise, of a million",
            "none (100 % accuracy)",
        )
        .measured(format!(
            "{} / {}",
            per_million(worst.wrong[0], worst.pairs),
            per_million(worst.wrong[1], worst.pairs)
        ))
        .judged(none(&worst.wrong.map(|count| share(count, worst.pairs))))
        .because("All 1000 samples of such a pair often come out on that side too."),
        ItemLine::new("000-H4", "the full comparison itself, pairs of R = T = 0.8 that it accepts", "100 %")
            .measured(percent(accepted))
            .judged(Basis::Measured(PrintedClaim::equal(1.0, accepted, Matters::From(0.005))))
            .because(format!(
                "About half: no estimate is certain at T, so accuracy can only be meant beside R_K ({half} \
                    of the models' pairs are below T)."
            )),
        ItemLine::new(
            "000-H4",
            "wrong pairs of 10^8 that 1,000 pairs without one leave possible, at 99 %",
            "1,000 pairs a set; 10^8 pairs of the application",
        )
        .measured(format!("up to {:.0}", 1e8 * unseen))
        .judged(UnjudgedReason::Arithmetic)
        .because("print beside print: 100 % of a thousand pairs cannot tell an error of 1 in 10^5"),
    ];
    Ok(SectionAnswers { lines, tables: vec![table], plots: Vec::new() })
}
