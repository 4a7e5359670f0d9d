//! Designs measured beside their estimates, on uniform fingerprints with planted neighbours.
//!
//! In: the shape of a [`Setting`], designs, a clock. Out: one [`Row`] a design. Work and time are of queries
//! that are random, as the estimates assume; recall is of queries that are a fingerprint of the corpus with up to k bits
//! flipped, k included.
//!
//! All random numbers come from the seed: equal settings have equal rows, but for the times.

use std::time::Duration;

use super::indexes::{Fingerprints, Work, index};
use crate::block::hamming::{Design, DesignError, Estimate, Form};
use crate::hash::{PI, mix};
use crate::time::Clock;

/// What is measured on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Setting {
    /// f, bits of a fingerprint.
    pub bits: usize,
    /// n, fingerprints of the corpus, at least 1.
    pub documents: usize,
    /// Random queries, and as many with a planted origin.
    pub queries: usize,
    /// Everything random depends on it.
    pub seed: u64,
}

/// What a design did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The design.
    pub design: Design,
    /// What was expected of one random query.
    pub estimate: Estimate,
    /// Work of all random queries.
    pub work: Work,
    /// Time of all random queries.
    pub time: Duration,
    /// Time to build the index.
    pub build: Duration,
    /// Time of all queries with a planted origin.
    pub planted_time: Duration,
    /// Planted origins that were not found: 0, or a design is broken.
    pub missed: usize,
    /// Ids found by all queries.
    pub found: u64,
    /// A hash of all ids that all queries found: equal for all designs of one radius.
    pub results: u64,
}

impl Setting {
    /// Builds and asks one index after the other, so that the memory is that of the largest.
    ///
    /// # Errors
    /// If an index cannot be built, see [`index`].
    ///
    /// # Panics
    /// If a design is for fingerprints of other length.
    pub fn run(&self, designs: &[Design], clock: &dyn Clock) -> Result<Vec<Row>, DesignError> {
        let corpus = random(self.bits, self.documents, self.seed);
        designs.iter().map(|design| self.row(*design, &corpus, clock)).collect()
    }

    fn row(&self, design: Design, corpus: &Fingerprints, clock: &dyn Clock) -> Result<Row, DesignError> {
        let strangers = random(self.bits, self.queries, mix(self.seed));
        let planted = self.plant(corpus, design.radius());
        let began = clock.now();
        let mut index = index(&design, corpus)?;
        let built = clock.now();

        let (mut ids, mut found, mut results) = (Vec::new(), 0, 0);
        let mut note = |answer: &[u32]| {
            found += answer.len() as u64;
            results = answer.iter().fold(mix(results), |hash, id| mix(hash ^ u64::from(*id)));
        };
        let mut work = Work::default();
        for (_, query) in strangers.iter() {
            work += index.within(query, &mut ids);
            note(&ids);
        }
        let asked = clock.now();
        let mut missed = 0;
        for (origin, query) in &planted {
            index.within(query, &mut ids);
            missed += usize::from(ids.binary_search(origin).is_err());
            note(&ids);
        }
        let (build, time, planted_time) = (built - began, asked - built, clock.now() - asked);
        let estimate = design.estimate(self.documents as u64, Form::Index);
        Ok(Row { design, estimate, work, time, build, planted_time, missed, found, results })
    }

    /// Ids of the corpus, each with a neighbour of it at distance 0, 1, ... k, 0, 1, ...
    fn plant(&self, corpus: &Fingerprints, radius: usize) -> Vec<(u32, Vec<u64>)> {
        let plant = |i: usize| {
            let r = mix(self.seed ^ PI[4] ^ i as u64);
            #[expect(clippy::cast_possible_truncation, reason = "below a number of ids, which have 32 bits")]
            let origin = (r % corpus.len() as u64) as u32;
            (origin, neighbour(corpus.get(origin), self.bits, i % (radius + 1), r))
        };
        (0..self.queries).map(plant).collect()
    }
}

/// `n` uniform fingerprints of `bits` bits.
pub fn random(bits: usize, n: usize, seed: u64) -> Fingerprints {
    let mut fingerprints = Fingerprints::new(bits);
    let stride = bits.div_ceil(64);
    let mut words = vec![0; stride];
    let mut counter = mix(seed ^ PI[6]);
    for _ in 0..n {
        for word in &mut words {
            counter = counter.wrapping_add(PI[0] | 1);
            *word = mix(counter);
        }
        words[stride - 1] &= !0 >> (stride * 64 - bits);
        fingerprints.push(&words);
    }
    fingerprints
}

/// A fingerprint at exactly `distance` from another, at most `bits`.
pub fn neighbour(of: &[u64], bits: usize, distance: usize, seed: u64) -> Vec<u64> {
    let mut near = of.to_vec();
    let (mut left, mut counter) = (distance, seed);
    while left > 0 {
        counter = counter.wrapping_add(PI[0] | 1);
        #[expect(clippy::cast_possible_truncation, reason = "below a number of bits")]
        let bit = (mix(counter) % bits as u64) as usize;
        let (word, mask) = (bit / 64, 1 << (bit % 64));
        if (near[word] ^ of[word]) & mask == 0 {
            near[word] ^= mask;
            left -= 1;
        }
    }
    near
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::hamming::{self, Kind};
    use crate::time::SystemClock;

    #[test]
    fn all_designs_give_one_result_and_miss_nothing() {
        let setting = Setting { bits: 64, documents: 20_000, queries: 200, seed: 3 };
        let designs = [
            Kind::Scan,
            Kind::OneLevel { blocks: 4 },
            Kind::OneLevel { blocks: 5 },
            Kind::TwoLevel { sub_blocks: 4 },
            Kind::MultiIndex { blocks: 2 },
            Kind::Groups { surplus: 2 },
            Kind::Conjunctions { surplus: 2 },
        ]
        .map(|kind| Design::new(64, 3, kind).unwrap());
        let rows = setting.run(&designs, &SystemClock::start()).unwrap();
        for row in &rows {
            assert_eq!(
                (row.missed, row.results, row.found),
                (0, rows[0].results, rows[0].found),
                "{}",
                row.design
            );
        }
        assert!(rows[0].found >= 200);
        assert_eq!(rows[0].work.entries, 200 * 20_000);
    }

    #[test]
    fn a_neighbour_is_as_near_as_asked_for() {
        let random = random(100, 1, 1);
        for distance in [0, 1, 10, 100] {
            let near = neighbour(random.get(0), 100, distance, 9);
            assert_eq!(hamming::distance(random.get(0), &near), distance);
            assert_eq!(near[1] >> 36, 0);
        }
    }
}
