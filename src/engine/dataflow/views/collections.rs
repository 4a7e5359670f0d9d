//! The collections that the files of the views share.

use std::cmp::Reverse;

use differential_dataflow::VecCollection;
use differential_dataflow::operators::arrange::{Arranged, TraceAgent};
use differential_dataflow::trace::implementations::ValSpine;

use dupflow_core::doc::DocId;
use dupflow_core::doc::fields::FieldRow;
use dupflow_core::time::Epoch;
use dupflow_core::views::Group;

/// A group of a view, by the place of the view among those of the run.
pub(super) type ViewGroup = (u16, Group);

/// What a top is taken of: the greater value first, then by id.
pub(super) type Ranked = (Reverse<u64>, DocId);

/// The fields of live documents, by id.
pub(super) type Documents<'scope> = Arranged<'scope, TraceAgent<ValSpine<DocId, FieldRow, Epoch, isize>>>;

/// Two documents that are a pair, the smaller id first.
pub(super) type Ends<'scope> = VecCollection<'scope, Epoch, (DocId, DocId), isize>;

/// All collections as one; `None` of none.
pub(super) fn concatenated<'scope, D: Clone + 'static>(
    collections: Vec<VecCollection<'scope, Epoch, D, isize>>,
) -> Option<VecCollection<'scope, Epoch, D, isize>> {
    collections.into_iter().reduce(VecCollection::concat)
}
