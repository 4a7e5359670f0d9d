//! Views: aggregates of the corpus that a run keeps current.
//!
//! A view groups pairs, documents or clusters by fields of documents, and measures each group: by the number
//! of its members, or by the K first of them. Its rows are a function of the live documents and their pairs.
//!
//! | of | a group is | count | top K |
//! |---|---|---|---|
//! | pairs | the values of both documents, the smaller ones first | pairs | – |
//! | documents | the values of the document | live documents | those with the most pairs |
//! | clusters | values that a member of the cluster has; or the class of its size | clusters | the largest ones |
//!
//! A pair has no direction, so its group has none: the values of its two documents are compared as lists, and
//! the smaller list is first. A cluster is a connected component of the pairs, named by its smallest member.
//! It is in each group of its members once. Ties of a top are decided by the smaller id.

use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::doc::DocId;
use crate::doc::fields::FieldRow;

/// The values of a group, in the order of its [columns](ViewPlan::columns).
pub type Group = FieldRow;

/// What a view is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewKind {
    /// Pairs, grouped by both documents.
    Pairs,
    /// Live documents.
    Documents,
    /// Connected components of the pairs.
    Clusters,
}

/// What a view measures of each group.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ViewMeasure {
    /// The number of members.
    Count,
    /// The first members, at most this many, 1 or more: documents by their pairs, clusters by their size.
    Top(usize),
}

/// A part of a group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum GroupPart {
    /// A field of documents.
    Field {
        /// The name of the field.
        name: Arc<str>,
        /// Its place in the [`FieldRow`] of a document, from 0.
        at: usize,
    },
    /// The class of a cluster's size: [`size_class`].
    Size,
}

/// A view as it is configured.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ViewPlan {
    /// Its name, unique among the views of a run.
    pub name: Arc<str>,
    /// What it is about.
    pub kind: ViewKind,
    /// What it is grouped by; empty for one group of all.
    pub group: Vec<GroupPart>,
    /// What it measures.
    pub measure: ViewMeasure,
}

/// A row of a view: a group with its count, or one of the first members of a group.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ViewRow {
    /// The view, by its place among the views of the run.
    pub view: u16,
    /// The group.
    pub group: Group,
    /// The document or cluster, in a view of the first ones.
    pub id: Option<DocId>,
    /// The count; of a document its pairs, of a cluster its documents. At least 1.
    pub value: u64,
}

/// A change of the rows of a view.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ViewDelta {
    /// The row.
    pub row: ViewRow,
    /// 1 if the row is added, -1 if it is removed.
    pub diff: isize,
}

impl ViewPlan {
    /// The greatest K of a top, inclusive: each change of a group looks at up to 64 K rows of it.
    pub const MOST_TOP: usize = 1000;

    /// The names of the fields that the view is grouped by.
    pub fn field_names(&self) -> impl Iterator<Item = &str> {
        self.group
            .iter()
            .filter_map(|part| if let GroupPart::Field { name, .. } = part { Some(&**name) } else { None })
    }

    /// The places of the fields that the view is grouped by.
    pub fn fields(&self) -> impl Iterator<Item = usize> {
        self.group
            .iter()
            .filter_map(|part| if let GroupPart::Field { at, .. } = part { Some(*at) } else { None })
    }

    /// Whether the rows depend on fields of documents.
    pub fn reads_fields(&self) -> bool {
        self.fields().next().is_some()
    }

    /// Whether the rows depend on the documents themselves, and not only on the pairs.
    pub fn needs_documents(&self) -> bool {
        self.reads_fields() || (self.kind, self.measure) == (ViewKind::Documents, ViewMeasure::Count)
    }

    /// The values of a row's group, one for each of its columns.
    pub fn values<'g>(&self, group: &'g Group) -> impl Iterator<Item = &'g str> + use<'g> {
        let ends = if self.kind == ViewKind::Pairs { 2 } else { 1 };
        (0..ends * self.group.len()).map(|place| group.get(place))
    }

    /// The names of the columns of a row's group. A view of pairs has each field twice.
    pub fn columns(&self) -> Vec<String> {
        let names = || {
            self.group.iter().map(|part| match part {
                GroupPart::Field { name, .. } => &**name,
                GroupPart::Size => SIZE,
            })
        };
        match self.kind {
            ViewKind::Pairs => {
                let end = |end| names().map(move |name| format!("{end}.{name}"));
                end("a").chain(end("b")).collect()
            }
            ViewKind::Documents | ViewKind::Clusters => names().map(str::to_owned).collect(),
        }
    }
}

/// The name of [`GroupPart::Size`].
pub const SIZE: &str = "cluster.size";

/// The class of a cluster of 2 or more documents, by doublings: `2`, `3-4`, `5-8`, `9-16` and so on.
pub fn size_class(documents: u64) -> String {
    let to = documents.max(2).next_power_of_two();
    if to == 2 { "2".to_owned() } else { format!("{}-{to}", to / 2 + 1) }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_of_sizes_double() {
        let classes = [2, 3, 4, 5, 8, 9, 16, 17, 1000].map(size_class);
        assert_eq!(classes, ["2", "3-4", "3-4", "5-8", "5-8", "9-16", "9-16", "17-32", "513-1024"]);
    }

    #[test]
    fn a_view_of_pairs_has_a_column_for_each_end() {
        let field = |name: &str, at| GroupPart::Field { name: name.into(), at };
        let view = |kind, group| ViewPlan { name: "v".into(), kind, group, measure: ViewMeasure::Count };
        let pairs = view(ViewKind::Pairs, vec![field("host", 1), field("lang", 0)]);
        assert_eq!(pairs.columns(), ["a.host", "a.lang", "b.host", "b.lang"]);
        assert_eq!(pairs.fields().collect::<Vec<_>>(), [1, 0]);
        let clusters = view(ViewKind::Clusters, vec![GroupPart::Size]);
        assert_eq!(clusters.columns(), ["cluster.size"]);
        assert!(!clusters.reads_fields());
    }
}
