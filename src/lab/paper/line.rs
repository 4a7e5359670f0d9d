//! What is printed, what was measured, and what follows.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use super::super::table::{Table, row};
use super::super::{Findings, Plot};
use super::Source;
use super::claim::Claim;

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
    /// What decides, if anything does.
    pub basis: Basis,
    /// Why, in a sentence.
    pub reason: String,
}

/// What the verdict of a [`Line`] follows from.
#[derive(Clone, Debug, PartialEq)]
pub enum Basis {
    /// The source's own definitions decide, without its data: where the claim fails, the print is wrong in
    /// itself.
    Exact(Claim),
    /// Measured on other data, or on a model that is not made to meet it.
    Measured(Claim),
    /// Nothing is judged. What is measured may have to meet something else: a theory, an independent
    /// computation.
    Unjudged(Why, Option<Claim>),
}

/// Why a line is not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Why {
    /// It could not be otherwise: arithmetic, a model fitted to the very statement, one printed number beside
    /// another.
    Construction,
    /// A slip of notation, seen by reading.
    Reading,
    /// The source says too little to compare: its data are private, or its text has lost the numbers. What
    /// stands in for them is measured.
    StandIn,
    /// A drawing, an algorithm in words, or what the source leaves out: here is what the program does.
    Shown,
    /// A time, which depends on the machine and on what else it does.
    Timed,
    /// Quoted by the source from elsewhere, or with nothing to compare.
    Quoted,
}

/// How what is measured compares with what is printed. It is computed from the [`Basis`] and cannot be given.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    /// It is the same, within the tolerance.
    Agrees,
    /// It is not the same.
    Differs,
    /// The print is wrong in itself.
    Misprint,
    /// Not judged, for this reason.
    Unjudged(Why),
}

impl Verdict {
    /// All of them.
    pub const ALL: [Self; 9] = [
        Self::Agrees,
        Self::Differs,
        Self::Misprint,
        Self::Unjudged(Why::Construction),
        Self::Unjudged(Why::Reading),
        Self::Unjudged(Why::StandIn),
        Self::Unjudged(Why::Shown),
        Self::Unjudged(Why::Timed),
        Self::Unjudged(Why::Quoted),
    ];
}

impl fmt::Display for Verdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Misprint => "misprint",
            Self::Unjudged(Why::Construction) => "by construction",
            Self::Unjudged(Why::Reading) => "by reading",
            Self::Unjudged(Why::StandIn) => "stand-in",
            Self::Unjudged(Why::Shown) => "shown",
            Self::Unjudged(Why::Timed) => "timed",
            Self::Unjudged(Why::Quoted) => "quoted",
        })
    }
}

impl Basis {
    /// What decides, if anything does.
    pub fn claim(&self) -> Option<&Claim> {
        match self {
            Self::Exact(claim) | Self::Measured(claim) => Some(claim),
            Self::Unjudged(_, claim) => claim.as_ref(),
        }
    }

    /// The same with another claim, if there is one.
    #[must_use]
    pub fn with(&self, claim: Claim) -> Self {
        match self {
            Self::Exact(_) => Self::Exact(claim),
            Self::Measured(_) => Self::Measured(claim),
            Self::Unjudged(kind, old) => Self::Unjudged(*kind, old.as_ref().map(|_| claim)),
        }
    }

    /// What follows.
    pub fn verdict(&self) -> Verdict {
        match self {
            Self::Exact(claim) | Self::Measured(claim) if claim.holds() => Verdict::Agrees,
            Self::Exact(_) => Verdict::Misprint,
            Self::Measured(_) => Verdict::Differs,
            Self::Unjudged(_, Some(check)) if !check.holds() => Verdict::Differs,
            Self::Unjudged(kind, _) => Verdict::Unjudged(*kind),
        }
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Exact(claim) | Self::Measured(claim) => claim.fmt(f),
            Self::Unjudged(_, Some(check)) => write!(f, "(checked: {check})"),
            Self::Unjudged(_, None) => f.write_str("-"),
        }
    }
}

impl From<Why> for Basis {
    fn from(kind: Why) -> Self {
        Self::Unjudged(kind, None)
    }
}

impl Why {
    /// Not judged for this reason, but what is measured has to meet something else.
    pub fn checked(self, check: Claim) -> Basis {
        Basis::Unjudged(self, Some(check))
    }
}

impl Line {
    /// An answer.
    pub fn new(
        item: &'static str,
        of: impl Into<String>,
        printed: impl Into<String>,
        measured: impl Into<String>,
        basis: impl Into<Basis>,
        reason: impl Into<String>,
    ) -> Self {
        let (of, printed, measured, reason) = (of.into(), printed.into(), measured.into(), reason.into());
        Self { item, of, printed, measured, basis: basis.into(), reason }
    }

    /// How what is measured compares with what is printed.
    pub fn verdict(&self) -> Verdict {
        self.basis.verdict()
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
    /// How many answers have each verdict.
    pub fn summary(&self, source: Source) -> Table {
        let mut counts: BTreeMap<Verdict, usize> = BTreeMap::new();
        self.lines.iter().for_each(|line| *counts.entry(line.verdict()).or_default() += 1);
        let mut table = Table::new(
            &format!("{}_summary", source.name()),
            "Verdicts",
            "The first three follow from printed, measured and tolerance; the others are not judged, and count for nothing.",
            &["verdict", "lines", "is"],
        );
        for verdict in Verdict::ALL {
            table.push(row![
                verdict.to_string(),
                counts.get(&verdict).copied().unwrap_or(0),
                meaning(verdict)
            ]);
        }
        table
    }

    /// The answers as a table, before all others.
    pub fn answers(&self, source: Source) -> Table {
        let mut table = Table::new(
            &format!("{}_answers", source.name()),
            "Item by item",
            "\"printed\" is what the source has, \"measured\" what comes out here; the verdict is computed from both by the relation and the \
             tolerance of \"judged by\". In brackets: what a line that is not judged has to meet all the same, a theory or an independent \
             computation; if it does not, the verdict is \"differs\".",
            &["item", "of", "printed", "measured", "judged by", "verdict", "reason"],
        );
        for line in &self.lines {
            let Line { item, of, printed, measured, basis, reason } = line;
            let verdict = line.verdict().to_string();
            table.push(row![*item, &**of, &**printed, &**measured, basis.to_string(), verdict, &**reason]);
        }
        table
    }

    /// All of it.
    pub(super) fn findings(self, source: Source, scale: f64) -> Findings {
        let mut about = source.about().to_owned();
        if scale < 1.0 {
            about += &format!(" At {scale} of the full sizes.");
        }
        let mut tables = vec![self.summary(source), self.answers(source)];
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

/// What a verdict says.
fn meaning(verdict: Verdict) -> &'static str {
    match verdict {
        Verdict::Agrees => "measured meets printed within the tolerance",
        Verdict::Differs => "it does not: other data, another setting, or a statement that is not so",
        Verdict::Misprint => "it does not, and the source's own definitions decide",
        Verdict::Unjudged(Why::Construction) => {
            "it could not be otherwise: arithmetic, a model fitted to the statement, print beside print"
        }
        Verdict::Unjudged(Why::Reading) => "a slip of notation",
        Verdict::Unjudged(Why::StandIn) => "data are private or numbers lost; a stand-in is measured",
        Verdict::Unjudged(Why::Shown) => {
            "a drawing, an algorithm in words, or what the source leaves out: what the program does"
        }
        Verdict::Unjudged(Why::Timed) => "a time, which depends on the machine",
        Verdict::Unjudged(Why::Quoted) => "quoted by the source from elsewhere",
    }
}
