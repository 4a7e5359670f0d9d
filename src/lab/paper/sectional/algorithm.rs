//! Algorithm 1 as printed, compared with the program's sketch.

use rand::SeedableRng;
use rand_chacha::ChaCha8Rng;

use super::super::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use super::model::{FeatureOrder, components, pair};
use crate::EvaluateError;
use dupflow_core::hash::mix;
use dupflow_core::sketch::sectional::{alignment, section};
use dupflow_core::sketch::{MinHash, SectionBase, SectionMode, Sectional};

/// Components of each sketch.
const SIZE: usize = 64;
/// Pairs of texts.
const PAIRS: u64 = 160;

/// For each permutation the least value of an attribute, and the section of that attribute.
fn as_printed(ids: &[u64], sections: usize, seed: u64) -> Vec<(u64, usize)> {
    let mut permutations = MinHash::new(SIZE, seed);
    let mut least = vec![(u64::MAX, 0); SIZE];
    for (i, id) in ids.iter().enumerate() {
        // For a single attribute, the least value is its own.
        let values = components(&mut permutations, &[*id], SIZE);
        let found = values.into_iter().map(|value| (value, section(i, ids.len(), sections)));
        least.iter_mut().zip(found).for_each(|(least, found)| *least = found.min(*least));
    }
    least
}

fn equal<T: PartialEq>(a: &[T], b: &[T]) -> Vec<bool> {
    a.iter().zip(b).map(|(a, b)| a == b).collect()
}

pub(super) fn check(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let (mut same, mut places) = (0, 0);
    let mut means = [0.0; 4];
    for n in 0..PAIRS {
        let seed = mix(work.bench.seed ^ mix(n));
        let mut rng = ChaCha8Rng::seed_from_u64(seed);
        let [a, b] = pair(&mut rng, 48, 6, FeatureOrder::Moved(20));
        let sections = 2 + usize::try_from(n % 4).unwrap_or(0);
        let by_hand = equal(&as_printed(&a, sections, seed), &as_printed(&b, sections, seed));
        let sketch = |mode, text: &[u64]| {
            components(&mut Sectional::new(SIZE, sections, mode, SectionBase::MinHash, seed), text, SIZE)
        };
        let [attached, paired] =
            [SectionMode::Attach, SectionMode::Pair].map(|mode| equal(&sketch(mode, &a), &sketch(mode, &b)));
        same += by_hand.iter().zip(&attached).filter(|(x, y)| x == y).count();
        places += SIZE;
        let share = |of: &[bool]| of.iter().filter(|equal| **equal).count() as f64 / SIZE as f64;
        let q = alignment(&a, &b, sections).unwrap_or(0.0);
        let expected = [SectionMode::Attach, SectionMode::Pair].map(|mode| mode.expectation(0.8, q));
        for (mean, value) in
            means.iter_mut().zip([share(&attached), expected[0], share(&paired), expected[1]])
        {
            *mean += value / PAIRS as f64;
        }
    }
    let lines = vec![
        ItemLine::new("004-A1", "components equal in two texts, of all", "algorithm 1")
            .measured(format!("the same {same} of {places}"))
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::equal(
                places as f64,
                same as f64,
                Matters::Any,
            )))
            .because(
                "sketch/sectional.rs, mode \"attach\": the algorithm word for word finds the same components \
                    equal",
            ),
        ItemLine::new("004-A1", "attached after sampling, and paired before (equation 11)", "the same")
            .measured(format!("{:.3} and {:.3}", means[0], means[2]))
            .judged(Basis::Defined(PrintedClaim::equal(0.0, means[0] - means[2], Matters::From(0.02))))
            .because(
                "they agree for q of 0 and 1 only; mode \"pair\" is the Jaccard similarity of located \
                    shingles",
            ),
        ItemLine::new("004-A1", "the same beside q J and q J / (1 + J - q J)", "-")
            .measured(format!(
                "{:.3} and {:.3}, expected {:.3} and {:.3}",
                means[0], means[2], means[1], means[3]
            ))
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::each(
                [(0.0, means[0] - means[1]), (0.0, means[2] - means[3])],
                Matters::From(0.02),
            )))
            .because("`SectionMode::expectation`"),
    ];
    Ok(SectionAnswers { lines, ..SectionAnswers::default() })
}
