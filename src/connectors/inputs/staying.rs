//! Keeps a run alive after its input has ended, until it is stopped.
//!
//! For inputs that end, in runs with a page or with queries. When all readers have finished, the open epoch
//! is cut, so that everything that was read closes. Then a callback gets that epoch, and the run continues
//! without events.

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use crate::formats::InputProgress;
use crate::intake::{
    Announce, AsOf, BadRecords, ChangedRecord, EpochLimits, InputLog, OffsetGap, PastInputs, Queue,
    Resumption, Source, SourceError, SourceInfo, SourceReader, TableLog, Texts,
};
use dupflow_core::text::TextColumns;
use dupflow_core::time::{Clock, Epoch, LastRecord, Offsets};
use dupflow_run::backlog::Backlog;
use dupflow_run::origins::Origins;

/// Called with the last epoch after everything has been read. That epoch closes soon after, not before.
type AllRead = Box<dyn FnOnce(Epoch) + Send>;

/// A source whose run continues until it is stopped.
pub struct Staying {
    source: Box<dyn Source>,
    all_read: AllRead,
}

impl Staying {
    /// Reads `source`, and then calls `all_read` with the last epoch that has records of it.
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

    fn inspect(&mut self) -> Result<SourceInfo, SourceError> {
        self.source.inspect()
    }

    fn resume(&mut self, past: &PastInputs) -> Result<Resumption, SourceError> {
        self.source.resume(past)
    }

    fn input_log(&self) -> Option<Arc<InputLog>> {
        self.source.input_log()
    }

    fn table_log(&self) -> Option<Arc<TableLog>> {
        self.source.table_log()
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

    fn begin_left(&mut self, from: &Offsets) -> Result<(Offsets, Vec<OffsetGap>), SourceError> {
        self.source.begin_left(from)
    }

    fn changed(
        &mut self,
        last: &BTreeMap<u32, LastRecord>,
        may_lack: bool,
    ) -> Result<Option<ChangedRecord>, SourceError> {
        self.source.changed(last, may_lack)
    }

    fn as_of(&self) -> Option<Arc<AsOf>> {
        self.source.as_of()
    }

    fn origins(&self) -> Option<Arc<Origins>> {
        self.source.origins()
    }

    fn texts(&self, columns: &TextColumns) -> Option<Box<dyn Texts>> {
        self.source.texts(columns)
    }

    fn readers(self: Box<Self>, begin: &Offsets) -> Vec<Box<dyn SourceReader>> {
        let Self { source, all_read } = *self;
        let mut readers = source.readers(begin);
        readers.push(Box::new(Stays(Some(all_read))));
        readers
    }
}

/// A reader without input that ends when the run is stopped.
struct Stays(Option<AllRead>);

impl SourceReader for Stays {
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
    use super::super::files::Files;
    use super::super::input::Input;
    use super::*;
    use crate::intake::EpochRule;

    #[test]
    fn staying_reports_the_progress_of_its_source() {
        let folder = tempfile::tempdir().unwrap();
        let feed = folder.path().join("feed.jsonl");
        std::fs::write(&feed, "{\"id\":\"a\",\"text\":\"b\"}\n").unwrap();
        let files = Files::new(vec![Input::at(&feed)], EpochRule::default(), Vec::new());
        let total = files.progress().and_then(|progress| progress.total());
        let staying = Staying::new(Box::new(files), |_| {});
        assert_eq!((total, staying.progress().and_then(|progress| progress.total())), (Some(22), Some(22)));
    }
}
