//! Reads web archives: WARC, and the WET files derived from them.
//!
//! A file, plain or compressed record by record (gzip members; zstd frames, with or without a dictionary at
//! the beginning) -> its documents: the pages of `response` records with status 200, `resource` records, and
//! the texts of `conversion` records.
//!
//! A *unit* is a gzip member, a zstd frame, or a whole plain file. A record is accepted only after its unit
//! has been decompressed to the end without an error, unless more records follow in the unit. After a record
//! that cannot be read, the search looks for the next `WARC/` with a version and a header. After a unit that
//! cannot be decompressed, it looks for the next unit that begins with `WARC/`. So the records inside a
//! record of more than 64 MiB that is a WARC file itself are found.
//!
//! References: ISO 28500:2017 (WARC 1.1); IIPC, Zstandard compression for WARC files, version 1.0.

mod broken;
mod fields;
mod gzip;
mod http;
mod parts;
mod units;
mod window;

use std::fmt;
use std::io::BufRead;

use broken::Broken;
use fields::{Fields, charset, empty_line, lines, media_type};
use http::Message;
use units::{RECORD, Units};

use super::bad_record::{BadRecord, MAX_RECORD_BYTES};
use super::layout::WarcId;
use super::rows::{Columns, Damage, Next, Row, Rows, Text};
use crate::instant;
use dupflow_core::html;

pub(crate) use parts::{Archive, InParts};

/// Maximum length of the head of a record and of an HTTP message, in bytes, inclusive.
const MAX_HEAD: usize = 1 << 20;

/// Maximum number of bytes examined after a record.
const BEHIND: usize = 256;

/// Maximum number of bytes that are kept of a record without an end.
const KEPT: usize = 256;

/// A reader of a web archive.
pub(crate) struct Warc {
    units: Units,
    columns: Columns,
    id: WarcId,
    lost: Lost,
    /// A record that cannot be read, complete, if its length is known.
    kept: Vec<u8>,
    /// Whether the present record was found by a search within its unit.
    was_lost: bool,
    /// Where the present record begins.
    at: u64,
    cut: u64,
}

/// What has to be searched before the next record.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Lost {
    Nothing,
    /// The next record in the unit.
    Record,
    /// The next unit.
    Unit,
}

/// Where reading continues after a part of a file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Seam {
    /// A unit begins at this offset, or should.
    At(u64),
    /// At the first unit that a search from this offset finds.
    Lost(u64),
}

impl fmt::Debug for Warc {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Warc").field("at", &self.at).finish_non_exhaustive()
    }
}

impl Rows for Warc {
    fn next(&mut self, row: &mut Row) -> Result<Next, Damage> {
        *row = Row::default();
        self.find().and_then(|found| if found { self.record(row) } else { Ok(Next::End) }).map_err(|broken| {
            if self.kept.is_empty() {
                let rest = self.units.rest();
                self.kept = rest[..rest.len().min(KEPT)].to_vec();
            }
            Damage { head: std::mem::take(&mut self.kept), ..broken.damage(self.at) }
        })
    }

    fn cut(&self) -> u64 {
        self.cut
    }
}

impl Warc {
    /// The documents of a file, read as a stream of its stored bytes.
    pub(crate) fn new(file: Box<dyn BufRead + Send>, columns: &Columns, id: WarcId) -> Self {
        Self::of(Units::new(file), columns, id)
    }

    /// The documents in these units.
    fn of(units: Units, columns: &Columns, id: WarcId) -> Self {
        Self {
            units,
            columns: columns.clone(),
            id,
            lost: Lost::Nothing,
            kept: Vec::new(),
            was_lost: false,
            at: 0,
            cut: 0,
        }
    }

    /// Where the file continues after these units.
    fn seam(&self) -> Seam {
        let end = self.units.end();
        if self.lost == Lost::Unit { Seam::Lost(end) } else { Seam::At(end) }
    }

    /// Moves to the next record; false at the end of the file.
    fn find(&mut self) -> Result<bool, Broken> {
        self.was_lost = false;
        loop {
            match std::mem::replace(&mut self.lost, Lost::Nothing) {
                Lost::Nothing => {
                    let line_ends = line_ends(self.units.rest());
                    self.units.take(line_ends);
                    if !self.units.rest().is_empty() {
                        break;
                    }
                    if !self.more()? && !self.next_unit()? {
                        return Ok(false);
                    }
                }
                // Damage during the search belongs to the same record.
                Lost::Record => match self.find_in_unit() {
                    Ok(true) => {
                        self.was_lost = true;
                        break;
                    }
                    Ok(false) => {}
                    Err(broken) if broken.ends => return Err(broken),
                    Err(_) => self.lost = Lost::Unit,
                },
                Lost::Unit => {
                    if !self.units.search()? {
                        self.lost = Lost::Unit;
                        return Ok(false);
                    }
                }
            }
        }
        self.at = self.units.offset();
        self.units.mark();
        Ok(true)
    }

    /// Moves to the next record of the unit after the present one; false if there is none.
    fn find_in_unit(&mut self) -> Result<bool, Broken> {
        self.units.take(1);
        loop {
            match units::find(self.units.rest(), RECORD) {
                Ok(at) => self.units.take(at),
                Err(left) => {
                    self.units.take(self.units.rest().len() - left);
                    if !self.more()? {
                        return Ok(false);
                    }
                    continue;
                }
            }
            while self.units.rest().len() < FIRST && self.more()? {}
            if is_head(self.units.rest()) {
                return Ok(true);
            }
            self.units.take(1);
        }
    }

    fn more(&mut self) -> Result<bool, Broken> {
        self.units.more().inspect_err(|_| {
            self.lost = Lost::Unit;
            self.at = self.units.offset();
        })
    }

    fn next_unit(&mut self) -> Result<bool, Broken> {
        self.units.next_unit().inspect_err(|_| {
            self.lost = Lost::Unit;
            self.at = self.units.offset();
        })
    }

    /// Reads the present record, and moves after it.
    fn record(&mut self, row: &mut Row) -> Result<Next, Broken> {
        let (head, length) = self.measured().inspect_err(|_| {
            if self.lost == Lost::Nothing {
                self.lost = Lost::Record;
            }
        })?;
        let (head, rest) = self.units.rest().split_at(head);
        let record = Record { fields: Fields::of(head), block: &rest[..length] };
        let read = record.read(&self.columns, self.id, row);
        if read.is_err() {
            self.kept = [head, record.block].concat();
        }
        self.units.take(head.len() + length);
        let (next, is_cut) = read?;
        self.cut += u64::from(is_cut && next == Next::Row);
        Ok(next)
    }

    /// The lengths of the head and of the block of the present record. Returns when all of the record and a
    /// few bytes after it have been read.
    fn measured(&mut self) -> Result<(usize, usize), Broken> {
        let unreadable = |cause: &str| Broken::new(BadRecord::Unreadable, cause);
        let mut seen = 0;
        let head = loop {
            let rest = self.units.rest();
            let rest = &rest[..rest.len().min(MAX_HEAD)];
            if rest.len() >= RECORD.len() && !rest.starts_with(RECORD) {
                return Err(unreadable("no record begins here"));
            }
            // Without this check, each of many heads without an end would be read up to the end of the last
            // one.
            let stop = lines(rest, seen).find_map(|at| match empty_line(&rest[at..]) {
                Some(length) => Some(Ok(at + length)),
                None => (rest[at..].starts_with(RECORD) || self.was_lost && is_second_line(rest, at))
                    .then(|| Err(unreadable("another record begins in its head"))),
            });
            if let Some(stop) = stop {
                break stop?;
            }
            if rest.len() == MAX_HEAD {
                return Err(unreadable("a head longer than 1 MiB"));
            }
            // The pattern that ends a head may begin in these bytes, after a line end.
            seen = rest.len().saturating_sub(FIRST);
            if !self.more()? {
                return Err(Broken::new(BadRecord::Truncated, "it ends in the head of a record"));
            }
        };
        let rest = self.units.rest();
        if version(rest).is_none() {
            return Err(unreadable("a version that is none of WARC/0.17, 0.18, 1.0 and 1.1"));
        }
        let fields = Fields::of(&rest[..head]);
        let length = fields.text("content-length").and_then(|length| length.parse::<u64>().ok());
        let length = length.ok_or_else(|| unreadable("no Content-Length that is a number"))?;
        let length = usize::try_from(length).ok().filter(|length| *length <= MAX_RECORD_BYTES);
        let length = length.ok_or_else(|| Broken::new(BadRecord::TooLong, "by its Content-Length"))?;
        let end = head + length;
        while self.units.rest().len() < end {
            if !self.more()? {
                return Err(Broken::new(BadRecord::Truncated, "it ends in the block of a record"));
            }
        }
        // A record is followed by two line ends, and then by the next record or the end of the unit. One of
        // the two signs is enough.
        loop {
            let behind = &self.units.rest()[end..];
            let behind = &behind[..behind.len().min(BEHIND)];
            let line_ends = line_ends(behind);
            let lines = behind[..line_ends].iter().filter(|byte| **byte == b'\n').count();
            let next = &behind[line_ends..];
            let is_sound = lines >= 2 || next.is_empty() || next.starts_with(RECORD);
            let is_known = next.len() >= RECORD.len() || behind.len() == BEHIND;
            if is_known || !self.more()? {
                let wrong = || unreadable("its Content-Length is wrong");
                return is_sound.then_some((head, length)).ok_or_else(wrong);
            }
        }
    }
}

/// Number of bytes that show whether a record begins: `WARC/0.17`, a line end, `Content-`.
const FIRST: usize = RECORD.len() + 4 + 2 + 8;

/// Whether a record begins here: its version, and the first header.
fn is_head(bytes: &[u8]) -> bool {
    version(bytes).is_some_and(|rest| {
        let named = |name: &[u8]| rest.get(..name.len()).is_some_and(|here| here.eq_ignore_ascii_case(name));
        named(b"WARC-") || named(b"Content-")
    })
}

/// Whether the line at `at` is the second line of a record that the search would find, other than the one at
/// the beginning of these bytes.
fn is_second_line(bytes: &[u8], at: usize) -> bool {
    // The first line has between 9 (`WARC/1.0`, LF) and 11 bytes (`WARC/0.17`, CRLF).
    (RECORD.len() + 4..=RECORD.len() + 6).any(|line| at > line && is_head(&bytes[at - line..]))
}

/// The bytes after the line of a known version.
fn version(bytes: &[u8]) -> Option<&[u8]> {
    let rest = bytes.strip_prefix(RECORD)?;
    let rest =
        [b"0.17".as_slice(), b"0.18", b"1.0", b"1.1"].iter().find_map(|known| rest.strip_prefix(*known))?;
    rest.strip_prefix(b"\r\n").or_else(|| rest.strip_prefix(b"\n"))
}

fn line_ends(bytes: &[u8]) -> usize {
    bytes.iter().take_while(|byte| matches!(byte, b'\r' | b'\n')).count()
}

/// A complete record.
struct Record<'a> {
    fields: Fields<'a>,
    block: &'a [u8],
}

impl Record<'_> {
    /// Reads the document, if there is one, into `row`. Also returns whether the archive has only its
    /// beginning.
    fn read(&self, columns: &Columns, id: WarcId, row: &mut Row) -> Result<(Next, bool), Broken> {
        let skipped = |why| Ok((Next::Skipped(why), false));
        let is_marked_cut = self.fields.get("warc-truncated").is_some_and(|value| !value.is_empty());
        let own_type = self.fields.text("content-type");
        let kind = self.fields.text("warc-type").unwrap_or_default().to_ascii_lowercase();
        let is_http = own_type.is_some_and(|own| media_type(own).eq_ignore_ascii_case("application/http"))
            || self.block.starts_with(b"HTTP/");
        let mut is_cut = is_marked_cut;
        let mut message = None;
        let text = match kind.as_str() {
            "response" if is_http => {
                let message = &*message.insert(Message::of(self.block)?);
                if message.status != 200 {
                    return skipped("status");
                }
                let content_type = message.fields.text("content-type");
                let identified =
                    self.fields.text("warc-identified-payload-type").filter(|found| !found.is_empty());
                let content = Content::of_type(identified.or(content_type));
                if content == Some(Content::Other) {
                    return skipped("content_type");
                }
                let body = message.body()?;
                is_cut |= body.is_cut;
                content
                    .or_else(|| Content::of_bytes(&body.bytes))
                    .and_then(|content| content.text(&body.bytes, content_type.and_then(charset)))
            }
            "resource" | "conversion" | "response" => {
                // The block of a conversion is text, unless its type says otherwise.
                let other =
                    if kind == "conversion" { Some(Content::Text) } else { Content::of_bytes(self.block) };
                let content = Content::of_type(own_type).or(other);
                content.and_then(|content| content.text(self.block, own_type.and_then(charset)))
            }
            "revisit" => return skipped("revisit"),
            "request" => return skipped("request"),
            "metadata" => return skipped("metadata"),
            "warcinfo" => return skipped("warcinfo"),
            "continuation" => return skipped("continuation"),
            _ => return skipped("kind"),
        };
        let Some(text) = text else { return skipped("content_type") };
        row.text = Text::Is(text);
        let named = match id {
            WarcId::Record => self.fields.get("warc-record-id").map(bare_id),
            WarcId::Uri => self.address(),
        };
        row.id = named.filter(|named| !named.is_empty()).map(<[u8]>::to_vec);
        row.ts = self.fields.text("warc-date").and_then(instant::of_iso).filter(|ts| *ts >= 0.0);
        let field = |name: &String| {
            let value = match (name.as_str(), name.strip_prefix("http.")) {
                ("url", _) => self.address(),
                ("date", _) => self.fields.get("warc-date"),
                (_, Some(name)) => message.as_ref().and_then(|message| message.fields.get(name)),
                (name, None) => self.fields.get(name),
            };
            value.unwrap_or_default().to_vec()
        };
        row.fields = columns.fields.iter().map(field).collect();
        Ok((Next::Row, is_cut))
    }

    /// The address of the page, without the angle brackets that some writers add.
    fn address(&self) -> Option<&[u8]> {
        self.fields.get("warc-target-uri").map(unbracketed)
    }
}

fn unbracketed(value: &[u8]) -> &[u8] {
    value.strip_prefix(b"<").and_then(|inner| inner.strip_suffix(b">")).unwrap_or(value)
}

fn bare_id(value: &[u8]) -> &[u8] {
    let value = unbracketed(value);
    let prefix = b"urn:uuid:";
    let has_prefix = value.get(..prefix.len()).is_some_and(|begin| begin.eq_ignore_ascii_case(prefix));
    if has_prefix { &value[prefix.len()..] } else { value }
}

/// The kind of content of a block or body.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Content {
    Page,
    Text,
    Other,
}

impl Content {
    /// By a media type; `None` if there is none.
    fn of_type(named: Option<&str>) -> Option<Self> {
        let named = media_type(named?).to_ascii_lowercase();
        match named.as_str() {
            "text/html" | "application/xhtml+xml" => Some(Self::Page),
            "text/plain" => Some(Self::Text),
            "" => None,
            _ => Some(Self::Other),
        }
    }

    /// By the first bytes; `None` if they are inconclusive.
    fn of_bytes(bytes: &[u8]) -> Option<Self> {
        html::page(bytes).map(|_| Self::Page)
    }

    fn text(self, bytes: &[u8], charset: Option<&str>) -> Option<Vec<u8>> {
        match self {
            Self::Page => Some(html::marked(bytes, charset).into_owned().into_bytes()),
            // A text in UTF-8 is used as it is, even if another charset is stated.
            Self::Text if charset.is_none() || std::str::from_utf8(bytes).is_ok() => Some(bytes.to_vec()),
            Self::Text => Some(html::decode(bytes, charset).into_owned().into_bytes()),
            Self::Other => None,
        }
    }
}

#[cfg(test)]
#[path = "tests.rs"]
mod tests;
