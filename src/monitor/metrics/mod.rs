//! Every metric family: name, type, label, help text, and how to read its value. One table from which both
//! the `/metrics` text and the list in the documentation are made.
//!
//! Counters are atomics of the run. A scrape copies their present values into the encoder of the OpenMetrics
//! 1.0 library.
//!
//! Names are `dupflow_<noun>_<unit>`, in base units (seconds, bytes); counters end in `_total`. All values
//! are of this process. They can be summed over the processes of a run, except epochs, which are common to
//! the run.

mod encoder;
mod families;
pub(crate) mod process;
pub(crate) mod samples;

use std::fmt;
use std::sync::Arc;
use std::time::Duration;

use prometheus_client::collector::Collector;
use prometheus_client::encoding::DescriptorEncoder;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::MetricType;
use prometheus_client::registry::Registry;

use crate::guard::refusals::CountsByReason;
use dupflow_run::metrics::Counts;
use dupflow_run::status::Status;
use dupflow_run::watch::WatchState;
use encoder::SampleWriter;
use families::{Family, all};

pub use encoder::MetricKind;

/// A metric as the documentation lists it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MetricRow {
    /// The full name.
    pub name: String,
    /// Its type.
    pub kind: MetricKind,
    /// The label that distinguishes its samples, if there are several.
    pub label: Option<&'static str>,
    /// The help text.
    pub help: &'static str,
}

/// Every metric, in the order of `/metrics`.
pub fn metric_rows() -> Vec<MetricRow> {
    all().into_iter().map(|family| family.row).collect()
}

/// Every metric as a row of a Markdown table, for the documentation.
pub fn page() -> String {
    let mut page = String::from("| metric | type | label | what it is |\n|---|---|---|---|\n");
    for MetricRow { name, kind, label, help } in metric_rows() {
        let label = label.map_or(String::new(), |label| format!("`{label}`"));
        page += &format!("| `{name}` | {} | {label} | {help} |\n", kind.name());
    }
    page
}

/// The values of one scrape.
#[derive(Debug)]
pub(crate) struct MetricScrape {
    /// Whether the history was to be stored and is not any more.
    pub(crate) history_failed: bool,
    pub(crate) counts: Counts,
    pub(crate) status: Arc<Status>,
    /// Time since the run's clock was started.
    pub(crate) now: Duration,
    /// Resident memory in bytes, current and peak.
    pub(crate) resident: Option<(u64, u64)>,
    /// Refused queries and other refused requests, by reason.
    /// Requests with headers that only a trusted proxy may set.
    pub(crate) untrusted: u64,
    pub(crate) refused: (CountsByReason, CountsByReason),
    /// Open streams of deltas.
    pub(crate) streams: usize,
    /// Numbers of the view; `None` if it keeps no pairs or is not complete yet.
    pub(crate) held: Option<ViewCounts>,
    /// Distinct sketches for which the blocks of this process are planned, if blocks can get hot.
    pub(crate) planned: Option<u64>,
    /// The memory budget of this process in bytes.
    pub(crate) memory_budget: Option<u64>,
    /// Views with their numbers of rows.
    pub(crate) view_rows: Vec<(String, usize)>,
    /// The watch list, if there is one.
    pub(crate) watch: Option<WatchState>,
}

/// Numbers of the view.
#[derive(Clone, Copy, Debug)]
pub(crate) struct ViewCounts {
    /// Clusters without giants.
    pub(crate) clusters: usize,
    pub(crate) giants: usize,
}

/// The text of `/metrics`.
pub(crate) fn text(scrape: MetricScrape) -> Result<String, fmt::Error> {
    let mut registry = Registry::default();
    registry.register_collector(Box::new(scrape));
    let mut out = String::with_capacity(16 << 10);
    encode(&mut out, &registry).map(|()| out)
}

impl Collector for MetricScrape {
    fn encode(&self, mut encoder: DescriptorEncoder<'_>) -> fmt::Result {
        for Family { row: MetricRow { name, kind, help, .. }, write } in all() {
            let of = match kind {
                MetricKind::Counter => MetricType::Counter,
                MetricKind::Gauge => MetricType::Gauge,
                MetricKind::Histogram => MetricType::Histogram,
            };
            // The encoder appends `_total` to the names of counters.
            let name = name.strip_suffix("_total").unwrap_or(&name);
            let mut samples = SampleWriter::new(encoder.encode_descriptor(name, help, None, of)?, kind);
            write(self, &mut samples);
            samples.outcome()?;
        }
        Ok(())
    }
}
