//! Sketches of weighted features: `P[component equal] = J_w` for darts and both kinds of consistent sampling,
//! with independent components; `P[bit equal] = 1 - θ / π` for SimHash.

use dupflow::core::hash::mix;
use dupflow::core::sketch::{Cws, Dart, Icws, Sampler, SimHash, Sketcher, Ties};
use dupflow::core::text::Features;

use crate::bounds::{self, SIGMAS};

/// The weights of two texts for each feature; 0 where a text does not have it.
struct Pair {
    name: &'static str,
    weights: Vec<(f64, f64)>,
}

/// From two features to a few hundred, from counts to fractions, with every way in which weights can differ.
fn pairs() -> Vec<Pair> {
    let any = |i: u64| (mix(i) >> 11) as f64 / (1_u64 << 53) as f64;
    let pair = |name, weights| Pair { name, weights };
    vec![
        pair("one weight differs", vec![(1.0, 1.0), (1.0, 3.0)]),
        pair("one feature, a third", vec![(2.0, 6.0)]),
        pair("a scaled copy", (1..40).map(|i| (f64::from(i), 1.25 * f64::from(i))).collect()),
        pair("huge ratios", vec![(1e6, 1e6), (1.0, 3e5), (1e-6, 2.0), (4e5, 1.0)]),
        pair("counts", (0..100).map(|i| ((any(i) * 4.0).floor(), (any(i / 2) * 4.0).floor())).collect()),
        pair(
            "fractions",
            (0..60)
                .map(|i| {
                    let own = 0.001 + 0.05 * any(i);
                    (own, if i % 5 == 0 { 0.0 } else { own * (0.8 + 0.4 * any(i + 1000)) })
                })
                .collect(),
        ),
    ]
}

impl Pair {
    /// Both texts with new feature ids.
    fn texts(&self, trial: u64) -> [(Vec<u64>, Vec<f64>); 2] {
        let ids = (0..self.weights.len() as u64).map(|i| mix(trial << 32 | i));
        let mut features: Vec<_> = ids.zip(&self.weights).collect();
        features.sort_unstable_by_key(|(id, _)| *id);
        let text = |of: fn(&(f64, f64)) -> f64| {
            features.iter().map(|(id, weights)| (*id, of(weights))).filter(|(_, w)| *w > 0.0).unzip()
        };
        [text(|weights| weights.0), text(|weights| weights.1)]
    }

    fn jaccard(&self) -> f64 {
        let sum = |of: fn(f64, f64) -> f64| self.weights.iter().map(|(a, b)| of(*a, *b)).sum::<f64>();
        sum(f64::min) / sum(f64::max)
    }

    fn angle(&self) -> f64 {
        let sum = |of: fn(&(f64, f64)) -> f64| self.weights.iter().map(of).sum::<f64>();
        (sum(|(a, b)| a * b) / (sum(|(a, _)| a * a) * sum(|(_, b)| b * b)).sqrt()).clamp(-1.0, 1.0).acos()
    }
}

/// Asserts that the share of equal components has the mean J_w and the variance `J_w (1 - J_w) / K` of
/// independent components. The mean of n shares is within 4.5 of its standard deviations, and so is the mean
/// of their squared errors.
fn check(name: &str, trials: usize, make: impl Fn(usize, u64) -> Box<dyn Sampler>) {
    const SIZE: usize = 64;
    for pair in pairs() {
        let (mut errors, mut squares) = (0.0, 0.0);
        let jaccard = pair.jaccard();
        for trial in 0..trials as u64 {
            let mut sampler = make(SIZE, trial);
            let [a, b] = pair.texts(trial).map(|(ids, weights)| {
                let mut out = vec![0; SIZE];
                sampler.components(Features { ids: &ids, weights: &weights }, &mut out);
                out
            });
            let equal = a.iter().zip(&b).filter(|(a, b)| a == b).count();
            let error = equal as f64 / SIZE as f64 - jaccard;
            errors += error;
            squares += error * error;
        }
        let (n, variance) = (trials as f64, jaccard * (1.0 - jaccard) / SIZE as f64);
        let (bias, ratio) = (errors / n, squares / n / variance);
        println!(
            "{name}, {}: J {jaccard:.4}, bias {bias:.5}, mean square error / variance {ratio:.3}",
            pair.name
        );
        assert!(bias.abs() <= SIGMAS * (variance / n).sqrt(), "{name}, {}: bias {bias}", pair.name);
        let slack = bounds::of_mean_square(trials, bounds::kurtosis(SIZE, jaccard));
        assert!((ratio - 1.0).abs() <= slack, "{name}, {}: ratio {ratio}", pair.name);
    }
}

#[test]
fn darts_have_no_bias_and_the_variance_of_independent_components() {
    check("dart", 2000, |size, seed| Box::new(Dart::new(size, seed)));
}

#[test]
fn cws_has_no_bias_and_the_variance_of_independent_components() {
    check("cws", 2000, |size, seed| Box::new(Cws::new(size, seed)));
}

#[test]
fn icws_has_no_bias_and_the_variance_of_independent_components() {
    check("icws", 2000, |size, seed| Box::new(Icws::new(size, seed)));
}

/// Disjoint texts have no equal component; equal texts have only equal components.
#[test]
fn the_ends_are_exact() {
    let samplers: [Box<dyn Sampler>; 3] =
        [Box::new(Dart::new(256, 1)), Box::new(Cws::new(256, 1)), Box::new(Icws::new(256, 1))];
    for mut sampler in samplers {
        let mut sketch = |ids: std::ops::Range<u64>, weight: f64| {
            let ids: Vec<_> = ids.map(mix).collect();
            let (weights, mut out) = (vec![weight; ids.len()], vec![0; 256]);
            sampler.components(Features { ids: &ids, weights: &weights }, &mut out);
            out
        };
        let (a, b, again) = (sketch(0..100, 0.3), sketch(100..150, 0.3), sketch(0..100, 0.3));
        assert_eq!(a, again);
        assert!(a.iter().zip(&b).all(|(a, b)| a != b));
    }
}

/// Bits are independent under random hashing, each with its own hash bits. The law of the angle assumes
/// normally distributed sums, that is, many features of similar weight, so pairs of a few features are left
/// out.
#[test]
fn simhash_bits_agree_by_the_angle() {
    const TRIALS: u64 = 1000;
    for pair in pairs().iter().filter(|pair| pair.weights.len() >= 39) {
        let expected = 1.0 - pair.angle() / std::f64::consts::PI;
        let mut equal = 0;
        for trial in 0..TRIALS {
            let mut simhash = SimHash::new(128, Ties::Hash, trial);
            let [a, b] = pair.texts(trial).map(|(ids, weights)| {
                let mut words = Vec::new();
                simhash.sketch(Features { ids: &ids, weights: &weights }, &mut words);
                words
            });
            equal += a.iter().zip(&b).map(|(a, b)| (!(a ^ b)).count_ones()).sum::<u32>();
        }
        let bits = (128 * TRIALS) as f64;
        let share = f64::from(equal) / bits;
        println!("simhash, {}: {share:.4} for {expected:.4}", pair.name);
        // The deviation of a binomial share, and 0.003 because sums of 40 or more weights are not exactly
        // normal (about 1 / n).
        let deviation = (expected * (1.0 - expected) / bits).sqrt();
        assert!((share - expected).abs() <= SIGMAS * deviation + 0.003, "{}: {share} {expected}", pair.name);
    }
}
