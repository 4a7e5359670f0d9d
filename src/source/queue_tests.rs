use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, mpsc};
use std::thread;

use super::*;
use crate::doc::Position;
use crate::source::batch::Payload;

fn batch(epoch: Epoch, first: u64) -> Batch {
    Batch {
        epoch,
        first: Position(first),
        records: 1,
        input: "x".into(),
        first_line: first + 1,
        payload: Payload::Lines(b"{}\n".to_vec()),
    }
}

#[test]
fn batches_come_out_in_order_and_idle_says_up_to_where_to_advance() {
    let queue = Queue::new(100, 100);
    assert_eq!(queue.pull(9), Pull::Idle { low: 1 });
    queue.push(batch(1, 0)).unwrap();
    queue.push(batch(1, 1)).unwrap();
    queue.push(batch(3, 2)).unwrap();
    assert_eq!(queue.pull(9), Pull::Batch(batch(1, 0)));
    assert_eq!(queue.pull(9), Pull::Batch(batch(1, 1)));
    assert_eq!(
        queue.pull(2),
        Pull::Idle { low: 3 },
        "beyond the limit: not handed out, but epochs 1 and 2 are over"
    );
    assert_eq!(queue.pull(3), Pull::Batch(batch(3, 2)), "the limit is inclusive");
    assert_eq!(queue.pull(3), Pull::Idle { low: 3 });
    queue.advance(4);
    assert_eq!(queue.pull(3), Pull::Idle { low: 4 });
    queue.finish();
    assert_eq!(queue.pull(3), Pull::Done);
}

#[test]
fn what_waits_is_handed_out_after_the_end() {
    let queue = Queue::new(100, 100);
    queue.push(batch(1, 0)).unwrap();
    queue.finish();
    assert_eq!(queue.pull(0), Pull::Idle { low: 1 });
    assert_eq!(queue.pull(1), Pull::Batch(batch(1, 0)));
    assert_eq!(queue.pull(1), Pull::Done);
}

#[test]
fn a_closed_queue_drops_what_waits_and_ends_both_sides() {
    let queue = Queue::new(100, 100);
    queue.push(batch(1, 0)).unwrap();
    queue.close();
    assert_eq!(queue.pull(9), Pull::Done);
    assert_eq!(queue.push(batch(1, 1)), Err(Closed));
    assert_eq!(queue.pause(Duration::MAX), Err(Closed));
}

#[test]
fn a_full_queue_holds_the_reader_until_a_batch_is_taken() {
    for queue in [Queue::new(4, 100), Queue::new(100, 2)] {
        let (pushed, seen) = mpsc::channel();
        thread::scope(|scope| {
            scope.spawn(|| {
                for i in 0..3 {
                    queue.push(batch(1, i)).unwrap();
                    pushed.send(i).unwrap();
                }
                drop(pushed);
            });
            // Two batches of 3 bytes fit (the second is accepted at 3 of 4 bytes), the third must wait.
            assert_eq!((seen.recv(), seen.recv()), (Ok(0), Ok(1)));
            assert_eq!(seen.try_recv(), Err(mpsc::TryRecvError::Empty));
            assert_eq!(queue.pull(1), Pull::Batch(batch(1, 0)));
            assert_eq!(seen.recv(), Ok(2));
        });
    }
}

#[test]
fn closing_frees_a_reader_that_waits_for_room_or_for_time() {
    let queue = Queue::new(1, 1);
    queue.push(batch(1, 0)).unwrap();
    thread::scope(|scope| {
        let push = scope.spawn(|| queue.push(batch(1, 1)));
        let pause = scope.spawn(|| queue.pause(Duration::MAX));
        queue.close();
        assert_eq!(push.join().unwrap(), Err(Closed));
        assert_eq!(pause.join().unwrap(), Err(Closed));
    });
}

#[test]
fn a_pause_ends_after_its_time() {
    assert_eq!(Queue::new(1, 1).pause(Duration::from_nanos(1)), Ok(()));
}

#[test]
fn every_waker_is_called_after_whatever_a_worker_may_wait_for() {
    let queue = Queue::new(100, 100);
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
    let steps: [&dyn Fn(); 4] =
        [&|| queue.push(batch(1, 0)).unwrap(), &|| queue.advance(2), &|| queue.finish(), &|| queue.close()];
    for (before, step) in steps.iter().enumerate() {
        step();
        assert!(calls.iter().all(|calls| calls.load(Ordering::SeqCst) == before + 1));
    }
}

#[test]
fn workers_together_get_every_batch_once() {
    let queue = Queue::new(16, 4);
    let mut taken = thread::scope(|scope| {
        let worker = || {
            // A worker parks where it would wait, as in a run; the waker unparks it.
            let me = thread::current();
            queue.register(Box::new(move || me.unpark()));
            let mut taken = Vec::new();
            let mut low_so_far = 0;
            loop {
                match queue.pull(Epoch::MAX) {
                    Pull::Batch(batch) => {
                        assert!(batch.epoch >= low_so_far);
                        taken.push(batch.first.0);
                    }
                    Pull::Idle { low } => {
                        assert!(low >= low_so_far);
                        low_so_far = low;
                        thread::park();
                    }
                    Pull::Done => return taken,
                }
            }
        };
        let workers = [scope.spawn(worker), scope.spawn(worker)];
        for i in 0..1000 {
            queue.push(batch(1 + i / 10, i)).unwrap();
        }
        queue.finish();
        workers.map(|thread| thread.join().unwrap()).concat()
    });
    taken.sort_unstable();
    assert_eq!(taken, (0..1000).collect::<Vec<_>>());
}

#[test]
fn buffers_come_back_empty() {
    let queue = Queue::new(1 << 20, 4);
    assert_eq!(queue.buffer().capacity(), 0);
    let given = batch(1, 0);
    let Payload::Lines(lines) = &given.payload else { panic!("{given:?}") };
    let capacity = lines.capacity();
    queue.give_back(given);
    let buffer = queue.buffer();
    assert_eq!((buffer.len(), buffer.capacity()), (0, capacity));
    queue.give_back(Batch { payload: Payload::Lines(Vec::with_capacity(2 << 20)), ..batch(1, 0) });
    assert_eq!(queue.buffer().capacity(), 0, "too large to keep");
}
