//! The board of notices: what other threads know of the file of notices.
//!
//! The committer writes it after each sync; the monitor reads the last notices, the web hook waits for more.

#![cfg_attr(not(feature = "webhook"), expect(dead_code, reason = "only the web hook waits and delivers"))]

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use dupflow_core::time::{Clock, SystemClock};
use dupflow_run::watch::{DurableNotice, HookState};

/// Marks of times that are held; the file may grow for days while a receiver is down.
const MARKS: usize = 1024;

/// How long the end of a run waits for one attempt of the web hook.
const LAST_ATTEMPT: Duration = Duration::from_secs(3);

/// What is durable in the file of notices.
pub struct NoticeBoard {
    state: Mutex<BoardState>,
    /// Notified when more is durable, when something has been delivered, and at the ends.
    changed: Condvar,
    clock: Arc<dyn Clock>,
}

#[derive(Debug, Default)]
struct BoardState {
    last: VecDeque<DurableNotice>,
    /// Notices in the file.
    count: u64,
    /// Bytes of the file that are durable.
    length: u64,
    /// For some numbers of notices, the time at which so many were durable; both ascend.
    marks: VecDeque<(u64, Duration)>,
    hook: Option<HookState>,
    /// Notices that the web hook has delivered, or that were refused.
    done: u64,
    ended: bool,
    /// How long an orderly stop may take; see [`NoticeBoard::stop_deliveries`].
    shutdown: Duration,
    /// From this time on the web hook begins no attempt, by the clock.
    deadline: Option<Duration>,
    /// Whether the thread of the web hook has ended.
    hook_ended: bool,
    /// Why it has, if that is an error.
    hook_error: Option<String>,
}

/// Whether there is more in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoreNotices {
    /// The file is durable up to this length in bytes, which is greater than that asked for.
    Until(u64),
    /// Nothing more is written, or nothing more is delivered.
    Ended,
}

impl Default for NoticeBoard {
    fn default() -> Self {
        Self::new(Arc::new(SystemClock::start()))
    }
}

impl fmt::Debug for NoticeBoard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("NoticeBoard").field("state", &self.state).finish_non_exhaustive()
    }
}

impl NoticeBoard {
    /// Nothing is durable; ages are by this clock.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { state: Mutex::default(), changed: Condvar::new(), clock }
    }

    /// Notices that are held in memory, the last ones.
    pub(super) const HELD: usize = 1000;

    /// Adds notices that are durable now, the last ones of `count` in a file of `length` bytes.
    pub(super) fn add(&self, notices: Vec<DurableNotice>, count: u64, length: u64) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        (state.count, state.length) = (count, length);
        if !notices.is_empty() {
            if state.marks.len() >= MARKS {
                let mut keep = false;
                state.marks.retain(|_| {
                    keep = !keep;
                    !keep
                });
            }
            state.marks.push_back((count, now));
        }
        let skipped = notices.len().saturating_sub(Self::HELD);
        state.last.extend(notices.into_iter().skip(skipped));
        let surplus = state.last.len().saturating_sub(Self::HELD);
        state.last.drain(..surplus);
        drop(state);
        self.changed.notify_all();
    }

    /// The run stops, or is at its end: after half of the time of an orderly stop the web hook begins no
    /// further attempt, and the next run delivers the rest. The first call counts.
    pub fn stop_deliveries(&self) {
        let now = self.clock.now();
        let mut state = self.state.lock();
        let shutdown = state.shutdown;
        state.deadline.get_or_insert(now + shutdown / 2);
        drop(state);
        self.changed.notify_all();
    }

    /// Nothing more is written: waits until the web hook has delivered what is left, up to the first attempt
    /// that fails or takes more than `LAST_ATTEMPT`, and up to the deadline of [`Self::stop_deliveries`]. The
    /// last attempt is waited for up to another quarter of the time of an orderly stop. Returns what is known
    /// of the deliveries.
    pub fn end_deliveries(&self) -> HookState {
        self.state.lock().ended = true;
        self.stop_deliveries();
        let mut state = self.state.lock();
        let end = state.deadline.unwrap_or_default() + state.shutdown / 4;
        let mut is_late = false;
        while !state.hook_ended && !is_late {
            let before = state.done;
            let waits = |now: &mut BoardState| !now.hook_ended && now.done == before;
            let time = end.saturating_sub(self.clock.now()).min(LAST_ATTEMPT);
            is_late = self.changed.wait_while_for(&mut state, waits, time).timed_out();
        }
        drop(state);
        self.hook().unwrap_or_default()
    }

    /// Waits until the file is longer than `length`, or the web hook is to end.
    pub(super) fn wait_beyond(&self, length: u64) -> MoreNotices {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.length <= length && !state.ended);
        let is_over = state.deadline.is_some_and(|deadline| deadline <= self.clock.now());
        if state.length > length && !is_over { MoreNotices::Until(state.length) } else { MoreNotices::Ended }
    }

    /// Waits until the run stops or is at its end, at most `time`. Returns whether that is so.
    pub(super) fn wait_for_stop(&self, time: Duration) -> bool {
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| state.deadline.is_none(), time);
        state.deadline.is_some()
    }

    /// Whether the run stops or is at its end.
    pub(super) fn is_stopping(&self) -> bool {
        self.state.lock().deadline.is_some()
    }

    /// At most `most` of the last notices with numbers below `before`, the newest first.
    pub(super) fn last(&self, before: Option<u64>, most: usize) -> Vec<DurableNotice> {
        let state = self.state.lock();
        let is_before = |notice: &&DurableNotice| before.is_none_or(|before| notice.number < before);
        state.last.iter().rev().filter(is_before).take(most).cloned().collect()
    }

    /// Notices in the file.
    pub(super) fn count(&self) -> u64 {
        self.state.lock().count
    }

    /// A web hook begins where `done` notices have been delivered; an orderly stop may take `shutdown`.
    pub(super) fn begin_hook(&self, done: u64, shutdown: Duration) {
        self.state.lock().shutdown = shutdown;
        self.update_hook(done, |_| {});
    }

    /// Changes what is known of the web hook, where `done` notices have been delivered or refused.
    pub(super) fn update_hook(&self, done: u64, change: impl FnOnce(&mut HookState)) {
        let mut state = self.state.lock();
        state.done = done;
        while state.marks.front().is_some_and(|(count, _)| *count <= done) {
            state.marks.pop_front();
        }
        change(state.hook.get_or_insert_default());
        drop(state);
        self.changed.notify_all();
    }

    /// The thread of the web hook has ended.
    pub(super) fn hook_has_ended(&self) {
        self.state.lock().hook_ended = true;
        self.changed.notify_all();
    }

    /// The thread of the web hook ends with an error.
    pub(super) fn hook_has_failed(&self, error: String) {
        self.state.lock().hook_error = Some(error);
    }

    /// The error of the web hook, if its thread has ended with one.
    pub(super) fn hook_error(&self) -> Option<String> {
        self.state.lock().hook_error.clone()
    }

    /// What is known of the web hook; `None` if there is none.
    pub(super) fn hook(&self) -> Option<HookState> {
        let now = self.clock.now();
        let state = self.state.lock();
        let oldest = state.marks.front().map_or(0.0, |(_, at)| now.saturating_sub(*at).as_secs_f64());
        let undelivered = state.count.saturating_sub(state.done);
        let hook = state.hook.clone()?;
        Some(HookState { undelivered, oldest_seconds: oldest, ..hook })
    }
}
