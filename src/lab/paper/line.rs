//! Lines: what is printed, what is measured, and the verdict.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use super::super::table::{ResultTable, row};
use super::super::{Findings, Plot};
use super::PaperSource;
use super::claim::PrintedClaim;

/// An answer to an item of a source, or to a part of one.
#[derive(Clone, Debug)]
pub struct ItemLine {
    /// The item.
    pub item: &'static str,
    /// The part of the item.
    pub of: String,
    /// What the source prints.
    pub printed: String,
    /// What is measured here.
    pub measured: String,
    /// What decides the verdict.
    pub basis: Basis,
    /// The reason, in a sentence.
    pub reason: String,
}

/// What decides the verdict of a [`ItemLine`].
#[derive(Clone, Debug, PartialEq)]
pub enum Basis {
    /// The source's own definitions decide, without its data. If the claim fails, the print contradicts
    /// itself.
    Exact(PrintedClaim),
    /// Measured on other data, or on a model that was not fitted to the claim.
    Measured(PrintedClaim),
    /// No verdict. The measurement may have to satisfy another claim: a theory, or an independent
    /// computation.
    Unjudged(UnjudgedReason, Option<PrintedClaim>),
}

/// Why a line is not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnjudgedReason {
    /// It follows by construction: arithmetic, a model fitted to this statement, one printed number beside
    /// another.
    /// another.
    Construction,
    /// An error of notation, found by reading.
    Reading,
    /// The source is not sufficient for a comparison: its data are private, or its text has lost the numbers.
    /// Substitute data are measured.
    StandIn,
    /// A drawing, an algorithm in words, or something the source leaves out; the line shows what the program
    /// does.
    Shown,
    /// A time, which depends on the machine and its load.
    Timed,
    /// Quoted by the source from elsewhere, or without a value to compare.
    Quoted,
}

/// How measured and printed values compare. Computed from the [`Basis`]; cannot be set.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum ClaimVerdict {
    /// Equal within the tolerance.
    Agrees,
    /// Not equal.
    Differs,
    /// The print contradicts itself.
    Misprint,
    /// Not judged, for this reason.
    Unjudged(UnjudgedReason),
}

impl ClaimVerdict {
    /// All verdicts.
    pub const ALL: [Self; 9] = [
        Self::Agrees,
        Self::Differs,
        Self::Misprint,
        Self::Unjudged(UnjudgedReason::Construction),
        Self::Unjudged(UnjudgedReason::Reading),
        Self::Unjudged(UnjudgedReason::StandIn),
        Self::Unjudged(UnjudgedReason::Shown),
        Self::Unjudged(UnjudgedReason::Timed),
        Self::Unjudged(UnjudgedReason::Quoted),
    ];
}

impl fmt::Display for ClaimVerdict {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::Agrees => "agrees",
            Self::Differs => "differs",
            Self::Misprint => "misprint",
            Self::Unjudged(UnjudgedReason::Construction) => "by construction",
            Self::Unjudged(UnjudgedReason::Reading) => "by reading",
            Self::Unjudged(UnjudgedReason::StandIn) => "stand-in",
            Self::Unjudged(UnjudgedReason::Shown) => "shown",
            Self::Unjudged(UnjudgedReason::Timed) => "timed",
            Self::Unjudged(UnjudgedReason::Quoted) => "quoted",
        })
    }
}

impl Basis {
    /// The claim, if there is one.
    pub fn claim(&self) -> Option<&PrintedClaim> {
        match self {
            Self::Exact(claim) | Self::Measured(claim) => Some(claim),
            Self::Unjudged(_, claim) => claim.as_ref(),
        }
    }

    /// The same basis with another claim, if it has one.
    #[must_use]
    pub fn with(&self, claim: PrintedClaim) -> Self {
        match self {
            Self::Exact(_) => Self::Exact(claim),
            Self::Measured(_) => Self::Measured(claim),
            Self::Unjudged(kind, old) => Self::Unjudged(*kind, old.as_ref().map(|_| claim)),
        }
    }

    /// The verdict.
    pub fn verdict(&self) -> ClaimVerdict {
        match self {
            Self::Exact(claim) | Self::Measured(claim) if claim.holds() => ClaimVerdict::Agrees,
            Self::Exact(_) => ClaimVerdict::Misprint,
            Self::Measured(_) => ClaimVerdict::Differs,
            Self::Unjudged(_, Some(check)) if !check.holds() => ClaimVerdict::Differs,
            Self::Unjudged(kind, _) => ClaimVerdict::Unjudged(*kind),
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

impl From<UnjudgedReason> for Basis {
    fn from(kind: UnjudgedReason) -> Self {
        Self::Unjudged(kind, None)
    }
}

impl UnjudgedReason {
    /// No verdict for this reason, but the measurement must satisfy `check`.
    pub fn checked(self, check: PrintedClaim) -> Basis {
        Basis::Unjudged(self, Some(check))
    }
}

impl ItemLine {
    /// What the source prints of a part of an item. The measurement follows with [`measured`](Self::measured),
    /// [`judged`](Self::judged) and [`because`](Self::because).
    pub fn new(item: &'static str, of: impl Into<String>, printed: impl Into<String>) -> Self {
        Self {
            item,
            of: of.into(),
            printed: printed.into(),
            measured: String::new(),
            basis: UnjudgedReason::Shown.into(),
            reason: String::new(),
        }
    }

    /// Sets what is measured.
    #[must_use]
    pub fn measured(self, measured: impl Into<String>) -> Self {
        Self { measured: measured.into(), ..self }
    }

    /// Sets what decides the verdict.
    #[must_use]
    pub fn judged(self, basis: impl Into<Basis>) -> Self {
        Self { basis: basis.into(), ..self }
    }

    /// Sets the reason.
    #[must_use]
    pub fn because(self, reason: impl Into<String>) -> Self {
        Self { reason: reason.into(), ..self }
    }

    /// How measured and printed values compare.
    pub fn verdict(&self) -> ClaimVerdict {
        self.basis.verdict()
    }
}

/// The results of sections.
#[derive(Clone, Debug, Default)]
pub struct SectionAnswers {
    /// Lines in the order of the items.
    pub lines: Vec<ItemLine>,
    /// The tables with the numbers.
    pub tables: Vec<ResultTable>,
    /// The plots.
    pub plots: Vec<Plot>,
}

impl AddAssign for SectionAnswers {
    fn add_assign(&mut self, more: Self) {
        self.lines.extend(more.lines);
        self.tables.extend(more.tables);
        self.plots.extend(more.plots);
    }
}

impl SectionAnswers {
    /// The number of lines with each verdict.
    pub fn summary(&self, source: PaperSource) -> ResultTable {
        let mut counts: BTreeMap<ClaimVerdict, usize> = BTreeMap::new();
        self.lines.iter().for_each(|line| *counts.entry(line.verdict()).or_default() += 1);
        let mut table = ResultTable::new(
            &format!("{}_summary", source.name()),
            "Verdicts",
            "The first three follow from printed, measured and tolerance; the others are not judged, and \
                count for nothing.",
            "verdict | lines | is",
        );
        for verdict in ClaimVerdict::ALL {
            table.push(row![
                verdict.to_string(),
                counts.get(&verdict).copied().unwrap_or(0),
                meaning(verdict)
            ]);
        }
        table
    }

    /// The lines as a table, which precedes all others.
    pub fn answers(&self, source: PaperSource) -> ResultTable {
        let mut table = ResultTable::new(
            &format!("{}_answers", source.name()),
            "Item by item",
            "\"printed\" is what the source has, \"measured\" what comes out here; the verdict is computed \
                from both by the relation and the tolerance of \"judged by\". In brackets: what a line that \
                is not judged has to meet all the same, a theory or an independent computation; if it does \
                not, the verdict is \"differs\".",
            "item | of | printed | measured | judged by | verdict | reason",
        );
        for line in &self.lines {
            let ItemLine { item, of, printed, measured, basis, reason } = line;
            let verdict = line.verdict().to_string();
            table.push(row![*item, &**of, &**printed, &**measured, basis.to_string(), verdict, &**reason]);
        }
        table
    }

    /// All results, as findings.
    pub(super) fn findings(self, source: PaperSource, scale: f64) -> Findings {
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

/// The meaning of a verdict.
fn meaning(verdict: ClaimVerdict) -> &'static str {
    match verdict {
        ClaimVerdict::Agrees => "measured meets printed within the tolerance",
        ClaimVerdict::Differs => "it does not: other data, another setting, or a statement that is not so",
        ClaimVerdict::Misprint => "it does not, and the source's own definitions decide",
        ClaimVerdict::Unjudged(UnjudgedReason::Construction) => {
            "it could not be otherwise: arithmetic, a model fitted to the statement, print beside print"
        }
        ClaimVerdict::Unjudged(UnjudgedReason::Reading) => "a slip of notation",
        ClaimVerdict::Unjudged(UnjudgedReason::StandIn) => {
            "data are private or numbers lost; a stand-in is measured"
        }
        ClaimVerdict::Unjudged(UnjudgedReason::Shown) => {
            "a drawing, an algorithm in words, or what the source leaves out: what the program does"
        }
        ClaimVerdict::Unjudged(UnjudgedReason::Timed) => "a time, which depends on the machine",
        ClaimVerdict::Unjudged(UnjudgedReason::Quoted) => "quoted by the source from elsewhere",
    }
}
