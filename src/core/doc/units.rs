//! Units below the document: its paragraphs, or its lines.
//!
//! A text -> its units in order, each with its range and the hash of its content. A unit is whole lines, with
//! the line end of each. A line of white space only is no part of a line's unit, and ends a paragraph, which
//! holds the blank lines behind it too: without it the others are as far apart as before.
//!
//! The id of a unit is that of its document, the hash of its content, and the number of units before it with
//! that content ([`DocId::of_unit`](super::DocId::of_unit)). So it is a function of the document, and an edit
//! of one unit leaves the ids of the others. Content is compared without the white space at its ends.
//!
//! ```
//! use dupflow_core::doc::units::{Split, units};
//!
//! let text = "One line\r\nand another.\r\n \r\n\r\nA new paragraph.";
//! let of = |split| units(text, split).into_iter().map(|unit| unit.text).collect::<Vec<_>>();
//! assert_eq!(of(Split::Paragraph), ["One line\r\nand another.", "A new paragraph."]);
//! assert_eq!(of(Split::Line), ["One line", "and another.", "A new paragraph."]);
//! let spans = units(text, Split::Paragraph).into_iter().map(|unit| (unit.span.from, unit.span.to));
//! assert_eq!(spans.collect::<Vec<_>>(), [(0, 29), (29, 45)]);
//! ```

use std::collections::BTreeMap;
use std::ops::Range;

use serde::{Deserialize, Serialize};

use crate::hash;

/// What a document is cut into.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Split {
    /// Paragraphs: a blank line ends one.
    Paragraph,
    /// Lines: a line feed ends one.
    Line,
}

impl Split {
    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Paragraph => "paragraph",
            Self::Line => "line",
        }
    }
}

/// How documents are cut into units, and which units are compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct UnitRules {
    /// What a document is cut into.
    pub split: Split,
    /// The fewest words of a unit that is compared, inclusive; shorter ones stay where they are.
    pub least_words: usize,
}

/// The place of a unit in its document.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitSpan {
    /// The number of units before it.
    pub place: u32,
    /// Its first byte in the text as it was read.
    pub from: u64,
    /// The byte behind it.
    pub to: u64,
}

/// What is known of a unit besides the facts of its document; of one that has ended only its sketch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct UnitFacts {
    /// Where it is.
    pub span: UnitSpan,
    /// The low half of its sketch's id. Units with equal halves are copies, except with probability 2^-64.
    pub sketch: u64,
}

/// A unit of a text.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Unit<'t> {
    /// Its content, without white space at its ends; never empty.
    pub text: &'t str,
    /// The hash of its content.
    pub content: u64,
    /// The number of units before it with the same content.
    pub occurrence: u32,
    /// Where it is.
    pub span: UnitSpan,
}

/// The units of a text, in order.
pub fn units(text: &str, split: Split) -> Vec<Unit<'_>> {
    let mut occurrences = BTreeMap::<u64, u32>::new();
    let unit = |(place, range): (usize, Range<usize>)| {
        let span = UnitSpan {
            place: u32::try_from(place).unwrap_or(u32::MAX),
            from: range.start as u64,
            to: range.end as u64,
        };
        let content_text = text[range].trim();
        let content = hash::bytes(0, content_text.as_bytes());
        let times = occurrences.entry(content).or_default();
        let occurrence = std::mem::replace(times, *times + 1);
        Unit { text: content_text, content, occurrence, span }
    };
    ranges(text, split).into_iter().enumerate().map(unit).collect()
}

/// The ranges of the units in bytes, in order.
fn ranges(text: &str, split: Split) -> Vec<Range<usize>> {
    let mut ranges: Vec<Range<usize>> = Vec::new();
    let (mut from, mut is_inside) = (0, false);
    for line in text.split_inclusive('\n') {
        let to = from + line.len();
        let has_content = !line.trim().is_empty();
        if has_content && !(is_inside && split == Split::Paragraph) {
            ranges.push(from..to);
        } else if let Some(last) = ranges.last_mut().filter(|_| split == Split::Paragraph) {
            last.end = to;
        }
        (from, is_inside) = (to, has_content);
    }
    ranges
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str, split: Split) -> Vec<&str> {
        ranges(text, split).into_iter().map(|range| &text[range]).collect()
    }

    #[test]
    fn paragraphs_hold_the_blank_lines_behind_them() {
        for (text, expected) in [
            ("", &[][..]),
            (" \n\t\n\u{3000}", &[]),
            ("a", &["a"]),
            ("a\n", &["a\n"]),
            ("\n\na\n\n", &["a\n\n"]),
            ("a\nb\n\nc", &["a\nb\n\n", "c"]),
            ("a\r\n\r\nb\r\n \u{a0}\r\n\r\nc\r\n", &["a\r\n\r\n", "b\r\n \u{a0}\r\n\r\n", "c\r\n"]),
            ("第一段。\n　\nสวัสดี\n\n  b", &["第一段。\n　\n", "สวัสดี\n\n", "  b"]),
        ] {
            assert_eq!(cut(text, Split::Paragraph), expected, "{text:?}");
        }
    }

    #[test]
    fn lines_hold_their_line_feed_only() {
        for (text, expected) in
            [("\n \n", &[][..]), ("a\n\n b \nc", &["a\n", " b \n", "c"]), ("a\rb\r\nc", &["a\rb\r\n", "c"])]
        {
            assert_eq!(cut(text, Split::Line), expected, "{text:?}");
        }
    }

    /// An edit of one unit leaves the others, wherever they move to.
    #[test]
    fn units_are_named_by_content_and_occurrence() {
        let named = |text: &'static str| -> Vec<(u64, u32)> {
            units(text, Split::Paragraph).iter().map(|unit| (unit.content, unit.occurrence)).collect()
        };
        let before = named("same\n\nother\n\n same\n\nlast");
        assert_eq!((before[0].0, before[2].1), (before[2].0, 1));
        assert_eq!(named("new\n\nsame\n\nsame\r\n\r\nlast\n")[1..], [before[0], before[2], before[3]]);
    }
}
