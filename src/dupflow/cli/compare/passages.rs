//! The two texts of a comparison with their common passages, as text.
//!
//! A common passage is in brackets, behind its number; a passage of the same number is in the other text.
//! Control characters are escaped, except for ends of lines and tabs.

use std::fmt::Write as _;

use super::subject::Subject;
use dupflow_core::text::{Html, Passages, TextPiece, TextRules, common_passages, readable};

/// Both texts; empty for texts that are not of a corpus.
pub(super) fn text(subject: &Subject) -> String {
    let Subject { plan, texts, corpus: Some(_), .. } = subject else { return String::new() };
    passages_of(&plan.scheme.text, texts.each_ref().map(|text| &*text.text), |passages| {
        let mut out = format!(
            "\ncommon passages, in brackets: {:.1} % of A's tokens, {:.1} % of B's\n",
            100.0 * passages.shared_a,
            100.0 * passages.shared_b
        );
        for (which, pieces) in [("A", &passages.a), ("B", &passages.b)] {
            let _ = write!(out, "\n{which}\n");
            pieces.iter().for_each(|piece| put(&mut out, piece));
            out.push('\n');
        }
        out
    })
}

/// Calls `each` with the passages of two texts, as the pipeline reads them.
pub(in crate::cli) fn passages_of<T>(
    rules: &TextRules,
    [a, b]: [&str; 2],
    each: impl FnOnce(&Passages<'_>) -> T,
) -> T {
    let (a, b) = (readable(a, rules), readable(b, rules));
    // The texts are readable now: a page is not read twice.
    let rules = TextRules { html: Html::None, ..rules.clone() };
    each(&common_passages(&a, &b, &rules))
}

fn put(out: &mut String, piece: &TextPiece<'_>) {
    match piece.passage {
        None => put_text(out, piece.text),
        Some(number) => {
            let _ = write!(out, "[{} ", number + 1);
            put_text(out, piece.text);
            out.push(']');
        }
    }
}

/// Appends a text; control characters are escaped, except for ends of lines and tabs.
pub(in crate::cli) fn put_text(out: &mut String, text: &str) {
    for character in text.chars() {
        let is_control = character.is_control() && !matches!(character, '\n' | '\t');
        if is_control || changes_direction(character) {
            out.extend(character.escape_default());
        } else {
            out.push(character);
        }
    }
}

/// Whether a character changes the direction in which others are shown: a mark, an embedding, an override or
/// an isolate of Unicode's bidirectional algorithm (UAX #9, section 2).
pub(in crate::cli) fn changes_direction(character: char) -> bool {
    matches!(
        character,
        '\u{61c}' | '\u{200e}' | '\u{200f}' | '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}'
    )
}

/// A text without its middle, of which so many characters of the beginning and of the end are left.
pub(in crate::cli) fn shortened(text: &str, begin: usize, end: usize) -> String {
    let length = text.chars().count();
    // What says how much is left out is shorter than what it stands for.
    if length <= begin + end + 40 {
        return text.to_owned();
    }
    let at = |n: usize| text.char_indices().nth(n).map_or(text.len(), |(at, _)| at);
    let (head, tail) = (&text[..at(begin)], &text[at(length - end)..]);
    format!("{head} … {} characters … {tail}", length - begin - end)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_text_is_shortened_by_characters() {
        assert_eq!(shortened(&"ä".repeat(100), 2, 3), format!("ää … 95 characters … äää"));
        assert_eq!(shortened(&"ä".repeat(45), 2, 3), "ä".repeat(45));
    }
}
