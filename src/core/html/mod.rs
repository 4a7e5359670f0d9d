//! Web pages: whether a text is one, and what it says.
//!
//! A page's bytes -> [text with its markup](decode) -> the [text that is content](Extractor). A document is a
//! page by its own text: [`is_page`]. So what becomes of it is a function of that text, whether it comes from
//! a file, a feed or a topic; whoever knows from elsewhere that bytes are a page makes the text say so, by
//! [`marked`].
//!
//! Content is all text but that of
//!
//! - `script`, `style`, `title`, `textarea`, `iframe`, `noembed`, `noframes` and `template`, with all that is
//!   in them;
//! - `nav`, `header`, `footer`, `aside`, `button`, `select`, `datalist`, `noscript`, `svg`, `canvas`,
//!   `object`, `audio`, `video`, and what tells how to read a character (`rt`, `rp`): in them an `article` or
//!   a `main` is content again. A `header` inside of these two is content.
//!
//! The title is left out since most pages say it again in a heading, and many with the name of the site,
//! which is no part of what they tell. A `form` is as what is around it: some servers put all of a page into
//! one.
//!
//! Elements that are left out and do not end end with the element around them. Others but those of a line
//! (`b`, `span`, `a` …) part words.
//!
//! ```
//! use dupflow_core::html::{Extractor, is_page};
//!
//! let page = "<!doctype html><title>Shop</title><nav>Home</nav><p>Fish &amp; <b>ch</b>ips<p>Tea";
//! assert!(is_page(page));
//! assert_eq!(Extractor::default().text(page), "Fish & chips\nTea");
//! ```
//!
//! Not done here: style sheets and scripts are not run, so that what they hide is content and what they fetch
//! is not; classes, roles and `hidden` say nothing.

#[cfg(feature = "article")]
mod article;
mod charset;
mod elements;
mod entities;
mod extract;
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

/// The most bytes of a page that are looked at, inclusive: 4 MiB. What is beyond is left out.
pub const MOST_BYTES: usize = 4 << 20;

/// The number of the rule by which articles are found: 2 since notices are left out, and since what leaves
/// out the content of a page is no article of it.
pub const ARTICLE_VERSION: u32 = 2;

/// What says of a text that it is a page.
const MARK: &str = "<!doctype html>";

/// Whether a text is a page: after a byte order mark, white space, comments and an XML declaration it begins
/// with `<!doctype html` or `<html`, in any case, and a space or `>` follows.
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

/// The text of bytes that are a page's by [what they are decoded to](is_page); nothing if they are something
/// else.
pub fn page(bytes: &[u8]) -> Option<Cow<'_, str>> {
    // A page begins so in every encoding but UTF-16, which has a mark: anything else need not be decoded.
    let first = bytes.iter().find(|byte| !scan::is_space(**byte));
    let may_be = matches!(first, Some(b'<' | 0xef | 0xfe | 0xff));
    may_be.then(|| decode(bytes, None)).filter(|text| is_page(text))
}

/// The text of bytes that are known to be a page's, made to say so.
pub fn marked<'b>(bytes: &'b [u8], http: Option<&str>) -> Cow<'b, str> {
    let text = decode(bytes, http);
    if is_page(&text) { text } else { format!("{MARK}{text}").into() }
}
