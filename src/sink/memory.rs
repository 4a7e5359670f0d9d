//! A sink that keeps everything, for tests and examples.

use std::collections::BTreeMap;
use std::io;

use super::Sink;
use crate::doc::DocId;
use crate::pair::{DocPair, Pair, Similarity};
use crate::time::Epoch;

/// Collects the deltas as they come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Every delta with its epoch.
    pub deltas: Vec<(Epoch, DocPair, isize)>,
    /// Whether [`Sink::finish`] was called.
    pub finished: bool,
}

impl Memory {
    /// The pairs and similarities that the deltas up to `epoch`, inclusive, accumulate to, each with its count: 1
    /// everywhere if the law holds.
    pub fn accumulated(&self, epoch: Epoch) -> BTreeMap<(Pair<DocId>, Similarity), isize> {
        let mut counts = BTreeMap::new();
        for (_, pair, diff) in self.deltas.iter().filter(|delta| delta.0 <= epoch) {
            *counts.entry((pair.pair.clone(), pair.similarity)).or_default() += diff;
        }
        counts.retain(|_, &mut count| count != 0);
        counts
    }
}

impl Sink for Memory {
    fn epoch(&mut self, epoch: Epoch, deltas: &[(DocPair, isize)]) -> io::Result<()> {
        self.deltas.extend(deltas.iter().map(|(pair, diff)| (epoch, pair.clone(), *diff)));
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.finished = true;
        Ok(())
    }
}
