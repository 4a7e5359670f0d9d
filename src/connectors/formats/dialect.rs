//! How the cells of a table are written, and written again.

use std::ops::Range;

use csv_core::{ReadFieldResult, ReaderBuilder};
use memchr::{memchr, memchr2, memchr3, memmem};

/// How a table is written.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Dialect {
    /// The separator of cells.
    pub(crate) delimiter: u8,
    /// What encloses cells with separators and line ends. `None`: each line is a row.
    pub(crate) quote: Option<u8>,
    /// A byte that escapes a quote inside quotes, in addition to a doubled quote. Of a table that has one, a
    /// doubled quote is read and not written: other programs may not read it there. In a table without quotes
    /// it escapes separators and line ends, and begins the escapes of [`Self::push_unescaped`].
    pub(crate) escape: Option<u8>,
    /// Whether quotes that do not enclose a cell are an error, since the table may have none.
    pub(crate) is_examined: bool,
}

/// A doubled quote is the only escape.
impl From<u8> for Dialect {
    fn from(delimiter: u8) -> Self {
        Self { delimiter, quote: Some(b'"'), escape: None, is_examined: true }
    }
}

/// Whether a cell that is not quoted is NULL, as databases write it.
pub(crate) fn is_null(content: &[u8]) -> bool {
    matches!(content, b"\\N" | b"NULL")
}

/// What a row shows of its quotes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct QuoteFlaws {
    /// Whether text follows a closing quote, other than blanks.
    pub(crate) is_stray: bool,
    /// Number of line ends in a cell whose quote is no quote, as it seems: text follows the closing one, or
    /// the cell has the separators of further rows.
    pub(crate) swallowed: usize,
    /// Whether a cell on one line has what only quotes allow: a doubled quote, or the separator.
    pub(crate) is_written: bool,
}

impl Dialect {
    /// Appends a cell, in quotes if its content needs them.
    pub(crate) fn push_cell(self, content: &[u8], out: &mut Vec<u8>) {
        let is_special = |byte: &u8| {
            matches!(byte, b'\r' | b'\n')
                || *byte == self.delimiter
                || [self.quote, self.escape].contains(&Some(*byte))
        };
        if content.iter().any(is_special) || is_null(content) {
            self.push_quoted(content, out);
        } else {
            out.extend_from_slice(content);
        }
    }

    /// Appends a cell in quotes; in a table without quotes, with escapes.
    pub(crate) fn push_quoted(self, content: &[u8], out: &mut Vec<u8>) {
        let Some(quote) = self.quote else { return self.push_escaped(content, out) };
        out.push(quote);
        for byte in content {
            if *byte == quote || self.escape == Some(*byte) {
                out.push(self.escape.unwrap_or(quote));
            }
            out.push(*byte);
        }
        out.push(quote);
    }

    fn push_escaped(self, content: &[u8], out: &mut Vec<u8>) {
        let Some(escape) = self.escape else { return out.extend_from_slice(content) };
        if is_null(content) {
            out.push(escape);
        }
        for byte in content {
            let written = match *byte {
                b'\n' => b'n',
                b'\r' => b'r',
                b'\t' if self.delimiter == b'\t' => b't',
                special if special == escape || special == self.delimiter => special,
                plain => {
                    out.push(plain);
                    continue;
                }
            };
            out.extend([escape, written]);
        }
    }

    /// Whether a cell can have this content.
    pub(crate) fn holds(self, content: &[u8]) -> bool {
        self.quote.or(self.escape).is_some()
            || memchr3(self.delimiter, b'\r', b'\n', content).is_none() && !is_null(content)
    }

    /// Appends cells with a delimiter between any two, and for each whether it is NULL. A single empty one is
    /// in quotes, as it would be no row otherwise.
    pub(crate) fn push_row<'c>(self, cells: impl Iterator<Item = (&'c [u8], bool)>, out: &mut Vec<u8>) {
        let begin = out.len();
        for (place, (cell, is_null)) in cells.enumerate() {
            if place > 0 {
                out.push(self.delimiter);
            }
            if is_null {
                out.extend_from_slice(cell);
            } else {
                self.push_cell(cell, out);
            }
        }
        if out.len() == begin {
            self.push_quoted(&[], out);
        }
    }

    /// The cells of a row: where each is written, and its content.
    pub(crate) fn cells(self, row: &[u8]) -> Vec<(Range<usize>, Vec<u8>)> {
        let end = row.len() - row.iter().rev().take_while(|byte| matches!(byte, b'\r' | b'\n')).count();
        let mut found = Vec::new();
        let Some(quote) = self.quote else {
            self.each_unquoted(&row[..end], |place| {
                let mut content = Vec::new();
                self.push_unescaped(&row[place.clone()], &mut content);
                found.push((place, content));
            });
            return found;
        };
        let row = [&row[..end], b"\n"].concat();
        let mut reader =
            ReaderBuilder::new().delimiter(self.delimiter).quote(quote).escape(self.escape).build();
        let mut content = vec![0; row.len()];
        let (mut from, mut at, mut length) = (0, 0, 0);
        loop {
            let (result, read, written) = reader.read_field(&row[at..], &mut content[length..]);
            (at, length) = (at + read, length + written);
            let ReadFieldResult::Field { record_end } = result else { return found };
            found.push((from..at - 1, content[..length].to_vec()));
            if record_end {
                return found;
            }
            (from, length) = (at, 0);
        }
    }

    /// Calls `each` with the place of every cell of a row without quotes, and without its line end.
    pub(crate) fn each_unquoted(self, row: &[u8], mut each: impl FnMut(Range<usize>)) {
        let escape = self.escape.unwrap_or(self.delimiter);
        let (mut from, mut at) = (0, 0);
        while let Some(found) = row.get(at..).and_then(|rest| memchr2(self.delimiter, escape, rest)) {
            let place = at + found;
            if row[place] == self.delimiter {
                each(from..place);
                (from, at) = (place + 1, place + 1);
            } else {
                at = place + 2;
            }
        }
        each(from..row.len());
    }

    /// Appends the content of a cell without quotes. An escape and a letter are a character, as in `\t` and
    /// `\n`; with digits a byte, in octal or after `x` in hexadecimal; before any other byte an escape is
    /// left out. So ClickHouse, MySQL and PostgreSQL write texts. Returns whether there was an escape.
    pub(crate) fn push_unescaped(self, mut cell: &[u8], out: &mut Vec<u8>) -> bool {
        let Some(escape) = self.escape.filter(|_| !is_null(cell)) else {
            out.extend_from_slice(cell);
            return false;
        };
        let mut is_escaped = false;
        while let Some(place) = memchr(escape, cell) {
            out.extend_from_slice(&cell[..place]);
            cell = &cell[place + 1..];
            let (byte, read) = unescaped(cell).unwrap_or((escape, 0));
            out.push(byte);
            cell = &cell[read..];
            is_escaped = true;
        }
        out.extend_from_slice(cell);
        is_escaped
    }

    /// Looks at the quotes of a row as it is written, without blank lines before it. `columns`: their number,
    /// 0 if it does not matter whether cells hold rows. `quoted`: whether each cell is.
    pub(crate) fn examine(self, row: &[u8], columns: usize, quoted: &mut Vec<bool>) -> QuoteFlaws {
        let (mut flaws, mut at) = (QuoteFlaws::default(), 0);
        let Some(quote) = self.quote else { return flaws };
        quoted.clear();
        loop {
            let is_quoted = row.get(at) == Some(&quote);
            if is_quoted {
                let end = self.closing(row, at + 1, quote);
                let cell = &row[at + 1..end.min(row.len())];
                at = (end + 1).min(row.len());
                let rest = &row[at..];
                let behind = memchr3(self.delimiter, b'\r', b'\n', rest).unwrap_or(rest.len());
                let is_stray = !rest[..behind].trim_ascii().is_empty();
                flaws.is_stray |= is_stray;
                let ends = line_ends(cell);
                if ends > 0 && (is_stray || self.holds_rows(cell, quoted.len(), columns)) {
                    flaws.swallowed += ends;
                }
                let has_pair = || memmem::find(cell, &[quote; 2]).is_some();
                flaws.is_written |=
                    ends == 0 && !is_stray && (memchr(self.delimiter, cell).is_some() || has_pair());
            }
            quoted.push(is_quoted);
            match memchr3(self.delimiter, b'\r', b'\n', &row[at..]) {
                Some(end) if row[at + end] == self.delimiter => at += end + 1,
                _ => return flaws,
            }
        }
    }

    /// The offset of the quote that closes the cell whose content begins at `at`.
    fn closing(self, row: &[u8], mut at: usize, quote: u8) -> usize {
        let escape = self.escape.unwrap_or(quote);
        while let Some(found) = row.get(at..).and_then(|rest| memchr2(quote, escape, rest)) {
            at += found;
            let is_doubled = row.get(at + 1) == Some(&quote);
            if row[at] == quote && !is_doubled {
                return at;
            }
            at += 2;
        }
        row.len()
    }

    /// Whether the content of a quoted cell in this place has the separators that the rest of its row,
    /// further rows and the beginning of another one have. Texts have printable separators too: then there
    /// has to be a whole row, of three columns or more, and no blank or empty cell after a separator, as in a
    /// sentence, a list of pairs or a program. What has doubled quotes was written with quotes.
    fn holds_rows(self, cell: &[u8], place: usize, columns: usize) -> bool {
        let is_written = self.quote.is_some_and(|quote| memmem::find(cell, &[quote; 2]).is_some());
        let mut left = line_ends(cell);
        let is_separator =
            self.delimiter.is_ascii_control() || columns > 2 && left > 1 && self.separates(cell);
        if !is_separator || columns < 2 || place >= columns || is_written {
            return false;
        }
        let mut expected = columns - 1 - place;
        cell.split(|byte| *byte == b'\n').all(|line| {
            let found = line.iter().filter(|byte| **byte == self.delimiter).count();
            left = left.saturating_sub(1);
            std::mem::replace(&mut expected, if left == 0 { place } else { columns - 1 }) == found
        })
    }

    /// Whether a cell begins behind each separator of the content.
    fn separates(self, content: &[u8]) -> bool {
        memchr::memchr_iter(self.delimiter, content)
            .all(|at| content.get(at + 1).is_some_and(|next| !next.is_ascii_whitespace()))
    }
}

fn line_ends(cell: &[u8]) -> usize {
    memchr::memchr_iter(b'\n', cell).count()
}

/// The byte of an escape, and how much of `rest` it takes, which begins behind the escape.
fn unescaped(rest: &[u8]) -> Option<(u8, usize)> {
    let digits = |digits: &[u8], radix| u8::from_str_radix(str::from_utf8(digits).ok()?, radix).ok();
    Some(match *rest.first()? {
        b'a' => (7, 1),
        b'b' => (8, 1),
        b't' => (b'\t', 1),
        b'n' => (b'\n', 1),
        b'v' => (11, 1),
        b'f' => (12, 1),
        b'r' => (b'\r', 1),
        b'0'..=b'7' => {
            let most = rest.iter().take(3).take_while(|byte| matches!(byte, b'0'..=b'7')).count();
            let length = if digits(&rest[..most], 8).is_some() { most } else { most - 1 };
            (digits(&rest[..length], 8)?, length)
        }
        b'x' if let Some(byte) = rest.get(1..3).and_then(|two| digits(two, 16)) => (byte, 3),
        other => (other, 1),
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const TAB: Dialect = Dialect { delimiter: b'\t', quote: Some(b'"'), escape: None, is_examined: true };

    #[test]
    fn escapes_of_databases_are_characters() {
        let dialect = Dialect { quote: None, escape: Some(b'\\'), ..TAB };
        for (written, content) in [
            (r"a\tb\nc\rd\\e", "a\tb\nc\rd\\e"),
            (r"\'\q\x41\101\0x\7", "'qAA\0x\u{7}"),
            (r"\xg\", "xg\\"),
            (r"\\N", r"\N"),
            (r"\777", "\u{3f}7"),
        ] {
            let mut out = Vec::new();
            assert!(dialect.push_unescaped(written.as_bytes(), &mut out));
            assert_eq!(String::from_utf8(out).unwrap(), content, "{written}");
            let mut again = Vec::new();
            dialect.push_cell(content.as_bytes(), &mut again);
            let cells = dialect.cells(&[&again[..], b"\tx\n"].concat());
            assert_eq!((cells.len(), &*cells[0].1), (2, content.as_bytes()), "{written}");
        }
        assert!(!dialect.push_unescaped(br"\N", &mut Vec::new()));
    }

    #[test]
    fn quotes_that_are_none_are_seen() {
        let see = |row: &str, columns| TAB.examine(row.as_bytes(), columns, &mut Vec::new());
        let flaws = |is_stray, swallowed| QuoteFlaws { is_stray, swallowed, is_written: false };
        for (row, columns, expected) in [
            ("1\t\"Hello\n2\tsecond\n3\ta \"quoted\" word\n", 2, flaws(true, 2)),
            ("1\t\"Hello\n2\tsecond\"\n", 2, flaws(false, 1)),
            ("\"a\t1\nb\t2\nc\"\t3\n", 2, flaws(false, 2)),
            ("1\t\"x\" y\n", 2, flaws(true, 0)),
            // As writers of CSV write.
            ("1\t\"two\nlines\"\n", 2, flaws(false, 0)),
            ("1\t\"a \"\"b\"\" c\nd\" \n", 2, flaws(false, 0)),
            ("1\t\"three\n\tindented\tlines\n\there\"\t2\n", 3, flaws(false, 0)),
            ("\"one\ncolumn\"\n", 1, flaws(false, 0)),
            ("1\ta \"b\n", 2, flaws(false, 0)),
        ] {
            assert_eq!(see(row, columns), expected, "{row:?}");
        }
        for (row, is_written) in [
            ("1\t\"a\tb\"\n", true),
            ("1\t\"a \"\"b\"\"\"\n", true),
            ("1\t\"\"\t\"a b\"\n", false),
            ("1\t\"a\tb\" c\n", false),
            ("1\t\"a\n2\tb\"\n", false),
        ] {
            assert_eq!(see(row, 2).is_written, is_written, "{row:?}");
        }
        let comma = Dialect { delimiter: b',', ..TAB };
        let mut quoted = Vec::new();
        let prose = comma.examine(b"1,\"Hello\nDear all, thanks\",\\N\r\n", 3, &mut quoted);
        assert_eq!((prose, &*quoted), (flaws(false, 0), &[false, true, false][..]));
    }
}
