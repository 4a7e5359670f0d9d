//! Golden vectors computed by other programs. Each file states its content and its tolerance.
#![cfg(test)]

mod filter;
mod hamming;
mod read;
mod simhash;
mod sketch;
mod text;
mod weights;
