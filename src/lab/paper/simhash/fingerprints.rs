//! Fingerprints of pairs of a known angle, and the example.

use crate::EvaluateError;
use crate::paper::{Basis, Claim, Line, Made, Tolerance, Why, Work};
use crate::plot::{Axis, Plot, Series};
use crate::table::{Table, row};
use crate::threads;
use dupflow_core::hash::mix;
use dupflow_core::sketch::simhash::fingerprint;
use dupflow_core::sketch::{SketchKind, SketchParams};
use dupflow_core::text::{Features, Shingle, TextRules, shingles, tokens};

/// Features of each set.
const FEATURES: usize = 400;

/// Distances from 0 to 64.
type Distances = [u64; 65];

/// How many pairs of sets with this cosine lie at each distance, by the program's SimHash of 64 bits.
fn distances(work: &Work<'_>, cosine: f64, pairs: usize) -> Distances {
    // Sets of one size that share this many have that cosine.
    let shared = (0..FEATURES as u64).find(|n| *n as f64 >= cosine * FEATURES as f64 - 1e-9);
    let shared = shared.unwrap_or(FEATURES as u64);
    let seed = mix(work.bench.seed ^ shared);
    let of_share = |share: usize| {
        let params = SketchParams { kind: SketchKind::SimHash, size: 64, bits: 1, wide: 0, seed };
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

/// Parts that pairs are divided into, whatever the number of threads.
const SHARES: usize = 16;

/// The expected share of bits that agree.
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
pub(super) fn two_documents(work: &Work<'_>) -> Result<Made, EvaluateError> {
    const COSINES: [f64; 9] = [0.0, 0.25, 0.5, 0.7, 0.8, 0.9, 0.95, 0.98, 1.0];
    let pairs = work.size(100_000, 1000);
    let mut table = Table::new(
        "001_p1",
        "Agreement of bits by cosine",
        &format!(
            "{pairs} pairs of sets of {FEATURES} features, 64 bits. The estimate is the cosine of π times the share of bits that differ; \
             its error is the root of the mean square."
        ),
        &["cosine", "expected share", "measured share", "error of the estimate"],
    );
    let (mut law, mut found, mut furthest) = (Vec::new(), Vec::new(), 0.0_f64);
    for cosine in COSINES {
        let counts = distances(work, cosine, pairs);
        let share = 1.0 - mean(&counts) / 64.0;
        let error = |d: usize| ((std::f64::consts::PI * d as f64 / 64.0).cos() - cosine).powi(2);
        let squares: f64 = counts.iter().enumerate().map(|(d, n)| *n as f64 * error(d)).sum();
        table.push(row![cosine, expected(cosine), share, (squares / pairs as f64).sqrt()]);
        law.push((cosine, expected(cosine)));
        found.push((cosine, share));
        furthest = furthest.max((share - expected(cosine)).abs());
    }
    // Of sums of 400 votes the law is off by less than 0.002; the mean of n pairs by 4 of its deviations, at
    // most 1/16 of a bit's each.
    let allowed = 0.002 + 4.0 * 0.5 / 8.0 / (pairs as f64).sqrt();
    let line = Line::new(
        "001-P1",
        "similarity of two documents",
        "the share of equal bits",
        format!("1 - θ/π, to {furthest:.4}"),
        Basis::Measured(Claim::AtMost(allowed, vec![furthest])),
        "the greatest distance of nine cosines; the law of Charikar (2002) holds for sets of many features; `compare` shows the estimate for two texts",
    );
    let series = |name: &str, points| Series { name: name.to_owned(), points };
    let plot = Plot {
        name: "001_p1".to_owned(),
        title: "Bits that agree".to_owned(),
        x: Axis::linear("cosine"),
        y: Axis::linear("share of 64 bits"),
        series: vec![series("1 - θ/π", law), series("measured", found)],
    };
    Ok(Made { lines: vec![line], tables: vec![table], plots: vec![plot] })
}

/// 001-H1.
pub(super) fn within_three(work: &Work<'_>) -> Result<Made, EvaluateError> {
    const EXPECTED: [(f64, f64); 3] = [(0.95, 0.10), (0.99, 0.67), (0.995, 0.85)];
    let pairs = work.size(100_000, 1000);
    let mut table = Table::new(
        "001_h1",
        "Pairs within a distance of 3",
        &format!(
            "{pairs} pairs of sets of {FEATURES} features, 64 bits. Expected by a binomial law of independent bits. The last columns: \
             the least distance within which nine pairs of ten lie, and 99 of 100."
        ),
        &["cosine", "mean distance", "expected within 3", "within 3", "90 % within", "99 % within"],
    );
    let mut shares = Vec::new();
    for (cosine, expected) in EXPECTED {
        let counts = distances(work, cosine, pairs);
        let least = |share: f64| (0..=64).find(|radius| share_within(&counts, *radius) >= share);
        let within = share_within(&counts, 3);
        table.push(row![cosine, mean(&counts), expected, within, least(0.9), least(0.99)]);
        shares.push((within, mean(&counts)));
    }
    // Bits of one pair share their features and are not quite independent, so that a little more lie near.
    let binomial = |at: usize| Claim::equal(EXPECTED[at].1, shares[at].0, Tolerance::Within(0.035));
    let signs = fingerprint(&[0b01, 0b10], &[1.0, 1.0]) & 0b11;
    let lines = vec![
        Line::new(
            "001-H1",
            "64 bits, threshold 0.95",
            "\"some false negatives\", no number",
            format!("distance {:.1} expected; within 3: {:.0} %", shares[0].1, 100.0 * shares[0].0),
            Why::StandIn.checked(binomial(0)),
            "at a cosine of 0.95 a radius of 3 misses most pairs; tables within the radius miss none, so the loss is the fingerprint's",
        ),
        Line::new(
            "001-H1",
            "the same at 0.99 and 0.995",
            "-",
            format!("{:.0} % and {:.0} %", 100.0 * shares[1].0, 100.0 * shares[2].0),
            Why::StandIn.checked(Claim::All(vec![binomial(1), binomial(2)])),
            "a binomial law expects 67 % and 85 %",
        ),
        Line::new(
            "001-H1",
            "the rule of signs: the two lowest bits of two votes that cancel",
            "a sum below 0 gives 0, else 1: 3",
            signs.to_string(),
            Basis::Exact(Claim::equal(3.0, signs as f64, Tolerance::Exact)),
            "3 is both bits set: a sum of 0 gives 1 here too",
        ),
    ];
    Ok(Made { lines, tables: vec![table], plots: Vec::new() })
}

/// 001-E1.
pub(super) fn example(_: &Work<'_>) -> Result<Made, EvaluateError> {
    const SENTENCE: &str = "The earth is moving.";
    let rules = TextRules { shingle: Shingle::Chars(5), ..TextRules::default() };
    let cut = shingles(SENTENCE, &rules);
    let shown: Vec<_> = cut.iter().take(4).map(|shingle| shingle.replace(' ', "_")).collect();
    let words = TextRules { shingle: Shingle::Words(1), ..TextRules::default() };
    let hashes: Vec<u64> = tokens(SENTENCE, &words).iter().map(|token| reference(token)).collect();
    let weights = vec![1.0; hashes.len()];
    let (shown, print) = (shown.join(", "), format!("{:#018x}", fingerprint(&hashes, &weights)));
    let lines = vec![
        Line::new(
            "001-E1",
            "shingles of 5 characters",
            "The_e, he_ea, e_ear, _eart",
            shown.clone(),
            Basis::Exact(Claim::same("The_e, he_ea, e_ear, _eart", &shown)),
            "the page prescribes lowercase, and keeps the capital; \"_\" is a blank",
        ),
        Line::new(
            "001-E1",
            "the same in lowercase, by hand",
            "-",
            shown.clone(),
            Why::Shown.checked(Claim::same("the_e, he_ea, e_ear, _eart", shown)),
            "`text.shingle = \"chars:5\"`",
        ),
        Line::new(
            "001-E1",
            "its fingerprint as a bag of words",
            "-",
            print.clone(),
            Why::StandIn.checked(Claim::same("0x7cc9e2665ffbf5fe", print)),
            "by FNV-1a and the finaliser of splitmix64, beside another program; the page names MD5, FNV and Murmur, and not which it took",
        ),
    ];
    Ok(Made { lines, ..Made::default() })
}

/// FNV-1a of 64 bits, finished as splitmix64 is: a hash that others can compute. The program's own
/// fingerprints use [`dupflow_core::hash`].
fn reference(token: &str) -> u64 {
    let fnv = |hash: u64, byte: u8| (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3);
    let mut z = token.bytes().fold(0xcbf2_9ce4_8422_2325, fnv);
    z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
    z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
    z ^ z >> 31
}
