//! The letters of a text as they are compared: without characters that do not show, composed, and folded.
//!
//! Text -> text, before tokenizing. A text that has nothing to change, as nearly all texts, is not copied.
//!
//! Invisible are the characters of the property Default_Ignorable_Code_Point: the soft hyphen, U+200B,
//! U+2060, a byte order mark inside, bidirectional marks, variation selectors, fillers. Not the joiners
//! U+200C and U+200D behind a letter of a script that is written with them, as Arabic, Persian and the Indic
//! scripts.
//!
//! References: Unicode Standard Annex #15 (normalization) and #44 (the property); Unicode Technical Report
//! #36, section 2 (characters that do not show).

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfkc_quick};

use super::fold::Folds;
use super::options::{Invisible, Normalize};

/// The rules.
#[derive(Clone, Copy, Debug)]
pub(in crate::text) struct Letters {
    pub(in crate::text) normalize: Normalize,
    pub(in crate::text) invisible: Invisible,
    pub(in crate::text) folds: Folds,
}

impl Letters {
    /// The text under these rules; borrowed from `scratch` if it had to be changed.
    pub(in crate::text) fn apply<'a>(self, text: &'a str, scratch: &'a mut String) -> &'a str {
        if self.keeps(text) {
            return text;
        }
        scratch.clear();
        let mut before = '\0';
        let shown = text.chars().filter(|&c| {
            let is_shown = self.invisible == Invisible::Keep
                || !is_invisible(c)
                || matches!(c, '\u{200c}' | '\u{200d}') && has_joiners(before);
            if is_shown {
                before = c;
            }
            is_shown
        });
        let fold = |c| self.folds.push(c, scratch);
        match self.normalize {
            Normalize::None => shown.for_each(fold),
            Normalize::Nfc => shown.nfc().for_each(fold),
            Normalize::Nfkc => shown.nfkc().for_each(fold),
        }
        scratch
    }

    /// Whether a text certainly stays as it is.
    fn keeps(self, text: &str) -> bool {
        if text.is_ascii() {
            return true;
        }
        // Decides for nearly all texts of most scripts, at a fraction of the cost.
        if self.normalize != Normalize::Nfkc && self.folds.is_empty() && text.chars().all(is_plain) {
            return true;
        }
        let is_normal = match self.normalize {
            Normalize::None => true,
            Normalize::Nfc => is_nfc_quick(text.chars()) == IsNormalized::Yes,
            Normalize::Nfkc => is_nfkc_quick(text.chars()) == IsNormalized::Yes,
        };
        is_normal
            && self.folds.is_empty()
            && (self.invisible == Invisible::Keep || !text.chars().any(is_invisible))
    }
}

/// Whether a character certainly shows, and stays as it is under composition, whatever is beside it.
#[inline(always)]
fn is_plain(c: char) -> bool {
    c < '\u{300}' && c != '\u{ad}'
        || matches!(
            c,
            '\u{391}'..='\u{482}' | '\u{2010}'..='\u{2027}' | '\u{2030}'..='\u{205e}'
                | '\u{3041}'..='\u{3096}' | '\u{30a1}'..='\u{30fa}'
                | '\u{4e00}'..='\u{9fff}' | '\u{ac00}'..='\u{d7a3}'
        )
}

/// The property Default_Ignorable_Code_Point, whose values for unassigned codes are fixed too.
pub(in crate::text) fn is_invisible(c: char) -> bool {
    matches!(
        c,
        '\u{ad}' | '\u{34f}' | '\u{61c}' | '\u{115f}'..='\u{1160}' | '\u{17b4}'..='\u{17b5}'
            | '\u{180b}'..='\u{180f}' | '\u{200b}'..='\u{200f}' | '\u{202a}'..='\u{202e}'
            | '\u{2060}'..='\u{206f}' | '\u{3164}' | '\u{fe00}'..='\u{fe0f}' | '\u{feff}' | '\u{ffa0}'
            | '\u{fff0}'..='\u{fff8}' | '\u{1bca0}'..='\u{1bca3}' | '\u{1d173}'..='\u{1d17a}'
            | '\u{e0000}'..='\u{e0fff}'
    )
}

/// Whether a joiner behind this character may be seen: it is of a block of scripts whose letters change their
/// form beside each other.
fn has_joiners(c: char) -> bool {
    matches!(
        c,
        '\u{600}'..='\u{109f}' | '\u{1700}'..='\u{1cff}' | '\u{a800}'..='\u{abff}'
            | '\u{fb50}'..='\u{fdff}' | '\u{fe70}'..='\u{fefc}' | '\u{10800}'..='\u{11fff}'
            | '\u{1e900}'..='\u{1e95f}'
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::text::tokens::fold::Fold;

    fn under(text: &str, normalize: Normalize, invisible: Invisible, folds: &[Fold]) -> String {
        let letters = Letters { normalize, invisible, folds: Folds::new(folds.iter().copied()) };
        letters.apply(text, &mut String::new()).to_owned()
    }

    #[test]
    fn forms_differ_as_they_should() {
        let text = "e\u{301} ﬁ";
        let of = |form| under(text, form, Invisible::Ignore, &[]);
        assert_eq!(of(Normalize::None), text);
        assert_eq!(of(Normalize::Nfc), "é ﬁ");
        assert_eq!(of(Normalize::Nfkc), "é fi");
    }

    #[test]
    fn normal_text_is_not_copied() {
        let mut scratch = String::new();
        let letters =
            Letters { normalize: Normalize::Nfkc, invisible: Invisible::Ignore, folds: Folds::default() };
        for text in ["plain", "plain, é, 漢"] {
            assert!(std::ptr::eq(letters.apply(text, &mut scratch), text));
        }
    }

    /// In any order and repeated, plain characters are a text that composition does not change.
    #[test]
    fn plain_characters_are_composed_already() {
        let plain: Vec<char> = ('\0'..=char::MAX).filter(|c| is_plain(*c)).collect();
        assert!(plain.len() > 30_000 && !plain.iter().any(|c| is_invisible(*c)));
        for c in plain {
            assert_eq!(unicode_normalization::char::canonical_combining_class(c), 0, "{c:?}");
            assert_eq!(is_nfc_quick([c].into_iter()), IsNormalized::Yes, "{c:?}");
        }
    }

    #[test]
    fn what_does_not_show_is_not_there() {
        let of = |text: &str| under(text, Normalize::Nfc, Invisible::Ignore, &[]);
        for hidden in "\u{ad}\u{200b}\u{2060}\u{feff}\u{200e}\u{202b}\u{2066}\u{200d}\u{200c}\u{fe0f}".chars()
        {
            assert_eq!(of(&format!("wo{hidden}rd{hidden} {hidden}é")), "word é", "{hidden:?}");
            assert_eq!(of(&format!("e{hidden}\u{301}")), "é", "a letter is composed across {hidden:?}");
        }
        // Words that are written with joiners, and the same with other characters that do not show.
        for word in ["می\u{200c}خواهم", "ක\u{dca}\u{200d}රම", "क\u{94d}\u{200d}ष"] {
            assert_eq!(of(word), word);
            assert_eq!(of(&word.replace('\u{200c}', "\u{ad}\u{200c}\u{feff}")), word);
        }
        let kept = "wo\u{ad}rd";
        assert_eq!(under(kept, Normalize::Nfc, Invisible::Keep, &[]), kept);
    }

    /// Texts and their folded forms; under no other fold do they change.
    #[test]
    fn folds_change_their_letters_alone() {
        for (fold, text, folded) in [
            (Fold::Yo, "Ёлка ещё е\u{308}", "Елка еще е"),
            (Fold::SharpS, "Straße STRAẞE", "Strasse STRASSE"),
            (Fold::TurkishI, "İstanbul ılık i\u{307}ki c\u{307}", "istanbul ilik iki ċ"),
            (Fold::Arabic, "كِتَابٌ كـــتاب أحمد مدرسة", "كتاب كتاب احمد مدرسه"),
            (Fold::Arabic, "یک کتاب", "يك كتاب"),
            (Fold::HebrewPoints, "שָׁלוֹם \u{fb2a}", "שלום ש"),
        ] {
            assert_eq!(under(text, Normalize::Nfc, Invisible::Ignore, &[fold]), folded, "{fold:?}");
            assert_eq!(
                under(folded, Normalize::Nfc, Invisible::Ignore, &Fold::ALL),
                folded,
                "once is enough"
            );
            let others: Vec<Fold> = Fold::ALL.into_iter().filter(|other| *other != fold).collect();
            let composed = under(text, Normalize::Nfc, Invisible::Ignore, &[]);
            assert_eq!(under(text, Normalize::Nfc, Invisible::Ignore, &others), composed, "{fold:?}");
        }
    }

    /// A text under the rules is one that they keep.
    #[test]
    fn rules_are_followed_once() {
        for normalize in [Normalize::None, Normalize::Nfc, Normalize::Nfkc] {
            for c in ('\0'..=char::MAX).filter(|c| !('\u{3400}'..='\u{d7a3}').contains(c)) {
                let text = format!("a{c}\u{301}i\u{ad}{c}");
                let once = under(&text, normalize, Invisible::Ignore, &[]);
                assert_eq!(under(&once, normalize, Invisible::Ignore, &[]), once, "{text:?}");
            }
        }
    }
}
