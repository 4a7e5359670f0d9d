//! Watches the memory of the process against its budget: what must be in memory may outgrow it.

use std::time::Duration;

use parking_lot::Mutex;

use dupflow_run::metrics::{Counter, Metrics};

/// How often the memory is looked at, or less often while a worker is busy.
const EVERY: Duration = Duration::from_secs(1);

/// The memory of a process is reported again when it has grown by this factor.
const GROWTH: f64 = 1.1;

/// The budget of a process, if it has one.
#[derive(Debug)]
pub(in crate::pipeline) struct MemoryWatch {
    /// In bytes.
    budget: Option<u64>,
    looked: Mutex<LastLook>,
}

#[derive(Debug)]
struct LastLook {
    /// The time of the run until which seconds are counted.
    until: Duration,
    /// The bytes above which the log reports the next one.
    report_above: u64,
}

impl MemoryWatch {
    pub(in crate::pipeline) fn new(budget: Option<u64>) -> Self {
        let report_above = budget.unwrap_or(u64::MAX);
        Self { budget, looked: Mutex::new(LastLook { until: Duration::ZERO, report_above }) }
    }

    /// Counts the seconds since the last look, and logs it, if the process takes more than its budget. `now`:
    /// the time of the run.
    pub(in crate::pipeline) fn look(&self, now: Duration, metrics: &Metrics) {
        self.look_with(now, metrics, resident_bytes);
    }

    fn look_with(&self, now: Duration, metrics: &Metrics, resident: impl Fn() -> Option<u64>) {
        let Some(budget) = self.budget else { return };
        let mut last = self.looked.lock();
        let seconds = now.saturating_sub(last.until).as_secs();
        if seconds < EVERY.as_secs() {
            return;
        }
        last.until += Duration::from_secs(seconds);
        let Some(resident) = resident().filter(|resident| *resident > budget) else { return };
        metrics.add(Counter::OverBudget, seconds);
        if resident > last.report_above {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of a process")]
            let later = (resident as f64 * GROWTH) as u64;
            last.report_above = later;
            tracing::warn!(
                resident_bytes = resident,
                budget_bytes = budget,
                "the process takes more than its memory budget: what must be in memory has outgrown it; the \
                 results stay exact; a larger budget or more processes are needed (dupflow plan --memory)"
            );
        }
    }
}

/// The memory that the process holds, in bytes; `None` where the system does not say.
fn resident_bytes() -> Option<u64> {
    let status = std::fs::read_to_string("/proc/self/status").ok()?;
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"))?;
    line.split_whitespace().next()?.parse::<u64>().ok().map(|kib| kib * 1024)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_process_over_its_budget_is_counted_by_seconds() {
        let (metrics, watch) = (Metrics::new(0), MemoryWatch::new(Some(100)));
        let count = |seconds: f64, resident| {
            watch.look_with(Duration::from_secs_f64(seconds), &metrics, || resident);
            metrics.get(Counter::OverBudget)
        };
        assert_eq!([count(0.5, Some(900)), count(1.0, Some(100)), count(2.5, Some(101))], [0, 0, 1]);
        assert_eq!(watch.looked.lock().report_above, 111);
        assert_eq!([count(2.9, Some(900)), count(3.0, None), count(4.0, Some(900))], [1, 1, 2]);
        assert_eq!(count(34.5, Some(900)), 32, "an epoch that took long");
        MemoryWatch::new(None).look_with(Duration::MAX, &metrics, || panic!("there is no budget"));
    }
}
