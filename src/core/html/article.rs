//! The article of a page, told by what Readability.js goes by: how long paragraphs are, how many links are in
//! them, what classes are called.
//!
//! A page without its [notices](super::notices) -> the text of its article; its [whole text](Extractor), if
//! it has no article, if that is no shorter, if it leaves out what the page itself marks as its content, or
//! if the page has more than may be looked at.
//!
//! A page marks its content by an `h1`, a `main` or an `article`. What stands first behind it,
//! [`CONTENT_CHARS`] of it, must be in the article for the most part: a page of a few sentences has longer
//! paragraphs in its delivery terms than in its text, and these are the same on all pages of the site.
//!
//! A tree is built here, which costs more the deeper it is. So a page with more than [`MOST_ELEMENTS`]
//! elements, or with more than [`MOST_DEPTH`] open at once, or with a tag of more than [`MOST_ATTRIBUTES`],
//! is one with more than may be looked at; so is one at which the crate panics.
//!
//! The rule has a [number](super::ARTICLE_VERSION), which is part of the scheme.
//!
//! Reference: the crate `dom_smoothie`, at one exact version, since another may find another article.

use std::collections::BTreeMap;
use std::panic::{AssertUnwindSafe, catch_unwind};

use dom_smoothie::{Config, Readability};

use super::elements::Element;
use super::scan::{Attributes, Piece, Scanner};
use super::{Extractor, MOST_BYTES, notices};

/// Characters behind where the content begins that are looked for in an article.
const CONTENT_CHARS: usize = 300;

/// How many of a hundred of them must be in it.
const CONTENT_SHARE: usize = 60;

/// The most elements of a page whose article is looked for, inclusive.
pub const MOST_ELEMENTS: usize = 10_000;

/// How many of them may be open at once, inclusive: 256, since 500 take seconds.
pub const MOST_DEPTH: usize = 256;

/// The most attributes of one of them, inclusive: each is compared with all before it.
pub const MOST_ATTRIBUTES: usize = 256;

/// Elements that others of their kind end, so that of a hundred none is inside of another.
const SIBLINGS: [&[u8]; 12] =
    [b"dd", b"dt", b"li", b"optgroup", b"option", b"p", b"tbody", b"td", b"tfoot", b"th", b"thead", b"tr"];

/// Pages to the texts of their articles; keeps its buffers between them.
#[derive(Clone, Debug, Default)]
pub struct ArticleFinder {
    whole: Extractor,
    article: Extractor,
}

impl ArticleFinder {
    /// The text of a page's article, or of its first [`MOST_BYTES`].
    pub fn text(&mut self, page: &str) -> &str {
        let page = notices::without(&page[..page.floor_char_boundary(MOST_BYTES)]);
        self.whole.text(&page);
        let article = if is_small(&page) { article(&page) } else { None };
        // What has more than the content is no part of it: of a short page all is taken that there is, side
        // columns too.
        let article = article.map(|part| self.article.text_of_content(&part));
        let whole = self.whole.last();
        let has_content = |text: &str| self.whole.content().is_none_or(|content| holds(text, content));
        article.filter(|text| (1..whole.len()).contains(&text.len()) && has_content(text)).unwrap_or(whole)
    }
}

/// Whether a text has most of what stands first in another, line by line.
fn holds(text: &str, content: &str) -> bool {
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

/// Whether a page may be looked at: its tree is no deeper than what is counted here, but for a few levels
/// that the standard adds.
fn is_small(page: &str) -> bool {
    let (mut open, mut depth, mut elements) = (BTreeMap::<Vec<u8>, usize>::new(), 0, 0);
    let markup = page.as_bytes();
    let mut scanner = Scanner::new(markup);
    while let Some(piece) = scanner.next() {
        let (name, is_start) = match piece {
            Piece::Text(_) => continue,
            Piece::Start { attributes, .. }
                if Attributes::new(&markup[attributes.clone()]).nth(MOST_ATTRIBUTES).is_some() =>
            {
                return false;
            }
            Piece::Start { name, .. } => (markup[name].to_ascii_lowercase(), true),
            Piece::End(name) => (markup[name].to_ascii_lowercase(), false),
        };
        let element = Element::of(&name);
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

    const SENTENCE: &str = "A near-duplicate differs from another text in a few words, and a page says more than its text does. ";

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
            "<!doctype html><body><div class=sidebar><ul>{links}</ul></div><div id=content><h1>Head</h1>{}</div>\
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
