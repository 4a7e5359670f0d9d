//! The second pass over inputs that are as they were, that have changed, and to a full disk.

use std::fs::{self, File};
use std::path::Path;
use std::sync::Arc;

use tempfile::TempDir;

use super::selection::Selection;
use super::{CopiedDocuments, CopyResume, CopySettings, CopyTarget, DocumentsCopy, SelectionSlot};
use crate::inputs::{Input, RecordIndex};

const FEED: &str = "{\"id\":\"a\"}\n\n{\"id\":\"b\"} \r\n{\"id\":\"c\"}\n";

/// A feed of three records, of which the first and the last are selected, after a first pass.
struct Place {
    folder: TempDir,
    copy: DocumentsCopy,
}

impl Place {
    fn new(records: u64, target: impl FnOnce(&Path) -> CopyTarget) -> Self {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("feed.jsonl");
        fs::write(&path, FEED).unwrap();
        let (places, input) = (Arc::<RecordIndex>::default(), Input::at(&path));
        places.begin(0, 0, &input);
        places.end(records);
        let mut selection = Selection::default();
        selection.alive = records;
        [0, 2].into_iter().for_each(|record| selection.choose(record));
        let slot = SelectionSlot::default();
        *slot.lock() = Some(selection);
        let settings =
            CopySettings { resume: None, mark: None, of_units: false, target: target(folder.path()) };
        let copy = DocumentsCopy::new(settings, vec![input], places, slot, "run").unwrap();
        Self { folder, copy }
    }

    fn feed(&self) -> std::path::PathBuf {
        self.folder.path().join("feed.jsonl")
    }

    /// The error of the copy, of which no file is left.
    fn failure(self) -> String {
        let error = self.copy.write().unwrap_err();
        let names: Vec<_> =
            self.folder.path().read_dir().unwrap().map(|entry| entry.unwrap().file_name()).collect();
        assert_eq!(names, ["feed.jsonl"], "{error}");
        error.to_string()
    }
}

fn file(folder: &Path) -> CopyTarget {
    CopyTarget::File(folder.join("out.jsonl"))
}

#[test]
fn an_input_that_is_as_it_was_is_copied() {
    let place = Place::new(3, file);
    let copied = place.copy.write().unwrap();
    assert_eq!(copied, CopiedDocuments { records: 2, left_out: 1, without_document: 0, files: 1, bytes: 22 });
    let written = fs::read_to_string(place.folder.path().join("out.jsonl")).unwrap();
    assert_eq!(written, "{\"id\":\"a\"}\n{\"id\":\"c\"}\n");
}

#[test]
fn an_input_that_has_changed_fails_and_leaves_no_file() {
    type Change = fn(&Path);
    let changes: [(&str, Change); 4] = [
        ("longer", |feed| fs::write(feed, FEED.to_owned() + "{\"id\":\"d\"}\n").unwrap()),
        ("of equal length, later", |feed| {
            let later = feed.metadata().unwrap().modified().unwrap() + std::time::Duration::from_micros(1);
            fs::write(feed, FEED.replace('b', "x")).unwrap();
            File::options().append(true).open(feed).unwrap().set_modified(later).unwrap();
        }),
        ("another file of this name", |feed| {
            let other = feed.with_file_name("other");
            fs::copy(feed, &other).unwrap();
            let before = feed.metadata().unwrap().modified().unwrap();
            File::options().append(true).open(&other).unwrap().set_modified(before).unwrap();
            fs::rename(other, feed).unwrap();
        }),
        ("a folder", |feed| {
            fs::remove_file(feed).unwrap();
            fs::create_dir(feed).unwrap();
        }),
    ];
    for (what, change) in changes {
        for target in [file, |folder: &Path| CopyTarget::Folder(folder.join("out"))] {
            let place = Place::new(3, target);
            change(&place.feed());
            let error = place.failure();
            assert!(error.contains("feed.jsonl") && error.contains("it has changed"), "{what}: {error}");
        }
    }
    let place = Place::new(3, file);
    fs::remove_file(place.feed()).unwrap();
    assert!(place.copy.write().unwrap_err().to_string().contains("feed.jsonl"));
}

/// As if records had been read that the file does not have any more, and the other way round.
#[test]
fn another_number_of_records_fails() {
    for records in [2, 4] {
        assert!(Place::new(records, file).failure().contains("it has changed"), "{records}");
    }
}

/// Of shards of one record each, the first is complete when a copy ends: another copy writes the second only.
/// It begins anew if other records are selected.
#[test]
fn a_copy_goes_on_behind_its_last_complete_file() {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    let settings = CopySettings {
        of_units: false,
        resume: Some(CopyResume { file: path("copied.jsonl"), name: "all".to_owned() }),
        mark: None,
        target: CopyTarget::Shards(path("out/part.jsonl"), std::num::NonZeroU64::MIN),
    };
    fs::write(path("feed.jsonl"), FEED).unwrap();
    let input = Input::at(&path("feed.jsonl"));
    let copy = |chosen: &[u64], end: u64| {
        let places = Arc::<RecordIndex>::default();
        places.begin(0, 0, &input);
        places.end(end);
        let mut selection = Selection::default();
        selection.alive = 3;
        chosen.iter().for_each(|record| selection.choose(*record));
        let slot = SelectionSlot::default();
        *slot.lock() = Some(selection);
        DocumentsCopy::new(settings.clone(), vec![input.clone()], places, slot, "run").unwrap().write()
    };
    let beside = |name: &str| path(".out.all.part").join(name);
    assert!(!DocumentsCopy::is_published(&settings).unwrap());
    // The input seems to end before its last record: an error, after the first file.
    assert!(copy(&[0, 2], 2).is_err());
    assert_eq!(fs::read_to_string(beside("part-00000.jsonl")).unwrap(), "{\"id\":\"a\"}\n");
    assert!(copy(&[0, 1, 2], 2).is_err());
    let first = beside("part-00000.jsonl");
    fs::remove_dir_all(path(".out.all.part")).unwrap();
    assert!(copy(&[0, 1, 2], 2).is_err(), "what was removed is written again");
    assert_eq!(fs::read_to_string(&first).unwrap(), "{\"id\":\"a\"}\n");
    // Files that no longer match the notes are rewritten, matching ones kept, all others deleted.
    let written = |file: &Path| file.metadata().unwrap().modified().unwrap();
    let before = written(&first);
    fs::write(beside("part-00009.jsonl"), "of another copy\n").unwrap();
    assert!(copy(&[0, 1, 2], 2).is_err());
    assert!(written(&first) == before && !beside("part-00009.jsonl").exists());
    for changed in ["", "{\"id\":\"b\"}\n"] {
        fs::write(&first, changed).unwrap();
        assert!(copy(&[0, 1, 2], 2).is_err());
        assert_eq!(fs::read_to_string(&first).unwrap(), "{\"id\":\"a\"}\n");
    }
    // A note that a kill has torn does not count.
    let notes = fs::read(path("copied.jsonl")).unwrap();
    fs::write(path("copied.jsonl"), &notes[..notes.len() - 2]).unwrap();
    fs::write(&first, "torn\n").unwrap();
    let copied = copy(&[0, 1, 2], 3).unwrap();
    assert_eq!((copied.records, copied.files, copied.left_out), (3, 3, 0));
    let read = |number: u32| fs::read_to_string(path(&format!("out/part-0000{number}.jsonl"))).unwrap();
    assert_eq!([0, 1, 2].map(read), ["{\"id\":\"a\"}\n", "{\"id\":\"b\"} \r\n", "{\"id\":\"c\"}\n"]);
    assert!(DocumentsCopy::is_published(&settings).unwrap() && !first.exists());
    fs::write(path("out/part-00002.jsonl"), "").unwrap();
    assert!(!DocumentsCopy::is_published(&settings).unwrap(), "a published file has been changed");
}

#[cfg(target_os = "linux")]
#[test]
fn a_full_disk_fails() {
    let place = Place::new(3, |_| CopyTarget::Stream(Some("/dev/full".into())));
    assert!(place.failure().contains("No space left on device"));
}
