use std::collections::BTreeSet;
use std::io;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;

use parking_lot::Mutex;

use super::*;
use crate::pipeline::outputs::CORRECTIONS;
use dupflow_connectors::formats::RecordPlace;
use dupflow_connectors::intake::{BadRecordAt, DeadLetter, OnError};
use dupflow_connectors::mark::{RecordTally, Standing};
use dupflow_connectors::sinks::MemorySink;
use dupflow_core::doc::{DocId, Letter};
use dupflow_core::pair::{Evidence, Pair, Similarity};
use dupflow_core::time::SystemClock;

fn pair(a: &str, b: &str, similarity: f64) -> DocPair {
    let id = |id| DocId::new(id).unwrap();
    DocPair {
        pair: Pair::new(id(a), id(b)).unwrap(),
        similarity: Similarity::clamped(similarity),
        evidence: Evidence::default(),
    }
}

fn closed(epoch: Epoch, deltas: &[Delta]) -> ClosedEpoch {
    let progress = Progress { epoch, next: [(0, 10 * epoch)].into(), ..Progress::default() };
    ClosedEpoch { progress, deltas: deltas.to_vec(), ..ClosedEpoch::default() }
}

fn mark(epoch: Epoch) -> Mark {
    Mark {
        run: "this".to_owned(),
        progress: Progress { epoch, ..Progress::default() },
        start: [(0, 0)].into(),
        pipeline: "p".to_owned(),
        in_correction: false,
        letters: None,
        ..Mark::default()
    }
}

/// A committer of a run that continues after `past` and is live from an epoch on.
fn committer(sink: impl Sink + Send + 'static, past: Epoch, live: Epoch) -> Committer {
    let live_from = Arc::new(LiveFrom::default());
    live_from.set(live);
    Committer {
        sink: Box::new(sink),
        letters: None,
        notices: None,
        watches: None,
        keeper: None,
        metrics: Arc::new(Metrics::new(0)),
        bad: Arc::default(),
        live: live_from,
        mark: mark(past),
        as_of: None,
        reading: None,
        looks: None,
        inputs: None,
        corrected: None,
        may_correct: None,
        is_refused: false,
        past,
        announce: None,
        letters_up_to: [(0, u64::MAX)].into(),
        new_letters: Vec::new(),
        repeated: mark(past).progress,
        is_unlisted: false,
        notified_live: false,
        table: String::new(),
        others: Vec::new(),
        in_force: None,
        sides: SideOutputs::default(),
    }
}

/// A sink whose content the test can read.
#[derive(Clone, Default)]
struct SharedSink(Arc<Mutex<MemorySink>>, Arc<Mutex<Vec<Mark>>>, Arc<Mutex<Vec<DocPair>>>);

impl SharedSink {
    fn memory(&self) -> MemorySink {
        self.0.lock().clone()
    }
}

impl Sink for SharedSink {
    fn take_over(&mut self) -> io::Result<Standing> {
        Ok(Standing::New)
    }

    fn restored(&mut self, deltas: &[Delta]) {
        self.2.lock().extend(deltas.iter().map(|delta| delta.pair.clone()));
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], letters: &[Letter]) -> io::Result<()> {
        self.0.lock().epoch(progress, deltas, letters)
    }

    fn commit(&mut self, mark: &Mark) -> io::Result<()> {
        self.1.lock().push(mark.clone());
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        self.0.lock().finish()
    }
}

/// A sink that reports each epoch, and waits for the test before it commits.
struct Gate {
    reports: Sender<Result<Epoch, ()>>,
    allowed: Receiver<io::Result<()>>,
}

impl Sink for Gate {
    fn epoch(&mut self, progress: &Progress, _: &[Delta], _: &[Letter]) -> io::Result<()> {
        self.reports.send(Ok(progress.epoch)).unwrap();
        Ok(())
    }

    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        self.allowed.recv().unwrap()
    }

    fn finish(&mut self) -> io::Result<()> {
        self.reports.send(Err(())).unwrap();
        Ok(())
    }
}

/// A [`Gate`] with the test's two ends of its channels.
fn gate() -> (Gate, Receiver<Result<Epoch, ()>>, Sender<io::Result<()>>) {
    let ((reports, seen), (allow, allowed)) = (channel(), channel());
    (Gate { reports, allowed }, seen, allow)
}

#[test]
fn waiting_epochs_are_one_commit_and_the_sink_is_finished_last() {
    let sink = SharedSink::default();
    let commits = Commits::new(5);
    (5..8).for_each(|epoch| commits.close(closed(epoch, &[Delta::by_block(pair("a", "b", 0.5), 1)])));
    commits.end();
    let mut durable = Vec::new();
    committer(sink.clone(), 4, 5)
        .run(&commits, &SystemClock::start(), |first, last, _, _| durable.push((first, last)))
        .unwrap();
    assert_eq!(durable, [(5, 7)]);
    let memory = sink.memory();
    assert_eq!((memory.progress.len(), memory.deltas.len(), memory.finished), (3, 3, true));
    let marks = sink.1.lock();
    assert_eq!(marks.len(), 1);
    assert_eq!((&*marks[0].run, &marks[0].progress), ("this", &closed(7, &[]).progress));
}

#[test]
fn a_cancelled_run_writes_nothing_and_does_not_finish_the_sink() {
    for ended in [false, true] {
        let (sink, seen, allow) = gate();
        let commits = Commits::new(1);
        commits.close(closed(1, &[]));
        thread::scope(|scope| {
            let committer =
                scope.spawn(|| committer(sink, 0, 1).run(&commits, &SystemClock::start(), |_, _, _, _| ()));
            assert_eq!(seen.recv(), Ok(Ok(1)));
            (2..4).for_each(|epoch| commits.close(closed(epoch, &[])));
            if ended {
                commits.end();
            }
            commits.cancel();
            commits.end();
            allow.send(Ok(())).unwrap();
            committer.join().unwrap().unwrap();
        });
        assert!(seen.try_recv().is_err());
    }
}

#[test]
fn after_an_error_of_the_sink_nothing_more_is_written() {
    let (sink, seen, allow) = gate();
    let commits = Commits::new(1);
    (1..4).for_each(|epoch| commits.close(closed(epoch, &[])));
    commits.end();
    allow.send(Err(io::ErrorKind::StorageFull.into())).unwrap();
    let mut durable = 0;
    let error =
        committer(sink, 0, 1).run(&commits, &SystemClock::start(), |_, _, _, _| durable += 1).unwrap_err();
    assert!(matches!(error, RunError::Sink(error) if error.kind() == io::ErrorKind::StorageFull));
    assert_eq!((durable, seen.try_iter().collect::<Vec<_>>()), (0, vec![Ok(1), Ok(2), Ok(3)]));
}

#[cfg(target_os = "linux")]
#[test]
fn epochs_with_unwritable_dead_letters_are_not_written() {
    let sink = SharedSink::default();
    let bad = BadRecords::new(OnError::Count, Some(DeadLetter::create("/dev/full".into()).unwrap()));
    let at = BadRecordAt {
        reason: dupflow_connectors::formats::BadRecord::NotJson,
        input: "x".into(),
        place: RecordPlace::Line(1),
        cause: None,
    };
    // The record may stay in the buffer. The error is returned here or by the next flush.
    drop(bad.report(at, b"kept nowhere", &mut io::empty()));
    let commits = Commits::new(1);
    commits.close(closed(1, &[]));
    commits.end();
    let committer = Committer { bad: Arc::new(bad), ..committer(sink.clone(), 0, 1) };
    assert!(matches!(
        committer.run(&commits, &SystemClock::start(), |_, _, _, _| ()),
        Err(RunError::Source(_))
    ));
    assert_eq!(sink.memory(), MemorySink::default());
}

#[test]
fn epochs_before_the_first_live_one_are_not_written() {
    let sink = SharedSink::default();
    let commits = Commits::new(5);
    (5..9).for_each(|epoch| {
        commits.close(closed(epoch, &[Delta::by_block(pair("a", &format!("b{epoch}"), 0.5), 1)]));
    });
    commits.end();
    committer(sink.clone(), 4, 7).run(&commits, &SystemClock::start(), |_, _, _, _| ()).unwrap();
    assert_eq!(sink.memory().progress.iter().map(|p| p.epoch).collect::<Vec<_>>(), [7, 8]);
    assert_eq!(sink.2.lock().len(), 2, "the sink learns of what is there");
}

#[test]
fn corrections_are_written_in_pieces_of_whole_pairs() {
    let sink = SharedSink::default();
    let many = CORRECTIONS / 2 + 10;
    let id = |n: usize| format!("b{n:06}");
    let there: BTreeSet<_> = (0..many).map(|n| pair("a", &id(n), 0.5)).chain([pair("x", "y", 1.0)]).collect();
    let mut committer = committer(sink.clone(), 4, 7);
    let held = committer.corrected.insert(Reconcile::default());
    there.iter().for_each(|pair| held.held(pair.clone(), 1));
    // All pairs but "x", "y" have another similarity now; one pair was added and removed again.
    let here: Vec<_> = (0..many).map(|n| Delta::by_block(pair("a", &id(n), 0.75), 1)).collect();
    let (passing, gone) = (Delta::by_block(pair("p", "q", 1.0), 1), Delta::by_block(pair("p", "q", 1.0), -1));
    let commits = Commits::new(5);
    commits.close(closed(5, &[&here[..], &[passing]].concat()));
    commits.close(closed(6, &[gone, Delta::by_block(pair("x", "y", 1.0), 1)]));
    commits.close(closed(7, &[Delta::by_block(pair("x", "z", 1.0), 1)]));
    commits.end();
    committer.run(&commits, &SystemClock::start(), |_, _, _, _| ()).unwrap();
    let memory = sink.memory();
    let mut alive = there;
    for (_, pair, diff) in &memory.deltas {
        assert!(if *diff > 0 { alive.insert(pair.clone()) } else { alive.remove(pair) }, "{pair:?} {diff}");
    }
    let expected = here.iter().map(|delta| delta.pair.clone());
    let expected: BTreeSet<_> = expected.chain([pair("x", "y", 1.0), pair("x", "z", 1.0)]).collect();
    assert_eq!(alive, expected);
    let marks: Vec<_> = sink.1.lock().iter().map(|m| (m.progress.epoch, m.in_correction)).collect();
    assert_eq!(marks, [(6, true), (6, false), (7, false)]);
    assert_eq!(memory.progress.iter().map(|p| p.epoch).collect::<Vec<_>>(), [6, 6, 7]);
}

#[test]
fn an_output_without_corrections_still_gets_its_mark() {
    let sink = SharedSink::default();
    let mut committer = committer(sink.clone(), 4, 6);
    committer.corrected = Some(Reconcile::default());
    let commits = Commits::new(5);
    commits.close(closed(5, &[]));
    commits.end();
    committer.run(&commits, &SystemClock::start(), |_, _, _, _| ()).unwrap();
    let marks = sink.1.lock();
    assert_eq!(marks.iter().map(|m| (m.progress.epoch, m.in_correction)).collect::<Vec<_>>(), [(5, false)]);
}

#[test]
fn an_output_that_may_not_be_corrected_stays() {
    let sink = SharedSink::default();
    let mut committer = committer(sink.clone(), 4, 6);
    committer.corrected.insert(Reconcile::default()).held(pair("x", "y", 1.0), 1);
    committer.may_correct = Some(Box::new(|| false));
    let commits = Commits::new(5);
    (5..8).for_each(|epoch| {
        commits.close(closed(epoch, &[Delta::by_block(pair("a", &format!("b{epoch}"), 0.5), 1)]));
    });
    commits.end();
    committer.run(&commits, &SystemClock::start(), |_, _, _, _| ()).unwrap();
    assert!(sink.1.lock().is_empty() && sink.memory().deltas.is_empty(), "also of later epochs");
}

/// Records which of its methods are called.
#[derive(Clone, Default)]
struct CallLog(Arc<Mutex<Vec<String>>>);

impl CallLog {
    fn note(&self, what: String) {
        self.0.lock().push(what);
    }
}

impl Sink for CallLog {
    fn restored(&mut self, deltas: &[Delta]) {
        self.note(format!("restored {}", deltas.len()));
    }

    fn live(&mut self, past: Epoch) {
        self.note(format!("live {past}"));
    }

    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        self.note(format!("epoch {} {}", progress.epoch, deltas.len()));
        Ok(())
    }

    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        self.note("commit".to_owned());
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// The sink is notified once: after the repeated epochs and the corrections, before the first live epoch.
#[test]
fn the_sink_is_notified_when_the_run_is_live() {
    let run = |live, corrected, epochs: std::ops::Range<Epoch>| {
        let sink = CallLog::default();
        let commits = Commits::new(5);
        epochs.for_each(|epoch| commits.close(closed(epoch, &[Delta::by_block(pair("a", "b", 0.5), 1)])));
        commits.end();
        let committer = Committer { corrected, ..committer(sink.clone(), 4, live) };
        committer.run(&commits, &SystemClock::start(), |_, _, _, _| ()).unwrap();
        sink.0.lock().clone()
    };
    assert_eq!(run(5, None, 5..5), ["live 4"], "before anything is read");
    assert_eq!(run(5, None, 5..6), ["live 4", "epoch 5 1", "commit"]);
    assert_eq!(run(6, None, 5..7), ["restored 1", "live 5", "epoch 6 1", "commit"]);
    let there = Some(Reconcile::default());
    assert_eq!(run(6, there, 5..7), ["epoch 5 1", "commit", "live 5", "epoch 6 1", "commit"]);
}

/// Letters that are read again, for a correction, are durable before a state can stand for their records.
#[test]
fn letters_of_a_correction_are_written_before_the_run_is_live() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("letters");
    let mut letters = LetterFile::open(&path).unwrap();
    letters.begin_anew().unwrap();
    let letter = Letter {
        input: "in".into(),
        position: Position { partition: 0, offset: 7 },
        reason: "not_json".into(),
        key: None,
        raw: Some(b"oops".to_vec()),
        hides_records: false,
    };
    let repeated = || ClosedEpoch { letters: vec![letter.clone()], ..closed(5, &[]) };
    let begun = |file| Committer {
        letters: file,
        corrected: Some(Reconcile::default()),
        letters_up_to: [(0, 0)].into(),
        ..committer(SharedSink::default(), 4, 9)
    };
    let mut to_file = begun(Some(letters));
    to_file.commit(vec![repeated()], 0.0).unwrap();
    let written = std::fs::read_to_string(&path).unwrap();
    assert_eq!((written.lines().count(), to_file.mark.letters), (1, Some(written.len() as u64)));
    let mut to_sink = begun(None);
    let sink = SharedSink::default();
    to_sink.sink = Box::new(sink.clone());
    to_sink.commit(vec![repeated()], 0.0).unwrap();
    let progress = to_sink.mark.progress.clone();
    assert!(matches!(&**sink.1.lock(), [mark] if mark.in_correction && mark.progress == progress));
    // Nothing else is to be corrected.
    to_sink.live().unwrap();
    assert!(sink.1.lock().last().is_some_and(|mark| !mark.in_correction));
}

/// Also one whose damage has a line of its own, as that of a row group has.
#[test]
fn files_that_are_read_in_part_are_counted_in_the_mark() {
    let letter = |hides_records| Letter {
        input: "in".into(),
        position: Position { partition: 0, offset: 7 },
        reason: "unreadable".into(),
        key: None,
        raw: Some(b"head".to_vec()),
        hides_records,
    };
    let mut replay = committer(SharedSink::default(), 4, 5);
    replay.mark.tally = Some(RecordTally::default());
    let letters = vec![letter(true), letter(false)];
    replay.commit(vec![ClosedEpoch { letters, ..closed(5, &[]) }], 0.0).unwrap();
    let bad = [("unreadable".to_owned(), 2)].into();
    assert_eq!(replay.mark.tally, Some(RecordTally { bad, unread: 1, replaced: 0 }));
}
