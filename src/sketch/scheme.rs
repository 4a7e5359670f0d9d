//! What decides a sketch, and what follows from it: fingerprint, layout, estimator.

use std::ops::Range;
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::agreement::{Agreement, Shape};
use super::bits::{Cut, Packed};
use super::bottom_k::{BottomK, Sample};
use super::estimator::{Estimator, Matches};
use super::fractional::{Mixed, Part};
use super::oph::{Oph, OphOriginal, Original};
use super::sectional::{SectionMode, Sectional};
use super::{Cws, Dart, Fss, Icws, MinHash, MinMax, Odd, Sampler, SimHash, Sketcher, SuperMinHash, variance};
use crate::hash;
use crate::text::measures::Measure;
use crate::text::{Growth, Idf, IdfTable, TextRules, Weights};

/// The version of hashes and sketch layout that this program makes.
pub const VERSION: u32 = 2;

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
    /// Connected bits: places are runs of MinHash components, all of which must be equal (Tang et al. 2015). The law needs
    /// components that are independent, as MinHash's are.
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
    },
    /// Darts (Christiani 2020): the weighted sketch of choice.
    Dart,
    /// Improved consistent weighted sampling (Ioffe 2010): the oracle of weighted sketches, slow.
    Icws,
    /// Consistent weighted sampling by exponential intervals (Manasse, McSherry and Talwar 2010), slow.
    Cws,
    /// Signs of weighted votes (Charikar 2002), for the cosine.
    #[serde(rename = "simhash")]
    SimHash,
}

impl SketchKind {
    /// Every kind, with the parameters that it has by default: sketches of sets, of weights, of angles.
    pub const ALL: [Self; 14] = [
        Self::Fss,
        Self::MinHash,
        Self::Oph,
        Self::OphOriginal,
        Self::SuperMinHash,
        Self::BottomK,
        Self::MinMax,
        Self::Odd,
        Self::Connected { run: 2 },
        Self::Sectional { sections: 2, mode: SectionMode::Attach },
        Self::Dart,
        Self::Icws,
        Self::Cws,
        Self::SimHash,
    ];

    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Fss => "fss",
            Self::MinHash => "minhash",
            Self::Oph => "oph",
            Self::OphOriginal => "oph-original",
            Self::SuperMinHash => "superminhash",
            Self::BottomK => "bottom-k",
            Self::MinMax => "min-max",
            Self::Odd => "odd",
            Self::Connected { .. } => "connected",
            Self::Sectional { .. } => "sectional",
            Self::Dart => "dart",
            Self::Icws => "icws",
            Self::Cws => "cws",
            Self::SimHash => "simhash",
        }
    }

    /// What such sketches are estimates of; of a sectional one it is near.
    pub fn measure(self) -> Measure {
        match self {
            Self::Dart | Self::Icws | Self::Cws => Measure::WeightedJaccard,
            Self::SimHash => Measure::Cosine,
            _ => Measure::Jaccard,
        }
    }
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
    /// Stable 64-bit hash of all fields: equal schemes have equal fingerprints, on every machine.
    pub fn fingerprint(&self) -> u64 {
        hash::bytes(0, format!("{self:?}").as_bytes())
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

    /// What similarity means. Weighted sketches of features that all weigh the same are of the plain Jaccard similarity.
    pub fn measure(&self) -> Measure {
        match (self.sketch.kind.measure(), &self.text.weights) {
            (Measure::WeightedJaccard, Weights::Unit) => Measure::Jaccard,
            (measure, _) => measure,
        }
    }

    /// When the document frequencies that weights are made of are counted anew; `None` where they never are.
    pub fn live(&self) -> Option<Growth> {
        match self.text.weights {
            Weights::TfIdf(Idf::Live(growth), _) => Some(growth),
            _ => None,
        }
    }

    /// A live scheme while this table is in force: the same scheme, with the table frozen. Other schemes as they are.
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
    /// The shape of a sketch that is compared place by place, which exchangeable places allow; `None` for one that is
    /// compared as a whole.
    pub fn shape(&self) -> Option<Shape> {
        match self.kind {
            SketchKind::Odd => {
                Some(Shape { size: self.size * self.bits, bits: 1, agreement: Agreement::Odd(self.bits) })
            }
            _ => self.planes().filter(|_| self.wide == 0),
        }
    }

    /// The shape of the bit planes that a sketch begins with, from which bands can be cut; `None` for one without.
    pub fn planes(&self) -> Option<Shape> {
        match self.kind {
            SketchKind::BottomK | SketchKind::Odd | SketchKind::OphOriginal => None,
            SketchKind::SimHash => Some(Shape { size: self.size, bits: 1, agreement: Agreement::Angle }),
            SketchKind::Connected { run } => Some(Shape {
                size: self.size / run,
                bits: self.bits * run,
                agreement: Agreement::Run { bits: self.bits, length: run },
            }),
            _ => Some(Shape::components(self.size, self.bits)),
        }
    }

    /// Whether the number of places that agree varies no more than that of independent ones, between texts of one Jaccard
    /// similarity: what early looks need, to promise something about true similarity.
    pub fn is_concentrated(&self) -> bool {
        match self.kind {
            SketchKind::Fss | SketchKind::MinHash | SketchKind::SuperMinHash | SketchKind::MinMax => true,
            SketchKind::Connected { .. } | SketchKind::Dart | SketchKind::Icws | SketchKind::Cws => true,
            // Copies of bins; the differences of an odd sketch; another similarity; a law that holds for many features.
            SketchKind::Oph | SketchKind::Odd | SketchKind::Sectional { .. } | SketchKind::SimHash => false,
            SketchKind::BottomK | SketchKind::OphOriginal => false,
        }
    }

    /// Words of a sketch.
    pub fn words(&self) -> usize {
        match self.kind {
            SketchKind::BottomK => self.size,
            SketchKind::Odd => (self.size * self.bits).div_ceil(64),
            SketchKind::OphOriginal => (self.bits + 1) * self.size.div_ceil(64),
            _ => self.cuts().iter().map(Cut::words).sum(),
        }
    }

    /// Estimates from two such sketches.
    pub fn estimator(&self) -> Arc<dyn Estimator> {
        let (size, bits) = (self.size, self.bits);
        match (self.kind, self.shape()) {
            (SketchKind::BottomK, _) => Arc::new(Sample { size }),
            (SketchKind::OphOriginal, _) => Arc::new(Original { size, bits }),
            (_, Some(shape)) => Arc::new(Matches::new(shape)),
            (_, None) => Arc::new(self.mixed()),
        }
    }

    /// The variance of the estimate, as theory has it, for texts of this similarity with `union` features together; `None` where
    /// none is known. Of a sectional sketch it is that of *its* similarity.
    pub fn variance(&self, similarity: f64, union: usize) -> Option<f64> {
        let (size, bits) = (self.size, self.bits);
        let alpha = match self.kind {
            SketchKind::Fss | SketchKind::SuperMinHash | SketchKind::Odd | SketchKind::Sectional { .. } => {
                variance::alpha(size, union)
            }
            SketchKind::Oph => variance::densified_alpha(union, size),
            SketchKind::MinMax => variance::min_max_alpha(union, size),
            SketchKind::MinHash | SketchKind::Connected { .. } => 1.0,
            SketchKind::Dart | SketchKind::Icws | SketchKind::Cws | SketchKind::SimHash => 1.0,
            SketchKind::OphOriginal => {
                return Some(variance::one_permutation(similarity, union, size, bits));
            }
            SketchKind::BottomK => return Some(variance::bottom_k(similarity, union, size)),
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
            None => {
                matches!(self.kind, SketchKind::MinHash).then(|| self.mixed().combined_variance(similarity))
            }
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
            SketchKind::Sectional { sections, mode } => Box::new(Sectional::new(size, sections, mode, seed)),
            SketchKind::BottomK => return Box::new(BottomK::new(size, seed)),
            SketchKind::Odd => return Box::new(Odd::new(size, bits, seed)),
            SketchKind::OphOriginal => return Box::new(OphOriginal::new(size, bits, seed)),
            SketchKind::SimHash => return Box::new(SimHash::new(size, seed)),
            SketchKind::Dart => Box::new(Dart::new(size, seed)),
            SketchKind::Icws => Box::new(Icws::new(size, seed)),
            SketchKind::Cws => Box::new(Cws::new(size, seed)),
        };
        Box::new(Packed::new(sampler, size, self.cuts()))
    }

    /// How components become planes.
    fn cuts(&self) -> Vec<Cut> {
        match self.kind {
            // A place's components are as far apart as there are places: which ones make a run has no part in the law.
            SketchKind::Connected { run } => {
                let places = self.size / run;
                (0..run)
                    .map(|i| Cut { components: i * places..(i + 1) * places, bits: 0..self.bits })
                    .collect()
            }
            _ => {
                let all = Cut { components: 0..self.size, bits: 0..self.bits };
                let wide = Cut { components: 0..self.wide, bits: self.bits..2 * self.bits };
                if self.wide == 0 { vec![all] } else { vec![all, wide] }
            }
        }
    }
}
