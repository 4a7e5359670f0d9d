//! Classes of characters: what the tokenizer does with each.
//!
//! `char` and [`Spaceless`] rule -> [`Class`]. The Basic Multilingual Plane is an array, computed once in a process for each rule
//! from `std`, so that the fast path and the plain one ([`super::tokens`]) follow the same version of Unicode; the few
//! characters beyond are asked of `std` each time.
//!
//! Scripts without spaces, by the Unicode property Script (Scripts.txt): Han, Hiragana, Katakana, Thai, Lao, Khmer and
//! Myanmar. Marks that these scripts share with others (Script Common) follow the plain rule, but for the prolonged sound marks
//! U+30FC and U+FF70, which are parts of words ([`Spaceless::Part`], [`Spaceless::Bag`]) as the kana before them are.

use std::sync::LazyLock;

use super::Spaceless;

/// What the tokenizer does with a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Not alphanumeric: ends a token.
    Separator,
    /// Alphanumeric and its own lowercase.
    Lower,
    /// Alphanumeric, with another lowercase, maybe of several characters.
    Upper,
    /// Alphanumeric and a token of its own: of a script without spaces. These have no case.
    Alone(WordPart),
}

/// What sort of part of a word a character of a script without spaces is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum WordPart {
    /// Han.
    Han,
    /// Hiragana, Katakana.
    Kana,
    /// Thai, Lao, Khmer, Myanmar.
    Thai,
}

/// What a word weighs: the least number that has a half, a quarter, a sixth and an eighth.
pub(super) const WORD: usize = 24;

/// The least that a token weighs.
pub(super) const LEAST: usize = WORD / 8;

impl WordPart {
    /// In 24ths of a word.
    #[inline(always)]
    pub(super) fn weight(self, rule: Spaceless) -> usize {
        match (self, rule) {
            (_, Spaceless::Char | Spaceless::Run) => WORD,
            (Self::Han, _) => WORD / 2,
            (Self::Kana, Spaceless::Part) => WORD / 4,
            (Self::Kana, Spaceless::Bag) | (Self::Thai, Spaceless::Part) => WORD / 6,
            (Self::Thai, Spaceless::Bag) => WORD / 8,
        }
    }
}

/// What a token weighs, in 24ths of a word.
pub(super) fn weight(token: &str, rule: Spaceless) -> usize {
    token.chars().next().and_then(|c| part_of_word(c, rule)).map_or(WORD, |part| part.weight(rule))
}

/// The classes of U+0000 to U+FFFF; surrogates, which are no characters, as separators.
pub(super) type Plane = [Class; 0x1_0000];

/// The plane under a rule, made at the first call (about a millisecond).
pub(super) fn plane(rule: Spaceless) -> &'static Plane {
    // Characters are the same parts, and weigh differently.
    static PART: LazyLock<Box<Plane>> = LazyLock::new(|| of_rule(Spaceless::Part));
    static CHAR: LazyLock<Box<Plane>> = LazyLock::new(|| of_rule(Spaceless::Char));
    static RUN: LazyLock<Box<Plane>> = LazyLock::new(|| of_rule(Spaceless::Run));
    match rule {
        Spaceless::Part | Spaceless::Bag => &PART,
        Spaceless::Char => &CHAR,
        Spaceless::Run => &RUN,
    }
}

fn of_rule(rule: Spaceless) -> Box<Plane> {
    let of_char = |c| class(c, rule);
    let classes = (0..=u16::MAX).map(|code| char::from_u32(code.into()).map_or(Class::Separator, of_char));
    classes.collect::<Box<[Class]>>().try_into().expect("one class for each of the 2^16 codes")
}

/// The class of any character, from first principles.
pub(super) fn class(c: char, rule: Spaceless) -> Class {
    if !c.is_alphanumeric() {
        Class::Separator
    } else if let Some(share) = part_of_word(c, rule) {
        Class::Alone(share)
    } else if c.to_lowercase().eq([c]) {
        Class::Lower
    } else {
        Class::Upper
    }
}

/// Of an alphanumeric character that is a token of its own, how much of a word it is.
pub(super) fn part_of_word(c: char, rule: Spaceless) -> Option<WordPart> {
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

/// First and last characters, ascending, and their sort. A range may take in unassigned codes of its block and characters that are not
/// alphanumeric, for which nobody asks.
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
    ('\u{1aff0}', '\u{1b16f}', WordPart::Kana), // Katakana and Hiragana: Minnan tones, supplement, extensions, small letters
    ('\u{20000}', '\u{3ffff}', WordPart::Han),  // Han: extensions B onwards, the whole of planes 2 and 3
];

#[cfg(test)]
mod tests {
    use super::*;

    const RULES: [Spaceless; 3] = [Spaceless::Part, Spaceless::Char, Spaceless::Run];

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
                assert_eq!(class(c, Spaceless::Part), Class::Alone(share), "{c:?}");
                assert_eq!(class(c, Spaceless::Char), Class::Alone(share), "{c:?}");
                assert_eq!(class(c, Spaceless::Run), Class::Lower, "{c:?}");
            }
        }
        for (c, rule) in "aßжहἱ가ᄀㄅأ𝒳𐐨ﾞ".chars().flat_map(|c| RULES.map(|rule| (c, rule)))
        {
            assert_eq!(class(c, rule), Class::Lower, "{c:?}");
        }
        for c in ['ー', 'ｰ'] {
            assert_eq!(
                RULES.map(|rule| class(c, rule)),
                [Class::Alone(WordPart::Kana), Class::Lower, Class::Lower]
            );
        }
    }

    #[test]
    fn scripts_without_spaces_have_no_case() {
        for c in ('\0'..=char::MAX).filter(|&c| matches!(class(c, Spaceless::Part), Class::Alone(_))) {
            assert!(c.to_lowercase().eq([c]), "{c:?}");
            assert!(c.len_utf8() >= 3, "{c:?}");
        }
    }

    #[test]
    fn lowercase_is_the_whole_change() {
        for rule in RULES {
            for (code, &class) in (0..).zip(plane(rule)) {
                let Some(c) = char::from_u32(code) else { continue };
                assert_eq!(class != Class::Separator, c.is_alphanumeric(), "{c:?}");
                let lower = c.to_string().to_lowercase();
                assert_eq!(class == Class::Upper, c.is_alphanumeric() && lower != c.to_string(), "{c:?}");
            }
        }
    }
}
