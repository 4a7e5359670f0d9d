//! The corpus that an input leaves, in memory.

use std::collections::BTreeMap;

use crate::doc::{DocId, Position};
use crate::source::{BadRecords, Decoder, EpochRule, Files, Input, OnError, Pull, Queue, SourceError, Speed};
use crate::time::{Epoch, SystemClock};

/// Bytes and batches that wait for the decoder.
const QUEUE: (u64, usize) = (16 << 20, 64);

/// What the input leaves.
#[derive(Debug, Default)]
pub(super) struct Corpus {
    /// The documents alive.
    pub(super) alive: BTreeMap<DocId, String>,
    /// The traced document's events: the bytes of its text, or none for a delete.
    pub(super) events: Vec<(Position, Option<usize>)>,
}

impl Corpus {
    /// Reads all inputs, in order of position.
    pub(super) fn read(inputs: Vec<Input>, traced: &DocId) -> Result<Self, SourceError> {
        let files = Files { inputs, epochs: EpochRule::All, speed: Speed::Max };
        let mut corpus = Self::default();
        let queue = Queue::new(QUEUE.0, QUEUE.1);
        let bad = BadRecords::new(OnError::Count, None);
        let clock = SystemClock::start();
        let reading = std::thread::current();
        queue.register(Box::new(move || reading.unpark()));
        let mut decoder = Decoder::new();
        std::thread::scope(|scope| {
            let reader = scope.spawn(|| files.run(&queue, &bad, &clock));
            loop {
                match queue.pull(Epoch::MAX) {
                    Pull::Done => break,
                    Pull::Idle { .. } => std::thread::park(),
                    Pull::Batch(batch) => {
                        let decoded = decoder.decode(&batch, &bad, |position, event| {
                            if event.id == *traced {
                                corpus.events.push((position, event.text.as_ref().map(|text| text.len())));
                            }
                            match event.text {
                                Some(text) => drop(corpus.alive.insert(event.id, text.into_owned())),
                                None => drop(corpus.alive.remove(&event.id)),
                            }
                        });
                        if let Err(error) = decoded {
                            queue.close();
                            return Err(error);
                        }
                    }
                }
            }
            reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map(drop)
        })?;
        Ok(corpus)
    }
}
