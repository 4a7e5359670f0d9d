//! What the tests publish, and the documents expected.

use std::collections::BTreeMap;

use dupflow::connectors::mark::Mark;
use dupflow::connectors::state::{CompactionRule, StateError, StatePosition, Store, StoredState};
use dupflow::core::doc::changes::Changes;
use dupflow::core::time::{Progress, TableInForce};

/// Live documents: ids to values.
pub(crate) type Documents = BTreeMap<Vec<u8>, Vec<u8>>;

/// Thresholds so small that a few publishes start every kind of compaction.
pub(crate) const SMALL: CompactionRule = CompactionRule { least_bytes: 4000, most_deltas: 4 };

/// One change: a number that determines the id, and the length of the value; `None` deletes.
pub(crate) type Change = (u16, Option<u16>);

/// The position that the state of an epoch stands for.
pub(crate) fn saved(epoch: u64, table: Option<u64>) -> StatePosition {
    let table = table.map(|fingerprint| TableInForce { number: 1, documents: 2, fingerprint });
    let progress =
        Progress { epoch, next: [(0, epoch * 10), (7, epoch)].into(), table, ..Progress::default() };
    let scheme = b"11:sketch.size,4:n448,".to_vec();
    StatePosition { mark: Mark { progress, ..Mark::default() }, scheme, ..StatePosition::default() }
}

/// The changes of an epoch, in two buffers, also applied to `documents`. Values contain the epoch.
pub(crate) fn changes(epoch: u64, list: &[Change], documents: &mut Documents) -> [Changes; 2] {
    let mut buffers = [Changes::default(), Changes::default()];
    for (at, (number, length)) in list.iter().enumerate() {
        let buffer = &mut buffers[usize::from(at * 2 >= list.len())];
        let id = format!("https://example.com/{number}").into_bytes();
        if let Some(length) = length {
            let mut value = format!("{epoch}:{at}:").into_bytes();
            value.resize(value.len() + usize::from(*length), b'x');
            buffer.put(&id, &value);
            documents.insert(id, value);
        } else {
            buffer.end(&id);
            documents.remove(&id);
        }
    }
    buffers
}

/// Changes of an epoch, derived from its number: most replace a document, some delete one, one id occurs
/// twice.
pub(crate) fn usual(epoch: u64) -> Vec<Change> {
    let number = |n: u64| u16::try_from((epoch * 7 + n * 5) % 60).unwrap();
    let length = |n: u64| (n % 4 != 3).then(|| u16::try_from(20 + n * epoch % 90).unwrap());
    (0..12).map(|n| (number(n), length(n))).chain([(number(0), Some(9))]).collect()
}

/// The documents after the usual changes of epochs 1 to `epoch`.
pub(crate) fn usual_documents(epoch: u64) -> Documents {
    let mut documents = Documents::new();
    (1..=epoch).for_each(|epoch| drop(changes(epoch, &usual(epoch), &mut documents)));
    documents
}

/// Publishes the usual changes of an epoch.
pub(crate) fn publish(state: &mut StoredState, epoch: u64) -> Result<(), StateError> {
    state.publish(&saved(epoch, None), &changes(epoch, &usual(epoch), &mut Documents::new()))
}

/// The epoch and the documents of a state. Checks that no document is returned twice.
pub(crate) fn documents(state: &mut StoredState, at_most: u64) -> Result<(u64, Documents), StateError> {
    let Some(snapshot) = state.latest(at_most)? else { return Ok((0, Documents::new())) };
    let mut documents = Documents::new();
    snapshot.read(1000, |slice| {
        assert!(slice.len_bytes() > 0 && slice.len_bytes() < 1500);
        for (id, value) in slice.iter() {
            let before = documents.insert(id.to_vec(), value.expect("it is alive").to_vec());
            assert_eq!(before, None, "{}", id.escape_ascii());
        }
        Ok::<_, StateError>(())
    })?;
    let epoch = snapshot.saved().epoch();
    assert_eq!(snapshot.saved(), &saved(epoch, snapshot.saved().table()));
    Ok((epoch, documents))
}

/// Opens a state as a restart does.
pub(crate) fn restart(store: impl Store + 'static) -> (StoredState, u64, Documents) {
    let mut state = StoredState::open(Box::new(store)).unwrap().with_rule(SMALL);
    let (epoch, documents) = documents(&mut state, u64::MAX).unwrap();
    (state, epoch, documents)
}
