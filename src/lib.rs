//! dupflow finds near-duplicate documents while the corpus changes.

pub mod doc;
pub mod hash;
pub mod pair;
pub mod time;

pub mod text;

pub mod sketch;

pub mod block;
pub mod filter;

pub mod oracle;

pub mod feed;
pub mod sink;
pub mod source;
