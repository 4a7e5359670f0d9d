//! The scheme: all parameters of a sketch, by which sketches of different programs can be compared.

use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;

use super::params::SketchParams;
use crate::description::Description;
use crate::doc::units::UnitRules;
use crate::pair::{Evidence, Similarity};
use crate::pair_rule::PairRule;
use crate::text::measures::Measure;
use crate::text::{Growth, Idf, IdfTable, TextRules, Weights};

/// The version of the hashes, the sketch layout, the block keys and the sketch ids of this program.
pub const VERSION: u32 = 5;

/// All parameters of a sketch. Sketches of different schemes are never compared.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Scheme {
    /// Version of the hash family, of the layout and of block keys; raised when a golden vector changes.
    pub version: u32,
    /// Text to features.
    pub text: TextRules,
    /// The sketch.
    #[serde(flatten)]
    pub sketch: SketchParams,
    /// A second sketch, stored after the first, from which blocks are made if the first does not allow it.
    pub blocks: Option<SketchParams>,
    /// Whether all features are stored with the sketch, for exact verification; of a scaled sketch, all
    /// values.
    pub exact: bool,
    /// Which documents may form a pair, by their fields. The hashes of the fields that it names are the last
    /// words of a sketch.
    #[serde(skip_serializing_if = "PairRule::is_empty")]
    pub pairs: PairRule,
    /// What of a document is sketched; `None`: all of it.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub units: Option<UnitRules>,
}

impl Default for Scheme {
    /// That of the pipeline `minhash`: sets of word 3-shingles, the default sketch, no features kept.
    fn default() -> Self {
        let (text, sketch) = (TextRules::default(), SketchParams::default());
        let pairs = PairRule::default();
        Self { version: VERSION, text, sketch, blocks: None, exact: false, pairs, units: None }
    }
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
        let pairs = match self.pairs.is_empty() {
            true => Description::new(),
            false => Description::new().with("pairs.where", &*self.pairs.to_string()),
        };
        let units = self.units.map_or_else(Description::new, |units| {
            let described = Description::new().with("text.split", units.split.name());
            described.with("text.split_least", units.least_words)
        });
        Description::new()
            .with("scheme.version", self.version)
            .with("scheme.features", if self.exact { "kept" } else { "dropped" })
            .and(self.text.description())
            .and(sketch)
            .and(blocks)
            .and(pairs)
            .and(units)
    }

    /// Stable 64-bit hash of the [description](Self::description). Equal schemes have equal fingerprints, on
    /// every machine.
    pub fn fingerprint(&self) -> u64 {
        self.description().fingerprint()
    }

    /// Words of a sketch, including a separate block sketch and the hashes of fields.
    pub fn words(&self) -> usize {
        self.sketch.words() + self.blocks.map_or(0, |blocks| blocks.words()) + self.pairs.len()
    }

    /// Words of a sketch before the hashes of fields.
    pub fn text_words(&self) -> usize {
        self.words() - self.pairs.len()
    }

    /// Whether anything is stored behind the words of a sketch: all features, or the values that a scaled
    /// sketch keeps.
    pub fn keeps_features(&self) -> bool {
        self.exact || self.sketch.scaled().is_some()
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

    /// The [stated error](crate::sketch::Estimator::stated_error) of a pair's similarity, given its evidence.
    /// 0 if the similarity is exact: for fingerprints, and where features are compared. Copies of one sketch
    /// are as similar as their sketches say.
    pub fn standard_error(&self, similarity: Similarity, evidence: Evidence) -> f64 {
        if self.exact || self.measure() == Measure::Hamming {
            return 0.0;
        }
        let share = similarity.get();
        if self.sketch.scaled().is_some() && evidence.components > 0 {
            // The components that were read are the sample of the smaller text.
            let sample = f64::from(evidence.components);
            return if share < 1.0 {
                (share * (1.0 - share) / sample).sqrt()
            } else {
                (3.0 / sample).min(1.0)
            };
        }
        self.sketch.estimator().stated_error(share)
    }

    /// When document frequencies are counted again; `None` if weights do not use live document frequencies.
    pub fn live(&self) -> Option<Growth> {
        match self.text.weights {
            Weights::TfIdf(Idf::Live(growth), _) => Some(growth),
            _ => None,
        }
    }

    /// Whether the id of a sketch is [that of its stored words](crate::hash::SketchId::new) under the
    /// [fingerprint](Self::fingerprint). Otherwise features are stored too, or the table of document
    /// frequencies changes.
    pub fn names_words(&self) -> bool {
        !self.keeps_features() && self.live().is_none()
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
