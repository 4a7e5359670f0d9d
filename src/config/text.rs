//! The table `[text]` to rules.

use super::problem::What;
use super::raw::Settings;
use super::value::Value;
use super::{fields, read, weights};
use crate::text::{self, Normalize, Shingle, Spaceless, TextRules, Weights};

/// Most tokens or characters of a shingle.
const LONGEST_SHINGLE: usize = 100;

/// The rules of `[text]`.
pub(super) fn rules(settings: &mut Settings) -> TextRules {
    let default = TextRules::default();
    let spaceless = [("char", Spaceless::Char), ("run", Spaceless::Run)];
    let normalize = [("none", Normalize::None), ("nfc", Normalize::Nfc), ("nfkc", Normalize::Nfkc)];
    let mut rules = TextRules {
        shingle: settings.read("text.shingle", |v| shingle(v.text()?)).unwrap_or(default.shingle),
        spaceless: settings.choose("text.spaceless", &spaceless, &[]).unwrap_or(default.spaceless),
        normalize: settings.choose("text.normalize", &normalize, &[]).unwrap_or(default.normalize),
        stop_words: Vec::new(),
        fields: fields::fields(settings),
        weights: Weights::Unit,
    };
    rules.stop_words = stop_words(settings, &rules);
    rules.weights = weights::weights(settings, &rules);
    rules
}

/// `words:N` or `chars:N`.
fn shingle(typed: &str) -> Option<Shingle> {
    let (unit, size) = typed.split_once(':')?;
    let size = size.parse().ok().filter(|size| (1..=LONGEST_SHINGLE).contains(size))?;
    match unit {
        "words" => Some(Shingle::Words(size)),
        "chars" => Some(Shingle::Chars(size)),
        _ => None,
    }
}

/// The stop words as tokens, sorted and distinct. A word that is not one token could never be met, so it is a problem.
fn stop_words(settings: &mut Settings, rules: &TextRules) -> Vec<String> {
    const KEY: &str = "text.stop_words";
    let typed = settings.read(KEY, |value| match value {
        Value::Text(path, _) => Some(Err(path.clone())),
        list => list.list(|word| word.text().map(str::to_owned)).map(Ok),
    });
    let words = match typed {
        None => return Vec::new(),
        Some(Ok(words)) => words,
        Some(Err(path)) => match read(&settings.folder(KEY).join(path)) {
            Ok(text) => {
                text.lines().map(|line| line.trim().to_owned()).filter(|line| !line.is_empty()).collect()
            }
            Err(error) => {
                let cause =
                    std::error::Error::source(&error).map_or_else(String::new, |cause| format!(": {cause}"));
                settings.problem(KEY, What::Contradiction(format!("{error}{cause}")));
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
        settings.problem(KEY, What::Unexpected { found: format!("{word:?}{more}"), expected });
    }
    tokens.sort_unstable();
    tokens.dedup();
    tokens
}
