//! Several blockings used together: two sketches that share a block of any of them are candidates.
//!
//! In: a sketch. Out: the keys of each blocking. The table numbers of the second blocking follow those of the
//! first. A pair is a candidate with probability `1 - (1 - P1) (1 - P2)` if the two blockings are
//! independent.
//!
//! Each table keeps the [rule](HotRule) of its own blocking.

use std::sync::Arc;

use super::blocking::Blocking;
use super::hot::HotRule;
use super::key::BlockKey;
use super::near::NearRule;
use crate::sketch::SketchRef;

/// The blocks of several blockings.
#[derive(Clone, Debug)]
pub struct CombinedBlocking {
    /// Each with its first table.
    parts: Box<[(Arc<dyn Blocking>, u16)]>,
    tables: usize,
}

impl CombinedBlocking {
    /// Combines the blockings, in this order of tables.
    ///
    /// # Panics
    /// If they have more than 65,536 tables together.
    pub fn new(blockings: impl IntoIterator<Item = Arc<dyn Blocking>>) -> Self {
        let mut tables = 0;
        let place = |blocking: Arc<dyn Blocking>| {
            let first = u16::try_from(tables).expect("a table's number has 16 bits");
            tables += blocking.tables();
            (blocking, first)
        };
        let parts: Box<[_]> = blockings.into_iter().map(place).collect();
        assert!(tables <= 1 << 16, "{tables} tables");
        Self { parts, tables }
    }

    /// The blocking of a table, and the table's number within it.
    fn part(&self, table: u16) -> Option<(&dyn Blocking, u16)> {
        let (blocking, first) = self.parts.iter().rev().find(|(_, first)| *first <= table)?;
        Some((&**blocking, table - first))
    }
}

impl Blocking for CombinedBlocking {
    fn keys(&self, sketch: SketchRef<'_>, out: &mut Vec<BlockKey>) {
        for (blocking, first) in &self.parts {
            let before = out.len();
            blocking.keys(sketch, out);
            out[before..].iter_mut().for_each(|key| key.table += first);
        }
    }

    fn tables(&self) -> usize {
        self.tables
    }

    fn rule(&self, table: u16) -> HotRule {
        self.part(table).map_or(HotRule::NEVER, |(blocking, table)| blocking.rule(table))
    }

    fn near(&self, table: u16) -> Option<NearRule> {
        self.part(table).and_then(|(blocking, table)| blocking.near(table))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::block::Banding;
    use crate::block::hamming::{Design, DesignKind, HammingTables};
    use crate::hash::mix;

    #[test]
    fn tables_of_the_second_stand_behind_those_of_the_first() {
        let bands: Arc<dyn Blocking> = Arc::new(Banding::new(64, 4, 16, HotRule::NEVER));
        let design = Design::new(64, 3, DesignKind::OneLevel { blocks: 4 }).unwrap();
        let tables: Arc<dyn Blocking> = Arc::new(HammingTables::new(&design, HotRule::NEVER).unwrap());
        let both = CombinedBlocking::new([Arc::clone(&bands), Arc::clone(&tables)]);
        assert_eq!(both.tables(), 8);
        let keys = |blocking: &dyn Blocking| {
            let mut keys = Vec::new();
            blocking.keys(SketchRef { words: &[mix(1)], features: &[] }, &mut keys);
            keys
        };
        let behind = |key: BlockKey| BlockKey::new(key.table + 4, key.hash());
        let expected: Vec<_> =
            keys(&*bands).into_iter().chain(keys(&*tables).into_iter().map(behind)).collect();
        assert_eq!(keys(&both), expected);
        assert!(expected.iter().all(|key| usize::from(key.table) < both.tables()));
    }

    #[test]
    fn each_table_keeps_the_rule_of_its_blocking() {
        let hot = HotRule { cap: 8, leaders: 1, ..HotRule::NEVER };
        let bands: Arc<dyn Blocking> = Arc::new(Banding::new(64, 4, 16, hot));
        let design = Design::new(64, 3, DesignKind::OneLevel { blocks: 4 }).unwrap();
        let tables: Arc<dyn Blocking> = Arc::new(HammingTables::new(&design, HotRule::NEVER).unwrap());
        for (both, first) in [([&bands, &tables], 0), ([&tables, &bands], 4)] {
            let both = CombinedBlocking::new(both.map(Arc::clone));
            for table in 0..8 {
                let is_band = (first..first + 4).contains(&table);
                assert_eq!(both.rule(table), if is_band { hot } else { HotRule::NEVER });
                assert_eq!(both.near(table), if is_band { None } else { tables.near(table % 4) });
                assert_eq!(both.near(table).is_none(), is_band);
            }
        }
    }
}
