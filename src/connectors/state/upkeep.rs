//! Maintenance by the owner besides publishing: starts compactions, adopts their results, removes old files;
//! ends the documents that a run reads again.

use std::sync::{Arc, Weak};

use super::compaction::{
    self, CompactionJob, CompactionProgress, CompactionResult, CompactionTask, OtherShare,
};
use super::manifest::Manifest;
use super::{Snapshot, StateError, StatePosition, StoredState};
use dupflow_core::doc::changes::{ChangeRecord, Changes};

/// A failed compaction is tried again when the deltas have grown by this fraction of the bytes that make one
/// due.
const RETRY_PART: u64 = 8;

/// Bytes of a slice that is read, and of the ends that one publish writes.
const SLICE_BYTES: usize = 1 << 20;
const ENDS_BYTES: usize = 64 << 20;

impl StoredState {
    /// Ends all documents of a snapshot except those that `keeps` accepts. Afterwards the state stands for
    /// `saved`. Until then it has more documents than those, and stands for `partial`.
    ///
    /// # Errors
    /// Those of [`Self::publish`] and [`Snapshot::read`].
    pub fn retain(
        &mut self,
        snapshot: &Snapshot,
        partial: &StatePosition,
        saved: &StatePosition,
        mut keeps: impl FnMut(ChangeRecord<'_>) -> bool,
    ) -> Result<(), StateError> {
        self.publish(partial, &[])?;
        let mut ends = Changes::default();
        snapshot.read(SLICE_BYTES, |slice| {
            slice.records().filter(|record| !keeps(*record)).for_each(|record| ends.end(record.id));
            if ends.len_bytes() < ENDS_BYTES {
                return Ok(());
            }
            self.publish(partial, &[std::mem::take(&mut ends)])
        })?;
        self.publish(saved, &[ends])
    }

    /// Removes the deltas of a publish that failed on a full disk, if it is certain that no manifest lists
    /// them. The writers still have their changes.
    pub(super) fn delete_unlisted_deltas(&mut self, error: &StateError, delta: Option<&str>) {
        let is_certain =
            error.is_full() && Manifest::read(&self.files, self.next).is_err_and(|found| found.is_gone());
        if let Some(writers) = self.writers.as_mut().filter(|_| is_certain) {
            // By an attempt that was reported as a failure: it lists the deltas of this one.
            let listed = self.kept.iter().flat_map(|kept| &kept.deltas).map(|file| &file.segment.name);
            writers.discard(listed.filter(|name| !self.base.names(name)).cloned().collect());
        }
        if let Some(delta) = delta.filter(|_| is_certain) {
            self.delete_segment(delta);
        }
    }

    /// Removes a segment that no manifest lists. Returns whether that succeeded; if not, it is tried again
    /// with the next publish.
    pub(super) fn delete_segment(&mut self, name: &str) -> bool {
        let is_deleted = self.files.delete(name).is_ok();
        if is_deleted {
            self.segments.remove(name);
        }
        is_deleted
    }

    /// Removes the files that neither of the last two manifests lists, nor a snapshot in use. `manifests` are
    /// the numbers of those present.
    pub(super) fn remove_unlisted(&mut self, manifests: &[u64]) {
        let Self { files, kept, segments, tables, snapshots, .. } = self;
        let [newest, before] = &kept[..] else { return };
        snapshots.retain(|listed| listed.strong_count() > 0);
        let in_use: Vec<_> = snapshots.iter().filter_map(Weak::upgrade).collect();
        let is_kept = |name: &str| {
            newest.names(name) || before.names(name) || in_use.iter().any(|listed| listed.names(name))
        };
        // Manifests first, so that no manifest present lists a missing file.
        let mut old = manifests.iter().filter(|number| **number < before.number);
        let cleared = old.try_for_each(|number| files.delete(&Manifest::name(*number)));
        if let Err(error) = cleared {
            tracing::warn!(error = error.in_full(), "old state is not removed yet");
            return;
        }
        let mut gone: Vec<String> = segments.extract_if(.., |name| !is_kept(name)).collect();
        if let Some(table) = &newest.table {
            gone.extend(tables.superseded(table, is_kept));
        }
        for name in gone {
            if let Err(error) = files.delete(&name) {
                tracing::warn!(error = error.in_full(), "an old state file is not removed yet");
                segments.insert(name);
            }
        }
    }

    /// Adopts the results of the thread, and waits for it if it is far behind.
    pub(super) fn catch_up(&mut self) {
        self.adopt();
        while self.rule.is_far_behind(&self.base) {
            self.start_due();
            let Some(job) = &mut self.job else { break };
            let result = job.wait();
            self.adopt();
            self.finish_job(result);
        }
    }

    fn adopt(&mut self) {
        let Some(job) = &mut self.job else { return };
        // In this order, so that results between the two calls are not lost.
        let is_finished = job.is_finished();
        let made = job.take();
        let result = if is_finished { Some(job.wait()) } else { None };
        for each in made {
            self.segments.extend(each.file().map(|file| file.name.clone()));
            each.adopt(&mut self.base);
        }
        if let Some(result) = result {
            self.finish_job(result);
        }
    }

    fn finish_job(&mut self, result: Result<(), StateError>) {
        self.job = None;
        if let Err(error) = result {
            tracing::warn!(error = error.in_full(), "state is not compacted; it is tried again later");
            self.retry_bytes = self.base.delta_bytes() + self.rule.due_bytes(&self.base) / RETRY_PART;
        }
    }

    /// Starts the thread if a compaction is due and none is running.
    pub(super) fn start_due(&mut self) {
        if self.job.is_some() || self.base.delta_bytes() < self.retry_bytes {
            return;
        }
        self.retry_bytes = 0;
        let Some(task) = self.rule.due(&self.base) else { return };
        let (task, others) = match (task, &mut self.writers) {
            (CompactionTask::Rebase(groups), Some(writers)) => {
                let (own, others) = writers.rebase(&self.files, &self.base, groups);
                (CompactionTask::Rebase(own), others)
            }
            (task, _) => (task, None),
        };
        match CompactionJob::start(&self.files, &self.base, task, &self.names, others.clone()) {
            Ok(job) => self.job = Some(job),
            Err(error) => {
                tracing::warn!(%error, "no thread to compact state");
                self.abandon(others);
            }
        }
    }

    /// Ends what other processes do of a compaction without a thread.
    fn abandon(&mut self, others: Option<Arc<dyn OtherShare>>) {
        let Some(others) = others else { return };
        others.stop();
        let progress = CompactionProgress::default();
        if let Err(error) = others.gather(&progress) {
            tracing::warn!(error = error.in_full(), "state is not compacted");
        }
        let made = progress.take();
        self.segments.extend(made.iter().filter_map(CompactionResult::file).map(|file| file.name.clone()));
    }

    /// Folds all deltas into the bases, group by group. Publishes each group twice, so that no manifest lists
    /// its old files any more: the extra disk space needed is that of one group.
    ///
    /// # Errors
    /// Any error of the store, a damaged file, or [`StateError::TakenOver`].
    pub fn compact(&mut self) -> Result<(), StateError> {
        if let Some(mut job) = self.job.take() {
            // The rest of its task is done below.
            if let Err(error) = job.stop() {
                tracing::warn!(error = error.in_full(), "state is not compacted yet");
            }
            self.job = Some(job);
            self.adopt();
        }
        self.publish_base()?;
        for group in compaction::unfolded(&self.base) {
            let (task, progress) = (CompactionTask::Rebase(vec![group]), CompactionProgress::default());
            compaction::execute(&self.files, &self.base, task, &self.names, &progress)?;
            for made in progress.take() {
                self.segments.extend(made.file().map(|file| file.name.clone()));
                made.adopt(&mut self.base);
            }
            self.publish_base()?;
        }
        Ok(())
    }

    /// Publishes the same position again, with the present files; twice.
    fn publish_base(&mut self) -> Result<(), StateError> {
        if self.base.saved.is_none() {
            return Ok(());
        }
        for _ in 0..2 {
            let base = self.base.clone();
            let manifests = self.put_next(base.saved, base.table, base.inputs, Vec::new())?;
            self.remove_unlisted(&manifests);
        }
        Ok(())
    }

    /// Compacts because the disk is full. Returns whether that succeeded.
    pub(super) fn make_room(&mut self) -> bool {
        let compacted = self.compact();
        match &compacted {
            Ok(()) => tracing::warn!(place = self.files.place(), "there was no room: state is compacted"),
            Err(error) => {
                tracing::warn!(error = error.in_full(), "there is no room, and none to compact state");
            }
        }
        compacted.is_ok()
    }
}
