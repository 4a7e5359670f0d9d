//! The table `[blocking]` to a plan, and a plan to the blocking.

use std::sync::Arc;

use super::problem::What;
use super::raw::{Settings, without_effect};
use super::{hamming, keys, sketch};
use crate::block::design::{self, Bands, BandsError};
use crate::block::hamming::{Design, Tables};
use crate::block::{Banding, Blocking, BlockingKind, BlockingParams, HotPolicy, HotRule, Scan, Shingles};
use crate::filter::FilterKind;
use crate::sketch::Scheme;
use crate::text::measures::Measure;

/// How pairs become candidates.
#[derive(Clone, Debug)]
pub enum BlockingPlan {
    /// Bands of rows.
    Banding {
        /// How many, and why.
        design: Bands,
        /// Which blocks are hot, and who meets in them.
        rule: HotRule,
    },
    /// Everybody within a Hamming distance.
    Hamming {
        /// Which bits lead which table.
        design: Design,
        /// Which blocks are hot, and who meets in them.
        rule: HotRule,
    },
    /// A block for each shingle.
    Shingles {
        /// Which blocks are hot, and who meets in them.
        rule: HotRule,
    },
    /// Every pair.
    Scan,
}

impl BlockingPlan {
    /// Makes the blocking of sketches of this scheme.
    pub(super) fn make(&self, scheme: &Scheme) -> Arc<dyn Blocking> {
        match self {
            Self::Banding { design, rule } => {
                let planes = scheme.block_sketch().planes().expect("a design is of planes");
                let banding = Banding::new(planes.size, design.curve.bands, design.curve.rows, *rule);
                Arc::new(banding.of(scheme.block_words()))
            }
            Self::Hamming { design, rule } => {
                Arc::new(Tables::new(design, *rule).expect("a design that was planned can be made"))
            }
            Self::Shingles { rule } => Arc::new(Shingles::new(scheme.measure() != Measure::Jaccard, *rule)),
            Self::Scan => Arc::new(Scan),
        }
    }
}

/// The kinds, with the keys that each reads besides those of hot blocks.
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

/// The keys of hot blocks.
const HOT_KEYS: [&str; 3] = ["blocking.cap", "blocking.hot", "blocking.leaders"];

/// The kind; notes keys that it has no use for.
pub(super) fn kind(settings: &mut Settings, filter: FilterKind) -> BlockingKind {
    let kind = settings.get(&keys::BLOCKING).unwrap_or_default();
    let (_, own) = KINDS.into_iter().find(|(known, _)| *known == kind).expect("every kind is known");
    let mut useless: Vec<&str> = KINDS.iter().flat_map(|(_, keys)| keys.iter().copied()).collect();
    useless.sort_unstable();
    useless.dedup();
    useless
        .retain(|key| !own.contains(key) && (filter != FilterKind::Hamming || *key != "blocking.distance"));
    useless.extend(HOT_KEYS.iter().filter(|_| kind == BlockingKind::Scan));
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
    let rule = rule(settings);
    match kind {
        BlockingKind::Scan => Some(BlockingPlan::Scan),
        BlockingKind::Shingles => Some(BlockingPlan::Shingles { rule }),
        BlockingKind::Banding => banding(settings, scheme, threshold, rule),
        kind => hamming::design(settings, kind, &scheme.sketch, threshold, rule.cap)
            .map(|design| BlockingPlan::Hamming { design, rule }),
    }
}

/// Which blocks are hot, and who meets in them.
fn rule(settings: &mut Settings) -> HotRule {
    let default = BlockingParams::default();
    let cap = settings.get(&keys::CAP).unwrap_or(default.cap);
    match settings.get(&keys::HOT).unwrap_or(default.hot) {
        HotPolicy::Leaders => {
            HotRule { cap, leaders: settings.get(&keys::LEADERS).unwrap_or(default.leaders) }
        }
        HotPolicy::Skip => {
            without_effect(settings, "blocking.hot", "skip", &["blocking.leaders"]);
            HotRule { cap, leaders: 0 }
        }
    }
}

fn banding(settings: &mut Settings, scheme: &Scheme, threshold: f64, rule: HotRule) -> Option<BlockingPlan> {
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
        ..BlockingParams::default()
    };
    let inputs =
        ["threshold", "blocking.size", "blocking.bits", "blocking.bands", "blocking.rows", "blocking.recall"];
    if !settings.sound(&inputs) || !settings.sound(sketch::SHAPE) {
        return None;
    }
    match design::design(planes, threshold, &params) {
        Ok(design) => Some(BlockingPlan::Banding { design, rule }),
        Err(error) => {
            let key = match error {
                BandsError::Size { .. } if params.rows.is_some() => "blocking.rows",
                BandsError::Size { .. } => "blocking.bands",
                BandsError::Recall { .. } | BandsError::Unreachable { .. } => "blocking.recall",
            };
            settings.problem(key, What::Contradiction(error.to_string()));
            None
        }
    }
}
