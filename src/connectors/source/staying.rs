//! A source that stays: a run of it does not end with its input, but when it is stopped.
//!
//! For inputs that end, in runs that somebody watches or asks. When all has been read, the open epoch is cut,
//! so that all of it closes; then somebody is told, and the run goes on without events.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use super::bad::BadRecords;
use super::queue::{EpochLimits, Queue};
use super::{Announce, AsOf, Gap, InputProgress, Look, Reader, Source, SourceError, Texts};
use dupflow_core::run::backlog::Backlog;
use dupflow_core::run::origins::Origins;
use dupflow_core::time::{Clock, Epoch, Offsets};

/// Told the last epoch, once all has been read; the epoch is closed soon after, not yet.
type AllRead = Box<dyn FnOnce(Epoch) + Send>;

/// A source whose run stays until it is stopped.
pub struct Staying {
    source: Box<dyn Source>,
    all_read: AllRead,
}

impl Staying {
    /// Reads `source`, and then tells `all_read` the last epoch in which there is anything of it.
    pub fn new(source: Box<dyn Source>, all_read: impl FnOnce(Epoch) + Send + 'static) -> Self {
        Self { source, all_read: Box::new(all_read) }
    }
}

impl Source for Staying {
    fn epochs(&self) -> EpochLimits {
        self.source.epochs()
    }

    fn cuts_alike(&self) -> bool {
        self.source.cuts_alike()
    }

    fn look(&mut self) -> Result<Look, SourceError> {
        self.source.look()
    }

    fn ids_move(&self) -> bool {
        self.source.ids_move()
    }

    fn backlog(&self) -> Option<Arc<Backlog>> {
        self.source.backlog()
    }

    fn announcer(&self) -> Option<Announce> {
        self.source.announcer()
    }

    fn begin(&mut self, from: Option<&Offsets>) -> Result<Offsets, SourceError> {
        self.source.begin(from)
    }

    fn progress(&self) -> Option<Arc<InputProgress>> {
        self.source.progress()
    }

    fn begin_left(&mut self, from: &Offsets) -> Result<(Offsets, Vec<Gap>), SourceError> {
        self.source.begin_left(from)
    }

    fn as_of(&self) -> Option<Arc<AsOf>> {
        self.source.as_of()
    }

    fn origins(&self) -> Option<Arc<Origins>> {
        self.source.origins()
    }

    fn texts(&self, fields: &[String]) -> Option<Box<dyn Texts>> {
        self.source.texts(fields)
    }

    fn readers(self: Box<Self>, begin: &Offsets) -> Vec<Box<dyn Reader>> {
        let Self { source, all_read } = *self;
        let mut readers = source.readers(begin);
        readers.push(Box::new(Stays(Some(all_read))));
        readers
    }
}

/// Reads nothing, and ends when the run is stopped.
struct Stays(Option<AllRead>);

impl Reader for Stays {
    fn read(&mut self, queue: &Queue, _: &BadRecords, _: &dyn Clock) -> Result<(), SourceError> {
        if let Ok(last) = queue.stay() {
            self.0.take().into_iter().for_each(|all_read| all_read(last));
            while queue.pause(Duration::MAX).is_ok() {}
        }
        Ok(())
    }
}

impl fmt::Debug for Staying {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Staying").field("source", &self.source).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::source::{EpochRule, Files, Input};

    #[test]
    fn what_stays_is_as_far_as_its_source() {
        let folder = tempfile::tempdir().unwrap();
        let feed = folder.path().join("feed.jsonl");
        std::fs::write(&feed, "{\"id\":\"a\",\"text\":\"b\"}\n").unwrap();
        let files = Files::of(vec![Input::at(&feed)], EpochRule::default(), Vec::new());
        let total = files.progress().and_then(|progress| progress.total());
        let staying = Staying::new(Box::new(files), |_| {});
        assert_eq!((total, staying.progress().and_then(|progress| progress.total())), (Some(22), Some(22)));
    }
}
