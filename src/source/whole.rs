//! A whole input, read on the spot: for what needs a corpus and no dataflow.

use super::{BadRecords, Decoder, EpochRule, Files, Input, Pull, Queue, SourceError, Speed};
use crate::doc::{DocEvent, Position};
use crate::time::{Epoch, SystemClock};

/// Bytes and batches that wait for the decoder.
const QUEUE: (u64, usize) = (16 << 20, 64);

/// Hands every event of all inputs, its text with the further `fields`, to `each`, in order of position, and every other record
/// to `bad`.
///
/// # Errors
/// What [`BadRecords`] makes of a bad record.
pub fn for_each_event(
    inputs: Vec<Input>,
    fields: &[String],
    bad: &BadRecords,
    mut each: impl FnMut(Position, DocEvent<'_>),
) -> Result<(), SourceError> {
    let files = Files { inputs, epochs: EpochRule::All, speed: Speed::Max };
    let queue = Queue::new(QUEUE.0, QUEUE.1);
    let clock = SystemClock::start();
    let reading = std::thread::current();
    queue.register(Box::new(move || reading.unpark()));
    let mut decoder = Decoder::new(fields);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| files.run(&queue, bad, &clock));
        loop {
            match queue.pull(Epoch::MAX) {
                Pull::Done => break,
                Pull::Idle { .. } => std::thread::park(),
                Pull::Batch(batch) => {
                    if let Err(error) = decoder.decode(&batch, bad, &mut each) {
                        queue.close();
                        return Err(error);
                    }
                }
            }
        }
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic)).map(drop)
    })
}
