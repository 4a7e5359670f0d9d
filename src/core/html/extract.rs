//! Extracts the text of a page.
//!
//! Markup -> the text of its content: runs of white space become one space, elements that separate words
//! become line ends, references become characters. [`super`] lists what is left out.
//!
//! Invariants: the text neither begins nor ends with white space, and its only control characters are line
//! ends. Cost is linear in the markup, even if it is malicious: each open element is closed once, and an end
//! tag without a start tag is recognized by a count.

use std::ops::Range;

use super::MOST_BYTES;
use super::elements::{Element, Holder};
use super::entities::reference;
use super::scan::{MarkupPiece, Scanner};

/// How text at the present position is treated.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum Visibility {
    /// It is content.
    #[default]
    Visible,
    /// It is left out, except in an `article` or a `main`.
    Skipped,
    /// It is left out, including all elements inside.
    Hidden,
}

/// The separator between the last character and the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Separator {
    #[default]
    None,
    Space,
    Line,
}

/// Extracts the texts of pages; reuses its buffers.
#[derive(Clone, Debug, Default)]
pub struct Extractor {
    text: String,
    separator: Separator,
    visibility: Visibility,
    /// Open elements, each with the state before it.
    open: Vec<(Holder, Visibility)>,
    /// The number of open elements of each kind.
    counts: OpenCounts,
    /// The strongest mark of where the content begins, and its byte in `text`.
    begins: Option<(ContentMark, usize)>,
}

/// Marks of where the content of a page begins, weakest first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum ContentMark {
    Heading,
    Article,
    Main,
    HeadingInside,
}

#[derive(Clone, Debug)]
struct OpenCounts([usize; Holder::COUNT]);

impl Default for OpenCounts {
    fn default() -> Self {
        Self([0; Holder::COUNT])
    }
}

impl Extractor {
    /// The text of the content of a page, or of its first [`MOST_BYTES`].
    pub fn text(&mut self, page: &str) -> &str {
        self.read(&page[..page.floor_char_boundary(MOST_BYTES)], &[])
    }

    /// The text of a part of a page, as if it were in its article.
    pub fn fragment(&mut self, part: &str) -> &str {
        self.read(part, &[Holder::Article])
    }

    /// The text of the last page.
    #[cfg(feature = "article")]
    pub(super) fn last(&self) -> &str {
        &self.text
    }

    /// That text from the beginning of the content on, if the page marks it. The mark is the first of these
    /// that exists and is content: the end of the first `h1` in a `main` or an `article`, the first `main`,
    /// the first `article`, the end of the first `h1`.
    #[cfg(feature = "article")]
    pub(super) fn content(&self) -> Option<&str> {
        let (_, at) = self.begins?;
        self.text.get(at..).map(str::trim_start)
    }

    fn read(&mut self, markup: &str, inside: &[Holder]) -> &str {
        self.text.clear();
        self.open.clear();
        (self.separator, self.visibility, self.counts) =
            (Separator::None, Visibility::Visible, OpenCounts::default());
        self.begins = None;
        inside.iter().for_each(|holder| self.open(*holder));
        let mut scanner = Scanner::new(markup.as_bytes());
        while let Some(piece) = scanner.next() {
            match piece {
                MarkupPiece::Text(range) => self.decode(&markup[range]),
                MarkupPiece::Start { name, closes, .. } => self.start(markup, name, closes, &mut scanner),
                MarkupPiece::End(name) => self.end(&markup.as_bytes()[name]),
            }
        }
        &self.text
    }

    fn start(&mut self, markup: &str, name: Range<usize>, closes: bool, scanner: &mut Scanner<'_>) {
        let name = &markup.as_bytes()[name];
        let element = Element::from_name(name);
        self.separate(element);
        // Self-closing tags end their element only inside of `svg`.
        let is_whole =
            closes && (element == Element::Holder(Holder::Svg) || self.counts.get(Holder::Svg) > 0);
        match element {
            _ if is_whole => {}
            Element::Holder(holder) => self.open(holder),
            Element::Raw => drop(scanner.raw(name)),
            Element::Script => drop(scanner.script()),
            Element::Shown => self.push_shown(&markup[scanner.raw(name)]),
            Element::Plaintext => self.push_shown(&markup[scanner.rest()]),
            Element::Inline | Element::Break | Element::Block => {}
        }
    }

    fn open(&mut self, holder: Holder) {
        let in_content = self.counts.get(Holder::Article) + self.counts.get(Holder::Main) > 0;
        self.open.push((holder, self.visibility));
        *self.counts.get_mut(holder) += 1;
        match holder {
            Holder::Main if self.visibility != Visibility::Hidden => self.begins_here(ContentMark::Main),
            Holder::Article if self.visibility != Visibility::Hidden => {
                self.begins_here(ContentMark::Article);
            }
            _ => {}
        }
        self.visibility = match (self.visibility, holder) {
            (Visibility::Hidden, _) | (_, Holder::Template) => Visibility::Hidden,
            (_, Holder::Article | Holder::Main) => Visibility::Visible,
            (visibility, Holder::Header) if in_content => visibility,
            (_, holder) if holder.is_left_out() => Visibility::Skipped,
            (visibility, _) => visibility,
        };
    }

    /// Records a mark; of equally strong marks the first counts.
    fn begins_here(&mut self, mark: ContentMark) {
        if self.begins.is_none_or(|(before, _)| before < mark) {
            self.begins = Some((mark, self.text.len()));
        }
    }

    fn end(&mut self, name: &[u8]) {
        if name.eq_ignore_ascii_case(b"h1") && self.visibility == Visibility::Visible {
            let inside = self.counts.get(Holder::Article) + self.counts.get(Holder::Main) > 0;
            self.begins_here(if inside { ContentMark::HeadingInside } else { ContentMark::Heading });
        }
        let element = Element::from_name(name);
        self.separate(element);
        let Element::Holder(holder) = element else { return };
        if self.counts.get(holder) == 0 {
            return;
        }
        while let Some((last, before)) = self.open.pop() {
            *self.counts.get_mut(last) -= 1;
            self.visibility = before;
            if last == holder {
                return;
            }
        }
    }

    /// Ends the line, if the element separates words.
    fn separate(&mut self, element: Element) {
        if element.separates_words() {
            self.separator = Separator::Line;
        }
    }

    /// Appends text with references.
    fn decode(&mut self, text: &str) {
        if self.visibility != Visibility::Visible {
            return;
        }
        let mut rest = text;
        while let Some(at) = rest.find('&') {
            self.push(&rest[..at]);
            let length = match reference(&rest[at..]) {
                Some(((first, second), length)) => {
                    self.push(first.encode_utf8(&mut [0; 4]));
                    if let Some(second) = second {
                        self.push(second.encode_utf8(&mut [0; 4]));
                    }
                    length
                }
                None => {
                    self.push("&");
                    1
                }
            };
            rest = &rest[at + length..];
        }
        self.push(rest);
    }

    /// Appends text without references.
    fn push_shown(&mut self, text: &str) {
        if self.visibility == Visibility::Visible {
            self.push(text);
        }
    }

    fn push(&mut self, text: &str) {
        let is_blank = |byte: &u8| *byte <= b' ' || *byte == 0x7f;
        let bytes = text.as_bytes();
        let mut at = 0;
        while at < bytes.len() {
            let blanks = bytes[at..].iter().take_while(|byte| is_blank(byte)).count();
            if blanks > 0 {
                self.separator = self.separator.max(Separator::Space);
                at += blanks;
                continue;
            }
            // Words with one space between them are copied together.
            let mut end = at;
            while let Some(byte) = bytes.get(end)
                && (!is_blank(byte)
                    || *byte == b' ' && bytes.get(end + 1).is_some_and(|next| !is_blank(next)))
            {
                end += 1;
            }
            match std::mem::take(&mut self.separator) {
                Separator::Space if !self.text.is_empty() => self.text.push(' '),
                Separator::Line if !self.text.is_empty() => self.text.push('\n'),
                _ => {}
            }
            self.text.push_str(&text[at..end]);
            at = end;
        }
    }
}

impl OpenCounts {
    fn get(&self, holder: Holder) -> usize {
        self.0[holder as usize]
    }

    fn get_mut(&mut self, holder: Holder) -> &mut usize {
        &mut self.0[holder as usize]
    }
}
