//! The tails of table 1, and the bounds that follow from them.

use super::{ERROR, PAPER_LOOKS, SIZE, THRESHOLDS, filter};
use crate::evaluate::EvaluateError;
use crate::evaluate::paper::{Line, Made, Verdict, Work};
use crate::evaluate::plot::{Axis, Plot, Series};
use crate::evaluate::table::{Table, row};
use crate::filter::Stop;
use crate::filter::binomial::Binomial;
use crate::sketch::kernel::Kernel;

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

/// The first look of the source, and its threshold in table 1.
const FIRST: usize = 100;

fn distribution() -> Binomial {
    Binomial::new(FIRST, THRESHOLDS[0])
}

/// Whether a printed number is this one, rounded; a whole number is taken for one of six decimals, as most of the table has.
fn is(printed: &str, value: f64) -> bool {
    let (digits, power) = printed.split_once('E').unwrap_or((printed, "0"));
    let decimals = digits.split_once('.').map_or(6, |(_, decimals)| decimals.len());
    let number = |text: &str| text.parse::<f64>().expect("a number is printed");
    let unit = 10_f64.powf(number(power) - decimals as f64);
    (number(printed) - value).abs() <= 0.51 * unit
}

/// 000-T1.
pub(super) fn tails(_: &Work<'_>) -> Result<Made, EvaluateError> {
    let tails = distribution();
    let mut table = Table::new(
        "000_t1_tails",
        "000-T1: tails of X ~ Bin(100, 0.8)",
        "The printed columns hold what stands at their right: one m off from their headings.",
        &["m", "printed <= m", "P[X < m]", "P[X <= m]", "printed > m", "P[X >= m]", "P[X > m]"],
    );
    let mut fits = [0; 4];
    for (m, below, above) in PRINTED {
        let values = [tails.below(m), tails.below(m + 1), tails.at_least(m), tails.at_least(m + 1)];
        for ((count, value), printed) in fits.iter_mut().zip(values).zip([below, below, above, above]) {
            *count += usize::from(is(printed, value));
        }
        table.push(row![m, below, values[0], values[1], above, values[2], values[3]]);
    }
    let [below, headed_below, above, headed_above] = fits;
    let (lower, upper) = (tails.reject_below(ERROR) - 1, tails.accept_from(ERROR));
    let ratio = |m: usize| format!("{:.2}", m as f64 / FIRST as f64);
    let lines = vec![
        Line::new(
            "000-T1",
            "the column headed P[X <= m], 20 rows",
            "P[X <= m]",
            format!("P[X < m] fits {below} rows, P[X <= m] {headed_below}"),
            Verdict::Misprint,
            "Each row has the tail of the count before.",
        ),
        Line::new(
            "000-T1",
            "the column headed P[X > m], 20 rows",
            "P[X > m]",
            format!("P[X >= m] fits {above} rows, P[X > m] {headed_above}"),
            Verdict::Misprint,
            "Those that fit both are 1 to all printed digits.",
        ),
        Line::new(
            "000-T1",
            "T_L, reject at or below",
            "0.60",
            ratio(lower),
            Verdict::Misprint,
            format!(
                "The tail at {lower} is {:.2e}, within 1e-5; steps of 5 pass it over.",
                tails.below(lower + 1)
            ),
        ),
        Line::new(
            "000-T1",
            "T_U, accept at or above",
            "0.95",
            ratio(upper),
            Verdict::Misprint,
            format!(
                "The tail from 95 on is {:.2e}, above 1e-5; above 95, as the text has it, it is {:.1e}.",
                tails.at_least(95),
                tails.at_least(96)
            ),
        ),
    ];
    Ok(Made { lines, tables: vec![table], plots: Vec::new() })
}

/// Greatest rejecting and least accepting count at a look, each by itself; `None` where no count is unlikely enough.
fn bounds(k: usize, threshold: f64) -> (Option<usize>, Option<usize>) {
    let tails = Binomial::new(k, threshold);
    let from = tails.accept_from(ERROR);
    (tails.reject_below(ERROR).checked_sub(1), (from <= k).then_some(from))
}

/// 000-F4, 000-F5 and 000-F6.
pub(super) fn curves(_: &Work<'_>) -> Result<Made, EvaluateError> {
    let mut table = Table::new(
        "000_f6_bounds",
        "000-F4, 000-F6: bounds at the looks",
        "Reject with so many equal samples or fewer, accept with so many or more; T_L and T_U are these over k.",
        &["T", "k", "reject at most", "accept at least", "T_L", "T_U"],
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
            (10..=SIZE).step_by(10).filter_map(point).collect()
        };
        series.push(Series { name: format!("T_L, T = {threshold}"), points: points(false) });
        series.push(Series { name: format!("T_U, T = {threshold}"), points: points(true) });
    }
    let bounds = Plot {
        name: "000_f4_bounds".to_owned(),
        title: "000-F4: T_L(k) and T_U(k), error 1e-5".to_owned(),
        x: Axis::linear("k, samples"),
        y: Axis::linear("share of equal samples"),
        series,
    };
    let tails = distribution();
    let all = |of: &dyn Fn(usize) -> f64| (0..=FIRST).map(|m| (m as f64, of(m))).collect();
    let drawn = Plot {
        name: "000_f5_tails".to_owned(),
        title: "000-F5: tails of X ~ Bin(100, 0.8)".to_owned(),
        x: Axis::linear("m"),
        y: Axis::linear("probability"),
        series: vec![
            Series { name: "P[X > m]".to_owned(), points: all(&|m| tails.at_least(m + 1)) },
            Series { name: "P[X <= m]".to_owned(), points: all(&|m| tails.below(m + 1)) },
        ],
    };
    let of_looks =
        filter(THRESHOLDS[0])?.looks().iter().map(|look| look.reject_below - 1).collect::<Vec<_>>();
    let accepting = filter(THRESHOLDS[0])?.looks().iter().map(|look| look.accept_from).collect::<Vec<_>>();
    let cross = (0..=FIRST).find(|m| tails.below(m + 1) > tails.at_least(m + 1)).unwrap_or(FIRST);
    let lines = vec![
        Line::new(
            "000-F4",
            "T_L(k), T_U(k)",
            "diagram",
            "plot 000_f4_bounds",
            Verdict::Shown,
            "Both close in on T as k grows; `Binomial::reject_below` and `accept_from`.",
        ),
        Line::new(
            "000-F5",
            "the two tails over m, T = 0.8, k = 100",
            "lost",
            format!("plot 000_f5_tails; they cross at m = {cross}"),
            Verdict::StandIn,
            "The plot is lost; the right tails are drawn, not the columns of 000-T1.",
        ),
        Line::new(
            "000-F6",
            format!("bounds at k = {PAPER_LOOKS:?}, T = 0.8"),
            "diagram",
            format!("reject at most {of_looks:?}, accept at least {accepting:?}"),
            Verdict::Shown,
            "`Schedule::per_look`; at the last look the full count decides.",
        ),
    ];
    Ok(Made { lines, tables: vec![table], plots: vec![bounds, drawn] })
}

/// 000-A2: the loop, run on pairs made for it.
pub(super) fn filter_loop(_: &Work<'_>) -> Result<Made, EvaluateError> {
    let schedule = filter(THRESHOLDS[0])?;
    let kernel = Kernel::new(SIZE, 1);
    // One bit says where two sketches differ: sample j is equal if `is_equal(j)`.
    let walk = |is_equal: &dyn Fn(usize) -> bool| -> Stop {
        let zeros = vec![0; SIZE.div_ceil(64)];
        let mut other = zeros.clone();
        (0..SIZE).filter(|j| !is_equal(*j)).for_each(|j| other[j / 64] |= 1 << (j % 64));
        schedule.walk(&kernel, &zeros, &other)
    };
    let told = |stop: Stop| {
        let verdict = if stop.rejected { "dropped" } else { "accepted" };
        format!("{verdict} at k = {}", stop.components)
    };
    let first = |equal: usize| told(walk(&|j| j % 100 < equal));
    // The second pair has one equal sample less.
    let last = [SIZE, 0].map(|missing| told(walk(&|j| j % 100 < 80 && j != missing)));
    let lines = vec![
        Line::new(
            "000-A2",
            "61 and 62 of the first 100 equal, and so on",
            "drop at R(k) <= T_L, else the next look",
            format!("{}; {}", first(61), first(62)),
            Verdict::Agrees,
            "`Schedule::walk`, with the corrected bound of 0.61.",
        ),
        Line::new(
            "000-A2",
            "95 and 96 of the first 100 equal, and so on",
            "emit at R(k) >= T_U, else the next look",
            format!("{}; {}", first(95), first(96)),
            Verdict::Agrees,
            "With the corrected bound of 0.96.",
        ),
        Line::new(
            "000-A2",
            "800 and 799 of 1000 equal, undecided until then",
            "no rule at k = K",
            last.join("; "),
            Verdict::Misprint,
            "A pair is accepted there iff at least T K samples are equal.",
        ),
    ];
    Ok(Made { lines, ..Made::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_number_is_a_rounded_one() {
        assert!(is("0.994304", 0.994_304_3) && !is("0.994304", 0.994_305));
        assert!(is("1.29E-06", 1.2949e-6) && !is("1.29E-06", 1.31e-6));
        assert!(is("1", 1.0 - 1e-8) && !is("1", 1.0 - 3e-6));
    }
}
