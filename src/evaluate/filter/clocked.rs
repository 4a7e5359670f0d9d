//! What comparing costs in time: one query against many documents in memory, by every form of the filter in turn.
//!
//! The full comparison reads 1000 components of 64 bits from each document's row. *In rows*, a staged form reads the same rows and stops
//! early: it waits for each row's memory, and the processor guesses wrong at about each stop. *By looks*, what the first look reads of
//! all documents lies side by side in a column, and each look is taken at all documents that are left before the next one is: memory
//! is read in order or many rows at once, and there is no branch to guess.

use std::hint::black_box;
use std::ops::Range;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::pair::{MOST, Matches};
use super::rules::{BITS, Rule, SIZE};
use crate::evaluate::Bench;
use crate::evaluate::distribution::Distribution;
use crate::filter::{FilterError, Look};
use crate::hash::mix;

/// Documents that are timed together: less than a millisecond, also of the full comparison.
const BLOCK: usize = 1000;

/// Words of a one-bit sketch.
const WORDS: usize = BITS / 64;

/// Documents at random similarities to one query.
struct Documents {
    query: Vec<u64>,
    /// [`MOST`] components a document.
    rows: Vec<u64>,
    query_bits: Vec<u64>,
    /// [`WORDS`] words a document.
    bits: Vec<u64>,
}

impl Documents {
    fn draw(rng: &mut ChaCha8Rng, distribution: Distribution, count: usize) -> Self {
        let query: Vec<u64> = (0..MOST).map(|_| rng.random()).collect();
        let mut rows = Vec::with_capacity(count * MOST);
        for _ in 0..count {
            let similarity = distribution.sample(rng);
            let pair = Matches::draw(rng, similarity);
            rows.extend((0..MOST).map(|j| if pair.at(j) { query[j] } else { rng.random() }));
        }
        let bits = rows.chunks(64).map(low_bits).collect();
        Self { query_bits: query.chunks(64).map(low_bits).collect(), query, rows, bits }
    }

    /// Full width.
    fn wide(&self) -> Rows<'_> {
        Rows { query: &self.query, rows: &self.rows, length: MOST, per_word: 1 }
    }

    /// One bit of each component.
    fn one_bit(&self) -> Rows<'_> {
        Rows { query: &self.query_bits, rows: &self.bits, length: WORDS, per_word: 64 }
    }
}

/// One bit of each of 64 components, hashed again.
fn low_bits(components: &[u64]) -> u64 {
    components.iter().rev().fold(0, |word, component| word << 1 | mix(*component) & 1)
}

/// How many of 64-bit components are equal.
#[inline(always)]
fn equal(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(x, y)| u32::from(x == y)).sum()
}

/// How many bits of two words are: a look at one-bit components takes one word.
#[inline(always)]
fn agreeing(a: &[u64], b: &[u64]) -> u32 {
    (a[0] ^ b[0]).count_zeros()
}

/// Sketches in memory: a row for each document.
#[derive(Clone, Copy)]
struct Rows<'d> {
    query: &'d [u64],
    rows: &'d [u64],
    /// Words from one row to the next.
    length: usize,
    /// Components that a word holds.
    per_word: usize,
}

impl<'d> Rows<'d> {
    /// The rows of some documents.
    fn of(&self, documents: Range<usize>) -> impl Iterator<Item = &'d [u64]> + use<'d> {
        self.rows[documents.start * self.length..documents.end * self.length].chunks(self.length)
    }

    /// How many of some documents `rule` accepts, one after the other.
    #[inline(always)]
    fn accepted(
        &self,
        documents: Range<usize>,
        rule: &Rule,
        matches: impl Fn(&[u64], &[u64]) -> u32,
    ) -> usize {
        let accepts = |row: &&[u64]| {
            let matches = |from, to| {
                let words = from / self.per_word..to / self.per_word;
                matches(&row[words.clone()], &self.query[words])
            };
            rule.compare(matches).accepted
        };
        self.of(documents).filter(accepts).count()
    }
}

/// What the first look reads of all documents, W words each, side by side; the rest is in the rows.
struct Column<'d, const W: usize> {
    rows: Rows<'d>,
    first: Vec<[u64; W]>,
}

impl<'d, const W: usize> Column<'d, W> {
    fn new(rows: Rows<'d>) -> Self {
        let first = |row: &'d [u64]| *row.first_chunk().expect("a row is longer than one look");
        Self { rows, first: rows.rows.chunks(rows.length).map(first).collect() }
    }

    /// How many of some documents are accepted, look after look. A look moves those that it leaves undecided to the front, without a
    /// branch.
    #[inline(always)]
    fn accepted(
        &self,
        documents: Range<usize>,
        rule: &Rule,
        matches: impl Fn(&[u64], &[u64]) -> u32,
    ) -> usize {
        let Rows { query, rows, length, per_word } = self.rows;
        debug_assert_eq!(rule.looks[0].components as usize, W * per_word);
        let mut left = vec![(0, 0); documents.len()];
        let (mut accepted, mut undecided) = (0, 0);
        let mut decide = |kept: &mut [(usize, u32)], place: &mut usize, look: &Look, document, found| {
            let accept = found >= look.accept_from;
            accepted += usize::from(accept);
            kept[*place] = (document, found);
            *place += usize::from(!accept && found >= look.reject_below);
        };
        for (document, seen) in documents.clone().zip(&self.first[documents]) {
            decide(&mut left, &mut undecided, &rule.looks[0], document, matches(seen, &query[..W]));
        }
        for (before, look) in rule.looks.iter().zip(&rule.looks[1..]) {
            let words = before.components as usize / per_word..look.components as usize / per_word;
            let mut still = 0;
            for place in 0..undecided {
                let (document, found) = left[place];
                let found = found + matches(&rows[document * length..][words.clone()], &query[words.clone()]);
                decide(&mut left, &mut still, look, document, found);
            }
            undecided = still;
        }
        accepted
    }
}

/// A form of the comparison: its name, and how many of some documents it accepts.
type Form<'f> = (&'static str, Box<dyn Fn(Range<usize>) -> usize + 'f>);

/// What one form took.
#[derive(Clone, Debug)]
pub(super) struct Timed {
    /// The form.
    pub(super) name: &'static str,
    /// Of one pair.
    pub(super) nanoseconds: f64,
    /// How many times as long the first form takes.
    pub(super) faster: f64,
    /// Documents that it accepts.
    pub(super) accepted: usize,
}

/// Times every form on `count` documents of one distribution; the full comparison comes first.
///
/// # Errors
/// If the threshold is outside its range.
pub(super) fn time(
    bench: &Bench<'_>,
    distribution: Distribution,
    count: usize,
    threshold: f64,
) -> Result<Vec<Timed>, FilterError> {
    let [paper, staged] = Rule::full_width(threshold)?;
    let one_bit = Rule::one_bit(threshold)?;
    let mut rng = ChaCha8Rng::seed_from_u64(mix(bench.seed ^ mix(distribution as u64 + 101)));
    let documents = Documents::draw(&mut rng, distribution, count);
    let (wide, bits) = (documents.wide(), documents.one_bit());
    let (wide_column, bit_column) = (Column::<16>::new(wide), Column::<1>::new(bits));
    let full = |range: Range<usize>| {
        let accepts = |row: &&[u64]| equal(&row[..SIZE], &documents.query[..SIZE]) as usize >= staged.least;
        wide.of(range).filter(accepts).count()
    };
    let forms: [Form<'_>; 6] = [
        ("full comparison", Box::new(full)),
        ("paper in rows", Box::new(|range| wide.accepted(range, &paper, equal))),
        ("staged in rows", Box::new(|range| wide.accepted(range, &staged, equal))),
        ("staged by looks", Box::new(|range| wide_column.accepted(range, &staged, equal))),
        ("one-bit in rows", Box::new(|range| bits.accepted(range, &one_bit, agreeing))),
        ("one-bit by looks", Box::new(|range| bit_column.accepted(range, &one_bit, agreeing))),
    ];
    let blocks: Vec<_> = (0..count).step_by(BLOCK).map(|start| start..count.min(start + BLOCK)).collect();
    let times = bench.times(forms.len(), blocks.len(), |form, block| {
        black_box(forms[form].1(blocks[block].clone()));
    });
    let timed = forms.iter().zip(&times).map(|((name, form), seconds)| Timed {
        name,
        nanoseconds: seconds * 1e9 / count as f64,
        faster: times[0] / seconds,
        accepted: form(0..count),
    });
    Ok(timed.collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_one_rule_accept_the_same() {
        let mut rng = ChaCha8Rng::seed_from_u64(1);
        let documents = Documents::draw(&mut rng, Distribution::Uniform, 200);
        let [paper, staged] = Rule::full_width(0.5).unwrap();
        let one_bit = Rule::one_bit(0.5).unwrap();
        let all = 0..200;
        for rule in [&paper, &staged] {
            assert!(
                (60..140).contains(&documents.wide().accepted(all.clone(), rule, equal)),
                "at about 0.5 or more"
            );
        }
        assert_eq!(
            documents.wide().accepted(all.clone(), &staged, equal),
            Column::<16>::new(documents.wide()).accepted(all.clone(), &staged, equal)
        );
        let one_by_one = documents.one_bit().accepted(all.clone(), &one_bit, agreeing);
        assert_eq!(one_by_one, Column::<1>::new(documents.one_bit()).accepted(all, &one_bit, agreeing));
        assert!((60..140).contains(&one_by_one), "{one_by_one} of 200 at about 0.5 or more");
    }
}
