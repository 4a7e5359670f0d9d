//! Revisits: records which say that an address has the content of an earlier record.
//!
//! The pages that were read last, and a revisit -> the page that it refers to. It is looked up by the id in
//! `WARC-Refers-To`; else by `WARC-Refers-To-Target-URI` and `WARC-Refers-To-Date`, if the digests do not
//! differ; else by `WARC-Payload-Digest`. An answer "not modified" without such fields refers to the last
//! page of its address.
//!
//! A revisit also is the last visit of its address: later revisits may refer to it, and mean its page.
//!
//! Pages are held up to [`PAGE_BYTES`] of text, the last ones. So what is found follows from the records
//! before a revisit alone.

use std::collections::{HashMap, VecDeque};

use super::super::rows::{ArchiveRole, FileRow, PageKeys, RowText};
use super::fields::{Fields, unbracketed};
use crate::instant;
use dupflow_core::hash::{self, BuildIdentityHasher};

/// Bytes of texts of pages that are held: 64 MiB. A longer one is at most as long as a record.
pub(crate) const PAGE_BYTES: usize = 64 << 20;

/// Bytes that a page counts in addition to its text.
const EACH_BYTES: usize = 256;

/// A page with these fields in its record.
pub(super) fn page(fields: &Fields<'_>, address: Option<&[u8]>) -> ArchiveRole {
    ArchiveRole::Page(own_keys(fields, address))
}

fn own_keys(fields: &Fields<'_>, address: Option<&[u8]>) -> PageKeys {
    PageKeys {
        id: key(1, fields.get("warc-record-id")),
        visit: visit(address, fields.text("warc-date")),
        digest: digest(fields),
        address: key(4, address),
    }
}

/// A revisit with these fields in its record.
pub(super) fn revisit(fields: &Fields<'_>, address: Option<&[u8]>, status: Option<u16>) -> ArchiveRole {
    let to = fields.get("warc-refers-to-target-uri").map(unbracketed);
    let is_unmodified = status == Some(304)
        || fields.get("warc-profile").is_some_and(|profile| profile.ends_with(b"server-not-modified"));
    let has_date = fields.get("warc-refers-to-date").is_some();
    let of = PageKeys {
        id: key(1, fields.get("warc-refers-to")),
        visit: visit(to.or(address), fields.text("warc-refers-to-date")),
        // The digest of an answer "not modified" is that of its own empty body.
        digest: if is_unmodified { 0 } else { digest(fields) },
        address: if is_unmodified && !has_date { key(4, to.or(address)) } else { 0 },
    };
    ArchiveRole::Revisit { of, own: PageKeys { digest: 0, ..own_keys(fields, address) } }
}

fn key(kind: u64, value: Option<&[u8]>) -> u64 {
    value.filter(|value| !value.is_empty()).map_or(0, |value| hash::bytes(kind, value))
}

fn visit(address: Option<&[u8]>, date: Option<&str>) -> u64 {
    let (Some(address), Some(second)) = (address, date.and_then(instant::of_iso)) else { return 0 };
    hash::bytes(hash::bytes(2, &second.floor().to_bits().to_le_bytes()), address)
}

fn digest(fields: &Fields<'_>) -> u64 {
    key(3, fields.get("warc-payload-digest").map(<[u8]>::to_ascii_lowercase).as_deref())
}

/// The pages that were read last.
#[derive(Debug, Default)]
pub(crate) struct PageMemory {
    visits: VecDeque<Visit>,
    /// The number of the first of them.
    first: u64,
    /// The number of the page that a key stands for.
    numbers: HashMap<u64, u64, BuildIdentityHasher>,
    bytes: usize,
}

#[derive(Debug)]
enum Visit {
    Page(KeptPage),
    /// A revisit of a page before it.
    Again {
        of: PageKeys,
        own: PageKeys,
    },
}

impl Visit {
    fn bytes(&self) -> usize {
        match self {
            Self::Page(page) => page.bytes,
            Self::Again { .. } => EACH_BYTES,
        }
    }

    /// The keys by which later revisits may refer to its page.
    fn keys(&self) -> [u64; 4] {
        let (Self::Page(KeptPage { keys, .. }) | Self::Again { own: keys, .. }) = self;
        [keys.id, keys.visit, keys.digest, keys.address]
    }
}

/// A page as it is held.
#[derive(Debug)]
pub(crate) struct KeptPage {
    keys: PageKeys,
    /// Its text, or the bytes of its record.
    pub(crate) content: Vec<u8>,
    /// The further fields.
    pub(crate) fields: Vec<Vec<u8>>,
    bytes: usize,
}

impl PageMemory {
    /// Holds a page, by its text or the bytes of its record; or notes a revisit.
    pub(crate) fn hold(&mut self, row: &FileRow, record: Option<&[u8]>) {
        let visit = match (row.role, &row.text) {
            (ArchiveRole::Revisit { of, own }, _) => Visit::Again { of, own },
            (ArchiveRole::Page(keys), RowText::Is(text)) => {
                let fields = row.fields.iter().map(Vec::len).sum::<usize>();
                Visit::Page(KeptPage {
                    keys,
                    content: record.unwrap_or(text).to_vec(),
                    fields: row.fields.clone(),
                    // The same whatever is held, so that the same pages are.
                    bytes: text.len() + fields + EACH_BYTES,
                })
            }
            _ => return,
        };
        self.push(visit);
    }

    fn push(&mut self, visit: Visit) {
        let number = self.first + self.visits.len() as u64;
        let page = match &visit {
            Visit::Page(_) => Some(number),
            Visit::Again { of, .. } => self.number(*of),
        };
        for key in visit.keys().into_iter().filter(|key| *key != 0) {
            // Of a revisit without its page, it is not known what its address has.
            match page {
                Some(page) => drop(self.numbers.insert(key, page)),
                None => drop(self.numbers.remove(&key)),
            }
        }
        self.bytes += visit.bytes();
        self.visits.push_back(visit);
        while self.bytes > PAGE_BYTES && self.visits.len() > 1 {
            let Some(oldest) = self.visits.pop_front() else { break };
            self.bytes -= oldest.bytes();
            for key in oldest.keys() {
                if self.numbers.get(&key).is_some_and(|at| *at <= self.first) {
                    self.numbers.remove(&key);
                }
            }
            self.first += 1;
        }
    }

    /// The page to which a revisit with these keys refers.
    pub(crate) fn find(&self, of: PageKeys) -> Option<&KeptPage> {
        self.at(self.number(of)?)
    }

    /// Whether pages before those that are held make no difference to a revisit.
    pub(crate) fn is_certain(&self, row: &FileRow) -> bool {
        let ArchiveRole::Revisit { of, .. } = row.role else { return true };
        self.numbers(of).next().is_none_or(|first| first.is_some())
    }

    fn number(&self, of: PageKeys) -> Option<u64> {
        self.numbers(of).flatten().next()
    }

    /// For each key that is stated, in their order: the page, if it is held. A visit of a page with another
    /// digest is left out.
    fn numbers(&self, of: PageKeys) -> impl Iterator<Item = Option<u64>> {
        let agrees = move |number: u64| {
            let digest = self.at(number).map_or(0, |page| page.keys.digest);
            digest == of.digest || digest == 0 || of.digest == 0
        };
        let stated = [of.id, of.visit, of.digest, of.address].into_iter().filter(|key| *key != 0);
        stated.filter_map(move |key| {
            let held = self.numbers.get(&key).copied().filter(|number| self.at(*number).is_some());
            (key != of.visit || held.is_none_or(agrees)).then_some(held)
        })
    }

    /// `None` if it is no longer held.
    fn at(&self, number: u64) -> Option<&KeptPage> {
        match self.visits.get(usize::try_from(number.checked_sub(self.first)?).ok()?)? {
            Visit::Page(page) => Some(page),
            Visit::Again { .. } => None,
        }
    }

    /// Gives a revisit the text of the page that it refers to; false if that is not held. `fields` are the
    /// names of further fields.
    pub(crate) fn resolve(&self, row: &mut FileRow, fields: &[String]) -> bool {
        let ArchiveRole::Revisit { of, .. } = row.role else { return true };
        let Some(page) = self.find(of) else { return false };
        row.text = RowText::Is(page.content.clone());
        complete_fields(row, page, fields);
        true
    }

    /// Bytes of the pages that are held.
    pub(crate) fn bytes(&self) -> usize {
        self.bytes
    }

    /// Adds what `later` holds, which was read after this.
    pub(crate) fn append(&mut self, later: Self) {
        later.visits.into_iter().for_each(|visit| self.push(visit));
    }
}

/// A revisit has headers of an HTTP message only where it states them itself.
fn complete_fields(row: &mut FileRow, page: &KeptPage, names: &[String]) {
    for ((own, of_page), name) in row.fields.iter_mut().zip(&page.fields).zip(names) {
        if own.is_empty() && name.starts_with("http.") {
            own.clone_from(of_page);
        }
    }
}

/// The record of a page as that of a revisit of it: with the id, the address and the date of the revisit.
pub(crate) fn revisited(page: &[u8], revisit: &[u8]) -> Vec<u8> {
    let own = Fields::parse(revisit);
    let head = super::fields::head_length(page).unwrap_or(page.len());
    let (head, block) = page.split_at(head);
    let mut record = Vec::with_capacity(page.len() + 100);
    let mut is_replaced = false;
    for line in head.split_inclusive(|byte| *byte == b'\n') {
        let is_folded = matches!(line.first(), Some(b' ' | b'\t'));
        let name = line.split(|byte| *byte == b':').next().unwrap_or_default().trim_ascii();
        let name = std::str::from_utf8(name).unwrap_or_default().to_ascii_lowercase();
        let changes = matches!(&*name, "warc-record-id" | "warc-target-uri" | "warc-date");
        if is_folded && is_replaced {
            continue;
        }
        is_replaced = false;
        match own.get(&name).filter(|_| changes && !is_folded) {
            Some(value) => {
                is_replaced = true;
                let end: &[u8] = if line.ends_with(b"\r\n") { b"\r\n" } else { b"\n" };
                let colon = line.iter().position(|byte| *byte == b':').map_or(0, |at| at + 1);
                record.extend([&line[..colon], b" ", value, end].concat());
            }
            None => record.extend_from_slice(line),
        }
    }
    record.extend_from_slice(block);
    record
}
