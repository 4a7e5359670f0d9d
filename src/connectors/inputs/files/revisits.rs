//! Revisits of web archives, over the inputs of a run.
//!
//! A revisit refers to a page before it, in the same input or in an earlier one ([`PageMemory`]). A run that
//! continues does not read its first inputs again. If the first field that a revisit states refers to none of
//! the pages that it has read, the last of these inputs are read once more. So the answer is that of a run
//! that has read all of them.

use super::super::input::Input;
use super::super::open::{Opened, Opening};
use crate::formats::{ArchiveRole, BadRecord, FileFormat, FileRow, NextRow, PAGE_BYTES, PageMemory, WarcId};
use crate::intake::SourceError;

/// The pages to which revisits may refer.
#[derive(Debug, Default)]
pub(super) struct Revisits {
    /// The pages that this run has read after `earlier`.
    read: PageMemory,
    /// The present input, until it is among `since`.
    present: Option<Input>,
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
        self.present = Some(input.clone()).filter(may_have_pages);
    }

    /// An input is not read, since an earlier run has read it.
    pub(super) fn leave_out(&mut self, input: &Input) {
        if may_have_pages(input) {
            self.earlier.append(&mut self.since);
            self.earlier.push(input.clone());
            self.read = PageMemory::default();
        }
    }

    /// Holds a page.
    pub(super) fn hold(&mut self, row: &FileRow) {
        self.since.extend(self.present.take());
        self.read.hold(row, None);
    }

    /// Gives a revisit the text of its page; returns false if that is not found. `names` are those of further
    /// fields.
    ///
    /// # Errors
    /// If an earlier input cannot be read.
    pub(super) fn resolve(
        &mut self,
        row: &mut FileRow,
        names: &[String],
        opening: &Opening<'_>,
    ) -> Result<bool, SourceError> {
        if !self.earlier.is_empty() && !self.read.is_certain(row) {
            self.read_earlier(opening)?;
        }
        let is_resolved = self.read.resolve(row, names);
        self.unresolved += u64::from(!is_resolved);
        self.hold(row);
        Ok(is_resolved)
    }

    /// Reads the earlier inputs, from the last one on, until as many pages are held as may be.
    fn read_earlier(&mut self, opening: &Opening<'_>) -> Result<(), SourceError> {
        let mut bytes = self.read.bytes();
        let mut held = vec![std::mem::take(&mut self.read)];
        for input in std::mem::take(&mut self.earlier).iter().rev() {
            if bytes >= PAGE_BYTES {
                break;
            }
            let pages = pages(input, opening)?;
            bytes += pages.bytes();
            held.push(pages);
        }
        held.into_iter().rev().for_each(|pages| self.read.append(pages));
        Ok(())
    }

    /// The number of revisits of the present input whose page was not found.
    pub(super) fn end(&mut self) -> u64 {
        std::mem::take(&mut self.unresolved)
    }
}

/// Whether an input may be an archive with pages that revisits refer to, as far as the user says.
fn may_have_pages(input: &Input) -> bool {
    input.layout.warc_id == WarcId::Uri && input.layout.format.is_none_or(FileFormat::is_container)
}

/// The pages of an input that was read before; none if it is no archive.
fn pages(input: &Input, opening: &Opening<'_>) -> Result<PageMemory, SourceError> {
    let failed = |what: String| {
        let what =
            format!("it cannot be read again, and a page may be in it that a revisit refers to: {what}");
        SourceError::Failed { input: input.name(), what }
    };
    let mut pages = PageMemory::default();
    if let Opened::Rows(mut rows) = opening.open(input).map_err(|error| failed(error.to_string()))? {
        let mut row = FileRow::default();
        loop {
            match rows.next(&mut row) {
                Ok(NextRow::Row) if row.role == ArchiveRole::Other => break,
                Ok(NextRow::Row) => pages.hold(&row, None),
                Ok(NextRow::Skipped(_)) => {}
                Ok(NextRow::End) => break,
                // It could be read before.
                Err(damage) if damage.ends && damage.reason == BadRecord::Unreadable => {
                    return Err(failed(damage.cause.unwrap_or_default()));
                }
                Err(damage) if damage.ends => break,
                Err(_) => {}
            }
        }
    }
    Ok(pages)
}
