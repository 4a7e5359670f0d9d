//! What comparing costs in time: one query against many documents in memory, by every form of the filter in turn.
//!
//! The full comparison reads 1000 components of 64 bits from each document's row. *In rows*, a staged form reads the same rows and stops
//! early: it waits for each row's memory, and the processor guesses wrong at about each stop. *By looks*, what the first look reads of
//! all documents lies side by side in a column, and each look is taken at all documents that are left before the next one is: memory
//! is read in order or many rows at once, and there is no branch to guess.
//!
//! The program keeps b bits of the same components, in bit planes, and has the first words of a document's candidates at hand when
//! it meets them: *by first words*, see [`Planes`], is what its compare stage does.

use std::hint::black_box;
use std::ops::Range;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::pair::{MOST, Matches};
use super::planes::Planes;
use super::rules::{Rule, SIZE, Stop};
use crate::evaluate::Bench;
use crate::evaluate::distribution::Distribution;
use crate::filter::{FilterError, Look};
use crate::hash::mix;

/// Documents that are timed together: less than a millisecond, also of the full comparison.
const BLOCK: usize = 1000;

/// Components of the first look.
const FIRST: usize = 16;

/// Documents at random similarities to one query.
struct Documents {
    query: Vec<u64>,
    /// [`MOST`] components a document.
    rows: Vec<u64>,
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
        Self { query, rows }
    }

    fn rows(&self) -> Rows<'_> {
        Rows { query: &self.query, rows: &self.rows }
    }
}

/// How many of 64-bit components are equal.
#[inline(always)]
fn equal(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(x, y)| u32::from(x == y)).sum()
}

/// Full-width sketches in memory: a row of [`MOST`] components for each document.
#[derive(Clone, Copy, Debug)]
struct Rows<'d> {
    query: &'d [u64],
    rows: &'d [u64],
}

impl<'d> Rows<'d> {
    /// The rows of some documents.
    fn of(&self, documents: Range<usize>) -> impl Iterator<Item = &'d [u64]> + use<'d> {
        self.rows[documents.start * MOST..documents.end * MOST].chunks(MOST)
    }

    /// Where the comparison with one row ends.
    #[inline(always)]
    fn compare(&self, row: &[u64], rule: &Rule) -> Stop {
        rule.compare(|from, to| equal(&row[from..to], &self.query[from..to]))
    }

    /// How many of some documents the full comparison accepts.
    fn full(&self, documents: Range<usize>, least: usize) -> usize {
        let accepts = |row: &&[u64]| equal(&row[..SIZE], &self.query[..SIZE]) as usize >= least;
        self.of(documents).filter(accepts).count()
    }

    /// How many of some documents `rule` accepts, one after the other.
    fn accepted(&self, documents: Range<usize>, rule: &Rule) -> usize {
        self.of(documents).filter(|row| self.compare(row, rule).accepted).count()
    }

    /// Bytes that it reads of one document.
    fn bytes_read(&self, document: usize, rule: &Rule) -> usize {
        let components = |row| self.compare(row, rule).components as usize;
        self.of(document..document + 1).map(|row| 8 * components(row)).sum()
    }
}

/// What the first look reads of all documents, side by side; the rest is in the rows.
struct Column<'d> {
    rows: Rows<'d>,
    first: Vec<[u64; FIRST]>,
}

impl<'d> Column<'d> {
    fn new(rows: Rows<'d>) -> Self {
        let first = |row: &'d [u64]| *row.first_chunk().expect("a row is longer than one look");
        Self { rows, first: rows.rows.chunks(MOST).map(first).collect() }
    }

    /// How many of some documents are accepted, look after look. A look moves those that it leaves undecided to the front, without a
    /// branch.
    fn accepted(&self, documents: Range<usize>, rule: &Rule) -> usize {
        let Rows { query, rows } = self.rows;
        debug_assert_eq!(rule.looks[0].components as usize, FIRST);
        let mut left = vec![(0, 0); documents.len()];
        let (mut accepted, mut undecided) = (0, 0);
        let mut decide = |kept: &mut [(usize, u32)], place: &mut usize, look: &Look, document, found| {
            let accept = found >= look.accept_from;
            accepted += usize::from(accept);
            kept[*place] = (document, found);
            *place += usize::from(!accept && found >= look.reject_below);
        };
        for (document, seen) in documents.clone().zip(&self.first[documents]) {
            decide(&mut left, &mut undecided, &rule.looks[0], document, equal(seen, &query[..FIRST]));
        }
        for (before, look) in rule.looks.iter().zip(&rule.looks[1..]) {
            let words = before.components as usize..look.components as usize;
            let mut still = 0;
            for place in 0..undecided {
                let (document, found) = left[place];
                let found = found + equal(&rows[document * MOST..][words.clone()], &query[words.clone()]);
                decide(&mut left, &mut still, look, document, found);
            }
            undecided = still;
        }
        accepted
    }
}

/// How many of some documents a form accepts.
type Accepted<'f> = Box<dyn Fn(Range<usize>) -> usize + 'f>;

/// A form of the comparison.
struct Form<'f> {
    name: &'static str,
    /// The full comparison of the same components, by number.
    full: usize,
    accepted: Accepted<'f>,
    /// Bytes read of one document.
    bytes: Box<dyn Fn(usize) -> usize + 'f>,
}

impl<'f> Form<'f> {
    fn new(
        name: &'static str,
        full: usize,
        accepted: impl Fn(Range<usize>) -> usize + 'f,
        bytes: impl Fn(usize) -> usize + 'f,
    ) -> Self {
        Self { name, full, accepted: Box::new(accepted), bytes: Box::new(bytes) }
    }

    fn accepts(&self, document: usize) -> bool {
        (self.accepted)(document..document + 1) == 1
    }
}

/// What one form took.
#[derive(Clone, Debug)]
pub(super) struct Timed {
    /// The form.
    pub(super) name: &'static str,
    /// Of one pair.
    pub(super) nanoseconds: f64,
    /// How many times as long the first form takes.
    pub(super) faster: f64,
    /// Bytes that it reads of a document, on average.
    pub(super) bytes: f64,
    /// Documents that it accepts.
    pub(super) accepted: usize,
    /// Documents on which its verdict is not that of the full comparison of the same components.
    pub(super) other: usize,
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
    let mut rng = ChaCha8Rng::seed_from_u64(mix(bench.seed ^ mix(distribution as u64 + 101)));
    let documents = Documents::draw(&mut rng, distribution, count);
    let rows = documents.rows();
    let column = Column::new(rows);
    let planes = |bits| Planes::new(&documents.query, &documents.rows, MOST, bits, threshold);
    let (four, one) = (&planes(4)?, &planes(1)?);
    let forms = [
        Form::new("full comparison", 0, |range| rows.full(range, staged.least), |_| 8 * SIZE),
        Form::new("paper in rows", 0, |range| rows.accepted(range, &paper), |at| rows.bytes_read(at, &paper)),
        Form::new(
            "staged in rows",
            0,
            |range| rows.accepted(range, &staged),
            |at| rows.bytes_read(at, &staged),
        ),
        Form::new(
            "staged by looks",
            0,
            |range| column.accepted(range, &staged),
            |at| rows.bytes_read(at, &staged),
        ),
        Form::new("4 bits, full comparison", 4, |range| four.full(range), |_| four.bytes()),
        Form::new("4 bits in rows", 4, |range| four.in_rows(range), |at| four.bytes_read(at)),
        Form::new("4 bits by first words", 4, |range| four.by_first_words(range), |at| four.bytes_read(at)),
        Form::new(
            "4 bits, fetched together",
            4,
            |range| four.fetched_together(range),
            |at| four.bytes_read(at),
        ),
        Form::new("4 bits, first words alone", 4, |range| four.left(range), |_| 8),
        Form::new("1 bit, full comparison", 9, |range| one.full(range), |_| one.bytes()),
        Form::new("1 bit in rows", 9, |range| one.in_rows(range), |at| one.bytes_read(at)),
        Form::new("1 bit by first words", 9, |range| one.by_first_words(range), |at| one.bytes_read(at)),
        Form::new("1 bit, fetched together", 9, |range| one.fetched_together(range), |at| one.bytes_read(at)),
        Form::new("1 bit, first words alone", 9, |range| one.left(range), |_| 8),
    ];
    let blocks: Vec<_> = (0..count).step_by(BLOCK).map(|start| start..count.min(start + BLOCK)).collect();
    let times = bench.times(forms.len(), blocks.len(), |form, block| {
        black_box((forms[form].accepted)(blocks[block].clone()));
    });
    let timed = forms.iter().zip(&times).map(|(form, seconds)| Timed {
        name: form.name,
        nanoseconds: seconds * 1e9 / count as f64,
        faster: times[0] / seconds,
        bytes: (0..count).map(&form.bytes).sum::<usize>() as f64 / count as f64,
        accepted: (form.accepted)(0..count),
        other: (0..count).filter(|at| form.accepts(*at) != forms[form.full].accepts(*at)).count(),
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
        let rows = documents.rows();
        let [paper, staged] = Rule::full_width(0.5).unwrap();
        let all = 0..200;
        let full = rows.full(all.clone(), staged.least);
        assert!((60..140).contains(&full), "{full} of 200 at about 0.5 or more");
        for rule in [&paper, &staged] {
            assert_eq!(rows.accepted(all.clone(), rule), full);
        }
        assert_eq!(Column::new(rows).accepted(all.clone(), &staged), full);
        for bits in [4, 1] {
            let planes = Planes::new(&documents.query, &documents.rows, MOST, bits, 0.5).unwrap();
            let accepted = planes.full(all.clone());
            assert!(accepted.abs_diff(full) < 20, "{accepted} with {bits} bits, {full}");
            assert_eq!(planes.in_rows(all.clone()), accepted);
            assert_eq!(planes.by_first_words(all.clone()), accepted);
            assert_eq!(planes.fetched_together(all.clone()), accepted);
            assert!((accepted..200).contains(&planes.left(all.clone())));
        }
    }
}
