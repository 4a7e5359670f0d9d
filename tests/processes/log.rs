//! The log of all tests of this binary.

use std::io::{self, Write};
use std::sync::{Condvar, Mutex, Once};
use std::time::Duration;

static LOG: Mutex<String> = Mutex::new(String::new());
static MORE: Condvar = Condvar::new();

struct ToLog;

impl Write for ToLog {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        LOG.lock().unwrap().push_str(&String::from_utf8_lossy(bytes));
        MORE.notify_all();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

/// Starts to log.
pub(crate) fn start() {
    static STARTED: Once = Once::new();
    STARTED.call_once(|| {
        let log = tracing_subscriber::fmt().with_ansi(false).without_time().with_target(false);
        log.with_writer(|| ToLog).init();
    });
}

/// The lines that contain this.
pub(crate) fn lines(what: &str) -> Vec<String> {
    LOG.lock().unwrap().lines().filter(|line| line.contains(what)).map(str::to_owned).collect()
}

/// Waits for a line that contains this.
pub(crate) fn wait_for(what: &str) {
    let lacks = |log: &mut String| !log.contains(what);
    let (log, waited) = MORE.wait_timeout_while(LOG.lock().unwrap(), Duration::from_secs(60), lacks).unwrap();
    assert!(!waited.timed_out(), "{what:?} is not in the log:\n{log}");
}
