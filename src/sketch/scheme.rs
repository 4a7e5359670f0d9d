//! What decides a sketch, and what follows from it: fingerprint, layout, estimator.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::agreement::{Agreement, Shape};
use super::estimator::{Estimator, Matches};
use super::{Cws, Dart, Fss, Icws, MinHash, Packed, SimHash, Sketcher};
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
    /// What such sketches are estimates of.
    pub fn measure(self) -> Measure {
        match self {
            Self::Fss | Self::MinHash => Measure::Jaccard,
            Self::Dart | Self::Icws | Self::Cws => Measure::WeightedJaccard,
            Self::SimHash => Measure::Cosine,
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
    /// b, stored bits of a component: 1, 2, 4, 8, 16, 32 or 64; of simhash 1.
    pub bits: usize,
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

    /// The words that blocks are made of.
    pub fn block_words(&self) -> std::ops::Range<usize> {
        match self.blocks {
            Some(_) => self.sketch.words()..self.words(),
            None => 0..self.sketch.words(),
        }
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
            SketchKind::Fss | SketchKind::MinHash => {
                Some(Shape { size: self.size, bits: self.bits, agreement: Agreement::Bits(self.bits) })
            }
            SketchKind::Dart | SketchKind::Icws | SketchKind::Cws => {
                Some(Shape::components(self.size, self.bits))
            }
            SketchKind::SimHash => Some(Shape { size: self.size, bits: 1, agreement: Agreement::Angle }),
        }
    }

    /// Words of a sketch.
    pub fn words(&self) -> usize {
        match self.kind {
            SketchKind::Fss | SketchKind::MinHash => self.bits * self.size.div_ceil(64),
            SketchKind::Dart | SketchKind::Icws | SketchKind::Cws => self.bits * self.size.div_ceil(64),
            SketchKind::SimHash => self.size.div_ceil(64),
        }
    }

    /// Estimates from two such sketches.
    pub fn estimator(&self) -> Arc<dyn Estimator> {
        match (self.kind, self.shape()) {
            (_, Some(shape)) => Arc::new(Matches::new(shape)),
            (kind, None) => unreachable!("{kind:?} is compared place by place"),
        }
    }

    /// Makes such sketches.
    pub fn sketcher(&self) -> Box<dyn Sketcher> {
        match self.kind {
            SketchKind::Fss => Box::new(Packed::new(Fss::new(self.size, self.seed), self.size, self.bits)),
            SketchKind::MinHash => {
                Box::new(Packed::new(MinHash::new(self.size, self.seed), self.size, self.bits))
            }
            SketchKind::Dart => Box::new(Packed::new(Dart::new(self.size, self.seed), self.size, self.bits)),
            SketchKind::Icws => Box::new(Packed::new(Icws::new(self.size, self.seed), self.size, self.bits)),
            SketchKind::Cws => Box::new(Packed::new(Cws::new(self.size, self.seed), self.size, self.bits)),
            SketchKind::SimHash => Box::new(SimHash::new(self.size, self.seed)),
        }
    }
}
