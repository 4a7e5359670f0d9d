//! The owner's side: what it asks of the writers.

use std::sync::Arc;

use super::{StateOwner, StateWriters, WriterDone, WriterTask, WriterWork};
use crate::state::compaction::{CompactionProgress, CompactionResult, OtherShare};
use crate::state::files::StateFiles;
use crate::state::manifest::Manifest;
use crate::state::segment::SegmentFile;
use crate::state::{StateError, StoredState};
use dupflow_core::time::Epoch;

/// The writers, as the owner asks them.
#[derive(Debug)]
pub(in crate::state) struct AskedWriters {
    writers: Arc<dyn StateWriters>,
    /// Number of the next task.
    next: u64,
    /// Those that replied to the last [`WriterWork::Store`] that they reach the state.
    reaching: Vec<usize>,
}

/// Tasks that were sent: the writer and the number of each.
type Sent = Vec<(usize, u64)>;

impl AskedWriters {
    fn send(&mut self, writer: usize, work: WriterWork) -> (usize, u64) {
        self.next += 1;
        self.writers.send(writer, WriterTask { serial: self.next, work });
        (writer, self.next)
    }

    /// Asks all to store their changes through an epoch.
    pub(in crate::state) fn store(&mut self, through: Epoch) -> Sent {
        (0..self.writers.count()).map(|writer| self.send(writer, WriterWork::Store { through })).collect()
    }

    /// Waits for the deltas that all have stored.
    pub(in crate::state) fn stored(
        &mut self,
        files: &StateFiles,
        sent: Sent,
    ) -> Result<Vec<SegmentFile>, StateError> {
        self.reaching.clear();
        let mut stored = Ok(Vec::new());
        for (writer, serial) in sent {
            let writers = &self.writers;
            let of_writer = match writers.reply(writer, serial).map(|reply| reply.done) {
                Some(WriterDone::Stored(deltas)) => {
                    self.reaching.push(writer);
                    deltas.map_err(|failure| failure.into_error(&writers.name(writer)))
                }
                Some(WriterDone::Unreached) => continue,
                Some(WriterDone::Rebased { .. }) | None => Err(no_reply(&**writers, writer)),
            };
            let seen = of_writer.and_then(|deltas| {
                deltas.iter().try_for_each(|delta| is_here(files, delta, || writers.name(writer)))?;
                Ok(deltas)
            });
            match (&mut stored, seen) {
                (Ok(all), Ok(deltas)) => all.extend(deltas),
                (Ok(_), Err(error)) => stored = Err(error),
                (Err(_), _) => {}
            }
        }
        stored
    }

    /// The deltas that were stored are published.
    pub(in crate::state) fn published(&mut self) {
        self.send_all(&WriterWork::Published);
    }

    /// Lets all remove the deltas that are not published, except these.
    pub(in crate::state) fn discard(&mut self, listed: Vec<String>) {
        self.send_all(&WriterWork::Discard { listed });
    }

    fn send_all(&mut self, work: &WriterWork) {
        for writer in self.reaching.clone() {
            self.send(writer, work.clone());
        }
    }

    /// Has the groups of a rebase written by all, the owner among them. Returns its own share.
    pub(in crate::state) fn rebase(
        &mut self,
        files: &StateFiles,
        manifest: &Manifest,
        groups: Vec<u8>,
    ) -> (Vec<u8>, Option<Arc<dyn OtherShare>>) {
        let mut shares = vec![Vec::new(); self.reaching.len() + 1];
        let count = shares.len();
        groups.into_iter().enumerate().for_each(|(n, group)| shares[n % count].push(group));
        let own = shares.remove(0);
        let mut sent = Sent::new();
        for (writer, share) in self.reaching.clone().into_iter().zip(shares) {
            if !share.is_empty() {
                let manifest = Box::new(manifest.clone());
                sent.push(self.send(writer, WriterWork::Rebase { manifest, groups: share }));
            }
        }
        if sent.is_empty() {
            return (own, None);
        }
        let (files, writers) = (files.clone(), Arc::clone(&self.writers));
        (own, Some(Arc::new(WritersShare { files, writers, sent })))
    }
}

/// Whether a file is in the state as the owner reaches it.
fn is_here(
    files: &StateFiles,
    delta: &SegmentFile,
    writer: impl FnOnce() -> String,
) -> Result<(), StateError> {
    let found = match files.size(&delta.name) {
        Err(error) if error.is_gone() => None,
        size => Some(size?),
    };
    if found == Some(delta.bytes) {
        return Ok(());
    }
    Err(StateError::NotShared { writer: writer(), file: files.full_name(&delta.name) })
}

fn no_reply(writers: &dyn StateWriters, writer: usize) -> StateError {
    StateError::NoReply { writer: writers.name(writer) }
}

/// The share of a rebase that writers do.
#[derive(Debug)]
struct WritersShare {
    files: StateFiles,
    writers: Arc<dyn StateWriters>,
    sent: Sent,
}

impl OtherShare for WritersShare {
    fn gather(&self, progress: &CompactionProgress) -> Result<(), StateError> {
        let mut gathered = Ok(());
        for (writer, serial) in &self.sent {
            let failed = match self.writers.reply(*writer, *serial).map(|reply| reply.done) {
                Some(WriterDone::Rebased { bases, failure }) => {
                    let name = || self.writers.name(*writer);
                    let seen = |base: &CompactionResult| {
                        base.file().map_or(Ok(()), |file| is_here(&self.files, file, name))
                    };
                    let missing = bases.iter().try_for_each(seen).err();
                    if missing.is_none() {
                        bases.into_iter().for_each(|base| progress.add(base));
                    }
                    missing.or_else(|| failure.map(|failure| failure.into_error(&name())))
                }
                _ => Some(no_reply(&*self.writers, *writer)),
            };
            gathered = gathered.and(failed.map_or(Ok(()), Err));
        }
        gathered
    }

    fn stop(&self) {
        for (writer, serial) in &self.sent {
            self.writers.send(*writer, WriterTask { serial: *serial, work: WriterWork::Stop });
        }
    }
}

impl StoredState {
    /// How other processes recognise the state of this owner.
    pub fn owner(&self) -> StateOwner {
        StateOwner { owner: self.owner, number: self.next - 1 }
    }

    /// From now on other processes write their share of each publish.
    pub fn share_with(&mut self, writers: Arc<dyn StateWriters>) {
        self.writers = Some(AskedWriters { writers, next: 0, reaching: Vec::new() });
    }
}
