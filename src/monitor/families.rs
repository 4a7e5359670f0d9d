//! Every metric: name, type, labels and help, with where its value comes from. One table, of which the text
//! that is served and the page in the docs are made.
//!
//! Counts are kept in atomics of our own; at a scrape they are handed to the library of the format
//! (OpenMetrics 1.0) as what they are then.
//!
//! Names are `dupflow_<noun>_<unit>`, in base units (seconds, bytes); counters end in `_total`. All are of
//! this process: those of several processes add up, but for epochs, which are the run's.

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use super::exposition::{Kind, Samples};
use super::refusals::Counted;
use dupflow_core::run::backlog::UnreadRecords;
use dupflow_core::run::metrics::{Counter, Counts};
use dupflow_core::run::status::{Phase, Status};

/// A metric as the docs list it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Listed {
    /// Its name.
    pub name: String,
    /// Its type.
    pub kind: Kind,
    /// The label that tells its samples apart, if it has several.
    pub label: Option<&'static str>,
    /// What it is.
    pub help: &'static str,
}

/// Every metric, in the order in which they are served.
pub fn listed() -> Vec<Listed> {
    all().into_iter().map(|family| family.listed).collect()
}

/// Every metric as the page in the docs has it: the rows of a table.
pub fn page() -> String {
    let mut page = String::from("| metric | type | label | what it is |\n|---|---|---|---|\n");
    for Listed { name, kind, label, help } in listed() {
        let label = label.map_or(String::new(), |label| format!("`{label}`"));
        page += &format!("| `{name}` | {} | {label} | {help} |\n", kind.name());
    }
    page
}

/// What values are taken from, all at one moment.
#[derive(Debug)]
pub(super) struct Scrape {
    pub(super) counts: Counts,
    pub(super) status: Arc<Status>,
    /// Time since the run's clock was started.
    pub(super) now: Duration,
    /// Resident memory in bytes, and the most so far.
    pub(super) resident: Option<(u64, u64)>,
    /// Questions, and requests of any kind, that were refused, by reason.
    pub(super) refused: (Counted, Counted),
    /// Streams of deltas that are open.
    pub(super) streams: usize,
    /// What of pairs, clusters and deltas is held in memory, where it is.
    pub(super) held: Option<Held>,
    /// Distinct sketches that the blocks are planned for, in this process, where some may get hot.
    pub(super) planned: Option<u64>,
}

/// What the view holds.
#[derive(Clone, Copy, Debug)]
pub(super) struct Held {
    /// Clusters that are no giants.
    pub(super) clusters: usize,
    pub(super) giants: usize,
}

/// Writes the samples of a family.
type Write = Box<dyn Fn(&Scrape, &mut Samples<'_>) + Send + Sync>;

/// A metric with its values.
struct Family {
    listed: Listed,
    write: Write,
}

/// The whole text.
pub(super) fn text(scrape: Scrape) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(scrape));
    let mut out = String::with_capacity(16 << 10);
    encode(&mut out, &registry).map(|()| out)
}

impl Collector for Scrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Family { listed: Listed { name, kind, help, .. }, write } in all() {
            let of = match kind {
                Kind::Counter => MetricType::Counter,
                Kind::Gauge => MetricType::Gauge,
                Kind::Histogram => MetricType::Histogram,
            };
            // The format has the name of a counter without the end that its samples have.
            let name = name.strip_suffix("_total").unwrap_or(&name);
            let mut samples = Samples::new(encoder.encode_descriptor(name, help, None, of)?, kind);
            write(self, &mut samples);
            samples.outcome()?;
        }
        Ok(())
    }
}

/// Every metric.
fn all() -> Vec<Family> {
    let mut all: Vec<Family> = Counter::TABLE
        .iter()
        .map(|(counter, name, help)| {
            let counter = *counter;
            let write = move |s: &Scrape, out: &mut Samples<'_>| out.one(s.counts.get(counter));
            family(&format!("{name}_total"), Kind::Counter, None, help, write)
        })
        .collect();
    all.extend(counted());
    all.extend(alive());
    all.extend(epochs());
    all.extend(input());
    all.extend(asked());
    all.extend(process());
    all
}

fn family(
    name: &str,
    kind: Kind,
    label: Option<&'static str>,
    help: &'static str,
    write: impl Fn(&Scrape, &mut Samples<'_>) + Send + Sync + 'static,
) -> Family {
    let listed = Listed { name: format!("dupflow_{name}"), kind, label, help };
    Family { listed, write: Box::new(write) }
}

fn gauge(
    name: &str,
    help: &'static str,
    write: impl Fn(&Scrape, &mut Samples<'_>) + Send + Sync + 'static,
) -> Family {
    family(name, Kind::Gauge, None, help, write)
}

/// Counters beside those of the table.
fn counted() -> Vec<Family> {
    vec![
        family(
            "compared_by_look_total",
            Kind::Counter,
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
            Kind::Counter,
            Some("cause"),
            "Deltas of both signs, by what caused them.",
            |s, out| s.counts.causes().for_each(|(cause, n)| out.labelled("cause", cause.name(), n)),
        ),
        family(
            "bad_records_total",
            Kind::Counter,
            Some("reason"),
            "Records that are no events, by what is wrong with them.",
            |s, out| {
                s.status.bad_by_reason().iter().for_each(|(reason, n)| out.labelled("reason", reason, *n));
            },
        ),
    ]
}

/// What comes and goes, and is there.
fn alive() -> Vec<Family> {
    let balance =
        |name, help, came, went| gauge(name, help, move |s, out| out.one(s.counts.balance(came, went)));
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
            "Distinct sketches that the blocks are planned for, by blocking.documents; with more, blocks that get hot lose pairs.",
            |s, out| {
                if let Some(planned) = s.planned {
                    out.one(planned);
                }
            },
        ),
        balance("hot_blocks", "Blocks that are hot.", Counter::Heated, Counter::Cooled),
        balance("pairs", "Pairs alive.", Counter::Added, Counter::Removed),
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
    ]
}

/// The way of an epoch.
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
        family(
            "commit_seconds",
            Kind::Histogram,
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
        gauge("state_epoch", "The epoch that the stored state stands for; 0 if there is none.", |s, out| {
            out.one(s.status.state().0);
        }),
        gauge("state_bytes", "Size of the stored state in bytes.", |s, out| out.one(s.status.state().1)),
    ]
}

/// What waits to be read.
fn input() -> Vec<Family> {
    let of_partition = |name, help, value: fn(&UnreadRecords) -> u64| {
        family(name, Kind::Gauge, Some("partition"), help, move |s, out| {
            for (partition, waiting) in s.status.input().iter().flatten() {
                out.labelled("partition", &partition.to_string(), value(waiting));
            }
        })
    };
    vec![
        of_partition(
            "input_behind_records",
            "Offsets of a topic from where it has been read to the last stable one; no sample of other inputs.",
            |waiting| waiting.behind,
        ),
        of_partition(
            "input_undecided_records",
            "Offsets of a topic beyond the last stable one: they wait for a transaction of their producer that is open.",
            |waiting| waiting.undecided,
        ),
        family(
            "input_oldest_unread_seconds",
            Kind::Gauge,
            Some("partition"),
            "How long the first record that has not been read has waited, undecided ones included; 0 if there is none.",
            |s, out| {
                for (partition, waiting) in s.status.input().iter().flatten() {
                    out.labelled("partition", &partition.to_string(), waiting.oldest.as_secs_f64());
                }
            },
        ),
        family(
            "input_unseen_seconds",
            Kind::Gauge,
            Some("partition"),
            "How long ago a broker last said where the partition ends; a second or two, unless the broker is away.",
            |s, out| {
                for (partition, waiting) in s.status.input().iter().flatten() {
                    out.labelled("partition", &partition.to_string(), waiting.unseen.as_secs_f64());
                }
            },
        ),
    ]
}

/// Those who ask.
fn asked() -> Vec<Family> {
    vec![
        family("questions_total", Kind::Counter, None, "Questions put to the workers.", |s, out| {
            out.one(s.status.questions());
        }),
        family(
            "questions_refused_total",
            Kind::Counter,
            Some("reason"),
            "Questions without an answer: too many in a second (rate), too many bodies or with the workers (full), not live yet, ended, too late.",
            |s, out| s.refused.0.iter().for_each(|(reason, n)| out.labelled("reason", reason, *n)),
        ),
        family(
            "requests_refused_total",
            Kind::Counter,
            Some("reason"),
            "Requests that were not let in: too many connections, streams or logins, another host or site, or no token.",
            |s, out| s.refused.1.iter().for_each(|(reason, n)| out.labelled("reason", reason, *n)),
        ),
        family("answer_seconds", Kind::Histogram, None, "How long answers took.", |s, out| {
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
            Kind::Gauge,
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
            Kind::Gauge,
            Some("worker"),
            "How long ago each worker began its last step: a few seconds, but for one that is in a long one or hangs.",
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
        family(
            "build_info",
            Kind::Gauge,
            Some("version"),
            "1, with the version of the program.",
            |_, out| {
                out.labelled("version", env!("CARGO_PKG_VERSION"), 1_u64);
            },
        ),
    ]
}
