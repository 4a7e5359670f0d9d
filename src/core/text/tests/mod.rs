//! Tests of the room as a whole.

#[cfg(feature = "article")]
mod article;
mod features;
mod marks;
