//! Revisits of web archives, over the inputs of a run.
//!
//! A revisit refers to a page before it, in the same input or in an earlier one ([`PageMemory`]). A run that
//! continues does not read its first inputs again. If a revisit refers to none of the pages that it has read,
//! the last of these inputs are read once more. So the answer is that of a run that has read all of them.

use super::super::input::Input;
use super::super::open::{Opened, Opening};
use crate::formats::{ArchiveRole, FileRow, NextRow, PAGE_BYTES, PageMemory};

/// The pages to which revisits may refer.
#[derive(Debug, Default)]
pub(super) struct Revisits {
    /// The pages that this run has read after `earlier`.
    read: PageMemory,
    /// The inputs of `read`.
    since: Vec<Input>,
    /// Inputs before these, in order, that have to be read if a page is missing.
    earlier: Vec<Input>,
    /// Revisits of the present input whose page was not found.
    unresolved: u64,
}

impl Revisits {
    /// An input is read.
    pub(super) fn begin(&mut self, input: &Input) {
        self.since.push(input.clone());
    }

    /// An input is not read, since an earlier run has read it.
    pub(super) fn leave_out(&mut self, input: &Input) {
        self.earlier.append(&mut self.since);
        self.earlier.push(input.clone());
        self.read = PageMemory::default();
    }

    /// Holds a page.
    pub(super) fn hold(&mut self, row: &FileRow) {
        self.read.hold(row, None);
    }

    /// Gives a revisit the text of its page; returns false if that is not found. `names` are those of further
    /// fields.
    pub(super) fn resolve(&mut self, row: &mut FileRow, names: &[String], opening: &Opening<'_>) -> bool {
        if !self.read.resolve(row, names) {
            self.read_earlier(opening);
        }
        let is_resolved = self.read.resolve(row, names);
        self.unresolved += u64::from(!is_resolved);
        self.read.hold(row, None);
        is_resolved
    }

    /// Reads the earlier inputs, from the last one on, until as many pages are held as may be.
    fn read_earlier(&mut self, opening: &Opening<'_>) {
        let mut held = Vec::new();
        let mut last = std::mem::take(&mut self.read);
        let mut bytes = last.bytes();
        for input in std::mem::take(&mut self.earlier).iter().rev() {
            if bytes >= PAGE_BYTES {
                break;
            }
            let mut pages = PageMemory::default();
            if let Ok(Opened::Rows(mut rows)) = opening.open(input) {
                let mut row = FileRow::default();
                loop {
                    match rows.next(&mut row) {
                        // An input of another format has no pages.
                        Ok(NextRow::Row) if row.role == ArchiveRole::Other => break,
                        Ok(NextRow::Row) => pages.hold(&row, None),
                        Ok(NextRow::Skipped(_)) => {}
                        Ok(NextRow::End) => break,
                        Err(damage) if damage.ends => break,
                        Err(_) => {}
                    }
                }
            }
            bytes += pages.bytes();
            held.push(std::mem::replace(&mut last, pages));
        }
        held.push(last);
        for pages in held.into_iter().rev() {
            self.read.append(pages);
        }
    }

    /// The number of revisits of the present input whose page was not found.
    pub(super) fn end(&mut self) -> u64 {
        std::mem::take(&mut self.unresolved)
    }
}
