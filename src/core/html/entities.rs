//! Character references in text: `&amp;`, `&eacute`, `&#x4e2d;`.
//!
//! Text that begins with `&` -> the characters that the reference stands for, and its length in bytes; `None`
//! if it is only an ampersand.
//!
//! The longest matching name of the standard is used; some names need no semicolon. Numbers that are no
//! character become U+FFFD; numbers from 128 to 159 are read as windows-1252.
//!
//! Reference: the HTML standard, 13.2.5.72 to 80, for text outside of attributes.

use web_atoms::{C1_REPLACEMENTS, NAMED_ENTITIES};

/// One character, or two.
pub(super) type Chars = (char, Option<char>);

/// The characters of the reference at the start of `text`, and its length in bytes.
pub(super) fn reference(text: &str) -> Option<(Chars, usize)> {
    let name = text.strip_prefix('&')?;
    match name.strip_prefix('#') {
        Some(digits) => number(digits).map(|(c, length)| ((c, None), length + 2)),
        None => named(name).map(|(chars, length)| (chars, length + 1)),
    }
}

/// The longest name at the start of `text`. The table contains prefixes of names too, with two zeros as
/// value.
fn named(text: &str) -> Option<(Chars, usize)> {
    // Most names are followed by their semicolon.
    let end = text.bytes().take_while(u8::is_ascii_alphanumeric).count();
    if text[end..].starts_with(';')
        && let Some(chars) = NAMED_ENTITIES.get(&text[..=end]).and_then(chars_from_codes)
    {
        return Some((chars, end + 1));
    }
    let mut longest = None;
    for (so_far, c) in text.char_indices().map(|(at, c)| (at + c.len_utf8(), c)) {
        let Some(codes) = NAMED_ENTITIES.get(&text[..so_far]) else { break };
        longest = chars_from_codes(codes).map(|chars| (chars, so_far)).or(longest);
        if c == ';' {
            break;
        }
    }
    longest
}

/// The characters of a name; `None` for a prefix of names.
fn chars_from_codes((first, second): &(u32, u32)) -> Option<Chars> {
    let known = |code: u32| char::from_u32(code).filter(|c| *c != '\0');
    Some((known(*first)?, known(*second)))
}

fn number(text: &str) -> Option<(char, usize)> {
    let (radix, digits) = match text.strip_prefix(['x', 'X']) {
        Some(digits) => (16, digits),
        None => (10, text),
    };
    let length = digits.bytes().take_while(|byte| char::from(*byte).is_digit(radix)).count();
    if length == 0 {
        return None;
    }
    // `length` includes leading zeros. A number that does not fit is above every character.
    let code = u32::from_str_radix(&digits[..length], radix).unwrap_or(u32::MAX);
    let c = match code {
        0x80..=0x9f => C1_REPLACEMENTS[code as usize - 0x80].or(char::from_u32(code)),
        0 => None,
        _ => char::from_u32(code),
    };
    let semicolon = usize::from(digits[length..].starts_with(';'));
    Some((c.unwrap_or('\u{fffd}'), text.len() - digits.len() + length + semicolon))
}
