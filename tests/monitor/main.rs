//! The monitor as its clients see it, over real sockets.
//!
//! Bug classes: text that a scraper refuses; a metric that the documentation lacks; a client that stalls in
//! any phase of a request and keeps its connection; so many clients that further ones are not answered; an
//! end of the run that a client delays.
//!
//! No test asserts a duration. Tests wait for events, with a bound that only a defect reaches.

#![expect(clippy::unwrap_used, clippy::print_stdout, reason = "a test panics where it fails, and tells")]

mod access;
mod answers;
mod client;
mod deltas;
mod description;
#[cfg(target_os = "linux")]
#[path = "../data/disk.rs"]
mod disk;
mod export;
mod exposition;
mod floods;
mod follow;
mod history;
#[cfg(all(feature = "webhook", target_os = "linux"))]
mod hook_files;
mod post;
#[cfg(feature = "webhook")]
mod receiver;
mod reference;
mod restarts;
mod run;
mod scrape;
mod stalling;
#[cfg(feature = "webhook")]
mod watch;

use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::Duration;

use dupflow::core::run::metrics::Metrics;
use dupflow::core::run::status::Status;
use dupflow::core::time::Clock;
use dupflow::monitor::{Endpoint, Monitor, MonitorLimits, MonitoredRun};

/// Loopback, any free port.
const HERE: &str = "127.0.0.1:0";

/// A clock that shows a set number of milliseconds.
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

/// A monitor and the run that it shows.
struct Watched {
    metrics: Arc<Metrics>,
    status: Arc<Status>,
    clock: Arc<StandingClock>,
    monitor: Monitor,
}

impl Watched {
    fn new(limits: MonitorLimits) -> Self {
        Self::at(&Endpoint::open(HERE.parse().unwrap()), limits)
    }

    fn at(entry: &Endpoint, limits: MonitorLimits) -> Self {
        let (metrics, status) = (Arc::new(Metrics::new(3)), Arc::new(Status::new(0, 1, 2)));
        let clock = Arc::<StandingClock>::default();
        let shared: Arc<dyn Clock> = Arc::<StandingClock>::clone(&clock);
        let subject = MonitoredRun::new(Arc::clone(&metrics), Arc::clone(&status), shared);
        let monitor = Monitor::start(entry, subject, limits);
        Self { metrics, status, clock, monitor: monitor.unwrap() }
    }

    fn address(&self) -> SocketAddr {
        self.monitor.address()
    }
}
