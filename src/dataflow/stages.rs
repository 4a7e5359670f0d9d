//! What the stages of a dataflow are made of.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use crate::block::{BlockKey, Blocking, HotBlock};
use crate::filter::PairFilter;
use crate::metrics::Metrics;
use crate::sketch::Scheme;

/// What the dataflow computes: everything that decides the result, and where it is counted.
#[derive(Clone, Debug)]
pub struct Stages {
    /// Text to sketch.
    pub scheme: Scheme,
    /// Sketch to blocks.
    pub blocking: Arc<dyn Blocking>,
    /// Candidate pair to verdict.
    pub filter: Arc<dyn PairFilter>,
    /// Most copies of one sketch that are expanded to pairs, inclusive; larger groups become stars.
    pub expand_limit: usize,
    /// Whether pairs carry their evidence; if not, it is zero, and no part of a pair's identity.
    pub evidence: bool,
    /// Where it is counted.
    pub metrics: Arc<Metrics>,
    /// The hot blocks of all workers, kept current; their documents are named when the input has ended.
    pub hot_blocks: Arc<Mutex<BTreeMap<BlockKey, HotBlock>>>,
}

impl Stages {
    /// The hot blocks of all workers.
    pub fn hot_blocks(&self) -> MutexGuard<'_, BTreeMap<BlockKey, HotBlock>> {
        // A worker that panicked while it held the lock has left a map that is still a map.
        self.hot_blocks.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
