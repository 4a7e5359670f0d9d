//! What is found of each item, and the counts of benchmarks.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;

use serde::Serialize;

use crate::sinks::rows::FoundItem;
use dupflow_core::doc::{DocChange, DocId};
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::sketch::scaled::{features_of, words_of};
use dupflow_core::text::Shingle;

/// How items are named and counted.
pub struct ItemRules {
    /// The fewest words of an item that is compared, inclusive.
    pub least_words: usize,
    /// What is shared: an item that is shorter than one has all its words, or characters, in a shingle of its
    /// own, which no longer text has.
    pub shingle: Shingle,
    /// The most pages in which an item may lie that is reported pair by pair, inclusive.
    pub limit: u64,
    /// The place of the field that names the benchmark, among those that documents hold; `None`: an item is
    /// of the input that has it.
    pub field: Option<usize>,
    /// The name of the input that has a record, by the number of the record.
    pub input: Box<dyn Fn(u64) -> String + Send>,
}

/// An item that is alive.
#[derive(Clone, Debug)]
struct LiveItem {
    /// The number of its record, which names its input.
    record: u64,
    /// The value of the field that names its benchmark, if one does.
    field: Option<Box<str>>,
    /// Its distinct shingles; 0 if it is too short to be compared.
    shingles: usize,
    /// Whether it is too short to be found in a longer text.
    is_too_short: bool,
}

/// The live items, and the pairs that the changes accumulate to.
#[derive(Debug, Default)]
pub(super) struct LiveItems {
    items: BTreeMap<DocId, LiveItem>,
    pairs: BTreeSet<DocPair>,
}

/// Counts of the items of a run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct ItemCounts {
    /// The most pages of an item that is reported pair by pair, inclusive.
    pub limit: u64,
    /// Pages that have an item that is not above the limit.
    pub pages: u64,
    /// By benchmark, in the order of their names.
    pub benchmarks: Vec<BenchmarkCounts>,
    /// The items above the limit, those of most pages first.
    pub above_limit: Vec<AboveLimit>,
}

/// Counts of the items of a benchmark.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
pub struct BenchmarkCounts {
    /// Its name.
    pub benchmark: String,
    /// Its items.
    pub items: u64,
    /// Those with too few words to be found.
    pub too_short: u64,
    /// Those that lie in a page.
    pub found: u64,
    /// Of the found ones, those that lie in more pages than are reported.
    pub above_limit: u64,
    /// Pages that have an item that is not above the limit.
    pub pages: u64,
}

/// An item that lies in more pages than are reported.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct AboveLimit {
    /// Its id.
    pub id: String,
    /// The benchmark that it is of.
    pub benchmark: String,
    /// The number of pages in which it lies.
    pub pages: u64,
}

/// The item of a pair, the page, and the share of the item that the page has. Ids of items sort first.
fn parts(found: &DocPair) -> (&DocId, &DocId, f64) {
    let [in_page, _] = found.similarity.shares();
    (found.pair.lo(), found.pair.hi(), in_page)
}

impl LiveItems {
    /// Takes the changes of documents of an epoch.
    pub(super) fn change(&mut self, changes: &[DocChange], rules: &ItemRules) {
        let items = changes.iter().filter(|change| change.id.is_of_reference());
        for DocChange { id, now, fields, word, .. } in items {
            let Some(facts) = now else {
                self.items.remove(id);
                continue;
            };
            let word = word.filter(|word| words_of(*word) >= rules.least_words);
            let shingles = word.map_or(0, features_of);
            let is_too_short = match rules.shingle {
                Shingle::Words(n) => word.is_none_or(|word| words_of(word) < n),
                Shingle::Chars(_) => shingles <= 1,
            };
            let item = LiveItem {
                record: facts.position.offset,
                field: rules.field.map(|place| fields.get(place).into()),
                shingles,
                is_too_short,
            };
            self.items.insert(id.clone(), item);
        }
    }

    /// Takes the changes of pairs of an epoch.
    pub(super) fn follow(&mut self, deltas: &[Delta]) {
        for Delta { pair, diff, .. } in deltas {
            let changed = if *diff > 0 { self.pairs.insert(pair.clone()) } else { self.pairs.remove(pair) };
            debug_assert!(changed, "every pair accumulates to 0 or 1");
        }
    }

    /// The pairs of each item that lies in a page.
    fn by_item(&self) -> BTreeMap<&DocId, Vec<&DocPair>> {
        let mut of: BTreeMap<&DocId, Vec<&DocPair>> = BTreeMap::new();
        for pair in &self.pairs {
            of.entry(pair.pair.lo()).or_default().push(pair);
        }
        of
    }

    /// What is found of each item, by id.
    pub(super) fn found<'l>(&'l self, rules: &'l ItemRules) -> impl Iterator<Item = FoundItem> + 'l {
        let by_item = self.by_item();
        self.items.iter().map(move |(id, item)| {
            let pairs = by_item.get(id).map_or(&[][..], Vec::as_slice);
            let pages = pairs.len() as u64;
            FoundItem {
                id: id.without_side().to_owned(),
                benchmark: item
                    .field
                    .as_ref()
                    .map_or_else(|| (rules.input)(item.record), ToString::to_string),
                shingles: item.shingles,
                pages,
                share: pairs.iter().map(|pair| parts(pair).2).max_by(f64::total_cmp),
                page: pairs.iter().map(|pair| parts(pair).1).min().map(|page| page.without_side().to_owned()),
                too_short: item.is_too_short,
                above_limit: pages > rules.limit,
            }
        })
    }

    /// The pairs of items that are not above the limit.
    pub(super) fn pairs(&self, rules: &ItemRules) -> impl Iterator<Item = &DocPair> {
        let limit = rules.limit;
        self.by_item().into_values().filter(move |pairs| pairs.len() as u64 <= limit).flatten()
    }

    /// Of these pairs, for each page that of the item with the greatest share; of equal ones the least id.
    pub(super) fn greatest(&self, rules: &ItemRules) -> Vec<&DocPair> {
        let mut of: BTreeMap<&DocId, &DocPair> = BTreeMap::new();
        for pair in self.pairs(rules) {
            let (item, page, share) = parts(pair);
            let is_greater = |other: &&DocPair| {
                let (other_item, _, other_share) = parts(other);
                share.total_cmp(&other_share).then(other_item.cmp(item)).is_gt()
            };
            if of.get(page).is_none_or(is_greater) {
                of.insert(page, pair);
            }
        }
        of.into_values().collect()
    }

    /// The counts of all benchmarks.
    pub(super) fn counts(&self, rules: &ItemRules) -> ItemCounts {
        let mut benchmarks: BTreeMap<String, BenchmarkCounts> = BTreeMap::new();
        let mut above = Vec::new();
        let mut benchmark_of = BTreeMap::new();
        for (id, found) in self.items.keys().zip(self.found(rules)) {
            let FoundItem { benchmark, pages, too_short, above_limit, .. } = found;
            let counts = benchmarks.entry(benchmark.clone()).or_default();
            counts.items += 1;
            counts.too_short += u64::from(too_short);
            counts.found += u64::from(pages > 0);
            counts.above_limit += u64::from(above_limit);
            if above_limit {
                above.push(AboveLimit { id: found.id, benchmark: benchmark.clone(), pages });
            }
            benchmark_of.insert(id, benchmark);
        }
        let pages: BTreeSet<_> =
            self.pairs(rules).map(|pair| (benchmark_of.get(pair.pair.lo()), pair.pair.hi())).collect();
        for (benchmark, _) in &pages {
            if let Some(counts) = benchmark.and_then(|benchmark| benchmarks.get_mut(benchmark)) {
                counts.pages += 1;
            }
        }
        above.sort_by(|a, b| b.pages.cmp(&a.pages).then_with(|| a.id.cmp(&b.id)));
        ItemCounts {
            limit: rules.limit,
            pages: pages.iter().map(|(_, page)| page).collect::<BTreeSet<_>>().len() as u64,
            benchmarks: benchmarks
                .into_iter()
                .map(|(benchmark, counts)| BenchmarkCounts { benchmark, ..counts })
                .collect(),
            above_limit: above,
        }
    }
}

impl fmt::Debug for ItemRules {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("ItemRules").field("limit", &self.limit).finish_non_exhaustive()
    }
}
