//! The tails of table 1, and the bounds that follow from them.

use super::{ERROR, PAPER_LOOKS, SIZE, THRESHOLDS, filter};
use crate::EvaluateError;
use crate::paper::{
    Basis, Decision, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason,
};
use crate::plot::{Axis, Plot, Series};
use crate::table::{ResultTable, row};
use dupflow_core::filter::Stop;
use dupflow_core::probability::Binomial;
use dupflow_core::sketch::kernel::Kernel;

/// Table 1 as printed: m, the column headed P[X <= m], the column headed P[X > m].
const PRINTED: [(usize, &str, &str); 20] = [
    (5, "1.29E-61", "1"),
    (10, "6.48E-53", "1"),
    (15, "1.57E-45", "1"),
    (20, "4.89E-39", "1"),
    (25, "3.09E-33", "1"),
    (30, "5.04E-28", "1"),
    (35, "2.49E-23", "1"),
    (40, "4.09E-19", "1"),
    (45, "2.4E-15", "1"),
    (50, "5.18E-12", "1"),
    (55, "4.22E-09", "1"),
    (60, "1.29E-06", "0.999999"),
    (65, "0.000147", "0.999853"),
    (70, "0.006059", "0.993941"),
    (75, "0.087475", "0.912525"),
    (80, "0.440538", "0.559462"),
    (85, "0.871494", "0.128506"),
    (90, "0.994304", "0.005696"),
    (95, "0.999981", "1.87E-05"),
    (100, "1", "2.04E-10"),
];

/// The first look of the source, for which table 1 is printed.
const FIRST: usize = 100;

fn distribution() -> Binomial {
    Binomial::new(FIRST, THRESHOLDS[0])
}

/// 000-T1.
pub(super) fn tails(_: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let tails = distribution();
    let mut table = ResultTable::new(
        "000_t1_tails",
        "000-T1: tails of X ~ Bin(100, 0.8)",
        "The printed columns hold what stands at their right: one m off from their headings.",
        "m | printed <= m | P[X < m] | P[X <= m] | printed > m | P[X >= m] | P[X > m]",
    );
    let columns = [
        |of: &Binomial, m: usize| of.below(m),
        |of: &Binomial, m: usize| of.below(m + 1),
        |of: &Binomial, m: usize| of.at_least(m),
        |of: &Binomial, m: usize| of.at_least(m + 1),
    ];
    for (m, below, above) in PRINTED {
        let [p, q, r, s] = columns.map(|of| of(&tails, m));
        table.push(row![m, below, p, q, above, r, s]);
    }
    // How many rows of a printed column equal the computed numbers, and whether all do.
    let fit = |column: usize| {
        let one = |(m, below, above): (usize, &'static str, &'static str)| {
            let printed = if column < 2 { below } else { above };
            // Most of the table has six decimals.
            (if printed == "1" { "1.000000" } else { printed }, columns[column](&tails, m))
        };
        let fits = |row| PrintedClaim::digits([one(row)]).decision() == Decision::Holds;
        let rows = PRINTED.into_iter().filter(|row| fits(*row)).count();
        (rows, PrintedClaim::digits(PRINTED.map(one)))
    };
    let [below, headed_below, above, headed_above] = [0, 1, 2, 3].map(fit);
    let (lower, upper) = (tails.reject_below(ERROR) - 1, tails.accept_from(ERROR));
    let line = |of: &str, printed: &str| ItemLine::new("000-T1", of, printed);
    let shown = |value: f64| format!("{value:.2e}");
    let (at_60, from_95, above_95) = (tails.below(61), tails.at_least(95), tails.at_least(96));
    let lines = vec![
        line("the column headed P[X <= m], 20 rows", "P[X <= m]")
            .measured(format!("P[X <= m] fits {} rows", headed_below.0))
            .judged(Basis::Computed(headed_below.1))
            .because("Each row has the tail of the count before."),
        line("what that column holds", "-")
            .measured(format!("P[X < m] fits {} rows", below.0))
            .judged(UnjudgedReason::Shown.checked(below.1))
            .because("By `Binomial::below`."),
        line("the column headed P[X > m], 20 rows", "P[X > m]")
            .measured(format!("P[X > m] fits {} rows", headed_above.0))
            .judged(Basis::Computed(headed_above.1))
            .because("The rows that fit are 1 to all printed digits."),
        line("what that column holds", "-")
            .measured(format!("P[X >= m] fits {} rows", above.0))
            .judged(UnjudgedReason::Shown.checked(above.1))
            .because("By `Binomial::at_least`."),
        line("the tail at T_L = 0.60, reject at or below", "within 1e-5")
            .measured(shown(at_60))
            .judged(Basis::Computed(PrintedClaim::at_most(ERROR, &[at_60])))
            .because(format!(
                "Valid, and coarse: steps of 5 pass over {lower}, the greatest valid count, with {}.",
                shown(tails.below(lower + 1))
            )),
        line("the tail at T_U = 0.95, accept at or above (000-A2)", "within 1e-5")
            .measured(shown(from_95))
            .judged(UnjudgedReason::Reading.checked(PrintedClaim::at_least(ERROR, &[from_95])))
            .because(format!("Checked: above it. {upper} is the least valid count, which its text has.")),
        line("the tail at T_U = 0.95, accept above (its text)", "within 1e-5")
            .measured(shown(above_95))
            .judged(Basis::Computed(PrintedClaim::at_most(ERROR, &[above_95])))
            .because("Above 95 is from 96 on: its text is right where its algorithm is not."),
    ];
    Ok(SectionAnswers { lines, tables: vec![table], plots: Vec::new() })
}

/// The greatest rejecting and the least accepting count of a look by itself; `None` if no count is improbable
/// enough.
fn bounds(k: usize, threshold: f64) -> (Option<usize>, Option<usize>) {
    let tails = Binomial::new(k, threshold);
    let from = tails.accept_from(ERROR);
    (tails.reject_below(ERROR).checked_sub(1), (from <= k).then_some(from))
}

/// 000-F4, 000-F5 and 000-F6.
pub(super) fn curves(_: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let mut table = ResultTable::new(
        "000_f6_bounds",
        "000-F4, 000-F6: bounds at the looks",
        "Reject with so many equal samples or fewer, accept with so many or more; T_L and T_U are these over \
            k.",
        "T | k | reject at most | accept at least | T_L | T_U",
    );
    let mut series = Vec::new();
    for threshold in THRESHOLDS {
        for look in filter(threshold)?.looks() {
            let (k, reject, accept) = (look.components, look.reject_below - 1, look.accept_from);
            let share = |count: u32| f64::from(count) / f64::from(k);
            let row = [k, reject, accept].map(|count| u64::from(count).into());
            let shares = row![share(reject), share(accept)];
            table.push(row![threshold].into_iter().chain(row).chain(shares).collect());
        }
        let points = |is_upper: bool| {
            let one = |(lower, upper): (Option<usize>, _)| if is_upper { upper } else { lower };
            let point = |k| one(bounds(k, threshold)).map(|m| (k as f64, m as f64 / k as f64));
            (10..=SIZE).step_by(10).filter_map(point).collect::<Vec<_>>()
        };
        series.push(Series::new(format!("T_L, T = {threshold}"), points(false)));
        series.push(Series::new(format!("T_U, T = {threshold}"), points(true)));
    }
    let bounds = Plot::new(
        "000_f4_bounds",
        "000-F4: T_L(k) and T_U(k), error 1e-5",
        Axis::linear("k, samples"),
        Axis::linear("share of equal samples"),
        series,
    );
    let tails = distribution();
    let all = |of: &dyn Fn(usize) -> f64| (0..=FIRST).map(|m| (m as f64, of(m))).collect::<Vec<_>>();
    let drawn = Plot::new(
        "000_f5_tails",
        "000-F5: tails of X ~ Bin(100, 0.8)",
        Axis::linear("m"),
        Axis::linear("probability"),
        vec![
            Series::new("P[X > m]", all(&|m| tails.at_least(m + 1))),
            Series::new("P[X <= m]", all(&|m| tails.below(m + 1))),
        ],
    );
    let schedule = filter(THRESHOLDS[0])?;
    let of_looks = schedule.looks().iter().map(|look| look.reject_below - 1).collect::<Vec<_>>();
    let accepting = schedule.looks().iter().map(|look| look.accept_from).collect::<Vec<_>>();
    let cross = (0..=FIRST).find(|m| tails.below(m + 1) > tails.at_least(m + 1)).unwrap_or(FIRST);
    let shares = |counts: &[u32]| -> Vec<f64> {
        counts.iter().zip(PAPER_LOOKS).map(|(count, k)| f64::from(*count) / k as f64).collect()
    };
    let closing =
        PrintedClaim::rises(1.0, &shares(&of_looks)).and(PrintedClaim::falls(1.0, &shares(&accepting)));
    let counts = |shown: &[u32], own: &[u32]| -> Vec<(f64, f64)> {
        shown.iter().zip(own).map(|(shown, own)| (f64::from(*shown), f64::from(*own))).collect()
    };
    // By exact integers, computed independently of the program.
    let apart = counts(&[61, 133, 283, 436, 589, 799], &of_looks)
        .into_iter()
        .chain(counts(&[96, 183, 353, 521, 687, 800], &accepting));
    let lines = vec![
        ItemLine::new("000-F4", "T_L(k), T_U(k)", "diagram")
            .measured("plot 000_f4_bounds")
            .judged(UnjudgedReason::Shown.checked(closing))
            .because("Both close in on T as k grows; `Binomial::reject_below` and `accept_from`."),
        ItemLine::new("000-F5", "the two tails over m, T = 0.8, k = 100", "lost")
            .measured(format!("plot 000_f5_tails; they cross at m = {cross}"))
            .judged(UnjudgedReason::StandIn.checked(PrintedClaim::equal(80.0, cross as f64, Matters::Any)))
            .because(
                "The plot is lost; the right tails are drawn, not the columns of 000-T1. They cross at the \
                    median, T k.",
            ),
        ItemLine::new("000-F6", format!("bounds at k = {PAPER_LOOKS:?}, T = 0.8"), "diagram")
            .measured(format!("reject at most {of_looks:?}, accept at least {accepting:?}"))
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::each(apart, Matters::Any)))
            .because(
                "`Schedule::per_look`; at the last look the full count decides. Beside a computation in \
                    exact whole numbers.",
            ),
    ];
    Ok(SectionAnswers { lines, tables: vec![table], plots: vec![bounds, drawn] })
}

/// 000-A2: the loop, run on constructed pairs.
pub(super) fn filter_loop(_: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let schedule = filter(THRESHOLDS[0])?;
    let kernel = Kernel::new(SIZE, 1);
    // Sample j of two sketches is equal if `is_equal(j)`.
    let walk = |is_equal: &dyn Fn(usize) -> bool| -> Stop {
        let zeros = vec![0; SIZE.div_ceil(64)];
        let mut other = zeros.clone();
        (0..SIZE).filter(|j| !is_equal(*j)).for_each(|j| other[j / 64] |= 1 << (j % 64));
        schedule.walk(&kernel, &zeros, &other)
    };
    let shown = |stop: Stop| {
        let verdict = if stop.rejected { "dropped" } else { "accepted" };
        format!("{verdict} at k = {}", stop.components)
    };
    let first = |equal: usize| shown(walk(&|j| j % 100 < equal));
    // The second pair has one equal sample less.
    let last = [SIZE, 0].map(|missing| shown(walk(&|j| j % 100 < 80 && j != missing)));
    // By hand, from the bounds of 000-T1.
    let by_hand = |printed: &str, measured: &str| PrintedClaim::same(printed, measured);
    let (dropping, emitting) =
        (format!("{}; {}", first(61), first(62)), format!("{}; {}", first(95), first(96)));
    let last = last.join("; ");
    let lines = vec![
        ItemLine::new(
            "000-A2",
            "61 and 62 of the first 100 equal, and so on",
            "drop at R(k) <= T_L, else the next look",
        )
        .measured(dropping.clone())
        .judged(Basis::Computed(by_hand("dropped at k = 100; dropped at k = 200", &dropping)))
        .because("`Schedule::walk`, with the corrected bound of 0.61; beside strings by hand."),
        ItemLine::new(
            "000-A2",
            "95 and 96 of the first 100 equal, and so on",
            "emit at R(k) >= T_U, else the next look",
        )
        .measured(emitting.clone())
        .judged(Basis::Computed(by_hand("accepted at k = 200; accepted at k = 100", &emitting)))
        .because("With the corrected bound of 0.96."),
        ItemLine::new("000-A2", "800 and 799 of 1000 equal, undecided until then", "no rule at k = K")
            .measured(last.clone())
            .judged(
                UnjudgedReason::Reading.checked(by_hand("accepted at k = 1000; dropped at k = 1000", &last)),
            )
            .because("A pair is accepted there iff at least T K samples are equal."),
    ];
    Ok(SectionAnswers { lines, ..SectionAnswers::default() })
}
