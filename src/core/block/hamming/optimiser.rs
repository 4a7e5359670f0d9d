//! The choice of a design: ranks designs by cost, and warns where a scan is no slower.
//!
//! In: f, k, the number of documents, a memory budget, and the costs of a probe and of an entry. Out: every
//! design of moderate size with its [`Estimate`], the cheapest first, those beyond the budget last.
//!
//! Rule: `cost = c_probe probes + c_entry entries`. A probe is one or two cache misses, an entry a few
//! instructions. The chosen design is part of the result that a pipeline defines, so the stream uses the same
//! constants on every machine ([`Costs::default`]); `STUDY=1000000:64:3 cargo bench --bench hamming` measures
//! them.
//!
//! Reference: Manku, Jain and Das Sarma (2007), section 3.2, leave this choice to the reader.

use std::fmt;

use super::{Design, DesignError, DesignKind, DesignUse, Estimate, MOST_KEYS};

/// The costs of a search, relative to each other.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Costs {
    /// A look-up in a table.
    pub probe: f64,
    /// An entry that is read and compared.
    pub entry: f64,
}

impl Default for Costs {
    /// A probe costs as much as 20 entries.
    fn default() -> Self {
        Self { probe: 20.0, entry: 1.0 }
    }
}

/// A search to choose a design for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Workload {
    /// f, bits of a fingerprint.
    pub bits: usize,
    /// k, inclusive.
    pub radius: usize,
    /// n, the number of fingerprints.
    pub documents: u64,
    /// Most bytes of all tables, inclusive.
    pub budget_bytes: u64,
    /// An index of a corpus, or blocks in a stream.
    pub form: DesignUse,
    /// The costs of a probe and of an entry.
    pub costs: Costs,
}

/// A design with its expected cost.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Ranked {
    /// The design.
    pub design: Design,
    /// Its probes, entries and bytes.
    pub estimate: Estimate,
    /// In the unit of the [`Costs`].
    pub cost: f64,
    /// Whether its tables are within the budget and, in a stream, the expected blocks within the cap.
    pub fits: bool,
}

/// Most tables of a design that is ranked, inclusive.
const MOST_TABLES: u64 = 4000;

impl Workload {
    /// Blocks of at most `cap` sketches (inclusive) in a stream of `documents` documents. A run and the
    /// `plan` command use this workload.
    pub fn stream(bits: usize, radius: usize, documents: u64, cap: usize) -> Self {
        let (form, costs) = (DesignUse::Stream { cap }, Costs::default());
        Self { bits, radius, documents, budget_bytes: u64::MAX, form, costs }
    }

    /// All designs: those that fit first, then by cost; the simpler one first where two costs are equal.
    ///
    /// One level of up to 20 blocks, two levels of up to 8 sub-blocks, multi-index of up to 8 blocks, groups
    /// and conjunctions of up to 4 groups beyond the radius, and the scan.
    pub fn designs(&self) -> Vec<Ranked> {
        let k = self.radius;
        let kinds = (k + 1..=20)
            .map(|blocks| DesignKind::OneLevel { blocks })
            .chain((k + 1..=8).map(|sub_blocks| DesignKind::TwoLevel { sub_blocks }))
            .chain((1..=(k + 1).min(8)).map(|blocks| DesignKind::MultiIndex { blocks }))
            .chain((1..=4).map(|surplus| DesignKind::Groups { surplus }))
            .chain((1..=4).map(|surplus| DesignKind::Conjunctions { surplus }))
            .chain([DesignKind::Scan]);
        let mut ranked: Vec<Ranked> = kinds
            .filter_map(|kind| Design::new(self.bits, k, kind).ok())
            .filter(|design| self.is_feasible(design))
            .map(|design| self.rank(design))
            .collect();
        ranked.sort_by(|a, b| b.fits.cmp(&a.fits).then(a.cost.total_cmp(&b.cost)));
        ranked
    }

    /// The cheapest permuted tables or multi-index within the budget; `None` if none is within it.
    pub fn best(&self) -> Option<Ranked> {
        let tables = |kind| {
            matches!(
                kind,
                DesignKind::OneLevel { .. } | DesignKind::TwoLevel { .. } | DesignKind::MultiIndex { .. }
            )
        };
        self.designs().into_iter().find(|ranked| ranked.fits && tables(ranked.design.kind()))
    }

    /// The expected cost of a design for this workload.
    pub fn rank(&self, design: Design) -> Ranked {
        let estimate = design.estimate(self.documents, self.form);
        let cost = self.costs.probe * estimate.probes + self.costs.entry * estimate.entries;
        let fits = estimate.bytes <= self.budget_bytes as f64
            && full_blocks(&design, self.documents, self.form).is_none();
        Ranked { design, estimate, cost, fits }
    }

    fn is_feasible(&self, design: &Design) -> bool {
        match self.form {
            DesignUse::Index => design.tables() <= MOST_TABLES,
            DesignUse::Stream { .. } => design.keys() <= MOST_KEYS,
        }
    }
}

impl Design {
    /// The design with this number of permuted tables; of two such designs, the one with fewer candidates.
    ///
    /// # Errors
    /// If no design has this number of tables.
    pub fn permuted(bits: usize, radius: usize, tables: u64) -> Result<Self, DesignError> {
        // The numbers of a family ascend. The first number above the requested one is reported as possible;
        // later ones are not needed.
        let family = |kind: fn(usize) -> DesignKind| {
            let mut beyond = false;
            (radius + 1..=bits)
                .map_while(move |blocks| Self::new(bits, radius, kind(blocks)).ok())
                .take_while(move |design| !std::mem::replace(&mut beyond, design.tables() > tables))
        };
        let all: Vec<Self> = family(|blocks| DesignKind::OneLevel { blocks })
            .chain(family(|sub_blocks| DesignKind::TwoLevel { sub_blocks }))
            .collect();
        let candidates = |design: &Self| design.estimate(1, DesignUse::Index).candidates;
        all.iter()
            .filter(|design| design.tables() == tables)
            .min_by(|a, b| candidates(a).total_cmp(&candidates(b)))
            .copied()
            .ok_or_else(|| {
                let mut numbers: Vec<u64> = all.iter().map(Self::tables).collect();
                numbers.sort_unstable();
                numbers.dedup();
                let near = numbers.partition_point(|n| *n < tables);
                let shown = &numbers[near.saturating_sub(2)..(near + 2).min(numbers.len())];
                let possible = shown.iter().map(u64::to_string).collect::<Vec<_>>().join(", ");
                DesignError::Tables { found: tables, radius, bits, possible }
            })
    }
}

/// A warning about a design.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Advice {
    /// The lists that a query reads are too large a share of the corpus.
    LongLists {
        /// Entries read for each document of the corpus.
        share: f64,
    },
    /// The corpus is so small that a scan is as fast.
    FewDocuments,
    /// The blocks of a stream are expected to be hot; most pairs that share only hot blocks are missed.
    FullBlocks {
        /// Expected sketches in a block of the table on the fewest bits.
        sketches: f64,
        /// Most sketches of a block that is not hot, inclusive.
        cap: usize,
    },
    /// Blocks may be hot, so recall is not guaranteed.
    HotBlocks {
        /// Most sketches of a block that is not hot, inclusive.
        cap: usize,
    },
}

/// Most list entries that alg.G and alg.H may read for each document of the corpus, inclusive; with more a
/// scan is faster.
const MOST_SHARE: f64 = 0.2;

/// Below this number of fingerprints a scan is faster than any table.
const FEW_DOCUMENTS: u64 = 100_000;

/// Warnings about a design for `documents` documents; usually none.
pub fn advice(design: &Design, documents: u64, form: DesignUse) -> Vec<Advice> {
    let long = match design.kind() {
        DesignKind::Groups { surplus } | DesignKind::Conjunctions { surplus } => {
            let groups = (design.radius() + surplus) as f64;
            let share = groups / (design.bits() as f64 / groups).exp2();
            (share > MOST_SHARE).then_some(Advice::LongLists { share })
        }
        _ => None,
    };
    let few = documents < FEW_DOCUMENTS && design.kind() != DesignKind::Scan;
    long.into_iter()
        .chain(few.then_some(Advice::FewDocuments))
        .chain(full_blocks(design, documents, form))
        .collect()
}

/// In a stream: a warning if blocks are expected above the cap. (The one block of a scan is never hot.)
fn full_blocks(design: &Design, documents: u64, form: DesignUse) -> Option<Advice> {
    let DesignUse::Stream { cap } = form else { return None };
    let sketches = design.largest_block(documents);
    (sketches > cap as f64 && design.kind() != DesignKind::Scan)
        .then_some(Advice::FullBlocks { sketches, cap })
}

impl fmt::Display for Advice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::LongLists { share } => write!(
                f,
                "a query reads about {share:.2} list entries for each document of the corpus: above \
                {MOST_SHARE} a scan \
                 or banding does less work"
            ),
            Self::FullBlocks { sketches, cap } => write!(
                f,
                "blocks of {sketches:.0} sketches are expected: above cap = {cap} they are hot, and most of \
                their pairs are missed"
            ),
            Self::HotBlocks { cap } => write!(
                f,
                "a pair within the distance is missed where each block that it shares has more than cap = \
                {cap} sketches; leave \
                 blocking.hot out, and none is"
            ),
            Self::FewDocuments => {
                write!(f, "below {FEW_DOCUMENTS} fingerprints a scan is as fast as any table")
            }
        }
    }
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "small whole numbers and powers of two are exact")]
mod tests {
    use super::*;

    fn workload(documents: u64, form: DesignUse) -> Workload {
        Workload { bits: 64, radius: 3, documents, budget_bytes: 1 << 36, form, costs: Costs::default() }
    }

    #[test]
    fn more_documents_want_longer_prefixes() {
        let tables = |n| workload(n, DesignUse::Index).best().unwrap().design.tables();
        assert_eq!((tables(1_000_000), tables(10_000_000), tables(100_000_000)), (4, 10, 10));
    }

    #[test]
    fn all_designs_are_ranked_and_those_beyond_the_budget_come_last() {
        for form in [DesignUse::Index, DesignUse::Stream { cap: 512 }] {
            let mut workload = workload(10_000_000, form);
            workload.budget_bytes = 500_000_000;
            let ranked = workload.designs();
            let fit = ranked.iter().take_while(|r| r.fits).count();
            assert!(fit > 0 && ranked[fit..].iter().all(|r| !r.fits));
            assert!(ranked[..fit].is_sorted_by(|a, b| a.cost <= b.cost));
            assert!(ranked[fit..].is_sorted_by(|a, b| a.cost <= b.cost));
            assert!(ranked.iter().any(|r| r.design.kind() == DesignKind::Scan));
        }
    }

    #[test]
    fn in_a_stream_a_near_block_costs_a_key_for_each_bit_left_out() {
        let two = Design::new(64, 3, DesignKind::MultiIndex { blocks: 2 }).unwrap();
        let ranked = workload(1 << 31, DesignUse::Stream { cap: 512 }).rank(two);
        assert_eq!((ranked.estimate.probes, ranked.estimate.entries), (64.0, 64.0));
        assert_eq!(ranked.cost, 20.0 * 64.0 + 64.0);
    }

    #[test]
    fn groups_of_few_bits_lose_to_a_scan() {
        let groups = |similarity| {
            let radius = crate::block::hamming::radius(400, similarity);
            Design::new(400, radius, DesignKind::Groups { surplus: 3 }).unwrap()
        };
        assert_eq!(advice(&groups(0.9), 300_000, DesignUse::Index), []);
        let [Advice::LongLists { share }] = advice(&groups(0.7), 300_000, DesignUse::Index)[..] else {
            panic!("other advice")
        };
        assert!((share - 63.0 / (400.0f64 / 63.0).exp2()).abs() < 1e-12);
        assert_eq!(advice(&groups(0.9), 99_999, DesignUse::Index), [Advice::FewDocuments]);
    }

    #[test]
    fn blocks_above_the_cap_do_not_fit() {
        let four = Design::new(64, 3, DesignKind::OneLevel { blocks: 4 }).unwrap();
        let form = DesignUse::Stream { cap: 16 };
        assert_eq!(advice(&four, 1 << 20, form), []);
        assert_eq!(advice(&four, 1 << 21, form), [Advice::FullBlocks { sketches: 32.0, cap: 16 }]);
        assert!(workload(1 << 20, form).rank(four).fits && !workload(1 << 21, form).rank(four).fits);
    }

    #[test]
    fn permuted_tables_by_their_number() {
        let kind = |tables| Design::permuted(64, 3, tables).map(|design| design.kind());
        assert_eq!(kind(4), Ok(DesignKind::OneLevel { blocks: 4 }));
        assert_eq!(kind(16), Ok(DesignKind::TwoLevel { sub_blocks: 4 }));
        assert_eq!(kind(10), Ok(DesignKind::OneLevel { blocks: 5 }));
        assert_eq!(kind(20), Ok(DesignKind::OneLevel { blocks: 6 }));
        assert_eq!(
            kind(12).unwrap_err().to_string(),
            "12 permuted tables do not serve radius 3 on 64 bits: possible are 4, 10, 16, 20"
        );
        assert_eq!(Design::permuted(64, 0, 1).unwrap().keys(), 1);
        assert!(Design::permuted(64, 0, 2).is_err());
    }
}
