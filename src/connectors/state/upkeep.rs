//! What an owner does beside publishing: it has the thread compact, takes over what that has made, and
//! removes what is old.

use std::io;
use std::sync::atomic::AtomicBool;

use super::compaction::{self, Job, Task};
use super::manifest::Manifest;
use super::{State, StateError};

/// A compaction that has failed is tried again when the deltas have grown by this part of what makes it due.
const RETRY_PART: u64 = 8;

impl State {
    /// Removes the delta of a publish that had no room, if it is certain that no manifest names it.
    pub(super) fn withdraw(&mut self, error: &StateError, delta: Option<&str>) {
        let is_certain =
            is_full(error) && Manifest::read(&self.files, self.next).is_err_and(|found| found.is_gone());
        if let Some(delta) = delta.filter(|_| is_certain)
            && self.files.delete(delta).is_ok()
        {
            self.segments.remove(delta);
        }
    }

    /// Removes what neither of the last two manifests names; `manifests` are there.
    pub(super) fn clear_away(&mut self, manifests: &[u64]) {
        let Self { files, kept, segments, tables, .. } = self;
        let [newest, before] = &kept[..] else { return };
        let is_kept = |name: &str| newest.names(name) || before.names(name);
        // Manifests first: none that is there names a file that is not.
        let mut old = manifests.iter().filter(|number| **number < before.number);
        let cleared = old.try_for_each(|number| files.delete(&Manifest::name(*number)));
        if let Err(error) = cleared {
            tracing::warn!(%error, "old state is not removed yet");
            return;
        }
        let mut gone: Vec<String> = segments.extract_if(.., |name| !is_kept(name)).collect();
        if let Some(table) = &newest.table {
            gone.extend(tables.superseded(table, is_kept));
        }
        for name in gone {
            if let Err(error) = files.delete(&name) {
                tracing::warn!(%error, "an old state file is not removed yet");
                segments.insert(name);
            }
        }
    }

    /// Makes what the thread has made part of the state, and waits for it if it is far behind.
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
        // In this order: what is made while it is asked is taken.
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
            tracing::warn!(%error, "state is not compacted; it is tried again later");
            self.retry_bytes = self.base.delta_bytes() + self.rule.due_bytes(&self.base) / RETRY_PART;
        }
    }

    /// Starts the thread if there is work and it has none.
    pub(super) fn start_due(&mut self) {
        if self.job.is_some() || self.base.delta_bytes() < self.retry_bytes {
            return;
        }
        self.retry_bytes = 0;
        let Some(task) = self.rule.due(&self.base) else { return };
        match Job::start(&self.files, &self.base, task, self.new_name()) {
            Ok(job) => self.job = Some(job),
            Err(error) => tracing::warn!(%error, "no thread to compact state"),
        }
    }

    /// Folds all deltas into the bases, group by group, and publishes each twice, so that no manifest names
    /// the files before: it takes no more room than a group has.
    ///
    /// # Errors
    /// What the store says, what is damaged, or [`StateError::TakenOver`].
    pub fn compact(&mut self) -> Result<(), StateError> {
        if let Some(mut job) = self.job.take() {
            // What it has not made is made below.
            drop(job.stop());
            self.job = Some(job);
            self.adopt();
        }
        self.publish_base()?;
        for group in compaction::unfolded(&self.base) {
            let mut made = None;
            let (task, go_on) = (Task::Rebase(vec![group]), AtomicBool::new(false));
            let keep = |file| made = Some(file);
            compaction::carry_out(&self.files, &self.base, task, &go_on, self.new_name(), keep)?;
            if let Some(made) = made {
                self.segments.extend(made.file().map(|file| file.name.clone()));
                made.adopt(&mut self.base);
            }
            self.publish_base()?;
        }
        Ok(())
    }

    /// Publishes what is published already, with the files that it is in now; twice.
    fn publish_base(&mut self) -> Result<(), StateError> {
        if self.base.saved.is_none() {
            return Ok(());
        }
        for _ in 0..2 {
            let base = self.base.clone();
            let manifests = self.put_next(base.saved, base.table, None)?;
            self.clear_away(&manifests);
        }
        Ok(())
    }

    /// Compacts, because there is no room; whether that succeeded.
    pub(super) fn make_room(&mut self) -> bool {
        let compacted = self.compact();
        match &compacted {
            Ok(()) => tracing::warn!(place = self.files.place(), "there was no room: state is compacted"),
            Err(error) => tracing::warn!(%error, "there is no room, and none to compact state"),
        }
        compacted.is_ok()
    }
}

/// Whether there was no room.
pub(super) fn is_full(error: &StateError) -> bool {
    let StateError::Io { source, .. } = error else { return false };
    matches!(source.kind(), io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded)
}
