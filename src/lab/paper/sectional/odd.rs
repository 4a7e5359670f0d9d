//! The odd sketch of table 1 as in its source, with MinHash; the program's own uses fss.
//!
//! Every component (place and value) flips one of n bits. So two texts differ in the bits that an odd number
//! of their different components flip. The printed variance is of the number z of these bits, for a given
//! number m of flips.
//!
//! Reference: M. Mitzenmacher, R. Pagh and N. Pham, *Efficient estimation for high similarities using odd
//! sketches* (WWW 2014), section 3.

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::super::{Basis, ItemLine, Matters, PrintedClaim, UnjudgedReason};
use super::model::{SHAPE, components};
use dupflow_core::hash::mix;
use dupflow_core::sketch::MinHash;

/// J, in percent.
const PERCENT: usize = 95;

/// The printed variance of z, for m flips of n bits.
pub(super) fn printed(n: f64, m: f64) -> f64 {
    let (four, two) = ((1.0 - 4.0 / n).powf(m), (1.0 - 2.0 / n).powf(2.0 * m));
    n * n * (four - two) / 4.0 + n * (1.0 - four) / 4.0
}

/// The bits with an odd number of flips.
fn odd(turns: impl Iterator<Item = u64>, bits: usize) -> Vec<bool> {
    let mut turned = vec![false; bits];
    turns.for_each(|turn| {
        let place = usize::try_from(turn % bits as u64).unwrap_or(0);
        turned[place] ^= true;
    });
    turned
}

fn variance(values: &[f64]) -> f64 {
    let mean = values.iter().sum::<f64>() / values.len() as f64;
    values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / values.len() as f64
}

/// The printed formula beside the variance of z, and beside the mean square error of J.
pub(super) fn over_minhash(seed: u64, trials: usize) -> [ItemLine; 2] {
    let (size, union) = SHAPE;
    let bits = 2 * size;
    let mut rng = ChaCha8Rng::seed_from_u64(mix(seed ^ 0x0dd));
    let jaccard = PERCENT as f64 / 100.0;
    // 2 k (1 - J), rounded: an integer number of flips.
    let m = (2 * size * (100 - PERCENT) + 50) / 100;
    let counts: Vec<f64> = (0..trials)
        .map(|_| {
            let turns: Vec<u64> = (0..m).map(|_| rng.random()).collect();
            odd(turns.into_iter(), bits).iter().filter(|is| **is).count() as f64
        })
        .collect();
    let error = |trial: usize| {
        let ids: Vec<u64> = (0..union).map(|_| rng.random()).collect();
        let common = union * PERCENT / 100;
        let half = common + (union - common) / 2;
        let mut minhash = MinHash::new(size, mix(seed ^ mix(trial as u64)));
        let texts = [ids[..half].to_vec(), [&ids[..common], &ids[half..]].concat()];
        let [a, b] = texts.map(|text| {
            let values = components(&mut minhash, &text, size);
            odd(values.into_iter().zip(0..).map(|(value, place): (u64, u64)| mix(value ^ mix(place))), bits)
        });
        let z = a.iter().zip(&b).filter(|(a, b)| a != b).count() as f64;
        let n = bits as f64;
        let estimate = 1.0 + n / (4.0 * size as f64) * (1.0 - 2.0 * z / n).ln();
        (estimate - common as f64 / union as f64).powi(2)
    };
    let error = (0..trials).map(error).sum::<f64>() / trials as f64;
    let (of_z, spread) = (printed(bits as f64, m as f64), variance(&counts));
    let turns = 2.0 * size as f64 * (1.0 - jaccard);
    let right = printed(bits as f64, turns)
        / (4.0 * (size * size) as f64 * (1.0 - 2.0 / bits as f64).powf(2.0 * turns))
        + jaccard * (1.0 - jaccard) / size as f64;
    [
        ItemLine::new(
            "004-T1",
            format!("odd, over MinHash: the printed variance, m = {m}"),
            format!("{of_z:.3}"),
        )
        .measured(format!("variance of z {spread:.3}"))
        .judged(Basis::Defined(PrintedClaim::equal(of_z, spread, Matters::Share(0.1))))
        .because("as the variance of z, the number of bits that differ, it is right"),
        ItemLine::new(
            "004-T1",
            "odd, over MinHash: the mean square error of J by its theory",
            format!("{:.2E}, the variance of z", printed(bits as f64, turns)),
        )
        .measured(format!("MSE {error:.2E}, theory {right:.2E}"))
        .judged(UnjudgedReason::Reading.checked(PrintedClaim::equal(1.0, error / right, Matters::From(0.15))))
        .because(
            "beside variances of J the print is one of z; of J it is that of z / (4 k^2 (1 - 2/n)^2m), and J \
                (1 - J) / k of the permutations",
        ),
    ]
}
