//! Membership: what changes the members of a sketch.

use serde::{Deserialize, Serialize};

use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::sketch::Sketch;

/// A document becomes a member of a sketch or stops being one.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::dataflow) struct Membership {
    /// The low half of the sketch's id. With the document it names a sketch that is left.
    pub(in crate::dataflow) low: u64,
    pub(in crate::dataflow) document: DocId,
    /// The sketch, if the document joins.
    pub(in crate::dataflow) joins: Option<(SketchId, Box<Sketch>)>,
}

/// A change of the members of this sketch.
pub(in crate::dataflow) type SketchMembership = (SketchId, Membership);
