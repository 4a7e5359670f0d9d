//! Table 1: the sketches of the review, each compared with the program's.

use super::super::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use super::model::SHAPE;
use super::odd;
use crate::table::{ResultTable, row};
use crate::{EvaluateError, estimators, threads};

/// A row of the table.
struct ReviewedSketch {
    name: &'static str,
    /// The name in the study of estimates.
    subject: &'static str,
    estimator: &'static str,
    variance: &'static str,
    /// The printed variance as a function of K, |A ∪ B| and J; for one of J.
    printed: Option<fn(f64, f64, f64) -> f64>,
    jaccard: f64,
    reason: &'static str,
}

const AT: ReviewedSketch = ReviewedSketch {
    name: "",
    subject: "",
    estimator: "",
    variance: "NA",
    printed: None,
    jaccard: 0.8,
    reason: "",
};

fn of_connected(k: f64, j: f64, exponent: f64) -> f64 {
    // Runs of two one-bit components.
    let (n, c2) = (2.0, 0.5);
    let g = (c2 + (1.0 - c2) * j).powf(n);
    g * (1.0 - g) / (k * (1.0 - c2).powi(2) * n * g.powf(exponent))
}

/// The row that is also measured with MinHash.
const ODD: &str = "odd (Mitzenmacher 2014), n = 512, over fss";

/// The row of whose printed variance a factor is garbled in the stored text.
const SUPER: &str = "SuperMinHash (Ertl 2017)";

/// The row whose printed estimator belongs to another sketch.
const K_MINS: &str = "k-mins (Cohen 2001)";

const SKETCHES: [ReviewedSketch; 11] = [
    ReviewedSketch {
        name: "min-wise (Broder 1997)",
        subject: "minhash",
        estimator: "J/k",
        variance: "J(1-J)/k",
        printed: Some(|k, _, j| j * (1.0 - j) / k),
        reason: "the estimator is printed as J/k: it is the share of equal components",
        ..AT
    },
    ReviewedSketch {
        name: K_MINS,
        subject: "minhash",
        estimator: "of the K smallest of the union, the share in both",
        reason: "that is bottom-k; k-mins is one minimum of each of K permutations",
        ..AT
    },
    ReviewedSketch {
        name: "bottom-k (Cohen & Kaplan 2007)",
        subject: "bottom-k",
        estimator: "#(S(A), S(B), S(A or B) common)/k",
        reason: "the variance, not printed, is J(1-J)/k (u-k)/(u-1)",
        ..AT
    },
    ReviewedSketch {
        name: "b-bit (Li & König 2010), b = 2",
        subject: "minhash, 2 bits",
        estimator: "(equal/k - 2^-b)/(1 - 2^-b)",
        variance: "(1-J)/k (J + 1/(2^b-1))",
        printed: Some(|k, _, j| (1.0 - j) / k * (j + 1.0 / 3.0)),
        reason: "",
        ..AT
    },
    ReviewedSketch {
        name: "f-fractional (Yuan et al. 2012), f = 1.5",
        subject: "minhash, 1.5 bits",
        estimator: "(E - (w1 C1b1 + w2 C1b2))/(1 - (w1 C2b1 + w2 C2b2))",
        reason: "the program weighs the two widths by their variance, which errs less; sketch/fractional.rs",
        ..AT
    },
    ReviewedSketch {
        name: "k-partition (Li, Owen & Zhang 2012)",
        subject: "oph-original",
        estimator: "matches/(k - jointly empty)",
        reason: "the variance, not printed, is below J(1-J)/k",
        ..AT
    },
    ReviewedSketch {
        name: "min-max (Ji et al. 2013)",
        subject: "min-max",
        estimator: "J",
        variance: "(J/k)(u+a-2)/(u-1) - 2J^2/k",
        printed: Some(|k, u, j| j / k * (u + j * u - 2.0) / (u - 1.0) - 2.0 * j * j / k),
        reason: "k components of k/2 permutations",
        ..AT
    },
    ReviewedSketch {
        name: ODD,
        subject: "odd, 2 bits",
        estimator: "1 + (n/4k) ln(1 - 2z/n)",
        variance: "n^2((1-4/n)^m-(1-2/n)^2m)/4 + n(1-(1-4/n)^m)/4",
        printed: Some(|k, _, j| odd::printed(2.0 * k, 2.0 * k * (1.0 - j))),
        jaccard: 0.95,
        reason: "the program's, over fss, whose places vary less than MinHash's",
    },
    ReviewedSketch {
        name: "connected bit (Tang 2015), n = 2, b = 1",
        subject: "connected, 2 of 1 bit",
        estimator: "(G^(1/n) - C1)/(1 - C2)",
        variance: "G(1-G)/(k (1-C2)^2 n G^(2(n-1)))",
        printed: Some(|k, _, j| of_connected(k, j, 2.0)),
        reason: "the exponent of G is 2(n-1)/n",
        ..AT
    },
    ReviewedSketch {
        name: "BitHash (Zhang 2016)",
        subject: "minhash, 1 bit",
        estimator: "1 - 2d/k",
        variance: "(1-J)(1+J)/k",
        printed: Some(|k, _, j| (1.0 - j) * (1.0 + j) / k),
        reason: "",
        ..AT
    },
    ReviewedSketch {
        name: SUPER,
        subject: "superminhash",
        estimator: "(1/m) sum of equal",
        variance: "J(1-J)/m, then a proportional sign and (m,n)",
        printed: Some(|k, _, j| j * (1.0 - j) / k),
        reason: "the garbled sign is a factor alpha(m, u), below 1; sketch/variance.rs",
        ..AT
    },
];

pub(super) fn sketches(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let (size, union) = SHAPE;
    let trials = work.size(4_000, 20);
    let measured = threads::map(work.bench.threads, SKETCHES.len(), |n| {
        let ReviewedSketch { subject, jaccard, .. } = SKETCHES[n];
        estimators::errors(work.bench.seed, trials, subject, size, union, jaccard)
    });
    let mut table = ResultTable::new(
        "004_t1",
        "Table 1: variances, printed, right and measured",
        &format!(
            "{trials} pairs of {union} shingles together, K = {size}, J = 0.8 but 0.95 for odd; the mean \
                square error of the program's own sketches. Right is the theory of `sketch/variance.rs`."
        ),
        "sketch | printed variance | its value | right | measured | measured / right | measured / printed",
    );
    // A tenth of a variance is a twentieth of an error.
    let near = |of: f64, error: f64| PrintedClaim::equal(1.0, error / of, Matters::From(0.1));
    let error_of = |name: &str| {
        SKETCHES
            .iter()
            .zip(&measured)
            .find(|(sketch, _)| sketch.subject == name)
            .map_or(f64::NAN, |(_, of)| of.0)
    };
    let shown = |value: Option<f64>| value.map_or_else(|| "-".to_owned(), |value| format!("{value:.2E}"));
    let mut lines = Vec::new();
    for (sketch, (error, right)) in SKETCHES.iter().zip(&measured) {
        let (error, right) = (*error, *right);
        let printed = sketch.printed.map(|of| of(size as f64, union as f64, sketch.jaccard));
        table.push(row![
            sketch.name,
            sketch.variance,
            printed,
            right,
            error,
            right.map(|right| error / right),
            printed.map(|printed| error / printed)
        ]);
        let theory = right.unwrap_or(f64::NAN);
        let basis = match (sketch.name, printed) {
            // Its printed estimator is that of bottom-k.
            (K_MINS, _) => Basis::Defined(near(error_of("bottom-k"), error)),
            (SUPER, _) => UnjudgedReason::LostSymbols.checked(near(theory, error)),
            (name, Some(printed)) if name != ODD => Basis::Defined(near(printed, error)),
            _ => UnjudgedReason::Shown.checked(near(theory, error)),
        };
        lines.push(
            ItemLine::new(
                "004-T1",
                sketch.name,
                format!("{}; variance {} = {}", sketch.estimator, sketch.variance, shown(printed)),
            )
            .measured(format!("MSE {}, right {}", shown(Some(error)), shown(right)))
            .judged(basis)
            .because(sketch.reason),
        );
        if sketch.name == ODD {
            lines.extend(odd::over_minhash(work.bench.seed, trials));
        }
    }
    Ok(SectionAnswers { lines, tables: vec![table], plots: vec![] })
}
