//! Document frequencies of a corpus, and the inverse document frequency of a feature.
//!
//! The distinct features of every document -> N, the number of documents, and df, the number of documents
//! that hold a feature, for each feature -> the inverse document frequency (IDF) of any feature, by one of
//! two formulas ([`IdfForm`]). A feature that no document holds has df = 0.
//!
//! A table is immutable. Sketches made with two different tables are as incomparable as sketches with two
//! different seeds, so a table is part of the scheme, represented there by its fingerprint. Logarithms are
//! computed by `libm`, not by the platform's library, because the last bit of a weight can change a sketch.
//!
//! Reference: K. Spärck Jones, *A statistical interpretation of term specificity and its application in
//! retrieval* (1972).

use std::fmt;

use hashbrown::HashMap;
use serde::{Serialize, Serializer};

use crate::hash::{self, mix};

/// The formula from document frequency to IDF.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum IdfForm {
    /// `ln((1 + N) / (1 + df)) + 1`; at least 1 where df <= N.
    #[default]
    Smooth,
    /// `ln(N / (df + 1))`, and 0 where that is negative: features of nearly all documents do not count.
    Paper,
}

impl IdfForm {
    /// The name in a pipeline file.
    pub fn name(self) -> &'static str {
        match self {
            Self::Smooth => "smooth",
            Self::Paper => "paper",
        }
    }

    /// The IDF of a feature that `holders` of `documents` hold; 0 or more.
    pub fn idf(self, documents: u64, holders: u32) -> f64 {
        let (n, df) = (documents as f64, f64::from(holders));
        match self {
            Self::Smooth => (libm::log((1.0 + n) / (1.0 + df)) + 1.0).max(0.0),
            Self::Paper => libm::log(n / (df + 1.0)).max(0.0),
        }
    }
}

/// The document frequencies of a corpus.
///
/// Uses 12 bytes a feature, and a directory of less than one byte a feature. Ids are hashes, so their first
/// bits say where in the sorted list they are.
#[derive(Clone)]
pub struct IdfTable {
    documents: u64,
    /// Features, ascending, distinct.
    ids: Box<[u64]>,
    /// df of each feature, 1 or more.
    holders: Box<[u32]>,
    /// `directory[i]` is the index in `ids` where directory slot i begins, a slot being given by the first
    /// bits of an id. The number of slots is a power of two; the last entry is the number of ids.
    directory: Box<[u32]>,
    fingerprint: u64,
}

/// Average number of features in a directory slot: one or two cache lines.
const PLACE: usize = 16;

impl IdfTable {
    /// The table of `documents` documents, from features and their numbers of holders, in any order. The
    /// holders of a repeated feature are added; a feature with 0 holders is left out.
    ///
    /// # Panics
    /// If there are more than 2^32 - 1 features.
    pub fn new(documents: u64, frequencies: impl IntoIterator<Item = (u64, u32)>) -> Self {
        let mut entries: Vec<(u64, u32)> =
            frequencies.into_iter().filter(|(_, holders)| *holders > 0).collect();
        entries.sort_unstable();
        entries.dedup_by(|(id, holders), (kept, sum)| {
            let same = id == kept;
            *sum = if same { sum.saturating_add(*holders) } else { *sum };
            same
        });
        let end = u32::try_from(entries.len()).expect("fewer than 2^32 features");
        let places = (entries.len() / PLACE).next_power_of_two();
        let mut directory = Vec::with_capacity(places + 1);
        let mut first = 0;
        for place in 0..places {
            first += entries[first..].partition_point(|(id, _)| place_of(*id, places) < place);
            directory.push(u32::try_from(first).unwrap_or(end));
        }
        directory.push(end);
        let sum = entries.iter().fold(mix(documents), |sum: u64, (id, holders)| {
            sum.wrapping_add(hash::fold(id ^ hash::PI[6], mix(u64::from(*holders))))
        });
        Self {
            documents,
            ids: entries.iter().map(|(id, _)| *id).collect(),
            holders: entries.iter().map(|(_, holders)| *holders).collect(),
            directory: directory.into(),
            fingerprint: mix(sum),
        }
    }

    /// Counts the table of a corpus from the distinct features of each document. Documents without features
    /// are not counted.
    pub fn count<I: AsRef<[u64]>>(corpus: impl IntoIterator<Item = I>) -> Self {
        let mut holders: HashMap<u64, u32, hash::BuildIdentityHasher> = HashMap::default();
        let mut documents = 0;
        for features in corpus {
            let features = features.as_ref();
            documents += u64::from(!features.is_empty());
            for &feature in features {
                let count = holders.entry(feature).or_default();
                *count = count.saturating_add(1);
            }
        }
        Self::new(documents, holders)
    }

    /// N, the number of documents.
    pub fn documents(&self) -> u64 {
        self.documents
    }

    /// Number of features with at least one holder.
    pub fn len(&self) -> usize {
        self.ids.len()
    }

    /// Whether no feature has a holder.
    pub fn is_empty(&self) -> bool {
        self.ids.is_empty()
    }

    /// df, the number of documents that hold the feature.
    pub fn holders(&self, feature: u64) -> u32 {
        let place = place_of(feature, self.directory.len() - 1);
        let (first, end) = (self.directory[place] as usize, self.directory[place + 1] as usize);
        self.ids[first..end].binary_search(&feature).map_or(0, |at| self.holders[first + at])
    }

    /// The IDF of a feature, 0 or more.
    pub fn idf(&self, feature: u64, form: IdfForm) -> f64 {
        form.idf(self.documents, self.holders(feature))
    }

    /// Features and their numbers of holders, by ascending feature.
    pub fn iter(&self) -> impl Iterator<Item = (u64, u32)> {
        self.ids.iter().copied().zip(self.holders.iter().copied())
    }

    /// Stable 64-bit hash of N and of all features with their holders.
    pub fn fingerprint(&self) -> u64 {
        self.fingerprint
    }
}

/// The directory slot of a feature, by its first bits; `places` is a power of two.
#[expect(clippy::cast_possible_truncation, reason = "below the number of places")]
fn place_of(feature: u64, places: usize) -> usize {
    ((u128::from(feature) * places as u128) >> 64) as usize
}

impl PartialEq for IdfTable {
    /// Compares fingerprints, as schemes do.
    fn eq(&self, other: &Self) -> bool {
        self.fingerprint == other.fingerprint
    }
}

impl Eq for IdfTable {}

/// Shows the fingerprint and N.
impl fmt::Debug for IdfTable {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "IdfTable({:016x} of {} documents)", self.fingerprint, self.documents)
    }
}

impl Serialize for IdfTable {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{:016x} of {} documents", self.fingerprint, self.documents))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    #[expect(clippy::float_cmp, reason = "0 and 1 are exact")]
    fn formulas_by_hand() {
        let near =
            |found: f64, expected: f64| assert!((found - expected).abs() < 1e-15, "{found} {expected}");
        near(IdfForm::Smooth.idf(3, 1), 2.0_f64.ln() + 1.0);
        near(IdfForm::Smooth.idf(9, 0), 10.0_f64.ln() + 1.0);
        near(IdfForm::Paper.idf(8, 1), 4.0_f64.ln());
        assert_eq!(IdfForm::Smooth.idf(5, 5), 1.0);
        assert_eq!(IdfForm::Paper.idf(5, 4), 0.0);
        assert_eq!(IdfForm::Paper.idf(5, 5), 0.0, "clipped");
        assert_eq!(IdfForm::Paper.idf(0, 0), 0.0, "an empty corpus");
    }

    #[test]
    fn holders_are_looked_up() {
        for features in [0, 1, 2, 15, 16, 17, 1000, 5000] {
            let holders = |i: u64| u32::try_from(1 + i % 7).unwrap();
            let table = IdfTable::new(10, (0..features).map(|i| (mix(i), holders(i))));
            assert_eq!(table.len() as u64, features);
            for i in 0..features {
                assert_eq!(table.holders(mix(i)), holders(i));
                assert_eq!(table.holders(mix(i + features)), 0);
            }
            assert_eq!((table.holders(0), table.holders(u64::MAX)), (u32::from(features > 0), 0));
            let again = IdfTable::new(10, table.iter());
            assert_eq!(again.fingerprint(), table.fingerprint());
        }
    }

    #[test]
    fn fingerprint_covers_all_entries_in_any_order() {
        let table = |documents, entries: &[(u64, u32)]| {
            IdfTable::new(documents, entries.iter().copied()).fingerprint()
        };
        let one = table(9, &[(7, 1), (8, 2)]);
        assert_eq!(one, table(9, &[(8, 2), (5, 0), (7, 1)]));
        assert_eq!(one, table(9, &[(8, 1), (7, 1), (8, 1)]), "holders are added");
        for other in
            [table(8, &[(7, 1), (8, 2)]), table(9, &[(7, 2), (8, 1)]), table(9, &[(7, 1)]), table(9, &[])]
        {
            assert_ne!(one, other);
        }
    }

    #[test]
    fn documents_without_a_feature_do_not_count() {
        let table = IdfTable::count([vec![1, 2], vec![], vec![2]]);
        assert_eq!((table.documents(), table.holders(1), table.holders(2)), (2, 1, 2));
    }
}
