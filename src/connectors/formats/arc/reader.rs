//! Reads the records of an ARC file as those of a WARC file.

use std::io::{self, BufRead, Read};

use super::super::storage::read_buffered;

/// Bytes of a line that begins a record, inclusive, and of the blank lines before it.
const MAX_LINE: u64 = 64 << 10;

/// Records of WARC, made of those of ARC.
pub(super) struct ArcAsWarc<R> {
    bytes: R,
    /// What is returned next, from `at` on.
    out: Vec<u8>,
    at: usize,
    /// Bytes of the present block that were not returned yet.
    left: u64,
    /// Whether a record is open, which ends with two line ends.
    is_open: bool,
}

impl<R: BufRead> ArcAsWarc<R> {
    pub(super) fn new(bytes: R) -> Self {
        Self { bytes, out: Vec::new(), at: 0, left: 0, is_open: false }
    }

    /// Reads the line of the next record, or another one, which is passed on; nothing at the end.
    fn line(&mut self) -> io::Result<()> {
        self.out.clear();
        self.at = 0;
        let mut line = Vec::new();
        while line.trim_ascii().is_empty() {
            line.clear();
            if (&mut self.bytes).take(MAX_LINE).read_until(b'\n', &mut line)? == 0 {
                return Ok(());
            }
        }
        match ArcLine::parse(line.trim_ascii()) {
            Some(ArcLine { address, date, media_type, length }) => {
                // The block of a page is the answer of its server: `warc` looks at its first bytes.
                let kind = if address.starts_with(b"filedesc:") { "warcinfo" } else { "response" };
                let head = format!("WARC/1.0\r\nWARC-Type: {kind}\r\nWARC-Date: {date}\r\n");
                let address = [b"WARC-Target-URI: ", address].concat();
                let media_type = [b"\r\nContent-Type: ", media_type].concat();
                self.out = [head.as_bytes(), &address, &media_type].concat();
                self.out.extend(format!("\r\nContent-Length: {length}\r\n\r\n").bytes());
                (self.left, self.is_open) = (length, true);
            }
            None => self.out = line,
        }
        Ok(())
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
                self.line()?;
            }
        }
        if self.at < self.out.len() {
            return Ok(&self.out[self.at..]);
        }
        let most = usize::try_from(self.left).unwrap_or(usize::MAX);
        self.bytes.fill_buf().map(|bytes| &bytes[..bytes.len().min(most)])
    }

    fn consume(&mut self, bytes: usize) {
        if self.at < self.out.len() {
            self.at += bytes;
        } else {
            self.bytes.consume(bytes);
            self.left -= bytes as u64;
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
