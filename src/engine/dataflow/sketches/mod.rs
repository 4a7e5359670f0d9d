//! Distinct sketches and the documents that are their members.

pub(super) mod by_place;
pub(super) mod members;
pub(super) mod membership;
pub(super) mod parcels;
pub(super) mod small_map;
pub(super) mod store;
mod stored;
