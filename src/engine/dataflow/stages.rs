//! What the stages of a dataflow are made of.

use std::collections::BTreeMap;
use std::sync::{Arc, Once};

use parking_lot::Mutex;

use dupflow_core::block::{Blocking, HotBlocks};
use dupflow_core::doc::retention::Retention;
use dupflow_core::filter::PairFilter;
use dupflow_core::run::metrics::Metrics;
use dupflow_core::run::origins::Origins;
use dupflow_core::run::visit::Visitors;
use dupflow_core::sketch::Scheme;
use dupflow_core::text::IdfTable;
use dupflow_core::time::{LiveFrom, Progress};

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
    /// Which documents stay alive.
    pub retention: Retention,
    /// Whether an id may have events in several partitions: then its home decides which of them is the last
    /// one, and deleted ids are remembered.
    pub ids_move: bool,
    /// That ids do move is logged once in a run.
    pub moves_logged: Arc<Once>,
    /// Whether documents are kept for a later run: then each epoch leaves with what changed of them.
    pub keeps: bool,
    /// Whether each epoch leaves with its [changes of documents](dupflow_core::doc::DocChange).
    pub tells_documents: bool,
    /// From which epoch on no earlier run has been here before. Tables of document frequencies are made from
    /// there on.
    pub live: Arc<LiveFrom>,
    /// How far an earlier run had come: where reading begins, and the table of document frequencies in force.
    pub past: Progress,
    /// That table.
    pub table: Option<Arc<IdfTable>>,
    /// Tables that have been made, until whoever stores them takes them out; by fingerprint. Only where
    /// documents are kept.
    pub tables: Arc<Mutex<BTreeMap<u64, Arc<IdfTable>>>>,
    /// Who asks about the corpus while it changes.
    pub visitors: Arc<Visitors>,
    /// Which input each record is of, where that is known.
    pub origins: Option<Arc<Origins>>,
    /// Where it is counted.
    pub metrics: Arc<Metrics>,
    /// The hot blocks of all workers, kept current; their documents are named now and then, and when the
    /// input has ended.
    pub hot_blocks: Arc<Mutex<HotBlocks>>,
    /// Distinct sketches that the blocks are planned for, of all processes.
    pub planned: u64,
}

impl Stages {
    /// Stages of a run that begins, with everything counted from zero; without evidence, every document stays
    /// alive, nothing kept.
    pub fn new(
        scheme: Scheme,
        blocking: Arc<dyn Blocking>,
        filter: Arc<dyn PairFilter>,
        expand_limit: usize,
    ) -> Self {
        Self {
            scheme,
            blocking,
            metrics: Arc::new(Metrics::new(filter.looks())),
            filter,
            expand_limit,
            evidence: false,
            retention: Retention::default(),
            ids_move: false,
            moves_logged: Arc::new(Once::new()),
            keeps: false,
            tells_documents: false,
            live: Arc::new(LiveFrom::beginning()),
            past: Progress::default(),
            table: None,
            tables: Arc::default(),
            visitors: Arc::default(),
            origins: None,
            hot_blocks: Arc::default(),
            planned: u64::MAX,
        }
    }
}
