//! Recall of containment: with which probability a quote is found in a text that has it.
//!
//! A quote of w words, of which a share e is replaced at random, has n = w - k + 1 shingles of k words, all
//! different. A shingle is shared if none of its k words is replaced. So the number S of shared shingles is
//! that of the windows of k words without a replaced one: its distribution is computed exactly, word by word.
//!
//! The pair is *found* if S of n reach the threshold, and at least one shared shingle has a block. A shingle
//! has a block if it is one of the larger text's values up to the limit, which are binomial with `1 / scale`,
//! or one of its `least` smallest if these are more. By the sketch alone, the decision is that of the sample:
//! X of the S shared values and Y of the n - S others are in it, both binomial, and the share is X / (X + Y).
//!
//! These are upper bounds: a shared shingle that many texts have is in a hot block, in which the two meet
//! only if one of them is a leader. How many shingles are such depends on the corpus, and is not
//! computed. Nor is anything for shingles of characters: how many a word has depends on the text.

use std::fmt::{self, Display, Formatter};

use serde::Serialize;

use super::plot::Probability;
use crate::config::{BlockingPlan, FilterPlan, Plan};
use dupflow_core::filter::Verify;
use dupflow_core::pair::Threshold;
use dupflow_core::probability::Binomial;
use dupflow_core::sketch::SketchKind;
use dupflow_core::sketch::scaled::ScaledEstimator;
use dupflow_core::text::Shingle;

/// Words of a quote.
const WORDS: [usize; 5] = [20, 50, 100, 300, 1000];
/// Replaced words, of 100.
const EDITS: [u32; 4] = [0, 2, 5, 10];
/// How many times as many words the text has that has the quote.
const RATIOS: [usize; 2] = [2, 10];

/// Probabilities up to this are not followed.
const NEGLIGIBLE: f64 = 1e-16;

/// The greatest probability that a quote is found.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct QuoteRecall {
    /// Words of the quote.
    pub words: usize,
    /// Replaced words, of 100.
    pub edits: u32,
    /// Words of the larger text, relative to those of the quote.
    pub ratio: usize,
    /// Probability of being found if no shared shingle is in a hot block.
    pub found_at_most: f64,
}

/// How shingles are selected and shares decided.
struct QuoteModel {
    /// Words of a shingle.
    shingle: usize,
    /// Of scaled sketches; scale 1 if all pairs are compared.
    scale: u32,
    least: u32,
    threshold: Threshold,
    least_words: usize,
    /// Whether the sample of the kept values decides.
    by_sample: bool,
    /// Whether all pairs are compared, by all values.
    is_certain: bool,
}

/// The recall of quotes under a plan; empty if it is not about containment, or not by shingles of words.
pub(super) fn recall(plan: &Plan) -> Vec<QuoteRecall> {
    let Some(model) = QuoteModel::new(plan) else { return Vec::new() };
    let rows = WORDS.into_iter().flat_map(|words| EDITS.into_iter().map(move |edits| (words, edits)));
    let found = |(words, edits): (usize, u32)| {
        let shared = shared_shingles(words, model.shingle, f64::from(edits) / 100.0);
        RATIOS.map(|ratio| QuoteRecall {
            words,
            edits,
            ratio,
            found_at_most: model.found(words, ratio, &shared),
        })
    };
    rows.flat_map(found).collect()
}

impl QuoteModel {
    fn new(plan: &Plan) -> Option<Self> {
        let (
            FilterPlan::Containment(verify, filter),
            Shingle::Words(shingle),
            SketchKind::Scaled { scale, least },
        ) = (&plan.filter, plan.scheme.text.shingle, plan.scheme.sketch.kind)
        else {
            return None;
        };
        let by_sample = *verify == Verify::Sketch;
        let is_all =
            |blocking: &BlockingPlan| matches!(blocking, BlockingPlan::Scan | BlockingPlan::Reference);
        let compares_all = plan.blockings().any(|(blocking, _)| is_all(blocking));
        Some(Self {
            shingle,
            scale: if compares_all && !by_sample { 1 } else { scale },
            is_certain: compares_all && !by_sample,
            least,
            threshold: Threshold::new(plan.threshold)?,
            least_words: filter.least_words(),
            by_sample,
        })
    }

    /// The probability that a quote is found, given the distribution of its shared shingles.
    fn found(&self, words: usize, ratio: usize, shared: &[f64]) -> f64 {
        if words < self.least_words {
            return 0.0;
        }
        let larger = (words * ratio).saturating_sub(self.shingle - 1).max(1);
        let kept = Binomial::new(larger, 1.0 / f64::from(self.scale));
        let likely = shared.iter().enumerate().filter(|(_, mass)| **mass > NEGLIGIBLE);
        let found: f64 =
            likely.map(|(count, mass)| mass * self.found_with(shared.len() - 1, count, larger, &kept)).sum();
        // Only where all pairs are compared is anything certain.
        if self.is_certain { found.min(1.0) } else { found.min(1.0_f64.next_down()) }
    }

    /// The probability that a quote with so many shared shingles is found.
    /// `kept` is the distribution of the larger text's values up to the limit.
    fn found_with(&self, all: usize, shared: usize, larger: usize, kept: &Binomial) -> f64 {
        if !self.by_sample {
            let decides = shared >= self.threshold.least_of(all);
            return if decides { 1.0 - self.missed(shared, larger, kept) } else { 0.0 };
        }
        let limit = (1.0 / f64::from(self.scale)).max(f64::from(self.least) / larger as f64).min(1.0);
        let (shared, others) = (Binomial::new(shared, limit), Binomial::new(all - shared, limit));
        // The more others are in a sample of x shared values, the smaller is the share.
        let mut next = 0;
        let mut below = vec![0.0];
        below.extend(others.masses().iter().scan(0.0, |sum, mass| {
            *sum += mass;
            Some(*sum)
        }));
        let mut found = 0.0;
        for (x, mass) in shared.masses().iter().enumerate().skip(1) {
            while next + 1 < below.len() && x >= self.threshold.least_of(x + next) {
                next += 1;
            }
            let least = (ScaledEstimator::LEAST as usize).saturating_sub(x).min(next);
            found += mass * (below[next] - below[least]);
        }
        found
    }

    /// The probability that none of the shared shingles has a block: a larger text with fewer values up to
    /// the limit than `least` keeps so many.
    fn missed(&self, shared: usize, larger: usize, kept: &Binomial) -> f64 {
        let all = (1.0 - 1.0 / f64::from(self.scale)).powf(shared as f64);
        let least = larger.min(self.least as usize);
        if kept.below(least) < NEGLIGIBLE {
            return all;
        }
        let none = |count: usize| -> f64 {
            let free = (0..shared).map(|i| larger.saturating_sub(count + i) as f64 / (larger - i) as f64);
            free.product()
        };
        let fewer = (0..least).map(|count| kept.mass(count) * (none(count) - none(least)));
        (all - fewer.sum::<f64>()).max(0.0)
    }
}

/// The distribution of the number of shared shingles, from 0 to all, of a quote of so many words; at least
/// one shingle, since a text of fewer words than a shingle is one.
fn shared_shingles(words: usize, shingle: usize, edited: f64) -> Vec<f64> {
    let shingle = shingle.min(words).max(1);
    let all = words + 1 - shingle;
    // For each length of the run of words that are not replaced, up to that of a shingle.
    let mut masses = vec![vec![0.0; all + 1]; shingle + 1];
    masses[0][0] = 1.0;
    for _ in 0..words {
        let mut next = vec![vec![0.0; all + 1]; shingle + 1];
        for (run, counts) in masses.iter().enumerate() {
            for (count, mass) in counts.iter().enumerate().filter(|(_, mass)| **mass > NEGLIGIBLE) {
                next[0][count] += mass * edited;
                let run = (run + 1).min(shingle);
                let count = count + usize::from(run == shingle);
                if let Some(place) = next[run].get_mut(count) {
                    *place += mass * (1.0 - edited);
                }
            }
        }
        masses = next;
    }
    (0..=all).map(|count| masses.iter().map(|counts| counts[count]).sum()).collect()
}

/// The rows as a table, and whether blocks may be hot.
pub(super) struct QuoteTable<'r>(pub(super) &'r [QuoteRecall], pub(super) bool);

impl Display for QuoteTable<'_> {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        if self.0.is_empty() {
            return writeln!(
                f,
                "\nWith which probability a quote is found is not computed: its shingles are not of words."
            );
        }
        let hot = if self.1 { ". Not foreseen are hot blocks, which depend on the corpus" } else { "" };
        writeln!(f, "\nProbability that a quote is found, at most{hot}.\n")?;
        let percent = EDITS.map(|edits| format!("{edits} %")).map(|edits| format!("{edits:>9}")).concat();
        writeln!(f, "  words  in a text    words replaced:\n         as long    {percent}")?;
        for rows in WORDS.into_iter().flat_map(|words| RATIOS.map(|ratio| (words, ratio))) {
            let row = self.0.iter().filter(|row| (row.words, row.ratio) == rows);
            let cells: String = row.map(|row| format!("{:>9}", Probability(row.found_at_most))).collect();
            writeln!(f, "  {:>5}  {:>5} times {cells}", rows.0, rows.1)?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn recall_of(settings: &[&str]) -> Vec<QuoteRecall> {
        let settings: Vec<String> = settings.iter().map(|one| (*one).to_owned()).collect();
        recall(&Plan::load("contained", &settings).unwrap())
    }

    fn found(of: &[QuoteRecall], words: usize, edits: u32) -> f64 {
        let row = of.iter().find(|row| (row.words, row.edits, row.ratio) == (words, edits, 10));
        row.unwrap().found_at_most
    }

    /// Three words, shingles of two: both shared if no word is replaced, one if only the first or last is.
    #[test]
    fn shared_shingles_by_hand() {
        let (masses, q) = (shared_shingles(3, 2, 0.1), 0.9_f64);
        let expected = [1.0 - q.powi(3) - 2.0 * q * q * 0.1, 2.0 * q * q * 0.1, q.powi(3)];
        assert!(masses.iter().zip(expected).all(|(mass, other)| (mass - other).abs() < 1e-12), "{masses:?}");
        assert!((shared_shingles(4, 5, 0.5)[1] - 0.0625).abs() < 1e-12, "a short text is one shingle");
        let mean: f64 =
            shared_shingles(300, 5, 0.05).iter().enumerate().map(|(n, mass)| n as f64 * mass).sum();
        assert!((mean - 296.0 * 0.95_f64.powi(5)).abs() < 1e-6);
    }

    #[test]
    fn quotes_by_hand() {
        let rows = recall_of(&[]);
        assert_eq!(rows.len(), WORDS.len() * EDITS.len() * RATIOS.len());
        assert!(found(&rows, 20, 0) == 0.0, "below filter.least_words");
        assert!((found(&rows, 50, 0) - (1.0 - 0.875_f64.powi(46))).abs() < 1e-9);
        assert!(rows.iter().all(|row| row.found_at_most < 1.0), "one of eight shingles has a block");
        assert!(found(&rows, 300, 2) > 0.99 && found(&rows, 100, 10) < 0.85);
        // In a text of 96 shingles at least 16 have one.
        let short = rows.iter().find(|row| (row.words, row.edits, row.ratio) == (50, 0, 2)).unwrap();
        let none =
            |count: usize| (0..46).map(move |i| (96.0 - count as f64 - f64::from(i)) / (96.0 - f64::from(i)));
        let kept = Binomial::new(96, 0.125);
        let missed: f64 = (0..=50).map(|n| kept.mass(n) * none(n.max(16)).product::<f64>()).sum();
        assert!((short.found_at_most - (1.0 - missed)).abs() < 1e-9, "{short:?} {missed}");
        let all = recall_of(&["blocking.kind=scan"]);
        assert!((found(&all, 100, 0) - 1.0).abs() < 1e-12, "all pairs are compared, and nothing is edited");
        assert!(recall_of(&["text.shingle=chars:9"]).is_empty());
    }

    /// Of 300 verbatim words 37 values are kept in the mean: seldom the 50 that are needed.
    #[test]
    fn quotes_by_the_sketch_alone() {
        let rows = recall_of(&["filter.verify=sketch"]);
        let enough = Binomial::new(296, 0.125).at_least(50);
        assert!((found(&rows, 300, 0) - enough).abs() < 1e-9 && enough < 0.05);
        assert!(found(&rows, 1000, 0) > 0.99 && found(&rows, 1000, 5) < found(&rows, 1000, 2));
    }
}
