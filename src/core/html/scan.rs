//! Splits markup into text, start tags and end tags, as HTML's tokenizer does.
//!
//! Bytes in any encoding that is a superset of ASCII -> [`MarkupPiece`]s, in order, as ranges of the input.
//! Comments, doctypes, declarations and unfinished tags are skipped; references (`&amp;`) stay in the text.
//!
//! The content of a script, a style and the like is not markup: after such a start tag, the caller reads it
//! by [`Scanner::raw`] or [`Scanner::script`].
//!
//! Every byte is read a bounded number of times, whatever the input. html5ever's tokenizer is not used
//! because it compares each attribute of a tag with all attributes before it: one tag of 4 MiB takes minutes.
//! The tests use it as the reference.
//!
//! Reference: the HTML standard, 13.2.5 (tokenization).
//!
//! Not done here: CDATA sections, which are comments outside of SVG and MathML, are treated as comments
//! inside too.

use std::ops::Range;

/// A piece of markup, as byte ranges.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum MarkupPiece {
    /// Text with its references.
    Text(Range<usize>),
    /// A start tag.
    Start {
        /// The name, in any case.
        name: Range<usize>,
        /// The bytes after the name, up to the end of the tag.
        attributes: Range<usize>,
        /// Whether the tag is self-closing: `<br/>`.
        closes: bool,
    },
    /// An end tag: its name.
    End(Range<usize>),
}

/// A part of markup.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum ScannedPart {
    /// A piece.
    Piece(MarkupPiece),
    /// A comment, a doctype, a declaration or an unfinished tag.
    Passed(Range<usize>),
}

/// Iterates over the pieces of markup.
#[derive(Debug)]
pub(super) struct Scanner<'m> {
    markup: &'m [u8],
    at: usize,
}

impl<'m> Scanner<'m> {
    pub(super) fn new(markup: &'m [u8]) -> Self {
        Self { markup, at: 0 }
    }

    /// The byte at which the next piece begins.
    pub(super) const fn at(&self) -> usize {
        self.at
    }

    /// Whether all has been read.
    pub(super) const fn is_at_end(&self) -> bool {
        self.at >= self.markup.len()
    }

    /// Goes back to a byte at which a piece began or ended.
    pub(super) const fn back_to(&mut self, at: usize) {
        self.at = at;
    }

    /// The next part, also one that is no piece.
    pub(super) fn part(&mut self) -> Option<ScannedPart> {
        let first = self.at;
        let is_letter = |at: usize| self.markup.get(at).is_some_and(u8::is_ascii_alphabetic);
        let piece = match (self.markup.get(first)?, self.markup.get(first + 1)) {
            (b'<', Some(_)) if is_letter(first + 1) => self.tag(first + 1, false),
            (b'<', Some(b'/')) if is_letter(first + 2) => self.tag(first + 2, true),
            (b'<', Some(b'!' | b'?')) => self.pass_over(),
            (b'<', Some(b'/')) if first + 2 < self.markup.len() => self.pass_over(),
            _ => {
                self.at = self.next_of(first + 1, b'<').unwrap_or(self.markup.len());
                Some(MarkupPiece::Text(first..self.at))
            }
        };
        Some(piece.map_or(ScannedPart::Passed(first..self.at), ScannedPart::Piece))
    }

    /// Takes the rest, which is not markup.
    pub(super) fn rest(&mut self) -> Range<usize> {
        std::mem::replace(&mut self.at, self.markup.len())..self.markup.len()
    }

    /// Takes the bytes up to the next end tag of this name; the rest, if there is none.
    pub(super) fn raw(&mut self, name: &[u8]) -> Range<usize> {
        let first = self.at;
        while !self.is_end(self.at, name) {
            self.at = match self.next_of(self.at + 1, b'<') {
                Some(next) => next,
                None => return first..self.rest().end,
            };
        }
        first..self.at
    }

    /// [`Self::raw`] for a script, where a comment may hide an end tag.
    pub(super) fn script(&mut self) -> Range<usize> {
        const NAME: &[u8] = b"script";
        let first = self.at;
        let (mut in_comment, mut in_inner) = (false, false);
        while self.at < self.markup.len() {
            let here = &self.markup[self.at..];
            let is_end = self.is_end(self.at, NAME);
            if is_end && !in_inner {
                return first..self.at;
            }
            if is_end {
                in_inner = false;
            } else if !in_comment && here.starts_with(b"<!--") {
                in_comment = true;
                // The dashes of `<!--` may be those of its `-->`.
                self.at += 1;
            } else if in_comment && here.starts_with(b"-->") {
                (in_comment, in_inner) = (false, false);
            } else if in_comment && here[0] == b'<' && self.is_tag(self.at + 1, NAME) {
                in_inner = true;
            }
            let rest = self.markup[self.at + 1..].iter();
            let next = rest.take_while(|byte| !matches!(byte, b'<' | b'-')).count();
            self.at += 1 + next;
        }
        first..self.rest().end
    }

    fn is_end(&self, at: usize, name: &[u8]) -> bool {
        self.markup[at..].starts_with(b"</") && self.is_tag(at + 2, name)
    }

    /// Whether the bytes at `at`, after a `<`, are a tag of this name, in any case.
    fn is_tag(&self, at: usize, name: &[u8]) -> bool {
        let end = at + name.len();
        self.markup.get(at..end).is_some_and(|found| found.eq_ignore_ascii_case(name))
            && self.markup.get(end).is_some_and(|byte| is_space(*byte) || matches!(byte, b'/' | b'>'))
    }

    fn next_of(&self, from: usize, byte: u8) -> Option<usize> {
        let rest = self.markup.get(from..)?;
        rest.iter().position(|other| *other == byte).map(|place| from + place)
    }

    /// Skips a comment, declaration or bogus end tag, which begins with `<!`, `<?` or `</`.
    fn pass_over(&mut self) -> Option<MarkupPiece> {
        let end = if self.markup[self.at..].starts_with(b"<!--") {
            self.comment_end()
        } else {
            self.next_of(self.at + 2, b'>').map(|end| end + 1)
        };
        self.at = end.unwrap_or(self.markup.len());
        None
    }

    /// The end of the comment that begins here.
    fn comment_end(&self) -> Option<usize> {
        // `<!-->` and `<!--->` are whole comments.
        let mut from = self.at + 2;
        loop {
            let dash = self.next_of(from, b'-')?;
            let here = &self.markup[dash..];
            if here.starts_with(b"-->") {
                return Some(dash + 3);
            }
            if dash >= self.at + 4 && here.starts_with(b"--!>") {
                return Some(dash + 4);
            }
            from = dash + 1;
        }
    }

    /// Reads the tag whose name begins at `first`.
    fn tag(&mut self, first: usize, is_end: bool) -> Option<MarkupPiece> {
        let is_name = |byte: &&u8| !is_space(**byte) && !matches!(byte, b'/' | b'>');
        let end = first + self.markup[first..].iter().take_while(is_name).count();
        let mut attributes = Attributes { bytes: self.markup, at: end, closes: false };
        while attributes.next().is_some() {}
        let Attributes { at, closes, .. } = attributes;
        // An unfinished tag is not a tag, and extends to the end of the markup.
        self.at = if at < self.markup.len() { at + 1 } else { at };
        let name = first..end;
        let piece = if is_end {
            MarkupPiece::End(name)
        } else {
            MarkupPiece::Start { name, attributes: end..at, closes }
        };
        (at < self.markup.len()).then_some(piece)
    }
}

impl Iterator for Scanner<'_> {
    type Item = MarkupPiece;

    fn next(&mut self) -> Option<MarkupPiece> {
        loop {
            if let ScannedPart::Piece(piece) = self.part()? {
                return Some(piece);
            }
        }
    }
}

/// The attributes of a tag: names, and values with their references. After the last one, `at` is at the tag's
/// `>`, or at the end of the bytes.
#[derive(Debug)]
pub(super) struct Attributes<'m> {
    bytes: &'m [u8],
    at: usize,
    /// Whether the tag is self-closing.
    closes: bool,
}

impl<'m> Attributes<'m> {
    /// The attributes of a tag; `bytes` begin after its name.
    pub(super) fn new(bytes: &'m [u8]) -> Self {
        Self { bytes, at: 0, closes: false }
    }

    fn take(&mut self, is_part: impl Fn(u8) -> bool) -> &'m [u8] {
        let first = self.at;
        self.at += self.bytes[first..].iter().take_while(|byte| is_part(**byte)).count();
        &self.bytes[first..self.at]
    }
}

impl<'m> Iterator for Attributes<'m> {
    type Item = (&'m [u8], &'m [u8]);

    fn next(&mut self) -> Option<Self::Item> {
        let before = self.take(|byte| is_space(byte) || byte == b'/');
        if matches!(self.bytes.get(self.at), None | Some(b'>')) {
            self.closes = before.last() == Some(&b'/');
            return None;
        }
        let first = self.at;
        // The first byte belongs to the name, even if it is `=`.
        self.at += 1;
        self.take(|byte| !is_space(byte) && !matches!(byte, b'/' | b'>' | b'='));
        let name = &self.bytes[first..self.at];
        self.take(is_space);
        if self.bytes.get(self.at) != Some(&b'=') {
            return Some((name, &[]));
        }
        self.at += 1;
        self.take(is_space);
        let value = match self.bytes.get(self.at) {
            Some(quote @ (b'"' | b'\'')) => {
                self.at += 1;
                let value = self.take(|byte| byte != *quote);
                self.at = (self.at + 1).min(self.bytes.len());
                value
            }
            _ => self.take(|byte| !is_space(byte) && byte != b'>'),
        };
        Some((name, value))
    }
}

/// White space by the HTML standard.
pub(super) fn is_space(byte: u8) -> bool {
    matches!(byte, b' ' | b'\t' | b'\n' | b'\r' | b'\x0c')
}
