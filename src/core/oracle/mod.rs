//! Oracles: expected results by brute force, for tests and measurements.
//!
//! | oracle | reads | the dataflow's result must be |
//! |---|---|---|
//! | [`exact`] | the same sketches, blocks and filter | identical |
//! | [`pairs`], [`sectional_pairs`], [`weighted_pairs`] | the features of the texts (true similarity) | within the promised recall and precision |
//! | [`clusters()`] | pairs | identical |
//! | [`shared`] | features | used to count common shingles |

mod clusters;
mod shingles;
mod truth;
mod weighted;

use std::collections::{BTreeMap, BTreeSet};

pub use clusters::clusters;
pub use shingles::{Triplet, shared};
pub use truth::{pairs, sectional_pairs};
pub use weighted::{TRUTH_ROUNDING, WeightedFeatures, weighted_pairs};

use crate::block::{Blocking, HotPlace};
use crate::doc::DocId;
use crate::filter::PairFilter;
use crate::hash::SketchId;
use crate::pair::{DocPair, Evidence, Pair, Similarity};
use crate::pair_rule::Realm;
use crate::sketch::Sketch;

/// D(C): the pairs of a corpus C by definition, independent of its history.
///
/// Two sketches that meet in a block and that the filter accepts give the pairs of their visible members.
/// The members of one sketch are all pairs with similarity 1, unless the filter pairs no copies. If they
/// are more than `expand_limit`, only the smallest is visible, and the pairs are a star around it. In a block
/// the sketches of one [realm](Blocking::realm) are as a block of their own, and a sketch without one is in
/// those of all realms. Evidence is not computed (zero). `corpus` must not hold texts without a token.
pub fn exact<'a>(
    corpus: impl IntoIterator<Item = (&'a DocId, &'a (SketchId, Sketch))>,
    blocking: &dyn Blocking,
    filter: &dyn PairFilter,
    expand_limit: usize,
) -> BTreeSet<DocPair> {
    let mut members: BTreeMap<SketchId, (&Sketch, BTreeSet<&DocId>)> = BTreeMap::new();
    for (document, (id, sketch)) in corpus {
        members.entry(*id).or_insert_with(|| (sketch, BTreeSet::new())).1.insert(document);
    }
    let realms: BTreeSet<Realm> =
        members.values().filter_map(|(sketch, _)| blocking.realm(sketch.view())).collect();
    let mut blocks: BTreeMap<HotPlace, Vec<SketchId>> = BTreeMap::new();
    let mut keys = Vec::new();
    for (id, (sketch, _)) in &members {
        blocking.keys(sketch.view(), &mut keys);
        let own = blocking.realm(sketch.view());
        let in_all = own.is_none().then_some(&realms).into_iter().flatten().copied().map(Some);
        for (key, realm) in
            keys.drain(..).flat_map(|key| in_all.clone().chain([own]).map(move |of| (key, of)))
        {
            blocks.entry((key, realm)).or_default().push(*id);
        }
    }
    let mut candidates: BTreeMap<Pair<SketchId>, usize> = BTreeMap::new();
    for ((key, _), sketches) in &mut blocks {
        let (rule, near) = (blocking.rule(key.table), blocking.near(key.table));
        let is_near = |x: &SketchId, y: &SketchId| {
            near.is_none_or(|near| near.meet(members[x].0.words[0], members[y].0.words[0]))
        };
        sketches.sort_unstable_by_key(|id| rule.rank(*id, members[id].0.words[0]));
        // Leaders are first. In a block all pairs meet, in a hot one all pairs with a leader; by distance,
        // only those that are near.
        let is_hot = sketches.len() > rule.cap;
        let meeting = if is_hot { rule.leaders.min(sketches.len()) } else { sketches.len() };
        let pairs = sketches[..meeting]
            .iter()
            .enumerate()
            .flat_map(|(i, x)| sketches[i + 1..].iter().map(move |y| (x, y)))
            .filter(|(x, y)| is_near(x, y))
            .filter_map(|(x, y)| Pair::new(*x, *y));
        pairs.for_each(|pair| *candidates.entry(pair).or_default() += 1);
    }
    candidates.retain(|_, shared| *shared >= blocking.least());

    let visible = |id: &SketchId| {
        let documents = &members[id].1;
        documents.iter().take(if documents.len() <= expand_limit { usize::MAX } else { 1 }).copied()
    };
    let pair = |a: &DocId, b: &DocId, similarity| {
        DocPair::new(a.clone(), b.clone(), similarity, Evidence::default())
    };
    let mut pairs = BTreeSet::new();
    for candidate in candidates.into_keys() {
        let (x, y) = (candidate.lo(), candidate.hi());
        let Some(similarity) = filter.decide(members[x].0.view(), members[y].0.view()).accepted else {
            continue;
        };
        pairs.extend(visible(x).flat_map(|a| visible(y).filter_map(move |b| pair(a, b, similarity))));
    }
    let groups = members.iter().filter(|_| filter.pairs_copies());
    for (id, (_, documents)) in groups {
        for a in visible(id) {
            pairs.extend(documents.iter().filter_map(|b| pair(a, b, Similarity::ONE)));
        }
    }
    pairs
}
