//! Character classes of the tokenizer.
//!
//! `char`, [`Spaceless`] and [`Marks`] -> [`Class`]. The Basic Multilingual Plane is an array, computed once
//! per process for each pair of rules from `std` and, for combining marks, from `unicode-normalization`. So
//! the fast path and the plain one ([`crate::text::tokens`]) use the same versions of Unicode. The few
//! characters beyond the plane are computed each time.
//!
//! Marks belong to words as in the property `\w` of Unicode Technical Standard #18, without its underscore
//! and enclosing marks.
//!
//! Scripts without spaces, by the Unicode property Script (Scripts.txt): Han, Hiragana, Katakana, Thai, Lao,
//! Khmer and Myanmar. Marks that these scripts share with others (Script Common) follow the general rule,
//! except the prolonged sound marks U+30FC and U+FF70, which are parts of words ([`Spaceless::Part`],
//! [`Spaceless::Bag`]) as kana are.

use std::sync::OnceLock;

use unicode_normalization::char::is_combining_mark;

use super::options::{Marks, Spaceless};

/// What the tokenizer does with a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::text) enum Class {
    /// Not alphanumeric: ends a token.
    Separator,
    /// A combining mark that is not alphanumeric: continues a word; separates after anything else.
    Mark,
    /// U+200C or U+200D: continues a word if a letter or a mark follows; separates otherwise.
    Joiner,
    /// Alphanumeric and equal to its lowercase.
    Lower,
    /// Alphanumeric with a different lowercase, possibly of several characters.
    Upper,
    /// Alphanumeric, of a script without spaces, where the rule lets it run together with others. Marks after
    /// it separate.
    Run,
    /// Alphanumeric and a token of its own: of a script without spaces. Such characters have no case.
    Alone(WordPart),
}

impl Class {
    /// Whether a character of this class and one of class `next`, directly after it, may be in one token.
    pub(in crate::text) fn may_precede(self, next: Self) -> bool {
        match (self, next) {
            (Self::Separator | Self::Alone(_), _) | (_, Self::Separator | Self::Alone(_)) => false,
            (Self::Run, next) => !matches!(next, Self::Mark | Self::Joiner),
            (Self::Joiner, next) => next.is_joined(),
            _ => true,
        }
    }

    /// Whether a joiner before it continues a word.
    #[inline(always)]
    pub(in crate::text) fn is_joined(self) -> bool {
        matches!(self, Self::Lower | Self::Upper | Self::Mark)
    }
}

/// Groups of scripts without spaces, by how much of a word a character is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::text) enum WordPart {
    /// Han.
    Han,
    /// Hiragana, Katakana.
    Kana,
    /// Thai, Lao, Khmer, Myanmar.
    Thai,
}

/// The weight of a word: the smallest number divisible by 2, 4, 6 and 8.
pub(in crate::text) const WORD: usize = 24;

/// The smallest weight of a token.
pub(in crate::text) const LEAST: usize = WORD / 8;

impl WordPart {
    /// Weight in 24ths of a word.
    #[inline(always)]
    pub(in crate::text) fn weight(self, rule: Spaceless) -> usize {
        match (self, rule) {
            (_, Spaceless::Char | Spaceless::Run) => WORD,
            (Self::Han, _) => WORD / 2,
            (Self::Kana, Spaceless::Part) => WORD / 4,
            (Self::Kana, Spaceless::Bag) | (Self::Thai, Spaceless::Part) => WORD / 6,
            (Self::Thai, Spaceless::Bag) => WORD / 8,
        }
    }
}

/// The weight of a token, in 24ths of a word.
pub(in crate::text) fn weight(token: &str, rule: Spaceless) -> usize {
    token.chars().next().and_then(|c| part_of_word(c, rule)).map_or(WORD, |part| part.weight(rule))
}

/// The classes of all characters under two rules.
#[derive(Clone, Copy, Debug)]
pub(in crate::text) struct Classes {
    rule: Spaceless,
    marks: Marks,
    plane: &'static Plane,
}

impl Classes {
    pub(in crate::text) fn new(rule: Spaceless, marks: Marks) -> Self {
        Self { rule, marks, plane: plane(rule, marks) }
    }

    #[inline(always)]
    pub(in crate::text) fn class(self, c: char) -> Class {
        self.plane.get(c as usize).copied().unwrap_or_else(|| class(c, self.rule, self.marks))
    }

    /// The class of a character of the Basic Multilingual Plane, by its code.
    #[inline(always)]
    pub(in crate::text) fn near(self, code: usize) -> Class {
        self.plane[code]
    }
}

/// The classes of U+0000 to U+FFFF. Surrogates, which are not characters, are separators.
type Plane = [Class; 0x1_0000];

/// The plane under two rules, computed at the first call (a third of a millisecond).
fn plane(rule: Spaceless, marks: Marks) -> &'static Plane {
    static PLANES: [[OnceLock<Box<Plane>>; 2]; 3] = [const { [const { OnceLock::new() }; 2] }; 3];
    let of_rule = match rule {
        // The same parts with other weights.
        Spaceless::Part | Spaceless::Bag => &PLANES[0],
        Spaceless::Char => &PLANES[1],
        Spaceless::Run => &PLANES[2],
    };
    of_rule[usize::from(marks == Marks::Split)].get_or_init(|| of_rules(rule, marks))
}

fn of_rules(rule: Spaceless, marks: Marks) -> Box<Plane> {
    let of_char = |c| class(c, rule, marks);
    let mut last = Class::Separator;
    let classes = (0..=u16::MAX).map(|code| {
        if !UNIFORM.iter().any(|(first, end)| *first < code && code <= *end) {
            last = char::from_u32(code.into()).map_or(Class::Separator, of_char);
        }
        last
    });
    classes.collect::<Box<[Class]>>().try_into().expect("one class for each of the 2^16 codes")
}

/// First and last codes (inclusive) of ranges of one class, under any rules: Han, Hangul syllables, and
/// surrogates with private use. They are seven tenths of the plane, whose classes are computed before the
/// first text is read.
const UNIFORM: [(u16, u16); 4] = [(0x3400, 0x4dbf), (0x4e00, 0x9fff), (0xac00, 0xd7a3), (0xd800, 0xf8ff)];

/// Computes the class of any character, without the array.
pub(in crate::text) fn class(c: char, rule: Spaceless, marks: Marks) -> Class {
    if !c.is_alphanumeric() {
        match marks {
            Marks::Keep if is_mark(c) => Class::Mark,
            Marks::Keep if matches!(c, '\u{200c}' | '\u{200d}') => Class::Joiner,
            Marks::Keep | Marks::Split => Class::Separator,
        }
    } else if let Some(share) = part_of_word(c, rule) {
        Class::Alone(share)
    } else if part_of_word(c, Spaceless::Part).is_some() {
        Class::Run
    } else if c.to_lowercase().eq([c]) {
        Class::Lower
    } else {
        Class::Upper
    }
}

/// Whether a character has the general category Mn or Mc and is not a variation selector.
fn is_mark(c: char) -> bool {
    is_combining_mark(c) && !is_enclosing(c) && !is_variation_selector(c)
}

/// The general category Me: marks that enclose a character, such as a keycap.
fn is_enclosing(c: char) -> bool {
    matches!(c, '\u{488}' | '\u{489}' | '\u{1abe}' | '\u{20dd}'..='\u{20e0}' | '\u{20e2}'..='\u{20e4}')
        || matches!(c, '\u{a670}'..='\u{a672}')
}

/// The property Variation_Selector: selects a glyph variant of the character before.
fn is_variation_selector(c: char) -> bool {
    matches!(c, '\u{180b}'..='\u{180d}' | '\u{180f}' | '\u{fe00}'..='\u{fe0f}' | '\u{e0100}'..='\u{e01ef}')
}

/// The group of an alphanumeric character that is a token of its own; `None` for others.
pub(in crate::text) fn part_of_word(c: char, rule: Spaceless) -> Option<WordPart> {
    match rule {
        Spaceless::Run => None,
        Spaceless::Part | Spaceless::Bag if matches!(c, '\u{30fc}' | '\u{ff70}') => Some(WordPart::Kana),
        Spaceless::Part | Spaceless::Bag | Spaceless::Char => {
            let next = SPACELESS.partition_point(|&(first, ..)| first <= c);
            let (_, last, share) = SPACELESS[next.checked_sub(1)?];
            (c <= last).then_some(share)
        }
    }
}

/// First and last characters (inclusive), ascending, and their group. A range may contain unassigned codes of
/// its block and characters that are not alphanumeric; [`part_of_word`] is not called for these.
const SPACELESS: [(char, char, WordPart); 20] = [
    ('\u{0e01}', '\u{0eff}', WordPart::Thai),   // Thai, Lao
    ('\u{1000}', '\u{109f}', WordPart::Thai),   // Myanmar
    ('\u{1780}', '\u{17ff}', WordPart::Thai),   // Khmer
    ('\u{3005}', '\u{3005}', WordPart::Han),    // Han: iteration mark
    ('\u{3007}', '\u{3029}', WordPart::Han),    // Han: zero, Hangzhou numerals
    ('\u{3038}', '\u{303b}', WordPart::Han),    // Han: Hangzhou numerals, vertical iteration mark
    ('\u{3041}', '\u{309f}', WordPart::Kana),   // Hiragana
    ('\u{30a1}', '\u{30fa}', WordPart::Kana),   // Katakana
    ('\u{30fd}', '\u{30ff}', WordPart::Kana),   // Katakana: iteration marks, digraph koto
    ('\u{31f0}', '\u{31ff}', WordPart::Kana),   // Katakana: phonetic extensions
    ('\u{3400}', '\u{9fff}', WordPart::Han),    // Han: extension A, unified ideographs
    ('\u{a9e0}', '\u{a9ff}', WordPart::Thai),   // Myanmar: extended B
    ('\u{aa60}', '\u{aa7f}', WordPart::Thai),   // Myanmar: extended A
    ('\u{f900}', '\u{faff}', WordPart::Han),    // Han: compatibility ideographs
    ('\u{ff66}', '\u{ff6f}', WordPart::Kana), // Katakana: halfwidth, up to the halfwidth prolonged sound mark
    ('\u{ff71}', '\u{ff9d}', WordPart::Kana), // Katakana: halfwidth, after it
    ('\u{116d0}', '\u{116ff}', WordPart::Thai), // Myanmar: extended C
    ('\u{16fe3}', '\u{16ff6}', WordPart::Han), // Han: iteration and reading marks
    ('\u{1aff0}', '\u{1b16f}', WordPart::Kana), // Kana: Minnan tones, supplement, extensions, small letters
    ('\u{20000}', '\u{3ffff}', WordPart::Han), // Han: extensions B onwards, the whole of planes 2 and 3
];

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [Spaceless; 3] = [Spaceless::Part, Spaceless::Char, Spaceless::Run];

    fn kept(c: char, rule: Spaceless) -> Class {
        class(c, rule, Marks::Keep)
    }

    #[test]
    fn ranges_ascend() {
        assert!(SPACELESS.iter().all(|(first, last, _)| first <= last));
        assert!(SPACELESS.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }

    #[test]
    fn each_script_without_spaces_is_known() {
        for (chars, share) in [
            ("一々〇㐀鿿豈\u{20000}\u{2a700}\u{2ebf0}\u{31350}\u{16ff2}", WordPart::Han),
            ("ぁんゟァヺヽㇰｦｱﾝ\u{1b000}\u{1b150}\u{1aff0}", WordPart::Kana),
            ("กฮะໜကႏꧠꩠកៜ\u{116d0}", WordPart::Thai),
        ] {
            for c in chars.chars() {
                assert_eq!(kept(c, Spaceless::Part), Class::Alone(share), "{c:?}");
                assert_eq!(kept(c, Spaceless::Char), Class::Alone(share), "{c:?}");
                assert_eq!(kept(c, Spaceless::Run), Class::Run, "{c:?}");
            }
        }
        for (c, rule) in "aßжहἱ가ᄀㄅأ𝒳𐐨ﾞ".chars().flat_map(|c| RULES.map(|rule| (c, rule)))
        {
            assert_eq!(kept(c, rule), Class::Lower, "{c:?}");
        }
        for c in ['ー', 'ｰ'] {
            assert_eq!(
                RULES.map(|rule| kept(c, rule)),
                [Class::Alone(WordPart::Kana), Class::Run, Class::Run]
            );
        }
    }

    #[test]
    fn scripts_without_spaces_have_no_case() {
        for c in ('\0'..=char::MAX).filter(|&c| matches!(kept(c, Spaceless::Part), Class::Alone(_))) {
            assert!(c.to_lowercase().eq([c]), "{c:?}");
            assert!(c.len_utf8() >= 3, "{c:?}");
        }
    }

    #[test]
    fn lowercase_is_the_whole_change() {
        for (rule, marks) in RULES.into_iter().flat_map(|rule| [(rule, Marks::Keep), (rule, Marks::Split)]) {
            for (code, &class) in (0..).zip(plane(rule, marks)) {
                let Some(c) = char::from_u32(code) else {
                    assert_eq!(class, Class::Separator);
                    continue;
                };
                assert_eq!(class, self::class(c, rule, marks), "{c:?}");
                let is_part = !matches!(class, Class::Separator | Class::Mark | Class::Joiner);
                assert_eq!(is_part, c.is_alphanumeric(), "{c:?}");
                assert!(marks == Marks::Keep || !matches!(class, Class::Mark | Class::Joiner), "{c:?}");
                let lower = c.to_string().to_lowercase();
                assert_eq!(class == Class::Upper, c.is_alphanumeric() && lower != c.to_string(), "{c:?}");
            }
        }
    }

    #[test]
    fn marks_are_of_two_categories_and_have_no_case() {
        // Viramas, accents, points, a Thai tone, a nukta, a musical sign beyond the first plane; spacing
        // marks.
        for c in
            "\u{301}\u{591}\u{93c}\u{94d}\u{9cd}\u{bcd}\u{d4d}\u{dca}\u{e48}\u{1d167}\u{1b44}\u{a9c0}".chars()
        {
            assert_eq!(kept(c, Spaceless::Part), Class::Mark, "{c:?}");
            assert_eq!(class(c, Spaceless::Part, Marks::Split), Class::Separator, "{c:?}");
        }
        // Variation selectors, enclosing marks, format characters, marks that are alphanumeric.
        const OTHERS: &str = "\u{180b}\u{180f}\u{fe00}\u{fe0f}\
            \u{e0100}\u{e01ef}\u{488}\u{20dd}\u{20e3}\u{a670}\u{200b}\u{200e}\u{2060}_";
        for c in OTHERS.chars() {
            assert_eq!(kept(c, Spaceless::Part), Class::Separator, "{c:?}");
        }
        assert_eq!(kept('\u{93f}', Spaceless::Part), Class::Lower);
        assert_eq!(kept('\u{200c}', Spaceless::Run), Class::Joiner);
        let marks: Vec<char> =
            ('\0'..=char::MAX).filter(|&c| kept(c, Spaceless::Part) == Class::Mark).collect();
        assert!(marks.len() > 800, "{}", marks.len());
        assert!(marks.iter().all(|c| c.to_lowercase().eq([*c])));
    }
}
