//! Watches the memory of the process against its budget: what must be in memory may outgrow it.

use std::time::Duration;

use parking_lot::Mutex;

use dupflow_core::run::metrics::{Counter, Metrics};

/// How often the memory is looked at, while there is input.
const EVERY: Duration = Duration::from_secs(1);

/// The memory of a process is reported again when it has grown by this factor.
const GROWTH: f64 = 1.1;

/// The budget of a process, if it has one.
#[derive(Debug)]
pub(in crate::pipeline) struct MemoryWatch {
    /// In bytes.
    budget: Option<u64>,
    /// When the next look is due, and the bytes from which on the log reports the next one.
    next: Mutex<(Duration, u64)>,
}

impl MemoryWatch {
    pub(in crate::pipeline) fn new(budget: Option<u64>) -> Self {
        Self { budget, next: Mutex::new((Duration::ZERO, budget.unwrap_or(u64::MAX))) }
    }

    /// Counts, and logs, a process that takes more than its budget. `now`: the time of the run.
    pub(in crate::pipeline) fn look(&self, now: Duration, metrics: &Metrics) {
        self.look_with(now, metrics, resident_bytes);
    }

    fn look_with(&self, now: Duration, metrics: &Metrics, resident: impl Fn() -> Option<u64>) {
        let Some(budget) = self.budget else { return };
        let mut next = self.next.lock();
        if now < next.0 {
            return;
        }
        next.0 = now + EVERY;
        let Some(resident) = resident().filter(|resident| *resident > budget) else { return };
        metrics.add(Counter::OverBudget, 1);
        if resident > next.1 {
            #[expect(clippy::cast_possible_truncation, clippy::cast_sign_loss, reason = "bytes of a process")]
            let later = (resident as f64 * GROWTH) as u64;
            next.1 = later;
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
    fn a_process_over_its_budget_is_counted_once_a_second() {
        let (metrics, watch) = (Metrics::new(0), MemoryWatch::new(Some(100)));
        let count = |seconds: f64, resident| {
            watch.look_with(Duration::from_secs_f64(seconds), &metrics, || resident);
            metrics.get(Counter::OverBudget)
        };
        assert_eq!([count(0.0, Some(100)), count(0.5, Some(900)), count(1.0, Some(101))], [0, 0, 1]);
        assert_eq!(watch.next.lock().1, 111);
        assert_eq!([count(1.9, Some(900)), count(2.0, None), count(3.0, Some(900))], [1, 1, 2]);
        MemoryWatch::new(None).look_with(Duration::ZERO, &metrics, || panic!("there is no budget"));
    }
}
