//! Operators: the builder of all of them, and the records that one keeps until an epoch closes.

mod builder;
pub(super) mod epochs;

pub(super) use builder::{Frontiers, Operator, Output};
