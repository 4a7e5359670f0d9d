//! Steps of a query by the source's equations 16 and 17, as far as they are legible, without verification.

use super::super::super::EvaluateError;
use super::super::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use super::{DOCUMENTS, SURPLUS};
use dupflow_core::block::hamming::{binomial, radius};

/// m: the number of groups of k components at similarity r.
pub(super) fn groups(k: usize, r: f64) -> usize {
    radius(k, r) + SURPLUS
}

/// `n_g = n / 2^(k / m)`: how many of n agree in one group if all groups have equal width.
pub(super) fn share(k: usize, m: usize, n: usize) -> f64 {
    n as f64 / (k as f64 / m as f64).exp2()
}

/// alg.G: `C(m, r_h) c log2 n`.
pub(super) fn of_conjunctions(k: usize, r: f64, n: usize) -> f64 {
    binomial(groups(k, r), SURPLUS) as f64 * SURPLUS as f64 * (n as f64).log2()
}

/// alg.H: `m log2(m n) + m n_g`.
pub(super) fn of_groups(m: usize, share: f64, n: usize) -> f64 {
    let (m, n) = (m as f64, n as f64);
    m * (m * n).log2() + m * share
}

/// 003-H2.
pub(super) fn headline(_: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    const PRINTED: f64 = 90_260.0;
    let m = groups(64, 0.7);
    let line = |of: &str, printed: &str, steps: f64, basis: Basis, reason: &str| {
        ItemLine::new("003-H2", of, printed).measured(format!("{steps:.0}")).judged(basis).because(reason)
    };
    let by_their_sum = of_groups(m, 7440.0, DOCUMENTS);
    // Equation 15 without 2c/k: groups of 2 / (1 - r) bits, by those of k / m bits.
    let ignored = [64, 400, 1000].map(|k| share(k, groups(k, 0.7), DOCUMENTS) / share(2000, 300, DOCUMENTS));
    let shown = ignored.map(|ratio| format!("{ratio:.2}")).join(", ");
    let whole = (4.0 * share(6, 1, DOCUMENTS) + 8.0 * share(5, 1, DOCUMENTS)) / 12.0;
    let mut lines = vec![
        line(
            "steps of alg.H at k = 64, r = 0.7, n_g = 7,440 as in its sum",
            "90,260",
            by_their_sum,
            Basis::Computed(PrintedClaim::equal(PRINTED, by_their_sum, Matters::From(5.0))),
            "12 log2(12 n) + 12 x 7,440; no base of the logarithm above 1.2 gives the print",
        ),
        line(
            "the same with n_g = 7,500",
            "90,260",
            of_groups(m, 7500.0, DOCUMENTS),
            UnjudgedReason::Arithmetic.into(),
            "7,500 is chosen so that the sum is the printed one.",
        ),
        line(
            "the same with whole groups: 4 of 6 bits, 8 of 5",
            "not printed",
            of_groups(m, whole, DOCUMENTS),
            UnjudgedReason::Shown.checked(PrintedClaim::equal(7812.5, whole, Matters::Any)),
            "7,440 would take groups of 5.33 bits; whole ones have 7,812.5 entries on average.",
        ),
        line(
            "steps of alg.G at k = 64, r = 0.7",
            "lost",
            of_conjunctions(64, 0.7, DOCUMENTS),
            UnjudgedReason::StandIn.into(),
            "C(12, 9) x 3 log2 n.",
        ),
    ];
    lines.push(
        ItemLine::new(
            "003-H2",
            "n_g by n_g without the term 2c/k of equation 15, r = 0.7, k = 64, 400, 1000",
            "2c/k can be ignored, so 1",
        )
        .measured(shown)
        .judged(UnjudgedReason::Arithmetic)
        .because("by its formula: without it groups have 6.67 bits"),
    );
    Ok(SectionAnswers { lines, ..SectionAnswers::default() })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// By hand: 220 x 3 x 18.1946, and 12 x (21.7796 + 7,440.94).
    #[test]
    fn steps_at_64() {
        assert_eq!(groups(64, 0.7), 12);
        assert!((share(64, 12, DOCUMENTS) - 7440.94).abs() < 0.05);
        assert!((of_conjunctions(64, 0.7, DOCUMENTS) - 12_008.4).abs() < 0.1);
        assert!((of_groups(12, share(64, 12, DOCUMENTS), DOCUMENTS) - 89_552.6).abs() < 0.5);
    }
}
