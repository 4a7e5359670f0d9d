//! A view with a store that waits, or cannot be read.

use std::sync::mpsc::{Receiver, Sender, channel};
use std::time::Duration;

use super::tests::{delta, pair, view_with};
use super::{EachRecord, HistoryStore, KeptHistory};
use dupflow_core::doc::changes::Changes;
use dupflow_core::time::{Epoch, EpochTimes};

/// A store that holds no history of this program.
struct DamagedHistory;

impl HistoryStore for DamagedHistory {
    fn read(&mut self, _: Epoch, each: &mut EachRecord<'_>) -> Result<Option<Epoch>, String> {
        each(b"p\x01\0ab", b"short").map(|()| Some(1))
    }

    fn keep(&mut self, _: Epoch, _: Changes) -> Result<(), String> {
        panic!("nothing is written over a history that cannot be read");
    }

    fn finish(&mut self) -> Result<(), String> {
        panic!("nothing is written over a history that cannot be read");
    }
}

#[test]
fn a_history_that_cannot_be_read_is_left_alone_and_said() {
    let kept = KeptHistory { store: Box::new(DamagedHistory), age: Duration::from_secs(60) };
    let view = view_with(kept);
    let feeder = view.feeder();
    feeder.begin_at(7);
    feeder.restored(&[delta((2, 4), 2, 1)]);
    feeder.live(7);
    feeder.committed(8, EpochTimes::default(), vec![delta((4, 5), 2, 1)]);
    drop(feeder);
    view.wait_until_applied(Duration::MAX);
    assert!(view.history().failure.unwrap().starts_with("no record: "));
    let held = view.pair(&pair((2, 4))).1.unwrap();
    assert_eq!((held.since, held.is_exact), (7, false));
    assert_eq!(view.pair(&pair((4, 5))).1.map(|other| (other.since, other.is_exact)), Some((8, true)));
    assert_eq!(view.check_pairs(), Ok(()));
}

/// A store that waits for the test.
struct WaitingHistory(Sender<()>, Receiver<()>);

impl HistoryStore for WaitingHistory {
    fn read(&mut self, _: Epoch, _: &mut EachRecord<'_>) -> Result<Option<Epoch>, String> {
        Ok(None)
    }

    fn keep(&mut self, _: Epoch, _: Changes) -> Result<(), String> {
        self.0.send(()).unwrap();
        self.1.recv().map_err(|_| "the test has ended".to_owned())
    }

    fn finish(&mut self) -> Result<(), String> {
        Ok(())
    }
}

#[test]
fn pages_are_read_while_the_store_waits() {
    let (is_kept, kept) = channel();
    let (allow, is_allowed) = channel();
    let store = Box::new(WaitingHistory(is_kept, is_allowed));
    let view = view_with(KeptHistory { store, age: Duration::from_secs(60) });
    let feeder = view.feeder();
    feeder.live(0);
    kept.recv().unwrap();
    allow.send(()).unwrap();
    feeder.committed(1, EpochTimes::default(), vec![delta((2, 4), 2, 1)]);
    kept.recv().unwrap();
    // The store still waits.
    let runtime = tokio::runtime::Builder::new_current_thread().enable_time().build().unwrap();
    let page = runtime.block_on(view.end_of_epoch()).map(|_guard| view.sums());
    assert_eq!(page.map(|sums| (sums.epoch, sums.pairs)), Ok((1, 1)));
    drop(allow);
}
