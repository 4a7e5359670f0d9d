//! Measurements of one process during a run. Those of several processes add up to the run's.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::AddAssign;
use std::sync::Arc;
use std::time::Duration;

use hdrhistogram::Histogram;
use serde::{Deserialize, Serialize};

use dupflow_connectors::digest::DigestTable;
use dupflow_connectors::intake::{BadRecords, InputTally, UnreadFiles};
use dupflow_core::block::{BlockKey, HotBlock};
use dupflow_core::sketch::Scheme;
use dupflow_engine::dataflow::Stages;
use dupflow_run::metrics::Counts;

/// Longest time that the histogram distinguishes, in microseconds.
const DAY_MICROS: u64 = 24 * 3600 * 1_000_000;

/// The measurements of one process.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measures {
    /// The counters.
    pub counts: Counts,
    /// Invalid records by reason.
    pub bad_records: BTreeMap<String, u64>,
    /// Files that were not read, or only in part.
    #[serde(default)]
    pub unread: UnreadFiles,
    /// Valid records without a document, by reason.
    pub skipped: BTreeMap<String, u64>,
    /// For each input that is read from its beginning, the counts of its records.
    #[serde(default)]
    pub inputs: BTreeMap<Arc<str>, InputTally>,
    /// The digests of the inputs, if they are computed.
    #[serde(default)]
    pub digests: DigestTable,
    /// The blocks above the cap in this process; each block is in one process only.
    pub hot_blocks: Vec<HotBlockReport>,
    /// Times from the first event of an epoch to its commit; only in the process that writes.
    #[serde(skip)]
    pub latencies: Latencies,
    /// Peak resident memory in bytes. For several processes, the largest of their peaks.
    pub peak_rss_bytes: u64,
}

/// A block with more sketches than the cap.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct HotBlockReport {
    /// Number of distinct sketches; with `pairs.where`, of those that are equal in its fields of `==`.
    pub sketches: usize,
    /// Its band or table, from 0.
    pub table: u16,
    /// Its hash as 8 hexadecimal digits.
    pub hash: String,
    /// The id of a document in it, as it was read.
    pub example: String,
    /// Where documents are cut into units: which unit of that document.
    #[serde(skip_serializing_if = "Option::is_none", default)]
    pub unit: Option<UnitExample>,
}

/// A unit of a document.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
pub struct UnitExample {
    /// The hash of its content as 16 hexadecimal digits.
    pub hash: String,
    /// The number of units before it with the same content.
    pub occurrence: u32,
}

impl HotBlockReport {
    fn new(key: BlockKey, block: &HotBlock, scheme: &Scheme) -> Self {
        let (table, hash) = (key.table, format!("{:010x}", key.hash()));
        let (example, unit) = match &block.document {
            Some(id) if scheme.units.is_some() => {
                let [document, content, occurrence] = id.parts_of_unit();
                let occurrence = u32::from_str_radix(occurrence, 16).unwrap_or_default();
                (document.to_owned(), Some(UnitExample { hash: content.to_owned(), occurrence }))
            }
            Some(id) if scheme.pairs.has_reference() => (id.without_side().to_owned(), None),
            Some(id) => (id.to_string(), None),
            None => (block.example.to_string(), None),
        };
        Self { sketches: block.sketches, table, hash, example, unit }
    }
}

/// Histogram of times up to one day, with a fixed size of 230 KB. The resolution is one microsecond or one
/// part in a thousand, whichever is coarser; a longer time counts as one day.
#[derive(Clone)]
pub struct Latencies(Histogram<u64>);

/// Three quantiles of a distribution, in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize)]
pub struct Quantiles {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The maximum.
    pub max: f64,
}

impl Measures {
    /// The measurements of this process so far.
    pub(in crate::pipeline) fn collect(stages: &Stages, bad: &BadRecords, latencies: Latencies) -> Self {
        let hot_blocks = stages.observers.hot_blocks.lock();
        let hot_blocks =
            hot_blocks.iter().map(|((key, _), block)| HotBlockReport::new(*key, block, &stages.scheme));
        Self {
            counts: stages.observers.metrics.counts(),
            bad_records: bad.counts().into_iter().map(|(reason, n)| (reason.to_owned(), n)).collect(),
            skipped: bad.skipped().into_iter().map(|(why, n)| (why.to_owned(), n)).collect(),
            unread: bad.unread(),
            inputs: bad.tallies(),
            digests: bad.digest_table(),
            hot_blocks: hot_blocks.collect(),
            latencies,
            peak_rss_bytes: peak_rss_bytes(),
        }
    }
}

impl AddAssign<&Self> for Measures {
    /// Adds the measurements of another process of the same run.
    fn add_assign(&mut self, other: &Self) {
        self.counts += &other.counts;
        for (reason, n) in &other.bad_records {
            *self.bad_records.entry(reason.clone()).or_default() += n;
        }
        self.unread += &other.unread;
        for (why, n) in &other.skipped {
            *self.skipped.entry(why.clone()).or_default() += n;
        }
        for (input, tally) in &other.inputs {
            *self.inputs.entry(Arc::clone(input)).or_default() += tally;
        }
        self.digests += &other.digests;
        self.hot_blocks.extend_from_slice(&other.hot_blocks);
        self.latencies += &other.latencies;
        self.peak_rss_bytes = self.peak_rss_bytes.max(other.peak_rss_bytes);
    }
}

impl Default for Latencies {
    fn default() -> Self {
        Self(Histogram::new_with_max(DAY_MICROS, 3).expect("three digits of a day are allowed"))
    }
}

impl Latencies {
    /// Records one time.
    pub fn record(&mut self, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.0.saturating_record(micros);
    }

    /// The quantiles in milliseconds; zeros for an empty histogram. A quantile q is the smallest time that is
    /// at least as long as a share q of all times.
    pub fn quantiles(&self) -> Quantiles {
        let milliseconds = |micros: u64| micros as f64 / 1e3;
        let at = |quantile| milliseconds(self.0.lowest_equivalent(self.0.value_at_quantile(quantile)));
        Quantiles { p50: at(0.5), p99: at(0.99), max: milliseconds(self.0.max()) }
    }
}

impl AddAssign<&Self> for Latencies {
    fn add_assign(&mut self, other: &Self) {
        self.0.add(&other.0).expect("all histograms hold the same range");
    }
}

impl fmt::Debug for Latencies {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Latencies").field(&self.quantiles()).finish()
    }
}

/// Peak resident memory in bytes, from `/proc`; 0 where there is none.
fn peak_rss_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let kib =
        status.lines().find_map(|line| line.strip_prefix("VmHWM:")?.split_whitespace().next()?.parse().ok());
    kib.unwrap_or(0) * 1024
}

#[cfg(test)]
mod tests {
    use super::*;
    use dupflow_run::metrics::{Counter, Metrics};

    fn latencies(times: impl IntoIterator<Item = u64>) -> Latencies {
        let mut latencies = Latencies::default();
        times.into_iter().for_each(|time| latencies.record(Duration::from_micros(time)));
        latencies
    }

    #[test]
    fn quantiles_are_nearest_ranks() {
        // Up to 2,047 microseconds the histogram is exact.
        assert_eq!(latencies((1..=200).rev()).quantiles(), Quantiles { p50: 0.1, p99: 0.198, max: 0.2 });
        assert_eq!(latencies([7]).quantiles(), Quantiles { p50: 0.007, p99: 0.007, max: 0.007 });
        assert_eq!(latencies([]).quantiles(), Quantiles::default());
        let long = latencies([3_600_000_000]).quantiles();
        assert!((long.p50 / 3.6e6 - 1.0).abs() < 1e-3 && (long.max / 3.6e6 - 1.0).abs() < 1e-3, "{long:?}");
        let longest = latencies([u64::MAX]).quantiles().max;
        assert!((longest / 8.64e7 - 1.0).abs() < 2e-3, "no time is too long: {longest}");
    }

    #[test]
    fn measures_of_processes_add_up() {
        let process = |events, reason: &str, block: usize, time, rss| {
            let metrics = Metrics::new(0);
            metrics.add(Counter::Events, events);
            let hash = "0badcafe".to_owned();
            Measures {
                counts: metrics.counts(),
                bad_records: BTreeMap::from([(reason.to_owned(), 2), ("both".to_owned(), 1)]),
                unread: UnreadFiles { count: 1, first: None },
                skipped: BTreeMap::from([(reason.to_owned(), 1)]),
                inputs: BTreeMap::from([(
                    "in".into(),
                    InputTally { documents: events, bad: 3, first: None },
                )]),
                digests: DigestTable::default(),
                hot_blocks: vec![HotBlockReport {
                    sketches: block,
                    table: 0,
                    hash,
                    example: "x".to_owned(),
                    unit: None,
                }],
                latencies: latencies([time]),
                peak_rss_bytes: rss,
            }
        };
        let mut all = process(10, "a", 70, 5, 100);
        all += &process(1, "b", 80, 1000, 300);
        assert_eq!(all.counts.get(Counter::Events), 11);
        let expected = [("a", 2), ("b", 2), ("both", 2)].map(|(reason, n)| (reason.to_owned(), n));
        assert_eq!(all.bad_records, BTreeMap::from(expected));
        assert_eq!(all.inputs["in"], InputTally { documents: 11, bad: 6, first: None });
        assert_eq!(all.hot_blocks.iter().map(|block| block.sketches).collect::<Vec<_>>(), [70, 80]);
        assert_eq!(all.latencies.quantiles(), Quantiles { p50: 0.005, p99: 1.0, max: 1.0 });
        assert_eq!(all.peak_rss_bytes, 300);
    }
}
