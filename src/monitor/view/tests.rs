//! Pages of pairs compared with a plain list; pages read while epochs are applied.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::pairs::{PairMap, PairQuery, Since};
use super::ranking::{RankedBy, Ranking};
use super::{PIECE, View, ViewContents, ViewUnavailable};
use crate::cluster_history::History;
use dupflow_core::cluster::{ClusterKind, Clusters};
use dupflow_core::doc::DocId;
use dupflow_core::pair::{Cause, Delta, DocPair, Evidence, Pair, Similarity};
use dupflow_core::time::EpochTimes;

fn delta(a: &str, b: &str, similarity: f64, diff: isize) -> Delta {
    let pair = Pair::new(DocId::new(a).unwrap(), DocId::new(b).unwrap()).unwrap();
    let similarity = Similarity::clamped(similarity);
    Delta { pair: DocPair { pair, similarity, evidence: Evidence::default() }, diff, cause: Cause::Insert }
}

/// They include the least possible id, and an id that is a prefix of another.
const IDS: [&str; 6] = ["\0", "\0\0", "a", "a\0", "b", "文"];

/// All pages of a ranking, each found in steps of two pairs.
fn ranked(pairs: &PairMap, by: RankedBy, wanted: &PairQuery) -> Vec<(String, String)> {
    let (mut found, mut after) = (Vec::new(), None);
    loop {
        let mut ranking = Ranking::new(by, after.take(), wanted.limit);
        let mut step = wanted.clone();
        while let Some(last) = pairs.visit(&step, 2, |key, held| ranking.add(key, held)) {
            step.after = Some(last);
        }
        let (page, next) = ranking.page();
        assert!(page.len() == wanted.limit || next.is_none());
        found.extend(page.iter().map(|pair| (pair.a.to_string(), pair.b.to_string())));
        match next {
            None => return found,
            next => after = next,
        }
    }
}

proptest! {
    #[test]
    fn pages_together_are_the_wanted_pairs_in_order(
        present in vec((0_usize..6, 0_usize..6, 0_u8..=4), 0..30),
        document in proptest::option::of(0_usize..6),
        part in proptest::option::of(proptest::sample::select(vec!["a", "\0", "文", "ab"])),
        (min, max) in (0_u8..=4, 0_u8..=4),
        limit in 1_usize..5,
    ) {
        let mut pairs = PairMap::default();
        let mut plain = std::collections::BTreeMap::new();
        let (mut epoch, mut since) = (0, std::collections::BTreeMap::new());
        for (x, y, similarity) in present {
            let key = (IDS[x.min(y)], IDS[x.max(y)]);
            let similarity = f64::from(similarity) / 4.0;
            if x == y {
                continue;
            }
            // A pair that is drawn twice is removed again.
            match plain.remove(&key) {
                Some(was) => drop(pairs.apply(&delta(key.0, key.1, was, -1), Since::by(2))),
                None => {
                    plain.insert(key, similarity);
                    epoch += 1;
                    since.insert(key, epoch / 2);
                    pairs.apply(&delta(key.0, key.1, similarity, 1), Since::by(epoch / 2));
                }
            }
        }
        let (min, max) = (f64::from(min) / 4.0, f64::from(max) / 4.0);
        let wanted = |after| PairQuery {
            document: document.map(|at| DocId::new(IDS[at]).unwrap()),
            part: part.map(ToOwned::to_owned),
            min,
            max,
            since: None,
            after,
            limit,
        };
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let (page, next) = pairs.page(&wanted(after));
            prop_assert!(page.len() <= limit);
            found.extend(page.iter().map(|pair| (pair.a.to_string(), pair.b.to_string())));
            match next {
                None => break,
                next => after = next,
            }
        }
        let is_wanted = |a: &str, b: &str, similarity: f64| {
            document.is_none_or(|at| [a, b].contains(&IDS[at]))
                && (min..=max).contains(&similarity)
                && part.is_none_or(|part| a.contains(part) || b.contains(part))
        };
        let expected: Vec<_> = plain
            .iter()
            .filter(|((a, b), similarity)| is_wanted(a, b, **similarity))
            .map(|((a, b), _)| ((*a).to_owned(), (*b).to_owned()))
            .collect();
        prop_assert_eq!(&found, &expected);

        for by in [RankedBy::Time, RankedBy::Similarity] {
            let rank = |(a, b): &(String, String)| match by {
                RankedBy::Time => since[&(a.as_str(), b.as_str())],
                RankedBy::Similarity => plain[&(a.as_str(), b.as_str())].to_bits(),
            };
            let mut sorted = expected.clone();
            sorted.sort_by_key(|pair| (std::cmp::Reverse(rank(pair)), pair.clone()));
            prop_assert_eq!(ranked(&pairs, by, &wanted(None)), sorted);
        }
        prop_assert_eq!(pairs.by_similarity().iter().sum::<u64>(), plain.len() as u64);
        prop_assert_eq!(pairs.len(), plain.len());
    }
}

#[test]
fn similarities_are_counted_by_hundredths() {
    let mut pairs = PairMap::default();
    for (n, similarity) in [0.0, 0.009, 0.01, 0.995, 1.0].into_iter().enumerate() {
        pairs.apply(&delta("a", &format!("b{n}"), similarity, 1), Since::by(1));
    }
    let counts = pairs.by_similarity();
    assert_eq!((counts[0], counts[1], counts[99]), (2, 1, 2));
}

/// A page that skips many pairs ends with a cursor.
#[test]
fn a_page_looks_at_a_bounded_number_of_pairs() {
    let mut pairs = PairMap::default();
    for n in 0..1000 {
        pairs.apply(&delta("a", &format!("b{n:03}"), 0.5, 1), Since::by(1));
    }
    let wanted = |after| PairQuery { min: 0.9, ..PairQuery::all(after, 2) };
    let (found, next) = pairs.page(&wanted(None));
    assert_eq!((found.len(), next.as_ref().map(|(_, b)| b.to_string())), (0, Some("b199".to_owned())));
    let mut pages = 1;
    let mut after = next;
    while after.is_some() {
        after = pairs.page(&wanted(after)).1;
        pages += 1;
    }
    assert_eq!(pages, 5);
}

/// Pages are read while large epochs are applied in pieces.
#[test]
fn a_page_is_of_the_end_of_an_epoch() {
    const EPOCHS: u64 = 10;
    const PAIRS: usize = 3 * PIECE;
    let view =
        View::start("r".to_owned(), ViewContents::Pairs, Clusters::new(ClusterKind::Components, 9), None)
            .unwrap();
    let feeder = view.feeder();
    assert_eq!(view.check_pairs(), Err(ViewUnavailable::NotFilled));
    feeder.live(0);
    let feed = std::thread::spawn(move || {
        for epoch in 1..=EPOCHS {
            let deltas = (0..PAIRS).map(|n| delta(&format!("a{epoch}"), &format!("b{epoch}/{n:05}"), 0.5, 1));
            feeder.committed(epoch, EpochTimes::default(), deltas.collect());
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut last = 0;
    while last < EPOCHS {
        let guard = runtime.block_on(view.end_of_epoch()).unwrap();
        let (epoch, pairs) = view.pairs(|epoch, pairs| (epoch, pairs.len()));
        let clusters = view.clusters(History::len);
        drop(guard);
        assert_eq!((pairs, clusters as u64), (PAIRS * usize::try_from(epoch).unwrap(), epoch));
        last = epoch;
    }
    feed.join().unwrap();
    view.wait_until_applied(Duration::MAX);
    let sums = view.sums();
    assert_eq!((sums.epoch, sums.pairs, sums.clusters as u64), (EPOCHS, 10 * PAIRS, EPOCHS));
    assert_eq!(view.check_pairs(), Ok(()));
}
