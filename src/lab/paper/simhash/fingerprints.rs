//! Fingerprints of pairs with a known angle, and the example.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use crate::EvaluateError;
use crate::paper::{Basis, ItemLine, Matters, PrintedClaim, SectionAnswers, SectionContext, UnjudgedReason};
use crate::plot::{Axis, Plot, Series};
use crate::table::{ResultTable, row};
use crate::threads;
use dupflow_core::hash::mix;
use dupflow_core::sketch::simhash::fingerprint;
use dupflow_core::sketch::{SketchKind, SketchParams};
use dupflow_core::text::{Features, Shingle, TextRules, shingles, tokens};

/// Number of features of each set.
const FEATURES: usize = 400;

/// Pairs by distance, from 0 to 64.
type Distances = [u64; 65];

/// The number of pairs of sets with this cosine at each distance, by the program's SimHash of 64 bits.
fn distances(work: &SectionContext<'_>, cosine: f64, pairs: usize) -> Distances {
    // Two sets of one size with this number of common features have this cosine.
    let shared = (0..FEATURES as u64).find(|n| *n as f64 >= cosine * FEATURES as f64 - 1e-9);
    let shared = shared.unwrap_or(FEATURES as u64);
    let seed = mix(work.bench.seed ^ shared);
    let of_share = |share: usize| {
        let params = SketchParams { kind: SketchKind::SIMHASH, size: 64, bits: 1, wide: 0, seed };
        let (mut sketcher, mut counts, mut words) = (params.sketcher(), [0; 65], Vec::new());
        for pair in (share..pairs).step_by(SHARES) {
            words.clear();
            for own in [0, FEATURES as u64 - shared] {
                let ids: Vec<u64> =
                    (own..own + FEATURES as u64).map(|x| mix(mix(seed ^ pair as u64) ^ x)).collect();
                sketcher.sketch(Features::set(&ids), &mut words);
            }
            counts[(words[0] ^ words[1]).count_ones() as usize] += 1;
        }
        counts
    };
    let sum = |all: Distances, share: Distances| std::array::from_fn(|d| all[d] + share[d]);
    threads::map(work.bench.threads, SHARES, of_share).into_iter().fold([0; 65], sum)
}

/// Parts of the work, independent of the number of threads.
const SHARES: usize = 16;

/// The expected fraction of equal bits.
pub(super) fn expected(cosine: f64) -> f64 {
    1.0 - cosine.acos() / std::f64::consts::PI
}

fn mean(counts: &Distances) -> f64 {
    let all: u64 = counts.iter().sum();
    counts.iter().enumerate().map(|(d, n)| d as f64 * *n as f64).sum::<f64>() / all as f64
}

fn share_within(counts: &Distances, radius: usize) -> f64 {
    let all: u64 = counts.iter().sum();
    counts[..=radius].iter().sum::<u64>() as f64 / all as f64
}

/// 001-P1.
pub(super) fn two_documents(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    const COSINES: [f64; 9] = [0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0];
    let pairs = work.size(100_000, 1000);
    let mut table = ResultTable::new(
        "001_p1",
        "Agreement of bits by cosine",
        &format!(
            "{pairs} pairs of sets of {FEATURES} features, 64 bits. The estimate is the cosine of π times \
                the share of bits that differ; its error is the root of the mean square."
        ),
        "cosine | expected share | measured share | error of the estimate",
    );
    let (mut law, mut found) = (Vec::new(), Vec::new());
    for cosine in COSINES {
        let counts = distances(work, cosine, pairs);
        let share = 1.0 - mean(&counts) / 64.0;
        let error = |d: usize| ((std::f64::consts::PI * d as f64 / 64.0).cos() - cosine).powi(2);
        let squares: f64 = counts.iter().enumerate().map(|(d, n)| *n as f64 * error(d)).sum();
        table.push(row![cosine, expected(cosine), share, (squares / pairs as f64).sqrt()]);
        law.push((cosine, expected(cosine)));
        found.push((cosine, share));
    }
    let apart = found.iter().zip(&law).map(|((_, share), (_, expected))| share - expected);
    let apart: Vec<f64> = apart.collect();
    let furthest = apart.iter().fold(0.0, |most: f64, apart| most.max(apart.abs()));
    let line = ItemLine::new("001-P1", "similarity of two documents", "the share of equal bits")
        .measured(format!("1 - θ/π, to {furthest:.4}"))
        .judged(Basis::Measured(PrintedClaim::each(apart.iter().map(|of| (0.0, *of)), Matters::From(0.005))))
        .because(
            "the share less 1 - θ/π, of nine cosines; a third of a bit would matter. The law of Charikar \
                (2002) holds for sets of many features; `compare` shows the estimate for two texts",
        );
    let series = |name: &str, points| Series::new(name, points);
    let plot = Plot::new(
        "001_p1",
        "Bits that agree",
        Axis::linear("cosine"),
        Axis::linear("share of 64 bits"),
        vec![series("1 - θ/π", law), series("measured", found)],
    );
    Ok(SectionAnswers { lines: vec![line], tables: vec![table], plots: vec![plot] })
}

/// Bits that lead a table of the block-permuted search.
const LEADING: u32 = 16;

/// The share of pairs at distance 3 that no table finds. Each of four tables is led by 16 bits, which begin
/// `step` bits after those of the table before; a table finds a pair that agrees in them.
fn missed(seed: u64, pairs: usize, step: u32) -> f64 {
    let leads: Vec<u64> = (0..4).map(|table| ((1_u64 << LEADING) - 1).rotate_left(table * step)).collect();
    let mut rng = ChaCha8Rng::seed_from_u64(seed);
    let mut is_missed = |_: &usize| {
        let mut apart = 0_u64;
        while apart.count_ones() < 3 {
            apart |= 1 << rng.random_range(0..64);
        }
        leads.iter().all(|lead| apart & lead != 0)
    };
    (0..pairs).filter(&mut is_missed).count() as f64 / pairs as f64
}

/// 001-H1.
pub(super) fn within_three(work: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    const EXPECTED: [(f64, f64); 3] = [(0.95, 0.10), (0.99, 0.67), (0.995, 0.85)];
    let pairs = work.size(100_000, 1000);
    let mut table = ResultTable::new(
        "001_h1",
        "Pairs within a distance of 3",
        &format!(
            "{pairs} pairs of sets of {FEATURES} features, 64 bits. Expected by a binomial law of \
                independent bits. The last columns: the least distance within which nine pairs of ten lie, \
                and 99 of 100."
        ),
        "cosine | mean distance | expected within 3 | within 3 | 90 % within | 99 % within",
    );
    let mut shares = Vec::new();
    for (cosine, expected) in EXPECTED {
        let counts = distances(work, cosine, pairs);
        let least = |share: f64| (0..=64).find(|radius| share_within(&counts, *radius) >= share);
        let within = share_within(&counts, 3);
        table.push(row![cosine, mean(&counts), expected, within, least(0.9), least(0.99)]);
        shares.push((within, mean(&counts)));
    }
    // The bits of one pair share their features and are slightly dependent, so slightly more pairs are near.
    let binomial = |at: usize| PrintedClaim::equal(EXPECTED[at].1, shares[at].0, Matters::From(0.035));
    // The search of the page keeps a few tables of permuted blocks, whose leading bits have to agree.
    let steps = [4, 8, 16].map(|step| missed(mix(work.bench.seed), pairs, step));
    let signs = fingerprint(&[0b01, 0b10], &[1.0, 1.0]) & 0b11;
    let lines = vec![
        ItemLine::new("001-H1", "64 bits, threshold 0.95: pairs within 3", "-")
            .measured(format!("distance {:.1} expected; within 3: {:.0} %", shares[0].1, 100.0 * shares[0].0))
            .judged(UnjudgedReason::StandIn.checked(binomial(0)))
            .because(
                "what the fingerprint loses: at a cosine of 0.95 a radius of 3 misses most pairs, by \
                    whatever search",
            ),
        ItemLine::new("001-H1", "the same at 0.99 and 0.995", "-")
            .measured(format!("{:.0} % and {:.0} %", 100.0 * shares[1].0, 100.0 * shares[2].0))
            .judged(UnjudgedReason::StandIn.checked(binomial(1).and(binomial(2))))
            .because("a binomial law expects 67 % and 85 %"),
        ItemLine::new(
            "001-H1",
            "pairs at distance 3 that four tables miss, whose 16 leading bits begin 4, 8 and 16 bits apart",
            "a few false negatives; better permutations lower them",
        )
        .measured(steps.map(|share| format!("{:.1} %", 100.0 * share)).join(", "))
        .judged(Basis::Measured(PrintedClaim::falls(1.0, &steps)))
        .because(
            "the block-permuted search: the less the leading bits of its tables overlap, the fewer it \
                misses; blocks of their own miss none",
        ),
        ItemLine::new(
            "001-H1",
            "the rule of signs: the two lowest bits of two votes that cancel",
            "a sum below 0 gives 0, else 1: 3",
        )
        .measured(signs.to_string())
        .judged(Basis::Computed(PrintedClaim::equal(3.0, signs as f64, Matters::Any)))
        .because("3 is both bits set: a sum of 0 gives 1 here too"),
    ];
    Ok(SectionAnswers { lines, tables: vec![table], plots: Vec::new() })
}

/// 001-E1.
pub(super) fn example(_: &SectionContext<'_>) -> Result<SectionAnswers, EvaluateError> {
    const SENTENCE: &str = "The earth is moving.";
    let rules = TextRules { shingle: Shingle::Chars(5), ..TextRules::default() };
    let characters: Vec<char> = SENTENCE.replace(' ', "_").chars().collect();
    let windows: Vec<String> = characters.windows(5).take(4).map(|window| window.iter().collect()).collect();
    let as_it_stands = windows.join(", ");
    let cut = shingles(SENTENCE, &rules);
    let shown: Vec<_> = cut.iter().take(4).map(|shingle| shingle.replace(' ', "_")).collect();
    let words = TextRules { shingle: Shingle::Words(1), ..TextRules::default() };
    let hashes: Vec<u64> = tokens(SENTENCE, &words).iter().map(|token| reference(token)).collect();
    let weights = vec![1.0; hashes.len()];
    let (shown, print) = (shown.join(", "), format!("{:#018x}", fingerprint(&hashes, &weights)));
    let lines = vec![
        ItemLine::new(
            "001-E1",
            "shingles of 5 characters of the sentence as it stands",
            "The_e, he_ea, e_ear, _eart",
        )
        .measured(as_it_stands.clone())
        .judged(Basis::Computed(PrintedClaim::same("The_e, he_ea, e_ear, _eart", &as_it_stands)))
        .because(
            "windows of 5 characters; lowercase is a step that the page has for its words; \"_\" is a blank",
        ),
        ItemLine::new("001-E1", "the program's, of lowercase tokens", "-")
            .measured(shown.clone())
            .judged(UnjudgedReason::Shown.checked(PrintedClaim::same("the_e, he_ea, e_ear, _eart", &shown)))
            .because("`text.shingle = \"chars:5\"`; beside a string by hand"),
        ItemLine::new("001-E1", "its fingerprint as a bag of words", "-")
            .measured(print.clone())
            .judged(UnjudgedReason::StandIn.checked(PrintedClaim::same("0x7cc9e2665ffbf5fe", &print)))
            .because(
                "by FNV-1a and the finaliser of splitmix64, beside another program; the page names MD5, FNV \
                    and Murmur, and not which it took",
            ),
    ];
    Ok(SectionAnswers { lines, ..SectionAnswers::default() })
}

/// FNV-1a of 64 bits with the finalizer of splitmix64: a hash that others can compute. The program's own
/// fingerprints use [`dupflow_core::hash`].
fn reference(token: &str) -> u64 {
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut z = token.bytes().fold(0xcbf2_9ce4_8422_2325, fnv);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
