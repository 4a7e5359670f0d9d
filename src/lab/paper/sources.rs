//! The sources and their items.

use std::sync::LazyLock;

/// A source.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum PaperSource {
    /// 000: the staged filter.
    Staged,
    /// 001: SimHash.
    SimHash,
    /// 002: permuted tables.
    Permuted,
    /// 003: groups of bits.
    Groups,
    /// 004: sectional MinHash.
    Sectional,
}

impl PaperSource {
    /// All sources, by their numbers.
    pub const ALL: [Self; 5] = [Self::Staged, Self::SimHash, Self::Permuted, Self::Groups, Self::Sectional];

    /// Its number, three digits.
    pub fn name(self) -> &'static str {
        match self {
            Self::Staged => "000",
            Self::SimHash => "001",
            Self::Permuted => "002",
            Self::Groups => "003",
            Self::Sectional => "004",
        }
    }

    /// Authors and title.
    pub fn title(self) -> &'static str {
        match self {
            Self::Staged => {
                "Yuan, Wang, Peng & Zhang (2019), the staged filter over consistent weighted samples"
            }
            Self::SimHash => "the SimHash project's page",
            Self::Permuted => "a description of Manku, Jain & Das Sarma (2007), permuted tables",
            Self::Groups => "Yuan, Long, Zhang & Gui (2012), one-bit fingerprints, alg.G and alg.H",
            Self::Sectional => "Hassanian-esfahani & Kargar (2018), sectional MinHash",
        }
    }

    /// Its items.
    pub fn items(self) -> impl Iterator<Item = &'static Item> {
        ITEMS.iter().filter(move |item| item.source == self)
    }
}

/// A table, figure, example, algorithm, design, problem or headline of a source.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Item {
    /// Its source.
    pub source: PaperSource,
    /// The id: the source's number, then T, F, E, A, D, P, H or Q and the source's own number; X for what the
    /// source leaves out.
    pub id: &'static str,
    /// The quantity that is compared.
    pub quantity: &'static str,
    /// Its unit; "1" for a share, a count or a factor, "-" for what has no number.
    pub unit: &'static str,
    /// The statement of the source that it stands for, in other words.
    pub statement: &'static str,
}

/// All items, in order: lines of `items.tsv`, each an id, a quantity, its unit and a statement.
pub static ITEMS: LazyLock<Vec<Item>> = LazyLock::new(|| {
    let item = |line: &'static str| {
        let cells: Vec<&str> = line.split('\t').collect();
        let [id, quantity, unit, statement] = cells[..] else { panic!("four cells: {line}") };
        let source = PaperSource::ALL.into_iter().find(|source| id.starts_with(source.name()));
        Item { source: source.expect("an id begins with its source"), id, quantity, unit, statement }
    };
    include_str!("items.tsv").lines().map(item).collect()
});

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_item_is_answered_and_named() {
        for source in PaperSource::ALL {
            let items: BTreeSet<_> = source.items().map(|item| item.id).collect();
            let answered: BTreeSet<_> =
                source.sections().iter().flat_map(|section| section.items).copied().collect();
            assert_eq!(answered, items);
        }
        for Item { id, quantity, unit, statement, .. } in ITEMS.iter() {
            assert!(![quantity, unit, statement].iter().any(|words| words.is_empty()), "{id}");
        }
    }
}
