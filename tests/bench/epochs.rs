//! How long a small epoch takes in a large corpus: from its events handed to the workers to its deltas given to the sink,
//! one epoch at a time.
//!
//! `cargo bench --bench epochs -- [DOCUMENTS] [EVENTS] [EPOCHS] [WORKERS]`, by default 200,000 documents of the generator, 10
//! events an epoch, 2,000 epochs, as many workers as cores. The last epochs of the feed are the small ones: inserts,
//! updates and deletes as the generator mixes them.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a bench panics where it fails, and prints")]

use std::collections::VecDeque;
use std::sync::mpsc::{Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use dupflow::config::Plan;
use dupflow::dataflow::{Emit, Intake, Pull, Stages, Workers};
use dupflow::doc::{DocEvent, DocId, Position};
use dupflow::feed::generate::{Generator, Params};
use dupflow::pair::DocPair;
use dupflow::time::Epoch;

type Event = (Position, DocId, Option<String>);

/// What has been handed over and not yet pulled, for each worker.
#[derive(Default)]
struct Desk {
    batches: Vec<VecDeque<(Epoch, Vec<Event>)>>,
    reading: Epoch,
    done: bool,
    wakers: Vec<Box<dyn Fn() + Send>>,
}

struct Place {
    desk: Arc<Mutex<Desk>>,
    worker: usize,
    events: Vec<Event>,
}

impl Intake for Place {
    fn pull(&mut self, limit: Epoch) -> Pull {
        let mut desk = self.desk.lock().unwrap();
        let (reading, done) = (desk.reading, desk.done);
        let batches = &mut desk.batches[self.worker];
        match batches.front().map(|(epoch, _)| *epoch) {
            Some(epoch) if epoch <= limit => {
                self.events = batches.pop_front().unwrap().1;
                Pull::Batch(epoch)
            }
            Some(epoch) => Pull::Idle(epoch),
            None if done => Pull::Done,
            None => Pull::Idle(reading),
        }
    }

    fn read(&mut self, each: &mut dyn FnMut(Position, DocEvent<'_>)) {
        for (position, id, text) in self.events.drain(..) {
            each(position, DocEvent { id, text: text.map(Into::into) });
        }
    }

    fn wake_with(&mut self, wake: Box<dyn Fn() + Send>) {
        self.desk.lock().unwrap().wakers.push(wake);
    }
}

struct Bell(Option<Sender<Option<Epoch>>>);

impl Emit for Bell {
    fn deltas(&mut self, _: Epoch, _: &[(DocPair, isize)]) {}

    fn closed(&mut self, open: Option<Epoch>) {
        self.0.iter().for_each(|bell| bell.send(open).unwrap_or(()));
    }
}

#[expect(clippy::disallowed_methods, reason = "a bench measures time")]
fn main() {
    let numbers: Vec<usize> = std::env::args().skip(1).filter_map(|arg| arg.parse().ok()).collect();
    let number = |i: usize, default| numbers.get(i).copied().unwrap_or(default);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let (documents, events, epochs, workers) =
        (number(0, 200_000), number(1, 10), number(2, 2000), number(3, cores));

    let plan = Plan::load("minhash", &[]).unwrap();
    let stages = Stages::of(&plan, false);
    let desk =
        Arc::new(Mutex::new(Desk { batches: vec![VecDeque::new(); workers], reading: 1, ..Desk::default() }));
    let (bell, closed) = channel();
    let (shared, metrics, bell) = (Arc::clone(&desk), Arc::clone(&stages.metrics), Mutex::new(bell));
    let at_work = Workers::start(&stages, workers, move |worker| {
        let bell = Bell((worker == 0).then(|| bell.lock().unwrap().clone()));
        (Box::new(Place { desk: Arc::clone(&shared), worker, events: Vec::new() }), Box::new(bell))
    });

    let params = Params { documents: documents as u64 + (events * epochs) as u64, ..Params::default() };
    let mut feed = (0..).map(Position).zip(Generator::new(params)).map(|(position, record)| {
        (position, record.event.id, record.event.text.map(|text| text.into_owned()))
    });
    let mut epoch = 0;
    let mut run = |size: usize| {
        epoch += 1;
        let mut dealt = vec![Vec::new(); workers];
        feed.by_ref().take(size).enumerate().for_each(|(i, event)| dealt[i % workers].push(event));
        let start = Instant::now();
        let mut desk = desk.lock().unwrap();
        for (batches, share) in desk.batches.iter_mut().zip(dealt) {
            batches.push_back((epoch, share));
        }
        desk.reading = epoch + 1;
        desk.wakers.iter().for_each(|wake| wake());
        drop(desk);
        while closed.recv().unwrap().is_some_and(|open| open <= epoch) {}
        start.elapsed()
    };
    while metrics.get(dupflow::metrics::Counter::Inserted) < documents as u64 {
        run(10_000);
    }
    let mut times: Vec<Duration> = (0..epochs).map(|_| run(events)).collect();
    times.sort_unstable();
    let longest: Vec<String> =
        times.iter().rev().take(10).map(|time| format!("{:.1}", time.as_secs_f64() * 1e3)).collect();
    println!("longest, ms: {}", longest.join(" "));
    let at = |percent: usize| times[(times.len() * percent / 100).min(times.len() - 1)].as_secs_f64() * 1e3;
    println!(
        "{documents} documents, {workers} workers, {epochs} epochs of {events} events: \
         median {:.3} ms, 90th percentile {:.3}, 99th {:.3}, most {:.3}",
        at(50),
        at(90),
        at(99),
        at(100)
    );

    let mut desk = desk.lock().unwrap();
    desk.done = true;
    desk.wakers.iter().for_each(|wake| wake());
    drop(desk);
    at_work.and_then(Workers::join).unwrap();
}
