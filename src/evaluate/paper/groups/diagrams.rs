//! 003-F2 to F5: the groups of alg.G, the index of alg.H, their steps, and how long its lists are.

use super::super::super::plot::{Axis, Series};
use super::super::super::search::indexes::live::LiveGroups;
use super::super::super::search::measured::random;
use super::super::super::table::{Table, row};
use super::super::super::{EvaluateError, Plot};
use super::super::permuted::grouped;
use super::super::{Line, Made, Verdict, Work};
use super::{DOCUMENTS, SURPLUS, steps};
use crate::block::hamming::{Design, Kind};
use crate::hash::mix;

/// r of the curves.
const SIMILARITIES: [f64; 4] = [0.6, 0.7, 0.8, 0.9];

/// Bits of a group in F5.
const WIDTH: usize = 8;

/// Groups of F5: k = 64.
const GROUPS: usize = 8;

/// Values that are looked up at random.
const LOOKS: usize = 1000;

pub(super) fn make(work: &Work<'_>) -> Result<Made, EvaluateError> {
    let six = Design::new(64, 3, Kind::Conjunctions { surplus: SURPLUS })?;
    let blocks = six.blocks();
    let widest = blocks.iter().map(ExactSizeIterator::len).max().unwrap_or(0);
    let mut table = Table::new(
        "003_f3_index",
        "64 bits in 6 groups, and their places in one index",
        "alg.G intersects the lists of 3 groups for each of the 20 choices; alg.H reads the list of y_i = (i - 1) C + value in each group and \
         counts. n_g is of 300,000 uniform fingerprints.",
        &["group", "bits", "width", "C", "y from", "y to", "n_g"],
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
        Line::new(
            "003-F2",
            "k = 64 in 6 groups",
            "diagram",
            format!("{} groups, {} choices of 3", blocks.len(), six.keys()),
            Verdict::Shown,
            "block::hamming::Design cuts, evaluate::search::indexes intersects (Conjunctions); table 003_f3_index has the groups.",
        ),
        Line::new(
            "003-F3",
            "one index, y = (i - 1) C + A_i",
            "C = 2[k/m]",
            format!("C = 2^{widest} = {} for 6 groups of 64 bits", 1u64 << widest),
            Verdict::Misprint,
            "C is 2^ceil(k/m): it has to cover the widest group. The program keeps the lists of a group by its own width.",
        ),
    ];
    lines.extend(growth());
    let (line, sizes) = sizes(work);
    lines.push(line);
    Ok(Made { lines, tables: vec![table], plots: vec![curves(Algorithm::G), curves(Algorithm::H), sizes] })
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

/// 003-F4, in numbers.
fn growth() -> Vec<Line> {
    [(Algorithm::G, "alg.G"), (Algorithm::H, "alg.H")]
        .map(|(algorithm, name)| {
            let steps = |k, r| algorithm.steps(k, r);
            Line::new(
                "003-F4",
                format!("steps of {name}, n = 300,000, c = 3"),
                if algorithm == Algorithm::G { "explodes as r falls and k grows" } else { "grows little" },
                format!(
                    "k = 64 to 1000 at r = 0.9: {:.0} to {:.3e}; at r = 0.7: {:.0} to {:.3e}",
                    steps(64, 0.9),
                    steps(1000, 0.9),
                    steps(64, 0.7),
                    steps(1000, 0.7)
                ),
                Verdict::Agrees,
                "The curves are lost; the formulas are drawn in their place.",
            )
        })
        .into()
}

fn curves(algorithm: Algorithm) -> Plot {
    let name = if algorithm == Algorithm::G { "g" } else { "h" };
    let series = SIMILARITIES.map(|r| Series {
        name: format!("r = {r}"),
        points: (1..=50).map(|i| 20 * i).map(|k| (k as f64, algorithm.steps(k, r))).collect(),
    });
    Plot {
        name: format!("003_f4_{name}"),
        title: format!("Steps of alg.{}, n = 300,000, c = 3", name.to_uppercase()),
        x: Axis::linear("k, components"),
        y: Axis::log("steps of a query"),
        series: series.into(),
    }
}

/// 003-F5: lists of groups of 8 bits.
fn sizes(work: &Work<'_>) -> (Line, Plot) {
    let corpus = random(WIDTH * GROUPS, DOCUMENTS, work.bench.seed);
    let mut live = LiveGroups::new(DOCUMENTS);
    for group in 0..GROUPS {
        let value = |(_, words): (u32, &[u64])| words[0] >> (WIDTH * group) & 0xff;
        live.add(WIDTH, corpus.iter().map(value).collect());
    }
    // Each looks for a value drawn at random in each group in turn.
    let looks: Vec<usize> = (0..LOOKS)
        .map(|look| live.entries(look % GROUPS, mix(work.bench.seed ^ mix(look as u64)) & 0xff))
        .collect();
    let mean = looks.iter().sum::<usize>() as f64 / LOOKS as f64;
    let expected = steps::share(WIDTH, 1, DOCUMENTS);
    let variance = looks.iter().map(|n| (*n as f64 - mean).powi(2)).sum::<f64>() / LOOKS as f64;
    let line = Line::new(
        "003-F5",
        "n_g of 8 bits, value drawn at random",
        "1,170 on average, 3000 000/2^8",
        format!("{mean:.1} on average, sd {:.1}; 300,000 / 256 = {expected:.1}", variance.sqrt()),
        Verdict::Misprint,
        "A zero too many, and cut to tens: 1,171.9 is right.",
    );
    let (low, step) = (1050usize, 10);
    let bins = (0..25usize).map(|bin| {
        let range = low + bin * step..low + (bin + 1) * step;
        let count = looks.iter().filter(|n| range.contains(*n)).count();
        ((range.start + step / 2) as f64, count as f64)
    });
    let plot = Plot {
        name: "003_f5_sizes".to_owned(),
        title: format!("n_g of groups of 8 bits, {} look-ups, n = 300,000", grouped(LOOKS as u64)),
        x: Axis::linear("entries of a list"),
        y: Axis::linear("look-ups"),
        series: vec![Series { name: "in steps of 10".to_owned(), points: bins.collect() }],
    };
    (line, plot)
}
