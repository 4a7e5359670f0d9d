//! A page to its text.
//!
//! Markup -> the text of what is content in it: white space is one space, elements that part words are a
//! line's end, references are characters. What is left out is said in [`super`].
//!
//! Invariants: the text neither begins nor ends with white space, and has no control characters but line
//! ends. Cost is linear in the markup, whatever it is: an open element is closed once, and an end tag without
//! a start tag is looked up in a count.

use std::ops::Range;

use super::MOST_BYTES;
use super::elements::{Element, Holder};
use super::entities::reference;
use super::scan::{Piece, Scanner};

/// What becomes of text at some place.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
enum State {
    /// It is content.
    #[default]
    Shown,
    /// It is left out, up to an element of content.
    Left,
    /// It is left out with all that is in it.
    Gone,
}

/// What stands between the last character and the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
enum Gap {
    #[default]
    None,
    Space,
    Line,
}

/// Pages to texts; keeps its buffers between them.
#[derive(Clone, Debug, Default)]
pub struct Extractor {
    text: String,
    gap: Gap,
    state: State,
    /// Open elements, each with what held before it.
    open: Vec<(Holder, State)>,
    /// How many of each are open.
    counts: Counts,
    /// Where the page says that its content begins, and how surely.
    begins: Option<(Sign, usize)>,
}

/// What says where the content of a page begins, the surer the greater.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Sign {
    Heading,
    Article,
    Main,
    HeadingInside,
}

#[derive(Clone, Debug)]
struct Counts([usize; Holder::COUNT]);

impl Default for Counts {
    fn default() -> Self {
        Self([0; Holder::COUNT])
    }
}

impl Extractor {
    /// The text of a page, or of its first [`MOST_BYTES`].
    pub fn text(&mut self, page: &str) -> &str {
        self.read(page, &[])
    }

    /// The text of a part of a page that is known to be content.
    #[cfg(feature = "article")]
    pub(super) fn text_of_content(&mut self, part: &str) -> &str {
        self.read(part, &[Holder::Article])
    }

    /// The text of the page that was read last.
    #[cfg(feature = "article")]
    pub(super) fn last(&self) -> &str {
        &self.text
    }

    /// That text from where the page says that its content begins, if it does: behind the first `h1` in a
    /// `main` or an `article`, else from the first `main`, else from the first `article`, else behind the
    /// first `h1`, of those that are content.
    #[cfg(feature = "article")]
    pub(super) fn content(&self) -> Option<&str> {
        let (_, at) = self.begins?;
        self.text.get(at..).map(str::trim_start)
    }

    fn read(&mut self, markup: &str, inside: &[Holder]) -> &str {
        let markup = &markup[..markup.floor_char_boundary(MOST_BYTES)];
        self.text.clear();
        self.open.clear();
        (self.gap, self.state, self.counts) = (Gap::None, State::Shown, Counts::default());
        self.begins = None;
        inside.iter().for_each(|holder| self.open(*holder));
        let mut scanner = Scanner::new(markup.as_bytes());
        while let Some(piece) = scanner.next() {
            match piece {
                Piece::Text(range) => self.decode(&markup[range]),
                Piece::Start { name, closes, .. } => self.start(markup, name, closes, &mut scanner),
                Piece::End(name) => self.end(&markup.as_bytes()[name]),
            }
        }
        &self.text
    }

    fn start(&mut self, markup: &str, name: Range<usize>, closes: bool, scanner: &mut Scanner<'_>) {
        let name = &markup.as_bytes()[name];
        let element = Element::of(name);
        self.part(element);
        // Only in a picture a tag may end what it begins.
        let is_whole = closes && (element == Element::Holder(Holder::Svg) || self.counts.of(Holder::Svg) > 0);
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
        let in_content = self.counts.of(Holder::Article) + self.counts.of(Holder::Main) > 0;
        self.open.push((holder, self.state));
        *self.counts.of_mut(holder) += 1;
        match holder {
            Holder::Main if self.state != State::Gone => self.begins_here(Sign::Main),
            Holder::Article if self.state != State::Gone => self.begins_here(Sign::Article),
            _ => {}
        }
        self.state = match (self.state, holder) {
            (State::Gone, _) | (_, Holder::Template) => State::Gone,
            (_, Holder::Article | Holder::Main) => State::Shown,
            (state, Holder::Header) if in_content => state,
            (_, holder) if holder.is_left_out() => State::Left,
            (state, _) => state,
        };
    }

    /// The first of the surest signs counts.
    fn begins_here(&mut self, sign: Sign) {
        if self.begins.is_none_or(|(before, _)| before < sign) {
            self.begins = Some((sign, self.text.len()));
        }
    }

    fn end(&mut self, name: &[u8]) {
        if name.eq_ignore_ascii_case(b"h1") && self.state == State::Shown {
            let inside = self.counts.of(Holder::Article) + self.counts.of(Holder::Main) > 0;
            self.begins_here(if inside { Sign::HeadingInside } else { Sign::Heading });
        }
        let element = Element::of(name);
        self.part(element);
        let Element::Holder(holder) = element else { return };
        if self.counts.of(holder) == 0 {
            return;
        }
        while let Some((last, before)) = self.open.pop() {
            *self.counts.of_mut(last) -= 1;
            self.state = before;
            if last == holder {
                return;
            }
        }
    }

    /// Ends the line, if the element parts words.
    fn part(&mut self, element: Element) {
        if element.parts_words() {
            self.gap = Gap::Line;
        }
    }

    /// Text with references.
    fn decode(&mut self, text: &str) {
        if self.state != State::Shown {
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

    /// Text without references.
    fn push_shown(&mut self, text: &str) {
        if self.state == State::Shown {
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
                self.gap = self.gap.max(Gap::Space);
                at += blanks;
                continue;
            }
            // Words with a space between each two are copied together.
            let mut end = at;
            while let Some(byte) = bytes.get(end)
                && (!is_blank(byte)
                    || *byte == b' ' && bytes.get(end + 1).is_some_and(|next| !is_blank(next)))
            {
                end += 1;
            }
            match std::mem::take(&mut self.gap) {
                Gap::Space if !self.text.is_empty() => self.text.push(' '),
                Gap::Line if !self.text.is_empty() => self.text.push('\n'),
                _ => {}
            }
            self.text.push_str(&text[at..end]);
            at = end;
        }
    }
}

impl Counts {
    fn of(&self, holder: Holder) -> usize {
        self.0[holder as usize]
    }

    fn of_mut(&mut self, holder: Holder) -> &mut usize {
        &mut self.0[holder as usize]
    }
}
