//! The settings that every operator of the dataflow is built from.

use std::collections::BTreeMap;
use std::sync::{Arc, Once};

use parking_lot::Mutex;

use crate::dataflow::shared::kept_epochs::KeptEpochs;
use crate::dataflow::shared::process::ProcessSketches;
use dupflow_core::block::{Blocking, HotBlocks};
use dupflow_core::description::{Description, FieldValue};
use dupflow_core::detect::LiveSketch;
use dupflow_core::doc::fields::{FieldRow, FieldRule, FieldRules};
use dupflow_core::doc::retention::Retention;
use dupflow_core::filter::PairFilter;
use dupflow_core::memory::SpillPlace;
use dupflow_core::sketch::Scheme;
use dupflow_core::text::IdfTable;
use dupflow_core::time::{LiveFrom, Progress, UnixTime};
use dupflow_core::views::ViewPlan;
use dupflow_run::metrics::Metrics;
use dupflow_run::origins::Origins;
use dupflow_run::query::QueryQueue;

/// What the dataflow computes, where it begins, and what it shares with the rest of the process.
///
/// The fields of this type decide the result, together with the input; [`RunStart`] and [`Observers`] do not,
/// except that a restart repeats no epoch.
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
    /// The fields that documents hold, at least those of the scheme's rule. Events carry one value for
    /// each, in this order.
    pub fields: FieldRules,
    /// The rules by which documents expire.
    pub retention: Retention,
    /// Events after this time are not applied, as if they were not in the input; those without a time are.
    pub until: Option<UnixTime>,
    /// Whether an id may have events in several partitions. If so, the id's home decides which event is its
    /// last one, and deleted ids are remembered.
    pub ids_move: bool,
    /// Distinct sketches of all processes that the blocks are planned for.
    pub planned: u64,
    /// Whether documents are kept for a later run. If so, each closed epoch carries the changes of the kept
    /// documents.
    pub keeps: bool,
    /// Whether each closed epoch carries its [changes of documents](dupflow_core::doc::DocChange).
    pub emits_documents: bool,
    /// The views that are kept. They do not change the pairs.
    pub views: Arc<[ViewPlan]>,
    /// Whether each closed epoch carries the documents that it [upserts](dupflow_core::doc::UpsertedDoc).
    pub emits_upserts: bool,
    /// Whether there is a list of [watches](dupflow_run::watch): each closed epoch carries its notices.
    pub watches: bool,
    /// Whether each closed epoch carries the greatest time of its events.
    pub times: bool,
    /// Where rows are spilled, under a memory budget; `None`: everything is in memory. No part of the result.
    pub spill: Option<Spill>,
    /// Where the run begins.
    pub start: RunStart,
    /// What the rest of the process shares with the run.
    pub observers: Observers,
}

/// Where rows are written, and how much memory their pages may take.
#[derive(Clone, Debug)]
pub struct Spill {
    /// Where the files are created: two for each worker.
    pub place: Arc<dyn SpillPlace>,
    /// Bytes of a page, the unit of reading.
    pub page_bytes: usize,
    /// Bytes of the page caches of one worker.
    pub cache_bytes: usize,
    /// The memory budget of this process, in bytes: for what watches it.
    pub memory_bytes: u64,
}

/// Where a run begins: data of an earlier run. The default is a run without one.
#[derive(Clone, Debug)]
pub struct RunStart {
    /// The first epoch that no earlier run has processed. Tables of document frequencies are made from this
    /// epoch on.
    pub live: Arc<LiveFrom>,
    /// The progress of an earlier run: where reading begins, and the table of document frequencies in force.
    pub past: Progress,
    /// The table named by `past`.
    pub table: Option<Arc<IdfTable>>,
}

/// What the rest of the process reads of a running dataflow, or passes to it.
#[derive(Clone, Debug)]
pub struct Observers {
    /// The counters of this process.
    pub metrics: Arc<Metrics>,
    /// The hot blocks of all workers, kept current. The example documents of those that are shown are renewed
    /// after each epoch, and of all at the end of the input.
    pub hot_blocks: Arc<Mutex<HotBlocks>>,
    /// Queries about the corpus while it changes.
    pub queries: Arc<QueryQueue>,
    /// The input of each record, where that is known.
    pub origins: Option<Arc<Origins>>,
    /// New tables of document frequencies, by fingerprint, until the state stores them and takes them out.
    /// Only used where documents are kept.
    pub tables: Arc<Mutex<BTreeMap<u64, Arc<IdfTable>>>>,
    /// Receives what is kept of the documents of this process, if it stores that itself; otherwise closed
    /// epochs carry it.
    pub kept_here: Option<Arc<KeptEpochs>>,
    /// Receives the sketches that are live at the end of the input, with their documents; `None` if they are
    /// not wanted. Each worker adds those that it owns, in any order. Complete once the workers have ended.
    pub live_sketches: Option<Arc<Mutex<Vec<LiveSketch>>>>,
    /// Limits the log message about moving ids to one in a run.
    pub moves_logged: Arc<Once>,
    /// The sketches of each worker, which the others of the process read.
    pub(super) sketches: Arc<ProcessSketches>,
}

impl Stages {
    /// Stages of a new run: counters at zero, no evidence, no retention, nothing kept.
    pub fn new(
        scheme: Scheme,
        blocking: Arc<dyn Blocking>,
        filter: Arc<dyn PairFilter>,
        expand_limit: usize,
    ) -> Self {
        let observers = Observers::new(Metrics::new(filter.looks()));
        Self {
            scheme,
            blocking,
            filter,
            expand_limit,
            evidence: false,
            fields: FieldRules::default(),
            retention: Retention::default(),
            until: None,
            ids_move: false,
            planned: u64::MAX,
            keeps: false,
            emits_documents: false,
            views: [].into(),
            emits_upserts: false,
            watches: false,
            times: false,
            spill: None,
            start: RunStart::default(),
            observers,
        }
    }

    /// Whether the changes of documents are collected: for the output, or for the views.
    pub(super) fn collects_documents(&self) -> bool {
        self.emits_documents || self.views.iter().any(ViewPlan::needs_documents)
    }
}

impl Stages {
    /// The hashes of the fields that the scheme's rule names.
    pub(super) fn hashes(&self, row: &FieldRow, is_of_reference: bool) -> Box<[u64]> {
        let value = |field: &str| self.fields.place(field).map_or("", |place| row.get(place));
        self.scheme.pairs.hashes_of(value, is_of_reference)
    }

    /// Whether a restored document of the reference is of a frozen one, and not of inputs that an earlier
    /// process has read.
    pub(super) fn has_frozen_reference(&self) -> bool {
        let is_read = self.observers.origins.as_ref().is_some_and(|origins| origins.have_reference());
        self.scheme.pairs.has_reference() && !is_read
    }

    /// What decides whether stored documents can be restored: the scheme, and the fields that are stored with
    /// them.
    pub fn stored_description(&self) -> Description {
        self.scheme.description().and(described_fields(&self.fields))
    }
}

/// The name of the held fields in a description.
pub const HELD_FIELDS: &str = "source.fields";

/// The fields that documents hold, by the key that names them; empty if there are none.
pub fn described_fields(fields: &FieldRules) -> Description {
    let written = fields.rules().iter().map(FieldRule::written);
    let described = Description::new();
    if fields.is_empty() { described } else { described.with(HELD_FIELDS, FieldValue::list(written)) }
}

impl Default for RunStart {
    fn default() -> Self {
        Self { live: Arc::new(LiveFrom::beginning()), past: Progress::default(), table: None }
    }
}

impl Observers {
    /// Without queries, hot blocks and tables.
    pub fn new(metrics: Metrics) -> Self {
        Self {
            metrics: Arc::new(metrics),
            hot_blocks: Arc::default(),
            queries: Arc::default(),
            origins: None,
            tables: Arc::default(),
            kept_here: None,
            live_sketches: None,
            moves_logged: Arc::new(Once::new()),
            sketches: Arc::new(ProcessSketches::new(usize::MAX)),
        }
    }
}
