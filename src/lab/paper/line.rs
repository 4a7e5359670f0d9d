//! Lines: what is printed, what is measured, and the verdict.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;

use super::super::table::{ResultTable, row};
use super::super::{Findings, Plot};
use super::claim::{Decision, PrintedClaim};
use super::sources::{ITEMS, PaperSource};

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
    /// Computed from the source's own definitions, without random numbers. If the claim holds, that is
    /// arithmetic and counts for nothing; if it fails, the print contradicts itself.
    Computed(PrintedClaim),
    /// Simulated by the source's own definitions, without its data. If the claim fails, the print contradicts
    /// itself, provided that no reading of the source rescues it.
    Defined(PrintedClaim),
    /// Measured on other data, or on a model that was not fitted to the claim.
    Measured(PrintedClaim),
    /// No verdict. The measurement may have to satisfy another claim: a theory, or an independent
    /// computation.
    Unjudged(UnjudgedReason, Option<PrintedClaim>),
}

/// Why a line is not judged.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum UnjudgedReason {
    /// It could not be otherwise: arithmetic, or one printed number beside another.
    Arithmetic,
    /// The stored text of the source has lost superscripts or signs, so that what is printed is not known.
    LostSymbols,
    /// An error of notation, found by reading, or a print that can be read in two ways.
    Reading,
    /// The source is not sufficient for a comparison: its data are private, its numbers lost, or the stand-in
    /// is fitted to the statement. Substitute data are measured.
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
    /// Over the seeds, within the least difference that would matter.
    Agrees,
    /// Beyond it.
    Differs,
    /// The print contradicts itself.
    Misprint,
    /// The interval over the seeds has values of both.
    Undecided,
    /// Not judged, for this reason.
    Unjudged(UnjudgedReason),
}

impl ClaimVerdict {
    /// All verdicts.
    pub const ALL: [Self; 11] = [
        Self::Agrees,
        Self::Differs,
        Self::Misprint,
        Self::Undecided,
        Self::Unjudged(UnjudgedReason::Arithmetic),
        Self::Unjudged(UnjudgedReason::LostSymbols),
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
            Self::Undecided => "cannot be told at this size",
            Self::Unjudged(UnjudgedReason::Arithmetic) => "arithmetic",
            Self::Unjudged(UnjudgedReason::LostSymbols) => "the text has lost symbols",
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
            Self::Computed(claim) | Self::Defined(claim) | Self::Measured(claim) => Some(claim),
            Self::Unjudged(_, claim) => claim.as_ref(),
        }
    }

    fn claim_mut(&mut self) -> Option<&mut PrintedClaim> {
        match self {
            Self::Computed(claim) | Self::Defined(claim) | Self::Measured(claim) => Some(claim),
            Self::Unjudged(_, claim) => claim.as_mut(),
        }
    }

    /// The same basis with another claim, if it has one.
    #[must_use]
    pub fn with(&self, claim: PrintedClaim) -> Self {
        let mut changed = self.clone();
        if let Some(old) = changed.claim_mut() {
            *old = claim;
        }
        changed
    }

    /// The verdict.
    pub fn verdict(&self) -> ClaimVerdict {
        match (self, self.claim().map(PrintedClaim::decision)) {
            (Self::Unjudged(..), Some(Decision::Fails)) => ClaimVerdict::Differs,
            (Self::Unjudged(reason, _), _) => ClaimVerdict::Unjudged(*reason),
            (_, Some(Decision::Open) | None) => ClaimVerdict::Undecided,
            (Self::Computed(_), Some(Decision::Holds)) => ClaimVerdict::Unjudged(UnjudgedReason::Arithmetic),
            (_, Some(Decision::Holds)) => ClaimVerdict::Agrees,
            (Self::Computed(_) | Self::Defined(_), Some(Decision::Fails)) => ClaimVerdict::Misprint,
            (Self::Measured(_), Some(Decision::Fails)) => ClaimVerdict::Differs,
        }
    }
}

impl fmt::Display for Basis {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Computed(claim) | Self::Defined(claim) | Self::Measured(claim) => claim.fmt(f),
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
    /// What the source prints of a part of an item. The measurement follows with
    /// [`measured`](Self::measured), [`judged`](Self::judged) and [`because`](Self::because).
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

    /// Adds the samples of the same line at another seed. What is shown as measured remains.
    fn pool(&mut self, other: &Self) {
        assert_eq!(
            (self.item, &self.of),
            (other.item, &other.of),
            "a section has the same lines at each seed"
        );
        if let Some((claim, more)) = self.basis.claim_mut().zip(other.basis.claim()) {
            claim.pool(more);
        }
        let kinds =
            [&self.basis, &other.basis].map(|basis| (std::mem::discriminant(basis), basis.claim().is_some()));
        assert_eq!(kinds[0], kinds[1], "{}, {}: judged in the same way at each seed", self.item, self.of);
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
    /// Adds the samples of the same section at another seed; tables and plots remain.
    ///
    /// # Panics
    /// If it has other lines.
    pub fn pool(&mut self, other: &Self) {
        assert_eq!(self.lines.len(), other.lines.len(), "a section has the same lines at each seed");
        self.lines.iter_mut().zip(&other.lines).for_each(|(line, more)| line.pool(more));
    }

    /// Orders the lines by their items. Those of one item keep their order.
    pub fn sort(&mut self) {
        self.lines.sort_by_key(|line| ITEMS.iter().position(|item| item.id == line.item));
    }

    /// What each of the answered items stands for.
    fn items(&self, source: PaperSource) -> ResultTable {
        let mut table = ResultTable::new(
            &format!("{}_items", source.name()),
            "Items",
            "The quantity of each item with its unit, and the statement of the source that it stands for, in \
                other words.",
            "quantity | unit | statement | item",
        );
        for item in source.items().filter(|item| self.lines.iter().any(|line| line.item == item.id)) {
            table.push(row![item.quantity, item.unit, item.statement, item.id]);
        }
        table
    }

    /// The number of lines with each verdict.
    pub fn summary(&self, source: PaperSource) -> ResultTable {
        let mut counts: BTreeMap<ClaimVerdict, usize> = BTreeMap::new();
        self.lines.iter().for_each(|line| *counts.entry(line.verdict()).or_default() += 1);
        let mut table = ResultTable::new(
            &format!("{}_summary", source.name()),
            "Verdicts",
            "The first four are computed over seeds from printed, measured and the least difference that \
                would matter; the others are not judged, and count for nothing.",
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
            "\"printed\" is what the source has, \"measured\" what comes out here, at the first seed. \
                \"Judged by\" has the relation, and the least difference that would matter. \"Over seeds\" \
                has the interval of the mean over the seeds (Student's t, 99 % for all numbers of a line \
                together) and the range that the statement wants; the verdict is \"agrees\" if the whole \
                interval lies in it, \"differs\" if it lies beyond. In brackets: what a line that is not \
                judged has to meet all the same, a theory or an independent computation; if its interval \
                lies beyond, the verdict is \"differs\".",
            "item | of | printed | measured | judged by | over seeds | verdict | reason",
        );
        for line in &self.lines {
            let ItemLine { item, of, printed, measured, basis, reason } = line;
            let verdict = line.verdict().to_string();
            let seeds = basis.claim().map_or_else(|| "-".to_owned(), PrintedClaim::over_seeds);
            let judged = basis.to_string();
            table.push(row![*item, &**of, &**printed, &**measured, judged, seeds, verdict, &**reason]);
        }
        table
    }

    /// All results, as findings.
    pub(super) fn findings(mut self, source: PaperSource, about: String) -> Findings {
        self.sort();
        let mut tables = vec![self.summary(source), self.answers(source), self.items(source)];
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
        ClaimVerdict::Agrees => "the whole interval is within the least difference that would matter",
        ClaimVerdict::Differs => "it is beyond: other data, another setting, or a statement that is not so",
        ClaimVerdict::Misprint => {
            "it is beyond, the source's own definitions decide, and no reading rescues the print"
        }
        ClaimVerdict::Undecided => "the interval has values of both; the line says how many seeds would tell",
        ClaimVerdict::Unjudged(UnjudgedReason::Arithmetic) => {
            "it could not be otherwise: arithmetic, or print beside print"
        }
        ClaimVerdict::Unjudged(UnjudgedReason::LostSymbols) => {
            "exponents or signs are missing in the stored text, so that the print is not known"
        }
        ClaimVerdict::Unjudged(UnjudgedReason::Reading) => {
            "a slip of notation, or a print that can be read in two ways"
        }
        ClaimVerdict::Unjudged(UnjudgedReason::StandIn) => {
            "data are private, numbers lost, or a model fitted to the statement: a stand-in is measured"
        }
        ClaimVerdict::Unjudged(UnjudgedReason::Shown) => {
            "a drawing, an algorithm in words, or what the source leaves out: what the program does"
        }
        ClaimVerdict::Unjudged(UnjudgedReason::Timed) => "a time, which depends on the machine",
        ClaimVerdict::Unjudged(UnjudgedReason::Quoted) => "quoted by the source from elsewhere",
    }
}
