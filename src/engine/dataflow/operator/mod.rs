//! Operators: the builder of all of them, the records that one keeps until an epoch closes, and changes.

mod builder;
pub(super) mod epochs;

pub(super) use builder::{Frontiers, Operator, Output};

use timely::dataflow::Stream;

use dupflow_core::time::Epoch;

/// Changes of a collection: the record, its epoch, and the change of its multiplicity.
pub(super) type Deltas<'scope, D> = Stream<'scope, Epoch, Vec<(D, Epoch, isize)>>;
