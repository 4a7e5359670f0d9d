//! Compaction: deltas are folded into the bases, group by group, and many small deltas into one; on a thread
//! of its own that reads files and writes files. What it has made becomes part of the state with the next
//! publish.
//!
//! **When.** The base of a group is rewritten when the deltas over it have more bytes than it, and more than
//! an eighth of [`CompactionRule::least_bytes`]. So each byte is written about twice, and files take up to
//! twice the bytes of the documents alive, and up to once more while the bases are rewritten. Apart from
//! that, when there are more than [`CompactionRule::most_deltas`], those are merged that are not larger than
//! all newer ones together.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::{io, mem};

use parking_lot::Mutex;

use super::error::StateError;
use super::files::Files;
use super::ids::SHARDS;
use super::manifest::{GROUPS, Group, Manifest, shards_of};
use super::segment::{SegmentFile, Writer};
use super::snapshot::{Ended, Stack};

/// A publish waits for the thread when the deltas have so many times the bytes of the bases.
const FAR_BEHIND: u64 = 4;

/// When state is compacted.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionRule {
    /// Deltas of so many bytes, inclusive, are not worth the rewriting of the bases; by default 16 MiB.
    pub least_bytes: u64,
    /// So many deltas, inclusive, are left as they are; by default 256. More make a manifest long and a
    /// restart slow.
    pub most_deltas: usize,
}

impl Default for CompactionRule {
    fn default() -> Self {
        Self { least_bytes: 16 << 20, most_deltas: 256 }
    }
}

/// What is to be done.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum Task {
    /// To write a new base of each of these groups.
    Rebase(Vec<u8>),
    /// To merge the deltas of these sequence numbers, both inclusive.
    Merge(u64, u64),
}

/// What was made.
#[derive(Debug)]
pub(super) enum Made {
    Base(u8, Group),
    Merged { first: u64, last: u64, segment: Option<SegmentFile> },
}

impl Made {
    /// The file, if there is one.
    pub(super) fn file(&self) -> Option<&SegmentFile> {
        match self {
            Self::Base(_, group) => group.base.as_ref(),
            Self::Merged { segment, .. } => segment.as_ref(),
        }
    }

    /// It becomes part of the state.
    pub(super) fn adopt(self, manifest: &mut Manifest) {
        match self {
            Self::Base(group, base) => manifest.rebase(group, base),
            Self::Merged { first, last, segment } => manifest.merge(first, last, segment),
        }
    }
}

impl CompactionRule {
    /// What a manifest needs, if anything.
    pub(super) fn due(&self, manifest: &Manifest) -> Option<Task> {
        let is_due = |group: &u8| {
            let base = manifest.groups[usize::from(*group)].base.as_ref().map_or(0, |base| base.bytes);
            let over: u64 = manifest.deltas_of(*group).map(|delta| delta.segment.bytes).sum();
            // Ids are spread evenly over the groups.
            over / u64::from(GROUPS) > base.max(self.least_bytes / u64::from(GROUPS))
        };
        let groups: Vec<u8> = (0..GROUPS).filter(is_due).collect();
        if !groups.is_empty() {
            return Some(Task::Rebase(groups));
        }
        if manifest.deltas.len() <= self.most_deltas {
            return None;
        }
        let mut newer = manifest.delta_bytes();
        let first = manifest.deltas.iter().find(|delta| {
            newer -= delta.segment.bytes;
            delta.segment.bytes <= newer
        })?;
        Some(Task::Merge(first.first, manifest.deltas.last()?.last))
    }

    /// Bytes that deltas have, about, when all bases are to be rewritten.
    pub(super) fn due_bytes(&self, manifest: &Manifest) -> u64 {
        manifest.base_bytes().max(self.least_bytes)
    }

    /// Whether a publish should wait for the thread.
    pub(super) fn is_far_behind(&self, manifest: &Manifest) -> bool {
        manifest.delta_bytes() > FAR_BEHIND * self.due_bytes(manifest)
    }
}

/// The groups that have a delta over their base.
pub(super) fn unfolded(manifest: &Manifest) -> Vec<u8> {
    (0..GROUPS).filter(|group| manifest.deltas_of(*group).next().is_some()).collect()
}

/// Does a task, and hands over each file as it is made. `name` gives names of files, none twice.
pub(super) fn carry_out(
    files: &Files,
    manifest: &Manifest,
    task: Task,
    is_stopped: &AtomicBool,
    name: impl Fn(&str) -> String,
    mut made: impl FnMut(Made),
) -> Result<(), StateError> {
    match task {
        Task::Rebase(groups) => {
            let mut stack = Stack::open_deltas(files, manifest)?;
            let through = manifest.deltas.last().map_or(0, |delta| delta.last);
            for group in groups {
                stack.open_base(files, manifest, group)?;
                let mut writer = Writer::new(files, name("base"))?;
                for shard in shards_of(group) {
                    if is_stopped.load(Ordering::Relaxed) {
                        return Ok(());
                    }
                    stack.each(shard, Ended::PassOver, |record| writer.record(shard, record))?;
                }
                made(Made::Base(group, Group { through, base: writer.finish()? }));
            }
        }
        Task::Merge(first, last) => {
            let mut merged = Manifest::empty();
            let within = manifest.deltas.iter().filter(|delta| delta.first >= first && delta.last <= last);
            merged.deltas = within.cloned().collect();
            let mut stack = Stack::open_deltas(files, &merged)?;
            let mut writer = Writer::new(files, name("delta"))?;
            for shard in 0..SHARDS {
                if is_stopped.load(Ordering::Relaxed) {
                    return Ok(());
                }
                stack.each(shard, Ended::Keep, |record| writer.record(shard, record))?;
            }
            made(Made::Merged { first, last, segment: writer.finish()? });
        }
    }
    Ok(())
}

/// A task that a thread carries out. Stopped and waited for when it is dropped.
#[derive(Debug)]
pub(super) struct Job {
    made: Arc<Mutex<Vec<Made>>>,
    is_stopped: Arc<AtomicBool>,
    thread: Option<JoinHandle<Result<(), StateError>>>,
}

impl Job {
    /// Starts a thread of low priority.
    pub(super) fn start(
        files: &Files,
        manifest: &Manifest,
        task: Task,
        name: impl Fn(&str) -> String + Send + 'static,
    ) -> io::Result<Self> {
        let made = Arc::new(Mutex::new(Vec::new()));
        let is_stopped = Arc::new(AtomicBool::new(false));
        let (files, manifest) = (files.clone(), manifest.clone());
        let (make, stop) = (Arc::clone(&made), Arc::clone(&is_stopped));
        let thread = Builder::new().name("state-compaction".to_owned()).spawn(move || {
            yield_to_others();
            let push = |file| make.lock().push(file);
            carry_out(&files, &manifest, task, &stop, name, push)
        })?;
        Ok(Self { made, is_stopped, thread: Some(thread) })
    }

    /// Takes what was made since the last time.
    pub(super) fn take(&self) -> Vec<Made> {
        mem::take(&mut self.made.lock())
    }

    /// Whether the thread has ended.
    pub(super) fn is_finished(&self) -> bool {
        self.thread.as_ref().is_none_or(JoinHandle::is_finished)
    }

    /// Waits for the thread.
    pub(super) fn wait(&mut self) -> Result<(), StateError> {
        let Some(thread) = self.thread.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
    }

    /// Ends the thread soon, and waits for it.
    pub(super) fn stop(&mut self) -> Result<(), StateError> {
        self.is_stopped.store(true, Ordering::Relaxed);
        self.wait()
    }
}

impl Drop for Job {
    fn drop(&mut self) {
        self.is_stopped.store(true, Ordering::Relaxed);
        if let Some(thread) = self.thread.take() {
            // Its failure has nobody to be told to.
            drop(thread.join());
        }
    }
}

/// Gives this thread a lower priority than the workers, where a thread can have its own.
fn yield_to_others() {
    #[cfg(target_os = "linux")]
    // Not allowed, it does its work nevertheless.
    rustix::process::setpriority_process(None, 10).unwrap_or(());
}

#[cfg(test)]
mod tests {
    use super::super::manifest::Delta;
    use super::*;

    const RULE: CompactionRule = CompactionRule { least_bytes: 800, most_deltas: 3 };

    fn segment(bytes: u64) -> SegmentFile {
        SegmentFile { name: String::new(), bytes, footer: 0, checksum: 0, records: 0, ended: 0 }
    }

    /// With bases of these bytes, which hold changes up to 0, and deltas 1, 2, ...
    fn manifest(bases: [u64; 8], deltas: &[u64]) -> Manifest {
        let groups = bases.map(|bytes| Group { through: 0, base: (bytes > 0).then(|| segment(bytes)) });
        let deltas =
            (1..).zip(deltas).map(|(n, bytes)| Delta { first: n, last: n, segment: segment(*bytes) });
        Manifest { groups, deltas: deltas.collect(), ..Manifest::empty() }
    }

    #[test]
    fn a_base_is_rewritten_when_more_bytes_lie_over_it() {
        let all: Vec<u8> = (0..8).collect();
        assert_eq!(RULE.due(&manifest([0; 8], &[800])), None);
        assert_eq!(RULE.due(&manifest([0; 8], &[400, 408])), Some(Task::Rebase(all)));
        let uneven = [200, 150, 0, 0, 300, 300, 300, 300];
        assert_eq!(RULE.due(&manifest(uneven, &[1200])), Some(Task::Rebase(vec![2, 3])));
        let mut folded = manifest(uneven, &[1200, 400]);
        folded.rebase(2, Group { through: 1, base: None });
        assert_eq!(RULE.due(&folded), Some(Task::Rebase(vec![1, 3])));
        assert_eq!(unfolded(&folded), [0, 1, 2, 3, 4, 5, 6, 7]);
        folded.rebase(2, Group { through: 2, base: None });
        assert_eq!(unfolded(&folded), [0, 1, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn many_deltas_are_merged_but_for_large_old_ones() {
        assert_eq!(RULE.due(&manifest([500; 8], &[10, 10, 10])), None);
        assert_eq!(RULE.due(&manifest([500; 8], &[10, 10, 10, 10])), Some(Task::Merge(1, 4)));
        assert_eq!(RULE.due(&manifest([500; 8], &[90, 10, 12, 1])), Some(Task::Merge(2, 4)));
        // Each larger than all newer ones together: merging the two newest would go on for ever.
        assert_eq!(RULE.due(&manifest([500; 8], &[80, 40, 20, 10])), None);
    }

    #[test]
    fn far_behind_is_more_than_four_times() {
        assert!(!RULE.is_far_behind(&manifest([0; 8], &[3200])));
        assert!(RULE.is_far_behind(&manifest([0; 8], &[3200, 1])));
        assert!(!RULE.is_far_behind(&manifest([200; 8], &[6400])));
    }
}
