//! Blocking by Hamming distance: reads `distance`, `tables` and `common` of a blocking into a design.

use super::keys::{self, BlockingKeys};
use crate::config::settings::{ConfigKey, FileSettings, ProblemKind};
use dupflow_core::block::hamming::optimiser::Workload;
use dupflow_core::block::hamming::{Design, DesignError, DesignKind};
use dupflow_core::block::{BlockingKind, BlockingParams};
use dupflow_core::filter::Target;
use dupflow_core::sketch::SketchParams;
use dupflow_core::sketch::agreement::Shape;

/// Default of `common`: groups that must agree, as in the experiments of Yuan et al. (2012).
const COMMON: usize = 3;

/// T of the filter by distance: the similarity at the greatest accepted distance, inclusive. Without a
/// distance it is `threshold`.
pub(super) fn threshold(settings: &mut FileSettings, sketch: &SketchParams) -> Option<f64> {
    let shape = one_bit(settings, "filter.kind", sketch);
    let Some(distance) = settings.get(&keys::DISTANCE) else {
        return settings.get(&keys::THRESHOLD);
    };
    if settings.applies_with("threshold", "filter.kind") {
        let of = shape.map_or(String::new(), |shape| format!(" of {}", shape.size));
        let what = format!(
            "has no effect with blocking.distance = {distance}{of}, which decides what is similar: \
                set that one"
        );
        settings.problem("threshold", ProblemKind::Contradiction(what));
    }
    settings.forget("threshold");
    let shape = shape?;
    Some(shape.agreement.similarity(1.0 - distance as f64 / shape.size as f64))
}

/// The shape of one-bit sketches. For sketches with more bits it reports a problem with `key`.
fn one_bit(settings: &mut FileSettings, key: &'static str, sketch: &SketchParams) -> Option<Shape> {
    let shape = sketch.shape().filter(|shape| shape.bits == 1);
    if shape.is_none() {
        let what =
            "is for sketches of one bit a component; set sketch.bits = 1, or sketch.kind = \"simhash\"";
        settings.problem(key, ProblemKind::Contradiction(what.to_owned()));
    }
    shape
}

/// The design of one kind of blocking for one-bit sketches. Without a distance the radius is the greatest
/// distance that a full comparison accepts.
pub(super) fn design(
    settings: &mut FileSettings,
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
    // `selections` fails for a design with too many keys.
    let made = made.and_then(|design| design.selections().map(|_| design));
    made.map_err(|error| {
        let key = match (&error, distance, tables, common) {
            (DesignError::Radius { .. }, Some(_), ..) => keys.distance.name(),
            (DesignError::Radius { .. }, None, ..) => "threshold",
            (_, _, Some(_), _) => keys.tables.name(),
            (_, _, _, Some(_)) => keys.common.name(),
            _ => keys.kind.name(),
        };
        settings.problem(key, ProblemKind::Contradiction(error.to_string()));
    })
    .ok()
}

/// The cheapest design of a kind for a stream of the planned number of documents.
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
    // If none is feasible, the error of the simplest design says why.
    found.map_or_else(|| Design::new(bits, radius, DesignKind::OneLevel { blocks: radius + 1 }), Ok)
}
