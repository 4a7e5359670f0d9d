//! What is written once a run has ended and has met its demands; among it, a sample of rejected candidates.

use std::fmt;
use std::io;
use std::num::NonZeroUsize;
use std::thread;

use dupflow_connectors::rewrite::{CopiedDocuments, DocumentsCopy};
use dupflow_connectors::sinks::answers::RejectedRow;
use dupflow_connectors::sinks::{
    ItemCounts, ItemCountsSlot, ListCounts, ListCountsSlot, Publication, RowWriter,
};
use dupflow_core::detect::{CandidateSurvey, RejectedCounts, RejectedSample};
use dupflow_engine::dataflow::Stages;
use serde::Serialize;

/// What is written once a run has ended.
#[derive(Debug)]
pub enum EndOutput {
    /// An output whose rows were held back.
    Held(Publication),
    /// A sample of the candidates that are rejected.
    Rejected(RejectedOutput),
    /// The records of documents, which are read once more.
    Documents(Box<DocumentsCopy>),
    /// Any of them, or one that was written during the run, and the counts of items beside it.
    WithItems(Option<Box<EndOutput>>, ItemCountsSlot),
    /// Any of them that is a list, and its counts.
    Listed(Box<EndOutput>, ListCountsSlot),
}

/// What is known of an output that was written once a run had ended.
#[derive(Debug, Default)]
pub(in crate::pipeline) struct EndCounts {
    pub(in crate::pipeline) rejected: Option<RejectedSummary>,
    pub(in crate::pipeline) copied: Option<CopiedDocuments>,
    pub(in crate::pipeline) items: Option<ItemCounts>,
    pub(in crate::pipeline) listed: Option<ListCounts>,
}

impl EndCounts {
    /// The same with the counts of the list of another output, if this one is none.
    pub(in crate::pipeline) fn or(self, other: Self) -> Self {
        Self { listed: self.listed.or(other.listed), ..self }
    }
}

/// The output of a sample of rejected candidates.
pub struct RejectedOutput {
    /// The size of the sample.
    pub(in crate::pipeline) most: NonZeroUsize,
    /// The least similarity of an accepted pair, inclusive.
    pub(in crate::pipeline) threshold: f64,
    /// The rows, which are held back.
    pub(in crate::pipeline) rows: Box<dyn RowWriter + Send>,
    pub(in crate::pipeline) publication: Publication,
}

/// What is known of the candidates at the end of a run.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct RejectedSummary {
    /// The numbers of candidates.
    #[serde(flatten)]
    pub counts: RejectedCounts,
    /// The rejected candidates that were written.
    pub written: u64,
}

impl EndOutput {
    /// Why the output would say nothing, though the run has not failed.
    pub(in crate::pipeline) fn unmet(&self) -> Option<String> {
        let Self::WithItems(_, slot) = self else { return None };
        let slot = slot.lock();
        let items: u64 = slot.iter().flat_map(|counts| &counts.benchmarks).map(|of| of.items).sum();
        (items == 0).then(|| "--against holds no item, so nothing was looked for".to_owned())
    }

    /// Writes and publishes the output of a run whose workers have ended. That its reader has closed it is no
    /// failure if it `is_alone`.
    pub(in crate::pipeline) fn write(
        self,
        stages: &Stages,
        threads: usize,
        is_alone: bool,
    ) -> io::Result<EndCounts> {
        let is_closed = |error: &io::Error| is_alone && error.kind() == io::ErrorKind::BrokenPipe;
        let mut counts = EndCounts::default();
        let publication = match self {
            Self::Held(publication) => publication,
            Self::Rejected(output) => {
                let (publication, summary) = output.write(stages, threads)?;
                counts.rejected = Some(summary);
                publication
            }
            Self::Documents(copy) => {
                counts.copied = match copy.write() {
                    Err(error) if is_closed(&error) => None,
                    copied => Some(copied?),
                };
                return Ok(counts);
            }
            Self::Listed(output, slot) => {
                let written = output.write(stages, threads, is_alone)?;
                return Ok(EndCounts { listed: slot.lock().take(), ..written });
            }
            Self::WithItems(output, slot) => {
                let output = output.map(|output| output.write(stages, threads, is_alone)).transpose()?;
                let output = output.unwrap_or_default();
                // Each page is in a pair with one item, which stays.
                let rule = "the item of the greatest share".to_owned();
                let listed = output.listed.map(|listed| ListCounts { rule, ..listed });
                return Ok(EndCounts { items: slot.lock().take(), listed, ..output });
            }
        };
        match publication.publish() {
            Err(error) if is_closed(&error) => {}
            published => published?,
        }
        Ok(counts)
    }
}

impl RejectedOutput {
    fn write(mut self, stages: &Stages, threads: usize) -> io::Result<(Publication, RejectedSummary)> {
        let live = stages.observers.live_sketches.as_ref();
        let mut sketches = live.map_or_else(Vec::new, |live| std::mem::take(&mut *live.lock()));
        let survey = CandidateSurvey::new(&mut sketches, &*stages.blocking, &*stages.filter);
        let most = self.most.get();
        let sample = thread::scope(|scope| {
            let survey = &survey;
            let begin = |part| scope.spawn(move || survey.sample(part, threads, most));
            let begun: Vec<_> = (0..threads).map(begin).collect();
            begun.into_iter().try_fold(RejectedSample::new(most), |mut all, part| {
                all.merge(part.join().map_err(|_| io::Error::other("a thread has panicked"))?);
                Ok::<_, io::Error>(all)
            })
        })?;
        let pairs = survey.pairs(&sample);
        for rejected in &pairs {
            self.rows.row(&RejectedRow::new(rejected, self.threshold))?;
        }
        self.rows.finish()?;
        let summary = RejectedSummary { counts: sample.counts().clone(), written: pairs.len() as u64 };
        Ok((self.publication, summary))
    }
}

impl fmt::Debug for RejectedOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RejectedOutput").field("most", &self.most).finish_non_exhaustive()
    }
}
