//! dupflow finds near-duplicate documents while the corpus changes.

pub mod doc;
pub mod hash;
pub mod metrics;
pub mod pair;
pub mod time;

pub mod text;

pub mod sketch;

pub mod block;
pub mod filter;

pub mod dataflow;
pub mod feed;
pub mod oracle;
pub mod sink;
pub mod source;

pub mod config;

pub mod pipeline;

pub mod cli;
