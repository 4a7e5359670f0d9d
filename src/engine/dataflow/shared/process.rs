//! The workers of a process, and the readers by which they read the sketches of each other.

use std::collections::BTreeMap;

use parking_lot::Mutex;

use crate::dataflow::shared::reader::SketchReader;

/// The stored sketches of the workers of a process.
#[derive(Debug)]
pub(in crate::dataflow) struct ProcessSketches {
    /// Threads of each process; all workers are in one process if they are not more.
    threads: usize,
    /// By worker.
    readers: Mutex<BTreeMap<usize, SketchReader>>,
}

/// The workers that are in the process of one of them.
#[derive(Clone, Copy, Debug)]
pub(in crate::dataflow) struct ProcessWorkers {
    /// The index of its first worker among those of all processes.
    first: usize,
    count: usize,
    worker: usize,
}

impl ProcessSketches {
    /// For processes of so many workers.
    pub(in crate::dataflow) fn new(threads: usize) -> Self {
        Self { threads, readers: Mutex::default() }
    }

    /// The workers of the process of one of `peers` workers.
    pub(in crate::dataflow) fn workers(&self, worker: usize, peers: usize) -> ProcessWorkers {
        let count = self.threads.min(peers);
        ProcessWorkers { first: worker / count * count, count, worker }
    }

    /// Sets the reader of a worker's sketches, before any of them is posted.
    pub(in crate::dataflow) fn publish(&self, worker: usize, reader: SketchReader) {
        self.readers.lock().insert(worker, reader);
    }

    /// The reader of a worker, by its number in the process.
    pub(in crate::dataflow) fn reader(&self, workers: ProcessWorkers, nth: usize) -> SketchReader {
        let readers = self.readers.lock();
        readers
            .get(&(workers.first + nth))
            .expect("a worker's reader is set before it posts a sketch")
            .clone()
    }
}

impl ProcessWorkers {
    /// Number of workers.
    pub(in crate::dataflow) fn count(self) -> usize {
        self.count
    }

    /// The number of a place of this worker among the places of all workers of the process.
    ///
    /// # Panics
    /// From 2^32 on; then there are more sketches than fit in memory.
    pub(in crate::dataflow) fn number(self, place: u32) -> u32 {
        let number = u64::from(place) * self.count as u64 + (self.worker - self.first) as u64;
        u32::try_from(number).expect("fewer than 2^32 sketches in a process")
    }

    /// The place of a number, and the number in the process of another worker whose place it is.
    #[inline]
    pub(in crate::dataflow) fn place(self, number: u32) -> (u32, Option<usize>) {
        let count = u32::try_from(self.count).unwrap_or(u32::MAX);
        let nth = (number % count) as usize;
        (number / count, Some(nth).filter(|nth| self.first + nth != self.worker))
    }

    /// Whether a worker is in the process.
    pub(in crate::dataflow) fn contain(self, worker: usize) -> bool {
        (self.first..self.first + self.count).contains(&worker)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_of_a_process_have_different_numbers() {
        let process = ProcessSketches::new(3);
        for (worker, peers, range) in [(0, 1, 0..1), (1, 2, 0..2), (2, 3, 0..3), (4, 9, 3..6)] {
            let workers = process.workers(worker, peers);
            assert_eq!(workers.count(), range.len());
            assert!((0..9).all(|other| workers.contain(other) == range.contains(&other)), "{workers:?}");
            let (count, own) =
                (u32::try_from(range.len()).unwrap(), u32::try_from(worker - range.start).unwrap());
            for number in 0..100 * count {
                let (place, other) = workers.place(number);
                assert_eq!(other, Some(number % count).filter(|nth| *nth != own).map(|nth| nth as usize));
                assert!(other.is_some() || workers.number(place) == number);
            }
        }
    }
}
