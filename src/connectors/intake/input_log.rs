//! The list of inputs of a run: filled by the reader, read by the committer.
//!
//! The reader notes where each span ends, and before each batch how far it has read. For a commit the list is
//! cut at the position that the commit covers. Spans that the state has stored leave it.

use std::collections::VecDeque;

use parking_lot::Mutex;

use crate::mark::{InputList, InputSpan};
use dupflow_core::hash;

/// The list of inputs of a run, shared by the reader and the committer.
#[derive(Debug, Default)]
pub struct InputLog(Mutex<ListState>);

#[derive(Debug, Default)]
struct ListState {
    /// Number of spans that the state has stored, and their hash.
    stored: u64,
    digest: u64,
    /// The later spans.
    spans: VecDeque<InputSpan>,
    /// The input that is being read.
    open: Option<InputSpan>,
    /// The position up to which the spans of an earlier run go: the reader adds none before it.
    known: u64,
    /// The position up to which the list is known.
    read: u64,
    notes: VecDeque<ReadNote>,
    /// The files begun so far.
    files: FileOrder,
}

/// How an input ended.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct SpanEnd {
    /// It was damaged or cut off in its last record.
    pub(crate) is_broken: bool,
    /// Its last record is a line without a line end.
    pub(crate) is_unended: bool,
}

/// How far the reader was when it pushed a batch.
#[derive(Clone, Copy, Debug, Default)]
struct ReadNote {
    /// The position after the batch.
    next: u64,
    files: FileOrder,
    /// Of lines that are not compressed.
    read: Option<ReadBytes>,
}

/// The bytes of lines that were read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct ReadBytes {
    /// Their number.
    pub(crate) bytes: u64,
    /// How many of the last are hashed, and their hash.
    pub(crate) end: (u64, u64),
}

/// The files that were begun, in their order.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct FileOrder {
    /// Their number.
    pub(crate) files: u64,
    /// Hash of their names; of documents also of size and time.
    pub(crate) order: u64,
    /// The sum of the hashes of the names, in whatever order they were begun.
    pub(crate) names: u64,
    /// Whether some are documents.
    pub(crate) has_documents: bool,
}

impl FileOrder {
    /// Adds a file of records.
    pub(crate) fn add(&mut self, name: &str) {
        self.files += 1;
        self.order = hash::bytes(self.order, name.as_bytes());
        self.names = self.names.wrapping_add(hash::bytes(0, name.as_bytes()));
    }

    /// Adds a file that is a document, by its size and when it was modified.
    pub(crate) fn add_document(&mut self, name: &str, bytes: u64, modified: Option<u64>) {
        self.add(name);
        for number in [bytes, modified.unwrap_or(0)] {
            self.order = hash::bytes(self.order, &number.to_le_bytes());
        }
        self.has_documents = true;
    }
}

impl InputLog {
    /// Begins with what an earlier run has read: `spans` up to the position `known`, of which the state has
    /// stored the first `stored`. `begin`: the position where the run begins, with the files before it.
    pub(crate) fn continue_from(
        &self,
        (spans, stored): (&[InputSpan], u64),
        known: u64,
        (begin, files): (u64, FileOrder),
    ) {
        let in_state = usize::try_from(stored).unwrap_or(usize::MAX).min(spans.len());
        *self.0.lock() = ListState {
            stored,
            digest: crate::mark::digest(&spans[..in_state]),
            spans: spans[in_state..].iter().cloned().collect(),
            open: None,
            known,
            read: begin,
            notes: [ReadNote { next: begin, files, read: None }].into(),
            files: FileOrder::default(),
        };
    }

    /// The reader does not begin these files again, since what an earlier run has read is known by its spans.
    pub(crate) fn has_begun(&self, files: FileOrder) {
        self.0.lock().files = files;
    }

    /// The reader begins a file of records, as it was found.
    pub(crate) fn begin(&self, span: InputSpan) {
        let mut list = self.0.lock();
        if span.skipped == 0 {
            list.files.add(&span.name);
        }
        list.open = Some(span);
    }

    /// The reader begins a file that is a document.
    pub(crate) fn document(&self, name: &str, bytes: u64, modified: Option<u64>) {
        self.0.lock().files.add_document(name, bytes, modified);
    }

    /// The present input names its records.
    pub(crate) fn is_numbered(&self) {
        if let Some(span) = &mut self.0.lock().open {
            span.is_numbered = true;
        }
    }

    /// The reader pushes a batch that ends before the position `next`. `read`: of lines that are not
    /// compressed, the bytes up to there.
    pub(crate) fn note(&self, next: u64, read: Option<ReadBytes>) {
        let mut list = self.0.lock();
        list.read = list.read.max(next);
        let files = list.files;
        list.notes.push_back(ReadNote { next, files, read });
    }

    /// The present input has been read to its end, which is before the position `next`.
    pub(crate) fn end(&self, next: u64, ends: SpanEnd) {
        let mut list = self.0.lock();
        list.read = list.read.max(next);
        let read = list.notes.back().filter(|note| note.next == next).and_then(|note| note.read);
        if let Some(span) = list.open.take()
            && let Some(span) = list.new_part(&span, next, read)
        {
            let SpanEnd { is_broken, is_unended } = ends;
            list.spans.push_back(InputSpan { is_open: false, is_broken, is_unended, ..span });
        }
    }

    /// The list up to a position, without its spans if they are more than `most`; `None` if the reader has
    /// not noted it.
    pub fn up_to(&self, next: u64, most: usize) -> Option<InputList> {
        let mut list = self.0.lock();
        if list.read < next {
            return None;
        }
        while list.notes.get(1).is_some_and(|note| note.next <= next) {
            list.notes.pop_front();
        }
        let note = list.notes.front().copied().filter(|note| note.next <= next).unwrap_or_default();
        let closed = list.spans.partition_point(|span| span.after() <= next);
        let is_cut = closed > most;
        let read = note.read.filter(|_| note.next == next);
        let open = match list.spans.get(closed) {
            _ if is_cut => None,
            Some(span) => part(span, next, read),
            None => list.open.as_ref().and_then(|span| list.new_part(span, next, read)),
        };
        let FileOrder { files, order, names, has_documents } = note.files;
        Some(InputList {
            stored: list.stored,
            digest: list.digest,
            beside: None,
            spans: list.spans.iter().take(if is_cut { 0 } else { closed }).cloned().collect(),
            open,
            is_cut,
            files,
            order,
            names,
            has_documents,
        })
    }

    /// The state has stored this number of spans.
    pub fn stored(&self, spans: u64) {
        let mut list = self.0.lock();
        while list.stored < spans
            && let Some(span) = list.spans.pop_front()
        {
            list.digest = span.digest(list.digest);
            list.stored += 1;
        }
    }
}

impl ListState {
    /// What was read of an input before `next`, without what an earlier run has read of it, which has spans
    /// of its own; `None` if that is nothing.
    fn new_part(&self, span: &InputSpan, next: u64, read: Option<ReadBytes>) -> Option<InputSpan> {
        let known = self.known.saturating_sub(span.first);
        let span = InputSpan { first: span.first + known, skipped: span.skipped + known, ..span.clone() };
        part(&span, next, read)
    }
}

/// The part of a span before `next`; `None` if that is nothing.
fn part(span: &InputSpan, next: u64, read: Option<ReadBytes>) -> Option<InputSpan> {
    let records = next.checked_sub(span.first).filter(|records| *records > 0)?;
    // As it was when it was opened, more of it is hashed. What has no name is not found again.
    let read = read.filter(|read| span.end.is_some() && read.bytes != span.bytes);
    let (bytes, end) = read.map_or((span.bytes, span.end), |read| (read.bytes, Some(read.end)));
    Some(InputSpan {
        records,
        is_open: true,
        is_broken: false,
        is_unended: false,
        bytes,
        end,
        ..span.clone()
    })
}

#[cfg(test)]
#[expect(clippy::shadow_unrelated, reason = "a test is a sequence of small cases")]
mod tests {
    use super::*;

    fn span(name: &str, first: u64, records: u64) -> InputSpan {
        InputSpan {
            name: name.to_owned(),
            first,
            records,
            bytes: 100,
            end: Some((4, 1)),
            ..InputSpan::default()
        }
    }

    fn open(name: &str, first: u64, records: u64) -> InputSpan {
        InputSpan { is_open: true, ..span(name, first, records) }
    }

    #[test]
    fn a_list_ends_where_the_commit_does() {
        let list = InputLog::default();
        list.begin(span("a", 0, 0));
        list.note(2, Some(ReadBytes { bytes: 20, end: (9, 7) }));
        list.note(3, Some(ReadBytes { bytes: 30, end: (9, 8) }));
        list.end(3, SpanEnd { is_broken: true, is_unended: false });
        list.begin(span("b", 3, 0));
        list.note(5, None);
        assert_eq!(list.up_to(6, 9), None, "not read yet");
        let spans = |next| list.up_to(next, 9).map(|list| (list.spans, list.open)).unwrap();
        assert_eq!(spans(2), (vec![], Some(InputSpan { bytes: 20, end: Some((9, 7)), ..open("a", 0, 2) })));
        let a = InputSpan { bytes: 30, end: Some((9, 8)), is_broken: true, ..span("a", 0, 3) };
        assert_eq!(spans(3), (vec![a.clone()], None));
        assert_eq!(spans(5), (vec![a.clone()], Some(open("b", 3, 2))));
        let of = list.up_to(5, 9).unwrap();
        assert_eq!((of.stored, of.digest, of.files), (0, 0, 2));
        let cut = InputList { spans: vec![], open: None, is_cut: true, ..of };
        assert_eq!(list.up_to(5, 0), Some(cut));
        list.stored(1);
        let of = list.up_to(5, 9).unwrap();
        assert_eq!((of.stored, of.digest, of.spans), (1, a.digest(0), vec![]));
    }

    /// Where a run reads its inputs again from the first record on, as one that skips records does.
    #[test]
    fn what_an_earlier_run_has_read_keeps_its_spans() {
        let list = InputLog::default();
        let known = [span("a", 0, 3), span("b", 3, 2)];
        list.continue_from((&known, 1), 5, (4, FileOrder::default()));
        let spans = |next| list.up_to(next, 9).map(|list| (list.spans, list.open)).unwrap();
        assert_eq!(spans(4), (vec![], Some(open("b", 3, 1))), "the state is behind the output");
        list.begin(span("a", 0, 0));
        list.end(3, SpanEnd::default());
        list.begin(span("b", 3, 0));
        list.note(5, None);
        assert_eq!(spans(5), (vec![span("b", 3, 2)], None));
        list.note(8, None);
        list.end(8, SpanEnd::default());
        list.begin(span("empty", 8, 0));
        list.end(8, SpanEnd::default());
        let more = InputSpan { skipped: 2, ..span("b", 5, 3) };
        assert_eq!(spans(8), (vec![span("b", 3, 2), more], None));
        assert_eq!(list.up_to(8, 9).unwrap().digest, crate::mark::digest(&known[..1]));
    }

    #[test]
    fn files_that_are_not_begun_again_stay_in_the_order() {
        let mut order = FileOrder::default();
        order.add("a");
        let list = InputLog::default();
        list.continue_from((&[span("a", 0, 3)], 1), 3, (3, order));
        list.has_begun(order);
        list.begin(span("b", 3, 0));
        list.note(5, None);
        order.add("b");
        let of = list.up_to(5, 9).unwrap();
        assert_eq!((of.files, of.order), (2, order.order));
    }
}
