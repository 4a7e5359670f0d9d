//! The deltas of a run over files, an epoch at a time.

use std::collections::VecDeque;
use std::io;
use std::sync::Arc;
use std::time::Duration;

use dupflow::connectors::formats::{FileFormat, InputLayout};
use dupflow::connectors::inputs::{Files, Input};
use dupflow::connectors::intake::{BadRecords, EpochRule, SourceError};
use dupflow::connectors::mark::Mark;
use dupflow::connectors::sinks::Sink;
use dupflow::core::doc::Letter;
use dupflow::core::pair::Delta;
use dupflow::core::sketch::Scheme;
use dupflow::core::time::{Clock as _, Epoch, Progress, SystemClock};
use dupflow::pipeline::{self, RunJob, Running, Stopper};
use parking_lot::{Condvar, Mutex};
use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;

use crate::errors;
use crate::forks::CountedRun;
use crate::ids::IdKind;
use crate::numbers::whole;
use crate::tables::{self, IdColumns, Table};
use crate::wait::{Call, Turns};

/// Most epochs that wait to be taken.
const MOST: usize = 64;

/// An epoch rule, where a time alone, as in "100ms", is that of "every:".
fn epoch_rule(rule: &str) -> Result<EpochRule, String> {
    let is_time = rule.starts_with(|first: char| first.is_ascii_digit());
    let parsed = if is_time { format!("every:{rule}").parse() } else { rule.parse() };
    parsed.map_err(|what| format!("every: found {rule:?}, {what}"))
}

/// An epoch rule of a stream whose events have no times of their own, as (seconds, events): infinity or 0
/// where it has none.
#[pyfunction]
#[pyo3(signature = (rule, /))]
pub(crate) fn every(py: Python<'_>, rule: &str) -> PyResult<(f64, u64)> {
    match epoch_rule(rule) {
        Ok(EpochRule::Every(time)) => Ok((time.as_secs_f64(), 0)),
        Ok(EpochRule::Events(events)) => Ok((f64::INFINITY, events.get())),
        Ok(EpochRule::Within(events, time)) => Ok((time.as_secs_f64(), events.get())),
        Ok(EpochRule::Ts | EpochRule::All) | Err(_) => {
            let what = "expected a time such as \"100ms\" or \"2s\", or \"events:N\", N from 1";
            Err(errors::config(py, vec![format!("every: found {rule:?}, {what}")]))
        }
    }
}

/// The epochs that wait to be taken.
#[derive(Default)]
struct Epochs {
    state: Mutex<EpochsState>,
    changed: Condvar,
}

#[derive(Default)]
struct EpochsState {
    waiting: VecDeque<(Epoch, Vec<Delta>)>,
    /// The run has ended.
    is_over: bool,
    /// Nobody takes them any more.
    is_left: bool,
}

/// Passes the epochs that change a pair.
struct EpochSink {
    to: Arc<Epochs>,
    open: Vec<(Epoch, Vec<Delta>)>,
}

impl Sink for EpochSink {
    fn epoch(&mut self, progress: &Progress, deltas: &[Delta], _: &[Letter]) -> io::Result<()> {
        if !deltas.is_empty() {
            self.open.push((progress.epoch, deltas.to_vec()));
        }
        Ok(())
    }

    fn commit(&mut self, _: &Mark) -> io::Result<()> {
        let mut state = self.to.state.lock();
        for epoch in self.open.drain(..) {
            let full = |state: &mut EpochsState| state.waiting.len() >= MOST && !state.is_left;
            self.to.changed.wait_while(&mut state, full);
            if state.is_left {
                return Err(io::ErrorKind::BrokenPipe.into());
            }
            state.waiting.push_back(epoch);
            self.to.changed.notify_all();
        }
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for EpochSink {
    fn drop(&mut self) {
        self.to.state.lock().is_over = true;
        self.to.changed.notify_all();
    }
}

/// A run over files.
struct FollowState {
    scheme: Scheme,
    epochs: Arc<Epochs>,
    running: Option<Running>,
    _counted: CountedRun,
    stopper: Stopper,
    /// Whether every epoch was returned.
    ended: bool,
}

impl FollowState {
    /// Ends the run, and waits for its threads, but for a reader that waits for its input: that one ends with
    /// the next record.
    fn abandon(&mut self) {
        self.stopper.abandon();
        self.epochs.state.lock().is_left = true;
        self.epochs.changed.notify_all();
        if let Some(running) = self.running.take() {
            // Whoever abandons a run does not ask how it ended.
            drop(running.join());
        }
    }
}

impl Drop for FollowState {
    fn drop(&mut self) {
        if self.running.is_some() {
            self.abandon();
        }
    }
}

/// The deltas of a run over files, folders or object stores, an epoch at a time.
#[pyclass(frozen, module = "dupflow._dupflow")]
pub(crate) struct Follow {
    turns: Turns<Option<FollowState>>,
    bad: Arc<BadRecords>,
}

#[pymethods]
impl Follow {
    #[new]
    #[pyo3(signature = (inputs, *, every = "100ms", follow = false, format = None,
        text = "text", id = "id", time = "ts", pipeline = "minhash",
        settings = Vec::new(), workers = 1))]
    #[expect(clippy::too_many_arguments, reason = "keywords of Python")]
    #[expect(clippy::needless_pass_by_value, reason = "arguments of Python")]
    fn new(
        py: Python<'_>,
        inputs: Vec<String>,
        every: &str,
        follow: bool,
        format: Option<&str>,
        text: &str,
        id: &str,
        time: &str,
        pipeline: &str,
        settings: Vec<String>,
        #[pyo3(from_py_with = whole)] workers: i64,
    ) -> PyResult<Self> {
        let call = Call::begin(py, None)?;
        let plan = errors::load(py, pipeline, &settings)?;
        let workers = errors::workers(py, workers)?;
        let mut problems = Vec::new();
        let every = epoch_rule(every).map_err(|what| problems.push(what)).ok();
        if let Some(field) = plan.scheme.pairs.fields().next() {
            problems.push(format!("pairs.where names the field {field:?}, and files give none here"));
        }
        let format = format.map(|name| {
            let found = FileFormat::all().iter().find(|format| format.name() == name);
            if found.is_none() {
                let names: Vec<_> = FileFormat::all().iter().map(|format| format.name()).collect();
                problems.push(format!("format: found {name:?}, expected {}", names.join(", ")));
            }
            found.copied()
        });
        let layout = InputLayout {
            format: format.flatten(),
            text: text.to_owned(),
            id: id.to_owned(),
            ts: time.to_owned(),
            ..InputLayout::default()
        };
        let listed = inputs.clone();
        let resolved = call.apart(move || Input::resolve(&listed, layout))?;
        let resolved = match resolved {
            Ok(resolved) => Some(resolved),
            Err(SourceError::Inputs(wrong)) => {
                problems.extend(wrong);
                None
            }
            Err(other) => {
                problems.push(pipeline::chain(&other));
                None
            }
        };
        if inputs.is_empty() {
            problems.push("inputs: expected at least one".to_owned());
        }
        let Some((resolved, every)) = resolved.zip(every).filter(|_| problems.is_empty()) else {
            return Err(errors::config(py, problems));
        };
        let mut source = Files::new(resolved, every, plan.scheme.text.field_names());
        source.follow = follow;
        let epochs = Arc::<Epochs>::default();
        let sink = EpochSink { to: Arc::clone(&epochs), open: Vec::new() };
        let job = RunJob::new(&plan, workers, Box::new(source), Box::new(sink));
        let bad = Arc::clone(&job.bad);
        let counted = CountedRun::begin()?;
        let started = py.detach(|| pipeline::start(job));
        let running = started.map_err(|error| errors::of_run(py, &error))?;
        let stopper = running.stopper();
        let (scheme, running) = (plan.scheme, Some(running));
        let state = FollowState { scheme, epochs, running, _counted: counted, stopper, ended: false };
        call.deliver()?;
        Ok(Self { turns: Turns::new(Some(state)), bad })
    }

    /// The next epoch that changed a pair; None after `timeout` seconds, or at the end.
    #[pyo3(signature = (*, timeout = None))]
    fn next(&self, py: Python<'_>, timeout: Option<f64>) -> PyResult<Option<Table>> {
        let call = Call::begin(py, None)?;
        let mut turn = self.turns.take(&call)?;
        let Some(own) = turn.value.as_mut() else {
            return Err(PyValueError::new_err("it is closed"));
        };
        // What is raised from here on leaves the epochs to the next call.
        call.deliver()?;
        let until = timeout.map(Duration::try_from_secs_f64).transpose();
        let until = until.map_err(|_| PyValueError::new_err("timeout: expected seconds, 0 or more"))?;
        let clock = SystemClock::start();
        let epochs = Arc::clone(&own.epochs);
        let next = call.until(|slice| {
            let left = until.map_or(slice, |until| until.saturating_sub(clock.now()).min(slice));
            let mut state = epochs.state.lock();
            epochs.changed.wait_while_for(
                &mut state,
                |state| state.waiting.is_empty() && !state.is_over,
                left,
            );
            let next = state.waiting.pop_front();
            let is_over = state.is_over;
            drop(state);
            epochs.changed.notify_all();
            let is_late = until.is_some_and(|until| clock.now() >= until);
            match next {
                Some(next) => Some(Ok(next)),
                None if is_over => Some(Err(true)),
                None => is_late.then_some(Err(false)),
            }
        });
        match next? {
            Ok((epoch, deltas)) => {
                let ids = IdColumns::Own(IdKind::Text);
                let scheme = &own.scheme;
                Ok(Some(py.detach(|| tables::deltas(epoch, &deltas, &ids, scheme))))
            }
            Err(is_over) => {
                if let Some(running) = own.running.take_if(|_| is_over) {
                    own.ended = true;
                    py.detach(|| running.join()).map_err(|error| errors::of_run(py, &error))?;
                }
                call.deliver()?;
                Ok(None)
            }
        }
    }

    /// Whether the input has ended and every epoch was returned.
    #[getter]
    fn ended(&self, py: Python<'_>) -> PyResult<bool> {
        let turn = self.turns.take(&Call::begin(py, None)?)?;
        Ok(turn.value.as_ref().is_none_or(|own| own.ended))
    }

    /// Records that were no valid event, so far.
    #[getter]
    fn bad_records(&self) -> u64 {
        self.bad.counts().values().sum()
    }

    /// Ends the threads and waits for them, but for a reader that waits for its input.
    fn close(&self, py: Python<'_>) -> PyResult<()> {
        let call = Call::begin(py, None)?;
        let mut turn = self.turns.take(&call)?;
        if let Some(mut own) = turn.value.take() {
            py.detach(|| own.abandon());
        }
        Ok(())
    }
}

impl Drop for Follow {
    fn drop(&mut self) {
        let is_forked = self.turns.is_forked();
        let own = self.turns.get_mut().take();
        if is_forked {
            // Its threads are in the parent process, and may have held any of its locks.
            std::mem::forget(own);
        }
    }
}
