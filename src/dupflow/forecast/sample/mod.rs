//! What a plan does to a sample of the texts that it is for: recall, precision and blocks, measured under
//! other seeds than its own.
//!
//! All documents of the sample are compared by the plan's own measure, and sketched, blocked and filtered
//! under each of [`SEEDS`] seeds, as a run would do it. What differs between the seeds is the error that a
//! run under another seed has on such texts. It is larger than that of independent pairs: a text with many
//! copies or versions is in many pairs, which are found or missed together.
//!
//! **Error.** The half width of the interval that holds the share of a run under one more seed with
//! probability 0.999: `t s sqrt(1 + 1 / n)`, where s is the standard deviation between n seeds and t the
//! quantile of Student's distribution of n - 1 degrees of freedom. It is at least that of one pair, since s
//! may be 0 by chance.
//!
//! **More documents than the sample has.** In a random sample of n of N documents a block of M members has
//! m = M n / N, on average. So each sketch meets N / n times as many. A block of 10 or more members is
//! expected to be hot if M is above the cap; a pair that shares only such blocks is lost.
//!
//! **Live weights** are those of a table that may have been made at a `text.idf_growth`-th of the documents
//! (docs/weights.md), and the first documents need not be as the others are. So recall and precision are
//! measured a second time, with sketches by a table of the first of the sample, in the order of ids.

mod blocks;

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use serde::Serialize;

use self::blocks::{Blocks, SEEN, Sketches};
use super::plot::{Probability, TypedSimilarity};
use crate::config::Plan;
use crate::plural::count;
use dupflow_core::doc::DocId;
use dupflow_core::hash::mix;
use dupflow_core::oracle;
use dupflow_core::pair::Pair;
use dupflow_core::sketch::{Scheme, SketchMaker};
use dupflow_core::text::{Featurizer, Idf, IdfTable, Weights};
use dupflow_lab::threads;
use dupflow_lab::truth::{OwnMeasure, Truth};

/// Seeds that are tried.
pub const SEEDS: u64 = 8;

/// Student's quantile of 0.9995 at 7 degrees of freedom.
const QUANTILE: f64 = 5.408;

/// The most documents of a sample, inclusive: each is compared with each.
pub const MOST: usize = 50_000;

/// A share that was measured under several seeds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MeasuredShare {
    /// The mean over the seeds.
    pub mean: f64,
    /// The error of a run under another seed, with probability 0.999; see the module.
    pub error: f64,
}

/// Recall and precision of a plan.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SampleQuality {
    /// Of the pairs from the threshold on, by the plan's own measure, the share that is found.
    pub recall: MeasuredShare,
    /// Of the pairs that are found, the share that is of the threshold or more.
    pub precision: MeasuredShare,
}

/// What a plan does to a sample.
#[derive(Clone, Debug, Serialize)]
pub struct SampleReport {
    threshold: f64,
    /// Documents that have a sketch, and their distinct sketches, on average.
    pub documents: usize,
    /// See [`Self::documents`].
    pub sketches: f64,
    /// Distinct shingles of a text, on average.
    pub shingles: f64,
    /// Pairs from the threshold on, by the plan's own measure.
    pub right: usize,
    /// Pairs that are found, on average.
    pub found: f64,
    /// Number of seeds.
    pub seeds: u64,
    /// Recall and precision; `None` if no pair is right, or none is found.
    pub quality: Option<SampleQuality>,
    /// Of live weights: the same, by a table that was made at a fraction of the documents.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub lagging: Option<SampleQuality>,
    /// The standard error of an estimate at the threshold, for texts as long as those of the right pairs;
    /// `None` if theory has none, or if pairs are decided by features.
    pub standard_error: Option<f64>,
    /// The blocks of so many documents.
    pub blocks: SampleBlocks,
}

/// The blocks of a number of documents that are as those of a sample.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct SampleBlocks {
    /// The number of documents.
    pub documents: u64,
    /// Hot blocks, on average.
    pub hot: f64,
    /// Sketches in the largest block whose size the sample shows, on average; 0 if it shows none.
    pub largest: f64,
    /// Others that a sketch meets, in all its blocks together, on average.
    pub meetings: f64,
    /// The same in the sample: what the number above stands on.
    pub meetings_seen: f64,
    /// Recall without the pairs that share hot blocks only; `None` if no pair is right.
    pub recall: Option<f64>,
}

impl SampleBlocks {
    /// A cap with which no block is hot, with some room.
    pub fn cap(&self) -> u64 {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of sketches")]
        let cap = (1.2 * self.largest).ceil() as u64;
        cap
    }
}

/// What one seed gives.
struct SeedOutcome {
    sketches: usize,
    found: usize,
    hits: usize,
    hot: usize,
    largest: f64,
    meetings: f64,
    meetings_seen: f64,
    /// Right pairs that are found and share hot blocks only.
    lost: usize,
}

impl SampleReport {
    /// Measures a plan on a sample, and projects its blocks to a number of documents. A plan with
    /// [`without`] has no report.
    pub fn new(plan: &Plan, texts: &BTreeMap<DocId, String>, documents: u64, workers: usize) -> Self {
        let truth = Truth::brute_force(texts, &OwnMeasure::for_scheme(&plan.scheme), plan.threshold);
        let right: BTreeSet<&Pair<DocId>> = truth.at(plan.threshold).map(|(pair, _)| pair).collect();
        let scheme = with_table(&plan.scheme, texts, usize::MAX);
        let of_seeds = |weighed: &Scheme| {
            threads::map(workers, usize::try_from(SEEDS).unwrap_or(1), |n| {
                // The plan's own seed is none of them.
                let seed = mix(plan.scheme.sketch.seed ^ mix(n as u64)) >> 2;
                SeedOutcome::new(plan, weighed, seed, texts, &right, documents)
            })
        };
        let outcomes = of_seeds(&scheme);
        let lagging = plan.scheme.live().map(|growth| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a number"
            )]
            let counted = (texts.len() as f64 / growth.factor()).ceil() as usize;
            of_seeds(&with_table(&plan.scheme, texts, counted))
        });
        let shingles = shingles(&plan.scheme, texts);
        let mean = |of: fn(&SeedOutcome) -> f64| outcomes.iter().map(of).sum::<f64>() / SEEDS as f64;
        let lost = outcomes.iter().map(|one| one.hits as f64 - one.lost as f64).sum::<f64>() / SEEDS as f64;
        Self {
            threshold: plan.threshold,
            documents: shingles.len(),
            sketches: mean(|one| one.sketches as f64),
            shingles: shingles.values().sum::<usize>() as f64 / shingles.len().max(1) as f64,
            right: right.len(),
            found: mean(|one| one.found as f64),
            seeds: SEEDS,
            quality: quality(&outcomes, right.len()),
            lagging: lagging.and_then(|others| quality(&others, right.len())),
            standard_error: standard_error(plan, &right, &shingles),
            blocks: SampleBlocks {
                documents,
                hot: mean(|one| one.hot as f64),
                largest: mean(|one| one.largest),
                meetings: mean(|one| one.meetings),
                meetings_seen: mean(|one| one.meetings_seen),
                recall: (!right.is_empty()).then(|| lost / right.len() as f64),
            },
        }
    }
}

/// Why a plan cannot be measured on a sample, if it cannot.
pub fn without(plan: &Plan) -> Option<&'static str> {
    [
        (!plan.scheme.pairs.is_empty(), "pairs.where, which joins fields of documents"),
        (plan.scheme.units.is_some(), "text.split, whose documents are units"),
        (plan.scheme.sketch.scaled().is_some(), "containment, whose recall depends on the length of a quote"),
    ]
    .into_iter()
    .find_map(|(is, what)| is.then_some(what))
}

/// The scheme with live weights by the first so many documents of a sample, in the order of their ids.
fn with_table(scheme: &Scheme, texts: &BTreeMap<DocId, String>, counted: usize) -> Scheme {
    let Weights::TfIdf(Idf::Live(_), form) = scheme.text.weights else { return scheme.clone() };
    let mut featurizer = Featurizer::new(scheme.text.clone());
    let terms = texts.values().take(counted).map(|text| featurizer.terms(text).to_owned().ids);
    let table = Arc::new(IdfTable::count(terms));
    let mut frozen = scheme.clone();
    frozen.text.weights = Weights::TfIdf(Idf::Frozen(table), form);
    frozen
}

/// The number of distinct shingles of each document that has one.
fn shingles<'t>(scheme: &Scheme, texts: &'t BTreeMap<DocId, String>) -> BTreeMap<&'t DocId, usize> {
    let mut featurizer = Featurizer::new(scheme.text.clone());
    let counted = texts.iter().map(|(id, text)| (id, featurizer.terms(text).ids.len()));
    counted.filter(|(_, shingles)| *shingles > 0).collect()
}

/// `None` where nothing is right or nothing is found.
fn quality(outcomes: &[SeedOutcome], right: usize) -> Option<SampleQuality> {
    let share = |of: &dyn Fn(&SeedOutcome) -> (usize, usize)| {
        let shares = outcomes.iter().map(of).map(|(part, all)| (all > 0).then(|| part as f64 / all as f64));
        let shares: Vec<f64> = shares.collect::<Option<_>>()?;
        let mean = shares.iter().sum::<f64>() / shares.len() as f64;
        let (n, squares) =
            (shares.len() as f64, shares.iter().map(|share| (share - mean).powi(2)).sum::<f64>());
        let error = QUANTILE * (squares / (n - 1.0) * (1.0 + 1.0 / n)).sqrt();
        Some(MeasuredShare { mean, error: error.max(1.0 / right as f64) })
    };
    Some(SampleQuality {
        recall: share(&|one| (one.hits, right))?,
        precision: share(&|one| (one.hits, one.found))?,
    })
}

/// The root of the mean variance at the threshold, of texts as long as those of the right pairs.
fn standard_error(
    plan: &Plan,
    right: &BTreeSet<&Pair<DocId>>,
    shingles: &BTreeMap<&DocId, usize>,
) -> Option<f64> {
    if plan.scheme.exact || right.is_empty() {
        return None;
    }
    let length = |id: &DocId| shingles.get(id).copied().unwrap_or_default() as f64;
    // The variance changes little with the length: it is computed once for each eighth of an octave.
    let mut lengths: BTreeMap<i64, usize> = BTreeMap::new();
    for pair in right {
        let union = (length(pair.lo()) + length(pair.hi())) / (1.0 + plan.threshold);
        #[expect(clippy::cast_possible_truncation, reason = "a logarithm")]
        let eighth = (8.0 * union.max(1.0).log2()).round() as i64;
        *lengths.entry(eighth).or_default() += 1;
    }
    let sum = lengths.into_iter().map(|(eighth, pairs)| {
        #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of shingles")]
        let union = 2_f64.powf(eighth as f64 / 8.0).round() as usize;
        Some(pairs as f64 * plan.scheme.sketch.variance(plan.threshold, union)?)
    });
    Some((sum.sum::<Option<f64>>()? / right.len() as f64).sqrt())
}

impl SeedOutcome {
    fn new(
        plan: &Plan,
        scheme: &Scheme,
        seed: u64,
        texts: &BTreeMap<DocId, String>,
        right: &BTreeSet<&Pair<DocId>>,
        documents: u64,
    ) -> Self {
        let mut seeded = Plan { scheme: scheme.clone(), ..plan.clone() };
        seeded.scheme.sketch.seed = seed;
        seeded.scheme.blocks.iter_mut().for_each(|second| second.seed = seed + 1);
        let blocking = seeded.blocking();
        let mut maker = SketchMaker::new(&seeded.scheme);
        let sketches: Sketches =
            texts.iter().filter_map(|(id, text)| Some((id.clone(), maker.sketch(text)?))).collect();
        let found = oracle::exact(&sketches, &*blocking, &*seeded.filter(), plan.expand_limit);
        let hits: Vec<_> =
            found.iter().map(|found| &found.pair).filter(|pair| right.contains(pair)).collect();
        let times = documents as f64 / texts.len().max(1) as f64;
        let blocks = Blocks::new(&sketches, &*blocking);
        Self {
            sketches: blocks.keys.len(),
            found: found.len(),
            hits: hits.len(),
            hot: blocks.hot(times),
            largest: blocks.largest(times),
            meetings: blocks.meetings(times),
            meetings_seen: blocks.meetings(1.0),
            lost: hits.iter().filter(|pair| blocks.loses(&sketches, pair, times)).count(),
        }
    }
}

impl Display for MeasuredShare {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{} ± {:.4}", Probability(self.mean), self.error)
    }
}

impl Display for SampleReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(
            f,
            "\nOn your sample, of {} with {:.0} distinct sketches and {:.0} shingles on average, under {} \
            other seeds (±: 99.9 % of seeds):\n",
            count(self.documents as u64, "document"),
            self.sketches,
            self.shingles,
            self.seeds
        )?;
        let (right, threshold) = (count(self.right as u64, "pair"), TypedSimilarity(self.threshold));
        match &self.quality {
            Some(SampleQuality { recall, precision }) => {
                writeln!(f, "  recall     {recall} of {right} of {threshold} or more")?;
                writeln!(f, "  precision  {precision} of {:.0} pairs found", self.found)?;
            }
            None => writeln!(f, "  of {right} of {threshold} or more, {:.0} are found", self.found)?,
        }
        if let Some(SampleQuality { recall, precision }) = &self.lagging {
            writeln!(
                f,
                "  recall     {recall} while weights are those of fewer documents (text.idf_growth)"
            )?;
            writeln!(f, "  precision  {precision} then")?;
        }
        if let Some(error) = self.standard_error {
            writeln!(
                f,
                "  the standard error of an estimate at the threshold is {error:.4}, for such lengths"
            )?;
        }
        let SampleBlocks { documents, hot, largest, meetings, meetings_seen, recall } = self.blocks;
        let largest = if largest > 0.0 {
            format!("the largest block has {largest:.0} sketches")
        } else {
            format!("no block of the sample has {SEEN}")
        };
        writeln!(
            f,
            "  {} as these: {hot:.0} hot blocks, {largest};\n  a sketch meets {meetings:.1} others \
            ({meetings_seen:.1} in the sample)",
            count(documents, "document")
        )?;
        match (recall, &self.quality) {
            (Some(recall), Some(quality)) if quality.recall.mean - recall > 5e-5 => writeln!(
                f,
                "  ! pairs that share hot blocks only are lost: recall {} of so many; with blocking.cap = {} \
                none is hot",
                Probability(recall),
                self.blocks.cap()
            ),
            _ => Ok(()),
        }
    }
}
