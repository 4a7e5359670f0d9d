//! A source read on its own thread, and the events read.

use std::sync::Arc;
use std::sync::mpsc::{Receiver, channel};
use std::thread::JoinHandle;
use std::time::{Duration, Instant};

use dupflow::connectors::formats::{RecordShape, ValueFormat};
use dupflow::connectors::intake::{
    BadRecords, CatchUp, CatchUpLine, Decoder, Dequeued, EpochLimits, Queue, QueueRoom, Source, SourceError,
};
use dupflow::connectors::kafka::{Kafka, Start};
use dupflow::core::time::{Epoch, LiveFrom, Offsets, SystemClock};

use crate::broker::{BOUND, Broker};

/// An event: epoch, partition, offset, id, text.
pub(crate) type Seen = (Epoch, u32, u64, String, Option<String>);

/// A topic being read, and what has been read so far.
pub(crate) struct Reading {
    pub(crate) queue: Arc<Queue>,
    pub(crate) live: Arc<LiveFrom>,
    pub(crate) bad: Arc<BadRecords>,
    pub(crate) begin: Offsets,
    pub(crate) seen: Vec<Seen>,
    /// Time of each event, in Unix seconds.
    pub(crate) times: Vec<Option<f64>>,
    /// The offset after the last record of each partition.
    pub(crate) next: Offsets,
    /// Names of the fields that events carry.
    pub(crate) fields: Vec<String>,
    woken: Receiver<()>,
    thread: Option<JoinHandle<Result<(), SourceError>>>,
}

pub(crate) fn kafka(broker: &Broker, topic: &str, start: Start) -> Kafka {
    Kafka {
        connection: broker.connection(),
        topic: topic.to_owned(),
        start,
        share: (0, 1),
        shape: Arc::new(RecordShape { format: ValueFormat::Text, ..RecordShape::default() }),
        limits: EpochLimits::default(),
        refresh: Duration::from_millis(200),
        as_of: Arc::default(),
        backlog: Arc::default(),
    }
}

pub(crate) const ROOM: QueueRoom = QueueRoom { bytes: 4 << 20, batches: 64 };

impl Reading {
    /// Starts at the beginning that the source determines, without lines ahead.
    pub(crate) fn from_start(kafka: Kafka) -> Self {
        Self::start(kafka, None, Vec::new(), ROOM)
    }

    pub(crate) fn start(
        mut kafka: Kafka,
        from: Option<&Offsets>,
        lines: Vec<CatchUpLine>,
        room: QueueRoom,
    ) -> Self {
        let begin = kafka.begin(from).unwrap();
        let live = Arc::new(LiveFrom::default());
        let limits = kafka.limits;
        let mut readers = Box::new(kafka).readers(&begin);
        assert_eq!(readers.len(), 1);
        let queue = Queue::behind(CatchUp::new(lines), Arc::clone(&live), None, 1, 1, room, limits);
        let queue = Arc::new(queue);
        let (tell, woken) = channel();
        queue.register(Box::new(move || tell.send(()).unwrap_or(())));
        let bad = Arc::new(BadRecords::default());
        let thread = std::thread::spawn({
            let (queue, bad) = (Arc::clone(&queue), Arc::clone(&bad));
            move || {
                let ended = readers.remove(0).read(&queue, &bad, &SystemClock::start());
                queue.wake();
                ended
            }
        });
        let (seen, times, next, fields) = Default::default();
        Self { queue, live, bad, begin, seen, times, next, fields, woken, thread: Some(thread) }
    }

    /// Takes batches until `enough` holds.
    pub(crate) fn until(&mut self, what: &str, enough: impl Fn(&Self) -> bool) {
        let end = Instant::now() + BOUND;
        let mut decoder = Decoder::new(&self.fields.clone().into());
        while !enough(self) {
            match self.queue.take(Epoch::MAX) {
                Dequeued::Batch(epoch, batch) => {
                    let (seen, times) = (&mut self.seen, &mut self.times);
                    let mut letters = Vec::new();
                    decoder
                        .decode(&batch, &self.bad, &mut letters, |at, event| {
                            seen.push((
                                epoch,
                                at.partition,
                                at.offset,
                                event.id.to_string(),
                                event.text.map(Into::into),
                            ));
                            times.push(event.ts);
                        })
                        .unwrap();
                    let before = self.next.insert(batch.partition, batch.next);
                    assert!(before.is_none_or(|before| before <= batch.next), "a position never goes back");
                    self.queue.give_back(batch);
                }
                Dequeued::Nothing { .. } => {
                    let left = end.saturating_duration_since(Instant::now());
                    let ended = self.thread.as_ref().unwrap().is_finished();
                    assert!(!left.is_zero() && !ended, "no {what}: {:?}, {:?}", self.next, self.seen.len());
                    self.woken.recv_timeout(left).unwrap_or(());
                }
                Dequeued::Done => panic!("the reader has ended before {what}"),
            }
        }
    }

    /// Takes `count` events.
    pub(crate) fn events(&mut self, count: usize) {
        self.until("so many events", |reading| reading.seen.len() >= count);
        assert_eq!(self.seen.len(), count);
    }

    /// Ids with their texts, `-` for a delete, in the order of reading.
    pub(crate) fn events_read(&self) -> Vec<String> {
        self.seen
            .iter()
            .map(|(_, _, _, id, text)| format!("{id}:{}", text.as_deref().unwrap_or("-")))
            .collect()
    }

    /// Stops the reader. Returns its result.
    pub(crate) fn stop(mut self) -> Result<(), SourceError> {
        self.queue.stop();
        self.thread.take().unwrap().join().unwrap()
    }

    /// Takes batches until the reader fails. Returns the error.
    pub(crate) fn error(mut self) -> String {
        let thread = self.thread.take().unwrap();
        let end = Instant::now() + BOUND;
        while !thread.is_finished() {
            assert!(Instant::now() < end, "the reader goes on");
            if let Dequeued::Nothing { .. } = self.queue.take(Epoch::MAX) {
                self.woken.recv_timeout(Duration::from_millis(100)).unwrap_or(());
            }
        }
        thread.join().unwrap().unwrap_err().to_string()
    }
}

impl Drop for Reading {
    fn drop(&mut self) {
        self.queue.fail();
    }
}
