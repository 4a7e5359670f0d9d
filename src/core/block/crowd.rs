//! How full the blocks of a banding get among so many documents, what that costs, and what hot blocks then
//! miss.
//!
//! In: a [`Curve`], a number of documents of distinct sketches, a [`HotRule`]. Out: a [`Crowd`].
//!
//! **Who is in a block.** Two documents taken at random are unrelated, or of one site, whose frame they have
//! in common (`SITE`). Unrelated ones agree in a band with the probability `p(s)^rows`, and are spread over
//! its contents: so many are beside a document as Poisson's law has it, of the mean a. With a probability f
//! the rows of a band are all of a document's frame, where `f^2` is how much likelier two of one site agree
//! than two unrelated ones: then the share f of its site is beside it too.
//!
//! **What is found.** A pair that agrees in a band meets there if the block is not hot, or one of the two
//! leads it: with the probability [`meets`](Crowd::meets), m. So a pair of similarity s is compared with
//! probability `1 - (1 - m p(s)^rows)^bands`, bands taken as independent.
//!
//! **What it costs.** For each document `bands` postings, its meetings by chance and with its relatives
//! (`RELATIVES`), and a comparison for each relative that it meets: `posting b + meeting b (met + sum g
//! p^rows) + comparison sum g P`. Hot blocks save nothing in this: they were filled before they got hot.
//!
//! **Left out**: templates. The members of a large family of near-duplicates share whole blocks with each
//! other, whatever the keys of a band are, so that their pairs are lost to hot blocks in all bands together.
//! The summary of a run names such blocks.

use super::HotRule;
use super::curve::Curve;
use super::hamming::optimiser::Costs;

/// What parts cost, a posting 20 as in [`Costs::default`]. A meeting here is no entry of a sorted list: it
/// fetches the first word of a sketch that may be anywhere. 400,000 generated documents (`dupflow replay -p
/// minhash`, bands 18 and 36 of 4 and of 7 rows) took 190 ns of CPU for each further posting and 140 for each
/// further meeting.
const COSTS: Costs = Costs { probe: 20.0, entry: 15.0 };

/// A candidate that the first word leaves: it is sorted, sent to one sketch and then to the other, and
/// compared. About 1 µs.
const COMPARISON: f64 = 120.0;

/// How similar two unrelated documents are. By their meetings in bands of 3 and 4 rows, among 10,000 pages
/// and 400,000 generated documents.
const UNRELATED: f64 = 0.002;

/// The share of a corpus that is of the site of a document, and how similar two of one site are by its frame
/// alone.
const SITE: (f64, f64) = (1.0 / 60.0, 0.1);

/// The relatives of a document, however large the corpus is: how many, and their similarity. Above 0.5 as
/// 10,000 pages have them by their exact similarities, below by the meetings of their sketches.
const RELATIVES: [(f64, f64); 7] =
    [(5.0, 0.3), (4.0, 0.4), (1.2, 0.55), (2.2, 0.65), (1.2, 0.75), (0.2, 0.85), (0.25, 0.95)];

/// Sizes that are summed one by one; beyond, Poisson's law is a normal one.
const SUMMED: usize = 4096;

/// Probabilities that are not told from 0.
const NOTHING: f64 = 1e-12;

/// What is expected of the blocks of a banding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Crowd {
    /// Sketches in a block of a document, itself included, on average.
    pub sketches: f64,
    /// The share of its blocks that are hot.
    pub hot_share: f64,
    /// Hot blocks, of all bands.
    pub hot_blocks: f64,
    /// The probability that two documents that agree in a band meet there.
    pub meets: f64,
    /// Documents that a document meets by chance, in all bands: one that is met in two counts twice.
    pub by_chance: f64,
    /// What a document costs if no block is hot, in the unit of which a posting costs 20.
    pub cost: f64,
}

impl Crowd {
    /// Of so many documents, no two of one sketch.
    pub fn new(curve: &Curve, documents: u64, rule: HotRule) -> Self {
        let (bands, n) = (curve.bands as f64, documents as f64);
        let agree = |s: f64| curve.agreement.probability(s).powf(curve.rows as f64);
        let (share, similarity) = SITE;
        // f, the mean of the unrelated, and of those of the site where the band is of its frame.
        let framed = (agree(similarity) - agree(0.0)).max(0.0).sqrt();
        let apart = n * ((1.0 - share) * agree(UNRELATED) + share * agree(0.0));
        let within = apart + n * share * framed;
        let mixed = |of: &dyn Fn(&Sizes) -> f64, there: usize| {
            let both = [apart, within].map(|mean| of(&Sizes::new(there, mean, rule.cap)));
            both[0] + framed * (both[1] - both[0])
        };
        let meets = mixed(
            &|pair| {
                let led = if pair.hot > 0.0 { leads(pair.hot_size, rule.leaders) } else { 1.0 };
                1.0 - pair.hot + pair.hot * led
            },
            2,
        );
        let led = rule.leaders.min(rule.cap) as f64;
        let by_chance = bands * mixed(&|one| one.live_others + one.hot * led, 1);
        let sketches = 1.0 + apart + framed * (within - apart);
        let relatives =
            |of: &dyn Fn(f64) -> f64| -> f64 { RELATIVES.iter().map(|(count, s)| count * of(*s)).sum() };
        // A block that gets hot has been filled before, and its meetings are taken back.
        let meetings = bands * (sketches - 1.0 + relatives(&agree));
        let compared = relatives(&|s| curve.probability(s));
        Self {
            sketches,
            hot_share: mixed(&|one| one.hot, 1),
            hot_blocks: bands * n * mixed(&|one| if one.hot > 0.0 { one.hot / one.hot_size } else { 0.0 }, 1),
            meets,
            by_chance,
            cost: COSTS.probe * bands + COSTS.entry * meetings + COMPARISON * compared,
        }
    }
}

/// The probability that one of two members of a hot block leads it.
fn leads(size: f64, leaders: usize) -> f64 {
    let others = (size - leaders as f64).max(0.0);
    (1.0 - others * (others - 1.0).max(0.0) / (size * (size - 1.0))).clamp(0.0, 1.0)
}

/// The size of a block in which there are some documents already, with others beside them.
struct Sizes {
    /// The probability that it is hot.
    hot: f64,
    /// Its size then, on average; more than the cap.
    hot_size: f64,
    /// The others where it is not hot, on average, and 0 where it is.
    live_others: f64,
}

impl Sizes {
    /// The others are of Poisson's law.
    fn new(there: usize, mean: f64, cap: usize) -> Self {
        if cap == usize::MAX {
            return Self { hot: 0.0, hot_size: f64::MAX, live_others: mean };
        }
        let most = cap as f64 - there as f64;
        let live = at_most(mean, most);
        let hot = if 1.0 - live < NOTHING { 0.0 } else { 1.0 - live };
        // The mean of what is at most m is the mean times P[at most m - 1].
        let live_others = mean * at_most(mean, most - 1.0);
        let least = cap as f64 + 1.0;
        let hot_size = if hot > 0.0 { (there as f64 + (mean - live_others) / hot).max(least) } else { least };
        Self { hot, hot_size, live_others }
    }
}

/// The probability that a variable of Poisson's law is at most this.
fn at_most(mean: f64, most: f64) -> f64 {
    if most < 0.0 {
        return 0.0;
    }
    if most > SUMMED as f64 {
        return normal((most + 0.5 - mean) / mean.max(1.0).sqrt());
    }
    let (mut log, mut all, mut count) = (-mean, 0.0, 0.0);
    while count <= most {
        let mass = f64::exp(log);
        all += mass;
        if count > mean && mass < 1e-18 {
            break;
        }
        count += 1.0;
        log += (mean / count).ln();
    }
    all.min(1.0)
}

/// The probability that a normal variable is at most `z` deviations above its mean, to 2e-4 (E. Page, 1977).
pub fn normal(z: f64) -> f64 {
    1.0 / (1.0 + (-1.5976 * z - 0.070_56 * z.powi(3)).exp())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::agreement::Agreement;

    const RULE: HotRule = HotRule { cap: 96, leaders: 2 };

    fn crowd(bands: usize, rows: usize, documents: u64, rule: HotRule) -> Crowd {
        Crowd::new(&Curve { bands, rows, agreement: Agreement::Bits(4) }, documents, rule)
    }

    #[test]
    fn poissons_law_by_hand() {
        // 1, 2 and 2 times e^-2.
        assert!((at_most(2.0, 2.0) - 5.0 * (-2.0_f64).exp()).abs() < 1e-12);
        assert!(at_most(0.0, 0.0) >= 1.0 && at_most(3.0, -1.0) <= 0.0);
        // Summed one by one, or not.
        let (summed, normal) = (at_most(4000.0, 4096.0), normal(96.5 / 4000.0_f64.sqrt()));
        assert!((summed - normal).abs() < 2e-3, "{summed} {normal}");
        assert!((at_most(5000.0, 5000.0) - 0.5).abs() < 0.01);
        let sizes = Sizes::new(1, 100.0, 96);
        let others = sizes.live_others + sizes.hot * (sizes.hot_size - 1.0);
        assert!((others - 100.0).abs() < 1e-9, "{others}");
    }

    #[test]
    fn leaders_by_hand() {
        // Of 45 pairs of 10, 28 are of the 8 that do not lead.
        assert!((leads(10.0, 2) - 17.0 / 45.0).abs() < 1e-12);
        assert!((leads(10.0, 0)).abs() < 1e-12 && (leads(3.0, 4) - 1.0).abs() < 1e-12);
    }

    /// 256 keys a band among 40,000 documents: what was seen to lose most pairs.
    #[test]
    fn bands_of_two_rows_are_full() {
        let full = crowd(24, 2, 40_000, RULE);
        assert!(full.sketches > 157.0 && full.hot_share > 0.9 && full.meets < 0.1, "{full:?}");
        // Nearly every key of every band.
        assert!(full.hot_blocks > 0.8 * 24.0 * 256.0 && full.hot_blocks < 24.0 * 256.0, "{full:?}");
        let roomy = crowd(84, 4, 40_000, RULE);
        assert!((roomy.meets - 1.0).abs() < 1e-9 && roomy.hot_blocks < 1e-3, "{roomy:?}");
        assert!(roomy.cost < full.cost / 5.0, "{} {}", roomy.cost, full.cost);
    }

    #[test]
    fn more_documents_fill_blocks_and_a_larger_cap_or_none_leaves_them_alive() {
        let meets = |n| crowd(56, 4, n, RULE).meets;
        let falling = [10_000, 100_000, 1_000_000, 3_000_000, 10_000_000, 1_000_000_000].map(meets);
        assert!(falling.is_sorted_by(|a, b| a >= b) && falling[5] < 0.01, "{falling:?}");
        let at_cap = |cap| crowd(56, 4, 10_000_000, HotRule { cap, ..RULE }).meets;
        // Beyond what is unrelated; beyond a site too.
        assert!(at_cap(1000) > 0.97 && at_cap(1000) < 0.99 && at_cap(100_000) > 0.9999);
        let never = crowd(56, 4, 10_000_000, HotRule::NEVER);
        assert!(never.meets >= 1.0 && never.hot_blocks <= 0.0, "{never:?}");
        assert!((never.by_chance / (56.0 * (never.sketches - 1.0)) - 1.0).abs() < 1e-9, "{never:?}");
        let skipped = crowd(24, 2, 40_000, HotRule { leaders: 0, ..RULE });
        assert!(skipped.meets < crowd(24, 2, 40_000, RULE).meets);
    }

    /// Contents that have no chance to agree.
    #[test]
    fn whole_components() {
        let curve = Curve { bands: 20, rows: 8, agreement: Agreement::Bits(64) };
        let crowd = Crowd::new(&curve, 1_000_000, RULE);
        assert!(crowd.meets >= 1.0 && crowd.cost.is_finite() && crowd.sketches < 1.01, "{crowd:?}");
    }
}
