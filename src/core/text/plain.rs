//! The rules of [`super`] implemented directly on strings: for display (`trace`, `compare`), and as the
//! reference for the fast path. Several times slower than [`super::Featurizer`].

use std::ops::Range;

use super::pages::readable;
use super::rules::{Shingle, TextRules};
use super::tokens::Spaceless;
use super::tokens::stem::Stemmer;
use super::tokens::unicode::{Class, WORD, class, weight};

/// The tokens of a text in text order, without stop words, stemmed if the rules say so.
///
/// # Panics
/// If the rules ask for articles and the crate is built without the feature `article`.
pub fn tokens(text: &str, rules: &TextRules) -> Vec<String> {
    match rules.given {
        Some(given) => given.features(text).into_iter().map(|feature| feature.name.into_owned()).collect(),
        None => of_readable(&readable(text, rules), rules),
    }
}

fn of_readable(text: &str, rules: &TextRules) -> Vec<String> {
    let mut scratch = String::new();
    let text = rules.letters().apply(text, &mut scratch);
    let stemmer = Stemmer::new(rules.stem, rules.hash);
    let stem = |token: String| match &stemmer {
        Some(stemmer) => stemmer.stem(&token).into_owned(),
        None => token,
    };
    spans(text, rules)
        .into_iter()
        .map(|span| text[span].to_lowercase())
        .filter(|token| !rules.stop_words.contains(token))
        .map(stem)
        .collect()
}

/// The byte ranges of the tokens of a text whose letters are as they are compared, stop words included: the
/// longest runs of characters each of which [may precede the next](Class::may_precede), without leading marks
/// and without a trailing joiner.
pub(super) fn spans(text: &str, rules: &TextRules) -> Vec<Range<usize>> {
    let (mut spans, mut before) = (Vec::new(), Class::Separator);
    let (mut first, mut end) = (None, 0);
    for (at, c) in text.char_indices() {
        let class = class(c, rules.spaceless, rules.marks);
        if !before.may_precede(class) {
            spans.extend(first.take().map(|first| first..end));
        }
        before = class;
        if !matches!(class, Class::Separator | Class::Mark | Class::Joiner) {
            first = first.or(Some(at));
        }
        if class != Class::Joiner {
            end = at + c.len_utf8();
        }
    }
    spans.extend(first.map(|first| first..end));
    spans
}

/// The shingles of a text, one for each of its [features](super::Featurizer::features) and in the same order.
///
/// # Panics
/// If the rules ask for articles and the crate is built without the feature `article`.
pub fn shingles(text: &str, rules: &TextRules) -> Vec<String> {
    if rules.given.is_some() {
        return of_tokens(&tokens(text, rules), rules);
    }
    rules.parts(&readable(text, rules)).flat_map(|part| of_tokens(&of_readable(part, rules), rules)).collect()
}

fn of_tokens(tokens: &[String], rules: &TextRules) -> Vec<String> {
    if tokens.is_empty() {
        return Vec::new();
    }
    match rules.shingle {
        Shingle::Words(size) => {
            windows(tokens, size, rules.spaceless).map(|window| window.join(" ")).collect()
        }
        Shingle::Chars(size) => {
            let chars: Vec<char> = tokens.join(" ").chars().collect();
            chars.windows(size.min(chars.len())).map(String::from_iter).collect()
        }
    }
}

/// For each token, the shortest window from there of weight at least `size`. A text too short for one gives a
/// single window of all its tokens; an empty text gives none.
pub(super) fn windows(tokens: &[String], size: usize, rule: Spaceless) -> impl Iterator<Item = &[String]> {
    let from = move |first| {
        let mut sum = 0;
        let is_enough = |token: &String| {
            sum += weight(token, rule);
            sum >= size * WORD
        };
        let last = tokens[first..].iter().position(is_enough)?;
        Some(&tokens[first..=first + last])
    };
    let none = (!tokens.is_empty() && from(0).is_none()).then_some(tokens);
    none.into_iter().chain((0..tokens.len()).map_while(from))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_split_before_they_are_lowercased() {
        let rules = TextRules::default();
        assert_eq!(tokens("İstanbul's ΟΔΟΣ", &rules), ["i\u{307}stanbul", "s", "οδος"]);
        assert_eq!(tokens(" _-\u{200b}", &rules), [""; 0]);
        assert_eq!(tokens("\u{feff}soft\u{ad}ened cafe\u{301}", &rules), ["softened", "café"]);
    }

    #[test]
    fn characters_without_spaces_stand_alone() {
        let text = "abc漢字Σとdef ไป";
        let of = |spaceless, typed| tokens(typed, &TextRules { spaceless, ..TextRules::default() });
        for spaceless in [Spaceless::Part, Spaceless::Char] {
            assert_eq!(of(spaceless, text), ["abc", "漢", "字", "σ", "と", "def", "ไ", "ป"]);
        }
        assert_eq!(of(Spaceless::Run, text), ["abc漢字σとdef", "ไป"]);
        assert_eq!(of(Spaceless::Part, "バター2ーー"), ["バ", "タ", "ー", "2", "ー", "ー"]);
        assert_eq!(of(Spaceless::Char, "バター2ーー"), ["バ", "タ", "ー2ーー"]);
    }

    #[test]
    fn shingles_weigh_the_same_in_every_script() {
        let of = |text, shingle| shingles(text, &TextRules { shingle, ..TextRules::default() });
        assert_eq!(of("近似 a", Shingle::Words(1)), ["近 似", "似 a", "a"]);
        assert_eq!(of("ない。", Shingle::Words(1)), ["な い"]);
        assert_eq!(of("ไม่มี ok", Shingle::Words(1)), ["ไ ม ม ี ok", "ม ม ี ok", "ม ี ok", "ี ok", "ok"]);
        assert_eq!(of("你好 world", Shingle::Words(3)), ["你 好 world"], "less than 3 words");
        // In a bag a kana is a sixth of a word, a Thai character an eighth.
        let bag = |text| {
            let rules =
                TextRules { shingle: Shingle::Words(1), spaceless: Spaceless::Bag, ..TextRules::default() };
            shingles(text, &rules)
        };
        assert_eq!(bag("近似 a"), of("近似 a", Shingle::Words(1)));
        assert_eq!(bag("かなかなかなか"), ["か な か な か な", "な か な か な か"]);
        assert_eq!(bag("กขคงจฉชซฌ"), ["ก ข ค ง จ ฉ ช ซ", "ข ค ง จ ฉ ช ซ ฌ"]);
        // Unchanged: Arabic, Hangul and Devanagari words, emoji between words.
        assert_eq!(
            of("مرحبا بالعالم 한국어 नमस 🎉ok", Shingle::Words(4)),
            ["مرحبا بالعالم 한국어 नमस", "بالعالم 한국어 नमस ok"]
        );
    }

    #[test]
    fn stop_words_are_removed_before_shingling() {
        let rules = TextRules { stop_words: vec!["of".to_owned(), "the".to_owned()], ..TextRules::default() };
        assert_eq!(shingles("The end OF the long road", &rules), ["end long road"]);
        assert_eq!(shingles("of the", &rules), [""; 0]);
    }

    #[test]
    fn short_texts_have_one_shingle() {
        let of = |text, shingle| shingles(text, &TextRules { shingle, ..TextRules::default() });
        assert_eq!(of("", Shingle::Words(3)), [""; 0]);
        assert_eq!(of("a b", Shingle::Words(3)), ["a b"]);
        assert_eq!(of("a b c", Shingle::Words(3)), ["a b c"]);
        assert_eq!(of("a b c d", Shingle::Words(3)), ["a b c", "b c d"]);
        assert_eq!(of("A.b", Shingle::Chars(4)), ["a b"]);
        assert_eq!(of("A.bé", Shingle::Chars(3)), ["a b", " bé"]);
    }
}
