//! A whole input, read on the spot: for what needs a corpus and no dataflow.

use super::{
    BadRecords, Decoder, EpochLimits, EpochRule, Files, Input, Queue, Room, Source, SourceError, Taken,
};
use std::ops::ControlFlow;

use dupflow_core::doc::{DocEvent, Position};
use dupflow_core::time::{Epoch, Offsets, SystemClock};

/// What may wait for the decoder.
const ROOM: Room = Room { bytes: 16 << 20, batches: 64 };

/// Ends the queue however its reader ends: nobody takes what is read for whole before the reader has been
/// asked.
struct Finish<'q>(&'q Queue);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// Hands every event of all inputs, its text with the further `fields`, to `each`, in order of position, and
/// every other record to `bad`.
///
/// # Errors
/// What [`BadRecords`] makes of a bad record.
pub fn for_each_event(
    inputs: Vec<Input>,
    fields: &[String],
    bad: &BadRecords,
    mut each: impl FnMut(Position, DocEvent<'_>),
) -> Result<(), SourceError> {
    for_each_event_until(inputs, fields, bad, |position, event| {
        each(position, event);
        ControlFlow::Continue(())
    })
}

/// The same, up to the event at which `each` breaks it off; what was read beyond is not handed over.
///
/// # Errors
/// As [`for_each_event`].
pub fn for_each_event_until(
    inputs: Vec<Input>,
    fields: &[String],
    bad: &BadRecords,
    mut each: impl FnMut(Position, DocEvent<'_>) -> ControlFlow<()>,
) -> Result<(), SourceError> {
    let files = Box::new(Files::of(inputs, EpochRule::All, fields.to_vec()));
    let queue = Queue::new(1, 1, ROOM, EpochLimits::default());
    let clock = SystemClock::start();
    let reading = std::thread::current();
    queue.register(Box::new(move || reading.unpark()));
    let mut decoder = Decoder::new(fields);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let _finish = Finish(&queue);
            let mut readers = files.readers(&Offsets::new()).into_iter();
            readers.try_for_each(|mut reader| reader.read(&queue, bad, &clock))
        });
        loop {
            match queue.take(Epoch::MAX) {
                Taken::Done => break,
                Taken::Nothing { .. } => std::thread::park(),
                Taken::Batch(_, batch) => {
                    let mut is_over = false;
                    let wanted = |position: Position, event: DocEvent<'_>| {
                        is_over = is_over || each(position, event).is_break();
                    };
                    if let Err(error) = decoder.decode(&batch, bad, &mut Vec::new(), wanted) {
                        queue.fail();
                        return Err(error);
                    }
                    if is_over {
                        queue.stop();
                        break;
                    }
                    queue.give_back(batch);
                }
            }
        }
        reader.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    })
}
