//! Sketches of sets: a component is equal with a probability that is the Jaccard similarity.

pub mod bottom_k;
mod fingerprint;
mod fss;
mod min_max;
mod minhash;
mod odd;
pub mod oph;
pub mod scaled;
pub mod sectional;
mod superminhash;

pub use bottom_k::BottomK;
pub(super) use fingerprint::Fingerprint;
pub use fss::Fss;
pub use min_max::MinMax;
pub use minhash::MinHash;
pub use odd::Odd;
pub use oph::{Oph, OphOriginal};
pub use scaled::Scaled;
pub use sectional::{SectionBase, SectionMode, Sectional};
pub use superminhash::SuperMinHash;
