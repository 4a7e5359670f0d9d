//! A process killed during its publishes.

use std::io::{BufRead, BufReader, Write};
use std::process::{Command, Stdio};

use dupflow::connectors::state::{Folder, verify};

use super::script::{publish, restart, usual_documents};

const FOLDER: &str = "DUPFLOW_TEST_STATE";

/// The child: publishes until it is killed, and prints each acknowledged epoch.
#[test]
#[ignore = "the child of a_killed_owner_loses_nothing"]
fn publish_until_killed() {
    let folder = std::env::var_os(FOLDER).expect("the parent sets the folder");
    let (mut state, epoch, found) = restart(Folder::new(folder));
    assert!(found == usual_documents(epoch));
    for next in epoch + 1.. {
        publish(&mut state, next).unwrap();
        writeln!(std::io::stdout(), "\npublished {next}").unwrap();
    }
}

#[test]
fn a_killed_owner_loses_nothing() {
    let folder = tempfile::tempdir().unwrap();
    let mut last = 0;
    for round in 0..12_usize {
        let mut child = Command::new(std::env::current_exe().unwrap())
            .args(["kill::publish_until_killed", "--exact", "--ignored", "--nocapture"])
            .env(FOLDER, folder.path())
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let epochs = lines.filter_map(|line| line.unwrap().strip_prefix("published ")?.parse::<u64>().ok());
        // The kill hits any operation of the child after this many publishes.
        let mut acknowledged = epochs;
        let published = acknowledged.by_ref().take(3 + round * 7 % 20).last().expect("it publishes");
        child.kill().unwrap();
        // Epochs printed before the kill count too.
        let published = acknowledged.last().unwrap_or(published);
        child.wait().unwrap();
        let found = verify(Box::new(Folder::new(folder.path()))).unwrap();
        assert!(found.damages.is_empty(), "{:?}", found.damages);
        let (_, epoch, documents) = restart(Folder::new(folder.path()));
        assert!(
            published > last && (published..=published + 1).contains(&epoch),
            "{published} was acknowledged, {epoch} is there"
        );
        assert!(documents == usual_documents(epoch));
        last = epoch;
    }
    // No file of interrupted publishes is left.
    let (mut state, epoch, _) = restart(Folder::new(folder.path()));
    publish(&mut state, epoch + 1).unwrap();
    state.compact().unwrap();
    let found = verify(Box::new(Folder::new(folder.path()))).unwrap();
    assert_eq!((found.unnamed, found.documents), (vec![], Some(usual_documents(epoch + 1).len() as u64)));
}
