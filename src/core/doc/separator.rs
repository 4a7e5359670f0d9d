//! The character between the parts of a text.

use std::borrow::Cow;

/// Separates the fields of an event's text: the record separator of ASCII, before each field after the first.
pub const FIELD_SEPARATOR: char = '\u{1e}';

/// Replaces each [`FIELD_SEPARATOR`] in a text by a space. The tokens do not change: both characters separate
/// tokens and are part of none.
pub fn without_separators(text: &str) -> Cow<'_, str> {
    if text.contains(FIELD_SEPARATOR) { text.replace(FIELD_SEPARATOR, " ").into() } else { text.into() }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn separators_become_spaces() {
        assert_eq!(without_separators("a\u{1e}\u{1e}b\u{1f}"), "a  b\u{1f}");
        assert!(matches!(without_separators("a b"), Cow::Borrowed("a b")));
    }
}
