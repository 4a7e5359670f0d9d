//! Units: the elements of shingles, each with its position in the original text.
//!
//! Text and [`TextRules`] -> units, and the *windows* of units that are shingles. For shingles of words a
//! unit is a token. For shingles of characters it is a character of a lowercased token, or the space that
//! joins two tokens. A unit has a hash, and the byte range of the text that it was made from: a character
//! that grows under lowercasing, normalization or a fold is shared by the units made from it, and a joining
//! space has the range between the two tokens.
//!
//! Invariants: windows are those of [`shingles`](crate::text::shingles), in the same order; both their ends
//! ascend. Byte ranges of units ascend too, and begin and end between characters.
//!
//! Reference: Unicode Standard Annex #15, section 9.1 (where a text may be cut so that its pieces can be
//! normalized one by one).

use std::borrow::Cow;
use std::ops::Range;

use unicode_normalization::char::{canonical_combining_class, decompose_canonical, decompose_compatible};
use unicode_normalization::{IsNormalized, is_nfc_quick, is_nfkc_quick};

use crate::hash;
use crate::text::plain::spans;
use crate::text::rules::{Shingle, TextRules};
use crate::text::tokens::Normalize;
use crate::text::tokens::letters::{Letters, is_invisible};
use crate::text::tokens::stem::Stemmer;
use crate::text::tokens::unicode::{self, WORD};

/// A token, or a character of one, or the space between two.
#[derive(Clone, Debug)]
pub(in crate::text) struct Unit {
    pub(in crate::text) hash: u64,
    /// Its weight in a window: 24ths of a word, or 1 for a character.
    weight: usize,
    /// The index of its part in a text with fields: no window and no passage has units of two parts.
    pub(in crate::text) part: usize,
    /// Its bytes in the original text.
    pub(in crate::text) bytes: Range<usize>,
}

/// The units of one text.
#[derive(Debug, Default)]
pub(in crate::text) struct Units {
    pub(in crate::text) units: Vec<Unit>,
    /// The shingles, as ranges of units.
    pub(in crate::text) windows: Vec<Range<usize>>,
}

impl Units {
    /// The units of a text.
    pub(in crate::text) fn new(text: &str, rules: &TextRules) -> Self {
        let mut all = Self::default();
        let mut at = 0;
        for (place, part) in rules.parts(text).enumerate() {
            let first = all.units.len();
            match rules.given {
                Some(given) => all.units.extend(given.features(part).into_iter().map(|feature| Unit {
                    hash: rules.hash.token(feature.name.as_bytes()),
                    weight: WORD,
                    part: place,
                    bytes: feature.bytes,
                })),
                None => all.read(part, at, place, rules),
            }
            all.shingle(first, rules.shingle);
            // A separator takes one byte.
            at += part.len() + 1;
        }
        all
    }

    /// Appends the units of a part that begins at byte `base` of the text.
    fn read(&mut self, part: &str, base: usize, place: usize, rules: &TextRules) {
        let normal = NormalizedText::new(part, rules.letters());
        let of_chars = matches!(rules.shingle, Shingle::Chars(_));
        let stemmer = Stemmer::new(rules.stem, rules.hash);
        // End of the last token, in bytes of the part.
        let mut before = None;
        for span in spans(&normal.text, rules) {
            let token = &normal.text[span.clone()];
            let lowered = token.to_lowercase();
            if rules.stop_words.binary_search(&lowered).is_ok() {
                continue;
            }
            let first = normal.first(span.start);
            let mut push = |hash, weight, bytes: Range<usize>| {
                let bytes = base + bytes.start..base + bytes.end;
                self.units.push(Unit { hash, weight, part: place, bytes });
            };
            if of_chars {
                if let Some(end) = before {
                    push(of_char(' '), 1, end..first.max(end));
                }
                // The lowercase of a capital sigma depends on its context, but is always one character.
                let mut rest = lowered.chars();
                for (at, c) in token.char_indices() {
                    let (at, end) = (span.start + at, span.start + at + c.len_utf8());
                    for small in rest.by_ref().take(c.to_lowercase().count()) {
                        push(of_char(small), 1, normal.first(at)..normal.end(end));
                    }
                }
            } else {
                let weight = unicode::weight(token, rules.spaceless);
                let stem =
                    stemmer.as_ref().map_or(Cow::Borrowed(&*lowered), |stemmer| stemmer.stem(&lowered));
                push(rules.hash.token(stem.as_bytes()), weight, first..normal.end(span.end));
            }
            before = Some(normal.end(span.end));
        }
    }

    /// Appends the windows of the units from `first` on: see [`crate::text::shingle`].
    fn shingle(&mut self, first: usize, shingle: Shingle) {
        let wanted = match shingle {
            Shingle::Words(size) => size * WORD,
            Shingle::Chars(size) => size,
        };
        let (mut start, mut weight) = (first, 0);
        for (at, unit) in self.units.iter().enumerate().skip(first) {
            weight += unit.weight;
            while weight >= wanted {
                self.windows.push(start..at + 1);
                weight -= self.units[start].weight;
                start += 1;
            }
        }
        if start == first && first < self.units.len() {
            self.windows.push(first..self.units.len());
        }
    }
}

fn of_char(c: char) -> u64 {
    hash::token(c.encode_utf8(&mut [0; 4]).as_bytes())
}

/// A text with its letters as they are compared, and a mapping back to the original bytes.
struct NormalizedText<'t> {
    text: Cow<'t, str>,
    /// Length of the original text in bytes.
    len: usize,
    /// For a text that was changed, its pieces, each changed separately: where the piece begins in the
    /// changed text, where in the original, and whether it is unchanged.
    pieces: Vec<(usize, usize, bool)>,
}

impl<'t> NormalizedText<'t> {
    fn new(text: &'t str, letters: Letters) -> Self {
        let mut scratch = String::new();
        if std::ptr::eq(letters.apply(text, &mut scratch), text) {
            return Self { text: text.into(), len: text.len(), pieces: Vec::new() };
        }
        let (mut whole, mut pieces) = (String::new(), Vec::new());
        let mut rest = text;
        while !rest.is_empty() {
            let next = rest.char_indices().skip(1).find(|&(_, c)| begins_piece(c, letters.normalize));
            let (piece, after) = rest.split_at(next.map_or(rest.len(), |(at, _)| at));
            let changed = letters.apply(piece, &mut scratch);
            pieces.push((whole.len(), text.len() - rest.len(), changed == piece));
            whole.push_str(changed);
            rest = after;
        }
        Self { text: whole.into(), len: text.len(), pieces }
    }

    /// Start, in the original, of the character that begins at this byte of the changed text.
    fn first(&self, at: usize) -> usize {
        match self.pieces[..self.pieces.partition_point(|piece| piece.0 <= at)].last() {
            None => at,
            Some(&(here, there, same)) => there + if same { at - here } else { 0 },
        }
    }

    /// End, in the original, of the character that ends at this byte (1 or more) of the changed text.
    fn end(&self, at: usize) -> usize {
        let next = self.pieces.partition_point(|piece| piece.0 < at);
        match self.pieces[..next].last() {
            None => at,
            Some(&(here, there, true)) => there + at - here,
            Some(_) => self.pieces.get(next).map_or(self.len, |piece| piece.1),
        }
    }
}

/// Whether this character is changed independently of all characters before it: it shows, and its
/// decomposition begins with a character that neither moves nor composes with an earlier one.
fn begins_piece(c: char, form: Normalize) -> bool {
    if is_invisible(c) {
        return false;
    }
    let mut first = None;
    let mut keep = |part| first = first.or(Some(part));
    match form {
        Normalize::Nfkc => decompose_compatible(c, &mut keep),
        Normalize::None | Normalize::Nfc => decompose_canonical(c, &mut keep),
    }
    let first = first.unwrap_or(c);
    let quick = match form {
        Normalize::Nfkc => is_nfkc_quick(std::iter::once(first)),
        Normalize::None | Normalize::Nfc => is_nfc_quick(std::iter::once(first)),
    };
    canonical_combining_class(first) == 0 && quick == IsNormalized::Yes
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::{Marks, Spaceless, shingles, tokens};

    const TEXTS: [&str; 11] = [
        "",
        "One two, THREE four five",
        "İstanbul's ΟΔΟΣ ΣΑΣ",
        "近似重複 of 漢字ＡＢＣ漢 と バター2ーー",
        "ไม่มี ok مرحبا بالعالم 한국어 नमस 🎉ok",
        "e\u{301}tude ﬁne ½ ㎏ \u{1100}\u{1161}\u{11a8} a\u{323}\u{307} \u{212b}ngström",
        "हिन्दी cafe\u{301}s می\u{200c}خواهم x\u{200d} ไม่\u{301}a",
        "so\u{ad}ft\u{200b}ly \u{feff}e\u{ad}\u{301}t\u{301}\u{200d}x ab\u{200c}c\u{200c} Stra\u{200b}ße ёж",
        "title one\u{1e}second part here\u{1e}the third",
        "\u{301}\u{301} x \u{200f}y\u{202e}z\u{0}",
        "the of the",
    ];

    fn all_rules() -> Vec<TextRules> {
        let mut all = Vec::new();
        for normalize in [Normalize::None, Normalize::Nfc, Normalize::Nfkc] {
            for spaceless in [Spaceless::Part, Spaceless::Bag, Spaceless::Char, Spaceless::Run] {
                for shingle in [Shingle::Words(1), Shingle::Words(3), Shingle::Chars(1), Shingle::Chars(5)] {
                    for stop_words in [vec![], vec!["of".to_owned(), "the".to_owned()]] {
                        let marks = if stop_words.is_empty() { Marks::Keep } else { Marks::Split };
                        all.push(TextRules {
                            shingle,
                            spaceless,
                            marks,
                            normalize,
                            stop_words,
                            ..TextRules::default()
                        });
                    }
                }
            }
        }
        all
    }

    #[test]
    fn windows_are_the_shingles() {
        for rules in all_rules() {
            for text in TEXTS {
                let units = Units::new(text, &rules);
                let of_unit: Vec<u64> = match rules.shingle {
                    Shingle::Words(_) => {
                        tokens(text, &rules).iter().map(|token| hash::token(token.as_bytes())).collect()
                    }
                    Shingle::Chars(_) => tokens(text, &rules).join(" ").chars().map(of_char).collect(),
                };
                assert!(units.units.iter().map(|unit| unit.hash).eq(of_unit), "{text:?} {rules:?}");
                let of_window = |window: &Range<usize>| -> Vec<u64> {
                    units.units[window.clone()].iter().map(|unit| unit.hash).collect()
                };
                let of_shingle = |shingle: &String| -> Vec<u64> {
                    match rules.shingle {
                        Shingle::Words(_) => {
                            shingle.split(' ').map(|token| hash::token(token.as_bytes())).collect()
                        }
                        Shingle::Chars(_) => shingle.chars().map(of_char).collect(),
                    }
                };
                let found: Vec<_> = units.windows.iter().map(of_window).collect();
                let expected: Vec<_> = shingles(text, &rules).iter().map(of_shingle).collect();
                assert_eq!(found, expected, "{text:?} {rules:?}");
            }
        }
    }

    #[test]
    fn bytes_ascend_on_boundaries_of_characters() {
        for rules in all_rules() {
            for text in TEXTS {
                let mut before = 0;
                for Unit { bytes, .. } in Units::new(text, &rules).units {
                    assert!(text.get(bytes.clone()).is_some(), "{bytes:?} of {text:?}");
                    assert!(before <= bytes.end && bytes.start <= bytes.end, "{bytes:?} of {text:?}");
                    before = bytes.end;
                }
            }
        }
    }

    #[test]
    fn units_have_their_original_bytes() {
        let nfkc = TextRules {
            normalize: Normalize::Nfkc,
            shingle: Shingle::Words(1),
            spaceless: Spaceless::Char,
            ..TextRules::default()
        };
        let text = "a ﬁne e\u{301}tude, 漢字ＡＢＣ漢 ½";
        let found: Vec<&str> =
            Units::new(text, &nfkc).units.iter().map(|unit| &text[unit.bytes.clone()]).collect();
        assert_eq!(found, ["a", "ﬁne", "e\u{301}tude", "漢", "字", "ＡＢＣ", "漢", "½", "½"]);
        let chars = TextRules { shingle: Shingle::Chars(2), ..TextRules::default() };
        let typed = "A, İb";
        let of: Vec<&str> =
            Units::new(typed, &chars).units.iter().map(|unit| &typed[unit.bytes.clone()]).collect();
        assert_eq!(of, ["A", ", ", "İ", "İ", "b"]);
    }

    #[test]
    fn no_window_crosses_from_one_field_to_the_next() {
        let field = |name: &str| crate::text::Field { name: name.to_owned(), weight: 2 };
        let rules = TextRules {
            shingle: Shingle::Words(2),
            fields: vec![field("a"), field("b")],
            ..TextRules::default()
        };
        let text = "one two three\u{1e}four\u{1e}five six";
        let units = Units::new(text, &rules);
        assert_eq!(units.windows, [0..2, 1..3, 3..4, 4..6]);
        assert_eq!(&text[units.units[3].bytes.clone()], "four");
    }
}
