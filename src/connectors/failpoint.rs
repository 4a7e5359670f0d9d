//! Failpoints: named points, between durable steps, at which a test ends the process as a crash would.
//!
//! With the feature `failpoints` the environment variable `DUPFLOW_FAILPOINT` names a point and the number of
//! passes before it: with `commit:3`, SIGKILL ends the process when it reaches `commit` for the fourth time;
//! with `commit:3:stop`, SIGSTOP suspends it there, once.
//! Without the feature, [`reach`] does nothing.

/// Does nothing: the program is built without the feature `failpoints`.
#[cfg(not(feature = "failpoints"))]
#[inline(always)]
pub fn reach(_point: &str) {
    #[cfg(test)]
    passed::note(_point);
}

/// Passes a point, or ends the process there if `DUPFLOW_FAILPOINT` says so.
#[cfg(feature = "failpoints")]
pub fn reach(point: &str) {
    #[cfg(test)]
    passed::note(point);
    use rustix::process::{Signal, getpid, kill_process};
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static SET: LazyLock<Option<(String, AtomicU64, bool)>> = LazyLock::new(|| {
        let set = std::env::var("DUPFLOW_FAILPOINT").ok()?;
        let stopped = set.strip_suffix(":stop");
        let (point, passes) = stopped.unwrap_or(&set).rsplit_once(':')?;
        Some((point.to_owned(), AtomicU64::new(passes.parse().ok()?), stopped.is_some()))
    });
    let Some((set, left, stops)) = &*SET else { return };
    if set != point || left.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_ok() {
        return;
    }
    if *stops {
        left.store(u64::MAX, Ordering::SeqCst);
        kill_process(getpid(), Signal::STOP).unwrap_or(());
        return;
    }
    kill_process(getpid(), Signal::KILL).unwrap_or(());
    std::process::abort();
}

/// The points that a thread has passed: unit tests check the order of durable steps by them.
#[cfg(test)]
pub(crate) mod passed {
    use std::cell::RefCell;

    thread_local! {
        static PASSED: RefCell<Vec<String>> = const { RefCell::new(Vec::new()) };
    }

    pub(super) fn note(point: &str) {
        PASSED.with_borrow_mut(|passed| passed.push(point.to_owned()));
    }

    /// The points since the last call.
    pub(crate) fn take() -> Vec<String> {
        PASSED.take()
    }
}
