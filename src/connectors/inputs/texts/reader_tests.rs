//! Texts that are read back equal those that were read, for every kind of input and every position.

use std::fs;
use std::io::Write;
use std::time::Duration;

use super::*;
use crate::formats::InputLayout;
use crate::inputs::files::Files;
use crate::intake::{BadRecords, Decoder, Dequeued, EpochLimits, EpochRule, Queue, QueueRoom, Source};
use dupflow_core::time::{Clock, Epoch, Offsets};

/// A clock that stands still.
struct FrozenClock;

impl Clock for FrozenClock {
    fn now(&self) -> Duration {
        Duration::ZERO
    }

    fn unix(&self) -> f64 {
        0.0
    }
}

const TEXTS: [&str; 6] = [
    "你好,世界 ",
    "ความเหมือน ",
    "كلمات \u{202e}عكس\u{202c} ",
    "日本語の文章。",
    "😀 👩‍👩‍👧 \u{0} \u{1e} \u{7f} ",
    "plain \"words\" \\ \n ",
];

fn line(id: &str, text: &str) -> String {
    format!("{}\n", serde_json::json!({ "id": id, "text": text, "title": "über\u{1e}schrift" }))
}

fn id(id: &str) -> DocId {
    DocId::new(id).unwrap()
}

fn fields(names: &[&str]) -> Vec<String> {
    names.iter().map(|&name| name.to_owned()).collect()
}

/// Reads the inputs, and then every document's text back; returns the number of documents.
fn all_come_back(inputs: &[&Path], names: &[&str]) -> usize {
    let (files, events) = read(inputs, names);
    let mut texts = files.texts(&fields(names).into()).unwrap();
    let mut lines = FileLines::new();
    for (position, of, text) in &events {
        let found = texts.text(of, *position);
        let place = found.as_ref().unwrap().place.clone().unwrap();
        assert!(stands_at(&place, of, &mut lines), "{of:?}: {place}");
        let found = found.map(|found| (found.text, found.truncated));
        let whole = text.len() <= FoundText::MOST_BYTES;
        assert_eq!(found.as_ref().map(|(_, truncated)| *truncated), Ok(!whole), "{of:?} {position:?}");
        let found = found.unwrap().0;
        assert!(if whole { found == *text } else { text.starts_with(&found) }, "{of:?} {position:?}");
    }
    events.len()
}

/// The lines of files by their paths; `None` for a compressed file.
type FileLines = std::collections::BTreeMap<String, Option<Vec<String>>>;

/// Whether the place of a text is right: a path that ends with the id, or the line of a file that has it. Of
/// compressed files only the form is checked.
fn stands_at(place: &str, id: &DocId, files: &mut FileLines) -> bool {
    if place.ends_with(id.as_str()) {
        return true;
    }
    let (path, line) = place.rsplit_once(':').unwrap();
    let line: usize = line.parse().unwrap();
    let lines = files.entry(path.to_owned()).or_insert_with(|| {
        let file = fs::read(path).unwrap();
        let is_compressed =
            [&b"\x1f\x8b"[..], b"\x28\xb5\x2f\xfd"].iter().any(|magic| file.starts_with(magic));
        let read =
            || file.split(|byte| *byte == b'\n').map(|bytes| String::from_utf8_lossy(bytes).into_owned());
        (!is_compressed).then(|| read().collect())
    });
    let written = serde_json::to_string(id.as_str()).unwrap();
    lines.as_ref().is_none_or(|lines| lines.get(line - 1).is_some_and(|found| found.contains(&written)))
}

type ReadEvents = Vec<(Position, DocId, String)>;

/// The source, read to its end, and its upserts.
fn read(inputs: &[&Path], names: &[&str]) -> (Files, ReadEvents) {
    let inputs = Input::resolve(inputs, InputLayout::default()).unwrap();
    let files = Files::new(inputs, EpochRule::All, fields(names));
    let queue = Queue::new(1, 1, QueueRoom { bytes: u64::MAX, batches: usize::MAX }, EpochLimits::default());
    let bad = BadRecords::default();
    let reader = Box::new(files.clone());
    reader.readers(&Offsets::new()).remove(0).read(&queue, &bad, &FrozenClock).unwrap();
    let mut decoder = Decoder::new(&fields(names).into());
    let mut events = Vec::new();
    while let Dequeued::Batch(_, batch) = queue.take(Epoch::MAX) {
        let each = |position, event: dupflow_core::doc::DocEvent<'_>| {
            events.extend(event.text.map(|text| (position, event.id, text.into_owned())));
        };
        decoder.decode(&batch, &bad, &mut Vec::new(), each).unwrap();
    }
    (files, events)
}

/// A feed with everything that a feed may have: a byte order mark, blank lines, CRLF, bad records, deletes,
/// huge lines, no last newline.
fn feed(records: usize) -> Vec<u8> {
    let mut out = "\u{feff} \n".as_bytes().to_vec();
    for n in 0..records {
        let name = format!("{}/{n}", TEXTS[n % TEXTS.len()]);
        match n % 97 {
            13 => out.extend(b"{\"id\":\n\n  \t\r\n"),
            17 => out.extend(format!("{{\"id\":\"{n}\",\"op\":\"delete\"}}\r\n").bytes()),
            31 => out.extend(line(&name, &TEXTS[n % 6].repeat(20_000)).bytes()),
            50 => out.extend(line(&"ญ".repeat(341), &format!("{n}")).trim_end().bytes().chain(*b"\r\n")),
            _ => out.extend(line(&name, &TEXTS[n % 6].repeat(n % 50)).bytes()),
        }
    }
    out.pop();
    out
}

fn gzip(bytes: &[u8]) -> Vec<u8> {
    let mut out = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    out.write_all(bytes).unwrap();
    out.finish().unwrap()
}

/// A separator in a text would begin a field, where there are fields; also of a row whose fields are empty.
#[test]
fn texts_of_rows_read_back_equal_those_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("rows.csv");
    fs::write(&path, "id,text,title\n1,a\u{1e}b,\n2,a\u{1e}b,c\u{1e}d\n").unwrap();
    for (names, expected) in [(&[][..], ["a\u{1e}b"; 2]), (&["title"][..], ["a b", "a b\u{1e}c d"])] {
        assert_eq!(all_come_back(&[&path], names), 2);
        assert_eq!(read(&[&path], names).1.into_iter().map(|(.., text)| text).collect::<Vec<_>>(), expected);
    }
}

#[test]
fn texts_read_back_equal_those_read() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let plain = feed(3000);
    assert!(plain.len() > 8 << 20, "several points: {}", plain.len());
    fs::write(path("plain"), &plain).unwrap();
    fs::write(path("zst"), zstd::encode_all(&feed(300)[..], 3).unwrap()).unwrap();
    fs::write(path("gz"), [gzip(&feed(200)), gzip(b"\n{\"id\":\"second\",\"text\":\"member\"}")].concat())
        .unwrap();
    fs::write(path("empty"), "").unwrap();
    fs::create_dir_all(path("folder/目录/b")).unwrap();
    for (n, text) in TEXTS.iter().enumerate() {
        fs::write(path(&format!("folder/目录/{n} .txt")), text).unwrap();
    }
    fs::write(path("folder/no text"), b"\xff").unwrap();
    fs::write(path("folder/目录/b/long"), "é".repeat(FoundText::MOST_BYTES)).unwrap();
    let names = ["gz", "empty", "plain", "folder", "empty", "zst"].map(path);
    let inputs: Vec<&Path> = names.iter().map(PathBuf::as_path).collect();
    for further in [&[][..], &["title", "absent"]] {
        let read = all_come_back(&inputs, further);
        assert_eq!(read, 2939 + 293 + 196 + 1 + 7);
    }
}

#[test]
fn the_longest_lines_are_skipped_or_truncated() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("feed");
    // One line that is one byte too long, one of exactly the maximum length, and one that is found after
    // both.
    let text = |bytes: usize| "x".repeat(bytes - line("l", "").len() + 1);
    let long = [line("l", &text(MAX_RECORD_BYTES + 1)), line("l", &text(MAX_RECORD_BYTES)), line("z", "end")];
    fs::write(&path, long.concat()).unwrap();
    let (files, events) = read(&[&path], &[]);
    let places: Vec<_> = events.iter().map(|(position, of, _)| (position.offset, of.as_str())).collect();
    assert_eq!(places, [(1, "l"), (2, "z")]);
    let mut texts = files.texts(&TextColumns::default()).unwrap();
    let first = texts.text(&id("l"), events[0].0).unwrap();
    assert_eq!((first.text.len(), first.truncated), (FoundText::MOST_BYTES, true));
    assert_eq!(texts.text(&id("z"), events[1].0).unwrap().text, "end");
    let gone = texts.text(&id("l"), Position { partition: 0, offset: 0 });
    assert!(matches!(&gone, Err(NoText::Gone(why)) if why.contains("record 0")), "{gone:?}");
}

#[test]
fn texts_of_changed_inputs_are_gone() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("feed");
    let (a, b) = (line("a", "one"), line("b", "two"));
    fs::write(&path, format!("{a}{b}")).unwrap();
    fs::create_dir(folder.path().join("d")).unwrap();
    fs::write(folder.path().join("d/c"), "three").unwrap();
    let (files, events) = read(&[&path, &folder.path().join("d")], &[]);
    let mut texts = files.texts(&TextColumns::default()).unwrap();
    let mut text_of = |of: &str| {
        let at = events.iter().find(|(_, known, _)| known.as_str() == of).unwrap().0;
        match texts.text(&id(of), at) {
            Ok(found) => found.text,
            Err(NoText::Gone(why)) => why.replace(&folder.path().display().to_string(), ""),
            Err(other) => panic!("{other:?}"),
        }
    };
    assert_eq!([text_of("a"), text_of("b"), text_of("c")], ["one", "two", "three"]);
    let delete = "{\"id\":\"b\",\"op\":\"delete\"}\n";
    for (now, why) in [
        (
            format!("{a}{}", line("z", "two")),
            "record 1 of \"/feed\" holds another document now: the input has changed",
        ),
        (format!("{a}{delete}"), "record 1 of \"/feed\" holds a delete now: the input has changed"),
        (format!("{a}{{"), "record 1 of \"/feed\" holds no event now: the input has changed"),
        (a.clone(), "\"/feed\" ends before record 1: it has changed"),
    ] {
        fs::write(&path, now).unwrap();
        assert_eq!(text_of("b"), why);
        assert_eq!(text_of("a"), "one");
    }
    fs::remove_file(&path).unwrap();
    assert_eq!(text_of("a"), "\"/feed\" cannot be read: No such file or directory (os error 2)");
    fs::write(folder.path().join("d/c"), b"\xff").unwrap();
    assert_eq!(text_of("c"), "\"/d/c\" holds no document any more");
    fs::remove_file(folder.path().join("d/c")).unwrap();
    fs::create_dir(folder.path().join("d/c")).unwrap();
    assert_eq!(text_of("c"), "\"/d/c\" is no file any more");
    // No id leads to a file outside the folder.
    fs::write(folder.path().join("secret"), "s").unwrap();
    let at = Position { partition: 0, offset: 2 };
    for outside in
        ["../secret", "/etc/passwd", "x/../../secret", &folder.path().join("secret").display().to_string()]
    {
        let gone = files.texts(&TextColumns::default()).unwrap().text(&id(outside), at);
        assert!(matches!(gone, Err(NoText::Gone(_))), "{outside}: {gone:?}");
    }
}

#[test]
fn unsupported_inputs_report_why() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("feed.zst");
    let lines = format!("{}{}", line("a", &"x".repeat(5000)), line("b", "behind"));
    fs::write(&path, zstd::encode_all(lines.as_bytes(), 3).unwrap()).unwrap();
    let at = |offset| Position { partition: 0, offset };
    let mut texts = FileTexts::new(Arc::default(), &TextColumns::default());
    let unread = Err(NoText::Failed("the inputs have not been read so far yet".to_owned()));
    assert_eq!(texts.text(&id("a"), at(0)), unread);
    texts.places.begin(0, 0, &Input::at(&path));
    let further = texts.text(&id("c"), at(2));
    assert!(matches!(further, Err(NoText::Failed(_))), "more may be there: {further:?}");
    texts.places.begin(2, 0, &Input { place: InputPlace::Stdin, layout: Arc::default(), part: None });
    assert!(texts.text(&id("b"), at(1)).is_ok());
    texts.most = 5000;
    let far = texts.text(&id("b"), at(1));
    assert!(
        matches!(&far, Err(NoText::Unsupported(why)) if why.contains("behind its first 5000 bytes")),
        "{far:?}"
    );
    assert!(texts.text(&id("a"), at(0)).is_ok());
    let stdin = Err(NoText::Unsupported("standard input cannot be read twice".to_owned()));
    assert_eq!(texts.text(&id("c"), at(2)), stdin);
    assert_eq!(texts.text(&id("c"), Position { partition: 1, offset: 0 }), unread);
}

/// Opening a pipe would wait for a writer.
#[cfg(unix)]
#[test]
fn a_pipe_is_not_waited_for() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("pipe");
    let made = std::process::Command::new("mkfifo").arg(&path).status().unwrap();
    assert!(made.success());
    let mut texts = FileTexts::new(Arc::default(), &TextColumns::default());
    texts.places.begin(0, 0, &Input::at(&path));
    let found = texts.text(&id("a"), Position::default());
    assert!(
        matches!(&found, Err(NoText::Unsupported(why)) if why.ends_with("is a pipe, which cannot be read \
         twice"))
    );
}
