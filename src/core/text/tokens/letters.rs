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

use std::ops::Range;
use std::sync::OnceLock;

use unicode_normalization::char::{canonical_combining_class, compose, decompose_canonical};
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
        let keeps_all =
            self.normalize == Normalize::None && self.invisible == Invisible::Keep && self.folds.is_empty();
        if keeps_all || text.is_ascii() {
            return text;
        }
        scratch.clear();
        if self.normalize == Normalize::Nfkc || !self.folds.is_empty() {
            let is_kept = self.folds.is_empty()
                && is_nfkc_quick(text.chars()) == IsNormalized::Yes
                && (self.invisible == Invisible::Keep || !text.chars().any(is_invisible));
            if is_kept {
                return text;
            }
            self.write(text, scratch);
            return scratch;
        }
        // Composition joins no plain character with those before it, so the text is changed in parts.
        let mut copied = 0;
        for run in runs(text) {
            let before = text[..run.start].chars().next_back();
            if !self.keeps(before, &text[run.clone()]) {
                let start = run.start - before.map_or(0, char::len_utf8);
                scratch.push_str(&text[copied..start]);
                self.write(&text[start..run.end], scratch);
                copied = run.end;
            }
        }
        if copied == 0 {
            return text;
        }
        scratch.push_str(&text[copied..]);
        scratch
    }

    /// Appends a text under these rules.
    fn write(self, text: &str, out: &mut String) {
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
        let fold = |c| self.folds.push(c, out);
        match self.normalize {
            Normalize::None => shown.for_each(fold),
            Normalize::Nfc => shown.nfc().for_each(fold),
            Normalize::Nfkc => shown.nfkc().for_each(fold),
        }
    }

    /// Whether composition and the rule for what does not show certainly keep a run behind this character.
    fn keeps(self, before: Option<char>, run: &str) -> bool {
        let (mut starter, mut class) = (before, 0);
        run.chars().all(|c| {
            let own = canonical_combining_class(c);
            let is_shown = self.invisible == Invisible::Keep || !is_invisible(c);
            let is_composed_already = || match is_nfc_quick(std::iter::once(c)) {
                _ if own != 0 && class > own => false,
                IsNormalized::Yes => true,
                IsNormalized::No => false,
                // What is composed already may be composed anew.
                IsNormalized::Maybe => starter.is_none_or(|starter| {
                    let is_blocked = class != 0 && class >= own;
                    !is_composed(starter) && !is_composed(c) && (is_blocked || compose(starter, c).is_none())
                }),
            };
            let is_kept = is_shown && (self.normalize == Normalize::None || is_composed_already());
            if own == 0 {
                starter = Some(c);
            }
            class = own;
            is_kept
        })
    }
}

fn is_composed(c: char) -> bool {
    let mut is_itself = true;
    decompose_canonical(c, |part| is_itself &= part == c);
    !is_itself
}

/// The runs of characters that are not plain.
fn runs(text: &str) -> impl Iterator<Item = Range<usize>> {
    let mut at = 0;
    std::iter::from_fn(move || {
        let first = loop {
            at += plain_before(&text.as_bytes()[at..]);
            let c = text[at..].chars().next()?;
            if !is_plain(c) {
                break at;
            }
            at += c.len_utf8();
        };
        at += text[at..].find(is_plain).unwrap_or(text.len() - at);
        Some(first..at)
    })
}

/// The length of a character that is plain by its first byte, as those of ASCII, Latin, Cyrillic, Chinese and
/// Korean are; 0 if other bytes decide.
const LENGTHS: [u8; 256] = {
    let mut lengths = [0; 256];
    let mut byte = 0;
    while byte < 256 {
        lengths[byte] = match byte {
            0..0x80 => 1,
            0xc3..=0xcb | 0xcf..=0xd1 => 2,
            0xe4..=0xe9 | 0xeb..=0xec => 3,
            _ => 0,
        };
        byte += 1;
    }
    lengths
};

/// The number of bytes before the first character that is not plain by its first byte, or all.
fn plain_before(bytes: &[u8]) -> usize {
    const HIGH: u64 = 0x8080_8080_8080_8080;
    let mut at = 0;
    loop {
        while let Some(word) = bytes[at..].first_chunk().filter(|word| u64::from_ne_bytes(**word) & HIGH == 0)
        {
            at += word.len();
        }
        for _ in 0..8 {
            match bytes.get(at).map_or(0, |byte| LENGTHS[usize::from(*byte)]) {
                0 => return at,
                length => at += usize::from(length),
            }
        }
    }
}

/// Whether a character shows, and stays as it is under composition if all beside it are plain.
#[inline]
fn is_plain(c: char) -> bool {
    /// A bit for each character, in pages of 256 that are computed when one of them is met.
    static PAGES: [OnceLock<[u64; 4]>; 0x200] = [const { OnceLock::new() }; 0x200];
    let code = u32::from(c);
    if code < 0x300 {
        return code != 0xad;
    }
    let Some(page) = PAGES.get(code as usize >> 8) else { return false };
    let bits = page.get_or_init(|| {
        let mut bits = [0; 4];
        for (low, other) in (0..256).map(|low| (low, char::from_u32(code & !0xff | low))) {
            let is_plain = other.is_some_and(|other| {
                canonical_combining_class(other) == 0
                    && is_nfc_quick(std::iter::once(other)) == IsNormalized::Yes
                    && !is_invisible(other)
            });
            bits[low as usize >> 6] |= u64::from(is_plain) << (low & 63);
        }
        bits
    });
    bits[code as usize >> 6 & 3] >> (code & 63) & 1 == 1
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

    /// Each character that is not plain behind each kind of character before it, and all that may be
    /// composed behind each other: what is kept is what composition gives.
    #[test]
    fn what_is_kept_is_composed_already() {
        let letters =
            Letters { normalize: Normalize::Nfc, invisible: Invisible::Ignore, folds: Folds::default() };
        let others = ('\0'..'\u{20000}').filter(|c| !is_plain(*c) && !is_invisible(*c));
        let others: Vec<char> = others.chain(['\u{20000}', '\u{2f800}', '\u{323af}']).collect();
        assert!(
            others.len() > 1_000 && is_plain('é') && is_plain('漢') && is_plain('क') && !is_plain('\u{301}')
        );
        let mut kept = 0;
        for starter in ["", "e", "é", "ệ", "क", "ক", "ে", "가", "ᄀ", "a\u{323}", "漢 ", "ا", "\u{1d157}"]
        {
            for c in &others {
                for end in ["", "\u{301}", "\u{327}z", "া"] {
                    let text = format!("ж{starter}{c}{end}");
                    let mut scratch = String::new();
                    let is_kept = std::ptr::eq(letters.apply(&text, &mut scratch), text.as_str());
                    assert!(text.nfc().eq(letters.apply(&text, &mut scratch).chars()), "{text:?}");
                    kept += usize::from(is_kept);
                }
            }
        }
        assert!(kept > 10_000, "{kept}");
        let maybe = |c: &char| is_nfc_quick(std::iter::once(*c)) == IsNormalized::Maybe;
        let second: Vec<char> = others.iter().copied().filter(maybe).collect();
        let first = ('\0'..'\u{20000}').filter(|c| {
            second.iter().any(|next| compose(*c, *next).is_some()) || is_composed(*c) && !is_plain(*c)
        });
        for starter in first {
            for c in &second {
                let text = format!("{starter}{c}");
                let mut scratch = String::new();
                assert!(text.nfc().eq(letters.apply(&text, &mut scratch).chars()), "{text:?}");
            }
        }
    }

    #[test]
    fn first_bytes_say_what_is_plain() {
        for c in ('\0'..=char::MAX).filter(|c| LENGTHS[usize::from(c.to_string().as_bytes()[0])] > 0) {
            assert!(is_plain(c), "{c:?}");
            assert_eq!(usize::from(LENGTHS[usize::from(c.to_string().as_bytes()[0])]), c.len_utf8(), "{c:?}");
        }
    }

    #[test]
    fn words_of_most_scripts_are_not_copied() {
        let letters =
            Letters { normalize: Normalize::Nfc, invisible: Invisible::Ignore, folds: Folds::default() };
        for word in ["বাংলা", "தமிழ்", "हिन्दी", "العربية", "Việt", "ไทย", "→ 👍"]
        {
            assert!(std::ptr::eq(letters.apply(word, &mut String::new()), word), "{word}");
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
