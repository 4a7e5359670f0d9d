//! The parts that find pairs at a threshold: scheme, blocking and filter.

use std::sync::Arc;

use thiserror::Error;

use crate::block::banding::{BandsError, design};
use crate::block::{
    Banding, BlockKey, Blocking, BlockingKind, BlockingParams, RuledBlocking, Scan, Shingles,
};
use crate::filter::{
    ContainmentFilter, ExactFilter, FilterError, FilterParams, PairFilter, RuledFilter, StagedFilter, Target,
    Verify, WholeFilter,
};
use crate::sketch::{Scheme, SketchMaker, SketchRef};

/// Scheme, blocking and filter that fit together.
///
/// Cloning is cheap. Sketches of one detector can be compared with those of any detector of the same
/// [scheme](Scheme), in this process or another.
///
/// ```
/// use dupflow_core::Detector;
///
/// let detector = Detector::exact(0.5)?;
/// let mut maker = detector.maker();
/// let (_, a) = maker.sketch("the quick brown fox jumps over the lazy dog").expect("it has tokens");
/// let (_, b) = maker.sketch("the quick brown fox jumps over the lazy cat").expect("it has tokens");
///
/// // Six of eight different word 3-shingles are in both.
/// let verdict = detector.filter().decide(a.view(), b.view());
/// assert_eq!(verdict.accepted.map(|similarity| similarity.get()), Some(0.75));
/// # Ok::<(), dupflow_core::DetectorError>(())
/// ```
#[derive(Clone, Debug)]
pub struct Detector {
    scheme: Scheme,
    blocking: Arc<dyn Blocking>,
    filter: Arc<dyn PairFilter>,
}

/// Why there is no such detector.
#[derive(Clone, Debug, PartialEq, Error)]
pub enum DetectorError {
    /// The bands do not fit, or do not reach the recall.
    #[error(transparent)]
    Bands(#[from] BandsError),
    /// The threshold or a parameter of the filter is outside its range.
    #[error(transparent)]
    Filter(#[from] FilterError),
    /// The scheme's sketch has no bit planes to cut bands from.
    #[error(
        "sketches of kind \"{0}\" have no bands; take BlockingKind::Scan, or a second sketch for the blocks"
    )]
    NoBands(&'static str),
    /// The scheme does not keep the features that this blocking or this filter reads.
    #[error("the blocking or the filter reads features; set Scheme::exact")]
    NoFeatures,
    /// The kind of blocking is not made from these parameters.
    #[error(
        "a detector has blocks of kind banding, shingles or scan; make others by hand for \
         Detector::from_parts"
    )]
    Kind,
}

impl Detector {
    /// Pairs whose estimated Jaccard similarity of word 3-shingles is at least `threshold` (inclusive; above
    /// 0 and at most 1): the parts of the pipeline `minhash`. A sketch takes 224 bytes.
    ///
    /// # Errors
    /// If the threshold is outside its range, or so low that no bands of the sketch reach a recall of 0.99
    /// at a million documents.
    pub fn new(threshold: f64) -> Result<Self, DetectorError> {
        Self::from_params(threshold, Scheme::default(), &BlockingParams::default(), &FilterParams::default())
    }

    /// As [`Self::new`], with the exact similarity: the parts of the pipeline `exact`. The distinct features
    /// are kept with each sketch, 8 bytes each. Recall at the threshold is 0.999.
    ///
    /// # Errors
    /// As [`Self::new`].
    pub fn exact(threshold: f64) -> Result<Self, DetectorError> {
        let scheme = Scheme { exact: true, ..Scheme::default() };
        let blocking = BlockingParams { recall: Some(0.999), ..BlockingParams::default() };
        let filter = FilterParams { verify: Verify::Exact, ..FilterParams::default() };
        Self::from_params(threshold, scheme, &blocking, &filter)
    }

    /// The detector of a scheme with blocks and bounds derived for `threshold` (inclusive; above 0 and at
    /// most 1). Text rules, the kind of sketch, its size and its seed are fields of the scheme.
    ///
    /// # Errors
    /// If a parameter is outside its range, or parameters do not fit together.
    pub fn from_params(
        threshold: f64,
        scheme: Scheme,
        blocking: &BlockingParams,
        filter: &FilterParams,
    ) -> Result<Self, DetectorError> {
        let lacks_features = match filter.verify {
            Verify::Exact => !scheme.exact,
            Verify::Sketch => blocking.kind == BlockingKind::Shingles && !scheme.keeps_features(),
        };
        if lacks_features {
            return Err(DetectorError::NoFeatures);
        }
        let filter = RuledFilter::around(make_filter(threshold, &scheme, filter)?, &scheme);
        let blocking = RuledBlocking::around(make_blocking(threshold, &scheme, blocking)?, &scheme);
        Ok(Self { scheme, blocking, filter })
    }

    /// A detector of parts made elsewhere, which must be made for sketches of this scheme.
    pub fn from_parts(scheme: Scheme, blocking: Arc<dyn Blocking>, filter: Arc<dyn PairFilter>) -> Self {
        Self { scheme, blocking, filter }
    }

    /// Text to sketch.
    pub fn scheme(&self) -> &Scheme {
        &self.scheme
    }

    /// A new maker of sketches, for one thread.
    ///
    /// # Panics
    /// As [`Featurizer::new`](crate::text::Featurizer::new), for text rules that contradict each other.
    pub fn maker(&self) -> SketchMaker {
        SketchMaker::new(&self.scheme)
    }

    /// Sketch to blocks: pairs that share a block are candidates.
    pub fn blocking(&self) -> &dyn Blocking {
        &*self.blocking
    }

    /// The block keys of a sketch.
    pub fn keys(&self, sketch: SketchRef<'_>) -> Vec<BlockKey> {
        let mut keys = Vec::new();
        self.blocking.keys(sketch, &mut keys);
        keys
    }

    /// Candidate to verdict.
    pub fn filter(&self) -> &dyn PairFilter {
        &*self.filter
    }
}

fn make_filter(
    threshold: f64,
    scheme: &Scheme,
    params: &FilterParams,
) -> Result<Arc<dyn PairFilter>, FilterError> {
    let sketch = &scheme.sketch;
    if let Some(scaled) = sketch.scaled() {
        return Ok(Arc::new(ContainmentFilter::new(threshold, scaled, scheme.exact, 1)?));
    }
    Ok(match (sketch.shape(), params.verify) {
        (Some(shape), Verify::Sketch) => {
            Arc::new(StagedFilter::new(Target::for_shape(threshold, shape)?, params)?)
        }
        (Some(shape), Verify::Exact) if sketch.is_concentrated() => {
            Arc::new(ExactFilter::new(Target::for_shape(threshold, shape)?, params)?.by(scheme.measure()))
        }
        (None, Verify::Sketch) => Arc::new(WholeFilter::new(threshold, sketch)?),
        (_, Verify::Exact) => Arc::new(ExactFilter::features_only(threshold)?.by(scheme.measure())),
    })
}

fn make_blocking(
    threshold: f64,
    scheme: &Scheme,
    params: &BlockingParams,
) -> Result<Arc<dyn Blocking>, DetectorError> {
    match params.kind {
        BlockingKind::Banding => {
            let sketch = scheme.block_sketch();
            let planes = sketch.planes().ok_or(DetectorError::NoBands(sketch.kind.name()))?;
            let curve = design(planes, threshold, params)?.curve;
            let banding = Banding::new(planes.size, curve.bands, curve.rows, params.rule());
            Ok(Arc::new(banding.by_word(planes.by_word()).on_words(scheme.block_words())))
        }
        BlockingKind::Scan => Ok(Arc::new(Scan)),
        BlockingKind::Shingles => Ok(Arc::new(Shingles::for_scheme(scheme, params.rule()))),
        BlockingKind::Permuted
        | BlockingKind::MultiIndex
        | BlockingKind::Groups
        | BlockingKind::Reference
        | BlockingKind::Conjunctions => Err(DetectorError::Kind),
    }
}
