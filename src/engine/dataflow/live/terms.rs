//! The terms of the live documents on one worker, stored compactly, and how many documents hold each feature.
//!
//! [`FeatureNumbers`] gives each feature a number. A document is the ascending numbers of its features, as
//! differences, and their counts, both in LEB128: two to four bytes a term, where uncoded features and counts
//! take twelve. The number of a feature without holders is reused.

use hashbrown::HashTable;

use dupflow_core::text::Terms;

/// Numbers of features.
#[derive(Debug, Default)]
pub(super) struct FeatureNumbers {
    entries: Vec<FeatureEntry>,
    free: Vec<u32>,
    by_feature: HashTable<u32>,
}

#[derive(Clone, Copy, Debug)]
struct FeatureEntry {
    feature: u64,
    /// Documents that have the feature.
    holders: u32,
}

/// The terms of one document, by numbers of a [`FeatureNumbers`].
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct CodedTerms(Box<[u8]>);

impl FeatureNumbers {
    /// Adds a document with these terms.
    pub(super) fn insert(&mut self, terms: &Terms) -> CodedTerms {
        let mut numbered: Vec<(u32, u64)> = terms
            .ids
            .iter()
            .zip(&terms.counts)
            .map(|(feature, count)| (self.hold(*feature), *count))
            .collect();
        numbered.sort_unstable();
        let mut bytes = Vec::with_capacity(3 * numbered.len());
        let mut last = 0;
        for (number, count) in numbered {
            write((number - last).into(), &mut bytes);
            write(count, &mut bytes);
            last = number;
        }
        CodedTerms(bytes.into())
    }

    /// Removes a document with these terms.
    pub(super) fn remove(&mut self, coded: &CodedTerms) {
        for (number, _) in coded.iter() {
            let entry = &mut self.entries[number as usize];
            entry.holders -= 1;
            if entry.holders == 0 {
                let feature = entry.feature;
                let found = self.by_feature.find_entry(feature, |n| *n == number);
                found.expect("every feature with a number is in the table").remove();
                self.free.push(number);
            }
        }
    }

    /// Decodes the terms of a document.
    pub(super) fn terms(&self, coded: &CodedTerms) -> Terms {
        let mut terms: Vec<(u64, u64)> =
            coded.iter().map(|(number, count)| (self.entries[number as usize].feature, count)).collect();
        terms.sort_unstable();
        let (ids, counts): (Vec<_>, Vec<_>) = terms.into_iter().unzip();
        Terms { ids: ids.into(), counts: counts.into() }
    }

    /// Every feature, with the number of documents that have it.
    pub(super) fn holders(&self) -> impl Iterator<Item = (u64, u32)> {
        let held = self.entries.iter().filter(|entry| entry.holders > 0);
        held.map(|entry| (entry.feature, entry.holders))
    }

    /// The number of a feature, with one more document counted for it.
    #[expect(clippy::cast_possible_truncation, reason = "2^32 features would take 64 gigabytes")]
    fn hold(&mut self, feature: u64) -> u32 {
        let entries = &mut self.entries;
        if let Some(number) = self.by_feature.find(feature, |n| entries[*n as usize].feature == feature) {
            entries[*number as usize].holders += 1;
            return *number;
        }
        let entry = FeatureEntry { feature, holders: 1 };
        let number = match self.free.pop() {
            Some(number) => {
                entries[number as usize] = entry;
                number
            }
            None => {
                entries.push(entry);
                (entries.len() - 1) as u32
            }
        };
        self.by_feature.insert_unique(feature, number, |n| self.entries[*n as usize].feature);
        number
    }
}

impl CodedTerms {
    /// Numbers and counts, by ascending number.
    fn iter(&self) -> impl Iterator<Item = (u32, u64)> {
        let mut rest = &*self.0;
        let mut number = 0;
        std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            number += u32::try_from(read(&mut rest)).expect("features are numbered in 32 bits");
            Some((number, read(&mut rest)))
        })
    }
}

/// Appends a number in LEB128: seven bits a byte, the lowest first, the high bit set on all but the last.
#[expect(clippy::cast_possible_truncation, reason = "seven bits are meant")]
fn write(mut value: u64, bytes: &mut Vec<u8>) {
    while value >= 0x80 {
        bytes.push(value as u8 | 0x80);
        value >>= 7;
    }
    bytes.push(value as u8);
}

/// Decodes the number at the front, as [`write`] encodes it, and removes it from `bytes`.
fn read(bytes: &mut &[u8]) -> u64 {
    let mut value = 0;
    for shift in (0..).step_by(7) {
        let (byte, rest) = bytes.split_first().expect("a coded number is complete");
        *bytes = rest;
        value |= u64::from(byte & 0x7f) << shift;
        if byte & 0x80 == 0 {
            break;
        }
    }
    value
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use dupflow_core::hash::mix;

    fn terms(text: &BTreeMap<u64, u64>) -> Terms {
        Terms { ids: text.keys().copied().collect(), counts: text.values().copied().collect() }
    }

    /// Documents are added and removed: terms are read back as they were written, holders are counted, and
    /// numbers are reused.
    #[test]
    fn terms_are_kept_and_holders_counted() {
        let mut vocabulary = FeatureNumbers::default();
        let mut alive: Vec<(BTreeMap<u64, u64>, CodedTerms)> = Vec::new();
        let mut most = 0;
        for step in 0..2000_u64 {
            if mix(step).is_multiple_of(3) && !alive.is_empty() {
                let at = usize::try_from(mix(step ^ 1)).unwrap() % alive.len();
                vocabulary.remove(&alive.swap_remove(at).1);
            } else if alive.len() < 40 {
                let count = |i: u64| (mix(step << 8 | i) % 7).pow(12).max(1);
                let text: BTreeMap<u64, u64> =
                    (0..mix(step ^ 2) % 50).map(|i| (mix(mix(step << 9 | i) % 300), count(i))).collect();
                let coded = vocabulary.insert(&terms(&text));
                alive.push((text, coded));
            }
            let mut expected: BTreeMap<u64, u32> = BTreeMap::new();
            for (text, coded) in &alive {
                text.keys().for_each(|feature| *expected.entry(*feature).or_default() += 1);
                assert_eq!(vocabulary.terms(coded), terms(text));
            }
            most = most.max(expected.len());
            assert_eq!(vocabulary.holders().collect::<BTreeMap<_, _>>(), expected);
        }
        assert!(most > 200 && vocabulary.entries.len() <= most, "{most} {}", vocabulary.entries.len());
    }

    #[test]
    fn numbers_of_every_length() {
        for value in [0, 1, 127, 128, 16_383, 16_384, u32::MAX.into(), u64::MAX] {
            let mut bytes = Vec::new();
            write(value, &mut bytes);
            let mut rest = &*bytes;
            assert_eq!((read(&mut rest), rest.len()), (value, 0));
        }
    }
}
