//! Web pages: recognizing them, and extracting their text.
//!
//! A page's bytes -> [text with its markup](decode) -> the [text of its content](Extractor). [`is_page`]
//! recognizes a page by its text alone, so the result does not depend on whether the document was read from a
//! file, a feed or a topic. If a caller knows from another source that bytes are a page, [`with_doctype`]
//! prepends the doctype that makes the text recognizable.
//!
//! All text is content, except the text of:
//!
//! - `script`, `style`, `title`, `textarea`, `iframe`, `noembed`, `noframes` and `template`, including all
//!   elements inside;
//! - `nav`, `header`, `footer`, `aside`, `button`, `select`, `datalist`, `noscript`, `svg`, `canvas`,
//!   `object`, `audio`, `video`, `rt` and `rp`, except in an `article` or a `main` inside them. A `header`
//!   inside of an `article` or a `main` is content.
//!
//! The title is left out because most pages repeat it in a heading, and many add the name of the site. A
//! `form` is treated as the text around it: some servers put the whole page into one form.
//!
//! Left-out elements without an end tag end with the element around them. All elements separate words, except
//! inline elements (`b`, `span`, `a` …).
//!
//! ```
//! use dupflow_core::html::{Extractor, is_page};
//!
//! let page = "<!doctype html><title>Shop</title><nav>Home</nav><p>Fish &amp; <b>ch</b>ips<p>Tea";
//! assert!(is_page(page));
//! assert_eq!(Extractor::default().text(page), "Fish & chips\nTea");
//! ```
//!
//! Not done here: style sheets and scripts are not run, so text hidden by them is content and text fetched by
//! them is not; classes, roles and `hidden` are ignored.

#[cfg(feature = "article")]
mod article;
mod charset;
mod elements;
mod entities;
mod extract;
mod fragment;
#[cfg(feature = "article")]
mod notices;
mod scan;
#[cfg(test)]
mod tests;

use std::borrow::Cow;

#[cfg(feature = "article")]
pub use article::{ArticleFinder, MOST_ATTRIBUTES, MOST_DEPTH, MOST_ELEMENTS};
pub use charset::{GUESS_BYTES, META_BYTES, decode};
pub use extract::Extractor;
pub use fragment::{fragment, has_markup};

/// The most bytes of a page that are read, inclusive: 4 MiB. The rest is ignored.
pub const MOST_BYTES: usize = 4 << 20;

/// The version of the rule for articles. Version 2 leaves out notices, and rejects an article that lacks the
/// content of the page.
pub const ARTICLE_VERSION: u32 = 2;

/// Prepended to a text to make it recognizable as a page.
const MARK: &str = "<!doctype html>";

/// Whether a text is a page: after a byte order mark, white space, comments and an XML declaration it begins
/// with `<!doctype html` or `<html`, in any case, followed by a space or `>`.
pub fn is_page(text: &str) -> bool {
    let mut rest = text.strip_prefix('\u{feff}').unwrap_or(text);
    loop {
        rest = rest.trim_ascii_start();
        let passed = match rest.as_bytes() {
            [b'<', b'!', b'-', b'-', ..] => rest[4..].split_once("-->"),
            [b'<', b'?', b'x', b'm', b'l', ..] => rest.split_once("?>"),
            bytes => {
                return ["<!doctype html", "<html"].iter().any(|start| {
                    let is_start = |found: &[u8]| found.eq_ignore_ascii_case(start.as_bytes());
                    bytes.get(..start.len()).is_some_and(is_start)
                        && bytes.get(start.len()).is_some_and(|byte| scan::is_space(*byte) || *byte == b'>')
                });
            }
        };
        match passed {
            Some((_, behind)) => rest = behind,
            None => return false,
        }
    }
}

/// The decoded bytes, if [`is_page`] recognizes them as a page; else `None`.
pub fn page(bytes: &[u8]) -> Option<Cow<'_, str>> {
    // Every page begins with one of these bytes, except in UTF-16, which has a byte order mark. Other bytes
    // need not be decoded.
    let first = bytes.iter().find(|byte| !scan::is_space(**byte));
    let may_be = matches!(first, Some(b'<' | 0xef | 0xfe | 0xff));
    may_be.then(|| decode(bytes, None)).filter(|text| is_page(text))
}

/// The decoded bytes of a page known as one, made recognizable. `http` is the encoding label of the HTTP
/// header.
pub fn with_doctype<'b>(bytes: &'b [u8], http: Option<&str>) -> Cow<'b, str> {
    let text = decode(bytes, http);
    if is_page(&text) { text } else { format!("{MARK}{text}").into() }
}
