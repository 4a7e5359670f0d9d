//! What is said of a table once it has been read.

/// What helps with quotes that are none.
pub(super) const QUOTE_ADVICE: &str = "a table without quotes is read with --csv-quote none (csv.quote)";

/// What is said of a table at its end: how often, and the line of the first one.
#[derive(Default)]
pub(super) struct Findings {
    /// Rows inside cells with quotes that are none.
    pub(super) swallowed: Finding,
    /// Rows with text behind a closing quote.
    pub(super) stray: Finding,
    pub(super) null: Finding,
    /// Rows that end with a carriage return alone.
    pub(super) returns: Finding,
    /// Whether a row ends with a line feed.
    pub(super) has_feeds: bool,
}

#[derive(Clone, Copy, Default)]
pub(super) struct Finding {
    count: u64,
    line: u64,
}

impl Finding {
    pub(super) fn add(&mut self, count: usize, line: u64) {
        if self.count == 0 {
            self.line = line;
        }
        self.count += count as u64;
    }
}

impl Findings {
    /// A sentence for each kind that was found.
    pub(super) fn notes(&self) -> Vec<String> {
        let Self { swallowed, stray, null, returns, has_feeds } = self;
        let returns = if *has_feeds { *returns } else { Finding::default() };
        let said = [
            (swallowed, "rows are inside other rows, behind an open quote", QUOTE_ADVICE),
            (stray, "rows have text behind a closing quote, and lose quotes", QUOTE_ADVICE),
            (null, "cells are \\N or NULL without quotes, which is no value", "quote those that are texts"),
            (&returns, "rows end with a carriage return alone", "cells that have one have to be in quotes"),
        ];
        let said = said.into_iter().filter(|(finding, ..)| finding.count > 0);
        said.map(|(finding, what, help)| {
            format!("{} {what}, the first in line {}: {help}", finding.count, finding.line)
        })
        .collect()
    }
}
