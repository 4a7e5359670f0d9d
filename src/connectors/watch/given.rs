//! Watches that inputs give: read whole, at the start and again every so often.
//!
//! A list is small, so nothing of its inputs is remembered but the list: a file, a table or a topic that is
//! read again gives the list that it holds then, and its difference from the list before is what changes. A
//! topic is read up to where it ends when reading begins.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use crate::intake::{
    BadRecords, CatchUp, CatchUpLine, Decoder, Dequeued, EpochLimits, InputTally, Queue, QueueRoom, Source,
    SourceError, SourceReader,
};
use dupflow_core::doc::DocId;
use dupflow_core::text::TextColumns;
use dupflow_core::time::{Clock, LiveFrom, Offsets, SystemClock};

/// Opens an input of the list; called for each reading.
pub type OpenGiven = Box<dyn Fn() -> Result<Box<dyn Source>, String> + Send + Sync>;

/// The inputs of a list.
pub struct GivenList {
    /// Opens each input.
    inputs: Vec<OpenGiven>,
    /// The columns of a text.
    columns: TextColumns,
    /// The time between two readings.
    pub every: Duration,
    /// What was wrong with the last reading.
    trouble: Mutex<Option<String>>,
}

/// What the inputs of a list hold.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct GivenWatches {
    /// The watches with their texts. Of two inputs with the same id, the later one counts.
    pub watches: BTreeMap<DocId, String>,
    /// Counts of all records.
    pub tally: InputTally,
}

/// Capacity of the queue between a reader and the list.
const ROOM: QueueRoom = QueueRoom { bytes: 1 << 20, batches: 64 };

impl GivenList {
    /// Inputs that are opened so, and read by these columns, at this interval.
    pub fn new(inputs: Vec<OpenGiven>, columns: TextColumns, every: Duration) -> Self {
        Self { inputs, columns, every, trouble: Mutex::default() }
    }

    /// Whether there is no input.
    pub fn is_empty(&self) -> bool {
        self.inputs.is_empty()
    }

    /// Reads all inputs.
    ///
    /// # Errors
    /// The first error of an input, or that an input holds records and no watch.
    pub fn read(&self) -> Result<GivenWatches, String> {
        let mut all = GivenWatches::default();
        for open in &self.inputs {
            read_whole(open()?, &self.columns, &mut all)?;
        }
        Ok(all)
    }

    /// Logs what is wrong with a reading, unless the same was wrong with the one before. Returns whether it
    /// was another outcome.
    pub fn log(&self, read: &Result<GivenWatches, String>) -> bool {
        let trouble = match read {
            Ok(GivenWatches { tally: InputTally { bad: 0, .. }, .. }) => None,
            Ok(GivenWatches { tally, .. }) => Some(format!("{}: {:?}", tally.bad, tally.first)),
            Err(error) => Some(error.clone()),
        };
        let before = std::mem::replace(&mut *self.trouble.lock(), trouble.clone());
        if before == trouble {
            return false;
        }
        match read {
            Ok(GivenWatches { tally: InputTally { bad: 0, .. }, .. }) => {
                tracing::info!("the inputs of the watch list are read again, without a bad record");
            }
            Ok(GivenWatches { tally: InputTally { bad, first, .. }, .. }) => {
                tracing::warn!(records = bad, first, "records of the watch list are no watches");
            }
            Err(error) => {
                tracing::warn!(error, "the inputs of the watch list cannot be read; it stays as it is");
            }
        }
        true
    }
}

/// Wakes the thread that reads, and holds the failure of a reader.
#[derive(Default)]
struct ReaderSignals {
    woken: Mutex<bool>,
    changed: Condvar,
    failure: Mutex<Option<String>>,
}

impl ReaderSignals {
    fn wake(&self) {
        *self.woken.lock() = true;
        self.changed.notify_all();
    }

    fn wait(&self) {
        let mut woken = self.woken.lock();
        self.changed.wait_while(&mut woken, |woken| !std::mem::take(woken));
    }
}

/// Reads a source to its end, or to where it ended when reading began.
fn read_whole(
    mut source: Box<dyn Source>,
    columns: &TextColumns,
    all: &mut GivenWatches,
) -> Result<(), String> {
    let error = |error: SourceError| error.to_string();
    let info = source.inspect().map_err(error)?;
    let begin = source.begin(None).map_err(error)?;
    let mut lines = Vec::new();
    if let Some(held) = info.held {
        let has_more = |(partition, end): &(u32, u64)| begin.get(partition).is_none_or(|begin| begin < end);
        let ends: Offsets = held.into_iter().map(|(of, (_, end))| (of, end)).filter(has_more).collect();
        if ends.is_empty() {
            return Ok(());
        }
        lines.push(CatchUpLine::Offsets(ends));
    }
    let is_endless = !lines.is_empty();
    let readers = source.readers(&begin);
    let live = Arc::new(LiveFrom::default());
    let (room, limits) = (ROOM, EpochLimits::default());
    let queue = Queue::behind(CatchUp::new(lines), live, None, readers.len(), 1, room, limits);
    let signals = Arc::<ReaderSignals>::default();
    let wakes = Arc::clone(&signals);
    queue.register(Box::new(move || wakes.wake()));
    let reading =
        ReadingList { queue: Arc::new(queue), signals, bad: Arc::new(BadRecords::tallied()), is_endless };
    readers.into_iter().try_for_each(|reader| reading.start(reader))?;
    reading.take_all(&mut Decoder::new(columns), &mut all.watches)?;
    let tallies = reading.bad.tallies();
    tallies.values().for_each(|tally| all.tally += tally);
    tallies.iter().find_map(|(name, tally)| tally.holds_no("watch", name)).map_or(Ok(()), Err)
}

/// The readers of one source, and what they have read.
struct ReadingList {
    queue: Arc<Queue>,
    signals: Arc<ReaderSignals>,
    bad: Arc<BadRecords>,
    /// Whether the source has no end: it is read up to where it ended when reading began.
    is_endless: bool,
}

impl ReadingList {
    /// Starts a reader. The thread is never joined: it may wait for input for ever.
    fn start(&self, mut reader: Box<dyn SourceReader>) -> Result<(), String> {
        let (queue, signals, bad) =
            (Arc::clone(&self.queue), Arc::clone(&self.signals), Arc::clone(&self.bad));
        let work = move || match reader.read(&queue, &bad, &SystemClock::start() as &dyn Clock) {
            Ok(()) => queue.finish(),
            Err(failure) => {
                signals.failure.lock().get_or_insert(failure.to_string());
                queue.fail();
            }
        };
        let started = thread::Builder::new().name("watches".to_owned()).spawn(work);
        started.map(drop).map_err(|why| why.to_string())
    }

    /// Adds what the readers read to a list, until they have ended.
    fn take_all(&self, decoder: &mut Decoder, all: &mut BTreeMap<DocId, String>) -> Result<(), String> {
        loop {
            match self.queue.take(u64::MAX) {
                Dequeued::Batch(_, batch) => {
                    let decoded = decoder.decode(&batch, &self.bad, &mut Vec::new(), |_, event| {
                        match event.text {
                            Some(text) => drop(all.insert(event.id, text.into_owned())),
                            None => drop(all.remove(&event.id)),
                        };
                    });
                    self.queue.give_back(batch);
                    if let Err(failure) = decoded {
                        self.queue.fail();
                        return Err(failure.to_string());
                    }
                }
                Dequeued::Nothing { .. } => {
                    if let Some(failure) = self.signals.failure.lock().take() {
                        return Err(failure);
                    }
                    if self.is_endless && self.queue.is_live() {
                        self.queue.stop();
                    } else {
                        self.signals.wait();
                    }
                }
                Dequeued::Done => return Ok(()),
            }
        }
    }
}

impl fmt::Debug for GivenList {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("GivenList").field("inputs", &self.inputs.len()).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_outcome_is_logged_once() {
        let list =
            GivenList::new(vec![Box::new(|| Err("gone".to_owned()))], TextColumns::default(), Duration::MAX);
        let gone = list.read();
        assert_eq!(gone, Err("gone".to_owned()));
        let bad = |bad| {
            let tally = InputTally { bad, ..InputTally::default() };
            Ok(GivenWatches { tally, ..GivenWatches::default() })
        };
        let other = Err("refused".to_owned());
        let readings = [&bad(0), &gone, &gone, &other, &bad(2), &bad(2), &bad(3), &bad(0), &bad(0), &gone];
        let logged = readings.map(|read| list.log(read));
        assert_eq!(logged, [false, true, false, true, true, false, true, true, false, true]);
    }
}
