//! CSV and TSV tables: how they are written, their rows, and what is said of them.

mod findings;
mod format;
mod reader;

pub(super) use format::{CSV, TSV};
