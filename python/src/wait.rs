//! Waiting on the thread of a caller: the GIL is released, signals, messages and progress are seen to.

use std::cell::Cell;
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread::{self, ThreadId};
use std::time::Duration;

use dupflow::core::time::{Clock as _, SystemClock};
use parking_lot::{Condvar, Mutex, MutexGuard};
use pyo3::exceptions::PyRuntimeError;
use pyo3::prelude::*;

use crate::{forks, messages};

/// The longest time for which a caller waits without looking for signals.
pub(crate) const SLICE: Duration = Duration::from_millis(50);

/// A call in progress.
pub(crate) struct Call<'a, 'py> {
    pub(crate) py: Python<'py>,
    progress: Option<&'a Bound<'py, PyAny>>,
    rows: Cell<u64>,
    clock: SystemClock,
    /// When signals were looked for.
    looked: Cell<Duration>,
}

impl<'a, 'py> Call<'a, 'py> {
    /// Begins a call. `progress` receives the number of rows read so far.
    ///
    /// # Errors
    /// In a process that was forked while its parent had a run.
    pub(crate) fn begin(py: Python<'py>, progress: Option<&'a Bound<'py, PyAny>>) -> PyResult<Self> {
        forks::check()?;
        messages::install();
        Ok(Self { py, progress, rows: Cell::new(0), clock: SystemClock::start(), looked: Cell::default() })
    }

    /// Counts rows that were read.
    pub(crate) fn count(&self, rows: u64) {
        self.rows.set(self.rows.get() + rows);
    }

    /// Looks for signals, and delivers messages and progress, if [`SLICE`] has passed since the last time.
    ///
    /// # Errors
    /// What a handler of a signal or a callback raises.
    pub(crate) fn look(&self) -> PyResult<()> {
        let now = self.clock.now();
        if now.saturating_sub(self.looked.get()) < SLICE {
            return Ok(());
        }
        self.looked.set(now);
        self.py.check_signals()?;
        self.deliver()
    }

    /// Delivers messages and progress.
    ///
    /// # Errors
    /// What a callback raises.
    pub(crate) fn deliver(&self) -> PyResult<()> {
        messages::deliver(self.py)?;
        self.progress.map_or(Ok(()), |progress| progress.call1((self.rows.get(),)).map(drop))
    }

    /// Calls `work`, which may wait for another machine, on a thread of its own. An interruption does not
    /// wait for it, and what it returns is dropped there.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub(crate) fn apart<T: Send + 'static>(&self, work: impl FnOnce() -> T + Send + 'static) -> PyResult<T> {
        let (done, result) = channel();
        // There is no receiver after an interruption.
        let work = move || done.send(work()).unwrap_or(());
        thread::Builder::new().name("open".to_owned()).spawn(work)?;
        let received = self.until(move |time| match result.recv_timeout(time) {
            Ok(value) => Some(Some(value)),
            Err(RecvTimeoutError::Timeout) => None,
            Err(RecvTimeoutError::Disconnected) => Some(None),
        })?;
        received.ok_or_else(|| PyRuntimeError::new_err("a thread has panicked"))
    }

    /// Calls `wait` without the GIL, again and again, until it returns a value. Each call waits at most for
    /// the time that it is given.
    ///
    /// # Errors
    /// As [`Self::look`].
    pub(crate) fn until<T: Send>(&self, mut wait: impl FnMut(Duration) -> Option<T> + Send) -> PyResult<T> {
        loop {
            if let Some(value) = self.py.detach(|| wait(SLICE)) {
                return Ok(value);
            }
            self.look()?;
        }
    }
}

/// A value that calls of one process use in turn.
pub(crate) struct Turns<T> {
    process: u32,
    /// The thread whose turn it is.
    holder: Mutex<Option<ThreadId>>,
    free: Condvar,
    /// Locked by the holder alone, so no thread waits for it.
    value: Mutex<T>,
}

/// A turn; it ends when it is dropped.
pub(crate) struct Turn<'t, T> {
    turns: &'t Turns<T>,
    pub(crate) value: MutexGuard<'t, T>,
}

impl<T: Send> Turns<T> {
    pub(crate) fn new(value: T) -> Self {
        Self {
            process: std::process::id(),
            holder: Mutex::new(None),
            free: Condvar::new(),
            value: Mutex::new(value),
        }
    }

    /// Whether this is a process forked from the one that made the value. Its threads are in that one.
    pub(crate) fn is_forked(&self) -> bool {
        std::process::id() != self.process
    }

    /// The value, which no turn has any more.
    pub(crate) fn get_mut(&mut self) -> &mut T {
        self.value.get_mut()
    }

    /// Waits for a turn.
    ///
    /// # Errors
    /// In a forked process; from a callback inside another turn of the same thread; as [`Call::look`].
    pub(crate) fn take(&self, call: &Call<'_, '_>) -> PyResult<Turn<'_, T>> {
        if self.is_forked() {
            let what = "a process that was forked cannot use it: its threads are in the parent process";
            return Err(PyRuntimeError::new_err(what));
        }
        let own = thread::current().id();
        if !self.try_take(own, Duration::ZERO) {
            if *self.holder.lock() == Some(own) {
                return Err(PyRuntimeError::new_err("a callback cannot use what it reports on"));
            }
            call.until(|time| self.try_take(own, time).then_some(()))?;
        }
        Ok(Turn { turns: self, value: self.value.lock() })
    }

    fn try_take(&self, own: ThreadId, time: Duration) -> bool {
        let mut holder = self.holder.lock();
        if !time.is_zero() {
            self.free.wait_while_for(&mut holder, |holder| holder.is_some(), time);
        }
        let is_free = holder.is_none();
        if is_free {
            *holder = Some(own);
        }
        is_free
    }
}

impl<T> Drop for Turn<'_, T> {
    fn drop(&mut self) {
        // The next holder locks the value after this guard is gone; it waits for no more than that.
        *self.turns.holder.lock() = None;
        self.turns.free.notify_one();
    }
}
