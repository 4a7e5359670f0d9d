//! Cuts ranges of bytes out of the text of a record, and leaves its other bytes as they are.
//!
//! Ranges are of the text as the reader of the format returns it: without escapes and quotes. Of a JSON
//! string what stays keeps its escapes. A cell of a table is written in quotes, as its dialect escapes them.

use std::io;
use std::ops::Range;

use serde::de::{DeserializeOwned, IgnoredAny};

use super::super::dialect::Dialect;
use super::super::layout::{SurrogateRule, named_path};
use super::super::nonstandard::StandardJson;

/// Where the text of a record is.
#[derive(Clone, Debug)]
pub(crate) enum TextPlace {
    /// In an object, by the names on the path to it.
    Member(Vec<String>),
    /// In a row, by the index of its cell.
    Cell(Dialect, usize),
}

impl TextPlace {
    /// In an object, by a path of names with points between them.
    pub(crate) fn member(path: &str) -> Self {
        Self::Member(named_path(path))
    }

    /// In the rows of a table with this header, by the name of its column.
    ///
    /// # Errors
    /// If the header has no such column.
    pub(crate) fn cell(header: &[u8], dialect: Dialect, name: &str) -> io::Result<Self> {
        let header = header.strip_prefix(b"\xef\xbb\xbf").unwrap_or(header);
        let cells = dialect.cells(header);
        let at = cells.iter().position(|(_, content)| content == name.as_bytes());
        at.map(|at| Self::Cell(dialect, at)).ok_or_else(not_there)
    }

    /// Cuts ascending ranges of its text out of a record.
    ///
    /// # Errors
    /// If the record has no text with these ranges.
    pub(crate) fn cut(&self, record: &mut Vec<u8>, ranges: &[Range<u64>]) -> io::Result<()> {
        match self {
            Self::Member(path) => cut_member(record, path, ranges),
            Self::Cell(dialect, at) => cut_cell(record, *dialect, *at, ranges),
        }
        .ok_or_else(not_there)
    }
}

/// A text without ascending ranges of its bytes.
///
/// # Errors
/// If it is no UTF-8 text with these ranges.
#[cfg(feature = "parquet")]
pub(crate) fn cut_text(text: &[u8], ranges: &[Range<u64>]) -> io::Result<Vec<u8>> {
    without(text, ranges).ok_or_else(not_there)
}

/// The record changed since the first pass.
fn not_there() -> io::Error {
    io::Error::other("a text has changed since it was read: it has no such parts")
}

/// A text without ascending ranges; `None` if it has not all of them.
fn without(text: &[u8], ranges: &[Range<u64>]) -> Option<Vec<u8>> {
    let text = std::str::from_utf8(text).ok()?;
    let (mut kept, mut at) = (Vec::with_capacity(text.len()), 0);
    for range in ranges {
        let [from, to] = [range.start, range.end].map(usize::try_from);
        let (from, to) = (from.ok()?, to.ok()?);
        kept.extend_from_slice(text.get(at..from)?.as_bytes());
        text.get(from..to)?;
        at = to;
    }
    kept.extend_from_slice(text.get(at..)?.as_bytes());
    Some(kept)
}

fn cut_member(record: &mut Vec<u8>, path: &[String], ranges: &[Range<u64>]) -> Option<()> {
    // In standard form each byte is in its place.
    let form = StandardJson::new(str::from_utf8(record).ok()?, SurrogateRule::Replace);
    let standard = form.map_or_else(|| record.clone(), |form| form.json.into_bytes());
    let mut inside = 0..standard.len();
    for name in path {
        inside = member(&standard, inside.start, name)?;
    }
    let content = std::str::from_utf8(record.get(inside.start + 1..inside.end - 1)?).ok()?;
    let text: String = serde_json::from_slice(standard.get(inside.clone())?).ok()?;
    let mut kept = String::with_capacity(content.len());
    // The offset in the text, and the next range.
    let (mut at, mut next) = (0, 0);
    let mut rest = content;
    while !rest.is_empty() {
        let (written, bytes) = character(rest, &text[at..])?;
        let (part, behind) = rest.split_at_checked(written)?;
        let offset = at as u64;
        while ranges.get(next).is_some_and(|range: &Range<u64>| range.end <= offset) {
            next += 1;
        }
        if !ranges.get(next).is_some_and(|range| range.contains(&offset)) {
            kept.push_str(part);
        }
        (rest, at) = (behind, at + bytes);
    }
    // Only for its checks.
    without(text.as_bytes(), ranges)?;
    record.splice(inside.start + 1..inside.end - 1, kept.into_bytes());
    Some(())
}

/// The bytes of the first character of a JSON string as it is written, and in its text.
fn character(written: &str, text: &str) -> Option<(usize, usize)> {
    let first = text.chars().next()?;
    let bytes = match written.as_bytes() {
        [b'\\', b'u', ..] if first.len_utf8() == 4 => 12,
        [b'\\', b'u', ..] => 6,
        [b'\\', ..] => 2,
        _ => first.len_utf8(),
    };
    Some((bytes, first.len_utf8()))
}

/// The value of the last member of this name of the object that begins at `at`, or after white space.
fn member(record: &[u8], at: usize, name: &str) -> Option<Range<usize>> {
    let blank =
        |from: usize| from + record[from..].iter().take_while(|byte| byte.is_ascii_whitespace()).count();
    let after = |place: usize, byte: u8| (record.get(place) == Some(&byte)).then_some(place + 1);
    let mut found = None;
    let mut at = after(blank(at), b'{')?;
    loop {
        at = blank(at);
        let (key, behind) = value::<String>(record, at)?;
        at = blank(after(blank(behind), b':')?);
        let (_, end) = value::<IgnoredAny>(record, at)?;
        if key == name {
            found = Some(at..end);
        }
        at = blank(end);
        match record.get(at)? {
            b',' => at += 1,
            _ => return found,
        }
    }
}

/// A JSON value, and the offset behind it.
fn value<T: DeserializeOwned>(record: &[u8], at: usize) -> Option<(T, usize)> {
    let mut values = serde_json::Deserializer::from_slice(record.get(at..)?).into_iter::<T>();
    let found = values.next()?.ok()?;
    Some((found, at + values.byte_offset()))
}

fn cut_cell(record: &mut Vec<u8>, dialect: Dialect, at: usize, ranges: &[Range<u64>]) -> Option<()> {
    let (place, content) = dialect.cells(record).into_iter().nth(at)?;
    let mut cell = Vec::new();
    dialect.push_quoted(&without(&content, ranges)?, &mut cell);
    record.splice(place, cell);
    Some(())
}

#[cfg(test)]
#[expect(clippy::single_range_in_vec_init, reason = "a list of one range")]
mod tests {
    use super::*;

    fn cut(place: &TextPlace, record: &str, ranges: &[Range<u64>]) -> Option<String> {
        let mut record = record.as_bytes().to_vec();
        place.cut(&mut record, ranges).ok().map(|()| String::from_utf8(record).unwrap())
    }

    #[test]
    fn a_member_keeps_its_escapes_and_the_others_their_bytes() {
        let text = TextPlace::member("text");
        let line =
            r#" { "text":"x", "a" : [1, {"text":0}],"text" : "one\u00e9\n\ttwo 日\ud83d\ude00\"three" }"#;
        let (one, two, three) = (0..6_u64, 6..18_u64, 18..24_u64);
        let of = |ranges: &[Range<u64>]| cut(&text, line, ranges).unwrap();
        assert_eq!(of(std::slice::from_ref(&two)), line.replace(r"\ttwo 日\ud83d\ude00", ""));
        assert_eq!(of(&[one.clone(), three]), line.replace(r"one\u00e9\n", "").replace(r#"\"three"#, ""));
        assert_eq!(of(&[0..24]), line.replace(r#"one\u00e9\n\ttwo 日\ud83d\ude00\"three"#, ""));
        assert_eq!(of(&[]), line);
        // Within a character, behind the end, and not in order.
        for wrong in [&[4..5][..], &[3..4], &[20..25], &[two, one]] {
            assert_eq!(cut(&text, line, wrong), None, "{wrong:?}");
        }
        let deep = TextPlace::member("meta.body");
        assert_eq!(
            cut(&deep, r#"{"meta":{"n":1,"body":"ab"}}"#, &[0..1]).unwrap(),
            r#"{"meta":{"n":1,"body":"b"}}"#
        );
        for wrong in [r#"{"meta":1}"#, r#"{"body":"ab"}"#, r#"{"meta":{"body":7}}"#, "[]", ""] {
            assert_eq!(cut(&deep, wrong, &[0..1]), None, "{wrong}");
        }
    }

    #[test]
    fn a_cell_is_written_in_quotes_and_the_others_as_they_are() {
        let comma = Dialect::from(b',');
        let text = TextPlace::cell("\u{feff}id,\"text\",n\r\n".as_bytes(), comma, "text").unwrap();
        let rows = [
            ("a,\"one\r\n\"\"two\"\"\",\" 7\"\r\n", 0..5, "a,\"\"\"two\"\"\",\" 7\"\r\n"),
            ("a,one,\n", 0..3, "a,\"\",\n"),
            ("\"a,b\",\"日\nb\",", 0..4, "\"a,b\",\"b\","),
        ];
        for (row, range, expected) in rows {
            assert_eq!(cut(&text, row, &[range]).as_deref(), Some(expected));
        }
        assert_eq!((cut(&text, "a\n", &[0..1]), cut(&text, "a,b,c\n", &[0..2])), (None, None));
        assert!(TextPlace::cell(b"id,body\n", comma, "text").is_err());
        let escaped = Dialect { escape: Some(b'\\'), ..Dialect::from(b'\t') };
        let last = TextPlace::cell(b"id\ttext\n", escaped, "text").unwrap();
        assert_eq!(cut(&last, "a\t\"x\ny\\\"\\\\\"\n", &[0..2]).unwrap(), "a\t\"y\\\"\\\\\"\n");
    }

    /// Every delimiter, escape, content and place of a cut: the row is read back with what was left. Where
    /// there is an escape, a reader that knows no doubled quotes reads the same.
    #[test]
    fn a_cut_cell_is_read_back_in_its_dialect() {
        const LEFT: [&str; 6] = ["plain", "a \"b\"", "\"", "c:\\d\\", "\\\"\\\\x,y;z\tw", "1\r\n2\n\"3\"\n"];
        const CUT: &str = "cut \"here\" \\ \n";
        for (delimiter, escape) in [b',', b'\t', b';']
            .into_iter()
            .flat_map(|delimiter| [None, Some(b'\\'), Some(b'|')].map(|escape| (delimiter, escape)))
        {
            let dialect = Dialect { escape, ..Dialect::from(delimiter) };
            let header = [&b"id"[..], &[delimiter], b"text"].concat();
            let place = TextPlace::cell(&header, dialect, "text").unwrap();
            let texts = |left: &str| {
                [CUT.to_owned(), format!("{CUT}{left}"), format!("{left}{CUT}"), format!("{left}{CUT}{left}")]
            };
            for text in LEFT.into_iter().flat_map(texts) {
                let at = text.find(CUT).unwrap();
                let kept = text.replace(CUT, "");
                let mut row = [&b"\"a\""[..], &[delimiter]].concat();
                dialect.push_cell(text.as_bytes(), &mut row);
                row.push(b'\n');
                place.cut(&mut row, &[at as u64..(at + CUT.len()) as u64]).unwrap();
                for knows_doubled in [true, escape.is_none()] {
                    let mut reader = csv::ReaderBuilder::new();
                    reader.delimiter(delimiter).escape(escape).double_quote(knows_doubled).has_headers(false);
                    let rows: Vec<_> =
                        reader.from_reader(&row[..]).into_records().map(Result::unwrap).collect();
                    assert_eq!(rows, [vec!["a", &kept]], "{dialect:?} {text:?} {}", row.escape_ascii());
                }
            }
        }
    }
}
