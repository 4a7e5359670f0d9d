//! 003-E1 to E4: the examples.

use super::super::super::EvaluateError;
use super::super::super::search::measured::SearchSetting;
use super::super::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use super::SURPLUS;
use dupflow_core::block::hamming::{Design, DesignKind, radius};
use dupflow_core::sketch::MinHash;
use dupflow_core::sketch::estimate::estimate;
use dupflow_core::text::Features;
use dupflow_core::text::measures::jaccard;

/// The sets of example 1, of the elements 1 to 6.
const SETS: [&[u64]; 2] = [&[1, 2, 4], &[2, 3, 4, 5]];

/// Its permutations: the images of 1 to 6.
const PERMUTATIONS: [[u64; 6]; 5] =
    [[6, 3, 5, 4, 2, 1], [4, 1, 2, 6, 5, 3], [5, 6, 3, 1, 2, 4], [2, 5, 3, 4, 1, 6], [5, 2, 6, 4, 3, 1]];

/// The signature of a set: its least image under each permutation.
fn signature(set: &[u64]) -> [u64; 5] {
    let image =
        |to: [u64; 6], x: u64| to.into_iter().zip(1..).find(|(_, from)| *from == x).map_or(x, |(to, _)| to);
    PERMUTATIONS.map(|to| MinHash::component(set, |x| image(to, x)))
}

pub(super) fn make(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let signatures = SETS.map(signature);
    let equal = |[a, b]: [[u64; 5]; 2]| a.iter().zip(&b).filter(|(a, b)| a == b).count();
    let matches = equal(signatures);
    let truth = jaccard(Features::set(SETS[0]), Features::set(SETS[1]));
    let parities = signatures.map(|signature| signature.map(|component| component % 2));
    let same = equal(parities);

    let radius_100 = radius(100, 0.8);
    let (r_h, agreeing) = (radius(64, 0.9), SURPLUS);
    let six = Design::new(64, r_h, DesignKind::Conjunctions { surplus: agreeing })?;
    let widths: Vec<usize> = six.blocks().iter().map(ExactSizeIterator::len).collect();
    let small = SearchSetting { bits: 64, documents: 2000, queries: 100, seed: work.bench.seed };
    let rows = small.run(&[six], work.bench.clock)?;
    let missed = rows[0].missed;
    // Integers, one by one.
    let exact = |pairs: Vec<(f64, f64)>| Basis::Computed(PrintedClaim::each(pairs, Matters::From(1e-9)));
    let by_component = [[3, 1, 1, 2, 2], [2, 1, 1, 1, 2]].into_iter().zip(signatures).flat_map(
        |(printed, own): ([u32; 5], [u64; 5])| {
            printed.into_iter().zip(own).map(|(a, b)| (f64::from(a), b as f64))
        },
    );
    let by_group = [11, 11, 11, 11, 10, 10].into_iter().zip(&widths).map(|(a, b)| (f64::from(a), *b as f64));
    let groups = [(6.0, widths.len() as f64), (20.0, six.keys() as f64)].into_iter().chain(by_group);
    let parity = estimate(same, 5, 1);

    let lines = vec![
        ItemLine::new("003-E1", "signatures of {1,2,4} and {2,3,4,5}", "{3,1,1,2,2} and {2,1,1,1,2}")
            .measured(format!("{} and {}", braced(signatures[0]), braced(signatures[1])))
            .judged(exact(by_component.collect()))
            .because("The least images, by the component of sketch::MinHash."),
        ItemLine::new("003-E1", "estimate and truth", "3/5 and 2/5")
            .measured(format!("{matches}/5 = {} and {truth}", estimate(matches, 5, 64)))
            .judged(exact(vec![(0.6, estimate(matches, 5, 64)), (0.4, truth)]))
            .because("Right as printed, with 4 going to 4 under the fourth permutation."),
        ItemLine::new("003-E2", "parities, and their estimate", "lost")
            .measured(format!(
                "{} and {}, {same} of 5 equal: 2 x {same}/5 - 1 = {:.1}",
                braced(parities[0]),
                braced(parities[1]),
                parity
            ))
            .judged(UnjudgedReason::StandIn.checked(PrintedClaim::equal(0.2, parity, Matters::From(1e-9))))
            .because("Recomputed from example 1 by sketch::estimate: even is 0, odd is 1."),
        ItemLine::new("003-E3", "r_h at k = 100, r = 0.8", "10")
            .measured(radius_100.to_string())
            .judged(exact(vec![(10.0, radius_100 as f64)]))
            .because(
                "block::hamming::radius takes 100 (1 - 0.8) / 2 as a decimal; plain floating point rounds it \
                    down to 9.",
            ),
        ItemLine::new(
            "003-E4",
            "k = 64, r_h = 3: groups and conjunctions",
            "6 groups of 11,11,11,11,10,10 bits; C(6,3) = 20",
        )
        .measured(format!("{} groups of {} bits; {}", widths.len(), joined(&widths), six.keys()))
        .judged(exact(groups.collect()))
        .because("block::hamming::Design, for r = 0.9."),
        ItemLine::new("003-E4", "recall of the 20 conjunctions", "1")
            .measured(format!(
                "{missed} of {} planted neighbours at distance 0 to {r_h} missed",
                small.queries
            ))
            .judged(Basis::Measured(PrintedClaim::none(missed)))
            .because("Three differing bits spoil three groups at most."),
    ];
    Ok(SectionAnswers { lines, ..SectionAnswers::default() })
}

fn joined<T: ToString>(numbers: &[T]) -> String {
    numbers.iter().map(T::to_string).collect::<Vec<_>>().join(",")
}

fn braced(numbers: [u64; 5]) -> String {
    format!("{{{}}}", joined(&numbers))
}
