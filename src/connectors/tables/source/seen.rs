//! Hashes of the rows that have been pushed and may be read again.

use std::collections::BTreeMap;

use super::table::TableRow;
use dupflow_core::hash;

/// Seeds of the two halves of a hash.
const SEEDS: [u64; 2] = [0x7461_626c_6573, 0x726f_7773];

/// Pushed rows, by the hash of their id: their order, and the hash of their content. 48 bytes per row, plus
/// the tree.
#[derive(Debug, Default)]
pub(super) struct SeenRows {
    rows: BTreeMap<[u64; 2], (u64, [u64; 2])>,
    /// Number of rows after the last trim.
    left: usize,
}

/// Number of rows from which on old ones are removed.
const TRIM: usize = 1 << 16;

impl SeenRows {
    /// Stores a row; returns whether it is new or has changed.
    pub(super) fn is_new(&mut self, row: &TableRow, order: u64) -> bool {
        let id = row.id.as_deref().map_or_else(|bad| bad.reason().as_bytes().to_vec(), <[u8]>::to_vec);
        let content = (order, hashes(&content(row)));
        self.rows.insert(hashes(&id), content) != Some(content)
    }

    /// Removes a row.
    pub(super) fn forget(&mut self, id: &[u8]) {
        self.rows.remove(&hashes(id));
    }

    /// Removes rows below an order, if there are many.
    pub(super) fn trim(&mut self, before: u64) {
        if self.rows.len() >= TRIM + 2 * self.left {
            self.rows.retain(|_, (order, _)| *order >= before);
            self.left = self.rows.len();
        }
    }

    #[cfg(test)]
    pub(super) fn len(&self) -> usize {
        self.rows.len()
    }
}

fn hashes(bytes: &[u8]) -> [u64; 2] {
    SEEDS.map(|seed| hash::bytes(seed, bytes))
}

/// The content of a row; each part is preceded by its length.
fn content(row: &TableRow) -> Vec<u8> {
    let mut all = vec![u8::from(row.deleted)];
    all.extend_from_slice(&row.ts.map_or(u64::MAX, f64::to_bits).to_le_bytes());
    for part in std::iter::once(&row.text).chain(&row.fields) {
        let length = part.as_ref().map_or(u64::MAX, |part| part.len() as u64);
        all.extend_from_slice(&length.to_le_bytes());
        all.extend_from_slice(part.as_deref().unwrap_or_default());
    }
    all
}

/// A document that a table gives.
#[derive(Debug)]
struct GivenDocument {
    id: Box<[u8]>,
    order: u64,
    /// The last reading that has given it.
    reading: u64,
}

/// The documents that a table gives whose rows may change without a write, by the hashes of their ids.
#[derive(Debug, Default)]
pub(super) struct GivenDocuments {
    documents: BTreeMap<[u64; 2], GivenDocument>,
    /// The number of the present reading.
    reading: u64,
}

impl GivenDocuments {
    /// A reading of the whole table begins.
    pub(super) fn begin(&mut self) {
        self.reading += 1;
    }

    /// A row was read; `order`: that of a row which cannot be read is not known.
    pub(super) fn row(&mut self, row: &TableRow, order: Option<u64>) {
        let Ok(id) = &row.id else { return };
        let key = hashes(id);
        if row.deleted {
            self.documents.remove(&key);
        } else if let Some(document) = self.documents.get_mut(&key) {
            (document.order, document.reading) = (order.unwrap_or(document.order), self.reading);
        } else if let Some(order) = order.filter(|_| row.text.is_some()) {
            let document = GivenDocument { id: id.clone().into(), order, reading: self.reading };
            self.documents.insert(key, document);
        }
    }

    /// A reading of the whole table has ended: the documents that it has not given, by their orders, which
    /// are no longer given.
    pub(super) fn ended(&mut self) -> Vec<(u64, Box<[u8]>)> {
        let reading = self.reading;
        let mut ended = Vec::new();
        self.documents.retain(|_, document| {
            let is_given = document.reading == reading;
            if !is_given {
                ended.push((document.order, std::mem::take(&mut document.id)));
            }
            is_given
        });
        ended.sort_unstable();
        ended
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(id: &str, text: &str) -> TableRow {
        TableRow {
            order: None,
            id: Ok(id.as_bytes().to_vec()),
            text: Some(text.as_bytes().to_vec()),
            deleted: false,
            ts: None,
            fields: vec![None, Some(b"title".to_vec())],
        }
    }

    #[test]
    fn a_row_is_new_until_it_is_unchanged() {
        let mut seen = SeenRows::default();
        assert!(seen.is_new(&row("文", "書"), 7));
        assert!(!seen.is_new(&row("文", "書"), 7));
        assert!(seen.is_new(&row("文", "書"), 8), "another order");
        assert!(seen.is_new(&row("文", "書類"), 8), "another text of the same order");
        let moved = TableRow { fields: vec![Some(b"title".to_vec()), None], ..row("文", "書類") };
        assert!(seen.is_new(&moved, 8), "another field");
        assert!(seen.is_new(&TableRow { deleted: true, ..moved.clone() }, 8));
        assert!(seen.is_new(&TableRow { text: None, ..moved }, 8));
        assert_eq!(seen.len(), 1);
    }

    #[test]
    fn documents_end_that_are_no_longer_given() {
        let mut given = GivenDocuments::default();
        let deleted = TableRow { deleted: true, ..row("c", "") };
        let bad = TableRow { text: None, ..row("d", "") };
        given.begin();
        for (one, order) in [(row("文", "x"), 9), (row("b", "x"), 3), (row("c", "x"), 4), (row("d", "x"), 5)]
        {
            given.row(&one, Some(order));
        }
        assert_eq!(given.ended(), []);
        given.begin();
        given.row(&deleted, Some(10));
        given.row(&bad, None);
        let of = |id: &str| id.as_bytes().into();
        assert_eq!(given.ended(), [(3, of("b")), (9, of("文"))], "in order; a bad record is still there");
        given.begin();
        assert_eq!(given.ended(), [(5, of("d"))]);
    }

    #[test]
    fn old_rows_are_removed() {
        let mut seen = SeenRows::default();
        for n in 0..TRIM as u64 {
            assert!(seen.is_new(&row(&n.to_string(), ""), n));
            seen.trim(n.saturating_sub(10));
        }
        assert_eq!(seen.len(), 11);
        assert!(!seen.is_new(&row("65535", ""), 65_535));
    }
}
