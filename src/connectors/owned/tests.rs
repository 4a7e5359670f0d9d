//! What happens to a file beside the run that owns it.

#![expect(clippy::shadow_unrelated, reason = "a test is a sequence of small cases")]

use std::fs;
use std::io::Write as _;
use std::path::Path;

use super::*;

/// Opens, and tries again while a process that another test has just started holds a copy of the lock.
fn alone<T>(open: impl Fn() -> std::io::Result<T>) -> T {
    let is_locked = |opened: &std::io::Result<T>| {
        opened.as_ref().is_err_and(|error| error.to_string().contains("another"))
    };
    let mut tries = std::iter::repeat_with(open).take(100_000);
    tries.find(|opened| !is_locked(opened)).expect("the lock is released").unwrap()
}

fn written(path: &Path) -> OwnedFile {
    let mut file = alone(|| OwnedFile::open(path));
    file.append(b"one\n").unwrap();
    file
}

#[test]
fn each_change_of_the_file_at_the_path_is_named() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let away = folder.path().join("away");
    let changes: [(&str, &dyn Fn()); 5] = [
        ("was removed or renamed", &|| fs::remove_file(&path).unwrap()),
        ("was replaced by another file", &|| {
            fs::rename(&path, &away).unwrap();
            fs::write(&path, "one\n").unwrap();
        }),
        ("holds 0 bytes, and this run has written 4: it was cut", &|| fs::write(&path, "").unwrap()),
        ("holds 3 bytes, and this run has written 4: it was cut", &|| fs::write(&path, "one").unwrap()),
        ("holds 5 bytes, and this run has written 4: another program", &|| {
            fs::write(&path, "one\n\n").unwrap();
        }),
    ];
    for (what, change) in changes {
        drop(fs::remove_file(&path));
        let mut file = written(&path);
        file.check().unwrap();
        change();
        for error in [file.check(), file.append(b"two\n"), file.flush()] {
            let error = error.unwrap_err().to_string();
            assert!(error.contains(what) && error.contains("/out "), "{error}");
        }
        assert!(!fs::read_to_string(&path).unwrap_or_default().contains("two"), "{what}: nothing is written");
    }
}

/// The same bytes at the path, in the same file: a rename there and back, or a link.
#[test]
fn a_file_that_was_put_back_goes_on() {
    let folder = tempfile::tempdir().unwrap();
    let (path, link) = (folder.path().join("out"), folder.path().join("link"));
    let mut file = written(&path);
    fs::rename(&path, &link).unwrap();
    assert!(file.check().is_err());
    fs::rename(&link, &path).unwrap();
    file.append(b"two\n").unwrap();
    drop(file);
    #[cfg(unix)]
    {
        std::os::unix::fs::symlink(&path, &link).unwrap();
        let mut linked = alone(|| OwnedFile::open(&link));
        assert!(OwnedFile::open(&path).unwrap_err().to_string().contains("another run"));
        assert!(OwnedFile::check_free(&path).is_err());
        linked.take(4).unwrap();
        linked.cut().unwrap();
        linked.append_durably(b"three\n").unwrap();
    }
    assert_eq!(fs::read_to_string(&path).unwrap(), "one\nthree\n");
}

#[test]
#[cfg(unix)]
fn devices_are_shared_and_not_looked_at() {
    let first = OwnedFile::open(Path::new("/dev/null"));
    let mut second = OwnedFile::open(Path::new("/dev/null")).unwrap();
    second.append_durably(b"lost").unwrap();
    second.check().unwrap();
    assert!(!second.is_file() && first.is_ok());
    OwnedFile::create(Path::new("/dev/null")).unwrap().append(b"lost").unwrap();
}

#[test]
fn a_hole_is_no_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    for (bytes, is_hole) in [
        ([&[0; 200][..], b"line\n"].concat(), true),
        ([b"line\n", &[0; 9000][..]].concat(), true),
        (b"a\0b\n".repeat(9000), false),
        (Vec::new(), false),
    ] {
        fs::write(&path, &bytes).unwrap();
        let mut file = alone(|| OwnedFile::open(&path));
        file.take(bytes.len() as u64).unwrap();
        assert_eq!(file.has_hole().unwrap(), is_hole);
        assert!(file.take(bytes.len() as u64 + 1).is_err());
    }
}

#[test]
fn only_the_part_of_a_line_is_left_out() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("out");
    let lines = |text: &[u8]| {
        fs::write(&path, text).unwrap();
        let file = alone(|| OwnedFile::open(&path));
        file.whole_lines(b"{\"id\":").unwrap().collect::<Result<Vec<_>, _>>()
    };
    let whole = [b"{\"id\":1}\n".to_vec()];
    for rest in [&b""[..], b"{", b"{\"id\":2", b"\0\0\0"] {
        assert_eq!(lines(&[&whole[0], rest].concat()).unwrap(), whole);
    }
    for rest in [&b"notes"[..], b"{\"epoch\":1"] {
        assert!(lines(&[&whole[0], rest].concat()).unwrap_err().to_string().contains("move it away"));
    }
}

#[test]
fn a_record_has_one_run_and_is_written_again_if_it_was_removed() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mark");
    let mut mark = OwnedRecord::open(&path).unwrap();
    assert_eq!(mark.bytes(), None);
    mark.check().unwrap();
    for bytes in [b"1", b"2"] {
        mark.replace(bytes).unwrap();
        assert!(OwnedRecord::open(&path).unwrap_err().to_string().contains("another run"));
    }
    fs::remove_file(&path).unwrap();
    mark.check().unwrap();
    assert_eq!(fs::read(&path).unwrap(), b"2");
    fs::remove_file(&path).unwrap();
    fs::write(&path, "3").unwrap();
    for error in [mark.check(), mark.replace(b"4")] {
        assert!(error.unwrap_err().to_string().contains("was replaced while this run had it"));
    }
    assert_eq!(fs::read(&path).unwrap(), b"3");
    drop(mark);
    let mut mark = alone(|| OwnedRecord::open(&path));
    assert_eq!(mark.bytes(), Some(&b"3"[..]));
    mark.remove().unwrap();
    assert!(!path.exists());
    // Made by another since.
    fs::write(&path, "5").unwrap();
    assert!(mark.replace(b"6").is_err());
}
