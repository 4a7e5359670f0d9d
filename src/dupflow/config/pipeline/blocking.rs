//! Reads the tables `[blocking]` and `[blocking.also]` into plans, and makes the blocking of a plan.

use std::sync::Arc;

use super::keys::BlockingKeys;
use super::{hamming, keys, sketch};
use crate::config::settings::{ConfigKey, FileSettings, ProblemKind, without_effect};
use dupflow_core::block::banding::{self, Bands, BandsError};
use dupflow_core::block::hamming::{Design, HammingTables};
use dupflow_core::block::{
    Banding, Blocking, BlockingKind, BlockingParams, HotPolicy, HotRule, LeadersBy, ReferenceShingles, Scan,
    Shingles,
};
use dupflow_core::filter::FilterKind;
use dupflow_core::sketch::{Scheme, SketchKind, SketchParams};

/// How pairs become candidates.
#[derive(Clone, Debug)]
pub enum BlockingPlan {
    /// Bands of rows.
    Banding {
        /// The number of bands and rows, and the curve and recall that they were chosen by.
        design: Bands,
        /// When a block is hot, and which pairs are candidates in a hot block.
        rule: HotRule,
    },
    /// Every pair within a Hamming distance.
    Hamming {
        /// Which bits are the leading bits of which table.
        design: Design,
        /// When a block is hot, and which pairs are candidates in a hot block.
        rule: HotRule,
    },
    /// One block per shingle.
    Shingles {
        /// When a block is hot, and which pairs are candidates in a hot block.
        rule: HotRule,
    },
    /// One block per shingle of a document of the reference.
    Reference,
    /// Every pair.
    Scan,
}

impl BlockingPlan {
    /// Makes the blocking for sketches of `scheme`.
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
            Self::Shingles { rule } => Arc::new(Shingles::for_scheme(scheme, *rule)),
            Self::Reference => Arc::new(ReferenceShingles::for_scheme(scheme)),
            Self::Scan => Arc::new(Scan),
        }
    }
}

/// The keys that only banding reads, as the first or as the second kind.
const OF_BANDS: [&str; 3] = ["blocking.sketch", "blocking.size", "blocking.bits"];

/// The keys of hot blocks.
const HOT_KEYS: [&str; 4] = ["blocking.cap", "blocking.hot", "blocking.leaders", "blocking.leaders_by"];

/// The keys that a blocking by a reference does not read: all shingles have blocks, copies are no pairs, and
/// what lies in a document decides whether that is removed.
const OF_OTHER_LISTS: [&str; 7] = [
    keys::SCALE.name,
    keys::LEAST.name,
    keys::EXPAND_LIMIT.name,
    keys::CLUSTERS.name,
    keys::CLUSTER_LIMIT.name,
    keys::KEEP.name,
    keys::REMOVE_IF.name,
];

/// The first kind of blocking, and the second if there is one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Kinds {
    pub(super) first: BlockingKind,
    pub(super) second: Option<BlockingKind>,
}

impl Kinds {
    /// Whether the first or the second kind is `kind`.
    pub(super) fn any(self, kind: BlockingKind) -> bool {
        self.first == kind || self.second == Some(kind)
    }
}

impl BlockingKeys {
    /// The names of all keys except `kind`.
    fn names(&self) -> [&'static str; 6] {
        let Self { kind: _, bands, rows, recall, distance, tables, common } = self;
        [bands.name(), rows.name(), recall.name(), distance.name(), tables.name(), common.name()]
    }

    /// The names of the keys that `kind` reads.
    fn read_by(&self, kind: BlockingKind) -> Vec<&'static str> {
        let Self { bands, rows, recall, distance, tables, common, .. } = self;
        match kind {
            BlockingKind::Banding => vec![bands.name(), rows.name(), recall.name()],
            BlockingKind::Permuted | BlockingKind::MultiIndex => vec![distance.name(), tables.name()],
            BlockingKind::Groups | BlockingKind::Conjunctions => vec![distance.name(), common.name()],
            BlockingKind::Shingles | BlockingKind::Reference | BlockingKind::Scan => vec![],
        }
    }
}

/// The kinds of blocking. Reports every key that they do not read as a problem.
///
/// An override may ask for components of two widths where the file says one bit. Then a Hamming kind of the
/// file's first blocking falls back to banding over the bits that all components have, and a Hamming kind of
/// its second blocking is dropped.
pub(super) fn kinds(settings: &mut FileSettings, sketch: &SketchParams, filter: FilterKind) -> Kinds {
    if sketch.wide > 0
        && settings.get(&keys::BLOCKING).is_some_and(is_hamming)
        && !settings.applies_with("blocking.kind", "sketch.bits")
    {
        settings.unset("blocking.kind");
    }
    if sketch.wide > 0
        && settings.get(&keys::ALSO).is_some_and(is_hamming)
        && !settings.applies_with(keys::ALSO.name(), "sketch.bits")
    {
        settings.unset("blocking.also");
    }
    let first = settings.get(&keys::BLOCKING).unwrap_or_default();
    let named = keys::BLOCKING.name_of(&first);
    let mut useless = keys::FIRST.names().to_vec();
    // The filter by distance reads this key too.
    useless.retain(|key| {
        !keys::FIRST.read_by(first).contains(key)
            && (filter != FilterKind::Hamming || *key != "blocking.distance")
    });
    if keys::is_alone(first) {
        useless.extend(HOT_KEYS);
        useless.extend([keys::DOCUMENTS.name(), keys::ALSO.name()]);
        useless.extend(keys::SECOND.names());
    }
    let second = settings.get(&keys::ALSO).filter(|_| !keys::is_alone(first));
    let kinds = Kinds { first, second };
    useless.extend(OF_BANDS.iter().filter(|_| !kinds.any(BlockingKind::Banding)));
    // If all kinds promise a distance, no block is hot unless `blocking.hot` is set.
    let is_never = |kind, key| is_hamming(kind) && !settings.applies_with(keys::HOT.name(), key);
    if is_never(first, keys::BLOCKING.name()) && second.is_none_or(|kind| is_never(kind, keys::ALSO.name())) {
        for key in ["blocking.cap", "blocking.leaders", "blocking.leaders_by"] {
            if settings.applies_with(key, "blocking.kind") {
                let what = format!(
                    "has no effect with blocking.kind = \"{named}\", of which no block is hot unless \
                    blocking.hot is set"
                );
                settings.problem(key, ProblemKind::Contradiction(what));
            }
            settings.forget(key);
        }
    }
    match first {
        BlockingKind::Reference => useless.extend(OF_OTHER_LISTS),
        _ => useless.push(keys::ITEM_LIMIT.name),
    }
    without_effect(settings, "blocking.kind", named, &useless);
    match second {
        Some(kind) => {
            let mut others = keys::SECOND.names().to_vec();
            others.retain(|key| !keys::SECOND.read_by(kind).contains(key));
            without_effect(settings, "blocking.also.kind", keys::ALSO.name_of(&kind), &others);
        }
        None if settings.sound(&[keys::ALSO.name()]) => {
            for key in keys::SECOND.names().into_iter().filter(|key| settings.is_set(key)).collect::<Vec<_>>()
            {
                let what = "has no effect without blocking.also.kind";
                settings.problem(key, ProblemKind::Contradiction(what.to_owned()));
            }
        }
        None => {}
    }
    kinds
}

/// Whether a kind promises a Hamming distance.
fn is_hamming(kind: BlockingKind) -> bool {
    keys::FIRST.read_by(kind).contains(&keys::FIRST.distance.name())
}

/// Plans both blockings; `None` for one with a problem, or for a second one that is not set.
pub(super) fn plan(
    settings: &mut FileSettings,
    kinds: Kinds,
    scheme: &Scheme,
    threshold: f64,
    documents: u64,
) -> (Option<BlockingPlan>, Option<BlockingPlan>) {
    if scheme.sketch.scaled().is_none() {
        without_effect(settings, "sketch.kind", scheme.sketch.kind.name(), &[keys::LEADERS_BY.name]);
    }
    let hot_blocks = HotBlockSettings {
        cap: settings.get(&keys::CAP),
        hot: settings.get(&keys::HOT),
        leaders: settings.get(&keys::LEADERS),
        leaders_by: settings.get(&keys::LEADERS_BY),
        documents,
    };
    let mut of = |kind, keys: &'static BlockingKeys| {
        let params = hot_blocks.params(settings, kind, keys.kind.name());
        let rule = params.rule();
        match kind {
            BlockingKind::Reference if scheme.sketch.scaled().is_none() || !scheme.exact => {
                let what = "takes sketches of kind \"scaled\" and filter.verify = \"exact\", by which all \
                    shingles are stored";
                settings.problem(keys.kind.name(), ProblemKind::Contradiction(what.to_owned()));
                None
            }
            BlockingKind::Reference => Some(BlockingPlan::Reference),
            // Bits of a fingerprint are no independent sample, which bands and shingles need.
            BlockingKind::Banding | BlockingKind::Shingles
                if scheme.sketch.kind == SketchKind::Fingerprint =>
            {
                let what = "a sketch of kind \"fingerprint\" takes \"permuted\", \"multi-index\", \
                    \"groups\", \"conjunctions\" or \"scan\"";
                settings.problem(keys.kind.name(), ProblemKind::Contradiction(what.to_owned()));
                None
            }
            kind if scheme.sketch.scaled().is_some()
                && !matches!(kind, BlockingKind::Scan | BlockingKind::Shingles) =>
            {
                let what = "a sketch of kind \"scaled\" takes \"shingles\", a block for each kept value, \
                    \"reference\" or \"scan\"";
                settings.problem(keys.kind.name(), ProblemKind::Contradiction(what.to_owned()));
                None
            }
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

/// The settings that all kinds of blocking share.
struct HotBlockSettings {
    cap: Option<usize>,
    hot: Option<HotPolicy>,
    leaders: Option<usize>,
    leaders_by: Option<LeadersBy>,
    documents: u64,
}

impl HotBlockSettings {
    /// The hot-block rule of one kind, and the number of documents that it is planned for. A kind that
    /// promises a distance has no hot blocks unless the user sets `blocking.hot` together with that kind: a
    /// `blocking.hot` that the file sets for another kind does not count.
    fn params(&self, settings: &mut FileSettings, kind: BlockingKind, kind_key: &str) -> BlockingParams {
        let default = BlockingParams { documents: self.documents, ..BlockingParams::default() };
        let cap = self.cap.unwrap_or(default.cap);
        let counts = !is_hamming(kind) || settings.applies_with(keys::HOT.name(), kind_key);
        let hot = match self.hot.filter(|_| counts) {
            None if is_hamming(kind) => return BlockingParams { cap, hot: HotPolicy::Never, ..default },
            set => set.unwrap_or(default.hot),
        };
        match hot {
            HotPolicy::Leaders => {}
            HotPolicy::Skip => without_effect(settings, "blocking.hot", "skip", &HOT_KEYS[2..]),
            HotPolicy::Never => {
                without_effect(settings, "blocking.hot", "never", &["blocking.cap"]);
                without_effect(settings, "blocking.hot", "never", &HOT_KEYS[2..]);
            }
        }
        let (leaders, leaders_by) =
            (self.leaders.unwrap_or(default.leaders), self.leaders_by.unwrap_or_default());
        BlockingParams { cap, hot, leaders, leaders_by, ..default }
    }
}

fn banding(
    settings: &mut FileSettings,
    keys: &'static BlockingKeys,
    scheme: &Scheme,
    threshold: f64,
    params: &BlockingParams,
) -> Option<BlockingPlan> {
    let Some(planes) = scheme.block_sketch().planes() else {
        let what = format!(
            "\"{}\" has no components to cut bands from; set blocking.kind = \"scan\", or blocking.sketch \
            = \"fss\" for bands of a \
             second sketch",
            scheme.sketch.kind.name()
        );
        settings.problem(keys.kind.name(), ProblemKind::Contradiction(what));
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
                BandsError::Recall { .. } | BandsError::Unreachable { .. } | BandsError::Crowded { .. } => {
                    recall
                }
            };
            settings.problem(key, ProblemKind::Contradiction(error.to_string()));
            None
        }
    }
}
