//! The documents around one, and which of them are its pairs: the definition of the result, for one document.

use std::collections::{BTreeMap, BTreeSet};

use crate::block::BlockKey;
use crate::cli::examine::{Comparison, Examiner, Sketched};
use crate::doc::DocId;
use crate::hash::SketchId;
use crate::pair::{Pair, Similarity};

/// The documents that share a block with the traced one, hot or not.
pub(super) struct Neighbourhood {
    id: DocId,
    traced: Sketched,
    others: BTreeMap<DocId, Sketched>,
    /// Members of each sketch met, the traced document's too. All of them: copies share their blocks.
    members: BTreeMap<SketchId, BTreeSet<DocId>>,
    /// Distinct sketches of each of the traced document's blocks.
    pub(super) blocks: BTreeMap<BlockKey, BTreeSet<SketchId>>,
}

/// The traced document and one around it.
pub(super) struct Meeting {
    pub(super) other: DocId,
    pub(super) compared: Comparison,
    /// Shared blocks in which the two meet: those that are not hot, or of which one is a leader.
    pub(super) live: usize,
    /// Whether both are members of one sketch.
    pub(super) is_copy: bool,
    sketch: SketchId,
}

impl Neighbourhood {
    /// Finds the neighbours of `id` among the documents alive.
    pub(super) fn of(
        id: &DocId,
        traced: &Sketched,
        alive: &BTreeMap<DocId, String>,
        examiner: &mut Examiner,
    ) -> Self {
        let mut blocks: BTreeMap<_, _> =
            traced.keys.iter().map(|key| (*key, BTreeSet::from([traced.id]))).collect();
        let mut members = BTreeMap::from([(traced.id, BTreeSet::from([id.clone()]))]);
        let mut others = BTreeMap::new();
        for (other, text) in alive.iter().filter(|(other, _)| *other != id) {
            let Some(sketched) = examiner.sketch(text) else { continue };
            let mut meets = false;
            for key in &sketched.keys {
                if let Some(block) = blocks.get_mut(key) {
                    block.insert(sketched.id);
                    meets = true;
                }
            }
            if meets {
                members.entry(sketched.id).or_default().insert(other.clone());
                others.insert(other.clone(), sketched);
            }
        }
        Self { id: id.clone(), traced: traced.clone(), others, members, blocks }
    }

    /// Compares the document with all others around it.
    pub(super) fn meetings(&self, examiner: &Examiner) -> Vec<Meeting> {
        let meeting = |(other, sketched): (&DocId, &Sketched)| {
            let compared = examiner.compare(&self.traced, sketched);
            let meets = |key: &&BlockKey| {
                let (block, rule) = (&self.blocks[*key], examiner.rule());
                let is_pair_of_leader = block
                    .iter()
                    .take(rule.leaders)
                    .any(|leader| [self.traced.id, sketched.id].contains(leader));
                block.len() <= rule.cap || is_pair_of_leader
            };
            Meeting {
                other: other.clone(),
                live: compared.shared.iter().filter(meets).count(),
                compared,
                is_copy: sketched.id == self.traced.id,
                sketch: sketched.id,
            }
        };
        self.others.iter().map(meeting).collect()
    }

    /// The document's pairs.
    pub(super) fn pairs(&self, meetings: &[Meeting], expand_limit: usize) -> Vec<(Pair<DocId>, Similarity)> {
        // A group of more copies than the limit is a star: its smallest member alone stands for it.
        let is_visible = |id: &DocId, sketch: &SketchId| {
            let members = &self.members[sketch];
            members.len() <= expand_limit || members.first() == Some(id)
        };
        let pair = |meeting: &Meeting| {
            let visible =
                (is_visible(&self.id, &self.traced.id), is_visible(&meeting.other, &meeting.sketch));
            let similarity = match visible {
                (true, _) | (_, true) if meeting.is_copy => Some(Similarity::ONE),
                (true, true) if meeting.live > 0 => meeting.compared.verdict.accepted,
                _ => None,
            };
            Some((Pair::new(self.id.clone(), meeting.other.clone())?, similarity?))
        };
        meetings.iter().filter_map(pair).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Plan;
    use crate::oracle;
    use crate::sketch::SketchMaker;

    /// Each text is one word away from a base, with copies: stars and hot blocks at these limits.
    #[test]
    fn the_pairs_of_every_document_are_those_of_brute_force() {
        let overrides = ["blocking.cap=3", "output.expand_limit=2"].map(str::to_owned);
        for pipeline in ["tour", "minhash"] {
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
                let traced = examiner.sketch(text).unwrap();
                let around = Neighbourhood::of(id, &traced, &alive, &mut examiner);
                let found = around.pairs(&around.meetings(&examiner), plan.expand_limit);
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
