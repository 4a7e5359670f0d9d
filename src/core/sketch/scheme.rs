//! The scheme: all parameters of a sketch, and what follows from them (fingerprint, layout, estimator).

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::agreement::{Agreement, Shape};
use super::bits::{Cut, Packed};
use super::bottom_k::{BottomK, BottomKEstimator};
use super::estimate::standard_error;
use super::estimator::{Estimator, PlaceEstimator};
use super::fractional::{TwoWidths, WidthGroup};
use super::oph::{Oph, OphOriginal, OphOriginalEstimator};
use super::sectional::{SectionBase, SectionMode, Sectional};
use super::{
    Cws, Dart, Fss, Icws, MinHash, MinMax, Odd, Rejection, Sampler, SimHash, Sketcher, SuperMinHash, variance,
};
use crate::description::Description;
use crate::pair::{Evidence, Similarity};
use crate::text::measures::Measure;
use crate::text::{Growth, Idf, IdfTable, TextRules, Weights};

/// The version of the hashes, the sketch layout and the sketch ids of this program.
pub const VERSION: u32 = 4;

/// The kinds of sketches.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SketchKind {
    /// Fast similarity sketching (Dahlgaard, Knudsen and Thorup 2017).
    Fss,
    /// K independent minima (Broder 1997): the reference; slow.
    MinHash,
    /// One permutation hashing with optimal densification (Shrivastava 2017).
    Oph,
    /// One permutation hashing with its empty bins and its original estimator (Li, Owen and Zhang 2012).
    OphOriginal,
    /// SuperMinHash (Ertl 2017).
    SuperMinHash,
    /// The k least hash values (Broder 1997).
    BottomK,
    /// K/2 minima and maxima (Ji et al. 2013).
    MinMax,
    /// Odd sketch, of `bits` bits for each component (Mitzenmacher, Pagh and Pham 2014).
    Odd,
    /// Connected bits (Tang et al. 2015): places are runs of MinHash components, all of which must be equal.
    /// The law requires independent components, which MinHash has.
    Connected {
        /// n, components in a run; at least 2, and `n * bits` at most 64.
        run: usize,
    },
    /// Sectional sketch (Hassanian-esfahani and Kargar 2018): a similarity that depends on the order of
    /// features.
    Sectional {
        /// s, at least 1.
        sections: usize,
        /// How the section of a feature enters a component.
        mode: SectionMode,
        /// The sampler of features.
        base: SectionBase,
    },
    /// Darts (Christiani 2020): the recommended weighted sketch.
    Dart,
    /// Improved consistent weighted sampling (Ioffe 2010): the reference for weighted sketches; slow.
    Icws,
    /// Consistent weighted sampling by exponential intervals (Manasse, McSherry and Talwar 2010); slow.
    Cws,
    /// Rejection sampling (Shrivastava 2016), for weights up to a bound.
    Rejection {
        /// M, the greatest weight, in thousandths; at least 1. Larger weights count as M.
        bound: u32,
    },
    /// Signs of weighted votes (Charikar 2002), for cosine similarity.
    #[serde(rename = "simhash")]
    SimHash,
}

impl SketchKind {
    /// All kinds with their default parameters: sketches of sets, of weights, of angles.
    pub const ALL: [Self; 15] = [
        Self::Fss,
        Self::MinHash,
        Self::Oph,
        Self::OphOriginal,
        Self::SuperMinHash,
        Self::BottomK,
        Self::MinMax,
        Self::Odd,
        Self::Connected { run: 2 },
        Self::Sectional { sections: 2, mode: SectionMode::Attach, base: SectionBase::Fss },
        Self::Dart,
        Self::Icws,
        Self::Cws,
        Self::Rejection { bound: 16_000 },
        Self::SimHash,
    ];

    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        self.properties().name
    }

    /// The similarity that such sketches estimate; approximately, for sectional sketches.
    pub fn measure(self) -> Measure {
        self.properties().measure
    }

    /// Properties of all sketches of this kind. Only this function and [`SketchParams::sketcher`] match on
    /// the kind.
    fn properties(self) -> KindProperties {
        use Measure::{Cosine, Jaccard, WeightedJaccard};
        use SketchLayout::{Angles, Bins, Parities, Planes, Runs, Values};
        let alpha: VarianceLaw = VarianceLaw::Times(variance::alpha);
        let (name, measure, layout, is_concentrated, spread) = match self {
            Self::Fss => ("fss", Jaccard, Planes, true, alpha),
            Self::MinHash => ("minhash", Jaccard, Planes, true, VarianceLaw::Independent),
            // Bins are copied, so the number of agreeing places varies more.
            Self::Oph => {
                let densified = |size, union| variance::densified_alpha(union, size);
                ("oph", Jaccard, Planes, false, VarianceLaw::Times(densified))
            }
            Self::OphOriginal => {
                let bins: fn(&SketchParams, f64, usize) -> f64 =
                    |of, similarity, union| variance::one_permutation(similarity, union, of.size, of.bits);
                ("oph-original", Jaccard, Bins, false, VarianceLaw::Own(bins))
            }
            Self::SuperMinHash => ("superminhash", Jaccard, Planes, true, alpha),
            Self::BottomK => {
                let values: fn(&SketchParams, f64, usize) -> f64 =
                    |of, similarity, union| variance::bottom_k(similarity, union, of.size);
                ("bottom-k", Jaccard, Values, false, VarianceLaw::Own(values))
            }
            Self::MinMax => {
                let pairs = |size, union| variance::min_max_alpha(union, size);
                ("min-max", Jaccard, Planes, true, VarianceLaw::Times(pairs))
            }
            // Places exist only in the difference of two sketches.
            Self::Odd => ("odd", Jaccard, Parities, false, alpha),
            Self::Connected { run } => ("connected", Jaccard, Runs(run), true, VarianceLaw::Independent),
            // Estimates another similarity than Jaccard.
            Self::Sectional { base, .. } => {
                let spread = match base {
                    SectionBase::Fss => alpha,
                    SectionBase::MinHash => VarianceLaw::Independent,
                };
                ("sectional", Jaccard, Planes, false, spread)
            }
            Self::Dart => ("dart", WeightedJaccard, Planes, true, VarianceLaw::Independent),
            Self::Icws => ("icws", WeightedJaccard, Planes, true, VarianceLaw::Independent),
            Self::Cws => ("cws", WeightedJaccard, Planes, true, VarianceLaw::Independent),
            Self::Rejection { .. } => ("rejection", WeightedJaccard, Planes, true, VarianceLaw::Independent),
            // The law holds for many features of similar weight.
            Self::SimHash => ("simhash", Cosine, Angles, false, VarianceLaw::Independent),
        };
        KindProperties { name, measure, layout, is_concentrated, spread }
    }
}

/// Properties of all sketches of a kind.
struct KindProperties {
    /// The name in a pipeline file.
    name: &'static str,
    /// The estimated similarity.
    measure: Measure,
    /// The content of the words.
    layout: SketchLayout,
    /// See [`SketchParams::is_concentrated`].
    is_concentrated: bool,
    /// The variance of estimates.
    spread: VarianceLaw,
}

/// The content of the words of a sketch.
enum SketchLayout {
    /// Components: bit planes, or words.
    Planes,
    /// Runs of this many components: bit planes, or words.
    Runs(usize),
    /// A plane of signs.
    Angles,
    /// A plane of parities; no band can be cut from it.
    Parities,
    /// Values without fixed places.
    Values,
    /// Bit planes of bins, and a plane of the bins that are filled.
    Bins,
}

/// The variance of estimates.
enum VarianceLaw {
    /// That of independent places.
    Independent,
    /// That of independent components, times a function of K and of the number of features of both texts
    /// together.
    Times(fn(usize, usize) -> f64),
    /// A function of the parameters, the similarity, and the number of features of both texts together.
    Own(fn(&SketchParams, f64, usize) -> f64),
}

/// All parameters of a sketch. Sketches of different schemes are never compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scheme {
    /// Version of the hash family and of the layout; raised when a golden vector changes.
    pub version: u32,
    /// Text to features.
    pub text: TextRules,
    /// The sketch.
    #[serde(flatten)]
    pub sketch: SketchParams,
    /// A second sketch, stored after the first, from which blocks are made if the first does not allow it.
    pub blocks: Option<SketchParams>,
    /// Whether the features are stored with the sketch, for exact verification.
    pub exact: bool,
}

/// The parameters of one sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SketchParams {
    /// The kind of sketch.
    pub kind: SketchKind,
    /// K, components, 16 to 32768 inclusive. For simhash f, bits: 32, 64 or 128.
    pub size: usize,
    /// b, stored bits of a component: 1, 2, 4, 8, 16, 32 or 64. For simhash 1. Ignored by bottom-k.
    pub bits: usize,
    /// The number of first components that have 2b bits; below K and a multiple of 64; 0 for most sketches.
    pub wide: usize,
    /// Seed of the sketch's hash functions.
    pub seed: u64,
}

impl Scheme {
    /// All fields by name, in a form that never changes. It is stored with the state of a run, and a restart
    /// compares it ([`Description::differences`]). Names are the keys of pipeline files where there is a key.
    /// A frozen table is described by its fingerprint.
    pub fn description(&self) -> Description {
        let sketch = self.sketch.description([
            "sketch.kind",
            "sketch.size",
            "sketch.bits",
            "sketch.wide",
            "sketch.seed",
        ]);
        let names = ["blocking.sketch", "blocking.size", "blocking.bits", "blocking.wide", "blocking.seed"];
        let blocks = self.blocks.map_or_else(
            || Description::new().with("blocking.sketch", "none"),
            |blocks| blocks.description(names),
        );
        Description::new()
            .with("scheme.version", self.version)
            .with("scheme.features", if self.exact { "kept" } else { "dropped" })
            .and(self.text.description())
            .and(sketch)
            .and(blocks)
    }

    /// Stable 64-bit hash of the [description](Self::description). Equal schemes have equal fingerprints, on
    /// every machine.
    pub fn fingerprint(&self) -> u64 {
        self.description().fingerprint()
    }

    /// Words of a sketch, including a separate block sketch.
    pub fn words(&self) -> usize {
        self.sketch.words() + self.blocks.map_or(0, |blocks| blocks.words())
    }

    /// The range of words from which blocks are made: the planes of the block sketch.
    pub fn block_words(&self) -> Range<usize> {
        let start = self.blocks.map_or(0, |_| self.sketch.words());
        start..start + self.block_sketch().planes().map_or(0, |planes| planes.words())
    }

    /// The similarity that decides pairs. A weighted sketch of features with equal weights has the plain
    /// Jaccard similarity.
    pub fn measure(&self) -> Measure {
        match (self.sketch.kind.measure(), &self.text.weights) {
            (Measure::WeightedJaccard, Weights::Unit) => Measure::Jaccard,
            (measure, _) => measure,
        }
    }

    /// The standard error of a pair's similarity, given its evidence. 0 if the similarity is exact: for
    /// copies, and where features are compared.
    pub fn standard_error(&self, similarity: Similarity, evidence: Evidence) -> f64 {
        if self.exact || evidence.look == 0 {
            return 0.0;
        }
        standard_error(similarity.get(), self.sketch.size, self.sketch.bits)
    }

    /// When document frequencies are counted again; `None` if weights do not use live document frequencies.
    pub fn live(&self) -> Option<Growth> {
        match self.text.weights {
            Weights::TfIdf(Idf::Live(growth), _) => Some(growth),
            _ => None,
        }
    }

    /// A live scheme while this table is in force: the same scheme with the table frozen. Other schemes are
    /// returned unchanged.
    pub fn under(&self, table: Arc<IdfTable>) -> Self {
        let mut scheme = self.clone();
        if let Weights::TfIdf(idf @ Idf::Live(_), _) = &mut scheme.text.weights {
            *idf = Idf::Frozen(table);
        }
        scheme
    }

    /// The parameters of the sketch from which blocks are made.
    pub fn block_sketch(&self) -> SketchParams {
        self.blocks.unwrap_or(self.sketch)
    }
}

impl SketchParams {
    /// The parameters, under these names: kind, size, bits, wide, seed.
    fn description(&self, [kind, size, bits, wide, seed]: [&str; 5]) -> Description {
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
            SketchLayout::Values | SketchLayout::Parities | SketchLayout::Bins => None,
            SketchLayout::Planes => Some(Shape::components(self.size, self.bits)),
            SketchLayout::Runs(length) => Some(Shape {
                size: self.size / length,
                bits: self.bits * length,
                agreement: Agreement::Run { bits: self.bits, length },
            }),
            SketchLayout::Angles => Some(Shape { size: self.size, bits: 1, agreement: Agreement::Angle }),
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
            SketchLayout::Parities => (self.size * self.bits).div_ceil(64),
            SketchLayout::Bins => (self.bits + 1) * self.size.div_ceil(64),
            SketchLayout::Planes if self.wide > 0 => self.cuts().iter().map(Cut::words).sum(),
            SketchLayout::Planes | SketchLayout::Runs(_) | SketchLayout::Angles => {
                self.planes().map_or(0, |all| all.words())
            }
        }
    }

    /// The estimator for two such sketches.
    pub fn estimator(&self) -> Arc<dyn Estimator> {
        let (size, bits) = (self.size, self.bits);
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
            VarianceLaw::Own(variance) => return Some(variance(self, similarity, union)),
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
            SketchKind::SimHash => return Box::new(SimHash::new(size, seed)),
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
