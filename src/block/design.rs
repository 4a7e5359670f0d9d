//! How many bands of how many rows: the S-curve of banding, and the choice of a point on it.
//!
//! In: sketch size and bits, a threshold T, and what the user fixed of bands, rows and recall. Out: a [`Design`], which says
//! what was chosen and why.
//!
//! A component of b bits is equal with probability `p = s + (1 - s) / 2^b` at similarity s, a band of r rows with p^r, one of
//! n bands at least with `P(s) = 1 - (1 - p^r)^n`. More rows make the curve steeper and candidates fewer, more bands raise it.
//! Rule: the most rows with which the bands that fit reach `P(T) >= recall` (inclusive), then the fewest such bands.
//!
//! References: *Mining of Massive Datasets*, section 3.4.2 for the curve. Hassanian-esfahani and Kargar (2018) print it
//! without the exponent r; and (1/n)^(1/r), the usual half point, is an approximation of the one here. Fast similarity
//! sketching's components are slightly dependent for short texts, so there P(T) is a good approximation.

use super::BlockingParams;
use crate::sketch::estimate::{self, match_probability};

/// Most rows of a band: two texts of nothing in common agree in a band of 64 one-bit rows with probability 2^-64, and
/// more rows would only lose recall.
pub const MAX_ROWS: usize = 64;

/// The recall at the threshold if nothing else is asked for.
pub const DEFAULT_RECALL: f64 = 0.99;

/// The probability that a pair is a candidate, by its similarity.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Curve {
    /// Bands, at least 1.
    pub bands: usize,
    /// Rows of a band, at least 1.
    pub rows: usize,
    /// Stored bits of a component, 1 to 64 inclusive.
    pub bits: usize,
}

impl Curve {
    /// `1 - (1 - p(s)^rows)^bands`.
    pub fn probability(&self, similarity: f64) -> f64 {
        let band = match_probability(similarity, self.bits).powf(self.rows as f64);
        // exp(n ln(1 - x)) - 1 without the loss of digits at small x.
        -(self.bands as f64 * (-band).ln_1p()).exp_m1()
    }

    /// The similarity at which half of the pairs are candidates; 0 if more are at any.
    pub fn half_point(&self) -> f64 {
        let band = -(-std::f64::consts::LN_2 / self.bands as f64).exp_m1();
        estimate::similarity(band.powf(1.0 / self.rows as f64), self.bits).max(0.0)
    }
}

/// Bands and rows, with what they do.
#[derive(Clone, Debug, PartialEq)]
pub struct Design {
    /// The chosen bands and rows.
    pub curve: Curve,
    /// The probability that a pair at the threshold is a candidate.
    pub recall: f64,
    /// Why these, in one line.
    pub reason: String,
}

/// Why there is no such banding.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
pub enum DesignError {
    /// Recall outside its range.
    #[error("blocking recall {found} is outside its range: above 0 and below 1")]
    Recall {
        /// As configured.
        found: f64,
    },
    /// Bands or rows outside their ranges.
    #[error("{bands} bands of {rows} rows need {} components of a sketch that has {size}; a band has 1 to 64 rows", bands * rows)]
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
        "{fixed} reach a recall of at most {reached:.4} at similarity {threshold}, not {recall}; {possible}"
    )]
    Unreachable {
        /// What the user fixed.
        fixed: String,
        /// The most that it can reach.
        reached: f64,
        /// T.
        threshold: f64,
        /// The recall asked for.
        recall: f64,
        /// What would reach it.
        possible: String,
    },
}

/// Derives bands and rows for sketches of `size` components of `bits` bits at threshold `threshold`, keeping what `params`
/// fixes; `kind` and `cap` have no part in it.
///
/// # Errors
/// If bands and rows do not fit into the sketch, or the recall cannot be reached.
pub fn design(
    size: usize,
    bits: usize,
    threshold: f64,
    params: &BlockingParams,
) -> Result<Design, DesignError> {
    let asked = params.recall;
    if let Some(found) = asked.filter(|recall| !(*recall > 0.0 && *recall < 1.0)) {
        return Err(DesignError::Recall { found });
    }
    let recall = asked.unwrap_or(DEFAULT_RECALL);
    let space = Space { size, bits, threshold, recall };
    let (given_bands, given_rows) = (params.bands, params.rows);
    let (bands, rows) = (given_bands.unwrap_or(1), given_rows.unwrap_or(1));
    if bands == 0 || !(1..=MAX_ROWS).contains(&rows) || bands.saturating_mul(rows) > size {
        return Err(DesignError::Size { bands, rows, size });
    }
    let (curve, reason) = match (given_bands, given_rows) {
        (Some(bands), Some(rows)) => {
            let curve = Curve { bands, rows, bits };
            if asked.is_some() && curve.probability(threshold) < recall {
                return Err(space.unreachable(format!("{bands} bands of {rows} rows"), curve));
            }
            (curve, "bands and rows as configured".to_owned())
        }
        (Some(bands), None) => {
            let widest = space
                .most_rows(|_| bands)
                .ok_or_else(|| space.unreachable(format!("{bands} bands"), Curve { bands, rows: 1, bits }))?;
            (widest, format!("the most rows with which {bands} bands reach recall {recall}"))
        }
        (None, Some(rows)) => {
            let most = Curve { bands: size / rows, rows, bits };
            let fewest = space
                .fewest_bands(rows)
                .ok_or_else(|| space.unreachable(format!("{} bands of {rows} rows", most.bands), most))?;
            (fewest, format!("the fewest bands with which {rows} rows reach recall {recall}"))
        }
        (None, None) => {
            let most = Curve { bands: size, rows: 1, bits };
            let widest = space
                .most_rows(|rows| size / rows)
                .and_then(|widest| space.fewest_bands(widest.rows))
                .ok_or_else(|| space.unreachable(format!("{size} bands of 1 row"), most))?;
            (
                widest,
                format!(
                    "the most rows that reach recall {recall} with {size} components, then the fewest bands"
                ),
            )
        }
    };
    Ok(Design { curve, recall: curve.probability(threshold), reason })
}

/// What a choice is made in.
struct Space {
    size: usize,
    bits: usize,
    threshold: f64,
    recall: f64,
}

impl Space {
    fn reaches(&self, curve: &Curve) -> bool {
        curve.probability(self.threshold) >= self.recall
    }

    /// The most rows that reach the recall with `bands(rows)` bands.
    fn most_rows(&self, bands: impl Fn(usize) -> usize) -> Option<Curve> {
        let curves =
            (1..=MAX_ROWS.min(self.size)).map(|rows| Curve { bands: bands(rows), rows, bits: self.bits });
        curves.filter(|curve| curve.bands * curve.rows <= self.size && self.reaches(curve)).last()
    }

    /// The fewest bands of `rows` rows that reach the recall.
    fn fewest_bands(&self, rows: usize) -> Option<Curve> {
        (1..=self.size / rows)
            .map(|bands| Curve { bands, rows, bits: self.bits })
            .find(|curve| self.reaches(curve))
    }

    fn unreachable(&self, fixed: String, curve: Curve) -> DesignError {
        let possible = self
            .most_rows(|rows| self.size / rows)
            .and_then(|widest| self.fewest_bands(widest.rows))
            .map_or_else(
                || "no bands of this sketch do, a larger sketch is needed".to_owned(),
                |Curve { bands, rows, .. }| format!("{bands} bands of {rows} rows would"),
            );
        let (threshold, recall) = (self.threshold, self.recall);
        DesignError::Unreachable { fixed, reached: curve.probability(threshold), threshold, recall, possible }
    }
}

/// The areas on the wrong side of the curve of full-width components: `(of P below the threshold, of 1 - P above it)`.
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
