//! What decides a sketch, and what follows from it: fingerprint, layout, estimator.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::agreement::{Agreement, Shape};
use super::bits::{Cut, Packed};
use super::bottom_k::{BottomK, Sample};
use super::estimate::standard_error;
use super::estimator::{Estimator, Matches};
use super::fractional::{Mixed, Part};
use super::oph::{Oph, OphOriginal, Original};
use super::sectional::{SectionBase, SectionMode, Sectional};
use super::{
    Cws, Dart, Fss, Icws, MinHash, MinMax, Odd, Rejection, Sampler, SimHash, Sketcher, SuperMinHash, variance,
};
use crate::description::Description;
use crate::pair::{Evidence, Similarity};
use crate::text::measures::Measure;
use crate::text::{Growth, Idf, IdfTable, TextRules, Weights};

/// The version of hashes, of sketch layout and of sketch ids that this program makes.
pub const VERSION: u32 = 4;

/// The sketches that can be made.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum SketchKind {
    /// Fast similarity sketching (Dahlgaard, Knudsen and Thorup 2017).
    Fss,
    /// K independent minima (Broder 1997): the reference, slow.
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
    /// Connected bits: places are runs of MinHash components, all of which must be equal (Tang et al. 2015).
    /// The law needs components that are independent, as MinHash's are.
    Connected {
        /// n, components of a run; at least 2, and `n * bits` at most 64.
        run: usize,
    },
    /// Sectional sketch (Hassanian-esfahani and Kargar 2018): a similarity that minds the order of features.
    Sectional {
        /// s, at least 1.
        sections: usize,
        /// How sections enter a component.
        mode: SectionMode,
        /// What samples the features.
        base: SectionBase,
    },
    /// Darts (Christiani 2020): the weighted sketch of choice.
    Dart,
    /// Improved consistent weighted sampling (Ioffe 2010): the oracle of weighted sketches, slow.
    Icws,
    /// Consistent weighted sampling by exponential intervals (Manasse, McSherry and Talwar 2010), slow.
    Cws,
    /// Rejection sampling (Shrivastava 2016), of weights up to a bound.
    Rejection {
        /// M, the greatest weight, in thousandths; at least 1. What weighs more counts as much.
        bound: u32,
    },
    /// Signs of weighted votes (Charikar 2002), for the cosine.
    #[serde(rename = "simhash")]
    SimHash,
}

impl SketchKind {
    /// Every kind, with the parameters that it has by default: sketches of sets, of weights, of angles.
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
        self.traits().name
    }

    /// What such sketches are estimates of; of a sectional one it is near.
    pub fn measure(self) -> Measure {
        self.traits().measure
    }

    /// What is true of all sketches of this kind: the one place that tells the kinds apart, beside
    /// [`SketchParams::sketcher`].
    fn traits(self) -> Traits {
        use Layout::{Angles, Bins, Parities, Planes, Runs, Values};
        use Measure::{Cosine, Jaccard, WeightedJaccard};
        let alpha: Spread = Spread::Times(variance::alpha);
        let (name, measure, layout, is_concentrated, spread) = match self {
            Self::Fss => ("fss", Jaccard, Planes, true, alpha),
            Self::MinHash => ("minhash", Jaccard, Planes, true, Spread::Independent),
            // Bins are copied.
            Self::Oph => {
                let densified = |size, union| variance::densified_alpha(union, size);
                ("oph", Jaccard, Planes, false, Spread::Times(densified))
            }
            Self::OphOriginal => {
                let bins: fn(&SketchParams, f64, usize) -> f64 =
                    |of, similarity, union| variance::one_permutation(similarity, union, of.size, of.bits);
                ("oph-original", Jaccard, Bins, false, Spread::Own(bins))
            }
            Self::SuperMinHash => ("superminhash", Jaccard, Planes, true, alpha),
            Self::BottomK => {
                let values: fn(&SketchParams, f64, usize) -> f64 =
                    |of, similarity, union| variance::bottom_k(similarity, union, of.size);
                ("bottom-k", Jaccard, Values, false, Spread::Own(values))
            }
            Self::MinMax => {
                let pairs = |size, union| variance::min_max_alpha(union, size);
                ("min-max", Jaccard, Planes, true, Spread::Times(pairs))
            }
            // The places are of the differences of two sketches.
            Self::Odd => ("odd", Jaccard, Parities, false, alpha),
            Self::Connected { run } => ("connected", Jaccard, Runs(run), true, Spread::Independent),
            // Another similarity.
            Self::Sectional { base, .. } => {
                let spread = match base {
                    SectionBase::Fss => alpha,
                    SectionBase::MinHash => Spread::Independent,
                };
                ("sectional", Jaccard, Planes, false, spread)
            }
            Self::Dart => ("dart", WeightedJaccard, Planes, true, Spread::Independent),
            Self::Icws => ("icws", WeightedJaccard, Planes, true, Spread::Independent),
            Self::Cws => ("cws", WeightedJaccard, Planes, true, Spread::Independent),
            Self::Rejection { .. } => ("rejection", WeightedJaccard, Planes, true, Spread::Independent),
            // A law that holds for many features of like weight.
            Self::SimHash => ("simhash", Cosine, Angles, false, Spread::Independent),
        };
        Traits { name, measure, layout, is_concentrated, spread }
    }
}

/// What is true of all sketches of a kind.
struct Traits {
    /// In a pipeline file.
    name: &'static str,
    /// What is estimated.
    measure: Measure,
    /// What the words hold.
    layout: Layout,
    /// See [`SketchParams::is_concentrated`].
    is_concentrated: bool,
    /// How far estimates spread.
    spread: Spread,
}

/// What the words of a sketch hold.
enum Layout {
    /// Components: bit planes, or words.
    Planes,
    /// The same of runs of so many components.
    Runs(usize),
    /// A plane of signs.
    Angles,
    /// A plane of parities, from which no band can be cut.
    Parities,
    /// Values that stand at no fixed place.
    Values,
    /// Bit planes of components, and one that says which of them are there.
    Bins,
}

/// The variance of estimates.
enum Spread {
    /// That of independent places.
    Independent,
    /// That of independent components, times a function of K and of the features of both texts.
    Times(fn(usize, usize) -> f64),
    /// By the similarity and the features of both texts.
    Own(fn(&SketchParams, f64, usize) -> f64),
}

/// Everything that decides a sketch. Sketches of different schemes are never compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scheme {
    /// Version of the hash family and of the layout; raised when a golden vector changes.
    pub version: u32,
    /// Text to features.
    pub text: TextRules,
    /// Which sketch, how large, and its seed.
    #[serde(flatten)]
    pub sketch: SketchParams,
    /// A second sketch, stored behind the first, that blocks are made of where the first has none to give.
    pub blocks: Option<SketchParams>,
    /// Whether the features are kept beside the sketch, for exact verification.
    pub exact: bool,
}

/// The parameters of one sketch.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct SketchParams {
    /// Which sketch.
    pub kind: SketchKind,
    /// K, components, 16 to 32768 inclusive; of simhash f, bits: 32, 64 or 128.
    pub size: usize,
    /// b, stored bits of a component: 1, 2, 4, 8, 16, 32 or 64; of simhash 1. Of no effect for bottom-k.
    pub bits: usize,
    /// The first components, so many, have 2b bits; below K and a multiple of 64, 0 for most sketches.
    pub wide: usize,
    /// Seed of the sketch's hash functions.
    pub seed: u64,
}

impl Scheme {
    /// All fields by name, in a form that never changes: what state of this scheme is stored with, and
    /// compared by ([`Description::differences`]). Names are those of keys in pipeline files where there is a
    /// key; a frozen table is told by its fingerprint.
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

    /// Stable 64-bit hash of the [description](Self::description): equal schemes have equal fingerprints, on
    /// every machine.
    pub fn fingerprint(&self) -> u64 {
        self.description().fingerprint()
    }

    /// Words of a sketch, those of the blocks' own sketch included.
    pub fn words(&self) -> usize {
        self.sketch.words() + self.blocks.map_or(0, |blocks| blocks.words())
    }

    /// The words that blocks are made of: the planes of the blocks' sketch.
    pub fn block_words(&self) -> Range<usize> {
        let start = self.blocks.map_or(0, |_| self.sketch.words());
        start..start + self.block_sketch().planes().map_or(0, |planes| planes.words())
    }

    /// What similarity means. Weighted sketches of features that all weigh the same are of the plain Jaccard
    /// similarity.
    pub fn measure(&self) -> Measure {
        match (self.sketch.kind.measure(), &self.text.weights) {
            (Measure::WeightedJaccard, Weights::Unit) => Measure::Jaccard,
            (measure, _) => measure,
        }
    }

    /// The standard error of a pair's similarity, by its evidence; 0 where it is no estimate, of copies and
    /// where features are compared.
    pub fn standard_error(&self, similarity: Similarity, evidence: Evidence) -> f64 {
        if self.exact || evidence.look == 0 {
            return 0.0;
        }
        standard_error(similarity.get(), self.sketch.size, self.sketch.bits)
    }

    /// When the document frequencies that weights are made of are counted anew; `None` where they never are.
    pub fn live(&self) -> Option<Growth> {
        match self.text.weights {
            Weights::TfIdf(Idf::Live(growth), _) => Some(growth),
            _ => None,
        }
    }

    /// A live scheme while this table is in force: the same scheme, with the table frozen. Other schemes as
    /// they are.
    pub fn under(&self, table: Arc<IdfTable>) -> Self {
        let mut scheme = self.clone();
        if let Weights::TfIdf(idf @ Idf::Live(_), _) = &mut scheme.text.weights {
            *idf = Idf::Frozen(table);
        }
        scheme
    }

    /// The sketch that blocks are made of.
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
                // Sketches that were made before there was a choice keep their fingerprint.
                if base == SectionBase::Fss { all } else { all.with("sketch.base", base.name()) }
            }
            SketchKind::Rejection { bound } => all.with("sketch.bound", f64::from(bound) / 1000.0),
            _ => all,
        }
    }

    /// The shape of a sketch that is compared place by place, which exchangeable places allow; `None` for one
    /// that is compared as a whole.
    pub fn shape(&self) -> Option<Shape> {
        match self.kind.traits().layout {
            Layout::Parities => {
                Some(Shape { size: self.size * self.bits, bits: 1, agreement: Agreement::Odd(self.bits) })
            }
            _ => self.planes().filter(|_| self.wide == 0),
        }
    }

    /// The shape of the bit planes that a sketch begins with, from which bands can be cut; `None` for one
    /// without.
    pub fn planes(&self) -> Option<Shape> {
        match self.kind.traits().layout {
            Layout::Values | Layout::Parities | Layout::Bins => None,
            Layout::Planes => Some(Shape::components(self.size, self.bits)),
            Layout::Runs(length) => Some(Shape {
                size: self.size / length,
                bits: self.bits * length,
                agreement: Agreement::Run { bits: self.bits, length },
            }),
            Layout::Angles => Some(Shape { size: self.size, bits: 1, agreement: Agreement::Angle }),
        }
    }

    /// Whether the number of places that agree varies no more than that of independent ones, between texts of
    /// one Jaccard similarity: what early looks need, to promise something about true similarity.
    pub fn is_concentrated(&self) -> bool {
        self.kind.traits().is_concentrated
    }

    /// Words of a sketch.
    pub fn words(&self) -> usize {
        match self.kind.traits().layout {
            Layout::Values => self.size,
            Layout::Parities => (self.size * self.bits).div_ceil(64),
            Layout::Bins => (self.bits + 1) * self.size.div_ceil(64),
            Layout::Planes if self.wide > 0 => self.cuts().iter().map(Cut::words).sum(),
            Layout::Planes | Layout::Runs(_) | Layout::Angles => self.planes().map_or(0, |all| all.words()),
        }
    }

    /// Estimates from two such sketches.
    pub fn estimator(&self) -> Arc<dyn Estimator> {
        let (size, bits) = (self.size, self.bits);
        match (self.kind.traits().layout, self.shape()) {
            (Layout::Values, _) => Arc::new(Sample { size }),
            (Layout::Bins, _) => Arc::new(Original { size, bits }),
            (_, Some(shape)) => Arc::new(Matches::new(shape)),
            (_, None) => Arc::new(self.mixed()),
        }
    }

    /// The variance of the estimate, as theory has it, for texts of this similarity with `union` features
    /// together; `None` where none is known. Of a sectional sketch it is that of *its* similarity.
    pub fn variance(&self, similarity: f64, union: usize) -> Option<f64> {
        let (size, bits) = (self.size, self.bits);
        let (alpha, is_independent) = match self.kind.traits().spread {
            Spread::Independent => (1.0, true),
            Spread::Times(alpha) => (alpha(size, union), false),
            Spread::Own(variance) => return Some(variance(self, similarity, union)),
        };
        match self.shape() {
            Some(Shape { agreement: Agreement::Bits(_), .. }) => {
                Some(variance::of_bits(alpha, similarity, size, bits))
            }
            Some(Shape { size: n, agreement: Agreement::Odd(_), .. }) => {
                Some(variance::odd(alpha, similarity, size, n))
            }
            Some(shape) => Some(shape.agreement.standard_error(similarity, shape.size).powi(2)),
            // Components of two widths: known where they are independent.
            None => is_independent.then(|| self.mixed().combined_variance(similarity)),
        }
    }

    /// The components by width.
    fn mixed(&self) -> Mixed {
        let narrow = Part { size: self.size - self.wide, bits: self.bits };
        Mixed([narrow, Part { size: self.wide, bits: 2 * self.bits }])
    }

    /// Makes such sketches.
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

    /// How components become planes.
    fn cuts(&self) -> Vec<Cut> {
        match self.kind.traits().layout {
            // A place's components are as far apart as there are places: which ones make a run has no part in
            // the law.
            Layout::Runs(length) => {
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
