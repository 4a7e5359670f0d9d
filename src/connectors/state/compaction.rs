//! Compaction: folds deltas into the bases, group by group, and merges many small deltas into one. A
//! background thread reads and writes the files. The next publish makes the new files part of the state.
//!
//! **When.** The base of a group is rewritten when the deltas of its shards have more bytes than the base,
//! and more than an eighth of [`CompactionRule::least_bytes`]. So each byte is written about twice, and files
//! take up to twice the bytes of the live documents, and up to three times while bases are rewritten.
//! Independently, when there are more than [`CompactionRule::most_deltas`], those are merged that are not
//! larger than all newer ones together.

use std::fmt::Debug;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{Builder, JoinHandle};
use std::{io, mem};

use parking_lot::Mutex;
use serde::{Deserialize, Serialize};

use super::error::StateError;
use super::files::{SegmentNames, StateFiles};
use super::ids::{IdSet, SHARDS};
use super::manifest::{GROUPS, Manifest, ShardGroup, shards_of};
use super::segment::{SegmentFile, SegmentWriter};
use super::snapshot::{DeletedRecords, OpenSegments};
use dupflow_core::doc::changes::ChangeRecord;

/// A publish waits for the thread when the deltas have more than this many times the bytes of the bases.
const FAR_BEHIND: u64 = 4;

/// Thresholds of compaction.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CompactionRule {
    /// Deltas of up to this many bytes, inclusive, do not justify rewriting the bases. Default: 16 MiB.
    pub least_bytes: u64,
    /// Up to this many deltas, inclusive, are left as they are. More make a manifest long and a restart slow.
    /// A commit of several processes has one of each. Default: 256.
    pub most_deltas: usize,
}

impl Default for CompactionRule {
    fn default() -> Self {
        Self { least_bytes: 16 << 20, most_deltas: 256 }
    }
}

/// A task of the thread.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) enum CompactionTask {
    /// Write a new base of each of these groups.
    Rebase(Vec<u8>),
    /// Merge the deltas of these sequence numbers, both inclusive.
    Merge(u64, u64),
}

/// A result of a task.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub(super) enum CompactionResult {
    Base(u8, ShardGroup),
    Merged { first: u64, last: u64, segment: Option<SegmentFile> },
}

impl CompactionResult {
    /// The file written, if there is one.
    pub(super) fn file(&self) -> Option<&SegmentFile> {
        match self {
            Self::Base(_, group) => group.base.as_ref(),
            Self::Merged { segment, .. } => segment.as_ref(),
        }
    }

    /// Makes the result part of the state.
    pub(super) fn adopt(self, manifest: &mut Manifest) {
        match self {
            Self::Base(group, base) => manifest.rebase(group, base),
            Self::Merged { first, last, segment } => manifest.merge(first, last, segment),
        }
    }
}

impl CompactionRule {
    /// The task that a manifest needs, if any.
    pub(super) fn due(&self, manifest: &Manifest) -> Option<CompactionTask> {
        let is_due = |group: &u8| {
            let base = manifest.groups[usize::from(*group)].base.as_ref().map_or(0, |base| base.bytes);
            let over: u64 = manifest.deltas_of(*group).map(|delta| delta.segment.bytes).sum();
            // Ids are spread evenly over the groups.
            over / u64::from(GROUPS) > base.max(self.least_bytes / u64::from(GROUPS))
        };
        let groups: Vec<u8> = (0..GROUPS).filter(is_due).collect();
        if !groups.is_empty() {
            return Some(CompactionTask::Rebase(groups));
        }
        if manifest.deltas.len() <= self.most_deltas {
            return None;
        }
        let mut newer = manifest.delta_bytes();
        let mut commits = manifest.deltas.chunk_by(|a, b| a.last == b.last);
        let first = commits.find(|commit| {
            let bytes = commit.iter().map(|delta| delta.segment.bytes).sum::<u64>();
            newer -= bytes;
            bytes <= newer
        })?;
        Some(CompactionTask::Merge(first[0].first, manifest.deltas.last()?.last))
    }

    /// About how many bytes of deltas make rewriting all bases due.
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

/// Executes a task, until it is stopped. Each file is a result as soon as it is written.
pub(super) fn execute(
    files: &StateFiles,
    manifest: &Manifest,
    task: CompactionTask,
    names: &SegmentNames,
    progress: &CompactionProgress,
) -> Result<(), StateError> {
    let mut seen = IdSet::default();
    match task {
        CompactionTask::Rebase(groups) => {
            let mut segments = OpenSegments::open(files, manifest, [])?;
            let through = manifest.deltas.last().map_or(0, |delta| delta.last);
            for group in groups {
                segments.open_base(files, manifest, group)?;
                let mut writer = SegmentWriter::new(files, names.next("base"))?;
                for shard in shards_of(group) {
                    if progress.is_stopped() {
                        return Ok(());
                    }
                    let write = |record: ChangeRecord<'_>| writer.record(shard, record);
                    segments.each(shard, DeletedRecords::Skip, &mut seen, write)?;
                }
                progress.add(CompactionResult::Base(group, ShardGroup { through, base: writer.finish()? }));
            }
        }
        CompactionTask::Merge(first, last) => {
            let mut merged = Manifest::empty();
            let within = manifest.deltas.iter().filter(|delta| delta.first >= first && delta.last <= last);
            merged.deltas = within.cloned().collect();
            let segments = OpenSegments::open(files, &merged, [])?;
            let mut writer = SegmentWriter::new(files, names.next("delta"))?;
            for shard in 0..SHARDS {
                if progress.is_stopped() {
                    return Ok(());
                }
                let write = |record: ChangeRecord<'_>| writer.record(shard, record);
                segments.each(shard, DeletedRecords::Keep, &mut seen, write)?;
            }
            progress.add(CompactionResult::Merged { first, last, segment: writer.finish()? });
        }
    }
    Ok(())
}

/// What a compaction has written so far, and whether it is to stop.
#[derive(Debug, Default)]
pub(super) struct CompactionProgress {
    made: Mutex<Vec<CompactionResult>>,
    is_stopped: AtomicBool,
}

impl CompactionProgress {
    pub(super) fn add(&self, result: CompactionResult) {
        self.made.lock().push(result);
    }

    /// Takes the results since the last call.
    pub(super) fn take(&self) -> Vec<CompactionResult> {
        mem::take(&mut self.made.lock())
    }

    fn is_stopped(&self) -> bool {
        self.is_stopped.load(Ordering::Relaxed)
    }
}

/// The share of a task that other processes do.
pub(super) trait OtherShare: Debug + Send + Sync {
    /// Waits for their results.
    fn gather(&self, progress: &CompactionProgress) -> Result<(), StateError>;

    /// Lets them stop at the next shard.
    fn stop(&self);
}

/// A compaction on a thread of low priority, which waits for what other processes do of it. Dropping it stops
/// the thread and waits for it.
#[derive(Debug)]
pub(super) struct CompactionJob {
    progress: Arc<CompactionProgress>,
    thread: Option<JoinHandle<Result<(), StateError>>>,
    others_share: Option<Arc<dyn OtherShare>>,
}

impl CompactionJob {
    /// Starts the thread.
    pub(super) fn spawn(
        work: impl FnOnce(&CompactionProgress) -> Result<(), StateError> + Send + 'static,
    ) -> io::Result<Self> {
        let progress = Arc::<CompactionProgress>::default();
        let own = Arc::clone(&progress);
        let thread = Builder::new().name("state-compaction".to_owned()).spawn(move || {
            lower_priority();
            work(&own)
        })?;
        Ok(Self { progress, thread: Some(thread), others_share: None })
    }

    /// Starts a task, of which other processes may do a part.
    pub(super) fn start(
        files: &StateFiles,
        manifest: &Manifest,
        task: CompactionTask,
        names: &SegmentNames,
        others_share: Option<Arc<dyn OtherShare>>,
    ) -> io::Result<Self> {
        let (files, manifest, names, others) =
            (files.clone(), manifest.clone(), names.clone(), others_share.clone());
        let mut job = Self::spawn(move |progress| {
            let own = execute(&files, &manifest, task, &names, progress);
            let theirs = others.map_or(Ok(()), |others| others.gather(progress));
            own.and(theirs)
        })?;
        job.others_share = others_share;
        Ok(job)
    }

    /// Takes the results since the last call.
    pub(super) fn take(&self) -> Vec<CompactionResult> {
        self.progress.take()
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

    /// Lets the thread, and other processes, stop at the next shard.
    pub(super) fn request_stop(&self) {
        self.progress.is_stopped.store(true, Ordering::Relaxed);
        self.others_share.iter().for_each(|others_share| others_share.stop());
    }

    /// Stops the thread at the next shard, and waits for it.
    pub(super) fn stop(&mut self) -> Result<(), StateError> {
        self.request_stop();
        self.wait()
    }
}

impl Drop for CompactionJob {
    fn drop(&mut self) {
        if let Some(thread) = self.thread.take() {
            self.request_stop();
            // No caller can receive its failure here.
            drop(thread.join());
        }
    }
}

/// Lowers the priority of this thread below that of the workers, on systems with a priority for each thread.
fn lower_priority() {
    #[cfg(target_os = "linux")]
    // If that is not allowed, the thread works at normal priority.
    rustix::process::setpriority_process(None, 10).unwrap_or(());
}

#[cfg(test)]
mod tests {
    use super::super::manifest::DeltaFile;
    use super::*;

    const RULE: CompactionRule = CompactionRule { least_bytes: 800, most_deltas: 3 };

    fn segment(bytes: u64) -> SegmentFile {
        SegmentFile { name: String::new(), bytes, footer: 0, checksum: 0, records: 0, ended: 0 }
    }

    /// A manifest with bases of these bytes, which hold changes through 0, and with deltas 1, 2, ...
    fn manifest(bases: [u64; 8], deltas: &[u64]) -> Manifest {
        let groups = bases.map(|bytes| ShardGroup { through: 0, base: (bytes > 0).then(|| segment(bytes)) });
        let deltas =
            (1..).zip(deltas).map(|(n, bytes)| DeltaFile { first: n, last: n, segment: segment(*bytes) });
        Manifest { groups, deltas: deltas.collect(), ..Manifest::empty() }
    }

    #[test]
    fn a_base_is_rewritten_when_its_deltas_are_larger() {
        let all: Vec<u8> = (0..8).collect();
        assert_eq!(RULE.due(&manifest([0; 8], &[800])), None);
        assert_eq!(RULE.due(&manifest([0; 8], &[400, 408])), Some(CompactionTask::Rebase(all)));
        let uneven = [200, 150, 0, 0, 300, 300, 300, 300];
        assert_eq!(RULE.due(&manifest(uneven, &[1200])), Some(CompactionTask::Rebase(vec![2, 3])));
        let mut folded = manifest(uneven, &[1200, 400]);
        folded.rebase(2, ShardGroup { through: 1, base: None });
        assert_eq!(RULE.due(&folded), Some(CompactionTask::Rebase(vec![1, 3])));
        assert_eq!(unfolded(&folded), [0, 1, 2, 3, 4, 5, 6, 7]);
        folded.rebase(2, ShardGroup { through: 2, base: None });
        assert_eq!(unfolded(&folded), [0, 1, 3, 4, 5, 6, 7]);
    }

    #[test]
    fn many_deltas_are_merged_except_large_old_ones() {
        assert_eq!(RULE.due(&manifest([500; 8], &[10, 10, 10])), None);
        assert_eq!(RULE.due(&manifest([500; 8], &[10, 10, 10, 10])), Some(CompactionTask::Merge(1, 4)));
        assert_eq!(RULE.due(&manifest([500; 8], &[90, 10, 12, 1])), Some(CompactionTask::Merge(2, 4)));
        // Each delta is larger than all newer ones together. Merging the two newest would not end.
        assert_eq!(RULE.due(&manifest([500; 8], &[80, 40, 20, 10])), None);
    }

    #[test]
    fn far_behind_is_more_than_four_times() {
        assert!(!RULE.is_far_behind(&manifest([0; 8], &[3200])));
        assert!(RULE.is_far_behind(&manifest([0; 8], &[3200, 1])));
        assert!(!RULE.is_far_behind(&manifest([200; 8], &[6400])));
    }
}
