//! Derives the number of bands and rows of a banding.
//!
//! In: sketch size and bits, a threshold T, and those of bands, rows and recall that the user fixed. Out: a
//! [`Bands`] with the choice and its reason.
//!
//! A component of b bits is equal with probability `p = s + (1 - s) / 2^b` at similarity s, a band of r rows
//! with probability p^r, and at least one of n bands with `P(s) = 1 - (1 - p^r)^n`. More rows make the curve
//! steeper, candidates fewer and blocks smaller; more bands raise it.
//!
//! Rule where nothing is fixed: all bands and rows are considered that fit into the sketch, reach `P(T) >=
//! recall` (inclusive) with hot blocks taken into account for the planned number of documents, and leave
//! [room](ROOM). Of these the choice with the least [cost](super::expected) is taken. If there is none, the
//! choice is among those that reach the recall if no block is hot: the one that loses least.
//!
//! References: *Mining of Massive Datasets*, section 3.4.2 for the curve. Hassanian-esfahani and Kargar
//! (2018) print it without the exponent r; and (1/n)^(1/r), the usual half point, is an approximation of the
//! one here. Fast similarity sketching's components are slightly dependent for short texts, so there P(T) is
//! a good approximation.

use super::curve::Curve;
use super::expected::ExpectedBlocks;
use crate::block::{BlockingParams, HotRule};
use crate::sketch::agreement::{Agreement, Shape};

/// Most rows of a band, inclusive: two texts with nothing in common agree in a band of 64 one-bit rows with
/// probability 2^-64, and more rows would only reduce recall.
pub const MAX_ROWS: usize = 64;

/// Least share of the pairs agreeing in a band that meet there, inclusive. More bands could compensate for a
/// lower share, but only in a corpus as even as the model assumes. Chosen as a margin for uneven corpora, not
/// measured.
pub const ROOM: f64 = 0.95;

/// Where the requested recall cannot be reached: the loss of recall that is accepted in exchange for fewer
/// bands.
const SLIGHT: f64 = 0.001;

/// The least share of the requested recall that bands are taken for without being asked for by number.
const USEFUL: f64 = 0.01;

/// The default recall at the threshold.
pub const DEFAULT_RECALL: f64 = 0.99;

/// A choice of bands and rows, with its recall and costs.
#[derive(Clone, Debug, PartialEq)]
pub struct Bands {
    /// The chosen bands and rows.
    pub curve: Curve,
    /// The probability that a pair at the threshold shares a block.
    pub recall: f64,
    /// The requested recall. `recall` is at least this unless bands and rows are both fixed.
    pub wanted: f64,
    /// Expected block sizes and costs for the planned number of documents.
    pub expected: ExpectedBlocks,
    /// The reason of the choice, in one line.
    pub reason: String,
}

/// A requested banding that does not exist.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum BandsError {
    /// Recall outside its range.
    #[error("blocking recall {found} is outside its range: above 0 and below 1")]
    Recall {
        /// As configured.
        found: f64,
    },
    /// Bands or rows outside their ranges.
    #[error(
        "bands = {bands} and rows = {rows} do not fit: a band has 1 to 64 rows, \
         and all of them at most {size} components"
    )]
    Size {
        /// As configured.
        bands: usize,
        /// As configured.
        rows: usize,
        /// K.
        size: usize,
    },
    /// The recall is not reached with what is fixed.
    #[error(
        "bands = {bands} and rows = {rows} reach a recall of only {reached:.4} at similarity {threshold}, \
         not {recall}; {possible}"
    )]
    Unreachable {
        /// As configured, or the most that fit.
        bands: usize,
        /// As configured, or the fewest.
        rows: usize,
        /// The recall of these, the most within what is fixed.
        reached: f64,
        /// T.
        threshold: f64,
        /// The recall asked for.
        recall: f64,
        /// Bands and rows that would reach it.
        possible: String,
    },
    /// Hot blocks leave less than a hundredth of the recall, whatever the bands.
    #[error(
        "of {documents} documents, no bands find a hundredth of recall {recall} of the pairs at similarity \
        {threshold}: the best, bands = {bands} and rows = {rows}, find {found:.1e}, as blocks of more than \
        {cap} sketches are hot; plan for fewer documents, take longer shingles, a higher threshold, a larger \
        sketch or a larger cap, or set bands and rows"
    )]
    Crowded {
        /// As planned for.
        documents: u64,
        /// Of the best.
        bands: usize,
        /// Of the best.
        rows: usize,
        /// The recall of the best.
        found: f64,
        /// Sketches above which a block is hot.
        cap: usize,
        /// T.
        threshold: f64,
        /// The recall asked for.
        recall: f64,
    },
}

/// Derives bands and rows for sketches of this shape at threshold `threshold`, and keeps those that `params`
/// fixes. `params.kind` is not read.
///
/// # Errors
/// If bands and rows do not fit into the sketch, or the recall cannot be reached.
pub fn design(shape: Shape, threshold: f64, params: &BlockingParams) -> Result<Bands, BandsError> {
    let Shape { size, agreement, .. } = shape;
    if let Some(found) = params.recall.filter(|recall| !(*recall > 0.0 && *recall < 1.0)) {
        return Err(BandsError::Recall { found });
    }
    let least = (params.bands.unwrap_or(1), params.rows.unwrap_or(1));
    if least.0 == 0 || !(1..=MAX_ROWS).contains(&least.1) || least.0.saturating_mul(least.1) > size {
        return Err(BandsError::Size { bands: least.0, rows: least.1, size });
    }
    let recall = params.recall.unwrap_or(DEFAULT_RECALL);
    let (documents, rule) = (params.documents, params.rule());
    let space = Requirements { size, agreement, threshold, recall, documents, rule };
    // The choice, if any reaches the recall; the nearest curve of what is fixed, for the error; the reason.
    let (chosen, nearest, reason) = match (params.bands, params.rows) {
        (Some(bands), Some(rows)) => {
            let both = space.curve(bands, rows);
            let stands = params.recall.is_none() || space.reaches(&both);
            (stands.then_some(both), Some(both), "bands and rows as configured".to_owned())
        }
        (Some(bands), None) => {
            let reason = format!("the most rows with which {bands} bands reach recall {recall}");
            (space.most_rows(|_| bands), Some(space.curve(bands, 1)), reason)
        }
        (None, Some(rows)) => {
            let reason = format!("the fewest bands with which {rows} rows reach recall {recall}");
            (space.fewest_bands(rows), Some(space.curve(size / rows, rows)), reason)
        }
        (None, None) => {
            let cheapest = space.cheapest();
            let reason = if cheapest.is_some() {
                format!("the cheapest that reach recall {recall} among {documents} documents")
            } else {
                format!("none reach recall {recall} among {documents} documents, these come nearest")
            };
            (cheapest.or_else(|| space.nearest()), None, reason)
        }
    };
    let curve = chosen.ok_or_else(|| space.unreachable(nearest.as_ref()))?;
    let reached = curve.probability(threshold);
    let wanted = if params.bands.is_some() && params.rows.is_some() {
        params.recall.unwrap_or(reached)
    } else {
        space.recall
    };
    Ok(Bands { curve, recall: reached, wanted, expected: space.expected(&curve), reason })
}

/// The curve of least cost.
fn least_cost(all: impl Iterator<Item = (Curve, ExpectedBlocks)>) -> Option<Curve> {
    all.min_by(|(_, a), (_, b)| a.cost.total_cmp(&b.cost)).map(|(curve, _)| curve)
}

/// The requirements of a choice.
struct Requirements {
    size: usize,
    agreement: Agreement,
    threshold: f64,
    recall: f64,
    documents: u64,
    rule: HotRule,
}

impl Requirements {
    fn curve(&self, bands: usize, rows: usize) -> Curve {
        Curve { bands, rows, agreement: self.agreement }
    }

    fn reaches(&self, curve: &Curve) -> bool {
        curve.probability(self.threshold) >= self.recall
    }

    /// The most rows that reach the recall with `bands(rows)` bands.
    fn most_rows(&self, bands: impl Fn(usize) -> usize) -> Option<Curve> {
        let curves = (1..=MAX_ROWS.min(self.size)).map(|rows| self.curve(bands(rows), rows));
        curves.filter(|curve| curve.bands * curve.rows <= self.size && self.reaches(curve)).last()
    }

    /// The fewest bands of `rows` rows that reach the recall.
    fn fewest_bands(&self, rows: usize) -> Option<Curve> {
        (1..=self.size / rows).map(|bands| self.curve(bands, rows)).find(|curve| self.reaches(curve))
    }

    /// For each number of rows, the fewest bands that reach a recall if a pair that agrees in a band meets
    /// there with the probability `meets`.
    fn each(
        &self,
        recall: f64,
        meets: impl Fn(&Curve) -> f64,
    ) -> impl Iterator<Item = (Curve, ExpectedBlocks)> {
        (1..=MAX_ROWS.min(self.size)).filter_map(move |rows| {
            let meets = meets(&self.curve(1, rows));
            let most = self.size / rows;
            let reaches = |bands: usize| self.curve(bands, rows).found(self.threshold, meets) >= recall;
            // Recall ascends with the bands, so the fewest are found by bisection.
            let (mut few, mut enough) = (0, most);
            if !reaches(most) {
                return None;
            }
            while enough - few > 1 {
                let half = few.midpoint(enough);
                if reaches(half) { enough = half } else { few = half }
            }
            let curve = self.curve(enough, rows);
            Some((curve, self.expected(&curve)))
        })
    }

    /// The probability that a pair that agrees in a band of this many rows meets there; it does not depend on
    /// the number of bands.
    fn meets(&self, one: &Curve) -> f64 {
        self.expected(one).meets
    }

    /// The choice where nothing is fixed: least cost of those with enough room.
    fn cheapest(&self) -> Option<Curve> {
        let roomy =
            self.each(self.recall, |one| self.meets(one)).filter(|(_, expected)| expected.meets >= ROOM);
        least_cost(roomy)
    }

    /// The choice if no [`cheapest`](Self::cheapest) exists: the cheapest within [`SLIGHT`] of the greatest
    /// recall. `None` if that is not [`USEFUL`], or the recall could not be reached even without hot blocks.
    fn nearest(&self) -> Option<Curve> {
        let (_, most) = self.best()?;
        let is_useful = most >= self.recall * USEFUL;
        least_cost(self.each(self.recall.min(most - SLIGHT), |one| self.meets(one)).filter(|_| is_useful))
    }

    /// The bands of the greatest recall with hot blocks, and that recall; `None` if the recall could not be
    /// reached even without hot blocks.
    fn best(&self) -> Option<(Curve, f64)> {
        self.each(self.recall, |_| 1.0).next()?;
        let most = (1..=MAX_ROWS.min(self.size)).map(|rows| self.curve(self.size / rows, rows));
        let found = most.map(|curve| (curve, curve.found(self.threshold, self.meets(&curve))));
        found.max_by(|(_, a), (_, b)| a.total_cmp(b))
    }

    fn expected(&self, curve: &Curve) -> ExpectedBlocks {
        ExpectedBlocks::new(curve, self.documents, self.rule)
    }

    /// Why there is no choice; `nearest` is of what is fixed, if anything is.
    fn unreachable(&self, nearest: Option<&Curve>) -> BandsError {
        let all = self.curve(self.size, 1);
        let nearest = match (nearest, self.best()) {
            (None, Some((Curve { bands, rows, .. }, found))) => {
                let Self { threshold, recall, documents, rule, .. } = *self;
                return BandsError::Crowded {
                    documents,
                    bands,
                    rows,
                    found,
                    cap: rule.cap,
                    threshold,
                    recall,
                };
            }
            (fixed, _) => fixed.unwrap_or(&all),
        };
        let possible = self.cheapest().or_else(|| self.nearest()).map_or_else(
            || "no bands of this sketch do, a larger sketch is needed".to_owned(),
            |curve| format!("bands = {} and rows = {} would", curve.bands, curve.rows),
        );
        BandsError::Unreachable {
            bands: nearest.bands,
            rows: nearest.rows,
            reached: nearest.probability(self.threshold),
            threshold: self.threshold,
            recall: self.recall,
            possible,
        }
    }
}

/// The areas of errors of the curve of full-width components: the integral of P below the threshold, and of
/// 1 - P above it.
///
/// With `I_n(t)` the integral of `(1 - s^r)^n` from 0 to t, `I_0 = t` and by parts
/// `I_n = (t (1 - t^r)^n + r n I_(n-1)) / (1 + r n)`: exact, and every term is positive.
pub fn areas(bands: usize, rows: usize, threshold: f64) -> (f64, f64) {
    let missed = |t: f64| {
        let miss = 1.0 - t.powf(rows as f64);
        let step = |(integral, power): (f64, f64), n: usize| {
            let (power, weight) = (power * miss, (rows * n) as f64);
            ((t * power + weight * integral) / (1.0 + weight), power)
        };
        (1..=bands).fold((t, 1.0), step).0
    };
    (threshold - missed(threshold), missed(1.0) - missed(threshold))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn choose(
        size: usize,
        bits: usize,
        threshold: f64,
        bands: Option<usize>,
        rows: Option<usize>,
        recall: Option<f64>,
    ) -> Result<Bands, String> {
        let params = BlockingParams { bands, rows, recall, ..BlockingParams::default() };
        design(Shape::components(size, bits), threshold, &params).map_err(|error| error.to_string())
    }

    /// Bands and rows of a choice.
    fn shape(design: &Bands) -> (usize, usize) {
        (design.curve.bands, design.curve.rows)
    }

    #[test]
    fn the_curve_by_hand() {
        let curve = Curve { bands: 2, rows: 2, agreement: Agreement::Bits(64) };
        assert!((curve.probability(0.5) - (1.0 - 0.75 * 0.75)).abs() < 1e-15);
        assert!((curve.probability(1.0) - 1.0).abs() < 1e-15);
        assert!((curve.probability(curve.half_point(1.0)) - 0.5).abs() < 1e-12);
        let one_bit = Curve { agreement: Agreement::Bits(1), ..curve };
        assert!((one_bit.probability(0.0) - (1.0 - 0.75 * 0.75)).abs() < 1e-15);
        assert!(Curve { bands: 100, ..one_bit }.half_point(1.0) <= 0.0);
        let half = curve.half_point(0.6);
        assert!((curve.found(half, 0.6) - 0.5).abs() < 1e-12 && half > curve.half_point(1.0));
        assert!(curve.half_point(0.1) > 1.0);
    }

    #[test]
    fn the_cheapest_that_reach_the_recall() {
        let found = choose(256, 64, 0.8, None, None, None).unwrap();
        assert_eq!(shape(&found), (16, 6));
        assert!((found.recall - 0.9923).abs() < 5e-5 && (found.curve.probability(0.5) - 0.2227).abs() < 5e-4);
        assert!(found.reason.contains("recall 0.99 "), "{}", found.reason);
        assert_eq!(shape(&choose(512, 64, 0.7, None, None, None).unwrap()), (26, 5));
        // One-bit components agree by chance, so a band needs more of them.
        let one_bit = choose(1024, 1, 0.8, None, None, None).unwrap();
        assert!(one_bit.curve.rows > 16 && one_bit.recall >= 0.99, "{one_bit:?}");
    }

    /// Compared with all choices that reach the recall after hot blocks: none costs less.
    #[test]
    fn the_rule_by_trying_all() {
        for (threshold, documents, cap) in [
            (0.8, 1_000_000, 96),
            (0.5, 1_000_000, 96),
            (0.5, 40_000, 96),
            (0.6, 10_000_000, 96),
            (0.7, 50_000, 8),
        ] {
            let params = BlockingParams { documents, cap, ..BlockingParams::default() };
            let chosen = design(Shape::components(448, 4), threshold, &params).unwrap();
            assert!(chosen.curve.found(threshold, chosen.expected.meets) >= 0.99, "{chosen:?}");
            for (bands, rows) in (1..=64).flat_map(|rows| (1..=448 / rows).map(move |bands| (bands, rows))) {
                let curve = Curve { bands, rows, agreement: Agreement::Bits(4) };
                let expected = ExpectedBlocks::new(&curve, documents, params.rule());
                if expected.meets >= ROOM && curve.found(threshold, expected.meets) >= 0.99 {
                    assert!(chosen.expected.cost <= expected.cost, "{chosen:?} {curve:?} {expected:?}");
                }
            }
        }
    }

    /// Recalls that 448 components of 4 bits cannot reach: no other bands find more, up to [`SLIGHT`].
    #[test]
    fn where_none_reaches_the_recall_the_nearest_are_taken() {
        for (threshold, documents) in
            [(0.3, 10_000_000), (0.4, 1_000_000), (0.5, 10_000_000), (0.6, 100_000_000)]
        {
            let params = BlockingParams { documents, ..BlockingParams::default() };
            let chosen = design(Shape::components(448, 4), threshold, &params).unwrap();
            let reason = format!("none reach recall 0.99 among {documents} documents");
            assert!(chosen.reason.starts_with(&reason), "{chosen:?}");
            let found = chosen.curve.found(threshold, chosen.expected.meets);
            for (bands, rows) in (1..=64).map(|rows| (448 / rows, rows)) {
                let curve = Curve { bands, rows, agreement: Agreement::Bits(4) };
                let expected = ExpectedBlocks::new(&curve, documents, params.rule());
                assert!(found >= curve.found(threshold, expected.meets) - SLIGHT, "{chosen:?} {curve:?}");
            }
            assert!(threshold < 0.4 || found > 0.97, "{chosen:?}");
        }
        let crowded = BlockingParams { documents: 1_000_000_000_000, cap: 2, ..BlockingParams::default() };
        for (threshold, params) in [(0.1, crowded.clone()), (0.3, crowded)] {
            let Err(BandsError::Crowded { bands, rows, found, .. }) =
                design(Shape::components(448, 4), threshold, &params)
            else {
                panic!("less than a hundredth of the recall is no design")
            };
            let recall = |of: usize| {
                let curve = Curve { bands: 448 / of, rows: of, agreement: Agreement::Bits(4) };
                curve.found(threshold, ExpectedBlocks::new(&curve, params.documents, params.rule()).meets)
            };
            assert!((1..=64).all(|of| recall(of) <= found) && found < 0.0099, "{threshold} {found}");
            assert!((recall(rows) - found).abs() < 1e-12 && bands == 448 / rows);
            // What is set by number is taken.
            let set = BlockingParams { bands: Some(bands), rows: Some(rows), ..params };
            assert_eq!(design(Shape::components(448, 4), threshold, &set).unwrap().curve.bands, bands);
        }
        assert!(
            choose(16, 64, 0.01, None, None, None).is_err(),
            "nothing would do without hot blocks either"
        );
    }

    #[test]
    fn what_is_fixed_stays() {
        assert_eq!(shape(&choose(256, 64, 0.8, Some(26), None, None).unwrap()), (26, 8));
        assert_eq!(shape(&choose(256, 64, 0.8, Some(13), None, None).unwrap()), (13, 5));
        assert_eq!(shape(&choose(256, 64, 0.8, None, Some(5), None).unwrap()), (12, 5));
        // Both fixed and no recall requested: accepted with any recall.
        let both = choose(256, 64, 0.8, Some(2), Some(64), None).unwrap();
        assert!(shape(&both) == (2, 64) && both.recall < 1e-5);
        assert_eq!(shape(&choose(256, 64, 0.8, Some(26), Some(8), Some(0.99)).unwrap()), (26, 8));
        assert_eq!(shape(&choose(100, 8, 1.0, None, None, None).unwrap()), (1, 64));
    }

    #[test]
    fn contradictions_say_what_was_found_and_what_would_do() {
        let refused = |bands, rows, recall| choose(256, 64, 0.8, bands, rows, recall).unwrap_err();
        assert_eq!(
            refused(Some(40), Some(8), None),
            "bands = 40 and rows = 8 do not fit: a band has 1 to 64 rows, and all of them at most 256 \
            components"
        );
        let only = |shape, reached| {
            let rest = "at similarity 0.8, not 0.99; bands = 16 and rows = 6 would";
            format!("{shape} reach a recall of only {reached} {rest}")
        };
        assert_eq!(refused(Some(20), Some(8), Some(0.99)), only("bands = 20 and rows = 8", "0.9746"));
        assert_eq!(refused(Some(2), None, None), only("bands = 2 and rows = 1", "0.9600"));
        assert_eq!(refused(None, Some(12), None), only("bands = 21 and rows = 12", "0.7758"));
        assert_eq!(
            refused(None, None, Some(1.0)),
            "blocking recall 1 is outside its range: above 0 and below 1"
        );
        for (bands, rows) in [(Some(0), None), (None, Some(0)), (None, Some(65)), (Some(300), None)] {
            assert!(refused(bands, rows, None).contains("do not fit"), "{bands:?} {rows:?}");
        }
        let small = choose(16, 64, 0.01, None, None, None).unwrap_err();
        assert!(small.ends_with("no bands of this sketch do, a larger sketch is needed"), "{small}");
    }

    #[test]
    fn areas_of_one_band_of_one_row() {
        // P(s) = s: half of T² below, half of (1 - T)² above.
        let (accepted, missed) = areas(1, 1, 0.8);
        assert!((accepted - 0.32).abs() < 1e-15 && (missed - 0.02).abs() < 1e-15);
    }
}
