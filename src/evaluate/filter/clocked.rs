//! What comparing costs in time: one query against many documents in memory, by every form of the filter in turn.
//!
//! The full comparison reads 1000 components of 64 bits from each document's row; the staged forms read the same rows and stop, or
//! have what the first look reads of all documents side by side in a *column*, so that memory is read in order and most rows are not
//! touched. The one-bit form is what the program does in its blocks and in a scan: first words in a column, then the rows.

use std::hint::black_box;
use std::time::Duration;

use rand::{Rng, SeedableRng};
use rand_chacha::ChaCha8Rng;

use super::pair::{MOST, Matches};
use super::rules::{BITS, Rule, SIZE};
use crate::evaluate::Bench;
use crate::evaluate::distribution::Distribution;
use crate::filter::{FilterError, Schedule};
use crate::hash::mix;
use crate::sketch::kernel::Kernel;

/// Rounds; the median of each form's counts.
const ROUNDS: usize = 9;

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

    /// The first `width` words of every row of `length` words.
    fn column(rows: &[u64], length: usize, width: usize) -> Vec<u64> {
        rows.chunks(length).flat_map(|row| &row[..width]).copied().collect()
    }
}

/// One bit of each of 64 components, hashed again.
fn low_bits(components: &[u64]) -> u64 {
    components.iter().rev().fold(0, |word, component| word << 1 | mix(*component) & 1)
}

/// How many components are equal.
#[inline(always)]
fn equal(a: &[u64], b: &[u64]) -> u32 {
    a.iter().zip(b).map(|(x, y)| u32::from(x == y)).sum()
}

/// A form of the comparison: its name, and how many documents it accepts.
type Form<'f> = (&'static str, Box<dyn Fn() -> usize + 'f>);

/// What one form took.
#[derive(Clone, Debug)]
pub(super) struct Timed {
    /// The form.
    pub(super) name: &'static str,
    /// Of one pair, the median of all rounds.
    pub(super) per_pair: Duration,
    /// How many times as long the first form takes, by the medians.
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
    let (_, one_bit) = Rule::one_bit(threshold)?;
    let mut rng = ChaCha8Rng::seed_from_u64(mix(bench.seed ^ mix(distribution as u64 + 101)));
    let documents = Documents::draw(&mut rng, distribution, count);
    let first = staged.looks[0].components as usize;
    let column = Documents::column(&documents.rows, MOST, first);
    let words = Documents::column(&documents.bits, WORDS, 1);
    let kernel = Kernel::new(BITS, 1);
    let (query, rows) = (&documents.query[..SIZE], documents.rows.chunks(MOST));
    let by_rows = |rule: &Rule| {
        let accepts =
            |row: &&[u64]| rule.compare(|from, to| equal(&row[from..to], &query[from..to])).accepted;
        rows.clone().filter(accepts).count()
    };
    let forms: [Form<'_>; 6] = [
        (
            "full comparison",
            Box::new(|| {
                rows.clone().filter(|row| equal(&row[..SIZE], query) as usize >= staged.least).count()
            }),
        ),
        ("paper's looks", Box::new(|| by_rows(&paper))),
        ("our looks", Box::new(|| by_rows(&staged))),
        (
            "our looks, first in a column",
            Box::new(|| {
                let below = staged.looks[0].reject_below;
                let passes = |seen: &[u64]| equal(seen, &query[..first]) >= below;
                let rest = column.chunks(first).zip(rows.clone()).filter(|(seen, _)| passes(seen));
                rest.filter(|(_, row)| {
                    staged.compare(|from, to| equal(&row[from..to], &query[from..to])).accepted
                })
                .count()
            }),
        ),
        (
            "one-bit",
            Box::new(|| {
                documents.bits.chunks(WORDS).filter(|row| accepts(&one_bit, &kernel, row, &documents)).count()
            }),
        ),
        (
            "one-bit, first words in a column",
            Box::new(|| {
                let first_word = documents.query_bits[0];
                let rest = words.iter().zip(documents.bits.chunks(WORDS));
                rest.filter(|(word, row)| {
                    one_bit.passes(**word, first_word) && accepts(&one_bit, &kernel, row, &documents)
                })
                .count()
            }),
        ),
    ];
    let mut times = vec![Vec::new(); forms.len()];
    let mut accepted = vec![0; forms.len()];
    for _ in 0..ROUNDS {
        for (n, (_, form)) in forms.iter().enumerate() {
            times[n].push(bench.time(|| accepted[n] = black_box(form())));
        }
    }
    let median = |mut rounds: Vec<Duration>| {
        rounds.sort_unstable();
        rounds[ROUNDS / 2].as_secs_f64() / count as f64
    };
    let medians: Vec<f64> = times.into_iter().map(median).collect();
    let timed = forms.iter().zip(&medians).zip(accepted).map(|(((name, _), seconds), accepted)| Timed {
        name,
        per_pair: Duration::from_secs_f64(*seconds),
        faster: medians[0] / seconds,
        accepted,
    });
    Ok(timed.collect())
}

/// The one-bit verdict on a row, from its first word on.
fn accepts(schedule: &Schedule, kernel: &Kernel, row: &[u64], documents: &Documents) -> bool {
    schedule.passes(row[0], documents.query_bits[0])
        && !schedule.walk(kernel, row, &documents.query_bits).rejected
}
