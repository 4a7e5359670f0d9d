//! Finds near-duplicate texts.
//!
//! A document goes through [`text`] (tokens, shingles, features), [`sketch`] (a fixed-size summary), [`block`]
//! (which pairs are looked at) and [`filter`] (which of them are pairs); [`cluster`] groups pairs, and [`oracle`]
//! does all of it by brute force, for tests. No threads, no input or output, no dataflow.

pub mod backlog;
pub mod block;
pub mod cluster;
pub mod codec;
pub mod description;
pub mod doc;
pub mod filter;
pub mod hash;
pub mod hash_index;
pub mod histogram;
pub mod html;
pub mod metrics;
pub mod oracle;
pub mod origins;
pub mod pair;
pub mod retention;
pub mod sketch;
pub mod slab;
pub mod status;
pub mod text;
pub mod time;
pub mod visit;
