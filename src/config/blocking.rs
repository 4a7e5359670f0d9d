//! The table `[blocking]` to a plan, and a plan to the blocking.

use std::sync::Arc;

use super::problem::What;
use super::raw::{Settings, without_effect};
use super::{hamming, keys, sketch};
use crate::block::design::{self, Design, DesignError};
use crate::block::hamming::{Design as HammingDesign, Tables};
use crate::block::{Banding, Blocking, BlockingKind, BlockingParams, Scan, Shingles};
use crate::filter::FilterKind;
use crate::sketch::Scheme;
use crate::text::measures::Measure;

/// How pairs become candidates.
#[derive(Clone, Debug)]
pub enum BlockingPlan {
    /// Bands of rows.
    Banding {
        /// How many, and why.
        design: Design,
        /// Most sketches of a live block, inclusive; at least 2.
        cap: usize,
    },
    /// Everybody within a Hamming distance.
    Hamming {
        /// Which bits lead which table.
        design: HammingDesign,
        /// Most sketches of a live block, inclusive; at least 2.
        cap: usize,
    },
    /// A block for each shingle.
    Shingles {
        /// Most sketches of a live block, inclusive; at least 2.
        cap: usize,
    },
    /// Every pair.
    Scan,
}

impl BlockingPlan {
    /// Makes the blocking of sketches of this scheme.
    pub(super) fn make(&self, scheme: &Scheme) -> Arc<dyn Blocking> {
        match self {
            Self::Banding { design, cap } => {
                let planes = scheme.block_sketch().planes().expect("a design is of planes");
                let banding = Banding::new(planes.size, design.curve.bands, design.curve.rows, *cap);
                Arc::new(banding.of(scheme.block_words()))
            }
            Self::Hamming { design, cap } => {
                Arc::new(Tables::new(design, *cap).expect("a design that was planned can be made"))
            }
            Self::Shingles { cap } => Arc::new(Shingles::new(scheme.measure() != Measure::Jaccard, *cap)),
            Self::Scan => Arc::new(Scan),
        }
    }
}

/// The kinds, with the keys that each reads besides `cap`.
const KINDS: [(BlockingKind, &[&str]); 7] = [
    (
        BlockingKind::Banding,
        &[
            "blocking.bands",
            "blocking.rows",
            "blocking.recall",
            "blocking.sketch",
            "blocking.size",
            "blocking.bits",
        ],
    ),
    (BlockingKind::Permuted, &["blocking.distance", "blocking.tables"]),
    (BlockingKind::MultiIndex, &["blocking.distance", "blocking.tables"]),
    (BlockingKind::Groups, &["blocking.distance", "blocking.common"]),
    (BlockingKind::Conjunctions, &["blocking.distance", "blocking.common"]),
    (BlockingKind::Shingles, &[]),
    (BlockingKind::Scan, &[]),
];

/// The kind; notes keys that it has no use for.
pub(super) fn kind(settings: &mut Settings, filter: FilterKind) -> BlockingKind {
    let kind = settings.get(&keys::BLOCKING).unwrap_or_default();
    let (_, own) = KINDS.into_iter().find(|(known, _)| *known == kind).expect("every kind is known");
    let mut useless: Vec<&str> = KINDS.iter().flat_map(|(_, keys)| keys.iter().copied()).collect();
    useless.sort_unstable();
    useless.dedup();
    useless
        .retain(|key| !own.contains(key) && (filter != FilterKind::Hamming || *key != "blocking.distance"));
    useless.extend((kind == BlockingKind::Scan).then_some("blocking.cap"));
    without_effect(settings, "blocking.kind", keys::BLOCKING.name_of(&kind), &useless);
    kind
}

/// The plan of a kind.
pub(super) fn plan(
    settings: &mut Settings,
    kind: BlockingKind,
    scheme: &Scheme,
    threshold: f64,
) -> Option<BlockingPlan> {
    let cap = settings.get(&keys::CAP).unwrap_or(BlockingParams::default().cap);
    match kind {
        BlockingKind::Scan => Some(BlockingPlan::Scan),
        BlockingKind::Shingles => Some(BlockingPlan::Shingles { cap }),
        BlockingKind::Banding => banding(settings, scheme, threshold, cap),
        kind => hamming::design(settings, kind, &scheme.sketch, threshold, cap)
            .map(|design| BlockingPlan::Hamming { design, cap }),
    }
}

fn banding(settings: &mut Settings, scheme: &Scheme, threshold: f64, cap: usize) -> Option<BlockingPlan> {
    let Some(planes) = scheme.block_sketch().planes() else {
        let what = format!(
            "\"{}\" has no components to cut bands from; set blocking.kind = \"scan\", or blocking.sketch = \"fss\" for bands of a \
             second sketch",
            scheme.sketch.kind.name()
        );
        settings.problem("blocking.kind", What::Contradiction(what));
        return None;
    };
    let params = BlockingParams {
        kind: BlockingKind::Banding,
        bands: settings.get(&keys::BANDS),
        rows: settings.get(&keys::ROWS),
        recall: settings.get(&keys::RECALL),
        cap,
    };
    let inputs =
        ["threshold", "blocking.size", "blocking.bits", "blocking.bands", "blocking.rows", "blocking.recall"];
    if !settings.sound(&inputs) || !settings.sound(sketch::SHAPE) {
        return None;
    }
    match design::design(planes, threshold, &params) {
        Ok(design) => Some(BlockingPlan::Banding { design, cap }),
        Err(error) => {
            let key = match error {
                DesignError::Size { .. } if params.rows.is_some() => "blocking.rows",
                DesignError::Size { .. } => "blocking.bands",
                DesignError::Recall { .. } | DesignError::Unreachable { .. } => "blocking.recall",
            };
            settings.problem(key, What::Contradiction(error.to_string()));
            None
        }
    }
}
