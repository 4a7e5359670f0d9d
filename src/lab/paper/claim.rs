//! Claims: a printed number of a source, compared with a measured one.
//!
//! A [`PrintedClaim`] consists of printed and measured values and a tolerance under a relation. These alone
//! determine whether it [holds](Claim::holds). `Display` writes the relation with the tolerance. Where a
//! source uses words without a number ("high", "grows little"), the code that makes the claim chooses one.
//!
//! [`PrintedClaim::perturbed`] returns variants with the opposite outcome, for tests: one for each measured
//! number, moved just beyond its tolerance; if the claim does not hold, one with all numbers moved to where
//! it does.

use std::fmt;

/// A printed and a measured number with their tolerance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ComparedNumber {
    /// The printed number.
    pub printed: f64,
    /// The measured number.
    pub measured: f64,
    /// Maximum difference, inclusive.
    pub slack: f64,
}

impl ComparedNumber {
    fn holds(self) -> bool {
        (self.measured - self.printed).abs() <= self.slack
    }
}

/// How a maximum difference is determined.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Tolerance {
    /// Equal, up to floating-point rounding.
    Exact,
    /// An absolute difference.
    Within(f64),
    /// A number of standard deviations, and the standard deviation.
    Deviations(f64, f64),
    /// A fraction of the printed number.
    Share(f64),
}

impl Tolerance {
    fn slack(self, printed: f64) -> f64 {
        match self {
            Self::Exact => 1e-12 * printed.abs(),
            Self::Within(slack) => slack,
            Self::Deviations(count, deviation) => count * deviation,
            Self::Share(share) => share * printed.abs(),
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
    let whole = size.log10().floor().max(-3.0);
    let unit = 10_f64.powf(whole - 2.0).min(1.0);
    let text = format!("{:.5}", (number / unit).round() * unit);
    text.trim_end_matches('0').trim_end_matches('.').to_owned()
}

impl fmt::Display for Tolerance {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact => f.write_str("equal"),
            Self::Within(slack) => write!(f, "equal ± {}", short(*slack)),
            Self::Deviations(count, deviation) => {
                write!(f, "equal ± {count} standard deviations of {}", short(*deviation))
            }
            Self::Share(share) => write!(f, "equal ± {} %", short(100.0 * share)),
        }
    }
}

/// A statement of a source with the numbers that decide whether it is true.
#[derive(Clone, Debug, PartialEq)]
pub enum PrintedClaim {
    /// Each number is the printed one.
    Equal {
        /// The numbers.
        all: Vec<ComparedNumber>,
        /// The tolerance in words.
        within: String,
    },
    /// Each number is at least the printed one.
    AtLeast(f64, Vec<f64>),
    /// Each number is at most the printed one.
    AtMost(f64, Vec<f64>),
    /// Each number is at least the factor times the one before.
    Rises(f64, Vec<f64>),
    /// Each number is at most the factor times the one before.
    Falls(f64, Vec<f64>),
    /// The first number is at most the factor times each other one.
    Least(f64, Vec<f64>),
    /// The texts are equal.
    Same {
        /// As printed, or derived from the print by hand.
        printed: String,
        /// As measured.
        measured: String,
    },
    /// All of these claims.
    All(Vec<PrintedClaim>),
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

impl PrintedClaim {
    /// The measured number equals the printed one, within a tolerance.
    pub fn equal(printed: f64, measured: f64, tolerance: Tolerance) -> Self {
        Self::each([(printed, measured)], tolerance)
    }

    /// Each measured number equals its printed one, within a tolerance.
    pub fn each(pairs: impl IntoIterator<Item = (f64, f64)>, tolerance: Tolerance) -> Self {
        let near =
            |(printed, measured)| ComparedNumber { printed, measured, slack: tolerance.slack(printed) };
        let all: Vec<ComparedNumber> = pairs.into_iter().map(near).collect();
        let within = tolerance.to_string();
        Self::Equal { within: if all.len() > 1 { format!("each {within}") } else { within }, all }
    }

    /// Each measured number, rounded to the digits of its printed one, equals it.
    pub fn digits<'p>(pairs: impl IntoIterator<Item = (&'p str, f64)>) -> Self {
        let near = |(text, measured): (&str, f64)| {
            let (printed, half) = read(text);
            ComparedNumber { printed, measured, slack: 1.02 * half }
        };
        Self::Equal {
            all: pairs.into_iter().map(near).collect(),
            within: "equal to the printed digits".to_owned(),
        }
    }

    /// The texts are equal.
    pub fn same(printed: impl Into<String>, measured: impl Into<String>) -> Self {
        Self::Same { printed: printed.into(), measured: measured.into() }
    }

    /// A count is 0: no missed pair, no different answer.
    pub fn none(count: usize) -> Self {
        Self::equal(0.0, count as f64, Tolerance::Exact)
    }

    /// Whether the measurement confirms the statement.
    pub fn holds(&self) -> bool {
        let steps = |all: &[f64], is: &dyn Fn(f64, f64) -> bool| all.windows(2).all(|two| is(two[0], two[1]));
        match self {
            Self::Equal { all, .. } => all.iter().all(|near| near.holds()),
            Self::AtLeast(bound, all) => all.iter().all(|value| value >= bound),
            Self::AtMost(bound, all) => all.iter().all(|value| value <= bound),
            Self::Rises(times, all) => steps(all, &|before, after| after >= times * before),
            Self::Falls(times, all) => steps(all, &|before, after| after <= times * before),
            Self::Least(times, all) => all[1..].iter().all(|other| all[0] <= times * other),
            Self::Same { printed, measured } => printed == measured,
            Self::All(claims) => claims.iter().all(Self::holds),
        }
    }

    /// Number of measured numbers or texts that can be perturbed.
    pub fn len(&self) -> usize {
        match self {
            Self::Equal { all, .. } => all.len(),
            Self::AtLeast(_, all) | Self::AtMost(_, all) => all.len(),
            // The first number is perturbed together with the second.
            Self::Rises(_, all) | Self::Falls(_, all) | Self::Least(_, all) => all.len() - 1,
            Self::Same { .. } => 1,
            Self::All(claims) => claims.iter().map(Self::len).sum(),
        }
    }

    /// Whether there is nothing to compare.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Claims with the opposite outcome; see the module.
    pub fn perturbed(&self) -> Vec<Self> {
        if self.holds() { (0..self.len()).map(|at| self.without(at)).collect() } else { vec![self.mended()] }
    }

    /// With one number moved beyond its tolerance.
    fn without(&self, at: usize) -> Self {
        let beyond = |bound: f64| 1e-6 * bound.abs().max(1e-6);
        let mut changed = self.clone();
        match &mut changed {
            Self::Equal { all, .. } => {
                let near = &mut all[at];
                near.measured = near.printed + 1.01 * near.slack + beyond(near.printed);
            }
            Self::AtLeast(bound, all) => all[at] = *bound - beyond(*bound),
            Self::AtMost(bound, all) => all[at] = *bound + beyond(*bound),
            Self::Rises(times, all) => all[at + 1] = *times * all[at] - beyond(all[at]),
            Self::Falls(times, all) => all[at + 1] = *times * all[at] + beyond(all[at]),
            Self::Least(times, all) => all[at + 1] = all[0] / *times - beyond(all[0]),
            Self::Same { measured, .. } => measured.push('?'),
            Self::All(claims) => {
                let mut left = at;
                for claim in claims {
                    if left < claim.len() {
                        *claim = claim.without(left);
                        break;
                    }
                    left -= claim.len();
                }
            }
        }
        changed
    }

    /// With all numbers moved to where the claim holds.
    fn mended(&self) -> Self {
        let mut changed = self.clone();
        match &mut changed {
            Self::Equal { all, .. } => all.iter_mut().for_each(|near| near.measured = near.printed),
            Self::AtLeast(bound, all) | Self::AtMost(bound, all) => all.fill(*bound),
            Self::Rises(times, all) | Self::Falls(times, all) => {
                (1..all.len()).for_each(|at| all[at] = *times * all[at - 1]);
            }
            Self::Least(times, all) => {
                let least = all[1..].iter().copied().fold(f64::INFINITY, f64::min);
                all[0] = *times * least;
            }
            Self::Same { printed, measured } => measured.clone_from(printed),
            Self::All(claims) => claims.iter_mut().for_each(|claim| *claim = claim.mended()),
        }
        changed
    }
}

impl fmt::Display for PrintedClaim {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let each = |all: &[f64]| if all.len() > 1 { "each " } else { "" };
        match self {
            Self::Equal { within, .. } => f.write_str(within),
            Self::AtLeast(bound, all) => write!(f, "{}at least {}", each(all), short(*bound)),
            Self::AtMost(bound, all) => write!(f, "{}at most {}", each(all), short(*bound)),
            Self::Rises(1.0, _) => f.write_str("rises"),
            Self::Falls(1.0, _) => f.write_str("falls"),
            Self::Least(1.0, _) => f.write_str("the least"),
            Self::Rises(times, _) => write!(f, "rises: each at least {} times the one before", short(*times)),
            Self::Falls(times, _) => write!(f, "falls: each at most {} times the one before", short(*times)),
            Self::Least(times, _) => write!(f, "the least: at most {} times any other", short(*times)),
            Self::Same { .. } => f.write_str("the same words"),
            Self::All(claims) => {
                let mut shown: Vec<String> = claims.iter().map(ToString::to_string).collect();
                shown.dedup();
                f.write_str(&shown.join("; "))
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_printed_number_is_a_rounded_one() {
        let is = |printed, value| PrintedClaim::digits([(printed, value)]).holds();
        assert!(is("0.994304", 0.994_304_3) && !is("0.994304", 0.994_305));
        assert!(is("1.29E-06", 1.2949e-6) && !is("1.29E-06", 1.31e-6));
        assert!(is("90,260", 90_260.4) && !is("90,260", 89_541.0));
        assert!(is("0.003", 0.002_97) && !is("0.009", 0.007_97));
    }

    /// Each relation, once where it holds and once where it does not.
    #[test]
    fn what_is_perturbed_turns() {
        let claims = |shift: f64| {
            vec![
                PrintedClaim::each([(1.0, 1.05 + shift), (2.0, 2.0)], Tolerance::Within(0.1)),
                PrintedClaim::each([(10.0, 10.5 + 20.0 * shift)], Tolerance::Share(0.1)),
                PrintedClaim::none(if shift > 0.0 { 3 } else { 0 }),
                PrintedClaim::AtLeast(0.9, vec![0.95 - shift, 1.0]),
                PrintedClaim::AtMost(1e-5, vec![3.7e-6 + shift]),
                PrintedClaim::Rises(2.0, vec![1.0, 3.0 - 5.0 * shift, 7.0]),
                PrintedClaim::Falls(1.0, vec![5.0, 4.9 + shift, 4.0]),
                PrintedClaim::Least(0.95, vec![1.0 + shift, 1.1, 2.0]),
                PrintedClaim::same("abc", if shift > 0.0 { "abd" } else { "abc" }),
                PrintedClaim::All(vec![
                    PrintedClaim::none(0),
                    PrintedClaim::AtLeast(1.0, vec![1.1 - shift, 2.0]),
                ]),
            ]
        };
        for (shift, expected) in [(0.0, true), (1.0, false)] {
            for claim in claims(shift) {
                assert_eq!(claim.holds(), expected, "{claim:?}");
                let perturbed = claim.perturbed();
                assert_eq!(perturbed.len(), if expected { claim.len() } else { 1 });
                for turned in perturbed {
                    assert_ne!(turned.holds(), expected, "{claim:?} became {turned:?}");
                }
            }
        }
    }

    #[test]
    fn a_claim_says_its_tolerance() {
        let shown = [
            PrintedClaim::equal(1.0, 1.0, Tolerance::Share(0.005)).to_string(),
            PrintedClaim::AtMost(0.7, vec![0.1, 0.2]).to_string(),
            PrintedClaim::Least(0.95, vec![1.0, 2.0]).to_string(),
            PrintedClaim::AtMost(1e-5, vec![1e-6]).to_string(),
            PrintedClaim::AtLeast(4097.0, vec![1e-6]).to_string(),
            PrintedClaim::AtMost((-100_f64).exp(), vec![1e-6]).to_string(),
        ];
        let expected = [
            "equal ± 0.5 %",
            "each at most 0.7",
            "the least: at most 0.95 times any other",
            "at most 1e-5",
            "at least 4097",
            "at most 3.72e-44",
        ];
        assert_eq!(shown, expected);
    }
}
