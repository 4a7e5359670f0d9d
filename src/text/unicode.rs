//! Classes of characters: what the tokenizer does with each.
//!
//! `char` -> [`Class`]. The Basic Multilingual Plane is a table, computed once in a process from `std`, so that the fast
//! path and the plain one ([`super::tokens`]) follow the same version of Unicode; the few characters beyond are asked
//! of `std` each time.
//!
//! Scripts without spaces, by the Unicode property Script (Scripts.txt): Han, Hiragana, Katakana, Thai, Lao, Khmer and
//! Myanmar. Marks that these scripts share with others (Script Common, such as the prolonged sound mark U+30FC) follow
//! the plain rule: between two kana they are a token of their own anyway.

use std::sync::LazyLock;

/// What the tokenizer does with a character.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Class {
    /// Not alphanumeric: ends a token.
    Separator,
    /// Alphanumeric and its own lowercase.
    Lower,
    /// Alphanumeric, with another lowercase, maybe of several characters.
    Upper,
    /// Alphanumeric of a script without spaces; these have no case.
    Spaceless,
}

/// The classes of U+0000 to U+FFFF; surrogates, which are no characters, as separators.
pub(super) type Table = [Class; 0x1_0000];

static TABLE: LazyLock<Box<Table>> = LazyLock::new(|| {
    let classes = (0..=u16::MAX).map(|code| char::from_u32(code.into()).map_or(Class::Separator, class));
    classes.collect::<Box<[Class]>>().try_into().expect("one class for each of the 2^16 codes")
});

/// The table, made at the first call (about a millisecond).
pub(super) fn table() -> &'static Table {
    &TABLE
}

/// The class of any character, from first principles.
pub(super) fn class(c: char) -> Class {
    if !c.is_alphanumeric() {
        Class::Separator
    } else if is_spaceless(c) {
        Class::Spaceless
    } else if c.to_lowercase().eq([c]) {
        Class::Lower
    } else {
        Class::Upper
    }
}

/// Whether an alphanumeric character belongs to a script without spaces.
pub(super) fn is_spaceless(c: char) -> bool {
    let next = SPACELESS.partition_point(|&(first, _)| first <= c);
    next > 0 && c <= SPACELESS[next - 1].1
}

/// First and last characters, ascending. A range may take in unassigned codes of its block and characters that are not
/// alphanumeric, for which nobody asks.
const SPACELESS: [(char, char); 20] = [
    ('\u{0e01}', '\u{0eff}'),   // Thai, Lao
    ('\u{1000}', '\u{109f}'),   // Myanmar
    ('\u{1780}', '\u{17ff}'),   // Khmer
    ('\u{3005}', '\u{3005}'),   // Han: iteration mark
    ('\u{3007}', '\u{3029}'),   // Han: zero, Hangzhou numerals
    ('\u{3038}', '\u{303b}'),   // Han: Hangzhou numerals, vertical iteration mark
    ('\u{3041}', '\u{309f}'),   // Hiragana
    ('\u{30a1}', '\u{30fa}'),   // Katakana
    ('\u{30fd}', '\u{30ff}'),   // Katakana: iteration marks, digraph koto
    ('\u{31f0}', '\u{31ff}'),   // Katakana: phonetic extensions
    ('\u{3400}', '\u{9fff}'),   // Han: extension A, unified ideographs
    ('\u{a9e0}', '\u{a9ff}'),   // Myanmar: extended B
    ('\u{aa60}', '\u{aa7f}'),   // Myanmar: extended A
    ('\u{f900}', '\u{faff}'),   // Han: compatibility ideographs
    ('\u{ff66}', '\u{ff6f}'),   // Katakana: halfwidth, up to the halfwidth prolonged sound mark
    ('\u{ff71}', '\u{ff9d}'),   // Katakana: halfwidth, after it
    ('\u{116d0}', '\u{116ff}'), // Myanmar: extended C
    ('\u{16fe3}', '\u{16ff6}'), // Han: iteration and reading marks
    ('\u{1aff0}', '\u{1b16f}'), // Katakana and Hiragana: Minnan tones, supplement, extensions, small letters
    ('\u{20000}', '\u{3ffff}'), // Han: extensions B onwards, the whole of planes 2 and 3
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_ascend() {
        assert!(SPACELESS.iter().all(|(first, last)| first <= last));
        assert!(SPACELESS.windows(2).all(|pair| pair[0].1 < pair[1].0));
    }

    #[test]
    fn each_script_without_spaces_is_known() {
        for c in
            "一々〇ぁんゟァヺヽㇰｦｱﾝกฮະໜကႏꧠꩠកៜ㐀鿿豈\u{20000}\u{2a700}\u{2ebf0}\u{31350}\u{1b000}\u{1b150}"
                .chars()
        {
            assert_eq!(class(c), Class::Spaceless, "{c:?}");
        }
        for c in "aßжहἱ가ᄀㄅأ𝒳ー𐐨".chars() {
            assert_eq!(class(c), Class::Lower, "{c:?}");
        }
    }

    #[test]
    fn scripts_without_spaces_have_no_case() {
        for c in ('\0'..=char::MAX).filter(|&c| class(c) == Class::Spaceless) {
            assert!(c.to_lowercase().eq([c]), "{c:?}");
        }
    }

    #[test]
    fn lowercase_is_the_whole_change() {
        for (code, &class) in (0..).zip(table()) {
            let Some(c) = char::from_u32(code) else { continue };
            assert_eq!(class != Class::Separator, c.is_alphanumeric(), "{c:?}");
            let lower = c.to_string().to_lowercase();
            assert_eq!(class == Class::Upper, c.is_alphanumeric() && lower != c.to_string(), "{c:?}");
        }
    }
}
