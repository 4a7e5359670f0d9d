//! Reads the records of an ARC file as those of a WARC file.

use std::collections::VecDeque;
use std::io::{self, BufRead, Read};

use super::super::storage::read_buffered;

/// Bytes of a line that begins a record, inclusive, and of the blank lines before it.
const MAX_LINE: u64 = 64 << 10;

/// Bytes of a block, inclusive, that is looked through before it is passed on: in a longer one a false length
/// is not found.
const MAX_BLOCK: u64 = 16 << 20;

/// Records of WARC, made of those of ARC.
///
/// A record states its length, and nothing else says where it ends but the line of the next one. So a block
/// is held until it is known what follows it. If that is no record, and the block has the line of one, the
/// length is too large: the block ends before that line, and the record is marked as truncated.
pub(super) struct ArcAsWarc<R> {
    bytes: R,
    /// What was read beyond a record: it comes before `bytes`.
    ahead: VecDeque<u8>,
    /// What is returned next, from `at` on.
    out: Vec<u8>,
    at: usize,
    /// Bytes of the present block that were not returned yet, of a block that is not held.
    left: u64,
    /// Whether a record is open, which ends with two line ends.
    is_open: bool,
}

impl<R: BufRead> ArcAsWarc<R> {
    pub(super) fn new(bytes: R) -> Self {
        Self { bytes, ahead: VecDeque::new(), out: Vec::new(), at: 0, left: 0, is_open: false }
    }

    /// Reads the next record, or a line that is none, which is passed on; nothing at the end.
    fn record(&mut self) -> io::Result<()> {
        self.out.clear();
        self.at = 0;
        let line = self.line()?;
        let Some(head) = ArcLine::parse(line.trim_ascii()) else {
            self.out = line;
            return Ok(());
        };
        if head.length > MAX_BLOCK {
            self.out = head.of_warc(head.length, false);
            (self.left, self.is_open) = (head.length, true);
            return Ok(());
        }
        let mut block = Vec::new();
        self.take(head.length).read_to_end(&mut block)?;
        let (length, is_whole) = (block.len(), block.len() as u64 == head.length);
        let follows = self.line()?;
        let is_line = block.ends_with(b"\n") || follows.first().is_none_or(u8::is_ascii_whitespace);
        let is_record = follows.is_empty() || ArcLine::parse(follows.trim_ascii()).is_some();
        block.extend_from_slice(&follows);
        let next = if is_whole && is_line && is_record { None } else { begin_of_record(&block) };
        let (end, stated) = match next {
            Some(next) => {
                let end = block[..next].trim_ascii_end().len();
                (end, end as u64)
            }
            None => (length, head.length),
        };
        block.drain(next.unwrap_or(length)..).rev().for_each(|byte| self.ahead.push_front(byte));
        self.out = head.of_warc(stated, next.is_some());
        self.out.extend_from_slice(&block[..end]);
        self.is_open = is_whole || next.is_some();
        Ok(())
    }

    /// Reads up to the end of a line that is not blank; empty at the end.
    fn line(&mut self) -> io::Result<Vec<u8>> {
        let mut line = Vec::new();
        while line.trim_ascii().is_empty() {
            if line.len() as u64 > MAX_LINE {
                line.clear();
            }
            let mut bytes = Ahead(self).take(MAX_LINE);
            if bytes.read_until(b'\n', &mut line)? == 0 {
                line.clear();
                break;
            }
        }
        Ok(line)
    }

    fn take(&mut self, bytes: u64) -> io::Take<Ahead<'_, R>> {
        Ahead(self).take(bytes)
    }
}

/// Where the line of a record begins in a block, behind its first line.
fn begin_of_record(block: &[u8]) -> Option<usize> {
    let line_ends = block.iter().enumerate().filter(|(_, byte)| **byte == b'\n');
    line_ends.map(|(at, _)| at + 1).find(|begin| {
        let line = &block[*begin..];
        let end = line.iter().position(|byte| *byte == b'\n').unwrap_or(line.len());
        end as u64 <= MAX_LINE && ArcLine::parse(line[..end].trim_ascii()).is_some()
    })
}

/// The bytes that were not read yet.
struct Ahead<'a, R>(&'a mut ArcAsWarc<R>);

impl<R: BufRead> Read for Ahead<'_, R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, out)
    }
}

impl<R: BufRead> BufRead for Ahead<'_, R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        let ArcAsWarc { bytes, ahead, .. } = &mut *self.0;
        if ahead.is_empty() { bytes.fill_buf() } else { Ok(ahead.as_slices().0) }
    }

    fn consume(&mut self, count: usize) {
        let ArcAsWarc { bytes, ahead, .. } = &mut *self.0;
        if ahead.is_empty() { bytes.consume(count) } else { drop(ahead.drain(..count)) }
    }
}

/// The line that begins a record.
#[derive(Debug, PartialEq)]
struct ArcLine<'l> {
    address: &'l [u8],
    /// As WARC has it.
    date: String,
    media_type: &'l [u8],
    length: u64,
}

impl<'l> ArcLine<'l> {
    /// The head of the record as WARC has it.
    fn of_warc(&self, length: u64, is_cut: bool) -> Vec<u8> {
        let Self { address, date, media_type, .. } = self;
        // The block of a page is the answer of its server: `warc` looks at its first bytes.
        let kind = if address.starts_with(b"filedesc:") { "warcinfo" } else { "response" };
        let cut = if is_cut { "WARC-Truncated: length\r\n" } else { "" };
        let begin = format!("WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Date: {date}\r\n{cut}WARC-Target-URI: ");
        let end = format!("\r\nContent-Length: {length}\r\n\r\n");
        [begin.as_bytes(), address, b"\r\nContent-Type: ", media_type, end.as_bytes()].concat()
    }

    /// By the number of its fields, which are counted from the right.
    fn parse(line: &'l [u8]) -> Option<Self> {
        Self::of_fields(line, 5).or_else(|| Self::of_fields(line, 10))
    }

    fn of_fields(line: &'l [u8], fields: usize) -> Option<Self> {
        let mut parts = line.rsplitn(fields, |byte| *byte == b' ');
        let length = std::str::from_utf8(parts.next()?).ok()?.parse().ok()?;
        let mut middle: Vec<_> = parts.by_ref().take(fields - 2).collect();
        let address = parts.next().filter(|address| address.contains(&b':'))?;
        middle.reverse();
        let media_type = *middle.get(2)?;
        // 14 digits, or 12 without seconds.
        let digits = std::str::from_utf8(middle.get(1)?).ok()?;
        let are_digits = digits.bytes().all(|byte| byte.is_ascii_digit());
        let part = |from: usize, to: usize| digits.get(from..to);
        let (year, month, day, hour, minute) =
            (part(0, 4)?, part(4, 6)?, part(6, 8)?, part(8, 10)?, part(10, 12)?);
        let second = part(12, 14).unwrap_or("00");
        let is_date = are_digits && matches!(digits.len(), 12 | 14);
        let date = format!("{year}-{month}-{day}T{hour}:{minute}:{second}Z");
        is_date.then_some(Self { address, date, media_type, length })
    }
}

impl<R: BufRead> Read for ArcAsWarc<R> {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        read_buffered(self, out)
    }
}

impl<R: BufRead> BufRead for ArcAsWarc<R> {
    fn fill_buf(&mut self) -> io::Result<&[u8]> {
        if self.at == self.out.len() && self.left == 0 {
            if std::mem::take(&mut self.is_open) {
                (self.out, self.at) = (b"\r\n\r\n".to_vec(), 0);
            } else {
                self.record()?;
            }
        }
        if self.at < self.out.len() {
            return Ok(&self.out[self.at..]);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        let ArcAsWarc { bytes, ahead, .. } = self;
        let next = if ahead.is_empty() { bytes.fill_buf()? } else { ahead.as_slices().0 };
        Ok(&next[..next.len().min(most)])
    }

    fn consume(&mut self, bytes: usize) {
        if self.at < self.out.len() {
            self.at += bytes;
        } else {
            self.left -= bytes as u64;
            Ahead(self).consume(bytes);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::super::layout::WarcId;
    use super::super::super::samples::{ReadResult, columns};
    use super::super::super::warc::Warc;
    use super::*;

    fn record(head: &str, block: &str) -> String {
        format!("{head} {}\n{block}\n", block.len())
    }

    fn page(text: &str) -> String {
        format!("HTTP/1.0 200 OK\r\nContent-Type: text/html\r\n\r\n<html>{text}")
    }

    fn archive(of: &[String]) -> String {
        let about = "1 0 InternetArchive\nURL IP-address Archive-date Content-type Archive-length\n";
        record("filedesc://old.arc 0.0.0.0 20010203040506 text/plain", about) + &of.concat()
    }

    fn read(archive: &str) -> ReadResult {
        let found = [1, 5, 8192].map(|room| {
            let bytes = io::BufReader::with_capacity(room, io::Cursor::new(archive.to_owned()));
            let warc = Warc::new(Box::new(ArcAsWarc::new(bytes)), &columns(&["url"]), WarcId::Uri);
            ReadResult::read_all(warc, 1000)
        });
        let [first, second, third] = found;
        assert_eq!((&first, &first), (&second, &third));
        first
    }

    #[test]
    fn pages_have_their_addresses_and_dates() {
        let found = read(&archive(&[
            record("http://a.example/ 1.2.3.4 20010203040506 text/html", &page("one")),
            record("dns:a.example 1.2.3.4 20010203040506 text/dns", "a.example. 1 IN A 1.2.3.4"),
            // An address with a blank, and a line of version 2.
            record("http://b.example/a b 1.2.3.4 200102030405 text/html", &page("zwei 日本")),
            record("http://c.example/ 1.2.3.4 20010203040506 text/html 200 abc - 77 old.arc", &page("3")),
            record("http://d.example/ 1.2.3.4 20010203040506 no-type", "HTTP/1.0 404 Not Found\r\n\r\n"),
            record("http://e.example/ 1.2.3.4 20010203040506 text/html", ""),
        ]));
        // An answer of no bytes is a page without a text.
        let ids = ["http://a.example/", "http://b.example/a b", "http://c.example/", "http://e.example/"];
        assert_eq!(found.ids(), ids);
        assert!(found.texts()[1].ends_with("zwei 日本"));
        assert_eq!(found.rows[0].ts, Some(981_173_106.0));
        assert_eq!(found.rows[1].ts, Some(981_173_100.0));
        assert_eq!(found.skipped, ["warcinfo", "content_type", "status"]);
        assert_eq!(found.damages, []);
    }

    /// A length that is too large ends before the next record: no two pages become one.
    #[test]
    fn a_length_that_is_too_large_takes_no_other_record() {
        let record = |letter: &str| {
            record(&format!("http://{letter}.example/ 1.2.3.4 20010203040506 text/html"), &page(letter))
        };
        let length = page("a").len();
        for more in [2, 9, 40, length + 60, 100_000] {
            let first =
                record("a").replacen(&format!("html {length}"), &format!("html {}", length + more), 1);
            let found = read(&archive(&[first, record("b"), record("c")]));
            let ids = ["http://a.example/", "http://b.example/", "http://c.example/"];
            assert_eq!(found.ids(), ids, "{more}: {found:?}");
            assert_eq!((found.texts()[0].ends_with('a'), found.cut), (true, 1), "{more}");
        }
    }

    /// A false length costs the record, and no other one: the next line of a record is looked for.
    #[test]
    fn a_false_length_is_a_bad_record() {
        let whole = record("http://a.example/ 1.2.3.4 20010203040506 text/html", &page("one"));
        let after = record("http://b.example/ 1.2.3.4 20010203040506 text/html", &page("two"));
        let length = page("one").len();
        for stated in [length - 7, length - 1, length + 1] {
            let head = format!("text/html {length}");
            let found =
                read(&archive(&[whole.replace(&head, &format!("text/html {stated}")), after.clone()]));
            let is_shown = found.ids().contains(&"http://b.example/") || !found.damages.is_empty();
            assert!(is_shown, "{stated}: {found:?}");
        }
        let cut = archive(&[whole.clone(), after.clone()]);
        let found = read(&cut[..cut.len() - 9]);
        assert_eq!((found.ids(), found.damages.len()), (vec!["http://a.example/"], 1));
    }
}
