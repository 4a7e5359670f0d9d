//! Expected block sizes of a banding, what they cost, and the share of pairs that hot blocks miss.
//!
//! In: a [`Curve`], a number of documents with distinct sketches, a [`HotRule`]. Out: a [`ExpectedBlocks`].
//!
//! **Block sizes.** Two documents taken at random are either unrelated, or of one site and share its page
//! frame (`SITE`). Unrelated documents agree in a band with probability `p(s)^rows`; the number of them in
//! the block of a document has a Poisson distribution with mean a. With probability f all rows of a band are
//! components of the document's page frame; `f^2` is the agreement of two documents of one site minus that of
//! unrelated ones. In this case the share f of the site's documents is in the block too.
//!
//! **Recall.** A pair that agrees in a band meets there if the block is not hot, or one of the two is a
//! leader: with probability [`meets`](ExpectedBlocks::meets), m. So a pair of similarity s is compared with
//! probability `1 - (1 - m p(s)^rows)^bands`; bands are taken as independent.
//!
//! **Cost.** For each document: b postings, its meetings by chance and with related documents (`RELATIVES`: g
//! documents of similarity s), and one comparison for each related document that it meets:
//! `posting b + meeting b (by chance + sum g p(s)^rows) + comparison sum g P(s)`. Hot blocks reduce none of
//! these: they were filled before they became hot.
//!
//! **Not modelled**: templates. The members of a large family of near-duplicates share blocks in all bands,
//! so their pairs are missed by hot blocks in all bands together. The summary of a run names such blocks.

use super::curve::Curve;
use crate::block::HotRule;
use crate::block::hamming::optimiser::Costs;
use crate::probability::poisson_at_most;

/// Relative cost of a posting (`probe`, 20 as in [`Costs::default`]) and of a meeting (`entry`). A meeting
/// fetches the first word of a sketch at a random address, so it costs more than an entry of a sorted list.
/// Measured on 400,000 generated documents (`dupflow replay -p minhash`, bands 18 and 36 of 4 and of 7 rows):
/// 190 ns of CPU for each further posting and 140 ns for each further meeting.
const COSTS: Costs = Costs { probe: 20.0, entry: 15.0 };

/// Cost of a candidate that the test of first words does not reject, in the same unit: it is sorted, sent to
/// one sketch and then to the other, and compared. About 1 µs.
const COMPARISON: f64 = 120.0;

/// Similarity of two unrelated documents. Fitted to the number of meetings in bands of 3 and 4 rows, among
/// 10,000 pages and 400,000 generated documents.
const UNRELATED: f64 = 0.002;

/// The share of a corpus that is of the same site as a document, and the similarity that two documents of one
/// site have by the page frame alone. An assumption about a mixed crawl; no measurement of it is on record.
const SITE: (f64, f64) = (1.0 / 60.0, 0.1);

/// Related documents of a document: their number and their similarity, in a corpus of any size. Above 0.5
/// counted among 10,000 pages by exact similarities, below 0.5 by the meetings of their sketches.
const RELATIVES: [(f64, f64); 7] =
    [(5.0, 0.3), (4.0, 0.4), (1.2, 0.55), (2.2, 0.65), (1.2, 0.75), (0.2, 0.85), (0.25, 0.95)];

/// Probabilities below this are taken as 0.
const NOTHING: f64 = 1e-12;

/// Expected block sizes, recall and cost of a banding.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ExpectedBlocks {
    /// Mean number of sketches in a block of a document, including its own.
    pub sketches: f64,
    /// The share of a document's blocks that are hot.
    pub hot_share: f64,
    /// Number of hot blocks in all bands together.
    pub hot_blocks: f64,
    /// The probability that two documents that agree in a band meet there.
    pub meets: f64,
    /// Number of documents that a document meets by chance, summed over all bands; one that is met in two
    /// bands counts twice.
    pub by_chance: f64,
    /// Cost of a document if no block is hot, in the unit in which a posting costs 20.
    pub cost: f64,
}

impl ExpectedBlocks {
    /// The expectation for `documents` documents, no two with the same sketch.
    pub fn new(curve: &Curve, documents: u64, rule: HotRule) -> Self {
        let (bands, n) = (curve.bands as f64, documents as f64);
        let agree = |s: f64| curve.agreement.probability(s).powf(curve.rows as f64);
        let (share, similarity) = SITE;
        // f; the mean number of unrelated documents in a block; the mean if the band is of the page frame.
        let framed = (agree(similarity) - agree(0.0)).max(0.0).sqrt();
        let apart = n * ((1.0 - share) * agree(UNRELATED) + share * agree(0.0));
        let within = apart + n * share * framed;
        let mixed = |of: &dyn Fn(&BlockSize) -> f64, there: usize| {
            let both = [apart, within].map(|mean| of(&BlockSize::new(there, mean, rule.cap)));
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
        // A block that becomes hot was filled before; its meetings were made and are retracted.
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

/// The probability that at least one of two members of a hot block is a leader.
fn leads(size: f64, leaders: usize) -> f64 {
    let others = (size - leaders as f64).max(0.0);
    (1.0 - others * (others - 1.0).max(0.0) / (size * (size - 1.0))).clamp(0.0, 1.0)
}

/// Distribution of the size of a block that holds some given documents and a Poisson number of others.
struct BlockSize {
    /// The probability that the block is hot.
    hot: f64,
    /// Mean size if it is hot; more than the cap.
    hot_size: f64,
    /// Mean number of others, counted as 0 where the block is hot.
    live_others: f64,
}

impl BlockSize {
    /// `there` given documents and a Poisson number of others with this mean.
    fn new(there: usize, mean: f64, cap: usize) -> Self {
        if cap == usize::MAX {
            return Self { hot: 0.0, hot_size: f64::MAX, live_others: mean };
        }
        let most = cap as f64 - there as f64;
        let live = poisson_at_most(mean, most);
        let hot = if 1.0 - live < NOTHING { 0.0 } else { 1.0 - live };
        // For a Poisson variable X of mean a: E[X; X <= m] = a P[X <= m - 1].
        let live_others = mean * poisson_at_most(mean, most - 1.0);
        let least = cap as f64 + 1.0;
        let hot_size = if hot > 0.0 { (there as f64 + (mean - live_others) / hot).max(least) } else { least };
        Self { hot, hot_size, live_others }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::sketch::agreement::Agreement;

    const RULE: HotRule = HotRule { cap: 96, leaders: 2, ..HotRule::NEVER };

    fn expected(bands: usize, rows: usize, documents: u64, rule: HotRule) -> ExpectedBlocks {
        ExpectedBlocks::new(&Curve { bands, rows, agreement: Agreement::Bits(4) }, documents, rule)
    }

    #[test]
    fn others_of_a_block_have_the_given_mean() {
        let sizes = BlockSize::new(1, 100.0, 96);
        let others = sizes.live_others + sizes.hot * (sizes.hot_size - 1.0);
        assert!((others - 100.0).abs() < 1e-9, "{others}");
    }

    #[test]
    fn leaders_by_hand() {
        // 10 members have 45 pairs; 28 of these are among the 8 that are no leaders.
        assert!((leads(10.0, 2) - 17.0 / 45.0).abs() < 1e-12);
        assert!((leads(10.0, 0)).abs() < 1e-12 && (leads(3.0, 4) - 1.0).abs() < 1e-12);
    }

    /// 256 keys a band among 40,000 documents: a plan that lost most pairs in a measured run.
    #[test]
    fn bands_of_two_rows_are_full() {
        let full = expected(24, 2, 40_000, RULE);
        assert!(full.sketches > 157.0 && full.hot_share > 0.9 && full.meets < 0.1, "{full:?}");
        // Nearly every key of every band has a hot block.
        assert!(full.hot_blocks > 0.8 * 24.0 * 256.0 && full.hot_blocks < 24.0 * 256.0, "{full:?}");
        let roomy = expected(84, 4, 40_000, RULE);
        assert!((roomy.meets - 1.0).abs() < 1e-9 && roomy.hot_blocks < 1e-3, "{roomy:?}");
        assert!(roomy.cost < full.cost / 5.0, "{} {}", roomy.cost, full.cost);
    }

    #[test]
    fn more_documents_fill_blocks_and_a_larger_cap_or_none_leaves_them_alive() {
        let meets = |n| expected(56, 4, n, RULE).meets;
        let falling = [10_000, 100_000, 1_000_000, 3_000_000, 10_000_000, 1_000_000_000].map(meets);
        assert!(falling.is_sorted_by(|a, b| a >= b) && falling[5] < 0.01, "{falling:?}");
        let at_cap = |cap| expected(56, 4, 10_000_000, HotRule { cap, ..RULE }).meets;
        // A cap above the unrelated documents of a block; a cap above the documents of a site too.
        assert!(at_cap(1000) > 0.97 && at_cap(1000) < 0.99 && at_cap(100_000) > 0.9999);
        let never = expected(56, 4, 10_000_000, HotRule::NEVER);
        assert!(never.meets >= 1.0 && never.hot_blocks <= 0.0, "{never:?}");
        assert!((never.by_chance / (56.0 * (never.sketches - 1.0)) - 1.0).abs() < 1e-9, "{never:?}");
        let skipped = expected(24, 2, 40_000, HotRule { leaders: 0, ..RULE });
        assert!(skipped.meets < expected(24, 2, 40_000, RULE).meets);
    }

    /// Components of 64 bits: contents do not agree by chance.
    #[test]
    fn whole_components() {
        let curve = Curve { bands: 20, rows: 8, agreement: Agreement::Bits(64) };
        let expected = ExpectedBlocks::new(&curve, 1_000_000, RULE);
        assert!(
            expected.meets >= 1.0 && expected.cost.is_finite() && expected.sketches < 1.01,
            "{expected:?}"
        );
    }
}
