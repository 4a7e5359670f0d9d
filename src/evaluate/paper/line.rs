//! What is printed, what was measured, and what is to be said of it.

use std::fmt;
use std::ops::AddAssign;

use super::super::table::{Table, row};
use super::super::{Findings, Plot};
use super::Source;

/// An answer to an item, or to a part of it.
#[derive(Clone, Debug)]
pub struct Line {
    /// The item.
    pub item: &'static str,
    /// Of what in it.
    pub of: String,
    /// What the source prints.
    pub printed: String,
    /// What comes out here.
    pub measured: String,
    /// How the two compare.
    pub verdict: Verdict,
    /// Why, in a sentence.
    pub reason: String,
}

/// How what is measured compares with what is printed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// It is the same, within what the reason says.
    Agrees,
    /// It is not the same, and the print is no slip: another setting, other data, another machine.
    Differs,
    /// The print is wrong in itself.
    Misprint,
    /// The source says too little to compare: its data are private, or its text has lost the numbers. What stands in for them is measured.
    StandIn,
    /// A drawing, or an algorithm in words: here is where the program does it.
    Shown,
    /// Quoted by the source from elsewhere, or with nothing to compare.
    NotMade,
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Misprint => "misprint",
            Self::StandIn => "stand-in",
            Self::Shown => "shown",
            Self::NotMade => "not made",
        })
    }
}

impl Line {
    /// An answer.
    pub fn new(
        item: &'static str,
        of: impl Into<String>,
        printed: impl Into<String>,
        measured: impl Into<String>,
        verdict: Verdict,
        reason: impl Into<String>,
    ) -> Self {
        let (of, printed, measured, reason) = (of.into(), printed.into(), measured.into(), reason.into());
        Self { item, of, printed, measured, verdict, reason }
    }
}

/// What sections have made.
#[derive(Clone, Debug, Default)]
pub struct Made {
    /// Answers, in the order of the items.
    pub lines: Vec<Line>,
    /// Numbers behind them.
    pub tables: Vec<Table>,
    /// Figures.
    pub plots: Vec<Plot>,
}

impl AddAssign for Made {
    fn add_assign(&mut self, more: Self) {
        self.lines.extend(more.lines);
        self.tables.extend(more.tables);
        self.plots.extend(more.plots);
    }
}

impl Made {
    /// The answers as a table, before all others.
    pub fn answers(&self, source: Source) -> Table {
        let mut table = Table::new(
            &format!("{}_answers", source.name()),
            "Item by item",
            "\"printed\" is what the source has, \"measured\" what comes out here. A misprint is wrong in itself; a stand-in answers where \
             the source's data are private or its numbers are lost.",
            &["item", "of", "printed", "measured", "verdict", "reason"],
        );
        for Line { item, of, printed, measured, verdict, reason } in &self.lines {
            table.push(row![*item, &**of, &**printed, &**measured, verdict.to_string(), &**reason]);
        }
        table
    }

    /// All of it.
    pub(super) fn findings(self, source: Source, scale: f64) -> Findings {
        let mut about = source.about().to_owned();
        if scale < 1.0 {
            about += &format!(" At {scale} of the full sizes.");
        }
        let mut tables = vec![self.answers(source)];
        tables.extend(self.tables);
        Findings {
            name: source.name().to_owned(),
            title: format!("{}: {}", source.name(), source.title()),
            about,
            tables,
            plots: self.plots,
        }
    }
}
