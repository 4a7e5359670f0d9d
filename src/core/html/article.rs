//! Finds the article of a page by the criteria of Readability.js: lengths of paragraphs, their link density,
//! names of classes.
//!
//! A page without its [notices](super::notices) -> the text of its article; or its [whole text](Extractor) in
//! any of these cases:
//!
//! - it has no article;
//! - the article is no shorter than the whole text;
//! - the article lacks what the page itself marks as its content;
//! - the page exceeds a limit.
//!
//! A page marks its content by an `h1`, a `main` or an `article`. Most of the first [`CONTENT_CHARS`]
//! characters after it must be in the article. Reason: on a page of a few sentences the delivery terms have
//! longer paragraphs than the text, and they are the same on all pages of the site.
//!
//! The crate builds a tree, whose cost grows with its depth. The limits are [`MOST_ELEMENTS`] elements,
//! [`MOST_DEPTH`] elements open at once, and [`MOST_ATTRIBUTES`] attributes in a tag. A page at which the
//! crate panics counts as exceeding them.
//!
//! The rule has a [version](super::ARTICLE_VERSION), which is part of the scheme.
//!
//! Reference: the crate `dom_smoothie`, at one exact version, since another version may find another article.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dom_smoothie::{Config, Readability};

use super::elements::Element;
use super::scan::{Attributes, MarkupPiece, Scanner};
use super::{Extractor, MOST_BYTES, notices};

/// How many characters after the start of the content are looked up in an article.
const CONTENT_CHARS: usize = 300;

/// The percentage of them (inclusive) that must be in the article.
const CONTENT_SHARE: usize = 60;

/// The most elements of a page whose article is extracted, inclusive.
pub const MOST_ELEMENTS: usize = 10_000;

/// The most elements open at once, inclusive. 256, since 500 take seconds.
pub const MOST_DEPTH: usize = 256;

/// The most attributes of an element, inclusive: each is compared with all before it.
pub const MOST_ATTRIBUTES: usize = 256;

/// Elements that the next element of their kind ends: a hundred of them in a row are not nested.
const SIBLINGS: [&[u8]; 12] =
    [b"dd", b"dt", b"li", b"optgroup", b"option", b"p", b"tbody", b"td", b"tfoot", b"th", b"thead", b"tr"];

/// Extracts the texts of the articles of pages; reuses its buffers.
#[derive(Clone, Debug, Default)]
pub struct ArticleFinder {
    whole: Extractor,
    article: Extractor,
}

impl ArticleFinder {
    /// The text of the page's article, or else of the whole page. Reads the first [`MOST_BYTES`] of the page.
    pub fn text(&mut self, page: &str) -> &str {
        let page = notices::without(&page[..page.floor_char_boundary(MOST_BYTES)]);
        self.whole.text(&page);
        let article = if is_small(&page) { article(&page) } else { None };
        // Of a short page the crate takes everything, side columns too. Such an article has more text than
        // the content, and is not used.
        let article = article.map(|part| self.article.fragment(&part));
        let whole = self.whole.last();
        let has_content = |text: &str| self.whole.content().is_none_or(|content| has_most_of(text, content));
        article.filter(|text| (1..whole.len()).contains(&text.len()) && has_content(text)).unwrap_or(whole)
    }
}

/// Whether `text` contains [`CONTENT_SHARE`] percent of the first [`CONTENT_CHARS`] characters of `content`,
/// compared line by line.
fn has_most_of(text: &str, content: &str) -> bool {
    let mut left = CONTENT_CHARS;
    let (mut found, mut all) = (0, 0);
    for line in content.lines() {
        let end = line.char_indices().nth(left).map_or(line.len(), |(at, _)| at);
        let chars = line[..end].chars().count();
        all += chars;
        found += if text.contains(line[..end].trim_end()) { chars } else { 0 };
        left -= chars;
        if left == 0 {
            break;
        }
    }
    found * 100 >= all * CONTENT_SHARE
}

/// The markup of the article.
fn article(page: &str) -> Option<String> {
    let config = Config { max_elements_to_parse: MOST_ELEMENTS, disable_json_ld: true, ..Config::default() };
    let find = AssertUnwindSafe(|| Readability::new(page, None, Some(config)).ok()?.parse().ok());
    catch_unwind(find).ok().flatten().map(|found| found.content.to_string())
}

/// Whether a page is within the limits. Its tree is at most a few levels deeper than the depth counted here:
/// the standard adds some elements.
fn is_small(page: &str) -> bool {
    let (mut open, mut depth, mut elements) = (BTreeMap::<Vec<u8>, usize>::new(), 0, 0);
    let markup = page.as_bytes();
    let mut scanner = Scanner::new(markup);
    while let Some(piece) = scanner.next() {
        let (name, is_start) = match piece {
            MarkupPiece::Text(_) => continue,
            MarkupPiece::Start { attributes, .. }
                if Attributes::new(&markup[attributes.clone()]).nth(MOST_ATTRIBUTES).is_some() =>
            {
                return false;
            }
            MarkupPiece::Start { name, .. } => (markup[name].to_ascii_lowercase(), true),
            MarkupPiece::End(name) => (markup[name].to_ascii_lowercase(), false),
        };
        let element = Element::from_name(&name);
        elements += usize::from(is_start);
        match element {
            Element::Raw | Element::Shown if is_start => drop(scanner.raw(&name)),
            Element::Script if is_start => drop(scanner.script()),
            Element::Inline | Element::Block | Element::Holder(_) if !SIBLINGS.contains(&&*name) => {
                let of_name = open.entry(name).or_default();
                if is_start {
                    *of_name += 1;
                    depth += 1;
                } else if *of_name > 0 {
                    *of_name -= 1;
                    depth -= 1;
                }
            }
            _ => {}
        }
        if elements > MOST_ELEMENTS || depth > MOST_DEPTH {
            return false;
        }
    }
    true
}

#[cfg(test)]
mod tests {
    use super::*;

    const SENTENCE: &str = "A near-duplicate differs from another text in a few words, and a page says \
        more than its text does. ";

    fn text(page: &str) -> String {
        ArticleFinder::default().text(page).to_owned()
    }

    fn paragraphs(many: usize) -> String {
        (0..many).map(|n| format!("<p>{n} {}</p>", SENTENCE.repeat(3))).collect()
    }

    #[test]
    fn the_article_is_found_among_divs() {
        let links: String = (0..30).map(|n| format!("<li><a href=/{n}>Menu {n}</a>")).collect();
        let page = format!(
            "<!doctype html><body><div class=sidebar><ul>{links}</ul></div><div id=content><h1>Head\
             </h1>{}</div>\
             <div class=footer>Imprint</div>",
            paragraphs(5)
        );
        let found = text(&page);
        assert!(found.contains(&format!("4 {}", SENTENCE.trim())), "{found}");
        assert!(!found.contains("Menu") && !found.contains("Imprint"), "{found}");
        assert!(Extractor::default().text(&page).contains("Menu"));
    }

    #[test]
    fn pages_without_an_article_are_taken_whole() {
        for page in [
            "<html>",
            "<html><nav>a</nav><p>b",
            "<html>近似<br>文書",
            "<!doctype html><table><tr><td>1<td>2</table>",
        ] {
            assert_eq!(text(page), Extractor::default().text(page), "{page}");
        }
    }

    #[test]
    fn deep_and_large_pages_are_taken_whole() {
        let within = |open: &str, close: &str, depth: usize| {
            format!("<html>{}{}{}", open.repeat(depth), paragraphs(3), close.repeat(depth))
        };
        assert!(is_small(&within("<div>", "</div>", MOST_DEPTH - 1)));
        assert!(is_small(&("<p>a<ul><li>b<li>c</ul>".repeat(1000))), "what others end is not inside of them");
        for page in [
            within("<div>", "</div>", 200_000),
            within("<b></i>", "</b>", MOST_DEPTH + 1),
            within("<my-x>", "", MOST_DEPTH + 1),
            format!("<p{}>", (0..=MOST_ATTRIBUTES).map(|n| format!(" a{n}")).collect::<String>())
                + &paragraphs(3),
            "<br>".repeat(MOST_ELEMENTS + 1) + &paragraphs(3),
        ] {
            assert!(!is_small(&page));
            assert_eq!(text(&page), Extractor::default().text(&page));
        }
    }
}
