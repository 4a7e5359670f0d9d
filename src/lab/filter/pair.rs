//! A simulated pair: which of its components match.

use rand::Rng;

/// Maximum number of components of a pair; a multiple of 64.
pub(crate) const MOST: usize = 1024;

/// Words of [`MOST`] bits.
const WORDS: usize = MOST / 64;

/// Which components of a pair match.
#[derive(Clone, Debug)]
pub(crate) struct PairMatches {
    /// Bit j of word g is 1 if component 64 g + j differs.
    differing: [u64; WORDS],
    /// Matches before each word, and before the end.
    before: [u32; WORDS + 1],
    /// Bit j is 1 if component j, one of the first 64, differs in its lowest bit.
    low: u64,
}

impl PairMatches {
    /// Draws a pair whose components match with probability `p`, in `0.0..=1.0`, each independently of the
    /// others; the lowest bit of those that differ agrees with probability `agree`.
    pub(crate) fn draw(rng: &mut impl Rng, p: f64, agree: f64) -> Self {
        let pair = Self::from_words(|_| coins(rng, p));
        Self { low: pair.low & !coins(rng, agree), ..pair }
    }

    /// The pair whose component j, from 0, matches if `matches(j)`.
    #[cfg(test)]
    pub(crate) fn from_fn(matches: impl Fn(usize) -> bool) -> Self {
        Self::from_words(|g| (0..64).fold(0, |word, j| word | u64::from(matches(64 * g + j)) << j))
    }

    fn from_words(mut matching: impl FnMut(usize) -> u64) -> Self {
        let mut pair = Self { differing: [0; WORDS], before: [0; WORDS + 1], low: 0 };
        for g in 0..WORDS {
            pair.differing[g] = !matching(g);
            pair.before[g + 1] = pair.before[g] + pair.differing[g].count_zeros();
        }
        pair.low = pair.differing[0];
        pair
    }

    /// X_k: the number of matches among the first `k` components, at most [`MOST`].
    pub(crate) fn among(&self, k: usize) -> u32 {
        let part = self.differing.get(k / 64).map_or(0, |word| (!word & !(!0 << (k % 64))).count_ones());
        self.before[k / 64] + part
    }

    /// The first words of the two sketches, in the bits that differ.
    pub(crate) fn first_words(&self) -> (u64, u64) {
        (0, self.low)
    }

    /// The pair as two sketches of one bit per component, which record where components of any width differ.
    pub(crate) fn one_bit_sketches(&self) -> (&[u64], &[u64]) {
        (&[0; WORDS], &self.differing)
    }

    /// The number of components after which it is certain whether at least `least` of the first `size` match.
    pub(crate) fn certain_after(&self, least: usize, size: usize) -> usize {
        let certain = |k: usize| {
            let matches = self.among(k) as usize;
            matches >= least || k - matches > size - least
        };
        // Certainty is monotone in the number of components.
        let (mut open, mut closed) = (0, size);
        while open < closed {
            let middle = usize::midpoint(open, closed);
            if certain(middle) { closed = middle } else { open = middle + 1 }
        }
        closed
    }
}

/// 64 coins, each 1 with probability `p`. Each coin compares a uniform number with p bit by bit, from the
/// highest bit on; all coins do so at once until the last is decided (after 7 random words on average).
pub(crate) fn coins(rng: &mut impl Rng, p: f64) -> u64 {
    if p >= 1.0 {
        return !0;
    }
    let (mut below, mut open, mut rest) = (0, !0_u64, p);
    while open != 0 && rest > 0.0 {
        let random: u64 = rng.random();
        rest *= 2.0;
        if rest >= 1.0 {
            rest -= 1.0;
            below |= open & !random;
            open &= random;
        } else {
            open &= !random;
        }
    }
    below
}

#[cfg(test)]
mod tests {
    use rand::SeedableRng;
    use rand_chacha::ChaCha8Rng;

    use super::*;

    #[test]
    fn coins_are_as_probable_as_asked_for() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        for p in [0.0, 0.02, 0.3, 0.5, 0.75, 0.999, 1.0] {
            let (words, mut ones, mut by_lane) = (4000_u32, 0, [0_u32; 64]);
            for _ in 0..words {
                let coins = coins(&mut rng, p);
                ones += coins.count_ones();
                (0..64).for_each(|lane| by_lane[lane] += (coins >> lane & 1) as u32);
            }
            let slack = |n: f64| 4.5 * (p * (1.0 - p) / n).sqrt() + 1e-12;
            let share = f64::from(ones) / f64::from(64 * words);
            assert!((share - p).abs() <= slack(f64::from(64 * words)), "{p}: {share}");
            for lane in by_lane {
                assert!(
                    (f64::from(lane) / f64::from(words) - p).abs() <= slack(f64::from(words)),
                    "{p}: {lane}"
                );
            }
        }
    }

    #[test]
    fn counts_are_of_the_first_components() {
        let matches = |j: usize| j.is_multiple_of(3) || j % 7 == 1;
        let pair = PairMatches::from_fn(matches);
        for k in 0..=MOST {
            assert_eq!(pair.among(k) as usize, (0..k).filter(|j| matches(*j)).count(), "{k}");
        }
    }

    #[test]
    fn the_outcome_is_certain_when_the_rest_cannot_change_it() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for (least, size) in [(1, 10), (10, 10), (8, 10), (500, 1000), (820, 1024)] {
            for p in [0.0, 0.3, 0.8, 1.0] {
                let pair = PairMatches::draw(&mut rng, p, 0.0);
                let open = |k: usize| {
                    let matches = pair.among(k) as usize;
                    matches < least && matches + (size - k) >= least
                };
                let expected = (0..=size).find(|k| !open(*k)).unwrap();
                assert_eq!(pair.certain_after(least, size), expected, "{least} of {size} at {p}");
            }
        }
    }
}
