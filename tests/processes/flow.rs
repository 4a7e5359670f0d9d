//! The dataflow over several processes: the same closed epochs as in one, and only complete ones after a
//! process is cut off.

use std::collections::VecDeque;
use std::io::{Read, Write};
use std::net::{Shutdown, TcpListener, TcpStream};
use std::sync::mpsc::{Receiver, Sender, channel};
use std::sync::{Arc, Mutex};

use dupflow::config::Plan;
use dupflow::core::doc::fields::EventFields;
use dupflow::core::doc::{DocChange, DocEvent, DocId, Position, UpsertedDoc};
use dupflow::core::hash;
use dupflow::core::pair::Delta;
use dupflow::core::run::watch::{Notice, WatchChange};
use dupflow::core::time::{Epoch, Progress};
use dupflow::core::views::{ViewDelta, ViewKind, ViewMeasure, ViewPlan};
use dupflow::engine::dataflow::{
    BatchEnd, BatchRecord, Cancellation, ClosedEpoch, Emit, Intake, PeerSockets, Pull, Stages, WorkerError,
    Workers,
};

use crate::group::PATIENCE;

/// A document's text or its end, at an offset.
type DocumentEvent = (u64, String, Option<String>);

/// The closed epochs; `None` is the end.
type Told = Option<(Progress, Vec<Delta>, Vec<DocChange>, Vec<ViewDelta>, Vec<UpsertedDoc>, Vec<Notice>)>;

fn stages(pipeline: &str) -> Stages {
    let stages = dupflow::pipeline::stages(&Plan::load(pipeline, &[]).unwrap(), false);
    let view = |kind, measure| ViewPlan { name: "v".into(), kind, group: Vec::new(), measure };
    let views = [
        view(ViewKind::Pairs, ViewMeasure::Count),
        view(ViewKind::Documents, ViewMeasure::Count),
        view(ViewKind::Documents, ViewMeasure::Top(5)),
        view(ViewKind::Clusters, ViewMeasure::Top(3)),
    ];
    Stages { emits_documents: true, emits_upserts: true, watches: true, views: views.into(), ..stages }
}

/// Pages that are edited, copied and deleted, in epochs.
fn history(epochs: u64) -> Vec<Vec<DocumentEvent>> {
    let mut offset = 0;
    let mut event = |epoch: u64, n: u64| {
        let random = hash::mix(epoch << 32 | n);
        let (id, page) = (random % 60, (random >> 8) % 7);
        let words = (0..60).map(|word| match (random >> 16) % 400 {
            // One word is replaced.
            other if other == word => format!("edited{other}"),
            _ => format!("page{page}word{word}"),
        });
        let text = (random >> 40 & 3 > 0).then(|| words.collect::<Vec<_>>().join(" "));
        offset += 1;
        (offset, format!("document {id}"), text)
    };
    (0..epochs).map(|epoch| (0..25).map(|n| event(epoch, n)).collect()).collect()
}

/// Reads its share of a history, in batches, then ends; or stays in the epoch after it.
struct Script {
    batches: VecDeque<(Epoch, Vec<DocumentEvent>)>,
    ends: bool,
    last: Epoch,
}

impl Script {
    /// The share of one worker among some.
    fn share(history: &[Vec<DocumentEvent>], worker: usize, workers: usize, ends: bool) -> Self {
        let mut batches = VecDeque::new();
        for (epoch, events) in (1..).zip(history) {
            for batch in events.chunks(4) {
                if batch[0].0 / 4 % workers as u64 == worker as u64 {
                    batches.push_back((epoch, batch.to_vec()));
                }
            }
        }
        Self { batches, ends, last: history.len() as Epoch + 1 }
    }
}

impl Intake for Script {
    fn pull(&mut self, limit: Epoch) -> Pull {
        match self.batches.front() {
            Some((epoch, _)) if *epoch <= limit => Pull::Batch(*epoch),
            Some((epoch, _)) => Pull::Idle(*epoch),
            None if self.ends => Pull::Done,
            None => Pull::Idle(self.last),
        }
    }

    fn read(&mut self, each: &mut dyn FnMut(BatchRecord<'_>)) -> BatchEnd {
        let (_, events) = self.batches.pop_front().unwrap();
        let mut end = 0;
        for (offset, id, text) in events {
            end = offset + 1;
            if id.ends_with('7') {
                // A watch of the same id and text.
                let watch = DocId::new(&id).unwrap();
                let text = text.as_deref().map(Arc::from);
                each(BatchRecord::Watched(&WatchChange { number: offset, id: watch, text }));
            }
            let text = text.map(Into::into);
            let (id, fields) = (DocId::new(&id).unwrap(), EventFields::default());
            let event = DocEvent { id, ts: None, written: None, text, fields };
            each(BatchRecord::Event(Position { partition: 0, offset }, event));
        }
        BatchEnd { end: Some(Position { partition: 0, offset: end }), ..BatchEnd::default() }
    }

    fn wake_with(&mut self, _: Box<dyn Fn() + Send>) {}
}

/// Fails when it is asked to read.
struct Broken;

impl Intake for Broken {
    fn pull(&mut self, _: Epoch) -> Pull {
        Pull::Batch(1)
    }

    fn read(&mut self, _: &mut dyn FnMut(BatchRecord<'_>)) -> BatchEnd {
        panic!("broken on purpose")
    }

    fn wake_with(&mut self, _: Box<dyn Fn() + Send>) {}
}

struct Tells(Sender<Told>);

impl Emit for Tells {
    fn closed(&mut self, closed: ClosedEpoch) {
        let ClosedEpoch { progress, deltas, documents, views, upserts, notices, .. } = closed;
        self.0.send(Some((progress, deltas, documents, views, upserts, notices))).unwrap();
    }

    fn ended(&mut self) {
        self.0.send(None).unwrap();
    }
}

/// Two ends of a connection.
fn pair() -> (TcpStream, TcpStream) {
    let listener = TcpListener::bind("127.0.0.1:0").unwrap();
    let one = TcpStream::connect(listener.local_addr().unwrap()).unwrap();
    (one, listener.accept().unwrap().0)
}

/// A socket of each process to each other one.
fn mesh(processes: usize) -> Vec<Vec<Option<TcpStream>>> {
    let mut all: Vec<Vec<Option<TcpStream>>> = Vec::new();
    for _ in 0..processes {
        let mut sockets = Vec::new();
        for earlier in &mut all {
            let (one, two) = pair();
            earlier.push(Some(one));
            sockets.push(Some(two));
        }
        sockets.push(None);
        all.push(sockets);
    }
    all
}

/// A running process.
struct Process {
    workers: Workers,
    cancellation: Arc<Cancellation>,
    /// On process 0.
    told: Receiver<Told>,
    lost: Receiver<(usize, String)>,
    failed: Receiver<WorkerError>,
}

/// Starts a process; its intakes by the index of the worker.
fn start(
    stages: &Stages,
    index: usize,
    sockets: Vec<Option<TcpStream>>,
    intakes: Vec<Box<dyn Intake + Send>>,
) -> Process {
    let (tell, told) = channel();
    let (tell_lost, lost) = channel();
    let tell_lost = Mutex::new(tell_lost);
    let count = intakes.len();
    let first = index * count;
    let ends = Mutex::new((intakes.into_iter().map(Some).collect::<Vec<_>>(), tell));
    let parts = move |worker: usize| -> (Box<dyn Intake>, Box<dyn Emit>) {
        let mut ends = ends.lock().unwrap();
        (ends.0[worker - first].take().unwrap(), Box::new(Tells(ends.1.clone())))
    };
    let told_lost =
        move |process, why: &str| tell_lost.lock().unwrap().send((process, why.to_owned())).unwrap_or(());
    let data = PeerSockets { index, sockets, lost: Box::new(told_lost) };
    let cancellation = Arc::<Cancellation>::default();
    let (tell_failed, failed) = channel();
    cancellation.on_failure(move |error| tell_failed.send(error).unwrap_or(()));
    let workers = Workers::start_with(data, stages, 1, count, &cancellation, parts).unwrap();
    Process { workers, cancellation, told, lost, failed }
}

fn boxed(intake: impl Intake + Send + 'static) -> Box<dyn Intake + Send> {
    Box::new(intake)
}

/// The closed epochs of one process with this many workers.
fn alone(pipeline: &str, history: &[Vec<DocumentEvent>], workers: usize) -> Vec<Told> {
    let (tell, told) = channel();
    let (history, tell) = (history.to_vec(), Mutex::new(tell));
    let parts = move |worker| -> (Box<dyn Intake>, Box<dyn Emit>) {
        let tell = tell.lock().unwrap().clone();
        (Box::new(Script::share(&history, worker, workers, true)), Box::new(Tells(tell)))
    };
    Workers::start(&stages(pipeline), 1, workers, &Arc::default(), parts).unwrap().join().unwrap();
    told.iter().collect()
}

/// The closed epochs of several processes.
fn together(pipeline: &str, history: &[Vec<DocumentEvent>], processes: usize, workers: usize) -> Vec<Told> {
    let all: Vec<Process> = mesh(processes)
        .into_iter()
        .enumerate()
        .map(|(index, sockets)| {
            let share = |local| Script::share(history, index * workers + local, processes * workers, true);
            let intakes = (0..workers).map(|local| boxed(share(local))).collect();
            start(&stages(pipeline), index, sockets, intakes)
        })
        .collect();
    let mut told = Vec::new();
    for (index, process) in all.into_iter().enumerate() {
        process.workers.join().unwrap();
        assert!(process.lost.try_recv().is_err(), "an end in good order");
        let of_this: Vec<Told> = process.told.iter().collect();
        assert!(index == 0 || of_this.is_empty(), "process {index} tells");
        told.extend(of_this);
    }
    told
}

#[test]
fn several_processes_tell_what_one_tells() {
    let history = history(20);
    for pipeline in ["minhash", "weighted"] {
        let expected = alone(pipeline, &history, 1);
        assert_eq!(expected.len(), 21);
        let deltas: Vec<isize> = expected
            .iter()
            .flatten()
            .flat_map(|(_, deltas, ..)| deltas.iter().map(|delta| delta.diff))
            .collect();
        assert!(deltas.contains(&1) && deltas.contains(&-1), "{} deltas", deltas.len());
        let documents = expected.iter().flatten().flat_map(|(_, _, documents, ..)| documents);
        assert!(documents.clone().any(|change| change.now.is_none()), "some end");
        assert!(documents.count() > 60, "some are told of");
        let rows = expected.iter().flatten().flat_map(|(_, _, _, rows, ..)| rows).count();
        assert!(rows > 100, "{rows} rows change");
        let upserts = expected.iter().flatten().flat_map(|(.., upserts, _)| upserts);
        assert!(upserts.count() > 200, "most events are upserts");
        let notices = expected.iter().flatten().flat_map(|(.., notices)| notices);
        let signs: Vec<i8> = notices.map(|notice| notice.diff).collect();
        assert!(signs.contains(&1) && signs.contains(&-1), "{} notices", signs.len());
        assert_eq!(alone(pipeline, &history, 2), expected);
        for (processes, workers) in [(2, 1), (2, 2), (3, 1)] {
            assert_eq!(
                together(pipeline, &history, processes, workers),
                expected,
                "{pipeline}: {processes} x {workers}"
            );
        }
    }
}

/// The epochs that close from here on, and whether the end is reached.
fn epochs(told: &Receiver<Told>) -> (Vec<Epoch>, bool) {
    let all: Vec<Told> = told.iter().collect();
    let ended = all.iter().any(Option::is_none);
    (all.into_iter().flatten().map(|(progress, ..)| progress.epoch).collect(), ended)
}

/// Two processes; the second one has read three epochs and stays in the fourth, while the first has read all.
fn the_second_is_late() -> (Process, Process, TcpStream) {
    let history = history(5);
    let stages = stages("minhash");
    let mut sockets = mesh(2).into_iter();
    let first = boxed(Script::share(&history, 0, 2, true));
    let second = boxed(Script::share(&history[..3], 1, 2, false));
    let one = start(&stages, 0, sockets.next().unwrap(), vec![first]);
    let of_second = sockets.next().unwrap();
    let socket = of_second[0].as_ref().unwrap().try_clone().unwrap();
    let two = start(&stages, 1, of_second, vec![second]);
    for epoch in 1..=3 {
        let told = one.told.recv_timeout(PATIENCE).unwrap().unwrap();
        assert_eq!(told.0.epoch, epoch);
    }
    (one, two, socket)
}

#[test]
fn no_epoch_closes_without_a_process_that_is_cancelled() {
    let (one, two, _) = the_second_is_late();
    two.cancellation.cancel();
    two.workers.join().unwrap();
    let (process, why) = one.lost.recv_timeout(PATIENCE).unwrap();
    assert_eq!(process, 1, "{why}");
    one.cancellation.cancel();
    one.workers.join().unwrap();
    assert_eq!(epochs(&one.told), (vec![], false));
    assert_eq!(one.lost.iter().count(), 0, "told once");
}

#[test]
fn a_connection_that_breaks_is_told_on_both_sides() {
    let (one, two, socket) = the_second_is_late();
    socket.shutdown(Shutdown::Both).unwrap();
    for (process, other) in [(&one, 1), (&two, 0)] {
        assert_eq!(process.lost.recv_timeout(PATIENCE).unwrap().0, other);
    }
    for Process { workers, cancellation, told, lost, .. } in [one, two] {
        cancellation.cancel();
        workers.join().unwrap();
        assert_eq!(epochs(&told), (vec![], false));
        assert_eq!(lost.iter().count(), 0, "told once");
    }
}

#[test]
fn a_worker_that_panics_ends_its_process_and_not_the_others() {
    let stages = stages("minhash");
    let mut sockets = mesh(2).into_iter();
    let first = boxed(Script::share(&history(5), 0, 2, true));
    let one = start(&stages, 0, sockets.next().unwrap(), vec![first]);
    let two = start(&stages, 1, sockets.next().unwrap(), vec![boxed(Broken)]);
    let error = WorkerError::Panicked("broken on purpose".to_owned());
    assert_eq!(two.failed.recv_timeout(PATIENCE), Ok(error.clone()), "before anybody joins");
    assert_eq!(two.workers.join(), Err(error));
    assert_eq!(one.lost.recv_timeout(PATIENCE).unwrap().0, 1);
    one.cancellation.cancel();
    one.workers.join().unwrap();
    assert_eq!(epochs(&one.told), (vec![], false));
}

/// Process 0 of two with one worker each, and the other end of its socket.
fn with_a_peer_by_hand() -> (Process, TcpStream) {
    let (socket, peer) = pair();
    let intake = boxed(Script::share(&history(2), 0, 1, true));
    (start(&stages("minhash"), 0, vec![None, Some(socket)], vec![intake]), peer)
}

fn header(source: u64, first: u64, end: u64, length: u64) -> Vec<u8> {
    [0, source, first, end, length, 0].iter().flat_map(|field: &u64| field.to_be_bytes()).collect()
}

#[test]
fn what_is_no_message_is_a_loss() {
    let cases = [
        (
            header(1, 0, 1, u64::MAX),
            "it announces a message of 18446744073709551615 bytes, expected at most 1073741824",
        ),
        (header(0, 0, 1, 8), "it says that worker 0 sends to workers 0 to 1"),
        (header(1, 1, 2, 8), "it says that worker 1 sends to workers 1 to 2"),
        (header(1, 0, 2, 8), "it says that worker 1 sends to workers 0 to 2"),
        (header(1, 1, 1, 8), "it says that worker 1 sends to workers 1 to 1"),
        (header(1, 0, 1, 1000)[..20].to_vec(), "the connection has ended"),
        ([header(1, 0, 1, 1000), vec![1; 300]].concat(), "the connection has ended"),
        (vec![], "the connection has ended"),
    ];
    for (bytes, expected) in cases {
        let (process, mut peer) = with_a_peer_by_hand();
        peer.write_all(&bytes).unwrap();
        peer.shutdown(Shutdown::Write).unwrap();
        assert_eq!(process.lost.recv_timeout(PATIENCE).unwrap(), (1, expected.to_owned()));
        process.cancellation.cancel();
        process.workers.join().unwrap();
        assert_eq!(epochs(&process.told), (vec![], false));
        // It sends no more, and no orderly end either.
        let mut said = Vec::new();
        let read = peer.read_to_end(&mut said);
        assert!(read.is_err() || !said.ends_with(&[0; 48]));
    }
}
