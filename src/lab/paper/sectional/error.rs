//! Errors of the estimate: table 3, figure 4, and the headline of one eighth.

use rand::Rng;

use super::super::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use super::model::{BASES, FeatureOrder, Trial, UNION, trials};
use super::printed::{ERRORS, SECTIONS, SIZES};
use crate::EvaluateError;
use crate::plot::{Axis, Plot, Series};
use crate::table::{ResultTable, TableValue, row};

/// "MinHash", or "s = 2" and so on.
pub(super) fn name(sections: usize) -> String {
    if sections == 1 { "MinHash".to_owned() } else { format!("s = {sections}") }
}

fn mean(values: impl Iterator<Item = f64>) -> f64 {
    let (sum, n) = values.fold((0.0, 0.0), |(sum, n), value| (sum + value, n + 1.0));
    sum / n
}

/// The mean square error with respect to J, and to q J.
fn errors(trials: &[Trial], base: usize, sections: usize, size: usize) -> [f64; 2] {
    let of = |trial: &Trial| trial.estimate(base, sections, size);
    [
        mean(trials.iter().map(|trial| (of(trial) - trial.jaccard).powi(2))),
        mean(trials.iter().map(|trial| (of(trial) - trial.q[sections] * trial.jaccard).powi(2))),
    ]
}

/// J drawn uniformly. Half of the pairs are aligned; in the others up to half of the common features are
/// moved.
fn mixed(work: &SectionContext<'_>) -> Vec<Trial> {
    trials(work.bench, work.size(4_000, 40), |rng| {
        let common = rng.random_range(0..=UNION);
        let order = if rng.random_bool(0.5) {
            FeatureOrder::Aligned
        } else {
            FeatureOrder::Moved(rng.random_range(0..50))
        };
        (common, order)
    })
}

pub(super) fn mean_square(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let trials = mixed(work);
    let mut table = ResultTable::new(
        "004_t3",
        "Table 3: mean square error",
        "Pairs of about 400 shingles together, J even on [0, 1], half of them aligned (q = 1), of the others \
            up to half of the common shingles moved to the other half (so that q is the same for s = 2 and \
            4). Theory: J (1 - J) / k and q J (1 - q J) / k, mean over the pairs.",
        "sketch | over | against | k = 50 | k = 100 | k = 200 | k = 300 | k = 400 | k = 500",
    );
    for (printed, sections) in ERRORS.iter().zip(SECTIONS) {
        let mut row = row![format!("{}, printed", name(sections)), "minhash", "J"];
        row.extend(printed.map(TableValue::from));
        table.push(row);
    }
    let mut series = Vec::new();
    for (at, sections) in SECTIONS.into_iter().enumerate() {
        let variance = mean(trials.iter().map(|t| t.q[at] * t.jaccard * (1.0 - t.q[at] * t.jaccard)));
        let mut theory = row![name(sections), "theory", if at == 0 { "J" } else { "q J" }];
        theory.extend(SIZES.map(|size| TableValue::from(variance / size as f64)));
        table.push(theory);
        for (base, kind) in BASES.iter().enumerate() {
            let against = if at == 0 { &["J"][..] } else { &["J", "q J"] };
            for (which, of) in against.iter().enumerate() {
                let measured: Vec<f64> =
                    (0..SIZES.len()).map(|k| errors(&trials, base, at, k)[which]).collect();
                let mut row = row![name(sections), kind.name(), *of];
                row.extend(measured.iter().copied().map(TableValue::from));
                table.push(row);
                if base == 0 {
                    let points = SIZES.iter().map(|k| *k as f64).zip(measured);
                    series.push(Series::new(format!("{}, against {of}", name(sections)), points));
                }
            }
        }
    }
    let plot = Plot::new(
        "004_t3",
        "Mean square error over minhash",
        Axis::linear("k"),
        Axis::log("mean square error"),
        series,
    );
    Ok(SectionAnswers { lines: errors_judged(&trials), tables: vec![table], plots: vec![plot] })
}

/// The lines of table 3.
fn errors_judged(trials: &[Trial]) -> Vec<ItemLine> {
    let last = SIZES.len() - 1;
    // Against J, over minhash, by s and k.
    let against_jaccard = |s: usize, k: usize| errors(trials, 0, s, k)[0];
    let minhash: Vec<f64> = (0..=last).map(|k| against_jaccard(0, k)).collect();
    let theory = mean(trials.iter().map(|t| t.jaccard * (1.0 - t.jaccard)));
    let of_qj =
        mean(trials.iter().map(|t| t.q[1] * t.jaccard * (1.0 - t.q[1] * t.jaccard))) / SIZES[last] as f64;
    let cells = || (0..=last).flat_map(|k| (1..SECTIONS.len()).map(move |s| (s, k)));
    let printed_better = cells().filter(|(s, k)| ERRORS[*s][*k] < ERRORS[0][*k]).count();
    let ratios: Vec<f64> = cells().map(|(s, k)| against_jaccard(s, k) / minhash[k]).collect();
    let [least, most] = [f64::min, f64::max].map(|of| ratios.iter().copied().reduce(of).unwrap_or(f64::NAN));
    // s = 2 and 3 by the least of the other three, at each k.
    let two_by_others = |error: &dyn Fn(usize, usize) -> f64| -> Vec<f64> {
        let other = |k| [0, 3, 4].map(|s| error(s, k)).into_iter().fold(f64::MAX, f64::min);
        (0..=last).map(|k| error(1, k).max(error(2, k)) / other(k)).collect()
    };
    let accurate = two_by_others(&against_jaccard);
    let printed_accurate = two_by_others(&|s, k| ERRORS[s][k]).iter().filter(|ratio| **ratio <= 1.0).count();
    let [against_j, against_qj] = errors(trials, 0, 1, last);
    let fss = errors(trials, 1, 0, last)[0] / minhash[last];
    let listed = |all: &[f64]| all.iter().map(|of| format!("{of:.2}")).collect::<Vec<_>>().join(", ");
    let line = |of: &str, printed: String| ItemLine::new("004-T3", of, printed);
    vec![
        line("MinHash, k = 50 to 500", format!("{:.3E} to {:.3E}", ERRORS[0][0], ERRORS[0][last]))
            .measured(format!("{:.3E} to {:.3E}", minhash[0], minhash[last]))
            .judged(Basis::Measured(PrintedClaim::each(
                ERRORS[0].into_iter().zip(minhash.iter().copied()),
                Matters::Share(0.5),
            )))
            .because(
                "no unbiased estimate errs by more than 0.25 / k on any pairs; a row that does not fall with \
                    k is a bias of about 0.195, perhaps of its hash functions",
            ),
        line("MinHash's own error by J (1 - J) / k, k = 50 to 500", "-".to_owned())
            .measured(listed(
                &minhash.iter().zip(SIZES).map(|(e, k)| e * k as f64 / theory).collect::<Vec<_>>(),
            ))
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::each(
                minhash.iter().zip(SIZES).map(|(error, k)| (1.0, error * k as f64 / theory)),
                Matters::From(0.15),
            )))
            .because("the mean over the pairs"),
        line("cells of 24 in which sectional is better than MinHash, printed table", "24".to_owned())
            .measured(printed_better.to_string())
            .judged(Basis::Computed(PrintedClaim::equal(24.0, printed_better as f64, Matters::Any)))
            .because("print beside print: its text and its table contradict each other"),
        line("error of s = 2 to 5 by MinHash's, k = 50 to 500", "below 1 in each of 24 cells".to_owned())
            .measured(format!("{least:.2} to {most:.0}"))
            .judged(Basis::Measured(PrintedClaim::at_most(1.0, &ratios)))
            .because("against J the sectional estimate has the bias (1 - q) J, which no k makes smaller"),
        line(
            "the larger error of s = 2 and 3 by the least of MinHash, s = 4 and 5, k = 50 to 500",
            "s = 2 and 3 are the most accurate".to_owned(),
        )
        .measured(listed(&accurate))
        .judged(Basis::Measured(PrintedClaim::at_most(1.0, &accurate)))
        .because("MinHash has no bias, and the least error"),
        line("k of 6 at which s = 2 and 3 are the most accurate, printed table", "6".to_owned())
            .measured(printed_accurate.to_string())
            .judged(UnjudgedReason::Arithmetic)
            .because("print beside print: at k = 300 and 400 s = 4 is better than s = 2"),
        line("s = 2, k = 500, against J", format!("{:.3E}", ERRORS[1][last]))
            .measured(format!("{against_j:.3E}"))
            .judged(Basis::Measured(PrintedClaim::equal(ERRORS[1][last], against_j, Matters::Share(0.2))))
            .because(
                "it depends on how the pairs are aligned, which is not said; printed rows jump with k \
                    (0.0049 at 200, 0.0305 at 300)",
            ),
        line("s = 2, k = 500, against q J, by q J (1 - q J) / k", "-".to_owned())
            .measured(format!("{against_qj:.3E}, {:.2} of it", against_qj / of_qj))
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::equal(
                1.0,
                against_qj / of_qj,
                Matters::From(0.15),
            )))
            .because("against q J it errs as MinHash does against J"),
        line("fss in place of MinHash, k = 500, s = 1: error by MinHash's", "-".to_owned())
            .measured(format!("{fss:.2}"))
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::at_most(0.8, &[fss])))
            .because("the default base of the program errs less where texts have few shingles for k"),
    ]
}

/// Mean and spread of one estimate in one band of J.
///
/// The spread is about q J of each pair. The estimates of a band vary more, since their J vary.
fn band(trials: &[&Trial], sections: usize) -> (f64, f64) {
    let last = SIZES.len() - 1;
    let apart = |trial: &&Trial| trial.estimate(0, sections, last) - trial.q[sections] * trial.jaccard;
    (
        mean(trials.iter().map(|trial| trial.estimate(0, sections, last))),
        mean(trials.iter().map(|trial| apart(trial).powi(2))).sqrt(),
    )
}

pub(super) fn by_similarity(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    const BANDS: usize = 10;
    let mut table = ResultTable::new(
        "004_f4",
        "Figure 4: estimate against J, k = 500, over minhash",
        "Bands of J of 0.1: the mean of the estimates, and their spread, the root of the mean square \
            distance of each from its own q J. (The estimates of a band differ by more than that, since \
            their J do.)",
        "order | J from | pairs | q of s = 2 | MinHash, mean | MinHash, spread | s = 2, mean | s = 2, spread \
            | s = 5, mean | s = 5, spread",
    );
    let (mut plots, mut ends) = (Vec::new(), Vec::new());
    let mut spreads = Vec::new();
    let orders = [
        ("q = 1", FeatureOrder::Aligned),
        ("q = 0.8", FeatureOrder::Moved(20)),
        ("independent", FeatureOrder::Independent),
    ];
    for (order_name, order) in orders {
        let all = trials(work.bench, work.size(2_000, 150), |rng| (rng.random_range(0..=UNION), order));
        let mut series: Vec<_> = SECTIONS.iter().map(|s| Series::new(name(*s), Vec::new())).collect();
        let mut of_order: Vec<[f64; 2]> = Vec::new();
        for at in 0..BANDS {
            let (from, to) = (at as f64 / 10.0, (at + 1) as f64 / 10.0);
            let of_band = |t: &&Trial| t.jaccard >= from && (t.jaccard < to || at + 1 == BANDS);
            let held: Vec<&Trial> = all.iter().filter(of_band).collect();
            if held.is_empty() {
                continue;
            }
            let q = mean(held.iter().map(|trial| trial.q[1]));
            let [(m1, s1), (m2, s2), (m5, s5)] = [0, 1, 4].map(|s| band(&held, s));
            table.push(row![order_name, from, held.len(), q, m1, s1, m2, s2, m5, s5]);
            if at % 2 == 1 {
                of_order.push([s1, s2]);
            }
            for (s, line) in series.iter_mut().enumerate() {
                line.points.push((from + 0.05, band(&held, s).0));
            }
        }
        let high: Vec<f64> =
            all.iter().filter(|t| t.jaccard > 0.0).map(|t| t.estimate(0, 1, 5) / t.jaccard).collect();
        ends.push((order_name, mean(high.into_iter())));
        spreads.push(of_order);
        plots.push(Plot::new(
            format!("004_f4_{}", order_name.replace([' ', '='], "")),
            format!("Mean estimate against J, k = 500, {order_name}"),
            Axis::linear("J, middle of the band"),
            Axis::linear("mean estimate"),
            series,
        ));
    }
    let shown = |all: &[f64]| all.iter().map(|spread| format!("{spread:.4}")).collect::<Vec<_>>().join(", ");
    // From J = 0.5 on, every second band of a tenth.
    let of = |order: usize, sketch: usize| -> Vec<f64> {
        spreads[order].iter().skip(2).map(|both| both[sketch]).collect()
    };
    let (aligned, independent) = (of(0, 1), of(2, 1));
    let mut lines: Vec<ItemLine> = ends
        .iter()
        .map(|(order, times)| {
            ItemLine::new(
                "004-F4",
                format!("mean estimate of s = 2 by J, {order}"),
                "looks unbiased: 1 (points lost)",
            )
            .measured(format!("{times:.3}"))
            .judged(Basis::Measured(PrintedClaim::equal(1.0, *times, Matters::From(0.02))))
            .because(
                "the estimate is of q J: the figure fits q = 1, and contradicts the paper's own E = J / s \
                    (equations 16 and 17), which needs independent sections",
            )
        })
        .collect();
    lines.extend([
        ItemLine::new(
            "004-F4",
            "spread of s = 2 in the bands of J = 0.5, 0.7, 0.9, q = 1",
            "shrinks to J = 1",
        )
        .measured(shown(&aligned))
        .judged(Basis::Measured(PrintedClaim::falls(1.0, &aligned)))
        .because("about each pair's own q J; as the root of J (1 - J)"),
        ItemLine::new("004-F4", "the same, independent sections", "shrinks to J = 1")
            .measured(shown(&independent))
            .judged(Basis::Measured(PrintedClaim::falls(1.0, &independent)))
            .because(
                "as the root of q J (1 - q J), which grows up to q J = 1/2: what its equation 17 says too",
            ),
    ]);
    // At q = 1 both are one estimate.
    lines.extend([(1, "q = 0.8"), (2, "independent sections")].map(|(order, name)| {
        let ratios = of(order, 1).into_iter().zip(of(order, 0)).map(|(s2, minhash)| s2 / minhash);
        let ratios: Vec<f64> = ratios.collect();
        ItemLine::new(
            "004-F4",
            format!("spread of s = 2 by MinHash's in the same bands, {name}"),
            "s = 2 has the least, so below 1",
        )
        .measured(shown(&ratios))
        .judged(Basis::Measured(PrintedClaim::at_most(1.0, &ratios)))
        .because("q J (1 - q J) is less than J (1 - J) only while q J is further from 1/2 than J is")
    }));
    Ok(SectionAnswers { lines, tables: vec![table], plots })
}

pub(super) fn an_eighth(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    const K: usize = 2;
    let mut table = ResultTable::new(
        "004_h1",
        "Mean square error against J as a multiple of MinHash's variance, J = 0.8, k = 200, s = 2",
        "Over minhash; about 400 shingles together, 320 of them common. Below 1 the sectional estimate is \
            the better one.",
        "order | q | mean estimate | q J | MSE against J | of MinHash's J (1 - J) / k | MSE against q J",
    );
    let orders = [
        ("aligned", FeatureOrder::Aligned),
        ("5 % moved", FeatureOrder::Moved(5)),
        ("20 % moved", FeatureOrder::Moved(20)),
        ("independent", FeatureOrder::Independent),
    ];
    let (mut ratios, mut by_larger) = (Vec::new(), Vec::new());
    for (order_name, order) in orders {
        let all = trials(work.bench, work.size(1_000, 40), |_| (320, order));
        if order == FeatureOrder::Aligned {
            by_larger
                .extend((K + 1..SIZES.len()).map(|k| errors(&all, 0, 1, K)[0] / errors(&all, 0, 0, k)[0]));
        }
        let q = mean(all.iter().map(|trial| trial.q[1]));
        let [j, qj] = errors(&all, 0, 1, K);
        let variance = 0.8 * 0.2 / SIZES[K] as f64;
        ratios.push((order_name, j / variance));
        table.push(row![
            order_name,
            q,
            mean(all.iter().map(|t| t.estimate(0, 1, K))),
            0.8 * q,
            j,
            j / variance,
            qj
        ]);
    }
    let printed = ERRORS[0][K] / ERRORS[1][K];
    let ratio = |k: usize| format!("{:.2}", ERRORS[0][k] / ERRORS[1][k]);
    let shown: Vec<String> = ratios.iter().map(|(order, share)| format!("{share:.2} ({order})")).collect();
    let least = ratios.iter().map(|of| of.1).fold(f64::MAX, f64::min);
    let larger: Vec<String> = by_larger.iter().map(|share| format!("{share:.2}")).collect();
    let lines = vec![
        ItemLine::new(
            "004-H1",
            "MSE of s = 2 as a share of MinHash's, the least of four orders",
            format!("1/{printed:.2}, k = 200"),
        )
        .measured(shown.join(", "))
        .judged(Basis::Measured(PrintedClaim::at_most(0.15, &[least])))
        .because(
            "at best the two are equal; one eighth needs a MinHash with a bias of about 0.195; up to 0.15 \
                would be one eighth",
        ),
        ItemLine::new(
            "004-H1",
            "MSE of s = 2 at k = 200 by MinHash's at k = 300, 400, 500, aligned texts",
            "s = 2 with k = 200 beats MinHash with larger k, so below 1",
        )
        .measured(larger.join(", "))
        .judged(Basis::Measured(PrintedClaim::at_most(1.0, &by_larger)))
        .because("the order that is best for it: errors fall as 1 / k"),
        ItemLine::new("004-H1", "MinHash's printed MSE / that of s = 2, k = 50 to 500", "one eighth")
            .measured((0..SIZES.len()).map(ratio).collect::<Vec<_>>().join(", "))
            .judged(UnjudgedReason::Arithmetic)
            .because("print beside print: in the printed table it is one eighth in one column"),
    ];
    Ok(SectionAnswers { lines, tables: vec![table], plots: vec![] })
}
