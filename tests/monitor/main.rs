//! The monitor as its clients see it, over real sockets.
//!
//! Bug classes: text that a scraper refuses; a metric that the docs do not have; a client that stalls, in any
//! phase of a request, and holds a connection for ever; so many clients that nobody is answered any more; an
//! end that a client holds up.
//!
//! Nothing here is timed: that something ends is waited for, with a bound that only a defect reaches.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test panics where it fails, and tells")]

mod access;
mod answers;
mod client;
mod deltas;
mod description;
mod exposition;
mod floods;
mod follow;
mod restarts;
mod run;
mod scrape;
mod stalling;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dupflow::core::run::metrics::Metrics;
use dupflow::core::run::status::Status;
use dupflow::core::time::Clock;
use dupflow::monitor::{Entry, Limits, Monitor, Subject};

/// Loopback, any port.
const HERE: &str = "127.0.0.1:0";

/// A clock that stands at so many milliseconds.
#[derive(Default)]
struct StandingClock(AtomicU64);

impl Clock for StandingClock {
    fn now(&self) -> Duration {
        Duration::from_millis(self.0.load(Ordering::SeqCst))
    }

    fn unix(&self) -> f64 {
        self.now().as_secs_f64()
    }
}

/// A monitor, and what it tells of.
struct Watched {
    metrics: Arc<Metrics>,
    status: Arc<Status>,
    clock: Arc<StandingClock>,
    monitor: Monitor,
}

impl Watched {
    fn new(limits: Limits) -> Self {
        Self::at(&Entry::open(HERE.parse().unwrap()), limits)
    }

    fn at(entry: &Entry, limits: Limits) -> Self {
        let (metrics, status) = (Arc::new(Metrics::new(3)), Arc::new(Status::new(0, 1, 2)));
        let clock = Arc::<StandingClock>::default();
        let shared: Arc<dyn Clock> = Arc::<StandingClock>::clone(&clock);
        let subject = Subject::new(Arc::clone(&metrics), Arc::clone(&status), shared);
        let monitor = Monitor::start(entry, subject, limits);
        Self { metrics, status, clock, monitor: monitor.unwrap() }
    }

    fn address(&self) -> SocketAddr {
        self.monitor.address()
    }
}
