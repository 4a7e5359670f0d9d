//! Reads the table `[text]` into text rules.

mod fields;
pub(super) mod frozen;
pub(super) mod units;
pub(super) mod weights;

use crate::config::pipeline::keys;
use crate::config::settings::read_file;
use crate::config::settings::{ConfigKey, FileSettings, ProblemKind, without_effect};
use dupflow_core::hash::TokenHash;
use dupflow_core::sketch::{SketchKind, SketchParams};
use dupflow_core::text::{
    self, Given, Html, Invisible, Normalize, Shingle, Spaceless, Stem, TextRules, Weights,
};
use dupflow_run::missing_feature;
use frozen::TableSource;

/// The text rules, and the source of a frozen table of document frequencies if the pipeline names one.
pub(in crate::config::pipeline) fn rules(
    settings: &mut FileSettings,
    sketch: &SketchParams,
) -> (TextRules, Option<TableSource>) {
    let default = TextRules::default();
    let default = match given(settings, sketch) {
        None => default,
        // A feature is one word, whatever its script.
        given => TextRules { given, shingle: Shingle::Words(1), spaceless: Spaceless::Char, ..default },
    };
    let spaceless = settings.get(&keys::SPACELESS);
    let mut rules = TextRules {
        html: html(settings),
        shingle: settings.get(&keys::SHINGLE).unwrap_or(default.shingle),
        spaceless: spaceless.unwrap_or(default.spaceless),
        marks: settings.get(&keys::MARKS).unwrap_or(default.marks),
        normalize: settings.get(&keys::NORMALIZE).unwrap_or(default.normalize),
        invisible: settings.get(&keys::INVISIBLE).unwrap_or(default.invisible),
        folds: settings.get(&keys::FOLD).unwrap_or(default.folds),
        hash: token_hash(settings),
        fields: fields::fields(settings),
        ..default
    };
    rules.stop_words = stop_words(settings, &rules);
    rules.stem = stem(settings, rules.shingle);
    let (weights, table) = weights::weights(settings);
    rules.weights = weights;
    if rules.given.is_some() {
        rules.html = Html::None;
        (rules.normalize, rules.invisible) = (Normalize::None, Invisible::Keep);
        rules.given = rules.given.map(|given| match given {
            Given::Features { .. } => Given::Features { weighted: rules.shingle == Shingle::Words(1) },
            fingerprint @ Given::Fingerprint(_) => fingerprint,
        });
        return (rules, table);
    }
    // Where single words are counted, a part of a word says less than it does in a shingle of several words.
    if spaceless.is_none() && rules.weights != Weights::Unit && rules.shingle == Shingle::Words(1) {
        rules.spaceless = Spaceless::Bag;
    }
    (rules, table)
}

/// What a record brings in place of a text. Reports the settings that do not apply to it.
fn given(settings: &mut FileSettings, sketch: &SketchParams) -> Option<Given> {
    let is_fingerprint = sketch.kind == SketchKind::Fingerprint;
    let is_given = settings.get(&keys::FEATURES).unwrap_or_default();
    if !is_given {
        if is_fingerprint {
            let what = "takes the bits that a record brings; set text.features = \"given\"";
            settings.problem(keys::KIND.name(), ProblemKind::Contradiction(what.to_owned()));
        }
        return None;
    }
    let of_texts = [
        "text.spaceless",
        "text.marks",
        "text.normalize",
        "text.invisible",
        "text.fold",
        "text.html",
        "text.stop_words",
        "text.stem",
    ];
    without_effect(settings, keys::FEATURES.name(), "given", &of_texts);
    for name in settings.names("text.fields") {
        let what = "has no effect with text.features = \"given\"";
        settings.problem(&fields::key(&name), ProblemKind::Contradiction(what.to_owned()));
    }
    if is_fingerprint {
        without_effect(settings, keys::KIND.name(), sketch.kind.name(), &["text.shingle", "text.secret"]);
        return Some(Given::Fingerprint(sketch.size));
    }
    // A shingle that the file sets for texts does not apply.
    if !settings.applies_with("text.shingle", keys::FEATURES.name()) {
        settings.forget("text.shingle");
    }
    if matches!(settings.get(&keys::SHINGLE), Some(Shingle::Chars(_))) {
        let what = "given features have no characters; leave it out, or text.shingle = \"words:N\"";
        settings.problem(keys::SHINGLE.name(), ProblemKind::Contradiction(what.to_owned()));
    }
    Some(Given::Features { weighted: true })
}

/// The token hash. No message shows its secret.
fn token_hash(settings: &mut FileSettings) -> TokenHash {
    match settings.secret(keys::SECRET.name(), keys::SECRET.take) {
        None => TokenHash::default(),
        Some(Ok(hash)) => hash,
        Some(Err(())) => {
            let what = format!("expected {}", (keys::SECRET.expected)());
            settings.problem(keys::SECRET.name(), ProblemKind::Contradiction(what));
            TokenHash::default()
        }
    }
}

/// What is extracted from HTML pages; reports an extraction that this build lacks.
fn html(settings: &mut FileSettings) -> Html {
    let html = settings.get(&keys::HTML).unwrap_or_default();
    if html == Html::Article && !cfg!(feature = "article") {
        let what = missing_feature("articles", "article");
        settings.problem(keys::HTML.name(), ProblemKind::Contradiction(what));
        return Html::default();
    }
    html
}

/// The stemmer. Stop words are compared before stemming.
fn stem(settings: &mut FileSettings, shingle: Shingle) -> Stem {
    let stem = settings.get(&keys::STEM).unwrap_or_default();
    if stem != Stem::None && matches!(shingle, Shingle::Chars(_)) {
        let what = "is for shingles of words; leave it out, or text.shingle = \"words:N\"";
        settings.problem(keys::STEM.name(), ProblemKind::Contradiction(what.to_owned()));
        return Stem::None;
    }
    stem
}

/// The stop words as tokens, sorted and distinct. A word that is not exactly one token would never match, so
/// it is a problem.
fn stop_words(settings: &mut FileSettings, rules: &TextRules) -> Vec<String> {
    let key = keys::STOP_WORDS.name();
    let words = match settings.get(&keys::STOP_WORDS) {
        None => return Vec::new(),
        Some(Ok(words)) => words,
        Some(Err(path)) => match read_file(&settings.folder(key).join(path)) {
            Ok(text) => {
                text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
            }
            Err(error) => {
                let cause =
                    std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
                settings.problem(key, ProblemKind::Contradiction(format!("{error}{cause}")));
                return Vec::new();
            }
        },
    };
    let (mut tokens, mut strange) = (Vec::new(), Vec::new());
    for word in words {
        match <[String; 1]>::try_from(text::tokens(&word, rules)) {
            Ok([token]) => tokens.push(token),
            Err(_) => strange.push(word),
        }
    }
    if let Some(word) = strange.first() {
        let more = if strange.len() > 1 { format!(" and {} more", strange.len() - 1) } else { String::new() };
        let expected = "words that are one token each by the rules of [text]".to_owned();
        settings.problem(key, ProblemKind::Unexpected { found: format!("{word:?}{more}"), expected });
    }
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}
