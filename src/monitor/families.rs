//! Every metric: name, type, labels and help, with where its value comes from. One table, of which the text that is served and the
//! page in the docs are made.
//!
//! Names are `dupflow_<noun>_<unit>`, in base units (seconds, bytes); counters end in `_total`. All are of this process: those of several
//! processes add up, but for epochs, which are the run's.

use std::time::Duration;

use super::status::{Phase, Status};
use super::text::{self, Samples};
use crate::metrics::{Counter, Counts};

/// What kind of values a metric has.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// Goes up only, from 0 when the process starts.
    Counter,
    /// Goes up and down.
    Gauge,
    /// Times by bucket.
    Histogram,
}

impl Kind {
    /// As it is written.
    pub fn name(self) -> &'static str {
        match self {
            Self::Counter => "counter",
            Self::Gauge => "gauge",
            Self::Histogram => "histogram",
        }
    }
}

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

/// What values are taken from.
pub(super) struct Scrape<'s> {
    pub(super) counts: Counts,
    pub(super) status: &'s Status,
    /// Time since the run's clock was started.
    pub(super) now: Duration,
    /// Resident memory in bytes, and the most so far.
    pub(super) resident: Option<(u64, u64)>,
}

/// Writes the samples of a family.
type Write = Box<dyn Fn(&Scrape<'_>, &mut Samples<'_>) + Send + Sync>;

/// A metric with its values.
pub(super) struct Family {
    listed: Listed,
    write: Write,
}

/// The whole text.
pub(super) fn text(families: &[Family], scrape: &Scrape<'_>) -> String {
    let mut out = String::with_capacity(16 << 10);
    for Family { listed: Listed { name, kind, help, .. }, write } in families {
        text::family(&mut out, name, kind.name(), help);
        write(scrape, &mut Samples { out: &mut out, name });
    }
    out
}

/// Every metric.
pub(super) fn all() -> Vec<Family> {
    let mut all: Vec<Family> = Counter::TABLE
        .iter()
        .map(|(counter, name, help)| {
            let counter = *counter;
            let write = move |s: &Scrape<'_>, out: &mut Samples<'_>| out.one(s.counts.get(counter));
            family(&format!("{name}_total"), Kind::Counter, None, help, write)
        })
        .collect();
    all.extend(counted());
    all.extend(alive());
    all.extend(epochs());
    all.extend(process());
    all
}

fn family(
    name: &str,
    kind: Kind,
    label: Option<&'static str>,
    help: &'static str,
    write: impl Fn(&Scrape<'_>, &mut Samples<'_>) + Send + Sync + 'static,
) -> Family {
    let listed = Listed { name: format!("dupflow_{name}"), kind, label, help };
    Family { listed, write: Box::new(write) }
}

fn gauge(
    name: &str,
    help: &'static str,
    write: impl Fn(&Scrape<'_>, &mut Samples<'_>) + Send + Sync + 'static,
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
                    out.labelled("look", &format!("{look}"), n);
                }
            },
        ),
        family(
            "bad_records_total",
            Kind::Counter,
            Some("reason"),
            "Records that are no events, by what is wrong with them.",
            |s, out| s.status.bad_records().iter().for_each(|(reason, n)| out.labelled("reason", reason, n)),
        ),
    ]
}

/// What comes and goes, and is there.
fn alive() -> Vec<Family> {
    let balance =
        |name, help, came, went| gauge(name, help, move |s, out| out.one(s.counts.balance(came, went)));
    vec![
        balance("documents", "Documents alive.", Counter::Inserted, Counter::Deleted),
        balance("sketches", "Distinct sketches alive.", Counter::SketchesBorn, Counter::SketchesDied),
        balance("pairs", "Pairs alive.", Counter::Added, Counter::Removed),
        balance(
            "clusters",
            "Clusters alive, giants not counted; where clusters are written.",
            Counter::ClustersFormed,
            Counter::ClustersDissolved,
        ),
        balance(
            "giant_clusters",
            "Clusters alive beyond the limit; where clusters are written.",
            Counter::GiantsFormed,
            Counter::GiantsDissolved,
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
        gauge("state_epoch", "The epoch that the stored state stands for; 0 if there is none.", |s, out| {
            out.one(s.status.state().0);
        }),
        gauge("state_bytes", "Size of the stored state in bytes.", |s, out| out.one(s.status.state().1)),
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
                    .for_each(|name| out.labelled("phase", name, u8::from(*name == present.name())));
            },
        ),
        gauge("uptime_seconds", "Time since the run began.", |s, out| out.one(s.now.as_secs_f64())),
        gauge("workers", "Worker threads of this process.", |s, out| out.one(s.status.workers())),
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
                out.labelled("version", env!("CARGO_PKG_VERSION"), 1);
            },
        ),
    ]
}
