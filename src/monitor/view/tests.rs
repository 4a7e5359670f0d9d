//! Pages of pairs against a plain list; pages while epochs are taken in.

use std::time::Duration;

use proptest::collection::vec;
use proptest::prelude::*;

use super::pairs::{Pairs, Wanted};
use super::{PIECE, Unseen, View};
use dupflow_core::cluster::history::History;
use dupflow_core::cluster::{ClusterKind, Clusters};
use dupflow_core::doc::DocId;
use dupflow_core::pair::{Cause, Delta, DocPair, Evidence, Pair, Similarity};

fn delta(a: &str, b: &str, similarity: f64, diff: isize) -> Delta {
    let pair = Pair::new(DocId::new(a).unwrap(), DocId::new(b).unwrap()).unwrap();
    let similarity = Similarity::clamped(similarity);
    Delta { pair: DocPair { pair, similarity, evidence: Evidence::default() }, diff, cause: Cause::Insert }
}

/// Among them the least id that there is, and one that is another one's beginning.
const IDS: [&str; 6] = ["\0", "\0\0", "a", "a\0", "b", "文"];

proptest! {
    #[test]
    fn pages_together_are_the_wanted_pairs_in_order(
        present in vec((0_usize..6, 0_usize..6, 0_u8..=4), 0..30),
        document in proptest::option::of(0_usize..6),
        (min, max) in (0_u8..=4, 0_u8..=4),
        limit in 1_usize..5,
    ) {
        let mut pairs = Pairs::default();
        let mut plain = std::collections::BTreeMap::new();
        for (x, y, similarity) in present {
            let key = (IDS[x.min(y)], IDS[x.max(y)]);
            let similarity = f64::from(similarity) / 4.0;
            if x == y {
                continue;
            }
            // What comes twice goes instead.
            match plain.remove(&key) {
                Some(was) => pairs.apply(&delta(key.0, key.1, was, -1), 2),
                None => {
                    plain.insert(key, similarity);
                    pairs.apply(&delta(key.0, key.1, similarity, 1), 1);
                }
            }
        }
        let (min, max) = (f64::from(min) / 4.0, f64::from(max) / 4.0);
        let wanted = |after| Wanted {
            document: document.map(|at| DocId::new(IDS[at]).unwrap()),
            min,
            max,
            after,
            limit,
        };
        let mut found = Vec::new();
        let mut after = None;
        loop {
            let (page, next) = pairs.page(&wanted(after));
            prop_assert!(page.len() <= limit);
            found.extend(page.iter().map(|told| (told.a.to_string(), told.b.to_string())));
            match next {
                None => break,
                next => after = next,
            }
        }
        let expected: Vec<_> = plain
            .iter()
            .filter(|((a, b), s)| document.is_none_or(|at| [*a, *b].contains(&IDS[at])) && (min..=max).contains(*s))
            .map(|((a, b), _)| ((*a).to_owned(), (*b).to_owned()))
            .collect();
        prop_assert_eq!(found, expected);
        prop_assert_eq!(pairs.by_similarity().iter().sum::<u64>(), plain.len() as u64);
        prop_assert_eq!(pairs.len(), plain.len());
    }
}

#[test]
fn similarities_are_counted_by_hundredths() {
    let mut pairs = Pairs::default();
    for (n, similarity) in [0.0, 0.009, 0.01, 0.995, 1.0].into_iter().enumerate() {
        pairs.apply(&delta("a", &format!("b{n}"), similarity, 1), 1);
    }
    let counts = pairs.by_similarity();
    assert_eq!((counts[0], counts[1], counts[99]), (2, 1, 2));
}

/// A page that finds nothing for long says where it goes on.
#[test]
fn a_page_looks_at_a_bounded_number_of_pairs() {
    let mut pairs = Pairs::default();
    for n in 0..1000 {
        pairs.apply(&delta("a", &format!("b{n:03}"), 0.5, 1), 1);
    }
    let wanted = |after| Wanted { document: None, min: 0.9, max: 1.0, after, limit: 2 };
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

/// Pages are asked for while large epochs are taken in, piece by piece.
#[test]
fn a_page_is_of_the_end_of_an_epoch() {
    const EPOCHS: u64 = 10;
    const PAIRS: usize = 3 * PIECE;
    let view = View::start("r".to_owned(), true, Clusters::new(ClusterKind::Components, 9)).unwrap();
    let feeder = view.feeder();
    assert_eq!(view.sees(), Err(Unseen::NotFilled));
    feeder.live(0);
    let feed = std::thread::spawn(move || {
        for epoch in 1..=EPOCHS {
            let deltas = (0..PAIRS).map(|n| delta(&format!("a{epoch}"), &format!("b{epoch}/{n:05}"), 0.5, 1));
            feeder.committed(epoch, deltas.collect());
        }
    });
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let mut last = 0;
    while last < EPOCHS {
        let whole = runtime.block_on(view.whole()).unwrap();
        let (epoch, pairs) = view.pairs(|epoch, pairs| (epoch, pairs.len()));
        let clusters = view.clusters(History::len);
        drop(whole);
        assert_eq!((pairs, clusters as u64), (PAIRS * usize::try_from(epoch).unwrap(), epoch));
        last = epoch;
    }
    feed.join().unwrap();
    view.wait_until_taken(Duration::MAX);
    let sums = view.sums();
    assert_eq!((sums.epoch, sums.pairs, sums.clusters as u64), (EPOCHS, 10 * PAIRS, EPOCHS));
    assert_eq!(view.sees(), Ok(()));
}
