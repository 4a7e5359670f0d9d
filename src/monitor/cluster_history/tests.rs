//! Cases computed by hand, and a comparison with the definition, which reads all documents and not the
//! changes.

use std::collections::{BTreeMap, BTreeSet};

use proptest::collection::vec;
use proptest::prelude::*;

use super::*;
use dupflow_core::cluster::{ClusterKind, Clusters};
use dupflow_core::pair::{Cause, Delta, DocPair, Evidence, Pair, Similarity};
use dupflow_core::time::EpochTimes;

fn id(name: &str) -> DocId {
    DocId::new(name).unwrap()
}

/// Pairs, their clusters, and the history of these.
struct Story {
    pairs: BTreeSet<Pair<DocId>>,
    clusters: Clusters,
    history: History,
    epoch: Epoch,
    /// All current reports.
    reports: BTreeSet<ClusterReport>,
}

impl Story {
    fn new(kind: ClusterKind, limit: usize) -> Self {
        let clusters = Clusters::new(kind, limit);
        Self {
            pairs: BTreeSet::new(),
            clusters,
            history: History::default(),
            epoch: 0,
            reports: BTreeSet::new(),
        }
    }

    /// One epoch that adds each of these pairs if it is absent and removes it if it is present.
    fn toggle(&mut self, pairs: impl IntoIterator<Item = Pair<DocId>>) {
        let before = self.pairs.clone();
        for pair in pairs {
            if !self.pairs.remove(&pair) {
                self.pairs.insert(pair);
            }
        }
        let delta = |pair: &Pair<DocId>| Delta {
            pair: DocPair { pair: pair.clone(), similarity: Similarity::ONE, evidence: Evidence::default() },
            diff: if self.pairs.contains(pair) { 1 } else { -1 },
            cause: Cause::Insert,
        };
        let deltas: Vec<_> = before.symmetric_difference(&self.pairs).map(delta).collect();
        let changes = self.clusters.advance(&deltas);
        self.epoch += 1;
        self.history.advance(self.epoch, EpochSeconds::NONE, &changes);
        for (report, diff) in changes {
            let held = if diff > 0 { self.reports.insert(report) } else { self.reports.remove(&report) };
            assert!(held);
        }
    }

    /// `ab` is the pair of a and b.
    fn epoch(&mut self, pairs: &str) {
        let pairs = pairs.split_whitespace().map(|pair| {
            let (a, b) = pair.split_at(pair.chars().next().map_or(0, char::len_utf8));
            Pair::new(id(a), id(b)).unwrap()
        });
        self.toggle(pairs.collect::<Vec<_>>());
    }

    /// Events of a cluster as `1 born 3, 2 split 2 c d`.
    fn event_lines(&self, name: &str) -> String {
        let events = self.history.events(&id(name)).iter().map(|event| {
            let others: String = event.others.iter().map(|other| format!(" {other}")).collect();
            format!("{} {} {}{others}", event.epoch, event.kind.name(), event.size)
        });
        events.collect::<Vec<_>>().join(", ")
    }

    fn how(&self, name: &str) -> Option<ClusterEnd> {
        self.history.ended(&id(name)).map(|ended| ended.how.clone())
    }
}

#[test]
fn a_cluster_grows_merges_splits_and_dissolves() {
    let mut story = Story::new(ClusterKind::Components, 100);
    story.epoch("ab bc xy");
    story.epoch("cd yz");
    assert_eq!(
        (story.event_lines("a"), story.event_lines("x")),
        ("1 born 3, 2 grew 4".into(), "1 born 2, 2 grew 3".into())
    );
    story.epoch("dx");
    assert_eq!(story.event_lines("a"), "1 born 3, 2 grew 4, 3 merged 7 x");
    assert_eq!((story.event_lines("x"), story.how("x")), (String::new(), Some(ClusterEnd::Merged(id("a")))));
    story.epoch("dx");
    assert_eq!(story.event_lines("a"), "1 born 3, 2 grew 4, 3 merged 7 x, 4 split 4 x");
    assert_eq!((story.event_lines("x"), story.how("x")), ("4 born 3, 4 split 3 a".into(), None));
    story.epoch("ab xy yz");
    assert_eq!(
        story.event_lines("b"),
        "1 born 3, 2 grew 4, 3 merged 7 x, 4 split 4 x, 5 renamed 3 a, 5 shrank 3"
    );
    assert_eq!(story.how("a"), Some(ClusterEnd::Renamed(id("b"))));
    let ended = EndedCluster { epoch: 5, times: EpochSeconds::NONE, size: 3, how: ClusterEnd::Dissolved };
    assert_eq!(story.history.ended(&id("x")), Some(&ended));
    // One document joins, one leaves.
    story.epoch("cd ce");
    let b = story.history.cluster(&id("b")).map(|alive| (alive.size, alive.born, alive.changed));
    assert_eq!((b, story.history.events(&id("b")).len()), (Some((3, 1, 6)), 6));
}

#[test]
fn a_name_is_that_of_most_documents_and_of_equal_ones_stays() {
    let mut story = Story::new(ClusterKind::Components, 100);
    // The larger part gets another name.
    story.epoch("ab bc cd de ef");
    story.epoch("bc");
    assert_eq!(story.event_lines("c"), "1 born 6, 2 renamed 4 a, 2 split 4 a");
    assert_eq!(story.event_lines("a"), "2 born 2, 2 split 2 a");
    // Two halves of equal size: the name stays.
    story.epoch("cd de ce cf");
    assert_eq!(story.event_lines("a"), "2 born 2, 2 split 2 a");
    story.epoch("gh bg");
    story.epoch("bg");
    assert_eq!(story.event_lines("a"), "2 born 2, 2 split 2 a, 4 grew 4, 5 split 2 g");
    assert_eq!(story.event_lines("g"), "5 born 2, 5 split 2 a");
}

#[test]
fn giants_are_followed_by_their_smallest_member_and_their_size() {
    let mut story = Story::new(ClusterKind::Components, 4);
    story.epoch("bc cd de");
    story.epoch("ef");
    assert_eq!(story.event_lines("b"), "1 born 4, 2 grew 5");
    assert!(story.history.cluster(&id("b")).unwrap().giant);
    assert_eq!((story.history.giants(), story.history.cluster_of(&id("c"))), (1, None));
    // A giant under another name: matched by its size only.
    story.epoch("af");
    assert_eq!(story.event_lines("a"), "1 born 4, 2 grew 5, 3 renamed 6 b, 3 grew 6");
    assert_eq!(story.how("b"), Some(ClusterEnd::Renamed(id("a"))));
    // Below the limit it is reported by its members again, with and without its smallest one.
    story.epoch("af ef");
    assert_eq!(
        story.event_lines("b"),
        "1 born 4, 2 grew 5, 3 renamed 6 b, 3 grew 6, 4 renamed 4 a, 4 shrank 4"
    );
    assert_eq!((story.history.giants(), story.history.cluster_of(&id("c"))), (0, Some(&id("b"))));
    // A cluster that becomes a part of a giant has no reports any more.
    story.epoch("xy ef");
    story.epoch("ex");
    assert_eq!(story.how("x"), Some(ClusterEnd::Dissolved));
    // Too small to match the giant.
    let mut other = Story::new(ClusterKind::Components, 4);
    other.epoch("ab bc cd de ef fg");
    other.epoch("ab bc cd de ef");
    assert_eq!((other.event_lines("f"), other.how("a")), ("2 born 2".into(), Some(ClusterEnd::Dissolved)));
}

#[test]
fn stars_have_a_history_too() {
    let mut story = Story::new(ClusterKind::Star, 100);
    story.epoch("ab ac xy");
    story.epoch("bx by bz");
    assert_eq!(story.event_lines("b"), "1 born 3, 2 renamed 5 a, 2 merged 5 x");
    assert_eq!(
        (story.how("a"), story.how("x")),
        (Some(ClusterEnd::Renamed(id("b"))), Some(ClusterEnd::Merged(id("b"))))
    );
}

#[test]
fn lists_are_paged_in_their_order() {
    let mut story = Story::new(ClusterKind::Components, 3);
    story.epoch("ab cd ef fg 你好 xy yz zw");
    story.epoch("pq dc ab");
    story.epoch("bh 'ب");
    let names = |order| {
        let (mut names, mut after) = (Vec::new(), None);
        loop {
            let (page, next) = story.history.page(order, after.as_ref(), 2);
            assert!(page.len() == 2 || next.is_none());
            names.extend(page.iter().map(|alive| alive.cluster.as_str()));
            // The cursor is written and parsed, as a client does.
            after = next.map(|next| next.to_string().parse().unwrap());
            if after.is_none() {
                return names.join(" ");
            }
        }
    };
    assert_eq!(names(ClusterOrder::Size), "w e ' b p 你");
    assert_eq!(names(ClusterOrder::Recent), "' b p e w 你");
    assert_eq!(story.history.len(), 6);
    let (first, more) = story.history.members(&id("e"), None, 2);
    assert_eq!((first, more), (&[id("e"), id("f")][..], true));
    assert_eq!(story.history.members(&id("e"), Some(&first[1]), 2), (&[id("g")][..], false));
    assert_eq!(story.history.members(&id("w"), None, 2), (&[][..], false), "a giant has no reported members");
    for wrong in ["", "7", "-a", "7-", "x-a"] {
        assert!(wrong.parse::<ClusterCursor>().is_err(), "{wrong}");
    }
    let long = "ก".repeat(341);
    let cursor: ClusterCursor = format!("7-{long}").parse().unwrap();
    assert_eq!(cursor.cluster, id(&long));
}

#[test]
fn what_is_remembered_is_bounded() {
    let mut story = Story::new(ClusterKind::Components, 100);
    story.epoch("ab");
    for _ in 0..History::EVENTS {
        story.epoch("bc");
    }
    let events = story.history.events(&id("a"));
    assert_eq!(events.len(), History::EVENTS);
    assert_eq!((events[0].kind, events[1].epoch), (ClusterEventKind::Born, 3));
    assert_eq!(events.last().map(|event| event.epoch), Some(story.epoch));

    let pairs: Vec<_> = (0..History::ENDED + 5)
        .map(|n| Pair::new(id(&format!("p{n:06}")), id(&format!("q{n:06}"))).unwrap())
        .collect();
    story.toggle(pairs.clone());
    story.toggle(pairs);
    let is_held = |n: usize| story.history.ended(&id(&format!("p{n:06}"))).is_some();
    assert_eq!([4, 5, History::ENDED + 4].map(is_held), [false, true, true]);
    assert_eq!(story.history.len(), 1);

    // One document joins many clusters.
    let many: Vec<_> =
        (0..30).map(|n| Pair::new(id(&format!("p{n:06}")), id(&format!("q{n:06}"))).unwrap()).collect();
    let joins: Vec<_> = (0..30).map(|n| Pair::new(id("!"), id(&format!("p{n:06}"))).unwrap()).collect();
    story.toggle(many);
    story.toggle(joins);
    let merged = story.history.events(&id("!")).last().unwrap();
    assert_eq!(
        (merged.kind, merged.others.len(), merged.more),
        (ClusterEventKind::Merged, History::OTHERS, 13)
    );
}

#[test]
fn ends_leave_by_age_also_after_one_without_a_time() {
    let times = |at| EpochTimes { event: None, committed: at }.into();
    for a_is_dated in [false, true] {
        let mut story = Story::new(ClusterKind::Components, 100);
        story.epoch("ab xy");
        story.epoch("ab");
        if a_is_dated {
            story.history.date_ended(story.epoch, times(20.0));
        }
        story.epoch("xy");
        story.history.date_ended(story.epoch, times(30.0));
        assert_eq!(story.history.ended(&id("x")).map(|end| end.times), Some(times(30.0)));
        assert_eq!(story.history.drop_ended(30), if a_is_dated { vec![id("a")] } else { vec![] });
        let rest = if a_is_dated { vec![id("x")] } else { vec![id("a"), id("x")] };
        assert_eq!(story.history.drop_ended(31), rest, "{a_is_dated}");
        assert_eq!((story.how("a"), story.how("x")), (None, None));
    }
}

/// The definition for one epoch: events of the clusters after it, and the ends of clusters.
type ExpectedEpoch =
    (BTreeMap<DocId, Vec<(ClusterEventKind, usize, Vec<DocId>)>>, BTreeMap<DocId, ClusterEnd>);

/// The sizes of all clusters, and the cluster that reports each document.
fn sizes_and_homes(
    reports: &BTreeSet<ClusterReport>,
) -> (BTreeMap<DocId, usize>, BTreeMap<DocId, DocId>, BTreeSet<DocId>) {
    let (mut sizes, mut homes, mut giants) = (BTreeMap::new(), BTreeMap::new(), BTreeSet::new());
    for report in reports {
        match report {
            ClusterReport::Member { cluster, document } => {
                *sizes.entry(cluster.clone()).or_default() += 1;
                homes.insert(document.clone(), cluster.clone());
            }
            ClusterReport::Giant { cluster, size } => {
                sizes.insert(cluster.clone(), *size);
                homes.insert(cluster.clone(), cluster.clone());
                giants.insert(cluster.clone());
            }
        }
    }
    (sizes, homes, giants)
}

fn by_definition(before: &BTreeSet<ClusterReport>, after: &BTreeSet<ClusterReport>) -> ExpectedEpoch {
    let (was, homes_before, giants) = sizes_and_homes(before);
    let (is, homes_after, _) = sizes_and_homes(after);
    let mut flows: Vec<(DocId, DocId, usize)> = Vec::new();
    for from in was.keys() {
        for to in is.keys() {
            let both = homes_before
                .iter()
                .filter(|(document, at)| *at == from && homes_after.get(*document) == Some(to));
            let count = both.count();
            flows.extend((count > 0).then(|| (from.clone(), to.clone(), count)));
        }
    }
    let largest = |mut names: Vec<(usize, DocId)>| {
        names.sort_by(|(a, x), (b, y)| b.cmp(a).then(x.cmp(y)));
        names
    };
    let lost = giants.iter().filter(|name| !flows.iter().any(|(from, ..)| from == *name));
    let lost = largest(lost.map(|name| (was[name], name.clone())).collect());
    let new = is.keys().filter(|name| !flows.iter().any(|(_, to, _)| to == *name));
    let new = largest(new.map(|name| (is[name], name.clone())).collect());
    let found = lost.into_iter().zip(new).filter(|((size, _), (now, _))| now * 2 >= *size);
    flows.extend(found.map(|((_, from), (_, to))| (from, to, 1)));

    // On ties, the flow to the same name, then the smaller name.
    let heir = |from: &DocId| {
        let own = flows.iter().filter(|(source, ..)| source == from);
        own.min_by_key(|(source, to, n)| (Reverse(*n), source != to, to.clone())).map(|(_, to, _)| to.clone())
    };
    let origin = |to: &DocId| {
        let own = flows.iter().filter(|(_, target, _)| target == to);
        own.min_by_key(|(from, target, n)| (Reverse(*n), from != target, from.clone()))
            .map(|(from, ..)| from.clone())
    };
    let predecessor = |to: &DocId| origin(to).filter(|from| heir(from).as_ref() == Some(to));

    let mut said = ExpectedEpoch::default();
    for (name, &size) in &is {
        let mut events = Vec::new();
        let from = predecessor(name);
        match &from {
            None => events.push((ClusterEventKind::Born, size, Vec::new())),
            Some(from) if from != name => events.push((ClusterEventKind::Renamed, size, vec![from.clone()])),
            Some(_) => {}
        }
        let list = |mut ends: Vec<(usize, DocId)>| {
            ends.sort_by(|(a, x), (b, y)| b.cmp(a).then(x.cmp(y)));
            ends.into_iter().map(|(_, end)| end).collect::<Vec<_>>()
        };
        let merged = flows.iter().filter(|(source, to, _)| {
            to == name && heir(source).as_ref() == Some(name) && from.as_ref() != Some(source)
        });
        let merged = list(merged.map(|(source, _, n)| (*n, source.clone())).collect());
        let split = match &from {
            None => origin(name).into_iter().collect(),
            Some(from) => {
                let parts = flows.iter().filter(|(source, to, _)| {
                    source == from && to != name && origin(to).as_ref() == Some(from)
                });
                list(parts.map(|(_, to, n)| (*n, to.clone())).collect())
            }
        };
        let is_whole = merged.is_empty() && split.is_empty();
        if !merged.is_empty() {
            events.push((ClusterEventKind::Merged, size, merged));
        }
        if !split.is_empty() {
            events.push((ClusterEventKind::Split, size, split));
        }
        match from.map(|from| was[&from].cmp(&size)) {
            Some(std::cmp::Ordering::Less) if is_whole => {
                events.push((ClusterEventKind::Grew, size, Vec::new()));
            }
            Some(std::cmp::Ordering::Greater) if is_whole => {
                events.push((ClusterEventKind::Shrank, size, Vec::new()));
            }
            _ => {}
        }
        said.0.insert(name.clone(), events);
    }
    for name in was.keys().filter(|name| !is.contains_key(*name)) {
        let how = match heir(name) {
            None => ClusterEnd::Dissolved,
            Some(to) if predecessor(&to).as_ref() == Some(name) => ClusterEnd::Renamed(to),
            Some(to) => ClusterEnd::Merged(to),
        };
        said.1.insert(name.clone(), how);
    }
    said
}

fn holds(kind: ClusterKind, limit: usize, epochs: &[Vec<(u8, u8)>]) {
    let mut story = Story::new(kind, limit);
    for toggled in epochs {
        let before = story.reports.clone();
        // The order of ids differs from that of numbers.
        let named = |n: u8| id(&(n ^ 5).to_string());
        story.toggle(toggled.iter().filter_map(|(a, b)| Pair::new(named(*a), named(*b))).collect::<Vec<_>>());
        let (events, ends) = by_definition(&before, &story.reports);
        let history = &story.history;
        assert!(history.clusters.keys().eq(events.keys()));
        for (name, expected) in events {
            let now = history.events(&name).iter().filter(|event| event.epoch == story.epoch);
            let now: Vec<_> = now.map(|event| (event.kind, event.size, event.others.to_vec())).collect();
            assert_eq!(now, expected, "{name} in epoch {}", story.epoch);
        }
        for (name, how) in ends {
            let ended = history.ended(&name).map(|ended| (ended.epoch, ended.how.clone()));
            assert_eq!(ended, Some((story.epoch, how)), "{name}");
        }
        // The lists and the members agree with the reports.
        let (sizes, homes, giants) = sizes_and_homes(&story.reports);
        for (name, size) in &sizes {
            let members: Vec<_> =
                homes.iter().filter(|(_, at)| *at == name).map(|(of, _)| of.clone()).collect();
            let is_giant = giants.contains(name);
            let alive = history.cluster(name).map(|alive| (alive.size, alive.giant));
            assert_eq!(alive, Some((*size, is_giant)));
            let shown = if is_giant { Vec::new() } else { members };
            assert_eq!(history.members(name, None, usize::MAX), (&*shown, false));
            assert!(shown.iter().all(|member| history.cluster_of(member) == Some(name)));
        }
        assert_eq!(history.documents.len(), homes.len() - giants.len());
        for order in [ClusterOrder::Size, ClusterOrder::Recent] {
            let (listed, next) = history.page(order, None, usize::MAX);
            assert!(next.is_none() && listed.len() == sizes.len());
            let key = |alive: &LiveCluster<'_>| match order {
                ClusterOrder::Size => (Reverse(alive.size as u64), alive.cluster.clone()),
                ClusterOrder::Recent => (Reverse(alive.changed), alive.cluster.clone()),
            };
            assert!(listed.is_sorted_by_key(key));
        }
        assert_eq!(history.giants(), giants.len());
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn every_history_is_that_of_the_definition(
        few in vec(vec((0..9_u8, 0..9_u8), 0..8), 0..20),
        many in vec(vec((0..40_u8, 0..40_u8), 0..20), 0..20),
    ) {
        for kind in [ClusterKind::Components, ClusterKind::Star] {
            for limit in [3, 5, 100] {
                holds(kind, limit, &few);
                holds(kind, limit, &many);
            }
        }
    }
}
