//! What a plan does to a sample of the texts that it is for: recall, precision and blocks, measured under
//! other seeds than its own.
//!
//! All texts of the sample are compared by the plan's own measure, and sketched, blocked and filtered under
//! each of eight seeds, as a run would do it. Copies of one text are compared once: they are pairs of
//! each other, as far as `output.expand_limit` has them, and in pairs with others together.
//!
//! **Interval.** What differs between the seeds is the error that a run under another seed has on such texts.
//! The interval is that of [one more seed](dupflow_lab::interval::half_width_of_next) with probability 0.999
//! by Student's law, between 0 and 1. It is at least as wide as the pairs between copies of two texts weigh,
//! since no seed of these may have missed them. Where most pairs are of a few families, whose pairs are found
//! or missed together, the law is not Student's, and more runs are beyond it.
//!
//! **More documents than the sample has.** See `blocks.rs`.
//!
//! **Live weights** are those of a table that may have been made at a `text.idf_growth`-th of the documents
//! (docs/weights.md). So recall and precision are measured a second time, with sketches by a table of the
//! first documents of the sample, in its order.

mod blocks;

use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::fmt::{self, Display, Formatter};
use std::sync::Arc;

use serde::Serialize;

use self::blocks::{Blocks, Sketches};
use super::plot::{Probability, TypedSimilarity};
use crate::config::Plan;
use crate::plural::count;
use dupflow_core::doc::DocId;
use dupflow_core::hash::mix;
use dupflow_core::oracle;
use dupflow_core::pair::Pair;
use dupflow_core::sketch::{Scheme, SketchMaker};
use dupflow_core::text::measures::Measure;
use dupflow_core::text::{Featurizer, Idf, IdfTable, Weights};
use dupflow_lab::interval::{half_width_of_next, mean};
use dupflow_lab::threads;
use dupflow_lab::truth::{OwnMeasure, Truth};

/// Seeds that are tried.
const SEEDS: usize = 8;

/// Probability that the share of a run under one more seed lies outside the interval.
const OUTSIDE: f64 = 0.001;

/// The most documents of a sample, inclusive: each is compared with each.
pub const MOST: usize = 50_000;

/// The greatest `blocking.cap`, inclusive.
const MOST_CAP: u64 = 1_000_000;

/// A smaller loss of recall by hot blocks is not warned about.
const LOSS: f64 = 0.01;

/// A share that was measured under several seeds.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct MeasuredShare {
    /// The mean over the seeds.
    pub mean: f64,
    /// The least and the greatest share of a run under another seed; see the module.
    pub low: f64,
    /// See [`Self::low`].
    pub high: f64,
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
    /// Documents that have a shingle.
    pub documents: usize,
    /// Their distinct sketches, on average.
    pub sketches: f64,
    /// Distinct shingles of a document, on average.
    pub shingles: f64,
    /// Pairs from the threshold on, by the plan's own measure.
    pub right: usize,
    /// Pairs that are found, on average.
    pub found: f64,
    /// Number of seeds.
    pub seeds: usize,
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
    /// Hot blocks, on average, as far as the sample shows them.
    pub hot: f64,
    /// The least number of sketches with which a hot block shows.
    pub shown_from: f64,
    /// Sketches in the largest block of all seeds; 0 if the sample shows none.
    pub largest: f64,
    /// Meetings of a sketch in all its blocks together, on average; a pair that shares several meets in each.
    /// `None` if distances decide which members of a block meet.
    pub meetings: Option<f64>,
    /// The same in the sample: what the number above stands on.
    pub meetings_seen: Option<f64>,
    /// The same if no block were hot.
    pub meetings_uncapped: Option<f64>,
    /// Recall without the pairs that share hot blocks only; `None` if no pair is right.
    pub recall: Option<f64>,
    /// The least `blocking.cap` with which no block is hot, with some room; it may be more than the key
    /// takes.
    pub cap: u64,
}

/// The distinct texts of a sample.
struct Sample {
    /// By the id of the first document.
    texts: BTreeMap<DocId, String>,
    /// The number of documents of each.
    copies: BTreeMap<DocId, usize>,
    /// The most of them that are in pairs with other texts.
    expand_limit: usize,
}

/// What one seed gives.
struct SeedOutcome {
    sketches: usize,
    found: usize,
    hits: usize,
    hot: usize,
    largest: f64,
    meetings: [Option<f64>; 3],
    /// Right pairs that are found and share hot blocks only.
    lost: usize,
}

impl SampleReport {
    /// Measures a plan on documents, each with its text in the order of reading, and projects their blocks to
    /// a number of documents. A plan with an [`obstacle`] has no report.
    pub fn new(plan: &Plan, read: Vec<(DocId, String)>, documents: u64, workers: usize) -> Self {
        let times = documents as f64 / read.len().max(1) as f64;
        let scheme = with_table(&plan.scheme, &read);
        let lagging = plan.scheme.live().map(|growth| {
            #[expect(
                clippy::cast_possible_truncation,
                clippy::cast_sign_loss,
                reason = "a share of a number"
            )]
            let counted = (read.len() as f64 / growth.factor()).ceil() as usize;
            with_table(&plan.scheme, &read[..counted])
        });
        let sample = Sample::new(read, plan.expand_limit);
        let shingles = sample.shingles(&scheme);
        let truth = Truth::brute_force(&sample.texts, &OwnMeasure::for_scheme(&scheme), plan.threshold);
        let right: BTreeSet<&Pair<DocId>> = truth.at(plan.threshold).map(|(pair, _)| pair).collect();
        let among_copies: usize = shingles.keys().map(|id| sample.pairs_of_copies(id)).sum();
        let all = among_copies + right.iter().map(|pair| sample.pairs(pair)).sum::<usize>();
        let of_seeds = |weighed: &Scheme| {
            threads::map(workers, SEEDS, |n| {
                // The plan's own seed is none of them.
                let seed = mix(plan.scheme.sketch.seed ^ mix(n as u64)) >> 2;
                SeedOutcome::new(plan, weighed, seed, &sample, &right, times)
            })
        };
        let outcomes = of_seeds(&scheme);
        let heaviest = right.iter().map(|pair| sample.pairs(pair)).max().unwrap_or(1);
        let mean = |of: &dyn Fn(&SeedOutcome) -> f64| mean(&outcomes.iter().map(of).collect::<Vec<_>>());
        let meetings = |which: usize| {
            let is_counted = outcomes.iter().all(|one| one.meetings[which].is_some());
            is_counted.then(|| mean(&|one| one.meetings[which].unwrap_or_default()))
        };
        let largest = outcomes.iter().map(|one| one.largest).fold(0.0, f64::max);
        let number: usize = shingles.keys().map(|id| sample.copies[*id]).sum();
        let length: usize = shingles.iter().map(|(id, shingles)| sample.copies[*id] * shingles).sum();
        Self {
            threshold: plan.threshold,
            documents: number,
            sketches: mean(&|one| one.sketches as f64),
            shingles: length as f64 / number.max(1) as f64,
            right: all,
            found: mean(&|one| one.found as f64),
            seeds: SEEDS,
            quality: quality(&outcomes, all, heaviest),
            lagging: lagging.and_then(|weighed| quality(&of_seeds(&weighed), all, heaviest)),
            standard_error: standard_error(plan, &right, &shingles),
            blocks: SampleBlocks {
                documents,
                hot: mean(&|one| one.hot as f64),
                shown_from: plan.blocking().hot_rule().map_or(0.0, |rule| blocks::shown_from(rule, times)),
                largest,
                cap: cap_above(largest),
                meetings: meetings(0),
                meetings_seen: meetings(1),
                meetings_uncapped: meetings(2),
                recall: (all > 0).then(|| mean(&|one| (one.hits - one.lost) as f64) / all as f64),
            },
        }
    }
}

impl Sample {
    fn new(read: Vec<(DocId, String)>, expand_limit: usize) -> Self {
        let mut firsts: HashMap<String, DocId> = HashMap::new();
        let mut copies: BTreeMap<DocId, usize> = BTreeMap::new();
        for (id, text) in read {
            *copies.entry(firsts.entry(text).or_insert(id).clone()).or_default() += 1;
        }
        Self { texts: firsts.into_iter().map(|(text, id)| (id, text)).collect(), copies, expand_limit }
    }

    /// The copies of a text that are in pairs with other texts.
    fn visible(&self, id: &DocId) -> usize {
        let copies = self.copies[id];
        if copies > self.expand_limit { 1 } else { copies }
    }

    /// The number of pairs between the copies of two texts.
    fn pairs(&self, pair: &Pair<DocId>) -> usize {
        self.visible(pair.lo()) * self.visible(pair.hi())
    }

    /// The number of pairs among the copies of a text.
    fn pairs_of_copies(&self, id: &DocId) -> usize {
        let copies = self.copies[id];
        if copies > self.expand_limit { copies - 1 } else { copies * (copies - 1) / 2 }
    }

    /// The number of distinct shingles of each text that has one.
    fn shingles(&self, scheme: &Scheme) -> BTreeMap<&DocId, usize> {
        let mut featurizer = Featurizer::new(scheme.text.clone());
        let counted = self.texts.iter().map(|(id, text)| (id, featurizer.terms(text).ids.len()));
        counted.filter(|(_, shingles)| *shingles > 0).collect()
    }
}

/// Why a plan is not measured on a sample, if it is not.
pub fn obstacle(plan: &Plan) -> Option<&'static str> {
    [
        (plan.scheme.measure() == Measure::Hamming, "fingerprints, which are compared as they are"),
        (!plan.scheme.pairs.is_empty(), "pairs.where, which joins fields of documents"),
        (plan.scheme.units.is_some(), "text.split, whose documents are units"),
        (plan.scheme.sketch.scaled().is_some(), "containment, whose recall depends on the length of a quote"),
    ]
    .into_iter()
    .find_map(|(is, what)| is.then_some(what))
}

/// The scheme with live weights by these documents.
fn with_table(scheme: &Scheme, counted: &[(DocId, String)]) -> Scheme {
    let Weights::TfIdf(Idf::Live(_), form) = scheme.text.weights else { return scheme.clone() };
    let mut featurizer = Featurizer::new(scheme.text.clone());
    let terms = counted.iter().map(|(_, text)| featurizer.terms(text).to_owned().ids);
    let table = IdfTable::count(terms.filter(|ids| !ids.is_empty()));
    let mut frozen = scheme.clone();
    frozen.text.weights = Weights::TfIdf(Idf::Frozen(Arc::new(table)), form);
    frozen
}

/// A cap above a block of so many sketches, with some room.
fn cap_above(largest: f64) -> u64 {
    #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a number of sketches")]
    let cap = (1.2 * largest).ceil() as u64;
    cap
}

/// `None` where nothing is right or nothing is found. `heaviest` is the greatest number of pairs between the
/// copies of two texts.
fn quality(outcomes: &[SeedOutcome], right: usize, heaviest: usize) -> Option<SampleQuality> {
    let share = |all: &dyn Fn(&SeedOutcome) -> usize| {
        let least = outcomes.iter().map(all).min().filter(|all| *all > 0)?;
        let shares: Vec<f64> = outcomes.iter().map(|one| one.hits as f64 / all(one) as f64).collect();
        let (mean, floor) = (mean(&shares), heaviest as f64 / least as f64);
        let half = half_width_of_next(&shares, OUTSIDE).max(floor);
        Some(MeasuredShare { mean, low: (mean - half).max(0.0), high: (mean + half).min(1.0) })
    };
    Some(SampleQuality { recall: share(&|_| right)?, precision: share(&|one| one.found)? })
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
        sample: &Sample,
        right: &BTreeSet<&Pair<DocId>>,
        times: f64,
    ) -> Self {
        let mut seeded = Plan { scheme: scheme.clone(), ..plan.clone() };
        seeded.scheme.sketch.seed = seed;
        seeded.scheme.blocks.iter_mut().for_each(|second| second.seed = seed + 1);
        let blocking = seeded.blocking();
        let mut maker = SketchMaker::new(&seeded.scheme);
        let sketches: Sketches =
            sample.texts.iter().filter_map(|(id, text)| Some((id.clone(), maker.sketch(text)?))).collect();
        let found = oracle::exact(&sketches, &*blocking, &*seeded.filter(), plan.expand_limit);
        let blocks = Blocks::new(&sketches, &sample.copies, &*blocking);
        let among_copies: usize = sketches.keys().map(|id| sample.pairs_of_copies(id)).sum();
        let mut outcome = Self {
            sketches: blocks.sketches(),
            found: among_copies,
            hits: among_copies,
            hot: blocks.hot(times),
            largest: blocks.largest(times),
            meetings: [(times, true), (1.0, true), (times, false)]
                .map(|(times, is_capped)| blocks.meetings(times, is_capped)),
            lost: 0,
        };
        for pair in found.iter().map(|found| &found.pair) {
            let pairs = sample.pairs(pair);
            outcome.found += pairs;
            if right.contains(pair) {
                outcome.hits += pairs;
                outcome.lost += if blocks.loses(&sketches, pair, times) { pairs } else { 0 };
            }
        }
        outcome
    }
}

impl Display for MeasuredShare {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let [mean, low, high] = [self.mean, self.low, self.high].map(Probability);
        write!(f, "{mean} ({low} to {high})")
    }
}

impl Display for SampleReport {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let number = |value: f64, what: &str| {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "a rounded number")]
            let rounded = value.round() as u64;
            count(rounded, what)
        };
        writeln!(
            f,
            "\nOn your sample of {}, {}, {} each on average, under {} other seeds\n(in brackets: what a run \
            under one more seed has, by Student's law in 999 of 1,000):\n",
            number(self.documents as f64, "document"),
            number(self.sketches, "distinct sketch"),
            number(self.shingles, "shingle"),
            self.seeds
        )?;
        let right = number(self.right as f64, "pair");
        let threshold = TypedSimilarity(self.threshold);
        match &self.quality {
            Some(SampleQuality { recall, precision }) => {
                writeln!(f, "  recall     {recall} of {right} of {threshold} or more")?;
                writeln!(f, "  precision  {precision} of {} found", number(self.found, "pair"))?;
            }
            None => {
                writeln!(
                    f,
                    "  of {right} of {threshold} or more, {:.1} are found: too few to say",
                    self.found
                )?;
            }
        }
        if let Some(SampleQuality { recall, precision }) = &self.lagging {
            writeln!(f, "  by weights of the first documents alone (text.idf_growth):")?;
            writeln!(f, "  recall     {recall}\n  precision  {precision}")?;
        }
        if let Some(error) = self.standard_error {
            writeln!(
                f,
                "  the standard error of an estimate at the threshold is {error:.4}, for such lengths"
            )?;
        }
        self.blocks.fmt(f)?;
        let Some((quality, recall)) = self.quality.zip(self.blocks.recall) else { return Ok(()) };
        if quality.recall.mean - recall < LOSS {
            return Ok(());
        }
        let (recall, cap) = (Probability(recall), self.blocks.cap);
        write!(f, "  ! pairs that share hot blocks only are lost: recall {recall} of so many documents; ")?;
        if cap > MOST_CAP {
            return writeln!(
                f,
                "blocks of\n    {cap} sketches would not be hot, and blocking.cap is {MOST_CAP} at most"
            );
        }
        write!(f, "with\n    blocking.cap = {cap} none is hot")?;
        match self.blocks.meetings_uncapped {
            Some(meetings) => writeln!(f, ", and a sketch has {meetings:.1} meetings"),
            None => writeln!(f),
        }
    }
}

impl Display for SampleBlocks {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        let documents = count(self.documents, "document");
        writeln!(f, "  of {documents} as these:")?;
        if self.shown_from > 0.0 {
            let from = self.shown_from;
            write!(f, "  {:.1} hot blocks show, which they do from {from:.0} sketches on", self.hot)?;
            match self.largest {
                0.0 => writeln!(f)?,
                largest => writeln!(f, "; the largest block has {largest:.0}")?,
            }
        }
        let Some((meetings, seen)) = self.meetings.zip(self.meetings_seen) else { return Ok(()) };
        writeln!(f, "  a sketch has {meetings:.1} meetings in its blocks ({seen:.1} in the sample)")
    }
}
