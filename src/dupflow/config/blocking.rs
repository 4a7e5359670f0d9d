//! The tables `[blocking]` and `[blocking.also]` to plans, and a plan to the blocking.

use std::sync::Arc;

use super::described::Described;
use super::keys::BlockingKeys;
use super::problem::What;
use super::raw::{Settings, without_effect};
use super::{hamming, keys, sketch};
use dupflow_core::block::banding::{self, Bands, BandsError};
use dupflow_core::block::hamming::{Design, HammingTables};
use dupflow_core::block::{
    Banding, Blocking, BlockingKind, BlockingParams, HotPolicy, HotRule, Scan, Shingles,
};
use dupflow_core::filter::FilterKind;
use dupflow_core::sketch::{Scheme, SketchParams};
use dupflow_core::text::measures::Measure;

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
                Arc::new(banding.by_word(planes.by_word()).on_words(scheme.block_words()))
            }
            Self::Hamming { design, rule } => {
                Arc::new(HammingTables::new(design, *rule).expect("a design that was planned can be made"))
            }
            Self::Shingles { rule } => Arc::new(Shingles::new(scheme.measure() != Measure::Jaccard, *rule)),
            Self::Scan => Arc::new(Scan),
        }
    }
}

/// The keys that only bands read, of whichever blocking they are.
const OF_BANDS: [&str; 3] = ["blocking.sketch", "blocking.size", "blocking.bits"];

/// The keys of hot blocks.
const HOT_KEYS: [&str; 3] = ["blocking.cap", "blocking.hot", "blocking.leaders"];

/// Which blockings there are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds {
    pub(super) first: BlockingKind,
    pub(super) second: Option<BlockingKind>,
}

impl Kinds {
    /// Whether one of them is of this kind.
    pub(super) fn any(self, kind: BlockingKind) -> bool {
        self.first == kind || self.second == Some(kind)
    }
}

impl BlockingKeys {
    /// The names, but for that of the kind.
    fn names(&self) -> [&'static str; 6] {
        let Self { kind: _, bands, rows, recall, distance, tables, common } = self;
        [bands.name(), rows.name(), recall.name(), distance.name(), tables.name(), common.name()]
    }

    /// Those that a kind reads.
    fn of(&self, kind: BlockingKind) -> Vec<&'static str> {
        let Self { bands, rows, recall, distance, tables, common, .. } = self;
        match kind {
            BlockingKind::Banding => vec![bands.name(), rows.name(), recall.name()],
            BlockingKind::Permuted | BlockingKind::MultiIndex => vec![distance.name(), tables.name()],
            BlockingKind::Groups | BlockingKind::Conjunctions => vec![distance.name(), common.name()],
            BlockingKind::Shingles | BlockingKind::Scan => vec![],
        }
    }
}

/// The kinds; notes keys that they have no use for. Where components of two widths were asked for in place of
/// the file's one bit, what the file says of Hamming distances falls to bands of the bits that all components
/// have, and a second kind of blocks by distance falls away.
pub(super) fn kinds(settings: &mut Settings, sketch: &SketchParams, filter: FilterKind) -> Kinds {
    if sketch.wide > 0
        && settings.get(&keys::BLOCKING).is_some_and(is_hamming)
        && !settings.is_set_beside("blocking.kind", "sketch.bits")
    {
        settings.unset("blocking.kind");
    }
    if sketch.wide > 0
        && settings.get(&keys::ALSO).is_some_and(is_hamming)
        && !settings.is_set_beside(keys::ALSO.name(), "sketch.bits")
    {
        settings.unset("blocking.also");
    }
    let first = settings.get(&keys::BLOCKING).unwrap_or_default();
    let named = keys::BLOCKING.name_of(&first);
    let mut useless = keys::FIRST.names().to_vec();
    // The filter by distance reads it too.
    useless.retain(|key| {
        !keys::FIRST.of(first).contains(key) && (filter != FilterKind::Hamming || *key != "blocking.distance")
    });
    if first == BlockingKind::Scan {
        useless.extend(HOT_KEYS);
        useless.extend([keys::DOCUMENTS.name(), keys::ALSO.name()]);
        useless.extend(keys::SECOND.names());
    }
    let second = settings.get(&keys::ALSO).filter(|_| first != BlockingKind::Scan);
    let kinds = Kinds { first, second };
    useless.extend(OF_BANDS.iter().filter(|_| !kinds.any(BlockingKind::Banding)));
    // Where all promise a distance, no block is hot unless it is said.
    let is_never = |kind, key| is_hamming(kind) && !settings.is_set_beside(keys::HOT.name(), key);
    if is_never(first, keys::BLOCKING.name()) && second.is_none_or(|kind| is_never(kind, keys::ALSO.name())) {
        for key in ["blocking.cap", "blocking.leaders"] {
            if settings.is_set_beside(key, "blocking.kind") {
                let what = format!(
                    "has no effect with blocking.kind = \"{named}\", of which no block is hot unless blocking.hot is set"
                );
                settings.problem(key, What::Contradiction(what));
            }
            settings.forget(key);
        }
    }
    without_effect(settings, "blocking.kind", named, &useless);
    match second {
        Some(kind) => {
            let mut others = keys::SECOND.names().to_vec();
            others.retain(|key| !keys::SECOND.of(kind).contains(key));
            without_effect(settings, "blocking.also.kind", keys::ALSO.name_of(&kind), &others);
        }
        None if settings.sound(&[keys::ALSO.name()]) => {
            for key in keys::SECOND.names().into_iter().filter(|key| settings.is_set(key)).collect::<Vec<_>>()
            {
                let what = "has no effect without blocking.also.kind";
                settings.problem(key, What::Contradiction(what.to_owned()));
            }
        }
        None => {}
    }
    kinds
}

/// Whether a kind promises a distance.
fn is_hamming(kind: BlockingKind) -> bool {
    keys::FIRST.of(kind).contains(&keys::FIRST.distance.name())
}

/// The plans of the kinds.
pub(super) fn plan(
    settings: &mut Settings,
    kinds: Kinds,
    scheme: &Scheme,
    threshold: f64,
    documents: u64,
) -> (Option<BlockingPlan>, Option<BlockingPlan>) {
    let said = Said {
        cap: settings.get(&keys::CAP),
        hot: settings.get(&keys::HOT),
        leaders: settings.get(&keys::LEADERS),
        documents,
    };
    let mut of = |kind, keys: &'static BlockingKeys| {
        let params = said.params(settings, kind, keys.kind.name());
        let rule = params.rule();
        match kind {
            BlockingKind::Scan => Some(BlockingPlan::Scan),
            BlockingKind::Shingles => Some(BlockingPlan::Shingles { rule }),
            BlockingKind::Banding => banding(settings, keys, scheme, threshold, &params),
            kind => hamming::design(settings, kind, keys, &scheme.sketch, threshold, &params)
                .map(|design| BlockingPlan::Hamming { design, rule }),
        }
    };
    let first = of(kinds.first, keys::FIRST);
    (first, kinds.second.and_then(|kind| of(kind, keys::SECOND)))
}

/// What the configuration has of all kinds in common.
struct Said {
    cap: Option<usize>,
    hot: Option<HotPolicy>,
    leaders: Option<usize>,
    documents: u64,
}

impl Said {
    /// Which blocks of a kind are hot and what meets in them, and for how many documents they are planned.
    /// Where a kind promises a distance none is hot, unless the user says so of that kind: what a file says
    /// of another kind does not count.
    fn params(&self, settings: &mut Settings, kind: BlockingKind, kind_key: &str) -> BlockingParams {
        let default = BlockingParams { documents: self.documents, ..BlockingParams::default() };
        let cap = self.cap.unwrap_or(default.cap);
        let counts = !is_hamming(kind) || settings.is_set_beside(keys::HOT.name(), kind_key);
        let hot = match self.hot.filter(|_| counts) {
            None if is_hamming(kind) => return BlockingParams { cap, hot: HotPolicy::Never, ..default },
            said => said.unwrap_or(default.hot),
        };
        match hot {
            HotPolicy::Leaders => {}
            HotPolicy::Skip => without_effect(settings, "blocking.hot", "skip", &["blocking.leaders"]),
            HotPolicy::Never => {
                without_effect(settings, "blocking.hot", "never", &["blocking.cap", "blocking.leaders"]);
            }
        }
        BlockingParams { cap, hot, leaders: self.leaders.unwrap_or(default.leaders), ..default }
    }
}

fn banding(
    settings: &mut Settings,
    keys: &'static BlockingKeys,
    scheme: &Scheme,
    threshold: f64,
    params: &BlockingParams,
) -> Option<BlockingPlan> {
    let Some(planes) = scheme.block_sketch().planes() else {
        let what = format!(
            "\"{}\" has no components to cut bands from; set blocking.kind = \"scan\", or blocking.sketch = \"fss\" for bands of a \
             second sketch",
            scheme.sketch.kind.name()
        );
        settings.problem(keys.kind.name(), What::Contradiction(what));
        return None;
    };
    let params = BlockingParams {
        kind: BlockingKind::Banding,
        bands: settings.get(&keys.bands),
        rows: settings.get(&keys.rows),
        recall: settings.get(&keys.recall),
        ..params.clone()
    };
    let [bands, rows, recall] = [keys.bands.name(), keys.rows.name(), keys.recall.name()];
    let inputs = ["threshold", "blocking.size", "blocking.bits", bands, rows, recall];
    let shared = ["blocking.cap", "blocking.hot", "blocking.leaders", "blocking.documents"];
    if !settings.sound(&inputs) || !settings.sound(&shared) || !settings.sound(sketch::SHAPE) {
        return None;
    }
    match banding::design(planes, threshold, &params) {
        Ok(design) => Some(BlockingPlan::Banding { design, rule: params.rule() }),
        Err(error) => {
            let key = match error {
                BandsError::Size { .. } if params.rows.is_some() => rows,
                BandsError::Size { .. } => bands,
                BandsError::Recall { .. } | BandsError::Unreachable { .. } => recall,
            };
            settings.problem(key, What::Contradiction(error.to_string()));
            None
        }
    }
}
