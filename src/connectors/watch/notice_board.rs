//! The board of notices: what other threads know of the file of notices.
//!
//! The committer writes it after each sync; the monitor reads the last notices, the web hook waits for more.

#![cfg_attr(not(feature = "webhook"), expect(dead_code, reason = "only the web hook waits and delivers"))]

use std::collections::VecDeque;
use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::{Condvar, Mutex};

use dupflow_core::run::watch::{DurableNotice, HookState};
use dupflow_core::time::{Clock, SystemClock};

/// Marks of times that are held; the file may grow for days while a receiver is down.
const MARKS: usize = 1024;

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
    /// Whether the thread of the web hook has ended.
    hook_ended: bool,
}

/// Whether there is more in the file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MoreNotices {
    /// The file is durable up to this length in bytes, which is greater than that asked for.
    Until(u64),
    /// Nothing more is written.
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

    /// Nothing more is written.
    pub(super) fn end(&self) {
        self.state.lock().ended = true;
        self.changed.notify_all();
    }

    /// Waits until the file is longer than `length`, or nothing more is written.
    pub(super) fn wait_beyond(&self, length: u64) -> MoreNotices {
        let mut state = self.state.lock();
        self.changed.wait_while(&mut state, |state| state.length <= length && !state.ended);
        if state.length > length { MoreNotices::Until(state.length) } else { MoreNotices::Ended }
    }

    /// Waits until nothing more is written, at most `time`. Returns whether that is so.
    pub(super) fn wait_for_end(&self, time: Duration) -> bool {
        let mut state = self.state.lock();
        self.changed.wait_while_for(&mut state, |state| !state.ended, time);
        state.ended
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

    /// Waits until the web hook has ended, as long as it delivers something within each `time`.
    pub(super) fn wait_for_hook(&self, time: Duration) {
        let done = |state: &BoardState| state.hook.as_ref().map_or(0, |hook| hook.delivered + hook.refused);
        let mut state = self.state.lock();
        while !state.hook_ended {
            let before = done(&state);
            let waits = |now: &mut BoardState| !now.hook_ended && done(now) == before;
            if self.changed.wait_while_for(&mut state, waits, time).timed_out() {
                return;
            }
        }
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
