//! The pages of archives that were read last, and the one that a revisit refers to.
//!
//! A revisit also is the last visit of its address: later revisits may refer to it, and mean its page.
//!
//! Pages are held up to [`PAGE_BYTES`] of text, the last ones. So what is found follows from the records
//! before a revisit alone.

use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

use parking_lot::Mutex;

use super::rows::{ArchiveRole, FileRow, PageKeys, RowText};
use dupflow_core::hash::BuildIdentityHasher;

/// Bytes of texts of pages that are held: 64 MiB. A longer one is at most as long as a record.
pub(crate) const PAGE_BYTES: usize = 64 << 20;

/// Bytes that a page counts in addition to its text.
const EACH_BYTES: usize = 256;

/// Records of the pages to which revisits may refer, in this and in later archives.
pub(crate) type SharedPages = Arc<Mutex<PageMemory>>;

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
