//! The five sources, item by item: every table, figure, example and headline, what is printed beside what
//! comes out here.
//!
//! | source | is | file |
//! |---|---|---|
//! | 000 | Yuan, Wang, Peng & Zhang (2019): the staged filter over consistent weighted samples | `staged` |
//! | 001 | the SimHash project's page | `simhash` |
//! | 002 | a description of Manku, Jain & Das Sarma (2007): permuted tables | `permuted` |
//! | 003 | Yuan, Long, Zhang & Gui (2012): one-bit fingerprints, alg.G and alg.H | `groups` |
//! | 004 | Hassanian-esfahani & Kargar (2018): sectional MinHash | `sectional` |
//!
//! A [`Source`] is [`Section`]s; a section is a piece of work that answers one or more items, each in
//! [`Line`]s: what is printed, what was measured, and a [`Basis`]. No line is given a [`Verdict`]: it is
//! computed from the [`Claim`] in the basis, which is (printed, measured, tolerance) under a relation. The
//! items and their order are those of [`ITEMS`]; no section may leave one out.
//!
//! A new item is a line of [`ITEMS`] and a section in the source's folder.

mod claim;
mod line;
mod sources;

mod groups;
mod permuted;
mod sectional;
mod simhash;
mod staged;

use std::path::PathBuf;

pub use claim::{Claim, Near, Tolerance};
pub use line::{Basis, Line, Made, Verdict, Why};
pub use sources::{ITEMS, Item, Source};

use super::{Bench, EvaluateError, Findings, Study};

/// Here and not where the sources stand: those who answer know what an item is.
impl Source {
    /// What stands in for its data.
    pub fn about(self) -> &'static str {
        match self {
            Self::Staged => staged::ABOUT,
            Self::SimHash => simhash::ABOUT,
            Self::Permuted => permuted::ABOUT,
            Self::Groups => groups::ABOUT,
            Self::Sectional => sectional::ABOUT,
        }
    }

    /// What answers its items, in their order.
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

/// A piece of work that answers items of a source.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// What it answers, in their order.
    pub items: &'static [&'static str],
    /// How it can be made again.
    pub effort: Effort,
    /// Does it.
    pub make: fn(&Work<'_>) -> Result<Made, EvaluateError>,
}

/// How a section can be made again.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Effort {
    /// In moments, the same on every machine, whatever the scale: a test holds the docs to it.
    Moments,
    /// The same on every machine, at the same scale.
    Long,
    /// With times in it.
    Timed,
}

/// What a section is given.
#[derive(Clone, Copy, Debug)]
pub struct Work<'w> {
    /// Clock, threads and seed.
    pub bench: &'w Bench<'w>,
    /// The program itself, to run whole pipelines as processes.
    pub program: &'w std::path::Path,
    /// The share of the full sizes to work at, above 0; 1 is what the docs show.
    pub scale: f64,
    /// A corpus of the user's with its labels, beside the generated ones.
    pub labelled: Option<&'w Labelled>,
}

impl Work<'_> {
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
pub struct Labelled {
    /// Feeds or folders.
    pub corpus: Vec<PathBuf>,
    /// Lines of "id label".
    pub labels: PathBuf,
}

/// The study of one source, or of one item of it.
#[derive(Clone, Debug)]
pub struct Paper {
    /// Which.
    pub source: Source,
    /// Only what answers this item, if one is named.
    pub item: Option<Item>,
    /// See [`Work::program`].
    pub program: PathBuf,
    /// See [`Work::scale`].
    pub scale: f64,
    /// See [`Work::labelled`].
    pub labelled: Option<Labelled>,
}

impl Study for Paper {
    fn run(&self, bench: &Bench<'_>) -> Result<Findings, EvaluateError> {
        let work =
            Work { bench, program: &self.program, scale: self.scale, labelled: self.labelled.as_ref() };
        let is_wanted = |section: &&Section| self.item.is_none_or(|item| section.items.contains(&item.id));
        let mut all = Made::default();
        for section in self.source.sections().iter().filter(is_wanted) {
            (bench.told)(&section.items.join(" "));
            all += (section.make)(&work)?;
        }
        Ok(all.findings(self.source, self.scale))
    }
}
