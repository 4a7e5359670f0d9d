//! The progress of a replay on the terminal.

use std::sync::Arc;
use std::sync::mpsc::{RecvTimeoutError, Sender, channel};
use std::thread::JoinHandle;
use std::time::Duration;

use indicatif::{HumanCount, HumanFloatCount, ProgressBar, ProgressStyle};

use crate::pipeline::RunJob;
use dupflow_run::metrics::Counter;

/// A progress line on the terminal; nothing if standard error is no terminal.
pub(super) struct ProgressLine {
    end: Sender<()>,
    thread: JoinHandle<()>,
}

impl ProgressLine {
    pub(super) fn start(job: &RunJob, visible: bool) -> Self {
        let metrics = Arc::clone(&job.stages.observers.metrics);
        let input = job.source.progress();
        let (end, ended) = channel();
        let thread = std::thread::spawn(move || {
            if !visible {
                return;
            }
            // indicatif hides the bar if standard error is no terminal.
            let total = input.as_ref().and_then(|input| input.total());
            let bar = total.map_or_else(ProgressBar::new_spinner, ProgressBar::new);
            if total.is_some() {
                let style = "{wide_bar} {bytes}/{total_bytes}, {eta} left\n{msg}";
                bar.set_style(
                    ProgressStyle::with_template(style).unwrap_or_else(|_| ProgressStyle::default_bar()),
                );
            }
            while let Err(RecvTimeoutError::Timeout) = ended.recv_timeout(Duration::from_millis(100)) {
                let counts = metrics.counts();
                let events = counts.get(Counter::Events);
                let documents = counts.documents();
                let pairs = counts.pairs();
                let rate = events as f64 / bar.elapsed().as_secs_f64();
                bar.set_position(input.as_ref().map_or(0, |input| input.read()));
                bar.set_message(format!(
                    "{} events, {} a second, {} documents, {} pairs",
                    HumanCount(events),
                    HumanFloatCount(rate.round()),
                    HumanCount(documents),
                    HumanCount(pairs)
                ));
                bar.tick();
            }
            bar.finish_and_clear();
        });
        Self { end, thread }
    }

    pub(super) fn end(self) {
        drop(self.end);
        // A panic of the progress line is ignored.
        drop(self.thread.join());
    }
}
