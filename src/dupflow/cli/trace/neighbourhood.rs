//! The documents that share a block with a given one, and those that are its pairs.
//!
//! The pairs are what the [oracle](dupflow_core::oracle) finds in the neighbourhood. The neighbourhood has
//! all sketches of the document's own blocks. So these blocks are as large as in the whole corpus, and the
//! pairs are the same.

use std::collections::{BTreeMap, BTreeSet};

use crate::cli::examine::{Examiner, SketchComparison, SketchedText};
use crate::config::Plan;
use dupflow_core::block::BlockKey;
use dupflow_core::doc::DocId;
use dupflow_core::hash::SketchId;
use dupflow_core::oracle;
use dupflow_core::pair::{Pair, Similarity};
use dupflow_core::sketch::Sketch;

/// The documents that share a block with the traced one, hot or not.
pub(super) struct Neighbourhood {
    id: DocId,
    traced: SketchedText,
    others: BTreeMap<DocId, SketchedText>,
    /// Distinct sketches of each of the traced document's blocks, of its realm, the leaders first.
    pub(super) blocks: BTreeMap<BlockKey, BTreeSet<(u32, SketchId)>>,
}

/// A document that shares a block with the traced one.
pub(super) struct Neighbour {
    pub(super) id: DocId,
    pub(super) sketch: SketchId,
    pub(super) compared: SketchComparison,
    /// Shared blocks in which the two are candidates: blocks that are not hot, or of which one of the two is
    /// a leader. For a blocking by distance, only blocks of sketches within it; none for sketches of two
    /// realms.
    pub(super) live: usize,
    /// Whether both documents have the same sketch.
    pub(super) is_copy: bool,
    /// Number of equal bits in the first words of both sketches.
    pub(super) first_word: u32,
}

impl Neighbourhood {
    /// The neighbours of `id` among the live documents: texts, with the hashes of their fields.
    pub(super) fn around(
        id: &DocId,
        traced: &SketchedText,
        alive: &BTreeMap<DocId, (&str, Box<[u64]>)>,
        examiner: &mut Examiner,
    ) -> Self {
        let rank = |key: &BlockKey, text: &SketchedText, by: &Examiner| {
            by.rule(key.table).rank(text.id, text.sketch.words[0])
        };
        let mut blocks: BTreeMap<_, _> =
            traced.keys.iter().map(|key| (*key, BTreeSet::from([rank(key, traced, examiner)]))).collect();
        let mut others = BTreeMap::new();
        for (other, (text, fields)) in alive.iter().filter(|(other, _)| *other != id) {
            let Some(sketched) = examiner.sketch(text, fields) else { continue };
            let mut shares = false;
            for key in &sketched.keys {
                if let Some(block) = blocks.get_mut(key) {
                    if sketched.realm == traced.realm {
                        block.insert(rank(key, &sketched, examiner));
                    }
                    shares = true;
                }
            }
            if shares {
                others.insert(other.clone(), sketched);
            }
        }
        Self { id: id.clone(), traced: traced.clone(), others, blocks }
    }

    /// The documents with the same sketch, itself included, ascending.
    pub(super) fn members(&self) -> BTreeSet<&DocId> {
        let copies = self.others.iter().filter(|(_, other)| other.id == self.traced.id);
        copies.map(|(id, _)| id).chain([&self.id]).collect()
    }

    /// Compares the document with all neighbours.
    pub(super) fn neighbours(&self, examiner: &Examiner) -> Vec<Neighbour> {
        let neighbour = |(id, other): (&DocId, &SketchedText)| {
            let compared = examiner.compare(&self.traced, other);
            let meets = |key: &&BlockKey| {
                let (block, rule) = (&self.blocks[*key], examiner.rule(key.table));
                let mut leaders = block.iter().take(rule.leaders);
                let is_pair_of_leader =
                    leaders.any(|(_, leader)| [self.traced.id, other.id].contains(leader));
                (block.len() <= rule.cap || is_pair_of_leader)
                    && examiner.may_meet(key.table, &self.traced, other)
            };
            let live = compared.shared.iter().filter(meets).count();
            Neighbour {
                id: id.clone(),
                sketch: other.id,
                live: if live >= examiner.least() { live } else { 0 },
                compared,
                is_copy: other.id == self.traced.id,
                first_word: 64 - (self.traced.sketch.words[0] ^ other.sketch.words[0]).count_ones(),
            }
        };
        self.others.iter().map(neighbour).collect()
    }

    /// The pairs of the document.
    pub(super) fn pairs(&self, neighbours: &[Neighbour], plan: &Plan) -> Vec<(Pair<DocId>, Similarity)> {
        let blocking = plan.blocking();
        // While no block is above the cap, rejected documents cannot change the result and are left out.
        let is_crowded = self.blocks.iter().any(|(key, block)| block.len() > blocking.rule(key.table).cap);
        let counts = |neighbour: &&Neighbour| {
            is_crowded || neighbour.is_copy || neighbour.compared.verdict.accepted.is_some()
        };
        let around =
            neighbours.iter().filter(counts).map(|neighbour| (&neighbour.id, &self.others[&neighbour.id]));
        let corpus: Vec<(&DocId, (SketchId, Sketch))> = around
            .chain([(&self.id, &self.traced)])
            .map(|(id, sketched)| (id, (sketched.id, sketched.sketch.clone())))
            .collect();
        let corpus = corpus.iter().map(|(id, sketched)| (*id, sketched));
        let pairs = oracle::exact(corpus, &*blocking, &*plan.filter(), plan.expand_limit).into_iter();
        let own = pairs.filter(|found| [found.pair.lo(), found.pair.hi()].contains(&&self.id));
        own.map(|found| (found.pair, found.similarity)).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_core::sketch::SketchMaker;

    /// Each text differs from a base by one word: with these limits there are stars and hot blocks.
    #[test]
    fn the_pairs_of_every_document_are_those_of_brute_force() {
        let overrides = ["blocking.cap=3", "output.expand_limit=2"].map(str::to_owned);
        for pipeline in ["tour", "minhash", "contained"] {
            let plan = Plan::load(pipeline, &overrides).unwrap();
            let base: Vec<String> = (0..40).map(|i| format!("w{i}")).collect();
            let variant = |i: usize| {
                let mut words = base.clone();
                words[(i % 7) * 5] = format!("x{}", i % 7);
                words.join(" ")
            };
            let alive: BTreeMap<DocId, String> =
                (0..16).map(|i| (DocId::new(&format!("d{i:02}")).unwrap(), variant(i))).collect();
            let mut maker = SketchMaker::new(&plan.scheme);
            let corpus: BTreeMap<_, _> =
                alive.iter().map(|(id, text)| (id, maker.sketch(text).unwrap())).collect();
            let expected = oracle::exact(
                corpus.iter().map(|(id, sketched)| (*id, sketched)),
                &*plan.blocking(),
                &*plan.filter(),
                plan.expand_limit,
            );
            assert!(expected.len() > 16, "{pipeline}: {}", expected.len());
            for (id, text) in &alive {
                let mut examiner = Examiner::new(&plan);
                let traced = examiner.sketch(text, &[]).unwrap();
                let texts = alive.iter().map(|(other, own)| (other.clone(), (own.as_str(), Box::default())));
                let around = Neighbourhood::around(id, &traced, &texts.collect(), &mut examiner);
                let found = around.pairs(&around.neighbours(&examiner), &plan);
                let of_id: Vec<_> = expected
                    .iter()
                    .filter(|doc| doc.pair.lo() == id || doc.pair.hi() == id)
                    .map(|doc| (doc.pair.clone(), doc.similarity))
                    .collect();
                assert_eq!(found, of_id, "{pipeline} {id}");
            }
        }
    }
}
