//! Reads whole inputs directly, without a dataflow.

use std::ops::ControlFlow;

use super::files::Files;
use super::input::Input;
use crate::intake::{
    BadRecords, Decoder, Dequeued, EpochLimits, EpochRule, Queue, QueueRoom, Source, SourceError,
};
use dupflow_core::doc::fields::FieldRules;
use dupflow_core::doc::{DocEvent, Position};
use dupflow_core::text::TextColumns;
use dupflow_core::time::{Epoch, Offsets, SystemClock};

/// What may wait in the queue.
const ROOM: QueueRoom = QueueRoom { bytes: 16 << 20, batches: 64 };

/// Finishes the queue when the reader returns or panics: the loop that takes batches would otherwise wait
/// forever.
struct Finish<'q>(&'q Queue);

impl Drop for Finish<'_> {
    fn drop(&mut self) {
        self.0.finish();
    }
}

/// Calls `each` with every event of all inputs, in order of position, its text by these columns.
/// Every other record is reported to `bad`.
///
/// # Errors
/// A bad record under [`OnError::Fail`](crate::intake::OnError::Fail), or a dead-letter file that cannot be
/// written.
pub fn for_each_event(
    inputs: Vec<Input>,
    columns: &TextColumns,
    bad: &BadRecords,
    mut each: impl FnMut(Position, DocEvent<'_>),
) -> Result<(), SourceError> {
    for_each_event_until(inputs, columns, &FieldRules::default(), bad, |position, event| {
        each(position, event);
        ControlFlow::Continue(())
    })
}

/// Like [`for_each_event`], with the fields of documents by the rules `own`, until `each` returns
/// [`ControlFlow::Break`]; what has been read beyond that event is dropped.
///
/// # Errors
/// As [`for_each_event`].
pub fn for_each_event_until(
    inputs: Vec<Input>,
    columns: &TextColumns,
    own: &FieldRules,
    bad: &BadRecords,
    mut each: impl FnMut(Position, DocEvent<'_>) -> ControlFlow<()>,
) -> Result<(), SourceError> {
    let read = TextColumns { further: own.with_columns(columns.to_vec()), given: columns.given };
    let files = Box::new(Files::new(inputs, EpochRule::All, read));
    let queue = Queue::new(1, 1, ROOM, EpochLimits::default());
    let clock = SystemClock::start();
    let reading = std::thread::current();
    queue.register(Box::new(move || reading.unpark()));
    let mut decoder = Decoder::with_own(columns, own);
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| {
            let _finish = Finish(&queue);
            let mut readers = files.readers(&Offsets::new()).into_iter();
            readers.try_for_each(|mut reader| reader.read(&queue, bad, &clock))
        });
        loop {
            match queue.take(Epoch::MAX) {
                Dequeued::Done => break,
                Dequeued::Nothing { .. } => std::thread::park(),
                Dequeued::Batch(_, batch) => {
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
