//! A simulated pair: which of its components match.

use rand::Rng;

/// Components that a pair can have at most; whole words.
pub(super) const MOST: usize = 1024;

/// The match indicators of one pair, each 1 with the same probability, independently.
#[derive(Clone, Debug)]
pub(super) struct Matches {
    /// Bit j of word g is component 64 g + j; a last word of zeros.
    words: [u64; MOST / 64 + 1],
    /// Matches before each word.
    before: [u32; MOST / 64 + 1],
}

impl Matches {
    /// Draws a pair whose components match with probability `p`, in `0.0..=1.0`.
    pub(super) fn draw(rng: &mut impl Rng, p: f64) -> Self {
        let mut pair = Self { words: [0; MOST / 64 + 1], before: [0; MOST / 64 + 1] };
        for g in 0..MOST / 64 {
            pair.words[g] = coins(rng, p);
            pair.before[g + 1] = pair.before[g] + pair.words[g].count_ones();
        }
        pair
    }

    /// X_k, matches among the first `k` components, at most [`MOST`].
    pub(super) fn among(&self, k: usize) -> u32 {
        self.before[k / 64] + (self.words[k / 64] & !(!0 << (k % 64))).count_ones()
    }

    /// Whether component `j` matches.
    pub(super) fn at(&self, j: usize) -> bool {
        self.words[j / 64] >> (j % 64) & 1 == 1
    }

    /// After how many components it is certain whether at least `least` of the first `size` match.
    pub(super) fn certain_after(&self, least: usize, size: usize) -> usize {
        let certain = |k: usize| {
            let matches = self.among(k) as usize;
            matches >= least || k - matches > size - least
        };
        // What is certain stays so.
        let (mut open, mut closed) = (0, size);
        while open < closed {
            let middle = usize::midpoint(open, closed);
            if certain(middle) { closed = middle } else { open = middle + 1 }
        }
        closed
    }
}

/// 64 coins, each 1 with probability `p`: each compares a uniform number with p, bit by bit from the highest on, and all of them do
/// so at once until the last is decided (after 7 random words on average).
pub(super) fn coins(rng: &mut impl Rng, p: f64) -> u64 {
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
        let pair = Matches::draw(&mut ChaCha8Rng::seed_from_u64(2), 0.4);
        let mut matches = 0;
        for k in 0..MOST {
            assert_eq!(pair.among(k), matches, "{k}");
            matches += u32::from(pair.at(k));
        }
        assert_eq!(pair.among(MOST), matches);
    }

    #[test]
    fn the_outcome_is_certain_when_the_rest_cannot_change_it() {
        let mut rng = ChaCha8Rng::seed_from_u64(3);
        for (least, size) in [(1, 10), (10, 10), (8, 10), (500, 1000), (820, 1024)] {
            for p in [0.0, 0.3, 0.8, 1.0] {
                let pair = Matches::draw(&mut rng, p);
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
