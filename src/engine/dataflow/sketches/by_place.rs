//! The sketches of a process, which the blocks of all its workers read by place.
//!
//! A worker passes the place of a sketch on with its postings, after it has stored the sketch. It gives the
//! place to no other sketch before all workers have applied these postings and those by which the sketch
//! leaves its blocks: see rule 2 of the [store](super::store).

use std::cell::{Cell, OnceCell, RefCell};
use std::rc::Rc;
use std::sync::Arc;

use crate::dataflow::shared::process::{ProcessSketches, ProcessWorkers};
use crate::dataflow::shared::reader::SketchReader;
use crate::dataflow::sketches::store::Sketches;
use crate::dataflow::stages::Stages;
use dupflow_core::block::index::{LocalSketches, SketchSource};
use dupflow_core::filter::PairFilter;
use dupflow_core::hash::SketchId;
use dupflow_core::sketch::SketchRef;

/// The sketches of a process for the blocks of one worker.
#[derive(Debug)]
pub(in crate::dataflow) struct SketchesByPlace {
    own: Rc<RefCell<Sketches>>,
    workers: ProcessWorkers,
    process: Arc<ProcessSketches>,
    /// By worker of the process. A worker has published its reader before it posts a sketch.
    readers: Box<[OnceCell<SketchReader>]>,
    /// Decides pairs by the words of their sketches alone; `None` if it reads features too.
    filter: Option<Arc<dyn PairFilter>>,
    /// A buffer for the words of a sketch.
    copied: RefCell<Vec<u64>>,
    /// Numbers of places and ids, each at its number modulo [`KNOWN`]: ids are computed from words, or read.
    known: Box<[Cell<(u32, SketchId)>]>,
}

/// Most ids that are known. A sketch that changes is in several blocks, and leaders of hot blocks are asked
/// for with each of their members.
const KNOWN: usize = if cfg!(test) { 8 } else { 2048 };

impl SketchesByPlace {
    /// The place of a number, on another worker; on this one if there is no reader.
    #[inline]
    fn place(&self, number: u32) -> (u32, Option<&SketchReader>) {
        let (place, other) = self.workers.place(number);
        (place, other.map(|nth| self.readers[nth].get_or_init(|| self.process.reader(self.workers, nth))))
    }

    /// Passes the words of a sketch to `read`; `None` if they may be in a file.
    #[inline]
    fn with_words<R>(&self, number: u32, read: impl FnOnce(&[u64]) -> R) -> Option<R> {
        match self.place(number) {
            (place, None) => self.own.borrow().words_in_memory(place, read),
            (place, Some(reader)) => reader.words_in_memory(place, read),
        }
    }
}

impl LocalSketches for SketchesByPlace {
    fn enters(&self, number: u32, id: SketchId) {
        self.known[number as usize % KNOWN].set((number, id));
    }

    fn id(&self, number: u32) -> SketchId {
        let known = &self.known[number as usize % KNOWN];
        if known.get().0 != number {
            let id = match self.place(number) {
                (place, None) => self.own.borrow().id_at(place),
                (place, Some(reader)) => reader.id(place),
            };
            known.set((number, id));
        }
        known.get().1
    }

    fn word(&self, number: u32) -> u64 {
        match self.place(number) {
            (place, None) => self.own.borrow().first_word(place),
            (place, Some(reader)) => reader.first(place),
        }
    }

    fn may_pair(&self, a: u32, b: u32) -> bool {
        let Some(filter) = &self.filter else { return true };
        let accepts = |both: [&[u64]; 2]| {
            let [x, y] = both.map(|words| SketchRef { words, features: &[] });
            filter.decide_passed(x, y).accepted.is_some()
        };
        // A reader reads one row at a time.
        let mut of_a = self.copied.borrow_mut();
        of_a.clear();
        let is_read = self.with_words(a, |words| of_a.extend_from_slice(words)).is_some();
        !is_read || self.with_words(b, |of_b| accepts([&of_a, of_b])).unwrap_or(true)
    }
}

/// Where the blocks of a worker find the sketches of `peers` workers: in the stores of its process, as far as
/// these have them.
pub(in crate::dataflow) fn source_of_blocks(
    own: Rc<RefCell<Sketches>>,
    stages: &Stages,
    worker: usize,
    peers: usize,
) -> SketchSource<SketchesByPlace> {
    let process = &stages.observers.sketches;
    let workers = process.workers(worker, peers);
    let readers = (0..workers.count()).map(|_| OnceCell::new()).collect();
    let is_all = workers.count() == peers;
    let known = (0..KNOWN).map(|_| Cell::new((u32::MAX, SketchId::default()))).collect();
    let filter = (!stages.scheme.keeps_features()).then(|| Arc::clone(&stages.filter));
    let (process, copied) = (Arc::clone(process), RefCell::default());
    let sketches = SketchesByPlace { own, workers, process, readers, filter, copied, known };
    if is_all { SketchSource::Owner(sketches) } else { SketchSource::Both(sketches) }
}
