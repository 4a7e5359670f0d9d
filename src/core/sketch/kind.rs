//! The kinds of sketches and their properties.

use serde::{Deserialize, Serialize};

use super::sets::{SectionBase, SectionMode};
use super::theory::variance;
use super::weighted::Ties;
use crate::text::measures::Measure;

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
    SimHash {
        /// What a bit is whose votes are tied.
        ties: Ties,
    },
    /// The bits that a record [brings](crate::text::Given), compared by Hamming distance.
    Fingerprint,
    /// The hash values below a fixed limit (Broder 1997), for containment. Their number grows with the text.
    Scaled {
        /// One of so many values is kept, at least 1.
        scale: u32,
        /// So many values are kept of a short text, at least 1.
        least: u32,
    },
}

impl SketchKind {
    /// `SimHash` with its default rule of ties.
    pub const SIMHASH: Self = Self::SimHash { ties: Ties::Hash };

    /// Scaled sketches with their default parameters.
    pub const SCALED: Self = Self::Scaled { scale: 8, least: 16 };

    /// All kinds of fixed size, with their default parameters: sketches of sets, of weights, of angles. Any
    /// two such sketches can be compared by their words.
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
        Self::SIMHASH,
    ];

    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        self.properties().name
    }

    /// The similarity that such sketches estimate; approximately, for sectional sketches.
    pub fn measure(self) -> Measure {
        self.properties().measure
    }

    /// Properties of all sketches of this kind. Only this function and
    /// [`SketchParams::sketcher`](super::SketchParams::sketcher) match on the kind.
    pub(super) fn properties(self) -> KindProperties {
        use Measure::{Containment, Cosine, Hamming, Jaccard, WeightedJaccard};
        use SketchLayout::{Angles, Bins, Given, Kept, Parities, Planes, Runs, Values};
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
                let bins =
                    |size, bits, similarity, union| variance::one_permutation(similarity, union, size, bits);
                ("oph-original", Jaccard, Bins, false, VarianceLaw::Own(bins))
            }
            Self::SuperMinHash => ("superminhash", Jaccard, Planes, true, alpha),
            Self::BottomK => {
                let values = |size, _, similarity, union| variance::bottom_k(similarity, union, size);
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
            Self::SimHash { .. } => ("simhash", Cosine, Angles, false, VarianceLaw::Independent),
            // Nothing is estimated.
            Self::Fingerprint => ("fingerprint", Hamming, Given, false, VarianceLaw::Independent),
            // The size of the sample is not a function of the parameters.
            Self::Scaled { .. } => ("scaled", Containment, Kept, false, VarianceLaw::Unknown),
        };
        KindProperties { name, measure, layout, is_concentrated, spread }
    }
}

/// Properties of all sketches of a kind.
pub(super) struct KindProperties {
    /// The name in a pipeline file.
    pub(super) name: &'static str,
    /// The estimated similarity.
    pub(super) measure: Measure,
    /// The content of the words.
    pub(super) layout: SketchLayout,
    /// See [`SketchParams::is_concentrated`](super::SketchParams::is_concentrated).
    pub(super) is_concentrated: bool,
    /// The variance of estimates.
    pub(super) spread: VarianceLaw,
}

/// The content of the words of a sketch.
pub(super) enum SketchLayout {
    /// Components: bit planes, or words.
    Planes,
    /// Runs of this many components: bit planes, or words.
    Runs(usize),
    /// A plane of signs.
    Angles,
    /// A plane of given bits.
    Given,
    /// A plane of parities; no band can be cut from it.
    Parities,
    /// Values without fixed places.
    Values,
    /// Bit planes of bins, and a plane of the bins that are filled.
    Bins,
    /// A word with the size of the text. The values are in [`Sketch::features`](super::Sketch::features).
    Kept,
}

/// The variance of estimates.
pub(super) enum VarianceLaw {
    /// That of independent places.
    Independent,
    /// That of independent components, times a function of K and of the number of features of both texts
    /// together.
    Times(fn(usize, usize) -> f64),
    /// A function of K, b, the similarity, and the number of features of both texts together.
    Own(fn(usize, usize, f64, usize) -> f64),
    /// Not known.
    Unknown,
}
