//! Tests with written pages, and against html5ever's tokenizer.

mod charsets;
mod pages;
mod reference;
