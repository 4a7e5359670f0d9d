//! The block index: the sketches of each block, and the candidate pairs that begin or end when they change.
//!
//! In: the changes of an epoch, as [`Postings`]. Out: the change in the number of blocks in which a pair
//! meets.
//!
//! Two sketches *meet* in each block that they share and whose [rule](super::HotRule) allows it: all pairs
//! in a small block, leaders with all members in a hot one, near sketches ([`NearRule`](super::NearRule)) in
//! a table by distance. Where sketches have [realms](super::Blocking::realm), those of one realm in a block
//! are as a block of their own. The rules are functions of the members alone. So the emitted changes
//! accumulate, after each [`BlockIndex::apply`], to exactly the number of blocks in which each pair meets.
//!
//! Memory: a sketch is stored once for all its blocks, as a slot of 24 bytes, or only by the owner of the
//! index ([`LocalSketches`]). A block of one member, the usual case, is only an entry of about 6 bytes in its
//! table ([`PackedTables`](crate::memory::PackedTables)).

mod batch;
mod block_index;
mod few;
mod large;
mod lists;
mod members;
mod postings;
mod realms;
mod round;
mod slots;

#[cfg(test)]
mod tests;

pub use block_index::BlockIndex;
pub use postings::{Postings, SketchHead};
pub use slots::{LocalSketches, NoSketches, SketchSource};
