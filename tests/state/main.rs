//! The state store: against a map, while everything that can fail does.
//!
//! Bug classes: a publish that is half there; a document that comes back twice, with an old value or after
//! its end; a file that is removed while a manifest names it, or never; damage that is read as data; two
//! owners that both write; a reader that trips over the owner; a failed publish after which the next one
//! fails too.

#![cfg(test)]

mod beside;
mod broken;
mod damage;
mod full;
mod kill;
mod model;
#[cfg(feature = "object-store")]
mod objects;
mod owners;
mod script;
