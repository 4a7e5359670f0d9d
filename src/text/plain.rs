//! The rules of [`super`] word for word, with strings: for people (`trace`, `compare`) and as the reference that the
//! fast path must equal. Several times slower than [`super::Featurizer`].

use super::normalize::normalized;
use super::unicode::is_spaceless;
use super::{Shingle, Spaceless, TextRules};

/// The tokens of a text in text order, stop words removed.
pub fn tokens(text: &str, rules: &TextRules) -> Vec<String> {
    let mut scratch = String::new();
    let text = normalized(text, rules.normalize, &mut scratch);
    let is_alone = |c: char| rules.spaceless == Spaceless::Char && is_spaceless(c);
    text.split(|c: char| !c.is_alphanumeric())
        .flat_map(|run| run.split_inclusive(is_alone))
        .flat_map(|piece| match piece.char_indices().next_back() {
            Some((last, c)) if is_alone(c) => [&piece[..last], &piece[last..]],
            _ => [piece, ""],
        })
        .filter(|token| !token.is_empty())
        .map(str::to_lowercase)
        .filter(|token| !rules.stop_words.contains(token))
        .collect()
}

/// The shingles of a text, one for each of its [features](super::Featurizer::features) and in the same order.
pub fn shingles(text: &str, rules: &TextRules) -> Vec<String> {
    rules.parts(text).flat_map(|part| of_part(part, rules)).collect()
}

fn of_part(text: &str, rules: &TextRules) -> Vec<String> {
    let tokens = tokens(text, rules);
    if tokens.is_empty() {
        return Vec::new();
    }
    match rules.shingle {
        Shingle::Words(size) => tokens.windows(size.min(tokens.len())).map(|w| w.join(" ")).collect(),
        Shingle::Chars(size) => {
            let chars: Vec<char> = tokens.join(" ").chars().collect();
            chars.windows(size.min(chars.len())).map(String::from_iter).collect()
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_are_split_before_they_are_lowercased() {
        let rules = TextRules::default();
        assert_eq!(tokens("İstanbul's ΟΔΟΣ", &rules), ["i\u{307}stanbul", "s", "οδος"]);
        assert_eq!(tokens(" _-\u{200b}", &rules), [""; 0]);
    }

    #[test]
    fn characters_without_spaces_stand_alone() {
        let text = "abc漢字Σとdef ไป";
        let run = TextRules { spaceless: Spaceless::Run, ..TextRules::default() };
        assert_eq!(tokens(text, &TextRules::default()), ["abc", "漢", "字", "σ", "と", "def", "ไ", "ป"]);
        assert_eq!(tokens(text, &run), ["abc漢字σとdef", "ไป"]);
    }

    #[test]
    fn stop_words_leave_before_shingling() {
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
