//! Parcels: the postings of many sketches for one worker, sent as one record.
//!
//! A sketch has a block key for each table, and the blocks are spread over the workers. Sent one by one, each
//! posting would carry the sketch's id and first word. A parcel has them once, followed by those of the
//! sketch's keys that the worker owns.

use serde::{Deserialize, Serialize};

use crate::dataflow::shared::process::ProcessWorkers;
use dupflow_core::block::BlockKey;
use dupflow_core::block::index::{Postings, SketchHead};

/// Postings for one worker.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(in crate::dataflow) struct Parcel {
    /// The index of that worker.
    pub(in crate::dataflow) to: u64,
    pub(in crate::dataflow) postings: Postings,
}

/// The unsent parcels of one epoch, one for each worker.
#[derive(Debug)]
pub(in crate::dataflow) struct Parcels {
    open: Vec<Postings>,
    /// The workers that can read the sketches by place.
    process: ProcessWorkers,
}

/// Number of keys from which on a parcel is sent before its epoch ends, so that it stays small.
const FULL: usize = 1 << 13;

impl Parcels {
    /// For this many workers, of sketches that one of `process` stores.
    pub(in crate::dataflow) fn new(peers: usize, process: ProcessWorkers) -> Self {
        Self { open: vec![Postings::default(); peers], process }
    }

    /// Adds a sketch that enters the blocks of `keys` (`diff` 1) or leaves them (-1); `place` is where it is
    /// stored. If it does not enter its blocks, it is looked up in them. Passes full parcels to `send`.
    pub(in crate::dataflow) fn add(
        &mut self,
        head: SketchHead,
        place: u32,
        diff: i8,
        enters: bool,
        keys: impl Iterator<Item = BlockKey>,
        send: impl FnMut(Parcel),
    ) {
        let peers = self.open.len();
        keys.for_each(|key| self.open[owner(key, peers)].key(key));
        // Without effect on the parcels that received no key of this sketch.
        for (to, postings) in self.open.iter_mut().enumerate() {
            let number = self.process.contain(to).then(|| self.process.number(place));
            postings.sketch_at(number, head, diff, enters);
        }
        self.send(FULL, send);
    }

    /// Sends the remaining parcels of an epoch.
    pub(in crate::dataflow) fn flush(&mut self, send: impl FnMut(Parcel)) {
        self.send(1, send);
    }

    /// Sends parcels of at least this many keys.
    fn send(&mut self, least: usize, mut send: impl FnMut(Parcel)) {
        for (to, postings) in (0..).zip(&mut self.open) {
            if postings.len() >= least {
                send(Parcel { to, postings: std::mem::take(postings) });
            }
        }
    }
}

/// The worker that owns a block. It is chosen by the low end of the hash: tables of the index are
/// ordered by hash, and so the keys of one worker are spread over the whole order.
pub(in crate::dataflow) fn owner(key: BlockKey, peers: usize) -> usize {
    usize::try_from((key.hash() + u64::from(key.table)) % peers as u64).expect("a worker's index")
}

/// The lowest bits in which the hashes of a worker's keys agree, in each table.
pub(in crate::dataflow) fn common_bits(peers: usize) -> u32 {
    peers.trailing_zeros()
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::dataflow::shared::process::ProcessSketches;
    use dupflow_core::hash::SketchId;

    /// Each key is sent to its owner, once, with the sketch; and no parcel grows far beyond its size.
    #[test]
    fn every_posting_arrives_once() {
        for peers in [1, 2, 3, 4, 6, 7] {
            let mut parcels = Parcels::new(peers, ProcessSketches::new(2).workers(0, peers));
            let mut sent = Vec::new();
            for n in 0..2000 {
                let keys = (0..18).map(|table| BlockKey::new(table, n << 7 ^ u64::from(table)));
                let head = SketchHead { id: SketchId::new(0, &[n]), word: 0, realm: None };
                parcels.add(head, 0, 1, true, keys, |parcel| sent.push(parcel));
            }
            parcels.flush(|parcel| sent.push(parcel));
            let most = sent.iter().map(|parcel| parcel.postings.len()).max();
            assert!(most < Some(FULL + 18), "{most:?}");
            assert_eq!(sent.iter().map(|parcel| parcel.postings.len()).sum::<usize>(), 2000 * 18);
            for Parcel { to, postings } in sent {
                assert!(postings.keys().all(|key| owner(key, peers) as u64 == to));
                let common = |key: BlockKey| (key.table, key.hash() & ((1 << common_bits(peers)) - 1));
                let agreed: BTreeSet<_> = postings.keys().map(common).collect();
                assert!(agreed.len() <= 18, "one of each table");
            }
            parcels.flush(|_| panic!("nothing is left"));
        }
    }
}
