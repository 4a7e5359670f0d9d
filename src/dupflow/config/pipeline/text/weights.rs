//! Feature weights: what `[text]` says about them, and whether sketch and measure fit them.

use std::sync::Arc;

use super::fields;
use super::frozen::TableSource;
use crate::config::pipeline::keys;
use crate::config::settings::{FileSettings, ProblemKind, without_effect};
use dupflow_core::sketch::Scheme;
use dupflow_core::text::measures::Measure;
use dupflow_core::text::{Field, Idf, IdfTable, Weights};

/// The weights, and the source of the table that they are frozen at. Until that table is read, an empty one
/// takes its place.
pub(in crate::config::pipeline) fn weights(settings: &mut FileSettings) -> (Weights, Option<TableSource>) {
    let name = settings.get(&keys::WEIGHTS).unwrap_or("unit");
    let weights = match name {
        "tf-idf" => return tf_idf(settings),
        "count" => Weights::Count,
        "tf" => Weights::Tf,
        _ => Weights::Unit,
    };
    if settings.sound(&["text.weights"]) {
        let useless = ["text.idf", "text.idf_form", "text.idf_growth"];
        without_effect(settings, "text.weights", name, &useless);
    }
    (weights, None)
}

fn tf_idf(settings: &mut FileSettings) -> (Weights, Option<TableSource>) {
    let form = settings.get(&keys::IDF_FORM).unwrap_or_default();
    let growth = settings.get(&keys::IDF_GROWTH).unwrap_or_default();
    let at = settings.origin("text.idf");
    let from = settings.get(&keys::IDF).filter(|from| from != "live");
    let Some((path, at)) = from.zip(at) else {
        return (Weights::TfIdf(Idf::Live(growth), form), None);
    };
    without_effect(settings, "text.idf", &path, &["text.idf_growth"]);
    let source = TableSource { path: settings.folder("text.idf").join(path), at };
    (Weights::TfIdf(Idf::Frozen(Arc::new(IdfTable::new(0, []))), form), Some(source))
}

/// Reports a sketch, weights and measure that do not fit together.
pub(in crate::config::pipeline) fn agree(settings: &mut FileSettings, scheme: &Scheme) {
    let typed = settings.get(&keys::MEASURE);
    if !settings.sound(&["sketch.kind", "text.weights"]) {
        return;
    }
    let of_kind = scheme.sketch.kind.measure();
    if !of_kind.is_weighted() && scheme.text.weights != Weights::Unit {
        let what = "this sketch is of sets, where nothing has a weight; sketches that take weights: dart, \
            icws, cws, simhash";
        settings.problem("text.weights", ProblemKind::Contradiction(what.to_owned()));
    }
    if scheme.text.weights == Weights::Unit {
        for Field { name, .. } in scheme.text.fields.iter().filter(|field| field.weight != 1) {
            let key = fields::key(name);
            // A weight that the file sets does not apply if an override sets `text.weights`.
            if settings.applies_with(&key, "text.weights") {
                let what = "has no effect on a set, where nothing has a weight; set it to 1, or text.weights \
                    other than \"unit\"";
                settings.problem(&key, ProblemKind::Contradiction(what.to_owned()));
            }
        }
    }
    let measure = scheme.measure();
    // A measure that the file sets does not apply if an override sets the sketch or the weights.
    let binds = ["sketch.kind", "text.weights"].iter().all(|key| settings.applies_with("measure", key));
    if let Some(typed) = typed.filter(|typed| binds && *typed != measure) {
        let fits = match typed {
            Measure::Jaccard => "a sketch of sets, or text.weights = \"unit\" with dart, icws or cws",
            Measure::WeightedJaccard => "dart, icws or cws, and text.weights other than \"unit\"",
            Measure::Cosine => "simhash",
            Measure::Hamming => "fingerprint",
            Measure::Containment => "scaled, and text.weights = \"unit\"",
        };
        let what = format!(
            "this sketch and these weights are of the measure \"{}\"; \"{}\" goes with {fits}",
            measure.name(),
            typed.name()
        );
        settings.problem("measure", ProblemKind::Contradiction(what));
    }
}

#[cfg(test)]
mod tests {
    use std::path::Path;

    use super::*;
    use crate::config::Plan;
    use dupflow_core::text::{Growth, IdfForm};

    /// The weights of a pipeline text, and its problems.
    fn read(text: &str) -> (Weights, Vec<String>) {
        let mut settings = FileSettings::new(&[keys::KEYS], &[]);
        settings.add_file("p", text, Path::new(""));
        let (weights, _) = weights(&mut settings);
        (weights, settings.finish().iter().map(ToString::to_string).collect())
    }

    #[test]
    fn accepted_weights() {
        let live = |growth, form| Weights::TfIdf(Idf::Live(growth), form);
        for (text, expected) in [
            ("", Weights::Unit),
            ("text.weights = \"unit\"", Weights::Unit),
            ("text.weights = \"count\"", Weights::Count),
            ("text.weights = \"tf\"", Weights::Tf),
            ("text.weights = \"tf-idf\"", live(Growth::default(), IdfForm::Smooth)),
            (
                "[text]\nweights = \"tf-idf\"\nidf = \"live\"\nidf_form = \"paper\"\nidf_growth = 1.5",
                live(Growth::new(1.5).unwrap(), IdfForm::Paper),
            ),
        ] {
            assert_eq!(read(text), (expected, vec![]), "{text}");
        }
    }

    #[test]
    fn settings_without_effect_are_reported() {
        let problems = |text: &str| read(text).1.join("\n");
        assert_eq!(
            problems("[text]\nweights = \"tf\"\nidf_growth = 3\nidf = \"live\""),
            "p:3: text.idf_growth: has no effect with text.weights = \"tf\"\n\
             p:4: text.idf: has no effect with text.weights = \"tf\""
        );
        assert_eq!(
            problems("text.idf_form = \"paper\""),
            "p:1: text.idf_form: has no effect with text.weights = \"unit\""
        );
        for growth in ["1", "0.5", "1.234", "1001", "-2"] {
            let reported = problems(&format!("[text]\nweights = \"tf-idf\"\nidf_growth = {growth}"));
            assert!(
                reported.starts_with(&format!("p:3: text.idf_growth: found {growth}, expected")),
                "{reported}"
            );
        }
    }

    #[test]
    fn sets_have_no_weights() {
        let problems = |text: &str| {
            Plan::parse("p", text, Path::new(""), &[])
                .err()
                .map(|error| error.to_string())
                .unwrap_or_default()
        };
        assert_eq!(problems("measure = \"jaccard\"\ntext.weights = \"unit\""), "");
        let other = ["sketch.kind=dart".to_owned(), "text.weights=tf".to_owned()];
        let overridden = |text| Plan::parse("p", text, Path::new(""), &other).unwrap().scheme.measure();
        assert_eq!(overridden("measure = \"jaccard\""), Measure::WeightedJaccard);
        assert_eq!(
            problems("text.weights = \"count\""),
            "p:1: text.weights: this sketch is of sets, where nothing has a weight; sketches that take \
            weights: dart, \
             icws, cws, simhash"
        );
        assert_eq!(
            problems("measure = \"cosine\""),
            "p:1: measure: this sketch and these weights are of the measure \"jaccard\"; \"cosine\" goes \
            with simhash"
        );
    }
}
