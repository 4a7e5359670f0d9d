//! Blocking by Hamming distance: the keys `distance`, `tables` and `common` of a blocking to a design.

use super::described::Described;
use super::keys::{self, BlockingKeys};
use super::problem::What;
use super::raw::{Settings, without_effect};
use dupflow_core::block::hamming::optimiser::Workload;
use dupflow_core::block::hamming::{Design, DesignError, DesignKind};
use dupflow_core::block::{BlockingKind, BlockingParams};
use dupflow_core::filter::Target;
use dupflow_core::sketch::SketchParams;
use dupflow_core::sketch::agreement::Shape;

/// Groups that must agree where `common` is not set, as in the experiments of Yuan et al. (2012).
const COMMON: usize = 3;

/// T of the filter by distance: the similarity at the greatest distance, inclusive. Without a distance it is
/// the threshold.
pub(super) fn threshold(settings: &mut Settings, sketch: &SketchParams) -> Option<f64> {
    let shape = one_bit(settings, "filter.kind", sketch);
    let Some(distance) = settings.get(&keys::DISTANCE) else {
        return settings.get(&keys::THRESHOLD);
    };
    without_effect(settings, "filter.kind", "hamming", &["threshold"]);
    let shape = shape?;
    Some(shape.agreement.similarity(1.0 - distance as f64 / shape.size as f64))
}

/// The shape of sketches of one bit a place; notes a problem with `key` if they have more.
fn one_bit(settings: &mut Settings, key: &'static str, sketch: &SketchParams) -> Option<Shape> {
    let shape = sketch.shape().filter(|shape| shape.bits == 1);
    if shape.is_none() {
        let what =
            "is for sketches of one bit a component; set sketch.bits = 1, or sketch.kind = \"simhash\"";
        settings.problem(key, What::Contradiction(what.to_owned()));
    }
    shape
}

/// The design of a kind for one-bit sketches. Without a distance it is the greatest that a full comparison
/// accepts.
pub(super) fn design(
    settings: &mut Settings,
    kind: BlockingKind,
    keys: &'static BlockingKeys,
    sketch: &SketchParams,
    threshold: f64,
    params: &BlockingParams,
) -> Option<Design> {
    let shape = one_bit(settings, keys.kind.name(), sketch)?;
    let distance = settings.get(&keys.distance);
    let tables = settings.get(&keys.tables);
    let common = settings.get(&keys.common);
    let inputs = ["sketch.size", keys.distance.name(), keys.tables.name(), keys.common.name()];
    if !settings.sound(&inputs) || distance.is_none() && !settings.sound(&["threshold"]) {
        return None;
    }
    let accepted = || Some(shape.size - Target::for_shape(threshold, shape).ok()?.least_matches());
    let radius = distance.or_else(accepted)?;
    let surplus = common.unwrap_or(COMMON);
    let made = match (kind, tables) {
        (BlockingKind::Permuted, Some(tables)) => Design::permuted(shape.size, radius, tables as u64),
        (BlockingKind::MultiIndex, Some(blocks)) => {
            Design::new(shape.size, radius, DesignKind::MultiIndex { blocks })
        }
        (BlockingKind::Groups, _) => Design::new(shape.size, radius, DesignKind::Groups { surplus }),
        (BlockingKind::Conjunctions, _) => {
            Design::new(shape.size, radius, DesignKind::Conjunctions { surplus })
        }
        (kind, _) => cheapest(kind, shape.size, radius, params),
    };
    // What a design of the stream may have is known when its keys are listed.
    let made = made.and_then(|design| design.selections().map(|_| design));
    made.map_err(|error| {
        let key = match (&error, distance, tables, common) {
            (DesignError::Radius { .. }, Some(_), ..) => keys.distance.name(),
            (DesignError::Radius { .. }, None, ..) => "threshold",
            (_, _, Some(_), _) => keys.tables.name(),
            (_, _, _, Some(_)) => keys.common.name(),
            _ => keys.kind.name(),
        };
        settings.problem(key, What::Contradiction(error.to_string()));
    })
    .ok()
}

/// The cheapest design of a kind in a stream of the documents planned for.
fn cheapest(
    kind: BlockingKind,
    bits: usize,
    radius: usize,
    params: &BlockingParams,
) -> Result<Design, DesignError> {
    let workload = Workload::stream(bits, radius, params.documents, params.rule().cap);
    let is_kind = |design: &Design| match design.kind() {
        DesignKind::OneLevel { .. } | DesignKind::TwoLevel { .. } => kind == BlockingKind::Permuted,
        DesignKind::MultiIndex { .. } => kind == BlockingKind::MultiIndex,
        _ => false,
    };
    let found = workload.designs().into_iter().map(|ranked| ranked.design).find(is_kind);
    // Where none is feasible, the simplest one says why.
    found.map_or_else(|| Design::new(bits, radius, DesignKind::OneLevel { blocks: radius + 1 }), Ok)
}
