//! What a pipeline of containment removes: a document goes if a larger one that stays contains it.
//!
//! In: pairs with exact shares. Out: the documents that go, each with the one that stays and contains it.
//!
//! Documents with the same features are a *class*: both shares of such a pair are 1. The least id stands for
//! all. A class goes if its share in a larger class that stays is large enough. Which of two texts is larger
//! follows from the shares of the pair: the larger one has the smaller share in the other. These are s / |A|
//! and s / |B| for s common features, which are different billionths below 10^8 features. So "lies in a
//! larger one" has no circle, exactly one set of classes satisfies the rule, and no sizes are needed. To
//! remove what lies in *any* larger document would also remove documents that lie in nothing that stays.
//!
//! A document of a reference stays, whatever it lies in, and what lies in it goes, even if it is larger. Ids
//! of a reference sort before all others, so a class that has one is named by it.

use std::collections::{BTreeMap, BTreeSet};

use dupflow_core::doc::DocId;
use dupflow_core::pair::{DocPair, Similarity, Threshold};

/// Classes of documents with the same features, by number; a class is the number of its least id.
struct TextClasses<'p> {
    /// Of all pairs, sorted.
    ids: Vec<&'p DocId>,
    /// For each id a smaller one of its class, or itself if it is the least.
    parents: Vec<usize>,
}

impl<'p> TextClasses<'p> {
    fn new(pairs: &'p BTreeSet<DocPair>) -> Self {
        let ids: BTreeSet<&DocId> = pairs.iter().flat_map(|of| [of.pair.lo(), of.pair.hi()]).collect();
        let ids: Vec<&DocId> = ids.into_iter().collect();
        let mut classes = Self { parents: (0..ids.len()).collect(), ids };
        for copies in pairs.iter().filter(|of| of.similarity == Similarity::ONE) {
            let [a, b] = [copies.pair.lo(), copies.pair.hi()].map(|id| classes.class(id));
            classes.parents[a.max(b)] = a.min(b);
        }
        classes
    }

    /// The class of a document in a pair.
    fn class(&mut self, id: &DocId) -> usize {
        let mut at = self.ids.binary_search(&id).expect("a document of a pair");
        while self.parents[at] != at {
            self.parents[at] = self.parents[self.parents[at]];
            at = self.parents[at];
        }
        at
    }
}

/// The documents that go by these pairs, which have exact shares, each with the one that stays in its place:
/// one that contains at least the share `least` of it, inclusive. Documents that are `fixed` stay; their ids
/// must be less than all others.
pub fn removed(
    pairs: &BTreeSet<DocPair>,
    least: f64,
    fixed: impl Fn(&DocId) -> bool,
) -> BTreeMap<&DocId, &DocId> {
    let least = Threshold::new(least);
    let mut classes = TextClasses::new(pairs);
    let ids = classes.ids.clone();
    let stays_always = |class: usize| fixed(ids[class]);
    // For each class, the larger ones that contain enough of it, with its share.
    let mut containers: Vec<Vec<(usize, f64)>> = vec![Vec::new(); ids.len()];
    for found in pairs.iter().filter(|of| of.similarity != Similarity::ONE) {
        let [a, b] = [found.pair.lo(), found.pair.hi()].map(|id| classes.class(id));
        let [in_b, in_a] = found.similarity.shares();
        // Of two texts of one size the one with the smaller id counts as the larger.
        let a_goes = match [stays_always(a), stays_always(b)] {
            [true, true] => continue,
            [false, false] => in_b > in_a || in_b >= in_a && b < a,
            [_, b_stays] => b_stays,
        };
        let (small, large, share) = if a_goes { (a, b, in_b) } else { (b, a, in_a) };
        if least.is_none_or(|least| least.admits(share, Similarity::SHARE_ROUNDING, || None)) {
            containers[small].push((large, share));
        }
    }
    let stays = staying(&containers);
    let mut removed = BTreeMap::new();
    for id in ids.iter().filter(|id| !fixed(id)) {
        let class = classes.class(id);
        let able = containers[class].iter().filter(|(large, _)| stays[*large]);
        let most = able.max_by(|(a, x), (b, y)| x.total_cmp(y).then(b.cmp(a)));
        let kept = ids[most.map_or(class, |(large, _)| *large)];
        if kept != *id {
            removed.insert(*id, kept);
        }
    }
    removed
}

/// Whether each class stays: those in no container that stays. Containers are larger, so there is no circle.
fn staying(containers: &[Vec<(usize, f64)>]) -> Vec<bool> {
    let mut stays: Vec<Option<bool>> = vec![None; containers.len()];
    // Classes with containers that are not decided yet, each with its next container.
    let mut open: Vec<(usize, usize)> = Vec::new();
    for start in 0..containers.len() {
        open.push((start, 0));
        while let Some((class, next)) = open.last_mut() {
            let large = containers[*class].get(*next).map(|(large, _)| *large);
            let decided = match large.map(|large| (large, stays[large])) {
                None => true,
                Some((_, Some(false))) => {
                    *next += 1;
                    continue;
                }
                Some((_, Some(true))) => false,
                Some((large, None)) => {
                    open.push((large, 0));
                    assert!(open.len() <= containers.len(), "a text is not larger than itself");
                    continue;
                }
            };
            stays[*class] = Some(decided);
            open.pop();
        }
    }
    stays.into_iter().map(|stays| stays == Some(true)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::hash::mix;
    use dupflow_core::pair::{Evidence, Overlap};

    fn id(name: &str) -> DocId {
        DocId::new(name).unwrap()
    }

    /// Pairs of documents by their sets of features, with at least half of the smaller one.
    fn pairs(texts: &[(DocId, BTreeSet<u64>)]) -> BTreeSet<DocPair> {
        let mut pairs = BTreeSet::new();
        for (i, (b, of_b)) in texts.iter().enumerate() {
            for (a, of_a) in &texts[..i] {
                let shared = of_a.intersection(of_b).count();
                if 2 * shared >= of_a.len().min(of_b.len()) {
                    let overlap = Overlap { shared, of_a: of_a.len(), of_b: of_b.len() };
                    pairs.extend(DocPair::new(
                        a.clone(),
                        b.clone(),
                        overlap.similarity(),
                        Evidence::default(),
                    ));
                }
            }
        }
        pairs
    }

    #[test]
    fn by_hand() {
        let of = |name: &str, features: &[u64]| (id(name), features.iter().copied().collect());
        let whole: Vec<u64> = (0..20).collect();
        // c lies in b, which lies in a; d lies in c alone; the copies of e lie in a.
        let texts = [
            of("a", &whole),
            of("b", &whole[..10]),
            of("c", &[1, 2, 3, 4, 99]),
            of("d", &[3, 4, 99]),
            of("e", &[7, 8]),
            of("e too", &[7, 8]),
            of("f", &[50, 51]),
            of("f too", &[50, 51]),
            of("g", &[60]),
        ];
        let removed_at = |least| -> Vec<(String, String)> {
            let pairs = pairs(&texts);
            let removed = removed(&pairs, least, |_| false);
            removed.into_iter().map(|(id, kept)| (id.to_string(), kept.to_string())).collect()
        };
        let expected = |rows: &[(&str, &str)]| -> Vec<(String, String)> {
            rows.iter().map(|(id, kept)| ((*id).to_owned(), (*kept).to_owned())).collect()
        };
        // At 0.8 c goes, and d has no container any more that stays: it stays.
        let others = [("e", "a"), ("e too", "a"), ("f too", "f")];
        assert_eq!(removed_at(0.8), expected(&[&[("b", "a"), ("c", "a")], &others[..]].concat()));
        // At 1 c stays, and d lies in it.
        assert_eq!(removed_at(1.0), expected(&[&[("b", "a"), ("d", "c")], &others[..]].concat()));
    }

    /// Against the rule by its words: from the largest down, by features and then by id.
    #[test]
    fn from_the_largest_down() {
        let (mut gone, mut named) = (0, 0);
        // Shares as decimals, and such whose billionths are rounded down and up.
        for (seed, (part, whole)) in (0..200).zip([(3, 4), (4, 7), (2, 3), (5, 9)].into_iter().cycle()) {
            let least = part as f64 / whole as f64;
            let text = |n: u64| {
                let (start, length) = (mix(seed ^ n << 8) % 30, 1 + mix(seed ^ n << 16) % 12);
                let edit = mix(n ^ seed << 20) % 40;
                (id(&format!("{:02}", mix(n ^ seed) % 100)), (start..start + length).chain([edit]).collect())
            };
            let texts: BTreeMap<DocId, BTreeSet<u64>> = (0..25).map(text).collect();
            let texts: Vec<_> = texts.into_iter().collect();
            let mut order: Vec<_> = texts.iter().collect();
            order.sort_by(|(a, x), (b, y)| (y.len(), a).cmp(&(x.len(), b)));
            let mut kept: Vec<&(DocId, BTreeSet<u64>)> = Vec::new();
            let mut expected = BTreeSet::new();
            for next in order {
                let enough = |other: &&&(DocId, BTreeSet<u64>)| {
                    next.1.intersection(&other.1).count() * whole >= part * next.1.len()
                };
                if kept.iter().any(|other| enough(&other)) {
                    expected.insert(&next.0);
                } else {
                    kept.push(next);
                }
            }
            let pairs = pairs(&texts);
            let found = removed(&pairs, least, |_| false);
            assert_eq!(found.keys().copied().collect::<BTreeSet<_>>(), expected, "seed {seed}");
            gone += expected.len();
            for (id, other) in found {
                let [of_id, of_other] =
                    [id, other].map(|id| &texts.iter().find(|(of, _)| of == id).unwrap().1);
                assert!(of_id.intersection(of_other).count() * whole >= part * of_id.len());
                assert!(kept.iter().any(|(kept, _)| kept == other), "what is named stays");
                named += usize::from(of_other.len() > of_id.len());
            }
        }
        assert!(gone > 300 && named > 100, "{gone} {named}");
    }
}
