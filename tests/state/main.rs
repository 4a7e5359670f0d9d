//! The state store against a map, with every possible fault.
//!
//! Bug classes: a half-visible publish; a document returned twice, with an old value, or after its deletion;
//! a file that is removed while a manifest lists it, or never removed; damage read as data; two owners that
//! both write; a reader that fails because of the owner's publishes; a failed publish that makes the next one
//! fail too.

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
mod several;
