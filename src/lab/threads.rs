//! Independent tasks on several threads.

use std::sync::atomic::{AtomicUsize, Ordering};

/// The results of tasks 0, 1, ... in this order.
pub fn map<T: Send>(threads: usize, tasks: usize, task: impl Fn(usize) -> T + Sync) -> Vec<T> {
    let next = AtomicUsize::new(0);
    let work = || {
        let mut done = Vec::new();
        loop {
            let n = next.fetch_add(1, Ordering::Relaxed);
            if n >= tasks {
                return done;
            }
            done.push((n, task(n)));
        }
    };
    let mut results: Vec<(usize, T)> = std::thread::scope(|scope| {
        let workers: Vec<_> = (0..threads.min(tasks)).map(|_| scope.spawn(work)).collect();
        let join = |worker: std::thread::ScopedJoinHandle<'_, _>| {
            worker.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))
        };
        workers.into_iter().flat_map(join).collect()
    });
    results.sort_unstable_by_key(|(n, _)| *n);
    results.into_iter().map(|(_, result)| result).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn results_are_in_order() {
        for (threads, tasks) in [(1, 5), (3, 100), (4, 2), (2, 0)] {
            assert_eq!(map(threads, tasks, |n| n * n), (0..tasks).map(|n| n * n).collect::<Vec<_>>());
        }
    }
}
