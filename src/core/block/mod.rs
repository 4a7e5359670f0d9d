//! Blocking: selects the pairs of sketches that are compared at all.
//!
//! In: sketches. Out: their block keys ([`Blocking::keys`]), and a rule for the pairs of a block. Two
//! sketches *meet* in a block if the rule makes them a candidate pair:
//!
//! - in a block of at most `cap` sketches all of them meet;
//! - in a larger, *hot* block two meet only if one of them is a [leader](HotRule);
//! - in a table by Hamming distance no block is hot: two sketches meet if they are near ([`NearRule`]);
//! - where pairs have to be equal in a field, the sketches of a block that are equal in it are as a block of
//!   their own ([`RuledBlocking`]);
//! - in a block of a reference ([`ReferenceShingles`]) its members do not meet: other sketches are looked up.

pub mod banding;
mod blocking;
mod combined;
pub mod hamming;
mod hot;
pub mod index;
mod key;
mod near;
mod params;
mod reference;
mod ruled;
mod scan;
mod shingles;

pub use banding::Banding;
pub use blocking::Blocking;
pub use combined::CombinedBlocking;
pub use hot::{HotBlock, HotBlocks, HotChange, HotPlace, HotPolicy, HotRule, LeadersBy};
pub use key::BlockKey;
pub use near::NearRule;
pub use params::{BlockingKind, BlockingParams};
pub use reference::ReferenceShingles;
pub use ruled::RuledBlocking;
pub use scan::Scan;
pub use shingles::Shingles;
