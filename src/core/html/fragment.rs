//! Markup in a text that is no page, as columns of tables hold it.
//!
//! Much of what looks like a tag in such a text is none: `Vec<String>`, `a <b && c> d`, a `<title>` that a
//! sentence is about. So a tag counts only if HTML has an element of its name, in lower or in upper case,
//! if its attributes look like some, if it is not between backticks and, where the content of the element
//! is left out, if it has an end tag too. Everything else stays text.
//!
//! Cost is linear in the text.

use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::LazyLock;

use super::elements::{Element, Holder};
use super::entities::reference;
use super::scan::{Attributes, MarkupPiece, ScannedPart, Scanner};

/// Whether a text has markup: a whole tag of an element of HTML, a whole comment, or a reference that ends
/// with a semicolon, as `&amp;` or `&#39;`.
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
    fragment(text).is_some()
}

/// The text as markup for [`Extractor::fragment`](super::Extractor::fragment): what is no markup in it is
/// escaped. `None` if it has none.
pub fn fragment(text: &str) -> Option<Cow<'_, str>> {
    // Most texts have neither.
    if !text.bytes().any(|byte| matches!(byte, b'<' | b'&')) {
        return None;
    }
    let closed = closed(text);
    let (mut has_markup, mut literal) = (false, Vec::new());
    each_part(text, |range, part| {
        let is_markup = match part {
            FragmentPart::Text => {
                has_markup |= has_reference(&text[range]);
                return;
            }
            FragmentPart::Start(name) => !is_left_out(name) || closed.contains(&range.start),
            FragmentPart::Content | FragmentPart::End(_) | FragmentPart::Comment => true,
            FragmentPart::Other => false,
        };
        has_markup |= is_markup;
        if !is_markup {
            literal.extend(text[range.clone()].match_indices('<').map(|(at, _)| range.start + at));
        }
    });
    has_markup.then(|| escaped(text, &literal))
}

/// A part of a text.
enum FragmentPart<'t> {
    Text,
    /// A start tag: its name.
    Start(&'t [u8]),
    /// The start tag of an element in which there is no markup, and its content.
    Content,
    /// An end tag: its name.
    End(&'t [u8]),
    /// A whole comment, or the head of a page or of XML.
    Comment,
    /// What only looks like markup.
    Other,
}

/// Calls `each` with the parts of a text in order, and their bytes.
fn each_part<'t>(text: &'t str, mut each: impl FnMut(Range<usize>, FragmentPart<'t>)) {
    let bytes = text.as_bytes();
    let (mut scanner, mut endless) = (Scanner::new(bytes), BTreeSet::new());
    loop {
        let first = scanner.at();
        let Some(scanned) = scanner.part() else { return };
        let behind = scanner.at();
        let is_quoted = || first > 0 && bytes[first - 1] == b'`' && bytes.get(behind) == Some(&b'`');
        let part = match scanned {
            ScannedPart::Piece(MarkupPiece::Text(_)) => FragmentPart::Text,
            ScannedPart::Piece(MarkupPiece::Start { name, attributes, .. }) => {
                let name = &bytes[name];
                let is_tag = has_element(name) && are_attributes(&bytes[attributes]) && !is_quoted();
                match Element::from_name(name) {
                    _ if !is_tag => FragmentPart::Other,
                    Element::Raw | Element::Script | Element::Shown | Element::Plaintext => {
                        // The search for an end that is not there is not repeated.
                        let name = name.to_ascii_lowercase();
                        if !endless.contains(&name) && passes_content(&name, &mut scanner) {
                            FragmentPart::Content
                        } else {
                            scanner.back_to(behind);
                            endless.insert(name);
                            FragmentPart::Other
                        }
                    }
                    _ => FragmentPart::Start(name),
                }
            }
            ScannedPart::Piece(MarkupPiece::End(name))
                if has_element(&bytes[name.clone()]) && !is_quoted() =>
            {
                FragmentPart::End(&bytes[name])
            }
            ScannedPart::Passed(range) if is_whole(&text[range.clone()]) => FragmentPart::Comment,
            ScannedPart::Piece(MarkupPiece::End(_)) | ScannedPart::Passed(_) => FragmentPart::Other,
        };
        each(first..scanner.at(), part);
    }
}

/// Passes over the content of an element in which there is no markup. False if it has no end.
fn passes_content(name: &[u8], scanner: &mut Scanner<'_>) -> bool {
    match Element::from_name(name) {
        Element::Script => drop(scanner.script()),
        Element::Plaintext => return false,
        _ => drop(scanner.raw(name)),
    }
    !scanner.is_at_end()
}

/// The start tags of elements whose content is left out that have an end tag, by their first bytes.
fn closed(text: &str) -> BTreeSet<usize> {
    let (mut open, mut closed) = (BTreeMap::<Vec<u8>, Vec<usize>>::new(), BTreeSet::new());
    each_part(text, |range, part| match part {
        FragmentPart::Start(name) if is_left_out(name) => {
            open.entry(name.to_ascii_lowercase()).or_default().push(range.start);
        }
        FragmentPart::End(name) if name.eq_ignore_ascii_case(b"ruby") => {
            for inside in [&b"rt"[..], b"rp"] {
                closed.extend(open.remove(inside).unwrap_or_default());
            }
        }
        FragmentPart::End(name) if is_left_out(name) => {
            closed.extend(open.get_mut(&*name.to_ascii_lowercase()).and_then(Vec::pop));
        }
        _ => {}
    });
    closed
}

/// The text with a reference in the place of each of these `<`.
fn escaped<'t>(text: &'t str, angles: &[usize]) -> Cow<'t, str> {
    if angles.is_empty() {
        return text.into();
    }
    let (mut out, mut from) = (String::with_capacity(text.len() + 3 * angles.len()), 0);
    for at in angles {
        out.push_str(&text[from..*at]);
        out.push_str("&lt;");
        from = at + 1;
    }
    out.push_str(&text[from..]);
    out.into()
}

/// Whether a text has a reference with its semicolon.
fn has_reference(text: &str) -> bool {
    let is_whole = |(at, _): (usize, &str)| {
        reference(&text[at..]).is_some_and(|(_, length)| text[at..at + length].ends_with(';'))
    };
    text.match_indices('&').any(is_whole)
}

/// Whether what the scanner passes over is a whole comment, or the head of a page or of XML.
fn is_whole(passed: &str) -> bool {
    let has_prefix =
        |prefix: &str| passed.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
    passed.len() > 4 && passed.starts_with("<!--") && passed.ends_with('>')
        || passed.ends_with('>') && (has_prefix("<!doctype") || has_prefix("<?xml"))
}

/// Whether what stands behind the name of a tag looks like attributes.
fn are_attributes(bytes: &[u8]) -> bool {
    let may_begin = |byte: u8| byte.is_ascii_alphabetic() || b"_:@#*[(".contains(&byte);
    let may_follow = |byte: &u8| byte.is_ascii_alphanumeric() || b"_:@#*[]()-.".contains(byte);
    Attributes::new(bytes).all(|(name, _)| may_begin(name[0]) && name.iter().all(may_follow))
}

/// Whether the content of the element of this name is left out, as that of its kind is.
fn is_left_out(name: &[u8]) -> bool {
    match Element::from_name(name) {
        // A header in a fragment is content.
        Element::Holder(holder) => holder.is_left_out() && holder != Holder::Header,
        _ => false,
    }
}

/// The names of the elements of documents in HTML, obsolete ones too.
const ELEMENTS: &str = "\
    a abbr acronym address applet area article aside audio b base basefont bdi bdo bgsound big blink \
    blockquote body br button canvas caption center cite code col colgroup data datalist dd del details \
    dfn dialog dir div dl dt em embed fieldset figcaption figure font footer form frame frameset h1 h2 \
    h3 h4 h5 h6 head header hgroup hr html i iframe img input ins isindex kbd keygen label legend li \
    link listing main map mark marquee math menu menuitem meta meter multicol nav nextid nobr noembed \
    noframes noscript object ol optgroup option output p param picture plaintext pre progress q rb rp \
    rt rtc ruby s samp script search section select slot small source spacer span strike strong style \
    sub summary sup svg table tbody td template textarea tfoot th thead time title tr track tt u ul var \
    video wbr xmp";

static NAMES: LazyLock<BTreeSet<&[u8]>> = LazyLock::new(|| ELEMENTS.split(' ').map(str::as_bytes).collect());

/// Whether HTML has an element of this name, which is in lower or in upper case.
fn has_element(name: &[u8]) -> bool {
    let lower = name.to_ascii_lowercase();
    let is_of_one_case = lower == name || !name.iter().any(u8::is_ascii_lowercase);
    is_of_one_case && NAMES.contains(&*lower)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::html::{Extractor, MOST_BYTES};

    fn read(text: &str) -> Option<String> {
        fragment(text).map(|markup| Extractor::default().fragment(&markup).to_owned())
    }

    #[test]
    fn markup_is_found_in_texts_that_are_no_pages() {
        for (text, expected) in [
            ("<p>Fish <b>&amp;</b> chips</p><p>Tea", "Fish & chips\nTea"),
            ("one<br>two<BR/>three", "one\ntwo\nthree"),
            ("price &lt; 5 &euro;", "price < 5 €"),
            ("a<!-- b -->c<!---->d<!-- e --!>f", "acdf"),
            ("closed</div>", "closed"),
            ("<header>kept</header><script>if (a<b) '</p>'</script>", "kept"),
            ("तर्क &#39;क&#x27; <em>🎉</em>", "तर्क 'क' 🎉"),
            ("<td colspan=2 [x]='y' @click=\"z\">cell</td>", "cell"),
            ("<listing>one two</listing> <ruby>漢<rt>かん</ruby>字", "one two\n漢字"),
            ("<nav>left out</nav>kept", "kept"),
            ("<nav>x <nav>left out</nav>kept", "<nav>x\nkept"),
            ("<nav>a <!-- </nav> --> b", "<nav>a b"),
            ("<nav><script>'</nav>'</script>left out</nav>kept", "kept"),
        ] {
            assert_eq!(read(text).as_deref(), Some(expected), "{text}");
        }
    }

    /// What is no markup stays, also in a text that has some.
    #[test]
    fn what_only_looks_like_a_tag_stays() {
        for text in [
            "",
            "a < b > c",
            "a<b",
            "Vec<String>",
            "List<Object> x = Map<Title, Select<Button>>",
            "<a@b.org>",
            "AT&T; x&y=1",
            "&amp",
            "<!-- open",
            "<unk> <3 I </3 you > all",
            "In HTML the <title> element names the page",
            "Use `<script>` to load code, then call it",
            "<textarea> fields and <select> boxes",
            "for (i=0;i<b && c>d;i++) x += y",
            "<![CDATA[ text ]]>",
            "<a href=\"x>no end",
            "Put links into `<nav>` and close it by `</nav>` at the end",
            "<script>a <!-- <script> </script> b text",
            "<script>a <!-- <script> </script> b <script>c",
        ] {
            assert_eq!(read(text), None, "{text}");
            // A browser takes a reference without its semicolon too.
            let kept = if text == "&amp" { "&" } else { text };
            let beside = read(&format!("<br>and &amp; so on <br>{text}"));
            assert_eq!(beside.as_deref(), Some(format!("and & so on\n{kept}").trim_end()), "{text}");
        }
    }

    /// The limit of pages is none of other texts.
    #[test]
    fn a_long_text_is_read_to_its_end() {
        let text = format!("x &amp; {} end", "word ".repeat(MOST_BYTES / 5));
        assert!(text.len() > MOST_BYTES && read(&text).unwrap().ends_with("word end"));
    }
}
