//! Truncated files and flipped bits in every file: the damage is reported with the name of the file, or has
//! no effect; it is never read as data.

use std::io::Write;
use std::sync::{Arc, Mutex};

use dupflow::connectors::state::{MemoryStore, StateError, Store, StoredState, verify};

use super::script::{Documents, SMALL, changes, documents, publish, restart, saved, usual, usual_documents};

/// A state with bases, deltas, a table and two manifests.
fn example() -> MemoryStore {
    let memory = MemoryStore::default();
    let (mut state, ..) = restart(memory.clone());
    (1..=5).for_each(|epoch| publish(&mut state, epoch).unwrap());
    state.compact().unwrap();
    state.put_table(77, b"document frequencies").unwrap();
    for epoch in 6..=8 {
        let buffers = changes(epoch, &usual(epoch), &mut Documents::new());
        state.publish(&saved(epoch, Some(77)), &buffers).unwrap();
    }
    memory
}

fn copy(of: &MemoryStore) -> MemoryStore {
    let copy = MemoryStore::default();
    of.list().unwrap().iter().for_each(|name| copy.put(name, &of.get(name).unwrap()).unwrap());
    copy
}

/// The log of a run.
#[derive(Clone, Default)]
struct Log(Arc<Mutex<Vec<u8>>>);

impl Write for Log {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0.lock().unwrap().extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

/// Epoch, documents and table.
type Contents = (u64, Documents, Option<Vec<u8>>);

/// Opens the state and reads everything. Returns the result and the log.
fn read(memory: &MemoryStore) -> (Result<Contents, StateError>, String) {
    let log = Log::default();
    let to = log.clone();
    let subscriber = tracing_subscriber::fmt().with_writer(move || to.clone()).finish();
    let result = tracing::subscriber::with_default(subscriber, || {
        let mut state = StoredState::open(Box::new(memory.clone()))?.with_rule(SMALL);
        let (epoch, found) = documents(&mut state, u64::MAX)?;
        Ok((epoch, found, state.table(77)?))
    });
    let log_text = String::from_utf8(log.0.lock().unwrap().clone()).unwrap();
    (result, log_text)
}

#[test]
fn truncations_and_bit_flips_everywhere() {
    let memory = example();
    let (whole, log_text) = read(&copy(&memory));
    let whole = whole.unwrap();
    assert_eq!((&whole.1, &whole.2), (&usual_documents(8), &Some(b"document frequencies".to_vec())));
    assert!(!log_text.contains("damaged"), "{log_text}");
    let mut names = memory.list().unwrap();
    names.sort_unstable();
    let kinds = ["base-", "delta-", "manifest-", "table-"];
    let count = |kind: &str| names.iter().filter(|name| name.starts_with(kind)).count();
    let counts = kinds.map(count);
    assert!(counts[0] >= 6 && counts[1] >= 1 && counts[2..] == [2, 1], "{counts:?}");
    let newest = names.iter().rfind(|name| name.starts_with("manifest-")).unwrap();
    let (mut refused, mut without_effect, mut older) = (0, 0, 0);
    for name in &names {
        let bytes = memory.get(name).unwrap();
        let step = (bytes.len() / 150).max(1);
        let places = (0..bytes.len()).step_by(step).chain(bytes.len().saturating_sub(40)..bytes.len());
        for at in places {
            for is_cut in [true, false] {
                let damaged = copy(&memory);
                let changed = if is_cut {
                    bytes[..at].to_vec()
                } else {
                    let mut flipped = bytes.clone();
                    flipped[at] ^= 1 << (at % 8);
                    flipped
                };
                damaged.put(name, &changed).unwrap();
                // Before it is opened, which writes a manifest.
                let damages = verify(Box::new(damaged.clone())).unwrap().damages;
                let is_named = |error: &StateError| error.to_string().contains(name.as_str());
                assert!(damages.iter().any(is_named), "{name} at {at}: {damages:?}");
                match read(&damaged) {
                    (Err(error), _) => {
                        assert!(matches!(error, StateError::Damaged { .. }) && is_named(&error), "{error}");
                        refused += 1;
                    }
                    (Ok(contents), _) if contents == whole => {
                        assert!(name.starts_with("manifest-") && name != newest, "{name} at {at}");
                        without_effect += 1;
                    }
                    (Ok(contents), printed) => {
                        assert!(name == newest && printed.contains(name), "{name} at {at}: {printed}");
                        assert!((contents.0, contents.1) == (7, usual_documents(7)), "{name} at {at}");
                        older += 1;
                    }
                }
            }
        }
    }
    assert!(refused > 1000 && without_effect > 300 && older > 300, "{refused} {without_effect} {older}");
}

#[test]
fn a_missing_file_is_named() {
    let memory = example();
    for name in memory.list().unwrap() {
        let missing = copy(&memory);
        missing.delete(&name).unwrap();
        let found = verify(Box::new(missing.clone())).unwrap().damages;
        if name.starts_with("manifest-") {
            assert!(found.is_empty(), "the other manifest is undamaged");
            continue;
        }
        assert!(found[0].to_string().contains(&name), "{found:?}");
        match read(&missing).0 {
            Err(error) => assert!(error.to_string().contains(&name), "{error}"),
            Ok((.., table)) => assert!(name.starts_with("table-") && table.is_none(), "{name}"),
        }
    }
}

/// Two undamaged files with exchanged names.
#[test]
fn a_file_cannot_replace_another() {
    let memory = example();
    let names = memory.list().unwrap();
    let bases: Vec<&String> = names.iter().filter(|name| name.starts_with("base-")).collect();
    let swapped = copy(&memory);
    swapped.put(bases[0], &memory.get(bases[1]).unwrap()).unwrap();
    let error = read(&swapped).0.unwrap_err();
    assert!(matches!(&error, StateError::Damaged { file, .. } if file.ends_with(bases[0])), "{error}");
}

/// If no manifest is undamaged, there is no state to fall back to. Opening fails, and does not replace the
/// state by an empty one.
#[test]
fn damaged_manifests_are_not_an_empty_state() {
    let memory = example();
    for name in memory.list().unwrap().iter().filter(|name| name.starts_with("manifest-")) {
        memory.put(name, b"rubbish").unwrap();
    }
    let before = memory.list().unwrap();
    assert!(matches!(StoredState::open(Box::new(memory.clone())).unwrap_err(), StateError::Damaged { .. }));
    assert_eq!(memory.list().unwrap(), before);
}
