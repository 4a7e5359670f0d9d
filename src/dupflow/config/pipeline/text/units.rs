//! Reads how documents are cut into units.

use crate::config::pipeline::keys;
use crate::config::settings::{ConfigKey, FileSettings, ProblemKind, without_effect};
use dupflow_core::cluster::ClusterKind;
use dupflow_core::doc::units::UnitRules;
use dupflow_core::sketch::Scheme;

/// The fewest words of a unit that is compared, unless the pipeline sets another number: menus, captions and
/// buttons have fewer.
const LEAST_WORDS: usize = 8;

/// The rules of units; `None` if documents are not cut.
pub(in crate::config::pipeline) fn rules(settings: &mut FileSettings) -> Option<UnitRules> {
    let least_words = settings.get(&keys::SPLIT_LEAST).unwrap_or(LEAST_WORDS);
    let Some(split) = settings.get(&keys::SPLIT).flatten() else {
        without_effect(settings, keys::SPLIT.name(), "document", &[keys::SPLIT_LEAST.name()]);
        return None;
    };
    without_effect(settings, keys::SPLIT.name(), split.name(), &[keys::EXPAND_LIMIT.name()]);
    Some(UnitRules { split, least_words })
}

/// Reports what a pipeline of units cannot have.
pub(in crate::config::pipeline) fn agree(settings: &mut FileSettings, scheme: &Scheme, finds_items: bool) {
    if scheme.units.is_none() {
        return;
    }
    let is_star = settings.get(&keys::CLUSTERS) == Some(ClusterKind::Star);
    for (is_set, what) in [
        (scheme.text.given.is_some(), "given features have no paragraphs or lines: leave one of the two out"),
        (!scheme.text.fields.is_empty(), "a unit is a part of one text: leave text.fields out"),
        (scheme.live().is_some(), "weights that follow the corpus are of whole documents: freeze text.idf"),
        (scheme.sketch.scaled().is_some(), "units are not compared by containment: take another sketch.kind"),
        (finds_items, "units are not looked up in a reference: take another blocking.kind"),
        (is_star, "a star leaves out copies of units: set output.clusters to \"components\""),
    ] {
        if is_set {
            settings.problem(keys::SPLIT.name(), ProblemKind::Contradiction(what.to_owned()));
        }
    }
}
