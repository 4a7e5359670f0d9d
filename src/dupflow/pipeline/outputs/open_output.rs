//! An output beside the first one, while it is open.
//!
//! The first output decides where a run begins. The others are written after it, each with a mark of its own.
//! One whose last commit has the number of that of the first holds the same epochs, and is continued. Any
//! other is corrected to what has been read when the run is live: one that is behind since the last run ended
//! between two commits, that was left out for a while, that is ahead, or that is new.

use std::collections::BTreeSet;
use std::fmt;
use std::io;

use super::corrections::{correction, corrections, pieces};
use super::in_force::InForce;
use crate::pipeline::document_rules::DocumentRules;
use crate::pipeline::error::RunError;
use crate::pipeline::fit::{check_envelope, check_rules, check_topic};
use crate::pipeline::past_error::PastError;
use dupflow_connectors::failpoint;
use dupflow_connectors::mark::{InputList, Mark, Standing};
use dupflow_connectors::sinks::Sink;
use dupflow_core::doc::DocChange;
use dupflow_core::pair::{Delta, DocPair};
use dupflow_core::pair_rule::PairRule;
use dupflow_core::reconcile::Reconcile;
use dupflow_core::time::{Epoch, EpochTimes, unix_seconds};
use dupflow_engine::dataflow::ClosedEpoch;

/// An output beside the first one, which is written after it with a mark of its own.
pub(super) struct OpenOutput {
    /// Its table in the deployment, as in "output.2".
    name: String,
    pub(super) sink: Box<dyn Sink + Send>,
    /// The encoded description of everything that decides what it holds.
    pipeline: String,
    /// What it held when it was looked at last, at the latest when it was taken over.
    pub(super) standing: Standing,
    /// If it is to be corrected: the pairs before the first live epoch, less those that it holds.
    corrected: Option<Reconcile<DocPair>>,
    /// The number of its last commit by this run.
    pub(super) committed: Option<u64>,
}

/// What decides whether an output may be continued, alike for all outputs of a run.
#[derive(Clone, Debug)]
pub(in crate::pipeline) struct OutputRules {
    /// The encoded settings of the source that decide its documents.
    pub(in crate::pipeline) source: String,
    /// The rule on the fields of pairs.
    pub(in crate::pipeline) pairs: PairRule,
    pub(in crate::pipeline) reconcile: bool,
}

impl OpenOutput {
    pub(super) fn new(name: String, sink: Box<dyn Sink + Send>, pipeline: String) -> Self {
        Self { name, sink, pipeline, standing: Standing::Forgets, corrected: None, committed: None }
    }

    /// Checks the output, as far as it can be read before any is taken over. `first`: what the first output
    /// holds, if that can be read.
    pub(super) fn inspect(&mut self, first: Option<&Standing>, rules: &OutputRules) -> Result<(), RunError> {
        let standing = self.sink.inspect().map_err(|error| self.failed(error))?;
        let Some(standing) = standing else { return Ok(()) };
        self.standing = standing;
        self.check(&self.standing, rules)?;
        let Some(first) = first else { return Ok(()) };
        let lineage = if let Standing::At(mark) = first { mark.lineage.as_deref() } else { None };
        let checked = self.check_beside(&self.standing, first, lineage, rules);
        checked.map_err(|error| self.named(error.into()))
    }

    /// Takes the output over, or says why the run is refused. `first` is what the first output held, and
    /// `lineage` what the outputs of its runs share.
    pub(super) fn take_over(
        &mut self,
        first: &Standing,
        lineage: Option<&str>,
        rules: &OutputRules,
    ) -> Result<(), RunError> {
        self.standing = self.sink.take_over().map_err(|error| self.failed(error))?;
        self.check(&self.standing, rules)?;
        let checked = self.check_beside(&self.standing, first, lineage, rules);
        checked.map_err(|error| self.named(error.into()))
    }

    /// The epoch of the mark that it held, or 0.
    pub(super) fn epoch_before(&self) -> Epoch {
        if let Standing::At(mark) = &self.standing { mark.progress.epoch } else { 0 }
    }

    /// Finds whether the output is continued or corrected; then it is read back. `first` is what the first
    /// output held, and `is_corrected` whether that is corrected.
    pub(super) fn begin(
        &mut self,
        first: &Standing,
        is_corrected: bool,
        rules: &OutputRules,
    ) -> Result<(), RunError> {
        let has_same_epochs = |mark: &Mark| {
            let is_same = matches!(first, Standing::At(first) if mark.commit == first.commit);
            is_same && mark.commit.is_some() && !mark.in_correction && !is_corrected && !rules.reconcile
        };
        let output = &self.name;
        let held = match &self.standing {
            Standing::Forgets => return Ok(()),
            Standing::At(mark) if has_same_epochs(mark) => {
                tracing::debug!(output, "the output is continued");
                return self.sink.check_unchanged().map_err(|error| self.failed(error));
            }
            Standing::New => {
                tracing::info!(output, "the output is empty: it is filled");
                Ok(BTreeSet::new())
            }
            Standing::At(_) | Standing::Unmarked(_) => {
                tracing::info!(
                    output,
                    "the output is not as the first one is: it is read back and corrected"
                );
                self.sink.pairs()
            }
        };
        let held = held.map_err(|error| self.failed(error))?;
        self.sink.restored(&held.iter().map(|pair| correction(pair.clone(), 1)).collect::<Vec<_>>());
        let pairs = self.corrected.insert(Reconcile::default());
        held.into_iter().for_each(|pair| pairs.held(pair, 1));
        Ok(())
    }

    /// Takes an output over again that was left behind, and reads it back. `runs` are those whose marks it
    /// may hold; any if there are none.
    pub(super) fn again(
        &mut self,
        runs: &BTreeSet<String>,
        lineage: Option<&str>,
        rules: &OutputRules,
    ) -> Result<(), RunError> {
        let first = Standing::At(Box::new(Mark { lineage: lineage.map(str::to_owned), ..Mark::default() }));
        let is_ours = |standing: Option<&Standing>| match standing {
            Some(Standing::At(mark)) => runs.is_empty() || runs.contains(&mark.run),
            _ => true,
        };
        let standing = self.sink.inspect().map_err(|error| self.failed(error))?;
        if is_ours(standing.as_ref()) {
            self.take_over(&first, lineage, rules)?;
            if is_ours(Some(&self.standing)) {
                return self.begin(&first, true, rules);
            }
        }
        let what = "another run has taken it over while it was behind";
        Err(self.failed(io::Error::new(io::ErrorKind::InvalidData, what)))
    }

    /// Checks that what the output holds is of this pipeline.
    fn check(&self, standing: &Standing, rules: &OutputRules) -> Result<(), RunError> {
        let checked = match standing {
            Standing::Unmarked(what) if !rules.reconcile => Err(PastError::Unmarked(what.clone())),
            Standing::At(mark) => {
                let documents = DocumentRules { pipeline: &self.pipeline, source: &rules.source };
                let topic = self.sink.topic();
                let checked = check_envelope(mark, &self.pipeline, topic.as_ref());
                checked.and_then(|()| match rules.reconcile {
                    true => Ok(()),
                    false => check_rules(mark, &documents, &rules.pairs)
                        .and_then(|()| check_topic(mark, topic.as_ref())),
                })
            }
            _ => Ok(()),
        };
        checked.map_err(|error| self.named(error.of_table(&self.name).into()))
    }

    /// Checks that the output is one of those that are written with the first.
    fn check_beside(
        &self,
        standing: &Standing,
        first: &Standing,
        lineage: Option<&str>,
        rules: &OutputRules,
    ) -> Result<(), PastError> {
        match (first, standing) {
            (Standing::Forgets, Standing::New | Standing::Unmarked(_) | Standing::At(_)) => {
                Err(PastError::FirstForgets)
            }
            (Standing::New, Standing::At(_)) if !rules.reconcile => Err(PastError::FirstIsNew),
            (_, Standing::At(mark))
                if !rules.reconcile && (mark.lineage.is_none() || mark.lineage.as_deref() != lineage) =>
            {
                Err(PastError::OtherLineage)
            }
            _ => Ok(()),
        }
    }

    /// Whether it is to be corrected once the run is live.
    pub(super) fn is_corrected(&self) -> bool {
        self.corrected.is_some()
    }

    /// Passes the changes of documents of an epoch.
    pub(super) fn documents(&mut self, changes: &[DocChange], restored: bool) -> Result<(), RunError> {
        let passed = if changes.is_empty() { Ok(()) } else { self.sink.documents(changes, restored) };
        passed.map_err(|error| self.failed(error))
    }

    /// Passes what the corpus gives, at once.
    pub(super) fn given(&mut self, in_force: &InForce) -> Result<(), RunError> {
        in_force.documents().try_for_each(|changes| self.documents(&changes, true))?;
        let pairs = self.corrected.get_or_insert_default();
        in_force.pairs().for_each(|pair| pairs.given(pair.clone(), 1));
        Ok(())
    }

    /// Passes the deltas of an epoch before the run is live.
    pub(super) fn restored(&mut self, deltas: &[Delta]) {
        match &mut self.corrected {
            None => self.sink.restored(deltas),
            Some(pairs) => deltas.iter().for_each(|delta| pairs.given(delta.pair.clone(), delta.diff)),
        }
    }

    /// The run is live: corrects the output up to the mark of the first, if it is to be corrected. Otherwise
    /// it gets that mark too, if the first has a new one. Calls `beat` after each commit.
    pub(super) fn live(
        &mut self,
        first: &Mark,
        is_marked: bool,
        mut beat: impl FnMut(),
    ) -> Result<(), RunError> {
        if let Some(pairs) = self.corrected.take() {
            let deltas = corrections(pairs);
            // Corrections are of no event.
            self.sink.times(EpochTimes { event: None, committed: unix_seconds() });
            for (piece, is_last) in pieces(&deltas) {
                let written = self.sink.epoch(&first.progress, piece, &[]);
                written.map_err(|error| self.failed(error))?;
                self.commit(&Mark { in_correction: !is_last, ..first.clone() })?;
                beat();
            }
        } else if is_marked {
            self.mark(first)?;
        }
        self.sink.live(first.progress.epoch);
        Ok(())
    }

    /// Writes the mark of the first output for an epoch without deltas.
    pub(super) fn mark(&mut self, first: &Mark) -> Result<(), RunError> {
        self.sink.epoch(&first.progress, &[], &[]).map_err(|error| self.failed(error))?;
        self.commit(first)
    }

    /// Writes an epoch that the first output has made durable.
    pub(super) fn epoch(&mut self, epoch: &ClosedEpoch, committed: f64) -> Result<(), RunError> {
        let ClosedEpoch { progress, deltas, documents, upserts, newest, .. } = epoch;
        self.documents(documents, false)?;
        let upserted = if upserts.is_empty() { Ok(()) } else { self.sink.upserts(upserts) };
        self.sink.times(EpochTimes { event: *newest, committed });
        let written = upserted.and_then(|()| self.sink.epoch(progress, deltas, &[]));
        written.map_err(|error| self.failed(error))
    }

    /// One commit, with the mark of the first output.
    pub(super) fn commit(&mut self, first: &Mark) -> Result<(), RunError> {
        let mark = Mark {
            pipeline: self.pipeline.clone(),
            output: self.sink.topic(),
            letters_topic: None,
            inputs: first.inputs.as_ref().map(InputList::bounded),
            ..first.clone()
        };
        self.sink.commit(&mark).map_err(|error| self.failed(error))?;
        self.committed = mark.commit;
        failpoint::reach("output");
        Ok(())
    }

    /// Writes out everything that is still buffered.
    pub(super) fn finish(&mut self) -> Result<(), RunError> {
        self.sink.finish().map_err(|error| self.failed(error))
    }

    fn failed(&self, error: io::Error) -> RunError {
        self.named(RunError::Sink(error))
    }

    fn named(&self, error: RunError) -> RunError {
        RunError::Output { name: self.name.clone(), error: Box::new(error) }
    }
}

impl fmt::Debug for OpenOutput {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("OpenOutput").field("name", &self.name).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_connectors::sinks::side::SideDelta;
    use dupflow_core::doc::Letter;
    use dupflow_core::time::Progress;

    /// A sink that holds this, and whose pairs are none.
    struct Holds(Standing);

    impl Sink for Holds {
        fn inspect(&mut self) -> io::Result<Option<Standing>> {
            Ok(Some(self.0.clone()))
        }

        fn take_over(&mut self) -> io::Result<Standing> {
            Ok(self.0.clone())
        }

        fn pairs(&mut self) -> io::Result<BTreeSet<DocPair>> {
            Ok(BTreeSet::new())
        }

        fn epoch(&mut self, _: &Progress, _: &[Delta], _: &[Letter]) -> io::Result<()> {
            Ok(())
        }

        fn commit(&mut self, _: &Mark) -> io::Result<()> {
            Ok(())
        }

        fn side(&mut self, _: &str, _: Epoch, _: &[SideDelta]) -> io::Result<()> {
            Ok(())
        }

        fn finish(&mut self) -> io::Result<()> {
            Ok(())
        }
    }

    /// What becomes of an output: by what the first one and this one hold.
    #[test]
    fn an_output_is_continued_corrected_or_refused() {
        let marked = |commit: u64, lineage: &str| Mark {
            pipeline: "p".to_owned(),
            lineage: Some(lineage.to_owned()),
            commit: Some(commit),
            ..Mark::default()
        };
        let at = |mark: Mark| Standing::At(Box::new(mark));
        let unmarked = || Standing::Unmarked("rows without a mark".to_owned());
        let (here, behind, foreign) = (marked(2, "l"), marked(1, "l"), marked(2, "m"));
        let partly = Mark { in_correction: true, ..here.clone() };
        let alone = Mark { lineage: None, commit: None, ..here.clone() };
        let other = Mark { pipeline: "q".to_owned(), ..here.clone() };
        for (first, standing, plain, reconciled) in [
            (at(here.clone()), at(here.clone()), "continued", "corrected"),
            (at(here.clone()), at(behind), "corrected", "corrected"),
            (at(here.clone()), at(partly), "corrected", "corrected"),
            (at(here.clone()), at(foreign), "not written together", "corrected"),
            (at(here.clone()), at(alone.clone()), "not written together", "corrected"),
            (at(here.clone()), at(other), "another pipeline", "corrected"),
            (at(here.clone()), unmarked(), "rows without a mark", "corrected"),
            (at(here.clone()), Standing::New, "corrected", "corrected"),
            (at(here.clone()), Standing::Forgets, "continued", "continued"),
            // Outputs of runs that had one output each.
            (at(alone.clone()), at(alone), "not written together", "corrected"),
            (Standing::New, Standing::New, "corrected", "corrected"),
            (Standing::New, at(here.clone()), "put this one first", "corrected"),
            (Standing::New, Standing::Forgets, "continued", "continued"),
            (Standing::Forgets, Standing::Forgets, "continued", "continued"),
            (Standing::Forgets, at(here), "put this one first", "put this one first"),
            (Standing::Forgets, Standing::New, "put this one first", "put this one first"),
        ] {
            for (reconcile, expected) in [(false, plain), (true, reconciled)] {
                let rules = OutputRules { source: String::new(), pairs: PairRule::default(), reconcile };
                let sink = Box::new(Holds(standing.clone()));
                let mut output = OpenOutput::new("output.1".to_owned(), sink, "p".to_owned());
                let lineage = if let Standing::At(mark) = &first { mark.lineage.as_deref() } else { None };
                let inspected = output.inspect(Some(&first), &rules);
                let taken = output.take_over(&first, lineage, &rules);
                let found = match taken.and_then(|()| output.begin(&first, false, &rules)) {
                    Ok(()) if output.is_corrected() => "corrected".to_owned(),
                    Ok(()) => "continued".to_owned(),
                    Err(error) => {
                        assert!(inspected.is_err(), "{error} is said before anything is taken over");
                        crate::pipeline::chain(&error)
                    }
                };
                assert!(found.contains(expected), "{first:?} {standing:?} {reconcile}: {found}");
            }
        }
    }
    /// One that was left behind is taken back only from runs that are known to have been before.
    #[test]
    fn an_output_is_not_taken_back_from_another_run() {
        let rules = OutputRules { source: String::new(), pairs: PairRule::default(), reconcile: false };
        let mark = Mark {
            pipeline: "p".to_owned(),
            run: "theirs".to_owned(),
            lineage: Some("l".to_owned()),
            commit: Some(2),
            ..Mark::default()
        };
        for (runs, lineage, expected) in [
            (&["ours", "theirs"][..], "l", None),
            (&[], "l", None),
            (&["ours"], "l", Some("another run has taken it over")),
            (&[], "m", Some("not written together")),
        ] {
            let runs = runs.iter().map(|run| (*run).to_owned()).collect();
            let sink = Box::new(Holds(Standing::At(Box::new(mark.clone()))));
            let mut output = OpenOutput::new("output.1".to_owned(), sink, "p".to_owned());
            let again = output.again(&runs, Some(lineage), &rules);
            match expected {
                None => assert!(again.is_ok() && output.is_corrected(), "{runs:?} {again:?}"),
                Some(why) => assert!(crate::pipeline::chain(&again.unwrap_err()).contains(why), "{runs:?}"),
            }
        }
    }
}
