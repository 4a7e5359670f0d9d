//! The sources and their items.

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
    /// A short description.
    pub what: &'static str,
}

const fn item(source: PaperSource, id: &'static str, what: &'static str) -> Item {
    Item { source, id, what }
}

/// All items, in order.
pub const ITEMS: &[Item] = &[
    item(PaperSource::Staged, "000-T1", "binomial tails, T=0.8, k=100"),
    item(PaperSource::Staged, "000-F1", "cluster process"),
    item(PaperSource::Staged, "000-F2", "sampling process"),
    item(PaperSource::Staged, "000-F3", "filter R>=T"),
    item(PaperSource::Staged, "000-F4", "bounds over k"),
    item(PaperSource::Staged, "000-F5", "tail curves"),
    item(PaperSource::Staged, "000-F6", "filter with looks"),
    item(PaperSource::Staged, "000-F7", "similarity distributions"),
    item(PaperSource::Staged, "000-F8", "accuracy and recall per bound, k=100"),
    item(PaperSource::Staged, "000-F9", "filtering rate per bound and look"),
    item(PaperSource::Staged, "000-F10", "CPU time"),
    item(PaperSource::Staged, "000-A1", "CWS sampling"),
    item(PaperSource::Staged, "000-A2", "filter loop"),
    item(PaperSource::Staged, "000-Q", "equations 2-4, tests, idf"),
    item(PaperSource::Staged, "000-H1", "85 % saved"),
    item(PaperSource::Staged, "000-H2", "10^11 comparisons"),
    item(PaperSource::Staged, "000-H3", "5000 s to 280 s"),
    item(PaperSource::Staged, "000-H4", "100 % accuracy and recall"),
    item(PaperSource::Staged, "000-H5", "quoted background"),
    item(PaperSource::SimHash, "001-P1", "similarity of two"),
    item(PaperSource::SimHash, "001-P2", "query"),
    item(PaperSource::SimHash, "001-P3", "all pairs"),
    item(PaperSource::SimHash, "001-H1", "64 bits, 95 %, false negatives"),
    item(PaperSource::SimHash, "001-E1", "5-shingles"),
    item(PaperSource::SimHash, "001-X1", "the choice of hash"),
    item(PaperSource::Permuted, "002-H1", "64 bits, k=3, 8E9"),
    item(PaperSource::Permuted, "002-E1", "41,664 probes"),
    item(PaperSource::Permuted, "002-E2", "41,664-fold space"),
    item(PaperSource::Permuted, "002-E3", "34 bits, 30 equal, 16 left"),
    item(PaperSource::Permuted, "002-D1", "4 tables of 16 bits"),
    item(PaperSource::Permuted, "002-D2", "16 tables of 28 bits"),
    item(PaperSource::Permuted, "002-A1", "permuted tables"),
    item(PaperSource::Groups, "003-T1", "CPU time G and H"),
    item(PaperSource::Groups, "003-F1", "variance curves, k=1000"),
    item(PaperSource::Groups, "003-F2", "alg.G groups"),
    item(PaperSource::Groups, "003-F3", "alg.H index"),
    item(PaperSource::Groups, "003-F4", "step curves"),
    item(PaperSource::Groups, "003-F5", "n_g at 8 bits"),
    item(PaperSource::Groups, "003-F6", "precision, recall, k=64 and 400"),
    item(PaperSource::Groups, "003-E1", "example 1"),
    item(PaperSource::Groups, "003-E2", "example 2"),
    item(PaperSource::Groups, "003-E3", "r_h=10"),
    item(PaperSource::Groups, "003-E4", "6 groups, 20 conjunctions"),
    item(PaperSource::Groups, "003-H1", "1,921 s to 273 s (in 003-T1)"),
    item(PaperSource::Groups, "003-H2", "90,260 steps"),
    item(PaperSource::Groups, "003-H3", "Var(0.7, 64)"),
    item(PaperSource::Groups, "003-H4", "Var(0.9, 64), 58 %"),
    item(PaperSource::Groups, "003-H5", "groups added, dropped"),
    item(PaperSource::Groups, "003-X1", "alg.G in the stream, k = 400, r = 0.7"),
    item(PaperSource::Groups, "003-X2", "groups added, dropped in the stream"),
    item(PaperSource::Sectional, "004-T1", "sketches"),
    item(PaperSource::Sectional, "004-T2", "data set"),
    item(PaperSource::Sectional, "004-T3", "MSE"),
    item(PaperSource::Sectional, "004-T4", "precision, recall"),
    item(PaperSource::Sectional, "004-F1", "9-attribute example"),
    item(PaperSource::Sectional, "004-F2", "variance over J"),
    item(PaperSource::Sectional, "004-F3", "variance ratio"),
    item(PaperSource::Sectional, "004-F4", "estimate against J"),
    item(PaperSource::Sectional, "004-F5", "hashing time"),
    item(PaperSource::Sectional, "004-F6", "PR curve"),
    item(PaperSource::Sectional, "004-F7", "F-measure"),
    item(PaperSource::Sectional, "004-A1", "S-MinHash"),
    item(PaperSource::Sectional, "004-H1", "MSE 1/8"),
    item(PaperSource::Sectional, "004-H2", "99.38 %, 400 hashes, eq. 9"),
    item(PaperSource::Sectional, "004-X1", "b bits of k permutations, and of one"),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_item_is_answered_once_and_in_order() {
        for source in PaperSource::ALL {
            let items: Vec<_> = source.items().map(|item| item.id).collect();
            let answered: Vec<_> =
                source.sections().iter().flat_map(|section| section.items).copied().collect();
            assert_eq!(answered, items);
        }
    }
}
