//! Exact binomial tails, and the counts at which a tail reaches an error probability.
//!
//! X of k components match, each with probability p: `P[X = x] = C(k, x) p^x (1 - p)^(k - x)`. The
//! distribution is computed from the ratio of neighbours, `P[x + 1] / P[x] = (k - x) / (x + 1) * p / (1 -
//! p)`, outwards from its mode, and then divided by its sum. So it needs no logarithm and no factorial, and
//! has a relative error of a few k machine epsilons even far out in the tails (values below 1e-308 become 0).
//!
//! Counts are computed from probabilities with a guard, since plain floating point is one off where the exact
//! value is whole (`100 * (1 - 0.8) / 2` is not 10).

/// Relative slack of a comparison with an error probability: far above rounding errors, far below the
/// precision of an error rate.
pub(crate) const GUARD: f64 = 1e-9;

/// The least whole number that is at least `x`, if `x` is an exact decimal with rounding errors:
/// `ceil(x - 1e-9)`.
///
/// Correct for the product of a threshold with up to eight decimals and a count of up to ten million.
#[expect(
    clippy::cast_possible_truncation,
    clippy::cast_sign_loss,
    reason = "counts are small and not negative"
)]
pub fn least_count(x: f64) -> usize {
    (x - GUARD).ceil() as usize
}

/// The distribution of the number of matches among k components.
#[derive(Clone, Debug)]
pub struct Binomial {
    pmf: Vec<f64>,
}

impl Binomial {
    /// For `trials` components that match with probability `p`, in `0.0..=1.0`.
    pub fn new(trials: usize, p: f64) -> Self {
        let mode = least_count((trials + 1) as f64 * p).min(trials);
        let odds = p / (1.0 - p);
        let ratio = |x: usize| (trials - x) as f64 / (x + 1) as f64 * odds;
        let mut pmf = vec![0.0; trials + 1];
        pmf[mode] = 1.0;
        for x in mode..trials {
            pmf[x + 1] = pmf[x] * ratio(x);
        }
        for x in (0..mode).rev() {
            pmf[x] = pmf[x + 1] / ratio(x);
        }
        let total: f64 = pmf.iter().sum();
        pmf.iter_mut().for_each(|mass| *mass /= total);
        Self { pmf }
    }

    /// `P[X = 0], P[X = 1], ... P[X = k]`.
    pub fn masses(&self) -> &[f64] {
        &self.pmf
    }

    /// `P[X = x]`; 0 beyond k.
    pub fn mass(&self, x: usize) -> f64 {
        self.pmf.get(x).copied().unwrap_or(0.0)
    }

    /// `P[X < count]`.
    pub fn below(&self, count: usize) -> f64 {
        self.pmf.iter().take(count).sum::<f64>() + 0.0
    }

    /// `P[X >= count]`.
    pub fn at_least(&self, count: usize) -> f64 {
        // The sum of an empty iterator is -0.0.
        self.pmf.iter().skip(count).rev().sum::<f64>() + 0.0
    }

    /// The greatest count with `P[X < count] <= error`: reject below it. 0 (never reject) if even X = 0 is
    /// likelier than `error`.
    pub fn reject_below(&self, error: f64) -> usize {
        within(self.pmf.iter(), error)
    }

    /// The least count with `P[X >= count] <= error`: accept from it. k + 1 (never accept) if even X = k is
    /// likelier than `error`.
    pub fn accept_from(&self, error: f64) -> usize {
        self.pmf.len() - within(self.pmf.iter().rev(), error)
    }
}

/// Number of leading masses whose sum is at most `error`, inclusive.
fn within<'a>(masses: impl Iterator<Item = &'a f64>, error: f64) -> usize {
    let mut tail = 0.0;
    masses
        .take_while(|&&mass| {
            tail += mass;
            tail <= error * (1.0 + GUARD)
        })
        .count()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn close(a: f64, b: f64) -> bool {
        (a - b).abs() <= 1e-13
    }

    #[test]
    fn by_hand() {
        let three = Binomial::new(3, 0.2);
        assert!(three.masses().iter().zip([0.512, 0.384, 0.096, 0.008]).all(|(&a, b)| close(a, b)));
        assert!(close(three.below(2), 0.896) && close(three.at_least(2), 0.104));
        assert_eq!((three.below(0), three.at_least(4), three.mass(4)), (0.0, 0.0, 0.0));
    }

    #[test]
    fn certain_and_impossible_matches() {
        assert_eq!(Binomial::new(3, 1.0).masses(), [0.0, 0.0, 0.0, 1.0]);
        assert_eq!(Binomial::new(3, 0.0).masses(), [1.0, 0.0, 0.0, 0.0]);
        assert_eq!(Binomial::new(0, 0.3).masses(), [1.0]);
    }

    #[test]
    fn a_tail_equal_to_the_error_is_within_it() {
        let four = Binomial::new(4, 0.5);
        assert_eq!((four.reject_below(0.0625), four.accept_from(0.0625)), (1, 4));
        assert_eq!((four.reject_below(0.0624), four.accept_from(0.0624)), (0, 5));
        assert_eq!((four.reject_below(0.3125), four.accept_from(0.3125)), (2, 3));
    }

    #[test]
    fn decimals_that_are_whole_stay_whole() {
        assert_eq!(least_count(1000.0 * 0.8), 800);
        assert_eq!(least_count(100.0 * (1.0 - 0.8) / 2.0), 10);
        assert_eq!(least_count(0.1 + 0.2 + 0.7), 1);
        assert_eq!(least_count(921.6), 922);
        assert_eq!(least_count(0.0), 0);
    }

    #[test]
    fn many_trials_keep_their_tails() {
        let wide = Binomial::new(32_768, 0.9);
        assert!((wide.below(32_769) - 1.0).abs() < 1e-12);
        let mean: f64 = wide.masses().iter().enumerate().map(|(x, mass)| x as f64 * mass).sum();
        assert!((mean - 0.9 * 32_768.0).abs() < 1e-6);
    }
}
