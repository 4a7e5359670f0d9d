//! The five sources, item by item: every table, figure, example and headline, printed and measured.
//!
//! | source | is | file |
//! |---|---|---|
//! | 000 | Yuan, Wang, Peng & Zhang (2019): the staged filter over consistent weighted samples | `staged` |
//! | 001 | the SimHash project's page | `simhash` |
//! | 002 | a description of Manku, Jain & Das Sarma (2007): permuted tables | `permuted` |
//! | 003 | Yuan, Long, Zhang & Gui (2012): one-bit fingerprints, alg.G and alg.H | `groups` |
//! | 004 | Hassanian-esfahani & Kargar (2018): sectional MinHash | `sectional` |
//!
//! A [`PaperSource`] consists of [`Section`]s. A section is a function that answers one or more items at one
//! seed. Each answer is made of [`ItemLine`]s: what is printed, what was measured, and a [`Basis`]. [`Paper`]
//! asks a section at several seeds and pools their lines. A line's [`ClaimVerdict`] is computed from the
//! [`PrintedClaim`] in the basis: numbers over the seeds, and the ranges in which the statement holds. The
//! items and their order are those of [`ITEMS`]; the sections must answer all of them.
//!
//! A new item is a line of `items.tsv` and a section in the source's folder.

mod claim;
mod line;
mod sources;

mod groups;
mod permuted;
mod sectional;
mod simhash;
mod staged;

use std::path::PathBuf;

pub use claim::{ClaimedNumber, Decision, Matters, PrintedClaim};
pub use line::{Basis, ClaimVerdict, ItemLine, SectionAnswers, UnjudgedReason};
pub use sources::{ITEMS, Item, PaperSource};

use super::{EvaluateError, Findings, Study, StudyContext};
use dupflow_connectors::formats::InputLayout;

/// In this file since `sources` knows no sections.
impl PaperSource {
    /// The data that replace the source's.
    pub fn about(self) -> &'static str {
        match self {
            Self::Staged => staged::ABOUT,
            Self::SimHash => simhash::ABOUT,
            Self::Permuted => permuted::ABOUT,
            Self::Groups => groups::ABOUT,
            Self::Sectional => sectional::ABOUT,
        }
    }

    /// The sections that answer its items, in their order.
    pub fn sections(self) -> &'static [Section] {
        match self {
            Self::Staged => staged::SECTIONS,
            Self::SimHash => simhash::SECTIONS,
            Self::Permuted => permuted::SECTIONS,
            Self::Groups => groups::SECTIONS,
            Self::Sectional => sectional::SECTIONS,
        }
    }
}

/// A function that answers items of a source.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// The items, in their order.
    pub items: &'static [&'static str],
    /// How it can be repeated.
    pub effort: Effort,
    /// The function.
    pub make: fn(&SectionContext<'_>) -> Result<SectionAnswers, EvaluateError>,
}

/// How a section can be repeated.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// Takes moments and depends on no seed: asked once.
    Formula,
    /// Takes moments and gives the same result on every machine at every scale; asked at each seed, as all
    /// that follow but the last.
    Moments,
    /// Gives the same result on every machine at the same scale.
    Long,
    /// Contains times.
    Timed,
    /// Contains times and takes too long for several seeds: asked once, so that none of its lines is judged.
    Once,
}

impl Effort {
    /// At how many seeds a section is asked, where others are at `seeds`.
    pub fn seeds(self, seeds: usize) -> usize {
        if matches!(self, Self::Formula | Self::Once) { 1 } else { seeds }
    }
}

/// The environment of a section.
#[derive(Clone, Copy, Debug)]
pub struct SectionContext<'w> {
    /// Clock, threads and seed.
    pub bench: &'w StudyContext<'w>,
    /// The path of the program, which runs whole pipelines.
    pub program: &'w std::path::Path,
    /// Fraction of the full sizes, above 0; the docs show 1.
    pub scale: f64,
    /// A labelled corpus of the user, in addition to the generated ones.
    pub labelled: Option<&'w LabelledFiles>,
}

impl SectionContext<'_> {
    /// A size at this scale, at least `least`.
    #[expect(
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a size, cut to a whole number"
    )]
    pub fn size(&self, full: usize, least: usize) -> usize {
        ((full as f64 * self.scale) as usize).max(least)
    }
}

/// A labelled corpus: documents of one label are duplicates.
#[derive(Clone, Debug)]
pub struct LabelledFiles {
    /// Feeds or folders.
    pub corpus: Vec<PathBuf>,
    /// How they are read.
    pub layout: InputLayout,
    /// The path of lines "id label".
    pub labels: PathBuf,
}

/// The study of a source, or of one of its items.
#[derive(Clone, Debug)]
pub struct Paper {
    /// The source.
    pub source: PaperSource,
    /// Only the sections that answer this item, if given.
    pub item: Option<Item>,
    /// See [`SectionContext::program`].
    pub program: PathBuf,
    /// See [`SectionContext::scale`].
    pub scale: f64,
    /// Number of seeds, from that of the context on; at least 2, since one has no interval.
    pub seeds: usize,
    /// See [`SectionContext::labelled`].
    pub labelled: Option<LabelledFiles>,
}

/// The number of seeds of a verdict, unless another is asked for.
pub const SEEDS: usize = 5;

impl Section {
    /// The answers at some seeds, from that of the context on, pooled. Tables and plots are of the first.
    ///
    /// # Errors
    /// If a measurement fails.
    pub fn pooled(&self, work: &SectionContext<'_>, seeds: usize) -> Result<SectionAnswers, EvaluateError> {
        let bench = work.bench;
        let at = |seed: u64| {
            (bench.progress)(&format!("{}, seed {seed}", self.items.join(" ")));
            let bench = StudyContext { seed, ..*bench };
            (self.make)(&SectionContext { bench: &bench, ..*work })
        };
        let mut all = at(bench.seed)?;
        for seed in (bench.seed + 1..).take(self.effort.seeds(seeds) - 1) {
            all.pool(&at(seed)?);
        }
        Ok(all)
    }
}

impl Study for Paper {
    fn run(&self, bench: &StudyContext<'_>) -> Result<Findings, EvaluateError> {
        let work = SectionContext {
            bench,
            program: &self.program,
            scale: self.scale,
            labelled: self.labelled.as_ref(),
        };
        let is_wanted = |section: &&Section| self.item.is_none_or(|item| section.items.contains(&item.id));
        let mut all = SectionAnswers::default();
        for section in self.source.sections().iter().filter(is_wanted) {
            all += section.pooled(&work, self.seeds)?;
        }
        let (first, last) = (bench.seed, bench.seed + self.seeds as u64 - 1);
        let mut about = format!(
            "{} Over the seeds {first} to {last}; formulas have none. Tables and plots are of seed {first}.",
            self.source.about()
        );
        if self.scale < 1.0 {
            about += &format!(" At {} of the full sizes.", self.scale);
        }
        let findings = all.findings(self.source, about);
        // A page of one item does not replace that of all.
        let name = self.item.map_or(findings.name, |item| item.id.to_owned());
        Ok(Findings { name, ..findings })
    }
}
