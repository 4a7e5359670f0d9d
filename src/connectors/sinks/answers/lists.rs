//! The answers that are lists of documents or units: their ids, or their records.

use super::answer::{Answer, AnswerSettings, Subject, Written};
use crate::sinks::keep_list::{DocumentList, KeepList};
use crate::sinks::rows::{ColumnType, RemovedUnit, RowWriter};
use crate::sinks::units::UnitList;

pub(super) const KEPT: Answer = Answer {
    name: "keep",
    help: "At the end of the input, one document of each cluster and all that are in none",
    written: Written::AtEnd(|of, rows| Box::new(list(of, rows, DocumentList::Kept))),
    columns: |_| vec![("id", ColumnType::Text)],
    sized: None,
    about: Subject::Documents,
    adds_up: None,
    takes_units: false,
};

pub(super) const REMOVED: Answer = Answer {
    name: "remove",
    help: "At the end of the input, all other documents, each with the kept document of its cluster",
    written: Written::AtEnd(|of, rows| {
        if of.has_units() {
            let units = UnitList::with_rows(rows, of.clusters(), of.keep(), of.fields());
            return Box::new(units.with_counts(of.listed()));
        }
        Box::new(list(of, rows, DocumentList::Removed))
    }),
    columns: |of| {
        if of.has_units() {
            return RemovedUnit::COLUMNS.to_vec();
        }
        let mut columns = ["id", "kept", "cluster"].map(|name| (name, ColumnType::Text)).to_vec();
        columns.extend(Some(("old", ColumnType::Flag)).filter(|_| of.style().sides));
        columns
    },
    sized: None,
    about: Subject::Documents,
    adds_up: None,
    takes_units: true,
};

pub(super) const KEPT_RECORDS: Answer = Answer {
    name: "documents",
    help: "At the end of the input, the records of the documents to keep, as they were read",
    written: Written::Copied(DocumentList::Kept),
    columns: |_| Vec::new(),
    sized: None,
    about: Subject::Documents,
    adds_up: None,
    takes_units: true,
};

pub(super) const REMOVED_RECORDS: Answer = Answer {
    name: "removed-documents",
    help: "At the end of the input, the records of the documents to remove, as they were read",
    written: Written::Copied(DocumentList::Removed),
    columns: |_| Vec::new(),
    sized: None,
    about: Subject::Documents,
    adds_up: None,
    takes_units: false,
};

fn list<R: RowWriter>(of: &dyn AnswerSettings, rows: R, listed: DocumentList) -> KeepList<R> {
    KeepList::with_rows(rows, of.removal(), listed)
        .with_counts(of.listed())
        .with_fields(of.fields())
        .with_reference(of.style().sides)
}
