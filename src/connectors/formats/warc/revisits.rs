//! Revisits: records which say that an address has the content of an earlier record.
//!
//! A revisit refers to its page by the id in `WARC-Refers-To`; else by `WARC-Refers-To-Target-URI` and
//! `WARC-Refers-To-Date`, if the digests do not differ; else by `WARC-Payload-Digest`. An answer "not
//! modified" without such fields refers to the last page of its address.

use super::super::rows::{ArchiveRole, PageKeys};
use super::fields::{Fields, unbracketed};
use crate::instant;
use dupflow_core::hash;

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
