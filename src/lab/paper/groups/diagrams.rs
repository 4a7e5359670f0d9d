//! 003-F2 to F5: the groups of alg.G, the index of alg.H, their steps, and how long its lists are.

use super::super::super::plot::{Axis, Series};
use super::super::super::search::indexes::live::LiveGroups;
use super::super::super::search::measured::random;
use super::super::super::table::{ResultTable, row};
use super::super::super::{EvaluateError, Plot};
use super::super::permuted::grouped;
use super::super::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use super::{DOCUMENTS, SURPLUS, steps};
use dupflow_core::block::hamming::{Design, DesignKind};
use dupflow_core::hash::mix;

/// r of the curves.
const SIMILARITIES: [f64; 4] = [0.6, 0.7, 0.8, 0.9];

/// Bits of a group in F5.
const WIDTH: usize = 8;

/// Groups of F5: k = 64.
const GROUPS: usize = 8;

/// Number of random values that are looked up.
const LOOKS: usize = 1000;

pub(super) fn make(_: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let six = Design::new(64, 3, DesignKind::Conjunctions { surplus: SURPLUS })?;
    let blocks = six.blocks();
    let widest = blocks.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
    let mut table = ResultTable::new(
        "003_f3_index",
        "64 bits in 6 groups, and their places in one index",
        "alg.G intersects the lists of 3 groups for each of the 20 choices; alg.H reads the list of y_i = (i \
            - 1) C + value in each group and counts. n_g is of 300,000 uniform fingerprints.",
        "group | bits | width | C | y from | y to | n_g",
    );
    for (i, block) in blocks.iter().enumerate() {
        let values = 1u64 << widest;
        let first = i as u64 * values;
        table.push(row![
            i + 1,
            format!("{} to {}", block.start + 1, block.end),
            block.len(),
            values,
            first,
            first + (1 << block.len()) - 1,
            steps::share(block.len(), 1, DOCUMENTS),
        ]);
    }
    let mut lines = vec![
        ItemLine::new("003-F2", "k = 64 in 6 groups", "diagram")
            .measured(format!("{} groups, {} choices of 3", blocks.len(), six.keys()))
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::each(
                [(6.0, blocks.len() as f64), (20.0, six.keys() as f64)],
                Matters::Any,
            )))
            .because(
                "block::hamming::Design cuts, evaluate::search::indexes intersects (Conjunctions); table \
                    003_f3_index has the groups.",
            ),
        ItemLine::new("003-F3", "one index, y = (i - 1) C + A_i: C for 6 groups of 64 bits", "C = 2[k/m]")
            .measured(format!("2^{widest} = {} values of the widest group", 1u64 << widest))
            .judged(UnjudgedReason::LostSymbols.checked(PrintedClaim::equal(
                2048.0,
                (1u64 << widest) as f64,
                Matters::Any,
            )))
            .because(
                "the stored text has lost exponents, perhaps of 2^ceil(k/m), which covers the widest group: \
                checked, 2^11. The program keeps the lists of a group by its own width",
            ),
    ];
    lines.extend(growth());
    Ok(SectionAnswers { lines, tables: vec![table], plots: [Algorithm::G, Algorithm::H].map(curves).into() })
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Algorithm {
    G,
    H,
}

impl Algorithm {
    fn steps(self, k: usize, r: f64) -> f64 {
        let m = steps::groups(k, r);
        match self {
            Self::G => steps::of_conjunctions(k, r, DOCUMENTS),
            Self::H => steps::of_groups(m, steps::share(k, m, DOCUMENTS), DOCUMENTS),
        }
    }
}

/// To grow fast is a factor of at least this at each step of k and of r. The source has no number.
const FAST: f64 = 2.0;

/// k of the steps.
const GROWN: [usize; 6] = [64, 100, 200, 400, 600, 1000];

/// 003-F4 in numbers.
fn growth() -> Vec<ItemLine> {
    let line = |of: &str, printed: &str, values: &[f64], basis: Basis, reason: &str| {
        let shown = values
            .iter()
            .map(|value| if *value < 1e4 { format!("{value:.1}") } else { format!("{value:.2e}") });
        let shown = shown.collect::<Vec<_>>().join(", ");
        ItemLine::new("003-F4", format!("{of}, n = 300,000, c = 3"), printed)
            .measured(shown)
            .judged(basis)
            .because(reason)
    };
    let by_size = GROWN.map(|k| Algorithm::G.steps(k, 0.7));
    let by_similarity = [0.9, 0.8, 0.7, 0.6].map(|r| Algorithm::G.steps(400, r));
    let times = SIMILARITIES.map(|r| Algorithm::H.steps(1000, r) / Algorithm::H.steps(64, r));
    let falling = [0.9, 0.8, 0.7, 0.6].map(|r| Algorithm::H.steps(1000, r));
    let most = falling[3] / falling[0];
    vec![
        line(
            "steps of alg.G, k = 64 to 1000, r = 0.7",
            "lost; said to grow fast with k",
            &by_size,
            Basis::Computed(PrintedClaim::rises(FAST, &by_size)),
            "The curves are lost; the formulas are drawn in their place.",
        ),
        line(
            "steps of alg.G, r = 0.9 to 0.6, k = 400",
            "lost; said to grow fast as r falls",
            &by_similarity,
            Basis::Computed(PrintedClaim::rises(FAST, &by_similarity)),
            "By its formula.",
        ),
        line(
            "steps of alg.H at k = 1000 by those at k = 64, r = 0.6 to 0.9",
            "lost; said to grow little with k",
            &times,
            UnjudgedReason::Arithmetic.into(),
            "By its formula: twice and less at r = 0.8 and 0.9 only.",
        ),
        line(
            "steps of alg.H at r = 0.6 by those at r = 0.9, k = 1000",
            "lost; said to grow little as r falls",
            &[most],
            UnjudgedReason::Arithmetic.into(),
            "By its formula: as r falls groups become narrow and their lists long.",
        ),
    ]
}

fn curves(algorithm: Algorithm) -> Plot {
    let name = if algorithm == Algorithm::G { "g" } else { "h" };
    let series = SIMILARITIES.map(|r| {
        Series::new(format!("r = {r}"), (1..=50).map(|i| 20 * i).map(|k| (k as f64, algorithm.steps(k, r))))
    });
    Plot::new(
        format!("003_f4_{name}"),
        format!("Steps of alg.{}, n = 300,000, c = 3", name.to_uppercase()),
        Axis::linear("k, components"),
        Axis::log("steps of a query"),
        series.into(),
    )
}

/// 003-F5: lists of groups of 8 bits.
pub(super) fn sizes(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let corpus = random(WIDTH * GROUPS, DOCUMENTS, work.bench.seed);
    let mut live = LiveGroups::new(DOCUMENTS);
    for group in 0..GROUPS {
        let value = |(_, words): (u32, &[u64])| words[0] >> (WIDTH * group) & 0xff;
        live.add(WIDTH, corpus.iter().map(value).collect());
    }
    // Each round looks up a random value in each group in turn.
    let looks: Vec<usize> = (0..LOOKS)
        .map(|look| live.entries(look % GROUPS, mix(work.bench.seed ^ mix(look as u64)) & 0xff))
        .collect();
    let mean = looks.iter().sum::<usize>() as f64 / LOOKS as f64;
    let expected = steps::share(WIDTH, 1, DOCUMENTS);
    let variance = looks.iter().map(|n| (*n as f64 - mean).powi(2)).sum::<f64>() / LOOKS as f64;
    let line = |of: &str, printed: &str| ItemLine::new("003-F5", of, printed);
    let lines = vec![
        line("n_g of 8 bits by 300,000 / 2^8", "1,170")
            .measured(format!("{expected:.1}"))
            .judged(Basis::Computed(PrintedClaim::equal(1170.0, expected, Matters::From(5.0))))
            .because("the quotient, to tens"),
        line("n_g of 8 bits, value drawn at random: the mean of 1,000", "1,170 on average")
            .measured(format!("{mean:.1}, sd {:.1}", variance.sqrt()))
            .judged(Basis::Measured(PrintedClaim::equal(1170.0, mean, Matters::Share(0.01))))
            .because("lists that are built of uniform fingerprints"),
        line("its quotient", "3000 000/28 = 1,170")
            .measured(format!("300,000 / 2^8 = {expected:.1}"))
            .judged(UnjudgedReason::LostSymbols)
            .because(
                "2^8 has lost its exponent in the stored text, and the number of proposals may have a zero \
                too many",
            ),
    ];
    let (low, step) = (1050usize, 10);
    let bins = (0..25usize).map(|bin| {
        let range = low + bin * step..low + (bin + 1) * step;
        let count = looks.iter().filter(|n| range.contains(*n)).count();
        ((range.start + step / 2) as f64, count as f64)
    });
    let plot = Plot::new(
        "003_f5_sizes",
        format!("n_g of groups of 8 bits, {} look-ups, n = 300,000", grouped(LOOKS as u64)),
        Axis::linear("entries of a list"),
        Axis::linear("look-ups"),
        vec![Series::new("in steps of 10", bins)],
    );
    Ok(SectionAnswers { lines, tables: Vec::new(), plots: vec![plot] })
}
