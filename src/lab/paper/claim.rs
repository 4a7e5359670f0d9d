//! Claims: a statement of a source as numbers, each with the range in which the statement holds.
//!
//! A [`PrintedClaim`] is made at one seed, and [pooled](PrintedClaim::pool) with those of other seeds: each
//! of its numbers then has a sample for every seed. A statement [holds](Decision::Holds) if the interval of
//! each number ([`interval`](crate::interval)) lies in its range, [fails](Decision::Fails) if the interval of
//! one lies beyond, and is else [open](Decision::Open).
//!
//! A range follows from the printed number and the least difference that would matter, or from a bound or an
//! order. It does not depend on how much samples vary: that is what the interval is for. Where a source uses
//! words without a number ("high", "grows little"), the code that makes the claim chooses one.

use std::fmt;

use crate::interval::{OUTSIDE, deviation, half_width, mean, seeds_to_decide};

/// A measured number and the range in which the statement holds.
#[derive(Clone, Debug, PartialEq)]
pub struct ClaimedNumber {
    /// The least value with which the statement holds, inclusive.
    pub low: f64,
    /// The greatest value with which it holds, inclusive.
    pub high: f64,
    /// The measured value at each seed, or one value that depends on no seed.
    pub samples: Vec<f64>,
}

/// The least difference to a printed number that would matter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Matters {
    /// Any, beyond floating-point rounding.
    Any,
    /// An absolute difference.
    From(f64),
    /// A fraction of the printed number.
    Share(f64),
}

/// Whether a statement is confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Decision {
    /// The intervals of all its numbers lie in their ranges.
    Holds,
    /// The interval of a number lies beyond its range.
    Fails,
    /// Neither.
    Open,
}

impl Matters {
    fn least(self, printed: f64) -> f64 {
        match self {
            Self::Any => 1e-12 * printed.abs(),
            Self::From(least) => least,
            Self::Share(share) => share * printed.abs(),
        }
    }
}

impl fmt::Display for Matters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Any => f.write_str("equal"),
            Self::From(least) => write!(f, "equal ± {}", short(*least)),
            Self::Share(share) => write!(f, "equal ± {} %", short(100.0 * share)),
        }
    }
}

/// A number with up to three significant digits.
fn short(number: f64) -> String {
    let size = number.abs();
    if size > 0.0 && !(1e-3..1e6).contains(&size) {
        let text = format!("{number:.2e}");
        return text.replace(".00e", "e").replace("0e", "e");
    }
    rounded(number, 2)
}

/// A number with this many digits after the first, none of them zeros at its end.
fn rounded(number: f64, digits: i32) -> String {
    let whole = number.abs().log10().floor().max(-3.0);
    let unit = 10_f64.powi(-digits) * 10_f64.powf(whole);
    let unit = unit.min(1.0);
    let text = format!("{:.7}", (number / unit).round() * unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl ClaimedNumber {
    /// The mean over seeds, and half the width of its interval.
    fn interval(&self, outside: f64) -> (f64, f64) {
        (mean(&self.samples), half_width(deviation(&self.samples), self.samples.len(), outside))
    }

    /// How far the mean lies inside the range; negative beyond it.
    fn inside(&self) -> f64 {
        let mean = mean(&self.samples);
        (mean - self.low).min(self.high - mean)
    }

    fn decision(&self, outside: f64) -> Decision {
        let (inside, half) = (self.inside(), self.interval(outside).1);
        if inside >= half {
            Decision::Holds
        } else if inside < -half {
            Decision::Fails
        } else {
            Decision::Open
        }
    }

    /// The number of seeds that would decide, if ten thousand are enough.
    fn seeds_to_decide(&self, outside: f64) -> Option<usize> {
        seeds_to_decide(deviation(&self.samples), self.inside().abs(), outside)
    }

    /// The same samples, moved so that their interval lies just beyond an end of the range.
    fn beyond(&self, outside: f64) -> impl Iterator<Item = Self> {
        let (mean, half) = self.interval(outside);
        let step = |end: f64| half + 1e-6 * end.abs().max(half).max(1e-6);
        let to = [self.low - step(self.low), self.high + step(self.high)];
        to.into_iter().filter(|to| to.is_finite()).map(move |to| {
            let samples = self.samples.iter().map(|sample| sample - mean + to).collect();
            Self { samples, ..self.clone() }
        })
    }

    /// All samples at a point of the range.
    fn within(&self) -> Self {
        let point = match (self.low.is_finite(), self.high.is_finite()) {
            (true, true) => f64::midpoint(self.low, self.high),
            (true, false) => self.low,
            _ => self.high,
        };
        Self { samples: vec![point; self.samples.len()], ..self.clone() }
    }
}

/// A statement of a source with the numbers that decide whether it is true.
#[derive(Clone, Debug, PartialEq)]
pub struct PrintedClaim {
    /// The relation in words, with the least difference that would matter.
    words: String,
    numbers: Vec<ClaimedNumber>,
}

/// Parses a printed number; returns it with half a unit of its last digit. Commas separate thousands, `E` is
/// a power of ten.
fn read(text: &str) -> (f64, f64) {
    let plain = text.replace(',', "");
    let (digits, power) = plain.split_once('E').unwrap_or((&plain, "0"));
    let decimals = digits.split_once('.').map_or(0, |(_, decimals)| decimals.len());
    let number = |of: &str| of.parse::<f64>().expect("a number is printed");
    (number(&plain), 0.5 * 10_f64.powf(number(power) - decimals as f64))
}

/// "each " before a relation of several numbers.
fn each(count: usize) -> &'static str {
    if count > 1 { "each " } else { "" }
}

impl PrintedClaim {
    /// Ranges with one measured value each.
    fn new(words: String, ranges: impl IntoIterator<Item = (f64, f64, f64)>) -> Self {
        let number = |(low, high, value)| ClaimedNumber { low, high, samples: vec![value] };
        Self { words, numbers: ranges.into_iter().map(number).collect() }
    }

    /// The measured number equals the printed one.
    pub fn equal(printed: f64, measured: f64, matters: Matters) -> Self {
        Self::each([(printed, measured)], matters)
    }

    /// Each measured number equals its printed one.
    pub fn each(pairs: impl IntoIterator<Item = (f64, f64)>, matters: Matters) -> Self {
        let range = |(printed, measured): (f64, f64)| {
            (printed - matters.least(printed), printed + matters.least(printed), measured)
        };
        let ranges: Vec<_> = pairs.into_iter().map(range).collect();
        Self::new(format!("{}{matters}", each(ranges.len())), ranges)
    }

    /// Each measured number, rounded to the digits of its printed one, equals it.
    pub fn digits<'p>(pairs: impl IntoIterator<Item = (&'p str, f64)>) -> Self {
        let range = |(text, measured): (&str, f64)| {
            let (printed, half) = read(text);
            (printed - 1.02 * half, printed + 1.02 * half, measured)
        };
        Self::new("equal to the printed digits".to_owned(), pairs.into_iter().map(range))
    }

    /// The texts are equal: a number that is 1 then, else 0.
    pub fn same(printed: &str, measured: &str) -> Self {
        let is_same = f64::from(u8::from(printed == measured));
        Self::new("the same words".to_owned(), [(1.0, 1.0, is_same)])
    }

    /// A count is 0: no missed pair, no different answer.
    pub fn none(count: usize) -> Self {
        Self::equal(0.0, count as f64, Matters::Any)
    }

    /// Each number is at least the bound.
    pub fn at_least(bound: f64, all: &[f64]) -> Self {
        let words = format!("{}at least {}", each(all.len()), short(bound));
        Self::new(words, all.iter().map(|value| (bound, f64::INFINITY, *value)))
    }

    /// Each number is at most the bound.
    pub fn at_most(bound: f64, all: &[f64]) -> Self {
        let words = format!("{}at most {}", each(all.len()), short(bound));
        Self::new(words, all.iter().map(|value| (f64::NEG_INFINITY, bound, *value)))
    }

    /// Each number is at least the factor times the one before; the compared numbers are the differences.
    pub fn rises(times: f64, all: &[f64]) -> Self {
        let words = match times {
            1.0 => "rises: each step at least 0".to_owned(),
            times => format!("rises: each less {} times the one before at least 0", short(times)),
        };
        Self::new(words, all.windows(2).map(|two| (0.0, f64::INFINITY, two[1] - times * two[0])))
    }

    /// Each number is at most the factor times the one before; the compared numbers are the differences.
    pub fn falls(times: f64, all: &[f64]) -> Self {
        let words = match times {
            1.0 => "falls: each step at most 0".to_owned(),
            times => format!("falls: each less {} times the one before at most 0", short(times)),
        };
        Self::new(words, all.windows(2).map(|two| (f64::NEG_INFINITY, 0.0, two[1] - times * two[0])))
    }

    /// The first number is at most the factor times each other one; the compared numbers are the differences.
    pub fn least(times: f64, all: &[f64]) -> Self {
        let words = match times {
            1.0 => "the least: each other less it at least 0".to_owned(),
            times => format!("the least: {} times each other less it at least 0", short(times)),
        };
        Self::new(words, all[1..].iter().map(|other| (0.0, f64::INFINITY, times * other - all[0])))
    }

    /// Both claims.
    #[must_use]
    pub fn and(mut self, other: Self) -> Self {
        if self.words != other.words {
            self.words = format!("{}; {}", self.words, other.words);
        }
        self.numbers.extend(other.numbers);
        self
    }

    /// Adds the samples of the same claim at another seed.
    ///
    /// # Panics
    /// If it has other ranges: a range follows from the print, not from the measurement.
    pub fn pool(&mut self, other: &Self) {
        assert_eq!(self.numbers.len(), other.numbers.len(), "{}: at each seed as many numbers", self.words);
        for (number, more) in self.numbers.iter_mut().zip(&other.numbers) {
            let (ours, theirs) = ((number.low, number.high), (more.low, more.high));
            assert_eq!(ours, theirs, "{}: the same range at each seed", self.words);
            number.samples.extend(&more.samples);
        }
    }

    /// The probability that the interval of one number misses its mean.
    fn outside(&self) -> f64 {
        OUTSIDE / self.numbers.len().max(1) as f64
    }

    /// Whether the measurement confirms the statement.
    pub fn decision(&self) -> Decision {
        let all = || self.numbers.iter().map(|number| number.decision(self.outside()));
        if all().any(|decision| decision == Decision::Fails) {
            Decision::Fails
        } else if all().all(|decision| decision == Decision::Holds) {
            Decision::Holds
        } else {
            Decision::Open
        }
    }

    /// The number of seeds that would decide all numbers that are open, if ten thousand are enough.
    pub fn seeds_to_decide(&self) -> Option<usize> {
        let outside = self.outside();
        let open = self.numbers.iter().filter(|number| number.decision(outside) == Decision::Open);
        open.map(|number| number.seeds_to_decide(outside)).try_fold(0, |most, seeds| Some(most.max(seeds?)))
    }

    /// Its numbers.
    pub fn numbers(&self) -> &[ClaimedNumber] {
        &self.numbers
    }

    /// Its measurement over seeds: the interval of the number that decides, with its range.
    pub fn over_seeds(&self) -> String {
        let outside = self.outside();
        let clear = |number: &ClaimedNumber| {
            let half = number.interval(outside).1;
            if half > 0.0 { number.inside() / half } else { number.inside().signum() * f64::INFINITY }
        };
        let Some(first) = self.numbers.first() else { return "-".to_owned() };
        let seeds = first.samples.len();
        if seeds < 2 {
            return "no seed".to_owned();
        }
        let nearest = self.numbers.iter().min_by(|a, b| clear(a).total_cmp(&clear(b))).unwrap_or(first);
        let (mean, half) = nearest.interval(outside);
        let digits = if nearest.high - nearest.low < 1e-3 * nearest.high.abs() { 6 } else { 3 };
        let number = |value: f64| {
            let size = value.abs();
            let is_plain = size == 0.0 || (1e-3..1e6).contains(&size);
            if is_plain { rounded(value, digits) } else { format!("{value:.3e}") }
        };
        let range = match (nearest.low.is_finite(), nearest.high.is_finite()) {
            (true, true) if nearest.high - nearest.low <= 3e-12 * nearest.high.abs() => number(nearest.high),
            (true, true) => format!("{} to {}", number(nearest.low), number(nearest.high)),
            (true, false) => format!("at least {}", number(nearest.low)),
            _ => format!("at most {}", number(nearest.high)),
        };
        let which = match self.numbers.len() {
            1 => String::new(),
            count => format!("of {count} the nearest: "),
        };
        let shown = if half > 0.0 {
            format!("{} to {}", number(mean - half), number(mean + half))
        } else {
            number(mean)
        };
        let open = match self.seeds_to_decide() {
            _ if self.decision() != Decision::Open => String::new(),
            Some(needed) => format!("; {needed} seeds would tell"),
            None => "; ten thousand seeds would not tell".to_owned(),
        };
        format!("{which}{shown}, wanted {range}{open}")
    }

    /// Claims that fail: in each the samples of one number are moved just beyond an end of its range.
    pub fn beyond(&self) -> Vec<Self> {
        let outside = self.outside();
        let one = |(at, number): (usize, &ClaimedNumber)| {
            let moved = number.beyond(outside).map(|moved| {
                let mut changed = self.clone();
                changed.numbers[at] = moved;
                changed
            });
            moved.collect::<Vec<_>>()
        };
        self.numbers.iter().enumerate().flat_map(one).collect()
    }

    /// A claim that holds: all numbers are moved into their ranges.
    #[must_use]
    pub fn within(&self) -> Self {
        Self { numbers: self.numbers.iter().map(ClaimedNumber::within).collect(), ..self.clone() }
    }
}

impl fmt::Display for PrintedClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.words)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn pooled(claims: impl IntoIterator<Item = PrintedClaim>) -> PrintedClaim {
        let sum = |mut all: PrintedClaim, more: PrintedClaim| {
            all.pool(&more);
            all
        };
        claims.into_iter().reduce(sum).unwrap()
    }

    #[test]
    fn a_printed_number_is_a_rounded_one() {
        let is = |printed, value| PrintedClaim::digits([(printed, value)]).decision() == Decision::Holds;
        assert!(is("0.994304", 0.994_304_3) && !is("0.994304", 0.994_305));
        assert!(is("1.29E-06", 1.2949e-6) && !is("1.29E-06", 1.31e-6));
        assert!(is("90,260", 90_260.4) && !is("90,260", 89_541.0));
        assert!(is("0.003", 0.002_97) && !is("0.009", 0.007_97));
    }

    /// The interval of 1.00 to 1.04 is 1.02 ± 0.0326; it lies within 1 ± 0.06, and beyond 1 ± 0.02 only if it
    /// is moved.
    #[test]
    fn the_whole_interval_has_to_lie_on_one_side() {
        let claim = |matters: f64, shift: f64| {
            let seeds = [1.0, 1.01, 1.02, 1.03, 1.04].map(|sample| sample + shift);
            pooled(seeds.map(|sample| PrintedClaim::equal(1.0, sample, Matters::From(matters))))
        };
        assert_eq!(claim(0.06, 0.0).decision(), Decision::Holds);
        assert_eq!(
            (claim(0.05, 0.0).decision(), claim(0.05, 0.0).seeds_to_decide()),
            (Decision::Open, Some(6))
        );
        assert_eq!(claim(0.02, 0.1).decision(), Decision::Fails);
        // The mean is at the end of the range.
        assert_eq!((claim(0.02, 0.0).decision(), claim(0.02, 0.0).seeds_to_decide()), (Decision::Open, None));
        let shown = "0.9874 to 1.053, wanted 0.95 to 1.05; 6 seeds would tell";
        assert_eq!(claim(0.05, 0.0).over_seeds(), shown);
    }

    /// Each relation, once where it holds and once where it does not, at three seeds.
    #[test]
    fn what_is_perturbed_turns() {
        let claims = |shift: f64, noise: f64| {
            let shift = shift + noise;
            vec![
                PrintedClaim::each([(1.0, 1.05 + shift), (2.0, 2.0)], Matters::From(0.1)),
                PrintedClaim::equal(10.0, 10.5 + 20.0 * shift, Matters::Share(0.1)),
                PrintedClaim::none(if shift > 0.5 { 3 } else { 0 }),
                PrintedClaim::at_least(0.9, &[0.95 - shift, 1.0]),
                PrintedClaim::at_most(1e-5, &[3.7e-6 + shift / 1e4]),
                PrintedClaim::rises(2.0, &[1.0, 3.0 - 5.0 * shift, 7.0]),
                PrintedClaim::falls(1.0, &[5.0, 4.9 + shift, 4.0]),
                PrintedClaim::least(0.95, &[1.0 + shift, 1.1, 2.0]),
                PrintedClaim::same("abc", if shift > 0.5 { "abd" } else { "abc" }),
                PrintedClaim::none(0).and(PrintedClaim::at_least(1.0, &[1.1 - shift, 2.0])),
            ]
        };
        for (shift, expected) in [(0.0, Decision::Holds), (1.0, Decision::Fails)] {
            let seeds = [0.0, 1e-3, 2e-3].map(|noise| claims(shift, noise));
            for at in 0..seeds[0].len() {
                let claim = pooled(seeds.iter().map(|of_seed| of_seed[at].clone()));
                assert_eq!(claim.decision(), expected, "{claim:?}");
                assert_eq!(claim.within().decision(), Decision::Holds, "{claim:?}");
                let beyond = claim.beyond();
                assert!(beyond.len() >= claim.numbers().len(), "{claim:?}");
                for turned in beyond {
                    assert_eq!(turned.decision(), Decision::Fails, "{claim:?} became {turned:?}");
                }
            }
        }
    }

    #[test]
    fn a_claim_says_what_matters() {
        let shown = [
            PrintedClaim::equal(1.0, 1.0, Matters::Share(0.005)),
            PrintedClaim::at_most(0.7, &[0.1, 0.2]),
            PrintedClaim::least(0.95, &[1.0, 2.0]),
            PrintedClaim::at_most(1e-5, &[1e-6]),
            PrintedClaim::at_least(4097.0, &[1e-6]),
            PrintedClaim::at_most((-100_f64).exp(), &[1e-6]),
            PrintedClaim::each([(1.0, 1.0), (2.0, 2.0)], Matters::Any),
        ]
        .map(|claim| claim.to_string());
        let expected = [
            "equal ± 0.5 %",
            "each at most 0.7",
            "the least: 0.95 times each other less it at least 0",
            "at most 1e-5",
            "at least 4097",
            "at most 3.72e-44",
            "each equal",
        ];
        assert_eq!(shown, expected);
    }
}
