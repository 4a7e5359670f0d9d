//! Folders, bad records and their places, arguments, and readers that wait or end.

use super::*;

#[test]
fn bad_records_have_their_place_and_are_kept_verbatim() {
    let folder = tempfile::tempdir().unwrap();
    let letter = folder.path().join("dead");
    let bad = BadRecords::new(OnError::Count, Some(DeadLetter::create(letter.clone()).unwrap()));
    let bytes = b"\n{\"id\":1}\r\n\xff\n{\"id\":\"a\",\"op\":\"delete\"}\n[]";
    let run = run_feed(io::Cursor::new(bytes), "events:1", 100, &bad);
    assert_eq!(run.places(), [(3, 2)]);
    assert_eq!(run.epochs, 4);
    assert_eq!(run.bad, BTreeMap::from([("missing_text", 1), ("not_utf8", 1), ("not_an_object", 1)]));
    bad.flush().unwrap();
    assert_eq!(fs::read(&letter).unwrap(), b"{\"id\":1}\r\n\xff\n[]\n");
}

#[test]
fn the_files_of_a_folder_are_documents() {
    let folder = tempfile::tempdir().unwrap();
    let root = folder.path().join("root");
    for (path, text) in [
        ("a/b.txt", &b"text of a/b"[..]),
        ("a.txt", b"text of a"),
        (".hidden/x", b""),
        ("b\n\"c\".md", b"quotes"),
        ("latin1", b"caf\xe9"),
    ] {
        let path = root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }
    #[cfg(unix)]
    {
        use std::os::unix::ffi::OsStrExt;
        std::os::unix::fs::symlink(root.join("a.txt"), root.join("link")).unwrap();
        std::os::unix::fs::symlink(&root, root.join("a/loop")).unwrap();
        fs::write(root.join(std::ffi::OsStr::from_bytes(b"z\xff")), "no name").unwrap();
    }
    let feed = folder.path().join("feed");
    fs::write(&feed, deletes(0, 1)).unwrap();
    let run = run_inputs(&[root, feed], "events:4", &BadRecords::default());
    assert_eq!(run.ids(), ["a.txt", "a/b.txt", "b\n\"c\".md", "link", "0"], "by bytes of the whole path");
    assert_eq!(run.events[1].3.as_deref(), Some("text of a/b"));
    assert_eq!(run.places(), [(1, 0), (1, 1), (1, 2), (2, 4), (2, 6)]);
    assert_eq!(run.bad, BTreeMap::from([("not_utf8", 1), ("bad_id", 1)]));
    assert!(
        run.batches
            .iter()
            .all(|batch| (begins(batch).1 == 0) == matches!(batch.payload, Payload::Files { .. }))
    );
}

#[test]
fn pages_in_a_folder_are_marked_and_decoded() {
    let folder = tempfile::tempdir().unwrap();
    for (name, bytes) in [
        ("a.html", &b"<meta charset=shift_jis>\x93\xfa\x96{\x8c\xea"[..]),
        ("b.htm", b"<html>caf\xc3\xa9"),
        ("c.txt", b"\xff\xfea\0\x87\x65"),
        ("d.txt", b"<meta charset=windows-1252>caf\xe9"),
        ("e.txt", b"<html><meta charset=windows-1252>caf\xe9"),
    ] {
        fs::write(folder.path().join(name), bytes).unwrap();
    }
    let run = run_inputs(&[folder.path().to_owned()], "events:4", &BadRecords::default());
    let texts: Vec<_> = run.events.iter().filter_map(|event| event.3.as_deref()).collect();
    assert_eq!(
        texts,
        [
            "<!doctype html><meta charset=shift_jis>日本語",
            "<html>café",
            "a文",
            "<html><meta charset=windows-1252>café"
        ]
    );
    assert_eq!(run.bad, BTreeMap::from([("not_utf8", 1)]));
}

#[test]
fn a_named_input_that_is_deleted_ends_the_run() {
    let folder = tempfile::tempdir().unwrap();
    let paths = ["gone", "gone folder"].map(|name| folder.path().join(name));
    for path in &paths {
        fs::create_dir(&paths[1]).unwrap();
        fs::write(&paths[0], deletes(0, 1)).unwrap();
        let inputs = Input::resolve([path], InputLayout::default()).unwrap();
        fs::remove_file(&paths[0]).unwrap();
        fs::remove_dir(&paths[1]).unwrap();
        let (queue, bad) = (unbounded(), BadRecords::default());
        let files = Files::new(inputs, EpochRule::All, Vec::new());
        let error = read(files, &queue, &bad).unwrap_err().to_string();
        assert!(error.starts_with(&format!("{}: ", path.display())), "{error}");
        assert!(bad.counts().is_empty());
    }
}

#[test]
fn arguments_that_cannot_be_read_are_named_all_at_once() {
    let folder = tempfile::tempdir().unwrap();
    let there = folder.path().to_str().unwrap();
    let error = Input::resolve(["/nowhere/a", "-", there, "/nowhere/b", "-"], InputLayout::default())
        .unwrap_err()
        .to_string();
    assert_eq!(error.lines().count(), 3);
    assert!(
        error.contains("\"/nowhere/a\"")
            && error.contains("\"/nowhere/b\"")
            && error.contains("more than once")
    );
    let inputs = Input::resolve(["-", there], InputLayout::default()).unwrap();
    let places: Vec<_> = inputs.into_iter().map(|input| input.place).collect();
    assert_eq!(places, [InputPlace::Stdin, InputPlace::Folder(there.into())]);
}

#[test]
fn a_bad_record_ends_the_run_where_none_is_allowed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("cut.zst");
    let whole = zstd(deletes(0, 100).as_bytes());
    fs::write(&path, &whole[..whole.len() - 5]).unwrap();
    let inputs = Input::resolve([&path], InputLayout::default()).unwrap();
    let files = Files::new(inputs, EpochRule::All, Vec::new());
    let (queue, bad) = (unbounded(), BadRecords::new(OnError::Fail, None));
    let error = read(files, &queue, &bad).unwrap_err().to_string();
    assert!(error.contains("cut.zst") && error.contains("truncated"), "{error}");
    while let Dequeued::Batch(..) = queue.take(Epoch::MAX) {}
    assert_eq!(queue.take(Epoch::MAX), Dequeued::Nothing { low: 1 }, "the epoch is not over");
}

#[test]
fn a_closed_queue_ends_the_reader() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("feed");
    fs::write(&path, deletes(0, 1000)).unwrap();
    let inputs = Input::resolve([&path], InputLayout::default()).unwrap();
    let files = Files::new(inputs, EpochRule::All, Vec::new());
    let queue = unbounded();
    queue.stop();
    read(files, &queue, &BadRecords::default()).unwrap();
    assert_eq!(queue.take(Epoch::MAX), Dequeued::Done);
}

#[test]
fn a_record_that_is_not_due_waits_and_those_before_it_do_not() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("feed");
    let lines = ["{\"id\":\"a\",\"ts\":0,\"text\":\"\"}", "{\"id\":\"b\",\"ts\":1e9,\"text\":\"\"}"];
    fs::write(&path, lines.join("\n")).unwrap();
    let inputs = Input::resolve([&path], InputLayout::default()).unwrap();
    let files = Files { speed: Speed::REAL, ..Files::new(inputs, EpochRule::Ts, Vec::new()) };
    let queue = unbounded();
    let (woken, wakes) = std::sync::mpsc::channel();
    queue.register(Box::new(move || woken.send(()).unwrap()));
    std::thread::scope(|scope| {
        let reader = scope.spawn(|| read(files, &queue, &BadRecords::default()).unwrap());
        while queue.take(9) != (Dequeued::Nothing { low: 2 }) {
            wakes.recv().unwrap();
        }
        assert!(!reader.is_finished(), "the second record is due in 31 years");
        queue.stop();
        reader.join().unwrap();
    });
}

/// Returns one sent message for each read, and waits for the next one.
struct Pipe(std::sync::mpsc::Receiver<&'static [u8]>, Vec<u8>);

impl Read for Pipe {
    fn read(&mut self, out: &mut [u8]) -> io::Result<usize> {
        if self.1.is_empty() {
            self.1 = self.0.recv().unwrap_or_default().to_vec();
        }
        let n = self.1.len().min(out.len());
        out[..n].copy_from_slice(&self.1[..n]);
        self.1.drain(..n);
        Ok(n)
    }
}

#[test]
fn records_are_pushed_before_the_reader_waits() {
    let (send, receive) = std::sync::mpsc::channel();
    let queue = unbounded();
    let (woken, wakes) = std::sync::mpsc::channel();
    queue.register(Box::new(move || woken.send(()).unwrap()));
    let take = || {
        wakes.recv().unwrap();
        match queue.take(9) {
            Dequeued::Batch(1, Batch { payload: Payload::Lines { bytes, .. }, next, .. }) => (bytes, next),
            other => panic!("{other:?}"),
        }
    };
    std::thread::scope(|scope| {
        scope.spawn(|| {
            let bad = BadRecords::default();
            let cutter = Cutter::new(&queue, &StoppedClock, EpochRule::All, Speed::Max, Share::ALL, 0);
            let places = RecordIndex::default();
            let progress = Arc::default();
            let mut reading = reading(cutter, &bad, 20, &places, &progress);
            let FeedReader { mut bytes, .. } = FeedReader::new(Pipe(receive, Vec::new())).unwrap();
            reading.feed(&"pipe".into(), &InputLayout::default(), &mut bytes, false, u64::MAX).unwrap();
            reading.cutter.finish().unwrap();
        });
        send.send(b"{\"id\":1}\n{\"id\":2}\n{\"i").unwrap();
        assert_eq!(take(), (b"{\"id\":1}\n{\"id\":2}\n".to_vec(), 2), "and the line that has begun is kept");
        send.send(b"d\":3}\n").unwrap();
        assert_eq!(take(), (b"{\"id\":3}\n".to_vec(), 3));
        send.send(b"a line that is longer than 20 bytes\n{").unwrap();
        assert_eq!(take(), (b"".to_vec(), 4), "a bad record moves the position");
        send.send(b"}").unwrap();
        drop(send);
        assert_eq!(take(), (b"{}".to_vec(), 5));
    });
}
