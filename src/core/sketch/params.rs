//! The parameters of one sketch, and what follows from them: layout, sketcher, estimator, variance.

use std::sync::Arc;

use serde::Serialize;

use super::bits::{Cut, Packed};
use super::kind::{SketchKind, SketchLayout, VarianceLaw};
use super::sampler::{Sampler, Sketcher};
use super::sets::bottom_k::{BottomK, BottomKEstimator};
use super::sets::oph::{Oph, OphOriginal, OphOriginalEstimator};
use super::sets::scaled::{Scaled, ScaledEstimator};
use super::sets::{Fingerprint, Fss, MinHash, MinMax, Odd, SectionBase, Sectional, SuperMinHash};
use super::theory::agreement::{Agreement, Shape};
use super::theory::fractional::{TwoWidths, WidthGroup};
use super::theory::{Estimator, PlaceEstimator, variance};
use super::weighted::{Cws, Dart, Icws, Rejection, SimHash, Ties};
use crate::description::Description;

/// The parameters of one sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SketchParams {
    /// The kind of sketch.
    pub kind: SketchKind,
    /// K, components, 16 to 32768 inclusive. For simhash f, bits: 32, 64 or 128; for
    /// fingerprints 64, 128, 192 or 256. Ignored by scaled.
    pub size: usize,
    /// b, stored bits of a component: 1, 2, 4, 8, 16, 32 or 64. For simhash and
    /// fingerprints 1. Ignored by bottom-k, scaled.
    pub bits: usize,
    /// The number of first components that have 2b bits; below K and a multiple of 64; 0 for most sketches.
    pub wide: usize,
    /// Seed of the sketch's hash functions.
    pub seed: u64,
}

impl Default for SketchParams {
    /// That of the pipeline `minhash`: [`SketchKind::Fss`], 448 components of 4 bits, 224 bytes; seed 0.
    fn default() -> Self {
        Self { kind: SketchKind::Fss, size: 448, bits: 4, wide: 0, seed: 0 }
    }
}

impl SketchParams {
    /// The parameters, under these names: kind, size, bits, wide, seed.
    pub(super) fn description(&self, [kind, size, bits, wide, seed]: [&str; 5]) -> Description {
        let all = Description::new()
            .with(kind, self.kind.name())
            .with(size, self.size)
            .with(bits, self.bits)
            .with(wide, self.wide)
            .with(seed, self.seed);
        match self.kind {
            SketchKind::Connected { run } => all.with("sketch.run", run),
            SketchKind::Sectional { sections, mode, base } => {
                let all = all.with("sketch.sections", sections).with("sketch.mode", mode.name());
                // The default is left out, so that sketches made before there was a choice keep their
                // fingerprint.
                if base == SectionBase::Fss { all } else { all.with("sketch.base", base.name()) }
            }
            SketchKind::Rejection { bound } => all.with("sketch.bound", f64::from(bound) / 1000.0),
            SketchKind::SimHash { ties: Ties::Hash } => all.with("sketch.ties", Ties::Hash.name()),
            SketchKind::Scaled { scale, least } => {
                // How values follow from hashes, of which there was another way.
                all.with("sketch.scale", scale).with("sketch.least", least).with("sketch.values", "by word")
            }
            _ => all,
        }
    }

    /// The shape of a sketch that is compared place by place, that is, whose places are exchangeable; `None`
    /// if it is compared as a whole.
    pub fn shape(&self) -> Option<Shape> {
        match self.kind.properties().layout {
            SketchLayout::Parities => {
                Some(Shape { size: self.size * self.bits, bits: 1, agreement: Agreement::Odd(self.bits) })
            }
            _ => self.planes().filter(|_| self.wide == 0),
        }
    }

    /// The shape of the bit planes at the start of a sketch, from which bands can be cut; `None` if it has
    /// none.
    pub fn planes(&self) -> Option<Shape> {
        match self.kind.properties().layout {
            SketchLayout::Values | SketchLayout::Parities | SketchLayout::Bins | SketchLayout::Kept => None,
            SketchLayout::Planes => Some(Shape::components(self.size, self.bits)),
            SketchLayout::Runs(length) => Some(Shape {
                size: self.size / length,
                bits: self.bits * length,
                agreement: Agreement::Run { bits: self.bits, length },
            }),
            SketchLayout::Angles => Some(Shape { size: self.size, bits: 1, agreement: Agreement::Angle }),
            SketchLayout::Given => Some(Shape { size: self.size, bits: 1, agreement: Agreement::Bit }),
        }
    }

    /// Whether the number of agreeing places varies no more than that of independent places, for all texts of
    /// one Jaccard similarity. Early decisions of the filter need this to guarantee bounds on the true
    /// similarity.
    pub fn is_concentrated(&self) -> bool {
        self.kind.properties().is_concentrated
    }

    /// Words of a sketch.
    pub fn words(&self) -> usize {
        match self.kind.properties().layout {
            SketchLayout::Values => self.size,
            SketchLayout::Kept => 1,
            SketchLayout::Parities => (self.size * self.bits).div_ceil(64),
            SketchLayout::Bins => (self.bits + 1) * self.size.div_ceil(64),
            SketchLayout::Planes if self.wide > 0 => self.cuts().iter().map(Cut::words).sum(),
            SketchLayout::Planes | SketchLayout::Runs(_) | SketchLayout::Angles | SketchLayout::Given => {
                self.planes().map_or(0, |all| all.words())
            }
        }
    }

    /// The estimator for two such sketches.
    pub fn estimator(&self) -> Arc<dyn Estimator> {
        let (size, bits) = (self.size, self.bits);
        if let Some(scaled) = self.scaled() {
            return Arc::new(ScaledEstimator(scaled));
        }
        match (self.kind.properties().layout, self.shape()) {
            (SketchLayout::Values, _) => Arc::new(BottomKEstimator { size }),
            (SketchLayout::Bins, _) => Arc::new(OphOriginalEstimator { size, bits }),
            (_, Some(shape)) => Arc::new(PlaceEstimator::new(shape)),
            (_, None) => Arc::new(self.mixed()),
        }
    }

    /// The variance of the estimate by theory, for texts of this similarity with `union` features together;
    /// `None` if it is not known. For a sectional sketch it is the variance with regard to *its* similarity.
    pub fn variance(&self, similarity: f64, union: usize) -> Option<f64> {
        let (size, bits) = (self.size, self.bits);
        let (alpha, is_independent) = match self.kind.properties().spread {
            VarianceLaw::Independent => (1.0, true),
            VarianceLaw::Times(alpha) => (alpha(size, union), false),
            VarianceLaw::Own(variance) => return Some(variance(size, bits, similarity, union)),
            VarianceLaw::Unknown => return None,
        };
        match self.shape() {
            Some(Shape { agreement: Agreement::Bits(_), .. }) => {
                Some(variance::of_bits(alpha, similarity, size, bits))
            }
            Some(Shape { size: n, agreement: Agreement::Odd(_), .. }) => {
                Some(variance::odd(alpha, similarity, size, n))
            }
            Some(shape) => Some(shape.agreement.standard_error(similarity, shape.size).powi(2)),
            // Components of two widths: known only if components are independent.
            None => is_independent.then(|| self.mixed().combined_variance(similarity)),
        }
    }

    /// The standard deviation of the estimate for texts of this similarity with `union` features together:
    /// the root of the [variance](Self::variance), or where it is not known
    /// [what holds for any](crate::sketch::Estimator::standard_error).
    pub fn standard_error(&self, similarity: f64, union: usize) -> f64 {
        let known = self.variance(similarity, union);
        known.map_or_else(|| self.estimator().standard_error(similarity), f64::sqrt)
    }

    /// The components by width.
    fn mixed(&self) -> TwoWidths {
        let narrow = WidthGroup { size: self.size - self.wide, bits: self.bits };
        TwoWidths([narrow, WidthGroup { size: self.wide, bits: 2 * self.bits }])
    }

    /// Makes the sketcher.
    pub fn sketcher(&self) -> Box<dyn Sketcher> {
        let (size, bits, seed) = (self.size, self.bits, self.seed);
        let sampler: Box<dyn Sampler> = match self.kind {
            SketchKind::Fss => Box::new(Fss::new(size, seed)),
            SketchKind::MinHash | SketchKind::Connected { .. } => Box::new(MinHash::new(size, seed)),
            SketchKind::Oph => Box::new(Oph::new(seed)),
            SketchKind::SuperMinHash => Box::new(SuperMinHash::new(size, seed)),
            SketchKind::MinMax => Box::new(MinMax::new(size, seed)),
            SketchKind::Sectional { sections, mode, base } => {
                Box::new(Sectional::new(size, sections, mode, base, seed))
            }
            SketchKind::BottomK => return Box::new(BottomK::new(size, seed)),
            SketchKind::Odd => return Box::new(Odd::new(size, bits, seed)),
            SketchKind::OphOriginal => return Box::new(OphOriginal::new(size, bits, seed)),
            SketchKind::SimHash { ties } => return Box::new(SimHash::new(size, ties, seed)),
            SketchKind::Fingerprint => return Box::new(Fingerprint { size }),
            SketchKind::Scaled { scale, least } => return Box::new(Scaled::new(scale, least, seed)),
            SketchKind::Dart => Box::new(Dart::new(size, seed)),
            SketchKind::Icws => Box::new(Icws::new(size, seed)),
            SketchKind::Cws => Box::new(Cws::new(size, seed)),
            SketchKind::Rejection { bound } => {
                Box::new(Rejection::new(size, f64::from(bound) / 1000.0, seed))
            }
        };
        let by_word = self.planes().is_some_and(|places| places.by_word());
        Box::new(Packed::new(sampler, size, self.cuts(), by_word))
    }

    /// Which values are kept; `None` if the sketch is not scaled.
    pub fn scaled(&self) -> Option<Scaled> {
        match self.kind {
            SketchKind::Scaled { scale, least } => Some(Scaled::new(scale, least, self.seed)),
            _ => None,
        }
    }

    /// How components are cut into planes.
    fn cuts(&self) -> Vec<Cut> {
        match self.kind.properties().layout {
            // The components of a place are `places` apart; the law does not depend on which components make
            // a run.
            SketchLayout::Runs(length) => {
                let places = self.size / length;
                let cut = |i| Cut {
                    components: i * places..(i + 1) * places,
                    bits: 0..self.bits,
                    at: i * self.bits,
                    stride: length * self.bits,
                };
                (0..length).map(cut).collect()
            }
            _ => {
                let b = self.bits;
                let all = Cut { components: 0..self.size, bits: 0..b, at: 0, stride: b };
                let wide = Cut { components: 0..self.wide, bits: b..2 * b, at: all.words(), stride: b };
                if self.wide == 0 { vec![all] } else { vec![all, wide] }
            }
        }
    }
}
