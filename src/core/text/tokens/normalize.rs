//! Unicode normalization (UAX #15), applied before tokenizing if the rules ask for it.
//!
//! Text -> text. A text that the quick check reports as normalized, as nearly all texts are, is not copied.

use unicode_normalization::{IsNormalized, UnicodeNormalization, is_nfc_quick, is_nfkc_quick};

use super::options::Normalize;

/// The text in the given form; borrowed from `scratch` if it had to be changed.
pub(in crate::text) fn normalized<'a>(text: &'a str, form: Normalize, scratch: &'a mut String) -> &'a str {
    let normal = match form {
        Normalize::None => true,
        Normalize::Nfc => text.is_ascii() || is_nfc_quick(text.chars()) == IsNormalized::Yes,
        Normalize::Nfkc => text.is_ascii() || is_nfkc_quick(text.chars()) == IsNormalized::Yes,
    };
    if normal {
        return text;
    }
    scratch.clear();
    match form {
        Normalize::Nfkc => scratch.extend(text.nfkc()),
        Normalize::None | Normalize::Nfc => scratch.extend(text.nfc()),
    }
    scratch
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_differ_as_they_should() {
        let text = "e\u{301} ﬁ";
        let of = |form| normalized(text, form, &mut String::new()).to_owned();
        assert_eq!(of(Normalize::None), text);
        assert_eq!(of(Normalize::Nfc), "é ﬁ");
        assert_eq!(of(Normalize::Nfkc), "é fi");
    }

    #[test]
    fn normal_text_is_not_copied() {
        let text = "plain, é, 漢";
        let mut scratch = String::new();
        assert!(std::ptr::eq(normalized(text, Normalize::Nfkc, &mut scratch), text));
    }
}
