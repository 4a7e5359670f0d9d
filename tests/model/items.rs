//! The law for items of a reference that lie in pages: after every epoch the accumulated deltas are the pairs
//! of an item and a page that has enough of its shingles, by sets of pairs of words; a text of one word is in
//! pairs with its copies only. What is written at the end follows from these pairs.
//!
//! Bug classes: a page that is looked up before all items are in their blocks; a page that is edited or
//! deleted and leaves a pair behind; copies of a page of which one is missing; a share of the page in place
//! of that of the item; a limit that depends on the order of pages.

use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet};
use std::io;
use std::path::Path;
use std::sync::{Arc, Mutex};

use dupflow::config::Plan;
use dupflow::connectors::mark::Mark;
use dupflow::connectors::sinks::{ItemCountsSlot, ItemOutput, ItemRules, ItemSink, Sink};
use dupflow::core::doc::{DocId, Letter};
use dupflow::core::pair::{Delta, DocPair, Evidence, Overlap};
use dupflow::core::text::Shingle;
use dupflow::core::time::Progress;
use dupflow::engine::dataflow::ClosedEpoch;
use proptest::prelude::*;

use crate::against;
use crate::contained;
use crate::data::Event;
use crate::history::{check, cut, runs, sizes};
use crate::law::{Accumulated, assert_same};
use crate::script::{self, Past, Run, closed};

/// The most pages of an item that is reported.
const LIMIT: u64 = 3;

/// Two-word shingles, half of an item's.
pub(crate) fn plan() -> Plan {
    let text = "threshold = 0.5\nmeasure = \"containment\"\ntext = { shingle = \"words:2\" }\n\
        sketch = { kind = \"scaled\" }\nblocking = { kind = \"reference\" }\n\
        filter = { kind = \"full\", verify = \"exact\", least_words = 2 }";
    Plan::parse("test", text, Path::new(""), &[]).unwrap_or_else(|error| panic!("{error}"))
}

/// The live documents, with their pairs of words. A single word is beside an empty one, so that only copies
/// of its text have it.
#[derive(Default)]
struct Texts {
    items: BTreeMap<DocId, BTreeSet<[String; 2]>>,
    pages: BTreeMap<DocId, BTreeSet<[String; 2]>>,
}

impl Texts {
    fn apply(&mut self, is_item: bool, (id, text): &Event) {
        let (of, id) = match is_item {
            true => (&mut self.items, id.clone().in_reference()),
            false => (&mut self.pages, id.clone().beside_reference()),
        };
        of.remove(&id);
        if let Some(text) = text {
            let words: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            let mut pairs: BTreeSet<_> =
                words.windows(2).map(|two| [two[0].clone(), two[1].clone()]).collect();
            if let [only] = &*words {
                pairs.insert([only.clone(), String::new()]);
            }
            of.insert(id, pairs);
        }
    }

    fn pairs(&self) -> BTreeSet<DocPair> {
        let mut pairs = BTreeSet::new();
        for (item, of_item) in self.items.iter().filter(|(_, words)| !words.is_empty()) {
            for (page, of_page) in &self.pages {
                let overlap = Overlap {
                    shared: of_item.intersection(of_page).count(),
                    of_a: of_item.len(),
                    of_b: of_page.len(),
                };
                if 2 * overlap.shared >= overlap.of_a {
                    let (item, page) = (item.clone(), page.clone());
                    pairs.extend(DocPair::new(item, page, overlap.similarity(), Evidence::default()));
                }
            }
        }
        pairs
    }
}

/// Receives what an [`ItemSink`] passes on.
struct Received(Arc<Mutex<BTreeSet<DocPair>>>);

impl Sink for Received {
    fn restored(&mut self, deltas: &[Delta]) {
        for Delta { pair, diff, .. } in deltas {
            assert!(*diff == 1 && self.0.lock().unwrap().insert(pair.clone()), "{pair:?} is new");
        }
    }

    fn epoch(&mut self, _: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        assert!(deltas.is_empty(), "all at the end");
        Ok(())
    }

    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// What is passed on at the end, and the counts of the items, which are one benchmark.
fn at_end(
    told: &[ClosedEpoch],
    output: fn(Box<dyn Sink + Send>) -> ItemOutput,
) -> (BTreeSet<DocPair>, [u64; 5]) {
    let (received, slot) = (Arc::new(Mutex::new(BTreeSet::new())), ItemCountsSlot::default());
    let rules = ItemRules {
        least_words: 2,
        shingle: Shingle::Words(2),
        limit: LIMIT,
        field: None,
        input: Box::new(|_| "all".to_owned()),
    };
    let mut sink = ItemSink::new(rules, output(Box::new(Received(Arc::clone(&received)))), Arc::clone(&slot));
    for closed in told {
        sink.documents(&closed.documents, false).unwrap();
        sink.epoch(&closed.progress, &closed.deltas, &[]).unwrap();
    }
    sink.finish().unwrap();
    let counts = slot.lock().take().unwrap();
    let one = counts.benchmarks.first().cloned().unwrap_or_default();
    assert_eq!((counts.pages, counts.above_limit.len() as u64), (one.pages, one.above_limit));
    let pairs = received.lock().unwrap().clone();
    (pairs, [one.items, one.too_short, one.found, one.above_limit, one.pages])
}

/// Returns how many pairs there are at the end, and how many of them are of items above the limit.
fn assert_law(plan: &Plan, epochs: &[Vec<Event>], end: u64, run: Run) -> [usize; 2] {
    let stages = against::stages(plan, end);
    let told = closed(&stages, &against::undated(epochs), &Past::default(), run);
    let mut found = Accumulated::new(told.iter().cloned().flat_map(script::deltas_of).collect());
    let mut texts = Texts::default();
    let mut position = 0;
    for (epoch, events) in (1..).zip(epochs) {
        for event in events {
            texts.apply(position < end, event);
            position += 1;
        }
        found.advance(epoch);
        assert_same(&found.pairs, &texts.pairs(), epoch, run);
    }
    found.end();

    let all = texts.pairs();
    let pages_of = |item: &DocId| all.iter().filter(|of| of.pair.lo() == item).count() as u64;
    let reported: BTreeSet<_> = all.iter().filter(|of| pages_of(of.pair.lo()) <= LIMIT).cloned().collect();
    // Of each page the pair of the item with the greatest share, then with the least id.
    let greatest = |page: &DocId| {
        let share = |of: &DocPair| of.similarity.shares()[0];
        let of_page = reported.iter().filter(|of| of.pair.hi() == page);
        of_page.max_by(|a, b| share(a).total_cmp(&share(b)).then(b.pair.lo().cmp(a.pair.lo()))).cloned()
    };
    let of_pages: BTreeSet<_> = texts.pages.keys().filter_map(greatest).collect();
    let items = || texts.items.keys();
    let counts = [
        items().count() as u64,
        texts.items.values().filter(|words| words.iter().all(|[_, next]| next.is_empty())).count() as u64,
        items().filter(|item| pages_of(item) > 0).count() as u64,
        items().filter(|item| pages_of(item) > LIMIT).count() as u64,
        of_pages.len() as u64,
    ];
    let common = all.len() - reported.len();
    assert_eq!(at_end(&told, ItemOutput::Pairs), (reported, counts), "{run:?}");
    assert_eq!(at_end(&told, ItemOutput::Pages), (of_pages, counts), "{run:?}");
    [all.len(), common]
}

#[test]
fn items_lie_in_pages() {
    let plan = plan();
    let inputs = (contained::events(), sizes(), runs(), any::<prop::sample::Index>());
    let seen = Cell::new([0; 2]);
    check(200, inputs, |(events, sizes, run, at)| {
        let end = at.index(events.len() + 1) as u64;
        let [pairs, common] = assert_law(&plan, &cut(&events, &sizes), end, run);
        seen.update(|[all, of_common]| [all + pairs, of_common + common]);
    });
    assert!(seen.get().iter().all(|n| *n > 100), "{seen:?}");
}
