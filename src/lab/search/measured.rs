//! Measures designs on uniform fingerprints with planted neighbours, beside the estimates of their cost.
//!
//! Input: a [`SearchSetting`], designs, a clock. Output: one [`SearchRow`] per design. Work and time are of
//! random queries, as the estimates assume. Recall is of planted queries: fingerprints of the corpus with up
//! to k bits flipped, k included. [`SearchSetting::run`] builds a whole index and runs query by query.
//! [`SearchSetting::batch`] builds one table at a time, runs all queries on it, and drops it: a hundred
//! million fingerprints then fit into memory where their tables do not.
//!
//! All random numbers depend on the seed: equal settings give equal rows, except for times.

use std::time::Duration;

use super::super::threads;
use super::indexes::batch::{NeighbourPair, TableBatch};
use super::indexes::{Fingerprints, SearchWork, index};
use dupflow_core::block::hamming::{Design, DesignError, Estimate, Form};
use dupflow_core::hash::{PI, mix};
use dupflow_core::time::Clock;

/// Maximum number of tables that are built at a time, which bounds the memory on any machine.
const AT_ONCE: usize = 2;

/// The data of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SearchSetting {
    /// f, bits of a fingerprint.
    pub bits: usize,
    /// n, fingerprints of the corpus, at least 1.
    pub documents: usize,
    /// Number of random queries, and of planted ones.
    pub queries: usize,
    /// The seed of all random numbers.
    pub seed: u64,
}

/// The results of a design.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SearchRow {
    /// The design.
    pub design: Design,
    /// The estimated cost of one random query.
    pub estimate: Estimate,
    /// Work of all random queries.
    pub work: SearchWork,
    /// Time of all random queries.
    pub time: Duration,
    /// Time to build the index.
    pub build: Duration,
    /// Time of all planted queries.
    pub planted_time: Duration,
    /// Planted origins that were not found; more than 0 is a defect.
    pub missed: usize,
    /// Number of ids found by all queries.
    pub found: u64,
    /// A hash of all ids found by all queries; equal for all designs of one radius.
    pub results: u64,
}

impl SearchSetting {
    /// Builds and queries one index after the other, so that memory is that of the largest.
    ///
    /// # Errors
    /// If an index cannot be built, see [`index`].
    ///
    /// # Panics
    /// If a design is for fingerprints of another length.
    pub fn run(&self, designs: &[Design], clock: &dyn Clock) -> Result<Vec<SearchRow>, DesignError> {
        let corpus = random(self.bits, self.documents, self.seed);
        designs.iter().map(|design| self.row(*design, &corpus, clock)).collect()
    }

    /// As [`Self::run`], with the same results, but table by table: up to two at a time, each on one thread,
    /// with times summed. Memory is that of the corpus and these tables.
    ///
    /// # Errors
    /// If an index cannot be built, see [`TableBatch::new`].
    ///
    /// # Panics
    /// If a design is for fingerprints of another length.
    pub fn batch(
        &self,
        designs: &[Design],
        clock: &dyn Clock,
        threads: usize,
    ) -> Result<Vec<SearchRow>, DesignError> {
        let corpus = random(self.bits, self.documents, self.seed);
        let strangers = random(self.bits, self.queries, mix(self.seed));
        let row = |design: &Design| {
            assert_eq!(design.bits(), self.bits, "a design for other fingerprints");
            let (origins, neighbours): (Vec<u32>, Vec<Vec<u64>>) =
                self.plant(&corpus, design.radius()).into_iter().unzip();
            let mut near = Fingerprints::new(self.bits);
            neighbours.iter().for_each(|words| near.push(words));
            let batch = TableBatch::new(design, &corpus)?;
            let tables = threads::map(threads.min(AT_ONCE), batch.tables(), |number| {
                let began = clock.now();
                let table = batch.table(number);
                let built = clock.now();
                let mut found = [Vec::new(), Vec::new()];
                let work = table.matches(&strangers, |NeighbourPair { a, b, .. }| found[0].push((a, b)));
                let asked = clock.now();
                table.matches(&near, |NeighbourPair { a, b, .. }| found[1].push((a, b)));
                (work, found, [built - began, asked - built, clock.now() - asked])
            });
            let (mut work, mut times) = (SearchWork::default(), [Duration::ZERO; 3]);
            let mut found = [Vec::new(), Vec::new()];
            for (more, pairs, took) in tables {
                work += more;
                found.iter_mut().zip(pairs).for_each(|(all, pairs)| all.extend(pairs));
                times.iter_mut().zip(took).for_each(|(sum, time)| *sum += time);
            }
            found.iter_mut().for_each(|pairs| pairs.sort_unstable());
            let is_found = |(query, origin): (u32, &u32)| found[1].binary_search(&(query, *origin)).is_ok();
            let missed = (0..).zip(&origins).filter(|origin| !is_found(*origin)).count();
            let (mut ids, mut answers) = (Vec::new(), ResultDigest::default());
            for pairs in &found {
                let mut rest = pairs.iter().peekable();
                for query in 0..self.queries {
                    ids.clear();
                    while let Some((_, id)) = rest.next_if(|(of, _)| *of as usize == query) {
                        ids.push(*id);
                    }
                    answers.note(&ids);
                }
            }
            let [build, time, planted_time] = times;
            let estimate = design.estimate(self.documents as u64, Form::Index);
            let ResultDigest { found: ids_found, results } = answers;
            Ok(SearchRow {
                design: *design,
                estimate,
                work,
                time,
                build,
                planted_time,
                missed,
                found: ids_found,
                results,
            })
        };
        designs.iter().map(row).collect()
    }

    fn row(
        &self,
        design: Design,
        corpus: &Fingerprints,
        clock: &dyn Clock,
    ) -> Result<SearchRow, DesignError> {
        let strangers = random(self.bits, self.queries, mix(self.seed));
        let planted = self.plant(corpus, design.radius());
        let began = clock.now();
        let mut index = index(&design, corpus)?;
        let built = clock.now();

        let (mut ids, mut answers) = (Vec::new(), ResultDigest::default());
        let mut work = SearchWork::default();
        for (_, query) in strangers.iter() {
            work += index.within(query, &mut ids);
            answers.note(&ids);
        }
        let asked = clock.now();
        let mut missed = 0;
        for (origin, query) in &planted {
            index.within(query, &mut ids);
            missed += usize::from(ids.binary_search(origin).is_err());
            answers.note(&ids);
        }
        let (build, time, planted_time) = (built - began, asked - built, clock.now() - asked);
        let estimate = design.estimate(self.documents as u64, Form::Index);
        let ResultDigest { found, results } = answers;
        Ok(SearchRow { design, estimate, work, time, build, planted_time, missed, found, results })
    }

    /// Ids of the corpus, each with a planted query: a neighbour at distance 0, 1, ... k, 0, 1, ...
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

/// A digest of what all queries found.
#[derive(Default)]
struct ResultDigest {
    found: u64,
    results: u64,
}

impl ResultDigest {
    /// Adds the ids of the next query, ascending.
    fn note(&mut self, ids: &[u32]) {
        self.found += ids.len() as u64;
        self.results = ids.iter().fold(mix(self.results), |hash, id| mix(hash ^ u64::from(*id)));
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
    use dupflow_core::block::hamming::{self, Kind};
    use dupflow_core::time::SystemClock;

    #[test]
    fn all_designs_give_one_result_and_miss_nothing() {
        let setting = SearchSetting { bits: 64, documents: 20_000, queries: 200, seed: 3 };
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

        let sorted = &designs[1..5];
        for threads in [1, 3] {
            let batch = setting.batch(sorted, &SystemClock::start(), threads).unwrap();
            for (one, other) in batch.iter().zip(&rows[1..5]) {
                assert_eq!(one.design, other.design);
                let counts = |row: &SearchRow| (row.work, row.missed, row.found, row.results);
                assert_eq!(counts(one), counts(other), "{}", one.design);
            }
        }
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
