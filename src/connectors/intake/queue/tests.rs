use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, mpsc};
use std::thread;

use super::catch_up::{CatchUpLine, Peers};
use super::*;
use dupflow_core::doc::changes::Changes;
use dupflow_core::time::Offsets;

const NEVER: EpochLimits = EpochLimits { records: None, bytes: None, interval: None };

/// A queue with room for everything.
fn wide(readers: usize, limits: EpochLimits) -> Queue {
    Queue::new(readers, 1, QueueRoom { bytes: 1 << 20, batches: 10_000 }, limits)
}

/// A record with this offset, 3 bytes.
fn batch(offset: u64) -> Batch {
    let payload = Payload::Lines {
        bytes: b"{}\n".to_vec(),
        first_line: offset + 1,
        first: offset,
        rules: Arc::default(),
    };
    Batch {
        input: "x".into(),
        partition: 0,
        records: 1,
        next: offset + 1,
        payload,
        letters: Vec::new(),
        seen: None,
    }
}

fn taken(epoch: Epoch, offset: u64) -> Dequeued {
    Dequeued::Batch(epoch, batch(offset))
}

/// Whatever the limits are, what is put first is in the first epoch, before everything that is pushed.
#[test]
fn what_is_put_first_waits_for_no_room_and_ends_no_epoch() {
    let limits = EpochLimits { records: Some(1), bytes: Some(1), interval: None };
    let queue = Queue::new(1, 7, QueueRoom { bytes: 1, batches: 1 }, limits);
    queue.put_first((0..3).map(batch));
    assert_eq!(queue.open(), 7);
    assert_eq!(queue.try_push(batch(3)), Err(Refused::Full(Box::new(batch(3)))), "readers wait");
    for offset in 0..3 {
        assert_eq!(queue.take(7), taken(7, offset));
    }
    queue.push(batch(3)).unwrap();
    assert_eq!((queue.take(7), queue.open()), (taken(7, 3), 8));
}

#[test]
fn batches_are_taken_in_order_and_nothing_returns_the_low_epoch() {
    let queue = wide(1, NEVER);
    assert_eq!(queue.take(9), Dequeued::Nothing { low: 1 });
    queue.push(batch(0)).unwrap();
    queue.push(batch(1)).unwrap();
    queue.cut();
    queue.cut();
    queue.push(batch(2)).unwrap();
    assert_eq!(queue.take(9), taken(1, 0));
    assert_eq!(queue.take(9), taken(1, 1));
    let over = "beyond the limit: not handed out, but epochs 1 and 2 are over";
    assert_eq!(queue.take(2), Dequeued::Nothing { low: 3 }, "{over}");
    assert_eq!(queue.take(3), taken(3, 2), "the limit is inclusive");
    assert_eq!(queue.take(3), Dequeued::Nothing { low: 3 });
    queue.cut();
    assert_eq!(queue.take(3), Dequeued::Nothing { low: 4 });
    queue.finish();
    assert_eq!(queue.take(3), Dequeued::Done);
}

#[test]
fn epochs_may_begin_anywhere() {
    let queue = Queue::new(1, 7_000_000_000, QueueRoom { bytes: 1, batches: 1 }, NEVER);
    assert_eq!(queue.take(Epoch::MAX), Dequeued::Nothing { low: 7_000_000_000 });
    queue.push(batch(5)).unwrap();
    assert_eq!(queue.take(Epoch::MAX), taken(7_000_000_000, 5));
}

#[test]
fn queued_batches_are_taken_after_the_end() {
    let ends: [&dyn Fn(&Queue); 2] = [&Queue::finish, &Queue::stop];
    for end in ends {
        let queue = wide(1, NEVER);
        queue.push(batch(0)).unwrap();
        end(&queue);
        assert_eq!(queue.take(0), Dequeued::Nothing { low: 1 });
        assert_eq!(queue.take(1), taken(1, 0));
        assert_eq!(queue.take(1), Dequeued::Done);
    }
}

#[test]
fn a_cut_ends_the_epoch_for_all_readers() {
    let queue = wide(2, NEVER);
    queue.push(batch(0)).unwrap();
    queue.cut();
    assert_eq!(queue.take(9), taken(1, 0));
    assert_eq!(queue.take(9), Dequeued::Nothing { low: 2 }, "the other reader has pushed nothing yet");
    queue.finish();
    assert_eq!(queue.take(9), Dequeued::Nothing { low: 2 }, "the other reader may go on");
    queue.push(batch(7)).unwrap();
    queue.finish();
    assert_eq!((queue.take(9), queue.take(9)), (taken(2, 7), Dequeued::Done));
}

#[test]
fn epochs_are_cut_by_records_and_by_bytes() {
    let by_records = EpochLimits { records: Some(2), ..NEVER };
    // A batch has 3 bytes.
    let by_bytes = EpochLimits { bytes: Some(4), ..NEVER };
    for limits in [by_records, by_bytes] {
        let queue = wide(1, limits);
        (0..5).for_each(|offset| queue.push(batch(offset)).unwrap());
        for (epoch, offset) in [(1, 0), (1, 1), (2, 2), (2, 3), (3, 4)] {
            assert_eq!(queue.take(9), taken(epoch, offset));
        }
        assert_eq!(queue.take(9), Dequeued::Nothing { low: 3 });
    }
}

#[test]
fn epochs_with_batches_are_cut_by_the_clock() {
    let queue = wide(1, EpochLimits { interval: Some(Duration::from_nanos(1)), ..NEVER });
    let (woken, wakes) = mpsc::channel();
    queue.register(Box::new(move || woken.send(()).unwrap()));
    thread::scope(|scope| {
        let clock = scope.spawn(|| queue.cut_by_clock());
        for epoch in 1..4 {
            assert_eq!(queue.take(9), Dequeued::Nothing { low: epoch }, "an empty epoch stays open");
            queue.push(batch(epoch)).unwrap();
            assert_eq!(queue.take(9), taken(epoch, epoch));
            // One wake for the batch, one for the cut.
            (0..2).for_each(|_| wakes.recv().unwrap());
        }
        queue.finish();
        clock.join().unwrap();
    });
    for end in [Queue::finish, Queue::stop, Queue::fail] {
        let open = wide(1, EpochLimits { interval: Some(Duration::MAX), ..NEVER });
        open.push(batch(0)).unwrap();
        end(&open);
        open.cut_by_clock();
    }
    wide(1, NEVER).cut_by_clock();
}

#[test]
fn an_idle_queue_gets_empty_batches() {
    let queue = wide(1, EpochLimits { interval: Some(Duration::MAX), ..NEVER });
    let (woken, wakes) = mpsc::channel();
    // There may be wakes after the last batch that the test takes.
    queue.register(Box::new(move || woken.send(()).unwrap_or(())));
    thread::scope(|scope| {
        let ticks = scope.spawn(|| queue.tick(Duration::from_millis(1), || Batch::kept(Changes::default())));
        for _ in 0..3 {
            wakes.recv().unwrap();
            let Dequeued::Batch(1, given) = queue.take(9) else { panic!("a wake stands for a batch") };
            assert_eq!((given.records, given.end()), (0, None));
        }
        queue.finish();
        ticks.join().unwrap();
    });
    for end in [Queue::finish, Queue::stop, Queue::fail] {
        let ended = wide(1, EpochLimits { interval: Some(Duration::MAX), ..NEVER });
        end(&ended);
        ended.tick(Duration::MAX, || unreachable!("nothing is pushed any more"));
    }
}

#[test]
fn a_stop_ends_readers_and_keeps_pushed_batches() {
    let queue = wide(2, NEVER);
    queue.push(batch(0)).unwrap();
    queue.stop();
    assert_eq!(queue.push(batch(1)), Err(Closed));
    assert_eq!(queue.try_push(batch(1)), Err(Refused::Closed));
    assert_eq!(queue.pause(Duration::MAX), Err(Closed));
    assert_eq!((queue.take(9), queue.take(9)), (taken(1, 0), Dequeued::Done));
}

#[test]
fn a_failure_drops_batches_and_closes_no_epoch() {
    let ends: [&dyn Fn(&Queue); 3] = [&|_| (), &Queue::finish, &Queue::stop];
    for (before, after) in ends.iter().flat_map(|before| ends.iter().map(move |after| (before, after))) {
        let queue = wide(1, NEVER);
        queue.push(batch(0)).unwrap();
        queue.cut();
        queue.push(batch(1)).unwrap();
        before(&queue);
        queue.fail();
        after(&queue);
        assert_eq!(queue.take(9), Dequeued::Nothing { low: 0 });
        assert_eq!(queue.push(batch(2)), Err(Closed));
        assert_eq!(queue.wait_for_room(Duration::MAX), Err(Closed));
    }
}

#[test]
fn push_waits_while_the_queue_is_full() {
    for room in [QueueRoom { bytes: 4, batches: 100 }, QueueRoom { bytes: 100, batches: 2 }] {
        let queue = Queue::new(1, 1, room, NEVER);
        let (pushed, seen) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..3 {
                    queue.push(batch(i)).unwrap();
                    pushed.send(i).unwrap();
                }
                drop(pushed);
            });
            // Two batches of 3 bytes fit (the second is accepted at 3 of 4 bytes); the third must wait.
            assert_eq!((seen.recv(), seen.recv()), (Ok(0), Ok(1)));
            assert_eq!(seen.try_recv(), Err(mpsc::TryRecvError::Empty));
            assert_eq!(queue.take(1), taken(1, 0));
            assert_eq!(seen.recv(), Ok(2));
        });
    }
}

#[test]
fn try_push_is_refused_while_the_queue_is_full() {
    let queue = Queue::new(1, 1, QueueRoom { bytes: 1, batches: 1 }, NEVER);
    assert_eq!(queue.try_push(batch(0)), Ok(()));
    assert_eq!(queue.try_push(batch(1)), Err(Refused::Full(Box::new(batch(1)))), "and it has its batch back");
    assert_eq!(queue.wait_for_room(Duration::from_nanos(1)), Ok(()), "it does not wait for ever");
    thread::scope(|scope| {
        let waiting = scope.spawn(|| queue.wait_for_room(Duration::MAX));
        assert_eq!(queue.take(1), taken(1, 0));
        assert_eq!(waiting.join().unwrap(), Ok(()));
    });
    assert_eq!(queue.try_push(batch(1)), Ok(()));
}

#[test]
fn the_end_wakes_waiting_readers() {
    for end in [Queue::stop, Queue::fail] {
        let queue = Queue::new(1, 1, QueueRoom { bytes: 1, batches: 1 }, NEVER);
        queue.push(batch(0)).unwrap();
        thread::scope(|scope| {
            let push = scope.spawn(|| queue.push(batch(1)));
            let room = scope.spawn(|| queue.wait_for_room(Duration::MAX));
            let pause = scope.spawn(|| queue.pause(Duration::MAX));
            end(&queue);
            assert_eq!(push.join().unwrap(), Err(Closed));
            assert_eq!(room.join().unwrap(), Err(Closed));
            assert_eq!(pause.join().unwrap(), Err(Closed));
        });
    }
}

#[test]
fn a_pause_ends_after_its_time() {
    assert_eq!(wide(1, NEVER).pause(Duration::from_nanos(1)), Ok(()));
}

#[test]
fn every_change_for_workers_calls_every_waker() {
    let queue = wide(1, NEVER);
    let calls: Vec<_> = (0..2)
        .map(|_| {
            let calls = Arc::new(AtomicUsize::new(0));
            let counter = Arc::clone(&calls);
            queue.register(Box::new(move || {
                counter.fetch_add(1, Ordering::SeqCst);
            }));
            calls
        })
        .collect();
    let steps: [&dyn Fn(); 7] = [
        &|| queue.push(batch(0)).unwrap(),
        &|| queue.try_push(batch(1)).unwrap(),
        &|| assert_eq!(queue.cut(), 1),
        &|| queue.finish(),
        &|| queue.stop(),
        &|| queue.fail(),
        &|| queue.wake(),
    ];
    for (before, step) in steps.iter().enumerate() {
        step();
        assert!(calls.iter().all(|calls| calls.load(Ordering::SeqCst) == before + 1));
    }
}

#[test]
fn workers_together_get_every_batch_of_every_reader_once() {
    let queue =
        Queue::new(2, 1, QueueRoom { bytes: 16, batches: 4 }, EpochLimits { records: Some(7), ..NEVER });
    let mut taken = thread::scope(|scope| {
        let worker = || {
            // As in a run, a worker parks instead of waiting, and the waker unparks it.
            let me = thread::current();
            queue.register(Box::new(move || me.unpark()));
            let mut taken = Vec::new();
            let mut low_so_far = 0;
            loop {
                match queue.take(Epoch::MAX) {
                    Dequeued::Batch(epoch, batch) => {
                        assert!(epoch >= low_so_far);
                        taken.push(batch.next);
                    }
                    Dequeued::Nothing { low } => {
                        assert!(low >= low_so_far);
                        low_so_far = low;
                        thread::park();
                    }
                    Dequeued::Done => return taken,
                }
            }
        };
        let workers = [scope.spawn(worker), scope.spawn(worker)];
        let reader = |offsets: std::ops::Range<u64>| {
            offsets.for_each(|offset| queue.push(batch(offset)).unwrap());
            queue.finish();
        };
        scope.spawn(move || reader(0..500));
        reader(500..1000);
        workers.map(|thread| thread.join().unwrap()).concat()
    });
    taken.sort_unstable();
    assert_eq!(taken, (1..=1000).collect::<Vec<_>>());
}

#[test]
fn buffers_come_back_empty() {
    let queue = wide(1, NEVER);
    assert_eq!(queue.buffer().capacity(), 0);
    let given = batch(0);
    let Payload::Lines { bytes, .. } = &given.payload else { panic!("{given:?}") };
    let capacity = bytes.capacity();
    queue.give_back(given);
    let buffer = queue.buffer();
    assert_eq!((buffer.len(), buffer.capacity()), (0, capacity));
    let payload =
        Payload::Lines { bytes: Vec::with_capacity(2 << 20), first_line: 1, first: 0, rules: Arc::default() };
    queue.give_back(Batch { payload, ..batch(0) });
    assert_eq!(queue.buffer().capacity(), 0, "too large to keep");
}

/// A queue with lines to reach, for two partitions.
fn behind(lines: Vec<CatchUpLine>, peers: Option<Box<dyn Peers>>) -> (Queue, Arc<LiveFrom>) {
    let live = Arc::new(LiveFrom::default());
    let room = QueueRoom { bytes: 1 << 20, batches: 100 };
    let queue = Queue::behind(CatchUp::new(lines), Arc::clone(&live), peers, 1, 5, room, NEVER);
    (queue, live)
}

fn batch_at(partition: u32, offset: u64) -> Batch {
    Batch { partition, ..batch(offset) }
}

#[test]
fn batches_beyond_a_line_wait_for_all_partitions() {
    let (queue, live) =
        behind(vec![CatchUpLine::Restored, CatchUpLine::Offsets([(0, 2), (1, 1)].into())], None);
    assert_eq!((queue.line(0), queue.line(1), queue.line(9)), (Some(2), Some(1), Some(0)));
    assert_eq!(
        queue.try_push(batch_at(0, 0)),
        Err(Refused::Held(Box::new(batch_at(0, 0)))),
        "documents are restored first"
    );
    queue.push(Batch::kept(Changes::default())).unwrap();
    queue.restored();
    assert_eq!((live.get(), queue.take(9)), (None, Dequeued::Batch(5, Batch::kept(Changes::default()))));
    assert_eq!(queue.take(9), Dequeued::Nothing { low: 6 });
    queue.push(batch_at(0, 0)).unwrap();
    queue.push(batch_at(0, 1)).unwrap();
    assert_eq!(queue.try_push(batch_at(0, 2)), Err(Refused::Held(Box::new(batch_at(0, 2)))));
    assert_eq!(
        queue.try_push(batch_at(9, 0)),
        Err(Refused::Held(Box::new(batch_at(9, 0)))),
        "nothing of it lies this side"
    );
    assert_eq!(live.get(), None);
    // The record at offset 0 is missing. The next one is beyond the line, so everything before the line has
    // been read.
    assert_eq!(queue.try_push(batch_at(1, 3)), Ok(()));
    assert_eq!((live.get(), queue.line(0)), (Some(7), None));
    queue.push(batch_at(0, 2)).unwrap();
    let epochs = std::iter::from_fn(|| match queue.take(9) {
        Dequeued::Batch(epoch, batch) => Some((epoch, batch.partition, batch.next)),
        _ => None,
    });
    assert_eq!(epochs.collect::<Vec<_>>(), [(6, 0, 1), (6, 0, 2), (7, 1, 4), (7, 0, 3)]);
    assert!(!live.holds(6) && live.holds(7));
}

#[test]
fn an_empty_batch_reports_the_end_of_a_partition() {
    let (queue, live) = behind(vec![CatchUpLine::Offsets([(0, 4)].into())], None);
    queue.restored();
    queue.push(batch_at(0, 0)).unwrap();
    assert_eq!(live.get(), None);
    let payload = Payload::Lines { bytes: Vec::new(), first_line: 1, first: 4, rules: Arc::default() };
    queue.push(Batch { records: 0, next: 4, payload, ..batch(0) }).unwrap();
    assert_eq!(live.get(), Some(6));
}

#[test]
fn a_queue_without_lines_is_live_at_once() {
    assert_eq!(behind(vec![], None).1.get(), Some(5));
    let (queue, live) = behind(vec![CatchUpLine::Restored, CatchUpLine::Offsets(Offsets::new())], None);
    queue.restored();
    assert_eq!(live.get(), Some(7), "each line lies between two epochs");
}

/// Records the calls.
#[derive(Clone, Default)]
struct RecordedCalls(Arc<Mutex<Vec<(u32, Epoch)>>>);

impl Peers for RecordedCalls {
    fn opened(&self, epoch: Epoch) {
        self.0.lock().unwrap().push((u32::MAX, epoch));
    }

    fn reached(&self, line: u32, epoch: Epoch) {
        self.0.lock().unwrap().push((line, epoch));
    }
}

#[test]
fn a_line_is_crossed_by_all_processes_together() {
    let calls = RecordedCalls::default();
    let lines = vec![CatchUpLine::Restored, CatchUpLine::Offsets([(0, 1)].into())];
    let (queue, live) = behind(lines, Some(Box::new(calls.clone())));
    let take_calls = || std::mem::take(&mut *calls.0.lock().unwrap());
    queue.cut();
    assert_eq!(take_calls(), [(u32::MAX, 6)]);
    queue.follow(5);
    queue.follow(9);
    assert_eq!(
        (queue.take(99), take_calls()),
        (Dequeued::Nothing { low: 9 }, vec![]),
        "calls of other processes are not repeated"
    );
    queue.restored();
    queue.restored();
    assert_eq!(take_calls(), [(0, 9)], "once");
    assert_eq!(queue.try_push(batch_at(0, 0)), Err(Refused::Held(Box::new(batch_at(0, 0)))));
    queue.cross(12);
    queue.push(batch_at(0, 0)).unwrap();
    assert_eq!((take_calls(), live.get()), (vec![(1, 12)], None));
    queue.cross(20);
    assert_eq!((live.get(), queue.take(99)), (Some(20), Dequeued::Batch(12, batch_at(0, 0))));
}

#[test]
fn stop_after_ends_the_run_at_a_number_of_records() {
    let queue = wide(1, NEVER);
    queue.stop_after(std::num::NonZeroU64::new(2));
    queue.push(batch(0)).unwrap();
    queue.push(batch(1)).unwrap();
    assert_eq!(queue.push(batch(2)), Err(Closed));
    assert_eq!((queue.take(9), queue.take(9), queue.take(9)), (taken(1, 0), taken(1, 1), Dequeued::Done));
}

/// A reader that stays waits for all others, and closes what they have read. If the run ends, it gets an
/// error instead.
#[test]
fn stay_ends_the_epoch_that_other_readers_left_open() {
    let queue = wide(3, NEVER);
    let (stays, stayed) = mpsc::channel();
    thread::scope(|threads| {
        threads.spawn(|| stays.send(queue.stay()).unwrap());
        queue.push(batch(0)).unwrap();
        queue.cut();
        queue.finish();
        queue.push(batch(1)).unwrap();
        assert!(stayed.try_recv().is_err(), "another reads on");
        queue.finish();
        assert_eq!(stayed.recv(), Ok(Ok(2)));
    });
    assert_eq!((queue.take(9), queue.take(9)), (taken(1, 0), taken(2, 1)));
    assert_eq!(queue.take(9), Dequeued::Nothing { low: 3 }, "it has not ended");
    queue.stop();
    assert_eq!(queue.take(9), Dequeued::Done);
    assert_eq!(queue.stay(), Err(Closed));
}
