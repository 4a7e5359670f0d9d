//! Finds near-duplicate texts.
//!
//! A document goes through [`text`] (tokens, shingles, features), [`sketch`] (a fixed-size summary), [`block`]
//! (which pairs are looked at) and [`filter`] (which of them are pairs); [`cluster`] groups pairs, and [`oracle`]
//! does all of it by brute force, for tests. No threads, no input or output, no dataflow.

pub mod block;
pub mod cluster;
pub mod description;
pub mod doc;
pub mod filter;
pub mod hash;
pub mod html;
pub mod memory;
pub mod oracle;
pub mod pair;
pub mod run;
pub mod sketch;
pub mod text;
pub mod time;
