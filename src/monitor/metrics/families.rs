//! The table of metric families.

use super::encoder::{MetricKind, SampleWriter};
use super::{MetricRow, MetricScrape};
use dupflow_core::time::unix_seconds;
use dupflow_run::backlog::UnreadRecords;
use dupflow_run::metrics::Counter;
use dupflow_run::status::Phase;
use dupflow_run::watch::HookState;

/// Writes the samples of a family.
pub(super) type Write = Box<dyn Fn(&MetricScrape, &mut SampleWriter<'_>) + Send + Sync>;

/// A metric with its values.
pub(super) struct Family {
    pub(super) row: MetricRow,
    pub(super) write: Write,
}

/// Every metric.
pub(super) fn all() -> Vec<Family> {
    let mut all: Vec<Family> = Counter::TABLE
        .iter()
        .map(|(counter, name, help)| {
            let counter = *counter;
            let write = move |s: &MetricScrape, out: &mut SampleWriter<'_>| out.one(s.counts.get(counter));
            family(&format!("{name}_total"), MetricKind::Counter, None, help, write)
        })
        .collect();
    all.extend(more_counters());
    all.extend(alive());
    all.extend(epochs());
    all.extend(input());
    all.extend(requests());
    all.extend(process());
    all.extend(watches());
    all
}

fn family(
    name: &str,
    kind: MetricKind,
    label: Option<&'static str>,
    help: &'static str,
    write: impl Fn(&MetricScrape, &mut SampleWriter<'_>) + Send + Sync + 'static,
) -> Family {
    let row = MetricRow { name: format!("dupflow_{name}"), kind, label, help };
    Family { row, write: Box::new(write) }
}

fn gauge(
    name: &str,
    help: &'static str,
    write: impl Fn(&MetricScrape, &mut SampleWriter<'_>) + Send + Sync + 'static,
) -> Family {
    family(name, MetricKind::Gauge, None, help, write)
}

/// Counters that are not in [`Counter::TABLE`].
fn more_counters() -> Vec<Family> {
    vec![
        family(
            "compared_by_look_total",
            MetricKind::Counter,
            Some("look"),
            "Pairs of sketches that the filter compared, by the look that decided, from 1.",
            |s, out| {
                for (look, n) in (1..).zip(s.counts.looks()) {
                    out.labelled("look", &format!("{look}"), *n);
                }
            },
        ),
        family(
            "deltas_by_cause_total",
            MetricKind::Counter,
            Some("cause"),
            "Deltas of both signs that were written, by what caused them.",
            |s, out| s.counts.causes().for_each(|(cause, n)| out.labelled("cause", cause.name(), n)),
        ),
        family(
            "bad_records_total",
            MetricKind::Counter,
            Some("reason"),
            "Records that are no events, by what is wrong with them.",
            |s, out| {
                s.status.bad_by_reason().iter().for_each(|(reason, n)| out.labelled("reason", reason, *n));
            },
        ),
    ]
}

/// What is alive: documents, sketches, blocks, pairs, clusters.
fn alive() -> Vec<Family> {
    let balance =
        |name, help, born, died| gauge(name, help, move |s, out| out.one(s.counts.balance(born, died)));
    vec![
        gauge("documents", "Documents alive.", |s, out| out.one(s.counts.documents())),
        balance(
            "remembered_ids",
            "Deleted ids that are remembered.",
            Counter::Remembered,
            Counter::Forgotten,
        ),
        balance("sketches", "Distinct sketches alive.", Counter::SketchesBorn, Counter::SketchesDied),
        gauge(
            "planned_sketches",
            "Distinct sketches that the blocks are planned for, by blocking.documents; with more, blocks \
                that get hot lose pairs.",
            |s, out| {
                if let Some(planned) = s.planned {
                    out.one(planned);
                }
            },
        ),
        balance("hot_blocks", "Blocks that are hot.", Counter::Heated, Counter::Cooled),
        balance("pairs", "Pairs alive.", Counter::Formed, Counter::Dissolved),
        gauge("clusters", "Clusters alive, giants not counted; where they are kept or written.", |s, out| {
            let written = s.counts.balance(Counter::ClustersFormed, Counter::ClustersDissolved);
            out.one(s.held.map_or(written, |held| held.clusters as u64));
        }),
        gauge(
            "giant_clusters",
            "Clusters alive beyond the limit; where they are kept or written.",
            |s, out| {
                let written = s.counts.balance(Counter::GiantsFormed, Counter::GiantsDissolved);
                out.one(s.held.map_or(written, |held| held.giants as u64));
            },
        ),
        family("view_rows", MetricKind::Gauge, Some("view"), "Rows of a view.", |s, out| {
            s.view_rows.iter().for_each(|(name, rows)| out.labelled("view", name, *rows as u64));
        }),
    ]
}

/// Progress of epochs.
fn epochs() -> Vec<Family> {
    vec![
        gauge("closed_epoch", "The last epoch that all workers have computed.", |s, out| {
            out.one(s.status.closed_epoch());
        }),
        gauge("durable_epoch", "The last epoch that the output holds.", |s, out| {
            out.one(s.status.durable_epoch());
        }),
        gauge("in_flight_epochs", "Epochs that have been begun and are not durable.", |s, out| {
            out.one(s.status.in_flight());
        }),
        gauge("waiting_deltas", "Deltas of closed epochs that wait for the output.", |s, out| {
            out.one(s.status.waiting_deltas());
        }),
        gauge(
            "outputs_behind",
            "Outputs beside the first one that cannot be written, and are left behind.",
            |s, out| out.one(s.counts.balance(Counter::OutputsLeft, Counter::OutputsBack)),
        ),
        family(
            "commit_seconds",
            MetricKind::Histogram,
            None,
            "How long commits took: deltas and progress made durable together.",
            |s, out| out.histogram(&s.status.commit_seconds()),
        ),
        gauge(
            "commit_age_seconds",
            "Time since the last commit; no sample before the first one.",
            |s, out| {
                if let Some(age) = s.status.commit_age(s.now) {
                    out.one(age.as_secs_f64());
                }
            },
        ),
        gauge(
            "closed_lag_seconds",
            "How long ago the oldest events were read whose epoch is not closed; 0 if there are none.",
            |s, out| out.one(s.status.lags(s.now).0.as_secs_f64()),
        ),
        gauge(
            "durable_lag_seconds",
            "How long ago the oldest events were read that are not durable; 0 if there are none.",
            |s, out| out.one(s.status.lags(s.now).1.as_secs_f64()),
        ),
        gauge(
            "retention_clock_seconds",
            "The clock by which documents expire, in unix seconds; no sample where none do.",
            |s, out| {
                if let Some(at) = s.status.retention_clock() {
                    out.one(at);
                }
            },
        ),
        gauge(
            "retention_clock_ahead_seconds",
            "How far the clock by which documents expire is ahead of the machine's; no sample unless it is \
                the wall clock.",
            |s, out| {
                if let Some(ahead) = s.status.retention_ahead(unix_seconds()) {
                    out.one(ahead);
                }
            },
        ),
        gauge("state_epoch", "The epoch that the stored state stands for; 0 if there is none.", |s, out| {
            out.one(s.status.state().0);
        }),
        gauge("state_bytes", "Size of the stored state in bytes.", |s, out| out.one(s.status.state().1)),
        gauge("history_epoch", "The last epoch in the stored history; 0 if none is stored.", |s, out| {
            out.one(s.status.history().0);
        }),
        gauge("history_bytes", "Size of the stored history in bytes.", |s, out| {
            out.one(s.status.history().1);
        }),
        gauge(
            "history_failed",
            "1 if the history is not stored any more or could not be read, else 0; /status says why.",
            |s, out| out.one(u64::from(s.history_failed)),
        ),
    ]
}

/// Unread records.
fn input() -> Vec<Family> {
    let of_partition = |name, help, value: fn(&UnreadRecords) -> u64| {
        family(name, MetricKind::Gauge, Some("partition"), help, move |s, out| {
            for (partition, waiting) in s.status.input().iter().flatten() {
                out.labelled("partition", &partition.to_string(), value(waiting));
            }
        })
    };
    vec![
        of_partition(
            "input_behind_records",
            "Offsets of a topic from where it has been read to the last stable one; no sample of other \
                inputs.",
            |waiting| waiting.behind,
        ),
        of_partition(
            "input_undecided_records",
            "Offsets of a topic beyond the last stable one: they wait for a transaction of their producer \
                that is open.",
            |waiting| waiting.undecided,
        ),
        family(
            "input_oldest_unread_seconds",
            MetricKind::Gauge,
            Some("partition"),
            "How long the first record that has not been read has waited, undecided ones included; 0 if \
                there is none.",
            |s, out| {
                for (partition, waiting) in s.status.input().iter().flatten() {
                    out.labelled("partition", &partition.to_string(), waiting.oldest.as_secs_f64());
                }
            },
        ),
        family(
            "input_unseen_seconds",
            MetricKind::Gauge,
            Some("partition"),
            "How long ago a broker last said where the partition ends; a second or two, unless the broker is \
                away.",
            |s, out| {
                for (partition, waiting) in s.status.input().iter().flatten() {
                    out.labelled("partition", &partition.to_string(), waiting.unseen.as_secs_f64());
                }
            },
        ),
    ]
}

/// Queries and requests.
fn requests() -> Vec<Family> {
    vec![
        family("questions_total", MetricKind::Counter, None, "Questions put to the workers.", |s, out| {
            out.one(s.status.questions());
        }),
        family(
            "questions_refused_total",
            MetricKind::Counter,
            Some("reason"),
            "Questions without an answer: too many in a second (rate), too many bodies or with the workers \
                (full), not live yet, ended, too late.",
            |s, out| s.refused.0.iter().for_each(|(reason, n)| out.labelled("reason", reason, *n)),
        ),
        family(
            "requests_refused_total",
            MetricKind::Counter,
            Some("reason"),
            "Requests that were not let in: too many connections, streams or logins, another host or site, \
                no token, or one that only permits to read; documents while too many wait, or that cannot be \
                stored.",
            |s, out| s.refused.1.iter().for_each(|(reason, n)| out.labelled("reason", reason, *n)),
        ),
        family(
            "untrusted_headers_total",
            MetricKind::Counter,
            None,
            "Requests with headers that only a trusted proxy may set, from other addresses: the headers are \
                ignored.",
            |s, out| out.one(s.untrusted),
        ),
        family("answer_seconds", MetricKind::Histogram, None, "How long answers took.", |s, out| {
            out.histogram(&s.status.answer_seconds());
        }),
        gauge("streams", "Streams of deltas that are open.", |s, out| out.one(s.streams)),
    ]
}

/// The process.
fn process() -> Vec<Family> {
    vec![
        family(
            "phase",
            MetricKind::Gauge,
            Some("phase"),
            "1 for the phase that the run is in, 0 for all others.",
            |s, out| {
                let present = s.status.phase();
                Phase::NAMES
                    .iter()
                    .for_each(|name| out.labelled("phase", name, u64::from(*name == present.name())));
            },
        ),
        gauge("uptime_seconds", "Time since the run began.", |s, out| out.one(s.now.as_secs_f64())),
        gauge("workers", "Worker threads of this process.", |s, out| out.one(s.status.workers())),
        family(
            "worker_step_age_seconds",
            MetricKind::Gauge,
            Some("worker"),
            "How long ago each worker began its last step: a few seconds, unless the step is long or the \
                worker hangs.",
            |s, out| {
                for (worker, age) in s.status.step_ages(s.now) {
                    out.labelled("worker", &worker.to_string(), age.as_secs_f64());
                }
            },
        ),
        gauge("process_index", "This process of the run, from 0.", |s, out| out.one(s.status.process().0)),
        gauge("processes", "Processes of the run.", |s, out| out.one(s.status.process().1)),
        gauge(
            "resident_bytes",
            "Memory that the process holds; no sample where the system does not say.",
            |s, out| {
                if let Some((now, _)) = s.resident {
                    out.one(now);
                }
            },
        ),
        gauge(
            "peak_resident_bytes",
            "The most memory that the process has held; no sample where the system does not say.",
            |s, out| {
                if let Some((_, peak)) = s.resident {
                    out.one(peak);
                }
            },
        ),
        gauge("memory_budget_bytes", "The memory budget of the process; no sample without one.", |s, out| {
            if let Some(budget) = s.memory_budget {
                out.one(budget);
            }
        }),
        family(
            "build_info",
            MetricKind::Gauge,
            Some("version"),
            "1, with the version of the program.",
            |_, out| {
                out.labelled("version", env!("CARGO_PKG_VERSION"), 1_u64);
            },
        ),
    ]
}

/// The watch list and its web hook; no samples without a list, or without a hook.
fn watches() -> Vec<Family> {
    let counter = |name, help, of: fn(&HookState) -> u64| {
        family(name, MetricKind::Counter, None, help, move |s, out| write_hook(s, out, of))
    };
    vec![
        gauge("watches", "Watches of the list.", |s, out| {
            if let Some(watch) = &s.watch {
                out.one(watch.watches);
            }
        }),
        counter("hook_delivered_total", "Notices that the web hook's receiver has accepted.", |hook| {
            hook.delivered
        }),
        counter(
            "hook_refused_total",
            "Notices that the web hook's receiver has refused; they are in its dead letters.",
            |hook| hook.refused,
        ),
        counter("hook_retries_total", "Attempts of the web hook that failed and are made again.", |hook| {
            hook.retries
        }),
        gauge("hook_undelivered", "Notices that the web hook has not delivered yet.", |s, out| {
            write_hook(s, out, |hook| hook.undelivered);
        }),
        gauge(
            "hook_oldest_seconds",
            "Age of the oldest notice that the web hook has not delivered yet, since this run has known of \
                it; 0 if there is none.",
            |s, out| {
                if let Some(hook) = s.watch.as_ref().and_then(|watch| watch.hook.as_ref()) {
                    out.one(hook.oldest_seconds);
                }
            },
        ),
    ]
}

fn write_hook(scrape: &MetricScrape, out: &mut SampleWriter<'_>, of: impl Fn(&HookState) -> u64) {
    if let Some(hook) = scrape.watch.as_ref().and_then(|watch| watch.hook.as_ref()) {
        out.one(of(hook));
    }
}
