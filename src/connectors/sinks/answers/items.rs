//! The answer "items": what is found of each item of a reference.

use super::answer::{Answer, Subject, Written};
use crate::sinks::items::ItemOutput;
use crate::sinks::rows::FoundItem;

pub(super) const ANSWER: Answer = Answer {
    name: "items",
    help: "At the end of the input, what is found of each item of the reference",
    written: Written::AtEnd(|of, rows| of.items(ItemOutput::Items(rows))),
    columns: |_| FoundItem::COLUMNS.to_vec(),
    sized: None,
    about: Subject::Items,
    adds_up: None,
    takes_units: false,
};
