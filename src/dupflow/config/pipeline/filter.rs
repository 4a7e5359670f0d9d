//! Reads the table `[filter]` into a plan, and makes the filter of a plan.

use std::sync::Arc;

use super::{keys, sketch};
use crate::config::settings::{ConfigKey, FileSettings, ProblemKind, without_effect};
use dupflow_core::filter::{
    ContainmentFilter, ExactFilter, FilterError, FilterKind, FilterParams, PairFilter, Schedule,
    StagedFilter, Target, Verify, WholeFilter,
};
use dupflow_core::sketch::{Scheme, SketchKind, SketchParams};

/// What decides whether a candidate is a pair.
#[derive(Clone, Debug)]
pub enum FilterPlan {
    /// The sketches alone, look by look.
    Sketch(FilterKind, StagedFilter),
    /// The exact similarity of the features, after early looks at the sketches if there are any.
    Exact(FilterKind, ExactFilter),
    /// The estimate from sketches that are compared as a whole.
    Whole(WholeFilter),
    /// The containment of scaled sketches: of all values (exact), or of those that are kept.
    Containment(Verify, ContainmentFilter),
}

impl FilterPlan {
    /// Makes the filter.
    pub(super) fn make(&self) -> Arc<dyn PairFilter> {
        match self {
            Self::Sketch(_, filter) => Arc::new(filter.clone()),
            Self::Exact(_, filter) => Arc::new(filter.clone()),
            Self::Whole(filter) => Arc::new(filter.clone()),
            Self::Containment(_, filter) => Arc::new(*filter),
        }
    }

    /// The looks of the filter with their bounds; `None` for a filter that compares sketches as a whole.
    pub(super) fn schedule(&self) -> Option<&Schedule> {
        match self {
            Self::Sketch(_, filter) => Some(filter.schedule()),
            Self::Exact(_, filter) => Some(filter.schedule()),
            Self::Whole(_) | Self::Containment(..) => None,
        }
    }
}

/// Whether the sketches or the features decide about candidates that no look rejects.
pub(super) fn verify(settings: &mut FileSettings) -> Verify {
    settings.get(&keys::VERIFY).unwrap_or_default()
}

/// The filter parameters. A sketch that cannot be compared in part is compared in full.
pub(super) fn params(settings: &mut FileSettings, sketch: &SketchParams, verify: Verify) -> FilterParams {
    if sketch.kind == SketchKind::Fingerprint {
        return by_distance(settings, verify);
    }
    let mut kind = settings.get(&keys::FILTER).unwrap_or_default();
    let needs_full = match verify {
        Verify::Sketch if sketch.shape().is_none() => Some("is compared as a whole"),
        Verify::Exact if sketch.shape().is_none() || !sketch.is_concentrated() => {
            Some("promises nothing about exact similarity when it is looked at in part")
        }
        _ => None,
    };
    if let Some(reason) = needs_full.filter(|_| kind != FilterKind::Full) {
        // Early looks that the file sets do not apply if an override asks for another kind of sketch, or for
        // two widths of bits.
        let (cause, named, subject) = match sketch.wide {
            0 => {
                let name = sketch.kind.name();
                ("sketch.kind", name, format!("a sketch of kind \"{name}\""))
            }
            _ => ("sketch.bits", "of two widths", "a sketch of two widths of bits".to_owned()),
        };
        if settings.applies_with("filter.kind", cause) {
            let what = format!("{subject} {reason}; leave it out, or filter.kind = \"full\"");
            settings.problem("filter.kind", ProblemKind::Contradiction(what));
        }
        without_effect(settings, cause, named, &["filter.error", "filter.looks"]);
        kind = FilterKind::Full;
    } else if matches!(kind, FilterKind::Full | FilterKind::Hamming) {
        let name = keys::FILTER.name_of(&kind);
        without_effect(settings, "filter.kind", name, &["filter.error", "filter.looks"]);
    }
    FilterParams { kind, error: settings.get(&keys::ERROR), looks: settings.get(&keys::LOOKS), verify }
}

/// The parameters for given fingerprints, whose bits are no sample: all are compared, and there is no more.
fn by_distance(settings: &mut FileSettings, verify: Verify) -> FilterParams {
    let named = SketchKind::Fingerprint.name();
    let set = settings.get(&keys::FILTER).filter(|_| settings.applies_with("filter.kind", "sketch.kind"));
    if set.is_some_and(|kind| kind != FilterKind::Hamming) {
        let what = format!("a sketch of kind \"{named}\" takes \"hamming\"");
        settings.problem("filter.kind", ProblemKind::Contradiction(what));
    }
    if verify == Verify::Exact {
        let what = format!("a sketch of kind \"{named}\" is compared exactly; leave it out");
        settings.problem(keys::VERIFY.name(), ProblemKind::Contradiction(what));
    }
    without_effect(settings, "sketch.kind", named, &["filter.error", "filter.looks"]);
    FilterParams { kind: FilterKind::Hamming, error: None, looks: None, verify: Verify::Sketch }
}

/// The plan for these parameters; `None` if there is a problem.
pub(super) fn plan(
    settings: &mut FileSettings,
    scheme: &Scheme,
    threshold: f64,
    params: &FilterParams,
) -> Option<FilterPlan> {
    let inputs = [
        "threshold",
        "blocking.distance",
        "filter.kind",
        "filter.error",
        "filter.looks",
        keys::LEAST_WORDS.name,
    ];
    let sketch = &scheme.sketch;
    if sketch.scaled().is_none() {
        without_effect(settings, "sketch.kind", sketch.kind.name(), &[keys::LEAST_WORDS.name]);
    }
    let least_words = settings.get(&keys::LEAST_WORDS).unwrap_or(1);
    if !settings.sound(&inputs) || !settings.sound(sketch::SHAPE) {
        return None;
    }
    let scaled = sketch.scaled().map(|scaled| {
        ContainmentFilter::new(threshold, scaled, scheme.exact, least_words)
            .map(|filter| FilterPlan::Containment(params.verify, filter))
    });
    let made = scaled.unwrap_or_else(|| match (sketch.shape(), params.verify) {
        (Some(shape), Verify::Sketch) => Target::for_shape(threshold, shape)
            .and_then(|target| Ok(FilterPlan::Sketch(params.kind, StagedFilter::new(target, params)?))),
        (Some(shape), Verify::Exact) if sketch.is_concentrated() => Target::for_shape(threshold, shape)
            .and_then(|target| ExactFilter::new(target, params))
            .map(|exact| FilterPlan::Exact(params.kind, exact.by(scheme.measure()))),
        (None, Verify::Sketch) => WholeFilter::new(threshold, sketch).map(FilterPlan::Whole),
        (_, Verify::Exact) => ExactFilter::features_only(threshold)
            .map(|exact| FilterPlan::Exact(params.kind, exact.by(scheme.measure()))),
    });
    made.map_err(|error| {
        let key = match error {
            FilterError::Threshold { .. } if params.kind == FilterKind::Hamming => "blocking.distance",
            FilterError::Threshold { .. } => "threshold",
            FilterError::Error { .. } => "filter.error",
            FilterError::Looks { .. } => "filter.looks",
            FilterError::PaperExact => "filter.verify",
        };
        settings.problem(key, ProblemKind::Contradiction(error.to_string()));
    })
    .ok()
}
