//! A sink that keeps everything, for tests and examples.

use std::collections::BTreeMap;
use std::io;

use super::Sink;
use crate::doc::DocId;
use crate::pair::{DocPair, Pair, Similarity};
use crate::time::{Epoch, Progress};

/// Collects the deltas as they come.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Memory {
    /// Every delta with its epoch.
    pub deltas: Vec<(Epoch, DocPair, isize)>,
    /// How far every epoch has read.
    pub progress: Vec<Progress>,
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
    fn epoch(&mut self, progress: &Progress, deltas: &[(DocPair, isize)]) -> io::Result<()> {
        self.progress.push(progress.clone());
        self.deltas.extend(deltas.iter().map(|(pair, diff)| (progress.epoch, pair.clone(), *diff)));
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.finished = true;
        Ok(())
    }
}
