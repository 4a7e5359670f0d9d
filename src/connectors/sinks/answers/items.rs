//! The answer "items": what is found of each item of a reference.

use super::answer::{Answer, Written};
use crate::sinks::items::ItemOutput;
use crate::sinks::rows::FoundItem;

pub(super) const ANSWER: Answer = Answer {
    name: "items",
    help: "At the end of the input, what is found of each item of the reference",
    written: Written::AtEnd(|of, rows| of.items(ItemOutput::Items(rows))),
    columns: |_| FoundItem::COLUMNS.to_vec(),
    needs_replay: true,
    is_of_items: true,
    has_sides: true,
    ..Answer::PLAIN
};
