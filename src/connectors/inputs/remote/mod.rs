//! Inputs in object stores and behind addresses, through the crate `object_store`.
//!
//! ```text
//! s3://bucket/feed/              all objects below, in the order of the bytes of their keys, except where a
//!                                name below that address begins with a point or `_`
//! s3://bucket/**/*.parquet       all objects that match
//! https://host/pages.warc.gz     one file
//! ```
//!
//! Credentials come from the environment variables that each store's own tools use (`AWS_ACCESS_KEY_ID`,
//! `AWS_SKIP_SIGNATURE=true` for public objects, `GOOGLE_SERVICE_ACCOUNT`, `AZURE_STORAGE_ACCOUNT_NAME`, …).
//!
//! An object is read in ranges of [`RANGE_BYTES`], a few of them ahead. A failed request is retried. An
//! object that changes while it is read is an error, so that ranges of two versions are never combined.

mod access;
mod advice;
mod find;
mod object;
mod web;

pub(crate) use access::ObjectAccess;
pub(crate) use find::resolve;
pub(crate) use object::StoredObject;

#[cfg(test)]
mod tests;
