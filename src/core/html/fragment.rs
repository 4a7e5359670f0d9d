//! Recognizing markup in a text that is no page, as columns of tables hold it.

use super::entities::reference;
use super::scan::{MarkupPiece, Scanner};

/// The names of the elements of HTML; also of those that the standard calls obsolete.
const ELEMENTS: &str = "\
    a abbr acronym address applet area article aside audio b base bdi bdo big blink blockquote body br \
    button canvas caption center cite code col colgroup data datalist dd del details dfn dialog dir \
    div dl dt em embed fieldset figcaption figure font footer form frame frameset h1 h2 h3 h4 h5 h6 \
    head header hgroup hr html i iframe img input ins kbd label legend li link main map mark marquee \
    math menu meta meter nav nobr noembed noframes noscript object ol optgroup option output p param \
    picture plaintext pre progress q rb rp rt ruby s samp script search section select slot small \
    source span strike strong style sub summary sup svg table tbody td template textarea tfoot th \
    thead time title tr track tt u ul var video wbr xmp";

/// Whether a text has markup: a whole tag of an element of HTML, a comment, or a reference that ends with a
/// semicolon, as `&amp;` or `&#39;`.
///
/// `a < b`, `Vec<String>`, `<name@example.org>` and `AT&T` are none.
///
/// ```
/// use dupflow_core::html::has_markup;
///
/// assert!(has_markup("Fish &amp; chips") && has_markup("Fish<BR/>chips"));
/// assert!(!has_markup("1 < 2 && Vec<String> <a@b.org>"));
/// ```
pub fn has_markup(text: &str) -> bool {
    // Most texts have neither.
    if !text.bytes().any(|byte| matches!(byte, b'<' | b'&')) {
        return false;
    }
    let is_reference = |part: &str, at: usize| {
        reference(&part[at..]).is_some_and(|(_, length)| part[at..at + length].ends_with(';'))
    };
    text.split_once("<!--").is_some_and(|(_, rest)| rest.contains("-->"))
        || Scanner::new(text.as_bytes()).any(|piece| match piece {
            MarkupPiece::Start { name, .. } | MarkupPiece::End(name) => is_element(&text.as_bytes()[name]),
            MarkupPiece::Text(range) => {
                let part = &text[range];
                part.match_indices('&').any(|(at, _)| is_reference(part, at))
            }
        })
}

/// Whether HTML has an element of this name, in any case.
fn is_element(name: &[u8]) -> bool {
    ELEMENTS.split(' ').any(|element| element.as_bytes().eq_ignore_ascii_case(name))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::Extractor;

    #[test]
    fn markup_is_found_in_texts_that_are_no_pages() {
        for (text, read) in [
            ("<p>Fish <b>&amp;</b> chips</p><p>Tea", "Fish & chips\nTea"),
            ("one<br>two<BR/>three", "one\ntwo\nthree"),
            ("price &lt; 5 &euro;", "price < 5 €"),
            ("a<!-- b -->c", "ac"),
            ("closed</div>", "closed"),
            ("<header>kept</header><script>left out</script>", "kept"),
            ("तर्क &#39;क&#x27; <em>🎉</em>", "तर्क 'क' 🎉"),
        ] {
            assert!(has_markup(text), "{text}");
            assert_eq!(Extractor::default().fragment(text), read);
        }
        for text in [
            "",
            "a < b > c",
            "a<b",
            "Vec<String>",
            "<a@b.org>",
            "AT&T; x&y=1",
            "&amp",
            "<!-- open",
            "<unk> <3",
        ] {
            assert!(!has_markup(text), "{text}");
        }
    }
}
