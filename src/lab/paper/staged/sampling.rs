//! Sort-merge, consistent weighted sampling, equations and arithmetic.

use super::{SIZE, THRESHOLDS};
use crate::EvaluateError;
use crate::paper::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use crate::table::{ResultTable, row};
use dupflow_core::cluster::{ClusterKind, ClusterReport};
use dupflow_core::doc::DocId;
use dupflow_core::hash::mix;
use dupflow_core::oracle;
use dupflow_core::pair::Pair;
use dupflow_core::probability::Binomial;
use dupflow_core::sketch::{Cws, Sampler};
use dupflow_core::text::measures::Measure;
use dupflow_core::text::{Features, IdfForm};

/// The documents of the toy set as words; each word is a shingle.
const TOY: [(&str, &str); 5] = [
    ("A", "nuclear fusion in small reactors"),
    ("B", "nuclear fusion in large reactors"),
    ("C", "fusion in large reactors"),
    ("D", "the grammar of whales"),
    ("E", "a grammar of whales"),
];

/// 000-F1: shingles are sorted, common ones counted for each two documents, compared with the threshold, and
///    clustered.
pub(super) fn sort_merge(_: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    const THRESHOLD: f64 = 0.5;
    // A shingle is identified by its first position.
    let mut shingles: Vec<&str> = Vec::new();
    let mut number = |word: &'static str| {
        let known = shingles.iter().position(|other| *other == word);
        known.unwrap_or_else(|| {
            shingles.push(word);
            shingles.len() - 1
        }) as u64
    };
    let documents: Vec<Vec<u64>> =
        TOY.iter().map(|(_, text)| text.split(' ').map(&mut number).collect()).collect();
    let mut table = ResultTable::new(
        "000_f1_triplets",
        "000-F1: sort-merge on five titles",
        "(shingle, document) is sorted; each run of a shingle gives its pairs; these are sorted and counted.",
        "documents | common | resemblance | at least 0.5",
    );
    let mut pairs = Vec::new();
    let triplets = oracle::shared(&documents);
    for triplet in &triplets {
        let [a, b] = [triplet.a, triplet.b].map(|at| TOY[at].0);
        let is_similar = triplet.resemblance >= THRESHOLD;
        if is_similar {
            pairs.extend(DocId::new(a).zip(DocId::new(b)).and_then(|(a, b)| Pair::new(a, b)));
        }
        let shown = if is_similar { "yes" } else { "no" };
        table.push(row![format!("{a}, {b}"), triplet.common, triplet.resemblance, shown]);
    }
    let reports = oracle::clusters(&pairs, ClusterKind::Components, TOY.len());
    let mut clusters = std::collections::BTreeMap::<&DocId, Vec<&DocId>>::new();
    for report in &reports {
        if let ClusterReport::Member { cluster, document } = report {
            clusters.entry(cluster).or_default().push(document);
        }
    }
    let cluster = |members: &Vec<&DocId>| members.iter().map(|id| id.to_string()).collect::<String>();
    let clusters: Vec<String> = clusters.values().map(cluster).collect();
    let found =
        format!("{} triplets, {} pairs, clusters {}", triplets.len(), pairs.len(), clusters.join(" "));
    let line = ItemLine::new("000-F1", "five titles, words as shingles, T = 0.5", "diagram")
        .measured(found.clone())
        .judged(
            // By hand.
            UnjudgedReason::Shown.checked(PrintedClaim::same("4 triplets, 4 pairs, clusters ABC DE", &found)),
        )
        .because("`oracle::shared`, and in runs `blocking.kind = \"shingles\"`.");
    Ok(SectionAnswers { lines: vec![line], tables: vec![table], plots: Vec::new() })
}

/// Elements with their weights.
type WeightedSet = Vec<(u64, f64)>;

/// The samples of a weighted set.
fn samples(sampler: &mut Cws, set: &[(u64, f64)], size: usize) -> Vec<u64> {
    let (ids, weights): (Vec<_>, Vec<_>) = set.iter().map(|(id, weight)| (mix(*id), *weight)).unzip();
    let mut out = vec![0; size];
    sampler.components(Features { ids: &ids, weights: &weights }, &mut out);
    out
}

/// The fraction of places with the same sample.
fn equal(a: &[u64], b: &[u64]) -> f64 {
    a.iter().zip(b).filter(|(a, b)| a == b).count() as f64 / a.len() as f64
}

/// 000-F2 and 000-F3: samples of one set, and the filter that lets similar pairs through.
pub(super) fn draw(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let set = [(1, 0.1), (2, 0.2), (3, 0.3), (4, 0.4), (5, 1.0)];
    let total: f64 = set.iter().map(|(_, weight)| weight).sum();
    let mut sampler = Cws::new(SIZE, work.bench.seed);
    let drawn = samples(&mut sampler, &set, SIZE);
    let mut table = ResultTable::new(
        "000_f2_samples",
        "000-F2: 1000 samples of a weighted set",
        "A sample is an element and a level of its weight; an element is drawn in proportion to its weight.",
        "element | weight | share of the weight, % | share of the samples, %",
    );
    let mut apart = Vec::new();
    for (element, weight) in set {
        // The set has the sample that the element has by itself, where the element is the sample.
        let share = equal(&drawn, &samples(&mut sampler, &[(element, weight)], SIZE));
        let expected = weight / total;
        apart.push(share - expected);
        table.push(row![element, weight, 100.0 * expected, 100.0 * share]);
    }
    let schedule = super::filter(THRESHOLDS[0])?;
    let passing = [0.7, 0.75, 0.8, 0.85, 0.9].map(|similarity| schedule.operation(similarity).accepted);
    let lines = vec![
        ItemLine::new("000-F2", "K samples of a weighted set", "diagram")
            .measured("table 000_f2_samples: shares of samples and of weights")
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::each(
                apart.into_iter().map(|apart| (0.0, apart)),
                Matters::From(0.05),
            )))
            .because("`sketch/cws.rs`."),
        ItemLine::new(
            "000-F3",
            "pairs that the filter lets through at T0 = 0.8, of similarity 0.7 / 0.75 / 0.8 / 0.85 / 0.9",
            "diagram",
        )
        .measured(passing.map(super::percent).join(" / "))
        .judged(UnjudgedReason::Shown.checked(PrintedClaim::rises(1.0, &passing)))
        .because("`filter/staged.rs`; by the binomial model of its looks (`Schedule::operation`)."),
    ];
    Ok(SectionAnswers { lines, tables: vec![table], plots: Vec::new() })
}

/// 000-A1: the fraction of equal samples, compared with the weighted Jaccard similarity.
pub(super) fn consistent(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    const SAMPLES: usize = 100_000;
    let cases: [(&str, WeightedSet, WeightedSet); 4] = [
        ("{1} and {3}, one element", vec![(1, 1.0)], vec![(1, 3.0)]),
        ("{1, 1} and {1, 3}", vec![(1, 1.0), (2, 1.0)], vec![(1, 1.0), (2, 3.0)]),
        ("the same, a thousandth of the weights", vec![(1, 1e-3), (2, 1e-3)], vec![(1, 1e-3), (2, 3e-3)]),
        ("{0.1, 0.25} and {0.3, 0.05, 0.2}", vec![(1, 0.1), (2, 0.25)], vec![(1, 0.3), (2, 0.05), (3, 0.2)]),
    ];
    let mut table = ResultTable::new(
        "000_a1_samples",
        "000-A1: equal samples and weighted Jaccard similarity",
        "100,000 samples of each of two sets.",
        "weights | J_w | equal samples | standard deviations apart",
    );
    let mut sampler = Cws::new(SAMPLES, work.bench.seed);
    let mut shares = Vec::new();
    for (name, a, b) in &cases {
        let unzip = |set: &WeightedSet| -> (Vec<u64>, Vec<f64>) { set.iter().copied().unzip() };
        let ((ids, weights), (others, masses)) = (unzip(a), unzip(b));
        let first = Features { ids: &ids, weights: &weights };
        let jaccard = Measure::WeightedJaccard.similarity(first, Features { ids: &others, weights: &masses });
        let found = equal(&samples(&mut sampler, a, SAMPLES), &samples(&mut sampler, b, SAMPLES));
        let apart = (found - jaccard) / (jaccard * (1.0 - jaccard) / SAMPLES as f64).sqrt();
        shares.push((jaccard, found));
        table.push(row![*name, jaccard, found, apart]);
    }
    // A word that is one of a hundred, in none other of the source's 1.2 million documents.
    let heaviest = IdfForm::Paper.idf(1_200_000, 0) / 100.0;
    let lines = vec![
        ItemLine::new("000-A1", "P[sample equal], weights above and below 1", "J_w")
            .measured(
                shares
                    .iter()
                    .map(|(of, found)| format!("{of:.3}: {found:.4}"))
                    .collect::<Vec<_>>()
                    .join("; "),
            )
            .judged(Basis::Measured(PrintedClaim::each(shares, Matters::From(0.01))))
            .because("`sketch/cws.rs`, with intervals (2^(k-1), 2^k] for all whole k"),
        ItemLine::new("000-A1", "intervals up to \"2k\", k > 0: the least weight that has one", "above 1")
            .measured(format!(
                "{heaviest:.2}, TF-IDF of a word of 100 that no other of 1.2 million documents has"
            ))
            .judged(Basis::Computed(PrintedClaim::at_least(1.0, &[heaviest])))
            .because(
                "\"2k\" has lost its exponent; with k > 0 instead of any whole k no weight of TF-IDF has an \
                    interval",
            ),
        ItemLine::new("000-A1", "what the draw of h is seeded by", "not printed")
            .measured("element and sample")
            .judged(UnjudgedReason::Reading)
            .because(
                "With a draw for each interval too, one way to read it, samples of {1, 1} and {1, 3} would \
                    be equal with 17/35 instead of 1/2.",
            ),
        ItemLine::new("000-A1", "x", "element and weight at once")
            .measured("the element; its weight is S")
            .judged(UnjudgedReason::Reading)
            .because("One letter stands for both."),
    ];
    Ok(SectionAnswers { lines, tables: vec![table], plots: Vec::new() })
}

/// 000-Q: errors in the equations, and their size.
pub(super) fn equations(_: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let (k, r) = (100, THRESHOLDS[0]);
    let tails = Binomial::new(k, r);
    let all: f64 = tails.masses().iter().sum();
    // C(100, 80) 0.8^80 0.2^20, by logarithms.
    let choose = libm::lgamma(101.0) - libm::lgamma(81.0) - libm::lgamma(21.0);
    let formula = (choose + 80.0 * r.ln() + 20.0 * (1.0 - r).ln()).exp();
    let few = Binomial::new(5, r);
    let (of_pairs, whole, cut) =
        (Binomial::new(1000, r).below(k + 1), few.below(3), few.below(3) - few.mass(0));
    // What the source compares with e: the tail of its own bound.
    let (from_96, other) = (tails.at_least(96), (-(k as f64)).exp());
    let (idf, taken) = ((4.0_f64 / 5.0).ln(), IdfForm::Paper.idf(4, 4));
    let line = |of: &str, printed: &str| ItemLine::new("000-Q", of, printed);
    let lines = vec![
        line("(2), (3): the second index of the sums", "j")
            .measured("i".to_owned())
            .judged(UnjudgedReason::Reading)
            .because("The sums run over one element of both documents."),
        line("X, the equal samples of k: its law", "B(n, R)")
            .measured(format!(
                "probabilities of 0 to k = 100 add up to {all:.6} by B(100, R), to {of_pairs:.6} by B(1000, \
                    R)"
            ))
            .judged(UnjudgedReason::Reading)
            .because("n is the number of observation points or of pairs: right where it is k"),
        line("(4): P[X = m], at m = 80, k = 100, R = 0.8", "another form")
            .measured(format!(
                "C(k, m) R^m (1 - R)^(k - m) = {formula:.6}; `Binomial::mass` {:.6}",
                tails.mass(80)
            ))
            .judged(UnjudgedReason::Reading.checked(PrintedClaim::equal(
                formula,
                tails.mass(80),
                Matters::Share(1e-9),
            )))
            .because("The binomial probability, by logarithms of factorials and by the program."),
        line("the sum of (4) written out from i = 1, k = 5, m = 2", &format!("{cut:.5}"))
            .measured(format!("P[X <= 2] = {whole:.5}"))
            .judged(Basis::Computed(PrintedClaim::equal(cut, whole, Matters::Share(1e-6))))
            .because("It runs from i = 0: no equal sample at all is possible too."),
        line("the second test, e^-k: the tail from 96 on, at k = 100", &format!("within {other:.1e}"))
            .measured(format!("{from_96:.1e}"))
            .judged(Basis::Computed(PrintedClaim::at_most(other, &[from_96])))
            .because("Both tests compare a tail with the same e = 1e-5; by e^-k no pair would be accepted."),
        line("idf of a word in 4 of 4 documents, ln(N / (df + 1))", "a weight")
            .measured(format!("{idf:.3}"))
            .judged(UnjudgedReason::Reading)
            .because("It may be 0 or less, of which nothing is said."),
        line("the same by `text.idf_form = \"paper\"`", "-")
            .measured(format!("{taken:.0}"))
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::equal(0.0, taken, Matters::Any)))
            .because("Such words are dropped."),
    ];
    Ok(SectionAnswers { lines, ..SectionAnswers::default() })
}

/// 000-H2, and of 000-H3 what print beside print says.
pub(super) fn arithmetic(_: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let (pairs, samples) = (100_000_000_u64, SIZE as u64);
    let first = super::PAPER_LOOKS[0];
    let lines = vec![
        ItemLine::new("000-H2", "comparisons of samples for 100 million pairs", "10^11 (as \"1011\")")
            .measured(format!("{:e}", (pairs * samples) as f64))
            .judged(UnjudgedReason::LostSymbols)
            .because("1000 for each pair, a product; the stored text has lost the exponents"),
        ItemLine::new(
            "000-H3",
            "printed gain in time, beside the most that comparisons can save",
            "5000 s / 280 s = 17.9 times",
        )
        .measured(format!("at most {} times", SIZE / first))
        .judged(UnjudgedReason::Arithmetic)
        .because("The first look reads 100 of 1000 samples, so the filter reads a tenth at least."),
        ItemLine::new(
            "000-H3",
            "saved of the time, beside what is saved of the comparisons",
            "94.4 % (5000 s to 280 s) beside 85 %",
        )
        .measured(format!("of the comparisons at most {:.0} %", 100.0 - 100.0 * first as f64 / SIZE as f64))
        .judged(UnjudgedReason::Arithmetic)
        .because("print beside print: the time falls by more than the comparisons could"),
    ];
    Ok(SectionAnswers { lines, ..SectionAnswers::default() })
}

/// 000-H5.
pub(super) fn background(_: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    let line = ItemLine::new("000-H5", "redundancy of backups and archives; the usual K", "80 to 90 %; 1000")
        .measured("-")
        .judged(UnjudgedReason::Quoted)
        .because("Quoted from elsewhere, not measured by the source.");
    Ok(SectionAnswers { lines: vec![line], ..SectionAnswers::default() })
}
