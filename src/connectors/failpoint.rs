//! Failpoints: named points, between durable steps, at which a test ends the process as a crash would.
//!
//! With the feature `failpoints` the environment variable `DUPFLOW_FAILPOINT` names a point and the number of
//! passes before it: with `commit:3`, SIGKILL ends the process when it reaches `commit` for the fourth time.
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
    use std::sync::LazyLock;
    use std::sync::atomic::{AtomicU64, Ordering};

    static SET: LazyLock<Option<(String, AtomicU64)>> = LazyLock::new(|| {
        let set = std::env::var("DUPFLOW_FAILPOINT").ok()?;
        let (point, passes) = set.rsplit_once(':')?;
        Some((point.to_owned(), AtomicU64::new(passes.parse().ok()?)))
    });
    if let Some((set, passes)) = &*SET
        && set == point
        && passes.fetch_update(Ordering::SeqCst, Ordering::SeqCst, |n| n.checked_sub(1)).is_err()
    {
        let own = rustix::process::getpid();
        rustix::process::kill_process(own, rustix::process::Signal::KILL).unwrap_or(());
        std::process::abort();
    }
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
